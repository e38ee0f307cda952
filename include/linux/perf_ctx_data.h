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
	bool			embedded;
};

#ifdef CONFIG_PERF_EVENTS

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

/*
 * Called when a task is scheduled in, with the runqueue locked. Request data for the
 * task if a system-wide event needs it.
 */
static inline void perf_ctx_data_sched_in(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_global.key) &&
	    unlikely(!rcu_access_pointer(task->perf_ctx_data)))
		__perf_ctx_data_sched_in(task);
}

/* Called in fork(): reset the fields that dup_task_struct() copied from the parent. */
static inline void perf_ctx_data_init_task(struct task_struct *task)
{
	RCU_INIT_POINTER(task->perf_ctx_data, NULL);
	task->perf_ctx_work.func = NULL;
	task->perf_ctx_delay = 0;
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
	struct perf_ctx_data *cd = rcu_dereference(task->perf_ctx_data);

	return cd && cd->cache == cache ? cd->data : NULL;
}

/**
 * perf_ctx_data_head - space for struct perf_ctx_data before the data of a PMU
 * @align:	alignment of the data, a power of two
 *
 * The value for pmu::task_ctx_head. The objects of pmu::task_ctx_cache must be larger
 * by this value, and must be aligned to @align.
 */
static inline size_t perf_ctx_data_head(size_t align)
{
	return ALIGN(sizeof(struct perf_ctx_data), align);
}

#else /* CONFIG_PERF_EVENTS */

static inline void perf_ctx_data_put_task(struct task_struct *task) { }

#endif /* CONFIG_PERF_EVENTS */

#endif /* _LINUX_PERF_CTX_DATA_H */
