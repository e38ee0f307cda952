// SPDX-License-Identifier: GPL-2.0
/*
 * A persistent session as the source of a flight recorder
 *
 * perf record -M SIZE -e persistent/NAME/ reads the session's buffers incrementally. The
 * recorder keeps the records as rounds, like those of perf record's own events. The session
 * does not depend on the recorder. If the recorder is killed, a new one begins with the
 * content of the buffers. Records that were overwritten there, and were not in a dump, are
 * lost.
 *
 * The names of tasks come from these sources, the oldest first:
 *
 *	OUT.auxiliary of the recorder before, if it was of this session: tasks that
 *		have exited since
 *	/proc, read after the first copy of the buffers: tasks that are alive
 *	side-band records in the buffers
 *
 * perf record waits for one file descriptor, an epoll of the buffers. A buffer causes a
 * wakeup when half of it has been written since the last wakeup. The buffer of a session
 * that has ended, or of a task that has exited, hangs up, and is removed from the epoll.
 * The source has ended when all of them have hung up.
 *
 * A trigger with 'freeze' freezes the session, for all its readers, until the dump has its
 * records, and thaws it only if it was not frozen before. A dump of a session that somebody
 * else, or the kernel, has frozen is written as ever, and its manifest tells since when.
 *
 * Memory: the mapped pages of the buffers, and the copies of new records, count against
 * SIZE. The recorder gets the rest. The first pass may copy the whole content of the
 * buffers, and must find room in the store even if the side-band has taken its half. Later
 * passes keep memory for the records that are written between two passes.
 */
#include "source.h"
#include "../job.h"
#include "../recorder.h"
#include "../self.h"
#include "../store/flight-store.h"
#include "../store/sideband-store.h"
#include "../trigger/triggers.h"
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
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/**
 * struct session_source - a session that a flight recorder reads
 * @source: the part that perf record's loop uses
 * @reader: reads the session
 * @p: the options of persistent events
 * @fo: those of the flight recorder
 * @control: the session as a whole, or -1: the kernel does not know that
 * @nr_live: buffers that may be written to again
 * @begun: the records of the first pass have been stored
 * @in_pass: put() gets records from a buffer, not synthesized ones
 * @froze: it is this recorder that froze the session
 */
struct session_source {
	struct record_source		source;
	struct persistent_reader	reader;
	const struct persistent_opts	*p;
	struct flight_opts		*fo;
	int				control;
	int				nr_live;
	bool				begun;
	bool				in_pass;
	bool				froze;
};

static struct flight_store *store_of(struct session_source *s)
{
	return flight_recorder__get_store(s->source.flight);
}

/* While there is no recorder yet, waiting for the log does no harm. */
static void say(struct persistent_reader *r, const char *text)
{
	struct session_source *s = container_of(r, struct session_source, reader);

	if (s->source.flight)
		flight_job__say(flight_recorder__get_job(s->source.flight), "%s", text);
	else
		pr_err("%s", text);
}

static int put(struct persistent_reader *r, void *buf, size_t size)
{
	struct session_source *s = container_of(r, struct session_source, reader);
	const union perf_event *event = buf;

	if (!s->in_pass || event->header.type == PERF_RECORD_FINISHED_ROUND)
		return flight_recorder__store(s->source.flight, NULL, buf, size);
	size = flight_self__drop(flight_recorder__get_self(s->source.flight), s->source.evlist,
				 buf, size);
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
		if (buf->sideband && (info->len || info->gap))
			store_of(s)->sideband_news++;
		if (!buf->sideband)
			flight_store__cover(store_of(s), buf->event->cpu,
					    perf_snapshot__way_name(info->way), info->gap);
	}
	s->in_pass = true;
	err = persistent_reader__put_pass(&s->reader);
	s->in_pass = false;
	return err;
}

/* --dry-run measures a rate: records from before it do not count. */
static void drop_pass(struct session_source *s)
{
	for (int i = 0; i < s->reader.nr_buffers; i++)
		perf_snapshot__release(s->reader.buffers[i].snap);
}

static int share_memory(struct session_source *s)
{
	u64 total = 0, copies;

	for (int i = 0; i < s->reader.nr_buffers; i++)
		total += s->reader.buffers[i].len;
	/* The mapping and the copies. */
	copies = 2 * total;
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
	int err;

	s->source.fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->source.fd < 0)
		goto out_error;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		int fd = s->reader.buffers[i].event->fd;
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

		if (epoll_ctl(s->source.fd, EPOLL_CTL_ADD, fd, &ev))
			goto out_error;
	}
	s->nr_live = s->reader.nr_buffers;
	return 0;

out_error:
	err = -errno;
	pr_err("Cannot wait for the buffers of session '%s': %s\n", s->reader.ps->name,
	       strerror(-err));
	return err;
}

/* Call this before a pass, so that the pass still reads the last records of these buffers. */
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
		flight_job__say(flight_recorder__get_job(s->source.flight),
				"[ perf record: persistent session '%s' has ended ]\n",
				s->reader.ps->name);
}

static void session_source__tell(struct record_source *src,
				 struct perf_persistent_session_info *info)
{
	struct session_source *s = container_of(src, struct session_source, source);

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	if (s->control < 0 || ioctl(s->control, PERF_EVENT_IOC_SESSION_INFO, info))
		memset(info, 0, sizeof(*info));
}

static void session_source__freeze(struct record_source *src, bool on)
{
	struct session_source *s = container_of(src, struct session_source, source);

	if (on) {
		if (!ioctl(s->control, PERF_EVENT_IOC_SESSION_FREEZE))
			s->froze = true;
		else if (errno != EALREADY)
			flight_job__say(flight_recorder__get_job(src->flight),
					"Cannot freeze the persistent session '%s': %m\n",
					s->reader.ps->name);
	} else if (s->froze) {
		s->froze = false;
		/* Somebody may have thawed it, or ended it. */
		ioctl(s->control, PERF_EVENT_IOC_SESSION_THAW);
	}
}

/* Is a trigger to freeze the session, and may it? */
static int check_freeze(struct session_source *s)
{
	struct perf_persistent_session_info info;
	struct flight_trigger *t = s->fo->triggers;

	while (t && !t->freeze)
		t = t->next;
	if (!t)
		return 0;

	session_source__tell(&s->source, &info);
	if (!info.id) {
		pr_err("--trigger: this kernel cannot freeze persistent sessions: omit 'freeze'.\n");
		return -EINVAL;
	}
	if (!persistent__may_control(&info)) {
		pr_err("--trigger: 'freeze' affects all readers of session '%s', and requires its owner or CAP_SYS_ADMIN: omit 'freeze'.\n",
		       info.name);
		return -EPERM;
	}
	return 0;
}

static int session_source__open(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);
	int err = persistent__check_support();

	if (!err)
		err = persistent_reader__open(&s->reader, s->p->read);
	if (!err) {
		s->control = persistent__open_session(s->reader.ps->id);
		err = check_freeze(s);
	}
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
	/* The writer was too fast. The next pass reports the records that it overwrote. */
	if (err == -EAGAIN)
		return 0;
	return err ?: put_pass(s);
}

static void session_source__delete(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);

	session_source__freeze(src, false);
	if (s->control >= 0)
		close(s->control);
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
	.freeze		= session_source__freeze,
	.tell		= session_source__tell,
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
	s->control	= -1;
	s->reader.put	= put;
	s->reader.say	= say;
	s->reader.knows	= knows;
	s->reader.opts	= opts;
	s->reader.data	= data;
	s->fo		= fo;
	s->p		= p;
	return &s->source;
}
