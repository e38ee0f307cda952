// SPDX-License-Identifier: GPL-2.0
/*
 * Freezes persistent sessions as the kernel itself does: for tests of races, which need that
 * at a moment of their own, and many times.
 *
 * Parameters, under /sys/module/persistent_cause/parameters/:
 *
 *	lockup	what is written there has the watchdog report a lockup, which freezes all
 *		sessions if kernel.perf_persistent_freeze names it
 *	bpf	the session whose name is written there is frozen as by a BPF program
 *
 * Both happen with interrupts off, as they may. Neither function is exported: a kprobe tells
 * where it is. Without it, the parameter cannot be written (EOPNOTSUPP).
 */
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

/* PERF_PERSISTENT_NAME_LEN, which not all kernels know that this is built for */
#define CAUSE_NAME_LEN	64

static void (*cause_lockup)(void);
static int (*cause_bpf)(const char *name);

static int cause_set_lockup(const char *val, const struct kernel_param *kp)
{
	unsigned long flags;

	if (!cause_lockup)
		return -EOPNOTSUPP;

	local_irq_save(flags);
	cause_lockup();
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops cause_lockup_ops = {
	.set	= cause_set_lockup,
};

module_param_cb(lockup, &cause_lockup_ops, NULL, 0200);
MODULE_PARM_DESC(lockup, "have a lockup reported");

static int cause_set_bpf(const char *val, const struct kernel_param *kp)
{
	char name[CAUSE_NAME_LEN];
	unsigned long flags;
	int err;

	if (!cause_bpf)
		return -EOPNOTSUPP;

	if (strscpy(name, val, sizeof(name)) < 0)
		return -E2BIG;

	local_irq_save(flags);
	err = cause_bpf(strim(name));
	local_irq_restore(flags);
	return err;
}

static const struct kernel_param_ops cause_bpf_ops = {
	.set	= cause_set_bpf,
};

module_param_cb(bpf, &cause_bpf_ops, NULL, 0200);
MODULE_PARM_DESC(bpf, "the session to freeze");

static void *cause_find(const char *function)
{
	struct kprobe probe = { .symbol_name = function };
	void *addr;

	if (register_kprobe(&probe))
		return NULL;
	addr = probe.addr;
	unregister_kprobe(&probe);
	return addr;
}

static int __init cause_init(void)
{
	cause_lockup = cause_find("perf_persistent_lockup");
	cause_bpf = cause_find("bpf_perf_persistent_freeze");
	return 0;
}
module_init(cause_init);

static void __exit cause_exit(void)
{
}
module_exit(cause_exit);

MODULE_DESCRIPTION("Causes of the kernel to freeze persistent sessions");
MODULE_LICENSE("GPL");
