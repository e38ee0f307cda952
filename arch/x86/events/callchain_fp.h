/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ARCH_X86_EVENTS_CALLCHAIN_FP_H
#define _ARCH_X86_EVENTS_CALLCHAIN_FP_H

struct perf_callchain_entry_ctx;
struct pt_regs;

#if defined(CONFIG_UNWINDER_FRAME_POINTER) && defined(CONFIG_X86_64)
bool perf_callchain_fp(struct perf_callchain_entry_ctx *entry, struct pt_regs *regs, bool hw);
#else
static inline bool perf_callchain_fp(struct perf_callchain_entry_ctx *entry,
				     struct pt_regs *regs, bool hw)
{
	return false;
}
#endif

#endif /* _ARCH_X86_EVENTS_CALLCHAIN_FP_H */
