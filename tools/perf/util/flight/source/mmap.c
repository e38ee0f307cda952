// SPDX-License-Identifier: GPL-2.0
/*
 * perf record's own mmaps as the source of a flight recorder
 *
 * perf record opens, maps and reads its events as it does without a flight recorder, in
 * record__mmap_read_evlist(). record__write() passes each piece of a buffer to
 * flight_recorder__store() instead of writing it to a file. This file has only the
 * operations that a flight recorder needs in addition.
 */
#include "source.h"
#include "../../base-api.h"
#include "../../evlist.h"
#include "../../evsel.h"

#include <internal/xyarray.h>
#include <linux/zalloc.h>
#include <stdlib.h>

/**
 * mmap_source__freeze - stop the events that take samples, or let them go on
 * @src: a source of perf record's own events
 * @on: stop them
 *
 * The dummy event continues: the side-band of tasks must have no gap. An event that is
 * disabled for another reason, as for --max-overhead, stays so: a freeze leaves
 * evsel->disabled alone.
 */
void mmap_source__freeze(struct record_source *src, bool on)
{
	struct evsel *evsel;

	evlist__for_each_entry(src->evlist, evsel) {
		if (evsel->disabled || !evsel__is_group_leader(evsel) || !evsel->core.fd ||
		    evsel__is_dummy_event(evsel))
			continue;
		/* An error of one CPU is no reason to leave out the next ones. */
		for (int i = 0; i < xyarray__max_x(evsel->core.fd); i++) {
			if (on)
				evsel__disable_cpu(evsel, i);
			else
				evsel__enable_cpu(evsel, i);
		}
		/* Not reached if --control has disabled all of them. */
		evlist__set_enabled(src->evlist, !on);
	}
}

static void mmap_source__delete(struct record_source *src)
{
	free(src);
}

static const struct record_source_ops mmap_source_ops = {
	.freeze	= mmap_source__freeze,
	.delete	= mmap_source__delete,
};

/**
 * mmap_source__new - perf record's own events, read from its mmaps
 * @evlist: the events
 *
 * Return: the source, for record_source__delete(), or NULL if there is no memory.
 */
struct record_source *mmap_source__new(struct evlist *evlist)
{
	struct record_source *src = zalloc(sizeof(*src));

	if (src) {
		src->ops = &mmap_source_ops;
		src->evlist = evlist;
		src->fd = -1;
	}
	return src;
}
