/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_PERSISTENT_JOIN_LOCK_H
#define __PERF_PERSISTENT_JOIN_LOCK_H

#include <linux/types.h>

/**
 * struct join_lock - the right to join a CPU to a session
 * @fd: of the locked file, or -1 without one
 */
struct join_lock {
	int	fd;
};

int join_lock__take(struct join_lock *lock, u64 id, const char *name);
void join_lock__give_back(struct join_lock *lock);

#endif /* __PERF_PERSISTENT_JOIN_LOCK_H */
