/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Call stacks of the branch records in samples of software events
 */
#ifndef _LINUX_PERF_BRANCH_SNAPSHOT_H
#define _LINUX_PERF_BRANCH_SNAPSHOT_H

#include <linux/perf_event.h>

/**
 * struct perf_branch_snapshot - how a PMU gives the call stack of user space
 * @prepare: allocate what @take needs; called when an event that asks is opened, and
 *	     may sleep. Returns 0 or -ENOMEM.
 * @take: return the call stack of the current task in user space, or NULL if it is not
 *	  known. Any context, with preemption disabled. Until the task has been switched
 *	  out, or has returned to user space, later calls on this CPU return NULL or
 *	  leave what an earlier one has returned as it is.
 */
struct perf_branch_snapshot {
	int			  (*prepare)(void);
	struct perf_branch_stack *(*take)(void);
};

#ifdef CONFIG_PERF_CTX_DATA
const struct perf_branch_snapshot *
perf_branch_snapshot_register(const struct perf_branch_snapshot *snapshot);

int perf_branch_snapshot_init(struct perf_event *event);
bool perf_branch_snapshot_save(struct perf_sample_data *data, struct perf_event *event);
#else
static inline int perf_branch_snapshot_init(struct perf_event *event)
{
	return has_branch_stack(event) ? -EOPNOTSUPP : 0;
}

static inline bool perf_branch_snapshot_save(struct perf_sample_data *data,
					     struct perf_event *event)
{
	return false;
}
#endif /* CONFIG_PERF_CTX_DATA */

#endif /* _LINUX_PERF_BRANCH_SNAPSHOT_H */
