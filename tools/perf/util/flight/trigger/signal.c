// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: SIGUSR1; and SIGUSR2, which writes a last dump with action=combine
 *
 * The handler increments a counter, stores the time of the first signal and the sender of
 * the last one, and writes to an eventfd, so that poll() also returns if the signal arrives
 * just before it. write() is async-signal-safe, and so is clock_gettime(), the only function
 * that clockid__read() calls. The time is only a number for the manifest.
 *
 * The trigger is there with any other one, too: SIGUSR1 always writes a dump. SIGUSR2 is
 * ignored if only other triggers were given.
 *
 * Until the exec of the workload has succeeded, SIGUSR1 also reports that it has failed
 * (see evlist__prepare_workload()). That signal is queued with a value, and is forwarded to
 * the handler that waits for it.
 */
#include "triggers.h"
#include "../../clockid.h"
#include "../../debug.h"

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static sig_atomic_t hits;
static u64 first_hit;
static clockid_t hit_clockid;
static sig_atomic_t combines;
static sig_atomic_t sender;
static sig_atomic_t wakeup_fd = -1;
static struct sigaction before;

static void handler(int signo, siginfo_t *info, void *context)
{
	u64 at, one = 1;
	int saved_errno = errno, fd = READ_ONCE(wakeup_fd);

	if (signo == SIGUSR1 && info->si_code == SI_QUEUE && before.sa_flags & SA_SIGINFO &&
	    before.sa_sigaction) {
		before.sa_sigaction(signo, info, context);
		return;
	}

	if (!READ_ONCE(first_hit) && hit_clockid >= 0 && !clockid__read(hit_clockid, &at))
		WRITE_ONCE(first_hit, at);
	WRITE_ONCE(sender, info->si_code <= 0 ? info->si_pid : 0);
	if (signo == SIGUSR2)
		WRITE_ONCE(combines, 1);
	WRITE_ONCE(hits, READ_ONCE(hits) + 1);
	/* If the counter is full, the reader has been woken already. */
	if (write(fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
	errno = saved_errno;
}

static int signal_start(struct flight_trigger *t)
{
	struct sigaction act = {
		.sa_flags	= SA_SIGINFO | SA_RESTART,
		.sa_sigaction	= handler,
	};

	t->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	hit_clockid = t->host->clockid;
	WRITE_ONCE(wakeup_fd, t->fd);
	/* The handlers use the same variables, so they must not nest. */
	sigemptyset(&act.sa_mask);
	sigaddset(&act.sa_mask, SIGUSR1);
	sigaddset(&act.sa_mask, SIGUSR2);
	if (sigaction(SIGUSR1, &act, &before) ||
	    (!t->implied && sigaction(SIGUSR2, &act, NULL)))
		return -errno;
	return 0;
}

static unsigned int signal_hits(struct flight_trigger *t)
{
	static unsigned int seen;
	const char *name = "SIGUSR1";
	unsigned int now, nr;
	u64 count, at;

	/*
	 * Reset first: a later signal is either seen here or causes another wakeup. Always:
	 * the handler writes after it has counted, which may have been seen by then.
	 */
	if (read(t->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		pr_debug("reading the wakeup of SIGUSR1: %m\n");
	if ((unsigned int)READ_ONCE(hits) == seen)
		return 0;
	at = READ_ONCE(first_hit);
	WRITE_ONCE(first_hit, 0);
	now = READ_ONCE(hits);
	nr = now - seen;
	seen = now;
	if (nr && READ_ONCE(combines)) {
		WRITE_ONCE(combines, 0);
		name = "SIGUSR2";
		flight_trigger__end(t, FLIGHT_ACTION_COMBINE);
	}
	if (nr && trigger_is_ready(&t->state)) {
		int from = READ_ONCE(sender);

		t->hit_at = at;
		if (from)
			snprintf(t->reason, sizeof(t->reason), "%s from pid %d", name, from);
		else
			snprintf(t->reason, sizeof(t->reason), "%s", name);
	}
	return nr;
}

static void signal_stop(struct flight_trigger *t)
{
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	WRITE_ONCE(wakeup_fd, -1);
	close(t->fd);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_signal = {
	.name	= "signal",
	.start	= signal_start,
	.hits	= signal_hits,
	.stop	= signal_stop,
};
