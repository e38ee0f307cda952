// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints are recorded by a short path, for events that want no more than a common
 * record, and by a general one. Two events see the same hits: one of each kind. Both have
 * the same records, in all fields but the time, whatever is done with the events meanwhile.
 * Call chains of tracepoints are tried, too.
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <linux/bpf.h>

#include "rb_common.h"

#define TRACEPOINT	"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"
#define NR_PAGES	64
#define CALLS		300

#define STRING(x)	#x
#define IS_CALL(nr)	"id == " STRING(nr)

#define TYPE		(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | \
			 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

/*
 * The event that takes the general path has a weight of 8 bytes behind the payload. The cgroup
 * comes next, if the events have it.
 */
struct sample {
	struct perf_event_header	header;
	uint64_t			ip;
	uint32_t			pid, tid;
	uint64_t			time;
	uint64_t			id;
	uint32_t			cpu, res;
	uint64_t			period;
	uint32_t			raw_size;
	uint16_t			type;
	uint8_t				flags;
	uint8_t				preempt_count;
	int32_t				common_pid;
	/* The payload is not aligned to 8 bytes. */
	uint32_t			nr, nr_high;
	uint32_t			args[2 * 6];
	uint32_t			padding;
	uint64_t			cgroup;
};

/* Without the cgroup */
#define SAMPLE_SIZE	offsetof(struct sample, cgroup)

struct side {
	int		fd;
	bool		cgroup;
	void		*base;
	uint64_t	id;
	int		nr;
	uint64_t	lost;
	uint64_t	lost_records;
	struct sample	samples[2 * CALLS];
};

struct sides {
	struct side	fast;
	struct side	general;
	int		cpu;
	int		tracepoint;
};

FIXTURE(tp_records)
{
	struct sides	s;
};

FIXTURE_VARIANT(tp_records)
{
	bool		backward;
	bool		inherit;
	bool		redirect;
	bool		exact;		/* the most common sample type */
	bool		cgroup;		/* with the cgroup */
};

FIXTURE_VARIANT_ADD(tp_records, forward)	{ .exact = true };
FIXTURE_VARIANT_ADD(tp_records, any_type)	{ };
FIXTURE_VARIANT_ADD(tp_records, backward)	{ .backward = true, .exact = true };
FIXTURE_VARIANT_ADD(tp_records, inherit)	{ .inherit = true, .exact = true };
FIXTURE_VARIANT_ADD(tp_records, redirect)	{ .redirect = true, .exact = true };
FIXTURE_VARIANT_ADD(tp_records, cgroup)		{ .cgroup = true, .exact = true };
FIXTURE_VARIANT_ADD(tp_records, any_cgroup)	{ .cgroup = true, .inherit = true };
FIXTURE_VARIANT_ADD(tp_records, backward_cgroup) { .cgroup = true, .backward = true,
						   .exact = true };

static int read_number(const char *path)
{
	char text[16] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	return atoi(text);
}

/* The filter of both events takes close() only. */
static void hits(int n)
{
	while (n--)
		syscall(__NR_close, -1 - n);
}

static struct perf_event_attr common_attr(int tracepoint, bool backward, bool inherit)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_TRACEPOINT,
		.config		= tracepoint,
		.sample_period	= 1,
		.sample_type	= TYPE,
		.disabled	= 1,
		.watermark	= 1,
		.wakeup_watermark = NR_PAGES * getpagesize() - 1,
		.write_backward	= backward,
		.inherit	= inherit,
	};
}

static int open_side(struct side *side, struct perf_event_attr *attr, int cpu)
{
	int prot = attr->write_backward ? PROT_READ : PROT_READ | PROT_WRITE;

	side->fd = perf_event_open(attr, 0, cpu);
	if (side->fd < 0)
		return -errno;
	side->base = mmap(NULL, (1 + NR_PAGES) * getpagesize(), prot, MAP_SHARED, side->fd, 0);
	if (side->base == MAP_FAILED ||
	    ioctl(side->fd, PERF_EVENT_IOC_SET_FILTER, IS_CALL(__NR_close)) ||
	    ioctl(side->fd, PERF_EVENT_IOC_ID, &side->id))
		return -errno;
	return 0;
}

static void for_both(struct __test_metadata *_metadata, struct sides *s,
		     unsigned long request, unsigned long arg)
{
	ASSERT_EQ(0, ioctl(s->fast.fd, request, arg));
	ASSERT_EQ(0, ioctl(s->general.fd, request, arg));
}

/* Read all that a buffer has: the samples in the order of time, and what was lost. */
static int read_side(struct side *side, bool backward, bool weight)
{
	static char bytes[NR_PAGES * 65536];
	struct perf_event_mmap_page *pc = side->base;
	uint64_t size = NR_PAGES * getpagesize(), head = data_head(side->base), at, end, i;
	char *data = side->base + getpagesize();
	int behind = 8 * (weight + side->cgroup);

	side->nr = 0;
	side->lost = 0;
	side->lost_records = 0;
	at = backward ? head : pc->data_tail;
	end = backward ? 0 : head;
	if (end - at > size)
		return -E2BIG;
	for (i = 0; i < end - at; i++)
		bytes[i] = data[(at + i) % size];

	for (i = 0; i < end - at; ) {
		struct perf_event_header *header = (void *)bytes + i;
		struct sample *to = &side->samples[side->nr];

		if (!header->size || header->size > end - at - i)
			return -EINVAL;
		i += header->size;
		if (header->type == PERF_RECORD_LOST) {
			side->lost += ((uint64_t *)header)[2];
			side->lost_records++;
			continue;
		}
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		if (side->nr == 2 * CALLS || header->size != SAMPLE_SIZE + behind)
			return -EBADMSG;
		memcpy(to, header, SAMPLE_SIZE);
		if (weight && ((uint64_t *)((char *)header + SAMPLE_SIZE))[0])
			return -EPROTO;
		to->cgroup = side->cgroup ?
			((uint64_t *)((char *)header + SAMPLE_SIZE))[weight] : 0;
		to->header.size -= behind;
		side->nr++;
	}
	for (i = 0; backward && i < side->nr / 2; i++) {
		struct sample swap = side->samples[i];

		side->samples[i] = side->samples[side->nr - 1 - i];
		side->samples[side->nr - 1 - i] = swap;
	}
	if (!backward)
		__atomic_store_n(&pc->data_tail, head, __ATOMIC_RELEASE);
	return 0;
}

/* Both have recorded the same @n hits, and lost the same. */
static void expect_same(struct __test_metadata *_metadata, struct sides *s,
			bool backward, int n)
{
	struct side *fast = &s->fast, *general = &s->general;
	uint64_t last = 0;
	int i;

	ASSERT_EQ(0, read_side(fast, backward, false));
	ASSERT_EQ(0, read_side(general, backward, true));
	ASSERT_EQ(n, general->nr);
	ASSERT_EQ(n, fast->nr);
	EXPECT_EQ(general->lost, fast->lost);
	EXPECT_EQ(general->lost_records, fast->lost_records);
	for (i = 0; i < n; i++) {
		struct sample a = fast->samples[i], b = general->samples[i];

		EXPECT_EQ(fast->id, a.id);
		EXPECT_EQ(general->id, b.id);
		EXPECT_EQ(fast->cgroup, !!a.cgroup);
		EXPECT_LE(last, a.time);
		last = a.time;
		/* One hit: the listeners come one after the other. */
		if (i + 1 < n)
			EXPECT_LT(b.time, fast->samples[i + 1].time);
		a.id = b.id;
		a.time = b.time;
		EXPECT_EQ(0, memcmp(&a, &b, sizeof(a)))
			TH_LOG("record %d of %d differs", i, n);
	}
}

static uint64_t count_of(struct side *side)
{
	uint64_t count = 0;

	return read(side->fd, &count, sizeof(count)) == sizeof(count) ? count : -1ULL;
}

static void set_up(struct __test_metadata *_metadata, struct sides *s, bool backward,
		   bool inherit, bool exact, bool cgroup)
{
	struct perf_event_attr attr;
	int ret;

	s->fast.fd = -1;
	s->general.fd = -1;
	s->tracepoint = read_number(TRACEPOINT);
	if (s->tracepoint <= 0)
		SKIP(return, "there is no " TRACEPOINT);
	s->cpu = allowed_cpu(0);
	ASSERT_EQ(0, pin(s->cpu));

	attr = common_attr(s->tracepoint, backward, inherit);
	if (cgroup)
		attr.sample_type |= PERF_SAMPLE_CGROUP;
	s->fast.cgroup = cgroup;
	s->general.cgroup = cgroup;
	/* Records by number: a type of its own for the short path */
	if (!exact) {
		attr.watermark = 0;
		attr.wakeup_events = 1000000;
	}
	ret = open_side(&s->fast, &attr, s->cpu);
	if (ret == -EACCES || ret == -EPERM)
		SKIP(return, "not allowed to record tracepoints");
	if (ret == -EINVAL && cgroup)
		SKIP(return, "this kernel lacks CONFIG_CGROUP_PERF");
	ASSERT_EQ(0, ret);
	attr.sample_type |= PERF_SAMPLE_WEIGHT;
	ASSERT_EQ(0, open_side(&s->general, &attr, s->cpu));
}

FIXTURE_SETUP(tp_records)
{
	set_up(_metadata, &self->s, variant->backward, variant->inherit, variant->exact,
	       variant->cgroup);
}

FIXTURE_TEARDOWN(tp_records)
{
	close(self->s.fast.fd);
	close(self->s.general.fd);
}

static void in_child(struct __test_metadata *_metadata, int n)
{
	pid_t pid = fork();
	int status;

	ASSERT_GE(pid, 0);
	if (!pid) {
		hits(n);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

/* All fields; of a child's records, too; and of an event that writes to another's buffer */
TEST_F(tp_records, same)
{
	struct perf_event_attr attr = common_attr(self->s.tracepoint, variant->backward, false);
	int fd = -1, i;

	if (variant->redirect) {
		fd = perf_event_open(&attr, 0, self->s.cpu);
		ASSERT_GE(fd, 0);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_FILTER, IS_CALL(__NR_getppid)));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->s.fast.fd));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	}
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	if (variant->inherit)
		in_child(_metadata, CALLS);
	else
		hits(CALLS);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	hits(CALLS);

	if (variant->redirect) {
		struct sample *other = &self->s.fast.samples[CALLS];

		syscall(__NR_getppid);
		ASSERT_EQ(0, read_side(&self->s.fast, false, false));
		ASSERT_EQ(CALLS + 1, self->s.fast.nr);
		for (i = 0; i < CALLS; i++)
			EXPECT_EQ(self->s.fast.id, self->s.fast.samples[i].id);
		EXPECT_NE(self->s.fast.id, other->id);
		EXPECT_EQ(__NR_getppid, other->nr);
		close(fd);
	} else {
		expect_same(_metadata, &self->s, variant->backward, CALLS);
	}
	EXPECT_EQ(CALLS, count_of(&self->s.fast));
	EXPECT_EQ(CALLS, count_of(&self->s.general));
}

FIXTURE(tp_changes)
{
	struct sides	s;
};

FIXTURE_SETUP(tp_changes)
{
	set_up(_metadata, &self->s, false, false, true, false);
}

FIXTURE_TEARDOWN(tp_changes)
{
	close(self->s.fast.fd);
	close(self->s.general.fd);
}

/* What does not pass the filter is neither recorded nor counted. */
TEST_F(tp_changes, filter)
{
	int i;

	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	for (i = 0; i < CALLS; i++) {
		syscall(__NR_getppid);
		hits(1);
	}
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	expect_same(_metadata, &self->s, false, CALLS);
	EXPECT_EQ(CALLS, count_of(&self->s.fast));
	for (i = 0; i < CALLS; i++)
		EXPECT_EQ(__NR_close, self->s.fast.samples[i].nr);
}

/* An event that excludes the kernel has no hits in it, with a filter or without. */
TEST_F(tp_changes, without_kernel)
{
	struct perf_event_attr attr = common_attr(self->s.tracepoint, false, false);
	struct side all = {}, filtered = {};

	attr.exclude_kernel = 1;
	all.fd = perf_event_open(&attr, 0, self->s.cpu);
	ASSERT_GE(all.fd, 0);
	filtered.fd = perf_event_open(&attr, 0, self->s.cpu);
	ASSERT_GE(filtered.fd, 0);
	ASSERT_EQ(0, ioctl(filtered.fd, PERF_EVENT_IOC_SET_FILTER, IS_CALL(__NR_close)));
	ASSERT_EQ(0, ioctl(all.fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, ioctl(filtered.fd, PERF_EVENT_IOC_ENABLE, 0));
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	hits(CALLS);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(CALLS, count_of(&self->s.fast));
	EXPECT_EQ(0, count_of(&all));
	EXPECT_EQ(0, count_of(&filtered));
	close(all.fd);
	close(filtered.fd);
}

/* What comes while a buffer is paused is counted, and told by the first record after. */
TEST_F(tp_changes, paused)
{
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	hits(3);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_PAUSE_OUTPUT, 1);
	hits(5);
	expect_same(_metadata, &self->s, false, 3);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
	hits(2);
	expect_same(_metadata, &self->s, false, 2);
	EXPECT_EQ(5, self->s.fast.lost);
	EXPECT_EQ(1, self->s.fast.lost_records);
	EXPECT_EQ(10, count_of(&self->s.fast));
}

/* So is what comes while a buffer is full. */
TEST_F(tp_changes, full)
{
	int fit = (NR_PAGES * getpagesize() - 1) / SAMPLE_SIZE;
	struct perf_event_mmap_page *fast = self->s.fast.base;
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
	} *lost;
	uint64_t head;

	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	hits(fit);
	head = fast->data_head;
	EXPECT_EQ(fit * SAMPLE_SIZE, head);
	hits(7);
	EXPECT_EQ(head, fast->data_head);
	/* Room for two records: the one of what was lost, and another */
	fast->data_tail = 4096;
	hits(1);
	EXPECT_EQ(head + sizeof(*lost) + SAMPLE_SIZE, fast->data_head);
	lost = self->s.fast.base + getpagesize() + head;
	EXPECT_EQ(PERF_RECORD_LOST, lost->header.type);
	EXPECT_EQ(7, lost->lost);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(fit + 8, count_of(&self->s.fast));
	EXPECT_EQ(fit + 8, count_of(&self->s.general));
}

/* IOC_REFRESH: so many records, then the event is disabled. */
TEST_F(tp_changes, refresh)
{
	for_both(_metadata, &self->s, PERF_EVENT_IOC_REFRESH, 4);
	hits(CALLS);
	expect_same(_metadata, &self->s, false, 4);
	EXPECT_EQ(count_of(&self->s.general), count_of(&self->s.fast));
}

static int signals;

static void on_signal(int sig)
{
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
}

/* O_ASYNC: a signal for each record */
TEST_F(tp_changes, signals)
{
	ASSERT_NE(SIG_ERR, signal(SIGIO, on_signal));
	ASSERT_EQ(0, fcntl(self->s.fast.fd, F_SETOWN, getpid()));
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	hits(5);
	EXPECT_EQ(0, __atomic_load_n(&signals, __ATOMIC_RELAXED));
	ASSERT_EQ(0, fcntl(self->s.fast.fd, F_SETFL, O_ASYNC));
	hits(5);
	ASSERT_EQ(0, fcntl(self->s.fast.fd, F_SETFL, 0));
	hits(5);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(5, __atomic_load_n(&signals, __ATOMIC_RELAXED));
	expect_same(_metadata, &self->s, false, 15);
}

/* Wakeups by number of records, and by watermark */
TEST_F(tp_changes, wakeups)
{
	struct perf_event_attr attr = common_attr(self->s.tracepoint, false, false);
	struct pollfd poll_fd = { .events = POLLIN };
	struct side *side = calloc(1, sizeof(*side));
	int by_number, i;

	ASSERT_NE(NULL, side);
	for (by_number = 0; by_number <= 1; by_number++) {
		attr.watermark = !by_number;
		if (by_number)
			attr.wakeup_events = 10;
		else
			attr.wakeup_watermark = 10 * SAMPLE_SIZE - 1;
		ASSERT_EQ(0, open_side(side, &attr, self->s.cpu));
		ASSERT_EQ(0, ioctl(side->fd, PERF_EVENT_IOC_ENABLE, 0));
		poll_fd.fd = side->fd;
		for (i = 1; i <= 35; i++) {
			hits(1);
			EXPECT_EQ(i % 10 == 0, poll(&poll_fd, 1, 0))
				TH_LOG("by_number %d, hit %d", by_number, i);
		}
		close(side->fd);
	}
	free(side);
}

/* IOC_PERIOD of an event without PERF_SAMPLE_PERIOD: one record of so many hits */
TEST_F(tp_changes, period)
{
	struct perf_event_attr attr = common_attr(self->s.tracepoint, false, false);
	uint64_t size = SAMPLE_SIZE - 8, period, fast, general;

	close(self->s.fast.fd);
	close(self->s.general.fd);
	attr.sample_type &= ~PERF_SAMPLE_PERIOD;
	ASSERT_EQ(0, open_side(&self->s.fast, &attr, self->s.cpu));
	attr.sample_type |= PERF_SAMPLE_WEIGHT;
	ASSERT_EQ(0, open_side(&self->s.general, &attr, self->s.cpu));
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);

	for (period = 1; period <= 5; period += 2) {
		for_both(_metadata, &self->s, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
		fast = data_head(self->s.fast.base);
		general = data_head(self->s.general.base);
		hits(30);
		fast = (data_head(self->s.fast.base) - fast) / size;
		general = (data_head(self->s.general.base) - general) / (size + 8);
		EXPECT_EQ(general, fast);
		/* What was left of the period before may end in these. */
		EXPECT_LE(30 / period - 2, fast);
		EXPECT_GE(30 / period + 2, fast);
	}
}

/*
 * Call chains of one place are the same. On a kernel with CONFIG_PERF_FAST_CHECK each was
 * compared with that of the unwinder.
 */
TEST_F(tp_changes, call_chains)
{
	struct perf_event_attr attr = common_attr(self->s.tracepoint, false, false);
	struct {
		struct perf_event_header header;
		uint64_t ip, nr, ips[];
	} *first, *next;
	uint64_t at;
	int n = 0;

	close(self->s.fast.fd);
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN;
	attr.exclude_callchain_user = 1;
	ASSERT_EQ(0, open_side(&self->s.fast, &attr, self->s.cpu));
	ASSERT_EQ(0, ioctl(self->s.fast.fd, PERF_EVENT_IOC_ENABLE, 0));
	hits(CALLS);

	first = self->s.fast.base + getpagesize();
	ASSERT_LE(3, first->nr);
	EXPECT_EQ((uint64_t)PERF_CONTEXT_KERNEL, first->ips[0]);
#ifdef __x86_64__
	EXPECT_EQ(first->ip, first->ips[1]);
#endif
	for (at = 0; at < data_head(self->s.fast.base); at += next->header.size, n++) {
		next = (void *)first + at;
		ASSERT_EQ(first->header.size, next->header.size);
		EXPECT_EQ(0, memcmp(first, next, first->header.size));
	}
	EXPECT_EQ(CALLS, n);
}

static int load_program(int ret)
{
	static char log[4096];
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = ret },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type	= BPF_PROG_TYPE_TRACEPOINT,
		.insn_cnt	= 2,
		.insns		= (uintptr_t)insns,
		.license	= (uintptr_t)"GPL",
		.log_buf	= (uintptr_t)log,
		.log_size	= sizeof(log),
		.log_level	= 1,
	};

	return syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* A program decides whether a hit is delivered to any event. */
TEST_F(tp_changes, program)
{
	int no = load_program(0), yes = load_program(1), other;
	struct perf_event_attr attr = common_attr(self->s.tracepoint, false, false);

	if (no < 0)
		SKIP(return, "BPF programs cannot be loaded");
	for_both(_metadata, &self->s, PERF_EVENT_IOC_ENABLE, 0);
	hits(3);
	other = perf_event_open(&attr, 0, self->s.cpu);
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_BPF, no));
	hits(5);
	close(other);
	other = perf_event_open(&attr, 0, self->s.cpu);
	ASSERT_GE(other, 0);
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_BPF, yes));
	hits(4);
	/* This close() is recorded, the one above is not. */
	close(other);
	hits(2);
	for_both(_metadata, &self->s, PERF_EVENT_IOC_DISABLE, 0);
	expect_same(_metadata, &self->s, false, 3 + 4 + 1 + 2);
}

TEST_HARNESS_MAIN
