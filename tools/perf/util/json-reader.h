/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_JSON_READER_H
#define __PERF_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct json_value - a value in a text
 * @text: where it begins
 * @len: bytes of it, without spaces around it
 */
struct json_value {
	const char	*text;
	size_t		len;
};

char *json__read_file(const char *path);
bool json__find(const char *text, const char *key, struct json_value *value);
bool json__next(const char *text, const char **pos, struct json_value *value);
bool json_value__is(const struct json_value *value, const char *literal);
bool json_value__is_number(const struct json_value *value);
char *json_value__strdup(const struct json_value *value);

#endif /* __PERF_JSON_READER_H */
