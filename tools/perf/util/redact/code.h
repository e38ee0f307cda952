/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_CODE_H
#define __PERF_REDACT_CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * struct redact_code - where programs of the recording had code
 * @ranges: addresses, of all processes; in order when all have been added
 * @nr: number of these
 * @room: places in @ranges
 */
struct redact_code {
	struct redact_range	*ranges;
	size_t			nr;
	size_t			room;
};

int redact_code__add(struct redact_code *code, const void *record);
void redact_code__finish(struct redact_code *code);
bool redact_code__has(const struct redact_code *code, u64 address);
void redact_code__exit(struct redact_code *code);

#endif /* __PERF_REDACT_CODE_H */
