/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TESTS_RANDOM_NUMBER_H
#define __PERF_TESTS_RANDOM_NUMBER_H

#include <linux/types.h>

/* The same numbers for the same seed, on every machine. */
static u64 random_state;

static inline void random_seed(u64 seed)
{
	random_state = 0x9e3779b97f4a7c15ULL * (seed + 1);
}

/* Marsaglia, "Xorshift RNGs" (2003), modulo below */
static inline u64 random_number(u64 below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

#endif /* __PERF_TESTS_RANDOM_NUMBER_H */
