// SPDX-License-Identifier: GPL-2.0
/*
 * The file of a session: what it tells, who may use it for what, and how it ends the
 * session in one call.
 */
#define _GNU_SOURCE

#include <sys/epoll.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"
#include "persistent_spaces.h"

FIXTURE(session)
{
	struct balance	before;
	struct limits	limits;
	int		fd;
};

FIXTURE_SETUP(session)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	self->fd = -1;
}

FIXTURE_TEARDOWN(session)
{
	close(self->fd);
	restore_limits(&self->limits);
	EXPECT_BALANCE();
}

static int64_t make(const char *name)
{
	int fd = open_comm(0);
	int64_t id = unclaim(fd, 0, 0, name);

	close(fd);
	return id;
}

/* A session with two events in one buffer on CPU 0, and one that follows this task. */
static int64_t make_three(uint64_t ids[3])
{
	struct perf_event_attr attr = comm_attr();
	int first = open_comm(0), second, task, fds[3], i;
	void *base = map(first, 4 * PAGE, PROT_READ);
	int64_t id;

	task = event_open(&attr, 0, -1, -1, 0);
	attr.sample_type |= PERF_SAMPLE_CPU;
	second = event_open(&attr, -1, 0, -1, 0);
	if (base == MAP_FAILED || ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first))
		return -1;
	fds[0] = task;
	fds[1] = first;
	fds[2] = second;
	for (i = 0; i < 3; i++) {
		if (ioctl(fds[i], PERF_EVENT_IOC_ID, &ids[i]))
			return -1;
	}
	id = unclaim(first, PERF_PERSISTENT_PARTIAL, 0, "three");
	if (id < 0 || unclaim(second, PERF_PERSISTENT_PARTIAL, id, "") != id ||
	    unclaim(task, 0, id, "") != id)
		return -1;
	munmap(base, 5 * PAGE);
	for (i = 0; i < 3; i++)
		close(fds[i]);
	return id;
}

/* It tells of all events at once what they say themselves. */
TEST_F(session, info_and_list)
{
	struct perf_persistent_session_info inf;
	struct perf_persistent_entry entries[4];
	struct perf_persistent_info event;
	uint64_t ids[3];
	int64_t id = make_three(ids);
	int i, fd;

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	ASSERT_LE(0, self->fd);

	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(sizeof(inf), inf.size);
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(id, inf.id);
	EXPECT_EQ(0, inf.owner_uid);
	EXPECT_EQ(3, inf.nr_events);
	EXPECT_EQ(2, inf.nr_buffers);
	EXPECT_EQ(0, inf.freeze_reason);
	EXPECT_EQ(5 * PAGE + DEFAULT_SIZE + PAGE, inf.memory);
	EXPECT_EQ(0, inf.lost);
	EXPECT_EQ(0, inf.freeze_begin | inf.freeze_time | inf.freeze_mono | inf.freeze_real);
	EXPECT_STREQ("three", inf.name);

	memset(entries, 0xa5, sizeof(entries));
	ASSERT_EQ(3, session_list(self->fd, entries, 4));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(i ? 0 : -1, entries[i].cpu);
		EXPECT_EQ(i == 2, entries[i].index);
		EXPECT_EQ(0, entries[i].buffer_index);
		EXPECT_EQ(0, entries[i].state);
		EXPECT_EQ(ids[i], entries[i].event_id);
		EXPECT_EQ(i ? 4 * PAGE : DEFAULT_SIZE, entries[i].data_size);

		fd = reopen(id, entries[i].cpu, entries[i].index);
		ASSERT_EQ(0, info(fd, &event));
		EXPECT_EQ(event.event_id, entries[i].event_id);
		EXPECT_EQ(event.buffer_index, entries[i].buffer_index);
		EXPECT_EQ(event.data_size, entries[i].data_size);
		EXPECT_EQ(comm_attr().sample_type | (i == 2 ? PERF_SAMPLE_CPU : 0),
			  entries[i].sample_type);
		close(fd);
	}
	EXPECT_EQ(0xa5, *(unsigned char *)&entries[3]);

	/* The event that the buffer was named after is claimed. */
	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	ASSERT_EQ(2, session_list(self->fd, entries, 4));
	EXPECT_EQ(1, entries[1].index);
	EXPECT_EQ(1, entries[1].buffer_index);
	EXPECT_EQ(0, session_end(self->fd));
}

/* A list longer than its room is cut, and its length told. Structs have sizes. */
TEST_F(session, sizes)
{
	struct perf_persistent_list list = { .size = sizeof(list) };
	struct {
		struct perf_persistent_session_info	inf;
		uint64_t				more;
	} u = {};
	struct {
		struct perf_persistent_entry	entry;
		uint64_t			more;
	} large[3];
	struct perf_persistent_entry one[2];
	struct {
		char	bytes[PERF_PERSISTENT_ENTRY_SIZE_VER0];
	} old[4];
	uint64_t ids[3];
	int64_t id = make_three(ids);

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	ASSERT_LE(0, self->fd);

	list.entry_size = sizeof(*one);
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	EXPECT_EQ(3, list.nr);

	memset(one, 0xa5, sizeof(one));
	list.nr = 1;
	list.entries = (uintptr_t)one;
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	EXPECT_EQ(3, list.nr);
	EXPECT_EQ(ids[0], one[0].event_id);
	EXPECT_EQ(0xa5, *(unsigned char *)&one[1]);

	memset(large, 0xa5, sizeof(large));
	list.nr = 3;
	list.entry_size = sizeof(*large);
	list.entries = (uintptr_t)large;
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	EXPECT_EQ(ids[2], large[2].entry.event_id);
	EXPECT_EQ(0, large[0].more | large[1].more | large[2].more);

	/* A caller that does not know sample_type */
	memset(old, 0xa5, sizeof(old));
	list.entry_size = sizeof(*old);
	list.entries = (uintptr_t)old;
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	EXPECT_EQ(0, memcmp(&large[0].entry, &old[0], sizeof(*old)));
	EXPECT_EQ(0, memcmp(&large[2].entry, &old[2], sizeof(*old)));
	EXPECT_EQ(0xa5, *(unsigned char *)&old[3]);

	list.entry_size = PERF_PERSISTENT_ENTRY_SIZE_VER0 - 8;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	list.entry_size = sizeof(*one);
	list.__reserved = 1;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	list.__reserved = 0;
	list.size = PERF_PERSISTENT_LIST_SIZE_VER0 - 8;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	list.size = sizeof(list);
	list.entries = 8;
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, &list));
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_SESSION_LIST, NULL));

	u.inf.size = sizeof(u);
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_SESSION_INFO, &u));
	EXPECT_EQ(3, u.inf.nr_events);
	u.more = 1;
	u.inf.size = sizeof(u);
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_SESSION_INFO, &u));
	u.inf.size = PERF_PERSISTENT_SESSION_INFO_SIZE_VER0 - 8;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_SESSION_INFO, &u));
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_SESSION_INFO, NULL));

	EXPECT_EQ(0, session_end(self->fd));
}

/* It is neither mapped nor read; what it does not know is no ioctl of it. */
TEST_F(session, is_no_event)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_PERSISTENT,
		.config1	= PERF_PERSISTENT_SESSION,
	};
	int64_t id = make("none");
	int building = open_comm(0);
	uint64_t val;

	attr.config = id;
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, 0, -1, 0));
	EXPECT_REFUSED(EINVAL, event_open(&attr, 0, -1, -1, 0));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, -1, building, 0));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, -1, -1, PERF_FLAG_FD_OUTPUT));
	EXPECT_REFUSED(ENOENT, open_session(id + 1));
	EXPECT_REFUSED(ENOENT, open_session(unclaim(building, PERF_PERSISTENT_PARTIAL, 0, "")));
	close(building);

	self->fd = open_session(id);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(self->fd, F_GETFD));
	EXPECT_REFUSED(EINVAL, read(self->fd, &val, sizeof(val)));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->fd, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_REFUSED(ENOTTY, ioctl(self->fd, PERF_EVENT_IOC_CLAIM));
	EXPECT_REFUSED(ENOTTY, ioctl(self->fd, PERF_EVENT_IOC_ENABLE));
	EXPECT_REFUSED(ENOTTY, ioctl(self->fd, _IO('%', 38)));
	/* Nor is an event a session. */
	building = reopen(id, 0, 0);
	EXPECT_EQ(-1, session_end(building));
	close(building);
	EXPECT_EQ(0, session_state(self->fd));
	EXPECT_EQ(0, session_end(self->fd));
}

/* One call ends it: the name is free, readers are told, and the file says so. */
TEST_F(session, ends_at_once)
{
	struct perf_persistent_session_info inf;
	struct perf_persistent_entry entry;
	uint64_t ids[3];
	int64_t id = make_three(ids);
	int reader, other, again;
	void *base;

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	other = open_session(id);
	reader = reopen(id, 0, 0);
	base = map(reader, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(0, polled(other));

	ASSERT_EQ(0, session_end(self->fd));
	EXPECT_EQ(-1, listed_id("three"));
	EXPECT_REFUSED(ENOENT, open_session(id));
	EXPECT_REFUSED(ENOENT, reopen(id, 0, 1));
	EXPECT_EQ(POLLIN | POLLHUP, polled(other));
	EXPECT_EQ(POLLHUP, polled(reader) & POLLHUP);
	EXPECT_REFUSED(ENOENT, session_end(other));
	EXPECT_REFUSED(ENOENT, session_freeze(other));
	EXPECT_REFUSED(ENOENT, session_thaw(other));
	ASSERT_EQ(0, session_info(other, &inf));
	EXPECT_EQ(PERF_PERSISTENT_STATE_ENDED, inf.state);
	EXPECT_EQ(0, inf.nr_events);
	EXPECT_EQ(id, inf.id);
	EXPECT_STREQ("three", inf.name);
	EXPECT_EQ(0, session_list(other, &entry, 1));

	/* Readers read on, and the name is free meanwhile. */
	leave_record("reads on");
	EXPECT_TRUE(recorded(base, "reads on"));
	again = open_comm(0);
	EXPECT_LT(id, unclaim(again, 0, 0, "three"));
	EXPECT_LT(id, claim(again));
	close(again);
	munmap(base, 5 * PAGE);
	close(reader);
	close(other);
}

/* poll() tells each file once of each change. */
TEST_F(session, poll)
{
	struct perf_persistent_session_info inf;
	int64_t id = make("poll");
	int other, fd;

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	other = open_session(id);
	EXPECT_EQ(0, polled(self->fd));

	fd = open_comm(1);
	ASSERT_EQ(id, unclaim(fd, 0, id, ""));
	EXPECT_EQ(POLLIN, polled(self->fd));
	EXPECT_EQ(0, polled(self->fd));
	EXPECT_EQ(POLLIN, polled(other));

	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_EQ(POLLIN, polled(self->fd));
	EXPECT_EQ(0, polled(self->fd));

	ASSERT_EQ(0, session_freeze(other));
	EXPECT_EQ(POLLIN, polled(self->fd));
	ASSERT_EQ(0, session_thaw(other));
	EXPECT_EQ(POLLIN, polled(self->fd));
	EXPECT_EQ(0, polled(self->fd));

	ASSERT_EQ(0, session_end(other));
	EXPECT_EQ(POLLIN | POLLHUP, polled(self->fd));
	EXPECT_EQ(POLLHUP, polled(self->fd));
	/* The reason of the last freeze stays. */
	ASSERT_EQ(0, session_info(self->fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_STATE_ENDED, inf.state);
	EXPECT_EQ(PERF_PERSISTENT_FREEZE_IOCTL, inf.freeze_reason);
	close(other);
}

/* What changed before a file is added to an epoll set wakes it; nothing twice. */
TEST_F(session, epoll)
{
	struct epoll_event event = { .events = EPOLLIN }, got = {};
	int ep = epoll_create1(EPOLL_CLOEXEC), other;
	int64_t id = make("epoll");

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	other = open_session(id);
	ASSERT_EQ(0, session_freeze(other));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, self->fd, &event));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));
	EXPECT_EQ(EPOLLIN, got.events);
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));

	ASSERT_EQ(0, session_thaw(other));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 60000));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));

	/* Armed again for each, when there is something already. */
	event.events = EPOLLIN | EPOLLONESHOT;
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, self->fd, &event));
	ASSERT_EQ(0, session_freeze(other));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 60000));
	ASSERT_EQ(0, session_thaw(other));
	EXPECT_EQ(0, epoll_wait(ep, &got, 1, 0));
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_MOD, self->fd, &event));
	EXPECT_EQ(1, epoll_wait(ep, &got, 1, 1000));

	EXPECT_EQ(0, session_end(other));
	close(other);
	close(ep);
}

/* What the file keeps is the session alone: its memory is returned when it ends. */
TEST_F(session, holds_no_buffer)
{
	long mlocked = perf_mlock();
	int64_t id = make("light");

	ASSERT_LT(0, id);
	self->fd = open_session(id);
	EXPECT_LT(mlocked, perf_mlock());
	EXPECT_EQ(0, session_end(self->fd));
	EXPECT_EQ(mlocked, perf_mlock());
}

/* Is refused to stop or end what it may look at? */
static int only_looks(int64_t id, int fd)
{
	struct perf_persistent_entry entry;
	int ret, reader;

	if (session_state(fd) == UINT32_MAX || session_list(fd, &entry, 1) != 1)
		return 91;
	ret = refused(EPERM, session_freeze(fd)) ?: refused(EPERM, session_thaw(fd)) ?:
	      refused(EPERM, session_end(fd));
	if (ret)
		return ret;
	reader = reopen(id, 0, 0);
	return reader < 0 ? 0 : refused(EPERM, claim(reader));
}

static int is_kept_out(int64_t id, int unused)
{
	return refused(EACCES, open_session(id));
}

static int does_all(int64_t id, int fd)
{
	return session_freeze(fd) || session_thaw(fd) || session_end(fd) ? errno : 0;
}

static int makes_and_does_all(int64_t unused, int fd)
{
	int64_t id = make("mine");

	if (id < 0)
		return errno;
	return does_all(id, open_session(id));
}

static int as_one_with(int cap, int (*fn)(int64_t id, int fd), int64_t id, int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (become_with(cap))
			_exit(99);
		_exit(fn(id, fd >= 0 ? fd : open_session(id)));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* The owner and CAP_SYS_ADMIN may end it; CAP_PERFMON may look; others may neither. */
TEST_F(session, privileges)
{
	int64_t id = make("roots");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, -1));
	write_long(MAX_SESSIONS, 16);
	self->fd = open_session(id);

	EXPECT_EQ(0, as_nobody(is_kept_out, id, -1));
	/* A file that was passed on gives no more. */
	EXPECT_EQ(0, as_nobody(only_looks, id, self->fd));
	EXPECT_EQ(0, as_one_with(CAP_PERFMON, only_looks, id, -1));
	EXPECT_EQ(0, session_state(self->fd));
	EXPECT_EQ(0, as_nobody(makes_and_does_all, 0, -1));
	EXPECT_EQ(0, as_one_with(CAP_SYS_ADMIN, does_all, id, self->fd));
	EXPECT_EQ(PERF_PERSISTENT_STATE_ENDED, session_state(self->fd));
}

static int opens_own(int64_t unused, int unused_fd)
{
	struct perf_event_attr attr = comm_attr();
	int fd;

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	fd = event_open(&attr, 0, -1, -1, 0);
	return fd < 0 ? errno : 0;
}

static int makes_one(int64_t unused, int unused_fd)
{
	return make("levels") > 0 ? 0 : errno;
}

static int looks_and_rules(int64_t id, int unused)
{
	struct perf_persistent_entry entry;
	int fd = open_session(id);

	if (fd < 0)
		return errno;
	if (session_list(fd, &entry, 1) != 1)
		return 91;
	return session_freeze(fd) || session_thaw(fd) ? errno : 0;
}

static int ends_one(int64_t id, int unused)
{
	return session_end(open_session(id)) ? errno : 0;
}

/*
 * Of the levels of kernel.perf_event_paranoid, none keeps an owner from his session, but the one
 * of some distributions at which perf_event_open() takes CAP_SYS_ADMIN, whatever is opened.
 */
TEST_F(session, levels)
{
	char name[32];
	int level, fd, closed;
	int64_t id;

	snprintf(name, sizeof(name), "u%d.levels", NOBODY);
	write_long(MAX_SESSIONS, 16);
	for (level = -1; level <= 3; level++) {
		ASSERT_EQ(0, write_long(PARANOID, -1));
		ASSERT_EQ(0, as_nobody(makes_one, 0, -1));
		id = listed_id(name);
		ASSERT_LT(0, id);
		ASSERT_EQ(0, write_long(PARANOID, level));
		/* An event of the caller alone, of user space, which level 2 allows. */
		closed = level == 3 ? as_nobody(opens_own, 0, -1) : 0;
		EXPECT_TRUE(!closed || closed == EACCES);
		EXPECT_EQ(closed, as_nobody(looks_and_rules, id, -1)) TH_LOG("level %d", level);
		if (!closed) {
			EXPECT_EQ(0, as_nobody(ends_one, id, -1)) TH_LOG("level %d", level);
			continue;
		}
		fd = open_session(id);
		EXPECT_EQ(0, session_end(fd));
		close(fd);
	}
}

/* Which process has a session open is told by /proc. */
TEST_F(session, fdinfo)
{
	char path[64], line[128];
	int64_t id = make("fdinfo");
	bool told = false;
	long got;
	FILE *f;

	self->fd = open_session(id);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	f = fopen(path, "r");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f))
		told |= sscanf(line, "perf_persistent_session: %ld", &got) == 1 && got == id;
	fclose(f);
	EXPECT_TRUE(told);
	EXPECT_EQ(0, session_end(self->fd));
}

#define MANY	500

/* All of many events are listed, and ended by one call. */
TEST_F(session, many)
{
	static struct perf_persistent_entry entries[MANY];
	static int fds[MANY];
	int first = open_comm(0), i;
	void *base = map(first, PAGE, PROT_READ);
	int64_t id;

	ASSERT_NE(MAP_FAILED, base);
	fds[0] = first;
	for (i = 1; i < MANY; i++) {
		fds[i] = open_comm(0);
		ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, first));
	}
	id = unclaim(first, PERF_PERSISTENT_PARTIAL, 0, "many");
	ASSERT_LT(0, id);
	for (i = 1; i < MANY; i++)
		ASSERT_EQ(id, unclaim(fds[i], PERF_PERSISTENT_PARTIAL, id, ""));
	/* It is not shown before it is complete. */
	EXPECT_EQ(-1, listed_id("many"));
	ASSERT_EQ(id, unclaim(first, 0, id, ""));
	EXPECT_EQ(id, listed_id("many"));
	munmap(base, 2 * PAGE);
	/* Its files are closed when the session is complete. */
	for (i = 0; i < MANY; i++)
		close(fds[i]);

	self->fd = open_session(id);
	ASSERT_EQ(MANY, session_list(self->fd, entries, MANY));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(i, entries[i].index);
		EXPECT_EQ(0, entries[i].buffer_index);
	}
	EXPECT_EQ(0, session_end(self->fd));
}

TEST_HARNESS_MAIN
