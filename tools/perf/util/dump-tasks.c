// SPDX-License-Identifier: GPL-2.0
/*
 * Describe only the processes that are in a dump, not all of the machine
 *
 * Names and maps of processes are read from /proc when a dump is written. The time for
 * this grows with the number of processes, most of which slept all the time. A dump needs
 * the processes of its samples. It also has records of their past that readers apply to
 * the description: a fork gives the child the maps of its parent, and so on for all
 * ancestors. Therefore all processes that a record of the dump refers to are described:
 *
 *	SAMPLE			the process
 *	FORK			the child and its parent
 *	COMM, MMAP, MMAP2, EXIT	the process
 *
 * This requires that the whole file comes from backward buffers, and that all samples
 * have the process at the same position. Otherwise, or if there is no memory, all
 * processes are described.
 */
#include "base-api.h"
#include "dump-tasks.h"
#include "evlist.h"
#include "evsel.h"
#include "intlist.h"
#include "mmap.h"
#include "namespaces.h"
#include "record.h"
#include "sample-layout.h"
#include "target.h"

#include <linux/kernel.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <errno.h>

/* Return whether all samples have the process at the same position. */
static bool find_layout(struct evlist *evlist, struct sample_layout *layout)
{
	int place = -1;
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		const struct perf_event_attr *attr = &evsel->core.attr;

		sample_layout__init(layout, attr, /*swapped=*/false);
		if (layout->sample[SAMPLE_WORD__TID] < 0 || !attr->write_backward ||
		    (place >= 0 && place != layout->sample[SAMPLE_WORD__TID]))
			return false;
		place = layout->sample[SAMPLE_WORD__TID];
	}
	return place >= 0;
}

static void add_pid(struct dump_tasks *tasks, u32 pid)
{
	int err;

	/* Exited tasks, and records without a task. */
	if (pid == tasks->last || pid == -1U)
		return;

	err = intlist__add(tasks->pids, pid);
	if (err && err != -EEXIST)
		tasks->unknown = true;
	tasks->last = pid;
}

static void add_event(struct dump_tasks *tasks, const union perf_event *event,
		      const struct sample_layout *layout)
{
	const struct perf_event_header *header = &event->header;
	u32 pid;

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		if (sample_layout__pid(layout, event, &pid))
			add_pid(tasks, pid);
		break;
	case PERF_RECORD_FORK:
		if (header->size < sizeof(event->fork))
			break;
		add_pid(tasks, event->fork.pid);
		add_pid(tasks, event->fork.ppid);
		break;
	case PERF_RECORD_COMM:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_EXIT:
		/* All of these records start with the pid. */
		if (header->size >= sizeof(*header) + sizeof(u64))
			add_pid(tasks, event->comm.pid);
		break;
	default:
		break;
	}
}

/**
 * dump_tasks__add - collect the processes in the snapshots of buffers
 * @tasks: the set of processes
 * @evlist: the events of the records
 * @maps: overwrite maps with a snapshot
 * @nr_maps: number of maps
 */
void dump_tasks__add(struct dump_tasks *tasks, struct evlist *evlist, struct mmap **maps,
		     int nr_maps)
{
	struct sample_layout layout;
	bool has_pid = find_layout(evlist, &layout);

	if (tasks->described) {
		intlist__delete(tasks->pids);
		*tasks = (struct dump_tasks){ };
	}
	if (!tasks->pids) {
		tasks->pids = intlist__new(NULL);
		tasks->last = -1U;
	}
	if (!tasks->pids || !has_pid)
		tasks->unknown = true;

	for (int i = 0; i < nr_maps && !tasks->unknown; i++) {
		union perf_event *event = NULL;

		if (!maps[i]->core.base)
			continue;
		while ((event = perf_snapshot__newer(maps[i]->snapshot, event)) != NULL)
			add_event(tasks, event, &layout);
	}
}

/**
 * dump_tasks__synthesize - describe the processes of the output file
 * @tasks: the processes in the file
 * @tool: argument of @process
 * @process: called for each record
 * @machine: the machine of the processes
 * @opts: options of perf record
 * @evlist: its events
 *
 * Return: 0 or a negative value like __machine__synthesize_threads(), which is called if
 * the processes in the file are not known, or were selected by the user.
 */
int dump_tasks__synthesize(struct dump_tasks *tasks, const struct perf_tool *tool,
			   perf_event__handler_t process, struct machine *machine,
			   const struct record_opts *opts, struct evlist *evlist)
{
	bool needs_mmap = opts->synth & PERF_SYNTH_MMAP;
	bool data_mmap = record_opts__data_mmap(opts);
	struct target target = opts->target;
	struct int_node *node;
	int err = 0;

	if (!tasks->pids || tasks->unknown || target__has_task(&target) ||
	    !target__has_cpu(&target) || !nsinfo__is_in_root_namespace()) {
		err = __machine__synthesize_threads(machine, tool, &target,
						    evlist__core(evlist)->threads, process,
						    needs_mmap, data_mmap,
						    opts->nr_threads_synthesize);
	} else {
		intlist__for_each_entry(node, tasks->pids) {
			if (node->i)
				err = perf_event__synthesize_process(tool, process, machine,
								     node->i, needs_mmap,
								     data_mmap);
			if (err)
				break;
		}
	}
	tasks->described = true;
	return err;
}
