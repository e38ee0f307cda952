// SPDX-License-Identifier: GPL-2.0
/*
 * Describe in a dump the processes that are in it, rather than all of the machine.
 *
 * Names and maps of processes are read from /proc when a dump is written, and the
 * time of that grows with the number of processes, most of which slept all the
 * while. A dump needs those whose samples it has. It has records of their past, too,
 * which a reader applies to the description: a fork gives the child the maps of its
 * parent, and so on up. So whoever is named by a record of the dump is described:
 *
 *	SAMPLE			the process
 *	FORK			the child and its parent
 *	COMM, MMAP, MMAP2, EXIT	the process
 *
 * That is known when all of the file comes from backward buffers, and each sample
 * says to which process it belongs, in the same place. Else all processes are
 * described, as before; so they are when memory runs out.
 */
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

/* Do all samples say in the same place which process they belong to? */
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

	/* Of exited tasks, and of records without a task. */
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
		/* All of them begin with it. */
		if (header->size >= sizeof(*header) + sizeof(u64))
			add_pid(tasks, event->comm.pid);
		break;
	default:
		break;
	}
}

/**
 * dump_tasks__add - remember who is in the snapshots of these buffers
 * @tasks: to add to
 * @evlist: whose events the records are
 * @maps: overwrite maps of which a snapshot was taken
 * @nr_maps: how many
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
 * dump_tasks__synthesize - describe the processes of the file that is written
 * @tasks: who is in it
 * @tool: for @process
 * @process: takes the records
 * @machine: whose processes they are
 * @opts: options of perf record
 * @evlist: its events
 *
 * Return: 0 or negative, as __machine__synthesize_threads(), which is called where
 * it is not known who is in the file, or where perf was told whom to record.
 */
int dump_tasks__synthesize(struct dump_tasks *tasks, const struct perf_tool *tool,
			   perf_event__handler_t process, struct machine *machine,
			   const struct record_opts *opts, struct evlist *evlist)
{
	bool needs_mmap = opts->synth & PERF_SYNTH_MMAP;
	struct target target = opts->target;
	struct int_node *node;
	int err = 0;

	if (!tasks->pids || tasks->unknown || target__has_task(&target) ||
	    !target__has_cpu(&target) || !nsinfo__is_in_root_namespace()) {
		err = __machine__synthesize_threads(machine, tool, &target, evlist->core.threads,
						    process, needs_mmap, opts->sample_address,
						    opts->nr_threads_synthesize);
	} else {
		intlist__for_each_entry(node, tasks->pids) {
			if (node->i)
				err = perf_event__synthesize_process(tool, process, machine,
								     node->i, needs_mmap,
								     opts->sample_address);
			if (err)
				break;
		}
	}
	tasks->described = true;
	return err;
}
