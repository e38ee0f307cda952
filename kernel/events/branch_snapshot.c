// SPDX-License-Identifier: GPL-2.0
/*
 * Call stacks of the branch records in samples of software events
 *
 * Theory of operation
 * ===================
 *
 * A software event, tracepoint or probe has no branch records of its own. If it asks for
 * PERF_SAMPLE_BRANCH_STACK, each of its samples gets a snapshot of the call stack that the
 * PMU keeps in its branch records for another event, one of hardware, at that time.
 *
 * Which events
 * ------------
 * perf_branch_snapshot_init() takes the place of the check by which each of their PMUs
 * refuses branch stacks. An event can ask for the call stack of user space alone, with
 * exactly USER and CALL_STACK and what only changes the format of a sample. All others are
 * refused as before:
 *
 *  - KERNEL and HV: the kernel's calls before the sample are those of perf. Its call stack
 *    comes from the unwinder. So no snapshot contains an address of the kernel, whoever asks.
 *  - other types of branches: at the sample, the records hold the branches of perf.
 *  - TYPE_SAVE, PRIV_SAVE, COUNTERS: the records are read without them.
 *
 * No sample is refused for what happens later. Where the PMU has no call stack of the
 * current task, the branch stack of the sample is empty: nr is 0, and hw_idx is -1.
 *
 * Whose call stack
 * ----------------
 * A snapshot is of the current task. A tracepoint is also delivered to the events of a task
 * that does not run. These get an empty stack, as they get no call chain of user space:
 * their owner may have no right to see what the current task does.
 *
 * Memory
 * ------
 * The stack lies in memory of the PMU until the sample has been written, with preemption
 * disabled. On the way, interrupts and NMIs may take snapshots of their own. There need not
 * be memory for each: until the task returns to user space, they find the same stack; see
 * struct perf_branch_snapshot. So it is whole, whatever sample_max_stack an event has.
 */
#include <linux/perf_branch_snapshot.h>
#include <linux/perf_event.h>

#define SNAPSHOT_STACK	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK)
#define SNAPSHOT_FORMAT	(PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES | \
			 PERF_SAMPLE_BRANCH_HW_INDEX)

static const struct perf_branch_snapshot *snapshot_pmu __read_mostly;

/* The stack of samples without a snapshot; never written to. */
static struct perf_branch_stack snapshot_none = { .nr = 0, .hw_idx = -1ULL };

static bool snapshot_is_asked(struct perf_event *event)
{
	return (event->attr.branch_sample_type & ~SNAPSHOT_FORMAT) == SNAPSHOT_STACK;
}

/**
 * perf_branch_snapshot_register - tell that the PMU can take snapshots
 * @snapshot: how, or NULL if it no longer can
 *
 * Context: at boot, before there are events that ask.
 * Return: the previous one, for tests.
 */
const struct perf_branch_snapshot *
perf_branch_snapshot_register(const struct perf_branch_snapshot *snapshot)
{
	const struct perf_branch_snapshot *old = snapshot_pmu;

	WRITE_ONCE(snapshot_pmu, snapshot);
	return old;
}

/**
 * perf_branch_snapshot_init - check whether a software event can have a branch stack
 * @event: the event, being opened
 *
 * Context: may sleep.
 * Return: 0 if it can, or does not ask for one; -EOPNOTSUPP, or -ENOMEM.
 */
int perf_branch_snapshot_init(struct perf_event *event)
{
	const struct perf_branch_snapshot *pmu = READ_ONCE(snapshot_pmu);

	if (!has_branch_stack(event))
		return 0;
	if (!pmu || !snapshot_is_asked(event))
		return -EOPNOTSUPP;
	return pmu->prepare();
}

/*
 * As perf_sample_save_brstack(), which cuts the stack itself to the event's sample_max_stack on
 * newer kernels. A sample in an interrupt would find it cut, or make it longer than the record
 * that was interrupted has room for.
 */
static void snapshot_put(struct perf_sample_data *data, struct perf_event *event,
			 struct perf_branch_stack *stack)
{
	data->dyn_size += sizeof(stack->nr) + stack->nr * sizeof(stack->entries[0]);
	if (branch_sample_hw_index(event))
		data->dyn_size += sizeof(stack->hw_idx);
	data->br_stack = stack;
	data->br_stack_cntr = NULL;
	data->sample_flags |= PERF_SAMPLE_BRANCH_STACK;
}

/**
 * perf_branch_snapshot_save - store a snapshot in the sample of a software event
 * @data: the sample
 * @event: an event that asks for a branch stack
 *
 * Context: any, with preemption disabled until the sample has been written.
 * Return: false if @event takes no snapshots.
 */
bool perf_branch_snapshot_save(struct perf_sample_data *data, struct perf_event *event)
{
	const struct perf_branch_snapshot *pmu = READ_ONCE(snapshot_pmu);
	struct perf_branch_stack *stack = NULL;
	struct task_struct *task;

	if (!pmu || event->pmu->task_ctx_nr != perf_sw_context ||
	    !snapshot_is_asked(event))
		return false;
	lockdep_assert_preemption_disabled();

	task = READ_ONCE(event->ctx->task);
	if (!task || task == current)
		stack = pmu->take();
	snapshot_put(data, event, stack ?: &snapshot_none);
	return true;
}
