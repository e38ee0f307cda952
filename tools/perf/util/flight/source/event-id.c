// SPDX-License-Identifier: GPL-2.0
/*
 * Ids that an event gets while it is recorded: of a CPU that came back, or of a session
 * that got more events
 */
#include "event-id.h"
#include "../../base-api.h"
#include "../../evlist.h"
#include "../../evsel.h"

#include <internal/evlist.h>
#include <internal/evsel.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>

/**
 * evsel__append_id - records with this id are of this event as well
 * @evlist: the events that it is one of
 * @evsel: the event
 * @id: the id, which no event of @evlist has
 * @cpu: the CPU that these records come from, or -1
 *
 * Return: 0 or -ENOMEM.
 */
int evsel__append_id(struct evlist *evlist, struct evsel *evsel, u64 id, struct perf_cpu cpu)
{
	struct perf_sample_id *sid = zalloc(sizeof(*sid));
	u64 *ids = realloc(evsel->core.id, (evsel->core.ids + 1) * sizeof(*ids));

	if (ids)
		evsel->core.id = ids;
	if (!ids || !sid) {
		free(sid);
		return -ENOMEM;
	}
	ids[evsel->core.ids++] = id;
	sid->id = id;
	sid->evsel = &evsel->core;
	sid->cpu = cpu;
	sid->tid = -1;
	hlist_add_head(&sid->node,
		       &evlist__core(evlist)->heads[hash_64(id, PERF_EVLIST__HLIST_BITS)]);
	return 0;
}
