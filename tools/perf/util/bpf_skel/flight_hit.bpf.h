/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BPF_SKEL_FLIGHT_HIT_BPF_H
#define __PERF_BPF_SKEL_FLIGHT_HIT_BPF_H

/*
 * How the BPF programs of a flight recorder report hits
 *
 * Each hit is counted in @hits, by an atomic addition, so that the count is exact. The ring
 * buffer gets at most one record per FLIGHT_HIT_INTERVAL. The recorder is woken by it, and
 * reads both. @sent tells it whether a record is still to come.
 */
#include "flight_hit.h"

#define CLOCK_MONOTONIC	1
#define CLOCK_BOOTTIME	7
#define CLOCK_TAI	11

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} records SEC(".maps");

/* What the user has set */
const volatile __u64 over;

/* The clock of what is recorded, or -1 */
int clockid = -1;

__u64 hits;
__u64 sent;
__u64 sent_at;

static __always_inline __u64 record_time(void)
{
	switch (clockid) {
	case CLOCK_MONOTONIC:
		return bpf_ktime_get_ns();
	case CLOCK_BOOTTIME:
		return bpf_ktime_get_boot_ns();
	case CLOCK_TAI:
		return bpf_ktime_get_tai_ns();
	default:
		return 0;
	}
}

/* Count a hit. Return: whether a record of it goes out. */
static __always_inline bool count_hit(void)
{
	__u64 now = bpf_ktime_get_ns(), last = sent_at;
	bool goes;

	goes = (!last || now - last >= FLIGHT_HIT_INTERVAL) &&
	       __sync_val_compare_and_swap(&sent_at, last, now) == last;
	/* The recorder reads hits first: it never misses the record of one that it has counted. */
	if (goes)
		__sync_fetch_and_add(&sent, 1);
	__sync_fetch_and_add(&hits, 1);
	return goes;
}

static __always_inline struct flight_hit *begin_hit(__u64 value, bool waits)
{
	struct flight_hit *hit = bpf_ringbuf_reserve(&records, sizeof(*hit), 0);

	if (!hit) {
		__sync_fetch_and_add(&sent, -1);
		return NULL;
	}
	hit->at = record_time();
	hit->value = value;
	hit->cpu = bpf_get_smp_processor_id();
	hit->waits = waits;
	hit->at_least = 0;
	return hit;
}

#endif /* __PERF_BPF_SKEL_FLIGHT_HIT_BPF_H */
