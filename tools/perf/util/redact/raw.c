// SPDX-License-Identifier: GPL-2.0
/*
 * The data of samples of tracepoints
 *
 * They are built anew. It always has the size that its format tells,
 * and behind it, for each field of variable size, a token or an empty text: so the length of
 * a text is not told. Data without a format is left out.
 */
#include "formats.h"
#include "words.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <stdint.h>
#include <string.h>

/* A text of variable size is followed by zeros up to a multiple of this. */
#define TEXT_ALIGNMENT		8

struct raw {
	const struct redact_words	*w;
	const char			*in;
	size_t				in_size;
	char				*out;
	size_t				room;
	size_t				end;
};

static void put_letters(const struct raw *raw, const struct redact_field *field)
{
	static const char letters[] = "RWDFNSMAEPBZ-";

	for (size_t i = 0; i + 1 < field->size; i++) {
		char c = raw->in[field->offset + i];

		if (!c || !strchr(letters, c))
			break;
		raw->out[field->offset + i] = c;
	}
}

static void put_comm(const struct raw *raw, const struct redact_field *field)
{
	char text[REDACT_TEXT_MAX];
	size_t len = redact_words__put(raw->w, REDACT_COMM, raw->in + field->offset,
				       field->size, text);

	memcpy(raw->out + field->offset, text, min(len, (size_t)field->size - 1));
}

static void put_address(const struct raw *raw, const struct redact_field *field)
{
	u64 address;

	memcpy(&address, raw->in + field->offset, sizeof(address));
	address = redact_words__address(raw->w, address);
	memcpy(raw->out + field->offset, &address, sizeof(address));
}

/* The text that a field of variable size names, with its length; NULL if it has none */
static const char *find_text(const struct raw *raw, const struct redact_field *field,
			     size_t *len)
{
	size_t offset;
	u32 where;

	memcpy(&where, raw->in + field->offset, sizeof(where));
	offset = where & 0xffff;
	*len = where >> 16;
	if (field->is_relative)
		offset += field->offset + field->size;
	return offset <= raw->in_size && *len <= raw->in_size - offset ? raw->in + offset : NULL;
}

static enum redact_kind kind_of(const struct redact_field *field)
{
	switch (field->how) {
	case REDACT_HOW_COMM_TEXT:
		return REDACT_COMM;
	case REDACT_HOW_FILE:
		return REDACT_FILE;
	default:
		return REDACT_DEVICE;
	}
}

/* Return: false if there is no room. */
static bool put_text(struct raw *raw, const struct redact_field *field, bool is_there)
{
	const char *from = NULL;
	char text[REDACT_TEXT_MAX] = "";
	size_t len = 0, offset = raw->end, size;
	u32 where;

	if (is_there)
		from = find_text(raw, field, &len);
	if (from)
		len = redact_words__put(raw->w, kind_of(field), from, len, text);
	else
		len = 0;
	size = PERF_ALIGN(len + 1, TEXT_ALIGNMENT);
	if (size > raw->room - raw->end)
		return false;
	memset(raw->out + raw->end, 0, size);
	memcpy(raw->out + raw->end, text, len);
	raw->end += size;
	if (field->is_relative)
		offset -= field->offset + field->size;
	where = (len + 1) << 16 | offset;
	memcpy(raw->out + field->offset, &where, sizeof(where));
	return true;
}

/**
 * redact_format__put - write the data of a sample anew
 * @format: of its tracepoint
 * @w: the words
 * @data: the data
 * @size: its size
 * @out: where to write it
 * @room: bytes there
 *
 * Return: bytes that were written, or 0 if there is no room.
 */
size_t redact_format__put(const struct redact_format *format, const struct redact_words *w,
			  const void *data, size_t size, void *out, size_t room)
{
	struct raw raw = {
		.w		= w,
		.in		= data,
		.in_size	= size,
		.out		= out,
		.room		= min(room, (size_t)UINT16_MAX),
		.end		= format->size,
	};

	if (format->size > raw.room)
		return 0;
	memset(out, 0, format->size);
	for (size_t i = 0; i < format->nr; i++) {
		const struct redact_field *field = &format->fields[i];
		bool is_there = (size_t)field->offset + field->size <= size;

		switch (field->how) {
		case REDACT_HOW_COMM_TEXT:
		case REDACT_HOW_FILE:
		case REDACT_HOW_DEVICE:
			if (!put_text(&raw, field, is_there))
				return 0;
			break;
		case REDACT_HOW_NUMBER:
		case REDACT_HOW_STATE:
			if (is_there)
				memcpy(raw.out + field->offset, raw.in + field->offset,
				       field->size);
			break;
		case REDACT_HOW_ADDRESS:
			if (is_there)
				put_address(&raw, field);
			break;
		case REDACT_HOW_COMM:
			if (is_there)
				put_comm(&raw, field);
			break;
		case REDACT_HOW_LETTERS:
			if (is_there)
				put_letters(&raw, field);
			break;
		case REDACT_HOW_UNKNOWN:
		case REDACT_HOW_ZERO:
		default:
			break;
		}
	}
	return raw.end;
}
