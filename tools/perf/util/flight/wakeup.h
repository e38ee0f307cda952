/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_WAKEUP_H
#define __PERF_FLIGHT_WAKEUP_H

#include <linux/types.h>

struct fdarray;

/**
 * struct flight_wakeup - the one descriptor that perf record polls for a flight recorder
 * @fd: an epoll
 * @timer_fd: in it, on CLOCK_MONOTONIC
 * @next: when that expires, in ns
 */
struct flight_wakeup {
	int	fd;
	int	timer_fd;
	u64	next;
};

int flight_wakeup__init(struct flight_wakeup *w);
void flight_wakeup__exit(struct flight_wakeup *w);
int flight_wakeup__watch(struct flight_wakeup *w, int fd);
void flight_wakeup__set_timer(struct flight_wakeup *w, u64 next);
int flight_wakeup__wait(struct flight_wakeup *w, struct fdarray *fda, u64 earliest);
void flight_wakeup__drain_timer(struct flight_wakeup *w, u64 now);

#endif /* __PERF_FLIGHT_WAKEUP_H */
