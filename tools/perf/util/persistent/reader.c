// SPDX-License-Identifier: GPL-2.0
/*
 * Read a persistent session: open its events, copy its buffers, and describe the tasks in
 * the records. The caller's put() gets the records and the descriptions.
 *
 * A pass copies all buffers one after the other, samples before side-band, so that the
 * side-band covers all samples. Only then are the records passed to put(), for each buffer
 * from the oldest to the newest. The first copy is made before anything is synthesized or
 * written. These would fill the buffers with records of perf itself, which push out older
 * ones.
 *
 * The cost of a pass depends on what is new. For a buffer without new records it is one
 * load of its head. The memory of the copies is kept between passes, and adapted to the
 * needs of the recent ones; see perf_snapshot__trim(). Records are put in order in a buffer
 * of fixed size, chunk by chunk.
 *
 * A live process is described as it is now, from /proc, with time 0. A process that has
 * exited is known only from the side-band. Side-band records change the description at
 * their own time. PERF_RECORD_FORK needs care: it makes perf report forget the process and
 * start with the maps of its parent. That is right if all later records of the process are
 * there. If a buffer does not reach back as far, some may be missing. The description from
 * /proc is better then. Therefore the fork of a process that is alive, or that the caller
 * knows, is left out.
 */
#include "reader.h"
#include "persistent.h"
#include "../base-api.h"
#include "../clockid.h"
#include "../cpumap.h"
#include "../data.h"
#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../header.h"
#include "../machine.h"
#include "../record.h"
#include "../session.h"
#include "../symbol.h"
#include "../synthetic-events.h"
#include "../target.h"
#include "../util.h"

#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <perf/event.h>
#include <perf/threadmap.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Records are handed on in chunks of at least this size, and up to a record more. */
#define CHUNK_SIZE	(256 * 1024)

/* Records */

static int process_synthesized(const struct perf_tool *tool, union perf_event *event,
			       struct perf_sample *sample __maybe_unused,
			       struct machine *machine __maybe_unused)
{
	struct persistent_reader *r = container_of(tool, struct persistent_reader, tool);

	return r->put(r, event, event->header.size);
}

static bool is_alive(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static bool is_stale_fork(struct persistent_reader *r, union perf_event *event)
{
	__u64 time;

	return event->header.type == PERF_RECORD_FORK &&
	       event->fork.pid == event->fork.tid &&
	       persistent_record_time(event, r->evlist, &time) && time < r->complete_since &&
	       (is_alive(event->fork.pid) || (r->knows && r->knows(r, event->fork.pid)));
}

/* Since the last pass nothing was written, and nothing went wrong. */
static bool buffer__is_unchanged(const struct persistent_buffer *buf)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(buf->snap);

	return buf->cover.data_size && !info->err && !info->len && !info->gap && !info->retries;
}

static void reader__find_windows(struct persistent_reader *r)
{
	struct snapshot_cover cover;

	for (int i = 0; i < r->nr_buffers; i++) {
		struct persistent_buffer *buf = &r->buffers[i];

		if (buffer__is_unchanged(buf))
			continue;
		snapshot_cover__fill(&cover, buf->event->cpu, buf->snap, r->evlist);
		if (buf->cover.data_size)
			snapshot_cover__add(&buf->cover, &cover);
		else
			buf->cover = cover;
		if (buf->kind != PERSISTENT_SIDEBAND)
			continue;
		if (cover.err)
			r->complete_since = -1ULL;
		else if (cover.wrapped)
			r->complete_since = max(r->complete_since, buf->cover.oldest);
	}
}

static int buffer__write(struct persistent_buffer *buf, struct persistent_reader *r)
{
	union perf_event *event = NULL;
	size_t len = 0;
	int err = 0;

	while (!err && (event = perf_snapshot__newer(buf->snap, event)) != NULL) {
		if (is_stale_fork(r, event))
			continue;
		/* A reader would stop there. */
		if (!evlist__event2evsel(r->evlist, event)) {
			r->unknown++;
			continue;
		}
		memcpy(r->chunk + len, event, event->header.size);
		len += event->header.size;
		r->samples += event->header.type == PERF_RECORD_SAMPLE;
		buf->nr_records++;
		if (len >= CHUNK_SIZE) {
			err = r->put(r, r->chunk, len);
			len = 0;
		}
	}
	if (!err && len)
		err = r->put(r, r->chunk, len);
	return err;
}

/**
 * persistent_reader__put_pass - hand on what the last persistent_reader__take() copied
 * @r: the reader
 *
 * Ends with PERF_RECORD_FINISHED_ROUND. The copies are gone after that, also if it
 * fails; their memory may be kept for the next pass.
 *
 * Return: 0, a negative errno, or what put() returned to end it.
 */
int persistent_reader__put_pass(struct persistent_reader *r)
{
	struct perf_event_header round = {
		.size = sizeof(round),
		.type = PERF_RECORD_FINISHED_ROUND,
	};
	int err = 0;

	if (!r->chunk)
		r->chunk = malloc(CHUNK_SIZE + PERF_SAMPLE_MAX_SIZE);
	if (!r->chunk)
		err = -ENOMEM;

	reader__find_windows(r);
	for (int i = 0; i < r->nr_buffers && !err; i++)
		err = buffer__write(&r->buffers[i], r);
	perf_snapshot_set__trim(r->set);
	return err ?: r->put(r, &round, sizeof(round));
}

/* Description of the records */

static int reader__create_evlist(struct persistent_reader *r)
{
	r->evlist = persistent_session__new_evlist(r->ps);
	if (r->evlist)
		return 0;

	if (errno == EINVAL)
		pr_err("The records of session '%s' cannot be told apart: its events need sample_id_all and PERF_SAMPLE_IDENTIFIER.\n",
		       r->ps->name);
	return -errno;
}

/* The clock of the records, if all events have the same: for the header. */
static void reader__set_clock(struct persistent_reader *r)
{
	struct evsel *first = evlist__first(r->evlist), *evsel;
	struct record_opts *opts = r->opts;

	opts->use_clockid = false;
	evlist__for_each_entry(r->evlist, evsel) {
		if (!evsel->core.attr.use_clockid ||
		    evsel->core.attr.clockid != first->core.attr.clockid)
			return;
	}
	if (get_clockid_res(first->core.attr.clockid, &opts->clockid_res_ns))
		return;

	opts->use_clockid = true;
	opts->clockid = first->core.attr.clockid;
}

/**
 * persistent_reader__set_options - set the options that follow from the events
 * @r: the reader, with its evlist
 */
void persistent_reader__set_options(struct persistent_reader *r)
{
	struct evsel *evsel;
	bool with = false, without = false;

	evlist__for_each_entry(r->evlist, evsel) {
		with |= evsel->core.attr.build_id;
		without |= evsel->core.attr.mmap2 && !evsel->core.attr.build_id;
		r->tool.namespace_events |= evsel->core.attr.namespaces;
		r->tool.cgroup_events |= evsel->core.attr.cgroup;
		if (evsel__has_br_stack(evsel))
			r->opts->branch_stack |= evsel->core.attr.branch_sample_type;
	}
	/* The same kind of map everywhere, or a file seems to be two. */
	symbol_conf__set_buildid_mmap2(with, without);
}

/**
 * persistent_reader__describe - make an evlist, and set the options that follow from it
 * @r: the reader, open
 *
 * perf record writes its header as if the events of the session had been asked for.
 *
 * Return: 0, or a negative errno when the user was told, but for -ENOMEM. Then there is
 * no evlist.
 */
int persistent_reader__describe(struct persistent_reader *r)
{
	int err = reader__create_evlist(r);

	if (err)
		return err;

	perf_tool__init(&r->tool, /*ordered_events=*/false);
	persistent_reader__set_options(r);
	/* No task of perf record's own: the workload is one of many. */
	r->opts->target.system_wide = true;
	reader__set_clock(r);
	return 0;
}

/* perf_event__synthesize_bpf_events() uses the tool of the session: set the reader's. */
static int synthesize_bpf_programs(struct persistent_reader *r, struct machine *machine)
{
	const struct perf_tool *tool = r->session->tool;
	int err;

	r->session->tool = &r->tool;
	err = perf_event__synthesize_bpf_events(r->session, process_synthesized, machine, r->opts);
	r->session->tool = tool;
	return err;
}

/**
 * persistent_reader__synthesize - what the records alone do not tell: the kernel, and the
 * processes that live
 * @r: the reader, with perf's session
 *
 * Return: 0 or a negative errno.
 */
int persistent_reader__synthesize(struct persistent_reader *r)
{
	struct machine *machine = &r->session->machines.host;
	struct target target = { .system_wide = true };
	struct perf_tool *tool = &r->tool;
	int err;

	err = perf_event__synth_time_conv(perf_snapshot__header_page(r->buffers[0].snap), tool,
					  process_synthesized, machine);
	if (err)
		return err;

	err = perf_event__synthesize_id_index(tool, process_synthesized, r->evlist, machine);
	if (err)
		return err;

	if (perf_event__synthesize_kernel_mmap(tool, process_synthesized, machine) < 0 ||
	    perf_event__synthesize_modules(tool, process_synthesized, machine) < 0)
		pr_warning("Cannot describe the kernel: its functions may stay unnamed (see /proc/sys/kernel/kptr_restrict).\n");

	err = perf_event__synthesize_thread_map2(tool, evlist__core(r->evlist)->threads,
						 process_synthesized, NULL);
	if (err)
		return err;

	err = perf_event__synthesize_cpu_map(tool, evlist__core(r->evlist)->all_cpus,
					     process_synthesized, NULL);
	if (err)
		return err;

	err = synthesize_bpf_programs(r, machine);
	if (err < 0)
		pr_warning("Cannot describe the BPF programs.\n");

	if (tool->cgroup_events &&
	    perf_event__synthesize_cgroups(tool, process_synthesized, machine) < 0)
		pr_warning("Cannot describe the cgroups.\n");

	return __machine__synthesize_threads(machine, tool, &target,
					     evlist__core(r->evlist)->threads,
					     process_synthesized, /*needs_mmap=*/true,
					     /*data_mmap=*/false, /*nr_threads_synthesize=*/1);
}

/**
 * persistent_reader__open - open a session and map its buffers
 * @r: the reader, with its options
 * @what: name of the session, or "id=ID"
 *
 * Return: 0 or a negative errno when the user was told.
 */
int persistent_reader__open(struct persistent_reader *r, const char *what)
{
	const char *cpu_list = r->opts->target.cpu_list;

	if (cpu_list) {
		r->cpus = perf_cpu_map__new(cpu_list);
		if (!r->cpus) {
			pr_err("No such CPUs: %s\n", cpu_list);
			return -EINVAL;
		}
	}

	if (!r->data->path)
		r->data->path = "perf.data";
	if (!strcmp(r->data->path, "-")) {
		pr_err("A persistent session is not written to a pipe: name a file with -o.\n");
		return -EINVAL;
	}

	r->ps = persistent_session__open(what);
	if (IS_ERR(r->ps)) {
		int err = PTR_ERR(r->ps);

		r->ps = NULL;
		return err;
	}
	return persistent_reader__map(r);
}

/* But for the evlist and perf's session, which are perf record's. */
void persistent_reader__exit(struct persistent_reader *r)
{
	persistent_reader__forget_session(r);
	free(r->chunk);
	perf_cpu_map__put(r->cpus);
}
