// SPDX-License-Identifier: GPL-2.0
/*
 * A security module refuses what is done with a session and its events.
 *
 * The module is a BPF program that is attached to one hook and refuses one process. It needs
 * CONFIG_BPF_LSM, and "bpf" in CONFIG_LSM or on the kernel's command line.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "persistent_btf.h"
#include "persistent_session.h"

/* No other check says that. */
#define REFUSED		EKEYREJECTED

/* What a process tries, in this order */
enum call { OPEN_SESSION, OPEN_EVENT, INFO, MAP, LOOK, FREEZE, THAW, TAKE, END, NR_CALLS };

static const char * const call_names[] = {
	[OPEN_SESSION]	= "open the session",
	[OPEN_EVENT]	= "open an event",
	[INFO]		= "PERSISTENT_INFO",
	[MAP]		= "mmap() of an event",
	[LOOK]		= "SESSION_INFO",
	[FREEZE]	= "SESSION_FREEZE",
	[THAW]		= "SESSION_THAW",
	[TAKE]		= "CLAIM",
	[END]		= "SESSION_END",
};

/* What it got: 0, or an errno */
struct tried {
	int	err[NR_CALLS];
};

static int load_refusal(const char *hook, pid_t pid)
{
	const struct bpf_insn insns[] = {
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_pid_tgid },
		{ BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, 0, 32 },
		{ BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, pid },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -REFUSED },
		{ BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type		= BPF_PROG_TYPE_LSM,
		.expected_attach_type	= BPF_LSM_MAC,
		.attach_btf_id		= find_func(hook),
	};

	return load_insns(&attr, insns, ARRAY_SIZE(insns));
}

/* Until the file that it returns is closed */
static int attach(int prog)
{
	union bpf_attr attr = { .raw_tracepoint.prog_fd = prog };

	return bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
}

FIXTURE(lsm)
{
	struct balance	before;
	struct tried	tried;
	int64_t		id;
	int		session;
	int		reader;
	int		kept[2];
	int		to[2];
	int		from[2];
	pid_t		pid;
};

static int err_of(int ret)
{
	return ret < 0 ? errno : 0;
}

/* Its files were opened by another process, which nobody refuses. */
static struct tried try_all(int64_t id, int session, int reader)
{
	struct perf_persistent_session_info of_session;
	struct perf_persistent_info of_event;
	struct tried tried = {};
	void *base;
	int fd;

	fd = open_session(id);
	tried.err[OPEN_SESSION] = err_of(fd);
	close(fd);
	fd = reopen(id, 0, 0);
	tried.err[OPEN_EVENT] = err_of(fd);
	close(fd);
	tried.err[INFO] = err_of(info(reader, &of_event));
	base = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, reader, 0);
	tried.err[MAP] = base == MAP_FAILED ? errno : 0;
	if (base != MAP_FAILED)
		munmap(base, PAGE);
	tried.err[LOOK] = err_of(session_info(session, &of_session));
	tried.err[FREEZE] = err_of(session_freeze(session));
	tried.err[THAW] = err_of(session_thaw(session));
	tried.err[TAKE] = err_of(claim(reader));
	tried.err[END] = err_of(session_end(session));
	return tried;
}

FIXTURE_SETUP(lsm)
{
	SKIP_WITHOUT_PERSISTENT(return);
	if (!find_func("bpf_lsm_perf_event_read"))
		SKIP(return, "no CONFIG_BPF_LSM");

	pin_to_cpu(0);
	self->before = take_balance();
	self->kept[0] = open_comm(0);
	self->kept[1] = open_comm(0);
	self->id = unclaim(self->kept[0], 0, 0, "lsm");
	ASSERT_LT(0, self->id);
	ASSERT_EQ(self->id, unclaim(self->kept[1], 0, self->id, ""));
	self->session = open_session(self->id);
	self->reader = reopen(self->id, 0, 1);
	ASSERT_LE(0, self->session);
	ASSERT_LE(0, self->reader);

	ASSERT_EQ(0, pipe2(self->to, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(self->from, O_CLOEXEC));
	self->pid = fork();
	if (!self->pid) {
		char go;

		if (read(self->to[0], &go, 1) != 1)
			_exit(1);
		self->tried = try_all(self->id, self->session, self->reader);
		_exit(write(self->from[1], &self->tried, sizeof(self->tried)) !=
		      sizeof(self->tried));
	}
	ASSERT_LT(0, self->pid);
}

FIXTURE_TEARDOWN(lsm)
{
	/* What was refused is as it was. */
	close(self->reader);
	close(self->session);
	if (listed_id("lsm") == self->id)
		EXPECT_EQ(0, with_session(self->id, session_end));
	close(self->kept[0]);
	close(self->kept[1]);
	close(self->to[0]);
	close(self->to[1]);
	close(self->from[0]);
	close(self->from[1]);
	EXPECT_BALANCE();
}

/* Lets the process try all, while a program refuses it at a hook, if there is one. */
static bool run(struct _test_data_lsm *self, const char *hook)
{
	int prog = hook ? load_refusal(hook, self->pid) : -1, link = -1, status;
	bool ok = true;

	if (hook) {
		link = prog < 0 ? -1 : attach(prog);
		ok = link >= 0;
	}
	ok &= write(self->to[1], "", 1) == 1 &&
	      read(self->from[0], &self->tried, sizeof(self->tried)) == sizeof(self->tried);
	waitpid(self->pid, &status, 0);
	close(link);
	close(prog);
	return ok && !status;
}

/* Those of @refused, as bits, were refused, and all others were not. */
static void judge(struct __test_metadata *_metadata, struct _test_data_lsm *self,
		  unsigned int refused)
{
	for (unsigned int i = 0; i < NR_CALLS; i++) {
		int expected = refused & 1 << i ? REFUSED : 0;

		EXPECT_EQ(expected, self->tried.err[i]) TH_LOG("%s", call_names[i]);
	}
	EXPECT_EQ(refused & 1 << END ? self->id : -1, listed_id("lsm"));
}

TEST_F(lsm, nobody_refuses)
{
	ASSERT_TRUE(run(self, NULL));
	judge(_metadata, self, 0);
}

/* INFO on the file of a session is permitted: it tells nothing of what was recorded. */
TEST_F(lsm, refuses_to_read)
{
	ASSERT_TRUE(run(self, "bpf_lsm_perf_event_read")) TH_LOG("%s", verifier_log);
	judge(_metadata, self, 1 << OPEN_SESSION | 1 << OPEN_EVENT | 1 << INFO | 1 << MAP);
}

TEST_F(lsm, refuses_to_write)
{
	ASSERT_TRUE(run(self, "bpf_lsm_perf_event_write")) TH_LOG("%s", verifier_log);
	judge(_metadata, self, 1 << FREEZE | 1 << THAW | 1 << TAKE | 1 << END);
}

TEST_HARNESS_MAIN
