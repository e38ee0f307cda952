/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_HITS_H
#define __PERF_EXPORT_HITS_H

#include "interner.h"

/**
 * struct export_hit - key of samples that are added up
 * @event: index of the event
 * @stack: number of the stack
 * @task: number of the task
 */
struct export_hit {
	u32	event;
	u32	stack;
	u32	task;
};

/**
 * struct export_sum - samples that were added up
 * @samples: number of them
 * @period: sum of their periods
 */
struct export_sum {
	u64	samples;
	u64	period;
};

/**
 * struct export_hits - samples, added up by event, stack and task
 * @keys: of struct export_hit
 * @sums: by number of the key
 * @nr_alloc: room in @sums
 */
struct export_hits {
	struct interner		keys;
	struct export_sum	*sums;
	u32			nr_alloc;
};

u32 export_hits__add(struct export_hits *hits, const struct export_hit *key, u64 period);
void export_hits__exit(struct export_hits *hits);

static inline const struct export_hit *export_hits__key(const struct export_hits *hits, u32 nr)
{
	return interner__key(&hits->keys, nr);
}

#endif /* __PERF_EXPORT_HITS_H */
