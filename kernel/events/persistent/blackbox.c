// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: sessions in memory that survives a reset
 *
 *	reserve_mem=SIZE:ALIGN:LABEL perf_persistent=NAME:EVENT[,EVENT..][:SIZE]@LABEL
 *	reserve_mem=SIZE:ALIGN:LABEL perf_persistent=@LABEL
 *
 * The ring buffers of such a session lie in a reserved region, with everything that is needed
 * to read them without this kernel: which buffers there are, which events write to them, and
 * how the kernel ended. Together this is an image, see blackbox_image.c. After a reset the
 * next kernel offers it to user space, see blackbox_last.c.
 *
 *	region		reserve_mem=, see blackbox_last.c
 *	  image		one of this boot, in one half of the region
 *	    session	an entry of the directory, two slots for notes
 *	      event	an entry of the directory
 *	    buffer	an entry of the directory; struct perf_buffer, header page and data
 *			pages, contiguous
 *
 * Writers do not know about it: they use rb->data_pages and rb->user_page as of any ring
 * buffer. struct perf_buffer lies in the image because of rb->head, the reserved head. At the
 * moment of death, a writer may have overwritten the oldest records without having published
 * data_head. Only the reserved head tells how many, see struct perf_blackbox_buffer.
 *
 * Lifetime
 * --------
 *
 * A region and its image of this boot are never freed. A session's entry is removed with the
 * session, an event's entry with the last user of the member, and a buffer's entry when the
 * buffer is freed, an RCU grace period after its last reference. After the death of the kernel
 * nothing is removed, see blackbox_death.c. So the memory of a buffer is
 * used again only when neither writers nor mappings are left. A pipe may hold a page that was
 * mapped, see vmsplice(2): such a page is not used again before it is let go. Pages of the
 * region belong to no allocator: they are reserved, keep their first reference forever, and
 * are charged to nobody. Their number is limited by the size of the region.
 *
 * A session in no region is entered in the scattered image: see blackbox_scattered.c.
 *
 * An image is LIVE while there is a session in it. Without one it is CLEAN: nothing is lost
 * with it.
 *
 * Locking
 * -------
 *
 *	perf_persistent_mutex
 *	  box->notes_lock
 *	    box->lock			softirqs disabled
 *
 * Sessions are placed in a region by the command line, and by the UNCLAIM that creates them.
 * The command line has to name the region: ramoops and others use reserve_mem=, too. An event
 * of such a session gets a buffer in the region if it brings none along. A buffer that an
 * event brings along stays where it is, and the event has no entry; UNCLAIM refuses such an
 * event if the caller names the region.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/crash_dump.h>
#include <linux/cred.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "blackbox.h"

/* Each slot for notes takes this part of the image, but at least and at most so much. */
#define PERF_BLACKBOX_NOTES_PART	16
#define PERF_BLACKBOX_NOTES_MIN		SZ_16K

static struct perf_blackbox *to_box(const struct perf_rb_memory *memory)
{
	return container_of(memory, struct perf_blackbox, memory);
}

/* Heap */

/* The first of these pages that has a reference beside its own, or the page behind them */
static unsigned long perf_blackbox_find_pinned(struct perf_blackbox *box, unsigned long start,
					       unsigned long nr)
{
	unsigned long i;

	for (i = start; i < start + nr; i++) {
		if (page_ref_count(virt_to_page(box->heap + (i << PAGE_SHIFT))) != 1)
			break;
	}
	return i;
}

static void *perf_blackbox_alloc_pages(struct perf_blackbox *box, unsigned long nr)
{
	unsigned long start = 0, pinned;

	lockdep_assert_held(&box->lock);

	for (;; start = pinned + 1) {
		start = bitmap_find_next_zero_area(box->used_pages, box->heap_pages, start, nr, 0);
		if (start >= box->heap_pages)
			return NULL;
		pinned = perf_blackbox_find_pinned(box, start, nr);
		if (pinned == start + nr)
			break;
	}

	bitmap_set(box->used_pages, start, nr);
	return box->heap + (start << PAGE_SHIFT);
}

static void perf_blackbox_free_pages(struct perf_blackbox *box, void *addr, unsigned long nr)
{
	lockdep_assert_held(&box->lock);

	bitmap_clear(box->used_pages, (addr - box->heap) >> PAGE_SHIFT, nr);
}

/* Memory of ring buffers: struct perf_buffer, the header page, the data pages */

static unsigned long perf_blackbox_rb_pages(unsigned long nr_pages)
{
	return DIV_ROUND_UP(sizeof(struct perf_buffer) + nr_pages * sizeof(void *), PAGE_SIZE);
}

static struct perf_buffer *perf_blackbox_reserve_rb(struct perf_blackbox *box,
						    unsigned long pages, u32 *nr)
{
	struct perf_buffer *rb = NULL;

	spin_lock_bh(&box->lock);
	for (*nr = 0; *nr < box->max_buffers; ++*nr) {
		if (box->buffers[*nr])
			continue;
		rb = perf_blackbox_alloc_pages(box, pages);
		WRITE_ONCE(box->buffers[*nr], rb);
		break;
	}
	spin_unlock_bh(&box->lock);
	return rb;
}

static void perf_blackbox_publish_rb(struct perf_blackbox *box, struct perf_buffer *rb, u32 nr,
				     int cpu)
{
	struct perf_blackbox_buffer *buffer = perf_blackbox_buffer(box, nr);

	perf_blackbox_fill_buffer(buffer, rb, cpu);
	buffer->rb = perf_blackbox_offset(box, rb);
	buffer->user_page = perf_blackbox_offset(box, rb->user_page);
	buffer->data = perf_blackbox_offset(box, rb->data_pages[0]);
	perf_blackbox_publish_entry(buffer, sizeof(*buffer));
}

static struct perf_buffer *perf_blackbox_alloc_rb(const struct perf_rb_memory *memory,
						  unsigned long nr_pages, int cpu)
{
	unsigned long i, rb_pages = perf_blackbox_rb_pages(nr_pages);
	struct perf_blackbox *box = to_box(memory);
	struct perf_buffer *rb;
	void *page;
	u32 nr;

	if (perf_blackbox_has_died())
		return NULL;

	rb = perf_blackbox_reserve_rb(box, rb_pages + 1 + nr_pages, &nr);
	if (!rb) {
		/* Sessions that have just ended return their memory a grace period later. */
		rcu_barrier();
		rb = perf_blackbox_reserve_rb(box, rb_pages + 1 + nr_pages, &nr);
	}
	if (!rb) {
		pr_warn_ratelimited("region '%s' has no room for a buffer of %lu KiB\n",
				    box->region->label, (nr_pages << PAGE_SHIFT) >> 10);
		return NULL;
	}

	page = rb;
	for (i = 0; i < rb_pages + 1 + nr_pages; i++) {
		clear_page(page + (i << PAGE_SHIFT));
		cond_resched();
	}
	page += rb_pages << PAGE_SHIFT;
	rb->user_page = page;
	for (i = 0; i < nr_pages; i++) {
		page += PAGE_SIZE;
		rb->data_pages[i] = page;
	}
	rb->nr_pages = nr_pages;

	perf_blackbox_publish_rb(box, rb, nr, cpu);
	return rb;
}

static u32 perf_blackbox_rb_nr(struct perf_blackbox *box, struct perf_buffer *rb)
{
	u32 nr;

	for (nr = 0; nr < box->max_buffers; nr++) {
		if (READ_ONCE(box->buffers[nr]) == rb)
			break;
	}
	return nr;
}

/* Context: softirq */
static void perf_blackbox_free_rb(struct perf_buffer *rb)
{
	unsigned long i, nr_pages = rb->nr_pages;
	struct perf_blackbox *box = to_box(rb->memory);
	u32 nr;

	if (perf_blackbox_has_died())
		return;

	nr = perf_blackbox_rb_nr(box, rb);
	virt_to_page(rb->user_page)->mapping = NULL;
	for (i = 0; i < nr_pages; i++)
		virt_to_page(rb->data_pages[i])->mapping = NULL;

	spin_lock_bh(&box->lock);
	perf_blackbox_clear_entry(perf_blackbox_buffer(box, nr));
	WRITE_ONCE(box->buffers[nr], NULL);
	perf_blackbox_free_pages(box, rb, perf_blackbox_rb_pages(nr_pages) + 1 + nr_pages);
	spin_unlock_bh(&box->lock);
}

static struct page *perf_blackbox_to_page(struct perf_buffer *rb, unsigned long pgoff)
{
	if (pgoff > rb->nr_pages)
		return NULL;

	return virt_to_page(pgoff ? rb->data_pages[pgoff - 1] : (void *)rb->user_page);
}

/* The memory was taken when the region was set up. Its users are not charged for it. */
static int perf_blackbox_charge(struct perf_rb_charge *charge, unsigned long nr_pages,
				struct mm_struct *mm)
{
	return 0;
}

/* Image */

/* Part of the last act: see blackbox_death.c. */
static void perf_blackbox_pause(struct perf_blackbox *box)
{
	struct perf_buffer *rb;
	u32 i;

	for (i = 0; i < box->max_buffers; i++) {
		rb = READ_ONCE(box->buffers[i]);
		if (rb)
			rb_toggle_paused(rb, true);
	}
}

static void perf_blackbox_free(struct perf_blackbox *box)
{
	kvfree(box->used_pages);
	kvfree(box->used_sessions);
	kvfree(box->used_events);
	kvfree(box->buffers);
	kfree(box);
}

static unsigned long *perf_blackbox_alloc_bitmap(unsigned long bits)
{
	return kvcalloc(BITS_TO_LONGS(bits), sizeof(long), GFP_KERNEL);
}

static int perf_blackbox_set_up(struct perf_blackbox *box)
{
	const struct perf_blackbox_super *super = box->super;

	spin_lock_init(&box->lock);
	mutex_init(&box->notes_lock);
	box->memory = (struct perf_rb_memory) {
		.alloc		= perf_blackbox_alloc_rb,
		.free		= perf_blackbox_free_rb,
		.to_page	= perf_blackbox_to_page,
		.charge		= perf_blackbox_charge,
		.uncharge	= perf_rb_uncharge,
	};

	box->heap = perf_blackbox_at(box, super->heap);
	box->heap_pages = (box->size - super->heap) >> PAGE_SHIFT;
	box->used_pages = perf_blackbox_alloc_bitmap(box->heap_pages);
	box->tasks = perf_blackbox_at(box, super->tasks);
	box->max_tasks = super->max_tasks;
	box->max_buffers = super->max_buffers;
	box->max_events = super->max_events;
	box->used_sessions = perf_blackbox_alloc_bitmap(PERF_BLACKBOX_MAX_SESSIONS);
	box->used_events = perf_blackbox_alloc_bitmap(box->max_events);
	box->buffers = kvcalloc(box->max_buffers, sizeof(*box->buffers), GFP_KERNEL);
	if (!box->used_pages || !box->used_sessions || !box->used_events || !box->buffers)
		return -ENOMEM;
	return 0;
}

/* The image of this boot in a region; made for the first session there */
static struct perf_blackbox *perf_blackbox_take(struct perf_blackbox_region *region)
{
	struct perf_blackbox *box;
	phys_addr_t phys;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (region->box)
		return region->box;

	box = kzalloc(sizeof(*box), GFP_KERNEL);
	if (!box)
		return ERR_PTR(-ENOMEM);

	box->region = region;
	err = perf_blackbox_choose_half(region, &phys, &box->size);
	if (err)
		goto err_free;

	err = perf_blackbox_format(region, phys, box->size);
	if (err) {
		pr_warn_ratelimited("region '%s' is too small: %zu KiB\n", region->label,
				    region->size >> 10);
		goto err_free;
	}

	box->super = phys_to_virt(phys);
	perf_blackbox_mark_clean(box);
	err = perf_blackbox_set_up(box);
	if (err)
		goto err_free;

	box->pause = perf_blackbox_pause;
	perf_blackbox_watch(box);
	region->box = box;
	pr_info("region '%s': recording to %zu KiB at %pa, generation %llu\n", region->label,
		box->size >> 10, &phys, box->super->generation);
	return box;

err_free:
	perf_blackbox_free(box);
	return ERR_PTR(err);
}

/* Sessions and events */

/**
 * perf_blackbox_look - look what earlier boots have left in a region
 * @label: its label
 *
 * From then on, sessions can be placed there.
 *
 * Context: takes perf_persistent_mutex, may sleep.
 * Return: 0; -ENODEV if there is no such region, -ENOMEM
 */
int perf_blackbox_look(const char *label)
{
	guard(mutex)(&perf_persistent_mutex);

	return perf_blackbox_add_region(label);
}

static int perf_blackbox_add_session(struct perf_blackbox *box,
				     struct perf_persistent_session *s)
{
	struct perf_blackbox_session *session;
	size_t slot;
	void *notes;
	u32 nr;

	slot = clamp_t(size_t, PAGE_ALIGN(box->size / PERF_BLACKBOX_NOTES_PART),
		       PAGE_ALIGN(PERF_BLACKBOX_NOTES_MIN), PERF_BLACKBOX_NOTES_MAX);

	scoped_guard(spinlock_bh, &box->lock) {
		nr = find_first_zero_bit(box->used_sessions, PERF_BLACKBOX_MAX_SESSIONS);
		if (nr == PERF_BLACKBOX_MAX_SESSIONS)
			return -ENOSPC;
		notes = perf_blackbox_alloc_pages(box, 2 * slot >> PAGE_SHIFT);
		if (!notes)
			return -ENOSPC;
		__set_bit(nr, box->used_sessions);
	}

	/* Sequence numbers begin at 1 again: additions of an earlier session could match. */
	memset(notes, 0, 2 * slot);

	scoped_guard(mutex, &box->notes_lock)
		box->notes_end[nr] = (struct perf_blackbox_notes_end) { };

	session = perf_blackbox_session(box, nr);
	perf_blackbox_fill_session(session, s);
	session->notes = perf_blackbox_offset(box, notes);
	session->notes_size = slot;
	perf_blackbox_publish_entry(session, sizeof(*session));

	s->box = box;
	s->box_entry = nr;
	scoped_guard(spinlock_bh, &box->lock)
		perf_blackbox_add_to_nr(box, 1);
	return 0;
}

/**
 * perf_blackbox_place - place a session in a region
 * @s: the session, without events
 * @label: the region's label, or NULL: the session stays in the kernel's memory, and is entered
 *	in the scattered image
 *
 * Context: perf_persistent_mutex is held; may sleep.
 * Return: 0; -ENODEV if there is no such region, -EBUSY if it is full of what kernels left at
 * their deaths, -ENOSPC if it is too small, -ENOMEM; -ESHUTDOWN while the kernel dies. The
 * kernel's log says more.
 */
int perf_blackbox_place(struct perf_persistent_session *s, const char *label)
{
	struct perf_blackbox_region *region;
	struct perf_blackbox *box;
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (!label)
		return perf_blackbox_enter(s);
	if (perf_blackbox_has_died())
		return -ESHUTDOWN;

	region = perf_blackbox_find_region(label);
	if (!region) {
		pr_warn_ratelimited("there is no region '%s': reserve_mem=SIZE:ALIGN:%s or perf_persistent=@%s is missing, or failed\n",
				    label, label, label);
		return -ENODEV;
	}

	box = perf_blackbox_take(region);
	if (IS_ERR(box))
		return PTR_ERR(box);

	err = perf_blackbox_add_session(box, s);
	if (err)
		pr_warn_ratelimited("region '%s' has no room for session '%s'\n", label, s->name);
	return err;
}

/**
 * perf_blackbox_label - in which region does a session lie?
 * @s: the session, which was placed before it was listed
 *
 * Context: any.
 * Return: the label of the region, or NULL if it lies in ordinary memory
 */
const char *perf_blackbox_label(struct perf_persistent_session *s)
{
	return s->box ? s->box->region->label : NULL;
}

/**
 * perf_blackbox_remove - remove a session from its image
 * @s: the session, which has no members and no files any more
 *
 * Context: may sleep.
 */
void perf_blackbox_remove(struct perf_persistent_session *s)
{
	struct perf_blackbox_session *session;
	struct perf_blackbox *box = s->box;

	perf_blackbox_drop(s);
	if (!box || perf_blackbox_has_died())
		return;

	session = perf_blackbox_session(box, s->box_entry);
	spin_lock_bh(&box->lock);
	perf_blackbox_clear_entry(session);
	perf_blackbox_free_pages(box, perf_blackbox_at(box, session->notes),
				 2 * session->notes_size >> PAGE_SHIFT);
	__clear_bit(s->box_entry, box->used_sessions);
	perf_blackbox_add_to_nr(box, -1);
	spin_unlock_bh(&box->lock);
}

/**
 * perf_blackbox_memory - the memory of the buffers of a session
 * @s: the session
 *
 * Return: that of its region, or the kernel's
 */
const struct perf_rb_memory *perf_blackbox_memory(struct perf_persistent_session *s)
{
	return s->box ? &s->box->memory : &perf_rb_kernel_memory;
}

/**
 * perf_blackbox_join - enter an event in the image that has its session
 * @pe: the member; if its buffer lies elsewhere than its session, it is left out
 *
 * Without a free entry, the event is left out, which is logged.
 *
 * Context: may sleep.
 */
void perf_blackbox_join(struct perf_persistent_event *pe)
{
	struct perf_blackbox *box = pe->session->box;
	struct perf_blackbox_event *entry;
	u32 nr;

	if (!box)
		perf_blackbox_enter_event(pe);
	if (!box || pe->rb->memory != &box->memory)
		return;

	scoped_guard(spinlock_bh, &box->lock) {
		nr = find_first_zero_bit(box->used_events, box->max_events);
		if (nr < box->max_events)
			__set_bit(nr, box->used_events);
	}
	if (nr == box->max_events) {
		pr_warn_ratelimited("region '%s' has no entry for another event\n",
				    box->region->label);
		return;
	}

	entry = perf_blackbox_event(box, nr);
	entry->session = pe->session->box_entry;
	entry->buffer = perf_blackbox_rb_nr(box, pe->rb);
	perf_blackbox_fill_event(entry, pe);
	perf_blackbox_publish_entry(entry, sizeof(*entry));
	pe->box_event = entry;
}

/**
 * perf_blackbox_leave - remove an event from its image
 * @pe: the member, by its last user
 *
 * Context: may sleep.
 */
void perf_blackbox_leave(struct perf_persistent_event *pe)
{
	struct perf_blackbox *box = pe->session->box;

	if (!pe->box_event)
		return;
	if (!box) {
		perf_blackbox_leave_event(pe);
		return;
	}
	if (perf_blackbox_has_died())
		return;

	spin_lock_bh(&box->lock);
	perf_blackbox_clear_entry(pe->box_event);
	__clear_bit(pe->box_event - perf_blackbox_event(box, 0), box->used_events);
	spin_unlock_bh(&box->lock);
}
