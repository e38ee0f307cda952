// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open, join, list and claim a session, at each level of perf_event_paranoid;
 * and what a user may keep the kernel's memory busy with.
 */
#define _GNU_SOURCE

#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"
#include "persistent_spaces.h"

#define IN_NAMESPACE	12345

FIXTURE(users)
{
	struct balance	before;
	struct limits	limits;
};

FIXTURE_SETUP(users)
{
	SKIP_WITHOUT_PERSISTENT(return);

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 16));
}

FIXTURE_TEARDOWN(users)
{
	restore_limits(&self->limits);
	EXPECT_BALANCE();
}

enum who { ROOT, OWNER, STRANGER, MONITOR };

static int become_who(enum who who)
{
	switch (who) {
	case OWNER:
		return become(NOBODY);
	case STRANGER:
		return become(SOMEBODY);
	case MONITOR:
		return become_monitor();
	default:
		return 0;
	}
}

#define LEVEL	NOBODYS("level")

/* What the user can do with NOBODY's session "level", in bits. */
#define OPENS	1
#define JOINS	2
#define LISTS	4
#define SEES	8
#define CLAIMS	16

static int tries(enum who who, int64_t id)
{
	int ret = 0, status, fd;
	pid_t pid = fork();

	if (!pid) {
		if (become_who(who))
			_exit(99);
		if (listed_id(LEVEL) == id && *sysfs("sessions/%s/id", LEVEL))
			ret |= SEES;
		if (*sysfs("sessions/%s/cpus", LEVEL) && *sysfs("sessions/%s/state", LEVEL) &&
		    *sysfs("sessions/%s/owner", LEVEL) && *sysfs("sessions/%s/memory", LEVEL))
			ret |= LISTS;
		fd = open_comm(0);
		if (fd >= 0 && unclaim(fd, 0, id, "") == id) {
			ret |= JOINS;
			claim(fd);
		}
		fd = reopen(id, 0, 0);
		if (fd >= 0)
			ret |= OPENS;
		else if (errno != EACCES)
			_exit(98);
		if (claim(fd) == id)
			ret |= CLAIMS;
		else if (fd >= 0 && errno != EPERM)
			_exit(96);
		_exit(ret);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static int makes(int64_t id, int fd)
{
	return unclaim(open_comm(0), 0, 0, "level") > 0 ? 0 : errno;
}

static int64_t make_as_owner(void)
{
	write_long(PARANOID, 0);
	if (as_nobody(makes, 0, -1))
		return -1;
	return listed_id(LEVEL);
}

TEST_F(users, at_each_level)
{
	const int all = OPENS | JOINS | LISTS | SEES | CLAIMS;
	enum who who;
	int level;

	for (level = -1; level <= 3; level++) {
		for (who = ROOT; who <= MONITOR; who++) {
			int64_t id = make_as_owner();
			int want, got;

			ASSERT_LT(0, id);
			ASSERT_EQ(0, write_long(PARANOID, level));
			got = tries(who, id);
			switch (who) {
			case ROOT:
				want = all;
				break;
			case OWNER:
				/* It is theirs to see; to monitor a CPU takes more. */
				want = level <= 0 ? all : LISTS | SEES;
				break;
			case STRANGER:
				want = SEES;
				break;
			case MONITOR:
				/*
				 * Files are the owner's, and so is the end. From 3 on it takes
				 * CAP_SYS_ADMIN.
				 */
				want = SEES | (level <= 2 ? OPENS | JOINS : 0);
				break;
			}
			EXPECT_EQ(want, got) TH_LOG("level %d, user %d", level, who);
			if (!(got & CLAIMS)) {
				int fd = reopen(id, 0, 0);

				EXPECT_EQ(id, claim(fd));
				close(fd);
			}
		}
	}
}

/* Sessions of children that exit at once, until one is refused; returns how many. */
static int fill(int64_t err, int unused)
{
	int nr, status;

	for (nr = 0; nr < 90; nr++) {
		pid_t pid = fork();

		if (!pid) {
			int fd = open_comm(0);

			if (map(fd, 32 * PAGE, PROT_READ) == MAP_FAILED)
				_exit(1);
			_exit(unclaim(fd, 0, 0, "") > 0 ? 0 : errno);
		}
		waitpid(pid, &status, 0);
		if (WEXITSTATUS(status) == err)
			return nr;
		if (WEXITSTATUS(status))
			return 91;
	}
	return 92;
}

/* Processes that come and go do not get beyond the limit, and it returns to the byte. */
TEST_F(users, memory_of_the_dead)
{
	long want;
	int i;

	ASSERT_EQ(0, write_long(PARANOID, 0));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 1000));
	want = mlock_limit() / 33;
	ASSERT_LT(0, want);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(want, as_nobody(fill, EPERM, -1));
		/* Nor with what is mapped beyond it, which would die with the process. */
		EXPECT_EQ(0, as_nobody(fill, EPERM, -1));
		claim_all(NULL, 1);
	}
}

/* As many sessions as the sysctl says, whoever of the user's processes made them. */
TEST_F(users, number_of_sessions)
{
	ASSERT_EQ(0, write_long(PARANOID, 0));
	ASSERT_EQ(0, write_long(MLOCK_KB, 16 * 1024));
	/* None, until the administrator says otherwise. */
	EXPECT_EQ(0, self->limits.max_sessions);
	EXPECT_EQ(16, as_nobody(fill, EDQUOT, -1));
	/* Others have theirs. */
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 3));
	EXPECT_EQ(3, as_user(SOMEBODY, fill, EDQUOT, -1));
	EXPECT_EQ(0, as_nobody(fill, EDQUOT, -1));
	claim_all(NULL, 1);
	EXPECT_EQ(3, as_nobody(fill, EDQUOT, -1));
	claim_all(NULL, 1);
}

static bool logged(int kmsg, const char *text)
{
	char line[1024];
	ssize_t n;

	for (;;) {
		n = read(kmsg, line, sizeof(line) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return false;
		line[n] = '\0';
		if (strstr(line, text))
			return true;
	}
}

/* The kernel logs a session of a user, which outlives the process, and none of root. */
TEST_F(users, log)
{
	int kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), fd, i;
	char text[128];
	bool found = false;
	int64_t id;

	if (kmsg < 0)
		SKIP(return, "no /dev/kmsg");
	lseek(kmsg, 0, SEEK_END);
	/* It is rate-limited: what was before may have had it all. */
	for (i = 0; i < 20 && !found; i++) {
		id = make_as_owner();
		ASSERT_LT(0, id);
		snprintf(text, sizeof(text), "session '" LEVEL "' (id %d) made by uid %d", (int)id,
			 NOBODY);
		found = logged(kmsg, text);
		claim_all(NULL, 1);
		if (!found)
			sleep(1);
	}
	EXPECT_TRUE(found);

	fd = open_comm(0);
	EXPECT_LT(0, unclaim(fd, 0, 0, "quiet"));
	EXPECT_FALSE(logged(kmsg, "'quiet'"));
	EXPECT_LT(0, claim(fd));
	close(fd);
	close(kmsg);
}

/* Nothing was tried: there are none. */
#define NO_NAMESPACES	4

static int as_user_in_namespace(uid_t uid, int (*fn)(int64_t id, int fd), int64_t id, int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (leave_chroot())
			fprintf(stderr, "# cannot leave the chroot: %s\n", strerror(errno));
		if (become(uid))
			_exit(99);
		/* Else the files in /proc/self are root's. */
		prctl(PR_SET_DUMPABLE, 1);
		if (unshare(CLONE_NEWUSER))
			_exit(NO_NAMESPACES);
		_exit(fn(id, fd));
	}
	waitpid(pid, &status, 0);
	rmdir("/tmp/inside");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int in_namespace(int64_t id, int unused)
{
	struct perf_persistent_info inf;
	int map_fd, fd;

	map_fd = open("/proc/self/uid_map", O_WRONLY);
	if (write(map_fd, "0 12345 1", 9) != 9 || geteuid())
		return 96;
	close(map_fd);

	/* Root in here, and an ordinary user out there. */
	fd = open_comm(0);
	if (refused(EACCES, reopen(id, 0, 0)) || refused(EACCES, unclaim(fd, 0, id, "")))
		return 95;
	if (refused(EACCES, open("/sys/bus/event_source/devices/persistent/sessions/roots/owner",
				 O_RDONLY)))
		return 94;
	if (unclaim(fd, 0, 0, "level") < 0)
		return 93;
	if (info(fd, &inf) || inf.owner_uid ||
	    strcmp(sysfs("sessions/%s/owner", "u12345.level"), "0"))
		return 92;
	return 0;
}

static int looks_without_mapping(int64_t id, int fd)
{
	struct perf_persistent_info inf;
	long overflow = read_long("/proc/sys/kernel/overflowuid");

	return info(fd, &inf) || inf.owner_uid != overflow ? 96 : 0;
}

/* Owners are shown as the reader's user namespace has them; its root is nobody special. */
TEST_F(users, namespaces)
{
	int mine = open_comm(0), fd, ret;
	int64_t id = unclaim(mine, 0, 0, "roots");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, -1));
	ret = as_user_in_namespace(IN_NAMESPACE, in_namespace, id, -1);
	EXPECT_EQ(id, claim(mine));
	close(mine);
	if (ret == NO_NAMESPACES)
		SKIP(return, "no user namespaces for ordinary users");
	EXPECT_EQ(0, ret);
	EXPECT_STREQ("12345", sysfs("sessions/%s/owner", "u12345.level"));
	id = listed_id("u12345.level");
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, as_user_in_namespace(NOBODY, looks_without_mapping, id, fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

TEST_HARNESS_MAIN
