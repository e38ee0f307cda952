/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DUMP_H
#define __PERF_FLIGHT_DUMP_H

#include <linux/types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct kernel_store;
struct perf_session;
struct ring_store;
struct sideband_store;
union perf_event;

/**
 * struct dump_cover - how a buffer was read that is not perf's own
 * @way: name of that, or NULL
 * @given_up: bytes that were overwritten before they could be read
 */
struct dump_cover {
	const char		*way;
	u64			given_up;
};

/**
 * struct dump_source - what a dump is made of
 * @session: session of the recorder, for header and clock
 * @evlist: the events
 * @ring: the retained rounds
 * @kernel: samples that the kernel's buffers held, or NULL
 * @sideband: the state before them, but for what waits to be folded
 * @waiting: that, in the order of the times
 * @nr_waiting: records of it
 * @covers: for each CPU, or NULL for perf's own buffers
 * @preamble: records that belong at the beginning of each file
 * @preamble_len: bytes of them
 */
struct dump_source {
	struct perf_session	*session;
	struct evlist		*evlist;
	struct ring_store	*ring;
	struct kernel_store	*kernel;
	struct sideband_store	*sideband;
	union perf_event	**waiting;
	int			nr_waiting;
	const struct dump_cover	*covers;
	const void		*preamble;
	size_t			preamble_len;
};

/**
 * struct dump_request - which dump is to be made
 * @out: how its name begins
 * @trigger: what asked for it
 * @reason: why
 * @action: what follows it
 * @window_asked: ns, 0: all
 * @swallowed: hits that it stands for, beyond its own
 * @given_up: bytes that the recorder had no room for since the last dump
 */
struct dump_request {
	const char		*out;
	const char		*trigger;
	const char		*reason;
	const char		*action;
	u64			window_asked;
	u64			swallowed;
	u64			given_up;
};

/**
 * struct dump_result - what became of it
 * @err: 0 or a negative errno
 * @path: the file
 * @events: samples in it
 * @bytes: its size
 * @oldest: time of its first sample
 * @newest: time of its last sample
 * @raw: bytes of records that the recorder held
 * @stored: bytes that they took
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
int dump__create_temporary(const char *path, char **tmp);
bool dump__is_auxiliary(const char *path);
void dump__remove_stale(const char *out);
void dump__sync_directory(const char *path);

#endif /* __PERF_FLIGHT_DUMP_H */
