// SPDX-License-Identifier: GPL-2.0
/*
 * A sample is written anew
 *
 * Its parts come in the order of evsel__parse_sample(), whose fields these are:
 *
 *	id, task, time, CPU, period, counts, branches, weight, source of the data,
 *	transaction, cgroup, page sizes			stay
 *	call chain					what is no address of code becomes zeros
 *	addresses of data, virtual and physical		become zeros
 *	data of a tracepoint				see formats.c
 *	other raw data					become four zeros
 *	registers and stacks of tasks, AUX		are left out, also of sample_type
 *
 * Addresses of instructions make the shape of call graphs, and stay.
 */
#include "sample.h"
#include "code.h"
#include "events.h"
#include "formats.h"
#include "../base-api.h"

#include <perf/event.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <string.h>

/* Bytes of raw data that stand for data that is not known */
#define NOTHING		4

struct copy {
	const char	*in;
	size_t		left;
	char		*out;
	size_t		room;
	bool		is_bad;
};

static const void *take(struct copy *c, size_t size)
{
	const void *in = c->in;

	if (c->is_bad || size > c->left) {
		c->is_bad = true;
		return NULL;
	}
	c->in += size;
	c->left -= size;
	return in;
}

static void put(struct copy *c, const void *data, size_t size)
{
	if (c->is_bad || size > c->room) {
		c->is_bad = true;
		return;
	}
	memcpy(c->out, data, size);
	c->out += size;
	c->room -= size;
}

static u64 take_word(struct copy *c)
{
	const void *in = take(c, sizeof(u64));
	u64 word = 0;

	if (in)
		memcpy(&word, in, sizeof(word));
	return word;
}

static u64 copy_word(struct copy *c)
{
	u64 word = take_word(c);

	put(c, &word, sizeof(word));
	return word;
}

static void copy_words(struct copy *c, u64 nr)
{
	const void *in = NULL;

	if (nr > c->left / sizeof(u64))
		c->is_bad = true;
	else
		in = take(c, nr * sizeof(u64));
	if (in)
		put(c, in, nr * sizeof(u64));
}

static void skip(struct copy *c, u64 size)
{
	if (size > c->left)
		c->is_bad = true;
	else
		take(c, size);
}

static void hide_word(struct copy *c)
{
	u64 zero = 0;

	take(c, sizeof(zero));
	put(c, &zero, sizeof(zero));
}

static int nr_bits(u64 bits)
{
	return __builtin_popcountll(bits);
}

static void copy_read(struct copy *c, u64 read_format)
{
	u64 times = read_format & (PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING);
	u64 others = read_format & (PERF_FORMAT_ID | PERF_FORMAT_LOST);
	u64 nr = 1;

	if (read_format & PERF_FORMAT_GROUP)
		nr = copy_word(c);
	if (nr > c->left)
		c->is_bad = true;
	else
		copy_words(c, nr_bits(times) + nr * (1 + nr_bits(others)));
}

/**
 * redact_read__size - bytes that a read() of an event returns
 * @attr: of the event
 * @data: what it has returned
 * @room: bytes there
 *
 * Return: the bytes, or 0 if there are not as many.
 */
size_t redact_read__size(const struct perf_event_attr *attr, const void *data, size_t room)
{
	u64 format = attr->read_format, nr;
	size_t size;

	if (format & PERF_FORMAT_GROUP) {
		int each = 1 + nr_bits(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));
		int head = nr_bits(format) - each + 1;

		if (room < sizeof(nr))
			return 0;
		memcpy(&nr, data, sizeof(nr));
		if (nr > room / sizeof(u64))
			return 0;
		size = (head + nr * each) * sizeof(u64);
	} else {
		size = (1 + nr_bits(format)) * sizeof(u64);
	}
	return size <= room ? size : 0;
}

static void put_raw(struct copy *c, const struct redact_event *event,
		    const struct redact_words *w, const void *data, size_t size)
{
	char *head = c->out, *body = c->out + sizeof(u32);
	size_t put_size = NOTHING;
	u32 total;

	if (c->is_bad || c->room < sizeof(u32) + NOTHING) {
		c->is_bad = true;
		return;
	}
	if (event->format)
		put_size = redact_format__put(event->format, w, data, size, body,
					      c->room - sizeof(u32));
	else
		memset(body, 0, NOTHING);
	/* The size and the data end at a word. */
	total = PERF_ALIGN(put_size + sizeof(u32), sizeof(u64));
	if (!put_size || total > c->room) {
		c->is_bad = true;
		return;
	}
	memset(body + put_size, 0, total - sizeof(u32) - put_size);
	put_size = total - sizeof(u32);
	total = put_size;
	memcpy(head, &total, sizeof(total));
	c->out += sizeof(u32) + put_size;
	c->room -= sizeof(u32) + put_size;
}

static void copy_raw(struct copy *c, const struct redact_event *event,
		     const struct redact_words *w)
{
	const void *in = take(c, sizeof(u32));
	u32 size;

	if (!in)
		return;
	memcpy(&size, in, sizeof(size));
	in = take(c, size);
	if ((sizeof(size) + (u64)size) % sizeof(u64))
		c->is_bad = true;
	if (in)
		put_raw(c, event, w, in, size);
}

static void copy_branches(struct copy *c, u64 branch_type)
{
	u64 nr = copy_word(c);

	if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		copy_word(c);
	if (nr > c->left) {
		c->is_bad = true;
		return;
	}
	copy_words(c, nr * sizeof(struct perf_branch_entry) / sizeof(u64));
	if (branch_type & PERF_SAMPLE_BRANCH_COUNTERS)
		copy_words(c, nr);
}

/* The address of the instruction, which comes first or behind the id */
static u64 peek_ip(const struct copy *c, u64 type)
{
	size_t place = type & PERF_SAMPLE_IDENTIFIER ? sizeof(u64) : 0;
	u64 ip = 0;

	if (type & PERF_SAMPLE_IP && c->left >= place + sizeof(ip))
		memcpy(&ip, c->in + place, sizeof(ip));
	return ip;
}

/*
 * Addresses of user space are what a program has in its memory, see code.c. A chain does not
 * leave user space again, so what looks like another context there is such a word, too.
 *
 * If the user half is in a record of its own, the chain ends with a number of the kernel's that
 * leads to it.
 */
static void copy_chain(struct copy *c, const struct redact_code *code, u64 ip, bool is_of_user)
{
	bool is_of_kernel = false;
	u64 nr = copy_word(c);

	if (nr > c->left / sizeof(u64))
		c->is_bad = true;
	while (!c->is_bad && nr--) {
		u64 word = take_word(c);

		if (!is_of_user && word >= (u64)PERF_CONTEXT_MAX) {
			is_of_user = word == (u64)PERF_CONTEXT_USER;
			is_of_kernel = word == (u64)PERF_CONTEXT_KERNEL ||
				       word == (u64)PERF_CONTEXT_HV ||
				       (word == (u64)PERF_CONTEXT_USER_DEFERRED && nr == 1);
		} else if (!is_of_kernel && word != ip && !redact_code__has(code, word)) {
			word = 0;
		}
		put(c, &word, sizeof(word));
	}
}

static void skip_registers(struct copy *c, u64 mask)
{
	if (take_word(c))
		skip(c, nr_bits(mask) * sizeof(u64));
}

static void skip_stack(struct copy *c)
{
	u64 size = take_word(c);

	if (!size)
		return;
	skip(c, size);
	take_word(c);
}

static void copy_parts(struct copy *c, const struct redact_event *event,
		       const struct redact_words *w, const struct redact_code *code)
{
	const struct perf_event_attr *attr = &event->attr;
	u64 type = attr->sample_type;
	u64 before = type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			     PERF_SAMPLE_TIME);
	u64 behind = type & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
			     PERF_SAMPLE_PERIOD);
	u64 ip = peek_ip(c, type);

	copy_words(c, nr_bits(before));
	if (type & PERF_SAMPLE_ADDR)
		hide_word(c);
	copy_words(c, nr_bits(behind));
	if (type & PERF_SAMPLE_READ)
		copy_read(c, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		copy_chain(c, code, ip, false);
	if (type & PERF_SAMPLE_RAW)
		copy_raw(c, event, w);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		copy_branches(c, attr->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		skip_registers(c, attr->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		skip_stack(c);
	copy_words(c, !!(type & PERF_SAMPLE_WEIGHT_TYPE));
	copy_words(c, nr_bits(type & (PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION)));
	if (type & PERF_SAMPLE_REGS_INTR)
		skip_registers(c, attr->sample_regs_intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		hide_word(c);
	copy_words(c, nr_bits(type & (PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |
				      PERF_SAMPLE_CODE_PAGE_SIZE)));
	if (type & PERF_SAMPLE_AUX)
		skip(c, take_word(c));
}

/**
 * redact_deferred__put - write the user half of a call chain anew
 * @code: where programs had code
 * @body: what the record has behind its header
 * @size: bytes of it
 * @out: where to write it, with room for as many
 *
 * Return: bytes that were written, or 0 if the record is damaged.
 */
size_t redact_deferred__put(const struct redact_code *code, const void *body, size_t size,
			    void *out)
{
	struct copy c = { .in = body, .left = size, .out = out, .room = size };

	copy_word(&c);
	copy_chain(&c, code, 0, true);
	return c.is_bad ? 0 : c.out - (char *)out;
}

/**
 * redact_sample__put - write a sample anew
 * @event: of the sample
 * @w: the words
 * @code: where programs had code
 * @record: the sample
 * @size: its size
 * @out: where to write it, with room for %REDACT_RECORD_MAX bytes
 *
 * Return: bytes that were written, or 0 if the sample is damaged.
 */
size_t redact_sample__put(const struct redact_event *event, const struct redact_words *w,
			  const struct redact_code *code, const void *record, size_t size,
			  void *out)
{
	struct perf_event_header header;
	struct copy c = {
		.in	= record + sizeof(header),
		.left	= size - sizeof(header),
		.out	= out + sizeof(header),
		.room	= REDACT_RECORD_MAX - sizeof(header),
	};

	copy_parts(&c, event, w, code);
	if (c.is_bad)
		return 0;
	memcpy(&header, record, sizeof(header));
	header.size = c.out - (char *)out;
	memcpy(out, &header, sizeof(header));
	return header.size;
}
