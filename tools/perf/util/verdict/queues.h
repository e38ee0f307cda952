/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_QUEUES_H
#define __PERF_VERDICT_QUEUES_H

#include <linux/types.h>

struct json_writer;
struct verdict_history;

/**
 * struct verdict_delay - waits for a CPU; times in ns
 * @waits: how many
 * @ns: how long, together
 * @preempted: in how many of them the task was taken off its CPU, or let others run
 * @preempted_ns: how long these were
 * @longest_ns: the longest one
 */
struct verdict_delay {
	u64	waits;
	u64	ns;
	u64	preempted;
	u64	preempted_ns;
	u64	longest_ns;
};

/**
 * struct verdict_queue - the run queue of a CPU
 * @delay: the waits in it
 * @waited_ns: how long at least one task was in it
 * @idle_ns: for how much of this another CPU was idle
 */
struct verdict_queue {
	struct verdict_delay	delay;
	u64			waited_ns;
	u64			idle_ns;
};

/**
 * struct verdict_queues - how long tasks waited for CPUs
 * @cpus: a queue for each CPU of the history
 * @tasks: the waits of each task of the history
 * @order: the tasks that waited, by the sum of their waits, the greatest one first
 * @nr: how many these are
 */
struct verdict_queues {
	struct verdict_queue	*cpus;
	struct verdict_delay	*tasks;
	u32			*order;
	u32			nr;
};

int verdict_queues__find(struct verdict_queues *q, const struct verdict_history *h);
void verdict_queues__exit(struct verdict_queues *q);
void verdict_queues__print(const struct verdict_queues *q, const struct verdict_history *h);
void verdict_queues__write(struct json_writer *w, const struct verdict_queues *q,
			   const struct verdict_history *h);

#endif /* __PERF_VERDICT_QUEUES_H */
