/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_JSON_WRITER_H
#define __PERF_JSON_WRITER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

#define JSON_WRITER__MAX_DEPTH	8

/**
 * enum json_style - how the members of an object or an array are laid out
 * @JSON_STYLE__INLINE: {"a": 1, "b": 2}
 * @JSON_STYLE__PADDED: { "a": 1, "b": 2 }
 * @JSON_STYLE__LINES: one member a line, indented by two spaces; empty: []
 */
enum json_style {
	JSON_STYLE__INLINE,
	JSON_STYLE__PADDED,
	JSON_STYLE__LINES,
};

/**
 * struct json_writer - a JSON document that is being written
 * @f: where to
 * @depth: objects and arrays that have begun and not ended
 * @lines: those of them that have %JSON_STYLE__LINES
 * @levels: of each, how it is laid out, how it ends, and whether it has a member
 */
struct json_writer {
	FILE		*f;
	int		depth;
	int		lines;
	struct {
		enum json_style	style;
		char		end;
		bool		has_member;
	} levels[JSON_WRITER__MAX_DEPTH];
};

void json_writer__init(struct json_writer *w, FILE *f);
void json_writer__begin_object(struct json_writer *w, const char *key, enum json_style style);
void json_writer__begin_array(struct json_writer *w, const char *key, enum json_style style);
void json_writer__end(struct json_writer *w);

void json_writer__string(struct json_writer *w, const char *key, const char *value);
void json_writer__known(struct json_writer *w, const char *key, const char *value);
void json_writer__number(struct json_writer *w, const char *key, u64 value);
void json_writer__signed(struct json_writer *w, const char *key, s64 value);
void json_writer__seconds(struct json_writer *w, const char *key, u64 ns, int digits);
void json_writer__bool(struct json_writer *w, const char *key, bool value);
void json_writer__literal(struct json_writer *w, const char *key, const char *value);

int json_writer__put_utf8(FILE *f, const char *str);

#endif /* __PERF_JSON_WRITER_H */
