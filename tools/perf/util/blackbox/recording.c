// SPDX-License-Identifier: GPL-2.0
/*
 * A recording of what a session of a dead machine holds
 *
 * The records of all buffers are sorted by time. They stay where they are, in the copies of
 * the buffers. Records that describe the state at the start (names.c) are made and come
 * first, also if the records have no times.
 *
 * perf.data has an event once, with the ids that it has on each CPU. Events with equal
 * attributes and names are the same event. Side-band is the last one: readers take the
 * first one for what was recorded.
 */
#include "recording.h"

#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Items */

/* Of two records with the same time, the one with the smaller number comes first. */
#define SEQ_BUFFERS	BIT_ULL(63)

static int add_item(struct blackbox_recording *r, const void *data, u64 time, u64 seq)
{
	if (r->nr_items == r->items_room) {
		size_t room = max(r->items_room * 2, (size_t)4096);
		struct blackbox_item *items = reallocarray(r->items, room, sizeof(*items));

		if (!items)
			return -ENOMEM;
		r->items = items;
		r->items_room = room;
	}
	r->items[r->nr_items] = (struct blackbox_item) {
		.time	= time,
		.seq	= seq + r->nr_items,
		.data	= data,
	};
	r->nr_items++;
	return 0;
}

/**
 * blackbox_recording__add - add a record of a buffer
 * @r: the recording
 * @data: the record, which must stay
 * @time: its time
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_recording__add(struct blackbox_recording *r, const void *data, u64 time)
{
	return add_item(r, data, time, SEQ_BUFFERS);
}

/* Synthesized records have no id, and are thus parsed like those of the first event. */
static const struct sample_layout *first_layout(const struct blackbox_recording *r)
{
	return &r->groups[0].events[0]->layout;
}

/**
 * blackbox_recording__make - make a record that is not a sample, and add it
 * @r: the recording
 * @type: its type
 * @misc: its misc field
 * @size: bytes of header and fields; a multiple of 8
 * @time: its time
 *
 * Return: the record, whose fields are zeros, or NULL without memory.
 */
void *blackbox_recording__make(struct blackbox_recording *r, u16 type, u16 misc, size_t size,
			       u64 time)
{
	const struct sample_layout *layout = first_layout(r);
	struct perf_event_header header = {
		.type	= type,
		.misc	= misc,
		.size	= size + layout->id_size,
	};
	struct blackbox_made *made = calloc(1, sizeof(*made) + header.size);
	int pos;

	if (!made)
		return NULL;
	made->next = r->made;
	r->made = made;
	memcpy(made->bytes, &header, sizeof(header));
	pos = sample_layout__offset(layout, SAMPLE_WORD__TIME, type, header.size);
	if (pos >= 0)
		memcpy((void *)made->bytes + pos, &time, sizeof(time));
	return add_item(r, made->bytes, time, 0) ? NULL : made->bytes;
}

/**
 * blackbox_recording__has_clock - whether records have the clock of the notes
 * @r: the recording
 *
 * Return: true if their times can be compared.
 */
bool blackbox_recording__has_clock(const struct blackbox_recording *r)
{
	const struct perf_event_attr *attr = &r->groups[0].events[0]->attr;

	return !attr->use_clockid && attr->sample_type & PERF_SAMPLE_TIME;
}

/* Events */

static bool is_sideband(const struct blackbox_event *event)
{
	return event->attr.type == PERF_TYPE_SOFTWARE &&
	       event->attr.config == PERF_COUNT_SW_DUMMY;
}

static int cmp_same(const struct blackbox_event *a, const struct blackbox_event *b)
{
	return memcmp(&a->attr, &b->attr, sizeof(a->attr)) ?: strcmp(a->name, b->name);
}

static int cmp_events(const void *va, const void *vb)
{
	const struct blackbox_event *a = *(const struct blackbox_event *const *)va;
	const struct blackbox_event *b = *(const struct blackbox_event *const *)vb;
	int cmp = cmp_same(a, b);

	if (cmp)
		return cmp;
	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int cmp_groups(const void *va, const void *vb)
{
	const struct blackbox_group *a = va, *b = vb;
	const struct blackbox_event *first_a = a->events[0], *first_b = b->events[0];

	if (is_sideband(first_a) != is_sideband(first_b))
		return is_sideband(first_a) ? 1 : -1;
	if (first_a->index != first_b->index)
		return first_a->index < first_b->index ? -1 : 1;
	return cmp_events(&a->events[0], &b->events[0]);
}

static int group_events(struct blackbox_recording *r)
{
	const struct blackbox_session *s = r->session;

	r->sorted = calloc(s->nr_events, sizeof(*r->sorted));
	r->groups = calloc(s->nr_events, sizeof(*r->groups));
	if (!r->sorted || !r->groups)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_events; i++)
		r->sorted[i] = &s->events[i];
	qsort(r->sorted, s->nr_events, sizeof(*r->sorted), cmp_events);
	for (size_t i = 0; i < s->nr_events; i++) {
		if (!i || cmp_same(r->sorted[i - 1], r->sorted[i]))
			r->groups[r->nr_groups++].events = &r->sorted[i];
		r->groups[r->nr_groups - 1].nr++;
	}
	qsort(r->groups, r->nr_groups, sizeof(*r->groups), cmp_groups);
	return 0;
}

/* CPUs */

static struct blackbox_cpu *find_cpu(struct blackbox_recording *r, s32 cpu)
{
	for (size_t i = 0; i < r->nr_cpus; i++) {
		if (r->cpus[i].cpu == cpu)
			return &r->cpus[i];
	}
	r->cpus[r->nr_cpus].cpu = cpu;
	return &r->cpus[r->nr_cpus++];
}

static int cmp_cpus(const void *va, const void *vb)
{
	const struct blackbox_cpu *a = va, *b = vb;

	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

static u64 get_u64(const void *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static void count_record(struct blackbox_cpu *cpu, const void *record, u64 time)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		cpu->events++;
		if (!time)
			break;
		if (!cpu->oldest || time < cpu->oldest)
			cpu->oldest = time;
		cpu->newest = max(cpu->newest, time);
		break;
	case PERF_RECORD_LOST:
		cpu->lost += get_u64(record + sizeof(header) + sizeof(u64));
		break;
	case PERF_RECORD_LOST_SAMPLES:
		cpu->lost += get_u64(record + sizeof(header));
		break;
	case PERF_RECORD_THROTTLE:
		cpu->throttled++;
		break;
	default:
		break;
	}
}

static int add_buffer(struct blackbox_recording *r, const struct blackbox_buffer *buf)
{
	const struct blackbox_cut *cut = &buf->cut;
	struct blackbox_cpu *cpu = find_cpu(r, buf->cpu);
	int err = 0;

	for (size_t i = 0; i < cut->nr && !err; i++) {
		const void *record = cut->bytes + cut->spans[i].pos;

		count_record(cpu, record, cut->spans[i].time);
		err = blackbox_recording__add(r, record, cut->spans[i].time);
	}
	cpu->lost += buf->lost;
	for (int i = 0; i < BLACKBOX_DROP_MAX; i++) {
		r->bytes_dropped[i] += cut->bytes_dropped[i];
		r->records_dropped[i] += cut->records_dropped[i];
		cpu->given_up += cut->bytes_dropped[i];
	}
	return err;
}

static void add_up(struct blackbox_recording *r)
{
	for (size_t i = 0; i < r->nr_cpus; i++) {
		const struct blackbox_cpu *cpu = &r->cpus[i];

		if (cpu->oldest && (!r->oldest || cpu->oldest < r->oldest))
			r->oldest = cpu->oldest;
		r->newest = max(r->newest, cpu->newest);
		r->events += cpu->events;
		r->lost += cpu->lost;
		r->throttled += cpu->throttled;
		r->given_up += cpu->given_up;
	}
}

static int cmp_items(const void *va, const void *vb)
{
	const struct blackbox_item *a = va, *b = vb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/**
 * blackbox_recording__init - collect the records of a session
 * @r: returns them; must be freed in any case
 * @s: the session, which must stay
 *
 * Return: 0; -ENODATA if the session has no events; -ENOMEM.
 */
int blackbox_recording__init(struct blackbox_recording *r, const struct blackbox_session *s)
{
	int err;

	*r = (struct blackbox_recording) { .session = s };
	if (!s->nr_events)
		return -ENODATA;
	r->cpus = calloc(s->nr_buffers + 1, sizeof(*r->cpus));
	if (!r->cpus)
		return -ENOMEM;
	err = group_events(r);
	for (size_t i = 0; i < s->nr_buffers && !err; i++)
		err = add_buffer(r, &s->buffers[i]);
	if (err)
		return err;
	qsort(r->cpus, r->nr_cpus, sizeof(*r->cpus), cmp_cpus);
	add_up(r);
	err = blackbox_names__add(r);
	if (err)
		return err;
	if (r->nr_items)
		qsort(r->items, r->nr_items, sizeof(*r->items), cmp_items);
	blackbox_names__resolve(r);
	return 0;
}

void blackbox_recording__exit(struct blackbox_recording *r)
{
	while (r->made) {
		struct blackbox_made *next = r->made->next;

		free(r->made);
		r->made = next;
	}
	zfree(&r->formats);
	zfree(&r->items);
	zfree(&r->sorted);
	zfree(&r->groups);
	zfree(&r->threads);
	zfree(&r->processes);
	zfree(&r->told);
	zfree(&r->cpus);
	zfree(&r->build_ids);
}
