// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots of LBR call stacks, for samples of software events
 *
 * Theory of operation
 * ===================
 *
 * Hardware events read the LBRs in the PMI, or PEBS stores them. A software event can occur
 * at any time, so lbr_snapshot_take() finds out what the LBRs hold, and returns nothing
 * unless it is the call stack of the current task in user space.
 *
 * Why not perf_snapshot_branch_stack(): it stops the LBRs first, as it wants the branches of
 * the kernel. It does not look at who uses them, so after the last event has gone it returns
 * the branches of any task; and its caller, a BPF program, has the right to see all of them.
 *
 * When they are that
 * ------------------
 *  - An event with call stacks of user space is active on this CPU. All events that use the
 *    LBRs at a time have the same filter, see __intel_shared_reg_get_constraints(). A guest's
 *    need not, so events with branches of the kernel are counted: with one of them the
 *    stack would change while it is read.
 *  - They are of the current task, cpuc->lbr_owner. It is set when the task's stack has been
 *    restored, or the LBRs have been reset with it running. It is cleared before they are
 *    saved, restored or reset, and when the last event goes. So even an NMI in a context
 *    switch does not see one task's calls in the other's name. The pointer is only
 *    compared: the task may have been freed.
 *  - No guest has them, see vlbr_exclude_host().
 *
 * A per-task event that comes back without a context switch (it shares its counter with
 * others, was disabled, or another event was opened on the CPU) does not set the owner: the
 * task went on without it, and its stack is another one. There are snapshots again after
 * the next context switch.
 *
 * Why they do not change
 * ----------------------
 * Only branches in user space are recorded. Whatever the kernel does, the LBRs stay as they
 * were when it was entered, until it returns to user space or switches the task. They need
 * not be stopped. A PMI that has stopped them or is about to, and FREEZE_LBRS_ON_PMI, which
 * call stacks do not use, make no difference. Interrupts are off while they are read, for
 * a reset comes from the scheduler or an IPI.
 *
 * So each CPU has one buffer for all contexts. An interrupt or NMI between the snapshot and
 * the end of its sample writes what is there already, or finds the LBRs without an owner or
 * reset, and leaves the buffer alone. For this, a snapshot must depend on the registers
 * alone. In particular it does not decode the calls, as intel_pmu_lbr_filter() does: pages
 * of the program may come and go.
 *
 * The buffers are allocated when the first event that asks is opened, and stay.
 */
#include <linux/perf_branch_snapshot.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#include <asm/msr.h>
#include <asm/perf_event.h>

#include "../perf_event.h"

/* A call with a displacement of 0, "call 1f; 1:", which reads the instruction pointer */
#define LBR_CALL_LENGTH	5

static bool lbr_snapshot_has_call_stack(struct cpu_hw_events *cpuc)
{
	return cpuc->lbr_callstack_users && !cpuc->lbr_kernel_users &&
	       !test_bit(INTEL_PMC_IDX_FIXED_VLBR,
			 (unsigned long *)&cpuc->intel_ctrl_guest_mask);
}

/* Without LBR_INFO, the upper bits are flags: see intel_pmu_lbr_read_64(). */
static u64 lbr_snapshot_from(u64 from)
{
	return x86_pmu.lbr_from_flags ? (u64)((s64)(from << 3) >> 3) : from;
}

/* Calls without a return would stay; see branch_type(), of which this is a part. */
static bool lbr_snapshot_is_user_call(u64 from, u64 to)
{
	return to && !kernel_ip(from) && !kernel_ip(to) && to - from != LBR_CALL_LENGTH;
}

/* Return false, with @stack as it was, if there are no calls. */
static bool lbr_snapshot_read(struct perf_branch_stack *stack)
{
	unsigned int depth = min_t(unsigned int, x86_pmu.lbr_nr, MAX_LBR_ENTRIES);
	bool arch = cpu_feature_enabled(X86_FEATURE_ARCH_LBR);
	u64 from, to, tos = 0, nr = 0;
	unsigned int i, idx;

	/* With Arch LBR, the first register has the latest entry. */
	if (!arch)
		tos = native_read_msr(x86_pmu.lbr_tos);

	for (i = 0; i < depth; i++) {
		idx = arch ? i : (tos - i) & (x86_pmu.lbr_nr - 1);
		from = native_read_msr(x86_pmu.lbr_from + idx);
		if (!from)
			break;
		to = native_read_msr(x86_pmu.lbr_to + idx);
		from = lbr_snapshot_from(from);
		/* The upper bits are cycles: see intel_pmu_lbr_read_64(). */
		if (x86_pmu.lbr_to_cycles)
			to = (u64)((s64)(to << 16) >> 16);
		if (!lbr_snapshot_is_user_call(from, to))
			continue;
		stack->entries[nr++] = (struct perf_branch_entry) { .from = from, .to = to };
	}
	if (!nr)
		return false;
	stack->hw_idx = arch ? -1ULL : tos;
	stack->nr = nr;
	return true;
}

static struct perf_branch_stack *lbr_snapshot_take(void)
{
	struct cpu_hw_events *cpuc = this_cpu_ptr(&cpu_hw_events);
	struct perf_branch_stack *stack = READ_ONCE(cpuc->lbr_snapshot);
	unsigned long flags;
	bool taken;

	local_irq_save(flags);
	taken = READ_ONCE(cpuc->lbr_owner) == current && lbr_snapshot_has_call_stack(cpuc) &&
		lbr_snapshot_read(stack);
	local_irq_restore(flags);
	return taken ? stack : NULL;
}

static int lbr_snapshot_prepare(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_hw_events *cpuc = per_cpu_ptr(&cpu_hw_events, cpu);
		struct perf_branch_stack *stack;

		if (READ_ONCE(cpuc->lbr_snapshot))
			continue;
		stack = kzalloc_node(struct_size(stack, entries, MAX_LBR_ENTRIES), GFP_KERNEL,
				     cpu_to_node(cpu));
		if (!stack)
			return -ENOMEM;
		/* Another event may be opened at the same time. */
		if (cmpxchg(&cpuc->lbr_snapshot, NULL, stack))
			kfree(stack);
	}
	return 0;
}

static const struct perf_branch_snapshot lbr_snapshot = {
	.prepare	= lbr_snapshot_prepare,
	.take		= lbr_snapshot_take,
};

/**
 * intel_pmu_lbr_snapshot_init - let software events have LBR call stacks
 *
 * Context: at boot, when it is known what the LBRs can do.
 */
void __init intel_pmu_lbr_snapshot_init(void)
{
	if (x86_pmu_has_lbr_callstack())
		perf_branch_snapshot_register(&lbr_snapshot);
}
