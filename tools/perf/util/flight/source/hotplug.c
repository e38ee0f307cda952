// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that go offline and come back while a flight recorder records them
 *
 * When a CPU goes offline, the kernel removes its events, and does not install them again
 * later. The files, the ring buffers and their content stay. Suspending a machine takes all
 * CPUs but one offline.
 *
 * When a CPU is back, each event is opened again on it, and redirected to the buffer of its
 * predecessor (PERF_EVENT_IOC_SET_OUTPUT). No buffer is mapped again, and its content stays:
 *
 *	map->core.fd --- old event, off ---+
 *	(polled)                           +--- ring buffer, mapped, as before
 *	FD(evsel, cpu) - new event, on ----+
 *
 * Files that perf record polls stay open: a wakeup of the buffer wakes those that poll any
 * of its events. The files of events that were opened here are closed when these events are
 * replaced in turn. The ids of all generations are kept, because there are records with
 * them.
 *
 * A CPU can go and come back between two looks. Its directory 'topology' in sysfs is removed
 * when it goes, and made again when it comes back: the number of its inode tells each life of
 * the CPU from the others (topology_add_dev() in drivers/base/topology.c). To read it
 * interrupts no CPU, as reading the time that an event was enabled would. Without it (sysfs
 * is not mounted), only CPUs that a look finds offline are noticed, and those that a suspend
 * may have taken.
 *
 * A look follows each return of a CPU that the kernel tells of (cpu-news.c). A suspend that
 * fails, for example because an interrupt wants to wake the machine, tells nobody: for that
 * there is a look at each pass, once a second at most, and each minute on an idle machine.
 * Where the kernel tells of one of the two alone, the recorder wakes up once a second.
 *
 * The time between the return of a CPU and the next look is not recorded. The kernel itself
 * installs the events of persistent sessions again.
 *
 * The triggers that watch an event have events and buffers of their own, which are opened
 * again in the same way.
 *
 * A CPU that comes online for the first time has no buffer, and none is made: buffers have
 * their sizes, and perf record polls them, from the start. The user is told.
 */
#include "hotplug.h"
#include "event-id.h"
#include "../status.h"
#include "../../base-api.h"
#include "../../cgroup.h"
#include "../../clockid.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../cpumap.h"
#include "../../mmap.h"
#include "../../../perf-sys.h"

#include <api/fs/fs.h>
#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/xyarray.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shorter times are not taken for a suspend, in ns */
#define MIN_SUSPEND	((u64)(10 * NSEC_PER_MSEC))

/* Lives of a CPU: offline, and online without a directory that tells lives apart */
#define OFFLINE		0
#define UNKNOWN		1

#define FD(e, x) (*(int *)xyarray__entry((e)->core.fd, x, 0))

static int open_cpus(void)
{
	const char *sysfs = sysfs__mountpoint();
	char path[PATH_MAX];

	scnprintf(path, sizeof(path), "%s/devices/system/cpu", sysfs ?: "/sys");
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static u64 read_life(const struct flight_hotplug *hp, struct perf_cpu cpu)
{
	char path[32];
	struct stat st;

	scnprintf(path, sizeof(path), "cpu%d/topology", cpu.cpu);
	return hp->cpus < 0 || fstatat(hp->cpus, path, &st, 0) ? UNKNOWN : st.st_ino;
}

/* Room for one more CPU, which is offline so far. */
static int make_room(struct flight_hotplug *hp, struct perf_cpu cpu)
{
	u64 *lives;

	if (cpu.cpu < hp->nr_lives)
		return 0;
	lives = reallocarray(hp->lives, cpu.cpu + 1, sizeof(*lives));
	if (!lives)
		return -ENOMEM;
	hp->lives = lives;
	while (hp->nr_lives <= cpu.cpu)
		lives[hp->nr_lives++] = OFFLINE;
	return 0;
}

/**
 * flight_hotplug__init - note which CPUs are online, before events are opened
 * @hp: the state
 */
void flight_hotplug__init(struct flight_hotplug *hp)
{
	struct perf_cpu_map *online;
	struct perf_cpu cpu;
	int idx;

	*hp = (struct flight_hotplug) {
		.cpus		= open_cpus(),
		.suspended	= clockid__time_suspended(),
		.due		= -1ULL,
	};
	/* First: what happens later is news. */
	flight_cpu_news__init(&hp->told);
	online = perf_cpu_map__new_online_cpus();
	perf_cpu_map__for_each_cpu(cpu, idx, online) {
		if (!make_room(hp, cpu))
			hp->lives[cpu.cpu] = read_life(hp, cpu);
	}
	perf_cpu_map__put(online);
}

/**
 * flight_hotplug__follow - open these events again when their CPUs come back
 * @hp: the state
 * @evlist: perf's own events of CPUs, which are open
 * @all: they are to be on all CPUs
 *
 * Return: 0 or -ENOMEM.
 */
int flight_hotplug__follow(struct flight_hotplug *hp, struct evlist *evlist, bool all)
{
	struct flight_followed *followed;

	followed = reallocarray(hp->followed, hp->nr_followed + 1, sizeof(*followed));
	if (!followed)
		return -ENOMEM;
	hp->followed = followed;
	followed[hp->nr_followed++] = (struct flight_followed) { .evlist = evlist, .all = all };
	hp->due = 0;
	return 0;
}

void flight_hotplug__exit(struct flight_hotplug *hp)
{
	perf_cpu_map__put(hp->missing);
	hp->missing = NULL;
	zfree(&hp->lives);
	zfree(&hp->followed);
	flight_cpu_news__exit(&hp->told);
	if (hp->cpus >= 0)
		close(hp->cpus);
	hp->cpus = -1;
}

/* A record of the new event belongs to the same evsel. */
static int add_id(struct evlist *evlist, struct evsel *evsel, struct perf_cpu cpu, int fd)
{
	u64 id;

	if (!(evsel->core.attr.read_format & PERF_FORMAT_ID))
		return 0;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return -errno;
	return evsel__append_id(evlist, evsel, id, cpu);
}

/* A freeze of the samples, which leaves evsel->disabled alone, lets the dummy event go on. */
static bool is_enabled(const struct evlist *evlist, const struct evsel *evsel)
{
	return !evsel->disabled && (evlist__enabled(evlist) || evsel__is_dummy_event(evsel));
}

static int open_event(struct evlist *evlist, struct evsel *evsel, struct perf_cpu cpu, int idx,
		      int anchor)
{
	struct evsel *leader = evsel__leader(evsel);
	struct perf_event_attr attr = evsel->core.attr;
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;
	int group = leader != evsel ? FD(leader, idx) : -1, pid = -1, fd, err = 0;

	/* The first event was enabled by exec(). This one is enabled below. */
	attr.enable_on_exec = 0;
	attr.disabled = 1;
	if (evsel->cgrp) {
		flags |= PERF_FLAG_PID_CGROUP;
		pid = evsel->cgrp->fd;
	}
	fd = sys_perf_event_open(&attr, pid, cpu.cpu, group, flags);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, anchor) ||
	    (evsel->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, evsel->filter)))
		err = -errno;
	if (!err)
		err = add_id(evlist, evsel, cpu, fd);
	if (!err && is_enabled(evlist, evsel) && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static bool is_polled(struct evlist *evlist, int fd)
{
	const struct fdarray *fds = &evlist__core(evlist)->pollfd;

	for (int i = 0; i < fds->nr; i++) {
		if (fds->entries[i].fd == fd)
			return true;
	}
	return false;
}

/* Return: 0, or -ENODEV: the CPU is not up yet, or no longer. */
static int open_again(struct flight_hotplug *hp, struct evlist *evlist, struct perf_cpu cpu,
		      int map_idx)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		struct mmap *maps = evsel->core.attr.write_backward ?
				    evlist__overwrite_mmap(evlist) : evlist__mmap(evlist);
		int idx = perf_cpu_map__idx(evsel->core.cpus, cpu), old, fd;

		if (idx < 0 || !maps || !maps[map_idx].core.base)
			continue;
		old = FD(evsel, idx);
		/* If the old event runs after all, each sample would be taken twice. */
		ioctl(old, PERF_EVENT_IOC_DISABLE, 0);
		fd = open_event(evlist, evsel, cpu, idx, maps[map_idx].core.fd);
		if (fd == -ENODEV)
			return fd;
		if (fd < 0) {
			hp->failed++;
			continue;
		}
		flight_status__replace(evlist, evsel, idx);
		if (!is_polled(evlist, old))
			close(old);
		FD(evsel, idx) = fd;
	}
	return 0;
}

static void leave_out(struct flight_hotplug *hp, struct perf_cpu cpu)
{
	struct perf_cpu_map *one;
	char text[16];

	if (perf_cpu_map__has(hp->missing, cpu))
		return;
	scnprintf(text, sizeof(text), "%d", cpu.cpu);
	one = perf_cpu_map__new(text);
	cpu_map__merge(&hp->missing, one);
	perf_cpu_map__put(one);
	cpu_map__snprint(hp->missing, hp->left_out, sizeof(hp->left_out));
	hp->news |= FLIGHT_CPUS_MISSING;
}

/* Return: whether there is nothing left to do for this life of the CPU. */
static bool take_up(struct flight_hotplug *hp, struct perf_cpu cpu)
{
	bool came_back = false;

	for (int i = 0; i < hp->nr_followed; i++) {
		struct flight_followed *f = &hp->followed[i];
		int idx = perf_cpu_map__idx(evlist__core(f->evlist)->all_cpus, cpu);

		if (idx < 0 && f->all)
			leave_out(hp, cpu);
		if (idx < 0)
			continue;
		if (open_again(hp, f->evlist, cpu, idx))
			return false;
		came_back = true;
	}
	if (came_back)
		hp->news |= FLIGHT_CPUS_BACK;
	return true;
}

/* Return: whether there is nothing left to do. */
static bool look(struct flight_hotplug *hp, const struct perf_cpu_map *online, bool resumed)
{
	struct perf_cpu cpu;
	bool done = true;
	int idx;

	perf_cpu_map__for_each_cpu(cpu, idx, online) {
		/* Before its events are opened: it may go again meanwhile. */
		u64 life = read_life(hp, cpu);

		if (make_room(hp, cpu)) {
			done = false;
			continue;
		}
		/* Whether such a CPU was offline, only looks can tell. */
		if (life == UNKNOWN)
			done = false;
		if (life == hp->lives[cpu.cpu] && !(resumed && life == UNKNOWN))
			continue;
		if (take_up(hp, cpu))
			hp->lives[cpu.cpu] = life;
		else
			done = false;
	}
	for (cpu.cpu = 0; cpu.cpu < hp->nr_lives; cpu.cpu++) {
		if (!perf_cpu_map__has(online, cpu))
			hp->lives[cpu.cpu] = OFFLINE;
	}
	return done;
}

/**
 * flight_hotplug__look - open the events of CPUs that have come back again
 * @hp: the state
 * @now: CLOCK_MONOTONIC in ns
 *
 * Return: what has happened, bits of enum flight_cpus.
 */
unsigned int flight_hotplug__look(struct flight_hotplug *hp, u64 now)
{
	struct perf_cpu_map *online;
	bool resumed, told;
	u64 suspended;

	if (!hp->nr_followed)
		return 0;
	told = flight_cpu_news__came(&hp->told);
	suspended = clockid__time_suspended();
	resumed = suspended > hp->suspended + MIN_SUSPEND;
	if (now < hp->looked + FLIGHT_HOTPLUG_INTERVAL && !resumed && !told)
		return 0;
	hp->looked = now;
	hp->due = now + FLIGHT_HOTPLUG_INTERVAL;
	online = perf_cpu_map__new_online_cpus();
	if (!online)
		return 0;
	hp->news = 0;
	if (look(hp, online, resumed) && hp->told.uevents >= 0 && hp->told.clock >= 0)
		hp->due = now + FLIGHT_HOTPLUG_RARELY;
	hp->suspended = suspended;
	perf_cpu_map__put(online);
	return hp->news;
}
