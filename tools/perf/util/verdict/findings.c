// SPDX-License-Identifier: GPL-2.0
/*
 * What held tasks up, in the order of what it cost.
 *
 * Each wait that is nobody's wish is followed to its roots (blame.c). Waits that come down to
 * tasks of the same name are one finding, and cost their sum. A wait of a task that another
 * one waits for costs twice: both were held up.
 *
 * A wait for a lock of the kernel, of a file, or of the C library, for a request to a block
 * device, for memory to be released, and for a CPU, is nobody's wish. Of others that is unknown:
 * a server that waits for its clients is not held up by them. They are no finding by themselves,
 * but may be links of a chain.
 *
 * Everyday work of a machine is no finding: small shares (MIN_SHARE of the time that was
 * recorded) and short waits (MIN_WAIT) are left out. New tasks and delays by neighbours are
 * findings if there are more than on any busy machine; the limits are below.
 */
#include "findings.h"

#include <errno.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <stdlib.h>
#include <string.h>

#define MSEC			1000000ULL
#define MOST_SHARES		256

/* Waits that are looked at */
#define SEED_WAIT		(1 * MSEC)

/* A finding costs at least so much, and so much of the window. */
#define MIN_COST		(100 * MSEC)
#define MIN_SHARE		50
/* One of its waits is so long, or it costs a fourth of the window. */
#define MIN_WAIT		(20 * MSEC)
#define MUCH_SHARE		4
#define MIN_STUCK		(500 * MSEC)
/*
 * One pause of the machine also looks like a long wait for a disk, so one task must have this
 * many.
 */
#define MIN_DISK_WAITS		3
/*
 * Nor is a pause of a virtual machine in a handler one of the handler: so many were long, see
 * MIN_INTERRUPT in interrupt.c, and without the longest one they had MIN_COST.
 */
#define MIN_INTERRUPTS		5
/* The same for the reclaim of memory, most of which is short. */
#define MIN_RECLAIMS		5

/* Busy CPUs let tasks wait: more of it must come down to one culprit. */
#define MIN_CPU_COST		(200 * MSEC)
#define MIN_CPU_SHARE		10
#define MIN_CPU_WAIT		(15 * MSEC)

/* So many new tasks, so many in a second, and so much of the window that they ran */
#define MIN_FORKS		200
#define MIN_FORKS_PER_SECOND	50
#define MIN_FORKS_SHARE		4

struct finder {
	struct verdict_findings		*findings;
	const struct verdict_history	*h;
	/* The wait that is blamed */
	u32				victim;
	u32				nr_wait;
	const struct verdict_wait	*wait;
	u64				start;
	u64				end;
	bool				direct;
	/* What is blamed, if it is no task */
	u32				object;
};

/* How much of a name does not differ among the threads of a program */
size_t verdict__name_length(const char *comm)
{
	size_t len = strlen(comm);

	while (len > 1 && strchr("0123456789-_/:#.", comm[len - 1]))
		len--;
	return len;
}

/* Threads of a program often have names that differ in a number. */
bool verdict__same_name(const char *a, const char *b)
{
	size_t len = verdict__name_length(a);

	return len == verdict__name_length(b) && !strncmp(a, b, len);
}

/* Give a task more of something */
int verdict_shares__add(struct verdict_shares *s, u32 task, u64 ns)
{
	u32 i;

	for (i = 0; i < s->nr && s->shares[i].task != task; i++)
		;
	if (i == MOST_SHARES) {
		s->others += ns;
		return 0;
	}
	if (i == s->nr) {
		if (verdict_array__grow((void **)&s->shares, s->nr, &s->max, sizeof(*s->shares)))
			return -ENOMEM;
		s->shares[s->nr].task = task;
		s->shares[s->nr++].ns = 0;
	}
	s->shares[i].ns += ns;
	return 0;
}

static bool is_by_task(enum verdict_root root)
{
	return root == ROOT_RAN || root == ROOT_SLEPT || root == ROOT_CPU || root == ROOT_QUOTA;
}

/* A new finding, behind the others, or NULL without memory */
struct verdict_finding *verdict_findings__add(struct verdict_findings *f)
{
	struct verdict_finding *finding;

	if (verdict_array__grow((void **)&f->findings, f->nr, &f->max, sizeof(*finding)))
		return NULL;
	finding = &f->findings[f->nr++];
	memset(finding, 0, sizeof(*finding));
	return finding;
}

/* The finding of a root, made if there is none yet */
static struct verdict_finding *find(struct finder *s, enum verdict_kind kind,
				    enum verdict_root root, u32 culprit, u32 object)
{
	struct verdict_findings *f = s->findings;
	const struct verdict_task *tasks = s->h->tasks;
	struct verdict_finding *finding;
	u32 i;

	for (i = 0; i < f->nr; i++) {
		finding = &f->findings[i];
		if (finding->kind != kind || finding->root != root || finding->object != object)
			continue;
		if (culprit == VERDICT_NONE || !finding->culprits.nr ||
		    verdict__same_name(tasks[finding->culprits.shares[0].task].comm,
				       tasks[culprit].comm))
			return finding;
	}
	finding = verdict_findings__add(f);
	if (!finding)
		return NULL;
	finding->kind = kind;
	finding->root = root;
	finding->object = object;
	finding->confidence = CONFIDENCE_KNOWN;
	finding->from = UINT64_MAX;
	return finding;
}

static enum verdict_kind kind_of(enum verdict_root root)
{
	static const enum verdict_kind kinds[ROOT_NR] = {
		[ROOT_CPU]	= KIND_CPU,
		[ROOT_OPEN]	= KIND_STUCK,
		[ROOT_QUOTA]	= KIND_QUOTA,
		[ROOT_DISK]	= KIND_DISK,
		[ROOT_RECLAIM]	= KIND_RECLAIM,
		[ROOT_INTERRUPT] = KIND_INTERRUPT,
		[ROOT_THROTTLED] = KIND_THROTTLED,
	};

	/* The others are KIND_WAIT, 0. */
	return kinds[root];
}

/*
 * A task that wakes a waiter of a futex has most likely released the futex. A task that ran on
 * another CPU in the end may have been pulled before the first one was idle. This does not
 * happen to a task with a deadline.
 */
static enum verdict_confidence confidence_of(const struct finder *s, enum verdict_root root)
{
	if (root == ROOT_QUOTA && s->direct)
		return s->wait->taken &&
		       (s->wait->stayed || s->h->tasks[s->victim].prio < 0) ?
		       CONFIDENCE_KNOWN : CONFIDENCE_LIKELY;
	/* To write to memory.reclaim looks as if a limit was reached. */
	if (root == ROOT_RECLAIM && s->h->pools.pools[s->object].limited)
		return CONFIDENCE_LIKELY;
	/* Where a task was to run is not known for certain if it is told by where it ran. */
	if (root == ROOT_INTERRUPT && s->direct)
		return s->wait->queued ? CONFIDENCE_KNOWN : CONFIDENCE_LIKELY;
	/* A task may have woken it that read the same, or released what was read. */
	if (root == ROOT_DISK && s->wait->class == CLASS_IO && s->wait->by != WAKER_INTERRUPT)
		return CONFIDENCE_LIKELY;
	return !s->direct && s->wait->class == CLASS_FUTEX ? CONFIDENCE_LIKELY : CONFIDENCE_KNOWN;
}

/* Waits are looked at one task after the other; the parts of one come one after the other. */
static void add_long_wait(struct verdict_finding *f, const struct finder *s, u64 ns)
{
	u64 before = 0;

	if (!f->wait_ns || f->last_victim != s->victim)
		f->long_waits = 0;
	else if (f->last_wait == s->nr_wait)
		before = f->wait_ns;
	f->last_victim = s->victim;
	f->last_wait = s->nr_wait;
	f->wait_ns = before + ns;
	if (before < MIN_WAIT && f->wait_ns >= MIN_WAIT)
		f->long_waits++;
	f->longest_ns = max(f->longest_ns, f->wait_ns);
	f->most_long_waits = max(f->most_long_waits, f->long_waits);
}

/* A part of the wait that is looked at comes down to a root. */
static int add_root(void *ctx, enum verdict_root root, u32 culprit, u64 ns)
{
	u32 object = root == ROOT_DISK || root == ROOT_INTERRUPT || root == ROOT_RECLAIM ||
		     root == ROOT_THROTTLED ? culprit : 0;
	struct finder *s = ctx;
	struct verdict_finding *f;

	/* Tasks of the same priority, or a lower one, got their share. */
	if (root == ROOT_SHARED)
		return 0;
	/* An idle CPU, or one of which nothing is known, held nobody up that could be told. */
	if (root == ROOT_UNKNOWN && s->direct)
		return 0;
	/* A wait for a disk alone is followed for what is known to be the disk's. */
	if (root == ROOT_UNKNOWN && s->wait->class == CLASS_IO)
		return 0;
	if (root == ROOT_OPEN && s->end - s->start < MIN_STUCK)
		return 0;
	s->object = object;
	if (!is_by_task(root))
		culprit = VERDICT_NONE;
	f = find(s, kind_of(root), root, culprit, object);
	if (!f)
		return -ENOMEM;
	f->cost_ns += ns;
	if (s->direct)
		f->direct_ns += ns;
	f->count++;
	add_long_wait(f, s, ns);
	f->from = min(f->from, s->start);
	f->to = max(f->to, s->end);
	f->sure_ns[confidence_of(s, root)] += ns;
	if (ns > f->example_ns) {
		f->example_ns = ns;
		f->example_task = s->victim;
		f->example_wait = s->nr_wait;
	}
	if (culprit != VERDICT_NONE && verdict_shares__add(&f->culprits, culprit, ns))
		return -ENOMEM;
	return verdict_shares__add(&f->victims, s->victim, ns);
}

/* Whether a task was held up by a wait of a class, whoever ended it */
static bool is_unwanted(const struct verdict_history *h, u32 task, const struct verdict_wait *w)
{
	u64 ns = verdict_wait__blocked(w);

	switch (w->class) {
	case CLASS_KERNEL_LOCK:
	case CLASS_FILE_LOCK:
		return ns >= SEED_WAIT;
	case CLASS_FUTEX:
		return ns >= SEED_WAIT && w->place != VERDICT_NONE && h->places[w->place].lock;
	case CLASS_OVER_HIGH:
	case CLASS_DIRTY:
		return ns >= SEED_WAIT && !h->tasks[task].kthread;
	case CLASS_IO:
		/*
		 * A task that reads much waits for the disk all the time, and to wait for it is
		 * the work of threads of the kernel.
		 */
		return ns >= MIN_WAIT && !h->tasks[task].kthread &&
		       verdict_blame__disk(h, task, w);
	default:
		return false;
	}
}

/* What interrupts took from a task while it was on a CPU; as waits behind its waits */
static int follow_interrupts(struct finder *s, u32 task)
{
	static const struct verdict_wait on_cpu = { .place = VERDICT_NONE, .queued = true };
	const struct verdict_task *t = &s->h->tasks[task];
	int err = 0;
	u32 i;

	s->wait = &on_cpu;
	s->direct = true;
	for (i = 0; i < t->interrupts.nr && !err; i++) {
		const struct verdict_span *interrupt = &t->interrupts.list[i];

		if (verdict_source__is_thread(&s->h->sources.sources[interrupt->source], t->comm))
			continue;
		s->nr_wait = t->nr_waits + i;
		s->start = interrupt->start;
		s->end = interrupt->end;
		err = add_root(s, ROOT_INTERRUPT, interrupt->source, interrupt->ns);
	}
	return err;
}

/* The time in which a task reclaimed memory; as waits behind the others */
static int follow_reclaims(struct finder *s, u32 task)
{
	static const struct verdict_wait on_cpu = { .place = VERDICT_NONE, .queued = true };
	const struct verdict_task *t = &s->h->tasks[task];
	int err = 0;
	u32 i;

	/* It is the work of threads of the kernel. */
	if (t->kthread)
		return 0;
	s->wait = &on_cpu;
	s->direct = true;
	for (i = 0; i < t->reclaims.nr && !err; i++) {
		const struct verdict_span *span = &t->reclaims.list[i];
		u64 ns = verdict_blame__reclaim(s->h, task, span);

		s->nr_wait = t->nr_waits + t->interrupts.nr + i;
		s->start = span->start;
		s->end = span->end;
		if (ns)
			err = add_root(s, ROOT_RECLAIM, span->source, ns);
	}
	return err;
}

static int follow_task(struct finder *s, u32 task)
{
	const struct verdict_task *t = &s->h->tasks[task];
	int err = 0;
	u32 i;

	s->victim = task;
	for (i = 0; i < t->nr_waits && !err; i++) {
		const struct verdict_wait *w = &t->waits[i];
		u64 delay = verdict_wait__runnable(w);

		s->nr_wait = i;
		s->wait = w;
		s->start = w->start;
		s->end = w->woken ?: w->end;
		s->direct = false;
		if (is_unwanted(s->h, task, w))
			err = verdict_blame__wait(s->h, task, w, s->start, s->end, add_root, s);
		if (err || delay < SEED_WAIT)
			continue;
		s->start = w->woken;
		s->end = w->end;
		s->direct = true;
		err = verdict_blame__delay(s->h, task, w, s->start, s->end, add_root, s);
	}
	err = err ?: follow_interrupts(s, task);
	return err ?: follow_reclaims(s, task);
}

/* Tasks that make others all the time: what the new ones ran is what it costs. */
static int find_forks(struct finder *s)
{
	const struct verdict_history *h = s->h;
	u32 i;

	for (i = 1; i < h->nr_tasks; i++) {
		const struct verdict_task *t = &h->tasks[i];
		struct verdict_finding *f;

		if (t->parent == VERDICT_NONE || t->parent == VERDICT_IDLE)
			continue;
		f = find(s, KIND_FORKS, ROOT_RAN, t->parent, 0);
		if (!f || verdict_shares__add(&f->culprits, t->parent, 1))
			return -ENOMEM;
		f->cost_ns += t->ran_ns;
		f->times++;
		f->from = min(f->from, t->first);
		f->to = max(f->to, t->first);
	}
	return 0;
}

/* Threads that wait for others of their kind share the CPUs: that is not somebody's fault. */
static bool is_own_fault(const struct verdict_history *h, const struct verdict_finding *f)
{
	u64 own = 0, all = 0;
	u32 i;

	if (!f->culprits.nr)
		return false;
	for (i = 0; i < f->victims.nr; i++) {
		all += f->victims.shares[i].ns;
		if (verdict__same_name(h->tasks[f->victims.shares[i].task].comm,
				       h->tasks[f->culprits.shares[0].task].comm))
			own += f->victims.shares[i].ns;
	}
	return own > all / 2;
}

static bool is_worth_telling(const struct verdict_history *h, const struct verdict_finding *f)
{
	u64 window = h->newest - h->oldest, span = f->to - f->from;
	bool much = f->cost_ns >= window / MUCH_SHARE;

	if (f->kind == KIND_FORKS)
		return f->times >= MIN_FORKS &&
		       f->times * NSEC_PER_SEC / max_t(u64, span, NSEC_PER_SEC) >=
		       MIN_FORKS_PER_SECOND && f->cost_ns >= window / MIN_FORKS_SHARE;
	if (f->cost_ns < max_t(u64, MIN_COST, window / MIN_SHARE))
		return false;
	switch ((int)f->kind) {
	case KIND_STUCK:
		return true;
	case KIND_THROTTLED:
	case KIND_QUOTA:
		/* They are held back together: that they are their own victims is no share. */
		return f->example_ns >= MIN_WAIT || much;
	case KIND_DISK:
		return f->longest_ns >= MIN_STUCK || f->most_long_waits >= MIN_DISK_WAITS;
	case KIND_INTERRUPT:
		return f->storm_ns >= MIN_COST ||
		       (f->times >= MIN_INTERRUPTS && f->interrupt_ns - f->slowest_ns >= MIN_COST);
	case KIND_RECLAIM:
		return f->times >= MIN_RECLAIMS &&
		       f->cost_ns - f->slowest_ns >= max_t(u64, MIN_COST, window / MIN_SHARE);
	case KIND_CPU:
		if (f->cost_ns - f->direct_ns >= max_t(u64, MIN_COST, window / MIN_SHARE))
			return f->example_ns >= MIN_WAIT;
		if (is_own_fault(h, f))
			return false;
		return f->cost_ns >= max_t(u64, MIN_CPU_COST, window / MIN_CPU_SHARE) &&
		       (f->example_ns >= MIN_CPU_WAIT || much);
	default:
		if (is_own_fault(h, f))
			return much;
		return f->example_ns >= MIN_WAIT || much;
	}
}

static int compare_shares(const void *a, const void *b)
{
	const struct verdict_share *x = a, *y = b;

	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : 0;
}

/* The greatest first */
void verdict_shares__sort(struct verdict_shares *s)
{
	if (s->nr)
		qsort(s->shares, s->nr, sizeof(*s->shares), compare_shares);
}

static int compare_findings(const void *a, const void *b)
{
	const struct verdict_finding *x = a, *y = b;

	return x->cost_ns < y->cost_ns ? 1 : x->cost_ns > y->cost_ns ? -1 : 0;
}

static void find_confidence(struct verdict_finding *f)
{
	int i;

	for (i = 0; i <= CONFIDENCE_KNOWN; i++) {
		if (f->sure_ns[i] > f->sure_ns[f->confidence] || !f->sure_ns[f->confidence])
			f->confidence = f->sure_ns[i] ? (enum verdict_confidence)i : f->confidence;
	}
}

static void free_finding(struct verdict_finding *f)
{
	free(f->victims.shares);
	free(f->culprits.shares);
}

/* How many kinds of tasks a chain has, and as few links as possible */
static int rank_chain(const struct verdict_history *h, const struct verdict_link *links, int nr)
{
	int i, kinds = 1;

	for (i = 1; i < nr; i++)
		kinds += !verdict__same_name(h->tasks[links[i - 1].task].comm,
					     h->tasks[links[i].task].comm);
	return kinds * 2 * VERDICT_CHAIN - nr;
}

/* Numbers behind the waits are those of interrupts and reclaims, see follow_reclaims(). */
static const struct verdict_span *example_span(const struct verdict_task *t, u32 nr)
{
	nr -= t->nr_waits;
	return nr < t->interrupts.nr ? &t->interrupts.list[nr] :
				       &t->reclaims.list[nr - t->interrupts.nr];
}

/*
 * The example of a finding is a wait whose chain has many kinds of tasks, among those that
 * are about as long as the longest one: it tells more.
 */
static void find_example(const struct verdict_history *h, struct verdict_finding *f)
{
	struct verdict_link links[VERDICT_CHAIN];
	const struct verdict_task *first;
	int best = 0;
	u32 v, i;

	if (!f->example_ns)
		return;
	first = &h->tasks[f->example_task];
	if (f->example_wait >= first->nr_waits) {
		const struct verdict_span *span = example_span(first, f->example_wait);

		verdict_blame__spans(h, f->example_task, f->root, span->start, span->end,
				     &f->links[0]);
		f->links[0].ns = f->example_ns;
		f->nr_links = 1;
		best = rank_chain(h, f->links, 1);
	}
	for (v = 0; v < f->victims.nr; v++) {
		u32 task = f->victims.shares[v].task;
		const struct verdict_task *t = &h->tasks[task];

		for (i = 0; i < t->nr_waits; i++) {
			const struct verdict_wait *w = &t->waits[i];
			bool example = task == f->example_task && i == f->example_wait;
			u64 blocked = verdict_wait__blocked(w);
			bool seed = is_unwanted(h, task, w);
			int nr, rank;

			if (!example && (!seed || blocked < f->example_ns / 2))
				continue;
			if (seed && blocked >= f->example_ns / 2)
				nr = verdict_blame__chain(h, task, w, w->start,
							  w->woken ?: w->end, links);
			else
				nr = verdict_blame__chain(h, task, w, w->woken, w->end, links);
			if (links[nr - 1].root != f->root && !example)
				continue;
			if (links[nr - 1].root == f->root && links[nr - 1].object != f->object)
				continue;
			rank = rank_chain(h, links, nr);
			if (rank <= best)
				continue;
			best = rank;
			memcpy(f->links, links, sizeof(links));
			f->nr_links = nr;
		}
	}
}

/* The requests of all tasks to the device in this time */
static void count_requests(const struct verdict_history *h, struct verdict_finding *f)
{
	u32 t, i;

	for (t = 1; t < h->nr_tasks; t++) {
		const struct verdict_requests *r = &h->tasks[t].requests;

		for (i = 0; i < r->nr; i++) {
			if (r->done[i].dev != f->object || r->done[i].completed < f->from ||
			    r->done[i].issued > f->to)
				continue;
			f->requests++;
			f->slowest_ns = max(f->slowest_ns,
					    r->done[i].completed - r->done[i].issued);
		}
	}
}

/* The long interrupts of its source, and storms of short ones, while it held tasks up */
static void count_interrupts(const struct verdict_history *h, struct verdict_finding *f)
{
	const struct verdict_source *source = &h->sources.sources[f->object];
	const struct verdict_spans *list = &h->cpus[source->cpu].interrupts;
	u32 i;

	for (i = 0; i < list->nr; i++) {
		const struct verdict_span *span = &list->list[i];

		if (span->source != f->object || span->end <= f->from || span->start >= f->to)
			continue;
		if (span->ns < span->end - span->start) {
			f->storm_ns += span->ns;
			f->storms_ns += span->end - span->start;
			continue;
		}
		f->times++;
		f->interrupt_ns += span->ns;
		f->slowest_ns = max(f->slowest_ns, span->ns);
	}
}

/* Those of the victims in the time of the finding */
static void count_reclaims(const struct verdict_history *h, struct verdict_finding *f)
{
	u32 v, i;

	for (v = 0; v < f->victims.nr; v++) {
		u32 task = f->victims.shares[v].task;
		const struct verdict_spans *spans = &h->tasks[task].reclaims;

		for (i = 0; i < spans->nr; i++) {
			if (spans->list[i].source != f->object)
				continue;
			f->times++;
			f->slowest_ns = max(f->slowest_ns,
					    verdict_blame__reclaim(h, task, &spans->list[i]));
		}
	}
}

/**
 * verdict_findings__find - what held tasks up
 * @f: what was found, the greatest cost first
 * @h: history
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_findings__find(struct verdict_findings *f, struct verdict_history *h)
{
	struct finder s = { .findings = f, .h = h };
	u32 i, kept = 0;
	int err = 0;

	for (i = 1; i < h->nr_tasks && !err; i++)
		err = follow_task(&s, i);
	if (!err)
		err = find_forks(&s);
	for (i = 0; i < f->nr && !err; i++) {
		struct verdict_finding *finding = &f->findings[i];

		if (finding->kind == KIND_INTERRUPT)
			count_interrupts(h, finding);
		else if (finding->kind == KIND_RECLAIM)
			count_reclaims(h, finding);
		if (!is_worth_telling(h, finding)) {
			free_finding(finding);
			continue;
		}
		verdict_shares__sort(&finding->victims);
		verdict_shares__sort(&finding->culprits);
		find_confidence(finding);
		find_example(h, finding);
		if (finding->kind == KIND_DISK)
			count_requests(h, finding);
		f->findings[kept++] = *finding;
	}
	if (!err)
		f->nr = kept;
	if (f->nr)
		qsort(f->findings, f->nr, sizeof(*f->findings), compare_findings);
	return err;
}

void verdict_findings__exit(struct verdict_findings *f)
{
	u32 i;

	for (i = 0; i < f->nr; i++)
		free_finding(&f->findings[i]);
	free(f->findings);
}
