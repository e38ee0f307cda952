/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_MANIFEST_H
#define __PERF_FLIGHT_MANIFEST_H

#include <linux/types.h>
#include <stdio.h>

/**
 * struct manifest_cpu - what a dump holds of one CPU
 * @oldest: time of its first sample, 0: it has none
 * @newest: time of its last sample
 * @events: samples
 * @lost: events that the kernel had no room for
 * @throttled: how often it slowed an event down
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
 * struct manifest - what is told about a dump in the file beside it
 * @file: name of the dump
 * @time: wall clock of the dump, UTC
 * @trigger: what made it
 * @reason: what the trigger knows about that
 * @action: what else it does
 * @window_asked: ns that the user wants to see at most, 0: all there is
 * @oldest: time of the first sample
 * @newest: time of the last sample
 * @events: samples
 * @lost: events that the kernel had no room for
 * @throttled: how often the kernel slowed events down
 * @given_up: bytes that the recorder had no room for
 * @unresolved: samples of tasks that nothing is known about
 * @swallowed: hits of the trigger that this dump stands for, beyond its own
 * @tasks: processes described
 * @bytes: bytes of the file
 * @raw: bytes of records that the recorder held
 * @stored: bytes that they took there; less with -z
 * @nr_cpus: entries of @cpus
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

int manifest__write(const struct manifest *m, FILE *f);
int manifest__set_swallowed(const char *path, u64 swallowed);

#endif /* __PERF_FLIGHT_MANIFEST_H */
