/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Black box: what the files of this directory share
 *
 * Each file calls only files below it.
 *
 *	session_fd.c, boot.c, session.c, freeze.c,	internal.h: look, place, join, notes
 *	sysfs.c, member.c
 *	----------------------------------------------------------------------------
 *	blackbox.c		a session in a region; memory of its ring buffers
 *	   |	blackbox_notes.c	notes that user space leaves with a session
 *	   |	blackbox_scattered.c	a session in the kernel's memory, for crash dumps
 *	   |	blackbox_death.c	the last act of the kernel, and its orderly end
 *	   |	blackbox_last.c		regions: what earlier boots left there
 *	   |	   |
 *	blackbox_image.c	layout of an image
 *	----------------------------------------------------------------------------
 *	access.c, memory.c, registry.c			internal.h
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H
#define _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H

#include <linux/crc32.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <uapi/linux/perf_blackbox.h>

#include "internal.h"

/* Two images in a region: the one of this boot, and the one of the last death. */
#define PERF_BLACKBOX_HALVES	2

/* Images of earlier boots that are found in a region. */
#define PERF_BLACKBOX_MAX_LAST	4

/* Of reserve_mem=, with the terminating NUL */
#define PERF_BLACKBOX_LABEL_LEN	PERF_PERSISTENT_LABEL_LEN

/**
 * struct perf_blackbox_region - memory reserved by reserve_mem=
 * @entry: on the list of regions; never removed
 * @label: its name
 * @phys: physical address, page aligned
 * @size: bytes, page aligned
 * @generation: greatest of the images that were found
 * @last: images of earlier boots
 * @nr_last: how many
 * @taken: physical address of the half for the image of this boot, or 0
 * @box: the image of this boot, or NULL; see perf_blackbox_take()
 */
struct perf_blackbox_region {
	struct list_head		entry;
	char				label[PERF_BLACKBOX_LABEL_LEN];
	phys_addr_t			phys;
	size_t				size;
	u64				generation;
	struct perf_blackbox_last	*last[PERF_BLACKBOX_MAX_LAST];
	unsigned int			nr_last;
	phys_addr_t			taken;
	struct perf_blackbox		*box;
};

/* Directory of sessions in an image */
#define PERF_BLACKBOX_MAX_SESSIONS	16

/* A slot for notes has at most so many bytes. */
#define PERF_BLACKBOX_NOTES_MAX		SZ_4M

/**
 * struct perf_blackbox_notes_end - how far the notes of a session are written
 * @seq: number of the current base, 0 if there is none
 * @nr: number of additions to it
 * @offset: in the slot, for the next addition
 */
struct perf_blackbox_notes_end {
	u32				seq;
	u32				nr;
	u64				offset;
};

/**
 * struct perf_blackbox - an image of this boot
 * @memory: of ring buffers in the image
 * @entry: on the list of images of this boot; never removed
 * @pause: pauses the ring buffers of the image, at the death of the kernel: in any context, NMI
 *	   included, with interrupts disabled
 * @region: the region; NULL for the scattered image, which has no members behind @nr_sessions
 * @super: start of the image
 * @size: of the image in bytes; of its root, if it is scattered
 * @tasks: table of tasks
 * @max_tasks: size of the table of tasks; this and the next two as in @super, which may be
 *	       damaged at the death of the kernel
 * @max_buffers: size of the directory of buffers
 * @max_events: size of the directory of events
 * @nr_sessions: sessions in the image; read without a lock at the death of the kernel
 * @lock: protects the members below and the directory in the image; taken in softirq
 *	  context by perf_blackbox_free_rb()
 * @heap: start of the heap
 * @heap_pages: its size
 * @used_pages: bitmap of the heap
 * @used_sessions: bitmap of the directory of sessions
 * @used_events: bitmap of the directory of events
 * @buffers: for each entry of the directory of buffers, the buffer or NULL; read without
 *	     the lock at the death of the kernel
 * @notes_lock: serialises writers of notes, and protects @notes_end
 * @notes_end: by the entry of the session
 */
struct perf_blackbox {
	struct perf_rb_memory		memory;
	struct list_head		entry;
	void				(*pause)(struct perf_blackbox *box);
	struct perf_blackbox_region	*region;
	struct perf_blackbox_super	*super;
	size_t				size;
	struct perf_blackbox_task	*tasks;
	u32				max_tasks;
	u32				max_buffers;
	u32				max_events;
	unsigned int			nr_sessions;
	/* the members below, and the directory in the image */
	spinlock_t			lock;
	void				*heap;
	unsigned long			heap_pages;
	unsigned long			*used_pages;
	unsigned long			*used_sessions;
	unsigned long			*used_events;
	struct perf_buffer		**buffers;
	/* writers of notes, and @notes_end */
	struct mutex			notes_lock;
	struct perf_blackbox_notes_end	notes_end[PERF_BLACKBOX_MAX_SESSIONS];
};

/**
 * struct perf_blackbox_slot - a slot for notes of a session in the kernel's memory
 * @bytes: the slot
 * @size: of it in bytes; 0: there is none
 * @pages: parts with the addresses of its pages
 * @memory: what the memory cgroup of the writer is charged
 */
struct perf_blackbox_slot {
	void				*bytes;
	size_t				size;
	struct perf_blackbox_part	*pages;
	struct perf_persistent_memory	memory;
};

/**
 * struct perf_blackbox_parts - the parts of the scattered image that describe a session
 * @entry: on the list of these sessions
 * @session: the part of the session
 * @lock: protects the members below, and the parts of the events and notes
 * @events: the newest part of its events, which leads to the others, or NULL
 * @nr_free: free entries in these
 * @slot: slots for notes
 * @notes_end: how far they are written
 * @rcu: for the last act, which finds this without a lock
 */
struct perf_blackbox_parts {
	struct list_head		entry;
	struct perf_blackbox_part	*session;
	/* events and notes */
	struct mutex			lock;
	struct perf_blackbox_part	*events;
	unsigned int			nr_free;
	struct perf_blackbox_slot	slot[2];
	struct perf_blackbox_notes_end	notes_end;
	struct rcu_head			rcu;
};

static inline u32 perf_blackbox_crc(const void *data, size_t size)
{
	return ~crc32_le(~0, data, size);
}

static inline void *perf_blackbox_at(const struct perf_blackbox *box, u64 offset)
{
	return (void *)box->super + offset;
}

static inline u64 perf_blackbox_offset(const struct perf_blackbox *box, const void *addr)
{
	return addr - (void *)box->super;
}

/* Notes of the kernel image, with its build-id; from its linker script */
extern const u8 __start_notes[], __stop_notes[];

/* blackbox_image.c */
struct perf_blackbox_life *perf_blackbox_life(struct perf_blackbox_super *super);
struct perf_blackbox_death *perf_blackbox_death(struct perf_blackbox *box);
struct perf_blackbox_session *perf_blackbox_session(struct perf_blackbox *box, u32 nr);
struct perf_blackbox_buffer *perf_blackbox_buffer(struct perf_blackbox *box, u32 nr);
struct perf_blackbox_event *perf_blackbox_event(struct perf_blackbox *box, u32 nr);
void perf_blackbox_now(struct perf_blackbox_clock *clock);
bool perf_blackbox_valid(const struct perf_blackbox_super *super, phys_addr_t phys, size_t room);
int perf_blackbox_format(struct perf_blackbox_region *region, phys_addr_t phys, size_t size);
void perf_blackbox_format_root(void *root, phys_addr_t phys, u32 max_tasks);
void perf_blackbox_mark_clean(struct perf_blackbox *box);
void perf_blackbox_add_to_nr(struct perf_blackbox *box, int nr);
void perf_blackbox_fill_session(struct perf_blackbox_session *session,
				struct perf_persistent_session *s);
void perf_blackbox_fill_event(struct perf_blackbox_event *entry,
			      struct perf_persistent_event *pe);
void perf_blackbox_fill_buffer(struct perf_blackbox_buffer *buffer, struct perf_buffer *rb,
			       int cpu);
void perf_blackbox_publish_entry(void *entry, size_t size);
void perf_blackbox_clear_entry(void *entry);

/* blackbox_last.c */
struct perf_blackbox_region *perf_blackbox_find_region(const char *label);
int perf_blackbox_add_region(const char *label);
int perf_blackbox_choose_half(struct perf_blackbox_region *region, phys_addr_t *phys,
			      size_t *size);

/* blackbox_scattered.c */
int perf_blackbox_enter(struct perf_persistent_session *s);
void perf_blackbox_drop(struct perf_persistent_session *s);
void perf_blackbox_enter_event(struct perf_persistent_event *pe);
void perf_blackbox_leave_event(struct perf_persistent_event *pe);
int perf_blackbox_make_slot(struct perf_blackbox_parts *parts, unsigned int nr, size_t size);

/* blackbox_death.c */
void perf_blackbox_watch(struct perf_blackbox *box);

/* blackbox_notes.c: perf_blackbox_ioctl(), see internal.h */

#endif /* _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H */
