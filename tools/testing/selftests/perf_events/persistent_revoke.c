// SPDX-License-Identifier: GPL-2.0
/*
 * A PMU is unregistered while a persistent session has events of it, as that of a device which
 * is unplugged. Its events are GONE, and who polls them is told. What they recorded can be
 * read, the other events of the session record, and the session ends as any other does.
 *
 * The PMU is perf_test_small of perf_test_pmu.ko, whose path is in TEST_PMU_MODULE. Linux
 * before 6.15 cannot unregister a PMU that has events.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"

#define MODULE		"perf_test_pmu"
#define REVOKE		"/sys/module/" MODULE "/parameters/revoke"
#define TYPE		"/sys/bus/event_source/devices/perf_test_small/type"
#define NR_LINES	3

/* The target and two children, each of which does what it is told on its line. */
static struct line {
	int	to[2];
	int	from[2];
} lines[NR_LINES];

/* The number of the child that is to be started, or: */
#define LEAVE	'L'

static void serve(int nr)
{
	char order, name[16];

	while (read(lines[nr].to[0], &order, 1) == 1) {
		if (order == LEAVE) {
			snprintf(name, sizeof(name), "task %d", nr);
			leave_record(name);
		} else if (!fork()) {
			nr = order;
			continue;
		}
		/* Of another name, for the next record to be one. */
		leave_record("serves");
		if (write(lines[nr].from[1], &order, 1) != 1)
			break;
	}
	_exit(0);
}

static bool tell(int nr, char order)
{
	return write(lines[nr].to[1], &order, 1) == 1 &&
	       read(lines[nr].from[0], &order, 1) == 1;
}

static struct perf_event_attr pmu_attr(void)
{
	struct perf_event_attr attr = comm_attr();

	attr.type = read_long(TYPE);
	attr.config = 0;
	return attr;
}

static int open_pmu(int cpu)
{
	struct perf_event_attr attr = pmu_attr();

	return event_open(&attr, -1, cpu, -1, 0);
}

/* Events are freed by RCU. */
static void unload(void)
{
	while (unload_module(MODULE) && errno == EAGAIN)
		usleep(10000);
}

static int revoke_pmus(void)
{
	return write_text(REVOKE, "1");
}

enum { OF_CPU, OF_TASK, OTHER, NR_MEMBERS };

FIXTURE(revoke)
{
	struct balance	before;
	int64_t		id;
	pid_t		target;
	/* Readers of the members, all on CPU 0: of the PMU, of the PMU and a task, a dummy */
	int		fd[NR_MEMBERS];
};

/* Gives the event to the session, as the nth of CPU 0, and opens it as a reader. */
static int join(struct _test_data_revoke *self, int fd, int nth)
{
	int64_t id = unclaim(fd, 0, self->id, self->id ? "" : "revoke");

	close(fd);
	if (id <= 0)
		return -1;
	self->id = id;
	return reopen(id, 0, nth);
}

FIXTURE_SETUP(revoke)
{
	const char *module = getenv("TEST_PMU_MODULE");
	struct perf_event_attr attr;
	int i;

	SKIP_WITHOUT_PERSISTENT(return);
	if (access(module ?: "", R_OK))
		SKIP(return, "TEST_PMU_MODULE is not the path of the module");
	ASSERT_EQ(0, load_module(module, ""));
	if (write_text(REVOKE, "0")) {
		i = errno;
		unload();
		ASSERT_EQ(EOPNOTSUPP, i);
		SKIP(return, "this kernel cannot unregister a PMU that has events");
	}

	self->before = take_balance();
	pin_to_cpu(0);
	/* Orphans are waited for. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (i = 0; i < NR_LINES; i++) {
		ASSERT_EQ(0, pipe2(lines[i].to, O_CLOEXEC));
		ASSERT_EQ(0, pipe2(lines[i].from, O_CLOEXEC));
	}
	self->target = fork();
	ASSERT_LE(0, self->target);
	if (!self->target)
		serve(0);
	/* All that it starts is in its process group. */
	ASSERT_EQ(0, setpgid(self->target, 0));

	self->fd[OF_CPU] = join(self, open_pmu(0), OF_CPU);
	ASSERT_LE(0, self->fd[OF_CPU]);
	attr = pmu_attr();
	attr.inherit = 1;
	self->fd[OF_TASK] = join(self, event_open(&attr, self->target, 0, -1, 0), OF_TASK);
	ASSERT_LE(0, self->fd[OF_TASK]);
	self->fd[OTHER] = join(self, open_comm(0), OTHER);
	ASSERT_LE(0, self->fd[OTHER]);
	ASSERT_TRUE(tell(0, 1));
}

FIXTURE_TEARDOWN(revoke)
{
	int i;

	with_session(self->id, session_end);
	for (i = 0; i < NR_MEMBERS; i++)
		close(self->fd[i]);
	kill(-self->target, SIGKILL);
	while (wait(NULL) > 0)
		;
	for (i = 0; i < NR_LINES; i++) {
		close(lines[i].to[0]);
		close(lines[i].to[1]);
		close(lines[i].from[0]);
		close(lines[i].from[1]);
	}
	unload();
	EXPECT_BALANCE();
}

static bool is_gone(int fd)
{
	return state_of(fd) == PERF_PERSISTENT_STATE_GONE && polled(fd) & POLLHUP;
}

static bool runs(int fd)
{
	return !state_of(fd) && !(polled(fd) & POLLHUP);
}

static bool holds(int fd, const char *name)
{
	return holds_record(fd, DEFAULT_SIZE, name);
}

/* At once, although the tasks live. Nothing of what was recorded is lost. */
TEST_F(revoke, gone)
{
	uint64_t count;
	int i;

	leave_record("before");
	ASSERT_TRUE(tell(1, LEAVE));
	for (i = 0; i < NR_MEMBERS; i++)
		EXPECT_TRUE(runs(self->fd[i])) TH_LOG("member %d", i);

	ASSERT_EQ(0, revoke_pmus());
	EXPECT_TRUE(is_gone(self->fd[OF_CPU]));
	EXPECT_TRUE(is_gone(self->fd[OF_TASK]));
	EXPECT_TRUE(runs(self->fd[OTHER]));

	leave_record("after");
	ASSERT_TRUE(tell(0, LEAVE));
	/* One that is born now inherits nothing. */
	ASSERT_TRUE(tell(1, 2));
	ASSERT_TRUE(tell(2, LEAVE));
	EXPECT_TRUE(holds(self->fd[OF_CPU], "before"));
	EXPECT_FALSE(holds(self->fd[OF_CPU], "after"));
	EXPECT_TRUE(holds(self->fd[OF_TASK], "task 1"));
	EXPECT_FALSE(holds(self->fd[OF_TASK], "task 0"));
	EXPECT_FALSE(holds(self->fd[OF_TASK], "task 2"));
	EXPECT_TRUE(holds(self->fd[OTHER], "after"));
	EXPECT_TRUE(holds(self->fd[OTHER], "task 2"));
	for (i = 0; i < NR_MEMBERS; i++)
		EXPECT_EQ(sizeof(count), read(self->fd[i], &count, sizeof(count)));

	/* They leave the session as others do. */
	for (i = 0; i < NR_MEMBERS; i++)
		EXPECT_EQ(self->id, claim(self->fd[i]));
	EXPECT_TRUE(holds(self->fd[OF_CPU], "before"));
}

/* Exits with 0 when poll() says that the event is GONE, with 1 if it does not. */
static pid_t wait_for_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	pid_t pid = fork();

	if (pid)
		return pid;
	do {
		if (poll(&p, 1, 60000) <= 0)
			_exit(1);
	} while (!(p.revents & POLLHUP));
	_exit(0);
}

TEST_F(revoke, sleepers_are_woken)
{
	pid_t pids[2];
	int i, status;

	for (i = 0; i < 2; i++)
		pids[i] = wait_for_end(self->fd[i]);
	/* Long enough for them to sleep; else they try less. */
	usleep(200000);
	ASSERT_EQ(0, revoke_pmus());
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status) TH_LOG("member %d", i);
	}
}

/* Nothing of the session needs the module any more. A PMU that returns is another one. */
TEST_F(revoke, module_is_unloaded)
{
	int fd;

	leave_record("before");
	ASSERT_EQ(0, revoke_pmus());
	unload();
	EXPECT_NE(0, access(REVOKE, F_OK));
	EXPECT_TRUE(is_gone(self->fd[OF_CPU]));
	EXPECT_TRUE(is_gone(self->fd[OF_TASK]));
	EXPECT_TRUE(holds(self->fd[OF_CPU], "before"));

	ASSERT_EQ(0, load_module(getenv("TEST_PMU_MODULE"), ""));
	EXPECT_TRUE(is_gone(self->fd[OF_CPU]));
	EXPECT_TRUE(is_gone(self->fd[OF_TASK]));
	fd = join(self, open_pmu(0), NR_MEMBERS);
	ASSERT_LE(0, fd);
	leave_record("anew");
	EXPECT_TRUE(runs(fd));
	EXPECT_TRUE(holds(fd, "anew"));
	EXPECT_FALSE(holds(self->fd[OF_CPU], "anew"));

	/* The end of the session takes both. */
	EXPECT_EQ(0, with_session(self->id, session_end));
	EXPECT_TRUE(is_gone(self->fd[OF_CPU]));
	EXPECT_TRUE(polled(fd) & POLLHUP);
	close(fd);
}

/* The creator's file tells as well that there is no PMU, and can be closed. */
TEST_F(revoke, creator)
{
	int member = open_pmu(0), event = open_pmu(0);
	int64_t id;

	ASSERT_LE(0, member);
	ASSERT_LE(0, event);
	id = unclaim(member, 0, 0, "creator");
	ASSERT_LT(0, id);
	ASSERT_EQ(0, revoke_pmus());
	EXPECT_REFUSED(ENODEV, unclaim(event, 0, 0, "late"));
	EXPECT_REFUSED(ENODEV, unclaim(event, 0, self->id, ""));
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(member));
	EXPECT_REFUSED(ENODEV, ioctl(member, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_REFUSED(ENODEV, ioctl(member, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(member));
	EXPECT_EQ(id, claim(member));
	close(member);
	close(event);
}

#define NR_BESIDE	500
/* It had no event left when the PMU went. */
#define TOO_FAST	4

/* Gives events to a session and takes them back. Returns 0 when one has no PMU any more. */
static int join_and_leave(const int *fds, int told)
{
	int64_t id;
	int i;

	pin_to_cpu(1);
	for (i = 0; i < NR_BESIDE; i++) {
		id = unclaim(fds[i], 0, 0, "beside");
		if (id <= 0)
			return errno == ENODEV ? 0 : 1;
		if (claim(fds[i]) != id)
			return 2;
		close(fds[i]);
		if (!i && write(told, "", 1) != 1)
			return 3;
	}
	return TOO_FAST;
}

/* UNCLAIM finds a PMU, or says that there is none; who has joined can leave. */
TEST_F_TIMEOUT(revoke, beside_unclaim, SLOW_RACE_TIMEOUT)
{
	unsigned int round, nr = slow_rounds(10), met = 0;
	int fds[NR_BESIDE], told[2], status, i;
	pid_t pid;
	char text;

	for (round = 0; round < nr || (!met && round < 100); round++) {
		ASSERT_EQ(0, pipe(told));
		for (i = 0; i < NR_BESIDE; i++) {
			fds[i] = open_pmu(1);
			ASSERT_LE(0, fds[i]);
		}
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* If an assertion fails, it ends as the target does. */
			setpgid(0, self->target);
			_exit(join_and_leave(fds, told[1]));
		}
		for (i = 0; i < NR_BESIDE; i++)
			close(fds[i]);
		close(told[1]);
		ASSERT_EQ(1, read(told[0], &text, 1));
		close(told[0]);
		usleep(round % 20 * 500);
		ASSERT_EQ(0, revoke_pmus());
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFEXITED(status));
		if (WEXITSTATUS(status) != TOO_FAST) {
			ASSERT_EQ(0, WEXITSTATUS(status)) TH_LOG("round %u", round);
			met++;
		}
		unload();
		ASSERT_EQ(0, load_module(getenv("TEST_PMU_MODULE"), ""));
	}
	TH_LOG("met in %u of %u rounds", met, round);
	EXPECT_LT(0, met);
}

/* Once the work of a CPU that has returned has run, which installs events again */
static bool bring_up(int fd)
{
	int i;

	if (write_long(ONLINE, 1))
		return false;
	for (i = 0; i < 1000 && state_of(fd); i++)
		usleep(10000);
	return !state_of(fd);
}

/* An event without a PMU does not return with its CPU, whichever goes first. */
TEST_F(revoke, while_cpu_is_away)
{
	int fds[2], i;

	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot go offline");
	for (i = 0; i < 2; i++) {
		fds[0] = open_pmu(1);
		ASSERT_LT(0, unclaim(fds[0], 0, 0, "of_pmu"));
		fds[1] = open_comm(1);
		ASSERT_LT(0, unclaim(fds[1], 0, 0, "of_cpu"));

		if (!i) {
			ASSERT_EQ(0, write_long(ONLINE, 0));
			EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(fds[0]));
			ASSERT_EQ(0, revoke_pmus());
		} else {
			ASSERT_EQ(0, revoke_pmus());
			ASSERT_EQ(0, write_long(ONLINE, 0));
		}
		EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fds[0]));
		EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(fds[1]));
		EXPECT_TRUE(bring_up(fds[1]));
		EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fds[0]));

		EXPECT_LT(0, claim(fds[0]));
		EXPECT_LT(0, claim(fds[1]));
		close(fds[0]);
		close(fds[1]);
		if (!i) {
			unload();
			ASSERT_EQ(0, load_module(getenv("TEST_PMU_MODULE"), ""));
		}
	}
}

TEST_HARNESS_MAIN
