// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events of a CPU that goes offline stay readable, and run again in the same
 * buffer when it comes back, unless their owner had disabled them.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

FIXTURE(hotplug)
{
	struct balance	before;
	/* An event on CPU 1, not given away yet. */
	int		fd;
};

FIXTURE_SETUP(hotplug)
{
	SKIP_WITHOUT_PERSISTENT(return);
	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");

	ASSERT_EQ(0, write_long(ONLINE, 1));
	pin_to_cpu(0);
	self->before = take_balance();
	self->fd = open_comm(1);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(hotplug)
{
	write_long(ONLINE, 1);
	close(self->fd);
	EXPECT_BALANCE();
}

/* Events are put back soon after: true when this one was. */
static bool bring_up(int fd)
{
	int i;

	if (write_long(ONLINE, 1))
		return false;
	for (i = 0; i < 3000 && (state_of(fd) & PERF_PERSISTENT_STATE_OFFLINE); i++)
		usleep(10 * 1000);
	return !(state_of(fd) & PERF_PERSISTENT_STATE_OFFLINE);
}

static void leave_record_on(int cpu, const char *name)
{
	pin_to_cpu(cpu);
	leave_record(name);
	pin_to_cpu(0);
}

/* Offline: opened, mapped, read. Online: the same event goes on in the same buffer. */
TEST_F(hotplug, same_event_again)
{
	struct pollfd p = { .events = POLLIN };
	struct perf_persistent_info inf, later;
	int64_t id = unclaim(self->fd, 0, 0, "again");
	uint64_t count;
	void *base;
	int fd;

	ASSERT_LT(0, id);
	close(self->fd);
	self->fd = -1;
	leave_record_on(1, "before");
	p.fd = reopen(id, 1, 0);
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, info(p.fd, &inf));

	/* It wakes what sleeps in poll(). */
	while (poll(&p, 1, 0) > 0)
		;
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLIN, p.revents);
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(p.fd));
	EXPECT_STREQ("1", sysfs("sessions/%s/state", "again"));
	EXPECT_STREQ("1", sysfs("sessions/%s/cpus", "again"));

	fd = reopen(id, 1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(8, read(fd, &count, 8));
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_TRUE(recorded(base, "before"));

	while (poll(&p, 1, 0) > 0)
		;
	ASSERT_EQ(0, write_long(ONLINE, 1));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(0, state_of(p.fd));
	EXPECT_STREQ("0", sysfs("sessions/%s/state", "again"));
	leave_record_on(1, "after");
	/* The mapping made while it was offline sees both. */
	EXPECT_TRUE(recorded(base, "before"));
	EXPECT_TRUE(recorded(base, "after"));
	EXPECT_TRUE(is_newer(base, "after", "before"));
	ASSERT_EQ(0, info(fd, &later));
	EXPECT_EQ(0, memcmp(&inf, &later, sizeof(inf)));

	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	close(p.fd);
}

/* What its owner disabled stays so, whenever that was; offline does not hide it. */
TEST_F(hotplug, disabled)
{
	const uint32_t off = PERF_PERSISTENT_STATE_OFFLINE, dis = PERF_PERSISTENT_STATE_DISABLED;
	int64_t id = unclaim(self->fd, 0, 0, "disabled");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(dis, state_of(self->fd));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(off | dis, state_of(self->fd));
	EXPECT_STREQ("5", sysfs("sessions/%s/state", "disabled"));
	ASSERT_TRUE(bring_up(self->fd));
	EXPECT_EQ(dis, state_of(self->fd));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, state_of(self->fd));

	/* Disabled while offline, and enabled again. */
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(off, state_of(self->fd));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(off | dis, state_of(self->fd));
	ASSERT_TRUE(bring_up(self->fd));
	EXPECT_EQ(dis, state_of(self->fd));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(off, state_of(self->fd));
	ASSERT_TRUE(bring_up(self->fd));
	EXPECT_EQ(0, state_of(self->fd));
	EXPECT_EQ(id, claim(self->fd));
}

/* REFRESH enables as well: it is noted while the CPU is away, and counts there. */
TEST_F(hotplug, refreshed)
{
	struct perf_event_attr attr = comm_attr();
	int fd;

	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = 1000000000000ULL;
	attr.disabled = 1;
	fd = event_open(&attr, -1, 1, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_LT(0, unclaim(fd, 0, 0, "refreshed"));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(fd));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(fd));
	ASSERT_TRUE(bring_up(fd));
	EXPECT_EQ(0, state_of(fd));
	EXPECT_LT(0, claim(fd));
	close(fd);

	/* Of an event without samples it is refused, away or not. */
	fd = open_comm(1);
	ASSERT_LT(0, unclaim(fd, 0, 0, "counts"));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_REFUSED(EINVAL, ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	ASSERT_TRUE(bring_up(fd));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(fd));
	EXPECT_LT(0, claim(fd));
	close(fd);
}

/* Pinned events of perf_test_pmu.ko: one more than its "hardware" has room for. */
#define TEST_PMU_ROOM	16

/* An event in error is enabled anew, also while its CPU is away. */
TEST_F(hotplug, error_cleared)
{
	struct perf_event_attr attr = comm_attr();
	const char *module = getenv("TEST_PMU_MODULE");
	int fds[TEST_PMU_ROOM + 1], i, *last;

	if (access(module ?: "", R_OK))
		SKIP(return, "TEST_PMU_MODULE is not the path of the module");
	ASSERT_EQ(0, load_module(module, ""));
	attr.type = read_long("/sys/bus/event_source/devices/perf_test_small/type");
	attr.config = 0;
	attr.pinned = 1;
	for (i = 0; i <= TEST_PMU_ROOM; i++) {
		fds[i] = event_open(&attr, -1, 1, -1, 0);
		ASSERT_LE(0, fds[i]);
	}
	last = &fds[TEST_PMU_ROOM];
	ASSERT_LT(0, unclaim(*last, 0, 0, "error"));
	/* Else this tries nothing. */
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(*last));
	for (i = 0; i < TEST_PMU_ROOM; i++)
		close(fds[i]);

	/* The CPU is not the cause: it does not come back by itself. */
	ASSERT_EQ(0, write_long(ONLINE, 0));
	ASSERT_TRUE(bring_up(*last));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(*last));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(0, ioctl(*last, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(*last));
	ASSERT_TRUE(bring_up(*last));
	EXPECT_EQ(0, state_of(*last));
	EXPECT_LT(0, claim(*last));
	close(*last);
	while (unload_module("perf_test_pmu") && errno == EAGAIN)
		usleep(10000);
}

/* Offline it can be claimed, and the memory returns. */
TEST_F(hotplug, claimed_offline)
{
	int64_t id = unclaim(self->fd, 0, 0, "claimed");
	int other = open_comm(1), fd;

	ASSERT_LT(0, id);
	ASSERT_LT(0, unclaim(other, 0, 0, "other"));
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, write_long(ONLINE, 0));
	fd = reopen(id, 1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(id, claim(fd));
	/* An ordinary event again: it does not come back, as the other one does. */
	ASSERT_TRUE(bring_up(other));
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(fd));
	close(fd);
	EXPECT_LT(0, claim(other));
	close(other);
}

/* A session that was there before the CPU came up is joined by its events. */
TEST_F(hotplug, joined_by_new_cpu)
{
	int first = open_comm(0), second, fd;
	int64_t id = unclaim(first, 0, 0, "joined");
	void *base;

	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_REFUSED(ENODEV, open_comm(1));
	/* What went with the CPU is not given away: nobody would bring it back. */
	EXPECT_REFUSED(ENODEV, unclaim(self->fd, 0, id, ""));
	ASSERT_EQ(0, write_long(ONLINE, 1));
	EXPECT_REFUSED(ENODEV, unclaim(self->fd, 0, id, ""));

	second = open_comm(1);
	ASSERT_LE(0, second);
	EXPECT_EQ(id, unclaim(second, 0, id, ""));
	EXPECT_STREQ("0-1", sysfs("sessions/%s/cpus", "joined"));
	fd = reopen(id, 1, 0);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	leave_record_on(1, "joined");
	EXPECT_TRUE(recorded(base, "joined"));
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(fd));
	EXPECT_EQ(id, claim(first));
	close(fd);
	close(first);
	close(second);
}

/* Events that share a buffer, of several kinds, come back together. */
TEST_F(hotplug, shared_buffer)
{
	struct perf_event_attr attr = comm_attr();
	uint64_t before = 0, after = 0;
	int second, fd, i;
	int64_t id;
	void *mine;

	attr.comm = 0;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.freq = 1;
	attr.sample_freq = 100;
	attr.exclude_kernel = 0;
	second = event_open(&attr, -1, 1, -1, 0);
	ASSERT_LE(0, second);
	mine = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "shared");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(second, 0, id, ""));
	ASSERT_EQ(0, write_long(ONLINE, 0));
	ASSERT_TRUE(bring_up(self->fd));
	ASSERT_TRUE(bring_up(second));
	EXPECT_EQ(0, state_of(self->fd));
	EXPECT_EQ(0, state_of(second));
	fd = reopen(id, 1, 1);
	EXPECT_LE(0, fd);
	EXPECT_EQ(8, read(fd, &before, 8));
	/* It counts again. */
	for (i = 0; i < 1000 && after <= before; i++) {
		usleep(10000);
		EXPECT_EQ(8, read(fd, &after, 8));
	}
	EXPECT_LT(before, after);
	munmap(mine, 5 * PAGE);
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(id, claim(second));
	close(second);
	close(fd);
}

/* A storm of hotplug, while readers read and sessions come and go. */

static struct {
	int64_t		id;
	bool		stop;
	bool		bad;
	/* What was done meanwhile, and how much of it while the CPU was away. */
	unsigned int	reads;
	unsigned int	reads_offline;
	unsigned int	sessions;
	unsigned int	joined;
} storm;

static bool stopped(void)
{
	return __atomic_load_n(&storm.stop, __ATOMIC_RELAXED);
}

/* Opens, maps, reads and polls; whatever it sees is a record, or nothing. */
static void *reads(void *unused)
{
	uint64_t count;

	while (!stopped()) {
		struct pollfd p = { .fd = reopen(storm.id, 1, 0), .events = POLLIN };
		struct perf_rb_reserved reserved = {};
		uint32_t state;
		void *base;

		if (p.fd < 0) {
			storm.bad = true;
			break;
		}
		base = map(p.fd, DEFAULT_SIZE, PROT_READ);
		poll(&p, 1, 1);
		state = state_of(p.fd);
		if (base == MAP_FAILED || !nth_record(base, 0) ||
		    (state & ~PERF_PERSISTENT_STATE_OFFLINE) ||
		    ioctl(p.fd, PERF_EVENT_IOC_RESERVED_HEAD, &reserved) ||
		    read(p.fd, &count, 8) != 8)
			storm.bad = true;
		__atomic_add_fetch(&storm.reads, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&storm.reads_offline, !!state, __ATOMIC_RELAXED);
		if (base != MAP_FAILED)
			munmap(base, DEFAULT_SIZE + PAGE);
		close(p.fd);
	}
	return NULL;
}

/* Sessions that come, join and go, on a CPU that does as well. */
static void *comes_and_goes(void *unused)
{
	int i = 0;

	while (!stopped()) {
		int first = open_comm(i++ % 2), second = open_comm(1), fd;
		int64_t id = unclaim(first, i % 3 ? 0 : PERF_PERSISTENT_PARTIAL, 0, "");

		/* None, if they are of the CPU that is away. */
		storm.sessions += id > 0;
		storm.joined += unclaim(second, 0, id, "") > 0;
		fd = reopen(id, 1, 0);
		ioctl(second, i % 2 ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, 0);
		claim(fd);
		claim(second);
		claim(first);
		close(first);
		close(second);
		close(fd);
	}
	return NULL;
}

/* How many records of cycles follow each other, from the last one on down to cycle 0? */
static int nr_cycles(void *base, int last)
{
	const char *got;
	char name[16];
	int nr = 0, n;

	for (n = 0; last >= 0 && (got = nth_record(base, n)); n++) {
		snprintf(name, sizeof(name), "cycle%d", last);
		if (strcmp(got, name))
			continue;
		nr++;
		last -= 4;
	}
	return nr;
}

/* Only what happens while it is offline is lost. */
TEST_F_TIMEOUT(hotplug, storm, 2400)
{
	const char *cycles = getenv("PERSISTENT_HOTPLUG_CYCLES");
	int nr = cycles ? atoi(cycles) : 20, i, fd;
	pthread_t threads[3];
	char name[16];
	void *base;

	storm.id = unclaim(self->fd, 0, 0, "storm");
	ASSERT_LT(0, storm.id);
	close(self->fd);
	self->fd = -1;
	leave_record_on(1, "kept");
	fd = reopen(storm.id, 1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, reads, NULL));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, reads, NULL));
	ASSERT_EQ(0, pthread_create(&threads[2], NULL, comes_and_goes, NULL));
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, write_long(ONLINE, 0));
		ASSERT_EQ(0, write_long(ONLINE, 1));
		/* Else the CPU goes before its events are back. */
		if (i % 4)
			continue;
		ASSERT_TRUE(bring_up(fd));
		snprintf(name, sizeof(name), "cycle%d", i);
		leave_record_on(1, name);
	}
	__atomic_store_n(&storm.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_FALSE(storm.bad);
	TH_LOG("%d cycles; %u reads, %u of an offline CPU; %u sessions, %u joined", nr,
	       storm.reads, storm.reads_offline, storm.sessions, storm.joined);
	/* Or it was no storm. A CPU is away for a moment alone, perhaps between two reads. */
	EXPECT_LT(0, storm.sessions);
	EXPECT_LT(0, storm.reads);
	EXPECT_TRUE(storm.reads_offline || nr < 100);

	ASSERT_TRUE(bring_up(fd));
	EXPECT_EQ(0, state_of(fd));
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ((nr + 3) / 4, nr_cycles(base, (nr - 1) / 4 * 4));
	leave_record_on(1, "at last");
	EXPECT_TRUE(is_newer(base, "at last", "kept"));
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(storm.id, claim(fd));
	close(fd);
}

TEST_HARNESS_MAIN
