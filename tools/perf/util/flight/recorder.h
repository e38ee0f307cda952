/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RECORDER_H
#define __PERF_FLIGHT_RECORDER_H

#include "options.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evlist;
struct fdarray;
struct flight_job;
struct flight_recorder;
struct flight_self;
struct flight_store;
struct mmap;
struct perf_session;
struct record_source;

struct flight_recorder *flight_recorder__new(const struct flight_opts *fo,
					     struct record_source *source,
					     struct perf_session *session,
					     struct evlist *evlist);
void flight_recorder__delete(struct flight_recorder *fr);

int flight_recorder__fd(const struct flight_recorder *fr);
int flight_recorder__start(struct flight_recorder *fr, pid_t workload);
int flight_recorder__store(struct flight_recorder *fr, const struct mmap *map,
			   const void *buf, size_t size);
struct flight_store *flight_recorder__get_store(struct flight_recorder *fr);
struct flight_job *flight_recorder__get_job(struct flight_recorder *fr);
struct flight_self *flight_recorder__get_self(struct flight_recorder *fr);
int flight_recorder__wait(struct flight_recorder *fr, struct fdarray *fda);
int flight_recorder__run(struct flight_recorder *fr);
int flight_recorder__finish(struct flight_recorder *fr, bool dump);

#endif /* __PERF_FLIGHT_RECORDER_H */
