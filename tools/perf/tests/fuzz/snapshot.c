// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for the live reader of backward buffers, tools/lib/perf/snapshot.c.
 * The first byte of the input decides what the buffer is:
 *
 * A kernel's: records with serial numbers are written to it, as the input says, before
 * each snapshot and whenever the reader asks what is reserved, some of them not yet
 * complete. The properties: no record is torn; the newest one is the one that data_head
 * showed; there is none between them missing; an incremental snapshot without a gap
 * follows the one before.
 *
 * Anybody's: header page, records and answers are what the input says. The properties:
 * records lie in the copy, one behind the other, the same ones in both directions.
 *
 * tests/shell/flight_fuzz.sh builds and runs it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <linux/compiler.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

static int fake_ioctl(int fd, unsigned long request, void *arg);
#define ioctl(fd, request, arg)	fake_ioctl(fd, request, (void *)(arg))
#include "../../../lib/perf/snapshot.c"

#define PAGE		4096
#define MAX_SIZE	(4 * PAGE)
#define MAX_RECORD	512

static unsigned char mapping[PAGE + MAX_SIZE] __aligned(PAGE);
static size_t size;
static bool is_kernel;

static const uint8_t *input;
static size_t left;

static uint64_t take(size_t bytes)
{
	uint64_t value = 0;

	if (bytes > left)
		bytes = left;
	memcpy(&value, input, bytes);
	input += bytes;
	left -= bytes;
	return value;
}

static struct perf_event_mmap_page *page(void)
{
	return (struct perf_event_mmap_page *)mapping;
}

/* The kernel: what it has reserved, and the last record's serial number */

static uint64_t reserved;
static uint32_t serial;

/* What byte @i of record @nr is. */
static unsigned char byte_of(uint32_t nr, size_t i)
{
	return nr * 37 + i;
}

static void put_byte(uint64_t pos, unsigned char value)
{
	mapping[PAGE + (pos & (size - 1))] = value;
}

/* One that is not complete has not moved data_head; the next complete one does. */
static void write_record(uint8_t op)
{
	struct perf_event_header header = {
		.type	= 1,
		.misc	= ++serial,
		.size	= 16 + (op & 0x3f) % ((MAX_RECORD - 16) / 8) * 8,
	};
	unsigned char bytes[sizeof(header)];

	memcpy(bytes, &header, sizeof(header));
	reserved -= header.size;
	for (size_t i = 0; i < header.size; i++)
		put_byte(reserved + i, i < sizeof(header) ? bytes[i] : byte_of(serial, i));
	if (!(op & 0x40))
		page()->data_head = reserved;
}

static void write_records(void)
{
	for (unsigned int n = take(1) & 31; n && left; n--)
		write_record(take(1));
}

static int fake_ioctl(int fd __maybe_unused, unsigned long request, void *arg)
{
	struct perf_rb_reserved *rb = arg;

	if (request != PERF_EVENT_IOC_RESERVED_HEAD)
		abort();
	if (is_kernel) {
		write_records();
		rb->behind = rb->head - reserved;
		rb->data_size = size;
		return 0;
	}
	rb->behind = take(2);
	rb->data_size = size;
	if (take(1) == 0xff)
		page()->data_head = take(8);
	return 0;
}

/* Snapshots */

static uint32_t last_newest;

static uint32_t check_record(const union perf_event *event, uint32_t want)
{
	const unsigned char *bytes = (const unsigned char *)event;
	struct perf_event_header header;

	memcpy(&header, event, sizeof(header));
	if (header.type != 1 || header.misc != (uint16_t)want)
		abort();
	for (size_t i = sizeof(header); i < header.size; i++) {
		if (bytes[i] != byte_of(want, i))
			abort();
	}
	return header.size;
}

/* Newest first, beginning with the newest that was complete at the snapshot. */
static void check_history(struct perf_snapshot *snap, uint32_t newest, bool incremental)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(snap);
	union perf_event *event = NULL;
	uint32_t want = newest;
	uint64_t bytes = 0;

	while ((event = perf_snapshot__older(snap, event)))
		bytes += check_record(event, want--);
	if (bytes != info->len || newest - want != info->nr_records)
		abort();
	if (incremental && !info->gap && want != last_newest)
		abort();
	if (incremental && info->gap && want <= last_newest)
		abort();
	if (!incremental && !info->wrapped && !info->given_up && want)
		abort();
}

static void check_bounds(struct perf_snapshot *snap)
{
	const struct perf_snapshot_info *info = perf_snapshot__info(snap);
	size_t len, older = 0, newer = 0;
	unsigned char *data = perf_snapshot__data(snap, &len), *end = data;
	union perf_event *event = NULL;

	if (len > size)
		abort();
	while ((event = perf_snapshot__older(snap, event))) {
		struct perf_event_header header;

		if ((unsigned char *)event != end)
			abort();
		memcpy(&header, event, sizeof(header));
		end += header.size;
		older++;
	}
	if (end != data + len)
		abort();
	while ((event = perf_snapshot__newer(snap, event)))
		newer++;
	if (older != newer || older != info->nr_records)
		abort();
}

static void take_kernels(struct perf_snapshot *snap)
{
	unsigned int flags = PERF_SNAPSHOT_NO_HOP | PERF_SNAPSHOT_NO_PAUSE;
	bool incremental = last_newest && take(1) & 1;
	uint64_t head;
	uint32_t newest;
	int err;

	/* What data_head shows is not always the last one. */
	write_records();
	for (head = reserved, newest = serial; head != page()->data_head; newest--) {
		struct perf_event_header header;
		unsigned char bytes[sizeof(header)];

		for (size_t i = 0; i < sizeof(header); i++)
			bytes[i] = mapping[PAGE + ((head + i) & (size - 1))];
		memcpy(&header, bytes, sizeof(header));
		head += header.size;
		/* So many are never incomplete at once: complete one. */
		if (head - reserved > size / 2) {
			write_record(0);
			head = reserved;
			newest = serial + 1;
		}
	}
	if (incremental)
		flags |= PERF_SNAPSHOT_INCREMENTAL;
	err = perf_snapshot__take(snap, flags);
	if (err && err != -EAGAIN)
		abort();
	if (err)
		return;
	/* A second copy begins at a newer head. */
	if (perf_snapshot__info(snap)->head != head) {
		union perf_event *event = perf_snapshot__older(snap, NULL);
		struct perf_event_header header;

		if (!perf_snapshot__info(snap)->retries || !event)
			return;
		memcpy(&header, event, sizeof(header));
		while ((uint16_t)newest != header.misc)
			newest++;
	}
	check_bounds(snap);
	check_history(snap, newest, incremental);
	last_newest = newest;
}

static void take_anybodys(struct perf_snapshot *snap)
{
	unsigned int flags = PERF_SNAPSHOT_NO_HOP | PERF_SNAPSHOT_NO_PAUSE | (take(1) & 1);

	if (take(1) & 1)
		page()->data_head = take(8);
	if (!perf_snapshot__take(snap, flags))
		check_bounds(snap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct perf_snapshot_buffer buf = { .fd = 0, .cpu = 0, .base = mapping };
	struct perf_snapshot *snap;
	uint8_t how;

	input = data;
	left = length;
	how = take(1);
	size = PAGE << (how >> 1) % 3;
	is_kernel = how & 1;
	buf.len = PAGE + size;
	memset(mapping, 0, sizeof(mapping));
	reserved = 0;
	serial = 0;
	last_newest = 0;
	if (!is_kernel) {
		page()->data_offset = how & 0x40 ? take(8) : 0;
		page()->data_head = how & 0x80 ? take(8) : -(take(2) & ~7ULL);
		for (size_t i = 0; left && i < size; i++)
			mapping[PAGE + ((i + page()->data_head) & (size - 1))] = input[i % left];
	}
	snap = perf_snapshot__new(&buf);
	while (snap && left) {
		if (is_kernel)
			take_kernels(snap);
		else
			take_anybodys(snap);
	}
	perf_snapshot__delete(snap);
	return 0;
}
