/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_CPU_NEWS_H
#define __PERF_FLIGHT_CPU_NEWS_H

#include <stdbool.h>

/**
 * struct flight_cpu_news - what tells that CPUs may have come back
 * @uevents: a socket that has a message when a CPU came online, or -1: the kernel tells nobody
 * @clock: a timer that expires when the machine was suspended, or its clock was set; or -1
 */
struct flight_cpu_news {
	int	uevents;
	int	clock;
};

void flight_cpu_news__init(struct flight_cpu_news *news);
void flight_cpu_news__exit(struct flight_cpu_news *news);
bool flight_cpu_news__came(struct flight_cpu_news *news);

#endif /* __PERF_FLIGHT_CPU_NEWS_H */
