// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: pressure, --trigger psi/resource=cpu,some,over=150ms,window=2s,cgroup=PATH/
 *
 * The kernel measures how long tasks wait for a CPU, memory or a disk (PSI, see
 * Documentation/accounting/psi.rst), and wakes those that poll for it when this was more than
 * @over within @window. Nothing is measured here.
 *
 * The kernel tells a hit once: to the first that polls after it, be that an epoll which
 * asks for another epoll, and which does not say what it was told. So this file is in no epoll.
 * A thread polls it alone, counts the hits, and wakes the recorder by an eventfd.
 *
 * The wakeup does not tell how long tasks have waited. The thread reads the total four times
 * per window, so that the growth since about the start of the window is known at a hit. The
 * kernel brings the total up to date every 2 s; the value is at least @over. So the trigger
 * costs four wakeups of a thread per window. What it does is left out of what is recorded: it
 * is started before the events are opened, and the filter of self.c has its tid.
 *
 * States of the file:
 *
 *	psi_prepare()		POLLERR: the cgroup is removed
 *	     |
 *	     v	     ------------------------------------->
 *	  WATCHED					    GONE
 *		     <-------------------------------------
 *			reopen() each second: a cgroup of this
 *			name, such as a service's that is started
 *			again, has a file that takes the threshold
 *
 * The thread alone uses the file. It takes no lock, because the recorder forks, and it prints
 * nothing: the recorder does, when it next looks.
 */
#include "terms.h"
#include "triggers.h"
#include "../../debug.h"

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CGROUPS		"/sys/fs/cgroup"
#define PRESSURE	"/proc/pressure"
#define DEFAULT_WINDOW	((u64)(2 * NSEC_PER_SEC))
#define NR_SAMPLES	5

/* How often a file that is gone is looked for, in ms */
#define REOPEN_MS	((int)MSEC_PER_SEC)

/**
 * struct pressure - what is watched
 * @resource: cpu, memory, io or irq
 * @cgroup: of that cgroup alone, or NULL
 * @some: time in which some task waits
 * @full: time in which all tasks wait
 * @over: how much of it, in ns
 * @window: in such a time
 * @fd: the file of the kernel, or -1 if it is gone
 * @hit_fd: an eventfd, which wakes the recorder; the trigger's
 * @stop_fd: an eventfd, which ends the thread
 * @thread: polls @fd
 * @tid: of the thread, which sets it before it first writes to @hit_fd
 * @is_running: there is a thread
 * @hits: hits that the recorder has not looked at; the thread adds to it
 * @changes: how often the file was gone, and came back; the thread counts them
 * @said: as many of these the user was told of
 * @waited: time waited at the last hit, in us; the thread writes it
 * @totals: what the thread has read last, in us
 * @next: where the next one goes, which is the oldest
 */
struct pressure {
	char		*resource;
	char		*cgroup;
	bool		some;
	bool		full;
	u64		over;
	u64		window;
	int		fd;
	int		hit_fd;
	int		stop_fd;
	pthread_t	thread;
	pid_t		tid;
	bool		is_running;
	unsigned int	hits;
	unsigned int	changes;
	unsigned int	said;
	u64		waited;
	u64		totals[NR_SAMPLES];
	int		next;
};

static const struct flight_term terms[] = {
	{ "resource",	TERM_WORD,	offsetof(struct pressure, resource) },
	{ "cgroup",	TERM_WORD,	offsetof(struct pressure, cgroup) },
	{ "some",	TERM_FLAG,	offsetof(struct pressure, some) },
	{ "full",	TERM_FLAG,	offsetof(struct pressure, full) },
	{ "over",	TERM_TIME,	offsetof(struct pressure, over) },
	{ "window",	TERM_TIME,	offsetof(struct pressure, window) },
	{ NULL }
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void end_thread(struct pressure *p)
{
	u64 one = 1;

	if (p->is_running && write(p->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(p->thread, NULL);
	p->is_running = false;
	close_fd(&p->fd);
	close_fd(&p->stop_fd);
	close_fd(&p->hit_fd);
}

static void psi_free(struct flight_trigger *t)
{
	struct pressure *p = t->priv;

	if (p) {
		end_thread(p);
		free(p->resource);
		free(p->cgroup);
	}
	free(p);
	t->priv = NULL;
}

static bool is_resource(const char *name)
{
	return !strcmp(name, "cpu") || !strcmp(name, "memory") || !strcmp(name, "io") ||
	       !strcmp(name, "irq");
}

static int psi_parse_terms(struct flight_trigger *t, char *text)
{
	struct pressure *p = zalloc(sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	t->priv = p;
	p->fd = -1;
	p->hit_fd = -1;
	p->stop_fd = -1;
	p->window = DEFAULT_WINDOW;
	err = flight_terms__parse(t, terms, text);
	if (err)
		return err;
	if (!p->resource || !is_resource(p->resource))
		return flight_terms__refuse(t, "resource=%s is none of cpu, memory, io and irq",
					    p->resource ?: "");
	if (p->some && p->full)
		return flight_terms__refuse(t, "'some' and 'full' exclude each other");
	if (!p->over || p->over > p->window)
		return flight_terms__refuse(t, "'over' must be a time above 0 and up to 'window'");
	if (p->window < NSEC_PER_SEC / 2 || p->window > 10 * NSEC_PER_SEC)
		return flight_terms__refuse(t, "'window' must be from 500ms to 10s");
	if (!strcmp(p->resource, "irq")) {
		if (p->some)
			return flight_terms__refuse(t, "the kernel measures of 'irq' only 'full'");
		p->full = true;
	}
	return 0;
}

static void set_path(const struct pressure *p, char *path, size_t size)
{
	if (!p->cgroup) {
		scnprintf(path, size, PRESSURE "/%s", p->resource);
		return;
	}
	scnprintf(path, size, "%s/%s.pressure", p->cgroup, p->resource);
	if (*p->cgroup != '/' || access(path, F_OK))
		scnprintf(path, size, CGROUPS "/%s/%s.pressure", p->cgroup, p->resource);
}

static int format_threshold(const struct pressure *p, char *text, size_t size)
{
	return scnprintf(text, size, "%s %" PRIu64 " %" PRIu64, p->full ? "full" : "some",
			 p->over / NSEC_PER_USEC, p->window / NSEC_PER_USEC) + 1;
}

static int open_file(struct pressure *p)
{
	static const char no_cgroup[] =
		". Is it a cgroup of version 2, and is pressure measured (boot with psi=1)?";
	static const char no_psi[] =
		". The kernel does not measure pressure: boot with psi=1 (CONFIG_PSI).";
	static const char no_window[] =
		". Without CAP_SYS_RESOURCE the window must be a multiple of 2s.";
	char path[PATH_MAX], text[64];
	int len, err;

	set_path(p, path, sizeof(path));
	p->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0) {
		err = -errno;
		pr_err("--trigger psi: cannot open %s: %s%s\n", path, strerror(-err),
		       err != -ENOENT && err != -EOPNOTSUPP ? "" : p->cgroup ? no_cgroup :
		       no_psi);
		return err;
	}
	len = format_threshold(p, text, sizeof(text));
	if (write(p->fd, text, len) == len)
		return 0;
	err = -errno;
	pr_err("--trigger psi: %s does not take '%s' (us): %s%s\n", path, text, strerror(-err),
	       err == -EINVAL ? no_window : err == -EOPNOTSUPP ? no_psi : "");
	return err;
}

static u64 read_total(const struct pressure *p)
{
	char text[512], *line, *total;
	ssize_t len = pread(p->fd, text, sizeof(text) - 1, 0);

	text[max_t(ssize_t, len, 0)] = '\0';
	line = strstr(text, p->full ? "full" : "some");
	total = line ? strstr(line, "total=") : NULL;
	return total ? strtoull(total + strlen("total="), NULL, 10) : 0;
}

static void take_sample(struct pressure *p)
{
	p->totals[p->next] = read_total(p);
	p->next = (p->next + 1) % NR_SAMPLES;
}

static void take_samples(struct pressure *p)
{
	for (int i = 0; i < NR_SAMPLES; i++)
		take_sample(p);
}

/* Nothing is to be done if that fails: a counter that is full wakes the recorder as well. */
static void wake_recorder(const struct pressure *p)
{
	u64 one = 1;

	if (write(p->hit_fd, &one, sizeof(one)) < 0)
		return;
}

static void count_change(struct pressure *p)
{
	__atomic_add_fetch(&p->changes, 1, __ATOMIC_RELEASE);
	wake_recorder(p);
}

static void lose_file(struct pressure *p)
{
	close_fd(&p->fd);
	count_change(p);
}

static void reopen(struct pressure *p)
{
	char path[PATH_MAX], text[64];
	int len = format_threshold(p, text, sizeof(text));

	set_path(p, path, sizeof(path));
	p->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0)
		return;
	if (write(p->fd, text, len) != len) {
		close_fd(&p->fd);
		return;
	}
	take_samples(p);
	count_change(p);
}

static void hit(struct pressure *p)
{
	u64 total = read_total(p), oldest = p->totals[p->next];

	WRITE_ONCE(p->waited, total > oldest ? total - oldest : 0);
	__atomic_add_fetch(&p->hits, 1, __ATOMIC_RELEASE);
	wake_recorder(p);
}

static void *watch(void *arg)
{
	struct pressure *p = arg;
	int step = p->window / (NR_SAMPLES - 1) / NSEC_PER_MSEC;

	p->tid = syscall(SYS_gettid);
	wake_recorder(p);
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = p->fd, .events = POLLPRI },
			{ .fd = p->stop_fd, .events = POLLIN },
		};
		int nr = poll(fds, ARRAY_SIZE(fds), p->fd < 0 ? REOPEN_MS : step);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0 || fds[1].revents)
			return NULL;
		if (p->fd < 0) {
			reopen(p);
			continue;
		}
		if (fds[0].revents & POLLERR) {
			lose_file(p);
			continue;
		}
		if (fds[0].revents & POLLPRI)
			hit(p);
		/* Hits come once per window at most. */
		take_sample(p);
	}
}

/* Signals are for the recorder. */
static int start_thread(struct pressure *p)
{
	struct pollfd started = { .fd = p->hit_fd, .events = POLLIN };
	sigset_t all, old;
	u64 wakeups;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&p->thread, NULL, watch, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	p->is_running = !err;
	while (!err && poll(&started, 1, -1) < 0 && errno == EINTR)
		;
	if (!err && read(p->hit_fd, &wakeups, sizeof(wakeups)) < 0)
		err = errno;
	return -err;
}

static int psi_prepare(struct flight_trigger *t)
{
	struct pressure *p = t->priv;
	int err = open_file(p);

	if (err)
		return err;
	take_samples(p);
	p->stop_fd = eventfd(0, EFD_CLOEXEC);
	p->hit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->stop_fd < 0 || p->hit_fd < 0)
		return -errno;
	err = start_thread(p);
	t->tid = p->tid;
	return err;
}

/* Hits from before the start are dropped: there are no records of that time. */
static int psi_start(struct flight_trigger *t)
{
	struct pressure *p = t->priv;

	__atomic_store_n(&p->hits, 0, __ATOMIC_RELAXED);
	t->fd = p->hit_fd;
	return 0;
}

static void set_reason(struct flight_trigger *t)
{
	const struct pressure *p = t->priv;

	t->cause.unit = "ms";
	t->cause.value = max(READ_ONCE(p->waited), p->over / NSEC_PER_USEC) / USEC_PER_MSEC;
	t->cause.threshold = p->over / NSEC_PER_MSEC;
	scnprintf(t->cause.cgroup, sizeof(t->cause.cgroup), "%s", p->cgroup ?: "");
	scnprintf(t->reason, sizeof(t->reason),
		  "%s pressure of %s%s: %" PRIu64 " ms, over %" PRIu64 " ms in %" PRIu64 " ms",
		  p->full ? "full" : "some", p->resource, p->cgroup ? " in a cgroup" : "",
		  t->cause.value, t->cause.threshold, p->window / NSEC_PER_MSEC);
}

/* A service may be started again faster than this is called. */
static void say_changes(struct flight_trigger *t)
{
	struct pressure *p = t->priv;
	unsigned int changes = __atomic_load_n(&p->changes, __ATOMIC_ACQUIRE);
	const char *cgroup = p->cgroup ?: PRESSURE;
	char text[256];

	for (; p->said != changes; p->said++) {
		scnprintf(text, sizeof(text),
			  p->said % 2 ? "The cgroup %.128s is back: --trigger psi watches it.\n" :
			  "The cgroup %.128s is gone: --trigger psi waits for it.\n", cgroup);
		t->host->say(t->host->data, text);
	}
}

static unsigned int psi_hits(struct flight_trigger *t)
{
	struct pressure *p = t->priv;
	unsigned int hits;
	u64 wakeups;

	if (read(t->fd, &wakeups, sizeof(wakeups)) < 0)
		return 0;
	say_changes(t);
	hits = __atomic_exchange_n(&p->hits, 0, __ATOMIC_ACQUIRE);
	if (hits && trigger_is_ready(&t->state))
		set_reason(t);
	return hits;
}

static void psi_stop(struct flight_trigger *t)
{
	end_thread(t->priv);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_psi = {
	.name	= "psi",
	.form	= "psi/resource=cpu|memory|io|irq,some|full,over=TIME[,window=TIME][,cgroup=PATH]/",
	.by_itself = true,
	.parse_terms = psi_parse_terms,
	.prepare = psi_prepare,
	.start	= psi_start,
	.hits	= psi_hits,
	.stop	= psi_stop,
	.free	= psi_free,
};
