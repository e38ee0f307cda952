/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_SAMPLE_H
#define __PERF_REDACT_SAMPLE_H

#include <linux/perf_event.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct redact_code;
struct redact_event;
struct redact_words;

/* Parts of a sample that this perf can parse */
#define REDACT_SAMPLE_KNOWN	((u64)PERF_SAMPLE_MAX - 1)

/* The memory, the registers and the trace of a task are not written. */
#define REDACT_SAMPLE_WRITTEN	(REDACT_SAMPLE_KNOWN & \
	~(u64)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_REGS_INTR | \
	       PERF_SAMPLE_AUX))

/* Bytes that header.size can tell, and that end at a word */
#define REDACT_RECORD_MAX	65528

size_t redact_sample__put(const struct redact_event *event, const struct redact_words *w,
			  const struct redact_code *code, const void *record, size_t size,
			  void *out);
size_t redact_deferred__put(const struct redact_code *code, const void *body, size_t size,
			    void *out);
size_t redact_read__size(const struct perf_event_attr *attr, const void *data, size_t room);

#endif /* __PERF_REDACT_SAMPLE_H */
