/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RING_STORE_H
#define __PERF_FLIGHT_RING_STORE_H

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Upper limit of the delay between taking the time of a record and publishing it,
 * in ns.
 */
#define FLIGHT_ROUND_TIME	(500 * NSEC_PER_MSEC)

union perf_event;
struct ring_store;

/**
 * typedef ring_store_record_t - process a record of a round
 * @event: the record, whole and in one piece; valid during the call
 * @data: the argument of the walk
 *
 * Return: 0 to continue; any other value ends the walk and is returned.
 */
typedef int (*ring_store_record_t)(union perf_event *event, void *data);

/**
 * typedef ring_store_gone_t - called after all records of a round were evicted
 * @pos: start of the round
 * @time: when it was closed, CLOCK_MONOTONIC in ns
 * @data: the argument of ring_store__new()
 */
typedef void (*ring_store_gone_t)(u64 pos, u64 time, void *data);

/**
 * struct ring_store_round - a round that is in the store
 * @pos: position of its first record
 * @len: bytes used for its records
 * @raw: bytes of its records; equal to @len if they are not compressed
 * @time: when it was closed, CLOCK_MONOTONIC in ns
 * @next: position of the next round
 */
struct ring_store_round {
	u64		pos;
	u64		len;
	u64		raw;
	u64		time;
	u64		next;
};

/**
 * struct round_group - rounds between two FINISHED_ROUND marks
 * @end: when the last round of the previous group was closed
 * @last: when the last round was closed
 */
struct round_group {
	u64		end;
	u64		last;
};

/**
 * struct ring_store_stats - statistics of the store
 * @bytes: bytes of records in the store
 * @used: bytes of memory used for them
 * @rounds: closed rounds in the store
 * @evicted_rounds: rounds evicted so far
 * @evicted_bytes: bytes of their records
 * @refused_bytes: bytes of records that did not fit
 * @broken_bytes: bytes that are not valid records
 * @stolen_bytes: in a child: bytes that the recorder has overwritten before they were read
 */
struct ring_store_stats {
	u64		bytes;
	u64		used;
	u64		rounds;
	u64		evicted_rounds;
	u64		evicted_bytes;
	u64		refused_bytes;
	u64		broken_bytes;
	u64		stolen_bytes;
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

void ring_store__fence(struct ring_store *rs);
void ring_store__unfence(struct ring_store *rs);
void ring_store__forked(struct ring_store *rs);
void ring_store__walk_again(struct ring_store *rs);
void ring_store__walk_last(struct ring_store *rs);
void ring_store__passed(struct ring_store *rs, const struct ring_store_round *round);
u64 ring_store__stolen(const struct ring_store *rs);
u64 ring_store__memory(const struct ring_store *rs);

u64 ring_store__tail(const struct ring_store *rs);
u64 ring_store__head(const struct ring_store *rs);
const struct ring_store_stats *ring_store__stats(const struct ring_store *rs);

#endif /* __PERF_FLIGHT_RING_STORE_H */
