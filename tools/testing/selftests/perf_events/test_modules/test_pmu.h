/* SPDX-License-Identifier: GPL-2.0 */
/* What perf_test_pmu.ko and the programs that use it agree on. */
#ifndef _TEST_PMU_H
#define _TEST_PMU_H

#define TEST_PMU_DEVICE		"/dev/perf_test_pmu"

/*
 * Written to the device: an array of __u64, each done at once on the CPU where the writer
 * runs. A sample has the other bits of its word as its address (PERF_SAMPLE_ADDR). Any
 * other value is a frame that is pushed.
 */
#define TEST_PMU_POP		0ULL
#define TEST_PMU_SAMPLE		0x8000000000000000ULL

/* How long setting up an AUX area of perf_test_aux waits at the most. */
#define TEST_PMU_HOLD_MS	5000

/* Frames that the stacks of perf_test_big and perf_test_small hold. */
#define TEST_PMU_BIG_DEPTH	128
#define TEST_PMU_SMALL_DEPTH	16

#endif /* _TEST_PMU_H */
