// SPDX-License-Identifier: GPL-2.0
/*
 * A session that is frozen, thawed and ended while others do something to it: see
 * persistent_duels.c.
 *
 * If PERSISTENT_CAUSE is the path of test_modules/persistent_cause.ko, causes of the kernel are
 * among what freezes: these find the session without a lock, and without a reference.
 */
#define _GNU_SOURCE

#include "persistent_duel.h"
#include "persistent_session.h"

#define FROZEN	PERF_PERSISTENT_STATE_FROZEN

#define CAUSES		"/proc/sys/kernel/perf_persistent_freeze"
#define CAUSE		"persistent_cause"
#define CAUSE_PARAM	"/sys/module/" CAUSE "/parameters/"

/* What they begin with: fd[0] and fd[1] are the session, fd[2] is its event. */

static void has_two_sessions_fds(void)
{
	duel.fd[2] = open_comm(0);
	duel.id = unclaim(duel.fd[2], 0, 0, "duel");
	duel.fd[0] = open_session(duel.id);
	duel.fd[1] = open_session(duel.id);
}

static void has_frozen(void)
{
	has_two_sessions_fds();
	session_freeze(duel.fd[0]);
}

static void left_freezes(void)
{
	side_got(0, session_freeze(duel.fd[0]));
}

static void right_freezes(void)
{
	side_got(1, session_freeze(duel.fd[1]));
}

static void left_thaws(void)
{
	side_got(0, session_thaw(duel.fd[0]));
}

static void right_thaws(void)
{
	side_got(1, session_thaw(duel.fd[1]));
}

static void right_ends(void)
{
	side_got(1, session_end(duel.fd[1]));
}

static void left_ends(void)
{
	side_got(0, session_end(duel.fd[0]));
}

/* Is it what its state says? Then ends it. */
static void check_state(struct __test_metadata *_metadata, bool frozen)
{
	char name[16];
	void *base = map(duel.fd[2], DEFAULT_SIZE, PROT_READ);

	ASSERT_NE(MAP_FAILED, base);
	snprintf(name, sizeof(name), "c%u", duel.round);
	leave_record(name);
	ASSERT_EQ(frozen ? FROZEN : 0, session_state(duel.fd[0]));
	ASSERT_EQ(!frozen, recorded(base, name));
	munmap(base, DEFAULT_SIZE + PAGE);
	ASSERT_EQ(0, session_end(duel.fd[0]));
}

static void check_freeze_freeze(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	ASSERT_EQ(0, duel.ret[winner]);
	ASSERT_EQ(-1, duel.ret[!winner]);
	ASSERT_EQ(EALREADY, duel.err[!winner]);
	check_state(_metadata, true);
}

/* It is frozen once, and is when either returns. */
TEST_F_TIMEOUT(duels, freeze_freeze, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_sessions_fds,
		.left	= left_freezes,
		.right	= right_freezes,
		.check	= check_freeze_freeze,
		.windows = {
			{ "left:perf_persistent_freeze", "right:perf_persistent_freeze" },
		},
	});
}

static void check_freeze_thaw(struct __test_metadata *_metadata)
{
	bool frozen = !duel.ret[0];

	/* Thawed it is in any case: it was frozen before. */
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_TRUE(frozen || duel.err[0] == EALREADY);
	duel.got += frozen;
	check_state(_metadata, frozen);
}

/* A freeze that comes with a thaw is before it, and fails, or is after it, and holds. */
TEST_F_TIMEOUT(duels, freeze_thaw, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_frozen,
		.left	= left_freezes,
		.right	= right_thaws,
		.check	= check_freeze_thaw,
		.windows = {
			{ "left:perf_persistent_freeze_now",
			  "right:perf_persistent_pause_buffers" },
			{ "left:perf_persistent_freeze", "right:perf_persistent_thaw" },
		},
	});
}

static void check_thaw_thaw(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	ASSERT_EQ(0, duel.ret[winner]);
	ASSERT_EQ(EALREADY, duel.err[!winner]);
	check_state(_metadata, false);
}

/* It is thawed once. */
TEST_F_TIMEOUT(duels, thaw_thaw, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_frozen,
		.left	= left_thaws,
		.right	= right_thaws,
		.check	= check_thaw_thaw,
		.windows = {
			{ "left:perf_persistent_thaw", "right:perf_persistent_thaw" },
		},
	});
}

static void check_with_end(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_TRUE(!duel.ret[0] || duel.err[0] == ENOENT);
	duel.got += !duel.ret[0];
	ASSERT_EQ(PERF_PERSISTENT_STATE_ENDED, session_state(duel.fd[0]));
	ASSERT_EQ(-1, listed_id("duel"));
}

/* It is frozen as it ends. */
TEST_F_TIMEOUT(duels, freeze_end, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_sessions_fds,
		.left	= left_freezes,
		.right	= right_ends,
		.check	= check_with_end,
		.windows = {
			{ "left:perf_persistent_freeze", "right:perf_persistent_end_all" },
		},
	});
}

/* It is thawed as it ends. */
TEST_F_TIMEOUT(duels, thaw_end, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_frozen,
		.left	= left_thaws,
		.right	= right_ends,
		.check	= check_with_end,
		.windows = {
			{ "left:perf_persistent_thaw", "right:perf_persistent_end_all" },
		},
	});
}

static void check_end_end(struct __test_metadata *_metadata)
{
	unsigned int winner = duel.ret[0] < 0;

	duel.got += winner;
	ASSERT_EQ(0, duel.ret[winner]);
	ASSERT_EQ(ENOENT, duel.err[!winner]);
	ASSERT_EQ(-1, listed_id("duel"));
}

/* It is ended once. */
TEST_F_TIMEOUT(duels, end_end, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_sessions_fds,
		.left	= left_ends,
		.right	= right_ends,
		.check	= check_end_end,
		.windows = {
			{ "left:perf_persistent_end_all", "right:perf_persistent_end_all" },
		},
	});
}

/* One event joins, of which fd[2] is. */
static void has_session_and_newcomer(void)
{
	int fd = open_comm(0);

	duel.id = unclaim(fd, 0, 0, "duel");
	close(fd);
	duel.fd[0] = open_session(duel.id);
	duel.fd[2] = open_comm(0);
}

static void right_joins(void)
{
	side_got(1, unclaim(duel.fd[2], 0, duel.id, ""));
}

static void check_freeze_join(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_TRUE(duel.ret[1] == duel.id || duel.err[1] == EBUSY);
	duel.got += duel.ret[1] == duel.id;
	if (duel.ret[1] == duel.id)
		check_state(_metadata, true);
	else
		ASSERT_EQ(0, session_end(duel.fd[0]));
}

/* An event that joins a session which is being frozen is frozen with it, or refused. */
TEST_F_TIMEOUT(duels, freeze_join, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_and_newcomer,
		.left	= left_freezes,
		.right	= right_joins,
		.check	= check_freeze_join,
		.windows = {
			{ "left:perf_persistent_freeze", "right:perf_persistent_unclaim" },
			{ "left:perf_persistent_freeze_now",
			  "right:perf_persistent_freeze_joined" },
			{ "left:perf_persistent_freeze_now", "right:perf_persistent_attach" },
		},
	});
}

static void right_joins_session(void)
{
	side_got(1, unclaim(duel.fd[2], 0, duel.id, ""));
}

static void check_end_join(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_TRUE(duel.ret[1] == duel.id || duel.err[1] == ENOENT);
	duel.got += duel.ret[1] == duel.id;
	ASSERT_EQ(-1, listed_id("duel"));
	ASSERT_EQ(-1, claim(duel.fd[2]));
}

/* An event that joins a session which is being ended ends with it, or is refused. */
TEST_F_TIMEOUT(duels, end_join, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_and_newcomer,
		.left	= left_ends,
		.right	= right_joins_session,
		.check	= check_end_join,
		.windows = {
			{ "left:perf_persistent_end_all", "right:perf_persistent_unclaim" },
		},
	});
}

static void right_claims_event(void)
{
	side_got(1, claim(duel.fd[2]));
}

static void check_freeze_claim(struct __test_metadata *_metadata)
{
	ASSERT_EQ(duel.id, duel.ret[1]);
	ASSERT_TRUE(!duel.ret[0] || duel.err[0] == ENOENT);
	duel.got += !duel.ret[0];
	ASSERT_EQ(-1, listed_id("duel"));
}

/* The last event is claimed as the session is frozen. */
TEST_F_TIMEOUT(duels, freeze_claim, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_sessions_fds,
		.left	= left_freezes,
		.right	= right_claims_event,
		.check	= check_freeze_claim,
		.windows = {
			{ "left:perf_persistent_freeze", "right:perf_persistent_claim" },
		},
	});
}

static void left_lists_all(void)
{
	struct perf_persistent_entry entries[2];

	side_got(0, session_list(duel.fd[0], entries, 2));
}

static void check_list_end(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_TRUE(duel.ret[0] == 1 || !duel.ret[0]);
	duel.got += duel.ret[0];
}

/* A list of what is being ended has all of it or nothing. */
TEST_F_TIMEOUT(duels, list_end, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_two_sessions_fds,
		.left	= left_lists_all,
		.right	= right_ends,
		.check	= check_list_end,
		.windows = {
			{ "left:perf_persistent_copy_in", "right:perf_persistent_end_all" },
		},
	});
}

static void right_opens_session(void)
{
	side_got(1, duel.fd[1] = open_session(duel.id));
}

static void has_one_session_fd(void)
{
	has_two_sessions_fds();
	close(duel.fd[1]);
	duel.fd[1] = -1;
}

static void check_end_open(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_TRUE(duel.ret[1] >= 0 || duel.err[1] == ENOENT);
	duel.got += duel.ret[1] >= 0;
	if (duel.ret[1] >= 0)
		ASSERT_EQ(PERF_PERSISTENT_STATE_ENDED, session_state(duel.fd[1]));
}

/* An open of a session as it ends gets one that has ended, or none. */
TEST_F_TIMEOUT(duels, end_open, 3600)
{
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_one_session_fd,
		.left	= left_ends,
		.right	= right_opens_session,
		.check	= check_end_open,
		.windows = {
			{ "left:perf_persistent_end_all", "right:perf_persistent_open_session" },
		},
	});
}

static void has_session_on_1(void)
{
	duel.fd[2] = open_comm(1);
	duel.id = unclaim(duel.fd[2], 0, 0, "duel");
	duel.fd[0] = open_session(duel.id);
}

static void left_freezes_then(void)
{
	let_right_come_first();
	left_freezes();
}

static void left_ends_then(void)
{
	let_right_come_first();
	left_ends();
}

static void right_goes_offline(void)
{
	side_got(1, write_long(ONLINE, 0));
}

static void check_freeze_hotplug(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_EQ(FROZEN, session_state(duel.fd[0]) & FROZEN);
	ASSERT_EQ(0, write_long(ONLINE, 1));
	while (state_of(duel.fd[2]) & PERF_PERSISTENT_STATE_OFFLINE)
		usleep(1000);
	ASSERT_EQ(FROZEN, session_state(duel.fd[0]));
	ASSERT_EQ(0, session_end(duel.fd[0]));
}

/* Its CPU goes as it is frozen. */
TEST_F_TIMEOUT(duels, freeze_hotplug, SLOW_RACE_TIMEOUT)
{
	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_on_1,
		.left	= left_freezes_then,
		.right	= right_goes_offline,
		.check	= check_freeze_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_persistent_freeze", "*:__perf_event_exit_context" },
		},
	});
}

static void check_end_hotplug(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_EQ(-1, listed_id("duel"));
	ASSERT_EQ(0, write_long(ONLINE, 1));
}

/* Its CPU goes as it is ended. */
TEST_F_TIMEOUT(duels, end_hotplug, SLOW_RACE_TIMEOUT)
{
	if (access(ONLINE, W_OK))
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_on_1,
		.left	= left_ends_then,
		.right	= right_goes_offline,
		.check	= check_end_hotplug,
		.one_of	= 10,
		.windows = {
			{ "left:perf_persistent_end_all", "*:__perf_event_exit_context" },
		},
	});
}

/* Causes of the kernel */

static void left_locks_up(void)
{
	side_got(0, write_text(CAUSE_PARAM "lockup", "1"));
}

static void left_runs_bpf(void)
{
	side_got(0, write_text(CAUSE_PARAM "bpf", "duel"));
}

static uint32_t freeze_reason(int fd)
{
	struct perf_persistent_session_info inf;

	return session_info(fd, &inf) ? UINT32_MAX : inf.freeze_reason;
}

/* A cause does not wait until no writer is in a buffer. FREEZE does, though it fails. */
static void settle(struct __test_metadata *_metadata)
{
	ASSERT_EQ(-1, session_freeze(duel.fd[0]));
	ASSERT_EQ(EALREADY, errno);
}

static void fight_cause_out(struct __test_metadata *_metadata, const struct duel_kind *kind)
{
	const char *module = getenv("PERSISTENT_CAUSE");
	bool no_kfunc;

	if (access(module ?: "", R_OK))
		SKIP(return, "no PERSISTENT_CAUSE");
	ASSERT_TRUE(!load_module(module, "") || errno == EEXIST);
	ASSERT_EQ(0, write_text(CAUSES, "lockup"));
	no_kfunc = kind->left == left_runs_bpf && write_text(CAUSE_PARAM "bpf", "nobody") &&
		   errno == EOPNOTSUPP;
	if (!no_kfunc)
		fight_it_out(_metadata, kind);
	EXPECT_EQ(0, write_text(CAUSES, "\n"));
	EXPECT_EQ(0, unload_module(CAUSE));
	if (no_kfunc)
		SKIP(return, "no bpf_perf_persistent_freeze() in this kernel");
}

/*
 * One that fd[1] alone keeps, and behind it in the list another one, which is fd[0]. On the CPU
 * of right, which needs no interrupt of the other one to end it.
 */
static void has_session_to_free(void)
{
	int fd = open_comm(1);

	duel.id = unclaim(fd, 0, 0, "duel");
	close(fd);
	duel.fd[1] = open_session(duel.id);
	fd = open_comm(1);
	duel.fd[0] = open_session(unclaim(fd, 0, 0, "next"));
	close(fd);
}

/* When it is asked for, the session has been freed but for those that still look at it. */
static void right_frees(void)
{
	/* A walk that begins later does not find it. */
	let_come_first(WINDOW_LEFT);
	side_got(1, session_end(duel.fd[1]));
	duel.got += freeze_reason(duel.fd[1]) != 0;
	close(duel.fd[1]);
	duel.fd[1] = -1;
	duel.fd[2] = open_session(duel.id);
}

static void check_freed(struct __test_metadata *_metadata, uint32_t reason_of_next)
{
	ASSERT_EQ(0, duel.ret[1]);
	ASSERT_EQ(-1, duel.fd[2]);
	ASSERT_EQ(-1, listed_id("duel"));
	ASSERT_EQ(reason_of_next, freeze_reason(duel.fd[0]));
	ASSERT_EQ(0, session_end(duel.fd[0]));
}

static void check_cause_end(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	check_freed(_metadata, PERF_PERSISTENT_FREEZE_LOCKUP);
}

/* It ends, and is freed, as all are frozen. The next one is frozen in any case. */
TEST_F_TIMEOUT(duels, cause_end, 3600)
{
	fight_cause_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_to_free,
		.left	= left_locks_up,
		.right	= right_frees,
		.check	= check_cause_end,
		.windows = {
			{ "left:perf_persistent_freeze_all", "right:perf_persistent_end_all" },
			{ "left:perf_persistent_pause_buffers",
			  "right:perf_persistent_session_release" },
			/* It has found it, and looks at it when it has been freed. */
			{ "left:perf_persistent_freeze_now", "right:perf_persistent_open_session" },
		},
	});
}

static void check_bpf_end(struct __test_metadata *_metadata)
{
	ASSERT_TRUE(!duel.ret[0] || duel.err[0] == ENOENT);
	check_freed(_metadata, 0);
}

/* The same of a program, which freezes it by its name. */
TEST_F_TIMEOUT(duels, bpf_end, 3600)
{
	fight_cause_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_to_free,
		.left	= left_runs_bpf,
		.right	= right_frees,
		.check	= check_bpf_end,
		.windows = {
			{ "left:perf_persistent_freeze_now", "right:perf_persistent_open_session" },
		},
	});
}

static void check_cause_join(struct __test_metadata *_metadata)
{
	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(PERF_PERSISTENT_FREEZE_LOCKUP, freeze_reason(duel.fd[0]));
	settle(_metadata);
	check_freeze_join(_metadata);
}

/* An event that joins as all are frozen is frozen with its session, or refused. */
TEST_F_TIMEOUT(duels, cause_join, 3600)
{
	fight_cause_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_and_newcomer,
		.left	= left_locks_up,
		.right	= right_joins,
		.check	= check_cause_join,
		.windows = {
			{ "left:perf_persistent_freeze_all", "right:perf_persistent_unclaim" },
			{ "left:perf_persistent_freeze_now",
			  "right:perf_persistent_freeze_joined" },
			{ "left:perf_persistent_freeze_now", "right:perf_persistent_attach" },
		},
	});
}

static void check_cause_thaw(struct __test_metadata *_metadata)
{
	/* It was frozen by the ioctl before. */
	bool frozen = freeze_reason(duel.fd[0]) == PERF_PERSISTENT_FREEZE_LOCKUP;

	ASSERT_EQ(0, duel.ret[0]);
	ASSERT_EQ(0, duel.ret[1]);
	duel.got += frozen;
	if (frozen)
		settle(_metadata);
	check_state(_metadata, frozen);
}

/* A cause that comes with a thaw is before it, and changes nothing, or is after it, and holds. */
TEST_F_TIMEOUT(duels, cause_thaw, 3600)
{
	fight_cause_out(_metadata, &(const struct duel_kind) {
		.begin	= has_frozen,
		.left	= left_locks_up,
		.right	= right_thaws,
		.check	= check_cause_thaw,
		.windows = {
			{ "left:perf_persistent_freeze_now",
			  "right:perf_persistent_pause_buffers" },
			{ "left:perf_persistent_freeze_all", "right:perf_persistent_thaw" },
		},
	});
}

TEST_HARNESS_MAIN
