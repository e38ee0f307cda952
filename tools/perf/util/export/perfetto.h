/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_PERFETTO_H
#define __PERF_EXPORT_PERFETTO_H

#include "format.h"
#include "util/export/perfetto.pb-c.h"

/*
 * Sequences of packets. Each event has one of its own, because a sequence has one
 * timebase. Numbers of interned data belong to a sequence.
 */
#define PERFETTO_SEQUENCE_SYSTEM	1U
#define PERFETTO_SEQUENCE_EVENTS	2U

void perfetto__write_packet(struct export *ex, u32 sequence, Perfetto__TracePacket *packet);
bool perfetto__has_sched_switch(struct export *ex);
int perfetto__write_tracepoint(struct export *ex, struct evsel *evsel,
			       struct perf_sample *sample);
int perfetto__write_switch(struct export *ex, const struct export_switch *sw);

#endif /* __PERF_EXPORT_PERFETTO_H */
