// SPDX-License-Identifier: GPL-2.0
/*
 * The program of the story whose hot function has a name that nobody can
 * mistake: it computes for as many seconds as it is told, and exits. To be built with
 * -fno-inline.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

unsigned long sink;

void story_hot_function(unsigned long rounds)
{
	unsigned long x = rounds | 1;

	while (rounds--)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	/* What is stored for others to see has to be computed. */
	__atomic_store_n(&sink, x, __ATOMIC_RELAXED);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);

	while (now() < end)
		story_hot_function(1000000);
	return 0;
}
