/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DUMP_H
#define __PERF_FLIGHT_DUMP_H

#include <linux/perf_persistent.h>
#include <linux/types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct fair_store;
struct flight_cause;
struct flight_overhead;
struct flight_self;
struct kernel_store;
struct perf_session;
struct ring_store;
struct sideband_store;
union perf_event;

/**
 * struct dump_cover - how the buffer of a session or of the kernel was read
 * @way: name of the method, or NULL
 * @given_up: bytes that were overwritten before they could be read
 * @told: bytes of these that the dump tells of that is being written
 */
struct dump_cover {
	const char		*way;
	u64			given_up;
	u64			told;
};

/**
 * struct dump_source - the data of a dump
 * @session: session of the recorder, for the header and the clock
 * @evlist: the events
 * @ring: the retained rounds; NULL with --fair
 * @fair: with --fair: the same, divided among cgroups; or NULL
 * @kernel: samples in the buffers of the kernel, or NULL
 * @sideband: the state before the rounds, without @waiting
 * @waiting: records that wait to be folded, in the order of time
 * @nr_waiting: number of @waiting
 * @covers: for each CPU, or NULL for perf's own buffers
 * @preamble: records at the start of each file
 * @preamble_len: size of @preamble in bytes
 * @self: the recorder, and what was done about its own samples
 */
struct dump_source {
	struct perf_session	*session;
	struct evlist		*evlist;
	struct ring_store	*ring;
	struct fair_store	*fair;
	struct kernel_store	*kernel;
	struct sideband_store	*sideband;
	union perf_event	**waiting;
	int			nr_waiting;
	const struct dump_cover	*covers;
	const void		*preamble;
	size_t			preamble_len;
	const struct flight_self *self;
};

/**
 * struct dump_request - parameters of a dump
 * @out: prefix of its name
 * @trigger: kind of the trigger
 * @trigger_time: when it was hit, on the clock of the records, or 0
 * @reason: reason given by the trigger
 * @cause: the same in numbers
 * @action: action after the dump
 * @last: the recorder ends with it
 * @keep: it is not tried again: keep the dump if its manifest cannot be written
 * @window_asked: maximum age in ns, 0: no limit
 * @swallowed: further hits that this dump represents
 * @given_up: bytes dropped by the recorder since the last dump
 * @cpus_left_out: CPUs that came online after the start, as a list, or ""
 * @overhead: what recording costs, and what was given up
 * @session: what the session that is read says of itself, or zeros
 */
struct dump_request {
	const char		*out;
	const char		*trigger;
	u64			trigger_time;
	const char		*reason;
	const struct flight_cause *cause;
	const char		*action;
	bool			last;
	bool			keep;
	u64			window_asked;
	u64			swallowed;
	u64			given_up;
	const char		*cpus_left_out;
	const struct flight_overhead *overhead;
	struct perf_persistent_session_info session;
};

/**
 * struct dump_result - result of a dump
 * @err: 0 or a negative errno
 * @path: the file
 * @events: samples in it
 * @bytes: its size
 * @oldest: time of its first sample
 * @newest: time of its last sample
 * @raw: bytes of records in the recorder
 * @stored: bytes of memory used for them
 */
struct dump_result {
	int			err;
	char			path[PATH_MAX];
	u64			events;
	u64			bytes;
	u64			oldest;
	u64			newest;
	u64			raw;
	u64			stored;
};

int dump__write(const struct dump_source *source, const struct dump_request *request,
		struct dump_result *result);
int dump__write_auxiliary(const struct dump_source *source, const char *out);
bool dump__is_auxiliary(const char *path);
void dump__remove_stale(const char *out);
void dump__sync_directory(const char *path);

#endif /* __PERF_FLIGHT_DUMP_H */
