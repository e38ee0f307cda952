// SPDX-License-Identifier: GPL-2.0
/*
 * Records are written anew, by their type
 *
 * A type that is in no list is left out. The lists say what there is to each type:
 *
 *	numbers, which stay			EXIT, FORK, LOST, SWITCH, ...
 *	numbers and a text behind them		MMAP, MMAP2, COMM, KSYMBOL, CGROUP
 *	numbers of variable size		SAMPLE, READ, ID_INDEX, CALLCHAIN_DEFERRED
 *	a build-id and the name of a file	BUILD_ID
 *
 * Newer kernels may have more numbers in a record: bytes behind the known ones are left out.
 * The sample_id at the end stays. A record that is too short for its type is left out, and
 * counted.
 */
#include "records.h"
#include "events.h"
#include "sample.h"
#include "words.h"
#include "../base-api.h"

#include <perf/event.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stddef.h>
#include <string.h>

#define NAME_ALIGNMENT	sizeof(u64)

/* A record that is written anew */
struct copy {
	const struct redact_words	*w;
	const struct redact_code	*code;
	const struct redact_event	*event;
	struct perf_event_header	header;
	const char			*in;
	char				*out;
};

/* Bytes between the header and the sample_id */
static size_t body_size(const struct copy *c)
{
	return c->header.size - sizeof(c->header) - (c->event ? c->event->layout.id_size : 0);
}

/* Write header and sample_id around a body of this size. Return: bytes of the record. */
static size_t finish(struct copy *c, size_t body)
{
	size_t id_size = c->event ? c->event->layout.id_size : 0;

	memcpy(c->out + sizeof(c->header) + body, c->in + c->header.size - id_size, id_size);
	c->header.size = sizeof(c->header) + body + id_size;
	memcpy(c->out, &c->header, sizeof(c->header));
	return c->header.size;
}

static size_t put_numbers(struct copy *c, size_t size)
{
	if (body_size(c) < size)
		return 0;
	memcpy(c->out + sizeof(c->header), c->in + sizeof(c->header), size);
	return finish(c, size);
}

static size_t put_text(struct copy *c, size_t size, enum redact_kind kind)
{
	size_t body = body_size(c), len;
	char text[REDACT_TEXT_MAX];

	if (body < size)
		return 0;
	memcpy(c->out + sizeof(c->header), c->in + sizeof(c->header), size);
	len = redact_words__put(c->w, kind, c->in + sizeof(c->header) + size, body - size, text);
	body = PERF_ALIGN(size + len + 1, NAME_ALIGNMENT);
	memset(c->out + sizeof(c->header) + size, 0, body - size);
	memcpy(c->out + sizeof(c->header) + size, text, len);
	return finish(c, body);
}

static bool is_of_kernel(u16 misc)
{
	u16 mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL;
}

static enum redact_kind kind_of_mapping(const struct copy *c)
{
	return is_of_kernel(c->header.misc) ? REDACT_MODULE : REDACT_FILE;
}

static size_t put_mmap(struct copy *c)
{
	return put_text(c, offsetof(struct perf_record_mmap, filename) - sizeof(c->header),
			kind_of_mapping(c));
}

static size_t put_mmap2(struct copy *c)
{
	size_t first = offsetof(struct perf_record_mmap2, maj);
	size_t last = offsetof(struct perf_record_mmap2, prot);
	bool has_id = c->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID, keeps;
	size_t size;

	keeps = has_id && c->w->keep & REDACT_KEEP_BUILD_IDS;
	if (has_id && !keeps)
		c->header.misc &= ~PERF_RECORD_MISC_MMAP_BUILD_ID;
	size = put_text(c, offsetof(struct perf_record_mmap2, filename) - sizeof(c->header),
			kind_of_mapping(c));
	/* The device and the inode of the file, or its build-id */
	if (size && !keeps)
		memset(c->out + first, 0, last - first);
	return size;
}

static size_t put_comm(struct copy *c)
{
	return put_text(c, offsetof(struct perf_record_comm, comm) - sizeof(c->header),
			REDACT_COMM);
}

static size_t put_ksymbol(struct copy *c)
{
	return put_text(c, offsetof(struct perf_record_ksymbol, name) - sizeof(c->header),
			REDACT_SYMBOL);
}

static size_t put_cgroup(struct copy *c)
{
	return put_text(c, offsetof(struct perf_record_cgroup, path) - sizeof(c->header),
			REDACT_CGROUP);
}

static size_t put_sample(struct copy *c)
{
	return redact_sample__put(c->event, c->w, c->code, c->in, c->header.size, c->out);
}

static size_t put_callchain_deferred(struct copy *c)
{
	size_t size = redact_deferred__put(c->code, c->in + sizeof(c->header), body_size(c),
					   c->out + sizeof(c->header));

	return size ? finish(c, size) : 0;
}

static size_t put_read(struct copy *c)
{
	/* pid and tid come first. */
	size_t start = 2 * sizeof(u32), size;

	if (body_size(c) < start)
		return 0;
	size = redact_read__size(&c->event->attr, c->in + sizeof(c->header) + start,
				 body_size(c) - start);
	return size ? put_numbers(c, start + size) : 0;
}

static size_t put_id_index(struct copy *c)
{
	size_t room = body_size(c);
	u64 nr;

	if (room < sizeof(nr))
		return 0;
	memcpy(&nr, c->in + sizeof(c->header), sizeof(nr));
	room -= sizeof(nr);
	if (nr > room / sizeof(struct id_index_entry))
		return 0;
	return put_numbers(c, sizeof(nr) + nr * sizeof(struct id_index_entry));
}

static size_t put_build_id(struct copy *c)
{
	return redact_build_id__put(c->w, c->in, c->header.size, c->out);
}

/**
 * redact_build_id__put - write the build-id of a file anew
 * @w: the words
 * @record: PERF_RECORD_HEADER_BUILD_ID, or an entry of HEADER_BUILD_ID
 * @size: its size, which is that in its header
 * @out: where to write it
 *
 * Return: bytes that were written; 0 if the build-id is left out, or the record is damaged.
 */
size_t redact_build_id__put(const struct redact_words *w, const void *record, size_t size,
			    void *out)
{
	static const char *const kernels[] = { "[kernel.kallsyms]", "[guest.kernel.kallsyms]" };
	struct perf_record_header_build_id b;
	char text[REDACT_TEXT_MAX];
	const char *name = record + sizeof(b);
	bool is_kernel = false;
	size_t len;

	if (size <= sizeof(b))
		return 0;
	memcpy(&b, record, sizeof(b));
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		is_kernel |= strnlen(name, size - sizeof(b)) == strlen(kernels[i]) &&
			     strstarts(name, kernels[i]);
	if (!is_kernel && !(w->keep & REDACT_KEEP_BUILD_IDS))
		return 0;
	len = redact_words__put(w, is_of_kernel(b.header.misc) ? REDACT_MODULE : REDACT_FILE,
				name, size - sizeof(b), text);
	b.reserved1__ = 0;
	b.reserved2__ = 0;
	b.header.size = PERF_ALIGN(sizeof(b) + len + 1, NAME_ALIGNMENT);
	memset(out, 0, b.header.size);
	memcpy(out, &b, sizeof(b));
	memcpy(out + sizeof(b), text, len);
	return b.header.size;
}

/* What there is to a type: a function, or the bytes of its numbers. */
struct rule {
	const char	*name;
	size_t		(*put)(struct copy *c);
	size_t		numbers;
	bool		is_written;
};

#define NUMBERS(what, bytes)	{ .name = what, .numbers = bytes, .is_written = true }
#define FUNCTION(what, how)	{ .name = what, .put = how, .is_written = true }
#define OMITTED(what)		{ .name = what }

static const struct rule rules[REDACT_TYPES] = {
	[PERF_RECORD_MMAP]		= FUNCTION("MMAP", put_mmap),
	[PERF_RECORD_LOST]		= NUMBERS("LOST", 16),
	[PERF_RECORD_COMM]		= FUNCTION("COMM", put_comm),
	[PERF_RECORD_EXIT]		= NUMBERS("EXIT", 24),
	[PERF_RECORD_THROTTLE]		= NUMBERS("THROTTLE", 24),
	[PERF_RECORD_UNTHROTTLE]	= NUMBERS("UNTHROTTLE", 24),
	[PERF_RECORD_FORK]		= NUMBERS("FORK", 24),
	[PERF_RECORD_READ]		= FUNCTION("READ", put_read),
	[PERF_RECORD_SAMPLE]		= FUNCTION("SAMPLE", put_sample),
	[PERF_RECORD_MMAP2]		= FUNCTION("MMAP2", put_mmap2),
	[PERF_RECORD_AUX]		= OMITTED("AUX"),
	[PERF_RECORD_ITRACE_START]	= OMITTED("ITRACE_START"),
	[PERF_RECORD_LOST_SAMPLES]	= NUMBERS("LOST_SAMPLES", 8),
	[PERF_RECORD_SWITCH]		= NUMBERS("SWITCH", 0),
	[PERF_RECORD_SWITCH_CPU_WIDE]	= NUMBERS("SWITCH_CPU_WIDE", 8),
	[PERF_RECORD_NAMESPACES]	= OMITTED("NAMESPACES"),
	[PERF_RECORD_KSYMBOL]		= FUNCTION("KSYMBOL", put_ksymbol),
	[PERF_RECORD_BPF_EVENT]		= OMITTED("BPF_EVENT"),
	[PERF_RECORD_CGROUP]		= FUNCTION("CGROUP", put_cgroup),
	[PERF_RECORD_TEXT_POKE]		= OMITTED("TEXT_POKE"),
	[PERF_RECORD_AUX_OUTPUT_HW_ID]	= OMITTED("AUX_OUTPUT_HW_ID"),
	[PERF_RECORD_CALLCHAIN_DEFERRED] = FUNCTION("CALLCHAIN_DEFERRED", put_callchain_deferred),
	[PERF_RECORD_HEADER_BUILD_ID]	= FUNCTION("BUILD_ID", put_build_id),
	[PERF_RECORD_FINISHED_ROUND]	= NUMBERS("FINISHED_ROUND", 0),
	[PERF_RECORD_ID_INDEX]		= FUNCTION("ID_INDEX", put_id_index),
	[PERF_RECORD_AUXTRACE_INFO]	= OMITTED("AUXTRACE_INFO"),
	[PERF_RECORD_AUXTRACE]		= OMITTED("AUXTRACE"),
	[PERF_RECORD_AUXTRACE_ERROR]	= OMITTED("AUXTRACE_ERROR"),
	[PERF_RECORD_THREAD_MAP]	= OMITTED("THREAD_MAP"),
	[PERF_RECORD_CPU_MAP]		= OMITTED("CPU_MAP"),
	[PERF_RECORD_STAT_CONFIG]	= OMITTED("STAT_CONFIG"),
	[PERF_RECORD_STAT]		= OMITTED("STAT"),
	[PERF_RECORD_STAT_ROUND]	= OMITTED("STAT_ROUND"),
	[PERF_RECORD_EVENT_UPDATE]	= OMITTED("EVENT_UPDATE"),
	[PERF_RECORD_TIME_CONV]		= NUMBERS("TIME_CONV", 24),
	[PERF_RECORD_FINISHED_INIT]	= NUMBERS("FINISHED_INIT", 0),
};

/**
 * redact_record__name - what a type of records is called
 * @type: the type
 *
 * Return: the name, or NULL if it is not known.
 */
const char *redact_record__name(unsigned int type)
{
	return type < REDACT_TYPES ? rules[type].name : NULL;
}

static bool has_stack(const struct redact_event *event)
{
	return event->attr.sample_type & REDACT_SAMPLE_KNOWN & ~REDACT_SAMPLE_WRITTEN;
}

static size_t put_record(struct copy *c, const struct rule *rule)
{
	if (c->event && c->header.size < sizeof(c->header) + c->event->layout.id_size)
		return 0;
	return rule->put ? rule->put(c) : put_numbers(c, rule->numbers);
}

/**
 * redact_record__put - write a record anew
 * @events: of the recording
 * @w: the words
 * @code: where programs had code
 * @counts: of what became of the records
 * @record: the record, of at least the size of its header
 * @out: where to write it, with room for twice %REDACT_RECORD_MAX bytes
 *
 * Return: bytes that were written; 0 if it is left out.
 */
size_t redact_record__put(const struct redact_events *events, const struct redact_words *w,
			  const struct redact_code *code, struct redact_counts *counts,
			  const void *record, void *out)
{
	struct copy c = { .w = w, .code = code, .in = record, .out = out };
	const struct rule *rule;
	size_t size;

	memcpy(&c.header, record, sizeof(c.header));
	if (c.header.type >= REDACT_TYPES || !rules[c.header.type].is_written) {
		counts->omitted[redact_record__name(c.header.type) ? c.header.type : 0]++;
		return 0;
	}
	rule = &rules[c.header.type];
	/* Records of perf have no sample_id. */
	if (c.header.type < PERF_RECORD_USER_TYPE_START) {
		c.event = redact_events__find(events, &c.header, record);
		if (!c.event) {
			counts->homeless++;
			return 0;
		}
	}
	size = put_record(&c, rule);
	if (!size && c.header.type == PERF_RECORD_HEADER_BUILD_ID) {
		counts->omitted[c.header.type]++;
		return 0;
	}
	if (!size || size > REDACT_RECORD_MAX) {
		counts->damaged++;
		return 0;
	}
	counts->written++;
	if (c.header.type == PERF_RECORD_SAMPLE) {
		counts->samples++;
		counts->stacks += has_stack(c.event);
	}
	return size;
}
