// SPDX-License-Identifier: GPL-2.0
/*
 * The snapshot API over libperf's maps, by every way that there is: what is
 * known to be in the buffer is found, in both directions, once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/mmap.h>
#include <perf/snapshot.h>
#include <perf/threadmap.h>
#include <internal/evlist.h>
#include <internal/mmap.h>
#include <internal/tests.h>
#include "tests.h"

#define NAME		"snap%06d"
#define TASK_COMM_LEN	16

static int libperf_print(enum libperf_print_level level __maybe_unused,
			 const char *fmt, va_list ap)
{
	return vfprintf(stderr, fmt, ap);
}

/* Each change of the task's name is a PERF_RECORD_COMM. */
static int write_names(int first, int nr)
{
	char name[TASK_COMM_LEN];

	for (; nr; nr--, first++) {
		snprintf(name, sizeof(name), NAME, first);
		if (prctl(PR_SET_NAME, name))
			return -1;
	}
	return 0;
}

static int number_of(const union perf_event *event)
{
	int nr;

	if (event->header.type != PERF_RECORD_COMM ||
	    sscanf(event->comm.comm, NAME, &nr) != 1)
		return -1;
	return nr;
}

/* The snapshot holds the records first..last and no others, either way round. */
static int check_order(struct perf_snapshot *snap, int first, int last)
{
	union perf_event *event = NULL;
	int want;

	for (want = first; (event = perf_snapshot__newer(snap, event)); want++)
		__T("oldest first", number_of(event) == want);
	__T("ends with the newest", want == last + 1);

	for (want = last; (event = perf_snapshot__older(snap, event)); want--)
		__T("newest first", number_of(event) == want);
	__T("ends with the oldest", want == first - 1);
	return 0;
}

static bool number_as_time(const union perf_event *event, void *data, __u64 *time)
{
	*time = number_of(event) + *(int *)data;
	return true;
}

/* Writes 15 records from @next on. Returns 1 where the way is not to be had. */
static int check_way(struct perf_mmap *map, unsigned int flags, int next)
{
	const struct perf_snapshot_info *info;
	struct perf_snapshot *snap;
	__u64 oldest, newest;
	int offset = 1000;
	int err;

	snap = perf_snapshot__new_mmap(map);
	__T("new", snap);
	info = perf_snapshot__info(snap);

	__T("write", !write_names(next, 10));
	err = perf_snapshot__take(snap, flags);
	if (err == -EOPNOTSUPP) {
		perf_snapshot__delete(snap);
		return write_names(next + 10, 5) ? -1 : 1;
	}
	__T("take", !err);
	__T("all from the first", info->nr_records == (__u64)next + 10);
	__T("nothing given up", !info->given_up && !info->retries && !info->wrapped);
	__T("order", !check_order(snap, 0, next + 9));

	__T("window", !perf_snapshot__window(snap, number_as_time, &offset,
					     &oldest, &newest));
	__T("oldest", oldest == 1000);
	__T("newest", newest == (__u64)next + 9 + 1000);

	__T("write", !write_names(next + 10, 5));
	__T("take", !perf_snapshot__take(snap, flags | PERF_SNAPSHOT_INCREMENTAL));
	__T("no gap", !info->gap);
	__T("only the new ones", !check_order(snap, next + 10, next + 14));

	__T("take", !perf_snapshot__take(snap, flags | PERF_SNAPSHOT_INCREMENTAL));
	__T("nothing new", !info->nr_records && !info->gap);

	perf_snapshot__delete(snap);
	return 0;
}

static int check_ways(struct perf_evlist *evlist)
{
	struct perf_mmap *map = perf_evlist__next_mmap(evlist, NULL, true);
	int ret;

	__T("map", map);

	/* A kernel may be too old for the ioctl; the others work everywhere. */
	ret = check_way(map, PERF_SNAPSHOT_NO_HOP | PERF_SNAPSHOT_NO_PAUSE, 0);
	__T("ioctl", ret >= 0);
	__T_VERBOSE("by ioctl: %s\n", ret ? "not on this kernel" : "yes");
	__T("hop", !check_way(map, PERF_SNAPSHOT_NO_IOCTL | PERF_SNAPSHOT_NO_PAUSE, 15));
	__T("pause", !check_way(map, PERF_SNAPSHOT_NO_IOCTL | PERF_SNAPSHOT_NO_HOP, 30));
	return 0;
}

static struct perf_snapshot *new_fd(struct perf_mmap *map)
{
	return perf_snapshot__new_fd(map->fd, map->cpu.cpu, map->mask + 1);
}

/* All snapshots of the set hold the records first..last, by the same take. */
static int check_set(struct perf_snapshot_set *set, int first, int last)
{
	struct perf_snapshot *snap;
	size_t i;

	for (i = 0; (snap = perf_snapshot_set__get(set, i)); i++) {
		__T("no error", !perf_snapshot__info(snap)->err);
		__T("order", !check_order(snap, first, last));
	}
	__T("all were visited", i == perf_snapshot_set__nr(set));
	return 0;
}

/*
 * A descriptor that answers no ioctl, where there is no other way: that buffer cannot be
 * read, the one after it can.
 */
static int check_set_error(struct perf_mmap *map, struct perf_snapshot *good, int last)
{
	struct perf_snapshot_buffer buf = {
		.fd	= -1,
		.cpu	= map->cpu.cpu,
		.base	= map->base,
		.len	= map->mask + 1 + sysconf(_SC_PAGESIZE),
	};
	unsigned int ioctl_only = PERF_SNAPSHOT_NO_HOP | PERF_SNAPSHOT_NO_PAUSE;
	struct perf_snapshot *broken = perf_snapshot__new(&buf);
	struct perf_snapshot_set *set = perf_snapshot_set__new();

	__T("new", broken && set);
	__T("add", !perf_snapshot_set__add(set, broken));
	__T("none can be read", perf_snapshot_set__take(set, ioctl_only) == -EBADF);
	__T("its error", perf_snapshot__info(broken)->err == -EBADF);

	__T("add", !perf_snapshot_set__add(set, good));
	__T("one cannot be read", !perf_snapshot_set__take(set, ioctl_only));
	__T("its error", perf_snapshot__info(broken)->err == -EBADF);
	__T("it has no records", !perf_snapshot__newer(broken, NULL));
	__T("the other one", !perf_snapshot__info(good)->err && !check_order(good, 0, last));

	perf_snapshot_set__delete(set);
	perf_snapshot__delete(broken);
	return 0;
}

/* Writes 20 records from @next on. Two snapshots are of the same buffer: both must see it. */
static int check_sets(struct perf_evlist *evlist, int next)
{
	struct perf_mmap *map = perf_evlist__next_mmap(evlist, NULL, true);
	struct perf_snapshot *snaps[2] = { perf_snapshot__new_mmap(map), new_fd(map) };
	struct perf_snapshot_set *set = perf_snapshot_set__new();
	const struct perf_event_mmap_page *page;
	bool has_ioctl;

	__T("new", snaps[0] && snaps[1] && set);
	page = perf_snapshot__header_page(snaps[1]);
	__T("a mapping of its own", page != map->base && page->data_size == (__u64)map->mask + 1);
	__T("an empty set", !perf_snapshot_set__take(set, 0) && !perf_snapshot_set__nr(set));
	__T("no snapshot", perf_snapshot_set__add(set, NULL) == -EINVAL);
	__T("add", !perf_snapshot_set__add(set, snaps[0]));
	__T("add", !perf_snapshot_set__add(set, snaps[1]));
	__T("in order", perf_snapshot_set__get(set, 0) == snaps[0] &&
	    perf_snapshot_set__get(set, 1) == snaps[1] && !perf_snapshot_set__get(set, 2));

	__T("write", !write_names(next, 10));
	__T("prepare", !perf_snapshot_set__prepare(set, 0));
	__T("take", !perf_snapshot_set__take(set, 0));
	__T("all", !check_set(set, 0, next + 9));
	has_ioctl = perf_snapshot__info(snaps[0])->way == PERF_SNAPSHOT_IOCTL;

	/* Where the last ones ended, whether the memory was kept or not. */
	__T("write", !write_names(next + 10, 5));
	__T("take", !perf_snapshot_set__take(set, PERF_SNAPSHOT_INCREMENTAL));
	__T("what is new", !check_set(set, next + 10, next + 14));
	perf_snapshot_set__release(set);
	__T("released", !perf_snapshot__newer(snaps[0], NULL));
	__T("write", !write_names(next + 15, 5));
	__T("take", !perf_snapshot_set__take(set, PERF_SNAPSHOT_INCREMENTAL));
	__T("what is new", !check_set(set, next + 15, next + 19));

	if (has_ioctl)
		__T("errors", !check_set_error(map, snaps[0], next + 19));
	perf_snapshot_set__delete(set);
	perf_snapshot__delete(snaps[0]);
	perf_snapshot__delete(snaps[1]);
	return 0;
}

/* One backward buffer that takes the COMM records of this CPU. */
static int test_backward(int cpu)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.comm		= 1,
		.write_backward	= 1,
	};
	struct perf_thread_map *threads;
	struct perf_evlist *evlist;
	struct perf_evsel *evsel;
	struct perf_cpu_map *cpus;
	char list[16];

	snprintf(list, sizeof(list), "%d", cpu);
	cpus = perf_cpu_map__new(list);
	__T("failed to create cpus", cpus);
	threads = perf_thread_map__new_dummy();
	__T("failed to create threads", threads);
	perf_thread_map__set_pid(threads, 0, 0);

	evlist = perf_evlist__new();
	__T("failed to create evlist", evlist);
	evsel = perf_evsel__new(&attr);
	__T("failed to create evsel", evsel);
	perf_evlist__add(evlist, evsel);
	/* Newer libperf takes all that are online otherwise. */
	evlist->has_user_cpus = true;
	perf_evlist__set_maps(evlist, cpus, threads);
	__T("failed to open evlist", !perf_evlist__open(evlist));
	__T("failed to mmap evlist", !perf_evlist__mmap(evlist, 4));

	__T("snapshots", !check_ways(evlist));
	__T("sets", !check_sets(evlist, 45));

	perf_evlist__munmap(evlist);
	perf_evlist__close(evlist);
	perf_evlist__delete(evlist);
	perf_thread_map__put(threads);
	perf_cpu_map__put(cpus);
	return 0;
}

int test_snapshot(int argc, char **argv)
{
	char name[TASK_COMM_LEN];
	cpu_set_t saved, set;
	int cpu, err;

	__T_START;

	libperf_init(libperf_print);

	__T("name", !prctl(PR_GET_NAME, name));
	__T("affinity", !sched_getaffinity(0, sizeof(saved), &saved));
	cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	__T("pin", !sched_setaffinity(0, sizeof(set), &set));

	err = test_backward(cpu);

	prctl(PR_SET_NAME, name);
	sched_setaffinity(0, sizeof(saved), &saved);
	__T("backward buffer", !err);

	__T_END;
	return tests_failed == 0 ? 0 : -1;
}
