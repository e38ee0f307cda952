// SPDX-License-Identifier: GPL-2.0
/*
 * What persistent events promise in detail: ids, wakeups, header pages, the time that large
 * sessions take, and who waits for whom.
 *
 * Some need the modules of test_modules/: PERSISTENT_WINDOW and TEST_PMU_MODULE are their
 * paths.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"
#include "race_window.h"

FIXTURE(details)
{
	struct balance	before;
	struct limits	limits;
	/* An event on CPU 0, not given away yet. */
	int		fd;
};

FIXTURE_SETUP(details)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	self->fd = open_comm(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(details)
{
	restore_limits(&self->limits);
	close(self->fd);
	EXPECT_BALANCE();
}

/* An UNCLAIM that fails, wherever that is, uses up no id. */
TEST_F(details, ids_of_failures)
{
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_arg *ro;
	int64_t first, second;
	int bad, i, fd;
	void *base;

	ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)ro);
	ro->size = sizeof(*ro);
	mprotect(ro, PAGE, PROT_READ);
	attr.write_backward = 0;
	bad = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, bad);

	fd = open_comm(0);
	first = unclaim(fd, 0, 0, "first");
	ASSERT_LT(0, first);
	for (i = 0; i < 10; i++) {
		int written = open_comm(0);

		EXPECT_REFUSED(EINVAL, unclaim(bad, 0, 0, "bad"));
		EXPECT_REFUSED(EEXIST, unclaim(self->fd, 0, 0, "first"));
		EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, ro));
		/* The last step, when the session is listed already. */
		base = map(written, 4 * PAGE, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		ASSERT_EQ(0, mprotect(base, 5 * PAGE, PROT_READ | PROT_WRITE));
		((struct perf_event_mmap_page *)base)->data_tail = 0;
		EXPECT_REFUSED(EINVAL, unclaim(written, 0, 0, "written"));
		munmap(base, 5 * PAGE);
		close(written);
	}
	second = unclaim(self->fd, 0, 0, "second");
	EXPECT_EQ(first + 1, second);
	EXPECT_EQ(first, claim(fd));
	EXPECT_EQ(second, claim(self->fd));
	munmap(ro, PAGE);
	close(bad);
	close(fd);
}

/* What was recorded before a reader is added to an epoll set wakes it; nothing twice. */
TEST_F(details, epoll)
{
	struct epoll_event event = { .events = EPOLLIN }, got = {};
	int64_t id = unclaim(self->fd, 0, 0, "epoll");
	int ep = epoll_create1(EPOLL_CLOEXEC), fd;

	ASSERT_LT(0, id);
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	leave_record("before");
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));
	EXPECT_EQ(EPOLLIN, got.events);
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));

	leave_record("after");
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 60000));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));

	/* Armed again for each, when there is something already. */
	event.events = EPOLLIN | EPOLLONESHOT;
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event));
	leave_record("one");
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 60000));
	leave_record("two");
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, fd, &event));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));

	EXPECT_EQ(id, claim(fd));
	close(fd);
	close(ep);
}

/* poll() is told once: a reader in a loop sleeps between two wakeups. */
TEST_F(details, poll_in_a_loop)
{
	int64_t id = unclaim(self->fd, 0, 0, "loop");
	struct pollfd p = { .events = POLLIN };

	ASSERT_LT(0, id);
	p.fd = reopen(id, 0, 0);
	leave_record("one");
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(0, poll(&p, 1, 100));
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(id, claim(p.fd));
	close(p.fd);
}

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - from->tv_sec + (now.tv_nsec - from->tv_nsec) / 1e9;
}

/* The shortest of three; the host is busy with other things. */
static double time_of_views(const char *name)
{
	double shortest = 1e9, took;
	struct timespec from;
	int i;

	for (i = 0; i < 3; i++) {
		clock_gettime(CLOCK_MONOTONIC, &from);
		sysfs("sessions/%s/memory", name);
		took = seconds_since(&from);
		if (took < shortest)
			shortest = took;
	}
	return shortest;
}

/* A session of so many events, which share one buffer; -1 if that fails. */
static int64_t make_shared(const char *name, int *fds, int nr, double *complete)
{
	struct timespec from;
	int64_t id = 0;
	void *base;
	int i;

	for (i = 0; i < nr; i++) {
		fds[i] = open_comm(0);
		if (fds[i] < 0)
			return -1;
		if (!i) {
			base = map(fds[0], 4 * PAGE, PROT_READ);
			if (base == MAP_FAILED)
				return -1;
		} else if (ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0])) {
			return -1;
		}
	}
	for (i = 0; i < nr; i++) {
		id = unclaim(fds[i], PERF_PERSISTENT_PARTIAL, id, i ? "" : name);
		if (id <= 0)
			return -1;
	}
	clock_gettime(CLOCK_MONOTONIC, &from);
	id = unclaim(fds[0], 0, id, "");
	*complete = seconds_since(&from);
	munmap(base, 5 * PAGE);
	return id;
}

/* As above; out: how long it took to complete the session, and to look at it. */
static bool measure_shared(const char *name, int *fds, int nr, double *complete, double *view)
{
	int64_t id = make_shared(name, fds, nr, complete);

	if (id <= 0)
		return false;
	*view = time_of_views(name);
	for (int i = 0; i < nr; i++) {
		if (claim(fds[i]) != id)
			return false;
		close(fds[i]);
	}
	return true;
}

/*
 * Each buffer is looked at once: four times the events take about four times as long. What
 * is quadratic takes 16 times as long, each time; a busy host disturbs some of the times.
 */
TEST_F_TIMEOUT(details, many_events_in_a_buffer, 300)
{
	enum { FEW = 750, MANY = 4 * FEW };
	double few_complete, many_complete, few, many;
	struct rlimit files = { MANY + 100, MANY + 100 };
	int *fds = calloc(MANY, sizeof(*fds)), tries = 0;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files) ? errno : 0);
	ASSERT_EQ(0, write_long(MLOCK_KB, 1 << 20));
	do {
		ASSERT_TRUE(measure_shared("few", fds, FEW, &few_complete, &few));
		ASSERT_TRUE(measure_shared("many", fds, MANY, &many_complete, &many));
		TH_LOG("%d events: %.2f ms to complete, %.2f ms to view; %d: %.2f ms, %.2f ms",
		       FEW, few_complete * 1e3, few * 1e3, MANY, many_complete * 1e3, many * 1e3);
	} while ((many > 10 * few + 0.002 || many_complete > 10 * few_complete + 0.002) &&
		 ++tries < 10);
	EXPECT_GT(10, tries);
	free(fds);
}

/* Who waits for whom */

static struct {
	int	fds[3];
	void	*base;
	bool	unclaimed;
	int	err;
} unmap;

/* A process of its own: while it is held up, its memory map cannot be changed elsewhere. */
static pid_t map_slowly(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "slow");
		pin_to_cpu(1);
		map(unmap.fds[2], 4 * PAGE, PROT_READ);
		_exit(0);
	}
	return pid;
}

static void *unmaps(void *unused)
{
	munmap(unmap.base, 5 * PAGE);
	return NULL;
}

static void *unclaims(void *unused)
{
	unmap.err = unclaim(unmap.fds[1], 0, 0, "waits") > 0 ? 0 : errno;
	__atomic_store_n(&unmap.unclaimed, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * An UNCLAIM that waits for an unmapper holds up no other. The unmapper takes the buffer
 * from its events one by one: it waits for the last one, which a third task is about to
 * map, and there the window holds that up.
 */
static bool waits_alone(struct __test_metadata *_metadata)
{
	pthread_t threads[2];
	pid_t slow;
	bool alone;
	int i, fd;

	memset(&unmap, 0, sizeof(unmap));
	for (i = 0; i < 3; i++) {
		unmap.fds[i] = open_comm(0);
		if (!i)
			unmap.base = map(unmap.fds[0], 4 * PAGE, PROT_READ);
		else
			EXPECT_EQ(0, ioctl(unmap.fds[i], PERF_EVENT_IOC_SET_OUTPUT, unmap.fds[0]));
	}
	EXPECT_NE(MAP_FAILED, unmap.base);
	set_window("armed", "1");
	slow = map_slowly();
	for (i = 0; i < 1000 && read_long(WINDOW_PARAM "waiting") != 1; i++)
		usleep(1000);
	pthread_create(&threads[0], NULL, unmaps, NULL);
	usleep(100000);
	pthread_create(&threads[1], NULL, unclaims, NULL);
	usleep(20000);

	fd = open_comm(0);
	EXPECT_LT(0, unclaim(fd, 0, 0, "other"));
	alone = !__atomic_load_n(&unmap.unclaimed, __ATOMIC_ACQUIRE);
	EXPECT_LT(0, claim(fd));
	close(fd);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	waitpid(slow, NULL, 0);
	TH_LOG("the one that waited: %s", unmap.err ? strerror(unmap.err) : "made a session");
	if (!unmap.err)
		claim(unmap.fds[1]);
	for (i = 0; i < 3; i++)
		close(unmap.fds[i]);
	return alone;
}

/* Linux 7.3 refuses it with EBUSY. */
static bool maps_redirected(void)
{
	int first = open_comm(0), second = open_comm(0);
	void *base = map(first, 4 * PAGE, PROT_READ), *alias;

	ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first);
	alias = map(second, 4 * PAGE, PROT_READ);
	if (alias != MAP_FAILED)
		munmap(alias, 5 * PAGE);
	munmap(base, 5 * PAGE);
	close(first);
	close(second);
	return alias != MAP_FAILED || errno != EBUSY;
}

TEST_F(details, waits_for_unmapper_alone)
{
	const char *module = getenv("PERSISTENT_WINDOW");
	int i;

	if (access(module ?: "", R_OK))
		SKIP(return, "PERSISTENT_WINDOW is not the path of the module");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU");
	if (!maps_redirected())
		SKIP(return, "this kernel maps no event that is redirected: nobody waits");

	ASSERT_EQ(0, load_window(module));
	EXPECT_EQ(0, set_window("left", "slow:perf_rb_check_mmap"));
	/* A busy host may be late: it is not each time. */
	for (i = 0; i < 5 && !waits_alone(_metadata); i++)
		;
	EXPECT_GT(5, i);
	set_window("left", "\n");
	EXPECT_EQ(0, unload_window());
}

/* A program that tries rdpmc where nobody has switched it on dies of it. */
TEST_F(details, no_rdpmc)
{
	struct perf_event_attr attr = comm_attr();
	struct perf_event_mmap_page *page;
	const char *module = getenv("TEST_PMU_MODULE");
	int64_t id;
	int fd;

	if (access(module ?: "", R_OK))
		SKIP(return, "TEST_PMU_MODULE is not the path of the module");
	ASSERT_EQ(0, load_module(module, ""));
	attr.type = read_long("/sys/bus/event_source/devices/perf_test_small/type");
	attr.config = 0;
	attr.config1 = 1;
	fd = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	page = map(fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)page);
	/* Else this tries nothing. */
	EXPECT_TRUE(!!page->cap_user_rdpmc);
	id = unclaim(fd, 0, 0, "rdpmc");
	ASSERT_LT(0, id);
	EXPECT_FALSE(!!page->cap_user_rdpmc);
	/* Nor does it come back. */
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_FALSE(!!page->cap_user_rdpmc);
	EXPECT_EQ(0, page->index);
	munmap(page, 5 * PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	/* Events are freed by RCU. */
	while (unload_module("perf_test_pmu") && errno == EAGAIN)
		usleep(10000);
}

TEST_HARNESS_MAIN
