// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder whose events are those of a persistent session
 *
 * perf record -M SIZE -e persistent/NAME/ reads the session's buffers incrementally and
 * keeps what it read as rounds, like those of its own events. The session goes on
 * whatever becomes of the recorder. One that is started again after SIGKILL begins
 * with all that the buffers hold; what had left them is lost with the memory of the
 * recorder, unless it was dumped.
 *
 * What names the records, from the oldest to the newest:
 *
 *	OUT.auxiliary of the recorder before, if it was of this session: tasks that
 *		have exited since
 *	/proc, read behind the first copy of the buffers: tasks that live
 *	side-band records in the buffers
 *
 * Wake-ups are those of the buffers, when half of one has been written since the last
 * one, and what the recorder's triggers want.
 *
 * Memory: copies of what is new, and the pages of the buffers as they are mapped, count
 * against SIZE, and what is left of it is the recorder's. A first pass may hold all that
 * the buffers do, and must find room in the store even when the side-band has taken
 * its half.
 */
#include "session.h"
#include "../options.h"
#include "../recorder.h"
#include "../trigger/triggers.h"
#include "../../data.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../persistent/persistent.h"
#include "../../persistent/reader.h"
#include "../../record.h"
#include "../../target.h"
#include "../../util.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/snapshot.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/**
 * struct source - a session on its way into a recorder
 * @reader: the session
 * @fo: the options, with the memory that is left for the recorder
 * @fr: the recorder
 * @pfds: what to wait for: the recorder, then the buffers
 * @nr_live: buffers that may be written to again
 * @in_pass: what the reader hands on was in a buffer
 */
struct source {
	struct persistent_reader	reader;
	struct flight_opts		fo;
	struct flight_recorder		*fr;
	struct pollfd			*pfds;
	int				nr_live;
	bool				in_pass;
};

static sig_atomic_t done;
static sig_atomic_t ended_by;
static sig_atomic_t workload_errno;

static void end_handler(int signo)
{
	if (signo != SIGCHLD)
		ended_by = signo;
	done = 1;
}

static void workload_failed(int signo __maybe_unused, siginfo_t *info,
			    void *context __maybe_unused)
{
	workload_errno = info->si_value.sival_int;
	done = 1;
}

static int put(struct persistent_reader *r, void *buf, size_t size)
{
	struct source *s = container_of(r, struct source, reader);
	const union perf_event *event = buf;

	if (s->in_pass && event->header.type != PERF_RECORD_FINISHED_ROUND)
		flight_recorder__append(s->fr, buf, size);
	else
		return flight_recorder__store(s->fr, NULL, buf, size);
	return 0;
}

static bool knows(struct persistent_reader *r, pid_t pid)
{
	return flight_recorder__knows(container_of(r, struct source, reader)->fr, pid);
}

static int put_pass(struct source *s)
{
	int err;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		const struct persistent_buffer *buf = &s->reader.buffers[i];
		const struct perf_snapshot_info *info = perf_snapshot__info(buf->snap);

		if (buf->err)
			continue;
		if (info->gap)
			flight_recorder__missed(s->fr, info->gap, buf->sideband);
		if (!buf->sideband)
			flight_recorder__cover(s->fr, buf->event->cpu,
					       perf_snapshot__way_name(info->way), info->gap);
	}
	s->in_pass = true;
	err = persistent_reader__put_pass(&s->reader);
	s->in_pass = false;
	return err;
}

static int pass(struct source *s)
{
	int err = persistent_reader__take(&s->reader, PERF_SNAPSHOT_INCREMENTAL);

	/* The writer was too fast; what it overwrote is told by the next pass. */
	if (err == -EAGAIN)
		return 0;
	return err ?: put_pass(s);
}

/* What a measurement begins with is not what comes in its time. */
static void drop_pass(struct source *s)
{
	for (int i = 0; i < s->reader.nr_buffers; i++)
		perf_snapshot__release(s->reader.buffers[i].snap);
}

static int share_memory(struct source *s)
{
	u64 total = 0, largest = 0, copies;

	for (int i = 0; i < s->reader.nr_buffers; i++) {
		total += s->reader.buffers[i].len;
		largest = max_t(u64, largest, s->reader.buffers[i].len);
	}
	/* As mapped, as copied, and one of them put in order. */
	copies = 2 * total + largest;
	if (copies > s->fo.memory / 2) {
		pr_err("-M %lluK is not enough to read session '%s', whose buffers have %lluK: give it %lluM.\n",
		       (unsigned long long)s->fo.memory >> 10, s->reader.ps->name,
		       (unsigned long long)total >> 10,
		       (unsigned long long)(2 * copies >> 20) + 1);
		return -EINVAL;
	}
	s->fo.store = s->fo.memory - copies;
	return 0;
}

static int open_source(struct source *s, const struct persistent_opts *p)
{
	int err = persistent__check_support();

	if (!err)
		err = persistent_reader__open(&s->reader, p->read);
	if (!err)
		err = share_memory(s);
	if (!err)
		err = persistent_reader__take(&s->reader, 0);
	perf_tool__init(&s->reader.tool, /*ordered_events=*/false);
	if (!err)
		err = persistent_reader__create_session(&s->reader, /*no_buildid=*/true);
	if (err)
		return err;

	s->fr = flight_recorder__new(&s->fo, s->reader.session, s->reader.evlist);
	s->pfds = calloc(s->reader.nr_buffers + 1, sizeof(*s->pfds));
	if (!s->fr || !s->pfds)
		return -ENOMEM;

	s->pfds[0] = (struct pollfd){ .fd = flight_recorder__fd(s->fr), .events = POLLIN };
	s->nr_live = s->reader.nr_buffers;
	for (int i = 0; i < s->nr_live; i++)
		s->pfds[i + 1] = (struct pollfd){
			.fd	= s->reader.buffers[i].event->fd,
			.events	= POLLIN,
		};
	return 0;
}

static int begin(struct source *s)
{
	int err;

	if (!s->fo.dry_run)
		flight_recorder__recover(s->fr);
	err = persistent_reader__synthesize(&s->reader);
	if (err)
		return err;
	if (s->fo.dry_run)
		drop_pass(s);
	else
		err = put_pass(s);
	if (!err)
		flight_recorder__missed(s->fr, 0, true);
	return err;
}

static int prepare_workload(struct source *s, const char **argv)
{
	struct target target = { .system_wide = true };

	if (!argv)
		return 0;
	if (evlist__prepare_workload(s->reader.evlist, &target, argv, false,
				     workload_failed) < 0) {
		pr_err("Cannot run %s.\n", argv[0]);
		return -ECHILD;
	}
	return 0;
}

/* A session that was ended, and a task that is gone, write no more. */
static void wait_for_more(struct source *s)
{
	int nr = poll(s->pfds, s->reader.nr_buffers + 1, -1);

	for (int i = 1; nr > 0 && i <= s->reader.nr_buffers; i++) {
		if (s->pfds[i].fd < 0 || !(s->pfds[i].revents & (POLLHUP | POLLERR | POLLNVAL)))
			continue;
		s->pfds[i].fd = -1;
		if (!--s->nr_live)
			done = 1;
	}
}

/* Return: 0 or a negative errno. */
static int run(struct source *s)
{
	int err = 0;

	while (!err && !done && !flight_recorder__run(s->fr)) {
		wait_for_more(s);
		err = pass(s);
	}
	if (!s->nr_live && !quiet)
		fprintf(stderr, "[ perf record: persistent session '%s' has ended ]\n",
			s->reader.ps->name);
	return err;
}

/* Return: the exit status of the command, or a negative errno. */
static int end_workload(struct source *s)
{
	pid_t pid = s->reader.evlist->workload.pid;
	char msg[STRERR_BUFSIZE];
	int status;

	if (pid <= 0)
		return 0;
	if (ended_by || workload_errno)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (workload_errno) {
		pr_err("Cannot run the command: %s\n",
		       str_error_r(workload_errno, msg, sizeof(msg)));
		return -workload_errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int record(struct source *s, const char **argv)
{
	int err, status;

	err = prepare_workload(s, argv);
	if (!err)
		err = flight_recorder__start(s->fr, s->reader.evlist->workload.pid);
	if (err)
		return err;
	if (argv)
		evlist__start_workload(s->reader.evlist);

	err = run(s);
	status = end_workload(s);
	if (!err && status >= 0)
		err = pass(s);
	return flight_recorder__finish(s->fr, !err && status >= 0) ?: err ?: status;
}

/**
 * flight_recorder__record_persistent - a flight recorder of a persistent session
 * @fo: the options of the flight recorder
 * @p: the options of persistent events
 * @opts: the other options of perf record
 * @data: the file that perf record would write
 * @argc: number of words of the command to run
 * @argv: the command
 *
 * Return: 0, the exit status of the command, or a negative errno.
 */
int flight_recorder__record_persistent(const struct flight_opts *fo,
				       const struct persistent_opts *p,
				       struct record_opts *opts, struct perf_data *data,
				       int argc, const char **argv)
{
	struct source s = {
		.reader.put	= put,
		.reader.knows	= knows,
		.reader.opts	= opts,
		.reader.data	= data,
		.fo		= *fo,
	};
	int err;

	signal(SIGINT, end_handler);
	signal(SIGTERM, end_handler);
	signal(SIGCHLD, end_handler);
	err = open_source(&s, p);
	if (!err)
		err = begin(&s);
	if (!err)
		err = record(&s, argc ? argv : NULL);

	flight_recorder__delete(s.fr);
	persistent_reader__exit(&s.reader);
	free(s.pfds);
	if (ended_by && err >= 0) {
		signal(ended_by, SIG_DFL);
		raise(ended_by);
	}
	return err;
}
