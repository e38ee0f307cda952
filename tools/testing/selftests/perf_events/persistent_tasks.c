// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events that follow a task: what they recorded outlives it, and is for
 * those who might have watched the task.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

/* A child that does what it is told, by letters. */
struct target {
	pid_t	pid;
	int	to;
	int	from;
};

/* Its stdin says when to end. */
static void become_program(const char *path)
{
	execl(path, "target", NULL);
	_exit(3);
}

static void target_main(int to, int from)
{
	char c;

	while (read(to, &c, 1) == 1) {
		switch (c) {
		case 'l':
			leave_record("by target");
			break;
		case 'c':
			if (!fork()) {
				leave_record("by child");
				_exit(0);
			}
			wait(NULL);
			break;
		case 'u':
			if (become(NOBODY))
				_exit(2);
			break;
		case 'd':
			prctl(PR_SET_DUMPABLE, 0);
			break;
		case 'e':
			dup2(to, 0);
			become_program("/bin/cat");
			break;
		case 'x':
			dup2(to, 0);
			become_program("/tmp/unreadable");
			break;
		}
		if (write(from, &c, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static struct target new_target(void)
{
	struct target t = {};
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return t;
	t.pid = fork();
	if (!t.pid) {
		int fd;

		/* Also the other ends of what others talk through. */
		for (fd = 3; fd < 64; fd++) {
			if (fd != to[0] && fd != from[1])
				close(fd);
		}
		target_main(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	t.to = to[1];
	t.from = from[0];
	return t;
}

static void tell(struct target *t, char c)
{
	if (write(t->to, &c, 1) != 1 || read(t->from, &c, 1) != 1)
		fprintf(stderr, "# target does not answer\n");
}

/* It does not answer: wait until it is the program. */
static void tell_exec(struct target *t, char how, const char *comm)
{
	char path[64], line[32];
	int i;

	if (write(t->to, &how, 1) != 1)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", t->pid);
	for (i = 0; i < 3000; i++) {
		FILE *f = fopen(path, "r");

		line[0] = '\0';
		if (f && fgets(line, sizeof(line), f))
			line[strcspn(line, "\n")] = '\0';
		if (f)
			fclose(f);
		if (!strcmp(line, comm))
			return;
		usleep(10000);
	}
}

static void end(struct target *t)
{
	if (!t->pid)
		return;
	close(t->to);
	close(t->from);
	waitpid(t->pid, NULL, 0);
	t->pid = 0;
}

FIXTURE(tasks)
{
	struct balance	before;
	struct target	target;
	struct limits	limits;
	/* An event of the target, not given away yet. */
	int		fd;
};

static int open_task_comm(pid_t pid)
{
	struct perf_event_attr attr = comm_attr();

	attr.task = 1;
	return event_open(&attr, pid, -1, -1, 0);
}

FIXTURE_SETUP(tasks)
{
	SKIP_WITHOUT_PERSISTENT(return);

	self->limits = take_limits();
	self->before = take_balance();
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 16));
	self->target = new_target();
	ASSERT_LT(0, self->target.pid);
	self->fd = open_task_comm(self->target.pid);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(tasks)
{
	restore_limits(&self->limits);
	end(&self->target);
	close(self->fd);
	EXPECT_BALANCE();
}

/* The buffer is there when the task is gone: opened, mapped, read, and claimed. */
TEST_F(tasks, post_mortem)
{
	int64_t id = unclaim(self->fd, 0, 0, "mortem");
	struct perf_rb_reserved reserved = {};
	struct pollfd p = { .events = 0 };
	struct perf_persistent_info inf;
	uint64_t count;
	void *base;
	int fd;

	ASSERT_LT(0, id);
	close(self->fd);
	self->fd = -1;
	EXPECT_STREQ("", sysfs("sessions/%s/cpus", "mortem"));
	EXPECT_STREQ("1", sysfs("sessions/%s/nr_events", "mortem"));
	EXPECT_STREQ("0", sysfs("sessions/%s/state", "mortem"));
	p.fd = reopen(id, -1, 0);
	ASSERT_LE(0, p.fd);
	EXPECT_REFUSED(ENOENT, reopen(id, 0, 0));
	ASSERT_EQ(0, info(p.fd, &inf));
	EXPECT_EQ(-1, inf.cpu);
	EXPECT_EQ(0, inf.state);
	EXPECT_EQ(1, inf.nr_events);

	leave_record("by creator");
	tell(&self->target, 'l');
	EXPECT_EQ(0, poll(&p, 1, 0));
	end(&self->target);

	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(p.fd));
	EXPECT_STREQ("2", sysfs("sessions/%s/state", "mortem"));
	close(p.fd);

	fd = reopen(id, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_EQ(8, read(fd, &count, 8));
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, &reserved));
	EXPECT_EQ(DEFAULT_SIZE, reserved.data_size);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(PERF_RECORD_EXIT, newest_type(base));
	EXPECT_TRUE(recorded(base, "by target"));
	EXPECT_FALSE(recorded(base, "by creator"));

	EXPECT_EQ(id, claim(fd));
	EXPECT_STREQ("", sysfs("sessions/%s/id", "mortem"));
	EXPECT_REFUSED(ENOENT, reopen(id, -1, 0));
	close(fd);
	/* Mapped, it is still there. */
	EXPECT_TRUE(recorded(base, "by target"));
	munmap(base, DEFAULT_SIZE + PAGE);
}

static int64_t watch_myself(void *unused)
{
	int64_t id = unclaim(open_task_comm(0), 0, 0, "own");

	leave_record("last words");
	return id;
}

/* A task that watches itself, and is killed. */
TEST_F(tasks, own_post_mortem)
{
	int64_t id = made_by_killed(watch_myself, NULL, SIGKILL);
	int fd;

	ASSERT_LT(0, id);
	fd = reopen(id, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_TRUE(holds_record(fd, DEFAULT_SIZE, "last words"));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

static int64_t half_watch_myself(void *unused)
{
	return unclaim(open_task_comm(0), PERF_PERSISTENT_PARTIAL, 0, "half");
}

/* Nothing stays of a task that is killed while it builds a session of itself. */
TEST_F(tasks, killed_half_way)
{
	int64_t id = made_by_killed(half_watch_myself, NULL, SIGKILL);
	int fd;

	ASSERT_LT(0, id);
	EXPECT_REFUSED(ENOENT, reopen(id, -1, 0));
	fd = open_comm(0);
	EXPECT_LT(0, unclaim(fd, 0, 0, "half"));
	EXPECT_LT(0, claim(fd));
	close(fd);
}

/* UNCLAIM after the end of the task: what it recorded is still there. */
TEST_F(tasks, given_away_afterwards)
{
	void *mine = map(self->fd, 4 * PAGE, PROT_READ);
	int64_t id;
	int fd;

	ASSERT_NE(MAP_FAILED, mine);
	tell(&self->target, 'l');
	end(&self->target);
	id = unclaim(self->fd, 0, 0, "late");
	ASSERT_LT(0, id);
	munmap(mine, 5 * PAGE);
	fd = reopen(id, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_TRUE(holds_record(fd, 4 * PAGE, "by target"));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* exec() of another program ends nothing; fork() adds nothing. */
TEST_F(tasks, exec_and_fork)
{
	int64_t id = unclaim(self->fd, 0, 0, "exec");
	int fd = reopen(id, -1, 0), i;
	void *base;

	ASSERT_LE(0, fd);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	tell(&self->target, 'l');
	tell(&self->target, 'c');
	EXPECT_TRUE(recorded(base, "by target"));
	EXPECT_FALSE(recorded(base, "by child"));
	tell_exec(&self->target, 'e', "cat");
	EXPECT_EQ(0, state_of(fd));
	/* exec() gives the name before it records it. */
	for (i = 0; i < 3000 && !recorded(base, "cat"); i++)
		usleep(10000);
	EXPECT_TRUE(recorded(base, "cat"));
	end(&self->target);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_TRUE(recorded(base, "by target"));
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* Copies /bin/cat to where others may execute, but not read it. */
static int make_unreadable(void)
{
	return system("cp /bin/cat /tmp/unreadable && chmod 0711 /tmp/unreadable");
}

/* A program that the user may not read is not recorded, and what came before is kept. */
TEST_F(tasks, exec_of_secret)
{
	int fd, other, i;
	int64_t id;
	void *base;

	ASSERT_EQ(0, make_unreadable());
	tell(&self->target, 'u');
	id = unclaim(self->fd, 0, 0, "secret");
	fd = reopen(id, -1, 0);
	ASSERT_LE(0, fd);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	tell(&self->target, 'l');
	EXPECT_EQ(0, state_of(fd));
	tell_exec(&self->target, 'x', "unreadable");
	/* exec() gives the name before it takes the events away. */
	for (i = 0; i < 1000 && !state_of(fd); i++)
		usleep(10000);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_TRUE(recorded(base, "by target"));
	EXPECT_EQ(0, kill(self->target.pid, 0));
	other = reopen(id, -1, 0);
	EXPECT_LE(0, other);
	close(other);
	munmap(base, DEFAULT_SIZE + PAGE);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	unlink("/tmp/unreadable");
}

/* What follows a task on one CPU is told from what records all of that CPU. */
TEST_F(tasks, on_one_cpu)
{
	struct perf_event_attr attr = comm_attr();
	int fd = event_open(&attr, self->target.pid, 0, -1, 0);
	struct perf_persistent_info inf;

	ASSERT_LT(0, unclaim(fd, 0, 0, "on_one"));
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.cpu);
	EXPECT_EQ(PERF_PERSISTENT_INFO_TASK, inf.flags);
	end(&self->target);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(PERF_PERSISTENT_INFO_TASK, inf.flags);
	EXPECT_LT(0, claim(fd));
	close(fd);
}

/* Many tasks, a CPU, and a shared buffer, in one session. */
TEST_F(tasks, several)
{
	struct target second = new_target();
	int cpu = open_comm(0), two, shared, fd;
	struct perf_persistent_info inf;
	void *mine, *base;
	int64_t id;

	two = open_task_comm(second.pid);
	shared = open_task_comm(self->target.pid);
	mine = map(self->fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mine);
	ASSERT_EQ(0, ioctl(shared, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	/* Another task's buffer is not for it. */
	EXPECT_REFUSED(EINVAL, ioctl(two, PERF_EVENT_IOC_SET_OUTPUT, self->fd));

	id = unclaim(self->fd, PERF_PERSISTENT_PARTIAL, 0, "several");
	ASSERT_LT(0, id);
	EXPECT_EQ(id, unclaim(cpu, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_EQ(id, unclaim(two, PERF_PERSISTENT_PARTIAL, id, ""));
	EXPECT_EQ(id, unclaim(shared, 0, id, ""));
	munmap(mine, 5 * PAGE);
	EXPECT_STREQ("0", sysfs("sessions/%s/cpus", "several"));
	EXPECT_STREQ("4", sysfs("sessions/%s/nr_events", "several"));

	fd = reopen(id, -1, 2);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(2, inf.index);
	EXPECT_EQ(3, inf.nr_events);
	EXPECT_EQ(0, inf.buffer_index);
	EXPECT_EQ(PERF_PERSISTENT_INFO_TASK, inf.flags);
	close(fd);

	fd = reopen(id, 0, 0);
	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(0, inf.flags);
	close(fd);

	/* One goes, the other is recorded on. */
	tell(&self->target, 'l');
	end(&self->target);
	fd = reopen(id, -1, 0);
	base = map(fd, 4 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(2, nr_records(base, "by target"));
	munmap(base, 5 * PAGE);
	close(fd);
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(shared));
	EXPECT_STREQ("2", sysfs("sessions/%s/state", "several"));
	tell(&second, 'l');
	fd = reopen(id, -1, 1);
	base = map(fd, DEFAULT_SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(0, state_of(fd));
	EXPECT_EQ(1, nr_records(base, "by target"));
	munmap(base, DEFAULT_SIZE + PAGE);

	EXPECT_EQ(id, claim(fd));
	EXPECT_EQ(id, claim(cpu));
	EXPECT_EQ(id, claim(self->fd));
	EXPECT_EQ(id, claim(shared));
	close(fd);
	close(cpu);
	close(two);
	close(shared);
	end(&second);
}

static int opens(int64_t id, int unused)
{
	int fd = reopen(id, -1, 0);

	return fd < 0 ? errno : 0;
}

static int watches_own(int64_t unused, int pid)
{
	int fd = open_task_comm(pid);

	if (fd < 0)
		return errno;
	return unclaim(fd, 0, 0, "watch") > 0 ? 0 : errno;
}

static int claims(int64_t id, int unused)
{
	return claim(reopen(id, -1, 0)) == id ? 0 : errno;
}

/* One's own tasks, and nobody else's, even if nothing else may be monitored. */
TEST_F(tasks, own_tasks)
{
	int64_t id;

	ASSERT_EQ(0, write_long(PARANOID, 2));
	EXPECT_EQ(EACCES, as_nobody(watches_own, 0, self->target.pid));
	tell(&self->target, 'u');
	/* What changes its user is not to be watched until it execs. */
	EXPECT_EQ(EACCES, as_nobody(watches_own, 0, self->target.pid));
	tell_exec(&self->target, 'e', "cat");

	EXPECT_EQ(EACCES, as_user(SOMEBODY, watches_own, 0, self->target.pid));
	EXPECT_EQ(0, as_nobody(watches_own, 0, self->target.pid));
	id = strtol(sysfs("sessions/%s/id", NOBODYS("watch")), NULL, 10);
	ASSERT_LT(0, id);
	EXPECT_EQ(0, as_nobody(opens, id, -1));
	EXPECT_EQ(EACCES, as_user(SOMEBODY, opens, id, -1));
	EXPECT_EQ(0, opens(id, -1));
	ASSERT_EQ(0, write_long(PARANOID, -1));
	EXPECT_EQ(EACCES, as_user(SOMEBODY, opens, id, -1));
	ASSERT_EQ(0, write_long(PARANOID, 2));
	end(&self->target);

	/* Dead, it is whose it was. */
	EXPECT_EQ(EACCES, as_user(SOMEBODY, opens, id, -1));
	EXPECT_EQ(0, as_nobody(opens, id, -1));
	EXPECT_EQ(0, as_nobody(claims, id, -1));
	EXPECT_STREQ("", sysfs("sessions/%s/id", NOBODYS("watch")));
}

/* The right to watch the task is asked for again each time, also of its owner. */
TEST_F(tasks, opener_is_checked)
{
	struct target t = new_target();
	int64_t id;
	pid_t pid;
	int status;

	ASSERT_EQ(0, write_long(PARANOID, 2));
	/* A session of nobody's, of a task that nobody may not look into. */
	pid = fork();
	if (!pid) {
		struct target own;
		int fd;

		if (become(NOBODY))
			_exit(99);
		/* A process of nobody's that was born as such: dumpable. */
		prctl(PR_SET_DUMPABLE, 1);
		own = new_target();
		fd = open_task_comm(own.pid);
		id = unclaim(fd, 0, 0, "checked");
		if (id < 0)
			_exit(1);
		fd = reopen(id, -1, 0);
		if (fd < 0)
			_exit(2);
		tell(&own, 'd');
		if (refused(EACCES, reopen(id, -1, 0)))
			_exit(3);
		/* Nor after its death. */
		end(&own);
		if (refused(EACCES, reopen(id, -1, 0)))
			_exit(4);
		/* What one has, one has. */
		if (state_of(fd) != PERF_PERSISTENT_STATE_GONE)
			_exit(5);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	EXPECT_EQ(0, WEXITSTATUS(status));
	id = strtol(sysfs("sessions/%s/id", NOBODYS("checked")), NULL, 10);
	ASSERT_LT(0, id);
	EXPECT_EQ(0, claims(id, -1));

	/* Nor does an fd that was passed on help. */
	{
		int fd = open_task_comm(t.pid);

		pid = fork();
		if (!pid)
			_exit(become(NOBODY) ?: refused(EACCES, unclaim(fd, 0, 0, "passed")));
		waitpid(pid, &status, 0);
		EXPECT_EQ(0, WEXITSTATUS(status));
		close(fd);
	}
	end(&t);
}

/* Tasks that die while they are given away, and looked at. */
TEST_F(tasks, die_meanwhile)
{
	int i, fd, again;
	int64_t id;

	for (i = 0; i < 50; i++) {
		struct target t = new_target();

		fd = open_task_comm(t.pid);
		ASSERT_LE(0, fd);
		tell(&t, 'l');
		/* It reads end-of-file, and exits, when it is on a CPU. */
		close(t.to);
		id = unclaim(fd, 0, 0, "dying");
		ASSERT_LT(0, id);
		close(fd);
		again = reopen(id, -1, 0);
		ASSERT_LE(0, again);
		state_of(again);
		t.to = -1;
		end(&t);
		EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(again));
		EXPECT_EQ(id, claim(again));
		close(again);
	}
}

TEST_HARNESS_MAIN
