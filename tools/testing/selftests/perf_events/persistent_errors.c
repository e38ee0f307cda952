// SPDX-License-Identifier: GPL-2.0
/*
 * What must not be done with persistent events is refused, each with its errno, and
 * a refusal changes nothing.
 */
#define _GNU_SOURCE

#include <stddef.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

#ifndef PERF_ATTR_SIZE_VER8
#define PERF_ATTR_SIZE_VER8	136
#endif

FIXTURE(errors)
{
	struct balance	before;
	/* An event on CPU 0, not given away yet. */
	int		fd;
	struct limits	limits;
};

FIXTURE_SETUP(errors)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 16));
	self->fd = open_comm(0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(errors)
{
	restore_limits(&self->limits);
	close(self->fd);
	EXPECT_BALANCE();
}

TEST_F(errors, names)
{
	static const char * const bad[] = {
		"1", "-a", "a b", "a/b", "a.b", "a,b", "a=b", "\xc3\xa4", ".", "..", "a\n",
		"a:b", "a@b", "event1", "event007",
	};
	static const char * const good[] = {
		"a", "_", "a-b_c9", "event", "events", "event1a", "r", "rx", "periodic", "L2x",
		/* Words of perf's event parser: the tool refuses them, not the kernel. */
		"period", "id", "cycles", "LLC-loads", "r1a8",
		"a23456789012345678901234567890123456789012345678901234567890123",
	};
	int64_t id, other;
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-1, unclaim(self->fd, 0, 0, bad[i])) TH_LOG("%s", bad[i]);
		EXPECT_EQ(EINVAL, errno) TH_LOG("%s", bad[i]);
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		fd = open_comm(0);
		EXPECT_LT(0, unclaim(fd, 0, 0, good[i])) TH_LOG("%s", good[i]);
		EXPECT_LT(0, claim(fd));
		close(fd);
	}

	fd = open_comm(0);
	id = unclaim(fd, 0, 0, "taken");
	EXPECT_REFUSED(EEXIST, unclaim(self->fd, 0, 0, "taken"));
	EXPECT_REFUSED(EINVAL, unclaim(self->fd, 0, id, "wrong"));
	EXPECT_EQ(id, claim(fd));
	close(fd);

	/* While it is built a name is taken as well. */
	fd = open_comm(0);
	ASSERT_LT(0, unclaim(fd, PERF_PERSISTENT_PARTIAL, 0, "built"));
	EXPECT_REFUSED(EEXIST, unclaim(self->fd, 0, 0, "built"));
	close(fd);
	other = unclaim(self->fd, 0, 0, "built");
	EXPECT_EQ(other, claim(self->fd));
}

TEST_F(errors, arg)
{
	struct {
		struct perf_persistent_arg	arg;
		uint64_t			tail;
	} u = { .arg = { .size = sizeof(u.arg) } };
	struct perf_persistent_arg *ro;
	struct perf_persistent_arg big[128] = { { .size = sizeof(big) } };

	/* Shrunk, and grown by something that we do not know. */
	u.arg.size = PERF_PERSISTENT_ARG_SIZE_VER0 - 8;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	u.arg.size = 0;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	u.arg.size = sizeof(u);
	u.tail = 1;
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, big));

	/* Of the first version: the label is not part of it. */
	u.arg.size = PERF_PERSISTENT_ARG_SIZE_VER0;
	u.arg.label[0] = 'x';
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	EXPECT_LT(0, claim(self->fd));
	close(self->fd);
	self->fd = open_comm(0);
	u.arg.id = 0;
	u.arg.label[0] = 0;

	u.arg.size = sizeof(u.arg);
	u.arg.flags = 2;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	u.arg.flags = 0;
	memset(u.arg.name, 'a', sizeof(u.arg.name));
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	memset(u.arg.name, 0, sizeof(u.arg.name));

	u.arg.id = INT_MAX;
	EXPECT_REFUSED(ENOENT, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	u.arg.id = 1ULL << 32;
	EXPECT_REFUSED(ENOENT, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, &u));
	u.arg.id = 0;

	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, 8));

	/* Without an argument errors are the same. */
	{
		struct perf_event_attr attr = comm_attr();
		int fd, id;

		attr.write_backward = 0;
		fd = event_open(&attr, -1, 0, -1, 0);
		EXPECT_REFUSED(EINVAL, ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL));
		close(fd);
		fd = open_comm(0);
		id = ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL);
		EXPECT_LT(0, id);
		EXPECT_REFUSED(EBUSY, ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL));
		EXPECT_EQ(id, claim(fd));
		close(fd);
	}

	/* Grown by zeroes, and with another size encoded in the command. */
	u.arg.size = sizeof(u);
	u.tail = 0;
	EXPECT_EQ(0, ioctl(self->fd, _IOWR('$', 32, u), &u));
	EXPECT_LT(0, u.arg.id);
	EXPECT_EQ(u.arg.id, claim(self->fd));
	close(self->fd);

	/* A session of which nobody got to know the id does not stay. */
	self->fd = open_comm(0);
	ro = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)ro);
	ro->size = sizeof(*ro);
	memcpy(ro->name, "unknown", sizeof("unknown"));
	mprotect(ro, PAGE, PROT_READ);
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_UNCLAIM, ro));
	EXPECT_STREQ("", sysfs("sessions/%s/id", "unknown"));
	munmap(ro, PAGE);
}

TEST_F(errors, info)
{
	struct {
		struct perf_persistent_info	info;
		uint64_t			tail;
	} u = { .info = { .size = sizeof(u.info) } };
	struct perf_event_attr want = comm_attr(), attr, two[2];
	int64_t id;

	/* Of an event that belongs to no session. */
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_REFUSED(EINVAL, claim(self->fd));

	id = unclaim(self->fd, 0, 0, "info");
	ASSERT_LT(0, id);
	u.info.size = PERF_PERSISTENT_INFO_SIZE_VER0 - 8;
	EXPECT_REFUSED(EINVAL, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	u.info.size = sizeof(u);
	u.tail = 1;
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	/* It tells what it knows. */
	EXPECT_EQ(sizeof(u.info), u.info.size);
	u.info.size = sizeof(u);
	u.tail = 0;
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_EQ(id, u.info.id);
	EXPECT_EQ(sizeof(u), u.info.size);
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, NULL));

	/* The attr: how large, not large enough, nowhere, and as it was given. */
	u.info.attr_ptr = (uintptr_t)&attr;
	u.info.attr_size = 8;
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_LE(PERF_ATTR_SIZE_VER8, u.info.attr_size);
	u.info.attr_ptr = 8;
	EXPECT_REFUSED(EFAULT, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	u.info.attr_ptr = (uintptr_t)&attr;
	ASSERT_LE(u.info.attr_size, sizeof(attr));
	memset(&attr, 0xff, sizeof(attr));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	want.sample_max_stack = attr.sample_max_stack;
	EXPECT_EQ(0, memcmp(&want, &attr, u.info.attr_size));

	/* A program that knows a smaller attr: the rest is zero. Room for more is left alone. */
	memset(two, 0x55, sizeof(two));
	u.info.attr_ptr = (uintptr_t)two;
	u.info.attr_size = PERF_ATTR_SIZE_VER7;
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_EQ(sizeof(attr), u.info.attr_size);
	EXPECT_EQ(PERF_ATTR_SIZE_VER7, two[0].size);
	two[0].size = attr.size;
	EXPECT_EQ(0, memcmp(&attr, &two[0], PERF_ATTR_SIZE_VER7));
	EXPECT_EQ(0x55, ((char *)two)[PERF_ATTR_SIZE_VER7]);
	/* No program knows less than this. */
	memset(two, 0x55, sizeof(two));
	u.info.attr_size = PERF_ATTR_SIZE_VER0 - 1;
	EXPECT_REFUSED(E2BIG, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_EQ(sizeof(attr), u.info.attr_size);
	EXPECT_EQ(0x55555555, two[0].type);
	u.info.attr_size = sizeof(two);
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERSISTENT_INFO, &u));
	EXPECT_EQ(sizeof(attr), u.info.attr_size);
	EXPECT_EQ(0, memcmp(&attr, &two[0], sizeof(attr)));
	EXPECT_EQ(0x55555555, two[1].type);
	EXPECT_EQ(id, claim(self->fd));
}

/* What does not fit is cut off only if it says nothing. */
TEST_F(errors, attr_cut)
{
	struct perf_event_attr attr = comm_attr(), got = { .size = 1 };
	struct perf_persistent_info inf = {
		.size		= sizeof(inf),
		.attr_ptr	= (uintptr_t)&got,
		.attr_size	= PERF_ATTR_SIZE_VER0,
	};
	int fd;

	/* Beyond an attr of the first version. */
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	fd = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_LT(0, unclaim(fd, 0, 0, "cut"));
	EXPECT_REFUSED(E2BIG, ioctl(fd, PERF_EVENT_IOC_PERSISTENT_INFO, &inf));
	EXPECT_EQ(1, got.size);
	EXPECT_LT(0, claim(fd));
	close(fd);
}

TEST_F(errors, opening)
{
	int64_t id = unclaim(self->fd, 0, 0, "opening");
	struct perf_event_attr good, attr;
	size_t i;
	int fd;

	ASSERT_LT(0, id);
	EXPECT_REFUSED(ENOENT, reopen(id + 1, 0, 0));
	EXPECT_REFUSED(ENOENT, reopen(0, 0, 0));
	EXPECT_REFUSED(ENOENT, reopen(id + (1ULL << 32), 0, 0));
	EXPECT_REFUSED(ENOENT, reopen(id, 0, 1));
	EXPECT_REFUSED(ENOENT, reopen(id, 0, UINT_MAX));
	EXPECT_REFUSED(ENOENT, reopen(id, -1, 0));
	EXPECT_REFUSED(ENOENT, reopen(id, 1, 0));
	EXPECT_REFUSED(ENOENT, reopen(id, 1 << 20, 0));
	EXPECT_REFUSED(ENOENT, reopen(id, -2, 0));

	good = (struct perf_event_attr) {
		.type = PERF_TYPE_PERSISTENT, .size = sizeof(good), .config = id,
	};
	/* Any byte but those of type, size, config, and config1. */
	for (i = 0; i < sizeof(good); i++) {
		if (i < offsetof(struct perf_event_attr, sample_period) ||
		    (i >= offsetof(struct perf_event_attr, config1) &&
		     i < offsetof(struct perf_event_attr, config2)))
			continue;
		attr = good;
		((unsigned char *)&attr)[i] = 1;
		EXPECT_EQ(-1, event_open(&attr, -1, 0, -1, 0)) TH_LOG("byte %zu", i);
		EXPECT_EQ(EINVAL, errno) TH_LOG("byte %zu", i);
	}
	attr = good;
	EXPECT_REFUSED(EINVAL, event_open(&attr, 0, 0, -1, 0));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, 0, self->fd, 0));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, 0, -1, PERF_FLAG_FD_NO_GROUP));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, 0, -1, PERF_FLAG_FD_OUTPUT));
	EXPECT_REFUSED(EINVAL, event_open(&attr, -1, 0, -1, PERF_FLAG_PID_CGROUP));

	/* The oldest size of the attr will do. */
	attr.size = PERF_ATTR_SIZE_VER0;
	fd = event_open(&attr, -1, 0, -1, 0);
	EXPECT_LE(0, fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* Events that cannot go on alone, or that nobody could read. */
TEST_F(errors, events)
{
	struct {
		struct perf_event_attr	attr;
		int			pid, cpu;
		int			err;
		const char		*what;
	} cases[] = {
		{ comm_attr(), -1, 0, EINVAL, "forward" },
		{ comm_attr(), -1, 0, EINVAL, "inherit" },
		{ comm_attr(), -1, 0, EINVAL, "enable_on_exec" },
		{ comm_attr(), -1, 0, EINVAL, "remove_on_exec" },
		{ comm_attr(), 0, -1, EINVAL, "inherit, on any CPU" },
	};
	struct perf_event_attr attr = comm_attr();
	size_t i;
	int fd;

	cases[0].attr.write_backward = 0;
	cases[1].attr.inherit = 1;
	cases[2].attr.enable_on_exec = 1;
	cases[3].attr.remove_on_exec = 1;
	cases[4].attr.inherit = 1;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fd = event_open(&cases[i].attr, cases[i].pid, cases[i].cpu, -1, 0);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-1, unclaim(fd, 0, 0, "events"));
		EXPECT_EQ(cases[i].err, errno) TH_LOG("%s", cases[i].what);
		close(fd);
	}

	/* Leader and member of a group. */
	fd = event_open(&attr, -1, 0, self->fd, 0);
	ASSERT_LE(0, fd);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "events"));
	EXPECT_REFUSED(EINVAL, unclaim(self->fd, 0, 0, "events"));
	close(fd);

	/* The session of which it would have been the first is not there. */
	EXPECT_STREQ("", sysfs("events/%s", "events"));
}

TEST_F(errors, buffers)
{
	void *base;

	base = map(self->fd, 4 * PAGE, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_REFUSED(EINVAL, unclaim(self->fd, 0, 0, "buffers"));
	munmap(base, 5 * PAGE);

	/* A header page and no data. */
	base = map(self->fd, 0, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_REFUSED(EINVAL, unclaim(self->fd, 0, 0, "buffers"));
	munmap(base, PAGE);

	EXPECT_LT(0, unclaim(self->fd, 0, 0, "buffers"));
	EXPECT_LT(0, claim(self->fd));
}

/* 6 belongs to persistent events, so the first number free for a PMU is 7. */
TEST_F(errors, pmu_numbers)
{
	const char *dir = "/sys/bus/event_source/devices";
	char path[PATH_MAX];
	long first = LONG_MAX;
	struct dirent *d;
	DIR *devices = opendir(dir);

	ASSERT_NE(NULL, devices);
	while ((d = readdir(devices))) {
		long type;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/type", dir, d->d_name);
		type = read_long(path);
		if (!strcmp(d->d_name, "persistent")) {
			EXPECT_EQ(PERF_TYPE_PERSISTENT, type);
			continue;
		}
		EXPECT_NE(PERF_TYPE_PERSISTENT, type) TH_LOG("%s", d->d_name);
		if (type > PERF_TYPE_PERSISTENT && type < first)
			first = type;
	}
	closedir(devices);
	/* cpu_clock and task_clock took it, and have no device. */
	EXPECT_LT(7, first);
}

static int nobody_looks(int64_t id, int fd)
{
	int mine = open_comm(0);
	int ret;

	if (mine < 0)
		return 96;
	ret = refused(EACCES, reopen(id, 0, 0)) ?:
	      refused(EACCES, reopen(id, 0, 1)) ?:
	      refused(EACCES, unclaim(mine, 0, id, ""));
	if (ret)
		return ret;
	/* A name of others is not in the way. */
	if (unclaim(mine, 0, 0, "roots") != listed_id(NOBODYS("roots")) || claim(mine) < 0)
		return 93;

	/* That it is there is no secret, what it does is. */
	if (listed_id("roots") != id || !*sysfs("sessions/%s/id", "roots"))
		return 95;
	if (*sysfs("sessions/%s/cpus", "roots") || *sysfs("sessions/%s/owner", "roots") ||
	    *sysfs("sessions/%s/state", "roots") || *sysfs("sessions/%s/memory", "roots") ||
	    *sysfs("sessions/%s/nr_events", "roots"))
		return 94;
	return 0;
}

/* Other users' sessions are neither opened nor joined, whatever they may monitor. */
TEST_F(errors, other_user)
{
	int64_t id = unclaim(self->fd, 0, 0, "roots");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, -1));
	EXPECT_EQ(0, as_nobody(nobody_looks, id, -1));
	EXPECT_EQ(id, claim(self->fd));
}

static int nobody_makes(int64_t id, int fd)
{
	struct perf_persistent_info inf;
	int mine, again;

	mine = open_comm(0);
	if (mine < 0)
		return 96;
	id = unclaim(mine, 0, 0, "nobodys");
	if (id < 0)
		return errno;
	again = reopen(id, 0, 0);
	if (again < 0)
		return errno;
	if (info(again, &inf) || inf.owner_uid != NOBODY)
		return 95;
	if (strcmp(sysfs("sessions/%s/cpus", NOBODYS("nobodys")), "0") ||
	    strtol(sysfs("sessions/%s/owner", NOBODYS("nobodys")), NULL, 10) != NOBODY)
		return 94;
	return 0;
}

static int nobody_cannot_open(int64_t id, int fd)
{
	return refused(EACCES, reopen(id, 0, 0));
}

static int nobody_claims(int64_t id, int fd)
{
	fd = reopen(id, 0, 0);
	return claim(fd) == id ? 0 : errno;
}

/* The owner's right to monitor is asked for again each time. */
TEST_F(errors, owner_is_checked_again)
{
	int64_t id;
	int fd;

	ASSERT_EQ(0, write_long(PARANOID, 0));
	EXPECT_EQ(0, as_nobody(nobody_makes, 0, -1));
	id = strtol(sysfs("sessions/%s/id", NOBODYS("nobodys")), NULL, 10);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, 1));
	EXPECT_EQ(0, as_nobody(nobody_cannot_open, id, -1));

	/* CAP_PERFMON opens what belongs to others. */
	fd = reopen(id, 0, 0);
	EXPECT_LE(0, fd);
	close(fd);
	ASSERT_EQ(0, write_long(PARANOID, 0));
	EXPECT_EQ(0, as_nobody(nobody_claims, id, -1));
	EXPECT_STREQ("", sysfs("sessions/%s/id", NOBODYS("nobodys")));
}

static int nobody_opens_kernel(int64_t id, int fd)
{
	return refused(EACCES, unclaim(fd, 0, 0, "passed"));
}

/* An fd that was passed on does not give what its receiver could not have opened. */
TEST_F(errors, passed_on)
{
	struct perf_event_attr attr = comm_attr();
	int fd;

	attr.exclude_kernel = 0;
	fd = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, write_long(PARANOID, 2));
	EXPECT_EQ(0, as_nobody(nobody_opens_kernel, 0, fd));
	close(fd);
}

static int nobody_takes_buffer(int64_t id, int fd)
{
	return refused(EPERM, unclaim(fd, 0, 0, "roots-memory"));
}

/* Nor is its memory charged to who did not ask for it. */
TEST_F(errors, buffer_of_other_user)
{
	void *base = map(self->fd, 4 * PAGE, PROT_READ);

	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, write_long(PARANOID, -1));
	EXPECT_EQ(0, as_nobody(nobody_takes_buffer, 0, self->fd));
	munmap(base, 5 * PAGE);
}

static int nobody_wants_memory(int64_t id, int fd)
{
	/* RLIMIT_MEMLOCK holds it. */
	long pages = pages_beyond_limit();
	int mine, i, ret;
	void *base;

	mine = open_comm(0);
	base = map(mine, pages * PAGE, PROT_READ);
	if (mine < 0 || base == MAP_FAILED)
		return 96;
	ret = refused(EPERM, unclaim(mine, 0, 0, "large"));
	if (ret)
		return ret;
	if (vm_pin() <= 0)
		return 95;
	munmap(base, (pages + 1) * PAGE);
	if (vm_pin())
		return 94;
	/* It can have what the limit holds, and no more. */
	for (i = 0; i < 16; i++) {
		mine = open_comm(0);
		if (unclaim(mine, PERF_PERSISTENT_PARTIAL, 0, "") < 0)
			return errno == EPERM && i ? 0 : errno;
	}
	return 93;
}

/* Beyond perf_event_mlock_kb it takes CAP_IPC_LOCK. */
TEST_F(errors, memory_limit)
{
	ASSERT_EQ(0, write_long(PARANOID, -1));
	EXPECT_EQ(0, as_nobody(nobody_wants_memory, 0, -1));
}

static int nobody_makes_two(int64_t id, int fd)
{
	int first = open_comm(0), second = open_comm(0), ret;

	id = unclaim(first, 0, 0, "first");
	if (id < 0)
		return errno;
	ret = refused(EDQUOT, unclaim(second, 0, 0, "second"));
	if (ret)
		return ret;
	/* Joining is not making. */
	if (unclaim(second, 0, id, "") != id)
		return 95;
	return claim(first) == id && claim(second) == id ? 0 : 94;
}

static int nobody_makes_none(int64_t id, int fd)
{
	return refused(EDQUOT, unclaim(open_comm(0), 0, 0, "none"));
}

TEST_F(errors, quota)
{
	ASSERT_EQ(0, write_long(PARANOID, 0));
	ASSERT_EQ(0, write_long(MLOCK_KB, 4096));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 1));
	EXPECT_EQ(0, as_nobody(nobody_makes_two, 0, -1));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 0));
	EXPECT_EQ(0, as_nobody(nobody_makes_none, 0, -1));
	/* root is not limited. */
	EXPECT_LT(0, unclaim(self->fd, 0, 0, "roots"));
	EXPECT_LT(0, claim(self->fd));
	EXPECT_EQ(-1, write_long(MAX_SESSIONS, -1));
}

static int nobody_makes_raw(int64_t id, int fd)
{
	return unclaim(fd, 0, 0, "raw") > 0 ? 0 : errno;
}

static int nobody_gets_no_raw(int64_t id, int fd)
{
	return refused(EPERM, reopen(id, 0, 0));
}

/* Raw data of a tracepoint is for who may have it, whoever recorded it. */
TEST_F(errors, tracepoint)
{
	int fd = open_raw(), again;
	int64_t id;

	if (fd < 0)
		SKIP(return, "no tracefs");

	ASSERT_EQ(0, write_long(PARANOID, -1));
	ASSERT_EQ(0, as_nobody(nobody_makes_raw, 0, fd));
	id = strtol(sysfs("sessions/%s/id", NOBODYS("raw")), NULL, 10);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, 0));
	EXPECT_EQ(0, as_nobody(nobody_gets_no_raw, id, -1));
	again = reopen(id, 0, 0);
	ASSERT_LE(0, again);
	EXPECT_EQ(id, claim(again));
	close(again);
	close(fd);
}

static int nobody_shares_raw(int64_t id, int fd)
{
	int mine = open_comm(0);
	void *base = map(mine, 4 * PAGE, PROT_READ);

	if (mine < 0 || base == MAP_FAILED || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, mine))
		return 96;
	id = unclaim(mine, PERF_PERSISTENT_PARTIAL, 0, "shared");
	if (id < 0 || unclaim(fd, 0, id, "") != id)
		return errno;
	return 0;
}

/* A user who may open one writer of a buffer, but not the other, gets neither. */
TEST_F(errors, shared_buffer)
{
	int fd = open_raw(), i;
	int64_t id;

	if (fd < 0)
		SKIP(return, "no tracefs");

	ASSERT_EQ(0, write_long(PARANOID, -1));
	ASSERT_EQ(0, as_nobody(nobody_shares_raw, 0, fd));
	id = strtol(sysfs("sessions/%s/id", NOBODYS("shared")), NULL, 10);
	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, 0));
	EXPECT_EQ(0, as_nobody(nobody_gets_no_raw, id, -1));
	for (i = 0; i < 2; i++) {
		int again = reopen(id, 0, i);

		EXPECT_EQ(id, claim(again));
		close(again);
	}
	close(fd);
}

/* All that somebody can do wrong with a session of others, and with ones of his own. */
static int does_everything_wrong(int64_t id, int fd)
{
	static const unsigned long commands[] = {
		PERF_EVENT_IOC_UNCLAIM, PERF_EVENT_IOC_CLAIM, PERF_EVENT_IOC_RESERVED_HEAD,
		PERF_EVENT_IOC_PERSISTENT_INFO, PERF_EVENT_IOC_PAUSE_OUTPUT,
		PERF_EVENT_IOC_SET_OUTPUT, PERF_EVENT_IOC_RESET, PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_PERIOD, _IOWR('$', 33, char[64]), _IOWR('$', 34, char[4096]),
	};
	char *args = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int mine = open_comm(0), other = open_comm(0), i;
	uint32_t size;
	size_t j;

	if (args == MAP_FAILED || mine < 0)
		return 96;
	for (i = 0; i < 64; i++) {
		memset(args, i * 37, PAGE);
		size = i < 32 ? i * 8 : 1u << (i % 32);
		memcpy(args, &size, sizeof(size));
		for (j = 0; j < ARRAY_SIZE(commands); j++) {
			/* Root's own files are not given away to claim. */
			if (commands[j] != PERF_EVENT_IOC_CLAIM &&
			    _IOC_NR(commands[j]) != _IOC_NR(PERF_EVENT_IOC_CLAIM))
				ioctl(fd, commands[j], i % 4 ? (void *)args : (void *)8);
			ioctl(mine, commands[j], i % 4 ? (void *)args : (void *)8);
		}
		/* Into it, over it, instead of it */
		ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd);
		unclaim(other, 0, id, "");
		unclaim(other, 0, 0, "bystander");
	}
	/* Which is another of the name. */
	if (claim(other) < 0)
		return 94;
	/* A full quota, which is not paid back before this ends. */
	for (i = 0; i < 64; i++) {
		if (unclaim(open_comm(0), PERF_PERSISTENT_PARTIAL, 0, "") < 0)
			return 0;
	}
	return 95;
}

/* A reader, with a mapping, that does not live long */
static void read_until_killed(int64_t id)
{
	for (;;) {
		struct perf_rb_reserved reserved = {};
		struct perf_persistent_info inf;
		int fd = reopen(id, 0, 0);
		void *base = map(fd, DEFAULT_SIZE, PROT_READ);

		ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, &reserved);
		info(fd, &inf);
		nth_record(base, 3);
		if (reserved.behind % 2)
			munmap(base, DEFAULT_SIZE + PAGE);
		close(fd);
	}
}

/* What others do, and how they die, costs nobody a record, and changes nothing. */
TEST_F_TIMEOUT(errors, bystander, 300)
{
	int64_t id = unclaim(self->fd, 0, 0, "bystander");
	struct perf_persistent_info before, after;
	int fd = reopen(id, 0, 0), i, n, status, nr = 24;
	void *base = map(fd, DEFAULT_SIZE, PROT_READ);
	unsigned int seed = 1;
	char name[24];
	pid_t pid;

	ASSERT_LT(0, id);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, info(fd, &before));
	ASSERT_EQ(0, write_long(PARANOID, -1));
	for (i = 0; i < nr; i++) {
		if (i % 8 == 0)
			EXPECT_EQ(0, as_nobody(does_everything_wrong, id, fd));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			read_until_killed(id);
		usleep(rand_r(&seed) % 20000);
		snprintf(name, sizeof(name), "record%d", i);
		leave_record(name);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
	/* All of them, one after the other, the newest first */
	for (n = 0, i = nr - 1; i >= 0; n++) {
		const char *got = nth_record(base, n);

		ASSERT_NE(NULL, got) TH_LOG("record%d is lost", i);
		snprintf(name, sizeof(name), "record%d", i);
		i -= !strcmp(got, name);
	}
	ASSERT_EQ(0, info(fd, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
	EXPECT_EQ(id, listed_id("bystander"));
	EXPECT_EQ(1, nr_entries(DEVICE "/sessions"));
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

TEST_HARNESS_MAIN
