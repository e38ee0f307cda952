// SPDX-License-Identifier: GPL-2.0
/*
 * The evlist of a persistent session, with the real attributes and ids of its events,
 * used to parse the records in their buffers
 */
#include "persistent.h"
#include "../base-api.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../trace-event.h"
#include "../util.h"

#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/lib.h>
#include <internal/xyarray.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <perf/cpumap.h>
#include <perf/threadmap.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The event with these attributes, or NULL */
struct evsel *evlist__find_attr(struct evlist *evlist, const struct perf_event_attr *attr)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		if (!memcmp(&evsel->core.attr, attr, sizeof(*attr)))
			return evsel;
	}
	return NULL;
}

static struct evsel *evlist__findnew_attr(struct evlist *evlist, struct perf_event_attr *attr)
{
	struct evsel *evsel = evlist__find_attr(evlist, attr);

	if (evsel)
		return evsel;

	evsel = evsel__new(attr);
	if (!evsel)
		return NULL;

#ifdef HAVE_LIBTRACEEVENT
	if (attr->type == PERF_TYPE_TRACEPOINT)
		evsel->name = tracepoint_id_to_name(attr->config);
#endif
	evlist__add(evlist, evsel);
	return evsel;
}

/* Ids are ordered by CPU and then by event; the CPU is -1 for events of tasks. */
static int evsel__add_ids(struct evsel *evsel, struct evlist *evlist,
			  struct persistent_session *ps)
{
	struct perf_sample_id *sid;
	int nr = 0;

	for (int i = 0; i < ps->nr_events; i++)
		nr += !memcmp(&ps->events[i].attr, &evsel->core.attr, sizeof(evsel->core.attr));

	if (perf_evsel__alloc_id(&evsel->core, nr, 1))
		return -ENOMEM;

	nr = 0;
	for (int i = 0; i < ps->nr_events; i++) {
		struct persistent_event *event = &ps->events[i];

		if (memcmp(&event->attr, &evsel->core.attr, sizeof(evsel->core.attr)))
			continue;

		perf_evlist__id_add(evlist__core(evlist), &evsel->core, nr, 0, event->id);
		sid = xyarray__entry(evsel->core.sample_id, nr, 0);
		sid->idx = i;
		sid->cpu.cpu = event->cpu;
		sid->tid = -1;
		nr++;
	}
	return 0;
}

static struct perf_cpu_map *session__cpus(const struct persistent_session *ps)
{
	struct perf_cpu_map *map;
	char *list = strdup("");
	int last = -1;

	for (int i = 0; list && i < ps->nr_events; i++) {
		char *tmp = NULL;

		if (ps->events[i].cpu == last)
			continue;
		last = ps->events[i].cpu;
		if (asprintf(&tmp, "%s%s%d", list, *list ? "," : "", last) < 0)
			tmp = NULL;
		free(list);
		list = tmp;
	}

	/* Events that follow a task come first; without others they represent any CPU. */
	map = !list ? NULL : *list ? perf_cpu_map__new(list) : perf_cpu_map__new_any_cpu();
	free(list);
	return map;
}

/**
 * evlist__set_maps_of_session - set the CPUs and threads of events that are open elsewhere
 * @evlist: the events
 * @cpus: their CPUs, of which some may be offline
 * @threads: their threads
 *
 * perf would leave out CPUs, and events, that it could not open now.
 */
void evlist__set_maps_of_session(struct evlist *evlist, struct perf_cpu_map *cpus,
				 struct perf_thread_map *threads)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		perf_cpu_map__put(*evsel__own_cpus(evsel));
		*evsel__own_cpus(evsel) = perf_cpu_map__get(cpus);
		perf_cpu_map__put(evsel->core.cpus);
		evsel->core.cpus = perf_cpu_map__get(cpus);
	}
	perf_evlist__set_maps(evlist__core(evlist), cpus, threads);
}

/**
 * evlist__check_cpus - are all CPUs that the user has named online?
 * @evlist: the events
 *
 * Linux 7.3 leaves out the CPUs of -C that are not. A session has each of them.
 *
 * Return: 0, or a negative errno; -EINVAL after an error message.
 */
int evlist__check_cpus(struct evlist *evlist)
{
	struct perf_cpu_map *online = perf_cpu_map__new_online_cpus();
	struct perf_cpu cpu;
	int idx, err = 0;

	if (!online)
		return -ENOMEM;
	perf_cpu_map__for_each_cpu(cpu, idx, evlist__core(evlist)->user_requested_cpus) {
		if (!perf_cpu_map__has(online, cpu)) {
			pr_err("CPU %d is not online: bring it online, or leave it out of -C.\n",
			       cpu.cpu);
			err = -EINVAL;
			break;
		}
	}
	perf_cpu_map__put(online);
	return err;
}

static int evlist__add_session(struct evlist *evlist, struct persistent_session *ps)
{
	struct perf_thread_map *threads = perf_thread_map__new_dummy();
	struct perf_cpu_map *cpus = session__cpus(ps);
	struct evsel *evsel;
	int err = -ENOMEM;

	if (!threads || !cpus)
		goto out;

	/* The side-band event is the last one, as usual in perf: readers use the first. */
	for (int kind = PERSISTENT_SAMPLES; kind <= PERSISTENT_SIDEBAND; kind++) {
		for (int i = 0; i < ps->nr_events; i++) {
			struct persistent_event *event = &ps->events[i];

			if ((int)persistent_event__kind(event) == kind &&
			    !evlist__findnew_attr(evlist, &event->attr))
				goto out;
		}
	}
	evlist__set_maps_of_session(evlist, cpus, threads);

	evlist__for_each_entry(evlist, evsel) {
		if (evsel__add_ids(evsel, evlist, ps))
			goto out;
	}
	evlist__set_id_pos(evlist);

	err = 0;
	if (!evlist__valid_sample_type(evlist) || !evlist__valid_read_format(evlist) ||
	    !evlist__valid_sample_id_all(evlist))
		err = -EINVAL;
out:
	perf_cpu_map__put(cpus);
	perf_thread_map__put(threads);
	return err;
}

/**
 * persistent_session__new_evlist - create the evlist of a session, with ids
 * @ps: the session
 *
 * Return: the evlist, to be freed with evlist__put(), or NULL with errno set; EINVAL
 * if its records cannot be told apart
 */
struct evlist *persistent_session__new_evlist(struct persistent_session *ps)
{
	struct evlist *evlist = evlist__new();
	int err = evlist ? evlist__add_session(evlist, ps) : -ENOMEM;

	if (!err)
		return evlist;

	evlist__put(evlist);
	errno = -err;
	return NULL;
}

/* An event that has the sample type, and nothing else that matters for the place of a time */
static struct evsel *evlist__findnew_type(struct evlist *evlist, u64 sample_type, bool id_all)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.size		= sizeof(attr),
		.sample_type	= sample_type,
		.sample_id_all	= id_all,
	};

	return evlist__findnew_attr(evlist, &attr);
}

static int evsel__add_listed_ids(struct evsel *evsel, struct evlist *evlist,
				 const struct perf_persistent_entry *entries, u32 nr)
{
	u64 sample_type = evsel->core.attr.sample_type;
	int ids = 0;

	for (u32 i = 0; i < nr; i++)
		ids += entries[i].sample_type == sample_type;

	if (perf_evsel__alloc_id(&evsel->core, ids, 1))
		return -ENOMEM;

	ids = 0;
	for (u32 i = 0; i < nr; i++) {
		if (entries[i].sample_type == sample_type)
			perf_evlist__id_add(evlist__core(evlist), &evsel->core, ids++, 0,
					    entries[i].event_id);
	}
	return 0;
}

/**
 * persistent_entries__new_evlist - create an evlist that parses the times of records
 * @entries: the events of a session, as PERF_EVENT_IOC_SESSION_LIST tells them
 * @nr: how many
 * @id_all: sample_id_all of the events
 *
 * It has an event for each sample type. That is enough for persistent_record_time().
 *
 * Return: the evlist, to be freed with evlist__put(), or NULL if there is no memory or
 * the records cannot be told apart
 */
struct evlist *persistent_entries__new_evlist(const struct perf_persistent_entry *entries,
					      u32 nr, bool id_all)
{
	struct evlist *evlist = evlist__new();
	struct evsel *evsel;

	if (!evlist)
		return NULL;

	for (u32 i = 0; i < nr; i++) {
		if (!evlist__findnew_type(evlist, entries[i].sample_type, id_all))
			goto out_delete;
	}
	evlist__for_each_entry(evlist, evsel) {
		if (evsel__add_listed_ids(evsel, evlist, entries, nr))
			goto out_delete;
	}
	evlist__set_id_pos(evlist);
	if (evlist__valid_sample_type(evlist))
		return evlist;

out_delete:
	evlist__put(evlist);
	return NULL;
}

/**
 * persistent_record_time - get the time of a record
 * @event: a record
 * @data: the evlist of its session
 * @time: returns the time
 *
 * This is a perf_snapshot_time_t.
 *
 * Return: false if the record has no time.
 */
bool persistent_record_time(const union perf_event *event, void *data, __u64 *time)
{
	u64 t;

	if (evlist__parse_sample_timestamp(data, (union perf_event *)event, &t))
		return false;
	*time = t;
	return true;
}
