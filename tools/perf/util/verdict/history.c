// SPDX-License-Identifier: GPL-2.0
/*
 * What the records of a recording tell of its tasks and CPUs.
 *
 * The records come in the order of time, and are kept as
 *
 *	runs	of a CPU: which task it ran from when on
 *	waits	of a task: when it left the CPU, became runnable, and ran again
 *	hits	of a task: in which function the clock found it
 *	requests, interrupts, reclaims	see disk.c, interrupt.c and reclaim.c
 *
 * which is some 80 bytes for a switch. A wait begins with the switch away from a task. A
 * wakeup makes it runnable, and tells by whom. The switch to it ends the wait.
 *
 * A switch names the task that leaves the CPU. If another one was switched to before, some
 * switch between them is missing: records were lost, or only some tasks were recorded. What
 * that CPU ran meanwhile is unknown then, and so is the time of both tasks. It is counted,
 * so that a verdict can say of whom it does not know how much.
 *
 * Time between two waits is time that the task ran. Time of which it is unknown whether it
 * ran is kept as a wait of its own, so that nobody is blamed for it.
 */
#include "history.h"

#include "hashmap.h"

#include <errno.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wakeup may be recorded before the switch on another CPU that it ends. */
#define EARLY_WAKE_NS	1000000

static size_t hash_long(long key, void *ctx __maybe_unused)
{
	return key * 11400714819323198485llu;
}

static bool equal_long(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

/**
 * verdict_array__grow - make room for one more
 * @array: address of the pointer to the elements
 * @nr: how many it has
 * @max: how many there is room for
 * @size: of an element
 *
 * Return: 0 or -ENOMEM. New elements are zero.
 */
int verdict_array__grow(void **array, u32 nr, u32 *max, size_t size)
{
	u32 more = *max ? *max * 2 : 8;
	void *new;

	if (nr < *max)
		return 0;
	new = realloc(*array, more * size);
	if (!new)
		return -ENOMEM;
	memset(new + *max * size, 0, (more - *max) * size);
	*array = new;
	*max = more;
	return 0;
}

/**
 * verdict_array__not_later - search a sorted array
 * @array: the elements
 * @nr: how many there are
 * @size: of an element
 * @offset: of the u64 in an element by which they are sorted
 * @time: the time
 *
 * Return: how many elements have a u64 that is not after @time.
 */
u32 verdict_array__not_later(const void *array, u32 nr, size_t size, size_t offset, u64 time)
{
	u32 low = 0, high = nr;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (*(const u64 *)(array + middle * size + offset) <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int verdict_history__init(struct verdict_history *h)
{
	memset(h, 0, sizeof(*h));
	h->by_tid = hashmap__new(hash_long, equal_long, NULL);
	if (IS_ERR(h->by_tid))
		return -ENOMEM;
	if (verdict_history__new_task(h, 0) == VERDICT_NONE)
		return -ENOMEM;
	snprintf(h->tasks[VERDICT_IDLE].comm, sizeof(h->tasks->comm), "swapper");
	return 0;
}

void verdict_history__exit(struct verdict_history *h)
{
	u32 i;

	for (i = 0; i < h->nr_tasks; i++) {
		free(h->tasks[i].waits);
		free(h->tasks[i].hits);
		free(h->tasks[i].requests.done);
		free(h->tasks[i].interrupts.list);
		free(h->tasks[i].reclaims.list);
	}
	for (i = 0; i < h->nr_cpus; i++) {
		free(h->cpus[i].runs);
		free(h->cpus[i].interrupts.list);
	}
	free(h->tasks);
	free(h->cpus);
	free(h->disks.pending);
	free(h->sources.sources);
	free(h->pools.pools);
	free(h->places);
	free(h->side_band.losses);
	free(h->side_band.exits);
	hashmap__free(h->by_tid);
	interner__exit(&h->by_place);
}

/**
 * verdict_history__new_task - a task that has not been met, with an id that may have been
 * @h: the history
 * @tid: its id
 *
 * Return: its index, or VERDICT_NONE without memory.
 */
u32 verdict_history__new_task(struct verdict_history *h, u32 tid)
{
	struct verdict_task *t;

	if (verdict_array__grow((void **)&h->tasks, h->nr_tasks, &h->max_tasks, sizeof(*t)))
		return VERDICT_NONE;
	if (hashmap__set(h->by_tid, tid, h->nr_tasks, NULL, NULL))
		return VERDICT_NONE;
	t = &h->tasks[h->nr_tasks];
	t->tid = tid;
	t->tgid = VERDICT_NONE;
	t->parent = VERDICT_NONE;
	t->prio = -1;
	t->cpu = -1;
	return h->nr_tasks++;
}

u32 verdict_history__task(struct verdict_history *h, u32 tid)
{
	long index;

	if (hashmap__find(h->by_tid, tid, &index))
		return index;
	return verdict_history__new_task(h, tid);
}

struct verdict_cpu *verdict_history__cpu(struct verdict_history *h, u32 cpu)
{
	struct verdict_cpu *new;

	if (cpu >= 1 << 16)
		return NULL;
	if (cpu >= h->nr_cpus) {
		new = realloc(h->cpus, (cpu + 1) * sizeof(*new));
		if (!new)
			return NULL;
		memset(new + h->nr_cpus, 0, (cpu + 1 - h->nr_cpus) * sizeof(*new));
		h->cpus = new;
		h->nr_cpus = cpu + 1;
	}
	return &h->cpus[cpu];
}

u32 verdict_history__place(struct verdict_history *h, const struct verdict_place *place)
{
	struct verdict_place key;
	bool fresh;
	u32 nr;

	if (verdict_array__grow((void **)&h->places, h->by_place.nr, &h->max_places,
				sizeof(*place)))
		return VERDICT_NONE;
	/* Equal names of functions are the same object: verdict_stack__name(). */
	memset(&key, 0, sizeof(key));
	key.kernel = place->kernel;
	key.user = place->user;
	key.lock = place->lock;
	nr = interner__add(&h->by_place, &key, sizeof(key), &fresh);
	if (nr == INTERNER_FAILED)
		return VERDICT_NONE;
	if (fresh)
		h->places[nr] = key;
	return nr;
}

/*
 * The scheduler takes the idle task only if no other one may run. If the one that it takes off
 * the CPU could go on, that one may not: the CPU time of its cgroup, or its own, is used up.
 */
static bool is_held(const struct verdict_history *h, const struct verdict_cpu *c, u64 time)
{
	const struct verdict_run *last = &c->runs[c->nr_runs - 1];
	const struct verdict_wait *w;
	const struct verdict_task *t;

	if (last->task == VERDICT_NONE || last->task == VERDICT_IDLE)
		return false;
	t = &h->tasks[last->task];
	w = t->nr_waits ? &t->waits[t->nr_waits - 1] : NULL;
	return t->off && w && w->taken && w->start == time;
}

static int add_run(struct verdict_cpu *c, u64 time, u32 task)
{
	if (verdict_array__grow((void **)&c->runs, c->nr_runs, &c->max_runs, sizeof(*c->runs)))
		return -ENOMEM;
	c->runs[c->nr_runs].start = time;
	c->runs[c->nr_runs].held = false;
	c->runs[c->nr_runs++].task = task;
	return 0;
}

/* A CPU has a record: what it runs is unknown if this is its first */
int verdict_history__seen(struct verdict_history *h, u32 cpu, u64 time)
{
	struct verdict_cpu *c = verdict_history__cpu(h, cpu);

	if (!c)
		return -ENOMEM;
	if (!h->samples++ || time < h->oldest)
		h->oldest = time;
	if (time > h->newest)
		h->newest = time;
	c->last = time;
	c->records++;
	if (c->seen)
		return 0;
	c->seen = true;
	c->first = time;
	return add_run(c, time, VERDICT_NONE);
}

/* Switches between two records are missing: what the CPU ran since its last one is unknown. */
static void break_run(struct verdict_history *h, struct verdict_cpu *c)
{
	struct verdict_run *last = &c->runs[c->nr_runs - 1];
	struct verdict_task *t;

	if (last->task != VERDICT_NONE && last->task != VERDICT_IDLE) {
		t = &h->tasks[last->task];
		/* Unless it has been seen on another CPU since. */
		if (!t->off && t->on_since == last->start) {
			t->unsure_since = last->start;
			t->on_since = 0;
		}
	}
	last->task = VERDICT_NONE;
	h->broken++;
}

/* The last time at which it was known whether a task ran, or 0 */
static u64 last_known(const struct verdict_task *t)
{
	if (t->off)
		return t->waits[t->nr_waits - 1].start;
	return t->unsure_since ?: t->on_since;
}

/* Whether a task ran is unknown since it was known last. */
static int forget_task(struct verdict_task *t, u64 time)
{
	u64 since = last_known(t);
	struct verdict_wait *w;

	if (!since)
		since = t->nr_waits ? t->waits[t->nr_waits - 1].end : t->first;
	/* The wait that it is in may have ended at any time. */
	if (t->off)
		t->nr_waits--;
	t->off = false;
	t->on_since = 0;
	t->unsure_since = 0;
	t->contended_since = 0;
	if (!since || since >= time)
		return 0;
	if (verdict_array__grow((void **)&t->waits, t->nr_waits, &t->max_waits, sizeof(*w)))
		return -ENOMEM;
	w = &t->waits[t->nr_waits++];
	memset(w, 0, sizeof(*w));
	w->start = since;
	w->end = time;
	w->waker = VERDICT_NONE;
	w->place = VERDICT_NONE;
	w->cpu = -1;
	w->unknown = true;
	t->unknown_ns += time - since;
	return 0;
}

/* A wakeup may tell on which CPU a task is to run. */
static void set_queue(struct verdict_wait *w, const struct verdict_wait *wake)
{
	if (wake->cpu < 0)
		return;
	w->cpu = wake->cpu;
	w->queued = true;
}

/**
 * verdict_history__leave - a task leaves a CPU
 * @h: the history
 * @cpu: the CPU
 * @time: when
 * @task: which task
 * @wait: class, place and state of the wait that begins
 * @dead: it will not come back
 */
int verdict_history__leave(struct verdict_history *h, u32 cpu, u64 time, u32 task,
			   const struct verdict_wait *wait, bool dead)
{
	struct verdict_cpu *c = &h->cpus[cpu];
	struct verdict_run *last = &c->runs[c->nr_runs - 1];
	struct verdict_task *t = &h->tasks[task];
	struct verdict_wait *w;
	int err = 0;

	/* No interrupt is left for another task: the record of its end is missing. */
	verdict_nest__forget(&c->nest);
	if (last->task == VERDICT_NONE && c->nr_runs == 1 && last_known(t) <= last->start) {
		/* The task of the first switch has run since the first record of the CPU. */
		last->task = task;
		if (task == VERDICT_IDLE)
			return 0;
		if (last_known(t))
			err = forget_task(t, last->start);
		t->on_since = last->start;
		if (!t->first)
			t->first = last->start;
	} else if (last->task != task || t->off) {
		if (last->task != VERDICT_NONE)
			break_run(h, c);
		if (task != VERDICT_IDLE)
			err = forget_task(t, time);
	}
	if (err || task == VERDICT_IDLE)
		return err;
	if (t->on_since)
		t->ran_ns += time - t->on_since;
	if (!t->first)
		t->first = time;
	t->on_since = 0;
	t->cpu = cpu;
	t->off = !dead;
	if (dead)
		return 0;
	if (verdict_array__grow((void **)&t->waits, t->nr_waits, &t->max_waits, sizeof(*w)))
		return -ENOMEM;
	w = &t->waits[t->nr_waits++];
	*w = *wait;
	w->start = time;
	w->woken = wait->preempted ? time : 0;
	w->end = 0;
	w->waker = VERDICT_NONE;
	w->cpu = cpu;
	w->queued = w->preempted;
	w->stayed = false;
	w->open = true;
	if (!w->preempted && t->pending_wake.woken &&
	    time - t->pending_wake.woken < EARLY_WAKE_NS) {
		w->woken = time;
		w->waker = t->pending_wake.waker;
		w->by = t->pending_wake.by;
		set_queue(w, &t->pending_wake);
	}
	t->pending_wake.woken = 0;
	return 0;
}

int verdict_history__enter(struct verdict_history *h, u32 cpu, u64 time, u32 task)
{
	struct verdict_cpu *c = &h->cpus[cpu];
	struct verdict_task *t = &h->tasks[task];
	struct verdict_wait *w;
	bool held = task == VERDICT_IDLE && is_held(h, c, time);

	if (task != VERDICT_IDLE) {
		/* It must have left the CPU that it ran on. */
		if (!t->off && forget_task(t, time))
			return -ENOMEM;
		if (!t->first)
			t->first = time;
		if (t->off) {
			w = &t->waits[t->nr_waits - 1];
			w->end = time;
			w->open = false;
			/* It is most likely the CPU that it was put on. */
			if (!w->queued)
				w->cpu = cpu;
			w->stayed = w->cpu == (s32)cpu;
		}
		t->off = false;
		t->on_since = time;
		t->cpu = cpu;
		t->pending_wake.woken = 0;
	}
	if (add_run(c, time, task))
		return -ENOMEM;
	c->runs[c->nr_runs - 1].held = held;
	return 0;
}

/**
 * verdict_history__wake - a task becomes runnable
 * @h: the history
 * @task: which task
 * @wake: when (woken), by whom, on which CPU
 */
void verdict_history__wake(struct verdict_history *h, u32 task, const struct verdict_wait *wake)
{
	struct verdict_task *t = &h->tasks[task];
	struct verdict_wait *w;

	if (!t->off || !t->nr_waits) {
		t->pending_wake = *wake;
		return;
	}
	w = &t->waits[t->nr_waits - 1];
	set_queue(w, wake);
	if (w->woken)
		return;
	w->woken = wake->woken;
	w->waker = wake->waker;
	w->by = wake->by;
}

/* A new task is runnable from its first wakeup on. */
int verdict_history__born(struct verdict_history *h, u32 task, u32 parent, u64 time, u32 cpu)
{
	struct verdict_task *t = &h->tasks[task];
	struct verdict_wait *w;

	if (verdict_array__grow((void **)&t->waits, t->nr_waits, &t->max_waits, sizeof(*w)))
		return -ENOMEM;
	w = &t->waits[t->nr_waits++];
	w->start = time;
	w->woken = time;
	w->waker = VERDICT_NONE;
	w->place = VERDICT_NONE;
	w->cpu = cpu;
	w->preempted = true;
	w->queued = true;
	w->open = true;
	t->first = time;
	t->parent = parent;
	t->off = true;
	t->cpu = -1;
	return 0;
}

int verdict_history__hit(struct verdict_history *h, u32 task, const struct verdict_hit *hit)
{
	struct verdict_task *t = &h->tasks[task];

	if (verdict_array__grow((void **)&t->hits, t->nr_hits, &t->max_hits, sizeof(*t->hits)))
		return -ENOMEM;
	t->hits[t->nr_hits++] = *hit;
	return 0;
}

/* The tasks of the hits so far are not known: these hits do not count. */
void verdict_history__forget_hits(struct verdict_history *h)
{
	u32 i;

	for (i = 0; i < h->nr_tasks; i++)
		h->tasks[i].nr_hits = 0;
}

/**
 * verdict_history__forget - records were lost
 * @h: the history
 * @cpu: whose; what it runs is unknown since its last one. (u32)-1: this is not known
 * @time: when they were missed
 *
 * The end of any contention may be among them, as a task ends it on the CPU that it runs on
 * then; and that of any request, and of any reclaim.
 */
int verdict_history__forget(struct verdict_history *h, u32 cpu, u64 time)
{
	struct verdict_cpu *c;
	u32 i;

	for (i = 0; i < h->nr_tasks; i++) {
		h->tasks[i].contended_since = 0;
		h->tasks[i].reclaiming.since = 0;
	}
	h->disks.nr = 0;
	for (i = 0; i < h->nr_cpus; i++) {
		if (cpu == (u32)-1 || cpu == i)
			verdict_nest__forget(&h->cpus[i].nest);
	}
	if (cpu == (u32)-1)
		return 0;
	c = verdict_history__cpu(h, cpu);
	if (!c)
		return -ENOMEM;
	if (!c->seen)
		return 0;
	break_run(h, c);
	return add_run(c, time, VERDICT_NONE);
}

/**
 * verdict_history__lost - the kernel had no room for records
 * @h: the history
 * @cpu: whose; (u32)-1: this is not known
 * @time: when there was room again
 * @records: how many
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_history__lost(struct verdict_history *h, u32 cpu, u64 time, u64 records)
{
	struct verdict_side_band *s = &h->side_band;
	struct verdict_loss loss = {
		.time = time, .cpu = cpu == (u32)-1 ? -1 : (s64)cpu, .records = records,
	};

	h->lost += records;
	if (s->wanted) {
		if (verdict_array__grow((void **)&s->losses, s->nr_losses, &s->max_losses,
					sizeof(loss)))
			return -ENOMEM;
		s->losses[s->nr_losses++] = loss;
	}
	return verdict_history__forget(h, cpu, time);
}

/**
 * verdict_history__ended - a task ended
 * @h: the history
 * @tid: of the task, in the PID namespace of the recorder
 * @time: when
 *
 * When it left its CPU, its last switch tells.
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_history__ended(struct verdict_history *h, u32 tid, u64 time)
{
	struct verdict_side_band *s = &h->side_band;
	struct verdict_exit end = { .time = time, .tid = tid };

	if (!s->wanted)
		return 0;
	if (verdict_array__grow((void **)&s->exits, s->nr_exits, &s->max_exits, sizeof(end)))
		return -ENOMEM;
	s->exits[s->nr_exits++] = end;
	return 0;
}

/* A wait that has not ended: of a task that did not run, the CPU may be unknown. */
static void end_wait(struct verdict_wait *w, u64 time)
{
	w->end = time;
	if (!w->queued)
		w->cpu = -1;
}

/* Those that are in a device in the end are there until then. */
static int finish_requests(struct verdict_history *h)
{
	struct verdict_request *request;
	u32 i;

	for (i = 0; i < h->disks.nr; i++) {
		request = &h->disks.pending[i];
		request->completed = max(request->issued, h->newest);
		if (verdict_requests__add(&h->tasks[request->task].requests, request))
			return -ENOMEM;
	}
	h->disks.nr = 0;
	return 0;
}

/* After the last record: who still runs or waits does so until then. */
int verdict_history__finish(struct verdict_history *h)
{
	struct verdict_task *t;
	u32 i;

	for (i = 1; i < h->nr_tasks; i++) {
		t = &h->tasks[i];
		if (t->on_since && t->cpu >= 0)
			t->ran_ns += h->cpus[t->cpu].last - t->on_since;
		if (t->off && t->nr_waits && t->waits[t->nr_waits - 1].open)
			end_wait(&t->waits[t->nr_waits - 1], h->newest);
		if (t->unsure_since && forget_task(t, h->newest))
			return -ENOMEM;
	}
	return finish_requests(h);
}
