/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Per-task PMU data, see kernel/events/ctx_data.c
 */
#ifndef _LINUX_PERF_CTX_DATA_H
#define _LINUX_PERF_CTX_DATA_H

#include <linux/align.h>
#include <linux/types.h>

struct kmem_cache;
struct perf_event;
struct task_struct;

/**
 * struct perf_ctx_data - PMU data of a task
 * @data:	object of the PMU, zeroed on allocation
 * @task:	the task, valid while this is on a list
 * @cache:	pmu::task_ctx_cache of @data
 * @entry:	entry in the list of @cpu, protected by its lock
 * @rcu:	for freeing
 * @cpu:	CPU of the list
 * @pinned:	requested by a per-task event: not freed when the last
 *		system-wide event is closed. Protected by the lock of the list.
 * @stale:	the task was out of the scope of all system-wide events when that was
 *		checked last. Protected by the lock of the list.
 * @embedded:	this is the head of the object that @data is in
 *
 * task_struct::perf_ctx_data points to it. For an event that needs it,
 * pmu::event_init() sets PERF_ATTACH_TASK_DATA, and PERF_ATTACH_SCHED_CB for the
 * callback pmu::sched_task(), which gets @data from perf_ctx_data_of().
 */
struct perf_ctx_data {
	void			*data;
	struct task_struct	*task;
	struct kmem_cache	*cache;
	struct hlist_node	entry;
	struct rcu_head		rcu;
	unsigned int		cpu;
	bool			pinned;
	bool			stale;
	bool			embedded;
};

/*
 * Tags of task_struct::perf_ctx_data, which points to a struct perf_ctx_data only if none
 * of them is set: see the states of a task in ctx_data.c.
 */
#define PERF_CTX_DATA_PENDING	1UL
#define PERF_CTX_DATA_BACKOFF	2UL
#define PERF_CTX_DATA_TAGS	3UL

#ifdef CONFIG_PERF_CTX_DATA

#include <linux/jump_label_ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

extern struct static_key_false_deferred perf_ctx_data_used;
extern struct static_key_false_deferred perf_ctx_data_global;

int perf_ctx_data_attach(struct perf_event *event);
void perf_ctx_data_detach(struct perf_event *event);
void __perf_ctx_data_sched_in(struct task_struct *task);
void __perf_ctx_data_exit_task(struct task_struct *task);
void __perf_ctx_data_put_task(struct task_struct *task);

/* The data that a task's pointer is to, or NULL if it has none. */
static inline struct perf_ctx_data *perf_ctx_data_untag(struct perf_ctx_data *cd)
{
	return (unsigned long)cd & PERF_CTX_DATA_TAGS ? NULL : cd;
}

/*
 * Called when a task is scheduled in, with the runqueue locked. Request data for the
 * task if a system-wide event needs it.
 */
static inline void perf_ctx_data_sched_in(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_global.key) &&
	    unlikely(!perf_ctx_data_untag(rcu_access_pointer(task->perf_ctx_data))))
		__perf_ctx_data_sched_in(task);
}

/* Called in fork(): reset the pointer that dup_task_struct() copied from the parent. */
static inline void perf_ctx_data_init_task(struct task_struct *task)
{
	RCU_INIT_POINTER(task->perf_ctx_data, NULL);
}

/* Called when a task exits, or executes a program with other credentials. */
static inline void perf_ctx_data_exit_task(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_used.key))
		__perf_ctx_data_exit_task(task);
}

/* Called when the last reference on the task is dropped, or fork has failed. */
static inline void perf_ctx_data_put_task(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_used.key))
		__perf_ctx_data_put_task(task);
}

/**
 * perf_ctx_data_of - get the data of a task, for pmu::sched_task()
 * @task:	the task that is switched
 * @cache:	the PMU's task_ctx_cache
 *
 * Call this under rcu_read_lock(). Data of another PMU, which can exist while this PMU
 * only has events that need no data, is not returned.
 *
 * Return: the data, or NULL if there is none (yet).
 */
static inline void *perf_ctx_data_of(struct task_struct *task, struct kmem_cache *cache)
{
	struct perf_ctx_data *cd = perf_ctx_data_untag(rcu_dereference(task->perf_ctx_data));

	return cd && cd->cache == cache ? cd->data : NULL;
}

/**
 * perf_ctx_data_switches - how often a task was scheduled out
 * @task:	the task that is switched
 *
 * A PMU notes this when it saves data of @task. If it is another number when @task is
 * scheduled in, then @task has run without the callback: on a CPU without an event of
 * the PMU, or while the event was off. What was saved is not what the task has now.
 *
 * Context: pmu::sched_task(), for both the task that goes and the one that comes.
 * Return: the number of context switches of @task.
 */
static inline unsigned long perf_ctx_data_switches(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/**
 * perf_ctx_data_head - space for struct perf_ctx_data before the data of a PMU
 * @align:	alignment of the data, a power of two
 *
 * The value for pmu::task_ctx_head. The objects of pmu::task_ctx_cache must be larger
 * by this value, and must be aligned to @align.
 *
 * Context: any.
 * Return: bytes.
 */
static inline size_t perf_ctx_data_head(size_t align)
{
	return ALIGN(sizeof(struct perf_ctx_data), align);
}

#else /* CONFIG_PERF_CTX_DATA */

static inline int perf_ctx_data_attach(struct perf_event *event) { return 0; }
static inline void perf_ctx_data_detach(struct perf_event *event) { }
static inline void perf_ctx_data_sched_in(struct task_struct *task) { }
static inline void perf_ctx_data_init_task(struct task_struct *task) { }
static inline void perf_ctx_data_exit_task(struct task_struct *task) { }
static inline void perf_ctx_data_put_task(struct task_struct *task) { }

#endif /* CONFIG_PERF_CTX_DATA */

#endif /* _LINUX_PERF_CTX_DATA_H */
