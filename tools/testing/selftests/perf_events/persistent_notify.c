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
	struct {
		struct nlmsghdr	hdr;
		/* struct audit_status: mask, enabled */
		uint32_t	status[12];
	} msg = {
		.hdr = {
			.nlmsg_len	= sizeof(msg),
			.nlmsg_type	= 1001,	/* AUDIT_SET */
			.nlmsg_flags	= NLM_F_REQUEST,
		},
		.status = { 1, 1 },
	};
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK };
	int audit = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);
	char mark[64];
	int64_t id;
	int fd;

	if (audit < 0)
		SKIP(return, "no CONFIG_AUDIT");
	ASSERT_EQ(sizeof(msg), sendto(audit, &msg, sizeof(msg), 0, (struct sockaddr *)&addr,
				      sizeof(addr)));
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
	for (int i = 0; i < 100 && !logged(mark, "op=end session=audited"); i++)
		usleep(50000);
	EXPECT_TRUE(logged(mark, "op=make session=audited"));
	EXPECT_TRUE(logged(mark, "op=freeze session=audited"));
	EXPECT_TRUE(logged(mark, "op=thaw session=audited"));
	EXPECT_TRUE(logged(mark, "op=claim session=audited"));
	EXPECT_TRUE(logged(mark, "op=end session=audited"));
	msg.status[1] = 0;
	sendto(audit, &msg, sizeof(msg), 0, (struct sockaddr *)&addr, sizeof(addr));
	close(audit);
}

TEST_HARNESS_MAIN
