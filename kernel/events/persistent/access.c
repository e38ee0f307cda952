// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: permission to open an event and to read its buffer
 *
 * Opening a member of a session again creates no event, and so bypasses the checks of
 * perf_event_open(). This file repeats them for the event as it is, regardless of what
 * its creator was allowed to do.
 *
 * The additional checks in a PMU's event_init() are known only for software events,
 * tracepoints, probes and breakpoints. Other PMUs may refuse some users, or give some of
 * them more than others, in ways that are not visible here. perf_event_open() notes in
 * event->opened_by_monitor whether the opener had CAP_PERFMON. If so, opening an event of
 * such a PMU again requires CAP_PERFMON as well.
 *
 * A task that an event follows must be visible in the pid namespace of the reader, as for
 * perf_event_open(). The member keeps a reference on the pid namespace of the task, which
 * the task no longer has after it was reaped. If it was reaped before UNCLAIM, the pid
 * namespace of the event's opener is used instead. That is the same one or an ancestor.
 *
 * The permission to read a session does not include stopping or ending it. These take the
 * owner, or CAP_SYS_ADMIN in the user namespace in which the session was created.
 *
 * A buffer may have several members. Its reader sees the records of all of them, and so
 * must pass the checks of each, including members that were claimed since. When a member
 * is freed, the requirements of its records are added to rb->asks, which is protected by
 * perf_persistent_lock.
 *
 * The members of a buffer that belongs to a CPU may follow different tasks. The task of a
 * freed member cannot be asked for any more. Unless another member of the buffer follows it
 * as well, its records are for those who may watch any task: CAP_PERFMON, in the initial pid
 * namespace.
 *
 * Tasks that inherited an event are not asked for, as perf_event_open() does not ask for
 * them: who may watch a task may watch what it starts. Credentials that it did not have
 * before come with an exec(), which ends the event in that task. But a task that has dropped
 * its credentials may have started others before. Those could be watched by an opener with
 * CAP_PERFMON, so what is inherited of such an opener's event takes CAP_PERFMON. New pid
 * namespaces are below that of the first task, so who sees that one sees them all.
 *
 * Whoever may open a member may see its attr, without the addresses of its creator.
 *
 * At the end is what ioctls use to read a struct of their caller.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/hw_breakpoint.h>
#include <linux/pid_namespace.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/trace_events.h>
#include <linux/uaccess.h>

#include "internal.h"

#ifdef CONFIG_EVENT_TRACING
static int perf_persistent_may_trace(struct perf_event *event)
{
	struct trace_event_call *call = event->tp_event;

	if (!call)
		return 0;

	/* The PMUs of kprobes and uprobes, not their tracepoints. */
	if (event->attr.type != PERF_TYPE_TRACEPOINT && !perfmon_capable())
		return perf_persistent_refuse(-EACCES, "a probe takes CAP_PERFMON");

	return perf_trace_event_perm(call, event);
}
#else
static int perf_persistent_may_trace(struct perf_event *event)
{
	return 0;
}
#endif

#ifdef CONFIG_HAVE_HW_BREAKPOINT
static int perf_persistent_may_break(struct perf_event *event)
{
	if (event->attr.type == PERF_TYPE_BREAKPOINT &&
	    arch_check_bp_in_kernelspace(&event->hw.info) && !capable(CAP_SYS_ADMIN))
		return perf_persistent_refuse(-EPERM,
					      "a breakpoint in the kernel takes CAP_SYS_ADMIN");
	return 0;
}
#else
static int perf_persistent_may_break(struct perf_event *event)
{
	return 0;
}
#endif

/* May its tasks have been such as only CAP_PERFMON may watch, whatever the first is now? */
static bool perf_persistent_inherits_of_monitor(struct perf_event *event)
{
	return event->attr.inherit && event->opened_by_monitor;
}

/* May the current task monitor the CPU or task of the event? */
static int perf_persistent_may_watch(struct perf_event *event)
{
	if (!(event->attach_state & PERF_ATTACH_TASK))
		return perf_allow_cpu();

	/*
	 * As perf_check_permission() does. The task need not be kept from changing its
	 * credentials meanwhile: exec() ends the event before the new program runs, and what
	 * was recorded before was recorded under the old credentials.
	 */
	if (perfmon_capable())
		return 0;
	if (perf_persistent_inherits_of_monitor(event))
		return perf_persistent_refuse(-EACCES, "inherited, and opened with CAP_PERFMON");
	if (!ptrace_may_access(event->hw.target, PTRACE_MODE_READ_REALCREDS))
		return perf_persistent_refuse(-EACCES, "the caller may not ptrace the task");
	return 0;
}

/**
 * perf_persistent_note_opener - store whether the opener of an event has CAP_PERFMON
 * @event: the event, which the current task opens for the first time
 */
void perf_persistent_note_opener(struct perf_event *event)
{
	event->opened_by_monitor = ns_capable_noaudit(&init_user_ns, CAP_PERFMON) ||
				   ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
}

/* Are all checks of its PMU's event_init() made here? */
static bool perf_persistent_knows_pmu(struct perf_event *event)
{
	switch (event->orig_type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
	case PERF_TYPE_BREAKPOINT:
		return true;
	}
#ifdef CONFIG_EVENT_TRACING
	/* The PMUs of kprobes and uprobes. */
	if (event->tp_event)
		return true;
#endif
	return false;
}

static bool perf_persistent_asks_for_monitor(struct perf_event *event)
{
	return event->opened_by_monitor && !perf_persistent_knows_pmu(event);
}

/* Permissions that the records of freed members require: rb->asks */
#define PERF_PERSISTENT_ASKS_KERNEL	0x1
#define PERF_PERSISTENT_ASKS_MONITOR	0x2
#define PERF_PERSISTENT_ASKS_TRACEPOINT	0x4
#define PERF_PERSISTENT_ASKS_ADMIN	0x8
#define PERF_PERSISTENT_ASKS_UNLOCKED	0x10
#define PERF_PERSISTENT_ASKS_ALL_TASKS	0x20
#define PERF_PERSISTENT_ASKS_CPU	0x40

/* Does a member that stays, and writes to the same buffer, follow the same task? */
static bool perf_persistent_is_followed(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *other;

	lockdep_assert_held(&perf_persistent_lock);

	/*
	 * Only those who open a member at this moment look at the answer: do not search for
	 * each event of a session that has ended.
	 */
	if (pe->session->state == PERF_PERSISTENT_ENDED)
		return false;

	list_for_each_entry(other, &pe->session->members, member_entry) {
		if (READ_ONCE(other->rb) == pe->rb &&
		    other->event->hw.target == pe->event->hw.target)
			return true;
		cond_resched();
	}
	return false;
}

/**
 * perf_persistent_asks - get the permissions that the records of an event require
 * @pe: the member, which is about to be freed, and is no longer on session->members
 *
 * The LSM label is not included: it is freed with the event.
 *
 * Context: perf_persistent_lock is held.
 * Return: PERF_PERSISTENT_ASKS_* bits
 */
u32 perf_persistent_asks(struct perf_persistent_event *pe)
{
	struct perf_event *event = pe->event;
	const struct perf_event_attr *attr = &event->attr;
	u32 asks = 0;

	/* As perf_event_allow() does. */
	if (!attr->exclude_kernel || attr->text_poke ||
	    (attr->sample_type & PERF_SAMPLE_PHYS_ADDR) ||
	    ((attr->sample_type & PERF_SAMPLE_CALLCHAIN) && !attr->exclude_callchain_kernel) ||
	    (has_branch_stack(event) &&
	     (attr->branch_sample_type & PERF_SAMPLE_BRANCH_PERM_PLM)))
		asks |= PERF_PERSISTENT_ASKS_KERNEL;
	if (attr->namespaces || perf_persistent_asks_for_monitor(event) ||
	    perf_persistent_inherits_of_monitor(event))
		asks |= PERF_PERSISTENT_ASKS_MONITOR;
	if (attr->sample_type & PERF_SAMPLE_REGS_INTR)
		asks |= PERF_PERSISTENT_ASKS_UNLOCKED;
	if (!(event->attach_state & PERF_ATTACH_TASK))
		asks |= PERF_PERSISTENT_ASKS_CPU;
	if (pe->target_ns && !(pe->rb->asks & PERF_PERSISTENT_ASKS_ALL_TASKS) &&
	    !perf_persistent_is_followed(pe))
		asks |= PERF_PERSISTENT_ASKS_ALL_TASKS;

#ifdef CONFIG_EVENT_TRACING
	if (event->tp_event && event->orig_type != PERF_TYPE_TRACEPOINT)
		asks |= PERF_PERSISTENT_ASKS_MONITOR;
	/* As perf_trace_event_perm() does. */
	if (event->tp_event && ftrace_event_is_function(event->tp_event))
		asks |= PERF_PERSISTENT_ASKS_TRACEPOINT;
	if (event->tp_event && (attr->sample_type & PERF_SAMPLE_RAW) &&
	    !((event->attach_state & PERF_ATTACH_TASK) &&
	      (event->tp_event->flags & TRACE_EVENT_FL_CAP_ANY)))
		asks |= PERF_PERSISTENT_ASKS_TRACEPOINT;
#endif
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	if (attr->type == PERF_TYPE_BREAKPOINT && arch_check_bp_in_kernelspace(&event->hw.info))
		asks |= PERF_PERSISTENT_ASKS_ADMIN;
#endif
	return asks;
}

static int perf_persistent_may_have(u32 asks)
{
	int err = 0;

	if (asks & PERF_PERSISTENT_ASKS_CPU)
		err = perf_allow_cpu();
	if (!err && (asks & PERF_PERSISTENT_ASKS_KERNEL))
		err = perf_allow_kernel();
	if (!err && (asks & PERF_PERSISTENT_ASKS_TRACEPOINT))
		err = perf_allow_tracepoint();
	if (!err && (asks & PERF_PERSISTENT_ASKS_UNLOCKED))
		err = security_locked_down(LOCKDOWN_PERF);
	if (!err && (asks & PERF_PERSISTENT_ASKS_MONITOR) && !perfmon_capable())
		err = -EACCES;
	if (!err && (asks & PERF_PERSISTENT_ASKS_ALL_TASKS) &&
	    (!perfmon_capable() || !perf_persistent_sees(&init_pid_ns)))
		err = -EACCES;
	if (!err && (asks & PERF_PERSISTENT_ASKS_ADMIN) && !capable(CAP_SYS_ADMIN))
		err = -EPERM;
	return err;
}

/**
 * perf_persistent_get_target_ns - the pid namespace of the task that an event follows
 * @event: the event
 *
 * Return: the namespace, with a reference; NULL if it follows none
 */
struct pid_namespace *perf_persistent_get_target_ns(struct perf_event *event)
{
	struct pid_namespace *ns;

	if (!(event->attach_state & PERF_ATTACH_TASK))
		return NULL;

	guard(rcu)();
	/* NULL if it was reaped. */
	ns = task_active_pid_ns(event->hw.target);
	return get_pid_ns(ns ?: event->ns);
}

/**
 * perf_persistent_may_open - may the current task open the event?
 * @event: the event
 *
 * Context: a task; may sleep.
 * Return: 0, -EACCES, -EPERM, or what an LSM or the PMU refuses with.
 */
int perf_persistent_may_open(struct perf_event *event)
{
	int err;

	err = perf_event_allow(&event->attr);
	if (err)
		return err;

	if (has_branch_stack(event) &&
	    (event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_PERM_PLM)) {
		err = perf_allow_kernel();
		if (err)
			return err;
	}

	err = perf_persistent_may_watch(event);
	if (err)
		return err;

	err = perf_persistent_may_trace(event);
	if (err)
		return err;

	err = perf_persistent_may_break(event);
	if (err)
		return err;

	if (perf_persistent_asks_for_monitor(event) && !perfmon_capable())
		return perf_persistent_refuse(-EACCES, "the event was opened with CAP_PERFMON");

	return security_perf_event_read(event);
}

/**
 * perf_persistent_may_read - may the current task have the event, and its buffer?
 * @pe: the member; only members write to its buffer, see perf_persistent_all_members()
 *
 * Context: a task; takes perf_persistent_lock, may sleep.
 * Return: 0; -ESRCH if a task is of another pid namespace; or what
 * perf_persistent_may_open() refuses with
 */
int perf_persistent_may_read(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *other;
	int err;

	guard(mutex)(&perf_persistent_lock);
	err = perf_persistent_may_have(pe->rb->asks);
	if (err)
		return perf_persistent_refuse(err, "the records of an event that was claimed");

	list_for_each_entry(other, &pe->session->members, member_entry) {
		/* NULL while it is becoming a member, of another buffer than this. */
		if (READ_ONCE(other->rb) != pe->rb)
			continue;

		if (other->target_ns && !perf_persistent_sees(other->target_ns))
			return perf_persistent_refuse(-ESRCH, "a task is not visible here");

		err = perf_persistent_may_open(other->event);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * perf_persistent_ask_lsm - does the LSM allow the current task to use a session?
 * @s: the session
 * @may: asks for an event: security_perf_event_read() or security_perf_event_write()
 *
 * Context: a task; takes perf_persistent_lock, may sleep.
 * Return: 0, or the error of the LSM for one of the events
 */
int perf_persistent_ask_lsm(struct perf_persistent_session *s,
			    int (*may)(struct perf_event *event))
{
	struct perf_persistent_event *pe;
	unsigned long key;
	int err;

	guard(mutex)(&perf_persistent_lock);
	xa_for_each(&s->events, key, pe) {
		err = may(pe->event);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/**
 * perf_persistent_may_control - may the current task change the session?
 * @s: the session
 *
 * Context: as perf_persistent_ask_lsm().
 * Return: 0, -EPERM, or the error of the LSM
 */
int perf_persistent_may_control(struct perf_persistent_session *s)
{
	if (!perf_persistent_may_end(s))
		return -EPERM;

	return perf_persistent_ask_lsm(s, security_perf_event_write);
}

/*
 * Is attr::config1 the address of a string in the creator's memory? Other processes can
 * make no use of it, and must not learn it.
 */
static bool perf_persistent_config1_is_user_ptr(struct perf_event *event)
{
#ifdef CONFIG_EVENT_TRACING
	/* The PMUs of kprobes and uprobes. */
	return event->tp_event && event->orig_type != PERF_TYPE_TRACEPOINT;
#else
	return false;
#endif
}

/**
 * perf_persistent_copy_attr - the attr of an event, for other processes
 * @event: the event
 * @attr: set to the attr as it was opened; only a PMU type that was encoded in the config of
 *	  PERF_TYPE_HARDWARE or PERF_TYPE_HW_CACHE is lost
 *
 * Context: may sleep; takes the mutex of the event's context.
 */
void perf_persistent_copy_attr(struct perf_event *event, struct perf_event_attr *attr)
{
	struct perf_event_context *ctx;

	/* PERIOD and MODIFY_ATTRIBUTES change it under this lock. */
	ctx = perf_event_ctx_lock(event);
	*attr = event->attr;
	perf_event_ctx_unlock(event, ctx);

	attr->size = sizeof(*attr);
	attr->type = event->orig_type;
	if (perf_persistent_config1_is_user_ptr(event))
		attr->config1 = 0;
}

/**
 * perf_persistent_copy_in - copy a struct that begins with its size
 * @dst: the struct, as this kernel knows it
 * @ksize: its size
 * @min_size: size of its first version
 * @uarg: the caller's struct
 * @size: out: its size
 *
 * Context: a task; may fault.
 * Return: 0, -EFAULT, -EINVAL (too small), or -E2BIG (unknown fields are set).
 */
int perf_persistent_copy_in(void *dst, size_t ksize, size_t min_size, void __user *uarg,
			    u32 *size)
{
	int err;

	err = get_user(*size, (u32 __user *)uarg);
	if (err)
		return err;

	if (*size < min_size)
		return perf_persistent_refuse(-EINVAL, "the struct is too small");

	err = *size > PAGE_SIZE ? -E2BIG : copy_struct_from_user(dst, ksize, uarg, *size);
	if (err == -E2BIG)
		perf_persistent_refuse(err, *size > PAGE_SIZE ? "the struct is too large" :
				       "fields that this kernel does not know are not 0");
	/* As perf_event_open() does: tell the size that this kernel knows. */
	if (err == -E2BIG && put_user((u32)ksize, (u32 __user *)uarg))
		return -EFAULT;
	return err;
}
