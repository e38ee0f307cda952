// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -e persistent/NAME/: write a live snapshot of a persistent session to a
 * perf.data file
 *
 * The file is one that any perf can read: its attributes and ids are those of the real
 * events, as PERF_EVENT_IOC_PERSISTENT_INFO gives them.
 *
 * This is a source of perf record's main loop (see record-source.h). The order:
 *
 *   open		open all events, map their buffers, and copy these back to back,
 *			samples before side-band. Nothing is written or synthesized before:
 *			that would fill the buffers with perf's own records and overwrite
 *			the ones that are wanted. Side-band comes last, so that it covers
 *			all samples.
 *   synthesize		describe the kernel and the processes that live now
 *   first read		write the copies, each from its oldest record to its newest.
 *			PERF_RECORD_FINISHED_ROUND ends them. Without a command that is all.
 *   last read		with a command: copy and write what came since
 *   finish		lost counts, build-ids, header; then the report, then --kill
 *   delete		remove the file if it was not completed
 *
 * The buffers are not read while the command runs: their size bounds what the file gets.
 */
#include "persistent.h"
#include "reader.h"
#include "../base-api.h"
#include "../build-id.h"
#include "../data.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../header.h"
#include "../record.h"
#include "../record-source.h"
#include "../sample.h"
#include "../session.h"
#include "../snapshot-cover.h"
#include "../symbol.h"
#include "../synthetic-events.h"
#include "../trace-event.h"
#include "../util.h"

#include <internal/lib.h>
#include <linux/bitmap.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/**
 * struct session_file - a session on its way into a file
 * @source: what perf record's loop knows of it
 * @reader: the session
 * @p: the options of persistent events
 * @begun: the first copies have been written
 * @whole: the file is complete
 */
struct session_file {
	struct record_source		source;
	struct persistent_reader	reader;
	const struct persistent_opts	*p;
	bool				begun;
	bool				whole;
};

/* The file */

static int reader__write(struct persistent_reader *r, void *buf, size_t size)
{
	if (perf_data_file__write(&r->data->file, buf, size) < 0) {
		pr_err("Cannot write %s: %m\n", r->data->path);
		return -EIO;
	}
	return 0;
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

	r->data->file.size = lseek(fd, 0, SEEK_CUR);
	header->data_size = r->data->file.size - header->data_offset;

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
	if (!no_buildid)
		perf_session__keep_files(r->session);
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

	if (fstat(perf_data__fd(r->data), &file) || lstat(r->data->path, &path))
		return;
	if (S_ISREG(path.st_mode) && path.st_dev == file.st_dev && path.st_ino == file.st_ino)
		unlink(r->data->path);
}

/* The report to the user */

static void buffer__print(const struct persistent_buffer *buf)
{
	const struct snapshot_cover *cover = &buf->cover;
	static const char * const kinds[] = {
		[PERSISTENT_SAMPLES]	= "samples",
		[PERSISTENT_HALVES]	= "user halves",
		[PERSISTENT_SIDEBAND]	= "side-band",
	};
	const char *kind = kinds[buf->kind];
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
	if (buf->event->state & PERF_PERSISTENT_STATE_FROZEN)
		fprintf(stderr, ", frozen");
	if (buf->event->state & PERF_PERSISTENT_STATE_OFFLINE)
		fprintf(stderr, ", CPU offline");
	if (buf->event->state & PERF_PERSISTENT_STATE_GONE)
		fprintf(stderr, ", %s gone",
			buf->event->flags & PERF_PERSISTENT_INFO_CGROUP ? "cgroup" : "task");
	fprintf(stderr, " ]\n");

	if (verbose > 0) {
		snapshot_cover__scnprintf(cover, text, sizeof(text));
		fprintf(stderr, "[ perf record: %s: %s: %s ]\n", where, kind, text);
	}
}

static void reader__print(struct persistent_reader *r)
{
	for (int i = 0; i < r->nr_buffers; i++) {
		if (r->buffers[i].kind == PERSISTENT_SAMPLES || verbose > 0)
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
		       err == -EPERM ? "only its owner and CAP_SYS_ADMIN may" :
		       str_error_r(-err, msg, sizeof(msg)));
	else if (!quiet)
		fprintf(stderr, "[ perf record: persistent session '%s' ended ]\n", r->ps->name);
	return err;
}

/* The source */

static int session_file__open(struct record_source *src)
{
	struct session_file *f = container_of(src, struct session_file, source);
	struct persistent_reader *r = &f->reader;
	int err;

	/* Nothing tells of new records: perf record waits for the command alone. */
	src->fd = epoll_create1(EPOLL_CLOEXEC);
	if (src->fd < 0)
		return -errno;

	err = persistent__check_support();
	if (!err)
		err = persistent_reader__open(r, f->p->read);
	if (!err)
		err = persistent_reader__take(r, 0);
	if (!err)
		err = persistent_reader__describe(r);
	src->evlist = r->evlist;
	return err;
}

static int session_file__synthesize(struct record_source *src)
{
	struct session_file *f = container_of(src, struct session_file, source);

	f->reader.session = src->session;
	return persistent_reader__synthesize(&f->reader);
}

static int session_file__read(struct record_source *src, bool last)
{
	struct session_file *f = container_of(src, struct session_file, source);
	bool forks = evlist__workload_pid(src->evlist) > 0;

	if (!f->begun) {
		f->begun = true;
		src->ended = !forks;
		return persistent_reader__put_pass(&f->reader);
	}
	if (!last || !forks)
		return 0;
	return persistent_reader__take(&f->reader, PERF_SNAPSHOT_INCREMENTAL) ?:
	       persistent_reader__put_pass(&f->reader);
}

/* The session is only ended (--kill) when the file has been written. */
static int session_file__finish(struct record_source *src, int status)
{
	struct session_file *f = container_of(src, struct session_file, source);
	int err = src->err ?: min(status, 0);

	if (!err)
		err = reader__write_lost(&f->reader);
	if (!err)
		err = reader__finish_file(&f->reader, f->p->no_buildid);
	if (err)
		return err;

	f->whole = true;
	if (!quiet)
		reader__print(&f->reader);
	if (f->p->kill)
		err = reader__kill(&f->reader);
	return err ?: status;
}

static void session_file__delete(struct record_source *src)
{
	struct session_file *f = container_of(src, struct session_file, source);

	if (src->session && !f->whole) {
		pr_err("%s could not be written whole.\n", src->data->path);
		reader__remove_file(&f->reader);
	}
	persistent_reader__exit(&f->reader);
	if (src->fd >= 0)
		close(src->fd);
	free(f);
}

static const struct record_source_ops session_file_ops = {
	.open		= session_file__open,
	.synthesize	= session_file__synthesize,
	.read		= session_file__read,
	.finish		= session_file__finish,
	.delete		= session_file__delete,
};

/**
 * persistent__new_source - a persistent session, for a file
 * @p: the options of persistent events, which must last as long
 * @opts: the other options of perf record, likewise
 * @data: the file to write, likewise
 *
 * Return: the source, for record_source__delete(), or NULL if there is no memory.
 */
struct record_source *persistent__new_source(const struct persistent_opts *p,
					     struct record_opts *opts, struct perf_data *data)
{
	struct session_file *f = zalloc(sizeof(*f));

	if (!f)
		return NULL;
	f->source.ops	= &session_file_ops;
	f->source.opts	= opts;
	f->source.data	= data;
	f->source.fd	= -1;
	f->reader.put	= reader__write;
	f->reader.opts	= opts;
	f->reader.data	= data;
	f->p		= p;
	return &f->source;
}
