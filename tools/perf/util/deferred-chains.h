/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_DEFERRED_CHAINS_H
#define __PERF_DEFERRED_CHAINS_H

#include <linux/types.h>
#include <stdbool.h>

struct deferred_half;
struct evlist;
struct ip_callchain;
struct perf_sample;

/**
 * struct deferred_chains - the halves of call chains that came after their samples
 * @defers: there are such chains
 * @halves: what was read, sorted by cookie
 * @nr_halves: number of @halves
 * @halves_room: number of @halves that there is memory for
 * @whole: room for a chain of two halves
 * @room: bytes of @whole
 * @missing: samples whose half was not found
 */
struct deferred_chains {
	bool			defers;
	struct deferred_half	*halves;
	size_t			nr_halves;
	size_t			halves_room;
	struct ip_callchain	*whole;
	size_t			room;
	u64			missing;
};

int deferred_chains__read(struct deferred_chains *dc, struct evlist *evlist, const char *path,
			  bool force);
int deferred_chains__merge(struct deferred_chains *dc, struct perf_sample *sample);
void deferred_chains__exit(struct deferred_chains *dc);

bool deferred_chain__cookie(const struct ip_callchain *chain, u64 *cookie);

#endif /* __PERF_DEFERRED_CHAINS_H */
