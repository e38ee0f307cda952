// SPDX-License-Identifier: GPL-2.0
/*
 * Cycles that a PMU counts, sampled by its overflow interrupt into the buffers of a
 * persistent session, which nobody has open: every record of a snapshot that is taken
 * from another CPU, while they are written, is whole, of its CPU, and no newer than the
 * one before it.
 */
#define _GNU_SOURCE

#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

#define PERIOD		1000000
#define SIZE		(64UL << 10)
#define MAX_TRIES	600

struct sample {
	struct perf_event_header	header;
	uint64_t			id;
	uint64_t			ip;
	uint32_t			pid, tid;
	uint64_t			time;
	uint32_t			cpu, res;
};

static int open_cycles(int cpu)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_HARDWARE,
		.config		= PERF_COUNT_HW_CPU_CYCLES,
		.sample_period	= PERIOD,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				  PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};

	return event_open(&attr, -1, cpu, -1, 0);
}

FIXTURE(pmu)
{
	int		fd[2];
	pid_t		busy[2];
	int64_t		id;
	struct balance	before;
};

/* Made, given away, and left alone; both CPUs have something to do. */
FIXTURE_SETUP(pmu)
{
	void *base;
	int cpu, fd;

	SKIP_WITHOUT_PERSISTENT(return);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	fd = open_cycles(0);
	if (fd < 0)
		SKIP(return, "no PMU here that samples cycles: %s", strerror(errno));
	close(fd);
	self->before = take_balance();
	for (cpu = 0; cpu < 2; cpu++) {
		self->fd[cpu] = open_cycles(cpu);
		ASSERT_LE(0, self->fd[cpu]);
		base = map(self->fd[cpu], SIZE, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		self->id = unclaim(self->fd[cpu], 0, cpu ? self->id : 0, cpu ? "" : "pmu_samples");
		ASSERT_LT(0, self->id);
		munmap(base, SIZE + PAGE);
		close(self->fd[cpu]);
		self->busy[cpu] = fork();
		if (!self->busy[cpu]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin_to_cpu(cpu);
			for (;;)
				asm volatile("" : : : "memory");
		}
	}
}

FIXTURE_TEARDOWN(pmu)
{
	int cpu;

	for (cpu = 0; cpu < 2; cpu++) {
		kill(self->busy[cpu], SIGKILL);
		waitpid(self->busy[cpu], NULL, 0);
	}
	EXPECT_BALANCE();
}

/* Copies size bytes from head on, as if the buffer did not wrap. */
static void copy_buffer(char *to, void *base, uint64_t head)
{
	struct perf_event_mmap_page *page = base;
	char *data = base + page->data_offset;
	size_t begin = head & (SIZE - 1);

	memcpy(to, data + begin, SIZE - begin);
	memcpy(to + SIZE - begin, data, begin);
}

static void check_snapshot(struct __test_metadata *_metadata, int fd, void *base, int cpu)
{
	struct perf_event_mmap_page *page = base;
	struct perf_rb_reserved res = {
		.head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
	};
	uint64_t last = UINT64_MAX, intact, off;
	unsigned int nr = 0, newer = 0;
	static char copy[SIZE];

	copy_buffer(copy, base, res.head);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, &res));
	ASSERT_EQ(SIZE, res.data_size);
	intact = res.behind < SIZE ? SIZE - res.behind : 0;
	for (off = 0; off + sizeof(struct sample) <= intact; nr++) {
		struct sample s;

		memcpy(&s, copy + off, sizeof(s));
		ASSERT_LE(sizeof(s.header), s.header.size);
		off += s.header.size;
		/* It may have been throttled. */
		if (s.header.type != PERF_RECORD_SAMPLE)
			continue;
		ASSERT_EQ(sizeof(s), s.header.size);
		ASSERT_EQ(cpu, s.cpu);
		ASSERT_NE(0, s.time);
		newer += s.time > last;
		last = s.time;
	}
	/* Most of it is intact: there is time between two samples. */
	EXPECT_LT(SIZE / sizeof(struct sample) / 2, nr);
	EXPECT_EQ(0, newer);
}

TEST_F_TIMEOUT(pmu, overflows_are_recorded, 300)
{
	int cpu, fd, i;

	for (cpu = 0; cpu < 2; cpu++) {
		struct perf_event_mmap_page *page;
		struct perf_persistent_info inf;
		uint64_t head;

		pin_to_cpu(!cpu);
		fd = reopen(self->id, cpu, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, info(fd, &inf));
		ASSERT_EQ(SIZE, inf.data_size);
		page = map(fd, SIZE, PROT_READ);
		ASSERT_NE(MAP_FAILED, page);
		/* Until it has been written over: head goes down. */
		for (i = 0; i < MAX_TRIES; i++) {
			head = -__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
			if (head > SIZE)
				break;
			usleep(100 * 1000);
		}
		TH_LOG("CPU %d: %llu bytes of samples", cpu, (unsigned long long)head);
		ASSERT_LT(SIZE, head);
		for (i = 0; i < 100; i++)
			check_snapshot(_metadata, fd, page, cpu);
		munmap(page, SIZE + PAGE);
		ASSERT_EQ(self->id, claim(fd));
		close(fd);
	}
}

TEST_HARNESS_MAIN
