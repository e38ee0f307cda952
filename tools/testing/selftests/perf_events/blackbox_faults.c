// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to user memory on the path that stores notes fails once,
 * the first, the second, and so on until none is left. What was refused can be tried again, and
 * nothing stays of it when the session has ended.
 *
 * Needs CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC, FAULT_INJECTION_USERCOPY.
 */
#define _GNU_SOURCE

#include <sys/resource.h>

#include <linux/perf_blackbox.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "persistent_session.h"

static int make_session(void)
{
	int fd = open_comm(0);
	int session = open_session(unclaim(fd, 0, 0, "noted"));

	close(fd);
	return session;
}

static int end_session(int session)
{
	int ret = session_end(session);

	close(session);
	return ret;
}

FIXTURE(notes)
{
	struct balance	before;
	int		nth;
	int		session;
};

FIXTURE_SETUP(notes)
{
	const char *missing;

	SKIP_WITHOUT_PERSISTENT(return);
	missing = allow_faults(&self->nth, "0");
	if (missing)
		SKIP(return, "no %s", missing);
	pin_to_cpu(0);
	self->before = take_balance();
	self->session = make_session();
	ASSERT_LE(0, self->session);
}

FIXTURE_TEARDOWN(notes)
{
	EXPECT_EQ(0, end_session(self->session));
	close(self->nth);
	write_text(DEBUGFS "/failslab/probability", "0");
	EXPECT_BALANCE();
}

/* More pages than one part of the image has addresses of */
static int store_notes(int session)
{
	static char bytes[2200 << 10];
	struct perf_persistent_notes arg = {
		.size		= sizeof(arg),
		.data		= (uintptr_t)bytes,
		.data_size	= sizeof(bytes),
	};

	return ioctl(session, PERF_EVENT_IOC_SESSION_NOTES, &arg);
}

TEST_F_TIMEOUT(notes, each_fails_once, 300)
{
	unsigned int n, refused = 0;
	bool failed = true;
	int ret = -1;

	/* Stores nothing: the room for the first notes is to be allocated below. */
	if (ioctl(self->session, PERF_EVENT_IOC_SESSION_NOTES, NULL) && errno == ENOTTY)
		SKIP(return, "no CONFIG_PERF_PERSISTENT_BLACKBOX");
	for (n = 1; failed; n++) {
		ASSERT_GT(2000, n);
		arm(self->nth, n);
		ret = store_notes(self->session);
		failed = disarm(self->nth);
		refused += ret < 0;
		EXPECT_TRUE(!ret || failed) TH_LOG("fault %u: %m", n);
		/* It can be tried again. The next one has to allocate all anew. */
		EXPECT_EQ(0, store_notes(self->session));
		EXPECT_EQ(0, end_session(self->session));
		self->session = make_session();
		ASSERT_LE(0, self->session);
	}
	EXPECT_EQ(0, ret);
	/* User memory alone is accessed three times. */
	EXPECT_LT(5, refused);
	TH_LOG("%u faults, %u refusals", n - 2, refused);
}

TEST_HARNESS_MAIN
