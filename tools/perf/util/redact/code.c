// SPDX-License-Identifier: GPL-2.0
/*
 * Where programs had code
 *
 * The kernel makes call chains of user space by following frame pointers, and cannot know
 * whether a program has any. In one that has none, the register holds anything, and words of
 * the program's memory are taken for return addresses: parts of a text, of a key. An
 * address is told from these by the mappings that the recording has: it lies where a process
 * had code. The mappings of all processes are put together, since a fork does not repeat them.
 *
 * Memory follows the number of different mappings.
 */
#include "code.h"

#include <perf/event.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_ROOM	64

struct redact_range {
	u64	start;
	u64	end;
};

/* Return: false if the record is no mapping of code of user space. */
static bool parse(const char *record, struct redact_range *range)
{
	struct perf_event_header header;
	size_t size;
	u64 len;
	u32 prot;

	memcpy(&header, record, sizeof(header));
	size = header.type == PERF_RECORD_MMAP ? offsetof(struct perf_record_mmap, filename) :
						 offsetof(struct perf_record_mmap2, filename);
	if ((header.type != PERF_RECORD_MMAP && header.type != PERF_RECORD_MMAP2) ||
	    (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
	    header.size < size)
		return false;
	if (header.type == PERF_RECORD_MMAP2)
		memcpy(&prot, record + offsetof(struct perf_record_mmap2, prot), sizeof(prot));
	else
		prot = header.misc & PERF_RECORD_MISC_MMAP_DATA ? 0 : PROT_EXEC;
	/* Both types have them at the same place. */
	memcpy(&range->start, record + offsetof(struct perf_record_mmap, start), sizeof(u64));
	memcpy(&len, record + offsetof(struct perf_record_mmap, len), sizeof(len));
	range->end = range->start + len;
	if (range->end < range->start)
		range->end = -1ULL;
	return prot & PROT_EXEC;
}

static int compare(const void *va, const void *vb)
{
	const struct redact_range *a = va, *b = vb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/**
 * redact_code__finish - put in order what was added
 * @code: where there is code
 *
 * More can be added, and must be put in order again.
 */
void redact_code__finish(struct redact_code *code)
{
	struct redact_range *to = code->ranges;

	if (!code->nr)
		return;
	qsort(code->ranges, code->nr, sizeof(*code->ranges), compare);
	for (size_t i = 1; i < code->nr; i++) {
		const struct redact_range *range = &code->ranges[i];

		if (range->start <= to->end)
			to->end = max(to->end, range->end);
		else
			*++to = *range;
	}
	code->nr = to - code->ranges + 1;
}

/* Equal mappings of many processes are one. */
static int make_room(struct redact_code *code)
{
	struct redact_range *ranges;
	size_t room;

	redact_code__finish(code);
	if (code->room && code->nr <= code->room / 2)
		return 0;
	room = code->room ? 2 * code->room : FIRST_ROOM;
	ranges = reallocarray(code->ranges, room, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	code->ranges = ranges;
	code->room = room;
	return 0;
}

/**
 * redact_code__add - learn of a mapping
 * @code: where there is code; begins as zeros
 * @record: any record, of at least the size of its header
 *
 * Return: 0 or -ENOMEM.
 */
int redact_code__add(struct redact_code *code, const void *record)
{
	struct redact_range range;

	if (!parse(record, &range))
		return 0;
	if (code->nr == code->room) {
		int err = make_room(code);

		if (err)
			return err;
	}
	code->ranges[code->nr++] = range;
	return 0;
}

/**
 * redact_code__has - whether a program had code at an address
 * @code: where there is code, in order
 * @address: the address
 */
bool redact_code__has(const struct redact_code *code, u64 address)
{
	size_t low = 0, high = code->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (code->ranges[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low < code->nr && code->ranges[low].start <= address;
}

void redact_code__exit(struct redact_code *code)
{
	zfree(&code->ranges);
	code->nr = 0;
	code->room = 0;
}
