// SPDX-License-Identifier: GPL-2.0
/*
 * Per-task PMU data: which tasks are in the scope of a system-wide event
 *
 * A system-wide event is an event of a CPU, or of a cgroup on a CPU. It needs data for
 * the tasks that run on its CPU and, if it is an event of a cgroup, belong to that cgroup
 * or to one below it. All others would get data that no event uses.
 *
 * Each CPU has the number of its events that need data for all tasks, and a list of the
 * cgroups of the others. A cgroup is on the list once for each event.
 *
 * The caller of perf_ctx_scope_add() and perf_ctx_scope_del() holds a mutex for both.
 * perf_ctx_scope_has() takes no lock and may be called with the runqueue locked. A list
 * entry is freed after an RCU grace period. The event holds a reference on the cgroup
 * while its entry is on the list, and a cgroup is freed after a grace period, too.
 */
#include <linux/cgroup.h>
#include <linux/cpumask.h>
#include <linux/perf_event.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "ctx_data.h"
#include "internal.h"

struct perf_ctx_scope {
	unsigned int		nr_all;
	struct hlist_head	cgroups;
};

static DEFINE_PER_CPU(struct perf_ctx_scope, perf_ctx_scopes);

#ifdef CONFIG_CGROUP_PERF

struct perf_ctx_scope_cgroup {
	struct hlist_node	entry;
	struct perf_event	*event;
	struct cgroup		*cgroup;
	struct rcu_head		rcu;
};

static int perf_ctx_scope_add_cgroup(struct perf_ctx_scope *scope, struct perf_event *event)
{
	struct perf_ctx_scope_cgroup *sc = kmalloc(sizeof(*sc), GFP_KERNEL_ACCOUNT);

	if (!sc)
		return -ENOMEM;
	sc->event = event;
	sc->cgroup = event->cgrp->css.cgroup;
	hlist_add_head_rcu(&sc->entry, &scope->cgroups);
	return 0;
}

static void perf_ctx_scope_del_cgroup(struct perf_ctx_scope *scope, struct perf_event *event)
{
	struct perf_ctx_scope_cgroup *sc;

	hlist_for_each_entry(sc, &scope->cgroups, entry) {
		if (sc->event == event) {
			hlist_del_rcu(&sc->entry);
			kfree_rcu(sc, rcu);
			return;
		}
	}
	WARN_ON_ONCE(1);
}

static bool perf_ctx_scope_has_cgroup(struct perf_ctx_scope *scope, struct task_struct *task)
{
	struct perf_ctx_scope_cgroup *sc;
	struct cgroup *cgroup;

	if (hlist_empty(&scope->cgroups))
		return false;
	cgroup = task_css_check(task, perf_event_cgrp_id, true)->cgroup;
	hlist_for_each_entry_rcu(sc, &scope->cgroups, entry, rcu_read_lock_any_held()) {
		if (cgroup_is_descendant(cgroup, sc->cgroup))
			return true;
	}
	return false;
}

#else /* CONFIG_CGROUP_PERF */

static int perf_ctx_scope_add_cgroup(struct perf_ctx_scope *scope, struct perf_event *event)
{
	return -EINVAL;
}

static void perf_ctx_scope_del_cgroup(struct perf_ctx_scope *scope, struct perf_event *event)
{
}

static bool perf_ctx_scope_has_cgroup(struct perf_ctx_scope *scope, struct task_struct *task)
{
	return false;
}

#endif /* CONFIG_CGROUP_PERF */

/**
 * perf_ctx_scope_add - an event needs data for the tasks in its scope
 * @event: a system-wide event: of a CPU, or of a cgroup on a CPU
 *
 * Context: may sleep; not concurrently with itself and perf_ctx_scope_del().
 * Return: 0, or -ENOMEM.
 */
int perf_ctx_scope_add(struct perf_event *event)
{
	struct perf_ctx_scope *scope = per_cpu_ptr(&perf_ctx_scopes, event->cpu);

	if (is_cgroup_event(event))
		return perf_ctx_scope_add_cgroup(scope, event);
	WRITE_ONCE(scope->nr_all, scope->nr_all + 1);
	return 0;
}

/**
 * perf_ctx_scope_del - undo perf_ctx_scope_add()
 * @event: the event, whose cgroup is still connected
 *
 * Others may see the event for a grace period.
 */
void perf_ctx_scope_del(struct perf_event *event)
{
	struct perf_ctx_scope *scope = per_cpu_ptr(&perf_ctx_scopes, event->cpu);

	if (is_cgroup_event(event))
		perf_ctx_scope_del_cgroup(scope, event);
	else
		WRITE_ONCE(scope->nr_all, scope->nr_all - 1);
}

/**
 * perf_ctx_scope_has - tell whether an event needs data for a task on a CPU
 * @task: the task
 * @cpu: where it runs, or ran last
 *
 * Context: any, in an RCU read-side critical section.
 * Return: true if it does.
 */
bool perf_ctx_scope_has(struct task_struct *task, int cpu)
{
	struct perf_ctx_scope *scope = per_cpu_ptr(&perf_ctx_scopes, cpu);

	return READ_ONCE(scope->nr_all) || perf_ctx_scope_has_cgroup(scope, task);
}

/* Whether there are CPUs on which not every task is in the scope of an event */
bool perf_ctx_scope_is_narrow(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		if (!READ_ONCE(per_cpu(perf_ctx_scopes, cpu).nr_all))
			return true;
	}
	return false;
}
