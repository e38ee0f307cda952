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
#include "target.h"

#include <linux/kernel.h>
#include <perf/event.h>
#include <perf/snapshot.h>
#include <errno.h>

/* The word of a sample that has pid and tid; negative: it depends, or there is none. */
static int tid_word(struct evlist *evlist)
{
	struct evsel *evsel;
	int word = -1;

	evlist__for_each_entry(evlist, evsel) {
		u64 type = evsel->core.attr.sample_type;
		int this = !!(type & PERF_SAMPLE_IDENTIFIER) + !!(type & PERF_SAMPLE_IP);

		if (!(type & PERF_SAMPLE_TID) || !evsel->core.attr.write_backward ||
		    (word >= 0 && word != this))
			return -1;
		word = this;
	}
	return word;
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

static void add_event(struct dump_tasks *tasks, const union perf_event *event, int word)
{
	const struct perf_event_header *header = &event->header;
	const u32 *ids = (const u32 *)event->sample.array;

	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		if (header->size >= sizeof(*header) + (word + 1) * sizeof(u64))
			add_pid(tasks, ids[2 * word]);
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
		if (header->size >= sizeof(*header) + sizeof(u64))
			add_pid(tasks, ids[0]);
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
	int word = tid_word(evlist);

	if (tasks->described) {
		intlist__delete(tasks->pids);
		*tasks = (struct dump_tasks){ };
	}
	if (!tasks->pids) {
		tasks->pids = intlist__new(NULL);
		tasks->last = -1U;
	}
	if (!tasks->pids || word < 0)
		tasks->unknown = true;

	for (int i = 0; i < nr_maps && !tasks->unknown; i++) {
		union perf_event *event = NULL;

		if (!maps[i]->core.base)
			continue;
		while ((event = perf_snapshot__newer(maps[i]->snapshot, event)) != NULL)
			add_event(tasks, event, word);
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
