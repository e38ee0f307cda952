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

static int show(struct perf_snapshot *snap, size_t nr)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(snap);
	union perf_event *event = NULL;
	__u64 oldest = 0, newest = 0;
	int switches = 0;

	if (info->err) {
		fprintf(stderr, "buffer %zu: %s\n", nr, strerror(-info->err));
		return info->err;
	}

	/* In the order in which it happened. */
	while ((event = perf_snapshot__newer(snap, event)))
		switches += event->header.type == PERF_RECORD_SWITCH_CPU_WIDE;

	perf_snapshot__window(snap, event_time, NULL, &oldest, &newest);
	printf("buffer %zu: %d switches in %.3f ms;", nr, switches, (newest - oldest) / 1e6);
	printf(" %llu bytes given up, a gap of %llu bytes, read by %s\n",
	       (unsigned long long)info->given_up, (unsigned long long)info->gap,
	       perf_snapshot__way_name(info->way));
	return 0;
}

/* All buffers at the same time; then there is time to look at them. */
static int show_all(struct perf_snapshot_set *set)
{
	int err = perf_snapshot_set__take(set, PERF_SNAPSHOT_INCREMENTAL);
	struct perf_snapshot *snap;
	size_t i;

	for (i = 0; (snap = perf_snapshot_set__get(set, i)); i++) {
		if (show(snap, i))
			err = -1;
	}
	return err;
}

static int watch(struct perf_evlist *evlist)
{
	struct perf_snapshot_set *set = perf_snapshot_set__new();
	struct perf_snapshot *snap;
	struct perf_mmap *map;
	int err = 0, pass;
	size_t i;

	if (!set)
		return -1;

	/* Backward maps are a list of their own. */
	perf_evlist__for_each_mmap(evlist, map, true) {
		snap = perf_snapshot__new_mmap(map);
		if (!snap)
			perror("perf_snapshot__new_mmap");
		err = perf_snapshot_set__add(set, snap);
		if (err) {
			perf_snapshot__delete(snap);
			break;
		}
	}

	perf_evlist__enable(evlist);
	for (pass = 0; pass < 3 && !err; pass++) {
		sleep(1);
		err = show_all(set);
	}
	perf_evlist__disable(evlist);

	for (i = 0; (snap = perf_snapshot_set__get(set, i)); i++)
		perf_snapshot__delete(snap);
	perf_snapshot_set__delete(set);
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
