/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_MANIFEST_H
#define __PERF_FLIGHT_MANIFEST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct flight_cause;
struct flight_overhead;
struct perf_persistent_session_info;
struct strlist;
union perf_event;

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
 * struct manifest_share - with --fair: content of a dump for one cgroup
 * @id: the cgroup; 0: those that shared a queue
 * @path: its path, or NULL
 * @complete_since: time of its newest record that was evicted; 0: none was
 * @oldest: time of its first sample, or 0
 * @newest: time of its last sample
 * @events: number of samples
 * @bytes: bytes of its records
 */
struct manifest_share {
	u64		id;
	char		*path;
	u64		complete_since;
	u64		oldest;
	u64		newest;
	u64		events;
	u64		bytes;
};

/* Of "schema": it grows when a member changes its meaning, not when one is added. */
#define MANIFEST_SCHEMA		1

/**
 * struct manifest - content of the manifest of a dump
 * @file: name of the dump
 * @time: wall clock of the dump, UTC
 * @trigger_time: when it was triggered, on the clock of the records, or 0
 * @trigger: kind of the trigger
 * @reason: reason given by the trigger
 * @cause: the same in numbers, or NULL
 * @action: action after the dump
 * @window_asked: maximum age in ns, 0: no limit
 * @oldest: time of the first sample
 * @newest: time of the last sample
 * @events: number of samples
 * @lost: events lost because a ring buffer was full
 * @throttled: how often events were throttled
 * @given_up: bytes dropped by the recorder
 * @unresolved: samples of tasks without a description
 * @defers: an event has the user half of its call chains written later
 * @half_chains: samples whose user half is not in the dump
 * @sideband_dropped: descriptions of tasks that the recorder had no room for
 * @swallowed: further hits that this dump represents
 * @self: what was done about samples of the recorder itself
 * @self_events: how many of its samples are in the dump
 * @self_dropped: how many were dropped when they were read
 * @cpus_left_out: CPUs that came online after the start, as a list, or ""
 * @session: what the persistent session that was read said of itself, or zeros
 * @overhead: what recording costs, and what was given up; or NULL
 * @containers: ids of the containers that are described, or NULL
 * @complete_since: with --fair: time from which on no cgroup lacks records; 0: never
 * @names_since: with --fair: samples before this time may have later names of tasks
 * @nr_shares: number of @shares
 * @shares: with --fair: by queue, those without samples are left out; or NULL
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
	u64			trigger_time;
	const char		*trigger;
	const char		*reason;
	const struct flight_cause *cause;
	const char		*action;
	u64			window_asked;
	u64			oldest;
	u64			newest;
	u64			events;
	u64			lost;
	u64			throttled;
	u64			given_up;
	u64			unresolved;
	bool			defers;
	u64			half_chains;
	u64			sideband_dropped;
	u64			swallowed;
	const char		*self;
	u64			self_events;
	u64			self_dropped;
	const char		*cpus_left_out;
	const struct perf_persistent_session_info *session;
	const struct flight_overhead *overhead;
	struct strlist		*containers;
	u64			complete_since;
	u64			names_since;
	u32			nr_shares;
	struct manifest_share	*shares;
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
 * @swallowed: hits that it is to tell of
 * @wrong: it tells of fewer: the next child corrects it
 * @correcting: a child corrects it
 */
struct last_manifest {
	char		*path;
	u64		swallowed;
	bool		wrong;
	bool		correcting;
};

void manifest__note(struct manifest *m, const union perf_event *event);
int manifest__write(const struct manifest *m, FILE *f);
void manifest__exit(struct manifest *m);
void last_manifest__set(struct last_manifest *lm, const char *dump, u64 swallowed);
void last_manifest__correct(const struct last_manifest *lm);

#endif /* __PERF_FLIGHT_MANIFEST_H */
