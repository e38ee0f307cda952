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
 *	copy the buffers
 *	session_follow__extend()	new events are opened, their buffers are copied
 *	store the records
 *	session_follow__shrink()	what has left the session is closed
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
 */
#include "follow.h"
#include "event-id.h"
#include "../store/fair-store.h"
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

static bool has_clock_of(const struct evlist *evlist, const struct evlist *news)
{
	const struct perf_event_attr *ours = &evlist__first((struct evlist *)evlist)->core.attr;
	const struct evsel *evsel;

	evlist__for_each_entry(news, evsel) {
		if (evsel->core.attr.use_clockid != ours->use_clockid ||
		    evsel->core.attr.clockid != ours->clockid)
			return false;
	}
	return true;
}

static bool has_fields_of(struct evlist *evlist, struct evlist *news)
{
	return news->id_pos == evlist->id_pos && news->is_pos == evlist->is_pos &&
	       evlist__sample_id_all(news) == evlist__sample_id_all(evlist) &&
	       evlist__id_hdr_size(news) == evlist__id_hdr_size(evlist);
}

static int check(struct session_follow *f, const struct persistent_session *ps,
		 struct evlist *news, u64 mapped)
{
	struct persistent_reader *r = f->reader;
	u64 memory = mapped + memory_for(r, ps);
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
	if (memory > f->memory) {
		scnprintf(text, sizeof(text), "the memory is too small: give it -M %lluM",
			  (unsigned long long)(2 * memory >> 20) + 1);
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

static struct evsel *find_attr(struct evlist *evlist, const struct perf_event_attr *attr)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		if (!memcmp(&evsel->core.attr, attr, sizeof(*attr)))
			return evsel;
	}
	return NULL;
}

static int add_cpus(struct evlist *evlist, struct evlist *news)
{
	struct perf_cpu_map *cpus = news->core.user_requested_cpus;
	struct perf_cpu_map *ours = evlist->core.user_requested_cpus;

	/* -1 stands for events of tasks, where there are no others. */
	if (perf_cpu_map__has_any_cpu(cpus))
		return 0;
	cpus = perf_cpu_map__get(cpus);
	if (!perf_cpu_map__has_any_cpu(ours))
		cpus = perf_cpu_map__merge(cpus, ours);
	if (!cpus)
		return -ENOMEM;
	perf_evlist__set_maps(&evlist->core, cpus, evlist->core.threads);
	perf_cpu_map__put(cpus);
	return 0;
}

/* What a dump is to have for them */
static void set_features(struct persistent_reader *r)
{
	struct perf_header *header = &r->session->header;
	struct evsel *evsel;

	evlist__for_each_entry(r->evlist, evsel) {
		symbol_conf.buildid_mmap2 |= evsel->core.attr.build_id;
		if (evsel->core.attr.type == PERF_TYPE_TRACEPOINT)
			perf_header__set_feat(header, HEADER_TRACING_DATA);
		if (evsel__has_br_stack(evsel)) {
			r->opts->branch_stack |= evsel->core.attr.branch_sample_type;
			perf_header__set_feat(header, HEADER_BRANCH_STACK);
		}
	}
}

/* Records with their ids are known from here on. */
static int take_events(struct persistent_reader *r, struct evlist *news,
		       const struct persistent_session *ps)
{
	struct evsel *evsel, *tmp;
	int err = add_cpus(r->evlist, news);

	evlist__for_each_entry_safe(news, tmp, evsel) {
		if (!find_attr(r->evlist, &evsel->core.attr))
			move_event(r->evlist, news, evsel);
	}
	for (int i = 0; i < ps->nr_events && !err; i++) {
		const struct persistent_event *event = &ps->events[i];

		err = evsel__append_id(r->evlist, find_attr(r->evlist, &event->attr), event->id,
				       (struct perf_cpu){ .cpu = event->cpu });
	}
	set_features(r);
	return err;
}

/* An event that joined */

static int list_unknown(struct persistent_reader *r, struct perf_persistent_entry **entries)
{
	int nr = persistent__list_events(r->ps->id, entries), unknown = 0;

	for (int i = 0; i < nr; i++) {
		if (!evlist__id2sid(r->evlist, (*entries)[i].event_id))
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
	evlist__delete(news);
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
	int nr = list_unknown(f->reader, &entries), err;

	f->why[0] = '\0';
	if (nr <= 0) {
		free(entries);
		/* -ENOENT: it has ended. */
		return !nr || nr == -ENOENT ? 0 : cannot_errno(f, nr);
	}
	ps = persistent_session__open_events(f->reader->ps, entries, nr, &err);
	free(entries);
	if (!ps)
		return cannot_errno(f, -ENOMEM);
	if (err)
		cannot_errno(f, err);
	nr = ps->nr_events;
	if (nr)
		err = extend(f, ps);
	if (nr && !err)
		return nr;
	persistent_session__close(ps);
	return err;
}

/* Events that left it */

struct listed {
	struct perf_persistent_entry	*entries;
	int				nr;
};

static int compare_cpu(const void *key, const void *member)
{
	const struct persistent_event *event = key;
	const struct perf_persistent_entry *entry = member;

	return event->cpu - entry->cpu;
}

static bool is_in_use(const struct persistent_event *event, void *data)
{
	const struct listed *l = data;
	const struct perf_persistent_entry *found, *end = l->entries + l->nr;

	found = bsearch(event, l->entries, l->nr, sizeof(*l->entries), compare_cpu);
	if (!found)
		return false;
	/* It is one of those of this CPU. */
	while (found > l->entries && found[-1].cpu == event->cpu)
		found--;
	for (; found < end && found->cpu == event->cpu; found++) {
		if (found->index == event->index || found->buffer_index == event->index)
			return true;
	}
	return false;
}

/**
 * session_follow__shrink - close the events that the session does not have any more
 * @f: the session, whose records were stored
 *
 * Their memory stays its owner's until the last reader closes them.
 */
void session_follow__shrink(struct session_follow *f)
{
	struct listed l;

	l.nr = persistent__list_events(f->reader->ps->id, &l.entries);
	if (l.nr > 0)
		persistent_reader__forget(f->reader, is_in_use, &l);
	free(l.entries);
}

/* Another session */

/**
 * session_follow__replace - read the session that took the place of the one that has ended
 * @f: the session, whose last records were stored
 *
 * It has the same name and the same owner.
 *
 * Return: 0, -EAGAIN if there is none so far, or it is just being made; or another negative
 * errno, and @f->why, if it cannot be read. Then the reader has no session any more.
 */
int session_follow__replace(struct session_follow *f)
{
	struct persistent_reader *r = f->reader;
	struct persistent_session *ps;
	struct evlist *news;
	int err;
	u64 id;

	if (!persistent__find_id(r->ps->name, &id) || id == r->ps->id)
		return -EAGAIN;
	ps = persistent_session__open_id(id);
	err = IS_ERR(ps) ? PTR_ERR(ps) : 0;
	if (err == -EBUSY || err == -ENOENT)
		return -EAGAIN;
	if (err)
		return cannot_errno(f, err);

	news = persistent_session__new_evlist(ps);
	if (!news)
		err = cannot(f, -EINVAL, "their records cannot be told apart");
	else if (ps->owner != r->ps->owner)
		err = cannot(f, -EPERM, "it belongs to another user");
	else
		err = check(f, ps, news, 0);
	if (err) {
		persistent_session__close(ps);
		goto out;
	}

	persistent_reader__forget_session(r);
	r->ps = ps;
	err = persistent_reader__map(r);
	err = err ?: take_events(r, news, ps);
	if (err)
		cannot_errno(f, err);
out:
	evlist__delete(news);
	return err;
}
