// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for the round merge: the input is a sequence of operations
 * (add with a time near the last one or far from it, take, change the rank or
 * the source, set a limit), and the property is that entries are taken in the
 * order of (time, rank, arrival), all of them and once each.
 *
 * It stands alone; tests/shell/round_merge_fuzz.sh builds and runs it.
 */
#include <stdlib.h>
#include "round-merge.h"
#include "round-merge-reference.h"

#define MAX_WAITING	4096

static struct reference_event events[MAX_WAITING];
static struct reference waiting = { .events = events };

static void take(struct round_merge *rm)
{
	const struct round_merge_entry *entry = round_merge__peek(rm);
	const struct reference_event *first;

	if (!waiting.nr) {
		if (entry)
			abort();
		return;
	}

	first = &waiting.events[reference__first(&waiting)];
	if (!entry || entry->time != first->time || entry->cookie != first->serial ||
	    round_merge__source(rm) != (char *)(uintptr_t)(first->time >> 60))
		abort();

	round_merge__pop(rm);
	reference__remove(&waiting, first - waiting.events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u64 time = 1000000, rank = 0, serial = 0;
	struct round_merge rm;
	size_t i;

	waiting.nr = 0;
	round_merge__init(&rm);
	for (i = 0; i + 1 < size; i += 2) {
		unsigned int op = data[i] >> 5, repeat = 1 + (data[i] & 31), arg = data[i + 1];

		switch (op) {
		case 0:
			rank = arg & 3;
			round_merge__set_rank(&rm, rank);
			continue;
		case 1:
			rm.max_bytes = arg < 8 ? rm.bytes + arg * 9000ULL : ~0ULL;
			continue;
		case 2:
			/* Far away, the source with it. */
			time = (u64)arg << 56 | (time & 0xffff);
			continue;
		default:
			break;
		}

		while (repeat--) {
			if (op == 3) {
				take(&rm);
				continue;
			}
			/* 4, 5: up; 6: down; 7: one swapped */
			time += op == 6 ? -(u64)(arg & 15) : arg & 15;
			if (op == 7)
				time -= repeat & 1 ? 2 * (arg & 15) + (arg >> 4) : 0;
			if (waiting.nr == MAX_WAITING ||
			    round_merge__add(&rm, time, NULL, serial,
					     (char *)(uintptr_t)(time >> 60)))
				break;
			reference__add(&waiting, time, rank, serial++);
		}
		if (rm.nr != waiting.nr)
			abort();
	}

	while (waiting.nr)
		take(&rm);
	take(&rm);
	if (rm.nr || rm.nr_runs || rm.nr_chains)
		abort();
	round_merge__exit(&rm);
	return 0;
}
