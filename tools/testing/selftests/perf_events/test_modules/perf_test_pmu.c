// SPDX-License-Identifier: GPL-2.0
/*
 * PMUs in software that must save state for each task, as Intel's LBR does in its
 * call-stack mode: for the tests of per-task PMU data, on machines that have no LBR.
 *
 * The "hardware" is a stack of frames on each CPU. It works while an event of its PMU is
 * active there. Tasks push and pop frames by writing to /dev/perf_test_pmu; a third word
 * makes each active event write a sample with what the stack holds. A stack knows nothing
 * of tasks: sched_task() saves it into the data of the task that goes, and restores the
 * data of the task that comes, or clears it, if there are none. Whether a task's stack is
 * as deep after a context switch as before is what the tests ask.
 *
 * perf_test_big and perf_test_small have data of different sizes, and a cache each. The
 * caches are not merged with others: what is left in one when the module goes is reported
 * by kmem_cache_destroy().
 *
 * perf_test_aux is a small one whose events have an AUX area, to which nothing is written.
 * While hold_aux=1, mmap() of the area waits where a driver sets it up, for up to
 * TEST_PMU_HOLD_MS. Reading the device tells how many wait, and how many areas there are.
 *
 * Where the data hang depends on the kernel: off the task with per-task PMU data and since
 * 6.16, off the task's event context (task_ctx_data) before, where a CPU's context has none.
 * The users of the stack are counted for the CPU in the one case, and in the data in the
 * other, because the base swaps data, but not users, between tasks.
 *
 * With eager=1 or 2 the first system-wide event allocates for each thread of the machine and
 * the last one frees, see eager_data.h.
 *
 * Writing 1 to the parameter revoke unregisters the PMUs while they have events, as a driver
 * does whose device is unplugged. They return when the module is loaded anew.
 *
 * Locking: a CPU's stack is touched on that CPU with interrupts off.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* With per-task PMU data perf_event.h includes perf_ctx_data.h. */
#ifdef _LINUX_PERF_CTX_DATA_H
#define TASK_DATA	1
#else
#define TASK_DATA	0
#endif

/* Without, data hang off the task's event context; off the task where this is defined. */
#if TASK_DATA || defined(PERF_ATTACH_GLOBAL_DATA)
#define DATA_OF_CONTEXT	0
#else
#define DATA_OF_CONTEXT	1
#endif

#include "test_pmu.h"

#define MAX_EVENTS	16

static unsigned int eager;
module_param(eager, uint, 0644);
MODULE_PARM_DESC(eager, "allocate for each thread when a system-wide event is opened: 1, 2");

static bool hold_aux;
module_param(hold_aux, bool, 0644);
MODULE_PARM_DESC(hold_aux, "let those wait that map an AUX area");

/* What a task's data hold. */
struct test_task {
	u32			valid;
	u32			depth;
	/* The CPU that saved it last, and how often the task had been switched */
	u32			last_cpu;
	u64			switches;
	/* Active events of the task's context that use the stack; with DATA_OF_CONTEXT. */
	u32			users;
	u64			frames[];
};

struct test_cpu {
	/* Active events, and those that use the stack as a call stack. */
	unsigned int		nr_events;
	unsigned int		users;
	struct perf_event	*events[MAX_EVENTS];
	/* What was saved last, and is still in the stack; or NULL. */
	struct test_task	*last;
	/* How often sched_task() did what. */
	u64			saved;
	u64			restored;
	u64			cleared;
	u32			depth;
	u64			frames[TEST_PMU_BIG_DEPTH];
	/* The sample that is being written. */
	struct perf_branch_stack sample;
	struct perf_branch_entry entries[TEST_PMU_BIG_DEPTH];
};

struct test_pmu {
	struct pmu		pmu;
	const char		*name;
	u32			depth;
	bool			has_aux;
	struct test_cpu __percpu *cpu;
	bool			registered;
};

static struct test_pmu test_pmus[] = {
	{ .name = "perf_test_big",	.depth = TEST_PMU_BIG_DEPTH },
	{ .name = "perf_test_small",	.depth = TEST_PMU_SMALL_DEPTH },
	{ .name = "perf_test_aux",	.depth = TEST_PMU_SMALL_DEPTH,	.has_aux = true },
};

/* Of perf_test_aux: areas that are set up, and those that wait for it. */
static atomic_t aux_areas;
static atomic_t aux_waiting;

static struct test_pmu *to_test_pmu(struct pmu *pmu)
{
	return container_of(pmu, struct test_pmu, pmu);
}

static size_t task_size(struct test_pmu *tp)
{
	return struct_size_t(struct test_task, frames, tp->depth);
}

/*
 * The PMUs that use pmu::sched_task() are built in, so the functions they call are not
 * exported: a kprobe finds them.
 */
static void (*sched_cb_inc)(struct pmu *pmu);
static void (*sched_cb_dec)(struct pmu *pmu);

static void *find_function(const char *name)
{
	struct kprobe kp = { .symbol_name = name, .flags = KPROBE_FLAG_DISABLED };
	void *addr;

	if (register_kprobe(&kp))
		return NULL;
	addr = kp.addr;
	unregister_kprobe(&kp);
	return addr;
}

static bool find_functions(void)
{
#ifdef CONFIG_X86_KERNEL_IBT
	/* They are no targets of indirect calls. Such a kernel boots with ibt=off. */
	if (cpu_feature_enabled(X86_FEATURE_IBT))
		return false;
#endif
	sched_cb_inc = find_function("perf_sched_cb_inc");
	sched_cb_dec = find_function("perf_sched_cb_dec");
	return sched_cb_inc && sched_cb_dec;
}

#if TASK_DATA
#include "eager_data.h"

/* A task has data of one PMU. That need not be ours, if no event of ours asked for it. */
static struct test_task *task_data(struct pmu *pmu, struct task_struct *task)
{
	return perf_ctx_data_of(task, pmu->task_ctx_cache);
}

/* One PMU has its data in one piece with what the kernel adds, the other in two. */
static unsigned int set_head(struct pmu *pmu)
{
	pmu->task_ctx_head = perf_ctx_data_head(__alignof__(struct test_task));
	return pmu->task_ctx_head;
}

/* What a task's data take */
static unsigned int bytes_of(struct test_pmu *tp)
{
	return kmem_cache_size(tp->pmu.task_ctx_cache) +
	       (tp->pmu.task_ctx_head ? 0 : sizeof(struct perf_ctx_data));
}
#else
#define EAGER_OFF	0

static int eager_get(struct pmu *pmu, unsigned int mode)
{
	return -EOPNOTSUPP;
}

static void eager_put(struct pmu *pmu)
{
}

static void eager_exit(struct task_struct *task)
{
}

static unsigned int set_head(struct pmu *pmu)
{
	return 0;
}

static unsigned int bytes_of(struct test_pmu *tp)
{
	return kmem_cache_size(tp->pmu.task_ctx_cache);
}
#endif /* TASK_DATA */

#if DATA_OF_CONTEXT
static struct test_task *task_data(struct pmu *pmu, struct task_struct *task)
{
	return NULL;
}

static struct test_task *task_of(struct perf_event_pmu_context *epc, struct task_struct *task)
{
	return epc->task_ctx_data;
}

static void add_user(struct perf_event *event, struct test_cpu *cpu)
{
	struct test_task *data = event->pmu_ctx->task_ctx_data;

	if (data)
		data->users++;
}

static void del_user(struct perf_event *event, struct test_cpu *cpu)
{
	struct test_task *data = event->pmu_ctx->task_ctx_data;

	if (data)
		data->users--;
}

static bool has_users(struct test_cpu *cpu, struct test_task *data)
{
	return data->users;
}

static void test_pmu_swap_task_ctx(struct perf_event_pmu_context *prev_epc,
				   struct perf_event_pmu_context *next_epc)
{
	struct test_task *prev, *next;

	swap(prev_epc->task_ctx_data, next_epc->task_ctx_data);
	prev = prev_epc->task_ctx_data;
	next = next_epc->task_ctx_data;
	if (prev && next)
		swap(prev->users, next->users);
}
#else
#if !TASK_DATA
static struct test_task *task_data(struct pmu *pmu, struct task_struct *task)
{
	struct perf_ctx_data *cd = rcu_dereference(task->perf_ctx_data);

	return cd && cd->ctx_cache == pmu->task_ctx_cache ? cd->data : NULL;
}
#endif

static struct test_task *task_of(struct perf_event_pmu_context *epc, struct task_struct *task)
{
	return task_data(epc->pmu, task);
}

static void add_user(struct perf_event *event, struct test_cpu *cpu)
{
	cpu->users++;
}

static void del_user(struct perf_event *event, struct test_cpu *cpu)
{
	cpu->users--;
}

static bool has_users(struct test_cpu *cpu, struct test_task *data)
{
	return cpu->users;
}
#endif /* DATA_OF_CONTEXT */

static void test_pmu_save(struct test_cpu *cpu, struct test_task *data, struct task_struct *task)
{
	if (!has_users(cpu, data)) {
		data->valid = 0;
		return;
	}
	memcpy(data->frames, cpu->frames, cpu->depth * sizeof(*cpu->frames));
	data->depth = cpu->depth;
	data->valid = 1;
	/* Data have the addresses of those before them: both, or it may be another's. */
	cpu->last = data;
	data->last_cpu = smp_processor_id();
	data->switches = task->nvcsw + task->nivcsw;
	cpu->saved++;
}

static void test_pmu_clear(struct test_cpu *cpu)
{
	cpu->depth = 0;
	cpu->last = NULL;
	cpu->cleared++;
}

static void test_pmu_restore(struct test_cpu *cpu, struct test_task *data,
			     struct task_struct *task)
{
	/* A task that was switched since it was saved has run without the PMU. */
	if (!has_users(cpu, data) || !data->valid ||
	    data->switches != task->nvcsw + task->nivcsw) {
		test_pmu_clear(cpu);
		return;
	}
	/* Nobody touched the stack since it was saved: then it need not be restored. */
	if (data != cpu->last || data->last_cpu != smp_processor_id()) {
		memcpy(cpu->frames, data->frames, data->depth * sizeof(*cpu->frames));
		cpu->depth = data->depth;
		cpu->restored++;
	}
	data->valid = 0;
	/* From here on the task does. */
	cpu->last = NULL;
}

static void test_pmu_sched_task(struct perf_event_pmu_context *epc, struct task_struct *task,
				bool sched_in)
{
	struct test_cpu *cpu = this_cpu_ptr(to_test_pmu(epc->pmu)->cpu);
	struct test_task *data;

	if (!cpu->nr_events)
		return;

	guard(rcu)();
	data = task_of(epc, task);
	if (data) {
		if (sched_in)
			test_pmu_restore(cpu, data, task);
		else
			test_pmu_save(cpu, data, task);
		return;
	}

	/* The frames of one task mean nothing in another. */
	if (sched_in)
		test_pmu_clear(cpu);
}

static bool is_call_stack(struct perf_event *event)
{
	return has_branch_stack(event) &&
	       event->attr.branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK;
}

static void test_pmu_read(struct perf_event *event)
{
}

static void test_pmu_start(struct perf_event *event, int flags)
{
	event->hw.state = 0;
}

static void test_pmu_stop(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static int test_pmu_add(struct perf_event *event, int flags)
{
	struct test_cpu *cpu = this_cpu_ptr(to_test_pmu(event->pmu)->cpu);

	if (cpu->nr_events == MAX_EVENTS)
		return -EAGAIN;

	if (is_call_stack(event))
		add_user(event, cpu);
	sched_cb_inc(event->pmu);
	/*
	 * sched_task() comes after an event that is added by a context switch, but not
	 * after one that is new: what the stack holds is of before.
	 */
	if (!cpu->nr_events && !event->total_time_running)
		test_pmu_clear(cpu);
	cpu->events[cpu->nr_events++] = event;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		test_pmu_start(event, flags);
	return 0;
}

static void test_pmu_del(struct perf_event *event, int flags)
{
	struct test_cpu *cpu = this_cpu_ptr(to_test_pmu(event->pmu)->cpu);
	unsigned int i;

	test_pmu_stop(event, PERF_EF_UPDATE);
	for (i = 0; i < cpu->nr_events && cpu->events[i] != event; i++)
		;
	if (WARN_ON_ONCE(i == cpu->nr_events))
		return;
	cpu->events[i] = cpu->events[--cpu->nr_events];
	if (is_call_stack(event))
		del_user(event, cpu);
	sched_cb_dec(event->pmu);
}

static void eager_destroy(struct perf_event *event)
{
	eager_put(event->pmu);
}

static int eager_init(struct perf_event *event)
{
	int err = eager_get(event->pmu, eager);

	if (!err)
		event->destroy = eager_destroy;
	return err;
}

static int test_pmu_event_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (event->attr.config || event->attr.freq)
		return -EINVAL;
	/* For the tests of persistent events: offer rdpmc, which is not there. */
	if (event->attr.config1)
		event->hw.flags |= PERF_EVENT_FLAG_USER_READ_CNT;
	if (!is_call_stack(event))
		return 0;

	event->attach_state |= PERF_ATTACH_SCHED_CB;
	if (eager != EAGER_OFF && !(event->attach_state & PERF_ATTACH_TASK))
		return eager_init(event);
	event->attach_state |= PERF_ATTACH_TASK_DATA;
	return 0;
}

static void *test_pmu_setup_aux(struct perf_event *event, void **pages, int nr_pages,
				bool overwrite)
{
	unsigned long until = jiffies + msecs_to_jiffies(TEST_PMU_HOLD_MS);

	atomic_inc(&aux_waiting);
	while (READ_ONCE(hold_aux) && time_before(jiffies, until))
		msleep(20);
	atomic_dec(&aux_waiting);
	atomic_inc(&aux_areas);
	return to_test_pmu(event->pmu);
}

static void test_pmu_free_aux(void *aux)
{
	atomic_dec(&aux_areas);
}

static void test_pmu_sample(struct test_cpu *cpu, u64 addr)
{
	unsigned int i;

	cpu->sample.nr = cpu->depth;
	cpu->sample.hw_idx = -1ULL;
	/* The newest first, as the LBR has it. */
	for (i = 0; i < cpu->depth; i++) {
		memset(&cpu->entries[i], 0, sizeof(cpu->entries[i]));
		cpu->entries[i].from = cpu->frames[cpu->depth - 1 - i];
	}
	for (i = 0; i < cpu->nr_events; i++) {
		struct perf_event *event = cpu->events[i];
		struct perf_sample_data data;
		perf_overflow_handler_t output;

		if (event->hw.state || !is_sampling_event(event))
			continue;
		perf_sample_data_init(&data, addr, event->hw.last_period);
		if (has_branch_stack(event))
			perf_sample_save_brstack(&data, event, &cpu->sample, NULL);
		local64_inc(&event->count);
		/* Straight to the buffer: these are not interrupts, which are throttled. */
		output = READ_ONCE(event->overflow_handler);
		output(event, &data, task_pt_regs(current));
	}
}

static void test_pmu_push(struct test_pmu *tp, struct test_cpu *cpu, u64 frame)
{
	/* A full stack forgets its oldest frame. */
	if (cpu->depth == tp->depth) {
		cpu->depth--;
		memmove(cpu->frames, cpu->frames + 1, cpu->depth * sizeof(*cpu->frames));
	}
	cpu->frames[cpu->depth++] = frame;
}

static void test_pmu_execute(struct test_pmu *tp, u64 word)
{
	struct test_cpu *cpu;

	guard(irqsave)();
	cpu = this_cpu_ptr(tp->cpu);
	if (!cpu->nr_events)
		return;
	if (word & TEST_PMU_SAMPLE)
		test_pmu_sample(cpu, word & ~TEST_PMU_SAMPLE);
	else if (word != TEST_PMU_POP)
		test_pmu_push(tp, cpu, word);
	else if (cpu->depth)
		cpu->depth--;
}

static ssize_t test_dev_write(struct file *file, const char __user *buf, size_t count,
			      loff_t *pos)
{
	size_t done, n, i, p;
	u64 words[16];

	if (!count || count % sizeof(*words))
		return -EINVAL;
	for (done = 0; done < count; done += n) {
		n = min(count - done, sizeof(words));
		if (copy_from_user(words, buf + done, n))
			return done ?: -EFAULT;
		for (i = 0; i < n / sizeof(*words); i++) {
			for (p = 0; p < ARRAY_SIZE(test_pmus); p++)
				test_pmu_execute(&test_pmus[p], words[i]);
		}
	}
	return count;
}

/* Tasks that have data of this PMU */
static unsigned long nr_tasks(struct test_pmu *tp)
{
	struct task_struct *g, *t;
	unsigned long nr = 0;

	guard(rcu)();
	for_each_process_thread(g, t)
		nr += !!task_data(&tp->pmu, t);
	return nr;
}

static int test_pmu_print(struct test_pmu *tp, char *text, int size)
{
	u64 saved = 0, restored = 0, cleared = 0;
	int cpu, len;

	for_each_possible_cpu(cpu) {
		struct test_cpu *c = per_cpu_ptr(tp->cpu, cpu);

		saved += READ_ONCE(c->saved);
		restored += READ_ONCE(c->restored);
		cleared += READ_ONCE(c->cleared);
	}
	len = scnprintf(text, size, "%s.type %d\n%s.bytes %u\n%s.tasks %lu\n", tp->name,
			tp->pmu.type, tp->name, bytes_of(tp), tp->name, nr_tasks(tp));
	return len + scnprintf(text + len, size - len,
			       "%s.saved %llu\n%s.restored %llu\n%s.cleared %llu\n", tp->name,
			       saved, tp->name, restored, tp->name, cleared);
}

/* Lines "NAME NUMBER" */
static ssize_t test_dev_read(struct file *file, char __user *buf, size_t count, loff_t *pos)
{
	char text[1024];
	size_t p;
	int len;

	len = scnprintf(text, sizeof(text), "task_data %d\n", TASK_DATA);
	for (p = 0; p < ARRAY_SIZE(test_pmus); p++)
		len += test_pmu_print(&test_pmus[p], text + len, sizeof(text) - len);
	len += scnprintf(text + len, sizeof(text) - len, "aux_areas %d\naux_waiting %d\n",
			 atomic_read(&aux_areas), atomic_read(&aux_waiting));
	return simple_read_from_buffer(buf, count, pos, text, len);
}

/* At exit() as well, which is what it is for. */
static int test_dev_flush(struct file *file, fl_owner_t id)
{
	if (current->flags & PF_EXITING)
		eager_exit(current);
	return 0;
}

static const struct file_operations test_dev_fops = {
	.owner	= THIS_MODULE,
	.flush	= test_dev_flush,
	.read	= test_dev_read,
	.write	= test_dev_write,
};

static struct miscdevice test_dev = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "perf_test_pmu",
	.mode	= 0666,
	.fops	= &test_dev_fops,
};

static int test_pmu_register(struct test_pmu *tp)
{
	int err = -ENOMEM;
	size_t size;

	tp->cpu = alloc_percpu(struct test_cpu);
	if (!tp->cpu)
		return err;

	tp->pmu = (struct pmu) {
		.module		= THIS_MODULE,
		.task_ctx_nr	= perf_hw_context,
		.event_init	= test_pmu_event_init,
		.add		= test_pmu_add,
		.del		= test_pmu_del,
		.start		= test_pmu_start,
		.stop		= test_pmu_stop,
		.read		= test_pmu_read,
		.sched_task	= test_pmu_sched_task,
#if DATA_OF_CONTEXT
		.swap_task_ctx	= test_pmu_swap_task_ctx,
#endif
	};
	if (tp->has_aux) {
		tp->pmu.setup_aux = test_pmu_setup_aux;
		tp->pmu.free_aux = test_pmu_free_aux;
	}
	size = task_size(tp);
	if (tp->depth == TEST_PMU_BIG_DEPTH)
		size += set_head(&tp->pmu);
	tp->pmu.task_ctx_cache = kmem_cache_create(tp->name, size, __alignof__(struct test_task),
						   SLAB_NO_MERGE, NULL);
	if (!tp->pmu.task_ctx_cache)
		goto err_cpu;

	err = perf_pmu_register(&tp->pmu, tp->name, -1);
	if (err)
		goto err_cache;
	tp->registered = true;
	return 0;

err_cache:
	kmem_cache_destroy(tp->pmu.task_ctx_cache);
err_cpu:
	free_percpu(tp->cpu);
	return err;
}

static void test_pmu_revoke(struct test_pmu *tp)
{
	if (xchg(&tp->registered, false))
		perf_pmu_unregister(&tp->pmu);
}

static void test_pmu_unregister(struct test_pmu *tp)
{
	test_pmu_revoke(tp);
	/* Data are freed by RCU. */
	rcu_barrier();
	kmem_cache_destroy(tp->pmu.task_ctx_cache);
	free_percpu(tp->cpu);
}

/*
 * A kernel that revokes the events of a PMU may refuse to unregister it, and returns that. In
 * older ones the events would use what is freed.
 */
#define REVOKES_EVENTS	__same_type(perf_pmu_unregister(NULL), int)

static int revoke_set(const char *val, const struct kernel_param *kp)
{
	bool revoke;
	size_t p;
	int err;

	err = kstrtobool(val, &revoke);
	if (err)
		return err;
	if (!REVOKES_EVENTS)
		return -EOPNOTSUPP;

	for (p = 0; revoke && p < ARRAY_SIZE(test_pmus); p++)
		test_pmu_revoke(&test_pmus[p]);
	return 0;
}

static const struct kernel_param_ops revoke_ops = {
	.set	= revoke_set,
};

module_param_cb(revoke, &revoke_ops, NULL, 0200);
MODULE_PARM_DESC(revoke, "write 1: unregister the PMUs, although they have events");

static int __init test_pmu_module_init(void)
{
	size_t p;
	int err;

	if (!find_functions())
		return -ENOENT;

	for (p = 0; p < ARRAY_SIZE(test_pmus); p++) {
		err = test_pmu_register(&test_pmus[p]);
		if (err)
			goto err_pmus;
	}
	err = misc_register(&test_dev);
	if (err)
		goto err_pmus;
	return 0;

err_pmus:
	while (p--)
		test_pmu_unregister(&test_pmus[p]);
	return err;
}
module_init(test_pmu_module_init);

static void __exit test_pmu_module_exit(void)
{
	size_t p = ARRAY_SIZE(test_pmus);

	misc_deregister(&test_dev);
	while (p--)
		test_pmu_unregister(&test_pmus[p]);
}
module_exit(test_pmu_module_exit);

MODULE_DESCRIPTION("PMUs with per-task data, for tests");
MODULE_LICENSE("GPL");
