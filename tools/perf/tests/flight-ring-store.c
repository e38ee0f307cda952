// SPDX-License-Identifier: GPL-2.0
/*
 * Properties of the ring store of the flight recorder:
 * - what it holds are the newest rounds, whole, each as it came, whatever pieces it
 *   came in and wherever pieces and records wrap;
 * - rounds go the oldest one first, and each record of one is shown before it goes;
 * - it never takes more than its budget, also when that changes;
 * - no more of its memory is resident than the budget allows for;
 * - a child that reads what was there at its fork() sees all of it as long as a reserve
 *   lasts, and then only whole records, and knows how much was taken from it, also when
 *   it reads once more;
 * - a round larger than the budget is left out as a whole, and counted;
 * - all of that holds for compressed rounds, too, which take less room;
 * - what is no record ends a walk, and is counted;
 * - what ends a group of rounds promises nothing that a writer who is held up for less
 *   than FLIGHT_ROUND_TIME breaks.
 *
 * Records carry their number, so that each one that is seen can be told.
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
#include "util/debug.h"
#include "util/event.h"
#include "util/flight/store/ring-store.h"
#include "random-number.h"
#include "tests.h"

#define MAX_RECORD	65528
#define MAX_PIECES	64

struct numbered {
	struct perf_event_header	header;
	u64				number;
	unsigned char			fill[];
};

/* What has been stored, and how far eviction and reading have come. */
struct model {
	struct ring_store	*rs;
	u64			stored;		/* number of the next record */
	u64			evicted;	/* the next one that should go */
	u64			seen;		/* the next one that should be read */
	bool			bad;
	bool			noisy;		/* records that do not get smaller */
	unsigned char		*round;
	size_t			room;
};

static size_t record_size(u64 number)
{
	u64 n = number * 0x9e3779b97f4a7c15ULL;

	/* Mostly small, now and then as large as can be. */
	if (n % 97 == 50)
		return MAX_RECORD;
	return sizeof(struct numbered) + n % 40 * 8;
}

static bool is_record(const union perf_event *event, u64 number)
{
	const struct numbered *r = (const struct numbered *)event;
	size_t fill = record_size(number) - sizeof(*r);

	return r->header.type == PERF_RECORD_SAMPLE && r->header.size == record_size(number) &&
	       r->number == number &&
	       (!fill || (r->fill[0] == (unsigned char)number &&
			  r->fill[fill - 1] == (unsigned char)number));
}

static int evict(union perf_event *event, void *data)
{
	struct model *m = data;

	if (!is_record(event, m->evicted))
		m->bad = true;
	m->evicted++;
	return 0;
}

static int see(union perf_event *event, void *data)
{
	struct model *m = data;

	if (!is_record(event, m->seen))
		m->bad = true;
	m->seen++;
	return 0;
}

static bool model__init(struct model *m, size_t size, u64 seed)
{
	memset(m, 0, sizeof(*m));
	random_seed(seed);
	m->room = 8 * MAX_RECORD;
	m->round = malloc(m->room);
	m->rs = ring_store__new(size, evict, m);
	return m->round && m->rs;
}

static void model__exit(struct model *m)
{
	ring_store__delete(m->rs);
	free(m->round);
}

/* A round of up to @max bytes, or of one record; returns its length. */
static size_t make_round(struct model *m, size_t max)
{
	size_t len = 0;

	while (!len || len + record_size(m->stored) <= max) {
		struct numbered *r = (struct numbered *)(m->round + len);

		memset(r, (unsigned char)m->stored, record_size(m->stored));
		for (size_t i = 1; m->noisy && i + sizeof(*r) + 1 < record_size(m->stored); i++)
			r->fill[i] = random_number(256);
		r->header.type = PERF_RECORD_SAMPLE;
		r->header.misc = 0;
		r->header.size = record_size(m->stored);
		r->number = m->stored;
		len += r->header.size;
		m->stored++;
	}
	return len;
}

/* Store it in pieces that begin and end anywhere. */
static void store_round(struct model *m, size_t len, u64 time)
{
	size_t pos = 0;

	while (pos < len) {
		size_t piece = min(len - pos, (size_t)(1 + random_number(len / 8)) * 8);

		ring_store__append(m->rs, m->round + pos, piece);
		pos += piece;
	}
	ring_store__close_round(m->rs, time);
}

/* All that was not evicted is there, in order, and nothing else. */
static bool is_consistent(struct model *m, size_t budget)
{
	const struct ring_store_stats *stats = ring_store__stats(m->rs);
	struct ring_store_round round;
	u64 rounds = 0, bytes = 0;
	bool more;

	m->seen = m->evicted;
	for (more = ring_store__first(m->rs, &round); more;
	     more = ring_store__next(m->rs, &round)) {
		if (ring_store__walk(m->rs, &round, see, m))
			m->bad = true;
		rounds++;
		bytes += round.raw;
	}
	if (m->bad || m->seen != m->stored || rounds != stats->rounds ||
	    bytes != stats->bytes || stats->used > budget || stats->broken_bytes ||
	    stats->used != ring_store__head(m->rs) - ring_store__tail(m->rs)) {
		pr_debug("stored %llu evicted %llu seen %llu, %llu of %zu bytes used\n",
			 (unsigned long long)m->stored, (unsigned long long)m->evicted,
			 (unsigned long long)m->seen, (unsigned long long)stats->used, budget);
		return false;
	}
	return true;
}

static bool keeps_the_newest(u64 seed)
{
	struct model m;
	bool ok = model__init(&m, 1 << 20, seed);

	for (int i = 0; ok && i < 300; i++) {
		size_t len = make_round(&m, random_number(seed % 2 ? 2000 : 6 * MAX_RECORD));

		store_round(&m, len, i);
		ok = is_consistent(&m, 1 << 20);
	}
	model__exit(&m);
	return ok;
}

static int test__newest(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	for (u64 seed = 0; seed < 20; seed++)
		TEST_ASSERT_VAL("the newest rounds, whole and in order", keeps_the_newest(seed));
	return TEST_OK;
}

/* Rounds of which some, or some chunks, do not get smaller. */
static bool keeps_the_newest_packed(u64 seed)
{
	const struct ring_store_stats *stats;
	u64 bytes = 0;
	struct model m;
	size_t len;
	bool ok = model__init(&m, 3 << 20, seed) && !ring_store__compress(m.rs, 1);

	for (int i = 0; ok && i < 200; i++) {
		m.noisy = seed % 3 == 2 || (seed % 3 == 1 && random_number(3) == 0);
		len = make_round(&m, random_number(seed % 2 ? 20000 : 6 * MAX_RECORD));
		store_round(&m, len, i);
		if (random_number(4))
			continue;
		ring_store__flush(m.rs);
		ok = is_consistent(&m, 3 << 20);
	}
	stats = ring_store__stats(m.rs);
	bytes = stats->bytes;
	if (seed % 3 == 0 && seed % 2 == 0)
		ok = ok && bytes > 2 * stats->used;
	model__exit(&m);
	return ok;
}

static int test__packed(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
#ifdef HAVE_ZSTD_SUPPORT
	for (u64 seed = 0; seed < 12; seed++)
		TEST_ASSERT_VAL("the newest rounds, compressed", keeps_the_newest_packed(seed));
	return TEST_OK;
#else
	return TEST_SKIP;
#endif
}

static int test__budget(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, 4 << 20, 7));
	for (int i = 0; i < 300; i++) {
		size_t budget = (2 + random_number(14)) * 256 * 1024;

		ring_store__set_budget(m.rs, budget);
		TEST_ASSERT_VAL("a smaller budget holds at once", is_consistent(&m, budget));
		for (int j = 0; j < 5; j++) {
			store_round(&m, make_round(&m, random_number(6 * MAX_RECORD)), i);
			TEST_ASSERT_VAL("within the budget", is_consistent(&m, budget));
		}
	}
	TEST_ASSERT_VAL("something went", m.evicted > 1000);
	model__exit(&m);
	return TEST_OK;
}

static int test__max_age(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct ring_store_round round;
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, 4 << 20, 3));
	for (int i = 0; i < 100; i++)
		store_round(&m, make_round(&m, 4000), 1000 + i);
	ring_store__evict_before(m.rs, 1060);
	TEST_ASSERT_VAL("consistent", is_consistent(&m, 4 << 20));
	TEST_ASSERT_VAL("there is a round", ring_store__first(m.rs, &round));
	TEST_ASSERT_VAL("the oldest that is young enough", round.time == 1060);
	ring_store__evict_before(m.rs, 5000);
	TEST_ASSERT_VAL("none is left", !ring_store__first(m.rs, &round));
	TEST_ASSERT_VAL("all were shown", m.evicted == m.stored);
	model__exit(&m);
	return TEST_OK;
}

/* The tail of an open round is not there for readers, and does not stay behind. */
static int test__open(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct ring_store_round round;
	struct model m;
	size_t len;

	TEST_ASSERT_VAL("model", model__init(&m, 1 << 20, 3));
	len = make_round(&m, 4000);
	TEST_ASSERT_VAL("append", !ring_store__append(m.rs, m.round, len));
	TEST_ASSERT_VAL("open", ring_store__is_open(m.rs));
	TEST_ASSERT_VAL("an open round is not seen", !ring_store__first(m.rs, &round));
	ring_store__close_round(m.rs, 1);
	TEST_ASSERT_VAL("a closed one is", is_consistent(&m, 1 << 20));
	ring_store__close_round(m.rs, 2);
	TEST_ASSERT_VAL("no round without a record", ring_store__stats(m.rs)->rounds == 1);
	model__exit(&m);
	return TEST_OK;
}

static int test__too_large(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	const struct ring_store_stats *stats;
	struct model m;
	u64 first;
	size_t len;

	TEST_ASSERT_VAL("model", model__init(&m, 256 * 1024, 5));
	stats = ring_store__stats(m.rs);
	store_round(&m, make_round(&m, 50000), 1);
	first = m.stored;
	len = make_round(&m, 7 * MAX_RECORD);
	TEST_ASSERT_VAL("it is too large", len > 256 * 1024);
	store_round(&m, len, 2);
	TEST_ASSERT_VAL("left out to the last byte", stats->refused_bytes == len);
	TEST_ASSERT_VAL("nothing of it is left", !stats->rounds && !stats->used);
	TEST_ASSERT_VAL("what was before has gone in order", m.evicted == first && !m.bad);

	/* Its records were never there; go on behind them. */
	m.evicted = m.stored;
	store_round(&m, make_round(&m, 50000), 3);
	TEST_ASSERT_VAL("the next one is kept", is_consistent(&m, 256 * 1024));
	TEST_ASSERT_VAL("and is alone", stats->rounds == 1);
	model__exit(&m);
	return TEST_OK;
}

/* Resident pages of shared memory: of the ring */
static size_t resident(void)
{
	char line[512];
	size_t kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "RssShmem: %zu kB", &kib) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kib * 1024;
}

static int test__memory(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	size_t size = (64 << 20) + 3 * page_size, budget = 8 << 20, most = 0;
	struct model m;

	TEST_ASSERT_VAL("model", model__init(&m, size, 5));
	ring_store__set_budget(m.rs, budget);
	for (int i = 0; i < 1500; i++) {
		store_round(&m, make_round(&m, 6 * MAX_RECORD), i);
		if (i % 50 == 0)
			most = max(most, resident());
	}
	TEST_ASSERT_VAL("it went around", ring_store__head(m.rs) > 2 * size);
	pr_debug("%zu KiB were resident of a budget of %zu KiB\n", most >> 10, budget >> 10);
	TEST_ASSERT_VAL("there is memory in use", most > budget / 2);
	TEST_ASSERT_VAL("not more than the budget, and a segment at each end",
			most <= budget + (1 << 20));
	TEST_ASSERT_VAL("as it says", most <= ring_store__memory(m.rs));
	model__exit(&m);
	return TEST_OK;
}

/* What the child of a dump has found. */
struct found {
	u64	bytes;
	u64	stolen;
	u64	last;		/* number of the last record */
	bool	bad;
};

static int find(union perf_event *event, void *data)
{
	struct found *found = data;
	u64 number = ((struct numbered *)event)->number;

	if (!is_record(event, number) || (found->bytes && number <= found->last))
		found->bad = true;
	found->bytes += event->header.size;
	found->last = number;
	return 0;
}

/* @go: to wait for before the walk; -1: do not wait, but take a pause after each round */
static void walk_forked(struct ring_store *rs, int go, struct found *found)
{
	struct ring_store_round round;
	char c;

	ring_store__forked(rs);
	if (go >= 0 && read(go, &c, 1) != 1)
		found->bad = true;
	ring_store__walk_last(rs);
	for (bool more = ring_store__first(rs, &round); more;
	     more = ring_store__next(rs, &round)) {
		if (ring_store__walk(rs, &round, find, found))
			found->bad = true;
		ring_store__passed(rs, &round);
		if (go < 0)
			usleep(1000);
	}
	found->stolen = ring_store__stolen(rs);
}

/* The disk was full behind the last round: read again. */
static void walk_twice(struct ring_store *rs, int go, int done, struct found *found)
{
	struct found first = {};
	char c;

	walk_forked(rs, -1, &first);
	if (write(done, "", 1) != 1 || first.stolen || read(go, &c, 1) != 1)
		found->bad = true;
	ring_store__walk_again(rs);
	walk_forked(rs, -1, found);
}

/* Store @bytes between the two walks of a child. */
static bool record_between_walks(struct model *m, u64 bytes, struct found *found)
{
	u64 end = ring_store__head(m->rs) + bytes;
	int go[2], done[2], status = -1;
	pid_t pid;
	char c;

	memset(found, 0, sizeof(*found));
	if (pipe(go) || pipe(done))
		return false;
	ring_store__fence(m->rs);
	pid = fork();
	if (!pid) {
		walk_twice(m->rs, go[0], done[1], found);
		_exit(0);
	}
	if (read(done[0], &c, 1) == 1)
		status = 0;
	while (ring_store__head(m->rs) < end)
		store_round(m, make_round(m, 4 * MAX_RECORD), 1);
	if (write(go[1], "", 1) != 1 || waitpid(pid, &status, 0) != pid)
		status = -1;
	ring_store__unfence(m->rs);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	return !status;
}

/* Store @bytes, in rounds, while a child walks what was there before. */
static bool record_beside_child(struct model *m, u64 bytes, bool wait, struct found *found)
{
	u64 end = ring_store__head(m->rs) + bytes;
	int go[2], status = -1;
	pid_t pid;

	memset(found, 0, sizeof(*found));
	if (pipe(go))
		return false;
	ring_store__fence(m->rs);
	pid = fork();
	if (!pid) {
		walk_forked(m->rs, wait ? go[0] : -1, found);
		_exit(0);
	}
	while (ring_store__head(m->rs) < end) {
		store_round(m, make_round(m, 4 * MAX_RECORD), 1);
		if (!wait)
			usleep(100);
	}
	status = write(go[1], "", 1) == 1 && waitpid(pid, &status, 0) == pid ? status : -1;
	ring_store__unfence(m->rs);
	close(go[0]);
	close(go[1]);
	return !status;
}

static int test__forked(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct found *found = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t size = 32 << 20, before = resident();
	struct model m;
	u64 bytes, last;

	TEST_ASSERT_VAL("model", found != MAP_FAILED && model__init(&m, size, 9));
	while (ring_store__head(m.rs) < 2 * size)
		store_round(&m, make_round(&m, 4 * MAX_RECORD), 1);

	bytes = ring_store__stats(m.rs)->bytes;
	last = m.stored - 1;
	TEST_ASSERT_VAL("child", record_beside_child(&m, size / 8, true, found));
	TEST_ASSERT_VAL("the reserve lasts: all is there", !found->bad && !found->stolen &&
			found->bytes == bytes && found->last == last);

	bytes = ring_store__stats(m.rs)->bytes;
	last = m.stored - 1;
	TEST_ASSERT_VAL("child", record_beside_child(&m, 3 * size, true, found));
	TEST_ASSERT_VAL("all but the reserve is taken, the oldest first", !found->bad &&
			found->bytes && found->bytes <= size / 4 && found->last == last &&
			found->bytes + found->stolen >= bytes);
	TEST_ASSERT_VAL("not more memory than a quarter more",
			resident() - before <= size + size / 4 + (2 << 20));

	bytes = ring_store__stats(m.rs)->bytes;
	last = m.stored - 1;
	TEST_ASSERT_VAL("child", record_beside_child(&m, 2 * size, false, found));
	pr_debug("%" PRIu64 " KiB were read, and %" PRIu64 " KiB taken\n", found->bytes >> 10,
		 found->stolen >> 10);
	TEST_ASSERT_VAL("what is there is whole, what is not is told", !found->bad &&
			found->bytes + found->stolen >= bytes &&
			(!found->bytes || found->last == last));

	ring_store__set_budget(m.rs, size / 2);
	TEST_ASSERT_VAL("then memory is given back",
			ring_store__memory(m.rs) <= size / 2 + (1 << 20));
	TEST_ASSERT_VAL("the recorder lost nothing", is_consistent(&m, size / 2));
	model__exit(&m);
	munmap(found, page_size);
	return TEST_OK;
}

static int test__read_again(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct found *found = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t size = 32 << 20;
	struct model m;
	u64 bytes, last;

	TEST_ASSERT_VAL("model", found != MAP_FAILED && model__init(&m, size, 9));
	while (ring_store__head(m.rs) < 2 * size)
		store_round(&m, make_round(&m, 4 * MAX_RECORD), 1);

	bytes = ring_store__stats(m.rs)->bytes;
	last = m.stored - 1;
	TEST_ASSERT_VAL("child", record_between_walks(&m, size / 8, found));
	pr_debug("%" PRIu64 " KiB were read again, and %" PRIu64 " KiB taken\n",
		 found->bytes >> 10, found->stolen >> 10);
	TEST_ASSERT_VAL("what has been overwritten is not read again", !found->bad &&
			found->stolen < bytes / 2 && found->bytes + found->stolen >= bytes &&
			found->bytes < bytes + (1 << 20) && found->last == last);

	bytes = ring_store__stats(m.rs)->bytes;
	last = m.stored - 1;
	TEST_ASSERT_VAL("child", record_between_walks(&m, 3 * size, found));
	TEST_ASSERT_VAL("nor if that is nearly all", !found->bad &&
			found->stolen <= bytes + (1 << 20) &&
			found->bytes + found->stolen >= bytes &&
			(!found->bytes || found->last == last));
	model__exit(&m);
	munmap(found, page_size);
	return TEST_OK;
}

static int test__broken(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	static const u16 sizes[] = { 0, 4, 12, 65528 };
	struct ring_store_round round;
	struct model m;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		TEST_ASSERT_VAL("model", model__init(&m, 1 << 20, 5));
		len = make_round(&m, 4000);
		((struct numbered *)m.round)->header.size = sizes[i];
		store_round(&m, len, 1);
		TEST_ASSERT_VAL("round", ring_store__first(m.rs, &round));
		TEST_ASSERT_VAL("no record", ring_store__walk(m.rs, &round, see, &m) == -EBADMSG);
		TEST_ASSERT_VAL("counted", ring_store__stats(m.rs)->broken_bytes == len);
		TEST_ASSERT_VAL("nothing was made up", !m.seen);
		ring_store__set_budget(m.rs, 0);
		TEST_ASSERT_VAL("it goes like any other", !ring_store__stats(m.rs)->used);
		model__exit(&m);
	}
	return TEST_OK;
}

/* A record has its time, and is there for readers when it is published. */
struct written {
	u64		time;
	u64		published;
};

#define MAX_WRITTEN	64

/* Return: how many marks promised too much; passes take and leave times of all sizes. */
static int broken_promises(u64 seed, int *nr_marks)
{
	u64 newest = 0, limit = 0, promised = 0, now = 1, scale;
	struct written pending[MAX_WRITTEN];
	struct round_group group = {};
	int nr = 0, broken = 0;

	random_seed(seed);
	scale = 8 * NSEC_PER_MSEC << random_number(8);
	*nr_marks = 0;
	for (int pass = 0; pass < 1000; pass++) {
		u64 begin = now + random_number(scale), end, read;
		bool found = false;

		end = begin + random_number(seed % 16 ? scale / 8 + 1 : 2 * FLIGHT_ROUND_TIME);
		for (int i = 0; i < 4 && nr < MAX_WRITTEN; i++) {
			struct written *w = &pending[nr++];

			w->time = now + random_number(end - now + 1);
			w->published = w->time;
			if (!random_number(4))
				w->published += random_number(FLIGHT_ROUND_TIME);
		}
		for (int i = nr; i-- > 0;) {
			/* Buffer by buffer. */
			read = begin + random_number(end - begin + 1);
			if (pending[i].published > read)
				continue;
			found = true;
			broken += pending[i].time <= promised;
			newest = max(newest, pending[i].time);
			pending[i] = pending[--nr];
		}
		now = end + 1;
		if (!found || !round_group__ends(&group, end))
			continue;
		promised = limit;
		limit = newest;
		++*nr_marks;
	}
	return broken;
}

static int test__group(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct round_group group = {};
	int nr_marks;

	for (u64 seed = 1; seed < 500; seed++) {
		TEST_ASSERT_VAL("no more than can be kept", !broken_promises(seed, &nr_marks));
		TEST_ASSERT_VAL("that is something", nr_marks > 2);
	}
	TEST_ASSERT_VAL("the first one promises nothing", round_group__ends(&group, 1));
	for (int i = 1; i < 10; i++)
		TEST_ASSERT_VAL("too soon", !round_group__ends(&group, 1 + i));
	TEST_ASSERT_VAL("it may have begun too soon",
			!round_group__ends(&group, 1 + FLIGHT_ROUND_TIME));
	TEST_ASSERT_VAL("it has not", round_group__ends(&group, 2 + FLIGHT_ROUND_TIME));
	return TEST_OK;
}

static struct test_case tests__flight_ring_store[] = {
	TEST_CASE("Ring store: holds the newest rounds, whole and in order", newest),
	TEST_CASE("Ring store: holds more of them when they are compressed", packed),
	TEST_CASE("Ring store: never exceeds a budget that changes", budget),
	TEST_CASE("Ring store: drops rounds by age", max_age),
	TEST_CASE("Ring store: shows closed rounds only", open),
	TEST_CASE("Ring store: leaves out a round that is too large", too_large),
	TEST_CASE("Ring store: gives memory back", memory),
	TEST_CASE("Ring store: is read by a child while it is written", forked),
	TEST_CASE("Ring store: is read once more by a child", read_again),
	TEST_CASE("Ring store: survives what is no record", broken),
	TEST_CASE("Ring store: promises what a writer that is held up keeps", group),
	{ .name = NULL, }
};

struct test_suite suite__flight_ring_store = {
	.desc = "Flight recorder: ring store",
	.test_cases = tests__flight_ring_store,
};
