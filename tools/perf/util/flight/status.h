/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_STATUS_H
#define __PERF_FLIGHT_STATUS_H

#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct json_writer;

/**
 * struct flight_status - how a flight recorder fares
 * @out: how the names of its files begin
 * @uptime: ns since it began
 * @memory: bytes that it may use
 * @used: bytes of samples and side-band that it holds
 * @sideband: bytes of side-band among them
 * @window: ns that a dump would reach back
 * @dumps: dumps that were written
 * @failed: dumps that were not, for an error
 * @swallowed: triggers that the cooldown swallowed
 * @lost: events that the kernel had no room for
 * @given_up: bytes that the recorder had no room for
 * @writing: a dump is being written now
 */
struct flight_status {
	const char	*out;
	u64		uptime;
	u64		memory;
	u64		used;
	u64		sideband;
	u64		window;
	u64		dumps;
	u64		failed;
	u64		swallowed;
	u64		lost;
	u64		given_up;
	bool		writing;
};

u64 flight_status__lost(struct evlist *evlist);
void flight_status__print(const struct flight_status *status, struct json_writer *w);

#endif /* __PERF_FLIGHT_STATUS_H */
