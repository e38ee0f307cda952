/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FAIR_MEMORY_H
#define __PERF_FLIGHT_FAIR_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* No chunk. */
#define FAIR_NONE	(-1U)

/**
 * struct fair_chunk - a chunk of a queue
 * @next: the next one of the queue, or FAIR_NONE
 * @first: offset of the first record that begins in it; the size of a chunk: none does
 * @group: group of that record, unless a mark precedes it
 * @epoch: number of the fence before which it was filled
 * @pass: CLOCK_MONOTONIC of a pass before its last records, in ns
 * @newest: time of the newest record of the queue up to its end
 */
struct fair_chunk {
	u32		next;
	u32		first;
	u32		group;
	u32		epoch;
	u64		pass;
	u64		newest;
};

struct fair_memory;

struct fair_memory *fair_memory__new(u64 size);
void fair_memory__delete(struct fair_memory *fm);

size_t fair_memory__chunk_size(const struct fair_memory *fm);
u32 fair_memory__nr(const struct fair_memory *fm);
u32 fair_memory__limit(const struct fair_memory *fm);
void fair_memory__set_budget(struct fair_memory *fm, u64 budget);

u32 fair_memory__get(struct fair_memory *fm);
void fair_memory__put(struct fair_memory *fm, u32 slot);
struct fair_chunk *fair_memory__chunk(struct fair_memory *fm, u32 slot);
void *fair_memory__at(const struct fair_memory *fm, u32 slot);

void fair_memory__fence(struct fair_memory *fm);
void fair_memory__unfence(struct fair_memory *fm);

void fair_memory__walk_again(struct fair_memory *fm);
void fair_memory__passed(struct fair_memory *fm, u32 slot);
bool fair_memory__is_taken(const struct fair_memory *fm, u32 slot);

u64 fair_memory__used(const struct fair_memory *fm);

#endif /* __PERF_FLIGHT_FAIR_MEMORY_H */
