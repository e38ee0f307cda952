// SPDX-License-Identifier: GPL-2.0
/*
 * Follow a persistent session: get the new records of its buffers at each read
 *
 * The first read defines the start; perf record reads what is in the buffers before.
 * Each later read copies the new records of all buffers, one buffer right after the
 * other, and the side-band last, so that it covers the samples. The side-band is
 * processed first, because it names the samples. Within a buffer the records are in the
 * order of writing. If a reader is too slow, it loses the oldest records of a buffer,
 * and the gap is counted.
 *
 * A read only costs time of the reader, so it is done at intervals, without wakeups.
 */
#include "persistent.h"
#include "../base-api.h"
#include "../debug.h"
#include "../evlist.h"
#include "../util.h"

#include <linux/err.h>
#include <linux/string.h>
#include <perf/cpumap.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <stdlib.h>

struct live_buffer {
	struct perf_snapshot	*snap;
	bool			sideband;
};

struct persistent_live {
	struct persistent_session	*ps;
	struct evlist			*evlist;
	struct perf_snapshot_set	*set;
	struct live_buffer		*buffers;	/* samples before the others */
	int				nr_buffers;
	u64				gap;
};

static int live__map(struct persistent_live *live)
{
	struct persistent_session *ps = live->ps;
	int err;

	live->set = perf_snapshot_set__new();
	live->buffers = calloc(ps->nr_events, sizeof(*live->buffers));
	if (!live->set || !live->buffers)
		return -ENOMEM;

	for (int sideband = 0; sideband < 2; sideband++) {
		for (int i = 0; i < ps->nr_events; i++) {
			const struct persistent_event *event = &ps->events[i];
			struct live_buffer *buf;

			if (event->buffer_index != event->index ||
			    (persistent_event__kind(event) != PERSISTENT_SAMPLES) != sideband)
				continue;

			buf = &live->buffers[live->nr_buffers++];
			buf->sideband = sideband;
			buf->snap = perf_snapshot__new_fd(event->fd, event->cpu, event->data_size);
			err = buf->snap ? perf_snapshot_set__add(live->set, buf->snap) : -errno;
			if (err)
				return err;
		}
	}
	return 0;
}

static int live__take(struct persistent_live *live)
{
	int err = perf_snapshot_set__take(live->set, PERF_SNAPSHOT_INCREMENTAL |
						     PERF_SNAPSHOT_NO_PAUSE);

	/* 0 if the buffer could not be read. */
	for (int i = 0; i < live->nr_buffers; i++)
		live->gap += perf_snapshot__info(live->buffers[i].snap)->gap;
	return err;
}

/**
 * persistent_live__new - start to follow a session
 * @what: its name, or "id=ID"
 *
 * Return: the object, or an ERR_PTR() after an error message
 */
struct persistent_live *persistent_live__new(const char *what)
{
	struct persistent_live *live;
	char msg[STRERR_BUFSIZE];
	int err;

	err = persistent__check_support();
	if (err)
		return ERR_PTR(err);

	live = calloc(1, sizeof(*live));
	if (!live)
		return ERR_PTR(-ENOMEM);

	live->ps = persistent_session__open(what);
	if (IS_ERR(live->ps)) {
		err = PTR_ERR(live->ps);
		free(live);
		return ERR_PTR(err);
	}

	err = live__map(live);
	if (!err)
		err = live__take(live);
	if (!err) {
		live->evlist = persistent_session__new_evlist(live->ps);
		err = live->evlist ? 0 : -errno;
	}
	if (!err)
		return live;

	pr_err("Cannot follow the persistent session '%s': %s\n", live->ps->name,
	       str_error_r(-err, msg, sizeof(msg)));
	evlist__put(live->evlist);
	persistent_live__delete(live);
	return ERR_PTR(err);
}

/**
 * persistent_live__evlist - the events of the session
 * @live: the session
 *
 * Return: the evlist, to be freed by the caller with evlist__put() after the last read.
 */
struct evlist *persistent_live__evlist(struct persistent_live *live)
{
	return live->evlist;
}

static int buffer__deliver(struct live_buffer *buf, struct persistent_live *live,
			   persistent_live_event_t process, void *data)
{
	union perf_event *event = NULL;
	__u64 time;
	int err;

	while ((event = perf_snapshot__newer(buf->snap, event)) != NULL) {
		/* Events may have joined the buffer after it was opened. */
		if (!evlist__event2evsel(live->evlist, event))
			continue;
		if (!persistent_record_time(event, live->evlist, &time))
			continue;
		err = process(event, time, data);
		if (err)
			return err;
	}
	return 0;
}

/**
 * persistent_live__read - process the new records
 * @live: the session
 * @process: called for each record; a value other than 0 ends the read and is returned
 * @data: argument of @process
 *
 * Records are processed by buffer, oldest first.
 *
 * Return: 0, or a negative errno if no buffer can be read.
 */
int persistent_live__read(struct persistent_live *live, persistent_live_event_t process, void *data)
{
	int err = live__take(live);

	for (int sideband = 1; !err && sideband >= 0; sideband--) {
		for (int i = 0; !err && i < live->nr_buffers; i++) {
			struct live_buffer *buf = &live->buffers[i];

			if (buf->sideband == sideband)
				err = buffer__deliver(buf, live, process, data);
		}
	}
	return err;
}

/**
 * persistent_live__delete - stop to follow a session, which continues
 * @live: the session, or NULL
 *
 * Prints a warning if records were overwritten before they were read.
 */
void persistent_live__delete(struct persistent_live *live)
{
	if (!live)
		return;

	if (live->gap)
		pr_warning("%llu bytes of records were overwritten before they were read: the buffers of '%s' are too small for that.\n",
			   (unsigned long long)live->gap, live->ps->name);
	for (int i = 0; i < live->nr_buffers; i++)
		perf_snapshot__delete(live->buffers[i].snap);
	free(live->buffers);
	perf_snapshot_set__delete(live->set);
	persistent_session__close(live->ps);
	free(live);
}
