// SPDX-License-Identifier: GPL-2.0
/*
 * Check a record of a dead machine
 *
 * Memory may have been damaged when the machine died, and a buffer may be cut at the wrong
 * place. A record is taken only if everything in it that can be checked is right: size and
 * alignment, type, the id of an event that writes to this buffer, the CPU, and that all
 * lengths and strings end within the record. Readers of perf.data rely on the latter.
 *
 * The kernel derives the size of a sample from its fields. A sample therefore must end with
 * its last field, except if it has a branch stack, whose size depends on the hardware.
 */
#include "record.h"
#include "../base-api.h"
#include "../build-id.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <string.h>

static const char *const drop_names[BLACKBOX_DROP_MAX] = {
	[BLACKBOX_OK]			= "none",
	[BLACKBOX_DROP_IN_FLIGHT]	= "in_flight",
	[BLACKBOX_DROP_OVERWRITTEN]	= "overwritten",
	[BLACKBOX_DROP_PARTIAL]		= "partial",
	[BLACKBOX_DROP_SIZE]		= "size",
	[BLACKBOX_DROP_TYPE]		= "type",
	[BLACKBOX_DROP_ID]		= "id",
	[BLACKBOX_DROP_CPU]		= "cpu",
	[BLACKBOX_DROP_TIME]		= "time",
	[BLACKBOX_DROP_BODY]		= "body",
};

/* The name of a reason in the manifest */
const char *blackbox_drop__name(enum blackbox_drop drop)
{
	return drop_names[drop];
}

#define HEADER	sizeof(struct perf_event_header)

static const struct blackbox_shape shapes[PERF_RECORD_CALLCHAIN_DEFERRED + 1] = {
	[PERF_RECORD_MMAP]		= { HEADER + 32, true },
	[PERF_RECORD_LOST]		= { HEADER + 16 },
	[PERF_RECORD_COMM]		= { HEADER + 8, true },
	[PERF_RECORD_EXIT]		= { HEADER + 24 },
	[PERF_RECORD_THROTTLE]		= { HEADER + 24 },
	[PERF_RECORD_UNTHROTTLE]	= { HEADER + 24 },
	[PERF_RECORD_FORK]		= { HEADER + 24 },
	[PERF_RECORD_READ]		= { HEADER + 16 },
	[PERF_RECORD_MMAP2]		= { HEADER + 64, true },
	[PERF_RECORD_AUX]		= { HEADER + 24 },
	[PERF_RECORD_ITRACE_START]	= { HEADER + 8 },
	[PERF_RECORD_LOST_SAMPLES]	= { HEADER + 8 },
	[PERF_RECORD_SWITCH]		= { HEADER },
	[PERF_RECORD_SWITCH_CPU_WIDE]	= { HEADER + 8 },
	[PERF_RECORD_NAMESPACES]	= { HEADER + 16 },
	[PERF_RECORD_KSYMBOL]		= { HEADER + 16, true },
	[PERF_RECORD_BPF_EVENT]		= { HEADER + 16 },
	[PERF_RECORD_CGROUP]		= { HEADER + 8, true },
	[PERF_RECORD_TEXT_POKE]		= { HEADER + 12 },
	[PERF_RECORD_AUX_OUTPUT_HW_ID]	= { HEADER + 8 },
	[PERF_RECORD_CALLCHAIN_DEFERRED] = { HEADER + 16 },
};

/**
 * blackbox_record__shape - find the fields of a record other than a sample
 * @type: its type
 *
 * Return: the fields, or NULL if the kernel writes no such records.
 */
const struct blackbox_shape *blackbox_record__shape(u32 type)
{
	return type < ARRAY_SIZE(shapes) && shapes[type].size ? &shapes[type] : NULL;
}

/**
 * blackbox_event__has_id - whether records of an event have its id
 * @event: the event
 * @type: type of the records
 */
bool blackbox_event__has_id(const struct blackbox_event *event, u32 type)
{
	const struct sample_layout *layout = &event->layout;

	return (type == PERF_RECORD_SAMPLE ? layout->sample : layout->id)[SAMPLE_WORD__ID] >= 0;
}

/**
 * blackbox_ids__find - find the event with an id
 * @ids: the events of a buffer
 * @id: the id
 *
 * Return: the event, or NULL.
 */
const struct blackbox_event *blackbox_ids__find(const struct blackbox_ids *ids, u64 id)
{
	size_t low = 0, high = ids->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ids->events[middle].id == id)
			return &ids->events[middle];
		if (ids->events[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static u64 get_u64(const void *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* A part of a sample that is being checked */
struct cursor {
	const void	*pos;
	size_t		left;
	bool		bad;
};

static const void *take(struct cursor *c, u64 size)
{
	const void *p = c->pos;

	if (c->bad || size > c->left) {
		c->bad = true;
		return NULL;
	}
	c->pos += size;
	c->left -= size;
	return p;
}

static u64 take_u64(struct cursor *c)
{
	const void *p = take(c, sizeof(u64));

	return p ? get_u64(p) : 0;
}

static void take_array(struct cursor *c, u64 nr, size_t size)
{
	if (nr > c->left / size)
		c->bad = true;
	else
		take(c, nr * size);
}

static void take_read(struct cursor *c, u64 format)
{
	u64 nr = 1, times = hweight64(format & (PERF_FORMAT_TOTAL_TIME_ENABLED |
						PERF_FORMAT_TOTAL_TIME_RUNNING));
	u64 words = 1 + hweight64(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST));

	if (format & PERF_FORMAT_GROUP)
		nr = take_u64(c);
	take_array(c, times, sizeof(u64));
	take_array(c, nr, words * sizeof(u64));
}

static void take_raw(struct cursor *c)
{
	const void *p = take(c, sizeof(u32));
	u32 size = 0;

	if (p)
		memcpy(&size, p, sizeof(size));
	take(c, size);
}

static void take_branches(struct cursor *c, const struct perf_event_attr *attr)
{
	u64 nr = take_u64(c);
	size_t size = 3 * sizeof(u64);

	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		take(c, sizeof(u64));
	if (attr->branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS)
		size += sizeof(u64);
	take_array(c, nr, size);
}

static void take_regs(struct cursor *c, u64 mask)
{
	if (take_u64(c))
		take_array(c, hweight64(mask), sizeof(u64));
}

static void take_stack(struct cursor *c)
{
	u64 size = take_u64(c);

	if (!size)
		return;
	take(c, size);
	if (take_u64(c) > size)
		c->bad = true;
}

static bool check_sample(const struct perf_event_attr *attr, const void *record, size_t size)
{
	const u64 words = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			  PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	const u64 late_words = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
			       PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	struct cursor c = { .pos = record + HEADER, .left = size - HEADER };
	u64 type = attr->sample_type;

	take_array(&c, hweight64(type & words), sizeof(u64));
	if (type & PERF_SAMPLE_READ)
		take_read(&c, attr->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		take_array(&c, take_u64(&c), sizeof(u64));
	if (type & PERF_SAMPLE_RAW)
		take_raw(&c);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(&c, attr);
	if (type & PERF_SAMPLE_REGS_USER)
		take_regs(&c, attr->sample_regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(&c);
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		take(&c, sizeof(u64));
	take_array(&c, hweight64(type & (PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION)),
		   sizeof(u64));
	if (type & PERF_SAMPLE_REGS_INTR)
		take_regs(&c, attr->sample_regs_intr);
	take_array(&c, hweight64(type & late_words), sizeof(u64));
	if (type & PERF_SAMPLE_AUX)
		take(&c, take_u64(&c));
	/* A stack and AUX data may be shorter than what was reserved for them. */
	return !c.bad && (!c.left || type & (PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER |
					     PERF_SAMPLE_AUX));
}

/**
 * blackbox_record__fits_build_id - check the size of the build-id of a mapping
 * @header: of the record
 * @record: the record, which has all fields of its type
 *
 * perf of the base copies the build-id to BUILD_ID_SIZE bytes, whatever its size is.
 *
 * Return: false if it has a build-id that cannot be.
 */
bool blackbox_record__fits_build_id(const struct perf_event_header *header, const void *record)
{
	const size_t build_id_size = HEADER + 32;

	return header->type != PERF_RECORD_MMAP2 ||
	       !(header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) ||
	       *(const u8 *)(record + build_id_size) <= BUILD_ID_SIZE;
}

/* @end: where the sample_id begins */
static bool check_other(const struct blackbox_shape *shape, const struct perf_event_header *header,
			const void *record, size_t end)
{
	const u32 type = header->type;

	if (end < shape->size || !blackbox_record__fits_build_id(header, record))
		return false;
	if (shape->string)
		return memchr(record + shape->size, '\0', end - shape->size);
	if (type == PERF_RECORD_NAMESPACES) {
		u64 nr = get_u64(record + HEADER + 8);

		return nr <= (end - shape->size) / (2 * sizeof(u64));
	}
	if (type == PERF_RECORD_TEXT_POKE) {
		u16 len[2];

		memcpy(len, record + HEADER + 8, sizeof(len));
		return (size_t)len[0] + len[1] <= end - shape->size;
	}
	if (type == PERF_RECORD_CALLCHAIN_DEFERRED)
		return get_u64(record + HEADER + 8) <= (end - shape->size) / sizeof(u64);
	return true;
}

/*
 * All events of a buffer have their ids at the same place. If there are no ids, there is
 * one event.
 */
static const struct blackbox_event *find_event(const struct blackbox_ids *ids, u32 type,
					       const void *record, size_t size)
{
	const struct blackbox_event *first = ids->nr ? &ids->events[0] : NULL;
	int pos;

	if (!first)
		return NULL;
	if (!blackbox_event__has_id(first, type))
		return first;
	pos = sample_layout__id_offset(&first->layout, type, size);
	return pos < 0 ? NULL : blackbox_ids__find(ids, get_u64(record + pos));
}

/**
 * blackbox_record__event - find the event of a record
 * @ids: events that write to the buffer
 * @record: a record that was checked
 *
 * Return: the event.
 */
const struct blackbox_event *blackbox_record__event(const struct blackbox_ids *ids,
						    const void *record)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	return find_event(ids, header.type, record, header.size);
}

/**
 * blackbox_record__check - check a record
 * @ids: events that write to the buffer
 * @record: its first byte
 * @room: bytes from there to the end of what is intact; at least a header
 * @time: returns its time, or 0 if it has none
 *
 * Return: BLACKBOX_OK, or why it must be dropped. If that is BLACKBOX_DROP_SIZE, the size
 * in its header must not be used. If it is BLACKBOX_DROP_PARTIAL, it exceeds @room.
 */
enum blackbox_drop blackbox_record__check(const struct blackbox_ids *ids, const void *record,
					  size_t room, u64 *time)
{
	const struct blackbox_shape *shape;
	const struct blackbox_event *event;
	struct perf_event_header header;
	int pos;
	u32 cpu;

	*time = 0;
	memcpy(&header, record, sizeof(header));
	if (header.size < sizeof(header) || header.size % sizeof(u64))
		return BLACKBOX_DROP_SIZE;
	if (header.size > room)
		return BLACKBOX_DROP_PARTIAL;
	shape = blackbox_record__shape(header.type);
	if (!shape && header.type != PERF_RECORD_SAMPLE)
		return BLACKBOX_DROP_TYPE;
	event = find_event(ids, header.type, record, header.size);
	if (!event)
		return BLACKBOX_DROP_ID;
	if (header.type == PERF_RECORD_SAMPLE) {
		if (!check_sample(&event->attr, record, header.size))
			return BLACKBOX_DROP_BODY;
	} else if (header.size < event->layout.id_size ||
		   !check_other(shape, &header, record, header.size - event->layout.id_size)) {
		return BLACKBOX_DROP_BODY;
	}
	pos = sample_layout__offset(&event->layout, SAMPLE_WORD__CPU, header.type, header.size);
	if (pos >= 0 && ids->cpu >= 0) {
		memcpy(&cpu, record + pos, sizeof(cpu));
		if (cpu != (u32)ids->cpu)
			return BLACKBOX_DROP_CPU;
	}
	pos = sample_layout__offset(&event->layout, SAMPLE_WORD__TIME, header.type, header.size);
	if (pos >= 0)
		*time = get_u64(record + pos);
	return BLACKBOX_OK;
}
