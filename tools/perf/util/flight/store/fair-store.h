/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FAIR_STORE_H
#define __PERF_FLIGHT_FAIR_STORE_H

#include "ring-store.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct fair_store;

/**
 * typedef fair_store_group_t - a group of records is complete
 * @group: its number
 * @data: the argument of fair_store__new() or of the walk
 *
 * Return: 0 to continue; any other value ends a walk and is returned.
 */
typedef int (*fair_store_group_t)(u32 group, void *data);

/**
 * struct fair_share - what is there of a cgroup
 * @id: the cgroup; 0: all cgroups that have no queue of their own
 * @complete_since: time of the newest record of it that was evicted, 0: none was
 * @bytes: bytes of its records
 */
struct fair_share {
	u64		id;
	u64		complete_since;
	u64		bytes;
};

struct fair_store *fair_store__new(size_t size, struct evlist *evlist,
				   ring_store_record_t evict, fair_store_group_t gone,
				   void *data);
void fair_store__delete(struct fair_store *fs);
const char *fair_store__check(struct evlist *evlist);

void fair_store__append(struct fair_store *fs, const void *piece, size_t len);
void fair_store__close_round(struct fair_store *fs, u64 time);
void fair_store__set_budget(struct fair_store *fs, size_t budget);
void fair_store__evict_before(struct fair_store *fs, u64 time);
void fair_store__fold_old(struct fair_store *fs);

u32 fair_store__group(const struct fair_store *fs);
u32 fair_store__oldest_group(const struct fair_store *fs);
u64 fair_store__window(const struct fair_store *fs, u64 now);

int fair_store__walk(struct fair_store *fs, ring_store_record_t fn, fair_store_group_t end,
		     void *data);
u32 fair_store__walking(const struct fair_store *fs);
u32 fair_store__nr_shares(const struct fair_store *fs);
bool fair_store__share(struct fair_store *fs, u32 queue, struct fair_share *share);
u64 fair_store__complete_since(const struct fair_store *fs);
u64 fair_store__names_since(const struct fair_store *fs);

void fair_store__fence(struct fair_store *fs);
void fair_store__unfence(struct fair_store *fs);
void fair_store__forked(struct fair_store *fs);
void fair_store__walk_again(struct fair_store *fs);
void fair_store__walk_last(struct fair_store *fs);
u64 fair_store__stolen(const struct fair_store *fs);
u64 fair_store__memory(const struct fair_store *fs);

const struct ring_store_stats *fair_store__stats(struct fair_store *fs);

#endif /* __PERF_FLIGHT_FAIR_STORE_H */
