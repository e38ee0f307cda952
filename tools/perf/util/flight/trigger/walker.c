// SPDX-License-Identifier: GPL-2.0
/*
 * A thread that looks for waits that last
 *
 * When a wait ends, a BPF program at a tracepoint says so. One that lasts is found by a walk,
 * which is a BPF program that this thread runs twice per threshold. A walk over very many tasks
 * may take long. It has a thread of its own because the recorder has to read meanwhile, and the
 * next walk waits until this one was at most 1 % of the thread's time.
 *
 * The thread takes no lock and no memory, because the recorder forks.
 */
#include "walker.h"
#include "../../clockid.h"

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MIN_PERIOD	((u64)(10 * NSEC_PER_MSEC))
#define MAX_PERIOD	((u64)NSEC_PER_SEC)

/* The CPU time of a walk, in parts of the time to the next one */
#define COST_SHARE	100

/**
 * walker__period - how often a walk is needed to find waits of a length
 * @over: the length, in ns
 *
 * Return: ns from one walk to the next.
 */
u64 walker__period(u64 over)
{
	return min(max(over / 2, MIN_PERIOD), MAX_PERIOD);
}

static u64 cpu_time(void)
{
	u64 ns = 0;

	clockid__read(CLOCK_THREAD_CPUTIME_ID, &ns);
	return ns;
}

/* Wakes up at an event, or after @ns. Return: whether it is to end. */
static bool wait_for_event(struct walker *w, u64 ns)
{
	struct pollfd fd = { .fd = w->event_fd, .events = POLLIN };
	u64 events;
	int nr;

	nr = poll(&fd, 1, ns ? (int)(ns / NSEC_PER_MSEC) : -1);
	if (nr > 0 && read(w->event_fd, &events, sizeof(events)) < 0)
		return errno != EINTR && errno != EAGAIN;
	return READ_ONCE(w->is_ending);
}

static void *walk_again_and_again(void *arg)
{
	struct walker *w = arg;
	u64 began, pause = 0;

	WRITE_ONCE(w->tid, syscall(SYS_gettid));
	while (!wait_for_event(w, pause)) {
		began = cpu_time();
		w->walk(w->data);
		pause = max(w->period, (cpu_time() - began) * COST_SHARE);
	}
	return NULL;
}

static void wake(struct walker *w)
{
	u64 one = 1;

	/* A counter that is full wakes it as well. */
	if (write(w->event_fd, &one, sizeof(one)) < 0)
		return;
}

/**
 * walker__prepare - make the thread, which does nothing yet
 * @w: with @walk, @data and @period
 *
 * Return: 0 or a negative errno. @w->tid is set.
 */
int walker__prepare(struct walker *w)
{
	sigset_t all, old;
	int err;

	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->event_fd < 0)
		return -errno;
	/* Signals are for the recorder. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, walk_again_and_again, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close(w->event_fd);
		return -err;
	}
	w->is_running = true;
	while (!READ_ONCE(w->tid))
		usleep(100);
	return 0;
}

/* From now on there are walks. */
void walker__start(struct walker *w)
{
	if (w->is_running)
		wake(w);
}

/* End the thread, if there is one. */
void walker__end(struct walker *w)
{
	if (!w->is_running)
		return;
	WRITE_ONCE(w->is_ending, true);
	wake(w);
	pthread_join(w->thread, NULL);
	close(w->event_fd);
	w->is_running = false;
}
