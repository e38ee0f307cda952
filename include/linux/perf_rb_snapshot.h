/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_PERF_RB_SNAPSHOT_H
#define _LINUX_PERF_RB_SNAPSHOT_H

#include <linux/compiler_types.h>
#include <linux/errno.h>

struct perf_event;

#ifdef CONFIG_PERF_RB_SNAPSHOT

long perf_rb_reserved_ioctl(struct perf_event *event, unsigned int cmd,
			    void __user *arg);

#else /* !CONFIG_PERF_RB_SNAPSHOT */

static inline long perf_rb_reserved_ioctl(struct perf_event *event,
					  unsigned int cmd, void __user *arg)
{
	return -ENOIOCTLCMD;
}

#endif /* CONFIG_PERF_RB_SNAPSHOT */

#endif /* _LINUX_PERF_RB_SNAPSHOT_H */
