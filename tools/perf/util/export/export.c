// SPDX-License-Identifier: GPL-2.0
/*
 * Convert a recording to the formats of other profilers.
 *
 * The records are read once, in the order of time; halves of call chains that come after their
 * samples are read before, see deferred-chains.c. The stack and the task of each
 * sample are put into tables (tables.c). Then the sample is handed to the format:
 *
 *   pprof, otlp   add it up with those of the same event, stack and task (hits.c),
 *                 and write everything at the end;
 *   perfetto      writes it at once, and each part of its stack before the first
 *                 sample that has it.
 *
 * Thus memory follows the number of distinct stacks and tasks, not of samples.
 * The sums are those of perf report, because both add up the same values.
 */
#include "export.h"
#include "format.h"

#include "auxtrace.h"
#include "base-api.h"
#include "build-id.h"
#include "callchain.h"
#include "data.h"
#include "debug.h"
#include "deferred-chains.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "machine.h"
#include "names-tool.h"
#include "redact.h"
#include "session.h"
#include "symbol.h"
#include "thread.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/err.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct export_format *const formats[] = {
	&export_pprof,
	&export_otlp,
	&export_perfetto,
};

static int process_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
			  struct perf_sample *sample, struct evsel *evsel, struct machine *machine)
{
	struct export *ex = container_of(tool, struct export, tool);
	struct addr_location al;
	u32 stack, task;
	int err = 0;

	if (deferred_chains__merge(&ex->deferred, sample)) {
		ex->err = -ENOMEM;
		return ex->err;
	}
	addr_location__init(&al);
	if (machine__resolve(machine, &al, sample) < 0) {
		ex->unresolved++;
		goto out;
	}
	/* As perf report, which does not show samples of guests */
	if (al.filtered) {
		ex->filtered++;
		goto out;
	}
	stack = export_tables__stack(&ex->tables, evsel, sample, &al);
	task = export_tables__task(&ex->tables, evsel, sample, &al);
	if (stack == INTERNER_FAILED || task == INTERNER_FAILED)
		err = -ENOMEM;
	else
		err = ex->format->sample(ex, evsel, sample, stack, task);
	ex->samples++;
	/* Not every sample has a time. */
	if (sample->time != -1ULL) {
		if (!ex->timed++ || sample->time < ex->first)
			ex->first = sample->time;
		if (sample->time > ex->last)
			ex->last = sample->time;
	}
	if (!err)
		err = -ex->out.err;
	if (!ex->err)
		ex->err = err;
out:
	addr_location__exit(&al);
	return err;
}

DEFINE_TOOL_SAMPLE(process_sample)

/*
 * A record of all tasks of a CPU names both tasks, and there is a pair for each
 * switch: the second one is left out. A record of one task names only that one.
 */
static int process_switch(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct machine *machine)
{
	struct export *ex = container_of(tool, struct export, tool);
	bool out = event->header.misc & PERF_RECORD_MISC_SWITCH_OUT;
	struct thread *thread, *other = NULL;
	struct export_switch sw = {
		.time		= sample->time,
		.cpu		= sample->cpu,
		.preempted	= event->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
		.prev_comm	= "swapper",
		.next_comm	= "swapper",
	};
	int err;

	err = perf_event__process_switch(tool, event, sample, machine);
	if (err || !ex->format->context_switch || sample->cpu == (u32)-1)
		return err;
	if (event->header.type == PERF_RECORD_SWITCH_CPU_WIDE && !out)
		return 0;
	thread = machine__findnew_thread(machine, sample->pid, sample->tid);
	if (event->header.type == PERF_RECORD_SWITCH_CPU_WIDE)
		other = machine__findnew_thread(machine, event->context_switch.next_prev_pid,
						event->context_switch.next_prev_tid);
	if (thread && out) {
		sw.prev_tid = thread__tid(thread);
		sw.prev_comm = thread__comm_str(thread);
	} else if (thread) {
		sw.next_tid = thread__tid(thread);
		sw.next_comm = thread__comm_str(thread);
	}
	if (other) {
		sw.next_tid = thread__tid(other);
		sw.next_comm = thread__comm_str(other);
	}
	err = ex->format->context_switch(ex, &sw);
	if (!err)
		err = -ex->out.err;
	if (!ex->err)
		ex->err = err;
	thread__put(thread);
	thread__put(other);
	return err;
}

static int process_attr(const struct perf_tool *tool, union perf_event *event,
			struct evlist **evlist)
{
	struct export *ex = container_of(tool, struct export, tool);
	int err = perf_event__process_attr(tool, event, evlist);

	if (!err)
		callchain__set_up(*evlist, &ex->session->header.env);
	return err;
}

/* In a pipe, a record that is no feature ends the features. */
static int process_feature(const struct perf_tool *tool __maybe_unused,
			   struct perf_session *session, union perf_event *event)
{
	if (event->feat.feat_id >= HEADER_LAST_FEATURE)
		return 0;
	return perf_tool__process_feature(tool, session, event);
}

DEFINE_TOOL_FEATURE(process_feature)

static void init_tool(struct perf_tool *tool)
{
	names_tool__init(tool);
	tool->sample		= process_sample__of_tool;
	tool->context_switch	= process_switch;
	tool->attr		= process_attr;
	tool->auxtrace_info	= perf_event__process_auxtrace_info;
	tool->auxtrace		= perf_event__process_auxtrace;
	tool->feature		= process_feature__of_tool;
}

/* The output must not be the file that is read. */
static int check_output(const struct perf_data *data, const char *output)
{
	struct stat in, out;

	if (!strcmp(output, "-")) {
		if (!isatty(STDOUT_FILENO))
			return 0;
		pr_err("A profile is not text: it is not written to a terminal. Redirect the output, or name a file.\n");
		return -EINVAL;
	}
	/* Look at the open file: it may be the standard input, or was written by a pipe. */
	if (stat(output, &out) || fstat(perf_data__fd((struct perf_data *)data), &in) ||
	    in.st_dev != out.st_dev || in.st_ino != out.st_ino)
		return 0;
	pr_err("%s is the recording: choose another name for the output.\n", output);
	return -EINVAL;
}

static int read_records(struct export *ex)
{
	struct perf_data *data = ex->session->data;
	int err = 0;

	/* A pipe cannot be read twice: perf_session merges its call chains. */
	if (!perf_data__is_pipe(data)) {
		perf_tool__set_deferred(&ex->tool, NULL);
		err = deferred_chains__read(&ex->deferred, ex->session->evlist, data->path,
					    data->force);
	}
	if (!err)
		err = perf_session__process_events(ex->session);
	/* A header with a wrong size leaves the length of what was read last. */
	if (err > 0)
		err = -EIO;
	if (ex->err)
		err = ex->err;
	if (err == -ENOMEM)
		pr_err("There is not enough memory for the stacks of the recording.\n");
	else if (err && !ex->out.err)
		pr_err("%s cannot be read to its end (error %d): nothing was written.\n",
		       data->path, err);
	return err;
}

static void tell(struct export *ex, const char *output)
{
	if (ex->unresolved)
		pr_warning("%" PRIu64 " samples could not be resolved and were left out.\n",
			   ex->unresolved);
	if (ex->deferred.missing)
		pr_warning("%" PRIu64 " samples lack the user half of their call chain.\n",
			   ex->deferred.missing);
	if (ex->filtered)
		pr_warning("%" PRIu64 " samples of guests were left out.\n", ex->filtered);
	if (!ex->samples)
		pr_warning("%s has no samples.\n", ex->session->data->path);
	fprintf(stderr, "[ perf data convert: wrote %" PRIu64 " samples with %u stacks to %s ",
		ex->samples, ex->tables.stacks.nr - 1, output);
	fprintf(stderr, "(%s, %.3f MB) ]\n", ex->format->name, ex->out.bytes / 1024.0 / 1024.0);
}

static int convert(struct export *ex, const struct export_options *opts)
{
	struct perf_env *env = &ex->session->header.env;
	int err;

	/* Stacks are shown where samples have them; perf report decides it by the header. */
	symbol_conf.use_callchain = true;
	/* The last call first, whatever call-graph.order is for perf report. */
	callchain_param.order = ORDER_CALLEE;
	/* Samples may follow the exit of their task: keep its name, as perf report does. */
	symbol_conf.keep_exited_threads = true;
	if (symbol__init(env) < 0)
		return -EINVAL;
	if (callchain_register_param(&callchain_param) < 0)
		return -EINVAL;
	if (!perf_data__is_pipe(ex->session->data))
		callchain__set_up(ex->session->evlist, env);
	err = check_output(ex->session->data, opts->output);
	if (err)
		return err;
	err = export_tables__init(&ex->tables) ?:
	      export_origin__read(&ex->origin, ex->session->data->path, env);
	if (err)
		return err;
	ex->tables.redact_home = ex->redact & EXPORT_REDACT_HOME;
	ex->tables.redact_args = ex->redact & EXPORT_REDACT_ARGS;
	export_origin__redact(&ex->origin, ex->redact);
	err = pb_out__open(&ex->out, opts->output, opts->force);
	if (err)
		return err;
	if (ex->format->begin)
		err = ex->format->begin(ex);
	if (!err)
		err = read_records(ex);
	if (!err)
		err = ex->format->finish(ex);
	err = pb_out__close(&ex->out, err);
	if (!err)
		tell(ex, opts->output);
	return err;
}

/**
 * export__run - convert a recording
 * @opts: what to convert to what
 *
 * Return: 0, or a negative errno after a message.
 */
int export__run(const struct export_options *opts)
{
	struct itrace_synth_opts itrace = { .set = false };
	struct perf_data data = {
		.mode	= PERF_DATA_MODE_READ,
		.path	= opts->input,
		.force	= opts->force,
	};
	struct export ex = {};
	struct stat st;
	size_t i;
	int err;

	/* As perf report does it, without -i */
	if (!data.path)
		data.path = !fstat(STDIN_FILENO, &st) && S_ISFIFO(st.st_mode) ? "-" : "perf.data";
	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!strcmp(formats[i]->name, opts->format))
			ex.format = formats[i];
	}
	if (!ex.format)
		return -EINVAL;
	if (opts->redact && export_redact__parse(opts->redact, &ex.redact))
		return -EINVAL;
	init_tool(&ex.tool);
	ex.session = perf_session__new(&data, &ex.tool);
	if (IS_ERR(ex.session))
		return PTR_ERR(ex.session);
	ex.session->itrace_synth_opts = &itrace;

	err = convert(&ex, opts);

	if (ex.format->exit)
		ex.format->exit(&ex);
	deferred_chains__exit(&ex.deferred);
	export_hits__exit(&ex.hits);
	export_containers__exit(&ex.containers);
	export_origin__exit(&ex.origin);
	export_tables__exit(&ex.tables);
	perf_session__delete(ex.session);
	return err;
}
