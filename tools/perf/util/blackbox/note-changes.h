/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_NOTE_CHANGES_H
#define __PERF_BLACKBOX_NOTE_CHANGES_H

#include "../flight/source/cpu-news.h"
#include "../strbuf.h"
#include <stdbool.h>

struct evlist;

/**
 * struct note_changes - what tasks become: side-band of all CPUs
 * @evlist: an event for it on each CPU, or NULL
 * @session: file of the session, which hangs up when that ends
 * @news: tells of CPUs that come online, which have no event yet
 * @taken: the records that were taken
 * @lost: some were lost: the state has to be read anew
 * @stale: there are CPUs without an event, which note_changes__open() mends
 */
struct note_changes {
	struct evlist		*evlist;
	int			session;
	struct flight_cpu_news	news;
	struct strbuf		taken;
	bool			lost;
	bool			stale;
};

int note_changes__init(struct note_changes *c, int session, bool listen);
void note_changes__open(struct note_changes *c);
void note_changes__exit(struct note_changes *c);
void note_changes__wait(struct note_changes *c, int timeout);
void note_changes__take(struct note_changes *c);

#endif /* __PERF_BLACKBOX_NOTE_CHANGES_H */
