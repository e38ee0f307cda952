// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of persistent events: names, the order of a session's events, and what its
 * buffers count.
 * What takes files and processes is in tools/testing/selftests/perf_events/.
 */
#include <kunit/test.h>

#include "../internal.h"

/* A word; also one that perf's event parser reserves: that is left to the tool. */
static void good_names(struct kunit *test)
{
	static const char * const names[] = {
		"a", "_", "blackbox", "black-box_2", "event", "events", "event-1", "event1a",
		"r", "rx1", "r-1a", "L3", "Z9-", "_-_", "period", "cycles", "r1a8", "LLC-loads",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_TRUE_MSG(test, perf_persistent_name_valid(names[i]), "%s", names[i]);
}

/* No word, or a name that the kernel may give to another session. */
static void bad_names(struct kunit *test)
{
	static const char * const names[] = {
		"", "1", "-", "1a", "-a", "a/b", "a b", "a.b", ".", "..", "a!", "a,b", "a=", "\x80",
		"a\x80", "a\n", "a:b", "a@b", "event0", "event1", "event18446744073709551616",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_FALSE_MSG(test, perf_persistent_name_valid(names[i]), "%s", names[i]);
}

/*
 * The events of one CPU follow each other, those of a task come first, and no key is
 * that of two events.
 */
static void keys(struct kunit *test)
{
	int cpu;

	KUNIT_EXPECT_EQ(test, perf_persistent_key(-1, 0), 0UL);
	for_each_possible_cpu(cpu) {
		KUNIT_EXPECT_LT(test, perf_persistent_key(-1, PERF_PERSISTENT_INDEX_MAX),
				perf_persistent_key(cpu, 0));
		KUNIT_EXPECT_LT(test, perf_persistent_key(cpu, 0), perf_persistent_key(cpu, 1));
		KUNIT_EXPECT_EQ(test, perf_persistent_key(cpu, PERF_PERSISTENT_INDEX_MAX) + 1,
				perf_persistent_key(cpu + 1, 0));
	}
}

static void store(struct kunit *test, struct perf_persistent_event *pe)
{
	unsigned long key = perf_persistent_key(pe->cpu, pe->index);

	KUNIT_ASSERT_FALSE(test, xa_is_err(xa_store(&pe->session->events, key, pe, GFP_KERNEL)));
}

static void erase(struct perf_persistent_event *pe)
{
	xa_erase(&pe->session->events, perf_persistent_key(pe->cpu, pe->index));
}

/* A buffer goes by the lowest index of its own CPU that writes to it. */
static void buffer_index(struct kunit *test)
{
	struct perf_persistent_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct perf_buffer *rbs = kunit_kcalloc(test, 2, sizeof(*rbs), GFP_KERNEL);
	struct perf_persistent_event events[] = {
		{ .session = s, .rb = &rbs[0], .cpu = 0, .index = 0 },
		{ .session = s, .rb = &rbs[1], .cpu = 0, .index = 1 },
		{ .session = s, .rb = &rbs[0], .cpu = 0, .index = 2 },
		{ .session = s, .rb = &rbs[1], .cpu = 1, .index = 0 },
	};
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_NOT_NULL(test, rbs);
	xa_init(&s->events);
	guard(mutex)(&perf_persistent_lock);

	for (i = 0; i < ARRAY_SIZE(events); i++)
		store(test, &events[i]);
	KUNIT_EXPECT_EQ(test, perf_persistent_buffer_index(&events[0]), 0);
	KUNIT_EXPECT_EQ(test, perf_persistent_buffer_index(&events[1]), 1);
	KUNIT_EXPECT_EQ(test, perf_persistent_buffer_index(&events[2]), 0);
	KUNIT_EXPECT_EQ(test, perf_persistent_buffer_index(&events[3]), 0);

	/* The one that brought it was claimed. */
	erase(&events[0]);
	KUNIT_EXPECT_EQ(test, perf_persistent_buffer_index(&events[2]), 2);

	for (i = 1; i < ARRAY_SIZE(events); i++)
		erase(&events[i]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&s->events));
}

/* A walk sees each buffer once, the next one again. */
static void walks(struct kunit *test)
{
	struct perf_buffer *rbs = kunit_kcalloc(test, 2, sizeof(*rbs), GFP_KERNEL);
	unsigned long walk;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, rbs);
	guard(mutex)(&perf_persistent_lock);

	for (i = 0; i < 3; i++) {
		walk = perf_persistent_start_walk();
		KUNIT_EXPECT_TRUE(test, perf_persistent_first_visit(&rbs[0], walk));
		KUNIT_EXPECT_FALSE(test, perf_persistent_first_visit(&rbs[0], walk));
		KUNIT_EXPECT_TRUE(test, perf_persistent_first_visit(&rbs[1], walk));
		KUNIT_EXPECT_FALSE(test, perf_persistent_first_visit(&rbs[0], walk));
	}
}

/* Wakeups are counted for the readers of a session, at no cost for any other buffer. */
static void wakeups(struct kunit *test)
{
	struct perf_buffer *rb = kunit_kzalloc(test, sizeof(*rb), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, rb);
	spin_lock_init(&rb->event_lock);
	perf_persistent_wakeup(rb);
	KUNIT_EXPECT_EQ(test, atomic_read(&rb->wakeups), 0);
	KUNIT_ASSERT_EQ(test, perf_rb_seal(rb), 0);
	perf_persistent_wakeup(rb);
	KUNIT_EXPECT_EQ(test, atomic_read(&rb->wakeups), 1);
	KUNIT_EXPECT_FALSE(test, perf_rb_unseal(rb));
}

/* Indices are counted on each CPU, from 0. */
static void nr_events(struct kunit *test)
{
	struct perf_persistent_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	xa_init(&s->next_index);
	guard(mutex)(&perf_persistent_lock);

	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 0), 0);
	xa_store(&s->next_index, 0 + 1, xa_mk_value(2), GFP_KERNEL);
	xa_store(&s->next_index, -1 + 1, xa_mk_value(0), GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 0), 2);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, -1), 0);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 1), 0);
	xa_destroy(&s->next_index);
}

static struct kunit_case perf_persistent_cases[] = {
	KUNIT_CASE(good_names),
	KUNIT_CASE(bad_names),
	KUNIT_CASE(keys),
	KUNIT_CASE(buffer_index),
	KUNIT_CASE(walks),
	KUNIT_CASE(wakeups),
	KUNIT_CASE(nr_events),
	{}
};

static struct kunit_suite perf_persistent_suite = {
	.name		= "perf_persistent",
	.test_cases	= perf_persistent_cases,
};

kunit_test_suite(perf_persistent_suite);
