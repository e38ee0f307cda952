// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of a profile, added up: what has the same event, stack and task is
 * one entry. Memory follows the number of entries, not the number of samples.
 */
#include "hits.h"

#include <stdlib.h>
#include <string.h>

/**
 * export_hits__add - add a sample
 * @hits: where to
 * @key: event, stack and task
 * @period: of the sample
 *
 * Return: number of the entry, or INTERNER_FAILED.
 */
u32 export_hits__add(struct export_hits *hits, const struct export_hit *key, u64 period)
{
	struct export_sum *sums;
	bool fresh;
	u32 nr, n;

	nr = interner__add(&hits->keys, key, sizeof(*key), &fresh);
	if (nr == INTERNER_FAILED)
		return nr;
	if (nr >= hits->nr_alloc) {
		n = hits->nr_alloc ? hits->nr_alloc * 2 : 256;
		sums = reallocarray(hits->sums, n, sizeof(*sums));
		if (!sums)
			return INTERNER_FAILED;
		hits->sums = sums;
		hits->nr_alloc = n;
	}
	if (fresh)
		memset(&hits->sums[nr], 0, sizeof(hits->sums[nr]));
	hits->sums[nr].samples++;
	hits->sums[nr].period += period;
	return nr;
}

void export_hits__exit(struct export_hits *hits)
{
	interner__exit(&hits->keys);
	free(hits->sums);
}
