// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of sessions belongs to the memory cgroup of their creator: it is seen there,
 * limited there, and returned there. And a user with the ids of a user namespace has no
 * more of it than without.
 *
 * PERSISTENT_IDS is the number of ids that a user tries, at most the 65536 that newuidmap gives.
 * Without it, the user gives up after some refusals.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "persistent_util.h"
#include "persistent_spaces.h"

#define CGROUPS		"/sys/fs/cgroup/"
#define GROUP		"persistent_test"
#define INNER		GROUP "/inner"
#define MIB		1048576L
/* The buffer of a session here, and its header page. */
#define SIZE		(2 * MIB)
#define CHARGED		(SIZE + (long)PAGE)
/* What else of a session there is, and what the kernel keeps in stock for each CPU. */
#define MARGIN		(64L << 10)

static int put_text(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), CGROUPS "%s/%s", group, file);
	return write_text(path, text);
}

static int put_number(const char *group, const char *file, long val)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", val);
	return put_text(group, file, text);
}

/* The value of a key in a cgroup's file, or its only value; -1 if there is none. */
static long get_number(const char *group, const char *file, const char *key)
{
	char path[PATH_MAX], line[256];
	size_t len = strlen(key);
	long val = -1;
	FILE *f;

	snprintf(path, sizeof(path), CGROUPS "%s/%s", group, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (!len || (!strncmp(line, key, len) && line[len] == ' ')) {
			val = strtol(line + len, NULL, 10);
			break;
		}
	}
	fclose(f);
	return val;
}

static long kernel_bytes(const char *group)
{
	return get_number(group, "memory.stat", "kernel");
}

#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

/* What is freed is freed by RCU, and memory.stat is behind: it is waited for. */
static long wait_for_kernel_bytes(const char *group, long least, long most)
{
	long got = -1;
	int i;

	for (i = 0; i < 1000; i++) {
		got = kernel_bytes(group);
		if (least <= got && got <= most)
			break;
		usleep(20000);
	}
	return got;
}

/* The number of removed cgroups below that are still there, when it is 0 or remains. */
static long wait_for_dying(const char *group)
{
	long nr = -1;
	int i;

	for (i = 0; i < 1000; i++) {
		nr = get_number(group, "cgroup.stat", "nr_dying_descendants");
		if (!nr)
			break;
		usleep(20000);
	}
	return nr;
}

#define EXPECT_KERNEL_BYTES_FROM(from, to, group) do {			\
	long _from = (from) - MARGIN, _to = (to) + MARGIN;		\
	long _got = wait_for_kernel_bytes(group, _from, _to);		\
									\
	EXPECT_TRUE(_from <= _got && _got <= _to)			\
		TH_LOG("%ld bytes, wanted %ld to %ld", _got, _from, _to);\
} while (0)

#define EXPECT_KERNEL_BYTES(want, group) do {				\
	long _want = (want);						\
									\
	EXPECT_KERNEL_BYTES_FROM(_want, _want, group);			\
} while (0)

FIXTURE(memcg)
{
	struct balance	before;
	struct limits	limits;
	long		oom_kills;
};

/* Of the whole machine */
static long oom_kills(void)
{
	char key[64];
	long val = -1;
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && fscanf(f, "%63s %ld", key, &val) == 2 && strcmp(key, "oom_kill"))
		val = -1;
	if (f)
		fclose(f);
	return val;
}

FIXTURE_SETUP(memcg)
{
	SKIP_WITHOUT_PERSISTENT(return);
	put_text(".", "cgroup.subtree_control", "+memory");
	if (mkdir(CGROUPS GROUP, 0755) || access(CGROUPS GROUP "/memory.stat", R_OK)) {
		rmdir(CGROUPS GROUP);
		SKIP(return, "no memory cgroups");
	}
	put_text(GROUP, "memory.swap.max", "0");

	pin_to_cpu(0);
	self->limits = take_limits();
	self->before = take_balance();
	self->oom_kills = oom_kills();
}

FIXTURE_TEARDOWN(memcg)
{
	int i;

	restore_limits(&self->limits);
	/* What died in it is gone soon. */
	rmdir(CGROUPS INNER);
	for (i = 0; i < 1000 && rmdir(CGROUPS GROUP) && errno == EBUSY; i++)
		usleep(10000);
	EXPECT_BALANCE();
	EXPECT_EQ(self->oom_kills, oom_kills());
}

struct child {
	pid_t	pid;
	int	to;
	int	from;
};

static void child_says(int fd, int64_t val)
{
	if (write(fd, &val, sizeof(val)) != sizeof(val))
		_exit(1);
}

static int64_t child_hears(int fd)
{
	int64_t val;

	if (read(fd, &val, sizeof(val)) != sizeof(val))
		_exit(1);
	return val;
}

/* Is told each time when to go on, and tells what it got. */
static struct child in_group(const char *group, void (*fn)(int in, int out))
{
	int to[2], from[2];
	struct child child;

	if (pipe(to) || pipe(from))
		abort();
	child.pid = fork();
	if (!child.pid) {
		close(to[1]);
		close(from[0]);
		if (put_text(group, "cgroup.procs", "0"))
			_exit(1);
		fn(to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static int64_t ask(struct child *child)
{
	int64_t val = 0;

	if (write(child->to, &val, sizeof(val)) != sizeof(val) ||
	    read(child->from, &val, sizeof(val)) != sizeof(val))
		return -1000;
	return val;
}

static void end_child(struct child *child)
{
	close(child->to);
	close(child->from);
	waitpid(child->pid, NULL, 0);
}

/* Makes and ends a session each time it is asked. */
static void makes_and_ends(int in, int out)
{
	for (;;) {
		int fd = open_comm(0);
		void *base = map(fd, SIZE, PROT_READ);

		child_hears(in);
		child_says(out, unclaim(fd, 0, 0, "memory"));
		child_hears(in);
		child_says(out, claim(fd));
		munmap(base, SIZE + PAGE);
		close(fd);
	}
}

/* Seen where it was made, and returned: what is left over adds up to nothing. */
TEST_F(memcg, charged_and_returned)
{
	struct child child = in_group(GROUP, makes_and_ends);
	long before, now, last = 0, kept;
	int i, round;
	int64_t id;

	/*
	 * A page of each session would be 20; the stock of a CPU has less than one. KASAN, which
	 * the kernels with kmemleak have as well, keeps what is freed for a while: of what comes
	 * now, and of what came before.
	 */
	kept = (access(KMEMLEAK, F_OK) ? 4 : 16) * (long)PAGE;
	/* Once, for what is made once. */
	ASSERT_LT(0, ask(&child));
	ASSERT_LT(0, ask(&child));
	sleep(8);
	/* What the caches of a CPU keep of freed objects does not grow again and again. */
	for (round = 0; round < 3; round++) {
		before = kernel_bytes(GROUP);
		for (i = 0; i < 20; i++) {
			now = kernel_bytes(GROUP);
			id = ask(&child);
			ASSERT_LT(0, id);
			EXPECT_KERNEL_BYTES_FROM(before + CHARGED, now + CHARGED, GROUP);
			EXPECT_EQ(id, ask(&child));
			EXPECT_KERNEL_BYTES_FROM(before, now, GROUP);
		}
		/* kfree_rcu() keeps what it is given for up to 5 s. */
		for (i = 0; i < 20; i++) {
			sleep(1);
			last = kernel_bytes(GROUP);
			if (i > 2 && last <= before + kept)
				break;
		}
		TH_LOG("%ld bytes of the kernel before, %ld after 20 sessions", before, last);
		if (last <= before + kept)
			break;
	}
	EXPECT_GE(before + kept, last);
	EXPECT_LE(before - kept, last);
	end_child(&child);
}

static void makes_and_dies(int in, int out)
{
	int fd = open_comm(0);

	map(fd, SIZE, PROT_READ);
	child_hears(in);
	child_says(out, unclaim(fd, 0, 0, "memory"));
}

/* It stays there when its creator has died, and comes back when somebody else ends it. */
TEST_F(memcg, outlives_its_creator)
{
	struct child child = in_group(GROUP, makes_and_dies);
	long empty = kernel_bytes(GROUP);
	int64_t id = ask(&child);
	int fd;

	ASSERT_LT(0, id);
	end_child(&child);
	EXPECT_KERNEL_BYTES(empty + CHARGED, GROUP);
	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	EXPECT_KERNEL_BYTES(empty + CHARGED, GROUP);
	close(fd);
	EXPECT_KERNEL_BYTES(empty, GROUP);
}

/* When its cgroup is gone, it is the parent's. */
TEST_F(memcg, reparented)
{
	struct child child;
	long empty;
	int64_t id;
	int fd;

	ASSERT_EQ(0, put_text(GROUP, "cgroup.subtree_control", "+memory"));
	ASSERT_EQ(0, mkdir(CGROUPS INNER, 0755));
	empty = kernel_bytes(GROUP);
	child = in_group(INNER, makes_and_dies);
	id = ask(&child);
	ASSERT_LT(0, id);
	end_child(&child);
	EXPECT_KERNEL_BYTES(CHARGED, INNER);
	EXPECT_KERNEL_BYTES(empty + CHARGED, GROUP);
	ASSERT_EQ(0, rmdir(CGROUPS INNER));
	/* What is left of it is not kept by the session. */
	EXPECT_EQ(0, wait_for_dying(GROUP));
	EXPECT_KERNEL_BYTES(empty + CHARGED, GROUP);
	EXPECT_LE(CHARGED, get_number(GROUP, "memory.current", ""));

	fd = reopen(id, 0, 0);
	EXPECT_EQ(id, claim(fd));
	close(fd);
	EXPECT_KERNEL_BYTES(empty, GROUP);
	ASSERT_EQ(0, put_text(GROUP, "cgroup.subtree_control", "-memory"));
}

static void makes_large_then_small(int in, int out)
{
	int fd = open_comm(0);
	void *base = map(fd, 4 * SIZE, PROT_READ);

	child_hears(in);
	child_says(out, unclaim(fd, 0, 0, "large") > 0 ? 0 : errno);
	child_hears(in);
	munmap(base, 4 * SIZE + PAGE);
	/* One of 512 KiB, that the kernel allocates. */
	child_says(out, unclaim(fd, 0, 0, "small") > 0 ? 0 : errno);
	child_hears(in);
	child_says(out, claim(fd) > 0 ? 0 : errno);
	child_hears(in);
}

/* Where there is no room it is refused as a whole, and the event is as it was. */
TEST_F(memcg, refused)
{
	struct child child = in_group(GROUP, makes_large_then_small);
	long before;

	/* It is there, and has its event. */
	usleep(300000);
	before = kernel_bytes(GROUP);
	ASSERT_EQ(0, put_number(GROUP, "memory.max",
				get_number(GROUP, "memory.current", "") + 2 * SIZE));
	EXPECT_EQ(ENOMEM, ask(&child));
	EXPECT_KERNEL_BYTES(before, GROUP);
	EXPECT_EQ(-1, listed_id("large"));
	EXPECT_EQ(0, ask(&child));
	EXPECT_LT(0, listed_id("small"));
	EXPECT_KERNEL_BYTES(before + (long)(DEFAULT_SIZE + PAGE), GROUP);
	EXPECT_EQ(0, ask(&child));
	EXPECT_KERNEL_BYTES(before + (long)(DEFAULT_SIZE + PAGE), GROUP);
	ask(&child);
	end_child(&child);
	EXPECT_EQ(0, get_number(GROUP, "memory.events", "oom"));
}

#define MEMBERS		300
/* Less than what a member takes: its event, and what else the session has of it. */
#define EVENT_BYTES	1024
#define MEMBER_BYTES	128

/* Makes members that share a buffer; twice, and tells how many there were. */
static void shares_a_buffer(int in, int out)
{
	static int fds[2 * MEMBERS];
	int i, half, made;
	int64_t id = 0;

	/* Its own memory must not have it killed. */
	write_text("/proc/self/oom_score_adj", "-1000");
	for (i = 0; i < 2 * MEMBERS; i++) {
		fds[i] = open_comm(0);
		if (fds[i] < 0)
			_exit(1);
		if (!i)
			map(fds[0], PAGE, PROT_READ);
		else if (ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0]))
			_exit(1);
	}
	child_hears(in);
	child_says(out, 0);
	for (half = 0; half < 2; half++) {
		child_hears(in);
		for (i = 0, made = 0; i < MEMBERS; i++) {
			int64_t got = unclaim(fds[half * MEMBERS + i], PERF_PERSISTENT_PARTIAL, id,
					      id ? "" : "members");

			if (got < 0)
				continue;
			id = got;
			made++;
		}
		child_says(out, made);
	}
	child_hears(in);
}

/*
 * What a session has besides its buffers is charged, too. Where there is no room for it, it is
 * refused like a buffer: the OOM killer is not asked.
 */
TEST_F(memcg, members)
{
	struct child child = in_group(GROUP, shares_a_buffer);
	long kernel, slab, i;
	int64_t made;

	ASSERT_EQ(0, ask(&child));
	/* memory.stat is behind. */
	sleep(3);
	kernel = kernel_bytes(GROUP);
	slab = get_number(GROUP, "memory.stat", "slab");
	ASSERT_EQ(MEMBERS, ask(&child));
	for (i = 0; i < 200 && kernel_bytes(GROUP) < kernel + MEMBERS * EVENT_BYTES; i++)
		usleep(20000);
	slab = get_number(GROUP, "memory.stat", "slab") - slab;
	kernel = kernel_bytes(GROUP) - kernel - slab;
	TH_LOG("%d members: %ld bytes of slabs, %ld others", MEMBERS, slab, kernel);
	EXPECT_LE(MEMBERS * MEMBER_BYTES, slab);
	EXPECT_LE(MEMBERS * EVENT_BYTES, kernel);

	ASSERT_EQ(0, put_number(GROUP, "memory.max",
				get_number(GROUP, "memory.current", "") + 16 * (long)PAGE));
	made = ask(&child);
	EXPECT_LE(0, made);
	EXPECT_GT(MEMBERS / 2, made);
	EXPECT_EQ(0, get_number(GROUP, "memory.events", "oom"));
	ASSERT_EQ(0, put_text(GROUP, "memory.max", "max"));
	ask(&child);
	end_child(&child);
	/* It never became complete: it has ended with its files. */
	EXPECT_EQ(-1, listed_id("members"));
}

/* The ids of a user namespace */

#define MAX_IDS		65536
/* When it has been refused as often, it gives up, unless it is to try all ids. */
#define MAX_REFUSED	20

/* The first of them that the machine knows as other users. */
#define FIRST_ID	100000

static bool tries_all(void)
{
	return getenv("PERSISTENT_IDS");
}

static long nr_ids(void)
{
	return tries_all() ? atol(getenv("PERSISTENT_IDS")) : MAX_IDS;
}

/*
 * What is refused has allocated some memory of the cgroup before, which is freed seconds later.
 * Thousands of refusals need so much more room, and ask for more than that.
 */
#define SPARE_ROOM	(64 * MIB)

/* New credentials are charged, too: wait for what was freed. */
static int change_user(long id)
{
	int err;

	while ((err = setresuid(id, id, 0)) && errno == ENOMEM)
		usleep(1000);
	return err;
}

/* As the effective user @id; returns 0 or an error. */
static long one_session_of(long id, uint64_t size)
{
	struct perf_persistent_arg arg = {
		.size		= sizeof(arg),
		.data_size	= size,
		.name		= "each",
	};
	long err = 0;
	int fd;

	if (change_user(id))
		return 1000;
	while ((fd = open_comm(0)) < 0 && errno == ENOMEM)
		usleep(1000);
	if (ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg))
		err = errno;
	close(fd);
	return change_user(0) ? 1001 : err;
}

/*
 * A session of each id, as root of the namespace can be each of them; the effective user
 * owns it, the real one is charged. Says how many there are when it has been refused often,
 * then how many ids were refused, and their error.
 */
static void one_session_each(int in, int out)
{
	long id, nr = nr_ids(), made = 0, err = 0, refused = 0, got;
	bool told = false;

	/* At the limit, whatever it allocates could have it killed. */
	write_text("/proc/self/oom_score_adj", "-1000");
	leave_chroot();
	if (become(NOBODY))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1);
	if (unshare(CLONE_NEWUSER)) {
		child_says(out, -1);
		_exit(0);
	}
	/* That the map can be written. */
	child_says(out, getpid());
	child_hears(in);
	for (id = 0; id < nr; id++) {
		if (refused == MAX_REFUSED && !told) {
			child_says(out, made);
			child_hears(in);
			told = true;
			if (!tries_all())
				break;
		}
		got = one_session_of(id, told ? 2 * SPARE_ROOM : 0);
		if (!got) {
			made++;
			continue;
		}
		refused++;
		err = err && err != got ? 1002 : got;
	}
	if (!told) {
		child_says(out, made);
		child_hears(in);
	}
	child_says(out, refused);
	child_hears(in);
	child_says(out, err);
	child_hears(in);
}

static bool map_ids(int64_t pid)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	snprintf(text, sizeof(text), "0 %d %d", FIRST_ID, MAX_IDS);
	return !write_text(path, text);
}

static int makes_one(int64_t unused, int unused_fd)
{
	int fd = open_comm(0), err = unclaim(fd, 0, 0, "") > 0 ? 0 : errno;

	close(fd);
	return err;
}

/* The limit of the cgroup, whatever number of sessions is allowed; nobody else suffers. */
TEST_F_TIMEOUT(memcg, subordinate_ids, 3600)
{
	struct child child = in_group(GROUP, one_session_each);
	long room = 24 * MIB, nr;
	int64_t made, refused;
	pid_t bystander = fork();

	if (!bystander) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	ASSERT_EQ(0, write_long(PARANOID, -1));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 1000000));
	ASSERT_EQ(sizeof(made), read(child.from, &made, sizeof(made)));
	if (made < 0) {
		kill(bystander, SIGKILL);
		waitpid(bystander, NULL, 0);
		end_child(&child);
		SKIP(return, "no user namespaces");
	}
	ASSERT_TRUE(map_ids(made));
	ASSERT_EQ(0, put_number(GROUP, "memory.max",
				get_number(GROUP, "memory.current", "") + room));
	made = ask(&child);
	ASSERT_EQ(0, write_long(MLOCK_KB, 4 * SPARE_ROOM >> 10));
	ASSERT_EQ(0, put_number(GROUP, "memory.max",
				get_number(GROUP, "memory.max", "") + SPARE_ROOM));
	refused = ask(&child);
	nr = room / (long)DEFAULT_SIZE;
	TH_LOG("%ld ids made %ld sessions of 512 KiB in %ld MiB, %ld were refused",
	       (long)(made + refused), (long)made, room / MIB, (long)refused);
	EXPECT_EQ(tries_all() ? nr_ids() - made : MAX_REFUSED, refused);
	EXPECT_GE(nr, made);
	EXPECT_LT(nr / 2, made);
	EXPECT_EQ(ENOMEM, ask(&child));
	EXPECT_EQ(0, get_number(GROUP, "memory.events", "oom_kill"));
	EXPECT_EQ(self->oom_kills, oom_kills());
	EXPECT_EQ(0, kill(bystander, 0));
	EXPECT_EQ(0, waitpid(bystander, NULL, WNOHANG));
	kill(bystander, SIGKILL);
	waitpid(bystander, NULL, 0);
	ask(&child);
	end_child(&child);
	claim_all(NULL, 1);
	EXPECT_EQ(0, nr_entries(DEVICE "/sessions"));
	rmdir("/tmp/inside");
}

/* The limit of sessions is that of the user whose namespace it is. */
TEST_F_TIMEOUT(memcg, subordinate_ids_and_quota, 3600)
{
	struct child child = in_group(GROUP, one_session_each);
	int64_t made;

	ASSERT_EQ(0, write_long(PARANOID, -1));
	ASSERT_EQ(0, write_long(MAX_SESSIONS, 5));
	ASSERT_EQ(sizeof(made), read(child.from, &made, sizeof(made)));
	if (made < 0) {
		end_child(&child);
		SKIP(return, "no user namespaces");
	}
	ASSERT_TRUE(map_ids(made));
	EXPECT_EQ(5, ask(&child));
	EXPECT_EQ(tries_all() ? nr_ids() - 5 : MAX_REFUSED, ask(&child));
	EXPECT_EQ(EDQUOT, ask(&child));
	/* Outside of it as well; others have theirs. */
	EXPECT_EQ(EDQUOT, as_nobody(makes_one, 0, -1));
	EXPECT_EQ(0, as_user(SOMEBODY, makes_one, 0, -1));
	/* Holders of CAP_PERFMON are not limited, and do not count. */
	EXPECT_EQ(0, makes_one(0, -1));
	ask(&child);
	end_child(&child);
	claim_all(NULL, 1);
	EXPECT_EQ(0, as_nobody(makes_one, 0, -1));
	claim_all(NULL, 1);
	rmdir("/tmp/inside");
}

TEST_HARNESS_MAIN
