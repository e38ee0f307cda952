/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two sides do something to a persistent session at once: see persistent_duels.c. A test
 * describes a struct duel_kind, and calls fight_it_out().
 */
#ifndef SELFTESTS_PERF_EVENTS_PERSISTENT_DUEL_H
#define SELFTESTS_PERF_EVENTS_PERSISTENT_DUEL_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"
#include "race_window.h"

#define RCU_EXPEDITED	"/sys/kernel/rcu_expedited"

/* Nobody waits longer than that for the other's operation to be under way. */
#define MAX_LEAD_NS	500000000
/* Enough to be first. */
#define WINDOW_LEAD_NS	10000

/* Of so many rounds, the two must meet in one if they are to, and each be first in one. */
#define ROUNDS_TO_MEET	500
#define ROUNDS_FIRST	50
/* If they have not met, they get so many times the rounds; with a window, so many more. */
#define MAX_MORE	100
#define MORE_IN_WINDOW	10

/* Where the two sides are held up: COMM:FUNCTION, see persistent_window.c. */
struct window {
	const char	*left;
	const char	*right;
	/* Where the right one is, if it never comes to the former. */
	const char	*or_right;
};

#define MAX_WINDOWS	4

/*
 * What the two sides do. Each round begins with a session, or what becomes one, and ends
 * with nothing; main sets it up, lets both go at once, and looks at what they got.
 */
struct duel_kind {
	void		(*begin)(void);
	void		(*left)(void);
	void		(*right)(void);
	void		(*check)(struct __test_metadata *_metadata);
	/* Of how many rounds one is done, see slow_rounds(): some take long. */
	unsigned int	one_of;
	struct window	windows[MAX_WINDOWS];
};

static struct {
	pthread_barrier_t	gate;
	const struct duel_kind	*kind;
	unsigned int		round;
	bool			over;
	/* What they work on. */
	int			fd[3];
	int64_t			id;
	void			*base;
	/* What they got. */
	int64_t			ret[2];
	int			err[2];
	unsigned int		got;
	/* When they may begin, and when they were in the kernel; all in ns. */
	unsigned int		here;
	uint64_t		zero;
	uint64_t		start[2];
	uint64_t		began[2];
	uint64_t		ended[2];
	/* How long they take, of late. */
	uint64_t		took[2];
	unsigned int		met;
	unsigned int		left_first;
} duel;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void side_got(int side, int64_t ret)
{
	duel.ret[side] = ret;
	duel.err[side] = ret < 0 ? errno : 0;
}

/* Emulators that have one thread for all CPUs turn to the next. */
static void relax(void)
{
#if defined(__x86_64__)
	asm volatile("pause" : : : "memory");
#elif defined(__aarch64__)
	asm volatile("yield" : : : "memory");
#else
	asm volatile("" : : : "memory");
#endif
}

/* Lets both go at once, or one as much before the other as fight() drew. */
static void wait_for_start(int side)
{
	unsigned int spins = 0;
	uint64_t zero;

	/* The clock starts when both are awake. */
	if (__atomic_add_fetch(&duel.here, 1, __ATOMIC_ACQ_REL) == 2)
		__atomic_store_n(&duel.zero, now_ns(), __ATOMIC_RELEASE);
	while (!(zero = __atomic_load_n(&duel.zero, __ATOMIC_ACQUIRE))) {
		relax();
		/* They share a CPU while the other one is away. */
		if (!(++spins % 4096))
			sched_yield();
	}
	while (now_ns() - zero < duel.start[side])
		relax();
}

static void *side(void *arg)
{
	int me = !!arg;

	/* So that the window knows them. */
	prctl(PR_SET_NAME, arg ? "right" : "left");
	for (;;) {
		pthread_barrier_wait(&duel.gate);
		if (duel.over)
			return NULL;
		wait_for_start(me);
		duel.began[me] = now_ns();
		(me ? duel.kind->right : duel.kind->left)();
		duel.ended[me] = now_ns();
		pthread_barrier_wait(&duel.gate);
	}
}

static bool have_window(void)
{
	return !access(WINDOW_PARAM "met", R_OK);
}

/* With a window, one side does nothing until the other is held up in it. */
static void let_come_first(int side)
{
	uint64_t from = now_ns();

	/* It may have been there already, for what the round began with. */
	while (have_window() && !window_holds(side) && now_ns() - from < 5000000000ULL)
		usleep(100);
}

/* For a left side that meets a CPU that goes. No CPU goes while one spins in the kernel. */
static void let_right_come_first(void)
{
	let_come_first(WINDOW_RIGHT);
}

/*
 * The one or the other is first, by up to what it takes: most often by little, as what one
 * takes that has to wait for the other is more than what it takes alone.
 */
static void draw_lead(unsigned int *seed)
{
	unsigned int second = rand_r(seed) % 2;

	duel.start[!second] = 0;
	duel.start[second] = WINDOW_LEAD_NS;
	/* It is the window where they wait for each other. */
	if (have_window())
		return;

	duel.start[second] = rand_r(seed) % (rand_r(seed) % (duel.took[!second] + 1) + 1);
}

static void note_fight(void)
{
	int i;

	duel.met += duel.began[0] < duel.ended[1] && duel.began[1] < duel.ended[0];
	duel.left_first += duel.began[0] < duel.began[1];
	for (i = 0; i < 2; i++) {
		uint64_t took = duel.ended[i] - duel.began[i];

		took = took < MAX_LEAD_NS ? took : MAX_LEAD_NS;
		duel.took[i] = duel.round ? (duel.took[i] * 3 + took) / 4 : took;
	}
}

static void fight(unsigned int *seed)
{
	if (have_window())
		set_window("armed", "1");
	draw_lead(seed);
	duel.here = 0;
	duel.zero = 0;
	pthread_barrier_wait(&duel.gate);
	pthread_barrier_wait(&duel.gate);
	note_fight();
}

static void close_all(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		close(duel.fd[i]);
		duel.fd[i] = -1;
	}
}

/*
 * How often the two must be in the kernel at once, or it tests nothing. Of pairs that have few
 * rounds it is not asked.
 */
static unsigned int meetings(unsigned int nr)
{
	return nr / ROUNDS_TO_MEET ?: !duel.kind->one_of;
}

/*
 * The shortest pairs meet seldom where the CPUs are not ours alone, and a busy host keeps a
 * virtual CPU away for longer than who is there first waits: give them time.
 */
static bool goes_on(unsigned int nr, const struct window *window)
{
	if (duel.round < nr)
		return true;
	if (window)
		return read_long(WINDOW_PARAM "met") < nr / 2 && duel.round < nr + MORE_IN_WINDOW;
	return getenv("PERSISTENT_MEET") && duel.met < meetings(nr) &&
	       duel.round < MAX_MORE * nr;
}

static void fight_rounds(struct __test_metadata *_metadata, const struct duel_kind *kind,
			 const struct window *window)
{
	unsigned int nr = slow_rounds(kind->one_of ?: 1);
	unsigned int seed = getpid();
	uint64_t from = now_ns();

	/* So that they must meet in one. */
	if (window && nr < 2)
		nr = 2;
	duel.kind = kind;
	duel.got = 0;
	duel.met = 0;
	duel.left_first = 0;
	memset(duel.took, 0, sizeof(duel.took));
	for (duel.round = 0; goes_on(nr, window); duel.round++) {
		if (!window && duel.round % 4 < 2)
			write_long(RCU_EXPEDITED, duel.round % 4);
		kind->begin();
		fight(&seed);
		kind->check(_metadata);
		close_all();
	}
	if (!window) {
		TH_LOG("%u rounds in %.0f s: at once in %u, left first in %u, %u of one outcome",
		       duel.round, (now_ns() - from) / 1e9, duel.met, duel.left_first, duel.got);
		if (getenv("PERSISTENT_MEET"))
			EXPECT_LE(meetings(nr), duel.met);
		EXPECT_LE(nr / ROUNDS_FIRST, duel.left_first);
		EXPECT_LE(nr / ROUNDS_FIRST, duel.round - duel.left_first);
		return;
	}
	TH_LOG("%s and %s met in %ld of %u rounds, %u outcomes of one kind", window->left,
	       window->right, read_long(WINDOW_PARAM "met"), duel.round, duel.got);
	if (window->or_right && !read_long(WINDOW_PARAM "met"))
		return;
	/*
	 * Or it tests nothing. Not in each round: who waits has interrupts off, and the other
	 * may first have a TLB to be flushed there.
	 */
	EXPECT_LE(nr / 2, read_long(WINDOW_PARAM "met"));
}

static long fight_in_window(struct __test_metadata *_metadata, const struct duel_kind *kind,
			    const struct window *window)
{
	long met;

	EXPECT_EQ(0, set_window("left", window->left)) TH_LOG("%s", window->left);
	EXPECT_EQ(0, set_window("right", window->right)) TH_LOG("%s", window->right);
	fight_rounds(_metadata, kind, window);
	met = read_long(WINDOW_PARAM "met");
	set_window("left", "\n");
	set_window("right", "\n");
	return met;
}

static void fight_it_out(struct __test_metadata *_metadata, const struct duel_kind *kind)
{
	const struct window *window;

	if (!have_window()) {
		fight_rounds(_metadata, kind, NULL);
		return;
	}
	for (window = kind->windows; window < kind->windows + MAX_WINDOWS && window->left;
	     window++) {
		struct window other = { window->left, window->or_right };

		if (!fight_in_window(_metadata, kind, window) && other.right)
			fight_in_window(_metadata, kind, &other);
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
	const char *module = getenv("PERSISTENT_WINDOW");

	SKIP_WITHOUT_PERSISTENT(return);

	if (module)
		ASSERT_EQ(0, load_window(module));
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
	write_long(RCU_EXPEDITED, 0);
	EXPECT_BALANCE();
	close(self->keep);
	if (have_window())
		EXPECT_EQ(0, unload_window());
}

#endif /* SELFTESTS_PERF_EVENTS_PERSISTENT_DUEL_H */
