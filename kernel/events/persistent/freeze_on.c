// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: kernel.perf_persistent_freeze
 *
 *	CAUSE[:MS][,CAUSE[:MS]..]
 *
 * names events of the kernel that freeze all sessions, at once or after MS milliseconds.
 * The default is an empty string: no event freezes them.
 *
 *	oops		die notifier
 *	panic		panic notifier; without a delay, since no timer runs any more
 *	oom		tracepoint oom:mark_victim: a task was chosen to be killed
 *	hung		tracepoint sched:sched_process_hang, CONFIG_DETECT_HUNG_TASK
 *	rcu-stall	RCU's notifier, CONFIG_RCU_CPU_STALL_NOTIFIER and the boot parameter
 *			rcupdate.rcu_cpu_stall_notifiers=1
 *	lockup		soft and hard lockup, CONFIG_LOCKUP_DETECTOR: a call in watchdog.c
 *
 * With a delay, the sessions also record what follows the event. If several events of one
 * cause occur, the first one counts: a pending delay is not prolonged.
 *
 * The events occur in any context. Without a delay the sessions are frozen in that context.
 * With a delay, perf_persistent_cause::due tells when it ends, and an irq_work starts an
 * hrtimer, since timers take locks. It freezes in a hard interrupt: the CPU that has found a
 * lockup may be the one that is locked up, and runs neither tasks nor softirqs. It may not even
 * take interrupts. So each CPU that finds an event has a timer of its own, and an event that is
 * found when the delay should be over freezes at once. Whoever takes the time out of ->due
 * freezes:
 *
 *	an event		its CPU			another event, later
 *
 *	CMPXCHG 0 to ->due	irq_work:		->due is not 0: if the time is over,
 *	queue the irq_work	  start the timer	  CMPXCHG ->due to 0, freeze;
 *				timer:			otherwise queue the irq_work of its CPU
 *				  CMPXCHG ->due to 0,
 *				  freeze
 *
 * Nothing here is freed. A CPU that goes offline hands its timer to another one. A cause that is
 * taken from the sysctl has its ->due set to 0: timers that are pending find nothing to do.
 *
 * The notifiers are installed when the first cause is set, and stay installed. Without a
 * cause they only read one variable. The RCU notifier is installed when rcu-stall itself is
 * set: RCU warns (WARN) about any notifier, since it may delay the message of the stall, and
 * refuses it without the boot parameter.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/kdebug.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/percpu.h>
#include <linux/perf_persistent.h>
#include <linux/printk.h>
#include <linux/rcu_notifier.h>
#include <linux/string.h>
#include <linux/sysctl.h>

#include <trace/events/oom.h>
#include <trace/events/sched.h>

#include "internal.h"

#define PERF_PERSISTENT_MAX_DELAY	600000
#define PERF_PERSISTENT_TEXT_LEN	128
/* perf_persistent_cause::delay: the cause is not named */
#define PERF_PERSISTENT_NEVER		(-1)

/**
 * struct perf_persistent_cause - an event of the kernel that freezes
 * @name: in the sysctl
 * @delay: in ms, or PERF_PERSISTENT_NEVER
 * @due: when a delay ends, in ns of CLOCK_MONOTONIC; 0: none is pending
 */
struct perf_persistent_cause {
	const char		*name;
	int			delay;
	atomic64_t		due;
};

#define PERF_PERSISTENT_CAUSE(_reason, _name)						\
	[PERF_PERSISTENT_FREEZE_##_reason] = {						\
		.name		= (_name),						\
		.delay		= PERF_PERSISTENT_NEVER,				\
	}

/* By PERF_PERSISTENT_FREEZE_*; those without a name are not causes. */
static struct perf_persistent_cause perf_persistent_causes[] = {
	PERF_PERSISTENT_CAUSE(OOPS, "oops"),
	PERF_PERSISTENT_CAUSE(PANIC, "panic"),
	PERF_PERSISTENT_CAUSE(OOM, "oom"),
	PERF_PERSISTENT_CAUSE(HUNG, "hung"),
	PERF_PERSISTENT_CAUSE(STALL, "rcu-stall"),
	PERF_PERSISTENT_CAUSE(LOCKUP, "lockup"),
};

#define PERF_PERSISTENT_NR_CAUSES	ARRAY_SIZE(perf_persistent_causes)

/**
 * struct perf_persistent_delay - what ends the delay of a cause on a CPU
 * @cause: the cause
 * @irq_work: starts @timer
 * @timer: freezes at perf_persistent_cause::due
 */
struct perf_persistent_delay {
	struct perf_persistent_cause	*cause;
	struct irq_work			irq_work;
	struct hrtimer			timer;
};

static DEFINE_PER_CPU(struct perf_persistent_delay,
		      perf_persistent_delays[PERF_PERSISTENT_NR_CAUSES]);

static void perf_persistent_start_timer(struct irq_work *irq_work)
{
	struct perf_persistent_delay *delay =
		container_of(irq_work, struct perf_persistent_delay, irq_work);
	s64 due = atomic64_read(&delay->cause->due);

	if (due)
		hrtimer_start(&delay->timer, ns_to_ktime(due), HRTIMER_MODE_ABS_PINNED_HARD);
}

/* Freeze for a delay that is over, unless another CPU does. */
static void perf_persistent_end_delay(struct perf_persistent_cause *cause, s64 due)
{
	/* The cause may have been taken from the sysctl meanwhile. */
	if (atomic64_cmpxchg(&cause->due, due, 0) == due &&
	    READ_ONCE(cause->delay) != PERF_PERSISTENT_NEVER)
		perf_persistent_freeze_all(cause - perf_persistent_causes);
}

static enum hrtimer_restart perf_persistent_delay_over(struct hrtimer *timer)
{
	struct perf_persistent_delay *delay =
		container_of(timer, struct perf_persistent_delay, timer);
	s64 due = atomic64_read(&delay->cause->due);

	if (!due)
		return HRTIMER_NORESTART;

	/* That of a later event: another CPU has frozen for the one that started this timer. */
	if (due > ktime_to_ns(hrtimer_get_expires(timer))) {
		hrtimer_set_expires(timer, ns_to_ktime(due));
		return HRTIMER_RESTART;
	}

	perf_persistent_end_delay(delay->cause, due);
	return HRTIMER_NORESTART;
}

/* Context: any, NMI included. */
static void perf_persistent_happened(unsigned int reason)
{
	struct perf_persistent_cause *cause = &perf_persistent_causes[reason];
	int delay = READ_ONCE(cause->delay);
	s64 now, due;

	if (!delay)
		perf_persistent_freeze_all(reason);
	if (!delay || delay == PERF_PERSISTENT_NEVER)
		return;

	now = ktime_get_mono_fast_ns();
	due = atomic64_cmpxchg(&cause->due, 0, now + (s64)delay * NSEC_PER_MSEC);
	if (due && due <= now)
		perf_persistent_end_delay(cause, due);
	else
		/* If the task goes to another CPU meanwhile, any will do. */
		irq_work_queue(&raw_cpu_ptr(&perf_persistent_delays[reason])->irq_work);
}

/* The causes */

static int perf_persistent_die(struct notifier_block *nb, unsigned long val, void *data)
{
	if (val == DIE_OOPS)
		perf_persistent_happened(PERF_PERSISTENT_FREEZE_OOPS);
	return NOTIFY_DONE;
}

static struct notifier_block perf_persistent_die_nb = {
	.notifier_call	= perf_persistent_die,
	/* Before those that take their time. */
	.priority	= INT_MAX,
};

static int perf_persistent_panic(struct notifier_block *nb, unsigned long val, void *data)
{
	perf_persistent_happened(PERF_PERSISTENT_FREEZE_PANIC);
	return NOTIFY_DONE;
}

static struct notifier_block perf_persistent_panic_nb = {
	.notifier_call	= perf_persistent_panic,
	.priority	= INT_MAX,
};

static int perf_persistent_stall(struct notifier_block *nb, unsigned long val, void *data)
{
	perf_persistent_happened(PERF_PERSISTENT_FREEZE_STALL);
	return NOTIFY_DONE;
}

static struct notifier_block perf_persistent_stall_nb = {
	.notifier_call	= perf_persistent_stall,
};

static void perf_persistent_oom(void *data, struct task_struct *task, uid_t uid)
{
	perf_persistent_happened(PERF_PERSISTENT_FREEZE_OOM);
}

#ifdef CONFIG_DETECT_HUNG_TASK
static void perf_persistent_hung(void *data, struct task_struct *task)
{
	perf_persistent_happened(PERF_PERSISTENT_FREEZE_HUNG);
}

static int perf_persistent_watch_hung(void)
{
	return register_trace_sched_process_hang(perf_persistent_hung, NULL);
}
#else
static int perf_persistent_watch_hung(void)
{
	return 0;
}
#endif

/**
 * perf_persistent_lockup - the watchdog has found a soft or a hard lockup
 *
 * Context: NMI or hard interrupt.
 */
void perf_persistent_lockup(void)
{
	perf_persistent_happened(PERF_PERSISTENT_FREEZE_LOCKUP);
}

static DEFINE_MUTEX(perf_persistent_cause_mutex);

static int perf_persistent_watch_tracepoints(void)
{
	int err;

	/* They never occur. */
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		return 0;

	err = register_trace_mark_victim(perf_persistent_oom, NULL);
	if (err)
		return err;

	err = perf_persistent_watch_hung();
	if (err)
		unregister_trace_mark_victim(perf_persistent_oom, NULL);
	return err;
}

/* Install what calls perf_persistent_happened(). */
static int perf_persistent_watch(void)
{
	static bool watches;
	int err;

	lockdep_assert_held(&perf_persistent_cause_mutex);

	if (watches)
		return 0;

	err = perf_persistent_watch_tracepoints();
	if (err)
		return err;

	register_die_notifier(&perf_persistent_die_nb);
	atomic_notifier_chain_register(&panic_notifier_list, &perf_persistent_panic_nb);
	watches = true;
	return 0;
}

/* The same for a stall, which never occurs where it is not configured. */
static int perf_persistent_watch_stalls(void)
{
	static bool watches;

	lockdep_assert_held(&perf_persistent_cause_mutex);

	if (watches || !IS_ENABLED(CONFIG_RCU_CPU_STALL_NOTIFIER))
		return 0;

	if (rcu_stall_chain_notifier_register(&perf_persistent_stall_nb)) {
		pr_warn("rcu-stall needs the boot parameter rcupdate.rcu_cpu_stall_notifiers=1\n");
		return -EOPNOTSUPP;
	}
	watches = true;
	return 0;
}

/* The sysctl */

static int perf_persistent_find_cause(const char *name)
{
	unsigned int i;

	for (i = 0; i < PERF_PERSISTENT_NR_CAUSES; i++) {
		if (perf_persistent_causes[i].name && !strcmp(perf_persistent_causes[i].name, name))
			return i;
	}
	return -EINVAL;
}

/*
 * Parse the value of the sysctl, which is cut in pieces, to milliseconds or -1, by
 * PERF_PERSISTENT_FREEZE_*. Returns the number of causes.
 */
static int perf_persistent_parse_causes(char *text, int *delays)
{
	char *cause, *delay;
	unsigned int i, ms;
	int reason, nr = 0;

	for (i = 0; i < PERF_PERSISTENT_NR_CAUSES; i++)
		delays[i] = PERF_PERSISTENT_NEVER;

	text = strim(text);
	if (!*text)
		return 0;

	while ((cause = strsep(&text, ","))) {
		delay = cause;
		cause = strsep(&delay, ":");
		reason = perf_persistent_find_cause(cause);
		if (reason < 0 || delays[reason] != PERF_PERSISTENT_NEVER)
			return -EINVAL;

		ms = 0;
		if (delay && (kstrtouint(delay, 10, &ms) || ms > PERF_PERSISTENT_MAX_DELAY))
			return -EINVAL;
		if (ms && reason == PERF_PERSISTENT_FREEZE_PANIC)
			return -EINVAL;

		delays[reason] = ms;
		nr++;
	}
	return nr;
}

static int perf_persistent_set_causes(const char *text)
{
	char *copy __free(kfree) = kstrdup(text, GFP_KERNEL);
	int delays[PERF_PERSISTENT_NR_CAUSES];
	unsigned int i;
	int nr, err;

	if (!copy)
		return -ENOMEM;

	nr = perf_persistent_parse_causes(copy, delays);
	if (nr < 0)
		return nr;

	if (nr) {
		err = perf_persistent_watch();
		if (err)
			return err;
	}
	if (delays[PERF_PERSISTENT_FREEZE_STALL] != PERF_PERSISTENT_NEVER) {
		err = perf_persistent_watch_stalls();
		if (err)
			return err;
	}

	for (i = 0; i < PERF_PERSISTENT_NR_CAUSES; i++) {
		WRITE_ONCE(perf_persistent_causes[i].delay, delays[i]);
		/* The timers find nothing to do. */
		if (delays[i] == PERF_PERSISTENT_NEVER)
			atomic64_set(&perf_persistent_causes[i].due, 0);
	}
	return 0;
}

static char perf_persistent_causes_text[PERF_PERSISTENT_TEXT_LEN];

static int perf_persistent_causes_sysctl(const struct ctl_table *table, int write, void *buffer,
					 size_t *lenp, loff_t *ppos)
{
	char text[PERF_PERSISTENT_TEXT_LEN];
	struct ctl_table copy = *table;
	int err;

	guard(mutex)(&perf_persistent_cause_mutex);

	strscpy(text, perf_persistent_causes_text);
	copy.data = text;
	err = proc_dostring(&copy, write, buffer, lenp, ppos);
	if (err || !write)
		return err;

	err = perf_persistent_set_causes(text);
	if (!err)
		strscpy(perf_persistent_causes_text, strim(text));
	return err;
}

static struct ctl_table perf_persistent_freeze_sysctls[] = {
	{
		.procname	= "perf_persistent_freeze",
		.data		= perf_persistent_causes_text,
		.maxlen		= sizeof(perf_persistent_causes_text),
		.mode		= 0644,
		.proc_handler	= perf_persistent_causes_sysctl,
	},
};

static void __init perf_persistent_init_timer(struct hrtimer *timer)
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timer->function = perf_persistent_delay_over;
}

static void __init perf_persistent_init_delays(int cpu)
{
	struct perf_persistent_delay *delay = per_cpu_ptr(perf_persistent_delays, cpu);
	unsigned int i;

	for (i = 0; i < PERF_PERSISTENT_NR_CAUSES; i++, delay++) {
		delay->cause = &perf_persistent_causes[i];
		delay->irq_work = IRQ_WORK_INIT_HARD(perf_persistent_start_timer);
		perf_persistent_init_timer(&delay->timer);
	}
}

static int __init perf_persistent_freeze_sysctl_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		perf_persistent_init_delays(cpu);
	register_sysctl_init("kernel", perf_persistent_freeze_sysctls);
	return 0;
}
fs_initcall(perf_persistent_freeze_sysctl_init);
