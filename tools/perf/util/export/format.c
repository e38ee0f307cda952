// SPDX-License-Identifier: GPL-2.0
/* What the formats share: units, times, and samples that are added up. */
#include "format.h"

#include "data.h"
#include "evsel.h"
#include "header.h"
#include "session.h"
#include "util/sample.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <sys/stat.h>

/**
 * export_hits__sample - add a sample up with those of the same event, stack and task
 * @ex: the conversion
 * @evsel: the event
 * @sample: the sample
 * @stack: number of its stack
 * @task: number of its task
 *
 * Return: 0, or -ENOMEM.
 */
int export_hits__sample(struct export *ex, struct evsel *evsel, struct perf_sample *sample,
			u32 stack, u32 task)
{
	struct export_hit hit = { .event = evsel->core.idx, .stack = stack, .task = task };

	return export_hits__add(&ex->hits, &hit, sample->period) == INTERNER_FAILED ? -ENOMEM : 0;
}

/**
 * export__counts_time - whether the period of an event is in nanoseconds
 * @evsel: the event
 */
bool export__counts_time(struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_SOFTWARE &&
	       (evsel->core.attr.config == PERF_COUNT_SW_CPU_CLOCK ||
		evsel->core.attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

/**
 * export__container - the container of a cgroup
 * @ex: the conversion
 * @cgroup: string, path of the cgroup
 *
 * Return: as export_containers__get() does.
 */
const struct export_container *export__container(struct export *ex, u32 cgroup)
{
	return export_containers__get(&ex->containers, &ex->tables, ex->origin.manifest, cgroup);
}

/**
 * export__wall_clock - wall clock in ns of a time of the recording
 * @ex: the conversion
 * @time: of a sample
 *
 * Without a reference in the recording (perf record -k), the last sample is taken
 * to be as old as the file.
 */
u64 export__wall_clock(struct export *ex, u64 time)
{
	struct perf_env *env = &ex->session->header.env;
	struct stat st;

	if (env->clock.enabled)
		return env->clock.tod_ns + (time - env->clock.clockid_ns);
	if (perf_data__is_pipe(ex->session->data) ||
	    fstat(perf_data__fd(ex->session->data), &st))
		return 0;
	return st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec - (ex->last - time);
}
