/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SIDEBAND_STORE_H
#define __PERF_FLIGHT_SIDEBAND_STORE_H

#include "sideband-memory.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

union perf_event;
struct sideband_store;

/*
 * What a pass may look at and remove: some milliseconds, as a process has some 50 maps of
 * files that are anywhere in memory.
 */
#define SIDEBAND_DOUBT_SHARE	1024
#define SIDEBAND_SETTLE_SHARE	256

/**
 * typedef sideband_store_emit_t - process a record of the description
 * @event: the record, followed by space for a sample_id, which is zero
 * @data: the argument of sideband_store__emit()
 */
typedef int (*sideband_store_emit_t)(union perf_event *event, void *data);

/* Return whether the description includes this process. */
typedef bool (*sideband_store_wanted_t)(pid_t pid, void *data);

struct sideband_store *sideband_store__new(size_t limit, size_t id_hdr_size);
void sideband_store__delete(struct sideband_store *ss);
void sideband_store__set_id_hdr_size(struct sideband_store *ss, size_t id_hdr_size);

bool sideband_store__is_sideband(const union perf_event *event);
int sideband_store__fold(struct sideband_store *ss, const union perf_event *event);

void sideband_store__doubt_all(struct sideband_store *ss);
void sideband_store__doubt(struct sideband_store *ss, u64 until, unsigned int share);
void sideband_store__settle(struct sideband_store *ss, u64 now, unsigned int share);

void sideband_store__keep_ended(struct sideband_store *ss, u64 until);
void sideband_store__shed_ended(struct sideband_store *ss);

bool sideband_store__knows(const struct sideband_store *ss, pid_t pid);
int sideband_store__emit(struct sideband_store *ss, sideband_store_wanted_t wanted,
			 sideband_store_emit_t emit, void *data);

const struct sideband_stats *sideband_store__stats(const struct sideband_store *ss);

#endif /* __PERF_FLIGHT_SIDEBAND_STORE_H */
