// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for what a flight recorder reads from disk when it combines: parts
 * and their manifests. Of the input, files are made that look like parts: headers and
 * records, in which words are overwritten and ends cut off. The properties: an OUT is
 * a part as well, whole, whose records are in the order of time; and it has no more of
 * them than its parts together.
 *
 * tests/shell/flight_fuzz.sh builds and runs it, in a directory of its own.
 */
#include "../../util/flight/dump/combine.h"
#include "../../util/flight/dump/dump.h"
#include "../../util/flight/dump/part.h"
#include "../../util/debug.h"
#include "../../util/event.h"
#include "../../util/header.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT		"out"
#define MAX_FILE	65536
#define MAX_PARTS	3

/* What combine and part want of perf. */
unsigned int page_size = 4096;
int verbose = -1;
bool quiet = true;

int eprintf(int level __maybe_unused, int var __maybe_unused, const char *fmt __maybe_unused, ...)
{
	return 0;
}

int ui__warning(const char *format, ...);

/* Of clockids that users name; there are none. */
int ui__warning(const char *format __maybe_unused, ...)
{
	return 0;
}

bool dump__is_auxiliary(const char *path)
{
	return strstr(path, ".auxiliary");
}

void dump__remove_stale(const char *out __maybe_unused)
{
}

void dump__sync_directory(const char *path __maybe_unused)
{
}

/* Nothing of this needs to survive. */
int fsync(int fd __maybe_unused)
{
	return 0;
}

/* The input */

static const uint8_t *input;
static size_t left;

static u64 take(size_t bytes)
{
	u64 value = 0;

	bytes = min(bytes, left);
	memcpy(&value, input, bytes);
	input += bytes;
	left -= bytes;
	return value;
}

/* A part */

static char image[MAX_FILE];
static size_t image_len;

static void put(const void *data, size_t size)
{
	if (size > sizeof(image) - image_len)
		return;
	memcpy(image + image_len, data, size);
	image_len += size;
}

static void put_u64(u64 value)
{
	put(&value, sizeof(value));
}

static void put_header(u16 type, u16 size)
{
	struct perf_event_header header = { .type = type, .size = sizeof(header) + size };

	put(&header, sizeof(header));
}

static void put_record(u8 op)
{
	char raw[64];
	size_t size;

	switch (op & 7) {
	case 0:
		put_header(PERF_RECORD_FINISHED_ROUND, 0);
		break;
	case 1:
		/* IDENTIFIER, IP, TID, TIME */
		put_header(PERF_RECORD_SAMPLE, 4 * sizeof(u64));
		put_u64(op >> 4 & 3);
		put_u64(take(1));
		put_u64(1);
		put_u64(take(1));
		break;
	case 2:
		/* pid, tid, comm; TID, TIME, IDENTIFIER */
		put_header(PERF_RECORD_COMM, 5 * sizeof(u64));
		put_u64(take(1));
		put("aaaaaaa", 8);
		put_u64(1);
		put_u64(take(1));
		put_u64(op >> 4 & 3);
		break;
	case 3:
		put_header(PERF_RECORD_FINISHED_INIT, 0);
		break;
	case 4:
		put_header(PERF_RECORD_TIME_CONV, sizeof(u64));
		put_u64(op >> 4);
		break;
	default:
		size = min(left, min((size_t)op >> 2, sizeof(raw)));
		memcpy(raw, input, size);
			input += size;
		left -= size;
		put(raw, size);
		break;
	}
}

static void make_image(void)
{
	struct perf_file_header header = {
		.magic		= 0x32454c4946524550ULL,
		.size		= sizeof(header),
		.attr_size	= sizeof(struct perf_event_attr) + sizeof(struct perf_file_section),
	};
	struct perf_event_attr attr = {
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				  PERF_SAMPLE_TIME,
		.sample_id_all	= 1,
	};
	unsigned int how = take(1), nr_events = 1 + (how & 1), records = take(1);
	struct perf_file_section section;
	size_t data;

	image_len = 0;
	put(&header, sizeof(header));
	section = (struct perf_file_section) { image_len, 2 * sizeof(u64) };
	put_u64(how >> 1 & 3);
	put_u64(how >> 3 & 3);
	header.attrs.offset = image_len;
	header.attrs.size = nr_events * header.attr_size;
	for (unsigned int i = 0; i < nr_events; i++) {
		attr.config = i * (how >> 5 & 1);
		put(&attr, sizeof(attr));
		put(&section, sizeof(section));
	}
	data = image_len;
	for (unsigned int i = 0; i < records && left; i++)
		put_record(take(1));
	header.data.offset = data;
	header.data.size = image_len - data;
	if (how & 0x80) {
		header.adds_features[0] = 1 << HEADER_HOSTNAME;
		section = (struct perf_file_section) { image_len + sizeof(section), 8 };
		put(&section, sizeof(section));
		put("aaaaaaa", 8);
	}
	memcpy(image, &header, sizeof(header));

	/* What no recorder writes. */
	for (unsigned int i = take(1) & 3; i; i--) {
		u64 pos = take(2), value = take(8);

		pos %= image_len;
		memcpy(image + pos, &value, min(sizeof(value), image_len - pos));
	}
	if (how & 0x40)
		image_len = take(2) % image_len;
}

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "w");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		abort();
}

static const char *const parts[MAX_PARTS] = {
	OUT ".sample.20260101T000000.000Z", OUT ".sample.20260101T000000.000Z.2", OUT ".auxiliary",
};

/* Their manifests, too; only the name of the boot is read there. */
static void make_parts(unsigned int nr)
{
	static const char boot[] = "{\n  \"boot_id\": \"";
	char name[64], manifest[128];
	size_t size;

	for (unsigned int i = 0; i < nr; i++) {
		make_image();
		write_file(parts[i], image, image_len);
		size = take(1) & 63;
		size = min(left, size);
		memcpy(manifest, boot, sizeof(boot) - 1);
		memcpy(manifest + sizeof(boot) - 1, input, size);
		input += size;
		left -= size;
		snprintf(name, sizeof(name), "%s.json", parts[i]);
		write_file(name, manifest, size ? sizeof(boot) - 1 + size : 0);
	}
}

static void remove_all(void)
{
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		unlink(parts[i]);
		snprintf(name, sizeof(name), "%s.json", parts[i]);
		unlink(name);
	}
	unlink(OUT);
	unlink(OUT ".json");
}

/* What is wrong with @name as a file that perf has written? Counts its records. */
static bool count_records(const char *name, size_t *nr, bool must_be_good)
{
	const struct part_record *record;
	struct part part;
	u64 time = 0;
	size_t taken = 0;
	int err = part__open(&part, name);

	*nr = 0;
	while (!err && (record = part__peek(&part)) != NULL) {
		if ((const char *)record->data < (const char *)part.map ||
		    (const char *)record->data + record->size > (const char *)part.map + part.size)
			abort();
		if (must_be_good && record->time < time)
			abort();
		time = record->time;
		part__take(&part);
		taken++;
	}
	if (!err)
		*nr = taken + part.nr_state + part.nr_preamble;
	if (must_be_good && (err || part.truncated))
		abort();
	part__close(&part);
	return !err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int nr_parts;
	size_t nr, sum = 0;

	remove_all();
	input = data;
	left = size;
	nr_parts = 1 + take(1) % MAX_PARTS;
	make_parts(nr_parts);
	for (unsigned int i = 0; i < nr_parts; i++) {
		count_records(parts[i], &nr, false);
		sum += nr;
	}
	if (!flight_combine(OUT, true)) {
		count_records(OUT, &nr, true);
		if (nr > sum)
			abort();
	}
	return 0;
}
