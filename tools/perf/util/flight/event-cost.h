/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_EVENT_COST_H
#define __PERF_FLIGHT_EVENT_COST_H

#include <linux/types.h>
#include <stdbool.h>

struct perf_event_attr;

/**
 * struct event_cost - what events cost the CPU that they happen on
 * @record: ns of a hit of a tracepoint, with all that its record has
 * @sample: ns of a sample at an interrupt, with the same
 * @measured: false: neither could be measured, and these are defaults
 */
struct event_cost {
	u64	record;
	u64	sample;
	bool	measured;
};

void event_cost__measure(const struct perf_event_attr *attr, struct event_cost *cost);
bool event_cost__is_like(const struct perf_event_attr *a, const struct perf_event_attr *b);

#endif /* __PERF_FLIGHT_EVENT_COST_H */
