/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_JOB_H
#define __PERF_FLIGHT_JOB_H

#include <linux/compiler.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct dump_request;
struct dump_result;
struct flight_opts;
struct flight_self;
struct flight_store;
struct flight_wakeup;
struct perf_session;
struct record_source;

/* Children that no longer matter, and may hang. With so many no further one is forked. */
#define FLIGHT_MAX_LEAVING	4

/**
 * enum flight_job_kind - what a child writes
 * @FLIGHT_JOB_DUMP: a dump
 * @FLIGHT_JOB_AUXILIARY: OUT.auxiliary
 * @FLIGHT_JOB_REST: only what each child does as well: messages, a corrected manifest, the
 *		      removal of dumps that are too old
 */
enum flight_job_kind {
	FLIGHT_JOB_DUMP,
	FLIGHT_JOB_AUXILIARY,
	FLIGHT_JOB_REST,
};

/**
 * struct flight_job - a child that writes a file
 * @opts: options of the recorder
 * @source: where its records come from
 * @session: perf record's
 * @store: what it holds
 * @wakeup: what wakes the recorder when the child has ended
 * @self: the recorder
 * @pid: the child; 0: there is none
 * @fd: the pipe on which it reports, or -1
 * @kind: what it writes, or wrote
 * @nice: the nice value that the recorder had when the last dump began
 * @deadline: when it is killed, CLOCK_MONOTONIC in ns
 * @killed: that has happened
 * @here: there was no child: the recorder wrote the file itself, with this result
 * @expiry_due: when a child may be forked to remove old dumps alone, CLOCK_MONOTONIC in ns
 * @correction_due: when a child may be forked to correct manifests alone, CLOCK_MONOTONIC in ns
 * @messages: to be printed by the next child
 * @told: bytes of these that the child prints
 * @rest_due: when the next child may be forked for these alone
 * @leaving: children that have reported or were given up, and did not exit yet
 * @nr_leaving: number of @leaving
 * @max_sample_rate: kernel.perf_event_max_sample_rate at the start
 * @auxiliary_due: when OUT.auxiliary is to be written, CLOCK_MONOTONIC in ns
 * @auxiliary_news: the store's count of side-band when it was begun last
 * @auxiliary_failed: that has failed
 */
struct flight_job {
	const struct flight_opts	*opts;
	struct record_source		*source;
	struct perf_session		*session;
	struct flight_store		*store;
	struct flight_wakeup		*wakeup;
	const struct flight_self	*self;
	pid_t				pid;
	int				fd;
	enum flight_job_kind		kind;
	int				nice;
	u64				deadline;
	bool				killed;
	struct dump_result		*here;
	u64				expiry_due;
	u64				correction_due;
	char				messages[2048];
	size_t				told;
	u64				rest_due;
	pid_t				leaving[FLIGHT_MAX_LEAVING];
	int				nr_leaving;
	int				max_sample_rate;
	u64				auxiliary_due;
	u64				auxiliary_news;
	bool				auxiliary_failed;
};

/* OUT.auxiliary is written anew after each dump, and otherwise that often, in ns. */
#define FLIGHT_AUXILIARY_INTERVAL	((u64)(60 * NSEC_PER_SEC))

/* Dumps are removed as soon as they are older than they may be by a fraction, in ns. */
#define FLIGHT_EXPIRIES_PER_AGE		8
#define FLIGHT_MIN_EXPIRY_INTERVAL	((u64)(1 * NSEC_PER_SEC))
#define FLIGHT_MAX_EXPIRY_INTERVAL	((u64)(600 * NSEC_PER_SEC))

int flight_job__begin(struct flight_job *job, const struct dump_request *request, u64 until);
void flight_job__begin_auxiliary(struct flight_job *job, u64 now);
void flight_job__begin_rest(struct flight_job *job, u64 now);
u64 flight_job__next_expiry(const struct flight_job *job);
void flight_job__say(struct flight_job *job, const char *fmt, ...) __printf(2, 3);
int flight_job__write_here(struct flight_job *job, const struct dump_request *request, u64 until);
bool flight_job__is_busy(const struct flight_job *job);
bool flight_job__has_ended(struct flight_job *job, u64 now);
void flight_job__end(struct flight_job *job, struct dump_result *result);
void flight_job__drain(struct flight_job *job);
void flight_job__exit(struct flight_job *job);
void flight_job__watch_workload(pid_t workload);

#endif /* __PERF_FLIGHT_JOB_H */
