// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: the ioctls of a creator's fd, and their structs
 *
 * ioctls are told apart by type and number, not by the size that is encoded in them:
 * the structs contain their size, and may grow. Fields that an older program does not
 * know are taken as zero; fields that this kernel does not know must be zero (E2BIG).
 *
 * Nothing here accesses user memory with a lock held.
 */
#include <linux/cred.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "internal.h"

static void perf_persistent_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct perf_persistent_arg) != PERF_PERSISTENT_ARG_SIZE_VER1);
	CHECK_OFFSET(perf_persistent_arg, size, 0);
	CHECK_OFFSET(perf_persistent_arg, flags, 4);
	CHECK_OFFSET(perf_persistent_arg, id, 8);
	CHECK_OFFSET(perf_persistent_arg, name, 16);
	CHECK_OFFSET(perf_persistent_arg, data_size, 80);
	CHECK_OFFSET(perf_persistent_arg, label, 88);

	BUILD_BUG_ON(sizeof(struct perf_persistent_info) != PERF_PERSISTENT_INFO_SIZE_VER2);
	CHECK_OFFSET(perf_persistent_info, size, 0);
	CHECK_OFFSET(perf_persistent_info, state, 4);
	CHECK_OFFSET(perf_persistent_info, id, 8);
	CHECK_OFFSET(perf_persistent_info, index, 16);
	CHECK_OFFSET(perf_persistent_info, nr_events, 20);
	CHECK_OFFSET(perf_persistent_info, cpu, 24);
	CHECK_OFFSET(perf_persistent_info, owner_uid, 28);
	CHECK_OFFSET(perf_persistent_info, data_size, 32);
	CHECK_OFFSET(perf_persistent_info, event_id, 40);
	CHECK_OFFSET(perf_persistent_info, attr_ptr, 48);
	CHECK_OFFSET(perf_persistent_info, attr_size, 56);
	CHECK_OFFSET(perf_persistent_info, buffer_index, 60);
	CHECK_OFFSET(perf_persistent_info, name, 64);
	CHECK_OFFSET(perf_persistent_info, lost, 128);
	CHECK_OFFSET(perf_persistent_info, freeze_time, 136);
	CHECK_OFFSET(perf_persistent_info, flags, 144);
}

static long perf_persistent_ioctl_unclaim(struct perf_event *event, void __user *uarg)
{
	struct perf_persistent_arg __user *u = uarg;
	struct perf_persistent_arg arg = {};
	u32 size, id;
	int err;

	if (!uarg) {
		err = perf_persistent_unclaim(event, &arg, &id);
		return err ? err : (long)id;
	}

	err = perf_persistent_copy_in(&arg, sizeof(arg), PERF_PERSISTENT_ARG_SIZE_VER0, uarg,
				      &size);
	if (err)
		return err;

	if (arg.flags & ~PERF_PERSISTENT_PARTIAL)
		return perf_persistent_refuse(-EINVAL, "an unknown flag");

	if (strnlen(arg.name, sizeof(arg.name)) == sizeof(arg.name))
		return perf_persistent_refuse(-EINVAL, "the name has no end");

	if (!arg.id && *arg.name && !perf_persistent_name_valid(arg.name))
		return perf_persistent_refuse(-EINVAL, "the name is malformed or reserved");

	if (arg.data_size > PERF_PERSISTENT_MAX_SIZE)
		return perf_persistent_refuse(-EINVAL, "the buffer is larger than 1 GiB");

	if (strnlen(arg.label, sizeof(arg.label)) == sizeof(arg.label))
		return perf_persistent_refuse(-EINVAL, "the label has no end");

	/* Before an id is taken. */
	if (!arg.id && put_user(arg.id, &u->id))
		return -EFAULT;

	err = perf_persistent_unclaim(event, &arg, &id);
	if (err)
		return err;

	/* The id of a session that was joined is known. Without its id, a session is useless. */
	if (!arg.id && put_user(id, &u->id)) {
		perf_persistent_claim(event->persistent);
		return -EFAULT;
	}
	return 0;
}

/* A filter or a program can be attached at any time, through the file of the creator. */
static u32 perf_persistent_info_flags(struct perf_persistent_event *pe)
{
	struct perf_event *event = pe->event;
	u32 flags = 0;

	if (pe->target_ns)
		flags |= PERF_PERSISTENT_INFO_TASK;
	if (READ_ONCE(event->prog))
		flags |= PERF_PERSISTENT_INFO_BPF;
	if (!list_empty_careful(&event->addr_filters.list))
		flags |= PERF_PERSISTENT_INFO_FILTER;
#ifdef CONFIG_CGROUP_PERF
	if (event->cgrp)
		flags |= PERF_PERSISTENT_INFO_CGROUP;
#endif
#ifdef CONFIG_EVENT_TRACING
	if (READ_ONCE(event->filter))
		flags |= PERF_PERSISTENT_INFO_FILTER;
#endif
	return flags;
}

static void perf_persistent_fill_info(struct perf_persistent_event *pe,
				      struct perf_persistent_info *info)
{
	struct perf_persistent_session *s = pe->session;
	struct perf_event *event = pe->event;

	info->id = s->id;
	info->index = pe->index;
	info->cpu = pe->cpu;
	info->owner_uid = from_kuid_munged(current_user_ns(), s->owner);
	info->data_size = perf_data_size(pe->rb);
	info->event_id = event->id;
	info->attr_size = sizeof(struct perf_event_attr);
	info->flags = perf_persistent_info_flags(pe);
	info->__reserved = 0;
	strscpy_pad(info->name, s->name);

	guard(mutex)(&perf_persistent_lock);
	info->state = perf_persistent_event_state(pe);
	info->nr_events = perf_persistent_nr_events(s, pe->cpu);
	info->buffer_index = perf_persistent_buffer_index(pe);
	info->lost = local_read(&pe->rb->lost);
	info->freeze_time = perf_persistent_freeze_time(pe);
}

/*
 * Copy the attr to a program that may know less of it: as far as it goes, if the rest is
 * zero.
 */
static int perf_persistent_put_attr(struct perf_event *event, void __user *uattr, u32 room)
{
	struct perf_event_attr attr;

	if (room < PERF_ATTR_SIZE_VER0)
		return perf_persistent_refuse(-E2BIG, "attr_size is too small for any attr");

	perf_persistent_copy_attr(event, &attr);
	if (room < sizeof(attr)) {
		if (memchr_inv((char *)&attr + room, 0, sizeof(attr) - room))
			return perf_persistent_refuse(-E2BIG, "attr_size cuts what is not 0");
		attr.size = room;
	}
	return copy_to_user(uattr, &attr, min_t(size_t, room, sizeof(attr))) ? -EFAULT : 0;
}

/**
 * perf_persistent_info - PERF_EVENT_IOC_PERSISTENT_INFO
 * @pe: the event
 * @uarg: user's struct perf_persistent_info
 *
 * Context: a task; perf_persistent_mutex and perf_persistent_lock are not held.
 * Return: 0, -EFAULT, -EINVAL or -E2BIG.
 */
long perf_persistent_info(struct perf_persistent_event *pe, void __user *uarg)
{
	struct perf_persistent_info info = {};
	u32 size, room;
	int err;

	err = perf_persistent_copy_in(&info, sizeof(info), PERF_PERSISTENT_INFO_SIZE_VER0, uarg,
				      &size);
	if (err)
		return err;

	room = info.attr_size;
	perf_persistent_fill_info(pe, &info);

	/* Also without room for the attr: attr_size says how much it takes. */
	if (copy_to_user(uarg, &info, min_t(size_t, size, sizeof(info))))
		return -EFAULT;

	if (!info.attr_ptr)
		return 0;

	return perf_persistent_put_attr(pe->event, u64_to_user_ptr(info.attr_ptr), room);
}

/**
 * perf_persistent_ioctl - the ioctls of a creator's fd
 * @event: its event
 * @cmd: the ioctl
 * @arg: its argument
 *
 * Return: -ENOIOCTLCMD if the ioctl is not one of persistent events
 */
long perf_persistent_ioctl(struct perf_event *event, unsigned int cmd, unsigned long arg)
{
	void __user *uarg = (void __user *)arg;
	struct perf_persistent_event *pe;

	perf_persistent_check_abi();

	if (_IOC_TYPE(cmd) != _IOC_TYPE(PERF_EVENT_IOC_UNCLAIM))
		return -ENOIOCTLCMD;

	/* B, matches A in perf_persistent_attach(): see "Ordering" in member.c */
	pe = smp_load_acquire(&event->persistent);

	switch (_IOC_NR(cmd)) {
	case _IOC_NR(PERF_EVENT_IOC_UNCLAIM):
		return perf_persistent_ioctl_unclaim(event, uarg);
	case _IOC_NR(PERF_EVENT_IOC_CLAIM):
		if (!pe)
			return perf_persistent_refuse(-EINVAL, "the event is no member");
		return perf_persistent_claim(pe);
	case _IOC_NR(PERF_EVENT_IOC_PERSISTENT_INFO):
		if (!pe)
			return perf_persistent_refuse(-EINVAL, "the event is no member");
		return perf_persistent_info(pe, uarg);
	default:
		return -ENOIOCTLCMD;
	}
}
