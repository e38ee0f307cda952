/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: the functions that core.c and ring_buffer.c call. With
 * CONFIG_PERF_PERSISTENT=n each of them compiles to nothing.
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
 * reader's poll(), see perf_persistent_poll(). Only a sealed buffer has such readers.
 */
static inline void perf_persistent_wakeup(struct perf_buffer *rb)
{
	if (!perf_rb_sealed(rb))
		return;

	/* Publishing data_head comes first, pairs with perf_persistent_poll() */
	smp_mb__before_atomic();
	atomic_inc(&rb->wakeups);
}

/*
 * The header page is also mapped by readers that may not use rdpmc. They get the count by
 * read(). The index in the page is 0 as well, see perf_event_update_userpage().
 */
static inline void perf_persistent_update_userpage(struct perf_event *event,
						   struct perf_event_mmap_page *page)
{
	if (is_persistent_event(event))
		page->cap_user_rdpmc = 0;
}

void perf_persistent_note_opener(struct perf_event *event);
int perf_persistent_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
			 int group_fd, unsigned long flags);
long perf_persistent_ioctl(struct perf_event *event, unsigned int cmd, unsigned long arg);
bool perf_persistent_release(struct perf_event *event);
void perf_persistent_cgroup_offline(struct perf_cgroup *cgrp);

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

static inline void perf_persistent_update_userpage(struct perf_event *event,
						   struct perf_event_mmap_page *page) { }

static inline void perf_persistent_note_opener(struct perf_event *event) { }

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

static inline void perf_persistent_cgroup_offline(struct perf_cgroup *cgrp) { }

#endif /* CONFIG_PERF_PERSISTENT */

#endif /* _KERNEL_EVENTS_PERSISTENT_HOOKS_H */
