// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: an event as a member of its session
 *
 * session.c describes the objects and references. This file has the parts of a member: its
 * ring buffer, the charge of the buffer, its state, tasks that inherit it, and its last
 * reference.
 *
 * Buffer
 * ------
 *
 * A member holds the same counts as a mapping: one in event->mmap_count and one in
 * rb->mmap_count. It drops them in the same way, by perf_mmap_put(). So the mapping of its
 * creator may be removed before or after.
 *
 * Each member seals its buffer, see rb_seal.c: readers see only records of the kernel. A
 * sealed buffer cannot be resumed by user space. Therefore an UNCLAIM that succeeds resumes
 * a paused buffer. An UNCLAIM that fails leaves it as it was.
 *
 * Only members of the session may write to a buffer that readers get. An event that was
 * redirected into the buffer before it was sealed must become a member or be closed:
 * before the session is completed (EINVAL); or, in a RUNNING session, which is joined
 * event by event, before the first reader opens it (EBUSY). Records that it wrote before
 * it was closed stay in the buffer. Only its creator can tell them from others.
 *
 * Charge
 * ------
 *
 * perf_mmap() charges a buffer to the user up to kernel.perf_event_mlock_kb, and the rest
 * to the mm that mapped it. The buffer of a session outlives that mm: UNCLAIM moves the
 * second part to the user as well, which takes CAP_IPC_LOCK beyond the limit. The whole
 * charge is returned to the user, no matter who drops the last reference. A member that
 * shares the buffer of another is charged one page, so that their number is limited.
 *
 * The charge to a memory cgroup, which comes on top, is in memory.c.
 *
 * Inherited events
 * ----------------
 *
 *       perf_persistent_event --> perf_event, the member
 *                                   ^  | child_list
 *                                   |  +--> child (of one task) --> its perf_event_context
 *                         ->parent  |  +--> child (of another task)
 *                                   +-------+
 *
 *  - fork() gives the new task a child of the member, by inherit_event(). Children of
 *    children are on the list of the member as well. Each child has a reference on the
 *    member, on its task's context and on its task. It has no buffer and no file:
 *    perf_output_begin() writes its records to the member's buffer, with the member's id.
 *    On rb->event_list there are only members. What a session holds, and what it is charged,
 *    does not depend on the number of children.
 *  - ENABLE, DISABLE and read() act on the member and all children, with child_mutex held.
 *    A freeze pauses the buffer, and so stops all of them. inherit_event() reads the state of
 *    the event it copies before it takes child_mutex. So what forks during ENABLE or DISABLE
 *    may pass on the state from before, which perf_event_open() without UNCLAIM does as well.
 *  - A context switch between two tasks that have the same events exchanges their contexts,
 *    see perf_event_context_sched_out(). The member then follows another task than
 *    hw.target, and a child follows hw.target. All tasks are recorded as before. hw.target
 *    does not change: it tells whom the event was opened for, that is, who may read it.
 *    event->ctx does not change either; only ctx->task does.
 *  - A task exits: perf_event_exit_event() takes what is on its context off. A child is freed.
 *    The member stays, off its context, as long as it has users, and its children record as
 *    before and may pass it on: is_orphaned_event() is true only for an event that was
 *    released. Because of the exchange this need not be the task it was opened for.
 *  - GONE: the member is off its context, and has no child. See perf_persistent_gone(). Both
 *    causes call perf_event_wakeup() of the member afterwards, which wakes poll().
 *  - A fork() that fails: perf_event_free_task() frees the children of the new task. It may
 *    wait for perf_event_release_kernel(), which holds none of our locks.
 *  - The member is freed: perf_persistent_put() takes the buffer away, under RCU, as munmap()
 *    does; children that still run find no buffer. perf_event_release_kernel() then marks the
 *    member DEAD, so that it is not inherited any more, and frees the children. So neither
 *    close(), CLAIM nor END leaves a child.
 *  - A CPU goes offline: its events stay on the contexts of their tasks, which run elsewhere,
 *    and record again when the CPU has returned and runs one of the tasks.
 *
 * Walks
 * -----
 *
 * Tens of thousands of events may share a buffer. A walk over the events that has to visit
 * each buffer once gets a number, stores it in each buffer, and skips buffers that have it
 * already: perf_persistent_start_walk(), perf_persistent_first_visit(). Both are protected
 * by perf_persistent_lock.
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
 *
 *	a task forks, and exits			perf_persistent_gone()
 *
 *	STORE parent->child_list, by		(D) LOAD event->attach_state, acquire
 *	  inherit_event()			LOAD event->child_list
 *	(C) perf_event_context::lock
 *	STORE event->attach_state, by
 *	  perf_remove_from_context()
 *
 * C pairs with D. A task can fork only while the member or a child of it is on the task's
 * context: fork() holds perf_event_context::mutex, as exit does. So if the member was seen
 * off its context, all that its task passed on is on the list; and the list is not empty,
 * not for a moment, while one of those forks. Once it is seen empty, it stays empty.
 */
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "internal.h"

/* State */

/**
 * perf_persistent_gone - will no task run any more that the event follows?
 * @pe: the member
 *
 * Context: any; the result may change only from false to true.
 * Return: true if the event follows tasks, and all of them have gone, or a cgroup that was
 * removed; or if its PMU has gone, and no child is left.
 */
bool perf_persistent_gone(struct perf_persistent_event *pe)
{
	/* D, matches C: see Ordering */
	unsigned int attached = smp_load_acquire(&pe->event->attach_state);

	if (perf_persistent_cgroup_gone(pe))
		return true;

	/*
	 * An event that follows a task never returns to its context, nor does one whose PMU has
	 * gone. It leaves the context as it is revoked, with the context locked: D is for both.
	 */
	if ((attached & PERF_ATTACH_CONTEXT) ||
	    (!(attached & PERF_ATTACH_TASK) && !perf_event_is_revoked(pe->event)))
		return false;

	/* Each task that inherited the event has one of these. */
	return list_empty(&pe->event->child_list);
}

/* False if the event has another context by now, or its task has exited. */
static bool perf_persistent_try_state(struct perf_event *event, u32 *state)
{
	struct perf_event_context *ctx = READ_ONCE(event->ctx);
	bool same, runs = false, online = false;
	unsigned long flags;

	/* The event is put on its context, and taken off, under this lock. */
	raw_spin_lock_irqsave(&ctx->lock, flags);
	same = event->ctx == ctx;
	if (event->attach_state & PERF_ATTACH_CONTEXT) {
		online = event->cpu == -1 || cpu_online(event->cpu);
		runs = event->state > PERF_EVENT_STATE_OFF;
	} else if (event->attach_state & PERF_ATTACH_TASK) {
		same = false;
	} else {
		runs = READ_ONCE(event->resume);
	}
	raw_spin_unlock_irqrestore(&ctx->lock, flags);

	*state = (online ? 0 : PERF_PERSISTENT_STATE_OFFLINE) |
		 (runs ? 0 : PERF_PERSISTENT_STATE_DISABLED);
	return same;
}

static u32 perf_persistent_run_state(struct perf_persistent_event *pe)
{
	struct perf_event *child;
	u32 state;

	/* Event and context of a child are freed after a grace period. */
	guard(rcu)();
	do {
		if (perf_persistent_gone(pe))
			return PERF_PERSISTENT_STATE_GONE;

		/* The context changes if a PMU moves the event to another CPU. */
		if (perf_persistent_try_state(pe->event, &state))
			break;

		cpu_relax();
		/* ENABLE and DISABLE act on all that inherited the event: ask one. */
		child = list_first_or_null_rcu(&pe->event->child_list, struct perf_event,
					       child_list);
	} while (!child || !perf_persistent_try_state(child, &state));

	return state;
}

/**
 * perf_persistent_event_state - does the event record?
 * @pe: the member
 *
 * Return: PERF_PERSISTENT_STATE_* bits
 */
u32 perf_persistent_event_state(struct perf_persistent_event *pe)
{
	return perf_persistent_run_state(pe) | perf_persistent_frozen_bits(pe);
}

/* Buffer */

static unsigned long perf_persistent_walks;

/**
 * perf_persistent_start_walk - start to visit each buffer once
 *
 * Context: perf_persistent_lock is held.
 * Return: the number of the walk.
 */
unsigned long perf_persistent_start_walk(void)
{
	lockdep_assert_held(&perf_persistent_lock);

	return ++perf_persistent_walks;
}

/**
 * perf_persistent_first_visit - was the buffer not visited before?
 * @rb: the buffer
 * @walk: what perf_persistent_start_walk() returned
 *
 * Context: perf_persistent_lock is held.
 * Return: true if it was not.
 */
bool perf_persistent_first_visit(struct perf_buffer *rb, unsigned long walk)
{
	lockdep_assert_held(&perf_persistent_lock);

	if (rb->walk == walk)
		return false;

	rb->walk = walk;
	return true;
}

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
 *
 * Context: any.
 * Return: true if they are.
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

/* Memory of a buffer: its pages, the header page, and struct perf_buffer with its array. */
static size_t perf_persistent_buffer_bytes(unsigned long nr_pages)
{
	return ((nr_pages + 1) << PAGE_SHIFT) + sizeof(struct perf_buffer) +
	       nr_pages * sizeof(void *);
}

/*
 * Allocate a buffer for an event that comes without one, charged to the current user, unless
 * it lies in memory that was reserved for the session.
 */
static struct perf_buffer *perf_persistent_alloc_buffer(struct perf_persistent_event *pe,
							unsigned long nr_pages)
{
	const struct perf_rb_memory *memory = perf_blackbox_memory(pe->session);
	bool reserved = memory != &perf_rb_kernel_memory;
	struct perf_event *event = pe->event;
	struct perf_persistent_memory memory_cg = { };
	struct perf_rb_charge charge = { };
	struct perf_buffer *rb;
	int err;

	/* The header page comes on top. */
	err = memory->charge(&charge, nr_pages + 1, NULL);
	if (err)
		return ERR_PTR(perf_persistent_refuse(err, "too much locked memory of the user"));

	if (!reserved) {
		err = perf_persistent_charge(&memory_cg, perf_persistent_buffer_bytes(nr_pages));
		if (err)
			goto err_charge;
	}

	err = reserved ? -ENOSPC : -ENOMEM;
	rb = rb_alloc(memory, nr_pages, event->attr.watermark ? event->attr.wakeup_watermark : 0,
		      event->cpu, 0);
	if (!rb) {
		if (reserved)
			perf_persistent_refuse(err, "the region is full, or the kernel has died");
		goto err_memory_cg;
	}

	rb->charge = charge;
	rb->memory_cg = memory_cg;
	return rb;

err_memory_cg:
	perf_persistent_uncharge(&memory_cg);
err_charge:
	memory->uncharge(&charge);
	return ERR_PTR(err);
}

/* Undo perf_persistent_alloc_buffer(); the buffer was never attached. */
static void perf_persistent_free_buffer(struct perf_buffer *rb)
{
	perf_persistent_uncharge(&rb->memory_cg);
	rb->memory->uncharge(&rb->charge);
	rb->memory->free(rb);
}

/* Can the buffer that the event brings along become a buffer of the session? */
static int perf_persistent_check_buffer(struct perf_event *event, struct perf_buffer *rb)
{
	/* It belongs to another session, or to an event that was claimed. */
	if (perf_rb_sealed(rb))
		return perf_persistent_refuse(-EBUSY, "the buffer is that of another session");

	if (!perf_event_is_mapped(event))
		return perf_persistent_refuse(-EINVAL, "the buffer's own event is no member");

	if (!rb->nr_pages || !rb->overwrite || rb_has_aux(rb))
		return perf_persistent_refuse(-EINVAL, "the buffer is empty, writable or AUX");

	/* perf_rb_seal() looks again, with the lock. */
	if (READ_ONCE(rb->user_writable))
		return perf_persistent_refuse(-EINVAL, "the buffer was mapped writable");

	/* The memory stays charged, so it must be charged to the calling user. */
	if (rb->charge.user != current_user())
		return perf_persistent_refuse(-EPERM, "the buffer is charged to another user");

	return 0;
}

static int perf_persistent_keep_buffer(struct perf_persistent_event *pe, struct perf_buffer *rb,
				       bool complete)
{
	bool shared = perf_rb_sealed(rb) &&
		      perf_persistent_first_writer(pe->session, pe->cpu, rb);
	struct perf_persistent_memory memory_cg = { };
	struct perf_rb_charge charge = { };
	int err;

	if (!shared) {
		/* The last mapping is gone: perf_mmap_put() is about to detach the buffer. */
		if (!perf_rb_is_mapped(rb))
			return -EAGAIN;

		err = perf_persistent_check_buffer(pe->event, rb);
		if (err)
			return err;
	}

	err = perf_rb_charge(&charge, shared ? 1 : rb->charge.pinned, NULL);
	if (err)
		return perf_persistent_refuse(err, "too much locked memory of the user");

	if (!shared) {
		err = perf_persistent_charge(&memory_cg,
					     perf_persistent_buffer_bytes(data_page_nr(rb)));
		if (err)
			goto err_uncharge;
	}

	err = perf_rb_seal(rb);
	if (err) {
		perf_persistent_refuse(err, "the buffer was just mapped writable");
		goto err_memory_cg;
	}

	err = -EINVAL;
	if (complete && !perf_persistent_all_members(pe->session, rb, pe->event)) {
		perf_persistent_refuse(err, "an event that is no member writes to the buffer");
		goto err_unseal;
	}

	if (!shared) {
		err = perf_persistent_put_charge(rb, &memory_cg);
		if (err)
			goto err_unseal;
	}

	err = -EAGAIN;
	if (!perf_rb_get_mmap(rb))
		goto err_memory;

	if (shared) {
		pe->charge = charge;
	} else {
		/* Sealed: only a freeze pauses it again. */
		rb_toggle_paused(rb, false);
		perf_rb_charge_user(&rb->charge, &charge);
	}
	return 0;

err_memory:
	if (!shared)
		perf_persistent_take_charge(rb, &memory_cg);
err_unseal:
	perf_rb_unseal(rb);
err_memory_cg:
	perf_persistent_uncharge(&memory_cg);
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
		/* User space has not mapped it, so this does not fail. */
		perf_rb_seal(rb);
	}

	perf_event_get_mmap(event);
	/* For perf_persistent_may_read(), which looks for other members of a buffer */
	WRITE_ONCE(pe->rb, ring_buffer_get(event));
	return 0;
}

/* Undo perf_persistent_adopt_buffer(), for the last user of the member. */
static void perf_persistent_drop_buffer(struct perf_persistent_event *pe)
{
	struct perf_persistent_memory memory = { };

	/* No other member relies on the seal. */
	if (!perf_rb_unseal(pe->rb))
		perf_persistent_take_charge(pe->rb, &memory);
	perf_mmap_put(pe->event, pe->rb);
	perf_rb_uncharge(&pe->charge);
	perf_persistent_uncharge(&memory);
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
		return perf_persistent_refuse(-EINVAL, "the event is in a group");

	if (perf_event_is_revoked(event))
		return perf_persistent_refuse(-ENODEV, "the PMU of the event has gone");

	/* In newer kernels a PMU may go before its events, but not under the context's mutex. */
	if (has_aux(event))
		return perf_persistent_refuse(-EINVAL, "the event has an AUX area");

	/* Its CPU went offline; ENABLE and DISABLE since were not noted. */
	if (perf_event_is_away(event))
		return perf_persistent_refuse(-ENODEV, "the CPU of the event went offline");

	err = perf_persistent_adopt_buffer(pe, spare, complete);
	if (err)
		return err;

	perf_event_set_returns(event);
	/* A, matches B: see Ordering */
	smp_store_release(&event->persistent, pe);
	/* No rdpmc any more. */
	perf_event_update_userpage(event);
	return 0;
}

/* Times that the last mapping of a buffer may go meanwhile. */
#define PERF_PERSISTENT_ATTACH_TRIES	100

/**
 * perf_persistent_attach - give an event its buffer, and make it a member
 * @pe: the member to be
 * @nr_pages: size of the buffer if the event has none, a power of two
 * @complete: this completes the session: only members may write to the buffer
 *
 * Return: 0, or an error; -EAGAIN while a task unmaps the buffer
 */
int perf_persistent_attach(struct perf_persistent_event *pe, unsigned long nr_pages,
			   bool complete)
{
	struct perf_event *event = pe->event;
	struct perf_event_context *ctx;
	struct perf_buffer *spare = NULL;
	int tries, err;

	lockdep_assert_held(&perf_persistent_mutex);

	err = perf_persistent_charge(&pe->memory, sizeof(*event));
	if (err)
		return err;

	for (tries = 0; tries < PERF_PERSISTENT_ATTACH_TRIES; tries++) {
		/* A hint: perf_persistent_adopt_buffer() looks again, with the lock. */
		if (!spare && !READ_ONCE(event->rb)) {
			spare = perf_persistent_alloc_buffer(pe, nr_pages);
			if (IS_ERR(spare)) {
				err = PTR_ERR(spare);
				spare = NULL;
				break;
			}
		}

		ctx = perf_event_ctx_lock(event);
		err = perf_persistent_try_attach(pe, &spare, complete);
		perf_event_ctx_unlock(event, ctx);

		/* Again at once if the buffer has gone, and a spare one is wanted. */
		if (err != -EAGAIN || READ_ONCE(event->rb))
			break;
	}

	if (spare)
		perf_persistent_free_buffer(spare);
	if (err)
		perf_persistent_uncharge(&pe->memory);
	return err;
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

	/* Its records stay in the buffer, as long as there is another member. */
	scoped_guard(mutex, &perf_persistent_lock) {
		list_del(&pe->member_entry);
		pe->rb->asks |= perf_persistent_asks(pe);
	}

	perf_blackbox_leave(pe);
	perf_persistent_drop_buffer(pe);
	perf_event_release_kernel(pe->event);
	perf_persistent_uncharge(&pe->memory);
	if (pe->target_ns)
		put_pid_ns(pe->target_ns);
	kfree_rcu(pe, rcu);
	kobject_put(&s->kobj);
}
