/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What perf's own functions are called, and what they take, in the kernels that our files
 * are built with
 *
 * Our files use the names of the newest kernel where these suffice. The others are here:
 * functions that take an event, which newer kernels find in the sample, and callbacks of a
 * tool, which newer kernels give no event. A hook for a newer kernel takes PERF_6_12 out,
 * and adds those of that kernel.
 */
#ifndef __PERF_BASE_API_H
#define __PERF_BASE_API_H

#define PERF_6_12

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <linux/compiler.h>
#include <linux/err.h>
#include <perf/cpumap.h>

#include "build-id.h"
#include "callchain.h"
#include "cap.h"
#include "env.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "hist.h"
#include "machine.h"
#include "record.h"
#include "sample.h"
#include "session.h"
#include "sort.h"
#include "strbuf.h"
#include "symbol.h"
#include "symbol_conf.h"
#include "target.h"
#include "tool.h"

#ifdef PERF_6_12

#include "syscalltbl.h"

/* Names of newer kernels */

/* Header, number of bytes in use, compressed bytes */
#define PERF_RECORD_COMPRESSED2	83

/* The half of a call chain that a sample lacks */
#define PERF_RECORD_CALLCHAIN_DEFERRED	22
#define PERF_CONTEXT_USER_DEFERRED	((__u64)-640)

struct perf_record_callchain_deferred {
	struct perf_event_header header;
	__u64			 cookie;
	__u64			 nr;
	__u64			 ips[];
};

static inline struct perf_evlist *evlist__core(struct evlist *evlist)
{
	return &evlist->core;
}

static inline int evlist__nr_entries(const struct evlist *evlist)
{
	return evlist->core.nr_entries;
}

static inline bool evlist__enabled(const struct evlist *evlist)
{
	return evlist->enabled;
}

static inline void evlist__set_enabled(struct evlist *evlist, bool enabled)
{
	evlist->enabled = enabled;
}

static inline struct events_stats *evlist__stats(struct evlist *evlist)
{
	return &evlist->stats;
}

static inline int evlist__id_pos(const struct evlist *evlist)
{
	return evlist->id_pos;
}

static inline int evlist__is_pos(const struct evlist *evlist)
{
	return evlist->is_pos;
}

static inline struct mmap *evlist__overwrite_mmap(struct evlist *evlist)
{
	return evlist->overwrite_mmap;
}

static inline void evlist__set_first_sample_time(struct evlist *evlist, u64 first)
{
	evlist->first_sample_time = first;
}

static inline void evlist__set_last_sample_time(struct evlist *evlist, u64 last)
{
	evlist->last_sample_time = last;
}

static inline pid_t evlist__workload_pid(const struct evlist *evlist)
{
	return evlist->workload.pid;
}

static inline int evlist__do_mmap(struct evlist *evlist, unsigned int pages)
{
	return evlist__mmap(evlist, pages);
}

static inline void evlist__do_munmap(struct evlist *evlist)
{
	evlist__munmap(evlist);
}

#define evlist__mmap(evlist)	((evlist)->mmap)

static inline void evlist__put(struct evlist *evlist)
{
	evlist__delete(evlist);
}

static inline void evsel__put(struct evsel *evsel)
{
	evsel__delete(evsel);
}

static inline void evlist__format_evsels(struct evlist *evlist, struct strbuf *sb,
					 size_t max_length)
{
	char text[2048] = "";

	evlist__scnprintf_evsels(evlist, max_length < sizeof(text) ? max_length : sizeof(text),
				 text);
	strbuf_addstr(sb, text);
}

#ifdef HAVE_LIBTRACEEVENT
static inline struct tep_event *evsel__tp_format(struct evsel *evsel)
{
	return IS_ERR(evsel->tp_format) ? NULL : evsel->tp_format;
}
#endif

static inline int build_id__snprintf(const struct build_id *build_id, char *bf,
				     size_t size __maybe_unused)
{
	return build_id__sprintf(build_id, bf);
}

static inline int filename__snprintf_build_id(const char *pathname, char *bf,
					      size_t size __maybe_unused)
{
	return filename__sprintf_build_id(pathname, bf);
}

static inline int sysfs__snprintf_build_id(const char *root_dir, char *bf,
					   size_t size __maybe_unused)
{
	return sysfs__sprintf_build_id(root_dir, bf);
}

static inline bool symbol__inlined(const struct symbol *sym)
{
	return sym->inlined;
}

static inline void perf_sample__init(struct perf_sample *sample, bool all)
{
	if (all)
		memset(sample, 0, sizeof(*sample));
}

static inline void perf_sample__exit(struct perf_sample *sample __maybe_unused)
{
}

static inline void perf_sample__set_evsel(struct perf_sample *sample __maybe_unused,
					  struct evsel *evsel __maybe_unused)
{
}

#define perf_tool__process_feature(tool, session, event)	\
	((void)(tool), perf_event__process_feature(session, event))

/* Functions that no kernel has */

static inline bool evsel__defers_callchain(const struct evsel *evsel __maybe_unused)
{
	return false;
}

/* Newer kernels have the two bits at the beginning of the 26 that are reserved here. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ATTR_DEFERRAL	(3 << 24)
#else
#define ATTR_DEFERRAL	3
#endif

static inline void attr__copy_deferral(struct perf_event_attr *to,
				       const struct perf_event_attr *from)
{
	to->__reserved_1 = from->__reserved_1 & ATTR_DEFERRAL;
}

/* User halves of call chains: no event is given them. */
static inline bool attr__outputs_halves(const struct perf_event_attr *attr __maybe_unused)
{
	return false;
}

static inline void attr__set_halves(struct perf_event_attr *attr __maybe_unused,
				    bool output __maybe_unused)
{
}

/* The tool merges no call chains; @fn is given the halves that come after their samples. */
#define perf_tool__set_deferred(tool, fn)	((void)(tool), (void)(fn))

static inline bool perf_cap__has(int cap)
{
	bool used_root;

	return perf_cap__capable(cap, &used_root);
}

/* Return: 0, or -ENOMEM with @orig set to NULL: perf 6.12 may have put the map. */
static inline int cpu_map__merge(struct perf_cpu_map **orig, struct perf_cpu_map *other)
{
	struct perf_cpu_map *old = *orig;

	*orig = perf_cpu_map__merge(old, other);
	return *orig || (!old && !other) ? 0 : -ENOMEM;
}

/* The CPUs of an event that perf does not open: not to be derived from those that are online */
static inline struct perf_cpu_map **evsel__own_cpus(struct evsel *evsel)
{
	return &evsel->core.own_cpus;
}

static inline struct machine *host_machine__new(struct perf_env *env __maybe_unused)
{
	return machine__new_host();
}

/* Whether perf_session__process_event() refuses a record, or leaves it out */
static inline bool perf_event__is_damaged(const union perf_event *event __maybe_unused)
{
	return false;
}

/* After the header was written; perf 6.12 keeps the files when it writes the build-ids. */
static inline void perf_session__keep_files(struct perf_session *session __maybe_unused)
{
}

/* For an evlist without a session */
static inline void evlist__set_host_env(struct evlist *evlist)
{
	evlist->env = &perf_env;
}

static inline void callchain__set_up(struct evlist *evlist, struct perf_env *env)
{
	callchain_param_setup(evlist__combined_sample_type(evlist), perf_env__arch(env));
}

static inline void target__select_all_users(struct target *target)
{
	target->uid = UINT_MAX;
}

/* Whether maps that are not executable are described, too */
static inline bool record_opts__data_mmap(const struct record_opts *opts)
{
	return opts->sample_address;
}

/* @with: an event writes maps with build-ids; @without: an event writes maps without */
static inline void symbol_conf__set_buildid_mmap2(bool with, bool without __maybe_unused)
{
	symbol_conf.buildid_mmap2 |= with;
}

static inline void hist_entry_iter__set_evsel(struct hist_entry_iter *iter, struct evsel *evsel)
{
	iter->evsel = evsel;
}

static inline int sorting__set_up(struct evlist *evlist, struct perf_env *env __maybe_unused)
{
	return setup_sorting(evlist);
}

/* Return: the number of a system call of this machine, -1, or -ENOMEM */
#if defined(HAVE_SYSCALL_TABLE_SUPPORT) && defined(HAVE_LIBTRACEEVENT)
#define HAVE_SYSCALL_NAMES

static inline int syscall__number(const char *name)
{
	struct syscalltbl *table = syscalltbl__new();
	int nr;

	if (!table)
		return -ENOMEM;
	nr = syscalltbl__id(table, name);
	syscalltbl__delete(table);
	return nr;
}
#endif

#define sample__chain(sample, cursor, evsel, al, max_stack)				\
	sample__resolve_callchain(sample, cursor, NULL, evsel, al, max_stack)
#define thread__chain(thread, cursor, evsel, sample, max_stack)				\
	thread__resolve_callchain(thread, cursor, evsel, sample, NULL, NULL, max_stack)
#define sample__for_each_node(thread, evsel, sample, max_stack, symbols, cb, data)	\
	sample__for_each_callchain_node(thread, evsel, sample, max_stack, symbols, cb, data)
#define sample__mark_dso_hit(tool, event, sample, evsel, machine)			\
	build_id__mark_dso_hit(tool, event, sample, evsel, machine)
#define sample__number(sample, evsel, name)	evsel__intval(evsel, sample, name)
#define sample__text(sample, evsel, name)	((const char *)evsel__rawptr(evsel, sample, name))

/*
 * DEFINE_TOOL_SAMPLE(fn) defines fn__of_tool(), which gives samples of a tool to fn(),
 * DEFINE_TOOL_FEATURE(fn) likewise for features of a header in a pipe.
 */
#define DEFINE_TOOL_SAMPLE(fn)								\
static int fn##__of_tool(const struct perf_tool *tool, union perf_event *event,		\
			 struct perf_sample *sample, struct evsel *evsel,		\
			 struct machine *machine)					\
{											\
	return fn(tool, event, sample, evsel, machine);					\
}

#define DEFINE_TOOL_FEATURE(fn)								\
static int fn##__of_tool(struct perf_session *session, union perf_event *event)		\
{											\
	return fn(session->tool, session, event);					\
}

#endif /* PERF_6_12 */

#endif /* __PERF_BASE_API_H */
