// SPDX-License-Identifier: GPL-2.0
/*
 * What a PMU saves for a task at a context switch is restored at the next one, whichever
 * way its events were opened: the stacks of a system-wide event are as deep as those of a
 * per-process one.
 *
 * The PMUs are those of perf_test_pmu.ko, see test_modules/perf_test_pmu.c; its path is in
 * TEST_PMU_MODULE. A task pushes a chain of frames, and has samples taken while it is
 * switched and migrated. Each sample says how deep the stack must be, and each frame
 * whose it is, and at which level.
 *
 * A task that ran already when a system-wide event was opened may lose what it pushed
 * until it was switched once: its first slice. These samples are counted, and all later
 * ones must be whole.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
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
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "test_modules/test_pmu.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define MODULE		"perf_test_pmu"
#define BIG		"perf_test_big"
#define SMALL		"perf_test_small"
#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define BUFFER		(4UL << 20)
#define TASKS		50
#define NOBODY		65534
#define SUID_COPY	"/tmp/perf_ctx_data.suid"
#define CGROUP		"/sys/fs/cgroup/perf_ctx_data"
#define REVOKE		"/sys/module/" MODULE "/parameters/revoke"
#define DATA_TASKS	"/sys/kernel/perf_ctx_data/tasks"
#define DATA_BYTES	"/sys/kernel/perf_ctx_data/bytes"
/* Looks at what is going to be so, 10 ms or less apart */
#define MAX_TRIES	6000

/* How often a task pushes its chain anew: before and after its second return to user space. */
enum { FIRST_SLICE, LATER };

/* A frame: whose, and at which level from 1 on. */
static uint64_t frame_of(pid_t tid, unsigned int level)
{
	return (uint64_t)tid << 16 | level;
}

/* A sample's address: how deep the stack must be, and when. */
static uint64_t sample_of(int slice, unsigned int depth)
{
	return TEST_PMU_SAMPLE | slice << 16 | depth;
}

static pid_t gettid_(void)
{
	return syscall(__NR_gettid);
}

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return syscall(__NR_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A line "NAME NUMBER" of the module */
static long module_says(const char *name)
{
	char text[1024], *line;
	int fd = open(TEST_PMU_DEVICE, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	size_t len = strlen(name);

	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strncmp(line, name, len) && line[len] == ' ')
			return atol(line + len);
	}
	return -1;
}

static struct perf_event_attr stack_attr(const char *pmu)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.type", pmu);
	return (struct perf_event_attr) {
		.type			= module_says(name),
		.size			= sizeof(struct perf_event_attr),
		.sample_period		= 1,
		.sample_type		= PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
					  PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type	= PERF_SAMPLE_BRANCH_USER |
					  PERF_SAMPLE_BRANCH_CALL_STACK,
	};
}

/* The errno with which an event of a task or a CPU is refused, or 0 */
static int refused(const char *pmu, pid_t pid)
{
	struct perf_event_attr attr = stack_attr(pmu);
	int fd = event_open(&attr, pid, pid < 0 ? 0 : -1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int nr_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

static void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static long read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	long val = -1;

	if (f) {
		if (fscanf(f, "%ld", &val) != 1)
			val = -1;
		fclose(f);
	}
	return val;
}

static long env_long(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? atol(text) : otherwise;
}

/* The events of a PMU, one for each CPU, and what their samples said. */
struct recording {
	int		nr;
	int		fds[8];
	void		*bases[8];
	/* Frames that fit. */
	unsigned int	depth;
	uint64_t	samples;
	/* Frames that there were, and should have been. */
	uint64_t	frames;
	uint64_t	expected;
	/* Samples that were not whole, in the first slice and later. */
	uint64_t	first;
	uint64_t	later;
	/* Frames of somebody else, or out of order. */
	uint64_t	foreign;
	uint64_t	lost;
};

static int record(struct recording *r, const char *pmu, pid_t pid, bool inherit)
{
	struct perf_event_attr attr = stack_attr(pmu);
	int cpu;

	memset(r, 0, sizeof(*r));
	attr.inherit = inherit;
	r->depth = strcmp(pmu, BIG) ? TEST_PMU_SMALL_DEPTH : TEST_PMU_BIG_DEPTH;
	for (cpu = 0; cpu < nr_cpus() && cpu < 8; cpu++) {
		r->fds[cpu] = event_open(&attr, pid, cpu);
		if (r->fds[cpu] < 0)
			return -1;
		r->bases[cpu] = mmap(NULL, BUFFER + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
				     r->fds[cpu], 0);
		if (r->bases[cpu] == MAP_FAILED)
			return -1;
		r->nr++;
	}
	return 0;
}

static void record_stop(struct recording *r)
{
	int i;

	for (i = 0; i < r->nr; i++) {
		munmap(r->bases[i], BUFFER + PAGE);
		close(r->fds[i]);
	}
	r->nr = 0;
}

struct sample {
	struct perf_event_header hdr;
	uint32_t		pid, tid;
	uint64_t		addr;
	uint64_t		nr;
	struct perf_branch_entry entries[TEST_PMU_BIG_DEPTH];
};

static void judge_sample(struct recording *r, const struct sample *s)
{
	unsigned int depth = s->addr & 0xffff, slice = s->addr >> 16, i;

	if (depth > r->depth)
		depth = r->depth;
	r->samples++;
	r->frames += s->nr;
	r->expected += depth;
	if (s->nr != depth) {
		if (slice == FIRST_SLICE)
			r->first++;
		else
			r->later++;
	}
	for (i = 0; i < s->nr; i++) {
		/* The newest is at the level of the sample's depth. */
		if (s->entries[i].from != frame_of(s->tid, (s->addr & 0xffff) - i))
			r->foreign++;
	}
}

/* Judges what came since the last call. */
static void drain(struct recording *r)
{
	union {
		struct perf_event_header hdr;
		struct sample		sample;
		char			bytes[sizeof(struct sample)];
		struct {
			struct perf_event_header hdr;
			uint64_t	id;
			uint64_t	lost;
		} lost;
	} copy;
	int i;

	for (i = 0; i < r->nr; i++) {
		struct perf_event_mmap_page *page = r->bases[i];
		char *data = (char *)page + page->data_offset;
		uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		uint64_t tail = page->data_tail;
		size_t n, first;

		for (; tail < head; tail += copy.hdr.size) {
			/* Records are multiples of 8: a header is never split. */
			memcpy(&copy, data + (tail & (BUFFER - 1)), sizeof(copy.hdr));
			n = copy.hdr.size;
			if (n > sizeof(copy) || n < sizeof(copy.hdr)) {
				r->foreign++;
				tail = head;
				break;
			}
			first = BUFFER - (tail & (BUFFER - 1));
			if (first > n)
				first = n;
			memcpy(&copy, data + (tail & (BUFFER - 1)), first);
			memcpy(copy.bytes + first, data, n - first);
			if (copy.hdr.type == PERF_RECORD_SAMPLE)
				judge_sample(r, &copy.sample);
			else if (copy.hdr.type == PERF_RECORD_LOST)
				r->lost += copy.lost.lost;
		}
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

/* Pushes and pops from here on are those of one task. */
struct stack {
	int		dev;
	pid_t		tid;
	unsigned int	depth;
};

static void stack_do(struct stack *s, uint64_t *words, size_t n)
{
	if (write(s->dev, words, n * sizeof(*words)) != (ssize_t)(n * sizeof(*words)))
		abort();
}

static void stack_push(struct stack *s, unsigned int n)
{
	uint64_t words[TEST_PMU_BIG_DEPTH];
	unsigned int i;

	for (i = 0; i < n; i++)
		words[i] = frame_of(s->tid, ++s->depth);
	stack_do(s, words, n);
}

static void stack_pop(struct stack *s)
{
	uint64_t words[TEST_PMU_BIG_DEPTH] = {};

	stack_do(s, words, s->depth);
	s->depth = 0;
}

/* A call, a sample in it, and the return */
static void stack_call(struct stack *s, int slice)
{
	uint64_t words[] = { frame_of(s->tid, s->depth + 1), sample_of(slice, s->depth + 1),
			     TEST_PMU_POP };

	stack_do(s, words, 3);
}

static long switches(void)
{
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	return ru.ru_nvcsw + ru.ru_nivcsw;
}

/* Returns after this task has been switched. */
static void be_switched(void)
{
	long before = switches();
	int tries;

	for (tries = 0; tries < 200; tries++) {
		/* Where nobody else wants to run, it takes a sleep; and not too short a one. */
		if (tries < 20)
			sched_yield();
		else
			usleep(tries * tries);
		if (switches() != before)
			return;
	}
	abort();
}

/* What main and its tasks share. */
struct work {
	int		dev;
	int		rounds;
	/* Pids, threads' included, for those who attach to them. */
	int		go;
	int		ready;
	long		switches;
	/* Switches while its first sample was taken */
	long		early;
	long		migrations;
};

static int futex(int *word, int op, int val)
{
	return syscall(__NR_futex, word, op, val, NULL, NULL, 0);
}

static void wait_for(int *word, int val)
{
	int now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != val)
		futex(word, FUTEX_WAIT, now);
}

static void set(int *word, int val)
{
	__atomic_store_n(word, val, __ATOMIC_RELEASE);
	futex(word, FUTEX_WAKE, INT_MAX);
}

/* A task that does what the tests ask of it: TASKS of these at once. */
static void work(struct work *w, int index)
{
	struct stack s = { .dev = w->dev, .tid = gettid_() };
	int depth = 3 + index % 8, i;
	long before;

	pin_to_cpu(index % nr_cpus());
	__atomic_add_fetch(&w->ready, 1, __ATOMIC_SEQ_CST);
	/* Half of them sleep when the events come, half are running, or want to. */
	if (index % 2)
		wait_for(&w->go, 1);
	while (!__atomic_load_n(&w->go, __ATOMIC_ACQUIRE))
		;
	stack_push(&s, depth);
	stack_call(&s, FIRST_SLICE);
	be_switched();

	before = switches();
	stack_pop(&s);
	stack_push(&s, depth);
	for (i = 0; i < w->rounds; i++) {
		if (i % 8 == 7) {
			pin_to_cpu((index + i / 8) % nr_cpus());
			__atomic_add_fetch(&w->migrations, 1, __ATOMIC_RELAXED);
		}
		be_switched();
		stack_call(&s, LATER);
	}
	stack_pop(&s);
	__atomic_add_fetch(&w->switches, switches() - before, __ATOMIC_SEQ_CST);
}

struct job {
	struct work	*work;
	int		index;
};

static void *work_thread(void *arg)
{
	struct job *job = arg;

	work(job->work, job->index);
	return NULL;
}

/* A child does not hold its parent's events, and dies with it. */
static void be_child(int dev)
{
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (fd = 3; fd < 64; fd++) {
		if (fd != dev)
			close(fd);
	}
}

/* One process with two of the tasks */
static void work_process(struct work *w, int index)
{
	struct job jobs[2] = { { w, 2 * index }, { w, 2 * index + 1 } };
	pthread_t thread;

	be_child(w->dev);
	if (pthread_create(&thread, NULL, work_thread, &jobs[1]))
		_exit(1);
	work_thread(&jobs[0]);
	pthread_join(thread, NULL);
	_exit(0);
}

static int load(const char *args)
{
	return load_module(getenv("TEST_PMU_MODULE"), args);
}

static int unload(void)
{
	return unload_module(MODULE);
}

/* Tasks with data of a PMU; what is freed by RCU is waited for. */
static long tasks_with_data(const char *pmu, long until)
{
	char name[64];
	long nr = -1;
	int tries;

	snprintf(name, sizeof(name), "%s.tasks", pmu);
	for (tries = 0; tries < MAX_TRIES; tries++) {
		nr = module_says(name);
		if (nr == until)
			break;
		usleep(10000);
	}
	return nr;
}

FIXTURE(ctx_data)
{
	struct work	*work;
	pid_t		pids[TASKS / 2];
};

FIXTURE_SETUP(ctx_data)
{
	if (geteuid())
		SKIP(return, "must be root");
	if (access(getenv("TEST_PMU_MODULE") ?: "", R_OK))
		SKIP(return, "TEST_PMU_MODULE is not the path of the module");
	/* A test that died may have left it. */
	unload();
	ASSERT_EQ(0, load(""));
	self->work = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->work);
	self->work->dev = open(TEST_PMU_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->work->dev);
	self->work->rounds = env_long("PERF_CTX_DATA_SWITCHES", 5000) / TASKS;
}

FIXTURE_TEARDOWN(ctx_data)
{
	int tries;

	/* Nobody has data when the last event is closed, and nothing holds the module. */
	EXPECT_EQ(0, tasks_with_data(BIG, 0));
	EXPECT_EQ(0, tasks_with_data(SMALL, 0));
	close(self->work->dev);
	for (tries = 0; tries < MAX_TRIES && unload(); tries++)
		usleep(10000);
	EXPECT_GT(MAX_TRIES, tries);
}

static int start_work(struct _test_data_ctx_data *self)
{
	int i;

	self->work->go = 0;
	self->work->ready = 0;
	self->work->switches = 0;
	self->work->migrations = 0;
	for (i = 0; i < TASKS / 2; i++) {
		self->pids[i] = fork();
		if (self->pids[i] < 0)
			return -1;
		if (!self->pids[i])
			work_process(self->work, i);
	}
	return 0;
}

static void wait_ready(struct _test_data_ctx_data *self)
{
	while (__atomic_load_n(&self->work->ready, __ATOMIC_ACQUIRE) < TASKS)
		usleep(1000);
}

/* Returns how many processes did not end well. */
static int finish_work(struct _test_data_ctx_data *self, struct recording *r, int nr)
{
	int left = TASKS / 2, bad = 0, status, i;

	set(&self->work->go, 1);
	while (left) {
		if (waitpid(-1, &status, WNOHANG) > 0) {
			left--;
			bad += status != 0;
		} else {
			usleep(2000);
		}
		for (i = 0; i < nr; i++)
			drain(&r[i]);
	}
	for (i = 0; i < nr; i++)
		drain(&r[i]);
	return bad;
}

#define LOG_RECORDING(r, what) do {							\
	const struct recording *logged = (r);						\
											\
	TH_LOG("%s: %llu samples, %llu of %llu frames, short: %llu first, %llu later", what,	\
	       (unsigned long long)logged->samples, (unsigned long long)logged->frames,		\
	       (unsigned long long)logged->expected, (unsigned long long)logged->first,		\
	       (unsigned long long)logged->later);						\
} while (0)

/* From the second return to user space on no frame is missing, and never one too much. */
#define EXPECT_WHOLE(r, what) do {							\
	const struct recording *rec = (r);						\
											\
	LOG_RECORDING(rec, what);							\
	EXPECT_EQ(0, rec->later);							\
	EXPECT_EQ(0, rec->foreign);							\
	EXPECT_EQ(0, rec->lost);							\
	EXPECT_EQ(TASKS * (1 + (uint64_t)self->work->rounds), rec->samples);		\
} while (0)

#define EXPECT_SWITCHES() do {								\
	TH_LOG("%ld switches, %ld migrations", self->work->switches, self->work->migrations); \
	EXPECT_LE((long)TASKS * self->work->rounds, self->work->switches);		\
} while (0)

/* Events that children inherit: their contexts are swapped when one follows the other. */
TEST_F_TIMEOUT(ctx_data, per_process, 2000)
{
	struct recording r;

	ASSERT_EQ(0, record(&r, BIG, 0, true));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	EXPECT_EQ(0, finish_work(self, &r, 1));
	EXPECT_SWITCHES();
	EXPECT_WHOLE(&r, "per process");
	EXPECT_EQ(r.expected, r.frames);
	EXPECT_EQ(0, r.first);
	record_stop(&r);
}

/* Events of the CPUs, opened before the tasks are there */
TEST_F_TIMEOUT(ctx_data, system_wide, 2000)
{
	struct recording r;

	ASSERT_EQ(0, record(&r, BIG, -1, false));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	EXPECT_EQ(0, finish_work(self, &r, 1));
	EXPECT_SWITCHES();
	EXPECT_WHOLE(&r, "system-wide");
	/* The same number of frames as per process, but for the first slices. */
	if (!r.first)
		EXPECT_EQ(r.expected, r.frames);
	EXPECT_GE(TASKS, r.first);
	record_stop(&r);
}

/* Events of the CPUs, opened while the tasks run: some lose their first slice. */
TEST_F_TIMEOUT(ctx_data, system_wide_late, 2000)
{
	struct recording r;

	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	ASSERT_EQ(0, record(&r, BIG, -1, false));
	EXPECT_EQ(0, finish_work(self, &r, 1));
	EXPECT_SWITCHES();
	EXPECT_WHOLE(&r, "system-wide, opened late");
	EXPECT_GE(TASKS, r.first);
	record_stop(&r);
}

/* Runs on CPU 1 all the time until the event is there, and does not notice. */
static void first_slice(struct work *w)
{
	struct stack s = { .dev = w->dev, .tid = gettid_() };
	long before;
	int i;

	be_child(w->dev);
	pin_to_cpu(1);
	before = switches();
	__atomic_store_n(&w->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&w->go, __ATOMIC_ACQUIRE))
		;
	w->switches = switches() - before;
	before = switches();
	stack_push(&s, 8);
	stack_call(&s, FIRST_SLICE);
	w->early = switches() - before;
	be_switched();
	/* Here it has lost them, as it had nothing to save them in, */
	stack_call(&s, FIRST_SLICE);
	stack_pop(&s);
	/* but from now on it has. */
	stack_push(&s, 8);
	for (i = 0; i < 100; i++) {
		be_switched();
		stack_call(&s, LATER);
	}
	stack_pop(&s);
	_exit(0);
}

/* The exception: who was running when the event came, until it has been switched once. */
TEST_F_TIMEOUT(ctx_data, first_slice, 300)
{
	struct recording r;
	int i, status;
	pid_t pid;

	if (nr_cpus() < 2)
		SKIP(return, "needs two CPUs");
	pin_to_cpu(0);
	for (i = 0; i < 10; i++) {
		self->work->go = 0;
		self->work->ready = 0;
		pid = fork();
		if (!pid)
			first_slice(self->work);
		while (!__atomic_load_n(&self->work->ready, __ATOMIC_ACQUIRE))
			usleep(1000);
		ASSERT_EQ(0, record(&r, BIG, -1, false));
		set(&self->work->go, 1);
		EXPECT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
		drain(&r);
		LOG_RECORDING(&r, "opened while it runs");
		TH_LOG("it was switched %ld times meanwhile", self->work->switches);
		EXPECT_EQ(102, r.samples);
		/* Switched before the first sample, it has lost them for that one, too. */
		EXPECT_GE(self->work->early ? 2 : 1, r.first);
		EXPECT_EQ(0, r.later + r.foreign + r.lost);
		record_stop(&r);
	}
}

/* Both at once: one PMU, one stack, and one reference does not end with the other. */
TEST_F_TIMEOUT(ctx_data, both, 2000)
{
	struct recording r[2];

	ASSERT_EQ(0, record(&r[0], BIG, 0, true));
	ASSERT_EQ(0, record(&r[1], BIG, -1, false));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	EXPECT_EQ(0, finish_work(self, r, 2));
	EXPECT_WHOLE(&r[0], "per process");
	EXPECT_WHOLE(&r[1], "system-wide beside it");
	record_stop(&r[1]);
	record_stop(&r[0]);
}

/* The inherited events go while the tasks run on; the system-wide ones stay. */
TEST_F_TIMEOUT(ctx_data, one_of_both_ends, 2000)
{
	struct recording r[2];

	ASSERT_EQ(0, record(&r[0], BIG, 0, true));
	ASSERT_EQ(0, record(&r[1], BIG, -1, false));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	record_stop(&r[0]);
	EXPECT_EQ(0, finish_work(self, r, 2));
	EXPECT_WHOLE(&r[1], "system-wide, the others closed");
	record_stop(&r[1]);
}

/* The system-wide events go while the tasks run on; the inherited ones keep their data. */
TEST_F_TIMEOUT(ctx_data, other_of_both_ends, 2000)
{
	struct recording r[2];

	ASSERT_EQ(0, record(&r[0], BIG, 0, true));
	ASSERT_EQ(0, record(&r[1], BIG, -1, false));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	record_stop(&r[1]);
	EXPECT_EQ(0, finish_work(self, r, 1));
	EXPECT_WHOLE(&r[0], "per process, the others closed");
	EXPECT_EQ(r[0].expected, r[0].frames);
	record_stop(&r[0]);
}

/* What this task got for a system-wide event stays with it for the sake of its own one. */
TEST_F_TIMEOUT(ctx_data, wide_then_own, 300)
{
	struct recording task, wide;

	self->work->go = 1;
	ASSERT_EQ(0, record(&wide, BIG, -1, false));
	work(self->work, 0);
	drain(&wide);
	LOG_RECORDING(&wide, "system-wide");
	EXPECT_LT(0, wide.samples);
	EXPECT_EQ(0, wide.later);

	ASSERT_EQ(0, record(&task, BIG, 0, true));
	record_stop(&wide);
	/* All others' is freed. */
	EXPECT_EQ(1, tasks_with_data(BIG, 1));
	EXPECT_EQ(1, read_number("/sys/kernel/perf_ctx_data/tasks"));
	work(self->work, 0);
	drain(&task);
	LOG_RECORDING(&task, "its own, the others closed");
	EXPECT_EQ(1 + (uint64_t)self->work->rounds, task.samples);
	EXPECT_EQ(task.expected, task.frames);
	EXPECT_EQ(0, task.foreign + task.lost);
	record_stop(&task);
}

/* A task that has exited is given data, before its event is refused. It goes with it. */
TEST_F_TIMEOUT(ctx_data, exited, 300)
{
	struct recording r;
	siginfo_t info;
	long nr = -1;
	pid_t pid;
	int i;

	/* Nothing is freed just because nobody wants any. */
	ASSERT_EQ(0, record(&r, BIG, 0, false));
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
		EXPECT_EQ(ESRCH, refused(BIG, pid));
		EXPECT_EQ(2, read_number("/sys/kernel/perf_ctx_data/tasks"));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		/* RCU has its last reference. */
		for (int tries = 0; tries < MAX_TRIES; tries++) {
			nr = read_number("/sys/kernel/perf_ctx_data/tasks");
			if (nr == 1)
				break;
			usleep(10000);
		}
		ASSERT_EQ(1, nr);
	}
	record_stop(&r);
}

/*
 * Two PMUs with data of different sizes: a task can have those of one at a time. The
 * other's events are refused while they would want some, and find none otherwise.
 */
TEST_F_TIMEOUT(ctx_data, two_pmus, 2000)
{
	struct recording r;
	int i;

	for (i = 0; i < 2; i++) {
		const char *one = i ? SMALL : BIG, *other = i ? BIG : SMALL;
		struct perf_event_attr attr = stack_attr(other);
		int fd;

		ASSERT_EQ(0, record(&r, one, -1, false));
		EXPECT_EQ(EBUSY, refused(other, -1));
		EXPECT_EQ(EBUSY, refused(other, 0));
		/* That was no reason to forget the first one's. */
		EXPECT_EQ(0, refused(one, -1));
		EXPECT_EQ(0, refused(one, 0));
		/* Branches that are no call stack are not saved. */
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
		fd = event_open(&attr, -1, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, start_work(self));
		wait_ready(self);
		EXPECT_EQ(0, finish_work(self, &r, 1));
		EXPECT_WHOLE(&r, one);
		EXPECT_LT(0, module_says(i ? SMALL ".tasks" : BIG ".tasks"));
		EXPECT_EQ(0, module_says(i ? BIG ".tasks" : SMALL ".tasks"));
		record_stop(&r);
		EXPECT_EQ(0, tasks_with_data(one, 0));
		close(fd);
	}
}

/* And with events of single tasks, too */
TEST_F_TIMEOUT(ctx_data, two_pmus_per_process, 2000)
{
	struct recording r;

	ASSERT_EQ(0, record(&r, SMALL, 0, true));
	EXPECT_EQ(EBUSY, refused(BIG, -1));
	EXPECT_EQ(EBUSY, refused(BIG, 0));
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	EXPECT_EQ(0, finish_work(self, &r, 1));
	EXPECT_WHOLE(&r, "small, per process");
	EXPECT_EQ(r.expected, r.frames);
	record_stop(&r);
}

/* Runs after the set-uid exec, as another program would. */
static void __attribute__((constructor)) after_exec(int argc, char **argv)
{
	struct work w = {};

	if (argc != 4 || strcmp(argv[1], "--after-exec"))
		return;
	w.dev = atoi(argv[2]);
	w.rounds = atoi(argv[3]);
	w.go = 1;
	work(&w, 0);
	_exit(geteuid());
}

static int copy_set_uid(void)
{
	char buf[65536];
	int in = open("/proc/self/exe", O_RDONLY), out;
	ssize_t n;

	out = open(SUID_COPY, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	while ((n = read(in, buf, sizeof(buf))) > 0) {
		if (write(out, buf, n) != n)
			n = -1;
	}
	close(in);
	if (fchmod(out, 04755))
		n = -1;
	return close(out) || n ? -1 : 0;
}

/* Before and after an exec that raises its privileges; for good with an exit status. */
static void exec_set_uid(struct work *w)
{
	struct work mine = *w;
	char text[2][16];

	/* Not closed by the exec. */
	mine.dev = dup(w->dev);
	be_child(mine.dev);
	work(&mine, 0);
	snprintf(text[0], sizeof(text[0]), "%d", mine.dev);
	snprintf(text[1], sizeof(text[1]), "%d", mine.rounds);
	if (setgid(NOBODY) || setuid(NOBODY))
		_exit(99);
	execl(SUID_COPY, SUID_COPY, "--after-exec", text[0], text[1], NULL);
	_exit(98);
}

/* Events go at the exec, the data of those that stay does not. */
TEST_F_TIMEOUT(ctx_data, set_uid_exec, 300)
{
	enum { PER_PROCESS = 1, SYSTEM_WIDE = 2 };
	uint64_t once = 1 + self->work->rounds;
	struct recording task, wide;
	int mode, status;
	pid_t pid;

	ASSERT_EQ(0, copy_set_uid());
	self->work->go = 1;
	for (mode = 1; mode <= 3; mode++) {
		memset(&task, 0, sizeof(task));
		memset(&wide, 0, sizeof(wide));
		if (mode & PER_PROCESS)
			ASSERT_EQ(0, record(&task, BIG, 0, true));
		if (mode & SYSTEM_WIDE)
			ASSERT_EQ(0, record(&wide, BIG, -1, false));
		pid = fork();
		if (!pid)
			exec_set_uid(self->work);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
		drain(&task);
		drain(&wide);
		LOG_RECORDING(&task, "inherited");
		LOG_RECORDING(&wide, "system-wide");
		EXPECT_EQ(mode & PER_PROCESS ? once : 0, task.samples);
		EXPECT_EQ(mode & SYSTEM_WIDE ? 2 * once : 0, wide.samples);
		EXPECT_EQ(0, task.later + task.foreign + task.lost);
		EXPECT_EQ(0, wide.later + wide.foreign + wide.lost);
		/* It has exited. */
		record_stop(&wide);
		record_stop(&task);
		EXPECT_EQ(0, tasks_with_data(BIG, 0));
	}
	unlink(SUID_COPY);
}

static void close_faults(int nth)
{
	write_text(DEBUGFS "/fail_usercopy/require-end", "0xffffffffffffffff");
	close(nth);
}

/*
 * The kernel writes there when a thread was preempted. Where it would first have to copy
 * the page, as behind a fork, and cannot, that is a SIGSEGV.
 */
static int leave_rseq(void)
{
	if (!__rseq_size)
		return 0;
	return syscall(__NR_rseq, (char *)__builtin_thread_pointer() + __rseq_offset,
		       sizeof(struct rseq), RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

/*
 * Opens /proc/thread-self/fail-nth, for allocations; -1 without CONFIG_FAULT_INJECTION.
 * With PERSISTENT_FAULTS_VERBOSE=2 the stack of each fault is in the log.
 */
static int open_faults(void)
{
	const char *verbose = getenv("PERSISTENT_FAULTS_VERBOSE") ?: "0";
	const char *settings[][2] = {
		{ DEBUGFS "/failslab/ignore-gfp-wait",		"N" },
		{ DEBUGFS "/failslab/verbose",			verbose },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait",	"N" },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ DEBUGFS "/fail_page_alloc/min-order",		"0" },
		{ DEBUGFS "/fail_page_alloc/verbose",		"0" },
		/* Not what is copied to user space: that of rseq is a SIGSEGV. */
		{ DEBUGFS "/fail_usercopy/require-end",		"1" },
	};
	size_t i;

	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		if (write_text(settings[i][0], settings[i][1]))
			return -1;
	}
	return open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
}

static void short_work(struct work *w)
{
	struct stack s = { .dev = w->dev, .tid = gettid_() };

	stack_push(&s, 3);
	sched_yield();
	stack_call(&s, FIRST_SLICE);
	stack_pop(&s);
}

static void *short_thread(void *arg)
{
	short_work(arg);
	return NULL;
}

/* A fork that fails at any of its steps leaves nothing; what was there stays. */
TEST_F_TIMEOUT(ctx_data, fork_fails, 300)
{
	struct recording task, wide;
	int nth = open_faults(), status;
	unsigned int n, fails = 0;
	bool failed = true;
	pid_t pid;

	if (nth < 0)
		SKIP(return, "no CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC");
	ASSERT_EQ(0, leave_rseq());
	ASSERT_EQ(0, record(&wide, BIG, -1, false));
	ASSERT_EQ(0, record(&task, BIG, 0, true));
	short_work(self->work);
	ASSERT_EQ(1, tasks_with_data(BIG, 1));
	for (n = 1; failed; n++) {
		ASSERT_GT(2000, n);
		arm(nth, n);
		pid = fork();
		if (!pid) {
			short_work(self->work);
			_exit(0);
		}
		failed = disarm(nth);
		if (pid < 0) {
			fails++;
			EXPECT_TRUE(failed);
			continue;
		}
		EXPECT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}
	TH_LOG("%u faults, %u forks failed", n - 2, fails);
	EXPECT_LT(10, fails);
	/* Only this task, and who else runs on the machine, has data. */
	drain(&task);
	drain(&wide);
	EXPECT_EQ(0, task.foreign);
	EXPECT_EQ(0, wide.foreign);
	record_stop(&task);
	EXPECT_LE(1, module_says(BIG ".tasks"));
	record_stop(&wide);
	close_faults(nth);
}

/* An event that cannot be made, at any of its steps, takes nothing from others. */
TEST_F_TIMEOUT(ctx_data, open_fails, 300)
{
	struct perf_event_attr attr;
	const char *pmu;
	struct recording r;
	int nth = open_faults(), fd, i;
	unsigned int n, fails = 0;
	bool failed;

	if (nth < 0)
		SKIP(return, "no CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC");
	/* Alone, with data of one piece and of two, and beside others of the same kind */
	for (i = 0; i < 6; i++) {
		pmu = i / 2 == 1 ? SMALL : BIG;
		attr = stack_attr(pmu);
		if (i == 4)
			ASSERT_EQ(0, record(&r, BIG, -1, false));
		for (n = 1, failed = true; failed; n++) {
			ASSERT_GT(2000, n);
			arm(nth, n);
			fd = event_open(&attr, i % 2 ? 0 : -1, i % 2 ? -1 : 0);
			failed = disarm(nth);
			if (fd < 0) {
				fails++;
				EXPECT_TRUE(failed);
			}
			close(fd);
			if (i < 4)
				EXPECT_EQ(0, tasks_with_data(pmu, 0));
		}
	}
	TH_LOG("%u failed", fails);
	EXPECT_LT(10, fails);
	ASSERT_EQ(0, start_work(self));
	wait_ready(self);
	EXPECT_EQ(0, finish_work(self, &r, 1));
	EXPECT_WHOLE(&r, "system-wide, after failures");
	record_stop(&r);
	close_faults(nth);
}

/* Forks and threads that come and go until they are killed */
static void churn(struct work *w)
{
	pthread_t thread;
	pid_t pid;

	be_child(w->dev);
	for (;;) {
		pid = fork();
		if (!pid) {
			__atomic_store_n(&w->ready, getpid(), __ATOMIC_RELAXED);
			if (!pthread_create(&thread, NULL, short_thread, w))
				pthread_detach(thread);
			short_work(w);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

/* Attached to and closed, at any time of a task's life: both kinds of events. */
TEST_F_TIMEOUT(ctx_data, exit_races_attach, 2000)
{
	long rounds = env_long("PERF_CTX_DATA_RACES", 300), i, got = 0, gone = 0;
	struct perf_event_attr attr = stack_attr(BIG);
	int fds[4] = { -1, -1, -1, -1 }, fd, status, n;
	pid_t pids[4];

	for (n = 0; n < 4; n++) {
		pids[n] = fork();
		if (!pids[n])
			churn(self->work);
	}
	for (i = 0; i < rounds; i++) {
		/* System-wide ones come and go now and then, per-task ones each time. */
		if (i % 4 < 2) {
			close(fds[i % 4]);
			fds[i % 4] = fds[i % 4] < 0 ? event_open(&attr, -1, i % 2) : -1;
		}
		attr.inherit = i % 2;
		fd = event_open(&attr, __atomic_load_n(&self->work->ready, __ATOMIC_RELAXED), -1);
		attr.inherit = 0;
		if (fd < 0) {
			EXPECT_EQ(ESRCH, errno);
			gone++;
			continue;
		}
		got++;
		/* Held for a while, so that its task may exit first */
		n = 2 + i % 2;
		close(fds[n]);
		fds[n] = fd;
	}
	TH_LOG("%ld attached, %ld were gone", got, gone);
	EXPECT_LT(0, got);
	for (n = 0; n < 4; n++)
		close(fds[n]);
	/* Nobody has data while the tasks still come and go, */
	EXPECT_EQ(0, tasks_with_data(BIG, 0));
	for (n = 0; n < 4; n++) {
		kill(pids[n], SIGKILL);
		waitpid(pids[n], &status, 0);
	}
}

/* A process with many threads that sleep until they are told to run once. */
struct crowd {
	int		dev;
	int		go;
	int		asleep;
	int		ran;
};

static void *stand(void *arg)
{
	struct crowd *c = arg;
	int round;

	for (round = 1; ; round++) {
		__atomic_add_fetch(&c->asleep, 1, __ATOMIC_SEQ_CST);
		wait_for(&c->go, round);
		__atomic_add_fetch(&c->ran, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* Returns how many threads there are. */
static int gather(struct crowd *c, int nr)
{
	pthread_attr_t attr;
	pthread_t thread;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (i = 0; i < nr; i++) {
		if (pthread_create(&thread, &attr, stand, c))
			break;
	}
	while (__atomic_load_n(&c->asleep, __ATOMIC_ACQUIRE) < i)
		usleep(1000);
	return i;
}

/* Each runs once more. */
static void run_crowd(struct crowd *c, int nr)
{
	__atomic_store_n(&c->ran, 0, __ATOMIC_SEQ_CST);
	set(&c->go, c->go + 1);
	while (__atomic_load_n(&c->ran, __ATOMIC_ACQUIRE) < nr)
		usleep(1000);
}

/* Many threads: those that sleep cost nothing, those that run have data, until the end. */
TEST_F_TIMEOUT(ctx_data, many_threads, 2000)
{
	int nr = env_long("PERF_CTX_DATA_THREADS", 1000);
	struct crowd *c = (struct crowd *)(self->work + 1);
	struct perf_event_attr attr = stack_attr(BIG);
	int fds[2], round, status;
	long tasks;
	pid_t pid;

	pid = fork();
	if (!pid) {
		be_child(-1);
		_exit(gather(c, nr) == nr ? pause() : 1);
	}
	while (__atomic_load_n(&c->asleep, __ATOMIC_ACQUIRE) < nr) {
		ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
		usleep(10000);
	}
	for (round = 0; round < 2; round++) {
		for (int cpu = 0; cpu < 2; cpu++) {
			fds[cpu] = event_open(&attr, -1, cpu);
			ASSERT_LE(0, fds[cpu]);
		}
		usleep(100000);
		tasks = module_says(BIG ".tasks");
		TH_LOG("%ld tasks have data with %d threads asleep", tasks, nr);
		EXPECT_GT(100, tasks);
		run_crowd(c, nr);
		tasks = module_says(BIG ".tasks");
		TH_LOG("%ld tasks have data when %d threads have run", tasks, nr);
		EXPECT_LE(nr, tasks);
		EXPECT_GT(nr + 100, tasks);
		/* It is the sum that the kernel gives, too. */
		EXPECT_LE(tasks, read_number("/sys/kernel/perf_ctx_data/tasks"));
		EXPECT_EQ(module_says(BIG ".bytes") *
			  read_number("/sys/kernel/perf_ctx_data/tasks"),
			  read_number("/sys/kernel/perf_ctx_data/bytes"));
		for (int cpu = 0; cpu < 2; cpu++)
			close(fds[cpu]);
		EXPECT_EQ(0, tasks_with_data(BIG, 0));
		EXPECT_EQ(0, read_number("/sys/kernel/perf_ctx_data/tasks"));
		EXPECT_EQ(0, read_number("/sys/kernel/perf_ctx_data/bytes"));
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static long memory_event(const char *name)
{
	FILE *f = fopen(CGROUP "/memory.events", "r");
	char word[32];
	long val;

	while (f && fscanf(f, "%31s %ld", word, &val) == 2) {
		if (!strcmp(word, name)) {
			fclose(f);
			return val;
		}
	}
	if (f)
		fclose(f);
	return -1;
}

/*
 * memory.current counts up to 64 pages for each CPU that were charged in advance, enough
 * for all the data of the test. A value of memory.high below it returns these pages.
 */
static int limit_to_what_is_used(void)
{
	char text[32];
	int err;

	snprintf(text, sizeof(text), "%ld", read_number(CGROUP "/memory.current") - 4096);
	err = write_text(CGROUP "/memory.high", text);
	usleep(200000);
	err = err ?: write_text(CGROUP "/memory.high", "max");
	snprintf(text, sizeof(text), "%ld", read_number(CGROUP "/memory.current"));
	return err ?: write_text(CGROUP "/memory.max", text);
}

/*
 * A container at its limit that is watched is neither killed nor slowed down for it: its
 * tasks go without.
 */
TEST_F_TIMEOUT(ctx_data, memory_limit, 300)
{
	long failures = read_number("/sys/kernel/perf_ctx_data/failures"), tasks, kills;
	struct crowd *c = (struct crowd *)(self->work + 1);
	struct perf_event_attr attr = stack_attr(BIG);
	int nr = 300, fds[2], status, tries;
	pid_t pid;

	if (write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory"))
		SKIP(return, "no memory controller");
	rmdir(CGROUP);
	ASSERT_EQ(0, mkdir(CGROUP, 0755));
	pid = fork();
	if (!pid) {
		be_child(-1);
		if (write_text(CGROUP "/cgroup.procs", "0"))
			_exit(1);
		_exit(gather(c, nr) == nr ? pause() : 1);
	}
	while (__atomic_load_n(&c->asleep, __ATOMIC_ACQUIRE) < nr) {
		ASSERT_EQ(0, waitpid(pid, &status, WNOHANG));
		usleep(10000);
	}
	kills = memory_event("oom_kill");
	EXPECT_EQ(0, kills);
	ASSERT_EQ(0, limit_to_what_is_used());

	for (int cpu = 0; cpu < 2; cpu++) {
		fds[cpu] = event_open(&attr, -1, cpu);
		ASSERT_LE(0, fds[cpu]);
	}
	for (tries = 0; tries < 5; tries++)
		run_crowd(c, nr);
	tasks = module_says(BIG ".tasks");
	failures = read_number("/sys/kernel/perf_ctx_data/failures") - failures;
	TH_LOG("%ld of %d threads have data, %ld failures, %ld hits of the limit", tasks, nr,
	       failures, memory_event("max"));
	EXPECT_GT(nr, tasks);
	EXPECT_LT(0, failures);
	/* Each waits before it tries again. */
	EXPECT_GE(5L * nr, failures);
	EXPECT_EQ(0, memory_event("oom_kill"));
	EXPECT_EQ(0, memory_event("oom"));
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));

	/* With memory again they get what they need, some time later. */
	EXPECT_EQ(0, write_text(CGROUP "/memory.max", "max"));
	for (tries = 0; tries < 200 && module_says(BIG ".tasks") < nr; tries++) {
		usleep(500000);
		run_crowd(c, nr);
	}
	EXPECT_GT(200, tries);
	for (int cpu = 0; cpu < 2; cpu++)
		close(fds[cpu]);
	EXPECT_EQ(0, tasks_with_data(BIG, 0));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	for (tries = 0; tries < MAX_TRIES && rmdir(CGROUP); tries++)
		usleep(10000);
	EXPECT_GT(MAX_TRIES, tries);
}

/* Not while an event is open; and right after, while the tasks that had data run on. */
TEST_F_TIMEOUT(ctx_data, module_unload, 300)
{
	long rounds = env_long("PERF_CTX_DATA_UNLOADS", 10), i, tries;
	struct perf_event_attr attr;
	int fds[2], n, status;
	pid_t pids[8];

	close(self->work->dev);
	self->work->dev = -1;
	for (n = 0; n < 8; n++) {
		pids[n] = fork();
		if (!pids[n]) {
			be_child(-1);
			for (;;)
				sched_yield();
		}
	}
	for (i = 0; i < rounds; i++) {
		attr = stack_attr(i % 2 ? SMALL : BIG);
		fds[0] = event_open(&attr, -1, 0);
		fds[1] = event_open(&attr, i % 3 ? -1 : pids[i % 8], 1);
		ASSERT_LE(0, fds[0]);
		ASSERT_LE(0, fds[1]);
		usleep(i % 5 * 2000);
		EXPECT_EQ(-1, unload());
		EXPECT_EQ(EAGAIN, errno);
		close(fds[0]);
		EXPECT_EQ(-1, unload());
		EXPECT_EQ(EAGAIN, errno);
		close(fds[1]);
		for (tries = 0; tries < MAX_TRIES && unload(); tries++)
			usleep(1000);
		ASSERT_GT(MAX_TRIES, tries);
		ASSERT_EQ(0, load(""));
	}
	for (n = 0; n < 8; n++) {
		kill(pids[n], SIGKILL);
		waitpid(pids[n], &status, 0);
	}
}

/* Opens an event of @pid that its children inherit, one of CPU 0, or both. Waits for data. */
static bool open_and_get_data(int fds[2], pid_t pid, bool own, bool wide)
{
	struct perf_event_attr attr = stack_attr(BIG);
	int tries;

	fds[1] = wide ? event_open(&attr, -1, 0) : -1;
	attr.inherit = 1;
	fds[0] = own ? event_open(&attr, pid, -1) : -1;
	if ((own && fds[0] < 0) || (wide && fds[1] < 0))
		return false;
	for (tries = 0; tries < MAX_TRIES && read_number(DATA_TASKS) < 1; tries++)
		usleep(1000);
	return tries < MAX_TRIES && read_number(DATA_BYTES) > 0;
}

static void close_both(const int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

/*
 * A PMU that goes while its events are open has the data of all tasks freed before its module
 * goes, and the cache with it. What is left of its events wants none: it keeps no other PMU
 * from having data, and takes nothing away when it is closed.
 */
TEST_F_TIMEOUT(ctx_data, revoked, 300)
{
	int fds[2], mode, tries, status;
	struct recording r;
	long left;
	pid_t pid;

	if (write_text(REVOKE, "0")) {
		ASSERT_EQ(EOPNOTSUPP, errno);
		SKIP(return, "no PMU can be unregistered while it has events: see module_unload");
	}
	close(self->work->dev);
	self->work->dev = -1;
	pin_to_cpu(0);
	pid = fork();
	if (!pid) {
		be_child(-1);
		for (;;)
			sched_yield();
	}
	for (mode = 1; mode <= 3; mode++) {
		ASSERT_TRUE(open_and_get_data(fds, pid, mode & 1, mode & 2));
		ASSERT_EQ(0, write_text(REVOKE, "1"));
		left = read_number(DATA_TASKS) + read_number(DATA_BYTES);
		/* The cache is not to go before what is in it. */
		if (left)
			close_both(fds);
		ASSERT_EQ(0, left) TH_LOG("events: %d", mode);
		/* This prints what is left in the cache. */
		for (tries = 0; tries < MAX_TRIES && unload(); tries++)
			usleep(1000);
		ASSERT_GT(MAX_TRIES, tries);

		ASSERT_EQ(0, load(""));
		ASSERT_EQ(0, record(&r, SMALL, 0, false));
		EXPECT_EQ(1, read_number(DATA_TASKS));
		close_both(fds);
		EXPECT_EQ(1, read_number(DATA_TASKS));
		record_stop(&r);
		EXPECT_EQ(0, read_number(DATA_TASKS));
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

/*
 * Software events have no branches. They can have the call stack of user space, where the
 * PMU has one: see branch_snapshot.c, whose tests play such a PMU.
 */
TEST(branches_of_software_events)
{
	static const struct {
		uint32_t	type;
		uint64_t	config;
	} events[] = {
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
		{ PERF_TYPE_TRACEPOINT, 1 },
	};
	static const uint64_t branches[] = {
		PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY,
		PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_CALL_STACK,
		PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK,
	};
	/* The last one is for machines without. */
	bool has_branches = !access("/sys/bus/event_source/devices/cpu/caps/branches", F_OK);
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		for (j = 0; j < ARRAY_SIZE(branches) - has_branches; j++) {
			struct perf_event_attr attr = {
				.type			= events[i].type,
				.size			= sizeof(attr),
				.config			= events[i].config,
				.sample_period		= 1,
				.sample_type		= PERF_SAMPLE_BRANCH_STACK,
				.branch_sample_type	= branches[j],
			};

			EXPECT_EQ(-1, event_open(&attr, 0, -1));
			EXPECT_EQ(EOPNOTSUPP, errno);
		}
	}
}

TEST_HARNESS_MAIN
