/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_COMPARE_H
#define __PERF_VERDICT_COMPARE_H

#include "figures.h"
#include "findings.h"

/* Nothing is claimed from fewer calm parts. */
#define VERDICT_MIN_CALM	5
#define VERDICT_MAX_CALM	64
/* The shortest part that is chosen */
#define VERDICT_MIN_PART	200000000ULL

enum verdict_compared {
	COMPARED,
	COMPARED_SHORT,		/* there are too few calm parts */
	COMPARED_UNKNOWN,	/* too many switches are missing from the part */
};

/**
 * struct verdict_change - a figure that is not what it was in the calm parts
 * @figure: which one
 * @item: of which function, or group of tasks
 * @now: what it is
 * @median: of the calm parts
 * @least: of the calm parts
 * @most: of the calm parts
 */
struct verdict_change {
	enum verdict_figure	figure;
	u32			item;
	u64			now;
	u64			median;
	u64			least;
	u64			most;
};

/**
 * struct verdict_choice - what is to be compared
 * @trigger: when the dump was triggered, or 0
 * @named: the part is @now, else it is chosen
 * @now: the part
 * @against: ranges that the calm parts are of; the rest of the recording if there are none
 * @nr_against: how many
 */
struct verdict_choice {
	u64			trigger;
	bool			named;
	struct verdict_part	now;
	struct verdict_part	*against;
	u32			nr_against;
};

/**
 * struct verdict_comparison - a part of a recording, compared with calm ones
 * @compared: whether they could be
 * @triggered: the part ends at the trigger
 * @since: from when on there are records of all CPUs
 * @now: the part
 * @calm: those that it was compared with; of the same length
 * @changes: by figure, the greatest first
 * @judged: how many figures were compared
 */
struct verdict_comparison {
	enum verdict_compared	compared;
	bool			triggered;
	u64			since;
	struct verdict_part	now;
	struct verdict_part	calm[VERDICT_MAX_CALM];
	u32			nr_calm;
	struct verdict_change	*changes;
	u32			nr;
	u32			max;
	u64			judged;
	struct verdict_part	parts[VERDICT_MAX_CALM + 1];
	struct verdict_figures	figures;
};

int verdict_compare__run(struct verdict_comparison *cmp, const struct verdict_history *h,
			 const struct verdict_chains *c, const struct verdict_choice *choice);
void verdict_compare__exit(struct verdict_comparison *cmp);
int verdict_compare__find(const struct verdict_comparison *cmp, const struct verdict_history *h,
			  struct verdict_findings *f);

#endif /* __PERF_VERDICT_COMPARE_H */
