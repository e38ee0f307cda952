// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: CPUs that go and come back.
 *
 * When a CPU goes offline, perf takes all events off its context. An ordinary event
 * never comes back: its owner sees that the count stands still, and opens another. The
 * owner of a persistent one may be long gone.
 *
 *	CPU goes down				CPU comes up
 *
 *	CPUHP_AP_PERF_ONLINE			CPUHP_PERF_PREPARE
 *	  ctx->mutex, ctx->lock, on that CPU:	  the context takes events again, but the
 *	  perf_persistent_offline() notes	  CPU does not run yet: what is installed
 *	  whether the event is to run		  now is never started
 *	  event: STATE_OFF, off its context	CPUHP_AP_PERF_ONLINE
 *	CPUHP_BP_PREPARE_DYN			CPUHP_AP_ONLINE_DYN
 *	  the work is queued: readers are	  the work is queued: the same event into
 *	  woken, to see OFFLINE			  the same context, to run if it was noted;
 *						  readers are woken
 *
 * A work item does it, soon after, as what goes with the CPU cannot take
 * perf_persistent_mutex:
 *
 *	perf_persistent_mutex			UNCLAIM of an event that follows a task
 *	  perf_event_context::mutex (a task's)	the task exits, with a tracepoint's event
 *	    event_mutex, tracepoints_mutex	another tracepoint is switched on
 *	      cpu_hotplug_lock			and waits for the CPU
 *
 * Until it has run, the event is OFFLINE although its CPU is not. perf_install_in_context()
 * takes a CPU that stays: cpu_hotplug_lock is taken below perf_persistent_mutex, and
 * above the mutex of the CPU's context, as the base has it.
 *
 * Off its context the event keeps all it has: event->ctx, its reference on the PMU's
 * context, its buffer and count. Putting it back takes no reference, and cannot fail.
 *
 * event->resume says whether it is to run: it did when the CPU went away, or its owner
 * said ENABLE since. The owner's DISABLE is remembered in the same way; ctx->mutex keeps
 * both from falling between what the CPU's hotplug does.
 *
 * An event that was claimed is an ordinary event: it does not come back. An event of a
 * PMU that migrates its events to another CPU goes where the PMU puts it, and is
 * put back with that CPU. An event that is given away after its CPU was away is refused
 * (ENODEV): nobody noted anything for it.
 *
 * All of it happens between two records of that CPU: what is in the buffer stays, what
 * comes is written below it.
 */
#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "persistent_types.h"

/* CPUs that went or came back since the work item ran */
static struct cpumask perf_persistent_changed_cpus;

/**
 * perf_persistent_offline - an event is about to be taken off the context of its CPU
 * @event: any event
 *
 * On that CPU, which goes offline.
 */
void perf_persistent_offline(struct perf_event *event)
{
	struct perf_persistent_event *pe = event->persistent;

	lockdep_assert_held(&event->ctx->lock);

	if (pe)
		WRITE_ONCE(pe->resume, event->state > PERF_EVENT_STATE_OFF);
}

/**
 * perf_persistent_enable - ENABLE or DISABLE of an event
 * @event: any event
 * @cmd: any ioctl
 *
 * Return: true if the CPU is away: it is remembered, and there is nothing else to do
 */
bool perf_persistent_enable(struct perf_event *event, unsigned int cmd)
{
	struct perf_persistent_event *pe = event->persistent;

	lockdep_assert_held(&event->ctx->mutex);

	if (cmd != PERF_EVENT_IOC_ENABLE && cmd != PERF_EVENT_IOC_DISABLE)
		return false;

	if (!pe || event->attach_state & (PERF_ATTACH_CONTEXT | PERF_ATTACH_TASK))
		return false;

	WRITE_ONCE(pe->resume, cmd == PERF_EVENT_IOC_ENABLE);
	return true;
}

static bool perf_persistent_is_away(struct perf_event *event, unsigned int cpu)
{
	return event->cpu == cpu &&
	       !(event->attach_state & (PERF_ATTACH_CONTEXT | PERF_ATTACH_TASK));
}

/* Put the event back, unless it never was away, or its CPU is again. */
static void perf_persistent_restart(struct perf_persistent_event *pe, unsigned int cpu)
{
	struct perf_event *event = pe->event;
	struct perf_event_context *ctx;

	lockdep_assert_held(&perf_persistent_mutex);

	guard(cpus_read_lock)();
	if (!cpu_online(cpu))
		return;

	ctx = perf_event_ctx_lock(event);
	if (perf_persistent_is_away(event, cpu)) {
		/* Not what is in error: that was not the CPU's doing. */
		if (pe->resume && event->state == PERF_EVENT_STATE_OFF)
			event->state = PERF_EVENT_STATE_INACTIVE;
		perf_install_in_context(ctx, event, cpu);
	}
	perf_event_ctx_unlock(event, ctx);
}

/* There is a state to be read. */
static void perf_persistent_tell(struct perf_persistent_event *pe)
{
	perf_persistent_wakeup(pe->rb);
	wake_up_all(&pe->event->waitq);
}

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
			perf_persistent_restart(pe, cpu);
			perf_persistent_tell(pe);
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

/* Nothing is locked here: see above. */
static int perf_persistent_cpu_changed(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &perf_persistent_changed_cpus);
	schedule_work(&perf_persistent_work);
	return 0;
}

/* A device_initcall: before there are sessions. */
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
