// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: a session as a file
 *
 * perf_event_open() with type PERF_TYPE_PERSISTENT and config1 PERF_PERSISTENT_SESSION
 * returns the file of a session. Its ioctls act on all events of the session in one call:
 * SESSION_INFO, SESSION_LIST, SESSION_END, SESSION_FREEZE and SESSION_THAW. It cannot be
 * used to read a buffer: for this, an event must be opened, with all checks.
 *
 * perf_persistent_may_look() tells who may open a session. The permission to end or stop
 * it is checked at the call, see perf_persistent_may_end(): if the file is passed to another
 * process, that process may look at the session, but not destroy it. The LSM is asked about
 * each event, when the session is opened and when it is ended or stopped.
 *
 * The file has a reference on the session and none on its events, so it keeps no buffer.
 * After the session has ended, SESSION_INFO returns ENDED, and the list is empty.
 *
 * poll() is per file. EPOLLIN: since the last report, a member was added or claimed, or the
 * session was frozen or thawed. EPOLLHUP: the session has ended. As in reader.c, the count
 * of changes is incremented before session->waitq is woken, and poll() reads it after it
 * has registered there. epoll is notified in addition: see perf_persistent_woken().
 *
 * No user memory is accessed with a lock held. The list is built in kernel memory, whose
 * size is limited by the number of events, and which is charged to the caller.
 */
#include <linux/anon_inodes.h>
#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/**
 * struct perf_persistent_session_file - an open session
 * @session: the session, with a reference
 * @changes: session->changes when poll() last reported EPOLLIN
 * @again: EPOLLIN is to be reported once more, see perf_persistent_woken()
 */
struct perf_persistent_session_file {
	struct perf_persistent_session	*session;
	atomic_t			changes;
	atomic_t			again;
};

static void perf_persistent_check_session_abi(void)
{
	BUILD_BUG_ON(sizeof(struct perf_persistent_session_info) !=
		     PERF_PERSISTENT_SESSION_INFO_SIZE_VER0);
	CHECK_OFFSET(perf_persistent_session_info, size, 0);
	CHECK_OFFSET(perf_persistent_session_info, state, 4);
	CHECK_OFFSET(perf_persistent_session_info, id, 8);
	CHECK_OFFSET(perf_persistent_session_info, owner_uid, 16);
	CHECK_OFFSET(perf_persistent_session_info, nr_events, 20);
	CHECK_OFFSET(perf_persistent_session_info, nr_buffers, 24);
	CHECK_OFFSET(perf_persistent_session_info, freeze_reason, 28);
	CHECK_OFFSET(perf_persistent_session_info, memory, 32);
	CHECK_OFFSET(perf_persistent_session_info, lost, 40);
	CHECK_OFFSET(perf_persistent_session_info, freeze_begin, 48);
	CHECK_OFFSET(perf_persistent_session_info, freeze_time, 56);
	CHECK_OFFSET(perf_persistent_session_info, freeze_mono, 64);
	CHECK_OFFSET(perf_persistent_session_info, freeze_real, 72);
	CHECK_OFFSET(perf_persistent_session_info, name, 80);

	BUILD_BUG_ON(sizeof(struct perf_persistent_list) != PERF_PERSISTENT_LIST_SIZE_VER0);
	CHECK_OFFSET(perf_persistent_list, size, 0);
	CHECK_OFFSET(perf_persistent_list, entry_size, 4);
	CHECK_OFFSET(perf_persistent_list, nr, 8);
	CHECK_OFFSET(perf_persistent_list, __reserved, 12);
	CHECK_OFFSET(perf_persistent_list, entries, 16);

	BUILD_BUG_ON(sizeof(struct perf_persistent_entry) != PERF_PERSISTENT_ENTRY_SIZE_VER1);
	CHECK_OFFSET(perf_persistent_entry, cpu, 0);
	CHECK_OFFSET(perf_persistent_entry, index, 4);
	CHECK_OFFSET(perf_persistent_entry, buffer_index, 8);
	CHECK_OFFSET(perf_persistent_entry, state, 12);
	CHECK_OFFSET(perf_persistent_entry, event_id, 16);
	CHECK_OFFSET(perf_persistent_entry, data_size, 24);
	CHECK_OFFSET(perf_persistent_entry, sample_type, 32);
}

static void perf_persistent_fill_session(struct perf_persistent_session *s,
					 struct perf_persistent_session_info *info)
{
	struct perf_persistent_event *pe;
	unsigned long key, walk;

	guard(mutex)(&perf_persistent_lock);

	info->id = s->id;
	info->owner_uid = from_kuid_munged(current_user_ns(), s->owner);
	info->freeze_reason = perf_persistent_freeze_reason(s);
	strscpy_pad(info->name, s->name);

	walk = perf_persistent_start_walk();
	xa_for_each(&s->events, key, pe) {
		info->nr_events++;
		/* The bits of a freeze come with its times: see below. */
		info->state |= perf_persistent_event_state(pe) &
			       ~(PERF_PERSISTENT_STATE_FROZEN | PERF_PERSISTENT_STATE_FREEZING);
		if (perf_persistent_first_visit(pe->rb, walk)) {
			info->nr_buffers++;
			info->memory += perf_data_size(pe->rb) + PAGE_SIZE;
			info->lost += local_read(&pe->rb->lost);
		}
		cond_resched();
	}

	if (s->state == PERF_PERSISTENT_ENDED)
		info->state = PERF_PERSISTENT_STATE_ENDED;
	else
		perf_persistent_fill_freeze(s, info);
}

static long perf_persistent_session_info(struct perf_persistent_session *s, void __user *uarg)
{
	struct perf_persistent_session_info info = {}, fresh = {};
	u32 size;
	int err;

	err = perf_persistent_copy_in(&info, sizeof(info), PERF_PERSISTENT_SESSION_INFO_SIZE_VER0,
				      uarg, &size);
	if (err)
		return err;

	fresh.size = info.size;
	perf_persistent_fill_session(s, &fresh);
	if (copy_to_user(uarg, &fresh, min_t(size_t, size, sizeof(fresh))))
		return -EFAULT;
	return 0;
}

/* The list as the kernel makes it: @nr of @room entries */
struct perf_persistent_listing {
	struct perf_persistent_entry	*entries;
	u32				room;
	u32				nr;
};

/* Counts all events, and fills in as many as there is room for. */
static void perf_persistent_fill_list(struct perf_persistent_session *s,
				      struct perf_persistent_listing *list)
{
	struct perf_persistent_event *pe;
	unsigned long key, walk;

	guard(mutex)(&perf_persistent_lock);

	list->nr = 0;
	walk = perf_persistent_start_walk();
	xa_for_each(&s->events, key, pe) {
		if (list->nr < list->room) {
			/* The members of a buffer have one CPU, and come by their index. */
			if (perf_persistent_first_visit(pe->rb, walk))
				pe->rb->walk_index = pe->index;
			list->entries[list->nr] = (struct perf_persistent_entry) {
				.cpu		= pe->cpu,
				.index		= pe->index,
				.buffer_index	= pe->rb->walk_index,
				.state		= perf_persistent_event_state(pe),
				.event_id	= pe->event->id,
				.data_size	= perf_data_size(pe->rb),
				.sample_type	= pe->event->attr.sample_type,
			};
		}
		list->nr++;
		cond_resched();
	}
}

static int perf_persistent_copy_list(const struct perf_persistent_listing *list, u32 size,
				     char __user *entries)
{
	const u32 ksize = sizeof(*list->entries), known = min(size, ksize);
	u32 i, nr = min(list->nr, list->room);

	if (size == ksize)
		return copy_to_user(entries, list->entries, (size_t)nr * ksize) ? -EFAULT : 0;

	/* The caller knows a smaller entry, or a larger one. */
	for (i = 0; i < nr; i++, entries += size) {
		if (copy_to_user(entries, &list->entries[i], known) ||
		    clear_user(entries + known, size - known))
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

static long perf_persistent_session_list(struct perf_persistent_session *s, void __user *uarg)
{
	struct perf_persistent_listing list = {};
	struct perf_persistent_list __user *u = uarg;
	struct perf_persistent_list arg = {};
	u32 size, room;
	int err;

	err = perf_persistent_copy_in(&arg, sizeof(arg), PERF_PERSISTENT_LIST_SIZE_VER0, uarg,
				      &size);
	if (err)
		return err;

	if (arg.__reserved)
		return perf_persistent_refuse(-EINVAL, "__reserved is not 0");

	if (arg.entry_size < PERF_PERSISTENT_ENTRY_SIZE_VER0 || arg.entry_size > PAGE_SIZE)
		return perf_persistent_refuse(-EINVAL, "entry_size is too small or too large");

	/* The number of events, and then the events; others may join in between. */
	do {
		kvfree(list.entries);
		list.entries = NULL;
		list.room = 0;
		perf_persistent_fill_list(s, &list);
		room = min(list.nr, arg.nr);
		if (!room)
			break;

		list.entries = kvcalloc(room, sizeof(*list.entries), GFP_KERNEL_ACCOUNT);
		if (!list.entries)
			return -ENOMEM;
		list.room = room;
		perf_persistent_fill_list(s, &list);
	} while (list.nr > list.room && arg.nr > list.room);

	err = perf_persistent_copy_list(&list, arg.entry_size, u64_to_user_ptr(arg.entries));
	kvfree(list.entries);
	if (err)
		return err;

	if (put_user(list.nr, &u->nr))
		return -EFAULT;
	return list.nr > arg.nr ? -E2BIG : 0;
}

static long perf_persistent_control(struct perf_persistent_session *s,
				    int (*verb)(struct perf_persistent_session *s))
{
	return perf_persistent_may_control(s) ?: verb(s);
}

static long perf_persistent_session_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct perf_persistent_session_file *sf = file->private_data;
	struct perf_persistent_session *s = sf->session;
	void __user *uarg = (void __user *)arg;

	perf_persistent_check_session_abi();

	if (_IOC_TYPE(cmd) != _IOC_TYPE(PERF_EVENT_IOC_SESSION_INFO))
		return -ENOTTY;

	switch (_IOC_NR(cmd)) {
	case _IOC_NR(PERF_EVENT_IOC_SESSION_INFO):
		return perf_persistent_session_info(s, uarg);
	case _IOC_NR(PERF_EVENT_IOC_SESSION_LIST):
		return perf_persistent_session_list(s, uarg);
	case _IOC_NR(PERF_EVENT_IOC_SESSION_END):
		return perf_persistent_control(s, perf_persistent_end_all);
	case _IOC_NR(PERF_EVENT_IOC_SESSION_FREEZE):
		return perf_persistent_control(s, perf_persistent_freeze);
	case _IOC_NR(PERF_EVENT_IOC_SESSION_THAW):
		return perf_persistent_control(s, perf_persistent_thaw);
	default:
		return perf_blackbox_ioctl(s, cmd, uarg);
	}
}

static __poll_t perf_persistent_session_poll(struct file *file, poll_table *wait)
{
	struct perf_persistent_session_file *sf = file->private_data;
	struct perf_persistent_session *s = sf->session;
	__poll_t events = 0;
	int changes;

	poll_wait(file, &s->waitq, wait);

	/* Matches the release in perf_persistent_session_changed() */
	changes = atomic_read_acquire(&s->changes);
	if (READ_ONCE(s->state) == PERF_PERSISTENT_ENDED)
		events |= EPOLLHUP;
	if (perf_persistent_woken(&sf->changes, &sf->again, changes, wait))
		events |= EPOLLIN | EPOLLRDNORM;

	return events;
}

static int perf_persistent_session_close(struct inode *inode, struct file *file)
{
	struct perf_persistent_session_file *sf = file->private_data;

	kobject_put(&sf->session->kobj);
	kfree(sf);
	return 0;
}

static void perf_persistent_session_fdinfo(struct seq_file *m, struct file *file)
{
	struct perf_persistent_session_file *sf = file->private_data;

	seq_printf(m, "perf_persistent_session:\t%u\n", sf->session->id);
}

static const struct file_operations perf_persistent_session_fops = {
	.owner		= THIS_MODULE,
	.release	= perf_persistent_session_close,
	.poll		= perf_persistent_session_poll,
	.unlocked_ioctl	= perf_persistent_session_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.show_fdinfo	= perf_persistent_session_fdinfo,
};

/**
 * perf_persistent_open_session - perf_event_open() of a session
 * @attr: its id (config)
 * @f_flags: of the file
 *
 * Return: an fd
 */
int perf_persistent_open_session(const struct perf_event_attr *attr, int f_flags)
{
	struct perf_persistent_session_file *sf;
	struct perf_persistent_session *s;
	int fd;

	s = perf_persistent_get(attr->config);
	if (IS_ERR(s))
		return PTR_ERR(s);

	fd = perf_persistent_ask_lsm(s, security_perf_event_read);
	if (fd)
		goto err_put;

	fd = -ENOMEM;
	sf = kzalloc(sizeof(*sf), PERF_PERSISTENT_GFP);
	if (!sf)
		goto err_put;

	sf->session = s;
	atomic_set(&sf->changes, atomic_read(&s->changes));

	fd = anon_inode_getfd("[perf_persistent_session]", &perf_persistent_session_fops, sf,
			      f_flags);
	if (fd < 0)
		goto err_free;
	return fd;

err_free:
	kfree(sf);
err_put:
	kobject_put(&s->kobj);
	return fd;
}
