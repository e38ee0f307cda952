// SPDX-License-Identifier: GPL-2.0
/*
 * The cost of a context switch between two processes, and of a process that is made
 * and exits at once, in nanoseconds of CLOCK_MONOTONIC; under QEMU's icount these are
 * instructions. Needs one CPU, or to be bound to one.
 *
 * usage: switch-cost switch|fork FILE	appends the number to FILE, since stdout may be
 *					somebody else's
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SWITCHES	40000
#define FORKS		1000

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Takes what comes, and sends it back, until there is no more. */
static void echo(int in, int out)
{
	char c;

	while (read(in, &c, 1) == 1) {
		if (write(out, &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Each way is a switch. */
static double switch_cost(void)
{
	int to[2], from[2], i;
	char c = 0;
	double start, end;
	pid_t pid;

	if (pipe(to) || pipe(from))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(to[1]);
		echo(to[0], from[1]);
	}

	start = now();
	for (i = 0; i < SWITCHES / 2; i++) {
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			die("pipe");
	}
	end = now();

	close(to[1]);
	waitpid(pid, NULL, 0);
	return (end - start) / SWITCHES;
}

static int compare(const void *l, const void *r)
{
	double a = *(const double *)l, b = *(const double *)r;

	return (a > b) - (a < b);
}

/* The median: now and then there is a new slab, or RCU's callbacks. */
static double fork_cost(void)
{
	static double cost[FORKS];
	double start;
	pid_t pid;
	int i;

	for (i = 0; i < FORKS; i++) {
		start = now();
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		cost[i] = now() - start;
	}
	qsort(cost, FORKS, sizeof(cost[0]), compare);
	return cost[FORKS / 2];
}

int main(int argc, char *argv[])
{
	double cost;
	FILE *f;

	if (argc != 3) {
		fprintf(stderr, "usage: switch-cost switch|fork FILE\n");
		return 1;
	}
	cost = strcmp(argv[1], "fork") ? switch_cost() : fork_cost();

	f = fopen(argv[2], "a");
	if (!f)
		die(argv[2]);
	fprintf(f, "%.2f\n", cost);
	return fclose(f) ? 1 : 0;
}
