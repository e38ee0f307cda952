// SPDX-License-Identifier: GPL-2.0
/*
 * Properties of the fair store of the flight recorder:
 * - a cgroup that makes 100 times the records of another one leaves it at least 90 % of
 *   what it would have had, up to its share;
 * - of each cgroup, the newest records are there, whole and in the order of arrival,
 *   whatever pieces they came in, and the time since when there are all of them is told;
 * - groups of records are walked in their order;
 * - side-band is shown once, in order, when it is evicted, and what is older than all
 *   samples is evicted;
 * - cgroups without end take no more memory, and do not evict those that have records;
 * - it never takes more than its budget, also when that changes;
 * - a child that reads what was there at its fork() sees all of it as long as a reserve
 *   lasts, and then only whole records, and knows how much was taken from it.
 *
 * Records carry their cgroup, their number in it and their group.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include "util/base-api.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/flight/store/fair-store.h"
#include "random-number.h"
#include "tests.h"

#define SIZE		(4 << 20)
#define MAX_RECORD	65528
#define ROUND		(8 * MAX_RECORD)
#define MAX_CGROUPS	64

/* The words of sample_type, with a stack of any size before the last one. */
struct sample {
	struct perf_event_header	header;
	u32				pid;
	u32				tid;
	u64				time;
	u64				cpu;
	u64				number;
	u64				group;
	u64				fill[];
};

struct comm {
	struct perf_record_comm		comm;
	u64				number;
	u32				pid;
	u32				tid;
	u64				time;
	u64				cpu;
};

/* What has been stored, and what is there. */
struct model {
	struct fair_store	*fs;
	struct evlist		*evlist;
	unsigned char		*round;
	size_t			len;
	u64			time;
	u64			pass;
	u64			stored[MAX_CGROUPS];	/* number of the next record */
	u64			seen[MAX_CGROUPS];	/* the next one that should be read */
	u64			first[MAX_CGROUPS];	/* the oldest one that is there */
	u64			count[MAX_CGROUPS];
	u64			comms;
	u64			evicted_comms;
	u64			seen_comms;
	u64			group;
	u64			bytes;
	bool			bad;
	bool			large;			/* now and then records of 64 KiB */
};

static size_t sample_size(const struct model *m, u64 number)
{
	u64 n = number * 0x9e3779b97f4a7c15ULL;

	if (m->large && n % 97 == 50)
		return MAX_RECORD;
	/* At least the cgroup. */
	return sizeof(struct sample) + 8 + n % 8 * 8;
}

static u64 cgroup_of(const struct sample *s)
{
	return *(u64 *)((void *)s + s->header.size - sizeof(u64));
}

static bool is_sample(const struct model *m, const struct sample *s, u64 number)
{
	return s->header.size == sample_size(m, number) && s->number == number &&
	       (s->header.size == sizeof(*s) + 8 || s->fill[0] == number);
}

static int see_evicted(union perf_event *event, void *data)
{
	struct model *m = data;

	if (event->header.type != PERF_RECORD_COMM ||
	    ((struct comm *)event)->number != m->evicted_comms)
		m->bad = true;
	m->evicted_comms++;
	return 0;
}

static int see_gone(u32 group __maybe_unused, void *data __maybe_unused)
{
	return 0;
}

static int see(union perf_event *event, void *data)
{
	const struct sample *s = (struct sample *)event;
	struct model *m = data;
	u64 id;

	m->bytes += event->header.size;
	if (event->header.type == PERF_RECORD_COMM) {
		m->bad |= ((struct comm *)event)->number != m->seen_comms++;
		return 0;
	}
	id = cgroup_of(s);
	if (id >= MAX_CGROUPS)
		return 0;
	if (!m->count[id]) {
		m->first[id] = s->number;
		m->seen[id] = s->number;
	}
	if (!is_sample(m, s, m->seen[id]) || s->group < m->group)
		m->bad = true;
	m->group = s->group;
	m->seen[id]++;
	m->count[id]++;
	return 0;
}

static struct evlist *make_evlist(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
				  PERF_SAMPLE_CGROUP,
		.sample_id_all	= 1,
	};
	struct evlist *evlist = evlist__new();
	struct evsel *evsel = evsel__new(&attr);

	if (!evlist || !evsel)
		return NULL;
	evlist__add(evlist, evsel);
	return evlist;
}

static bool model__init(struct model *m, size_t size, u64 seed)
{
	memset(m, 0, sizeof(*m));
	random_seed(seed);
	m->round = malloc(ROUND);
	m->evlist = make_evlist();
	m->fs = fair_store__new(size, m->evlist, see_evicted, see_gone, m);
	m->time = 1;
	return m->round && m->evlist && m->fs;
}

static void model__exit(struct model *m)
{
	fair_store__delete(m->fs);
	evlist__put(m->evlist);
	free(m->round);
}

static void add_sample(struct model *m, u64 id, u64 number)
{
	struct sample *s = (struct sample *)(m->round + m->len);
	size_t size = sample_size(m, number);

	memset(s, 0, size);
	s->header.type = PERF_RECORD_SAMPLE;
	s->header.size = size;
	s->pid = 1000 + id;
	s->time = m->time++;
	s->number = number;
	s->group = fair_store__group(m->fs);
	if (size > sizeof(*s) + 8)
		s->fill[0] = number;
	*(u64 *)((void *)s + size - sizeof(u64)) = id;
	m->len += size;
}

static void add_of(struct model *m, u64 id)
{
	add_sample(m, id, m->stored[id]++);
}

static void add_comm(struct model *m)
{
	struct comm c = {
		.comm.header.type	= PERF_RECORD_COMM,
		.comm.header.size	= sizeof(c),
		.number			= m->comms++,
		.time			= m->time++,
	};

	memcpy(m->round + m->len, &c, sizeof(c));
	m->len += sizeof(c);
}

/* Store it in pieces that begin and end anywhere. */
static void end_round(struct model *m)
{
	size_t pos = 0;

	while (pos < m->len) {
		size_t piece = min(m->len - pos, (size_t)(1 + random_number(m->len / 8)) * 8);

		fair_store__append(m->fs, m->round + pos, piece);
		pos += piece;
	}
	m->len = 0;
	m->pass += 100 * NSEC_PER_MSEC;
	fair_store__close_round(m->fs, m->pass);
}

static bool walk(struct model *m)
{
	memset(m->count, 0, sizeof(m->count));
	m->group = 0;
	m->bytes = 0;
	m->seen_comms = m->evicted_comms;
	return !fair_store__walk(m->fs, see, NULL, m) && !m->bad &&
	       m->seen_comms == m->comms;
}

/* All that was not evicted is there, in order, up to the newest record. */
static bool is_consistent(struct model *m, size_t budget)
{
	const struct ring_store_stats *stats;
	bool ok = walk(m);

	stats = fair_store__stats(m->fs);
	for (u64 id = 0; id < MAX_CGROUPS; id++)
		ok &= !m->count[id] || m->seen[id] == m->stored[id];
	ok &= stats->used <= budget && !stats->broken_bytes && !stats->refused_bytes;
	ok &= m->bytes <= stats->bytes;
	if (!ok)
		pr_debug("%" PRIu64 " of %zu bytes used, %" PRIu64 " seen, %" PRIu64 " refused\n",
			 stats->used, budget, m->bytes, stats->refused_bytes);
	return ok;
}

/* @nr cgroups of which the last is loud; return the least part of its share that one has. */
static double least_share(u64 nr, u64 *kept)
{
	double least = 1, share = (double)SIZE / nr;
	u64 bytes[MAX_CGROUPS] = {};
	struct fair_share s;
	struct model m;

	if (!model__init(&m, SIZE, nr))
		return 0;
	/* Of a quiet one, more than its share. */
	for (u64 pass = 0; bytes[0] < 2 * share; pass++) {
		for (u64 id = 0; id + 1 < nr; id++) {
			bytes[id] += sample_size(&m, m.stored[id]);
			add_of(&m, id);
		}
		for (u64 i = 0; i < 100; i++)
			add_of(&m, nr - 1);
		end_round(&m);
	}
	if (!is_consistent(&m, SIZE))
		least = 0;
	for (u32 i = 0; i < fair_store__nr_shares(m.fs); i++) {
		if (fair_store__share(m.fs, i, &s))
			least = min(least, s.bytes / share);
	}
	*kept = m.count[0];
	model__exit(&m);
	return least;
}

static int test__shares(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	static const u64 nrs[] = { 2, 3, 12, 40 };
	u64 kept;

	for (size_t i = 0; i < ARRAY_SIZE(nrs); i++) {
		double least = least_share(nrs[i], &kept);

		pr_debug("%" PRIu64 " cgroups: a quiet one has %.1f %% of its share\n", nrs[i],
			 100 * least);
		TEST_ASSERT_VAL("its share", least >= 0.9);
	}
	return TEST_OK;
}

/* One that needs less than its share keeps all, and the others get the rest. */
static int test__small(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct fair_share share;
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 4));
	for (int pass = 0; pass < 6000; pass++) {
		add_of(&m, 0);
		for (int i = 0; i < 50; i++) {
			add_of(&m, 1);
			add_of(&m, 2);
		}
		end_round(&m);
	}
	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	TEST_ASSERT_VAL("all of the quiet one", m.count[0] == m.stored[0]);
	for (u32 i = 0; i < fair_store__nr_shares(m.fs); i++) {
		if (!fair_store__share(m.fs, i, &share))
			continue;
		TEST_ASSERT_VAL("complete if nothing was evicted",
				(share.complete_since == 0) == (share.id == 0));
		if (share.id)
			TEST_ASSERT_VAL("what the quiet one leaves", share.bytes > SIZE * 4 / 10);
	}
	TEST_ASSERT_VAL("not complete for all", fair_store__complete_since(m.fs));
	model__exit(&m);
	return TEST_OK;
}

/* @comms: how much side-band there is */
static bool keeps_the_newest(u64 seed, u64 *comms)
{
	u64 rare = seed % 4 < 2 ? 20 : 2;
	struct model m;
	bool ok = model__init(&m, 1 << 20, seed);

	m.large = seed % 2;
	for (int pass = 0; ok && pass < 300; pass++) {
		while (m.len < ROUND / 4 && random_number(m.large ? 100 : 1000)) {
			/* The larger the number, the quieter the cgroup. */
			add_of(&m, random_number(1 + random_number(8)));
			if (!random_number(rare))
				add_comm(&m);
		}
		end_round(&m);
		if (!random_number(8))
			fair_store__fold_old(m.fs);
		ok = is_consistent(&m, 1 << 20);
	}
	*comms += m.evicted_comms;
	model__exit(&m);
	return ok;
}

static int test__newest(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 comms = 0;

	for (u64 seed = 0; seed < 20; seed++)
		TEST_ASSERT_VAL("the newest of each, whole and in order",
				keeps_the_newest(seed, &comms));
	TEST_ASSERT_VAL("side-band was evicted", comms > 10000);
	return TEST_OK;
}

/* What was evicted is not later than complete_since; what is there is later. */
static int test__cut(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct fair_share share;
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, 1 << 20, 4));
	/* Time is the number: there is one cgroup. */
	for (int pass = 0; pass < 100; pass++) {
		for (int i = 0; i < 1000; i++)
			add_of(&m, 3);
		end_round(&m);
	}
	TEST_ASSERT_VAL("consistent", is_consistent(&m, 1 << 20));
	for (u32 i = 0; i < fair_store__nr_shares(m.fs); i++) {
		if (fair_store__share(m.fs, i, &share))
			TEST_ASSERT_VAL("the newest that was evicted",
					share.id == 3 && share.complete_since == m.first[3]);
	}
	model__exit(&m);
	return TEST_OK;
}

static int test__old(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;
	u64 before;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 4));
	for (int pass = 0; pass < 1000; pass++) {
		for (int i = 0; i < 10; i++)
			add_comm(&m);
		add_of(&m, 1);
		end_round(&m);
	}
	fair_store__fold_old(m.fs);
	TEST_ASSERT_VAL("none is older than the samples", !m.evicted_comms);
	TEST_ASSERT_VAL("names are right", !fair_store__names_since(m.fs));
	fair_store__evict_before(m.fs, m.pass / 2);
	before = m.evicted_comms;
	TEST_ASSERT_VAL("aged", before && m.count[1] < m.stored[1]);
	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	model__exit(&m);
	return TEST_OK;
}

/* No task begins or ends while a recorder starts, so there is nothing to be folded. */
static int test__no_sideband(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 4));
	fair_store__fold_old(m.fs);
	for (int pass = 0; pass < 100; pass++) {
		add_of(&m, 1);
		end_round(&m);
		fair_store__fold_old(m.fs);
	}
	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	model__exit(&m);
	return TEST_OK;
}

static bool has_share(struct model *m, u64 id)
{
	struct fair_share share;

	for (u32 i = 0; i < fair_store__nr_shares(m->fs); i++) {
		if (fair_store__share(m->fs, i, &share) && share.id == id)
			return true;
	}
	return false;
}

static int test__many(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 4));
	for (int i = 0; i < 1000; i++)
		add_of(&m, 1);
	end_round(&m);
	for (u64 pass = 0; pass < 2000; pass++) {
		for (u64 id = 0; id < 100; id++) {
			add_sample(&m, 1000 + pass * 100 + id, pass);
			add_sample(&m, 1000 + pass * 100 + id, pass + 1);
		}
		end_round(&m);
		TEST_ASSERT_VAL("within the budget", fair_store__stats(m.fs)->used <= SIZE);
	}
	TEST_ASSERT_VAL("memory", fair_store__memory(m.fs) <= SIZE);
	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	TEST_ASSERT_VAL("all of the one with records", m.count[1] == m.stored[1]);
	TEST_ASSERT_VAL("half-filled chunks waste little",
			fair_store__stats(m.fs)->bytes > SIZE * 85ULL / 100);
	/* Those that were silent since give way to a new one. */
	for (int i = 0; i < 20; i++)
		end_round(&m);
	add_of(&m, 2);
	end_round(&m);
	TEST_ASSERT_VAL("the new one has a queue", has_share(&m, 2));
	TEST_ASSERT_VAL("and the one with records", has_share(&m, 1));
	model__exit(&m);
	return TEST_OK;
}

static int test__budget(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 7));
	m.large = true;
	for (int i = 0; i < 200; i++) {
		size_t budget = (6 + random_number(10)) * 256 * 1024;

		fair_store__set_budget(m.fs, budget);
		TEST_ASSERT_VAL("a smaller budget holds at once", is_consistent(&m, budget));
		for (int j = 0; j < 5; j++) {
			while (m.len < ROUND / 2)
				add_of(&m, random_number(12));
			end_round(&m);
			TEST_ASSERT_VAL("within the budget", is_consistent(&m, budget));
		}
		TEST_ASSERT_VAL("no more memory", fair_store__memory(m.fs) <= budget);
	}
	model__exit(&m);
	return TEST_OK;
}

/* What the child of a dump has found. */
struct found {
	u64	bytes;
	u64	stolen;
	bool	bad;
};

/* Any of them may be missing. */
static int find(union perf_event *event, void *data)
{
	const struct sample *s = (struct sample *)event;
	struct model *m = data;
	u64 id = cgroup_of(s);

	if (id >= MAX_CGROUPS || !is_sample(m, s, s->number) || s->group < m->group ||
	    (m->count[id] && s->number < m->seen[id]))
		m->bad = true;
	else
		m->seen[id] = s->number + 1;
	m->group = s->group;
	m->count[id % MAX_CGROUPS]++;
	m->bytes += event->header.size;
	return 0;
}

/* The file was written twice: the disk was full. */
static void walk_forked(struct model *m, int go, struct found *found)
{
	char c;

	fair_store__forked(m->fs);
	fair_store__walk_again(m->fs);
	if (go >= 0 && read(go, &c, 1) != 1)
		found->bad = true;
	memset(m->count, 0, sizeof(m->count));
	m->bytes = 0;
	m->group = 0;
	fair_store__walk_last(m->fs);
	if (fair_store__walk(m->fs, find, NULL, m))
		found->bad = true;
	found->bad |= m->bad;
	found->bytes = m->bytes;
	found->stolen = fair_store__stolen(m->fs);
}

static void fill(struct model *m, u64 bytes)
{
	while (bytes) {
		while (m->len < ROUND / 4)
			add_of(m, random_number(1 + random_number(8)));
		bytes -= min_t(u64, bytes, m->len);
		end_round(m);
	}
}

/* Store @bytes while a child waits that reads what was there before. */
static bool record_beside_child(struct model *m, u64 bytes, struct found *found)
{
	int go[2], status = -1;
	pid_t pid;

	memset(found, 0, sizeof(*found));
	if (pipe(go))
		return false;
	fair_store__fence(m->fs);
	pid = fork();
	if (!pid) {
		walk_forked(m, go[0], found);
		_exit(0);
	}
	fill(m, bytes);
	if (write(go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid)
		status = -1;
	fair_store__unfence(m->fs);
	close(go[0]);
	close(go[1]);
	return !status;
}

static int test__forked(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct found *found = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct model m;
	u64 bytes, most;

	TEST_ASSERT_VAL("model", found != MAP_FAILED && model__init(&m, SIZE, 9));
	m.large = true;
	fill(&m, 2 * SIZE);
	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	bytes = m.bytes;
	TEST_ASSERT_VAL("child", record_beside_child(&m, SIZE / 5, found));
	TEST_ASSERT_VAL("all that was there", !found->bad && found->bytes == bytes);
	TEST_ASSERT_VAL("nothing was taken", !found->stolen);

	TEST_ASSERT_VAL("consistent", is_consistent(&m, SIZE));
	bytes = m.bytes;
	TEST_ASSERT_VAL("child", record_beside_child(&m, SIZE, found));
	most = fair_store__memory(m.fs);
	pr_debug("%" PRIu64 " KiB: the child found %" PRIu64 " KiB, %" PRIu64 " KiB were taken\n",
		 bytes >> 10, found->bytes >> 10, found->stolen >> 10);
	TEST_ASSERT_VAL("whole records", !found->bad && found->bytes < bytes);
	TEST_ASSERT_VAL("it knows", found->stolen &&
			found->bytes + found->stolen + SIZE / 10 > bytes);
	TEST_ASSERT_VAL("memory is given back", most <= SIZE);
	TEST_ASSERT_VAL("the recorder lost nothing", is_consistent(&m, SIZE));
	model__exit(&m);
	munmap(found, page_size);
	return TEST_OK;
}

/* Bytes that are no records, or a piece that ends in one, are counted and left out. */
static int test__broken(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;
	u64 word = 0;

	TEST_ASSERT_VAL("model", model__init(&m, SIZE, 2));
	add_of(&m, 1);
	fair_store__append(m.fs, m.round, m.len - 8);
	m.len = 0;
	m.stored[1] = 0;
	end_round(&m);
	fair_store__append(m.fs, &word, sizeof(word));
	add_of(&m, 1);
	end_round(&m);
	TEST_ASSERT_VAL("walk", walk(&m) && m.count[1] == 1);
	TEST_ASSERT_VAL("counted", fair_store__stats(m.fs)->broken_bytes ==
			sample_size(&m, 0) - 8 + sizeof(word));
	model__exit(&m);
	return TEST_OK;
}

static struct test_case tests__flight_fair_store[] = {
	TEST_CASE("Fair store: leaves each cgroup its share", shares),
	TEST_CASE("Fair store: leaves a small cgroup all", small),
	TEST_CASE("Fair store: holds the newest records of each cgroup, in order", newest),
	TEST_CASE("Fair store: tells since when a cgroup is complete", cut),
	TEST_CASE("Fair store: keeps side-band as long as samples", old),
	TEST_CASE("Fair store: needs no side-band", no_sideband),
	TEST_CASE("Fair store: bounds the number of cgroups", many),
	TEST_CASE("Fair store: never exceeds a budget that changes", budget),
	TEST_CASE("Fair store: is read by a child while it is written", forked),
	TEST_CASE("Fair store: survives what is no record", broken),
	{ .name = NULL, }
};

struct test_suite suite__flight_fair_store = {
	.desc = "Flight recorder: fair store",
	.test_cases = tests__flight_fair_store,
};
