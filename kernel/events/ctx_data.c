// SPDX-License-Identifier: GPL-2.0
/*
 * Data that a PMU keeps for each task
 *
 * Some PMUs have state that belongs to the task which runs: the call stack in
 * Intel's last branch records. It is saved when a task is scheduled out and
 * restored when it is scheduled in, by pmu::sched_task(). Where to is the subject
 * of this file: task_struct::perf_ctx_data, whichever context the event is in.
 *
 * An event whose pmu::event_init() sets PERF_ATTACH_TASK_DATA wants data. There
 * are two kinds:
 *
 *   - a per-task event wants it for its target. It is allocated when the event is
 *     made (for inherited events: in fork()), or the event is not made.
 *
 *   - a system-wide event (of a CPU, or of a cgroup on a CPU) wants it for all
 *     tasks. To walk and allocate for every thread would cost megabytes and
 *     milliseconds, most of it for threads that sleep, and fork() and exit() would
 *     have to wait for it. So it only raises a flag. A task without data that is
 *     scheduled in then gets a task_work, and allocates on its way to user space.
 *     Cost and memory follow the tasks that run, not those that exist.
 *
 * Until a task has been to user space once it has no data: PMUs must take NULL.
 *
 *
 * States of a task
 * ================
 *
 *            scheduled in, while                the work ran; no memory
 *            system-wide events exist    +--------------------------------+
 *                                        v                                |
 *     NONE -------------------------> PENDING                             |
 *      | ^  (a user thread, not        |  |   the work runs               |
 *      | |   exiting, no back-off)     |  +---------------> allocates ----+
 *      | |                             |                        |
 *      | |     the work runs: it exits |                        |
 *      | +-----------------------------+                        |
 *      |                                                        v
 *      | a per-task event is made for it                       HAS
 *      +------------------------------------------------------> |
 *                                                               |
 *        it exits; its last reference goes; its fork failed;    |
 *     NONE <----------------------------------------------------+
 *        the last system-wide event goes, and it is not pinned;
 *        the last event of all goes
 *
 * NONE	   perf_ctx_data is NULL, perf_ctx_work.func is NULL
 * PENDING perf_ctx_work is queued, or runs: perf_ctx_work.func is not NULL. After
 *	   a failed allocation the task is in NONE, and is not queued again before
 *	   perf_ctx_retry; the delay doubles from 1 to 64 s.
 * HAS	   perf_ctx_data is set, and it is on a list
 *
 * A per-task event can give a PENDING task its data. The work then finds it.
 *
 *
 * Who frees
 * =========
 *
 * Nothing counts references on a task's data. Once made, it stays until the task
 * or all that may want it is gone. What is counted is events:
 *
 *   nr_users	events that want data, without inherited ones, whose parents live
 *		longer than they do
 *   nr_global	those of them that are system-wide
 *
 * When nr_global becomes 0, data that no per-task event ever asked for (not
 * perf_ctx_data::pinned) is freed; when nr_users becomes 0, all data is. All data
 * is on lists, one for each CPU on which it was made, so that this takes as long
 * as there is data, however many tasks there are.
 *
 * A count per task would be of no use. Two tasks with cloned contexts swap them
 * (perf_event_context_sched_out()), so that an event whose target is A comes to
 * serve B, and goes when B exits; were it to drop A's count then, A would lose its
 * data with the other event still running. A count per task would free the data of
 * a task whose per-task event was closed while others go on. What it holds until
 * then is one object for each task that was a target, charged to who asked.
 *
 * Whoever takes data off a task holds its list's lock, under which alone it is
 * valid that perf_ctx_data::task exists: __put_task_struct() takes data that is
 * left off, under that lock, before the task is freed. So a per-task event may be
 * made for a task that exits, or has exited; it has a reference on the task. Data
 * is freed by RCU: sched_task() runs with interrupts off.
 *
 *
 * One cache
 * =========
 *
 * task_struct has one pointer, so it can serve one kind of objects. The first
 * event that wants data claims it for its PMU's task_ctx_cache, until nr_users is
 * 0. Meanwhile events of PMUs with another cache are refused, with EBUSY: neither
 * can ever be given the other's memory. The callback of a PMU whose events want no
 * data can find some of another PMU, and tells it by its cache: perf_ctx_data_of().
 * PMUs that share one cache (those of a hybrid CPU) share the data. No machine has
 * two PMUs with different ones.
 *
 * Data is made in one piece, if the PMU left room for struct perf_ctx_data in
 * front of its own (pmu::task_ctx_head); otherwise in two.
 *
 * A PMU that is a module is pinned by its events. The last of them takes all data
 * off all tasks before it lets go of the module. Callbacks of call_rcu() may still
 * be due: module_exit() calls rcu_barrier() before kmem_cache_destroy().
 *
 *
 * Locking
 * =======
 *
 * perf_ctx_data_mutex	  the claim: cache, head, nr_users, nr_global. Freeing many.
 * perf_ctx_data_sem	  read: a task's work, which looks at the claim and allocates.
 *			  It only tries: who returns to user space never waits.
 *			  Write: the last system-wide event, with nr_global at 0,
 *			  to wait for the works that saw it at 1.
 * perf_ctx_data_list::lock  a list, perf_ctx_data of the tasks whose data is on it,
 *			  perf_ctx_data::pinned. Interrupts off.
 *
 * Taken in this order, inside of perf_event_context::mutex and mmap_lock, since
 * an event can go under both. A per-task event needs no perf_ctx_data_sem to
 * allocate: it is counted in nr_users itself.
 *
 * The scheduler's hook takes no lock. It and the work are of one task, and never
 * run at the same time; the work can be preempted, when the hook sees PENDING.
 *
 * Two static keys guard the hooks: perf_ctx_data_global the one of the scheduler,
 * perf_ctx_data_used those at a task's end. They are on before the first data is
 * made, and go off a second after the last is freed, so that tools that open and
 * close events do not patch the kernel's text each time.
 *
 *
 * Exits, forks, execs
 * ===================
 *
 * exit(): perf_event_exit_task() runs after PF_EXITING is set, before or after the
 * last task works, as the version has it. It takes the data off. Works look at
 * PF_EXITING, and do not allocate any more, nor does the hook queue one.
 *
 * exec() of a set-uid program also calls perf_event_exit_task(), for a task that
 * lives on. It is not PF_EXITING, and keeps its data. The events that could read it
 * without the right to are gone.
 *
 * fork(): dup_task_struct() copied pointer and work of the parent; they are reset in
 * perf_event_init_task(). A fork that fails before it frees the child without
 * __put_task_struct(); one that fails later calls perf_event_free_task().
 *
 * Kernel threads, idle tasks and user workers (io_uring, vhost) never return to
 * user space, and get no work.
 *
 * Memory for a watched task is charged to its cgroup, and must not hurt it:
 * without retries (which also means without the OOM killer), without a warning.
 *
 * Figures are in /sys/kernel/perf_ctx_data/: tasks, bytes, failures.
 */
#include <linux/kobject.h>
#include <linux/perf_event.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/task_work.h>

/* How long a task without memory waits before it tries again */
#define PERF_CTX_DATA_DELAY	HZ
#define PERF_CTX_DATA_DELAY_MAX	(64 * HZ)

/* How many are freed under a lock */
#define PERF_CTX_DATA_BATCH	32

#define PERF_CTX_DATA_GFP_LAZY	(GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

DEFINE_STATIC_KEY_DEFERRED_FALSE(perf_ctx_data_used, HZ);
DEFINE_STATIC_KEY_DEFERRED_FALSE(perf_ctx_data_global, HZ);

struct perf_ctx_data_list {
	raw_spinlock_t		lock;
	struct hlist_head	head;
	unsigned long		nr;
};

static DEFINE_PER_CPU(struct perf_ctx_data_list, perf_ctx_data_lists) = {
	.lock	= __RAW_SPIN_LOCK_UNLOCKED(perf_ctx_data_lists.lock),
};

static DEFINE_MUTEX(perf_ctx_data_mutex);
static DECLARE_RWSEM(perf_ctx_data_sem);

static struct {
	struct kmem_cache	*cache;
	unsigned int		head;
	unsigned int		nr_users;
	unsigned int		nr_global;
} perf_ctx_data_claim;

static atomic_long_t perf_ctx_data_failures;

static void perf_ctx_data_free(struct perf_ctx_data *cd)
{
	if (cd->embedded) {
		kmem_cache_free(cd->cache, cd);
		return;
	}
	if (cd->data)
		kmem_cache_free(cd->cache, cd->data);
	kfree(cd);
}

static void perf_ctx_data_free_rcu(struct rcu_head *rcu)
{
	perf_ctx_data_free(container_of(rcu, struct perf_ctx_data, rcu));
}

static struct perf_ctx_data *perf_ctx_data_alloc(gfp_t gfp)
{
	struct kmem_cache *cache = perf_ctx_data_claim.cache;
	unsigned int head = perf_ctx_data_claim.head;
	struct perf_ctx_data *cd;

	if (head)
		cd = kmem_cache_zalloc(cache, gfp);
	else
		cd = kzalloc(sizeof(*cd), gfp);
	if (!cd)
		return NULL;

	cd->cache = cache;
	cd->embedded = head;
	cd->data = head ? (void *)cd + head : kmem_cache_zalloc(cache, gfp);
	if (!cd->data) {
		perf_ctx_data_free(cd);
		return NULL;
	}
	return cd;
}

/* Take data off its task. It was on the list, or on its way from there. */
static void perf_ctx_data_unlink(struct perf_ctx_data_list *list, struct perf_ctx_data *cd)
{
	lockdep_assert_held(&list->lock);

	RCU_INIT_POINTER(cd->task->perf_ctx_data, NULL);
	hlist_del(&cd->entry);
	WRITE_ONCE(list->nr, list->nr - 1);
	call_rcu(&cd->rcu, perf_ctx_data_free_rcu);
}

/* Give @task its data. False: it has some already. */
static bool perf_ctx_data_link(struct task_struct *task, struct perf_ctx_data *cd)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *old;
	unsigned long flags;

	local_irq_save(flags);
	list = this_cpu_ptr(&perf_ctx_data_lists);
	cd->cpu = smp_processor_id();
	cd->task = task;

	/* Who finds it before it is on the list has to wait for the lock. */
	raw_spin_lock(&list->lock);
	old = unrcu_pointer(cmpxchg(&task->perf_ctx_data, NULL, RCU_INITIALIZER(cd)));
	if (!old) {
		hlist_add_head(&cd->entry, &list->head);
		WRITE_ONCE(list->nr, list->nr + 1);
	}
	raw_spin_unlock(&list->lock);
	local_irq_restore(flags);

	return !old;
}

/* Does @task have data? For @pin, does it have data that will stay? */
static bool perf_ctx_data_has(struct task_struct *task, bool pin)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *cd;
	unsigned long flags;
	bool has;

	rcu_read_lock();
	cd = rcu_dereference(task->perf_ctx_data);
	has = cd;
	if (cd && pin) {
		list = per_cpu_ptr(&perf_ctx_data_lists, cd->cpu);
		raw_spin_lock_irqsave(&list->lock, flags);
		has = rcu_access_pointer(task->perf_ctx_data) == cd;
		if (has)
			cd->pinned = true;
		raw_spin_unlock_irqrestore(&list->lock, flags);
	}
	rcu_read_unlock();

	return has;
}

/* Take off what data @task has. */
static void perf_ctx_data_remove(struct task_struct *task)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *cd;
	unsigned long flags;

	rcu_read_lock();
	cd = rcu_dereference(task->perf_ctx_data);
	if (cd) {
		list = per_cpu_ptr(&perf_ctx_data_lists, cd->cpu);
		raw_spin_lock_irqsave(&list->lock, flags);
		if (rcu_access_pointer(task->perf_ctx_data) == cd)
			perf_ctx_data_unlink(list, cd);
		raw_spin_unlock_irqrestore(&list->lock, flags);
	}
	rcu_read_unlock();
}

/*
 * Let @task have data. The caller sees to it that the claim stays: by an event
 * of its own that is counted in nr_users, or by perf_ctx_data_sem.
 */
static int perf_ctx_data_populate(struct task_struct *task, gfp_t gfp, bool pin)
{
	struct perf_ctx_data *cd = NULL;

	while (!perf_ctx_data_has(task, pin)) {
		if (!cd)
			cd = perf_ctx_data_alloc(gfp);
		if (!cd) {
			atomic_long_inc(&perf_ctx_data_failures);
			return -ENOMEM;
		}
		cd->pinned = pin;
		if (perf_ctx_data_link(task, cd))
			return 0;
	}
	if (cd)
		perf_ctx_data_free(cd);
	return 0;
}

/* The work of a task that was scheduled in without data. */
static void perf_ctx_data_work(struct callback_head *work)
{
	struct task_struct *task = container_of(work, struct task_struct, perf_ctx_work);
	int err = 0;

	if (!(task->flags & PF_EXITING) && down_read_trylock(&perf_ctx_data_sem)) {
		/* Pairs with smp_store_release() in perf_ctx_data_get(): the cache. */
		if (smp_load_acquire(&perf_ctx_data_claim.nr_global))
			err = perf_ctx_data_populate(task, PERF_CTX_DATA_GFP_LAZY, false);
		up_read(&perf_ctx_data_sem);
	}

	if (err) {
		task->perf_ctx_delay = clamp_t(unsigned int, 2 * task->perf_ctx_delay,
					       PERF_CTX_DATA_DELAY, PERF_CTX_DATA_DELAY_MAX);
		task->perf_ctx_retry = jiffies + task->perf_ctx_delay;
	} else {
		task->perf_ctx_delay = 0;
	}

	/* From here on the scheduler may queue it again. */
	WRITE_ONCE(work->func, NULL);
}

/* The slow part of perf_ctx_data_sched_in(): @task, which is current, has no data. */
void __perf_ctx_data_sched_in(struct task_struct *task)
{
	struct callback_head *work = &task->perf_ctx_work;

	lockdep_assert_irqs_disabled();

	if (task->flags & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return;
	if (READ_ONCE(work->func) || !READ_ONCE(perf_ctx_data_claim.nr_global))
		return;
	/* Without a delay there is no time to retry: 0 can be in the future. */
	if (task->perf_ctx_delay && time_before(jiffies, task->perf_ctx_retry))
		return;

	init_task_work(work, perf_ctx_data_work);
	if (task_work_add(task, work, TWA_RESUME | TWAF_NO_ALLOC))
		work->func = NULL;
}

/* The slow part of perf_ctx_data_exit_task(): exec() is no end of a task. */
void __perf_ctx_data_exit_task(struct task_struct *task)
{
	if (task->flags & PF_EXITING)
		perf_ctx_data_remove(task);
}

/* The slow part of perf_ctx_data_put_task(). */
void __perf_ctx_data_put_task(struct task_struct *task)
{
	perf_ctx_data_remove(task);
}

/* Free the data on a list, but what is pinned, unless it is @all. */
static void perf_ctx_data_free_list(struct perf_ctx_data_list *list, bool all)
{
	struct perf_ctx_data *cd;
	unsigned int nr = 0;
	HLIST_HEAD(todo);

	raw_spin_lock_irq(&list->lock);
	hlist_move_list(&list->head, &todo);
	while (!hlist_empty(&todo)) {
		cd = hlist_entry(todo.first, struct perf_ctx_data, entry);
		if (all || !cd->pinned) {
			perf_ctx_data_unlink(list, cd);
		} else {
			hlist_del(&cd->entry);
			hlist_add_head(&cd->entry, &list->head);
		}

		/* Tasks that exit meanwhile take theirs off @todo. */
		if (!(++nr % PERF_CTX_DATA_BATCH)) {
			raw_spin_unlock_irq(&list->lock);
			cond_resched();
			raw_spin_lock_irq(&list->lock);
		}
	}
	raw_spin_unlock_irq(&list->lock);
}

/* Count an event that wants data; the first one says of which cache. */
static int perf_ctx_data_get(struct pmu *pmu, bool global)
{
	guard(mutex)(&perf_ctx_data_mutex);

	if (!perf_ctx_data_claim.nr_users) {
		perf_ctx_data_claim.cache = pmu->task_ctx_cache;
		perf_ctx_data_claim.head = pmu->task_ctx_head;
	} else if (perf_ctx_data_claim.cache != pmu->task_ctx_cache) {
		return -EBUSY;
	}
	perf_ctx_data_claim.nr_users++;
	if (global) {
		/* Pairs with smp_load_acquire() in perf_ctx_data_work(). */
		smp_store_release(&perf_ctx_data_claim.nr_global,
				  perf_ctx_data_claim.nr_global + 1);
	}
	return 0;
}

static void perf_ctx_data_put(bool global)
{
	bool all, last_global = false;
	int cpu;

	guard(mutex)(&perf_ctx_data_mutex);

	all = !--perf_ctx_data_claim.nr_users;
	if (global) {
		last_global = perf_ctx_data_claim.nr_global == 1;
		WRITE_ONCE(perf_ctx_data_claim.nr_global, perf_ctx_data_claim.nr_global - 1);
	}
	if (last_global) {
		/* Works that begin from now on see 0. Wait for the others. */
		down_write(&perf_ctx_data_sem);
		up_write(&perf_ctx_data_sem);
	}
	if (all || last_global) {
		for_each_possible_cpu(cpu)
			perf_ctx_data_free_list(per_cpu_ptr(&perf_ctx_data_lists, cpu), all);
	}
}

static void perf_ctx_data_keys_inc(bool global)
{
	static_branch_deferred_inc(&perf_ctx_data_used);
	if (global)
		static_branch_deferred_inc(&perf_ctx_data_global);
}

static void perf_ctx_data_keys_dec(bool global)
{
	if (global)
		static_branch_slow_dec_deferred(&perf_ctx_data_global);
	static_branch_slow_dec_deferred(&perf_ctx_data_used);
}

/*
 * An event is made. Where it wants data and that fails, it goes by __free_event(),
 * which undoes what was done. A PMU without a cache has no data to keep, whatever
 * its event_init() said.
 */
int perf_ctx_data_attach(struct perf_event *event)
{
	struct task_struct *task = event->hw.target;
	int err;

	if (!(event->attach_state & PERF_ATTACH_TASK_DATA) || !event->pmu->task_ctx_cache)
		return 0;

	/* An inherited event is covered by its parent. */
	if (!event->parent) {
		perf_ctx_data_keys_inc(!task);
		err = perf_ctx_data_get(event->pmu, !task);
		if (err) {
			perf_ctx_data_keys_dec(!task);
			return err;
		}
		event->attach_state |= PERF_ATTACH_CTX_DATA;
	}
	if (!task)
		return 0;

	return perf_ctx_data_populate(task, GFP_KERNEL_ACCOUNT, true);
}

/*
 * An event goes. PERF_ATTACH_TASK_DATA says only that it wanted data; it may have
 * failed before it was counted, and must not drop the count of another one.
 */
void perf_ctx_data_detach(struct perf_event *event)
{
	bool global = !event->hw.target;

	if (!(event->attach_state & PERF_ATTACH_CTX_DATA))
		return;

	event->attach_state &= ~PERF_ATTACH_CTX_DATA;
	perf_ctx_data_put(global);
	perf_ctx_data_keys_dec(global);
}

static unsigned long perf_ctx_data_tasks(void)
{
	unsigned long nr = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(perf_ctx_data_lists, cpu).nr);
	return nr;
}

static ssize_t tasks_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", perf_ctx_data_tasks());
}

static struct kobj_attribute tasks_attr = __ATTR_RO(tasks);

static ssize_t bytes_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	unsigned long bytes = 0;

	guard(mutex)(&perf_ctx_data_mutex);
	if (perf_ctx_data_claim.nr_users) {
		bytes = kmem_cache_size(perf_ctx_data_claim.cache);
		if (!perf_ctx_data_claim.head)
			bytes += sizeof(struct perf_ctx_data);
	}
	return sysfs_emit(buf, "%lu\n", bytes * perf_ctx_data_tasks());
}

static struct kobj_attribute bytes_attr = __ATTR_RO(bytes);

static ssize_t failures_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&perf_ctx_data_failures));
}

static struct kobj_attribute failures_attr = __ATTR_RO(failures);

static struct attribute *perf_ctx_data_attrs[] = {
	&tasks_attr.attr,
	&bytes_attr.attr,
	&failures_attr.attr,
	NULL
};

static const struct attribute_group perf_ctx_data_group = {
	.attrs	= perf_ctx_data_attrs,
};

static int __init perf_ctx_data_sysfs_init(void)
{
	struct kobject *kobj;
	int err;

	if (!IS_ENABLED(CONFIG_SYSFS))
		return 0;

	kobj = kobject_create_and_add("perf_ctx_data", kernel_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_group(kobj, &perf_ctx_data_group);
	if (err)
		kobject_put(kobj);
	return err;
}
device_initcall(perf_ctx_data_sysfs_init);
