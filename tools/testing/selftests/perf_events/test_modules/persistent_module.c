// SPDX-License-Identifier: GPL-2.0
/*
 * A session that is there as long as a module: the user of the kernel API that its test
 * loads and unloads, with readers that have the session open.
 */
#include <linux/module.h>
#include <linux/perf_persistent.h>

static char *name = "test_module";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the session");

static char *events = "cpu-clock,sched:sched_switch";
module_param(events, charp, 0444);
MODULE_PARM_DESC(events, "what it records");

static unsigned long size = 64 << 10;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "bytes of each buffer");

static struct perf_persistent_session *session;

/* Stops the session and starts it anew: what is tried with faults injected. */
static int persistent_module_again(const char *val, const struct kernel_param *kp)
{
	/* While the module is loaded. */
	if (!session)
		return -EINVAL;

	perf_persistent_stop(session);
	session = perf_persistent_start(name, events, size);
	return PTR_ERR_OR_ZERO(session);
}

static const struct kernel_param_ops persistent_module_again_ops = {
	.set	= persistent_module_again,
};

module_param_cb(again, &persistent_module_again_ops, NULL, 0200);
MODULE_PARM_DESC(again, "stop the session and start it anew");

static int __init persistent_module_init(void)
{
	session = perf_persistent_start(name, events, size);
	return PTR_ERR_OR_ZERO(session);
}
module_init(persistent_module_init);

static void __exit persistent_module_exit(void)
{
	perf_persistent_stop(session);
}
module_exit(persistent_module_exit);

MODULE_DESCRIPTION("Test of perf sessions that a module starts");
MODULE_LICENSE("GPL");
