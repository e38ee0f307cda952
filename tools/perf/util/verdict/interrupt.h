/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_INTERRUPT_H
#define __PERF_VERDICT_INTERRUPT_H

#include <linux/types.h>
#include <stdbool.h>

struct verdict_cpu;
struct verdict_history;

/**
 * struct verdict_source - what takes a CPU from its task
 * @name: of the handler, or of the vector of softirqs
 * @nr: number of the interrupt, or of the vector
 * @cpu: which CPU
 * @soft: it is a softirq
 */
struct verdict_source {
	char	name[32];
	u32	nr;
	u32	cpu;
	bool	soft;
};

struct verdict_sources {
	struct verdict_source	*sources;
	u32			nr;
	u32			max;
};

/**
 * struct verdict_entry - a handler, or a softirq, that a CPU is in
 * @since: from when on; 0: it is in none
 * @inner_ns: so much of this time had handlers that interrupted it
 * @source: what it is
 */
struct verdict_entry {
	u64			since;
	u64			inner_ns;
	struct verdict_source	source;
};

/* What a CPU is in: a softirq, and a handler that may have interrupted it */
struct verdict_nest {
	struct verdict_entry	hard;
	struct verdict_entry	soft;
};

#define STORM_TASKS	16

/**
 * struct verdict_storm_task - what short interrupts of one source took from one task
 * @source: which
 * @task: whose CPU they had
 * @first: when the first one began
 * @last: when the last one ended
 * @ns: how long they were
 * @nr: how many
 */
struct verdict_storm_task {
	struct verdict_source	source;
	u32			task;
	u64			first;
	u64			last;
	u64			ns;
	u32			nr;
};

/**
 * struct verdict_storm - the short interrupts of a CPU in the last STORM_NS
 * @tasks: what they took from whom
 * @nr: number of @tasks
 */
struct verdict_storm {
	struct verdict_storm_task	tasks[STORM_TASKS];
	u32				nr;
};

void verdict_nest__enter(struct verdict_nest *nest, const struct verdict_source *source, u64 time);
int verdict_nest__leave(struct verdict_nest *nest, struct verdict_history *h, u32 task,
			const struct verdict_source *source, u64 time);
void verdict_nest__forget(struct verdict_nest *nest);
bool verdict_source__is_thread(const struct verdict_source *source, const char *comm);

#endif /* __PERF_VERDICT_INTERRUPT_H */
