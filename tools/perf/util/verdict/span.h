/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_SPAN_H
#define __PERF_VERDICT_SPAN_H

#include <linux/types.h>

/**
 * struct verdict_span - a time in which something had a CPU, or held a task up
 * @start: from when on
 * @end: until when
 * @ns: how much of this time, spread over it: all, but for a storm of short interrupts
 * @source: index of what it was
 */
struct verdict_span {
	u64	start;
	u64	end;
	u64	ns;
	u32	source;
};

/* By time; none overlaps another one. */
struct verdict_spans {
	struct verdict_span	*list;
	u32			nr;
	u32			max;
};

/* A part of a time */
typedef int (*verdict_span_t)(void *ctx, u32 source, u64 ns);

int verdict_spans__add(struct verdict_spans *spans, const struct verdict_span *span);
u32 verdict_spans__first(const struct verdict_spans *spans, u64 start);
u64 verdict_spans__cover(const struct verdict_spans *spans, u64 start, u64 end,
			 verdict_span_t part, void *ctx, int *err);

#endif /* __PERF_VERDICT_SPAN_H */
