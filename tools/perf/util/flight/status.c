// SPDX-License-Identifier: GPL-2.0
/*
 * The status of a flight recorder: messages at its start, and one JSON object for the
 * request 'status' while it runs
 *
 * The thread that reads the buffers also answers. Most values are at hand. But each count
 * of lost events takes a system call that interrupts the CPU of the event, and a machine has
 * thousands of events. Therefore the counts are cached. They are updated in turn, for
 * LOST_BUDGET at a time and at most every LOST_INTERVAL, however many requests there are. The
 * sum can be out of date by as many answers as it takes to update all counts once. On most
 * machines one is sufficient.
 */
#include "status.h"
#include "options.h"
#include "overhead.h"
#include "self.h"
#include "store/flight-store.h"
#include "store/sideband-store.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../json-writer.h"
#include "../persistent/persistent.h"
#include "../time-utils.h"

#include <internal/xyarray.h>
#include <linux/time64.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Time to read counts of lost events, and between two times that they are read, in ns. */
#define LOST_BUDGET	((u64)(2 * NSEC_PER_MSEC))
#define LOST_INTERVAL	((u64)(20 * NSEC_PER_MSEC))

/**
 * struct lost_counts - events that the kernel had no room for, of one recorder
 * @counts: by event and its place in the array of file descriptors, as read last
 * @nr: entries of @counts
 * @next: the one to be read next
 * @sum: of all
 * @last: when they were read, in ns
 */
static struct lost_counts {
	u64	*counts;
	size_t	nr;
	size_t	next;
	u64	sum;
	u64	last;
} lost_counts;

static size_t nr_fds(struct evsel *evsel)
{
	struct xyarray *fds = evsel->core.fd;

	if (!fds || !(evsel->core.attr.read_format & PERF_FORMAT_LOST))
		return 0;
	return xyarray__max_x(fds) * xyarray__max_y(fds);
}

static void read_count(struct evsel *evsel, size_t i, u64 *lost)
{
	struct perf_counts_values count = {};
	int max_y = xyarray__max_y(evsel->core.fd);

	if (perf_evsel__read(&evsel->core, i / max_y, i % max_y, &count))
		return;
	lost_counts.sum += count.lost - *lost;
	*lost = count.lost;
}

static bool has_counts(struct evlist *evlist)
{
	struct evsel *evsel;
	size_t nr = 0;

	evlist__for_each_entry(evlist, evsel)
		nr += nr_fds(evsel);
	if (nr == lost_counts.nr)
		return nr;
	free(lost_counts.counts);
	lost_counts = (struct lost_counts) { .counts = calloc(nr, sizeof(u64)) };
	if (lost_counts.counts)
		lost_counts.nr = nr;
	return lost_counts.nr;
}

static struct evsel *find_count(struct evlist *evlist, size_t *i)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		size_t nr = nr_fds(evsel);

		if (*i < nr)
			return evsel;
		*i -= nr;
	}
	return NULL;
}

/* From the next one on, until all have been read or the time is over. */
static void read_counts(struct evlist *evlist, u64 end)
{
	for (size_t left = lost_counts.nr; left; left--) {
		size_t at = lost_counts.next, i = at;
		struct evsel *evsel = find_count(evlist, &i);

		if (evsel)
			read_count(evsel, i, &lost_counts.counts[at]);
		lost_counts.next = (at + 1) % lost_counts.nr;
		if (!(left % 16) && rdclock() > end)
			return;
	}
}

/**
 * flight_status__replace - another event takes the place of an event
 * @evlist: all events
 * @evsel: the event, whose file is still open
 * @x: its place in the first dimension of the array of file descriptors
 *
 * The new one counts from zero. The sum keeps what the old one had lost.
 */
void flight_status__replace(struct evlist *evlist, struct evsel *evsel, int x)
{
	struct evsel *pos;
	size_t at = 0;

	if (!nr_fds(evsel) || !has_counts(evlist))
		return;
	evlist__for_each_entry(evlist, pos) {
		if (pos == evsel)
			break;
		at += nr_fds(pos);
	}
	x *= xyarray__max_y(evsel->core.fd);
	read_count(evsel, x, &lost_counts.counts[at + x]);
	lost_counts.counts[at + x] = 0;
}

/*
 * Events that the kernel had no room for, as the kernel counts them: PERF_RECORD_LOST
 * comes late, or never.
 */
static u64 count_lost(struct evlist *evlist, u64 now)
{
	if (has_counts(evlist) && (!lost_counts.last || now - lost_counts.last >= LOST_INTERVAL)) {
		read_counts(evlist, now + LOST_BUDGET);
		lost_counts.last = rdclock();
	}
	return lost_counts.sum;
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
	json_writer__number(w, "sideband_dropped",
			    sideband_store__stats(st->sideband)->dropped);
	json_writer__string(w, "self", status->self->way);
	json_writer__seconds(w, "dump_timeout", status->opts->dump_timeout, 3);
	json_writer__number(w, "dumps", status->dumps);
	json_writer__number(w, "failed", status->failed);
	json_writer__number(w, "swallowed", status->swallowed);
	json_writer__number(w, "lost", count_lost(st->evlist, status->now));
	json_writer__number(w, "given_up", flight_store__stats(st)->refused_bytes);
	json_writer__seconds(w, "cpu_time", flight_overhead__cpu_time(RUSAGE_SELF), 3);
	/* Of the children that have written dumps */
	json_writer__seconds(w, "cpu_time_dumps", flight_overhead__cpu_time(RUSAGE_CHILDREN), 3);
	json_writer__bool(w, "writing", status->writing);
	flight_overhead__print(status->overhead, w);
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
	if (!fo->max_disk_given && fo->max_disk)
		fprintf(stderr, "[ perf record: dumps use at most %" PRIu64
			" MiB of disk; --max-disk sets another limit, 0 none ]\n",
			fo->max_disk >> 20);
	if (!fo->dry_run)
		fprintf(stderr, "[ perf record: flight recorder %d: %" PRIu64
			" KiB, dumps to %s.sample.* ]\n",
			getpid(), fo->memory >> 10, fo->out);
}
