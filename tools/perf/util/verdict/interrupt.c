// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts that had a CPU for long.
 *
 * A handler has its CPU from irq:irq_handler_entry to irq:irq_handler_exit with the same number,
 * a softirq from irq:softirq_entry to irq:softirq_exit with the same vector. Meanwhile the CPU
 * switches to no other task, softirqs do not interrupt softirqs, and a handler may interrupt a
 * softirq. What does not fit shows that a record is missing, and then nothing is claimed:
 *
 *	an end without a begin		the begin is before the recording, or lost
 *	a begin in place of an end	the end is lost; so it is if the CPU switches meanwhile
 *	a begin without an end		the recording ends, or the end is lost
 *
 * With PREEMPT_RT, softirqs are preempted: the CPU switches in them, and these are not counted.
 *
 * Only what is long is kept, and what is short if it comes as a storm, see close_storm(). The
 * kernel itself gives softirqs 2 ms in a row, and those of the network two ticks, which is 8 ms
 * with 250 ticks a second. MIN_INTERRUPT is longer.
 *
 * A long handler within a softirq divides it into pieces, each of which counts if it is long.
 * Short ones within it are taken off at the begin of the piece: a nanosecond counts once.
 */
#include "interrupt.h"
#include "history.h"

#include <errno.h>
#include <limits.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <string.h>

#define MIN_INTERRUPT	10000000ULL
#define STORM_NS	10000000ULL
/* One that is nearly long is no storm. */
#define MIN_STORM	4

/* The index of a source, or VERDICT_NONE without memory */
static u32 find_source(struct verdict_sources *s, const struct verdict_source *source)
{
	u32 i;

	for (i = 0; i < s->nr; i++) {
		if (s->sources[i].soft == source->soft && s->sources[i].nr == source->nr &&
		    s->sources[i].cpu == source->cpu && !strcmp(s->sources[i].name, source->name))
			return i;
	}
	if (verdict_array__grow((void **)&s->sources, s->nr, &s->max, sizeof(*s->sources)))
		return VERDICT_NONE;
	s->sources[s->nr] = *source;
	return s->nr++;
}

/* Behind the others. What overlaps them, as their records are not all there, claims nothing. */
static int add_behind(struct verdict_spans *spans, const struct verdict_span *span)
{
	if (spans->nr && span->start < spans->list[spans->nr - 1].end)
		return 0;
	return verdict_spans__add(spans, span);
}

static bool is_same(const struct verdict_source *a, const struct verdict_source *b)
{
	return a->soft == b->soft && a->nr == b->nr && a->cpu == b->cpu;
}

/* Add up the source's time in the storm, from all tasks. Return: whether it is a storm. */
static bool add_up(const struct verdict_storm *storm, const struct verdict_source *source,
		   struct verdict_span *span)
{
	u32 i, nr = 0;

	*span = (struct verdict_span) { .start = ULLONG_MAX };
	for (i = 0; i < storm->nr; i++) {
		const struct verdict_storm_task *t = &storm->tasks[i];

		if (!is_same(&t->source, source))
			continue;
		span->start = min(span->start, t->first);
		span->end = max(span->end, t->last);
		span->ns += t->ns;
		nr += t->nr;
	}
	return nr >= MIN_STORM && span->ns * 2 > max_t(u64, span->end - span->start, STORM_NS);
}

/*
 * Short interrupts are normal, unless one source had half of the CPU by them, for STORM_NS or
 * more. It is at most one source then.
 */
static int close_storm(struct verdict_history *h, struct verdict_cpu *c)
{
	struct verdict_storm *storm = &c->storm;
	const struct verdict_source *source = NULL;
	struct verdict_span all;
	u32 i, nr = storm->nr;
	int err;

	for (i = 0; i < nr && !source; i++) {
		if (add_up(storm, &storm->tasks[i].source, &all))
			source = &storm->tasks[i].source;
	}
	storm->nr = 0;
	if (!source)
		return 0;
	all.source = find_source(&h->sources, source);
	if (all.source == VERDICT_NONE)
		return -ENOMEM;
	err = add_behind(&c->interrupts, &all);
	for (i = 0; i < nr && !err; i++) {
		const struct verdict_storm_task *t = &storm->tasks[i];
		struct verdict_span span = { t->first, t->last, t->ns, all.source };

		if (t->task != VERDICT_IDLE && is_same(&t->source, source))
			err = add_behind(&h->tasks[t->task].interrupts, &span);
	}
	return err;
}

/* One that is short; @span has its time. Of more tasks than there is room for, nothing is said. */
static int add_short(struct verdict_history *h, u32 task, const struct verdict_source *source,
		     const struct verdict_span *span)
{
	struct verdict_cpu *c = verdict_history__cpu(h, source->cpu);
	struct verdict_storm_task *t;
	struct verdict_storm *storm;
	int err = 0;
	u32 i;

	if (!c)
		return -ENOMEM;
	storm = &c->storm;
	if (storm->nr && span->start >= storm->tasks[0].first + STORM_NS)
		err = close_storm(h, c);
	for (i = 0; i < storm->nr; i++) {
		if (storm->tasks[i].task == task && is_same(&storm->tasks[i].source, source))
			break;
	}
	if (i == STORM_TASKS)
		return err;
	t = &storm->tasks[i];
	if (i == storm->nr) {
		*t = (struct verdict_storm_task) {
			.source = *source, .task = task, .first = span->start,
		};
		storm->nr++;
	}
	t->last = span->end;
	t->ns += span->ns;
	t->nr++;
	return err;
}

/* A handler, or a piece of a softirq, is at its end. */
static int keep(struct verdict_history *h, u32 task, const struct verdict_entry *entry, u64 end)
{
	struct verdict_span interrupt = {
		.start	= entry->since + entry->inner_ns,
		.end	= end,
	};
	struct verdict_cpu *c;
	int err;

	if (end <= interrupt.start)
		return 0;
	interrupt.ns = end - interrupt.start;
	if (interrupt.ns < MIN_INTERRUPT)
		return add_short(h, task, &entry->source, &interrupt);
	c = verdict_history__cpu(h, entry->source.cpu);
	if (!c)
		return -ENOMEM;
	/* The lists are in the order of time: an open storm comes first. */
	err = close_storm(h, c);
	if (err)
		return err;
	interrupt.source = find_source(&h->sources, &entry->source);
	if (interrupt.source == VERDICT_NONE || add_behind(&c->interrupts, &interrupt))
		return -ENOMEM;
	if (task == VERDICT_IDLE)
		return 0;
	return add_behind(&h->tasks[task].interrupts, &interrupt);
}

static bool is_open(const struct verdict_entry *entry, const struct verdict_source *source)
{
	return entry->since && entry->source.nr == source->nr;
}

/**
 * verdict_nest__enter - a handler or a softirq begins
 * @nest: what the CPU is in
 * @source: what begins
 * @time: when
 */
void verdict_nest__enter(struct verdict_nest *nest, const struct verdict_source *source, u64 time)
{
	struct verdict_entry *entry = source->soft ? &nest->soft : &nest->hard;

	/* A softirq begins when the handlers are done. */
	if (source->soft)
		nest->hard.since = 0;
	/* The end of the last handler is lost: how long it had the softirq's time is unknown. */
	else if (nest->hard.since)
		nest->soft.since = 0;
	entry->since = time;
	entry->inner_ns = 0;
	entry->source = *source;
}

static int leave_hard(struct verdict_nest *nest, struct verdict_history *h, u32 task, u64 time)
{
	struct verdict_entry *hard = &nest->hard, *soft = &nest->soft;
	u64 ns = time - hard->since;
	int err = 0;

	if (soft->since && ns < MIN_INTERRUPT) {
		soft->inner_ns += ns;
	} else if (soft->since) {
		err = keep(h, task, soft, hard->since);
		soft->since = time;
		soft->inner_ns = 0;
	}
	return err ?: keep(h, task, hard, time);
}

/**
 * verdict_nest__leave - a handler or a softirq ends
 * @nest: what the CPU is in
 * @h: the history
 * @task: whose CPU it had
 * @source: what ends
 * @time: when
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_nest__leave(struct verdict_nest *nest, struct verdict_history *h, u32 task,
			const struct verdict_source *source, u64 time)
{
	struct verdict_entry *entry = source->soft ? &nest->soft : &nest->hard;
	/* A handler that has not ended is one whose end is lost. */
	bool broken = !is_open(entry, source) || (source->soft && nest->hard.since) ||
		      time < entry->since;
	int err = 0;

	if (broken)
		verdict_nest__forget(nest);
	else if (source->soft)
		err = keep(h, task, entry, time);
	else
		err = leave_hard(nest, h, task, time);
	entry->since = 0;
	return err;
}

/* Records are missing, or the CPU switches */
void verdict_nest__forget(struct verdict_nest *nest)
{
	nest->hard.since = 0;
	nest->soft.since = 0;
}

/* The thread that runs softirqs loses nothing to them. */
bool verdict_source__is_thread(const struct verdict_source *source, const char *comm)
{
	return source->soft && strstarts(comm, "ksoftirqd/");
}
