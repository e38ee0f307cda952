// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: stop all buffers of a session at one moment, and let them go on
 *
 * The records that led to an incident must not be overwritten before somebody starts a
 * reader. FREEZE pauses all ring buffers of a RUNNING session, THAW resumes them. Writers
 * check rb->paused in any case, so being freezable costs them nothing.
 *
 * What a reader may assume
 * ------------------------
 *
 *  - freeze_begin is taken before the first buffer is paused, freeze_time after the last.
 *    A writer takes the time of its record first and checks rb->paused afterwards. So a
 *    record that is earlier than freeze_begin may be refused, and counted as lost, if its
 *    writer was interrupted in between; all other earlier records are there. No record is
 *    later than freeze_time, except for the difference between the clocks of two CPUs.
 *    That is below a millisecond with a stable TSC, and up to a tick otherwise.
 *  - One CPU, with preemption disabled, pauses the buffers one after the other. Each takes
 *    about 50 ns.
 *  - In state FROZEN no writer is in a buffer, so what is read is final. In state FREEZING
 *    records that were begun before are still being completed.
 *  - Events that occur while the session is frozen are counted in rb->lost and in the
 *    event's lost_samples. After THAW the first record of each buffer is a
 *    PERF_RECORD_LOST with that number.
 *  - Side-band events are members like others and are frozen as well. If they went on,
 *    they would overwrite the records that describe the frozen samples.
 *
 * States
 * ------
 *
 *	            cmpxchg               release             RCU grace period
 *	  THAWED -----------> PAUSING -----------> FREEZING -----------------> FROZEN
 *	    ^ |                  ^                                                |
 *	    | | cmpxchg          | cmpxchg fails: another freeze came meanwhile   |
 *	    | +--------------- THAWING <------------------------------------------+
 *	    |                  REFREEZE               THAW, with perf_persistent_mutex
 *
 * BPF programs and oopses cause freezes, so a freeze may come from any context, including
 * NMI. perf_persistent_freeze_now() takes no lock. It moves the state from THAWED to PAUSING
 * to FREEZING, with preemption disabled. A nested freeze that finds PAUSING returns. A
 * freeze that finds THAWING sets REFREEZE and returns: the thawing task freezes the session
 * again after it has resumed the buffers and before it notifies of the thaw. Only tasks that
 * hold perf_persistent_mutex make the other changes of the state.
 *
 * The reason of a freeze is in the upper bits of the state, so that both change at once.
 *
 * FREEZING ends after an RCU grace period, because writers are in a read-side critical
 * section from before they check rb->paused until their record is complete. The ioctl waits
 * for it. Any other freeze leaves that to a work item, queued by an irq_work. The work item
 * does not find a session that has ended. Therefore readers of the state check the grace
 * period as well.
 *
 * Objects
 * -------
 *
 * The session is found on the list of sessions, and its buffers by session->events, both
 * under RCU. A member leaves session->events before it drops its reference on the buffer,
 * and a buffer is freed after a grace period.
 *
 *  - CLAIM and END do not resume a buffer. A frozen buffer stays unchanged for those that
 *    have it open. A claimed event that was frozen records nothing any more, unless its buffer
 *    has another member: a thaw of the session resumes that buffer.
 *  - UNCLAIM refuses to join a frozen session (EBUSY). If a freeze comes while an event
 *    joins, one of them sees the other, and the buffer is paused:
 *
 *	freeze				UNCLAIM, perf_persistent_freeze_joined()
 *
 *	STORE state = PAUSING		STORE session->events[key]
 *	(A) full barrier of cmpxchg	(B) smp_mb()
 *	LOAD session->events		LOAD state
 *
 *  - Offline CPUs: their events return with the buffer as it is, frozen or not.
 *
 * The context that has set PAUSING writes the times and freeze_gp, and publishes them with
 * FREEZING. They do not change in FREEZING and FROZEN, except by an UNCLAIM that raced with
 * the freeze. That UNCLAIM, THAW and the readers of the times hold perf_persistent_lock.
 */
#include <linux/cleanup.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/rculist.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "internal.h"

static int perf_persistent_with_reason(int state, unsigned int reason)
{
	return state | reason << PERF_PERSISTENT_REASON_SHIFT;
}

static void perf_persistent_set_freeze_state(struct perf_persistent_session *s, int state)
{
	unsigned int reason = perf_persistent_freeze_reason(s);

	atomic_set_release(&s->freeze.state, perf_persistent_with_reason(state, reason));
}

/* After the death of the kernel it stays paused, see blackbox_death.c. */
static void perf_persistent_resume_buffer(struct perf_buffer *rb)
{
	unsigned long flags;

	if (perf_blackbox_has_died())
		return;

	/* The dying CPU stops this one by an interrupt: not in between. */
	local_irq_save(flags);
	rb_toggle_paused(rb, false);
	/* B, matches A in perf_blackbox_die() */
	smp_mb();
	if (perf_blackbox_has_died())
		rb_toggle_paused(rb, true);
	local_irq_restore(flags);
}

static void perf_persistent_pause_buffers(struct perf_persistent_session *s, bool pause)
{
	XA_STATE(xas, &s->events, 0);
	struct perf_persistent_event *pe;

	guard(rcu)();
	xas_for_each(&xas, pe, ULONG_MAX) {
		/* A place that is reserved, or a node that has just been replaced. */
		if (xas_retry(&xas, pe))
			continue;
		if (pause)
			rb_toggle_paused(pe->rb, true);
		else
			perf_persistent_resume_buffer(pe->rb);
	}
}

/* All buffers are paused: store the time. */
static void perf_persistent_stamp(struct perf_persistent_freeze *freeze)
{
	/* The stores to rb->paused are visible before the clocks are read. */
	smp_mb();
	freeze->time = local_clock();
	freeze->mono = ktime_get_mono_fast_ns();
	freeze->raw = ktime_get_raw_fast_ns();
	freeze->boot = ktime_get_boot_fast_ns();
	freeze->real = ktime_get_real_fast_ns();
	freeze->tai = ktime_get_tai_fast_ns();
	freeze->gp = get_state_synchronize_rcu();
}

static void perf_persistent_do_freeze(struct perf_persistent_session *s)
{
	s->freeze.begin = local_clock();
	perf_persistent_pause_buffers(s, true);
	perf_persistent_stamp(&s->freeze);
	perf_persistent_set_freeze_state(s, PERF_PERSISTENT_FREEZING);
}

static void perf_persistent_queue_settle(struct irq_work *work);
static DEFINE_IRQ_WORK(perf_persistent_settle_irq_work, perf_persistent_queue_settle);

/**
 * perf_persistent_freeze_now - pause all buffers of a session
 * @s: the session, found under RCU or with a reference
 * @reason: PERF_PERSISTENT_FREEZE_*
 *
 * Context: any, NMI included.
 *
 * Return: 0; -EALREADY if it is frozen; -ENOENT if it does not run
 */
int perf_persistent_freeze_now(struct perf_persistent_session *s, unsigned int reason)
{
	int state = atomic_read(&s->freeze.state), next;

	if (READ_ONCE(s->state) != PERF_PERSISTENT_RUNNING)
		return -ENOENT;

	guard(preempt_notrace)();
	do {
		switch (state & PERF_PERSISTENT_FREEZE_MASK) {
		case PERF_PERSISTENT_THAWED:
			next = PERF_PERSISTENT_PAUSING;
			break;
		case PERF_PERSISTENT_THAWING:
			next = PERF_PERSISTENT_REFREEZE;
			break;
		default:
			return -EALREADY;
		}
		/* A, matches B in perf_persistent_freeze_joined() */
	} while (!atomic_try_cmpxchg(&s->freeze.state, &state,
				     perf_persistent_with_reason(next, reason)));

	if (next == PERF_PERSISTENT_PAUSING) {
		perf_persistent_do_freeze(s);
		irq_work_queue(&perf_persistent_settle_irq_work);
	}
	return 0;
}

/**
 * perf_persistent_freeze_all - pause all buffers of all sessions
 * @reason: PERF_PERSISTENT_FREEZE_*
 *
 * Context: any, NMI included.
 */
void perf_persistent_freeze_all(unsigned int reason)
{
	struct perf_persistent_session *s;

	guard(rcu)();
	list_for_each_entry_rcu(s, &perf_persistent_sessions, entry)
		perf_persistent_freeze_now(s, reason);
}

/* Another CPU is about to leave PAUSING, with preemption off. */
static int perf_persistent_paused_state(struct perf_persistent_session *s)
{
	int state;

	while ((state = perf_persistent_freeze_state(s)) == PERF_PERSISTENT_PAUSING)
		cpu_relax();
	return state;
}

static bool perf_persistent_is_settling(struct perf_persistent_session *s)
{
	int state = perf_persistent_paused_state(s);

	return state == PERF_PERSISTENT_FREEZING || state == PERF_PERSISTENT_REFREEZE;
}

/* Wait until no writer is in a buffer of the session that was frozen. */
static void perf_persistent_settle(struct perf_persistent_session *s)
{
	while (perf_persistent_is_settling(s)) {
		cond_synchronize_rcu(READ_ONCE(s->freeze.gp));

		/* REFREEZE ends before the thawing task drops it. */
		guard(mutex)(&perf_persistent_mutex);
		/* It was thawed and frozen again, or an event has joined. */
		if (perf_persistent_paused_state(s) != PERF_PERSISTENT_FREEZING ||
		    !poll_state_synchronize_rcu(READ_ONCE(s->freeze.gp)))
			continue;

		perf_persistent_set_freeze_state(s, PERF_PERSISTENT_FROZEN);
		/* A session that has ended gets no more notifications. */
		if (s->state == PERF_PERSISTENT_RUNNING)
			perf_persistent_tell_all(s, PERF_PERSISTENT_NOTE_FREEZE);
	}
}

static struct perf_persistent_session *perf_persistent_get_freezing(void)
{
	struct perf_persistent_session *s;

	guard(mutex)(&perf_persistent_lock);
	list_for_each_entry(s, &perf_persistent_sessions, entry) {
		if (perf_persistent_paused_state(s) == PERF_PERSISTENT_FREEZING) {
			kobject_get(&s->kobj);
			return s;
		}
	}
	return NULL;
}

static void perf_persistent_settle_all(struct work_struct *work)
{
	struct perf_persistent_session *s;

	while ((s = perf_persistent_get_freezing())) {
		perf_persistent_settle(s);
		kobject_put(&s->kobj);
	}
}

static DECLARE_WORK(perf_persistent_settle_work, perf_persistent_settle_all);

static void perf_persistent_queue_settle(struct irq_work *work)
{
	schedule_work(&perf_persistent_settle_work);
}

/**
 * perf_persistent_freeze - freeze a session, and wait until it is
 * @s: the session, with a reference
 *
 * Return: 0; -EALREADY if it was frozen before; -ENOENT if it has ended
 */
int perf_persistent_freeze(struct perf_persistent_session *s)
{
	int err;

	err = perf_persistent_freeze_now(s, PERF_PERSISTENT_FREEZE_IOCTL);
	if (!err || err == -EALREADY)
		perf_persistent_settle(s);
	return err;
}

/* THAWING to THAWED, or back to FREEZING if a freeze came meanwhile. */
static void perf_persistent_end_thaw(struct perf_persistent_session *s)
{
	int state = atomic_read(&s->freeze.state);
	int reason = state >> PERF_PERSISTENT_REASON_SHIFT;

	lockdep_assert_held(&perf_persistent_mutex);

	if ((state & PERF_PERSISTENT_FREEZE_MASK) == PERF_PERSISTENT_THAWING &&
	    atomic_try_cmpxchg(&s->freeze.state, &state,
			       perf_persistent_with_reason(PERF_PERSISTENT_THAWED, reason)))
		return;

	scoped_guard(preempt_notrace) {
		/* Only this task may change REFREEZE. */
		perf_persistent_set_freeze_state(s, PERF_PERSISTENT_PAUSING);
		perf_persistent_do_freeze(s);
	}
	irq_work_queue(&perf_persistent_settle_irq_work);
}

static int perf_persistent_try_thaw(struct perf_persistent_session *s)
{
	guard(mutex)(&perf_persistent_mutex);

	if (s->state != PERF_PERSISTENT_RUNNING)
		return -ENOENT;

	switch (perf_persistent_paused_state(s)) {
	case PERF_PERSISTENT_THAWED:
		return -EALREADY;
	case PERF_PERSISTENT_FROZEN:
		break;
	default:
		return -EAGAIN;
	}

	/* The times must not change while a reader holds the lock and has seen FROZEN. */
	scoped_guard(mutex, &perf_persistent_lock)
		perf_persistent_set_freeze_state(s, PERF_PERSISTENT_THAWING);
	perf_persistent_pause_buffers(s, false);
	perf_persistent_end_thaw(s);

	/* This may sleep, and a freeze must not wait for it. The freeze is reported afterwards. */
	perf_persistent_tell_all(s, PERF_PERSISTENT_NOTE_THAW);
	return 0;
}

/**
 * perf_persistent_thaw - let a frozen session go on
 * @s: the session, with a reference
 *
 * Return: 0; -EALREADY if it is not frozen; -ENOENT if it has ended
 */
int perf_persistent_thaw(struct perf_persistent_session *s)
{
	int err;

	do {
		perf_persistent_settle(s);
		err = perf_persistent_try_thaw(s);
	} while (err == -EAGAIN);

	return err;
}

/**
 * perf_persistent_is_frozen - is the session frozen, or being frozen or thawed?
 * @s: the session
 *
 * Context: any.
 * Return: true if it is.
 */
bool perf_persistent_is_frozen(struct perf_persistent_session *s)
{
	return perf_persistent_freeze_state(s) != PERF_PERSISTENT_THAWED;
}

/**
 * perf_persistent_freeze_joined - has a freeze missed an event that was just joining?
 * @pe: the member, on session->events
 */
void perf_persistent_freeze_joined(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;

	lockdep_assert_held(&perf_persistent_mutex);

	/* B, matches A in perf_persistent_freeze_now() */
	smp_mb();
	if (perf_persistent_paused_state(s) == PERF_PERSISTENT_THAWED)
		return;

	guard(mutex)(&perf_persistent_lock);
	rb_toggle_paused(pe->rb, true);
	perf_persistent_stamp(&s->freeze);
}

/**
 * perf_persistent_freeze_time - the time of the freeze by the clock of an event
 * @pe: the member
 *
 * Return: the time, or 0 if it is not frozen
 */
u64 perf_persistent_freeze_time(struct perf_persistent_event *pe)
{
	const struct perf_persistent_freeze *freeze = &pe->session->freeze;
	const struct perf_event_attr *attr = &pe->event->attr;

	lockdep_assert_held(&perf_persistent_lock);

	/* It was claimed before the freeze. */
	if (!READ_ONCE(pe->rb->paused))
		return 0;

	switch (perf_persistent_freeze_state(pe->session)) {
	case PERF_PERSISTENT_FREEZING:
	case PERF_PERSISTENT_FROZEN:
		break;
	default:
		return 0;
	}

	if (!attr->use_clockid)
		return freeze->time;

	switch (attr->clockid) {
	case CLOCK_MONOTONIC:
		return freeze->mono;
	case CLOCK_MONOTONIC_RAW:
		return freeze->raw;
	case CLOCK_BOOTTIME:
		return freeze->boot;
	case CLOCK_REALTIME:
		return freeze->real;
	case CLOCK_TAI:
		return freeze->tai;
	default:
		return 0;
	}
}

/**
 * perf_persistent_fill_freeze - tell when a session was frozen
 * @s: the session
 * @info: what is filled in
 */
void perf_persistent_fill_freeze(struct perf_persistent_session *s,
				 struct perf_persistent_session_info *info)
{
	const struct perf_persistent_freeze *freeze = &s->freeze;

	lockdep_assert_held(&perf_persistent_lock);

	switch (perf_persistent_freeze_state(s)) {
	case PERF_PERSISTENT_FREEZING:
		if (!perf_persistent_is_settled(s))
			info->state |= PERF_PERSISTENT_STATE_FREEZING;
		fallthrough;
	case PERF_PERSISTENT_FROZEN:
		info->state |= PERF_PERSISTENT_STATE_FROZEN;
		info->freeze_begin = freeze->begin;
		info->freeze_time = freeze->time;
		info->freeze_mono = freeze->mono;
		info->freeze_real = freeze->real;
		break;
	default:
		break;
	}
}
