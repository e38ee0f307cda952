/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_STATUS_H
#define __PERF_FLIGHT_STATUS_H

#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct evsel;
struct flight_opts;
struct flight_overhead;
struct flight_self;
struct flight_store;
struct json_writer;

/**
 * struct flight_status - how a flight recorder fares
 * @opts: its options
 * @store: what it holds
 * @self: what is done about its own events
 * @overhead: what it costs, and what was given up
 * @started: when it began, CLOCK_MONOTONIC in ns
 * @now: the time
 * @dumps: dumps that were written
 * @failed: dumps that were not, for an error
 * @swallowed: triggers that the cooldown swallowed
 * @writing: a dump is being written now
 */
struct flight_status {
	const struct flight_opts	*opts;
	const struct flight_store	*store;
	const struct flight_self	*self;
	const struct flight_overhead	*overhead;
	u64				started;
	u64				now;
	u64				dumps;
	u64				failed;
	u64				swallowed;
	bool				writing;
};

void flight_status__print(const struct flight_status *status, struct json_writer *w);
void flight_status__replace(struct evlist *evlist, struct evsel *evsel, int x);
void flight_status__announce(const struct flight_opts *fo);

#endif /* __PERF_FLIGHT_STATUS_H */
