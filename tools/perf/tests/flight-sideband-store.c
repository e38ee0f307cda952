// SPDX-License-Identifier: GPL-2.0
/*
 * Properties of the side-band store of the flight recorder. Records are folded, and
 * what is emitted is compared with what should be known then, as text:
 * - a name lasts until the next one; exec drops maps and other threads, also when
 *   it was not the leader that called it;
 * - fork without exec keeps the parent's maps, and neither sees the other's new ones;
 * - threads share the maps of their process, which lasts until the last one exits;
 * - a pid that is used again has nothing of the one before;
 * - a map replaces what it covers, and cuts what it overlaps; pgoff follows; also
 *   among thousands of maps that processes share; a map takes 40 bytes at most;
 * - the kernel's symbols and programs go when they are unregistered;
 * - what was used is given back; the limit is never exceeded, what does not fit is
 *   counted; 100,000 short processes leave nothing behind; the heap shrinks step by step;
 * - dead processes whose exit was lost go, but not before their records have gone, and
 *   a few at a time;
 * - cgroups that are gone go likewise, if that can be seen;
 * - records of different CPUs are folded in the order of their times, whatever the
 *   order in which they came; what cannot be folded yet is not lost to a dump;
 * - records that are too short are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include "util/base-api.h"
#include "util/cgroup.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/flight/store/fold-order.h"
#include "util/flight/store/sideband-memory.h"
#include "util/flight/store/sideband-store.h"
#include "util/sample-layout.h"
#include "tests.h"

#define ID_SIZE		24
#define LIMIT		(1024 * 1024)

static struct sideband_store *ss;
static struct fold_order *order;
static struct sample_layout layout;
static u64 clock_ns;
static char text[1 << 16];
static size_t text_len;

static int fold(union perf_event *event, u32 type, u16 misc, size_t size)
{
	event->header.type = type;
	event->header.misc = misc;
	event->header.size = PERF_ALIGN(size, sizeof(u64)) + ID_SIZE;
	if (order) {
		int offset = sample_layout__offset(&layout, SAMPLE_WORD__TIME, type,
						   event->header.size);

		memcpy((void *)event + offset, &clock_ns, sizeof(clock_ns));
		return fold_order__add(order, event) == 1 ? 0 : -EINVAL;
	}
	return sideband_store__fold(ss, event);
}

static int comm(u32 pid, u32 tid, const char *name, u16 misc)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->comm.pid = pid;
	event->comm.tid = tid;
	memcpy(event->comm.comm, name, strlen(name) + 1);
	err = fold(event, PERF_RECORD_COMM, misc, 16 + strlen(name) + 1);
	free(event);
	return err;
}

static int task(u32 type, u32 pid, u32 tid, u32 ppid, u32 ptid)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->fork.pid = pid;
	event->fork.tid = tid;
	event->fork.ppid = ppid;
	event->fork.ptid = ptid;
	err = fold(event, type, 0, sizeof(event->fork));
	free(event);
	return err;
}

static int map(u32 pid, u64 start, u64 len, u64 pgoff, const char *name)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->mmap2.pid = pid;
	event->mmap2.tid = pid;
	event->mmap2.start = start;
	event->mmap2.len = len;
	event->mmap2.pgoff = pgoff;
	memcpy(event->mmap2.filename, name, strlen(name) + 1);
	err = fold(event, PERF_RECORD_MMAP2, 0,
		   offsetof(struct perf_record_mmap2, filename) + strlen(name) + 1);
	free(event);
	return err;
}

static int ksymbol(u64 addr, const char *name, u16 flags)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->ksymbol.addr = addr;
	event->ksymbol.len = 16;
	event->ksymbol.flags = flags;
	memcpy(event->ksymbol.name, name, strlen(name) + 1);
	err = fold(event, PERF_RECORD_KSYMBOL, 0,
		   offsetof(struct perf_record_ksymbol, name) + strlen(name) + 1);
	free(event);
	return err;
}

static int bpf(u32 id, u16 type)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->bpf.id = id;
	event->bpf.type = type;
	err = fold(event, PERF_RECORD_BPF_EVENT, 0, sizeof(event->bpf));
	free(event);
	return err;
}

static int cgroup(u64 id, const char *path)
{
	union perf_event *event = zalloc(sizeof(*event));
	int err;

	event->cgroup.id = id;
	memcpy(event->cgroup.path, path, strlen(path) + 1);
	err = fold(event, PERF_RECORD_CGROUP, 0,
		   offsetof(struct perf_record_cgroup, path) + strlen(path) + 1);
	free(event);
	return err;
}

static int namespaces(u32 pid, u64 first)
{
	union perf_event *event = zalloc(sizeof(*event) + 64);
	int err;

	event->namespaces.pid = pid;
	event->namespaces.tid = pid;
	event->namespaces.nr_namespaces = 1;
	event->namespaces.link_info[0].ino = first;
	err = fold(event, PERF_RECORD_NAMESPACES, 0,
		   sizeof(event->namespaces) + sizeof(event->namespaces.link_info[0]));
	free(event);
	return err;
}

static int fork_process(u32 pid, u32 ppid)
{
	return task(PERF_RECORD_FORK, pid, pid, ppid, ppid);
}

static int exit_process(u32 pid)
{
	return task(PERF_RECORD_EXIT, pid, pid, 1, 1);
}

static int exec_process(u32 pid, const char *name)
{
	return comm(pid, pid, name, PERF_RECORD_MISC_COMM_EXEC);
}

static int tell(union perf_event *event, void *data __maybe_unused)
{
	static const char zero[ID_SIZE];
	char *end = text + text_len;
	size_t room = sizeof(text) - text_len;
	int n = 0;

	if (memcmp((char *)event + event->header.size - ID_SIZE, zero, ID_SIZE))
		n = snprintf(end, room, "with a sample_id! ");

	switch (event->header.type) {
	case PERF_RECORD_COMM:
		n = snprintf(end, room, "%d/%d %s; ", event->comm.pid, event->comm.tid,
			     event->comm.comm);
		break;
	case PERF_RECORD_MMAP2:
		n = snprintf(end, room, "%d %llx-%llx@%llx %s; ", event->mmap2.pid,
			     event->mmap2.start, event->mmap2.start + event->mmap2.len,
			     event->mmap2.pgoff, event->mmap2.filename);
		break;
	case PERF_RECORD_KSYMBOL:
		n = snprintf(end, room, "ksymbol %s; ", event->ksymbol.name);
		break;
	case PERF_RECORD_BPF_EVENT:
		n = snprintf(end, room, "bpf %u; ", event->bpf.id);
		break;
	case PERF_RECORD_CGROUP:
		n = snprintf(end, room, "cgroup %s; ", event->cgroup.path);
		break;
	case PERF_RECORD_NAMESPACES:
		n = snprintf(end, room, "%d ns %llx; ", event->namespaces.pid,
			     event->namespaces.link_info[0].ino);
		break;
	case PERF_RECORD_FORK:
		/* A parent is no state to compare; but it must not bring maps. */
		if (!(event->header.misc & PERF_RECORD_MISC_FORK_EXEC))
			n = snprintf(end, room, "fork with maps! ");
		break;
	default:
		n = snprintf(end, room, "type %u! ", event->header.type);
	}
	text_len = min(text_len + n, sizeof(text) - 1);
	return 0;
}

static bool is_wanted(pid_t pid, void *data)
{
	return *(pid_t *)data == pid;
}

static bool known(const char *expected)
{
	text_len = 0;
	text[0] = '\0';
	if (sideband_store__emit(ss, NULL, tell, NULL))
		return false;
	if (!strcmp(text, expected))
		return true;
	pr_debug("there is: %s\nexpected: %s\n", text, expected);
	return false;
}

static bool begin(void)
{
	ss = sideband_store__new(LIMIT, ID_SIZE);
	return ss;
}

static void end(void)
{
	sideband_store__delete(ss);
	ss = NULL;
}

static int test__exec(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	comm(5, 5, "sh", 0);
	map(5, 0x1000, 0x1000, 0, "/bin/sh");
	TEST_ASSERT_VAL("a process", known("5/5 sh; 5 1000-2000@0 /bin/sh; "));
	comm(5, 5, "renamed", 0);
	TEST_ASSERT_VAL("prctl keeps maps", known("5/5 renamed; 5 1000-2000@0 /bin/sh; "));
	exec_process(5, "cc");
	TEST_ASSERT_VAL("exec drops maps", known("5/5 cc; "));
	map(5, 0x1000, 0x1000, 0, "/bin/cc");
	exec_process(5, "as");
	map(5, 0x3000, 0x1000, 0, "/bin/as");
	TEST_ASSERT_VAL("an exec chain ends with the last",
			known("5/5 as; 5 3000-4000@0 /bin/as; "));
	end();
	return TEST_OK;
}

static int test__fork(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	comm(5, 5, "srv", 0);
	map(5, 0x1000, 0x1000, 0, "/bin/srv");
	fork_process(6, 5);
	TEST_ASSERT_VAL("fork without exec keeps name and maps",
			known("5/5 srv; 5 1000-2000@0 /bin/srv; "
			      "6/6 srv; 6 1000-2000@0 /bin/srv; "));
	map(6, 0x5000, 0x1000, 0, "/lib/c");
	map(5, 0x1000, 0x1000, 0, "/lib/p");
	TEST_ASSERT_VAL("each has its own from then on",
			known("5/5 srv; 5 1000-2000@0 /lib/p; "
			      "6/6 srv; 6 1000-2000@0 /bin/srv; 6 5000-6000@0 /lib/c; "));
	exit_process(5);
	fork_process(7, 6);
	TEST_ASSERT_VAL("the parent's end is not the child's",
			known("6/6 srv; 6 1000-2000@0 /bin/srv; 6 5000-6000@0 /lib/c; "
			      "7/7 srv; 7 1000-2000@0 /bin/srv; 7 5000-6000@0 /lib/c; "));
	exec_process(7, "ls");
	exit_process(6);
	TEST_ASSERT_VAL("exec leaves them to others", known("7/7 ls; "));
	exit_process(7);
	TEST_ASSERT_VAL("nothing is left", known("") && !sideband_store__stats(ss)->used);
	end();
	return TEST_OK;
}

static int test__threads(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	comm(5, 5, "java", 0);
	map(5, 0x1000, 0x1000, 0, "/bin/java");
	task(PERF_RECORD_FORK, 5, 8, 5, 5);
	comm(5, 8, "gc", 0);
	task(PERF_RECORD_FORK, 5, 9, 5, 8);
	TEST_ASSERT_VAL("a thread is named like its creator",
			known("5/5 java; 5 1000-2000@0 /bin/java; 5/8 gc; 5/9 gc; "));
	task(PERF_RECORD_EXIT, 5, 5, 1, 1);
	TEST_ASSERT_VAL("the process outlives its leader",
			known("5 1000-2000@0 /bin/java; 5/8 gc; 5/9 gc; "));
	/* Thread 8 calls exec: the others end, it takes the leader's id. */
	task(PERF_RECORD_EXIT, 5, 9, 5, 5);
	exec_process(5, "sh");
	TEST_ASSERT_VAL("exec of a thread", known("5/5 sh; "));
	exit_process(5);
	TEST_ASSERT_VAL("nothing is left", known("") && !sideband_store__stats(ss)->used);
	end();
	return TEST_OK;
}

static int test__reuse(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	comm(1, 1, "init", 0);
	comm(5, 5, "old", 0);
	map(5, 0x1000, 0x1000, 0, "/bin/old");
	exit_process(5);
	fork_process(5, 1);
	TEST_ASSERT_VAL("after an exit", known("1/1 init; 5/5 init; "));
	map(5, 0x1000, 0x1000, 0, "/bin/new");
	fork_process(5, 1);
	TEST_ASSERT_VAL("after an exit that was lost", known("1/1 init; 5/5 init; "));
	task(PERF_RECORD_FORK, 5, 9, 5, 5);
	fork_process(9, 1);
	TEST_ASSERT_VAL("a thread's id becomes a process's",
			known("1/1 init; 5/5 init; 9/9 init; "));
	comm(7, 9, "moved", 0);
	TEST_ASSERT_VAL("and another's thread", known("1/1 init; 5/5 init; 7/9 moved; "));
	/* The exit of another incarnation is not ours. */
	task(PERF_RECORD_EXIT, 4, 9, 1, 1);
	TEST_ASSERT_VAL("it stays", known("1/1 init; 5/5 init; 7/9 moved; "));
	end();
	return TEST_OK;
}

static int test__maps(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	comm(5, 5, "p", 0);
	map(5, 0x10000, 0x8000, 0x100, "a");
	map(5, 0x12000, 0x1000, 0, "b");
	TEST_ASSERT_VAL("one in the middle cuts in two",
			known("5/5 p; 5 10000-12000@100 a; 5 12000-13000@0 b; "
			      "5 13000-18000@3100 a; "));
	map(5, 0x11000, 0x1800, 0, "c");
	TEST_ASSERT_VAL("both neighbours are cut",
			known("5/5 p; 5 10000-11000@100 a; 5 11000-12800@0 c; "
			      "5 12800-13000@800 b; 5 13000-18000@3100 a; "));
	map(5, 0x10000, 0x8000, 0, "d");
	TEST_ASSERT_VAL("what is covered goes", known("5/5 p; 5 10000-18000@0 d; "));
	map(5, 0x18000, 0x1000, 0, "e");
	map(5, 0xf000, 0x1000, 0, "f");
	TEST_ASSERT_VAL("neighbours do not touch",
			known("5/5 p; 5 f000-10000@0 f; 5 10000-18000@0 d; 5 18000-19000@0 e; "));
	TEST_ASSERT_VAL("an empty one is none", !map(5, 0x30000, 0, 0, "g"));
	TEST_ASSERT_VAL("nor one that wraps", !map(5, -0x1000ULL, 0x2000, 0, "h"));
	TEST_ASSERT_VAL("three maps", sideband_store__stats(ss)->maps == 3);
	/* munmap is not told: the same place over and over is one map. */
	for (int i = 0; i < 10000; i++)
		map(5, 0x100000 + i % 8 * 0x1000, 0x1000, 0, "jit");
	TEST_ASSERT_VAL("maps are bounded by addresses", sideband_store__stats(ss)->maps == 11);
	end();
	return TEST_OK;
}

/* Against a model: a byte of address space belongs to the last map that covered it. */
static int test__maps_random(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	int owner[256];
	u64 state = 1;

	TEST_ASSERT_VAL("store", begin());
	memset(owner, -1, sizeof(owner));
	comm(5, 5, "p", 0);
	for (int i = 0; i < 2000; i++) {
		int first, len;
		char name[16];

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		first = (state >> 33) % 250;
		len = 1 + (state >> 48) % min(64, 256 - first);
		snprintf(name, sizeof(name), "%d", i);
		map(5, first, len, 1000 + first, name);
		for (int j = first; j < first + len; j++)
			owner[j] = i;
	}
	text_len = 0;
	TEST_ASSERT_VAL("emit", !sideband_store__emit(ss, NULL, tell, NULL));
	for (char *line = strtok(text, ";"); line; line = strtok(NULL, ";")) {
		u64 start, stop, pgoff;
		int n;

		if (sscanf(line, " 5 %lx-%lx@%lx %d", &start, &stop, &pgoff, &n) != 4)
			continue;
		TEST_ASSERT_VAL("pgoff follows", pgoff == 1000 + start);
		for (u64 j = start; j < stop; j++) {
			TEST_ASSERT_VAL("owner", owner[j] == n);
			owner[j] = -1;
		}
	}
	for (int j = 0; j < 256; j++)
		TEST_ASSERT_VAL("all that was mapped is", owner[j] == -1);
	end();
	return TEST_OK;
}

/* The same for processes that share most of what they have: their pids are 1 to 8. */
#define SPACE	16384

static u64 owner[8][SPACE];

static int compare_owner(union perf_event *event, void *data)
{
	u64 *left = data, start = event->mmap2.start;

	for (u64 i = 0; event->header.type == PERF_RECORD_MMAP2 && i < event->mmap2.len; i++) {
		u64 want = owner[event->mmap2.pid - 1][start + i], nr = want >> 32;

		if (want != event->mmap2.pgoff + i || nr % 50 != (u64)atoi(event->mmap2.filename))
			return -EINVAL;
		--*left;
	}
	return 0;
}

static int test__maps_shared(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 state = 1, left = 0;
	char name[16];

	TEST_ASSERT_VAL("store", begin());
	memset(owner, 0, sizeof(owner));
	comm(1, 1, "p", 0);
	for (u64 i = 1; i < 20000; i++) {
		u64 first, len, p, from;

		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		p = (state >> 33) % 8;
		from = (state >> 36) % 8;
		first = (state >> 40) % (SPACE - 1);
		len = min(state >> 63 && !(i % 50) ? 3000 : 1 + (state >> 60), SPACE - first);
		if (!(i % 300) && p != from) {
			fork_process(p + 1, from + 1);
			memcpy(owner[p], owner[from], sizeof(owner[p]));
		}
		snprintf(name, sizeof(name), "%d", (int)(i % 50));
		map(p + 1, first, len, i << 32, name);
		for (u64 j = 0; j < len; j++)
			owner[p][first + j] = (i << 32) + j;
	}
	for (int i = 0; i < 8 * SPACE; i++)
		left += !!owner[i / SPACE][i % SPACE];
	TEST_ASSERT_VAL("some thousands", sideband_store__stats(ss)->maps > 2000);
	TEST_ASSERT_VAL("as in the model",
			!sideband_store__emit(ss, NULL, compare_owner, &left) && !left);
	for (u32 pid = 1; pid <= 8; pid++)
		exit_process(pid);
	TEST_ASSERT_VAL("nothing is left", known("") && !sideband_store__stats(ss)->used &&
			!sideband_store__stats(ss)->maps);
	end();
	return TEST_OK;
}

/* Processes that exec'ed the same program, each at addresses of its own */
static int test__maps_memory(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	const struct sideband_stats *stats;
	char name[64];

	ss = sideband_store__new(100 * LIMIT, ID_SIZE);
	TEST_ASSERT_VAL("store", ss);
	for (u32 pid = 1; pid <= 1000; pid++) {
		exec_process(pid, "program");
		for (u64 m = 0; m < 50; m++) {
			snprintf(name, sizeof(name), "/usr/lib/x86_64-linux-gnu/lib%d.so", (int)m);
			map(pid, (pid + m * 7) << 20, 0x1000, m << 12, name);
		}
	}
	stats = sideband_store__stats(ss);
	pr_debug("%.1f bytes per map\n", (double)stats->used / stats->maps);
	TEST_ASSERT_VAL("all maps", stats->maps == 50000 && !stats->dropped);
	TEST_ASSERT_VAL("40 bytes each", stats->used <= 40 * stats->maps);
	end();
	return TEST_OK;
}

static int test__kernel(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	TEST_ASSERT_VAL("store", begin());
	map(-1, 0xffffffff81000000, 0x1000, 0, "[kernel.kallsyms]_text");
	map(-1, 0xffffffffc0000000, 0x1000, 0, "[a]");
	map(-1, 0xffffffffc0000000, 0x2000, 0, "[b]");
	ksymbol(0xffffffffc0100000, "bpf_prog_1", 0);
	ksymbol(0xffffffffc0200000, "bpf_prog_2", 0);
	ksymbol(0xffffffffc0100000, "bpf_prog_1", PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	bpf(1, PERF_BPF_EVENT_PROG_LOAD);
	bpf(2, PERF_BPF_EVENT_PROG_LOAD);
	bpf(1, PERF_BPF_EVENT_PROG_UNLOAD);
	cgroup(7, "/a");
	cgroup(7, "/b");
	comm(5, 5, "p", 0);
	namespaces(5, 0x11);
	namespaces(5, 0x12);
	TEST_ASSERT_VAL("the last of each",
			known("-1 ffffffff81000000-ffffffff81001000@0 [kernel.kallsyms]_text; "
			      "-1 ffffffffc0000000-ffffffffc0002000@0 [b]; ksymbol bpf_prog_2; "
			      "bpf 2; cgroup /b; 5 ns 12; 5/5 p; "));
	end();
	return TEST_OK;
}

static int test__wanted(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	pid_t pid = 6;

	TEST_ASSERT_VAL("store", begin());
	ksymbol(0xffffffffc0100000, "k", 0);
	for (pid_t p = 5; p < 8; p++) {
		comm(p, p, "p", 0);
		map(p, 0x1000, 0x1000, 0, "m");
	}
	text_len = 0;
	TEST_ASSERT_VAL("emit", !sideband_store__emit(ss, is_wanted, tell, &pid));
	TEST_ASSERT_VAL("the kernel and one process",
			!strcmp(text, "ksymbol k; 6/6 p; 6 1000-2000@0 m; "));
	TEST_ASSERT_VAL("known", sideband_store__knows(ss, 7));
	TEST_ASSERT_VAL("unknown", !sideband_store__knows(ss, 8));
	end();
	return TEST_OK;
}

static int test__storm(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	size_t before, most = 0;
	char name[16];

	TEST_ASSERT_VAL("store", begin());
	comm(1, 1, "make", 0);
	map(1, 0x1000, 0x1000, 0, "/bin/make");
	before = sideband_store__stats(ss)->used;
	for (u32 i = 0; i < 100000; i++) {
		u32 pid = 100 + i % 30000;

		TEST_ASSERT_VAL("fork", !fork_process(pid, 1));
		snprintf(name, sizeof(name), "job%u", i);
		TEST_ASSERT_VAL("exec", !exec_process(pid, name));
		for (u64 m = 0; m < 5; m++)
			TEST_ASSERT_VAL("map", !map(pid, m << 20, 0x1000, 0, "/lib/x"));
		if (i >= 10)
			TEST_ASSERT_VAL("exit", !exit_process(100 + (i - 10) % 30000));
		most = max(most, sideband_store__stats(ss)->used);
	}
	TEST_ASSERT_VAL("no more than those that lived at a time", most < 100000);
	for (u32 i = 100000 - 10; i < 100000; i++)
		exit_process(100 + i % 30000);
	TEST_ASSERT_VAL("nothing is left behind", sideband_store__stats(ss)->used == before);
	TEST_ASSERT_VAL("nothing was dropped", !sideband_store__stats(ss)->dropped);
	end();
	return TEST_OK;
}

static int test__limit(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	size_t limit = 50000;
	int err = 0;
	u32 pid;

	ss = sideband_store__new(limit, ID_SIZE);
	TEST_ASSERT_VAL("store", ss);
	for (pid = 100; pid < 10000; pid++) {
		err = comm(pid, pid, "p", 0);
		err = map(pid, 0x1000, 0x1000, 0, "/some/file") ?: err;
		err = map(pid, 0x1800, 0x100, 0, "/some/file") ?: err;
		err = fork_process(pid + 10000, pid) ?: err;
		TEST_ASSERT_VAL("within the limit", sideband_store__stats(ss)->used <= limit);
	}
	TEST_ASSERT_VAL("it was full", err == -ENOMEM);
	TEST_ASSERT_VAL("that is counted", sideband_store__stats(ss)->dropped > 1000);
	for (pid = 100; pid < 20000; pid++)
		exit_process(pid);
	TEST_ASSERT_VAL("all is given back", !sideband_store__stats(ss)->used);
	TEST_ASSERT_VAL("and can be used", !comm(5, 5, "p", 0) && known("5/5 p; "));
	end();
	return TEST_OK;
}

/* A whole search, and all that it found */
static void doubt(u64 until)
{
	sideband_store__doubt_all(ss);
	sideband_store__doubt(ss, until, UINT_MAX);
}

static void settle(u64 now)
{
	sideband_store__settle(ss, now, UINT_MAX);
}

static int test__doubt(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	pid_t dead = fork();
	char expected[64];

	if (!dead)
		_exit(0);
	TEST_ASSERT_VAL("a process that died", dead > 0 && waitpid(dead, NULL, 0) == dead);
	TEST_ASSERT_VAL("store", begin());
	comm(getpid(), getpid(), "alive", 0);
	comm(dead, dead, "dead", 0);
	doubt(1000);
	settle(999);
	TEST_ASSERT_VAL("its records may still be there", sideband_store__knows(ss, dead));
	settle(1000);
	TEST_ASSERT_VAL("now they have gone", !sideband_store__knows(ss, dead));
	snprintf(expected, sizeof(expected), "%d/%d alive; ", getpid(), getpid());
	TEST_ASSERT_VAL("who lives stays", known(expected));
	end();
	return TEST_OK;
}

/* malloc() keeps some of each small size when they are freed. Let it have them already. */
static void fill_caches(void)
{
	void *p[8];

	for (size_t size = 16; size < 2048; size += 16) {
		for (int i = 0; i < 8; i++)
			p[i] = malloc(size);
		for (int i = 0; i < 8; i++)
			free(p[i]);
	}
}

struct heap {
	unsigned long begin;
	unsigned long most;
	unsigned long end;
	unsigned long longest;
};

static void look(struct heap *heap)
{
	unsigned long end = (unsigned long)sbrk(0);

	heap->most = max(heap->most, end);
	if (heap->end > end)
		heap->longest = max(heap->longest, heap->end - end);
	heap->end = end;
}

static struct heap begin_heap(void)
{
	fill_caches();
	return (struct heap){ .begin = (unsigned long)sbrk(0) };
}

/* Elsewhere it does not come from brk(). */
static bool was_given_back(const struct heap *heap)
{
	pr_debug("%lu bytes, of which %ld are left, at most %lu at once\n",
		 heap->most - heap->begin, (long)(heap->end - heap->begin), heap->longest);
	return heap->most - heap->begin < 20 * LIMIT ||
	       (heap->longest <= 18 * LIMIT && heap->end <= heap->begin + 2 * LIMIT);
}

/* What is free at the top of the heap is not given back all at once. */
static int test__gives_back(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct heap heap;
	char name[64];

	ss = sideband_store__new(100 * LIMIT, ID_SIZE);
	TEST_ASSERT_VAL("store", ss);
	heap = begin_heap();
	for (u32 i = 1; i <= 40000; i++) {
		exec_process((1 << 30) + i, "program");
		for (u64 m = 0; m < 50; m++) {
			snprintf(name, sizeof(name), "/usr/lib/lib%d.so", (int)m);
			map((1 << 30) + i, (i + m * 7) << 20, 0x1000, m << 12, name);
		}
	}
	doubt(1);
	for (int i = 0; i < 1000; i++) {
		look(&heap);
		sideband_store__settle(ss, 1, 256);
	}
	look(&heap);
	TEST_ASSERT_VAL("all were there", !sideband_store__stats(ss)->dropped);
	TEST_ASSERT_VAL("none is there", !sideband_store__stats(ss)->processes);
	end();
	TEST_ASSERT_VAL("step by step", was_given_back(&heap));
	return TEST_OK;
}

/* Also if the heap grows by so little in a pass that its last step is always near its top. */
static int test__grows_slowly(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	static void *p[40000];
	struct sideband_stats stats = {};
	struct sideband_memory memory;
	struct heap heap;

	sideband_memory__init(&memory, -1UL, &stats);
	heap = begin_heap();
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		p[i] = sideband_memory__alloc(&memory, 1720);
		TEST_ASSERT_VAL("memory", p[i]);
		if (i % 50 == 0)
			sideband_memory__give_back(&memory);
	}
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		sideband_memory__free(&memory, p[i], 1720);
		if (i % 256 == 0)
			sideband_memory__give_back(&memory);
		look(&heap);
	}
	for (int i = 0; i < 100; i++) {
		sideband_memory__give_back(&memory);
		look(&heap);
	}
	sideband_memory__exit(&memory);
	TEST_ASSERT_VAL("nothing is used", !stats.used);
	TEST_ASSERT_VAL("step by step", was_given_back(&heap));
	return TEST_OK;
}

/* What has ended is kept for older samples, unless it would crowd out what lives. */
static int test__ended(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	size_t limit = 100000;
	u32 pid;

	ss = sideband_store__new(limit, ID_SIZE);
	TEST_ASSERT_VAL("store", ss);
	sideband_store__keep_ended(ss, 10);
	comm(5, 5, "p", 0);
	comm(6, 6, "q", 0);
	exit_process(5);
	settle(9);
	TEST_ASSERT_VAL("it may have samples", known("5/5 p; 6/6 q; "));
	/* The pid is used again: the exit was not of this one. */
	fork_process(5, 6);
	settle(10);
	TEST_ASSERT_VAL("the next one lives", sideband_store__knows(ss, 5));
	sideband_store__keep_ended(ss, 20);
	exit_process(5);
	settle(20);
	TEST_ASSERT_VAL("now it is gone", known("6/6 q; "));

	for (pid = 100; pid < 10000; pid++) {
		TEST_ASSERT_VAL("there is room", !comm(pid, pid, "p", 0));
		exit_process(pid);
		sideband_store__shed_ended(ss);
	}
	TEST_ASSERT_VAL("the oldest are gone", !sideband_store__knows(ss, 100));
	TEST_ASSERT_VAL("the newest are there", sideband_store__knows(ss, 9999));
	TEST_ASSERT_VAL("who lives stays", sideband_store__knows(ss, 6));
	TEST_ASSERT_VAL("nothing was dropped", !sideband_store__stats(ss)->dropped);
	end();
	return TEST_OK;
}

/* A pass looks at a share, and removes a share, however many there are. */
static int test__doubt_shares(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	const struct sideband_stats *stats;
	int passes;

	TEST_ASSERT_VAL("store", begin());
	stats = sideband_store__stats(ss);
	/* Pids that no machine has */
	for (u32 i = 0; i < 100; i++)
		comm((1 << 30) + i, (1 << 30) + i, "dead", 0);
	sideband_store__doubt_all(ss);
	for (passes = 0; passes < 5; passes++)
		sideband_store__doubt(ss, 1000 + passes, 20);
	sideband_store__settle(ss, 999, UINT_MAX);
	TEST_ASSERT_VAL("none yet", stats->processes == 100);
	sideband_store__settle(ss, 1001, 10);
	TEST_ASSERT_VAL("a share", stats->processes == 90);
	sideband_store__settle(ss, 1001, UINT_MAX);
	TEST_ASSERT_VAL("those of the first passes", stats->processes > 50 &&
			stats->processes < 90);
	/* What comes in the middle of a search waits for the next one. */
	comm(1 << 30, 1 << 30, "dead", 0);
	sideband_store__doubt_all(ss);
	doubt(2000);
	settle(2000);
	TEST_ASSERT_VAL("all", known(""));
	end();
	return TEST_OK;
}

/* Of those that a machine made in weeks, only what is there counts. */
static int test__cgroups(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct cgroup root = { .name = (char *)"/" };
	size_t used;

	TEST_ASSERT_VAL("store", begin());
	if (read_cgroup_id(&root) || root.id != 1) {
		pr_debug("the root of all cgroups is not to be seen here\n");
		cgroup(7, "/gone");
		doubt(1000);
		settle(1000);
		TEST_ASSERT_VAL("then all are kept", known("cgroup /gone; "));
		end();
		return TEST_OK;
	}
	cgroup(1, "/");
	used = sideband_store__stats(ss)->used;
	cgroup(7, "/");
	cgroup(8, "/gone");
	doubt(1000);
	settle(999);
	TEST_ASSERT_VAL("samples of it may be there",
			known("cgroup /; cgroup /; cgroup /gone; "));
	cgroup(8, "/gone");
	settle(1000);
	TEST_ASSERT_VAL("told again, kept", known("cgroup /; cgroup /gone; "));
	for (u64 i = 0; i < 100000; i++) {
		cgroup(100 + i, "/gone");
		if (i % 100 == 99) {
			doubt(2000 + i);
			settle(2000 + i);
		}
	}
	TEST_ASSERT_VAL("nothing was dropped", !sideband_store__stats(ss)->dropped);
	TEST_ASSERT_VAL("nothing is left behind", known("cgroup /; ") &&
			sideband_store__stats(ss)->used == used);
	end();
	return TEST_OK;
}

static struct evlist *begin_order(size_t limit)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
		.sample_id_all	= 1,
	};
	struct evlist *evlist = evlist__new();
	struct evsel *evsel = evsel__new(&attr);

	if (!evlist || !evsel)
		return NULL;
	evlist__add(evlist, evsel);
	sample_layout__init(&layout, &attr, /*swapped=*/false);
	order = begin() ? fold_order__new(evlist, ss, limit) : NULL;
	return order ? evlist : NULL;
}

static void end_order(struct evlist *evlist)
{
	fold_order__delete(order);
	order = NULL;
	evlist__put(evlist);
	end();
}

/* A child of process 5, which has maps, calls exec() on a CPU that is read first. */
static int test__order(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct evlist *evlist = begin_order(LIMIT);
	union perf_event **events;
	static const char parent[] = "5/5 sh; 5 1000-2000@0 /bin/sh; ";
	static const char both[] = "5/5 sh; 5 1000-2000@0 /bin/sh; "
				   "6/6 cc; 6 3000-4000@0 /bin/cc; ";

	TEST_ASSERT_VAL("order", evlist);
	clock_ns = 0;
	comm(5, 5, "sh", 0);
	map(5, 0x1000, 0x1000, 0, "/bin/sh");
	TEST_ASSERT_VAL("without a time: at once", known(parent));

	clock_ns = 20;
	exec_process(6, "cc");
	map(6, 0x3000, 0x1000, 0, "/bin/cc");
	clock_ns = 10;
	fork_process(6, 5);
	fold_order__end_round(order);
	TEST_ASSERT_VAL("something older may come", known(parent));
	TEST_ASSERT_VAL("that takes memory", fold_order__used(order));
	clock_ns = 30;
	comm(5, 5, "sh", 0);
	fold_order__end_round(order);
	TEST_ASSERT_VAL("in one round", known(both));

	/* The fork was written when its CPU's buffer had just been read. */
	clock_ns = 50;
	exec_process(7, "ls");
	fold_order__end_round(order);
	clock_ns = 40;
	fork_process(7, 5);
	clock_ns = 60;
	exit_process(6);
	fold_order__end_round(order);
	TEST_ASSERT_VAL("in two rounds",
			known("5/5 sh; 5 1000-2000@0 /bin/sh; "
			      "6/6 cc; 6 3000-4000@0 /bin/cc; 7/7 ls; "));

	/* An exit, then the fork; of a pid that is used again. */
	clock_ns = 90;
	exit_process(8);
	clock_ns = 75;
	exit_process(7);
	clock_ns = 80;
	fork_process(8, 5);
	clock_ns = 85;
	fork_process(7, 5);
	clock_ns = 70;
	exec_process(5, "bash");
	fold_order__end_round(order);
	fold_order__flush(order);
	TEST_ASSERT_VAL("ends are the last", known("5/5 bash; 7/7 bash; "));
	TEST_ASSERT_VAL("nothing waits", !fold_order__take(order, &events));
	free(events);
	end_order(evlist);
	return TEST_OK;
}

static int test__waiting(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct evlist *evlist = begin_order(LIMIT / 8);
	union perf_event **events;
	size_t most = 0;
	u32 pid;

	TEST_ASSERT_VAL("order", evlist);
	clock_ns = 12;
	comm(5, 5, "two", 0);
	clock_ns = 11;
	comm(5, 5, "one", 0);
	TEST_ASSERT_VAL("taken", fold_order__take(order, &events) == 2);
	TEST_ASSERT_VAL("in order", !strcmp(events[0]->comm.comm, "one") &&
			!strcmp(events[1]->comm.comm, "two"));
	TEST_ASSERT_VAL("not folded", known(""));
	free(events[0]);
	free(events[1]);
	free(events);
	TEST_ASSERT_VAL("none waits", !fold_order__take(order, &events));
	free(events);

	/* A round that is larger than what may wait. */
	for (pid = 100; pid < 100 + LIMIT / 100; pid++) {
		clock_ns++;
		comm(pid, pid, "many", 0);
		most = max(most, fold_order__used(order));
	}
	pr_debug("%u waited in at most %zu bytes\n", LIMIT / 100, most);
	TEST_ASSERT_VAL("bounded", most < LIMIT / 8 * 3 / 2);
	fold_order__flush(order);
	TEST_ASSERT_VAL("all are there", sideband_store__knows(ss, 100) &&
			sideband_store__stats(ss)->processes +
			sideband_store__stats(ss)->dropped >= LIMIT / 100);
	end_order(evlist);
	return TEST_OK;
}

static int test__short(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	static const u32 types[] = {
		PERF_RECORD_MMAP, PERF_RECORD_MMAP2, PERF_RECORD_COMM, PERF_RECORD_FORK,
		PERF_RECORD_EXIT, PERF_RECORD_NAMESPACES, PERF_RECORD_KSYMBOL,
		PERF_RECORD_BPF_EVENT, PERF_RECORD_CGROUP, PERF_RECORD_TEXT_POKE,
	};
	union perf_event *event = zalloc(sizeof(*event));

	TEST_ASSERT_VAL("store", begin());
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		event->header.type = types[i];
		event->header.size = 8 + ID_SIZE;
		TEST_ASSERT_VAL("it is side-band", sideband_store__is_sideband(event));
		TEST_ASSERT_VAL("refused", sideband_store__fold(ss, event) == -EBADMSG);
	}
	event->header.type = PERF_RECORD_SAMPLE;
	TEST_ASSERT_VAL("a sample is not", !sideband_store__is_sideband(event));
	event->header.type = PERF_RECORD_HEADER_MAX;
	TEST_ASSERT_VAL("nor what is unknown", !sideband_store__is_sideband(event));
	TEST_ASSERT_VAL("nothing is known", known(""));
	free(event);
	end();
	return TEST_OK;
}

/* The longest name that fits into a record. */
static int test__huge(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	char *name = malloc(PATH_MAX);

	TEST_ASSERT_VAL("store", begin());
	memset(name, 'x', PATH_MAX);
	name[PATH_MAX - 1] = '\0';
	comm(5, 5, "p", 0);
	TEST_ASSERT_VAL("fold", !map(5, 0x1000, 0x1000, 0, name));
	text_len = 0;
	TEST_ASSERT_VAL("emit", !sideband_store__emit(ss, NULL, tell, NULL));
	TEST_ASSERT_VAL("whole", strstr(text, name));
	free(name);
	end();
	return TEST_OK;
}

static struct test_case tests__flight_sideband_store[] = {
	TEST_CASE("Side-band store: names and maps through exec", exec),
	TEST_CASE("Side-band store: fork without exec", fork),
	TEST_CASE("Side-band store: threads", threads),
	TEST_CASE("Side-band store: a pid that is used again", reuse),
	TEST_CASE("Side-band store: maps replace maps", maps),
	TEST_CASE("Side-band store: maps replace maps, at random", maps_random),
	TEST_CASE("Side-band store: maps replace maps of other processes", maps_shared),
	TEST_CASE("Side-band store: memory of a map", maps_memory),
	TEST_CASE("Side-band store: gives memory back step by step", gives_back),
	TEST_CASE("Side-band store: gives back what grew slowly", grows_slowly),
	TEST_CASE("Side-band store: the kernel", kernel),
	TEST_CASE("Side-band store: emits what is wanted", wanted),
	TEST_CASE("Side-band store: 100,000 short processes", storm),
	TEST_CASE("Side-band store: never exceeds its limit", limit),
	TEST_CASE("Side-band store: processes whose exit was lost", doubt),
	TEST_CASE("Side-band store: a few of them at a time", doubt_shares),
	TEST_CASE("Side-band store: threads that have ended", ended),
	TEST_CASE("Side-band store: cgroups that are gone", cgroups),
	TEST_CASE("Side-band store: CPUs that come in any order", order),
	TEST_CASE("Side-band store: what waits for its order", waiting),
	TEST_CASE("Side-band store: records that are too short", short),
	TEST_CASE("Side-band store: the longest name", huge),
	{ .name = NULL, }
};

struct test_suite suite__flight_sideband_store = {
	.desc = "Flight recorder: side-band store",
	.test_cases = tests__flight_sideband_store,
};
