// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events outlive the process that opened them, can be read by name by
 * any number of others and disturbed by none, and leave nothing behind.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

FIXTURE(persistent)
{
	struct balance	before;
	/* An event on CPU 0, not given away yet. */
	int		fd;
};

FIXTURE_SETUP(persistent)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->before = take_balance();
	ASSERT_LE(0, self->before.mlocked);
	self->fd = open_comm(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(persistent)
{
	close(self->fd);
	EXPECT_BALANCE();
}

/* Made, listed, opened by what the listing says, read, claimed, gone. */
TEST_F(persistent, life)
{
	struct perf_persistent_info inf;
	uint64_t event_id, id2;
	int64_t id;
	void *base;
	int fd;

	id = unclaim(self->fd, 0, 0, "life");
	ASSERT_LT(0, id);
	EXPECT_EQ(id, listed_id("life"));
	EXPECT_EQ(id, strtol(sysfs("sessions/%s/id", "life"), NULL, 10));
	EXPECT_STREQ("0", sysfs("sessions/%s/cpus", "life"));
	EXPECT_STREQ("1", sysfs("sessions/%s/nr_events", "life"));
	EXPECT_STREQ("0", sysfs("sessions/%s/owner", "life"));
	EXPECT_STREQ("0", sysfs("sessions/%s/state", "life"));
	EXPECT_EQ(DEFAULT_SIZE + PAGE, strtoul(sysfs("sessions/%s/memory", "life"), NULL, 10));

	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ID, &event_id));
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ID, &id2));
	EXPECT_EQ(event_id, id2);

	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(id, inf.id);
	EXPECT_EQ(0, inf.index);
	EXPECT_EQ(1, inf.nr_events);
	EXPECT_EQ(0, inf.cpu);
	EXPECT_EQ(0, inf.owner_uid);
	EXPECT_EQ(DEFAULT_SIZE, inf.data_size);
	EXPECT_EQ(event_id, inf.event_id);
	EXPECT_EQ(sizeof(struct perf_event_attr), inf.attr_size);
	EXPECT_EQ(0, inf.buffer_index);
	EXPECT_STREQ("life", inf.name);

	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	leave_record("first");
	leave_record("second");
	EXPECT_TRUE(recorded(base, "first"));
	EXPECT_TRUE(is_newer(base, "second", "first"));
	munmap(base, DEFAULT_SIZE + PAGE);

	EXPECT_EQ(id, claim(fd));
	EXPECT_STREQ("", sysfs("events/%s", "life"));
	EXPECT_STREQ("", sysfs("sessions/%s/id", "life"));
	EXPECT_EQ(-1, reopen(id, 0, 0));
	EXPECT_EQ(ENOENT, errno);
	close(fd);
}

/* Without a name it gets one of its id; ids are never used again. */
TEST_F(persistent, nameless)
{
	char name[64];
	int64_t id, id2;
	int fd;

	id = ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, NULL);
	ASSERT_LT(0, id);
	snprintf(name, sizeof(name), "event%d", (int)id);
	EXPECT_EQ(id, strtol(sysfs("sessions/%s/id", name), NULL, 10));
	EXPECT_EQ(id, claim(self->fd));

	fd = open_comm(0);
	id2 = unclaim(fd, 0, 0, "");
	EXPECT_LT(id, id2);
	EXPECT_EQ(id2, claim(fd));
	close(fd);
}

/* The event keeps the buffer that its creator mapped, whatever its size. */
TEST_F(persistent, keeps_buffer)
{
	struct perf_persistent_info inf;
	size_t size = 4 * PAGE;
	int64_t id;
	void *base, *mine;
	int fd;

	mine = map(self->fd, size, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	leave_record("before");
	id = unclaim(self->fd, 0, 0, "kept");
	ASSERT_LT(0, id);
	fd = reopen(id, 0, 0);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(size, inf.data_size);
	base = map(fd, size, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_TRUE(recorded(base, "before"));
	leave_record("after");
	EXPECT_TRUE(recorded(base, "after"));
	EXPECT_TRUE(recorded(mine, "after"));

	munmap(base, size + PAGE);
	munmap(mine, size + PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A buffer whose mapping is gone is gone: then the event gets one of its own. */
TEST_F(persistent, mapping_gone_before)
{
	struct perf_persistent_info inf;
	int64_t id;
	void *mine;

	mine = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	munmap(mine, 5 * PAGE);
	id = unclaim(self->fd, 0, 0, "unmapped");
	ASSERT_LT(0, id);
	ASSERT_EQ(0, info(self->fd, &inf));
	EXPECT_EQ(DEFAULT_SIZE, inf.data_size);
	EXPECT_EQ(id, claim(self->fd));
}

/* Creator's mapping and file may go in any order, before readers come or after. */
TEST_F(persistent, creator_closes)
{
	size_t size = 4 * PAGE;
	int order;

	for (order = 0; order < 8; order++) {
		bool unmap_first = order & 1, close_first = order & 2, open_first = order & 4;
		int creator = open_comm(0), fd = -1;
		void *base, *mine;
		int64_t id;

		ASSERT_LE(0, creator);
		mine = map(creator, size, PROT_READ);
		ASSERT_NE(MAP_FAILED, mine);
		id = unclaim(creator, 0, 0, "orders");
		ASSERT_LT(0, id);
		if (open_first)
			fd = reopen(id, 0, 0);
		if (unmap_first)
			munmap(mine, size + PAGE);
		if (close_first)
			close(creator);
		if (!open_first)
			fd = reopen(id, 0, 0);
		ASSERT_LE(0, fd);
		base = map(fd, size, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		if (!close_first)
			close(creator);
		if (!unmap_first)
			munmap(mine, size + PAGE);
		leave_record("alive");
		EXPECT_TRUE(recorded(base, "alive"));
		leave_record("other");
		EXPECT_EQ(id, claim(fd));
		close(fd);
		/* A mapping is a user as well. */
		leave_record("claimed");
		EXPECT_TRUE(recorded(base, "claimed"));
		munmap(base, size + PAGE);
	}
}

/* What a creator makes that is killed. */
struct creation {
	unsigned int	flags;
	const char	*name;
};

static int64_t create_mapped(void *arg)
{
	struct creation *creation = arg;
	int fd = open_comm(0);

	map(fd, 4 * PAGE, PROT_READ);
	return unclaim(fd, creation->flags, 0, creation->name);
}

static int64_t killed_creator(unsigned int flags, const char *name, int sig)
{
	struct creation creation = { flags, name };

	return made_by_killed(create_mapped, &creation, sig);
}

/* The event goes on recording when its creator was killed. */
TEST_F(persistent, creator_killed)
{
	int64_t id = killed_creator(0, "survivor", SIGKILL);
	int fd;

	ASSERT_LT(0, id);
	leave_record("later");
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, state_of(fd));
	EXPECT_TRUE(holds_record(fd, 4 * PAGE, "later"));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A creator killed before the session was complete leaves nothing behind. */
TEST_F(persistent, killed_half_way)
{
	int64_t id = killed_creator(PERF_PERSISTENT_PARTIAL, "halfway", SIGKILL);

	ASSERT_LT(0, id);
	EXPECT_EQ(-1, reopen(id, 0, 0));
	EXPECT_EQ(ENOENT, errno);
	/* The name is free. */
	ASSERT_LT(0, unclaim(self->fd, 0, 0, "halfway"));
	EXPECT_LT(0, claim(self->fd));
}

/* A session that is being built is neither listed nor opened; a new event completes it. */
TEST_F(persistent, partial)
{
	int64_t id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "partial");
	int second = open_comm(0), third = open_comm(0), fd;

	ASSERT_LT(0, id);
	EXPECT_STREQ("", sysfs("events/%s", "partial"));
	EXPECT_STREQ("", sysfs("sessions/%s/id", "partial"));
	EXPECT_EQ(-1, reopen(id, 0, 0));
	EXPECT_EQ(ENOENT, errno);

	EXPECT_EQ(id, unclaim(second, PERF_PERSISTENT_PARTIAL, id, "partial"));
	EXPECT_EQ(-1, reopen(id, 0, 0));
	EXPECT_EQ(id, unclaim(third, 0, id, ""));
	EXPECT_STREQ("3", sysfs("sessions/%s/nr_events", "partial"));

	/* What is complete stays so. */
	fd = open_comm(0);
	EXPECT_EQ(-1, unclaim(fd, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_EQ(EINVAL, errno);
	close(fd);

	close(second);
	fd = reopen(id, 0, 1);
	EXPECT_LE(0, fd);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(id, claim(third));
	close(third);
}

/* A member completes its session; nothing else can be done to a member. */
TEST_F(persistent, completed_by_member)
{
	int64_t id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "member");

	ASSERT_LT(0, id);
	EXPECT_EQ(-1, unclaim(self->fd, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, unclaim(self->fd, 0, 0, "other"));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, unclaim(self->fd, 0, id, "other"));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(id, unclaim(self->fd, 0, id, "member"));
	EXPECT_EQ(id, strtol(sysfs("sessions/%s/id", "member"), NULL, 10));
	EXPECT_EQ(-1, unclaim(self->fd, 0, id, ""));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(-1, unclaim(self->fd, 0, 0, ""));
	EXPECT_EQ(EBUSY, errno);
}

/* Closing any one fd ends a session that is being built, for all its events. */
TEST_F(persistent, partial_ends_whole)
{
	int64_t id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "whole");
	int second = open_comm(0), third = open_comm(0);

	ASSERT_LT(0, id);
	EXPECT_EQ(id, unclaim(second, PERF_PERSISTENT_PARTIAL, id, ""));
	close(second);
	EXPECT_EQ(-1, unclaim(third, 0, id, ""));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-1, claim(self->fd));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_LT(0, unclaim(third, 0, 0, "whole"));
	EXPECT_LT(0, claim(third));
	close(third);
}

/* Readers in different processes see the same, each as if it were alone. */
TEST_F(persistent, two_readers)
{
	int64_t id = unclaim(self->fd, 0, 0, "readers");
	int ready[2], go[2], status;
	char c = 0;
	pid_t pid;
	int i;

	ASSERT_LT(0, id);
	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(go));
	for (i = 0; i < 2; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (pid)
			continue;

		struct pollfd p = { .fd = reopen(id, 0, 0), .events = POLLIN };
		void *base = map(p.fd, DEFAULT_SIZE, PROT_READ);

		if (base == MAP_FAILED)
			_exit(1);
		if (write(ready[1], &c, 1) != 1 || read(go[0], &c, 1) != 1)
			_exit(2);
		/* Each is told, though both were woken by the same record. */
		if (poll(&p, 1, 60000) != 1 || p.revents != POLLIN)
			_exit(3);
		if (!recorded(base, "for both"))
			_exit(4);
		/* The kernel may have left a record or two of its own. */
		for (i = 0; i < 100 && poll(&p, 1, 0); i++)
			;
		_exit(i < 100 ? 0 : 5);
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(1, read(ready[0], &c, 1));
	leave_record("for both");
	ASSERT_EQ(2, write(go[1], "go", 2));
	for (i = 0; i < 2; i++) {
		wait(&status);
		EXPECT_EQ(0, status);
	}
	EXPECT_EQ(id, claim(self->fd));
	for (i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/* What one reader is told is not taken from the other. */
TEST_F(persistent, poll_is_per_reader)
{
	int64_t id = unclaim(self->fd, 0, 0, "told");
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int i;

	ASSERT_LT(0, id);
	p[0].fd = reopen(id, 0, 0);
	p[1].fd = reopen(id, 0, 0);
	for (i = 0; i < 100; i++) {
		leave_record("told");
		EXPECT_EQ(1, poll(&p[i % 2], 1, 60000));
		EXPECT_EQ(1, poll(&p[!(i % 2)], 1, 0));
	}
	EXPECT_EQ(id, claim(p[0].fd));
	close(p[0].fd);
	close(p[1].fd);
}

static void *claim_soon(void *fd)
{
	usleep(100000);
	claim(*(int *)fd);
	return NULL;
}

/* A reader that sleeps in poll() is told that the event was claimed. */
TEST_F(persistent, poll_tells_claim)
{
	int64_t id = unclaim(self->fd, 0, 0, "hup");
	struct pollfd p = { .events = 0 };
	pthread_t thread;

	ASSERT_LT(0, id);
	p.fd = reopen(id, 0, 0);
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, claim_soon, &self->fd));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	pthread_join(thread, NULL);
	close(p.fd);
}

static void *leave_record_soon(void *unused)
{
	usleep(100000);
	leave_record("soon");
	return NULL;
}

/* A reader that sleeps in poll() is woken. */
TEST_F(persistent, poll_wakes)
{
	int64_t id = unclaim(self->fd, 0, 0, "poll");
	struct pollfd p = { .events = POLLIN };
	pthread_t thread;

	ASSERT_LT(0, id);
	p.fd = reopen(id, 0, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, leave_record_soon, NULL));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLIN, p.revents);
	pthread_join(thread, NULL);
	EXPECT_EQ(id, claim(p.fd));
	close(p.fd);
}

/* Nobody but the kernel writes to the buffer. */
TEST_F(persistent, read_only)
{
	int64_t id = unclaim(self->fd, 0, 0, "readonly");
	int fd = reopen(id, 0, 0), mem, status;
	size_t all = DEFAULT_SIZE + PAGE;
	char byte = 1;
	char *base;
	pid_t pid;

	ASSERT_LE(0, fd);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(EACCES, errno);

	base = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)base);
	EXPECT_EQ(-1, mprotect(base, all, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(base, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);

	/* Nor the way a debugger writes. */
	mem = open("/proc/self/mem", O_RDWR);
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &byte, 1, (off_t)(uintptr_t)base));
	EXPECT_EQ(-1, pwrite(mem, &byte, 1, (off_t)(uintptr_t)(base + PAGE)));
	close(mem);

	pid = fork();
	if (!pid) {
		__atomic_store_n(base, 1, __ATOMIC_RELAXED);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);

	munmap(base, all);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* The whole buffer, or its header page alone; from the beginning; shared. */
TEST_F(persistent, mapping_sizes)
{
	int64_t id = unclaim(self->fd, 0, 0, "sizes");
	size_t all = DEFAULT_SIZE + PAGE;
	struct perf_event_mmap_page *page;
	int fd = reopen(id, 0, 0);

	ASSERT_LE(0, fd);
	page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)page);
	EXPECT_EQ(DEFAULT_SIZE, page->data_size);
	munmap(page, PAGE);

	EXPECT_EQ(MAP_FAILED, mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, all - PAGE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, all + PAGE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, DEFAULT_SIZE, PROT_READ, MAP_SHARED, fd, PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, all, PROT_READ, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A mapping can be forked, split, cut and moved, and is never charged. */
TEST_F(persistent, mapping_moves)
{
	int64_t id = unclaim(self->fd, 0, 0, "moves");
	size_t all = DEFAULT_SIZE + PAGE;
	int fd = reopen(id, 0, 0), status;
	char *base, *to;
	pid_t pid;

	ASSERT_LE(0, fd);
	base = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)base);
	close(fd);
	close(self->fd);
	EXPECT_EQ(self->before.pinned, vm_pin());

	pid = fork();
	if (!pid) {
		leave_record("by child");
		_exit(recorded(base, "by child") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);

	/* Grow: no. A hole in the middle, the rest moves. */
	EXPECT_EQ(MAP_FAILED, mremap(base, all, all + PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(0, munmap(base + 8 * PAGE, PAGE));
	to = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT_EQ(to, mremap(base, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(DEFAULT_SIZE, ((struct perf_event_mmap_page *)to)->data_size);
	EXPECT_EQ(0, munmap(to, 8 * PAGE));

	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	/* The rest of the mapping is the last to hold the event. */
	EXPECT_EQ(self->before.mlocked + (long)(all / PAGE), perf_mlock());
	munmap(base, all);
	self->fd = -1;
}

/* A reader can look and claim, and nothing else. */
TEST_F(persistent, forbidden_ioctls)
{
	int64_t id = unclaim(self->fd, 0, 0, "ioctls");
	int fd = reopen(id, 0, 0), other = open_comm(0);
	struct perf_persistent_arg arg = { .size = sizeof(arg) };
	struct perf_persistent_info inf;
	uint64_t period = 1;
	struct {
		unsigned long cmd, arg;
	} cmds[] = {
		{ PERF_EVENT_IOC_ENABLE, 0 }, { PERF_EVENT_IOC_DISABLE, 0 },
		{ PERF_EVENT_IOC_REFRESH, 1 }, { PERF_EVENT_IOC_RESET, 0 },
		{ PERF_EVENT_IOC_PERIOD, (unsigned long)&period },
		{ PERF_EVENT_IOC_SET_OUTPUT, other }, { PERF_EVENT_IOC_SET_OUTPUT, -1 },
		{ PERF_EVENT_IOC_SET_FILTER, (unsigned long)"pid != 0" },
		{ PERF_EVENT_IOC_SET_BPF, 0 }, { PERF_EVENT_IOC_PAUSE_OUTPUT, 1 },
		{ PERF_EVENT_IOC_QUERY_BPF, 0 }, { PERF_EVENT_IOC_MODIFY_ATTRIBUTES, 0 },
		{ PERF_EVENT_IOC_UNCLAIM, (unsigned long)&arg },
	};
	/* No ioctls of events at all. */
	unsigned long unknown[] = { _IO('$', 99), _IO('$', 12), _IO('T', 1) };
	size_t i;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		EXPECT_EQ(-1, ioctl(fd, cmds[i].cmd, cmds[i].arg));
		EXPECT_EQ(EPERM, errno) TH_LOG("cmd %#lx", cmds[i].cmd);
	}
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		EXPECT_EQ(-1, ioctl(fd, unknown[i], 0));
		EXPECT_EQ(ENOTTY, errno) TH_LOG("cmd %#lx", unknown[i]);
	}
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.state);
	close(other);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* The attr does not tell of a filter. */
TEST_F(persistent, info_of_filter)
{
	struct perf_persistent_info inf;
	int fd = open_raw();

	if (fd < 0)
		SKIP(return, "no tracefs");
	ASSERT_LT(0, unclaim(fd, 0, 0, "filtered"));
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.flags);
	EXPECT_EQ(0, inf.__reserved);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "prev_pid > 1"));
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_INFO_FILTER, inf.flags);
	EXPECT_LT(0, claim(fd));
	close(fd);
}

/* read() gives the count, and the live reader's ioctl works. */
TEST_F(persistent, reads)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.write_backward = 1, .read_format = PERF_FORMAT_ID,
	};
	struct perf_rb_reserved reserved = {};
	uint64_t val[2], event_id;
	int fd, creator;
	int64_t id;

	creator = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, creator);
	id = unclaim(creator, 0, 0, "reads");
	ASSERT_LT(0, id);
	fd = reopen(id, 0, 0);
	ASSERT_EQ(sizeof(val), read(fd, val, sizeof(val)));
	EXPECT_LT(0, val[0]);
	ASSERT_EQ(0, ioctl(creator, PERF_EVENT_IOC_ID, &event_id));
	EXPECT_EQ(event_id, val[1]);
	EXPECT_EQ(-1, read(fd, val, 8));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(-1, write(fd, val, 8));

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, &reserved));
	EXPECT_EQ(DEFAULT_SIZE, reserved.data_size);
	EXPECT_EQ(0, reserved.behind);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	close(creator);
}

/* What others would feel is refused to the creator, too; the rest works. */
TEST_F(persistent, creator_after)
{
	int other = open_comm(0), redirected = open_comm(0), group;
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_info inf;
	int64_t id;
	void *mine;

	mine = map(self->fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(redirected, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	/* It was paused, and could not be resumed any more: UNCLAIM resumes it. */
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "creator");
	ASSERT_LT(0, id);
	leave_record("resumed");
	EXPECT_TRUE(recorded(mine, "resumed"));

	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(redirected, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, other));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, redirected));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, ioctl(redirected, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, event_open(&attr, -1, 0, self->fd,
				 PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP));
	EXPECT_EQ(EBUSY, errno);
	group = event_open(&attr, -1, 0, self->fd, 0);
	EXPECT_EQ(-1, group);
	EXPECT_EQ(EBUSY, errno);

	/* Readers could not tell what comes from an event that is not of the session. */
	EXPECT_EQ(-1, unclaim(self->fd, 0, id, ""));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, unclaim(other, 0, id, ""));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, reopen(id, 0, 0));
	close(redirected);
	EXPECT_EQ(id, unclaim(self->fd, 0, id, ""));

	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, info(self->fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, inf.state);
	EXPECT_STREQ("4", sysfs("sessions/%s/state", "creator"));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	/* It is not on its owner's list any more. */
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE));
	ASSERT_EQ(0, info(self->fd, &inf));
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));

	EXPECT_EQ(id, claim(self->fd));
	munmap(mine, 2 * PAGE);
	close(other);
}

/*
 * Nor is a session made at once with such a buffer. A complete one is joined event by
 * event: readers are let in when all are members.
 */
TEST_F(persistent, foreign_writer)
{
	int redirected = open_comm(0), other = open_comm(0), fd;
	int64_t id;
	void *mine;

	mine = map(self->fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(redirected, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	EXPECT_EQ(-1, unclaim(self->fd, 0, 0, "foreign"));
	EXPECT_EQ(EINVAL, errno);
	/* It was not touched: it is still paused, and can be resumed and paused. */
	leave_record("paused");
	EXPECT_FALSE(recorded(mine, "paused"));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
	leave_record("resumed");
	EXPECT_TRUE(recorded(mine, "resumed"));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1));
	id = unclaim(other, 0, 0, "foreign");
	ASSERT_LT(0, id);
	EXPECT_EQ(id, unclaim(self->fd, 0, id, ""));
	EXPECT_EQ(-1, reopen(id, 0, 1));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(id, unclaim(redirected, 0, id, ""));
	fd = reopen(id, 0, 1);
	EXPECT_LE(0, fd);
	EXPECT_EQ(id, claim(redirected));
	close(redirected);
	/* Claimed as it is, it was let in as a member. */
	EXPECT_EQ(id, claim(fd));
	EXPECT_EQ(id, claim(other));
	close(fd);
	munmap(mine, 2 * PAGE);
	close(other);
}

/* A consumer is nobody's leader, nor output. */
TEST_F(persistent, consumer_as_leader)
{
	int64_t id = unclaim(self->fd, 0, 0, "leader");
	struct perf_event_attr attr = comm_attr();
	int fd = reopen(id, 0, 0), other = open_comm(0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, event_open(&attr, -1, 0, fd, 0));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, event_open(&attr, -1, 0, fd, PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(id, claim(fd));
	close(other);
	close(fd);
}

static sigjmp_buf on_sigbus;

static void sigbus(int sig)
{
	siglongjmp(on_sigbus, 1);
}

static bool can_write(void *addr)
{
	struct sigaction act = { .sa_handler = sigbus }, old;
	bool ret = false;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(on_sigbus, 1)) {
		__atomic_store_n((char *)addr, 0, __ATOMIC_RELAXED);
		ret = true;
	}
	sigaction(SIGBUS, &old, NULL);
	return ret;
}

/* The creator's own mapping cannot be turned into one that writes to the header page. */
TEST_F(persistent, creator_header_page)
{
	size_t all = 5 * PAGE;
	char *mine, *second;
	int64_t id;

	mine = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)mine);
	id = unclaim(self->fd, 0, 0, "header");
	ASSERT_LT(0, id);
	EXPECT_FALSE(!mprotect(mine, all, PROT_READ | PROT_WRITE) && can_write(mine + 100));
	/* From now on mmap() says so at once, and mprotect() cannot get around it. */
	EXPECT_EQ(MAP_FAILED, map(self->fd, 4 * PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	second = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)second);
	EXPECT_REFUSED(EACCES, mprotect(second, all, PROT_READ | PROT_WRITE));
	munmap(second, all);
	munmap(mine, all);
	EXPECT_EQ(id, claim(self->fd));
}

/*
 * Nor can a buffer join of which that has been done before. It is refused when it is
 * charged already, for it is larger than the limit: that is undone.
 */
TEST_F(persistent, creator_wrote_header_page)
{
	size_t size = pages_beyond_limit() * PAGE;
	char *mine;

	mine = map(self->fd, size, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)mine);
	ASSERT_EQ(0, mprotect(mine, size + PAGE, PROT_READ | PROT_WRITE));
	ASSERT_TRUE(can_write(mine + 100));
	EXPECT_EQ(-1, unclaim(self->fd, 0, 0, "written"));
	EXPECT_EQ(EINVAL, errno);
	munmap(mine, size + PAGE);
}

/* An event redirected into a member's buffer brings that buffer along. */
TEST_F(persistent, redirected)
{
	int second = open_comm(0), fd, fd2;
	struct perf_persistent_info inf;
	void *mine, *base, *base2;
	size_t size = 4 * PAGE;
	int64_t id;

	mine = map(self->fd, size, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	/* The owner of the buffer is no member: nothing would hold the buffer. */
	EXPECT_EQ(-1, unclaim(second, 0, 0, "redirected"));
	EXPECT_EQ(EINVAL, errno);

	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "redirected");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(second, 0, id, ""));
	EXPECT_EQ(size + PAGE, strtoul(sysfs("sessions/%s/memory", "redirected"), NULL, 10));
	munmap(mine, size + PAGE);

	/* The buffer, and a page for the event that brought none. */
	EXPECT_EQ(self->before.mlocked + 6, perf_mlock());

	fd = reopen(id, 0, 0);
	fd2 = reopen(id, 0, 1);
	ASSERT_EQ(0, info(fd2, &inf));
	EXPECT_EQ(1, inf.index);
	EXPECT_EQ(2, inf.nr_events);
	EXPECT_EQ(0, inf.buffer_index);
	base = map(fd, size, PROT_READ);
	base2 = map(fd2, size, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_NE(MAP_FAILED, base2);
	leave_record("twice");
	EXPECT_EQ(2, nr_records(base, "twice"));
	EXPECT_EQ(0, memcmp((char *)base + PAGE, (char *)base2 + PAGE, size));

	/* The buffer's first owner goes, the other keeps it. */
	EXPECT_EQ(id, claim(fd));
	close(self->fd);
	munmap(base, size + PAGE);
	close(fd);
	leave_record("once");
	EXPECT_EQ(1, nr_records(base2, "once"));
	EXPECT_EQ(2, nr_records(base2, "twice"));
	ASSERT_EQ(0, info(fd2, &inf));
	EXPECT_EQ(1, inf.buffer_index);
	EXPECT_EQ(id, claim(fd2));
	close(fd2);
	close(second);
	munmap(base2, size + PAGE);
	self->fd = -1;
}

/* Nobody brings the buffer of a session into another one. */
TEST_F(persistent, buffer_of_other_session)
{
	int second = open_comm(0);
	int64_t id;
	void *mine;

	mine = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "one");
	ASSERT_LT(0, id);
	EXPECT_EQ(-1, unclaim(second, 0, 0, "two"));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(id, claim(self->fd));
	munmap(mine, 5 * PAGE);
	close(second);
}

/* Records of several events must tell whose they are and when they were written. */
TEST_F(persistent, several_need_identity)
{
	struct {
		uint64_t sample_type;
		int sample_id_all;
	} cases[] = {
		{ PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, 0 },
		{ PERF_SAMPLE_IDENTIFIER, 1 },
		{ PERF_SAMPLE_TIME, 1 },
	};
	int64_t id = unclaim(self->fd, 0, 0, "several");
	size_t i;
	int fd;

	ASSERT_LT(0, id);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = comm_attr();
		int64_t alone;

		attr.sample_type = cases[i].sample_type;
		attr.sample_id_all = cases[i].sample_id_all;
		fd = event_open(&attr, -1, 0, -1, 0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-1, unclaim(fd, 0, id, ""));
		EXPECT_EQ(EINVAL, errno);

		/* Alone it may; then others may not join it. */
		alone = unclaim(fd, 0, 0, "alone");
		EXPECT_LT(0, alone);
		{
			int good = open_comm(0);

			EXPECT_EQ(-1, unclaim(good, 0, alone, ""));
			EXPECT_EQ(EINVAL, errno);
			close(good);
		}
		EXPECT_EQ(alone, claim(fd));
		close(fd);
	}
	EXPECT_EQ(id, claim(self->fd));
}

/* Of two who claim an event one wins; a reader reads on until it lets go. */
TEST_F(persistent, claimed_twice)
{
	int64_t id = unclaim(self->fd, 0, 0, "twice");
	int fd = reopen(id, 0, 0);
	void *base;

	ASSERT_LE(0, fd);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(-1, claim(fd));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(-1, claim(self->fd));
	EXPECT_EQ(EBUSY, errno);
	close(self->fd);
	self->fd = -1;
	leave_record("read on");
	EXPECT_TRUE(recorded(base, "read on"));
	EXPECT_LT(self->before.mlocked, perf_mlock());
	close(fd);
	EXPECT_LT(self->before.mlocked, perf_mlock());
	munmap(base, DEFAULT_SIZE + PAGE);
}

/* A session lives until its last event is claimed; its indices stay as they are. */
TEST_F(persistent, claimed_one_by_one)
{
	int second = open_comm(0), third = open_comm(0), fd;
	int64_t id = unclaim(self->fd, 0, 0, "onebyone");
	struct perf_persistent_info inf;

	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(second, 0, id, ""));
	ASSERT_EQ(id, unclaim(third, 0, id, "onebyone"));
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(-1, reopen(id, 0, 0));
	EXPECT_EQ(ENOENT, errno);
	fd = reopen(id, 0, 2);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(2, inf.index);
	EXPECT_EQ(3, inf.nr_events);
	EXPECT_STREQ("2", sysfs("sessions/%s/nr_events", "onebyone"));
	EXPECT_EQ(id, claim(fd));

	/* A number is not given again: who has its event still open would be misled. */
	{
		int fourth = open_comm(0);

		ASSERT_EQ(id, unclaim(fourth, 0, id, ""));
		ASSERT_EQ(0, info(fourth, &inf));
		EXPECT_EQ(3, inf.index);
		EXPECT_EQ(4, inf.nr_events);
		EXPECT_EQ(id, claim(fourth));
		close(fourth);
	}
	EXPECT_EQ(id, claim(second));
	EXPECT_STREQ("", sysfs("sessions/%s/id", "onebyone"));
	close(fd);
	close(second);
	close(third);
}

/* What goes beyond the user's limit moves from the dying process to the user. */
TEST_F(persistent, memory)
{
	long limit = mlock_limit(), pages = pages_beyond_limit(), before, charged;
	int64_t id;
	void *mine;
	int fd;

	mine = map(self->fd, pages * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	before = vm_pin();
	EXPECT_LT(self->before.pinned, before);
	id = unclaim(self->fd, 0, 0, "memory");
	ASSERT_LT(0, id);
	EXPECT_EQ(self->before.pinned, vm_pin());
	EXPECT_EQ((pages + 1) * PAGE, strtoul(sysfs("sessions/%s/memory", "memory"), NULL, 10));

	/* The limit is reached, and stays so without the process's mapping. */
	charged = perf_mlock();
	EXPECT_EQ(limit, charged);
	munmap(mine, (pages + 1) * PAGE);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(limit, perf_mlock());
	EXPECT_EQ(self->before.pinned, vm_pin());

	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A buffer mapped by another process than the one that gives the event away. */
TEST_F(persistent, memory_of_other_mm)
{
	long pages = pages_beyond_limit();
	int64_t id;
	void *mine;
	pid_t pid;
	int status, fd;

	mine = map(self->fd, pages * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	pid = fork();
	if (!pid) {
		long pinned = vm_pin();

		if (unclaim(self->fd, 0, 0, "other-mm") < 0)
			_exit(1);
		/* Nothing was charged to the child, so nothing is taken off. */
		_exit(pinned == vm_pin() ? 0 : 2);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
	EXPECT_EQ(self->before.pinned, vm_pin());
	id = strtol(sysfs("sessions/%s/id", "other-mm"), NULL, 10);
	ASSERT_LT(0, id);
	munmap(mine, (pages + 1) * PAGE);
	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A base bug that this stands on: who unmaps last is not always who was charged. */
TEST_F(persistent, unmapped_by_other_mm)
{
	long pages = pages_beyond_limit();
	int done[2], status;
	void *mine;
	char c;
	pid_t pid;

	ASSERT_EQ(0, pipe(done));
	mine = map(self->fd, pages * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	pid = fork();
	if (!pid) {
		long pinned = vm_pin();
		void *base = map(self->fd, pages * PAGE, PROT_READ);

		close(done[1]);
		if (base == MAP_FAILED || read(done[0], &c, 1))
			_exit(1);
		munmap(base, (pages + 1) * PAGE);
		_exit(pinned == vm_pin() ? 0 : 2);
	}
	usleep(100000);
	munmap(mine, (pages + 1) * PAGE);
	close(done[1]);
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, status);
	close(done[0]);
}

/* exec() of the creator ends nothing. */
TEST_F(persistent, creator_execs)
{
	struct perf_persistent_info inf;
	int64_t id;
	int status, fd;
	pid_t pid = fork();

	if (!pid) {
		int creator = open_comm(0);

		fcntl(creator, F_SETFD, 0);
		map(creator, 4 * PAGE, PROT_READ);
		if (unclaim(creator, 0, 0, "exec") < 0)
			_exit(1);
		execlp("true", "true", NULL);
		_exit(2);
	}
	waitpid(pid, &status, 0);
	ASSERT_EQ(0, status);
	id = strtol(sysfs("sessions/%s/id", "exec"), NULL, 10);
	fd = reopen(id, 0, 0);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(4 * PAGE, inf.data_size);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* An offline CPU's buffer can be opened and read; its state says so; it can be claimed. */
TEST_F(persistent, offline)
{
	const char *online = "/sys/devices/system/cpu/cpu1/online";
	struct perf_persistent_info inf;
	int creator, fd, again;
	uint64_t count;
	int64_t id;
	void *base;

	if (access(online, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");

	creator = open_comm(1);
	ASSERT_LE(0, creator);
	id = unclaim(creator, 0, 0, "offline");
	ASSERT_LT(0, id);
	pin_to_cpu(1);
	leave_record("last");
	pin_to_cpu(0);
	fd = reopen(id, 1, 0);
	ASSERT_LE(0, fd);
	close(creator);

	ASSERT_EQ(0, write_long(online, 0));
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, inf.state);
	EXPECT_STREQ("1", sysfs("sessions/%s/state", "offline"));
	EXPECT_EQ(8, read(fd, &count, 8));
	again = reopen(id, 1, 0);
	EXPECT_LE(0, again);
	base = map(again, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_TRUE(recorded(base, "last"));
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(again));
	close(again);
	close(fd);
	ASSERT_EQ(0, write_long(online, 1));
}

/* Events of several CPUs, numbered on each. */
TEST_F(persistent, cpus)
{
	struct perf_persistent_info inf;
	int second, third, fd;
	int64_t id;

	second = open_comm(1);
	if (second < 0)
		SKIP(return, "one CPU only");
	third = open_comm(1);
	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "cpus");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(second, PERF_PERSISTENT_PARTIAL, id, ""));
	ASSERT_EQ(id, unclaim(third, 0, id, ""));
	EXPECT_STREQ("0-1", sysfs("sessions/%s/cpus", "cpus"));
	fd = reopen(id, 1, 1);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(1, inf.cpu);
	EXPECT_EQ(1, inf.index);
	EXPECT_EQ(2, inf.nr_events);
	EXPECT_EQ(1, inf.buffer_index);
	EXPECT_EQ(-1, reopen(id, 0, 1));
	EXPECT_EQ(ENOENT, errno);
	close(fd);
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(id, claim(second));
	EXPECT_EQ(id, claim(third));
	close(second);
	close(third);
}

TEST_HARNESS_MAIN
