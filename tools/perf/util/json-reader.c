// SPDX-License-Identifier: GPL-2.0
/*
 * Find a member of a JSON object in an untrusted text
 *
 * The texts are manifests, which users edit, and answers on sockets, which any process can
 * give. There is no tree: a member is looked up by a scan of the text, in linear time and
 * without memory. A value ends where its object does, or at a comma outside of strings and
 * of arrays and objects in it. What is between is not checked until it is used: a value
 * that is not JSON has no type. The others can be read all the same.
 */
#include "json-reader.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/**
 * json__read_file - read a file
 * @path: its name
 *
 * Return: the text up to its end or a NUL, for free(); NULL with errno set if it cannot be
 * read.
 */
char *json__read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	int err = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &room, '\0', f) < 0) {
		err = feof(f) ? ENODATA : errno;
		free(text);
		text = NULL;
	}
	fclose(f);
	errno = err;
	return text;
}

/* The position after the string that begins at @p; NULL if it does not end. */
static const char *skip_string(const char *p)
{
	while (*++p != '"') {
		if (*p == '\\')
			p++;
		if (!*p)
			return NULL;
	}
	return p + 1;
}

/* The end of the value that begins at @p: a comma, the end of the object or of the text. */
static const char *skip_value(const char *p)
{
	size_t depth = 0;

	while (*p) {
		const char *end;

		if (!depth && (*p == ',' || *p == '}' || *p == ']'))
			break;
		if (*p == '{' || *p == '[')
			depth++;
		else if (*p == '}' || *p == ']')
			depth--;
		end = *p == '"' ? skip_string(p) : p + 1;
		if (!end)
			return p + strlen(p);
		p = end;
	}
	return p;
}

/**
 * json__find - find a member of an object
 * @text: the object
 * @key: of the member; one that is written with escapes is not found
 * @value: where to store the value, which is part of @text
 *
 * Of several with that key the first one is taken.
 *
 * Return: whether there is one.
 */
bool json__find(const char *text, const char *key, struct json_value *value)
{
	size_t key_len = strlen(key);
	const char *p = skip_spaces(text);

	if (*p != '{')
		return false;
	do {
		const char *name = skip_spaces(p + 1), *end, *start;

		end = *name == '"' ? skip_string(name) : NULL;
		if (!end)
			return false;
		start = skip_spaces(end);
		if (*start != ':')
			return false;
		start = skip_spaces(start + 1);
		p = skip_value(start);
		if ((size_t)(end - name) == key_len + 2 && !memcmp(name + 1, key, key_len)) {
			value->text = start;
			value->len = p - start;
			while (value->len && isspace(start[value->len - 1]))
				value->len--;
			return true;
		}
	} while (*p == ',');
	return false;
}

/**
 * json__next - walk over the elements of an array
 * @text: the array
 * @pos: where the walk is; NULL before the first element
 * @value: where to store the next element, which is part of @text
 *
 * Return: whether there is one.
 */
bool json__next(const char *text, const char **pos, struct json_value *value)
{
	const char *start = *pos ?: skip_spaces(text);

	if (*start != (*pos ? ',' : '['))
		return false;
	start = skip_spaces(start + 1);
	*pos = skip_value(start);
	value->text = start;
	value->len = *pos - start;
	while (value->len && isspace(start[value->len - 1]))
		value->len--;
	return value->len;
}

/**
 * json_value__is - compare with a literal
 * @value: the value
 * @literal: such as "true"
 */
bool json_value__is(const struct json_value *value, const char *literal)
{
	return value->len == strlen(literal) && !memcmp(value->text, literal, value->len);
}

static size_t nr_digits(const char *text, size_t len)
{
	size_t nr = 0;

	while (nr < len && isdigit(text[nr]))
		nr++;
	return nr;
}

/**
 * json_value__is_number - it is a number without sign and exponent
 * @value: the value
 *
 * perf writes no others.
 */
bool json_value__is_number(const struct json_value *value)
{
	size_t whole = nr_digits(value->text, value->len), part;

	if (!whole || (whole > 1 && *value->text == '0'))
		return false;
	if (whole == value->len)
		return true;
	part = nr_digits(value->text + whole + 1, value->len - whole - 1);
	return value->text[whole] == '.' && part && whole + 1 + part == value->len;
}

static int put_utf8(char *to, u32 c)
{
	int len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (len == 1) {
		*to = c;
		return 1;
	}
	for (int i = len - 1; i > 0; i--) {
		to[i] = 0x80 | (c & 0x3f);
		c >>= 6;
	}
	*to = (0xf00 >> len & 0xff) | c;
	return len;
}

/* The four digits behind a \u; negative: they are none. */
static int get_hex(const char *text)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = tolower(text[i]);

		if (!isxdigit(c))
			return -1;
		value = value << 4 | (isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	return value;
}

/* The character that the escape stands for; *@text goes behind it. */
static u32 get_escape(const char **text)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter = *text + 1, *found = *letter ? strchr(letters, *letter) : NULL;
	int high = -1, low;

	if (found) {
		*text += 2;
		return meanings[found - letters];
	}
	if (*letter == 'u')
		high = get_hex(letter + 1);
	if (high <= 0) {
		*text += high ? 1 : 6;
		return '?';
	}
	*text += 6;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	/* Halves of a pair */
	low = high < 0xdc00 && strstarts(*text, "\\u") ? get_hex(*text + 2) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return '?';
	*text += 6;
	return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

/**
 * json_value__strdup - what a string says
 * @value: the value
 *
 * Bytes are not checked to be UTF-8. What is no escape, or no character of a C string, is
 * a question mark.
 *
 * Return: the string, for free(); NULL if it is none, or without memory.
 */
char *json_value__strdup(const struct json_value *value)
{
	const char *from = value->text, *end;
	char *str, *to;

	if (!value->len || *from != '"')
		return NULL;
	end = skip_string(from);
	str = end ? malloc(end - from) : NULL;
	if (!str)
		return NULL;

	/* An escape is never shorter than what it stands for. */
	to = str;
	from++;
	while (*from != '"') {
		if (*from == '\\')
			to += put_utf8(to, get_escape(&from));
		else
			*to++ = *from++;
	}
	*to = '\0';
	return str;
}
