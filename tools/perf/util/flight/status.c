// SPDX-License-Identifier: GPL-2.0
/* How a flight recorder fares: one JSON object, for those who ask while it runs. */
#include "status.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../json-writer.h"

#include <internal/xyarray.h>
#include <linux/time64.h>
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

/**
 * flight_status__lost - events that the kernel had no room for
 * @evlist: the events
 *
 * Asked of the kernel itself: PERF_RECORD_LOST comes late, or never.
 */
u64 flight_status__lost(struct evlist *evlist)
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
	json_writer__number(w, "pid", getpid());
	json_writer__string(w, "out", status->out);
	json_writer__seconds(w, "uptime", status->uptime, 3);
	json_writer__seconds(w, "window", status->window, 3);
	json_writer__number(w, "memory", status->memory);
	json_writer__number(w, "used", status->used);
	json_writer__number(w, "sideband", status->sideband);
	json_writer__number(w, "dumps", status->dumps);
	json_writer__number(w, "failed", status->failed);
	json_writer__number(w, "swallowed", status->swallowed);
	json_writer__number(w, "lost", status->lost);
	json_writer__number(w, "given_up", status->given_up);
	json_writer__seconds(w, "cpu_time", cpu_time(RUSAGE_SELF), 3);
	json_writer__seconds(w, "cpu_time_dumps", cpu_time(RUSAGE_CHILDREN), 3);
	json_writer__bool(w, "writing", status->writing);
}
