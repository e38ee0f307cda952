// SPDX-License-Identifier: GPL-2.0
/*
 * Who is told of the life of a session: tracepoints, uevents, audit records; and why a
 * call is refused.
 */
#define _GNU_SOURCE

#include <linux/netlink.h>
#include <sys/socket.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"

#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/perf_persistent_test"

FIXTURE(notify)
{
	struct balance	before;
	int		uevents;
};

static int listen_to_uevents(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_KOBJECT_UEVENT);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

FIXTURE_SETUP(notify)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->before = take_balance();
	self->uevents = listen_to_uevents();
	rmdir(INSTANCE);
	if (mkdir(INSTANCE, 0700) || write_text(INSTANCE "/events/perf_persistent/enable", "1"))
		SKIP(return, "no tracefs with instances");
}

FIXTURE_TEARDOWN(notify)
{
	write_text(INSTANCE "/events/perf_persistent/enable", "0");
	rmdir(INSTANCE);
	close(self->uevents);
	EXPECT_BALANCE();
}

/* Does the trace hold the text, in a line of this event? */
static bool traced(const char *event, const char *text)
{
	char want[64], line[512];
	bool found = false;
	FILE *f = fopen(INSTANCE "/trace", "r");

	snprintf(want, sizeof(want), " perf_persistent_%s: ", event);
	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, want) && strstr(line, text);
	if (f)
		fclose(f);
	return found;
}

/* The value of a variable among strings one after the other, or NULL. */
static const char *value_of(const char *strings, size_t len, const char *key)
{
	const char *p;

	for (p = strings; p < strings + len; p += strlen(p) + 1) {
		if (!strncmp(p, key, strlen(key)))
			return p + strlen(key);
	}
	return NULL;
}

/* The next uevent of a session that this test made, as "STEP NAME ID"; "" if none. */
static const char *next_uevent(int fd)
{
	static char said[512];
	const char *name, *step, *id;
	char buf[4096];
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf) - 1, 0)) > 0) {
		buf[len] = '\0';
		name = value_of(buf, len, "SESSION=");
		step = value_of(buf, len, "SESSION_EVENT=");
		id = value_of(buf, len, "SESSION_ID=");
		if (!name || !step || !id)
			continue;
		snprintf(said, sizeof(said), "%s %s %s", step, name, id);
		return said;
	}
	return "";
}

/* Each step is traced, and those of a whole session are told to user space. */
TEST_F(notify, life)
{
	int first = open_comm(0), second = open_comm(0), fd;
	char id_text[32], want[64];
	int64_t id = unclaim(first, 0, 0, "told");

	ASSERT_LT(0, id);
	snprintf(id_text, sizeof(id_text), "id=%u ", (unsigned int)id);
	EXPECT_TRUE(traced("make", "name=told uid=0"));
	EXPECT_TRUE(traced("make", id_text));
	EXPECT_TRUE(traced("join", "cpu=0 index=0"));
	snprintf(want, sizeof(want), "make told %u", (unsigned int)id);
	EXPECT_STREQ(want, next_uevent(self->uevents));

	ASSERT_EQ(id, unclaim(second, 0, id, ""));
	EXPECT_TRUE(traced("join", "cpu=0 index=1"));
	EXPECT_STREQ("", next_uevent(self->uevents));

	fd = open_session(id);
	ASSERT_EQ(0, session_freeze(fd));
	EXPECT_TRUE(traced("freeze", "name=told reason=ioctl begin="));
	snprintf(want, sizeof(want), "freeze told %u", (unsigned int)id);
	EXPECT_STREQ(want, next_uevent(self->uevents));

	EXPECT_FALSE(traced("thaw", ""));
	ASSERT_EQ(0, session_thaw(fd));
	EXPECT_TRUE(traced("thaw", "name=told"));
	snprintf(want, sizeof(want), "thaw told %u", (unsigned int)id);
	EXPECT_STREQ(want, next_uevent(self->uevents));

	EXPECT_FALSE(traced("claim", ""));
	EXPECT_EQ(id, claim(second));
	EXPECT_TRUE(traced("claim", "cpu=0 index=1"));
	EXPECT_FALSE(traced("end", ""));
	EXPECT_EQ(0, session_end(fd));
	EXPECT_TRUE(traced("claim", "cpu=0 index=0"));
	EXPECT_TRUE(traced("end", "name=told uid=0"));
	snprintf(want, sizeof(want), "end told %u", (unsigned int)id);
	EXPECT_STREQ(want, next_uevent(self->uevents));
	EXPECT_FALSE(traced("refuse", ""));
	close(fd);
	close(first);
	close(second);
}

/* What never was complete is not announced. */
TEST_F(notify, given_up)
{
	int fd = open_comm(0);

	ASSERT_LT(0, unclaim(fd, PERF_PERSISTENT_PARTIAL, 0, "part"));
	close(fd);
	EXPECT_TRUE(traced("end", "name=part"));
	EXPECT_FALSE(traced("make", "name=part"));
	EXPECT_STREQ("", next_uevent(self->uevents));
}

/* Refusals that have the same number have reasons of their own. */
TEST_F(notify, refusals)
{
	struct perf_event_attr attr = comm_attr();
	int fd, leader, member;
	int64_t id;
	void *base;

	attr.write_backward = 0;
	fd = event_open(&attr, -1, 0, -1, 0);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "refused"));
	EXPECT_TRUE(traced("refuse", "err=-22 reason=the event is not write_backward"));
	close(fd);

	attr = comm_attr();
	attr.inherit = 1;
	fd = event_open(&attr, -1, 0, -1, 0);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "refused"));
	EXPECT_TRUE(traced("refuse", "reason=inherited, but not of a task on one CPU"));
	close(fd);

	leader = open_comm(0);
	attr = comm_attr();
	member = event_open(&attr, -1, 0, leader, 0);
	EXPECT_REFUSED(EINVAL, unclaim(leader, 0, 0, "refused"));
	EXPECT_TRUE(traced("refuse", "reason=the event is in a group"));
	close(member);
	close(leader);

	fd = open_comm(0);
	base = map(fd, PAGE, PROT_READ | PROT_WRITE);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "refused"));
	EXPECT_TRUE(traced("refuse", "reason=the buffer "));
	munmap(base, 2 * PAGE);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "no/name"));
	EXPECT_TRUE(traced("refuse", "reason=the name is malformed or reserved"));
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0x80, 0, "refused"));
	EXPECT_TRUE(traced("refuse", "reason=an unknown flag"));

	id = unclaim(fd, 0, 0, "whole");
	ASSERT_LT(0, id);
	member = open_comm(0);
	EXPECT_REFUSED(EINVAL, unclaim(member, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_TRUE(traced("refuse", "reason=the session is complete"));
	ASSERT_EQ(0, with_session(id, session_freeze));
	EXPECT_REFUSED(EBUSY, unclaim(member, 0, id, ""));
	EXPECT_TRUE(traced("refuse", "err=-16 reason=the session is frozen"));
	EXPECT_EQ(0, with_session(id, session_end));
	close(member);
	close(fd);
}

static void forget_trace(void)
{
	close(open(INSTANCE "/trace", O_WRONLY | O_TRUNC));
}

static bool gave_reason(int err, const char *reason)
{
	char want[128];

	snprintf(want, sizeof(want), "err=-%d reason=%s", err, reason);
	return traced("refuse", want);
}

/* The call fails with this errno, for this reason. */
#define EXPECT_REASON(_err, _reason, expr) do {				\
	const char *reason = (_reason);					\
	int err = (_err);						\
									\
	forget_trace();							\
	EXPECT_REFUSED(err, expr);					\
	EXPECT_TRUE(gave_reason(err, reason)) TH_LOG("%s: %s", #expr, reason);	\
} while (0)

/* The same for a function that an ordinary user calls: see as_nobody() and refused(). */
#define EXPECT_NOBODY_REASON(_err, _reason, fn, id, fd) do {		\
	const char *reason = (_reason);					\
									\
	forget_trace();							\
	EXPECT_EQ(0, as_nobody(fn, id, fd)) TH_LOG("%s", #fn);		\
	EXPECT_TRUE(gave_reason(_err, reason)) TH_LOG("%s: %s", #fn, reason);	\
} while (0)

static int unclaim_to(int fd, uint64_t id, const char *label)
{
	struct perf_persistent_arg arg = { .size = sizeof(arg), .id = id };

	snprintf(arg.label, sizeof(arg.label), "%s", label);
	return ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg);
}

/* A struct of this size, whose last byte is not 0 */
static int unclaim_sized(int fd, unsigned int size)
{
	union {
		struct perf_persistent_arg arg;
		char bytes[sizeof(struct perf_persistent_arg) + 8];
	} u = { .arg = { .size = size } };

	u.bytes[sizeof(u) - 1] = 1;
	return ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &u);
}

/* An event becomes a member, and a session is completed. */
TEST_F(notify, refusals_to_members)
{
	int first = open_comm(0), second = open_comm(0), foreign = open_comm(0);
	void *base = map(first, PAGE, PROT_READ);
	int64_t id;

	ASSERT_NE(MAP_FAILED, base);
	EXPECT_REASON(EINVAL, "the struct is too small", unclaim_sized(first, 8));
	EXPECT_REASON(E2BIG, "fields that this kernel does not know are not 0",
		      unclaim_sized(first, sizeof(struct perf_persistent_arg) + 8));
	EXPECT_REASON(EINVAL, "the event is no member", claim(first));

	ASSERT_EQ(0, ioctl(foreign, PERF_EVENT_IOC_SET_OUTPUT, first));
	id = unclaim(first, PERF_PERSISTENT_PARTIAL, 0, "part");
	ASSERT_LT(0, id);
	EXPECT_REASON(ENOENT, "the session does not run", open_session(id));
	EXPECT_REASON(EBUSY, "the event is a member already",
		      unclaim(first, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_REASON(EINVAL, "the session has another name", unclaim(first, 0, id, "other"));
	EXPECT_REASON(EINVAL, "the session is elsewhere", unclaim_to(first, id, "region"));
	EXPECT_REASON(EINVAL, "an event that is no member writes to a buffer",
		      unclaim(first, 0, id, ""));
	close(foreign);
	ASSERT_EQ(id, unclaim(first, 0, id, ""));

	EXPECT_REASON(EINVAL, "the session has another name", unclaim(second, 0, id, "other"));
	EXPECT_REASON(EINVAL, "the session is elsewhere", unclaim_to(second, id, "region"));
	EXPECT_REASON(EBUSY, "the event is a member already", unclaim(first, 0, id, ""));
	EXPECT_EQ(0, with_session(id, session_end));
	munmap(base, 2 * PAGE);
	close(second);
	close(first);
}

static int open_with(uint64_t id, uint64_t index, int pid, int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_PERSISTENT,
		.config		= id,
		.config1	= index,
		.sample_period	= period,
	};

	return event_open(&attr, pid, cpu, -1, 0);
}

static int list_sized(int fd, unsigned int entry_size, unsigned int reserved)
{
	struct perf_persistent_list list = {
		.size		= sizeof(list),
		.entry_size	= entry_size,
		.__reserved	= reserved,
	};

	return ioctl(fd, PERF_EVENT_IOC_SESSION_LIST, &list);
}

static int map_failed(int fd, size_t size, int prot, int flags)
{
	return mmap(NULL, size, prot, flags, fd, 0) == MAP_FAILED ? -1 : 0;
}

/* An event or a session is opened, and used. */
TEST_F(notify, refusals_to_readers)
{
	int fd = open_comm(0), other = open_comm(0), foreign = open_comm(0), reader, session;
	int64_t id = unclaim(fd, 0, 0, "read");
	void *base = map(other, PAGE, PROT_READ);

	ASSERT_LT(0, id);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_REASON(EINVAL, "a field of the attr is not 0", open_with(id, 0, -1, 0, 1));
	EXPECT_REASON(EINVAL, "a task, a group, or an unknown flag", open_with(id, 0, 0, 0, 0));
	EXPECT_REASON(EINVAL, "the CPU of a session is -1",
		      open_with(id, PERF_PERSISTENT_SESSION, -1, 0, 0));

	reader = reopen(id, 0, 0);
	ASSERT_LE(0, reader);
	EXPECT_REASON(EPERM, "all readers of the event would notice",
		      ioctl(reader, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_REASON(EINVAL, "the mapping is private",
		      map_failed(reader, PAGE, PROT_READ, MAP_PRIVATE));
	EXPECT_REASON(EINVAL, "map the header page, or all of the buffer",
		      map_failed(reader, 2 * PAGE, PROT_READ, MAP_SHARED));
	close(reader);

	session = open_session(id);
	ASSERT_LE(0, session);
	EXPECT_REASON(EINVAL, "entry_size is too small or too large", list_sized(session, 1, 0));
	EXPECT_REASON(EINVAL, "__reserved is not 0",
		      list_sized(session, sizeof(struct perf_persistent_entry), 1));

	/* It joins a session that runs; others write to its buffer. */
	ASSERT_EQ(0, ioctl(foreign, PERF_EVENT_IOC_SET_OUTPUT, other));
	ASSERT_EQ(id, unclaim(other, 0, id, ""));
	EXPECT_REASON(EBUSY, "an event that is no member writes to it", reopen(id, 0, 1));
	EXPECT_EQ(0, session_end(session));
	munmap(base, 2 * PAGE);
	close(session);
	close(foreign);
	close(other);
	close(fd);
}

static int nobody_makes_one(int64_t err, int unused)
{
	return refused(err, unclaim(open_comm(0), 0, 0, "one"));
}

/* 59 bytes, which the kernel puts "u65534." in front of */
static int nobody_names_one(int64_t err, int unused)
{
	char name[60];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	return refused(err, unclaim(open_comm(0), 0, 0, name));
}

static int nobody_joins(int64_t id, int fd)
{
	return refused(EACCES, unclaim(open_comm(0), 0, id, ""));
}

static int nobody_opens(int64_t id, int fd)
{
	return refused(EACCES, open_session(id));
}

static int nobody_ends(int64_t id, int fd)
{
	return refused(EPERM, session_end(fd));
}

/* Users without privileges */
TEST_F(notify, refusals_to_users)
{
	struct limits limits = take_limits();
	int fd = open_comm(0), session;
	int64_t id = unclaim(fd, 0, 0, "roots");

	ASSERT_LT(0, id);
	session = open_session(id);
	EXPECT_EQ(0, write_long(PARANOID, 0));
	EXPECT_EQ(0, write_long(MAX_SESSIONS, 0));
	EXPECT_NOBODY_REASON(EDQUOT, "too many sessions of the user", nobody_makes_one,
			     EDQUOT, -1);
	EXPECT_EQ(0, write_long(MAX_SESSIONS, 1));
	EXPECT_NOBODY_REASON(EINVAL, "the name with u<uid>. is too long", nobody_names_one,
			     EINVAL, -1);
	EXPECT_EQ(0, write_long(MLOCK_KB, 0));
	EXPECT_NOBODY_REASON(EPERM, "too much locked memory of the user", nobody_makes_one,
			     EPERM, -1);
	EXPECT_NOBODY_REASON(EACCES, "using a session takes its owner or CAP_PERFMON",
			     nobody_joins, id, -1);
	EXPECT_NOBODY_REASON(EACCES,
			     "a look at a session takes its owner, CAP_PERFMON or CAP_SYS_ADMIN",
			     nobody_opens, id, -1);
	EXPECT_NOBODY_REASON(EPERM, "control of a session takes its owner or CAP_SYS_ADMIN",
			     nobody_ends, id, session);
	restore_limits(&limits);
	EXPECT_EQ(0, session_end(session));
	close(session);
	close(fd);
}

/* Is the text in the kernel's log, after the mark? */
static bool logged(const char *mark, const char *text)
{
	static char line[8192];
	bool after = false, found = false;
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	ssize_t len;

	while (fd >= 0 && (len = read(fd, line, sizeof(line) - 1)) > 0) {
		line[len] = '\0';
		after |= !!strstr(line, mark);
		found |= after && strstr(line, "type=1340") && strstr(line, text);
	}
	close(fd);
	return found;
}

/* With audit on and no daemon, the records are in the kernel's log. */
TEST_F(notify, audit)
{
	char mark[64];
	int64_t id;
	int fd;

	if (set_audit(true))
		SKIP(return, "no CONFIG_AUDIT");
	/* Each call may have three records; ten in five seconds would be printed. */
	write_text("/proc/sys/kernel/printk_ratelimit", "0");
	snprintf(mark, sizeof(mark), "perf_persistent_notify %ld", (long)time(NULL));
	write_text("/dev/kmsg", mark);

	fd = open_comm(0);
	id = unclaim(fd, 0, 0, "audited");
	ASSERT_LT(0, id);
	ASSERT_EQ(0, with_session(id, session_freeze));
	ASSERT_EQ(0, with_session(id, session_thaw));
	ASSERT_EQ(id, claim(fd));
	close(fd);
	/* kauditd writes them. */
	for (int i = 0; i < 1200 && !logged(mark, "op=end session=audited"); i++)
		usleep(50000);
	EXPECT_TRUE(logged(mark, "op=make session=audited"));
	EXPECT_TRUE(logged(mark, "op=freeze session=audited"));
	EXPECT_TRUE(logged(mark, "op=thaw session=audited"));
	EXPECT_TRUE(logged(mark, "op=claim session=audited"));
	EXPECT_TRUE(logged(mark, "op=end session=audited"));
	write_text("/proc/sys/kernel/printk_ratelimit", "5");
	set_audit(false);
}

TEST_HARNESS_MAIN
