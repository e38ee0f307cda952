/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent perf events in memory that survives a reset. See
 * kernel/events/persistent/blackbox.c.
 */
#ifndef _LINUX_PERF_BLACKBOX_H
#define _LINUX_PERF_BLACKBOX_H

#ifdef CONFIG_PERF_PERSISTENT_BLACKBOX
void perf_blackbox_panic(const char *message);
void perf_blackbox_crash(void);
void perf_blackbox_vmcoreinfo(void);
#else
static inline void perf_blackbox_panic(const char *message) { }
static inline void perf_blackbox_crash(void) { }
static inline void perf_blackbox_vmcoreinfo(void) { }
#endif

#endif /* _LINUX_PERF_BLACKBOX_H */
