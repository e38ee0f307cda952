// SPDX-License-Identifier: GPL-2.0
/*
 * Records that lie, as a damaged recording has them: nothing is read before the
 * record, and nothing is written beyond what it goes into.
 */
#include "base-api.h"
#include "tests.h"
#include "debug.h"
#include "event.h"
#include "evsel.h"
#include "sample.h"
#include "util.h"
#include "util/build-id.h"
#include <internal/lib.h>
#include <errno.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

#define ID_SAMPLE_WORDS		6

/* All that a sample_id can have */
#define ID_SAMPLE_TYPE		(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | \
				 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static int check_sizes(struct evsel *evsel, union perf_event *event)
{
	u16 least = sizeof(event->header) + ID_SAMPLE_WORDS * sizeof(u64);
	struct perf_sample sample;
	u64 time;

	perf_sample__init(&sample, /*all=*/true);
	event->header.type = PERF_RECORD_EXIT;
	for (u16 size = sizeof(event->header); size < least; size += sizeof(u64)) {
		event->header.size = size;
		TEST_ASSERT_EQUAL("sample of a short record", -EFAULT,
				  evsel__parse_sample(evsel, event, &sample));
		TEST_ASSERT_EQUAL("time of a short record", -1,
				  evsel__parse_sample_timestamp(evsel, event, &time));
	}

	event->header.size = least;
	for (u64 i = 0; i < ID_SAMPLE_WORDS; i++)
		event->sample.array[i] = i + 1;
	TEST_ASSERT_EQUAL("sample of a record", 0, evsel__parse_sample(evsel, event, &sample));
	TEST_ASSERT_EQUAL("its thread", 1, (int)sample.pid);
	TEST_ASSERT_EQUAL("its time", 2, (int)sample.time);
	TEST_ASSERT_EQUAL("its CPU", 5, (int)sample.cpu);
	TEST_ASSERT_EQUAL("its id", 3, (int)sample.id);
	perf_sample__exit(&sample);
	return TEST_OK;
}

/* No room for the sample_id, and nothing that may be read in front of it */
static int test__short_record(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.sample_type	= ID_SAMPLE_TYPE,
		.sample_id_all	= 1,
	};
	struct evsel *evsel = evsel__new(&attr);
	int ret = TEST_FAIL;
	void *pages;

	if (!evsel)
		return TEST_FAIL;

	pages = mmap(NULL, 2 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		goto out_delete;
	if (!mprotect(pages + page_size, page_size, PROT_READ | PROT_WRITE))
		ret = check_sizes(evsel, pages + page_size);

	munmap(pages, 2 * page_size);
out_delete:
	evsel__put(evsel);
	return ret;
}

/* PERF_RECORD_MMAP2 has one byte for the length of a build-id. */
static int test__long_build_id(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct {
		struct build_id	bid;
		u8		behind[256];
	} room;
	u8 data[255];

	memset(data, 0xbb, sizeof(data));
	memset(&room, 0xaa, sizeof(room));
	build_id__init(&room.bid, data, sizeof(data));

	TEST_ASSERT_EQUAL("size of the build-id", BUILD_ID_SIZE, (int)room.bid.size);
	TEST_ASSERT_EQUAL("its last byte", 0xbb, (int)room.bid.data[BUILD_ID_SIZE - 1]);
	for (size_t i = 0; i < sizeof(room.behind); i++)
		TEST_ASSERT_EQUAL("a byte behind it", 0xaa, (int)room.behind[i]);
	return TEST_OK;
}

static struct test_case tests__hostile_records[] = {
	TEST_CASE("Record without room for its sample_id", short_record),
	TEST_CASE("Build-id that is too long", long_build_id),
	{	.name = NULL, }
};

struct test_suite suite__hostile_records = {
	.desc = "Hostile records",
	.test_cases = tests__hostile_records,
};
