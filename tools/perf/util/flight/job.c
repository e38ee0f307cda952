// SPDX-License-Identifier: GPL-2.0
/*
 * The child that writes a dump or OUT.auxiliary, while the recorder goes on
 *
 *	recorder				child
 *	-------------------------------------------------------------------------
 *	flight_job__begin(): pipe, fork()
 *	records, and overwrites what		gather() what is not in the store
 *	the child has a copy of then		write the file
 *						settle_dump(): --max-files, --on-dump
 *						write a struct dump_result to the pipe
 *	poll() tells of the pipe
 *	flight_job__end(): read it, wait
 *
 * fork() freezes the store for the child, which shares its memory with the recorder. What
 * the recorder overwrites while the child writes takes memory a second time, for so long.
 * perf record has no other thread then: the one for BPF side-band is not started with -M.
 *
 * The child ignores the signals that end the recorder or trigger a dump, as its own dump
 * is to be completed. A child that dies closes the pipe without a result: the dump has
 * failed, and the recorder goes on.
 *
 * A child ends with SIGCHLD, which perf record takes for the end of its workload. The
 * handler of this file looks whether the workload has ended, and only then passes the
 * signal on.
 */
#include "job.h"
#include "dump/dump.h"
#include "dump/files.h"
#include "dump/on-dump.h"
#include "options.h"
#include "store/flight-store.h"
#include "store/fold-order.h"
#include "store/sideband-store.h"
#include "trigger/triggers.h"
#include "wakeup.h"
#include "../debug.h"
#include "../record-source.h"

#include <internal/lib.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sig_atomic_t workload_pid;
static struct sigaction before_sigchld;

static void sigchld_handler(int signo)
{
	pid_t pid = READ_ONCE(workload_pid);
	siginfo_t info = {};
	int saved_errno = errno;

	/* Several ends may come as one signal: look at the workload itself. */
	if (pid > 0 && !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
	    info.si_pid == pid && before_sigchld.sa_handler != SIG_DFL &&
	    before_sigchld.sa_handler != SIG_IGN)
		before_sigchld.sa_handler(signo);
	errno = saved_errno;
}

/**
 * flight_job__watch_workload - tell the ends of jobs from that of the workload
 * @workload: pid of perf record's command, or -1
 *
 * From then on the handler that SIGCHLD has now is only called for the workload.
 */
void flight_job__watch_workload(pid_t workload)
{
	struct sigaction act = {
		.sa_handler	= sigchld_handler,
		.sa_flags	= SA_RESTART,
	};

	WRITE_ONCE(workload_pid, workload);
	sigemptyset(&act.sa_mask);
	sigaction(SIGCHLD, &act, &before_sigchld);
	/* It may have ended before we looked. */
	if (workload > 0)
		raise(SIGCHLD);
}

/* In the child */

static void print_result(const struct dump_result *result, const char *reason)
{
	if (quiet)
		return;
	fprintf(stderr, "[ perf record: dump %s: %.3f MB, %" PRIu64 " samples of %.3f s (%s)",
		result->path, result->bytes / 1024.0 / 1024.0, result->events,
		(double)(result->newest - result->oldest) / NSEC_PER_SEC, reason);
	if (result->stored < result->raw)
		fprintf(stderr, ", reaching back %.1f times as far for -z",
			(double)result->raw / result->stored);
	fprintf(stderr, " ]\n");
}

static void write_dump(const struct dump_source *source, const struct dump_request *request,
		       struct dump_result *result)
{
	result->err = dump__write(source, request, result);
	if (result->err)
		pr_err("The dump %s could not be written: %s. Recording goes on.\n",
		       result->path, strerror(-result->err));
	else
		print_result(result, request->reason);
}

/* What follows a dump. It is done by the child: a failure does not harm the recorder. */
static void settle_dump(const struct flight_opts *fo, const char *path, const char *action)
{
	/* It is about to become part of another file, and to go. */
	bool goes = !fo->keep && !strcmp(action, flight_action__name(FLIGHT_ACTION_COMBINE));
	bool archive = fo->archive && !goes;
	int err;

	dump_files__bound(fo->out, path, fo->max_files, fo->max_disk);
	err = fo->on_dump || archive ? on_dump__run(fo->on_dump, path, archive) : 0;
	if (err)
		pr_err("--on-dump or --archive could not be started: %s\n", strerror(-err));
}

/* The child has a copy of the store, so that it may take apart what waits to be folded. */
static int gather(struct flight_job *job, const struct dump_request *request, u64 until,
		  struct dump_source *source)
{
	bool in_kernel = request && job->source && job->source->ops->take;
	int nr = fold_order__take(job->store->order, &source->waiting);

	source->nr_waiting = max(nr, 0);
	if (in_kernel)
		source->kernel = job->source->ops->take(job->source, until);
	if (nr >= 0 && (source->kernel || !in_kernel))
		return 0;
	if (request)
		pr_err("There is no memory for a dump. Recording goes on.\n");
	return -ENOMEM;
}

static void run_child(struct flight_job *job, const struct dump_request *request, u64 until,
		      int fd)
{
	const struct flight_store *st = job->store;
	struct dump_source source = {
		.session	= job->session,
		.evlist		= st->evlist,
		.ring		= st->ring,
		.sideband	= st->sideband,
		.covers		= st->covers,
		.preamble	= st->preamble,
		.preamble_len	= st->preamble_len,
	};
	struct dump_result result = {};

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);

	result.err = gather(job, request, until, &source);
	if (!result.err && request)
		write_dump(&source, request, &result);
	else if (!result.err)
		result.err = dump__write_auxiliary(&source, job->opts->out);
	if (request && !result.err)
		settle_dump(job->opts, result.path, request->action);
	fflush(NULL);
	if (writen(fd, &result, sizeof(result)) != sizeof(result))
		_exit(1);
	_exit(0);
}

/* In the recorder */

/**
 * flight_job__begin - fork a child that writes a file
 * @job: no child is there
 * @request: the dump to write; NULL: OUT.auxiliary
 * @until: time of the last sample that is wanted of what the kernel's buffers hold
 *
 * Return: 0 or a negative errno. Then there is no child.
 */
int flight_job__begin(struct flight_job *job, const struct dump_request *request, u64 until)
{
	int fds[2], err;

	if (pipe(fds))
		return -errno;
	/* Before the fork: if it fails, there is no child to wait for. */
	err = flight_wakeup__watch(job->wakeup, fds[0]);
	if (err)
		goto out_close;
	ring_store__flush(job->store->ring);
	fflush(NULL);
	job->pid = fork();
	if (!job->pid) {
		close(fds[0]);
		run_child(job, request, until, fds[1]);
	}
	if (job->pid < 0) {
		err = -errno;
		job->pid = 0;
		goto out_close;
	}
	close(fds[1]);
	job->fd = fds[0];
	job->is_auxiliary = !request;
	return 0;

out_close:
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* Only what is new: the first failure, not one a minute. */
static void report_auxiliary(struct flight_job *job, int err)
{
	if (err && !job->auxiliary_failed)
		pr_err("%s.auxiliary could not be written: %s. Recording goes on.\n",
		       job->opts->out, strerror(-err));
	job->auxiliary_failed = err;
}

/**
 * flight_job__begin_auxiliary - write OUT.auxiliary, if there is something new
 * @job: no child is there
 * @now: CLOCK_MONOTONIC in ns
 */
void flight_job__begin_auxiliary(struct flight_job *job, u64 now)
{
	u64 head = ring_store__head(job->store->ring);
	int err;

	job->auxiliary_due = now + FLIGHT_AUXILIARY_INTERVAL;
	/* The kernel does not tell of a cgroup's end. */
	sideband_store__doubt(job->store->sideband, head);
	if (head == job->auxiliary_head && !job->auxiliary_failed)
		return;
	job->auxiliary_head = head;
	err = flight_job__begin(job, NULL, 0);
	if (err)
		report_auxiliary(job, err);
}

bool flight_job__has_ended(const struct flight_job *job)
{
	struct pollfd pfd = { .fd = job->fd, .events = POLLIN };

	return job->pid && poll(&pfd, 1, 0) > 0;
}

/**
 * flight_job__end - wait for the child
 * @job: the child
 * @result: what became of the file; -ECHILD if the child died
 */
void flight_job__end(struct flight_job *job, struct dump_result *result)
{
	bool whole = readn(job->fd, result, sizeof(*result)) == sizeof(*result);
	int status;

	close(job->fd);
	job->fd = -1;
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	job->pid = 0;
	if (!whole)
		result->err = -ECHILD;
	if (job->is_auxiliary)
		report_auxiliary(job, result->err);
	else if (!whole)
		pr_err("The child that wrote a dump died. Recording goes on.\n");
}
