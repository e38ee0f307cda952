// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots of several buffers, close together
 *
 * A dump of a machine is made of one buffer for each CPU. What is slow, and does not have to
 * be done between the first copy and the last, would let the buffers cover different times:
 * page faults in fresh memory, looking at records, writing them. So a take has two passes
 * over the set. The first one allocates, the second one copies; all else is the caller's,
 * after that.
 *
 * A set does not own its snapshots. Readers keep them with what they know of a buffer, and a
 * thread may read some of the buffers that another one reads as a whole.
 *
 * A take costs two passes over the snapshots and the bytes that are copied: incremental, the
 * work is linear in what is new, however large the buffers are.
 */
#include <errno.h>
#include <stdlib.h>

#include <perf/snapshot.h>

struct perf_snapshot_set {
	struct perf_snapshot	**snaps;
	size_t			nr;
	size_t			room;
};

struct perf_snapshot_set *perf_snapshot_set__new(void)
{
	return calloc(1, sizeof(struct perf_snapshot_set));
}

void perf_snapshot_set__delete(struct perf_snapshot_set *set)
{
	if (!set)
		return;
	free(set->snaps);
	free(set);
}

int perf_snapshot_set__add(struct perf_snapshot_set *set, struct perf_snapshot *snap)
{
	if (!snap)
		return -EINVAL;

	if (set->nr == set->room) {
		size_t room = set->room ? 2 * set->room : 8;
		struct perf_snapshot **snaps = realloc(set->snaps, room * sizeof(*snaps));

		if (!snaps)
			return -ENOMEM;
		set->snaps = snaps;
		set->room = room;
	}
	set->snaps[set->nr++] = snap;
	return 0;
}

size_t perf_snapshot_set__nr(const struct perf_snapshot_set *set)
{
	return set->nr;
}

struct perf_snapshot *perf_snapshot_set__get(const struct perf_snapshot_set *set, size_t i)
{
	return i < set->nr ? set->snaps[i] : NULL;
}

int perf_snapshot_set__prepare(struct perf_snapshot_set *set, unsigned int flags)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < set->nr; i++) {
		int err = perf_snapshot__prepare(set->snaps[i], flags);

		if (err)
			ret = err;
	}
	return ret;
}

void perf_snapshot_set__release(struct perf_snapshot_set *set)
{
	size_t i;

	for (i = 0; i < set->nr; i++)
		perf_snapshot__release(set->snaps[i]);
}

int perf_snapshot_set__take(struct perf_snapshot_set *set, unsigned int flags)
{
	size_t i, nr_taken = 0;
	int ret = 0;

	/* What fails here is found again by the take. */
	perf_snapshot_set__prepare(set, flags);

	for (i = 0; i < set->nr; i++) {
		int err = perf_snapshot__take(set->snaps[i], flags);

		if (err)
			ret = err;
		else
			nr_taken++;
	}
	return nr_taken ? 0 : ret;
}
