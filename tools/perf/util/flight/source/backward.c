// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's backward buffers as the store of a flight recorder (--overwrite)
 *
 * Nobody reads samples until there is a dump. Then the child that writes it copies the
 * buffers, live: it maps them once more, as mappings of ring buffers are not inherited,
 * and takes snapshots. What these take of memory is the child's.
 *
 * Side-band has buffers of its own, which the recorder reads all the time:
 *
 *	trigger, pass over the side-band begins at T, child is forked, samples are copied
 *
 * Samples from behind T may be of tasks whose side-band came behind that pass. They were
 * taken after the trigger, and are left out. A copy is walked twice for a dump; where the
 * first of them is, nearly at the end, is remembered for the second time.
 */
#include "backward.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../mmap.h"

#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <internal/lib.h>
#include <internal/mmap.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kernel_buffer {
	struct perf_snapshot	*snap;
	union perf_event	*late;		/* the first one that is left out */
	bool			walked;
	struct snapshot_cover	cover;
};

struct kernel_store {
	struct evlist			*evlist;
	struct perf_snapshot_set	*set;
	u64				until;
	int				nr;
	struct kernel_buffer		buffers[];
};

/* What goes wrong is in its cover. */
static void kernel_store__map(struct kernel_store *ks, struct mmap *map)
{
	struct kernel_buffer *kb = &ks->buffers[ks->nr++];
	int cpu = map->core.cpu.cpu;

	kb->snap = perf_snapshot__new_fd(map->core.fd, cpu, mmap__mmap_len(map) - page_size);
	kb->cover.cpu = cpu;
	kb->cover.err = kb->snap ? perf_snapshot_set__add(ks->set, kb->snap) : -errno;
}

/**
 * kernel_store__take - copy the backward buffers of an evlist
 * @evlist: the events
 * @until: time of the last record that is wanted
 *
 * A buffer that cannot be copied has an error in its cover.
 *
 * Return: the copies, or NULL if there is no memory.
 */
struct kernel_store *kernel_store__take(struct evlist *evlist, u64 until)
{
	int nr = evlist->core.nr_mmaps;
	struct kernel_store *ks = zalloc(sizeof(*ks) + nr * sizeof(*ks->buffers));

	if (!ks)
		return NULL;
	ks->evlist = evlist;
	ks->until = until;
	ks->set = perf_snapshot_set__new();
	if (!ks->set) {
		free(ks);
		return NULL;
	}

	for (int i = 0; i < nr; i++) {
		if (evlist->overwrite_mmap[i].core.base)
			kernel_store__map(ks, &evlist->overwrite_mmap[i]);
	}
	perf_snapshot_set__take(ks->set, 0);
	for (int i = 0; i < ks->nr; i++) {
		struct kernel_buffer *kb = &ks->buffers[i];

		if (!kb->cover.err)
			snapshot_cover__fill(&kb->cover, kb->cover.cpu, kb->snap, evlist);
		if (kb->cover.err)
			pr_err("The buffer of CPU %d could not be read: %s\n", kb->cover.cpu,
			       strerror(-kb->cover.err));
	}
	return ks;
}

void kernel_store__delete(struct kernel_store *ks)
{
	if (!ks)
		return;
	for (int i = 0; i < ks->nr; i++)
		perf_snapshot__delete(ks->buffers[i].snap);
	perf_snapshot_set__delete(ks->set);
	free(ks);
}

static bool is_late(struct kernel_store *ks, union perf_event *event)
{
	u64 time;

	return !evlist__parse_sample_timestamp(ks->evlist, event, &time) &&
	       time != -1ULL && time > ks->until;
}

static int kernel_buffer__walk(struct kernel_buffer *kb, struct kernel_store *ks,
			       ring_store_record_t fn, void *data)
{
	union perf_event *event = NULL;
	bool look = !kb->walked;
	int err;

	while ((event = perf_snapshot__newer(kb->snap, event)) != NULL) {
		look |= event == kb->late;
		if (look && is_late(ks, event)) {
			kb->late = kb->late ?: event;
			continue;
		}
		err = fn(event, data);
		if (err)
			return err;
	}
	kb->walked = true;
	return 0;
}

/**
 * kernel_store__walk - visit the records, buffer by buffer, the oldest ones first
 * @ks: the copies
 * @fn: called for each record
 * @data: passed to @fn
 *
 * Return: 0, or what @fn returned to end it.
 */
int kernel_store__walk(struct kernel_store *ks, ring_store_record_t fn, void *data)
{
	int err = 0;

	for (int i = 0; i < ks->nr && !err; i++) {
		if (!ks->buffers[i].cover.err)
			err = kernel_buffer__walk(&ks->buffers[i], ks, fn, data);
	}
	return err;
}

int kernel_store__nr(const struct kernel_store *ks)
{
	return ks->nr;
}

const struct snapshot_cover *kernel_store__cover(const struct kernel_store *ks, int i)
{
	return &ks->buffers[i].cover;
}

/* Bytes that the fullest of the buffers was ever written; they count downwards. */
u64 kernel_store__written(struct evlist *evlist)
{
	u64 most = 0;

	for (int i = 0; i < evlist->core.nr_mmaps; i++) {
		struct mmap *map = &evlist->overwrite_mmap[i];

		if (map->core.base)
			most = max(most, (u64)-perf_mmap__read_head(&map->core));
	}
	return most;
}
