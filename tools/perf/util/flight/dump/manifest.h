/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_MANIFEST_H
#define __PERF_FLIGHT_MANIFEST_H

#include <linux/types.h>
#include <stdio.h>

/**
 * struct manifest_cpu - content of a dump for one CPU
 * @oldest: time of its first sample, or 0
 * @newest: time of its last sample
 * @events: number of samples
 * @lost: events lost because the ring buffer was full
 * @throttled: how often an event was throttled
 * @given_up: bytes that were overwritten before they could be read
 * @way: how its buffer was read
 */
struct manifest_cpu {
	u64		oldest;
	u64		newest;
	u64		events;
	u64		lost;
	u64		throttled;
	u64		given_up;
	const char	*way;
};

/**
 * struct manifest - content of the manifest of a dump
 * @file: name of the dump
 * @time: wall clock of the dump, UTC
 * @trigger: kind of the trigger
 * @reason: reason given by the trigger
 * @action: action after the dump
 * @window_asked: maximum age in ns, 0: no limit
 * @oldest: time of the first sample
 * @newest: time of the last sample
 * @events: number of samples
 * @lost: events lost because a ring buffer was full
 * @throttled: how often events were throttled
 * @given_up: bytes dropped by the recorder
 * @unresolved: samples of tasks without a description
 * @swallowed: further hits that this dump represents
 * @tasks: number of processes described
 * @bytes: size of the file
 * @raw: bytes of records in the recorder
 * @stored: bytes of memory used for them; less with -z
 * @nr_cpus: number of @cpus
 * @cpus: by CPU
 */
struct manifest {
	const char		*file;
	const char		*time;
	const char		*trigger;
	const char		*reason;
	const char		*action;
	u64			window_asked;
	u64			oldest;
	u64			newest;
	u64			events;
	u64			lost;
	u64			throttled;
	u64			given_up;
	u64			unresolved;
	u64			swallowed;
	u64			tasks;
	u64			bytes;
	u64			raw;
	u64			stored;
	int			nr_cpus;
	struct manifest_cpu	*cpus;
};

/**
 * struct last_manifest - a manifest that may have to be corrected
 * @path: its name, or NULL
 * @swallowed: hits that it tells of
 */
struct last_manifest {
	char		*path;
	u64		swallowed;
};

int manifest__write(const struct manifest *m, FILE *f);
void last_manifest__set(struct last_manifest *lm, const char *dump, u64 swallowed);
void last_manifest__add_swallowed(struct last_manifest *lm, u64 swallowed);

#endif /* __PERF_FLIGHT_MANIFEST_H */
