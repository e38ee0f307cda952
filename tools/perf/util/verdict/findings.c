// SPDX-License-Identifier: GPL-2.0
/*
 * What held tasks up, in the order of what it cost.
 *
 * Each wait that is nobody's wish is followed to its roots (blame.c). Waits that come down to
 * tasks of the same name are one finding, and cost their sum. A wait of a task that another
 * one waits for costs twice: both were held up.
 *
 * A wait for a lock of the kernel, of a file, or of the C library, and for a CPU, is nobody's
 * wish. Of others that is unknown: a server that waits for its clients is not held up by
 * them. They are no finding by themselves, but may be links of a chain.
 *
 * What a machine does all day is no finding: what is small (MIN_SHARE of the time that was
 * recorded), or short (MIN_WAIT), is left out. New tasks and delays by neighbours are
 * findings above what a busy machine has; the limits are below.
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
				    enum verdict_root root, u32 culprit)
{
	struct verdict_findings *f = s->findings;
	const struct verdict_task *tasks = s->h->tasks;
	struct verdict_finding *finding;
	u32 i;

	for (i = 0; i < f->nr; i++) {
		finding = &f->findings[i];
		if (finding->kind != kind || finding->root != root)
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
	};

	/* The others are KIND_WAIT, 0. */
	return kinds[root];
}

/*
 * Who wakes a waiter of a futex has most likely released it. A task that ran on another CPU in
 * the end may have been pulled before the first one was idle; not one with a deadline.
 */
static enum verdict_confidence confidence_of(const struct finder *s, enum verdict_root root)
{
	if (root == ROOT_QUOTA && s->direct)
		return s->wait->taken &&
		       (s->wait->stayed || s->h->tasks[s->victim].prio < 0) ?
		       CONFIDENCE_KNOWN : CONFIDENCE_LIKELY;
	return !s->direct && s->wait->class == CLASS_FUTEX ? CONFIDENCE_LIKELY : CONFIDENCE_KNOWN;
}

/* A part of the wait that is looked at comes down to a root. */
static int add_root(void *ctx, enum verdict_root root, u32 culprit, u64 ns)
{
	struct finder *s = ctx;
	struct verdict_finding *f;

	/* Tasks of the same priority, or a lower one, got their share. */
	if (root == ROOT_SHARED)
		return 0;
	/* An idle CPU, or one of which nothing is known, held nobody up that could be told. */
	if (root == ROOT_UNKNOWN && s->direct)
		return 0;
	if (root == ROOT_OPEN && s->end - s->start < MIN_STUCK)
		return 0;
	if (!is_by_task(root))
		culprit = VERDICT_NONE;
	f = find(s, kind_of(root), root, culprit);
	if (!f)
		return -ENOMEM;
	f->cost_ns += ns;
	if (s->direct)
		f->direct_ns += ns;
	f->count++;
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
static bool is_unwanted(const struct verdict_history *h, const struct verdict_wait *w)
{
	u64 ns = verdict_wait__blocked(w);

	switch (w->class) {
	case CLASS_KERNEL_LOCK:
	case CLASS_FILE_LOCK:
		return ns >= SEED_WAIT;
	case CLASS_FUTEX:
		return ns >= SEED_WAIT && w->place != VERDICT_NONE && h->places[w->place].lock;
	default:
		return false;
	}
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
		if (is_unwanted(s->h, w))
			err = verdict_blame__wait(s->h, task, w, s->start, s->end, add_root, s);
		if (err || delay < SEED_WAIT)
			continue;
		s->start = w->woken;
		s->end = w->end;
		s->direct = true;
		err = verdict_blame__delay(s->h, task, w, s->start, s->end, add_root, s);
	}
	return err;
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
		f = find(s, KIND_FORKS, ROOT_RAN, t->parent);
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
	case KIND_QUOTA:
		/* They are held back together: that they are their own victims is no share. */
		return f->example_ns >= MIN_WAIT || much;
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

/*
 * The example of a finding is a wait whose chain has many kinds of tasks, among those that
 * are about as long as the longest one: it tells more.
 */
static void find_example(const struct verdict_history *h, struct verdict_finding *f)
{
	struct verdict_link links[VERDICT_CHAIN];
	int best = 0;
	u32 v, i;

	if (!f->example_ns)
		return;
	for (v = 0; v < f->victims.nr; v++) {
		u32 task = f->victims.shares[v].task;
		const struct verdict_task *t = &h->tasks[task];

		for (i = 0; i < t->nr_waits; i++) {
			const struct verdict_wait *w = &t->waits[i];
			bool example = task == f->example_task && i == f->example_wait;
			u64 blocked = verdict_wait__blocked(w);
			bool seed = is_unwanted(h, w);
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
			rank = rank_chain(h, links, nr);
			if (rank <= best)
				continue;
			best = rank;
			memcpy(f->links, links, sizeof(links));
			f->nr_links = nr;
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

		if (!is_worth_telling(h, finding)) {
			free_finding(finding);
			continue;
		}
		verdict_shares__sort(&finding->victims);
		verdict_shares__sort(&finding->culprits);
		find_confidence(finding);
		find_example(h, finding);
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
