// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -e persistent/NAME/: write a live snapshot of a persistent
 * session to a perf.data file.
 *
 * The file is one that any perf can read: its attributes and ids are those of
 * the real events, as PERF_EVENT_IOC_PERSISTENT_INFO gives them.
 *
 * Order of things:
 *
 *   1. open all events and map their buffers;
 *   2. copy all buffers, back to back, samples before side-band: nothing is
 *      written or synthesized before, for that would fill the buffers with our
 *      own doing and push out what they are read for; side-band comes last, so
 *      that it covers all samples;
 *   3. write what describes the kernel and the processes that live now;
 *   4. write the copies, each from its oldest record to its newest, and close
 *      the pass with PERF_RECORD_FINISHED_ROUND;
 *   5. with a command: run it, and make a second pass of what came since;
 *   6. lost counts, build-ids, header.
 *
 * A process that lives now is described as it is now, from /proc, with time 0;
 * one that has exited is known from the side-band. Side-band records change the
 * description at their own time. One of them needs care: PERF_RECORD_FORK
 * makes a reader forget what it knows of the process and begin with its
 * parent's maps. That is right if all of its later records are there. If some
 * buffer does not reach back as far, they may be gone; then the description
 * from /proc is better, and the fork of a process that still lives is left out.
 */
#include "persistent.h"
#include "build-id.h"
#include "cpumap.h"
#include "data.h"
#include "debug.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "machine.h"
#include "record.h"
#include "sample.h"
#include "session.h"
#include "snapshot-cover.h"
#include "symbol.h"
#include "synthetic-events.h"
#include "target.h"
#include "tool.h"
#include "trace-event.h"
#include "util.h"

#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/lib.h>
#include <internal/xyarray.h>
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <perf/threadmap.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/**
 * struct buffer - a ring buffer of the session
 * @event: the event that owns it
 * @base: where it is mapped
 * @len: length of the mapping
 * @snap: copies of it
 * @sideband: it holds no samples
 * @nr_records: records written from it
 * @err: what became of the last copy
 * @cover: what the copies hold, over both passes
 */
struct buffer {
	const struct persistent_event	*event;
	void				*base;
	size_t				len;
	struct perf_snapshot		*snap;
	bool				sideband;
	u64				nr_records;
	int				err;
	struct snapshot_cover		cover;
};

/**
 * struct reader - a session on its way into a file
 * @tool: callbacks of the pass that finds which build-ids are needed
 * @opts: options of perf record
 * @ps: the persistent session
 * @data: the file
 * @session: the file's perf session
 * @evlist: the file's events
 * @cpus: the CPUs whose samples are wanted
 * @buffers: the buffers to read, samples before side-band
 * @nr_buffers: number of them
 * @bytes: bytes of the file's data section
 * @samples: samples in it
 * @lost: events that the kernel could not store, ever
 * @unknown: records of events that the session did not have when it was opened
 * @incomplete: some of what describes the records could not be written
 * @complete_since: from then on, no side-band is missing
 */
struct reader {
	struct perf_tool		tool;
	struct record_opts		*opts;
	struct persistent_session	*ps;
	struct perf_data		*data;
	struct perf_session		*session;
	struct evlist			*evlist;
	struct perf_cpu_map		*cpus;
	struct buffer			*buffers;
	int				nr_buffers;
	u64				bytes;
	u64				samples;
	u64				lost;
	u64				unknown;
	bool				incomplete;
	u64				complete_since;
};

static sig_atomic_t workload_errno;
static sig_atomic_t workload_pid;

/* Buffers */

static bool event__is_wanted(struct reader *r, const struct persistent_event *event)
{
	struct perf_cpu cpu = { .cpu = event->cpu };

	/* Tasks migrate: the side-band of other CPUs names samples of these. */
	return !r->cpus || persistent_event__is_sideband(event) ||
	       perf_cpu_map__has(r->cpus, cpu);
}

static int buffer__map(struct buffer *buf, const struct persistent_event *event)
{
	struct perf_snapshot_buffer snap = {
		.fd  = event->fd,
		.cpu = event->cpu,
	};

	buf->event = event;
	buf->sideband = persistent_event__is_sideband(event);
	buf->len = event->data_size + page_size;
	buf->base = mmap(NULL, buf->len, PROT_READ, MAP_SHARED, event->fd, 0);
	if (buf->base == MAP_FAILED) {
		buf->base = NULL;
		return -errno;
	}

	snap.base = buf->base;
	snap.len = buf->len;
	buf->snap = perf_snapshot__new(&snap);
	return buf->snap ? 0 : -errno;
}

static void buffer__unmap(struct buffer *buf)
{
	perf_snapshot__delete(buf->snap);
	if (buf->base)
		munmap(buf->base, buf->len);
}

static int reader__map(struct reader *r)
{
	char msg[STRERR_BUFSIZE];
	bool samples = false;
	int err;

	r->buffers = calloc(r->ps->nr_events, sizeof(*r->buffers));
	if (!r->buffers)
		return -ENOMEM;

	for (int sideband = 0; sideband < 2; sideband++) {
		for (int i = 0; i < r->ps->nr_events; i++) {
			const struct persistent_event *event = &r->ps->events[i];

			if (event->buffer_index != event->index ||
			    persistent_event__is_sideband(event) != sideband ||
			    !event__is_wanted(r, event))
				continue;

			err = buffer__map(&r->buffers[r->nr_buffers++], event);
			if (err) {
				pr_err("Cannot map the buffer of event %u on CPU %d of session '%s': %s\n",
				       event->index, event->cpu, r->ps->name,
				       str_error_r(-err, msg, sizeof(msg)));
				return err;
			}
			samples |= !sideband;
		}
	}

	if (!samples) {
		pr_err("Session '%s' has no events%s%s: see perf ctl -i %s.\n", r->ps->name,
		       r->cpus ? " on CPUs " : "", r->cpus ? r->opts->target.cpu_list : "",
		       r->ps->name);
		return -ENOENT;
	}
	return 0;
}

/* A buffer that cannot be read does not keep the others from it, while there are any. */
static int reader__take(struct reader *r, unsigned int flags)
{
	char msg[STRERR_BUFSIZE];
	int last_err = 0, nr_read = 0;

	/* What fails here is found again by the take. */
	for (int i = 0; i < r->nr_buffers; i++)
		perf_snapshot__prepare(r->buffers[i].snap);

	for (int i = 0; i < r->nr_buffers; i++) {
		struct buffer *buf = &r->buffers[i];

		buf->err = perf_snapshot__take(buf->snap, flags | PERF_SNAPSHOT_NO_PAUSE);
		if (buf->err)
			last_err = buf->err;
		else if (!buf->sideband)
			nr_read++;
	}

	for (int i = 0; i < r->nr_buffers; i++) {
		struct buffer *buf = &r->buffers[i];

		if (buf->err)
			pr_err("Cannot read the buffer of event %u on CPU %d of session '%s': %s\n",
			       buf->event->index, buf->event->cpu, r->ps->name,
			       str_error_r(-buf->err, msg, sizeof(msg)));
	}
	if (last_err && nr_read)
		r->incomplete = true;
	return nr_read ? 0 : last_err;
}

/* The file */

static int reader__create_evlist(struct reader *r)
{
	r->evlist = persistent_session__new_evlist(r->ps);
	if (r->evlist)
		return 0;

	if (errno == EINVAL)
		pr_err("The records of session '%s' cannot be told apart: its events need sample_id_all and PERF_SAMPLE_IDENTIFIER.\n",
		       r->ps->name);
	return -errno;
}

static int reader__write(struct reader *r, void *buf, size_t size)
{
	if (perf_data_file__write(&r->data->file, buf, size) < 0) {
		pr_err("Cannot write %s: %m\n", r->data->path);
		return -EIO;
	}
	r->bytes += size;
	return 0;
}

static int process_synthesized(const struct perf_tool *tool, union perf_event *event,
			       struct perf_sample *sample __maybe_unused,
			       struct machine *machine __maybe_unused)
{
	return reader__write(container_of(tool, struct reader, tool), event, event->header.size);
}

static int process_sample(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct evsel *evsel,
			  struct machine *machine)
{
	struct reader *r = container_of(tool, struct reader, tool);

	if (!r->evlist->first_sample_time)
		r->evlist->first_sample_time = sample->time;
	r->evlist->last_sample_time = sample->time;

	return build_id__mark_dso_hit(tool, event, sample, evsel, machine);
}

static bool is_alive(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static bool is_stale_fork(struct reader *r, union perf_event *event)
{
	__u64 time;

	return event->header.type == PERF_RECORD_FORK &&
	       event->fork.pid == event->fork.tid &&
	       persistent_record_time(event, r->evlist, &time) && time < r->complete_since &&
	       is_alive(event->fork.pid);
}

static void reader__find_windows(struct reader *r)
{
	struct snapshot_cover cover;

	for (int i = 0; i < r->nr_buffers; i++) {
		struct buffer *buf = &r->buffers[i];

		snapshot_cover__fill(&cover, buf->event->cpu, buf->err, buf->snap, r->evlist);
		if (buf->cover.data_size)
			snapshot_cover__add(&buf->cover, &cover);
		else
			buf->cover = cover;
		if (buf->sideband && cover.err)
			r->complete_since = -1ULL;
		else if (buf->sideband && cover.wrapped)
			r->complete_since = max(r->complete_since, buf->cover.oldest);
	}
}

static int buffer__write(struct buffer *buf, struct reader *r)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(buf->snap);
	union perf_event *event = NULL;
	size_t len = 0;
	char *run;
	int err;

	if (!info->len)
		return 0;

	run = malloc(info->len);
	if (!run)
		return -ENOMEM;

	while ((event = perf_snapshot__newer(buf->snap, event)) != NULL) {
		if (is_stale_fork(r, event))
			continue;
		/* A reader would stop there. */
		if (!evlist__event2evsel(r->evlist, event)) {
			r->unknown++;
			continue;
		}
		memcpy(run + len, event, event->header.size);
		len += event->header.size;
		r->samples += event->header.type == PERF_RECORD_SAMPLE;
		buf->nr_records++;
	}
	err = reader__write(r, run, len);
	free(run);
	perf_snapshot__release(buf->snap);
	return err;
}

static int reader__write_pass(struct reader *r)
{
	struct perf_event_header round = {
		.size = sizeof(round),
		.type = PERF_RECORD_FINISHED_ROUND,
	};
	int err;

	reader__find_windows(r);
	for (int i = 0; i < r->nr_buffers; i++) {
		err = buffer__write(&r->buffers[i], r);
		if (err)
			return err;
	}
	return reader__write(r, &round, sizeof(round));
}

static int reader__init_clock(struct reader *r)
{
	struct perf_env *env = &r->session->header.env;
	struct evsel *first = evlist__first(r->evlist), *evsel;
	struct timespec clock, res;
	struct timeval tod;

	evlist__for_each_entry(r->evlist, evsel) {
		if (!evsel->core.attr.use_clockid ||
		    evsel->core.attr.clockid != first->core.attr.clockid)
			return -ENOENT;
	}

	if (clock_gettime(first->core.attr.clockid, &clock) || gettimeofday(&tod, NULL) ||
	    clock_getres(first->core.attr.clockid, &res))
		return -errno;

	env->clock.clockid	  = first->core.attr.clockid;
	env->clock.clockid_res_ns = res.tv_sec * NSEC_PER_SEC + res.tv_nsec;
	env->clock.clockid_ns	  = clock.tv_sec * NSEC_PER_SEC + clock.tv_nsec;
	env->clock.tod_ns	  = tod.tv_sec * NSEC_PER_SEC + tod.tv_usec * NSEC_PER_USEC;
	return 0;
}

static void reader__init_features(struct reader *r, bool no_buildid)
{
	struct perf_header *header = &r->session->header;
	bool branch_stack = false;
	struct evsel *evsel;
	int feat;

	for (feat = HEADER_FIRST_FEATURE; feat < HEADER_LAST_FEATURE; feat++)
		perf_header__set_feat(header, feat);

	evlist__for_each_entry(r->evlist, evsel)
		branch_stack |= evsel__has_br_stack(evsel);

	if (no_buildid)
		perf_header__clear_feat(header, HEADER_BUILD_ID);
#ifdef HAVE_LIBTRACEEVENT
	if (!have_tracepoints(&r->evlist->core.entries))
#endif
		perf_header__clear_feat(header, HEADER_TRACING_DATA);
	if (!branch_stack)
		perf_header__clear_feat(header, HEADER_BRANCH_STACK);
	if (reader__init_clock(r)) {
		perf_header__clear_feat(header, HEADER_CLOCKID);
		perf_header__clear_feat(header, HEADER_CLOCK_DATA);
	}
	perf_header__clear_feat(header, HEADER_AUXTRACE);
	perf_header__clear_feat(header, HEADER_COMPRESSED);
	perf_header__clear_feat(header, HEADER_DIR_FORMAT);
	perf_header__clear_feat(header, HEADER_GROUP_DESC);
	perf_header__clear_feat(header, HEADER_STAT);
}

static int reader__create_file(struct reader *r, bool no_buildid)
{
	struct perf_session *session;
	struct perf_tool *tool = &r->tool;
	struct evsel *evsel;

	perf_tool__init(tool, /*ordered_events=*/true);
	tool->sample	 = process_sample;
	tool->fork	 = perf_event__process_fork;
	tool->exit	 = perf_event__process_exit;
	tool->comm	 = perf_event__process_comm;
	tool->namespaces = perf_event__process_namespaces;
	tool->mmap	 = perf_event__process_mmap;
	tool->mmap2	 = perf_event__process_mmap2;

	/* The same kind of map everywhere, or a file seems to be two. */
	evlist__for_each_entry(r->evlist, evsel) {
		symbol_conf.buildid_mmap2 |= evsel->core.attr.build_id;
		tool->namespace_events |= evsel->core.attr.namespaces;
		tool->cgroup_events |= evsel->core.attr.cgroup;
	}

	session = perf_session__new(r->data, tool);
	if (IS_ERR(session))
		return PTR_ERR(session);

	r->session = session;
	session->evlist = r->evlist;
	perf_session__set_id_hdr_size(session);
	reader__init_features(r, no_buildid);

	return perf_session__write_header(session, r->evlist, perf_data__fd(r->data), false);
}

/* What the records alone do not tell: the kernel, and the processes that live. */
static int reader__synthesize(struct reader *r)
{
	struct perf_event_header finished_init = {
		.size = sizeof(finished_init),
		.type = PERF_RECORD_FINISHED_INIT,
	};
	struct machine *machine = &r->session->machines.host;
	struct target target = { .system_wide = true };
	struct perf_tool *tool = &r->tool;
	int err;

	err = perf_event__synth_time_conv(r->buffers[0].base, tool, process_synthesized, machine);
	if (err)
		return err;

	err = perf_event__synthesize_id_index(tool, process_synthesized, r->evlist, machine);
	if (err)
		return err;

	if (perf_event__synthesize_kernel_mmap(tool, process_synthesized, machine) < 0 ||
	    perf_event__synthesize_modules(tool, process_synthesized, machine) < 0)
		pr_warning("Cannot describe the kernel: its functions may stay unnamed (see /proc/sys/kernel/kptr_restrict).\n");

	err = perf_event__synthesize_thread_map2(tool, r->evlist->core.threads,
						 process_synthesized, NULL);
	if (err)
		return err;

	err = perf_event__synthesize_cpu_map(tool, r->evlist->core.all_cpus,
					     process_synthesized, NULL);
	if (err)
		return err;

	err = perf_event__synthesize_bpf_events(r->session, process_synthesized, machine, r->opts);
	if (err < 0)
		pr_warning("Cannot describe the BPF programs.\n");

	if (tool->cgroup_events &&
	    perf_event__synthesize_cgroups(tool, process_synthesized, machine) < 0)
		pr_warning("Cannot describe the cgroups.\n");

	err = __machine__synthesize_threads(machine, tool, &target, r->evlist->core.threads,
					    process_synthesized, /*needs_mmap=*/true,
					    /*data_mmap=*/false, /*nr_threads_synthesize=*/1);
	if (err)
		return err;

	return reader__write(r, &finished_init, sizeof(finished_init));
}

static bool read_lost(const struct persistent_event *event, u64 *lost)
{
	u64 format = event->attr.read_format, values[5];
	size_t nr = 1;

	if (!(format & PERF_FORMAT_LOST) || (format & PERF_FORMAT_GROUP))
		return false;

	nr += !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED);
	nr += !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	nr += !!(format & PERF_FORMAT_ID);
	nr++;
	if (read(event->fd, values, nr * sizeof(u64)) != (ssize_t)(nr * sizeof(u64)))
		return false;

	*lost = values[nr - 1];
	return true;
}

static int reader__write_lost(struct reader *r)
{
	for (int i = 0; i < r->ps->nr_events; i++) {
		const struct persistent_event *event = &r->ps->events[i];
		struct perf_record_lost_samples_and_ids lost = {
			.lost.header.type = PERF_RECORD_LOST_SAMPLES,
		};
		struct perf_sample sample = { .id = event->id, .cpu = event->cpu };
		int id_size, err;
		u64 count;

		if (!event__is_wanted(r, event) || !read_lost(event, &count) || !count)
			continue;

		r->lost += count;
		lost.lost.lost = count;
		id_size = perf_event__synthesize_id_sample((void *)(&lost.lost + 1),
							   event->attr.sample_type, &sample);
		lost.lost.header.size = sizeof(lost.lost) + id_size;
		err = reader__write(r, &lost, lost.lost.header.size);
		if (err)
			return err;
	}
	return 0;
}

static int reader__finish_file(struct reader *r, bool no_buildid)
{
	DECLARE_BITMAP(wanted, HEADER_FEAT_BITS) = { };
	struct perf_header *header = &r->session->header;
	int feat, err, fd = perf_data__fd(r->data);

	r->session->header.data_size += r->bytes;
	r->data->file.size = lseek(fd, 0, SEEK_CUR);

	if (!no_buildid) {
		symbol_conf.ignore_vmlinux_buildid = true;
		if (perf_session__process_events(r->session))
			r->incomplete = true;
	}

	/* A feature that cannot be written is left out, without a word. */
	for_each_set_bit(feat, header->adds_features, HEADER_FEAT_BITS) {
		if (feat == HEADER_TRACING_DATA || feat == HEADER_EVENT_DESC ||
		    (feat == HEADER_BUILD_ID && perf_session__read_build_ids(r->session, true)))
			__set_bit(feat, wanted);
	}
	err = perf_session__write_header(r->session, r->evlist, fd, true);
	for_each_set_bit(feat, wanted, HEADER_FEAT_BITS)
		r->incomplete |= !perf_header__has_feat(header, feat);
	if (!err && r->incomplete)
		pr_warning("%s is incomplete: what names its records could not all be written.\n",
			   r->data->path);
	return err;
}

/* No file rather than half of one; but only what we made: not a device, nor a link. */
static void reader__remove_file(struct reader *r)
{
	struct stat file, path;

	if (!r->session || fstat(perf_data__fd(r->data), &file) || lstat(r->data->path, &path))
		return;
	if (S_ISREG(path.st_mode) && path.st_dev == file.st_dev && path.st_ino == file.st_ino)
		unlink(r->data->path);
}

/* The command */

static void workload_failed(int signo __maybe_unused, siginfo_t *info, void *context __maybe_unused)
{
	workload_errno = info->si_value.sival_int;
}

static void forward_signal(int signo)
{
	if (workload_pid > 0)
		kill(workload_pid, signo);
}

/* Return: the exit status of the command, or a negative errno. */
static int reader__run(struct reader *r, const char **argv)
{
	struct target target = { .system_wide = true };
	char msg[STRERR_BUFSIZE];
	int status;

	if (evlist__prepare_workload(r->evlist, &target, argv, false, workload_failed) < 0) {
		pr_err("Cannot run %s.\n", argv[0]);
		return -ECHILD;
	}

	/* Whatever ends the command early, what came until then is written. */
	workload_pid = r->evlist->workload.pid;
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, forward_signal);
	evlist__start_workload(r->evlist);
	while (waitpid(r->evlist->workload.pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	workload_pid = 0;

	if (workload_errno) {
		pr_err("Cannot run %s: %s\n", argv[0],
		       str_error_r(workload_errno, msg, sizeof(msg)));
		return -workload_errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The report to the user */

static void buffer__print(const struct buffer *buf)
{
	const struct snapshot_cover *cover = &buf->cover;
	const char *kind = buf->sideband ? "side-band" : "samples";
	char where[32], text[256];

	if (buf->event->cpu < 0)
		scnprintf(where, sizeof(where), "task, buffer %u", buf->event->index);
	else
		scnprintf(where, sizeof(where), "CPU %d", buf->event->cpu);

	if (!buf->nr_records) {
		fprintf(stderr, "[ perf record: %s: %s: %s ]\n", where, kind,
			cover->err ? "cannot be read" : "nothing recorded");
		return;
	}

	fprintf(stderr, "[ perf record: %s: %s: %.6f .. %.6f s, window %.3f s, %llu records",
		where, kind, (double)cover->oldest / NSEC_PER_SEC,
		(double)cover->newest / NSEC_PER_SEC,
		(double)(cover->newest - cover->oldest) / NSEC_PER_SEC,
		(unsigned long long)buf->nr_records);
	if (cover->gap)
		fprintf(stderr, ", %llu bytes overwritten while the command ran",
			(unsigned long long)cover->gap);
	if (buf->event->state & PERF_PERSISTENT_STATE_OFFLINE)
		fprintf(stderr, ", CPU offline");
	if (buf->event->state & PERF_PERSISTENT_STATE_GONE)
		fprintf(stderr, ", task gone");
	fprintf(stderr, " ]\n");

	if (verbose > 0) {
		snapshot_cover__scnprintf(cover, text, sizeof(text));
		fprintf(stderr, "[ perf record: %s: %s: %s ]\n", where, kind, text);
	}
}

static void reader__print(struct reader *r)
{
	for (int i = 0; i < r->nr_buffers; i++) {
		if (!r->buffers[i].sideband || verbose > 0)
			buffer__print(&r->buffers[i]);
	}
	fprintf(stderr, "[ perf record: Captured and wrote %.3f MB %s (%llu samples, %llu lost%s)",
		perf_data__size(r->data) / 1024.0 / 1024.0, r->data->path,
		(unsigned long long)r->samples, (unsigned long long)r->lost,
		r->lost ? " since the session began" : "");
	fprintf(stderr, " from persistent session '%s' ]\n", r->ps->name);
	if (r->unknown)
		fprintf(stderr, "[ perf record: left out %llu records of unknown events ]\n",
			(unsigned long long)r->unknown);
}

static int reader__fill_file(struct reader *r, bool no_buildid, const char **argv)
{
	int err, status = 0;

	err = reader__synthesize(r);
	if (!err)
		err = reader__write_pass(r);
	if (err)
		return err;

	if (argv) {
		status = reader__run(r, argv);
		if (status < 0)
			return status;

		err = reader__take(r, PERF_SNAPSHOT_INCREMENTAL);
		if (!err)
			err = reader__write_pass(r);
	}
	if (!err)
		err = reader__write_lost(r);
	if (!err)
		err = reader__finish_file(r, no_buildid);
	return err ?: status;
}

static int reader__open(struct reader *r, const char *what)
{
	const char *cpu_list = r->opts->target.cpu_list;

	if (cpu_list) {
		r->cpus = perf_cpu_map__new(cpu_list);
		if (!r->cpus) {
			pr_err("No such CPUs: %s\n", cpu_list);
			return -EINVAL;
		}
	}

	if (!r->data->path)
		r->data->path = "perf.data";
	if (!strcmp(r->data->path, "-")) {
		pr_err("A persistent session is not written to a pipe: name a file with -o.\n");
		return -EINVAL;
	}

	r->ps = persistent_session__open(what);
	if (IS_ERR(r->ps)) {
		int err = PTR_ERR(r->ps);

		r->ps = NULL;
		return err;
	}
	return reader__map(r);
}

static void reader__exit(struct reader *r)
{
	if (r->session)
		perf_session__delete(r->session);
	evlist__delete(r->evlist);
	for (int i = 0; i < r->nr_buffers; i++)
		buffer__unmap(&r->buffers[i]);
	free(r->buffers);
	persistent_session__close(r->ps);
	perf_cpu_map__put(r->cpus);
}

static int reader__kill(struct reader *r)
{
	char msg[STRERR_BUFSIZE];
	int err;

	if (r->incomplete || fsync(perf_data__fd(r->data))) {
		pr_err("%s is not safely written: the persistent session '%s' is kept.\n",
		       r->data->path, r->ps->name);
		return -EIO;
	}

	err = persistent_session__claim(r->ps);
	if (err)
		pr_err("Cannot end the persistent session '%s': %s\n", r->ps->name,
		       str_error_r(-err, msg, sizeof(msg)));
	else if (!quiet)
		fprintf(stderr, "[ perf record: persistent session '%s' ended ]\n", r->ps->name);
	return err;
}

/**
 * persistent__record - snapshot a persistent session into a file
 * @p: the options of persistent events
 * @opts: the other options of perf record
 * @data: the file to write
 * @argc: number of words of the command to run
 * @argv: the command
 *
 * The session is only ended (--kill) when the file has been written.
 *
 * Return: 0, the exit status of the command, or a negative errno.
 */
int persistent__record(struct persistent_opts *p, struct record_opts *opts,
		       struct perf_data *data, int argc, const char **argv)
{
	struct reader r = {
		.opts = opts,
		.data = data,
	};
	int err;

	err = persistent__check_support();
	if (!err)
		err = reader__open(&r, p->read);
	if (!err)
		err = reader__take(&r, 0);
	if (!err)
		err = reader__create_evlist(&r);
	if (!err)
		err = reader__create_file(&r, p->no_buildid);
	if (!err)
		err = reader__fill_file(&r, p->no_buildid, argc ? argv : NULL);
	if (err < 0) {
		if (r.session)
			pr_err("%s could not be written whole.\n", data->path);
		reader__remove_file(&r);
		goto out;
	}

	if (!quiet)
		reader__print(&r);
	if (p->kill)
		err = reader__kill(&r) ?: err;
out:
	reader__exit(&r);
	return err;
}
