/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SELF_H
#define __PERF_FLIGHT_SELF_H

#include "../sample-layout.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evlist;
struct evsel;
struct flight_opts;

/**
 * struct flight_self - what is done about the events of the recorder itself
 * @pid: the recorder
 * @keeper: its child that keeps the notes of a session, or 0
 * @way: for the manifest: "filtered", "dropped", "recorded" or "outside"
 * @dropped: samples of a session that were dropped
 * @last: the event that was met last, of which @layout is
 * @layout: where its samples have the pid
 */
struct flight_self {
	pid_t			pid;
	pid_t			keeper;
	const char		*way;
	u64			dropped;
	struct evsel		*last;
	struct sample_layout	layout;
};

int flight_self__init(struct flight_self *self, const struct flight_opts *fo,
		      struct evlist *evlist, const pid_t *tids, int nr);
bool flight_self__knows_pids(void);
void flight_self__end(struct flight_self *self);
size_t flight_self__drop(struct flight_self *self, struct evlist *evlist, void *buf, size_t size);

#endif /* __PERF_FLIGHT_SELF_H */
