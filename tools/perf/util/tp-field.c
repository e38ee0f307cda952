// SPDX-License-Identifier: GPL-2.0
/*
 * Fields of the samples of a tracepoint.
 *
 * The format of a tracepoint and the data of its samples come from a file that may be
 * broken: each field is checked against the size of the data. libtraceevent does not do
 * this.
 */
#include "tp-field.h"

#include "evsel.h"
#include "sample.h"

#include <byteswap.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <string.h>
#include <traceevent/event-parse.h>

/**
 * tp_field__is_of - whether an event is a tracepoint
 * @evsel: the event
 * @system: of the tracepoint
 * @name: of the tracepoint; the user may have given the event another one
 */
bool tp_field__is_of(const struct evsel *evsel, const char *system, const char *name)
{
	const struct tep_event *tp = evsel->tp_format;

	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT && tp && tp->system && tp->name &&
	       !strcmp(tp->system, system) && !strcmp(tp->name, name);
}

static const struct tep_format_field *find_in(const struct tep_format_field *field,
					      const char *name)
{
	while (field && strcmp(field->name, name))
		field = field->next;
	return field;
}

/**
 * tp_field__find - a field of a tracepoint
 * @evsel: the tracepoint
 * @name: of the field, which may be one that all tracepoints have
 *
 * Return: the field, or NULL.
 */
const struct tep_format_field *tp_field__find(const struct evsel *evsel, const char *name)
{
	const struct tep_event *tp = evsel->tp_format;

	if (!tp)
		return NULL;
	return find_in(tp->format.fields, name) ?: find_in(tp->format.common_fields, name);
}

/* Does the data of a sample have these bytes? */
static bool has_bytes(const struct perf_sample *sample, u64 offset, u64 size)
{
	return sample->raw_data && offset <= sample->raw_size &&
	       size <= sample->raw_size - offset;
}

static bool read_number(const struct evsel *evsel, const struct perf_sample *sample,
			u64 offset, u64 size, u64 *number)
{
	const char *data = sample->raw_data;
	union {
		u8	v8;
		u16	v16;
		u32	v32;
		u64	v64;
	} v;

	if (!has_bytes(sample, offset, size))
		return false;
	switch (size) {
	case 1:
		memcpy(&v, data + offset, 1);
		*number = v.v8;
		return true;
	case 2:
		memcpy(&v, data + offset, 2);
		*number = evsel->needs_swap ? bswap_16(v.v16) : v.v16;
		return true;
	case 4:
		memcpy(&v, data + offset, 4);
		*number = evsel->needs_swap ? bswap_32(v.v32) : v.v32;
		return true;
	case 8:
		memcpy(&v, data + offset, 8);
		*number = evsel->needs_swap ? bswap_64(v.v64) : v.v64;
		return true;
	default:
		return false;
	}
}

/**
 * tp_field__number - the value of a field that is a number
 * @evsel: the tracepoint
 * @sample: its sample
 * @field: the field, or NULL
 * @number: set to the value, with its sign extended
 *
 * Return: false if the sample does not have it.
 */
bool tp_field__number(const struct evsel *evsel, const struct perf_sample *sample,
		      const struct tep_format_field *field, u64 *number)
{
	if (!field || field->offset < 0 || field->size < 0 ||
	    !read_number(evsel, sample, field->offset, field->size, number))
		return false;
	if (field->flags & TEP_FIELD_IS_SIGNED && field->size < 8)
		*number = (s64)(*number << (64 - 8 * field->size)) >> (64 - 8 * field->size);
	return true;
}

/**
 * tp_field__text - the value of a field that is a text
 * @evsel: the tracepoint
 * @sample: its sample
 * @field: the field, or NULL
 * @text: set to the value
 * @size: of @text, at least 1; a text that is longer is cut
 *
 * Return: false if the sample does not have it.
 */
bool tp_field__text(const struct evsel *evsel, const struct perf_sample *sample,
		    const struct tep_format_field *field, char *text, size_t size)
{
	u64 offset, len, where;

	if (!field || field->offset < 0 || field->size < 0)
		return false;
	offset = field->offset;
	len = field->size;
	if (field->flags & TEP_FIELD_IS_DYNAMIC) {
		if (!read_number(evsel, sample, offset, 4, &where))
			return false;
		offset = where & 0xffff;
		len = where >> 16;
		if (field->flags & TEP_FIELD_IS_RELATIVE)
			offset += field->offset + field->size;
	}
	if (!has_bytes(sample, offset, len))
		return false;
	len = min(len, (u64)size - 1);
	memcpy(text, (char *)sample->raw_data + offset, len);
	text[len] = '\0';
	return true;
}
