// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder's triggers: a task waits too long for a CPU, is off the CPU too long, or is
 * too long in a system call
 *
 * A wait is looked at twice: when it ends, by a program at a tracepoint, and while it lasts, by
 * a walk that a thread of the recorder starts again and again. The first of the two
 * claims it, so that a wait is one hit.
 *
 *	runq	runq_switch(): the tracepoint comes before the scheduler clears
 *		sched_info.last_queued of the next task, and after it has read the clock.
 *		runq_walk(): the lists of the tasks that are on run queues. Their length, not the
 *		number of tasks, is what a walk costs. The lists change meanwhile: no lock is
 *		held. A task that is found is looked up by its pid before it is believed.
 *
 *	offcpu	offcpu_switch(): the scheduler keeps when a task has got a CPU, not when it has
 *		left it. Most tasks leave it at once, so that the difference does not matter. Of
 *		those that have had it for longer than @grain, the time is kept when they leave.
 *		All others count as if they had left it @grain later: a wait is never said to be
 *		longer than it was, and by less than @grain shorter.
 *		offcpu_walk(): all tasks, by an iterator.
 *
 *	syscall	syscall_enter(), syscall_exit(): the time of the entry is kept for a task that
 *		calls this system call.
 *		syscall_walk(): all tasks. The registers that a task has entered the kernel with
 *		say whether it is in the call.
 *
 * Programs at system calls are not run each time. On Linux 7.3 they can be preempted if RCU can
 * (CONFIG_PREEMPT_RCU). Then the kernel skips them for all other tasks on this CPU until they
 * have run to their end. So a time can be kept of a call that the task has left, and none of a
 * call that it is in. syscall_walk() drops the first. For the second it keeps the time of the
 * walk, and what is told of this call is "at least". If both the end of a call and the beginning
 * of the next one are skipped, and no walk finds the task between them, the two count as one. The
 * recorder tells how often its programs were skipped.
 *
 * The clock of the scheduler is that of the run queue of this CPU, which was read at the latest
 * when the task that runs here was switched to, or by the last tick. A clock that is late makes
 * a wait shorter, never longer.
 *
 * The idle tasks are never queued and have no system calls; offcpu leaves them out. So do all of
 * them the recorder, and the processes that it has started since.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "flight_hit.bpf.h"

#define PF_KTHREAD	0x00200000
#define TS_COMPAT	0x0002
#define TIF_32BIT_ARM64	22

/* -ENOSYS */
#define NO_RESULT	(-38)

/* Tasks on the run queues of one CPU that a walk looks at */
#define MAX_QUEUED	65536

/* Levels of cgroups, and generations of processes, that are looked at */
#define MAX_LEVELS	32
#define MAX_PARENTS	4

char LICENSE[] SEC("license") = "GPL";

struct list_head___flight {
	struct list_head___flight *next, *prev;
} __attribute__((preserve_access_index));

struct sched_info___flight {
	unsigned long long last_arrival;
	unsigned long long last_queued;
} __attribute__((preserve_access_index));

struct sched_entity___flight {
	struct list_head___flight group_node;
} __attribute__((preserve_access_index));

struct thread_info___flight {
	unsigned long flags;
	u32 status;
	u32 cpu;
} __attribute__((preserve_access_index));

/* @on_cpu is an int in some kernels, an u8 in others: only what is unsigned can be widened. */
struct task_struct___flight {
	struct thread_info___flight thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned int on_cpu;
	int exit_state;
	unsigned int ptrace;
	pid_t pid;
	pid_t tgid;
	u64 start_time;
	struct task_struct___flight *real_parent;
	struct sched_entity___flight se;
	struct sched_info___flight sched_info;
} __attribute__((preserve_access_index));

struct rq___flight {
	u64 clock;
	struct list_head___flight cfs_tasks;
} __attribute__((preserve_access_index));

struct cgroup_subsys_state___flight {
	struct cgroup *cgroup;
	struct cgroup_subsys_state___flight *parent;
} __attribute__((preserve_access_index));

struct cgroup___flight {
	struct cgroup_subsys_state___flight self;
} __attribute__((preserve_access_index));

struct bpf_iter__task___flight {
	struct task_struct *task;
} __attribute__((preserve_access_index));

/*
 * Where a system call's number is until the task enters the kernel again. On x86, @ax is -ENOSYS
 * until there is a result.
 */
struct pt_regs___x86 {
	unsigned long orig_ax;
	unsigned long ax;
} __attribute__((preserve_access_index));

struct pt_regs___arm64 {
	s32 syscallno;
} __attribute__((preserve_access_index));

extern struct rq runqueues __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

/**
 * struct seen - what is kept of a task that was noticed
 * @arrival: when it had got the CPU from which
 * @departure: it was switched at this time, after more than @grain
 * @entry: when it has entered the system call, or 0
 * @found: an @entry that is later than that: of the walk that found the task in the call
 * @claimed: the beginning of its last wait that was a hit
 */
struct seen {
	__u64	arrival;
	__u64	departure;
	__u64	entry;
	__u64	found;
	__u64	claimed;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct seen);
} tasks SEC(".maps");

/* What the user has set. A cgroup that is made again has another id. */
const volatile char comm[FLIGHT_COMM_LEN];
const volatile bool has_comm;
const volatile bool has_cgroup;
const volatile __u64 grain;
const volatile __s32 syscall_nr = -1;
const volatile __u32 nr_cpus = 1;
__u64 cgroup_id;

/* The recorder, in the initial pid namespace; and since when it watches, by both clocks */
__u32 self_tgid;
__u64 begun;
__u64 begun_clock;

static __always_inline __u64 rq_clock(void)
{
	struct rq___flight *rq = (void *)bpf_this_cpu_ptr(&runqueues);

	return rq->clock;
}

SEC("syscall")
int begin(void *ctx)
{
	self_tgid = bpf_get_current_pid_tgid() >> 32;
	begun = bpf_ktime_get_ns();
	return 0;
}

SEC("syscall")
int offcpu_begin(void *ctx)
{
	begun_clock = rq_clock();
	return 0;
}

static __always_inline bool has_name(struct task_struct *task)
{
	char name[FLIGHT_COMM_LEN] = {};

	BPF_CORE_READ_STR_INTO(&name, task, comm);
	for (int i = 0; i < FLIGHT_COMM_LEN; i++) {
		if (name[i] != comm[i])
			return false;
		if (!name[i])
			break;
	}
	return true;
}

static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct cgroup_subsys_state___flight *css;

	for (int i = 0; i < MAX_LEVELS && cgroup; i++) {
		if (BPF_CORE_READ(cgroup, kn, id) == cgroup_id)
			return true;
		css = BPF_CORE_READ((struct cgroup___flight *)cgroup, self.parent);
		cgroup = css ? BPF_CORE_READ(css, cgroup) : NULL;
	}
	return false;
}

/* Of the recorder, or of what it has started since, such as the process that writes a dump */
static __always_inline bool is_own(struct task_struct *task)
{
	struct task_struct___flight *t = (void *)task;
	__u64 start = begun;

	for (int i = 0; i < MAX_PARENTS && t; i++) {
		if (BPF_CORE_READ(t, tgid) == self_tgid)
			return start >= begun;
		start = BPF_CORE_READ(t, start_time);
		t = BPF_CORE_READ(t, real_parent);
	}
	return false;
}

static __always_inline bool is_watched(struct task_struct *task)
{
	return (!has_comm || has_name(task)) && (!has_cgroup || is_in_cgroup(task)) &&
	       !is_own(task);
}

/* One hit for each wait. Without memory for that, one that was told of is told of again. */
static __always_inline bool claim(struct task_struct *task, __u64 wait)
{
	struct seen *s = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u64 claimed;

	if (!s)
		return true;
	claimed = s->claimed;
	return claimed != wait &&
	       __sync_val_compare_and_swap(&s->claimed, claimed, wait) == claimed;
}

/* @wait: when it has begun, on any clock; @at_least: or before */
static __always_inline int hit_since(struct task_struct *task, __u64 wait, __u64 value, bool waits,
				     bool at_least)
{
	struct flight_hit *h;

	if (!is_watched(task) || !claim(task, wait) || !count_hit())
		return 0;
	h = begin_hit(value, waits);
	if (!h)
		return 0;
	h->at_least = at_least;
	h->pid = BPF_CORE_READ(task, pid);
	h->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	BPF_CORE_READ_STR_INTO(&h->comm, task, comm);
	bpf_ringbuf_submit(h, 0);
	return 0;
}

static __always_inline int hit(struct task_struct *task, __u64 wait, __u64 value, bool waits)
{
	return hit_since(task, wait, value, waits, /*at_least=*/false);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(runq_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_struct___flight *n = (void *)next;
	__u64 queued = n->sched_info.last_queued, value;

	if (!queued)
		return 0;
	value = rq_clock() - queued;
	if ((__s64)value < (__s64)over)
		return 0;
	return hit(next, queued, value, /*waits=*/false);
}

struct walk {
	__u64				now;
	__u32				cpu;
	struct list_head___flight	*head;
	struct list_head___flight	*at;
};

/* The list may be another CPU's meanwhile. */
static __always_inline void look_at_queued(struct task_struct___flight *t, __u64 now)
{
	struct task_struct *task;
	__u64 queued;

	queued = BPF_CORE_READ(t, sched_info.last_queued);
	if (!queued || (__s64)(now - queued) < (__s64)over)
		return;
	task = bpf_task_from_pid(BPF_CORE_READ(t, pid));
	if (!task)
		return;
	if ((__u64)task == (__u64)t)
		hit(task, queued, now - queued, /*waits=*/true);
	bpf_task_release(task);
}

/*
 * From the end of the list: those that have waited for longest. What is not a task of this CPU
 * is one that was moved, or the head of another list: the next walk sees the rest.
 */
static long walk_queued(__u64 i, void *ctx)
{
	const __u64 offset = bpf_core_field_offset(struct task_struct___flight, se.group_node);
	struct walk *w = ctx;
	struct list_head___flight *at = w->at;
	struct task_struct___flight *t = (void *)at - offset;

	if (!at || at == w->head)
		return 1;
	if (bpf_core_field_exists(t->thread_info.cpu) &&
	    BPF_CORE_READ(t, thread_info.cpu) != w->cpu)
		return 1;
	w->at = BPF_CORE_READ(at, prev);
	look_at_queued(t, w->now);
	return w->at == at;
}

static long walk_cpu(__u64 cpu, void *ctx)
{
	const __u64 offset = bpf_core_field_offset(struct rq___flight, cfs_tasks);
	struct rq___flight *rq = (void *)bpf_per_cpu_ptr(&runqueues, cpu);
	struct walk w = { .now = *(__u64 *)ctx, .cpu = cpu };

	if (!rq)
		return 1;
	w.head = (void *)((__u64)rq + offset);
	w.at = rq->cfs_tasks.prev;
	bpf_loop(MAX_QUEUED, walk_queued, &w, 0);
	return 0;
}

SEC("syscall")
int runq_walk(void *ctx)
{
	__u64 now = rq_clock();

	bpf_loop(nr_cpus, walk_cpu, &now, 0);
	return 0;
}

/* Since when the task has been off the CPU that it had got at @arrival */
static __always_inline __u64 left_at(struct seen *s, __u64 arrival)
{
	__u64 left = arrival + grain;

	if (s && s->arrival == arrival)
		return s->departure;
	return left > begun_clock ? left : begun_clock;
}

static __always_inline void keep_departure(struct task_struct *prev, __u64 arrival, __u64 now)
{
	struct seen *s = bpf_task_storage_get(&tasks, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!s)
		return;
	s->departure = now;
	s->arrival = arrival;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_struct___flight *p = (void *)prev, *n = (void *)next;
	__u64 now = rq_clock(), arrival = p->sched_info.last_arrival, value;

	if (now - arrival >= grain && arrival && p->pid)
		keep_departure(prev, arrival, now);
	arrival = n->sched_info.last_arrival;
	if (now - arrival < over || !arrival || n->flags & PF_KTHREAD)
		return 0;
	value = now - left_at(bpf_task_storage_get(&tasks, next, 0, 0), arrival);
	if ((__s64)value < (__s64)over)
		return 0;
	return hit(next, arrival, value, /*waits=*/false);
}

SEC("iter/task")
int offcpu_walk(struct bpf_iter__task___flight *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct___flight *t = (void *)task;
	__u64 arrival, now, value;

	if (!task)
		return 0;
	arrival = t->sched_info.last_arrival;
	now = rq_clock();
	if (t->on_cpu || !arrival || (__s64)(now - arrival) < (__s64)over ||
	    t->flags & PF_KTHREAD || t->exit_state)
		return 0;
	value = now - left_at(bpf_task_storage_get(&tasks, task, 0, 0), arrival);
	if ((__s64)value < (__s64)over)
		return 0;
	return hit(task, arrival, value, /*waits=*/true);
}

/* The numbers of a 32-bit program are others. */
static __always_inline bool is_compat(struct task_struct *task)
{
	struct task_struct___flight *t = (void *)task;

	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax))
		return t->thread_info.status & TS_COMPAT;
	return bpf_core_field_exists(struct pt_regs___arm64, syscallno) &&
	       t->thread_info.flags & 1UL << TIF_32BIT_ARM64;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task;
	struct seen *s;

	if (id != syscall_nr)
		return 0;
	task = bpf_get_current_task_btf();
	if (is_compat(task))
		return 0;
	s = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (s)
		s->entry = bpf_ktime_get_ns();
	return 0;
}

/* Where the number is not known, each system call ends the one that was entered. */
static __always_inline bool is_other_syscall(struct pt_regs *regs)
{
	if (bpf_core_field_exists(struct pt_regs___x86, orig_ax))
		return (__s32)BPF_CORE_READ((struct pt_regs___x86 *)regs, orig_ax) != syscall_nr;
	if (bpf_core_field_exists(struct pt_regs___arm64, syscallno))
		return BPF_CORE_READ((struct pt_regs___arm64 *)regs, syscallno) != syscall_nr;
	return false;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	__u64 entry, value;
	struct seen *s;

	if (is_other_syscall(regs))
		return 0;
	task = bpf_get_current_task_btf();
	s = bpf_task_storage_get(&tasks, task, 0, 0);
	if (!s || !s->entry)
		return 0;
	entry = s->entry;
	s->entry = 0;
	value = bpf_ktime_get_ns() - entry;
	if (value < over)
		return 0;
	return hit_since(task, entry, value, /*waits=*/false, s->found == entry);
}

static __always_inline bool knows_number(void)
{
	return bpf_core_field_exists(struct pt_regs___x86, orig_ax) ||
	       bpf_core_field_exists(struct pt_regs___arm64, syscallno);
}

/*
 * Of a task whose last system call is this one: it has not left it. arm64 does not tell: a task
 * that runs may have left, until an interrupt. So it is on x86 if the result is -ENOSYS.
 */
static __always_inline bool is_inside(struct pt_regs *regs)
{
	return !bpf_core_field_exists(struct pt_regs___x86, ax) ||
	       (__s32)BPF_CORE_READ((struct pt_regs___x86 *)regs, ax) == NO_RESULT;
}

/* A task that was preempted may have done with the call, where is_inside() does not know. */
static __always_inline bool is_asleep(struct task_struct___flight *t)
{
	return !t->on_cpu && (!bpf_core_field_exists(t->__state) || t->__state);
}

/*
 * The task is in the call, and when it has entered it was not seen. A tracer can hold a task
 * before the call begins. Kernel threads have no registers of a call.
 */
static __always_inline int find_call(struct task_struct *task)
{
	struct task_struct___flight *t = (void *)task;
	struct seen *s;
	__u64 now;

	if (!is_asleep(t) || t->flags & PF_KTHREAD || t->ptrace || !knows_number() ||
	    !is_watched(task))
		return 0;
	s = bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!s)
		return 0;
	now = bpf_ktime_get_ns();
	s->found = now;
	__sync_val_compare_and_swap(&s->entry, 0, now);
	return 0;
}

/* Whoever has another number in these registers has returned to user space since the call. */
SEC("iter/task")
int syscall_walk(struct bpf_iter__task___flight *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct___flight *t = (void *)task;
	struct pt_regs *regs;
	__u64 entry, value;
	struct seen *s;

	if (!task || t->exit_state)
		return 0;
	s = bpf_task_storage_get(&tasks, task, 0, 0);
	entry = s ? s->entry : 0;
	value = bpf_ktime_get_ns() - entry;
	regs = (void *)bpf_task_pt_regs(task);
	if (is_other_syscall(regs) || is_compat(task)) {
		if (s && entry)
			__sync_val_compare_and_swap(&s->entry, entry, 0);
		return 0;
	}
	if (!is_inside(regs))
		return 0;
	if (!s || !entry)
		return find_call(task);
	if ((__s64)value < (__s64)over)
		return 0;
	return hit_since(task, entry, value, /*waits=*/true, s->found == entry);
}
