/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: why a call is refused
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_TRACE_H
#define _KERNEL_EVENTS_PERSISTENT_TRACE_H

int perf_persistent_refuse(int err, const char *reason);

#endif /* _KERNEL_EVENTS_PERSISTENT_TRACE_H */
