// SPDX-License-Identifier: GPL-2.0
/*
 * A tool that reads the records which names are from: of tasks, of files that are mapped, and
 * of events.
 */
#include "names-tool.h"

#include "event.h"
#include "header.h"
#include "session.h"
#include "tool.h"

/**
 * names_tool__init - prepare to read samples and the names that they take
 * @tool: the tool; what is to be done with samples is up to the caller
 *
 * The records are read in the order of time.
 */
void names_tool__init(struct perf_tool *tool)
{
	perf_tool__init(tool, /*ordered_events=*/true);
	tool->mmap		= perf_event__process_mmap;
	tool->mmap2		= perf_event__process_mmap2;
	tool->comm		= perf_event__process_comm;
	tool->namespaces	= perf_event__process_namespaces;
	tool->cgroup		= perf_event__process_cgroup;
	tool->exit		= perf_event__process_exit;
	tool->fork		= perf_event__process_fork;
	tool->attr		= perf_event__process_attr;
#ifdef HAVE_LIBTRACEEVENT
	tool->tracing_data	= perf_event__process_tracing_data;
#endif
	tool->build_id		= perf_event__process_build_id;
	tool->id_index		= perf_event__process_id_index;
	tool->feature		= perf_event__process_feature;
	tool->event_update	= perf_event__process_event_update;
	tool->ordering_requires_timestamps = true;
}
