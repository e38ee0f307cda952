/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_WALKER_H
#define __PERF_FLIGHT_WALKER_H

#include <linux/types.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct walker - a thread that looks for waits that last
 * @walk: starts a BPF program that looks at what waits
 * @data: its argument
 * @period: ns from one walk to the next
 * @event_fd: wakes the thread: the walks begin, or it is to end
 * @thread: the thread
 * @tid: of the thread
 * @is_running: there is one
 * @is_ending: it is to end
 */
struct walker {
	void		(*walk)(void *data);
	void		*data;
	u64		period;
	int		event_fd;
	pthread_t	thread;
	pid_t		tid;
	bool		is_running;
	bool		is_ending;
};

u64 walker__period(u64 over);
int walker__prepare(struct walker *w);
void walker__start(struct walker *w);
void walker__end(struct walker *w);

#endif /* __PERF_FLIGHT_WALKER_H */
