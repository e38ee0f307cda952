// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: events of a cgroup
 *
 * An event of a cgroup (PERF_FLAG_PID_CGROUP) is an event of a CPU that counts only while a
 * task of the cgroup, or of one below, runs there. Its buffer belongs to the CPU.
 *
 * References
 * ----------
 *
 *	perf_event --cgrp--> perf_cgroup::css --> cgroup --> its kernfs node, parent cgroup
 *
 *  - The event holds a reference on the css from perf_event_open() until it is freed, that
 *    is, until the session has ended and the last file of the event is closed. event->cgrp
 *    does not change meanwhile.
 *  - The css of a cgroup that can be removed holds the cgroup, from its creation until it is
 *    freed. The cgroup keeps its id and its path, and stays in nr_dying_descendants of
 *    cgroup.stat until then. Its directory is not kept: another cgroup of the same name is
 *    another cgroup, whose tasks are not recorded.
 *  - The css of a root is never removed, and holds no cgroup: css->cgroup is the root of the
 *    hierarchy that has the perf_event controller, which changes with mount() and umount()
 *    of a cgroup v1 hierarchy, with cgroup_mutex held. The old root is freed afterwards. So
 *    css->cgroup is read and used with cgroup_mutex held. A reference would not do: it
 *    cannot even be tried once cgroup_destroy_root() is under way, whose percpu_ref_exit()
 *    frees the count before css->cgroup changes.
 *  - umount() of a v1 hierarchy does not fail. If it has had no cgroups but its root, the
 *    hierarchy is destroyed, and the event of its root follows the root of the hierarchy that
 *    gets the controller. As long as a cgroup that was removed is held, the hierarchy stays,
 *    with its controllers, until it was mounted and unmounted again.
 *
 * The end of a cgroup
 * -------------------
 *
 * A css is killed for good. From then on no task enters it, and css_offline() follows. It is
 * killed by:
 *
 *  - rmdir() of a cgroup, which has no live task and no cgroup below it by then;
 *  - the perf_event controller is taken from a hierarchy, all of whose cgroups but the root
 *    lose their css: it is taken from cgroup v2 by mounting it as a v1 hierarchy. The
 *    directories stay, and may have tasks. When the controller returns, the cgroups get
 *    another css, which the event does not follow.
 *
 * From css_offline() on there is nothing to follow. But a task that is about to finish its
 * exit may still leave a record, and a reader that is told of the end does not look again. So
 * the event is GONE, and its readers are told, when no record can follow:
 *
 *	cgroup_mutex			perf_persistent_mutex		a reader
 *
 *	css_offline(): STORE offline	UNCLAIM: STORE the number	poll_wait()
 *	(A) smp_mb()			  of followers			(D) LOAD ended
 *	LOAD the number of followers:	(B) smp_mb()
 *	  queue the work		LOAD offline: queue the work
 *
 *					the work:
 *					  retire the events
 *					  wait for a grace period
 *					  (C) STORE ended
 *					  wake the readers
 *
 * A pairs with B: UNCLAIM sees that the css is offline, or css_offline() the follower. The
 * grace period of the work waits for the writer that an IPI of perf_event_retire() has
 * interrupted: records are written with preemption or interrupts disabled, or under
 * rcu_read_lock(). C pairs with D: who sees the end sees all records. The work takes
 * perf_persistent_mutex, which cannot be taken below cgroup_mutex: the locks that are taken
 * below the former include cpu_hotplug_lock.
 *
 * A follower is a member of a session that is not claimed, and not told to have ended.
 * perf_persistent_followers has them all, so that each is retired, and its readers woken,
 * once. perf_cgroup::nr_followers is how many of them follow this cgroup. While there are none,
 * the end of a cgroup costs one load, however many events follow others; if there are some, the
 * work looks at all followers.
 *
 * The number is in the perf_cgroup, which the event of each follower holds, and changes where
 * the list does, with perf_persistent_mutex held. css_offline() loads it without, as it cannot
 * take that mutex. It does not miss a follower: a member that is added while it looks finds
 * the css offline, by A and B. If it finds one that is just taken off the list, the work has
 * nothing to do. A cgroup that gets the controller again has another css, whose number begins
 * at 0; the css of a root, which may move to another hierarchy with its followers, is never
 * offline.
 *
 *  - perf_event_retire() takes the event off its context: context switches on its CPU cost
 *    what they cost without it. It keeps css, count and buffer. It cannot be enabled again,
 *    and poll() of its creator's file returns EPOLLHUP as well.
 *  - Its CPU goes offline before: the event is off its context, and is marked only. Its CPU
 *    returns: perf_event_reinstall() does not install it. Hotplug first installs it, if its
 *    work item runs before this one: both take perf_persistent_mutex.
 *  - CLAIM, END, and the abort of a session that is being built take it off the list. A
 *    claimed event is an ordinary event, which perf does not tell that its cgroup has gone.
 *  - A frozen session: the same. Its state is GONE and FROZEN.
 *
 * Locks: perf_persistent_mutex, cgroup_mutex are not taken below each other. The former
 * protects perf_persistent_followers, and stores to perf_cgroup::nr_followers. fdinfo takes
 * cgroup_mutex, with none of our locks held.
 *
 * Who may read
 * ------------
 *
 * perf_event_open() asks for the right to monitor the CPU, and for a file of the cgroup's
 * directory, which anybody can open that sees it. A consumer is asked for the former, as for
 * any event of a CPU, and sees less than that would permit. So no more is asked, also after
 * the member was freed (rb->asks). fdinfo of the consumer shows the path to those whose cgroup
 * namespace has the cgroup.
 */
#include <linux/cgroup.h>
#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/limits.h>
#include <linux/nsproxy.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "../../cgroup/cgroup-internal.h"
#include "internal.h"

/* Members whose cgroup is there. Protected by perf_persistent_mutex. */
static LIST_HEAD(perf_persistent_followers);

static bool perf_persistent_cgroup_is_offline(struct perf_persistent_event *pe)
{
	/* Stored without the mutex */
	return READ_ONCE(pe->event->cgrp->offline);
}

static void perf_persistent_add_follower(struct perf_persistent_event *pe)
{
	struct perf_cgroup *cgrp = pe->event->cgrp;

	lockdep_assert_held(&perf_persistent_mutex);

	list_add(&pe->follower_entry, &perf_persistent_followers);
	/* perf_persistent_cgroup_offline() loads it without the mutex. */
	WRITE_ONCE(cgrp->nr_followers, cgrp->nr_followers + 1);
}

static void perf_persistent_del_follower(struct perf_persistent_event *pe)
{
	struct perf_cgroup *cgrp = pe->event->cgrp;

	lockdep_assert_held(&perf_persistent_mutex);

	list_del_init(&pe->follower_entry);
	WRITE_ONCE(cgrp->nr_followers, cgrp->nr_followers - 1);
}

static void perf_persistent_retire_all(struct work_struct *work)
{
	struct perf_persistent_event *pe, *tmp;
	LIST_HEAD(retired);

	guard(mutex)(&perf_persistent_mutex);

	list_for_each_entry_safe(pe, tmp, &perf_persistent_followers, follower_entry) {
		if (perf_persistent_cgroup_is_offline(pe)) {
			perf_event_retire(pe->event);
			perf_persistent_del_follower(pe);
			list_add_tail(&pe->follower_entry, &retired);
		}
		cond_resched();
	}
	if (list_empty(&retired))
		return;

	synchronize_rcu();
	list_for_each_entry_safe(pe, tmp, &retired, follower_entry) {
		list_del_init(&pe->follower_entry);
		/* C, matches D in perf_persistent_cgroup_gone(): see above */
		smp_store_release(&pe->cgroup_ended, true);
		/* Files of its creator and its readers. */
		wake_up_all(&pe->event->waitq);
	}
}

static DECLARE_WORK(perf_persistent_retire_work, perf_persistent_retire_all);

/**
 * perf_persistent_cgroup_gone - does the event belong to a cgroup that has gone?
 * @pe: the member
 *
 * Context: any; the result may change only from false to true.
 * Return: true if it does, and leaves no record any more.
 */
bool perf_persistent_cgroup_gone(struct perf_persistent_event *pe)
{
	/* D, matches C in perf_persistent_retire_all(): see above */
	return smp_load_acquire(&pe->cgroup_ended);
}

/**
 * perf_persistent_follow_cgroup - an event became a member
 * @pe: the member
 */
void perf_persistent_follow_cgroup(struct perf_persistent_event *pe)
{
	lockdep_assert_held(&perf_persistent_mutex);

	INIT_LIST_HEAD(&pe->follower_entry);
	if (!pe->event->cgrp)
		return;

	perf_persistent_add_follower(pe);
	/* B, matches A in perf_persistent_cgroup_offline(): see above */
	smp_mb();
	if (perf_persistent_cgroup_is_offline(pe))
		schedule_work(&perf_persistent_retire_work);
}

/**
 * perf_persistent_leave_cgroup - an event was taken back from its session
 * @pe: the member
 */
void perf_persistent_leave_cgroup(struct perf_persistent_event *pe)
{
	lockdep_assert_held(&perf_persistent_mutex);

	if (!list_empty(&pe->follower_entry))
		perf_persistent_del_follower(pe);
}

/**
 * perf_persistent_cgroup_offline - a cgroup has gone
 * @cgrp: the cgroup
 *
 * Context: cgroup_mutex is held.
 */
void perf_persistent_cgroup_offline(struct perf_cgroup *cgrp)
{
	WRITE_ONCE(cgrp->offline, true);
	/* A, matches B in perf_persistent_follow_cgroup(): see above */
	smp_mb();
	if (READ_ONCE(cgrp->nr_followers))
		schedule_work(&perf_persistent_retire_work);
}

/**
 * perf_persistent_show_cgroup - show the cgroup of an event, if it has one
 * @m: the file
 * @event: the event
 *
 * Context: takes cgroup_mutex.
 */
void perf_persistent_show_cgroup(struct seq_file *m, struct perf_event *event)
{
	char *path __free(kfree) = NULL;
	struct cgroup *cgrp;
	int len = -ENOMEM;
	u64 id;

	if (!event->cgrp)
		return;

	/* Without memory for the path there is the id. */
	path = kmalloc(PATH_MAX, GFP_KERNEL);

	/* The root of a hierarchy is there while it has the css: see References. */
	cgroup_lock();
	cgrp = event->cgrp->css.cgroup;
	id = cgroup_id(cgrp);
	if (path) {
		spin_lock_irq(&css_set_lock);
		len = cgroup_path_ns_locked(cgrp, path, PATH_MAX, current->nsproxy->cgroup_ns);
		spin_unlock_irq(&css_set_lock);
	}
	cgroup_unlock();

	seq_printf(m, "cgroup_id:\t%llu\ncgroup:\t", id);
	/* Beside the root of the namespace: the names belong to others. Or it was cut off. */
	if (len < 0 || len >= PATH_MAX - 1 || !strcmp(path, "/..") || strstarts(path, "/../"))
		seq_putc(m, '?');
	else
		seq_escape(m, path, "\n\\");
	seq_putc(m, '\n');
}
