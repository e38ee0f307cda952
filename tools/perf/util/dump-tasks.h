/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_DUMP_TASKS_H
#define __PERF_DUMP_TASKS_H

#include "synthetic-events.h"
#include <stdbool.h>

struct evlist;
struct intlist;
struct machine;
struct mmap;
struct perf_tool;
struct record_opts;

/**
 * struct dump_tasks - the processes in a dump of backward buffers
 * @pids: their ids, or NULL
 * @last: the last pid added, which often follows again
 * @unknown: not known for the whole file: describe all processes
 * @described: already described; the next pid added starts a new file
 */
struct dump_tasks {
	struct intlist	*pids;
	u32		last;
	bool		unknown;
	bool		described;
};

void dump_tasks__add(struct dump_tasks *tasks, struct evlist *evlist, struct mmap **maps,
		     int nr_maps);
int dump_tasks__synthesize(struct dump_tasks *tasks, const struct perf_tool *tool,
			   perf_event__handler_t process, struct machine *machine,
			   const struct record_opts *opts, struct evlist *evlist);

#endif /* __PERF_DUMP_TASKS_H */
