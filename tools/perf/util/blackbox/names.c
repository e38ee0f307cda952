// SPDX-License-Identifier: GPL-2.0
/*
 * Names of tasks, and what they have mapped: from the notes and from the table of tasks
 *
 * The side-band of a session describes what changed while it is in the buffers. The state
 * before comes from the notes, which user space has written at a time C, and from the names
 * of the tasks that were alive at the death.
 *
 * Notes describe the state at C. If no buffer tells of a change of a task before C, they are
 * right for the time before as well, and get no time: they come first. Otherwise they get
 * the time C. Additions describe changes, and always get their time: if they begin with a
 * PERF_RECORD_HEADER_ATTR that says so, each record has its own, and otherwise that at which
 * they were stored. They are of no use if the session's records have another clock; only perf
 * record -P makes such sessions, and these have side-band.
 *
 * The table of the death has names without a history. It names threads that neither the
 * notes nor the side-band describe. A thread that the notes name differently, and of which the
 * side-band tells nothing, got its last name after they were written: by exec, or as another
 * thread of the same number. It has that name from then on. The names of kernel threads are no
 * such sign: in /proc they have what they work on appended.
 *
 * The kernel is mapped by the superblock: the addresses of _text are what perf needs to find
 * symbols if the kernel ran at another address than the one whose symbols are at hand.
 *
 * A record of the notes is copied field by field, up to the end of its string, and gets a
 * sample_id of the recording. So records of another layout do no harm.
 */
#include "recording.h"
#include "../build-id.h"
#include "../event.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define HEADER		sizeof(struct perf_event_header)

/* "[kernel.kallsyms]_text": perf takes what follows the bracket for the symbol at pgoff. */
#define KERNEL_MAP	"[kernel.kallsyms]_text"

/* Of build-ids */
#define MAX_BUILD_IDS	65536

static u32 get_u32(const void *p)
{
	u32 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* What the buffers describe */

static int cmp_task_times(const void *va, const void *vb)
{
	const struct blackbox_task_time *a = va, *b = vb;

	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* Only the first description of each task stays. */
static size_t sort_first(struct blackbox_task_time *times, size_t nr)
{
	size_t left = 0;

	if (!nr)
		return 0;
	qsort(times, nr, sizeof(*times), cmp_task_times);
	for (size_t i = 1; i < nr; i++) {
		if (times[i].id != times[left].id)
			times[++left] = times[i];
	}
	return left + 1;
}

static int find_described(struct blackbox_recording *r)
{
	size_t nr = 0;

	for (size_t i = 0; i < r->nr_items; i++) {
		struct perf_event_header header;

		memcpy(&header, r->items[i].data, HEADER);
		nr += header.type == PERF_RECORD_COMM || header.type == PERF_RECORD_FORK;
	}
	r->threads = calloc(nr ?: 1, sizeof(*r->threads));
	r->processes = calloc(nr ?: 1, sizeof(*r->processes));
	if (!r->threads || !r->processes)
		return -ENOMEM;
	for (size_t i = 0; i < r->nr_items; i++) {
		const void *record = r->items[i].data;
		struct perf_event_header header;
		u32 pid, tid;

		memcpy(&header, record, HEADER);
		if (header.type != PERF_RECORD_COMM && header.type != PERF_RECORD_FORK)
			continue;
		/* pid, tid, comm; or pid, ppid, tid, ptid, time */
		pid = get_u32(record + HEADER);
		tid = get_u32(record + HEADER + (header.type == PERF_RECORD_FORK ? 8 : 4));
		r->threads[r->nr_threads++] = (struct blackbox_task_time) {
			.id = tid, .time = r->items[i].time,
		};
		if (pid == tid)
			r->processes[r->nr_processes++] = (struct blackbox_task_time) {
				.id = pid, .time = r->items[i].time,
			};
	}
	r->nr_threads = sort_first(r->threads, r->nr_threads);
	r->nr_processes = sort_first(r->processes, r->nr_processes);
	return 0;
}

static const struct blackbox_task_time *find_time(const struct blackbox_task_time *times,
						  size_t nr, u32 id)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times[middle].id == id)
			return &times[middle];
		if (times[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Names at the start */

static int tell(struct blackbox_recording *r, u32 tid, u64 time, const char *comm)
{
	if (r->nr_told == r->told_room) {
		size_t room = max(r->told_room * 2, (size_t)256);
		struct blackbox_told *told = reallocarray(r->told, room, sizeof(*told));

		if (!told)
			return -ENOMEM;
		r->told = told;
		r->told_room = room;
	}
	r->told[r->nr_told++] = (struct blackbox_told) { .tid = tid, .time = time, .comm = comm };
	return 0;
}

static int cmp_told(const void *va, const void *vb)
{
	const struct blackbox_told *a = va, *b = vb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* Of each thread, the last name stays. */
static void sort_told(struct blackbox_recording *r)
{
	size_t nr = 0;

	if (r->nr_told)
		qsort(r->told, r->nr_told, sizeof(*r->told), cmp_told);
	for (size_t i = 0; i < r->nr_told; i++) {
		if (i + 1 == r->nr_told || r->told[i + 1].tid != r->told[i].tid)
			r->told[nr++] = r->told[i];
	}
	r->nr_told = nr;
}

/* Up to @nr: the others are not sorted. */
static const struct blackbox_told *find_told(const struct blackbox_recording *r, size_t nr, u32 tid)
{
	size_t low = 0, high = nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->told[middle].tid == tid)
			return &r->told[middle];
		if (r->told[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* The kernel */

static int add_kernel(struct blackbox_recording *r)
{
	const struct perf_blackbox_super *super = &r->session->image->super;
	const size_t fields = blackbox_record__shape(PERF_RECORD_MMAP)->size;
	const u64 words[] = { super->text, super->text_end - super->text, super->text };
	const s32 ids[] = { -1, 0 };
	void *record;

	if (!super->text || super->text_end <= super->text)
		return 0;
	record = blackbox_recording__make(r, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL,
					  fields + PERF_ALIGN(sizeof(KERNEL_MAP), sizeof(u64)), 0);
	if (!record)
		return -ENOMEM;
	memcpy(record + HEADER, ids, sizeof(ids));
	memcpy(record + HEADER + sizeof(ids), words, sizeof(words));
	memcpy(record + fields, KERNEL_MAP, sizeof(KERNEL_MAP));
	return 0;
}

/* Notes */

/* The time for a record of the notes that describes @time, see above */
static u64 time_of_note(const struct blackbox_recording *r, const void *record, u32 type,
			u64 time, bool is_base)
{
	const struct blackbox_task_time *first = NULL;

	if (!blackbox_recording__has_clock(r) || time <= r->oldest)
		return 0;
	if (!is_base)
		return time;
	if (type == PERF_RECORD_COMM)
		first = find_time(r->threads, r->nr_threads, get_u32(record + HEADER + 4));
	else if (type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2)
		first = find_time(r->processes, r->nr_processes, get_u32(record + HEADER));
	else if (type == PERF_RECORD_FORK)
		first = find_time(r->threads, r->nr_threads, get_u32(record + HEADER + 8));
	return first && first->time < time ? time : 0;
}

static bool is_kernel_map(const void *record, u32 type, const struct blackbox_shape *shape)
{
	static const char prefix[] = "[kernel.kallsyms]";

	return (type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2) &&
	       !strncmp(record + shape->size, prefix, sizeof(prefix) - 1);
}

static bool is_state(u32 type)
{
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_CGROUP:
		return true;
	default:
		return false;
	}
}

/* Do the records after it end with their time, and with nothing else? */
static bool tells_times(const struct perf_event_header *header, const void *record)
{
	struct perf_event_attr attr = {};

	memcpy(&attr, record + HEADER, min(header->size - HEADER, sizeof(attr)));
	return attr.sample_id_all && attr.sample_type == PERF_SAMPLE_TIME;
}

/* Nothing that was stored is of a later time. */
static u64 described_time(const struct perf_event_header *header, const void *record,
			  const struct blackbox_note *note, bool has_time)
{
	u64 time;

	if (!has_time)
		return note->time;
	memcpy(&time, record + header->size - sizeof(time), sizeof(time));
	return min(time, note->time);
}

/* Return: 1 if the record was used, 0 if it is damaged or unknown */
static int add_state(struct blackbox_recording *r, const struct perf_event_header *header,
		     const void *record, const struct blackbox_note *note, bool is_base,
		     bool has_time)
{
	const struct blackbox_shape *shape = blackbox_record__shape(header->type);
	size_t trailer = has_time ? sizeof(u64) : 0;
	size_t size, len = 0;
	void *copy;
	u64 time;

	if (!shape || !is_state(header->type) || header->size < shape->size + trailer ||
	    !blackbox_record__fits_build_id(header, record))
		return 0;
	if (shape->string) {
		const char *end = memchr(record + shape->size, '\0',
					 header->size - shape->size - trailer);

		if (!end)
			return 0;
		len = end + 1 - (const char *)(record + shape->size);
	}
	size = PERF_ALIGN(shape->size + len, sizeof(u64));
	if (size + UINT8_MAX > UINT16_MAX)
		return 0;
	if (is_kernel_map(record, header->type, shape))
		return 1;
	time = described_time(header, record, note, has_time);
	copy = blackbox_recording__make(r, header->type, header->misc, size,
					time_of_note(r, record, header->type, time, is_base));
	if (!copy)
		return -ENOMEM;
	memcpy(copy + HEADER, record + HEADER, shape->size + len - HEADER);
	if (header->type == PERF_RECORD_COMM &&
	    tell(r, get_u32(record + HEADER + 4), time, record + shape->size))
		return -ENOMEM;
	/* It inherits the name. */
	if (header->type == PERF_RECORD_FORK && !is_base &&
	    tell(r, get_u32(record + HEADER + 8), time, NULL))
		return -ENOMEM;
	return 1;
}

static int add_build_id(struct blackbox_recording *r, const struct perf_event_header *header,
			const void *record)
{
	const size_t fields = sizeof(struct perf_record_header_build_id);
	struct perf_record_header_build_id b;
	const void **ids;

	/* perf of the base reads the name to PATH_MAX bytes, whatever the size of the record. */
	if (header->size <= fields || header->size > PATH_MAX || header->size % sizeof(u64) ||
	    r->nr_build_ids >= MAX_BUILD_IDS ||
	    !memchr(record + fields, '\0', header->size - fields))
		return 0;
	memcpy(&b, record, fields);
	if (header->misc & PERF_RECORD_MISC_BUILD_ID_SIZE && b.size > BUILD_ID_SIZE)
		return 0;
	ids = reallocarray(r->build_ids, r->nr_build_ids + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	r->build_ids = ids;
	ids[r->nr_build_ids++] = record;
	return 1;
}

/* The formats follow the record. Return: bytes of these with the record */
static u64 take_formats(struct blackbox_recording *r, const void *record, u64 left)
{
	const size_t fields = sizeof(struct perf_record_header_tracing_data);
	u64 size;

	if (left < fields)
		return 0;
	size = get_u32(record + HEADER);
	if (PERF_ALIGN(size, sizeof(u64)) > left - fields)
		return 0;
	r->notes_formats = record + fields;
	r->notes_formats_size = size;
	return fields + PERF_ALIGN(size, sizeof(u64));
}

static int add_note(struct blackbox_recording *r, const struct blackbox_note *note, bool is_base)
{
	bool has_time = false;
	u64 pos = 0;

	/* Changes whose time is not that of the records. The session has side-band of its own. */
	if (!is_base && !blackbox_recording__has_clock(r))
		return 0;
	while (note->size - pos >= HEADER) {
		const void *record = note->data + pos;
		struct perf_event_header header;
		u64 size;
		int ret;

		memcpy(&header, record, HEADER);
		size = header.size;
		if (size < HEADER || size > note->size - pos) {
			r->notes_dropped++;
			return 0;
		}
		if (header.type == PERF_RECORD_HEADER_TRACING_DATA) {
			size = take_formats(r, record, note->size - pos);
			ret = size ? 1 : 0;
			size = size ?: header.size;
		} else if (header.type == PERF_RECORD_HEADER_BUILD_ID) {
			ret = add_build_id(r, &header, record);
		} else if (header.type == PERF_RECORD_HEADER_ATTR) {
			has_time = tells_times(&header, record);
			ret = has_time;
		} else {
			ret = add_state(r, &header, record, note, is_base, has_time);
		}
		if (ret < 0)
			return ret;
		r->notes_dropped += !ret;
		pos += size;
	}
	return 0;
}

/* The table of the death */

static int add_task(struct blackbox_recording *r, const struct perf_blackbox_task *task, u16 misc,
		    u64 time)
{
	const size_t fields = blackbox_record__shape(PERF_RECORD_COMM)->size;
	const u32 ids[] = { task->tgid, task->pid };
	size_t len = strlen(task->comm) + 1;
	void *record;

	record = blackbox_recording__make(r, PERF_RECORD_COMM, misc,
					  fields + PERF_ALIGN(len, sizeof(u64)), time);
	if (!record)
		return -ENOMEM;
	memcpy(record + HEADER, ids, sizeof(ids));
	memcpy(record + fields, task->comm, len);
	return tell(r, task->pid, time, NULL);
}

static bool is_renamed(const struct blackbox_told *told, const struct perf_blackbox_task *task)
{
	return !(task->flags & PERF_BLACKBOX_TASK_KERNEL) && told->comm &&
	       strncmp(told->comm, task->comm, sizeof(task->comm));
}

static int add_tasks(struct blackbox_recording *r)
{
	const struct blackbox_image *image = r->session->image;
	size_t nr_told;
	int err = 0;

	sort_told(r);
	nr_told = r->nr_told;
	for (size_t i = 0; i < image->nr_tasks && !err; i++) {
		const struct perf_blackbox_task *task = &image->tasks[i];
		const struct blackbox_told *told = find_told(r, nr_told, task->pid);

		if (!task->pid || find_time(r->threads, r->nr_threads, task->pid))
			continue;
		if (!told)
			err = add_task(r, task, 0, 0);
		else if (is_renamed(told, task))
			err = add_task(r, task, PERF_RECORD_MISC_COMM_EXEC,
				       blackbox_recording__has_clock(r) ? told->time + 1 : 0);
	}
	sort_told(r);
	return err;
}

/**
 * blackbox_names__add - describe the state before the records of the buffers
 * @r: the recording, with these records
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_names__add(struct blackbox_recording *r)
{
	int err = find_described(r) ?: add_kernel(r);

	for (size_t i = 0; i < r->session->nr_notes && !err; i++)
		err = add_note(r, &r->session->notes[i], !i);
	return err ?: add_tasks(r);
}

/* Events of a session may have the task at different places of their samples. */
static bool is_unresolved(const struct blackbox_recording *r, const struct blackbox_buffer *buf,
			  size_t i)
{
	const void *record = buf->cut.bytes + buf->cut.spans[i].pos;
	const struct blackbox_event *event;
	struct perf_event_header header;
	int pos;
	u32 tid;

	memcpy(&header, record, HEADER);
	if (header.type != PERF_RECORD_SAMPLE)
		return false;
	event = blackbox_record__event(&buf->ids, record);
	pos = event ? sample_layout__offset(&event->layout, SAMPLE_WORD__TID, header.type,
					    header.size) : -1;
	if (pos < 0)
		return false;
	tid = get_u32(record + pos + sizeof(u32));
	return tid && !find_told(r, r->nr_told, tid) && !find_time(r->threads, r->nr_threads, tid);
}

/**
 * blackbox_names__resolve - count the samples of tasks without a description
 * @r: the recording
 */
void blackbox_names__resolve(struct blackbox_recording *r)
{
	const struct blackbox_session *s = r->session;

	for (size_t i = 0; i < s->nr_buffers; i++) {
		for (size_t j = 0; j < s->buffers[i].cut.nr; j++)
			r->unresolved += is_unresolved(r, &s->buffers[i], j);
	}
}
