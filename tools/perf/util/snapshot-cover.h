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
 * struct snapshot_cover - describe the content of a dump for one backward buffer
 * @cpu: CPU that writes the buffer, -1: the one on which its task runs
 * @err: 0, or a negative errno if the buffer could not be read
 * @way: how the copy was verified
 * @wrapped: older records had been overwritten before; false: the dump reaches
 *	back to the start of the buffer
 * @retries: copies that were discarded because the writer lapped the reader
 * @data_size: size of the buffer in bytes
 * @oldest: time of the oldest record that has a time, or 0
 * @newest: time of the newest record that has a time, or 0
 * @nr_records: records in the dump
 * @nr_samples: number of PERF_RECORD_SAMPLE
 * @len: bytes of the records
 * @given_up: bytes of old records that were overwritten while they were copied
 * @gap: bytes between the previous dump and this one that are in neither of them
 * @lost: events lost while the buffer was paused, according to PERF_RECORD_LOST
 *	and PERF_RECORD_LOST_SAMPLES in the dump. Overwritten events do not count.
 * @throttled: how often an event was throttled in the time of the dump
 *
 * All values come from the copy, so no other CPU is disturbed. Reading a count
 * from an event (PERF_FORMAT_LOST) would send an IPI to its CPU.
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

void snapshot_cover__fill(struct snapshot_cover *cover, int cpu, struct perf_snapshot *snap,
			  struct evlist *evlist);
void snapshot_cover__add(struct snapshot_cover *cover, const struct snapshot_cover *later);
int snapshot_cover__scnprintf(const struct snapshot_cover *cover, char *buf, size_t size);

int evlist__snapshot_bkw_mmap(struct evlist *evlist, struct mmap **maps, int nr_maps);

#endif /* __PERF_SNAPSHOT_COVER_H */
