/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_HOTPLUG_H
#define __PERF_FLIGHT_HOTPLUG_H

#include "cpu-news.h"

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct perf_cpu_map;

/* How often CPUs are looked for that have come back, in ns */
#define FLIGHT_HOTPLUG_INTERVAL	((u64)NSEC_PER_SEC)
/* The same, where the kernel tells of them and nothing else wakes the recorder */
#define FLIGHT_HOTPLUG_RARELY	((u64)60 * NSEC_PER_SEC)

/**
 * enum flight_cpus - what a look for CPUs has found
 * @FLIGHT_CPUS_BACK: some have come back, and their events were opened again
 * @FLIGHT_CPUS_MISSING: some have come online for the first time, and are left out
 */
enum flight_cpus {
	FLIGHT_CPUS_BACK	= 1,
	FLIGHT_CPUS_MISSING	= 2,
};

/**
 * struct flight_followed - events that are opened again
 * @evlist: the events
 * @all: they are to be on all CPUs
 */
struct flight_followed {
	struct evlist	*evlist;
	bool		all;
};

/**
 * struct flight_hotplug - CPUs that come and go while perf's own events are recorded
 * @followed: the events; none: there is nothing to do
 * @nr_followed: how many
 * @told: what tells that there is something to look for
 * @cpus: the directory of the CPUs in sysfs, or -1
 * @lives: by CPU, what tells its time online from others; 0 if it was offline at the last look
 * @nr_lives: how many
 * @suspended: ns that the machine had been suspended for by then
 * @looked: when was the last look, CLOCK_MONOTONIC in ns
 * @due: when to wake up for the next one
 * @failed: events that could not be opened again
 * @news: what the look has found
 * @missing: CPUs that are left out, or NULL
 * @left_out: the same as a list such as 2-3
 */
struct flight_hotplug {
	struct flight_followed	*followed;
	int			nr_followed;
	struct flight_cpu_news	told;
	int			cpus;
	u64			*lives;
	int			nr_lives;
	u64			suspended;
	u64			looked;
	u64			due;
	u64			failed;
	unsigned int		news;
	struct perf_cpu_map	*missing;
	char			left_out[64];
};

void flight_hotplug__init(struct flight_hotplug *hp);
int flight_hotplug__follow(struct flight_hotplug *hp, struct evlist *evlist, bool all);
void flight_hotplug__exit(struct flight_hotplug *hp);
unsigned int flight_hotplug__look(struct flight_hotplug *hp, u64 now);

#endif /* __PERF_FLIGHT_HOTPLUG_H */
