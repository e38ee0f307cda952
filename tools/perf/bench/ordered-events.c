// SPDX-License-Identifier: GPL-2.0
/*
 * How much CPU time it takes to put the events of a recording into the order of their
 * times: a made-up recording is read by a session that does nothing with its
 * events, and the same number of events of one CPU, which are in order, is what
 * that costs without anything to reorder.
 *
 * With --output the recording is written, and nothing is measured: that is
 * where tests and benchmarks of whole commands get theirs.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
#include <linux/compiler.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <subcmd/parse-options.h>
#include "../util/base-api.h"
#include "../util/clockid.h"
#include "../util/data.h"
#include "../util/debug.h"
#include "../util/sample.h"
#include "../util/session.h"
#include "../util/stat.h"
#include "../util/tool.h"
#include "../util/util.h"
#include "bench.h"
#include "synth-data.h"

static struct synth_data synth = {
	.nr_cpus	= 64,
	.nr_rounds	= 100,
	.nr_events	= 100,
	.nr_evsels	= 1,
	.nr_tasks	= 1,
	.ties		= 1,
};

static const char *output;
static const char *form = "file";
static unsigned int nr_loops = 5;

static const struct option options[] = {
	OPT_UINTEGER('c', "cpus", &synth.nr_cpus, "number of CPUs (default 64)"),
	OPT_UINTEGER('r', "rounds", &synth.nr_rounds, "number of passes over them (default 100)"),
	OPT_UINTEGER('n', "events", &synth.nr_events,
		     "number of events for each CPU and pass (default 100)"),
	OPT_UINTEGER('e', "evsels", &synth.nr_evsels, "number of different events (default 1)"),
	OPT_UINTEGER('p', "tasks", &synth.nr_tasks, "number of tasks (default 1)"),
	OPT_UINTEGER('d', "disorder", &synth.disorder, "swap so many neighbours in 1000"),
	OPT_UINTEGER('L', "late", &synth.late, "let so many events in 1000 be three passes late"),
	OPT_UINTEGER('t', "ties", &synth.ties, "round times to a multiple (default 1)"),
	OPT_UINTEGER('s', "side-band", &synth.side_band, "let so many events in 1000 be COMM"),
	OPT_UINTEGER('T', "timeless", &synth.timeless, "number of events without a time"),
	OPT_UINTEGER('S', "seed", &synth.seed, "seed of the random numbers"),
	OPT_BOOLEAN('b', "backward", &synth.backward, "newest first, as in a backward buffer"),
	OPT_BOOLEAN('R', "no-rounds", &synth.no_rounds, "do not mark the ends of passes"),
	OPT_STRING('f', "form", &form, "file|pipe|dir", "how to store it (default file)"),
	OPT_STRING('o', "output", &output, "path", "write it there, and measure nothing"),
	OPT_UINTEGER('l', "loops", &nr_loops, "number of measurements (default 5)"),
	OPT_END()
};

static const char *const bench_usage[] = {
	"perf bench internals ordered-events <options>",
	NULL
};

struct bench_tool {
	struct perf_tool	tool;
	u64			nr_events;
	u64			last_time;
	u64			nr_backward;
};

static int bench_tool__event(const struct perf_tool *tool, union perf_event *event __maybe_unused,
			     struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct bench_tool *bt = container_of(tool, struct bench_tool, tool);

	bt->nr_events++;
	bt->nr_backward += sample->time < bt->last_time;
	bt->last_time = sample->time;
	return 0;
}

static int bench_tool__sample(const struct perf_tool *tool, union perf_event *event,
			      struct perf_sample *sample, struct evsel *evsel __maybe_unused,
			      struct machine *machine)
{
	return bench_tool__event(tool, event, sample, machine);
}

DEFINE_TOOL_SAMPLE(bench_tool__sample)

static int measure(const char *path, struct stats *nsec, struct bench_tool *bt)
{
	struct perf_data data = { .path = path, .mode = PERF_DATA_MODE_READ };
	u64 start = 0, end = 0;
	struct perf_session *session;
	int err;

	*bt = (struct bench_tool) { .nr_events = 0 };
	perf_tool__init(&bt->tool, /*ordered_events=*/true);
	bt->tool.sample = bench_tool__sample__of_tool;
	bt->tool.comm = bench_tool__event;
	bt->tool.no_warn = true;

	session = perf_session__new(&data, &bt->tool);
	if (IS_ERR(session))
		return PTR_ERR(session);

	clockid__read(CLOCK_PROCESS_CPUTIME_ID, &start);
	err = perf_session__process_events(session);
	clockid__read(CLOCK_PROCESS_CPUTIME_ID, &end);
	if (bt->nr_events)
		update_stats(nsec, (end - start) / bt->nr_events);

	perf_session__delete(session);
	return err;
}

static int run(const struct synth_data *sd, const char *what)
{
	char dir[] = "/tmp/perf-bench-XXXXXX", path[PATH_MAX];
	struct bench_tool bt;
	struct stats nsec;
	unsigned int i;
	int err;

	if (!mkdtemp(dir))
		return -errno;
	snprintf(path, sizeof(path), "%s/perf.data", dir);

	init_stats(&nsec);
	err = synth_data__write(sd, path);
	for (i = 0; i < nr_loops && !err; i++)
		err = measure(path, &nsec, &bt);
	rm_rf_perf_data(path);
	rmdir(dir);
	if (err)
		return err;

	printf("    %s: %" PRIu64 " events, %.1f nsec for each (+- %.1f nsec), %" PRIu64
	       " not in order\n", what, bt.nr_events, avg_stats(&nsec), stddev_stats(&nsec),
	       bt.nr_backward);
	return 0;
}

static int parse_form(void)
{
	static const char * const forms[] = {
		[SYNTH_FORM__FILE] = "file",
		[SYNTH_FORM__PIPE] = "pipe",
		[SYNTH_FORM__DIR]  = "dir",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		if (!strcmp(form, forms[i])) {
			synth.form = i;
			return 0;
		}
	}

	pr_err("--form is one of file, pipe and dir, not '%s'.\n", form);
	return -EINVAL;
}

int bench_ordered_events(int argc, const char **argv)
{
	struct synth_data one_cpu;
	int err;

	argc = parse_options(argc, argv, options, bench_usage, 0);
	if (argc) {
		usage_with_options(bench_usage, options);
		exit(EXIT_FAILURE);
	}

	err = parse_form();
	if (err)
		return err;

	if (output) {
		err = synth_data__write(&synth, output);
		if (err)
			pr_err("Cannot write %s: %s\n", output, strerror(-err));
		return err;
	}

	one_cpu = synth;
	one_cpu.nr_events *= one_cpu.nr_cpus;
	one_cpu.nr_cpus = 1;
	one_cpu.backward = false;
	one_cpu.disorder = 0;
	one_cpu.late = 0;

	puts("Computing the CPU time to order the events of a recording:");
	err = run(&synth, "as asked for") ?: run(&one_cpu, "one CPU, in order");
	if (err)
		pr_err("Failed: %s\n", strerror(-err));
	return err;
}
