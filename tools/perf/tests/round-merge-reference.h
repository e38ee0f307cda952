/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TESTS_ROUND_MERGE_REFERENCE_H
#define __PERF_TESTS_ROUND_MERGE_REFERENCE_H

#include <string.h>
#include <linux/types.h>

/*
 * The order of the round merge found in the plainest way there is: of all that
 * wait, the first one with the lowest (time, rank).
 */

/* What waits, in the order of its arrival. */
struct reference_event {
	u64	time;
	u64	rank;
	u64	serial;
};

struct reference {
	struct reference_event	*events;
	unsigned int		nr;
};

static inline void reference__add(struct reference *ref, u64 time, u64 rank, u64 serial)
{
	ref->events[ref->nr++] = (struct reference_event) {
		.time = time, .rank = rank, .serial = serial,
	};
}

static inline unsigned int reference__first(const struct reference *ref)
{
	unsigned int i, first = 0;

	for (i = 1; i < ref->nr; i++) {
		const struct reference_event *a = &ref->events[i], *b = &ref->events[first];

		if (a->time < b->time || (a->time == b->time && a->rank < b->rank))
			first = i;
	}
	return first;
}

static inline void reference__remove(struct reference *ref, unsigned int i)
{
	ref->nr--;
	memmove(ref->events + i, ref->events + i + 1, (ref->nr - i) * sizeof(*ref->events));
}

#endif /* __PERF_TESTS_ROUND_MERGE_REFERENCE_H */
