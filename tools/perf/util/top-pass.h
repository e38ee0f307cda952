/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TOP_PASS_H
#define __PERF_TOP_PASS_H

#include "ordered-events.h"
#include <linux/types.h>

struct perf_top;
union perf_event;

void top_pass__init(struct perf_top *top, ordered_events__deliver_t deliver);
void top_pass__exit(struct perf_top *top);
int top_pass__add(union perf_event *event, u64 timestamp, void *data);
void top_pass__end(struct perf_top *top);

#endif /* __PERF_TOP_PASS_H */
