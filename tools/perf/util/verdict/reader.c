// SPDX-License-Identifier: GPL-2.0
/*
 * Read a recording into a history.
 *
 * The records are read once, in the order of time; halves of call chains that come after their
 * samples are read before, see deferred-chains.c. Whichever of the events below were
 * recorded are used:
 *
 *	sched:sched_switch				who runs, who waits, in which function
 *	sched:sched_waking, sched:sched_wakeup		who was woken by whom
 *	sched:sched_wakeup_new				tasks that begin
 *	lock:contention_begin, lock:contention_end	waits for locks of the kernel
 *	block:block_rq_issue, block:block_rq_complete	when requests were in block devices
 *	irq:irq_handler_entry, irq:irq_handler_exit	which interrupts had a CPU for long
 *	irq:softirq_entry, irq:softirq_exit		which softirqs had
 *	vmscan:mm_vmscan_direct_reclaim_begin and _end	who reclaimed memory of the machine
 *	vmscan:mm_vmscan_memcg_reclaim_begin and _end	who reclaimed that of a cgroup
 *	cpu-clock, cycles and the like			functions that tasks ran
 *
 * sched_wakeup comes from the CPU that the task is to run on. If it was woken from another
 * one it does not tell by whom, so sched_waking is preferred.
 *
 * The fields of tracepoints have the numbers that tasks have in the initial PID namespace, and
 * so has the history. Samples have those of the namespace of the recorder. In it, tasks of
 * others are 0. Tracepoints have both. What other samples have is translated by what they
 * told; a sample of a task that has had none yet is left out.
 */
#include "reader.h"
#include "stack.h"

#include "addr_location.h"
#include "base-api.h"
#include "callchain.h"
#include "cgroup.h"
#include "data.h"
#include "debug.h"
#include "deferred-chains.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "hashmap.h"
#include "header.h"
#include "machine.h"
#include "names-tool.h"
#include "sample.h"
#include "session.h"
#include "symbol.h"
#include "thread.h"
#include "tool.h"
#include "tp-field.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>

/* prev_state of sched_switch: what becomes of the task that leaves */
#define STATE_MASK		0xff
#define STATE_INTERRUPTIBLE	0x01
#define STATE_DEAD		0x30
#define STATE_IDLE		0x80

/* common_flags: the record is of an interrupt, or of a softirq */
#define FLAGS_INTERRUPT		0x18

struct reader {
	struct perf_tool		tool;
	struct verdict_history		*h;
	struct verdict_chains		*chains;
	struct evlist			*evlist;
	const struct evsel		*clock;
	/* Number of a task in the recorder's PID namespace -> in the initial one */
	struct hashmap			*tids;
	struct deferred_chains		deferred;
	bool				namespaced;
	int				err;
};

typedef int (*handler_t)(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			 struct machine *machine, u32 task);

/* False if the sample does not have the field: the recording is broken. */
static bool field(struct evsel *evsel, struct perf_sample *sample, const char *name, s64 *value)
{
	u64 number;

	if (!tp_field__number(evsel, sample, tp_field__find(evsel, name), &number))
		return false;
	*value = number;
	return true;
}

static void set_comm(struct verdict_history *h, u32 task, struct evsel *evsel,
		     struct perf_sample *sample, const char *name)
{
	char comm[sizeof(h->tasks->comm)];

	if (task != VERDICT_IDLE &&
	    tp_field__text(evsel, sample, tp_field__find(evsel, name), comm, sizeof(comm)))
		memcpy(h->tasks[task].comm, comm, sizeof(comm));
}

/*
 * Was the task taken off the CPU, not asked for it? One with a deadline ends its turn by
 * sched_yield(), in the same state. Without a call chain this is not known.
 */
static bool is_taken(struct perf_sample *sample, struct machine *machine, int prio)
{
	struct verdict_stack stack;

	if (prio >= 0)
		return true;
	verdict_stack__read(&stack, sample, machine, true);
	return !stack.empty && stack.class != CLASS_SLEEP;
}

static int handle_switch(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			 struct machine *machine, u32 task __maybe_unused)
{
	struct verdict_history *h = r->h;
	s64 state, prev_pid, next_pid, prev_prio, next_prio;
	struct verdict_wait wait = { .place = VERDICT_NONE };
	struct verdict_stack stack;
	u32 prev, next;
	int err;

	if (!field(evsel, sample, "prev_state", &state) ||
	    !field(evsel, sample, "prev_pid", &prev_pid) ||
	    !field(evsel, sample, "next_pid", &next_pid) ||
	    !field(evsel, sample, "prev_prio", &prev_prio) ||
	    !field(evsel, sample, "next_prio", &next_prio))
		return 0;
	prev = verdict_history__task(h, prev_pid);
	next = verdict_history__task(h, next_pid);
	if (prev == VERDICT_NONE || next == VERDICT_NONE)
		return -ENOMEM;
	set_comm(h, prev, evsel, sample, "prev_comm");
	set_comm(h, next, evsel, sample, "next_comm");
	h->tasks[prev].prio = prev_prio;
	h->tasks[next].prio = next_prio;
	state &= STATE_MASK;
	wait.preempted = !state;
	wait.taken = !state && prev != VERDICT_IDLE && is_taken(sample, machine, prev_prio);
	if (state && prev != VERDICT_IDLE) {
		verdict_stack__read(&stack, sample, machine, true);
		h->callchains |= !stack.empty;
		h->tasks[prev].kthread |= stack.kthread;
		wait.class = stack.class;
		if (!wait.class && h->has[EVENT_CONTENTION_END] &&
		    h->tasks[prev].contended_since)
			wait.class = CLASS_KERNEL_LOCK;
		if (state & STATE_IDLE || (stack.kthread && state & STATE_INTERRUPTIBLE))
			wait.class = CLASS_WORK;
		wait.place = verdict_history__place(h, &stack.place);
		if (wait.place == VERDICT_NONE)
			return -ENOMEM;
	}
	err = verdict_history__leave(h, sample->cpu, sample->time, prev, &wait,
				     state & STATE_DEAD);
	return err ?: verdict_history__enter(h, sample->cpu, sample->time, next);
}

/* By whom, or what, the current task or interrupt wakes a task */
static void find_waker(struct evsel *evsel, struct perf_sample *sample,
		       struct machine *machine, u32 task, struct verdict_wait *wake)
{
	struct verdict_stack stack;
	s64 flags = 0;

	verdict_stack__read(&stack, sample, machine, false);
	field(evsel, sample, "common_flags", &flags);
	if (stack.seen & 1U << CLASS_REMOTE)
		wake->by = WAKER_UNKNOWN;
	else if (stack.seen & 1U << CLASS_KILL)
		wake->by = WAKER_SIGNAL;
	else if (stack.seen & 1U << CLASS_TIMER)
		wake->by = WAKER_TIMER;
	else if (task == VERDICT_IDLE || (stack.seen & 1U << CLASS_INTERRUPT &&
					  !(stack.seen & 1U << CLASS_INLINE)) ||
		 (stack.empty && flags & FLAGS_INTERRUPT))
		wake->by = WAKER_INTERRUPT;
	else
		wake->by = WAKER_TASK;
	if (wake->by == WAKER_TASK)
		wake->waker = task;
}

/* @cpu: on which it is to run, or -1 */
static int read_wake(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
		     struct machine *machine, u32 task, s64 cpu)
{
	struct verdict_wait wake = {
		.woken	= sample->time,
		.waker	= VERDICT_NONE,
		.cpu	= cpu,
	};
	u32 target;
	s64 pid;

	if (!field(evsel, sample, "pid", &pid))
		return 0;
	target = verdict_history__task(r->h, pid);
	if (target == VERDICT_NONE)
		return -ENOMEM;
	set_comm(r->h, target, evsel, sample, "comm");
	if (cpu < 0 || !r->h->has[EVENT_WAKING])
		find_waker(evsel, sample, machine, task, &wake);
	verdict_history__wake(r->h, target, &wake);
	return 0;
}

/* Where it runs is decided later. */
static int handle_waking(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			 struct machine *machine, u32 task)
{
	return read_wake(r, evsel, sample, machine, task, -1);
}

static int handle_wakeup(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			 struct machine *machine, u32 task)
{
	s64 cpu;

	if (!field(evsel, sample, "target_cpu", &cpu) || cpu < 0)
		return 0;
	return read_wake(r, evsel, sample, machine, task, cpu);
}

static int handle_new(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
		      struct machine *machine __maybe_unused, u32 task)
{
	s64 tid, cpu;
	u32 new;

	if (!field(evsel, sample, "pid", &tid) || !field(evsel, sample, "target_cpu", &cpu))
		return 0;
	new = verdict_history__task(r->h, tid);
	/* The id of a task that is gone may be given to another one. */
	if (new != VERDICT_NONE && r->h->tasks[new].first)
		new = verdict_history__new_task(r->h, tid);
	if (new == VERDICT_NONE)
		return -ENOMEM;
	set_comm(r->h, new, evsel, sample, "comm");
	return verdict_history__born(r->h, new, task, sample->time, cpu);
}

static int handle_contention_begin(struct reader *r, struct evsel *evsel __maybe_unused,
				   struct perf_sample *sample,
				   struct machine *machine __maybe_unused, u32 task)
{
	r->h->tasks[task].contended_since = sample->time;
	return 0;
}

static int handle_contention_end(struct reader *r, struct evsel *evsel __maybe_unused,
				 struct perf_sample *sample __maybe_unused,
				 struct machine *machine __maybe_unused, u32 task)
{
	r->h->tasks[task].contended_since = 0;
	return 0;
}

static int handle_issue(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			struct machine *machine __maybe_unused, u32 task)
{
	struct verdict_request request = { .issued = sample->time, .task = task };
	s64 dev, sector;

	if (!field(evsel, sample, "dev", &dev) || !field(evsel, sample, "sector", &sector))
		return 0;
	/* Device 0 is none: the driver has not said for which disk it is. */
	if (!dev)
		return 0;
	request.dev = dev;
	request.sector = sector;
	return verdict_disks__issue(&r->h->disks, &request);
}

static int handle_complete(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			   struct machine *machine __maybe_unused, u32 task __maybe_unused)
{
	struct verdict_request request;
	s64 dev, sector;

	if (!field(evsel, sample, "dev", &dev) || !field(evsel, sample, "sector", &sector) ||
	    !verdict_disks__complete(&r->h->disks, dev, sector, &request))
		return 0;
	/* The clocks of two CPUs may differ. */
	if (sample->time < request.issued)
		return 0;
	request.completed = sample->time;
	return verdict_requests__add(&r->h->tasks[request.task].requests, &request);
}

/* Their numbers are those of the kernel's softirqs. */
static const char *const softirqs[] = {
	"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
	"RCU",
};

static int handle_irq_entry(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			    struct machine *machine __maybe_unused, u32 task __maybe_unused)
{
	struct verdict_source source = { .cpu = sample->cpu };
	s64 irq;

	if (!field(evsel, sample, "irq", &irq))
		return 0;
	source.nr = irq;
	tp_field__text(evsel, sample, tp_field__find(evsel, "name"), source.name,
		       sizeof(source.name));
	verdict_nest__enter(&r->h->cpus[sample->cpu].nest, &source, sample->time);
	return 0;
}

static int handle_irq_exit(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			   struct machine *machine __maybe_unused, u32 task)
{
	struct verdict_source source = { .cpu = sample->cpu };
	s64 irq;

	if (!field(evsel, sample, "irq", &irq))
		return 0;
	source.nr = irq;
	return verdict_nest__leave(&r->h->cpus[sample->cpu].nest, r->h, task, &source,
				   sample->time);
}

/* False if it is none that is known */
static bool read_softirq(struct evsel *evsel, struct perf_sample *sample,
			 struct verdict_source *source)
{
	s64 vec;

	if (!field(evsel, sample, "vec", &vec) || vec < 0 || vec >= (s64)ARRAY_SIZE(softirqs))
		return false;
	memset(source, 0, sizeof(*source));
	source->cpu = sample->cpu;
	source->nr = vec;
	source->soft = true;
	snprintf(source->name, sizeof(source->name), "%s", softirqs[vec]);
	return true;
}

static int handle_softirq_entry(struct reader *r, struct evsel *evsel,
				struct perf_sample *sample,
				struct machine *machine __maybe_unused, u32 task __maybe_unused)
{
	struct verdict_source source;

	if (read_softirq(evsel, sample, &source))
		verdict_nest__enter(&r->h->cpus[sample->cpu].nest, &source, sample->time);
	return 0;
}

static int handle_softirq_exit(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			       struct machine *machine __maybe_unused, u32 task)
{
	struct verdict_source source;

	if (!read_softirq(evsel, sample, &source))
		return 0;
	return verdict_nest__leave(&r->h->cpus[sample->cpu].nest, r->h, task, &source,
				   sample->time);
}

static int handle_reclaim(struct reader *r, struct evsel *evsel __maybe_unused,
			  struct perf_sample *sample, struct machine *machine __maybe_unused,
			  u32 task)
{
	verdict_reclaim__begin(r->h, task, false, sample->time);
	return 0;
}

static int handle_memcg_reclaim(struct reader *r, struct evsel *evsel __maybe_unused,
				struct perf_sample *sample,
				struct machine *machine __maybe_unused, u32 task)
{
	verdict_reclaim__begin(r->h, task, true, sample->time);
	return 0;
}

/* Of the task of a sample; NULL: it was not recorded, or has no name yet */
static const char *cgroup_of(struct evsel *evsel, struct perf_sample *sample)
{
	struct cgroup *cgroup = NULL;

	if (evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP)
		cgroup = cgroup__find(evsel__env(evsel), sample->cgroup);
	return cgroup ? cgroup->name : NULL;
}

static int end_reclaim(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
		       u32 task, bool limited)
{
	struct verdict_pool pool = { .limited = limited };

	pool.cgroup = cgroup_of(evsel, sample);
	return verdict_reclaim__end(r->h, task, &pool, sample->time);
}

static int handle_reclaim_end(struct reader *r, struct evsel *evsel, struct perf_sample *sample,
			      struct machine *machine __maybe_unused, u32 task)
{
	return end_reclaim(r, evsel, sample, task, false);
}

static int handle_memcg_reclaim_end(struct reader *r, struct evsel *evsel,
				    struct perf_sample *sample,
				    struct machine *machine __maybe_unused, u32 task)
{
	return end_reclaim(r, evsel, sample, task, true);
}

static const struct {
	const char	*system;
	const char	*name;
	handler_t	handler;
} handlers[EVENT_NR] = {
	[EVENT_SWITCH]		= { "sched", "sched_switch",		handle_switch },
	[EVENT_WAKING]		= { "sched", "sched_waking",		handle_waking },
	[EVENT_WAKEUP]		= { "sched", "sched_wakeup",		handle_wakeup },
	[EVENT_WAKEUP_NEW]	= { "sched", "sched_wakeup_new",	handle_new },
	[EVENT_CONTENTION_BEGIN] = { "lock", "contention_begin",	handle_contention_begin },
	[EVENT_CONTENTION_END]	= { "lock", "contention_end",		handle_contention_end },
	[EVENT_RQ_ISSUE]	= { "block", "block_rq_issue",		handle_issue },
	[EVENT_RQ_COMPLETE]	= { "block", "block_rq_complete",	handle_complete },
	[EVENT_IRQ_ENTRY]	= { "irq", "irq_handler_entry",		handle_irq_entry },
	[EVENT_IRQ_EXIT]	= { "irq", "irq_handler_exit",		handle_irq_exit },
	[EVENT_SOFTIRQ_ENTRY]	= { "irq", "softirq_entry",		handle_softirq_entry },
	[EVENT_SOFTIRQ_EXIT]	= { "irq", "softirq_exit",		handle_softirq_exit },
	[EVENT_RECLAIM_BEGIN]	= { "vmscan", "mm_vmscan_direct_reclaim_begin", handle_reclaim },
	[EVENT_RECLAIM_END]	= { "vmscan", "mm_vmscan_direct_reclaim_end", handle_reclaim_end },
	[EVENT_MEMCG_RECLAIM_BEGIN] = { "vmscan", "mm_vmscan_memcg_reclaim_begin",
					handle_memcg_reclaim },
	[EVENT_MEMCG_RECLAIM_END] = { "vmscan", "mm_vmscan_memcg_reclaim_end",
				      handle_memcg_reclaim_end },
};

/* Samples the running task by time */
static bool is_clock(const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	if (attr->type == PERF_TYPE_SOFTWARE)
		return attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		       attr->config == PERF_COUNT_SW_TASK_CLOCK;
	return attr->type == PERF_TYPE_HARDWARE &&
	       (attr->config & 0xffffffff) == PERF_COUNT_HW_CPU_CYCLES;
}

static int handle_clock(struct reader *r, struct perf_sample *sample, struct machine *machine,
			u32 task)
{
	struct verdict_hit hit = { .time = sample->time, .chain = VERDICT_NONE };
	struct addr_location al;
	int err = 0;

	if (task == VERDICT_IDLE)
		return 0;
	addr_location__init(&al);
	if (machine__resolve(machine, &al, sample) >= 0) {
		/* Without switches, nothing else tells its name. */
		if (!r->h->has[EVENT_SWITCH] && al.thread && thread__comm_str(al.thread))
			snprintf(r->h->tasks[task].comm, sizeof(r->h->tasks[task].comm), "%.15s",
				 thread__comm_str(al.thread));
		if (al.sym)
			hit.function = verdict_stack__name(al.sym->name);
		hit.leaf = verdict_chains__function(r->chains, &al);
		if (r->chains->whole && hit.leaf != VERDICT_NONE)
			hit.chain = verdict_chains__read(r->chains, sample, machine, hit.leaf);
		if (hit.leaf == VERDICT_NONE || (r->chains->whole && hit.chain == VERDICT_NONE))
			err = -ENOMEM;
		else
			err = verdict_history__hit(r->h, task, &hit);
	}
	addr_location__exit(&al);
	return err;
}

static size_t hash_tid(long key, void *ctx __maybe_unused)
{
	return key * 11400714819323198485llu;
}

static bool equal_tid(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

/*
 * The number of the task of a sample in the initial PID namespace.
 *
 * Return: false if it is not known.
 */
static bool find_tid(struct reader *r, struct evsel *evsel, struct perf_sample *sample, u32 *tid)
{
	s64 common_pid;
	long known;

	*tid = sample->tid == (u32)-1 ? 0 : sample->tid;
	if (field(evsel, sample, "common_pid", &common_pid)) {
		if (sample->tid != (u32)-1 && sample->tid != (u32)common_pid && !r->namespaced) {
			r->namespaced = true;
			/* So far, the numbers were taken to be the same. */
			verdict_history__forget_hits(r->h);
		}
		if (*tid && hashmap__set(r->tids, *tid, (long)common_pid, NULL, NULL))
			r->err = -ENOMEM;
		*tid = common_pid;
		return !r->err;
	}
	if (r->namespaced && *tid) {
		if (!hashmap__find(r->tids, *tid, &known))
			return false;
		*tid = known;
	}
	return true;
}

/* Hybrid CPUs have a clock for each kind of core: the same event of another PMU */
static bool is_our_clock(const struct reader *r, const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const struct perf_event_attr *clock = r->clock ? &r->clock->core.attr : NULL;

	return evsel == r->clock ||
	       (clock && clock->type == PERF_TYPE_HARDWARE && attr->type == PERF_TYPE_HARDWARE &&
		attr->config != clock->config && is_clock(evsel));
}

/* Where a task was last. It seldom moves, so a cgroup is looked up once. */
static void set_cgroup(struct verdict_task *t, struct evsel *evsel, struct perf_sample *sample)
{
	if (!(evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP) ||
	    (t->cgroup && t->cgroup_id == sample->cgroup))
		return;
	t->cgroup = cgroup_of(evsel, sample);
	t->cgroup_id = sample->cgroup;
}

static int process_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
			  struct perf_sample *sample, struct evsel *evsel,
			  struct machine *machine)
{
	struct reader *r = container_of(tool, struct reader, tool);
	handler_t handler = evsel->handler;
	struct verdict_task *t;
	u32 tid, task;
	int err;

	if (sample->cpu == (u32)-1 || r->err)
		return r->err;
	err = verdict_history__seen(r->h, sample->cpu, sample->time) ?:
	      deferred_chains__merge(&r->deferred, sample);
	if (!err && !find_tid(r, evsel, sample, &tid))
		return r->err;
	task = err ? VERDICT_NONE : verdict_history__task(r->h, tid);
	if (task == VERDICT_NONE) {
		r->err = -ENOMEM;
		return r->err;
	}
	t = &r->h->tasks[task];
	if (!r->namespaced)
		t->tgid = sample->pid;
	if (!t->first && task != VERDICT_IDLE)
		t->first = sample->time;
	if (task != VERDICT_IDLE)
		set_cgroup(t, evsel, sample);
	if (handler)
		r->err = handler(r, evsel, sample, machine, task);
	else if (is_our_clock(r, evsel))
		r->err = handle_clock(r, sample, machine, task);
	return r->err;
}

DEFINE_TOOL_SAMPLE(process_sample)

static int process_lost(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct reader *r = container_of(tool, struct reader, tool);

	return verdict_history__lost(r->h, sample->cpu, sample->time, event->lost.lost);
}

static int process_exit(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine)
{
	struct reader *r = container_of(tool, struct reader, tool);

	return verdict_history__ended(r->h, event->fork.tid, sample->time) ?:
	       perf_event__process_exit(tool, event, sample, machine);
}

static void init_tool(struct perf_tool *tool)
{
	names_tool__init(tool);
	tool->sample		= process_sample__of_tool;
	tool->lost		= process_lost;
	tool->exit		= process_exit;
	perf_tool__set_deferred(tool, NULL);
}

/*
 * Names prove nothing: any event can be given any name. Without the data of its samples a
 * tracepoint tells nothing.
 */
static bool is_event(const struct evsel *evsel, enum verdict_event event)
{
	return tp_field__is_of(evsel, handlers[event].system, handlers[event].name) &&
	       evsel->core.attr.sample_type & PERF_SAMPLE_RAW;
}

/* Which events there are, and what is done with their samples */
static void find_events(struct reader *r, struct evlist *evlist)
{
	struct evsel *evsel;
	int i;

	evlist__for_each_entry(evlist, evsel) {
		for (i = 0; i < EVENT_NR; i++) {
			if (!is_event(evsel, i))
				continue;
			evsel->handler = handlers[i].handler;
			r->h->has[i] = true;
		}
		if (is_event(evsel, EVENT_SWITCH) &&
		    (evsel->core.attr.freq || evsel->core.attr.sample_period > 1)) {
			evsel->handler = NULL;
			r->h->sampled = true;
			r->h->has[EVENT_SWITCH] = false;
		}
		if (!r->clock && is_clock(evsel)) {
			r->clock = evsel;
			r->h->clock = true;
			if (evsel->core.attr.freq && evsel->core.attr.sample_freq)
				r->h->clock_ns = NSEC_PER_SEC / evsel->core.attr.sample_freq;
			else if (evsel->core.attr.type == PERF_TYPE_SOFTWARE)
				r->h->clock_ns = evsel->core.attr.sample_period;
		}
	}
}

/**
 * verdict_history__read - read a recording
 * @h: where to
 * @chains: where functions and call chains go to
 * @path: of the recording
 * @force: read files of others
 * @rec: what is read
 *
 * Return: 0, or a negative errno after a message.
 */
int verdict_history__read(struct verdict_history *h, struct verdict_chains *chains,
			  const char *path, bool force, struct verdict_recording *rec)
{
	struct reader r = { .h = h, .chains = chains };
	struct perf_session *session;
	int err;

	rec->data.mode = PERF_DATA_MODE_READ;
	rec->data.path = path;
	rec->data.force = force;
	init_tool(&r.tool);
	session = perf_session__new(&rec->data, &r.tool);
	if (IS_ERR(session))
		return PTR_ERR(session);
	rec->session = session;
	if (perf_data__is_pipe(&rec->data)) {
		pr_err("%s was written to a pipe: its events are not known before they are read. Record with -o FILE.\n",
		       path);
		return -EINVAL;
	}
	symbol_conf.use_callchain = true;
	symbol_conf.keep_exited_threads = true;
	if (symbol__init(&session->header.env) < 0)
		return -EINVAL;
	r.tids = hashmap__new(hash_tid, equal_tid, NULL);
	if (IS_ERR(r.tids))
		return -ENOMEM;
	find_events(&r, session->evlist);
	err = deferred_chains__read(&r.deferred, session->evlist, path, force) ?:
	      perf_session__process_events(session);
	if (r.err)
		err = r.err;
	if (!err)
		err = verdict_history__finish(h);
	if (err == -ENOMEM)
		pr_err("There is not enough memory for the switches of %s.\n", path);
	else if (err)
		pr_err("%s cannot be read to its end (error %d).\n", path, err);
	h->half_chains = r.deferred.missing;
	deferred_chains__exit(&r.deferred);
	hashmap__free(r.tids);
	return err;
}
