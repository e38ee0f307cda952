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
 */
#include "persistent.h"
#include "reader.h"
#include "../build-id.h"
#include "../data.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../header.h"
#include "../record.h"
#include "../sample.h"
#include "../session.h"
#include "../snapshot-cover.h"
#include "../symbol.h"
#include "../synthetic-events.h"
#include "../target.h"
#include "../tool.h"
#include "../trace-event.h"
#include "../util.h"

#include <internal/lib.h>
#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static sig_atomic_t workload_errno;
static sig_atomic_t workload_pid;

/* The file */

static int reader__write(struct persistent_reader *r, void *buf, size_t size)
{
	if (perf_data_file__write(&r->data->file, buf, size) < 0) {
		pr_err("Cannot write %s: %m\n", r->data->path);
		return -EIO;
	}
	r->bytes += size;
	return 0;
}

static int process_sample(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct evsel *evsel,
			  struct machine *machine)
{
	struct persistent_reader *r = container_of(tool, struct persistent_reader, tool);

	if (!r->evlist->first_sample_time)
		r->evlist->first_sample_time = sample->time;
	r->evlist->last_sample_time = sample->time;

	return build_id__mark_dso_hit(tool, event, sample, evsel, machine);
}

static int reader__create_file(struct persistent_reader *r, bool no_buildid)
{
	struct perf_tool *tool = &r->tool;
	int err;

	perf_tool__init(tool, /*ordered_events=*/true);
	tool->sample	 = process_sample;
	tool->fork	 = perf_event__process_fork;
	tool->exit	 = perf_event__process_exit;
	tool->comm	 = perf_event__process_comm;
	tool->namespaces = perf_event__process_namespaces;
	tool->mmap	 = perf_event__process_mmap;
	tool->mmap2	 = perf_event__process_mmap2;

	err = persistent_reader__create_session(r, no_buildid);
	return err ?: perf_session__write_header(r->session, r->evlist, perf_data__fd(r->data),
						 false);
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

static int reader__write_lost(struct persistent_reader *r)
{
	for (int i = 0; i < r->ps->nr_events; i++) {
		const struct persistent_event *event = &r->ps->events[i];
		struct perf_record_lost_samples_and_ids lost = {
			.lost.header.type = PERF_RECORD_LOST_SAMPLES,
		};
		struct perf_sample sample = { .id = event->id, .cpu = event->cpu };
		int id_size, err;
		u64 count;

		if (!persistent_reader__wants(r, event) || !read_lost(event, &count) || !count)
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

static int reader__finish_file(struct persistent_reader *r, bool no_buildid)
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
static void reader__remove_file(struct persistent_reader *r)
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
static int reader__run(struct persistent_reader *r, const char **argv)
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

static void buffer__print(const struct persistent_buffer *buf)
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

static void reader__print(struct persistent_reader *r)
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

static int reader__fill_file(struct persistent_reader *r, bool no_buildid, const char **argv)
{
	int err, status = 0;

	err = persistent_reader__synthesize(r);
	if (!err)
		err = persistent_reader__put_pass(r);
	if (err)
		return err;

	if (argv) {
		status = reader__run(r, argv);
		if (status < 0)
			return status;

		err = persistent_reader__take(r, PERF_SNAPSHOT_INCREMENTAL);
		if (!err)
			err = persistent_reader__put_pass(r);
	}
	if (!err)
		err = reader__write_lost(r);
	if (!err)
		err = reader__finish_file(r, no_buildid);
	return err ?: status;
}

static int reader__kill(struct persistent_reader *r)
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
	struct persistent_reader r = {
		.put = reader__write,
		.opts = opts,
		.data = data,
	};
	int err;

	err = persistent__check_support();
	if (!err)
		err = persistent_reader__open(&r, p->read);
	if (!err)
		err = persistent_reader__take(&r, 0);
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
	persistent_reader__exit(&r);
	return err;
}
