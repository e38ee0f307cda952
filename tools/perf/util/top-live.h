/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TOP_LIVE_H
#define __PERF_TOP_LIVE_H

#include "persistent/persistent.h"
#include <linux/types.h>

struct mmap;
struct option;
struct perf_top;

int top_live__parse_event(const struct option *opt, const char *str, int unset);
int top_live__open_session(struct perf_top *top);
void top_live__read_mmap(struct perf_top *top, struct mmap *md, u64 timestamp,
			 persistent_live_event_t process);

#endif /* __PERF_TOP_LIVE_H */
