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

/* Size of the label of a reserved region, including the terminating NUL. */
#define PERF_PERSISTENT_LABEL_LEN	16

/**
 * struct perf_persistent_arg - argument of %PERF_EVENT_IOC_UNCLAIM
 * @size: sizeof(struct perf_persistent_arg) of the caller
 * @flags: %PERF_PERSISTENT_PARTIAL or 0; unknown bits are refused (EINVAL)
 * @id: in: 0 to create a session, else the id of the session to join;
 *      out: id of the session
 * @name: name of the session to create, [A-Za-z_][A-Za-z0-9_-]*, NUL-terminated;
 *      empty: "event<id>"; when joining: empty, or the name of the session
 * @data_size: size in bytes of the data area of the ring buffer that an event without one
 *      gets, rounded up to a power of two pages; 0: 512 KiB; ignored if it has one
 * @label: when creating: label of the reserved region for such ring buffers, NUL-terminated;
 *      empty: ordinary memory; when joining: empty, or the label of the session's region
 */
struct perf_persistent_arg {
	__u32		size;
	__u32		flags;
	__aligned_u64	id;
	char		name[PERF_PERSISTENT_NAME_LEN];
	__aligned_u64	data_size;
	char		label[PERF_PERSISTENT_LABEL_LEN];
};

/* perf_persistent_arg::flags: the session is still being built */
#define PERF_PERSISTENT_PARTIAL		0x1

#define PERF_PERSISTENT_ARG_SIZE_VER0	80
#define PERF_PERSISTENT_ARG_SIZE_VER1	104	/* up to label */

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
 * @lost: out: records that the buffer has refused because it is frozen
 * @freeze_time: out: time of the freeze by the event's clock, 0 if it is not frozen
 * @flags: out: PERF_PERSISTENT_INFO_* bits
 * @__reserved: out: 0
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
	__aligned_u64	lost;
	__aligned_u64	freeze_time;
	__u32		flags;
	__u32		__reserved;
};

/* perf_persistent_info::flags: what the attr does not tell */
#define PERF_PERSISTENT_INFO_TASK	0x1	/* follows tasks, on one CPU or on all */
#define PERF_PERSISTENT_INFO_FILTER	0x2	/* has a filter */
#define PERF_PERSISTENT_INFO_BPF	0x4	/* has an eBPF program */
#define PERF_PERSISTENT_INFO_CGROUP	0x8	/* follows a cgroup */

/*
 * perf_persistent_info::state, perf_persistent_session_info::state and
 * perf_persistent_entry::state
 */
#define PERF_PERSISTENT_STATE_OFFLINE	0x1	/* CPU is offline */
#define PERF_PERSISTENT_STATE_GONE	0x2	/* its tasks or its cgroup are gone */
#define PERF_PERSISTENT_STATE_DISABLED	0x4	/* disabled by its owner, or in error */
#define PERF_PERSISTENT_STATE_FROZEN	0x8	/* records are refused and counted */
#define PERF_PERSISTENT_STATE_FREEZING	0x10	/* with FROZEN: a last one may be incomplete */
#define PERF_PERSISTENT_STATE_ENDED	0x20	/* of a session: it has ended */

#define PERF_PERSISTENT_INFO_SIZE_VER0	128
#define PERF_PERSISTENT_INFO_SIZE_VER1	144	/* up to freeze_time */
#define PERF_PERSISTENT_INFO_SIZE_VER2	152	/* up to __reserved */

/*
 * perf_event_attr::config1: open the session itself, not one of its events. The CPU is -1.
 */
#define PERF_PERSISTENT_SESSION		(~0ULL)

/**
 * struct perf_persistent_session_info - argument of %PERF_EVENT_IOC_SESSION_INFO
 * @size: sizeof(struct perf_persistent_session_info) of the caller
 * @state: out: PERF_PERSISTENT_STATE_* bits of any of the events, or ENDED
 * @id: out: id of the session
 * @owner_uid: out: owner of the session, in the caller's user namespace
 * @nr_events: out: number of events
 * @nr_buffers: out: number of their ring buffers
 * @freeze_reason: out: %PERF_PERSISTENT_FREEZE_* of the last freeze, 0 if there was none
 * @memory: out: bytes of all buffers, with their header pages
 * @lost: out: records that the buffers have refused because they are frozen
 * @freeze_begin: out: perf's clock when the first buffer was stopped; all earlier records
 *      are in the buffers, except those that were just being written, which are counted
 *      in @lost; this and the times below are 0 if the session is not frozen
 * @freeze_time: out: perf's clock when the last buffer was stopped: the time of the freeze
 * @freeze_mono: out: the same moment by CLOCK_MONOTONIC
 * @freeze_real: out: the same moment by CLOCK_REALTIME
 * @name: out: name of the session
 */
struct perf_persistent_session_info {
	__u32		size;
	__u32		state;
	__aligned_u64	id;
	__u32		owner_uid;
	__u32		nr_events;
	__u32		nr_buffers;
	__u32		freeze_reason;
	__aligned_u64	memory;
	__aligned_u64	lost;
	__aligned_u64	freeze_begin;
	__aligned_u64	freeze_time;
	__aligned_u64	freeze_mono;
	__aligned_u64	freeze_real;
	char		name[PERF_PERSISTENT_NAME_LEN];
};

#define PERF_PERSISTENT_SESSION_INFO_SIZE_VER0	144

/* perf_persistent_session_info::freeze_reason */
#define PERF_PERSISTENT_FREEZE_IOCTL		1	/* %PERF_EVENT_IOC_SESSION_FREEZE */
#define PERF_PERSISTENT_FREEZE_BPF		2	/* bpf_perf_persistent_freeze() */
#define PERF_PERSISTENT_FREEZE_OOPS		3	/* kernel.perf_persistent_freeze: oops */
#define PERF_PERSISTENT_FREEZE_PANIC		4	/* panic */
#define PERF_PERSISTENT_FREEZE_OOM		5	/* oom */
#define PERF_PERSISTENT_FREEZE_HUNG		6	/* hung */
#define PERF_PERSISTENT_FREEZE_STALL		7	/* rcu-stall */
#define PERF_PERSISTENT_FREEZE_LOCKUP		8	/* lockup */

/**
 * struct perf_persistent_entry - an event in the list of a session
 * @cpu: CPU of the event, -1 for an event that follows its task
 * @index: index of the event on its CPU
 * @buffer_index: index of the event whose buffer it writes to
 * @state: PERF_PERSISTENT_STATE_* bits
 * @event_id: the event's id, as %PERF_EVENT_IOC_ID returns it
 * @data_size: size of the data area of the event's ring buffer in bytes
 * @sample_type: perf_event_attr::sample_type of the event, which tells where in a record its
 *      id and its time are
 */
struct perf_persistent_entry {
	__s32		cpu;
	__u32		index;
	__u32		buffer_index;
	__u32		state;
	__aligned_u64	event_id;
	__aligned_u64	data_size;
	__aligned_u64	sample_type;
};

#define PERF_PERSISTENT_ENTRY_SIZE_VER0		32
#define PERF_PERSISTENT_ENTRY_SIZE_VER1		40	/* up to sample_type */

/**
 * struct perf_persistent_list - argument of %PERF_EVENT_IOC_SESSION_LIST
 * @size: sizeof(struct perf_persistent_list) of the caller
 * @entry_size: sizeof(struct perf_persistent_entry) of the caller
 * @nr: in: number of entries there is room for; out: number of events
 * @__reserved: must be 0
 * @entries: in: address of an array of entries, sorted by CPU and index when it returns
 */
struct perf_persistent_list {
	__u32		size;
	__u32		entry_size;
	__u32		nr;
	__u32		__reserved;
	__aligned_u64	entries;
};

#define PERF_PERSISTENT_LIST_SIZE_VER0		24

/*
 * ioctls of perf event file descriptors. The kernel uses only type and number, not
 * the encoded size, so that the structs can grow.
 */
#define PERF_EVENT_IOC_UNCLAIM		_IOWR('$', 32, struct perf_persistent_arg)
#define PERF_EVENT_IOC_CLAIM		_IO('$', 33)
#define PERF_EVENT_IOC_RESERVED_HEAD	_IOWR('$', 34, struct perf_rb_reserved)
#define PERF_EVENT_IOC_PERSISTENT_INFO	_IOWR('$', 35, struct perf_persistent_info)

/* ioctls of the file descriptor of a session. */
#define PERF_EVENT_IOC_SESSION_INFO	_IOWR('$', 36, struct perf_persistent_session_info)
#define PERF_EVENT_IOC_SESSION_LIST	_IOWR('$', 37, struct perf_persistent_list)
#define PERF_EVENT_IOC_SESSION_END	_IO('$', 38)
#define PERF_EVENT_IOC_SESSION_FREEZE	_IO('$', 39)
#define PERF_EVENT_IOC_SESSION_THAW	_IO('$', 40)

#endif /* _UAPI_LINUX_PERF_PERSISTENT_H */
