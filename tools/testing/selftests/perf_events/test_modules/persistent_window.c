// SPDX-License-Identifier: GPL-2.0
/*
 * Lets two operations meet: for tests of races that are too narrow to be hit by chance.
 *
 * Parameters, under /sys/module/persistent_window/parameters/:
 *
 *	left, right	COMM:FUNCTION: a task of that name (any, if it is "*") that enters
 *			FUNCTION is held up until another enters the other one. Empty: none.
 *	armed		what is written there lets each of them hold up one more
 *	waiting		who waits for the other just now: 1 left, 2 right
 *	met		how often the two were there at once, since left was written
 *	wait_us		how long the one waits for the other, at the most
 *	fail		COMM:FUNCTION: FUNCTION does what it does, and returns -ENOMEM to a
 *			task of that name. Empty: none.
 *
 * It is held up in the handler of a kprobe, spinning, with preemption off and whatever locks
 * it has: where the other needs one of them, or a grace period of RCU to get there, they
 * cannot meet, and both go on after that time. Let that one come first, see "waiting".
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

enum window_state {
	WINDOW_IDLE,
	WINDOW_ARMED,
	/* It waits for the other one. */
	WINDOW_HERE,
	/* It goes on. */
	WINDOW_PASSED,
};

/**
 * struct window_side - one of the two
 * @probe: at the function's entry
 * @spec: COMM:FUNCTION; COMM ends with a NUL once the probe is there
 * @function: in @spec, or NULL if there is no probe
 * @state: see enum window_state
 */
struct window_side {
	struct kprobe	probe;
	char		spec[TASK_COMM_LEN + KSYM_NAME_LEN];
	char		*function;
	atomic_t	state;
};

static struct window_side window_sides[2];
static atomic_t window_met;
/* Counted since they were armed: both may find the other there. */
static atomic_t window_counted;

static unsigned int wait_us = 50000;
module_param(wait_us, uint, 0644);
MODULE_PARM_DESC(wait_us, "how long the one waits for the other");

static bool window_is_me(const char *comm)
{
	return !strcmp(comm, "*") || !strcmp(comm, current->comm);
}

/* Copy COMM:FUNCTION to @spec and split it. Return: FUNCTION, NULL if it is empty, or an error. */
static char *window_split(char *spec, size_t size, const char *val)
{
	char *function;

	if (strscpy(spec, val, size) < 0)
		return ERR_PTR(-E2BIG);
	strim(spec);
	if (!*spec)
		return NULL;

	function = strchr(spec, ':');
	if (!function)
		return ERR_PTR(-EINVAL);
	*function++ = '\0';
	return function;
}

static int window_enter(struct kprobe *probe, struct pt_regs *regs)
{
	struct window_side *me = container_of(probe, struct window_side, probe);
	struct window_side *other = &window_sides[me == window_sides];
	u64 until = ktime_get_mono_fast_ns() + READ_ONCE(wait_us) * (u64)NSEC_PER_USEC;

	if (!window_is_me(me->spec) ||
	    atomic_cmpxchg(&me->state, WINDOW_ARMED, WINDOW_HERE) != WINDOW_ARMED)
		return 0;

	/* The second one lets the first one go. */
	if (atomic_cmpxchg(&other->state, WINDOW_HERE, WINDOW_PASSED) == WINDOW_HERE) {
		if (!atomic_xchg(&window_counted, 1))
			atomic_inc(&window_met);
		return 0;
	}

	while (ktime_get_mono_fast_ns() < until && atomic_read(&me->state) == WINDOW_HERE)
		udelay(1);
	atomic_set(&me->state, WINDOW_PASSED);
	return 0;
}

static void window_remove(struct window_side *side)
{
	if (side->function)
		unregister_kprobe(&side->probe);
	side->function = NULL;
	atomic_set(&side->state, WINDOW_IDLE);
}

/* The parameters' lock is held. */
static int window_set(const char *val, const struct kernel_param *kp)
{
	struct window_side *side = kp->arg;
	char *function;
	int err;

	window_remove(side);
	if (side == window_sides)
		atomic_set(&window_met, 0);

	function = window_split(side->spec, sizeof(side->spec), val);
	if (IS_ERR_OR_NULL(function))
		return PTR_ERR_OR_ZERO(function);

	side->probe = (struct kprobe) {
		.symbol_name	= function,
		.pre_handler	= window_enter,
	};
	err = register_kprobe(&side->probe);
	if (!err)
		side->function = function;
	return err;
}

static int window_get(char *buf, const struct kernel_param *kp)
{
	struct window_side *side = kp->arg;

	return side->function ? sysfs_emit(buf, "%s:%s\n", side->spec, side->function) :
				sysfs_emit(buf, "\n");
}

static const struct kernel_param_ops window_ops = {
	.set	= window_set,
	.get	= window_get,
};

module_param_cb(left, &window_ops, &window_sides[0], 0600);
MODULE_PARM_DESC(left, "COMM:FUNCTION that waits for right");
module_param_cb(right, &window_ops, &window_sides[1], 0600);
MODULE_PARM_DESC(right, "COMM:FUNCTION that waits for left");

/* What is to fail. */
static char window_fail_spec[TASK_COMM_LEN + KSYM_NAME_LEN];
static struct kretprobe window_fail_probe;
static bool window_fails;

static int window_fail_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (window_is_me(window_fail_spec))
		regs_set_return_value(regs, -ENOMEM);
	return 0;
}

static void window_fail_remove(void)
{
	if (window_fails)
		unregister_kretprobe(&window_fail_probe);
	window_fails = false;
}

/* The parameters' lock is held. */
static int window_fail_set(const char *val, const struct kernel_param *kp)
{
	char *function;
	int err;

	window_fail_remove();
	function = window_split(window_fail_spec, sizeof(window_fail_spec), val);
	if (IS_ERR_OR_NULL(function))
		return PTR_ERR_OR_ZERO(function);

	window_fail_probe = (struct kretprobe) {
		.kp.symbol_name	= function,
		.handler	= window_fail_return,
	};
	err = register_kretprobe(&window_fail_probe);
	window_fails = !err;
	return err;
}

static const struct kernel_param_ops window_fail_ops = {
	.set	= window_fail_set,
};

module_param_cb(fail, &window_fail_ops, NULL, 0200);
MODULE_PARM_DESC(fail, "COMM:FUNCTION that returns -ENOMEM");

static int window_arm(const char *val, const struct kernel_param *kp)
{
	int i;

	atomic_set(&window_counted, 0);
	for (i = 0; i < ARRAY_SIZE(window_sides); i++)
		atomic_set(&window_sides[i].state, WINDOW_ARMED);
	return 0;
}

static const struct kernel_param_ops window_arm_ops = {
	.set	= window_arm,
};

module_param_cb(armed, &window_arm_ops, NULL, 0200);
MODULE_PARM_DESC(armed, "let each hold up one more");

static int window_get_met(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&window_met));
}

static const struct kernel_param_ops window_met_ops = {
	.get	= window_get_met,
};

module_param_cb(met, &window_met_ops, NULL, 0400);
MODULE_PARM_DESC(met, "how often the two met");

static int window_get_waiting(char *buf, const struct kernel_param *kp)
{
	int i, waiting = 0;

	for (i = 0; i < ARRAY_SIZE(window_sides); i++)
		waiting |= (atomic_read(&window_sides[i].state) == WINDOW_HERE) << i;
	return sysfs_emit(buf, "%d\n", waiting);
}

static const struct kernel_param_ops window_waiting_ops = {
	.get	= window_get_waiting,
};

module_param_cb(waiting, &window_waiting_ops, NULL, 0400);
MODULE_PARM_DESC(waiting, "who waits for the other");

static int __init window_init(void)
{
	return 0;
}
module_init(window_init);

static void __exit window_exit(void)
{
	window_remove(&window_sides[0]);
	window_remove(&window_sides[1]);
	window_fail_remove();
}
module_exit(window_exit);

MODULE_DESCRIPTION("Lets two operations of the kernel meet");
MODULE_LICENSE("GPL");
