// SPDX-License-Identifier: GPL-2.0
/*
 * libperf's reader of backward ring buffers, against a buffer of our own that
 * plays the kernel: with records reserved but not published, at every alignment
 * and length, the reader keeps exactly those records that cannot have been
 * touched; it halves the copy when it is lapped; incremental snapshots neither
 * repeat nor skip, and state what is missing; and whatever the shared pages
 * contain, it stays within bounds.
 */
#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>

#include <perf/event.h>

#include "rb_common.h"

/* The reader's system calls on the file descriptor come here, and its copies. */
static int fake_ioctl(int fd, unsigned long cmd, void *arg);
static void *fake_memcpy(void *to, const void *from, size_t len);
#define ioctl(fd, cmd, arg)	fake_ioctl(fd, cmd, (void *)(arg))
#define memcpy(to, from, len)	fake_memcpy(to, from, len)
#include "../../../lib/perf/snapshot.c"
#undef memcpy
#undef ioctl

#include "../kselftest_harness.h"

#define NO_IOCTL	PERF_SNAPSHOT_NO_IOCTL
#define NO_HOP		PERF_SNAPSHOT_NO_HOP
#define NO_PAUSE	PERF_SNAPSHOT_NO_PAUSE
#define MAX_RECORDS	(64 * 1024)

/*
 * The kernel's side
 */

static struct {
	unsigned char	*base;		/* header page, data, and a page to fault on */
	uint64_t	size;
	uint64_t	head;		/* reserved */
	uint64_t	mask;		/* width of head */
	uint64_t	seq;
	int		published;	/* of the records below */
	int		paused;
	int		err;		/* of RESERVED_HEAD */
	uint64_t	claimed_size;	/* its answer */
	uint64_t	laps[16];	/* bytes to write before each answer */
	uint64_t	answers[16];
	uint64_t	races[16];	/* bytes to write in the middle of each copy */
	int		calls;
	int		copies;
} ring;

/* All records, the oldest first; where each one is */
static struct {
	uint64_t	pos;
	uint32_t	size;
} records[MAX_RECORDS];

static struct perf_event_mmap_page *header(void)
{
	return (struct perf_event_mmap_page *)ring.base;
}

static unsigned char *data_at(uint64_t pos)
{
	return ring.base + getpagesize() + (pos & (ring.size - 1));
}

/* The bytes of a record follow from its number, which is its place in records. */
static unsigned char byte_of(uint64_t seq, int i)
{
	return seq * 7 + i * 13 + (seq >> 8);
}

static void reserve(unsigned int size)
{
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE, .size = size };
	unsigned int i;

	ring.head = (ring.head - size) & ring.mask;
	for (i = 0; i < sizeof(h); i++)
		*data_at(ring.head + i) = ((unsigned char *)&h)[i];
	for (; i < size; i++)
		*data_at(ring.head + i) = byte_of(ring.seq, i);
	records[ring.seq].pos = ring.head;
	records[ring.seq].size = size;
	ring.seq++;
}

static void publish(void)
{
	header()->data_head = ring.head;
	ring.published = ring.seq;
}

/* Records of any size, until @bytes are written or a few more */
static void write_bytes(uint64_t bytes)
{
	uint64_t size;

	while (bytes && ring.seq < MAX_RECORDS) {
		size = 8 * (2 + rand() % 40);
		reserve(size);
		publish();
		bytes -= bytes < size ? bytes : size;
	}
}

static int fake_ioctl(int fd, unsigned long cmd, void *arg)
{
	struct perf_rb_reserved *reserved = arg;

	if (cmd == PERF_EVENT_IOC_PAUSE_OUTPUT) {
		ring.paused += arg ? 1 : -1;
		return 0;
	}

	if (!ring.err && cmd == PERF_EVENT_IOC_RESERVED_HEAD) {
		write_bytes(ring.laps[ring.calls % 16]);
		reserved->behind = (reserved->head - ring.head) & ring.mask;
		ring.answers[ring.calls++ % 16] = reserved->behind;
		reserved->data_size = ring.claimed_size;
		return 0;
	}
	errno = ring.err ? ring.err : EINVAL;
	return -1;
}

/* What is copied from the buffer may change while it is copied. */
static void *fake_memcpy(void *to, const void *from, size_t len)
{
	size_t half = 0;

	if ((unsigned char *)from >= ring.base + getpagesize() &&
	    (unsigned char *)from < ring.base + getpagesize() + ring.size) {
		half = len / 2;
		memcpy(to, from, half);
		write_bytes(ring.races[ring.copies++ % 16]);
	}
	return memcpy((char *)to + half, (const char *)from + half, len - half);
}

/*
 * The reader's side
 */

static struct perf_snapshot *snap;
static const struct perf_snapshot_info *info;

static void start(uint64_t size, uint64_t head, uint64_t mask)
{
	const size_t page_size = getpagesize();
	const size_t len = page_size + size;

	memset(&ring, 0, sizeof(ring));
	ring.base = mmap(NULL, len + page_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring.base == MAP_FAILED || mprotect(ring.base + len, page_size, PROT_NONE))
		abort();
	ring.size = size;
	ring.claimed_size = size;
	ring.mask = mask;
	ring.head = head;
	header()->data_offset = page_size;
	header()->data_size = size;
	header()->data_head = head;
}

static struct perf_snapshot *reader(void)
{
	struct perf_snapshot_buffer buf = {
		.fd = -1, .cpu = 0, .base = ring.base, .len = getpagesize() + ring.size,
	};

	snap = perf_snapshot__new(&buf);
	if (snap)
		info = perf_snapshot__info(snap);
	return snap;
}

static void stop(void)
{
	perf_snapshot__delete(snap);
	snap = NULL;
	munmap(ring.base, 2 * getpagesize() + ring.size);
}

/* The record is number @seq, with each of its bytes. */
static bool is_record(const union perf_event *event, uint64_t seq)
{
	const unsigned char *bytes = (const void *)event;
	struct perf_event_header h;
	int i;

	memcpy(&h, event, sizeof(h));
	if (h.size != records[seq].size)
		return false;
	for (i = sizeof(h); i < h.size; i++)
		if (bytes[i] != byte_of(seq, i))
			return false;
	return true;
}

/* The snapshot holds the records first..last, in both directions. */
static bool holds(int first, int last)
{
	union perf_event *event = NULL;
	int seq;

	if (info->nr_records != (uint64_t)(last - first + 1))
		return false;
	for (seq = first; (event = perf_snapshot__newer(snap, event)); seq++)
		if (!is_record(event, seq))
			return false;
	if (seq != last + 1)
		return false;
	for (seq = last; (event = perf_snapshot__older(snap, event)); seq--)
		if (!is_record(event, seq))
			return false;
	return seq == first - 1;
}

/* The oldest published record whose @intact bytes from head on hold it */
static int oldest_within(uint64_t intact)
{
	uint64_t head = header()->data_head;
	int i;

	for (i = ring.published - 1; i >= 0; i--)
		if (((records[i].pos - head) & ring.mask) + records[i].size > intact)
			break;
	return i + 1;
}

/*
 * What is in flight
 */

/*
 * For every length of an unpublished record and many places of the head: all is
 * kept but what that record lies on. One unit more or less, and this fails.
 */
TEST(boundary)
{
	unsigned int size, round;

	for (round = 0; round < 8; round++) {
		for (size = 8; size <= 2048; size += 8) {
			start(4096, 0, ~0ULL);
			ASSERT_NE(NULL, reader());
			write_bytes(2 * 4096 + 8 * (rand() % 512));
			reserve(size);
			ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
			ASSERT_EQ(size, info->behind);
			ASSERT_EQ(size, info->given_up);
			ASSERT_TRUE(info->wrapped);
			ASSERT_TRUE(holds(oldest_within(4096 - size), ring.published - 1));
			stop();
		}
	}
}

/* Which record lies at @pos */
static int record_at(uint64_t pos)
{
	int i;

	for (i = ring.seq - 1; i >= 0 && records[i].pos != pos; i--)
		;
	return i;
}

/*
 * The writer runs on during the copy and between its pieces, slower and faster
 * than it.
 * However it comes, no record is torn or missing in between, up to the newest
 * one. If it never catches up with the copy then all that is given up is what
 * was reserved when the first piece had been copied, to the byte.
 */
TEST(pieces)
{
	const uint64_t size = 16384, piece = 1024;
	unsigned int round, i, exact = 0, caught_up = 0;
	uint64_t speed, done;
	bool ahead;
	int last;

	for (round = 0; round < 1000; round++) {
		start(size, 0, ~0ULL);
		ASSERT_NE(NULL, reader());
		write_bytes(2 * size + 8 * (rand() % 512));
		if (rand() % 2)
			reserve(8 * (2 + rand() % 60));
		speed = rand() % 4;
		for (i = 0; i < 16; i++) {
			ring.laps[i] = rand() % 2 * 8 * (rand() % (1 + 40 * speed));
			ring.races[i] = rand() % 2 * 8 * (rand() % (1 + 40 * speed));
		}

		ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
		last = record_at(info->head);
		ASSERT_GE(last, 0);
		ASSERT_TRUE(holds(last + 1 - info->nr_records, last));

		/* Pieces of 1, 1, 2, 4 and 8 KiB */
		ahead = !info->retries;
		for (i = 1, done = piece; ahead && done < size; i++, done *= 2)
			ahead = ring.answers[i] <= done;
		if (ahead) {
			ASSERT_EQ(5, ring.calls);
			ASSERT_EQ(ring.answers[0], info->given_up);
			exact += info->given_up < info->behind;
		}
		caught_up += !ahead;
		stop();
	}
	EXPECT_GT(exact, 50);
	EXPECT_GT(caught_up, 50);
}

/* A record across the end of the data area, at every place */
TEST(wrap)
{
	unsigned int shift;

	for (shift = 8; shift < 4096; shift += 8) {
		start(4096, 0, ~0ULL);
		ASSERT_NE(NULL, reader());
		reserve(4096 - 64);
		reserve(shift);
		reserve(256);
		reserve(1024);
		publish();
		ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
		ASSERT_TRUE(holds(oldest_within(4096), 3));
		ASSERT_EQ(0, info->given_up);
		stop();
	}
}

/* Until it has wrapped, the buffer holds everything. */
TEST(young)
{
	start(16384, 0, ~0ULL);
	ASSERT_NE(NULL, reader());

	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_EQ(0, info->nr_records);
	EXPECT_EQ(NULL, perf_snapshot__older(snap, NULL));
	EXPECT_EQ(NULL, perf_snapshot__newer(snap, NULL));

	write_bytes(10000);
	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_TRUE(holds(0, ring.published - 1));
	EXPECT_FALSE(info->wrapped);
	stop();
}

/*
 * Lapped
 */

/* By chance: the next copy is as long. */
TEST(lapped_once)
{
	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(100000);
	ring.laps[0] = 70000;

	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_EQ(1, info->retries);
	EXPECT_EQ(0, info->given_up);
	EXPECT_TRUE(holds(oldest_within(65536), ring.published - 1));
	stop();
}

TEST(lapped_twice)
{
	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(100000);
	ring.laps[0] = 70000;
	ring.laps[1] = 70000;

	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_EQ(2, info->retries);
	EXPECT_EQ(32768, info->given_up);
	EXPECT_EQ(PERF_SNAPSHOT_IOCTL, info->way);
	EXPECT_TRUE(holds(oldest_within(32768), ring.published - 1));
	stop();
}

/* A reader that is always too slow says so, or pauses, and resumes. */
TEST(lapped_always)
{
	int i;

	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(100000);
	for (i = 0; i < 16; i++)
		ring.laps[i] = 65536;

	EXPECT_EQ(-EAGAIN, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_EQ(0, info->nr_records);
	EXPECT_EQ(PERF_SNAPSHOT_NONE, info->way);

	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP));
	EXPECT_EQ(PERF_SNAPSHOT_PAUSE, info->way);
	EXPECT_EQ(0, ring.paused);
	EXPECT_TRUE(holds(oldest_within(65536), ring.published - 1));
	stop();
}

/* An unknown ioctl is not asked for again; a refused one may be granted later. */
TEST(unknown_and_refused)
{
	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(100000);

	ring.err = EPERM;
	EXPECT_EQ(-EOPNOTSUPP, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	ring.err = EINVAL;
	EXPECT_EQ(-EINVAL, perf_snapshot__take(snap, 0));
	ring.err = 0;
	EXPECT_EQ(0, perf_snapshot__take(snap, 0));
	EXPECT_EQ(PERF_SNAPSHOT_IOCTL, info->way);

	ring.err = ENOTTY;
	EXPECT_EQ(-EOPNOTSUPP, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	ring.err = 0;
	EXPECT_EQ(-EOPNOTSUPP, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_EQ(0, perf_snapshot__take(snap, 0));
	EXPECT_EQ(PERF_SNAPSHOT_HOP, info->way);
	EXPECT_TRUE(holds(oldest_within(65536), ring.published - 1));
	stop();
}

/* Hopping leaves the thread where it was allowed to run before. */
TEST(affinity)
{
	cpu_set_t before, after;
	int cpu;

	start(4096, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(10000);
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
	for (cpu = -1; cpu < 1; cpu++) {
		snap->buf.cpu = cpu;
		EXPECT_EQ(0, perf_snapshot__take(snap, NO_IOCTL | NO_PAUSE));
		ASSERT_EQ(0, sched_getaffinity(0, sizeof(after), &after));
		EXPECT_TRUE(CPU_EQUAL(&before, &after));
	}
	stop();
}

/*
 * Incremental
 */

static void check_incremental(struct __test_metadata *_metadata)
{
	const unsigned int flags = NO_HOP | NO_PAUSE | PERF_SNAPSHOT_INCREMENTAL;
	uint64_t head;
	int seen, i;

	ASSERT_NE(NULL, reader());
	write_bytes(50000);
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	EXPECT_EQ(0, info->gap);
	EXPECT_TRUE(holds(oldest_within(16384), ring.published - 1));

	/* No record twice, none left out */
	for (i = 0; i < 100; i++) {
		seen = ring.published;
		write_bytes(rand() % 16000);
		ASSERT_EQ(0, perf_snapshot__take(snap, flags));
		ASSERT_EQ(0, info->gap);
		ASSERT_EQ(0, info->given_up);
		ASSERT_TRUE(holds(seen, ring.published - 1));
	}

	/* Lapped in between: the gap is what is missing, to the byte. */
	head = header()->data_head;
	write_bytes(40000);
	head = (head - header()->data_head) & ring.mask;
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	EXPECT_TRUE(holds(oldest_within(16384), ring.published - 1));
	EXPECT_EQ(head - info->len, info->gap);
	EXPECT_GT(info->gap, 0);
	stop();
}

TEST(incremental)
{
	start(16384, 0, ~0ULL);
	check_incremental(_metadata);
}

/* A 32-bit kernel, whose head passes 0 */
TEST(incremental_32bit)
{
	start(16384, 0x80000000, 0xffffffff);
	check_incremental(_metadata);
}

/* A buffer to which nothing was written is not copied, not asked for, and has no memory. */
TEST(nothing_new)
{
	const unsigned int flags = NO_HOP | NO_PAUSE | PERF_SNAPSHOT_INCREMENTAL;
	int calls, i;

	start(16384, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(50000);
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	perf_snapshot__trim(snap);
	EXPECT_EQ(NULL, snap->copy);

	calls = ring.calls;
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, perf_snapshot__take(snap, flags));
		EXPECT_EQ(0, info->nr_records);
		EXPECT_EQ(0, info->len + info->gap + info->given_up);
		EXPECT_EQ(PERF_SNAPSHOT_IOCTL, info->way);
		EXPECT_EQ(header()->data_head, info->head);
		EXPECT_TRUE(info->wrapped);
		EXPECT_EQ(NULL, perf_snapshot__newer(snap, NULL));
		perf_snapshot__trim(snap);
	}
	EXPECT_EQ(calls, ring.calls);
	EXPECT_EQ(NULL, snap->copy);

	/* What is only reserved is not new yet, and it is found when it is complete. */
	i = ring.published;
	reserve(64);
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	EXPECT_EQ(0, info->nr_records);
	publish();
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	EXPECT_TRUE(holds(i, ring.published - 1));
	EXPECT_EQ(calls + 1, ring.calls);
	stop();
}

/* The memory that is kept follows what was written lately; no record is lost for it. */
TEST(trim)
{
	const unsigned int flags = NO_HOP | NO_PAUSE | PERF_SNAPSHOT_INCREMENTAL;
	const size_t page = getpagesize();
	unsigned char *copy;
	int i, seen;

	start(1 << 20, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	for (i = 0; i < 200; i++) {
		seen = ring.published;
		write_bytes(i == 100 ? 500000 : 1 + rand() % 3000);
		ASSERT_EQ(0, perf_snapshot__take(snap, flags));
		ASSERT_EQ(0, info->gap);
		ASSERT_TRUE(holds(seen, ring.published - 1));
		copy = snap->copy;
		if (i == 100)
			EXPECT_GE(snap->populated, 500000);
		perf_snapshot__trim(snap);
		EXPECT_EQ(0, info->nr_records);
		if (i)
			EXPECT_EQ(copy, snap->copy);
	}
	/* It is not freed and allocated again, but was after the burst. */
	EXPECT_NE(NULL, snap->copy);
	EXPECT_GT(snap->populated, 0);
	EXPECT_LE(snap->populated, 4 * page);

	/* A full one is for once. */
	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_TRUE(holds(0, ring.published - 1));
	perf_snapshot__trim(snap);
	EXPECT_LE(snap->populated, 4 * page);
	stop();
}

/*
 * Parts
 */

/* The bytes of the buffer from @pos on */
static bool is_at(uint64_t pos, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != *data_at(pos + i))
			return false;
	return true;
}

/* The oldest bytes, as far as no record that is being written lies on them */
TEST(oldest)
{
	const unsigned int flags = NO_HOP | NO_PAUSE;
	unsigned int size;
	const void *bytes;
	size_t len;

	for (size = 8; size <= 2048; size += 8) {
		start(16384, 0, ~0ULL);
		ASSERT_NE(NULL, reader());
		write_bytes(2 * 16384 + 8 * (rand() % 512));
		reserve(size);
		bytes = perf_snapshot__take_oldest(snap, 4096, flags, &len);
		ASSERT_NE(NULL, bytes);
		ASSERT_EQ(4096 - size, len);
		ASSERT_TRUE(is_at(info->head + 16384 - 4096, bytes, len));
		ASSERT_TRUE(info->wrapped);
		ASSERT_EQ(0, info->nr_records);
		stop();
	}

	/* A buffer that is not full ends with its first record. */
	start(16384, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	bytes = perf_snapshot__take_oldest(snap, 4096, flags, &len);
	EXPECT_NE(NULL, bytes);
	EXPECT_EQ(0, len);
	write_bytes(10000);
	bytes = perf_snapshot__take_oldest(snap, 4096, flags, &len);
	ASSERT_NE(NULL, bytes);
	EXPECT_EQ(4096, len);
	EXPECT_TRUE(is_at(-4096, bytes, len));
	EXPECT_TRUE(is_record(bytes + len - records[0].size, 0));
	EXPECT_FALSE(info->wrapped);
	bytes = perf_snapshot__take_oldest(snap, 0, flags, &len);
	ASSERT_NE(NULL, bytes);
	EXPECT_EQ(-header()->data_head, len);
	stop();
}

/* Both leave alone what is read incrementally. */
TEST(newest)
{
	const unsigned int flags = NO_HOP | NO_PAUSE;
	size_t len;
	int seen;

	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(200000);
	ASSERT_EQ(0, perf_snapshot__take(snap, flags));
	seen = ring.published;
	write_bytes(10000);
	ASSERT_EQ(0, perf_snapshot__take_newest(snap, 4096, flags));
	EXPECT_TRUE(holds(oldest_within(4096), ring.published - 1));
	EXPECT_NE(NULL, perf_snapshot__take_oldest(snap, 4096, flags, &len));
	ASSERT_EQ(0, perf_snapshot__take(snap, flags | PERF_SNAPSHOT_INCREMENTAL));
	EXPECT_TRUE(holds(seen, ring.published - 1));
	EXPECT_EQ(0, info->gap);
	stop();
}

/*
 * Walking
 */

static bool size_as_time(const union perf_event *event, void *data, __u64 *time)
{
	struct perf_event_header h;

	memcpy(&h, event, sizeof(h));
	*time = (uint64_t)h.size;
	/* Records larger than this have no time. */
	return h.size <= *(unsigned int *)data;
}

TEST(random_steps)
{
	union perf_event *event, *back;
	int i, n;

	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(200000);
	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));

	for (i = 0; i < 1000; i++) {
		event = perf_snapshot__older(snap, NULL);
		for (n = rand() % (info->nr_records - 1); n; n--)
			event = perf_snapshot__older(snap, event);
		back = perf_snapshot__older(snap, event);
		/* From far away, the place must be searched for. */
		perf_snapshot__older(snap, NULL);
		ASSERT_EQ(event, perf_snapshot__newer(snap, back));
		perf_snapshot__newer(snap, NULL);
		ASSERT_EQ(back, perf_snapshot__older(snap, event));
	}
	stop();
}

TEST(window)
{
	__u64 oldest, newest;
	unsigned int max;

	start(4096, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	reserve(800);
	reserve(40);
	reserve(24);
	reserve(48);
	reserve(600);
	publish();
	ASSERT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));

	max = 1000;
	EXPECT_EQ(0, perf_snapshot__window(snap, size_as_time, &max, &oldest, &newest));
	EXPECT_EQ(800, oldest);
	EXPECT_EQ(600, newest);
	max = 100;
	EXPECT_EQ(0, perf_snapshot__window(snap, size_as_time, &max, &oldest, &newest));
	EXPECT_EQ(40, oldest);
	EXPECT_EQ(48, newest);
	max = 8;
	EXPECT_EQ(-ENOENT, perf_snapshot__window(snap, size_as_time, &max, &oldest, &newest));
	stop();
}

/*
 * Hostile buffers
 */

TEST(bad_mappings)
{
	const size_t page = getpagesize();
	struct perf_snapshot_buffer buf;

	start(4 * page, 0, ~0ULL);
	buf = (struct perf_snapshot_buffer) { .base = ring.base, .len = 5 * page };
	errno = 0;

	buf.len = page;
	EXPECT_EQ(NULL, perf_snapshot__new(&buf));
	EXPECT_EQ(EINVAL, errno);
	buf.len = 4 * page;
	EXPECT_EQ(NULL, perf_snapshot__new(&buf));
	EXPECT_EQ(EINVAL, errno);
	buf.len = 5 * page - 8;
	EXPECT_EQ(NULL, perf_snapshot__new(&buf));
	EXPECT_EQ(EINVAL, errno);
	buf.len = 5 * page;
	buf.cpu = -2;
	EXPECT_EQ(NULL, perf_snapshot__new(&buf));
	EXPECT_EQ(EINVAL, errno);
	buf.cpu = 1 << 30;
	EXPECT_EQ(NULL, perf_snapshot__new(&buf));
	EXPECT_EQ(EINVAL, errno);
	stop();
}

TEST(bad_header_page)
{
	static const uint64_t absurd[] = { 1, 4096, 1ULL << 40, -1ULL, -4096ULL };
	unsigned int i;

	start(65536, 0, ~0ULL);
	for (i = 0; i < 5; i++) {
		header()->data_size = absurd[i];
		EXPECT_EQ(NULL, reader());
		EXPECT_EQ(EBADMSG, errno);
		header()->data_size = 65536;

		header()->data_offset = absurd[i] + 8;
		EXPECT_EQ(NULL, reader());
		EXPECT_EQ(EBADMSG, errno);
		header()->data_offset = getpagesize();
	}

	/* Kernels before 4.1 leave both at 0. */
	header()->data_offset = 0;
	header()->data_size = 0;
	ASSERT_NE(NULL, reader());

	/* The size is looked at once; that it changes later does no harm. */
	header()->data_size = -1ULL;
	write_bytes(100000);
	EXPECT_EQ(0, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	EXPECT_TRUE(holds(oldest_within(65536), ring.published - 1));

	/* The kernel knows the size. */
	ring.claimed_size = 4096;
	EXPECT_EQ(-EBADMSG, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
	ring.claimed_size = 65536;

	header()->data_head += 4;
	EXPECT_EQ(-EBADMSG, perf_snapshot__take(snap, 0));
	stop();
}

TEST(bad_records)
{
	static const struct {
		uint32_t	type;
		uint16_t	size;
	} bad[] = {
		{ PERF_RECORD_SAMPLE, 0 }, { PERF_RECORD_SAMPLE, 4 },
		{ PERF_RECORD_SAMPLE, 12 }, { 0, 16 }, { 0, 0 },
	};
	struct perf_event_header h = {};
	unsigned int i;

	start(65536, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	write_bytes(100000);
	for (i = 0; i < 5; i++) {
		h.type = bad[i].type;
		h.size = bad[i].size;
		memcpy(data_at(records[ring.seq - 10].pos), &h, sizeof(h));
		EXPECT_EQ(-EBADMSG, perf_snapshot__take(snap, NO_HOP | NO_PAUSE));
		EXPECT_EQ(0, info->nr_records);
	}
	stop();
}

/* Noise, at any head: an error, or records that lie within the snapshot. */
TEST(noise)
{
	unsigned int i, round, taken = 0;
	unsigned char *data;
	size_t len;

	start(8192, 0, ~0ULL);
	ASSERT_NE(NULL, reader());
	for (round = 0; round < 2000; round++) {
		union perf_event *event = NULL;

		for (i = 0; i < 8192; i += 8) {
			struct perf_event_header h = {
				.type = rand() % 3,
				.misc = rand(),
				.size = rand() % 8 ? 8 * (rand() % 64) : rand(),
			};
			memcpy(data_at(i), &h, sizeof(h));
		}
		header()->data_head = ((uint64_t)rand() << 33) + 8ULL * rand();
		ring.head = header()->data_head - (rand() % 2 ? 0 : 8 * (rand() % 2000));

		if (perf_snapshot__take(snap, NO_HOP | NO_PAUSE |
					(rand() % 2 ? PERF_SNAPSHOT_INCREMENTAL : 0)))
			continue;
		taken++;
		data = perf_snapshot__data(snap, &len);
		ASSERT_LE(len, 8192);
		while ((event = perf_snapshot__older(snap, event))) {
			ASSERT_EQ((void *)data, (void *)event);
			ASSERT_GE(event->header.size, 8);
			data += event->header.size;
		}
		ASSERT_EQ(data, (unsigned char *)perf_snapshot__data(snap, &len) + len);
	}
	EXPECT_GT(taken, 0);
	stop();
}

TEST_HARNESS_MAIN
