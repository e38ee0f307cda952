/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_RECLAIM_H
#define __PERF_VERDICT_RECLAIM_H

#include <linux/types.h>
#include <stdbool.h>

struct verdict_history;

/**
 * struct verdict_pool - of what memory was reclaimed
 * @limited: that of a cgroup with a limit; else that of the machine
 * @cgroup: name of the cgroup of the task, or NULL if it was not recorded
 */
struct verdict_pool {
	bool		limited;
	const char	*cgroup;
};

struct verdict_pools {
	struct verdict_pool	*pools;
	u32			nr;
	u32			max;
};

/**
 * struct verdict_reclaiming - what a task reclaims
 * @since: from when on; 0: it does not
 * @limited: memory of a cgroup
 */
struct verdict_reclaiming {
	u64	since;
	bool	limited;
};

void verdict_reclaim__begin(struct verdict_history *h, u32 task, bool limited, u64 time);
int verdict_reclaim__end(struct verdict_history *h, u32 task, const struct verdict_pool *pool,
			 u64 time);

#endif /* __PERF_VERDICT_RECLAIM_H */
