// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: CPUs that go offline and return
 *
 * An event of a session returns with its CPU: core.c notes whether it is to run, and
 * perf_event_reinstall() installs it again. This file calls it, and wakes the readers when
 * the CPU goes down and when it comes up:
 *
 *	CPU goes down				CPU comes up
 *
 *	CPUHP_AP_PERF_ONLINE			CPUHP_PERF_PREPARE
 *	  core.c takes the events off		  core.c: the context takes events again
 *	CPUHP_BP_PREPARE_DYN			CPUHP_AP_ONLINE_DYN
 *	  the work is queued: readers are	  the work is queued: the events are
 *	  woken, to see OFFLINE			  installed again, the readers woken
 *
 * A work item does this, because callbacks of CPU hotplug cannot take
 * perf_persistent_mutex:
 *
 *	perf_persistent_mutex			UNCLAIM of an event that follows a task
 *	  perf_event_context::mutex (a task's)	the task exits, with a tracepoint's event
 *	    event_mutex, tracepoints_mutex	another tracepoint is switched on
 *	      cpu_hotplug_lock			and waits for the CPU
 *
 * Until the work item has run, the event is OFFLINE although its CPU is online.
 * perf_event_reinstall() needs a CPU that stays online: it takes cpu_hotplug_lock below
 * perf_persistent_mutex and above the mutex of the CPU's context, as the base does.
 *
 * An event that follows a task on one CPU stays on the task's context, and needs not be
 * installed again. Its context must not be locked here, either:
 *
 *	cpu_hotplug_lock, for reading		a task exits:
 *	  perf_event_context::mutex (a task's)	  perf_event_context::mutex (its own)
 *						    the last reference on an inherited event:
 *						    static_key_slow_dec()
 *						      cpu_hotplug_lock, for reading
 *
 * With a CPU that waits to go offline between the two, neither continues.
 *
 * A claimed event is an ordinary event, and is not installed again. UNCLAIM of an event
 * whose CPU went offline fails (ENODEV).
 *
 * All of this happens between two records of that CPU. The buffer keeps its records, and
 * new records are written below them.
 */
#include <linux/cleanup.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/workqueue.h>

#include "internal.h"

/* CPUs that went offline or returned since the work item ran */
static struct cpumask perf_persistent_changed_cpus;

static void perf_persistent_follow_cpu(unsigned int cpu)
{
	struct perf_persistent_session *s;
	struct perf_persistent_event *pe;
	unsigned long key;

	lockdep_assert_held(&perf_persistent_mutex);

	list_for_each_entry(s, &perf_persistent_sessions, entry) {
		xa_for_each(&s->events, key, pe) {
			if (READ_ONCE(pe->event->cpu) != cpu)
				continue;
			if (!pe->target_ns)
				perf_event_reinstall(pe->event, cpu);
			perf_persistent_tell(pe);
			/* Each takes as long as there are events that have returned. */
			cond_resched();
		}
	}
}

static void perf_persistent_follow_cpus(struct work_struct *work)
{
	unsigned int cpu;

	guard(mutex)(&perf_persistent_mutex);

	for_each_possible_cpu(cpu) {
		if (cpumask_test_and_clear_cpu(cpu, &perf_persistent_changed_cpus))
			perf_persistent_follow_cpu(cpu);
	}
}

static DECLARE_WORK(perf_persistent_work, perf_persistent_follow_cpus);

/* Takes no lock: see above. */
static int perf_persistent_cpu_changed(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &perf_persistent_changed_cpus);
	schedule_work(&perf_persistent_work);
	return 0;
}

/* A device_initcall: before the first session can be made. */
static int __init perf_persistent_hotplug_init(void)
{
	int ret;

	ret = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "perf/persistent:prepare", NULL,
					perf_persistent_cpu_changed);
	if (ret < 0)
		return ret;

	ret = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "perf/persistent:online",
					perf_persistent_cpu_changed, NULL);
	return min(ret, 0);
}
device_initcall(perf_persistent_hotplug_init);
