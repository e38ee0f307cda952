// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a flight recorder, and the path of a record through it
 *
 *	synthesized ----------> preamble, side-band store
 *	                                     ^
 *	                                     | folded when the round is evicted, in the
 *	                                     | order of the times (fold-order.c)
 *	pieces of buffers ----> ring store --+
 *
 * With --fair, a fair store takes the place of the ring store. It has no rounds but groups
 * of them, and side-band may be folded before all samples that are older are evicted.
 *
 * flight_store__append() takes pieces of the kernel's buffers. They belong to the open
 * round. flight_store__finish_round() closes it: the round gets its time, rounds that are
 * too old are evicted, and the memory is divided again.
 *
 * Memory: -M SIZE is one budget. The side-band store takes at most half of it, and records
 * that wait to be folded an eighth. The ring store gets the rest, to the byte, so it shrinks
 * when the machine has many tasks. The preamble is of fixed size. The kernel's own buffers
 * take at most a quarter of SIZE (see options.c), so that there is always room for a pass
 * over them.
 *
 * A task is removed from the side-band store when its exit is folded. If the record of an
 * exit was lost, the task would stay forever. Therefore, after a loss, the recorder checks
 * all tasks, some in each pass. Tasks that do not exist any more are removed after the rounds
 * of that time have been folded (see sideband-store.c).
 */
#include "flight-store.h"
#include "fair-store.h"
#include "fold-order.h"
#include "sideband-store.h"
#include "../dump/auxiliary.h"
#include "../dump/dump.h"
#include "../options.h"
#include "../../cpumap.h"
#include "../../event.h"
#include "../../evlist.h"

#include <linux/kernel.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The side-band store takes at most this share of the memory. */
#define SIDEBAND_SHARE	2

/* And what waits to be folded there. */
#define WAITING_SHARE	8

static int fold_evicted(union perf_event *event, void *data)
{
	struct flight_store *st = data;

	if (!fold_order__add(st->order, event) && event->header.type == PERF_RECORD_LOST)
		st->lost_events++;
	return 0;
}

/* With --fair: the side-band of a group has been evicted. */
static int group_is_gone(u32 group, void *data)
{
	struct flight_store *st = data;

	fold_order__end_round(st->order);
	/* Samples of this group may have been read with the next one. */
	sideband_store__keep_ended(st->sideband, (u64)group + 2);
	return 0;
}

static void round_is_gone(u64 pos, u64 time, void *data)
{
	struct flight_store *st = data;

	if (!st->in_group)
		st->group_pos = pos;
	st->in_group = true;
	if (!round_group__ends(&st->group, time))
		return;
	fold_order__end_round(st->order);
	st->in_group = false;
	st->folded = st->group_pos;
}

/* The side-band grows and shrinks at the cost of the rounds. */
static void share_memory(struct flight_store *st)
{
	size_t sideband = sideband_store__stats(st->sideband)->used + fold_order__used(st->order);
	/* A session that grows leaves less than at first. */
	size_t budget = st->opts->store > sideband ? st->opts->store - sideband : 0;

	if (st->fair) {
		fair_store__set_budget(st->fair, budget);
		fair_store__fold_old(st->fair);
		st->folded = fair_store__oldest_group(st->fair);
		sideband_store__shed_ended(st->sideband);
	} else {
		ring_store__set_budget(st->ring, budget);
	}
	sideband_store__settle(st->sideband, st->folded, SIDEBAND_SETTLE_SHARE);
	if (st->lost_events != st->seen_lost) {
		st->seen_lost = st->lost_events;
		sideband_store__doubt_all(st->sideband);
	}
	sideband_store__doubt(st->sideband,
			      st->fair ? fair_store__group(st->fair) : ring_store__head(st->ring),
			      SIDEBAND_DOUBT_SHARE);
}

/**
 * flight_store__append - keep records that a ring buffer held
 * @st: the store
 * @buf: a piece of the buffer
 * @size: bytes of it
 */
void flight_store__append(struct flight_store *st, const void *buf, size_t size)
{
	/* A round that is too large is counted, and comes in a dump's manifest. */
	if (st->closed)
		return;
	if (st->fair)
		fair_store__append(st->fair, buf, size);
	else
		ring_store__append(st->ring, buf, size);
}

/**
 * flight_store__put_synthesized - keep a record that perf made
 * @st: the store
 * @buf: the record
 * @size: bytes of it
 *
 * Return: 0 or a negative errno.
 */
int flight_store__put_synthesized(struct flight_store *st, const void *buf, size_t size)
{
	const union perf_event *event = buf;
	char *preamble;

	if (st->closed || event->header.type == PERF_RECORD_FINISHED_INIT)
		return 0;

	if (sideband_store__is_sideband(event)) {
		sideband_store__set_id_hdr_size(st->sideband, evlist__id_hdr_size(st->evlist));
		sideband_store__fold(st->sideband, event);
		return 0;
	}

	preamble = realloc(st->preamble, st->preamble_len + size);
	if (!preamble)
		return -ENOMEM;
	memcpy(preamble + st->preamble_len, buf, size);
	st->preamble = preamble;
	st->preamble_len += size;
	return 0;
}

/**
 * flight_store__finish_round - a pass over the buffers is complete
 * @st: the store
 * @now: CLOCK_MONOTONIC in ns
 */
void flight_store__finish_round(struct flight_store *st, u64 now)
{
	u64 age = st->opts->max_age, limit = age && now > age ? now - age : 0;

	if (st->fair) {
		fair_store__close_round(st->fair, now);
		fair_store__evict_before(st->fair, limit);
	} else {
		ring_store__close_round(st->ring, now);
		ring_store__evict_before(st->ring, limit);
	}
	share_memory(st);
}

/* Take up what the recorder before knew of the tasks, before anything is stored. */
void flight_store__recover(struct flight_store *st)
{
	sideband_store__set_id_hdr_size(st->sideband, evlist__id_hdr_size(st->evlist));
	auxiliary__fold(st->opts->out, st->evlist, st->sideband,
			st->opts->store / WAITING_SHARE);
}

/**
 * flight_store__missed - records were overwritten before they were read
 * @st: the store
 * @bytes: how many bytes of them
 * @sideband: exits of tasks may be among them
 */
void flight_store__missed(struct flight_store *st, u64 bytes, bool sideband)
{
	st->missed += bytes;
	st->lost_events += sideband;
}

/**
 * flight_store__cover - a buffer of samples was read in another way than perf's own
 * @st: the store
 * @cpu: its CPU
 * @way: how
 * @missed: bytes that were overwritten before
 */
void flight_store__cover(struct flight_store *st, int cpu, const char *way, u64 missed)
{
	if (!st->covers)
		st->covers = calloc(cpu__max_cpu().cpu, sizeof(*st->covers));
	if (!st->covers || cpu < 0 || cpu >= cpu__max_cpu().cpu)
		return;
	st->covers[cpu].way = way;
	st->covers[cpu].given_up += missed;
}

/* Bytes of records that were not stored since a dump last told of such: one begins. */
u64 flight_store__tell(struct flight_store *st)
{
	for (int i = 0; st->covers && i < cpu__max_cpu().cpu; i++)
		st->covers[i].told = st->covers[i].given_up;
	return flight_store__stats(st)->refused_bytes + st->missed - st->told_given_up;
}

/* A dump is complete, and its manifest has reported @given_up. */
void flight_store__set_told(struct flight_store *st, u64 given_up)
{
	st->told_given_up += given_up;
	for (int i = 0; st->covers && i < cpu__max_cpu().cpu; i++)
		st->covers[i].given_up -= st->covers[i].told;
}

/* A round is open: a pass has not ended. */
bool flight_store__is_open(const struct flight_store *st)
{
	return st->fair || ring_store__is_open(st->ring);
}

/* Close a round that would wait for more. */
void flight_store__flush(struct flight_store *st)
{
	if (st->ring)
		ring_store__flush(st->ring);
}

/* A child is about to be forked that reads the store. */
void flight_store__fence(struct flight_store *st)
{
	if (st->ring)
		ring_store__fence(st->ring);
	else
		fair_store__fence(st->fair);
}

/* There is no child any more. */
void flight_store__unfence(struct flight_store *st)
{
	if (st->fair)
		fair_store__unfence(st->fair);
	else
		ring_store__unfence(st->ring);
}

/**
 * flight_store__take_waiting - take the records that wait to be folded, for a dump
 * @st: the store
 * @events: returns an array of the records
 *
 * A fair store may hold samples that are older. The records would break the order of the
 * dump before them, so they become part of the state.
 *
 * Return: number of records, or -ENOMEM.
 */
int flight_store__take_waiting(struct flight_store *st, union perf_event ***events)
{
	if (st->fair)
		fold_order__flush(st->order);
	return fold_order__take(st->order, events);
}

/* In the child: the memory is shared from now on. */
void flight_store__forked(struct flight_store *st)
{
	if (st->fair)
		fair_store__forked(st->fair);
	else
		ring_store__forked(st->ring);
}

/* Of the ring store, or of what takes its place. */
const struct ring_store_stats *flight_store__stats(const struct flight_store *st)
{
	return st->fair ? fair_store__stats(st->fair) : ring_store__stats(st->ring);
}

/* Bytes of memory. */
u64 flight_store__used(const struct flight_store *st)
{
	return flight_store__stats(st)->used + sideband_store__stats(st->sideband)->used +
	       fold_order__used(st->order);
}

/* How far a dump would reach back, in ns; @now is CLOCK_MONOTONIC. */
u64 flight_store__window(const struct flight_store *st, u64 now)
{
	struct ring_store_round round;

	if (st->fair)
		return fair_store__window(st->fair, now);
	return ring_store__first(st->ring, &round) ? now - round.time : 0;
}

/**
 * flight_store__init - make an empty store
 * @st: the store, all zeros
 * @opts: the options of the flight recorder, which must last as long
 * @evlist: the events, likewise
 *
 * Return: 0 or a negative errno; flight_store__exit() is wanted in both cases.
 */
int flight_store__init(struct flight_store *st, const struct flight_opts *opts,
		       struct evlist *evlist)
{
	st->opts = opts;
	st->evlist = evlist;
	if (opts->fair)
		st->fair = fair_store__new(opts->store, evlist, fold_evicted, group_is_gone, st);
	else
		st->ring = ring_store__new(opts->store, fold_evicted, st);
	st->sideband = sideband_store__new(opts->store / SIDEBAND_SHARE, 0);
	st->order = fold_order__new(evlist, st->sideband, opts->store / WAITING_SHARE);
	if ((!st->ring && !st->fair) || !st->sideband || !st->order)
		return -ENOMEM;
	if (st->fair) {
		sideband_store__keep_ended(st->sideband, 1);
		return 0;
	}
	ring_store__evict_unseen(st->ring, PERF_RECORD_SAMPLE);
	ring_store__on_gone(st->ring, round_is_gone);
	return opts->comp_level ? ring_store__compress(st->ring, opts->comp_level) : 0;
}

void flight_store__exit(struct flight_store *st)
{
	ring_store__delete(st->ring);
	fair_store__delete(st->fair);
	fold_order__delete(st->order);
	sideband_store__delete(st->sideband);
	free(st->preamble);
	free(st->covers);
}
