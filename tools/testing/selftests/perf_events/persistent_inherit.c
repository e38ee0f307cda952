// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events of a task on each CPU, which its threads and children inherit: all of
 * them are recorded, whichever dies first, and the session is there when the last is gone.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "fail_nth.h"
#include "persistent_session.h"
#include "persistent_spaces.h"

#define CPUS		2
#define NR_LINES	6

/* A tree of tasks, each of which does what it is told on its line. */
enum order { LEAVE, FORK, FAIL, THREAD, WAIT, YIELD, BECOME, UNREADABLE, EXIT };

struct call {
	enum order	order;
	int		arg;
};

static struct line {
	int	to[2];
	int	from[2];
} lines[NR_LINES];

static void serve(int nr);

static void *serve_thread(void *arg)
{
	serve((struct line *)arg - lines);
	return NULL;
}

/* Returns its pid, and 0 in the child when that has ended. */
static pid_t serve_child(int nr)
{
	pid_t pid = fork();

	if (!pid) {
		serve(nr);
		_exit(0);
	}
	return pid;
}

/* Forks, each time with another allocation that fails. Returns how many did. */
static int fail_to_fork(void)
{
	int nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC), n;
	bool failed = true;
	pid_t pid;

	for (n = 1; failed; n++) {
		arm(nth, n);
		pid = fork();
		if (!pid)
			_exit(0);
		failed = disarm(nth);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	close(nth);
	return n;
}

static int obey(struct call *call)
{
	pthread_t thread;
	char name[16];
	int i;

	switch (call->order) {
	case LEAVE:
		snprintf(name, sizeof(name), "by %d", (int)gettid());
		pin_to_cpu(call->arg);
		leave_record(name);
		return gettid();
	case FORK:
		return serve_child(call->arg);
	case FAIL:
		return fail_to_fork();
	case THREAD:
		return pthread_create(&thread, NULL, serve_thread, &lines[call->arg]);
	case WAIT:
		return waitpid(-1, NULL, 0);
	case YIELD:
		for (i = 0; i < call->arg; i++)
			sched_yield();
		return 0;
	case BECOME:
		return become(call->arg);
	default:
		return 0;
	}
}

static void serve(int nr)
{
	struct call call;
	int ret;

	while (read(lines[nr].to[0], &call, sizeof(call)) == sizeof(call)) {
		if (call.order == UNREADABLE) {
			dup2(lines[nr].to[0], 0);
			execl("/tmp/unreadable", "unreadable", NULL);
		}
		ret = obey(&call);
		if (write(lines[nr].from[1], &ret, sizeof(ret)) != sizeof(ret))
			break;
		/* The task alone, not its process. */
		if (call.order == EXIT)
			syscall(__NR_exit, 0);
	}
	_exit(1);
}

static void order(int nr, enum order what, int arg)
{
	struct call call = { what, arg };

	if (write(lines[nr].to[1], &call, sizeof(call)) != sizeof(call))
		fprintf(stderr, "# task %d cannot be told\n", nr);
}

static int hear(int nr)
{
	int ret = -1;

	if (read(lines[nr].from[0], &ret, sizeof(ret)) != sizeof(ret))
		fprintf(stderr, "# task %d does not answer\n", nr);
	return ret;
}

static int tell(int nr, enum order what, int arg)
{
	order(nr, what, arg);
	return hear(nr);
}

static struct perf_event_attr inherit_attr(void)
{
	struct perf_event_attr attr = comm_attr();

	attr.inherit = 1;
	attr.task = 1;
	return attr;
}

FIXTURE(inherit)
{
	struct balance	before;
	struct limits	limits;
	pid_t		target;
	/* Of the events of the target, not given away yet; then of consumers */
	int		fd[CPUS];
	void		*base[CPUS];
	int64_t		id;
};

FIXTURE_SETUP(inherit)
{
	struct perf_event_attr attr = inherit_attr();
	int i;

	SKIP_WITHOUT_PERSISTENT(return);

	self->limits = take_limits();
	self->before = take_balance();
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 16));
	/* Orphans are waited for. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (i = 0; i < NR_LINES; i++) {
		ASSERT_EQ(0, pipe2(lines[i].to, O_CLOEXEC));
		ASSERT_EQ(0, pipe2(lines[i].from, O_CLOEXEC));
	}
	self->target = serve_child(0);
	ASSERT_LT(0, self->target);
	/* All that it starts is in its process group. */
	ASSERT_EQ(0, setpgid(self->target, 0));
	for (i = 0; i < CPUS; i++) {
		self->fd[i] = event_open(&attr, self->target, i, -1, 0);
		ASSERT_LE(0, self->fd[i]);
	}
}

static void end_all(void)
{
	int i;

	while (wait(NULL) > 0)
		;
	for (i = 0; i < NR_LINES; i++) {
		close(lines[i].to[0]);
		close(lines[i].to[1]);
		close(lines[i].from[0]);
		close(lines[i].from[1]);
	}
}

FIXTURE_TEARDOWN(inherit)
{
	int i;

	for (i = 0; i < CPUS; i++) {
		if (self->base[i])
			munmap(self->base[i], DEFAULT_SIZE + PAGE);
		close(self->fd[i]);
	}
	if (self->id > 0)
		with_session(self->id, session_end);
	kill(-self->target, SIGKILL);
	end_all();
	restore_limits(&self->limits);
	EXPECT_BALANCE();
}

/* A session of the target's events, each opened again and mapped. */
static int make_session(struct _test_data_inherit *self, const char *name)
{
	int i, fd;

	self->id = unclaim(self->fd[0], PERF_PERSISTENT_PARTIAL, 0, name);
	if (self->id < 0 || unclaim(self->fd[1], 0, self->id, "") != self->id)
		return -1;
	for (i = 0; i < CPUS; i++) {
		fd = reopen(self->id, i, 0);
		if (fd < 0)
			return -1;
		close(self->fd[i]);
		self->fd[i] = fd;
		self->base[i] = map(fd, DEFAULT_SIZE, PROT_READ);
		if (self->base[i] == MAP_FAILED)
			return -1;
	}
	return 0;
}

static uint64_t head_of(void *base)
{
	struct perf_event_mmap_page *page = base;

	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* On each CPU, does the task leave a record in its buffer, and in that alone? */
static bool is_recorded(struct _test_data_inherit *self, int nr)
{
	uint64_t heads[CPUS];
	const char *newest;
	char name[16];
	bool written;
	int cpu, i;

	for (cpu = 0; cpu < CPUS; cpu++) {
		for (i = 0; i < CPUS; i++)
			heads[i] = head_of(self->base[i]);
		snprintf(name, sizeof(name), "by %d", tell(nr, LEAVE, cpu));
		for (i = 0; i < CPUS; i++) {
			written = heads[i] != head_of(self->base[i]);
			if (i == cpu ? !written : written)
				return false;
		}
		newest = nth_record(self->base[cpu], 0);
		if (!newest || strcmp(newest, name))
			return false;
	}
	return true;
}

static bool is_gone(struct _test_data_inherit *self)
{
	int i;

	for (i = 0; i < CPUS; i++) {
		if (state_of(self->fd[i]) != PERF_PERSISTENT_STATE_GONE ||
		    !(polled(self->fd[i]) & POLLHUP))
			return false;
	}
	return true;
}

static bool runs(struct _test_data_inherit *self)
{
	int i;

	for (i = 0; i < CPUS; i++) {
		if (state_of(self->fd[i]) || polled(self->fd[i]) & POLLHUP)
			return false;
	}
	return true;
}

/* Threads, children and theirs, that come before UNCLAIM and after. */
TEST_F(inherit, all_are_recorded)
{
	struct perf_persistent_info inf;
	int i;

	ASSERT_LT(0, tell(0, FORK, 1));
	ASSERT_EQ(0, make_session(self, "all"));
	EXPECT_STREQ("0-1", sysfs("sessions/%s/cpus", "all"));
	EXPECT_STREQ("2", sysfs("sessions/%s/nr_events", "all"));
	ASSERT_EQ(0, tell(0, THREAD, 2));
	ASSERT_LT(0, tell(1, FORK, 3));
	ASSERT_LT(0, tell(2, FORK, 4));
	ASSERT_EQ(0, tell(3, THREAD, 5));
	for (i = 0; i < NR_LINES; i++)
		EXPECT_TRUE(is_recorded(self, i)) TH_LOG("task %d", i);
	for (i = 0; i < CPUS; i++) {
		ASSERT_EQ(0, info(self->fd[i], &inf));
		EXPECT_EQ(i, inf.cpu);
		EXPECT_EQ(0, inf.index);
		EXPECT_EQ(1, inf.nr_events);
		EXPECT_EQ(0, inf.state);
	}
	/* Of a task that was not started by the target there is nothing. */
	leave_record("by creator");
	EXPECT_FALSE(recorded(self->base[0], "by creator"));
	EXPECT_FALSE(recorded(self->base[1], "by creator"));
}

/* GONE is told when the last task has exited, and not before. */
TEST_F(inherit, gone_with_the_last)
{
	struct pollfd p = { .events = 0 };
	pid_t first, second, late;
	char name[16];

	ASSERT_EQ(0, make_session(self, "last"));
	first = tell(0, FORK, 1);
	ASSERT_LT(0, first);
	tell(0, EXIT, 0);
	ASSERT_EQ(self->target, waitpid(self->target, NULL, 0));
	EXPECT_TRUE(runs(self));
	EXPECT_TRUE(is_recorded(self, 1));

	/* What it has inherited it passes on. */
	second = tell(1, FORK, 2);
	ASSERT_LT(0, second);
	tell(1, EXIT, 0);
	ASSERT_EQ(first, waitpid(first, NULL, 0));
	EXPECT_TRUE(runs(self));
	EXPECT_STREQ("0", sysfs("sessions/%s/state", "last"));
	EXPECT_TRUE(is_recorded(self, 2));

	late = tell(2, LEAVE, 1);
	p.fd = self->fd[1];
	EXPECT_EQ(0, poll(&p, 1, 0));
	order(2, EXIT, 0);
	EXPECT_EQ(1, poll(&p, 1, 60000));
	EXPECT_EQ(POLLHUP, p.revents);
	ASSERT_EQ(second, waitpid(second, NULL, 0));
	EXPECT_TRUE(is_gone(self));
	EXPECT_STREQ("2", sysfs("sessions/%s/state", "last"));
	snprintf(name, sizeof(name), "by %d", late);
	EXPECT_TRUE(holds_record(self->fd[1], DEFAULT_SIZE, name));
	/* A later task does not inherit anything from the dead. */
	leave_record("by creator");
	EXPECT_FALSE(recorded(self->base[0], "by creator"));
}

/* Wait until a thread has exited. Before that, it leaves a record of its own in a buffer. */
static bool is_zombie(pid_t pid)
{
	char path[64], text[256];
	const char *state;
	ssize_t len;
	int i, fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (i = 0; i < 3000; i++) {
		fd = open(path, O_RDONLY);
		len = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (len <= 0)
			return false;
		text[len] = '\0';
		state = strrchr(text, ')');
		if (state && state[1] == ' ' && state[2] == 'Z')
			return true;
		usleep(10000);
	}
	return false;
}

/* The thread that was opened dies; those that it has started go on. */
TEST_F(inherit, leader_exits)
{
	char path[64];
	int i, tid;

	ASSERT_EQ(0, make_session(self, "leader"));
	ASSERT_EQ(0, tell(0, THREAD, 1));
	tid = tell(1, LEAVE, 0);
	tell(0, EXIT, 0);
	ASSERT_TRUE(is_zombie(self->target));
	EXPECT_TRUE(is_recorded(self, 1));
	EXPECT_TRUE(runs(self));
	ASSERT_EQ(0, tell(1, THREAD, 2));
	tell(1, EXIT, 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", self->target, tid);
	for (i = 0; i < 3000 && !access(path, F_OK); i++)
		usleep(10000);
	EXPECT_TRUE(is_recorded(self, 2));
	EXPECT_TRUE(runs(self));
	tell(2, EXIT, 0);
	ASSERT_EQ(self->target, waitpid(self->target, NULL, 0));
	EXPECT_TRUE(is_gone(self));
}

/*
 * Two tasks that switch to each other exchange their contexts, and with that the member and
 * its child. Whoever exits first, the other one is recorded.
 */
TEST_F(inherit, contexts_are_exchanged)
{
	int round, child, parent, left;
	pid_t pid;

	ASSERT_EQ(0, make_session(self, "exchanged"));
	/* The orders in which they exit alternate; the one that stays starts the next. */
	for (round = 0, parent = 0; round < 40; round++) {
		child = (parent + 1) % NR_LINES;
		pid = tell(parent, FORK, child);
		ASSERT_LT(0, pid);
		tell(parent, LEAVE, round % CPUS);
		tell(child, LEAVE, round % CPUS);
		/* Both run on this CPU, so each switch is from one to the other. */
		order(parent, YIELD, 100 + round);
		order(child, YIELD, 100 + round);
		hear(parent);
		hear(child);
		if (round % 4 < 2) {
			left = parent;
			tell(child, EXIT, 0);
			ASSERT_EQ(pid, tell(parent, WAIT, 0));
		} else {
			left = child;
			tell(parent, EXIT, 0);
			ASSERT_LT(0, waitpid(-1, NULL, 0));
		}
		ASSERT_TRUE(runs(self)) TH_LOG("round %d", round);
		ASSERT_TRUE(is_recorded(self, left)) TH_LOG("round %d", round);
		parent = left;
	}
	tell(parent, EXIT, 0);
	ASSERT_LT(0, waitpid(-1, NULL, 0));
	EXPECT_TRUE(is_gone(self));
}

/* The creator's ENABLE and DISABLE reach all, also if the member itself is at an end. */
TEST_F(inherit, enable_and_disable)
{
	int creator = dup(self->fd[0]);
	uint64_t before, after;

	ASSERT_EQ(0, make_session(self, "enable"));
	ASSERT_LT(0, tell(0, FORK, 1));
	tell(1, LEAVE, 0);
	ASSERT_EQ(0, ioctl(creator, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(self->fd[0]));
	tell(0, EXIT, 0);
	ASSERT_EQ(self->target, waitpid(self->target, NULL, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_DISABLED, state_of(self->fd[0]));
	EXPECT_EQ(0, state_of(self->fd[1]));
	/* What is disabled is inherited as such. */
	ASSERT_LT(0, tell(1, FORK, 2));
	before = head_of(self->base[0]);
	tell(1, LEAVE, 0);
	tell(2, LEAVE, 0);
	after = head_of(self->base[0]);
	EXPECT_EQ(before, after);

	ASSERT_EQ(0, ioctl(creator, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(runs(self));
	EXPECT_TRUE(is_recorded(self, 1));
	EXPECT_TRUE(is_recorded(self, 2));
	tell(1, EXIT, 0);
	tell(2, EXIT, 0);
	while (wait(NULL) > 0)
		;
	EXPECT_TRUE(is_gone(self));
	close(creator);
}

/* A frozen session gets nothing of any task. */
TEST_F(inherit, freeze)
{
	uint64_t before, after;

	ASSERT_EQ(0, make_session(self, "freeze"));
	ASSERT_LT(0, tell(0, FORK, 1));
	ASSERT_EQ(0, with_session(self->id, session_freeze));
	before = head_of(self->base[0]);
	ASSERT_LT(0, tell(1, FORK, 2));
	tell(0, LEAVE, 0);
	tell(1, LEAVE, 0);
	tell(2, LEAVE, 0);
	after = head_of(self->base[0]);
	EXPECT_EQ(before, after);
	EXPECT_EQ(PERF_PERSISTENT_STATE_FROZEN, state_of(self->fd[0]));
	ASSERT_EQ(0, with_session(self->id, session_thaw));
	EXPECT_TRUE(is_recorded(self, 0));
	EXPECT_TRUE(is_recorded(self, 1));
	EXPECT_TRUE(is_recorded(self, 2));
}

/* While a CPU is offline, the tasks are recorded where they are, and there again later. */
TEST_F(inherit, hotplug)
{
	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");
	ASSERT_EQ(0, make_session(self, "hotplug"));
	ASSERT_LT(0, tell(0, FORK, 1));
	EXPECT_TRUE(is_recorded(self, 1));
	pin_to_cpu(0);
	ASSERT_EQ(0, write_long(ONLINE, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_OFFLINE, state_of(self->fd[1]));
	EXPECT_EQ(0, state_of(self->fd[0]));
	ASSERT_LT(0, tell(1, FORK, 2));
	ASSERT_EQ(0, write_long(ONLINE, 1));
	EXPECT_TRUE(runs(self));
	EXPECT_TRUE(is_recorded(self, 0));
	EXPECT_TRUE(is_recorded(self, 1));
	EXPECT_TRUE(is_recorded(self, 2));
}

/* A program that its user may not read is not recorded; the other tasks are. */
TEST_F(inherit, exec_of_secret)
{
	char path[64], comm[32] = "";
	pid_t pid;
	FILE *f;
	int i;

	ASSERT_EQ(0, system("cp /bin/cat /tmp/unreadable && chmod 0711 /tmp/unreadable"));
	ASSERT_EQ(0, make_session(self, "secret"));
	ASSERT_EQ(0, tell(0, BECOME, NOBODY));
	pid = tell(0, FORK, 1);
	ASSERT_LT(0, pid);
	tell(0, LEAVE, 0);
	tell(1, LEAVE, 0);
	order(1, UNREADABLE, 0);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	for (i = 0; i < 3000 && strcmp(comm, "unreadable\n"); i++) {
		usleep(10000);
		f = fopen(path, "r");
		if (!f || !fgets(comm, sizeof(comm), f))
			comm[0] = '\0';
		if (f)
			fclose(f);
	}
	EXPECT_STREQ("unreadable\n", comm);
	/* exec() gives the name before it records it; an exit is the last of its records. */
	for (i = 0; i < 3000 && newest_type(self->base[0]) != PERF_RECORD_EXIT; i++)
		usleep(10000);
	EXPECT_TRUE(runs(self));
	EXPECT_TRUE(is_recorded(self, 0));

	/* It still runs, and is not one of the tasks that are followed. */
	tell(0, EXIT, 0);
	ASSERT_EQ(self->target, waitpid(self->target, NULL, 0));
	for (i = 0; i < 1000 && !is_gone(self); i++)
		usleep(10000);
	EXPECT_TRUE(is_gone(self));
	EXPECT_EQ(0, kill(pid, 0));
	kill(pid, SIGKILL);
	unlink("/tmp/unreadable");
}

/* A fork() that fails leaves no child of the event behind. */
TEST_F(inherit, failed_forks)
{
	if (access("/proc/thread-self/fail-nth", W_OK) ||
	    write_text(DEBUGFS "/failslab/ignore-gfp-wait", "N") ||
	    write_text(DEBUGFS "/fail_page_alloc/ignore-gfp-wait", "N") ||
	    write_text(DEBUGFS "/fail_page_alloc/min-order", "0"))
		SKIP(return, "no CONFIG_FAULT_INJECTION");
	write_text(DEBUGFS "/failslab/verbose", "0");
	write_text(DEBUGFS "/fail_page_alloc/verbose", "0");

	ASSERT_EQ(0, make_session(self, "fails"));
	/* It cannot fork without memory for both events, their contexts and more. */
	EXPECT_LT(20, tell(0, FAIL, 0));
	EXPECT_TRUE(runs(self));
	EXPECT_TRUE(is_recorded(self, 0));
	ASSERT_LT(0, tell(0, FORK, 1));
	EXPECT_TRUE(is_recorded(self, 1));
	tell(1, EXIT, 0);
	tell(0, EXIT, 0);
	while (wait(NULL) > 0)
		;
	EXPECT_TRUE(is_gone(self));
}

/* One buffer, and one writer at a time. */
TEST_F(inherit, refused)
{
	struct perf_event_attr attr = inherit_attr();
	int fd;

	/* Without a buffer of its own, UNCLAIM would make one. */
	fd = event_open(&attr, self->target, -1, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "refused"));
	close(fd);

	fd = event_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	EXPECT_REFUSED(EINVAL, unclaim(fd, 0, 0, "refused"));
	close(fd);
}

/* Without attr.inherit, an event of a task on one CPU is that of the task alone. */
TEST_F(inherit, one_task_on_one_cpu)
{
	struct perf_event_attr attr = comm_attr();
	int fd = event_open(&attr, self->target, 1, -1, 0);
	int64_t id = unclaim(fd, 0, 0, "one");
	char name[16];

	ASSERT_LT(0, id);
	ASSERT_LT(0, tell(0, FORK, 1));
	snprintf(name, sizeof(name), "by %d", tell(0, LEAVE, 1));
	EXPECT_TRUE(holds_record(fd, DEFAULT_SIZE, name));
	snprintf(name, sizeof(name), "by %d", tell(1, LEAVE, 1));
	EXPECT_FALSE(holds_record(fd, DEFAULT_SIZE, name));
	EXPECT_EQ(0, state_of(fd));
	tell(0, EXIT, 0);
	ASSERT_EQ(self->target, waitpid(self->target, NULL, 0));
	EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd));
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

static int opens_cpu_0(int64_t id, int unused)
{
	int fd = reopen(id, 0, 0), err = fd < 0 ? errno : 0;

	close(fd);
	return err;
}

/* A process of @uid's, which may be looked into by that user. */
static pid_t new_process_of(uid_t uid)
{
	int ready[2];
	pid_t pid;
	char c;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		if (become(uid))
			_exit(99);
		prctl(PR_SET_DUMPABLE, 1);
		close(ready[0]);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	/* The end of file says that it is who it is to be. */
	if (read(ready[0], &c, 1))
		pid = -1;
	close(ready[0]);
	return pid;
}

struct watched {
	pid_t	one;
	pid_t	other;
	pid_t	creator;
	int64_t	id;
	int	release;
};

/* A session of nobody's with two tasks of nobody's, whose events share a buffer. */
static int watch_two(struct watched *w)
{
	struct perf_event_attr attr = inherit_attr();
	int from[2], to[2];
	char c;

	if (pipe(from) || pipe(to))
		return -1;
	w->creator = fork();
	if (!w->creator) {
		int first, second;

		if (become(NOBODY))
			_exit(99);
		first = event_open(&attr, w->one, 0, -1, 0);
		second = event_open(&attr, w->other, 0, -1, 0);
		if (map(first, 4 * PAGE, PROT_READ) == MAP_FAILED ||
		    ioctl(second, PERF_EVENT_IOC_SET_OUTPUT, first))
			_exit(98);
		w->id = unclaim(first, PERF_PERSISTENT_PARTIAL, 0, "two");
		if (unclaim(second, 0, w->id, "") < 0)
			_exit(97);
		if (write(from[1], &w->id, sizeof(w->id)) != sizeof(w->id))
			_exit(96);
		/* Then the second is claimed, and freed. */
		if (read(to[0], &c, 1) != 1 || claim(second) < 0 || close(second))
			_exit(95);
		if (write(from[1], &w->id, sizeof(w->id)) != sizeof(w->id))
			_exit(94);
		pause();
		_exit(0);
	}
	close(from[1]);
	close(to[0]);
	w->release = to[1];
	if (read(from[0], &w->id, sizeof(w->id)) != sizeof(w->id))
		w->id = -1;
	return from[0];
}

/* A reader must be allowed to watch all tasks of a buffer, also after one is freed. */
TEST_F(inherit, all_tasks_are_asked_for)
{
	struct watched w = { .one = new_process_of(NOBODY), .other = new_process_of(NOBODY) };
	int answers;
	int64_t id;

	ASSERT_LT(0, w.one);
	ASSERT_LT(0, w.other);
	ASSERT_EQ(0, write_long(PARANOID, 2));
	answers = watch_two(&w);
	ASSERT_LT(0, w.id);
	EXPECT_EQ(0, as_nobody(opens_cpu_0, w.id, -1));
	EXPECT_EQ(EACCES, as_user(SOMEBODY, opens_cpu_0, w.id, -1));

	/* Claimed and freed, it cannot be asked for: only those that may watch all may read. */
	ASSERT_EQ(1, write(w.release, "", 1));
	ASSERT_EQ(sizeof(id), read(answers, &id, sizeof(id)));
	EXPECT_EQ(EACCES, as_nobody(opens_cpu_0, w.id, -1));
	EXPECT_EQ(0, opens_cpu_0(w.id, -1));

	EXPECT_EQ(0, with_session(w.id, session_end));
	kill(w.creator, SIGKILL);
	kill(w.one, SIGKILL);
	kill(w.other, SIGKILL);
	waitpid(w.creator, NULL, 0);
	waitpid(w.one, NULL, 0);
	waitpid(w.other, NULL, 0);
	close(w.release);
	close(answers);
}

static sig_atomic_t storm_ends;

/* Starts processes and threads, which start others, until told to stop. */
static void *storm_thread(void *arg)
{
	leave_record("thread");
	return arg;
}

static void storm(void)
{
	pthread_t thread;
	pid_t pid;
	int i;

	for (i = 0; !__atomic_load_n(&storm_ends, __ATOMIC_RELAXED); i++) {
		pid = fork();
		if (!pid) {
			if (!pthread_create(&thread, NULL, storm_thread, NULL) && i % 2)
				pthread_join(thread, NULL);
			leave_record("child");
			/* An orphan now and then, which may outlive its parent. */
			if (i % 4 == 1 && !fork()) {
				leave_record("orphan");
				_exit(0);
			}
			_exit(0);
		}
		while (waitpid(-1, NULL, i % 4 ? 0 : WNOHANG) > 0)
			;
	}
	_exit(0);
}

static void end_storm(int sig)
{
	__atomic_store_n(&storm_ends, true, __ATOMIC_RELAXED);
}

/* What may meet a fork or an exit */
static void disturb(int64_t id, int creator, unsigned int *seed)
{
	bool plug = !access(ONLINE, W_OK);
	int fd = reopen(id, rand_r(seed) % CPUS, 0), session = open_session(id);
	struct perf_persistent_info inf;
	uint64_t count;

	switch (rand_r(seed) % 16) {
	case 0:
		session_freeze(session);
		session_thaw(session);
		break;
	case 1:
		if (read(fd, &count, sizeof(count)) != sizeof(count))
			fprintf(stderr, "# no count\n");
		break;
	case 2:
		ioctl(creator, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(creator, PERF_EVENT_IOC_ENABLE, 0);
		break;
	case 3:
		holds_record(fd, DEFAULT_SIZE, "child");
		break;
	case 4:
		/* Two times, so that a work item meets a CPU that goes. */
		if (plug && !write_long(ONLINE, 0) && !write_long(ONLINE, 1) &&
		    !write_long(ONLINE, 0))
			write_long(ONLINE, 1);
		break;
	default:
		info(fd, &inf);
		polled(fd);
	}
	close(fd);
	close(session);
}

/* Makes a session as a monitor, and opens it as the same user who is none any more. */
static int monitor_drops(int64_t pid, int fd)
{
	struct perf_event_attr attr = inherit_attr();

	attr.inherit = fd;
	if (become_monitor())
		return 99;
	fd = event_open(&attr, pid, 0, -1, 0);
	if (fd < 0 || unclaim(fd, 0, 0, "monitor") < 0)
		return 98;
	return drop_capabilities() ? 97 : opens_cpu_0(listed_id("monitor"), -1);
}

/*
 * The task may be watched now, but what it has started before it dropped its credentials may
 * not: this takes CAP_PERFMON, as it did when the event was opened.
 */
TEST_F(inherit, monitors_stay_monitors)
{
	pid_t pid = new_process_of(SOMEBODY);

	ASSERT_LT(0, pid);
	ASSERT_EQ(0, write_long(PARANOID, 2));
	EXPECT_EQ(EACCES, as_user(0, monitor_drops, pid, 1));
	EXPECT_EQ(0, opens_cpu_0(listed_id("monitor"), -1));
	EXPECT_EQ(0, with_session(listed_id("monitor"), session_end));
	/* It alone */
	EXPECT_EQ(0, as_user(0, monitor_drops, pid, 0));
	EXPECT_EQ(0, with_session(listed_id("monitor"), session_end));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * A monitor's events of a CPU and of a task share a buffer. The one of the CPU is claimed and
 * freed; then it is opened by way of the other, by the same user who is no monitor any more.
 */
static int cpu_leaves_task(int64_t pid, int unused)
{
	struct perf_event_attr attr = inherit_attr();
	int cpu, task;
	int64_t id;
	void *base;

	attr.inherit = 0;
	if (become_monitor())
		return 99;
	cpu = event_open(&attr, -1, 0, -1, 0);
	task = event_open(&attr, pid, 0, -1, 0);
	base = map(cpu, 4 * PAGE, PROT_READ);
	if (base == MAP_FAILED || ioctl(task, PERF_EVENT_IOC_SET_OUTPUT, cpu))
		return 98;
	id = unclaim(cpu, PERF_PERSISTENT_PARTIAL, 0, "monitor");
	if (id < 0 || unclaim(task, 0, id, "") < 0 || munmap(base, 5 * PAGE))
		return 97;
	if (claim(cpu) < 0 || close(cpu) || drop_capabilities())
		return 96;
	return reopen(id, 0, 1) < 0 ? errno : 0;
}

TEST_F(inherit, cpu_is_asked_for)
{
	pid_t pid = new_process_of(SOMEBODY);

	ASSERT_LT(0, pid);
	ASSERT_EQ(0, write_long(PARANOID, 2));
	EXPECT_EQ(EACCES, as_user(0, cpu_leaves_task, pid, -1));
	EXPECT_EQ(0, with_session(listed_id("monitor"), session_end));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Sessions begin, are frozen, read and end while their tasks fork and exit. */
TEST_F_TIMEOUT(inherit, storm, SLOW_RACE_TIMEOUT)
{
	unsigned int nr = slow_rounds(5), i, seed = 1;
	struct perf_event_attr attr = inherit_attr();
	int n, fd[CPUS], gone = 0;
	pid_t pid = -1;
	int64_t id;

	for (i = 0; i < nr; i++) {
		if (pid < 0) {
			pid = fork();
			if (!pid) {
				signal(SIGTERM, end_storm);
				storm();
			}
			setpgid(pid, 0);
		}
		for (n = 0; n < CPUS; n++)
			fd[n] = event_open(&attr, pid, n, -1, 0);
		id = unclaim(fd[0], PERF_PERSISTENT_PARTIAL, 0, "storm");
		ASSERT_LT(0, id);
		ASSERT_EQ(id, unclaim(fd[1], 0, id, ""));
		for (n = rand_r(&seed) % 8; n >= 0; n--) {
			disturb(id, fd[0], &seed);
			usleep(rand_r(&seed) % 2000);
		}

		if (i % 3 == 0) {
			/* Before the session: all tasks, and with the last the events. */
			kill(pid, i % 2 ? SIGTERM : SIGKILL);
			while (waitpid(-pid, NULL, 0) > 0)
				;
			pid = -1;
			for (n = 0; n < CPUS; n++)
				EXPECT_EQ(PERF_PERSISTENT_STATE_GONE, state_of(fd[n]));
			gone++;
		}
		if (i % 2) {
			close(fd[0]);
			close(fd[1]);
			EXPECT_EQ(0, with_session(id, session_end));
		} else {
			EXPECT_EQ(id, claim(fd[0]));
			EXPECT_EQ(id, claim(fd[1]));
			close(fd[0]);
			close(fd[1]);
		}
		EXPECT_REFUSED(ENOENT, reopen(id, 0, 0));
	}
	EXPECT_LT(0, gone);
	if (pid > 0) {
		kill(pid, SIGTERM);
		while (waitpid(-pid, NULL, 0) > 0)
			;
	}
}

TEST_HARNESS_MAIN
