/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RECORDER_STATE_H
#define __PERF_FLIGHT_RECORDER_STATE_H

/* For recorder.c and setup.c: others use recorder.h. */
#include "dump/dump.h"
#include "job.h"
#include "overhead.h"
#include "self.h"
#include "source/hotplug.h"
#include "store/flight-store.h"
#include "trigger/triggers.h"
#include "wakeup.h"
#include <linux/types.h>
#include <stdbool.h>

struct flight_opts;
struct perf_session;
struct record_source;

/* Times are CLOCK_MONOTONIC in ns. */
struct flight_recorder {
	const struct flight_opts	*opts;
	struct record_source		*source;
	struct perf_session		*session;
	struct flight_store		store;
	struct flight_host		host;
	struct flight_wakeup		wakeup;
	struct flight_self		self;
	struct flight_hotplug		hotplug;
	struct flight_overhead		overhead;

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

	/* Time of the next keep-alive message to the service manager. */
	u64				watchdog_due;

	/* A trigger is due: the next pass does not wait for LEAST_INTERVAL. */
	bool				hurry;

	/* The dump that is being written, and its trigger. */
	struct flight_job		job;
	struct flight_trigger		*job_trigger;
	enum flight_action		job_action;
	struct dump_request		job_request;
	char				job_reason[128];
	struct flight_cause		job_cause;
};

void flight_recorder__note_pass(struct flight_recorder *fr);

#endif /* __PERF_FLIGHT_RECORDER_STATE_H */
