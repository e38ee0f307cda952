// SPDX-License-Identifier: GPL-2.0
/*
 * Formats of the tracepoints of a recording
 *
 * The data of a tracepoint can be read only with its format. The notes may have it, if user
 * space has put it there, or the running kernel, if it is the same build. perf does not open a
 * file in which the format of any tracepoint is missing. Where it is not known, a format is
 * made up that has only the fields that all tracepoints have. So the records can be read and
 * counted, without their data.
 *
 * The formats are composed anew, as of perf.data:
 *
 *	magic "tracing" version | byte order, size of a long, page size
 *	"header_page" size text | "header_event" size text
 *	number of formats of ftrace: 0
 *	number of subsystems; for each: name, number of events; for each: size text
 *	size of symbols: 0 | size of formats of printk: 0 | size of names of tasks: 0
 *
 * Each event is written as a subsystem of its own.
 */
#include "formats.h"
#include "recording.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC		"\x17\x08\x44tracing"

/* perf takes the size of a long from it. */
#define HEADER_PAGE	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"	\
			"\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"	\
			"\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:1;\n"

#define FIELD(type, offset, size, is_signed)						\
	"\tfield:" type ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #is_signed ";\n"

#define MADE_UP "name: %s\nID: %" PRIu64 "\nformat:\n"					\
		FIELD("unsigned short common_type", 0, 2, 0)				\
		FIELD("unsigned char common_flags", 2, 1, 0)				\
		FIELD("unsigned char common_preempt_count", 3, 1, 0)			\
		FIELD("int common_pid", 4, 4, 1)					\
		"\n\nprint fmt: \"(format unknown)\"\n"

/* SUBSYS:EVENT, with the characters of C names. Return: the colon, or NULL. */
static const char *find_colon(const char *name)
{
	const char *colon = strchr(name, ':');

	for (const char *p = name; *p; p++) {
		if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-' && p != colon)
			return NULL;
	}
	return colon != name && colon && colon[1] ? colon : NULL;
}

/* @text: NUL-terminated */
static bool is_format_of(const char *text, const struct blackbox_event *event)
{
	const char *id = strstr(text, "\nID: ");

	for (const char *p = text; *p; p++) {
		if (!isprint((unsigned char)*p) && *p != '\n' && *p != '\t')
			return false;
	}
	return id && strtoull(id + 5, NULL, 10) == event->attr.config;
}

/* Formats in the notes */

struct cursor {
	const char	*pos;
	size_t		left;
};

static const char *take(struct cursor *c, u64 size)
{
	const char *p = c->pos;

	if (size > c->left)
		return NULL;
	c->pos += size;
	c->left -= size;
	return p;
}

static bool take_number(struct cursor *c, void *number, size_t size)
{
	const char *p = take(c, size);

	if (p)
		memcpy(number, p, size);
	return p;
}

static bool take_string(struct cursor *c)
{
	const char *end = memchr(c->pos, '\0', c->left);

	return end && take(c, end + 1 - c->pos);
}

static bool skip_sized(struct cursor *c)
{
	u64 size;

	return take_number(c, &size, sizeof(size)) && take(c, size);
}

/* Up to the number of subsystems */
static bool skip_head(struct cursor *c)
{
	const char *magic = take(c, sizeof(MAGIC) - 1);
	u32 nr;

	if (!magic || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) || !take_string(c) ||
	    !take(c, 2 + sizeof(u32)) || !take_string(c) || !skip_sized(c) ||
	    !take_string(c) || !skip_sized(c) || !take_number(c, &nr, sizeof(nr)))
		return false;
	while (nr--) {
		if (!skip_sized(c))
			return false;
	}
	return true;
}

static char *find_in_notes(const struct blackbox_recording *r, const struct blackbox_event *event,
			   size_t *size)
{
	struct cursor c = { .pos = r->notes_formats, .left = r->notes_formats_size };
	u32 systems, events;
	const char *p;
	char *text;
	u64 len;

	if (!c.pos || !skip_head(&c) || !take_number(&c, &systems, sizeof(systems)))
		return NULL;
	while (systems-- && take_string(&c) && take_number(&c, &events, sizeof(events))) {
		while (events--) {
			if (!take_number(&c, &len, sizeof(len)))
				return NULL;
			p = take(&c, len);
			text = p ? strndup(p, len) : NULL;
			if (!text)
				return NULL;
			*size = strlen(text);
			if (is_format_of(text, event))
				return text;
			free(text);
		}
	}
	return NULL;
}

/* All formats */

static void put_u64(FILE *f, u64 value)
{
	fwrite(&value, 1, sizeof(value), f);
}

static void put_u32(FILE *f, u32 value)
{
	fwrite(&value, 1, sizeof(value), f);
}

static void put_event(struct blackbox_recording *r, const struct blackbox_event *event,
		      blackbox_format_t read, FILE *f)
{
	const char *colon = find_colon(event->name);
	size_t size = 0;
	char *text = find_in_notes(r, event, &size);

	if (!text && colon && read)
		text = read(event, &size);
	if (text && !is_format_of(text, event))
		zfree(&text);
	if (!text) {
		char name[32];

		r->formats_unknown++;
		scnprintf(name, sizeof(name), "tracepoint_%" PRIu64, (u64)event->attr.config);
		if (asprintf(&text, MADE_UP, colon ? colon + 1 : name, (u64)event->attr.config) < 0)
			text = NULL;
		size = text ? strlen(text) : 0;
	}
	if (colon)
		fwrite(event->name, 1, colon - event->name, f);
	else
		fputs("unknown", f);
	fputc('\0', f);
	put_u32(f, 1);
	put_u64(f, size);
	if (text)
		fwrite(text, 1, size, f);
	free(text);
}

static void put_head(FILE *f, const struct perf_blackbox_super *super)
{
	u32 header = sizeof(u64) + super->long_size;
	const u16 one = 1;
	char page[512];

	scnprintf(page, sizeof(page), HEADER_PAGE, super->long_size, header,
		  super->page_size - header);
	fwrite(MAGIC, 1, sizeof(MAGIC) - 1, f);
	fwrite("0.6", 1, sizeof("0.6"), f);
	fputc(!*(const u8 *)&one, f);
	fputc(super->long_size, f);
	put_u32(f, super->page_size);
	fwrite("header_page", 1, sizeof("header_page"), f);
	put_u64(f, strlen(page));
	fputs(page, f);
	fwrite("header_event", 1, sizeof("header_event"), f);
	put_u64(f, 0);
	put_u32(f, 0);
}

static bool is_tracepoint(const struct blackbox_group *group)
{
	return group->events[0]->attr.type == PERF_TYPE_TRACEPOINT;
}

/**
 * blackbox_formats__make - make the formats of all tracepoints
 * @r: the recording
 * @read: asks the running kernel, if it is the same; else NULL
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_formats__make(struct blackbox_recording *r, blackbox_format_t read)
{
	size_t nr = 0;
	FILE *f;
	int err;

	for (size_t i = 0; i < r->nr_groups; i++)
		nr += is_tracepoint(&r->groups[i]);
	if (!nr)
		return 0;
	f = open_memstream(&r->formats, &r->formats_size);
	if (!f)
		return -ENOMEM;
	put_head(f, &r->session->image->super);
	put_u32(f, nr);
	for (size_t i = 0; i < r->nr_groups; i++) {
		if (is_tracepoint(&r->groups[i]))
			put_event(r, r->groups[i].events[0], read, f);
	}
	put_u32(f, 0);
	put_u32(f, 0);
	put_u64(f, 0);
	err = ferror(f) ? -ENOMEM : 0;
	return fclose(f) ? -ENOMEM : err;
}
