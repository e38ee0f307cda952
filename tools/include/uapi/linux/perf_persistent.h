/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Perf flight recorder: the ABI of persistent events and of reading a backward
 * ring buffer while it is being written.
 *
 * See Documentation/userspace-api/perf_persistent.rst.
 */
#ifndef _UAPI_LINUX_PERF_PERSISTENT_H
#define _UAPI_LINUX_PERF_PERSISTENT_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Size of a session's name, including the terminating NUL. */
#define PERF_PERSISTENT_NAME_LEN	64

/**
 * struct perf_persistent_arg - argument of %PERF_EVENT_IOC_UNCLAIM
 * @size: sizeof(struct perf_persistent_arg) of the caller
 * @flags: %PERF_PERSISTENT_PARTIAL or 0; unknown bits are refused (EINVAL)
 * @id: in: 0 to create a session, else the id of the session to join;
 *      out: id of the session
 * @name: name of the session to create, [A-Za-z_][A-Za-z0-9_-]*, NUL-terminated;
 *      empty: "event<id>"; when joining: empty, or the name of the session
 */
struct perf_persistent_arg {
	__u32		size;
	__u32		flags;
	__aligned_u64	id;
	char		name[PERF_PERSISTENT_NAME_LEN];
};

/* perf_persistent_arg::flags: the session is still being built */
#define PERF_PERSISTENT_PARTIAL		0x1

#define PERF_PERSISTENT_ARG_SIZE_VER0	80

/**
 * struct perf_rb_reserved - argument of %PERF_EVENT_IOC_RESERVED_HEAD
 * @head: in: data_head of the header page, read before the copy
 * @behind: out: bytes that the kernel has reserved below @head since then
 * @data_size: out: size of the buffer's data area in bytes
 * @__reserved: must be 0
 */
struct perf_rb_reserved {
	__aligned_u64	head;
	__aligned_u64	behind;
	__aligned_u64	data_size;
	__aligned_u64	__reserved;
};

/**
 * struct perf_persistent_info - argument of %PERF_EVENT_IOC_PERSISTENT_INFO
 * @size: sizeof(struct perf_persistent_info) of the caller
 * @state: out: PERF_PERSISTENT_STATE_* bits; 0: the event is running
 * @id: out: id of the session
 * @index: out: index of this event on its CPU, starting at 0
 * @nr_events: out: number of indices used on that CPU so far; an event with a lower
 *      index may have been claimed (ENOENT)
 * @cpu: out: CPU of the event, -1 for an event that follows its task
 * @owner_uid: out: owner of the session, in the caller's user namespace
 * @data_size: out: size of the data area of the event's ring buffer in bytes
 * @event_id: out: the event's id, as %PERF_EVENT_IOC_ID returns it
 * @attr_ptr: in: address to copy the event's perf_event_attr to, or 0;
 *      user pointers in the copy are 0
 * @attr_size: in: size of the memory at @attr_ptr; out: size of the attr
 * @buffer_index: out: index of the event whose buffer this event writes to
 * @name: out: name of the session
 */
struct perf_persistent_info {
	__u32		size;
	__u32		state;
	__aligned_u64	id;
	__u32		index;
	__u32		nr_events;
	__s32		cpu;
	__u32		owner_uid;
	__aligned_u64	data_size;
	__aligned_u64	event_id;
	__aligned_u64	attr_ptr;
	__u32		attr_size;
	__u32		buffer_index;
	char		name[PERF_PERSISTENT_NAME_LEN];
};

/* perf_persistent_info::state */
#define PERF_PERSISTENT_STATE_OFFLINE	0x1	/* CPU is offline */
#define PERF_PERSISTENT_STATE_GONE	0x2	/* target task is gone */
#define PERF_PERSISTENT_STATE_DISABLED	0x4	/* disabled by its owner, or in error */

#define PERF_PERSISTENT_INFO_SIZE_VER0	128

/*
 * ioctls of perf event file descriptors. The kernel uses only type and number, not
 * the encoded size, so that the structs can grow.
 */
#define PERF_EVENT_IOC_UNCLAIM		_IOWR('$', 32, struct perf_persistent_arg)
#define PERF_EVENT_IOC_CLAIM		_IO('$', 33)
#define PERF_EVENT_IOC_RESERVED_HEAD	_IOWR('$', 34, struct perf_rb_reserved)
#define PERF_EVENT_IOC_PERSISTENT_INFO	_IOWR('$', 35, struct perf_persistent_info)

#endif /* _UAPI_LINUX_PERF_PERSISTENT_H */
