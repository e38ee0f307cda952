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
 * perf record waits for one file descriptor, an epoll of the buffers and of the session. A
 * buffer causes a wakeup when half of it has been written since the last wakeup. The buffer
 * of a session that has ended, or of a task that has exited, hangs up, and is removed from
 * the epoll. The session causes a wakeup when it gets or loses events, see follow.c.
 *
 * When all buffers have hung up, a session that was named may be about to be replaced. The
 * source waits for the new one, which a timer in the epoll tells it to look for:
 *
 *	READING ---- all buffers have hung up ----> WAITING ---- REPLACE_TIME ----> ended
 *	   ^					       |
 *	   +---- session of that name and owner -------+---- which cannot be read -> ended
 *
 * The stored records of the old session stay. Its last pass is complete before its buffers
 * are unmapped.
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
#include "follow.h"
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
#include "../../time-utils.h"
#include "../../util.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How often a session is looked for that replaces one that has ended, and how long, in ns */
#define REPLACE_INTERVAL	(100 * NSEC_PER_MSEC)
#define REPLACE_TIME		(2 * NSEC_PER_SEC)

/**
 * struct session_source - a session that a flight recorder reads
 * @source: the part that perf record's loop uses
 * @reader: reads the session
 * @follow: what it takes to follow its changes
 * @p: the options of persistent events
 * @fo: those of the flight recorder
 * @name: name of the session
 * @control: the session as a whole, or -1: the kernel does not know that
 * @timer: tells to look for a session that replaces it, or -1
 * @ticks: expirations of @timer
 * @forget_due: when to close what has left the session, CLOCK_MONOTONIC in ns; 0: never
 * @nr_live: events whose buffers may be written to again
 * @most: bytes that the records may take, if the session takes as little as at first
 * @begun: the records of the first pass have been stored
 * @in_pass: put() gets records from a buffer, not synthesized ones
 * @round_goes_on: the records of another copy are to be in the same round
 * @changed: the session has got or lost events, or was frozen or thawed
 * @waiting: the session has ended; another one may replace it
 * @froze: it is this recorder that froze the session
 */
struct session_source {
	struct record_source		source;
	struct persistent_reader	reader;
	struct session_follow		follow;
	const struct persistent_opts	*p;
	struct flight_opts		*fo;
	char				name[PERF_PERSISTENT_NAME_LEN];
	int				control;
	int				timer;
	u64				ticks;
	u64				forget_due;
	int				nr_live;
	u64				most;
	bool				begun;
	bool				in_pass;
	bool				round_goes_on;
	bool				changed;
	bool				waiting;
	bool				froze;
};

static struct flight_store *store_of(struct session_source *s)
{
	return flight_recorder__get_store(s->source.flight);
}

static struct flight_job *job_of(struct session_source *s)
{
	return flight_recorder__get_job(s->source.flight);
}

/* While there is no recorder yet, waiting for the log does no harm. */
static void say(struct persistent_reader *r, const char *text)
{
	struct session_source *s = container_of(r, struct session_source, reader);

	if (s->source.flight)
		flight_job__say(job_of(s), "%s", text);
	else
		pr_err("%s", text);
}

static int put(struct persistent_reader *r, void *buf, size_t size)
{
	struct session_source *s = container_of(r, struct session_source, reader);
	const union perf_event *event = buf;

	if (event->header.type == PERF_RECORD_FINISHED_ROUND && s->round_goes_on)
		return 0;
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
			flight_store__missed(store_of(s), info->gap,
					     buf->kind == PERSISTENT_SIDEBAND);
		if (buf->kind == PERSISTENT_SIDEBAND && (info->len || info->gap))
			store_of(s)->sideband_news++;
		if (buf->kind == PERSISTENT_SAMPLES && info->way != PERF_SNAPSHOT_NONE)
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

/* The records get the memory that the copies of the buffers do not take. */
static void share_memory(struct session_source *s)
{
	s->fo->store = min(s->most, s->fo->memory - session_follow__memory(&s->reader));
}

static int check_memory(struct session_source *s)
{
	u64 memory = session_follow__memory(&s->reader);

	if (memory > s->fo->memory / 2) {
		pr_err("-M %lluK is not enough to read session '%s', whose buffers have %lluK: give it %lluM.\n",
		       (unsigned long long)s->fo->memory >> 10, s->name,
		       (unsigned long long)memory >> 11,
		       (unsigned long long)(2 * memory >> 20) + 1);
		return -EINVAL;
	}
	s->most = s->fo->memory - memory;
	s->follow = (struct session_follow) {
		.reader	= &s->reader,
		.memory	= s->fo->memory / 2,
		.fair	= s->fo->fair,
	};
	share_memory(s);
	return 0;
}

static int watch(struct session_source *s, int fd, u32 how)
{
	struct epoll_event ev = { .events = EPOLLIN | how, .data.fd = fd };

	return epoll_ctl(s->source.fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Each of the events that share a buffer: the one that the buffer belongs to may leave. */
static int watch_events(struct session_source *s, const struct persistent_session *ps)
{
	int err = 0;

	for (int i = 0; i < ps->nr_events && !err; i++) {
		if (!persistent_reader__wants(&s->reader, &ps->events[i]))
			continue;
		err = watch(s, ps->events[i].fd, 0);
		if (!err)
			s->nr_live++;
	}
	return err;
}

static void closing(struct persistent_reader *r, int fd)
{
	struct session_source *s = container_of(r, struct session_source, reader);

	/* A child that writes a dump may have it open. */
	if (!epoll_ctl(s->source.fd, EPOLL_CTL_DEL, fd, NULL))
		s->nr_live--;
}

/*
 * The session tells of a change once, or twice to EPOLLET: when perf record's poll() asks the
 * epoll, which asks the session, and in look_at_events().
 */
static void open_control(struct session_source *s)
{
	s->control = persistent__open_session(s->reader.ps->id);
	if (s->control >= 0 && watch(s, s->control, EPOLLET)) {
		close(s->control);
		s->control = -1;
	}
	/* Since its events were opened, maybe. */
	s->changed = s->control >= 0;
}

static void close_control(struct session_source *s)
{
	if (s->control < 0)
		return;
	epoll_ctl(s->source.fd, EPOLL_CTL_DEL, s->control, NULL);
	close(s->control);
	s->control = -1;
}

static int watch_session(struct session_source *s)
{
	int err;

	s->source.fd = epoll_create1(EPOLL_CLOEXEC);
	err = s->source.fd < 0 ? -errno : watch_events(s, s->reader.ps);
	if (err)
		pr_err("Cannot wait for the buffers of session '%s': %s\n", s->name,
		       strerror(-err));
	else
		open_control(s);
	return err;
}

static void look_at_event(struct session_source *s, const struct epoll_event *event)
{
	int fd = event->data.fd;

	if (fd == s->control)
		s->changed = true;
	if (!(event->events & (EPOLLHUP | EPOLLERR)))
		return;
	epoll_ctl(s->source.fd, EPOLL_CTL_DEL, fd, NULL);
	if (fd != s->control)
		s->nr_live--;
}

/* Call this before a pass, so that the pass still reads the last records of these buffers. */
static void look_at_events(struct session_source *s)
{
	struct epoll_event events[64];
	int nr = ARRAY_SIZE(events);

	/* An event is reported once, so the loop ends. */
	for (int left = s->nr_live + 2; left > 0 && nr == ARRAY_SIZE(events); left -= nr) {
		nr = epoll_wait(s->source.fd, events, ARRAY_SIZE(events), 0);
		for (int i = 0; i < nr; i++)
			look_at_event(s, &events[i]);
	}
}

/* Tell of the time after @first ns, and each @then ns. Return: 0 or a negative errno. */
static int set_timer(struct session_source *s, u64 first, u64 then)
{
	struct itimerspec its = { .it_value.tv_nsec = first, .it_interval.tv_nsec = then };
	int err;

	if (s->timer < 0) {
		s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		err = s->timer < 0 ? -errno : watch(s, s->timer, 0);
		if (err) {
			if (s->timer >= 0)
				close(s->timer);
			s->timer = -1;
			return err;
		}
	}
	return timerfd_settime(s->timer, 0, &its, NULL) ? -errno : 0;
}

static bool timer_has_expired(struct session_source *s)
{
	u64 ticks;

	return s->timer >= 0 && read(s->timer, &ticks, sizeof(ticks)) == sizeof(ticks);
}

static void end(struct session_source *s)
{
	s->source.ended = true;
	if (!quiet)
		flight_job__say(job_of(s),
				"[ perf record: persistent session '%s' has ended ]\n", s->name);
}

/* Events that join later are not noticed before the next pass. */
static bool has_changed(struct session_source *s)
{
	struct pollfd fd = { .fd = s->control, .events = POLLIN };

	return s->control >= 0 && poll(&fd, 1, 0) > 0 && fd.revents & POLLIN;
}

static void say_refused(struct session_source *s, const char *before)
{
	if (*s->follow.why && strcmp(s->follow.why, before))
		flight_job__say(job_of(s),
				"Not all of the events that session '%s' got are recorded: %s. Start the recorder again to include them.\n",
				s->name, s->follow.why);
}

/* After the copy of a pass. @look: the session has told of a change. */
static void extend(struct session_source *s, bool look)
{
	struct session_follow *f = &s->follow;
	char before[sizeof(f->why)];
	int nr, err;

	if (has_changed(s)) {
		/* The next pass finds events that have left the session meanwhile. */
		s->changed = true;
		look = true;
	}
	if (!look)
		return;
	memcpy(before, f->why, sizeof(before));
	nr = session_follow__extend(f);
	if (nr > 0) {
		err = watch_events(s, s->reader.more[s->reader.nr_more - 1]);
		if (err)
			scnprintf(f->why, sizeof(f->why), "%s", strerror(-err));
		share_memory(s);
	}
	if (nr > 0 && !quiet)
		flight_job__say(job_of(s),
				"[ perf record: persistent session '%s' got %d events more ]\n",
				s->name, nr);
	say_refused(s, before);
}

/* All buffers have hung up, and were read. */
static void wait_for_another(struct session_source *s, bool last)
{
	s->forget_due = 0;
	if (last || s->fo->dry_run || strstarts(s->p->read, "id=") ||
	    set_timer(s, REPLACE_INTERVAL, REPLACE_INTERVAL))
		return end(s);
	s->waiting = true;
	s->ticks = 0;
}

static void stop_waiting(struct session_source *s)
{
	set_timer(s, 0, 0);
	s->waiting = false;
}

/*
 * Until they are closed, the old events record. Their side-band has the tasks that have started
 * before the new session did; samples would be there twice.
 */
static int read_sideband(struct session_source *s)
{
	int err;

	if (persistent_reader__take(&s->reader, PERF_SNAPSHOT_INCREMENTAL))
		return 0;
	for (int i = 0; i < s->reader.nr_buffers; i++) {
		if (s->reader.buffers[i].kind != PERSISTENT_SIDEBAND)
			perf_snapshot__release(s->reader.buffers[i].snap);
	}
	s->round_goes_on = true;
	err = put_pass(s);
	s->round_goes_on = false;
	return err;
}

static int read_another(struct session_source *s)
{
	int err = read_sideband(s) ?: session_follow__replace(&s->follow);

	if (err)
		return err;
	stop_waiting(s);
	s->froze = false;
	close_control(s);
	err = watch_events(s, s->reader.ps);
	if (err)
		return err;
	open_control(s);
	share_memory(s);
	err = persistent_reader__take(&s->reader, 0);
	if (err && err != -EAGAIN)
		return err;
	if (!quiet)
		flight_job__say(job_of(s),
				"[ perf record: persistent session '%s' was replaced: the new one is recorded ]\n",
				s->name);
	extend(s, true);
	flight_store__missed(store_of(s), 0, true);
	return put_pass(s);
}

static int look_for_another(struct session_source *s, bool last)
{
	int err;

	/* The epoll would go on telling of what has ended. */
	look_at_events(s);
	if (timer_has_expired(s))
		s->ticks++;
	if (s->changed) {
		s->changed = false;
		extend(s, true);
	}
	/* It has got events again, without an end. */
	if (s->nr_live) {
		stop_waiting(s);
		s->changed = true;
		return put_pass(s);
	}
	err = session_follow__find(&s->follow);
	if (err == -EAGAIN && !last && s->ticks < REPLACE_TIME / REPLACE_INTERVAL)
		return 0;
	if (!err) {
		err = read_another(s);
		if (!err)
			return 0;
	}
	if (err != -EAGAIN)
		flight_job__say(job_of(s),
				"Another session took the place of '%s', and cannot be recorded: %s. Start the recorder again.\n",
				s->name, *s->follow.why ? s->follow.why : strerror(-err));
	s->waiting = true;
	end(s);
	return 0;
}

/* What is taken back may be the beginning of the end, see follow.c. Return: it is time to close. */
static bool marks_what_left(struct session_source *s, bool look)
{
	int nr;

	if (look) {
		s->forget_due = rdclock() + REPLACE_INTERVAL;
		set_timer(s, REPLACE_INTERVAL, 0);
	}
	timer_has_expired(s);
	if (!s->forget_due || rdclock() < s->forget_due)
		return false;
	s->forget_due = 0;
	nr = session_follow__mark(&s->follow);
	/* There may be memory, or a file, next time. */
	if (nr < 0 && nr != -ENOENT)
		s->forget_due = rdclock() + REPLACE_INTERVAL;
	return nr > 0;
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
			flight_job__say(job_of(s),
					"Cannot freeze the persistent session '%s': %m\n",
					s->name);
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
		scnprintf(s->name, sizeof(s->name), "%s", s->reader.ps->name);
		err = watch_session(s);
	}
	if (!err)
		err = check_freeze(s);
	if (!err)
		err = check_memory(s);
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

static int session_source__read(struct record_source *src, bool last)
{
	struct session_source *s = container_of(src, struct session_source, source);
	bool look, has_left;
	int err;

	if (!s->begun)
		return read_first(s);
	if (s->waiting)
		return src->ended ? 0 : look_for_another(s, last);

	look_at_events(s);
	look = s->changed;
	s->changed = false;
	has_left = marks_what_left(s, look);
	err = persistent_reader__take(&s->reader, PERF_SNAPSHOT_INCREMENTAL);
	/* The writer was too fast. The next pass reports the records that it overwrote. */
	if (err == -EAGAIN)
		err = 0;
	if (!err)
		extend(s, look);
	err = err ?: put_pass(s);
	if (!err && has_left) {
		session_follow__forget(&s->follow);
		share_memory(s);
		/* The next pass looks again at events that were refused. */
		s->changed = true;
	}
	if (!err && !s->nr_live && !src->ended)
		wait_for_another(s, last);
	return err;
}

static void session_source__delete(struct record_source *src)
{
	struct session_source *s = container_of(src, struct session_source, source);

	session_source__freeze(src, false);
	close_control(s);
	persistent_reader__exit(&s->reader);
	session_follow__exit(&s->follow);
	if (s->timer >= 0)
		close(s->timer);
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
	s->timer	= -1;
	s->reader.put	= put;
	s->reader.say	= say;
	s->reader.knows	= knows;
	s->reader.closing = closing;
	s->reader.opts	= opts;
	s->reader.data	= data;
	s->fo		= fo;
	s->p		= p;
	return &s->source;
}
