/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FAIR_CGROUPS_H
#define __PERF_FLIGHT_FAIR_CGROUPS_H

#include "../../sample-layout.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct evsel;
union perf_event;

/* The queues that are always there. */
enum {
	/* side-band, and other records that tell of no cgroup */
	FAIR_QUEUE__COMMON,
	/* cgroups that have no queue of their own */
	FAIR_QUEUE__OTHERS,
	FAIR_QUEUE__FIRST,
};

/**
 * struct fair_queue - the records of a cgroup
 * @id: the cgroup
 * @first: the oldest chunk, or FAIR_NONE
 * @last: the newest chunk
 * @to: where the next record goes
 * @room: bytes left in @last
 * @group: of the last record
 * @newest: time of the newest record so far
 * @cut: time of the newest record that was evicted; later ones are all here
 * @bytes: of records in it
 * @hash: the next queue with the same hash of the id, or 0
 */
struct fair_queue {
	u64		id;
	u32		first;
	u32		last;
	unsigned char	*to;
	u32		room;
	u32		group;
	u64		newest;
	u64		cut;
	u64		bytes;
	u32		hash;
};

/**
 * struct fair_cgroups - the queues, by cgroup
 * @queues: all of them
 * @held: by queue: number of its chunks
 * @nr: queues from 0 on that may be in use
 * @max: number of @queues
 * @mask: of the hash table
 * @table: by hash of the id: number of the first queue, or 0
 * @unused: the first queue of those that are not in use, linked by their @hash; 0: none
 */
struct fair_cgroups {
	struct fair_queue	*queues;
	u32			*held;
	u32			nr;
	u32			max;
	u32			mask;
	u32			*table;
	u32			unused;
};

int fair_cgroups__init(struct fair_cgroups *fc, u32 max);
void fair_cgroups__exit(struct fair_cgroups *fc);
u32 fair_cgroups__find(const struct fair_cgroups *fc, u64 id);
u32 fair_cgroups__add(struct fair_cgroups *fc, u64 id);
void fair_cgroups__remove(struct fair_cgroups *fc, u32 queue);

/**
 * struct fair_layout - where a record says what cgroup it is of
 * @words: the other words
 * @cgroup: bytes from the end of a sample to the id of its cgroup
 */
struct fair_layout {
	struct sample_layout	words;
	unsigned int		cgroup;
};

const char *fair_layout__check(const struct evsel *evsel);
void fair_layout__init(struct fair_layout *layout, const struct evsel *evsel);
bool fair_layout__is_same(const struct fair_layout *a, const struct fair_layout *b);

#endif /* __PERF_FLIGHT_FAIR_CGROUPS_H */
