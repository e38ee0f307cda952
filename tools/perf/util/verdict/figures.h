/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_FIGURES_H
#define __PERF_VERDICT_FIGURES_H

#include "chains.h"
#include "history.h"

enum verdict_figure {
	FIGURE_SELF,		/* samples of a function itself */
	FIGURE_TOTAL,		/* samples of a function, and of those that it called */
	FIGURE_ON,		/* time that tasks ran */
	FIGURE_RUNNABLE,	/* time that they could run, and waited for a CPU */
	FIGURE_OFF,		/* time that they waited for something else */
	FIGURE_NR,
};

/* A part of a recording */
struct verdict_part {
	u64	start;
	u64	end;
};

/* Tasks whose names differ in a number; task: one of them */
struct verdict_group {
	u32	task;
	u32	tasks;
};

/**
 * struct verdict_figures - figures of functions and tasks in parts of a recording
 * @parts: in the order of time; they do not overlap
 * @nr_items: of a figure, how many functions or groups of tasks it is of
 * @values: of a figure, nr_parts of them for each item
 * @unknown: of a part, CPU time of which is not known who had it
 * @samples: of a part, how many samples it has
 * @unsure: of a group, nr_parts times of which it is not known what its tasks did
 * @by_samples: times of tasks are those of samples: the switches are not known
 */
struct verdict_figures {
	const struct verdict_part	*parts;
	u32				nr_parts;
	u32				nr_items[FIGURE_NR];
	u64				*values[FIGURE_NR];
	u64				*unknown;
	u64				*samples;
	u64				*unsure;
	struct verdict_group		*groups;
	u32				nr_groups;
	u32				*group_of;
	bool				by_samples;
};

int verdict_figures__count(struct verdict_figures *f, const struct verdict_history *h,
			   const struct verdict_chains *c, const struct verdict_part *parts,
			   u32 nr);
void verdict_figures__exit(struct verdict_figures *f);
void verdict_figures__by_task(const struct verdict_figures *f, const struct verdict_history *h,
			      enum verdict_figure figure, struct verdict_part part, u64 *ns);

/* The figures of an item, one for each part */
static inline u64 *verdict_figures__values(const struct verdict_figures *f,
					   enum verdict_figure figure, u32 item)
{
	return f->values[figure] + (size_t)item * f->nr_parts;
}

static inline bool verdict_figure__is_samples(enum verdict_figure figure)
{
	return figure == FIGURE_SELF || figure == FIGURE_TOTAL;
}

#endif /* __PERF_VERDICT_FIGURES_H */
