/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_JOB_H
#define __PERF_FLIGHT_JOB_H

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct dump_request;
struct dump_result;
struct flight_opts;
struct flight_store;
struct flight_wakeup;
struct perf_session;
struct record_source;

/**
 * struct flight_job - a child that writes a dump or OUT.auxiliary
 * @opts: options of the recorder
 * @source: where its records come from
 * @session: perf record's
 * @store: what it holds
 * @wakeup: what wakes the recorder when the child has ended
 * @pid: the child; 0: there is none
 * @fd: the pipe on which it reports, or -1
 * @is_auxiliary: it writes OUT.auxiliary, or did so
 * @auxiliary_due: when OUT.auxiliary is to be written, CLOCK_MONOTONIC in ns
 * @auxiliary_head: head of the ring store when it was begun last
 * @auxiliary_failed: that has failed
 */
struct flight_job {
	const struct flight_opts	*opts;
	struct record_source		*source;
	struct perf_session		*session;
	struct flight_store		*store;
	struct flight_wakeup		*wakeup;
	pid_t				pid;
	int				fd;
	bool				is_auxiliary;
	u64				auxiliary_due;
	u64				auxiliary_head;
	bool				auxiliary_failed;
};

/* OUT.auxiliary is written anew after each dump, and otherwise that often, in ns. */
#define FLIGHT_AUXILIARY_INTERVAL	((u64)(60 * NSEC_PER_SEC))

int flight_job__begin(struct flight_job *job, const struct dump_request *request, u64 until);
void flight_job__begin_auxiliary(struct flight_job *job, u64 now);
bool flight_job__has_ended(const struct flight_job *job);
void flight_job__end(struct flight_job *job, struct dump_result *result);
void flight_job__watch_workload(pid_t workload);

#endif /* __PERF_FLIGHT_JOB_H */
