// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder of perf record -M: records all the time, keeps what is newest,
 * and writes it to a file when something happens
 *
 * perf record opens the events, reads the kernel's buffers, and hands over here what
 * it would write to its file: what it synthesizes, the pieces of the buffers, and
 * PERF_RECORD_FINISHED_ROUND at the end of a pass. The recorder owns everything
 * behind that:
 *
 *	synthesized ---> preamble, side-band store
 *	                                  ^ folded when evicted, in the order
 *	                                  | of the times (fold-order.c)
 *	pieces, rounds ----------> ring store
 *	                                  |
 *	triggers ---> a child, that writes both ---> OUT.sample.TIME
 *	a timer ----> a child, that writes the side-band of both ---> OUT.auxiliary
 *
 * With --overwrite samples stay in the kernel's buffers until there is a dump, see
 * source/backward.c; rounds hold side-band alone.
 *
 * Who bounds what: -M SIZE is one budget. The side-band store may take half of it
 * at most, and what is on its way there an eighth; the ring store has what is left,
 * to the byte, so that it shrinks when the machine has many tasks. The preamble is
 * of fixed size. The kernel's own buffers take no more than a quarter of SIZE, as
 * options.c sees to, so that a pass over them always finds room.
 *
 * States:
 *
 *	trigger:	READY -------------------> HIT -----------------------> READY
 *			      hit, no cooldown         its delay is over, no
 *						       other dump is being written
 *
 *	recorder:	RECORDING -------> RECORDING, child writes ------> RECORDING, or
 *				 dump begins	               child ended	 ENDS if the action
 *									 says so
 *
 * READY and HIT are kept by util/trigger.h. One dump is written at a time. A hit while
 * the trigger is HIT is merged into the dump that is to come; one in the cooldown,
 * which begins with a dump, is swallowed: that dump stands for it. How many these
 * were is told by the manifest, which is corrected when the cooldown is over.
 *
 * A dump begins right behind a pass, with no round open: all that the kernel's
 * buffers held at the trigger is in the store. fork() then freezes the stores for the
 * child, which shares their memory; what the recorder overwrites while the child
 * writes takes memory a second time, for so long. There is no other thread in perf
 * record then: the one for BPF side-band is not started with -M.
 *
 * Signals: SIGUSR1 is the signal trigger's. SIGINT and SIGTERM end perf record, which
 * has the last dump written before it ends. Those and SIGUSR1 are ignored by the
 * child, whose dump is worth as much as any. The child ends with SIGCHLD, which perf
 * record takes for the end of its workload: the handler here passes that on only if
 * it is true.
 *
 * There is one file descriptor to poll for, an epoll of the triggers', of a timer
 * for delays and cooldowns, and of the pipe on which a child reports.
 */
#include "recorder.h"
#include "dump/auxiliary.h"
#include "dump/combine.h"
#include "daemon.h"
#include "dump/dump.h"
#include "dump/files.h"
#include "store/fold-order.h"
#include "source/backward.h"
#include "dump/manifest.h"
#include "dump/on-dump.h"
#include "resident.h"
#include "store/ring-store.h"
#include "store/sideband-store.h"
#include "status.h"
#include "trigger/triggers.h"
#include "../clockid.h"
#include "../cpumap.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../persistent/persistent.h"
#include "../session.h"
#include "../time-utils.h"
#include "../util.h"

#include <internal/lib.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the side-band store may take of the memory at most. */
#define SIDEBAND_SHARE	2

/* And what waits to be folded there. */
#define WAITING_SHARE	8

/* OUT.auxiliary is written anew after each dump, and otherwise that often. */
#define AUXILIARY_INTERVAL	((u64)(60 * NSEC_PER_SEC))

/* How long --dry-run measures. */
#define DRY_RUN_TIME		((u64)NSEC_PER_SEC)

/* How exact --max-age is, and how often that may wake us at most. */
#define PASSES_PER_AGE		8
#define MIN_PASS_INTERVAL	((u64)(100 * NSEC_PER_MSEC))

struct flight_recorder {
	const struct flight_opts	*opts;
	struct perf_session		*session;
	struct evlist			*evlist;
	struct ring_store		*ring;
	struct sideband_store		*sideband;
	struct fold_order		*order;
	u64				folded;		/* rounds before this are, wholly */
	struct round_group		group;		/* of rounds that went, and are not yet: */
	bool				joined;		/* it has begun, */
	u64				joined_from;	/* and where */
	char				*preamble;
	size_t				preamble_len;
	int				epoll_fd;
	int				timer_fd;
	u64				timer_next;
	bool				frozen;
	bool				stopped;
	bool				finished;
	bool				combine;
	u64				last_run;	/* before the last pass */
	u64				last_run_clock;	/* that, on the clock of the records */
	u64				auxiliary_due;
	u64				auxiliary_head;
	bool				auxiliary_failed;
	u64				started;
	u64				missed;
	struct dump_cover		*covers;	/* by CPU, since the last dump */
	u64				seen_refused;
	u64				seen_lost;
	u64				lost_events;
	struct flight_host		host;
	u64				dumps;
	u64				failed;
	u64				swallowed;

	/* The dump that is being written, and the trigger that wanted it. */
	pid_t				child;
	int				child_fd;
	bool				child_is_auxiliary;
	struct flight_trigger		*child_trigger;
	enum flight_action		child_action;
	u64				child_swallowed;

	/* The last dump whose manifest may have to be corrected. */
	struct flight_trigger		*last_trigger;
	u64				last_swallowed;
	char				*last_manifest;
};

static sig_atomic_t workload_pid;
static struct sigaction before_sigchld;

/* Signals */

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

static void watch_workload(pid_t workload)
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

/* Storing */

static int fold_evicted(union perf_event *event, void *data)
{
	struct flight_recorder *fr = data;

	if (!fold_order__add(fr->order, event) && event->header.type == PERF_RECORD_LOST)
		fr->lost_events++;
	return 0;
}

static void round_is_gone(u64 pos, u64 time, void *data)
{
	struct flight_recorder *fr = data;

	if (!fr->joined)
		fr->joined_from = pos;
	fr->joined = true;
	if (!round_group__ends(&fr->group, time))
		return;
	fold_order__end_round(fr->order);
	fr->joined = false;
	fr->folded = fr->joined_from;
}

static int store_preamble(struct flight_recorder *fr, const void *buf, size_t size)
{
	char *preamble = realloc(fr->preamble, fr->preamble_len + size);

	if (!preamble)
		return -ENOMEM;
	memcpy(preamble + fr->preamble_len, buf, size);
	fr->preamble = preamble;
	fr->preamble_len += size;
	return 0;
}

/* The side-band grows and shrinks at the cost of the rounds. */
static void share_memory(struct flight_recorder *fr)
{
	size_t sideband = sideband_store__stats(fr->sideband)->used + fold_order__used(fr->order);

	ring_store__set_budget(fr->ring, fr->opts->store - sideband);
	sideband_store__settle(fr->sideband, fr->folded);
	if (fr->lost_events != fr->seen_lost) {
		fr->seen_lost = fr->lost_events;
		sideband_store__doubt(fr->sideband, ring_store__head(fr->ring));
	}
}

static void finish_round(struct flight_recorder *fr)
{
	u64 now = rdclock();

	ring_store__close_round(fr->ring, now);
	if (fr->opts->max_age && now > fr->opts->max_age)
		ring_store__evict_before(fr->ring, now - fr->opts->max_age);
	share_memory(fr);
}

/**
 * flight_recorder__append - keep records that a ring buffer held
 * @fr: the recorder
 * @buf: a piece of the buffer
 * @size: bytes of it
 */
void flight_recorder__append(struct flight_recorder *fr, const void *buf, size_t size)
{
	/* A round that is too large is counted, and comes in a dump's manifest. */
	if (!fr->finished)
		ring_store__append(fr->ring, buf, size);
}

/**
 * flight_recorder__missed - records were overwritten before they were read
 * @fr: the recorder
 * @bytes: how much
 * @sideband: exits of tasks may be among them
 */
void flight_recorder__missed(struct flight_recorder *fr, u64 bytes, bool sideband)
{
	fr->missed += bytes;
	fr->lost_events += sideband;
}

/**
 * flight_recorder__cover - a buffer of samples was read in another way than perf's own
 * @fr: the recorder
 * @cpu: its CPU
 * @way: how
 * @missed: bytes that were overwritten before
 */
void flight_recorder__cover(struct flight_recorder *fr, int cpu, const char *way, u64 missed)
{
	if (!fr->covers)
		fr->covers = calloc(cpu__max_cpu().cpu, sizeof(*fr->covers));
	if (!fr->covers || cpu < 0 || cpu >= cpu__max_cpu().cpu)
		return;
	fr->covers[cpu].way = way;
	fr->covers[cpu].given_up += missed;
}

/**
 * flight_recorder__recover - take up what the recorder before knew of the tasks
 * @fr: the recorder
 *
 * Before anything is stored.
 */
void flight_recorder__recover(struct flight_recorder *fr)
{
	sideband_store__set_id_hdr_size(fr->sideband, evlist__id_hdr_size(fr->evlist));
	auxiliary__fold(fr->opts->out, fr->evlist, fr->sideband,
			fr->opts->store / WAITING_SHARE);
}

/* Is the process in the state before the records? */
bool flight_recorder__knows(const struct flight_recorder *fr, pid_t pid)
{
	return sideband_store__knows(fr->sideband, pid);
}

/**
 * flight_recorder__store - keep what perf record would write to its file
 * @fr: the recorder
 * @map: the ring buffer that it was found in; NULL for what perf made itself
 * @buf: a piece of that buffer, or one record
 * @size: bytes of it
 *
 * Return: 0 or a negative errno.
 */
int flight_recorder__store(struct flight_recorder *fr, const struct mmap *map,
			   const void *buf, size_t size)
{
	const union perf_event *event = buf;

	if (fr->finished)
		return 0;

	if (map) {
		flight_recorder__append(fr, buf, size);
		return 0;
	}

	switch (event->header.type) {
	case PERF_RECORD_FINISHED_ROUND:
		finish_round(fr);
		return 0;
	case PERF_RECORD_FINISHED_INIT:
		return 0;
	default:
		break;
	}

	if (!sideband_store__is_sideband(event))
		return store_preamble(fr, buf, size);
	sideband_store__set_id_hdr_size(fr->sideband, evlist__id_hdr_size(fr->evlist));
	sideband_store__fold(fr->sideband, event);
	return 0;
}

/* Freezing: samples stop, the side-band of tasks must not. */

static void freeze(struct flight_recorder *fr)
{
	if (!fr->frozen)
		evlist__disable_non_dummy(fr->evlist);
	fr->frozen = true;
}

static void thaw(struct flight_recorder *fr)
{
	if (fr->frozen)
		evlist__enable_non_dummy(fr->evlist);
	fr->frozen = false;
}

/* Dumps */

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

/* What comes behind a dump: in this child, and what fails harms nothing. */
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

/* Have what is not in the stores; only now, as this child may do with it what it likes. */
static int gather(struct flight_recorder *fr, const struct dump_request *request,
		  struct dump_source *source)
{
	int nr = fold_order__take(fr->order, &source->waiting);

	source->nr_waiting = max(nr, 0);
	if (request && fr->opts->overwrite)
		source->kernel = kernel_store__take(fr->evlist, fr->last_run_clock);
	if (nr >= 0 && (source->kernel || !request || !fr->opts->overwrite))
		return 0;
	if (request)
		pr_err("There is no memory for a dump. Recording goes on.\n");
	return -ENOMEM;
}

static void run_child(struct flight_recorder *fr, const struct dump_request *request, int fd)
{
	struct dump_source source = {
		.session	= fr->session,
		.evlist		= fr->evlist,
		.ring		= fr->ring,
		.sideband	= fr->sideband,
		.covers		= fr->covers,
		.preamble	= fr->preamble,
		.preamble_len	= fr->preamble_len,
	};
	struct dump_result result = {};

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);

	result.err = gather(fr, request, &source);
	if (!result.err && request)
		write_dump(&source, request, &result);
	else if (!result.err)
		result.err = dump__write_auxiliary(&source, fr->opts->out);
	if (request && !result.err)
		settle_dump(fr->opts, result.path, request->action);
	fflush(NULL);
	if (writen(fd, &result, sizeof(result)) != sizeof(result))
		_exit(1);
	_exit(0);
}

static int watch(struct flight_recorder *fr, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd >= 0 && epoll_ctl(fr->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Without a request for a dump: for OUT.auxiliary. */
static int fork_child(struct flight_recorder *fr, const struct dump_request *request)
{
	int fds[2], err;

	if (pipe(fds))
		return -errno;
	/* Before there is a child, which nobody would wait for if that failed. */
	err = watch(fr, fds[0]);
	if (err)
		goto out_close;
	ring_store__flush(fr->ring);
	fflush(NULL);
	fr->child = fork();
	if (!fr->child) {
		close(fds[0]);
		run_child(fr, request, fds[1]);
	}
	if (fr->child < 0) {
		err = -errno;
		fr->child = 0;
		goto out_close;
	}
	close(fds[1]);
	fr->child_fd = fds[0];
	fr->child_is_auxiliary = !request;
	return 0;

out_close:
	close(fds[0]);
	close(fds[1]);
	return err;
}

/* To those who wait for it. */
static void tell_result(struct flight_recorder *fr, struct flight_trigger *t,
			const struct dump_result *result)
{
	if (result->err)
		fr->failed++;
	else
		fr->dumps++;
	if (t && t->ops->done)
		t->ops->done(t, result);
}

/* @t: the trigger, or NULL for the dump at the end. */
static int begin_dump(struct flight_recorder *fr, struct flight_trigger *t, const char *reason)
{
	u64 refused = ring_store__stats(fr->ring)->refused_bytes + fr->missed;
	enum flight_action action = t ? max(t->action, t->wanted) : FLIGHT_ACTION_STOP;
	struct dump_request request = {
		.out		= fr->opts->out,
		.trigger	= t ? t->ops->name : "end",
		.reason		= reason,
		.action		= flight_action__name(action),
		.window_asked	= fr->opts->max_age,
		.swallowed	= t ? t->merged : 0,
		.given_up	= refused - fr->seen_refused,
	};
	int err = fork_child(fr, &request);

	fr->child_trigger = t;
	fr->child_action = action;
	if (t)
		t->wanted = FLIGHT_ACTION_DUMP;
	if (t && t->ops->begun)
		t->ops->begun(t);
	if (err) {
		tell_result(fr, t, &(struct dump_result){ .err = err });
		pr_err("A dump (%s) could not be begun: %s. Recording goes on.\n", reason,
		       strerror(-err));
		return err;
	}
	fr->seen_refused = refused;
	for (int i = 0; fr->covers && i < cpu__max_cpu().cpu; i++)
		fr->covers[i].given_up = 0;
	fr->child_swallowed = request.swallowed;
	return 0;
}

/* Only what is new: the first failure, not one a minute. */
static void report_auxiliary(struct flight_recorder *fr, int err)
{
	if (err && !fr->auxiliary_failed)
		pr_err("%s.auxiliary could not be written: %s. Recording goes on.\n",
		       fr->opts->out, strerror(-err));
	fr->auxiliary_failed = err;
}

static void begin_auxiliary(struct flight_recorder *fr, u64 now)
{
	u64 head = ring_store__head(fr->ring);
	int err;

	fr->auxiliary_due = now + AUXILIARY_INTERVAL;
	/* The kernel does not tell of a cgroup's end. */
	sideband_store__doubt(fr->sideband, head);
	if (head == fr->auxiliary_head && !fr->auxiliary_failed)
		return;
	fr->auxiliary_head = head;
	err = fork_child(fr, NULL);
	if (err)
		report_auxiliary(fr, err);
}

static void remember_manifest(struct flight_recorder *fr, struct flight_trigger *t,
			      const struct dump_result *result)
{
	zfree(&fr->last_manifest);
	fr->last_trigger = t;
	fr->last_swallowed = fr->child_swallowed;
	if (t && asprintf(&fr->last_manifest, "%s.json", result->path) < 0)
		fr->last_manifest = NULL;
}

/* The cooldown is over: the last dump stands for all that was swallowed since. */
static void correct_manifest(struct flight_recorder *fr)
{
	struct flight_trigger *t = fr->last_trigger;
	int err;

	if (!fr->last_manifest || !t->swallowed)
		return;
	err = manifest__set_swallowed(fr->last_manifest, fr->last_swallowed + t->swallowed);
	if (err)
		pr_debug("cannot correct %s: %s\n", fr->last_manifest, strerror(-err));
	fr->last_swallowed += t->swallowed;
	t->swallowed = 0;
}

/* Return: 1 if the dump was the last one wanted. */
static int end_dump(struct flight_recorder *fr)
{
	struct flight_trigger *t = fr->child_trigger;
	struct dump_result result;
	bool whole = readn(fr->child_fd, &result, sizeof(result)) == sizeof(result);
	int status;

	close(fr->child_fd);
	fr->child_fd = -1;
	while (waitpid(fr->child, &status, 0) < 0 && errno == EINTR)
		;
	fr->child = 0;

	if (fr->child_is_auxiliary) {
		report_auxiliary(fr, whole ? result.err : -ECHILD);
		return 0;
	}
	fr->child_trigger = NULL;
	fr->auxiliary_due = rdclock();
	if (!whole) {
		pr_err("The child that wrote a dump died. Recording goes on.\n");
		result.err = -ECHILD;
	}
	if (!result.err)
		remember_manifest(fr, t, &result);
	tell_result(fr, t, &result);
	if (!t)
		return 0;
	/* Without this dump the recorder goes on; the others are not to be combined yet. */
	if (result.err)
		return 0;
	fr->combine = fr->child_action == FLIGHT_ACTION_COMBINE;
	return fr->child_action != FLIGHT_ACTION_DUMP;
}

static bool child_has_ended(const struct flight_recorder *fr)
{
	struct pollfd pfd = { .fd = fr->child_fd, .events = POLLIN };

	return fr->child && poll(&pfd, 1, 0) > 0;
}

/* Triggers */

static void look_at_trigger(struct flight_recorder *fr, struct flight_trigger *t, u64 now)
{
	unsigned int hits = t->ops->hits(t);
	bool cooling = now < t->quiet_until;

	/* A cooldown that is over counts for the dump that began it. */
	if (!cooling && t == fr->last_trigger && !fr->child)
		correct_manifest(fr);
	if (!hits)
		return;

	if (cooling) {
		t->swallowed += hits;
		fr->swallowed += hits;
		return;
	}
	if (!trigger_is_ready(&t->state)) {
		t->merged += hits;
		return;
	}
	t->merged = hits - 1;
	t->due = now + t->delay;
	trigger_hit(&t->state);
	if (t->freeze)
		freeze(fr);
}

/*
 * Wake up for what is next: a delay or a cooldown that ends. With a maximum age also
 * for a pass, as a round is as old as its newest record.
 */
static void set_timer(struct flight_recorder *fr, u64 now)
{
	struct itimerspec its = {};
	u64 next = fr->child ? now + AUXILIARY_INTERVAL : fr->auxiliary_due;

	if (fr->opts->dry_run)
		next = fr->started + DRY_RUN_TIME;
	if (fr->opts->max_age)
		next = now + max(fr->opts->max_age / PASSES_PER_AGE, MIN_PASS_INTERVAL);

	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next) {
		u64 when = 0;

		/* A dump that is being written wakes us at its end. */
		if (trigger_is_hit(&t->state) && (t->due > now || !fr->child))
			when = max(t->due, now + 1);
		else if (t->quiet_until > now && t->swallowed)
			when = t->quiet_until;
		if (when && when < next)
			next = when;
	}
	if (next == fr->timer_next)
		return;
	fr->timer_next = next;
	its.it_value.tv_sec = next / NSEC_PER_SEC;
	its.it_value.tv_nsec = next % NSEC_PER_SEC;
	timerfd_settime(fr->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

static struct flight_trigger *due_trigger(struct flight_recorder *fr, u64 now)
{
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next) {
		if (trigger_is_hit(&t->state) && t->due <= now)
			return t;
	}
	return NULL;
}

static void note_time(struct flight_recorder *fr)
{
	fr->last_run = rdclock();
	clockid__read(fr->session->header.env.clock.clockid, &fr->last_run_clock);
}

static void estimate_kernel(struct flight_recorder *fr, u64 elapsed)
{
	u64 size = fr->evlist->core.mmap_len - page_size;
	u64 bytes = kernel_store__written(fr->evlist);

	if (bytes)
		printf("window:          about %.0f s for the busiest CPU, at %.0f KiB/s\n",
		       (double)size / bytes * elapsed / NSEC_PER_SEC,
		       (double)bytes / elapsed * NSEC_PER_SEC / 1024);
}

/* Return: 1 when it has been printed. */
static int estimate(struct flight_recorder *fr, u64 now)
{
	const struct ring_store_stats *stats = ring_store__stats(fr->ring);
	u64 elapsed = now - fr->started;
	char names[2048];

	if (elapsed < DRY_RUN_TIME)
		return 0;
	ring_store__flush(fr->ring);

	evlist__scnprintf_evsels(fr->evlist, sizeof(names), names);
	printf("events:          %s\n", names);
	printf("memory:          %" PRIu64 " KiB for samples and side-band\n",
	       fr->opts->memory >> 10);
	printf("side-band:       %zu KiB of that now\n",
	       sideband_store__stats(fr->sideband)->used >> 10);
	if (fr->evlist->core.nr_mmaps)
		printf("kernel's buffers: %d of %zu KiB\n", fr->evlist->core.nr_mmaps,
		       fr->evlist->core.mmap_len >> 10);
	printf("dumps:           %s.sample.TIME\n", fr->opts->out);
	if (fr->opts->overwrite)
		estimate_kernel(fr, elapsed);
	else if (stats->bytes)
		printf("window:          about %.0f s, at %.0f KiB/s as in the last second\n",
		       (double)fr->opts->store / stats->used * elapsed / NSEC_PER_SEC,
		       (double)stats->bytes / elapsed * NSEC_PER_SEC / 1024);
	else
		printf("window:          nothing was recorded in the last second\n");
	if (stats->bytes && fr->opts->comp_level)
		printf("-z:              makes that %.1f times as long\n",
		       (double)stats->bytes / stats->used);
	fr->stopped = true;
	return 1;
}

/**
 * flight_recorder__run - do what the triggers ask for
 * @fr: the recorder
 *
 * To be called between two passes. What was hit before the last pass began is
 * dumped now; what was hit since waits for the next call, so that its pass is in it.
 *
 * Return: 0, or 1 if perf record is to end.
 */
int flight_recorder__run(struct flight_recorder *fr)
{
	struct flight_trigger *t;
	u64 now = rdclock();
	u64 expirations;

	/* What is still read before perf record ends is not told of, nor dumped, once more. */
	if (fr->stopped)
		return 1;
	if (fr->opts->dry_run) {
		set_timer(fr, now);
		return estimate(fr, now);
	}
	if (child_has_ended(fr) && end_dump(fr)) {
		fr->stopped = true;
		return 1;
	}

	/* Samples are kept up to where the pass began: that is to be behind the trigger. */
	t = due_trigger(fr, fr->opts->overwrite ? fr->last_run : now);
	if (t && !fr->child) {
		correct_manifest(fr);
		begin_dump(fr, t, t->reason);
		thaw(fr);
		t->quiet_until = now + t->cooldown;
		trigger_ready(&t->state);
	}

	if (!fr->child && fr->auxiliary_due <= now)
		begin_auxiliary(fr, now);

	if (now >= fr->timer_next && read(fr->timer_fd, &expirations, sizeof(expirations)) < 0 &&
	    errno != EAGAIN)
		pr_debug("reading the timer: %m\n");
	for (t = fr->opts->triggers; t; t = t->next)
		look_at_trigger(fr, t, now);
	set_timer(fr, now);
	note_time(fr);
	return 0;
}

static void wait_child(struct flight_recorder *fr)
{
	if (fr->child && end_dump(fr))
		fr->stopped = true;
}

/**
 * flight_recorder__finish - perf record ends
 * @fr: the recorder
 * @dump: write a last dump
 *
 * After the last pass. Waits until the files are complete.
 *
 * Return: 0 or a negative errno.
 */
int flight_recorder__finish(struct flight_recorder *fr, bool dump)
{
	int err = 0;

	if (fr->finished)
		return 0;

	fr->finished = true;
	/* What was hit since the last pass counts as swallowed, or is merged into the end. */
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next) {
		if (trigger_is_ready(&t->state) || trigger_is_hit(&t->state))
			look_at_trigger(fr, t, rdclock());
	}
	flight_triggers__stop(fr->opts->triggers);
	if (ring_store__is_open(fr->ring))
		finish_round(fr);
	wait_child(fr);
	correct_manifest(fr);
	if (dump && !fr->stopped) {
		err = begin_dump(fr, NULL, "the recorder ends");
		if (!err)
			wait_child(fr);
	}
	if (!fr->opts->dry_run) {
		begin_auxiliary(fr, rdclock());
		wait_child(fr);
	}
	if (fr->combine)
		err = flight_combine(fr->opts->out, fr->opts->keep);
	/* The archives of the dumps have gone with them. */
	if (fr->combine && !err && fr->opts->archive)
		on_dump__archive(fr->opts->out);
	if (fr->opts->daemon)
		flight_daemon__end(fr->opts->out);
	return err;
}

static void print_status(void *data, struct json_writer *w)
{
	struct flight_recorder *fr = data;
	struct ring_store_round round;
	u64 now = rdclock();
	struct flight_status status = {
		.out		= fr->opts->out,
		.uptime		= now - fr->started,
		.memory		= fr->opts->memory,
		.used		= ring_store__stats(fr->ring)->used +
				  sideband_store__stats(fr->sideband)->used +
				  fold_order__used(fr->order),
		.sideband	= sideband_store__stats(fr->sideband)->used,
		.window		= ring_store__first(fr->ring, &round) ? now - round.time : 0,
		.dumps		= fr->dumps,
		.failed		= fr->failed,
		.swallowed	= fr->swallowed,
		.lost		= flight_status__lost(fr->evlist),
		.given_up	= ring_store__stats(fr->ring)->refused_bytes,
		.writing	= fr->child && !fr->child_is_auxiliary,
	};

	flight_status__print(&status, w);
}

/* Once: what a kernel without our patches cannot do. */
static void say_what_is_missing(struct flight_recorder *fr)
{
	if (persistent__is_supported())
		return;
	fprintf(stderr, "[ perf record: this kernel has no persistent events: ");
	fprintf(stderr, "what is in memory is lost if perf is killed");
	if (fr->opts->overwrite)
		fprintf(stderr, "; less is read of each buffer");
	fprintf(stderr, " ]\n");
}

/**
 * flight_recorder__start - from now on triggers count
 * @fr: the recorder
 * @workload: pid of perf record's command, or -1
 *
 * Return: 0 or a negative errno when the user was told.
 */
int flight_recorder__start(struct flight_recorder *fr, pid_t workload)
{
	int err;

	fr->host = (struct flight_host) {
		.out	= fr->opts->out,
		.status	= print_status,
		.data	= fr,
	};
	err = flight_triggers__start(fr->opts->triggers, &fr->host);
	fr->started = rdclock();
	note_time(fr);
	fr->auxiliary_due = fr->started;
	/* Nothing is there yet, but the state: that is news. */
	fr->auxiliary_head = -1;
	for (struct flight_trigger *t = fr->opts->triggers; t && !err; t = t->next)
		err = watch(fr, t->fd);
	if (err) {
		pr_err("The triggers could not be watched: %s\n", strerror(-err));
		return err;
	}
	watch_workload(workload);
	resident__drop_files();
	if (!quiet)
		say_what_is_missing(fr);
	if (!quiet && !fr->opts->dry_run)
		fprintf(stderr, "[ perf record: flight recorder %d: %" PRIu64
			" KiB, dumps to %s.sample.* ]\n",
			getpid(), fr->opts->memory >> 10, fr->opts->out);
	if (fr->opts->daemon)
		flight_daemon__ready(fr->opts->out);
	return 0;
}

/* To be polled with the ring buffers. */
int flight_recorder__fd(const struct flight_recorder *fr)
{
	return fr->epoll_fd;
}

/**
 * flight_recorder__new - make a recorder
 * @fo: the options, which must last as long
 * @session: perf record's
 * @evlist: the events
 *
 * Return: the recorder, or NULL when the user was told why there is none.
 */
struct flight_recorder *flight_recorder__new(const struct flight_opts *fo,
					     struct perf_session *session,
					     struct evlist *evlist)
{
	struct flight_recorder *fr = zalloc(sizeof(*fr));

	if (!fr)
		goto out_error;
	/* What follows, and describing all processes is part of it, is within the bound. */
	resident__drop_files();
	resident__reset_peak();
	fr->opts = fo;
	fr->session = session;
	fr->evlist = evlist;
	fr->child_fd = -1;
	fr->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fr->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	fr->ring = ring_store__new(fo->store, fold_evicted, fr);
	fr->sideband = sideband_store__new(fo->store / SIDEBAND_SHARE, 0);
	fr->order = fold_order__new(evlist, fr->sideband, fo->store / WAITING_SHARE);
	if (fr->epoll_fd < 0 || fr->timer_fd < 0 || !fr->ring || !fr->sideband || !fr->order ||
	    watch(fr, fr->timer_fd))
		goto out_delete;
	ring_store__evict_unseen(fr->ring, PERF_RECORD_SAMPLE);
	ring_store__on_gone(fr->ring, round_is_gone);
	if ((fo->on_dump || fo->archive) && on_dump__init())
		goto out_delete;
	if (fo->comp_level && ring_store__compress(fr->ring, fo->comp_level))
		goto out_delete;

	/* Not its default action, which is to kill: the trigger is set up soon. */
	signal(SIGUSR1, SIG_IGN);
	if (!fo->dry_run)
		dump__remove_stale(fo->out);
	return fr;

out_delete:
	flight_recorder__delete(fr);
out_error:
	pr_err("The flight recorder could not be set up: %m\n");
	return NULL;
}

void flight_recorder__delete(struct flight_recorder *fr)
{
	if (!fr)
		return;
	ring_store__delete(fr->ring);
	fold_order__delete(fr->order);
	sideband_store__delete(fr->sideband);
	free(fr->preamble);
	free(fr->covers);
	free(fr->last_manifest);
	if (fr->epoll_fd >= 0)
		close(fr->epoll_fd);
	if (fr->timer_fd >= 0)
		close(fr->timer_fd);
	free(fr);
}
