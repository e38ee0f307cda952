/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_STORE_H
#define __PERF_FLIGHT_STORE_H

#include "ring-store.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct dump_cover;
struct evlist;
struct fair_store;
struct flight_opts;
struct fold_order;
struct sideband_store;
union perf_event;

/**
 * struct flight_store - all that a flight recorder holds in memory
 * @opts: the options, with the budget
 * @evlist: the events
 * @ring: the rounds, samples and side-band; NULL with --fair
 * @fair: the same, divided among cgroups; NULL without --fair
 * @sideband: the state before them
 * @order: records between the two, on their way to @sideband
 * @preamble: records that belong at the beginning of each file
 * @preamble_len: bytes of them
 * @covers: by CPU: how a buffer was read, if not in perf's own way; NULL: none was
 * @missed: bytes that were overwritten in the kernel's buffers before they were read
 * @told_given_up: bytes given up that a dump has told of
 * @lost_events: times that side-band may have been lost
 * @seen_lost: of these, those after which the state was doubted
 * @sideband_news: how often the side-band of a session had something new
 * @group: of the rounds that were evicted
 * @in_group: a group has begun
 * @group_pos: its position
 * @folded: position before which all rounds are in @sideband
 * @closed: nothing is stored any more
 */
struct flight_store {
	const struct flight_opts	*opts;
	struct evlist			*evlist;
	struct ring_store		*ring;
	struct fair_store		*fair;
	struct sideband_store		*sideband;
	struct fold_order		*order;
	char				*preamble;
	size_t				preamble_len;
	struct dump_cover		*covers;
	u64				missed;
	u64				told_given_up;
	u64				lost_events;
	u64				seen_lost;
	u64				sideband_news;
	struct round_group		group;
	bool				in_group;
	u64				group_pos;
	u64				folded;
	bool				closed;
};

int flight_store__init(struct flight_store *st, const struct flight_opts *opts,
		       struct evlist *evlist);
void flight_store__exit(struct flight_store *st);

void flight_store__append(struct flight_store *st, const void *buf, size_t size);
int flight_store__put_synthesized(struct flight_store *st, const void *buf, size_t size);
void flight_store__finish_round(struct flight_store *st, u64 now);
void flight_store__recover(struct flight_store *st);

void flight_store__missed(struct flight_store *st, u64 bytes, bool sideband);
void flight_store__cover(struct flight_store *st, int cpu, const char *way, u64 missed);
u64 flight_store__tell(struct flight_store *st);
void flight_store__set_told(struct flight_store *st, u64 given_up);

bool flight_store__is_open(const struct flight_store *st);
void flight_store__flush(struct flight_store *st);
void flight_store__fence(struct flight_store *st);
void flight_store__unfence(struct flight_store *st);
int flight_store__take_waiting(struct flight_store *st, union perf_event ***events);
void flight_store__forked(struct flight_store *st);

const struct ring_store_stats *flight_store__stats(const struct flight_store *st);
u64 flight_store__used(const struct flight_store *st);
u64 flight_store__window(const struct flight_store *st, u64 now);

#endif /* __PERF_FLIGHT_STORE_H */
