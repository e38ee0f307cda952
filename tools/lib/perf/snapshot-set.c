// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots of several buffers, close together
 *
 * A dump of a machine consists of one buffer for each CPU. The buffers cover the same time
 * only if their copies follow each other closely. Therefore perf_snapshot_set__take() makes
 * two passes over the set: the first one allocates and populates memory, the second one
 * copies. The caller looks at the records and writes them afterwards.
 *
 * A set does not own its snapshots. A reader can keep them together with other data of the
 * buffer, and a snapshot can be in several sets.
 *
 * The cost is two passes over the snapshots, and the bytes that are copied. For incremental
 * snapshots, these are the new records, regardless of the size of the buffers.
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

void perf_snapshot_set__trim(struct perf_snapshot_set *set)
{
	size_t i;

	for (i = 0; i < set->nr; i++)
		perf_snapshot__trim(set->snaps[i]);
}

int perf_snapshot_set__take(struct perf_snapshot_set *set, unsigned int flags)
{
	size_t i, nr_taken = 0;
	int ret = 0;

	/* Errors are ignored here: perf_snapshot__take() returns them. */
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
