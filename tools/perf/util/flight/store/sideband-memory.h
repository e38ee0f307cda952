/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SIDEBAND_MEMORY_H
#define __PERF_FLIGHT_SIDEBAND_MEMORY_H

#include <linux/types.h>
#include <linux/zalloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Overhead of an allocation. */
#define SIDEBAND_MALLOC_OVERHEAD	16

/**
 * struct sideband_stats - content of the store
 * @used: bytes of memory
 * @processes: processes described
 * @threads: their threads
 * @maps: their mappings; those that processes share after a fork are counted once
 * @kernel: records that describe the kernel
 * @dropped: records dropped because of the limit or missing memory
 */
struct sideband_stats {
	size_t		used;
	u64		processes;
	u64		threads;
	u64		maps;
	u64		kernel;
	u64		dropped;
};

struct heap_step;

/**
 * struct sideband_memory - the memory of a side-band store
 * @limit: maximum in bytes
 * @stats: what is used, and how often the limit was reached
 * @step: the highest step, see sideband-memory.c
 * @next_step: the address from which on there is to be another one
 */
struct sideband_memory {
	size_t			limit;
	struct sideband_stats	*stats;
	struct heap_step	*step;
	unsigned long		next_step;
};

void sideband_memory__init(struct sideband_memory *m, size_t limit, struct sideband_stats *stats);
void sideband_memory__add_step(struct sideband_memory *m, const void *p, size_t size);
void sideband_memory__give_back(struct sideband_memory *m);
void sideband_memory__exit(struct sideband_memory *m);

/* Return whether @size bytes are within the limit. */
static inline bool sideband_memory__has(const struct sideband_memory *m, size_t size)
{
	return m->stats->used + size + SIDEBAND_MALLOC_OVERHEAD <= m->limit;
}

/* Zeroed memory, for sideband_memory__free(); NULL if the limit is reached. */
static inline void *sideband_memory__alloc(struct sideband_memory *m, size_t size)
{
	void *p = sideband_memory__has(m, size) ? zalloc(size) : NULL;

	if (!p) {
		m->stats->dropped++;
		return NULL;
	}
	m->stats->used += size + SIDEBAND_MALLOC_OVERHEAD;
	if ((unsigned long)p >= m->next_step)
		sideband_memory__add_step(m, p, size);
	return p;
}

/* @size: what was allocated */
static inline void sideband_memory__free(struct sideband_memory *m, void *p, size_t size)
{
	if (!p)
		return;
	m->stats->used -= size + SIDEBAND_MALLOC_OVERHEAD;
	free(p);
}

#endif /* __PERF_FLIGHT_SIDEBAND_MEMORY_H */
