// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder of perf record -M: records all the time, keeps what is newest,
 * and writes it to a file when something happens
 *
 * This file is the state machine. perf record's main loop drives it: the loop reads a
 * pass, calls flight_recorder__run(), and waits. Records come in by
 * flight_recorder__store(), or by the store itself from a source of another kind.
 *
 * States of the recorder:
 *
 *	flight_recorder__start()
 *	    |
 *	    v	  begin_dump(), flight_job__begin_auxiliary()
 *	RECORDING -------------------------------------> RECORDING, child writes
 *	    |	  <-------------------------------------     |
 *	    |	  end_job(): OUT.auxiliary, action=dump,     | end_job(): action=stop,
 *	    |	  or the dump has failed		     | action=combine
 *	    |  estimate(): --dry-run has measured	     |
 *	    +------------------------> STOPPED <-------------+
 *	    |				  | flight_recorder__run() returns 1, and perf
 *	    | SIGINT, SIGTERM, end of	  | record leaves its loop
 *	    | workload or of session	  v
 *	    +------------------------> FINISHED, flight_recorder__finish(): the last dump
 *				       unless it was STOPPED, OUT.auxiliary, combine
 *
 * States of a trigger, which util/trigger.h keeps:
 *
 *	flight_triggers__start()  flight_trigger__look():   begin_due_dump(): its delay
 *	    |			  hit, no cooldown	    is over, no child writes
 *	    v
 *	  READY --------------------------> HIT -----------------------------> READY
 *
 * One file is written at a time. A hit while the trigger is HIT is merged into the dump
 * that is to come. A hit in the cooldown, which begins with a dump, is swallowed: that
 * dump stands for it. The manifest tells how many these were, and is corrected when the
 * cooldown is over.
 *
 * A dump begins right behind a pass, with no round open: all that the kernel's buffers
 * held at the trigger is in the store. With --overwrite the samples are still in the
 * buffers, and the child reads those from before the last pass. Then a dump waits until
 * a pass has begun behind the trigger.
 *
 * For signals see trigger/signal.c, and job.c for those of the child.
 */
#include "recorder.h"
#include "daemon.h"
#include "dump/combine.h"
#include "dump/dump.h"
#include "dump/manifest.h"
#include "dump/on-dump.h"
#include "estimate.h"
#include "job.h"
#include "resident.h"
#include "status.h"
#include "store/flight-store.h"
#include "store/sideband-store.h"
#include "trigger/triggers.h"
#include "wakeup.h"
#include "../clockid.h"
#include "../debug.h"
#include "../event.h"
#include "../record-source.h"
#include "../session.h"
#include "../time-utils.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How exact --max-age is, and how often that may wake us at most. */
#define PASSES_PER_AGE		8
#define MIN_PASS_INTERVAL	((u64)(100 * NSEC_PER_MSEC))

/* Times are CLOCK_MONOTONIC in ns. */
struct flight_recorder {
	const struct flight_opts	*opts;
	struct record_source		*source;
	struct perf_session		*session;
	struct flight_store		store;
	struct flight_host		host;
	struct flight_wakeup		wakeup;

	/* The state, with job.pid and those of the triggers; and what was counted. */
	bool				stopped;
	bool				finished;
	bool				frozen;
	bool				combine;
	u64				started;
	u64				dumps;
	u64				failed;
	u64				swallowed;

	/* When the last pass began; the same on the clock of the records. */
	u64				last_run;
	u64				last_run_clock;

	/* The dump that is being written, and the trigger that wanted it. */
	struct flight_job		job;
	struct flight_trigger		*job_trigger;
	enum flight_action		job_action;
	u64				job_swallowed;

	/* The last dump, whose manifest may have to be corrected. */
	struct flight_trigger		*last_trigger;
	struct last_manifest		last_manifest;
};

/* For a source that does not read perf's own mmaps. */
struct flight_store *flight_recorder__get_store(struct flight_recorder *fr)
{
	return &fr->store;
}

/**
 * flight_recorder__store - keep what perf record would write to its file
 * @fr: the recorder
 * @map: the ring buffer that it was found in; NULL for what perf made itself
 * @buf: a piece of that buffer, or one record
 * @size: bytes of it
 *
 * Return: 0 or a negative errno.
 */
int flight_recorder__store(struct flight_recorder *fr, const struct mmap *map,
			   const void *buf, size_t size)
{
	const union perf_event *event = buf;

	if (map)
		flight_store__append(&fr->store, buf, size);
	else if (event->header.type != PERF_RECORD_FINISHED_ROUND)
		return flight_store__put_synthesized(&fr->store, buf, size);
	else if (!fr->finished)
		flight_store__finish_round(&fr->store, rdclock());
	return 0;
}

/* Dumps */

static void set_frozen(struct flight_recorder *fr, bool on)
{
	if (fr->frozen != on)
		fr->source->ops->freeze(fr->source, on);
	fr->frozen = on;
}

/* To those who wait for it. */
static void tell_result(struct flight_recorder *fr, struct flight_trigger *t,
			const struct dump_result *result)
{
	if (result->err)
		fr->failed++;
	else
		fr->dumps++;
	if (t && t->ops->done)
		t->ops->done(t, result);
}

/* @t: the trigger, or NULL for the dump at the end. */
static int begin_dump(struct flight_recorder *fr, struct flight_trigger *t, const char *reason)
{
	enum flight_action action = t ? max(t->action, t->wanted) : FLIGHT_ACTION_STOP;
	struct dump_request request = {
		.out		= fr->opts->out,
		.trigger	= t ? t->ops->name : "end",
		.reason		= reason,
		.action		= flight_action__name(action),
		.window_asked	= fr->opts->max_age,
		.swallowed	= t ? t->merged : 0,
		.given_up	= flight_store__given_up(&fr->store),
	};
	int err = flight_job__begin(&fr->job, &request, fr->last_run_clock);

	fr->job_trigger = t;
	fr->job_action = action;
	if (t)
		t->wanted = FLIGHT_ACTION_DUMP;
	if (t && t->ops->begun)
		t->ops->begun(t);
	if (err) {
		tell_result(fr, t, &(struct dump_result){ .err = err });
		pr_err("A dump (%s) could not be begun: %s. Recording goes on.\n", reason,
		       strerror(-err));
		return err;
	}
	flight_store__set_told(&fr->store, request.given_up);
	fr->job_swallowed = request.swallowed;
	return 0;
}

/* The cooldown is over: the last dump stands for all that was swallowed since. */
static void correct_manifest(struct flight_recorder *fr)
{
	struct flight_trigger *t = fr->last_trigger;

	if (!fr->last_manifest.path || !t->swallowed)
		return;
	last_manifest__add_swallowed(&fr->last_manifest, t->swallowed);
	t->swallowed = 0;
}

/* Waits for the child. The recorder is STOPPED if its dump was the last one wanted. */
static void end_job(struct flight_recorder *fr)
{
	struct flight_trigger *t = fr->job_trigger;
	struct dump_result result;

	if (!fr->job.pid)
		return;
	flight_job__end(&fr->job, &result);
	if (fr->job.is_auxiliary)
		return;
	fr->job_trigger = NULL;
	fr->job.auxiliary_due = rdclock();
	if (!result.err) {
		fr->last_trigger = t;
		last_manifest__set(&fr->last_manifest, t ? result.path : NULL,
				   fr->job_swallowed);
	}
	tell_result(fr, t, &result);
	/* Without this dump the recorder goes on; the others are not to be combined yet. */
	if (!t || result.err)
		return;
	fr->combine = fr->job_action == FLIGHT_ACTION_COMBINE;
	if (fr->job_action != FLIGHT_ACTION_DUMP)
		fr->stopped = true;
}

/* Triggers */

static void look_at_trigger(struct flight_recorder *fr, struct flight_trigger *t, u64 now)
{
	bool was_ready = trigger_is_ready(&t->state);

	fr->swallowed += flight_trigger__look(t, now);
	if (was_ready && trigger_is_hit(&t->state) && t->freeze)
		set_frozen(fr, true);
	/* A cooldown that is over counts for the dump that began it. */
	if (now >= t->quiet_until && t == fr->last_trigger && !fr->job.pid)
		correct_manifest(fr);
}

/*
 * Wake up for what is next: a delay or a cooldown that ends. With a maximum age also
 * for a pass, as a round is as old as its newest record.
 */
static void set_timer(struct flight_recorder *fr, u64 now)
{
	u64 next = fr->job.pid ? now + FLIGHT_AUXILIARY_INTERVAL : fr->job.auxiliary_due;

	if (fr->opts->dry_run)
		next = fr->started + FLIGHT_ESTIMATE_TIME;
	if (fr->opts->max_age)
		next = now + max(fr->opts->max_age / PASSES_PER_AGE, MIN_PASS_INTERVAL);

	/* A dump that is being written wakes us at its end. */
	next = min(next, flight_triggers__next(fr->opts->triggers, now, fr->job.pid));
	flight_wakeup__set_timer(&fr->wakeup, next);
}

static void begin_due_dump(struct flight_recorder *fr, u64 now)
{
	/* The pass that bounds the samples of the dump is to begin behind the trigger. */
	u64 due = fr->opts->overwrite ? fr->last_run : now;
	struct flight_trigger *t = flight_triggers__due(fr->opts->triggers, due);

	if (!t || fr->job.pid)
		return;
	correct_manifest(fr);
	begin_dump(fr, t, t->reason);
	set_frozen(fr, false);
	t->quiet_until = now + t->cooldown;
	trigger_ready(&t->state);
}

static int estimate(struct flight_recorder *fr, u64 now)
{
	set_timer(fr, now);
	fr->stopped = flight_estimate__print(fr->opts, fr->source, &fr->store,
					     now - fr->started);
	return fr->stopped;
}

/* What follows is the next pass. */
static void note_pass(struct flight_recorder *fr)
{
	fr->last_run = rdclock();
	clockid__read(fr->session->header.env.clock.clockid, &fr->last_run_clock);
}

/**
 * flight_recorder__run - do what the triggers ask for
 * @fr: the recorder
 *
 * To be called between two passes. What was hit before the last pass began is
 * dumped now; what was hit since waits for the next call, so that its pass is in it.
 *
 * Return: 0, or 1 if perf record is to end.
 */
int flight_recorder__run(struct flight_recorder *fr)
{
	u64 now = rdclock();

	if (!fr->stopped && flight_job__has_ended(&fr->job))
		end_job(fr);
	/* What is read until perf record ends is not dumped once more. */
	if (fr->stopped)
		return 1;
	if (fr->opts->dry_run)
		return estimate(fr, now);

	begin_due_dump(fr, now);
	if (!fr->job.pid && fr->job.auxiliary_due <= now)
		flight_job__begin_auxiliary(&fr->job, now);

	flight_wakeup__drain_timer(&fr->wakeup, now);
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next)
		look_at_trigger(fr, t, now);
	set_timer(fr, now);
	note_pass(fr);
	return 0;
}

/**
 * flight_recorder__finish - perf record ends
 * @fr: the recorder
 * @dump: write a last dump
 *
 * After the last pass. Waits until the files are complete.
 *
 * Return: 0 or a negative errno.
 */
int flight_recorder__finish(struct flight_recorder *fr, bool dump)
{
	int err = 0;

	if (fr->finished)
		return 0;

	fr->finished = true;
	fr->store.closed = true;
	/* What was hit since the last pass counts as swallowed, or is merged into the end. */
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next) {
		if (trigger_is_ready(&t->state) || trigger_is_hit(&t->state))
			look_at_trigger(fr, t, rdclock());
	}
	flight_triggers__stop(fr->opts->triggers);
	if (ring_store__is_open(fr->store.ring))
		flight_store__finish_round(&fr->store, rdclock());
	end_job(fr);
	correct_manifest(fr);
	if (dump && !fr->stopped && !fr->opts->dry_run) {
		err = begin_dump(fr, NULL, "the recorder ends");
		end_job(fr);
	}
	if (!fr->opts->dry_run) {
		flight_job__begin_auxiliary(&fr->job, rdclock());
		end_job(fr);
	}
	if (fr->combine)
		err = flight_combine(fr->opts->out, fr->opts->keep);
	/* The archives of the dumps have gone with them. */
	if (fr->combine && !err && fr->opts->archive)
		on_dump__archive(fr->opts->out);
	if (fr->opts->daemon)
		flight_daemon__end(fr->opts->out);
	return err;
}

static void print_status(void *data, struct json_writer *w)
{
	struct flight_recorder *fr = data;
	struct flight_status status = {
		.opts		= fr->opts,
		.store		= &fr->store,
		.started	= fr->started,
		.now		= rdclock(),
		.dumps		= fr->dumps,
		.failed		= fr->failed,
		.swallowed	= fr->swallowed,
		.writing	= fr->job.pid && !fr->job.is_auxiliary,
	};

	flight_status__print(&status, w);
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
	int err;

	fr->host = (struct flight_host) {
		.out	= fr->opts->out,
		.status	= print_status,
		.data	= fr,
	};
	err = flight_triggers__start(fr->opts->triggers, &fr->host);
	fr->started = rdclock();
	note_pass(fr);
	fr->job.auxiliary_due = fr->started;
	for (struct flight_trigger *t = fr->opts->triggers; t && !err; t = t->next)
		err = flight_wakeup__watch(&fr->wakeup, t->fd);
	if (err) {
		pr_err("The triggers could not be watched: %s\n", strerror(-err));
		return err;
	}

	flight_job__watch_workload(workload);
	resident__drop_files();
	flight_status__announce(fr->opts);
	if (fr->opts->daemon)
		flight_daemon__ready(fr->opts->out);
	return 0;
}

/* To be polled for. */
int flight_recorder__fd(const struct flight_recorder *fr)
{
	return fr->wakeup.fd;
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

	if (!fr)
		goto out_error;
	/* What follows, and describing all processes is part of it, is within the bound. */
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
		.fd		= -1,
		/* The state of the tasks is news, even with no record. */
		.auxiliary_head	= -1,
	};
	if (flight_wakeup__init(&fr->wakeup) || flight_store__init(&fr->store, fo, evlist) ||
	    ((fo->on_dump || fo->archive) && on_dump__init()))
		goto out_delete;

	/* Not its default action, which is to kill: the trigger is set up soon. */
	signal(SIGUSR1, SIG_IGN);
	if (!fo->dry_run)
		dump__remove_stale(fo->out);
	if (source)
		source->flight = fr;
	return fr;

out_delete:
	flight_recorder__delete(fr);
out_error:
	pr_err("The flight recorder could not be set up: %m\n");
	return NULL;
}

void flight_recorder__delete(struct flight_recorder *fr)
{
	if (!fr)
		return;
	flight_store__exit(&fr->store);
	last_manifest__set(&fr->last_manifest, NULL, 0);
	flight_wakeup__exit(&fr->wakeup);
	free(fr);
}
