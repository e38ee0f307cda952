// SPDX-License-Identifier: GPL-2.0
/*
 * A recording reads the same, whatever the byte order of the machine that wrote it.
 *
 * Two recordings are made byte by byte: one as s390x writes it, one as x86_64 does. They
 * say the same. Each record delivered by perf_session must say so as well, to
 * evsel__parse_sample() and to sample_layout, and in the order of time. One of the two is
 * swapped by perf_session on any machine.
 */
#include "base-api.h"
#include "debug.h"
#include "event.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "sample.h"
#include "sample-layout.h"
#include "session.h"
#include "tests.h"
#include "tool.h"
#include "util/data.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC		0x32454c4946524550ULL	/* "PERFILE2" */
#define ID		1000
#define STREAM_ID	0x55
#define SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |	\
			 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_STREAM_ID |	\
			 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define SAMPLE_SIZE	72
#define COMM_SIZE	64

/* Number of the flag in perf_event_attr */
#define FLAG_COMM		9
#define FLAG_SAMPLE_ID_ALL	18

/* Two buffers, one after the other; their records are delivered in the order of time. */
static const struct entry {
	u32	type;
	u32	pid;
	u32	tid;
	u32	cpu;
	u64	time;
} entries[] = {
	{ PERF_RECORD_COMM,   0x0102, 0x0304, 0x07, 0x1000 },
	{ PERF_RECORD_SAMPLE, 0x0102, 0x0304, 0x07, 0x1002 },
	{ PERF_RECORD_SAMPLE, 0x010203, 0x01020304, 0x07, 0x1122334455667788 },
	{ PERF_RECORD_SAMPLE, 0x0506, 0x0708, 0x09, 0x1001 },
	{ PERF_RECORD_COMM,   0x0506, 0x0708, 0x09, 0x1003 },
	{ PERF_RECORD_FINISHED_ROUND, 0, 0, 0, 0 },
};

struct writer {
	FILE	*file;
	bool	big_endian;
};

static void put(struct writer *w, u64 value, int size)
{
	for (int i = 0; i < size; i++)
		fputc(value >> (8 * (w->big_endian ? size - 1 - i : i)) & 0xff, w->file);
}

static void put_words(struct writer *w, int nr, const u64 *words)
{
	for (int i = 0; i < nr; i++)
		put(w, words[i], sizeof(u64));
}

static void put_pair(struct writer *w, u32 first, u32 second)
{
	put(w, first, sizeof(first));
	put(w, second, sizeof(second));
}

/* Of a word of flags, big-endian compilers put the first into the uppermost bit. */
static u64 flag(const struct writer *w, int nr)
{
	return 1ULL << (w->big_endian ? 63 - nr : nr);
}

static void put_attr(struct writer *w)
{
	const u64 words[] = {
		PERF_COUNT_SW_CPU_CLOCK, /*sample_period=*/1, SAMPLE_TYPE, /*read_format=*/0,
		flag(w, FLAG_COMM) | flag(w, FLAG_SAMPLE_ID_ALL),
	};
	size_t size = sizeof(struct perf_event_attr);

	put_pair(w, PERF_TYPE_SOFTWARE, size);
	put_words(w, ARRAY_SIZE(words), words);
	for (size_t i = sizeof(u64) + sizeof(words); i < size; i++)
		fputc(0, w->file);
}

static void put_header(struct writer *w, u32 type, u16 size)
{
	put(w, type, sizeof(type));
	put(w, type == PERF_RECORD_SAMPLE ? PERF_RECORD_MISC_USER : 0, sizeof(u16));
	put(w, size, sizeof(size));
}

static void put_sample(struct writer *w, const struct entry *e)
{
	put_header(w, e->type, SAMPLE_SIZE);
	put_words(w, 2, (u64[]) { ID, /*ip=*/0x400000 });
	put_pair(w, e->pid, e->tid);
	put_words(w, 3, (u64[]) { e->time, /*addr=*/0x12345678, STREAM_ID });
	put_pair(w, e->cpu, 0);
	put(w, /*period=*/1, sizeof(u64));
}

static void put_comm(struct writer *w, const struct entry *e)
{
	put_header(w, e->type, COMM_SIZE);
	put_pair(w, e->pid, e->tid);
	fwrite("perf-be", 1, 8, w->file);
	put_pair(w, e->pid, e->tid);
	put_words(w, 2, (u64[]) { e->time, STREAM_ID });
	put_pair(w, e->cpu, 0);
	put(w, ID, sizeof(u64));
}

static void put_records(struct writer *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (entries[i].type == PERF_RECORD_SAMPLE)
			put_sample(w, &entries[i]);
		else if (entries[i].type == PERF_RECORD_COMM)
			put_comm(w, &entries[i]);
		else
			put_header(w, entries[i].type, sizeof(struct perf_event_header));
	}
}

static void put_file_header(struct writer *w, u64 data_size)
{
	u64 header = sizeof(struct perf_file_header);
	u64 entry = sizeof(struct perf_event_attr) + sizeof(struct perf_file_section);
	u64 ids = header + entry, data = ids + sizeof(u64);
	const u64 words[] = {
		MAGIC, header, entry,
		/*attrs=*/header, entry, data, data_size, /*event_types=*/0, 0,
		/*adds_features=*/1ULL << HEADER_HOSTNAME, 0, 0, 0,
	};

	rewind(w->file);
	put_words(w, ARRAY_SIZE(words), words);
	put_attr(w);
	put_words(w, 3, (u64[]) { ids, sizeof(u64), ID });
}

/* By this feature perf sees how long the words of the features are. */
static void put_host_name(struct writer *w)
{
	u64 section = ftell(w->file) + sizeof(struct perf_file_section);

	put_words(w, 2, (u64[]) { section, sizeof(u32) + 8 });
	put(w, 8, sizeof(u32));
	fwrite("perf-be", 1, 8, w->file);
}

static bool write_file(const char *path, bool big_endian)
{
	struct writer w = { .file = fopen(path, "w"), .big_endian = big_endian };
	long data, end;

	if (!w.file)
		return false;
	put_file_header(&w, 0);
	data = ftell(w.file);
	put_records(&w);
	end = ftell(w.file);
	put_host_name(&w);
	put_file_header(&w, end - data);
	return !fclose(w.file);
}

struct reader {
	struct perf_tool	tool;
	struct evsel		*evsel;
	u64			last_time;
	size_t			nr;
	bool			failed;
};

static const struct entry *find_entry(u64 time)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (entries[i].time == time)
			return &entries[i];
	}
	return NULL;
}

static bool has_id(const struct sample_layout *layout, const union perf_event *event, u64 id)
{
	int offset = sample_layout__offset(layout, SAMPLE_WORD__ID, event->header.type,
					   event->header.size);

	return offset >= 0 && !memcmp((const void *)event + offset, &id, sizeof(id));
}

static bool is_right(const struct evsel *evsel, const union perf_event *event,
		     const struct perf_sample *sample)
{
	const struct entry *e = find_entry(sample->time);
	struct sample_layout layout;
	u32 pid = 0, cpu = 0;
	u64 time = 0;

	sample_layout__init(&layout, &evsel->core.attr, evsel->needs_swap);
	pr_debug("type %u: pid %#x, tid %#x, CPU %#x, time %#llx\n", event->header.type,
		 sample->pid, sample->tid, sample->cpu, (unsigned long long)sample->time);
	return e && e->type == event->header.type &&
	       e->pid == sample->pid && e->tid == sample->tid && e->cpu == sample->cpu &&
	       sample_layout__pid(&layout, event, &pid) && pid == e->pid &&
	       sample_layout__cpu(&layout, event, &cpu) && cpu == e->cpu &&
	       sample_layout__time(&layout, event, &time) && time == e->time &&
	       has_id(&layout, event, ID);
}

static int read_event(const struct perf_tool *tool, union perf_event *event,
		      struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct reader *r = container_of(tool, struct reader, tool);

	if (!is_right(r->evsel, event, sample) || sample->time <= r->last_time)
		r->failed = true;
	r->last_time = sample->time;
	r->nr++;
	return 0;
}

static int read_sample(const struct perf_tool *tool, union perf_event *event,
		       struct perf_sample *sample, struct evsel *evsel __maybe_unused,
		       struct machine *machine)
{
	return read_event(tool, event, sample, machine);
}

DEFINE_TOOL_SAMPLE(read_sample)

static bool reads_right(const char *path)
{
	struct perf_data data = { .path = path, .mode = PERF_DATA_MODE_READ };
	struct reader r = { .nr = 0 };
	struct perf_session *session;
	int err;

	perf_tool__init(&r.tool, /*ordered_events=*/true);
	r.tool.sample = read_sample__of_tool;
	r.tool.comm = read_event;
	session = perf_session__new(&data, &r.tool);
	if (IS_ERR(session))
		return false;
	r.evsel = evlist__first(session->evlist);
	err = perf_session__process_events(session);
	perf_session__delete(session);
	/* All but the end of the round. */
	return !err && !r.failed && r.nr == ARRAY_SIZE(entries) - 1;
}

static int check_byte_order(bool big_endian)
{
	char path[] = "/tmp/perf-test-sample-layout-XXXXXX";
	int fd = mkstemp(path), ret = TEST_FAIL;

	if (fd < 0)
		return TEST_FAIL;
	close(fd);
	if (write_file(path, big_endian) && reads_right(path))
		ret = TEST_OK;
	unlink(path);
	return ret;
}

static int test__little_endian(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	return check_byte_order(/*big_endian=*/false);
}

static int test__big_endian(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return check_byte_order(/*big_endian=*/true);
}

/* A record that is too short does not have the word, whatever is behind it. */
static int test__short_record(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct perf_event_attr attr = { .sample_type = SAMPLE_TYPE, .sample_id_all = 1 };
	struct sample_layout layout;

	sample_layout__init(&layout, &attr, /*swapped=*/false);
	for (int size = sizeof(struct perf_event_header); size <= SAMPLE_SIZE; size++) {
		int in_sample = size < 40 ? -1 : 32;
		int in_sample_id = size < 48 ? -1 : size - 32;

		TEST_ASSERT_EQUAL("time of a sample", in_sample,
				  sample_layout__offset(&layout, SAMPLE_WORD__TIME,
							PERF_RECORD_SAMPLE, size));
		TEST_ASSERT_EQUAL("time of a sample_id", in_sample_id,
				  sample_layout__offset(&layout, SAMPLE_WORD__TIME,
							PERF_RECORD_COMM, size));
	}

	attr.sample_id_all = 0;
	sample_layout__init(&layout, &attr, /*swapped=*/false);
	TEST_ASSERT_EQUAL("no sample_id", -1,
			  sample_layout__offset(&layout, SAMPLE_WORD__TIME, PERF_RECORD_COMM,
						COMM_SIZE));
	return TEST_OK;
}

/* Words before the id of a sample, and from that of another record to its end; -1: none */
static const struct id_case {
	u64	sample_type;
	int	before;
	int	behind;
} id_cases[] = {
	{ PERF_SAMPLE_TID | PERF_SAMPLE_TIME, -1, -1 },
	{ PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME, 0, 1 },
	{ PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID | PERF_SAMPLE_TID, 0, 1 },
	{ PERF_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, 2, 2 },
	{ PERF_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CPU, 2, 2 },
	{ PERF_SAMPLE_ID | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_STREAM_ID, 2, 2 },
	{ PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU, 0, 3 },
};

static void init_id_case(struct sample_layout *layout, const struct id_case *c)
{
	struct perf_event_attr attr = { .sample_type = c->sample_type, .sample_id_all = 1 };

	sample_layout__init(layout, &attr, /*swapped=*/false);
}

/* The id tells the event of a record, so it is found without the other words of the event. */
static int test__ids(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	const int header = sizeof(struct perf_event_header), word = sizeof(u64);

	for (size_t i = 0; i < ARRAY_SIZE(id_cases); i++) {
		const struct id_case *c = &id_cases[i];
		struct sample_layout a, b;

		init_id_case(&a, c);
		for (int words = 0; words < 5; words++) {
			int size = header + words * word;
			int in_sample = c->before >= 0 && words > c->before ?
				header + c->before * word : -1;
			int in_other = c->behind >= 0 && words >= c->behind ?
				size - c->behind * word : -1;

			TEST_ASSERT_EQUAL("id of a sample", in_sample,
					  sample_layout__id_offset(&a, PERF_RECORD_SAMPLE, size));
			TEST_ASSERT_EQUAL("id of another record", in_other,
					  sample_layout__id_offset(&a, PERF_RECORD_COMM, size));
		}
		for (size_t j = 0; j < ARRAY_SIZE(id_cases); j++) {
			const struct id_case *other = &id_cases[j];
			bool is_same = c->before == other->before && c->behind == other->behind;

			init_id_case(&b, other);
			TEST_ASSERT_VAL("the same id",
					is_same == sample_layout__has_same_id(&a, &b));
		}
	}
	return TEST_OK;
}

static struct test_case tests__sample_layout[] = {
	TEST_CASE("Words of a little-endian recording", little_endian),
	TEST_CASE("Words of a big-endian recording", big_endian),
	TEST_CASE("Words that a record does not have", short_record),
	TEST_CASE("Words that tell the event", ids),
	{	.name = NULL, }
};

struct test_suite suite__sample_layout = {
	.desc = "Words of a sample",
	.test_cases = tests__sample_layout,
};
