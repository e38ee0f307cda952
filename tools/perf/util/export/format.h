/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_FORMAT_H
#define __PERF_EXPORT_FORMAT_H

#include "containers.h"
#include "deferred-chains.h"
#include "hits.h"
#include "origin.h"
#include "pb-out.h"
#include "tables.h"
#include "tool.h"

struct export;
struct perf_session;

/**
 * struct export_switch - one task follows another on a CPU
 * @time: when
 * @cpu: where
 * @preempted: the first one could have gone on
 * @prev_tid: the first one
 * @next_tid: the other one; 0 is the idle task, or one that was not recorded
 * @prev_comm: their names
 * @next_comm: their names
 */
struct export_switch {
	u64		time;
	u32		cpu;
	bool		preempted;
	s32		prev_tid;
	s32		next_tid;
	const char	*prev_comm;
	const char	*next_comm;
};

/**
 * struct export_format - what a format does with the records, in their order
 * @name: for the user
 * @begin: before the first record; optional
 * @sample: a sample whose stack and task are in the tables
 * @context_switch: a record of a context switch; optional
 * @finish: write what is not written yet
 * @exit: free what was allocated; optional
 */
struct export_format {
	const char	*name;
	int		(*begin)(struct export *ex);
	int		(*sample)(struct export *ex, struct evsel *evsel,
				  struct perf_sample *sample, u32 stack, u32 task);
	int		(*context_switch)(struct export *ex, const struct export_switch *sw);
	int		(*finish)(struct export *ex);
	void		(*exit)(struct export *ex);
};

extern const struct export_format export_pprof;
extern const struct export_format export_otlp;
extern const struct export_format export_perfetto;

/**
 * struct export - a conversion
 * @tool: its callbacks
 * @session: the recording
 * @format: what is written
 * @out: where it is written
 * @redact: bits of enum export_redact
 * @tables: strings, stacks and so on
 * @hits: samples that were added up, if the format does
 * @containers: of the cgroups of samples
 * @origin: machine and trigger
 * @first: time of the first sample
 * @last: time of the last sample
 * @samples: number of samples
 * @timed: number of those with a time
 * @unresolved: samples that could not be read, as perf report leaves them out
 * @filtered: samples of guests, which perf report leaves out
 * @deferred: halves of call chains that come after their samples
 * @err: of the first record that could not be converted
 * @priv: of the format
 */
struct export {
	struct perf_tool		tool;
	struct perf_session		*session;
	const struct export_format	*format;
	struct pb_out			out;
	unsigned int			redact;
	struct export_tables		tables;
	struct export_hits		hits;
	struct export_containers	containers;
	struct export_origin		origin;
	u64				first;
	u64				last;
	u64				samples;
	u64				timed;
	u64				unresolved;
	u64				filtered;
	struct deferred_chains		deferred;
	int				err;
	void				*priv;
};

int export_hits__sample(struct export *ex, struct evsel *evsel, struct perf_sample *sample,
			u32 stack, u32 task);
bool export__counts_time(struct evsel *evsel);
const struct export_container *export__container(struct export *ex, u32 cgroup);
u64 export__wall_clock(struct export *ex, u64 time);

#endif /* __PERF_EXPORT_FORMAT_H */
