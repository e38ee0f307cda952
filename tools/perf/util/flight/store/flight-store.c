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

	ring_store__set_budget(st->ring, st->opts->store - sideband);
	sideband_store__settle(st->sideband, st->folded, SIDEBAND_SETTLE_SHARE);
	if (st->lost_events != st->seen_lost) {
		st->seen_lost = st->lost_events;
		sideband_store__doubt_all(st->sideband);
	}
	sideband_store__doubt(st->sideband, ring_store__head(st->ring), SIDEBAND_DOUBT_SHARE);
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
	if (!st->closed)
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
	ring_store__close_round(st->ring, now);
	if (st->opts->max_age && now > st->opts->max_age)
		ring_store__evict_before(st->ring, now - st->opts->max_age);
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
	return ring_store__stats(st->ring)->refused_bytes + st->missed - st->told_given_up;
}

/* A dump is complete, and its manifest has reported @given_up. */
void flight_store__set_told(struct flight_store *st, u64 given_up)
{
	st->told_given_up += given_up;
	for (int i = 0; st->covers && i < cpu__max_cpu().cpu; i++)
		st->covers[i].given_up -= st->covers[i].told;
}

/* Bytes of memory. */
u64 flight_store__used(const struct flight_store *st)
{
	return ring_store__stats(st->ring)->used + sideband_store__stats(st->sideband)->used +
	       fold_order__used(st->order);
}

/* How far a dump would reach back, in ns; @now is CLOCK_MONOTONIC. */
u64 flight_store__window(const struct flight_store *st, u64 now)
{
	struct ring_store_round round;

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
	st->ring = ring_store__new(opts->store, fold_evicted, st);
	st->sideband = sideband_store__new(opts->store / SIDEBAND_SHARE, 0);
	st->order = fold_order__new(evlist, st->sideband, opts->store / WAITING_SHARE);
	if (!st->ring || !st->sideband || !st->order)
		return -ENOMEM;
	ring_store__evict_unseen(st->ring, PERF_RECORD_SAMPLE);
	ring_store__on_gone(st->ring, round_is_gone);
	return opts->comp_level ? ring_store__compress(st->ring, opts->comp_level) : 0;
}

void flight_store__exit(struct flight_store *st)
{
	ring_store__delete(st->ring);
	fold_order__delete(st->order);
	sideband_store__delete(st->sideband);
	free(st->preamble);
	free(st->covers);
}
