// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: events that outlive the process which opened them
 *
 * A flight recorder must be readable after the process that started it was killed.
 *
 * Theory of operation
 * ===================
 *
 * A process opens an event the usual way and calls UNCLAIM: the event becomes a member
 * of a session, which belongs to the kernel. Other processes open the member again, by
 * session, CPU and index. The file that they get is called a consumer. It can be read and
 * mapped read-only. CLAIM takes the member out of the session; the event ends when its last
 * file is closed.
 *
 * Objects and references
 * ----------------------
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
 *    and the session until the event is claimed. Its drop to 0 ends the event:
 *    perf_persistent_put() drops the buffer, calls perf_event_release_kernel(), and
 *    frees the member. The event's own refcount is not sufficient, since
 *    perf_event_release_kernel() kills an event regardless of its refcount.
 *  - A mapping, the creator's or a consumer's, holds its file. So a member with a
 *    mapping has a user.
 *  - perf_event::persistent is set once, by UNCLAIM, and never cleared. The creator's
 *    file holds a reference on the member, so it can be followed without a lock.
 *  - The member has a reference on its buffer, one count in event->mmap_count and one
 *    in rb->mmap_count (see member.c). event->rb does not change any more: with a count
 *    in event->mmap_count no munmap() detaches it, and SET_OUTPUT is refused. Faults of
 *    consumers' mappings take the pages from pe->rb, and need no vm_operations::open
 *    and close: these mappings may be forked, split and moved.
 *  - The session's reference count is that of its kobject: one reference for the list
 *    of sessions until its last event is claimed, one for each member until it is freed.
 *    All members, claimed or not, are on session->members. The last perf_persistent_put()
 *    takes a member off this list first: while it is there, its event is valid, and
 *    so are target task and tracepoint.
 *  - The event holds the same objects as any other event: the module of its PMU or
 *    tracepoint, the pid namespace it was opened in, the LSM's blob. A module whose
 *    tracepoint is recorded cannot be unloaded before CLAIM. The session keeps the user
 *    and pid namespace of its creator (owner.c), and its memory cgroup's obj_cgroup
 *    (memory.c).
 *  - An id is used up when the first UNCLAIM of a session has succeeded. Until then it is
 *    not visible: sysfs lists the session a moment earlier, but does not show the id.
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
 *  BUILDING: the session is not listed and cannot be opened. RUNNING: both; it is listed
 *  a moment before it can be opened (ENOENT), and unlisted if its completion fails.
 *  ENDED: it cannot be found and its name is free; the object stays until its last member
 *  and its last session fd are freed. A RUNNING session may be frozen, see freeze.c.
 *
 * What happens when
 * -----------------
 *
 *  - The creator exits or is killed: its files are closed. A BUILDING session ends with
 *    all its events, a RUNNING one continues. UNCLAIM took the event off its owner's
 *    list, so neither exit nor prctl(PR_TASK_PERF_EVENTS_DISABLE) of the owner finds it
 *    there. A file that was passed to other processes is closed by the last of them.
 *  - The creator execs: nothing, unless its files are close-on-exec. UNCLAIM refuses
 *    attributes that make exec() act on the event.
 *  - The creator's mapping goes, before or after its file is closed, before or after
 *    UNCLAIM returns: perf_mmap_close() decrements counts that were raised before
 *    event->persistent was set. If the event's count was zero already, its buffer is
 *    detached, and UNCLAIM allocates one. If the event was redirected into a buffer whose
 *    last mapping goes, UNCLAIM gives up, waits with no lock held until that is detached,
 *    and begins anew.
 *  - CLAIM while consumers read: they can continue. Their buffer stays, and stays
 *    charged, until the last of them is closed.
 *  - A CPU goes offline and returns: see hotplug.c.
 *  - An event of a group cannot become persistent. A persistent event cannot become the
 *    leader of a group.
 *
 * Events that follow a task
 * -------------------------
 *
 * They are opened for a task (hw.target). The events of one session can follow any number
 * of tasks. Opening one again takes what perf_event_open() takes: CAP_PERFMON, or the right
 * to ptrace the task it was opened for. There are two kinds:
 *
 *  - On any CPU: the CPU is -1, in perf_event_open() as in a session. It follows this task
 *    alone, and has a buffer of its own, or shares one with events of the same task.
 *  - On one CPU: the buffer belongs to the CPU, which is its only writer, and may be shared
 *    with other events of that CPU. To follow a task on all CPUs takes an event for each.
 *    With attr.inherit it also follows the threads and children that the task starts after
 *    it was opened, and theirs. attr.inherit is refused for all other events: the tasks would
 *    write to one buffer on several CPUs at the same time. See "Inherited events" in member.c.
 *
 * What happens to a task
 * ----------------------
 *
 *  - It exits: perf_event_exit_task() takes the event off the context, which is
 *    dead from then on. Event, buffer and session stay, and are opened, read and
 *    claimed as before. When the last task has exited, the state is GONE and remains so,
 *    and poll() returns EPOLLHUP. If PERF_RECORD_EXIT was asked for, it is the last record.
 *    The opener is checked against the credentials that the task died with.
 *  - UNCLAIM of an event whose task has already exited: the same.
 *  - It execs: the event continues. If the new program is set-uid or not readable,
 *    perf_event_exit_task() ends the event as if the task had exited, and it never
 *    returns: GONE means that the event no longer follows any task. The opener is then
 *    checked against the new credentials: the owner may need CAP_PERFMON to read what
 *    was recorded before.
 *  - It is the creator: it exits as a task first, then as an owner of files. A
 *    session that was still being built ends then.
 *  - Its pid is reused: the event holds the task, not its pid.
 *
 * Locking
 * -------
 *
 *  perf_persistent_mutex: serialises all changes of sessions: UNCLAIM, CLAIM, and
 *    the end of a BUILDING session. Held across sysfs operations, allocations, grace
 *    periods of RCU, and the locks of an event, in this order:
 *
 *      perf_persistent_mutex
 *        cpu_hotplug_lock (whose holders thus cannot take it)
 *          perf_event_context::mutex (below cpu_hotplug_lock: that of a CPU)
 *            perf_event::mmap_mutex
 *              perf_buffer::event_lock
 *        kn->active (sysfs: removing a file waits for its readers)
 *          perf_persistent_lock
 *            perf_event_context::lock
 *            task_struct::alloc_lock (ptrace checks)
 *
 *    All users share it. UNCLAIM reclaims memory of a cgroup that is at its limit with the
 *    mutex held, and so delays what other users change. Records are written and read, and a
 *    freeze stops the buffers, without it.
 *
 *  perf_persistent_lock: protects the list of sessions, session->events and ->state,
 *    and ->claimed. These are written with both locks held, and read with either.
 *    It alone protects session->members. Taken to look up a session, and by sysfs'
 *    show(); never held across a sysfs operation or an access to user memory.
 *
 *  Neither is taken with mmap_lock or an event's locks held. Files are closed, and so
 *  events ended, with none of them held: closing may take all of them.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "internal.h"

/*
 * The last id taken, by the first UNCLAIM of a session that succeeded: those that fail use
 * up no ids. Protected by perf_persistent_mutex.
 */
static u32 perf_persistent_last_id;

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

/* Only those who may do something with a session learn of it which events it has. */
static struct perf_persistent_session *
perf_persistent_find_running(u64 id, bool (*may)(struct perf_persistent_session *s))
{
	struct perf_persistent_session *s = perf_persistent_find_session(id);

	if (!s)
		return ERR_PTR(-ENOENT);

	if (s->state != PERF_PERSISTENT_RUNNING)
		return ERR_PTR(perf_persistent_refuse(-ENOENT, "the session does not run"));

	return may(s) ? s : ERR_PTR(-EACCES);
}

/**
 * perf_persistent_get - look up a session that can be opened
 * @id: its id
 *
 * Return: the session, with a reference, or an error pointer
 */
struct perf_persistent_session *perf_persistent_get(u64 id)
{
	struct perf_persistent_session *s;

	guard(mutex)(&perf_persistent_lock);

	s = perf_persistent_find_running(id, perf_persistent_may_look);
	if (!IS_ERR(s))
		kobject_get(&s->kobj);
	return s;
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

	s = perf_persistent_find_running(id, perf_persistent_may_use);
	if (IS_ERR(s))
		return ERR_CAST(s);

	pe = xa_load(&s->events, perf_persistent_key(cpu, index));
	if (!pe)
		return ERR_PTR(-ENOENT);

	refcount_inc(&pe->users);
	return pe;
}

/* The end */

/* Take the event back. The caller must drop the session's reference on the member. */
static bool perf_persistent_take_back(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;

	lockdep_assert_held(&perf_persistent_mutex);
	guard(mutex)(&perf_persistent_lock);

	if (pe->claimed)
		return false;

	WRITE_ONCE(pe->claimed, true);
	xa_erase(&s->events, perf_persistent_key(pe->cpu, pe->index));
	perf_persistent_leave_cgroup(pe);
	/* Tell poll() of readers. */
	wake_up_all(&pe->event->waitq);
	perf_persistent_note_claim(pe);
	return true;
}

/* The session's last event was taken back: unlist it. */
static void perf_persistent_end(struct perf_persistent_session *s)
{
	bool published = s->state == PERF_PERSISTENT_RUNNING;

	lockdep_assert_held(&perf_persistent_mutex);

	scoped_guard(mutex, &perf_persistent_lock)
		WRITE_ONCE(s->state, PERF_PERSISTENT_ENDED);
	perf_blackbox_end_notes(s);

	/* The directory goes before the name is free, for the next session of that name. */
	if (published)
		perf_persistent_unpublish(s);

	scoped_guard(mutex, &perf_persistent_lock)
		list_del_rcu(&s->entry);

	/* If the id was not used up, the session was never visible. */
	if (s->id <= perf_persistent_last_id)
		perf_persistent_note(s, PERF_PERSISTENT_NOTE_END, published);
	kobject_put(&s->kobj);
}

/**
 * perf_persistent_claim - take an event back from its session
 * @pe: the event, which the caller has open
 *
 * Return: id of the session; -EBUSY if it was claimed already
 */
int perf_persistent_claim(struct perf_persistent_event *pe)
{
	struct perf_persistent_session *s = pe->session;
	u32 id = s->id;

	scoped_guard(mutex, &perf_persistent_mutex) {
		if (!perf_persistent_take_back(pe))
			return -EBUSY;

		perf_persistent_audit(s, "claim");
		if (xa_empty(&s->events))
			perf_persistent_end(s);
	}

	perf_persistent_put(pe);
	return id;
}

/* Take all events back; perf_persistent_put_all() drops the session's references. */
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

	list_for_each_entry_safe(pe, tmp, taken, claim_entry) {
		perf_persistent_put(pe);
		cond_resched();
	}
}

/* A file of a session that is being built was closed: the session ends. */
static void perf_persistent_abort(struct perf_persistent_session *s)
{
	LIST_HEAD(taken);

	/* No state leads back to it. */
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
 * @s: the session
 *
 * Context: a task; takes perf_persistent_mutex, may sleep.
 * Return: 0, or -ENOENT if it has ended.
 */
int perf_persistent_end_all(struct perf_persistent_session *s)
{
	LIST_HEAD(taken);

	scoped_guard(mutex, &perf_persistent_mutex) {
		if (s->state == PERF_PERSISTENT_ENDED)
			return -ENOENT;
		perf_persistent_take_all(s, &taken);
	}
	perf_persistent_put_all(&taken);
	return 0;
}

/**
 * perf_persistent_release - the creator's file was closed
 * @event: its event
 *
 * Return: false if the event is not persistent: the caller must release it
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

/* Can the event continue without its creator, and can other processes read its records? */
static int perf_persistent_check_event(struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (!is_write_backward(event))
		return perf_persistent_refuse(-EINVAL, "the event is not write_backward");

	/* Whether its PMU has one, perf_persistent_try_attach() asks. */
	if (attr->aux_output || has_aux_action(event))
		return perf_persistent_refuse(-EINVAL, "the event has an AUX area");

	/* They make exec() or a signal act on it. */
	if (attr->enable_on_exec || attr->remove_on_exec || attr->sigtrap)
		return perf_persistent_refuse(-EINVAL, "exec or a signal acts on it");

	/* The tasks run on any CPU, at the same time; a buffer has one writer. */
	if (attr->inherit && (event->cpu == -1 || !(event->attach_state & PERF_ATTACH_TASK)))
		return perf_persistent_refuse(-EINVAL, "inherited, but not of a task on one CPU");

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
	unsigned long key = 0;
	struct perf_persistent_event *pe = xa_find(&s->events, &key, ULONG_MAX, XA_PRESENT);

	/* One is enough: if there are several events, all of them meet the requirement. */
	return !pe || (perf_persistent_tells_apart(pe->event) &&
		       perf_persistent_tells_apart(event));
}

static void perf_persistent_session_release(struct kobject *kobj)
{
	struct perf_persistent_session *s = to_session(kobj);

	xa_destroy(&s->events);
	xa_destroy(&s->next_index);
	perf_blackbox_remove(s);
	perf_persistent_put_owner(s);
	kfree_rcu(s, rcu);
}

static void perf_persistent_get_ownership(const struct kobject *kobj, kuid_t *uid, kgid_t *gid)
{
	*uid = to_session(kobj)->owner;
}

static const struct kobj_type perf_persistent_ktype = {
	.release	= perf_persistent_session_release,
	.sysfs_ops	= &perf_persistent_sysfs_ops,
	.default_groups	= perf_persistent_session_groups,
	.get_ownership	= perf_persistent_get_ownership,
};

static struct perf_persistent_session *perf_persistent_create(const char *name)
{
	struct perf_persistent_session *s;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (perf_persistent_last_id == INT_MAX)
		return ERR_PTR(perf_persistent_refuse(-ENOSPC, "all ids are used up"));

	s = kzalloc(sizeof(*s), PERF_PERSISTENT_GFP);
	if (!s)
		return ERR_PTR(-ENOMEM);

	kobject_init(&s->kobj, &perf_persistent_ktype);
	INIT_LIST_HEAD(&s->members);
	/* xa_store() ignores its gfp flags in its first attempt. */
	xa_init_flags(&s->events, XA_FLAGS_ACCOUNT);
	xa_init_flags(&s->next_index, XA_FLAGS_ACCOUNT);
	s->state = PERF_PERSISTENT_BUILDING;
	init_waitqueue_head(&s->waitq);
	s->id = perf_persistent_last_id + 1;
	err = perf_persistent_set_owner(s, name);
	if (err) {
		kobject_put(&s->kobj);
		return ERR_PTR(err);
	}

	guard(mutex)(&perf_persistent_lock);
	list_add_tail_rcu(&s->entry, &perf_persistent_sessions);
	return s;
}

/* A caller that names no region means any. */
static bool perf_persistent_lies_in(struct perf_persistent_session *s, const char *region)
{
	const char *label = perf_blackbox_label(s);

	return !*region || (label && !strcmp(label, region));
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

	if (*arg->name && !perf_persistent_is_called(s, arg->name))
		return ERR_PTR(perf_persistent_refuse(-EINVAL, "the session has another name"));

	if (!perf_persistent_lies_in(s, arg->label))
		return ERR_PTR(perf_persistent_refuse(-EINVAL, "the session is elsewhere"));

	if (perf_blackbox_label(s) && !perfmon_capable())
		return ERR_PTR(perf_persistent_refuse(-EPERM, "a region takes CAP_PERFMON"));

	if (perf_persistent_is_frozen(s))
		return ERR_PTR(perf_persistent_refuse(-EBUSY, "the session is frozen"));

	/* A complete session is not built again. */
	if ((arg->flags & PERF_PERSISTENT_PARTIAL) && s->state == PERF_PERSISTENT_RUNNING)
		return ERR_PTR(perf_persistent_refuse(-EINVAL, "the session is complete"));

	return s;
}

static void perf_persistent_set_running(struct perf_persistent_session *s)
{
	lockdep_assert_held(&perf_persistent_mutex);

	scoped_guard(mutex, &perf_persistent_lock)
		WRITE_ONCE(s->state, PERF_PERSISTENT_RUNNING);
	perf_persistent_note(s, PERF_PERSISTENT_NOTE_MAKE, true);

	/* The session outlives its creator: log the creator. */
	if (!ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		pr_info_ratelimited("session '%s' (id %u) made by uid %u, pid %d\n", s->name, s->id,
				    from_kuid(&init_user_ns, s->owner),
				    task_tgid_nr(current));
}

/* Do only members, and @event, write to the buffers of members? */
static bool perf_persistent_sealed(struct perf_persistent_session *s, struct perf_event *event)
{
	struct perf_persistent_event *pe;
	unsigned long key, walk;

	lockdep_assert_held(&perf_persistent_mutex);
	guard(mutex)(&perf_persistent_lock);

	walk = perf_persistent_start_walk();
	xa_for_each(&s->events, key, pe) {
		if (perf_persistent_first_visit(pe->rb, walk) &&
		    !perf_persistent_all_members(s, pe->rb, event))
			return false;
		cond_resched();
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
		return perf_persistent_refuse(-EINVAL, "an event without sample_id_all, id, time");

	pe = kzalloc(sizeof(*pe), PERF_PERSISTENT_GFP);
	if (!pe)
		return -ENOMEM;

	/* The creator's file, and the session. */
	refcount_set(&pe->users, 2);
	pe->session = s;
	pe->event = event;
	pe->target_ns = perf_persistent_get_target_ns(event);
	pe->cpu = READ_ONCE(event->cpu);
	pe->index = perf_persistent_nr_events(s, pe->cpu);

	err = -ENOSPC;
	if (pe->index > PERF_PERSISTENT_INDEX_MAX) {
		perf_persistent_refuse(err, "the CPU has had too many events of the session");
		goto err_free;
	}

	key = perf_persistent_key(pe->cpu, pe->index);
	err = xa_reserve(&s->events, key, PERF_PERSISTENT_GFP);
	if (err)
		goto err_free;

	/* Room for the next index; not given yet. */
	err = xa_err(xa_store(&s->next_index, pe->cpu + 1, xa_mk_value(pe->index),
			      PERF_PERSISTENT_GFP));
	if (err)
		goto err_reserve;

	err = -EINVAL;
	if (complete && !perf_persistent_sealed(s, event)) {
		perf_persistent_refuse(err, "an event that is no member writes to a buffer");
		goto err_reserve;
	}

	if (complete) {
		err = perf_persistent_publish(s);
		if (err)
			goto err_reserve;
	}

	/* First: once it is a member, readers of its buffer are checked for it as well. */
	scoped_guard(mutex, &perf_persistent_lock)
		list_add_tail(&pe->member_entry, &s->members);

	err = perf_persistent_attach(pe, nr_pages, complete);
	if (err)
		goto err_members;

	kobject_get(&s->kobj);
	scoped_guard(mutex, &perf_persistent_lock) {
		xa_store(&s->events, key, pe, PERF_PERSISTENT_GFP);
		xa_store(&s->next_index, pe->cpu + 1, xa_mk_value(pe->index + 1),
			 PERF_PERSISTENT_GFP);
	}
	perf_blackbox_join(pe);
	perf_persistent_freeze_joined(pe);
	perf_persistent_follow_cgroup(pe);
	perf_persistent_note_join(pe);
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
	if (pe->target_ns)
		put_pid_ns(pe->target_ns);
	kfree(pe);
	return err;
}

/* UNCLAIM of a member can only complete its session. */
static int perf_persistent_complete(struct perf_persistent_event *pe,
				    const struct perf_persistent_arg *arg)
{
	struct perf_persistent_session *s = pe->session;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (pe->claimed)
		return perf_persistent_refuse(-EBUSY, "the event was claimed");

	if (s->state != PERF_PERSISTENT_BUILDING ||
	    (arg->flags & PERF_PERSISTENT_PARTIAL) || arg->id != s->id)
		return perf_persistent_refuse(-EBUSY, "the event is a member already");

	if (!perf_persistent_may_use(s))
		return -EACCES;

	if (*arg->name && !perf_persistent_is_called(s, arg->name))
		return perf_persistent_refuse(-EINVAL, "the session has another name");

	if (!perf_persistent_lies_in(s, arg->label))
		return perf_persistent_refuse(-EINVAL, "the session is elsewhere");

	if (!perf_persistent_sealed(s, pe->event))
		return perf_persistent_refuse(-EINVAL,
					      "an event that is no member writes to a buffer");

	err = perf_persistent_publish(s);
	if (err)
		return err;

	perf_persistent_set_running(s);
	return 0;
}

/* The number of pages is a power of two. */
static unsigned long perf_persistent_pages(u64 size)
{
	return roundup_pow_of_two(DIV_ROUND_UP(size ?: PERF_PERSISTENT_DEFAULT_SIZE, PAGE_SIZE));
}

/* Create a session whose buffers lie in the region @label, or in ordinary memory if it is NULL. */
static struct perf_persistent_session *
perf_persistent_create_at(const char *name, const char *label)
{
	struct perf_persistent_session *s;
	int err;

	if (label && !perfmon_capable())
		return ERR_PTR(perf_persistent_refuse(-EPERM, "a region takes CAP_PERFMON"));

	s = perf_persistent_create(name);
	if (IS_ERR(s))
		return s;

	err = perf_blackbox_place(s, label);
	if (err) {
		perf_persistent_end(s);
		if (label)
			err = perf_persistent_refuse(err, "no place in the region, see dmesg");
		return ERR_PTR(err);
	}
	return s;
}

static int perf_persistent_try_unclaim(struct perf_event *event,
				       const struct perf_persistent_arg *arg, u32 *id)
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

	/* A mistake of the caller, so without a lock */
	if (*arg->label && READ_ONCE(event->rb))
		return perf_persistent_refuse(-EINVAL, "the buffer is not in the region");

	if (arg->id)
		s = perf_persistent_join(arg);
	else
		s = perf_persistent_create_at(arg->name, *arg->label ? arg->label : NULL);
	if (IS_ERR(s))
		return PTR_ERR(s);

	err = perf_persistent_add(s, event, perf_persistent_pages(arg->data_size),
				  !partial && s->state == PERF_PERSISTENT_BUILDING);
	if (err) {
		if (!arg->id)
			perf_persistent_end(s);
		return err;
	}

	*id = s->id;
	if (!arg->id)
		perf_persistent_last_id = s->id;
	perf_remove_from_owner(event);
	return 0;
}

/* Jiffies to wait until the last mapping of a buffer has gone. */
#define PERF_PERSISTENT_UNMAP_TRIES	100

/**
 * perf_persistent_unclaim - make the event a member of a session
 * @event: the event
 * @arg: what PERF_EVENT_IOC_UNCLAIM was given; its name is well-formed
 * @id: out: id of the session
 *
 * Context: a task; takes perf_persistent_mutex, may sleep.
 * Return: 0, or a negative errno; the event is then what it was before.
 */
int perf_persistent_unclaim(struct perf_event *event, const struct perf_persistent_arg *arg,
			    u32 *id)
{
	int tries, err;

	for (tries = 0; tries < PERF_PERSISTENT_UNMAP_TRIES; tries++) {
		err = perf_persistent_try_unclaim(event, arg, id);
		if (err != -EAGAIN)
			return err;

		/* Let the task that unmaps the buffer finish. */
		schedule_timeout_uninterruptible(1);
	}
	return perf_persistent_refuse(-EBUSY, "the buffer is being unmapped");
}

/**
 * perf_persistent_make - make a session of the kernel's own events
 * @name: its name, which is well-formed
 * @events: events without an owner
 * @nr: how many; at least one
 * @size: of each buffer, or 0
 * @label: of the reserved region for the buffers, or NULL
 *
 * The caller holds the reference of a creator's file on each event, and drops it in any
 * case: if an event could not become a member, that ends the session with the others.
 *
 * Return: the session, with a reference, or an error pointer
 */
struct perf_persistent_session *perf_persistent_make(const char *name, struct perf_event **events,
						     unsigned int nr, unsigned long size,
						     const char *label)
{
	struct perf_persistent_session *s;
	unsigned int i = 0;
	int err;

	guard(mutex)(&perf_persistent_mutex);

	s = perf_persistent_create_at(name, label);
	if (IS_ERR(s))
		return s;

	for (; i < nr; i++) {
		err = perf_persistent_add(s, events[i], perf_persistent_pages(size), i == nr - 1);
		if (err)
			goto err_add;

		perf_persistent_last_id = s->id;
	}

	kobject_get(&s->kobj);
	return s;

err_add:
	/* Without a member, no release of an event ends the session. */
	if (!i)
		perf_persistent_end(s);
	return ERR_PTR(err);
}
