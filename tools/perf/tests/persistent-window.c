// SPDX-License-Identifier: GPL-2.0
/*
 * The oldest record of a buffer, found in its oldest bytes: wherever they begin, and
 * wherever the oldest record was cut off. The records have a payload of bytes that look
 * like records: whole ones with another id, with a later time, and the first ones of a
 * chain that leads nowhere.
 */
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <perf/event.h>
#include <perf/evlist.h>
#include <internal/evsel.h>
#include "util/base-api.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/persistent/persistent.h"
#include "tests.h"

#define NR	200
#define ID	77
#define LATEST	(1000ULL * 1000 * 1000 * 1000)

static char bytes[NR * 256];
static size_t len;

/* Records as a backward buffer has them: the newest one first. Time NR - i is in record i. */
static struct {
	size_t	start;
	u64	time;
} records[NR];

static u64 put_record(char *to, u32 type, u16 size, u64 id, u64 time)
{
	struct perf_event_header header = { .type = type, .size = size };
	bool is_sample = type == PERF_RECORD_SAMPLE;
	size_t id_at = is_sample ? sizeof(header) : size - sizeof(id);
	size_t time_at = is_sample ? 2 * sizeof(id) : size - 2 * sizeof(id);

	memcpy(to, &header, sizeof(header));
	memcpy(to + id_at, &id, sizeof(id));
	memcpy(to + time_at, &time, sizeof(time));
	return size;
}

static void put_records(void)
{
	len = 0;
	for (int i = 0; i < NR; i++) {
		char *payload = bytes + len + 24;

		records[i].start = len;
		records[i].time = LATEST - i * 1000;
		memset(payload, 0, 200);
		/* One of another event, one of the future, and one that is followed by zeros */
		put_record(payload, PERF_RECORD_SAMPLE, 24, ID + 1, records[i].time);
		put_record(payload + 24, PERF_RECORD_SAMPLE, 24, ID, 2 * LATEST);
		put_record(payload + 48, PERF_RECORD_SAMPLE, 24, ID, records[i].time - 1);
		len += put_record(bytes + len, i % 7 ? PERF_RECORD_SAMPLE : PERF_RECORD_COMM,
				  24 + 72 + 8 * (i % 10), ID, records[i].time);
	}
}

static struct evlist *new_evlist(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};
	struct persistent_event event = { .fd = -1, .id = ID, .attr = attr };
	struct persistent_session session = { .nr_events = 1, .events = &event };

	return persistent_session__new_evlist(&session);
}

/* The oldest record that is whole within the first @end bytes */
static u64 oldest_before(size_t end)
{
	int i = NR - 1;

	while ((i == NR - 1 ? len : records[i + 1].start) > end)
		i--;
	return records[i].time;
}

/* In the payload of a large record: a long chain, but of another event, or of the future */
static bool finds_false_chain(struct evlist *evlist, u64 id, u64 time)
{
	__u64 oldest;

	for (size_t i = 0; i < 100; i++)
		put_record(bytes + i * 24, PERF_RECORD_SAMPLE, 24, id, time - i);
	return persistent_window__find_oldest(bytes, 100 * 24, true, evlist, LATEST, &oldest);
}

static int test__persistent_window(struct test_suite *t __maybe_unused,
				   int subtest __maybe_unused)
{
	struct evlist *evlist = new_evlist();
	__u64 oldest = 0;

	TEST_ASSERT_VAL("evlist", evlist);
	put_records();
	for (size_t start = 0; start < len / 2; start += 8) {
		TEST_ASSERT_VAL("a buffer that is not full",
				persistent_window__find_oldest(bytes + start, len - start, false,
							       evlist, LATEST, &oldest));
		TEST_ASSERT_VAL("its first record", oldest == records[NR - 1].time);
	}
	for (size_t end = len / 2; end <= len; end += 8) {
		size_t start = end / 2 / 8 * 8;

		TEST_ASSERT_VAL("a full buffer",
				persistent_window__find_oldest(bytes + start, end - start, true,
							       evlist, LATEST, &oldest));
		TEST_ASSERT_VAL("its oldest whole record", oldest == oldest_before(end));
	}
	TEST_ASSERT_VAL("no records in the middle of one",
			!persistent_window__find_oldest(bytes + records[9].start + 8, 150, true,
							evlist, LATEST, &oldest));
	TEST_ASSERT_VAL("records of this event", finds_false_chain(evlist, ID, LATEST));
	TEST_ASSERT_VAL("not of others", !finds_false_chain(evlist, ID + 1, LATEST));
	TEST_ASSERT_VAL("nor of the future", !finds_false_chain(evlist, ID, 2 * LATEST));
	memset(bytes, 0, sizeof(bytes));
	TEST_ASSERT_VAL("nor in zeros",
			!persistent_window__find_oldest(bytes, sizeof(bytes), true, evlist,
							LATEST, &oldest));
	evlist__put(evlist);
	return TEST_OK;
}

DEFINE_SUITE("Window of a persistent session", persistent_window);
