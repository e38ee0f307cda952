/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent sessions created by the kernel. They record from the time at which they are
 * started and are read like any other session. See kernel/events/persistent/boot.c.
 */
#ifndef _LINUX_PERF_PERSISTENT_H
#define _LINUX_PERF_PERSISTENT_H

#include <linux/err.h>
#include <linux/errno.h>
#include <uapi/linux/perf_persistent.h>

struct perf_persistent_session;

#ifdef CONFIG_PERF_PERSISTENT

struct perf_persistent_session *perf_persistent_start(const char *name, const char *events,
						      unsigned long size);
void perf_persistent_stop(struct perf_persistent_session *session);
void perf_persistent_lockup(void);

#else /* !CONFIG_PERF_PERSISTENT */

static inline struct perf_persistent_session *
perf_persistent_start(const char *name, const char *events, unsigned long size)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void perf_persistent_stop(struct perf_persistent_session *session) { }

static inline void perf_persistent_lockup(void) { }

#endif /* CONFIG_PERF_PERSISTENT */

#endif /* _LINUX_PERF_PERSISTENT_H */
