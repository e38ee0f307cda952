// SPDX-License-Identifier: GPL-2.0
/*
 * What tasks become between two notes of all tasks: new tasks, their names and mappings
 *
 * A dummy event on each CPU records it. The records are sorted by their times, which they keep:
 * PERF_RECORD_HEADER_ATTR before them says that each ends with its time. So a reader can tell
 * what a task was before and after it started a program, however long it took to store that.
 *
 * A CPU that comes online has no event. The kernel tells of it, and of a resume (cpu-news.h). All
 * events are opened again then, before the state is read. That is not done without need: to open
 * an event interrupts its CPU.
 */
#include "note-changes.h"
#include "../base-api.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../mmap.h"
#include "../target.h"

#include <api/fd/array.h>
#include <internal/evlist.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <perf/evlist.h>
#include <perf/mmap.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* Of each ring buffer */
#define PAGES		16

/* More are not stored in one piece. */
#define MAX_BYTES	(1024 * 1024)

static void configure(struct evsel *evsel)
{
	struct perf_event_attr *attr = &evsel->core.attr;

	attr->task = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->build_id = 1;
	attr->exclude_kernel = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = 1;
	attr->sample_type = PERF_SAMPLE_TIME;
	attr->read_format = 0;
	attr->sample_id_all = 1;
	attr->disabled = 0;
}

static int watch(struct evlist *evlist, int fd)
{
	return fd < 0 ? 0 : perf_evlist__add_pollfd(evlist__core(evlist), fd, NULL, POLLIN,
						    fdarray_flag__nonfilterable |
						    fdarray_flag__non_perf_event);
}

static struct evlist *open_events(const struct note_changes *c)
{
	struct target target = { .system_wide = true, .uses_mmap = true };
	struct evlist *evlist = evlist__new();
	int err = -ENOMEM;

	target__select_all_users(&target);
	if (!evlist || evlist__add_dummy(evlist) || evlist__create_maps(evlist, &target))
		goto out;
	configure(evlist__first(evlist));
	errno = 0;
	if (evlist__open(evlist) < 0 || evlist__do_mmap(evlist, PAGES) < 0) {
		err = -errno ?: -EIO;
		goto out;
	}
	if (watch(evlist, c->news.uevents) >= 0 && watch(evlist, c->news.clock) >= 0 &&
	    watch(evlist, c->session) >= 0)
		return evlist;
out:
	evlist__put(evlist);
	errno = -err;
	return NULL;
}

/**
 * note_changes__init - begin to listen
 * @c: for note_changes__exit(), whatever this returns
 * @session: file of the session that the notes are of
 * @listen: false: changes are of no use
 *
 * Return: 0, or a negative errno: the state has to be read again and again
 */
int note_changes__init(struct note_changes *c, int session, bool listen)
{
	*c = (struct note_changes) {
		.session = session,
		.news	 = { .uevents = -1, .clock = -1 },
	};
	strbuf_init(&c->taken, 0);
	if (!listen)
		return 0;
	flight_cpu_news__init(&c->news);
	c->evlist = open_events(c);
	if (c->evlist)
		return 0;
	c->stale = true;
	return -errno;
}

void note_changes__exit(struct note_changes *c)
{
	evlist__put(c->evlist);
	flight_cpu_news__exit(&c->news);
	strbuf_release(&c->taken);
}

/**
 * note_changes__wait - wait for records, news of CPUs, or a change of the session
 * @c: what is listened to
 * @timeout: in ms
 */
void note_changes__wait(struct note_changes *c, int timeout)
{
	struct pollfd session = { .fd = c->session, .events = POLLIN };

	if (!c->evlist)
		poll(&session, 1, timeout);
	else if (evlist__poll(c->evlist, timeout) > 0)
		evlist__filter_pollfd(c->evlist, POLLERR | POLLHUP);
}

static int put(struct note_changes *c, const void *record, size_t size)
{
	if (c->taken.len + size > MAX_BYTES)
		return -ENOSPC;
	return strbuf_add(&c->taken, record, size);
}

static int put_attr(struct note_changes *c)
{
	struct perf_record_header_attr record = {
		.header = { .type = PERF_RECORD_HEADER_ATTR, .size = sizeof(record) },
		.attr	= evlist__first(c->evlist)->core.attr,
	};

	return put(c, &record, sizeof(record));
}

static void take_event(struct note_changes *c, const union perf_event *event)
{
	switch (event->header.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if (put(c, event, event->header.size))
			c->lost = true;
		break;
	case PERF_RECORD_LOST:
		c->lost = true;
		break;
	default:
		break;
	}
}

static void take_buffers(struct note_changes *c)
{
	union perf_event *event;

	for (int i = 0; i < evlist__core(c->evlist)->nr_mmaps; i++) {
		struct perf_mmap *map = &evlist__mmap(c->evlist)[i].core;

		if (perf_mmap__read_init(map))
			continue;
		while ((event = perf_mmap__read_event(map))) {
			take_event(c, event);
			perf_mmap__consume(map);
		}
		perf_mmap__read_done(map);
	}
}

/**
 * note_changes__open - open the events again if there may be CPUs without one
 * @c: what is listened to. Call this before the state is read.
 */
void note_changes__open(struct note_changes *c)
{
	struct evlist *evlist = c->stale ? open_events(c) : NULL;

	/* Without the new events the old ones are of use. */
	if (!evlist)
		return;
	evlist__put(c->evlist);
	c->evlist = evlist;
	c->stale = false;
}

static const struct perf_event_header *header_at(const char *pos)
{
	return (const void *)pos;
}

static u64 time_at(const char *pos)
{
	return *(const u64 *)(pos + header_at(pos)->size - sizeof(u64));
}

/* Those of the same time stay in the order of their buffer. */
static int compare_times(const void *p, const void *q)
{
	const char *a = *(const char *const *)p, *b = *(const char *const *)q;
	u64 s = time_at(a), t = time_at(b);

	return s != t ? (s < t ? -1 : 1) : a < b ? -1 : a > b;
}

static int sort_records(struct note_changes *c, size_t from)
{
	struct strbuf sorted = STRBUF_INIT;
	const char **records, *end = c->taken.buf + c->taken.len, *pos;
	size_t nr = 0;
	int err;

	for (pos = c->taken.buf + from; pos < end; pos += header_at(pos)->size)
		nr++;
	records = calloc(nr, sizeof(*records));
	if (!records)
		return -ENOMEM;
	nr = 0;
	for (pos = c->taken.buf + from; pos < end; pos += header_at(pos)->size)
		records[nr++] = pos;
	qsort(records, nr, sizeof(*records), compare_times);
	err = strbuf_add(&sorted, c->taken.buf, from);
	for (size_t i = 0; i < nr && !err; i++)
		err = strbuf_add(&sorted, records[i], header_at(records[i])->size);
	free(records);
	if (err) {
		strbuf_release(&sorted);
		return err;
	}
	strbuf_release(&c->taken);
	c->taken = sorted;
	return 0;
}

/**
 * note_changes__take - take what the buffers have
 * @c: its @taken is what is new since the last call. If @lost is set, that is not all, and the
 *     state is to be read after this call. The caller resets it.
 */
void note_changes__take(struct note_changes *c)
{
	size_t from;

	strbuf_setlen(&c->taken, 0);
	if (flight_cpu_news__came(&c->news)) {
		c->lost = true;
		c->stale = true;
	}
	if (!c->evlist)
		return;
	if (put_attr(c)) {
		c->lost = true;
		return;
	}
	from = c->taken.len;
	take_buffers(c);
	if (c->taken.len == from) {
		strbuf_setlen(&c->taken, 0);
	} else if (sort_records(c, from)) {
		c->lost = true;
		strbuf_setlen(&c->taken, 0);
	}
}
