// SPDX-License-Identifier: GPL-2.0
/*
 * Have the kernel patch its own text while another CPU executes just that.
 *
 * usage: patch-text SECONDS
 *
 * CPU 1 takes page faults; CPU 0 opens and closes software events of page faults, which
 * switches static keys on that path. Prints how many times, or dies with the machine:
 * see poke_again/poke_again.c.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define AREA		(1024 * 1024UL)

static const unsigned int events[] = {
	PERF_COUNT_SW_PAGE_FAULTS,
	PERF_COUNT_SW_PAGE_FAULTS_MIN,
	PERF_COUNT_SW_CONTEXT_SWITCHES,
	PERF_COUNT_SW_CPU_MIGRATIONS,
};

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "CPU %d", cpu);
}

static void fault(void)
{
	long page = sysconf(_SC_PAGESIZE);

	run_on(1);
	for (;;) {
		char *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			err(1, "mmap");
		for (unsigned long at = 0; at < AREA; at += page)
			p[at] = 1;
		munmap(p, AREA);
	}
}

static void open_and_close(void)
{
	int fds[ARRAY_SIZE(events)];

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof(attr),
			.config = events[i],
		};

		fds[i] = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			err(1, "perf_event_open");
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		close(fds[i]);
}

int main(int argc, char **argv)
{
	unsigned long times = 0;
	time_t end;
	pid_t pid;

	if (argc != 2 || atoi(argv[1]) <= 0)
		errx(1, "usage: patch-text SECONDS");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fault();
	}
	run_on(0);
	for (end = time(NULL) + atoi(argv[1]); time(NULL) < end; times++)
		open_and_close();
	kill(pid, SIGKILL);
	printf("switched %lu times\n", times);
	return times == 0;
}
