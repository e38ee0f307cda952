// SPDX-License-Identifier: GPL-2.0
/*
 * Have the kernel warn, or panic, on purpose: for test-vm.sh. It never stays loaded, so that
 * it can be loaded once more.
 *
 * Parameters:
 *
 *	what	warn, warn_again, or panic
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

static char *what = "warn";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "warn, warn_again, or panic");

static noinline void splat_warn(void)
{
	WARN(1, "asked for\n");
}

/* Another place. */
static noinline void splat_warn_again(void)
{
	WARN(1, "asked for again\n");
}

static int __init splat_init(void)
{
	if (!strcmp(what, "warn"))
		splat_warn();
	else if (!strcmp(what, "warn_again"))
		splat_warn_again();
	else if (!strcmp(what, "panic"))
		panic("asked for\n");
	else
		return -EINVAL;
	return -EAGAIN;
}
module_init(splat_init);

MODULE_DESCRIPTION("Warn, or panic, on purpose");
MODULE_LICENSE("GPL");
