// SPDX-License-Identifier: GPL-2.0
/*
 * Write JSON to a stream, member by member
 *
 *	json_writer__init(&w, stdout);
 *	json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
 *	json_writer__string(&w, "name", name);
 *	json_writer__number(&w, "events", nr);
 *	json_writer__end(&w);
 *
 * writes {"name": "NAME", "events": 3}. A key is written as it is and belongs to a member of
 * an object; elements of an array have none. Layout is the caller's choice, as people and
 * grep read some of the files. Errors are those of the stream.
 *
 * JSON is UTF-8, the names of files are any bytes: what is no character of UTF-8 is
 * written as U+FFFD, byte by byte.
 */
#include "json-writer.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <assert.h>
#include <inttypes.h>

/* Bytes of the character that @str begins with; 0 if it is none. */
static int utf8_len(const char *str)
{
	static const u32 least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)str;
	int len = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : 4;
	u32 c = *s & (0x7f >> len);

	if (len < 2)
		return len;
	for (int i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* Not longer than need be, no half of a pair, nothing beyond Unicode. */
	if (c < least[len] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff || *s >= 0xf8)
		return 0;
	return len;
}

/**
 * json_writer__put_utf8 - write one character
 * @f: where
 * @str: begins with it, and is not empty
 *
 * As it is, or as U+FFFD if it is none.
 *
 * Return: how many bytes of @str that were.
 */
int json_writer__put_utf8(FILE *f, const char *str)
{
	int len = utf8_len(str);

	if (!len) {
		fputs("\xef\xbf\xbd", f);
		return 1;
	}
	fprintf(f, "%.*s", len, str);
	return len;
}

static void put_string(FILE *f, const char *str)
{
	fputc('"', f);
	while (*str) {
		unsigned char c = *str;

		if (c == '"' || c == '\\') {
			fprintf(f, "\\%c", c);
			str++;
		} else if (c < ' ' || c == 0x7f) {
			fprintf(f, "\\u%04x", c);
			str++;
		} else {
			str += json_writer__put_utf8(f, str);
		}
	}
	fputc('"', f);
}

static void new_line(struct json_writer *w)
{
	fprintf(w->f, "\n%*s", 2 * w->lines, "");
}

/* The text before a value. */
static void begin_member(struct json_writer *w, const char *key)
{
	if (w->depth) {
		typeof(w->levels[0]) *level = &w->levels[w->depth - 1];

		if (level->has_member)
			fputc(',', w->f);
		if (level->style == JSON_STYLE__LINES)
			new_line(w);
		else if (level->has_member || level->style == JSON_STYLE__PADDED)
			fputc(' ', w->f);
		level->has_member = true;
	}
	if (key)
		fprintf(w->f, "\"%s\": ", key);
}

static void begin_level(struct json_writer *w, const char *key, enum json_style style,
			const char *ends)
{
	assert(w->depth < JSON_WRITER__MAX_DEPTH);
	begin_member(w, key);
	fputc(ends[0], w->f);
	w->levels[w->depth].style = style;
	w->levels[w->depth].end = ends[1];
	w->levels[w->depth].has_member = false;
	w->depth++;
	w->lines += style == JSON_STYLE__LINES;
}

/**
 * json_writer__init - begin a document
 * @w: the writer
 * @f: where to write it
 */
void json_writer__init(struct json_writer *w, FILE *f)
{
	w->f = f;
	w->depth = 0;
	w->lines = 0;
}

/**
 * json_writer__begin_object - begin an object
 * @w: the writer
 * @key: its key, or NULL in an array and at the top
 * @style: how its members are laid out
 *
 * Values that are written next are its members, until json_writer__end().
 */
void json_writer__begin_object(struct json_writer *w, const char *key, enum json_style style)
{
	begin_level(w, key, style, "{}");
}

/**
 * json_writer__begin_array - begin an array
 * @w: the writer
 * @key: its key, or NULL in an array and at the top
 * @style: how its elements are laid out
 */
void json_writer__begin_array(struct json_writer *w, const char *key, enum json_style style)
{
	begin_level(w, key, style, "[]");
}

/**
 * json_writer__end - end the object or the array that was begun last
 * @w: the writer
 *
 * The last one ends the document, and the line.
 */
void json_writer__end(struct json_writer *w)
{
	typeof(w->levels[0]) *level = &w->levels[--w->depth];

	w->lines -= level->style == JSON_STYLE__LINES;
	if (level->has_member && level->style == JSON_STYLE__LINES)
		new_line(w);
	else if (level->has_member && level->style == JSON_STYLE__PADDED)
		fputc(' ', w->f);
	fputc(level->end, w->f);
	if (!w->depth)
		fputc('\n', w->f);
}

/**
 * json_writer__string - write a string
 * @w: the writer
 * @key: its key, or NULL
 * @value: the string, which need not be UTF-8; NULL is written as null
 */
void json_writer__string(struct json_writer *w, const char *key, const char *value)
{
	begin_member(w, key);
	if (value)
		put_string(w->f, value);
	else
		fputs("null", w->f);
}

/**
 * json_writer__known - write a string, or nothing
 * @w: the writer
 * @key: its key
 * @value: the string; NULL: there is no such member
 */
void json_writer__known(struct json_writer *w, const char *key, const char *value)
{
	if (value)
		json_writer__string(w, key, value);
}

void json_writer__number(struct json_writer *w, const char *key, u64 value)
{
	begin_member(w, key);
	fprintf(w->f, "%" PRIu64, value);
}

void json_writer__signed(struct json_writer *w, const char *key, s64 value)
{
	begin_member(w, key);
	fprintf(w->f, "%" PRId64, value);
}

/**
 * json_writer__seconds - write a time in seconds
 * @w: the writer
 * @key: its key, or NULL
 * @ns: the time in nanoseconds
 * @digits: behind the point, at most 9; the rest is cut off
 */
void json_writer__seconds(struct json_writer *w, const char *key, u64 ns, int digits)
{
	u64 fraction = ns % NSEC_PER_SEC;

	for (int i = digits; i < 9; i++)
		fraction /= 10;
	begin_member(w, key);
	fprintf(w->f, "%" PRIu64 ".%0*" PRIu64, (u64)(ns / NSEC_PER_SEC), digits, fraction);
}

/**
 * json_writer__bool - write true or false
 * @w: the writer
 * @key: its key, or NULL
 * @value: which
 */
void json_writer__bool(struct json_writer *w, const char *key, bool value)
{
	json_writer__literal(w, key, value ? "true" : "false");
}

/**
 * json_writer__literal - write a value that is JSON already
 * @w: the writer
 * @key: its key, or NULL
 * @value: such as a number in text; NULL is written as null
 */
void json_writer__literal(struct json_writer *w, const char *key, const char *value)
{
	begin_member(w, key);
	fputs(value ?: "null", w->f);
}
