/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_WATCH_H
#define __PERF_FLIGHT_WATCH_H

#include <linux/types.h>
#include <stddef.h>

struct flight_trigger;
struct watch_bpf;

/* What perf's own BPF programs watch */
enum flight_watch_kind {
	WATCH_RUNQ,
	WATCH_OFFCPU,
	WATCH_IRQOFF,
	WATCH_SYSCALL,
};

/**
 * struct flight_watch - what is watched
 * @kind: waits of this kind
 * @over: that last for longer, in ns
 * @comm: of tasks of this name, or NULL
 * @cgroup: of tasks in this cgroup and those below, or NULL
 * @syscall: the name of the system call, of WATCH_SYSCALL
 * @nr: its number
 * @bpf: the programs, when they are loaded
 */
struct flight_watch {
	enum flight_watch_kind	kind;
	u64			over;
	char			*comm;
	char			*cgroup;
	char			*syscall;
	int			nr;
	struct watch_bpf	*bpf;
};

int flight_watch__check(const struct flight_trigger *t);
int flight_watch__prepare(struct flight_trigger *t);
int flight_watch__start(struct flight_trigger *t);
unsigned int flight_watch__hits(struct flight_trigger *t);
void flight_watch__stop(struct flight_trigger *t);
void flight_watch__free(struct flight_trigger *t);

#endif /* __PERF_FLIGHT_WATCH_H */
