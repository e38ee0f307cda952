// SPDX-License-Identifier: GPL-2.0
/*
 * What perf verdict makes of records, in states that a recording does not have at will: a
 * history is made by hand, and its findings are compared with what is known then.
 */
#include "tests.h"
#include "debug.h"

#ifdef HAVE_LIBTRACEEVENT

#include "util/evsel.h"
#include "util/sample.h"
#include "util/strbuf.h"
#include "util/tp-field.h"
#include "util/verdict/compare.h"
#include "util/verdict/findings.h"
#include "util/verdict/queues.h"
#include "util/verdict/stack.h"
#include "util/verdict/words.h"

#include <inttypes.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <traceevent/event-parse.h>

#define MS	1000000ULL

enum { IDLE, VICTIM, OWNER, OTHER, FAR_VICTIM, FAR_OWNER, NR_TASKS };

/* Tasks have the numbers of the enum, as indices and as ids. */
static int begin_history(struct verdict_history *h)
{
	static const char * const comms[NR_TASKS] = {
		"swapper", "victim", "owner", "other", "far-victim", "far-owner",
	};

	if (verdict_history__init(h))
		return -1;
	h->has[EVENT_SWITCH] = true;
	h->has[EVENT_WAKING] = true;
	for (u32 i = 0; i < NR_TASKS; i++) {
		if (verdict_history__task(h, i) != i)
			return -1;
		snprintf(h->tasks[i].comm, sizeof(h->tasks[i].comm), "%s", comms[i]);
		h->tasks[i].prio = 120;
	}
	return 0;
}

/* A switch; @class: what @prev waits for, or CLASS_NR: it is preempted */
static int put_switch(struct verdict_history *h, u32 cpu, u64 ms, u32 prev, u32 next,
		      enum verdict_class class)
{
	struct verdict_wait wait = {
		.place		= VERDICT_NONE,
		.preempted	= class == CLASS_NR,
		.class		= class == CLASS_NR ? CLASS_UNKNOWN : class,
	};

	return verdict_history__seen(h, cpu, ms * MS) ?:
	       verdict_history__leave(h, cpu, ms * MS, prev, &wait, false) ?:
	       verdict_history__enter(h, cpu, ms * MS, next);
}

/* A record of sched_waking: it does not tell on which CPU the task is to run. */
static int put_waking(struct verdict_history *h, u32 cpu, u64 ms, u32 waker, u32 task)
{
	struct verdict_wait wake = {
		.woken	= ms * MS,
		.waker	= waker,
		.by	= WAKER_TASK,
		.cpu	= -1,
	};

	verdict_history__wake(h, task, &wake);
	return verdict_history__seen(h, cpu, ms * MS);
}

struct roots {
	u64	ns[ROOT_NR][NR_TASKS];
	u64	sum;
};

static int add_root(void *ctx, enum verdict_root root, u32 culprit, u64 ns)
{
	struct roots *roots = ctx;

	/* Classes of waits are no indices. */
	if (root == ROOT_UNKNOWN || root == ROOT_THROTTLED)
		culprit = IDLE;
	roots->ns[root][culprit] += ns;
	roots->sum += ns;
	return 0;
}

/* The roots of the last wait of the victim */
static void find_roots(const struct verdict_history *h, struct roots *roots)
{
	const struct verdict_task *t = &h->tasks[VICTIM];
	const struct verdict_wait *w = &t->waits[t->nr_waits - 1];

	memset(roots, 0, sizeof(*roots));
	verdict_blame__wait(h, VICTIM, w, w->start, w->woken ?: w->end, add_root, roots);
	if (w->woken)
		verdict_blame__delay(h, VICTIM, w, w->woken, w->end, add_root, roots);
}

/* The roots in a history that @put makes, with @arg; 0, or -1 */
static int roots_of(int (*put)(struct verdict_history *h, u64 arg), u64 arg, struct roots *roots)
{
	struct verdict_history h;
	int err;

	if (begin_history(&h))
		return -1;
	err = put(&h, arg);
	if (!err)
		find_roots(&h, roots);
	verdict_history__exit(&h);
	return err ? -1 : 0;
}

/* The owner of a lock sleeps from 5 ms on. The switch back to it, at 998 ms, is lost. */
static int put_lost_switch(struct verdict_history *h, u64 is_lost)
{
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 5, OWNER, IDLE, CLASS_SLEEP) ?:
	       put_switch(h, 0, 6, VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
	       (is_lost ? 0 : put_switch(h, 1, 998, IDLE, OWNER, CLASS_UNKNOWN)) ?:
	       put_waking(h, 1, 999, OWNER, VICTIM) ?:
	       put_switch(h, 0, 999, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1001, OWNER, IDLE, CLASS_SLEEP) ?:
	       verdict_history__finish(h);
}

/* Nobody is blamed for time of which it is not known what he did. */
static int test__verdict_lost_switch(struct test_suite *test __maybe_unused,
				     int subtest __maybe_unused)
{
	struct verdict_findings findings = {};
	struct strbuf text = STRBUF_INIT;
	struct verdict_history h;
	struct roots roots;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (put_lost_switch(&h, true))
		goto out;
	if (verdict_findings__find(&findings, &h) || findings.nr != 1)
		goto out;
	for (int i = 0; i < findings.findings[0].nr_links; i++) {
		verdict_words__link(&text, &h, &findings.findings[0], i);
		strbuf_addch(&text, '\n');
	}
	pr_debug("%s", text.buf);
	if (findings.findings[0].root == ROOT_UNKNOWN && !findings.findings[0].culprits.nr &&
	    findings.findings[0].cost_ns == 993 * MS &&
	    strstr(text.buf, "owner (2) ran or waited for 993.0 ms: records are missing\n") &&
	    h.tasks[OWNER].unknown_ns == 996 * MS)
		ret = TEST_OK;
out:
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	strbuf_release(&text);
	/* With the switch, it is known. */
	if (roots_of(put_lost_switch, false, &roots) ||
	    roots.ns[ROOT_SLEPT][OWNER] != 992 * MS || roots.ns[ROOT_RAN][OWNER] != MS)
		ret = TEST_FAIL;
	return ret;
}

/* On CPUs of their own, one task waits from 100 to 600 ms for a lock of another one, which runs. */
static int put_far_wait(struct verdict_history *h)
{
	return put_switch(h, 2, 1, IDLE, FAR_OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 3, 1, IDLE, FAR_VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 3, 100, FAR_VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
	       put_waking(h, 2, 600, FAR_OWNER, FAR_VICTIM) ?:
	       put_switch(h, 3, 600, IDLE, FAR_VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 3, 601, FAR_VICTIM, IDLE, CLASS_SLEEP) ?:
	       put_switch(h, 2, 602, FAR_OWNER, IDLE, CLASS_SLEEP);
}

/* The finding whose victim is @task, or NULL */
static const struct verdict_finding *find_victim(const struct verdict_findings *f, u32 task)
{
	for (u32 i = 0; i < f->nr; i++)
		if (f->findings[i].victims.nr && f->findings[i].victims.shares[0].task == task)
			return &f->findings[i];
	return NULL;
}

/* Missing switches are told of their tasks alone, and cost no finding on other tasks and CPUs. */
static int test__verdict_far_wait(struct test_suite *test __maybe_unused,
				  int subtest __maybe_unused)
{
	static const char missing[] = "Not every switch is here. ";
	static const char unknown[] = "Unknown are up to 996.0 ms of 1 task: owner (2) 996.0 ms.";
	struct verdict_findings findings = {};
	const struct verdict_finding *far, *near;
	struct strbuf text = STRBUF_INIT;
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (put_far_wait(&h) || put_lost_switch(&h, true) ||
	    verdict_findings__find(&findings, &h) || !verdict_words__broken(&text, &h))
		goto out;
	pr_debug("%u findings; %s\n", findings.nr, text.buf);
	near = find_victim(&findings, VICTIM);
	far = find_victim(&findings, FAR_VICTIM);
	if (near && near->root == ROOT_UNKNOWN && !near->culprits.nr &&
	    far && far->root == ROOT_RAN && far->cost_ns == 500 * MS &&
	    far->confidence == CONFIDENCE_KNOWN && far->culprits.nr == 1 &&
	    far->culprits.shares[0].task == FAR_OWNER &&
	    strstarts(text.buf, missing) && !strcmp(text.buf + strlen(missing), unknown))
		ret = TEST_OK;
out:
	strbuf_release(&text);
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return ret;
}

struct missing {
	char	events[256];
};

static void add_missing(void *ctx, const char *events, const char *what)
{
	struct missing *m = ctx;
	size_t len = strlen(m->events);

	if (*what)
		snprintf(m->events + len, sizeof(m->events) - len, "%s ", events);
}

#define INTERRUPTS \
	"irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit"

/* Of each event that the verdict needs, and that was left out, it is told what it would show. */
static int test__verdict_missing(struct test_suite *test __maybe_unused,
				 int subtest __maybe_unused)
{
	static const struct {
		const char	*name;
		int		event;	/* what is left out; the end: nothing of these */
		bool		clock;
		bool		callchains;
	} cases[] = {
		{ "",				EVENT_NR,		true,	true },
		{ "sched:sched_switch ",	EVENT_SWITCH,		true,	true },
		{ "sched:sched_waking ",	EVENT_WAKING,		true,	true },
		{ "sched:sched_wakeup_new ",	EVENT_WAKEUP_NEW,	true,	true },
		{ "cpu-clock/freq=99/ ",	EVENT_NR,		false,	true },
		{ "-g ",			EVENT_NR,		true,	false },
		{ "vmscan:mm_vmscan_direct_reclaim_*,vmscan:mm_vmscan_memcg_reclaim_* ",
						EVENT_MEMCG_RECLAIM_END, true,	true },
		{ INTERRUPTS " ",		EVENT_SOFTIRQ_ENTRY,	true,	true },
		{ INTERRUPTS " ",		EVENT_IRQ_EXIT,		true,	true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct verdict_history h = {
			.clock		= cases[i].clock,
			.callchains	= cases[i].callchains,
		};
		struct missing missing = {};

		for (int event = 0; event < EVENT_NR; event++)
			h.has[event] = event != cases[i].event;
		verdict_words__missing(&h, add_missing, &missing);
		pr_debug("told '%s', it should be '%s'\n", missing.events, cases[i].name);
		if (strcmp(missing.events, cases[i].name))
			return TEST_FAIL;
	}
	return TEST_OK;
}

/*
 * The owner of a lock is switched to at 5 ms, and records of its CPU are lost until 900 ms.
 * It was seen again on another CPU, from 950 ms on.
 */
static int put_lost_leave(struct verdict_history *h, u64 arg __maybe_unused)
{
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1, IDLE, OTHER, CLASS_UNKNOWN) ?:
	       put_switch(h, 2, 1, IDLE, IDLE, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 5, OTHER, OWNER, CLASS_SLEEP) ?:
	       put_switch(h, 0, 6, VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
	       verdict_history__forget(h, 1, 900 * MS) ?:
	       put_switch(h, 2, 950, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_waking(h, 2, 999, OWNER, VICTIM) ?:
	       put_switch(h, 0, 1000, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       verdict_history__finish(h);
}

static int test__verdict_lost_leave(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	struct roots roots;

	TEST_ASSERT_VAL("history", !roots_of(put_lost_leave, 0, &roots));
	pr_debug("unknown %" PRIu64 ", ran %" PRIu64 "\n", roots.ns[ROOT_UNKNOWN][IDLE],
		 roots.ns[ROOT_RAN][OWNER]);
	/* The last one it could run, on an idle CPU. */
	TEST_ASSERT_VAL("unknown", roots.ns[ROOT_UNKNOWN][IDLE] == (950 - 6 + 1) * MS);
	TEST_ASSERT_VAL("ran", roots.ns[ROOT_RAN][OWNER] == (999 - 950) * MS);
	TEST_ASSERT_VAL("sum", roots.sum == 994 * MS);
	return TEST_OK;
}

/*
 * The owner of a lock has its first record at 990 ms: what it did before is not known, and the
 * chain does not say that it ran.
 */
static int test__verdict_first_record(struct test_suite *test __maybe_unused,
				      int subtest __maybe_unused)
{
	struct verdict_findings findings = {};
	const struct verdict_finding *found;
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	h.tasks[OWNER].first = 990 * MS;
	if (put_switch(&h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ||
	    put_switch(&h, 1, 1, IDLE, IDLE, CLASS_UNKNOWN) ||
	    put_switch(&h, 0, 6, VICTIM, IDLE, CLASS_KERNEL_LOCK) ||
	    put_switch(&h, 1, 990, IDLE, OWNER, CLASS_UNKNOWN) ||
	    put_waking(&h, 1, 999, OWNER, VICTIM) ||
	    put_switch(&h, 0, 999, IDLE, VICTIM, CLASS_UNKNOWN) ||
	    put_switch(&h, 1, 1001, OWNER, IDLE, CLASS_SLEEP) ||
	    verdict_history__finish(&h) || verdict_findings__find(&findings, &h))
		goto out;
	found = findings.findings;
	if (findings.nr != 1 || found->root != ROOT_UNKNOWN || !found->nr_links)
		goto out;
	ret = TEST_OK;
	for (int i = 0; i < found->nr_links; i++) {
		pr_debug("link %d: task %u, root %d, %llu ns\n", i, found->links[i].task,
			 found->links[i].root, (unsigned long long)found->links[i].ns);
		if (found->links[i].root == ROOT_RAN)
			ret = TEST_FAIL;
	}
out:
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return ret;
}

/*
 * The victim blocks on CPU 0, and can run from 20 ms on. CPU 1, on which it runs in the end,
 * has a task of a higher priority until then. It was put there by a wakeup that only
 * sched_wakeup would tell of.
 */
static int put_queue(struct verdict_history *h, u64 arg __maybe_unused)
{
	h->tasks[OWNER].prio = 10;
	h->tasks[OTHER].prio = 10;
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 2, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 0, 10, VICTIM, OTHER, CLASS_FUTEX) ?:
	       put_waking(h, 1, 20, OWNER, VICTIM) ?:
	       put_switch(h, 1, 320, OWNER, VICTIM, CLASS_SLEEP) ?:
	       put_switch(h, 0, 330, OTHER, IDLE, CLASS_SLEEP) ?:
	       verdict_history__finish(h);
}

static int test__verdict_queue(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	struct roots roots;

	TEST_ASSERT_VAL("history", !roots_of(put_queue, 0, &roots));
	pr_debug("owner %" PRIu64 ", other %" PRIu64 "\n", roots.ns[ROOT_CPU][OWNER],
		 roots.ns[ROOT_CPU][OTHER]);
	TEST_ASSERT_VAL("owner", roots.ns[ROOT_CPU][OWNER] == 300 * MS);
	TEST_ASSERT_VAL("other", !roots.ns[ROOT_CPU][OTHER]);
	return TEST_OK;
}

/* Neither the task that waits for a CPU nor the one that has it is at a place of a wait. */
static int test__verdict_queue_chain(struct test_suite *test __maybe_unused,
				     int subtest __maybe_unused)
{
	struct verdict_findings findings = {};
	const struct verdict_finding *found;
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (put_queue(&h, 0) || verdict_findings__find(&findings, &h) || !findings.nr)
		goto out;
	found = findings.findings;
	if (found->nr_links != 2 || found->links[1].task != OWNER)
		goto out;
	ret = TEST_OK;
	for (int i = 0; i < found->nr_links; i++) {
		pr_debug("link %d: root %d, place %u\n", i, found->links[i].root,
			 found->links[i].place);
		if (found->links[i].place != VERDICT_NONE)
			ret = TEST_FAIL;
	}
out:
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return ret;
}

/*
 * The victim is preempted from 10 to 40 ms, and the other CPU is idle from 20 to 47 ms. There the
 * owner waits from 45 to 47 ms: for its own CPU, which is idle until it runs.
 */
static int put_queues(struct verdict_history *h)
{
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 0, 10, VICTIM, OTHER, CLASS_NR) ?:
	       put_switch(h, 1, 20, OWNER, IDLE, CLASS_SLEEP) ?:
	       put_switch(h, 0, 40, OTHER, VICTIM, CLASS_SLEEP) ?:
	       put_waking(h, 0, 45, VICTIM, OWNER) ?:
	       put_switch(h, 1, 47, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 0, 50, VICTIM, IDLE, CLASS_SLEEP) ?:
	       verdict_history__finish(h);
}

/* Sums of waits, and how long another CPU could have helped, which the own one is not */
static int test__verdict_queues(struct test_suite *test __maybe_unused,
				int subtest __maybe_unused)
{
	struct verdict_queues q = {};
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (put_queues(&h) || verdict_queues__find(&q, &h))
		goto out;
	for (int i = 0; i < 2; i++)
		pr_debug("CPU %d: %" PRIu64 ", not empty %" PRIu64 ", others idle %" PRIu64 "\n",
			 i, q.cpus[i].delay.ns, q.cpus[i].waited_ns, q.cpus[i].idle_ns);
	if (q.cpus[0].delay.ns == 30 * MS && q.cpus[0].delay.preempted_ns == 30 * MS &&
	    q.cpus[0].waited_ns == 30 * MS && q.cpus[0].idle_ns == 20 * MS &&
	    q.cpus[1].delay.ns == 2 * MS && !q.cpus[1].delay.preempted &&
	    q.cpus[1].waited_ns == 2 * MS && !q.cpus[1].idle_ns &&
	    q.nr == 2 && q.order[0] == VICTIM && q.tasks[OWNER].longest_ns == 2 * MS)
		ret = TEST_OK;
out:
	verdict_queues__exit(&q);
	verdict_history__exit(&h);
	return ret;
}

/* What a task waited for before records were lost does not tell what it waits for after it. */
static int test__verdict_contention(struct test_suite *test __maybe_unused,
				    int subtest __maybe_unused)
{
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	h.tasks[VICTIM].contended_since = 2 * MS;
	h.tasks[OTHER].contended_since = 3 * MS;
	if (!verdict_history__seen(&h, 0, MS) && !verdict_history__forget(&h, 0, 4 * MS) &&
	    !h.tasks[VICTIM].contended_since && !h.tasks[OTHER].contended_since)
		ret = TEST_OK;
	h.tasks[VICTIM].contended_since = 5 * MS;
	if (verdict_history__forget(&h, -1, 6 * MS) || h.tasks[VICTIM].contended_since)
		ret = TEST_FAIL;
	verdict_history__exit(&h);
	return ret;
}

/* A terminal obeys no name, be it of a task or of a function. */
static int test__verdict_names(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	struct verdict_finding finding = { .nr_links = 2 };
	struct strbuf text = STRBUF_INIT;
	struct verdict_place place = {};
	struct verdict_history h;
	char name[] = "work\x1b[2J\xc2\x9b";
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h) && !verdict_stack__init());
	snprintf(h.tasks[VICTIM].comm, sizeof(h.tasks->comm), "a\xc2\x9b\x7f\x9b\xc3\xa9");
	place.kernel = verdict_stack__name(name);
	place.user = place.kernel;
	/* The symbol may be freed. */
	memset(name, 'x', sizeof(name) - 1);
	finding.links[0].task = VICTIM;
	finding.links[0].ns = MS;
	finding.links[0].class = CLASS_FUTEX;
	finding.links[0].place = verdict_history__place(&h, &place);
	finding.links[1].task = OWNER;
	finding.links[1].root = ROOT_RAN;
	finding.links[1].ns = MS;
	finding.links[1].function = place.kernel;
	verdict_words__link(&text, &h, &finding, 0);
	strbuf_addstr(&text, "; ");
	verdict_words__link(&text, &h, &finding, 1);
	if (strstarts(text.buf, "a??\xef\xbf\xbd\xc3\xa9 (1) waited ") &&
	    strstr(text.buf, " a futex, in work?[2J?() called by work?[2J?(); ") &&
	    strstr(text.buf, "ran for 1.0 ms, mostly in work?[2J?()"))
		ret = TEST_OK;
	pr_debug("%s\n", text.buf);
	strbuf_release(&text);
	verdict_stack__exit();
	verdict_history__exit(&h);
	return ret;
}

/* What a sample does not have is not read. */
static int test__verdict_fields(struct test_suite *test __maybe_unused,
				int subtest __maybe_unused)
{
	static char names[][8] = { "comm", "pid", "where", "common" };
	struct tep_format_field fields[] = {
		{ .name = names[0], .offset = 4, .size = 8, .flags = TEP_FIELD_IS_ARRAY },
		{ .name = names[1], .offset = 12, .size = 4, .flags = TEP_FIELD_IS_SIGNED },
		{ .name = names[2], .offset = 16, .size = 4, .flags = TEP_FIELD_IS_DYNAMIC },
		{ .name = names[3], .offset = 0, .size = 4, },
	};
	struct tep_event tp = { .system = names[0], .name = names[1] };
	struct evsel evsel = { .tp_format = &tp };
	s32 data[] = { 7, 0x61616161, 0x62626262, -3, 20 | 8 << 16 };
	struct perf_sample sample = { .raw_data = data, .raw_size = sizeof(data) };
	const struct tep_format_field *field;
	u64 number = 0;
	char text[8];

	fields[0].next = &fields[1];
	fields[1].next = &fields[2];
	tp.format.fields = fields;
	tp.format.common_fields = &fields[3];
	evsel.core.attr.type = PERF_TYPE_SOFTWARE;
	TEST_ASSERT_VAL("a clock", !tp_field__is_of(&evsel, "comm", "pid"));
	evsel.core.attr.type = PERF_TYPE_TRACEPOINT;
	TEST_ASSERT_VAL("a tracepoint", tp_field__is_of(&evsel, "comm", "pid"));
	TEST_ASSERT_VAL("another one", !tp_field__is_of(&evsel, "comm", "tid"));
	TEST_ASSERT_VAL("no field", !tp_field__find(&evsel, "tid"));
	TEST_ASSERT_VAL("no number", !tp_field__number(&evsel, &sample, NULL, &number));
	field = tp_field__find(&evsel, "common");
	TEST_ASSERT_VAL("common", tp_field__number(&evsel, &sample, field, &number));
	TEST_ASSERT_VAL("its value", number == 7);
	field = tp_field__find(&evsel, "comm");
	TEST_ASSERT_VAL("a text", tp_field__text(&evsel, &sample, field, text, sizeof(text)));
	TEST_ASSERT_VAL("its end", !strcmp(text, "aaaabbb"));
	/* Its bytes would be behind the data. */
	field = tp_field__find(&evsel, "where");
	TEST_ASSERT_VAL("a text behind", !tp_field__text(&evsel, &sample, field, text, 8));
	field = tp_field__find(&evsel, "pid");
	TEST_ASSERT_VAL("a number", tp_field__number(&evsel, &sample, field, &number));
	TEST_ASSERT_VAL("its sign", (s64)number == -3);
	sample.raw_size = 15;
	TEST_ASSERT_VAL("cut", !tp_field__number(&evsel, &sample, field, &number));
	sample.raw_data = NULL;
	TEST_ASSERT_VAL("no data", !tp_field__number(&evsel, &sample, field, &number));
	return TEST_OK;
}

/* A task runs for 1 ms of each 100 ms, from 1 s to 6 s, on a CPU that another one has. */
static int put_calm(struct verdict_history *h)
{
	int err = 0;

	h->has[EVENT_WAKEUP_NEW] = true;
	for (u64 ms = 1000; ms < 6000 && !err; ms += 100) {
		err = put_switch(h, 1, ms, OTHER, OWNER, CLASS_SLEEP) ?:
		      put_switch(h, 1, ms + 1, OWNER, OTHER, CLASS_SLEEP);
	}
	return err;
}

/* Then it runs until 6890 ms, or sleeps until 6899 ms, and the switch to it is lost. */
static int put_change(struct verdict_history *h, u64 is_lost)
{
	return put_calm(h) ?:
	       put_switch(h, 1, 6000, OTHER, OWNER, CLASS_SLEEP) ?:
	       (is_lost ?
		put_switch(h, 1, 6001, OWNER, OTHER, CLASS_SLEEP) ?:
		put_switch(h, 1, 6890, OTHER, IDLE, CLASS_SLEEP) :
		put_switch(h, 1, 6890, OWNER, IDLE, CLASS_SLEEP)) ?:
	       put_switch(h, 1, 6900, is_lost ? OWNER : IDLE, OTHER, CLASS_SLEEP) ?:
	       put_switch(h, 1, 7000, OTHER, OWNER, CLASS_SLEEP) ?:
	       verdict_history__finish(h) ?:
	       (is_lost && h->tasks[OWNER].unknown_ns != 899 * MS ? -1 : 0);
}

/* How many figures changed from 6 s to 7 s, and whether the owner was off the CPU for less time */
static int count_changes(struct verdict_history *h, bool *less)
{
	struct verdict_choice choice = {
		.named	= true,
		.now	= { 6000 * MS, 7000 * MS },
	};
	struct verdict_comparison cmp;
	struct verdict_chains chains;
	int nr = -1;

	*less = false;
	if (!verdict_chains__init(&chains, false) &&
	    !verdict_compare__run(&cmp, h, &chains, &choice)) {
		pr_debug("compared %d, %u calm parts, %u changes\n", cmp.compared, cmp.nr_calm,
			 cmp.nr);
		nr = cmp.compared == COMPARED && cmp.nr_calm == 5 ? (int)cmp.nr : -1;
		for (u32 i = 0; i < cmp.nr; i++) {
			const struct verdict_change *c = &cmp.changes[i];

			if (c->figure == FIGURE_OFF && c->now < c->least &&
			    c->item == cmp.figures.group_of[OWNER])
				*less = true;
		}
		verdict_compare__exit(&cmp);
	}
	verdict_chains__exit(&chains);
	return nr;
}

/* The same in a history that @put makes, with @arg */
static int changes_in(int (*put)(struct verdict_history *h, u64 arg), u64 arg, bool *less)
{
	struct verdict_history h;
	int nr = -1;

	if (begin_history(&h))
		return -1;
	if (!put(&h, arg))
		nr = count_changes(&h, less);
	verdict_history__exit(&h);
	return nr;
}

/* Time of which it is unknown what a task did may be time that it was off the CPU as usual. */
static int test__verdict_lost_change(struct test_suite *test __maybe_unused,
				     int subtest __maybe_unused)
{
	bool less;

	TEST_ASSERT_VAL("lost", !changes_in(put_change, true, &less));
	TEST_ASSERT_VAL("there", changes_in(put_change, false, &less) > 0 && less);
	return TEST_OK;
}

/* Of each second the owner has a part of the CPU: 100 to 300 ms, and in the last one @last_ms. */
static int put_varying(struct verdict_history *h, u64 last_ms)
{
	const u64 on_ms[] = { 100, 250, 300, 150, 200, last_ms };
	int err = 0;

	h->has[EVENT_WAKEUP_NEW] = true;
	for (u64 i = 0; i < ARRAY_SIZE(on_ms) && !err; i++) {
		u64 ms = (i + 1) * 1000;

		err = put_switch(h, 1, ms, OTHER, OWNER, CLASS_SLEEP) ?:
		      put_switch(h, 1, ms + on_ms[i], OWNER, OTHER, CLASS_SLEEP);
	}
	return err ?: put_switch(h, 1, 7000, OTHER, OWNER, CLASS_SLEEP) ?:
		      verdict_history__finish(h);
}

/* What differs by less than calm parts do has not changed. */
static int test__verdict_varying(struct test_suite *test __maybe_unused,
				 int subtest __maybe_unused)
{
	/*
	 * The most is 300 ms, the spread 200 ms, which counts twice with 5 calm parts, and the
	 * minimum 2 % of a second.
	 */
	static const struct { u64 ms; bool changed; } last[] = {
		{ 200, false }, { 400, false }, { 719, false }, { 721, true }, { 900, true },
	};
	bool less;

	for (size_t i = 0; i < ARRAY_SIZE(last); i++) {
		int nr = changes_in(put_varying, last[i].ms, &less);

		if (nr < 0 || less != last[i].changed || !nr == last[i].changed) {
			pr_debug("%" PRIu64 " ms: %d changes\n", last[i].ms, nr);
			return TEST_FAIL;
		}
	}
	return TEST_OK;
}

enum interrupt_kind { HANDLER, SOFTIRQ };

static struct verdict_source source_of(enum interrupt_kind kind)
{
	struct verdict_source source = {
		.nr	= kind == SOFTIRQ ? 3 : 24,
		.cpu	= 1,
		.soft	= kind == SOFTIRQ,
	};

	snprintf(source.name, sizeof(source.name), "%s", kind == SOFTIRQ ? "NET_RX" : "disk");
	return source;
}

/* CPU 1 enters one of the two, or leaves it; the task is the one that it interrupted. */
static int put_entry(struct verdict_history *h, u64 ms, enum interrupt_kind kind)
{
	struct verdict_source source = source_of(kind);
	int err = verdict_history__seen(h, 1, ms * MS);

	if (!err)
		verdict_nest__enter(&h->cpus[1].nest, &source, ms * MS);
	return err;
}

static int put_exit(struct verdict_history *h, u64 ms, enum interrupt_kind kind, u32 task)
{
	struct verdict_source source = source_of(kind);

	return verdict_history__seen(h, 1, ms * MS) ?:
	       verdict_nest__leave(&h->cpus[1].nest, h, task, &source, ms * MS);
}

static int put_interrupt(struct verdict_history *h, u64 start, u64 end, u32 task)
{
	return put_entry(h, start, SOFTIRQ) ?: put_exit(h, end, SOFTIRQ, task);
}

/*
 * The owner of a lock has CPU 1, and a handler within a softirq interrupts it from 100 to 160 ms.
 * The victim waits for the lock, and another task for the CPU.
 */
static int put_nested(struct verdict_history *h, u64 arg __maybe_unused)
{
	int err = put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
		  put_switch(h, 1, 1, IDLE, OTHER, CLASS_UNKNOWN) ?:
		  put_switch(h, 1, 90, OTHER, OWNER, CLASS_NR) ?:
		  put_switch(h, 0, 95, VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
		  put_entry(h, 100, SOFTIRQ) ?:
		  put_entry(h, 102, HANDLER) ?:
		  put_exit(h, 104, HANDLER, OWNER) ?:
		  put_entry(h, 120, HANDLER) ?:
		  put_exit(h, 140, HANDLER, OWNER) ?:
		  put_exit(h, 160, SOFTIRQ, OWNER);

	return err ?: put_waking(h, 1, 200, OWNER, VICTIM) ?:
		      put_switch(h, 0, 200, IDLE, VICTIM, CLASS_UNKNOWN) ?:
		      put_switch(h, 1, 210, OWNER, OTHER, CLASS_SLEEP) ?:
		      verdict_history__finish(h);
}

/* Each nanosecond counts once, for the one that ran, and the rest is the task's. */
static int test__verdict_nested(struct test_suite *test __maybe_unused,
				int subtest __maybe_unused)
{
	struct verdict_spans *list;
	struct verdict_history h;
	struct roots roots;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("history", !roots_of(put_nested, 0, &roots));
	/* Source 0 is the softirq, 1 the handler: of 2 ms within it, it is the task's. */
	TEST_ASSERT_VAL("softirq", roots.ns[ROOT_INTERRUPT][0] == (18 + 20) * MS);
	TEST_ASSERT_VAL("handler", roots.ns[ROOT_INTERRUPT][1] == 20 * MS);
	TEST_ASSERT_VAL("ran", roots.ns[ROOT_RAN][OWNER] == (105 - 58) * MS);

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (!put_nested(&h, 0)) {
		const struct verdict_wait *w = &h.tasks[OTHER].waits[0];

		memset(&roots, 0, sizeof(roots));
		verdict_blame__delay(&h, OTHER, w, w->woken, w->end, add_root, &roots);
		list = &h.cpus[1].interrupts;
		pr_debug("%u interrupts, %" PRIu64 " ns of softirq, shared %" PRIu64 "\n", list->nr,
			 roots.ns[ROOT_INTERRUPT][0], roots.ns[ROOT_SHARED][OWNER]);
		if (list->nr == 3 && h.tasks[OWNER].interrupts.nr == 3 &&
		    roots.ns[ROOT_INTERRUPT][0] == 38 * MS &&
		    roots.ns[ROOT_INTERRUPT][1] == 20 * MS &&
		    roots.ns[ROOT_SHARED][OWNER] == (120 - 58) * MS)
			ret = TEST_OK;
	}
	verdict_history__exit(&h);
	return ret;
}

/* What has no begin or no end, or has a switch within it, claims nothing. */
static int test__verdict_lost_interrupt(struct test_suite *test __maybe_unused,
					int subtest __maybe_unused)
{
	struct verdict_history h;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (/* The begin is before the recording. */
	    put_exit(&h, 100, SOFTIRQ, OWNER) || put_exit(&h, 200, HANDLER, OWNER) ||
	    /* The end of the first, and the begin of the second one are lost. */
	    put_entry(&h, 300, SOFTIRQ) || put_interrupt(&h, 400, 401, OWNER) ||
	    put_entry(&h, 500, SOFTIRQ) || verdict_history__forget(&h, 1, 550 * MS) ||
	    put_exit(&h, 600, SOFTIRQ, OWNER) ||
	    put_entry(&h, 620, SOFTIRQ) || verdict_history__forget(&h, -1, 630 * MS) ||
	    put_exit(&h, 640, SOFTIRQ, OWNER) ||
	    /* The end of a handler within the softirq is lost. */
	    put_entry(&h, 650, SOFTIRQ) || put_entry(&h, 660, HANDLER) ||
	    put_exit(&h, 690, SOFTIRQ, OWNER) ||
	    put_entry(&h, 700, SOFTIRQ) || put_entry(&h, 701, HANDLER) ||
	    put_entry(&h, 729, HANDLER) || put_exit(&h, 730, HANDLER, OWNER) ||
	    put_exit(&h, 750, SOFTIRQ, OWNER) ||
	    put_entry(&h, 760, HANDLER) || put_switch(&h, 1, 780, OWNER, OTHER, CLASS_NR) ||
	    put_exit(&h, 800, HANDLER, OTHER) ||
	    /* The recording ends. */
	    put_entry(&h, 900, SOFTIRQ) || verdict_history__finish(&h))
		goto out;
	if (!h.cpus[1].interrupts.nr && !h.tasks[OWNER].interrupts.nr &&
	    !h.tasks[OTHER].interrupts.nr && !put_interrupt(&h, 950, 959, OWNER) &&
	    !h.cpus[1].interrupts.nr && !put_interrupt(&h, 960, 970, OWNER) &&
	    h.cpus[1].interrupts.nr == 1)
		ret = TEST_OK;
	pr_debug("%u interrupts\n", h.cpus[1].interrupts.nr);
out:
	verdict_history__exit(&h);
	return ret;
}

/* A task runs, and softirqs of so many ms interrupt it, each second. */
static u32 find_interrupts(const u64 *ms, size_t nr, const char *comm, char *text, size_t size)
{
	struct verdict_findings findings = {};
	struct strbuf sb = STRBUF_INIT;
	struct verdict_history h;
	u32 found = UINT_MAX;
	int err;

	if (begin_history(&h))
		return UINT_MAX;
	snprintf(h.tasks[VICTIM].comm, sizeof(h.tasks->comm), "%s", comm);
	err = put_switch(&h, 1, 1, IDLE, VICTIM, CLASS_UNKNOWN);
	for (size_t i = 0; i < nr && !err; i++)
		err = put_interrupt(&h, 1000 * (i + 1), 1000 * (i + 1) + ms[i], VICTIM);
	if (!err && !verdict_history__finish(&h) && !verdict_findings__find(&findings, &h)) {
		found = findings.nr;
		if (found)
			verdict_words__sentence(&sb, &h, findings.findings);
	}
	snprintf(text, size, "%s", sb.buf);
	pr_debug("%u findings: %s\n", found, text);
	strbuf_release(&sb);
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return found;
}

/* Several must be long: a machine that stands still while it is in one proves nothing. */
static int test__verdict_pause(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	static const u64 one[] = { 1, 2, 900, 9, 3, 1 };
	static const u64 paused[] = { 10, 10, 10, 10, 900, 10 };
	static const u64 few[] = { 300, 300, 300, 300 };
	static const u64 long_ones[] = { 40, 50, 40, 40, 40, 9 };
	static const char says[] = "victim (1) lost 210.0 ms on CPU 1 to softirq NET_RX, ";
	static const char often[] = "which had the CPU for long 5 times, at most for 50.0 ms.";
	char text[256];

	TEST_ASSERT_VAL("one", !find_interrupts(one, ARRAY_SIZE(one), "victim", text,
						sizeof(text)));
	TEST_ASSERT_VAL("paused", !find_interrupts(paused, ARRAY_SIZE(paused), "victim", text,
						   sizeof(text)));
	TEST_ASSERT_VAL("few", !find_interrupts(few, ARRAY_SIZE(few), "victim", text,
						sizeof(text)));
	TEST_ASSERT_VAL("thread", !find_interrupts(long_ones, ARRAY_SIZE(long_ones),
						   "ksoftirqd/1", text, sizeof(text)));
	TEST_ASSERT_VAL("long", find_interrupts(long_ones, ARRAY_SIZE(long_ones), "victim", text,
						sizeof(text)) == 1);
	TEST_ASSERT_VAL("who", strstarts(text, says));
	TEST_ASSERT_VAL("how long", !strcmp(text + strlen(says), often));
	return TEST_OK;
}

/*
 * Two tasks take turns on CPU 1 for 600 ms, 4 ms each. From 100 to 400 ms a softirq begins there
 * each millisecond, and takes so much of it. The last of them can take more.
 */
static u32 find_storm(u64 us, u64 last_us, char *text, size_t size, u64 *lost)
{
	struct verdict_source source = source_of(SOFTIRQ);
	struct verdict_findings findings = {};
	struct strbuf sb = STRBUF_INIT;
	struct verdict_history h;
	u32 found = UINT_MAX;
	int err;

	if (begin_history(&h))
		return UINT_MAX;
	err = put_switch(&h, 1, 1, IDLE, VICTIM, CLASS_UNKNOWN);
	for (u64 ms = 4; ms < 600 && !err; ms++) {
		u32 task = ms / 4 % 2 ? VICTIM : OTHER, before = task == VICTIM ? OTHER : VICTIM;

		if (ms % 4 == 0)
			err = put_switch(&h, 1, ms, before, task, CLASS_NR);
		if (err || ms < 100 || ms >= 400)
			continue;
		verdict_nest__enter(&h.cpus[1].nest, &source, ms * MS + 10000);
		err = verdict_nest__leave(&h.cpus[1].nest, &h, task, &source,
					  ms * MS + 10000 + (ms == 399 ? last_us : us) * 1000);
	}
	if (!err && !verdict_history__finish(&h) && !verdict_findings__find(&findings, &h)) {
		found = findings.nr;
		if (found)
			verdict_words__sentence(&sb, &h, findings.findings);
	}
	*lost = 0;
	for (u32 i = 0; i < h.tasks[OTHER].interrupts.nr; i++)
		*lost += h.tasks[OTHER].interrupts.list[i].ns;
	snprintf(text, size, "%s", sb.buf);
	pr_debug("%u findings: %s\n", found, text);
	strbuf_release(&sb);
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return found;
}

/* Short ones count if they have more than half of a CPU. A task loses what was taken from it. */
static int test__verdict_storm(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	static const char says[] = "on CPU 1 to softirq NET_RX, which had 7";
	static const char once[] = "which had the CPU for long once, for 12.0 ms, and 7";
	char text[256];
	u64 lost;

	TEST_ASSERT_VAL("less than half",
			!find_storm(400, 400, text, sizeof(text), &lost) && !lost);
	TEST_ASSERT_VAL("storm", find_storm(700, 700, text, sizeof(text), &lost) == 1);
	TEST_ASSERT_VAL("who", strstr(text, says) && strstr(text, " by short ones."));
	/* Of 210 ms, the last piece may be left out. */
	TEST_ASSERT_VAL("lost", lost > 95 * MS && lost <= 105 * MS);
	TEST_ASSERT_VAL("and a long one", find_storm(700, 12000, text, sizeof(text), &lost) == 1);
	TEST_ASSERT_VAL("once", strstr(text, once) && strstr(text, " by short ones."));
	return TEST_OK;
}

static int put_reclaim(struct verdict_history *h, u64 start, u64 end, bool limited)
{
	struct verdict_pool pool = { .limited = limited };

	verdict_reclaim__begin(h, OWNER, limited, start * MS);
	return verdict_reclaim__end(h, OWNER, &pool, end * MS);
}

/*
 * The owner of a lock reclaims memory from 100 to 200 ms. Another task has its CPU for 10 ms of
 * that, and a softirq for 20 ms. The victim waits for the lock.
 */
static int put_reclaimer(struct verdict_history *h, u64 limited)
{
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 0, 95, VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
	       put_interrupt(h, 110, 130, OWNER) ?:
	       put_switch(h, 1, 150, OWNER, OTHER, CLASS_NR) ?:
	       put_switch(h, 1, 160, OTHER, OWNER, CLASS_SLEEP) ?:
	       put_reclaim(h, 100, 200, limited) ?:
	       put_waking(h, 1, 210, OWNER, VICTIM) ?:
	       put_switch(h, 0, 210, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 220, OWNER, OTHER, CLASS_SLEEP) ?:
	       verdict_history__finish(h);
}

/* What others have the CPU for is not due to the reclaim, and each nanosecond counts once. */
static int test__verdict_reclaim(struct test_suite *test __maybe_unused,
				 int subtest __maybe_unused)
{
	static const struct verdict_pool limited = { .limited = true }, machine = {};
	struct verdict_history h;
	struct roots roots;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("history", !roots_of(put_reclaimer, true, &roots));
	TEST_ASSERT_VAL("reclaim", roots.ns[ROOT_RECLAIM][0] == 70 * MS);
	TEST_ASSERT_VAL("interrupt", roots.ns[ROOT_INTERRUPT][0] == 20 * MS);
	TEST_ASSERT_VAL("shared", roots.ns[ROOT_SHARED][OTHER] == 10 * MS);
	TEST_ASSERT_VAL("ran", roots.ns[ROOT_RAN][OWNER] == 15 * MS);

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (put_reclaimer(&h, true) || h.tasks[OWNER].reclaims.nr != 1 ||
	    verdict_blame__reclaim(&h, OWNER, h.tasks[OWNER].reclaims.list) != 70 * MS)
		goto out;
	/* A begin or an end alone, or one of each kind: a record is missing. */
	verdict_reclaim__begin(&h, OWNER, true, 300 * MS);
	if (verdict_history__forget(&h, 0, 310 * MS) ||
	    verdict_reclaim__end(&h, OWNER, &limited, 400 * MS))
		goto out;
	verdict_reclaim__begin(&h, OWNER, true, 500 * MS);
	if (verdict_reclaim__end(&h, OWNER, &machine, 600 * MS) ||
	    verdict_reclaim__end(&h, OWNER, &limited, 700 * MS))
		goto out;
	if (h.tasks[OWNER].reclaims.nr == 1 && h.pools.nr == 1)
		ret = TEST_OK;
out:
	verdict_history__exit(&h);
	return ret;
}

/* A task reclaims memory for so many ms, each second. */
static u32 find_reclaims(const u64 *ms, size_t nr, bool limited, char *text, size_t size)
{
	struct verdict_findings findings = {};
	struct strbuf sb = STRBUF_INIT;
	struct verdict_history h;
	u32 found = UINT_MAX;
	int err;

	if (begin_history(&h))
		return UINT_MAX;
	err = put_switch(&h, 1, 1, IDLE, OWNER, CLASS_UNKNOWN);
	for (size_t i = 0; i < nr && !err; i++)
		err = put_reclaim(&h, 1000 * (i + 1), 1000 * (i + 1) + ms[i], limited) ?:
		      verdict_history__seen(&h, 1, 1000 * (i + 2) * MS);
	if (!err && !verdict_history__finish(&h) && !verdict_findings__find(&findings, &h)) {
		found = findings.nr;
		if (found)
			verdict_words__sentence(&sb, &h, findings.findings);
		if (found && findings.findings->confidence !=
		    (limited ? CONFIDENCE_LIKELY : CONFIDENCE_KNOWN))
			found = UINT_MAX;
	}
	snprintf(text, size, "%s", sb.buf);
	pr_debug("%u findings: %s\n", found, text);
	strbuf_release(&sb);
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return found;
}

/* Several, of which one may have been paused; and whose memory it was */
static int test__verdict_reclaims(struct test_suite *test __maybe_unused,
				  int subtest __maybe_unused)
{
	static const u64 paused[] = { 5, 5, 900, 5, 5 };
	static const u64 few[] = { 300, 300, 300, 300 };
	static const u64 many[] = { 50, 60, 50, 50, 50 };
	static const char says[] = "owner (2) needed 260.0 ms to reclaim memory, ";
	static const char of_cgroup[] =
		"5 times, at most 60.0 ms: a limit of a cgroup was reached, such as memory.max.";
	static const char of_machine[] =
		"5 times, at most 60.0 ms: the machine had too little that was free.";
	char text[256];

	TEST_ASSERT_VAL("paused", !find_reclaims(paused, ARRAY_SIZE(paused), true, text,
						 sizeof(text)));
	TEST_ASSERT_VAL("few", !find_reclaims(few, ARRAY_SIZE(few), true, text, sizeof(text)));
	TEST_ASSERT_VAL("cgroup", find_reclaims(many, ARRAY_SIZE(many), true, text,
						sizeof(text)) == 1);
	TEST_ASSERT_VAL("who", strstarts(text, says));
	TEST_ASSERT_VAL("of what", !strcmp(text + strlen(says), of_cgroup));
	TEST_ASSERT_VAL("machine", find_reclaims(many, ARRAY_SIZE(many), false, text,
						 sizeof(text)) == 1);
	TEST_ASSERT_VAL("whose", !strcmp(text + strlen(says), of_machine));
	return TEST_OK;
}

/* The owner of a lock is held back from 100 to 190 ms, and waits for a CPU for 10 ms more. */
static int put_throttled(struct verdict_history *h, u64 class)
{
	return put_switch(h, 0, 1, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 1, IDLE, OWNER, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 100, OWNER, OTHER, class) ?:
	       put_switch(h, 0, 105, VICTIM, IDLE, CLASS_KERNEL_LOCK) ?:
	       put_waking(h, 1, 190, OTHER, OWNER) ?:
	       put_switch(h, 1, 200, OTHER, OWNER, CLASS_SLEEP) ?:
	       put_waking(h, 1, 210, OWNER, VICTIM) ?:
	       put_switch(h, 0, 210, IDLE, VICTIM, CLASS_UNKNOWN) ?:
	       put_switch(h, 1, 220, OWNER, OTHER, CLASS_SLEEP) ?:
	       verdict_history__finish(h);
}

/* The limit holds a task back, and not the one that ends the wait. */
static int test__verdict_throttled(struct test_suite *test __maybe_unused,
				   int subtest __maybe_unused)
{
	static const char says[] = "owner (2) and 1 other waited, also for others, 175.0 ms, ";
	static const char limit[] =
		"at most 90.0 ms at a time: too many dirty pages were to be written to a disk.";
	struct verdict_findings findings = {};
	struct strbuf sb = STRBUF_INIT;
	struct verdict_history h;
	struct roots roots;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("history", !roots_of(put_throttled, CLASS_OVER_HIGH, &roots));
	TEST_ASSERT_VAL("throttled", roots.ns[ROOT_THROTTLED][IDLE] == 85 * MS);
	TEST_ASSERT_VAL("shared", roots.ns[ROOT_SHARED][OTHER] == 10 * MS);
	TEST_ASSERT_VAL("ran", roots.ns[ROOT_RAN][OWNER] == 10 * MS);

	TEST_ASSERT_VAL("begin", !begin_history(&h));
	if (!put_throttled(&h, CLASS_DIRTY) && !verdict_findings__find(&findings, &h) &&
	    findings.nr == 1 && findings.findings->kind == KIND_THROTTLED &&
	    findings.findings->confidence == CONFIDENCE_KNOWN && !findings.findings->culprits.nr) {
		verdict_words__sentence(&sb, &h, findings.findings);
		if (strstarts(sb.buf, says) && !strcmp(sb.buf + strlen(says), limit))
			ret = TEST_OK;
	}
	pr_debug("%u findings: %s\n", findings.nr, sb.buf);
	strbuf_release(&sb);
	verdict_findings__exit(&findings);
	verdict_history__exit(&h);
	return ret;
}

static struct test_case tests__verdict[] = {
	TEST_CASE("Verdict with names that a terminal would obey", verdict_names),
	TEST_CASE("Verdict on samples that are cut short", verdict_fields),
	TEST_CASE("Verdict of contention whose end is lost", verdict_contention),
	TEST_CASE("Verdict of a CPU that a wakeup does not tell", verdict_queue),
	TEST_CASE("Verdict of a task that has a CPU", verdict_queue_chain),
	TEST_CASE("Verdict that adds up waits for CPUs", verdict_queues),
	TEST_CASE("Verdict if a switch to a task is lost", verdict_lost_switch),
	TEST_CASE("Verdict if a switch away from a task is lost", verdict_lost_leave),
	TEST_CASE("Verdict on tasks whose switches are all there", verdict_far_wait),
	TEST_CASE("Verdict of events that were left out", verdict_missing),
	TEST_CASE("Verdict before the first record of a task", verdict_first_record),
	TEST_CASE("Verdict on a change while records are lost", verdict_lost_change),
	TEST_CASE("Verdict on figures that vary", verdict_varying),
	TEST_CASE("Verdict of a handler within a softirq", verdict_nested),
	TEST_CASE("Verdict of interrupts whose records are lost", verdict_lost_interrupt),
	TEST_CASE("Verdict of a pause within an interrupt", verdict_pause),
	TEST_CASE("Verdict of a storm of short interrupts", verdict_storm),
	TEST_CASE("Verdict of a task that reclaims memory", verdict_reclaim),
	TEST_CASE("Verdict of reclaims that are many or long", verdict_reclaims),
	TEST_CASE("Verdict of tasks that a limit of memory holds back", verdict_throttled),
	{	.name = NULL, }
};

#else /* HAVE_LIBTRACEEVENT */

static int test__verdict_skip(struct test_suite *test __maybe_unused,
			      int subtest __maybe_unused)
{
	return TEST_SKIP;
}

static struct test_case tests__verdict[] = {
	TEST_CASE_REASON("Verdict", verdict_skip, "perf was built without libtraceevent"),
	{	.name = NULL, }
};

#endif /* HAVE_LIBTRACEEVENT */

struct test_suite suite__verdict = {
	.desc = "perf verdict",
	.test_cases = tests__verdict,
};
