// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of branch stacks of software events
 *
 * The test is the PMU that has the call stack of the current task. It opens software
 * events, lets one occur, and compares the record in the ring buffer with what it gave.
 * Each case begins without events, and ends so.
 */
#include <kunit/test.h>
#include <linux/kthread.h>
#include <linux/perf_branch_snapshot.h>
#include <linux/perf_event.h>
#include <linux/sched/task.h>

#include "../internal.h"

#define CALL_STACK	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK)
#define NR_CALLS	3
#define PAGES		1

/* The call stack, if the PMU has one, and how often it was asked for it */
static struct perf_branch_stack *play_stack;
static bool play_has_stack;
static unsigned int play_taken;
static int play_prepare_error;

static int play_prepare(void)
{
	return play_prepare_error;
}

static struct perf_branch_stack *play_take(void)
{
	play_taken++;
	return play_has_stack ? play_stack : NULL;
}

static const struct perf_branch_snapshot play_pmu = {
	.prepare	= play_prepare,
	.take		= play_take,
};

/* What the kernel has, of the real PMU */
static const struct perf_branch_snapshot *real_pmu;

static int play_init(struct kunit *test)
{
	unsigned int i;

	play_stack = kunit_kzalloc(test, struct_size(play_stack, entries, NR_CALLS), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, play_stack);
	play_stack->nr = NR_CALLS;
	play_stack->hw_idx = 5;
	for (i = 0; i < NR_CALLS; i++) {
		play_stack->entries[i].from = 0x1000 + i;
		play_stack->entries[i].to = 0x2000 + i;
	}
	play_has_stack = true;
	play_taken = 0;
	play_prepare_error = 0;
	real_pmu = perf_branch_snapshot_register(&play_pmu);
	return 0;
}

static void play_exit(struct kunit *test)
{
	perf_branch_snapshot_register(real_pmu);
}

static struct perf_event *play_open(u32 type, u64 config, u64 sample_type, u64 branch_type,
				    struct task_struct *task)
{
	struct perf_event_attr attr = {
		.type			= type,
		.size			= sizeof(attr),
		.config			= config,
		.sample_type		= sample_type,
		.sample_period		= 1,
		.branch_sample_type	= branch_type,
	};

	return perf_event_create_kernel_counter(&attr, -1, task, NULL, NULL);
}

/* Open an event that nothing causes but the test, with a branch stack. */
static struct perf_event *play_open_fault(u64 branch_type, struct task_struct *task)
{
	return play_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
			 PERF_SAMPLE_TID | PERF_SAMPLE_BRANCH_STACK, branch_type, task);
}

static void play_expect_open(struct kunit *test, struct perf_event *event, int error,
			     const char *what, u64 how)
{
	KUNIT_EXPECT_EQ_MSG(test, IS_ERR(event) ? PTR_ERR(event) : 0, error, "%s, %#llx", what,
			    how);
	if (!IS_ERR(event))
		perf_event_release_kernel(event);
}

/* Which branches can be asked for */
static void types(struct kunit *test)
{
	static const struct {
		u64	type;
		int	error;
	} table[] = {
		{ CALL_STACK, 0 },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_NO_FLAGS, 0 },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_NO_CYCLES, 0 },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_HW_INDEX, 0 },
		{ PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY, -EOPNOTSUPP },
		{ PERF_SAMPLE_BRANCH_CALL_STACK, -EOPNOTSUPP },
		{ PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_KERNEL, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_KERNEL, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_HV, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_ANY_CALL, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_TYPE_SAVE, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_PRIV_SAVE, -EOPNOTSUPP },
		{ CALL_STACK | PERF_SAMPLE_BRANCH_COUNTERS, -EOPNOTSUPP },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(table); i++)
		play_expect_open(test, play_open_fault(table[i].type, current), table[i].error,
				 "branches", table[i].type);

	play_prepare_error = -ENOMEM;
	play_expect_open(test, play_open_fault(CALL_STACK, current), -ENOMEM, "no memory", 0);

	/* Without such a PMU, none, as ever */
	perf_branch_snapshot_register(NULL);
	for (i = 0; i < ARRAY_SIZE(table); i++)
		play_expect_open(test, play_open_fault(table[i].type, current), -EOPNOTSUPP,
				 "no PMU, branches", table[i].type);
	play_expect_open(test, play_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
					 PERF_SAMPLE_TID, 0, current), 0, "no branches", 0);
}

/* Which events can ask */
static void events(struct kunit *test)
{
	static const u64 configs[] = {
		PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_BPF_OUTPUT,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(configs); i++) {
		u64 sample = PERF_SAMPLE_TID | PERF_SAMPLE_BRANCH_STACK;

		play_expect_open(test, play_open(PERF_TYPE_SOFTWARE, configs[i], sample,
						 CALL_STACK, current), 0, "event", configs[i]);
		play_expect_open(test, play_open(PERF_TYPE_SOFTWARE, configs[i], sample,
						 PERF_SAMPLE_BRANCH_ANY, current),
				 -EOPNOTSUPP, "event, any branch", configs[i]);
	}
	if (IS_ENABLED(CONFIG_HAVE_HW_BREAKPOINT))
		play_expect_open(test, play_open(PERF_TYPE_BREAKPOINT, 0,
						 PERF_SAMPLE_BRANCH_STACK, CALL_STACK, current),
				 -EOPNOTSUPP, "breakpoint", 0);
}

/* Let an event occur, and return its record. */
static u64 *play_record(struct kunit *test, u64 branch_type)
{
	u64 *record = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct perf_event *event = play_open_fault(branch_type, current);
	struct perf_buffer *rb;
	struct pt_regs regs;

	KUNIT_ASSERT_NOT_NULL(test, record);
	KUNIT_ASSERT_FALSE(test, IS_ERR(event));
	rb = rb_alloc(&perf_rb_kernel_memory, PAGES, 0, -1, RING_BUFFER_WRITABLE);
	if (rb) {
		WRITE_ONCE(event->rb, rb);
		perf_fetch_caller_regs(&regs);
		perf_sw_event(PERF_COUNT_SW_ALIGNMENT_FAULTS, 1, &regs, 0);
		WRITE_ONCE(event->rb, NULL);
		memcpy(record, rb->data_pages[0], local_read(&rb->head));
	}
	perf_event_release_kernel(event);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	synchronize_rcu();
	rb_free_rcu(&rb->rcu_head);
	return record;
}

static void play_expect_record(struct kunit *test, u64 branch_type, u64 nr, u64 hw_idx)
{
	u64 *record = play_record(test, branch_type), *p = record;
	struct perf_event_header *header = (void *)p++;
	bool has_idx = branch_type & PERF_SAMPLE_BRANCH_HW_INDEX;
	size_t size = nr * sizeof(struct perf_branch_entry);

	KUNIT_EXPECT_EQ(test, header->type, PERF_RECORD_SAMPLE);
	KUNIT_EXPECT_EQ(test, header->size, sizeof(u64) * (3 + has_idx) + size);
	p++;
	KUNIT_EXPECT_EQ(test, *p++, nr);
	if (has_idx)
		KUNIT_EXPECT_EQ(test, *p++, hw_idx);
	KUNIT_EXPECT_MEMEQ(test, (void *)p, (void *)play_stack->entries, size);
	KUNIT_EXPECT_EQ(test, p[size / sizeof(u64)], 0);
}

/* A sample has the call stack, and an empty one if it is not known. */
static void samples(struct kunit *test)
{
	static const u64 formats[] = {
		CALL_STACK,
		CALL_STACK | PERF_SAMPLE_BRANCH_HW_INDEX,
		CALL_STACK | PERF_SAMPLE_BRANCH_HW_INDEX | PERF_SAMPLE_BRANCH_NO_FLAGS |
			PERF_SAMPLE_BRANCH_NO_CYCLES,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		play_has_stack = true;
		play_expect_record(test, formats[i], NR_CALLS, 5);
		play_has_stack = false;
		play_expect_record(test, formats[i], 0, -1ULL);
		KUNIT_EXPECT_EQ(test, play_taken, 2 * (i + 1));
	}
}

static int play_sleep(void *unused)
{
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

static void play_prepare_sample(struct perf_event *event, struct perf_sample_data *data)
{
	struct pt_regs regs;

	perf_fetch_caller_regs(&regs);
	preempt_disable();
	perf_sample_data_init(data, 0, 1);
	perf_prepare_sample(data, event, &regs);
	preempt_enable();
}

/* An event of a task that does not run does not see the call stack of the one that does. */
static void other_task(struct kunit *test)
{
	struct task_struct *task = kthread_run(play_sleep, NULL, "play_sleep");
	struct perf_sample_data data;
	struct perf_event *event;

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	event = play_open_fault(CALL_STACK, task);
	KUNIT_EXPECT_FALSE(test, IS_ERR(event));
	if (!IS_ERR(event)) {
		play_prepare_sample(event, &data);
		KUNIT_EXPECT_EQ(test, data.br_stack->nr, 0);
		KUNIT_EXPECT_EQ(test, data.br_stack->hw_idx, -1ULL);
		KUNIT_EXPECT_EQ(test, play_taken, 0);
		perf_event_release_kernel(event);
	}
	kthread_stop(task);

	event = play_open_fault(CALL_STACK, current);
	KUNIT_ASSERT_FALSE(test, IS_ERR(event));
	play_prepare_sample(event, &data);
	KUNIT_EXPECT_PTR_EQ(test, data.br_stack, play_stack);
	perf_event_release_kernel(event);
}

/* The PMU is not asked for samples without branches. */
static void not_asked(struct kunit *test)
{
	struct perf_sample_data data;
	struct perf_event *event;

	event = play_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_SAMPLE_TID,
			  CALL_STACK, current);
	KUNIT_ASSERT_FALSE(test, IS_ERR(event));
	play_prepare_sample(event, &data);
	perf_event_release_kernel(event);
	KUNIT_EXPECT_EQ(test, play_taken, 0);
	KUNIT_EXPECT_FALSE(test, data.sample_flags & PERF_SAMPLE_BRANCH_STACK);
}

static struct kunit_case branch_snapshot_cases[] = {
	KUNIT_CASE(types),
	KUNIT_CASE(events),
	KUNIT_CASE(samples),
	KUNIT_CASE(other_task),
	KUNIT_CASE(not_asked),
	{ }
};

static struct kunit_suite branch_snapshot_suite = {
	.name		= "perf_branch_snapshot",
	.init		= play_init,
	.exit		= play_exit,
	.test_cases	= branch_snapshot_cases,
};

kunit_test_suite(branch_snapshot_suite);

MODULE_DESCRIPTION("KUnit tests of branch stacks of software events");
MODULE_LICENSE("GPL");
