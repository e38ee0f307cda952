// SPDX-License-Identifier: GPL-2.0
/*
 * What a record of an event costs the CPU that the event happens on
 *
 * The cost of a record depends on what is in it, above all on call chains, and on the
 * machine. Thus it is measured at the start, for each kind of record that is recorded: an event
 * with the same contents is opened on this CPU, where this thread stays meanwhile. The thread
 * hits it many times, and the time is compared with that of the same work while the event is
 * disabled.
 *
 *	record	a tracepoint in setitimer(), timer:itimer_state. The system call clears a timer that
 *		is not set, and does nothing else.
 *	sample	a clock, which interrupts a loop of this thread 10,000 times a second
 *
 * The work is repeated ROUNDS times with the event and without, in turn. The shortest time
 * counts: interrupts and preemptions only make it longer. What is left of the noise is bounded:
 * a sample costs at least as much as a record, and at most MAX_SAMPLE times as much.
 *
 * The stack of this thread is short. A record with a call chain of a deeper stack costs more.
 */
#include "event-cost.h"
#include "../debug.h"
#include "../time-utils.h"
#include "../../perf-sys.h"

#include <api/fs/tracing_path.h>
#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define ROUNDS		5
#define HITS		200
#define SPIN_TIME	((u64)(10 * NSEC_PER_MSEC))
#define SAMPLE_PERIOD	((u64)(100 * NSEC_PER_USEC))
#define PAGES		8

/* Of an affinity */
#define MAX_CPUS	8192

#define MIN_RECORD	50
#define MAX_SAMPLE	10

/* If nothing can be measured, in ns */
#define DEFAULT_RECORD	1000
#define DEFAULT_SAMPLE	5000

/* Contents that not every event can have, with a cost of their own */
#define ONLY_OF_SOME	(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_AUX | PERF_SAMPLE_READ)

static s64 read_tracepoint_id(const char *name)
{
	char *path = get_events_file(name), text[32] = "";
	FILE *f = path ? fopen(path, "r") : NULL;
	s64 id = -ENOENT;

	put_events_file(path);
	if (!f)
		return id;
	if (fgets(text, sizeof(text), f))
		id = atoll(text);
	fclose(f);
	return id;
}

/* An event with the contents of @attr, and nothing of its side-band */
static struct perf_event_attr like(const struct perf_event_attr *attr)
{
	return (struct perf_event_attr) {
		.size			= sizeof(struct perf_event_attr),
		.type			= PERF_TYPE_TRACEPOINT,
		.sample_type		= attr->sample_type & ~ONLY_OF_SOME,
		.sample_regs_user	= attr->sample_regs_user,
		.sample_regs_intr	= attr->sample_regs_intr,
		.sample_stack_user	= attr->sample_stack_user,
		.sample_max_stack	= attr->sample_max_stack,
		.exclude_callchain_kernel = attr->exclude_callchain_kernel,
		.exclude_callchain_user	= attr->exclude_callchain_user,
		.use_clockid		= attr->use_clockid,
		.clockid		= attr->clockid,
		.sample_id_all		= attr->sample_id_all,
		.sample_period		= 1,
		.disabled		= 1,
		.wakeup_events		= ~0U,
	};
}

/* Does a record of one cost what a record of the other costs? */
bool event_cost__is_like(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	const struct perf_event_attr like_a = like(a), like_b = like(b);

	return !memcmp(&like_a, &like_b, sizeof(like_a));
}

static void hit(u64 nr)
{
	const struct itimerval none = {};

	while (nr--)
		setitimer(ITIMER_VIRTUAL, &none, NULL);
}

static void spin(u64 nr)
{
	while (nr--)
		asm volatile("" : : : "memory");
}

static u64 time_of(void (*work)(u64 nr), u64 nr)
{
	u64 began = rdclock();

	work(nr);
	return rdclock() - began;
}

/* How many turns of the loop take SPIN_TIME? */
static u64 count_turns(void)
{
	u64 turns = 1024;

	while (time_of(spin, turns) < SPIN_TIME)
		turns *= 2;
	return turns;
}

/* Return: ns that the event adds to the work; or a negative errno. */
static s64 compare(int fd, void (*work)(u64 nr), u64 nr)
{
	u64 with = -1ULL, without = -1ULL;

	/* Once, to have it all in the caches. */
	work(nr);
	for (int i = 0; i < ROUNDS; i++) {
		without = min(without, time_of(work, nr));
		if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return -errno;
		with = min(with, time_of(work, nr));
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	}
	return with > without ? with - without : 0;
}

/*
 * An event of a CPU, as the recorder's are, its buffer, which is overwritten, and the work.
 * Return: like compare().
 */
static s64 measure_on(int cpu, struct perf_event_attr *attr, void (*work)(u64 nr), u64 nr,
		      u64 *hits)
{
	size_t size = (PAGES + 1) * page_size;
	int fd = sys_perf_event_open(attr, /*pid=*/-1, cpu, /*group_fd=*/-1,
				     PERF_FLAG_FD_CLOEXEC);
	u64 before = 0, after = 0;
	s64 took = -EINVAL;
	void *base;

	if (fd < 0)
		return -errno;
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (base != MAP_FAILED) {
		if (read(fd, &before, sizeof(before)) == sizeof(before))
			took = compare(fd, work, nr);
		if (took >= 0 && read(fd, &after, sizeof(after)) != sizeof(after))
			took = -EIO;
		munmap(base, size);
	} else {
		took = -errno;
	}
	close(fd);
	*hits = (after - before) / attr->sample_period / ROUNDS;
	return took >= 0 && !*hits ? -ENODATA : took;
}

static s64 measure(struct perf_event_attr *attr, void (*work)(u64 nr), u64 nr, u64 *hits)
{
	cpu_set_t *old = CPU_ALLOC(MAX_CPUS), *one = CPU_ALLOC(MAX_CPUS);
	size_t size = CPU_ALLOC_SIZE(MAX_CPUS);
	int cpu = sched_getcpu();
	s64 took = -ENOMEM;

	if (!old || !one)
		goto out_free;
	CPU_ZERO_S(size, one);
	CPU_SET_S(max(cpu, 0), size, one);
	if (cpu < 0 || sched_getaffinity(0, size, old) || sched_setaffinity(0, size, one)) {
		took = -errno;
		goto out_free;
	}
	took = measure_on(cpu, attr, work, nr, hits);
	sched_setaffinity(0, size, old);
out_free:
	CPU_FREE(old);
	CPU_FREE(one);
	return took;
}

static s64 measure_record(const struct perf_event_attr *wanted)
{
	struct perf_event_attr attr = like(wanted);
	s64 id = read_tracepoint_id("timer/itimer_state/id"), took;
	u64 hits;

	if (id < 0)
		return id;
	attr.config = id;
	took = measure(&attr, hit, HITS, &hits);
	return took < 0 ? took : max_t(s64, took / hits, MIN_RECORD);
}

static s64 measure_sample(const struct perf_event_attr *wanted)
{
	struct perf_event_attr attr = like(wanted);
	u64 hits;
	s64 took;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = SAMPLE_PERIOD;
	attr.sample_type &= ~PERF_SAMPLE_RAW;
	took = measure(&attr, spin, count_turns(), &hits);
	return took < 0 ? took : (s64)(took / hits);
}

/**
 * event_cost__measure - measure what an event costs
 * @attr: the event
 * @cost: returns what a hit or a sample costs; a default if it cannot be measured
 */
void event_cost__measure(const struct perf_event_attr *attr, struct event_cost *cost)
{
	s64 record = measure_record(attr);
	s64 sample = measure_sample(attr);

	*cost = (struct event_cost) { .measured = record > 0 && sample >= 0 };
	if (!cost->measured)
		pr_debug("cost of events: %s; %d and %d ns are assumed\n",
			 strerror(record < 0 ? -record : -sample), DEFAULT_RECORD, DEFAULT_SAMPLE);
	cost->record = cost->measured ? record : DEFAULT_RECORD;
	cost->sample = cost->measured ? clamp(sample, record, MAX_SAMPLE * record) :
					DEFAULT_SAMPLE;
}
