// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of a system call that does nothing, close(-1), in nanoseconds of
 * CLOCK_MONOTONIC per call; under QEMU's icount these are instructions. What is
 * recorded of it, and how, is up to the caller.
 *
 * usage: syscall-cost FILE	appends the number to FILE, since stdout may be
 *				somebody else's
 */
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS	200000

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

int main(int argc, char *argv[])
{
	struct timespec mark;
	double start, end;
	FILE *f;
	int i;

	f = argc == 2 ? fopen(argv[1], "a") : NULL;
	if (!f) {
		perror(argc == 2 ? argv[1] : "usage: syscall-cost FILE");
		return 1;
	}

	/* For 'make profile MARKS=own', see profile-mark.c. */
	sched_rr_get_interval(0, &mark);
	start = now();
	for (i = 0; i < CALLS; i++)
		syscall(SYS_close, -1);
	end = now();
	sched_rr_get_interval(0, &mark);

	fprintf(f, "%.2f\n", (end - start) / CALLS);
	return fclose(f) ? 1 : 0;
}
