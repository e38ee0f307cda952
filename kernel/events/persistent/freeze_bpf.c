// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: a BPF program freezes a session
 *
 * Programs at tracepoints, kprobes and perf events can call
 * bpf_perf_persistent_freeze("NAME") in any context. The kfunc acts on the sessions of all
 * users and is therefore marked as destructive: loading a program that calls it takes
 * CAP_SYS_BOOT.
 *
 * The buffers are paused when it returns. The session is then FREEZING, and becomes FROZEN
 * after a grace period: see freeze.c. If a task is resuming the buffers at that time, it
 * pauses them again after it has resumed the last.
 */
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/cleanup.h>
#include <linux/init.h>
#include <linux/rculist.h>
#include <linux/string.h>

#include "internal.h"

__bpf_kfunc_start_defs();

/**
 * bpf_perf_persistent_freeze - freeze a session
 * @name__str: its name, a constant
 *
 * Return: 0; -EALREADY if it is frozen; -ENOENT if there is none of that name that runs
 */
__bpf_kfunc int bpf_perf_persistent_freeze(const char *name__str)
{
	struct perf_persistent_session *s;

	guard(rcu)();
	list_for_each_entry_rcu(s, &perf_persistent_sessions, entry) {
		if (!strcmp(s->name, name__str))
			return perf_persistent_freeze_now(s, PERF_PERSISTENT_FREEZE_BPF);
	}
	return -ENOENT;
}

__bpf_kfunc_end_defs();

BTF_KFUNCS_START(perf_persistent_kfuncs)
BTF_ID_FLAGS(func, bpf_perf_persistent_freeze, KF_DESTRUCTIVE)
BTF_KFUNCS_END(perf_persistent_kfuncs)

static const struct btf_kfunc_id_set perf_persistent_kfunc_set = {
	.owner	= THIS_MODULE,
	.set	= &perf_persistent_kfuncs,
};

static int __init perf_persistent_kfunc_init(void)
{
	int err;

	/* Tracepoints and perf events, and kprobes. */
	err = register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING, &perf_persistent_kfunc_set);
	return err ?: register_btf_kfunc_id_set(BPF_PROG_TYPE_KPROBE, &perf_persistent_kfunc_set);
}
late_initcall(perf_persistent_kfunc_init);
