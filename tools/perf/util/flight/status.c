// SPDX-License-Identifier: GPL-2.0
/* How a flight recorder fares: one JSON object, for those who ask while it runs. */
#include "status.h"
#include "json.h"
#include "../evlist.h"
#include "../evsel.h"

#include <internal/xyarray.h>
#include <linux/time64.h>
#include <inttypes.h>
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

static void put_number(FILE *f, const char *key, u64 value)
{
	fprintf(f, ", \"%s\": %" PRIu64, key, value);
}

static void put_seconds(FILE *f, const char *key, u64 ns)
{
	fprintf(f, ", \"%s\": %" PRIu64 ".%03" PRIu64, key, ns / NSEC_PER_SEC,
		ns % NSEC_PER_SEC / NSEC_PER_MSEC);
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
 * @f: where
 */
void flight_status__print(const struct flight_status *status, FILE *f)
{
	fprintf(f, "\"pid\": %d, \"out\": ", getpid());
	json__put_string(f, status->out);
	put_seconds(f, "uptime", status->uptime);
	put_seconds(f, "window", status->window);
	put_number(f, "memory", status->memory);
	put_number(f, "used", status->used);
	put_number(f, "sideband", status->sideband);
	put_number(f, "dumps", status->dumps);
	put_number(f, "failed", status->failed);
	put_number(f, "swallowed", status->swallowed);
	put_number(f, "lost", status->lost);
	put_number(f, "given_up", status->given_up);
	put_seconds(f, "cpu_time", cpu_time(RUSAGE_SELF));
	put_seconds(f, "cpu_time_dumps", cpu_time(RUSAGE_CHILDREN));
	fprintf(f, ", \"writing\": %s", status->writing ? "true" : "false");
}
