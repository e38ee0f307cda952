// SPDX-License-Identifier: GPL-2.0
/*
 * What a flight recorder tells of itself: a message at the start, and one JSON object for
 * those that ask while it runs
 */
#include "status.h"
#include "options.h"
#include "store/flight-store.h"
#include "store/sideband-store.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../json-writer.h"
#include "../persistent/persistent.h"

#include <internal/xyarray.h>
#include <linux/time64.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static u64 lost_of(struct evsel *evsel)
{
	struct xyarray *fds = evsel->core.fd;
	u64 lost = 0;

	if (!fds || !(evsel->core.attr.read_format & PERF_FORMAT_LOST))
		return 0;
	for (int x = 0; x < xyarray__max_x(fds); x++) {
		for (int y = 0; y < xyarray__max_y(fds); y++) {
			struct perf_counts_values count = {};

			if (!perf_evsel__read(&evsel->core, x, y, &count))
				lost += count.lost;
		}
	}
	return lost;
}

/*
 * Events that the kernel had no room for, as the kernel counts them: PERF_RECORD_LOST
 * comes late, or never.
 */
static u64 count_lost(struct evlist *evlist)
{
	struct evsel *evsel;
	u64 lost = 0;

	evlist__for_each_entry(evlist, evsel)
		lost += lost_of(evsel);
	return lost;
}

/* Its own, and that of the children that have written dumps. */
static u64 cpu_time(int who)
{
	struct rusage ru;

	if (getrusage(who, &ru))
		return 0;
	return (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_USEC;
}

/**
 * flight_status__print - write the members of a JSON object
 * @status: what to tell
 * @w: where
 */
void flight_status__print(const struct flight_status *status, struct json_writer *w)
{
	const struct flight_store *st = status->store;

	json_writer__number(w, "pid", getpid());
	json_writer__string(w, "out", status->opts->out);
	json_writer__seconds(w, "uptime", status->now - status->started, 3);
	json_writer__seconds(w, "window", flight_store__window(st, status->now), 3);
	json_writer__number(w, "memory", status->opts->memory);
	json_writer__number(w, "used", flight_store__used(st));
	json_writer__number(w, "sideband", sideband_store__stats(st->sideband)->used);
	json_writer__number(w, "dumps", status->dumps);
	json_writer__number(w, "failed", status->failed);
	json_writer__number(w, "swallowed", status->swallowed);
	json_writer__number(w, "lost", count_lost(st->evlist));
	json_writer__number(w, "given_up", ring_store__stats(st->ring)->refused_bytes);
	json_writer__seconds(w, "cpu_time", cpu_time(RUSAGE_SELF), 3);
	json_writer__seconds(w, "cpu_time_dumps", cpu_time(RUSAGE_CHILDREN), 3);
	json_writer__bool(w, "writing", status->writing);
}

/* Once: what a kernel without our patches cannot do. */
static void print_what_is_missing(const struct flight_opts *fo)
{
	if (persistent__is_supported())
		return;
	fprintf(stderr, "[ perf record: this kernel has no persistent events: ");
	fprintf(stderr, "what is in memory is lost if perf is killed");
	if (fo->overwrite)
		fprintf(stderr, "; less is read of each buffer");
	fprintf(stderr, " ]\n");
}

/**
 * flight_status__announce - say that the recorder has started
 * @fo: its options
 */
void flight_status__announce(const struct flight_opts *fo)
{
	if (quiet)
		return;
	print_what_is_missing(fo);
	if (!fo->dry_run)
		fprintf(stderr, "[ perf record: flight recorder %d: %" PRIu64
			" KiB, dumps to %s.sample.* ]\n",
			getpid(), fo->memory >> 10, fo->out);
}
