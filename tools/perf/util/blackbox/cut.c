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
 * the clock and the reservation makes neighbours change places. A larger step back is damage.
 * The longest series of records whose times do not decrease is taken as right, and the
 * others as wrong if they are too far from their neighbours in it: no number of wrong times
 * costs a record that is right, as long as these are the more.
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

/**
 * struct series - records whose times do not decrease
 * @ends: for each length, the last record of the series that ends earliest
 * @before: of each record, the one before it in the series that it ends
 * @times: times of the longest series
 * @len: records of it
 */
struct series {
	size_t	*ends;
	size_t	*before;
	u64	*times;
	size_t	len;
};

/* Find the longest series, and set @in for its records. Those without a time are in none. */
static void find_series(const struct blackbox_cut *cut, struct series *series, u8 *in)
{
	for (size_t i = 0; i < cut->nr; i++) {
		size_t low = 0, high = series->len;

		if (!cut->spans[i].time)
			continue;
		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (cut->spans[series->ends[middle]].time <= cut->spans[i].time)
				low = middle + 1;
			else
				high = middle;
		}
		series->before[i] = low ? series->ends[low - 1] : i;
		series->ends[low] = i;
		if (low == series->len)
			series->len++;
	}
	for (size_t i = series->len, pos = 0; i; i--) {
		pos = i == series->len ? series->ends[i - 1] : series->before[pos];
		series->times[i - 1] = cut->spans[pos].time;
		in[pos] = 1;
	}
}

/*
 * Remove the records with a wrong time; they are in the order of the buffer. Those without
 * a time stay.
 */
static void drop_wrong_times(struct blackbox_cut *cut, const struct series *series, const u8 *in)
{
	size_t nr = 0, next = 0;

	for (size_t i = 0; i < cut->nr; i++) {
		const struct blackbox_span span = cut->spans[i];

		if (in[i]) {
			next++;
		} else if (span.time &&
			   ((next && is_after(series->times[next - 1], span.time)) ||
			    (next < series->len && is_after(span.time, series->times[next])))) {
			drop(cut, BLACKBOX_DROP_TIME, size_at(cut, span.pos), 1);
			continue;
		}
		cut->spans[nr++] = span;
	}
	cut->nr = nr;
}

static int check_times(struct blackbox_cut *cut)
{
	struct series series = {
		.ends	= calloc(cut->nr + 1, sizeof(*series.ends)),
		.before	= calloc(cut->nr + 1, sizeof(*series.before)),
		.times	= calloc(cut->nr + 1, sizeof(*series.times)),
	};
	u8 *in = calloc(cut->nr + 1, 1);
	int err = series.ends && series.before && series.times && in ? 0 : -ENOMEM;

	if (!err) {
		find_series(cut, &series, in);
		drop_wrong_times(cut, &series, in);
	}
	free(series.ends);
	free(series.before);
	free(series.times);
	free(in);
	return err;
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
	return err ?: check_times(cut);
}

void blackbox_cut__exit(struct blackbox_cut *cut)
{
	zfree(&cut->bytes);
	zfree(&cut->spans);
}
