// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events from two sides at once, PERSISTENT_ROUNDS times each: one of the
 * outcomes that there can be, and nothing left of it.
 *
 * If PERSISTENT_WINDOW is the path of test_modules/persistent_window.ko, the two
 * are held up in the kernel until they meet, at each place where they can: it is a test's
 * windows that say where.
 *
 * Without it they meet by chance. Each round draws which of them is first, and by how
 * much, up to what it takes, so that every part of the one comes to lie beside every part
 * of the other. A test says how many rounds had both in the kernel at once, and in
 * how many the left one began: one that tries no race, or always in the same order,
 * proves nothing. With PERSISTENT_MEET a test fails whose sides did not meet. That is for
 * machines whose CPUs run at once: an emulator that has them take turns (ACCEL=single)
 * leaves an operation in its midst now and then only.
 *
 * Some of the operations wait for a grace period of RCU, which is most of their time. It is
 * expedited in three rounds of four.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"
#include "race_window.h"

#define ONLINE		"/sys/devices/system/cpu/cpu1/online"
#define RCU_EXPEDITED	"/sys/kernel/rcu_expedited"

/* Nobody waits longer than that for the other's operation to be under way. */
#define MAX_LEAD_NS	500000000
/* Enough to be first. */
#define WINDOW_LEAD_NS	10000

/* Of so many rounds, the two must meet in one if they are to, and each be first in one. */
#define ROUNDS_TO_MEET	500
#define ROUNDS_FIRST	50
/* If they have not met, they get so many times the rounds. */
#define MAX_MORE	100

/* Where the two sides are held up: COMM:FUNCTION, see persistent_window.c. */
struct window {
	const char	*left;
	const char	*right;
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
	/* Of how many rounds one is done: some take long. */
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

/* The shortest pairs meet seldom where the CPUs are not ours alone: give them time. */
static bool goes_on(unsigned int nr, const struct window *window)
{
	if (duel.round < nr)
		return true;
	return !window && getenv("PERSISTENT_MEET") && duel.met < meetings(nr) &&
	       duel.round < MAX_MORE * nr;
}

static void fight_rounds(struct __test_metadata *_metadata, const struct duel_kind *kind,
			 const struct window *window)
{
	unsigned int nr = rounds() / (kind->one_of ?: 1) ?: 1;
	unsigned int seed = getpid();
	uint64_t from = now_ns();

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
	       window->right, read_long(WINDOW_PARAM "met"), nr, duel.got);
	/*
	 * Or it tests nothing. Not in each round: who waits has interrupts off, and the other
	 * may first have a TLB to be flushed there.
	 */
	EXPECT_LE(nr / 2, read_long(WINDOW_PARAM "met"));
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
		ASSERT_EQ(0, set_window("left", window->left)) TH_LOG("%s", window->left);
		ASSERT_EQ(0, set_window("right", window->right)) TH_LOG("%s", window->right);
		fight_rounds(_metadata, kind, window);
		set_window("left", "\n");
		set_window("right", "\n");
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

	if (geteuid())
		SKIP(return, "must be root");
	if (!have_persistent())
		SKIP(return, "no CONFIG_PERF_PERSISTENT");

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

/* What they begin with. */

static void has_event(void)
{
	duel.fd[0] = open_comm(0);
}

static void has_two_fds(void)
{
	has_event();
	duel.fd[1] = dup(duel.fd[0]);
}

static void has_two_events(void)
{
	has_event();
	duel.fd[1] = open_comm(0);
}

static void has_mapped_event(void)
{
	has_event();
	duel.base = map(duel.fd[0], 4 * PAGE, PROT_READ);
}

static void has_session(void)
{
	has_event();
	duel.id = unclaim(duel.fd[0], 0, 0, "duel");
}

static void has_reader(void)
{
	has_session();
	duel.fd[1] = reopen(duel.id, 0, 0);
}

static void has_session_and_event(void)
{
	has_session();
	duel.fd[1] = open_comm(0);
}

/* What they do. */

static void left_claims(void)
{
	side_got(0, claim(duel.fd[0]));
}

static void right_claims(void)
{
	side_got(1, claim(duel.fd[1]));
}

static void left_unclaims(void)
{
	side_got(0, unclaim(duel.fd[0], 0, 0, "duel"));
}

static void right_unclaims(void)
{
	side_got(1, unclaim(duel.fd[1], 0, 0, "duel"));
}

static void right_closes(void)
{
	close(duel.fd[1]);
	duel.fd[1] = -1;
}

static void right_unmaps(void)
{
	munmap(duel.base, 5 * PAGE);
}

static void check_claim_claim(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	ASSERT_EQ(duel.id, duel.ret[winner]);
	ASSERT_EQ(-1, duel.ret[!winner]);
	ASSERT_EQ(EBUSY, duel.err[!winner]);
	ASSERT_EQ(-1, reopen(duel.id, 0, 0));
}

/* One of two who claim wins, the other is told so. */
TEST_F_TIMEOUT(duels, claim_claim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_reader,
		.left	= left_claims,
		.right	= right_claims,
		.check	= check_claim_claim,
		.windows = {
			{ "left:perf_persistent_claim", "right:perf_persistent_claim" },
			/* The one has it, but is not done. */
			{ "left:perf_persistent_unpublish", "right:perf_persistent_claim" },
		},
	});
}

static void right_opens(void)
{
	duel.fd[1] = reopen(duel.id, 0, 0);
	side_got(1, duel.fd[1]);
	duel.base = MAP_FAILED;
	if (duel.fd[1] >= 0)
		duel.base = map(duel.fd[1], DEFAULT_SIZE, PROT_READ);
}

static void check_claim_open(struct __test_metadata *_metadata)
{
	struct perf_persistent_info inf;

	ASSERT_EQ(duel.id, duel.ret[0]);
	close(duel.fd[0]);
	duel.fd[0] = -1;
	if (duel.ret[1] < 0) {
		ASSERT_EQ(ENOENT, duel.err[1]);
		return;
	}
	duel.got++;
	ASSERT_NE(MAP_FAILED, duel.base);
	ASSERT_EQ(0, info(duel.fd[1], &inf));
	ASSERT_EQ(duel.id, inf.id);
	leave_record("reads on");
	ASSERT_TRUE(recorded(duel.base, "reads on"));
	ASSERT_EQ(-1, claim(duel.fd[1]));
	munmap(duel.base, DEFAULT_SIZE + PAGE);
}

/* Who opens what is being claimed has it, and reads on, or has nothing. */
TEST_F_TIMEOUT(duels, claim_open, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session,
		.left	= left_claims,
		.right	= right_opens,
		.check	= check_claim_open,
		.windows = {
			{ "left:perf_persistent_claim", "right:perf_persistent_find" },
			/* It was found, but is not open yet. */
			{ "left:perf_persistent_claim", "right:perf_persistent_may_read" },
			{ "left:perf_persistent_unpublish", "right:perf_persistent_find" },
		},
	});
}

static void right_joins(void)
{
	side_got(1, unclaim(duel.fd[1], 0, duel.id, ""));
}

static void check_claim_join(struct __test_metadata *_metadata)
{
	ASSERT_EQ(duel.id, duel.ret[0]);
	if (duel.ret[1] < 0) {
		ASSERT_EQ(ENOENT, duel.err[1]);
		ASSERT_EQ(-1, listed_id("duel"));
		return;
	}
	duel.got++;
	ASSERT_EQ(duel.id, listed_id("duel"));
	ASSERT_EQ(duel.id, claim(duel.fd[1]));
}

/* Who joins what is being claimed keeps it alive, or comes too late. */
TEST_F_TIMEOUT(duels, claim_join, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_and_event,
		.left	= left_claims,
		.right	= right_joins,
		.check	= check_claim_join,
		.windows = {
			{ "left:perf_persistent_claim", "right:perf_persistent_unclaim" },
			{ "left:perf_persistent_claim", "right:perf_rb_seal" },
			{ "left:perf_persistent_unpublish", "right:perf_persistent_unclaim" },
		},
	});
}

static void check_unclaim_claim(struct __test_metadata *_metadata)
{
	ASSERT_LT(0, duel.ret[0]);
	if (duel.ret[1] < 0) {
		/* Before it was anybody's. */
		ASSERT_EQ(EINVAL, duel.err[1]);
		ASSERT_EQ(duel.ret[0], listed_id("duel"));
		ASSERT_EQ(duel.ret[0], claim(duel.fd[0]));
		return;
	}
	duel.got++;
	ASSERT_EQ(duel.ret[0], duel.ret[1]);
	ASSERT_EQ(-1, listed_id("duel"));
}

/* Who claims what is being given away comes too early, or has it. */
TEST_F_TIMEOUT(duels, unclaim_claim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_fds,
		.left	= left_unclaims,
		.right	= right_claims,
		.check	= check_unclaim_claim,
		.windows = {
			{ "left:perf_persistent_unclaim", "right:perf_persistent_ioctl" },
			{ "left:perf_rb_seal", "right:perf_persistent_ioctl" },
			/* It is a member, and the ioctl that made it one is not done. */
			{ "left:perf_remove_from_owner", "right:perf_persistent_ioctl" },
		},
	});
}

static void has_one_or_two_events(void)
{
	if (duel.round % 2)
		has_two_fds();
	else
		has_two_events();
}

static void check_unclaim_unclaim(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	ASSERT_LT(0, duel.ret[winner]);
	ASSERT_EQ(-1, duel.ret[!winner]);
	ASSERT_EQ(duel.round % 2 ? EBUSY : EEXIST, duel.err[!winner]);
	ASSERT_EQ(duel.ret[winner], claim(duel.fd[winner]));
}

/* One event is given away once, one name given once. */
TEST_F_TIMEOUT(duels, unclaim_unclaim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_one_or_two_events,
		.left	= left_unclaims,
		.right	= right_unclaims,
		.check	= check_unclaim_unclaim,
		.windows = {
			{ "left:perf_persistent_unclaim", "right:perf_persistent_unclaim" },
			{ "left:perf_persistent_publish", "right:perf_persistent_unclaim" },
		},
	});
}

static void has_two_parts(void)
{
	has_two_events();
	duel.id = unclaim(duel.fd[0], PERF_PERSISTENT_PARTIAL, 0, "duel");
	unclaim(duel.fd[1], PERF_PERSISTENT_PARTIAL, duel.id, "");
}

static void left_completes(void)
{
	side_got(0, unclaim(duel.fd[0], 0, duel.id, ""));
}

static void check_complete_close(struct __test_metadata *_metadata)
{
	if (duel.ret[0] < 0) {
		ASSERT_EQ(EBUSY, duel.err[0]);
		ASSERT_EQ(-1, listed_id("duel"));
		return;
	}
	duel.got++;
	ASSERT_STREQ("2", sysfs("sessions/%s/nr_events", "duel"));
	duel.fd[1] = reopen(duel.id, 0, 1);
	ASSERT_EQ(duel.id, claim(duel.fd[1]));
	ASSERT_EQ(duel.id, claim(duel.fd[0]));
}

/* A session that is completed while one of its files is closed is there whole, or not. */
TEST_F_TIMEOUT(duels, complete_close, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_parts,
		.left	= left_completes,
		.right	= right_closes,
		.check	= check_complete_close,
		.windows = {
			{ "left:perf_persistent_unclaim", "right:perf_persistent_release" },
			{ "left:perf_persistent_publish", "right:perf_persistent_release" },
		},
	});
}

static void left_joins_part(void)
{
	side_got(0, unclaim(duel.fd[0], PERF_PERSISTENT_PARTIAL, duel.id, ""));
}

static void has_part_and_event(void)
{
	has_two_events();
	duel.id = unclaim(duel.fd[1], PERF_PERSISTENT_PARTIAL, 0, "duel");
}

static void check_unclaim_close(struct __test_metadata *_metadata)
{
	/* It joined, and went with the rest; or there was nothing to join any more. */
	ASSERT_TRUE(duel.ret[0] == duel.id || duel.err[0] == ENOENT);
	duel.got += duel.ret[0] == duel.id;
	ASSERT_EQ(-1, claim(duel.fd[0]));
	ASSERT_EQ(duel.ret[0] < 0 ? EINVAL : EBUSY, errno);
	ASSERT_EQ(-1, listed_id("duel"));
}

/* Who joins a session that is being built, and ends as one of its files is closed. */
TEST_F_TIMEOUT(duels, unclaim_close, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_part_and_event,
		.left	= left_joins_part,
		.right	= right_closes,
		.check	= check_unclaim_close,
		.windows = {
			{ "left:perf_persistent_unclaim", "right:perf_persistent_release" },
			{ "left:perf_rb_seal", "right:perf_persistent_release" },
			{ "left:perf_remove_from_owner", "right:perf_persistent_release" },
			{ "left:perf_persistent_unclaim", "right:perf_rb_unseal" },
		},
	});
}

static void check_unclaim_munmap(struct __test_metadata *_metadata)
{
	struct perf_persistent_info inf;
	void *base;

	ASSERT_LT(0, duel.ret[0]);
	duel.fd[1] = reopen(duel.ret[0], 0, 0);
	ASSERT_EQ(0, info(duel.fd[1], &inf));
	ASSERT_TRUE(inf.data_size == 4 * PAGE || inf.data_size == DEFAULT_SIZE);
	duel.got += inf.data_size == DEFAULT_SIZE;
	base = map(duel.fd[1], inf.data_size, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	leave_record("in it");
	ASSERT_TRUE(recorded(base, "in it"));
	munmap(base, inf.data_size + PAGE);
	ASSERT_EQ(duel.ret[0], claim(duel.fd[0]));
}

/* The buffer of a mapping that goes meanwhile is the session's, or there is another. */
TEST_F_TIMEOUT(duels, unclaim_munmap, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_mapped_event,
		.left	= left_unclaims,
		.right	= right_unmaps,
		.check	= check_unclaim_munmap,
		.windows = {
			{ "left:perf_rb_seal", "right:perf_mmap_close" },
			/* The last count of the event is about to go. */
			{ "left:perf_rb_seal", "right:atomic_dec_and_mutex_lock" },
		},
	});
}

static void has_mapped_and_event(void)
{
	has_mapped_event();
	duel.fd[1] = open_comm(0);
}

static void right_redirects(void)
{
	side_got(1, ioctl(duel.fd[1], PERF_EVENT_IOC_SET_OUTPUT, duel.fd[0]));
}

static void check_unclaim_set_output(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	/* Both may find the other there, and give up; both may not win. */
	ASSERT_TRUE(duel.ret[winner] < 0 || duel.ret[!winner] == -1);
	ASSERT_TRUE(duel.ret[0] >= 0 || duel.err[0] == EINVAL);
	ASSERT_TRUE(duel.ret[1] >= 0 || duel.err[1] == EBUSY);
	ASSERT_TRUE(duel.ret[0] < 0 || claim(duel.fd[0]) == duel.ret[0]);
	right_unmaps();
}

/* Nobody gets into a buffer as it becomes a session's. */
TEST_F_TIMEOUT(duels, unclaim_set_output, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_mapped_and_event,
		.left	= left_unclaims,
		.right	= right_redirects,
		.check	= check_unclaim_set_output,
		.windows = {
			{ "left:perf_persistent_unclaim", "right:perf_event_set_output" },
			{ "left:perf_persistent_unclaim", "right:ring_buffer_attach" },
		},
	});
}

static void has_listed(void)
{
	duel.fd[1] = open_comm(0);
	duel.id = unclaim(duel.fd[1], 0, 0, "duel");
}

static void left_lists(void)
{
	side_got(0, strtol(sysfs("sessions/%s/state", "duel"), NULL, 10));
	sysfs("events/%s", "duel");
}

static void check_list_claim(struct __test_metadata *_metadata)
{
	ASSERT_LT(0, duel.id);
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(duel.id, duel.ret[1]);
	ASSERT_EQ(-1, listed_id("duel"));
}

/* Who reads what is listed gets it, or nothing. */
TEST_F_TIMEOUT(duels, list_claim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_listed,
		.left	= left_lists,
		.right	= right_claims,
		.check	= check_list_claim,
		.windows = {
			{ "left:session_state_show", "right:perf_persistent_claim" },
			{ "left:session_state_show", "right:perf_persistent_unpublish" },
		},
	});
}

static void left_asks(void)
{
	struct perf_rb_reserved reserved = {};

	side_got(0, ioctl(duel.fd[1], PERF_EVENT_IOC_RESERVED_HEAD, &reserved));
	duel.got += reserved.data_size == DEFAULT_SIZE;
}

/* The session's share, and the creator's file. */
static void right_claims_and_closes(void)
{
	side_got(1, claim(duel.fd[0]));
	close(duel.fd[0]);
	duel.fd[0] = -1;
}

static void check_snapshot_claim(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(duel.id, duel.ret[1]);
	ASSERT_EQ(duel.round + 1, duel.got);
}

/* Who takes a snapshot of what is being claimed takes it. */
TEST_F_TIMEOUT(duels, snapshot_claim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_reader,
		.left	= left_asks,
		.right	= right_claims_and_closes,
		.check	= check_snapshot_claim,
		.windows = {
			{ "left:perf_rb_reserved_ioctl", "right:perf_persistent_claim" },
			{ "left:perf_rb_reserved_ioctl", "right:perf_persistent_release" },
		},
	});
}

static void left_asks_creator(void)
{
	struct perf_rb_reserved reserved = {};

	side_got(0, ioctl(duel.fd[0], PERF_EVENT_IOC_RESERVED_HEAD, &reserved));
	duel.got += !duel.ret[0];
}

static void check_snapshot_munmap(struct __test_metadata *_metadata)
{
	ASSERT_TRUE(!duel.ret[0] || duel.err[0] == EINVAL);
}

/* Who takes a snapshot of a buffer that goes takes it, or is told that there is none. */
TEST_F_TIMEOUT(duels, snapshot_munmap, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_mapped_event,
		.left	= left_asks_creator,
		.right	= right_unmaps,
		.check	= check_snapshot_munmap,
		.windows = {
			{ "left:perf_rb_reserved_ioctl", "right:perf_mmap_close" },
			{ "left:ring_buffer_get", "right:perf_mmap_close" },
			{ "left:ring_buffer_put", "right:atomic_dec_and_mutex_lock" },
		},
	});
}

/* On a CPU that goes away. */

static void has_claimed_on_1(void)
{
	duel.fd[0] = open_comm(1);
	duel.id = unclaim(duel.fd[0], 0, 0, "duel");
	claim(duel.fd[0]);
}

static void has_session_on_1(void)
{
	duel.fd[0] = open_comm(1);
	duel.id = unclaim(duel.fd[0], 0, 0, "duel");
}

static void has_event_on_1(void)
{
	duel.fd[0] = open_comm(1);
}

/* A CPU does not go while one spins in the kernel: let it come first. */
static void let_right_come_first(void)
{
	uint64_t from = now_ns();

	/* It may have been there already, for what the round began with. */
	while (have_window() && read_long(WINDOW_PARAM "waiting") != 2 &&
	       now_ns() - from < 5000000000ULL)
		usleep(100);
}

static void left_claims_then(void)
{
	let_right_come_first();
	left_claims();
}

static void left_unclaims_then(void)
{
	let_right_come_first();
	left_unclaims();
}

static void left_closes_then(void)
{
	let_right_come_first();
	close(duel.fd[0]);
	duel.fd[0] = -1;
}

static void right_offlines(void)
{
	side_got(1, write_long(ONLINE, 0));
}

static void right_onlines(void)
{
	side_got(1, write_long(ONLINE, 1));
}

static void check_hotplug(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_EQ(-1, listed_id("duel"));
	ASSERT_EQ(0, write_long(ONLINE, 1));
}

static bool can_offline(void)
{
	return !access(ONLINE, W_OK);
}

/* The last file of an event is closed as its CPU goes. */
TEST_F_TIMEOUT(duels, close_hotplug, 3600)
{
	if (!can_offline())
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_claimed_on_1,
		.left	= left_closes_then,
		.right	= right_offlines,
		.check	= check_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_rb_unseal", "*:__perf_event_exit_context" },
			{ "left:perf_event_release_kernel", "*:__perf_event_exit_context" },
		},
	});
}

static void check_claim_hotplug(struct __test_metadata *_metadata)
{
	ASSERT_EQ(duel.id, duel.ret[0]);
	close(duel.fd[0]);
	duel.fd[0] = -1;
	check_hotplug(_metadata);
}

/* It is claimed as its CPU goes. */
TEST_F_TIMEOUT(duels, claim_hotplug, 3600)
{
	if (!can_offline())
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_on_1,
		.left	= left_claims_then,
		.right	= right_offlines,
		.check	= check_claim_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_persistent_claim", "*:__perf_event_exit_context" },
			{ "left:perf_persistent_unpublish", "*:__perf_event_exit_context" },
		},
	});
}

static void has_session_on_offline_1(void)
{
	has_session_on_1();
	write_long(ONLINE, 0);
}

/* It is claimed as its CPU comes back, and its events with it. */
TEST_F_TIMEOUT(duels, claim_online, 3600)
{
	if (!can_offline())
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_on_offline_1,
		.left	= left_claims_then,
		.right	= right_onlines,
		.check	= check_claim_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_persistent_claim", "*:perf_install_in_context" },
			{ "left:perf_persistent_claim", "*:perf_persistent_follow_cpus" },
		},
	});
}

static void check_unclaim_hotplug(struct __test_metadata *_metadata)
{
	/* It was in time, or its CPU had gone. */
	ASSERT_TRUE(duel.ret[0] > 0 || duel.err[0] == ENODEV);
	if (duel.ret[0] > 0) {
		duel.got++;
		ASSERT_EQ(duel.ret[0], claim(duel.fd[0]));
	}
	close(duel.fd[0]);
	duel.fd[0] = -1;
	check_hotplug(_metadata);
}

/* It is given away as its CPU goes. */
TEST_F_TIMEOUT(duels, unclaim_hotplug, 3600)
{
	if (!can_offline())
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_event_on_1,
		.left	= left_unclaims_then,
		.right	= right_offlines,
		.check	= check_unclaim_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_persistent_unclaim", "*:__perf_event_exit_context" },
			{ "left:perf_persistent_attach", "*:__perf_event_exit_context" },
		},
	});
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
