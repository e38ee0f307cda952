/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data for each thread of the machine when a system-wide event is opened: what
 * perf_test_pmu.ko compares the kernel's way with, for the benchmark alone
 *
 * Opening the first event walks over all threads with eager_sem held for writing, and
 * gives data to each. Closing the last one walks again and takes it away.
 *
 *   EAGER_RESTART	The order of Linux 6.16: memory is allocated outside of the RCU
 *			read side, and the walk then begins again at the first thread. So
 *			does the walk that frees. A task that exits waits for eager_sem.
 *   EAGER_ONE_WALK	What remains once this is mended: the walk allocates as it goes,
 *			and goes on. A task that exits takes no lock.
 *
 * The objects are those of the kernel, in task_struct::perf_ctx_data. No event may ask the
 * kernel for data at the same time or in the second before, after which its hooks are off.
 * Kernel threads get no data here, and children none at fork(): both would cost more.
 *
 * A task gives its data back at exit if it has /dev/perf_test_pmu open. What those without
 * it leave behind is lost.
 */
#ifndef _EAGER_DATA_H
#define _EAGER_DATA_H

#include <linux/percpu-rwsem.h>
#include <linux/perf_event.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

enum eager_mode {
	EAGER_OFF,
	EAGER_RESTART,
	EAGER_ONE_WALK,
};

DEFINE_STATIC_PERCPU_RWSEM(eager_sem);

static enum eager_mode eager_mode;
static unsigned int eager_users;

static void eager_free(struct rcu_head *rcu)
{
	struct perf_ctx_data *cd = container_of(rcu, struct perf_ctx_data, rcu);

	kmem_cache_free(cd->cache, cd);
}

static void eager_detach_task(struct task_struct *task)
{
	struct perf_ctx_data *cd;

	cd = unrcu_pointer(xchg(&task->perf_ctx_data, NULL));
	if (perf_ctx_data_untag(cd))
		call_rcu(&cd->rcu, eager_free);
}

static bool eager_attach_task(struct pmu *pmu, struct task_struct *task, gfp_t gfp)
{
	struct perf_ctx_data *cd = kmem_cache_zalloc(pmu->task_ctx_cache, gfp | __GFP_ACCOUNT);

	if (!cd)
		return false;
	cd->data = (void *)cd + pmu->task_ctx_head;
	cd->cache = pmu->task_ctx_cache;
	cd->task = task;
	cd->embedded = true;
	hlist_add_fake(&cd->entry);
	xchg(&task->perf_ctx_data, RCU_INITIALIZER(cd));
	/* It did not see the data, or gives it back itself. */
	if (task->flags & PF_EXITING)
		eager_detach_task(task);
	return true;
}

static bool eager_has(struct task_struct *task)
{
	return perf_ctx_data_untag(rcu_access_pointer(task->perf_ctx_data));
}

/* The next thread that @attach is to give data to, or that is to lose it; with a reference. */
static struct task_struct *eager_walk(struct pmu *pmu, bool attach)
{
	struct task_struct *g, *t;

	guard(rcu)();
	for_each_process_thread(g, t) {
		if (t->flags & PF_KTHREAD || eager_has(t) == attach)
			continue;
		/* It may have been in eager_exit(). One that still has data may not. */
		if (attach && t->flags & PF_EXITING)
			continue;
		if (eager_mode == EAGER_ONE_WALK) {
			if (!attach)
				eager_detach_task(t);
			if (!attach || eager_attach_task(pmu, t, GFP_NOWAIT | __GFP_NOWARN))
				continue;
		}
		return get_task_struct(t);
	}
	return NULL;
}

static void eager_detach(struct pmu *pmu)
{
	struct task_struct *task;

	while ((task = eager_walk(pmu, false))) {
		eager_detach_task(task);
		put_task_struct(task);
	}
}

static int eager_attach(struct pmu *pmu)
{
	struct task_struct *task;
	bool done = true;

	while (done && (task = eager_walk(pmu, true))) {
		done = eager_attach_task(pmu, task, GFP_KERNEL);
		put_task_struct(task);
	}
	if (done)
		return 0;
	eager_detach(pmu);
	return -ENOMEM;
}

static int eager_get(struct pmu *pmu, enum eager_mode mode)
{
	int err = 0;

	/* Only these objects have room for what is the kernel's. */
	if (!pmu->task_ctx_head)
		return -EOPNOTSUPP;
	percpu_down_write(&eager_sem);
	if (!eager_users) {
		WRITE_ONCE(eager_mode, mode);
		err = eager_attach(pmu);
	}
	eager_users += !err;
	percpu_up_write(&eager_sem);
	return err;
}

static void eager_put(struct pmu *pmu)
{
	percpu_down_write(&eager_sem);
	if (!--eager_users) {
		eager_detach(pmu);
		WRITE_ONCE(eager_mode, EAGER_OFF);
	}
	percpu_up_write(&eager_sem);
}

static void eager_exit(struct task_struct *task)
{
	bool wait = READ_ONCE(eager_mode) == EAGER_RESTART;

	if (wait)
		percpu_down_read(&eager_sem);
	if (READ_ONCE(eager_mode) != EAGER_OFF)
		eager_detach_task(task);
	if (wait)
		percpu_up_read(&eager_sem);
}

#endif /* _EAGER_DATA_H */
