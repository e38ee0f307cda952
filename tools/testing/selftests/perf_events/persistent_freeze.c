// SPDX-License-Identifier: GPL-2.0
/*
 * A session that is frozen: its buffers stay as they are, what comes meanwhile is counted,
 * and no record is later than the freeze.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"
#include "race_window.h"

#define FREEZE_ON	"/proc/sys/kernel/perf_persistent_freeze"
#define RCU_PARAMETER	"/sys/module/rcupdate/parameters/rcu_cpu_stall_notifiers"
#define MS		1000000ULL
#define FROZEN		PERF_PERSISTENT_STATE_FROZEN

FIXTURE(freeze)
{
	struct balance	before;
	int64_t		id;
	/* The creator's event, and the session. */
	int		event;
	int		fd;
	void		*base;
};

FIXTURE_SETUP(freeze)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->before = take_balance();
	self->event = open_comm(0);
	self->base = map(self->event, 16 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, self->base);
	self->id = unclaim(self->event, 0, 0, "freeze");
	ASSERT_LT(0, self->id);
	self->fd = open_session(self->id);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(freeze)
{
	session_end(self->fd);
	close(self->fd);
	munmap(self->base, 17 * PAGE);
	close(self->event);
	EXPECT_BALANCE();
}

static uint64_t clock_ns(int clockid)
{
	struct timespec ts;

	clock_gettime(clockid, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static bool holds_type(void *base, uint32_t type, uint64_t *lost)
{
	struct perf_event_mmap_page *page = base;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), off;
	struct perf_event_header *hdr;
	char *data = (char *)base + page->data_offset;

	/* Records have sizes that are multiples of 8: no header wraps. */
	for (off = 0; off < page->data_size; off += hdr->size) {
		hdr = (void *)(data + ((head + off) & (page->data_size - 1)));
		if (!hdr->size)
			break;
		if (hdr->type != type)
			continue;
		if (lost)
			*lost = *(uint64_t *)(data + ((head + off + 16) & (page->data_size - 1)));
		return true;
	}
	return false;
}

/* Nothing enters the buffer; what is refused is counted, and told after the thaw. */
TEST_F(freeze, stops_and_goes_on)
{
	struct perf_persistent_session_info inf;
	struct perf_persistent_info event;
	uint64_t lost = 0, mono;
	int i;

	leave_record("before");
	ASSERT_TRUE(recorded(self->base, "before"));
	mono = clock_ns(CLOCK_MONOTONIC);
	ASSERT_EQ(0, session_freeze(self->fd));

	leave_record("frozen1");
	leave_record("frozen2");
	EXPECT_FALSE(recorded(self->base, "frozen1"));
	EXPECT_TRUE(recorded(self->base, "before"));

	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(FROZEN, inf.state);
	EXPECT_EQ(PERF_PERSISTENT_FREEZE_IOCTL, inf.freeze_reason);
	EXPECT_LE(2, inf.lost);
	EXPECT_LT(0, inf.freeze_begin);
	EXPECT_LE(inf.freeze_begin, inf.freeze_time);
	EXPECT_LE(mono, inf.freeze_mono);
	EXPECT_GE(clock_ns(CLOCK_MONOTONIC), inf.freeze_mono);
	EXPECT_GE(clock_ns(CLOCK_REALTIME), inf.freeze_real);
	EXPECT_LE(clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - mono) - MS,
		  inf.freeze_real);

	ASSERT_EQ(0, info(self->event, &event));
	EXPECT_EQ(FROZEN, event.state);
	EXPECT_EQ(inf.freeze_time, event.freeze_time);
	EXPECT_LE(inf.lost, event.lost);
	EXPECT_STREQ("8", sysfs("sessions/%s/state", "freeze"));

	/* Others may read it meanwhile. */
	i = reopen(self->id, 0, 0);
	EXPECT_TRUE(holds_record(i, 16 * PAGE, "before"));
	close(i);

	ASSERT_EQ(0, session_thaw(self->fd));
	leave_record("after");
	EXPECT_TRUE(recorded(self->base, "after"));
	EXPECT_TRUE(recorded(self->base, "before"));
	EXPECT_FALSE(recorded(self->base, "frozen2"));
	EXPECT_TRUE(holds_type(self->base, PERF_RECORD_LOST, &lost));
	EXPECT_LE(2, lost);

	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(0, inf.lost);
	EXPECT_EQ(0, inf.freeze_time);
	EXPECT_EQ(PERF_PERSISTENT_FREEZE_IOCTL, inf.freeze_reason);
	ASSERT_EQ(0, info(self->event, &event));
	EXPECT_EQ(0, event.state);
	EXPECT_EQ(0, event.freeze_time);
}

/* A second freeze is told that it is not the first; the time stays that of the first. */
TEST_F(freeze, twice)
{
	struct perf_persistent_session_info first, second;

	EXPECT_REFUSED(EALREADY, session_thaw(self->fd));
	ASSERT_EQ(0, session_freeze(self->fd));
	ASSERT_EQ(0, session_info(self->fd, &first));
	EXPECT_REFUSED(EALREADY, session_freeze(self->fd));
	ASSERT_EQ(0, session_info(self->fd, &second));
	EXPECT_EQ(first.freeze_time, second.freeze_time);
	ASSERT_EQ(0, session_thaw(self->fd));
	EXPECT_REFUSED(EALREADY, session_thaw(self->fd));
	ASSERT_EQ(0, session_freeze(self->fd));
	ASSERT_EQ(0, session_info(self->fd, &second));
	EXPECT_LT(first.freeze_time, second.freeze_time);
}

/* None joins a frozen session. One that is claimed stays as it is for its readers. */
TEST_F(freeze, join_and_claim)
{
	int other = open_comm(0), gone = open_comm(0), reader = reopen(self->id, 0, 0);
	struct perf_persistent_info inf;

	/* What was claimed before is not frozen. */
	EXPECT_EQ(self->id, unclaim(gone, 0, self->id, ""));
	EXPECT_EQ(self->id, claim(gone));

	leave_record("before");
	ASSERT_EQ(0, session_freeze(self->fd));
	ASSERT_EQ(0, info(gone, &inf));
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(0, inf.freeze_time);
	close(gone);
	ASSERT_EQ(0, info(reader, &inf));
	EXPECT_EQ(FROZEN, inf.state);
	EXPECT_LT(0, inf.freeze_time);

	EXPECT_REFUSED(EBUSY, unclaim(other, 0, self->id, ""));
	EXPECT_REFUSED(EBUSY, unclaim(other, PERF_PERSISTENT_PARTIAL, self->id, ""));
	ASSERT_EQ(0, session_thaw(self->fd));
	EXPECT_EQ(self->id, unclaim(other, 0, self->id, ""));
	ASSERT_EQ(0, session_freeze(self->fd));

	EXPECT_EQ(self->id, claim(self->event));
	leave_record("claimed");
	EXPECT_TRUE(recorded(self->base, "before"));
	EXPECT_FALSE(recorded(self->base, "claimed"));
	EXPECT_EQ(FROZEN, state_of(reader));
	ASSERT_EQ(0, session_thaw(self->fd));
	EXPECT_EQ(FROZEN, state_of(reader));
	EXPECT_EQ(0, state_of(other));
	close(reader);
	close(other);
}

/* One that is claimed goes on with the thaw of an event that shares its buffer. */
TEST_F(freeze, claim_of_shared)
{
	int first = open_comm(0), second = open_comm(0), fd, reader;
	void *base = map(first, 16 * PAGE, PROT_READ);
	int64_t id;

	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first));
	id = unclaim(first, PERF_PERSISTENT_PARTIAL, 0, "shared");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(second, 0, id, ""));
	fd = open_session(id);
	reader = reopen(id, 0, 0);
	ASSERT_LE(0, reader);

	ASSERT_EQ(0, session_freeze(fd));
	ASSERT_EQ(id, claim(first));
	leave_record("frozen");
	EXPECT_FALSE(recorded(base, "frozen"));
	EXPECT_EQ(FROZEN, state_of(reader));

	/* Only the claimed one is left to record. */
	ASSERT_EQ(0, ioctl(second, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, session_thaw(fd));
	leave_record("thawed");
	EXPECT_TRUE(recorded(base, "thawed"));
	EXPECT_EQ(0, state_of(reader));

	EXPECT_EQ(0, session_end(fd));
	munmap(base, 17 * PAGE);
	close(fd);
	close(reader);
	close(first);
	close(second);
}

/* Another session is not frozen. */
TEST_F(freeze, other_session)
{
	int foreign = open_comm(0);
	struct perf_persistent_session_info inf;
	int64_t id;
	void *base = map(foreign, PAGE, PROT_READ);

	id = unclaim(foreign, 0, 0, "foreign");
	ASSERT_LT(0, id);
	ASSERT_EQ(0, session_freeze(self->fd));
	leave_record("elsewhere");
	EXPECT_FALSE(recorded(self->base, "elsewhere"));
	EXPECT_TRUE(recorded(base, "elsewhere"));
	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(1, inf.nr_buffers);
	EXPECT_EQ(id, claim(foreign));
	munmap(base, 2 * PAGE);
	close(foreign);
}

/* Readers of an event are woken for both. */
TEST_F(freeze, wakes_readers)
{
	int reader = reopen(self->id, 0, 0);

	polled(reader);
	ASSERT_EQ(0, session_freeze(self->fd));
	EXPECT_EQ(POLLIN, polled(reader) & POLLIN);
	EXPECT_EQ(0, polled(reader));
	ASSERT_EQ(0, session_thaw(self->fd));
	EXPECT_EQ(POLLIN, polled(reader) & POLLIN);
	close(reader);
}

/* The time of the freeze is that of the event's clock. */
TEST_F(freeze, clocks)
{
	static const int clocks[] = {
		CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_TAI,
	};
	struct perf_persistent_session_info all;
	uint64_t from[5], to[5];
	int fds[5];
	unsigned int i;

	for (i = 0; i < 5; i++) {
		struct perf_event_attr attr = comm_attr();

		attr.use_clockid = 1;
		attr.clockid = clocks[i];
		fds[i] = event_open(&attr, -1, 0, -1, 0);
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(self->id, unclaim(fds[i], 0, self->id, ""));
	}
	for (i = 0; i < 5; i++)
		from[i] = clock_ns(clocks[i]);
	ASSERT_EQ(0, session_freeze(self->fd));
	for (i = 0; i < 5; i++)
		to[i] = clock_ns(clocks[i]);
	ASSERT_EQ(0, session_info(self->fd, &all));
	for (i = 0; i < 5; i++) {
		struct perf_persistent_info inf;

		ASSERT_EQ(0, info(fds[i], &inf));
		/* The kernel's fast clocks may be a little off. */
		EXPECT_LE(from[i] - MS, inf.freeze_time) TH_LOG("clock %d", clocks[i]);
		EXPECT_GE(to[i] + MS, inf.freeze_time) TH_LOG("clock %d", clocks[i]);
		/* The session has two of them. */
		if (clocks[i] == CLOCK_MONOTONIC)
			EXPECT_EQ(all.freeze_mono, inf.freeze_time);
		if (clocks[i] == CLOCK_REALTIME)
			EXPECT_EQ(all.freeze_real, inf.freeze_time);
		close(fds[i]);
	}
}

/* Under load */

#define MAX_CPUS	64

static struct {
	pthread_t	threads[MAX_CPUS];
	unsigned int	nr;
	bool		over;
} load;

static void *write_records(void *arg)
{
	unsigned int i;
	char name[16];

	pin_to_cpu((uintptr_t)arg);
	for (i = 0; !__atomic_load_n(&load.over, __ATOMIC_RELAXED); i++) {
		snprintf(name, sizeof(name), "r%u", i);
		leave_record(name);
	}
	return NULL;
}

static void start_load(void)
{
	load.over = false;
	load.nr = sysconf(_SC_NPROCESSORS_ONLN);
	load.nr = load.nr < MAX_CPUS ? load.nr : MAX_CPUS;
	for (unsigned int i = 0; i < load.nr; i++)
		pthread_create(&load.threads[i], NULL, write_records, (void *)(uintptr_t)i);
}

static void stop_load(void)
{
	__atomic_store_n(&load.over, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < load.nr; i++)
		pthread_join(load.threads[i], NULL);
}

/* The time of the newest record: its last 64 bits but one, see sample_id_all. */
static uint64_t newest_time(void *base)
{
	struct perf_event_mmap_page *page = base;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	char *data = (char *)base + page->data_offset;
	struct perf_event_header *hdr = (void *)(data + (head & (page->data_size - 1)));

	return *(uint64_t *)(data + ((head + hdr->size - 16) & (page->data_size - 1)));
}

/*
 * What the clocks of two CPUs differ by, at most. The kernel says so in the page of a ring
 * buffer: without a stable sched_clock(), as in most emulations, cap_user_time is 0 and
 * sched_clock_cpu() keeps the clocks within a tick, which is 10 ms at most.
 */
static uint64_t clock_error(struct perf_event_mmap_page *page)
{
	return page->cap_user_time ? MS : 10 * MS;
}

/*
 * No record of any CPU is later than the freeze and a millisecond, nothing changes after
 * FREEZE has returned, and up to its begin nothing is missing: the CPUs write all the time.
 */
TEST_F_TIMEOUT(freeze, under_load, 600)
{
	struct perf_persistent_session_info inf;
	unsigned int round, cpu, nr_cpus;
	void *bases[MAX_CPUS];
	uint64_t heads[MAX_CPUS], spread = 0;
	int64_t after, latest = INT64_MIN;
	int fds[MAX_CPUS];

	bases[0] = self->base;
	TH_LOG("a record may be %lu us later than the freeze: cap_user_time is %u",
	       (long)clock_error(self->base) / 1000,
	       (unsigned int)((struct perf_event_mmap_page *)self->base)->cap_user_time);
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	nr_cpus = nr_cpus < MAX_CPUS ? nr_cpus : MAX_CPUS;
	for (cpu = 1; cpu < nr_cpus; cpu++) {
		fds[cpu] = open_comm(cpu);
		bases[cpu] = map(fds[cpu], 16 * PAGE, PROT_READ);
		ASSERT_NE(MAP_FAILED, bases[cpu]);
		ASSERT_EQ(self->id, unclaim(fds[cpu], 0, self->id, ""));
	}
	start_load();
	for (round = 0; round < rounds(); round++) {
		usleep(round % 20 * 100);
		ASSERT_EQ(0, session_freeze(self->fd));
		for (cpu = 0; cpu < nr_cpus; cpu++)
			heads[cpu] = ((struct perf_event_mmap_page *)bases[cpu])->data_head;
		ASSERT_EQ(0, session_info(self->fd, &inf));
		ASSERT_EQ(FROZEN, inf.state);
		spread = inf.freeze_time - inf.freeze_begin > spread ?
			 inf.freeze_time - inf.freeze_begin : spread;
		for (cpu = 0; cpu < nr_cpus; cpu++) {
			if (!newest_type(bases[cpu]))
				continue;
			after = newest_time(bases[cpu]) - inf.freeze_time;
			ASSERT_GE((int64_t)clock_error(bases[cpu]), after)
				TH_LOG("round %u, CPU %u", round, cpu);
			latest = after > latest ? after : latest;
		}
		usleep(round % 7 * 100);
		for (cpu = 0; cpu < nr_cpus; cpu++)
			ASSERT_EQ(heads[cpu],
				  ((struct perf_event_mmap_page *)bases[cpu])->data_head);
		ASSERT_EQ(0, session_thaw(self->fd));
	}
	stop_load();
	TH_LOG("%u rounds on %u CPUs: all paused within %lu us, the latest record %ld ns after",
	       round, nr_cpus, (long)spread / 1000, (long)latest);
	for (cpu = 1; cpu < nr_cpus; cpu++) {
		munmap(bases[cpu], 17 * PAGE);
		close(fds[cpu]);
	}
}

static struct {
	char			*pages;
	size_t			size;
	pid_t			tid;
	pthread_barrier_t	gate;
	bool			written;
	bool			done;
} late;

/*
 * A sample for each of its pages, again and again: when the session is frozen, and when it goes
 * on.
 */
static void *write_late(void *unused)
{
	pin_to_cpu(1);
	prctl(PR_SET_NAME, "late");
	late.tid = syscall(SYS_gettid);
	pthread_barrier_wait(&late.gate);
	for (int i = 0;; i = !i) {
		pthread_barrier_wait(&late.gate);
		if (late.done)
			return NULL;
		late.pages[i * late.size] = 1;
		__atomic_store_n(&late.written, true, __ATOMIC_RELEASE);
		pthread_barrier_wait(&late.gate);
	}
}

/* The writer is held up in the window; false if that was over before it could be seen. */
static bool see_writer(void)
{
	while (!window_holds(WINDOW_LEFT)) {
		if (__atomic_load_n(&late.written, __ATOMIC_ACQUIRE))
			return false;
		usleep(100);
	}
	return true;
}

/*
 * A record that was begun before the freeze, and is completed long after it, has the time
 * when it was begun, and so has the PERF_RECORD_LOST in front of it.
 */
TEST_F_TIMEOUT(freeze, late_loss, 300)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_SW_PAGE_FAULTS_MIN,
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		.sample_id_all	= 1,
		.write_backward	= 1,
		.exclude_kernel	= 1,
	};
	struct {
		struct perf_event_header lost;
		uint64_t	id, nr, lost_time, lost_identifier;
		struct perf_event_header sample;
		uint64_t	identifier, time;
	} *records;
	struct perf_persistent_session_info inf;
	struct perf_event_mmap_page *page;
	pthread_t thread;
	bool seen = false;
	int fd, tries;

	if (!getenv("PERSISTENT_WINDOW"))
		SKIP(return, "PERSISTENT_WINDOW is not the path of the module");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, load_window(getenv("PERSISTENT_WINDOW")));
	late.size = sysconf(_SC_PAGESIZE);
	late.pages = mmap(NULL, 2 * late.size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, late.pages);
	pthread_barrier_init(&late.gate, NULL, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_late, NULL));
	pthread_barrier_wait(&late.gate);
	fd = event_open(&attr, late.tid, -1, -1, 0);
	ASSERT_LE(0, fd);
	page = map(fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)page);
	ASSERT_EQ(self->id, unclaim(fd, 0, self->id, ""));

	ASSERT_EQ(0, set_window("left", "late:perf_event_header__init"));
	for (tries = 0; tries < 30 && !seen; tries++) {
		ASSERT_EQ(0, madvise(late.pages, 2 * late.size, MADV_DONTNEED));
		ASSERT_EQ(0, session_freeze(self->fd));
		pthread_barrier_wait(&late.gate);
		pthread_barrier_wait(&late.gate);
		ASSERT_EQ(0, session_thaw(self->fd));

		late.written = false;
		ASSERT_EQ(0, set_window("armed", "1"));
		pthread_barrier_wait(&late.gate);
		seen = see_writer();
		/* It waits for the writer, who waits for three seconds. */
		if (seen)
			ASSERT_EQ(0, session_freeze(self->fd));
		pthread_barrier_wait(&late.gate);
	}
	EXPECT_TRUE(seen);
	late.done = true;
	pthread_barrier_wait(&late.gate);
	pthread_join(thread, NULL);
	ASSERT_EQ(0, session_info(self->fd, &inf));

	records = (void *)((char *)page + page->data_offset +
			   (page->data_head & (page->data_size - 1)));
	ASSERT_EQ(PERF_RECORD_LOST, records->lost.type);
	EXPECT_EQ(1, records->nr);
	ASSERT_EQ(PERF_RECORD_SAMPLE, records->sample.type);
	TH_LOG("the sample is of %ld us after the freeze",
	       (long)(records->time - inf.freeze_time) / 1000);
	EXPECT_EQ(records->time, records->lost_time);
	EXPECT_GE(inf.freeze_time + clock_error(page), records->time);

	munmap(page, 2 * PAGE);
	close(fd);
	munmap(late.pages, 2 * late.size);
	EXPECT_EQ(0, set_window("left", ""));
	EXPECT_EQ(0, unload_window());
}

/*
 * Freeze the session in a process of its own, which is held up with interrupts off. Whoever waits
 * for its CPU meanwhile, to flush the TLB say, may keep its watcher from running: true if it was
 * seen there.
 */
static bool see_freezer(int fd, pid_t *freezer)
{
	*freezer = fork();
	if (!*freezer) {
		pin_to_cpu(0);
		prctl(PR_SET_NAME, "freezer");
		_exit(session_freeze(fd) ? 1 : 0);
	}
	while (!window_holds(WINDOW_LEFT)) {
		siginfo_t ended = {};

		if (waitid(P_PID, *freezer, &ended, WEXITED | WNOHANG | WNOWAIT) || ended.si_pid)
			return false;
		usleep(100);
	}
	return true;
}

/* When the time of the freeze is taken, nothing enters any buffer: it is held up there. */
TEST_F_TIMEOUT(freeze, time_after_pause, 300)
{
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_session_info inf;
	int fd, tries, status;
	pid_t freezer;
	void *base;

	if (!getenv("PERSISTENT_WINDOW"))
		SKIP(return, "PERSISTENT_WINDOW is not the path of the module");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "needs two CPUs");
	/* The scheduler's clocks of two CPUs may differ by more. */
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	fd = event_open(&attr, -1, 1, -1, 0);
	ASSERT_LE(0, fd);
	base = map(fd, 16 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(self->id, unclaim(fd, 0, self->id, ""));
	pin_to_cpu(1);
	leave_record("before");

	ASSERT_EQ(0, load_window(getenv("PERSISTENT_WINDOW")));
	/* It is called between the first clock and the last. */
	ASSERT_EQ(0, set_window("left", "freezer:ktime_get_boot_fast_ns"));
	for (tries = 0; tries < 30; tries++) {
		ASSERT_EQ(0, set_window("armed", "1"));
		if (see_freezer(self->fd, &freezer))
			break;
		ASSERT_EQ(freezer, waitpid(freezer, &status, 0));
		ASSERT_EQ(0, status);
		ASSERT_EQ(0, session_thaw(self->fd));
	}
	ASSERT_GT(30, tries);
	leave_record("meanwhile");
	ASSERT_EQ(freezer, waitpid(freezer, &status, 0));
	EXPECT_EQ(0, status);
	pin_to_cpu(0);

	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(FROZEN, inf.state);
	EXPECT_TRUE(recorded(base, "before"));
	EXPECT_FALSE(recorded(base, "meanwhile"));
	EXPECT_GE(inf.freeze_mono, newest_time(base));

	munmap(base, 17 * PAGE);
	close(fd);
	EXPECT_EQ(0, set_window("left", ""));
	EXPECT_EQ(0, unload_window());
}

/* A CPU that goes and returns changes nothing about it. */
TEST_F(freeze, hotplug)
{
	int fd = open_comm(1);
	void *base = map(fd, PAGE, PROT_READ);

	if (access(ONLINE, W_OK)) {
		close(fd);
		SKIP(return, "CPU 1 cannot be taken offline");
	}
	ASSERT_EQ(self->id, unclaim(fd, 0, self->id, ""));
	ASSERT_EQ(0, session_freeze(self->fd));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(FROZEN, state_of(fd) & FROZEN);
	ASSERT_EQ(0, write_long(ONLINE, 1));
	while (state_of(fd) & PERF_PERSISTENT_STATE_OFFLINE)
		usleep(1000);
	EXPECT_EQ(FROZEN, state_of(fd));
	pin_to_cpu(1);
	leave_record("frozen");
	EXPECT_FALSE(recorded(base, "frozen"));
	ASSERT_EQ(0, session_thaw(self->fd));
	leave_record("runs");
	EXPECT_TRUE(recorded(base, "runs"));
	pin_to_cpu(0);
	munmap(base, 2 * PAGE);
	close(fd);
}

/* kernel.perf_persistent_freeze */

static int set_causes(const char *causes)
{
	return write_text(FREEZE_ON, causes);
}

static const char *causes(void)
{
	static char line[256];
	FILE *f = fopen(FREEZE_ON, "r");

	line[0] = '\0';
	if (f && fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
	return line;
}

/* What it does not understand is refused, and changes nothing. */
TEST_F(freeze, sysctl)
{
	static const char * const wrong[] = {
		"oom:", "oom:x", "oom:-1", "oom:600001", "fire", "oom,,hung", "oom,oom:5",
		"panic:1", "oom hung", ",",
	};
	unsigned int i;

	EXPECT_STREQ("", causes());
	ASSERT_EQ(0, set_causes("oom:600000,hung,oops:0,panic,lockup:7\n"));
	EXPECT_STREQ("oom:600000,hung,oops:0,panic,lockup:7", causes());
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		EXPECT_REFUSED(EINVAL, set_causes(wrong[i]));
		EXPECT_STREQ("oom:600000,hung,oops:0,panic,lockup:7", causes());
	}

	/*
	 * It takes a boot parameter where the kernel is configured for it, and RCU warns then:
	 * see ctl_freeze_causes.sh of perf's tests.
	 */
	if (access(RCU_PARAMETER, F_OK)) {
		EXPECT_EQ(0, set_causes("panic,rcu-stall"));
		EXPECT_STREQ("panic,rcu-stall", causes());
	}
	ASSERT_EQ(0, set_causes("\n"));
	EXPECT_STREQ("", causes());
	EXPECT_EQ(0, session_state(self->fd));
}

#define CGROUP	"/sys/fs/cgroup/perf_persistent_freeze"

/* The OOM killer takes a child whose cgroup has no room. */
static int run_out_of_memory(void)
{
	const size_t size = 64 << 20;
	char pid_text[16];
	int status;
	pid_t pid;
	char *mem;

	pid = fork();
	if (!pid) {
		snprintf(pid_text, sizeof(pid_text), "%d", getpid());
		if (write_text(CGROUP "/cgroup.procs", pid_text))
			_exit(1);
		mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (size_t i = 0; i < size; i += 4096)
			mem[i] = 1;
		_exit(2);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -1;
}

static bool becomes_frozen(int fd, unsigned int ms)
{
	for (; ms; ms--) {
		if (session_state(fd) == FROZEN)
			return true;
		usleep(1000);
	}
	return false;
}

static bool have_cgroup(void)
{
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	return !mkdir(CGROUP, 0755) && !write_text(CGROUP "/memory.max", "8M");
}

/* What the OOM killer was called for stays in the buffers. */
TEST_F(freeze, oom)
{
	struct perf_persistent_session_info inf;
	unsigned int ms;
	char causes[32];
	uint64_t from;

	if (!have_cgroup()) {
		rmdir(CGROUP);
		SKIP(return, "no memory cgroup can be made");
	}

	/* Not unless it is asked for. */
	ASSERT_EQ(0, run_out_of_memory());
	EXPECT_EQ(0, session_state(self->fd));

	ASSERT_EQ(0, set_causes("oom"));
	ASSERT_EQ(0, run_out_of_memory());
	EXPECT_TRUE(becomes_frozen(self->fd, 60000));
	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_FREEZE_OOM, inf.freeze_reason);
	ASSERT_EQ(0, session_thaw(self->fd));

	/* After a while. */
	ASSERT_EQ(0, set_causes("oom:500"));
	from = clock_ns(CLOCK_MONOTONIC);
	ASSERT_EQ(0, run_out_of_memory());
	EXPECT_TRUE(becomes_frozen(self->fd, 60000));
	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_LE(from + 490 * MS, inf.freeze_mono);
	ASSERT_EQ(0, session_thaw(self->fd));

	/* A delay that has begun ends with the cause, if that ends in time. */
	for (ms = 500; ms < 60000; ms *= 2) {
		snprintf(causes, sizeof(causes), "oom:%u", ms);
		ASSERT_EQ(0, set_causes(causes));
		from = clock_ns(CLOCK_MONOTONIC);
		ASSERT_EQ(0, run_out_of_memory());
		ASSERT_EQ(0, set_causes("\n"));
		if (clock_ns(CLOCK_MONOTONIC) - from < (ms - 10) * MS)
			break;
		if (becomes_frozen(self->fd, 1000))
			ASSERT_EQ(0, session_thaw(self->fd));
	}
	EXPECT_GT(60000, ms);
	EXPECT_FALSE(becomes_frozen(self->fd, 2 * ms));
	ASSERT_EQ(0, set_causes("\n"));
	EXPECT_EQ(0, rmdir(CGROUP));
}

TEST_HARNESS_MAIN
