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
 * One file is written at a time. A hit while the trigger is HIT is merged into the pending
 * dump. A hit in the cooldown, which begins with a dump, is swallowed: that dump stands for
 * it. The manifest has the number of these hits, and is corrected when the cooldown is over.
 *
 * A dump begins right after a pass, with no round open: the records that were in the
 * kernel's buffers at the trigger are in the store. With --overwrite the samples are still
 * in the buffers, and the child reads those from before the last pass. In this case a dump
 * waits for a pass that has begun after the trigger.
 *
 * For signals see trigger/signal.c, and job.c for those of the child. setup.c makes and
 * starts a recorder.
 */
#include "recorder.h"
#include "recorder-state.h"
#include "daemon.h"
#include "dump/combine.h"
#include "dump/on-dump.h"
#include "estimate.h"
#include "../clockid.h"
#include "../event.h"
#include "../record-source.h"
#include "../session.h"
#include "../time-utils.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How exact --max-age is, and how often that may wake us at most. */
#define PASSES_PER_AGE		8
#define MIN_PASS_INTERVAL	((u64)(100 * NSEC_PER_MSEC))

/* How often triggers may be the reason for a pass. A half-full buffer is one at any time. */
#define LEAST_INTERVAL		((u64)(5 * NSEC_PER_MSEC))

/*
 * How often a trigger is looked at when the recorder ends. A look reads 1024 records at most.
 * The log of the kernel has room for a record in every 32 bytes, so this is enough for one of
 * 8 MiB. A program that writes messages faster than they are read cannot delay the end any
 * further.
 */
#define LAST_LOOKS		256

/* What --combine may take at the end, before the service manager is to be impatient. */
#define TIME_TO_COMBINE		((u64)(600 * NSEC_PER_SEC))

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

/*
 * There is no dump. There is one as soon as possible, of what is then in the memory. The
 * hits that this one stood for are not forgotten, nor is why and when the first one was.
 */
static void try_again(struct flight_recorder *fr, struct flight_trigger *t, int err)
{
	struct dump_request *request = &fr->job_request;
	bool is_hit;

	if (!t)
		return;
	is_hit = trigger_is_hit(&t->state);
	if (!flight_trigger__try_again(t, rdclock()))
		return;
	t->merged += request->swallowed + t->swallowed + is_hit;
	t->swallowed = 0;
	t->wanted = max(t->wanted, fr->job_action);
	t->hit_at = request->trigger_time;
	t->cause = fr->job_cause;
	snprintf(t->reason, sizeof(t->reason), "%s", fr->job_reason);
	flight_job__say(&fr->job, "The dump (%s) is tried again%s.\n", t->reason,
			err == -EDQUOT || err == -ENOSPC ? ": free some space on the disk" : "");
}

/* @t: the trigger, or NULL for the dump at the end. */
static int begin_dump(struct flight_recorder *fr, struct flight_trigger *t, const char *reason)
{
	enum flight_action action = t ? max(t->action, t->wanted) : FLIGHT_ACTION_STOP;
	struct dump_request *request = &fr->job_request;
	int err;

	snprintf(fr->job_reason, sizeof(fr->job_reason), "%s", reason);
	fr->job_cause = t ? t->cause : (struct flight_cause) {};
	*request = (struct dump_request) {
		.out		= fr->opts->out,
		.trigger	= t ? t->ops->name : "end",
		.reason		= fr->job_reason,
		.cause		= &fr->job_cause,
		.action		= flight_action__name(action),
		.last		= !t,
		.keep		= !t || !flight_trigger__may_try_again(t),
		.window_asked	= fr->opts->max_age,
		.swallowed	= t ? t->merged : 0,
		.cpus_left_out	= fr->hotplug.left_out,
		.overhead	= &fr->overhead,
		.given_up	= flight_store__tell(&fr->store),
	};
	if (t)
		request->trigger_time = t->hit_at;
	else
		clockid__read(fr->host.clockid, &request->trigger_time);
	if (fr->source->ops->tell)
		fr->source->ops->tell(fr->source, &request->session);
	fr->job_trigger = t;
	fr->job_action = action;
	if (t) {
		t->merged = 0;
		t->wanted = FLIGHT_ACTION_DUMP;
	}
	if (t && t->ops->begun)
		t->ops->begun(t);
	err = flight_job__begin(&fr->job, request, fr->last_run_clock);
	/* Nothing can be recorded behind the last dump: it may take its time, but end. */
	if (err && err != -EBUSY && !t)
		err = flight_job__write_here(&fr->job, request, fr->last_run_clock);
	if (err) {
		fr->job_trigger = NULL;
		tell_result(fr, t, &(struct dump_result){ .err = err });
		if (!t && err == -EBUSY)
			flight_job__say(&fr->job,
					"The last dump was not written: %d children hang. Does the disk of %s hang?\n",
					FLIGHT_MAX_LEAVING, fr->opts->out);
		else
			flight_job__say(&fr->job,
					"A dump (%s) could not be begun: %s. Recording goes on.\n",
					fr->job_reason, strerror(-err));
		return err;
	}
	return 0;
}

/*
 * The cooldown is over: the last dump of the trigger stands for all that was swallowed since.
 * If that dump is still being written, it is not the last one yet.
 */
static void correct_manifest(struct flight_recorder *fr, struct flight_trigger *t)
{
	if (!t->last.path || !t->swallowed || t == fr->job_trigger)
		return;
	t->last.swallowed += t->swallowed;
	t->last.wrong = true;
	t->swallowed = 0;
}

/* Waits for the child. The recorder is STOPPED if its dump was the last one wanted. */
static void end_job(struct flight_recorder *fr)
{
	struct flight_trigger *t = fr->job_trigger;
	struct dump_result result;

	if (!flight_job__is_busy(&fr->job))
		return;
	flight_job__end(&fr->job, &result);
	if (fr->job.kind != FLIGHT_JOB_DUMP)
		return;
	fr->job_trigger = NULL;
	fr->job.auxiliary_due = rdclock();
	if (!result.err) {
		flight_store__set_told(&fr->store, fr->job_request.given_up);
		if (t)
			last_manifest__set(&t->last, result.path, fr->job_request.swallowed);
	}
	tell_result(fr, t, &result);
	/* Without this dump the recorder goes on; the others are not to be combined yet. */
	if (result.err && !fr->finished)
		try_again(fr, t, result.err);
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
	if (now >= t->quiet_until)
		correct_manifest(fr, t);
}

/* All hits that there are by now, however many more than one look reads. */
static void look_for_the_last_time(struct flight_recorder *fr, struct flight_trigger *t)
{
	u64 now = rdclock();

	for (int i = 0; i < LAST_LOOKS && (!i || t->more); i++)
		look_at_trigger(fr, t, now);
}

/*
 * Wake up for what is next: a delay or a cooldown that ends. With a maximum age also
 * for a pass, as a round is as old as its newest record.
 */
static void set_timer(struct flight_recorder *fr, u64 now)
{
	u64 next = fr->job.pid ? fr->job.deadline : fr->job.auxiliary_due;

	fr->hurry = !fr->job.pid && flight_triggers__due(fr->opts->triggers, now);
	if (fr->opts->dry_run)
		next = fr->started + FLIGHT_ESTIMATE_TIME;
	if (fr->opts->max_age)
		next = min(next, now + max(fr->opts->max_age / PASSES_PER_AGE,
					   MIN_PASS_INTERVAL));

	next = min(next, fr->watchdog_due);
	next = min(next, fr->hotplug.due);
	next = min(next, flight_overhead__next(&fr->overhead));
	next = min(next, flight_job__next_expiry(&fr->job));
	/* A dump that is being written wakes us at its end. */
	next = min(next, flight_triggers__next(fr->opts->triggers, now, fr->job.pid));
	flight_wakeup__set_timer(&fr->wakeup, next);
}

static void begin_due_dump(struct flight_recorder *fr, u64 now)
{
	/* The pass that bounds the samples of the dump is to begin behind the trigger. */
	u64 due = fr->opts->overwrite ? fr->last_run : now;
	struct flight_trigger *t = flight_triggers__due(fr->opts->triggers, due);
	int err;

	if (!t || fr->job.pid)
		return;
	/* The child that writes this dump corrects the manifest of the one before. */
	correct_manifest(fr, t);
	/* It is over if there is no dump in the end. */
	t->quiet_until = now + t->cooldown;
	trigger_ready(&t->state);
	err = begin_dump(fr, t, t->reason);
	set_frozen(fr, false);
	if (err)
		try_again(fr, t, err);
}

static void run_daemon(struct flight_recorder *fr, u64 now)
{
	int err = flight_daemon__run(fr->opts->out, now, &fr->watchdog_due);

	if (err)
		flight_job__say(&fr->job, "Cannot open %s.log: %s. Messages go to the old file.\n",
				fr->opts->out, strerror(-err));
}

static void look_for_cpus(struct flight_recorder *fr, u64 now)
{
	unsigned int found = flight_hotplug__look(&fr->hotplug, now);

	if (found & FLIGHT_CPUS_BACK) {
		flight_overhead__apply(&fr->overhead);
		flight_job__say(&fr->job, "CPUs have come back, and are recorded again; %" PRIu64
				" events could not be opened.\n", fr->hotplug.failed);
	}
	if (found & FLIGHT_CPUS_MISSING)
		flight_job__say(&fr->job,
				"CPUs that came online after the start are left out: %s. Start the recorder again to include them.\n",
				fr->hotplug.left_out);
}

static void look_at_overhead(struct flight_recorder *fr, u64 now)
{
	const char *text = flight_overhead__run(&fr->overhead, now);

	if (text)
		flight_job__say(&fr->job, "%s", text);
}

static int estimate(struct flight_recorder *fr, u64 now)
{
	set_timer(fr, now);
	fr->stopped = flight_estimate__print(fr->opts, fr->source, &fr->store,
					     now - fr->started);
	return fr->stopped;
}

/* The next pass begins. */
void flight_recorder__note_pass(struct flight_recorder *fr)
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

	if (!fr->stopped && flight_job__has_ended(&fr->job, now))
		end_job(fr);
	/* Records that are read until perf record ends are not dumped. */
	if (fr->stopped)
		return 1;
	if (fr->opts->dry_run)
		return estimate(fr, now);

	begin_due_dump(fr, now);
	if (!fr->job.pid && fr->job.auxiliary_due <= now)
		flight_job__begin_auxiliary(&fr->job, now);

	flight_wakeup__drain_timer(&fr->wakeup, now);
	look_for_cpus(fr, now);
	look_at_overhead(fr, now);
	run_daemon(fr, now);
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next)
		look_at_trigger(fr, t, now);
	if (!flight_job__is_busy(&fr->job))
		flight_job__begin_rest(&fr->job, now);
	set_timer(fr, now);
	flight_recorder__note_pass(fr);
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
	bool was_written_here = false;
	int err = 0;

	if (fr->finished)
		return 0;

	fr->finished = true;
	if (fr->opts->daemon)
		flight_daemon__stop();
	fr->store.closed = true;
	/* Hits since the last pass are swallowed, or merged into the last dump. */
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next) {
		if (trigger_is_ready(&t->state) || trigger_is_hit(&t->state))
			look_for_the_last_time(fr, t);
	}
	flight_triggers__stop(fr->opts->triggers);
	if (flight_store__is_open(&fr->store))
		flight_store__finish_round(&fr->store, rdclock());
	end_job(fr);
	for (struct flight_trigger *t = fr->opts->triggers; t; t = t->next)
		correct_manifest(fr, t);
	if (dump && !fr->stopped && !fr->opts->dry_run) {
		err = begin_dump(fr, NULL, "the recorder ends");
		was_written_here = fr->job.here;
		end_job(fr);
	}
	if (!fr->opts->dry_run && !was_written_here) {
		flight_job__begin_auxiliary(&fr->job, rdclock());
		end_job(fr);
		/* Messages, and then a manifest to be corrected. */
		for (int i = 0; i < 2; i++) {
			flight_job__begin_rest(&fr->job, -1ULL);
			end_job(fr);
		}
	}
	flight_job__drain(&fr->job);
	flight_self__end(&fr->self);
	if (fr->combine && fr->opts->daemon)
		flight_daemon__wait(rdclock(), TIME_TO_COMBINE);
	if (fr->combine)
		err = flight_combine(fr->opts->out, fr->opts->keep);
	/* The lists of the dumps have become that of the file: add what they did not have. */
	if (fr->combine && !err && fr->opts->archive)
		on_dump__archive(fr->opts->out);
	if (fr->opts->daemon)
		flight_daemon__end(fr->opts->out);
	return err;
}

/**
 * flight_recorder__wait - wait for what makes another pass worth while
 * @fr: the recorder
 * @fda: what perf record polls for, with flight_recorder__fd()
 *
 * Return: like poll().
 */
int flight_recorder__wait(struct flight_recorder *fr, struct fdarray *fda)
{
	return flight_wakeup__wait(&fr->wakeup, fda,
				   fr->hurry ? 0 : fr->last_run + LEAST_INTERVAL);
}

/* To be polled for. */
int flight_recorder__fd(const struct flight_recorder *fr)
{
	return fr->wakeup.fd;
}
