/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: where core.c and ring_buffer.c call them. With
 * CONFIG_PERF_PERSISTENT=n each of these compiles to nothing.
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_HOOKS_H
#define _KERNEL_EVENTS_PERSISTENT_HOOKS_H

#include <linux/perf_event.h>

#include "../internal.h"

#ifdef CONFIG_PERF_PERSISTENT

/* Does the event belong to a session? Once it does, it does until it is freed. */
static inline bool is_persistent_event(struct perf_event *event)
{
	return READ_ONCE(event->persistent);
}

static inline bool is_persistent_attr(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_PERSISTENT;
}

/*
 * The records that crossed the buffer's watermark are published: count it for each
 * reader's poll(), see perf_persistent_poll().
 */
static inline void perf_persistent_wakeup(struct perf_buffer *rb)
{
	/* Publishing data_head comes first, pairs with perf_persistent_poll() */
	smp_mb__before_atomic();
	atomic_inc(&rb->wakeups);
}

int perf_persistent_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
			 int group_fd, unsigned long flags);
long perf_persistent_ioctl(struct perf_event *event, unsigned int cmd, unsigned long arg);
bool perf_persistent_release(struct perf_event *event);

#else /* !CONFIG_PERF_PERSISTENT */

static inline bool is_persistent_event(struct perf_event *event)
{
	return false;
}

static inline bool is_persistent_attr(const struct perf_event_attr *attr)
{
	return false;
}

static inline void perf_persistent_wakeup(struct perf_buffer *rb) { }

static inline int perf_persistent_open(const struct perf_event_attr *attr, pid_t pid,
				       int cpu, int group_fd, unsigned long flags)
{
	return -ENOENT;
}

static inline long perf_persistent_ioctl(struct perf_event *event, unsigned int cmd,
					 unsigned long arg)
{
	return -ENOIOCTLCMD;
}

static inline bool perf_persistent_release(struct perf_event *event)
{
	return false;
}

#endif /* CONFIG_PERF_PERSISTENT */

#endif /* _KERNEL_EVENTS_PERSISTENT_HOOKS_H */
