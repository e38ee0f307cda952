// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of persistent events: names, and the order of a session's events.
 * What takes files and processes is in tools/testing/selftests/perf_events/.
 */
#include <kunit/test.h>

#include "../persistent_types.h"

/* Names that sysfs and perf's event parser take for what they are. */
static void good_names(struct kunit *test)
{
	static const char * const names[] = {
		"a", "_", "blackbox", "black-box_2", "event", "events", "event-1", "event1a",
		"r", "rx1", "r-1a", "periods", "config4", "L3", "L2cache", "branchy", "ids",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_TRUE_MSG(test, perf_persistent_name_valid(names[i]), "%s", names[i]);
}

/* Names that are no word, or are another's. */
static void bad_names(struct kunit *test)
{
	static const char * const names[] = {
		"", "1", "-", "1a", "-a", "a/b", "a b", "a.b", ".", "..", "a!", "a,b", "a=", "\x80",
		"event0", "event1", "event18446744073709551616", "period", "freq", "id", "index",
		"name", "config", "config3", "overwrite", "no-inherit", "time", "cycles",
		"r0", "rff", "race", "L2", "LLC-loads", "branch", "branch-misses", "iTLB-load",
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

/* Ranges of session->events give a CPU's events alone, and see none that is reserved. */
static void ranges(struct kunit *test)
{
	struct perf_persistent_session *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	static struct perf_persistent_event events[3];

	KUNIT_ASSERT_NOT_NULL(test, s);
	xa_init(&s->events);
	guard(mutex)(&perf_persistent_lock);

	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 0), 0);
	events[1].index = 1;
	xa_store(&s->events, perf_persistent_key(0, 0), &events[0], GFP_KERNEL);
	xa_store(&s->events, perf_persistent_key(0, 1), &events[1], GFP_KERNEL);
	xa_store(&s->events, perf_persistent_key(1, 0), &events[2], GFP_KERNEL);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 0), 2);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 1), 1);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 2), 0);

	/* An index that was claimed is not given away while a higher one is in use. */
	xa_erase(&s->events, perf_persistent_key(0, 0));
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 0), 2);

	/* One that is about to be given away is not there yet. */
	KUNIT_ASSERT_EQ(test, xa_reserve(&s->events, perf_persistent_key(2, 0), GFP_KERNEL), 0);
	KUNIT_EXPECT_EQ(test, perf_persistent_nr_events(s, 2), 0);
	xa_release(&s->events, perf_persistent_key(2, 0));

	xa_erase(&s->events, perf_persistent_key(0, 1));
	xa_erase(&s->events, perf_persistent_key(1, 0));
	KUNIT_EXPECT_TRUE(test, xa_empty(&s->events));
}

static struct kunit_case perf_persistent_cases[] = {
	KUNIT_CASE(good_names),
	KUNIT_CASE(bad_names),
	KUNIT_CASE(keys),
	KUNIT_CASE(ranges),
	{}
};

static struct kunit_suite perf_persistent_suite = {
	.name		= "perf_persistent",
	.test_cases	= perf_persistent_cases,
};

kunit_test_suite(perf_persistent_suite);
