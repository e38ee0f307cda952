/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Black box: what the files of this directory share
 *
 * Each file calls only files below it.
 *
 *	boot.c, session.c, member.c, session_fd.c	internal.h: look, place, join, notes
 *	----------------------------------------------------------------------------
 *	blackbox.c		a session in a region; memory of its ring buffers
 *	   |	blackbox_notes.c	notes that user space leaves with a session
 *	   |	blackbox_death.c	the last act of the kernel, and its orderly end
 *	   |	blackbox_last.c		regions: what earlier boots left there
 *	   |	   |
 *	blackbox_image.c	layout of an image
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H
#define _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H

#include <linux/crc32.h>
#include <linux/list.h>
#include <linux/mutex.h>
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
 * struct perf_blackbox - the image of this boot in a region
 * @memory: of ring buffers in the image
 * @entry: on the list of images of this boot; never removed
 * @region: the region
 * @super: start of the image
 * @size: of the image in bytes
 * @max_tasks: size of the table of tasks; this and the next two as in @super, which may be
 *	       damaged at the death of the kernel
 * @max_buffers: size of the directory of buffers
 * @max_events: size of the directory of events
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
	struct perf_blackbox_region	*region;
	struct perf_blackbox_super	*super;
	size_t				size;
	u32				max_tasks;
	u32				max_buffers;
	u32				max_events;
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

/* perf_persistent_event::box_entry: the event has none */
#define PERF_BLACKBOX_NO_ENTRY	(~0U)

/* Notes of the kernel image, with its build-id; from its linker script */
extern const u8 __start_notes[], __stop_notes[];

/* blackbox_image.c */
struct perf_blackbox_life *perf_blackbox_life(struct perf_blackbox_super *super);
struct perf_blackbox_death *perf_blackbox_death(struct perf_blackbox *box);
struct perf_blackbox_task *perf_blackbox_tasks(struct perf_blackbox *box);
struct perf_blackbox_session *perf_blackbox_session(struct perf_blackbox *box, u32 nr);
struct perf_blackbox_buffer *perf_blackbox_buffer(struct perf_blackbox *box, u32 nr);
struct perf_blackbox_event *perf_blackbox_event(struct perf_blackbox *box, u32 nr);
void perf_blackbox_now(struct perf_blackbox_clock *clock);
bool perf_blackbox_valid(const struct perf_blackbox_super *super, phys_addr_t phys, size_t room);
int perf_blackbox_format(struct perf_blackbox_region *region, phys_addr_t phys, size_t size);
void perf_blackbox_publish_entry(void *entry, size_t size);
void perf_blackbox_clear_entry(void *entry);

/* blackbox_last.c */
struct perf_blackbox_region *perf_blackbox_find_region(const char *label);
int perf_blackbox_add_region(const char *label);
int perf_blackbox_choose_half(struct perf_blackbox_region *region, phys_addr_t *phys,
			      size_t *size);

/* blackbox_death.c */
void perf_blackbox_watch(struct perf_blackbox *box);

/* blackbox_notes.c: perf_blackbox_ioctl(), see internal.h */

#endif /* _KERNEL_EVENTS_PERSISTENT_BLACKBOX_H */
