/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TESTS_BLACKBOX_SCATTERED_H
#define __PERF_TESTS_BLACKBOX_SCATTERED_H

/*
 * Scatter an image over a memory, as a kernel has it: each page of data, each part and each
 * page of notes lies where the next free page is, and these go down, so that nothing that
 * follows on something lies behind it.
 */
#include "blackbox-image.h"

#define SCATTERED_MEMORY	(4 * BOX_SIZE)
#define SCATTERED_ROOT		(16 * BOX_PAGE)
#define SCATTERED_MAP		0xffff888000000000ULL

/**
 * struct scattered - a memory with a scattered image
 * @bytes: SCATTERED_MEMORY bytes, from physical address 0
 * @next: physical address behind the next free page
 * @box: what is scattered
 */
struct scattered {
	u8			*bytes;
	u64			next;
	const struct box	*box;
};

static inline u64 scattered__alloc(struct scattered *sc)
{
	sc->next -= BOX_PAGE;
	return sc->next;
}

static inline struct perf_blackbox_part *scattered__part(struct scattered *sc, u32 kind,
							 u32 session)
{
	u64 phys = scattered__alloc(sc);
	struct perf_blackbox_part *part = (void *)sc->bytes + phys;

	*part = (struct perf_blackbox_part) {
		.magic		= PERF_BLACKBOX_PART_MAGIC,
		.phys		= phys,
		.kind		= kind,
		.session	= session,
	};
	return part;
}

static inline void *scattered__body(struct perf_blackbox_part *part)
{
	return (void *)part + PERF_BLACKBOX_PART_HEAD_SIZE;
}

/* Copy @size bytes of the image to pages, and their addresses to an array. */
static inline void scattered__copy(struct scattered *sc, u64 offset, u64 size, void *pages,
				   u64 map)
{
	for (u64 i = 0; i < size / BOX_PAGE; i++) {
		u64 phys = scattered__alloc(sc), addr = phys + map;

		memcpy(sc->bytes + phys, sc->box->bytes + offset + i * BOX_PAGE, BOX_PAGE);
		memcpy(pages + i * sizeof(addr), &addr, sizeof(addr));
	}
}

static inline struct perf_blackbox_buffer scattered__buffer(struct scattered *sc, u32 i)
{
	struct perf_blackbox_buffer b = *box__buffer(sc->box, i);
	u64 rb = scattered__alloc(sc);

	memcpy(sc->bytes + rb, sc->box->bytes + b.rb, b.rb_size);
	b.data_size = box__buffer(sc->box, i)->data_size;
	scattered__copy(sc, b.data, b.data_size, sc->bytes + rb + b.rb_size,
			SCATTERED_MAP);
	scattered__copy(sc, b.user_page, BOX_PAGE, &b.user_page, 0);
	b.rb = rb;
	b.data = rb + b.rb_size;
	b.flags |= PERF_BLACKBOX_BUFFER_SCATTERED;
	box__seal_entry(&b, sizeof(b));
	return b;
}

/* One event in each part: there are several. */
static inline void scattered__add_event(struct scattered *sc, struct perf_blackbox_part *session,
					const struct perf_blackbox_event *event,
					const struct perf_blackbox_buffer *buffer)
{
	struct perf_blackbox_part *part;
	struct perf_blackbox_member *member;

	part = scattered__part(sc, PERF_BLACKBOX_PART_EVENTS, session->session);
	part->next = session->events;
	session->events = part->phys;
	member = (struct perf_blackbox_member *)scattered__body(part) + event->index % 2;
	member->event = *event;
	member->event.session = 0;
	member->event.buffer = 0;
	box__seal_entry(&member->event, sizeof(member->event));
	member->buffer = *buffer;
}

static inline void scattered__add_session(struct scattered *sc, u32 nr,
					  const struct perf_blackbox_buffer *buffers)
{
	struct perf_blackbox_root_links *links;
	struct perf_blackbox_session *entry;
	struct perf_blackbox_part *part, *notes;

	entry = box__session(sc->box, nr);
	part = scattered__part(sc, PERF_BLACKBOX_PART_SESSION, entry->id);
	for (u32 i = 0; i < 2; i++) {
		notes = scattered__part(sc, PERF_BLACKBOX_PART_NOTES, entry->id);
		part->notes[i] = notes->phys;
		scattered__copy(sc, entry->notes + i * entry->notes_size, entry->notes_size,
				scattered__body(notes), 0);
	}
	for (u32 i = 0; i < sc->box->nr_events; i++) {
		const struct perf_blackbox_event *event = box__event(sc->box, i);

		if (event->session == nr)
			scattered__add_event(sc, part, event, &buffers[event->buffer]);
	}
	entry = scattered__body(part);
	*entry = *box__session(sc->box, nr);
	entry->notes = 0;
	entry->notes_size = 0;
	box__seal_entry(entry, sizeof(*entry));

	links = (void *)sc->bytes + SCATTERED_ROOT + PERF_BLACKBOX_ROOT_LINKS_OFFSET;
	part->next = links->sessions;
	links->sessions = part->phys;
}

/* @bytes: SCATTERED_MEMORY bytes */
static inline void box__scatter(const struct box *box, void *bytes)
{
	struct scattered sc = { .bytes = bytes, .next = SCATTERED_MEMORY, .box = box };
	struct perf_blackbox_buffer buffers[BOX_BUFFERS];
	struct perf_blackbox_super *super = bytes + SCATTERED_ROOT;
	struct perf_blackbox_root_links *links;
	struct box root = { .super = super };

	memset(bytes, 0, SCATTERED_MEMORY);
	memcpy(super, box->bytes, PERF_BLACKBOX_ROOT_LINKS_OFFSET);
	super->flags = PERF_BLACKBOX_SUPER_SCATTERED;
	super->phys = SCATTERED_ROOT;
	super->image_size = PERF_BLACKBOX_PART_SIZE;
	super->linear_map = SCATTERED_MAP;
	super->region_phys = 0;
	super->region_size = 0;
	super->max_sessions = 0;
	super->max_buffers = 0;
	super->max_events = 0;
	memset(super->label, 0, sizeof(super->label));
	box__seal(&root);

	links = bytes + SCATTERED_ROOT + PERF_BLACKBOX_ROOT_LINKS_OFFSET;
	scattered__copy(&sc, BOX_TASKS_AT, BOX_PAGE, &links->tasks, 0);
	for (u32 i = 0; i < box->nr_buffers; i++)
		buffers[i] = scattered__buffer(&sc, i);
	for (u32 i = 0; i < box->nr_sessions; i++)
		scattered__add_session(&sc, i, buffers);
}

#endif /* __PERF_TESTS_BLACKBOX_SCATTERED_H */
