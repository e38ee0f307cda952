// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events from two sides at once, PERSISTENT_ROUNDS times each: one of the
 * two outcomes that there can be, and nothing left of it. And from all sides: threads
 * that make, build half, join, open, map, poll, claim, close and die, on few names and
 * few fds, so that they meet. The kernel must survive (best run with KASAN and
 * lockdep), and nothing may be left.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

#define NR_THREADS	6
#define NR_SLOTS	4

/* Fds that all threads use, and close under each other's hands. */
static struct {
	pthread_mutex_t	lock;
	int		creator[NR_SLOTS];
	int		reader[NR_SLOTS];
	int64_t		id[NR_SLOTS];
	unsigned int	made;
	bool		stop;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int swap_fd(int *slot, int fd)
{
	int old;

	pthread_mutex_lock(&shared.lock);
	old = *slot;
	*slot = fd;
	pthread_mutex_unlock(&shared.lock);
	return old;
}

/* A duplicate, so that the number is not somebody else's by the time it is used. */
static int dup_fd(int *slot)
{
	int fd;

	pthread_mutex_lock(&shared.lock);
	fd = dup(*slot);
	pthread_mutex_unlock(&shared.lock);
	return fd;
}

static void make(unsigned int slot, unsigned int *seed)
{
	char name[16];
	int fd, old = swap_fd(&shared.creator[slot], open_comm(rand_r(seed) % 2));
	int64_t id;

	close(old);
	fd = dup_fd(&shared.creator[slot]);
	if (rand_r(seed) % 2) {
		void *base = map(fd, PAGE << (rand_r(seed) % 4), PROT_READ);

		if (rand_r(seed) % 2 && base != MAP_FAILED)
			munmap(base, PAGE);
	}
	snprintf(name, sizeof(name), "race%u-", slot);
	id = unclaim(fd, rand_r(seed) % 3 ? 0 : PERF_PERSISTENT_PARTIAL, 0, name);
	if (id > 0) {
		__atomic_store_n(&shared.id[slot], id, __ATOMIC_RELAXED);
		__atomic_add_fetch(&shared.made, 1, __ATOMIC_RELAXED);
	}
	close(fd);
}

static void join(unsigned int slot, unsigned int *seed)
{
	int64_t id = __atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED);
	int fd = open_comm(rand_r(seed) % 2);

	unclaim(fd, rand_r(seed) % 3 ? 0 : PERF_PERSISTENT_PARTIAL, id, "");
	if (rand_r(seed) % 2)
		claim(fd);
	close(fd);
}

static void open_reader(unsigned int slot, unsigned int *seed)
{
	int64_t id = __atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED);
	int fd = reopen(id, rand_r(seed) % 2, rand_r(seed) % 2);

	close(swap_fd(&shared.reader[slot], fd));
}

static void use_reader(unsigned int slot, unsigned int *seed)
{
	struct pollfd p = { .fd = dup_fd(&shared.reader[slot]), .events = POLLIN };
	struct perf_persistent_info inf;
	char *base, sum = 0;
	uint64_t count;

	if (!info(p.fd, &inf)) {
		base = map(p.fd, inf.data_size, PROT_READ);
		leave_record("race");
		poll(&p, 1, rand_r(seed) % 3);
		if (read(p.fd, &count, sizeof(count)) == sizeof(count) && base != MAP_FAILED)
			__atomic_store_n(&sum, base[0] + base[inf.data_size],
					 __ATOMIC_RELAXED);
		if (base != MAP_FAILED) {
			/* In two pieces, one of them after the fd. */
			munmap(base, PAGE);
			close(p.fd);
			munmap(base + PAGE, inf.data_size);
			return;
		}
	}
	close(p.fd);
}

static void claim_any(unsigned int slot, unsigned int *seed)
{
	int fd = dup_fd(rand_r(seed) % 2 ? &shared.creator[slot] : &shared.reader[slot]);

	claim(fd);
	close(fd);
}

/* All events of a session, as one who wants it to end. */
static void claim_session(int64_t id)
{
	struct perf_persistent_info inf;
	int cpu, fd;
	unsigned int index;

	for (cpu = 0; cpu < 2; cpu++) {
		inf.nr_events = 1;
		for (index = 0; index < inf.nr_events; index++) {
			fd = reopen(id, cpu, index);
			if (fd < 0) {
				/* Others may follow what was claimed. */
				inf.nr_events += index < 16;
				continue;
			}
			info(fd, &inf);
			claim(fd);
			close(fd);
		}
	}
}

static void claim_whole(unsigned int slot, unsigned int *seed)
{
	claim_session(__atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED));
}

static void close_any(unsigned int slot, unsigned int *seed)
{
	close(swap_fd(rand_r(seed) % 2 ? &shared.creator[slot] : &shared.reader[slot], -1));
}

static void meddle(unsigned int slot, unsigned int *seed)
{
	int fd = dup_fd(&shared.creator[slot]), other = open_comm(rand_r(seed) % 2);
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_info inf;
	void *base;

	ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd);
	ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, other);
	ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, rand_r(seed) % 2);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	close(event_open(&attr, -1, rand_r(seed) % 2, fd, 0));
	if (!info(fd, &inf)) {
		base = map(fd, inf.data_size, PROT_READ);
		close(fd);
		fd = -1;
		if (base != MAP_FAILED)
			munmap(base, inf.data_size + PAGE);
	}
	unclaim(other, 0, __atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED), "");
	claim(other);
	close(other);
	close(fd);
}

/* A process that dies somewhere between. */
static void die_young(unsigned int slot, unsigned int *seed)
{
	unsigned int usecs = rand_r(seed) % 2000;
	pid_t pid = fork();

	if (!pid) {
		for (;;) {
			int fd = open_comm(0);
			int64_t id = unclaim(fd, PERF_PERSISTENT_PARTIAL, 0, "");

			unclaim(open_comm(1), PERF_PERSISTENT_PARTIAL, id, "");
			map(fd, DEFAULT_SIZE, PROT_READ);
			close(fd);
		}
	}
	usleep(usecs);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void list(unsigned int slot, unsigned int *seed)
{
	static const char * const files[] = {
		"events/%s", "sessions/%s/cpus", "sessions/%s/memory", "sessions/%s/state",
	};
	char name[16];

	snprintf(name, sizeof(name), "race%u-", slot);
	sysfs(files[rand_r(seed) % ARRAY_SIZE(files)], name);
	nr_entries(DEVICE "/sessions");
}

static void *race(void *arg)
{
	static void (*const steps[])(unsigned int slot, unsigned int *seed) = {
		make, make, join, join, open_reader, open_reader, use_reader, use_reader,
		claim_any, claim_whole, close_any, meddle, list,
	};
	unsigned int seed = (uintptr_t)arg;

	while (!__atomic_load_n(&shared.stop, __ATOMIC_RELAXED)) {
		unsigned int step = rand_r(&seed) % ARRAY_SIZE(steps);

		if (rand_r(&seed) % 64)
			steps[step](rand_r(&seed) % NR_SLOTS, &seed);
		else
			die_young(0, &seed);
	}
	return NULL;
}

/* Sessions that lost all who had them open are still there, by their names. */
static void claim_all_left(void)
{
	struct dirent *d;
	DIR *dir = opendir(DEVICE "/sessions");

	while ((d = readdir(dir))) {
		if (d->d_name[0] != '.')
			claim_session(strtol(sysfs("sessions/%s/id", d->d_name), NULL, 10));
	}
	closedir(dir);
}

FIXTURE(races)
{
	struct balance	before;
};

FIXTURE_SETUP(races)
{
	if (geteuid())
		SKIP(return, "must be root");
	if (!have_persistent())
		SKIP(return, "no CONFIG_PERF_PERSISTENT");

	self->before = take_balance();
	ASSERT_EQ(0, self->before.sessions);
}

/* Threads that unmap parts, or not at all, leave what goes with the process. */
FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, nr_entries(DEVICE "/sessions"));
	EXPECT_EQ(self->before.events, nr_entries(DEVICE "/events"));
}

static unsigned int rounds(void)
{
	const char *nr = getenv("PERSISTENT_ROUNDS");

	return nr ? atoi(nr) : 500;
}

/* PERSISTENT_RACES_SECS may ask for more. */
TEST_F_TIMEOUT(races, all, 7200)
{
	const char *secs = getenv("PERSISTENT_RACES_SECS");
	unsigned int seed = getpid(), i;
	time_t until = time(NULL) + (secs ? atoi(secs) : 0);
	pthread_t threads[NR_THREADS];

	memset(shared.creator, -1, sizeof(shared.creator));
	memset(shared.reader, -1, sizeof(shared.reader));
	TH_LOG("seed %u", seed);
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, race,
					    (void *)(uintptr_t)(seed + i)));
	while (__atomic_load_n(&shared.made, __ATOMIC_RELAXED) < rounds() || time(NULL) < until)
		usleep(10000);
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	TH_LOG("%u sessions", shared.made);
	for (i = 0; i < NR_SLOTS; i++) {
		close(shared.creator[i]);
		close(shared.reader[i]);
	}
	claim_all_left();
}

/*
 * Two sides of a race. Each round begins with a session, or what becomes one, and ends
 * with nothing; main sets it up, lets both go at once, and looks at what they got.
 */
static struct {
	pthread_barrier_t	gate;
	void			(*left)(void);
	void			(*right)(void);
	bool			over;
	/* What they work on. */
	int			fd[3];
	int64_t			id;
	void			*base;
	/* What they got. */
	int64_t			ret[2];
	int			err[2];
} duel;

static void side_got(int side, int64_t ret)
{
	duel.ret[side] = ret;
	duel.err[side] = ret < 0 ? errno : 0;
}

static void *side(void *arg)
{
	unsigned int seed = (uintptr_t)arg;
	unsigned int spin;

	for (;;) {
		pthread_barrier_wait(&duel.gate);
		if (duel.over)
			return NULL;
		/* Who comes first changes. */
		for (spin = rand_r(&seed) % 2000; spin; spin--)
			asm volatile("" : : : "memory");
		(arg ? duel.right : duel.left)();
		pthread_barrier_wait(&duel.gate);
	}
}

static void fight(void)
{
	pthread_barrier_wait(&duel.gate);
	pthread_barrier_wait(&duel.gate);
}

static void close_all(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		close(duel.fd[i]);
		duel.fd[i] = -1;
	}
}

FIXTURE(duels)
{
	struct balance	before;
	pthread_t	sides[2];
	/* Keeps perf's static keys as they are. */
	int		keep;
};

FIXTURE_SETUP(duels)
{
	if (geteuid())
		SKIP(return, "must be root");
	if (!have_persistent())
		SKIP(return, "no CONFIG_PERF_PERSISTENT");

	pin_to_cpu(0);
	self->keep = open_comm(0);
	self->before = take_balance();
	memset(&duel, 0, sizeof(duel));
	memset(duel.fd, -1, sizeof(duel.fd));
	pthread_barrier_init(&duel.gate, NULL, 3);
	ASSERT_EQ(0, pthread_create(&self->sides[0], NULL, side, NULL));
	ASSERT_EQ(0, pthread_create(&self->sides[1], NULL, side, (void *)1));
	{
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(1, &set);
		pthread_setaffinity_np(self->sides[1], sizeof(set), &set);
	}
}

FIXTURE_TEARDOWN(duels)
{
	duel.over = true;
	pthread_barrier_wait(&duel.gate);
	pthread_join(self->sides[0], NULL);
	pthread_join(self->sides[1], NULL);
	EXPECT_BALANCE();
	close(self->keep);
}

static void left_claims(void)
{
	side_got(0, claim(duel.fd[0]));
}

static void right_claims(void)
{
	side_got(1, claim(duel.fd[1]));
}

/* One of two who claim wins, the other is told so. */
TEST_F_TIMEOUT(duels, claim_claim, 3600)
{
	unsigned int i, winner;

	duel.left = left_claims;
	duel.right = right_claims;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.id = unclaim(duel.fd[0], 0, 0, "duel");
		duel.fd[1] = reopen(duel.id, 0, 0);
		ASSERT_LE(0, duel.fd[1]);
		fight();
		winner = duel.ret[0] < 0;
		ASSERT_EQ(duel.id, duel.ret[winner]);
		ASSERT_EQ(-1, duel.ret[!winner]);
		ASSERT_EQ(EBUSY, duel.err[!winner]);
		ASSERT_EQ(-1, reopen(duel.id, 0, 0));
		close_all();
	}
}

static void right_opens(void)
{
	duel.fd[1] = reopen(duel.id, 0, 0);
	side_got(1, duel.fd[1]);
	duel.base = MAP_FAILED;
	if (duel.fd[1] >= 0)
		duel.base = map(duel.fd[1], DEFAULT_SIZE, PROT_READ);
}

/* Who opens what is being claimed has it, and reads on, or has nothing. */
TEST_F_TIMEOUT(duels, claim_open, 3600)
{
	struct perf_persistent_info inf;
	unsigned int i, got = 0;

	duel.left = left_claims;
	duel.right = right_opens;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.id = unclaim(duel.fd[0], 0, 0, "duel");
		fight();
		ASSERT_EQ(duel.id, duel.ret[0]);
		close(duel.fd[0]);
		duel.fd[0] = -1;
		if (duel.ret[1] < 0) {
			ASSERT_EQ(ENOENT, duel.err[1]);
			continue;
		}
		got++;
		ASSERT_NE(MAP_FAILED, duel.base);
		ASSERT_EQ(0, info(duel.fd[1], &inf));
		ASSERT_EQ(duel.id, inf.id);
		leave_record("reads on");
		ASSERT_TRUE(recorded(duel.base, "reads on"));
		ASSERT_EQ(-1, claim(duel.fd[1]));
		close_all();
		munmap(duel.base, DEFAULT_SIZE + PAGE);
	}
	TH_LOG("%u of %u opened it in time", got, i);
}

static void right_joins(void)
{
	side_got(1, unclaim(duel.fd[1], 0, duel.id, ""));
}

/* Who joins what is being claimed keeps it alive, or comes too late. */
TEST_F_TIMEOUT(duels, claim_join, 3600)
{
	unsigned int i;

	duel.left = left_claims;
	duel.right = right_joins;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.fd[1] = open_comm(0);
		duel.id = unclaim(duel.fd[0], 0, 0, "duel");
		fight();
		ASSERT_EQ(duel.id, duel.ret[0]);
		if (duel.ret[1] < 0) {
			ASSERT_EQ(ENOENT, duel.err[1]);
			ASSERT_EQ(-1, listed_id("duel"));
		} else {
			ASSERT_EQ(duel.id, listed_id("duel"));
			ASSERT_EQ(duel.id, claim(duel.fd[1]));
		}
		close_all();
	}
}

static void left_unclaims(void)
{
	side_got(0, unclaim(duel.fd[0], 0, 0, "duel"));
}

static void right_unclaims(void)
{
	side_got(1, unclaim(duel.fd[1], 0, 0, "duel"));
}

/* One event is given away once, one name given once. */
TEST_F_TIMEOUT(duels, unclaim_unclaim, 3600)
{
	unsigned int i, winner;

	duel.left = left_unclaims;
	duel.right = right_unclaims;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.fd[1] = i % 2 ? dup(duel.fd[0]) : open_comm(0);
		fight();
		winner = duel.ret[0] < 0;
		ASSERT_LT(0, duel.ret[winner]);
		ASSERT_EQ(-1, duel.ret[!winner]);
		ASSERT_EQ(i % 2 ? EBUSY : EEXIST, duel.err[!winner]);
		ASSERT_EQ(duel.ret[winner], claim(duel.fd[winner]));
		close_all();
	}
}

static void left_completes(void)
{
	side_got(0, unclaim(duel.fd[0], 0, duel.id, ""));
}

static void right_closes(void)
{
	close(duel.fd[1]);
	duel.fd[1] = -1;
}

/* A session that is completed while one of its files is closed is there whole, or not. */
TEST_F_TIMEOUT(duels, complete_close, 3600)
{
	unsigned int i;

	duel.left = left_completes;
	duel.right = right_closes;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.fd[1] = open_comm(0);
		duel.id = unclaim(duel.fd[0], PERF_PERSISTENT_PARTIAL, 0, "duel");
		ASSERT_EQ(duel.id, unclaim(duel.fd[1], PERF_PERSISTENT_PARTIAL, duel.id, ""));
		fight();
		if (duel.ret[0] < 0) {
			ASSERT_EQ(EBUSY, duel.err[0]);
			ASSERT_EQ(-1, listed_id("duel"));
		} else {
			ASSERT_STREQ("2", sysfs("sessions/%s/nr_events", "duel"));
			duel.fd[1] = reopen(duel.id, 0, 1);
			ASSERT_EQ(duel.id, claim(duel.fd[1]));
			ASSERT_EQ(duel.id, claim(duel.fd[0]));
		}
		close_all();
	}
}

static void right_unmaps(void)
{
	munmap(duel.base, 5 * PAGE);
}

/* The buffer of a mapping that goes meanwhile is the session's, or there is another. */
TEST_F_TIMEOUT(duels, unclaim_munmap, 3600)
{
	struct perf_persistent_info inf;
	unsigned int i;
	void *base;

	duel.left = left_unclaims;
	duel.right = right_unmaps;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.base = map(duel.fd[0], 4 * PAGE, PROT_READ);
		ASSERT_NE(MAP_FAILED, duel.base);
		fight();
		ASSERT_LT(0, duel.ret[0]);
		duel.fd[1] = reopen(duel.ret[0], 0, 0);
		ASSERT_EQ(0, info(duel.fd[1], &inf));
		ASSERT_TRUE(inf.data_size == 4 * PAGE || inf.data_size == DEFAULT_SIZE);
		base = map(duel.fd[1], inf.data_size, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		leave_record("in it");
		ASSERT_TRUE(recorded(base, "in it"));
		munmap(base, inf.data_size + PAGE);
		ASSERT_EQ(duel.ret[0], claim(duel.fd[0]));
		close_all();
	}
}

static void right_redirects(void)
{
	side_got(1, ioctl(duel.fd[1], PERF_EVENT_IOC_SET_OUTPUT, duel.fd[0]));
}

/* Nobody gets into a buffer as it becomes a session's. */
TEST_F_TIMEOUT(duels, unclaim_set_output, 3600)
{
	unsigned int i, winner;

	duel.left = left_unclaims;
	duel.right = right_redirects;
	for (i = 0; i < rounds(); i++) {
		duel.fd[0] = open_comm(0);
		duel.fd[1] = open_comm(0);
		duel.base = map(duel.fd[0], 4 * PAGE, PROT_READ);
		ASSERT_NE(MAP_FAILED, duel.base);
		fight();
		winner = duel.ret[0] < 0;
		/* Both may find the other there, and give up; both may not win. */
		ASSERT_TRUE(duel.ret[winner] < 0 || duel.ret[!winner] == -1);
		ASSERT_TRUE(duel.ret[0] >= 0 || duel.err[0] == EINVAL);
		ASSERT_TRUE(duel.ret[1] >= 0 || duel.err[1] == EBUSY);
		ASSERT_TRUE(duel.ret[0] < 0 || claim(duel.fd[0]) == duel.ret[0]);
		munmap(duel.base, 5 * PAGE);
		close_all();
	}
}

static void left_lists(void)
{
	side_got(0, strtol(sysfs("sessions/%s/state", "duel"), NULL, 10));
	sysfs("events/%s", "duel");
}

/* Who reads what is listed gets it, or nothing. */
TEST_F_TIMEOUT(duels, list_claim, 3600)
{
	unsigned int i;

	duel.left = left_lists;
	duel.right = right_claims;
	for (i = 0; i < rounds(); i++) {
		duel.fd[1] = open_comm(0);
		duel.id = unclaim(duel.fd[1], 0, 0, "duel");
		ASSERT_LT(0, duel.id);
		fight();
		ASSERT_EQ(0, duel.ret[0]);
		ASSERT_EQ(duel.id, duel.ret[1]);
		ASSERT_EQ(-1, listed_id("duel"));
		close_all();
	}
}

/* A claimer that is killed somewhere between CLAIM and close leaves all or nothing. */
TEST_F_TIMEOUT(duels, claimer_dies, 3600)
{
	unsigned int i, seed = getpid(), claimed = 0;

	for (i = 0; i < rounds() / 5; i++) {
		int creator = open_comm(0), fd, status;
		void *base;
		pid_t pid;

		duel.id = unclaim(creator, 0, 0, "duel");
		close(creator);
		fd = reopen(duel.id, 0, 0);
		ASSERT_LE(0, fd);
		base = map(fd, DEFAULT_SIZE, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		close(fd);
		pid = fork();
		if (!pid) {
			fd = reopen(duel.id, 0, 0);
			map(fd, DEFAULT_SIZE, PROT_READ);
			claim(fd);
			close(fd);
			pause();
		}
		usleep(rand_r(&seed) % 3000);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);

		/* Who has it mapped reads on. */
		leave_record("reads on");
		ASSERT_TRUE(recorded(base, "reads on"));
		fd = reopen(duel.id, 0, 0);
		ASSERT_TRUE(fd < 0 || claim(fd) == duel.id);
		claimed += fd < 0;
		close(fd);
		munmap(base, DEFAULT_SIZE + PAGE);
	}
	TH_LOG("%u of %u had claimed it", claimed, i);
}

#define NR_READERS	8
#define NR_RECORDS	100

static struct {
	int		fd[NR_READERS];
	unsigned int	seen[NR_READERS];
	unsigned int	written;
	bool		lost;
} eight;

/* Sleeps until there is more, each time, and looks. */
static void *eighth(void *arg)
{
	unsigned int nr = (uintptr_t)arg;
	struct pollfd p = { .fd = eight.fd[nr], .events = POLLIN };
	void *base = map(p.fd, DEFAULT_SIZE, PROT_READ);
	unsigned int want;
	char name[16];

	for (want = 1; want <= NR_RECORDS && base != MAP_FAILED; want++) {
		snprintf(name, sizeof(name), "record%u", want);
		while (!recorded(base, name)) {
			if (poll(&p, 1, 60000) != 1) {
				eight.lost = true;
				return NULL;
			}
		}
		__atomic_store_n(&eight.seen[nr], want, __ATOMIC_RELEASE);
	}
	munmap(base, DEFAULT_SIZE + PAGE);
	return NULL;
}

/* Eight readers of one buffer: each is woken for each record. */
TEST_F_TIMEOUT(duels, eight_readers, 600)
{
	int creator = open_comm(0);
	pthread_t threads[NR_READERS];
	char name[16];
	unsigned int i, j;

	memset(&eight, 0, sizeof(eight));
	duel.id = unclaim(creator, 0, 0, "eight");
	for (i = 0; i < NR_READERS; i++) {
		eight.fd[i] = reopen(duel.id, 0, 0);
		ASSERT_LE(0, eight.fd[i]);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, eighth, (void *)(uintptr_t)i));
	}
	for (i = 1; i <= NR_RECORDS; i++) {
		snprintf(name, sizeof(name), "record%u", i);
		leave_record(name);
		/* The next one would wake those whom this one did not. */
		for (j = 0; j < NR_READERS; j++) {
			while (__atomic_load_n(&eight.seen[j], __ATOMIC_ACQUIRE) < i &&
			       !eight.lost)
				usleep(100);
		}
	}
	for (i = 0; i < NR_READERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(NR_RECORDS, eight.seen[i]);
		close(eight.fd[i]);
	}
	EXPECT_FALSE(eight.lost);
	EXPECT_EQ(duel.id, claim(creator));
	close(creator);
}

TEST_HARNESS_MAIN
