/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_SNAPSHOT_COVER_H
#define __PERF_SNAPSHOT_COVER_H

#include <linux/types.h>
#include <perf/snapshot.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct mmap;

/**
 * struct snapshot_cover - what a dump holds of one backward buffer
 * @cpu: CPU that writes the buffer, -1: the one on which its task runs
 * @err: 0, or a negative errno: the buffer could not be read, nothing is held
 * @way: how the copy was verified
 * @wrapped: older records than these had been overwritten before; false:
 *	the dump reaches back to the start of the buffer
 * @retries: copies that were thrown away, because the writer lapped the reader
 * @data_size: size of the buffer in bytes
 * @oldest: time of the oldest record that has one; 0: none has
 * @newest: time of the newest record that has one; 0: none has
 * @nr_records: records in the dump
 * @nr_samples: PERF_RECORD_SAMPLE among them
 * @len: their bytes
 * @given_up: bytes of old records that were overwritten while they were copied
 * @gap: bytes between the dump before and this one that neither holds
 * @lost: events that the kernel had no room for (a paused buffer), as
 *	PERF_RECORD_LOST and PERF_RECORD_LOST_SAMPLES in the dump say. Overwriting
 *	is not losing.
 * @throttled: how often an event was throttled in the time of the dump
 *
 * Everything is taken from the copy: to fill this in disturbs nobody. A count
 * read from an event (PERF_FORMAT_LOST) would send an IPI to its CPU.
 */
struct snapshot_cover {
	int			cpu;
	int			err;
	enum perf_snapshot_way	way;
	bool			wrapped;
	unsigned int		retries;
	u64			data_size;
	u64			oldest;
	u64			newest;
	u64			nr_records;
	u64			nr_samples;
	u64			len;
	u64			given_up;
	u64			gap;
	u64			lost;
	u64			throttled;
};

void snapshot_cover__fill(struct snapshot_cover *cover, int cpu, int err,
			  struct perf_snapshot *snap, struct evlist *evlist);
void snapshot_cover__add(struct snapshot_cover *cover, const struct snapshot_cover *later);
int snapshot_cover__scnprintf(const struct snapshot_cover *cover, char *buf, size_t size);

int evlist__snapshot_bkw_mmap(struct evlist *evlist, struct mmap **maps, int nr_maps);

#endif /* __PERF_SNAPSHOT_COVER_H */
