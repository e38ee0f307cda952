/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FOLLOW_H
#define __PERF_FLIGHT_FOLLOW_H

#include <linux/types.h>
#include <stdbool.h>

struct perf_session;
struct persistent_reader;

/**
 * struct session_follow - a session that is read, and changes
 * @reader: reads it
 * @memory: bytes that its buffers, and the copies of new records, may take
 * @fair: the samples are kept by cgroup
 * @refused: ids of events that cannot be read, until an event leaves the session
 * @nr_refused: number of them
 * @why: out: why what is new cannot be read, in words; empty: it can
 */
struct session_follow {
	struct persistent_reader	*reader;
	u64				memory;
	bool				fair;
	u64				*refused;
	int				nr_refused;
	char				why[256];
};

u64 session_follow__memory(const struct persistent_reader *r);
bool session_follow__mark(struct session_follow *f);
int session_follow__extend(struct session_follow *f);
int session_follow__replace(struct session_follow *f);
void session_follow__exit(struct session_follow *f);

#endif /* __PERF_FLIGHT_FOLLOW_H */
