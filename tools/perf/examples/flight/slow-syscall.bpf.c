// SPDX-License-Identifier: GPL-2.0
/*
 * A trigger for perf record -M: system calls that take longer than a limit
 *
 * The program writes one line to the ring buffer "reasons" for each slow system call.
 * Pin this map and pass it to --trigger bpf:PINNED_MAP. The condition can be replaced
 * by any other one: a long queue, a lock that is held for too long, an unexpected error.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* load.c sets these before it loads the program. */
__u64 limit_ns = 1000000000;
__s64 syscall_nr = -1;

struct sys_enter {
	__u64	common;
	__s64	id;
	__u64	args[6];
};

struct sys_exit {
	__u64	common;
	__s64	id;
	__s64	ret;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} reasons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} begun SEC(".maps");

SEC("tracepoint/raw_syscalls/sys_enter")
int enter(struct sys_enter *ctx)
{
	__u64 task = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();

	if (syscall_nr < 0 || ctx->id == syscall_nr)
		bpf_map_update_elem(&begun, &task, &now, BPF_ANY);
	return 0;
}

SEC("tracepoint/raw_syscalls/sys_exit")
int leave(struct sys_exit *ctx)
{
	__u64 task = bpf_get_current_pid_tgid(), *begin, took;
	char reason[96], comm[16];

	begin = bpf_map_lookup_elem(&begun, &task);
	if (!begin)
		return 0;
	took = bpf_ktime_get_ns() - *begin;
	bpf_map_delete_elem(&begun, &task);
	if (took < limit_ns)
		return 0;

	bpf_get_current_comm(comm, sizeof(comm));
	BPF_SNPRINTF(reason, sizeof(reason), "system call %d of %s (pid %d) took %d ms",
		     ctx->id, comm, task >> 32, took / 1000000);
	bpf_ringbuf_output(&reasons, reason, sizeof(reason), 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
