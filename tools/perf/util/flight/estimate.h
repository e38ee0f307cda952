/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ESTIMATE_H
#define __PERF_FLIGHT_ESTIMATE_H

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>

struct flight_opts;
struct flight_store;
struct record_source;

/* How long --dry-run measures, in ns. */
#define FLIGHT_ESTIMATE_TIME	((u64)NSEC_PER_SEC)

bool flight_estimate__print(const struct flight_opts *fo, struct record_source *src,
			    struct flight_store *st, u64 elapsed);

#endif /* __PERF_FLIGHT_ESTIMATE_H */
