/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_SKEL_FLIGHT_HIT_H
#define __PERF_BPF_SKEL_FLIGHT_HIT_H

/* Between a flight recorder's BPF programs and util/flight/trigger/watch.c */

#define FLIGHT_COMM_LEN		16

/* One record of a hit goes out per so many ns. All hits are counted. */
#define FLIGHT_HIT_INTERVAL	1000000ULL

/**
 * struct flight_hit - a record of a hit
 * @at: when it was detected, on the clock of what is recorded; 0: that clock is unknown to BPF
 * @value: what was measured, in ns
 * @cgroup: the cgroup of the task
 * @pid: the task, in the initial pid namespace
 * @cpu: the CPU on which it was detected
 * @waits: it is not over
 * @at_least: what was measured began before @value tells
 * @comm: the name of the task
 */
struct flight_hit {
	__u64	at;
	__u64	value;
	__u64	cgroup;
	__u32	pid;
	__u32	cpu;
	__u32	waits;
	__u32	at_least;
	char	comm[FLIGHT_COMM_LEN];
};

#endif /* __PERF_BPF_SKEL_FLIGHT_HIT_H */
