// SPDX-License-Identifier: GPL-2.0
/*
 * Read a black box image: superblock, directories, notes
 *
 * The image comes from a machine that has died, through a reset and a file. Nothing in it is
 * trusted. All bytes are reached through at(), which checks offset and size against the
 * bytes that there are. Structs are copied before they are used. An entry of a directory
 * counts if it is marked as valid, its CRC matches, and what it refers to is in the image.
 * A damaged entry is counted and costs itself alone: without a session's entry its events
 * are not found, without a buffer's entry its records, without an event's entry the records
 * of that event.
 *
 * Entries may be larger than those known here: what a later kernel has added is ignored, but
 * the CRC covers it.
 *
 * The events of a session get into one file. perf reads such a file only if all of its
 * events have their ids at the same places and the same read_format. An event that differs
 * from the first one is left out and counted.
 */
#include "image.h"
#include "crc32.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <byteswap.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* More than a superblock will ever have */
#define MAX_SUPER	65536

/* More than there are. They bound the time that a forged image takes. */
#define MAX_CPU		1048576
#define MAX_SESSIONS	256U
#define MAX_EVENTS	65536U
#define MIN_PAGE	4096

/* @size bytes at @offset of the image, or NULL */
static const void *at(const struct blackbox_image *image, u64 offset, u64 size)
{
	return offset <= image->size && size <= image->size - offset ? image->base + offset : NULL;
}

static u32 get_u32(const void *p)
{
	u32 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static u64 get_u64(const void *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* A word of the kernel */
static u64 get_long(const struct blackbox_image *image, const void *p)
{
	return image->super.long_size == sizeof(u32) ? get_u32(p) : get_u64(p);
}

static bool is_terminated(const char *str, size_t size)
{
	return memchr(str, '\0', size);
}

/* Strings of an image are shown on terminals: they must not have control characters. */
static void make_printable(char *str)
{
	for (; *str; str++) {
		if (!isprint((unsigned char)*str))
			*str = '?';
	}
}

static bool is_name(const char *str)
{
	if (!*str)
		return false;
	for (; *str; str++) {
		if (!isgraph((unsigned char)*str) || *str == '/')
			return false;
	}
	return true;
}

static bool is_power_of_2(u64 n)
{
	return n && !(n & (n - 1));
}

/**
 * blackbox_image__find - look for an image
 * @bytes: the file
 * @size: bytes of it
 * @offset: where to look
 * @image: returns the image, to be read with blackbox_image__read()
 *
 * Return: what is there.
 */
enum blackbox_found blackbox_image__find(const void *bytes, u64 size, u64 offset,
					 struct blackbox_image *image)
{
	struct perf_blackbox_super super;
	const void *base = bytes + offset;
	u32 len;

	if (offset > size || size - offset < sizeof(u64))
		return BLACKBOX_FOUND_NOTHING;
	if (get_u64(base) == bswap_64(PERF_BLACKBOX_MAGIC))
		return BLACKBOX_FOUND_FOREIGN;
	if (get_u64(base) != PERF_BLACKBOX_MAGIC)
		return BLACKBOX_FOUND_NOTHING;
	if (size - offset < sizeof(super))
		return BLACKBOX_FOUND_DAMAGED;
	memcpy(&super, base, sizeof(super));
	len = super.size;
	if (len < PERF_BLACKBOX_SUPER_SIZE || len > MAX_SUPER || len > size - offset ||
	    get_u32(base + len - sizeof(u32)) != blackbox_crc32(base, len - sizeof(u32)))
		return BLACKBOX_FOUND_DAMAGED;
	if (super.version != PERF_BLACKBOX_VERSION)
		return BLACKBOX_FOUND_VERSION;
	if (super.image_size < len ||
	    !is_power_of_2(super.page_size) || super.page_size < MIN_PAGE ||
	    (super.long_size != sizeof(u32) && super.long_size != sizeof(u64)) ||
	    super.build_id_size > sizeof(super.build_id) ||
	    super.task_size < PERF_BLACKBOX_TASK_SIZE ||
	    super.session_size < PERF_BLACKBOX_SESSION_SIZE ||
	    super.buffer_size < PERF_BLACKBOX_BUFFER_SIZE ||
	    super.event_size < PERF_BLACKBOX_EVENT_SIZE ||
	    !is_terminated(super.release, sizeof(super.release)) ||
	    !is_terminated(super.kernel_version, sizeof(super.kernel_version)) ||
	    !is_terminated(super.label, sizeof(super.label)) || strchr(super.label, '/'))
		return BLACKBOX_FOUND_DAMAGED;
	make_printable(super.release);
	make_printable(super.kernel_version);
	make_printable(super.label);
	*image = (struct blackbox_image) {
		.base	= base,
		.size	= min((u64)super.image_size, size - offset),
		.offset	= offset,
		.super	= super,
	};
	return BLACKBOX_FOUND_IMAGE;
}

/* Directories */

/*
 * Copy the start of an entry that is valid, with a CRC over what follows the CRC. Return: 1,
 * 0 if the entry is free, -1 if it is damaged.
 */
static int get_entry(const struct blackbox_image *image, u64 array, u32 i, u32 size,
		     void *entry, size_t entry_size)
{
	const u64 checked = 2 * sizeof(u32);
	const void *p;

	if (array > image->size)
		return -1;
	p = at(image, array + (u64)i * size, size);
	if (!p)
		return -1;
	if (!get_u32(p))
		return 0;
	if (get_u32(p) != PERF_BLACKBOX_VALID ||
	    get_u32(p + sizeof(u32)) != blackbox_crc32(p + checked, size - checked))
		return -1;
	memcpy(entry, p, entry_size);
	return 1;
}

/* Number of entries of an array that are in the file */
static u32 count_entries(const struct blackbox_image *image, u64 array, u32 max, u32 size)
{
	return array < image->size ? min((u64)max, (image->size - array) / size) : 0;
}

static int read_tasks(struct blackbox_image *image)
{
	const struct perf_blackbox_super *super = &image->super;
	u32 nr = image->death.nr_tasks;
	const void *p;

	if (!nr)
		return 0;
	image->tasks_bad = true;
	if (nr > count_entries(image, super->tasks, super->max_tasks, super->task_size))
		return 0;
	p = image->base + super->tasks;
	if (blackbox_crc32(p, (size_t)nr * super->task_size) != image->death.tasks_crc)
		return 0;
	image->tasks = calloc(nr, sizeof(*image->tasks));
	if (!image->tasks)
		return -ENOMEM;
	for (u32 i = 0; i < nr; i++) {
		struct perf_blackbox_task *task = &image->tasks[image->nr_tasks];

		memcpy(task, p + (size_t)i * super->task_size, sizeof(*task));
		if (is_terminated(task->comm, sizeof(task->comm)) && task->pid >= 0 &&
		    task->tgid >= 0)
			image->nr_tasks++;
	}
	image->tasks_bad = image->nr_tasks < nr;
	return 0;
}

static int get_session(const struct blackbox_image *image, u32 i,
		       struct perf_blackbox_session *entry)
{
	const struct perf_blackbox_super *super = &image->super;
	int ret;

	if (i >= count_entries(image, super->sessions, min(super->max_sessions, MAX_SESSIONS),
			       super->session_size))
		return 0;
	ret = get_entry(image, super->sessions, i, super->session_size, entry, sizeof(*entry));
	if (ret > 0 && (!is_terminated(entry->name, sizeof(entry->name)) || !is_name(entry->name)))
		ret = -1;
	return ret;
}

static int read_death(struct blackbox_image *image)
{
	const size_t checked = offsetof(struct perf_blackbox_death, kind);
	struct perf_blackbox_death *death = &image->death;
	const void *p = at(image, image->super.death, sizeof(*death));

	if (!p)
		return 0;
	memcpy(death, p, sizeof(*death));
	if (!death->state)
		return 0;
	image->has_death = death->state == PERF_BLACKBOX_VALID &&
			   death->crc == blackbox_crc32(p + checked, sizeof(*death) - checked) &&
			   is_terminated(death->comm, sizeof(death->comm)) &&
			   is_terminated(death->reason, sizeof(death->reason));
	if (!image->has_death) {
		image->damaged++;
		return 0;
	}
	make_printable(death->comm);
	make_printable(death->reason);
	return read_tasks(image);
}

/**
 * blackbox_image__read - read what became of the kernel
 * @image: an image that was found; must be freed in any case
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_image__read(struct blackbox_image *image)
{
	const void *p = at(image, image->super.life, sizeof(struct perf_blackbox_life));
	struct perf_blackbox_session entry;

	if (p)
		image->state = get_u32(p);
	if (image->state > PERF_BLACKBOX_RELEASED)
		image->state = 0;
	for (u32 i = 0; i < min(image->super.max_sessions, MAX_SESSIONS); i++)
		image->damaged += get_session(image, i, &entry) < 0;
	image->damaged += image->sessions_broken;
	return read_death(image);
}

void blackbox_image__exit(struct blackbox_image *image)
{
	zfree(&image->tasks);
	zfree(&image->broken);
}

/**
 * blackbox_image__has_session - look for a session
 * @image: the image
 * @i: number of the session, below blackbox_image::super.max_sessions
 * @entry: returns what the image says of it
 *
 * Return: whether there is one that is not damaged.
 */
bool blackbox_image__has_session(const struct blackbox_image *image, u32 i,
				 struct perf_blackbox_session *entry)
{
	return get_session(image, i, entry) > 0;
}

/* Events */

/* Can perf tell records of the event from those of the others? */
static bool is_compatible(const struct blackbox_event *a, const struct blackbox_event *b)
{
	return sample_layout__has_same_id(&a->layout, &b->layout) &&
	       a->attr.sample_id_all == b->attr.sample_id_all &&
	       a->attr.read_format == b->attr.read_format &&
	       (blackbox_event__has_id(a, PERF_RECORD_SAMPLE) ||
		!memcmp(&a->attr, &b->attr, sizeof(a->attr)));
}

static bool is_known(const struct perf_event_attr *attr)
{
	return !attr->__reserved_1 && !attr->__reserved_2 && !attr->__reserved_3 &&
	       attr->branch_sample_type < PERF_SAMPLE_BRANCH_MAX &&
	       attr->sample_type < PERF_SAMPLE_MAX && attr->read_format < PERF_FORMAT_MAX &&
	       (!(attr->sample_type & PERF_SAMPLE_READ) || attr->read_format & PERF_FORMAT_ID);
}

static int cmp_ids(const void *va, const void *vb)
{
	const struct blackbox_event *a = va, *b = vb;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int cmp_buffers(const void *va, const void *vb)
{
	const struct blackbox_event *a = va, *b = vb;

	if (a->buffer != b->buffer)
		return a->buffer < b->buffer ? -1 : 1;
	return cmp_ids(a, b);
}

static bool make_event(struct blackbox_event *event, const struct perf_blackbox_event *entry)
{
	if (entry->attr_size < PERF_ATTR_SIZE_VER0 || entry->attr_size > sizeof(entry->attr) ||
	    entry->cpu < -1 || entry->cpu >= MAX_CPU ||
	    !is_terminated(entry->name, sizeof(entry->name)) ||
	    !is_terminated(entry->pmu, sizeof(entry->pmu)))
		return false;
	memset(event, 0, sizeof(*event));
	memcpy(&event->attr, entry->attr, min_t(size_t, entry->attr_size, sizeof(event->attr)));
	event->attr.size = sizeof(event->attr);
	event->id = entry->id;
	event->cpu = entry->cpu;
	event->index = entry->index;
	event->buffer = entry->buffer;
	memcpy(event->name, entry->name, sizeof(event->name));
	memcpy(event->pmu, entry->pmu, sizeof(event->pmu));
	if (!is_known(&event->attr))
		return false;
	sample_layout__init(&event->layout, &event->attr, /*swapped=*/false);
	return true;
}

/* A record must not be of two events. */
static void drop_duplicates(struct blackbox_session *s)
{
	size_t nr = 1;

	qsort(s->events, s->nr_events, sizeof(*s->events), cmp_ids);
	for (size_t i = 1; i < s->nr_events; i++) {
		if (s->events[i].id == s->events[nr - 1].id)
			s->events_bad++;
		else
			s->events[nr++] = s->events[i];
	}
	s->nr_events = nr;
}

static int read_events(struct blackbox_session *s, u32 session)
{
	const struct blackbox_image *image = s->image;
	const struct perf_blackbox_super *super = &image->super;
	u32 max = count_entries(image, super->events, min(super->max_events, MAX_EVENTS),
				super->event_size);
	struct perf_blackbox_event entry;
	size_t room = 0;

	for (u32 i = 0; i < max; i++) {
		int ret = get_entry(image, super->events, i, super->event_size, &entry,
				    sizeof(entry));

		/* Which session a damaged one belongs to is not known. */
		if (ret < 0)
			s->events_bad++;
		if (ret <= 0 || entry.session != session)
			continue;
		if (s->nr_events == room) {
			struct blackbox_event *events;

			room = max(room * 2, (size_t)16);
			events = reallocarray(s->events, room, sizeof(*events));
			if (!events)
				return -ENOMEM;
			s->events = events;
		}
		if (!make_event(&s->events[s->nr_events], &entry) ||
		    (s->nr_events && !is_compatible(&s->events[0], &s->events[s->nr_events])))
			s->events_bad++;
		else
			s->nr_events++;
	}
	if (!s->nr_events)
		return 0;
	drop_duplicates(s);
	qsort(s->events, s->nr_events, sizeof(*s->events), cmp_buffers);
	return 0;
}

/* Buffers */

static const void *field(const struct blackbox_image *image,
			 const struct perf_blackbox_buffer *entry, u32 offset, u32 size)
{
	const void *rb = at(image, entry->rb, entry->rb_size);

	return rb && offset <= entry->rb_size && size <= entry->rb_size - offset ? rb + offset :
										   NULL;
}

static bool make_buffer(struct blackbox_buffer *buf, const struct blackbox_image *image,
			const struct perf_blackbox_buffer *entry)
{
	const size_t head_pos = offsetof(struct perf_event_mmap_page, data_head);
	const void *page = at(image, entry->user_page, image->super.page_size);
	const void *data = at(image, entry->data, entry->data_size);
	const void *head = field(image, entry, entry->rb_head, image->super.long_size);
	const void *lost = field(image, entry, entry->rb_lost, image->super.long_size);
	const void *nest = field(image, entry, entry->rb_nest, sizeof(u32));

	if (!page || !data || !head || !lost || !nest || entry->cpu < -1 ||
	    entry->cpu >= MAX_CPU || !is_power_of_2(entry->data_size) ||
	    entry->data_size < image->super.page_size)
		return false;
	buf->cpu = entry->cpu;
	buf->nest = get_u32(nest);
	buf->lost = get_long(image, lost);
	buf->ring = (struct blackbox_ring) {
		.data		= data,
		.size		= entry->data_size,
		.data_head	= get_u64(page + head_pos),
		.head		= get_long(image, head),
		.backward	= entry->flags & PERF_BLACKBOX_BUFFER_BACKWARD,
		.is_32bit	= image->super.long_size == sizeof(u32),
	};
	return true;
}

/* The events are sorted by buffer. Buffers do not overlap, and so all fit into the image. */
static int read_buffers(struct blackbox_session *s)
{
	const struct blackbox_image *image = s->image;
	const struct perf_blackbox_super *super = &image->super;
	u32 max = count_entries(image, super->buffers, super->max_buffers, super->buffer_size);
	struct perf_blackbox_buffer entry;
	u64 left = image->size;
	size_t nr;

	s->buffers = calloc(s->nr_events ?: 1, sizeof(*s->buffers));
	if (!s->buffers)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr_events; i += nr) {
		struct blackbox_buffer *buf = &s->buffers[s->nr_buffers];
		u32 index = s->events[i].buffer;

		for (nr = 1; i + nr < s->nr_events && s->events[i + nr].buffer == index; nr++)
			;
		if (index >= max ||
		    get_entry(image, super->buffers, index, super->buffer_size, &entry,
			      sizeof(entry)) <= 0 || !make_buffer(buf, image, &entry) ||
		    buf->ring.size > left) {
			s->buffers_bad++;
			continue;
		}
		left -= buf->ring.size;
		buf->index = index;
		buf->ids = (struct blackbox_ids) {
			.events	= &s->events[i],
			.nr	= nr,
			.cpu	= buf->cpu,
		};
		s->nr_buffers++;
	}
	return 0;
}

/* Notes */

static int add_note(struct blackbox_session *s, const void *data, u64 size,
		    const struct perf_blackbox_clock *clock)
{
	struct blackbox_note *notes = reallocarray(s->notes, s->nr_notes + 1, sizeof(*notes));

	if (!notes)
		return -ENOMEM;
	s->notes = notes;
	notes[s->nr_notes++] = (struct blackbox_note) {
		.data = data, .size = size, .time = clock->perf, .real = clock->real,
	};
	return 0;
}

/* The header of a slot; false if it or its base is damaged, or if the slot is free. */
static bool read_slot(struct blackbox_session *s, const void *slot, u64 room,
		      struct perf_blackbox_notes *notes)
{
	const size_t checked = offsetof(struct perf_blackbox_notes, seq);

	if (!slot || room < sizeof(*notes))
		return false;
	memcpy(notes, slot, sizeof(*notes));
	if (!notes->magic && !notes->seq)
		return false;
	if (notes->magic == PERF_BLACKBOX_NOTES_MAGIC &&
	    notes->crc == blackbox_crc32(slot + checked, sizeof(*notes) - checked) &&
	    notes->size <= room - sizeof(*notes) &&
	    notes->data_crc == blackbox_crc32(slot + sizeof(*notes), notes->size))
		return true;
	s->notes_bad++;
	return false;
}

static int read_additions(struct blackbox_session *s, const void *slot, u64 room,
			  const struct perf_blackbox_notes *notes)
{
	const size_t checked = offsetof(struct perf_blackbox_addition, seq);
	u64 pos = sizeof(*notes) + PERF_ALIGN(notes->size, sizeof(u64));
	struct perf_blackbox_addition add;
	int err = 0;

	for (u32 nr = 1; !err; nr++) {
		const void *data;

		if (pos > room || room - pos < sizeof(add))
			break;
		memcpy(&add, slot + pos, sizeof(add));
		data = slot + pos + sizeof(add);
		if (add.magic != PERF_BLACKBOX_ADDITION_MAGIC || add.seq != notes->seq ||
		    add.nr != nr)
			break;
		if (add.crc != blackbox_crc32(slot + pos + checked, sizeof(add) - checked) ||
		    add.size > room - pos - sizeof(add) ||
		    add.data_crc != blackbox_crc32(data, add.size)) {
			s->notes_bad++;
			break;
		}
		err = add_note(s, data, add.size, &add.clock);
		pos += sizeof(add) + PERF_ALIGN(add.size, sizeof(u64));
	}
	return err;
}

static int read_notes(struct blackbox_session *s)
{
	const struct perf_blackbox_session *entry = &s->entry;
	struct perf_blackbox_notes notes[2];
	const void *slots[2];
	bool valid[2];
	int newer, err;

	for (int i = 0; i < 2; i++) {
		u32 bad = s->notes_bad;

		slots[i] = NULL;
		if (entry->notes_size <= s->image->size && entry->notes <= s->image->size)
			slots[i] = at(s->image, entry->notes + i * entry->notes_size,
				      entry->notes_size);
		valid[i] = read_slot(s, slots[i], entry->notes_size, &notes[i]);
		/* A broken one counts once. If its base is valid, additions may be missing. */
		if (s->broken && s->broken->notes[i])
			s->notes_bad = bad + 1;
	}
	if (!valid[0] && !valid[1])
		return 0;
	newer = !valid[0] || (valid[1] && notes[1].seq > notes[0].seq);
	err = add_note(s, slots[newer] + sizeof(notes[0]), notes[newer].size,
		       &notes[newer].clock);
	return err ?: read_additions(s, slots[newer], entry->notes_size, &notes[newer]);
}

/**
 * blackbox_session__init - read the directories of a session
 * @s: returns the session; must be freed in any case
 * @image: the image, which must stay
 * @i: number of the session
 *
 * Return: 0; -ENOENT if there is no such session, or if it is damaged; -ENOMEM.
 */
int blackbox_session__init(struct blackbox_session *s, const struct blackbox_image *image, u32 i)
{
	*s = (struct blackbox_session) { .image = image };
	if (get_session(image, i, &s->entry) <= 0)
		return -ENOENT;
	if (image->broken) {
		s->broken = &image->broken[i];
		s->events_bad += s->broken->events;
	}
	return read_events(s, i) ?: read_buffers(s) ?: read_notes(s);
}

/**
 * blackbox_session__cut - find the records of all buffers
 * @s: the session
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_session__cut(struct blackbox_session *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_buffers && !err; i++)
		err = blackbox_cut__init(&s->buffers[i].cut, &s->buffers[i].ring,
					 &s->buffers[i].ids);
	return err;
}

void blackbox_session__exit(struct blackbox_session *s)
{
	for (size_t i = 0; i < s->nr_buffers; i++)
		blackbox_cut__exit(&s->buffers[i].cut);
	zfree(&s->events);
	zfree(&s->buffers);
	zfree(&s->notes);
}
