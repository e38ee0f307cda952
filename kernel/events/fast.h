/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KERNEL_EVENTS_FAST_H
#define _KERNEL_EVENTS_FAST_H

#include <linux/math.h>
#include <linux/perf_event.h>

/**
 * struct perf_fast_hit - what all listeners of a tracepoint get
 * @count: weight of the hit
 * @record: the payload, a struct trace_entry and what follows
 * @regs: registers
 * @size: size of @record
 * @caller: @regs are those of perf_fetch_caller_regs(), in the kernel
 */
struct perf_fast_hit {
	u64				count;
	void				*record;
	struct pt_regs			*regs;
	unsigned int			size;
	bool				caller;
};

/* Bytes of a payload in a record, with its size in front: as perf_sample_save_raw_data() */
static __always_inline unsigned int perf_fast_raw_size(const struct perf_fast_hit *hit)
{
	return round_up(hit->size + sizeof(u32), sizeof(u64));
}

#ifdef CONFIG_PERF_FAST_CHECK
void perf_fast_compare(struct perf_event *event, struct perf_buffer *rb,
		       unsigned long offset, const struct perf_fast_hit *hit,
		       unsigned int size);
void perf_fast_compare_entry(void *record, u16 type);
#else
static inline void perf_fast_compare(struct perf_event *event, struct perf_buffer *rb,
				     unsigned long offset, const struct perf_fast_hit *hit,
				     unsigned int size)
{
}

static inline void perf_fast_compare_entry(void *record, u16 type)
{
}
#endif /* CONFIG_PERF_FAST_CHECK */

#endif /* _KERNEL_EVENTS_FAST_H */
