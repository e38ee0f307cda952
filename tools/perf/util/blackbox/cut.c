// SPDX-License-Identifier: GPL-2.0
/*
 * The records of a ring buffer of a dead machine
 *
 * data_head is published by the outermost of nested writers, after the data. What was being
 * written lies beyond it and is dropped. But it has already overwritten the oldest records,
 * whose headers and ids may still look right. rb->head was moved before any byte was stored.
 * As in tools/lib/perf/snapshot.c, the bytes reserved since data_head are
 *
 *	behind = data_head - rb->head	in a backward buffer
 *	behind = rb->head - data_head	in a forward buffer
 *
 * and of the buffer's bytes only these are intact:
 *
 *	[data_head, data_head + size - behind)	in a backward buffer
 *	[data_head - size + behind, data_head)	in a forward buffer
 *
 * History starts at position 0. A buffer has not wrapped if 0 is in this range.
 *
 * Records of a backward buffer are found from data_head on, the newest one first. The last
 * one may exceed the intact range. In a forward buffer that has wrapped, it is not known
 * where the oldest record begins. Which positions are the start of a record is computed
 * from the end: at such a position there is a record that passes all checks and that ends
 * at data_head or at another such position. The first one is the oldest record. Damage thus
 * costs what is older.
 *
 * Time: records are stored in the order of their reservation. An interrupt between reading
 * the clock and the reservation makes neighbours change places. A larger step back is damage:
 * either the record or the one before it has a wrong time. The next record tells which.
 */
#include "cut.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_ALIGN	8

/* For how long an interrupt may delay a record that has its time. */
#define MAX_SWAP	NSEC_PER_SEC

static u64 distance(const struct blackbox_ring *ring, u64 from, u64 to)
{
	return ring->is_32bit ? (u32)(to - from) : to - from;
}

static void drop(struct blackbox_cut *cut, enum blackbox_drop why, u64 bytes, u64 records)
{
	cut->bytes_dropped[why] += bytes;
	cut->records_dropped[why] += records;
}

/* Copy what is intact, lowest position first. */
static int copy_bytes(struct blackbox_cut *cut, const struct blackbox_ring *ring)
{
	u64 behind, held, start, first;

	if (ring->backward) {
		behind = distance(ring, ring->head, ring->data_head);
		held = distance(ring, ring->data_head, 0);
	} else {
		behind = distance(ring, ring->data_head, ring->head);
		held = distance(ring, 0, ring->data_head);
	}
	cut->wrapped = held > ring->size;
	held = min(held, ring->size);
	behind = min(behind, ring->size);
	cut->len = min(held, ring->size - behind);
	drop(cut, BLACKBOX_DROP_IN_FLIGHT, behind, 0);
	drop(cut, BLACKBOX_DROP_OVERWRITTEN, held - cut->len, 0);
	if (cut->len < held)
		cut->wrapped = true;

	cut->bytes = malloc(cut->len ?: 1);
	if (!cut->bytes)
		return -ENOMEM;
	start = ring->backward ? ring->data_head : ring->data_head - cut->len;
	start &= ring->size - 1;
	first = min(cut->len, ring->size - start);
	memcpy(cut->bytes, ring->data + start, first);
	memcpy(cut->bytes + first, ring->data, cut->len - first);
	return 0;
}

static int add(struct blackbox_cut *cut, size_t *room, u64 pos, u64 time)
{
	if (cut->nr == *room) {
		size_t more = max(*room * 2, (size_t)1024);
		struct blackbox_span *spans = reallocarray(cut->spans, more, sizeof(*spans));

		if (!spans)
			return -ENOMEM;
		cut->spans = spans;
		*room = more;
	}
	cut->spans[cut->nr++] = (struct blackbox_span) { .time = time, .pos = pos };
	return 0;
}

static u16 size_at(const struct blackbox_cut *cut, u64 pos)
{
	struct perf_event_header header;

	memcpy(&header, cut->bytes + pos, sizeof(header));
	return header.size;
}

static bool is_after(u64 a, u64 b)
{
	return a > b && a - b > MAX_SWAP;
}

/*
 * Remove the records with a wrong time; they are in the order of the buffer. Those without
 * a time stay.
 */
static void check_times(struct blackbox_cut *cut)
{
	/* Of the taken ones, the last one with a time and the one before that */
	ssize_t last = -1, before = -1;
	size_t nr = 0;

	for (size_t i = 0; i < cut->nr; i++) {
		struct blackbox_span *span = &cut->spans[i];

		if (!span->time) {
			cut->spans[nr++] = *span;
			continue;
		}
		if (last >= 0 && is_after(cut->spans[last].time, span->time)) {
			/* Is the one before too late, or this one too early? */
			if (before >= 0 && is_after(cut->spans[before].time, span->time)) {
				drop(cut, BLACKBOX_DROP_TIME, size_at(cut, span->pos), 1);
				continue;
			}
			drop(cut, BLACKBOX_DROP_TIME, size_at(cut, cut->spans[last].pos), 1);
			memmove(&cut->spans[last], &cut->spans[last + 1],
				(nr - last - 1) * sizeof(*span));
			nr--;
			last = before;
			before = -1;
		}
		before = last;
		last = nr;
		cut->spans[nr++] = *span;
	}
	cut->nr = nr;
}

/* From the newest to the oldest record; they are turned around afterwards. */
static int find_backward(struct blackbox_cut *cut, const struct blackbox_ids *ids)
{
	size_t room = 0;
	u64 pos = 0;
	int err = 0;

	while (!err && pos < cut->len) {
		u64 time, size = size_at(cut, pos);
		enum blackbox_drop why;

		why = blackbox_record__check(ids, cut->bytes + pos, cut->len - pos, &time);
		if (why == BLACKBOX_DROP_PARTIAL && !cut->wrapped)
			why = BLACKBOX_DROP_SIZE;
		if (why == BLACKBOX_DROP_SIZE || why == BLACKBOX_DROP_PARTIAL) {
			drop(cut, why, cut->len - pos, why == BLACKBOX_DROP_PARTIAL);
			break;
		}
		if (why)
			drop(cut, why, size, 1);
		else
			err = add(cut, &room, pos, time);
		pos += size;
	}
	for (size_t i = 0; i < cut->nr / 2; i++) {
		struct blackbox_span newer = cut->spans[i];

		cut->spans[i] = cut->spans[cut->nr - 1 - i];
		cut->spans[cut->nr - 1 - i] = newer;
	}
	return err;
}

/* Whether a record begins at each position, see above */
static u8 *find_starts(const struct blackbox_cut *cut, const struct blackbox_ids *ids)
{
	size_t nr = cut->len / RECORD_ALIGN;
	u8 *starts = calloc(nr + 1, 1);
	u64 time;

	if (!starts)
		return NULL;
	starts[nr] = 1;
	for (size_t i = nr; i-- > 0;) {
		u64 pos = i * RECORD_ALIGN;

		if (!blackbox_record__check(ids, cut->bytes + pos, cut->len - pos, &time))
			starts[i] = starts[(pos + size_at(cut, pos)) / RECORD_ALIGN];
	}
	return starts;
}

static int find_forward(struct blackbox_cut *cut, const struct blackbox_ids *ids)
{
	size_t room = 0, nr = cut->len / RECORD_ALIGN, i = 0;
	u8 *starts = find_starts(cut, ids);
	u64 time;
	int err = 0;

	if (!starts)
		return -ENOMEM;
	while (i < nr && !starts[i])
		i++;
	if (i)
		drop(cut, cut->wrapped ? BLACKBOX_DROP_PARTIAL : BLACKBOX_DROP_SIZE,
		     i * RECORD_ALIGN, 1);
	while (!err && i < nr) {
		u64 pos = i * RECORD_ALIGN;

		blackbox_record__check(ids, cut->bytes + pos, cut->len - pos, &time);
		err = add(cut, &room, pos, time);
		i += size_at(cut, pos) / RECORD_ALIGN;
	}
	free(starts);
	return err;
}

/**
 * blackbox_cut__init - find the records of a ring buffer
 * @cut: returns them; must be freed in any case
 * @ring: the ring buffer
 * @ids: the events that write to it
 *
 * Return: 0 or -ENOMEM. What is damaged is dropped and counted.
 */
int blackbox_cut__init(struct blackbox_cut *cut, const struct blackbox_ring *ring,
		       const struct blackbox_ids *ids)
{
	int err;

	*cut = (struct blackbox_cut) {};
	if (ring->data_head % RECORD_ALIGN || ring->head % RECORD_ALIGN) {
		drop(cut, BLACKBOX_DROP_SIZE, ring->size, 0);
		return 0;
	}
	err = copy_bytes(cut, ring);
	if (!err)
		err = ring->backward ? find_backward(cut, ids) : find_forward(cut, ids);
	if (!err)
		check_times(cut);
	return err;
}

void blackbox_cut__exit(struct blackbox_cut *cut)
{
	zfree(&cut->bytes);
	zfree(&cut->spans);
}
