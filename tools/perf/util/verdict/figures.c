// SPDX-License-Identifier: GPL-2.0
/*
 * Figures of functions and tasks in parts of a recording.
 *
 * A function has the samples of the clock that found it running, and those that found a
 * function that it called; one that calls itself counts once. Idle CPUs are not counted.
 *
 * Tasks whose names differ in a number are one group: its figures are sums. A task ran from
 * the switch to it until the one away from it, could run from its wakeup on, and waited for
 * something else before. A kernel thread without work waits for nothing.
 *
 * A task that is not known to have begun was there before its first record, and waited. That
 * takes the wakeups of new tasks: without them, there are no figures of such waits.
 *
 * Time of which it is unknown whether a task ran or waited is in none of these figures. It is
 * counted, so that it can be told how much greater they may be.
 *
 * If it is not known what the CPUs ran for more than MOST_UNKNOWN of the time (there are no
 * switches, or only those of some tasks), the time that tasks ran is that of their samples,
 * and there are no figures of waits.
 */
#include "figures.h"
#include "findings.h"

#include <errno.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* One in so many ns */
#define MOST_UNKNOWN	10

struct named {
	const char	*comm;
	size_t		len;
	u32		task;
};

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return strncmp(x->comm, y->comm, x->len) ?: x->task < y->task ? -1 : 1;
}

static int make_groups(struct verdict_figures *f, const struct verdict_history *h)
{
	struct named *names = calloc(h->nr_tasks, sizeof(*names));
	u32 i, nr = h->nr_tasks - 1;

	f->group_of = calloc(h->nr_tasks, sizeof(*f->group_of));
	f->groups = calloc(h->nr_tasks, sizeof(*f->groups));
	if (!names || !f->group_of || !f->groups) {
		free(names);
		return -ENOMEM;
	}
	for (i = 0; i < nr; i++) {
		names[i].comm = h->tasks[i + 1].comm;
		names[i].len = verdict__name_length(names[i].comm);
		names[i].task = i + 1;
	}
	qsort(names, nr, sizeof(*names), compare_names);
	for (i = 0; i < nr; i++) {
		if (!i || names[i].len != names[i - 1].len ||
		    strncmp(names[i].comm, names[i - 1].comm, names[i].len))
			f->groups[f->nr_groups++].task = names[i].task;
		f->groups[f->nr_groups - 1].tasks++;
		f->group_of[names[i].task] = f->nr_groups - 1;
	}
	free(names);
	return 0;
}

/* The first part that ends after a time */
static u32 find_part(const struct verdict_figures *f, u64 time)
{
	return verdict_array__not_later(f->parts, f->nr_parts, sizeof(*f->parts),
					offsetof(struct verdict_part, end), time);
}

static void add_time(const struct verdict_figures *f, u64 *values, u64 start, u64 end)
{
	u32 i;

	if (start >= end)
		return;
	for (i = find_part(f, start); i < f->nr_parts && f->parts[i].start < end; i++)
		values[i] += min(end, f->parts[i].end) - max(start, f->parts[i].start);
}

static u64 end_of_run(const struct verdict_cpu *c, u32 i)
{
	return i + 1 < c->nr_runs ? c->runs[i + 1].start : c->last;
}

static void count_runs(struct verdict_figures *f, const struct verdict_history *h)
{
	u32 cpu, i;

	for (cpu = 0; cpu < h->nr_cpus; cpu++) {
		const struct verdict_cpu *c = &h->cpus[cpu];

		for (i = 0; i < c->nr_runs; i++) {
			u32 task = c->runs[i].task;
			u64 *values = f->unknown;

			if (task == VERDICT_IDLE)
				continue;
			if (task != VERDICT_NONE)
				values = verdict_figures__values(f, FIGURE_ON, f->group_of[task]);
			add_time(f, values, c->runs[i].start, end_of_run(c, i));
		}
	}
}

/* How long a task was off the CPU before its first record */
static u64 off_before(const struct verdict_history *h, const struct verdict_task *t)
{
	bool born = t->parent != VERDICT_NONE;
	bool for_work = t->kthread || (t->nr_waits && t->waits[0].class == CLASS_WORK);

	/* In what it waited is told by its first wait. */
	if (t->nr_waits && t->waits[0].unknown)
		return 0;
	return t->first && !born && !for_work ? t->first - h->oldest : 0;
}

static void count_waits(struct verdict_figures *f, const struct verdict_history *h)
{
	u32 task, i;

	for (task = 1; task < h->nr_tasks; task++) {
		const struct verdict_task *t = &h->tasks[task];
		u64 *runnable = verdict_figures__values(f, FIGURE_RUNNABLE, f->group_of[task]);
		u64 *off = f->nr_items[FIGURE_OFF] ?
			   verdict_figures__values(f, FIGURE_OFF, f->group_of[task]) : NULL;

		if (off)
			add_time(f, off, h->oldest, h->oldest + off_before(h, t));
		for (i = 0; i < t->nr_waits; i++) {
			const struct verdict_wait *w = &t->waits[i];
			u64 woken = w->woken ?: w->end;

			if (w->unknown) {
				add_time(f, f->unsure + (size_t)f->group_of[task] * f->nr_parts,
					 w->start, w->end);
				continue;
			}
			if (off && w->class != CLASS_WORK)
				add_time(f, off, w->start, woken);
			add_time(f, runnable, woken, w->end);
		}
	}
}

/* A recursive function counts once, at its outermost node of each call chain. */
static void add_callers(struct verdict_figures *f, const struct verdict_chains *c, u64 *nodes,
			u32 part)
{
	u32 i;

	for (i = c->by_caller.nr; i--;) {
		const struct verdict_node *n = &c->nodes[i];

		if (n->outermost)
			verdict_figures__values(f, FIGURE_TOTAL, n->function)[part] += nodes[i];
		if (n->parent != VERDICT_NONE)
			nodes[n->parent] += nodes[i];
		nodes[i] = 0;
	}
}

/* One part after the other, so that no more is kept than the nodes of one */
static int count_chains(struct verdict_figures *f, const struct verdict_history *h,
			const struct verdict_chains *c)
{
	u64 *nodes = calloc(c->by_caller.nr + 1, sizeof(*nodes));
	u32 *next = calloc(h->nr_tasks, sizeof(*next));
	u32 part, task;

	if (!nodes || !next) {
		free(nodes);
		free(next);
		return -ENOMEM;
	}
	for (part = 0; part < f->nr_parts; part++) {
		for (task = 1; task < h->nr_tasks; task++) {
			const struct verdict_task *t = &h->tasks[task];

			for (; next[task] < t->nr_hits; next[task]++) {
				const struct verdict_hit *hit = &t->hits[next[task]];

				if (hit->time >= f->parts[part].end)
					break;
				if (hit->time >= f->parts[part].start)
					nodes[hit->chain]++;
			}
		}
		add_callers(f, c, nodes, part);
	}
	free(nodes);
	free(next);
	return 0;
}

static void count_hits(struct verdict_figures *f, const struct verdict_history *h)
{
	u32 task, i, part;

	for (task = 1; task < h->nr_tasks; task++) {
		const struct verdict_task *t = &h->tasks[task];
		u64 *on = verdict_figures__values(f, FIGURE_ON, f->group_of[task]);

		for (i = 0; i < t->nr_hits; i++) {
			const struct verdict_hit *hit = &t->hits[i];

			part = find_part(f, hit->time);
			if (part == f->nr_parts || f->parts[part].start > hit->time)
				continue;
			f->samples[part]++;
			verdict_figures__values(f, FIGURE_SELF, hit->leaf)[part]++;
			if (f->by_samples)
				on[part] += h->clock_ns;
		}
	}
}

/* Whether it is known who had the CPUs */
static bool has_runs(const struct verdict_history *h)
{
	u64 known = 0, unknown = 0;
	u32 cpu, i;

	if (!h->has[EVENT_SWITCH])
		return false;
	for (cpu = 0; cpu < h->nr_cpus; cpu++) {
		const struct verdict_cpu *c = &h->cpus[cpu];

		for (i = 0; i < c->nr_runs; i++) {
			u64 ns = end_of_run(c, i) - c->runs[i].start;

			if (c->runs[i].task == VERDICT_NONE)
				unknown += ns;
			else
				known += ns;
		}
	}
	return unknown < (known + unknown) / MOST_UNKNOWN;
}

/**
 * verdict_figures__count - count the figures of parts
 * @f: where to
 * @h: history
 * @c: functions and call chains
 * @parts: of the recording, in the order of time; they do not overlap
 * @nr: how many
 *
 * Return: 0 or -ENOMEM; verdict_figures__exit() is to be called in any case.
 */
int verdict_figures__count(struct verdict_figures *f, const struct verdict_history *h,
			   const struct verdict_chains *c, const struct verdict_part *parts,
			   u32 nr)
{
	int err, i;

	memset(f, 0, sizeof(*f));
	f->parts = parts;
	f->nr_parts = nr;
	f->by_samples = !has_runs(h);
	err = make_groups(f, h);
	if (err)
		return err;
	f->nr_items[FIGURE_SELF] = c->by_name.nr;
	f->nr_items[FIGURE_TOTAL] = c->whole ? c->by_name.nr : 0;
	f->nr_items[FIGURE_ON] = f->nr_groups;
	f->nr_items[FIGURE_RUNNABLE] = f->by_samples ? 0 : f->nr_groups;
	f->nr_items[FIGURE_OFF] = f->by_samples || !h->has[EVENT_WAKEUP_NEW] ? 0 : f->nr_groups;
	f->unknown = calloc(nr, sizeof(u64));
	f->samples = calloc(nr, sizeof(u64));
	f->unsure = calloc((size_t)f->nr_groups * nr + 1, sizeof(u64));
	if (!f->unknown || !f->samples || !f->unsure)
		return -ENOMEM;
	for (i = 0; i < FIGURE_NR; i++) {
		f->values[i] = calloc((size_t)f->nr_items[i] * nr + 1, sizeof(u64));
		if (!f->values[i])
			return -ENOMEM;
	}
	if (!f->by_samples) {
		count_runs(f, h);
		count_waits(f, h);
	}
	count_hits(f, h);
	return c->whole ? count_chains(f, h, c) : 0;
}

void verdict_figures__exit(struct verdict_figures *f)
{
	int i;

	for (i = 0; i < FIGURE_NR; i++)
		zfree(&f->values[i]);
	zfree(&f->unknown);
	zfree(&f->samples);
	zfree(&f->unsure);
	zfree(&f->groups);
	zfree(&f->group_of);
}

/**
 * verdict_figures__by_task - how long each task ran, or waited for a CPU
 * @f: figures, which tell how times are counted
 * @h: history
 * @figure: FIGURE_ON or FIGURE_RUNNABLE
 * @part: when
 * @ns: where to, of each task
 */
void verdict_figures__by_task(const struct verdict_figures *f, const struct verdict_history *h,
			      enum verdict_figure figure, struct verdict_part part, u64 *ns)
{
	const struct verdict_figures one = { .parts = &part, .nr_parts = 1 };
	u32 cpu, task, i;

	for (task = 1; task < h->nr_tasks; task++) {
		const struct verdict_task *t = &h->tasks[task];

		for (i = 0; figure == FIGURE_RUNNABLE && i < t->nr_waits; i++)
			add_time(&one, &ns[task], t->waits[i].woken ?: t->waits[i].end,
				 t->waits[i].end);
		for (i = 0; figure == FIGURE_ON && f->by_samples && i < t->nr_hits; i++)
			ns[task] += t->hits[i].time >= part.start && t->hits[i].time < part.end ?
				    h->clock_ns : 0;
	}
	for (cpu = 0; figure == FIGURE_ON && !f->by_samples && cpu < h->nr_cpus; cpu++) {
		const struct verdict_cpu *c = &h->cpus[cpu];

		for (i = 0; i < c->nr_runs; i++) {
			if (c->runs[i].task != VERDICT_NONE)
				add_time(&one, &ns[c->runs[i].task], c->runs[i].start,
					 end_of_run(c, i));
		}
	}
}
