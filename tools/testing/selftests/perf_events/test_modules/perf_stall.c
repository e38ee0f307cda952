// SPDX-License-Identifier: GPL-2.0
/*
 * Stalls for the detectors of the kernel, each for a given time.
 *
 * "KIND MS", written to /dev/perf_stall, makes the writer one of them for MS milliseconds, a
 * minute at the most:
 *
 *	sleep		it sleeps and takes no signal: a hung task
 *	preempt		it spins with preemption off: a soft lockup
 *	irqs		it spins with interrupts off: a hard lockup
 *	rcu		it spins in a read-side critical section: a stall of RCU
 *	softirq		a timer of its CPU spins, in a softirq, and the writer sleeps meanwhile
 *	handler		the handler of an interrupt of its CPU spins, and the writer sleeps
 *	storm		a timer of its CPU spins in a softirq for 0.7 ms of each, and it sleeps
 *	oops		it writes to an address that is not mapped, at once: no detector waits
 *	end		all others but storm end now
 *
 * The write returns when the time is over. The interrupt belongs to no device: a timer raises
 * it, and the kernel handles it as any other.
 */
#include <linux/capability.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#define STALL_MAX_MS	60000

/* How often somebody has written "end" */
static unsigned int stall_ends;
static DECLARE_WAIT_QUEUE_HEAD(stall_sleepers);

static void stall_end(unsigned int ms)
{
	WRITE_ONCE(stall_ends, stall_ends + 1);
	wake_up_all(&stall_sleepers);
}

/* Of the CPU's own clock, which needs no interrupt */
static void stall_spin(unsigned int ms)
{
	u64 end = local_clock() + ms * (u64)NSEC_PER_MSEC;
	unsigned int ends = READ_ONCE(stall_ends);

	while (local_clock() < end && READ_ONCE(stall_ends) == ends)
		cpu_relax();
}

static void stall_sleep(unsigned int ms)
{
	unsigned int ends = READ_ONCE(stall_ends);

	wait_event_timeout(stall_sleepers, READ_ONCE(stall_ends) != ends, msecs_to_jiffies(ms));
}

static void stall_preempt(unsigned int ms)
{
	preempt_disable();
	stall_spin(ms);
	preempt_enable();
}

static void stall_irqs(unsigned int ms)
{
	local_irq_disable();
	stall_spin(ms);
	local_irq_enable();
}

static void stall_rcu(unsigned int ms)
{
	rcu_read_lock();
	stall_spin(ms);
	rcu_read_unlock();
}

/* A stall that a timer begins */
struct stall_timer {
	struct timer_list	timer;
	struct hrtimer		hrtimer;
	struct completion	done;
	unsigned int		ms;
};

static void stall_softirq_fn(struct timer_list *timer)
{
	struct stall_timer *s = container_of(timer, struct stall_timer, timer);

	stall_spin(s->ms);
	complete(&s->done);
}

static void stall_softirq(unsigned int ms)
{
	struct stall_timer s = { .ms = ms };

	init_completion(&s.done);
	timer_setup_on_stack(&s.timer, stall_softirq_fn, TIMER_PINNED);
	mod_timer(&s.timer, jiffies + 1);
	wait_for_completion(&s.done);
	timer_delete_sync(&s.timer);
	destroy_timer_on_stack(&s.timer);
}

/* One at a time has the interrupt. */
static DEFINE_MUTEX(stall_irq_lock);
static struct stall_timer *stall_irq_timer;
static int stall_irq;

static irqreturn_t stall_handler(int irq, void *data)
{
	stall_spin(stall_irq_timer->ms);
	return IRQ_HANDLED;
}

static enum hrtimer_restart stall_raise(struct hrtimer *hrtimer)
{
	struct stall_timer *s = container_of(hrtimer, struct stall_timer, hrtimer);

	generic_handle_irq(stall_irq);
	complete(&s->done);
	return HRTIMER_NORESTART;
}

static void stall_in_handler(unsigned int ms)
{
	struct stall_timer s = { .ms = ms };

	init_completion(&s.done);
	mutex_lock(&stall_irq_lock);
	stall_irq_timer = &s;
	hrtimer_init_on_stack(&s.hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	s.hrtimer.function = stall_raise;
	hrtimer_start(&s.hrtimer, ms_to_ktime(1), HRTIMER_MODE_REL_PINNED_HARD);
	wait_for_completion(&s.done);
	hrtimer_cancel(&s.hrtimer);
	destroy_hrtimer_on_stack(&s.hrtimer);
	stall_irq_timer = NULL;
	mutex_unlock(&stall_irq_lock);
}

#define STORM_SPIN_NS	(700 * NSEC_PER_USEC)

static enum hrtimer_restart stall_storm_fn(struct hrtimer *hrtimer)
{
	struct stall_timer *s = container_of(hrtimer, struct stall_timer, hrtimer);
	u64 end = local_clock() + STORM_SPIN_NS;

	while (local_clock() < end)
		cpu_relax();
	if (!s->ms || !--s->ms) {
		complete(&s->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(hrtimer, ms_to_ktime(1));
	return HRTIMER_RESTART;
}

static void stall_storm(unsigned int ms)
{
	struct stall_timer s = { .ms = ms };

	init_completion(&s.done);
	hrtimer_init_on_stack(&s.hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_SOFT);
	s.hrtimer.function = stall_storm_fn;
	hrtimer_start(&s.hrtimer, ms_to_ktime(1), HRTIMER_MODE_REL_PINNED_SOFT);
	wait_for_completion(&s.done);
	hrtimer_cancel(&s.hrtimer);
	destroy_hrtimer_on_stack(&s.hrtimer);
}

static void stall_oops(unsigned int ms)
{
	/* Below the first page that a task can map */
	WRITE_ONCE(*(u8 *)8, 0);
}

static const struct {
	const char	*name;
	void		(*stall)(unsigned int ms);
} stall_kinds[] = {
	{ "sleep",	stall_sleep },
	{ "preempt",	stall_preempt },
	{ "irqs",	stall_irqs },
	{ "rcu",	stall_rcu },
	{ "softirq",	stall_softirq },
	{ "handler",	stall_in_handler },
	{ "storm",	stall_storm },
	{ "oops",	stall_oops },
	{ "end",	stall_end },
};

static ssize_t stall_write(struct file *file, const char __user *ubuf, size_t size, loff_t *pos)
{
	char text[32] = "", kind[16];
	unsigned int ms, i;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, ubuf, size))
		return -EFAULT;
	if (sscanf(text, "%15s %u", kind, &ms) != 2 || ms > STALL_MAX_MS)
		return -EINVAL;

	for (i = 0; i < ARRAY_SIZE(stall_kinds); i++) {
		if (strcmp(kind, stall_kinds[i].name))
			continue;
		stall_kinds[i].stall(ms);
		return size;
	}
	return -EINVAL;
}

static const struct file_operations stall_fops = {
	.owner	= THIS_MODULE,
	.write	= stall_write,
	.llseek	= noop_llseek,
};

static struct miscdevice stall_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "perf_stall",
	.fops	= &stall_fops,
	.mode	= 0200,
};

static int __init stall_init(void)
{
	int err;

	/* With this module as its owner, it could not be unloaded while it has the interrupt. */
	stall_irq = __irq_alloc_descs(-1, 1, 1, NUMA_NO_NODE, NULL, NULL);
	if (stall_irq < 0)
		return stall_irq;
	irq_set_chip_and_handler(stall_irq, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(stall_irq, IRQ_NOREQUEST | IRQ_NOAUTOEN);
	err = request_irq(stall_irq, stall_handler, 0, "perf_stall", NULL);
	if (err)
		goto err_free_desc;
	err = misc_register(&stall_device);
	if (err)
		goto err_free_irq;
	return 0;

err_free_irq:
	free_irq(stall_irq, NULL);
err_free_desc:
	irq_free_desc(stall_irq);
	return err;
}

static void __exit stall_exit(void)
{
	misc_deregister(&stall_device);
	free_irq(stall_irq, NULL);
	irq_free_desc(stall_irq);
}

module_init(stall_init);
module_exit(stall_exit);

MODULE_DESCRIPTION("stalls for the detectors of the kernel");
MODULE_LICENSE("GPL");
