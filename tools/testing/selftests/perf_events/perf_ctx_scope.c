// SPDX-License-Identifier: GPL-2.0
/*
 * Per-task PMU data goes to the tasks that a system-wide event can see: those that run on
 * its CPU, and belong to its cgroup. They give it back when they have left. A task that
 * comes back to a CPU with an event does not have the stack of its last visit.
 *
 * The PMU is perf_test_big of perf_test_pmu.ko, whose path is in TEST_PMU_MODULE. How many
 * tasks have data is what the kernel says in sysfs.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "test_modules/test_pmu.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
#define BUFFER	0x100000UL
#define SYSFS	"/sys/kernel/perf_ctx_data/"
#define CGROUP	"/sys/fs/cgroup/perf_ctx_scope"
#define INSIDE	10
#define OUTSIDE	40
#define WRITERS	120

/* In a pipe of one page, which they fill: how a task wakes up and stays in the kernel */
#define WRITTEN	0x8000

static int event_open(int pid, int cpu, unsigned long flags)
{
	char text[1024] = "", *line;
	struct perf_event_attr attr = {
		.size			= sizeof(attr),
		.sample_period		= 1,
		.sample_type		= PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
					  PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type	= PERF_SAMPLE_BRANCH_USER |
					  PERF_SAMPLE_BRANCH_CALL_STACK,
	};
	int fd = open(TEST_PMU_DEVICE, O_RDONLY | O_CLOEXEC);

	if (read(fd, text, sizeof(text) - 1) <= 0)
		return -1;
	close(fd);
	line = strstr(text, "perf_test_big.type ");
	if (!line)
		return -1;
	attr.type = atoi(strchr(line, ' '));
	return syscall(__NR_perf_event_open, &attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

static long sysfs(const char *name)
{
	char path[64];
	long val = -1;
	FILE *f;

	snprintf(path, sizeof(path), SYSFS "%s", name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld", &val) != 1)
		val = -1;
	if (f)
		fclose(f);
	return val;
}

static void pin_to_cpu(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/*
 * The kernel searches for data that is out of scope by a deferrable timer: it waits for a
 * tick of the CPU on which it is. Have one on each CPU that is idle.
 */
static void wake_cpus(void)
{
	struct timespec begin, now;
	int cpu;

	for (cpu = 0; cpu < 2; cpu++) {
		pin_to_cpu(0, cpu);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		do {
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while ((now.tv_sec - begin.tv_sec) * 1000000000L +
			 now.tv_nsec - begin.tv_nsec < 20000000);
	}
}

/*
 * Waits up to 60 s for a number of tasks from @low to @high, and returns the last. The
 * caller is on CPU 1. It may be one of these tasks itself, as it is on CPU 0 at times.
 */
static long tasks_with_data(long low, long high)
{
	long nr = -1;
	int tries;

	for (tries = 0; tries < 600; tries++) {
		nr = sysfs("tasks");
		if (nr >= low && nr <= high)
			break;
		usleep(100000);
		wake_cpus();
	}
	return nr;
}

/* A child that goes to user space every few milliseconds; it holds no event. */
static pid_t start(int cpu, const char *cgroup)
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (fd = 3; fd < 512; fd++)
		close(fd);
	if (cgroup && write_text(cgroup, "0"))
		_exit(1);
	if (cpu >= 0)
		pin_to_cpu(0, cpu);
	for (;;)
		usleep(20000);
}

FIXTURE(ctx_scope)
{
	pid_t	pids[INSIDE + OUTSIDE];
	int	nr;
	long	others;
};

FIXTURE_SETUP(ctx_scope)
{
	if (geteuid())
		SKIP(return, "must be root");
	if (access(getenv("TEST_PMU_MODULE") ?: "", R_OK))
		SKIP(return, "TEST_PMU_MODULE is not the path of the module");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	unload_module("perf_test_pmu");
	ASSERT_EQ(0, load_module(getenv("TEST_PMU_MODULE"), ""));
	/* What else runs here is outside, and stays there. */
	pin_to_cpu(0, 1);
}

FIXTURE_TEARDOWN(ctx_scope)
{
	int tries, status;

	EXPECT_EQ(0, tasks_with_data(0, 0));
	while (self->nr--) {
		kill(self->pids[self->nr], SIGKILL);
		waitpid(self->pids[self->nr], &status, 0);
	}
	for (tries = 0; tries < 500; tries++) {
		if (!unload_module("perf_test_pmu"))
			break;
		usleep(10000);
	}
	EXPECT_GT(500, tries);
	for (tries = 0; tries < 500 && rmdir(CGROUP) && errno == EBUSY; tries++)
		usleep(10000);
}

/*
 * An event of CPU 0: data for the tasks that run there, not for those of CPU 1. When they
 * have moved to CPU 1 they give it back, and get it again when they return.
 */
TEST_F(ctx_scope, cpu)
{
	int i, fd, round;
	long nr;

	for (self->nr = 0; self->nr < INSIDE + OUTSIDE; self->nr++)
		self->pids[self->nr] = start(self->nr < INSIDE ? 0 : 1, NULL);
	usleep(200000);
	fd = event_open(-1, 0, 0);
	ASSERT_LE(0, fd);
	for (round = 0; round < 2; round++) {
		nr = tasks_with_data(INSIDE, INSIDE + OUTSIDE / 2);
		usleep(200000);
		TH_LOG("%ld tasks have data; %d run on CPU 0, %d on CPU 1", nr, INSIDE, OUTSIDE);
		EXPECT_LE(INSIDE, sysfs("tasks"));
		EXPECT_GT(INSIDE + OUTSIDE / 2, sysfs("tasks"));
		EXPECT_LT(0, sysfs("bytes"));
		for (i = 0; i < INSIDE; i++)
			pin_to_cpu(self->pids[i], 1);
		nr = tasks_with_data(0, INSIDE / 2);
		TH_LOG("%ld tasks have data when they have moved", nr);
		EXPECT_GT(INSIDE / 2, nr);
		for (i = 0; i < INSIDE; i++)
			pin_to_cpu(self->pids[i], 0);
	}
	close(fd);
}

/* Closing one of two events: what only that one needed is given back. */
TEST_F(ctx_scope, close_one)
{
	int fds[2], cpu;
	long nr;

	for (self->nr = 0; self->nr < INSIDE + OUTSIDE; self->nr++)
		self->pids[self->nr] = start(self->nr < INSIDE ? 0 : 1, NULL);
	for (cpu = 0; cpu < 2; cpu++) {
		fds[cpu] = event_open(-1, cpu, 0);
		ASSERT_LE(0, fds[cpu]);
	}
	nr = tasks_with_data(INSIDE + OUTSIDE, 1000);
	EXPECT_LE(INSIDE + OUTSIDE, nr);
	close(fds[1]);
	nr = tasks_with_data(INSIDE, INSIDE + OUTSIDE / 2);
	TH_LOG("%ld tasks have data when the event of CPU 1 was closed", nr);
	EXPECT_LE(INSIDE, nr);
	EXPECT_GT(INSIDE + OUTSIDE / 2, nr);
	close(fds[0]);
}

/* Events of a cgroup: data for the tasks in it and below it. */
TEST_F(ctx_scope, cgroup)
{
	int cgroup, fds[2], cpu, i;
	char text[16];
	long nr;

	/* No cgroup below the root has events before the first controller is on. */
	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		ASSERT_EQ(0, write_text("/sys/fs/cgroup/cgroup.subtree_control", "+pids"));
	rmdir(CGROUP "/below");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	ASSERT_EQ(0, mkdir(CGROUP "/below", 0755));
	cgroup = open(CGROUP, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, cgroup);
	for (self->nr = 0; self->nr < INSIDE + OUTSIDE; self->nr++) {
		self->pids[self->nr] = start(-1, self->nr >= INSIDE ? NULL :
					     self->nr % 2 ? CGROUP "/cgroup.procs" :
					     CGROUP "/below/cgroup.procs");
	}
	usleep(200000);
	for (cpu = 0; cpu < 2; cpu++) {
		fds[cpu] = event_open(cgroup, cpu, PERF_FLAG_PID_CGROUP);
		ASSERT_LE(0, fds[cpu])
			TH_LOG("an event of the cgroup: %s", strerror(errno));
	}
	nr = tasks_with_data(INSIDE, INSIDE);
	usleep(500000);
	TH_LOG("%ld tasks have data; %d are in the cgroup, %d are not", nr, INSIDE, OUTSIDE);
	EXPECT_EQ(INSIDE, sysfs("tasks"));

	for (i = 0; i < INSIDE; i++) {
		snprintf(text, sizeof(text), "%d", self->pids[i]);
		EXPECT_EQ(0, write_text("/sys/fs/cgroup/cgroup.procs", text));
	}
	EXPECT_EQ(0, tasks_with_data(0, 0));
	/* The cgroup can go while its events stay. */
	EXPECT_EQ(0, rmdir(CGROUP "/below"));
	EXPECT_EQ(0, rmdir(CGROUP));
	close(cgroup);
	usleep(200000);
	close(fds[0]);
	close(fds[1]);
}

static uint64_t frame_of(pid_t tid, unsigned int level)
{
	return (uint64_t)tid << 16 | level;
}

static void stack_do(int dev, uint64_t word)
{
	if (write(dev, &word, sizeof(word)) != sizeof(word))
		abort();
}

/* Lets go of the CPU, so that what it has there is saved. */
static void move_to(int cpu)
{
	usleep(1000);
	pin_to_cpu(0, cpu);
	usleep(1000);
}

/*
 * Pushes frames on CPU 0, where an event sees them, returns from all of them on CPU 1,
 * and comes back. A sample then holds what was pushed since, not what was returned from.
 */
TEST_F(ctx_scope, no_stale_stack)
{
	int dev = open(TEST_PMU_DEVICE, O_RDWR | O_CLOEXEC), round, fd, i;
	struct perf_event_mmap_page *page;
	pid_t tid = getpid();
	uint64_t tail = 0, nr, from;
	unsigned int samples = 0;
	char *data;

	ASSERT_LE(0, dev);
	fd = event_open(-1, 0, 0);
	ASSERT_LE(0, fd);
	page = mmap(NULL, BUFFER + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)page);
	data = (char *)page + page->data_offset;

	move_to(0);
	for (round = 0; round < 50; round++) {
		for (i = 1; i <= 20; i++)
			stack_do(dev, frame_of(tid, i));
		/* Saved and restored: still there. */
		usleep(1000);
		stack_do(dev, TEST_PMU_SAMPLE | 20);
		move_to(1);
		for (i = 0; i < 20; i++)
			stack_do(dev, TEST_PMU_POP);
		move_to(0);
		stack_do(dev, frame_of(tid, 1));
		stack_do(dev, TEST_PMU_SAMPLE | 1);
		stack_do(dev, TEST_PMU_POP);
	}
	for (; tail < __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE); samples++) {
		struct {
			struct perf_event_header hdr;
			uint32_t	pid, tid;
			uint64_t	addr;
			uint64_t	nr;
			struct perf_branch_entry entries[];
		} *s = (void *)(data + tail);

		tail += s->hdr.size;
		ASSERT_EQ(PERF_RECORD_SAMPLE, s->hdr.type);
		nr = s->nr;
		/* The first slice may be short. */
		if (samples > 2)
			EXPECT_EQ(s->addr & 0xffff, nr);
		for (i = 0; i < (int)nr; i++) {
			from = s->entries[i].from;
			EXPECT_EQ(frame_of(tid, (s->addr & 0xffff) - i), from);
		}
	}
	EXPECT_EQ(100, samples);
	munmap(page, BUFFER + PAGE);
	close(fd);
	close(dev);
}

/* A pipe of 4096 bytes: its writer does not return to user space any more. */
static bool becomes_full(int fd)
{
	int bytes = 0, i;

	for (i = 0; i < 6000; i++) {
		if (!ioctl(fd, FIONREAD, &bytes) && bytes == 4096)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * Many tasks that are scheduled in, and sleep again before they come to user space, hold
 * the nodes of their CPU. Tasks that come later get data all the same.
 */
TEST_F(ctx_scope, many_pending)
{
	static char bytes[WRITTEN];
	int pipes[WRITERS][2], fds[2], i, cpu, round, status;
	pid_t writers[WRITERS];
	char page[4096];
	long before, nr;

	for (i = 0; i < WRITERS; i++) {
		ASSERT_EQ(0, pipe(pipes[i]));
		fcntl(pipes[i][1], F_SETPIPE_SZ, 4096);
		writers[i] = fork();
		if (!writers[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin_to_cpu(0, 0);
			_exit(write(pipes[i][1], bytes, sizeof(bytes)) != sizeof(bytes));
		}
		close(pipes[i][1]);
	}
	for (i = 0; i < WRITERS; i++)
		ASSERT_TRUE(becomes_full(pipes[i][0]));
	for (cpu = 0; cpu < 2; cpu++) {
		fds[cpu] = event_open(-1, cpu, 0);
		ASSERT_LE(0, fds[cpu]);
	}
	/* Each writer is scheduled in, and sleeps again within write(). */
	for (round = 0; round < 4; round++) {
		for (i = 0; i < WRITERS; i++)
			ASSERT_LT(0, read(pipes[i][0], page, sizeof(page)));
		usleep(200000);
	}
	before = sysfs("tasks");
	TH_LOG("%ld tasks have data with %d tasks asleep in the kernel", before, WRITERS);
	EXPECT_GT(WRITERS / 2, before);
	for (self->nr = 0; self->nr < INSIDE + OUTSIDE; self->nr++)
		self->pids[self->nr] = start(0, NULL);
	nr = tasks_with_data(before + INSIDE + OUTSIDE, 1000);
	TH_LOG("%ld have data with %d more tasks", nr, INSIDE + OUTSIDE);
	EXPECT_LE(before + INSIDE + OUTSIDE, nr);
	/* Half of them get to user space now, half are gone, with their nodes. */
	for (i = 0; i < WRITERS; i += 2) {
		kill(writers[i], SIGKILL);
		close(pipes[i][0]);
	}
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(0, tasks_with_data(0, 0));
	for (i = 0; i < WRITERS; i++) {
		if (i % 2) {
			while (read(pipes[i][0], page, sizeof(page)) > 0)
				;
			close(pipes[i][0]);
		}
		EXPECT_EQ(writers[i], waitpid(writers[i], &status, 0));
		EXPECT_EQ(i % 2 ? 0 : SIGKILL, status);
	}
}

TEST_HARNESS_MAIN
