// SPDX-License-Identifier: GPL-2.0
/*
 * The options of perf record for the flight recorder: check them, and print a message for
 * each invalid combination
 */
#include "options.h"
#include "dump/archive.h"
#include "dump/combine.h"
#include "auto-size.h"
#include "daemon.h"
#include "dump/on-dump.h"
#include "trigger/triggers.h"
#include "../base-api.h"
#include "../clockid.h"
#include "../cpumap.h"
#include "../data.h"
#include "../debug.h"
#include "../event-sets.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../mmap.h"
#include "../record.h"
#include "../target.h"
#include "../units.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <subcmd/parse-options.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIN_SIZE	(1024 * 1024UL)

#define DEFAULT_EVENT_SET	"incident"

/* --max-overhead, in per cent */
#define MIN_OVERHEAD	0.01
#define MAX_OVERHEAD	100

/* The default --max-disk if a trigger fires by itself, and the same in terms of SIZE. */
#define DEFAULT_MAX_DISK	((u64)1 << 30)
#define MAX_DISK_SHARE		((u64)4)

/* How long a child may write; and a second for each MiB. */
#define DUMP_TIMEOUT		((u64)300 * NSEC_PER_SEC)

/* The kernel's buffers may use this fraction of the memory. */
#define BUFFERS_SHARE	4UL

/* With --overwrite: minimum size of the kernel's buffers per CPU, and of perf's memory. */
#define SIDEBAND_BUFFER	(128 * 1024UL)
#define SIDEBAND_MEMORY	(4 * 1024 * 1024UL)

static int parse_size(const char *option, const char *str, u64 *value)
{
	static struct parse_tag tags[] = {
		{ .tag = 'B', .mult = 1 },
		{ .tag = 'K', .mult = 1 << 10 },
		{ .tag = 'M', .mult = 1 << 20 },
		{ .tag = 'G', .mult = 1 << 30 },
		{ .tag = 0 },
	};
	unsigned long size = parse_tag_value(str, tags);

	if (size == -1UL || size < MIN_SIZE) {
		pr_err("%s %s: invalid size. Use a size of at least 1M, such as 64M or 1G.\n",
		       option, str);
		return -1;
	}
	*value = size;
	return 0;
}

/* A percentage, with or without its sign */
static int parse_overhead(const char *option, const char *str, double *part)
{
	char *end;
	double value = strtod(str, &end);

	if (end == str || (*end && strcmp(end, "%")) || !isfinite(value) ||
	    value < MIN_OVERHEAD || value > MAX_OVERHEAD) {
		pr_err("%s %s: invalid percentage. Use one from 0.01 to 100, such as 1 or 0.5%%.\n",
		       option, str);
		return -EINVAL;
	}
	*part = value / 100;
	return 0;
}

/**
 * flight_opts__config - take a default of the flight recorder from the configuration
 * @fo: the options of the flight recorder
 * @var: name of the variable
 * @value: its value
 *
 * A variable of another section is left alone.
 *
 * Return: 0 or a negative errno, after an error message.
 */
int flight_opts__config(struct flight_opts *fo, const char *var, const char *value)
{
	char *text;

	if (!strcmp(var, "flight.size"))
		return parse_size("Configuration: flight.size", value, &fo->config.size) ?
			-EINVAL : 0;
	if (!strcmp(var, "flight.max-overhead"))
		return parse_overhead("Configuration: flight.max-overhead", value,
				      &fo->config.max_overhead);
	if (!strcmp(var, "flight.dir")) {
		if (asprintf(&text, "%s/perf.data", value) < 0)
			return -ENOMEM;
		free(fo->config.out);
		fo->config.out = text;
	} else if (!strcmp(var, "flight.event-set")) {
		text = strdup(value);
		if (!text)
			return -ENOMEM;
		free(fo->config.event_set);
		fo->config.event_set = text;
	} else if (strstarts(var, "flight.")) {
		pr_warning("Configuration: %s is ignored: only flight.size, flight.event-set, flight.dir and flight.max-overhead are known.\n",
			   var);
	}
	return 0;
}

int flight_opts__parse_memory(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->memory = 0;
	if (!unset && !strcmp(str, "auto"))
		fo->memory = fo->config.size ?: flight_auto_size();
	else if (!unset)
		return parse_size("-M", str, &fo->memory);
	return 0;
}

int flight_opts__parse_flight(const struct option *opt, const char *str __maybe_unused, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->flight = !unset;
	return 0;
}

/**
 * flight_opts__set_defaults - what --flight stands for
 * @fo: the options of the flight recorder
 * @evlist: the events that were named, to which those of the default set are added if there
 *	    are none
 *
 * Return: 0, or a negative errno after an error message.
 */
int flight_opts__set_defaults(struct flight_opts *fo, struct evlist *evlist)
{
	if (!fo->flight)
		return 0;
	if (!fo->memory)
		fo->memory = fo->config.size ?: flight_auto_size();
	return evlist__nr_entries(evlist) ? 0 :
	       event_sets__add(evlist, fo->config.event_set ?: DEFAULT_EVENT_SET);
}

static const char *out_name(const struct flight_opts *fo, const struct perf_data *data)
{
	return data->path ?: fo->config.out ?: "perf.data";
}

int flight_opts__parse_max_disk(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->max_disk = 0;
	fo->max_disk_given = true;
	return unset || !strcmp(str, "0") ? 0 : parse_size("--max-disk", str, &fo->max_disk);
}

int flight_opts__parse_max_age(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->max_age = 0;
	if (unset || (!flight__parse_time(str, &fo->max_age) && fo->max_age))
		return 0;
	pr_err("--max-age %s: invalid time. Use a time such as 90s, 10m or 2h.\n", str);
	return -1;
}

int flight_opts__parse_max_overhead(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->max_overhead = 0;
	fo->max_overhead_given = true;
	return !unset && parse_overhead("--max-overhead", str, &fo->max_overhead) ? -1 : 0;
}

int flight_opts__parse_max_dump_age(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->max_dump_age = 0;
	if (unset || (!flight__parse_time(str, &fo->max_dump_age) &&
		      fo->max_dump_age >= NSEC_PER_SEC))
		return 0;
	pr_err("--max-dump-age %s: invalid time. Use a time of at least 1s, such as 12h or 30d.\n",
	       str);
	return -1;
}

int flight_opts__parse_dump_timeout(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->dump_timeout = 0;
	if (unset || (!flight__parse_time(str, &fo->dump_timeout) && fo->dump_timeout))
		return 0;
	pr_err("--dump-timeout %s: invalid time. Use a time such as 90s or 10m.\n", str);
	return -1;
}

int flight_opts__parse_fair(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	fo->fair = !unset;
	if (unset || !strcmp(str, "cgroup"))
		return 0;
	pr_err("--fair %s: the memory can be divided among cgroups only. Use --fair cgroup.\n",
	       str);
	return -1;
}

int flight_opts__parse_trigger(const struct option *opt, const char *str, int unset)
{
	struct flight_opts *fo = opt->value;

	if (unset) {
		flight_triggers__free(&fo->triggers);
		return 0;
	}
	return flight_triggers__add(&fo->triggers, str) ? -1 : 0;
}

/**
 * flight_opts__refuse - refuse an option that does not work with a flight recorder
 * @fo: the options of the flight recorder
 * @given: whether it was given
 * @option: its name, with a verb: "--threads does"
 *
 * Return: 0, or -EINVAL after an error message.
 */
int flight_opts__refuse(const struct flight_opts *fo, bool given, const char *option)
{
	if (!fo->memory || !given)
		return 0;
	pr_err("%s not work with -M, which keeps its records in memory and writes a file at each trigger.\n",
	       option);
	return -EINVAL;
}

static int check_conflicts(const struct flight_opts *fo, const struct record_opts *opts)
{
	const struct {
		bool		given;
		const char	*option;
	} conflicts[] = {
		{ opts->threads_spec,		"--threads does" },
		{ opts->nr_cblocks,		"--aio does" },
		{ opts->tail_synthesize,	"--tail-synthesize does" },
		{ opts->kcore,			"--kcore does" },
		/* With it, a pass can leave the newest records in the buffers at a trigger. */
		{ opts->mmap_flush > 1,		"--mmap-flush does" },
		{ opts->auxtrace_mmap_pages || opts->auxtrace_snapshot_opts ||
		  opts->auxtrace_sample_opts,	"AUX area tracing does" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(conflicts); i++) {
		int err = flight_opts__refuse(fo, conflicts[i].given, conflicts[i].option);

		if (err)
			return err;
	}
	return 0;
}

static int check_without(const struct flight_opts *fo)
{
	const struct {
		bool		given;
		const char	*option;
	} ours[] = {
		{ fo->max_age,		"--max-age" },
		{ fo->max_files,	"--max-files" },
		{ fo->max_disk,		"--max-disk" },
		{ fo->max_dump_age,	"--max-dump-age" },
		{ fo->on_dump,		"--on-dump" },
		{ fo->keep,		"--keep" },
		{ fo->fair,		"--fair" },
		{ fo->record_self,	"--record-self" },
		{ fo->max_overhead,	"--max-overhead" },
		{ fo->dump_timeout,	"--dump-timeout" },
		{ fo->daemon,		"--daemon" },
		{ fo->triggers,		"--trigger" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (!ours[i].given)
			continue;
		pr_err("%s is for a flight recorder: give its memory with -M SIZE.\n",
		       ours[i].option);
		return -EINVAL;
	}
	return 0;
}

/* A division among cgroups needs the records in perf's memory, and their cgroups. */
static int check_fair(const struct flight_opts *fo, const struct record_opts *opts)
{
	const struct {
		bool		given;
		const char	*reason;
	} conflicts[] = {
		{ opts->overwrite,
		  "--overwrite, whose samples are in the kernel's buffers: omit one of them" },
		{ opts->comp_level,
		  "-z, which compresses records of several cgroups together: omit one of them" },
		{ opts->record_cgroup_set && !opts->record_cgroup,
		  "--no-all-cgroups, which leaves the cgroups out: omit it" },
	};

	for (size_t i = 0; fo->fair && i < ARRAY_SIZE(conflicts); i++) {
		if (!conflicts[i].given)
			continue;
		pr_err("--fair does not work with %s.\n", conflicts[i].reason);
		return -EINVAL;
	}
	return 0;
}

/**
 * flight_opts__check - check the options
 * @fo: the options of the flight recorder
 * @evlist: the events that -e named
 * @opts: the other options of perf record
 * @argc: number of words of the command to run
 *
 * Return: 0, or -EINVAL after an error message.
 */
int flight_opts__check(struct flight_opts *fo, struct evlist *evlist, struct record_opts *opts,
		       int argc)
{
	struct evsel *evsel;

	if (!fo->memory)
		return check_without(fo);

	if (fo->dry_run && fo->daemon) {
		pr_err("--dry-run with -M does not support --daemon.\n");
		return -EINVAL;
	}
	if (fo->dry_run && argc) {
		pr_err("--dry-run with -M measures for one second and does not run a command: omit the command.\n");
		return -EINVAL;
	}

	evlist__for_each_entry(evlist, evsel) {
		if (evsel__is_aux_event(evsel) || evsel->core.attr.aux_output) {
			pr_err("%s writes to an AUX area, which -M does not support: omit the event.\n",
			       evsel__name(evsel));
			return -EINVAL;
		}
	}
	if (fo->persistent && opts->overwrite) {
		pr_err("--overwrite does not support persistent sessions, whose buffers are overwrite buffers already.\n");
		return -EINVAL;
	}
	return check_conflicts(fo, opts) ?: check_fair(fo, opts);
}

/* The limit needs events that perf opens itself, on CPUs: it cannot change others. */
static int bound_overhead(struct flight_opts *fo, const struct record_opts *opts)
{
	bool possible = target__has_cpu(&opts->target) && !fo->persistent;

	if (!fo->max_overhead_given && possible)
		fo->max_overhead = fo->config.max_overhead;
	if (!fo->max_overhead || possible)
		return 0;
	if (fo->persistent)
		pr_err("--max-overhead does not support persistent sessions, whose events have other readers as well.\n");
	else
		pr_err("--max-overhead is a part of the CPU time of the machine: record CPUs, with -a or -C.\n");
	return -EINVAL;
}

/* A pass over all ring buffers must fit into memory. Offline CPUs have no buffer. */
static int size_buffers(const struct flight_opts *fo, struct record_opts *opts)
{
	int nr_cpus = perf_cpu_map__nr(cpu_map__online());
	unsigned long pages = fo->memory / BUFFERS_SHARE / nr_cpus / page_size;

	if (opts->mmap_pages == UINT_MAX && pages &&
	    evlist__mmap_size(opts->mmap_pages) / page_size > pages + 1)
		opts->mmap_pages = rounddown_pow_of_two(pages);

	if (!pages || (opts->mmap_pages != UINT_MAX && opts->mmap_pages > pages)) {
		pr_err("-M %lluK is not enough for the buffers of %d CPUs, which may use a quarter of it: %s.\n",
		       (unsigned long long)fo->memory >> 10, nr_cpus,
		       pages ? "use a smaller -m" : "use a larger -M");
		return -EINVAL;
	}
	return 0;
}

/* The ring buffers of the samples are the store; those of the side-band are small. */
static int size_overwrite_buffers(struct flight_opts *fo, struct record_opts *opts)
{
	unsigned long pages = fo->memory / perf_cpu_map__nr(cpu_map__online()) / page_size;

	if (opts->mmap_pages != UINT_MAX) {
		pr_err("-M with --overwrite does not support -m: the size is divided evenly among the CPUs.\n");
		return -EINVAL;
	}
	opts->mmap_pages = rounddown_pow_of_two(pages ?: 1);
	opts->forward_pages = min_t(unsigned long, opts->mmap_pages,
				    SIDEBAND_BUFFER / page_size);
	fo->store = max_t(u64, fo->memory / BUFFERS_SHARE, SIDEBAND_MEMORY);
	return 0;
}

/* A trigger that fires by itself could fill the disk without being noticed. */
static void bound_disk(struct flight_opts *fo)
{
	if (!fo->max_disk_given && !fo->max_files &&
	    flight_triggers__fire_by_themselves(fo->triggers))
		fo->max_disk = max(DEFAULT_MAX_DISK, MAX_DISK_SHARE * fo->memory);
	if (!fo->dump_timeout)
		fo->dump_timeout = DUMP_TIMEOUT + (fo->memory >> 20) * NSEC_PER_SEC;
}

/**
 * flight_opts__apply - adapt the other options to the flight recorder
 * @fo: the options of the flight recorder
 * @opts: the other options of perf record
 * @data: the file that perf record would write
 *
 * Each sample has a time, a CPU, a task and, where the kernel can, its cgroup. The clock is
 * CLOCK_MONOTONIC, so that the wall-clock time of records is known.
 *
 * Return: 0, or a negative errno after an error message.
 */
int flight_opts__apply(struct flight_opts *fo, struct record_opts *opts, struct perf_data *data)
{
	int err;

	fo->out = out_name(fo, data);
	if (!strcmp(fo->out, "-")) {
		pr_err("-M cannot write to a pipe: name the output with -o.\n");
		return -EINVAL;
	}
	/* Dumps are separate files. perf record itself writes no file. */
	data->path = "/dev/null";

	/* -z compresses the memory, not the file. */
	fo->comp_level = opts->comp_level;
	opts->comp_level = 0;
	opts->sample_time = true;
	opts->sample_time_set = true;
	opts->sample_cpu = true;
	record_opts__default_cgroup(opts);
	if (!opts->use_clockid) {
		opts->use_clockid = true;
		opts->clockid = CLOCK_MONOTONIC;
		get_clockid_res(CLOCK_MONOTONIC, &opts->clockid_res_ns);
	}
	if (flight_triggers__add_signal(&fo->triggers))
		return -ENOMEM;
	if (fo->daemon && !flight_triggers__has(fo->triggers, &flight_trigger_socket) &&
	    flight_triggers__add(&fo->triggers, "socket"))
		return -ENOMEM;
	err = flight_triggers__add_deadline(&fo->triggers);
	if (err)
		return err;
	bound_disk(fo);
	err = bound_overhead(fo, opts);
	if (err)
		return err;

	fo->store = fo->memory;
	fo->overwrite = opts->overwrite;
	fo->record = opts;
	/* The buffers of a session already exist. */
	if (fo->overwrite && !fo->persistent)
		err = size_overwrite_buffers(fo, opts);
	else
		err = fo->persistent ? 0 : size_buffers(fo, opts);
	if (!err && fo->daemon)
		err = flight_daemon__begin(fo->out);
	return err;
}

/**
 * flight_opts__combine - perf record --combine
 * @fo: the options of the flight recorder
 * @evlist: the events that -e named
 * @data: the file that -o named
 * @argc: number of words of a command
 *
 * Return: the status of perf record.
 */
int flight_opts__combine(struct flight_opts *fo, struct evlist *evlist, struct perf_data *data,
			 int argc)
{
	const char *out = out_name(fo, data);

	if (fo->memory || evlist__nr_entries(evlist) || argc) {
		pr_err("--combine records nothing and supports only -o, --keep and --archive.\n");
		return 1;
	}
	if (flight_daemon__pid(out)) {
		pr_err("A recorder for %s is running (pid %d). Send it SIGUSR2 to combine its dumps and end it.\n",
		       out, flight_daemon__pid(out));
		return 1;
	}
	if (flight_combine(out, fo->keep))
		return 1;
	return fo->archive && archive__dump(out) ? 1 : 0;
}

/**
 * flight_opts__archive - perf record --archive without -M, for an existing dump
 * @fo: the options of the flight recorder
 * @evlist: the events that -e named
 * @data: the file that -o named
 * @argc: number of words of a command
 *
 * Return: the exit status of perf record. Does not return if it executes --on-dump.
 */
int flight_opts__archive(const struct flight_opts *fo, struct evlist *evlist,
			 struct perf_data *data, int argc)
{
	const char *path = out_name(fo, data);
	int err;

	if (evlist__nr_entries(evlist) || argc) {
		pr_err("--archive without -M records nothing and supports only -o (the dump) and --on-dump.\n");
		return 1;
	}
	err = archive__dump(path);
	if (fo->on_dump)
		on_dump__exec(fo->on_dump, path);
	return err ? 1 : 0;
}

void flight_opts__exit(struct flight_opts *fo)
{
	/* It has not begun to record. */
	if (fo->daemon)
		flight_daemon__end(fo->out);
	flight_triggers__free(&fo->triggers);
	zfree(&fo->config.out);
	zfree(&fo->config.event_set);
}
