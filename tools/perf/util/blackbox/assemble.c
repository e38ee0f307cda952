// SPDX-License-Identifier: GPL-2.0
/*
 * Make one image of a scattered one
 *
 * A scattered image is a root that leads to parts, ring buffers and notes all over the memory,
 * see struct perf_blackbox_part. They are copied into one image, as it would lie in a region,
 * and all who read images need not know where it comes from:
 *
 *	root | tasks | sessions | buffers | events | heap: notes and ring buffers
 *
 * Nothing that is found is trusted. A part must have the magic, its own address, its kind, and
 * the number of its session: a link that leads elsewhere is broken. It ends its list, and the
 * image says so: what is behind it is missing. Lists may form a circle: their length is bounded,
 * and the rest of a longer one is missing, too. An entry is changed only if its CRC matches.
 * One that is damaged is copied as it is, and counted by those who read the image.
 *
 * Two events may have the same ring buffer, which is copied once. All copies together are not
 * larger than a limit, the size of the memory: forged entries could name the same pages again
 * and again.
 *
 * A page that is not in the dump reads as zeros, which is no record.
 */
#include "assemble.h"
#include "crc32.h"
#include "memory.h"
#include "../hashmap.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* More than there are. They bound what a forged image costs. */
#define MAX_SESSIONS	256
#define MAX_MEMBERS	65536
#define MAX_TASKS	65536U
#define MAX_RB		65536
#define MAX_SLOT	(16ULL << 20)
#define MAX_DATA	(4ULL << 30)

#define PART_MEMBERS	((PERF_BLACKBOX_PART_SIZE - PERF_BLACKBOX_PART_HEAD_SIZE) / \
			 PERF_BLACKBOX_MEMBER_SIZE)
#define PART_PAGES	((PERF_BLACKBOX_PART_SIZE - PERF_BLACKBOX_PART_HEAD_SIZE) / sizeof(u64))

/* A part, as it is in memory */
struct part {
	struct perf_blackbox_part	head;
	u8				body[PERF_BLACKBOX_PART_SIZE -
					     PERF_BLACKBOX_PART_HEAD_SIZE];
};

/**
 * struct assembler - an image that is being made
 * @mem: the memory
 * @super: of the root
 * @limit: bytes that may still be copied
 * @left_out: bytes that are not in the dump
 * @root: the root
 * @sessions: entries, whose notes count from the start of the heap
 * @nr_sessions: number of these
 * @broken: links of each of them, and of the next one
 * @events: entries
 * @nr_events: number of these
 * @buffers: entries, whose addresses count from the start of the heap
 * @nr_buffers: number of these
 * @by_rb: number of a buffer by the physical address of its struct perf_buffer
 * @heap: notes and ring buffers
 * @heap_size: bytes of it
 * @heap_room: bytes that @heap has room for
 */
struct assembler {
	struct blackbox_memory			*mem;
	const struct perf_blackbox_super	*super;
	u64					limit;
	u64					left_out;
	u8					root[PERF_BLACKBOX_PART_SIZE];
	struct perf_blackbox_session		*sessions;
	u32					nr_sessions;
	struct blackbox_broken			*broken;
	struct perf_blackbox_event		*events;
	u32					nr_events;
	struct perf_blackbox_buffer		*buffers;
	u32					nr_buffers;
	struct hashmap				*by_rb;
	u8					*heap;
	u64					heap_size;
	u64					heap_room;
};

static size_t hash_rb(long key, void *ctx __maybe_unused)
{
	return hash_bits(key >> 6, 32);
}

static bool equal_rb(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

/* Entries */

struct entry_head {
	u32	state;
	u32	crc;
};

static u32 entry_crc(const void *entry, size_t size)
{
	return blackbox_crc32(entry + sizeof(struct entry_head),
			      size - sizeof(struct entry_head));
}

static bool is_valid(const void *entry, size_t size)
{
	const struct entry_head *head = entry;

	return head->state == PERF_BLACKBOX_VALID && head->crc == entry_crc(entry, size);
}

static void seal(void *entry, size_t size)
{
	struct entry_head *head = entry;

	head->crc = entry_crc(entry, size);
}

/* Add an element to an array whose room is the next power of two. */
static int add_entry(void **array, u32 *nr, const void *entry, size_t size)
{
	if (!(*nr & (*nr - 1))) {
		void *larger = reallocarray(*array, *nr ? 2 * *nr : 1, size);

		if (!larger)
			return -ENOMEM;
		*array = larger;
	}
	memcpy(*array + (size_t)*nr * size, entry, size);
	++*nr;
	return 0;
}

/* Memory */

/* Bytes that the memory does not have are read as 0. */
static void read_or_zero(struct assembler *as, u64 phys, void *buf, u64 size)
{
	if (blackbox_memory__read(as->mem, phys, buf, size))
		return;
	memset(buf, 0, size);
	as->left_out += size;
}

/* Room for @size bytes in the heap, zeroed. Return: its offset, or -ENOSPC, -ENOMEM. */
static s64 reserve(struct assembler *as, u64 size)
{
	u64 offset = as->heap_size;

	size = PERF_ALIGN(size, sizeof(u64));
	if (size > as->limit)
		return -ENOSPC;
	if (size > as->heap_room - as->heap_size) {
		u64 room = max(2 * as->heap_room, as->heap_size + size);
		void *heap = realloc(as->heap, room);

		if (!heap)
			return -ENOMEM;
		as->heap = heap;
		as->heap_room = room;
	}
	as->limit -= size;
	as->heap_size += size;
	memset(as->heap + offset, 0, size);
	return offset;
}

/* Part of a list; false if there is none, or if the link is broken. */
static bool read_part(struct assembler *as, u64 phys, u32 kind, u32 session, struct part *part)
{
	return phys && blackbox_memory__read(as->mem, phys, part, sizeof(*part)) &&
	       part->head.magic == PERF_BLACKBOX_PART_MAGIC && part->head.phys == phys &&
	       part->head.kind == kind &&
	       (kind == PERF_BLACKBOX_PART_SESSION || part->head.session == session);
}

/* Ring buffers */

/* With KASAN, an address of arm64 has a tag in its first byte. */
static u64 untag(const struct assembler *as, u64 addr)
{
	return as->super->machine == EM_AARCH64 ? addr | 0xffULL << 56 : addr;
}

static int copy_data(struct assembler *as, const struct perf_blackbox_buffer *buffer, s64 offset)
{
	const u32 page_size = as->super->page_size;
	u64 nr = buffer->data_size / page_size;
	u64 *pages = calloc(nr, sizeof(*pages));

	if (!pages)
		return -ENOMEM;
	read_or_zero(as, buffer->data, pages, nr * sizeof(*pages));
	for (u64 i = 0; i < nr; i++)
		read_or_zero(as, untag(as, pages[i]) - as->super->linear_map,
			     as->heap + offset + i * page_size, page_size);
	free(pages);
	return 0;
}

static bool is_plausible(const struct assembler *as, const struct perf_blackbox_buffer *buffer)
{
	return buffer->flags & PERF_BLACKBOX_BUFFER_SCATTERED && buffer->rb_size <= MAX_RB &&
	       buffer->data_size >= as->super->page_size && buffer->data_size <= MAX_DATA &&
	       !(buffer->data_size & (buffer->data_size - 1));
}

/* Return: 0, -ENOSPC if it is too large, or -ENOMEM. */
static int copy_buffer(struct assembler *as, struct perf_blackbox_buffer *buffer)
{
	s64 rb, page, data;
	int err;

	rb = reserve(as, buffer->rb_size);
	page = rb < 0 ? rb : reserve(as, as->super->page_size);
	data = page < 0 ? page : reserve(as, buffer->data_size);
	if (data < 0)
		return data;
	read_or_zero(as, buffer->rb, as->heap + rb, buffer->rb_size);
	read_or_zero(as, buffer->user_page, as->heap + page, as->super->page_size);
	err = copy_data(as, buffer, data);
	buffer->flags &= ~PERF_BLACKBOX_BUFFER_SCATTERED;
	buffer->rb = rb;
	buffer->user_page = page;
	buffer->data = data;
	return err;
}

/* Return: 0, with the number of the buffer, ~0 if it is damaged; or -ENOMEM. */
static int add_buffer(struct assembler *as, const struct perf_blackbox_buffer *found, u32 *index)
{
	struct perf_blackbox_buffer buffer = *found;
	long known;
	int err;

	*index = ~0U;
	if (!is_valid(found, sizeof(*found)) || !is_plausible(as, found))
		return 0;
	if (hashmap__find(as->by_rb, found->rb, &known)) {
		*index = known;
		return 0;
	}
	err = copy_buffer(as, &buffer);
	if (err)
		return err == -ENOSPC ? 0 : err;
	*index = as->nr_buffers;
	return hashmap__add(as->by_rb, found->rb, as->nr_buffers) ?:
	       add_entry((void **)&as->buffers, &as->nr_buffers, &buffer, sizeof(buffer));
}

/* Events */

static int add_member(struct assembler *as, const struct perf_blackbox_member *member)
{
	struct perf_blackbox_event event = member->event;
	int err = 0;

	if (!event.state)
		return 0;
	if (is_valid(&event, sizeof(event))) {
		err = add_buffer(as, &member->buffer, &event.buffer);
		event.session = as->nr_sessions;
		seal(&event, sizeof(event));
	}
	return err ?: add_entry((void **)&as->events, &as->nr_events, &event, sizeof(event));
}

static int add_events(struct assembler *as, u64 phys, u32 session)
{
	struct perf_blackbox_member member;
	struct part part;
	int err = 0;

	while (!err && as->limit && as->nr_events < MAX_MEMBERS &&
	       read_part(as, phys, PERF_BLACKBOX_PART_EVENTS, session, &part)) {
		for (size_t i = 0; i < PART_MEMBERS && !err; i++) {
			memcpy(&member, part.body + i * PERF_BLACKBOX_MEMBER_SIZE,
			       sizeof(member));
			err = add_member(as, &member);
		}
		/* Bounds what a circle of empty parts costs. */
		as->limit -= min(as->limit, (u64)sizeof(part));
		phys = part.head.next;
	}
	as->broken[as->nr_sessions].events = phys != 0;
	return err;
}

/* Notes */

/*
 * The pages of a slot, appended to the heap. @broken: returns whether there are more. Return: bytes
 * of it, or -ENOMEM.
 */
static s64 copy_slot(struct assembler *as, u64 phys, u32 session, bool *broken)
{
	const u32 page_size = as->super->page_size;
	u64 pages[PART_PAGES];
	struct part part;
	s64 size = 0;
	size_t i;

	*broken = phys != 0;
	while (read_part(as, phys, PERF_BLACKBOX_PART_NOTES, session, &part)) {
		memcpy(pages, part.body, sizeof(pages));
		for (i = 0; i < PART_PAGES && pages[i]; i++) {
			s64 offset = (u64)size < MAX_SLOT ? reserve(as, page_size) : -ENOSPC;

			if (offset == -ENOSPC)
				return size;
			if (offset < 0)
				return offset;
			read_or_zero(as, pages[i], as->heap + offset, page_size);
			size += page_size;
		}
		phys = i < PART_PAGES ? 0 : part.head.next;
		*broken = phys != 0;
	}
	return size;
}

/* Both slots of an image are as large as the larger one. */
static int add_notes(struct assembler *as, const struct part *part,
		     struct perf_blackbox_session *entry)
{
	struct blackbox_broken *broken = &as->broken[as->nr_sessions];
	s64 start = as->heap_size, first, second, fill = 0;

	first = copy_slot(as, part->head.notes[0], part->head.session, &broken->notes[0]);
	if (first < 0)
		return first;
	/* Where the second one begins is not known before it is read. */
	second = copy_slot(as, part->head.notes[1], part->head.session, &broken->notes[1]);
	if (second < 0)
		return second;
	if (first != second)
		fill = reserve(as, first > second ? first - second : second - first);
	if (fill == -ENOSPC) {
		broken->notes[0] |= first != 0;
		broken->notes[1] |= second != 0;
		return 0;
	}
	if (fill < 0)
		return fill;
	if (second > first) {
		memmove(as->heap + start + second, as->heap + start + first, second);
		memset(as->heap + start + first, 0, second - first);
	}
	entry->notes = start;
	entry->notes_size = max(first, second);
	return 0;
}

/* Sessions */

static int add_session(struct assembler *as, const struct part *part)
{
	struct perf_blackbox_session entry;
	int err;

	memcpy(&entry, part->body, sizeof(entry));
	if (!is_valid(&entry, sizeof(entry)))
		return add_entry((void **)&as->sessions, &as->nr_sessions, &entry,
				 sizeof(entry));
	err = add_events(as, part->head.events, part->head.session) ?:
	      add_notes(as, part, &entry);
	seal(&entry, sizeof(entry));
	return err ?: add_entry((void **)&as->sessions, &as->nr_sessions, &entry,
				sizeof(entry));
}

/* @broken: returns whether there are more */
static int add_sessions(struct assembler *as, u64 phys, bool *broken)
{
	struct part part;
	int err = 0;

	while (!err && as->nr_sessions < MAX_SESSIONS &&
	       read_part(as, phys, PERF_BLACKBOX_PART_SESSION, 0, &part)) {
		err = add_session(as, &part);
		phys = part.head.next;
	}
	*broken = phys != 0;
	return err;
}

/* The image */

static u64 put(u8 *bytes, u64 *pos, const void *array, u64 size)
{
	u64 offset = *pos;

	if (bytes && size)
		memcpy(bytes + offset, array, size);
	*pos = PERF_ALIGN(offset + size, sizeof(u64));
	return offset;
}

/* Lay it out, and fill it in if there is memory for it. Return: its size. */
static u64 lay_out(const struct assembler *as, const void *tasks, struct perf_blackbox_super *super,
		   u8 *bytes)
{
	u64 pos = 0;

	put(bytes, &pos, as->root, sizeof(as->root));
	super->tasks = put(bytes, &pos, tasks, (u64)super->max_tasks * super->task_size);
	super->sessions = put(bytes, &pos, as->sessions,
			      as->nr_sessions * sizeof(*as->sessions));
	super->buffers = put(bytes, &pos, as->buffers, as->nr_buffers * sizeof(*as->buffers));
	super->events = put(bytes, &pos, as->events, as->nr_events * sizeof(*as->events));
	super->heap = put(bytes, &pos, as->heap, as->heap_size);
	super->max_sessions = as->nr_sessions;
	super->max_buffers = as->nr_buffers;
	super->max_events = as->nr_events;
	super->image_size = pos;
	return pos;
}

/* The heap is behind the arrays: what counts from its start becomes an offset in the image. */
static void move_heap(struct assembler *as, u64 heap)
{
	for (u32 i = 0; i < as->nr_sessions; i++) {
		struct perf_blackbox_session *entry = &as->sessions[i];

		if (!is_valid(entry, sizeof(*entry)))
			continue;
		if (entry->notes_size)
			entry->notes += heap;
		seal(entry, sizeof(*entry));
	}
	for (u32 i = 0; i < as->nr_buffers; i++) {
		struct perf_blackbox_buffer *buffer = &as->buffers[i];

		buffer->rb += heap;
		buffer->user_page += heap;
		buffer->data += heap;
		seal(buffer, sizeof(*buffer));
	}
}

/* Entries have the sizes that are known here: those of a later kernel are not read. */
static bool is_known(const struct perf_blackbox_super *super)
{
	return super->session_size == PERF_BLACKBOX_SESSION_SIZE &&
	       super->buffer_size == PERF_BLACKBOX_BUFFER_SIZE &&
	       super->event_size == PERF_BLACKBOX_EVENT_SIZE && super->long_size == sizeof(u64) &&
	       super->task_size <= PERF_BLACKBOX_PART_SIZE;
}

static int finish(struct assembler *as, struct blackbox_image *image, const void *tasks)
{
	struct perf_blackbox_super super = *as->super;
	u64 size = lay_out(as, tasks, &super, NULL);
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		return -ENOMEM;
	move_heap(as, super.heap);
	lay_out(as, tasks, &super, bytes);
	image->base = bytes;
	image->is_copy = true;
	image->size = size;
	image->super = super;
	image->left_out = as->left_out;
	return 0;
}

static int assemble(struct assembler *as, struct blackbox_image *image)
{
	struct perf_blackbox_root_links links;
	u64 max_tasks = min(image->super.max_tasks, MAX_TASKS);
	void *tasks;
	int err;

	max_tasks = min(max_tasks, as->limit / image->super.task_size);
	as->limit -= max_tasks * image->super.task_size;
	tasks = calloc(max_tasks ?: 1, image->super.task_size);
	if (!tasks)
		return -ENOMEM;
	memcpy(&links, as->root + PERF_BLACKBOX_ROOT_LINKS_OFFSET, sizeof(links));
	if (max_tasks)
		read_or_zero(as, links.tasks, tasks, max_tasks * image->super.task_size);
	image->super.max_tasks = max_tasks;
	err = add_sessions(as, links.sessions, &image->sessions_broken) ?:
	      finish(as, image, tasks);
	free(tasks);
	return err;
}

/**
 * blackbox_assemble - make one image of a scattered one
 * @image: what was found at its root; returns the image, a copy
 * @mem: the memory
 * @limit: bytes that the image may have, about: the size of the memory
 *
 * Return: 0, also if nothing is found but the root; -EPROTONOSUPPORT if it is of a kernel that has
 * other entries; -ENOMEM.
 */
int blackbox_assemble(struct blackbox_image *image, struct blackbox_memory *mem, u64 limit)
{
	struct assembler as = { .mem = mem, .super = &image->super, .limit = limit };
	int err;

	if (!is_known(&image->super) ||
	    !blackbox_memory__read(mem, image->super.phys, as.root, sizeof(as.root)))
		return -EPROTONOSUPPORT;
	image->broken = calloc(MAX_SESSIONS, sizeof(*image->broken));
	if (!image->broken)
		return -ENOMEM;
	as.broken = image->broken;
	as.by_rb = hashmap__new(hash_rb, equal_rb, NULL);
	if (IS_ERR(as.by_rb))
		return -ENOMEM;
	err = assemble(&as, image);
	hashmap__free(as.by_rb);
	free(as.sessions);
	free(as.events);
	free(as.buffers);
	free(as.heap);
	return err;
}
