// SPDX-License-Identifier: GPL-2.0
/*
 * Combine all dumps of a flight recorder and its auxiliary file into one file OUT
 *
 * The parts are the dumps, OUT.auxiliary, and an OUT that was combined before. Each is read
 * in the order of time (part.c), and they are merged by time. Records with the same time
 * are compared. If several parts have records with equal bytes, those of the part with most
 * of them are written. Thus a record that is in several dumps is in OUT once, and two equal
 * records of one dump stay two.
 *
 * Each part starts with the state of the machine before its oldest record, without a
 * time. In OUT this state must be at the position where it is valid. Therefore it gets the
 * time of that oldest record. The state of the oldest part gets no time, because it is
 * valid from the start.
 *
 * Header: the base is the newest dump that is not truncated, or, if there is none, another
 * complete part. OUT has the features of the base. The events of the base get the ids of
 * the same events in all parts, because each run of the recorder has ids of its own. A part
 * is skipped and kept if it is from another boot, because its times cannot be compared with
 * those of the others; if it has events that the base does not have, or ids that the base
 * has for another event; if its version or its options differ; or if it cannot be read.
 *
 * Crash safety: OUT is written with a hidden name, and renamed when it is on disk. Then
 * OUT.json is written, which identifies a combined file. Then the parts are removed. If
 * combining is interrupted and repeated, the result has the same records: without OUT.json
 * all parts still exist, and with OUT.json OUT is one of the parts. An OUT without OUT.json
 * is renamed to OUT.old, as perf record does.
 *
 * A truncated part is read up to where it is intact, and is kept.
 */
#include "combine.h"
#include "dump.h"
#include "files.h"
#include "symbol-store.h"
#include "part.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../header.h"
#include "../../json-reader.h"
#include "../../json-writer.h"

#include <internal/lib.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITE_BUFFER		(1024 * 1024UL)
#define RECORDS_PER_ROUND	65536

/**
 * struct input - a part and its state
 * @part: the file
 * @boot_id: boot id in its manifest, or empty
 * @is_out: an OUT that was combined before
 * @used: included in OUT
 * @remove: remove it when OUT is in place
 * @stated: its state has been written
 */
struct input {
	struct part	part;
	char		boot_id[40];
	bool		is_out;
	bool		used;
	bool		remove;
	bool		stated;
};

/* A record of the current time. */
struct candidate {
	const void	*data;
	u32		size;
	u32		input;
	u64		seq;
	bool		drop;
};

/**
 * struct combine - a combined file
 * @out: its name
 * @inputs: the parts, oldest first
 * @nr_inputs: number of parts
 * @base: the part with the features
 * @ids: ids of each event of @base
 * @nr_ids: number of ids of each event
 * @instant: records of the same time
 * @nr_instant: number of these records
 * @instant_room: allocated size of @instant
 * @order: pointers to the records
 * @f: the output file
 * @in_round: records since the last end of a round
 * @data_pos: file position of the first record
 * @oldest: time of the oldest record of all parts
 * @first: time of the first record written
 * @last: time of the last record written
 * @records: records written
 * @events: number of samples
 * @duplicates: records omitted because they were duplicates
 */
struct combine {
	const char		*out;
	struct input		*inputs;
	size_t			nr_inputs;
	struct input		*base;
	u64			**ids;
	size_t			*nr_ids;
	struct candidate	*instant;
	size_t			nr_instant;
	size_t			instant_room;
	struct candidate	**order;
	FILE			*f;
	u64			in_round;
	u64			data_pos;
	u64			oldest;
	u64			first;
	u64			last;
	u64			records;
	u64			events;
	u64			duplicates;
};

/* The parts */

static void read_boot_id(struct input *in)
{
	char *path, *text, *boot_id = NULL;
	struct json_value value;

	if (asprintf(&path, "%s.json", in->part.path) < 0)
		return;
	text = json__read_file(path);
	if (text && json__find(text, "boot_id", &value))
		boot_id = json_value__strdup(&value);
	if (boot_id)
		scnprintf(in->boot_id, sizeof(in->boot_id), "%s", boot_id);
	free(boot_id);
	free(text);
	free(path);
}

/* A part that cannot be read is reported and kept. */
static int add_input(struct combine *c, const char *path, bool is_out)
{
	struct input *inputs = reallocarray(c->inputs, c->nr_inputs + 1, sizeof(*inputs));
	struct input *in;
	int err;

	if (!inputs)
		return -ENOMEM;
	c->inputs = inputs;
	in = &inputs[c->nr_inputs];
	*in = (struct input) { .is_out = is_out };
	err = part__open(&in->part, path);
	if (err) {
		part__close(&in->part);
		if (err == -ENOMEM)
			return err;
		pr_warning("%s was skipped: %s.\n", path,
			   err == -ENODATA ? "its header is incomplete" :
			   err == -EPROTO ? "it is not a file of a flight recorder" :
			   err == -EPROTONOSUPPORT ? "it has the other byte order" :
			   err == -EOPNOTSUPP ? "it is compressed" : strerror(-err));
		return 0;
	}
	read_boot_id(in);
	c->nr_inputs++;
	return 0;
}

static bool exists(const char *out, const char *suffix)
{
	bool there = false;
	char *path;

	if (asprintf(&path, "%s%s", out, suffix) < 0)
		return false;
	there = !access(path, F_OK);
	free(path);
	return there;
}

static int add_inputs(struct combine *c)
{
	struct dump_files df;
	char *auxiliary;
	int err;

	/* A file that was combined before has the oldest records. */
	if (exists(c->out, "") && exists(c->out, ".json")) {
		err = add_input(c, c->out, true);
		if (err)
			return err;
	}
	err = dump_files__list(c->out, &df);
	if (err)
		return err;
	for (size_t i = 0; i < df.nr && !err; i++)
		err = add_input(c, df.files[i].path, false);
	dump_files__free(&df);

	if (!err && exists(c->out, ".auxiliary")) {
		if (asprintf(&auxiliary, "%s.auxiliary", c->out) < 0)
			return -ENOMEM;
		err = add_input(c, auxiliary, false);
		free(auxiliary);
	}
	return err;
}

/* The newest complete dump; if there is none, another complete file. */
static struct input *find_base(struct combine *c)
{
	struct input *base = NULL;

	for (size_t i = 0; i < c->nr_inputs; i++) {
		struct input *in = &c->inputs[i];

		if (!in->part.truncated && (!base || !dump__is_auxiliary(in->part.path)))
			base = in;
	}
	return base;
}

/* Events */

/* Find the same event in @base, starting at @from. */
static int find_event(const struct part *base, const struct part *p, size_t i, size_t from)
{
	for (size_t j = from; j < base->nr_events; j++) {
		if (!memcmp(base->events[j].attr, p->events[i].attr, base->attr_size))
			return j;
	}
	return -1;
}

static bool has_id(const struct combine *c, size_t event, u64 id)
{
	for (size_t i = 0; i < c->nr_ids[event]; i++) {
		if (c->ids[event][i] == id)
			return true;
	}
	return false;
}

static bool is_another_event(const struct combine *c, size_t event, u64 id)
{
	for (size_t i = 0; i < c->base->part.nr_events; i++) {
		if (i != event && has_id(c, i, id))
			return true;
	}
	return false;
}

static int add_ids(struct combine *c, size_t event, const struct part_event *from)
{
	u64 *ids = reallocarray(c->ids[event], c->nr_ids[event] + from->nr_ids, sizeof(*ids));

	if (!ids && c->nr_ids[event] + from->nr_ids)
		return -ENOMEM;
	c->ids[event] = ids;
	for (size_t i = 0; i < from->nr_ids; i++) {
		u64 id;

		memcpy(&id, from->ids + i * sizeof(id), sizeof(id));
		if (!has_id(c, event, id))
			ids[c->nr_ids[event]++] = id;
	}
	return 0;
}

/* Map the events of the part to those of the base. Return NULL or the reason for failure. */
static const char *match_events(struct combine *c, const struct part *p, int *events)
{
	const struct part *base = &c->base->part;

	if (p->attr_size != base->attr_size ||
	    !sample_layout__is_same(&p->layout, &base->layout, SAMPLE_WORD__TIME))
		return "it was written by another version of perf or with other options";
	for (size_t i = 0; i < p->nr_events; i++) {
		size_t from = 0;

		/* Equal events are mapped in their order. */
		for (size_t j = 0; j < i; j++) {
			if (!memcmp(p->events[j].attr, p->events[i].attr, p->attr_size))
				from = events[j] + 1;
		}
		events[i] = find_event(base, p, i, from);
		if (events[i] < 0)
			return "it has events that the newest dump does not have";
		for (size_t k = 0; k < p->events[i].nr_ids; k++) {
			u64 id;

			memcpy(&id, p->events[i].ids + k * sizeof(id), sizeof(id));
			if (is_another_event(c, events[i], id))
				return "its event ids belong to other events in the newest dump";
		}
	}
	return NULL;
}

static int use_input(struct combine *c, struct input *in)
{
	int *events = calloc(in->part.nr_events, sizeof(*events));
	const char *why = NULL;
	int err = 0;

	if (!events)
		return -ENOMEM;
	if (*in->boot_id && *c->base->boot_id && strcmp(in->boot_id, c->base->boot_id))
		why = "it is from another boot";
	else
		why = match_events(c, &in->part, events);
	if (why) {
		pr_warning("%s was skipped: %s.\n", in->part.path, why);
	} else {
		for (size_t i = 0; i < in->part.nr_events && !err; i++)
			err = add_ids(c, events[i], &in->part.events[i]);
		in->used = true;
	}
	free(events);
	return err;
}

static int use_inputs(struct combine *c)
{
	int err = 0;

	c->ids = calloc(c->base->part.nr_events, sizeof(*c->ids));
	c->nr_ids = calloc(c->base->part.nr_events, sizeof(*c->nr_ids));
	if (!c->ids || !c->nr_ids)
		return -ENOMEM;
	err = use_input(c, c->base);
	for (size_t i = 0; i < c->nr_inputs && !err; i++) {
		if (&c->inputs[i] != c->base)
			err = use_input(c, &c->inputs[i]);
	}
	for (size_t i = 0; i < c->nr_inputs; i++) {
		u64 oldest = c->inputs[i].part.oldest;

		if (c->inputs[i].used && oldest && (!c->oldest || oldest < c->oldest))
			c->oldest = oldest;
	}
	return err;
}

/* Records */

static int put(struct combine *c, const void *data, size_t size)
{
	return fwrite(data, 1, size, c->f) == size ? 0 : -errno ?: -EIO;
}

static int put_mark(struct combine *c, u32 type)
{
	struct perf_event_header header = { .type = type, .size = sizeof(header) };

	c->in_round = 0;
	return put(c, &header, sizeof(header));
}

static int add_candidate(struct combine *c, const struct part_record *record, u32 input)
{
	if (c->nr_instant == c->instant_room) {
		size_t room = max(c->instant_room * 2, (size_t)256);
		struct candidate *instant = reallocarray(c->instant, room, sizeof(*instant));
		struct candidate **order;

		if (!instant)
			return -ENOMEM;
		c->instant = instant;
		order = reallocarray(c->order, room, sizeof(*order));
		if (!order)
			return -ENOMEM;
		c->order = order;
		c->instant_room = room;
	}
	c->instant[c->nr_instant++] = (struct candidate) {
		.data	= record->data,
		.size	= record->size,
		.input	= input,
		.seq	= record->seq,
	};
	return 0;
}

static int cmp_contents(const struct candidate *a, const struct candidate *b)
{
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return memcmp(a->data, b->data, a->size);
}

static int cmp_candidates(const void *va, const void *vb)
{
	const struct candidate *a = *(const struct candidate **)va;
	const struct candidate *b = *(const struct candidate **)vb;
	int cmp = cmp_contents(a, b);

	if (cmp)
		return cmp;
	if (a->input != b->input)
		return a->input < b->input ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Of @nr equal records keep those of the input with most of them. */
static void keep_most(struct combine *c, struct candidate **equal, size_t nr)
{
	size_t most = 0, from = 0;
	u32 keep = 0;

	for (size_t i = 1; i <= nr; i++) {
		if (i < nr && equal[i]->input == equal[from]->input)
			continue;
		if (i - from > most) {
			most = i - from;
			keep = equal[from]->input;
		}
		from = i;
	}
	for (size_t i = 0; i < nr; i++)
		equal[i]->drop = equal[i]->input != keep;
	c->duplicates += nr - most;
}

static void drop_duplicates(struct combine *c)
{
	size_t from = 0;

	for (size_t i = 0; i < c->nr_instant; i++)
		c->order[i] = &c->instant[i];
	qsort(c->order, c->nr_instant, sizeof(*c->order), cmp_candidates);
	for (size_t i = 1; i <= c->nr_instant; i++) {
		if (i < c->nr_instant && !cmp_contents(c->order[i], c->order[from]))
			continue;
		if (i - from > 1)
			keep_most(c, &c->order[from], i - from);
		from = i;
	}
}

static int put_instant(struct combine *c, u64 time)
{
	int err = 0;

	if (c->nr_instant > 1)
		drop_duplicates(c);
	for (size_t i = 0; i < c->nr_instant && !err; i++) {
		struct perf_event_header header;

		if (c->instant[i].drop)
			continue;
		memcpy(&header, c->instant[i].data, sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE) {
			c->events++;
			c->first = c->first ?: time;
			c->last = time;
		}
		err = put(c, c->instant[i].data, c->instant[i].size);
		c->records++;
		c->in_round++;
	}
	c->nr_instant = 0;
	if (!err && c->in_round >= RECORDS_PER_ROUND)
		err = put_mark(c, PERF_RECORD_FINISHED_ROUND);
	return err;
}

/* Records that describe the file: write them once if they are equal. */
static int put_preambles(struct combine *c)
{
	int err = 0;

	for (size_t i = 0; i < c->nr_inputs && !err; i++) {
		const struct part *p = &c->inputs[i].part;

		for (size_t j = 0; c->inputs[i].used && j < p->nr_preamble && !err; j++)
			err = add_candidate(c, &p->preamble[j], i);
	}
	return err ?: put_instant(c, 0);
}

/*
 * The state before the oldest record of a part, with the time of that record. The
 * copies are valid until all records of that time were written.
 */
static int add_state(struct combine *c, u32 input, char **copy)
{
	struct input *in = &c->inputs[input];
	const struct part *p = &in->part;
	u64 time = p->oldest == c->oldest ? 0 : p->oldest;
	size_t size = 0;
	char *to;

	in->stated = true;
	for (size_t i = 0; i < p->nr_state; i++)
		size += p->state[i].size;
	if (!size)
		return 0;
	to = *copy = malloc(size);
	if (!to)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_state; i++) {
		struct part_record record = p->state[i];
		struct perf_event_header header;
		int err, pos;

		memcpy(to, record.data, record.size);
		memcpy(&header, to, sizeof(header));
		pos = sample_layout__offset(&p->layout, SAMPLE_WORD__TIME, header.type,
					    record.size);
		if (pos >= 0)
			memcpy(to + pos, &time, sizeof(time));
		record.data = to;
		to += record.size;
		err = add_candidate(c, &record, input);
		if (err)
			return err;
	}
	return 0;
}

/* Add the state of all parts that start at @time to the records of that time. */
static int add_states(struct combine *c, u64 time, char **copies)
{
	int err = 0;

	for (size_t i = 0; i < c->nr_inputs && !err; i++) {
		struct input *in = &c->inputs[i];

		if (in->used && !in->stated && in->part.oldest == time)
			err = add_state(c, i, &copies[i]);
	}
	return err;
}

static void free_copies(struct combine *c, char **copies)
{
	for (size_t i = 0; i < c->nr_inputs; i++)
		zfree(&copies[i]);
}

/* The oldest time that has not been written yet, or 0. */
static u64 next_time(struct combine *c, bool *begins)
{
	u64 time = 0;

	*begins = false;
	for (size_t i = 0; i < c->nr_inputs; i++) {
		const struct part_record *record;

		if (!c->inputs[i].used)
			continue;
		record = part__peek(&c->inputs[i].part);
		if (!record || (time && record->time > time))
			continue;
		if (!time || record->time < time)
			*begins = false;
		time = record->time;
		*begins |= !c->inputs[i].stated && time == c->inputs[i].part.oldest;
	}
	return time;
}

static int take_instant(struct combine *c, u64 time)
{
	const struct part_record *record;
	int err = 0;

	for (size_t i = 0; i < c->nr_inputs; i++) {
		struct part *p = &c->inputs[i].part;

		while (c->inputs[i].used && !err && (record = part__peek(p)) != NULL &&
		       record->time == time) {
			err = add_candidate(c, record, i);
			part__take(p);
		}
	}
	return err ?: put_instant(c, time);
}

static int put_states(struct combine *c, u64 time, char **copies)
{
	int err = add_states(c, time, copies);

	if (!err)
		err = put_instant(c, time);
	free_copies(c, copies);
	return err;
}

static int put_records(struct combine *c)
{
	char **copies = calloc(c->nr_inputs, sizeof(*copies));
	bool begins;
	u64 time;
	int err;

	if (!copies)
		return -ENOMEM;
	err = put_preambles(c);
	/* The state of parts without a time, then that of the oldest one. */
	if (!err)
		err = put_states(c, 0, copies);
	if (!err && c->oldest)
		err = put_states(c, c->oldest, copies);
	if (!err)
		err = put_mark(c, PERF_RECORD_FINISHED_INIT);
	while (!err && (time = next_time(c, &begins)) != 0) {
		/* A file that was combined before has them among its records. */
		if (begins)
			err = add_states(c, time, copies);
		if (!err)
			err = take_instant(c, time);
		free_copies(c, copies);
	}
	free(copies);
	return err ?: put_mark(c, PERF_RECORD_FINISHED_ROUND);
}

/* Header and features */

static int put_events(struct combine *c, struct perf_file_header *header)
{
	const struct part *base = &c->base->part;
	u64 pos = sizeof(*header);
	int err = put(c, header, sizeof(*header));

	for (size_t i = 0; i < base->nr_events && !err; i++)
		err = put(c, c->ids[i], c->nr_ids[i] * sizeof(u64));
	for (size_t i = 0; i < base->nr_events && !err; i++) {
		struct perf_file_section ids = {
			.offset = pos,
			.size	= c->nr_ids[i] * sizeof(u64),
		};

		err = put(c, base->events[i].attr, base->attr_size);
		if (!err)
			err = put(c, &ids, sizeof(ids));
		pos += ids.size;
	}
	header->attrs.offset = pos;
	header->attrs.size = base->nr_events * (base->attr_size + sizeof(struct perf_file_section));
	header->data.offset = header->attrs.offset + header->attrs.size;
	return err;
}

static int put_feature(struct combine *c, int feature, struct perf_file_section *section)
{
	u64 times[2] = { c->first, c->last };
	const void *data;
	size_t size;

	if (!part__feature(&c->base->part, feature, &data, &size))
		return -EBADMSG;
	if (feature == HEADER_SAMPLE_TIME && size == sizeof(times))
		data = times;
	section->offset = ftello(c->f);
	section->size = size;
	return put(c, data, size);
}

/* A table of sections, followed by the sections, in the order of their numbers. */
static int put_features(struct combine *c, u64 table_pos)
{
	const struct part *base = &c->base->part;
	struct perf_file_section sections[HEADER_FEAT_BITS] = {};
	size_t nr = 0, i = 0;
	int err = 0;

	for (int feature = 0; feature < HEADER_FEAT_BITS; feature++)
		nr += base->features[feature / 64] >> (feature % 64) & 1;
	if (fseeko(c->f, table_pos + nr * sizeof(*sections), SEEK_SET))
		return -errno;
	for (int feature = 0; feature < HEADER_FEAT_BITS && !err; feature++) {
		if (base->features[feature / 64] >> (feature % 64) & 1)
			err = put_feature(c, feature, &sections[i++]);
	}
	if (!err && fseeko(c->f, table_pos, SEEK_SET))
		err = -errno;
	return err ?: put(c, sections, nr * sizeof(*sections));
}

static int put_file(struct combine *c)
{
	struct perf_file_header header;
	u64 end;
	int err;

	memcpy(&header, c->base->part.map, sizeof(header));
	err = put_events(c, &header);
	if (!err)
		err = put_records(c);
	if (err)
		return err;
	end = ftello(c->f);
	header.data.size = end - header.data.offset;
	err = put_features(c, end);
	if (!err && fseeko(c->f, 0, SEEK_SET))
		err = -errno;
	if (!err)
		err = put(c, &header, sizeof(header));
	return err ?: fflush(c->f) || fsync(fileno(c->f)) ? err ?: -errno : 0;
}

/* Names */

/* Call @write for a file with a hidden name, and rename the file when it is on disk. */
static int write_file(struct combine *c, const char *path, int (*write)(struct combine *c))
{
	char *tmp = NULL;
	int fd = dump__create_temporary(path, &tmp), err;

	if (fd < 0) {
		free(tmp);
		return fd;
	}
	c->f = fdopen(fd, "w");
	if (!c->f) {
		close(fd);
		err = -ENOMEM;
		goto out_unlink;
	}
	setvbuf(c->f, NULL, _IOFBF, WRITE_BUFFER);
	err = write(c);
	if (fclose(c->f) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
out_unlink:
	if (err)
		unlink(tmp);
	else
		dump__sync_directory(path);
	free(tmp);
	return err;
}

static int put_manifest(struct combine *c)
{
	struct json_writer w;

	json_writer__init(&w, c->f);
	json_writer__begin_object(&w, NULL, JSON_STYLE__LINES);
	json_writer__string(&w, "file", c->out);
	if (*c->base->boot_id)
		json_writer__string(&w, "boot_id", c->base->boot_id);
	json_writer__number(&w, "events", c->events);
	json_writer__number(&w, "records", c->records);
	json_writer__number(&w, "duplicates", c->duplicates);
	json_writer__seconds(&w, "oldest", c->first, 9);
	json_writer__seconds(&w, "newest", c->last, 9);
	json_writer__begin_array(&w, "parts", JSON_STYLE__LINES);
	for (size_t i = 0; i < c->nr_inputs; i++) {
		const struct input *in = &c->inputs[i];

		if (!in->used)
			continue;
		json_writer__begin_object(&w, NULL, JSON_STYLE__PADDED);
		json_writer__string(&w, "file", in->part.path);
		json_writer__bool(&w, "truncated", in->part.truncated);
		json_writer__end(&w);
	}
	json_writer__end(&w);
	json_writer__end(&w);
	return ferror(c->f) || fflush(c->f) || fsync(fileno(c->f)) ? -EIO : 0;
}

/* Do not replace an OUT that is not a combined file. */
static int move_old(struct combine *c)
{
	char *old, suffix[24] = ".old";
	int err, nr = 1;

	for (size_t i = 0; i < c->nr_inputs; i++) {
		if (c->inputs[i].is_out && c->inputs[i].used)
			return 0;
	}
	if (!exists(c->out, ""))
		return 0;
	/* Nor one that was renamed before a combination that did not end. */
	while (exists(c->out, suffix))
		scnprintf(suffix, sizeof(suffix), ".old.%d", ++nr);
	if (asprintf(&old, "%s%s", c->out, suffix) < 0)
		return -ENOMEM;
	err = rename(c->out, old) ? -errno : 0;
	if (!err)
		pr_warning("%s was not a combined file and was renamed to %s.\n", c->out, old);
	free(old);
	return err;
}

static void remove_parts(struct combine *c)
{
	for (size_t i = 0; i < c->nr_inputs; i++) {
		const struct input *in = &c->inputs[i];
		int err = 0;

		if (!in->used || in->is_out)
			continue;
		if (in->part.late)
			pr_debug("%s: %" PRIu64 " records out of order\n", in->part.path,
				 in->part.late);
		if (in->part.truncated) {
			pr_warning("%s is truncated: its intact part is in %s. The file was kept.\n",
				   in->part.path, c->out);
			continue;
		}
		err = dump_files__remove(in->part.path);
		if (err)
			pr_warning("Cannot remove %s: %s\n", in->part.path, strerror(-err));
	}
}

/* The file needs what its parts needed. */
static int join_lists(const struct combine *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < c->nr_inputs; i++) {
		const struct input *in = &c->inputs[i];

		if (in->used && !in->is_out)
			err = symbol_store__join(c->out, in->part.path);
	}
	return err;
}

static int write_out(struct combine *c, bool keep)
{
	char *manifest;
	int err;

	if (asprintf(&manifest, "%s.json", c->out) < 0)
		return -ENOMEM;
	err = move_old(c);
	if (!err)
		err = write_file(c, c->out, put_file);
	if (!err)
		err = write_file(c, manifest, put_manifest);
	if (!err)
		err = join_lists(c);
	if (!err && !keep)
		remove_parts(c);
	free(manifest);
	return err;
}

static void combine__exit(struct combine *c)
{
	for (size_t i = 0; c->ids && i < c->base->part.nr_events; i++)
		free(c->ids[i]);
	for (size_t i = 0; i < c->nr_inputs; i++)
		part__close(&c->inputs[i].part);
	free(c->ids);
	free(c->nr_ids);
	free(c->inputs);
	free(c->instant);
	free(c->order);
}

/**
 * flight_combine - combine the dumps of a recorder and its auxiliary file
 * @out: name of the output, and prefix of the names of the dumps
 * @keep: do not remove the dumps
 *
 * The recorder must have ended.
 *
 * Return: 0, or a negative errno after an error message. The parts are kept then.
 */
int flight_combine(const char *out, bool keep)
{
	struct combine c = { .out = out };
	size_t nr = 0;
	int err;

	dump__remove_stale(out);
	err = add_inputs(&c);
	if (!err) {
		c.base = find_base(&c);
		if (!c.base) {
			pr_err("There are no dumps of %s to combine. Use -o to give the prefix of their names.\n",
			       out);
			err = -ENOENT;
			goto out;
		}
		err = use_inputs(&c);
	}
	if (!err)
		err = write_out(&c, keep);
	if (err) {
		pr_err("Cannot combine the dumps of %s: %s. The dumps were kept.\n", out,
		       strerror(-err));
		goto out;
	}
	for (size_t i = 0; i < c.nr_inputs; i++)
		nr += c.inputs[i].used;
	if (!quiet)
		fprintf(stderr, "[ perf record: combined %zu files into %s: %" PRIu64
			" samples, %" PRIu64 " records, %" PRIu64 " duplicates left out ]\n",
			nr, out, c.events, c.records, c.duplicates);
out:
	combine__exit(&c);
	return err;
}
