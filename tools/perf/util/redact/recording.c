// SPDX-License-Identifier: GPL-2.0
/*
 * Header, events and features of a recording, and those of its copy
 *
 *	header | ids | attributes | records | table of features | features
 *
 * The copy has this order whatever that of the recording is. What the header tells is read
 * into memory: it follows the number of events and tracepoints. Records are copied one by one,
 * see stream.c. If samples have call chains, they are read twice: a mapping may come behind
 * the samples in it. Sizes and places are those of an untrusted file: each is checked against the
 * size of the file before it is used, and sections that overlap cannot make more ids than the
 * file has words.
 */
#include "recording.h"
#include "features.h"
#include "stream.h"
#include "words.h"
#include "../debug.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC		0x32454c4946524550ULL	/* "PERFILE2" */
#define MAGIC_SWAPPED	0x50455246494c4532ULL

/* No section of the header that is read is nearly as large. */
#define MAX_SECTION	(256ULL << 20)

#define FEATURE_BITS	(8 * sizeof(unsigned long))

static int bad(const char *what)
{
	pr_err("The recording is damaged: %s. Nothing is written.\n", what);
	return -EBADMSG;
}

static bool is_inside(const struct redact_recording *r, const struct perf_file_section *section)
{
	return section->offset <= r->size && section->size <= r->size - section->offset;
}

static int read_at(const struct redact_recording *r, void *to, u64 offset, size_t size)
{
	while (size) {
		ssize_t nr = pread(r->fd, to, size, offset);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr <= 0) {
			int err = nr ? -errno : -ENODATA;

			pr_err("The recording cannot be read: %s.\n",
			       nr ? strerror(-err) : "it is shorter than it was");
			return err;
		}
		to += nr;
		offset += nr;
		size -= nr;
	}
	return 0;
}

static int read_section(const struct redact_recording *r,
			const struct perf_file_section *section, void **data)
{
	int err;

	if (!is_inside(r, section))
		return bad("a part of its header lies beyond its end");
	if (section->size > MAX_SECTION)
		return bad("a part of its header is too large");
	*data = malloc(section->size + 1);
	if (!*data)
		return -ENOMEM;
	err = read_at(r, *data, section->offset, section->size);
	if (err)
		zfree(data);
	return err;
}

static bool has_feature(const struct perf_file_header *header, int feature)
{
	return header->adds_features[feature / FEATURE_BITS] >> feature % FEATURE_BITS & 1;
}

static void set_feature(struct perf_file_header *header, int feature)
{
	header->adds_features[feature / FEATURE_BITS] |= 1UL << feature % FEATURE_BITS;
}

static int check_header(const struct redact_recording *r)
{
	const struct perf_file_header *header = &r->header;

	if (header->magic == MAGIC_SWAPPED) {
		pr_err("The recording is of a machine with another byte order: use perf on such a machine.\n");
		return -EPROTONOSUPPORT;
	}
	if (header->magic != MAGIC) {
		pr_err("The input is no recording: name a file that perf record has written.\n");
		return -EBADMSG;
	}
	if (header->size == sizeof(struct perf_pipe_file_header)) {
		pr_err("The recording is a stream (perf record -o -): record to a file.\n");
		return -EPROTONOSUPPORT;
	}
	if (header->size != sizeof(*header))
		return bad("its header has another size");
	if (has_feature(header, HEADER_DIR_FORMAT)) {
		pr_err("The recording is a directory (perf record --threads): record without --threads.\n");
		return -EPROTONOSUPPORT;
	}
	if (!header->data.size) {
		pr_err("The recording has no end: perf record was killed, and no copy can be made.\n");
		return -EBADMSG;
	}
	if (!is_inside(r, &header->data) || !is_inside(r, &header->attrs))
		return bad("it is cut short");
	return 0;
}

static int read_features(struct redact_recording *r)
{
	struct perf_file_section table = {
		.offset	= r->header.data.offset + r->header.data.size,
		.size	= sizeof(table),
	};
	int err = 0;

	for (int i = 0; i < HEADER_FEAT_BITS && !err; i++) {
		if (!has_feature(&r->header, i))
			continue;
		if (!is_inside(r, &table))
			return bad("the table of its features is cut short");
		err = read_at(r, &r->sections[i], table.offset, sizeof(r->sections[i]));
		table.offset += table.size;
	}
	return err;
}

static int read_host(const struct redact_recording *r, struct redact_words *w)
{
	void *data = NULL;
	const char *text;
	size_t len;
	int err;

	if (!has_feature(&r->header, HEADER_HOSTNAME))
		return 0;
	err = read_section(r, &r->sections[HEADER_HOSTNAME], &data);
	if (err)
		return err;
	text = redact_feature__text(data, r->sections[HEADER_HOSTNAME].size, &len);
	if (text)
		redact_words__hide_host(w, 0, text, len);
	free(data);
	return 0;
}

static int read_formats(struct redact_recording *r, const struct redact_words *w)
{
	void *data = NULL;
	FILE *f;
	int err;

	if (!has_feature(&r->header, HEADER_TRACING_DATA))
		return 0;
	err = read_section(r, &r->sections[HEADER_TRACING_DATA], &data);
	if (err)
		return err;
	f = open_memstream(&r->tracing, &r->tracing_size);
	if (!f) {
		free(data);
		return -ENOMEM;
	}
	err = redact_formats__read(&r->formats, w, data, r->sections[HEADER_TRACING_DATA].size,
				   f);
	if (fclose(f) && !err)
		err = -ENOMEM;
	free(data);
	return err == -EBADMSG ? bad("the formats of its tracepoints cannot be read") : err;
}

/* Attributes may be shorter or longer than this perf's. Ids follow in a section of their own. */
static int read_event(struct redact_recording *r, const char *entry, size_t size, u64 *words)
{
	struct perf_file_section section;
	struct perf_event_attr attr = {};
	void *ids = NULL;
	u64 nr;
	int err;

	memcpy(&attr, entry, min(size, sizeof(attr)));
	memcpy(&section, entry + size, sizeof(section));
	if ((attr.size ?: PERF_ATTR_SIZE_VER0) != size)
		return bad("the size of an event's attributes is wrong");
	nr = section.size / sizeof(u64);
	if (!is_inside(r, &section) || nr > *words)
		return bad("the ids of an event lie beyond its end");
	*words -= nr;
	err = read_section(r, &section, &ids);
	if (!err)
		err = redact_events__add(&r->events, entry, size, ids, nr);
	free(ids);
	return err;
}

static int read_events(struct redact_recording *r, const struct redact_words *w)
{
	u64 stride = r->header.attr_size, words = r->size / sizeof(u64), nr;
	void *data = NULL;
	size_t size;
	int err;

	if (stride < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_file_section) ||
	    stride > r->header.attrs.size)
		return bad("it has no events");
	size = stride - sizeof(struct perf_file_section);
	nr = r->header.attrs.size / stride;
	err = read_section(r, &r->header.attrs, &data);
	for (u64 i = 0; i < nr && !err; i++)
		err = read_event(r, data + i * stride, size, &words);
	free(data);
	return err ?: redact_events__finish(&r->events, &r->formats, w);
}

/**
 * redact_recording__open - read the header of a recording
 * @r: returns it; must be closed in any case
 * @w: the words, which learn the name of the machine
 * @fd: the file, which must stay open
 *
 * Return: 0, or a negative errno after a message.
 */
int redact_recording__open(struct redact_recording *r, struct redact_words *w, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	int err;

	*r = (struct redact_recording) { .fd = fd };
	if (size < 0)
		return -errno;
	r->size = size;
	if (r->size < sizeof(r->header)) {
		pr_err("The input is no recording: name a file that perf record has written.\n");
		return -EBADMSG;
	}
	err = read_at(r, &r->header, 0, sizeof(r->header)) ?: check_header(r);
	if (!err)
		err = read_features(r);
	if (!err)
		err = read_host(r, w);
	if (!err)
		err = read_formats(r, w);
	if (!err)
		err = read_events(r, w);
	if (err == -ENOMEM)
		pr_err("There is not enough memory.\n");
	return err;
}

void redact_recording__close(struct redact_recording *r)
{
	redact_events__exit(&r->events);
	redact_formats__exit(&r->formats);
	redact_code__exit(&r->code);
	zfree(&r->tracing);
}

/* The copy */

static void write_ids(const struct redact_recording *r, FILE *f)
{
	for (size_t i = 0; i < r->events.nr; i++) {
		const struct redact_event *event = &r->events.events[i];

		fwrite(event->ids, sizeof(*event->ids), event->nr_ids, f);
	}
}

static void write_attrs(const struct redact_recording *r, struct perf_file_header *header,
			FILE *f)
{
	struct perf_file_section ids = { .offset = sizeof(*header) };

	for (size_t i = 0; i < r->events.nr; i++) {
		const struct redact_event *event = &r->events.events[i];
		struct perf_event_attr attr;

		ids.size = event->nr_ids * sizeof(*event->ids);
		redact_event__attr(event, &attr);
		fwrite(&attr, sizeof(attr), 1, f);
		fwrite(&ids, sizeof(ids), 1, f);
		ids.offset += ids.size;
	}
	header->attrs.offset = ids.offset;
	header->attrs.size = r->events.nr * header->attr_size;
	header->data.offset = header->attrs.offset + header->attrs.size;
}

static int write_feature(const struct redact_recording *r, const struct redact_words *w,
			 int feature, FILE *f)
{
	const struct perf_file_section *section = &r->sections[feature];
	void *data = NULL;
	int err;

	if (feature == HEADER_TRACING_DATA) {
		fwrite(r->tracing, r->tracing_size, 1, f);
		return 0;
	}
	err = read_section(r, section, &data);
	if (!err)
		redact_feature__put(w, feature, data, section->size, f);
	free(data);
	return err;
}

static bool is_written(const struct redact_recording *r, int feature)
{
	return has_feature(&r->header, feature) &&
	       (feature == HEADER_TRACING_DATA || redact_feature__is_known(feature));
}

/*
 * The table comes first, and its size must be known: a section that turns out to be empty is
 * written to nothing but a memory first.
 */
static int write_features(const struct redact_recording *r, const struct redact_words *w,
			  struct perf_file_header *header, FILE *f)
{
	struct perf_file_section sections[HEADER_LAST_FEATURE] = {};
	size_t nr = 0, size = 0;
	char *text = NULL;
	u64 start = header->data.offset + header->data.size;
	FILE *all = open_memstream(&text, &size);
	int err = 0;

	if (!all)
		return -ENOMEM;
	for (int i = 0; i < HEADER_LAST_FEATURE && !err; i++) {
		long begin = ftell(all);

		if (!is_written(r, i))
			continue;
		err = write_feature(r, w, i, all);
		/* That there is a branch stack is all that its section tells. */
		if (ftell(all) == begin && i != HEADER_BRANCH_STACK)
			continue;
		set_feature(header, i);
		sections[nr].offset = begin;
		sections[nr++].size = ftell(all) - begin;
	}
	if (fclose(all) && !err)
		err = -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		sections[i].offset += start + nr * sizeof(*sections);
	fwrite(sections, sizeof(*sections), nr, f);
	fwrite(text, 1, size, f);
	free(text);
	return err;
}

static bool has_chains(const struct redact_recording *r)
{
	for (size_t i = 0; i < r->events.nr; i++) {
		if (r->events.events[i].attr.sample_type & PERF_SAMPLE_CALLCHAIN)
			return true;
	}
	return false;
}

static int write_all(struct redact_recording *r, const struct redact_words *w, FILE *f)
{
	struct perf_file_header header = {
		.magic		= MAGIC,
		.size		= sizeof(header),
		.attr_size	= sizeof(struct perf_event_attr) + sizeof(struct perf_file_section),
	};
	struct redact_stream stream = {
		.events = &r->events, .w = w, .code = &r->code, .counts = &r->counts,
	};
	int err = 0;

	if (has_chains(r))
		err = redact_stream__copy(&stream, r->fd, r->header.data.offset,
					  r->header.data.size);
	if (err)
		return err;
	redact_code__finish(&r->code);
	stream.f = f;
	fwrite(&header, sizeof(header), 1, f);
	write_ids(r, f);
	write_attrs(r, &header, f);
	err = redact_stream__copy(&stream, r->fd, r->header.data.offset, r->header.data.size);
	if (err)
		return err;
	header.data.size = ftello(f) - header.data.offset;
	err = write_features(r, w, &header, f);
	if (err)
		return err;
	if (fseeko(f, 0, SEEK_SET))
		return -errno;
	fwrite(&header, sizeof(header), 1, f);
	return fflush(f) || ferror(f) ? -errno ?: -EIO : 0;
}

/**
 * redact_recording__write - write the copy
 * @r: the recording, whose counts are set
 * @w: the words
 * @f: an empty file
 *
 * Return: 0, or a negative errno after a message.
 */
int redact_recording__write(struct redact_recording *r, const struct redact_words *w, FILE *f)
{
	int err = write_all(r, w, f);

	if (err == -EIO || err == -ENOSPC || err == -ENOMEM)
		pr_err("The copy cannot be written: %s.\n", strerror(-err));
	if (!err && !r->counts.written) {
		if (r->counts.omitted[0] && !r->counts.damaged)
			pr_err("No record can be copied: this perf does not know their types. Use a newer one.\n");
		else
			pr_err("No record can be copied: the recording is empty, or damaged.\n");
		err = -EBADMSG;
	}
	return err;
}
