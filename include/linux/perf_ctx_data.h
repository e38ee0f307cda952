/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Data that a PMU keeps for each task. See kernel/events/ctx_data.c.
 */
#ifndef _LINUX_PERF_CTX_DATA_H
#define _LINUX_PERF_CTX_DATA_H

#include <linux/align.h>
#include <linux/types.h>

struct kmem_cache;
struct perf_event;
struct task_struct;

/**
 * struct perf_ctx_data - what a PMU keeps for a task
 * @data:	object of the PMU; zeroed when it is made
 * @task:	the task; it exists for as long as this is on a list
 * @cache:	pmu::task_ctx_cache, which @data is from
 * @entry:	on the list of @cpu, under its lock
 * @rcu:	to free it
 * @cpu:	whose list this is on
 * @pinned:	a per-task event wants it: it stays when the last system-wide
 *		event goes. Under the list's lock.
 * @embedded:	this is the head of the object that @data is in
 *
 * It hangs off task_struct::perf_ctx_data. An event that wants it has
 * PERF_ATTACH_TASK_DATA set by pmu::event_init(), and PERF_ATTACH_SCHED_CB for
 * the callback, pmu::sched_task(), which finds @data by perf_ctx_data_of().
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
 * A task is scheduled in, with its runqueue locked: see to it that it will have
 * data, where somebody watches all tasks.
 */
static inline void perf_ctx_data_sched_in(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_global.key) &&
	    unlikely(!rcu_access_pointer(task->perf_ctx_data)))
		__perf_ctx_data_sched_in(task);
}

/* A task is made: what dup_task_struct() copied is its parent's. */
static inline void perf_ctx_data_init_task(struct task_struct *task)
{
	RCU_INIT_POINTER(task->perf_ctx_data, NULL);
	task->perf_ctx_work.func = NULL;
	task->perf_ctx_delay = 0;
}

/* A task exits, or executes a program with other credentials. */
static inline void perf_ctx_data_exit_task(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_used.key))
		__perf_ctx_data_exit_task(task);
}

/* Nobody can find the task any more, or nobody ever could. */
static inline void perf_ctx_data_put_task(struct task_struct *task)
{
	if (static_branch_unlikely(&perf_ctx_data_used.key))
		__perf_ctx_data_put_task(task);
}

/**
 * perf_ctx_data_of - find the data of a task, for pmu::sched_task()
 * @task:	the task that is switched
 * @cache:	the PMU's task_ctx_cache
 *
 * Under rcu_read_lock(). Data of another PMU is not handed out: that can be there
 * while the PMU has events that want none.
 *
 * Return: the data, or NULL, if there is none (yet).
 */
static inline void *perf_ctx_data_of(struct task_struct *task, struct kmem_cache *cache)
{
	struct perf_ctx_data *cd = rcu_dereference(task->perf_ctx_data);

	return cd && cd->cache == cache ? cd->data : NULL;
}

/**
 * perf_ctx_data_head - room for struct perf_ctx_data before a PMU's data
 * @align:	what the data is aligned to, a power of two
 *
 * For pmu::task_ctx_head. The objects of pmu::task_ctx_cache must be larger by
 * this, and be aligned to @align themselves.
 */
static inline size_t perf_ctx_data_head(size_t align)
{
	return ALIGN(sizeof(struct perf_ctx_data), align);
}

#else /* CONFIG_PERF_EVENTS */

static inline void perf_ctx_data_put_task(struct task_struct *task) { }

#endif /* CONFIG_PERF_EVENTS */

#endif /* _LINUX_PERF_CTX_DATA_H */
