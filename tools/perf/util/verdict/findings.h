/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_FINDINGS_H
#define __PERF_VERDICT_FINDINGS_H

#include "blame.h"

enum verdict_kind {
	KIND_WAIT,		/* tasks waited for another one */
	KIND_STUCK,		/* tasks waited for something that did not come */
	KIND_CPU,		/* tasks waited for a CPU */
	KIND_QUOTA,		/* tasks used up the CPU time that they may have */
	KIND_DISK,		/* tasks waited for a block device */
	KIND_RECLAIM,		/* tasks reclaimed memory */
	KIND_INTERRUPT,		/* interrupts had the CPU of tasks for long */
	KIND_THROTTLED,		/* tasks had to wait because of the memory that is used */
	KIND_FORKS,		/* tasks made others all the time */
	KIND_CHANGED,		/* tasks ran more than in calm parts, and others waited more */
};

enum verdict_confidence {
	CONFIDENCE_LIKELY,
	CONFIDENCE_KNOWN,
};

struct verdict_share {
	u32	task;
	u64	ns;
};

/**
 * struct verdict_shares - who has how much of something, the greatest first in the end
 * @nr: how many of them are kept
 * @others: time of those that are not
 */
struct verdict_shares {
	struct verdict_share	*shares;
	u32			nr;
	u32			max;
	u64			others;
};

/**
 * struct verdict_finding - what held tasks up
 * @kind: what it is
 * @root: what the waits come down to
 * @confidence: how sure that is
 * @cost_ns: how long all tasks were held up together
 * @direct_ns: how much of it was without a task between culprit and victim
 * @count: how many waits
 * @last_victim: who waited in the last one
 * @last_wait: which of its waits that was
 * @wait_ns: how much of it came down to the root
 * @longest_ns: the most of that
 * @long_waits: long waits of @last_victim so far
 * @most_long_waits: the most of that
 * @from: when the first one began
 * @to: when the last one ended
 * @victims: who was held up
 * @culprits: who held up, if it was tasks
 * @sure_ns: cost by how sure it is; the most is what the finding is
 * @object: number of the block device, or index of the source of interrupts, or of the memory; or
 *	the class of waits that throttle
 * @requests: how many requests it did meanwhile
 * @slowest_ns: how long the slowest one was in it; of interrupts
 *	and reclaim, the longest one
 * @storm_ns: how long storms of short interrupts had the CPU
 * @storms_ns: how long the storms were
 * @interrupt_ns: how long all the long interrupts were
 * @times: how many tasks were made, long interrupts there were, or reclaims
 * @ran: how long the culprits ran, if that changed
 * @ran_calm: how long in a calm part
 * @waited: how long the victims waited for a CPU, if that changed
 * @waited_calm: how long in a calm part
 * @links: the chain of one wait, a long one
 * @nr_links: how long it is
 * @example_ns: how much of the cost that wait is
 */
struct verdict_finding {
	enum verdict_kind	kind;
	enum verdict_root	root;
	enum verdict_confidence	confidence;
	u64			cost_ns;
	u64			direct_ns;
	u64			count;
	u32			last_victim;
	u32			last_wait;
	u64			wait_ns;
	u64			longest_ns;
	u32			long_waits;
	u32			most_long_waits;
	u64			from;
	u64			to;
	struct verdict_shares	victims;
	struct verdict_shares	culprits;
	u32			object;
	u64			requests;
	u64			slowest_ns;
	u64			storm_ns;
	u64			storms_ns;
	u64			interrupt_ns;
	u64			times;
	u64			ran;
	u64			ran_calm;
	u64			waited;
	u64			waited_calm;
	u64			sure_ns[CONFIDENCE_KNOWN + 1];
	struct verdict_link	links[VERDICT_CHAIN];
	int			nr_links;
	u64			example_ns;
	u32			example_task;
	u32			example_wait;
};

struct verdict_findings {
	struct verdict_finding	*findings;
	u32			nr;
	u32			max;
};

int verdict_findings__find(struct verdict_findings *f, struct verdict_history *h);
void verdict_findings__exit(struct verdict_findings *f);
struct verdict_finding *verdict_findings__add(struct verdict_findings *f);
int verdict_shares__add(struct verdict_shares *s, u32 task, u64 ns);
void verdict_shares__sort(struct verdict_shares *s);
size_t verdict__name_length(const char *comm);
bool verdict__same_name(const char *a, const char *b);

#endif /* __PERF_VERDICT_FINDINGS_H */
