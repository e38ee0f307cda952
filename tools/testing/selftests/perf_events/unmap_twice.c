// SPDX-License-Identifier: GPL-2.0
/*
 * Two processes that unmap the ring buffer of one event at the same moment give back all
 * that was charged for it: the user may map buffers up to the limit again and again. And a
 * buffer is charged once, however often it is mapped.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "../kselftest_harness.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

/* A user whose locked memory nobody else uses. */
#define OTHER_USER	65530

/* A kernel that loses a charge does so within some ten. */
#define ROUNDS		300

/* How far apart the two may be, in turns of a loop. */
#define MAX_SKEW	200

/**
 * struct rendezvous - shared by the two processes
 * @arrived: how often each has been ready to unmap
 * @failed: errno of an mmap() that failed, or 0
 */
struct rendezvous {
	unsigned int	arrived[2];
	int		failed;
};

static int open_event(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};

	return syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
}

/* The largest buffer that fits into the limit, with its header page: two do not. */
static size_t buffer_size(void)
{
	long page = sysconf(_SC_PAGESIZE), limit = 0, pages = 1;
	FILE *f = fopen("/proc/sys/kernel/perf_event_mlock_kb", "r");

	if (!f || fscanf(f, "%ld", &limit) != 1)
		limit = 0;
	if (f)
		fclose(f);
	limit = limit * 1024 / page * sysconf(_SC_NPROCESSORS_ONLN);
	while (2 * pages + 1 <= limit)
		pages *= 2;
	return (pages + 1) * page;
}

/* Wait until the other side is there, too, as often as this one. */
static bool meet(struct rendezvous *r, int side, unsigned int round)
{
	__atomic_store_n(&r->arrived[side], round, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&r->arrived[!side], __ATOMIC_SEQ_CST) < round) {
		if (__atomic_load_n(&r->failed, __ATOMIC_SEQ_CST))
			return false;
	}
	return true;
}

/* Return: rounds that went well. */
static unsigned int map_and_unmap(struct rendezvous *r, int side, int fd, size_t size)
{
	unsigned int round, seed = side + 1;
	void *base;

	for (round = 1; round <= ROUNDS; round++) {
		if (!meet(r, side, 2 * round - 1))
			break;
		base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED) {
			__atomic_store_n(&r->failed, errno, __ATOMIC_SEQ_CST);
			break;
		}
		if (!meet(r, side, 2 * round))
			break;
		for (int skew = rand_r(&seed) % MAX_SKEW; skew > 0; skew--)
			__asm__ __volatile__("" ::: "memory");
		munmap(base, size);
	}
	return round - 1;
}

/* Without CAP_IPC_LOCK and RLIMIT_MEMLOCK, pages beyond the limit are refused. */
static int become_other(void)
{
	struct rlimit none = { 0, 0 };

	if (setrlimit(RLIMIT_MEMLOCK, &none) || setgid(OTHER_USER) || setuid(OTHER_USER))
		return -1;
	return prctl(PR_SET_DUMPABLE, 1);
}

TEST(accounting)
{
	size_t size = buffer_size();
	struct rendezvous *r;
	unsigned int rounds;
	pid_t pid;
	int fd;

	if (geteuid())
		SKIP(return, "takes root, to become a user without privileges");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "takes two CPUs");
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, r);
	ASSERT_EQ(0, become_other());
	fd = open_event();
	if (fd < 0 && errno == EACCES)
		SKIP(return, "kernel.perf_event_paranoid keeps users from opening events");
	ASSERT_LE(0, fd);

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		map_and_unmap(r, 1, fd, size);
		_exit(0);
	}
	rounds = map_and_unmap(r, 0, fd, size);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, r->failed) {
		TH_LOG("mmap() failed after %u rounds: what was unmapped is still charged", rounds);
	}
	EXPECT_EQ(ROUNDS, rounds);
	close(fd);
}

/* A buffer that fills the limit can be mapped twice. This takes no second process. */
TEST(charged_once)
{
	size_t size = buffer_size();
	void *bases[2];
	int fd, i, n;

	if (geteuid())
		SKIP(return, "takes root, to become a user without privileges");
	ASSERT_EQ(0, become_other());
	fd = open_event();
	if (fd < 0 && errno == EACCES)
		SKIP(return, "kernel.perf_event_paranoid keeps users from opening events");
	ASSERT_LE(0, fd);
	for (i = 0; i < 4; i++) {
		for (n = 0; n < 2; n++) {
			bases[n] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			ASSERT_NE(MAP_FAILED, bases[n]) {
				TH_LOG("mapping %d of round %d: errno %d", n + 1, i + 1, errno);
			}
		}
		munmap(bases[i % 2], size);
		munmap(bases[!(i % 2)], size);
	}
	close(fd);
}

TEST_HARNESS_MAIN
