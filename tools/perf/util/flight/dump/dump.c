// SPDX-License-Identifier: GPL-2.0
/*
 * Write the content of a flight recorder to a perf.data file
 *
 * The recorder forks a child for each dump. The child sees both stores as they were at
 * that time, and the recorder continues. The child's failures, including a hung disk, do
 * not affect the recorder. The child is the only thread of its process, and does not
 * access the ring buffers.
 *
 * The file has, in this order:
 *
 *	header and attributes, as perf record writes them
 *	constant data: conversion of time, ids, CPUs
 *	the state before the oldest round, without times (see sideband-store.c)
 *	FINISHED_INIT
 *	records that wait to become part of that state (see fold-order.c)
 *	for each round: its records as they were read; often FINISHED_ROUND
 *	features, including the clock: CLOCK_MONOTONIC and wall clock, read now
 *
 * A mark after each round would guarantee too much, see round_group__ends().
 *
 * With --fair, groups of rounds take the place of rounds. The manifest tells for each cgroup
 * since when it is complete.
 *
 * With --overwrite, rounds have only side-band records. The samples follow them, buffer
 * by buffer, each from the oldest to the newest of the whole window, so all of this is
 * one round.
 *
 * Only tasks that have samples in the file are described in it. This takes two passes
 * over the rounds. The first pass collects the tasks of the samples, and the forks: a
 * child that has not called exec() yet uses the maps of its parent, so the parent of a
 * needed task is needed as well. The second pass writes the records, and omits the
 * side-band of all other tasks. Omitting records does not change the order of a round.
 *
 * If the kernel writes the user half of a call chain later (fp,defer), it may have been evicted
 * before the sample, or not have come yet. The first pass collects what there is of them, and
 * the second one counts the samples that lack theirs.
 *
 * Names: a file is written with mode 0600 and a name that starts with a dot and ends with
 * .tmp, so patterns for dumps do not match it. When its content is on disk, it gets its
 * final name with link(), which never replaces another file. The manifest follows in the
 * same way. Files that a killed child has left are removed when a recorder with the same
 * OUT starts.
 *
 * OUT.auxiliary is written similarly, without samples, for all tasks. If the recorder is
 * killed, it describes the tasks in buffers that outlive the recorder. It is written from
 * scratch, and is thus compact, and replaces the previous one with rename().
 */
#include "dump.h"
#include "files.h"
#include "../self.h"
#include "../source/backward.h"
#include "manifest.h"
#include "../store/fair-store.h"
#include "../store/ring-store.h"
#include "../store/sideband-store.h"
#include "../../base-api.h"
#include "../../clockid.h"
#include "../../debug.h"
#include "../../deferred-chains.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../header.h"
#include "../../sample-layout.h"
#include "../../session.h"
#include "../../trace-event.h"

#include <internal/lib.h>
#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITE_BUFFER	(1024 * 1024UL)

/* The limit of pids (PID_MAX_LIMIT of 64-bit kernels). */
#define MAX_PID		(4U << 20)

/* Room for forks, at first and at most. */
#define FIRST_FORKS	4096U
#define MAX_FORKS	(512 * 1024U)

/* Room for the cookies of deferred call chains, at first. */
#define FIRST_COOKIES	4096U

struct fork_pair {
	u32			parent;
	u32			child;
};

/**
 * struct dump - a dump that is being written
 * @source: the data to write
 * @layout: of the records of its first event
 * @same_layout: all events have @layout
 * @auxiliary: no samples, side-band of all tasks
 * @wanted: processes to describe
 * @known: processes that the side-band in the rounds describes
 * @forks: parents and children
 * @nr_forks: number of @forks
 * @room: number of @forks that there is memory for
 * @cookies: of the user halves of call chains; sorted in the second pass
 * @nr_cookies: number of @cookies
 * @cookie_room: number of @cookies that there is memory for
 * @fd: the file
 * @buffer: data to be written next
 * @buffered: bytes in @buffer
 * @written: bytes of records written
 * @unmarked: records were written since the last mark
 * @m: content of the manifest
 */
struct dump {
	const struct dump_source *source;
	struct sample_layout	layout;
	bool			same_layout;
	bool			auxiliary;
	unsigned long		*wanted;
	unsigned long		*known;
	struct fork_pair	*forks;
	unsigned int		nr_forks;
	unsigned int		room;
	u64			*cookies;
	size_t			nr_cookies;
	size_t			cookie_room;
	int			fd;
	char			*buffer;
	size_t			buffered;
	u64			written;
	bool			unmarked;
	struct manifest		m;
};

/* Records */

static void init_layouts(struct dump *d)
{
	struct evlist *evlist = d->source->evlist;
	struct sample_layout layout;
	struct evsel *evsel;

	sample_layout__init(&d->layout, &evlist__first(evlist)->core.attr, /*swapped=*/false);
	d->same_layout = true;
	evlist__for_each_entry(evlist, evsel) {
		d->m.defers |= evsel__defers_callchain(evsel);
		sample_layout__init(&layout, &evsel->core.attr, /*swapped=*/false);
		for (int word = 0; word < SAMPLE_WORD__MAX; word++)
			d->same_layout &= sample_layout__is_same(&layout, &d->layout, word);
	}
}

static bool layout_of(struct dump *d, union perf_event *event, struct sample_layout *layout)
{
	struct evsel *evsel;

	*layout = d->layout;
	if (d->same_layout)
		return true;
	evsel = evlist__event2evsel(d->source->evlist, event);
	if (!evsel)
		return false;
	sample_layout__init(layout, &evsel->core.attr, /*swapped=*/false);
	return true;
}

static void mark(unsigned long *set, u32 pid)
{
	if (pid < MAX_PID)
		__set_bit(pid, set);
}

static bool is_marked(const unsigned long *set, u32 pid)
{
	return pid < MAX_PID && test_bit(pid, set);
}

/* The first pass */

static struct manifest_cpu *cpu_of(struct dump *d, const union perf_event *event,
				   const struct sample_layout *layout)
{
	u32 cpu;

	if (!sample_layout__cpu(layout, event, &cpu) || cpu >= (u32)d->m.nr_cpus)
		return NULL;
	d->m.cpus[cpu].way = "ring";
	return &d->m.cpus[cpu];
}

static void note_time(u64 *oldest, u64 *newest, u64 time)
{
	if (!*oldest || time < *oldest)
		*oldest = time;
	if (time > *newest)
		*newest = time;
}

static struct manifest_share *share_of(struct dump *d)
{
	return d->m.shares ? &d->m.shares[fair_store__walking(d->source->fair)] : NULL;
}

static void scan_sample(struct dump *d, union perf_event *event)
{
	struct manifest_share *share = share_of(d);
	struct sample_layout layout;
	struct manifest_cpu *cpu;
	u64 time;
	u32 pid;

	if (!layout_of(d, event, &layout))
		return;

	d->m.events++;
	cpu = cpu_of(d, event, &layout);
	if (cpu)
		cpu->events++;
	if (share)
		share->events++;
	if (sample_layout__time(&layout, event, &time)) {
		note_time(&d->m.oldest, &d->m.newest, time);
		if (cpu)
			note_time(&cpu->oldest, &cpu->newest, time);
		if (share)
			note_time(&share->oldest, &share->newest, time);
	}
	if (sample_layout__pid(&layout, event, &pid)) {
		mark(d->wanted, pid);
		d->m.self_events += (pid_t)pid == d->source->self->pid;
	}
}

/* Check whether the task of this sample is unknown, in the second pass. */
static void count_unresolved(struct dump *d, union perf_event *event)
{
	struct sample_layout layout;
	u32 pid;

	if (!layout_of(d, event, &layout) || !sample_layout__pid(&layout, event, &pid))
		return;
	if (pid && pid != -1U && !is_marked(d->known, pid) &&
	    !sideband_store__knows(d->source->sideband, pid))
		d->m.unresolved++;
}

static int compare_cookies(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Check whether the user half of this sample is missing, in the second pass. */
static void count_half_chain(struct dump *d, union perf_event *event)
{
	struct evsel *evsel = evlist__event2evsel(d->source->evlist, event);
	struct perf_sample sample;
	u64 cookie;

	if (!evsel || !evsel__defers_callchain(evsel))
		return;
	perf_sample__init(&sample, /*all=*/true);
	if (!evsel__parse_sample(evsel, event, &sample) &&
	    deferred_chain__cookie(sample.callchain, &cookie) &&
	    (!d->nr_cookies ||
	     !bsearch(&cookie, d->cookies, d->nr_cookies, sizeof(cookie), compare_cookies)))
		d->m.half_chains++;
	perf_sample__exit(&sample);
}

/* Without memory for its cookie, a half is told to be missing. */
static void scan_deferred(struct dump *d, const union perf_event *event)
{
	const struct perf_record_callchain_deferred *record = (const void *)event;
	size_t room = d->cookie_room ? 2 * d->cookie_room : FIRST_COOKIES;
	u64 *cookies;

	if (!d->m.defers || event->header.size < sizeof(*record))
		return;
	if (d->nr_cookies == d->cookie_room) {
		cookies = realloc(d->cookies, room * sizeof(*cookies));
		if (!cookies)
			return;
		d->cookies = cookies;
		d->cookie_room = room;
	}
	d->cookies[d->nr_cookies++] = record->cookie;
}

/* Where fork() fails for lack of memory, there is little for the recorder's own dump. */
static bool has_room_for_fork(struct dump *d)
{
	unsigned int room = d->room ? 2 * d->room : FIRST_FORKS;
	struct fork_pair *forks;

	if (d->nr_forks < d->room)
		return true;
	forks = room > MAX_FORKS ? NULL : realloc(d->forks, room * sizeof(*forks));
	if (!forks)
		return false;
	d->forks = forks;
	d->room = room;
	return true;
}

static void scan_fork(struct dump *d, const union perf_event *event)
{
	mark(d->known, event->fork.pid);
	if (event->fork.pid == event->fork.ppid)
		return;
	/* Any parent may be needed. */
	if (!has_room_for_fork(d)) {
		mark(d->wanted, event->fork.ppid);
		return;
	}
	d->forks[d->nr_forks++] = (struct fork_pair) {
		.parent = event->fork.ppid,
		.child	= event->fork.pid,
	};
}

static struct manifest_cpu *cpu_of_other(struct dump *d, union perf_event *event)
{
	struct sample_layout layout;

	return layout_of(d, event, &layout) ? cpu_of(d, event, &layout) : NULL;
}

static void scan_lost(struct dump *d, union perf_event *event, u64 lost)
{
	struct manifest_cpu *cpu = cpu_of_other(d, event);

	d->m.lost += lost;
	if (cpu)
		cpu->lost += lost;
}

static int scan(union perf_event *event, void *data)
{
	struct manifest_cpu *cpu;
	struct dump *d = data;

	switch (event->header.type) {
	case PERF_RECORD_SAMPLE:
		scan_sample(d, event);
		break;
	case PERF_RECORD_FORK:
		scan_fork(d, event);
		break;
	case PERF_RECORD_COMM:
		mark(d->known, event->comm.pid);
		break;
	case PERF_RECORD_LOST:
		scan_lost(d, event, event->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		scan_lost(d, event, event->lost_samples.lost);
		break;
	case PERF_RECORD_CALLCHAIN_DEFERRED:
		scan_deferred(d, event);
		break;
	case PERF_RECORD_THROTTLE:
		d->m.throttled++;
		cpu = cpu_of_other(d, event);
		if (cpu)
			cpu->throttled++;
		break;
	default:
		break;
	}
	return 0;
}

/* If a child is needed, its parent is needed, too. Forks are nearly sorted. */
static void want_parents(struct dump *d)
{
	bool more = true;

	while (more) {
		more = false;
		for (unsigned int i = d->nr_forks; i-- > 0;) {
			const struct fork_pair *fork = &d->forks[i];

			if (is_marked(d->wanted, fork->child) &&
			    !is_marked(d->wanted, fork->parent) && fork->parent < MAX_PID) {
				mark(d->wanted, fork->parent);
				more = true;
			}
		}
	}
}

static void scan_kernel(struct dump *d)
{
	kernel_store__walk(d->source->kernel, scan, d);
	for (int i = 0; i < kernel_store__nr(d->source->kernel); i++) {
		const struct snapshot_cover *cover = kernel_store__cover(d->source->kernel, i);

		if ((unsigned int)cover->cpu >= (unsigned int)d->m.nr_cpus)
			continue;
		d->m.cpus[cover->cpu].way = perf_snapshot__way_name(cover->way);
		d->m.cpus[cover->cpu].given_up = cover->given_up;
	}
}

static void note_covers(struct dump *d)
{
	for (int i = 0; i < d->m.nr_cpus; i++) {
		if (!d->source->covers[i].way)
			continue;
		d->m.cpus[i].way = d->source->covers[i].way;
		d->m.cpus[i].given_up = d->source->covers[i].given_up;
	}
}

static void scan_shares(struct dump *d)
{
	struct fair_store *fair = d->source->fair;
	struct fair_share share;

	fair_store__walk(fair, scan, NULL, d);
	d->m.complete_since = fair_store__complete_since(fair);
	d->m.names_since = fair_store__names_since(fair);
	for (u32 i = 0; i < d->m.nr_shares; i++) {
		if (!fair_store__share(fair, i, &share))
			continue;
		d->m.shares[i].id = share.id;
		d->m.shares[i].complete_since = share.complete_since;
		d->m.shares[i].bytes = share.bytes;
	}
}

static void scan_ring(struct dump *d)
{
	struct ring_store_round round;
	bool more;

	for (more = ring_store__first(d->source->ring, &round); more;
	     more = ring_store__next(d->source->ring, &round))
		ring_store__walk(d->source->ring, &round, scan, d);
}

static void scan_rounds(struct dump *d)
{
	if (d->source->fair)
		fair_store__walk_again(d->source->fair);
	else
		ring_store__walk_again(d->source->ring);
	for (int i = 0; i < d->source->nr_waiting; i++)
		scan(d->source->waiting[i], d);
	if (d->source->fair)
		scan_shares(d);
	else
		scan_ring(d);
	if (d->source->kernel)
		scan_kernel(d);
	if (d->source->covers)
		note_covers(d);
	want_parents(d);
	if (d->nr_cookies)
		qsort(d->cookies, d->nr_cookies, sizeof(*d->cookies), compare_cookies);
}

/* The second pass */

static int write_all(int fd, const char *buf, size_t len)
{
	return writen(fd, (void *)buf, len) == (ssize_t)len ? 0 : -errno ?: -EIO;
}

static int flush(struct dump *d)
{
	int err = write_all(d->fd, d->buffer, d->buffered);

	d->buffered = 0;
	return err;
}

static int put(struct dump *d, const void *buf, size_t len)
{
	int err = 0;

	d->written += len;
	if (d->buffered + len > WRITE_BUFFER)
		err = flush(d);
	if (!err && len > WRITE_BUFFER)
		return write_all(d->fd, buf, len);
	if (!err) {
		memcpy(d->buffer + d->buffered, buf, len);
		d->buffered += len;
	}
	return err;
}

static int put_mark(struct dump *d, u32 type)
{
	struct perf_event_header header = { .type = type, .size = sizeof(header) };

	return put(d, &header, sizeof(header));
}

/* Return whether this is side-band of a task without samples. */
static bool is_unwanted(struct dump *d, const union perf_event *event)
{
	if (d->auxiliary)
		return false;

	switch (event->header.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* All of these records start with the pid. -1 is the kernel. */
		return event->mmap.pid != -1U && !is_marked(d->wanted, event->mmap.pid);
	default:
		return false;
	}
}

static int put_record(union perf_event *event, void *data)
{
	struct dump *d = data;

	if (d->auxiliary && !sideband_store__is_sideband(event))
		return 0;
	if (event->header.type == PERF_RECORD_SAMPLE) {
		count_unresolved(d, event);
		if (d->m.defers)
			count_half_chain(d, event);
	} else {
		if (is_unwanted(d, event))
			return 0;
		manifest__note(&d->m, event);
	}
	d->unmarked = true;
	return put(d, event, event->header.size);
}

static int put_state(union perf_event *event, void *data)
{
	struct dump *d = data;

	manifest__note(&d->m, event);
	return put(d, event, event->header.size);
}

static bool is_wanted(pid_t pid, void *data)
{
	struct dump *d = data;

	if (!d->auxiliary && !is_marked(d->wanted, pid))
		return false;
	d->m.tasks++;
	return true;
}

/* Marks without records in between are useless, and must not be within a round. */
static int mark_round(struct dump *d)
{
	if (!d->unmarked || d->source->kernel)
		return 0;
	d->unmarked = false;
	return put_mark(d, PERF_RECORD_FINISHED_ROUND);
}

static int put_waiting(struct dump *d)
{
	int err = 0;

	for (int i = 0; i < d->source->nr_waiting && !err; i++)
		err = put_record(d->source->waiting[i], d);
	return err;
}

static int end_group(u32 group __maybe_unused, void *data)
{
	return mark_round(data);
}

static int put_shares(struct dump *d)
{
	fair_store__walk_last(d->source->fair);
	return fair_store__walk(d->source->fair, put_record, end_group, d);
}

static int put_rounds(struct dump *d)
{
	struct round_group group = {};
	struct ring_store_round round;
	bool more;
	int err = 0;

	ring_store__walk_last(d->source->ring);
	for (more = ring_store__first(d->source->ring, &round); more && !err;
	     more = ring_store__next(d->source->ring, &round)) {
		err = ring_store__walk(d->source->ring, &round, put_record, d);
		ring_store__passed(d->source->ring, &round);
		if (err == -EBADMSG)
			err = 0;
		if (round_group__ends(&group, round.time) && !err)
			err = mark_round(d);
	}
	/* No records follow the last one. */
	return err ?: mark_round(d);
}

static int put_kernel(struct dump *d)
{
	int err = kernel_store__walk(d->source->kernel, put_record, d);

	return err ?: put_mark(d, PERF_RECORD_FINISHED_ROUND);
}

static int put_data(struct dump *d)
{
	int err = put(d, d->source->preamble, d->source->preamble_len);

	if (!err)
		err = sideband_store__emit(d->source->sideband, is_wanted, put_state, d);
	if (!err)
		err = put_mark(d, PERF_RECORD_FINISHED_INIT);
	if (!err)
		err = put_waiting(d);
	if (!err)
		err = d->source->fair ? put_shares(d) : put_rounds(d);
	if (!err && d->source->kernel)
		err = put_kernel(d);
	return err ?: flush(d);
}

/* The header */

static int put_file(struct dump *d)
{
	struct perf_session *session = d->source->session;
	struct perf_env *env = &session->header.env;
	int err;

	/* This runs in a child and does not change the session of the recorder. */
	session->header.data_offset = 0;
	session->header.data_size = 0;
	err = perf_session__write_header(session, d->source->evlist, d->fd, false);
	if (err < 0)
		return err;

	err = put_data(d);
	if (err)
		return err;

	session->header.data_size = d->written;
	clockid__read_both(env->clock.clockid, &env->clock.clockid_ns, CLOCK_REALTIME,
			   &env->clock.tod_ns);
	evlist__set_first_sample_time(d->source->evlist, d->m.oldest);
	evlist__set_last_sample_time(d->source->evlist, d->m.newest);
	return perf_session__write_header(session, d->source->evlist, d->fd, true);
}

/* Names */

/* ".PID.tmp", of OUT itself. */
static bool is_pid(const char *str)
{
	size_t digits = *str == '.' ? strspn(str + 1, "0123456789") : 0;

	return digits && !strcmp(str + 1 + digits, ".tmp");
}

/* Return whether ".OUT.sample.TIME[.json].PID.tmp" is of @name and its writer is gone. */
static bool is_stale(const char *file, const char *name)
{
	size_t len = strlen(name), file_len = strlen(file);
	char *end;
	long pid;

	if (file[0] != '.' || file_len < len + 5 || strncmp(file + 1, name, len) ||
	    (!strstarts(file + 1 + len, ".sample.") &&
	     !strstarts(file + 1 + len, ".auxiliary.") &&
	     !strstarts(file + 1 + len, ".json.") &&
	     !strstarts(file + 1 + len, ".symbols.") && !is_pid(file + 1 + len)) ||
	    strcmp(file + file_len - 4, ".tmp"))
		return false;
	for (end = (char *)file + file_len - 4; end > file && end[-1] != '.';)
		end--;
	pid = strtol(end, &end, 10);
	return !strcmp(end, ".tmp") && pid > 0 && kill(pid, 0) && errno == ESRCH;
}

/**
 * dump__remove_stale - remove incomplete files of killed recorders
 * @out: prefix of the names of the dumps
 */
void dump__remove_stale(const char *out)
{
	const char *slash = strrchr(out, '/');
	const char *name = slash ? slash + 1 : out;
	char *dir = slash ? strndup(out, slash - out + 1) : strdup(".");
	struct dirent *entry;
	DIR *d = dir ? opendir(dir) : NULL;

	while (d && (entry = readdir(d)) != NULL) {
		if (is_stale(entry->d_name, name) && unlinkat(dirfd(d), entry->d_name, 0))
			pr_debug("cannot remove %s: %m\n", entry->d_name);
	}
	if (d)
		closedir(d);
	free(dir);
}

/* Give a file its final name unless that exists. */
static int name_file(const char *tmp, const char *path)
{
	if (!link(tmp, path)) {
		unlink(tmp);
		return 0;
	}
	if (errno == EEXIST)
		return -EEXIST;

	/* Not all file systems support links. */
	if (!access(path, F_OK))
		return -EEXIST;
	return rename(tmp, path) ? -errno : 0;
}

/* Make the rename or link to @path durable. */
void dump__sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, slash - path + 1) : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		if (fsync(fd))
			pr_debug("fsync %s: %m\n", dir);
		close(fd);
	}
	free(dir);
}

/* PATH, or PATH.1, PATH.2 ... if there are several dumps in the same millisecond. */
static int name_dump(const char *tmp, char *path, size_t size)
{
	size_t len = strlen(path);
	int err = name_file(tmp, path);

	for (int i = 1; err == -EEXIST && i < 10000; i++) {
		snprintf(path + len, size - len, ".%d", i);
		err = name_file(tmp, path);
	}
	return err;
}

static int make_manifest(struct dump *d, char **text, size_t *size)
{
	FILE *f = open_memstream(text, size);
	int err;

	if (!f)
		return -ENOMEM;
	err = manifest__write(&d->m, f);
	if (fclose(f) && !err)
		err = -ENOMEM;
	return err;
}

/* A stream would hide why the disk took only a part. */
static int write_text(int fd, const char *text, size_t size)
{
	if (writen(fd, text, size) != (ssize_t)size || fsync(fd))
		return -errno ?: -EIO;
	return 0;
}

static int write_manifest(struct dump *d, const char *dump_path)
{
	char path[PATH_MAX + 8], *tmp = NULL, *text = NULL;
	size_t size;
	int fd, err;

	snprintf(path, sizeof(path), "%s.json", dump_path);
	fd = dump__create_temporary(path, &tmp);
	if (fd < 0) {
		free(tmp);
		return fd;
	}
	err = make_manifest(d, &text, &size) ?: write_text(fd, text, size);
	if (close(fd) && !err)
		err = -errno;
	if (!err)
		err = name_file(tmp, path);
	if (err)
		unlink(tmp);
	free(text);
	free(tmp);
	return err;
}

/* One dump */

static int init(struct dump *d)
{
	d->m.nr_cpus = cpu__max_cpu().cpu;
	d->m.cpus = calloc(d->m.nr_cpus, sizeof(*d->m.cpus));
	d->wanted = bitmap_zalloc(MAX_PID);
	d->known = bitmap_zalloc(MAX_PID);
	d->buffer = malloc(WRITE_BUFFER);
	if (!d->m.cpus || !d->wanted || !d->known || !d->buffer)
		return -ENOMEM;
	init_layouts(d);
	if (!d->source->fair || d->auxiliary)
		return 0;
	d->m.nr_shares = fair_store__nr_shares(d->source->fair);
	d->m.shares = calloc(d->m.nr_shares, sizeof(*d->m.shares));
	return d->m.shares ? 0 : -ENOMEM;
}

static const struct ring_store_stats *stats_of(const struct dump_source *source)
{
	return source->fair ? fair_store__stats(source->fair) : ring_store__stats(source->ring);
}

static void fini(struct dump *d)
{
	manifest__exit(&d->m);
	bitmap_free(d->wanted);
	bitmap_free(d->known);
	free(d->forks);
	free(d->cookies);
	free(d->buffer);
}

static int write_dump(struct dump *d, char *path, size_t size)
{
	char *tmp = NULL;
	int err;

	d->fd = dump__create_temporary(path, &tmp);
	if (d->fd < 0) {
		free(tmp);
		return d->fd;
	}
	err = put_file(d);
	d->m.bytes = lseek(d->fd, 0, SEEK_END);
	if (!err && fsync(d->fd))
		err = -errno;
	if (close(d->fd) && !err)
		err = -errno;
	if (!err)
		err = name_dump(tmp, path, size);
	if (err)
		unlink(tmp);
	free(tmp);
	return err;
}

/**
 * dump__write - write a dump and its manifest
 * @source: the data; the header of its session is changed
 * @request: parameters of the dump
 * @result: returns the result
 *
 * Call this in a child of the recorder.
 *
 * Return: 0 or a negative errno; there is no file then.
 */
int dump__write(const struct dump_source *source, const struct dump_request *request,
		struct dump_result *result)
{
	struct dump d = {
		.source = source,
		.m = {
			.trigger	= request->trigger,
			.trigger_time	= request->trigger_time,
			.reason		= request->reason,
			.cause		= request->cause,
			.action		= request->action,
			.window_asked	= request->window_asked,
			.swallowed	= request->swallowed,
			.given_up	= request->given_up,
			.cpus_left_out	= request->cpus_left_out,
			.session	= &request->session,
			.overhead	= request->overhead,
			.raw		= stats_of(source)->bytes,
			.stored		= stats_of(source)->used,
			.sideband_dropped = sideband_store__stats(source->sideband)->dropped,
			.self		= source->self->way,
			.self_dropped	= source->self->dropped,
		},
	};
	const char *slash;
	char time[32];
	u64 now = 0;
	int err;

	clockid__read(CLOCK_REALTIME, &now);
	dump__print_time(now, time, sizeof(time));
	if (snprintf(result->path, sizeof(result->path), "%s.sample.%s", request->out, time) >=
	    (int)sizeof(result->path) - 8)
		return -ENAMETOOLONG;

	err = init(&d);
	if (err)
		goto out;
	scan_rounds(&d);
	err = write_dump(&d, result->path, sizeof(result->path));
	if (err)
		goto out;

	/* The disk was too slow, and the reserve of memory was used up. */
	d.m.given_up += source->fair ? fair_store__stolen(source->fair) :
				       ring_store__stolen(source->ring);
	slash = strrchr(result->path, '/');
	d.m.file = slash ? slash + 1 : result->path;
	d.m.time = time;
	err = write_manifest(&d, result->path);
	if (err)
		pr_err("Cannot write the manifest of %s: %s\n", result->path,
		       strerror(-err));
	/*
	 * Only the manifest tells what was lost: without it the dump has failed. The dump is
	 * kept if nobody tries again.
	 */
	if (err && !request->keep)
		unlink(result->path);
	if (err && !request->last)
		goto out;
	dump__sync_directory(result->path);
	err = 0;
	result->events = d.m.events;
	result->bytes = d.m.bytes;
	result->oldest = d.m.oldest;
	result->newest = d.m.newest;
	result->raw = d.m.raw;
	result->stored = d.m.stored;
out:
	fini(&d);
	return err;
}

/* Return whether this is the auxiliary file. */
bool dump__is_auxiliary(const char *path)
{
	const char *end = path ? strrchr(path, '.') : NULL;

	return end && !strcmp(end, ".auxiliary");
}

/**
 * dump__write_auxiliary - write OUT.auxiliary with all side-band and no samples
 * @source: the data; the header of its session is changed
 * @out: prefix of its name
 *
 * The file replaces the previous one when it is on disk. Call this in a child of the
 * recorder.
 *
 * Return: 0 or a negative errno; the previous file is kept then.
 */
int dump__write_auxiliary(const struct dump_source *source, const char *out)
{
	struct dump d = {
		.source = source,
		.auxiliary = true,
	};
	char *path = NULL, *tmp = NULL;
	int err = init(&d);

	if (err)
		goto out;
	if (asprintf(&path, "%s.auxiliary", out) < 0) {
		path = NULL;
		err = -ENOMEM;
		goto out;
	}
	d.fd = dump__create_temporary(path, &tmp);
	if (d.fd < 0) {
		err = d.fd;
		goto out;
	}
	err = put_file(&d);
	if (!err && fsync(d.fd))
		err = -errno;
	if (close(d.fd) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
	if (err)
		unlink(tmp);
	else
		dump__sync_directory(path);
out:
	free(tmp);
	free(path);
	fini(&d);
	return err;
}
