// SPDX-License-Identifier: GPL-2.0
/* Records of several buffers reach perf top in the order of time. */
#include "debug.h"
#include "event.h"
#include "tests.h"
#include "util/top.h"
#include "util/top-pass.h"
#include <linux/kernel.h>
#include <stdlib.h>

#define MAX_DELIVERED	16

static u64 delivered[MAX_DELIVERED];
static unsigned int nr_delivered;

static int note(struct ordered_events *pass __maybe_unused, struct ordered_event *qevent)
{
	if (nr_delivered == MAX_DELIVERED)
		return -1;
	/* What was copied is what counts: the caller's record has changed since. */
	delivered[nr_delivered++] = qevent->event->fork.time;
	return 0;
}

/* One pass: its records in the order in which they are read, 0 at the end. */
static int read_pass(struct perf_top *top, const u64 *times)
{
	union perf_event event = {
		.fork.header = { .type = PERF_RECORD_FORK, .size = sizeof(event.fork) },
	};

	for (; *times; times++) {
		event.fork.time = *times;
		if (top_pass__add(&event, *times, top))
			return -1;
	}
	top_pass__end(top);
	return 0;
}

static int test__top_pass(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	static const struct {
		const char *what;
		u64 read[8];
		u64 want[8];
	} passes[] = {
		{ "the first: it is not known what is older", { 10, 40, 20, 30 }, { } },
		/* 35 was written behind the reader, who went on to the buffer with the 40. */
		{ "one that fills in", { 35, 60, 50 }, { 10, 20, 30, 35, 40 } },
		{ "one with nothing in it", { }, { 50, 60 } },
		{ "one with nothing in it and nothing that waits", { }, { } },
		{ "a fork that is read behind the maps of its task", { 80, 70 }, { } },
		{ "the same, one pass later", { 90 }, { 70, 80 } },
		{ "the last", { }, { 90 } },
	};
	struct perf_top *top = calloc(1, sizeof(*top));
	int ret = TEST_OK;

	TEST_ASSERT_VAL("memory", top);
	top_pass__init(top, note);
	for (size_t i = 0; i < ARRAY_SIZE(passes) && ret == TEST_OK; i++) {
		unsigned int n;

		nr_delivered = 0;
		if (read_pass(top, passes[i].read))
			ret = TEST_FAIL;
		for (n = 0; passes[i].want[n]; n++)
			if (n >= nr_delivered || delivered[n] != passes[i].want[n])
				ret = TEST_FAIL;
		if (n != nr_delivered)
			ret = TEST_FAIL;
		if (ret == TEST_FAIL)
			pr_debug("%s: %u records\n", passes[i].what, nr_delivered);
		for (n = 0; ret == TEST_FAIL && n < nr_delivered; n++)
			pr_debug("  %llu\n", (unsigned long long)delivered[n]);
	}
	top_pass__exit(top);
	free(top);
	return ret;
}

DEFINE_SUITE("Order of the records of perf top", top_pass);
