// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's backward buffers as the store of a flight recorder (-M --overwrite)
 *
 * Samples are not read until there is a dump. The child that writes the dump copies the
 * buffers while the kernel continues to write to them. A child does not inherit the
 * mappings of ring buffers, so it maps them again and takes snapshots. The memory of the
 * snapshots belongs to the child.
 *
 * The side-band has buffers of its own, which perf record reads all the time (see mmap.c).
 * In the order of time:
 *
 *	trigger, pass over the side-band begins at T, child is forked, samples are copied
 *
 * Samples later than T may belong to tasks whose side-band was not read by that pass. They
 * were taken after the trigger, and are left out. A copy is walked twice for a dump. The
 * first walk stores where the first late sample is, which is close to the end, and the
 * second walk checks times only from there on.
 */
#include "backward.h"
#include "source.h"
#include "../../base-api.h"
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

/* Errors are stored in the buffer's cover. */
static void kernel_store__map(struct kernel_store *ks, struct mmap *map)
{
	struct kernel_buffer *kb = &ks->buffers[ks->nr++];
	int cpu = map->core.cpu.cpu;

	kb->snap = perf_snapshot__new_fd(map->core.fd, cpu, mmap__mmap_len(map) - page_size);
	kb->cover.cpu = cpu;
	kb->cover.err = kb->snap ? perf_snapshot_set__add(ks->set, kb->snap) : -errno;
}

/*
 * kernel_store__take - copy the backward buffers of an evlist
 * @evlist: the events
 * @until: time of the last record that is wanted
 *
 * A buffer that cannot be copied has an error in its cover.
 *
 * Return: the copies, or NULL if there is no memory.
 */
static struct kernel_store *kernel_store__take(struct evlist *evlist, u64 until)
{
	int nr = evlist__core(evlist)->nr_mmaps;
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
		if (evlist__overwrite_mmap(evlist)[i].core.base)
			kernel_store__map(ks, &evlist__overwrite_mmap(evlist)[i]);
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

/* The source */

static struct kernel_store *backward_source__take(struct record_source *src, u64 until)
{
	return kernel_store__take(src->evlist, until);
}

/* Heads of backward buffers count downwards from 0. */
static u64 backward_source__written(struct record_source *src)
{
	struct evlist *evlist = src->evlist;
	u64 most = 0;

	for (int i = 0; i < evlist__core(evlist)->nr_mmaps; i++) {
		struct mmap *map = &evlist__overwrite_mmap(evlist)[i];

		if (map->core.base)
			most = max(most, (u64)-perf_mmap__read_head(&map->core));
	}
	return most;
}

static void backward_source__delete(struct record_source *src)
{
	free(src);
}

static const struct record_source_ops backward_source_ops = {
	.freeze		= mmap_source__freeze,
	.take		= backward_source__take,
	.written	= backward_source__written,
	.delete		= backward_source__delete,
};

/**
 * backward_source__new - perf record's own events, whose samples are read at a dump
 * @evlist: the events
 *
 * Return: the source, for record_source__delete(), or NULL if there is no memory.
 */
struct record_source *backward_source__new(struct evlist *evlist)
{
	struct record_source *src = zalloc(sizeof(*src));

	if (src) {
		src->ops = &backward_source_ops;
		src->evlist = evlist;
		src->fd = -1;
	}
	return src;
}
