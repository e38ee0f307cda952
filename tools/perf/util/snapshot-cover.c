// SPDX-License-Identifier: GPL-2.0
/*
 * Dumps of backward buffers and their coverage
 *
 * A dump has two phases. evlist__snapshot_bkw_mmap() copies the new records of all
 * buffers, one right after the other, so that the copies cover the same time. The
 * kernel keeps writing to the buffers. All slow work is done later:
 * perf_mmap__push() writes the copy of a buffer and frees it. The cover of the map
 * describes the copy until the next dump.
 *
 * Memory for the copies, as much as for all buffers, is allocated from the first
 * phase to the second, and freed between dumps.
 *
 * A buffer that cannot be read does not affect the others. It adds nothing to the
 * dump, and its cover has the reason.
 */
#include "snapshot-cover.h"
#include "debug.h"
#include "event.h"
#include "evlist.h"
#include "mmap.h"

#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <perf/event.h>
#include <errno.h>
#include <string.h>

static bool record_time(const union perf_event *event, void *data, __u64 *time)
{
	u64 timestamp;

	/* The event is not modified; the parser's argument is not const for other callers. */
	if (evlist__parse_sample_timestamp(data, (union perf_event *)event, &timestamp) ||
	    timestamp == -1ULL)
		return false;

	*time = timestamp;
	return true;
}

static void snapshot_cover__count(struct snapshot_cover *cover, const union perf_event *event)
{
	switch (event->header.type) {
	case PERF_RECORD_SAMPLE:
		cover->nr_samples++;
		break;
	case PERF_RECORD_LOST:
		if (event->header.size >= sizeof(event->lost))
			cover->lost += event->lost.lost;
		break;
	case PERF_RECORD_LOST_SAMPLES:
		if (event->header.size >= sizeof(event->lost_samples))
			cover->lost += event->lost_samples.lost;
		break;
	case PERF_RECORD_THROTTLE:
		cover->throttled++;
		break;
	default:
		break;
	}
}

/**
 * snapshot_cover__fill - describe the last snapshot of a buffer
 * @cover: the description
 * @cpu: CPU of the buffer, or -1
 * @snap: the snapshot
 * @evlist: the events of the records, used to find their times
 */
void snapshot_cover__fill(struct snapshot_cover *cover, int cpu, struct perf_snapshot *snap,
			  struct evlist *evlist)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(snap);
	union perf_event *event = NULL;
	__u64 oldest = 0, newest = 0;

	*cover = (struct snapshot_cover) {
		.cpu		= cpu,
		.err		= info->err,
		.way		= info->way,
		.wrapped	= info->wrapped,
		.retries	= info->retries,
		.data_size	= info->data_size,
		.nr_records	= info->nr_records,
		.len		= info->len,
		.given_up	= info->given_up,
		.gap		= info->gap,
	};
	if (info->err)
		return;

	while ((event = perf_snapshot__newer(snap, event)) != NULL)
		snapshot_cover__count(cover, event);

	if (!perf_snapshot__window(snap, record_time, evlist, &oldest, &newest)) {
		cover->oldest = oldest;
		cover->newest = newest;
	}
}

/**
 * snapshot_cover__add - add a later snapshot of the same buffer
 * @cover: the description to extend
 * @later: the later, incremental one
 */
void snapshot_cover__add(struct snapshot_cover *cover, const struct snapshot_cover *later)
{
	cover->retries	  += later->retries;
	cover->nr_records += later->nr_records;
	cover->nr_samples += later->nr_samples;
	cover->len	  += later->len;
	cover->gap	  += later->gap;
	cover->lost	  += later->lost;
	cover->throttled  += later->throttled;
	if (!cover->oldest)
		cover->oldest = later->oldest;
	if (later->newest)
		cover->newest = later->newest;
	if (later->way != PERF_SNAPSHOT_NONE)
		cover->way = later->way;
	if (later->err)
		cover->err = later->err;
}

/**
 * snapshot_cover__scnprintf - print a description, without a newline
 * @cover: the description
 * @buf: the output
 * @size: size of @buf
 */
int snapshot_cover__scnprintf(const struct snapshot_cover *cover, char *buf, size_t size)
{
	int n = 0;

	if (cover->err)
		return scnprintf(buf, size, "cannot be read: %s", strerror(-cover->err));

	n += scnprintf(buf + n, size - n, "%" PRIu64 " records, ", cover->nr_records);
	if (cover->oldest)
		n += scnprintf(buf + n, size - n, "%.6f to %.6f s, ",
			       (double)cover->oldest / NSEC_PER_SEC,
			       (double)cover->newest / NSEC_PER_SEC);
	n += scnprintf(buf + n, size - n,
		       "%" PRIu64 " bytes given up, gap of %" PRIu64 " bytes, %" PRIu64
		       " lost, %" PRIu64 " throttled, %u retries, read by %s",
		       cover->given_up, cover->gap, cover->lost, cover->throttled,
		       cover->retries, perf_snapshot__way_name(cover->way));
	return n;
}

static void mmap__report_cover(const struct mmap *map)
{
	char text[256];

	if (!map->cover.err && verbose <= 0)
		return;

	snapshot_cover__scnprintf(&map->cover, text, sizeof(text));
	if (map->cover.err)
		pr_warning("overwrite buffer of CPU %d: %s\n", map->cover.cpu, text);
	else
		pr_debug("overwrite buffer of CPU %d: %s\n", map->cover.cpu, text);
}

/**
 * evlist__snapshot_bkw_mmap - copy the records since the last snapshot
 * @evlist: the events
 * @maps: overwrite maps of it
 * @nr_maps: how many
 *
 * The buffers are not paused, and no event is lost. Afterwards perf_mmap__push()
 * writes the copies, newest record first, and maps[i]->cover describes them. With
 * -v the description is printed. Buffers that could not be read are always printed.
 *
 * Return: 0, or a negative errno if there are buffers and none could be read.
 */
int evlist__snapshot_bkw_mmap(struct evlist *evlist, struct mmap **maps, int nr_maps)
{
	struct perf_snapshot_set *set = perf_snapshot_set__new();
	int err = set ? 0 : -ENOMEM;

	for (int i = 0; i < nr_maps && !err; i++) {
		if (maps[i]->core.base)
			err = perf_snapshot_set__add(set, maps[i]->snapshot);
	}
	if (err)
		goto out_delete;

	err = perf_snapshot_set__take(set, PERF_SNAPSHOT_INCREMENTAL);
	for (int i = 0; i < nr_maps; i++) {
		struct mmap *map = maps[i];

		if (!map->core.base)
			continue;
		snapshot_cover__fill(&map->cover, map->core.cpu.cpu, map->snapshot, evlist);
		mmap__report_cover(map);
	}
out_delete:
	perf_snapshot_set__delete(set);
	return err;
}
