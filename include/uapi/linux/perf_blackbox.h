/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Perf flight recorder: the image of a black box
 *
 * A black box image describes persistent sessions, so that they can be read without the kernel
 * that recorded them, and without its debug information. It holds sessions in memory that
 * survives a reset: half of a region that was reserved with reserve_mem=SIZE:ALIGN:LABEL. A
 * *scattered* image leads to the sessions in the memory of the kernel: for a crash dump.
 *
 * See Documentation/userspace-api/perf_blackbox.rst.
 *
 * Byte order and the width of a long are those of the kernel that wrote the image. All
 * offsets are bytes from the start of the image, unless the comment says otherwise. Entries
 * are as large as the superblock says, which may be more than the sizes below: a later
 * kernel adds fields at the end. Reserved fields are 0.
 *
 * CRCs are CRC-32 as of zlib's crc32() and IEEE 802.3. A reader must not use what its CRC
 * does not match, and must check each offset and size against the size of the image.
 */
#ifndef _UAPI_LINUX_PERF_BLACKBOX_H
#define _UAPI_LINUX_PERF_BLACKBOX_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* perf_blackbox_super::magic: "PERFBBOX" in memory, if little-endian */
#define PERF_BLACKBOX_MAGIC		0x584f424246524550ULL

/* perf_blackbox_super::version; a reader refuses others */
#define PERF_BLACKBOX_VERSION		1

/**
 * struct perf_blackbox_clock - one moment, by three clocks, in nanoseconds
 * @perf: clock of the records: the kernel's sched_clock(), perf's default
 * @mono: CLOCK_MONOTONIC
 * @real: CLOCK_REALTIME; wrong until something has set it, usually early at boot
 */
struct perf_blackbox_clock {
	__u64		perf;
	__u64		mono;
	__u64		real;
};

#define PERF_BLACKBOX_CLOCK_SIZE	24

/**
 * struct perf_blackbox_super - start of the image; written once, when the image is made
 * @magic: %PERF_BLACKBOX_MAGIC
 * @version: %PERF_BLACKBOX_VERSION
 * @size: of this struct in bytes, @crc included
 * @phys: physical address of the image
 * @image_size: size of the image in bytes
 * @region_phys: physical address of the region
 * @region_size: size of the region in bytes; may exceed both halves by what alignment leaves
 * @generation: greater than that of every image that was in the region before
 * @boot_uuid: random; the images of one boot have the same. Not the boot_id in /proc.
 * @clock: when the image was made
 * @page_size: of the kernel, in bytes
 * @long_size: sizeof(long) of the kernel: width of the words in its ring buffers' state
 * @nr_cpus: CPUs that were possible
 * @machine: ELF machine (EM_*) of the kernel, 0 if unknown
 * @text: address of _text in the running kernel; differs from System.map by KASLR's offset
 * @text_end: address of _etext in the running kernel
 * @build_id: of the kernel, @build_id_size bytes
 * @build_id_size: 0 if the kernel has none
 * @life: offset of struct perf_blackbox_life: %PERF_BLACKBOX_LIFE_OFFSET
 * @death: offset of struct perf_blackbox_death
 * @tasks: offset of an array of @max_tasks struct perf_blackbox_task
 * @sessions: offset of an array of @max_sessions struct perf_blackbox_session
 * @buffers: offset of an array of @max_buffers struct perf_blackbox_buffer
 * @events: offset of an array of @max_events struct perf_blackbox_event
 * @max_tasks: entries at @tasks
 * @max_sessions: entries at @sessions
 * @max_buffers: entries at @buffers
 * @max_events: entries at @events
 * @task_size: size of an entry at @tasks
 * @session_size: size of an entry at @sessions
 * @buffer_size: size of an entry at @buffers
 * @event_size: size of an entry at @events
 * @heap: offset of the memory of the notes and the ring buffers; it ends with the image
 * @release: of the kernel, as uname -r, NUL-terminated
 * @kernel_version: of the kernel, as uname -v, NUL-terminated
 * @label: of the region, NUL-terminated
 * @linear_map: address that the kernel has for physical address 0 in its linear mapping; in a
 *	scattered image only
 * @flags: PERF_BLACKBOX_SUPER_*
 * @__reserved: 0
 * @crc: over the bytes before it; it is the last word of this struct
 */
struct perf_blackbox_super {
	__u64				magic;
	__u32				version;
	__u32				size;
	__u64				phys;
	__u64				image_size;
	__u64				region_phys;
	__u64				region_size;
	__u64				generation;
	__u8				boot_uuid[16];
	struct perf_blackbox_clock	clock;
	__u32				page_size;
	__u32				long_size;
	__u32				nr_cpus;
	__u32				machine;
	__u64				text;
	__u64				text_end;
	__u8				build_id[20];
	__u32				build_id_size;
	__u64				life;
	__u64				death;
	__u64				tasks;
	__u64				sessions;
	__u64				buffers;
	__u64				events;
	__u32				max_tasks;
	__u32				max_sessions;
	__u32				max_buffers;
	__u32				max_events;
	__u32				task_size;
	__u32				session_size;
	__u32				buffer_size;
	__u32				event_size;
	__u64				heap;
	char				release[64];
	char				kernel_version[64];
	char				label[16];
	__u64				linear_map;
	__u32				flags;
	__u8				__reserved[112];
	__u32				crc;
};

#define PERF_BLACKBOX_SUPER_SIZE	512

/* perf_blackbox_super::flags */
#define PERF_BLACKBOX_SUPER_SCATTERED	0x1	/* see struct perf_blackbox_part */

/*
 * perf_blackbox_super::life. In all versions, the first fields up to @generation, the size and
 * the place of the CRC, and struct perf_blackbox_life with its place are the same.
 */
#define PERF_BLACKBOX_LIFE_OFFSET	1024

/**
 * struct perf_blackbox_life - what became of the kernel that wrote the image
 * @state: PERF_BLACKBOX_LIVE, _CLEAN, _DEAD or _RELEASED; not covered by a CRC
 * @__reserved: 0
 */
struct perf_blackbox_life {
	__u32		state;
	__u32		__reserved[15];
};

#define PERF_BLACKBOX_LIFE_SIZE		64

/*
 * perf_blackbox_life::state. What a reader finds after a reset:
 *
 *	LIVE		the machine was reset without a word: a death, without its reason
 *	CLEAN		it was shut down, or restarted, in order
 *	DEAD		it panicked, or started the crash kernel: struct perf_blackbox_death
 *	RELEASED	a later kernel was told that it may write over the image
 */
#define PERF_BLACKBOX_LIVE		1
#define PERF_BLACKBOX_CLEAN		2
#define PERF_BLACKBOX_DEAD		3
#define PERF_BLACKBOX_RELEASED		4

/* state of an entry: 0 is free */
#define PERF_BLACKBOX_VALID		1

/**
 * struct perf_blackbox_death - the last act of the kernel; written once, at its death
 * @state: %PERF_BLACKBOX_VALID, written last
 * @crc: over the bytes from @kind up to the end of this struct
 * @kind: PERF_BLACKBOX_DEATH_*
 * @cpu: where it happened
 * @pid: of the task that was running there, in the initial pid namespace
 * @tgid: of its process
 * @clock: when
 * @comm: of the task, NUL-terminated
 * @nr_tasks: entries of the table of tasks that are filled in
 * @tasks_lost: 1 if tasks are missing: the table had no room, or the list was damaged
 * @tasks_crc: over @nr_tasks entries of the table
 * @__reserved: 0
 * @reason: the message of the panic or oops, NUL-terminated, may be empty
 */
struct perf_blackbox_death {
	__u32				state;
	__u32				crc;
	__u32				kind;
	__s32				cpu;
	__s32				pid;
	__s32				tgid;
	struct perf_blackbox_clock	clock;
	char				comm[16];
	__u32				nr_tasks;
	__u32				tasks_lost;
	__u32				tasks_crc;
	__u32				__reserved;
	char				reason[256];
};

#define PERF_BLACKBOX_DEATH_SIZE	336

/* perf_blackbox_death::kind */
#define PERF_BLACKBOX_DEATH_PANIC	1	/* panic() */
#define PERF_BLACKBOX_DEATH_CRASH	2	/* the crash kernel was started without panic() */

/**
 * struct perf_blackbox_task - a task that was alive at the death of the kernel
 * @pid: thread id in the initial pid namespace
 * @tgid: process id in the initial pid namespace
 * @flags: PERF_BLACKBOX_TASK_*
 * @__reserved: 0
 * @comm: its name, NUL-terminated
 */
struct perf_blackbox_task {
	__s32		pid;
	__s32		tgid;
	__u32		flags;
	__u32		__reserved;
	char		comm[16];
};

#define PERF_BLACKBOX_TASK_SIZE		32

/* perf_blackbox_task::flags */
#define PERF_BLACKBOX_TASK_KERNEL	0x1	/* a kernel thread */

/**
 * struct perf_blackbox_session - a persistent session; written when it is made
 * @state: %PERF_BLACKBOX_VALID, written last; 0: free
 * @crc: over the bytes from @id up to the end of this struct
 * @id: of the session, unique within one boot
 * @owner_uid: in the initial user namespace
 * @clock: when it was made
 * @notes: offset of two slots for notes, see struct perf_blackbox_notes; page aligned. 0 in a
 *	scattered image
 * @notes_size: size of each slot in bytes; the second is at @notes + @notes_size
 * @name: NUL-terminated
 * @__reserved: 0
 */
struct perf_blackbox_session {
	__u32				state;
	__u32				crc;
	__u32				id;
	__u32				owner_uid;
	struct perf_blackbox_clock	clock;
	__u64				notes;
	__u64				notes_size;
	char				name[64];
	__u64				__reserved;
};

#define PERF_BLACKBOX_SESSION_SIZE	128

/**
 * struct perf_blackbox_buffer - a ring buffer; written when it is allocated
 * @state: %PERF_BLACKBOX_VALID, written last; 0: free
 * @crc: over the bytes from @cpu up to the end of this struct
 * @cpu: that writes to it, -1: that on which the task of its event runs
 * @flags: PERF_BLACKBOX_BUFFER_*
 * @rb: offset of the kernel's struct perf_buffer, the writers' state of the ring buffer
 * @user_page: offset of the header page, struct perf_event_mmap_page
 * @data: offset of the data pages; they are contiguous
 * @data_size: size of the data in bytes, a power of two
 * @rb_size: size of struct perf_buffer
 * @rb_head: offset in struct perf_buffer of the reserved head: long_size bytes
 * @rb_nest: offset in struct perf_buffer of the number of nested writers: 4 bytes
 * @rb_lost: offset in struct perf_buffer of the number of lost records: long_size bytes;
 *	after a death these include the ones that came when the buffer was paused
 * @rb_paused: offset in struct perf_buffer of the flag "takes no records": 4 bytes
 * @__reserved: 0
 *
 * Writers move the reserved head first, then store the record, and then publish
 * perf_event_mmap_page::data_head. Let behind be the number of bytes by which the reserved
 * head is ahead of data_head: data_head - head if the buffer is BACKWARD, head - data_head
 * otherwise, modulo 2^(8 * long_size). A record that was being stored at the death lies in
 * these bytes, which the oldest records occupied before. Hence data_size - behind bytes are
 * intact: those from data_head upwards if the buffer is BACKWARD, newest first, otherwise
 * those below data_head, newest last. If behind exceeds data_size, none is. Positions are
 * taken modulo data_size. As the buffer starts zeroed at position 0, no more than -data_head
 * (BACKWARD) or data_head bytes were ever written.
 */
struct perf_blackbox_buffer {
	__u32		state;
	__u32		crc;
	__s32		cpu;
	__u32		flags;
	__u64		rb;
	__u64		user_page;
	__u64		data;
	__u64		data_size;
	__u32		rb_size;
	__u32		rb_head;
	__u32		rb_nest;
	__u32		rb_lost;
	__u32		rb_paused;
	__u32		__reserved[7];
};

#define PERF_BLACKBOX_BUFFER_SIZE	96

/*
 * perf_blackbox_buffer::flags
 *
 *	BACKWARD	written from high to low positions
 *	SCATTERED	@rb, @user_page and @data are physical addresses. At @data are addresses
 *			of pages in the linear mapping, one word each: less
 *			perf_blackbox_super::linear_map they are physical.
 */
#define PERF_BLACKBOX_BUFFER_BACKWARD	0x1
#define PERF_BLACKBOX_BUFFER_SCATTERED	0x2

/**
 * struct perf_blackbox_event - an event; written when it becomes a member of its session
 * @state: %PERF_BLACKBOX_VALID, written last; 0: free
 * @crc: over the bytes from @id up to the end of this struct
 * @id: of the event: in its records, PERF_SAMPLE_IDENTIFIER
 * @session: index of its session in the array at perf_blackbox_super::sessions
 * @buffer: index of its buffer in the array at perf_blackbox_super::buffers
 * @cpu: of the event, -1 if it follows a task
 * @index: of the event on its CPU, as in struct perf_persistent_entry
 * @attr_size: bytes of @attr that are filled in
 * @__reserved: 0
 * @pmu: name of its PMU ("software", "tracepoint", ..), NUL-terminated, may be cut
 * @name: SUBSYS:EVENT of a tracepoint, else empty; NUL-terminated
 * @attr: its struct perf_event_attr, without pointers
 */
struct perf_blackbox_event {
	__u32		state;
	__u32		crc;
	__u64		id;
	__u32		session;
	__u32		buffer;
	__s32		cpu;
	__u32		index;
	__u32		attr_size;
	__u32		__reserved;
	char		pmu[32];
	char		name[184];
	__u8		attr[256];
};

#define PERF_BLACKBOX_EVENT_SIZE	512

/*
 * A scattered image consists of parts of %PERF_BLACKBOX_PART_SIZE bytes, linked by physical
 * addresses: 0 is none. All begin with struct perf_blackbox_part.
 *
 *	ROOT	the superblock in place of struct perf_blackbox_part; the life, and the death;
 *		at %PERF_BLACKBOX_ROOT_LINKS_OFFSET struct perf_blackbox_root_links. It lies in the
 *		kernel's image. The superblock has no sizes of arrays but that of the tasks.
 *	SESSION	struct perf_blackbox_session; its notes are at @links
 *	EVENTS	as many struct perf_blackbox_member as fit
 *	NOTES	physical addresses of the pages of a slot, 8 bytes each, in order; 0 ends them
 *
 * Parts come and go while the machine lives: a reader must check magic, address and kind of each.
 */
#define PERF_BLACKBOX_PART_SIZE		4096

/* perf_blackbox_part::magic: "PERFPART" in memory, if little-endian */
#define PERF_BLACKBOX_PART_MAGIC	0x5452415046524550ULL

/* perf_blackbox_part::kind */
#define PERF_BLACKBOX_PART_SESSION	1
#define PERF_BLACKBOX_PART_EVENTS	2
#define PERF_BLACKBOX_PART_NOTES	3

/**
 * struct perf_blackbox_part - start of a part of a scattered image
 * @magic: %PERF_BLACKBOX_PART_MAGIC
 * @phys: physical address of the part
 * @kind: PERF_BLACKBOX_PART_*
 * @session: perf_blackbox_session::id of the session that it belongs to
 * @next: SESSION: another session; EVENTS, NOTES: more of the same
 * @events: SESSION: its first part of events
 * @notes: SESSION: of each slot for notes, its first part
 * @own: means nothing to readers
 */
struct perf_blackbox_part {
	__u64		magic;
	__u64		phys;
	__u32		kind;
	__u32		session;
	__u64		next;
	__u64		events;
	__u64		notes[2];
	__u64		own;
};

#define PERF_BLACKBOX_PART_HEAD_SIZE	64

/**
 * struct perf_blackbox_member - an event of a scattered image, with its ring buffer
 * @event: the event; @session and @buffer are 0
 * @buffer: its ring buffer, which other events may have as well
 *
 * If @event is free, so is @buffer.
 */
struct perf_blackbox_member {
	struct perf_blackbox_event	event;
	struct perf_blackbox_buffer	buffer;
};

#define PERF_BLACKBOX_MEMBER_SIZE	608

/**
 * struct perf_blackbox_root_links - where the parts of a scattered image begin
 * @sessions: the newest session
 * @tasks: table of perf_blackbox_super::max_tasks tasks, contiguous
 * @__reserved: 0
 */
struct perf_blackbox_root_links {
	__u64		sessions;
	__u64		tasks;
	__u64		__reserved[6];
};

#define PERF_BLACKBOX_ROOT_LINKS_SIZE	64
#define PERF_BLACKBOX_ROOT_LINKS_OFFSET	3072

/*
 * Notes: what user space wants to be found with a session, as records of perf.data one after
 * the other (PERF_RECORD_MMAP2, COMM, FORK, the HEADER_BUILD_ID kind, ..). The kernel does not
 * look at them.
 *
 * A session has two slots. A slot is struct perf_blackbox_notes, the base, and additions, each
 * struct perf_blackbox_addition and its bytes. Base and additions start at multiples of 8.
 * %PERF_EVENT_IOC_SESSION_NOTES without PERF_PERSISTENT_NOTES_ADD writes a new base to the slot
 * that is not current, and its header last; with it, it adds to the current slot.
 *
 * To read: of the slots whose CRCs match, take the one with the greater @seq. Additions follow
 * each other until the first whose @seq or @nr is not the expected one, or whose CRC does not
 * match. So a write that was cut short loses no earlier one.
 */

/**
 * struct perf_blackbox_notes - header of a slot, at its start
 * @magic: %PERF_BLACKBOX_NOTES_MAGIC
 * @crc: over the bytes from @seq up to the end of this struct
 * @seq: number of this base, starting at 1
 * @data_crc: over the base
 * @size: of the base in bytes, which follows this struct
 * @clock: when it was written
 * @__reserved: 0
 */
struct perf_blackbox_notes {
	__u32				magic;
	__u32				crc;
	__u32				seq;
	__u32				data_crc;
	__u64				size;
	struct perf_blackbox_clock	clock;
	__u64				__reserved[2];
};

#define PERF_BLACKBOX_NOTES_SIZE	64
#define PERF_BLACKBOX_NOTES_MAGIC	0x53544f4e	/* "NOTS" */

/**
 * struct perf_blackbox_addition - header of an addition to a base
 * @magic: %PERF_BLACKBOX_ADDITION_MAGIC
 * @crc: over the bytes from @seq up to the end of this struct
 * @seq: that of the base
 * @nr: number of this addition, starting at 1
 * @data_crc: over the bytes of the addition
 * @__reserved: 0
 * @size: of the addition in bytes, which follow this struct; the next addition follows at the
 *	next multiple of 8
 * @clock: when it was written
 */
struct perf_blackbox_addition {
	__u32				magic;
	__u32				crc;
	__u32				seq;
	__u32				nr;
	__u32				data_crc;
	__u32				__reserved;
	__u64				size;
	struct perf_blackbox_clock	clock;
};

#define PERF_BLACKBOX_ADDITION_SIZE	56
#define PERF_BLACKBOX_ADDITION_MAGIC	0x4444414e	/* "NADD" */

/**
 * struct perf_persistent_notes - argument of %PERF_EVENT_IOC_SESSION_NOTES
 * @size: sizeof(struct perf_persistent_notes) of the caller
 * @flags: %PERF_PERSISTENT_NOTES_ADD or 0
 * @data: in: address of the bytes
 * @data_size: in: how many; 0 is allowed
 * @room: out: how many bytes the next addition may have
 * @slot_size: out: how many bytes a base may have
 *
 * Errors: EPERM for callers that may not end the session, ENOENT if it has ended, ENOMEM, ENOSPC
 * if there is no room (@room and @slot_size are set), ENODATA for an addition without a base,
 * ESHUTDOWN while the kernel dies, EINVAL for unknown flags.
 */
struct perf_persistent_notes {
	__u32		size;
	__u32		flags;
	__aligned_u64	data;
	__aligned_u64	data_size;
	__aligned_u64	room;
	__aligned_u64	slot_size;
};

#define PERF_PERSISTENT_NOTES_SIZE_VER0	40

/* perf_persistent_notes::flags */
#define PERF_PERSISTENT_NOTES_ADD	0x1

/* ioctl of the file descriptor of a session, see linux/perf_persistent.h */
#define PERF_EVENT_IOC_SESSION_NOTES	_IOWR('$', 41, struct perf_persistent_notes)

#endif /* _UAPI_LINUX_PERF_BLACKBOX_H */
