// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: an event as a member of its session
 *
 * Objects and references are those of session.c. This file has what a member is made
 * of: its ring buffer, what the buffer is charged to, its state and its last reference.
 *
 * Buffer
 * ------
 *
 * A member holds what a mapping holds: one count in event->mmap_count and one in
 * rb->mmap_count, and drops them the way a mapping does, by perf_mmap_put(). So the
 * mapping of its creator may go before or after.
 *
 * Each member seals its buffer, see rb_seal.c: readers see only what the kernel wrote.
 * Since nobody can resume a sealed buffer, an UNCLAIM that succeeds resumes a paused one;
 * an UNCLAIM that fails leaves it as it was.
 *
 * Only members of the session may write to a buffer that readers get. An event that was
 * redirected into the buffer before it was sealed must become a member or be closed:
 * before the session is completed (EINVAL); or, in a RUNNING session, which is joined
 * event by event, before the first reader is let in (EBUSY). What it wrote until it was
 * closed stays in the buffer; its creator alone knows which records these are.
 *
 * Charge
 * ------
 *
 * perf_mmap() charges a buffer to the user up to kernel.perf_event_mlock_kb, and the rest
 * to the mm that mapped it. The buffer of a session outlives that mm: UNCLAIM moves the
 * second part to the user as well, which takes CAP_IPC_LOCK beyond the limit. Thus the
 * whole is returned to the user, whoever drops the buffer last. A member that shares
 * the buffer of another is charged one page, so that their number is limited.
 *
 * Ordering
 * --------
 *
 *	perf_persistent_attach()		with a file of the event, or from rb->event_list
 *
 *	STORE pe->rb and the rest of *pe	(B) LOAD event->persistent, acquire
 *	(A) STORE event->persistent, release	LOAD pe->rb and the rest of *pe
 *
 * A pairs with B. event->persistent is never cleared.
 */
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "internal.h"

/* Serialises changes of sessions. See "Locking" in session.c. */
DEFINE_MUTEX(perf_persistent_mutex);

/* Protects the list of sessions, their events and states. See there. */
DEFINE_MUTEX(perf_persistent_lock);

/* State */

/**
 * perf_persistent_gone - is the event at an end because its target task is?
 * @pe: the member
 */
bool perf_persistent_gone(struct perf_persistent_event *pe)
{
	/* An event that follows a task never returns to its context. */
	return pe->cpu == -1 && !(READ_ONCE(pe->event->attach_state) & PERF_ATTACH_CONTEXT);
}

/* False if the event has another context by now. */
static bool perf_persistent_try_state(struct perf_persistent_event *pe,
				      struct perf_event_context *ctx, u32 *state)
{
	struct perf_event *event = pe->event;
	bool same, runs, online = false;
	unsigned long flags;

	/* The event is put on its context, and taken off, under this lock. */
	raw_spin_lock_irqsave(&ctx->lock, flags);
	same = event->ctx == ctx;
	if (event->attach_state & PERF_ATTACH_CONTEXT) {
		online = event->cpu == -1 || cpu_online(event->cpu);
		runs = event->state > PERF_EVENT_STATE_OFF;
	} else {
		runs = READ_ONCE(event->resume);
	}
	raw_spin_unlock_irqrestore(&ctx->lock, flags);

	*state = (online ? 0 : PERF_PERSISTENT_STATE_OFFLINE) |
		 (runs ? 0 : PERF_PERSISTENT_STATE_DISABLED);
	return same;
}

/**
 * perf_persistent_event_state - does the event record?
 * @pe: the member
 *
 * Return: PERF_PERSISTENT_STATE_* bits
 */
u32 perf_persistent_event_state(struct perf_persistent_event *pe)
{
	u32 state;

	if (perf_persistent_gone(pe))
		return PERF_PERSISTENT_STATE_GONE;

	/* The context changes if a PMU moves the event to another CPU. */
	guard(rcu)();
	while (!perf_persistent_try_state(pe, READ_ONCE(pe->event->ctx), &state))
		cpu_relax();

	/* Its task has exited in the meantime. */
	return pe->cpu == -1 && (state & PERF_PERSISTENT_STATE_OFFLINE) ?
	       PERF_PERSISTENT_STATE_GONE : state;
}

/* Buffer */

/* The first member on the CPU that writes to the buffer, or NULL */
static struct perf_persistent_event *
perf_persistent_first_writer(struct perf_persistent_session *s, int cpu, struct perf_buffer *rb)
{
	struct perf_persistent_event *pe;
	unsigned long key;

	perf_persistent_assert_readable();

	xa_for_each_range(&s->events, key, pe, perf_persistent_key(cpu, 0),
			  perf_persistent_key(cpu, PERF_PERSISTENT_INDEX_MAX)) {
		if (pe->rb == rb)
			return pe;
	}
	return NULL;
}

/**
 * perf_persistent_buffer_index - which number does the event's buffer have?
 * @pe: the member
 *
 * Return: lowest index on its CPU with the same buffer
 */
u32 perf_persistent_buffer_index(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *first;

	first = perf_persistent_first_writer(pe->session, pe->cpu, pe->rb);
	return first ? first->index : pe->index;
}

/**
 * perf_persistent_all_members - are all events that write to a buffer members of the session?
 * @s: the session
 * @rb: the buffer, sealed
 * @joining: an event that is about to become a member
 */
bool perf_persistent_all_members(struct perf_persistent_session *s, struct perf_buffer *rb,
				 struct perf_event *joining)
{
	struct perf_persistent_event *pe;
	struct perf_event *event;

	guard(rcu)();
	list_for_each_entry_rcu(event, &rb->event_list, rb_entry) {
		/* B, matches A: see Ordering */
		pe = smp_load_acquire(&event->persistent);
		if (event != joining && (!pe || pe->session != s))
			return false;
	}
	return true;
}

/* Allocate a buffer for an event that comes without one, charged to the current user. */
static struct perf_buffer *perf_persistent_alloc_buffer(struct perf_event *event,
							unsigned long nr_pages)
{
	const struct perf_rb_memory *memory = &perf_rb_kernel_memory;
	struct perf_rb_charge charge = { };
	struct perf_buffer *rb;
	int err;

	/* The header page comes on top. */
	err = memory->charge(&charge, nr_pages + 1, NULL);
	if (err)
		return ERR_PTR(err);

	rb = rb_alloc(memory, nr_pages, event->attr.watermark ? event->attr.wakeup_watermark : 0,
		      event->cpu, 0);
	if (!rb) {
		memory->uncharge(&charge);
		return ERR_PTR(-ENOMEM);
	}

	rb->charge = charge;
	return rb;
}

/* Undo perf_persistent_alloc_buffer(); the buffer was never attached. */
static void perf_persistent_free_buffer(struct perf_buffer *rb)
{
	rb->memory->uncharge(&rb->charge);
	rb->memory->free(rb);
}

/* Can the buffer that the event brings along become a buffer of the session? */
static int perf_persistent_check_buffer(struct perf_event *event, struct perf_buffer *rb)
{
	/* It belongs to another session, or to an event that was claimed. */
	if (perf_rb_sealed(rb))
		return -EBUSY;

	/* Redirected into the buffer of an event that is not a member. */
	if (!atomic_read(&event->mmap_count))
		return -EINVAL;

	if (!rb->nr_pages || !rb->overwrite || rb_has_aux(rb))
		return -EINVAL;

	/* Its memory stays charged, and only to the user that asks for it. */
	if (rb->charge.user != current_user())
		return -EPERM;

	return 0;
}

static int perf_persistent_keep_buffer(struct perf_persistent_event *pe, struct perf_buffer *rb,
				       bool complete)
{
	bool shared = perf_persistent_first_writer(pe->session, pe->cpu, rb);
	struct perf_rb_charge charge = { };
	int err;

	if (!shared) {
		/* The last mapping is gone: perf_mmap_put() is about to detach the buffer. */
		if (!atomic_read(&rb->mmap_count))
			return -EAGAIN;

		err = perf_persistent_check_buffer(pe->event, rb);
		if (err)
			return err;
	}

	err = perf_rb_charge(&charge, shared ? 1 : rb->charge.pinned, NULL);
	if (err)
		return err;

	err = perf_rb_seal(rb);
	if (err)
		goto err_uncharge;

	err = -EINVAL;
	if (complete && !perf_persistent_all_members(pe->session, rb, pe->event))
		goto err_unseal;

	err = -EAGAIN;
	if (!atomic_inc_not_zero(&rb->mmap_count))
		goto err_unseal;

	/* Sealed: it cannot be paused again. */
	rb_toggle_paused(rb, false);
	if (shared)
		pe->charge = charge;
	else
		perf_rb_charge_user(&rb->charge, &charge);
	return 0;

err_unseal:
	perf_rb_unseal(rb);
err_uncharge:
	perf_rb_uncharge(&charge);
	return err;
}

/*
 * Make the event's buffer the session's: the one it has, or @spare, which is NULL
 * afterwards. -EAGAIN if a spare is wanted, or the last mapping is just going away.
 */
static int perf_persistent_adopt_buffer(struct perf_persistent_event *pe,
					struct perf_buffer **spare, bool complete)
{
	struct perf_event *event = pe->event;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);
	lockdep_assert_held(&event->mmap_mutex);

	if (event->rb) {
		err = perf_persistent_keep_buffer(pe, event->rb, complete);
		if (err)
			return err;
	} else {
		struct perf_buffer *rb = *spare;

		if (!rb)
			return -EAGAIN;

		*spare = NULL;
		perf_mmap_attach(event, rb);
		/* Nobody has mapped it: this does not fail. */
		perf_rb_seal(rb);
	}

	atomic_inc(&event->mmap_count);
	/* For perf_persistent_may_read(), which looks for other members of a buffer */
	WRITE_ONCE(pe->rb, ring_buffer_get(event));
	return 0;
}

/* Undo perf_persistent_adopt_buffer(), for the last user of the member. */
static void perf_persistent_drop_buffer(struct perf_persistent_event *pe)
{
	perf_rb_unseal(pe->rb);
	perf_mmap_put(pe->event, pe->rb);
	perf_rb_uncharge(&pe->charge);
}

/* Beginning and end */

/* Make the event a member, with its context and its buffer locked. */
static int perf_persistent_try_attach(struct perf_persistent_event *pe, struct perf_buffer **spare,
				      bool complete)
{
	struct perf_event *event = pe->event;
	int err;

	guard(mutex)(&event->mmap_mutex);

	if (event->group_leader != event || event->nr_siblings)
		return -EINVAL;

	/* Its CPU went offline; ENABLE and DISABLE since were not noted. */
	if (perf_event_is_away(event))
		return -ENODEV;

	err = perf_persistent_adopt_buffer(pe, spare, complete);
	if (err)
		return err;

	perf_event_set_returns(event);
	/* A, matches B: see Ordering */
	smp_store_release(&event->persistent, pe);
	return 0;
}

/* Jiffies to wait until the last mapping of a buffer has gone. */
#define PERF_PERSISTENT_ATTACH_TRIES	100

/**
 * perf_persistent_attach - give an event its buffer, and make it a member
 * @pe: the member to be
 * @nr_pages: size of the buffer if the event has none, a power of two
 * @complete: this completes the session: only members may write to the buffer
 */
int perf_persistent_attach(struct perf_persistent_event *pe, unsigned long nr_pages,
			   bool complete)
{
	struct perf_event *event = pe->event;
	struct perf_event_context *ctx;
	struct perf_buffer *spare = NULL;
	int tries, err;

	lockdep_assert_held(&perf_persistent_mutex);

	for (tries = 0; tries < PERF_PERSISTENT_ATTACH_TRIES; tries++) {
		/* A hint: perf_persistent_adopt_buffer() looks again, with the lock. */
		if (!spare && !READ_ONCE(event->rb)) {
			spare = perf_persistent_alloc_buffer(event, nr_pages);
			if (IS_ERR(spare))
				return PTR_ERR(spare);
		}

		ctx = perf_event_ctx_lock(event);
		err = perf_persistent_try_attach(pe, &spare, complete);
		perf_event_ctx_unlock(event, ctx);

		if (err != -EAGAIN)
			break;

		/* Let the task that unmaps the buffer finish. */
		schedule_timeout_uninterruptible(1);
	}

	if (spare)
		perf_persistent_free_buffer(spare);
	return err == -EAGAIN ? -EBUSY : err;
}

/**
 * perf_persistent_put - drop a reference on a member
 * @pe: the member; the last reference ends the event
 */
void perf_persistent_put(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;

	if (!refcount_dec_and_test(&pe->users))
		return;

	scoped_guard(mutex, &perf_persistent_lock)
		list_del(&pe->member_entry);

	perf_persistent_drop_buffer(pe);
	perf_event_release_kernel(pe->event);
	kfree_rcu(pe, rcu);
	kobject_put(&s->kobj);
}
