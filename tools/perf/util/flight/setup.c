// SPDX-License-Identifier: GPL-2.0
/*
 * Setting a flight recorder up, and tearing it down
 *
 * perf record calls flight_recorder__new() before it describes the running processes: the
 * recorder stores these records, too. It calls flight_recorder__start() before its main loop:
 * this arms the triggers and announces the recorder. recorder.c has what the main loop calls.
 * The recorder owns what is in struct flight_recorder, except for the options, the source and
 * the session: these must outlast it.
 */
#include "recorder.h"
#include "recorder-state.h"
#include "daemon.h"
#include "dump/dump.h"
#include "dump/on-dump.h"
#include "resident.h"
#include "status.h"
#include "store/fair-store.h"
#include "../debug.h"
#include "../record.h"
#include "../record-source.h"
#include "../time-utils.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* For a source that does not read perf's own mmaps. */
struct flight_store *flight_recorder__get_store(struct flight_recorder *fr)
{
	return &fr->store;
}

/* For messages: see flight_job__say(). */
struct flight_job *flight_recorder__get_job(struct flight_recorder *fr)
{
	return &fr->job;
}

struct flight_self *flight_recorder__get_self(struct flight_recorder *fr)
{
	return &fr->self;
}

/* The threads of the triggers are the recorder's as well. */
static int init_self(struct flight_recorder *fr, struct evlist *evlist)
{
	pid_t *tids = NULL;
	int nr = flight_triggers__prepare(fr->opts->triggers, &tids);
	int err = min(nr, 0);

	err = err ?: flight_self__init(&fr->self, fr->opts, evlist, tids, nr);
	free(tids);
	return err;
}

/**
 * flight_recorder__new - make a recorder
 * @fo: the options, which must last as long
 * @source: where its records come from; it writes to this recorder from then on
 * @session: perf record's
 * @evlist: the events
 *
 * Return: the recorder, or NULL when the user was told why there is none.
 */
struct flight_recorder *flight_recorder__new(const struct flight_opts *fo,
					     struct record_source *source,
					     struct perf_session *session,
					     struct evlist *evlist)
{
	struct flight_recorder *fr = zalloc(sizeof(*fr));
	int err;

	if (!fr) {
		err = -ENOMEM;
		goto out_error;
	}
	/* From here on, memory is limited. This includes the description of all processes. */
	resident__drop_files();
	resident__reset_peak();
	fr->opts = fo;
	fr->source = source;
	fr->session = session;
	fr->job = (struct flight_job) {
		.opts		= fo,
		.source		= source,
		.session	= session,
		.store		= &fr->store,
		.wakeup		= &fr->wakeup,
		.self		= &fr->self,
		.fd		= -1,
		/* The state of the tasks is news, even with no record. */
		.auxiliary_news	= -1,
	};
	flight_hotplug__init(&fr->hotplug);
	err = flight_wakeup__init(&fr->wakeup) ?: flight_store__init(&fr->store, fo, evlist) ?:
	      init_self(fr, evlist);
	if (!err && (fo->on_dump || fo->archive))
		err = on_dump__init();
	if (err)
		goto out_delete;

	/* Not their default action, which is to kill: the trigger is set up soon. */
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	if (!fo->dry_run)
		dump__remove_stale(fo->out);
	if (source)
		source->flight = fr;
	return fr;

out_delete:
	flight_recorder__delete(fr);
out_error:
	pr_err("The flight recorder could not be set up: %s\n", strerror(-err));
	return NULL;
}

void flight_recorder__delete(struct flight_recorder *fr)
{
	if (!fr)
		return;
	flight_store__exit(&fr->store);
	flight_job__exit(&fr->job);
	flight_hotplug__exit(&fr->hotplug);
	flight_overhead__exit(&fr->overhead);
	flight_wakeup__exit(&fr->wakeup);
	free(fr);
}

static void print_status(void *data, struct json_writer *w)
{
	struct flight_recorder *fr = data;
	struct flight_status status = {
		.opts		= fr->opts,
		.store		= &fr->store,
		.self		= &fr->self,
		.overhead	= &fr->overhead,
		.started	= fr->started,
		.now		= rdclock(),
		.dumps		= fr->dumps,
		.failed		= fr->failed,
		.swallowed	= fr->swallowed,
		.writing	= fr->job.pid && fr->job.kind == FLIGHT_JOB_DUMP,
	};

	flight_status__print(&status, w);
}

static void say(void *data, const char *text)
{
	struct flight_recorder *fr = data;

	flight_job__say(&fr->job, "%s", text);
}

/* The events that the kernel does not install again itself when a CPU comes back. */
static int follow_cpus(struct flight_recorder *fr)
{
	const struct target *target = &fr->opts->record->target;
	int err = 0;

	/* --dry-run ends after a second, and does not look for CPUs. */
	if (fr->opts->dry_run)
		return 0;
	if (!fr->opts->persistent && target__has_cpu(target))
		err = flight_hotplug__follow(&fr->hotplug, fr->store.evlist, !target->cpu_list);
	for (struct flight_trigger *t = fr->opts->triggers; t && !err; t = t->next) {
		if (t->ops->evlist)
			err = flight_hotplug__follow(&fr->hotplug, t->ops->evlist(t), true);
	}
	if (!fr->hotplug.nr_followed)
		flight_cpu_news__exit(&fr->hotplug.told);
	if (err || !fr->hotplug.nr_followed)
		return err;
	return flight_wakeup__watch(&fr->wakeup, fr->hotplug.told.uevents) ?:
	       flight_wakeup__watch(&fr->wakeup, fr->hotplug.told.clock);
}

/**
 * flight_recorder__start - from now on triggers count
 * @fr: the recorder
 * @workload: pid of perf record's command, or -1
 *
 * Return: 0 or a negative errno when the user was told.
 */
int flight_recorder__start(struct flight_recorder *fr, pid_t workload)
{
	const struct record_opts *opts = fr->opts->record;
	int err;

	if (fr->store.fair && fair_store__check(fr->store.evlist)) {
		pr_err("--fair needs the cgroup of each sample: %s.\n",
		       fair_store__check(fr->store.evlist));
		return -EOPNOTSUPP;
	}
	fr->host = (struct flight_host) {
		.out	 = fr->opts->out,
		.clockid = opts->use_clockid ? opts->clockid : -1,
		.triggers = fr->opts->triggers,
		.status	 = print_status,
		.say	 = say,
		.data	 = fr,
	};
	err = flight_triggers__start(fr->opts->triggers, &fr->host);
	fr->started = rdclock();
	flight_recorder__note_pass(fr);
	fr->watchdog_due = -1ULL;
	fr->job.auxiliary_due = fr->started;
	for (struct flight_trigger *t = fr->opts->triggers; t && !err; t = t->next)
		err = flight_wakeup__watch(&fr->wakeup, t->fd);
	err = err ?: flight_wakeup__watch(&fr->wakeup, flight_daemon__watch(fr->opts->daemon));
	err = err ?: follow_cpus(fr);
	/* --dry-run ends after a second. */
	if (!err && !fr->opts->dry_run)
		err = flight_overhead__start(&fr->overhead, fr->opts->max_overhead,
					     fr->store.evlist, fr->host.clockid);
	if (err) {
		pr_err("The triggers could not be watched: %s\n", strerror(-err));
		return err;
	}

	flight_job__watch_workload(workload);
	sysctl__read_int("kernel/perf_event_max_sample_rate", &fr->job.max_sample_rate);
	resident__drop_files();
	flight_status__announce(fr->opts);
	if (fr->opts->daemon)
		flight_daemon__ready(fr->opts->out);
	return 0;
}
