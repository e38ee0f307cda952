// SPDX-License-Identifier: GPL-2.0
/*
 * The ring buffer of a CPU is written by that CPU alone.
 *
 * exec removes the events that are marked remove_on_exec, on whichever CPU the
 * task runs, and with inherit_stat each removed event leaves a
 * PERF_RECORD_READ. No such record may land in the buffer of another CPU. Nor
 * may one that is written when the task exits, by kernels that do so.
 */
#define _GNU_SOURCE

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "../kselftest_harness.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define NR_BUFFERS	2

/* Records that a child leaves in the buffer of its CPU, and in that of another one */
#define EXEC_HERE	1
#define EXEC_OTHER	0
#define EXIT_HERE	0
#define EXIT_OTHER	0

/* A PERF_RECORD_READ of our events; other records end in the same fields. */
struct read_record {
	struct perf_event_header header;
	uint32_t	pid, tid;
	uint64_t	value;
	struct {
		uint32_t	pid, tid;
		uint32_t	cpu, res;
	} sample_id;
};

struct buffer {
	int	cpu;
	int	fd;
	void	*base;
};

FIXTURE(read_on_exec)
{
	struct buffer	buffers[NR_BUFFERS];
	size_t		page_size;
	int		keeps_apart;
};

static int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

FIXTURE_VARIANT(read_on_exec)
{
	bool	exec;
	int	here;
	int	other;
};

FIXTURE_VARIANT_ADD(read_on_exec, exec)
{
	.exec	= true,
	.here	= EXEC_HERE,
	.other	= EXEC_OTHER,
};

/* A task that exits with its events */
FIXTURE_VARIANT_ADD(read_on_exec, exit)
{
	.here	= EXIT_HERE,
	.other	= EXIT_OTHER,
};

FIXTURE_SETUP(read_on_exec)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_SW_DUMMY,
		.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_CPU,
		.sample_id_all	= 1,
		.exclude_kernel	= 1,
		.inherit	= 1,
		.inherit_stat	= 1,
		.remove_on_exec	= 1,
	};
	int cpu, nr = 0;
	cpu_set_t set;

	self->page_size = sysconf(_SC_PAGESIZE);
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(set), &set));
	if (CPU_COUNT(&set) < NR_BUFFERS)
		SKIP(return, "needs %d CPUs", NR_BUFFERS);

	for (cpu = 0; nr < NR_BUFFERS; cpu++) {
		struct buffer *buf = &self->buffers[nr];

		if (!CPU_ISSET(cpu, &set))
			continue;
		buf->cpu = cpu;
		buf->fd = syscall(__NR_perf_event_open, &attr, 0, cpu, -1, 0);
		ASSERT_GE(buf->fd, 0);
		buf->base = mmap(NULL, 2 * self->page_size,
				 PROT_READ | PROT_WRITE, MAP_SHARED, buf->fd, 0);
		ASSERT_NE(buf->base, MAP_FAILED);
		nr++;
	}

	/*
	 * A switch from parent to child may swap their contexts where these are
	 * clones: the child would then exec with the parent's events, which
	 * leave no record. An event that is not inherited rules that out.
	 */
	attr.inherit = 0;
	attr.inherit_stat = 0;
	attr.remove_on_exec = 0;
	self->keeps_apart = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	ASSERT_GE(self->keeps_apart, 0);
}

FIXTURE_TEARDOWN(read_on_exec)
{
	int i;

	for (i = 0; i < NR_BUFFERS; i++) {
		munmap(self->buffers[i].base, 2 * self->page_size);
		close(self->buffers[i].fd);
	}
	close(self->keeps_apart);
}

/* Number of PERF_RECORD_READ in the buffer; *foreign: by another CPU, or of another task */
static int count_reads(struct buffer *buf, size_t page_size, pid_t pid, int *foreign)
{
	struct perf_event_mmap_page *pc = buf->base;
	uint64_t head = __atomic_load_n(&pc->data_head, __ATOMIC_ACQUIRE);
	uint32_t tid = pid;
	struct read_record rec;
	uint64_t pos;
	int nr = 0;

	for (pos = 0; pos < head; pos += rec.header.size) {
		memcpy(&rec, (char *)buf->base + page_size + pos, sizeof(rec));
		if (rec.header.size < sizeof(rec.header))
			return -1;
		if (rec.header.type != PERF_RECORD_READ)
			continue;
		if (rec.header.size != sizeof(rec))
			return -1;
		nr++;
		*foreign += rec.sample_id.cpu != (uint32_t)buf->cpu ||
			    rec.pid != tid || rec.tid != tid ||
			    rec.sample_id.pid != tid || rec.sample_id.tid != tid;
	}
	return nr;
}

/* A child that exits on @cpu, or does so after an exec. Return: its pid, or -1. */
static pid_t run_child(int cpu, bool exec)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (pin(cpu))
			_exit(1);
		if (exec)
			execl("/proc/self/exe", "exec_child", NULL);
		_exit(exec);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status ? pid : -1;
}

/* The record that belongs here is written, and this CPU stays away from the other's buffer. */
TEST_F(read_on_exec, writer)
{
	struct buffer *other = &self->buffers[0];
	struct buffer *here = &self->buffers[1];
	int foreign = 0;
	pid_t pid;

	pid = run_child(here->cpu, variant->exec);
	ASSERT_LT(0, pid);
	EXPECT_EQ(variant->here, count_reads(here, self->page_size, pid, &foreign));
	EXPECT_EQ(variant->other, count_reads(other, self->page_size, pid, &foreign));
	EXPECT_EQ(0, foreign);
}

#define main test_main
TEST_HARNESS_MAIN
#undef main

int main(int argc, char *argv[])
{
	if (!strcmp(argv[0], "exec_child"))
		return 0;

	return test_main(argc, argv);
}
