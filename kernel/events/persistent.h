/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: the steps at which core.c and ring_buffer.c call us.
 * With CONFIG_PERF_PERSISTENT=n each of them compiles to nothing.
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_H
#define _KERNEL_EVENTS_PERSISTENT_H

#include <linux/perf_event.h>

#include "internal.h"

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
 * The buffer's watermark was crossed and what crossed it is published: let each
 * reader's poll() know, see perf_persistent_poll().
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
int perf_persistent_set_output(struct perf_event *event, struct perf_event *output_event);
int perf_persistent_redirected(struct perf_event *event);
int perf_persistent_toggle_paused(struct perf_buffer *rb, bool pause);
bool perf_persistent_mkwrite(struct perf_event *event);
void perf_persistent_offline(struct perf_event *event);
bool perf_persistent_enable(struct perf_event *event, unsigned int cmd);

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

static inline int perf_persistent_set_output(struct perf_event *event,
					     struct perf_event *output_event)
{
	return 0;
}

static inline int perf_persistent_redirected(struct perf_event *event)
{
	return 0;
}

static inline int perf_persistent_toggle_paused(struct perf_buffer *rb, bool pause)
{
	rb_toggle_paused(rb, pause);
	return 0;
}

static inline bool perf_persistent_mkwrite(struct perf_event *event)
{
	return true;
}

static inline void perf_persistent_offline(struct perf_event *event) { }

static inline bool perf_persistent_enable(struct perf_event *event, unsigned int cmd)
{
	return false;
}

#endif /* CONFIG_PERF_PERSISTENT */

#endif /* _KERNEL_EVENTS_PERSISTENT_H */
