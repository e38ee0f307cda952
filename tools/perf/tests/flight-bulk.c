// SPDX-License-Identifier: GPL-2.0
/*
 * What passes through a flight recorder in days, in seconds: a machine that builds, with
 * processes that live shortly, others that stay, names that change, exits that get lost,
 * and far more samples than there is room for. Its properties:
 * - the memory of the process is flat once the ring has gone around;
 * - who stays is known at the end, who is gone is not;
 * - the same with compressed rounds.
 *
 * FLIGHT_BULK_MIB=N: so many MiB, instead of few that do for a debugger of memory.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <internal/lib.h>
#include "util/base-api.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/flight/recorder.h"
#include "util/flight/store/flight-store.h"
#include "util/flight/store/sideband-store.h"
#include "util/record.h"
#include "tests.h"

#define DEFAULT_MIB	48
#define STORE		(4 << 20)
#define ROUND		(96 << 10)

/* Above what a kernel gives, so that they are dead for who looks. */
#define FIRST_PID	16777216U
#define NR_PIDS		30000U

/* Malloc's, and what a debugger of memory keeps of what was freed. */
#define SLACK		(4UL << 20)

struct bulk {
	struct flight_recorder	*fr;
	struct flight_store	*store;
	char			*round;
	size_t			len;
	u64			bytes;
	u64			processes;
};

static void *add(struct bulk *b, u32 type, u16 misc, size_t size)
{
	struct perf_event_header *header = (void *)b->round + b->len;

	size = PERF_ALIGN(size, sizeof(u64));
	memset(header, 0, size);
	header->type = type;
	header->misc = misc;
	header->size = size;
	b->len += size;
	return header;
}

static void add_task(struct bulk *b, u32 type, u32 pid)
{
	struct perf_record_fork *fork = add(b, type, 0, sizeof(*fork));

	fork->pid = pid;
	fork->tid = pid;
	fork->ppid = getpid();
	fork->ptid = getpid();
}

static void add_comm(struct bulk *b, u32 pid, u16 misc, const char *name)
{
	struct perf_record_comm *comm = add(b, PERF_RECORD_COMM, misc,
					    offsetof(struct perf_record_comm, comm) + 16);

	comm->pid = pid;
	comm->tid = pid;
	snprintf(comm->comm, 16, "%s", name);
}

static void add_map(struct bulk *b, u32 pid, u64 start, const char *name)
{
	struct perf_record_mmap2 *map = add(b, PERF_RECORD_MMAP2, 0,
					    offsetof(struct perf_record_mmap2, filename) + 40);

	map->pid = pid;
	map->tid = pid;
	map->start = start;
	map->len = 0x4000;
	snprintf(map->filename, 40, "%s", name);
}

static void add_samples(struct bulk *b, u32 pid, int nr)
{
	for (int i = 0; i < nr; i++) {
		u64 *words = add(b, PERF_RECORD_SAMPLE, 0, 200);

		words[1] = 0x400000 + i;
		words[2] = pid;
	}
}

/* One process's life; one of a thousand exits gets lost, and that is told. */
static void live(struct bulk *b)
{
	u32 pid = FIRST_PID + b->processes++ % NR_PIDS;

	add_task(b, PERF_RECORD_FORK, pid);
	add_comm(b, pid, PERF_RECORD_MISC_COMM_EXEC, "cc1");
	for (u64 i = 0; i < 8; i++)
		add_map(b, pid, 0x400000 + i * 0x2000, "/usr/lib/x86_64-linux-gnu/lib.so");
	add_samples(b, pid, 20);
	/* A process that stays: a new mapping in place of the last one, as of a JIT. */
	add_map(b, getpid(), 0x10000000 + b->processes % 64 * 0x4000, "//anon");
	add_samples(b, getpid(), 5);
	if (b->processes % 1000)
		add_task(b, PERF_RECORD_EXIT, pid);
	else
		add(b, PERF_RECORD_LOST, 0, sizeof(struct perf_record_lost));
}

/* In pieces, as the buffers of the kernel have a wrap. */
static void pass(struct bulk *b)
{
	static const struct perf_event_header round = {
		.type = PERF_RECORD_FINISHED_ROUND, .size = sizeof(round),
	};
	size_t cut;

	for (b->len = 0; b->len < ROUND - 8192;)
		live(b);
	cut = b->bytes % b->len & ~7UL;
	flight_store__append(b->store, b->round, cut);
	flight_store__append(b->store, b->round + cut, b->len - cut);
	flight_recorder__store(b->fr, NULL, &round, sizeof(round));
	b->bytes += b->len;
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long total, pages = 0;

	if (f && fscanf(f, "%lu %lu", &total, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * page_size;
}

static u64 bulk_bytes(void)
{
	const char *mib = getenv("FLIGHT_BULK_MIB");

	return (mib ? strtoull(mib, NULL, 0) : DEFAULT_MIB) << 20;
}

static int run(unsigned int comp_level, u64 bytes)
{
	struct record_opts opts = {};
	struct flight_opts fo = {
		.record = &opts, .memory = STORE, .store = STORE, .comp_level = comp_level,
		.out = "bulk", .dry_run = true,
	};
	struct evlist *evlist = evlist__new_dummy();
	struct bulk b = { .round = malloc(ROUND) };
	size_t first = 0, most = 0;

	TEST_ASSERT_VAL("evlist", evlist);
	TEST_ASSERT_VAL("memory", b.round);
	b.fr = flight_recorder__new(&fo, NULL, NULL, evlist);
	TEST_ASSERT_VAL("recorder", b.fr);
	b.store = flight_recorder__get_store(b.fr);
	/* As if found in /proc. */
	add_comm(&b, getpid(), 0, "stays");
	flight_recorder__store(b.fr, NULL, b.round, b.len);

	/* Half of it fills what is to be filled; a debugger of memory takes longer. */
	while (b.bytes < bytes / 2)
		pass(&b);
	first = resident();
	for (u64 n = 0; b.bytes < bytes; n++) {
		pass(&b);
		if (n % 64 == 0)
			most = max(most, resident());
	}
	pr_debug("%" PRIu64 " MiB, %" PRIu64 " processes: %zu KiB after half, then at most %zu\n",
		 b.bytes >> 20, b.processes, first >> 10, most >> 10);
	TEST_ASSERT_VAL("flat memory", most <= first + SLACK);
	TEST_ASSERT_VAL("who stays is known",
			sideband_store__knows(b.store->sideband, getpid()));
	/* Compressed, the ring reaches back to where their pids were used before. */
	for (u32 i = 20000; !comp_level && i < NR_PIDS; i++) {
		u32 pid = FIRST_PID + (b.processes + NR_PIDS - i) % NR_PIDS;

		TEST_ASSERT_VAL("who is gone is not",
				!sideband_store__knows(b.store->sideband, pid));
	}
	flight_recorder__delete(b.fr);
	evlist__put(evlist);
	free(b.round);
	signal(SIGUSR1, SIG_DFL);
	return TEST_OK;
}

static int test__days(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	return run(0, bulk_bytes());
}

static int test__packed_days(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
#ifdef HAVE_ZSTD_SUPPORT
	return run(1, bulk_bytes() / 4);
#else
	return TEST_SKIP;
#endif
}

static struct test_case tests__flight_bulk[] = {
	TEST_CASE("Flight recorder: what passes in days", days),
	TEST_CASE_REASON("Flight recorder: what passes in days, compressed", packed_days,
			 "no zstd"),
	{ .name = NULL, }
};

struct test_suite suite__flight_bulk = {
	.desc = "Flight recorder: what passes in days",
	.test_cases = tests__flight_bulk,
};
