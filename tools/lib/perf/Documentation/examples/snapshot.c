// SPDX-License-Identifier: GPL-2.0
/*
 * Record all context switches of all CPUs in backward buffers, and show what
 * came to each of them, three times, one second apart, while the recording runs
 * on. Build it with -lperf.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/snapshot.h>

#define MAX_MAPS	1024

static int libperf_print(enum libperf_print_level level, const char *fmt, va_list ap)
{
	return level == LIBPERF_ERR ? vfprintf(stderr, fmt, ap) : 0;
}

/* With sample_id_all and sample_type TIME, the time is what a record ends with. */
static bool event_time(const union perf_event *event, void *data, __u64 *time)
{
	memcpy(time, (char *)event + event->header.size - sizeof(*time), sizeof(*time));
	return true;
}

static int show(struct perf_snapshot *snap, int nr)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(snap);
	union perf_event *event = NULL;
	__u64 oldest = 0, newest = 0;
	int switches = 0, err;

	err = perf_snapshot__take(snap, PERF_SNAPSHOT_INCREMENTAL);
	if (err) {
		fprintf(stderr, "buffer %d: %s\n", nr, strerror(-err));
		return err;
	}

	/* In the order in which it happened. */
	while ((event = perf_snapshot__newer(snap, event)))
		switches += event->header.type == PERF_RECORD_SWITCH_CPU_WIDE;

	perf_snapshot__window(snap, event_time, NULL, &oldest, &newest);
	printf("buffer %d: %d switches in %.3f ms;", nr, switches, (newest - oldest) / 1e6);
	printf(" %llu bytes given up, a gap of %llu bytes, read by %s\n",
	       (unsigned long long)info->given_up, (unsigned long long)info->gap,
	       perf_snapshot__way_name(info->way));
	return 0;
}

static int watch(struct perf_evlist *evlist)
{
	struct perf_snapshot *snaps[MAX_MAPS];
	int nr = 0, err = 0, pass, i;
	struct perf_mmap *map;

	/* Backward maps are a list of their own. */
	perf_evlist__for_each_mmap(evlist, map, true) {
		if (nr == MAX_MAPS)
			break;
		snaps[nr] = perf_snapshot__new_mmap(map);
		if (!snaps[nr]) {
			perror("perf_snapshot__new_mmap");
			err = -1;
			break;
		}
		nr++;
	}

	perf_evlist__enable(evlist);
	for (pass = 0; pass < 3 && !err; pass++) {
		sleep(1);
		for (i = 0; i < nr && !err; i++)
			err = show(snaps[i], i);
	}
	perf_evlist__disable(evlist);

	while (nr)
		perf_snapshot__delete(snaps[--nr]);
	return err;
}

int main(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.sample_type	= PERF_SAMPLE_TIME,
		.sample_id_all	= 1,
		.context_switch	= 1,
		.write_backward	= 1,
		.disabled	= 1,
	};
	struct perf_cpu_map *cpus;
	struct perf_evlist *evlist;
	struct perf_evsel *evsel;
	int err = -1;

	libperf_init(libperf_print);

	cpus = perf_cpu_map__new_online_cpus();
	if (!cpus)
		return 1;

	evlist = perf_evlist__new();
	if (!evlist)
		goto out_cpus;

	evsel = perf_evsel__new(&attr);
	if (!evsel)
		goto out_evlist;

	perf_evlist__add(evlist, evsel);
	perf_evlist__set_maps(evlist, cpus, NULL);
	err = perf_evlist__open(evlist);
	if (!err)
		err = perf_evlist__mmap(evlist, 64);
	if (err)
		fprintf(stderr, "cannot record context switches: %s\n", strerror(-err));
	else
		err = watch(evlist);

out_evlist:
	perf_evlist__delete(evlist);
out_cpus:
	perf_cpu_map__put(cpus);
	return err ? 1 : 0;
}
