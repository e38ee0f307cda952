// SPDX-License-Identifier: GPL-2.0
/*
 * What events of a PMU with per-task data cost (perf_test_pmu.ko, loaded before), in
 * nanoseconds of a guest whose time counts instructions and that has one CPU, or two for
 * "exit". Prints lines "CASE NUMBER". Run as root.
 *
 *	open N ROUNDS		to open and to close a system-wide event beside N threads
 *				that sleep
 *	exit N ROUNDS		the longest that one of many processes takes to exit, from
 *				_exit() to the end of its parent's waitpid(), on CPU 1,
 *				while CPU 0 opens and closes such an event
 *	memory N RUNNING	memory of N threads that sleep, and some that run
 *	switch none|task|wide	a context switch between two processes with DEPTH frames
 *				each: no event, one that both inherit, a system-wide one
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <linux/perf_event.h>

#include "../selftests/perf_events/test_modules/test_pmu.h"

#define SWITCHES	20000
#define DEPTH		16

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static long must(long ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(1);
	}
	return ret;
}

/* A line "NAME NUMBER" of the module */
static long module_says(const char *name)
{
	char word[64];
	long val;
	FILE *f = fopen(TEST_PMU_DEVICE, "r");

	must(f ? 0 : -1, TEST_PMU_DEVICE);
	while (fscanf(f, "%63s %ld", word, &val) == 2) {
		if (!strcmp(word, name)) {
			fclose(f);
			return val;
		}
	}
	fprintf(stderr, "the module does not say %s\n", name);
	exit(1);
}

static int open_event(int pid, int type, uint64_t branches)
{
	struct perf_event_attr attr = {
		.type			= type,
		.size			= sizeof(attr),
		.sample_period		= 1,
		.sample_type		= PERF_SAMPLE_TID | PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type	= PERF_SAMPLE_BRANCH_USER | branches,
		.inherit		= pid >= 0,
	};

	return must(syscall(__NR_perf_event_open, &attr, pid, pid < 0 ? 0 : -1, -1,
			    PERF_FLAG_FD_CLOEXEC), "perf_event_open");
}

static int go, running;

static void *sleeper(void *unused)
{
	for (;;)
		syscall(__NR_futex, &go, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

static void *runner(void *unused)
{
	__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST);
	for (;;)
		sched_yield();
	return NULL;
}

static void start(int nr, void *(*fn)(void *))
{
	pthread_attr_t attr;
	pthread_t thread;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32 << 10);
	for (i = 0; i < nr; i++) {
		if (pthread_create(&thread, &attr, fn, NULL))
			must(-1, "pthread_create");
	}
	/* They have gone to sleep when they had their turn. */
	for (i = 0; i < 10; i++)
		usleep(10000);
}

static void open_cost(int threads, int rounds, int type)
{
	double open = 0, close_ = 0, t[3];
	int i, fd, other;

	start(threads, sleeper);
	/* The switch to perf's scheduling hooks waits for RCU: made once, before. */
	other = open_event(-1, type, PERF_SAMPLE_BRANCH_ANY);
	for (i = rounds > 3 ? -3 : -1; i < rounds; i++) {
		t[0] = now();
		fd = open_event(-1, type, PERF_SAMPLE_BRANCH_CALL_STACK);
		t[1] = now();
		close(fd);
		t[2] = now();
		if (i < 0)
			continue;
		open += t[1] - t[0];
		close_ += t[2] - t[1];
	}
	close(other);
	printf("open-%d %.1f\nclose-%d %.1f\n", threads, open / rounds, threads, close_ / rounds);
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

/* What the process that makes others exit shares with the one that opens events. */
struct exits {
	double begin;
	double longest;
	long nr;
	int measure;
	int stop;
};

/* Has the device open, as its children do: see eager_data.h. */
static void exit_all_the_time(struct exits *e)
{
	double took;
	int measure;
	pid_t pid;

	bind_to(1);
	must(open(TEST_PMU_DEVICE, O_WRONLY), TEST_PMU_DEVICE);
	while (!__atomic_load_n(&e->stop, __ATOMIC_SEQ_CST)) {
		measure = __atomic_load_n(&e->measure, __ATOMIC_SEQ_CST);
		pid = must(fork(), "fork");
		if (!pid) {
			e->begin = now();
			_exit(0);
		}
		must(waitpid(pid, NULL, 0), "waitpid");
		took = now() - e->begin;
		if (measure && took > e->longest)
			e->longest = took;
		e->nr += measure;
	}
	_exit(0);
}

static void exit_cost(int threads, int rounds, int type)
{
	struct exits *e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i, fd, other;
	pid_t pid;

	must(e == MAP_FAILED ? -1 : 0, "mmap");
	bind_to(0);
	/* Before there are threads, whose stacks each fork() would copy. */
	pid = must(fork(), "fork");
	if (!pid)
		exit_all_the_time(e);
	start(threads, sleeper);
	other = open_event(-1, type, PERF_SAMPLE_BRANCH_ANY);
	__atomic_store_n(&e->measure, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < rounds; i++) {
		fd = open_event(-1, type, PERF_SAMPLE_BRANCH_CALL_STACK);
		usleep(10000);
		close(fd);
		usleep(10000);
	}
	__atomic_store_n(&e->stop, 1, __ATOMIC_SEQ_CST);
	must(waitpid(pid, NULL, 0), "waitpid");
	close(other);
	printf("exit-%d %.1f\nexits-%d %ld\n", threads, e->longest, threads, e->nr);
}

static void memory(int threads, int runners, int type)
{
	long object = module_says("perf_test_big.bytes");
	int fd, i;

	start(threads, sleeper);
	start(runners, runner);
	fd = open_event(-1, type, PERF_SAMPLE_BRANCH_CALL_STACK);
	for (i = 0; i < 100; i++)
		usleep(10000);
	/* Both are in the same place. */
	printf("object %ld\nbytes %ld\n", object, module_says("perf_test_big.tasks") * object);
	close(fd);
}

static void push(void)
{
	int fd = must(open(TEST_PMU_DEVICE, O_WRONLY), TEST_PMU_DEVICE), i;
	uint64_t frames[DEPTH];

	for (i = 0; i < DEPTH; i++)
		frames[i] = i + 1;
	if (write(fd, frames, sizeof(frames)) != sizeof(frames))
		must(-1, "write");
	close(fd);
}

/* Each way of a byte through two pipes is a switch. */
static void switch_cost(const char *which, int type)
{
	int to[2], from[2], fd = -1, i;
	double begin = 0;
	char c = 0;
	pid_t pid;

	if (!strcmp(which, "task"))
		fd = open_event(0, type, PERF_SAMPLE_BRANCH_CALL_STACK);
	else if (!strcmp(which, "wide"))
		fd = open_event(-1, type, PERF_SAMPLE_BRANCH_CALL_STACK);
	must(pipe(to), "pipe");
	must(pipe(from), "pipe");
	pid = must(fork(), "fork");
	push();
	if (!pid) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			must(write(from[1], &c, 1), "write");
		_exit(0);
	}
	for (i = -200; i < SWITCHES / 2; i++) {
		if (!i)
			begin = now();
		must(write(to[1], &c, 1), "write");
		must(read(from[0], &c, 1), "read");
	}
	printf("switch-%s %.2f\n", which, (now() - begin) / SWITCHES);
	close(to[1]);
	waitpid(pid, NULL, 0);
	close(fd);
}

int main(int argc, char *argv[])
{
	int type = module_says("perf_test_big.type");

	if (argc == 4 && !strcmp(argv[1], "open"))
		open_cost(atoi(argv[2]), atoi(argv[3]), type);
	else if (argc == 4 && !strcmp(argv[1], "exit"))
		exit_cost(atoi(argv[2]), atoi(argv[3]), type);
	else if (argc == 4 && !strcmp(argv[1], "memory"))
		memory(atoi(argv[2]), atoi(argv[3]), type);
	else if (argc == 3 && !strcmp(argv[1], "switch"))
		switch_cost(argv[2], type);
	else
		return 1;
	fflush(stdout);
	/* With all threads */
	_exit(0);
}
