// SPDX-License-Identifier: GPL-2.0
/*
 * What perf data recover makes of the memory of a dead machine: images are made by hand, in
 * states that a machine does not have at will, and damaged.
 */
#include "tests.h"
#include "debug.h"
#include "blackbox-image.h"
#include "blackbox-scattered.h"
#include "random-number.h"

#include "util/base-api.h"
#include "util/blackbox/find.h"
#include "util/blackbox/formats.h"
#include "util/blackbox/messages.h"
#include "util/blackbox/recording.h"
#include "util/build-id.h"
#include "util/data.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/json-writer.h"
#include "util/machine.h"
#include "util/map.h"
#include "util/sample.h"
#include "util/session.h"
#include "util/symbol.h"
#include "util/thread.h"
#include "util/tool.h"

#include <byteswap.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS		1000000ULL
#define START		(2000 * MS)
#define RING		8192
#define ID(cpu)		(100 + (cpu))
#define SIDEBAND_ID	200

/**
 * struct read_box - an image that has been read
 * @find: the search for it
 * @s: its first session
 * @err: what failed
 */
struct read_box {
	struct blackbox_find	find;
	struct blackbox_session	s;
	int			err;
};

static void *new_bytes(size_t size)
{
	return calloc(1, size);
}

static void close_box(struct read_box *rb)
{
	blackbox_session__exit(&rb->s);
	blackbox_find__exit(&rb->find);
}

static int open_bytes(struct read_box *rb, const void *bytes, u64 size)
{
	memset(rb, 0, sizeof(*rb));
	rb->err = blackbox_find__init(&rb->find, bytes, size, NULL);
	if (!rb->err && !rb->find.nr)
		rb->err = -ENOENT;
	if (!rb->err)
		rb->err = blackbox_session__init(&rb->s, &rb->find.images[0], 0);
	if (!rb->err)
		rb->err = blackbox_session__cut(&rb->s);
	return rb->err;
}

static int open_box(struct read_box *rb, const struct box *box)
{
	return open_bytes(rb, box->bytes, BOX_SIZE);
}

/* A session with an event and a buffer on each of @nr_cpus CPUs */
static void make_box(struct box *box, void *bytes, u32 nr_cpus, bool backward)
{
	struct perf_event_attr attr = box__attr(PERF_COUNT_SW_CPU_CLOCK);
	u32 session;

	attr.write_backward = backward;
	box__init(box, bytes);
	session = box__add_session(box, "flight");
	for (u32 cpu = 0; cpu < nr_cpus; cpu++)
		box__add_event(box, session, box__add_buffer(box, cpu, RING, backward), ID(cpu),
			       &attr);
}

static void put_sample(struct box *box, u32 cpu, u64 ms)
{
	struct box_sample sample = box__sample(ID(cpu), cpu, 1000 + cpu, START + ms * MS);

	box__write(box, cpu, &sample, sizeof(sample));
}

/* Samples [@first, @first + @nr) of put_sample(), and nothing else? */
static int check_samples(const struct blackbox_buffer *buf, u64 first, u64 nr)
{
	const struct blackbox_cut *cut = &buf->cut;

	TEST_ASSERT_EQUAL("number of records", (int)nr, (int)cut->nr);
	for (size_t i = 0; i < cut->nr; i++) {
		struct box_sample sample = box__sample(ID(buf->cpu), buf->cpu, 1000 + buf->cpu,
						       START + (first + i) * MS);

		TEST_ASSERT_VAL("a record is another one",
				!memcmp(cut->bytes + cut->spans[i].pos, &sample, sizeof(sample)));
		TEST_ASSERT_VAL("its time", cut->spans[i].time == START + (first + i) * MS);
	}
	return TEST_OK;
}

static u64 count_dropped(const struct blackbox_cut *cut, enum blackbox_drop except)
{
	u64 bytes = 0;

	for (int i = 0; i < BLACKBOX_DROP_MAX; i++) {
		if (i != (int)except)
			bytes += cut->bytes_dropped[i];
	}
	return bytes;
}

/* Runs @test with an image, which is freed. */
static int with_box(int (*test)(struct box *box, void *bytes, bool backward), bool backward)
{
	void *bytes = new_bytes(BOX_SIZE);
	struct box box;
	int ret;

	if (!bytes)
		return TEST_FAIL;
	ret = test(&box, bytes, backward);
	free(bytes);
	return ret;
}

static int with_both(int (*test)(struct box *box, void *bytes, bool backward))
{
	int ret = with_box(test, true);

	return ret == TEST_OK ? with_box(test, false) : ret;
}

/* Ring buffers */

static int check_whole(struct box *box, void *bytes, bool backward)
{
	struct read_box rb;
	int ret;

	make_box(box, bytes, 2, backward);
	for (u64 i = 0; i < 20; i++) {
		put_sample(box, 0, i);
		put_sample(box, 1, i);
	}
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("buffers", 2, (int)rb.s.nr_buffers);
	ret = check_samples(&rb.s.buffers[0], 0, 20) ?: check_samples(&rb.s.buffers[1], 0, 20);
	TEST_ASSERT_EQUAL("nothing is dropped", 0,
			  (int)count_dropped(&rb.s.buffers[0].cut, BLACKBOX_OK));
	TEST_ASSERT_VAL("it has not wrapped", !rb.s.buffers[0].cut.wrapped);
	close_box(&rb);
	return ret;
}

static int check_wrapped(struct box *box, void *bytes, bool backward)
{
	const u64 nr = 1000, fit = RING / sizeof(struct box_sample);
	struct read_box rb;
	int ret;

	make_box(box, bytes, 1, backward);
	for (u64 i = 0; i < nr; i++)
		put_sample(box, 0, i);
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	ret = check_samples(&rb.s.buffers[0], nr - fit, fit);
	TEST_ASSERT_VAL("it has wrapped", rb.s.buffers[0].cut.wrapped);
	TEST_ASSERT_EQUAL("part of a record is left", RING % (int)sizeof(struct box_sample),
			  (int)rb.s.buffers[0].cut.bytes_dropped[BLACKBOX_DROP_PARTIAL]);
	TEST_ASSERT_EQUAL("nothing else is dropped", 0,
			  (int)count_dropped(&rb.s.buffers[0].cut, BLACKBOX_DROP_PARTIAL));
	close_box(&rb);
	return ret;
}

static int test__buffers(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_whole) ?: with_both(check_wrapped);
}

/*
 * A writer that has not published its records has overwritten the oldest ones, with what looks
 * like older ones. Sizes divide that of the ring, so the records begin where old ones did.
 */
static int check_in_flight(struct box *box, void *bytes, bool backward)
{
	const u64 nr = 1000, size = 64, fit = RING / size, in_flight = 5;
	struct { struct box_sample sample; u64 pad[2]; } wide = {};
	struct perf_event_attr attr = box__attr(PERF_COUNT_SW_CPU_CLOCK);
	struct read_box rb;
	struct blackbox_cut *cut;

	BUILD_BUG_ON(sizeof(wide) != 64);
	make_box(box, bytes, 1, backward);
	attr.sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_PHYS_ADDR;
	memcpy(box__event(box, 0)->attr, &attr, sizeof(attr));
	box__seal_entry(box__event(box, 0), sizeof(struct perf_blackbox_event));
	for (u64 i = 0; i < nr; i++) {
		wide.sample = box__sample(ID(0), 0, 1000, START + i * MS);
		wide.sample.header.size = sizeof(wide);
		box__write(box, 0, &wide, sizeof(wide));
	}
	for (u64 i = 0; i < in_flight; i++) {
		wide.sample = box__sample(ID(0), 0, 666, START);
		wide.sample.header.size = sizeof(wide);
		box__store(box, 0, &wide, sizeof(wide), sizeof(wide));
	}
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	cut = &rb.s.buffers[0].cut;
	TEST_ASSERT_EQUAL("records", (int)(fit - in_flight), (int)cut->nr);
	for (size_t i = 0; i < cut->nr; i++) {
		memcpy(&wide.sample, cut->bytes + cut->spans[i].pos, sizeof(wide.sample));
		TEST_ASSERT_VAL("a record of the writer", wide.sample.tid == 1000);
		TEST_ASSERT_VAL("the order", wide.sample.time ==
				START + (nr - fit + in_flight + i) * MS);
	}
	TEST_ASSERT_EQUAL("in flight", (int)(in_flight * size),
			  (int)cut->bytes_dropped[BLACKBOX_DROP_IN_FLIGHT]);
	TEST_ASSERT_EQUAL("overwritten", (int)(in_flight * size),
			  (int)cut->bytes_dropped[BLACKBOX_DROP_OVERWRITTEN]);
	close_box(&rb);

	/* One that has reserved more than all there is */
	*box__head(box, 0) += backward ? -(u64)RING : RING;
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("nothing is intact", 0, (int)rb.s.buffers[0].cut.nr);
	close_box(&rb);
	return TEST_OK;
}

static int test__in_flight(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_in_flight);
}

/* A record that says something that cannot be is dropped, and no other one. */
static int check_damage(struct box *box, u32 offset, u64 value, size_t size,
			enum blackbox_drop why)
{
	const u64 nr = 20, which = 7;
	const struct perf_blackbox_buffer *b = box__buffer(box, 0);
	struct read_box rb;
	u64 head, pos, left;

	for (u64 i = 0; i < nr; i++)
		put_sample(box, 0, i);
	head = *box__data_head(box, 0);
	pos = head + (nr - 1 - which) * sizeof(struct box_sample);
	memcpy(box->bytes + b->data + (pos & (RING - 1)) + offset, &value, size);
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	left = why == BLACKBOX_DROP_SIZE ? nr - 1 - which : nr - 1;
	TEST_ASSERT_EQUAL("records", (int)left, (int)rb.s.buffers[0].cut.nr);
	TEST_ASSERT_VAL("the reason", rb.s.buffers[0].cut.bytes_dropped[why] >=
			sizeof(struct box_sample));
	TEST_ASSERT_EQUAL("no other reason", 0, (int)count_dropped(&rb.s.buffers[0].cut, why));
	close_box(&rb);
	return TEST_OK;
}

static int test__damaged_records(struct test_suite *test __maybe_unused,
				 int subtest __maybe_unused)
{
	static const struct {
		u32			offset;
		u64			value;
		size_t			size;
		enum blackbox_drop	why;
	} damages[] = {
		{ offsetof(struct box_sample, header.size), 0, 2, BLACKBOX_DROP_SIZE },
		{ offsetof(struct box_sample, header.size), 20, 2, BLACKBOX_DROP_SIZE },
		{ offsetof(struct box_sample, header.size), 0xfff8, 2, BLACKBOX_DROP_SIZE },
		{ offsetof(struct box_sample, header.type), 0, 4, BLACKBOX_DROP_TYPE },
		{ offsetof(struct box_sample, header.type), 77, 4, BLACKBOX_DROP_TYPE },
		{ offsetof(struct box_sample, id), 4711, 8, BLACKBOX_DROP_ID },
		{ offsetof(struct box_sample, cpu), 1, 4, BLACKBOX_DROP_CPU },
		{ offsetof(struct box_sample, time), 1, 8, BLACKBOX_DROP_TIME },
		{ offsetof(struct box_sample, time), ~0ULL >> 1, 8, BLACKBOX_DROP_TIME },
	};
	void *bytes = new_bytes(BOX_SIZE);
	int ret = bytes ? TEST_OK : TEST_FAIL;

	for (size_t i = 0; i < ARRAY_SIZE(damages) && ret == TEST_OK; i++) {
		struct box box;

		make_box(&box, bytes, 1, /*backward=*/true);
		ret = check_damage(&box, damages[i].offset, damages[i].value, damages[i].size,
				   damages[i].why);
		if (ret != TEST_OK)
			pr_debug("damage %zu\n", i);
	}
	free(bytes);
	return ret;
}

/* No number of wrong times costs records that are right, as long as these are the more. */
static int check_wrong_times(struct box *box, void *bytes, bool backward)
{
	static const u64 wrong[] = { 1, ~0ULL >> 1 };
	const u64 nr = 40, first = 7, nr_wrong = 5;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct read_box rb;
		struct blackbox_cut *cut;

		make_box(box, bytes, 1, backward);
		for (u64 j = 0; j < nr; j++) {
			struct box_sample sample = box__sample(ID(0), 0, 1000, START + j * MS);

			if (j >= first && j < first + nr_wrong)
				sample.time = wrong[i] + j;
			/* An interrupt came between the clock and the reservation. */
			if (j == 20)
				sample.time += 3 * MS;
			box__write(box, 0, &sample, sizeof(sample));
		}
		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		cut = &rb.s.buffers[0].cut;
		TEST_ASSERT_EQUAL("records", (int)(nr - nr_wrong), (int)cut->nr);
		TEST_ASSERT_EQUAL("wrong ones", (int)nr_wrong,
				  (int)cut->records_dropped[BLACKBOX_DROP_TIME]);
		TEST_ASSERT_VAL("the newest",
				cut->spans[cut->nr - 1].time == START + (nr - 1) * MS);
		close_box(&rb);
	}
	return TEST_OK;
}

static int test__wrong_times(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_wrong_times);
}

/* Lengths and strings that exceed their record would lead readers of the file astray. */
static int test__bodies(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct { struct box_sample sample; u64 nr, ips[2]; } chain = {};
	struct perf_event_attr attr = box__attr(PERF_COUNT_SW_CPU_CLOCK);
	struct blackbox_event event = { .attr = attr, .id = ID(0) };
	struct blackbox_ids ids = { .events = &event, .nr = 1, .cpu = 0 };
	struct box_comm comm = box__comm(ID(0), 0, 1, "a", START);
	struct box_map map = box__map(ID(0), 0, 1, "/a", START);
	struct {
		struct perf_event_header	header;
		u64				cookie, nr, ips[2];
		struct box_id			id;
	} half = {
		.header	= { .type = PERF_RECORD_CALLCHAIN_DEFERRED, .size = sizeof(half) },
		.nr	= 2,
		.id	= comm.id,
	};
	u64 time;

	sample_layout__init(&event.layout, &event.attr, /*swapped=*/false);
	TEST_ASSERT_EQUAL("a name", BLACKBOX_OK,
			  blackbox_record__check(&ids, &comm, sizeof(comm), &time));
	TEST_ASSERT_VAL("its time", time == START);
	memset(comm.comm, 'a', sizeof(comm.comm));
	TEST_ASSERT_EQUAL("a name without an end", BLACKBOX_DROP_BODY,
			  blackbox_record__check(&ids, &comm, sizeof(comm), &time));

	TEST_ASSERT_EQUAL("a build-id", BLACKBOX_OK,
			  blackbox_record__check(&ids, &map, sizeof(map), &time));
	map.build_id[0] = BUILD_ID_SIZE + 1;
	TEST_ASSERT_EQUAL("a build-id that is too long", BLACKBOX_DROP_BODY,
			  blackbox_record__check(&ids, &map, sizeof(map), &time));
	map.header.misc = 0;
	TEST_ASSERT_EQUAL("an inode", BLACKBOX_OK,
			  blackbox_record__check(&ids, &map, sizeof(map), &time));

	TEST_ASSERT_EQUAL("half of a stack", BLACKBOX_OK,
			  blackbox_record__check(&ids, &half, sizeof(half), &time));
	half.nr = 3;
	TEST_ASSERT_EQUAL("half of a stack that is too long", BLACKBOX_DROP_BODY,
			  blackbox_record__check(&ids, &half, sizeof(half), &time));

	event.attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	sample_layout__init(&event.layout, &event.attr, /*swapped=*/false);
	chain.sample = box__sample(ID(0), 0, 1, START);
	chain.sample.header.size = sizeof(chain);
	chain.nr = 2;
	TEST_ASSERT_EQUAL("a stack", BLACKBOX_OK,
			  blackbox_record__check(&ids, &chain, sizeof(chain), &time));
	for (u64 i = 0; i < 4; i++) {
		static const u64 wrong[] = { 1, 3, 1ULL << 61, ~0ULL };

		chain.nr = wrong[i];
		TEST_ASSERT_EQUAL("a stack of another size", BLACKBOX_DROP_BODY,
				  blackbox_record__check(&ids, &chain, sizeof(chain), &time));
	}
	return TEST_OK;
}

/* Directories and notes */

/* What the CRC does not match is not used: an entry that is changed is as good as none. */
static int check_crcs(struct box *box, void *bytes, bool backward)
{
	struct read_box rb;
	struct blackbox_find find;

	make_box(box, bytes, 2, backward);
	put_sample(box, 0, 0);
	put_sample(box, 1, 0);
	box__event(box, 1)->cpu = 5;
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("events", 1, (int)rb.s.nr_events);
	TEST_ASSERT_EQUAL("damaged events", 1, (int)rb.s.events_bad);
	TEST_ASSERT_EQUAL("buffers", 1, (int)rb.s.nr_buffers);
	close_box(&rb);

	make_box(box, bytes, 2, backward);
	put_sample(box, 0, 0);
	put_sample(box, 1, 0);
	box__buffer(box, 0)->cpu = 5;
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("buffers", 1, (int)rb.s.nr_buffers);
	TEST_ASSERT_EQUAL("damaged buffers", 1, (int)rb.s.buffers_bad);
	if (check_samples(&rb.s.buffers[0], 0, 1))
		return TEST_FAIL;
	close_box(&rb);

	box__session(box, 0)->name[0] = 'F';
	TEST_ASSERT_EQUAL("no session", -ENOENT, open_box(&rb, box));
	TEST_ASSERT_EQUAL("it is damaged", 1, (int)rb.find.images[0].damaged);
	close_box(&rb);

	make_box(box, bytes, 1, backward);
	box->super->text++;
	TEST_ASSERT_EQUAL("no image", 0, blackbox_find__init(&find, bytes, BOX_SIZE, NULL));
	TEST_ASSERT_EQUAL("found", 0, (int)find.nr);
	TEST_ASSERT_EQUAL("damaged", 1, (int)find.damaged);
	blackbox_find__exit(&find);

	make_box(box, bytes, 1, backward);
	box__add_task(box, 0, 1, "a");
	box__die(box, "reason", 1, START);
	box__add_task(box, 0, 1, "b");
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_VAL("the death", rb.find.images[0].has_death);
	TEST_ASSERT_VAL("the tasks", rb.find.images[0].tasks_bad && !rb.find.images[0].nr_tasks);
	close_box(&rb);
	return TEST_OK;
}

/* Offsets and sizes that lead out of the image, with CRCs that match */
static int check_offsets(struct box *box, void *bytes, bool backward)
{
	static const u64 wrong[] = {
		BOX_SIZE, BOX_SIZE - RING / 2, ~0ULL, ~0ULL - RING + 1, 1ULL << 63,
	};
	struct read_box rb;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make_box(box, bytes, 1, backward);
		put_sample(box, 0, 0);
		box__buffer(box, 0)->data = wrong[i];
		box__seal_entry(box__buffer(box, 0), sizeof(struct perf_blackbox_buffer));
		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		TEST_ASSERT_EQUAL("damaged buffers", 1, (int)rb.s.buffers_bad);
		close_box(&rb);

		make_box(box, bytes, 1, backward);
		box__buffer(box, 0)->data_size = wrong[i];
		box__seal_entry(box__buffer(box, 0), sizeof(struct perf_blackbox_buffer));
		box__session(box, 0)->notes = wrong[i];
		box__session(box, 0)->notes_size = wrong[ARRAY_SIZE(wrong) - 1 - i];
		box__seal_entry(box__session(box, 0), sizeof(struct perf_blackbox_session));
		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		TEST_ASSERT_EQUAL("damaged buffers", 1, (int)rb.s.buffers_bad);
		close_box(&rb);

		make_box(box, bytes, 1, backward);
		box->super->buffers = wrong[i];
		box->super->death = wrong[i];
		box__seal(box);
		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		TEST_ASSERT_EQUAL("damaged buffers", 1, (int)rb.s.buffers_bad);
		close_box(&rb);
	}
	return TEST_OK;
}

static int test__directories(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_crcs) ?: with_both(check_offsets);
}

static int expect_notes(const struct box *box, const char *const *names, size_t nr)
{
	struct read_box rb;

	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("notes", (int)nr, (int)rb.s.nr_notes);
	for (size_t i = 0; i < nr; i++) {
		const struct box_comm *comm = rb.s.notes[i].data;

		TEST_ASSERT_VAL("a note", rb.s.notes[i].size == sizeof(*comm) &&
				!strcmp(comm->comm, names[i]));
	}
	close_box(&rb);
	return TEST_OK;
}

/* A write that was cut short loses no earlier one. */
static int check_notes(struct box *box, void *bytes, bool backward)
{
	static const char *const names[] = { "old", "first", "second" };
	static const char *const newer[] = { "new" };
	struct box_comm comms[3], new_comm = box__comm(0, 0, 9, "new", 0);
	u64 first, second, end, new_end;
	u8 *slot;

	for (int i = 0; i < 3; i++)
		comms[i] = box__comm(0, 0, 1 + i, names[i], 0);
	make_box(box, bytes, 1, backward);
	if (expect_notes(box, NULL, 0))
		return TEST_FAIL;
	first = box__add_base(box, 0, 0, 1, START, &comms[0], sizeof(comms[0]));
	second = box__add_addition(box, first, 1, 1, START, &comms[1], sizeof(comms[1]));
	end = box__add_addition(box, second, 1, 2, START, &comms[2], sizeof(comms[2]));
	if (expect_notes(box, names, 3))
		return TEST_FAIL;

	/* An addition whose bytes, or whose header, are not all there */
	box->bytes[end - 1] ^= 1;
	if (expect_notes(box, names, 2))
		return TEST_FAIL;
	box->bytes[end - 1] ^= 1;
	box->bytes[second + offsetof(struct perf_blackbox_addition, clock)] ^= 1;
	if (expect_notes(box, names, 2))
		return TEST_FAIL;
	box->bytes[second + offsetof(struct perf_blackbox_addition, clock)] ^= 1;

	/* A base whose header is there, but not its bytes; and the other way around */
	new_end = box__add_base(box, 0, 1, 2, START, &new_comm, sizeof(new_comm));
	if (expect_notes(box, newer, 1))
		return TEST_FAIL;
	box->bytes[new_end - 1] ^= 1;
	if (expect_notes(box, names, 3))
		return TEST_FAIL;
	box->bytes[new_end - 1] ^= 1;
	slot = box->bytes + box__session(box, 0)->notes + BOX_SLOT;
	memset(slot, 0, sizeof(struct perf_blackbox_notes));
	if (expect_notes(box, names, 3))
		return TEST_FAIL;

	/* Additions of a base that was there before */
	first = box__add_base(box, 0, 0, 3, START, &comms[0], sizeof(comms[0]));
	return expect_notes(box, names, 1);
}

/* What perf of the base would read to places that are too small is left out, and counted. */
static int check_hostile_notes(struct box *box, void *bytes, bool backward)
{
	struct box_map maps[2] = {
		box__map(0, 0, 1, "/good", 0), box__map(0, 0, 1, "/bad", 0),
	};
	u64 record[(PATH_MAX + sizeof(struct perf_record_header_build_id)) / 8 + 1];
	struct perf_record_header_build_id *b = (void *)record;
	struct blackbox_recording r;
	struct read_box rb;
	size_t size;
	u64 next;

	for (int i = 0; i < 3; i++) {
		size = PERF_ALIGN(sizeof(*b) + (i == 1 ? PATH_MAX : 4), sizeof(u64));
		make_box(box, bytes, 1, backward);
		put_sample(box, 0, 0);
		memset(record, 0, sizeof(record));
		*b = (struct perf_record_header_build_id) {
			.header = { .type = PERF_RECORD_HEADER_BUILD_ID, .size = size,
				    .misc = PERF_RECORD_MISC_USER |
					    PERF_RECORD_MISC_BUILD_ID_SIZE },
		};
		b->size = i == 2 ? BUILD_ID_SIZE + 1 : BUILD_ID_SIZE;
		memset(b + 1, 'a', size - sizeof(*b) - 1);
		maps[1].build_id[0] = BUILD_ID_SIZE + 1;
		next = box__add_base(box, 0, 0, 1, START, record, size);
		box__add_addition(box, next, 1, 1, START, maps, sizeof(maps));
		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		TEST_ASSERT_EQUAL("recording", 0, blackbox_recording__init(&r, &rb.s));
		TEST_ASSERT_EQUAL("build-ids", (int)!i, (int)r.nr_build_ids);
		TEST_ASSERT_EQUAL("dropped", 1 + !!i, (int)r.notes_dropped);
		blackbox_recording__exit(&r);
		close_box(&rb);
	}
	return TEST_OK;
}

static int test__hostile_notes(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	return with_box(check_hostile_notes, true);
}

/* After a reset, the wall clock is that of the notes: at boot it may not have been set. */
static int check_clocks(struct box *box, void *bytes, bool backward)
{
	const u64 real = 1750000000000000000ULL;
	struct perf_blackbox_notes *notes;
	struct read_box rb;
	u64 perf;

	make_box(box, bytes, 1, backward);
	box->super->clock.real = 1000;
	box__seal(box);
	box__add_base(box, 0, 0, 1, START + 5 * MS, "", 0);
	notes = (void *)box->bytes + box__session(box, 0)->notes;
	notes->clock.real = real;
	notes->crc = blackbox_crc32(&notes->seq, sizeof(*notes) -
				    offsetof(struct perf_blackbox_notes, seq));
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_VAL("wall clock", blackbox_session__death_time(&rb.s, START + 7 * MS, &perf) ==
			real + 2 * MS);
	TEST_ASSERT_VAL("clock of the records", perf == START + 7 * MS);
	TEST_ASSERT_VAL("before the notes",
			blackbox_session__death_time(&rb.s, START + 4 * MS, &perf) == real - MS);
	close_box(&rb);
	return TEST_OK;
}

static int test__clocks(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_clocks, true);
}

/* Records without a time: names come first. And two events with the task at other places. */
static int check_layouts(struct box *box, void *bytes, bool backward)
{
	struct perf_event_attr attr = box__attr(PERF_COUNT_SW_CPU_CLOCK);
	struct { struct perf_event_header header; u64 id, words[3]; } sample;
	struct box_comm comm = box__comm(0, 0, 77, "noted", 0);
	struct blackbox_recording r;
	struct read_box rb;
	u32 ids[2] = { 77, 77 };

	attr.sample_id_all = 0;
	box__init(box, bytes);
	box__add_session(box, "flight");
	for (int cpu = 0; cpu < 2; cpu++) {
		box__add_buffer(box, cpu, RING, backward);
		attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
		if (!cpu)
			attr.sample_type |= PERF_SAMPLE_IP;
		box__add_event(box, 0, cpu, ID(cpu), &attr);
		memset(&sample, 0, sizeof(sample));
		sample.header = (struct perf_event_header) {
			.type = PERF_RECORD_SAMPLE, .size = sizeof(sample) - 8 * cpu,
		};
		sample.id = ID(cpu);
		sample.words[0] = BOX_TEXT;
		sample.words[2] = 1000;
		memcpy(&sample.words[!cpu], ids, sizeof(ids));
		if (cpu)
			sample.words[1] = 0xabcdef0000001234ULL;
		box__write(box, cpu, &sample, sample.header.size);
	}
	box__add_base(box, 0, 0, 1, START, &comm, sizeof(comm));
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_EQUAL("events", 2, (int)rb.s.nr_events);
	TEST_ASSERT_EQUAL("recording", 0, blackbox_recording__init(&r, &rb.s));
	TEST_ASSERT_EQUAL("samples", 2, (int)r.events);
	TEST_ASSERT_EQUAL("without a name", 0, (int)r.unresolved);
	for (size_t i = r.nr_items - 2; i < r.nr_items; i++)
		TEST_ASSERT_VAL("samples are the last", ((const struct perf_event_header *)
				r.items[i].data)->type == PERF_RECORD_SAMPLE);
	blackbox_recording__exit(&r);
	close_box(&rb);
	return TEST_OK;
}

static int test__layouts(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_layouts, true);
}

static int test__notes(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_notes, true);
}

/* Where images are found */

static int expect_found(const void *bytes, u64 size, u64 offset, u32 nr, u32 copies)
{
	struct blackbox_find find;

	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, bytes, size, NULL));
	TEST_ASSERT_EQUAL("found", (int)nr, (int)find.nr);
	TEST_ASSERT_EQUAL("copies", (int)copies, (int)find.copies);
	if (nr)
		TEST_ASSERT_VAL("where", find.images[0].offset == offset);
	blackbox_find__exit(&find);
	return TEST_OK;
}

static void put_image(u8 *memory, u64 offset, u64 phys, u64 generation)
{
	struct box box;

	make_box(&box, memory + offset, 1, /*backward=*/true);
	box.super->phys = phys;
	box.super->region_phys = phys;
	box.super->generation = generation;
	box__seal(&box);
}

/* Copies come first, and have a greater generation. */
static int test__own_address(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	const u64 size = 8 * BOX_SIZE;
	u8 *memory = new_bytes(size);
	int ret;

	if (!memory)
		return TEST_FAIL;
	put_image(memory, 1 * BOX_SIZE, 4 * BOX_SIZE, 7);
	put_image(memory, 2 * BOX_SIZE + BOX_PAGE, BOX_PHYS, 8);
	put_image(memory, 4 * BOX_SIZE, 4 * BOX_SIZE, 3);
	put_image(memory, 6 * BOX_SIZE, 4 * BOX_SIZE, 9);
	ret = expect_found(memory, size, 4 * BOX_SIZE, 1, 3);

	/* Bytes of a region, whose other half is one more image */
	memset(memory, 0, size);
	put_image(memory, 0, BOX_PHYS, 1);
	put_image(memory, BOX_SIZE, BOX_PHYS + BOX_SIZE, 2);
	put_image(memory, 4 * BOX_SIZE, BOX_PHYS, 3);
	ret = ret ?: expect_found(memory, size, 0, 2, 1);

	/* Nothing at its own address */
	memset(memory, 0, size);
	put_image(memory, BOX_SIZE, BOX_PHYS, 1);
	ret = ret ?: expect_found(memory, size, 0, 0, 1);
	free(memory);
	return ret;
}

/* A superblock alone, as any program can write it to its pages */
static void put_forgery(u8 *memory, u64 offset, u64 phys, u64 image_size)
{
	struct box box;
	u8 *bytes = new_bytes(BOX_SIZE);

	if (!bytes)
		return;
	box__init(&box, bytes);
	box.super->phys = phys;
	box.super->region_phys = phys;
	box.super->image_size = image_size;
	box__seal(&box);
	memcpy(memory + offset, bytes, BOX_PAGE);
	free(bytes);
}

/* Nothing that a program writes to its memory hides an image in a dump. */
static int test__forged_images(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	const u64 nr = 4200, place = (nr + 16) * BOX_PAGE, size = place + BOX_SIZE;
	u8 *memory = new_bytes(size);
	struct blackbox_find find;
	bool overlaps = false;

	if (!memory)
		return TEST_FAIL;
	for (u64 i = 1; i <= nr; i++)
		put_forgery(memory, i * BOX_PAGE, BOX_PHYS + i * BOX_PAGE, BOX_SIZE);
	put_image(memory, place, place, 1);
	TEST_ASSERT_EQUAL("other addresses", TEST_OK, expect_found(memory, size, place, 1, nr));

	/* The program has guessed the address of a page. */
	put_forgery(memory, BOX_PAGE, BOX_PAGE, 1ULL << 40);
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, memory, size, NULL));
	TEST_ASSERT_EQUAL("its own address", 2, (int)find.nr);
	TEST_ASSERT_VAL("the image", find.images[1].offset == place);
	overlaps = find.images[0].overlaps && find.images[1].overlaps;
	blackbox_find__exit(&find);
	TEST_ASSERT_VAL("both are marked", overlaps);

	/* The bytes of an image in which there is a page of which the program knows the place */
	memset(memory, 0, size);
	put_image(memory, 0, BOX_PHYS, 1);
	put_forgery(memory, BOX_SIZE - BOX_PAGE, BOX_SIZE - BOX_PAGE, BOX_SIZE);
	TEST_ASSERT_EQUAL("in an image", TEST_OK, expect_found(memory, BOX_SIZE, 0, 1, 1));
	free(memory);
	return TEST_OK;
}

static int test__core_file(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	const u64 place = 3 * BOX_PAGE + 512, size = place + BOX_SIZE;
	Elf64_Ehdr ehdr = {
		.e_ident	= { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type		= ET_CORE,
		.e_phoff	= sizeof(ehdr),
		.e_phentsize	= sizeof(Elf64_Phdr),
		.e_phnum	= 2,
	};
	Elf64_Phdr phdrs[2] = {
		{ .p_type = PT_NOTE },
		{ .p_type = PT_LOAD, .p_offset = place, .p_paddr = BOX_PHYS,
		  .p_filesz = BOX_SIZE, .p_memsz = BOX_SIZE },
	};
	u8 *file = new_bytes(size);
	int ret;

	if (!file)
		return TEST_FAIL;
	put_image(file, place, BOX_PHYS, 1);
	memcpy(file, &ehdr, sizeof(ehdr));
	memcpy(file + sizeof(ehdr), phdrs, sizeof(phdrs));
	ret = expect_found(file, size, BOX_PHYS, 1, 0);

	/* Program headers that are not in the file, and a segment that is not */
	ehdr.e_phnum = 0xffff;
	memcpy(file, &ehdr, sizeof(ehdr));
	ret = ret ?: expect_found(file, size, 0, 0, 0);
	ehdr.e_phnum = 2;
	phdrs[1].p_filesz = ~0ULL;
	memcpy(file, &ehdr, sizeof(ehdr));
	memcpy(file + sizeof(ehdr), phdrs, sizeof(phdrs));
	ret = ret ?: expect_found(file, size, BOX_PHYS, 1, 0);
	free(file);
	return ret;
}

/* A core file with VMCOREINFO, and an image in three segments */
struct split_file {
	Elf64_Ehdr	ehdr;
	Elf64_Phdr	phdrs[4];
	Elf64_Nhdr	note;
	char		name[12];
	char		info[32];
	u8		pad[BOX_PAGE];
	u8		image[BOX_SIZE];
};

static void make_split_file(struct split_file *file)
{
	const u64 at = offsetof(struct split_file, image), end = BOX_SIZE - BOX_PAGE;

	put_image(file->image, 0, BOX_PHYS, 1);
	file->ehdr = (Elf64_Ehdr) {
		.e_ident	= { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type		= ET_CORE,
		.e_phoff	= offsetof(struct split_file, phdrs),
		.e_phentsize	= sizeof(Elf64_Phdr),
		.e_phnum	= 4,
	};
	file->phdrs[0] = (Elf64_Phdr) {
		.p_type = PT_NOTE, .p_offset = offsetof(struct split_file, note),
		.p_filesz = offsetof(struct split_file, pad) - offsetof(struct split_file, note),
	};
	/* The last page, zeros up to it, and the rest */
	file->phdrs[1] = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_offset = at + end, .p_paddr = BOX_PHYS + end,
		.p_filesz = BOX_PAGE, .p_memsz = BOX_PAGE,
	};
	file->phdrs[2] = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_offset = at, .p_paddr = BOX_PHYS,
		.p_filesz = 2 * BOX_PAGE, .p_memsz = 3 * BOX_PAGE,
	};
	file->phdrs[3] = (Elf64_Phdr) {
		.p_type = PT_LOAD, .p_offset = at + 3 * BOX_PAGE,
		.p_paddr = BOX_PHYS + 3 * BOX_PAGE,
		.p_filesz = end - 3 * BOX_PAGE, .p_memsz = end - 3 * BOX_PAGE,
	};
	file->note = (Elf64_Nhdr) { .n_namesz = sizeof("VMCOREINFO"), .n_descsz = 24 };
	memcpy(file->name, "VMCOREINFO", sizeof("VMCOREINFO"));
	memcpy(file->info, "A=12\nAB=zz\nB=1f\nB=2c0\nA", 24);
}

static int check_split_memory(const struct split_file *file)
{
	struct blackbox_memory *mem;
	u8 bytes[2 * BOX_PAGE];
	u64 value = 0;

	TEST_ASSERT_EQUAL("open", 0, blackbox_memory__open(&mem, file, sizeof(*file), -1));
	TEST_ASSERT_VAL("VMCOREINFO", blackbox_memory__vmcoreinfo(mem, "A", &value));
	TEST_ASSERT_VAL("a value", value == 0x12);
	TEST_ASSERT_VAL("the last one counts", blackbox_memory__vmcoreinfo(mem, "B", &value));
	TEST_ASSERT_VAL("its value", value == 0x2c0);
	TEST_ASSERT_VAL("no number", !blackbox_memory__vmcoreinfo(mem, "AB", &value));
	TEST_ASSERT_VAL("no such key", !blackbox_memory__vmcoreinfo(mem, "C", &value));

	memset(bytes, 1, sizeof(bytes));
	TEST_ASSERT_VAL("bytes and zeros", blackbox_memory__read(mem, BOX_PHYS + BOX_PAGE, bytes,
								 sizeof(bytes)));
	TEST_ASSERT_VAL("the bytes", !memcmp(bytes, file->image + BOX_PAGE, BOX_PAGE));
	for (int i = BOX_PAGE; i < 2 * BOX_PAGE; i++)
		TEST_ASSERT_VAL("zeros", !bytes[i]);
	TEST_ASSERT_VAL("beyond the end", !blackbox_memory__read(mem, BOX_PHYS + BOX_SIZE - 8,
								 bytes, 16));
	TEST_ASSERT_VAL("before the start", !blackbox_memory__read(mem, BOX_PHYS - 8, bytes, 16));
	TEST_ASSERT_VAL("what there is", !memcmp(bytes + 8, file->image, 8));
	blackbox_memory__close(mem);
	return TEST_OK;
}

/* makedumpfile -E splits an image. It is put together, and nothing is taken for missing. */
static int check_split_image(struct split_file *file)
{
	struct blackbox_find find;

	/* The page that the file is to have as zeros */
	memset(file->image + 2 * BOX_PAGE, 0, BOX_PAGE);
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, file, sizeof(*file), NULL));
	TEST_ASSERT_EQUAL("found", 1, (int)find.nr);
	TEST_ASSERT_VAL("all of it", find.images[0].size == BOX_SIZE && !find.images[0].left_out);
	TEST_ASSERT_VAL("its bytes", !memcmp(find.images[0].base, file->image, BOX_SIZE));
	blackbox_find__exit(&find);

	/* An image ends at a page that is in no segment. */
	file->phdrs[2].p_memsz = 2 * BOX_PAGE;
	file->phdrs[2].p_filesz = BOX_PAGE;
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, file, sizeof(*file), NULL));
	TEST_ASSERT_EQUAL("found", 1, (int)find.nr);
	TEST_ASSERT_VAL("cut off", find.images[0].size == 2 * BOX_PAGE);
	blackbox_find__exit(&find);
	return TEST_OK;
}

static int test__split_image(struct test_suite *test __maybe_unused,
			     int subtest __maybe_unused)
{
	struct split_file *file = new_bytes(sizeof(*file));
	int ret;

	if (!file)
		return TEST_FAIL;
	make_split_file(file);
	ret = check_split_memory(file) ?: check_split_image(file);
	free(file);
	return ret;
}

/* Scattered images */

static void put_scattered_box(struct box *box, void *bytes, bool backward)
{
	make_box(box, bytes, 2, backward);
	for (u64 i = 0; i < 500; i++) {
		put_sample(box, 0, i);
		put_sample(box, 1, i);
	}
	box__add_base(box, 0, 1, 1, START, "12345678", 8);
	box__add_task(box, 0, 7, "seven");
	box__die(box, "scattered", 1, START + 600 * MS);
}

static int check_same(const struct blackbox_session *a, const struct blackbox_session *b)
{
	TEST_ASSERT_EQUAL("events", (int)a->nr_events, (int)b->nr_events);
	TEST_ASSERT_EQUAL("buffers", (int)a->nr_buffers, (int)b->nr_buffers);
	TEST_ASSERT_EQUAL("damaged", 0, (int)(b->events_bad + b->buffers_bad + b->notes_bad));
	for (size_t i = 0; i < a->nr_buffers; i++) {
		const struct blackbox_cut *x = &a->buffers[i].cut;
		/* The newest event comes first. */
		const struct blackbox_cut *y = &b->buffers[a->nr_buffers - 1 - i].cut;

		TEST_ASSERT_EQUAL("records", (int)x->nr, (int)y->nr);
		TEST_ASSERT_VAL("some", x->nr > 10);
		TEST_ASSERT_VAL("bytes", x->len == y->len && !memcmp(x->bytes, y->bytes, x->len));
	}
	TEST_ASSERT_EQUAL("notes", (int)a->nr_notes, (int)b->nr_notes);
	TEST_ASSERT_EQUAL("size of a note", (int)a->notes[0].size, (int)b->notes[0].size);
	TEST_ASSERT_VAL("a note", !memcmp(a->notes[0].data, b->notes[0].data, a->notes[0].size));
	return TEST_OK;
}

/* All that is found in one piece is found all over the memory. */
static int check_scattered(struct box *box, void *bytes, bool backward)
{
	void *memory = new_bytes(SCATTERED_MEMORY);
	struct read_box whole, rb;
	int ret;

	if (!memory)
		return TEST_FAIL;
	put_scattered_box(box, bytes, backward);
	box__scatter(box, memory);
	TEST_ASSERT_EQUAL("one piece", 0, open_box(&whole, box));
	TEST_ASSERT_EQUAL("scattered", 0, open_bytes(&rb, memory, SCATTERED_MEMORY));
	ret = check_same(&whole.s, &rb.s);
	TEST_ASSERT_EQUAL("images", 1, (int)rb.find.nr);
	TEST_ASSERT_EQUAL("state", PERF_BLACKBOX_DEAD, (int)rb.find.images[0].state);
	TEST_ASSERT_EQUAL("tasks", 1, (int)rb.find.images[0].nr_tasks);
	TEST_ASSERT_VAL("reason", !strcmp(rb.find.images[0].death.reason, "scattered"));
	close_box(&rb);
	close_box(&whole);
	free(memory);
	return ret;
}

/* Each part in turn */
static struct perf_blackbox_part *next_part(void *memory, u64 *pos)
{
	for (; *pos < SCATTERED_MEMORY; *pos += BOX_PAGE) {
		struct perf_blackbox_part *part = memory + *pos;

		if (part->magic == PERF_BLACKBOX_PART_MAGIC) {
			*pos += BOX_PAGE;
			return part;
		}
	}
	return NULL;
}

static int count_records(const void *memory)
{
	struct read_box rb;
	int nr = 0;

	if (!open_bytes(&rb, memory, SCATTERED_MEMORY)) {
		for (size_t i = 0; i < rb.s.nr_buffers; i++)
			nr += rb.s.buffers[i].cut.nr;
	}
	close_box(&rb);
	return nr;
}

/*
 * Lists that are circles end. A part that is something else, or that is of another session,
 * costs itself and what follows on it.
 */
static int check_hostile_parts(struct box *box, void *bytes, bool backward)
{
	void *memory = new_bytes(SCATTERED_MEMORY);
	struct perf_blackbox_part *part;
	int all, nr_events = 0;

	if (!memory)
		return TEST_FAIL;
	put_scattered_box(box, bytes, backward);
	box__scatter(box, memory);
	all = count_records(memory);
	for (u64 pos = 0; (part = next_part(memory, &pos));) {
		const struct perf_blackbox_part saved = *part;
		u64 *pages = (void *)(part + 1), page = *pages;
		int nr;

		part->next = part->phys;
		/* A list of pages that begins with its end, and is full */
		if (saved.kind == PERF_BLACKBOX_PART_NOTES) {
			*pages = 0;
			pages[(BOX_PAGE - sizeof(*part)) / sizeof(*pages) - 1] = BOX_PAGE;
		}
		nr = count_records(memory);
		/* The first of two parts hides the other one. */
		if (saved.kind == PERF_BLACKBOX_PART_EVENTS && saved.next)
			nr *= 2;
		TEST_ASSERT_EQUAL("a circle", all, nr);
		*part = saved;
		if (saved.kind == PERF_BLACKBOX_PART_NOTES)
			*pages = page;
		if (saved.kind != PERF_BLACKBOX_PART_EVENTS)
			continue;
		nr_events++;
		part->session++;
		TEST_ASSERT_VAL("of another session", count_records(memory) < all);
		*part = saved;
		part->phys++;
		TEST_ASSERT_VAL("elsewhere", count_records(memory) < all);
		*part = saved;
		part->magic++;
		TEST_ASSERT_VAL("no part", count_records(memory) < all);
		*part = saved;
	}
	TEST_ASSERT_EQUAL("parts of events", 2, nr_events);
	TEST_ASSERT_EQUAL("as before", all, count_records(memory));
	free(memory);
	return TEST_OK;
}

/* What is counted as damaged of a session, and of its image */
struct damage {
	u32	events;
	u32	notes;
	u32	image;
};

static int expect_damage(const void *memory, const struct damage *expected)
{
	struct blackbox_session s = {};
	struct blackbox_find find;

	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, memory, SCATTERED_MEMORY, NULL));
	TEST_ASSERT_EQUAL("images", 1, (int)find.nr);
	TEST_ASSERT_EQUAL("image", (int)expected->image, (int)find.images[0].damaged);
	/* Without its part there is no session. */
	TEST_ASSERT_EQUAL("session", (expected->image ? -ENOENT : 0),
			  blackbox_session__init(&s, &find.images[0], 0));
	TEST_ASSERT_EQUAL("events", (int)expected->events, (int)s.events_bad);
	TEST_ASSERT_EQUAL("notes", (int)expected->notes, (int)s.notes_bad);
	TEST_ASSERT_EQUAL("buffers", 0, (int)s.buffers_bad);
	blackbox_session__exit(&s);
	blackbox_find__exit(&find);
	return TEST_OK;
}

/* More pages than one part has, and the next part is missing: they are not used. */
static int check_cut_slot(void *memory, struct perf_blackbox_part *part)
{
	const struct damage expected = { .notes = 1 };
	u8 saved[BOX_PAGE];
	u64 *pages = (void *)(part + 1);

	memcpy(saved, part, sizeof(saved));
	for (size_t i = 0; i < (BOX_PAGE - sizeof(*part)) / sizeof(*pages); i++)
		pages[i] = pages[i] ?: BOX_PAGE;
	TEST_ASSERT_EQUAL("a full part", TEST_OK, expect_damage(memory, &(struct damage) {}));
	part->next = BOX_PAGE;
	TEST_ASSERT_EQUAL("a cut slot", TEST_OK, expect_damage(memory, &expected));
	memcpy(part, saved, sizeof(saved));
	return TEST_OK;
}

/* A part that is missing is told, whatever leads to it. */
static int check_broken_links(struct box *box, void *bytes, bool backward)
{
	static const struct damage expected[] = {
		[PERF_BLACKBOX_PART_SESSION]	= { .image = 1 },
		[PERF_BLACKBOX_PART_EVENTS]	= { .events = 1 },
		[PERF_BLACKBOX_PART_NOTES]	= { .notes = 1 },
	};
	void *memory = new_bytes(SCATTERED_MEMORY);
	struct perf_blackbox_part *part;
	u8 saved[BOX_PAGE];
	int nr = 0;

	if (!memory)
		return TEST_FAIL;
	put_scattered_box(box, bytes, backward);
	box__scatter(box, memory);
	TEST_ASSERT_EQUAL("nothing", TEST_OK, expect_damage(memory, &(struct damage) {}));
	for (u64 pos = 0; (part = next_part(memory, &pos));) {
		u32 kind = part->kind;

		nr++;
		memcpy(saved, part, sizeof(saved));
		memset(part, 0, sizeof(saved));
		TEST_ASSERT_EQUAL("a part", TEST_OK, expect_damage(memory, &expected[kind]));
		memcpy(part, saved, sizeof(saved));
		if (kind == PERF_BLACKBOX_PART_NOTES &&
		    check_cut_slot(memory, part) != TEST_OK)
			return TEST_FAIL;
	}
	TEST_ASSERT_EQUAL("parts", 5, nr);
	free(memory);
	return TEST_OK;
}

/* Entries of a later kernel are larger: there is nothing to read, but it is told why. */
static int check_other_entries(struct box *box, void *bytes, bool backward)
{
	void *memory = new_bytes(SCATTERED_MEMORY);
	struct perf_blackbox_super *super = memory + SCATTERED_ROOT;
	struct box root = { .super = super };
	struct blackbox_find find;

	if (!memory)
		return TEST_FAIL;
	put_scattered_box(box, bytes, backward);
	box__scatter(box, memory);
	super->event_size += sizeof(u64);
	box__seal(&root);
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, memory, SCATTERED_MEMORY, NULL));
	TEST_ASSERT_EQUAL("images", 0, (int)find.nr);
	TEST_ASSERT_EQUAL("other versions", 1, (int)find.version);
	blackbox_find__exit(&find);
	free(memory);
	return TEST_OK;
}

static int test__scattered(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_scattered) ?: with_both(check_hostile_parts) ?:
	       with_both(check_broken_links) ?: with_both(check_other_entries);
}

static int check_foreign(struct box *box, void *bytes, bool backward)
{
	struct blackbox_find find;

	make_box(box, bytes, 1, backward);
	box->super->magic = bswap_64(PERF_BLACKBOX_MAGIC);
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, bytes, BOX_SIZE, NULL));
	TEST_ASSERT_VAL("other byte order", !find.nr && find.foreign == 1);
	blackbox_find__exit(&find);

	make_box(box, bytes, 1, backward);
	box->super->version++;
	box__seal(box);
	TEST_ASSERT_EQUAL("search", 0, blackbox_find__init(&find, bytes, BOX_SIZE, NULL));
	TEST_ASSERT_VAL("other version", !find.nr && find.version == 1);
	blackbox_find__exit(&find);
	return TEST_OK;
}

static int test__foreign(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_foreign, true);
}

/* A kernel of 32 bits: positions wrap at 4 GiB. And a file that ends within a buffer. */
static int check_others(struct box *box, void *bytes, bool backward)
{
	const u64 fit = RING / sizeof(struct box_sample), nr = 200;
	u64 start = backward ? nr * sizeof(struct box_sample) / 2 :
			       -(u64)(nr * sizeof(struct box_sample) / 2);
	struct read_box rb;
	int ret;

	make_box(box, bytes, 1, backward);
	box->super->long_size = sizeof(u32);
	box__seal(box);
	*box__head(box, 0) = (u32)start;
	for (u64 i = 0; i < nr; i++) {
		put_sample(box, 0, i);
		*box__head(box, 0) = (u32)*box__head(box, 0);
		box__publish(box, 0);
	}
	*box__head(box, 0) |= 0xabcdULL << 32;
	/* Half of the ring's worth is after the wrap; it is far from position 0 in any case. */
	TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
	TEST_ASSERT_VAL("records", rb.s.buffers[0].cut.nr == min(fit, nr / 2));
	ret = check_samples(&rb.s.buffers[0], nr - rb.s.buffers[0].cut.nr,
			    rb.s.buffers[0].cut.nr);
	close_box(&rb);

	make_box(box, bytes, 2, backward);
	put_sample(box, 0, 0);
	put_sample(box, 1, 0);
	TEST_ASSERT_EQUAL("it is read", 0,
			  open_bytes(&rb, bytes, box__buffer(box, 1)->data + RING / 2));
	TEST_ASSERT_EQUAL("buffers", 1, (int)rb.s.nr_buffers);
	TEST_ASSERT_EQUAL("damaged buffers", 1, (int)rb.s.buffers_bad);
	ret = ret ?: check_samples(&rb.s.buffers[0], 0, 1);
	close_box(&rb);
	return ret;
}

static int test__others(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_both(check_others);
}

/* The recording */

enum { NOTED, RENAMED, ALIVE, UNKNOWN, KERNEL, NR_TASKS };

#define TID(task)	(1000 + (task))

/**
 * struct reader - reads a recording with perf's session
 * @tool: its callbacks
 * @samples: number of samples
 * @time: of the last one
 * @bad: a sample of a task that has another name then, or that is out of order
 */
struct reader {
	struct perf_tool	tool;
	u64			samples;
	u64			time;
	u64			bad;
};

static const char *expected_name(u32 tid, u64 time)
{
	switch (tid - TID(0)) {
	case NOTED:
		return time <= START + 60 * MS ? "noted" : "later";
	case RENAMED:
		return time < START + 50 * MS ? ":1001" : "renamed";
	case ALIVE:
		return "alive";
	case KERNEL:
		return "kworker/0:1-eve";
	default:
		return ":1003";
	}
}

static int read_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
		       struct perf_sample *sample, struct evsel *evsel __maybe_unused,
		       struct machine *machine)
{
	struct reader *reader = container_of(tool, struct reader, tool);
	struct thread *thread = machine__findnew_thread(machine, sample->pid, sample->tid);
	const char *name = thread ? thread__comm_str(thread) : "";

	if (strcmp(name, expected_name(sample->tid, sample->time)) ||
	    sample->time < reader->time) {
		pr_debug("%u at %llu is %s\n", sample->tid, (unsigned long long)sample->time, name);
		reader->bad++;
	}
	reader->samples++;
	reader->time = sample->time;
	thread__put(thread);
	return 0;
}

DEFINE_TOOL_SAMPLE(read_sample)

static int read_recording(const char *path, struct reader *reader)
{
	struct perf_data data = { .mode = PERF_DATA_MODE_READ, .path = path };
	struct perf_session *session;
	int err;

	perf_tool__init(&reader->tool, /*ordered_events=*/true);
	reader->tool.sample = read_sample__of_tool;
	reader->tool.comm = perf_event__process_comm;
	reader->tool.fork = perf_event__process_fork;
	reader->tool.exit = perf_event__process_exit;
	reader->tool.mmap = perf_event__process_mmap;
	reader->tool.mmap2 = perf_event__process_mmap2;
	session = perf_session__new(&data, &reader->tool);
	if (IS_ERR(session))
		return PTR_ERR(session);
	err = perf_session__process_events(session);
	if (!err && strcmp(perf_env__arch(&session->header.env), "x86"))
		err = -EINVAL;
	if (!err && evlist__nr_entries(session->evlist) != 2)
		err = -EINVAL;
	if (!err && strcmp(evsel__name(evlist__first(session->evlist)), "cpu-clock"))
		err = -EINVAL;
	perf_session__delete(session);
	return err;
}

static int write_box(const struct box *box, const char *path, char **manifest, u64 *unresolved)
{
	struct blackbox_recording r = {};
	struct read_box rb;
	size_t size;
	FILE *f;
	int err = open_box(&rb, box);

	if (!err)
		err = blackbox_recording__init(&r, &rb.s);
	f = err ? NULL : fopen(path, "w");
	if (f) {
		err = blackbox_recording__write(&r, f);
		fclose(f);
		f = open_memstream(manifest, &size);
	}
	if (f) {
		err = err ?: blackbox_manifest__write(&r, path, 1, f);
		fclose(f);
	}
	*unresolved = r.unresolved;
	blackbox_recording__exit(&r);
	close_box(&rb);
	return f ? err : -EIO;
}

/*
 * The buffers say when a task got its name; the notes were written after that, and name it, too.
 * A task that only the notes know has its name from the start, until they were written if it had
 * another one at the death; a kernel thread keeps that of the notes. So has one that was alive.
 */
static void put_names(struct box *box)
{
	struct perf_event_attr attr = box__attr(PERF_COUNT_SW_DUMMY);
	struct box_comm renamed = box__comm(SIDEBAND_ID, 0, TID(RENAMED), "renamed",
					    START + 50 * MS);
	struct box_comm notes[] = {
		box__comm(0, 0, TID(NOTED), "noted", 0),
		box__comm(0, 0, TID(RENAMED), "renamed", 0),
		box__comm(0, 0, TID(KERNEL), "kworker/0:1-eve", 0),
	};
	u32 buffer = box__add_buffer(box, 0, RING, /*backward=*/true);

	box__add_event(box, 0, buffer, SIDEBAND_ID, &attr);
	box__write(box, buffer, &renamed, sizeof(renamed));
	box__add_base(box, 0, 0, 1, START + 60 * MS, notes, sizeof(notes));
	box__add_task(box, 0, TID(ALIVE), "alive");
	box__add_task(box, 1, TID(NOTED), "later");
	box__add_task(box, 2, TID(KERNEL), "kworker/0:1");
	box__task(box, 2)->flags = PERF_BLACKBOX_TASK_KERNEL;
	box__die(box, "Kernel panic - \"test\"\n", 3, START + 100 * MS);
}

static int check_recording(struct box *box, void *bytes, bool backward)
{
	char path[] = "/tmp/perf-blackbox.XXXXXX", *manifest = NULL;
	struct reader reader = {};
	int fd = mkstemp(path);
	u64 unresolved = 0;

	TEST_ASSERT_VAL("temporary file", fd >= 0);
	close(fd);
	make_box(box, bytes, 2, backward);
	for (u64 i = 0; i < 100; i++) {
		for (u32 cpu = 0; cpu < 2; cpu++) {
			u32 tid = TID((i + cpu) % NR_TASKS);
			struct box_sample sample = box__sample(ID(cpu), cpu, tid,
							       START + i * MS + cpu);

			box__write(box, cpu, &sample, sizeof(sample));
		}
	}
	put_names(box);
	TEST_ASSERT_EQUAL("it is written", 0, write_box(box, path, &manifest, &unresolved));
	TEST_ASSERT_EQUAL("it is read", 0, read_recording(path, &reader));
	unlink(path);
	TEST_ASSERT_EQUAL("samples", 200, (int)reader.samples);
	TEST_ASSERT_EQUAL("names and order", 0, (int)reader.bad);
	TEST_ASSERT_EQUAL("samples without a name", 40, (int)unresolved);
	TEST_ASSERT_VAL("reason", strstr(manifest, "\"reason\": \"Kernel panic - \\\"test\\\"?\""));
	TEST_ASSERT_VAL("samples in the manifest", strstr(manifest, "\"events\": 200,"));
	TEST_ASSERT_VAL("trigger time", strstr(manifest, "\"trigger_time\": 2.100000000,"));
	free(manifest);
	return TEST_OK;
}

static int test__recording(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_recording, true);
}

/*
 * perf opens no file in which the format of a tracepoint is missing: it is taken from the
 * notes, or made up.
 */
static int check_formats(struct box *box, void *bytes, bool backward)
{
	struct { struct perf_record_header_tracing_data head; char formats[4096]; } note = {
		.head.header = { .type = PERF_RECORD_HEADER_TRACING_DATA,
				 .size = sizeof(note.head) },
	};
	struct perf_blackbox_event *event;
	struct perf_event_attr attr;

	make_box(box, bytes, 1, backward);
	event = box__event(box, 0);
	memcpy(&attr, event->attr, sizeof(attr));
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = 4711;
	memcpy(event->attr, &attr, sizeof(attr));
	box__put_string(event->name, sizeof(event->name), "made:event");
	box__seal_entry(event, sizeof(*event));

	for (int noted = 0; noted < 2; noted++) {
		struct blackbox_recording r;
		struct read_box rb;
		char *field;

		TEST_ASSERT_EQUAL("it is read", 0, open_box(&rb, box));
		TEST_ASSERT_EQUAL("recording", 0, blackbox_recording__init(&r, &rb.s));
		TEST_ASSERT_EQUAL("formats", 0, blackbox_formats__make(&r, NULL));
		TEST_ASSERT_EQUAL("made up", noted ? 0 : 1, (int)r.formats_unknown);
		TEST_ASSERT_VAL("size", r.formats_size && r.formats_size < sizeof(note.formats));
		TEST_ASSERT_VAL("name", memmem(r.formats, r.formats_size,
					       "name: event\nID: 4711\n", 21));
		field = memmem(r.formats, r.formats_size, "common_pie;", 11);
		TEST_ASSERT_VAL("field of the notes", noted ? !!field : !field);

		/* The same formats with another field */
		memcpy(note.formats, r.formats, r.formats_size);
		field = memmem(note.formats, r.formats_size, "common_pid;", 11);
		if (field)
			field[9] = 'e';
		note.head.size = r.formats_size;
		box__add_base(box, 0, noted, noted + 1, START, &note,
			      sizeof(note.head) + PERF_ALIGN(r.formats_size, (size_t)8));
		blackbox_recording__exit(&r);
		close_box(&rb);
	}
	return TEST_OK;
}

static int test__formats(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	return with_box(check_formats, true);
}

/* Messages of the kernel */

/* Of pstore, of systemd, and what is neither; time in s behind the death */
static const struct {
	const char	*name;
	int		seconds;
	const char	*text;
} pstore[] = {
	{ "dmesg-ramoops-0",	1,	"Panic#2 Part1\n<0>[   10.5] the end\nECC: none\n" },
	{ "1/2/dmesg-efi-1",	1,	"Panic#2 Part2\n<6>[    9.0] before\nits second line\n" },
	{ "1/dmesg-erst-3",	2,	"Panic#2 Part3\n<\n6>[    8.0]\n<12>start\n<1234>\n<" },
	{ "1/dmesg-efi-4",	-1,	"Oops#1 Part1\n<4>[    1.0] an oops\n" },
	{ "dmesg-again",	20,	"Panic#2 Part1\n<4>[    1.0] of the next death\n" },
	{ "dmesg-other",	20,	"Panic#3 Part2\n<4>[    1.0] of the next death\n" },
	{ "dmesg-old",		-60,	"Panic#7 Part1\n<4>[    1.0] of another death\n" },
	{ "dmesg-later",	60,	"Panic#8 Part1\n<4>[    1.0] of another death\n" },
	{ "console-ramoops-0",	1,	"Panic#9 Part1\n<4>[    1.0] no dump\n" },
	{ "1/2/3/dmesg-deep",	1,	"Panic#2 Part9\n<4>[    1.0] too deep\n" },
	{ "dmesg-empty",	1,	"" },
	{ "dmesg-bad",		1,	"no number\n" },
	{ "dmesg-short",	1,	"Panic#2 Part8" },
};

static const char *const pstore_subdirs[] = { "1", "1/2", "1/2/3" };

static bool make_pstore(int dir, u64 died)
{
	bool good = true;

	for (size_t i = 0; i < ARRAY_SIZE(pstore_subdirs); i++)
		good = good && !mkdirat(dir, pstore_subdirs[i], 0700);
	for (size_t i = 0; i < ARRAY_SIZE(pstore); i++) {
		struct timespec times[2] = {};
		int fd = openat(dir, pstore[i].name, O_CREAT | O_WRONLY, 0600);
		ssize_t len = strlen(pstore[i].text);

		times[1].tv_sec = died / NSEC_PER_SEC + pstore[i].seconds;
		good = good && write(fd, pstore[i].text, len) == len && !futimens(fd, times);
		if (fd >= 0)
			close(fd);
	}
	return good;
}

static void remove_pstore(int dir, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(pstore); i++)
		unlinkat(dir, pstore[i].name, 0);
	for (size_t i = ARRAY_SIZE(pstore_subdirs); i > 0; i--)
		unlinkat(dir, pstore_subdirs[i - 1], AT_REMOVEDIR);
	close(dir);
	rmdir(path);
}

/* The lines of the manifest */
static int count_messages(const struct blackbox_messages *m, char **json)
{
	struct json_writer w;
	size_t size;
	int nr = 0;
	FILE *f = open_memstream(json, &size);

	if (!f)
		return -1;
	json_writer__init(&w, f);
	json_writer__begin_object(&w, NULL, JSON_STYLE__LINES);
	blackbox_messages__write(m, &w);
	json_writer__end(&w);
	fclose(f);
	for (const char *pos = *json; (pos = strstr(pos, "\n    \"")) != NULL; pos++)
		nr++;
	return nr;
}

static int test__messages(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	const u64 died = (u64)1700000000 * NSEC_PER_SEC;
	char path[] = "/tmp/perf-pstore-XXXXXX", *json = NULL, lines[8 * 150 + 1] = "";
	const char *const dirs[] = { "/no such directory", path };
	struct blackbox_messages m = {}, many = { .from = "pstore", .text = lines };
	int dir, err;

	TEST_ASSERT_VAL("directory", mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	err = make_pstore(dir, died) ? blackbox_pstore__read(&m, dirs, 2, died) : -EIO;
	remove_pstore(dir, path);
	TEST_ASSERT_EQUAL("pstore is read", 0, err);
	TEST_ASSERT_VAL("the parts of the report, in order",
			!strcmp(m.text, "<\n6>[    8.0]\nstart\n<1234>\n<\n"
				"[    9.0] before\nits second line\n[   10.5] the end\n"));
	TEST_ASSERT_EQUAL("each line", 8, count_messages(&m, &json));
	zfree(&json);
	blackbox_messages__exit(&m);
	TEST_ASSERT_EQUAL("no directory", -ENOENT, blackbox_pstore__read(&m, dirs, 2, died));
	TEST_ASSERT_EQUAL("no lines", 0, count_messages(&m, &json));
	zfree(&json);

	for (int i = 0; i < 150; i++)
		sprintf(lines + 8 * i, "line%03d\n", i);
	TEST_ASSERT_EQUAL("the last lines", BLACKBOX_MAX_MESSAGES, count_messages(&many, &json));
	err = strstr(json, "line049") || !strstr(json, "line050") || !strstr(json, "line149");
	free(json);
	TEST_ASSERT_EQUAL("they are the last", 0, err);
	return TEST_OK;
}

/* Random damage */

/* A record whose id and CPU are those of its buffer: what the checks promise */
static bool is_plausible(const struct blackbox_item *item)
{
	const struct box_sample *sample = item->data;
	const struct box_comm *comm = item->data;

	switch (sample->header.type) {
	case PERF_RECORD_SAMPLE:
		return sample->id == ID(sample->cpu) && sample->cpu < 2 &&
		       sample->header.size == sizeof(*sample);
	case PERF_RECORD_COMM:
		return memchr(comm->comm, '\0', sizeof(comm->comm));
	default:
		return true;
	}
}

static int recover_damaged(const void *bytes, u64 size, u64 *samples)
{
	struct blackbox_recording r = {};
	struct read_box rb;
	int err = open_bytes(&rb, bytes, size);

	if (!err)
		err = blackbox_recording__init(&r, &rb.s);
	for (size_t i = 0; i < r.nr_items && !err; i++) {
		if ((i && r.items[i].time < r.items[i - 1].time) || !is_plausible(&r.items[i]))
			err = -EFAULT;
	}
	*samples += r.events;
	blackbox_recording__exit(&r);
	close_box(&rb);
	return err;
}

static int test__random_damage(struct test_suite *test __maybe_unused,
			       int subtest __maybe_unused)
{
	const u64 nr = 300;
	u8 *good = new_bytes(BOX_SIZE), *bad = new_bytes(BOX_SIZE);
	u64 samples = 0, most = 0;
	struct box box;
	int err = 0;

	if (!good || !bad)
		return TEST_FAIL;
	make_box(&box, good, 2, /*backward=*/true);
	for (u64 i = 0; i < 1000; i++) {
		put_sample(&box, 0, i);
		put_sample(&box, 1, i);
	}
	put_names(&box);
	err = recover_damaged(good, BOX_SIZE, &most);
	for (u64 seed = 0; seed < nr && !err; seed++) {
		u64 size = BOX_SIZE;

		random_seed(seed);
		memcpy(bad, good, BOX_SIZE);
		for (u64 i = random_number(20); i; i--) {
			u64 value = random_number(~0ULL), where = random_number(box.heap - 8);

			/* Mostly where there is something. */
			memcpy(bad + where, &value, 1 + random_number(8));
		}
		if (!random_number(4))
			size = random_number(BOX_SIZE);
		err = recover_damaged(bad, size, &samples);
		if (err == -ENOENT || err == -ENODATA)
			err = 0;
		if (err)
			pr_debug("seed %llu: %d\n", (unsigned long long)seed, err);
	}
	free(good);
	free(bad);
	TEST_ASSERT_EQUAL("damaged images", 0, err);
	TEST_ASSERT_VAL("most is recovered", samples > most * nr / 3);
	return TEST_OK;
}

static struct test_case tests__blackbox[] = {
	TEST_CASE("Black box: ring buffers", buffers),
	TEST_CASE("Black box: a writer in flight", in_flight),
	TEST_CASE("Black box: damaged records", damaged_records),
	TEST_CASE("Black box: wrong times", wrong_times),
	TEST_CASE("Black box: lengths and strings", bodies),
	TEST_CASE("Black box: damaged directories", directories),
	TEST_CASE("Black box: notes that were cut short", notes),
	TEST_CASE("Black box: hostile notes", hostile_notes),
	TEST_CASE("Black box: clocks", clocks),
	TEST_CASE("Black box: messages of pstore", messages),
	TEST_CASE("Black box: layouts of samples", layouts),
	TEST_CASE("Black box: copies in memory", own_address),
	TEST_CASE("Black box: forged images", forged_images),
	TEST_CASE("Black box: core file", core_file),
	TEST_CASE("Black box: image in several segments", split_image),
	TEST_CASE("Black box: scattered over the memory", scattered),
	TEST_CASE("Black box: other byte order and version", foreign),
	TEST_CASE("Black box: 32 bits, and a short file", others),
	TEST_CASE("Black box: recording", recording),
	TEST_CASE("Black box: formats of tracepoints", formats),
	TEST_CASE("Black box: random damage", random_damage),
	{ .name = NULL, }
};

struct test_suite suite__blackbox = {
	.desc = "Black box of a dead machine",
	.test_cases = tests__blackbox,
};
