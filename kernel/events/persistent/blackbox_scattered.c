// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: sessions in the memory of the kernel
 *
 * The ring buffers of a session that lies in no region are lost with a reset. But a crash
 * kernel, or a hypervisor, can save all memory. The scattered image leads to them: no debug
 * information and no page tables are needed, only the address of its root.
 *
 *	root, static	  session	  events	  struct perf_buffer, see
 *	superblock	  name, owner	  event, buffer	  struct perf_blackbox_buffer
 *	life, death	  events ------>  event, buffer -->
 *	sessions ------>  notes	---+	  ...
 *	tasks		  next	   |	  next
 *				   +--->  addresses of the pages of a slot
 *
 * Each box is a part of 4 KiB, whose first bytes tell where it lies and what it is. They are
 * linked by physical addresses. VMCOREINFO has the address of the root, as PERF_BLACKBOX=; who
 * has no VMCOREINFO looks for the magic of the superblock.
 *
 * struct perf_buffer, its header page and its data pages are where they are in any ring buffer.
 * They lie in the linear mapping, whose address the superblock tells, so that
 * perf_buffer::data_pages leads to the data pages. So a writer does nothing for this image, and
 * nothing is done for each page. A session costs 4 KiB, and 4 KiB for each 6 events. They are
 * charged to the memory cgroup of the task that calls UNCLAIM, as the events are.
 *
 * Lifetime
 * --------
 *
 * The parts of a session are linked when it is created, and freed with it. An entry of an event
 * is valid from its UNCLAIM to the last user of the member, which has a reference on the buffer.
 * So neither a CPU that goes offline, nor the exec or exit of the task of an event, nor the exit
 * of the owner changes an entry. Names are copied: a module may go. Parts of events stay until
 * the session is freed; free entries in them are used again. Notes end with the session, though
 * its file may be open.
 *
 * The last act walks the parts without a lock, from NMI as well, with interrupts disabled, and
 * thus in an RCU read-side critical section. What it may find is freed after a grace period:
 * parts, and buffers, whose entry is invalid before their reference is dropped. After the last
 * act, the other CPUs may still end members and sessions, until they are stopped. Unlike those
 * in a region, these leave the image, as if they had ended earlier: their memory is used again.
 *
 * Order of stores: see blackbox_image.c. A part is filled in first, and linked last. It is
 * unlinked first, and freed last.
 *
 * Locking
 * -------
 *
 *	perf_persistent_mutex
 *	  perf_blackbox_scattered_lock		sessions of the root
 *	  parts->lock				events and notes of a session
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/perf_blackbox.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/vmcore_info.h>

#include "blackbox.h"

/* So many tasks are named at the death. Others are found in the notes, if there are any. */
#define PERF_BLACKBOX_SCATTERED_TASKS	4096U

/* A slot has this much for additions, and half as much as its base. */
#define PERF_BLACKBOX_SLOT_SPARE	SZ_64K

/* More parts than there are: the last act ends if their lists are damaged. */
#define PERF_BLACKBOX_PAUSE_STEPS	1000000U

#define PERF_BLACKBOX_PART_MEMBERS	\
	((PERF_BLACKBOX_PART_SIZE - PERF_BLACKBOX_PART_HEAD_SIZE) / PERF_BLACKBOX_MEMBER_SIZE)
#define PERF_BLACKBOX_PART_PAGES	\
	((PERF_BLACKBOX_PART_SIZE - PERF_BLACKBOX_PART_HEAD_SIZE) / sizeof(u64))

static u8 perf_blackbox_root[PERF_BLACKBOX_PART_SIZE] __aligned(PERF_BLACKBOX_PART_SIZE);
static struct perf_blackbox perf_blackbox_scattered;

/* Newest first */
static LIST_HEAD(perf_blackbox_scattered_sessions);
static DEFINE_MUTEX(perf_blackbox_scattered_lock);

static void perf_blackbox_check_scattered_abi(void)
{
	BUILD_BUG_ON(sizeof(struct perf_blackbox_part) != PERF_BLACKBOX_PART_HEAD_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_member) != PERF_BLACKBOX_MEMBER_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_root_links) != PERF_BLACKBOX_ROOT_LINKS_SIZE);
	BUILD_BUG_ON(PERF_BLACKBOX_PART_HEAD_SIZE + PERF_BLACKBOX_SESSION_SIZE >
		     PERF_BLACKBOX_PART_SIZE);
	CHECK_OFFSET(perf_blackbox_part, kind, 16);
	CHECK_OFFSET(perf_blackbox_part, next, 24);
	CHECK_OFFSET(perf_blackbox_part, notes, 40);
	CHECK_OFFSET(perf_blackbox_super, linear_map, 384);
	CHECK_OFFSET(perf_blackbox_super, flags, 392);
}

static struct perf_blackbox_root_links *perf_blackbox_links(void)
{
	return (void *)perf_blackbox_root + PERF_BLACKBOX_ROOT_LINKS_OFFSET;
}

/* Parts */

static void *perf_blackbox_in_part(struct perf_blackbox_part *part, size_t size, unsigned int nr)
{
	return (void *)part + PERF_BLACKBOX_PART_HEAD_SIZE + size * nr;
}

static struct perf_blackbox_member *perf_blackbox_part_member(struct perf_blackbox_part *part,
							      unsigned int nr)
{
	return perf_blackbox_in_part(part, PERF_BLACKBOX_MEMBER_SIZE, nr);
}

/* kmalloc() aligns what has a power of two as its size to that size. */
static struct perf_blackbox_part *perf_blackbox_alloc_part(u32 kind, u32 session)
{
	struct perf_blackbox_part *part = kzalloc(PERF_BLACKBOX_PART_SIZE, PERF_PERSISTENT_GFP);

	if (!part)
		return NULL;

	part->magic = PERF_BLACKBOX_PART_MAGIC;
	part->phys = virt_to_phys(part);
	part->kind = kind;
	part->session = session;
	return part;
}

/* @next: what @part is put before, or NULL */
static void perf_blackbox_chain(struct perf_blackbox_part *part, struct perf_blackbox_part *next)
{
	part->own = (unsigned long)next;
	part->next = next ? next->phys : 0;
}

static struct perf_blackbox_part *perf_blackbox_next(const struct perf_blackbox_part *part)
{
	return (void *)(unsigned long)READ_ONCE(part->own);
}

/* The last act may be looking at them. */
static void perf_blackbox_free_chain(struct perf_blackbox_part *part)
{
	struct perf_blackbox_part *next;

	for (; part; part = next) {
		next = perf_blackbox_next(part);
		kfree_rcu_mightsleep(part);
	}
}

/* Make a link lead to what is complete. */
static void perf_blackbox_link(u64 *link, const struct perf_blackbox_part *part)
{
	/* B in blackbox_image.c */
	smp_wmb();
	WRITE_ONCE(*link, part ? part->phys : 0);
}

/* The last act */

/* A stray write that led here may have damaged what it reads, as well as the links. */
static void perf_blackbox_pause_member(const struct perf_blackbox_member *member)
{
	const size_t checked = offsetof(struct perf_blackbox_buffer, cpu);
	struct perf_blackbox_buffer buffer;

	if (copy_from_kernel_nofault(&buffer, &member->buffer, sizeof(buffer)) ||
	    buffer.state != PERF_BLACKBOX_VALID ||
	    buffer.crc != perf_blackbox_crc((void *)&buffer + checked, sizeof(buffer) - checked))
		return;

	rb_toggle_paused(phys_to_virt(buffer.rb), true);
}

/* Returns how many steps are left. */
static unsigned int perf_blackbox_pause_parts(struct perf_blackbox_parts *parts,
					      unsigned int steps)
{
	struct perf_blackbox_part *part, head;
	unsigned int i;

	if (get_kernel_nofault(part, &parts->events))
		return steps;

	for (; part && steps; part = (void *)(unsigned long)head.own, steps--) {
		if (copy_from_kernel_nofault(&head, part, sizeof(head)) ||
		    head.magic != PERF_BLACKBOX_PART_MAGIC)
			break;
		for (i = 0; i < PERF_BLACKBOX_PART_MEMBERS; i++)
			perf_blackbox_pause_member(perf_blackbox_part_member(part, i));
	}
	return steps;
}

/*
 * Pause the buffers that the image leads to. An entry that is damaged is left out. So is one that
 * another CPU is just filling in: see perf_blackbox_enter_event().
 */
static void perf_blackbox_pause_scattered(struct perf_blackbox *box)
{
	struct list_head *pos = &perf_blackbox_scattered_sessions;
	unsigned int steps = PERF_BLACKBOX_PAUSE_STEPS;

	guard(rcu)();
	for (; steps; steps--) {
		if (get_kernel_nofault(pos, &pos->next) ||
		    pos == &perf_blackbox_scattered_sessions)
			break;
		steps = perf_blackbox_pause_parts(list_entry(pos, struct perf_blackbox_parts,
							     entry), steps);
		if (!steps)
			break;
	}
}

/* Root */

static void perf_blackbox_alloc_tasks(struct perf_blackbox *box)
{
	u32 max;

	for (max = PERF_BLACKBOX_SCATTERED_TASKS; max; max /= 2) {
		box->tasks = alloc_pages_exact(max * sizeof(*box->tasks), GFP_KERNEL |
					       __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN);
		if (box->tasks)
			break;
	}
	box->max_tasks = max;
}

/* For the first session */
static void perf_blackbox_make_root(void)
{
	struct perf_blackbox *box = &perf_blackbox_scattered;

	lockdep_assert_held(&perf_persistent_mutex);
	perf_blackbox_check_scattered_abi();

	if (box->super)
		return;

	perf_blackbox_alloc_tasks(box);
	perf_blackbox_links()->tasks = box->max_tasks ? virt_to_phys(box->tasks) : 0;
	perf_blackbox_format_root(perf_blackbox_root, __pa_symbol(perf_blackbox_root),
				  box->max_tasks);
	box->super = (void *)perf_blackbox_root;
	box->size = PERF_BLACKBOX_PART_SIZE;
	perf_blackbox_mark_clean(box);
	box->pause = perf_blackbox_pause_scattered;
	perf_blackbox_watch(box);
}

#ifdef CONFIG_VMCORE_INFO
/**
 * perf_blackbox_vmcoreinfo - tell crash dumps where the sessions are
 *
 * Context: called by crash_save_vmcoreinfo_init(): what is added later is neither in the note
 * that a hypervisor reads, nor in the copy that kexec_load() makes.
 */
void perf_blackbox_vmcoreinfo(void)
{
	phys_addr_t phys = __pa_symbol(perf_blackbox_root);

	vmcoreinfo_append_str("PERF_BLACKBOX=%llx\n", (unsigned long long)phys);
}
#endif

/* Sessions */

static struct perf_blackbox_session *perf_blackbox_part_session(struct perf_blackbox_part *part)
{
	return perf_blackbox_in_part(part, 0, 0);
}

static struct perf_blackbox_part *perf_blackbox_first_session(void)
{
	struct perf_blackbox_parts *parts;

	parts = list_first_entry_or_null(&perf_blackbox_scattered_sessions,
					 struct perf_blackbox_parts, entry);
	return parts ? parts->session : NULL;
}

/**
 * perf_blackbox_enter - enter a session of the kernel's memory in the scattered image
 * @s: the session, without events
 *
 * Context: perf_persistent_mutex is held; may sleep.
 * Return: 0 or -ENOMEM
 */
int perf_blackbox_enter(struct perf_persistent_session *s)
{
	struct perf_blackbox_parts *parts;
	struct perf_blackbox_part *part;

	lockdep_assert_held(&perf_persistent_mutex);

	if (perf_blackbox_has_died())
		return 0;

	perf_blackbox_make_root();
	parts = kzalloc(sizeof(*parts), PERF_PERSISTENT_GFP);
	part = perf_blackbox_alloc_part(PERF_BLACKBOX_PART_SESSION, s->id);
	if (!parts || !part) {
		kfree(parts);
		kfree(part);
		return -ENOMEM;
	}

	mutex_init(&parts->lock);
	parts->session = part;
	perf_blackbox_fill_session(perf_blackbox_part_session(part), s);
	perf_blackbox_publish_entry(perf_blackbox_part_session(part),
				    sizeof(struct perf_blackbox_session));
	s->parts = parts;

	guard(mutex)(&perf_blackbox_scattered_lock);
	part->next = perf_blackbox_links()->sessions;
	perf_blackbox_link(&perf_blackbox_links()->sessions, part);
	list_add_rcu(&parts->entry, &perf_blackbox_scattered_sessions);
	perf_blackbox_add_to_nr(&perf_blackbox_scattered, 1);
	return 0;
}

/* The session after it is linked to the one before it. */
static void perf_blackbox_unlink_session(struct perf_blackbox_parts *parts)
{
	u64 *link = &perf_blackbox_links()->sessions;

	guard(mutex)(&perf_blackbox_scattered_lock);

	if (parts->session != perf_blackbox_first_session())
		link = &list_prev_entry(parts, entry)->session->next;
	WRITE_ONCE(*link, parts->session->next);
	/* A in blackbox_image.c */
	smp_wmb();
	list_del_rcu(&parts->entry);
	perf_blackbox_add_to_nr(&perf_blackbox_scattered, -1);
}

/* @nr: of the slot */
static void perf_blackbox_free_slot(struct perf_blackbox_parts *parts, unsigned int nr)
{
	struct perf_blackbox_slot *slot = &parts->slot[nr];

	WRITE_ONCE(parts->session->notes[nr], 0);
	/* A in blackbox_image.c */
	smp_wmb();
	perf_blackbox_free_chain(slot->pages);
	vfree(slot->bytes);
	perf_persistent_uncharge(&slot->memory);
	*slot = (struct perf_blackbox_slot) { };
}

/**
 * perf_blackbox_drop - remove a session from the scattered image
 * @s: the session, which has no members and no files any more
 *
 * Context: may sleep.
 */
void perf_blackbox_drop(struct perf_persistent_session *s)
{
	struct perf_blackbox_parts *parts = s->parts;
	unsigned int i;

	if (!parts)
		return;

	perf_blackbox_unlink_session(parts);
	for (i = 0; i < ARRAY_SIZE(parts->slot); i++)
		perf_blackbox_free_slot(parts, i);
	perf_blackbox_free_chain(parts->events);
	perf_blackbox_free_chain(parts->session);
	kfree_rcu(parts, rcu);
}

/* Events */

static struct perf_blackbox_part *perf_blackbox_add_part(struct perf_blackbox_parts *parts)
{
	struct perf_blackbox_part *part;

	part = perf_blackbox_alloc_part(PERF_BLACKBOX_PART_EVENTS, parts->session->session);
	if (!part)
		return NULL;

	perf_blackbox_chain(part, parts->events);
	perf_blackbox_link(&parts->session->events, part);
	WRITE_ONCE(parts->events, part);
	parts->nr_free += PERF_BLACKBOX_PART_MEMBERS;
	return part;
}

/* In the newest part, as a rule: others have free entries if events have left. */
static struct perf_blackbox_member *perf_blackbox_find_free(struct perf_blackbox_parts *parts)
{
	struct perf_blackbox_part *part = parts->events;
	unsigned int i;

	lockdep_assert_held(&parts->lock);

	if (!parts->nr_free)
		part = perf_blackbox_add_part(parts);
	for (; part; part = perf_blackbox_next(part)) {
		for (i = 0; i < PERF_BLACKBOX_PART_MEMBERS; i++) {
			struct perf_blackbox_member *member = perf_blackbox_part_member(part, i);

			if (!member->event.state)
				return member;
		}
	}
	return NULL;
}

static void perf_blackbox_fill_member(struct perf_blackbox_member *member,
				      struct perf_persistent_event *pe)
{
	struct perf_blackbox_buffer *buffer = &member->buffer;
	struct perf_buffer *rb = pe->rb;

	perf_blackbox_fill_buffer(buffer, rb, pe->cpu);
	buffer->flags |= PERF_BLACKBOX_BUFFER_SCATTERED;
	buffer->rb = virt_to_phys(rb);
	buffer->user_page = virt_to_phys(rb->user_page);
	buffer->data = virt_to_phys(rb->data_pages);
	perf_blackbox_publish_entry(buffer, sizeof(*buffer));
	perf_blackbox_fill_event(&member->event, pe);
	perf_blackbox_publish_entry(&member->event, sizeof(member->event));
}

/**
 * perf_blackbox_enter_event - enter an event in the scattered image
 * @pe: the member, whose buffer lies in the kernel's memory
 *
 * Without memory for its entry, the event is left out, which is logged.
 *
 * Context: may sleep.
 */
void perf_blackbox_enter_event(struct perf_persistent_event *pe)
{
	struct perf_blackbox_parts *parts = pe->session->parts;
	struct perf_blackbox_member *member;

	if (!parts || pe->rb->memory != &perf_rb_kernel_memory || perf_blackbox_has_died())
		return;

	guard(mutex)(&parts->lock);

	member = perf_blackbox_find_free(parts);
	if (!member) {
		pr_warn_ratelimited("no memory to tell crash dumps of an event of session '%s'\n",
				    pe->session->name);
		return;
	}

	parts->nr_free--;
	perf_blackbox_fill_member(member, pe);
	pe->box_event = &member->event;
	/* As B in blackbox_death.c: the last act may not have seen the entry. */
	smp_mb();
	if (perf_blackbox_has_died())
		rb_toggle_paused(pe->rb, true);
}

/**
 * perf_blackbox_leave_event - remove an event from the scattered image
 * @pe: the member, by its last user; it has an entry, and still its buffer
 *
 * Context: may sleep.
 */
void perf_blackbox_leave_event(struct perf_persistent_event *pe)
{
	struct perf_blackbox_parts *parts = pe->session->parts;
	struct perf_blackbox_member *member;

	member = container_of(pe->box_event, struct perf_blackbox_member, event);
	guard(mutex)(&parts->lock);

	perf_blackbox_clear_entry(&member->event);
	perf_blackbox_clear_entry(&member->buffer);
	parts->nr_free++;
}

/* Notes */

static struct perf_blackbox_part *perf_blackbox_list_pages(u32 session, const void *bytes,
							   size_t size)
{
	unsigned long i, first = DIV_ROUND_UP(size, PAGE_SIZE);
	struct perf_blackbox_part *part, *chain = NULL;
	u64 *pages;

	/* The last part first */
	do {
		unsigned long end = first;

		first = rounddown(first - 1, PERF_BLACKBOX_PART_PAGES);
		part = perf_blackbox_alloc_part(PERF_BLACKBOX_PART_NOTES, session);
		if (!part) {
			perf_blackbox_free_chain(chain);
			return NULL;
		}
		perf_blackbox_chain(part, chain);
		chain = part;
		pages = perf_blackbox_in_part(part, 0, 0);
		for (i = first; i < end; i++)
			*pages++ = page_to_phys(vmalloc_to_page(bytes + i * PAGE_SIZE));
	} while (first);
	return chain;
}

/**
 * perf_blackbox_end_notes - free the notes of a session that has ended
 * @s: the session, whose state is ENDED: no notes are stored any more
 *
 * The limit of sessions, which bounds the memory of notes, does not count it any more.
 *
 * Context: may sleep.
 */
void perf_blackbox_end_notes(struct perf_persistent_session *s)
{
	struct perf_blackbox_parts *parts = s->parts;
	unsigned int i;

	if (!parts)
		return;

	guard(mutex)(&parts->lock);
	for (i = 0; i < ARRAY_SIZE(parts->slot); i++)
		perf_blackbox_free_slot(parts, i);
}

/**
 * perf_blackbox_make_slot - have a slot for a base
 * @parts: the parts of the session
 * @nr: number of the slot, 0 or 1, which is not the current one
 * @size: bytes of the base, its header included
 *
 * The previous content of the slot is lost. The new base gets some room for additions.
 *
 * Context: parts->lock is held; may sleep.
 * Return: 0, -ENOSPC if it is too large, or -ENOMEM
 */
int perf_blackbox_make_slot(struct perf_blackbox_parts *parts, unsigned int nr, size_t size)
{
	struct perf_blackbox_slot *slot = &parts->slot[nr];
	size_t room;

	lockdep_assert_held(&parts->lock);

	if (size > PERF_BLACKBOX_NOTES_MAX)
		return -ENOSPC;

	room = min_t(size_t, PAGE_ALIGN(size + size / 2 + PERF_BLACKBOX_SLOT_SPARE),
		     PERF_BLACKBOX_NOTES_MAX);
	if (size <= slot->size && slot->size / 4 <= room)
		return 0;

	perf_blackbox_free_slot(parts, nr);
	if (perf_persistent_charge(&slot->memory, room))
		return -ENOMEM;
	slot->bytes = __vmalloc(room, GFP_KERNEL | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN);
	if (slot->bytes)
		slot->pages = perf_blackbox_list_pages(parts->session->session, slot->bytes, room);
	if (!slot->pages) {
		perf_blackbox_free_slot(parts, nr);
		return -ENOMEM;
	}
	slot->size = room;
	perf_blackbox_link(&parts->session->notes[nr], slot->pages);
	return 0;
}
