/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RING_STORE_H
#define __PERF_FLIGHT_RING_STORE_H

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Longer than a CPU is held up between taking the time of a record and publishing it,
 * in ns.
 */
#define FLIGHT_ROUND_TIME	(500 * NSEC_PER_MSEC)

union perf_event;
struct ring_store;

/**
 * typedef ring_store_record_t - take one record of a round
 * @event: the record, whole and in one piece; valid during the call
 * @data: what was given to the walk
 *
 * Return: 0 to go on, else the walk ends with this value.
 */
typedef int (*ring_store_record_t)(union perf_event *event, void *data);

/**
 * typedef ring_store_gone_t - a round has been evicted, and all of its records shown
 * @pos: where it began
 * @time: when it was closed, CLOCK_MONOTONIC in ns
 * @data: what was given to ring_store__new()
 */
typedef void (*ring_store_gone_t)(u64 pos, u64 time, void *data);

/**
 * struct ring_store_round - a round that is in the store
 * @pos: position of its first record
 * @len: bytes that its records take
 * @raw: bytes of its records; as many as @len if they are not compressed
 * @time: when it was closed, CLOCK_MONOTONIC in ns
 * @next: position of the round behind it
 */
struct ring_store_round {
	u64		pos;
	u64		len;
	u64		raw;
	u64		time;
	u64		next;
};

/**
 * struct round_group - rounds that promise something together
 * @end: when the last round of the group before was closed
 * @last: when the last round was closed
 */
struct round_group {
	u64		end;
	u64		last;
};

/**
 * struct ring_store_stats - what went through the store
 * @bytes: bytes of records that it holds
 * @used: bytes of memory that it takes for them
 * @rounds: closed rounds that it holds
 * @evicted_rounds: rounds that went, ever
 * @evicted_bytes: bytes of records that went with them
 * @refused_bytes: bytes of records that no room could be made for
 * @broken_bytes: bytes in which no record could be found
 */
struct ring_store_stats {
	u64		bytes;
	u64		used;
	u64		rounds;
	u64		evicted_rounds;
	u64		evicted_bytes;
	u64		refused_bytes;
	u64		broken_bytes;
};

struct ring_store *ring_store__new(size_t size, ring_store_record_t evict, void *data);
void ring_store__delete(struct ring_store *rs);
void ring_store__evict_unseen(struct ring_store *rs, u32 type);
void ring_store__on_gone(struct ring_store *rs, ring_store_gone_t gone);
int ring_store__compress(struct ring_store *rs, int level);

int ring_store__append(struct ring_store *rs, const void *piece, size_t len);
void ring_store__close_round(struct ring_store *rs, u64 time);
void ring_store__flush(struct ring_store *rs);
bool ring_store__is_open(const struct ring_store *rs);

void ring_store__set_budget(struct ring_store *rs, size_t budget);
void ring_store__evict_before(struct ring_store *rs, u64 time);

bool round_group__ends(struct round_group *group, u64 time);
bool ring_store__first(const struct ring_store *rs, struct ring_store_round *round);
bool ring_store__next(const struct ring_store *rs, struct ring_store_round *round);
int ring_store__walk(struct ring_store *rs, const struct ring_store_round *round,
		     ring_store_record_t fn, void *data);

u64 ring_store__tail(const struct ring_store *rs);
u64 ring_store__head(const struct ring_store *rs);
const struct ring_store_stats *ring_store__stats(const struct ring_store *rs);

#endif /* __PERF_FLIGHT_RING_STORE_H */
