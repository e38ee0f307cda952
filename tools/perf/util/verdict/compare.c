// SPDX-License-Identifier: GPL-2.0
/*
 * What changed: a part of a recording against calm ones.
 *
 * How much is a change depends on how much a figure changes when nothing happens. So the
 * rest of the recording is cut into calm parts of the same length as the part that is
 * looked at. The spread of a figure is the difference between the most and the least that
 * it is in a calm part. It has changed if it is further than its margin above the most, or
 * below the least. The margin follows from the spread. On average, the spread of 5 values of a
 * normal distribution is 2.3 standard deviations, and that of 23 values 3.9 (the factor d2 of
 * control charts). (1 + FEW / parts) times the spread is about 4.7 standard deviations for any
 * number of parts. As calm parts may be alike by chance, there is a floor in addition:
 *
 *	samples		three times the square root of the most, for what is counted varies by
 *			that alone; and the difference to the median is at least MIN_SAMPLES,
 *			and one in SAMPLES_SHARE of all samples
 *	times		one in TIME_SHARE of the length of a part
 *
 * If it is unknown for some time what the tasks did, their figures may be greater by that time.
 * What changed must have changed in any case.
 *
 * What happens once, in whatever part, is no change either: in a part that is chosen, each
 * half must be above or below all halves of calm parts.
 *
 * Nothing is claimed from fewer than VERDICT_MIN_CALM calm parts. A calm part of which more
 * than one in UNKNOWN_SHARE of the CPU time is unknown is left out. So is what comes before
 * all CPUs have records: buffers that are overwritten reach back unequally far.
 *
 * The user names the part, or it is chosen: it ends at the trigger, or with the recording.
 * How long before that things began to change is not known. So the time is cut into up to
 * SLICES slices, and it is tried out:
 *
 *	|<------ calm parts ------>|<--- since when it changed --->|
 *	  ...|     |     |     |   |           |<- the part ------>|
 *	                                                  the trigger
 *
 * for 2, 4, 6, 8, 12, 16, and 24 slices since when. Parts are as long as leaves room for
 * VERDICT_MIN_CALM. A time that is too short has what changed in its calm parts, whose
 * spread hides it then; one that is too long has calm time in the part. The one is taken by
 * which most changed, added up over functions and tasks; of equal ones the shortest.
 *
 * A finding of the ordinary verdict takes more: tasks that ran much more, while others waited
 * more for a CPU, and not because they had more to do, in a part of MIN_FINDING or more.
 */
#include "compare.h"

#include <errno.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLICES			48
#define FEW			5
#define MIN_SAMPLES		5
#define SAMPLES_SHARE		100
#define TIME_SHARE		50
#define UNKNOWN_SHARE		10

/* A trigger that is later than the last record by more is of another clock. */
#define MAX_LATE		(60 * NSEC_PER_SEC)

/*
 * What a finding takes at least: the length of the part; the shares of that length by which a
 * task ran for longer, and others waited for longer, than in calm parts. FAR is the first of
 * these differences in multiples of the spread. A task that ran for more than MORE_TO_DO times
 * as long as before had more to do, and is no victim.
 */
#define MIN_FINDING		NSEC_PER_SEC
#define MIN_RAN_SHARE		2
#define MIN_WAITED_SHARE	10
#define FAR			2
#define MORE_TO_DO		4

/* A CPU has no records at first, for this many times the time between two: some are missing. */
#define MISSING_GAPS		100
#define MISSING_RECORDS		100

/* Parts are so many slices in a row. */
struct trial {
	u32	length;
	u32	now;
	u32	calm[VERDICT_MAX_CALM];
	u32	nr_calm;
};

static u64 length_of(const struct verdict_comparison *cmp, const struct trial *t)
{
	const struct verdict_part *parts = cmp->parts;

	return parts[t->now + t->length - 1].end - parts[t->now].start;
}

static u64 sum(const u64 *values, u32 first, u32 nr)
{
	u64 all = 0;

	while (nr--)
		all += values[first++];
	return all;
}

static int compare_values(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static u64 difference(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

static u64 floor_of(const struct verdict_comparison *cmp, const struct verdict_history *h,
		    const struct trial *t, enum verdict_figure figure, u64 most)
{
	u64 ns;

	if (verdict_figure__is_samples(figure))
		return 3 * sqrt(most + 1);
	ns = length_of(cmp, t) / TIME_SHARE;
	if (cmp->figures.by_samples && h->clock_ns)
		ns += 3 * sqrt(most / h->clock_ns + 1) * h->clock_ns;
	return ns;
}

/* Whether both halves of the part are further than all halves of calm ones */
static bool lasts(const struct trial *t, const u64 *values, bool more)
{
	u32 half = t->length / 2, i;
	u64 first = sum(values, t->now, half), second = sum(values, t->now + half, half);
	u64 nearest = more ? min(first, second) : max(first, second);

	for (i = 0; i < 2 * t->nr_calm; i++) {
		u64 calm = sum(values, t->calm[i / 2] + i % 2 * half, half);

		if (more ? calm >= nearest : calm <= nearest)
			return false;
	}
	return true;
}

/* By how much a figure may be greater in some slices: it is unknown what its tasks did. */
static u64 unsure_of(const struct verdict_comparison *cmp, const struct trial *t,
		     const struct verdict_change *change, u32 first)
{
	const struct verdict_figures *f = &cmp->figures;

	if (verdict_figure__is_samples(change->figure))
		return 0;
	return sum(f->unsure + (size_t)change->item * f->nr_parts, first, t->length);
}

/* Whether a figure has changed; its values are one for each slice */
static bool judge(const struct verdict_comparison *cmp, const struct verdict_history *h,
		  const struct trial *t, const u64 *values, struct verdict_change *change)
{
	const u64 *samples = cmp->figures.samples;
	u64 calm[VERDICT_MAX_CALM], beyond, least_samples, unsure = 0;
	u32 i;

	change->now = sum(values, t->now, t->length);
	for (i = 0; i < t->nr_calm; i++) {
		calm[i] = sum(values, t->calm[i], t->length);
		unsure = max(unsure, unsure_of(cmp, t, change, t->calm[i]));
	}
	qsort(calm, t->nr_calm, sizeof(*calm), compare_values);
	change->least = calm[0];
	change->median = calm[t->nr_calm / 2];
	change->most = calm[t->nr_calm - 1];
	beyond = (change->most - change->least) * (t->nr_calm + FEW) / t->nr_calm +
		 floor_of(cmp, h, t, change->figure, change->most);
	if (change->now <= change->most + unsure + beyond &&
	    change->now + unsure_of(cmp, t, change, t->now) + beyond >= change->least)
		return false;
	if (t->length > 1 && !lasts(t, values, change->now > change->most))
		return false;
	if (!verdict_figure__is_samples(change->figure))
		return true;
	least_samples = max_t(u64, MIN_SAMPLES,
			      sum(samples, t->now, t->length) / SAMPLES_SHARE);
	return difference(change->now, change->median) >= least_samples;
}

static int add_change(struct verdict_comparison *cmp, const struct verdict_change *change)
{
	if (verdict_array__grow((void **)&cmp->changes, cmp->nr, &cmp->max, sizeof(*change)))
		return -ENOMEM;
	cmp->changes[cmp->nr++] = *change;
	return 0;
}

/* How much a change counts: not at all if its figure is a sum of others */
static u64 weight(const struct verdict_history *h, const struct verdict_change *change)
{
	u64 by = difference(change->now, change->median);

	switch ((int)change->figure) {
	case FIGURE_SELF:
		return by * (h->clock_ns ?: 1);
	case FIGURE_ON:
	case FIGURE_RUNNABLE:
		return by;
	default:
		return 0;
	}
}

/* All figures that have changed */
static int judge_all(struct verdict_comparison *cmp, const struct verdict_history *h,
		     const struct trial *t, u64 *changed)
{
	const struct verdict_figures *f = &cmp->figures;
	struct verdict_change change;
	int figure;
	u32 item;

	cmp->nr = 0;
	cmp->judged = 0;
	*changed = 0;
	for (figure = 0; figure < FIGURE_NR; figure++) {
		for (item = 0; item < f->nr_items[figure]; item++) {
			change.figure = figure;
			change.item = item;
			cmp->judged++;
			if (!judge(cmp, h, t, verdict_figures__values(f, figure, item), &change))
				continue;
			*changed += weight(h, &change);
			if (add_change(cmp, &change))
				return -ENOMEM;
		}
	}
	return 0;
}

static bool is_known(const struct verdict_comparison *cmp, const struct verdict_history *h,
		     const struct trial *t, u32 first)
{
	u64 cpus = 0;
	u32 i;

	if (cmp->figures.by_samples)
		return true;
	for (i = 0; i < h->nr_cpus; i++)
		cpus += h->cpus[i].seen;
	return sum(cmp->figures.unknown, first, t->length) <=
	       length_of(cmp, t) * cpus / UNKNOWN_SHARE;
}

static enum verdict_compared leave_out(const struct verdict_comparison *cmp,
				       const struct verdict_history *h, struct trial *t)
{
	u32 i, kept = 0;

	if (!is_known(cmp, h, t, t->now))
		return COMPARED_UNKNOWN;
	for (i = 0; i < t->nr_calm; i++) {
		if (is_known(cmp, h, t, t->calm[i]))
			t->calm[kept++] = t->calm[i];
	}
	t->nr_calm = kept;
	return kept < VERDICT_MIN_CALM ? COMPARED_SHORT : COMPARED;
}

static void take(struct verdict_comparison *cmp, const struct trial *t)
{
	u32 i;

	cmp->compared = COMPARED;
	cmp->now.start = cmp->parts[t->now].start;
	cmp->now.end = cmp->parts[t->now + t->length - 1].end;
	for (i = 0; i < t->nr_calm; i++) {
		cmp->calm[i].start = cmp->parts[t->calm[i]].start;
		cmp->calm[i].end = cmp->parts[t->calm[i] + t->length - 1].end;
	}
	cmp->nr_calm = t->nr_calm;
}

/* From when on there are records of all CPUs */
static u64 find_since(const struct verdict_history *h)
{
	u64 since = h->oldest;
	u32 i;

	for (i = 0; i < h->nr_cpus; i++) {
		const struct verdict_cpu *c = &h->cpus[i];

		if (c->records < MISSING_RECORDS)
			continue;
		if (c->first - h->oldest > (c->last - c->first) / c->records * MISSING_GAPS)
			since = max(since, c->first);
	}
	return since;
}

/* The trial that it changed so many slices ago; the times of the calm parts are in order */
static void make_trial(struct trial *t, u32 slices, u32 ago)
{
	u32 i;

	/* With two halves */
	t->length = min(ago, (slices - ago) / VERDICT_MIN_CALM) & ~1U;
	t->now = slices - t->length;
	t->nr_calm = t->length ? (slices - ago) / t->length : 0;
	for (i = 0; i < t->nr_calm; i++)
		t->calm[i] = slices - ago - (t->nr_calm - i) * t->length;
}

static int choose(struct verdict_comparison *cmp, const struct verdict_history *h,
		  const struct verdict_chains *c, u64 end)
{
	static const u32 agos[] = { 2, 4, 6, 8, 12, 16, 24 };
	u64 length = end - cmp->since, changed, most = 0;
	u64 fit = length / (VERDICT_MIN_PART / 2);
	u32 slices = fit < SLICES ? fit : SLICES, i;
	struct trial trial, best = {};
	int err;

	if (slices < 2 * VERDICT_MIN_CALM + 2)
		return 0;
	for (i = 0; i < slices; i++) {
		cmp->parts[i].start = cmp->since + length * i / slices;
		cmp->parts[i].end = cmp->since + length * (i + 1) / slices;
	}
	err = verdict_figures__count(&cmp->figures, h, c, cmp->parts, slices);
	for (i = 0; i < ARRAY_SIZE(agos) && !err; i++) {
		enum verdict_compared compared;

		if (agos[i] >= slices)
			break;
		make_trial(&trial, slices, agos[i]);
		if (trial.nr_calm < VERDICT_MIN_CALM)
			break;
		compared = leave_out(cmp, h, &trial);
		if (compared != COMPARED) {
			if (!best.length)
				cmp->compared = compared;
			continue;
		}
		err = judge_all(cmp, h, &trial, &changed);
		if (best.length && changed <= most)
			continue;
		most = changed;
		best = trial;
	}
	if (err || !best.length)
		return err;
	take(cmp, &best);
	return judge_all(cmp, h, &best, &changed);
}

static int compare_parts(const void *a, const void *b)
{
	const struct verdict_part *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Calm parts of a range, from its end backwards */
static void cut(struct verdict_comparison *cmp, struct verdict_part range, u32 *nr)
{
	u64 length = cmp->now.end - cmp->now.start;

	range.start = max(range.start, cmp->since);
	while (*nr < VERDICT_MAX_CALM && range.end >= range.start + length) {
		cmp->parts[*nr].end = range.end;
		range.end -= length;
		cmp->parts[(*nr)++].start = range.end;
	}
}

static int compare_named(struct verdict_comparison *cmp, const struct verdict_history *h,
			 const struct verdict_chains *c, const struct verdict_choice *choice)
{
	struct trial trial = { .length = 1 };
	u32 nr = 0, i;
	u64 changed;
	int err;

	cmp->now = choice->now;
	if (cmp->now.start < cmp->since) {
		cmp->compared = COMPARED_UNKNOWN;
		return 0;
	}
	for (i = 0; i < choice->nr_against; i++)
		cut(cmp, choice->against[i], &nr);
	if (!choice->nr_against) {
		cut(cmp, (struct verdict_part){ cmp->since, cmp->now.start }, &nr);
		cut(cmp, (struct verdict_part){ cmp->now.end, h->newest + 1 }, &nr);
	}
	cmp->nr_calm = nr;
	if (nr < VERDICT_MIN_CALM)
		return 0;
	cmp->parts[nr++] = cmp->now;
	qsort(cmp->parts, nr, sizeof(*cmp->parts), compare_parts);
	for (i = 0; i < nr; i++) {
		if (cmp->parts[i].start == cmp->now.start)
			trial.now = i;
		else
			trial.calm[trial.nr_calm++] = i;
	}
	err = verdict_figures__count(&cmp->figures, h, c, cmp->parts, nr);
	if (err)
		return err;
	cmp->compared = leave_out(cmp, h, &trial);
	if (cmp->compared != COMPARED)
		return 0;
	take(cmp, &trial);
	return judge_all(cmp, h, &trial, &changed);
}

static int compare_changes(const void *a, const void *b)
{
	const struct verdict_change *x = a, *y = b;
	u64 dx = difference(x->now, x->median), dy = difference(y->now, y->median);

	if (x->figure != y->figure)
		return x->figure < y->figure ? -1 : 1;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

/**
 * verdict_compare__run - compare a part of a recording with calm ones
 * @cmp: the result
 * @h: history
 * @c: functions and call chains
 * @choice: what is to be compared
 *
 * Return: 0 or -ENOMEM; verdict_compare__exit() is to be called in any case.
 */
int verdict_compare__run(struct verdict_comparison *cmp, const struct verdict_history *h,
			 const struct verdict_chains *c, const struct verdict_choice *choice)
{
	u64 end = h->newest;
	int err;

	memset(cmp, 0, sizeof(*cmp));
	cmp->compared = COMPARED_SHORT;
	cmp->since = find_since(h);
	if (choice->named) {
		err = compare_named(cmp, h, c, choice);
	} else {
		/* The dump may go on behind its trigger. */
		cmp->triggered = choice->trigger > cmp->since &&
				 choice->trigger < h->newest + MAX_LATE;
		if (cmp->triggered)
			end = min(end, choice->trigger);
		err = choose(cmp, h, c, end);
	}
	if (cmp->nr)
		qsort(cmp->changes, cmp->nr, sizeof(*cmp->changes), compare_changes);
	return err;
}

void verdict_compare__exit(struct verdict_comparison *cmp)
{
	verdict_figures__exit(&cmp->figures);
	free(cmp->changes);
	cmp->changes = NULL;
}

/* What a group ran outside of the part, in as much time */
static u64 ran_else(const struct verdict_comparison *cmp, u32 group)
{
	const u64 *values = verdict_figures__values(&cmp->figures, FIGURE_ON, group);
	u64 ran = 0, time = 0;
	u32 i;

	for (i = 0; i < cmp->figures.nr_parts; i++) {
		const struct verdict_part *part = &cmp->parts[i];

		if (part->start < cmp->now.end && cmp->now.start < part->end)
			continue;
		ran += values[i];
		time += part->end - part->start;
	}
	return time ? (double)ran / time * (cmp->now.end - cmp->now.start) : 0;
}

static u64 ran_now(const struct verdict_comparison *cmp, u32 group)
{
	const u64 *values = verdict_figures__values(&cmp->figures, FIGURE_ON, group);
	u64 ran = 0;
	u32 i;

	for (i = 0; i < cmp->figures.nr_parts; i++) {
		const struct verdict_part *part = &cmp->parts[i];

		if (part->start < cmp->now.end && cmp->now.start < part->end)
			ran += values[i];
	}
	return ran;
}

/* Does a task wait more for a CPU, although it has no more to do? */
static bool is_victim(const struct verdict_comparison *cmp, const struct verdict_change *change)
{
	u64 else_;

	/* The item of another figure can be a function. */
	if (change->figure != FIGURE_RUNNABLE || change->now <= change->most)
		return false;
	else_ = ran_else(cmp, change->item);
	return else_ && ran_now(cmp, change->item) <= else_ * MORE_TO_DO;
}

/* Whether a figure is far above what is usual */
static bool is_far_above(const struct verdict_change *change)
{
	return change->now > change->most &&
	       change->now - change->most > FAR * (change->most - change->least);
}

static int add_shares(const struct verdict_comparison *cmp, const struct verdict_history *h,
		      u32 group, struct verdict_finding *finding)
{
	u64 *ran = calloc(h->nr_tasks, sizeof(*ran)), *waited = calloc(h->nr_tasks, sizeof(*ran));
	const struct verdict_figures *f = &cmp->figures;
	bool *suffers = calloc(f->nr_groups, sizeof(*suffers));
	int err = ran && waited && suffers ? 0 : -ENOMEM;
	u32 i;

	if (err)
		goto out_free;
	for (i = 0; i < cmp->nr; i++) {
		if (is_victim(cmp, &cmp->changes[i]))
			suffers[cmp->changes[i].item] = true;
	}
	verdict_figures__by_task(f, h, FIGURE_ON, cmp->now, ran);
	verdict_figures__by_task(f, h, FIGURE_RUNNABLE, cmp->now, waited);
	for (i = 1; i < h->nr_tasks && !err; i++) {
		if (f->group_of[i] == group)
			err = ran[i] ? verdict_shares__add(&finding->culprits, i, ran[i]) : 0;
		else if (suffers[f->group_of[i]] && waited[i])
			err = verdict_shares__add(&finding->victims, i, waited[i]);
	}
	verdict_shares__sort(&finding->culprits);
	verdict_shares__sort(&finding->victims);
out_free:
	free(ran);
	free(waited);
	free(suffers);
	return err;
}

/**
 * verdict_compare__find - whether tasks ran more, and held others up by it
 * @cmp: a comparison
 * @h: history
 * @f: where a finding goes to, behind those that are there
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_compare__find(const struct verdict_comparison *cmp, const struct verdict_history *h,
			  struct verdict_findings *f)
{
	u64 length = cmp->now.end - cmp->now.start, waited = 0, waited_calm = 0;
	const struct verdict_change *ran = NULL;
	struct verdict_finding *finding;
	u32 i;

	if (cmp->compared != COMPARED || length < MIN_FINDING)
		return 0;
	for (i = 0; i < cmp->nr && !ran; i++) {
		if (cmp->changes[i].figure == FIGURE_ON && is_far_above(&cmp->changes[i]))
			ran = &cmp->changes[i];
	}
	if (!ran || ran->now - ran->median < length / MIN_RAN_SHARE)
		return 0;
	for (i = 0; i < cmp->nr; i++) {
		if (!is_victim(cmp, &cmp->changes[i]) || cmp->changes[i].item == ran->item)
			continue;
		waited += cmp->changes[i].now;
		waited_calm += cmp->changes[i].median;
	}
	if (waited < waited_calm + length / MIN_WAITED_SHARE)
		return 0;
	finding = verdict_findings__add(f);
	if (!finding)
		return -ENOMEM;
	finding->kind = KIND_CHANGED;
	finding->root = ROOT_RAN;
	finding->confidence = CONFIDENCE_LIKELY;
	finding->cost_ns = waited - waited_calm;
	finding->from = cmp->now.start;
	finding->to = cmp->now.end;
	finding->ran = ran->now;
	finding->ran_calm = ran->median;
	finding->waited = waited;
	finding->waited_calm = waited_calm;
	return add_shares(cmp, h, ran->item, finding);
}
