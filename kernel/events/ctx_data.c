// SPDX-License-Identifier: GPL-2.0
/*
 * Per-task PMU data
 *
 * Some PMUs have state that belongs to the running task, such as the call stack in
 * Intel's last branch records. pmu::sched_task() saves it when a task is scheduled
 * out and restores it when the task is scheduled in. This file manages the memory
 * for it, task_struct::perf_ctx_data, which does not depend on the context of the
 * event.
 *
 * An event needs data if its pmu::event_init() sets PERF_ATTACH_TASK_DATA. There are
 * two kinds of events:
 *
 *   - A per-task event needs data for its target. The data is allocated when the
 *     event is created (for inherited events: in fork()). If this fails, the event is
 *     not created.
 *
 *   - A system-wide event (of a CPU, or of a cgroup on a CPU) needs data for all tasks
 *     in its scope: those that run on its CPU, and belong to its cgroup, if it has one.
 *     Walking all threads and allocating for each of them would take megabytes and
 *     milliseconds, most of it for threads that sleep, and would block fork() and
 *     exit(). So creating the event only notes its scope (ctx_data_scope.c). A task in
 *     the scope and without data that is scheduled in then gets a task_work, which
 *     allocates when the task returns to user space. Time and memory thus depend on the
 *     number of tasks that run, not on the number that exist.
 *
 * A task has no data until its first return to user space, so PMUs must handle NULL.
 *
 *
 * States of a task
 * ================
 *
 *            scheduled in, and in the            the work ran; no memory
 *            scope of a system-wide event   +-------------------------------+
 *            and, after BACKOFF, it is time v                               |
 *     NONE, BACKOFF --------------------> PENDING                           |
 *      | ^   (a user thread,               |  |   the work runs             |
 *      | |   not exiting)                  |  +------------> allocates -----+--> BACKOFF
 *      | |                                 |                    |
 *      | |  the work runs: exiting, or     |                    |
 *      | |  no longer in the scope         |                    |
 *      | +---------------------------------+                    |
 *      |                                                        v
 *      | a per-task event is created for it                    HAS
 *      +------------------------------------------------------> |
 *                                                               |
 *        exit; last reference dropped; fork failed;             |
 *     NONE <----------------------------------------------------+
 *        not pinned, and the last system-wide event was closed, or the task
 *        is no longer in the scope of one; last event closed
 *
 * The state is in task_struct::perf_ctx_data, a tagged pointer:
 *
 * NONE	   NULL
 * PENDING a struct perf_ctx_node, whose work is queued or running, see ctx_data_node.c
 * BACKOFF an allocation failed: the time of the next attempt, a multiple of 64 jiffies,
 *	   and below it the delay that led to it. The delay doubles from 1 to 64 s. The task
 *	   is not queued before that time.
 * HAS	   a struct perf_ctx_data, which is on a list
 *
 * A PENDING task that gets data for a per-task event is HAS at once. Its node belongs to
 * the work, which finds that the pointer is no longer to the node. All changes are made by
 * cmpxchg(), but for HAS to NONE, which is made with the lock of the list held.
 *
 *
 * Freeing
 * =======
 *
 * There is no reference count per task. Once allocated, the data stays until the task
 * exits or no event needs it. Instead, events are counted:
 *
 *   nr_users	events that need data. Inherited events are not counted, because their
 *		parents live longer.
 *   nr_global	the system-wide events among them
 *
 * When nr_global drops to 0, all data that was not requested by a per-task event
 * (perf_ctx_data::pinned is not set) is freed. When nr_users drops to 0, all data is
 * freed. The data is on lists, one for each CPU on which it was allocated, so the time
 * depends on the amount of data, not on the number of tasks.
 *
 * While system-wide events exist, but not on all CPUs or not for all tasks, a task can
 * leave their scope: it moves to another CPU or cgroup, or some of the events are closed.
 * A work goes through the lists every PERF_CTX_DATA_TRIM and frees what it finds out of
 * scope twice in a row. The scope of a task that sleeps is that of its last CPU: it needs
 * its data when it wakes up.
 *
 * A count per task would not work. Two tasks with cloned contexts swap them
 * (perf_event_context_sched_out()), so an event whose target is A can come to serve B,
 * and is closed when B exits. If it dropped A's count then, A would lose its data while
 * the other event is still running. The cost of having no count is that the data of a
 * task stays after its per-task event was closed, while other events exist: one object
 * for each task that was a target, charged to the task that created the event.
 *
 * The data of a task is removed under the lock of its list. perf_ctx_data::task is only
 * valid under this lock: __put_task_struct() removes remaining data under the lock before
 * the task is freed. A per-task event can thus be created for a task that is exiting or
 * has exited, because it holds a reference on the task. Data is freed after an RCU grace
 * period; sched_task() runs with interrupts disabled.
 *
 *
 * One cache
 * =========
 *
 * task_struct has one pointer, so it can only hold one type of objects. The first event
 * that needs data claims the pointer for the task_ctx_cache of its PMU, until nr_users
 * is 0. Until then, events of PMUs with another cache are refused with EBUSY, so a PMU
 * never gets memory of another one. The callback of a PMU whose events need no data can
 * find data of another PMU. perf_ctx_data_of() compares the cache to detect this. PMUs
 * with the same cache (those of a hybrid CPU) share the data. No machine has two PMUs
 * with different caches.
 *
 * If the PMU has reserved space for struct perf_ctx_data before its own data
 * (pmu::task_ctx_head), both are allocated as one object, otherwise as two.
 *
 * The events of a PMU pin its module. Closing the last one removes the data of all tasks
 * before it drops the reference to the module. Callbacks of call_rcu() may still be
 * pending, so module_exit() must call rcu_barrier() before kmem_cache_destroy().
 *
 * Since Linux 6.15 a PMU can be unregistered while its events are open: they are revoked,
 * and stay without a PMU until they are closed. Revoking an event drops its reference to the
 * module, so it calls perf_ctx_data_detach() before. Closing it finds nothing to detach.
 *
 *
 * Locking
 * =======
 *
 * perf_ctx_data_mutex	  protects the claim: cache, head, nr_users, nr_global; the
 *			  scopes; and freeing all data.
 * perf_ctx_data_sem	  read: the work of a task, while it reads the claim, allocates
 *			  and returns its node; and filling the pools. The work of a task
 *			  uses trylock, so the return to user space never blocks. write:
 *			  closing the last system-wide event, after nr_global was set to
 *			  0, to wait for those that saw it at 1.
 * perf_ctx_data_list::lock  protects a list, perf_ctx_data of the tasks whose data is on
 *			  it, perf_ctx_data::pinned and ::stale. Interrupts are disabled.
 *
 * They are taken in this order, inside perf_event_context::mutex and mmap_lock, because
 * an event can be closed under both. A per-task event allocates without
 * perf_ctx_data_sem, because it is counted in nr_users itself.
 *
 * The scheduler hook takes no lock. The hook and the work run in the same task and never
 * at the same time. If the work is preempted, the hook sees PENDING. The hook sees the
 * scopes under RCU, as interrupts are disabled.
 *
 * Two static keys guard the hooks: perf_ctx_data_global the hook of the scheduler, and
 * perf_ctx_data_used those at the end of a task. They are enabled before the first data
 * is allocated, and disabled one second after the last data was freed, so that tools
 * that open and close events do not patch the kernel text each time.
 *
 *
 * Exit, fork and exec
 * ===================
 *
 * exit(): perf_event_exit_task() runs after PF_EXITING was set, and before or after the
 * last task works, depending on the kernel version. It removes the data. Works and the
 * hook check PF_EXITING, and then neither allocate nor queue a work.
 *
 * exec() of a set-uid program also calls perf_event_exit_task(), but the task continues.
 * PF_EXITING is not set, and the task keeps its data. Events whose owner may no longer
 * read the data have been removed.
 *
 * fork(): dup_task_struct() copies the pointer of the parent. perf_event_init_task()
 * resets it. If fork fails before that, the child is freed without __put_task_struct();
 * if it fails later, perf_event_free_task() is called.
 *
 * Kernel threads, idle tasks and user workers (io_uring, vhost) never return to user
 * space, and no work is queued for them.
 *
 * Data for a system-wide event is charged to the cgroup of the task and must not harm
 * it: the allocation does not retry (and so does not invoke the OOM killer) or warn.
 *
 * Statistics are in /sys/kernel/perf_ctx_data/, see ctx_data_sysfs.c.
 */
#include <linux/perf_event.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include "ctx_data.h"

/* Delays before a failed allocation is retried: from 1 to 2^6 seconds */
#define PERF_CTX_DATA_DELAYS	7

/*
 * The time in a task's pointer: jiffies in units of 64, above the delay. No bit of jiffies is
 * lost at the upper end: the difference of two times is right when jiffies wrap around.
 */
#define PERF_CTX_DATA_DELAY_BIT	2
#define PERF_CTX_DATA_TIME_BIT	6
#define PERF_CTX_DATA_TIME_MASK	(~(BIT(PERF_CTX_DATA_TIME_BIT) - 1))
#define PERF_CTX_DATA_DELAY_MASK (BIT(PERF_CTX_DATA_TIME_BIT) - BIT(PERF_CTX_DATA_DELAY_BIT))

/* Interval at which data that is out of scope is searched for */
#define PERF_CTX_DATA_TRIM	(5 * HZ)

/* Number of objects to remove with the lock held */
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

static void perf_ctx_data_fill(struct work_struct *work);
static void perf_ctx_data_trim(struct work_struct *work);

static DECLARE_WORK(perf_ctx_data_fill_work, perf_ctx_data_fill);
static DECLARE_DEFERRABLE_WORK(perf_ctx_data_trim_work, perf_ctx_data_trim);

/* Tagged pointers */

static struct perf_ctx_data *perf_ctx_data_pending(struct perf_ctx_node *node)
{
	return (void *)((unsigned long)node | PERF_CTX_DATA_PENDING);
}

static bool perf_ctx_data_is_pending(struct perf_ctx_data *cd)
{
	return (unsigned long)cd & PERF_CTX_DATA_PENDING;
}

static struct perf_ctx_data *perf_ctx_data_backoff(unsigned int delay)
{
	/* One unit more, because the current one has already begun. */
	unsigned long until = jiffies + (HZ << delay) + BIT(PERF_CTX_DATA_TIME_BIT);

	return (void *)((until & PERF_CTX_DATA_TIME_MASK) |
			delay << PERF_CTX_DATA_DELAY_BIT | PERF_CTX_DATA_BACKOFF);
}

static bool perf_ctx_data_is_backoff(struct perf_ctx_data *cd)
{
	return (unsigned long)cd & PERF_CTX_DATA_BACKOFF;
}

static bool perf_ctx_data_backoff_is_over(struct perf_ctx_data *cd)
{
	return time_after_eq(jiffies, (unsigned long)cd & PERF_CTX_DATA_TIME_MASK);
}

static unsigned int perf_ctx_data_next_delay(struct perf_ctx_data *cd)
{
	unsigned int delay;

	if (!perf_ctx_data_is_backoff(cd))
		return 0;
	delay = ((unsigned long)cd & PERF_CTX_DATA_DELAY_MASK) >> PERF_CTX_DATA_DELAY_BIT;
	return min(delay + 1, PERF_CTX_DATA_DELAYS - 1);
}

/* The pointer of a task, with its tag */
static struct perf_ctx_data *perf_ctx_data_tagged(struct task_struct *task)
{
	return rcu_access_pointer(task->perf_ctx_data);
}

static bool perf_ctx_data_replace(struct task_struct *task, struct perf_ctx_data *old,
				  struct perf_ctx_data *new)
{
	return unrcu_pointer(cmpxchg(&task->perf_ctx_data, RCU_INITIALIZER(old),
				     RCU_INITIALIZER(new))) == old;
}

/* A pool is empty, though a system-wide event may need nodes. */
static void perf_ctx_data_fill(struct work_struct *work)
{
	guard(rwsem_read)(&perf_ctx_data_sem);
	if (READ_ONCE(perf_ctx_data_claim.nr_global))
		perf_ctx_nodes_refill();
}

/* Data */

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

/* Remove the data of a task; it is on the list or was just taken from it. */
static void perf_ctx_data_unlink(struct perf_ctx_data_list *list, struct perf_ctx_data *cd)
{
	lockdep_assert_held(&list->lock);

	RCU_INIT_POINTER(cd->task->perf_ctx_data, NULL);
	hlist_del(&cd->entry);
	WRITE_ONCE(list->nr, list->nr - 1);
	call_rcu(&cd->rcu, perf_ctx_data_free_rcu);
}

/* Set the data of @task. Return false if it already has data. */
static bool perf_ctx_data_link(struct task_struct *task, struct perf_ctx_data *cd)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *old;
	unsigned long flags;
	bool linked;

	local_irq_save(flags);
	list = this_cpu_ptr(&perf_ctx_data_lists);
	cd->cpu = smp_processor_id();
	cd->task = task;

	/* Others may find the data before it is on the list; they wait for the lock. */
	raw_spin_lock(&list->lock);
	do {
		old = perf_ctx_data_tagged(task);
		linked = !perf_ctx_data_untag(old);
	} while (linked && !perf_ctx_data_replace(task, old, cd));
	if (linked) {
		hlist_add_head(&cd->entry, &list->head);
		WRITE_ONCE(list->nr, list->nr + 1);
	}
	raw_spin_unlock(&list->lock);
	local_irq_restore(flags);

	return linked;
}

/* Return whether @task has data, and with @pin, data that is pinned. */
static bool perf_ctx_data_has(struct task_struct *task, bool pin)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *cd;
	unsigned long flags;
	bool has;

	rcu_read_lock();
	cd = perf_ctx_data_untag(rcu_dereference(task->perf_ctx_data));
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

/* Remove the data of @task, if any. */
static void perf_ctx_data_remove(struct task_struct *task)
{
	struct perf_ctx_data_list *list;
	struct perf_ctx_data *cd;
	unsigned long flags;

	rcu_read_lock();
	cd = perf_ctx_data_untag(rcu_dereference(task->perf_ctx_data));
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
 * Allocate data for @task. The caller must prevent changes of the claim, by an event
 * that is counted in nr_users or by perf_ctx_data_sem.
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

static bool perf_ctx_data_in_scope(struct task_struct *task)
{
	guard(rcu)();
	return perf_ctx_scope_has(task, task_cpu(task));
}

/* The task_work of a task that was scheduled in without data. */
static void perf_ctx_data_work(struct callback_head *work)
{
	struct perf_ctx_node *node = container_of(work, struct perf_ctx_node, work);
	struct task_struct *task = current;
	bool global = false;
	int err = 0;

	if (!down_read_trylock(&perf_ctx_data_sem)) {
		perf_ctx_data_replace(task, perf_ctx_data_pending(node), NULL);
		kfree(node);
		return;
	}

	/* Pairs with smp_store_release() in perf_ctx_data_get(): the cache. */
	global = smp_load_acquire(&perf_ctx_data_claim.nr_global);
	if (global && !(task->flags & PF_EXITING) && perf_ctx_data_in_scope(task))
		err = perf_ctx_data_populate(task, PERF_CTX_DATA_GFP_LAZY, false);

	/* If the task has data by now, its pointer is no longer to this node. */
	perf_ctx_data_replace(task, perf_ctx_data_pending(node),
			      err ? perf_ctx_data_backoff(node->delay) : NULL);
	/* From now on the scheduler hook may queue another node. */
	if (global)
		perf_ctx_node_return(node);
	else
		kfree(node);
	up_read(&perf_ctx_data_sem);
}

/* The slow path of perf_ctx_data_sched_in(): @task is current and has no data. */
void __perf_ctx_data_sched_in(struct task_struct *task)
{
	struct perf_ctx_data *old = perf_ctx_data_tagged(task);
	struct perf_ctx_node *node;

	lockdep_assert_irqs_disabled();

	/* The task may have been preempted while it changed its flags, but not these. */
	if (data_race(task->flags) & (PF_KTHREAD | PF_USER_WORKER | PF_EXITING))
		return;
	if (perf_ctx_data_is_pending(old) || !READ_ONCE(perf_ctx_data_claim.nr_global))
		return;
	if (perf_ctx_data_is_backoff(old) && !perf_ctx_data_backoff_is_over(old))
		return;
	if (!perf_ctx_scope_has(task, smp_processor_id()))
		return;

	node = perf_ctx_node_take();
	if (!node)
		return;
	node->delay = perf_ctx_data_next_delay(old);
	init_task_work(&node->work, perf_ctx_data_work);
	/* A per-task event may give it data right now. */
	if (perf_ctx_data_replace(task, old, perf_ctx_data_pending(node))) {
		if (!task_work_add(task, &node->work, TWA_RESUME | TWAF_NO_ALLOC))
			return;
		perf_ctx_data_replace(task, perf_ctx_data_pending(node), NULL);
	}
	perf_ctx_node_return(node);
}

/* The slow path of perf_ctx_data_exit_task(). After exec() the task continues. */
void __perf_ctx_data_exit_task(struct task_struct *task)
{
	if (task->flags & PF_EXITING)
		perf_ctx_data_remove(task);
}

/* The slow path of perf_ctx_data_put_task(). */
void __perf_ctx_data_put_task(struct task_struct *task)
{
	perf_ctx_data_remove(task);
}

enum perf_ctx_data_free {
	PERF_CTX_DATA_FREE_ALL,
	/* Data that no per-task event has requested */
	PERF_CTX_DATA_FREE_GLOBAL,
	/* Of these, data that was out of scope the last time, too */
	PERF_CTX_DATA_FREE_STALE,
};

static bool perf_ctx_data_is_needed(struct perf_ctx_data *cd, enum perf_ctx_data_free what)
{
	bool was_stale = cd->stale;

	switch (what) {
	case PERF_CTX_DATA_FREE_ALL:
		return false;
	case PERF_CTX_DATA_FREE_GLOBAL:
		return cd->pinned;
	case PERF_CTX_DATA_FREE_STALE:
		cd->stale = !cd->pinned && !perf_ctx_data_in_scope(cd->task);
		return !cd->stale || !was_stale;
	}
	return true;
}

/* Free data on a list. */
static void perf_ctx_data_free_list(struct perf_ctx_data_list *list, enum perf_ctx_data_free what)
{
	struct perf_ctx_data *cd;
	unsigned int nr = 0;
	HLIST_HEAD(todo);

	raw_spin_lock_irq(&list->lock);
	hlist_move_list(&list->head, &todo);
	while (!hlist_empty(&todo)) {
		cd = hlist_entry(todo.first, struct perf_ctx_data, entry);
		if (perf_ctx_data_is_needed(cd, what)) {
			hlist_del(&cd->entry);
			hlist_add_head(&cd->entry, &list->head);
		} else {
			perf_ctx_data_unlink(list, cd);
		}

		/* Tasks that exit in the meantime remove their data from @todo. */
		if (!(++nr % PERF_CTX_DATA_BATCH)) {
			raw_spin_unlock_irq(&list->lock);
			cond_resched();
			raw_spin_lock_irq(&list->lock);
		}
	}
	raw_spin_unlock_irq(&list->lock);
}

static void perf_ctx_data_free_lists(enum perf_ctx_data_free what)
{
	int cpu;

	for_each_possible_cpu(cpu)
		perf_ctx_data_free_list(per_cpu_ptr(&perf_ctx_data_lists, cpu), what);
}

/* Free the data of tasks that have left the scope of all system-wide events. */
static void perf_ctx_data_trim(struct work_struct *work)
{
	guard(mutex)(&perf_ctx_data_mutex);

	/* Without system-wide events there is nothing left that is not pinned. */
	if (!perf_ctx_data_claim.nr_global)
		return;
	perf_ctx_data_free_lists(PERF_CTX_DATA_FREE_STALE);
	if (perf_ctx_scope_is_narrow())
		schedule_delayed_work(&perf_ctx_data_trim_work, PERF_CTX_DATA_TRIM);
}

/* A system-wide event: note its scope, and have nodes for the tasks in it. */
static int perf_ctx_data_get_global(struct perf_event *event)
{
	int err;

	lockdep_assert_held(&perf_ctx_data_mutex);

	err = perf_ctx_nodes_fill(event->cpu, &perf_ctx_data_fill_work);
	if (!err)
		err = perf_ctx_scope_add(event);
	if (err) {
		if (!perf_ctx_data_claim.nr_global)
			perf_ctx_nodes_free();
		return err;
	}
	/* Pairs with smp_load_acquire() in perf_ctx_data_work(). */
	smp_store_release(&perf_ctx_data_claim.nr_global, perf_ctx_data_claim.nr_global + 1);
	schedule_delayed_work(&perf_ctx_data_trim_work, PERF_CTX_DATA_TRIM);
	return 0;
}

/* Count an event that needs data. The first one claims its cache. */
static int perf_ctx_data_get(struct perf_event *event, bool global)
{
	struct pmu *pmu = event->pmu;
	int err = 0;

	guard(mutex)(&perf_ctx_data_mutex);

	if (!perf_ctx_data_claim.nr_users) {
		perf_ctx_data_claim.cache = pmu->task_ctx_cache;
		perf_ctx_data_claim.head = pmu->task_ctx_head;
	} else if (perf_ctx_data_claim.cache != pmu->task_ctx_cache) {
		return -EBUSY;
	}
	if (global)
		err = perf_ctx_data_get_global(event);
	if (!err)
		perf_ctx_data_claim.nr_users++;
	return err;
}

static void perf_ctx_data_put(struct perf_event *event, bool global)
{
	bool all, last_global = false;

	guard(mutex)(&perf_ctx_data_mutex);

	all = !--perf_ctx_data_claim.nr_users;
	if (global) {
		perf_ctx_scope_del(event);
		last_global = perf_ctx_data_claim.nr_global == 1;
		WRITE_ONCE(perf_ctx_data_claim.nr_global, perf_ctx_data_claim.nr_global - 1);
	}
	if (last_global) {
		/* Hooks and works that start from now on see 0. Wait for the others. */
		synchronize_rcu();
		down_write(&perf_ctx_data_sem);
		up_write(&perf_ctx_data_sem);
		perf_ctx_nodes_free();
	} else if (global) {
		/* Nothing to do if it runs anyway. */
		schedule_delayed_work(&perf_ctx_data_trim_work, PERF_CTX_DATA_TRIM);
	}
	if (all)
		perf_ctx_data_free_lists(PERF_CTX_DATA_FREE_ALL);
	else if (last_global)
		perf_ctx_data_free_lists(PERF_CTX_DATA_FREE_GLOBAL);
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
 * Called when an event is created. If the event needs data and this fails, it is freed
 * with __free_event(), which undoes what was done so far. A PMU without a cache has no
 * data, even if its event_init() sets PERF_ATTACH_TASK_DATA.
 */
int perf_ctx_data_attach(struct perf_event *event)
{
	struct task_struct *task = event->hw.target;
	int err;

	if (!(event->attach_state & PERF_ATTACH_TASK_DATA) || !event->pmu->task_ctx_cache)
		return 0;

	/* The parent of an inherited event is counted. */
	if (!event->parent) {
		perf_ctx_data_keys_inc(!task);
		err = perf_ctx_data_get(event, !task);
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
 * Called when an event is freed. PERF_ATTACH_TASK_DATA only says that it needs data. It
 * may have failed before it was counted, and must not drop the count of another event.
 */
void perf_ctx_data_detach(struct perf_event *event)
{
	bool global = !event->hw.target;

	if (!(event->attach_state & PERF_ATTACH_CTX_DATA))
		return;

	event->attach_state &= ~PERF_ATTACH_CTX_DATA;
	perf_ctx_data_put(event, global);
	perf_ctx_data_keys_dec(global);
}

/**
 * perf_ctx_data_tasks - how many tasks have data
 *
 * Context: any; the sum is not of one moment.
 * Return: the number.
 */
unsigned long perf_ctx_data_tasks(void)
{
	unsigned long nr = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		nr += READ_ONCE(per_cpu(perf_ctx_data_lists, cpu).nr);
	return nr;
}

/**
 * perf_ctx_data_size - bytes of the data of a task, 0 if no event needs data
 *
 * Context: takes a mutex.
 * Return: bytes, with the header.
 */
unsigned long perf_ctx_data_size(void)
{
	guard(mutex)(&perf_ctx_data_mutex);

	if (!perf_ctx_data_claim.nr_users)
		return 0;
	return kmem_cache_size(perf_ctx_data_claim.cache) +
	       (perf_ctx_data_claim.head ? 0 : sizeof(struct perf_ctx_data));
}

/**
 * perf_ctx_data_nr_failures - failed allocations since boot
 *
 * Context: any.
 * Return: the number.
 */
unsigned long perf_ctx_data_nr_failures(void)
{
	return atomic_long_read(&perf_ctx_data_failures);
}
