// SPDX-License-Identifier: GPL-2.0
/*
 * The buffers of a persistent session that is read: map them, copy them, and let go of them
 *
 * Samples come before their user halves and the side-band, so that these cover all samples.
 * The session may get events, and lose some, while it is read. Their buffers are added to
 * those that are mapped, and removed. A caller must not keep a pointer to a buffer across
 * these calls. What is added is copied behind all others, so that the side-band of the next
 * pass covers it.
 */
#include "reader.h"
#include "persistent.h"
#include "../debug.h"
#include "../record.h"
#include "../target.h"
#include "../util.h"

#include <internal/lib.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/**
 * persistent_reader__wants - is the buffer of an event to be read?
 * @r: the reader
 * @event: the event
 */
bool persistent_reader__wants(struct persistent_reader *r, const struct persistent_event *event)
{
	struct perf_cpu cpu = { .cpu = event->cpu };

	/* Tasks migrate: other CPUs have the names and user halves of samples of these. */
	return !r->cpus || persistent_event__kind(event) != PERSISTENT_SAMPLES ||
	       perf_cpu_map__has(r->cpus, cpu);
}

/* The caller may have a way to print it that does not wait for the log. */
static void __printf(2, 3) reader__say(struct persistent_reader *r, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vscnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->say)
		r->say(r, text);
	else
		pr_err("%s", text);
}

static void say_error(struct persistent_reader *r, const struct persistent_event *event,
		      const char *what, int err)
{
	char msg[STRERR_BUFSIZE];

	reader__say(r, "Cannot %s the buffer of event %u on CPU %d of session '%s': %s\n", what,
		    event->index, event->cpu, r->ps->name, str_error_r(-err, msg, sizeof(msg)));
}

static int buffer__map(struct persistent_buffer *buf, const struct persistent_event *event)
{
	*buf = (struct persistent_buffer) {
		.event	  = event,
		.kind	  = persistent_event__kind(event),
		.len	  = event->data_size + page_size,
		.snap	  = perf_snapshot__new_fd(event->fd, event->cpu, event->data_size),
	};
	return buf->snap ? 0 : -errno;
}

/* In the order of @buffers */
static struct perf_snapshot_set *make_set(const struct persistent_buffer *buffers, int nr)
{
	struct perf_snapshot_set *set = perf_snapshot_set__new();

	for (int i = 0; set && i < nr; i++) {
		if (perf_snapshot_set__add(set, buffers[i].snap)) {
			perf_snapshot_set__delete(set);
			set = NULL;
		}
	}
	return set;
}

/* Map the buffers of the events, beside those that are mapped already. */
static int reader__map_session(struct persistent_reader *r, const struct persistent_session *ps)
{
	struct perf_snapshot_set *set = NULL;
	struct persistent_buffer *buffers;
	int err = 0, nr = 0;

	buffers = calloc(r->nr_buffers + ps->nr_events, sizeof(*buffers));
	if (!buffers)
		return -ENOMEM;

	for (int kind = PERSISTENT_SAMPLES; kind <= PERSISTENT_SIDEBAND; kind++) {
		for (int i = 0; i < r->nr_buffers; i++) {
			if ((int)r->buffers[i].kind == kind)
				buffers[nr++] = r->buffers[i];
		}
		for (int i = 0; i < ps->nr_events && !err; i++) {
			const struct persistent_event *event = &ps->events[i];

			if (event->buffer_index != event->index ||
			    (int)persistent_event__kind(event) != kind ||
			    !persistent_reader__wants(r, event))
				continue;

			err = buffer__map(&buffers[nr], event);
			if (err)
				say_error(r, event, "map", err);
			else
				nr++;
		}
	}

	if (!err)
		set = make_set(buffers, nr);
	if (set) {
		free(r->buffers);
		perf_snapshot_set__delete(r->set);
		r->buffers = buffers;
		r->nr_buffers = nr;
		r->set = set;
		return 0;
	}
	for (int i = 0; i < nr; i++) {
		if (persistent_buffer__is_of(&buffers[i], ps))
			perf_snapshot__delete(buffers[i].snap);
	}
	free(buffers);
	return err ?: -ENOMEM;
}

/**
 * persistent_reader__map - map the buffers of the session
 * @r: the reader, with its options and the session
 *
 * Return: 0, or a negative errno when the user was told, but for -ENOMEM.
 */
int persistent_reader__map(struct persistent_reader *r)
{
	int err = reader__map_session(r, r->ps);

	if (err)
		return err;
	/* They come first. */
	if (!r->nr_buffers || r->buffers[0].kind != PERSISTENT_SAMPLES) {
		reader__say(r, "Session '%s' has no events%s%s: see perf ctl -i %s.\n",
			    r->ps->name, r->cpus ? " on CPUs " : "",
			    r->cpus ? r->opts->target.cpu_list : "", r->ps->name);
		return -ENOENT;
	}
	return 0;
}

/**
 * persistent_reader__add - read events as well that the session got meanwhile
 * @r: the reader, after a persistent_reader__take()
 * @ps: these events, which become the reader's
 *
 * All that their buffers hold is copied, for the same persistent_reader__put_pass().
 *
 * Return: 0, or a negative errno when the user was told, but for -ENOMEM. Then nothing has
 * changed, and @ps is the caller's.
 */
int persistent_reader__add(struct persistent_reader *r, struct persistent_session *ps)
{
	struct persistent_session **more;
	int err;

	more = reallocarray(r->more, r->nr_more + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->more = more;
	err = reader__map_session(r, ps);
	if (err)
		return err;

	more[r->nr_more++] = ps;
	for (int i = 0; i < r->nr_buffers; i++) {
		struct persistent_buffer *buf = &r->buffers[i];

		if (!persistent_buffer__is_of(buf, ps))
			continue;
		buf->err = perf_snapshot__take(buf->snap, PERF_SNAPSHOT_NO_PAUSE);
		if (buf->err)
			say_error(r, buf->event, "read", buf->err);
	}
	return 0;
}

static void reader__close(struct persistent_reader *r, struct persistent_event *event)
{
	if (event->fd < 0)
		return;
	if (r->closing)
		r->closing(r, event->fd);
	close(event->fd);
	event->fd = -1;
}

static void close_left(struct persistent_reader *r, struct persistent_session *ps)
{
	for (int i = 0; i < ps->nr_events; i++) {
		if (ps->events[i].left)
			reader__close(r, &ps->events[i]);
	}
}

static bool has_open(const struct persistent_session *ps)
{
	for (int i = 0; i < ps->nr_events; i++) {
		if (ps->events[i].fd >= 0)
			return true;
	}
	return false;
}

/**
 * persistent_reader__forget - unmap the buffers of events that have left, and close these
 * @r: the reader, after a persistent_reader__put_pass()
 *
 * An event that was taken back from its session, and its buffer, stays until the last of its
 * files is closed. Without memory nothing is forgotten.
 */
void persistent_reader__forget(struct persistent_reader *r)
{
	struct persistent_buffer *buffers = calloc(r->nr_buffers + 1, sizeof(*buffers));
	struct perf_snapshot_set *set;
	int nr = 0;

	if (!buffers)
		return;
	for (int i = 0; i < r->nr_buffers; i++) {
		if (!r->buffers[i].event->left)
			buffers[nr++] = r->buffers[i];
	}
	set = make_set(buffers, nr);
	if (!set) {
		free(buffers);
		return;
	}
	for (int i = 0; i < r->nr_buffers; i++) {
		if (r->buffers[i].event->left)
			perf_snapshot__delete(r->buffers[i].snap);
	}
	free(r->buffers);
	perf_snapshot_set__delete(r->set);
	r->buffers = buffers;
	r->nr_buffers = nr;
	r->set = set;

	close_left(r, r->ps);
	nr = 0;
	for (int i = 0; i < r->nr_more; i++) {
		close_left(r, r->more[i]);
		if (has_open(r->more[i]))
			r->more[nr++] = r->more[i];
		else
			persistent_session__close(r->more[i]);
	}
	r->nr_more = nr;
}

static void reader__close_session(struct persistent_reader *r, struct persistent_session *ps)
{
	for (int i = 0; ps && i < ps->nr_events; i++)
		reader__close(r, &ps->events[i]);
	persistent_session__close(ps);
}

/**
 * persistent_reader__forget_session - unmap and close all of the session, which has ended
 * @r: the reader; the caller may open another session with it
 */
void persistent_reader__forget_session(struct persistent_reader *r)
{
	for (int i = 0; i < r->nr_buffers; i++)
		perf_snapshot__delete(r->buffers[i].snap);
	zfree(&r->buffers);
	r->nr_buffers = 0;
	perf_snapshot_set__delete(r->set);
	r->set = NULL;
	for (int i = 0; i < r->nr_more; i++)
		reader__close_session(r, r->more[i]);
	zfree(&r->more);
	r->nr_more = 0;
	reader__close_session(r, r->ps);
	r->ps = NULL;
}

/**
 * persistent_reader__take - copy all buffers
 * @r: the reader
 * @flags: of perf_snapshot__take()
 *
 * If a buffer cannot be read, the others are read all the same. An error is printed once, not
 * in each pass.
 *
 * Return: 0, or a negative errno if none could be read.
 */
int persistent_reader__take(struct persistent_reader *r, unsigned int flags)
{
	int last_err = 0, nr_read = 0;

	perf_snapshot_set__take(r->set, flags | PERF_SNAPSHOT_NO_PAUSE);

	for (int i = 0; i < r->nr_buffers; i++) {
		struct persistent_buffer *buf = &r->buffers[i];
		int before = buf->err;

		buf->err = perf_snapshot__info(buf->snap)->err;
		if (buf->err)
			last_err = buf->err;
		else if (buf->kind == PERSISTENT_SAMPLES)
			nr_read++;
		if (buf->err && buf->err != before)
			say_error(r, buf->event, "read", buf->err);
	}
	if (last_err && nr_read)
		r->incomplete = true;
	return nr_read ? 0 : last_err;
}
