// SPDX-License-Identifier: GPL-2.0
/*
 * Wakeups of a flight recorder: the descriptors of its triggers, the pipe of the child that
 * writes a file, and a timer. All of them are in one epoll, because perf record polls a
 * fixed set of descriptors.
 */
#include "wakeup.h"
#include "../debug.h"
#include "../time-utils.h"

#include <api/fd/array.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/**
 * flight_wakeup__init - make the epoll and its timer
 * @w: what wakes the recorder
 *
 * Return: 0 or a negative errno; flight_wakeup__exit() is wanted in both cases.
 */
int flight_wakeup__init(struct flight_wakeup *w)
{
	w->next = 0;
	w->fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->fd < 0 || w->timer_fd < 0)
		return -errno;
	return flight_wakeup__watch(w, w->timer_fd);
}

void flight_wakeup__exit(struct flight_wakeup *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->timer_fd >= 0)
		close(w->timer_fd);
}

/* Until it is closed; -1 is none. Return: 0 or a negative errno. */
int flight_wakeup__watch(struct flight_wakeup *w, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd >= 0 && epoll_ctl(w->fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void flight_wakeup__set_timer(struct flight_wakeup *w, u64 next)
{
	struct itimerspec its = {
		.it_value.tv_sec  = next / NSEC_PER_SEC,
		.it_value.tv_nsec = next % NSEC_PER_SEC,
	};

	if (next == w->next)
		return;
	w->next = next;
	timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

/**
 * flight_wakeup__wait - wait for the next pass
 * @w: what wakes the recorder
 * @fda: what perf record polls for: the buffers, and @w
 * @earliest: when @w may be the reason for a pass, CLOCK_MONOTONIC in ns
 *
 * Triggers that are hit without pause, or requests, must not keep the recorder busy with
 * passes. A buffer that is half full, or the end of perf record, wakes it at any time.
 *
 * Return: like poll().
 */
int flight_wakeup__wait(struct flight_wakeup *w, struct fdarray *fda, u64 earliest)
{
	int nr = fdarray__poll(fda, -1);
	u64 now = rdclock();

	if (nr != 1 || now >= earliest)
		return nr;
	for (int i = 0; i < fda->nr; i++) {
		if (fda->entries[i].fd != w->fd || !fda->entries[i].revents)
			continue;
		fda->entries[i].fd = -1;
		nr = fdarray__poll(fda, DIV_ROUND_UP(earliest - now, NSEC_PER_MSEC));
		fda->entries[i].fd = w->fd;
		return nr < 0 ? nr : nr + 1;
	}
	return nr;
}

void flight_wakeup__drain_timer(struct flight_wakeup *w, u64 now)
{
	u64 expirations;

	if (now >= w->next && read(w->timer_fd, &expirations, sizeof(expirations)) < 0 &&
	    errno != EAGAIN)
		pr_debug("reading the timer: %m\n");
}
