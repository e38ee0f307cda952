/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TESTS_BLACKBOX_IMAGE_H
#define __PERF_TESTS_BLACKBOX_IMAGE_H

/*
 * Make a black box image byte by byte, as a kernel would: its writers move the reserved head,
 * store the record, and then publish data_head.
 */
#include "util/blackbox/crc32.h"

#include <linux/kernel.h>
#include <linux/perf_blackbox.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#define BOX_PAGE	4096
#define BOX_SIZE	(512 * 1024)
#define BOX_TASKS	64
#define BOX_SESSIONS	4
#define BOX_BUFFERS	16
#define BOX_EVENTS	32
#define BOX_SLOT	(4 * BOX_PAGE)

/* Places in the image */
#define BOX_DEATH_AT	2048
#define BOX_TASKS_AT	4096
#define BOX_SESSIONS_AT	8192
#define BOX_BUFFERS_AT	12288
#define BOX_EVENTS_AT	16384
#define BOX_HEAP_AT	40960

#define BOX_PHYS	0x7c000000ULL
#define BOX_TEXT	0xffffffff9a000000ULL

/* Places in the made-up struct perf_buffer */
#define BOX_RB_SIZE	64
#define BOX_RB_HEAD	8
#define BOX_RB_NEST	16
#define BOX_RB_LOST	24
#define BOX_RB_PAUSED	32

#define BOX_SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | \
			 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/**
 * struct box - an image that is being made
 * @bytes: its bytes
 * @heap: the next free byte
 * @nr_sessions: sessions
 * @nr_buffers: ring buffers
 * @nr_events: events
 * @super: the start of @bytes
 */
struct box {
	u8				*bytes;
	u64				heap;
	u32				nr_sessions;
	u32				nr_buffers;
	u32				nr_events;
	struct perf_blackbox_super	*super;
};

/* A sample of BOX_SAMPLE_TYPE */
struct box_sample {
	struct perf_event_header	header;
	u64				id;
	u64				ip;
	u32				pid, tid;
	u64				time;
	u32				cpu, res;
};

/* The sample_id of other records */
struct box_id {
	u32				pid, tid;
	u64				time;
	u32				cpu, res;
	u64				id;
};

struct box_comm {
	struct perf_event_header	header;
	u32				pid, tid;
	char				comm[16];
	struct box_id			id;
};

static inline void *box__entry(const struct box *box, u64 array, u32 i, u32 size)
{
	return box->bytes + array + (u64)i * size;
}

static inline void box__put_string(char *to, size_t size, const char *from)
{
	memcpy(to, from, min(strlen(from), size - 1));
}

/* The CRC of an entry that begins with state and crc */
static inline void box__seal_entry(void *entry, size_t size)
{
	u32 head[2] = { PERF_BLACKBOX_VALID, blackbox_crc32((u8 *)entry + 8, size - 8) };

	memcpy(entry, head, sizeof(head));
}

static inline void box__seal(struct box *box)
{
	box->super->crc = blackbox_crc32(box->super, offsetof(struct perf_blackbox_super, crc));
}

struct box_map {
	struct perf_event_header	header;
	u32				pid, tid;
	u64				addr, len, pgoff;
	u8				build_id[24];
	u32				prot, flags;
	char				name[16];
	struct box_id			id;
};

/* @bytes: BOX_SIZE bytes */
static inline void box__init(struct box *box, void *bytes)
{
	struct perf_blackbox_super *super = bytes;
	struct perf_blackbox_life life = { .state = PERF_BLACKBOX_LIVE };

	memset(bytes, 0, BOX_SIZE);
	*box = (struct box) { .bytes = bytes, .heap = BOX_HEAP_AT, .super = super };
	*super = (struct perf_blackbox_super) {
		.magic		= PERF_BLACKBOX_MAGIC,
		.version	= PERF_BLACKBOX_VERSION,
		.size		= sizeof(*super),
		.phys		= BOX_PHYS,
		.image_size	= BOX_SIZE,
		.region_phys	= BOX_PHYS,
		.region_size	= 2 * BOX_SIZE,
		.generation	= 1,
		.boot_uuid	= { 1, 2, 3 },
		.clock		= { 1000000000, 1000000000, 1750000000000000000ULL },
		.page_size	= BOX_PAGE,
		.long_size	= sizeof(u64),
		.nr_cpus	= 2,
		.machine	= 62,
		.text		= BOX_TEXT,
		.text_end	= BOX_TEXT + 0x1000000,
		.build_id	= { 0xde, 0xad },
		.build_id_size	= 20,
		.life		= PERF_BLACKBOX_LIFE_OFFSET,
		.death		= BOX_DEATH_AT,
		.tasks		= BOX_TASKS_AT,
		.sessions	= BOX_SESSIONS_AT,
		.buffers	= BOX_BUFFERS_AT,
		.events		= BOX_EVENTS_AT,
		.max_tasks	= BOX_TASKS,
		.max_sessions	= BOX_SESSIONS,
		.max_buffers	= BOX_BUFFERS,
		.max_events	= BOX_EVENTS,
		.task_size	= sizeof(struct perf_blackbox_task),
		.session_size	= sizeof(struct perf_blackbox_session),
		.buffer_size	= sizeof(struct perf_blackbox_buffer),
		.event_size	= sizeof(struct perf_blackbox_event),
		.heap		= BOX_HEAP_AT,
		.release	= "6.12.0-test",
		.kernel_version	= "#1 test",
		.label		= "box",
	};
	memcpy(box->bytes + PERF_BLACKBOX_LIFE_OFFSET, &life, sizeof(life));
	box__seal(box);
}

static inline u64 box__alloc(struct box *box, u64 size)
{
	u64 pos = box->heap;

	box->heap += PERF_ALIGN(size, (u64)BOX_PAGE);
	return pos;
}

static inline struct perf_blackbox_session *box__session(const struct box *box, u32 i)
{
	return box__entry(box, BOX_SESSIONS_AT, i, sizeof(struct perf_blackbox_session));
}

static inline struct perf_blackbox_buffer *box__buffer(const struct box *box, u32 i)
{
	return box__entry(box, BOX_BUFFERS_AT, i, sizeof(struct perf_blackbox_buffer));
}

static inline struct perf_blackbox_event *box__event(const struct box *box, u32 i)
{
	return box__entry(box, BOX_EVENTS_AT, i, sizeof(struct perf_blackbox_event));
}

static inline u32 box__add_session(struct box *box, const char *name)
{
	struct perf_blackbox_session *s = box__session(box, box->nr_sessions);

	s->id = 1 + box->nr_sessions;
	s->clock = box->super->clock;
	s->notes = box__alloc(box, 2 * BOX_SLOT);
	s->notes_size = BOX_SLOT;
	box__put_string(s->name, sizeof(s->name), name);
	box__seal_entry(s, sizeof(*s));
	return box->nr_sessions++;
}

static inline u32 box__add_buffer(struct box *box, s32 cpu, u64 data_size, bool backward)
{
	struct perf_blackbox_buffer *b = box__buffer(box, box->nr_buffers);

	b->cpu = cpu;
	b->flags = backward ? PERF_BLACKBOX_BUFFER_BACKWARD : 0;
	b->rb = box__alloc(box, BOX_RB_SIZE);
	b->user_page = box__alloc(box, BOX_PAGE);
	b->data = box__alloc(box, data_size);
	b->data_size = data_size;
	b->rb_size = BOX_RB_SIZE;
	b->rb_head = BOX_RB_HEAD;
	b->rb_nest = BOX_RB_NEST;
	b->rb_lost = BOX_RB_LOST;
	b->rb_paused = BOX_RB_PAUSED;
	box__seal_entry(b, sizeof(*b));
	return box->nr_buffers++;
}

static inline u32 box__add_event(struct box *box, u32 session, u32 buffer, u64 id,
				 const struct perf_event_attr *attr)
{
	struct perf_blackbox_event *e = box__event(box, box->nr_events);

	e->id = id;
	e->session = session;
	e->buffer = buffer;
	e->cpu = box__buffer(box, buffer)->cpu;
	e->index = attr->config == PERF_COUNT_SW_DUMMY;
	e->attr_size = sizeof(*attr);
	box__put_string(e->pmu, sizeof(e->pmu), "software");
	memcpy(e->attr, attr, sizeof(*attr));
	box__seal_entry(e, sizeof(*e));
	return box->nr_events++;
}

static inline struct perf_event_attr box__attr(u64 config)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(struct perf_event_attr),
		.config		= config,
		.sample_type	= BOX_SAMPLE_TYPE,
		.sample_period	= 1,
		.sample_id_all	= 1,
		.comm		= config == PERF_COUNT_SW_DUMMY,
		.mmap		= config == PERF_COUNT_SW_DUMMY,
		.write_backward	= 1,
	};
}

static inline u64 *box__head(const struct box *box, u32 buffer)
{
	return (u64 *)(box->bytes + box__buffer(box, buffer)->rb + BOX_RB_HEAD);
}

static inline u64 *box__data_head(const struct box *box, u32 buffer)
{
	return (u64 *)(box->bytes + box__buffer(box, buffer)->user_page +
		       offsetof(struct perf_event_mmap_page, data_head));
}

/* Reserve room for a record, and store its first @stored bytes, from the start. */
static inline void box__store(struct box *box, u32 buffer, const void *record, size_t size,
			      size_t stored)
{
	const struct perf_blackbox_buffer *b = box__buffer(box, buffer);
	bool backward = b->flags & PERF_BLACKBOX_BUFFER_BACKWARD;
	u64 *head = box__head(box, buffer), pos;

	*head += backward ? -(u64)size : size;
	pos = backward ? *head : *head - size;
	for (size_t i = 0; i < stored; i++)
		box->bytes[b->data + ((pos + i) & (b->data_size - 1))] = ((const u8 *)record)[i];
}

static inline void box__publish(struct box *box, u32 buffer)
{
	*box__data_head(box, buffer) = *box__head(box, buffer);
}

static inline void box__write(struct box *box, u32 buffer, const void *record, size_t size)
{
	box__store(box, buffer, record, size, size);
	box__publish(box, buffer);
}

static inline struct box_sample box__sample(u64 id, u32 cpu, u32 tid, u64 time)
{
	return (struct box_sample) {
		.header	= { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_KERNEL,
			    .size = sizeof(struct box_sample) },
		.id	= id,
		.ip	= BOX_TEXT + 64,
		.pid	= tid,
		.tid	= tid,
		.time	= time,
		.cpu	= cpu,
	};
}

static inline struct box_comm box__comm(u64 id, u32 cpu, u32 tid, const char *comm, u64 time)
{
	struct box_comm record = {
		.header	= { .type = PERF_RECORD_COMM, .size = sizeof(record) },
		.pid	= tid,
		.tid	= tid,
		.id	= { .pid = tid, .tid = tid, .time = time, .cpu = cpu, .id = id },
	};

	box__put_string(record.comm, sizeof(record.comm), comm);
	return record;
}

/* With a build-id, whose size is its first byte */
static inline struct box_map box__map(u64 id, u32 cpu, u32 tid, const char *name, u64 time)
{
	struct box_map record = {
		.header		= { .type = PERF_RECORD_MMAP2, .size = sizeof(record),
				    .misc = PERF_RECORD_MISC_USER |
					    PERF_RECORD_MISC_MMAP_BUILD_ID },
		.pid		= tid,
		.tid		= tid,
		.addr		= 0x400000,
		.len		= 0x1000,
		.build_id	= { 20, 0, 0, 0, 0xab },
		.id		= { .pid = tid, .tid = tid, .time = time, .cpu = cpu, .id = id },
	};

	box__put_string(record.name, sizeof(record.name), name);
	return record;
}

/* A base in slot @slot. Returns where the first addition goes. */
static inline u64 box__add_base(struct box *box, u32 session, u32 slot, u32 seq, u64 time,
				const void *data, u64 size)
{
	u64 pos = box__session(box, session)->notes + slot * BOX_SLOT;
	struct perf_blackbox_notes *notes = (void *)box->bytes + pos;

	*notes = (struct perf_blackbox_notes) {
		.magic	= PERF_BLACKBOX_NOTES_MAGIC,
		.seq	= seq,
		.size	= size,
		.clock	= { .perf = time },
	};
	memcpy(notes + 1, data, size);
	notes->data_crc = blackbox_crc32(data, size);
	notes->crc = blackbox_crc32((u8 *)notes + offsetof(struct perf_blackbox_notes, seq),
				    sizeof(*notes) - offsetof(struct perf_blackbox_notes, seq));
	return pos + sizeof(*notes) + PERF_ALIGN(size, (u64)8);
}

static inline u64 box__add_addition(struct box *box, u64 pos, u32 seq, u32 nr, u64 time,
				    const void *data, u64 size)
{
	struct perf_blackbox_addition *add = (void *)box->bytes + pos;
	const size_t checked = offsetof(struct perf_blackbox_addition, seq);

	*add = (struct perf_blackbox_addition) {
		.magic	= PERF_BLACKBOX_ADDITION_MAGIC,
		.seq	= seq,
		.nr	= nr,
		.size	= size,
		.clock	= { .perf = time },
	};
	memcpy(add + 1, data, size);
	add->data_crc = blackbox_crc32(data, size);
	add->crc = blackbox_crc32((u8 *)add + checked, sizeof(*add) - checked);
	return pos + sizeof(*add) + PERF_ALIGN(size, (u64)8);
}

static inline struct perf_blackbox_task *box__task(const struct box *box, u32 i)
{
	return box__entry(box, BOX_TASKS_AT, i, sizeof(struct perf_blackbox_task));
}

static inline void box__add_task(struct box *box, u32 i, s32 tid, const char *comm)
{
	struct perf_blackbox_task *task = box__task(box, i);

	*task = (struct perf_blackbox_task) { .pid = tid, .tgid = tid };
	box__put_string(task->comm, sizeof(task->comm), comm);
}

/* With the first @nr_tasks tasks */
static inline void box__die(struct box *box, const char *reason, u32 nr_tasks, u64 time)
{
	struct perf_blackbox_death *death = (void *)box->bytes + BOX_DEATH_AT;
	const size_t checked = offsetof(struct perf_blackbox_death, kind);
	u32 state = PERF_BLACKBOX_DEAD;

	*death = (struct perf_blackbox_death) {
		.state		= PERF_BLACKBOX_VALID,
		.kind		= PERF_BLACKBOX_DEATH_PANIC,
		.cpu		= 1,
		.pid		= 42,
		.tgid		= 42,
		.clock		= { .perf = time, .real = 1750000000000000000ULL + time },
		.comm		= "killer",
		.nr_tasks	= nr_tasks,
	};
	box__put_string(death->reason, sizeof(death->reason), reason);
	death->tasks_crc = blackbox_crc32(box->bytes + BOX_TASKS_AT,
					  nr_tasks * sizeof(struct perf_blackbox_task));
	death->crc = blackbox_crc32((u8 *)death + checked, sizeof(*death) - checked);
	memcpy(box->bytes + PERF_BLACKBOX_LIFE_OFFSET, &state, sizeof(state));
}

#endif /* __PERF_TESTS_BLACKBOX_IMAGE_H */
