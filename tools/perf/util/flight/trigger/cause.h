/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_CAUSE_H
#define __PERF_FLIGHT_CAUSE_H

#include <linux/limits.h>
#include <linux/types.h>
#include <sys/types.h>

/**
 * struct flight_cause - what a hit is about, as far as the trigger knows
 * @unit: of @value and @threshold; NULL: there are none
 * @value: what was measured
 * @threshold: what it was to be less than; 0: unknown
 * @pid: the task, or 0
 * @comm: its name, or ""
 * @cgroup: the path of the cgroup, or "". It names the container at its end, so it is whole
 */
struct flight_cause {
	const char	*unit;
	u64		value;
	u64		threshold;
	pid_t		pid;
	char		comm[16];
	char		cgroup[PATH_MAX];
};

const char *flight_cause__cgroup_root(char *path, size_t size);
void flight_cause__set_cgroup(struct flight_cause *cause, u64 id);

#endif /* __PERF_FLIGHT_CAUSE_H */
