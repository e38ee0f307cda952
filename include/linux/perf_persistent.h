/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Perf sessions of the kernel's own, which record from the moment on at which they
 * are started, and are read as any persistent session is. See
 * kernel/events/persistent/boot.c.
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

#else /* !CONFIG_PERF_PERSISTENT */

static inline struct perf_persistent_session *
perf_persistent_start(const char *name, const char *events, unsigned long size)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void perf_persistent_stop(struct perf_persistent_session *session) { }

#endif /* CONFIG_PERF_PERSISTENT */

#endif /* _LINUX_PERF_PERSISTENT_H */
