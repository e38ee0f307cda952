// SPDX-License-Identifier: GPL-2.0
/*
 * How far the buffers of a persistent session reach back
 *
 * perf ctl shows the time window of each session. The time of the newest record is at
 * the head of a buffer. The oldest record is at the other end, and records of a backward
 * buffer can only be walked from newer to older ones: where it begins is not known. To
 * walk a whole buffer means to copy it, and a machine may have 32 GiB of them.
 *
 * So only the oldest bytes are copied, and the first record in them is searched for:
 *
 *	    newer			     older
 *	... record | record | record | record | rec	 end of the buffer
 *	       [.......copied........................]
 *		   ^ first offset from which a chain of valid records leads to the end
 *
 * A record is valid if its header is, its id is that of an event of the session, and its
 * time is not later than that of the record before. A chain has at least MIN_CHAIN
 * records. In a buffer that has not wrapped it ends exactly at the end. Bytes in the
 * middle of a record look like that only if somebody wrote them there on purpose. Chains
 * that begin at different offsets meet at the next record that both contain; what counts
 * is where they end. If there is no such chain, more is copied, and finally all.
 *
 * The window is shown to the user. Nothing is decided by it.
 */
#include "persistent.h"
#include "../base-api.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../sample-layout.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes to copy at first and then; if the buffer is not larger than that, all. */
static const size_t parts[] = { 16 * 1024, 512 * 1024 };

/* Records of a chain. */
#define MIN_CHAIN	4

/* Neighbours may be swapped by an interrupt, in ns. */
#define TIME_SLACK	NSEC_PER_SEC

/* Read at any offset, which need not be that of a record. */
static bool is_header(const void *bytes, size_t left, struct perf_event_header *header)
{
	if (left < sizeof(*header))
		return false;
	memcpy(header, bytes, sizeof(*header));
	return header->type && header->type < PERF_RECORD_USER_TYPE_START &&
	       header->size >= sizeof(*header) + sizeof(u64) && !(header->size % sizeof(u64));
}

static bool has_id(const void *bytes, const struct perf_event_header *header,
		   const struct sample_layout *layout, struct evlist *evlist)
{
	int offset = sample_layout__offset(layout, SAMPLE_WORD__ID, header->type, header->size);
	u64 id;

	if (offset < 0)
		return false;
	memcpy(&id, bytes + offset, sizeof(id));
	return evlist__id2sid(evlist, id);
}

/*
 * All events of a session have their ids at the same place.
 *
 * Return: whether a chain of records leads from @bytes to the end.
 */
static bool walk_chain(const void *bytes, size_t left, bool wrapped,
		       const struct sample_layout *layout, struct evlist *evlist,
		       u64 newest, __u64 *oldest)
{
	struct perf_event_header header;
	int nr = 0;
	__u64 time;

	for (; left >= sizeof(header); nr++, left -= header.size, bytes += header.size) {
		if (!is_header(bytes, left, &header))
			return false;
		/* The next older record has been overwritten in part. */
		if (header.size > left)
			return wrapped && nr >= MIN_CHAIN;
		if (!has_id(bytes, &header, layout, evlist) ||
		    !persistent_record_time(bytes, evlist, &time) || time > newest + TIME_SLACK)
			return false;
		newest = time;
		*oldest = time;
	}
	return (wrapped || !left) && nr >= MIN_CHAIN;
}

/**
 * persistent_window__find_oldest - find the time of the oldest record in a piece of a buffer
 * @bytes: the oldest bytes of the buffer; they may begin in the middle of a record
 * @len: how many
 * @wrapped: they may also end in the middle of one
 * @evlist: the events of the session
 * @newest: the time of a record that is not older
 * @oldest: returns the time
 *
 * Return: false if the records cannot be told from other bytes.
 */
bool persistent_window__find_oldest(const void *bytes, size_t len, bool wrapped,
				    struct evlist *evlist, u64 newest, __u64 *oldest)
{
	struct sample_layout layout;

	sample_layout__init(&layout, &evlist__first(evlist)->core.attr, /*swapped=*/false);
	for (size_t pos = 0; pos < len; pos += sizeof(u64)) {
		if (walk_chain(bytes + pos, len - pos, wrapped, &layout, evlist, newest, oldest))
			return true;
	}
	return false;
}

static bool find_newest(struct perf_snapshot *snap, struct evlist *evlist, size_t size,
			__u64 *newest)
{
	__u64 oldest;

	return !perf_snapshot__take_newest(snap, size, PERF_SNAPSHOT_NO_PAUSE) &&
	       !perf_snapshot__window(snap, persistent_record_time, evlist, &oldest, newest);
}

static bool find_oldest(struct perf_snapshot *snap, struct evlist *evlist, size_t size,
			__u64 newest, __u64 *oldest)
{
	size_t len;
	const void *bytes = perf_snapshot__take_oldest(snap, size, PERF_SNAPSHOT_NO_PAUSE, &len);

	return bytes && persistent_window__find_oldest(bytes, len,
						       perf_snapshot__info(snap)->wrapped,
						       evlist, newest, oldest);
}

/* Without a copy of all of the buffer. */
static bool find_window(struct perf_snapshot *snap, struct evlist *evlist, size_t size,
			struct persistent_window *window)
{
	__u64 oldest, newest;

	if (!find_newest(snap, evlist, size, &newest) ||
	    !find_oldest(snap, evlist, size, newest, &oldest))
		return false;
	*window = (struct persistent_window) {
		.oldest	 = oldest,
		.newest	 = newest,
		.wrapped = perf_snapshot__info(snap)->wrapped,
	};
	return true;
}

static int copy_window(struct perf_snapshot *snap, struct evlist *evlist,
		       struct persistent_window *window)
{
	int err = perf_snapshot__take(snap, PERF_SNAPSHOT_NO_PAUSE);
	__u64 oldest, newest;

	if (err || perf_snapshot__window(snap, persistent_record_time, evlist, &oldest, &newest))
		return err;
	*window = (struct persistent_window) {
		.oldest	 = oldest,
		.newest	 = newest,
		.wrapped = perf_snapshot__info(snap)->wrapped,
	};
	return 0;
}

/**
 * persistent_event__window - get the time window of a buffer
 * @event: an event with a buffer of its own
 * @evlist: the events of its session
 * @window: the times; both 0 if there are none
 *
 * This has no effect on the writer or on other readers, and copies as little as it can.
 *
 * Return: 0 or a negative errno
 */
int persistent_event__window(const struct persistent_event *event, struct evlist *evlist,
			     struct persistent_window *window)
{
	struct perf_snapshot *snap;
	int err = 0;

	*window = (struct persistent_window){ };
	snap = perf_snapshot__new_fd(event->fd, event->cpu, event->data_size);
	if (!snap)
		return -errno;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (event->data_size > parts[i] && find_window(snap, evlist, parts[i], window))
			goto out_delete;
	}
	err = copy_window(snap, evlist, window);
out_delete:
	perf_snapshot__delete(snap);
	return err;
}

/* Adds the window of a buffer. @first: the earliest oldest one so far */
static void add_window(struct persistent_window *window, u64 *first,
		       const struct persistent_window *one)
{
	if (!one->newest)
		return;
	*first = min(*first, one->oldest);
	window->newest = max(window->newest, one->newest);
	window->wrapped |= one->wrapped;
	if (one->wrapped)
		window->oldest = max(window->oldest, one->oldest);
}

static void finish_window(struct persistent_window *window, u64 first)
{
	if (!window->wrapped && window->newest)
		window->oldest = first;
}

/**
 * persistent_session__window - get the time for which there are samples of all CPUs
 * @ps: the session
 * @evlist: its events
 * @window: the times; both 0 if there are no samples
 *
 * A buffer that has not wrapped reaches back to the start of the session, however late
 * its first record is. Any other buffer reaches back to its oldest record.
 *
 * Return: 0 or a negative errno
 */
int persistent_session__window(struct persistent_session *ps, struct evlist *evlist,
			       struct persistent_window *window)
{
	struct persistent_window one;
	u64 first = ULLONG_MAX;
	int err = 0;

	*window = (struct persistent_window){ };
	for (int i = 0; !err && i < ps->nr_events; i++) {
		const struct persistent_event *event = &ps->events[i];

		if (event->buffer_index != event->index ||
		    persistent_event__kind(event) != PERSISTENT_SAMPLES)
			continue;

		err = persistent_event__window(event, evlist, &one);
		if (!err)
			add_window(window, &first, &one);
	}
	finish_window(window, first);
	return err;
}

static int open_whole(u64 id, struct persistent_window *window)
{
	struct persistent_session *session = persistent_session__open_id(id);
	struct evlist *evlist;
	int err;

	if (IS_ERR(session))
		return PTR_ERR(session);

	evlist = persistent_session__new_evlist(session);
	err = evlist ? persistent_session__window(session, evlist, window) : -errno;
	evlist__put(evlist);
	persistent_session__close(session);
	return err;
}

static int window_of_buffers(u64 id, const struct perf_persistent_entry *entries, u32 nr,
			     struct persistent_window *window)
{
	struct evlist *evlist = NULL;
	struct persistent_window one;
	struct persistent_event event;
	u64 first = ULLONG_MAX;
	int err = 0;

	for (u32 i = 0; !err && i < nr; i++) {
		if (entries[i].buffer_index != entries[i].index)
			continue;

		err = persistent_event__open(id, entries[i].cpu, entries[i].index, &event);
		if (err)
			break;
		if (persistent_event__kind(&event) == PERSISTENT_SAMPLES) {
			if (!evlist)
				evlist = persistent_entries__new_evlist(entries, nr,
									event.attr.sample_id_all);
			err = evlist ? persistent_event__window(&event, evlist, &one) : -EINVAL;
			if (!err)
				add_window(window, &first, &one);
		}
		close(event.fd);
	}
	finish_window(window, first);
	evlist__put(evlist);
	return err;
}

/**
 * persistent__window - get the time for which a session has samples of all CPUs
 * @id: its id
 * @window: out: the times; both 0 if there are no samples
 *
 * It opens one event of each buffer; the kernel's list tells what it needs to know of the
 * others. On a kernel whose list has no sample types it opens all events.
 *
 * Return: 0 or a negative errno
 */
int persistent__window(u64 id, struct persistent_window *window)
{
	struct perf_persistent_entry *entries;
	int nr = persistent__list_events(id, &entries), err;

	*window = (struct persistent_window){ };
	if (nr == -ENOENT || (nr > 0 && !entries[0].sample_type))
		err = open_whole(id, window);
	else
		err = nr < 0 ? nr : window_of_buffers(id, entries, nr, window);
	if (err)
		*window = (struct persistent_window){ };
	free(entries);
	return err;
}
