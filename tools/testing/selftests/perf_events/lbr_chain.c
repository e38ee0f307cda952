// SPDX-License-Identifier: GPL-2.0
/*
 * main() calls f1(), that f2(), that f3(), where the time goes: for lbr_call_stacks.sh.
 * Prints how often it was switched.
 *
 * Built as the kselftests are, without optimization: each function is called, and has a frame.
 *
 * usage: lbr_chain SECONDS
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static void f3(void)
{
	unsigned int i;

	for (i = 0; i < 50000; i++)
		__asm__ volatile("" ::: "memory");
}

static void f2(void)
{
	f3();
}

static void f1(void)
{
	f2();
}

int main(int argc, char *argv[])
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
	struct rusage usage;
	int i;

	do {
		for (i = 0; i < 1000; i++)
			f1();
	} while (time(NULL) < end);
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld\n", usage.ru_nvcsw + usage.ru_nivcsw);
	return 0;
}
