// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for what perf data recover reads: black box images. Of the input, an image
 * is made that looks like one of a kernel: sessions, buffers, events, records, notes. Then
 * words of it are overwritten, CRCs are repaired or not, and its end is cut off. The same image
 * is scattered over a memory, and its parts are damaged. The properties: a recording is a whole
 * perf.data whose records are in the order of time, have ids of its events only, and are no more
 * than there is room for in the image. Tasks have names that were in the image before it was
 * damaged, and if records are missing, the counts of what is damaged say so.
 *
 * The CRCs promise the latter two. They cover superblock, directories, notes and table of tasks,
 * but not the records in ring buffers: names there count only if the buffers were not damaged,
 * and missing records only if no CRC was repaired either.
 *
 * tests/shell/blackbox_fuzz.sh builds and runs it, in a directory of its own.
 */
#include "../blackbox-scattered.h"
#include "../../util/blackbox/find.h"
#include "../../util/blackbox/formats.h"
#include "../../util/blackbox/recording.h"
#include "../../util/flight/dump/part.h"
#include "../../util/header.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT		"out"
#define MAX_RECORDS	64
#define RING		BOX_PAGE

/* What these want of perf */
unsigned int page_size = 4096;
char const perf_version_string[] = "test";

static u8 bytes[BOX_SIZE] __aligned(BOX_PAGE);
static u8 memory[SCATTERED_MEMORY] __aligned(BOX_PAGE);
static struct box box;

/* @bytes before they are damaged, and what was put in */
static u8 pristine[BOX_SIZE] __aligned(BOX_PAGE);
static u64 notes_at[BOX_SESSIONS];
static u64 additions[BOX_SESSIONS];
static bool named_a[256];
static u32 task_tid;

/* The input */

static const uint8_t *input;
static size_t left;

static u64 take(size_t size)
{
	u64 value = 0;

	size = min(size, left);
	memcpy(&value, input, size);
	input += size;
	left -= size;
	return value;
}

/* The image */

static void put_record(u32 buffer, u64 id, u32 cpu, u64 *time)
{
	struct box_sample sample;
	struct box_comm comm;
	u8 raw[72] = {}, op = take(1);
	size_t size;

	*time += op >> 3;
	switch (op & 7) {
	case 0:
		comm = box__comm(id, cpu, take(1), "a", *time);
		named_a[comm.tid] = true;
		box__write(&box, buffer, &comm, sizeof(comm));
		break;
	case 1:
		/* A writer that does not end */
		sample = box__sample(id, cpu, take(1), *time);
		box__store(&box, buffer, &sample, sizeof(sample), take(1) % sizeof(sample));
		break;
	case 2:
		size = min(left, (size_t)(op >> 3) + 8);
		memcpy(raw, input, min(size, left));
		input += size;
		left -= size;
		box__write(&box, buffer, raw, PERF_ALIGN(size, 8UL));
		break;
	default:
		sample = box__sample(id, cpu, take(1), *time);
		box__write(&box, buffer, &sample, sizeof(sample));
		break;
	}
}

static void put_notes(u32 session)
{
	u8 op = take(1), data[128] = {};
	struct box_comm comm = box__comm(0, 0, take(1), "noted-at-start", 0);
	size_t size;
	u64 pos;

	pos = box__add_base(&box, session, op >> 7, 1, take(2), &comm, sizeof(comm));
	if (op & 64) {
		size = sizeof(comm);
		comm = box__comm(0, 0, take(1), "added-to-notes", 0);
		memcpy(data, &comm, size);
	} else {
		size = min(left, (size_t)2 * (op & 63));
		memcpy(data, input, size);
		input += size;
		left -= size;
	}
	notes_at[session] = box__session(&box, session)->notes + (op >> 7) * BOX_SLOT;
	additions[session] = pos;
	box__add_addition(&box, pos, 1, 1, take(2), data, size);
}

static void put_session(u8 how)
{
	static const char *const names[] = { "a", "b" };
	struct perf_event_attr attr = box__attr(how & 1 ? PERF_COUNT_SW_DUMMY :
							  PERF_COUNT_SW_CPU_CLOCK);
	u32 session = box__add_session(&box, names[box.nr_sessions]);
	u64 time = 1000;

	for (u32 cpu = 0; cpu < 2; cpu++) {
		u32 buffer = box__add_buffer(&box, cpu, RING, how & 2);
		u64 id = 10 * (1 + session) + cpu;
		u8 nr = take(1) % MAX_RECORDS;

		if (how & 4)
			attr.sample_type |= take(4);
		if (how & 2)
			attr.type = take(1) & 2;
		box__add_event(&box, session, buffer, id, &attr);
		while (nr--)
			put_record(buffer, id, cpu, &time);
	}
	if (how & 8)
		put_notes(session);
}

static void repair(void)
{
	struct perf_blackbox_super *super = box.super;

	for (u32 i = 0; i < box.nr_sessions; i++)
		box__seal_entry(box__session(&box, i), sizeof(struct perf_blackbox_session));
	for (u32 i = 0; i < box.nr_buffers; i++)
		box__seal_entry(box__buffer(&box, i), sizeof(struct perf_blackbox_buffer));
	for (u32 i = 0; i < box.nr_events; i++)
		box__seal_entry(box__event(&box, i), sizeof(struct perf_blackbox_event));
	super->magic = PERF_BLACKBOX_MAGIC;
	super->version = PERF_BLACKBOX_VERSION;
	super->size = sizeof(*super);
	box__seal(&box);
}

static bool is_in_notes(u64 pos)
{
	for (u32 i = 0; i < box.nr_sessions; i++) {
		const struct box whole = { .bytes = pristine };
		u64 notes = box__session(&whole, i)->notes;

		/* box__add_session() allocates both slots. */
		if (pos >= notes && pos < notes + 2 * BOX_SLOT)
			return true;
	}
	return false;
}

/* Where there is something, mostly. Return: are all ring buffers as they were? */
static bool damage(void)
{
	const struct {
		u64 pos, size;
	} places[] = {
		{ 0, sizeof(struct perf_blackbox_super) },
		{ BOX_SESSIONS_AT, box.nr_sessions * sizeof(struct perf_blackbox_session) },
		{ BOX_BUFFERS_AT, box.nr_buffers * sizeof(struct perf_blackbox_buffer) },
		{ BOX_EVENTS_AT, box.nr_events * sizeof(struct perf_blackbox_event) },
		{ BOX_DEATH_AT, sizeof(struct perf_blackbox_death) },
		{ BOX_TASKS_AT, sizeof(struct perf_blackbox_task) },
		{ notes_at[0] ?: BOX_HEAP_AT, 128 },
		{ additions[0] ?: BOX_HEAP_AT, 128 },
		{ 0, box.heap },
	};
	u64 where = take(1) % ARRAY_SIZE(places), pos = take(3), value = take(8);
	u8 size = 1 + take(1) % 8;

	pos = places[where].pos + pos % places[where].size;
	memcpy(bytes + pos, &value, size);
	return pos + size <= BOX_HEAP_AT || (is_in_notes(pos) && is_in_notes(pos + size - 1));
}

/* A scattered image */

static void seal_part(struct perf_blackbox_part *part)
{
	struct perf_blackbox_member *member = scattered__body(part);

	if (part->kind == PERF_BLACKBOX_PART_SESSION)
		box__seal_entry(scattered__body(part), sizeof(struct perf_blackbox_session));
	if (part->kind != PERF_BLACKBOX_PART_EVENTS)
		return;
	for (int i = 0; i < 2; i++, member++) {
		if (!member->event.state)
			continue;
		box__seal_entry(&member->event, sizeof(member->event));
		box__seal_entry(&member->buffer, sizeof(member->buffer));
	}
}

/* The links of the root, or a part. Addresses are mostly those of other pages. */
static void damage_part(void)
{
	u64 page = take(2) % (SCATTERED_MEMORY / BOX_PAGE), pos = take(2), value = take(8);
	u8 how = take(1);

	if (how & 1)
		value = value % (SCATTERED_MEMORY / BOX_PAGE) * BOX_PAGE;
	if (how & 2)
		page = SCATTERED_ROOT / BOX_PAGE;
	pos %= how & 4 ? BOX_PAGE : PERF_BLACKBOX_PART_HEAD_SIZE;
	if (how & 8)
		pos = PERF_BLACKBOX_ROOT_LINKS_OFFSET;
	pos -= pos % sizeof(u64);
	memcpy(memory + page * BOX_PAGE + pos, &value, sizeof(value));
	if (how & 16 && page != SCATTERED_ROOT / BOX_PAGE)
		seal_part((void *)memory + page * BOX_PAGE);
}

static void scatter(void)
{
	struct box root = { .super = (void *)memory + SCATTERED_ROOT };
	u8 how = take(1);

	box__scatter(&box, memory);
	for (u8 i = how & 15; i; i--)
		damage_part();
	if (how & 16)
		box__seal(&root);
}

/* What is written */

static bool has_id(const struct blackbox_session *s, u64 id)
{
	for (size_t i = 0; i < s->nr_events; i++) {
		if (s->events[i].id == id)
			return true;
	}
	return false;
}

static void check_ids(const struct blackbox_session *s)
{
	for (size_t i = 0; i < s->nr_buffers; i++) {
		const struct blackbox_buffer *buf = &s->buffers[i];

		if (buf->cut.len > buf->ring.size)
			abort();
		for (size_t j = 0; j < buf->cut.nr; j++) {
			const void *record = buf->cut.bytes + buf->cut.spans[j].pos;
			const struct blackbox_event *event = &s->events[0];
			struct perf_event_header header;
			int pos;
			u64 id;

			memcpy(&header, record, sizeof(header));
			pos = sample_layout__id_offset(&event->layout, header.type, header.size);
			if (buf->cut.spans[j].pos + header.size > buf->cut.len)
				abort();
			if (!blackbox_event__has_id(event, header.type))
				continue;
			if (pos < 0)
				abort();
			memcpy(&id, record + pos, sizeof(id));
			if (!has_id(s, id))
				abort();
		}
	}
}

static bool is_of_buffer(const struct blackbox_session *s, const void *record)
{
	for (size_t i = 0; i < s->nr_buffers; i++) {
		const struct blackbox_cut *cut = &s->buffers[i].cut;

		if (record >= cut->bytes && record < cut->bytes + cut->len)
			return true;
	}
	return false;
}

/* @task: pid and tid, and the name behind them */
static bool was_put(const void *task)
{
	const char *name = task + 2 * sizeof(u32);
	u32 ids[2];

	memcpy(ids, task, sizeof(ids));
	if (ids[0] == ids[1] && ids[1] < ARRAY_SIZE(named_a) && named_a[ids[1]] &&
	    !strcmp(name, "a"))
		return true;
	if (ids[0] == task_tid && ids[1] == task_tid && !strcmp(name, "task"))
		return true;
	return memmem(pristine, box.heap, task, sizeof(ids) + strlen(name) + 1);
}

/* @rings: those of the ring buffers count as well */
static void check_names(const struct blackbox_recording *r, bool rings)
{
	for (size_t i = 0; i < r->nr_items; i++) {
		const void *record = r->items[i].data;
		struct perf_event_header header;

		memcpy(&header, record, sizeof(header));
		if (header.type == PERF_RECORD_COMM && !was_put(record + sizeof(header)) &&
		    (rings || !is_of_buffer(r->session, record)))
			abort();
	}
}

/* Without times it is no file of which part.c knows. */
static void check_file(const struct blackbox_recording *r)
{
	const struct part_record *record;
	struct part part;
	u64 time = 0;
	size_t nr = 0;
	int err = part__open(&part, OUT);

	while (!err && (record = part__peek(&part)) != NULL) {
		if (record->time < time)
			abort();
		time = record->time;
		nr++;
		part__take(&part);
	}
	if (!err && (part.truncated || nr > r->nr_items))
		abort();
	for (size_t i = 1; i < r->nr_items; i++) {
		if (r->items[i].time < r->items[i - 1].time)
			abort();
	}
	part__close(&part);
}

/* What is known of the image that is read */
struct expected {
	/* Its ring buffers are not damaged. */
	bool	rings;
	/* Records may only be missing if it says that something is damaged. */
	bool	counts;
	/* By session */
	size_t	nr_items[BOX_SESSIONS];
};

static void write_session(struct blackbox_session *s, const struct expected *expected,
			  size_t *nr_items)
{
	struct blackbox_recording r;
	FILE *f;

	if (blackbox_recording__init(&r, s) == 0) {
		check_names(&r, expected->rings);
		*nr_items = r.nr_items;
		if (blackbox_formats__make(&r, NULL))
			abort();
		f = fopen(OUT, "w");
		if (!f || blackbox_recording__write(&r, f))
			abort();
		fclose(f);
		check_file(&r);
		f = fopen(OUT ".json", "w");
		if (!f || blackbox_manifest__write(&r, OUT, 1, f))
			abort();
		fclose(f);
	}
	blackbox_recording__exit(&r);
}

static bool says_damaged(const struct blackbox_session *s)
{
	return s->image->damaged || s->image->tasks_bad || s->events_bad || s->buffers_bad ||
	       s->notes_bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* @nr_items: returns the number of records by session, or NULL */
static void read_all(const void *from, u64 len, const struct expected *expected,
		     size_t *nr_items)
{
	/* Exactly as much memory as there are bytes, for the sanitizer to see what is beyond. */
	u8 *copy = malloc(len ?: 1);
	struct blackbox_session s;
	struct blackbox_find find;

	memcpy(copy, from, len);
	if (blackbox_find__init(&find, copy, len, NULL))
		abort();
	for (size_t i = 0; i < find.nr; i++) {
		for (u32 j = 0; j < BOX_SESSIONS; j++) {
			int err = blackbox_session__init(&s, &find.images[i], j) ?:
				  blackbox_session__cut(&s);
			size_t nr = 0;

			if (!err) {
				check_ids(&s);
				write_session(&s, expected, &nr);
			}
			if (expected->counts && nr < expected->nr_items[j] && !says_damaged(&s))
				abort();
			if (nr_items)
				nr_items[j] = nr;
			blackbox_session__exit(&s);
		}
	}
	blackbox_find__exit(&find);
	free(copy);
}

/* Damage */

static bool is_gone(u64 pos)
{
	u32 before, now;

	memcpy(&before, pristine + pos, sizeof(before));
	memcpy(&now, bytes + pos, sizeof(now));
	return before && !now;
}

/*
 * No CRC covers what says that there is something at all: state of an entry, magic of notes,
 * magic and numbers of an addition. Without it, the image looks like one that never had it.
 */
static bool looks_free(void)
{
	const struct box whole = { .bytes = pristine };
	const size_t numbers = offsetof(struct perf_blackbox_addition, data_crc);

	for (u32 i = 0; i < box.nr_events; i++) {
		if (is_gone(BOX_EVENTS_AT + i * sizeof(struct perf_blackbox_event)))
			return true;
	}
	for (u32 i = 0; i < box.nr_sessions; i++) {
		u64 notes = box__session(&whole, i)->notes;

		if (is_gone(BOX_SESSIONS_AT + i * sizeof(struct perf_blackbox_session)) ||
		    is_gone(notes) || is_gone(notes + BOX_SLOT) ||
		    (additions[i] &&
		     memcmp(bytes + additions[i], pristine + additions[i], numbers)))
			return true;
	}
	return is_gone(BOX_DEATH_AT);
}

static void damage_and_read(u8 nr, u8 how)
{
	struct expected expected = { .rings = true };

	memcpy(bytes, pristine, sizeof(bytes));
	while (nr--)
		expected.rings &= damage();
	/* Where the buffers are is wrong, too, or where the image ends. */
	if (how & 64)
		repair();
	expected.rings &= !(how & 64);
	expected.counts = expected.rings && !(how & 128) && !looks_free();
	if (expected.counts) {
		const struct expected whole = { .rings = true };

		read_all(pristine, box.heap, &whole, expected.nr_items);
	}
	read_all(bytes, how & 128 ? take(3) % BOX_SIZE : box.heap, &expected, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its links have no CRCs. */
	const struct expected scattered = {};
	u8 how;

	input = data;
	left = size;
	memset(notes_at, 0, sizeof(notes_at));
	memset(additions, 0, sizeof(additions));
	memset(named_a, 0, sizeof(named_a));
	box__init(&box, bytes);
	how = take(1);
	put_session(how);
	if (how & 16)
		put_session(how >> 1);
	task_tid = take(1);
	box__add_task(&box, 0, task_tid, "task");
	if (how & 32)
		box__die(&box, "reason", 1, take(2));
	memcpy(pristine, bytes, sizeof(pristine));
	/* Of the same input, all. Of what is damaged in many places, little is read. */
	scatter();
	read_all(memory, SCATTERED_MEMORY, &scattered, NULL);
	damage_and_read(1, 0);
	damage_and_read(take(1) & 15, how);
	return 0;
}
