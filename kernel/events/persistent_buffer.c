// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: ring buffers, and whom they are charged to.
 *
 * perf_mmap() charges a buffer to the user up to kernel.perf_event_mlock_kb, and
 * what is beyond to the pinned_vm of the mm that mapped it. The buffer of a
 * session outlives that mm: UNCLAIM moves the second part to the user as well.
 * Beyond the limit that takes CAP_IPC_LOCK. From then on rb->mmap_locked is 0
 * and rb->mmap_mm NULL, so that perf_mmap_put() returns the whole to the user,
 * whoever is the last to let go of the buffer.
 *
 * A member holds what a mapping holds, one count in event->mmap_count and one in
 * rb->mmap_count, and gives them back the way a mapping does. So it makes no
 * difference whether its creator's mapping goes before or after.
 *
 * rb->persistent counts the members which write to the buffer, rb->user_writable
 * says that user space was given the means to write to the header page. Both are
 * protected by rb->event_lock, and each forbids the other: what readers of a
 * session see there, the kernel wrote. An UNCLAIM that succeeds resumes a paused
 * buffer, as nobody may do it later; one that is refused leaves it as it was.
 *
 * Who writes to a buffer that readers get is a member of its session. Once a buffer is
 * sealed, no event is redirected into it. One that was before has to become a member,
 * or to be closed: before the session is completed (EINVAL); in a RUNNING one, which
 * is joined event by event, before the first reader is let in (EBUSY). What it wrote
 * until it was closed stays in the buffer: the creator alone knows what it was.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched/mm.h>
#include <linux/sched/user.h>
#include <linux/spinlock.h>

#include "persistent_types.h"

static int perf_persistent_charge(struct user_struct *user, unsigned long pages)
{
	unsigned long limit = sysctl_perf_event_mlock >> (PAGE_SHIFT - 10);

	if (!pages)
		return 0;

	/* As perf_mmap() has it. */
	limit *= num_online_cpus();

	if (atomic_long_add_return(pages, &user->perf_mlock) > limit && !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(pages, &user->perf_mlock);
		return -EPERM;
	}
	return 0;
}

static void perf_persistent_uncharge(struct user_struct *user, unsigned long pages)
{
	atomic_long_sub(pages, &user->perf_mlock);
}

static unsigned long perf_persistent_buffer_pages(struct perf_buffer *rb)
{
	/* The header page comes on top. */
	return data_page_nr(rb) + 1;
}

/**
 * perf_persistent_alloc_buffer - make a buffer for an event that comes without one
 * @event: the event
 * @nr_pages: of its data area, a power of two
 *
 * The buffer is charged to the current user.
 *
 * Return: the buffer, not attached to the event yet, or an error pointer
 */
struct perf_buffer *perf_persistent_alloc_buffer(struct perf_event *event,
						 unsigned long nr_pages)
{
	struct perf_buffer *rb;
	int err;

	err = perf_persistent_charge(current_user(), nr_pages + 1);
	if (err)
		return ERR_PTR(err);

	rb = rb_alloc(nr_pages, event->attr.watermark ? event->attr.wakeup_watermark : 0,
		      event->cpu, 0);
	if (!rb) {
		perf_persistent_uncharge(current_user(), nr_pages + 1);
		return ERR_PTR(-ENOMEM);
	}

	rb->mmap_user = get_current_user();
	return rb;
}

/**
 * perf_persistent_free_buffer - undo perf_persistent_alloc_buffer()
 * @rb: the buffer, not attached to any event
 */
void perf_persistent_free_buffer(struct perf_buffer *rb)
{
	perf_persistent_uncharge(rb->mmap_user, perf_persistent_buffer_pages(rb));
	free_uid(rb->mmap_user);
	rb_free(rb);
}

/**
 * perf_persistent_wants_buffer - is the event without a buffer?
 * @event: the event
 *
 * A hint: perf_persistent_adopt_buffer() knows, for it holds the lock.
 */
bool perf_persistent_wants_buffer(struct perf_event *event)
{
	return !READ_ONCE(event->rb);
}

/* Allow no writer but the kernel, nor anybody to pause it. */
static int perf_persistent_seal(struct perf_buffer *rb)
{
	unsigned long flags;
	int err = -EINVAL;

	spin_lock_irqsave(&rb->event_lock, flags);
	if (!rb->user_writable) {
		rb->persistent++;
		err = 0;
	}
	spin_unlock_irqrestore(&rb->event_lock, flags);

	return err;
}

static void perf_persistent_unseal(struct perf_buffer *rb)
{
	unsigned long flags;

	spin_lock_irqsave(&rb->event_lock, flags);
	rb->persistent--;
	spin_unlock_irqrestore(&rb->event_lock, flags);
}

/* Does another member on this CPU write to the buffer? */
static bool perf_persistent_shares(struct perf_persistent_event *pe, struct perf_buffer *rb)
{
	struct perf_persistent_event *other;
	unsigned long key;

	xa_for_each_range(&pe->session->events, key, other, perf_persistent_key(pe->cpu, 0),
			  perf_persistent_key(pe->cpu, PERF_PERSISTENT_INDEX_MAX)) {
		if (other->rb == rb)
			return true;
	}
	return false;
}

/* May the buffer which the event brings along become a buffer of the session? */
static int perf_persistent_check_buffer(struct perf_event *event, struct perf_buffer *rb)
{
	/* Of another session, or of an event that was claimed. */
	if (READ_ONCE(rb->persistent))
		return -EBUSY;

	/* Redirected into the buffer of an event that is not a member. */
	if (!atomic_read(&event->mmap_count))
		return -EINVAL;

	if (!rb->nr_pages || !rb->overwrite || rb_has_aux(rb))
		return -EINVAL;

	/* Its memory stays charged: to nobody but who asks for it. */
	if (rb->mmap_user != current_user())
		return -EPERM;

	return 0;
}

/* Take the part of the charge that would die with the mm, the user has it now. */
static void perf_persistent_take_from_mm(struct perf_buffer *rb)
{
	if (!rb->mmap_mm)
		return;

	atomic64_sub(rb->mmap_locked, &rb->mmap_mm->pinned_vm);
	rb->mmap_locked = 0;
	mmdrop(rb->mmap_mm);
	rb->mmap_mm = NULL;
}

/**
 * perf_persistent_all_members - are all who write to a buffer members of the session?
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
		/* Pairs with smp_store_release() in perf_persistent_attach(): pe->rb */
		pe = smp_load_acquire(&event->persistent);
		if (event != joining && (!pe || pe->session != s))
			return false;
	}
	return true;
}

static int perf_persistent_keep_buffer(struct perf_persistent_event *pe, struct perf_buffer *rb,
				       bool complete)
{
	bool shared = perf_persistent_shares(pe, rb);
	/* Events that share a buffer must not be for nothing. */
	unsigned long extra = 1;
	int err;

	if (!shared) {
		/* On its way out: perf_mmap_put() waits for event->mmap_mutex. */
		if (!atomic_read(&rb->mmap_count))
			return -EAGAIN;

		err = perf_persistent_check_buffer(pe->event, rb);
		if (err)
			return err;

		extra = rb->mmap_locked;
	}

	err = perf_persistent_charge(current_user(), extra);
	if (err)
		return err;

	err = perf_persistent_seal(rb);
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
		pe->user = get_current_user();
	else
		perf_persistent_take_from_mm(rb);
	return 0;

err_unseal:
	perf_persistent_unseal(rb);
err_uncharge:
	perf_persistent_uncharge(current_user(), extra);
	return err;
}

/**
 * perf_persistent_adopt_buffer - make the event's buffer the session's
 * @pe: the member to be
 * @spare: a buffer for an event that has none; NULL afterwards if it was used
 * @complete: it is what completes the session: nobody but members may write there
 *
 * Return: 0; -EAGAIN if a spare is wanted, or a mapping is just going away; other errors
 */
int perf_persistent_adopt_buffer(struct perf_persistent_event *pe, struct perf_buffer **spare,
				 bool complete)
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
		rb->persistent = 1;
		atomic_set(&rb->mmap_count, 1);
		ring_buffer_attach(event, rb);
		perf_event_init_userpage(event);
		perf_event_update_userpage(event);
	}

	atomic_inc(&event->mmap_count);
	/* For who looks for other members of a buffer, see perf_persistent_may_read() */
	WRITE_ONCE(pe->rb, ring_buffer_get(event));
	return 0;
}

/**
 * perf_persistent_drop_buffer - undo perf_persistent_adopt_buffer()
 * @pe: the member, which nobody uses any longer
 */
void perf_persistent_drop_buffer(struct perf_persistent_event *pe)
{
	perf_persistent_unseal(pe->rb);
	perf_mmap_put(pe->event, pe->rb);

	if (pe->user) {
		perf_persistent_uncharge(pe->user, 1);
		free_uid(pe->user);
	}
}

/**
 * perf_persistent_set_output - may the event's output be redirected?
 * @event: the event to be redirected
 * @output_event: the event whose buffer it is to write to, or NULL
 *
 * Neither into nor out of the buffer of a session.
 */
int perf_persistent_set_output(struct perf_event *event, struct perf_event *output_event)
{
	lockdep_assert_held(&event->mmap_mutex);

	if (is_persistent_event(event) || (event->rb && READ_ONCE(event->rb->persistent)))
		return -EBUSY;

	if (output_event && output_event->rb && READ_ONCE(output_event->rb->persistent))
		return -EBUSY;

	return 0;
}

/**
 * perf_persistent_redirected - the event's output was redirected
 * @event: the event
 *
 * UNCLAIM may have taken the buffer since perf_persistent_set_output(), through an event
 * whose mmap_mutex is not held here. Whichever comes second finds the other out, by
 * rb->event_lock: UNCLAIM, that there is somebody on the buffer's list; and this, that
 * the buffer is a session's.
 *
 * Return: -EBUSY if it is; the event has no buffer then
 */
int perf_persistent_redirected(struct perf_event *event)
{
	lockdep_assert_held(&event->mmap_mutex);

	if (!event->rb || !READ_ONCE(event->rb->persistent))
		return 0;

	ring_buffer_attach(event, NULL);
	return -EBUSY;
}

/**
 * perf_persistent_toggle_paused - rb_toggle_paused(), unless it is the buffer of a session
 * @rb: the buffer
 * @pause: whether to pause or to resume
 */
int perf_persistent_toggle_paused(struct perf_buffer *rb, bool pause)
{
	unsigned long flags;
	int err = -EBUSY;

	spin_lock_irqsave(&rb->event_lock, flags);
	if (!rb->persistent) {
		rb_toggle_paused(rb, pause);
		err = 0;
	}
	spin_unlock_irqrestore(&rb->event_lock, flags);

	return err;
}

/**
 * perf_persistent_mkwrite - may user space write to the header page?
 * @event: the event whose buffer is mapped
 */
bool perf_persistent_mkwrite(struct perf_event *event)
{
	struct perf_buffer *rb = ring_buffer_get(event);
	unsigned long flags;
	bool allowed;

	if (!rb)
		return true;

	spin_lock_irqsave(&rb->event_lock, flags);
	allowed = !rb->persistent;
	if (allowed)
		rb->user_writable = true;
	spin_unlock_irqrestore(&rb->event_lock, flags);

	ring_buffer_put(rb);
	return allowed;
}
