// SPDX-License-Identifier: GPL-2.0
/*
 * The child that writes a dump, OUT.auxiliary or a manifest, while recording continues
 *
 *	recorder				child
 *	-------------------------------------------------------------------------
 *	flight_job__begin(): pipe, fork()
 *	records, and overwrites records		gather() records that are not in the store
 *	that the child has a copy of		write the file
 *						settle_dump(): --max-files, --on-dump
 *						write a struct dump_result to the pipe
 *	poll() on the pipe returns		print messages, exit
 *	flight_job__end(): read it
 *
 * fork() gives the child a snapshot of the store. The ring is shared memory, which fork()
 * does not copy; the recorder does not overwrite records that the child has not read, as
 * long as there is reserve memory. See ring-memory.c.
 * At that time perf record has no other thread that takes a lock: with -M, the one for BPF
 * side-band is not started, and those of trigger/psi.c only format names
 * and make system calls.
 *
 * The child ignores the signals that end the recorder or trigger a dump, because its own
 * dump must be completed. If the pipe is closed without a result, the child has died: the
 * dump has failed, and recording continues.
 *
 * The recorder does not wait for the disk of its dumps. Only children access their files,
 * and while it records, the recorder waits for no child:
 *
 *	child reports, still exits		leaving[]: it is reaped later
 *	child is not done by the deadline	SIGKILL; the dump has failed, and is tried again
 *	and does not die, as the disk hangs	leaving[]; another child is forked for the
 *						next job, up to FLIGHT_MAX_LEAVING of them
 *	all of these hang			no dump is begun, not even the last one
 *	fork() fails				the dump is tried again; the last one is
 *						written by the recorder itself
 *
 * Files that a killed child has left behind are removed by the next child. Messages are
 * printed by the next child as well (flight_job__say()), because the log may be on the same
 * disk, or its reader may be stopped. A child prints messages after it has reported, when
 * the recorder no longer waits for it. A child that has only messages does not access the
 * disk before. Another child opens the log at SIGHUP, see daemon.c.
 *
 * At its end the recorder waits for its last children, and tells the service manager so.
 *
 * With --max-dump-age each child that may access the disk removes dumps that are too old. If
 * there is no other work for that long, one is forked for it.
 *
 * Messages and corrections of manifests are kept until the child that is to deal with them
 * has reported. Each trigger has the manifest of its own last dump.
 *
 * If memory runs out, the child is killed first: the recorder still has the records, and can
 * fork another. The child closes all files of the recorder after it has copied what it
 * needs, see child.c.
 *
 * A dump is often wanted because too many tasks compete for the CPUs. From
 * flight_job__begin() on, the recorder and the child have a nice value of DUMP_NICE:
 *
 *	fork() fails				the recorder restores its own at once
 *	the dump is complete, or has failed	the child restores it, before --on-dump
 *	the child has reported, died, or was	the recorder restores it, in
 *	given up				flight_job__end()
 *
 * The recorder has the value of the child, as it may have to share a CPU with it, and must
 * read its buffers meanwhile. A child that was given up keeps the value, but does not run
 * again: SIGKILL is pending.
 *
 * The end of a child causes SIGCHLD, which perf record would take for the end of its
 * workload. The handler in this file checks whether the workload has ended, and only then
 * calls perf record's handler.
 */
#include "job.h"
#include "child.h"
#include "daemon.h"
#include "dump/dump.h"
#include "dump/files.h"
#include "dump/on-dump.h"
#include "options.h"
#include "self.h"
#include "store/flight-store.h"
#include "store/sideband-store.h"
#include "trigger/triggers.h"
#include "wakeup.h"
#include "../debug.h"
#include "../record-source.h"
#include "../time-utils.h"

#include <api/fs/fs.h>
#include <internal/lib.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* After SIGKILL a child that does not wait for a disk is gone at once. */
#define TIME_TO_DIE	((u64)(2 * NSEC_PER_SEC))

/* Until a dump is complete: about 9 times the share of a task with a nice value of 0. */
#define DUMP_NICE	(-10)

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

/* Without the privilege all is as before. The recorder prints nothing: see above. */
static void hurry(struct flight_job *job)
{
	job->nice = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, min(job->nice, DUMP_NICE));
}

static void hurry_no_more(const struct flight_job *job)
{
	setpriority(PRIO_PROCESS, 0, job->nice);
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

/* Old dumps make room for this one. */
static void write_dump(const struct dump_source *source, const struct dump_request *request,
		       struct dump_result *result)
{
	do {
		result->err = dump__write(source, request, result);
	} while ((result->err == -ENOSPC || result->err == -EDQUOT) &&
		 dump_files__remove_oldest(request->out));
}

/* The kernel lowers it when samples take too long. There are gaps where it was exceeded. */
static void tell_sample_rate(int before)
{
	int rate;

	if (!sysctl__read_int("kernel/perf_event_max_sample_rate", &rate) && rate < before)
		pr_err("kernel.perf_event_max_sample_rate was lowered from %d to %d since the recorder has started: events with a higher rate are throttled. Use a lower -F.\n",
		       before, rate);
}

/* The steps after a dump. The child takes them, so a failure does not harm the recorder. */
static int settle_dump(const struct flight_opts *fo, const char *path, const char *action)
{
	/* It is about to become part of another file, and to go. */
	bool goes = !fo->keep && !strcmp(action, flight_action__name(FLIGHT_ACTION_COMBINE));
	bool archive = fo->archive && !goes;

	dump_files__bound(fo->out, path, fo->max_files, fo->max_disk);
	return fo->on_dump || archive ? on_dump__run(fo->on_dump, path, archive) : 0;
}

/* The child has a copy of the store, so that it may take apart what waits to be folded. */
static int gather(struct flight_job *job, const struct dump_request *request, u64 until,
		  struct dump_source *source)
{
	bool in_kernel = request && job->source && job->source->ops->take;
	int nr = flight_store__take_waiting(job->store, &source->waiting);

	source->nr_waiting = max(nr, 0);
	if (in_kernel)
		source->kernel = job->source->ops->take(job->source, until);
	return nr >= 0 && (source->kernel || !in_kernel) ? 0 : -ENOMEM;
}

/* Messages do not wait for a disk that hangs. */
static bool corrects(const struct flight_job *job, enum flight_job_kind kind)
{
	return kind != FLIGHT_JOB_REST || !*job->messages;
}

static void correct_manifests(const struct flight_job *job)
{
	for (const struct flight_trigger *t = job->opts->triggers; t; t = t->next)
		last_manifest__correct(&t->last);
}

/* Return: why --on-dump could not be started, or 0. */
static int do_work(struct flight_job *job, enum flight_job_kind kind,
		   const struct dump_request *request, u64 until, struct dump_result *result,
		   int fd)
{
	const struct flight_store *st = job->store;
	struct dump_source source = {
		.session	= job->session,
		.evlist		= st->evlist,
		.ring		= st->ring,
		.fair		= st->fair,
		.sideband	= st->sideband,
		.covers		= st->covers,
		.preamble	= st->preamble,
		.preamble_len	= st->preamble_len,
		.self		= job->self,
	};

	if (kind != FLIGHT_JOB_REST)
		result->err = gather(job, request, until, &source);
	if (fd >= 0)
		flight_child__close_but(fd, on_dump__fd());
	if (!corrects(job, kind))
		return 0;
	dump__remove_stale(job->opts->out);
	if (!result->err && kind == FLIGHT_JOB_DUMP)
		write_dump(&source, request, result);
	else if (!result->err && kind == FLIGHT_JOB_AUXILIARY)
		result->err = dump__write_auxiliary(&source, job->opts->out);
	if (kind == FLIGHT_JOB_DUMP)
		hurry_no_more(job);
	correct_manifests(job);
	dump_files__expire(job->opts->out, job->opts->max_dump_age);
	if (result->err || kind != FLIGHT_JOB_DUMP)
		return 0;
	return settle_dump(job->opts, result->path, request->action);
}

/* The last thing that a child does. What it prints to may be stopped. */
static void print_messages(const struct flight_job *job, enum flight_job_kind kind,
			   const struct dump_request *request,
			   const struct dump_result *result, int settle_err)
{
	if (*job->messages)
		pr_err("%s", job->messages);
	if (kind != FLIGHT_JOB_DUMP)
		return;
	if (!result->err)
		print_result(result, request->reason);
	else if (*result->path)
		pr_err("The dump %s could not be written: %s. Recording goes on.\n",
		       result->path, strerror(-result->err));
	else
		pr_err("There is no memory for a dump. Recording goes on.\n");
	tell_sample_rate(job->max_sample_rate);
	if (settle_err)
		pr_err("--on-dump or --archive could not be started: %s\n",
		       strerror(-settle_err));
}

static void run_child(struct flight_job *job, enum flight_job_kind kind,
		      const struct dump_request *request, u64 until, int fd)
{
	struct dump_result result = {};
	int settle_err;

	flight_child__begin();
	flight_child__be_killed_first();
	settle_err = do_work(job, kind, request, until, &result, fd);
	if (writen(fd, &result, sizeof(result)) != sizeof(result))
		_exit(1);
	print_messages(job, kind, request, &result, settle_err);
	fflush(NULL);
	if (!corrects(job, kind))
		dump__remove_stale(job->opts->out);
	_exit(0);
}

/* In the recorder */

/* Those that have exited meanwhile. Without such children it costs nothing. */
static void reap(struct flight_job *job)
{
	int nr = 0;

	for (int i = 0; i < job->nr_leaving; i++) {
		if (!waitpid(job->leaving[i], NULL, WNOHANG))
			job->leaving[nr++] = job->leaving[i];
	}
	job->nr_leaving = nr;
}

/* One that has reported, and cannot print, does not keep others from being forked. */
static void make_room(struct flight_job *job)
{
	reap(job);
	if (job->nr_leaving < FLIGHT_MAX_LEAVING - 1)
		return;
	for (int i = 0; i < job->nr_leaving; i++)
		kill(job->leaving[i], SIGKILL);
}

/* A child has been forked, which is to print and to correct what there is. */
static void hand_over(struct flight_job *job, enum flight_job_kind kind)
{
	job->told = strlen(job->messages);
	if (!corrects(job, kind))
		return;
	job->expiry_due = rdclock() + clamp(job->opts->max_dump_age / FLIGHT_EXPIRIES_PER_AGE,
					    FLIGHT_MIN_EXPIRY_INTERVAL,
					    FLIGHT_MAX_EXPIRY_INTERVAL);
	for (struct flight_trigger *t = job->opts->triggers; t; t = t->next) {
		t->last.correcting = t->last.wrong;
		t->last.wrong = false;
	}
}

/* It has done so, or not. Then the next one is to do it. */
static void take_back(struct flight_job *job, bool done)
{
	if (done)
		memmove(job->messages, job->messages + job->told,
			strlen(job->messages + job->told) + 1);
	job->told = 0;
	for (struct flight_trigger *t = job->opts->triggers; t; t = t->next) {
		if (t->last.correcting && !done) {
			t->last.wrong = true;
			job->correction_due = rdclock() + FLIGHT_AUXILIARY_INTERVAL;
		}
		t->last.correcting = false;
	}
}

static bool has_corrections(const struct flight_job *job)
{
	for (const struct flight_trigger *t = job->opts->triggers; t; t = t->next) {
		if (t->last.wrong)
			return true;
	}
	return false;
}

static int begin(struct flight_job *job, enum flight_job_kind kind,
		 const struct dump_request *request, u64 until)
{
	int fds[2], err;

	make_room(job);
	if (job->nr_leaving == FLIGHT_MAX_LEAVING)
		return -EBUSY;
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* Before the fork: if it fails, there is no child to wait for. */
	err = flight_wakeup__watch(job->wakeup, fds[0]);
	if (err)
		goto out_close;
	flight_store__flush(job->store);
	flight_store__fence(job->store);
	fflush(NULL);
	job->pid = fork();
	if (!job->pid) {
		flight_store__forked(job->store);
		run_child(job, kind, request, until, fds[1]);
	}
	if (job->pid < 0) {
		err = -errno;
		job->pid = 0;
		flight_store__unfence(job->store);
		goto out_close;
	}
	close(fds[1]);
	job->fd = fds[0];
	job->kind = kind;
	job->killed = false;
	job->deadline = rdclock() + job->opts->dump_timeout;
	hand_over(job, kind);
	return 0;

out_close:
	close(fds[0]);
	close(fds[1]);
	return err;
}

/**
 * flight_job__begin - fork a child that writes a dump
 * @job: no child is there
 * @request: the dump to write
 * @until: time of the last sample that is wanted of what the kernel's buffers hold
 *
 * Return: 0 or a negative errno. Then there is no child.
 */
int flight_job__begin(struct flight_job *job, const struct dump_request *request, u64 until)
{
	int err;

	hurry(job);
	err = begin(job, FLIGHT_JOB_DUMP, request, until);
	if (err)
		hurry_no_more(job);
	return err;
}

/**
 * flight_job__write_here - write a dump without a child
 * @job: no child is there
 * @request: the dump to write, the last one
 * @until: as for flight_job__begin()
 *
 * Not if flight_job__begin() has returned -EBUSY: children hang on the disk, and so would
 * the recorder.
 *
 * The store cannot be used afterwards.
 *
 * Return: 0 or -ENOMEM. flight_job__end() has the result of the dump.
 */
int flight_job__write_here(struct flight_job *job, const struct dump_request *request, u64 until)
{
	int settle_err;

	job->here = zalloc(sizeof(*job->here));
	if (!job->here)
		return -ENOMEM;
	hurry(job);
	flight_store__flush(job->store);
	job->kind = FLIGHT_JOB_DUMP;
	settle_err = do_work(job, FLIGHT_JOB_DUMP, request, until, job->here, -1);
	print_messages(job, FLIGHT_JOB_DUMP, request, job->here, settle_err);
	hand_over(job, FLIGHT_JOB_DUMP);
	take_back(job, true);
	return 0;
}

/* Only what is new: the first failure, not one a minute. */
static void report_auxiliary(struct flight_job *job, int err)
{
	if (err && !job->auxiliary_failed)
		flight_job__say(job, "%s.auxiliary could not be written: %s. Recording goes on.\n",
				job->opts->out, strerror(-err));
	job->auxiliary_failed = err;
}

/**
 * flight_job__begin_auxiliary - write OUT.auxiliary, if there is something new
 * @job: no child is there
 * @now: CLOCK_MONOTONIC in ns
 *
 * A session outlives its recorder, and so do samples in its buffers: the next recorder
 * needs to know their tasks. Otherwise there is no use for the file.
 */
void flight_job__begin_auxiliary(struct flight_job *job, u64 now)
{
	u64 news = job->store->sideband_news;
	int err;

	job->auxiliary_due = now + FLIGHT_AUXILIARY_INTERVAL;
	/* The kernel does not tell of a cgroup's end. */
	sideband_store__doubt_all(job->store->sideband);
	if (!job->opts->persistent || (news == job->auxiliary_news && !job->auxiliary_failed))
		return;
	job->auxiliary_news = news;
	err = begin(job, FLIGHT_JOB_AUXILIARY, NULL, 0);
	if (err)
		report_auxiliary(job, err);
}

/**
 * flight_job__begin_rest - print messages, correct manifests, remove dumps, if that is wanted
 * @job: no child is there
 * @now: CLOCK_MONOTONIC in ns
 *
 * If there can be no child now, a later one does it. Messages go first, alone.
 */
void flight_job__begin_rest(struct flight_job *job, u64 now)
{
	bool due = (now >= job->correction_due && has_corrections(job)) ||
		   (now >= job->expiry_due && job->opts->max_dump_age);

	if ((due || *job->messages) && now >= job->rest_due &&
	    begin(job, FLIGHT_JOB_REST, NULL, 0))
		job->rest_due = now + NSEC_PER_SEC;
}

/**
 * flight_job__next_expiry - when dumps are to be removed next
 * @job: the child, if there is one
 *
 * Return: CLOCK_MONOTONIC in ns, or -1 if there is no limit, or a child is there.
 */
u64 flight_job__next_expiry(const struct flight_job *job)
{
	if (!job->opts->max_dump_age || job->opts->dry_run || job->pid)
		return -1ULL;
	return max(job->expiry_due, job->rest_due);
}

/**
 * flight_job__say - print a message, without waiting for what it is printed to
 * @job: whose next child prints it
 * @fmt: like printf()
 */
void flight_job__say(struct flight_job *job, const char *fmt, ...)
{
	size_t len = strlen(job->messages);
	va_list args;

	va_start(args, fmt);
	vscnprintf(job->messages + len, sizeof(job->messages) - len, fmt, args);
	va_end(args);
}

bool flight_job__is_busy(const struct flight_job *job)
{
	return job->pid || job->here;
}

/**
 * flight_job__has_ended - look after the child
 * @job: the child, if there is one
 * @now: CLOCK_MONOTONIC in ns
 *
 * Return: whether flight_job__end() does not have to wait.
 */
bool flight_job__has_ended(struct flight_job *job, u64 now)
{
	struct pollfd pfd = { .fd = job->fd, .events = POLLIN };

	if (job->nr_leaving)
		reap(job);
	if (!job->pid || poll(&pfd, 1, 0) > 0)
		return flight_job__is_busy(job);
	if (now < job->deadline)
		return false;
	if (job->killed)
		return true;
	kill(job->pid, SIGKILL);
	job->killed = true;
	job->deadline = now + TIME_TO_DIE;
	return false;
}

/* Return: whether the child has told all; false if it has died, or waits for a disk. */
static bool read_result(struct flight_job *job, struct dump_result *result)
{
	struct pollfd pfd = { .fd = job->fd, .events = POLLIN };

	while (!flight_job__has_ended(job, rdclock()) &&
	       poll(&pfd, 1, MSEC_PER_SEC) <= 0) {
		if (job->opts->daemon)
			flight_daemon__wait(rdclock(), NSEC_PER_SEC);
	}
	return poll(&pfd, 1, 0) > 0 && readn(job->fd, result, sizeof(*result)) == sizeof(*result);
}

static void end_child(struct flight_job *job, struct dump_result *result)
{
	bool done = read_result(job, result);

	if (!done)
		result->err = job->killed ? -ETIMEDOUT : -ECHILD;
	if (job->kind == FLIGHT_JOB_DUMP)
		hurry_no_more(job);
	take_back(job, done);
	close(job->fd);
	job->fd = -1;
	job->leaving[job->nr_leaving++] = job->pid;
	job->pid = 0;
	/* A child that hangs reads the ring no more: SIGKILL is pending. */
	flight_store__unfence(job->store);
	reap(job);
	if (result->err == -ETIMEDOUT)
		flight_job__say(job, "The child that wrote a file did not finish in %" PRIu64
				" s and was killed: does the disk of %s hang? See --dump-timeout. Recording goes on.\n",
				(u64)(job->opts->dump_timeout / NSEC_PER_SEC), job->opts->out);
	else if (result->err == -ECHILD && job->kind == FLIGHT_JOB_DUMP)
		flight_job__say(job,
				"The child that wrote a dump died: was it killed for lack of memory? See the kernel's log. Recording goes on.\n");
}

/**
 * flight_job__end - take the result of the child, and wait for it
 * @job: the child
 * @result: what became of the file; -ECHILD if the child died, -ETIMEDOUT if it hung
 */
void flight_job__end(struct flight_job *job, struct dump_result *result)
{
	if (job->here) {
		*result = *job->here;
		zfree(&job->here);
		return;
	}
	end_child(job, result);
	if (job->kind == FLIGHT_JOB_AUXILIARY)
		report_auxiliary(job, result->err);
}

/**
 * flight_job__drain - wait until all children have exited, but for those that hang
 * @job: no child is there that has not reported
 *
 * perf record waits for its workload next, by wait().
 */
void flight_job__drain(struct flight_job *job)
{
	u64 deadline = rdclock() + TIME_TO_DIE;

	for (reap(job); job->nr_leaving && rdclock() < deadline; reap(job))
		usleep(USEC_PER_MSEC);
}

void flight_job__exit(struct flight_job *job)
{
	if (*job->messages)
		pr_err("%s", job->messages);
	zfree(&job->here);
}
