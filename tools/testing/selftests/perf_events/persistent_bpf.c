// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF program at a tracepoint freezes a session: bpf_perf_persistent_freeze().
 *
 * The program is a call and an exit, written out here. It is attached to sched_switch,
 * where it runs with a runqueue lock held and interrupts off. To load it takes CAP_SYS_BOOT.
 */
#define _GNU_SOURCE

#include "../kselftest_harness.h"
#include "persistent_btf.h"
#include "persistent_session.h"
#include "persistent_spaces.h"

#define KFUNC		"bpf_perf_persistent_freeze"

/* A map that holds a constant string. */
static int make_string(const char *text)
{
	union bpf_attr attr = {
		.map_type	= BPF_MAP_TYPE_ARRAY,
		.key_size	= 4,
		.value_size	= PERF_PERSISTENT_NAME_LEN,
		.max_entries	= 1,
		.map_flags	= BPF_F_RDONLY_PROG,
	};
	char value[PERF_PERSISTENT_NAME_LEN] = "";
	uint32_t key = 0;
	int fd = bpf(BPF_MAP_CREATE, &attr);

	snprintf(value, sizeof(value), "%s", text);
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
		return -1;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = fd;
	return bpf(BPF_MAP_FREEZE, &attr) ? -1 : fd;
}

static int load_program(int string, int func)
{
	const struct bpf_insn insns[] = {
		/* r1 = the string */
		{ BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, 0, string },
		{ 0 },
		{ BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, func },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0 },
		{ BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_TRACEPOINT };

	return load_insns(&attr, insns, ARRAY_SIZE(insns));
}

FIXTURE(bpf)
{
	struct balance	before;
	int		func;
};

FIXTURE_SETUP(bpf)
{
	SKIP_WITHOUT_PERSISTENT(return);
	if (access(VMLINUX, R_OK))
		SKIP(return, "no CONFIG_DEBUG_INFO_BTF");

	pin_to_cpu(0);
	self->before = take_balance();
	self->func = find_func(KFUNC);
	ASSERT_LT(0, self->func);
}

FIXTURE_TEARDOWN(bpf)
{
	EXPECT_BALANCE();
}

/* The session is frozen at the next switch of tasks, and says by what. */
TEST_F(bpf, freezes_at_tracepoint)
{
	struct perf_persistent_session_info inf;
	int event = open_comm(0), session, prog, string, tp, i;
	struct perf_persistent_info of_tp;
	int64_t id = unclaim(event, 0, 0, "bpf");

	ASSERT_LT(0, id);
	session = open_session(id);
	string = make_string("bpf");
	ASSERT_LE(0, string);
	prog = load_program(string, self->func);
	ASSERT_LE(0, prog) TH_LOG("%s", verifier_log);
	EXPECT_EQ(0, session_state(session));

	tp = open_raw();
	ASSERT_LE(0, tp);
	ASSERT_EQ(0, ioctl(tp, PERF_EVENT_IOC_SET_BPF, prog));
	for (i = 0; i < 60000 && session_state(session) != PERF_PERSISTENT_STATE_FROZEN; i++)
		usleep(1000);
	ASSERT_EQ(0, session_info(session, &inf));
	EXPECT_EQ(PERF_PERSISTENT_STATE_FROZEN, inf.state);
	EXPECT_EQ(PERF_PERSISTENT_FREEZE_BPF, inf.freeze_reason);
	EXPECT_LE(inf.freeze_begin, inf.freeze_time);

	/* Thawed, it is frozen by the next one. */
	ASSERT_EQ(0, session_thaw(session));
	for (i = 0; i < 60000 && session_state(session) != PERF_PERSISTENT_STATE_FROZEN; i++)
		usleep(1000);
	EXPECT_EQ(PERF_PERSISTENT_STATE_FROZEN, session_state(session));
	/* It is told of an event with a program. */
	ASSERT_EQ(0, ioctl(tp, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_LT(0, unclaim(tp, 0, 0, "with_program"));
	ASSERT_EQ(0, info(tp, &of_tp));
	EXPECT_EQ(PERF_PERSISTENT_INFO_BPF, of_tp.flags);
	EXPECT_LT(0, claim(tp));
	close(tp);
	/*
	 * The program of a disabled event runs until the event is freed, on all CPUs, and a
	 * freeze is complete a while after it was begun. Then there is no other one.
	 */
	usleep(100000);
	for (i = 0; i < 60000 && session_state(session) != PERF_PERSISTENT_STATE_FROZEN; i++)
		usleep(1000);
	ASSERT_EQ(0, session_thaw(session));
	usleep(100000);
	EXPECT_EQ(0, session_state(session));

	EXPECT_EQ(0, session_end(session));
	close(prog);
	close(string);
	close(session);
	close(event);
}

/* Exits with 0, the error of loading the program, or 91 if that is not told. */
static int loads_with(uint64_t caps, int string, int func)
{
	int status, err;
	pid_t pid = fork();

	if (!pid) {
		if (become_with_caps(caps))
			_exit(99);
		if (load_program(string, func) >= 0)
			_exit(0);
		err = errno;
		_exit(strstr(verifier_log, "CAP_SYS_BOOT") ? err : 91);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* It acts on the sessions of all users: what loads other programs is not enough. */
TEST_F(bpf, takes_cap_sys_boot)
{
	const uint64_t caps = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON;
	int string = make_string("bpf");

	ASSERT_LE(0, string);
	EXPECT_EQ(EACCES, loads_with(caps, string, self->func));
	EXPECT_EQ(0, loads_with(caps | 1ULL << CAP_SYS_BOOT, string, self->func));
	close(string);
}

TEST_HARNESS_MAIN
