// SPDX-License-Identifier: GPL-2.0
/*
 * Read a perf.data file of a flight recorder, record by record, in the order of time
 *
 * perf's session is not used, because it requires a complete file. A file that was
 * truncated by a crash must be read as far as it is intact. The file is mapped. All data
 * is checked before it is used, and is not assumed to be aligned.
 *
 * Order: a round is sorted when it is read, and is held until the next round has been
 * read as well. FINISHED_ROUND guarantees that no later record is older than the newest
 * one of the round before last. Two rounds are thus held in memory, by reference, or all
 * records of a file without rounds.
 */
#include "part.h"
#include "../../base-api.h"
#include "../../event.h"
#include "../../header.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_EVENTS	65536

static const u64 magic = 0x32454c4946524550ULL;	/* "PERFILE2" */

static u64 get_u64(const void *p)
{
	u64 value;

	memcpy(&value, p, sizeof(value));
	return value;
}

/* @size bytes at @pos of the file, or NULL. */
static const void *at(const struct part *p, u64 pos, u64 size)
{
	return pos <= p->size && size <= p->size - pos ? p->map + pos : NULL;
}

static int map_file(struct part *p)
{
	int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	void *map;
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : !st.st_size ? -ENODATA : 0;
	if (!err) {
		map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED) {
			err = -errno;
		} else {
			p->map = map;
			p->size = st.st_size;
		}
	}
	close(fd);
	return err;
}

static int read_layout(struct part *p, const struct perf_event_attr *attr, bool first)
{
	struct sample_layout layout;

	sample_layout__init(&layout, attr, /*swapped=*/false);
	if (layout.id[SAMPLE_WORD__TIME] < 0)
		return -EPROTO;
	if (first)
		p->layout = layout;
	return sample_layout__is_same(&p->layout, &layout, SAMPLE_WORD__TIME) ? 0 : -EPROTO;
}

static int read_event(struct part *p, size_t i, const void *entry)
{
	struct part_event *event = &p->events[i];
	struct perf_event_attr attr = {};
	struct perf_file_section ids;

	memcpy(&attr, entry, min(p->attr_size, sizeof(attr)));
	memcpy(&ids, entry + p->attr_size, sizeof(ids));
	event->attr = entry;
	event->ids = at(p, ids.offset, ids.size);
	event->nr_ids = ids.size / sizeof(u64);
	if (!event->ids || event->nr_ids > MAX_EVENTS)
		return -EBADMSG;
	return read_layout(p, &attr, !i);
}

/**
 * part__feature - get a feature section of the file
 * @p: the file
 * @feature: number of the feature
 * @data: returns the section
 * @size: returns its size
 *
 * Return: true if the feature exists.
 */
bool part__feature(const struct part *p, int feature, const void **data, size_t *size)
{
	struct perf_file_section section;
	const void *entry;
	int before = 0;

	if (!p->feature_pos || !(p->features[feature / 64] >> (feature % 64) & 1))
		return false;
	for (int i = 0; i < feature; i++)
		before += p->features[i / 64] >> (i % 64) & 1;
	entry = at(p, p->feature_pos + before * sizeof(section), sizeof(section));
	if (!entry)
		return false;
	memcpy(&section, entry, sizeof(section));
	*data = at(p, section.offset, section.size);
	*size = section.size;
	return *data;
}

/* Features follow the records, so a truncated file may lack them. */
static bool features_are_whole(const struct part *p)
{
	const void *data;
	size_t size;

	for (int feature = 0; feature < HEADER_FEAT_BITS; feature++) {
		if (p->features[feature / 64] >> (feature % 64) & 1 &&
		    !part__feature(p, feature, &data, &size))
			return false;
	}
	return true;
}

static int read_header(struct part *p)
{
	struct perf_file_header header;
	const void *attrs;
	size_t entry;
	int err = 0;

	if (p->size < sizeof(header))
		return -ENODATA;
	memcpy(&header, p->map, sizeof(header));
	if (header.magic == bswap_64(magic))
		return -EPROTONOSUPPORT;
	if (header.magic != magic || header.size != sizeof(header))
		return -EPROTO;
	attrs = at(p, header.attrs.offset, header.attrs.size);
	entry = header.attr_size;
	if (!attrs || entry < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_file_section) ||
	    entry > page_size || header.attrs.size % entry || !header.attrs.size ||
	    header.attrs.size / entry > MAX_EVENTS)
		return -EBADMSG;

	p->attr_size = entry - sizeof(struct perf_file_section);
	p->nr_events = header.attrs.size / entry;
	p->events = calloc(p->nr_events, sizeof(*p->events));
	if (!p->events)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_events && !err; i++)
		err = read_event(p, i, attrs + i * entry);
	if (err)
		return err;

	p->pos = header.data.offset;
	p->end = header.data.offset + header.data.size;
	p->truncated = p->end < p->pos || p->end > p->size || !header.data.size;
	if (p->truncated)
		p->end = p->size;
	if (p->pos > p->end)
		return -ENODATA;
	BUILD_BUG_ON(sizeof(p->features) != sizeof(header.adds_features));
	memcpy(p->features, header.adds_features, sizeof(p->features));
	p->feature_pos = p->truncated ? 0 : p->end;
	p->truncated |= !features_are_whole(p);
	return 0;
}

static int append(struct part_record **records, size_t *nr, size_t *room,
		  const struct part_record *record)
{
	if (*nr == *room) {
		size_t more = max(*room * 2, (size_t)256);
		struct part_record *new = reallocarray(*records, more, sizeof(*new));

		if (!new)
			return -ENOMEM;
		*records = new;
		*room = more;
	}
	(*records)[(*nr)++] = *record;
	return 0;
}

/* Return: 1 if there is a record, 0 at the end. */
static int next_record(struct part *p, struct part_record *record, u32 *type)
{
	struct perf_event_header header;

	if (p->pos >= p->end)
		return 0;
	if (p->end - p->pos < sizeof(header))
		goto cut;
	memcpy(&header, p->map + p->pos, sizeof(header));
	if (header.size < sizeof(header) || header.size > p->end - p->pos)
		goto cut;

	*type = header.type;
	*record = (struct part_record) {
		.seq	= p->pos,
		.data	= p->map + p->pos,
		.size	= header.size,
	};
	p->pos += header.size;
	return 1;

cut:
	p->truncated = true;
	p->pos = p->end;
	return 0;
}

static u64 time_of(const struct part *p, const struct part_record *record, u32 type)
{
	int pos = sample_layout__offset(&p->layout, SAMPLE_WORD__TIME, type, record->size);

	return pos < 0 ? 0 : get_u64(record->data + pos);
}

static int cmp_records(const void *va, const void *vb)
{
	const struct part_record *a = va, *b = vb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* The records before the first one with a time. */
static int read_beginning(struct part *p)
{
	size_t preamble_room = 0, state_room = 0;
	struct part_record record;
	u64 pos = p->pos;
	int err = 0;
	u32 type;

	while (!err && next_record(p, &record, &type)) {
		if (type == PERF_RECORD_COMPRESSED || type == PERF_RECORD_COMPRESSED2)
			return -EOPNOTSUPP;
		if (type == PERF_RECORD_FINISHED_INIT || type == PERF_RECORD_FINISHED_ROUND) {
			pos = p->pos;
			continue;
		}
		if (type >= PERF_RECORD_USER_TYPE_START) {
			err = append(&p->preamble, &p->nr_preamble, &preamble_room, &record);
		} else {
			if (type == PERF_RECORD_SAMPLE || time_of(p, &record, type))
				break;
			err = append(&p->state, &p->nr_state, &state_room, &record);
		}
		pos = p->pos;
	}
	p->pos = pos;
	return err;
}

static void drop_taken(struct part *p)
{
	if (!p->first)
		return;
	p->nr -= p->first;
	memmove(p->records, p->records + p->first, p->nr * sizeof(*p->records));
	p->first = 0;
}

static int read_round(struct part *p)
{
	struct part_record record;
	u64 newest = p->round_newest;
	u64 before = p->complete;
	int err = 0;
	u32 type;

	drop_taken(p);
	p->complete = p->round_newest;
	while (!err && next_record(p, &record, &type)) {
		if (type == PERF_RECORD_FINISHED_ROUND)
			break;
		/* Records without a time; later ones repeat the first ones. */
		if (type >= PERF_RECORD_USER_TYPE_START)
			continue;
		record.time = time_of(p, &record, type);
		if (!record.time)
			continue;
		p->late += record.time < before;
		newest = max(newest, record.time);
		err = append(&p->records, &p->nr, &p->room, &record);
	}
	p->round_newest = newest;
	if (p->pos >= p->end)
		p->complete = ~0ULL;
	if (p->nr)
		qsort(p->records, p->nr, sizeof(*p->records), cmp_records);
	return err;
}

/**
 * part__peek - get the oldest record that was not taken yet
 * @p: the file
 *
 * All records with the same time follow it.
 *
 * Return: the record, or NULL at the end.
 */
const struct part_record *part__peek(struct part *p)
{
	while (p->first == p->nr || p->records[p->first].time >= p->complete) {
		if (p->complete == ~0ULL)
			return p->first < p->nr ? &p->records[p->first] : NULL;
		/* If there is no memory, the rest is missing. */
		if (read_round(p)) {
			p->truncated = true;
			p->pos = p->end;
			p->complete = ~0ULL;
		}
	}
	return &p->records[p->first];
}

/**
 * part__open - open a file
 * @p: returns the file; must be closed in any case
 * @path: its name
 *
 * Return: 0 or a negative errno: -ENODATA if there is no complete header, -EPROTO if the
 * file is not from a flight recorder, -EPROTONOSUPPORT if it has another byte order,
 * -EBADMSG if it is broken.
 */
int part__open(struct part *p, const char *path)
{
	const struct part_record *oldest;
	int err;

	*p = (struct part) {};
	p->path = strdup(path);
	if (!p->path)
		return -ENOMEM;
	err = map_file(p);
	if (!err)
		err = read_header(p);
	if (!err)
		err = read_beginning(p);
	if (err)
		return err;
	oldest = part__peek(p);
	p->oldest = oldest ? oldest->time : 0;
	return 0;
}

void part__close(struct part *p)
{
	if (p->map)
		munmap((void *)p->map, p->size);
	free(p->path);
	free(p->events);
	free(p->preamble);
	free(p->state);
	free(p->records);
	*p = (struct part) {};
}
