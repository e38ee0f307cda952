// SPDX-License-Identifier: GPL-2.0
/*
 * The options of perf record that create and read persistent sessions: check them, and
 * print a message for each invalid combination
 */
#include "persistent.h"
#include "../base-api.h"
#include "../callchain.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../record.h"
#include "../target.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PMU	"persistent/"

static const char not_with_sessions[] = "not work with persistent sessions";

struct conflict {
	bool		given;
	const char	*option;
};

/* -P used to be the short form of --period, so the message mentions --period. */
static int refuse_make(void)
{
	pr_err("-P NAME makes a persistent session: it needs -e EVENTS and one of -a, -C LIST, -p PID and -t TID, and no command. (The short form of --period is no longer -P: use --period.)\n");
	return -EINVAL;
}

static bool names_session(const char *str)
{
	const char *pos = str;

	while ((pos = strstr(pos, PMU)) != NULL) {
		if (pos == str || strchr(",{ ", pos[-1]))
			return true;
		pos += strlen(PMU);
	}
	return false;
}

/**
 * persistent_opts__parse_event - parse an -e that names a persistent session
 * @p: the options
 * @str: the argument of -e
 *
 * The event parser does not handle sessions: it finds their names in sysfs, and would
 * open them like counters.
 *
 * Return: 1 if @str is a session, 0 if it is for the event parser, or -ENOMEM.
 */
int persistent_opts__parse_event(struct persistent_opts *p, const char *str)
{
	const char *name = str + strlen(PMU);
	size_t len;
	u64 id;

	if (!names_session(str)) {
		p->other_events = true;
		return 0;
	}

	len = strstarts(str, PMU) ? strcspn(name, "/,=") : 0;
	if (name[len] == '=')
		len = strcspn(name, "/,");

	/* persistent_opts__check() reports a second session, other terms and modifiers. */
	if (p->read || !len || strcmp(name + len, "/")) {
		p->other_events = true;
		if (p->read)
			return 1;
		len = 0;
	}

	if (persistent__parse_id(name, len, "config=", &id) ||
	    persistent__parse_id(name, len, "id=", &id)) {
		if (asprintf(&p->read, "id=%llu", (unsigned long long)id) < 0)
			p->read = NULL;
	} else if (memchr(name, '=', len)) {
		p->other_events = true;
		p->read = strdup("");
	} else {
		p->read = strndup(name, len);
	}
	return p->read ? 1 : -ENOMEM;
}

void persistent_opts__exit(struct persistent_opts *p)
{
	zfree(&p->read);
}

static int refuse(const struct conflict *conflicts, size_t nr, const char *why)
{
	for (size_t i = 0; i < nr; i++) {
		if (conflicts[i].given) {
			pr_err("%s %s.\n", conflicts[i].option, why);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_common(const struct persistent_opts *p, struct record_opts *opts)
{
	bool threads = p->make && (opts->target.pid || opts->target.tid);
	const struct conflict conflicts[] = {
		{ p->user,				"-u does"	},
		{ opts->target.per_thread && !threads,	"--per-thread does" },
		{ opts->target.initial_delay,		"-D does"	},
		{ opts->threads_spec,			"--threads does" },
		{ opts->kcore,				"--kcore does"	},
		{ opts->nr_cblocks,			"--aio does"	},
		{ opts->comp_level && !p->recorder,	"-z does"	},
		{ opts->ctl_fd >= 0,			"--control does" },
		{ opts->auxtrace_snapshot_opts || opts->auxtrace_sample_opts,
							"AUX area tracing does" },
	};

	return refuse(conflicts, ARRAY_SIZE(conflicts), not_with_sessions);
}

static int check_make(struct persistent_opts *p, struct evlist *evlist,
		      struct record_opts *opts, int argc)
{
	const char *error = p->add ? persistent__name_error(p->make) :
				     persistent__new_name_error(p->make);
	bool cpus = opts->target.system_wide || opts->target.cpu_list;
	bool tasks = opts->target.pid || opts->target.tid;
	struct evsel *evsel;

	if (argc || !evlist__nr_entries(evlist) || (!cpus && !tasks))
		return refuse_make();

	if (cpus && tasks) {
		pr_err("-P records either tasks (-p, -t) or CPUs (-a, -C). To record both, add one of them later with --add.\n");
		return -EINVAL;
	}

	if (error) {
		pr_err("'%s' cannot be the name of a persistent session: %s.\n", p->make, error);
		return refuse_make();
	}

	if (p->add && p->replace) {
		pr_err("--add and --replace exclude each other: --add extends the session, --replace ends it first.\n");
		return -EINVAL;
	}

	if (p->reserve && (!*p->reserve || strlen(p->reserve) >= PERF_PERSISTENT_LABEL_LEN)) {
		pr_err("'%s' is not the label of a reserved region: reserve_mem=SIZE:ALIGN:LABEL takes labels of up to %d characters.\n",
		       p->reserve, PERF_PERSISTENT_LABEL_LEN - 1);
		return -EINVAL;
	}

	if (p->reserve && opts->mmap_pages != UINT_MAX &&
	    (u64)opts->mmap_pages * page_size > PERSISTENT_RESERVE_MAX) {
		pr_err("A buffer in a reserved region has at most 1 GiB: use a smaller -m.\n");
		return -EINVAL;
	}

	if (p->output) {
		pr_err("-P does not write a file, so it does not support -o. Use -o when reading the session: perf record -e persistent/%s/.\n",
		       p->make);
		return -EINVAL;
	}

	if (evlist__nr_groups(evlist)) {
		pr_err("Events in a group cannot be persistent: remove the braces.\n");
		return -EINVAL;
	}

	evlist__for_each_entry(evlist, evsel) {
		if (!list_empty(&evsel->bpf_filters)) {
			pr_err("The --filter of %s is a BPF program, which is removed when perf exits: -P supports only filters of tracepoints.\n",
			       evsel__name(evsel));
			return -EINVAL;
		}
		if (evsel__is_aux_event(evsel) || evsel->core.attr.aux_output) {
			pr_err("%s cannot be persistent: -P does not support AUX area tracing.\n",
			       evsel__name(evsel));
			return -EINVAL;
		}
	}

	if (opts->record_switch_events_set) {
		pr_err("--switch-events would flood the side-band of a persistent session: record sched:sched_switch.\n");
		return -EINVAL;
	}

	if (opts->auxtrace_mmap_pages) {
		pr_err("-P supports only one size with -m, because there are no AUX areas.\n");
		return -EINVAL;
	}

	if (opts->mmap_pages != UINT_MAX && (opts->mmap_pages & (opts->mmap_pages - 1))) {
		pr_err("The size given with -m must be a power of two.\n");
		return -EINVAL;
	}
	return 0;
}

/* Options that were set when the session was created cannot be used to read it. */
static int refuse_chosen(struct record_opts *opts, const char *why)
{
	const struct conflict conflicts[] = {
		{ opts->user_freq != UINT_MAX,		"-F" },
		{ opts->user_interval != ULLONG_MAX,	"-c" },
		{ callchain_param.enabled,		"-g" },
		{ opts->branch_stack,			"-b" },
		{ opts->mmap_pages != UINT_MAX,		"-m" },
		{ opts->target.pid || opts->target.tid,	"-p or -t" },
	};

	return refuse(conflicts, ARRAY_SIZE(conflicts), why);
}

static int check_read(struct persistent_opts *p, struct record_opts *opts)
{
	if (p->other_events) {
		pr_err("A persistent session cannot be read together with other events, groups or modifiers. Use only: perf record -e persistent/NAME/ (or persistent/config=ID/).\n");
		return -EINVAL;
	}

	if (opts->use_clockid) {
		pr_err("-k (--clockid) cannot be changed when a session is read. To end the session after reading it, use --kill.\n");
		return -EINVAL;
	}

	return refuse_chosen(opts,
			     "cannot be changed: it was set when the session was created");
}

/**
 * persistent_opts__check_top - check the options of perf top
 * @p: the options of persistent events
 * @opts: the other options of perf top
 *
 * Return: 0, or -EINVAL after an error message.
 */
int persistent_opts__check_top(struct persistent_opts *p, struct record_opts *opts)
{
	static const char why[] =
		"cannot be changed: it was set when the session was created";
	const struct conflict chosen = { opts->target.cpu_list, "-C" };
	const struct conflict user = { p->user, "-u does" };

	if (p->other_events) {
		pr_err("A persistent session cannot be shown together with other events, groups or modifiers. Use only: perf top -e persistent/NAME/ (or persistent/config=ID/).\n");
		return -EINVAL;
	}

	return refuse_chosen(opts, why) ?: refuse(&chosen, 1, why) ?:
	       refuse(&user, 1, not_with_sessions);
}

/**
 * persistent_opts__check - check the options of perf record
 * @p: the options of persistent events
 * @evlist: the events of -e
 * @opts: the other options of perf record
 * @argc: number of words of the command to run
 *
 * Return: 0, or -EINVAL after an error message.
 */
int persistent_opts__check(struct persistent_opts *p, struct evlist *evlist,
			   struct record_opts *opts, int argc)
{
	int err;

	if (p->make && p->read) {
		pr_err("-P creates a persistent session and -e persistent/NAME/ reads one: use only one of them.\n");
		return -EINVAL;
	}

	if (!p->make && (p->add || p->replace || p->reserve)) {
		pr_err("--add, --replace and --reserve require -P NAME.\n");
		return -EINVAL;
	}

	if (!p->read && p->kill) {
		pr_err("--kill requires -e persistent/NAME/. To end a session without reading it, use perf ctl -d NAME.\n");
		return -EINVAL;
	}

	err = p->make ? check_make(p, evlist, opts, argc) : check_read(p, opts);
	return err ?: check_common(p, opts);
}
