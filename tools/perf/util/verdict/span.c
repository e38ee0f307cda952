// SPDX-License-Identifier: GPL-2.0
/* Times that follow each other: of the interrupts of a CPU, or of the reclaim of a task */
#include "span.h"
#include "history.h"

#include <errno.h>
#include <linux/kernel.h>
#include <stddef.h>

/* What of it is in a part of its time */
static u64 cover(const struct verdict_span *span, u64 ns)
{
	u64 all = span->end - span->start;

	return span->ns == all ? ns : (u64)((double)span->ns / all * ns);
}

/* Behind the others; 0 or -ENOMEM */
int verdict_spans__add(struct verdict_spans *spans, const struct verdict_span *span)
{
	if (verdict_array__grow((void **)&spans->list, spans->nr, &spans->max,
				sizeof(*spans->list)))
		return -ENOMEM;
	spans->list[spans->nr++] = *span;
	return 0;
}

/* The first one that ends after a time */
u32 verdict_spans__first(const struct verdict_spans *spans, u64 start)
{
	return verdict_array__not_later(spans->list, spans->nr, sizeof(*spans->list),
					offsetof(struct verdict_span, end), start);
}

/**
 * verdict_spans__cover - how much of a time spans cover
 * @spans: the spans
 * @start: from when on
 * @end: until when
 * @part: called for each part, or NULL
 * @ctx: for @part
 * @err: what @part returned, if that was not 0; may be NULL if @part is
 *
 * Return: the sum.
 */
u64 verdict_spans__cover(const struct verdict_spans *spans, u64 start, u64 end,
			 verdict_span_t part, void *ctx, int *err)
{
	u32 i = verdict_spans__first(spans, start);
	u64 sum = 0;

	for (; i < spans->nr && spans->list[i].start < end; i++) {
		const struct verdict_span *span = &spans->list[i];
		u64 ns = cover(span, min(span->end, end) - max(span->start, start));

		sum += ns;
		if (part && ns && !*err)
			*err = part(ctx, span->source, ns);
	}
	return sum;
}
