// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder's trigger: interrupts were off for too long
 *
 * Each CPU keeps when it has switched its interrupts off. Whether they were off for too long is
 * known when they are on again. The idle task is left out: it halts with interrupts off.
 *
 * The types of the kernel are not needed, so that this works without BTF.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "flight_hit.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} off_since SEC(".maps");

/* The recorder, in the initial pid namespace */
__u32 self_tgid;

SEC("syscall")
int begin(void *ctx)
{
	self_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

SEC("raw_tp/irq_disable")
int irqoff_disable(void *ctx)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&off_since, &zero);

	if (since)
		*since = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/irq_enable")
int irqoff_enable(void *ctx)
{
	__u32 zero = 0;
	__u64 *since = bpf_map_lookup_elem(&off_since, &zero), pid_tgid, value;
	struct flight_hit *hit;

	if (!since || !*since)
		return 0;
	value = bpf_ktime_get_ns() - *since;
	*since = 0;
	if (value < over)
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	if (!(__u32)pid_tgid || pid_tgid >> 32 == self_tgid || !count_hit())
		return 0;
	hit = begin_hit(value, /*waits=*/false);
	if (!hit)
		return 0;
	hit->pid = pid_tgid;
	hit->cgroup = bpf_get_current_cgroup_id();
	bpf_get_current_comm(hit->comm, sizeof(hit->comm));
	bpf_ringbuf_submit(hit, 0);
	return 0;
}
