// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: events that outlive the process which opened them, so that
 * what a machine recorded of itself can be read after the recorder was killed.
 *
 * Theory of operation
 * ===================
 *
 * Somebody opens an event the usual way and says UNCLAIM: the event becomes a
 * member of a session, which belongs to the kernel. Others open the member again,
 * by session, CPU and index, and get a consumer, to map its buffer read-only and to
 * read. Somebody says CLAIM: the member leaves the session, and ends when the last
 * of those who have it open lets go of it.
 *
 * Objects, and who holds a reference to what
 * ------------------------------------------
 *
 *    creator's file ----------------------+          (file->private_data is the event)
 *                                         v
 *    consumer's file --> consumer --> perf_persistent_event --> perf_event
 *                                      ^  |         |               |
 *    perf_persistent_session ----------+  |         v               v
 *      ^       until claimed              |     perf_buffer <-------+
 *      +----------------------------------+
 *
 *  - perf_persistent_event::users counts the creator's file, each consumer's file,
 *    and the session until the event is claimed. 1 to 0 alone ends the event, once:
 *    perf_persistent_put() gives back the buffer, calls
 *    perf_event_release_kernel(), and frees the member. The event's own refcount
 *    would not do: perf_event_release_kernel() kills an event whatever its refcount.
 *  - A mapping, the creator's or a consumer's, holds its file. So while there is a
 *    mapping, there is a user.
 *  - perf_event::persistent is set once, by UNCLAIM, and never cleared. Who has the
 *    creator's file has a user, hence may follow it without a lock.
 *  - The member has a reference on its buffer, one count in event->mmap_count and one
 *    in rb->mmap_count (see persistent_buffer.c). event->rb does not change any more:
 *    with a count in event->mmap_count no munmap() detaches it, and SET_OUTPUT is
 *    refused. Faults of consumers' mappings take the pages from pe->rb, and need no
 *    vm_operations::open and close: they may be forked, split and moved.
 *  - The session's reference count is its kobject's: one for the list of sessions
 *    until its last event is claimed, one for each member until it is freed. All of
 *    these, claimed or not, are on session->members, and leave it first of all: while
 *    a member is there, its event and what that needs (target task, tracepoint) are.
 *  - The event keeps what any event keeps: the module of its PMU or tracepoint, the
 *    pid namespace it was opened in, the LSM's blob. A module whose tracepoint is
 *    recorded cannot be unloaded before CLAIM.
 *
 * A session's life
 * ----------------
 *
 *                  UNCLAIM, PARTIAL               UNCLAIM
 *                        |                           |
 *                        v      UNCLAIM, without     v
 *     UNCLAIM, +--->  BUILDING ------------------> RUNNING <---+ UNCLAIM, joins
 *     PARTIAL, +------   |      PARTIAL              |   +-----+
 *     joins              |                           |
 *                        | any creator's fd closed   |
 *                        +----------> ENDED <--------+
 *                           or all events claimed
 *
 *  BUILDING: neither listed nor to be opened. RUNNING: both; it is listed a moment
 *  before it can be opened (ENOENT), and if its completion fails, is unlisted again.
 *  ENDED: nobody finds it, its name is free; the object stays until its last member
 *  is freed.
 *
 * What happens when
 * -----------------
 *
 *  - The creator exits, or is killed: its files are closed. A BUILDING session ends
 *    whole, a RUNNING one goes on. UNCLAIM took the event off its owner's list, so
 *    neither exit nor prctl(PR_TASK_PERF_EVENTS_DISABLE) of the owner finds it there.
 *    A file that was passed on to others is closed when the last of them closes it.
 *  - The creator execs: nothing, unless its files are close-on-exec. Attributes that
 *    make exec() meddle with an event are refused by UNCLAIM.
 *  - The creator's mapping goes, before or after its file is closed, before or after
 *    UNCLAIM returns: perf_mmap_close() takes one from counts which we raised before
 *    event->persistent was set. Had its count reached zero already, UNCLAIM waits
 *    until the buffer is off, and makes a buffer of its own.
 *  - CLAIM while others read: they read on. Their buffer is there, and charged, until
 *    the last of them is gone.
 *  - A CPU goes offline, and comes back: see persistent_hotplug.c.
 *  - An event of a group cannot become persistent. A persistent one cannot become the
 *    leader of a group.
 *
 * Events that follow a task
 * -------------------------
 *
 * They have CPU -1, in perf_event_open() as in a session, and any number of tasks
 * can be followed by the events of one session. Such an event holds its task_struct
 * (hw.target) and the task's context until it is freed, as any event of a task does.
 * Who opens it is asked what perf_event_open() asks: CAP_PERFMON, or what ptrace asks
 * of who wants to read the task.
 *
 *  - The task exits: perf_event_exit_task() takes the event off the context, which is
 *    dead from then on. Event, buffer and session stay, and are opened, read and
 *    claimed as before: a post-mortem. The state says GONE, and stays so; poll() says
 *    EPOLLHUP. If PERF_RECORD_EXIT was asked for, it is the last record. The opener is
 *    checked against the credentials that the task died with.
 *  - UNCLAIM of an event whose task is gone already: the same post-mortem.
 *  - The task execs: the event goes on. If the new program is set-uid, or not readable,
 *    perf_event_exit_task() ends the event as if the task had exited, for what follows
 *    is nobody's business; it never comes back. GONE means that the event's use of
 *    the task is at an end. The opener is then checked against the new credentials:
 *    the owner may find that it takes CAP_PERFMON to read what there was before.
 *  - The task forks, or clones: the child is not followed, for attr.inherit is refused
 *    by UNCLAIM. As a task with an event that is not inherited, it never swaps
 *    contexts with its child. A fork() that fails half-way had no event to free.
 *  - The task is the creator: it exits as a task first, then as an owner of files. A
 *    session that was still being built then ends.
 *  - The task's number is used again: the event has the task, not its number.
 *
 * Locking
 * -------
 *
 *  perf_persistent_mutex: serialises all that changes a session: UNCLAIM, CLAIM, and
 *    the end of a BUILDING session. Held across sysfs operations, allocations, and
 *    the locks of an event, in this order:
 *
 *      perf_persistent_mutex
 *        cpu_hotplug_lock (whose holders thus cannot take it)
 *          perf_event_context::mutex
 *            perf_event::mmap_mutex
 *              perf_buffer::event_lock
 *        kn->active (sysfs: removing a file waits for those who read it)
 *          perf_persistent_lock
 *            perf_event_context::lock
 *            task_struct::alloc_lock (ptrace checks)
 *
 *  perf_persistent_lock: protects the list of sessions, session->events and ->state,
 *    and ->claimed. These are written with both locks held, and read with either.
 *    It alone protects session->members. Taken by those who look a session up, and by
 *    sysfs' show(); never held across a sysfs operation nor an access to user memory.
 *
 *  Neither is ever taken with mmap_lock or an event's locks held. Files are closed,
 *  and so events ended, with none of them held: closing may take all of them.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/hw_breakpoint.h>
#include <linux/init.h>
#include <linux/printk.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <linux/trace_events.h>

#include "persistent_types.h"

/* Who changes a session. See Locking. */
DEFINE_MUTEX(perf_persistent_mutex);

/* The list of sessions, their events and states. See Locking. */
DEFINE_MUTEX(perf_persistent_lock);

LIST_HEAD(perf_persistent_sessions);

/* The last id given. Protected by perf_persistent_mutex. */
static u32 perf_persistent_last_id;

/* Sessions that a user without CAP_SYS_ADMIN may have. */
static int sysctl_perf_persistent_max __read_mostly = 16;

static void perf_persistent_assert_readable(void)
{
	lockdep_assert(lockdep_is_held(&perf_persistent_mutex) ||
		       lockdep_is_held(&perf_persistent_lock));
}

/* Look-ups */

static struct perf_persistent_session *perf_persistent_find_session(u64 id)
{
	struct perf_persistent_session *s;

	perf_persistent_assert_readable();

	list_for_each_entry(s, &perf_persistent_sessions, entry) {
		if (s->id == id)
			return s;
	}
	return NULL;
}

static bool perf_persistent_name_taken(const char *name)
{
	struct perf_persistent_session *s;

	perf_persistent_assert_readable();

	list_for_each_entry(s, &perf_persistent_sessions, entry) {
		if (!strcmp(s->name, name))
			return true;
	}
	return false;
}

static int perf_persistent_check_quota(void)
{
	struct perf_persistent_session *s;
	int nr = 0;

	perf_persistent_assert_readable();

	list_for_each_entry(s, &perf_persistent_sessions, entry)
		nr += uid_eq(s->owner, current_euid());

	if (nr < READ_ONCE(sysctl_perf_persistent_max) || capable(CAP_SYS_ADMIN))
		return 0;
	return -EDQUOT;
}

static bool perf_persistent_may_use(struct perf_persistent_session *s)
{
	return uid_eq(s->owner, current_euid()) || perfmon_capable();
}

/**
 * perf_persistent_nr_events - how many indices were given on a CPU?
 * @s: the session
 * @cpu: the CPU
 *
 * Return: one more than the highest index ever; events below may have been claimed
 */
u32 perf_persistent_nr_events(struct perf_persistent_session *s, int cpu)
{
	void *next;

	perf_persistent_assert_readable();

	next = xa_load(&s->next_index, cpu + 1);
	return next ? xa_to_value(next) : 0;
}

/**
 * perf_persistent_buffer_index - whose buffer does the event write to?
 * @pe: the member
 *
 * Return: lowest index on its CPU with the same buffer
 */
u32 perf_persistent_buffer_index(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *other;
	unsigned long key;

	perf_persistent_assert_readable();

	xa_for_each_range(&pe->session->events, key, other, perf_persistent_key(pe->cpu, 0),
			  perf_persistent_key(pe->cpu, PERF_PERSISTENT_INDEX_MAX)) {
		if (other->rb == pe->rb)
			return other->index;
	}
	return pe->index;
}

/**
 * perf_persistent_gone - is the event at an end because its target task is?
 * @pe: the member
 */
bool perf_persistent_gone(struct perf_persistent_event *pe)
{
	/* An event that follows a task is off its context for good. */
	return pe->cpu == -1 && !(READ_ONCE(pe->event->attach_state) & PERF_ATTACH_CONTEXT);
}

/* False if the event has another context by now. */
static bool perf_persistent_try_state(struct perf_persistent_event *pe,
				      struct perf_event_context *ctx, u32 *state)
{
	struct perf_event *event = pe->event;
	bool same, runs, online = false;
	unsigned long flags;

	/* Under which it is put on its context, and taken off. */
	raw_spin_lock_irqsave(&ctx->lock, flags);
	same = event->ctx == ctx;
	if (event->attach_state & PERF_ATTACH_CONTEXT) {
		online = event->cpu == -1 || cpu_online(event->cpu);
		runs = event->state > PERF_EVENT_STATE_OFF;
	} else {
		runs = pe->resume;
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

	/* It changes if a PMU moves the event to another CPU. */
	guard(rcu)();
	while (!perf_persistent_try_state(pe, READ_ONCE(pe->event->ctx), &state))
		cpu_relax();

	/* Off for good in the meantime. */
	return pe->cpu == -1 && (state & PERF_PERSISTENT_STATE_OFFLINE) ?
	       PERF_PERSISTENT_STATE_GONE : state;
}

/**
 * perf_persistent_find - look up an event that can be opened
 * @id: its session
 * @cpu: its CPU, -1 if it follows a task
 * @index: its number there
 *
 * Return: the event, for perf_persistent_put(), or an error pointer
 */
struct perf_persistent_event *perf_persistent_find(u64 id, int cpu, u64 index)
{
	struct perf_persistent_session *s;
	struct perf_persistent_event *pe;

	if (cpu < -1 || cpu >= (int)nr_cpu_ids || index > PERF_PERSISTENT_INDEX_MAX)
		return ERR_PTR(-ENOENT);

	guard(mutex)(&perf_persistent_lock);

	s = perf_persistent_find_session(id);
	if (!s || s->state != PERF_PERSISTENT_RUNNING)
		return ERR_PTR(-ENOENT);

	/* Which events there are is the owner's business. */
	if (!perf_persistent_may_use(s))
		return ERR_PTR(-EACCES);

	pe = xa_load(&s->events, perf_persistent_key(cpu, index));
	if (!pe)
		return ERR_PTR(-ENOENT);

	refcount_inc(&pe->users);
	return pe;
}

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
	 * As perf_check_permission() has it. No need to keep the task from changing its
	 * credentials meanwhile: exec() ends the event first, what there is was written
	 * under the old ones.
	 */
	if (perfmon_capable() ||
	    ptrace_may_access(event->hw.target, PTRACE_MODE_READ_REALCREDS))
		return 0;
	return -EACCES;
}

/*
 * What perf_event_open() checks, for one who did not come through it. What a PMU's
 * event_init() asks for on top of that is known for tracepoints, probes and
 * breakpoints alone.
 */
static int perf_persistent_may_open(struct perf_event *event)
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
 * @pe: the event
 *
 * Who has the one sees what all others wrote to the other, also those claimed since.
 *
 * Return: 0; -EBUSY while others than members write to the buffer
 */
int perf_persistent_may_read(struct perf_persistent_event *pe)
{
	struct perf_persistent_event *other;
	int err;

	if (!perf_persistent_all_members(pe->session, pe->rb, NULL))
		return -EBUSY;

	/* No more of them come: the buffer is sealed. */
	guard(mutex)(&perf_persistent_lock);
	list_for_each_entry(other, &pe->session->members, member_entry) {
		/* NULL if it is just becoming one, of another buffer than this. */
		if (READ_ONCE(other->rb) != pe->rb)
			continue;

		err = perf_persistent_may_open(other->event);
		if (err)
			return err;
	}
	return 0;
}

/* The end */

/**
 * perf_persistent_put - let go of an event
 * @pe: the event; the last one to let go ends it
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

/* Take the event back from its session. The session's share is the caller's then. */
static bool perf_persistent_take_back(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;

	lockdep_assert_held(&perf_persistent_mutex);
	guard(mutex)(&perf_persistent_lock);

	if (pe->claimed)
		return false;

	WRITE_ONCE(pe->claimed, true);
	xa_erase(&s->events, perf_persistent_key(pe->cpu, pe->index));
	/* Readers' poll() says so. */
	wake_up_all(&pe->event->waitq);
	return true;
}

/* The session's last event was taken back: unlist it. */
static void perf_persistent_end(struct perf_persistent_session *s)
{
	bool published = s->state == PERF_PERSISTENT_RUNNING;

	lockdep_assert_held(&perf_persistent_mutex);

	scoped_guard(mutex, &perf_persistent_lock)
		WRITE_ONCE(s->state, PERF_PERSISTENT_ENDED);

	/* The directory before the name, or who takes the name finds it there. */
	if (published)
		perf_persistent_unpublish(s);

	scoped_guard(mutex, &perf_persistent_lock)
		list_del(&s->entry);

	kobject_put(&s->kobj);
}

/**
 * perf_persistent_claim - take an event back from its session
 * @pe: the event, which the caller has open
 *
 * Return: id of the session; -EBUSY if somebody else has claimed it
 */
int perf_persistent_claim(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;
	u32 id = s->id;

	scoped_guard(mutex, &perf_persistent_mutex) {
		if (!perf_persistent_take_back(pe))
			return -EBUSY;

		if (xa_empty(&s->events))
			perf_persistent_end(s);
	}

	perf_persistent_put(pe);
	return id;
}

/* Take all events back; the session's shares are given up by perf_persistent_put_all(). */
static void perf_persistent_take_all(struct perf_persistent_session *s, struct list_head *taken)
{
	struct perf_persistent_event *pe;
	unsigned long key;

	lockdep_assert_held(&perf_persistent_mutex);

	xa_for_each(&s->events, key, pe) {
		perf_persistent_take_back(pe);
		list_add(&pe->claim_entry, taken);
	}
	perf_persistent_end(s);
}

static void perf_persistent_put_all(struct list_head *taken)
{
	struct perf_persistent_event *pe, *tmp;

	list_for_each_entry_safe(pe, tmp, taken, claim_entry)
		perf_persistent_put(pe);
}

/* Nobody is going to complete it: the session ends with all its events. */
static void perf_persistent_abort(struct perf_persistent_session *s)
{
	LIST_HEAD(taken);

	/* It never comes back. */
	if (READ_ONCE(s->state) != PERF_PERSISTENT_BUILDING)
		return;

	scoped_guard(mutex, &perf_persistent_mutex) {
		if (s->state == PERF_PERSISTENT_BUILDING)
			perf_persistent_take_all(s, &taken);
	}
	perf_persistent_put_all(&taken);
}

/**
 * perf_persistent_end_all - claim all events of a session
 * @s: the session, which may have ended
 */
void perf_persistent_end_all(struct perf_persistent_session *s)
{
	LIST_HEAD(taken);

	scoped_guard(mutex, &perf_persistent_mutex) {
		if (s->state != PERF_PERSISTENT_ENDED)
			perf_persistent_take_all(s, &taken);
	}
	perf_persistent_put_all(&taken);
}

/**
 * perf_persistent_release - the creator's file is gone
 * @event: its event
 *
 * Return: false if the event does not belong to a session, and is the caller's to release
 */
bool perf_persistent_release(struct perf_event *event)
{
	struct perf_persistent_event *pe = event->persistent;

	if (!pe)
		return false;

	perf_persistent_abort(pe->session);
	perf_persistent_put(pe);
	return true;
}

/* The beginning */

/* Can the event go on without its creator, and be understood by others? */
static int perf_persistent_check_event(struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (!is_write_backward(event))
		return -EINVAL;

	if (has_aux(event) || attr->aux_output || has_aux_action(event))
		return -EINVAL;

	/* They make fork(), exec() or a signal act on it. */
	if (attr->inherit || attr->enable_on_exec || attr->remove_on_exec || attr->sigtrap)
		return -EINVAL;

	/* A buffer for each CPU that the task may run on. */
	if ((event->attach_state & PERF_ATTACH_TASK) && event->cpu != -1)
		return -EOPNOTSUPP;

#ifdef CONFIG_CGROUP_PERF
	/* Its attr does not say of which cgroup it is. */
	if (event->cgrp)
		return -EOPNOTSUPP;
#endif

	return perf_persistent_may_open(event);
}

/* Can the records of the event be told from those of others, and put in order? */
static bool perf_persistent_tells_apart(struct perf_event *event)
{
	const u64 need = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;

	return event->attr.sample_id_all && (event->attr.sample_type & need) == need;
}

static bool perf_persistent_fits(struct perf_persistent_session *s, struct perf_event *event)
{
	struct perf_persistent_event *pe;
	unsigned long key;

	if (xa_empty(&s->events))
		return true;

	xa_for_each(&s->events, key, pe) {
		if (!perf_persistent_tells_apart(pe->event))
			return false;
	}
	return perf_persistent_tells_apart(event);
}

static struct perf_persistent_session *perf_persistent_create(const char *name)
{
	struct perf_persistent_session *s;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (perf_persistent_name_taken(name))
		return ERR_PTR(-EEXIST);

	err = perf_persistent_check_quota();
	if (err)
		return ERR_PTR(err);

	if (perf_persistent_last_id == INT_MAX)
		return ERR_PTR(-ENOSPC);

	s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	if (!s)
		return ERR_PTR(-ENOMEM);

	kobject_init(&s->kobj, &perf_persistent_ktype);
	INIT_LIST_HEAD(&s->members);
	xa_init(&s->events);
	xa_init(&s->next_index);
	s->state = PERF_PERSISTENT_BUILDING;
	s->id = ++perf_persistent_last_id;
	s->owner = current_euid();
	if (*name)
		strscpy(s->name, name);
	else
		snprintf(s->name, sizeof(s->name), "event%u", s->id);

	guard(mutex)(&perf_persistent_lock);
	list_add_tail(&s->entry, &perf_persistent_sessions);
	return s;
}

static struct perf_persistent_session *
perf_persistent_join(const struct perf_persistent_arg *arg)
{
	struct perf_persistent_session *s;

	lockdep_assert_held(&perf_persistent_mutex);

	s = perf_persistent_find_session(arg->id);
	if (!s)
		return ERR_PTR(-ENOENT);

	if (!perf_persistent_may_use(s))
		return ERR_PTR(-EACCES);

	if (*arg->name && strcmp(arg->name, s->name))
		return ERR_PTR(-EINVAL);

	/* What is complete is not going to be built again. */
	if ((arg->flags & PERF_PERSISTENT_PARTIAL) && s->state == PERF_PERSISTENT_RUNNING)
		return ERR_PTR(-EINVAL);

	return s;
}

/* Jiffies to wait for a buffer's last mapping to be gone altogether. */
#define PERF_PERSISTENT_ATTACH_TRIES	100

/* Give the event its buffer, and make it a member. It does not change any more then. */
static int perf_persistent_attach(struct perf_persistent_event *pe, unsigned long nr_pages,
				  bool complete)
{
	struct perf_event *event = pe->event;
	struct perf_event_context *ctx;
	struct perf_buffer *spare = NULL;
	int tries, err;

	for (tries = 0; tries < PERF_PERSISTENT_ATTACH_TRIES; tries++) {
		if (!spare && perf_persistent_wants_buffer(event)) {
			spare = perf_persistent_alloc_buffer(event, nr_pages);
			if (IS_ERR(spare))
				return PTR_ERR(spare);
		}

		ctx = perf_event_ctx_lock(event);
		mutex_lock(&event->mmap_mutex);
		if (event->group_leader != event || event->nr_siblings)
			err = -EINVAL;
		else if (!(event->attach_state & (PERF_ATTACH_CONTEXT | PERF_ATTACH_TASK)))
			/* Its CPU was offline since, and did not bring it back. */
			err = -ENODEV;
		else
			err = perf_persistent_adopt_buffer(pe, &spare, complete);
		if (!err) {
			/* Pairs with smp_load_acquire() of who has the event open */
			smp_store_release(&event->persistent, pe);
		}
		mutex_unlock(&event->mmap_mutex);
		perf_event_ctx_unlock(event, ctx);

		if (err != -EAGAIN)
			break;

		/* Let who unmaps the buffer finish. */
		schedule_timeout_uninterruptible(1);
	}

	if (spare)
		perf_persistent_free_buffer(spare);
	return err == -EAGAIN ? -EBUSY : err;
}

static void perf_persistent_set_running(struct perf_persistent_session *s)
{
	lockdep_assert_held(&perf_persistent_mutex);

	scoped_guard(mutex, &perf_persistent_lock)
		WRITE_ONCE(s->state, PERF_PERSISTENT_RUNNING);

	/* It outlives the processes of who made it: leave a trace of who that was. */
	if (!ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		pr_info_ratelimited("session '%s' (id %u) made by uid %u, pid %d\n", s->name, s->id,
				    from_kuid(&init_user_ns, s->owner),
				    task_tgid_nr(current));
}

/* Is there nobody but members, and who becomes one, that writes to members' buffers? */
static bool perf_persistent_sealed(struct perf_persistent_session *s, struct perf_event *event)
{
	struct perf_persistent_event *pe;
	unsigned long key;

	perf_persistent_assert_readable();

	xa_for_each(&s->events, key, pe) {
		if (!perf_persistent_all_members(s, pe->rb, event))
			return false;
	}
	return true;
}

/* @nr_pages is for an event without a buffer. */
static int perf_persistent_add(struct perf_persistent_session *s, struct perf_event *event,
			       unsigned long nr_pages, bool complete)
{
	struct perf_persistent_event *pe;
	unsigned long key;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (!perf_persistent_fits(s, event))
		return -EINVAL;

	pe = kzalloc(sizeof(*pe), GFP_KERNEL_ACCOUNT);
	if (!pe)
		return -ENOMEM;

	/* The creator's file, and the session. */
	refcount_set(&pe->users, 2);
	pe->session = s;
	pe->event = event;
	pe->cpu = READ_ONCE(event->cpu);
	pe->index = perf_persistent_nr_events(s, pe->cpu);
	pe->resume = true;

	err = -ENOSPC;
	if (pe->index > PERF_PERSISTENT_INDEX_MAX)
		goto err_free;

	key = perf_persistent_key(pe->cpu, pe->index);
	err = xa_reserve(&s->events, key, GFP_KERNEL_ACCOUNT);
	if (err)
		goto err_free;

	/* Room for the next index; not given yet. */
	err = xa_err(xa_store(&s->next_index, pe->cpu + 1, xa_mk_value(pe->index),
			      GFP_KERNEL_ACCOUNT));
	if (err)
		goto err_reserve;

	err = -EINVAL;
	if (complete && !perf_persistent_sealed(s, event))
		goto err_reserve;

	if (complete) {
		err = perf_persistent_publish(s);
		if (err)
			goto err_reserve;
	}

	/* First: readers of the buffer are asked for this one, too, once it is a member. */
	scoped_guard(mutex, &perf_persistent_lock)
		list_add_tail(&pe->member_entry, &s->members);

	err = perf_persistent_attach(pe, nr_pages, complete);
	if (err)
		goto err_members;

	kobject_get(&s->kobj);
	scoped_guard(mutex, &perf_persistent_lock) {
		xa_store(&s->events, key, pe, GFP_KERNEL_ACCOUNT);
		xa_store(&s->next_index, pe->cpu + 1, xa_mk_value(pe->index + 1),
			 GFP_KERNEL_ACCOUNT);
	}
	if (complete)
		perf_persistent_set_running(s);
	return 0;

err_members:
	scoped_guard(mutex, &perf_persistent_lock)
		list_del(&pe->member_entry);
	if (complete)
		perf_persistent_unpublish(s);
err_reserve:
	xa_release(&s->events, key);
err_free:
	kfree(pe);
	return err;
}

/* UNCLAIM of a member: the one thing it can be for is to complete its session. */
static int perf_persistent_complete(struct perf_persistent_event *pe,
				    const struct perf_persistent_arg *arg)
{
	struct perf_persistent_session *s = pe->session;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (s->state != PERF_PERSISTENT_BUILDING || pe->claimed ||
	    (arg->flags & PERF_PERSISTENT_PARTIAL) || arg->id != s->id)
		return -EBUSY;

	if (!perf_persistent_may_use(s))
		return -EACCES;

	if (*arg->name && strcmp(arg->name, s->name))
		return -EINVAL;

	if (!perf_persistent_sealed(s, pe->event))
		return -EINVAL;

	err = perf_persistent_publish(s);
	if (err)
		return err;

	perf_persistent_set_running(s);
	return 0;
}

/**
 * perf_persistent_unclaim - make the event a member of a session
 * @event: the event
 * @arg: what PERF_EVENT_IOC_UNCLAIM was given; its name is well-formed
 * @id: out: id of the session
 */
int perf_persistent_unclaim(struct perf_event *event, const struct perf_persistent_arg *arg,
			    u32 *id)
{
	bool partial = arg->flags & PERF_PERSISTENT_PARTIAL;
	struct perf_persistent_session *s;
	int err;

	guard(mutex)(&perf_persistent_mutex);

	if (event->persistent) {
		*id = event->persistent->session->id;
		return perf_persistent_complete(event->persistent, arg);
	}

	err = perf_persistent_check_event(event);
	if (err)
		return err;

	s = arg->id ? perf_persistent_join(arg) : perf_persistent_create(arg->name);
	if (IS_ERR(s))
		return PTR_ERR(s);

	*id = s->id;
	err = perf_persistent_add(s, event, PERF_PERSISTENT_DEFAULT_SIZE >> PAGE_SHIFT,
				  !partial && s->state == PERF_PERSISTENT_BUILDING);
	if (!err)
		perf_remove_from_owner(event);
	else if (!arg->id)
		perf_persistent_end(s);
	return err;
}

/**
 * perf_persistent_make - make a session of the kernel's own events
 * @name: its name, which is well-formed
 * @events: events that are of no owner's
 * @nr: how many; at least one
 * @size: of each buffer, or 0
 *
 * The caller goes on as if it had closed files of the events: if it was an error, those
 * that are members already go with the session, which was never completed.
 *
 * Return: the session, with a reference, or an error pointer
 */
struct perf_persistent_session *perf_persistent_make(const char *name, struct perf_event **events,
						     unsigned int nr, unsigned long size)
{
	unsigned long nr_pages = DIV_ROUND_UP(size ?: PERF_PERSISTENT_DEFAULT_SIZE, PAGE_SIZE);
	struct perf_persistent_session *s;
	unsigned int i;
	int err;

	guard(mutex)(&perf_persistent_mutex);

	s = perf_persistent_create(name);
	if (IS_ERR(s))
		return s;

	for (i = 0; i < nr; i++) {
		err = perf_persistent_add(s, events[i], roundup_pow_of_two(nr_pages),
					  i == nr - 1);
		if (err)
			goto err_add;
	}

	kobject_get(&s->kobj);
	return s;

err_add:
	/* Nobody else would. */
	if (!i)
		perf_persistent_end(s);
	return ERR_PTR(err);
}

static struct ctl_table perf_persistent_sysctls[] = {
	{
		.procname	= "perf_persistent_max",
		.data		= &sysctl_perf_persistent_max,
		.maxlen		= sizeof(sysctl_perf_persistent_max),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
	},
};

static int __init perf_persistent_sysctl_init(void)
{
	register_sysctl_init("kernel", perf_persistent_sysctls);
	return 0;
}
fs_initcall(perf_persistent_sysctl_init);
