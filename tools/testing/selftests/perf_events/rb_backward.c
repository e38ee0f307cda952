// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel promises of backward ring buffers: every record is there, whole,
 * in the order in which they were written, up to the newest one, and as far back as
 * the size of the buffer allows; at any size, wherever a record meets the end of the
 * data area, whoever writes and however: inherited children, tasks that migrate,
 * several events in one buffer, an event inside another one's output, a BPF
 * program, a CPU that goes away. Nothing is written while the buffer is paused, and
 * the kernel counts what it did not write. Buffers of the other direction are
 * refused. A creator who may write to its header page does no harm to a reader.
 *
 * Records are user stack dumps and COMM records with numbers in them. The reader
 * is libperf's. This builds for 32 bits too: then it is a 32-bit reader on a
 * 64-bit kernel.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <linux/bpf.h>

#include <perf/event.h>

#include "rb_common.h"
#include "../../../lib/perf/snapshot.c"
#include "../kselftest_harness.h"

#define KiB	1024U
#define MiB	(1024 * KiB)

/* Names are up to 15 letters, "n" and a number; the record is 8 bytes larger from 7 on. */
struct comm {
	struct perf_event_header header;
	uint32_t	pid, tid;
	char		name[16];
};

static int set_number(unsigned int n, bool wide)
{
	char name[16];

	snprintf(name, sizeof(name), wide ? "n%012u" : "n%06u", n);
	return prctl(PR_SET_NAME, name);
}

/* The number in a COMM record, or -1 */
static int number_in(const union perf_event *event)
{
	const struct comm *comm = (const void *)event;
	unsigned int n;

	if (event->header.type != PERF_RECORD_COMM || comm->name[0] != 'n' ||
	    sscanf(comm->name + 1, "%u", &n) != 1)
		return -1;
	return n;
}

/*
 * Opening and reading
 */

static struct perf_event_attr comm_attr(void)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.comm		= 1,
		.write_backward	= 1,
	};
}

struct reader {
	struct perf_snapshot	*snap;
	void			*base;
	size_t			len;
	int			fd;
};

static const char *reader_open(struct reader *r, struct perf_event_attr *attr, pid_t pid,
			       int cpu, size_t size)
{
	struct perf_snapshot_buffer buf = { .cpu = cpu };

	memset(r, 0, sizeof(*r));
	r->len = getpagesize() + size;
	r->fd = perf_event_open(attr, pid, cpu);
	if (r->fd < 0)
		return "perf_event_open";
	r->base = mmap(NULL, r->len, PROT_READ, MAP_SHARED, r->fd, 0);
	if (r->base == MAP_FAILED)
		return "mmap";
	buf.fd = r->fd;
	buf.base = r->base;
	buf.len = r->len;
	r->snap = perf_snapshot__new(&buf);
	return r->snap ? NULL : "perf_snapshot__new";
}

static void reader_close(struct reader *r)
{
	perf_snapshot__delete(r->snap);
	munmap(r->base, r->len);
	close(r->fd);
}

static const char *reader_open_comm(struct reader *r, pid_t pid, int cpu, bool inherit)
{
	struct perf_event_attr attr = comm_attr();

	attr.inherit = inherit;
	return reader_open(r, &attr, pid, cpu, 64 * KiB);
}

static const struct perf_snapshot_info *info_of(struct reader *r)
{
	return perf_snapshot__info(r->snap);
}

/* Take a snapshot without a pause, by the ioctl where there is one. */
static int take(struct reader *r, unsigned int flags)
{
	return perf_snapshot__take(r->snap, flags | PERF_SNAPSHOT_NO_PAUSE);
}

/*
 * The numbers in the snapshot, oldest first, are @first to @last without a gap. -1:
 * whatever it is. Other records do not count.
 */
static const char *check_numbers(struct reader *r, int first, int last)
{
	union perf_event *event = NULL;
	int n, next = first;

	while ((event = perf_snapshot__newer(r->snap, event))) {
		if (event->header.type != PERF_RECORD_COMM)
			continue;
		n = number_in(event);
		if (n < 0)
			continue;
		if (next >= 0 && n != next)
			return "a gap or a repetition";
		next = n + 1;
	}
	return last < 0 || next == last + 1 ? NULL : "the newest number is missing";
}

/*
 * Size and alignment
 */

FIXTURE(rb_size) { struct reader r; };
FIXTURE_VARIANT(rb_size) { size_t size; };
FIXTURE_VARIANT_ADD(rb_size, page_1) { .size = 4 * KiB };
FIXTURE_VARIANT_ADD(rb_size, pages_2) { .size = 8 * KiB };
FIXTURE_VARIANT_ADD(rb_size, pages_16) { .size = 64 * KiB };
FIXTURE_VARIANT_ADD(rb_size, mib_1) { .size = 1 * MiB };
FIXTURE_VARIANT_ADD(rb_size, mib_16) { .size = 16 * MiB };

FIXTURE_SETUP(rb_size)
{
	struct perf_event_attr attr = comm_attr();

	ASSERT_EQ(NULL, reader_open(&self->r, &attr, 0, -1, variant->size));
}

FIXTURE_TEARDOWN(rb_size)
{
	reader_close(&self->r);
}

/*
 * From empty to full, and around: the buffer holds all that it has room for, to
 * the record. Records are 24 or 32 bytes long here, and mixed, so that they meet the
 * end of the data area at every alignment, and lie across it.
 */
TEST_F_TIMEOUT(rb_size, full, 300)
{
	const struct perf_snapshot_info *info = info_of(&self->r);
	unsigned int n, total = 0, often = 1 + variant->size / 2048;
	unsigned int records = variant->size / 26 + 1000;

	/* Around once up to 1 MiB; more takes minutes: see large_records. */
	if (records > 60000)
		records = 60000;

	for (n = 0; n < records; n++) {
		ASSERT_EQ(0, set_number(n, n % 3 == 1));
		total += n % 3 == 1 ? 32 : 24;
		if (n % often && n + 1 < records)
			continue;
		ASSERT_EQ(0, take(&self->r, 0));
		ASSERT_EQ(NULL, check_numbers(&self->r, total <= variant->size ? 0 : -1, n));
		ASSERT_EQ(total > variant->size, info->wrapped);
		ASSERT_EQ(0, info->given_up);
		/* No whole record is left out. */
		ASSERT_TRUE(info->wrapped ? info->len + 32 > variant->size : info->len == total);
	}
}

#define STACK_DUMP	32744	/* Not a divisor of the size, with what else is in it */

struct fault {
	struct perf_event_header header;
	uint64_t	addr;
	uint64_t	stack_size;
	unsigned char	stack[STACK_DUMP];
	uint64_t	stack_used;
};

/* Page @n of those that are touched, one after the other, has this in its record. */
static char *fault_addr(char *base, unsigned int n, unsigned int pages)
{
	return base + n % pages * getpagesize();
}

/* The newest record is that of fault @n; none is left out on the way back. */
static const char *check_faults(struct reader *r, char *base, unsigned int n,
				unsigned int pages)
{
	const union perf_event *event = NULL;

	while ((event = perf_snapshot__older(r->snap, event))) {
		const struct fault *fault = (const void *)event;

		if (fault->header.type != PERF_RECORD_SAMPLE ||
		    fault->header.size != sizeof(*fault))
			return "not a sample of a fault";
		/* Of the test's own code and data there may be others. */
		if (fault->addr < (uintptr_t)base ||
		    fault->addr >= (uintptr_t)base + (size_t)pages * getpagesize())
			continue;
		if (fault->addr != (uintptr_t)fault_addr(base, n, pages))
			return "a fault is missing, or comes twice";
		if (fault->stack_size != STACK_DUMP)
			return "a wrong size of the stack";
		n--;
	}
	return NULL;
}

/* 16 MiB, twice around: samples with 32 KiB of stack fill them in no time. */
TEST(large_records)
{
	const size_t size = 16 * MiB;
	const unsigned int pages = 64, faults = 2 * size / sizeof(struct fault) + 100;
	struct perf_event_attr attr = {
		.type			= PERF_TYPE_SOFTWARE,
		.config			= PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period		= 1,
		.sample_type		= PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER,
		.sample_stack_user	= STACK_DUMP,
		.exclude_kernel		= 1,
		.write_backward		= 1,
	};
	const struct perf_snapshot_info *info;
	/* A stack that ends sooner is dumped as far as it goes: be far from its end. */
	char room[2 * STACK_DUMP];
	struct reader r;
	unsigned int n;
	char *base;

	asm volatile("" : : "r" (room) : "memory");
	base = mmap(NULL, pages * getpagesize(), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(NULL, reader_open(&r, &attr, 0, -1, size));
	info = info_of(&r);

	for (n = 0; n < faults; n++) {
		if (!(n % pages))
			ASSERT_EQ(0, madvise(base, pages * getpagesize(), MADV_DONTNEED));
		__atomic_store_n(fault_addr(base, n, pages), 1, __ATOMIC_RELAXED);
		if (n % 200 && n + 1 < faults)
			continue;
		/* The reader's memory for the copy is new, and would fault 4096 times. */
		ASSERT_EQ(0, ioctl(r.fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ(0, take(&r, 0));
		ASSERT_EQ(NULL, check_faults(&r, base, n, pages));
		if (info->wrapped)
			ASSERT_GT(info->len + sizeof(struct fault), size);
		ASSERT_EQ(0, ioctl(r.fd, PERF_EVENT_IOC_ENABLE, 0));
	}
	ASSERT_TRUE(info->wrapped);
	reader_close(&r);
	munmap(base, pages * getpagesize());
}

/*
 * Who writes
 */

#define MAX_CPUS_HERE	16
#define CHILDREN	20
#define GRANDCHILDREN	3

/* Runs in a child: children of its own, each with a number of its own */
static void be_parent(int n)
{
	int i, status, bad = set_number(n, false);

	for (i = 0; i < GRANDCHILDREN; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(set_number(1000 + n * GRANDCHILDREN + i, false));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			bad = 1;
	}
	_exit(bad);
}

/* As 'perf record --overwrite -- make' does: one event a CPU, inherited by all. */
TEST(inherited_by_generations)
{
	int seen[1000 + CHILDREN * GRANDCHILDREN] = {}, i, n, nr, status;
	struct reader readers[MAX_CPUS_HERE];
	pid_t pids[CHILDREN];

	for (nr = 0; nr < MAX_CPUS_HERE && allowed_cpu(nr) >= 0; nr++)
		ASSERT_EQ(NULL, reader_open_comm(&readers[nr], 0, allowed_cpu(nr), true));

	for (i = 0; i < CHILDREN; i++) {
		pids[i] = fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i])
			be_parent(i);
	}
	for (i = 0; i < CHILDREN; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		ASSERT_EQ(0, status);
	}

	for (i = 0; i < nr; i++) {
		union perf_event *event = NULL;

		ASSERT_EQ(0, take(&readers[i], 0));
		while ((event = perf_snapshot__newer(readers[i].snap, event))) {
			n = number_in(event);
			ASSERT_LT(n, 1000 + CHILDREN * GRANDCHILDREN);
			if (n >= 0)
				seen[n]++;
		}
		reader_close(&readers[i]);
	}
	for (i = 0; i < CHILDREN; i++)
		EXPECT_EQ(1, seen[i]);
	for (i = 0; i < CHILDREN * GRANDCHILDREN; i++)
		EXPECT_EQ(1, seen[1000 + i]);
}

/* Sets its numbers when it is told, now on this CPU, now on that */
static void *wander_thread(void *arg)
{
	cpu_set_t sets[2];
	int i, n, *tid_and_go = arg;
	char c;

	for (i = 0; i < 2; i++) {
		CPU_ZERO(&sets[i]);
		CPU_SET(tid_and_go[2 + i], &sets[i]);
	}
	__atomic_store_n(&tid_and_go[0], syscall(__NR_gettid), __ATOMIC_RELEASE);
	if (read(tid_and_go[1], &c, 1) != 1)
		return "read";
	for (n = 0; n < 20000; n++) {
		if (n % 8 == 0 && sched_setaffinity(0, sizeof(sets[0]), &sets[n / 8 % 2]))
			return "sched_setaffinity";
		if (set_number(n, n % 2))
			return "prctl";
	}
	return NULL;
}

/* One buffer follows a thread from CPU to CPU, and is read meanwhile. */
TEST(migrating_thread)
{
	int tid_and_go[4] = { 0, -1, allowed_cpu(0), allowed_cpu(1) }, go[2];
	unsigned int snapshots = 0;
	struct reader r;
	pthread_t thread;
	void *ret;

	if (tid_and_go[3] < 0)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, pipe(go));
	tid_and_go[1] = go[0];
	ASSERT_EQ(0, pthread_create(&thread, NULL, wander_thread, tid_and_go));
	while (!__atomic_load_n(&tid_and_go[0], __ATOMIC_ACQUIRE))
		usleep(1000);
	ASSERT_EQ(NULL, reader_open_comm(&r, tid_and_go[0], -1, false));
	ASSERT_EQ(1, write(go[1], "", 1));

	while (pthread_tryjoin_np(thread, &ret)) {
		int err = take(&r, 0);

		/* A reader that is lapped says so. */
		ASSERT_TRUE(!err || err == -EAGAIN);
		if (!err)
			ASSERT_EQ(NULL, check_numbers(&r, -1, -1));
		snapshots++;
	}
	ASSERT_EQ(NULL, ret);
	ASSERT_EQ(0, take(&r, 0));
	EXPECT_EQ(NULL, check_numbers(&r, -1, 19999));
	EXPECT_GT(snapshots, 0);
	reader_close(&r);
	close(go[0]);
	close(go[1]);
}

/* What was written on a CPU that goes offline stays, and is read. */
TEST(offline_cpu)
{
	int here = allowed_cpu(0), other = allowed_cpu(1), n, err;
	struct reader r;

	if (other < 0)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(NULL, reader_open_comm(&r, 0, other, false));
	ASSERT_EQ(0, pin(other));
	for (n = 0; n < 5000; n++)
		ASSERT_EQ(0, set_number(n, n % 2));
	ASSERT_EQ(0, pin(here));
	if (set_online(other, false)) {
		reader_close(&r);
		SKIP(return, "CPU %d cannot be switched off", other);
	}
	err = take(&r, 0);
	EXPECT_EQ(0, set_online(other, true));
	EXPECT_EQ(0, err);
	EXPECT_EQ(NULL, check_numbers(&r, -1, 4999));
	EXPECT_GT(info_of(&r)->len + 32, 64 * KiB);
	reader_close(&r);
}

/*
 * Pause, direction
 */

/* What came in the pause is missing, counted, and nothing else is. */
TEST(pause_and_resume)
{
	union perf_event *event = NULL;
	uint64_t lost = 0, head;
	struct reader r;
	int n;

	ASSERT_EQ(NULL, reader_open_comm(&r, 0, -1, false));
	for (n = 0; n < 10; n++)
		ASSERT_EQ(0, set_number(n, false));

	ASSERT_EQ(0, ioctl(r.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1UL));
	head = data_head(r.base);
	for (; n < 17; n++)
		ASSERT_EQ(0, set_number(n, false));
	EXPECT_EQ(head, data_head(r.base));
	ASSERT_EQ(0, take(&r, 0));
	EXPECT_EQ(NULL, check_numbers(&r, 0, 9));

	ASSERT_EQ(0, ioctl(r.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0UL));
	for (; n < 30; n++)
		ASSERT_EQ(0, set_number(n, false));
	ASSERT_EQ(0, take(&r, PERF_SNAPSHOT_INCREMENTAL));
	EXPECT_EQ(NULL, check_numbers(&r, 17, 29));
	EXPECT_EQ(0, info_of(&r)->gap);
	while ((event = perf_snapshot__newer(r.snap, event)))
		if (event->header.type == PERF_RECORD_LOST)
			lost += event->lost.lost;
	EXPECT_EQ(7, lost);
	reader_close(&r);
}

/* One buffer has one direction. */
TEST(mixed_directions)
{
	struct perf_event_attr attr = comm_attr();
	void *maps[2];
	int fds[4], i;

	for (i = 0; i < 4; i++) {
		attr.write_backward = i % 2;
		fds[i] = perf_event_open(&attr, 0, -1);
		ASSERT_GE(fds[i], 0);
	}
	for (i = 0; i < 2; i++) {
		maps[i] = mmap(NULL, 2 * getpagesize(), PROT_READ, MAP_SHARED, fds[i], 0);
		ASSERT_NE(MAP_FAILED, maps[i]);
	}
	EXPECT_EQ(-1, ioctl(fds[3], PERF_EVENT_IOC_SET_OUTPUT, fds[0]));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fds[2], PERF_EVENT_IOC_SET_OUTPUT, fds[1]));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ioctl(fds[2], PERF_EVENT_IOC_SET_OUTPUT, fds[0]));
	EXPECT_EQ(0, ioctl(fds[3], PERF_EVENT_IOC_SET_OUTPUT, fds[1]));
	for (i = 0; i < 2; i++)
		munmap(maps[i], 2 * getpagesize());
	for (i = 0; i < 4; i++)
		close(fds[i]);
}

/*
 * BPF
 */

/* A program that returns @ret; -errno */
static int load_program(int ret)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = ret },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insns = (unsigned long)code;
	attr.insn_cnt = 2;
	attr.license = (unsigned long)"GPL";
	ret = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return ret < 0 ? -errno : ret;
}

/* So many page faults */
static int fault(unsigned int pages)
{
	const size_t len = pages * getpagesize();
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -1;
	madvise(mem, len, MADV_NOHUGEPAGE);
	memset(mem, 1, len);
	return munmap(mem, len);
}

/* It decides which samples are written; those that are, are whole. */
TEST(bpf_program)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_ADDR,
		.write_backward	= 1,
	};
	int pass, prog;

	for (pass = 0; pass < 2; pass++) {
		union perf_event *event = NULL;
		struct reader r, control;

		prog = load_program(pass);
		if (prog < 0)
			SKIP(return, "cannot load BPF programs: %s", strerror(-prog));
		ASSERT_EQ(NULL, reader_open(&control, &attr, 0, -1, 16 * KiB));
		ASSERT_EQ(NULL, reader_open(&r, &attr, 0, -1, 16 * KiB));
		/* What faults in between is not decided yet. */
		ASSERT_EQ(0, take(&r, 0));
		ASSERT_EQ(0, ioctl(r.fd, PERF_EVENT_IOC_SET_BPF, prog));
		ASSERT_EQ(0, take(&r, PERF_SNAPSHOT_INCREMENTAL));
		ASSERT_EQ(0, fault(50));
		ASSERT_EQ(0, take(&r, PERF_SNAPSHOT_INCREMENTAL));
		ASSERT_EQ(0, take(&control, 0));
		EXPECT_GE(info_of(&control)->nr_records, 50);
		EXPECT_TRUE(pass ? info_of(&r)->nr_records >= 50 : !info_of(&r)->nr_records);
		while ((event = perf_snapshot__newer(r.snap, event))) {
			ASSERT_EQ(PERF_RECORD_SAMPLE, event->header.type);
			ASSERT_EQ(8 + 8 + 8, event->header.size);
		}
		reader_close(&r);
		reader_close(&control);
		close(prog);
	}
}

/*
 * Nesting
 */

static int read_id(const char *path)
{
	FILE *f = fopen(path, "re");
	int id = -1;

	if (f && fscanf(f, "%d", &id) != 1)
		id = -1;
	if (f)
		fclose(f);
	return id;
}

#define TRACEFS	"/sys/kernel/tracing/"

/*
 * A probe in the middle of perf's own output: it writes its record inside the one
 * that is being written, and both are whole.
 */
TEST(nesting)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_TRACEPOINT,
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW |
				  PERF_SAMPLE_STACK_USER,
		.sample_stack_user = 512,
		.write_backward	= 1,
	};
	unsigned int seen[3] = {}, i, n, rounds = 0;
	struct reader r;
	uint64_t ids[3];
	int fds[3], err;

	/* Left by a run that was killed */
	write_text(TRACEFS "kprobe_events", "-:rb_backward/copy");
	if (write_text(TRACEFS "kprobe_events", "p:rb_backward/copy perf_output_copy"))
		SKIP(return, "no kprobe events (or no tracefs)");

	attr.config = read_id(TRACEFS "events/raw_syscalls/sys_enter/id");
	ASSERT_EQ(NULL, reader_open(&r, &attr, 0, -1, 256 * KiB));
	fds[0] = r.fd;
	attr.config = read_id(TRACEFS "events/rb_backward/copy/id");
	fds[1] = perf_event_open(&attr, 0, -1);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 200 * 1000;
	fds[2] = perf_event_open(&attr, 0, -1);
	for (i = 0; i < 3; i++) {
		ASSERT_GE(fds[i], 0);
		ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_ID, &ids[i]));
		if (i)
			ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0]));
	}

	/* Until each kind was seen, which takes a few timer interrupts */
	while (!(seen[0] && seen[1] && seen[2]) && rounds++ < 1000) {
		union perf_event *event = NULL;

		for (n = 0; n < 1000; n++)
			syscall(__NR_getppid);
		err = take(&r, 0);
		ASSERT_TRUE(!err || err == -EAGAIN);
		while (!err && (event = perf_snapshot__newer(r.snap, event))) {
			uint64_t id;

			if (event->header.type != PERF_RECORD_SAMPLE)
				continue;
			memcpy(&id, (char *)event + sizeof(event->header), sizeof(id));
			for (i = 0; i < 3 && ids[i] != id; i++)
				;
			ASSERT_LT(i, 3);
			seen[i]++;
		}
	}
	for (i = 1; i < 3; i++)
		close(fds[i]);
	reader_close(&r);
	EXPECT_EQ(0, write_text(TRACEFS "kprobe_events", "-:rb_backward/copy"));
	EXPECT_GT(seen[0], 0);
	EXPECT_GT(seen[1], 0);
	EXPECT_GT(seen[2], 0);
	TH_LOG("tracepoint %u, kprobe %u, clock %u", seen[0], seen[1], seen[2]);
}

/*
 * A hostile creator
 */

FIXTURE(hostile) { };
FIXTURE_SETUP(hostile) { }
FIXTURE_TEARDOWN(hostile) { }

/*
 * A process that mapped the buffer may map it again, writable, and then write to its header
 * page. A reader gets records that lie in the buffer, or an error. Each of its questions is an
 * interrupt where the CPU does not order stores: that takes its time under emulation.
 */
TEST_F_TIMEOUT(hostile, scribbled_header_page, 300)
{
	struct perf_event_mmap_page *pc;
	unsigned int i, errors = 0;
	struct reader r;

	ASSERT_EQ(NULL, reader_open_comm(&r, 0, -1, false));
	pc = mmap(NULL, r.len, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	if (pc == MAP_FAILED) {
		reader_close(&r);
		SKIP(return, "this kernel refuses a second, writable mapping");
	}
	for (i = 0; i < 5000; i++)
		ASSERT_EQ(0, set_number(i, i % 2));

	srand(1);
	for (i = 0; i < 5000; i++) {
		union perf_event *event = NULL;
		uint64_t noise = ((uint64_t)rand() << 33) ^ rand();
		size_t len, sum = 0;

		/* Any value; near the true one; aligned or not */
		pc->data_head = i % 3 == 0 ? noise : i % 3 == 1 ? noise & ~7ULL :
				pc->data_head + 8 * (rand() % 64);
		pc->data_size = noise;
		pc->data_offset = ~noise;
		pc->data_tail = noise;
		errors += take(&r, i % 2 ? PERF_SNAPSHOT_INCREMENTAL : 0) != 0;
		perf_snapshot__data(r.snap, &len);
		ASSERT_LE(len, 64 * KiB);
		while ((event = perf_snapshot__older(r.snap, event))) {
			ASSERT_GE(event->header.size, 8);
			sum += event->header.size;
		}
		ASSERT_EQ(len, sum);
		if (i % 3 == 2)
			ASSERT_EQ(0, set_number(i, false));
	}
	EXPECT_GT(errors, 1000);

	/* A new reader, which takes data_size from the page, fails. */
	EXPECT_EQ(NULL, perf_snapshot__new(&r.snap->buf));
	EXPECT_EQ(EBADMSG, errno);
	munmap(pc, r.len);
	reader_close(&r);
}

TEST_HARNESS_MAIN
