// SPDX-License-Identifier: GPL-2.0
/*
 * Who held a task up.
 *
 * A task waits in [start, end) and is woken by another one. What that one did in this time is
 * why the first one waited so long:
 *
 *	it ran				the chain ends: it is the culprit
 *	it ran, to reclaim memory	the chain ends: there was too little
 *	it waited, and was woken	the same question for that time and its waker
 *	it could run, and did not	those who ran on its CPU are the culprits, if their
 *					priority is higher; else it got its share, and a
 *					long turn of another one is a stall of the machine
 *	it could run, and its CPU was	the chain ends: a limit of its CPU time held it back
 *	idle, taken off it so
 *	its request was in a device	the chain ends: it waited for that disk
 *	it was to wait until less	the chain ends: it is held back, whoever wakes it
 *	memory is used
 *	an interrupt had its CPU for
 *	long, while it ran or could run	the chain ends: it is the culprit
 *	records of it are missing	the root is unknown
 *
 * So each nanosecond of a wait comes down to one root, and the roots add up to the wait. A
 * timer or an interrupt as the waker ends the chain as well. A chain cannot be
 * without end: each link is a part of the time of the one before, and the depth is bounded.
 *
 * verdict_blame__wait() reports all roots of a wait, verdict_blame__chain() the links to the
 * largest one.
 */
#include "blame.h"

#include <linux/kernel.h>
#include <stddef.h>
#include <string.h>

struct part {
	u64	start;
	u64	end;
};

struct blamer {
	const struct verdict_history	*h;
	verdict_blame_t			blame;
	void				*ctx;
};

static int blame_wait(struct blamer *b, u32 task, const struct verdict_wait *w, struct part p,
		      int depth);

/* The first wait of a task that ends after a time */
static u32 first_wait(const struct verdict_task *t, u64 time)
{
	return verdict_array__not_later(t->waits, t->nr_waits, sizeof(*t->waits),
					offsetof(struct verdict_wait, end), time);
}

/* The run of a CPU at a time */
static u32 run_at(const struct verdict_cpu *c, u64 time)
{
	u32 nr = verdict_array__not_later(c->runs, c->nr_runs, sizeof(*c->runs),
					  offsetof(struct verdict_run, start), time);

	return nr ? nr - 1 : 0;
}

static struct part cut(struct part p, u64 start, u64 end)
{
	p.start = max(p.start, start);
	p.end = min(p.end, end);
	if (p.end < p.start)
		p.end = p.start;
	return p;
}

static u64 length(struct part p)
{
	return p.end - p.start;
}

static int report(struct blamer *b, enum verdict_root root, u32 culprit, u64 ns)
{
	return ns ? b->blame(b->ctx, root, culprit, ns) : 0;
}

/*
 * Was the CPU idle although the task was in its queue, and might it not run? A task that was
 * taken off the CPU is in its queue, unless another CPU has pulled it, which soon runs it. Of
 * one that was woken it is not known how long the CPU took to notice.
 */
static bool is_held(const struct verdict_run *run, const struct verdict_wait *w)
{
	if (!w->queued || run->task != VERDICT_IDLE)
		return false;
	return run->held || (w->taken && !w->open);
}

static int report_interrupt(void *ctx, u32 source, u64 ns)
{
	return report(ctx, ROOT_INTERRUPT, source, ns);
}

/* What it ran to reclaim memory, without the interrupts of this time; the sum in @sum */
static int report_reclaims(struct blamer *b, u32 task, struct part p, u64 *sum)
{
	const struct verdict_task *t = &b->h->tasks[task];
	u32 i = verdict_spans__first(&t->reclaims, p.start);
	int err = 0;

	for (; i < t->reclaims.nr && t->reclaims.list[i].start < p.end && !err; i++) {
		const struct verdict_span *span = &t->reclaims.list[i];
		struct part q = cut(p, span->start, span->end);
		u64 ns = length(q) - verdict_spans__cover(&t->interrupts, q.start, q.end, NULL,
							  NULL, NULL);

		*sum += ns;
		err = report(b, ROOT_RECLAIM, span->source, ns);
	}
	return err;
}

/* A task was on its CPU, which interrupts may have had instead. */
static int report_ran(struct blamer *b, u32 task, struct part p)
{
	int err = 0;
	u64 ns = verdict_spans__cover(&b->h->tasks[task].interrupts, p.start, p.end,
				      report_interrupt, b, &err);

	err = err ?: report_reclaims(b, task, p, &ns);
	return err ?: report(b, ROOT_RAN, task, length(p) - ns);
}

/* Who had the CPU that a task was to run on */
static int blame_delay(struct blamer *b, u32 task, const struct verdict_wait *w, struct part p)
{
	const struct verdict_cpu *c;
	bool broken = false;
	int err = 0;
	u32 i;

	if (w->cpu < 0 || (u32)w->cpu >= b->h->nr_cpus)
		return report(b, ROOT_UNKNOWN, VERDICT_NONE, length(p));
	c = &b->h->cpus[w->cpu];
	for (i = run_at(c, w->start); i < c->nr_runs && c->runs[i].start < p.end && !err; i++) {
		u64 end = i + 1 < c->nr_runs ? c->runs[i + 1].start : c->last;
		struct part run = cut(p, c->runs[i].start, end);
		u32 culprit = c->runs[i].task;
		u64 ns = length(run);

		/* Records are missing: the task may have run meanwhile. */
		broken |= culprit == VERDICT_NONE;
		if (is_held(&c->runs[i], w) && !broken) {
			err = report(b, ROOT_QUOTA, task, ns);
			continue;
		}
		ns -= verdict_spans__cover(&c->interrupts, run.start, run.end, report_interrupt, b,
					   &err);
		if (err)
			break;
		if (culprit == VERDICT_NONE || culprit == VERDICT_IDLE || culprit == task)
			err = report(b, ROOT_UNKNOWN, VERDICT_NONE, ns);
		else
			err = report(b, b->h->tasks[culprit].prio < b->h->tasks[task].prio ?
				     ROOT_CPU : ROOT_SHARED, culprit, ns);
	}
	return err;
}

/* What a task did in a time, as it held up another one by it */
static int blame_task(struct blamer *b, u32 task, struct part p, int depth)
{
	const struct verdict_task *t = &b->h->tasks[task];
	u64 at = p.start;
	int err = 0;
	u32 i;

	if (!t->first || t->first > at) {
		/* It did not exist, or nothing is known of it. */
		u64 until = t->first ? min(t->first, p.end) : p.end;

		err = report(b, ROOT_UNKNOWN, VERDICT_NONE, until - at);
		at = until;
	}
	for (i = first_wait(t, at); i < t->nr_waits && t->waits[i].start < p.end && !err; i++) {
		const struct verdict_wait *w = &t->waits[i];
		struct part rest = { .start = at, .end = p.end };
		u64 woken = w->woken ?: w->end;

		err = report_ran(b, task, cut(rest, at, w->start));
		if (!err)
			err = blame_wait(b, task, w, cut(rest, w->start, woken), depth + 1);
		if (!err)
			err = blame_delay(b, task, w, cut(rest, woken, w->end));
		at = max(at, w->end);
	}
	if (!err && at < p.end)
		err = report_ran(b, task, (struct part){ at, p.end });
	return err;
}

/* What a wait comes down to if its waker is no task; ROOT_NR: it is one */
static enum verdict_root root_of(const struct verdict_wait *w)
{
	if (w->unknown)
		return ROOT_UNKNOWN;
	if (verdict_class__throttles(w->class))
		return ROOT_THROTTLED;
	if (w->open && !w->woken)
		return ROOT_OPEN;
	switch (w->class) {
	case CLASS_WORK:
	case CLASS_POLL:
		return w->by == WAKER_TIMER ? ROOT_SLEPT : ROOT_UNKNOWN;
	case CLASS_SLEEP:
	case CLASS_SIGNAL:
		return ROOT_SLEPT;
	default:
		break;
	}
	switch (w->by) {
	case WAKER_TASK:
		return w->waker == VERDICT_NONE ? ROOT_UNKNOWN : ROOT_NR;
	case WAKER_TIMER:
		return ROOT_SLEPT;
	case WAKER_SIGNAL:
		return ROOT_OPEN;
	default:
		return ROOT_UNKNOWN;
	}
}

/* So much of a wait requests of the task were in devices, if it waited for such a thing */
static u64 in_device(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
		     struct part p, verdict_disk_t part, void *ctx, int *err)
{
	if (w->class != CLASS_IO || w->unknown)
		return 0;
	return verdict_requests__cover(&h->tasks[task].requests, p.start, p.end,
				       w->woken ?: w->end, part, ctx, err);
}

static int report_disk(void *ctx, u32 dev, u64 ns)
{
	return report(ctx, ROOT_DISK, dev, ns);
}

static int blame_wait(struct blamer *b, u32 task, const struct verdict_wait *w, struct part p,
		      int depth)
{
	enum verdict_root root = root_of(w);
	int err = 0;
	u64 ns;

	if (!length(p))
		return 0;
	ns = in_device(b->h, task, w, p, report_disk, b, &err);
	if (ns)
		return err ?: report(b, ROOT_UNKNOWN, VERDICT_NONE, length(p) - ns);
	if (root == ROOT_THROTTLED)
		return report(b, root, w->class, length(p));
	if (root != ROOT_NR)
		return report(b, root, task, length(p));
	if (depth >= VERDICT_CHAIN)
		return report(b, ROOT_UNKNOWN, VERDICT_NONE, length(p));
	return blame_task(b, w->waker, p, depth);
}

/**
 * verdict_blame__wait - what the blocked part of a wait comes down to
 * @h: history
 * @task: who waited
 * @w: its wait
 * @start: from when on
 * @end: until when
 * @blame: called for each root, with so many ns of the wait
 * @ctx: for @blame
 */
int verdict_blame__wait(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			u64 start, u64 end, verdict_blame_t blame, void *ctx)
{
	struct blamer b = { .h = h, .blame = blame, .ctx = ctx };

	return blame_wait(&b, task, w, (struct part){ start, end }, 0);
}

/* The same for the part of a wait in which the task could have run */
int verdict_blame__delay(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			 u64 start, u64 end, verdict_blame_t blame, void *ctx)
{
	struct blamer b = { .h = h, .blame = blame, .ctx = ctx };

	return blame_delay(&b, task, w, (struct part){ start, end });
}

/**
 * verdict_blame__function - in which function a clock found a task most
 * @h: history
 * @task: which task
 * @start: from when on
 * @end: until when
 *
 * Return: its name, or NULL.
 */
const char *verdict_blame__function(const struct verdict_history *h, u32 task, u64 start,
				    u64 end)
{
	const struct verdict_task *t = &h->tasks[task];
	struct { const char *name; u32 nr; } most[16] = {};
	u32 i = 0, j, best = 0;

	if (start)
		i = verdict_array__not_later(t->hits, t->nr_hits, sizeof(*t->hits),
					     offsetof(struct verdict_hit, time), start - 1);
	for (; i < t->nr_hits && t->hits[i].time < end; i++) {
		for (j = 0; j < ARRAY_SIZE(most); j++) {
			if (!most[j].nr)
				most[j].name = t->hits[i].function;
			if (most[j].name == t->hits[i].function) {
				most[j].nr++;
				break;
			}
		}
	}
	for (j = 1; j < ARRAY_SIZE(most); j++) {
		if (most[j].nr > most[best].nr)
			best = j;
	}
	return most[best].name;
}

/* What a task did most in a time */
struct most {
	u64				ran;
	u64				unknown;
	u64				delayed;
	const struct verdict_wait	*wait;
	u64				waited;
	const struct verdict_wait	*delay;
	u64				delay_ns;
	u64				blocked;
};

static void find_most(const struct verdict_task *t, struct part p, struct most *m)
{
	u64 off = 0;
	u32 i;

	memset(m, 0, sizeof(*m));
	for (i = first_wait(t, p.start); i < t->nr_waits && t->waits[i].start < p.end; i++) {
		const struct verdict_wait *w = &t->waits[i];
		u64 woken = w->woken ?: w->end;
		u64 blocked = length(cut(p, w->start, woken));
		u64 delay = length(cut(p, woken, w->end));

		off += blocked + delay;
		m->blocked += blocked;
		m->delayed += delay;
		if (blocked > m->waited) {
			m->waited = blocked;
			m->wait = w;
		}
		if (delay > m->delay_ns) {
			m->delay_ns = delay;
			m->delay = w;
		}
	}
	/* As in blame_task(): nothing is known of the time before its first record. */
	m->unknown = length(cut(p, p.start, t->first ?: p.end));
	off += m->unknown;
	m->ran = length(p) > off ? length(p) - off : 0;
}

struct top_culprit {
	u32	task[16];
	u64	ns[16];
	u32	nr;
	u64	held;
	u64	interrupted;
	u32	source;
	bool	higher;
};

static int add_culprit(void *ctx, enum verdict_root root, u32 culprit, u64 ns)
{
	struct top_culprit *top = ctx;
	u32 i;

	if (root == ROOT_QUOTA)
		top->held += ns;
	if (root == ROOT_INTERRUPT) {
		/* That of the last one is told. */
		top->interrupted += ns;
		top->source = culprit;
	}
	if (root != ROOT_CPU && (root != ROOT_SHARED || top->higher))
		return 0;
	if (root == ROOT_CPU && !top->higher) {
		/* Those of a higher priority count alone. */
		top->higher = true;
		top->nr = 0;
	}
	for (i = 0; i < top->nr && top->task[i] != culprit; i++)
		;
	if (i == ARRAY_SIZE(top->task))
		return 0;
	if (i == top->nr) {
		top->task[i] = culprit;
		top->ns[i] = 0;
		top->nr++;
	}
	top->ns[i] += ns;
	return 0;
}

/* The last link: who had the CPU */
static void link_delay(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
		       struct part p, struct verdict_link *link)
{
	struct top_culprit top = {};
	u32 i, best = 0;

	verdict_blame__delay(h, task, w, p.start, p.end, add_culprit, &top);
	link->start = p.start;
	link->end = p.end;
	link->place = VERDICT_NONE;
	for (i = 1; i < top.nr; i++) {
		if (top.ns[i] > top.ns[best])
			best = i;
	}
	if (top.interrupted && top.interrupted > top.held &&
	    (!top.nr || top.interrupted > top.ns[best])) {
		link->root = ROOT_INTERRUPT;
		link->task = task;
		link->object = top.source;
		link->ns = top.interrupted;
		return;
	}
	if (top.held && (!top.nr || top.held > top.ns[best])) {
		link->root = ROOT_QUOTA;
		link->task = task;
		link->ns = top.held;
		return;
	}
	if (!top.nr) {
		link->root = ROOT_UNKNOWN;
		link->task = task;
		link->ns = length(p);
		return;
	}
	link->root = top.higher ? ROOT_CPU : ROOT_SHARED;
	link->task = top.task[best];
	link->ns = top.ns[best];
	link->function = verdict_blame__function(h, link->task, p.start, p.end);
}

/* The parts come from the last one on: that device ended the wait. */
static int keep_device(void *ctx, u32 dev, u64 ns)
{
	struct verdict_link *link = ctx;

	if (link->root != ROOT_DISK) {
		link->object = dev;
		link->ns = 0;
	}
	link->root = ROOT_DISK;
	link->ns += ns;
	return 0;
}

static int keep_span(void *ctx, u32 source, u64 ns)
{
	struct verdict_link *link = ctx;

	link->object = source;
	link->ns += ns;
	return 0;
}

/**
 * verdict_blame__spans - how much of a time a task lost to interrupts, or to reclaim memory
 * @h: history
 * @task: which task
 * @root: ROOT_INTERRUPT or ROOT_RECLAIM
 * @start: from when on
 * @end: until when
 * @link: says so, with the last one of them; it was zero
 */
void verdict_blame__spans(const struct verdict_history *h, u32 task, enum verdict_root root,
			  u64 start, u64 end, struct verdict_link *link)
{
	const struct verdict_task *t = &h->tasks[task];
	int err = 0;

	link->task = task;
	link->root = root;
	link->place = VERDICT_NONE;
	link->start = start;
	link->end = end;
	verdict_spans__cover(root == ROOT_RECLAIM ? &t->reclaims : &t->interrupts, start, end,
			     keep_span, link, &err);
}

/**
 * verdict_blame__reclaim - how long it took a task to reclaim memory
 * @h: history
 * @task: which task
 * @span: when it did
 *
 * That others had its CPU, or an interrupt, is not due to it.
 */
u64 verdict_blame__reclaim(const struct verdict_history *h, u32 task,
			   const struct verdict_span *span)
{
	const struct verdict_task *t = &h->tasks[task];
	struct part p = { .start = span->start, .end = span->end };
	u64 lost = verdict_spans__cover(&t->interrupts, p.start, p.end, NULL, NULL, NULL);
	u32 i;

	for (i = first_wait(t, p.start); i < t->nr_waits && t->waits[i].start < p.end; i++) {
		const struct verdict_wait *w = &t->waits[i];
		/* Of what is unknown it is not known that it was reclaim. */
		u64 from = w->unknown ? w->start : w->woken ?: w->end;

		lost += length(cut(p, from, w->end));
	}
	return length(p) > lost ? length(p) - lost : 0;
}

/**
 * verdict_blame__disk - how much of a wait requests of its task were in devices
 * @h: history
 * @task: who waited
 * @w: its wait
 */
u64 verdict_blame__disk(const struct verdict_history *h, u32 task, const struct verdict_wait *w)
{
	struct part p = { .start = w->start, .end = w->woken ?: w->end };

	return in_device(h, task, w, p, NULL, NULL, NULL);
}

/**
 * verdict_blame__chain - the chain to what held a task up most
 * @h: history
 * @task: who waited
 * @w: its wait
 * @start: from when on
 * @end: until when; after @w was woken: the chain is that of who had the CPU
 * @links: VERDICT_CHAIN of them; the first one is @task's
 *
 * Return: how many links there are.
 */
int verdict_blame__chain(const struct verdict_history *h, u32 task, const struct verdict_wait *w,
			 u64 start, u64 end, struct verdict_link *links)
{
	struct part p = { .start = start, .end = end };
	bool runnable = w->woken && start >= w->woken;
	int nr = 0, err = 0;

	memset(links, 0, VERDICT_CHAIN * sizeof(*links));
	while (nr < VERDICT_CHAIN) {
		struct verdict_link *link = &links[nr++];
		struct most m;

		link->task = task;
		link->start = p.start;
		link->end = p.end;
		link->ns = length(p);
		link->place = w->place;
		link->class = w->class;
		link->unknown = w->unknown;
		if (runnable) {
			link->place = VERDICT_NONE;
			link->class = CLASS_UNKNOWN;
			if (nr < VERDICT_CHAIN)
				link_delay(h, task, w, p, &links[nr++]);
			break;
		}
		if (in_device(h, task, w, p, keep_device, link, &err))
			break;
		link->root = root_of(w);
		if (link->root == ROOT_THROTTLED)
			link->object = w->class;
		if (link->root != ROOT_NR)
			break;
		link->root = ROOT_UNKNOWN;
		if (nr == VERDICT_CHAIN)
			break;
		task = w->waker;
		find_most(&h->tasks[task], p, &m);
		/* The link before is the last one: its root is unknown. */
		if (m.unknown > m.ran && m.unknown > m.blocked && m.unknown > m.delayed)
			break;
		if (m.ran >= m.blocked && m.ran >= m.delayed) {
			link = &links[nr++];
			verdict_blame__spans(h, task, ROOT_INTERRUPT, p.start, p.end, link);
			if (link->ns > m.ran / 2)
				break;
			link->ns = 0;
			verdict_blame__spans(h, task, ROOT_RECLAIM, p.start, p.end, link);
			if (link->ns > length(p) / 2)
				break;
			link->root = ROOT_RAN;
			link->ns = m.ran;
			link->function = verdict_blame__function(h, task, p.start, p.end);
			break;
		}
		runnable = m.delayed > m.blocked;
		w = runnable ? m.delay : m.wait;
		p = runnable ? cut(p, w->woken, w->end) : cut(p, w->start, w->woken ?: w->end);
	}
	return nr;
}
