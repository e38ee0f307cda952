// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: notifications of the steps in the life of a session
 *
 *	step		readers  session fd  tracepoint  uevent  audit
 *	----------------------------------------------------------------
 *	make			    x		x	   x	   x
 *	join			    x		x
 *	claim		  x	    x		x		   x
 *	end		  x	    x		x	   x	   x
 *	freeze		  x	    x		x	   x	   x
 *	thaw		  x	    x		x	   x	   x
 *
 * Readers use poll() on an event, see reader.c, or on the session, see session_fd.c. A
 * uevent is KOBJ_CHANGE of the PMU's device, with SESSION, SESSION_ID and SESSION_EVENT.
 *
 * A session that was never completed ends without a uevent and without an "end" record in
 * the audit log. A session that no event has joined ends without any notification. CLAIM
 * writes a "claim" record, and an "end" record as well if it was the last event.
 * SESSION_END writes one "end" record, however many events it claims. Nothing follows
 * "end". Records have the type AUDIT_PERF_PERSISTENT and belong to the system call of the
 * task that caused them. The record of a freeze by the kernel belongs to no system call.
 *
 * All functions here except perf_persistent_woken() are called with perf_persistent_mutex
 * held.
 */
#include <linux/audit.h>
#include <linux/cred.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>

#include "internal.h"

#include <trace/events/perf_persistent.h>

static const char * const perf_persistent_note_names[] = {
	[PERF_PERSISTENT_NOTE_MAKE]	= "make",
	[PERF_PERSISTENT_NOTE_END]	= "end",
	[PERF_PERSISTENT_NOTE_FREEZE]	= "freeze",
	[PERF_PERSISTENT_NOTE_THAW]	= "thaw",
};

/**
 * perf_persistent_woken - is there something new to report to a file's poll()?
 * @told: the count that was last reported to the file
 * @again: set if that count is to be reported once more
 * @count: the current count of changes
 * @wait: of poll()
 *
 * epoll calls ->poll() in epoll_ctl(), and again in epoll_wait(). Only the second result is
 * returned to the program. So a change that the first call reported must be reported once
 * more. epoll_ctl(EPOLL_CTL_ADD) registers on the waitq, as poll() does; later calls do not.
 * Therefore a call that does not register gets the report of the call before it again.
 * Calls with EPOLLONESHOT or EPOLLET, which only epoll uses, set @again as well. As a
 * result, a poll() that does not sleep may report a change twice.
 *
 * Context: ->poll(); takes no lock.
 * Return: true if there is a change to report.
 */
bool perf_persistent_woken(atomic_t *told, atomic_t *again, int count, poll_table *wait)
{
	bool waits = wait && wait->_qproc, epoll, repeat;

	epoll = poll_requested_events(wait) & (EPOLLONESHOT | EPOLLET);
	/* At most twice. */
	repeat = atomic_xchg(again, 0) && !waits;
	if (atomic_xchg(told, count) == count)
		return repeat;

	atomic_set(again, waits || epoll);
	return true;
}

/* Wake those that poll the session. */
static void perf_persistent_session_changed(struct perf_persistent_session *s)
{
	/* The change itself is stored before, pairs with perf_persistent_session_poll() */
	atomic_inc_return_release(&s->changes);
	wake_up_all(&s->waitq);
}

/**
 * perf_persistent_audit - write a record to the audit log
 * @s: the session
 * @op: the step
 */
void perf_persistent_audit(struct perf_persistent_session *s, const char *op)
{
	struct audit_buffer *ab;

	if (audit_enabled == AUDIT_OFF)
		return;

	/* Not GFP_KERNEL: it would wait for the daemon, with perf_persistent_mutex held. */
	ab = audit_log_start(audit_context(), GFP_ATOMIC, AUDIT_PERF_PERSISTENT);
	if (!ab)
		return;

	/* The characters of a name need no quotes. */
	audit_log_format(ab, "op=%s session=%s id=%u owner=%u pid=%d uid=%u auid=%u ses=%u", op,
			 s->name, s->id, from_kuid(&init_user_ns, s->owner),
			 task_tgid_nr(current), from_kuid(&init_user_ns, current_uid()),
			 from_kuid(&init_user_ns, audit_get_loginuid(current)),
			 audit_get_sessionid(current));
	audit_log_end(ab);
}

static void perf_persistent_trace(struct perf_persistent_session *s,
				  enum perf_persistent_note note)
{
	unsigned int uid = from_kuid(&init_user_ns, s->owner);

	switch (note) {
	case PERF_PERSISTENT_NOTE_MAKE:
		trace_perf_persistent_make(s->id, s->name, uid);
		break;
	case PERF_PERSISTENT_NOTE_END:
		trace_perf_persistent_end(s->id, s->name, uid);
		break;
	case PERF_PERSISTENT_NOTE_FREEZE:
		trace_perf_persistent_freeze(s->id, s->name, perf_persistent_freeze_reason(s),
					     s->freeze.begin, s->freeze.time);
		break;
	case PERF_PERSISTENT_NOTE_THAW:
		trace_perf_persistent_thaw(s->id, s->name, uid);
		break;
	}
}

/**
 * perf_persistent_tell - make the readers of an event look at its state
 * @pe: the member
 */
void perf_persistent_tell(struct perf_persistent_event *pe)
{
	perf_persistent_wakeup(pe->rb);
	wake_up_all(&pe->event->waitq);
}

/**
 * perf_persistent_note - tell of a step in the life of a session
 * @s: the session
 * @note: the step
 * @listed: it is, or was, complete
 */
void perf_persistent_note(struct perf_persistent_session *s, enum perf_persistent_note note,
			  bool listed)
{
	const char *op = perf_persistent_note_names[note];

	lockdep_assert_held(&perf_persistent_mutex);

	perf_persistent_session_changed(s);
	perf_persistent_trace(s, note);
	if (!listed)
		return;

	perf_persistent_uevent(s, op);
	perf_persistent_audit(s, op);
}

/**
 * perf_persistent_tell_all - tell of a step, and make all readers look
 * @s: the session
 * @note: the step
 */
void perf_persistent_tell_all(struct perf_persistent_session *s, enum perf_persistent_note note)
{
	struct perf_persistent_event *pe;
	unsigned long key;

	lockdep_assert_held(&perf_persistent_mutex);

	xa_for_each(&s->events, key, pe)
		perf_persistent_tell(pe);
	perf_persistent_note(s, note, true);
}

/**
 * perf_persistent_note_join - an event became a member
 * @pe: the member
 */
void perf_persistent_note_join(struct perf_persistent_event *pe)
{
	lockdep_assert_held(&perf_persistent_mutex);

	perf_persistent_session_changed(pe->session);
	trace_perf_persistent_join(pe->session->id, pe->cpu, pe->index, pe->event->id);
}

/**
 * perf_persistent_note_claim - an event was taken back
 * @pe: the member
 */
void perf_persistent_note_claim(struct perf_persistent_event *pe)
{
	lockdep_assert_held(&perf_persistent_mutex);

	perf_persistent_session_changed(pe->session);
	trace_perf_persistent_claim(pe->session->id, pe->cpu, pe->index, pe->event->id);
}
