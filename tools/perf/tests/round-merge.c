// SPDX-License-Identifier: GPL-2.0
/*
 * Properties of ordering events:
 * - whatever comes in, entries are taken in the order of (time, rank, arrival);
 * - ordered-events delivers what a list does that is kept sorted by inserting
 *   each event after all that are not newer, whichever way it is flushed, when
 *   deliver() fails, and when the session is interrupted;
 * - what deliver() queues itself is delivered at its time;
 * - with an allocation limit no event is lost, none comes twice, and the limit
 *   is never exceeded;
 * - an entry takes at most 48 bytes, which is what a list node took, unless runs
 *   are taken but for a straggler each.
 *
 * The expected order is found by the plainest way there is, a search for the
 * first one of all that wait.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include "util/debug.h"
#include "util/event.h"
#include "util/ordered-events.h"
#include "util/round-merge.h"
#include "util/session.h"
#include "random-number.h"
#include "round-merge-reference.h"
#include "tests.h"

#define MAX_EVENTS	8192

/* Times as they come from buffers that are read in passes, and from nowhere. */
enum pattern {
	PATTERN__FORWARD,
	PATTERN__BACKWARD,
	PATTERN__RANDOM,
	PATTERN__MIXED,
	NR_PATTERNS
};

struct source {
	enum pattern	pattern;
	u64		time;
	u64		left;
	u64		base;
	u64		step;
	unsigned int	stretch;
	unsigned int	disorder;
	bool		down;
};

static void source__init(struct source *src, enum pattern pattern)
{
	*src = (struct source) {
		.pattern  = pattern,
		.base	  = 100000,
		/* 0: whole stretches of equal times */
		.step	  = random_number(4),
		.stretch  = 1 + random_number(random_number(2) ? 400 : 20),
		.disorder = random_number(2) ? random_number(200) : 0,
	};
}

static u64 source__next(struct source *src)
{
	u64 time;

	if (src->pattern == PATTERN__RANDOM)
		return 1 + random_number(1 + src->stretch * 10);

	if (!src->left) {
		src->left = 1 + random_number(src->stretch);
		src->base += random_number(1 + src->stretch / 4);
		src->time = src->base + random_number(10);
		src->down = src->pattern == PATTERN__BACKWARD ||
			    (src->pattern == PATTERN__MIXED && random_number(2));
	}
	src->left--;

	time = src->time;
	if (src->disorder && !random_number(1000 / src->disorder))
		time += random_number(41) - 20;

	if (src->down)
		src->time -= random_number(src->step + 1);
	else
		src->time += random_number(src->step + 1);
	return time;
}

static bool merge__takes_first(struct round_merge *rm, struct reference *ref)
{
	const struct round_merge_entry *entry;
	const struct reference_event *first;
	const char *source;
	bool ok;

	entry = round_merge__peek(rm);
	if (!ref->nr)
		return !entry;
	if (!entry)
		return false;

	first = &ref->events[reference__first(ref)];
	source = round_merge__source(rm);
	ok = entry->time == first->time && entry->cookie == first->serial &&
	     entry->item == (void *)(uintptr_t)~first->serial && source == (char *)first->rank;
	if (!ok) {
		pr_debug("took %llu at %llu, not %llu at %llu\n",
			 (unsigned long long)entry->cookie, (unsigned long long)entry->time,
			 (unsigned long long)first->serial, (unsigned long long)first->time);
	}
	reference__remove(ref, first - ref->events);
	round_merge__pop(rm);
	return ok;
}

static bool merge_in_order(u64 seed)
{
	struct reference ref = { .events = calloc(MAX_EVENTS, sizeof(*ref.events)) };
	unsigned int max, nr_ranks, take_every;
	struct round_merge rm;
	struct source src;
	u64 serial = 0;
	bool ok = ref.events;

	random_seed(seed);
	source__init(&src, seed % NR_PATTERNS);
	max = 1 + random_number(random_number(20) ? 600 : MAX_EVENTS / 2);
	nr_ranks = random_number(3) ? 1 : 3;
	take_every = random_number(3) ? 1 + random_number(100) : max;

	round_merge__init(&rm);
	while (ok && serial < max) {
		u64 time = source__next(&src);
		u64 rank = random_number(20) ? rm.rank : random_number(nr_ranks);

		round_merge__set_rank(&rm, rank);
		ok = !round_merge__add(&rm, time, (void *)(uintptr_t)~serial, serial,
				       (char *)rank);
		reference__add(&ref, time, rank, serial++);

		while (ok && ref.nr && !random_number(take_every)) {
			unsigned int nr = random_number(ref.nr + 1);

			while (ok && nr--)
				ok = merge__takes_first(&rm, &ref);
		}
	}
	while (ok && ref.nr)
		ok = merge__takes_first(&rm, &ref);
	ok = ok && merge__takes_first(&rm, &ref) && !rm.nr && !rm.nr_runs && !rm.nr_chains;

	round_merge__exit(&rm);
	zfree(&ref.events);
	if (!ok)
		pr_debug("seed %llu\n", (unsigned long long)seed);
	return ok;
}

static int test__merge_order(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 seed;

	for (seed = 0; seed < 3000; seed++)
		TEST_ASSERT_VAL("entries are taken in order", merge_in_order(seed));
	return TEST_OK;
}

/* The rules of ordered-events, for a list that is kept sorted. */
struct model {
	struct ordered_events	oe;
	struct reference	ref;
	u64			next_flush;
	u64			max_timestamp;
	u64			last_timestamp;
	u64			last_flush;
	u32			nr_unordered;
	u64			nr_delivered;
	int			fail_in;
	bool			ok;
};

struct model_event {
	struct perf_event_header	header;
	u64				serial;
};

static int model__deliver(struct ordered_events *oe, struct ordered_event *event)
{
	struct model *m = container_of(oe, struct model, oe);
	struct model_event *e = (struct model_event *)event->event;
	const struct reference_event *first = NULL;

	if (m->ref.nr)
		first = &m->ref.events[reference__first(&m->ref)];

	m->ok = m->ok && first && first->serial == e->serial && first->time == event->timestamp &&
		event->file_offset == e->serial * 8 && !strcmp(event->file_path, "path") &&
		event->timestamp <= m->next_flush;
	if (!m->ok)
		return -EINVAL;
	if (m->fail_in && !--m->fail_in)
		return -EIO;

	m->last_flush = event->timestamp;
	m->nr_delivered++;
	reference__remove(&m->ref, first - m->ref.events);
	return 0;
}

static void model__init(struct model *m, struct reference_event *events)
{
	*m = (struct model) { .ref.events = events, .ok = true };
	ordered_events__init(&m->oe, model__deliver, m);
}

static void model__queue(struct model *m, struct model_event *e, u64 time, u64 serial)
{
	struct model_event copy = { .header.size = sizeof(copy), .serial = serial };
	union perf_event *event = (union perf_event *)(m->oe.copy_on_queue ? &copy : e);

	*e = copy;
	m->ok = m->ok && !ordered_events__queue(&m->oe, event, time, serial * 8, "path");
	copy.serial = ~0ULL;

	m->nr_unordered += time < m->last_flush;
	if (!m->ref.nr || time >= m->max_timestamp)
		m->max_timestamp = time;
	m->last_timestamp = time;
	reference__add(&m->ref, time, 0, serial);
}

static void model__flush(struct model *m, enum oe_flush how, u64 time)
{
	unsigned int i, expected = 0, nr = m->ref.nr;
	u64 first = nr ? m->ref.events[reference__first(&m->ref)].time : 0;
	int err, expected_err = 0;

	m->ok = m->ok && ordered_events__first_time(&m->oe) == first;
	if (!m->ok)
		return;

	if (nr && (how == OE_FLUSH__FINAL || how == OE_FLUSH__TOP))
		m->next_flush = ULLONG_MAX;
	else if (nr && how == OE_FLUSH__HALF)
		m->next_flush = first + (m->last_timestamp - first) / 2;
	else if (nr && how == OE_FLUSH__TIME)
		m->next_flush = time;

	for (i = 0; i < nr; i++)
		expected += m->ref.events[i].time <= m->next_flush;
	if (session_done())
		expected = 0;
	if (m->fail_in && expected >= (unsigned int)m->fail_in) {
		expected = m->fail_in - 1;
		expected_err = -EIO;
	}

	if (how == OE_FLUSH__TIME)
		err = ordered_events__flush_time(&m->oe, time);
	else
		err = ordered_events__flush(&m->oe, how);

	m->ok = m->ok && err == expected_err && nr - m->ref.nr == expected;
	m->fail_in = 0;
	if (err)
		return;

	if (!session_done() && m->last_timestamp <= m->next_flush)
		m->last_timestamp = m->max_timestamp;
	if (nr && how == OE_FLUSH__ROUND)
		m->next_flush = m->max_timestamp;
}

static void model__check(struct model *m)
{
	u64 first = m->ref.nr ? m->ref.events[reference__first(&m->ref)].time : 0;

	m->ok = m->ok && m->oe.nr_events == m->ref.nr &&
		m->oe.nr_unordered_events == m->nr_unordered &&
		ordered_events__last_flush_time(&m->oe) == m->last_flush &&
		ordered_events__first_time(&m->oe) == first;
}

static void model__random_flush(struct model *m, u64 time)
{
	static const enum oe_flush hows[] = {
		OE_FLUSH__ROUND, OE_FLUSH__ROUND, OE_FLUSH__ROUND, OE_FLUSH__ROUND,
		OE_FLUSH__HALF, OE_FLUSH__TIME, OE_FLUSH__TOP, OE_FLUSH__FINAL,
	};
	bool interrupt = !random_number(20);

	m->fail_in = random_number(10) ? 0 : 1 + random_number(50);
	if (interrupt)
		session_done = 1;
	model__flush(m, hows[random_number(ARRAY_SIZE(hows))], time);
	session_done = 0;
	model__check(m);
}

static bool events_in_order(u64 seed)
{
	struct reference_event *events = calloc(MAX_EVENTS, sizeof(*events));
	struct model_event *storage = calloc(MAX_EVENTS, sizeof(*storage));
	unsigned int max, pass;
	struct source src;
	struct model m;
	u64 serial = 0;
	bool ok;

	random_seed(seed);
	source__init(&src, seed % NR_PATTERNS);
	max = 1 + random_number(random_number(20) ? 600 : MAX_EVENTS / 4);
	pass = 1 + random_number(random_number(2) ? 10 : 300);

	model__init(&m, events);
	m.ok = events && storage;
	ordered_events__set_copy_on_queue(&m.oe, random_number(2));

	while (m.ok && serial < max) {
		u64 time = source__next(&src);

		/* Now and then one that should have come long ago. */
		if (!random_number(100))
			time = 1 + time / 2;
		model__queue(&m, &storage[serial], time, serial);
		serial++;
		if (!random_number(pass))
			model__random_flush(&m, time - random_number(time));
	}

	/* Half of the time some are still waiting when all is freed. */
	if (m.ok && random_number(2)) {
		model__flush(&m, OE_FLUSH__FINAL, 0);
		model__check(&m);
		m.ok = m.ok && m.nr_delivered == max;
	}

	ordered_events__reinit(&m.oe);
	ok = m.ok && !m.oe.nr_events && !m.oe.merge.bytes && !m.oe.last_flush &&
	     !ordered_events__first_time(&m.oe) && m.oe.deliver == model__deliver;
	ordered_events__free(&m.oe);
	zfree(&events);
	zfree(&storage);
	if (!ok)
		pr_debug("seed %llu\n", (unsigned long long)seed);
	return ok;
}

static int test__events_order(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 seed;

	for (seed = 0; seed < 4000; seed++)
		TEST_ASSERT_VAL("events are delivered as by a sorted list", events_in_order(seed));
	return TEST_OK;
}

static int test__events_timeless(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model_event e = { .header.size = sizeof(e) };
	union perf_event *event = (union perf_event *)&e;
	struct model m;

	model__init(&m, NULL);
	TEST_ASSERT_EQUAL("no time", ordered_events__queue(&m.oe, event, 0, 0, NULL), -ETIME);
	TEST_ASSERT_EQUAL("unknown time", ordered_events__queue(&m.oe, event, ~0ULL, 0, NULL),
			  -ETIME);
	TEST_ASSERT_VAL("nothing is queued", !m.oe.nr_events && !m.oe.merge.bytes);
	return TEST_OK;
}

/* With a limit the order depends on it; that nothing is lost does not. */
struct limited {
	struct ordered_events	oe;
	u8			*seen;
	u64			nr_seen;
	bool			ok;
};

static int limited__deliver(struct ordered_events *oe, struct ordered_event *event)
{
	struct limited *l = container_of(oe, struct limited, oe);
	struct model_event *e = (struct model_event *)event->event;

	l->ok = l->ok && !l->seen[e->serial]++;
	l->nr_seen++;
	return 0;
}

static bool events_within_limit(u64 seed)
{
	const unsigned int max = 40000;
	struct limited l = { .seen = calloc(max, 1), .ok = true };
	struct model_event *storage = calloc(max, sizeof(*storage));
	struct source src;
	u64 i, limit;
	bool copy;

	random_seed(seed);
	source__init(&src, seed % NR_PATTERNS);
	limit = 66000 + random_number(1 << 20);
	copy = random_number(2);

	ordered_events__init(&l.oe, limited__deliver, NULL);
	ordered_events__set_alloc_size(&l.oe, limit);
	ordered_events__set_copy_on_queue(&l.oe, copy);
	l.ok = l.seen && storage;

	for (i = 0; l.ok && i < max; i++) {
		struct model_event e = { .header.size = sizeof(e), .serial = i };
		u64 time = source__next(&src);

		/* Some stay for long, so that what is left gets sparse. */
		if (!random_number(50))
			time += 1ULL << 40;

		storage[i] = e;
		l.ok = !ordered_events__queue(&l.oe, (union perf_event *)(copy ? &e : &storage[i]),
					      time, 0, NULL);
		/* A copy is made if there is room left, not if there is enough. */
		l.ok = l.ok && l.oe.merge.bytes < limit + (copy ? sizeof(e) : 0);
	}

	l.ok = l.ok && !ordered_events__flush(&l.oe, OE_FLUSH__FINAL) && l.nr_seen == max;
	ordered_events__free(&l.oe);
	zfree(&l.seen);
	zfree(&storage);
	if (!l.ok)
		pr_debug("seed %llu at %llu\n", (unsigned long long)seed, (unsigned long long)i);
	return l.ok;
}

static int test__events_limit(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	struct model_event e = { .header.size = sizeof(e) };
	struct model m;
	u64 seed;

	for (seed = 0; seed < 32; seed++)
		TEST_ASSERT_VAL("none is lost, none comes twice", events_within_limit(seed));

	model__init(&m, NULL);
	ordered_events__set_alloc_size(&m.oe, 100);
	TEST_ASSERT_EQUAL("too low a limit is an error",
			  ordered_events__queue(&m.oe, (union perf_event *)&e, 1, 0, NULL),
			  -ENOMEM);
	ordered_events__free(&m.oe);
	return TEST_OK;
}

/* A decoder queues what it finds in the event that is being delivered. */
struct decoder {
	struct ordered_events	oe;
	u64			nr_queued;
	u64			max_queued;
	u64			nr_seen;
	u64			last_time;
	u64			last_serial;
	bool			ok;
};

static void decoder__queue(struct decoder *d, u64 time)
{
	struct model_event e = { .header.size = sizeof(e), .serial = d->nr_queued++ };

	d->ok = d->ok && !ordered_events__queue(&d->oe, (union perf_event *)&e, time, 0, NULL);
}

static int decoder__deliver(struct ordered_events *oe, struct ordered_event *event)
{
	struct decoder *d = container_of(oe, struct decoder, oe);
	struct model_event *e = (struct model_event *)event->event;
	u64 i;

	d->ok = d->ok && (event->timestamp > d->last_time ||
			  (event->timestamp == d->last_time && e->serial > d->last_serial));
	d->last_time = event->timestamp;
	d->last_serial = e->serial;
	d->nr_seen++;

	for (i = random_number(4); i && d->nr_queued < d->max_queued; i--)
		decoder__queue(d, event->timestamp + random_number(100));
	return 0;
}

static bool decoded_in_order(u64 seed)
{
	struct decoder d = { .max_queued = 5000, .ok = true };
	struct source src;
	u64 i;

	random_seed(seed);
	source__init(&src, seed % NR_PATTERNS);
	ordered_events__init(&d.oe, decoder__deliver, NULL);
	ordered_events__set_copy_on_queue(&d.oe, true);

	for (i = random_number(1000) + 1; i; i--)
		decoder__queue(&d, source__next(&src));

	d.ok = d.ok && !ordered_events__flush(&d.oe, OE_FLUSH__FINAL) &&
	       d.nr_seen == d.nr_queued && !d.oe.nr_events && !d.oe.nr_unordered_events;
	ordered_events__free(&d.oe);
	if (!d.ok)
		pr_debug("seed %llu\n", (unsigned long long)seed);
	return d.ok;
}

static int test__events_decoded(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 seed;

	for (seed = 0; seed < 400; seed++)
		TEST_ASSERT_VAL("what deliver() queues has its turn", decoded_in_order(seed));
	return TEST_OK;
}

static bool merge_holds_little(u64 seed)
{
	const u64 max = 100000, fixed = 6 * 32 * 1024;
	u64 i, time, most = 0, most_runs = 0;
	struct round_merge rm;
	bool ok = true, stragglers;
	struct source src;

	random_seed(seed);
	source__init(&src, seed % NR_PATTERNS);
	stragglers = seed / NR_PATTERNS % 2;
	round_merge__init(&rm);

	for (i = 0; ok && i < max; i++) {
		time = source__next(&src);
		/* Some stay to the end, each one alone of what came with it. */
		if (stragglers && !random_number(100))
			time += 1ULL << 40;
		ok = !round_merge__add(&rm, time, NULL, i, NULL);
		while (i % 500 == 0 && rm.nr > 5000 + i / 100 && round_merge__peek(&rm))
			round_merge__pop(&rm);
		most = max(most, rm.nr);
		most_runs = max_t(u64, most_runs, rm.nr_runs);
		ok = ok && rm.bytes <= most * 36 + most_runs * 200 + fixed;
		if (src.pattern != PATTERN__RANDOM && !stragglers)
			ok = ok && rm.bytes <= most * 48 + fixed;
	}

	if (!ok)
		pr_debug("seed %llu: %llu bytes for %llu\n", (unsigned long long)seed,
			 (unsigned long long)rm.bytes, (unsigned long long)most);
	round_merge__exit(&rm);
	return ok;
}

static int test__merge_memory(struct test_suite *t __maybe_unused, int subtest __maybe_unused)
{
	u64 seed;

	for (seed = 0; seed < 40; seed++)
		TEST_ASSERT_VAL("at most 48 bytes for an entry", merge_holds_little(seed));
	return TEST_OK;
}

static struct test_case tests__round_merge[] = {
	TEST_CASE("Round merge: time, rank and arrival order entries", merge_order),
	TEST_CASE("Round merge: events come as from a sorted list", events_order),
	TEST_CASE("Round merge: events without a time are refused", events_timeless),
	TEST_CASE("Round merge: events queued by deliver() have their turn", events_decoded),
	TEST_CASE("Round merge: no event is lost at a memory limit", events_limit),
	TEST_CASE("Round merge: memory is at most 48 bytes an entry", merge_memory),
	{ .name = NULL, }
};

struct test_suite suite__round_merge = {
	.desc = "Round merge",
	.test_cases = tests__round_merge,
};
