/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_BLAME_H
#define __PERF_VERDICT_BLAME_H

#include "history.h"

/* What a wait comes down to, at the end of its chain */
enum verdict_root {
	ROOT_UNKNOWN,
	ROOT_RAN,		/* the task ran */
	ROOT_SLEPT,		/* it slept for a time that it chose */
	ROOT_CPU,		/* a task of higher priority had the CPU of the last of the chain */
	ROOT_SHARED,		/* tasks of the same priority or a lower one had it: its share */
	ROOT_OPEN,		/* nobody woke it until the last record */
	ROOT_QUOTA,		/* its CPU was idle: it might not run */
	ROOT_DISK,		/* a request of it was in a block device */
	ROOT_RECLAIM,		/* it reclaimed memory */
	ROOT_INTERRUPT,		/* an interrupt or a softirq had its CPU for long */
	ROOT_THROTTLED,		/* it had to wait because of the memory that is used */
	ROOT_NR,
};

/* Chains are told to this length. */
#define VERDICT_CHAIN	8

/**
 * struct verdict_link - a part of a chain
 * @task: who
 * @root: what it comes down to, if this is the last link; else ROOT_UNKNOWN
 * @object: for ROOT_DISK, number of the device; for ROOT_INTERRUPT and ROOT_RECLAIM, index of
 *	the source, or of the pool; for ROOT_THROTTLED, CLASS_OVER_HIGH or CLASS_DIRTY
 * @class: in what it waited, if it did
 * @unknown: it is not known whether it did: records are missing
 * @place: index of where, or VERDICT_NONE
 * @function: in which it was found most, if it ran; or NULL
 * @start: from when on that held up the task of the link before
 * @end: until when
 * @ns: how much of this time it did so
 */
struct verdict_link {
	u32		task;
	u32		object;
	u8		root;
	u8		class;
	bool		unknown;
	u32		place;
	const char	*function;
	u64		start;
	u64		end;
	u64		ns;
};

/*
 * @culprit: index of a task; for ROOT_DISK, number of the device; for ROOT_INTERRUPT and
 *	ROOT_RECLAIM, index of the source, or of the pool; for ROOT_THROTTLED, CLASS_OVER_HIGH or
 *	CLASS_DIRTY
 */
typedef int (*verdict_blame_t)(void *ctx, enum verdict_root root, u32 culprit, u64 ns);

int verdict_blame__wait(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			u64 start, u64 end, verdict_blame_t blame, void *ctx);
int verdict_blame__delay(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			 u64 start, u64 end, verdict_blame_t blame, void *ctx);
int verdict_blame__chain(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			 u64 start, u64 end, struct verdict_link *links);
void verdict_blame__spans(const struct verdict_history *h, u32 task, enum verdict_root root,
			  u64 start, u64 end, struct verdict_link *link);
u64 verdict_blame__reclaim(const struct verdict_history *h, u32 task,
			   const struct verdict_span *span);
u64 verdict_blame__disk(const struct verdict_history *h, u32 task, const struct verdict_wait *w);
const char *verdict_blame__function(const struct verdict_history *h, u32 task, u64 start,
				    u64 end);

/* So much of a wait its task could have run */
static inline u64 verdict_wait__runnable(const struct verdict_wait *w)
{
	return w->woken && w->end > w->woken ? w->end - w->woken : 0;
}

/* So much of a wait its task could not have run */
static inline u64 verdict_wait__blocked(const struct verdict_wait *w)
{
	return (w->woken ?: w->end) - w->start;
}

#endif /* __PERF_VERDICT_BLAME_H */
