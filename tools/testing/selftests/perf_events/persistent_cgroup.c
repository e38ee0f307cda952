// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events of a cgroup: its tasks are recorded, and no others; the session is
 * there, and its readers are told, when the cgroup was removed.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"
#include "race_window.h"

#define CGROUPS	"/sys/fs/cgroup/"
#define GROUP	CGROUPS "persistent_cgroup"
#define INNER	GROUP "/inner"
#define OTHER	CGROUPS "persistent_other"
#define QUEUED	"/sys/kernel/tracing/events/workqueue/workqueue_queue_work/id"
/* A hierarchy of cgroup v1 with the perf_event controller */
#define V1	"/tmp/persistent_v1"
#define V1_INNER	V1 "/inner"

FIXTURE(cgroup)
{
	struct balance	before;
	struct limits	limits;
	/* An event of the cgroup on CPU 0, not given away yet. */
	int		fd;
};

static int open_cgroup_comm(const char *path, int cpu)
{
	struct perf_event_attr attr = comm_attr();
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = event_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);

	close(dir);
	return fd;
}

FIXTURE_SETUP(cgroup)
{
	SKIP_WITHOUT_PERSISTENT(return);
	/* Until a controller was given to cgroups once, they do not have perf's either. */
	write_text(CGROUPS "cgroup.subtree_control", "+memory");
	if (mkdir(GROUP, 0755) || access(GROUP "/cgroup.procs", W_OK)) {
		rmdir(GROUP);
		SKIP(return, "no cgroups");
	}
	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	self->fd = open_cgroup_comm(GROUP, 0);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(cgroup)
{
	restore_limits(&self->limits);
	close(self->fd);
	rmdir(INNER);
	rmdir(GROUP);
	rmdir(OTHER);
	EXPECT_BALANCE();
}

/* A child leaves a record from within the cgroup, and exits. */
static int leave_record_in(const char *group, const char *name)
{
	char path[PATH_MAX];
	int status;
	pid_t pid = fork();

	if (!pid) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", group);
		if (write_text(path, "0"))
			_exit(1);
		leave_record(name);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What was in the cgroup is gone soon after it was waited for. */
static int remove_group(const char *path)
{
	int i, err = -1;

	for (i = 0; i < 1000 && err; i++) {
		err = rmdir(path);
		if (err)
			usleep(10000);
	}
	return err;
}

/* What fdinfo says; "" if nothing. */
static const char *fdinfo_line(int fd, const char *key)
{
	static char line[4200];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, key, strlen(key)) && !strncmp(line + strlen(key), ":\t", 2)) {
			fclose(f);
			return line + strlen(key) + 2;
		}
	}
	if (f)
		fclose(f);
	return "";
}

static const char *cgroup_of(int fd)
{
	return fdinfo_line(fd, "cgroup");
}

static unsigned long long cgroup_id_of(int fd)
{
	return strtoull(fdinfo_line(fd, "cgroup_id"), NULL, 10);
}

/* The id of a cgroup is the inode of its directory. */
static unsigned long long inode(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* The value of a line of cgroup.stat in the root, or -1 */
static long root_stat(const char *key)
{
	FILE *f = fopen(CGROUPS "cgroup.stat", "r");
	char name[64];
	long val;

	while (f && fscanf(f, "%63s %ld", name, &val) == 2) {
		if (!strcmp(name, key)) {
			fclose(f);
			return val;
		}
	}
	if (f)
		fclose(f);
	return -1;
}

/* What is freed is counted no more, some time later. */
static bool becomes(long (*get)(const char *), const char *arg, long want)
{
	int i;

	for (i = 0; i < 1000; i++) {
		if (get(arg) == want)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * poll() of the creator's file may return a moment before: the event is off its context, and
 * the kernel waits for what was just being written.
 */
static bool becomes_gone(int fd)
{
	int i;

	for (i = 0; i < 6000 && state_of(fd) != PERF_PERSISTENT_STATE_GONE; i++)
		usleep(10000);
	return state_of(fd) == PERF_PERSISTENT_STATE_GONE;
}

/* Its tasks and those below, on this CPU; then what is left of them. */
TEST_F(cgroup, post_mortem)
{
	int64_t id = unclaim(self->fd, 0, 0, "group");
	struct pollfd p = { .events = 0 };
	struct perf_persistent_info inf;
	unsigned long long group;
	int fd, later;

	ASSERT_LT(0, id);
	close(self->fd);
	self->fd = -1;
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	p.fd = fd;
	EXPECT_STREQ("/persistent_cgroup", cgroup_of(fd));
	group = inode(GROUP);
	EXPECT_EQ(group, cgroup_id_of(fd));
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.cpu);
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(PERF_PERSISTENT_INFO_CGROUP, inf.flags);

	ASSERT_EQ(0, mkdir(INNER, 0755));
	ASSERT_EQ(0, leave_record_in(GROUP, "by group"));
	ASSERT_EQ(0, leave_record_in(INNER, "by inner"));
	leave_record("by creator");
	EXPECT_TRUE(holds_record(fd, DEFAULT_SIZE, "by group"));
	EXPECT_TRUE(holds_record(fd, DEFAULT_SIZE, "by inner"));
	EXPECT_FALSE(holds_record(fd, DEFAULT_SIZE, "by creator"));

	/* Those below it are not what it follows. */
	ASSERT_EQ(0, remove_group(INNER));
	EXPECT_EQ(0, state_of(fd));
	EXPECT_EQ(0, poll(&p, 1, 0));

	/* That it is watched does not keep it. */
	ASSERT_EQ(0, remove_group(GROUP));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_STREQ("2", sysfs("sessions/%s/state", "group"));
	close(fd);

	/* Nor is a later one of the same name the same one. */
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ASSERT_EQ(0, leave_record_in(GROUP, "by later"));
	later = reopen(id, 0, 0);
	ASSERT_LE(0, later);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(later));
	EXPECT_STREQ("/persistent_cgroup", cgroup_of(later));
	EXPECT_EQ(group, cgroup_id_of(later));
	EXPECT_NE(group, inode(GROUP));
	EXPECT_TRUE(holds_record(later, DEFAULT_SIZE, "by group"));
	EXPECT_FALSE(holds_record(later, DEFAULT_SIZE, "by later"));
	EXPECT_EQ(id, claim(later));
	close(later);
}

/* The cgroup was removed, and perf was told of it, before its event was given away. */
TEST_F(cgroup, given_away_afterwards)
{
	int fd = open_cgroup_comm(GROUP, 0);
	int64_t id = unclaim(fd, 0, 0, "early");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, leave_record_in(GROUP, "by group"));
	ASSERT_EQ(0, remove_group(GROUP));
	ASSERT_TRUE(becomes_gone(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);

	id = unclaim(self->fd, 0, 0, "late");
	ASSERT_LT(0, id);
	EXPECT_TRUE(becomes_gone(self->fd));
	EXPECT_EQ(POLLHUP, polled(self->fd));
	EXPECT_EQ(id, claim(self->fd));
}

/* The file of its creator is told as well, and cannot enable what has gone. */
TEST_F(cgroup, creator_is_told)
{
	struct pollfd p = { .fd = self->fd };
	int64_t id = unclaim(self->fd, 0, 0, "creator");
	uint64_t count;

	ASSERT_LT(0, id);
	ASSERT_EQ(0, leave_record_in(GROUP, "by group"));
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, remove_group(GROUP));
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);

	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE));
	EXPECT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE));
	EXPECT_TRUE(becomes_gone(self->fd));
	EXPECT_EQ(POLLHUP, polled(self->fd));
	EXPECT_EQ(sizeof(count), read(self->fd, &count, sizeof(count)));
	EXPECT_TRUE(holds_record(self->fd, DEFAULT_SIZE, "by group"));
	EXPECT_EQ(id, claim(self->fd));
}

/*
 * While somebody holds up the kernel where the event is about to be retired, on another CPU.
 * 1: it was told of too early, 2: nothing was seen
 */
static void watch_held(int cpu, int fd)
{
	int i, gone = 0;
	bool told;

	pin_to_cpu(cpu);
	for (i = 0; i < 20000; i++) {
		if (window_holds(WINDOW_LEFT)) {
			told = state_of(fd) || polled(fd);
			if (window_holds(WINDOW_LEFT))
				_exit(told);
		}
		/* If it is GONE and nobody comes to the window, that is over. */
		gone = state_of(fd) == PERF_PERSISTENT_STATE_GONE ? gone + 1 : 0;
		if (gone > 100)
			break;
		usleep(1000);
	}
	_exit(2);
}

/*
 * Remove GROUP, whose session fd is of. Return how many have watched; -1: one was told early,
 * or GROUP is still there.
 */
static int remove_watched(int fd)
{
	int cpu, status, saw = 0;
	bool early = false;
	pid_t pids[2];

	for (cpu = 0; cpu < 2; cpu++) {
		pids[cpu] = fork();
		if (!pids[cpu])
			watch_held(cpu, fd);
	}
	if (remove_group(GROUP))
		early = true;
	/* The one whose CPU is held up sees nothing. */
	for (cpu = 0; cpu < 2; cpu++) {
		waitpid(pids[cpu], &status, 0);
		early |= WEXITSTATUS(status) == 1;
		saw += !WEXITSTATUS(status);
	}
	return early ? -1 : saw;
}

/*
 * It is not GONE as long as it may record. If the window takes the CPU of a watcher that is
 * just asking for it, the other one cannot ask: a parameter of a module has a mutex. So this
 * is tried again.
 */
TEST_F_TIMEOUT(cgroup, records_until_gone, 120)
{
	const char *module = getenv("PERSISTENT_WINDOW");
	int fd, round, saw = 0;
	int64_t id;

	if (!module)
		SKIP(return, "PERSISTENT_WINDOW names no module");
	ASSERT_EQ(0, load_window(module));
	EXPECT_EQ(0, set_window("left", "*:perf_event_retire"));
	EXPECT_EQ(0, set_window("right", "nobody:perf_persistent_claim"));
	for (round = 0; round < 10 && !saw; round++) {
		if (round) {
			close(self->fd);
			EXPECT_EQ(0, mkdir(GROUP, 0755));
			self->fd = open_cgroup_comm(GROUP, 0);
		}
		id = unclaim(self->fd, 0, 0, "until");
		EXPECT_LT(0, id);
		fd = reopen(id, 0, 0);
		EXPECT_EQ(0, set_window("armed", "1"));
		saw = remove_watched(fd);
		EXPECT_TRUE(becomes_gone(fd));
		EXPECT_EQ(id, claim(fd));
		close(fd);
	}
	EXPECT_LT(0, saw) TH_LOG("%d rounds", round);
	EXPECT_EQ(0, unload_window());
}

/* A cgroup that a session follows goes, and the session ends. */
static int end_followed(const char *path)
{
	int64_t id;
	bool gone;
	int fd;

	if (mkdir(path, 0755))
		return -1;
	fd = open_cgroup_comm(path, 0);
	id = unclaim(fd, 0, 0, "followed");
	gone = id > 0 && !remove_group(path) && becomes_gone(fd);
	claim(fd);
	close(fd);
	return gone ? 0 : -1;
}

/* A session follows a cgroup, and ends before it goes. */
static int claimed_before(const char *path)
{
	int fd;

	if (mkdir(path, 0755))
		return -1;
	fd = open_cgroup_comm(path, 0);
	if (unclaim(fd, 0, 0, "claimed") < 0 || claim(fd) < 0)
		return -1;
	close(fd);
	return remove_group(path);
}

/* Readers are told once, not at each cgroup that goes afterwards. */
TEST_F(cgroup, told_once)
{
	struct epoll_event ev = { .events = EPOLLET };
	int64_t id = unclaim(self->fd, 0, 0, "once");
	int fd, ep = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_LT(0, id);
	fd = reopen(id, 0, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 0));
	/* This one is not what it follows. */
	ASSERT_EQ(0, end_followed(OTHER));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 500));

	ASSERT_EQ(0, remove_group(GROUP));
	ASSERT_EQ(1, epoll_wait(ep, &ev, 1, 60000));
	EXPECT_EQ(EPOLLHUP, ev.events);
	ASSERT_EQ(0, end_followed(OTHER));
	EXPECT_EQ(0, epoll_wait(ep, &ev, 1, 1000));
	close(ep);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* A filter for the work items that a function of the kernel does, or "" */
static const char *works_of(const char *function)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	static char filter[64];
	char line[256], name[128];
	unsigned long long addr;

	*filter = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %127s", &addr, name) == 2 && addr &&
		    !strcmp(name, function))
			snprintf(filter, sizeof(filter), "function==%#llx", addr);
	}
	if (f)
		fclose(f);
	return filter;
}

/* On a CPU; counts how often such a work item is queued there. */
static int open_queued(const char *filter, int cpu)
{
	struct perf_event_attr attr = {
		.type	= PERF_TYPE_TRACEPOINT,
		.config	= read_long(QUEUED),
	};
	int fd = event_open(&attr, -1, cpu, -1, 0);

	if (fd < 0 || !ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
		return fd;
	close(fd);
	return -1;
}

/* How many there are when those of earlier tests have been freed: for three seconds, none was */
static long still_dying(void)
{
	long now = root_stat("nr_dying_descendants"), last;
	int i, same = 0;

	for (i = 0; i < 6000 && now > 0 && same < 300; i++) {
		usleep(10000);
		last = now;
		now = root_stat("nr_dying_descendants");
		same = now == last ? same + 1 : 0;
	}
	return now;
}

/* Of those that were removed since there were so many of them */
static bool all_are_freed(long before)
{
	int i;

	for (i = 0; i < 6000 && root_stat("nr_dying_descendants") > before; i++)
		usleep(10000);
	return root_stat("nr_dying_descendants") <= before;
}

static uint64_t sum_of(const int *fds, int nr)
{
	uint64_t sum = 0, count;
	int i;

	for (i = 0; i < nr; i++)
		sum += read(fds[i], &count, sizeof(count)) == sizeof(count) ? count : 0;
	return sum;
}

/* The members of all sessions are looked at only if one of them follows what goes. */
TEST_F(cgroup, others_are_not_followed)
{
	const char *filter = works_of("perf_persistent_retire_all");
	long before = still_dying();
	int i, fds[2], nr = access(ONLINE, F_OK) ? 1 : 2;
	int64_t id;

	if (!*filter || access(QUEUED, R_OK))
		SKIP(return, "needs the address of a function, and tracefs");
	id = unclaim(self->fd, 0, 0, "own");
	ASSERT_LT(0, id);
	for (i = 0; i < nr; i++) {
		fds[i] = open_queued(filter, i);
		ASSERT_LE(0, fds[i]);
	}
	/* It is freed after perf was told of its end. */
	ASSERT_EQ(0, mkdir(OTHER, 0755));
	ASSERT_EQ(0, remove_group(OTHER));
	ASSERT_TRUE(all_are_freed(before));
	EXPECT_EQ(0, sum_of(fds, nr));

	/* Nor when a session has followed it, but does not any more. */
	ASSERT_EQ(0, end_followed(OTHER));
	EXPECT_EQ(1, sum_of(fds, nr));
	ASSERT_EQ(0, claimed_before(OTHER));
	ASSERT_TRUE(all_are_freed(before));
	EXPECT_EQ(1, sum_of(fds, nr));

	ASSERT_EQ(0, remove_group(GROUP));
	EXPECT_TRUE(becomes_gone(self->fd));
	EXPECT_EQ(2, sum_of(fds, nr));
	EXPECT_EQ(id, claim(self->fd));
	for (i = 0; i < nr; i++)
		close(fds[i]);
}

/* The cgroup is kept, without its directory, until the session ends. */
TEST_F(cgroup, is_held_until_the_end)
{
	long before = still_dying();
	int64_t id = unclaim(self->fd, 0, 0, "held");
	int fd;

	ASSERT_LT(0, id);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, remove_group(GROUP));
	EXPECT_EQ(-1, access(GROUP, F_OK));
	usleep(300000);
	EXPECT_LT(before, root_stat("nr_dying_descendants"));
	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_TRUE(becomes(root_stat, "nr_dying_descendants", before));
}

/* Any byte but a slash may be part of a name. */
TEST_F(cgroup, name_is_escaped)
{
	static const char name[] = OTHER "\\\033 ";
	int64_t id;
	int fd;

	ASSERT_EQ(0, mkdir(name, 0755));
	fd = open_cgroup_comm(name, 0);
	id = unclaim(fd, 0, 0, "escaped");
	EXPECT_LT(0, id);
	close(fd);
	fd = reopen(id, 0, 0);
	EXPECT_STREQ("/persistent_other\\134\033 ", cgroup_of(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_EQ(0, remove_group(name));
}

/* In a cgroup namespace whose root is @group; what fdinfo shows of the cgroup there. */
static int shows(const char *group, int fd, const char *want)
{
	char path[PATH_MAX];
	pid_t pid = fork();
	int status;

	if (!pid) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", group);
		if (write_text(path, "0") || unshare(CLONE_NEWCGROUP))
			_exit(1);
		_exit(strcmp(want, cgroup_of(fd)) ? 2 : cgroup_id_of(fd) ? 0 : 3);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The path is shown to those that have the cgroup in their cgroup namespace. */
TEST_F(cgroup, path_in_namespaces)
{
	int64_t id = unclaim(self->fd, 0, 0, "spaces");
	int fd;

	ASSERT_LT(0, id);
	fd = reopen(id, 0, 0);
	ASSERT_EQ(0, mkdir(INNER, 0755));
	ASSERT_EQ(0, mkdir(OTHER, 0755));
	EXPECT_EQ(0, shows(GROUP, fd, "/"));
	EXPECT_EQ(0, shows(INNER, fd, "?"));
	EXPECT_EQ(0, shows(OTHER, fd, "?"));
	EXPECT_STREQ("/persistent_cgroup", cgroup_of(fd));
	ASSERT_EQ(0, remove_group(OTHER));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

static bool goes_offline(int fd)
{
	return !write_long(ONLINE, 0) && state_of(fd) == PERF_PERSISTENT_STATE_OFFLINE;
}

/* The CPU goes, and returns: events of a cgroup are put back as others are. */
TEST_F(cgroup, hotplug)
{
	int fd, i;
	int64_t id;

	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");
	fd = open_cgroup_comm(GROUP, 1);
	id = unclaim(fd, 0, 0, "plug");
	ASSERT_TRUE(goes_offline(fd));
	ASSERT_EQ(0, write_long(ONLINE, 1));
	for (i = 0; i < 3000 && state_of(fd); i++)
		usleep(10000);
	EXPECT_EQ(0, state_of(fd));
	pin_to_cpu(1);
	ASSERT_EQ(0, leave_record_in(GROUP, "again"));
	pin_to_cpu(0);
	EXPECT_TRUE(holds_record(fd, DEFAULT_SIZE, "again"));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

static int opens(int64_t id, int unused)
{
	int fd = reopen(id, 0, 0), err = fd < 0 ? errno : 0;

	close(fd);
	return err;
}

/* It goes with the cgroup, while its CPU is offline, and does not return. */
TEST_F(cgroup, gone_while_offline)
{
	struct pollfd p = { .events = 0 };
	int64_t id;
	int fd;

	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");
	fd = open_cgroup_comm(GROUP, 1);
	id = unclaim(fd, 0, 0, "plug");
	ASSERT_TRUE(goes_offline(fd));
	ASSERT_EQ(0, remove_group(GROUP));
	p.fd = fd;
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	EXPECT_TRUE(becomes_gone(fd));
	ASSERT_EQ(0, write_long(ONLINE, 1));
	usleep(300000);
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE));
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_EQ(POLLHUP, polled(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

static int mount_v1(void)
{
	return mount("none", V1, "cgroup", 0, "perf_event");
}

/* The hierarchy of perf_event, 0 for that of cgroup v2 */
static long hierarchy(const char *controller)
{
	FILE *f = fopen("/proc/cgroups", "r");
	char line[128], name[64];
	long id, found = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", name, &id) == 2 && !strcmp(name, controller))
			found = id;
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * Cgroup v2 has perf_event again. /proc/cgroups tells so a moment before the cgroups have it:
 * a new cgroup waits for the mutex that the change holds.
 */
static bool controller_returns(void)
{
	return becomes(hierarchy, "perf_event", 0) && !mkdir(INNER, 0755) && !rmdir(INNER);
}

/* perf_event is taken from cgroup v2: the event has gone, although the directory is there. */
TEST_F(cgroup, controller_is_taken)
{
	struct pollfd p = { .fd = self->fd };
	int64_t id = unclaim(self->fd, 0, 0, "taken");
	int fd;

	ASSERT_LT(0, id);
	mkdir(V1, 0755);
	if (mount_v1()) {
		claim(self->fd);
		SKIP(return, "no cgroup v1");
	}
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	EXPECT_TRUE(becomes_gone(self->fd));
	EXPECT_EQ(0, access(GROUP, F_OK));
	fd = reopen(id, 0, 0);
	EXPECT_STREQ("/persistent_cgroup", cgroup_of(fd));
	ASSERT_EQ(0, umount(V1));
	EXPECT_TRUE(controller_returns());
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(self->fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);

	/* The same cgroup, with the controller again. */
	fd = open_cgroup_comm(GROUP, 0);
	ASSERT_LE(0, fd);
	id = unclaim(fd, 0, 0, "again");
	EXPECT_LT(0, id);
	EXPECT_EQ(0, state_of(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	rmdir(V1);
}

/* A cgroup that is held holds its hierarchy: unmounted, it keeps the controller. */
TEST_F(cgroup, v1_is_held)
{
	int64_t id;
	int fd, i, k;

	mkdir(V1, 0755);
	if (mount_v1())
		SKIP(return, "no cgroup v1");
	ASSERT_EQ(0, mkdir(V1_INNER, 0755));
	fd = open_cgroup_comm(V1_INNER, 0);
	ASSERT_LE(0, fd);
	id = unclaim(fd, 0, 0, "held");
	ASSERT_LT(0, id);
	close(fd);
	ASSERT_EQ(0, remove_group(V1_INNER));
	ASSERT_EQ(0, umount(V1));
	usleep(300000);
	EXPECT_LT(0, hierarchy("perf_event"));
	fd = reopen(id, 0, 0);
	EXPECT_STREQ("/inner", cgroup_of(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
	/* Mounted and unmounted again, it is destroyed, once the cgroup in it has been freed. */
	for (i = 0; i < 30 && hierarchy("perf_event"); i++) {
		ASSERT_EQ(0, mount_v1());
		ASSERT_EQ(0, umount(V1));
		/* To let it go takes a while, too. */
		for (k = 0; k < 200 && hierarchy("perf_event"); k++)
			usleep(10000);
	}
	EXPECT_TRUE(controller_returns());
	rmdir(V1);
}

/* Reads fdinfo until it is killed, outside of the namespaces of all cgroups. */
static pid_t start_reader(int fd)
{
	char path[] = OTHER "/cgroup.procs";
	pid_t pid = fork();

	if (pid)
		return pid;
	if (write_text(path, "0") || unshare(CLONE_NEWCGROUP))
		_exit(1);
	for (;;) {
		if (!*cgroup_of(fd))
			_exit(2);
	}
}

/*
 * The root of a v1 hierarchy can go while a session follows it: fdinfo finds the root that
 * is there.
 */
TEST_F_TIMEOUT(cgroup, v1_root_goes, SLOW_RACE_TIMEOUT)
{
	unsigned int i, nr = slow_rounds(5);
	pid_t readers[3];
	int64_t id;
	int fd, r;

	mkdir(V1, 0755);
	if (mount_v1())
		SKIP(return, "no cgroup v1");
	ASSERT_EQ(0, mkdir(OTHER, 0755));
	fd = open_cgroup_comm(V1, 0);
	ASSERT_LE(0, fd);
	id = unclaim(fd, 0, 0, "root");
	ASSERT_LT(0, id);
	close(fd);
	fd = reopen(id, 0, 0);
	EXPECT_STREQ("/", cgroup_of(fd));
	for (r = 0; r < 3; r++)
		readers[r] = start_reader(fd);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, umount(V1));
		if (i % 2)
			ASSERT_TRUE(becomes(hierarchy, "perf_event", 0));
		while (mount_v1())
			usleep(1000);
	}
	/* The root was never removed. */
	EXPECT_EQ(0, state_of(fd));
	ASSERT_EQ(0, umount(V1));
	EXPECT_TRUE(controller_returns());
	EXPECT_EQ(0, state_of(fd));
	EXPECT_EQ(inode(CGROUPS), cgroup_id_of(fd));
	for (r = 0; r < 3; r++) {
		int status;

		EXPECT_EQ(0, kill(readers[r], SIGKILL));
		waitpid(readers[r], &status, 0);
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_EQ(0, remove_group(OTHER));
	rmdir(V1);
}

/* It asks what an event of its CPU asks. */
TEST_F(cgroup, opener_is_checked)
{
	int64_t id = unclaim(self->fd, 0, 0, "asked");

	ASSERT_LT(0, id);
	ASSERT_EQ(0, write_long(PARANOID, 2));
	EXPECT_EQ(EACCES, as_nobody(opens, id, -1));
	EXPECT_EQ(0, opens(id, -1));
	EXPECT_EQ(id, claim(self->fd));
}

/* So do the records that it has left in a buffer, when it was freed. */
TEST_F(cgroup, records_ask)
{
	struct perf_event_attr attr = comm_attr();
	pid_t task = fork();
	void *base;
	int64_t id;
	int fd;

	if (!task) {
		if (become(NOBODY))
			_exit(1);
		pause();
		_exit(0);
	}
	/* An event of a task of nobody's on the CPU, which owns the buffer. */
	ASSERT_EQ(0, write_long(PARANOID, 2));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 10));
	fd = event_open(&attr, task, 0, -1, 0);
	ASSERT_LE(0, fd);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, fd));
	id = unclaim(fd, PERF_PERSISTENT_PARTIAL, 0, "records");
	ASSERT_LT(0, id);
	ASSERT_EQ(id, unclaim(self->fd, 0, id, ""));
	EXPECT_EQ(id, claim(self->fd));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(EACCES, as_nobody(opens, id, -1));
	EXPECT_EQ(0, opens(id, -1));
	EXPECT_EQ(id, claim(fd));
	munmap(base, DEFAULT_SIZE + PAGE);
	close(fd);
	kill(task, SIGKILL);
	waitpid(task, NULL, 0);
}

/* Cgroups that go while their sessions begin, are read and end. */
TEST_F_TIMEOUT(cgroup, races, SLOW_RACE_TIMEOUT)
{
	unsigned int i, nr = slow_rounds(5);
	struct pollfd p = { .events = 0 };
	int64_t id;
	pid_t pid;
	int fd;

	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, mkdir(INNER, 0755));
		fd = open_cgroup_comm(INNER, i % 2);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, leave_record_in(INNER, "inner"));
		pid = fork();
		if (!pid)
			_exit(remove_group(INNER) ? 1 : 0);
		id = unclaim(fd, 0, 0, "races");
		ASSERT_LT(0, id);
		if (i % 3) {
			p.fd = reopen(id, i % 2, 0);
			close(fd);
			/* Missed, it would be waited for in vain. */
			EXPECT_EQ(1, poll(&p, 1, 60000));
			EXPECT_EQ(POLLHUP, p.revents & POLLHUP);
			fd = p.fd;
		}
		EXPECT_EQ(id, claim(fd));
		close(fd);
		waitpid(pid, NULL, 0);
	}
}

/* One of the things that happen to a session while its cgroup goes */
static void meddle(unsigned int what, int64_t id, int consumer)
{
	struct perf_persistent_info inf;
	char buf[64];
	int fd, i;

	switch (what) {
	case 0:
		_exit(remove_group(INNER) ? 1 : 0);
	case 1:
		with_session(id, session_end);
		break;
	case 2:
		claim(consumer);
		break;
	case 3:
		with_session(id, session_freeze);
		with_session(id, session_thaw);
		break;
	default:
		for (i = 0; i < 5; i++) {
			fd = reopen(id, i % 2, 0);
			fd = fd < 0 ? dup(consumer) : fd;
			polled(fd);
			info(fd, &inf);
			/* Members of a cgroup always show one. */
			if (read(fd, buf, sizeof(buf)) < 0 || !*cgroup_of(fd) || !cgroup_id_of(fd))
				_exit(1);
			close(fd);
		}
	}
	_exit(0);
}

#define MEDDLERS	5

/*
 * A cgroup is removed while its session, with an event on each CPU, ends, is claimed, frozen,
 * thawed and read, and CPU 1 goes and returns.
 */
TEST_F_TIMEOUT(cgroup, storm, SLOW_RACE_TIMEOUT)
{
	unsigned int i, k, nr = slow_rounds(5);
	pid_t pids[MEDDLERS], plug;
	int fds[2], consumer, status;
	int64_t id;

	plug = fork();
	if (!plug) {
		for (i = 0; !access(ONLINE, W_OK); i = !i) {
			write_long(ONLINE, i);
			usleep(100000);
		}
		_exit(0);
	}
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, mkdir(INNER, 0755));
		fds[0] = open_cgroup_comm(INNER, 0);
		ASSERT_LE(0, fds[0]);
		id = unclaim(fds[0], 0, 0, "storm");
		ASSERT_LT(0, id);
		/* There may be no CPU 1, or it may go at this moment. */
		fds[1] = open_cgroup_comm(INNER, 1);
		if (fds[1] >= 0)
			unclaim(fds[1], 0, id, "");
		consumer = reopen(id, 0, 0);
		ASSERT_LE(0, consumer);
		for (k = 0; k < MEDDLERS; k++) {
			pids[k] = fork();
			if (!pids[k])
				/* The session is there to the end in each second round. */
				meddle(k == 1 && i % 2 ? 4 : k, id, consumer);
		}
		close(fds[0]);
		close(fds[1]);
		for (k = 0; k < MEDDLERS; k++) {
			waitpid(pids[k], &status, 0);
			EXPECT_EQ(0, status) TH_LOG("meddler %u in round %u", k, i);
		}
		with_session(id, session_end);
		close(consumer);
	}
	kill(plug, SIGKILL);
	waitpid(plug, NULL, 0);
	if (!access(ONLINE, W_OK))
		EXPECT_EQ(0, write_long(ONLINE, 1));
}

TEST_HARNESS_MAIN
