// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_RESERVED_HEAD says how many bytes were reserved in a backward
 * ring buffer since its head was read: exactly, through whichever event the
 * buffer is reached, whoever wrote them and on whichever CPU, also when that
 * CPU or task is gone. Anything that is not such a buffer, or a malformed
 * argument, gives an error.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "race_window.h"
#include "rb_common.h"
#include "../kselftest_harness.h"

#define NR_PAGES	4

/* A PERF_RECORD_COMM of a name with 7 letters */
#define RECORD_SIZE	(8 + 2 * 4 + 8)

/* attr.comm comes with a PERF_RECORD_FORK and PERF_RECORD_EXIT of this size. */
#define TASK_SIZE	(8 + 4 * 4 + 8)

/* n records of RECORD_SIZE to the buffers that get our COMM records */
static int write_records(int n)
{
	while (n--)
		if (prctl(PR_SET_NAME, "1234567"))
			return -1;
	return 0;
}

static int open_comm(pid_t pid, int cpu, bool inherit)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.inherit	= inherit,
		.comm		= 1,
		.write_backward	= 1,
	};

	return perf_event_open(&attr, pid, cpu);
}

static void *map(int fd, int nr_pages)
{
	return mmap(NULL, (1 + nr_pages) * getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
}

static void unmap(void *base, int nr_pages)
{
	munmap(base, (1 + nr_pages) * getpagesize());
}

FIXTURE(rb_reserved)
{
	struct perf_rb_reserved reserved;
	uint64_t	data_size;
	void		*base;
	int		cpu;		/* we run there */
	int		other;		/* another one, or -1 */
	int		fd;
};

FIXTURE_SETUP(rb_reserved)
{
	self->cpu = allowed_cpu(0);
	self->other = allowed_cpu(1);
	ASSERT_EQ(0, pin(self->cpu));
	self->data_size = NR_PAGES * getpagesize();
	self->fd = open_comm(0, self->cpu, false);
	ASSERT_GE(self->fd, 0);
	self->base = map(self->fd, NR_PAGES);
	ASSERT_NE(MAP_FAILED, self->base);
	if (reserved_head(self->fd, 0, &self->reserved) == -ENOTTY)
		SKIP(return, "this kernel has no PERF_EVENT_IOC_RESERVED_HEAD");
}

FIXTURE_TEARDOWN(rb_reserved)
{
	unmap(self->base, NR_PAGES);
	close(self->fd);
}

/*
 * Arithmetic
 */

TEST_F(rb_reserved, nothing)
{
	ASSERT_EQ(0, reserved_head(self->fd, data_head(self->base), &self->reserved));
	EXPECT_EQ(0, self->reserved.behind);
	EXPECT_EQ(self->data_size, self->reserved.data_size);
	EXPECT_EQ(0, self->reserved.__reserved);
}

TEST_F(rb_reserved, known_bytes)
{
	int n;

	for (n = 1; n <= 1000; n *= 10) {
		uint64_t head = data_head(self->base);

		ASSERT_EQ(0, write_records(n));
		ASSERT_EQ(0, reserved_head(self->fd, head, &self->reserved));
		EXPECT_EQ(n * RECORD_SIZE, self->reserved.behind);
		EXPECT_EQ(head, self->reserved.head);
	}
	/* More than the buffer holds; and all that was ever written */
	EXPECT_GT(self->reserved.behind, self->data_size);
	ASSERT_EQ(0, reserved_head(self->fd, 0, &self->reserved));
	EXPECT_EQ(1111 * RECORD_SIZE, self->reserved.behind);
}

/* A head that the kernel has not reached yet is no reason to overflow. */
TEST_F(rb_reserved, head_of_the_future)
{
	uint64_t head = data_head(self->base) - 8;

	ASSERT_EQ(0, reserved_head(self->fd, head, &self->reserved));
	EXPECT_EQ(-8UL, (unsigned long)self->reserved.behind);
}

/* A paused buffer reserves nothing. */
TEST_F(rb_reserved, paused)
{
	uint64_t head = data_head(self->base);

	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	ASSERT_EQ(0, write_records(1));
	ASSERT_EQ(0, reserved_head(self->fd, head, &self->reserved));
	EXPECT_EQ(0, self->reserved.behind);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
}

/*
 * Which buffer, who writes to it, and where
 */

/* Through the second event it is the same buffer, with the records of both. */
TEST_F(rb_reserved, redirected)
{
	int fd = open_comm(0, self->cpu, false);
	uint64_t head;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(-EINVAL, reserved_head(fd, 0, &self->reserved));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fd));

	head = data_head(self->base);
	ASSERT_EQ(0, write_records(10));
	ASSERT_EQ(0, reserved_head(fd, head, &self->reserved));
	EXPECT_EQ(20 * RECORD_SIZE, self->reserved.behind);
	EXPECT_EQ(self->data_size, self->reserved.data_size);

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	EXPECT_EQ(-EINVAL, reserved_head(fd, head, &self->reserved));
	close(fd);
}

/* Runs in a child; it waits to be told, and says when it is done. */
static void child_writer(int *to_child, int *to_parent, const int *cpus)
{
	char c;

	while (read(to_child[0], &c, 1) == 1) {
		if (pin(cpus[(int)c]) || write_records(10))
			_exit(1);
		if (write(to_parent[1], &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Children that inherit the event write to the same buffer. */
TEST_F(rb_reserved, inherited)
{
	int fd = open_comm(0, self->cpu, true);
	uint64_t head;
	void *base;
	int status;
	pid_t pid;

	ASSERT_GE(fd, 0);
	base = map(fd, NR_PAGES);
	ASSERT_NE(MAP_FAILED, base);

	head = data_head(base);
	pid = fork();
	if (!pid)
		_exit(write_records(10));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, reserved_head(fd, head, &self->reserved));
	EXPECT_EQ(10 * RECORD_SIZE + 2 * TASK_SIZE, self->reserved.behind);

	unmap(base, NR_PAGES);
	close(fd);
}

/* An event that follows its task, from CPU to CPU, and outlives it. */
TEST_F(rb_reserved, task)
{
	int to_child[2], to_parent[2], cpus[2], fd, status;
	uint64_t head;
	void *base;
	pid_t pid;
	char i;

	cpus[0] = self->cpu;
	cpus[1] = self->other < 0 ? self->cpu : self->other;
	ASSERT_EQ(0, pipe(to_child));
	ASSERT_EQ(0, pipe(to_parent));
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		close(to_child[1]);
		child_writer(to_child, to_parent, cpus);
	}
	close(to_child[0]);

	fd = open_comm(pid, -1, false);
	ASSERT_GE(fd, 0);
	base = map(fd, NR_PAGES);
	ASSERT_NE(MAP_FAILED, base);

	head = data_head(base);
	for (i = 0; i < 20; i++) {
		char c = i % 2;

		ASSERT_EQ(1, write(to_child[1], &c, 1));
		ASSERT_EQ(1, read(to_parent[0], &c, 1));
		ASSERT_EQ(0, reserved_head(fd, head, &self->reserved));
		EXPECT_EQ(10 * RECORD_SIZE * (i + 1), self->reserved.behind);
	}

	close(to_child[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, reserved_head(fd, head, &self->reserved));
	EXPECT_EQ(200 * RECORD_SIZE + TASK_SIZE, self->reserved.behind);

	unmap(base, NR_PAGES);
	close(fd);
}

/* The buffer of a CPU that is offline says the same as before. */
TEST_F(rb_reserved, offline_cpu)
{
	int cpu = self->other, fd, ret;
	uint64_t head;
	void *base;

	if (cpu < 0)
		SKIP(return, "needs a second CPU");
	fd = open_comm(0, cpu, false);
	ASSERT_GE(fd, 0);
	base = map(fd, NR_PAGES);
	ASSERT_NE(MAP_FAILED, base);

	head = data_head(base);
	ASSERT_EQ(0, pin(cpu));
	ASSERT_EQ(0, write_records(10));
	ASSERT_EQ(0, pin(self->cpu));

	if (set_online(cpu, false)) {
		unmap(base, NR_PAGES);
		close(fd);
		SKIP(return, "CPU %d cannot be switched off", cpu);
	}
	ret = reserved_head(fd, head, &self->reserved);
	EXPECT_EQ(0, set_online(cpu, true));

	EXPECT_EQ(0, ret);
	EXPECT_EQ(10 * RECORD_SIZE, self->reserved.behind);
	EXPECT_EQ(self->data_size, self->reserved.data_size);

	unmap(base, NR_PAGES);
	close(fd);
}

/*
 * What is refused
 */

static int open_attr(bool backward)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.write_backward	= backward,
	};

	return perf_event_open(&attr, 0, -1);
}

FIXTURE(rb_reserved_kinds)
{
	struct perf_rb_reserved reserved;
};

FIXTURE_VARIANT(rb_reserved_kinds)
{
	bool	backward;
	int	nr_pages;	/* -1: no mapping */
	int	prot;
	int	ret;
};

FIXTURE_VARIANT_ADD(rb_reserved_kinds, unmapped)
{
	.backward = true, .nr_pages = -1, .ret = -EINVAL,
};

FIXTURE_VARIANT_ADD(rb_reserved_kinds, header_page_alone)
{
	.backward = true, .nr_pages = 0, .prot = PROT_READ, .ret = -EINVAL,
};

FIXTURE_VARIANT_ADD(rb_reserved_kinds, one_page)
{
	.backward = true, .nr_pages = 1, .prot = PROT_READ,
};

FIXTURE_VARIANT_ADD(rb_reserved_kinds, writable)
{
	.backward = true, .nr_pages = 1, .prot = PROT_READ | PROT_WRITE, .ret = -EINVAL,
};

FIXTURE_VARIANT_ADD(rb_reserved_kinds, forward)
{
	.backward = false, .nr_pages = 1, .prot = PROT_READ, .ret = -EINVAL,
};

FIXTURE_SETUP(rb_reserved_kinds) { }
FIXTURE_TEARDOWN(rb_reserved_kinds) { }

TEST_F(rb_reserved_kinds, kind)
{
	size_t len = (1 + variant->nr_pages) * getpagesize();
	int fd = open_attr(variant->backward);
	void *base = NULL;
	int ret;

	ASSERT_GE(fd, 0);
	if (len) {
		base = mmap(NULL, len, variant->prot, MAP_SHARED, fd, 0);
		ASSERT_NE(MAP_FAILED, base);
	}

	ret = reserved_head(fd, 0, &self->reserved);
	if (ret == -ENOTTY)
		SKIP(return, "this kernel has no PERF_EVENT_IOC_RESERVED_HEAD");
	EXPECT_EQ(variant->ret, ret);

	/* A buffer that was unmapped is gone. */
	if (len)
		munmap(base, len);
	EXPECT_EQ(-EINVAL, reserved_head(fd, 0, &self->reserved));
	close(fd);
}

static int err_of(int ret)
{
	return ret ? errno : 0;
}

TEST_F(rb_reserved, reserved_field)
{
	self->reserved = (struct perf_rb_reserved){ .__reserved = 1 };
	EXPECT_EQ(EINVAL, err_of(ioctl(self->fd, PERF_EVENT_IOC_RESERVED_HEAD,
				       &self->reserved)));
}

TEST_F(rb_reserved, bad_address)
{
	void *page = mmap(NULL, getpagesize(), PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_EQ(EFAULT, err_of(ioctl(self->fd, PERF_EVENT_IOC_RESERVED_HEAD, NULL)));
	/* It can be read, and the answer cannot be written. */
	EXPECT_EQ(EFAULT, err_of(ioctl(self->fd, PERF_EVENT_IOC_RESERVED_HEAD, page)));
	munmap(page, getpagesize());
}

/* Told by type and number; the size only says how large the struct is. */
TEST_F(rb_reserved, sizes)
{
	struct {
		struct perf_rb_reserved reserved;
		uint64_t	future;
	} large = { .future = 0 };
	const int type = _IOC_TYPE(PERF_EVENT_IOC_RESERVED_HEAD);
	const int nr = _IOC_NR(PERF_EVENT_IOC_RESERVED_HEAD);
	const unsigned int rw = _IOC_READ | _IOC_WRITE;
	const size_t size = sizeof(struct perf_rb_reserved);

	large.reserved.head = data_head(self->base);
	ASSERT_EQ(0, write_records(1));

	EXPECT_EQ(0, err_of(ioctl(self->fd, _IOC(rw, type, nr, sizeof(large)), &large)));
	EXPECT_EQ(RECORD_SIZE, large.reserved.behind);
	EXPECT_EQ(0, err_of(ioctl(self->fd, _IOC(_IOC_NONE, type, nr, size), &large)));

	large.future = 1;
	EXPECT_EQ(E2BIG, err_of(ioctl(self->fd, _IOC(rw, type, nr, sizeof(large)), &large)));
	EXPECT_EQ(EINVAL, err_of(ioctl(self->fd, _IOC(rw, type, nr, size - 8), &large)));
	EXPECT_EQ(EINVAL, err_of(ioctl(self->fd, _IOC(rw, type, nr, 0), &large)));
	EXPECT_EQ(ENOTTY, err_of(ioctl(self->fd, _IOC(rw, type + 1, nr, size), &large)));
}

#ifdef __x86_64__
/* A 32-bit program gets the same answer from the same struct. */
TEST_F(rb_reserved, compat)
{
	struct perf_rb_reserved *arg;
	uint64_t head;
	int status;
	pid_t pid;

	arg = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_NE(MAP_FAILED, arg);
	head = data_head(self->base);
	arg->head = head;
	ASSERT_EQ(0, write_records(10));

	pid = fork();
	if (!pid) {
		const long nr_ioctl = 54;	/* of the 32-bit table */
		long ret;

		asm volatile("int $0x80"
			     : "=a" (ret)
			     : "a" (nr_ioctl), "b" (self->fd),
			       "c" (PERF_EVENT_IOC_RESERVED_HEAD), "d" (arg)
			     : "memory", "cc", "r8", "r9", "r10", "r11");
		_exit(ret ? 1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFSIGNALED(status))
		SKIP(return, "this kernel runs no 32-bit programs");
	EXPECT_EQ(0, status);
	EXPECT_EQ(head, arg->head);
	EXPECT_EQ(10 * RECORD_SIZE + TASK_SIZE, arg->behind);
	EXPECT_EQ(self->data_size, arg->data_size);
	munmap(arg, getpagesize());
}
#endif

/*
 * The buffer may go at any moment: there is one, or EINVAL. Few rounds, since a
 * new mapping of an event waits for a grace period.
 */
static void *remap(void *arg)
{
	int fd = *(int *)arg, i;
	void *base;

	for (i = 0; i < 100; i++) {
		base = map(fd, NR_PAGES);
		if (base == MAP_FAILED)
			return "mmap failed";
		unmap(base, NR_PAGES);
	}
	return NULL;
}

TEST_F(rb_reserved, races_with_munmap)
{
	int fd = open_comm(0, -1, false), ret, seen = 0;
	pthread_t thread;
	void *err = NULL;
	bool bad = false;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, remap, &fd));
	if (self->other >= 0)
		ASSERT_EQ(0, pin(self->other));
	while (pthread_tryjoin_np(thread, &err)) {
		ret = reserved_head(fd, 0, &self->reserved);
		if (ret && ret != -EINVAL)
			bad = true;
		if (!ret && self->reserved.data_size != self->data_size)
			bad = true;
		seen += !ret;
	}
	EXPECT_FALSE(bad);
	EXPECT_EQ(NULL, err);
	TH_LOG("met the buffer %d times", seen);
	close(fd);
}

/*
 * A writer between reservation and publication
 */

struct held_writer {
	pthread_barrier_t	gate;
	int			cpu;
	pid_t			tid;
};

static void *write_held_up(void *arg)
{
	struct held_writer *writer = arg;

	pin(writer->cpu);
	writer->tid = syscall(__NR_gettid);
	pthread_barrier_wait(&writer->gate);
	/* Its event is open, and the window armed. */
	pthread_barrier_wait(&writer->gate);
	write_records(1);
	pthread_barrier_wait(&writer->gate);
	/* The head was read: at its exit it writes more. */
	pthread_barrier_wait(&writer->gate);
	return NULL;
}

/*
 * What is reserved counts before it is published. A writer is held up in between, in
 * perf_output_end(): see race_window.h.
 */
TEST_F_TIMEOUT(rb_reserved, unpublished, 300)
{
	const char *module = getenv("PERSISTENT_WINDOW");
	struct held_writer writer = { .cpu = self->cpu };
	int fd, tries, waits, seen = 0;
	pthread_t thread;
	uint64_t head;
	void *base;

	if (!module)
		SKIP(return, "PERSISTENT_WINDOW is not the path of the module");
	if (self->other < 0)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, load_window(module));
	/* Its name is what it writes, when it gets there. */
	ASSERT_EQ(0, set_window("left", "1234567:perf_output_end"));
	ASSERT_EQ(0, pin(self->other));

	/* On a busy machine it may go on before it was looked at. */
	for (tries = 0; tries < 10 && !seen; tries++) {
		pthread_barrier_init(&writer.gate, NULL, 2);
		ASSERT_EQ(0, pthread_create(&thread, NULL, write_held_up, &writer));
		pthread_barrier_wait(&writer.gate);
		fd = open_comm(writer.tid, -1, false);
		ASSERT_GE(fd, 0);
		base = map(fd, NR_PAGES);
		ASSERT_NE(MAP_FAILED, base);
		head = data_head(base);
		ASSERT_EQ(0, set_window("armed", "1"));
		pthread_barrier_wait(&writer.gate);

		for (waits = 0; waits < 10000 && !window_holds(WINDOW_LEFT); waits++)
			usleep(100);
		ASSERT_EQ(0, reserved_head(fd, head, &self->reserved));
		if (data_head(base) == head && window_holds(WINDOW_LEFT)) {
			seen++;
			EXPECT_EQ(RECORD_SIZE, self->reserved.behind);
		}
		pthread_barrier_wait(&writer.gate);
		EXPECT_EQ(head - RECORD_SIZE, data_head(base));
		pthread_barrier_wait(&writer.gate);
		pthread_join(thread, NULL);
		unmap(base, NR_PAGES);
		close(fd);
	}
	EXPECT_EQ(1, seen);
	EXPECT_EQ(0, set_window("left", ""));
	EXPECT_EQ(0, unload_window());
}

TEST_HARNESS_MAIN
