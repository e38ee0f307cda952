// SPDX-License-Identifier: GPL-2.0
/*
 * How long tasks waited for CPUs: each task, and all of them in the run queue of each CPU.
 *
 * A wait begins when a task becomes runnable, by a wakeup or because it leaves its CPU in that
 * state, and ends when it runs. It counts for the CPU that the wakeup had put the task on. If
 * only sched:sched_waking was recorded, that is the CPU on which it ran then. A wait that has
 * not ended, and whose CPU no record tells, counts for the task alone.
 *
 * Beside the sum of the waits stands the time in which a queue was not empty, and for how much of
 * that another CPU was idle. Tasks that may run on some CPUs only make a machine look like
 * that, and so does a scheduler that does not spread them. For this, the begins and ends of
 * waits and of idle times are sorted by time.
 */
#include "queues.h"
#include "history.h"
#include "words.h"

#include "json-writer.h"
#include "strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_PRINTED	15	/* tasks */
#define MOST_WRITTEN	200

/**
 * struct edge - something begins or ends
 * @time: when
 * @cpu: on which CPU
 * @waits: how many tasks more wait for the CPU: 1 or -1
 * @idles: whether it becomes idle: 1, or ends to be: -1
 */
struct edge {
	u64	time;
	u32	cpu;
	s16	waits;
	s16	idles;
};

struct edges {
	struct edge	*list;
	u32		nr;
	u32		max;
};

/* What a CPU does between two edges: how many tasks wait for it, and whether it is idle */
struct now {
	u32	waits;
	u32	idles;
};

static int add_edges(struct edges *e, u64 start, u64 end, const struct edge *what)
{
	struct edge *new;

	for (int i = 0; i < 2; i++) {
		if (verdict_array__grow((void **)&e->list, e->nr, &e->max, sizeof(*e->list)))
			return -ENOMEM;
		new = &e->list[e->nr++];
		*new = *what;
		new->time = i ? end : start;
		new->waits = i ? -what->waits : what->waits;
		new->idles = i ? -what->idles : what->idles;
	}
	return 0;
}

static void add_delay(struct verdict_delay *d, u64 ns, bool preempted)
{
	d->waits++;
	d->ns += ns;
	d->longest_ns = max(d->longest_ns, ns);
	if (preempted) {
		d->preempted++;
		d->preempted_ns += ns;
	}
}

static int count_waits(struct verdict_queues *q, const struct verdict_history *h, u32 task,
		       struct edges *e)
{
	const struct verdict_task *t = &h->tasks[task];

	for (u32 i = 0; i < t->nr_waits; i++) {
		const struct verdict_wait *w = &t->waits[i];
		struct edge edge = { .cpu = w->cpu, .waits = 1 };
		/* A new task becomes runnable by a wakeup. */
		bool born = !i && t->parent != VERDICT_NONE && w->start == t->first;
		bool preempted = w->preempted && !born;

		if (w->unknown || !w->woken || w->end <= w->woken)
			continue;
		add_delay(&q->tasks[task], w->end - w->woken, preempted);
		if (w->cpu < 0 || (u32)w->cpu >= h->nr_cpus)
			continue;
		add_delay(&q->cpus[w->cpu].delay, w->end - w->woken, preempted);
		if (add_edges(e, w->woken, w->end, &edge))
			return -ENOMEM;
	}
	return 0;
}

/* A CPU that is idle at the end counts as idle up to the newest record of all. */
static int count_idle(const struct verdict_history *h, u32 cpu, struct edges *e)
{
	const struct verdict_cpu *c = &h->cpus[cpu];
	struct edge edge = { .cpu = cpu, .idles = 1 };

	for (u32 i = 0; i < c->nr_runs; i++) {
		u64 end = i + 1 < c->nr_runs ? c->runs[i + 1].start : h->newest;

		/* One that may not run its task could not have helped another CPU, either. */
		if (c->runs[i].task != VERDICT_IDLE || c->runs[i].held ||
		    end <= c->runs[i].start)
			continue;
		if (add_edges(e, c->runs[i].start, end, &edge))
			return -ENOMEM;
	}
	return 0;
}

static int compare_edges(const void *one, const void *other)
{
	const struct edge *a = one, *b = other;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* @idle: how many CPUs are */
static void add_time(struct verdict_queues *q, const struct now *now, u32 nr, u32 idle, u64 ns)
{
	for (u32 cpu = 0; ns && cpu < nr; cpu++) {
		if (!now[cpu].waits)
			continue;
		q->cpus[cpu].waited_ns += ns;
		if (idle > now[cpu].idles)
			q->cpus[cpu].idle_ns += ns;
	}
}

static int sweep(struct verdict_queues *q, const struct verdict_history *h, struct edges *e)
{
	struct now *now = calloc(h->nr_cpus + 1, sizeof(*now));
	u32 idle = 0, waits = 0;

	if (!now)
		return -ENOMEM;
	qsort(e->list, e->nr, sizeof(*e->list), compare_edges);
	for (u32 i = 0; i < e->nr; i++) {
		const struct edge *edge = &e->list[i];

		if (i && waits)
			add_time(q, now, h->nr_cpus, idle, edge->time - e->list[i - 1].time);
		now[edge->cpu].waits += edge->waits;
		waits += edge->waits;
		now[edge->cpu].idles += edge->idles;
		idle += edge->idles;
	}
	free(now);
	return 0;
}

static const struct verdict_delay *delays_to_sort;

static int compare_tasks(const void *one, const void *other)
{
	u32 a = *(const u32 *)one, b = *(const u32 *)other;
	u64 x = delays_to_sort[a].ns, y = delays_to_sort[b].ns;

	return x > y ? -1 : x < y ? 1 : a > b ? 1 : -1;
}

static void sort_tasks(struct verdict_queues *q, const struct verdict_history *h)
{
	for (u32 task = 0; task < h->nr_tasks; task++) {
		if (q->tasks[task].waits)
			q->order[q->nr++] = task;
	}
	delays_to_sort = q->tasks;
	qsort(q->order, q->nr, sizeof(*q->order), compare_tasks);
}

/**
 * verdict_queues__find - add up how long tasks waited for CPUs
 * @q: the sums
 * @h: history, finished
 *
 * It takes 48 bytes for each wait and each idle time meanwhile.
 *
 * Return: 0 or -ENOMEM; verdict_queues__exit() is needed in both cases.
 */
int verdict_queues__find(struct verdict_queues *q, const struct verdict_history *h)
{
	struct edges e = {};
	int err = 0;

	q->cpus = calloc(h->nr_cpus + 1, sizeof(*q->cpus));
	q->tasks = calloc(h->nr_tasks, sizeof(*q->tasks));
	q->order = calloc(h->nr_tasks, sizeof(*q->order));
	if (!q->cpus || !q->tasks || !q->order)
		return -ENOMEM;
	for (u32 task = 0; !err && task < h->nr_tasks; task++) {
		if (task != VERDICT_IDLE)
			err = count_waits(q, h, task, &e);
	}
	for (u32 cpu = 0; !err && cpu < h->nr_cpus; cpu++)
		err = count_idle(h, cpu, &e);
	if (!err)
		err = sweep(q, h, &e);
	free(e.list);
	if (!err)
		sort_tasks(q, h);
	return err;
}

void verdict_queues__exit(struct verdict_queues *q)
{
	zfree(&q->cpus);
	zfree(&q->tasks);
	zfree(&q->order);
}

static double ms(u64 ns)
{
	return (double)ns / NSEC_PER_MSEC;
}

static void print_delay(const struct verdict_delay *d)
{
	printf(" %10" PRIu64 " %12.3f %12.3f %12.3f", d->waits, ms(d->ns), ms(d->preempted_ns),
	       ms(d->longest_ns));
}

/**
 * verdict_queues__print - how long tasks waited for CPUs, for a terminal
 * @q: the sums
 * @h: history
 */
void verdict_queues__print(const struct verdict_queues *q, const struct verdict_history *h)
{
	struct strbuf sb = STRBUF_INIT;
	u32 i;

	printf("Run queues of CPUs, in ms\n");
	printf(" %10s %12s %12s %12s %12s %12s  %s\n", "WAITS", "SUM", "PREEMPTED", "LONGEST",
	       "NOT EMPTY", "OTHERS IDLE", "CPU");
	for (i = 0; i < h->nr_cpus; i++) {
		if (!h->cpus[i].seen)
			continue;
		print_delay(&q->cpus[i].delay);
		printf(" %12.3f %12.3f  %u\n", ms(q->cpus[i].waited_ns), ms(q->cpus[i].idle_ns),
		       i);
	}
	printf("\nTasks that waited for a CPU, in ms\n");
	printf(" %10s %12s %12s %12s\n", "WAITS", "SUM", "PREEMPTED", "LONGEST");
	for (i = 0; i < q->nr && i < MOST_PRINTED; i++) {
		strbuf_setlen(&sb, 0);
		verdict_words__task(&sb, &h->tasks[q->order[i]]);
		print_delay(&q->tasks[q->order[i]]);
		printf("  %s\n", sb.buf);
	}
	if (q->nr > MOST_PRINTED)
		printf("  and %u more\n", q->nr - MOST_PRINTED);
	strbuf_release(&sb);
}

static void write_delay(struct json_writer *w, const struct verdict_delay *d)
{
	json_writer__number(w, "waits", d->waits);
	json_writer__number(w, "ns", d->ns);
	json_writer__number(w, "preempted", d->preempted);
	json_writer__number(w, "preempted_ns", d->preempted_ns);
	json_writer__number(w, "longest_ns", d->longest_ns);
}

/**
 * verdict_queues__write - how long tasks waited for CPUs, as the member "run_queues" of an
 *			   object of JSON
 * @w: where to
 * @q: the sums
 * @h: history
 */
void verdict_queues__write(struct json_writer *w, const struct verdict_queues *q,
			   const struct verdict_history *h)
{
	u32 i;

	json_writer__begin_object(w, "run_queues", JSON_STYLE__LINES);
	json_writer__begin_array(w, "cpus", JSON_STYLE__LINES);
	for (i = 0; i < h->nr_cpus; i++) {
		if (!h->cpus[i].seen)
			continue;
		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__number(w, "cpu", i);
		write_delay(w, &q->cpus[i].delay);
		json_writer__number(w, "waited_ns", q->cpus[i].waited_ns);
		json_writer__number(w, "others_idle_ns", q->cpus[i].idle_ns);
		json_writer__end(w);
	}
	json_writer__end(w);
	json_writer__begin_array(w, "tasks", JSON_STYLE__LINES);
	for (i = 0; i < q->nr && i < MOST_WRITTEN; i++) {
		const struct verdict_task *t = &h->tasks[q->order[i]];

		json_writer__begin_object(w, NULL, JSON_STYLE__PADDED);
		json_writer__string(w, "comm", t->comm);
		json_writer__number(w, "tid", t->tid);
		write_delay(w, &q->tasks[q->order[i]]);
		json_writer__end(w);
	}
	json_writer__end(w);
	json_writer__end(w);
}
