/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FOLLOW_H
#define __PERF_FLIGHT_FOLLOW_H

#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct persistent_reader;
struct persistent_session;

/**
 * struct session_follow - a session that is read, and changes
 * @reader: reads it
 * @memory: bytes that its buffers, and the copies of new records, may take
 * @fair: the samples are kept by cgroup
 * @refused: ids of events that cannot be read, until an event has left the session
 * @nr_refused: number of them
 * @refused_memory: what those need that are refused for lack of memory, in bytes
 * @found: the session that takes the place of the one that has ended
 * @news: the evlist of @found
 * @why: out: why what is new cannot be read, in words; empty: it can
 */
struct session_follow {
	struct persistent_reader	*reader;
	u64				memory;
	bool				fair;
	u64				*refused;
	int				nr_refused;
	u64				refused_memory;
	struct persistent_session	*found;
	struct evlist			*news;
	char				why[256];
};

u64 session_follow__memory(const struct persistent_reader *r);
int session_follow__mark(struct session_follow *f);
void session_follow__forget(struct session_follow *f);
int session_follow__extend(struct session_follow *f);
int session_follow__find(struct session_follow *f);
int session_follow__replace(struct session_follow *f);
void session_follow__exit(struct session_follow *f);

#endif /* __PERF_FLIGHT_FOLLOW_H */
