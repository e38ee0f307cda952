// SPDX-License-Identifier: GPL-2.0
/*
 * A persistent session that changes while a flight recorder reads it
 *
 *	perf record -P NAME --add, perf ctl --join-cpu	it gets events
 *	PERF_EVENT_IOC_CLAIM of an event		it loses one
 *	perf record -P NAME --replace			it ends, and one of that name begins
 *
 * Each of these changes wakes those that poll the session. The order in a pass is
 *
 *	session_follow__mark()		what has left the session is found
 *	copy the buffers
 *	session_follow__extend()	new events are opened, their buffers are copied
 *	store the records
 *	session_follow__forget()	what had left the session is closed
 *
 * An event that was taken back goes on recording until the last reader closes it. What left
 * the session after it was marked is copied once more. --replace takes back one event after
 * the other. The old ones are to stay open until the new session is there, for the side-band
 * of tasks that start in between. So the caller waits a while before it marks.
 *
 * An event joins the session before it is enabled. So when the buffers hold a record of an
 * event, the list of events has this event, and its record is not taken for an unknown one.
 * All records of a new buffer are newer than those that passes before this one have copied.
 *
 * The ids of events are unique as long as the kernel runs. An event that has the same
 * perf_event_attr as one from before becomes the same event in a dump, which then has one more
 * id: of another CPU, or of the session that took the place of the first. Other events
 * come behind those that were there. No event and no id is removed from the evlist, as the
 * recorder still has records with them.
 *
 * Some things are fixed when recording begins, and an event that differs cannot be read: the
 * clock, and the fields that all records have. The memory must suffice as well.
 *
 * Lifetime: the reader has a file of each event, and maps each buffer, until it forgets them
 * or the recorder ends. These keep an event, and the memory of its buffer, after it was taken
 * back. The file of the session keeps neither. A child that writes a dump has copies of the
 * files until it closes them (child.c), so a file leaves the epoll before it is closed. If
 * fork() fails, nothing changes here. A CPU that goes offline keeps its events, and the kernel
 * installs them again; a CPU that is new has none until somebody lets the session join it.
 */
#include "follow.h"
#include "event-id.h"
#include "../store/fair-store.h"
#include "../../base-api.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../header.h"
#include "../../persistent/persistent.h"
#include "../../persistent/reader.h"
#include "../../record.h"
#include "../../session.h"
#include "../../symbol.h"

#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <perf/cpumap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int cannot(struct session_follow *f, int err, const char *why)
{
	scnprintf(f->why, sizeof(f->why), "%s", why);
	return err;
}

static int cannot_errno(struct session_follow *f, int err)
{
	return cannot(f, err, strerror(-err));
}

/**
 * session_follow__memory - the memory that is needed to read a session
 * @r: the reader
 *
 * Return: bytes of the mapped buffers, and as many for the copies of new records.
 */
u64 session_follow__memory(const struct persistent_reader *r)
{
	u64 total = 0;

	for (int i = 0; i < r->nr_buffers; i++)
		total += r->buffers[i].len;
	return 2 * total;
}

/* Those that are not mapped yet, and will be */
static u64 memory_for(struct persistent_reader *r, const struct persistent_session *ps)
{
	u64 total = 0;

	for (int i = 0; i < ps->nr_events; i++) {
		const struct persistent_event *event = &ps->events[i];

		if (event->buffer_index == event->index && persistent_reader__wants(r, event))
			total += event->data_size + page_size;
	}
	return 2 * total;
}

/* Events */

static bool has_clock_of(struct evlist *evlist, struct evlist *news)
{
	const struct perf_event_attr *ours = &evlist__first(evlist)->core.attr;
	struct evsel *evsel;

	evlist__for_each_entry(news, evsel) {
		if (evsel->core.attr.use_clockid != ours->use_clockid ||
		    evsel->core.attr.clockid != ours->clockid)
			return false;
	}
	return true;
}

static bool has_fields_of(struct evlist *evlist, struct evlist *news)
{
	return evlist__id_pos(news) == evlist__id_pos(evlist) &&
	       evlist__is_pos(news) == evlist__is_pos(evlist) &&
	       evlist__sample_id_all(news) == evlist__sample_id_all(evlist) &&
	       evlist__id_hdr_size(news) == evlist__id_hdr_size(evlist);
}

static bool has_sample_types_of(struct evlist *evlist, struct evlist *news)
{
	struct evsel *evsel;

	evlist__for_each_entry(news, evsel) {
		if (evsel->core.attr.sample_type != evlist__first(evlist)->core.attr.sample_type)
			return false;
	}
	return true;
}

static int check(struct session_follow *f, const struct persistent_session *ps,
		 struct evlist *news, u64 mapped)
{
	struct persistent_reader *r = f->reader;
	u64 more = memory_for(r, ps), memory = mapped + more;
	char text[160];

	if (!has_clock_of(r->evlist, news))
		return cannot(f, -EINVAL, "their records have times of another clock");
	if (!has_fields_of(r->evlist, news))
		return cannot(f, -EINVAL, "their records have other fields");
	if (f->fair && fair_store__check(news)) {
		scnprintf(text, sizeof(text), "--fair needs the cgroup of each sample: %s",
			  fair_store__check(news));
		return cannot(f, -EINVAL, text);
	}
	if (f->fair && !has_sample_types_of(r->evlist, news))
		return cannot(f, -EINVAL, "their records have other fields, and --fair sorts them");
	if (memory > f->memory) {
		/* The others that joined with it are to have room as well. */
		memory += f->refused_memory;
		scnprintf(text, sizeof(text), "the memory is too small: give it -M %lluM",
			  (unsigned long long)(2 * memory >> 20) + 1);
		f->refused_memory += more;
		return cannot(f, -ENOSPC, text);
	}
	return 0;
}

/* Its own ids, of an xyarray, are to be replaced. */
static void move_event(struct evlist *evlist, struct evlist *news, struct evsel *evsel)
{
	perf_evsel__free_id(&evsel->core);
	evlist__remove(news, evsel);
	evlist__add(evlist, evsel);
}

static int add_cpus(struct evlist *evlist, struct evlist *news)
{
	struct perf_cpu_map *cpus = evlist__core(news)->user_requested_cpus;
	struct perf_cpu_map *ours = evlist__core(evlist)->user_requested_cpus;
	int err = 0;

	/* -1 stands for events of tasks, where there are no others. */
	if (perf_cpu_map__has_any_cpu(cpus))
		return 0;
	cpus = perf_cpu_map__get(cpus);
	if (!perf_cpu_map__has_any_cpu(ours))
		err = cpu_map__merge(&cpus, ours);
	if (!err)
		evlist__set_maps_of_session(evlist, cpus, evlist__core(evlist)->threads);
	perf_cpu_map__put(cpus);
	return err;
}

/* What a dump is to have for them */
static void set_features(struct persistent_reader *r)
{
	struct perf_header *header = &r->session->header;
	struct evsel *evsel;

	persistent_reader__set_options(r);
	if (r->opts->branch_stack)
		perf_header__set_feat(header, HEADER_BRANCH_STACK);
	evlist__for_each_entry(r->evlist, evsel) {
		if (evsel->core.attr.type == PERF_TYPE_TRACEPOINT)
			perf_header__set_feat(header, HEADER_TRACING_DATA);
	}
}

/* Records with their ids are known from here on. */
static int take_events(struct persistent_reader *r, struct evlist *news,
		       const struct persistent_session *ps)
{
	struct evsel *evsel, *tmp;
	int err = add_cpus(r->evlist, news);

	evlist__for_each_entry_safe(news, tmp, evsel) {
		if (!evlist__find_attr(r->evlist, &evsel->core.attr))
			move_event(r->evlist, news, evsel);
	}
	/* Those that came have the CPUs of the others, too. */
	evlist__set_maps_of_session(r->evlist, evlist__core(r->evlist)->user_requested_cpus,
				    evlist__core(r->evlist)->threads);
	for (int i = 0; i < ps->nr_events && !err; i++) {
		const struct persistent_event *event = &ps->events[i];

		evsel = evlist__find_attr(r->evlist, &event->attr);
		err = evsel__append_id(r->evlist, evsel, event->id,
				       (struct perf_cpu){ .cpu = event->cpu });
	}
	set_features(r);
	return err;
}

/* With CPUs, it would be closed on each of them: perf would move there. */
static void delete_news(struct evlist *news)
{
	if (!news)
		return;
	perf_cpu_map__put(evlist__core(news)->user_requested_cpus);
	evlist__core(news)->user_requested_cpus = NULL;
	evlist__put(news);
}

/* Events that joined */

static bool is_refused(const struct session_follow *f, u64 id)
{
	for (int i = 0; i < f->nr_refused; i++) {
		if (f->refused[i] == id)
			return true;
	}
	return false;
}

/* If there is no memory for it, it is tried again. */
static void refuse(struct session_follow *f, const struct perf_persistent_entry *entries, int nr)
{
	u64 *ids = reallocarray(f->refused, f->nr_refused + nr, sizeof(*ids));

	if (!ids)
		return;
	f->refused = ids;
	for (int i = 0; i < nr; i++) {
		if (!evlist__id2sid(f->reader->evlist, entries[i].event_id))
			ids[f->nr_refused++] = entries[i].event_id;
	}
}

static int list_unknown(struct session_follow *f, struct perf_persistent_entry **entries)
{
	int nr = persistent__list_events(f->reader->ps->id, entries), unknown = 0;

	for (int i = 0; i < nr; i++) {
		u64 id = (*entries)[i].event_id;

		if (!evlist__id2sid(f->reader->evlist, id) && !is_refused(f, id))
			(*entries)[unknown++] = (*entries)[i];
	}
	return nr < 0 ? nr : unknown;
}

static int extend(struct session_follow *f, struct persistent_session *ps)
{
	struct persistent_reader *r = f->reader;
	struct evlist *news = persistent_session__new_evlist(ps);
	int err;

	if (!news)
		return cannot(f, -errno, errno == EINVAL ? "their records cannot be told apart" :
							   strerror(errno));
	err = check(f, ps, news, session_follow__memory(r));
	if (!err) {
		err = persistent_reader__add(r, ps);
		if (err)
			cannot_errno(f, err);
	}
	if (!err) {
		/* From here on, @ps is the reader's. */
		if (take_events(r, news, ps))
			cannot_errno(f, -ENOMEM);
	}
	delete_news(news);
	return err;
}

/**
 * session_follow__extend - read the events that the session got since it was opened
 * @f: the session, whose buffers were copied, and whose records are to be stored next
 *
 * An event that cannot be opened, for lack of permission, is left out. @f->why tells why, and
 * is empty if all events are read.
 *
 * Return: the number of events that are read from here on, or a negative errno if none can be
 * read.
 */
int session_follow__extend(struct session_follow *f)
{
	struct perf_persistent_entry *entries;
	struct persistent_session *ps;
	int nr = list_unknown(f, &entries), got = 0, err;

	f->why[0] = '\0';
	if (nr <= 0) {
		free(entries);
		/* -ENOENT: it has ended. */
		return !nr || nr == -ENOENT ? 0 : cannot_errno(f, nr);
	}
	ps = persistent_session__open_events(f->reader->ps, entries, nr, &err);
	if (ps && err)
		cannot_errno(f, err);
	if (ps && ps->nr_events)
		err = extend(f, ps);
	if (ps && ps->nr_events && !err)
		got = ps->nr_events;
	else
		persistent_session__close(ps);
	if (ps && *f->why)
		refuse(f, entries, nr);
	free(entries);
	if (!ps)
		return cannot_errno(f, -ENOMEM);
	return got ?: err;
}

/* Events that left it */

/* Events and entries are sorted by CPU and then by index. */
static int compare(const struct persistent_event *event, int cpu, u32 index)
{
	if (event->cpu != cpu)
		return event->cpu < cpu ? -1 : 1;
	return event->index < index ? -1 : event->index > index;
}

static int compare_entry(const void *key, const void *member)
{
	const struct perf_persistent_entry *entry = member;

	return compare(key, entry->cpu, entry->index);
}

static int compare_event(const void *key, const void *member)
{
	const struct persistent_event *event = member;

	return compare(key, event->cpu, event->index);
}

static struct persistent_session *part(struct persistent_reader *r, int i)
{
	return i < r->nr_more ? r->more[i] : r->ps;
}

/* The event whose buffer this one writes to. They may have joined at different times. */
static struct persistent_event *find_owner(struct persistent_reader *r,
					   const struct persistent_event *event)
{
	struct persistent_event key = { .cpu = event->cpu, .index = event->buffer_index };
	struct persistent_event *owner = NULL;

	for (int i = 0; i <= r->nr_more && !owner; i++)
		owner = bsearch(&key, part(r, i)->events, part(r, i)->nr_events, sizeof(key),
				compare_event);
	return owner;
}

static void keep_listed(struct persistent_reader *r, struct persistent_session *ps,
			const struct perf_persistent_entry *entries, int nr)
{
	for (int i = 0; i < ps->nr_events; i++) {
		struct persistent_event *event = &ps->events[i], *owner;

		if (!bsearch(event, entries, nr, sizeof(*entries), compare_entry))
			continue;
		event->left = false;
		owner = find_owner(r, event);
		if (owner)
			owner->left = false;
	}
}

/**
 * session_follow__mark - find the events that the session does not have any more
 * @f: the session, whose buffers are to be copied next
 *
 * Their memory stays its owner's until the last reader closes them. An event whose buffer
 * another one still writes to is kept.
 *
 * Return: the number of those for session_follow__forget(), after the pass, or a negative errno;
 * -ENOENT if the session has ended.
 */
int session_follow__mark(struct session_follow *f)
{
	struct persistent_reader *r = f->reader;
	struct perf_persistent_entry *entries;
	int nr = persistent__list_events(r->ps->id, &entries), nr_left = 0;

	if (nr <= 0) {
		free(entries);
		return nr ?: -ENOENT;
	}
	for (int i = 0; i <= r->nr_more; i++) {
		for (int k = 0; k < part(r, i)->nr_events; k++)
			part(r, i)->events[k].left = true;
	}
	for (int i = 0; i <= r->nr_more; i++)
		keep_listed(r, part(r, i), entries, nr);
	for (int i = 0; i <= r->nr_more; i++) {
		for (int k = 0; k < part(r, i)->nr_events; k++)
			nr_left += part(r, i)->events[k].left && part(r, i)->events[k].fd >= 0;
	}
	free(entries);
	return nr_left;
}

/**
 * session_follow__forget - close what has left the session
 * @f: the session, whose records were stored
 *
 * There may be room for what was refused.
 */
void session_follow__forget(struct session_follow *f)
{
	persistent_reader__forget(f->reader);
	f->nr_refused = 0;
	f->refused_memory = 0;
}

/* Another session */

static int check_found(struct session_follow *f)
{
	if (!f->news)
		return cannot(f, -EINVAL, "their records cannot be told apart");
	if (f->found->owner != f->reader->ps->owner)
		return cannot(f, -EPERM, "it belongs to another user");
	return check(f, f->found, f->news, 0);
}

static void drop_found(struct session_follow *f)
{
	persistent_session__close(f->found);
	delete_news(f->news);
	f->found = NULL;
	f->news = NULL;
}

/**
 * session_follow__find - find a session that takes the place of the one that has ended
 * @f: the session
 *
 * It has the same name and the same owner.
 *
 * Return: 0, for session_follow__replace(); -EAGAIN if there is none so far, or it is just being
 * made; or another negative errno, and @f->why, if it cannot be read.
 */
int session_follow__find(struct session_follow *f)
{
	const struct persistent_session *old = f->reader->ps;
	struct persistent_session *ps;
	int err;
	u64 id;

	if (!persistent__find_id(old->name, &id) || id == old->id)
		return -EAGAIN;
	f->why[0] = '\0';
	f->refused_memory = 0;
	ps = persistent_session__open_id(id);
	err = IS_ERR(ps) ? PTR_ERR(ps) : 0;
	if (err == -EBUSY || err == -ENOENT)
		return -EAGAIN;
	if (err)
		return cannot_errno(f, err);
	/* NAME may have been found as that of a user, uUID.NAME. */
	if (strcmp(ps->name, old->name)) {
		persistent_session__close(ps);
		return -EAGAIN;
	}
	f->found = ps;
	f->news = persistent_session__new_evlist(ps);
	err = check_found(f);
	if (err)
		drop_found(f);
	return err;
}

/**
 * session_follow__replace - read the session that was found
 * @f: the session, whose last records were stored
 *
 * Return: 0, or a negative errno, and @f->why. Then the reader has no session any more.
 */
int session_follow__replace(struct session_follow *f)
{
	struct persistent_reader *r = f->reader;
	int err;

	persistent_reader__forget_session(r);
	f->nr_refused = 0;
	r->ps = f->found;
	f->found = NULL;
	err = persistent_reader__map(r);
	err = err ?: take_events(r, f->news, r->ps);
	drop_found(f);
	return err ? cannot_errno(f, err) : 0;
}

void session_follow__exit(struct session_follow *f)
{
	free(f->refused);
}
