// SPDX-License-Identifier: GPL-2.0
/*
 * A persistent session as the source of a flight recorder
 *
 * perf record -M SIZE -e persistent/NAME/ reads the session's buffers incrementally, and
 * the recorder keeps what was read as rounds, like those of perf record's own events. The
 * session does not depend on the recorder. A recorder that is started again after SIGKILL
 * begins with all that the buffers hold. What they had overwritten is lost with the
 * memory of the recorder before, unless it was dumped.
 *
 * What names the records, from the oldest to the newest:
 *
 *	OUT.auxiliary of the recorder before, if it was of this session: tasks that
 *		have exited since
 *	/proc, read behind the first copy of the buffers: tasks that live
 *	side-band records in the buffers
 *
 * perf record waits for one file descriptor, an epoll of the buffers. A buffer wakes it
 * when half of it has been written since the last wakeup. A buffer of a session that was
 * ended, or of a task that has exited, hangs up, and is polled no longer. When all have
 * hung up, the source has ended.
 *
 * Memory: copies of what is new, and the pages of the buffers as they are mapped, count
 * against SIZE, and what is left of it is the recorder's. A first pass may hold all that
 * the buffers do, and must find room in the store even when the side-band has taken
 * its half.
 */
#include "source.h"
#include "../recorder.h"
#include "../store/flight-store.h"
#include "../store/sideband-store.h"
#include "../../data.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../persistent/persistent.h"
#include "../../persistent/reader.h"
#include "../../util.h"

#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/**
 * struct session_source - a session on its way into a flight recorder
 * @source: what perf record's loop knows of it
 * @reader: the session
 * @p: the options of persistent events
 * @fo: those of the flight recorder
 * @nr_live: buffers that may be written to again
 * @begun: the first copies have been handed on
 * @in_pass: what the reader hands on was in a buffer
 */
struct session_source {
	struct record_source		source;
	struct persistent_reader	reader;
	const struct persistent_opts	*p;
	struct flight_opts		*fo;
	int				nr_live;
	bool				begun;
	bool				in_pass;
};

static struct flight_store *store_of(struct session_source *s)
{
	return flight_recorder__get_store(s->source.flight);
}

static int put(struct persistent_reader *r, void *buf, size_t size)
{
	struct session_source *s = container_of(r, struct session_source, reader);
	const union perf_event *event = buf;

	if (!s->in_pass || event->header.type == PERF_RECORD_FINISHED_ROUND)
		return flight_recorder__store(s->source.flight, NULL, buf, size);
	flight_store__append(store_of(s), buf, size);
	return 0;
}

static bool knows(struct persistent_reader *r, pid_t pid)
{
	struct session_source *s = container_of(r, struct session_source, reader);

	return sideband_store__knows(store_of(s)->sideband, pid);
}

static int put_pass(struct session_source *s)
{
	int err;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		const struct persistent_buffer *buf = &s->reader.buffers[i];
		const struct perf_snapshot_info *info = perf_snapshot__info(buf->snap);

		if (buf->err)
			continue;
		if (info->gap)
			flight_store__missed(store_of(s), info->gap, buf->sideband);
		if (!buf->sideband)
			flight_store__cover(store_of(s), buf->event->cpu,
					    perf_snapshot__way_name(info->way), info->gap);
	}
	s->in_pass = true;
	err = persistent_reader__put_pass(&s->reader);
	s->in_pass = false;
	return err;
}

/* What a measurement begins with is not what comes in its time. */
static void drop_pass(struct session_source *s)
{
	for (int i = 0; i < s->reader.nr_buffers; i++)
		perf_snapshot__release(s->reader.buffers[i].snap);
}

static int share_memory(struct session_source *s)
{
	u64 total = 0, largest = 0, copies;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		total += s->reader.buffers[i].len;
		largest = max_t(u64, largest, s->reader.buffers[i].len);
	}
	/* As mapped, as copied, and one of them put in order. */
	copies = 2 * total + largest;
	if (copies > s->fo->memory / 2) {
		pr_err("-M %lluK is not enough to read session '%s', whose buffers have %lluK: give it %lluM.\n",
		       (unsigned long long)s->fo->memory >> 10, s->reader.ps->name,
		       (unsigned long long)total >> 10,
		       (unsigned long long)(2 * copies >> 20) + 1);
		return -EINVAL;
	}
	s->fo->store = s->fo->memory - copies;
	return 0;
}

static int watch_buffers(struct session_source *s)
{
	s->source.fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->source.fd < 0)
		return -errno;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		int fd = s->reader.buffers[i].event->fd;
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

		if (epoll_ctl(s->source.fd, EPOLL_CTL_ADD, fd, &ev))
			return -errno;
	}
	s->nr_live = s->reader.nr_buffers;
	return 0;
}

/* Before the pass that reads what these buffers hold. */
static void forget_what_has_ended(struct session_source *s)
{
	struct epoll_event events[64];
	int nr = epoll_wait(s->source.fd, events, ARRAY_SIZE(events), 0);

	for (int i = 0; i < nr; i++) {
		if (!(events[i].events & (EPOLLHUP | EPOLLERR)))
			continue;
		epoll_ctl(s->source.fd, EPOLL_CTL_DEL, events[i].data.fd, NULL);
		s->nr_live--;
	}
	if (s->nr_live || s->source.ended)
		return;
	s->source.ended = true;
	if (!quiet)
		fprintf(stderr, "[ perf record: persistent session '%s' has ended ]\n",
			s->reader.ps->name);
}

static int session_source__open(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);
	int err = persistent__check_support();

	if (!err)
		err = persistent_reader__open(&s->reader, s->p->read);
	if (!err)
		err = share_memory(s);
	if (!err)
		err = watch_buffers(s);
	if (!err)
		err = persistent_reader__take(&s->reader, 0);
	if (!err)
		err = persistent_reader__describe(&s->reader);
	src->evlist = s->reader.evlist;
	return err;
}

static int session_source__synthesize(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);

	s->reader.session = src->session;
	if (!s->fo->dry_run)
		flight_store__recover(store_of(s));
	return persistent_reader__synthesize(&s->reader);
}

static int read_first(struct session_source *s)
{
	int err = 0;

	s->begun = true;
	if (s->fo->dry_run)
		drop_pass(s);
	else
		err = put_pass(s);
	if (!err)
		flight_store__missed(store_of(s), 0, true);
	return err;
}

static int session_source__read(struct record_source *src, bool last __maybe_unused)
{
	struct session_source *s = container_of(src, struct session_source, source);
	int err;

	if (!s->begun)
		return read_first(s);

	forget_what_has_ended(s);
	err = persistent_reader__take(&s->reader, PERF_SNAPSHOT_INCREMENTAL);
	/* The writer was too fast; what it overwrote is told by the next pass. */
	if (err == -EAGAIN)
		return 0;
	return err ?: put_pass(s);
}

static void session_source__delete(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);

	persistent_reader__exit(&s->reader);
	if (src->fd >= 0)
		close(src->fd);
	free(s);
}

static const struct record_source_ops session_source_ops = {
	.open		= session_source__open,
	.synthesize	= session_source__synthesize,
	.read		= session_source__read,
	.delete		= session_source__delete,
};

/**
 * session_source__new - a persistent session, for a flight recorder
 * @fo: the options of the flight recorder, which last as long; @fo->store becomes what
 *	the buffers leave of the memory
 * @p: the options of persistent events, likewise
 * @opts: the other options of perf record, likewise
 * @data: the file that perf record would write
 *
 * Return: the source, for record_source__delete(), or NULL if there is no memory.
 */
struct record_source *session_source__new(struct flight_opts *fo, const struct persistent_opts *p,
					  struct record_opts *opts, struct perf_data *data)
{
	struct session_source *s = zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->source.ops	= &session_source_ops;
	s->source.opts	= opts;
	s->source.data	= data;
	s->source.fd	= -1;
	s->reader.put	= put;
	s->reader.knows	= knows;
	s->reader.opts	= opts;
	s->reader.data	= data;
	s->fo		= fo;
	s->p		= p;
	return &s->source;
}
