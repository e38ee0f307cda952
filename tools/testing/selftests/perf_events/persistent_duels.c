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
 * proves nothing. With PERSISTENT_MEET a test fails whose sides did not meet. An emulator
 * whose CPUs take turns (ACCEL=single) seldom leaves an operation in its midst: there a pair
 * may need all rounds by default to meet a few times.
 *
 * Some of the operations wait for a grace period of RCU, which is most of their time. It is
 * expedited in three rounds of four.
 */
#define _GNU_SOURCE

#include "persistent_duel.h"

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

/* An open during CLAIM gets the event, and can read on, or fails. */
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

/* An event that joins during CLAIM keeps the session alive, or comes too late. */
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

/* A CLAIM during UNCLAIM comes too early, or gets the event. */
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

/* An event joins a session that is being built, while the close of a file ends it. */
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
			/* The last count of the event is about to go, of whatever type. */
			{ "left:perf_rb_seal", "right:atomic_dec_and_mutex_lock",
			  "right:refcount_dec_and_mutex_lock" },
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

/* A read of a file of the session in sysfs succeeds, or there is no such file. */
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

/* A snapshot during CLAIM succeeds. */
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

/* A snapshot during the last munmap() succeeds, or fails as there is no buffer. */
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
			{ "left:ring_buffer_put", "right:atomic_dec_and_mutex_lock",
			  "right:refcount_dec_and_mutex_lock" },
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
TEST_F_TIMEOUT(duels, close_hotplug, SLOW_RACE_TIMEOUT)
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
TEST_F_TIMEOUT(duels, claim_hotplug, SLOW_RACE_TIMEOUT)
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

/*
 * The work item of a CPU that has gone wakes the readers. It has begun before the window
 * waits for the one of the CPU that comes: both are the same function.
 */
static int told;

static void has_session_on_offline_1(void)
{
	struct pollfd reader = { .events = POLLIN };

	has_session_on_1();
	/* The creator's file is not notified. */
	reader.fd = reopen(duel.id, 1, 0);
	poll(&reader, 1, 0);
	write_long(ONLINE, 0);
	told = poll(&reader, 1, 60000);
	close(reader.fd);
}

static void check_claim_online(struct __test_metadata *_metadata)
{
	ASSERT_EQ(1, told);
	check_claim_hotplug(_metadata);
}

/* It is claimed as its CPU comes back, and its events with it. */
TEST_F_TIMEOUT(duels, claim_online, SLOW_RACE_TIMEOUT)
{
	if (!can_offline())
		SKIP(return, "CPU 1 cannot be taken offline");
	fight_it_out(_metadata, &(const struct duel_kind) {
		.begin	= has_session_on_offline_1,
		.left	= left_claims_then,
		.right	= right_onlines,
		.check	= check_claim_online,
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
TEST_F_TIMEOUT(duels, unclaim_hotplug, SLOW_RACE_TIMEOUT)
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
TEST_F_TIMEOUT(duels, claimer_dies, SLOW_RACE_TIMEOUT)
{
	unsigned int i, nr = slow_rounds(5), seed = getpid(), claimed = 0;

	for (i = 0; i < nr; i++) {
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
		ASSERT_LE(0, pid);
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

		/* A process that has it mapped reads on. */
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
