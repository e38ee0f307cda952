// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events from all sides, until PERSISTENT_ROUNDS sessions were made: threads
 * that make, build half, join, open, map, poll, claim, freeze, thaw, end, close and die, on
 * few names and few fds, so that they meet. The kernel must survive (best run with KASAN and
 * lockdep), and nothing may be left. For two at a time see persistent_duels.c.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"

#define NR_THREADS	6
#define NR_SLOTS	4

/* Seconds without a new session after which there will be none. */
#define MAX_STANDSTILL	120

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

/* The steps: each says whether it got something done. */

/*
 * The newest. A thread that is late must not put an older id in its place: a session whose id
 * nobody knows keeps the name of its slot, and none can be made there any more.
 */
static void note_id(int64_t *slot, int64_t id)
{
	int64_t old = __atomic_load_n(slot, __ATOMIC_RELAXED);

	while (old < id && !__atomic_compare_exchange_n(slot, &old, id, false, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		;
}

static bool make(unsigned int slot, unsigned int *seed)
{
	char name[16];
	int fd, old = swap_fd(&shared.creator[slot], open_comm(rand_r(seed) % 2));
	int64_t id;

	close(old);
	fd = dup_fd(&shared.creator[slot]);
	if (rand_r(seed) % 2) {
		size_t size = PAGE << (rand_r(seed) % 4);
		void *base = map(fd, size, PROT_READ);

		/* Not a part of it: the mapping of an event's creator cannot be split. */
		if (rand_r(seed) % 2 && base != MAP_FAILED)
			munmap(base, size + PAGE);
	}
	snprintf(name, sizeof(name), "race%u-", slot);
	id = unclaim(fd, rand_r(seed) % 3 ? 0 : PERF_PERSISTENT_PARTIAL, 0, name);
	if (id > 0) {
		note_id(&shared.id[slot], id);
		__atomic_add_fetch(&shared.made, 1, __ATOMIC_RELAXED);
	}
	close(fd);
	return id > 0;
}

static bool join(unsigned int slot, unsigned int *seed)
{
	int64_t id = __atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED);
	int fd = open_comm(rand_r(seed) % 2);
	bool joined;

	joined = unclaim(fd, rand_r(seed) % 3 ? 0 : PERF_PERSISTENT_PARTIAL, id, "") > 0;
	if (rand_r(seed) % 2)
		claim(fd);
	close(fd);
	return joined;
}

static bool open_reader(unsigned int slot, unsigned int *seed)
{
	int64_t id = __atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED);
	int fd = reopen(id, rand_r(seed) % 2, rand_r(seed) % 2);

	close(swap_fd(&shared.reader[slot], fd));
	return fd >= 0;
}

static bool use_reader(unsigned int slot, unsigned int *seed)
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
			return true;
		}
	}
	close(p.fd);
	return false;
}

static bool claim_any(unsigned int slot, unsigned int *seed)
{
	int fd = dup_fd(rand_r(seed) % 2 ? &shared.creator[slot] : &shared.reader[slot]);
	bool claimed = claim(fd) > 0;

	close(fd);
	return claimed;
}

/* All events of a session, as one who wants it to end. */
static bool claim_session(int64_t id)
{
	struct perf_persistent_info inf;
	bool claimed = false;
	unsigned int index;
	int cpu, fd;

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
			claimed |= claim(fd) > 0;
			close(fd);
		}
	}
	return claimed;
}

static bool claim_whole(unsigned int slot, unsigned int *seed)
{
	return claim_session(__atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED));
}

static bool end_whole(unsigned int slot, unsigned int *seed)
{
	return !with_session(__atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED), session_end);
}

static bool freeze(unsigned int slot, unsigned int *seed)
{
	return !with_session(__atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED), session_freeze);
}

/* Or none can join it any more. */
static bool thaw(unsigned int slot, unsigned int *seed)
{
	return !with_session(__atomic_load_n(&shared.id[slot], __ATOMIC_RELAXED), session_thaw);
}

static bool close_any(unsigned int slot, unsigned int *seed)
{
	return !close(swap_fd(rand_r(seed) % 2 ? &shared.creator[slot] : &shared.reader[slot],
			      -1));
}

static bool meddle(unsigned int slot, unsigned int *seed)
{
	int fd = dup_fd(&shared.creator[slot]), other = open_comm(rand_r(seed) % 2);
	struct perf_event_attr attr = comm_attr();
	struct perf_persistent_info inf;
	bool member;
	void *base;

	ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd);
	ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, other);
	ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, rand_r(seed) % 2);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	close(event_open(&attr, -1, rand_r(seed) % 2, fd, 0));
	member = !info(fd, &inf);
	if (member) {
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
	return member;
}

/* A process that dies somewhere between. */
static void die_young(unsigned int slot, unsigned int *seed)
{
	unsigned int usecs = rand_r(seed) % 2000;
	pid_t pid = fork();

	if (pid < 0)
		return;
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

static bool list(unsigned int slot, unsigned int *seed)
{
	static const char * const files[] = {
		"events/%s", "sessions/%s/cpus", "sessions/%s/memory", "sessions/%s/state",
	};
	char name[16];

	snprintf(name, sizeof(name), "race%u-", slot);
	nr_entries(DEVICE "/sessions");
	return *sysfs(files[rand_r(seed) % ARRAY_SIZE(files)], name);
}

static struct {
	const char	*name;
	bool		(*step)(unsigned int slot, unsigned int *seed);
	/* Of NR_SHARES, how many are of this one. */
	unsigned int	shares;
	unsigned int	tried;
	unsigned int	done;
} steps[] = {
	{ "make",	make,		2 },
	{ "join",	join,		2 },
	{ "open",	open_reader,	2 },
	{ "read",	use_reader,	2 },
	{ "claim",	claim_any,	1 },
	{ "claim all",	claim_whole,	2 },
	{ "freeze",	freeze,		1 },
	{ "thaw",	thaw,		1 },
	{ "end",	end_whole,	1 },
	{ "close",	close_any,	1 },
	{ "meddle",	meddle,		1 },
	{ "list",	list,		1 },
};

#define NR_SHARES	17

static void *race(void *arg)
{
	unsigned int seed = (uintptr_t)arg;

	while (!__atomic_load_n(&shared.stop, __ATOMIC_RELAXED)) {
		unsigned int share = rand_r(&seed) % NR_SHARES, i = 0;

		if (!(rand_r(&seed) % 64)) {
			die_young(0, &seed);
			continue;
		}
		while (share >= steps[i].shares)
			share -= steps[i++].shares;
		__atomic_add_fetch(&steps[i].tried, 1, __ATOMIC_RELAXED);
		if (steps[i].step(rand_r(&seed) % NR_SLOTS, &seed))
			__atomic_add_fetch(&steps[i].done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Members that have come and gone have used up any number of indices. */
static void end_all(void)
{
	DIR *dir = opendir(DEVICE "/sessions");
	struct dirent *d;
	int fd;

	while (dir && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		fd = open_session(strtoll(sysfs("sessions/%s/id", d->d_name), NULL, 10));
		session_end(fd);
		close(fd);
	}
	closedir(dir);
}

FIXTURE(races)
{
	struct balance	before;
	/* Keeps perf's static keys as they are. */
	int		keep;
};

FIXTURE_SETUP(races)
{
	SKIP_WITHOUT_PERSISTENT(return);

	self->keep = open_comm(0);
	self->before = take_balance();
	ASSERT_EQ(0, self->before.sessions);
}

/* What threads leave mapped goes with the process. */
FIXTURE_TEARDOWN(races)
{
	EXPECT_EQ(0, nr_entries(DEVICE "/sessions"));
	EXPECT_EQ(self->before.events, nr_entries(DEVICE "/events"));
	close(self->keep);
}

/* PERSISTENT_RACES_SECS may ask for more. */
TEST_F_TIMEOUT(races, all, 7200)
{
	const char *secs = getenv("PERSISTENT_RACES_SECS");
	unsigned int seed = getpid(), i;
	time_t until = time(NULL) + (secs ? atoi(secs) : 0);
	time_t progress = time(NULL);
	unsigned int made, last = 0;
	pthread_t threads[NR_THREADS];

	memset(shared.creator, -1, sizeof(shared.creator));
	memset(shared.reader, -1, sizeof(shared.reader));
	TH_LOG("seed %u", seed);
	for (i = 0; i < NR_THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, race,
					    (void *)(uintptr_t)(seed + i)));
	while ((made = __atomic_load_n(&shared.made, __ATOMIC_RELAXED)) < rounds() ||
	       time(NULL) < until) {
		if (made != last) {
			last = made;
			progress = time(NULL);
		}
		if (time(NULL) - progress > MAX_STANDSTILL)
			break;
		usleep(10000);
	}
	EXPECT_LE(rounds(), made) TH_LOG("no session was made for %d s", MAX_STANDSTILL);
	__atomic_store_n(&shared.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	TH_LOG("%u sessions", shared.made);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		TH_LOG("%s: done in %u of %u", steps[i].name, steps[i].done, steps[i].tried);
		/* Or it tests nothing; if it ran for long enough. */
		EXPECT_TRUE(steps[i].done || shared.made < 100);
	}
	for (i = 0; i < NR_SLOTS; i++) {
		close(shared.creator[i]);
		close(shared.reader[i]);
	}
	end_all();
}

TEST_HARNESS_MAIN
