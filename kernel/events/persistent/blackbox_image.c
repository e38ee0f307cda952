// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: the layout of an image
 *
 *	0	struct perf_blackbox_super	written once
 *	1024	struct perf_blackbox_life	live, clean, dead or released
 *	2048	struct perf_blackbox_death	written at the death of the kernel
 *	4096	tasks, sessions, buffers and	arrays, each at a page boundary
 *		events
 *	heap	notes and ring buffers
 *
 * The size of the arrays follows from the size of the image: about a twentieth of it.
 *
 * Order of stores
 * ---------------
 *
 * An image may be cut off at any store. Each structure is therefore written first, and the
 * word that makes it valid last: the magic of the superblock, and the state of an entry. An
 * entry that is removed becomes invalid before what it describes is used for something else:
 *
 *	this kernel			a reader, after the reset
 *
 *	STORE valid = 0			LOAD valid
 *	smp_wmb()		(A)	LOAD structure
 *	STORE structure
 *	smp_wmb()		(B)
 *	STORE valid = 1
 *
 * The reader needs no barrier: the writer has stopped. What the caches hold at a reset is
 * another matter: see blackbox_death.c.
 */
#include <linux/align.h>
#include <linux/build_bug.h>
#include <linux/buildid.h>
#include <linux/elf.h>
#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched/clock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/trace_events.h>
#include <linux/uidgid.h>
#include <linux/utsname.h>
#include <linux/uuid.h>

#include <asm/sections.h>

#include "blackbox.h"

#define PERF_BLACKBOX_DEATH_OFFSET	2048
#define PERF_BLACKBOX_TASKS_OFFSET	4096

/* Bytes of the image for each task, and for each event and ring buffer */
#define PERF_BLACKBOX_PER_TASK		SZ_2K
#define PERF_BLACKBOX_PER_EVENT		SZ_16K
#define PERF_BLACKBOX_MIN_ENTRIES	64U
#define PERF_BLACKBOX_MAX_TASKS		SZ_32K
#define PERF_BLACKBOX_MAX_EVENTS	SZ_16K

static void perf_blackbox_check_abi(void)
{
	BUILD_BUG_ON(sizeof(struct perf_blackbox_clock) != PERF_BLACKBOX_CLOCK_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_super) != PERF_BLACKBOX_SUPER_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_life) != PERF_BLACKBOX_LIFE_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_death) != PERF_BLACKBOX_DEATH_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_task) != PERF_BLACKBOX_TASK_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_session) != PERF_BLACKBOX_SESSION_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_buffer) != PERF_BLACKBOX_BUFFER_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_event) != PERF_BLACKBOX_EVENT_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_notes) != PERF_BLACKBOX_NOTES_SIZE);
	BUILD_BUG_ON(sizeof(struct perf_blackbox_addition) != PERF_BLACKBOX_ADDITION_SIZE);

	CHECK_OFFSET(perf_blackbox_super, phys, 16);
	CHECK_OFFSET(perf_blackbox_super, generation, 48);
	CHECK_OFFSET(perf_blackbox_super, life, 152);
	CHECK_OFFSET(perf_blackbox_super, release, 240);
	CHECK_OFFSET(perf_blackbox_super, crc, 508);

	BUILD_BUG_ON(sizeof(struct perf_event_attr) >
		     sizeof_field(struct perf_blackbox_event, attr));
	BUILD_BUG_ON(sizeof_field(struct perf_blackbox_task, comm) < TASK_COMM_LEN);
	BUILD_BUG_ON(sizeof_field(struct perf_blackbox_session, name) < PERF_PERSISTENT_NAME_LEN);
	BUILD_BUG_ON(PERF_BLACKBOX_DEATH_OFFSET + PERF_BLACKBOX_DEATH_SIZE >
		     PERF_BLACKBOX_TASKS_OFFSET);
}

struct perf_blackbox_life *perf_blackbox_life(struct perf_blackbox_super *super)
{
	return (void *)super + PERF_BLACKBOX_LIFE_OFFSET;
}

struct perf_blackbox_death *perf_blackbox_death(struct perf_blackbox *box)
{
	return perf_blackbox_at(box, PERF_BLACKBOX_DEATH_OFFSET);
}

struct perf_blackbox_session *perf_blackbox_session(struct perf_blackbox *box, u32 nr)
{
	return perf_blackbox_at(box, box->super->sessions + (u64)nr * PERF_BLACKBOX_SESSION_SIZE);
}

struct perf_blackbox_buffer *perf_blackbox_buffer(struct perf_blackbox *box, u32 nr)
{
	return perf_blackbox_at(box, box->super->buffers + (u64)nr * PERF_BLACKBOX_BUFFER_SIZE);
}

struct perf_blackbox_event *perf_blackbox_event(struct perf_blackbox *box, u32 nr)
{
	return perf_blackbox_at(box, box->super->events + (u64)nr * PERF_BLACKBOX_EVENT_SIZE);
}

/**
 * perf_blackbox_now - read the clocks
 * @clock: set to the time
 *
 * Context: any, NMI included.
 */
void perf_blackbox_now(struct perf_blackbox_clock *clock)
{
	clock->perf = local_clock();
	clock->mono = ktime_get_mono_fast_ns();
	clock->real = ktime_get_real_fast_ns();
}

/**
 * perf_blackbox_mark_clean - nothing would be lost with an image
 * @box: the image
 */
void perf_blackbox_mark_clean(struct perf_blackbox *box)
{
	cmpxchg(&perf_blackbox_life(box->super)->state, PERF_BLACKBOX_LIVE, PERF_BLACKBOX_CLEAN);
}

/**
 * perf_blackbox_add_to_nr - count the sessions of an image
 * @box: the image, whose sessions are locked
 * @nr: 1 or -1
 *
 * It is LIVE as long as there is one, unless the machine was shut down meanwhile.
 */
void perf_blackbox_add_to_nr(struct perf_blackbox *box, int nr)
{
	WRITE_ONCE(box->nr_sessions, box->nr_sessions + nr);
	if (!box->nr_sessions)
		perf_blackbox_mark_clean(box);
	else if (nr > 0)
		cmpxchg(&perf_blackbox_life(box->super)->state, PERF_BLACKBOX_CLEAN,
			PERF_BLACKBOX_LIVE);
}

/**
 * perf_blackbox_valid - is there an image?
 * @super: where it would start
 * @phys: physical address of that
 * @room: bytes up to the end of the region
 *
 * Nothing else of what an earlier kernel has left is ever interpreted by the kernel.
 *
 * Return: true if there is.
 */
bool perf_blackbox_valid(const struct perf_blackbox_super *super, phys_addr_t phys, size_t room)
{
	u32 size;

	if (room < PAGE_SIZE || super->magic != PERF_BLACKBOX_MAGIC)
		return false;

	size = super->size;
	if (size < PERF_BLACKBOX_SUPER_SIZE || size > PERF_BLACKBOX_LIFE_OFFSET)
		return false;

	/* The root of a scattered image leads nowhere any more. */
	return !(super->flags & PERF_BLACKBOX_SUPER_SCATTERED) &&
	       super->phys == phys && super->image_size >= PAGE_SIZE &&
	       super->image_size <= room && PAGE_ALIGNED(super->image_size) &&
	       *(u32 *)((void *)super + size - sizeof(u32)) ==
	       perf_blackbox_crc(super, size - sizeof(u32));
}

/* The kernel's build-id, if it has one */
static void perf_blackbox_set_build_id(struct perf_blackbox_super *super)
{
	unsigned char build_id[BUILD_ID_SIZE_MAX] = { };

	BUILD_BUG_ON(sizeof(build_id) != sizeof(super->build_id));
	if (build_id_parse_buf(__start_notes, build_id, __stop_notes - __start_notes))
		return;

	memcpy(super->build_id, build_id, sizeof(build_id));
	super->build_id_size = sizeof(build_id);
}

/* Lay out the arrays; returns the offset of the heap. */
static u64 perf_blackbox_lay_out(struct perf_blackbox_super *super, size_t size)
{
	u64 offset = PERF_BLACKBOX_TASKS_OFFSET;

	super->max_tasks = clamp_t(size_t, size / PERF_BLACKBOX_PER_TASK,
				   PERF_BLACKBOX_MIN_ENTRIES, PERF_BLACKBOX_MAX_TASKS);
	super->max_events = clamp_t(size_t, size / PERF_BLACKBOX_PER_EVENT,
				    PERF_BLACKBOX_MIN_ENTRIES, PERF_BLACKBOX_MAX_EVENTS);
	super->max_buffers = super->max_events;
	super->max_sessions = PERF_BLACKBOX_MAX_SESSIONS;
	super->task_size = PERF_BLACKBOX_TASK_SIZE;
	super->session_size = PERF_BLACKBOX_SESSION_SIZE;
	super->buffer_size = PERF_BLACKBOX_BUFFER_SIZE;
	super->event_size = PERF_BLACKBOX_EVENT_SIZE;

	super->life = PERF_BLACKBOX_LIFE_OFFSET;
	super->death = PERF_BLACKBOX_DEATH_OFFSET;
	super->tasks = offset;
	offset += (u64)super->max_tasks * super->task_size;
	super->sessions = PAGE_ALIGN(offset);
	offset = super->sessions + (u64)super->max_sessions * super->session_size;
	super->buffers = PAGE_ALIGN(offset);
	offset = super->buffers + (u64)super->max_buffers * super->buffer_size;
	super->events = PAGE_ALIGN(offset);
	offset = super->events + (u64)super->max_events * super->event_size;
	super->heap = PAGE_ALIGN(offset);
	return super->heap;
}

/* Random, the same for all images of this boot */
static const u8 *perf_blackbox_boot_uuid(void)
{
	static u8 uuid[UUID_SIZE];

	lockdep_assert_held(&perf_persistent_mutex);

	if (!memchr_inv(uuid, 0, sizeof(uuid)))
		generate_random_uuid(uuid);
	return uuid;
}

/* These fields are the same in all images of this boot. */
static void perf_blackbox_describe_kernel(struct perf_blackbox_super *super)
{
	super->version = PERF_BLACKBOX_VERSION;
	super->size = sizeof(*super);
	memcpy(super->boot_uuid, perf_blackbox_boot_uuid(), sizeof(super->boot_uuid));
	perf_blackbox_now(&super->clock);
	super->page_size = PAGE_SIZE;
	super->long_size = sizeof(long);
	super->nr_cpus = num_possible_cpus();
	super->machine = ELF_ARCH;
	super->text = (unsigned long)_text;
	super->text_end = (unsigned long)_etext;
	perf_blackbox_set_build_id(super);
	strscpy(super->release, init_utsname()->release);
	strscpy(super->kernel_version, init_utsname()->version);
}

/* Write a superblock, its magic last. What lies behind it up to @size is 0. */
static void perf_blackbox_write_super(struct perf_blackbox_super *super,
				      struct perf_blackbox_super *fresh, size_t size)
{
	fresh->magic = PERF_BLACKBOX_MAGIC;
	fresh->crc = perf_blackbox_crc(fresh, offsetof(struct perf_blackbox_super, crc));

	WRITE_ONCE(super->magic, 0);
	/* A */
	smp_wmb();
	memset(super, 0, size);
	memcpy((void *)super + sizeof(super->magic), (void *)fresh + sizeof(super->magic),
	       sizeof(*fresh) - sizeof(super->magic));
	WRITE_ONCE(perf_blackbox_life(super)->state, PERF_BLACKBOX_LIVE);
	/* B */
	smp_wmb();
	WRITE_ONCE(super->magic, PERF_BLACKBOX_MAGIC);
}

/**
 * perf_blackbox_format - write the superblock of an image, and empty arrays
 * @region: the region
 * @phys: physical address of the image, page aligned
 * @size: of the image, page aligned
 *
 * The first store invalidates the previous content.
 *
 * Return: 0, or -ENOSPC if @size is too small, and nothing is written
 */
int perf_blackbox_format(struct perf_blackbox_region *region, phys_addr_t phys, size_t size)
{
	struct perf_blackbox_super *super = phys_to_virt(phys), fresh = { };

	perf_blackbox_check_abi();
	lockdep_assert_held(&perf_persistent_mutex);

	if (perf_blackbox_lay_out(&fresh, size) >= size)
		return -ENOSPC;

	perf_blackbox_describe_kernel(&fresh);
	fresh.phys = phys;
	fresh.image_size = size;
	fresh.region_phys = region->phys;
	fresh.region_size = region->size;
	fresh.generation = region->generation + 1;
	strscpy(fresh.label, region->label);
	perf_blackbox_write_super(super, &fresh, fresh.heap);
	return 0;
}

/**
 * perf_blackbox_format_root - write the root of the scattered image
 * @root: of PERF_BLACKBOX_PART_SIZE bytes; the links are filled in
 * @phys: its physical address
 * @max_tasks: size of the table of tasks
 */
void perf_blackbox_format_root(void *root, phys_addr_t phys, u32 max_tasks)
{
	struct perf_blackbox_super fresh = { };

	lockdep_assert_held(&perf_persistent_mutex);

	perf_blackbox_describe_kernel(&fresh);
	fresh.flags = PERF_BLACKBOX_SUPER_SCATTERED;
	fresh.phys = phys;
	fresh.image_size = PERF_BLACKBOX_PART_SIZE;
	/* The address of 0 itself need not be mapped: not all phys_to_virt() take it. */
	fresh.linear_map = (unsigned long)phys_to_virt(phys) - phys;
	fresh.life = PERF_BLACKBOX_LIFE_OFFSET;
	fresh.death = PERF_BLACKBOX_DEATH_OFFSET;
	fresh.max_tasks = max_tasks;
	fresh.task_size = PERF_BLACKBOX_TASK_SIZE;
	fresh.session_size = PERF_BLACKBOX_SESSION_SIZE;
	fresh.buffer_size = PERF_BLACKBOX_BUFFER_SIZE;
	fresh.event_size = PERF_BLACKBOX_EVENT_SIZE;
	perf_blackbox_write_super(root, &fresh, PERF_BLACKBOX_ROOT_LINKS_OFFSET);
}

/**
 * struct perf_blackbox_entry - how each entry of the directory, and the death, begins
 * @state: PERF_BLACKBOX_VALID or 0
 * @crc: over the rest
 */
struct perf_blackbox_entry {
	u32	state;
	u32	crc;
};

/**
 * perf_blackbox_publish_entry - make an entry valid
 * @addr: the entry, invalid and filled in
 * @size: its size
 *
 * Context: any, NMI included.
 */
void perf_blackbox_publish_entry(void *addr, size_t size)
{
	struct perf_blackbox_entry *entry = addr;

	entry->crc = perf_blackbox_crc(entry + 1, size - sizeof(*entry));
	/* B */
	smp_wmb();
	WRITE_ONCE(entry->state, PERF_BLACKBOX_VALID);
}

/**
 * perf_blackbox_clear_entry - make an entry invalid
 * @addr: the entry
 *
 * Context: any, NMI included.
 */
void perf_blackbox_clear_entry(void *addr)
{
	struct perf_blackbox_entry *entry = addr;

	WRITE_ONCE(entry->state, 0);
	/* A */
	smp_wmb();
}

/* What sessions, events and buffers are, in any image */

/**
 * perf_blackbox_fill_session - describe a session
 * @session: the entry, free; where its notes are is not filled in
 * @s: the session
 */
void perf_blackbox_fill_session(struct perf_blackbox_session *session,
				struct perf_persistent_session *s)
{
	session->id = s->id;
	session->owner_uid = from_kuid(&init_user_ns, s->owner);
	perf_blackbox_now(&session->clock);
	strscpy_pad(session->name, s->name, sizeof(session->name));
}

static void perf_blackbox_name_event(struct perf_event *event, struct perf_blackbox_event *entry)
{
	struct perf_event_context *ctx = perf_event_ctx_lock(event);
	struct pmu *pmu = event->pmu;

	/* In newer kernels a PMU may go before its events, but not under this mutex. */
	strscpy_pad(entry->pmu, pmu && pmu->name ? pmu->name : "", sizeof(entry->pmu));
	perf_event_ctx_unlock(event, ctx);
	memset(entry->name, 0, sizeof(entry->name));
#ifdef CONFIG_EVENT_TRACING
	if (event->tp_event)
		snprintf(entry->name, sizeof(entry->name), "%s:%s",
			 event->tp_event->class->system, trace_event_name(event->tp_event));
#endif
}

/* Pointers of the creator, and of the kernel, mean nothing to a reader. */
static void perf_blackbox_copy_attr(struct perf_event *event, struct perf_blackbox_event *entry)
{
	struct perf_event_attr attr;

	perf_persistent_copy_attr(event, &attr);
	memset(entry->attr, 0, sizeof(entry->attr));
	memcpy(entry->attr, &attr, sizeof(attr));
	entry->attr_size = sizeof(attr);
}

/**
 * perf_blackbox_fill_event - describe an event
 * @entry: the entry, free; its session and its buffer are not filled in
 * @pe: the member
 */
void perf_blackbox_fill_event(struct perf_blackbox_event *entry, struct perf_persistent_event *pe)
{
	entry->id = pe->event->id;
	entry->cpu = pe->cpu;
	entry->index = pe->index;
	perf_blackbox_name_event(pe->event, entry);
	perf_blackbox_copy_attr(pe->event, entry);
}

/**
 * perf_blackbox_fill_buffer - describe a ring buffer
 * @buffer: the entry, free; where the buffer lies is not filled in
 * @rb: the ring buffer
 * @cpu: that writes to it, or -1
 */
void perf_blackbox_fill_buffer(struct perf_blackbox_buffer *buffer, struct perf_buffer *rb, int cpu)
{
	/* Members write backward, see perf_persistent_check_event(). */
	buffer->cpu = cpu;
	buffer->flags = PERF_BLACKBOX_BUFFER_BACKWARD;
	buffer->data_size = perf_data_size(rb);
	buffer->rb_size = sizeof(*rb);
	buffer->rb_head = offsetof(struct perf_buffer, head);
	buffer->rb_nest = offsetof(struct perf_buffer, nest);
	buffer->rb_lost = offsetof(struct perf_buffer, lost);
	buffer->rb_paused = offsetof(struct perf_buffer, paused);
}
