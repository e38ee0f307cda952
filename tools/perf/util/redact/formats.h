/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_FORMATS_H
#define __PERF_REDACT_FORMATS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct redact_words;

/**
 * enum redact_how - what becomes of a field of a tracepoint
 * @REDACT_HOW_UNKNOWN: it is left out, also of the format
 * @REDACT_HOW_ZERO: it becomes zeros
 * @REDACT_HOW_NUMBER: it stays
 * @REDACT_HOW_STATE: the same, with letters for its bits in the format
 * @REDACT_HOW_ADDRESS: an address, becomes a number
 * @REDACT_HOW_COMM: name of a task
 * @REDACT_HOW_COMM_TEXT: the same, of variable size
 * @REDACT_HOW_LETTERS: letters of the kernel, such as RWS, stay
 * @REDACT_HOW_FILE: name of a file, of variable size
 * @REDACT_HOW_DEVICE: name that a driver has given, of variable size
 */
enum redact_how {
	REDACT_HOW_UNKNOWN,
	REDACT_HOW_ZERO,
	REDACT_HOW_NUMBER,
	REDACT_HOW_STATE,
	REDACT_HOW_ADDRESS,
	REDACT_HOW_COMM,
	REDACT_HOW_COMM_TEXT,
	REDACT_HOW_LETTERS,
	REDACT_HOW_FILE,
	REDACT_HOW_DEVICE,
};

/**
 * struct redact_field - a field of a tracepoint
 * @offset: in the data of a sample
 * @size: bytes there
 * @how: what becomes of it
 * @is_relative: of a field of variable size: its place is told from the end of this field
 */
struct redact_field {
	u16		offset;
	u16		size;
	enum redact_how	how;
	bool		is_relative;
};

/**
 * struct redact_format - a tracepoint
 * @id: what perf_event_attr::config has
 * @size: bytes of the fields, those of variable size not included
 * @fields: what becomes of them
 * @nr: number of these
 */
struct redact_format {
	u64			id;
	size_t			size;
	struct redact_field	*fields;
	size_t			nr;
};

/**
 * struct redact_formats - the tracepoints of a recording
 * @formats: they
 * @nr: number of these
 */
struct redact_formats {
	struct redact_format	*formats;
	size_t			nr;
};

int redact_formats__read(struct redact_formats *formats, const struct redact_words *w,
			 const void *data, size_t size, FILE *f);
const struct redact_format *redact_formats__find(const struct redact_formats *formats, u64 id);
void redact_formats__exit(struct redact_formats *formats);

size_t redact_format__put(const struct redact_format *format, const struct redact_words *w,
			  const void *data, size_t size, void *out, size_t room);

const char *redact_known__fields(const char *system, const char *name);
bool redact_known__system(const char *system);
enum redact_how redact_known__how(const char *fields, const char *name);

#endif /* __PERF_REDACT_FORMATS_H */
