/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_HISTORY_H
#define __PERF_VERDICT_HISTORY_H

#include "disk.h"
#include "interner.h"
#include "interrupt.h"
#include "reclaim.h"
#include "span.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct hashmap;

#define VERDICT_NONE	UINT32_MAX
#define VERDICT_IDLE	0	/* the task of all idle CPUs */

/*
 * The reason of a wait, by the functions of its call chain. The first of these that a chain
 * has counts.
 */
enum verdict_class {
	CLASS_UNKNOWN,
	CLASS_KERNEL_LOCK,
	CLASS_FILE_LOCK,
	CLASS_FUTEX,
	CLASS_PIPE,
	CLASS_SOCKET,
	CLASS_SEMAPHORE,
	CLASS_OVER_HIGH,
	CLASS_DIRTY,
	CLASS_IO,
	CLASS_COMPLETION,
	CLASS_CHILD,
	CLASS_POLL,
	CLASS_SLEEP,
	CLASS_SIGNAL,
	CLASS_WORK,
	/* Of the chain of a wakeup or of a sample, never of a wait */
	CLASS_TIMER,
	CLASS_REMOTE,
	CLASS_KILL,
	CLASS_INTERRUPT,
	CLASS_INLINE,
	CLASS_NR,
};

/* Whether the kernel lets a task wait that has, or makes, more in memory than it may */
static inline bool verdict_class__throttles(enum verdict_class class)
{
	return class == CLASS_OVER_HIGH || class == CLASS_DIRTY;
}

/* In which context a wakeup happened */
enum verdict_waker {
	WAKER_UNKNOWN,
	WAKER_TASK,
	WAKER_TIMER,
	WAKER_INTERRUPT,
	WAKER_SIGNAL,
};

/**
 * struct verdict_wait - a task was off the CPU
 * @start: when it left the CPU
 * @woken: when it became runnable, @start if it was preempted; 0 if it was not or is unknown
 * @end: when it ran again, or the last record
 * @waker: index of the task that woke it, or VERDICT_NONE
 * @place: index of where it waited
 * @cpu: on which it was runnable, or -1
 * @class: enum verdict_class
 * @by: enum verdict_waker
 * @preempted: it did not want to wait
 * @queued: it is known on which CPU it was put when it became runnable
 * @taken: it was taken off the CPU although it could go on
 * @stayed: it ran again on the CPU that it was runnable on
 * @open: it did not run again
 * @unknown: it is not known whether it waited or ran: records are missing. Nothing else
 *	but @start and @end is known
 */
struct verdict_wait {
	u64	start;
	u64	woken;
	u64	end;
	u32	waker;
	u32	place;
	s32	cpu;
	u8	class;
	u8	by;
	bool	preempted;
	bool	queued;
	bool	taken;
	bool	stayed;
	bool	open;
	bool	unknown;
};

/**
 * struct verdict_place - where a task waited, or ran
 * @kernel: function that tells the class, or NULL
 * @user: function of the program, or NULL
 * @lock: the program was in a function that takes a lock
 */
struct verdict_place {
	const char	*kernel;
	const char	*user;
	bool		lock;
};

/**
 * struct verdict_hit - a clock's sample found a task in a function
 * @time: when
 * @function: name of the function, or NULL
 * @leaf: index of the function, see chains.h
 * @chain: index of its call chain, or VERDICT_NONE if none are kept
 */
struct verdict_hit {
	u64		time;
	const char	*function;
	u32		leaf;
	u32		chain;
};

struct verdict_task {
	u32			tid;
	u32			tgid;
	char			comm[16];
	bool			kthread;
	bool			off;
	u32			parent;
	int			prio;
	s32			cpu;
	u64			first;
	u64			on_since;
	u64			unsure_since;
	u64			ran_ns;
	u64			unknown_ns;
	u64			contended_since;
	struct verdict_wait	pending_wake;
	struct verdict_wait	*waits;
	u32			nr_waits;
	u32			max_waits;
	struct verdict_hit	*hits;
	u32			nr_hits;
	u32			max_hits;
	struct verdict_requests	requests;
	struct verdict_spans	interrupts;
	struct verdict_spans	reclaims;
	struct verdict_reclaiming reclaiming;
	u64			cgroup_id;
	const char		*cgroup;
};

/**
 * struct verdict_run - what a CPU ran from a time on, until the next one
 * @start: the time
 * @task: index of the task, or VERDICT_NONE: it is unknown
 * @held: it was idle, although the task that it ran before could have gone on
 */
struct verdict_run {
	u64	start;
	u32	task;
	bool	held;
};

struct verdict_cpu {
	bool			seen;
	u64			first;
	u64			last;
	u64			records;
	struct verdict_run	*runs;
	u32			nr_runs;
	u32			max_runs;
	struct verdict_nest	nest;
	struct verdict_storm	storm;
	struct verdict_spans	interrupts;
};

/* Which events the recording has */
enum verdict_event {
	EVENT_SWITCH,
	EVENT_WAKING,
	EVENT_WAKEUP,
	EVENT_WAKEUP_NEW,
	EVENT_CONTENTION_BEGIN,
	EVENT_CONTENTION_END,
	EVENT_RQ_ISSUE,
	EVENT_RQ_COMPLETE,
	EVENT_IRQ_ENTRY,
	EVENT_IRQ_EXIT,
	EVENT_SOFTIRQ_ENTRY,
	EVENT_SOFTIRQ_EXIT,
	EVENT_RECLAIM_BEGIN,
	EVENT_RECLAIM_END,
	EVENT_MEMCG_RECLAIM_BEGIN,
	EVENT_MEMCG_RECLAIM_END,
	EVENT_NR,
};

/**
 * struct verdict_loss - records that the kernel had no room for
 * @time: when there was room again
 * @cpu: of the ring buffer, or -1: it is not known
 * @records: how many
 */
struct verdict_loss {
	u64	time;
	s64	cpu;
	u64	records;
};

/**
 * struct verdict_exit - the end of a task
 * @time: when
 * @tid: of the task, in the PID namespace of the recorder
 */
struct verdict_exit {
	u64	time;
	u32	tid;
};

/**
 * struct verdict_side_band - records that are no samples, in the order of time
 * @wanted: keep them
 */
struct verdict_side_band {
	bool			wanted;
	struct verdict_loss	*losses;
	u32			nr_losses;
	u32			max_losses;
	struct verdict_exit	*exits;
	u32			nr_exits;
	u32			max_exits;
};

/**
 * struct verdict_history - what the records tell of tasks and CPUs
 * @has: events that the recording has
 * @sampled: sched:sched_switch was sampled, not traced: nothing is known of waits
 * @callchains: some switch has a call chain
 * @oldest: time of the first sample
 * @newest: time of the last one
 * @lost: records that the kernel had no room for
 * @half_chains: samples whose call chain lacks its user half
 * @side_band: where they were, and when tasks ended
 * @manifest: text of the manifest next to a dump, or NULL
 * @clock: the recording has a clock
 * @clock_ns: time between two samples of the clock on a CPU, or 0: it is not known
 */
struct verdict_history {
	bool			has[EVENT_NR];
	char			*manifest;
	bool			sampled;
	bool			callchains;
	u64			oldest;
	u64			newest;
	u64			lost;
	u64			half_chains;
	struct verdict_side_band side_band;
	u64			samples;
	bool			clock;
	u64			clock_ns;
	u64			broken;
	struct verdict_task	*tasks;
	u32			nr_tasks;
	u32			max_tasks;
	struct hashmap		*by_tid;
	struct verdict_cpu	*cpus;
	u32			nr_cpus;
	struct verdict_disks	disks;
	struct verdict_sources	sources;
	struct verdict_pools	pools;
	struct verdict_place	*places;
	u32			max_places;
	struct interner		by_place;
};

int verdict_history__init(struct verdict_history *h);
void verdict_history__exit(struct verdict_history *h);
u32 verdict_history__task(struct verdict_history *h, u32 tid);
u32 verdict_history__new_task(struct verdict_history *h, u32 tid);
struct verdict_cpu *verdict_history__cpu(struct verdict_history *h, u32 cpu);
u32 verdict_history__place(struct verdict_history *h, const struct verdict_place *place);
int verdict_history__seen(struct verdict_history *h, u32 cpu, u64 time);
int verdict_history__leave(struct verdict_history *h, u32 cpu, u64 time, u32 task,
			   const struct verdict_wait *wait, bool dead);
int verdict_history__enter(struct verdict_history *h, u32 cpu, u64 time, u32 task);
void verdict_history__wake(struct verdict_history *h, u32 task, const struct verdict_wait *wake);
int verdict_history__born(struct verdict_history *h, u32 task, u32 parent, u64 time, u32 cpu);
int verdict_history__hit(struct verdict_history *h, u32 task, const struct verdict_hit *hit);
void verdict_history__forget_hits(struct verdict_history *h);
int verdict_history__forget(struct verdict_history *h, u32 cpu, u64 time);
int verdict_history__lost(struct verdict_history *h, u32 cpu, u64 time, u64 records);
int verdict_history__ended(struct verdict_history *h, u32 tid, u64 time);
int verdict_history__finish(struct verdict_history *h);

int verdict_array__grow(void **array, u32 nr, u32 *max, size_t size);
u32 verdict_array__not_later(const void *array, u32 nr, size_t size, size_t offset, u64 time);

#endif /* __PERF_VERDICT_HISTORY_H */
