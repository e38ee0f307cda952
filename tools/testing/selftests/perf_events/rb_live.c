// SPDX-License-Identifier: GPL-2.0
/*
 * A snapshot of a backward ring buffer, taken while its CPU writes at full
 * speed, holds no torn record and no gap: every record between the oldest and
 * the newest one is there, once, with every byte as it was written; the newest
 * one is at least as new as what was complete before; and the kernel lost none.
 *
 * The writer makes system calls on a CPU of its own. Each is numbered, and the
 * number decides which of eight system calls it is. The tracepoint of their
 * entry is recorded by eight events, one for each, which dump the user stack in
 * eight different sizes: the writer has put words there that follow from the
 * number. So records vary in size, and each byte of them can be checked. A
 * timer event writes to the same buffer, and interrupts the others in the
 * middle of a record.
 *
 * The reader is libperf's. RB_LIVE_SNAPSHOTS in the environment sets how many
 * snapshots are taken of each buffer.
 */
#define _GNU_SOURCE

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <perf/event.h>

#include "rb_common.h"
#include "../../../lib/perf/snapshot.c"
#include "../kselftest_harness.h"

#define NR_KINDS	8
#define CLOCK		NR_KINDS	/* the timer event */
#define NR_EVENTS	(NR_KINDS + 1)
#define MAX_WORDS	256		/* on the writer's stack */
#define MAX_SKEW	128		/* words below them at the system call */
#define MAX_SNAPSHOTS	(1000 * 1000)
#define KiB		1024UL
#define MiB		(1024 * KiB)

/* System calls that fail at once with fd -1, and the stack that each dumps */
static const struct {
	long	nr;
	int	stack;
} kinds[NR_KINDS] = {
	{ __NR_fsync,		0 },
	{ __NR_fdatasync,	256 },
	{ __NR_fchdir,		384 },
	{ __NR_flock,		512 },
	{ __NR_dup,		776 },
	{ __NR_fchmod,		1024 },
	{ __NR_lseek,		1408 },
	{ __NR_fchown,		2000 },
};

/*
 * What a record with number seq must look like
 */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ULL;
	x ^= x >> 29;
	return x;
}

static int kind_of(uint64_t seq)
{
	return mix(seq + 12345) >> 61;
}

static uint64_t word_of(uint64_t seq, int i)
{
	return mix(seq) + i * 0x0101010101010101ULL;
}

/* sample_type IDENTIFIER | TID | TIME | RAW [| STACK_USER] */
#pragma pack(push, 1)

struct sample {
	struct perf_event_header header;
	uint64_t	id;
	uint32_t	pid, tid;
	uint64_t	time;
	uint32_t	raw_size;
	/* of the tracepoint */
	uint8_t		common[8];
	uint64_t	nr;
	uint64_t	args[6];
	uint32_t	pad;
	/* of the stack dump */
	uint64_t	stack_size;
	uint64_t	stack[];
};

#pragma pack(pop)

#define RAW_SIZE	(sizeof(((struct sample *)0)->common) + 7 * sizeof(uint64_t) + 4)
#define HEAD_SIZE	offsetof(struct sample, stack_size)

static unsigned int size_of(int kind)
{
	if (kind == CLOCK)
		return offsetof(struct sample, raw_size);
	if (!kinds[kind].stack)
		return HEAD_SIZE;
	return HEAD_SIZE + 2 * sizeof(uint64_t) + kinds[kind].stack;
}

/*
 * The writer
 */

struct shared {
	uint64_t	done;	/* last number whose record is complete */
};

static void write_one(uint64_t seq)
{
	int kind = kind_of(seq), i, n = kinds[kind].stack / sizeof(uint64_t);
	uint64_t words[MAX_WORDS];

	for (i = 0; i < n; i++)
		words[i] = word_of(seq, i);
	/* They must be on the stack by now. */
	asm volatile("" : : "r" (words) : "memory");
	syscall(kinds[kind].nr, -1, seq, mix(seq), 0, 0, 0);
}

static void run_writer(struct shared *shared, int cpu)
{
	uint64_t seq;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (cpu >= 0 && pin(cpu))
		_exit(1);
	for (seq = 1; ; seq++) {
		write_one(seq);
		__atomic_store_n(&shared->done, seq, __ATOMIC_RELEASE);
	}
}

/*
 * The events
 */

static int tracepoint_id(const char *name)
{
	static const char * const roots[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[PATH_MAX];
	unsigned int i;
	int id = -1;
	FILE *f;

	for (i = 0; i < 2 && id < 0; i++) {
		snprintf(path, sizeof(path), "%s/events/%s/id", roots[i], name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%d", &id) != 1)
			id = -1;
		fclose(f);
	}
	return id;
}

/*
 * The tracepoint is switched on once, not by each test: that patches the code which the
 * writer runs, and QEMU with a thread for each CPU may show it a breakpoint that the
 * kernel has removed again ("Oops: int3" in syscall_trace_enter()).
 */
static __attribute__((constructor)) void keep_tracepoint_on(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_TRACEPOINT,
		.config		= tracepoint_id("raw_syscalls/sys_enter"),
		.disabled	= 1,
	};

	/* Where it fails the tests say why. It ends with the program. */
	perf_event_open(&attr, 0, -1);
}

FIXTURE(rb_live)
{
	struct perf_snapshot	*snap;
	struct shared		*shared;
	void			*base;
	size_t			len;
	int			fds[NR_EVENTS];
	uint64_t		ids[NR_EVENTS];
	int			nr_events;
	int			cpu;		/* writer's */
	int			here;		/* ours */
	pid_t			writer;
	/* what was seen */
	uint64_t		checked;
	uint64_t		*given_up;
	unsigned int		retries;
	unsigned int		nr;
};

FIXTURE_VARIANT(rb_live)
{
	size_t		size;
	unsigned int	flags;		/* of perf_snapshot__take() */
	enum perf_snapshot_way way;
	unsigned int	nr;		/* of snapshots */
	bool		task;		/* events that follow the writer */
	bool		incremental;
};

#define IOCTL	.flags = PERF_SNAPSHOT_NO_HOP | PERF_SNAPSHOT_NO_PAUSE, \
		.way = PERF_SNAPSHOT_IOCTL
#define HOP	.flags = PERF_SNAPSHOT_NO_IOCTL | PERF_SNAPSHOT_NO_PAUSE, \
		.way = PERF_SNAPSHOT_HOP
#define PAUSE	.flags = PERF_SNAPSHOT_NO_IOCTL | PERF_SNAPSHOT_NO_HOP, \
		.way = PERF_SNAPSHOT_PAUSE

FIXTURE_VARIANT_ADD(rb_live, ioctl_16k) { .size = 16 * KiB, .nr = 200, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_64k) { .size = 64 * KiB, .nr = 200, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_256k) { .size = 256 * KiB, .nr = 200, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_1m) { .size = 1 * MiB, .nr = 200, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_4m) { .size = 4 * MiB, .nr = 200, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_16m) { .size = 16 * MiB, .nr = 5, IOCTL };
FIXTURE_VARIANT_ADD(rb_live, ioctl_task) { .size = 256 * KiB, .nr = 50, IOCTL, .task = true };
FIXTURE_VARIANT_ADD(rb_live, ioctl_incremental)
{
	.size = 4 * MiB, .nr = 200, IOCTL, .incremental = true,
};

FIXTURE_VARIANT_ADD(rb_live, hop_16k) { .size = 16 * KiB, .nr = 50, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_64k) { .size = 64 * KiB, .nr = 50, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_256k) { .size = 256 * KiB, .nr = 50, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_1m) { .size = 1 * MiB, .nr = 50, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_4m) { .size = 4 * MiB, .nr = 50, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_16m) { .size = 16 * MiB, .nr = 5, HOP };
FIXTURE_VARIANT_ADD(rb_live, hop_task) { .size = 4 * MiB, .nr = 50, HOP, .task = true };
FIXTURE_VARIANT_ADD(rb_live, hop_incremental)
{
	.size = 4 * MiB, .nr = 50, HOP, .incremental = true,
};

FIXTURE_VARIANT_ADD(rb_live, pause_256k) { .size = 256 * KiB, .nr = 20, PAUSE };

static int open_event(int kind, int id, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_TRACEPOINT,
		.config		= id,
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
				  PERF_SAMPLE_TIME,
		.read_format	= PERF_FORMAT_LOST,
		.write_backward	= 1,
	};

	if (kind == CLOCK) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = 1000 * 1000;
	} else {
		attr.sample_type |= PERF_SAMPLE_RAW;
		attr.sample_stack_user = kinds[kind].stack;
		if (kinds[kind].stack)
			attr.sample_type |= PERF_SAMPLE_STACK_USER;
	}
	return perf_event_open(&attr, pid, cpu);
}

/*
 * A throttled event leaves a gap that is none of the reader's. Where samples are
 * slow to take (an emulator, a busy host) the kernel would lower the limit.
 */
static bool keep_from_throttling(void)
{
	return !write_text("/proc/sys/kernel/perf_cpu_time_max_percent", "25") &&
	       !write_text("/proc/sys/kernel/perf_event_max_sample_rate", "1000000") &&
	       !write_text("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
}

FIXTURE_SETUP(rb_live)
{
	int id = tracepoint_id("raw_syscalls/sys_enter");
	struct perf_snapshot_buffer buf;
	char filter[32];
	int kind;

	self->cpu = allowed_cpu(1);
	self->here = allowed_cpu(0);
	if (self->cpu < 0)
		SKIP(return, "needs two CPUs");
	if (id < 0)
		SKIP(return, "no tracepoint raw_syscalls:sys_enter (or no tracefs)");

	if (!keep_from_throttling())
		SKIP(return, "cannot set kernel.perf_event_max_sample_rate (not root?)");

	self->shared = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->given_up = calloc(MAX_SNAPSHOTS, sizeof(uint64_t));
	ASSERT_NE(NULL, self->given_up);

	self->writer = fork();
	ASSERT_GE(self->writer, 0);
	if (!self->writer)
		run_writer(self->shared, variant->task ? -1 : self->cpu);
	if (!variant->task)
		ASSERT_EQ(0, pin(self->here));

	self->len = getpagesize() + variant->size;
	for (kind = 0; kind < NR_EVENTS; kind++) {
		int fd = open_event(kind, id, variant->task ? self->writer : -1,
				    variant->task ? -1 : self->cpu);

		if (fd < 0 && errno == EACCES)
			SKIP(return, "needs CAP_PERFMON");
		ASSERT_GE(fd, 0);
		self->fds[kind] = fd;
		self->nr_events++;
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ID, &self->ids[kind]));
		if (kind != CLOCK) {
			snprintf(filter, sizeof(filter), "id == %ld", kinds[kind].nr);
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter));
		}
		if (!kind) {
			self->base = mmap(NULL, self->len, PROT_READ, MAP_SHARED, fd, 0);
			ASSERT_NE(MAP_FAILED, self->base);
		} else {
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fds[0]));
		}
	}

	buf = (struct perf_snapshot_buffer) {
		.fd	= self->fds[0],
		.cpu	= variant->task ? -1 : self->cpu,
		.base	= self->base,
		.len	= self->len,
	};
	self->snap = perf_snapshot__new(&buf);
	ASSERT_NE(NULL, self->snap);
}

FIXTURE_TEARDOWN(rb_live)
{
	int status;

	kill(self->writer, SIGKILL);
	waitpid(self->writer, &status, 0);
	perf_snapshot__delete(self->snap);
	munmap(self->base, self->len);
	while (self->nr_events)
		close(self->fds[--self->nr_events]);
	free(self->given_up);
}

/*
 * Checks. Each returns NULL, or what is wrong.
 */

static const char *check_stack(const struct sample *sample, int kind, uint64_t seq)
{
	const uint64_t n = kinds[kind].stack / sizeof(uint64_t);
	uint64_t i, skew;

	if (sample->stack_size != n * sizeof(uint64_t))
		return "size of the stack dump";
	if (sample->stack[n] != n * sizeof(uint64_t))
		return "dynamic size of the stack dump";

	/* Below the words lie a return address and the like. */
	for (skew = 0; skew < n && skew < MAX_SKEW; skew++)
		if (sample->stack[skew] == word_of(seq, 0))
			break;
	if (skew == n || skew == MAX_SKEW)
		return "no words in the stack dump";
	for (i = 0; skew + i < n; i++)
		if (sample->stack[skew + i] != word_of(seq, i))
			return "words of the stack dump";
	return NULL;
}

static const char *check_sample(const struct sample *sample, int kind)
{
	uint64_t seq = sample->args[1];

	if (sample->raw_size != RAW_SIZE)
		return "size of the raw data";
	if ((long)sample->nr != kinds[kind].nr)
		return "number of the system call";
	if (kind_of(seq) != kind)
		return "kind of the record";
	if (sample->args[2] != mix(seq))
		return "checksum of the arguments";
	return kinds[kind].stack ? check_stack(sample, kind, seq) : NULL;
}

static int find_kind(const uint64_t *ids, uint64_t id)
{
	int kind;

	for (kind = 0; kind < NR_EVENTS; kind++)
		if (ids[kind] == id)
			return kind;
	return -1;
}

/*
 * All records, oldest first. *first and *last: numbers of the writer's, 0 if there
 * are none. @lossy: some may be missing, but none is out of order.
 */
static const char *check_records(struct perf_snapshot *snap, const uint64_t *ids,
				 pid_t writer, bool lossy, uint64_t *first,
				 uint64_t *last, uint64_t *checked)
{
	union perf_event *event = NULL;
	const struct sample *sample;
	const char *wrong;
	int kind;

	*first = *last = 0;
	while ((event = perf_snapshot__newer(snap, event))) {
		sample = (void *)event;
		if (lossy && event->header.type == PERF_RECORD_LOST)
			continue;
		if (event->header.type == PERF_RECORD_THROTTLE ||
		    event->header.type == PERF_RECORD_UNTHROTTLE)
			return "throttled, although the limit was raised";
		if (event->header.type != PERF_RECORD_SAMPLE)
			return "type of a record";
		kind = find_kind(ids, sample->id);
		if (kind < 0)
			return "id of a record";
		if (event->header.size != size_of(kind))
			return "size of a record";
		if (kind == CLOCK || sample->tid != (uint32_t)writer)
			continue;

		wrong = check_sample(sample, kind);
		if (wrong)
			return wrong;
		if (*last && sample->args[1] != *last + 1 &&
		    !(lossy && sample->args[1] > *last))
			return "a gap or a repetition";
		*last = sample->args[1];
		if (!*first)
			*first = *last;
		++*checked;
	}
	return NULL;
}

static uint64_t lost_by_kernel(const int *fds)
{
	uint64_t value[2], sum = 0;
	int kind;

	for (kind = 0; kind < NR_EVENTS; kind++)
		if (read(fds[kind], value, sizeof(value)) == sizeof(value))
			sum += value[1];
		else
			sum += 1ULL << 32;
	return sum;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(uint64_t *)a, y = *(uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of snapshots [from, to); they are sorted. */
static uint64_t median(uint64_t *given_up, unsigned int from, unsigned int to)
{
	qsort(given_up + from, to - from, sizeof(uint64_t), compare);
	return given_up[from + (to - from) / 2];
}

static unsigned int nr_snapshots(unsigned int nr)
{
	const char *env = getenv("RB_LIVE_SNAPSHOTS");

	if (env)
		nr = atoi(env);
	return nr <= MAX_SNAPSHOTS ? nr : MAX_SNAPSHOTS;
}

/*
 * Of a buffer of 1 MiB or more, half of all snapshots give up at most 2 %. A
 * machine with other work may be in the way of that, but not time and again.
 */
#define MAX_BATCHES	20

TEST_F_TIMEOUT(rb_live, snapshots, 3600)
{
	const uint64_t begin = data_head(self->base);
	const bool judged = variant->way == PERF_SNAPSHOT_IOCTL && variant->size >= MiB &&
			    !variant->incremental;
	unsigned int batch = 0, from;
	const struct perf_snapshot_info *info = perf_snapshot__info(self->snap);
	unsigned int flags = variant->flags, nr = nr_snapshots(variant->nr);
	/* Pausing loses events, and the kernel says so. */
	const bool lossy = variant->way == PERF_SNAPSHOT_PAUSE;
	uint64_t first, last, before = 0, done, median_given_up;
	const char *wrong = NULL;
	int err = 0;

	/* Until the buffer has wrapped since the last of the events was opened */
	for (last = 0; last < 100 * 1000; last++) {
		if (begin - data_head(self->base) > 2 * variant->size)
			break;
		usleep(1000);
	}
	ASSERT_GT(begin - data_head(self->base), 2 * variant->size);

	if (variant->incremental)
		flags |= PERF_SNAPSHOT_INCREMENTAL;

again:
	from = self->nr;
	for (; self->nr < from + nr && !wrong; self->nr++) {
		usleep(rand() % 3000);

		done = __atomic_load_n(&self->shared->done, __ATOMIC_ACQUIRE);
		err = perf_snapshot__take(self->snap, flags);
		if (err == -EOPNOTSUPP && variant->way == PERF_SNAPSHOT_IOCTL)
			SKIP(return, "this kernel has no PERF_EVENT_IOC_RESERVED_HEAD");
		if (err)
			break;

		self->given_up[self->nr] = info->given_up;
		self->retries += info->retries;
		wrong = check_records(self->snap, self->ids, self->writer, lossy,
				      &first, &last, &self->checked);
		if (wrong)
			break;
		/* The writer may have had no time since the snapshot before. */
		if (variant->incremental && before && !first) {
			first = before + 1;
			last = before;
		}
		if (info->way != variant->way)
			wrong = "way";
		else if (last < done && !lossy)
			wrong = "the newest records are missing";
		else if (variant->incremental && before && !info->gap && first != before + 1)
			wrong = "a gap after the snapshot before";
		else if (variant->incremental && before && info->gap && first <= before + 1)
			wrong = "a gap that is none";
		before = last;
	}

	TH_LOG("%u snapshots, %u retries, %llu records checked", self->nr - from,
	       self->retries, (unsigned long long)self->checked);
	EXPECT_EQ(0, err);
	EXPECT_EQ(NULL, wrong) TH_LOG("snapshot %u: %s", self->nr, wrong);
	ASSERT_EQ(from + nr, self->nr);
	EXPECT_GT(self->checked, nr);

	median_given_up = median(self->given_up, from, self->nr);
	TH_LOG("given up: median %.2f %%, most %.2f %%",
	       100. * median_given_up / variant->size,
	       100. * self->given_up[self->nr - 1] / variant->size);
	if (judged && median_given_up * 50 > variant->size &&
	    ++batch < MAX_BATCHES && self->nr + nr <= MAX_SNAPSHOTS)
		goto again;
	if (judged)
		EXPECT_LE(median_given_up * 50, variant->size);

	EXPECT_EQ(lossy, lost_by_kernel(self->fds) != 0);
}

TEST_HARNESS_MAIN
