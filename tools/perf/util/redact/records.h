/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_RECORDS_H
#define __PERF_REDACT_RECORDS_H

#include <linux/types.h>
#include <stddef.h>

struct redact_code;
struct redact_event;
struct redact_events;
struct redact_words;

/* Types of records that are counted one by one; the others are counted together. */
#define REDACT_TYPES		128

/**
 * struct redact_counts - what became of the records
 * @written: records that were written
 * @samples: samples among them
 * @stacks: samples that had a stack, registers or a trace of their task
 * @omitted: records that are left out on purpose, by type; 0: those of unknown types
 * @damaged: records that are left out as they are not what their type says
 * @homeless: records of no event of the recording
 */
struct redact_counts {
	u64	written;
	u64	samples;
	u64	stacks;
	u64	omitted[REDACT_TYPES];
	u64	damaged;
	u64	homeless;
};

size_t redact_record__put(const struct redact_events *events, const struct redact_words *w,
			  const struct redact_code *code, struct redact_counts *counts,
			  const void *record, void *out);
size_t redact_build_id__put(const struct redact_words *w, const void *record, size_t size,
			    void *out);
const char *redact_record__name(unsigned int type);

#endif /* __PERF_REDACT_RECORDS_H */
