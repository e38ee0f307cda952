// SPDX-License-Identifier: GPL-2.0
/*
 * Whose sessions are whose, with the same uid on both sides: containers with pid
 * namespaces and without user namespaces, rootless ones with both, in both directions; and
 * what later openers are asked for because the first one had it.
 */
#define _GNU_SOURCE

#include <sys/socket.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"
#include "persistent_spaces.h"

#define USER		1000
#define USERS(name)	"u1000." name

/* Through a socket, as SCM_RIGHTS. */
static bool send_fd(int sock, int fd)
{
	char room[CMSG_SPACE(sizeof(fd))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1;
}

static int receive_fd(int sock)
{
	char room[CMSG_SPACE(sizeof(int))] = {}, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	int fd = -1;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

FIXTURE(spaces)
{
	struct balance	before;
	struct limits	limits;
};

FIXTURE_SETUP(spaces)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 16));
	ASSERT_EQ(0, write_long(PARANOID, -1));
}

FIXTURE_TEARDOWN(spaces)
{
	restore_limits(&self->limits);
	EXPECT_BALANCE();
}

static void end_session(int64_t id, int cpu)
{
	int fd = reopen(id, cpu, 0);

	claim(fd);
	close(fd);
}

/* Of a session on CPU 0: 0, or the errno of what is refused first. */
static int tries_all(int64_t id)
{
	int fd = open_comm(0), mine;

	/* Without the right to monitor a CPU there is nothing to join with. */
	if (fd >= 0 && unclaim(fd, 0, id, "") == -1)
		return errno;
	if (fd >= 0 && claim(fd) != id)
		return 96;
	mine = reopen(id, 0, 0);
	return mine < 0 ? errno : 0;
}

static int tries_as_user(int64_t id)
{
	return become(USER) ? 99 : tries_all(id);
}

static int tries_without_capabilities(int64_t id)
{
	return drop_capabilities() ? 99 : tries_all(id);
}

static int makes_as_user(int64_t unused)
{
	if (become(USER))
		return 99;
	return unclaim(open_comm(0), 0, 0, "mine") > 0 ? 0 : errno;
}

static int claims_as_user(int64_t id)
{
	if (become(USER))
		return 99;
	return claim(reopen(id, 0, 0)) == id ? 0 : errno;
}

/* What sysfs tells of the user's session */
static int reads_as_user(int64_t unused)
{
	char text[16];
	int fd;

	if (become(USER))
		return 99;
	fd = open(DEVICE "/sessions/" USERS("mine") "/nr_events", O_RDONLY);
	return fd < 0 ? 98 : read(fd, text, sizeof(text)) < 0 ? errno : 0;
}

/* Two containers of one user, and the machine: it sees theirs, and none the other's. */
TEST_F(spaces, same_uid)
{
	struct space one = make_space(CLONE_NEWPID, 0), two = make_space(CLONE_NEWPID, 0);
	struct space here = make_space(0, 0);
	int level, allowed;
	int64_t id;

	ASSERT_LT(0, one.pid);
	ASSERT_LT(0, two.pid);
	for (level = -1; level <= 3; level++) {
		allowed = level <= 0 ? 0 : EACCES;
		ASSERT_EQ(0, write_long(PARANOID, -1));
		ASSERT_EQ(0, run_in(&one, makes_as_user, 0));
		id = listed_id(USERS("mine"));
		ASSERT_LT(0, id);
		ASSERT_EQ(0, write_long(PARANOID, level));
		EXPECT_EQ(allowed, run_in(&one, tries_as_user, id)) TH_LOG("level %d", level);
		EXPECT_EQ(EACCES, run_in(&two, tries_as_user, id)) TH_LOG("level %d", level);
		EXPECT_EQ(allowed, run_in(&here, tries_as_user, id)) TH_LOG("level %d", level);
		EXPECT_EQ(EBADF, run_in(&two, claims_as_user, id));
		EXPECT_EQ(0, run_in(&one, reads_as_user, 0));
		EXPECT_EQ(EACCES, run_in(&two, reads_as_user, 0));
		EXPECT_EQ(0, run_in(&here, reads_as_user, 0));
		EXPECT_EQ(id, listed_id(USERS("mine")));
		/* It may be ended from where it is seen. */
		EXPECT_EQ(allowed ? EBADF : 0, run_in(&here, claims_as_user, id));
		end_session(id, 0);

		/* Nor do they see what is outside. */
		ASSERT_EQ(0, write_long(PARANOID, -1));
		ASSERT_EQ(0, run_in(&here, makes_as_user, 0));
		id = listed_id(USERS("mine"));
		ASSERT_EQ(0, write_long(PARANOID, level));
		EXPECT_EQ(EACCES, run_in(&one, tries_as_user, id)) TH_LOG("level %d", level);
		EXPECT_EQ(allowed, run_in(&here, tries_as_user, id)) TH_LOG("level %d", level);
		end_session(id, 0);
	}
	end_space(&one);
	end_space(&two);
	end_space(&here);
}

/* uid 0 of a container without a user namespace is root's, and not root. */
TEST_F(spaces, uid_0)
{
	struct space one = make_space(CLONE_NEWPID, 0);
	int fd = open_comm(0), level;
	int64_t id = unclaim(fd, 0, 0, "blackbox");

	ASSERT_LT(0, one.pid);
	ASSERT_LT(0, id);
	for (level = -1; level <= 3; level++) {
		ASSERT_EQ(0, write_long(PARANOID, level));
		EXPECT_EQ(EACCES, run_in(&one, tries_without_capabilities, id))
			TH_LOG("level %d", level);
		/* With CAP_PERFMON it may watch the machine, as by perf_event_open(). */
		EXPECT_EQ(0, run_in(&one, tries_all, id)) TH_LOG("level %d", level);
	}
	EXPECT_EQ(id, claim(fd));
	close(fd);
	end_space(&one);
}

static int opens_task(int64_t id)
{
	int fd = reopen(id, -1, 0), err = fd < 0 ? errno : 0;

	close(fd);
	return err;
}

/* Watches its caller, whose pid the machine does not know by that number. */
static int watches_parent(int64_t unused)
{
	struct perf_event_attr attr = comm_attr();
	int fd = event_open(&attr, getppid(), -1, -1, 0);

	return fd >= 0 && unclaim(fd, 0, 0, "task") > 0 ? 0 : errno;
}

/* A task that the reader cannot see cannot be read, not even with CAP_PERFMON. */
TEST_F(spaces, tasks)
{
	struct space one = make_space(CLONE_NEWPID, 0), two = make_space(CLONE_NEWPID, 0);
	struct perf_event_attr attr = comm_attr();
	int64_t id;
	int fd;

	ASSERT_LT(0, one.pid);
	ASSERT_LT(0, two.pid);
	ASSERT_EQ(0, run_in(&one, watches_parent, 0));
	id = listed_id("task");
	ASSERT_LT(0, id);
	EXPECT_EQ(0, run_in(&one, opens_task, id));
	EXPECT_EQ(0, opens_task(id));
	EXPECT_EQ(ESRCH, run_in(&two, opens_task, id));

	/* Nor when it is dead. */
	end_space(&one);
	EXPECT_EQ(ESRCH, run_in(&two, opens_task, id));
	fd = reopen(id, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);

	/* A task of the machine is not of the container. */
	fd = event_open(&attr, getpid(), -1, -1, 0);
	id = unclaim(fd, 0, 0, "outside");
	ASSERT_LT(0, id);
	EXPECT_EQ(ESRCH, run_in(&two, opens_task, id));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	end_space(&two);
}

/* An event of its caller on CPU 0, whose fd it sends through a socket. */
static int sends_event(int64_t sock)
{
	struct perf_event_attr attr = comm_attr();
	int fd = event_open(&attr, getppid(), 0, -1, 0);

	return fd >= 0 && send_fd(sock, fd) ? 0 : errno;
}

static int opens_cpu_0(int64_t id)
{
	int fd = reopen(id, 0, 0), err = fd < 0 ? errno : 0;

	close(fd);
	return err;
}

/* A buffer of a CPU may have records of several tasks: the reader must see all of them. */
TEST_F(spaces, tasks_of_one_buffer)
{
	struct perf_event_attr attr = comm_attr();
	int sock[2], inside, outside;
	struct space space;
	int64_t id;
	void *base;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, sock));
	space = make_space(CLONE_NEWPID, 0);
	ASSERT_LT(0, space.pid);
	ASSERT_EQ(0, run_in(&space, sends_event, sock[1]));
	inside = receive_fd(sock[0]);
	outside = event_open(&attr, getpid(), 0, -1, 0);
	ASSERT_LE(0, inside);
	base = map(inside, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, ioctl(outside, PERF_EVENT_IOC_SET_OUTPUT, inside));
	id = unclaim(inside, PERF_PERSISTENT_PARTIAL, 0, "both");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(outside, 0, id, ""));
	EXPECT_EQ(0, opens_cpu_0(id));
	EXPECT_EQ(ESRCH, run_in(&space, opens_cpu_0, id));

	/* Its records stay when it is freed, and nobody remembers whose they are. */
	EXPECT_EQ(id, claim(outside));
	EXPECT_EQ(ESRCH, run_in(&space, opens_cpu_0, id));
	close(outside);
	EXPECT_EQ(EACCES, run_in(&space, opens_cpu_0, id));
	EXPECT_EQ(0, opens_cpu_0(id));
	munmap(base, 5 * PAGE);
	EXPECT_EQ(id, claim(inside));
	close(inside);
	close(sock[0]);
	close(sock[1]);
	end_space(&space);
}

static int makes(int64_t unused)
{
	return unclaim(open_comm(0), 0, 0, "rootless") > 0 ? 0 : errno;
}

/* A container of a user with a user namespace: neither side is the other's owner. */
TEST_F(spaces, rootless)
{
	struct space inside = make_space(CLONE_NEWUSER | CLONE_NEWPID, USER);
	struct space outside = make_space(0, 0);
	int level, fd;
	int64_t id;

	if (inside.pid < 0)
		SKIP(return, "no user namespaces for ordinary users");
	for (level = -1; level <= 3; level++) {
		ASSERT_EQ(0, write_long(PARANOID, -1));
		ASSERT_EQ(0, run_in(&inside, makes, 0));
		id = listed_id(USERS("rootless"));
		ASSERT_LT(0, id);
		ASSERT_EQ(0, write_long(PARANOID, level));
		EXPECT_EQ(level <= 0 ? 0 : EACCES, run_in(&inside, tries_all, id))
			TH_LOG("level %d", level);
		EXPECT_EQ(EACCES, run_in(&outside, tries_as_user, id)) TH_LOG("level %d", level);
		/* The machine's root may, and ends it. */
		fd = reopen(id, 0, 0);
		EXPECT_EQ(id, claim(fd));
		close(fd);

		ASSERT_EQ(0, write_long(PARANOID, -1));
		ASSERT_EQ(0, run_in(&outside, makes_as_user, 0));
		id = listed_id(USERS("mine"));
		ASSERT_LT(0, id);
		ASSERT_EQ(0, write_long(PARANOID, level));
		EXPECT_EQ(EACCES, run_in(&inside, tries_all, id)) TH_LOG("level %d", level);
		end_session(id, 0);
	}
	end_space(&inside);
	end_space(&outside);
}

/* Looks at it, stops it and ends it, but gets none of its events. */
static int rules(int64_t id)
{
	struct perf_persistent_session_info inf;
	int fd;

	if (reopen(id, 0, 0) >= 0 || errno != EACCES)
		return 98;
	fd = open_session(id);
	return fd < 0 || session_info(fd, &inf) || session_freeze(fd) || session_thaw(fd) ||
	       session_end(fd) ? errno : 0;
}

static int rules_as_user(int64_t id)
{
	return become(USER) ? 99 : rules(id);
}

static int rules_as_other(int64_t id)
{
	return become(USER + 1) ? 99 : rules(id);
}

/* Whose user namespace it is ends what is left of the container, and nobody else. */
TEST_F(spaces, rootless_end)
{
	struct space inside = make_space(CLONE_NEWUSER | CLONE_NEWPID, USER);
	struct space outside = make_space(0, 0), other;
	int64_t id;

	if (inside.pid < 0)
		SKIP(return, "no user namespaces for ordinary users");
	ASSERT_EQ(0, run_in(&inside, makes, 0));
	id = listed_id(USERS("rootless"));
	ASSERT_LT(0, id);
	end_space(&inside);
	other = make_space(CLONE_NEWUSER | CLONE_NEWPID, USER);
	ASSERT_LT(0, other.pid);
	EXPECT_EQ(EACCES, run_in(&other, rules, id));
	EXPECT_EQ(EACCES, run_in(&outside, rules_as_other, id));
	EXPECT_EQ(0, run_in(&outside, rules_as_user, id));
	EXPECT_EQ(-1, listed_id(USERS("rootless")));
	end_space(&other);
	end_space(&outside);
}

static int user_makes(int64_t unused, int fd)
{
	return unclaim(open_comm(0), 0, 0, "mine") > 0 ? 0 : errno;
}

/* Names of users without CAP_PERFMON are in nobody's way. */
TEST_F(spaces, names)
{
	struct perf_persistent_info inf;
	int fd = open_comm(0), users;
	int64_t id, root;

	ASSERT_EQ(0, as_user(USER, user_makes, 0, -1));
	root = unclaim(fd, 0, 0, "mine");
	ASSERT_LT(0, root);
	EXPECT_EQ(root, listed_id("mine"));
	id = listed_id(USERS("mine"));
	EXPECT_LT(0, id);
	EXPECT_NE(root, id);
	users = reopen(id, 0, 0);
	ASSERT_LE(0, users);
	ASSERT_EQ(0, info(users, &inf));
	EXPECT_STREQ(USERS("mine"), inf.name);
	EXPECT_EQ(USER, inf.owner_uid);

	/* Nobody can ask for such a name; it is no name of the kernel's. */
	EXPECT_EQ(root, claim(fd));
	close(fd);
	fd = open_comm(0);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, USERS("other")));
	close(fd);
	/* Both are its names for those that join. */
	fd = open_comm(0);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, id, "other"));
	EXPECT_EQ(id, unclaim(fd, 0, id, "mine"));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	fd = open_comm(0);
	EXPECT_EQ(id, unclaim(fd, 0, id, USERS("mine")));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_EQ(id, claim(users));
	close(users);
	EXPECT_EQ(-1, listed_id(USERS("mine")));
}

/* What was asked at first */

static int opens(int64_t id, int unused)
{
	int fd = reopen(id, 0, 0), err = fd < 0 ? errno : 0;

	close(fd);
	return err;
}

static int monitors(const char *pmu, const char *name)
{
	struct perf_event_attr attr = comm_attr();
	int status, type = pmu ? read_long(pmu) : PERF_TYPE_SOFTWARE;
	pid_t pid = fork();

	if (!pid) {
		if (become_monitor())
			_exit(99);
		attr.type = type;
		if (pmu) {
			attr.config = 0;
			/* It cannot tell them apart. */
			attr.exclude_kernel = 0;
		}
		_exit(unclaim(event_open(&attr, -1, 0, -1, 0), 0, 0, name) > 0 ? 0 : errno);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/*
 * A PMU that may give more to holders of CAP_PERFMON: its events, opened with it, are not
 * for a user without, not even for their owner, and whatever else that user may do.
 */
TEST_F(spaces, unknown_pmu)
{
	const char *type = "/sys/bus/event_source/devices/msr/type";
	int64_t id;

	if (access(type, R_OK))
		SKIP(return, "no PMU called msr");

	ASSERT_EQ(0, monitors(NULL, "known"));
	id = listed_id("known");
	ASSERT_LT(0, id);
	EXPECT_EQ(0, as_user(SOMEBODY, opens, id, -1));
	end_session(id, 0);

	ASSERT_EQ(0, monitors(type, "unknown"));
	id = listed_id("unknown");
	ASSERT_LT(0, id);
	EXPECT_EQ(EACCES, as_user(SOMEBODY, opens, id, -1));
	EXPECT_EQ(0, opens(id, -1));
	end_session(id, 0);
}

/* The records of a member that is no more are still what they were. */
TEST_F(spaces, records_of_the_freed)
{
	int raw = open_raw(), fd = open_comm(0), i;
	void *base = map(fd, 4 * PAGE, PROT_READ);
	int64_t id;

	if (raw < 0)
		SKIP(return, "no tracefs");
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, ioctl(raw, PERF_EVENT_IOC_SET_OUTPUT, fd));
	id = unclaim(fd, PERF_PERSISTENT_PARTIAL, 0, "freed");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(raw, 0, id, ""));
	/* To be root's uid is enough, under this level, for the one but not the other. */
	ASSERT_EQ(0, write_long(PARANOID, 0));
	for (i = 0; i < 2; i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(drop_capabilities() ? 99 : opens(id, -1));
		waitpid(pid, &status, 0);
		EXPECT_EQ(EPERM, WEXITSTATUS(status)) TH_LOG("%d members freed", i);
		/* Claimed, and freed with its last file. */
		if (!i)
			EXPECT_EQ(id, claim(raw));
		if (!i)
			close(raw);
	}
	munmap(base, 5 * PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

TEST_HARNESS_MAIN
