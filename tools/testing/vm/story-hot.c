// SPDX-License-Identifier: GPL-2.0
/*
 * The program of the story whose hot function has a name that nobody can
 * mistake: it computes for as many seconds as it is told, and exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void story_hot_function(unsigned long rounds)
{
	unsigned long x = rounds | 1;

	while (rounds--)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	sink = x;
}

__attribute__((noinline)) static double now(void)
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
