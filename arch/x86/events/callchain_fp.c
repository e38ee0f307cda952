// SPDX-License-Identifier: GPL-2.0
/*
 * Walk the frame pointers of the current task's kernel stack
 *
 * The unwinder takes 200 instructions per frame: it knows all stacks of a CPU, and what
 * may have replaced a return address. Most call chains of perf need none of that: they
 * consist of ordinary frames on the stack of the current task. perf_callchain_fp() walks
 * these. As soon as it finds anything else it drops what it has stored, and the unwinder
 * does it all. So the entries are the unwinder's in each case:
 *
 *  frame			what the unwinder does		here
 *  ordinary			its return address		the same
 *  the last one, before	its return address, then ends	the same
 *  the registers of user
 *  space (task_pt_regs())
 *  address that is no text	ends				the same
 *  encoded pointer to these	ends				the same
 *  registers
 *  encoded pointer to other	continues with the registers	left to the unwinder
 *  registers: an interrupt
 *  in the kernel
 *  on another stack: IRQ,	finds the stack			left to the unwinder
 *  exception, entry
 *  return address replaced	finds the original		left to the unwinder
 *  by function graph tracer
 *  or rethook
 *  realigned or ftrace's at	knows them			left to the unwinder
 *  the end of the stack
 *  not above the one before,	ends, warns			left to the unwinder
 *  not aligned
 *
 * Nothing is read but the stack of the current task between the first frame and
 * task_pt_regs(), so there are no faults. The stack above the first frame does not
 * change while it is walked. An NMI may hit where "current" and the stack pointer are
 * not of the same task: the first frame is not on the stack of "current" then.
 */
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/rethook.h>
#include <linux/sched/task_stack.h>

#include <asm/sections.h>
#include <asm/unwind.h>

#include "callchain_fp.h"

static __always_inline bool fp_replaced(unsigned long addr)
{
#ifdef CONFIG_FUNCTION_GRAPH_TRACER
	if (unlikely(addr == (unsigned long)return_to_handler))
		return true;
#endif
#ifdef CONFIG_RETHOOK
	if (unlikely(is_rethook_trampoline(addr)))
		return true;
#endif
	return false;
}

static __always_inline bool fp_text(unsigned long addr)
{
	if (likely(addr >= (unsigned long)_stext && addr < (unsigned long)_etext))
		return true;
	return __kernel_text_address(addr);
}

/* See is_last_aligned_frame() and is_last_ftrace_frame() of the unwinder. */
static __always_inline bool fp_special(unsigned long *bp, unsigned long *last)
{
	if (likely(bp < last - 3 || bp == last))
		return false;
	return bp == last - 1 || bp > last ||
	       (bp == last - 3 &&
		READ_ONCE_NOCHECK(bp[0]) == READ_ONCE_NOCHECK(bp[2]) &&
		READ_ONCE_NOCHECK(bp[1]) == READ_ONCE_NOCHECK(bp[4]));
}

/* Return false if there is a frame that is the unwinder's. */
__no_kmsan_checks
static bool fp_walk(struct perf_callchain_entry_ctx *entry, unsigned long *bp)
{
	unsigned long regs = (unsigned long)task_pt_regs(current);
	unsigned long *last = (unsigned long *)regs - 2;
	unsigned long addr, next;

	for (;;) {
		if (fp_special(bp, last))
			return false;
		addr = READ_ONCE_NOCHECK(bp[1]);
		if (fp_replaced(addr))
			return false;
		if (!fp_text(addr) || perf_callchain_store(entry, addr))
			return true;
		if (bp == last)
			return true;

		next = READ_ONCE_NOCHECK(bp[0]);
		/* See ENCODE_FRAME_POINTER. */
		if (next == (regs | 1))
			return user_mode(task_pt_regs(current));
		if (next & (sizeof(long) - 1) || next < (unsigned long)(bp + 2))
			return false;
		bp = (unsigned long *)next;
	}
}

/* Is there a frame at @bp, on the stack of the current task? */
static bool fp_on_task_stack(unsigned long bp)
{
	unsigned long stack = (unsigned long)task_stack_page(current);

	return bp >= stack && bp < (unsigned long)task_pt_regs(current) &&
	       !(bp & (sizeof(long) - 1));
}

#ifdef CONFIG_PERF_FAST_CHECK
/* The unwinder must find what is in @entry from @nr on, in the same order. */
static void fp_compare(struct perf_callchain_entry_ctx *entry, struct pt_regs *regs, bool hw,
		       u32 nr)
{
	u32 end = entry->entry->nr;
	struct unwind_state state;
	unsigned long addr;

	unwind_start(&state, current, hw ? regs : NULL, hw ? NULL : (void *)regs->sp);
	for (; !unwind_done(&state); unwind_next_frame(&state)) {
		addr = unwind_get_return_address(&state);
		if (!addr || nr == end)
			break;
		if (WARN_ONCE(entry->entry->ip[nr] != addr,
			      "perf: frame %u is %pS, not %pS\n", nr,
			      (void *)(unsigned long)entry->entry->ip[nr], (void *)addr))
			return;
		nr++;
	}
	WARN_ONCE(nr != end, "perf: %u frames, not %u\n", end, nr);
	WARN_ONCE(!unwind_done(&state) && addr && entry->nr < entry->max_stack,
		  "perf: %u frames, and %pS\n", end, (void *)addr);
}
#else
static inline void fp_compare(struct perf_callchain_entry_ctx *entry, struct pt_regs *regs,
			      bool hw, u32 nr)
{
}
#endif

/**
 * perf_callchain_fp - store the kernel's call chain if it has ordinary frames only
 * @entry: where to
 * @regs: where from: of an interrupt, or of perf_fetch_caller_regs()
 * @hw: they are of an interrupt, see perf_hw_regs()
 *
 * Return: false if nothing was stored, the unwinder must be used.
 */
bool perf_callchain_fp(struct perf_callchain_entry_ctx *entry, struct pt_regs *regs, bool hw)
{
	unsigned long bp = hw ? regs->bp : regs->sp;
	u32 nr = entry->entry->nr, ctx_nr = entry->nr;

	if (!fp_on_task_stack(bp))
		return false;
	if (hw) {
		/* A call of NULL, or a frame that the unwinder skips */
		if (!regs->ip || regs->sp > bp || !fp_on_task_stack(regs->sp & ~7UL))
			return false;
		if (perf_callchain_store(entry, regs->ip))
			return true;
	}
	if (fp_walk(entry, (unsigned long *)bp)) {
		fp_compare(entry, regs, hw, nr + hw);
		return true;
	}

	entry->entry->nr = nr;
	entry->nr = ctx_nr;
	return false;
}
