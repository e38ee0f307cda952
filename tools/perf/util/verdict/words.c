// SPDX-License-Identifier: GPL-2.0
/*
 * Findings in words.
 *
 * A sentence says no more than the records do. Of a waiter of a futex it is known who woke
 * it; of a lock of the kernel this is who released it.
 */
#include "words.h"

#include "container.h"
#include "container-names.h"
#include "flight/ask.h"
#include "strbuf.h"

#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So long a wait for a block device is worth events that would tell more. */
#define LONG_WAIT	(20 * NSEC_PER_MSEC)

const char *const verdict_kinds[] = {
	[KIND_WAIT]		= "wait",
	[KIND_STUCK]		= "stuck",
	[KIND_CPU]		= "cpu",
	[KIND_QUOTA]		= "quota",
	[KIND_DISK]		= "disk",
	[KIND_RECLAIM]		= "reclaim",
	[KIND_INTERRUPT]	= "interrupt",
	[KIND_THROTTLED]	= "throttled",
	[KIND_FORKS]		= "forks",
	[KIND_CHANGED]		= "changed",
};

const char *const verdict_roots[] = {
	[ROOT_UNKNOWN]		= "unknown",
	[ROOT_RAN]		= "ran",
	[ROOT_SLEPT]		= "slept",
	[ROOT_CPU]		= "cpu",
	[ROOT_SHARED]		= "shared",
	[ROOT_OPEN]		= "open",
	[ROOT_QUOTA]		= "quota",
	[ROOT_DISK]		= "disk",
	[ROOT_RECLAIM]		= "reclaim",
	[ROOT_INTERRUPT]	= "interrupt",
	[ROOT_THROTTLED]	= "throttled",
};

const char *const verdict_confidences[] = {
	[CONFIDENCE_LIKELY]	= "likely",
	[CONFIDENCE_KNOWN]	= "known",
};

const char *const verdict_classes[] = {
	[CLASS_UNKNOWN]		= "something unknown",
	[CLASS_KERNEL_LOCK]	= "a lock of the kernel",
	[CLASS_FILE_LOCK]	= "a lock of a file",
	[CLASS_FUTEX]		= "a futex",
	[CLASS_PIPE]		= "a pipe",
	[CLASS_SOCKET]		= "a socket",
	[CLASS_SEMAPHORE]	= "a semaphore",
	[CLASS_OVER_HIGH]	= "memory.high",
	[CLASS_DIRTY]		= "dirty pages",
	[CLASS_IO]		= "I/O",
	[CLASS_COMPLETION]	= "a kernel thread",
	[CLASS_CHILD]		= "a child",
	[CLASS_POLL]		= "work",
	[CLASS_SLEEP]		= "a timer",
	[CLASS_SIGNAL]		= "a signal",
	[CLASS_WORK]		= "work",
	[CLASS_NR]		= NULL,
};

void verdict_words__time(struct strbuf *sb, u64 ns)
{
	if (ns >= NSEC_PER_SEC)
		strbuf_addf(sb, "%.3f s", (double)ns / NSEC_PER_SEC);
	else
		strbuf_addf(sb, "%.1f ms", (double)ns / NSEC_PER_MSEC);
}

/* Names of tasks and functions are any bytes; a terminal must not obey them. */
void verdict_words__name(struct strbuf *sb, const char *name)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		flight_peer__put_text(f, name);
		if (!fclose(f))
			strbuf_add(sb, text, len);
	}
	free(text);
}

static void put_function(struct strbuf *sb, const char *before, const char *function)
{
	strbuf_addstr(sb, before);
	verdict_words__name(sb, function);
	strbuf_addstr(sb, "()");
}

void verdict_words__task(struct strbuf *sb, const struct verdict_task *t)
{
	verdict_words__name(sb, t->comm[0] ? t->comm : "task");
	strbuf_addf(sb, " (%u)", t->tid);
}

/* Users choose the name, so it is cleaned as that of a task is. */
static void tell_named(struct strbuf *sb, const char *what, const char *name, const char *id)
{
	strbuf_addstr(sb, what);
	if (name) {
		verdict_words__name(sb, name);
		strbuf_addf(sb, " (%s)", id);
	} else {
		strbuf_addstr(sb, id);
	}
}

/**
 * verdict_words__container - tell the container and the pod of a task
 * @sb: where to
 * @h: what the records tell, with the manifest, which has the names
 * @t: task
 *
 * Return: false if nothing was told: it is in none, or its cgroup was not recorded.
 */
bool verdict_words__container(struct strbuf *sb, const struct verdict_history *h,
			      const struct verdict_task *t)
{
	struct container_names names;
	struct container c;

	if (!t->cgroup || !container__of_cgroup(&c, t->cgroup))
		return false;
	verdict_words__task(sb, t);
	strbuf_addstr(sb, " is in");
	container_names__of_manifest(&names, h->manifest, &c);
	if (*c.id)
		tell_named(sb, " container ", names.name, c.id);
	if (*c.pod)
		tell_named(sb, *c.id ? " of pod " : " pod ", names.pod, c.pod);
	if (names.pod_namespace) {
		strbuf_addstr(sb, " in namespace ");
		verdict_words__name(sb, names.pod_namespace);
	}
	container_names__exit(&names);
	return true;
}

/* The first of the shares, and how many more there are */
static void tell_shares(struct strbuf *sb, const struct verdict_history *h,
			const struct verdict_shares *s)
{
	bool same = true;
	u32 i;

	if (!s->nr) {
		strbuf_addstr(sb, "tasks");
		return;
	}
	verdict_words__task(sb, &h->tasks[s->shares[0].task]);
	for (i = 1; i < s->nr; i++)
		same &= verdict__same_name(h->tasks[s->shares[0].task].comm,
					   h->tasks[s->shares[i].task].comm);
	if (s->nr > 1)
		strbuf_addf(sb, " and %s%u %s", s->others ? "more than " : "", s->nr - 1,
			    same ? "of its kind" : s->nr == 2 ? "other" : "others");
}

/* The function that the culprit ran most, if the chain that is shown ends with it */
static const char *function_of(const struct verdict_history *h, const struct verdict_finding *f)
{
	const struct verdict_link *last;

	if (!f->nr_links || !f->culprits.nr)
		return NULL;
	last = &f->links[f->nr_links - 1];
	if (last->root != f->root ||
	    !verdict__same_name(h->tasks[last->task].comm,
				h->tasks[f->culprits.shares[0].task].comm))
		return NULL;
	return last->function;
}

static bool is_kernel_lock(enum verdict_class class)
{
	return class == CLASS_KERNEL_LOCK || class == CLASS_FILE_LOCK;
}

static void tell_wait(struct strbuf *sb, const struct verdict_history *h,
		      const struct verdict_finding *f)
{
	enum verdict_class class = f->nr_links ? f->links[0].class : CLASS_UNKNOWN;
	const char *function = function_of(h, f);

	strbuf_addf(sb, " for %s", verdict_classes[class]);
	if (!f->culprits.nr) {
		strbuf_addstr(sb, h->has[EVENT_WAKING] || h->has[EVENT_WAKEUP] ?
			      ": what it comes down to is unknown" :
			      ": who ended it was not recorded (sched:sched_waking)");
		return;
	}
	/* Only the one next to the victim has released anything. */
	strbuf_addstr(sb, f->nr_links > 2 ? ", and by way of others for " : ": ");
	tell_shares(sb, h, &f->culprits);
	if (f->nr_links > 2)
		strbuf_addstr(sb, ", which");
	else if (is_kernel_lock(class))
		strbuf_addstr(sb, " released it and");
	else
		strbuf_addstr(sb, f->victims.nr > 1 ? " woke them and" : " woke it and");
	strbuf_addstr(sb, f->root == ROOT_SLEPT ? " slept meanwhile" : " ran meanwhile");
	if (function)
		put_function(sb, ", mostly in ", function);
}

/* prio of tasks that are not of a real-time policy */
#define PRIO_FAIR	100

static void tell_quota(struct strbuf *sb, const struct verdict_history *h,
		       const struct verdict_finding *f)
{
	bool direct = f->direct_ns >= f->cost_ns - f->direct_ns;
	bool fair = !f->culprits.nr || h->tasks[f->culprits.shares[0].task].prio >= PRIO_FAIR;

	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, direct ? " could run, and waited " : " waited ");
	verdict_words__time(sb, f->cost_ns);
	if (!direct) {
		strbuf_addstr(sb, " for ");
		tell_shares(sb, h, &f->culprits);
		strbuf_addstr(sb, ", which could run, and waited");
	}
	strbuf_addf(sb, " while the CPU was idle: a limit of CPU time held %s back, such as ",
		    (direct ? f->victims.nr : f->culprits.nr) > 1 ? "them" : "it");
	strbuf_addstr(sb, fair ? "cpu.max of the cgroup" : "the runtime of a real-time policy");
}

static void put_device(struct strbuf *sb, u32 dev)
{
	strbuf_addf(sb, "block device %u:%u", verdict_disk__major(dev), verdict_disk__minor(dev));
}

static void tell_disk(struct strbuf *sb, const struct verdict_history *h,
		      const struct verdict_finding *f)
{
	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, " waited ");
	verdict_words__time(sb, f->cost_ns);
	strbuf_addstr(sb, f->nr_links > 1 ? ", also by way of others, for " : " for ");
	put_device(sb, f->object);
	strbuf_addf(sb, ": of %" PRIu64 " request%s meanwhile, the slowest was in it for ",
		    f->requests, f->requests == 1 ? "" : "s");
	verdict_words__time(sb, f->slowest_ns);
}

static void tell_reclaim(struct strbuf *sb, const struct verdict_history *h,
			 const struct verdict_finding *f)
{
	const struct verdict_pool *pool = &h->pools.pools[f->object];

	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, f->cost_ns - f->direct_ns > f->direct_ns ?
		      " waited, also for others, " : " needed ");
	verdict_words__time(sb, f->cost_ns);
	strbuf_addf(sb, " to reclaim memory, %" PRIu64 " times, at most ", f->times);
	verdict_words__time(sb, f->slowest_ns);
	if (!pool->limited) {
		strbuf_addstr(sb, ": the machine had too little that was free");
		return;
	}
	strbuf_addstr(sb, ": a limit of a cgroup was reached, such as memory.max");
	if (pool->cgroup) {
		strbuf_addstr(sb, " of ");
		verdict_words__name(sb, pool->cgroup);
		strbuf_addstr(sb, " or of one above it");
	}
}

/* Of the limit above which a task is held back: it can be that of a cgroup above its own. */
static void tell_throttled(struct strbuf *sb, const struct verdict_history *h,
			   const struct verdict_finding *f)
{
	const char *cgroup = f->victims.nr ? h->tasks[f->victims.shares[0].task].cgroup : NULL;
	bool direct = f->nr_links <= 1;

	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, direct ? f->victims.nr > 1 ? " were held back for " :
						       " was held back for " :
				   " waited, also for others, ");
	verdict_words__time(sb, f->cost_ns);
	strbuf_addstr(sb, ", at most ");
	verdict_words__time(sb, f->longest_ns);
	if (f->object == CLASS_DIRTY) {
		strbuf_addstr(sb, " at a time: too many dirty pages were to be written to a disk");
		return;
	}
	strbuf_addstr(sb, " at a time: a cgroup");
	if (cgroup) {
		strbuf_addstr(sb, ", ");
		verdict_words__name(sb, cgroup);
		strbuf_addstr(sb, " or one above it,");
	}
	strbuf_addstr(sb, " used more memory than its memory.high");
}

static void put_source(struct strbuf *sb, const struct verdict_source *source)
{
	if (source->soft) {
		strbuf_addf(sb, "softirq %s", source->name);
		return;
	}
	strbuf_addf(sb, "interrupt %u (", source->nr);
	verdict_words__name(sb, source->name[0] ? source->name : "no name");
	strbuf_addch(sb, ')');
}

static void tell_interrupt(struct strbuf *sb, const struct verdict_history *h,
			   const struct verdict_finding *f)
{
	const struct verdict_source *source = &h->sources.sources[f->object];

	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, " lost ");
	verdict_words__time(sb, f->cost_ns);
	strbuf_addf(sb, "%s on CPU %u to ",
		    f->nr_links > 1 && f->links[0].class != CLASS_UNKNOWN ?
		    ", also by way of others," : "", source->cpu);
	put_source(sb, source);
	strbuf_addstr(sb, ", which had ");
	if (f->times == 1)
		strbuf_addstr(sb, "the CPU for long once, for ");
	else if (f->times)
		strbuf_addf(sb, "the CPU for long %" PRIu64 " times, at most for ", f->times);
	if (f->times)
		verdict_words__time(sb, f->slowest_ns);
	if (f->storms_ns) {
		strbuf_addf(sb, "%s%.0f %% of %s for ", f->times ? ", and " : "",
			    100.0 * f->storm_ns / f->storms_ns, f->times ? "it" : "the CPU");
		verdict_words__time(sb, f->storms_ns);
		strbuf_addstr(sb, " by short ones");
	}
}

static void tell_changed(struct strbuf *sb, const struct verdict_history *h,
			 const struct verdict_finding *f)
{
	const char *function = f->culprits.nr ?
		verdict_blame__function(h, f->culprits.shares[0].task, f->from, f->to) : NULL;

	tell_shares(sb, h, &f->culprits);
	strbuf_addstr(sb, " ran for ");
	verdict_words__time(sb, f->ran);
	strbuf_addstr(sb, " in the ");
	verdict_words__time(sb, f->to - f->from);
	strbuf_addstr(sb, " that changed most, and for ");
	verdict_words__time(sb, f->ran_calm);
	strbuf_addstr(sb, " in calm ones");
	if (function)
		put_function(sb, ", mostly in ", function);
	strbuf_addstr(sb, "; meanwhile ");
	tell_shares(sb, h, &f->victims);
	strbuf_addstr(sb, " waited ");
	verdict_words__time(sb, f->waited);
	strbuf_addstr(sb, " for a CPU, in calm ones ");
	verdict_words__time(sb, f->waited_calm);
}

/**
 * verdict_words__sentence - a finding in one sentence
 * @sb: where to
 * @h: history
 * @f: finding
 */
void verdict_words__sentence(struct strbuf *sb, const struct verdict_history *h,
			     const struct verdict_finding *f)
{
	const char *function = function_of(h, f);

	switch ((int)f->kind) {
	case KIND_FORKS:
		tell_shares(sb, h, &f->culprits);
		strbuf_addf(sb, " made %" PRIu64 " tasks, which ran for ", f->times);
		verdict_words__time(sb, f->cost_ns);
		break;
	case KIND_CPU:
		tell_shares(sb, h, &f->victims);
		strbuf_addstr(sb, f->cost_ns - f->direct_ns > f->direct_ns ?
			      " waited " : " could run, and waited ");
		verdict_words__time(sb, f->cost_ns);
		strbuf_addstr(sb, f->cost_ns - f->direct_ns > f->direct_ns ?
			      " for a task that could run, and had no CPU: " : " for a CPU: ");
		tell_shares(sb, h, &f->culprits);
		strbuf_addstr(sb, " had it");
		if (function)
			put_function(sb, ", mostly in ", function);
		break;
	case KIND_QUOTA:
		tell_quota(sb, h, f);
		break;
	case KIND_DISK:
		tell_disk(sb, h, f);
		break;
	case KIND_RECLAIM:
		tell_reclaim(sb, h, f);
		break;
	case KIND_INTERRUPT:
		tell_interrupt(sb, h, f);
		break;
	case KIND_THROTTLED:
		tell_throttled(sb, h, f);
		break;
	case KIND_CHANGED:
		tell_changed(sb, h, f);
		break;
	case KIND_STUCK:
		tell_shares(sb, h, &f->victims);
		strbuf_addstr(sb, " waited ");
		verdict_words__time(sb, f->cost_ns);
		strbuf_addf(sb, " for %s",
			    f->nr_links ? verdict_classes[f->links[0].class] : "something");
		strbuf_addstr(sb, ", and nobody ended it but a signal or the end of the recording");
		break;
	default:
		tell_shares(sb, h, &f->victims);
		strbuf_addstr(sb, " waited ");
		verdict_words__time(sb, f->cost_ns);
		tell_wait(sb, h, f);
		break;
	}
	strbuf_addch(sb, '.');
}

static void tell_place(struct strbuf *sb, const struct verdict_history *h,
		       const struct verdict_link *l)
{
	const struct verdict_place *p;

	if (l->place == VERDICT_NONE)
		return;
	p = &h->places[l->place];
	if (p->kernel)
		put_function(sb, ", in ", p->kernel);
	if (p->user)
		put_function(sb, " called by ", p->user);
}

/**
 * verdict_words__link - a link of the chain of a finding
 * @sb: where to
 * @h: history
 * @f: finding
 * @nr: which link
 */
void verdict_words__link(struct strbuf *sb, const struct verdict_history *h,
			 const struct verdict_finding *f, int nr)
{
	const struct verdict_link *l = &f->links[nr];

	verdict_words__task(sb, &h->tasks[l->task]);
	strbuf_addch(sb, ' ');
	switch (l->root) {
	case ROOT_RAN:
	case ROOT_CPU:
	case ROOT_SHARED:
		strbuf_addstr(sb, l->root == ROOT_RAN ? "ran for " : "had the CPU for ");
		verdict_words__time(sb, l->ns);
		if (l->function)
			put_function(sb, ", mostly in ", l->function);
		return;
	case ROOT_RECLAIM:
		strbuf_addstr(sb, "reclaimed memory for ");
		verdict_words__time(sb, l->ns);
		return;
	case ROOT_INTERRUPT:
		strbuf_addstr(sb, "lost ");
		verdict_words__time(sb, l->ns);
		strbuf_addf(sb, " on CPU %u to ", h->sources.sources[l->object].cpu);
		put_source(sb, &h->sources.sources[l->object]);
		return;
	case ROOT_QUOTA:
		strbuf_addstr(sb, "was held back while the CPU was idle, for ");
		verdict_words__time(sb, l->ns);
		return;
	case ROOT_THROTTLED:
		strbuf_addf(sb, "was held back by %s for ", verdict_classes[l->object]);
		verdict_words__time(sb, l->ns);
		tell_place(sb, h, l);
		return;
	case ROOT_SLEPT:
		strbuf_addstr(sb, "slept for ");
		verdict_words__time(sb, l->ns);
		tell_place(sb, h, l);
		return;
	default:
		break;
	}
	if (l->unknown) {
		strbuf_addstr(sb, "ran or waited for ");
		verdict_words__time(sb, l->ns);
		strbuf_addstr(sb, ": records are missing");
		return;
	}
	if (l->place == VERDICT_NONE) {
		strbuf_addstr(sb, "could run, and waited ");
		verdict_words__time(sb, l->ns);
		return;
	}
	strbuf_addstr(sb, "waited ");
	verdict_words__time(sb, l->ns);
	strbuf_addstr(sb, " for ");
	if (l->root == ROOT_DISK)
		put_device(sb, l->object);
	else
		strbuf_addstr(sb, verdict_classes[l->class]);
	tell_place(sb, h, l);
}

static bool is_long_io(const struct verdict_wait *w)
{
	return w->class == CLASS_IO && verdict_wait__blocked(w) >= LONG_WAIT;
}

static bool has_waited_for_io(const struct verdict_history *h)
{
	u32 t, i;

	for (t = 1; t < h->nr_tasks; t++) {
		for (i = 0; i < h->tasks[t].nr_waits; i++) {
			const struct verdict_wait *w = &h->tasks[t].waits[i];

			if (!w->unknown && is_long_io(w))
				return true;
		}
	}
	return false;
}

/**
 * verdict_words__missing - what was not recorded, and is not known for it
 * @h: history
 * @tell: called for each: the events, and what they would tell
 * @ctx: for @tell
 */
void verdict_words__missing(const struct verdict_history *h,
			    void (*tell)(void *ctx, const char *events, const char *what),
			    void *ctx)
{
	static const char *const sampled =
		"who waited: it was sampled; use cpu-clock/freq=99/ instead of -F or -c";

	if (!h->has[EVENT_SWITCH])
		tell(ctx, "sched:sched_switch", h->sampled ? sampled : "who waited");
	else if (!h->callchains)
		tell(ctx, "-g", "in what tasks waited: the switches have no call chains");
	if (!h->has[EVENT_WAKING])
		tell(ctx, "sched:sched_waking",
		     h->has[EVENT_WAKEUP] ?
		     "who woke tasks of other CPUs: sched:sched_wakeup does not tell" :
		     "who was woken by whom, and waited for a CPU");
	if (!h->has[EVENT_WAKEUP_NEW])
		tell(ctx, "sched:sched_wakeup_new", "who made new tasks");
	if (!(h->has[EVENT_RQ_ISSUE] && h->has[EVENT_RQ_COMPLETE]) && has_waited_for_io(h))
		tell(ctx, "block:block_rq_issue,block:block_rq_complete",
		     "for which block devices tasks waited");
	/* A task that is on a CPU loses time to them without a wait that would show it. */
	if (!(h->has[EVENT_SOFTIRQ_ENTRY] && h->has[EVENT_SOFTIRQ_EXIT] &&
	      h->has[EVENT_IRQ_ENTRY] && h->has[EVENT_IRQ_EXIT]))
		tell(ctx,
		     "irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit",
		     "whether interrupts had the CPUs of tasks");
	if (!(h->has[EVENT_RECLAIM_BEGIN] && h->has[EVENT_RECLAIM_END] &&
	      h->has[EVENT_MEMCG_RECLAIM_BEGIN] && h->has[EVENT_MEMCG_RECLAIM_END]))
		tell(ctx, "vmscan:mm_vmscan_direct_reclaim_*,vmscan:mm_vmscan_memcg_reclaim_*",
		     "which tasks reclaimed memory");
	if (!h->clock)
		tell(ctx, "cpu-clock/freq=99/", "in which functions tasks ran");
}

static int compare_unknown(const void *a, const void *b)
{
	const struct verdict_task *const *x = a, *const *y = b;

	return (*x)->unknown_ns < (*y)->unknown_ns ? 1 : (*x)->unknown_ns > (*y)->unknown_ns ?
		-1 : 0;
}

/**
 * verdict_words__broken - whose switches are missing
 * @sb: where to
 * @h: history
 *
 * Return: false if none are.
 */
bool verdict_words__broken(struct strbuf *sb, const struct verdict_history *h)
{
	const struct verdict_task **tasks;
	u64 sum = 0;
	u32 i, nr = 0;

	if (!h->broken && !h->lost)
		return false;
	tasks = calloc(h->nr_tasks, sizeof(*tasks));
	if (!tasks)
		return false;
	for (i = 1; i < h->nr_tasks; i++) {
		if (h->tasks[i].unknown_ns) {
			tasks[nr++] = &h->tasks[i];
			sum += h->tasks[i].unknown_ns;
		}
	}
	if (nr) {
		qsort(tasks, nr, sizeof(*tasks), compare_unknown);
		strbuf_addstr(sb, "Not every switch is here. Unknown are up to ");
		verdict_words__time(sb, sum);
		strbuf_addf(sb, " of %u task%s: ", nr, nr == 1 ? "" : "s");
		for (i = 0; i < nr && i < 5; i++) {
			strbuf_addstr(sb, i ? ", " : "");
			verdict_words__task(sb, tasks[i]);
			strbuf_addch(sb, ' ');
			verdict_words__time(sb, tasks[i]->unknown_ns);
		}
		strbuf_addstr(sb, nr > 5 ? ", and others." : ".");
	}
	free(tasks);
	return nr;
}
