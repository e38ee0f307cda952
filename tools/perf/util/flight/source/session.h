/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SOURCE_PERSISTENT_H
#define __PERF_FLIGHT_SOURCE_PERSISTENT_H

struct flight_opts;
struct perf_data;
struct persistent_opts;
struct record_opts;

int flight_recorder__record_persistent(const struct flight_opts *fo,
				       const struct persistent_opts *p,
				       struct record_opts *opts, struct perf_data *data,
				       int argc, const char **argv);

#endif /* __PERF_FLIGHT_SOURCE_PERSISTENT_H */
