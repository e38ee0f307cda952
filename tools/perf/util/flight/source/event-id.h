/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_EVENT_ID_H
#define __PERF_FLIGHT_EVENT_ID_H

#include <linux/types.h>
#include <perf/cpumap.h>

struct evlist;
struct evsel;

int evsel__append_id(struct evlist *evlist, struct evsel *evsel, u64 id, struct perf_cpu cpu);

#endif /* __PERF_FLIGHT_EVENT_ID_H */
