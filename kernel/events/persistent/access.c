// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: who may open an event, and read its buffer
 *
 * A task that opens a member again did not come through the checks of
 * perf_event_open(): these are made here, of the event as it is, whatever its creator
 * was allowed. What a PMU's event_init() checks on top is known for tracepoints, probes
 * and breakpoints alone.
 *
 * A buffer may have several members. Its reader sees the records of all of them, and so
 * must pass the checks of each, including those that were claimed since.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/hw_breakpoint.h>
#include <linux/ptrace.h>
#include <linux/security.h>
#include <linux/trace_events.h>

#include "internal.h"

#ifdef CONFIG_EVENT_TRACING
static int perf_persistent_may_trace(struct perf_event *event)
{
	struct trace_event_call *call = event->tp_event;

	if (!call)
		return 0;

	/* The PMUs of kprobes and uprobes, not their tracepoints. */
	if (event->attr.type != PERF_TYPE_TRACEPOINT && !perfmon_capable())
		return -EACCES;

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
		return -EPERM;
	return 0;
}
#else
static int perf_persistent_may_break(struct perf_event *event)
{
	return 0;
}
#endif

/* May the current task watch what the event watches? */
static int perf_persistent_may_watch(struct perf_event *event)
{
	if (!(event->attach_state & PERF_ATTACH_TASK))
		return perf_allow_cpu();

	/*
	 * As perf_check_permission() does. The task need not be kept from changing its
	 * credentials meanwhile: exec() ends the event first, and what was recorded
	 * before was recorded under the old credentials.
	 */
	if (perfmon_capable() ||
	    ptrace_may_access(event->hw.target, PTRACE_MODE_READ_REALCREDS))
		return 0;
	return -EACCES;
}

/**
 * perf_persistent_may_open - may the current task open the event?
 * @event: the event
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

	return security_perf_event_read(event);
}

/**
 * perf_persistent_may_read - may the current task have the event, and its buffer?
 * @pe: the member
 *
 * Return: 0; -EBUSY while events other than members write to the buffer
 */
int perf_persistent_may_read(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *other;
	int err;

	if (!perf_persistent_all_members(pe->session, pe->rb, NULL))
		return -EBUSY;

	/* The buffer is sealed: no other writer joins now. */
	guard(mutex)(&perf_persistent_lock);
	list_for_each_entry(other, &pe->session->members, member_entry) {
		/* NULL while it is becoming a member, of another buffer than this. */
		if (READ_ONCE(other->rb) != pe->rb)
			continue;

		err = perf_persistent_may_open(other->event);
		if (err)
			return err;
	}
	return 0;
}
