// SPDX-License-Identifier: GPL-2.0
/*
 * Every allocation and every access to user memory on the paths that make the first session,
 * that place one in a region and that store notes fails once, the first, the second, and so on
 * until none is left. What was refused can be tried again, and nothing stays of it when the
 * session has ended.
 *
 * Needs CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC, FAULT_INJECTION_USERCOPY. Some
 * memory is allocated once: with the first session since the boot, and with the first one in a
 * region. For the latter, the kernel was started with
 *
 *	reserve_mem=SIZE:ALIGN:box perf_persistent=@box
 *
 * With PERSISTENT_FAULTS_VERBOSE=2 each fault's stack is in the log: see persistent_faults.c.
 * Charges of a memory cgroup fail as well, as there.
 */
#define _GNU_SOURCE

#include <sys/resource.h>

#include <linux/perf_blackbox.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "persistent_session.h"

#define REGION	"box"

static const char *allow_our_faults(int *nth)
{
	return allow_faults(nth, getenv("PERSISTENT_FAULTS_VERBOSE") ?: "0");
}

/* Does a session of this name lie in the region? */
static bool is_placed(const char *name, const char *label)
{
	return !strcmp(label, sysfs("sessions/%s/region", name));
}

/* Return: what is missing, or NULL. */
static const char *begin_faults(int *nth, struct balance *before)
{
	const char *missing = allow_our_faults(nth);

	if (missing)
		return missing;
	allow_charge_faults();
	pin_to_cpu(0);
	*before = take_balance();
	return NULL;
}

static void end_faults(int nth)
{
	close(nth);
	write_text(DEBUGFS "/failslab/probability", "0");
	forbid_charge_faults();
}

FIXTURE(sessions)
{
	struct balance	before;
	int		nth;
};

FIXTURE_SETUP(sessions)
{
	const char *missing;

	SKIP_WITHOUT_PERSISTENT(return);
	missing = begin_faults(&self->nth, &self->before);
	if (missing)
		SKIP(return, "no %s", missing);
}

FIXTURE_TEARDOWN(sessions)
{
	end_faults(self->nth);
	EXPECT_BALANCE();
}

/* What holds after each try. A session that was made is claimed again. */
static void judge(struct __test_metadata *_metadata, struct _test_data_sessions *self, int fd,
		  const struct perf_persistent_arg *arg, int ret)
{
	EXPECT_EQ(self->before.sessions + !ret, nr_entries(DEVICE "/sessions"));
	if (!ret) {
		EXPECT_TRUE(is_placed(arg->name, arg->label));
		EXPECT_EQ(arg->id, claim(fd));
	}
	close(fd);
}

static struct perf_persistent_arg session_in(const char *label)
{
	struct perf_persistent_arg arg = { .size = sizeof(arg), .name = "placed" };

	snprintf(arg.label, sizeof(arg.label), "%s", label);
	return arg;
}

/* A session in a region, or in the kernel's memory if @label is empty, with each fault in turn */
static void make_with_each_fault(struct __test_metadata *_metadata,
				 struct _test_data_sessions *self, const char *label)
{
	unsigned int n, refused = 0;
	bool failed = true;
	int fd, ret = -1;

	for (n = 1; failed; n++) {
		struct perf_persistent_arg arg = session_in(label);

		ASSERT_GT(2000, n);
		fd = open_comm(0);
		arm(self->nth, n);
		ret = ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg);
		failed = disarm(self->nth);
		refused += ret < 0;
		EXPECT_TRUE(!ret || failed) TH_LOG("fault %u: %m", n);
		judge(_metadata, self, fd, &arg, ret);
	}
	EXPECT_EQ(0, ret);
	EXPECT_LT(5, refused);
	TH_LOG("%u faults, %u refusals", n - 2, refused);
}

/* The smallest object of the image of a region is larger. */
#define STEP	16

/*
 * Each fault, with all that come after. With one fault alone, what checks the kernel could take
 * it: then the image of the region, which stays, would be made without.
 */
static void make_after_all_faults(struct __test_metadata *_metadata,
				  struct _test_data_sessions *self, const char *label)
{
	struct fail_all all = open_fail_all();
	unsigned int bytes;
	int fd, ret = -1;

	for (bytes = 0; ret < 0; bytes += STEP) {
		struct perf_persistent_arg arg = session_in(label);

		ASSERT_GT(1 << 20, bytes);
		fd = open_comm(0);
		arm_all_after(&all, bytes);
		ret = ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg);
		disarm_all(&all);
		judge(_metadata, self, fd, &arg, ret);
	}
	TH_LOG("done with %u bytes", bytes - STEP);
	close_fail_all(&all);
}

/* Before any other test makes a session: see above */
TEST_F_TIMEOUT(sessions, first, 300)
{
	make_with_each_fault(_metadata, self, "");
}

static bool has_region(void)
{
	char line[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	bool has = read(fd, line, sizeof(line) - 1) > 0 &&
		   strstr(line, "perf_persistent=@" REGION);

	close(fd);
	return has;
}

TEST_F_TIMEOUT(sessions, in_region, 300)
{
	if (!has_region())
		SKIP(return, "no region " REGION);
	make_after_all_faults(_metadata, self, REGION);
	make_with_each_fault(_metadata, self, REGION);
}

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
	missing = begin_faults(&self->nth, &self->before);
	if (missing)
		SKIP(return, "no %s", missing);
	self->session = make_session();
	ASSERT_LE(0, self->session);
}

FIXTURE_TEARDOWN(notes)
{
	EXPECT_EQ(0, end_session(self->session));
	end_faults(self->nth);
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

/* The memory cgroup has no room for what keeps the notes. */
TEST_F(notes, charge_fails)
{
	struct fail_all all = open_fail_all();
	int ret, err;

	if (ioctl(self->session, PERF_EVENT_IOC_SESSION_NOTES, NULL) && errno == ENOTTY)
		SKIP(return, "no CONFIG_PERF_PERSISTENT_BLACKBOX");
	if (!allow_charge_faults())
		SKIP(return, "no CONFIG_FAIL_FUNCTION");
	ASSERT_TRUE(arm_charge_after(&all, 0));
	ret = store_notes(self->session);
	err = errno;
	EXPECT_TRUE(disarm_charge(&all));
	EXPECT_EQ(-1, ret);
	EXPECT_EQ(ENOMEM, err);
	EXPECT_EQ(0, store_notes(self->session));
	close_fail_all(&all);
}

TEST_HARNESS_MAIN
