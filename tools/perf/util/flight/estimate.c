// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -M --dry-run: what would be recorded, and how far back a dump would reach
 *
 * The recorder records for FLIGHT_ESTIMATE_TIME. The window is the size of the memory
 * divided by the part of it that was filled in that time. With --overwrite the busiest
 * buffer counts, because the shortest window is the one that all CPUs have.
 */
#include "estimate.h"
#include "options.h"
#include "store/flight-store.h"
#include "store/sideband-store.h"
#include "../base-api.h"
#include "../evlist.h"
#include "../record-source.h"

#include <internal/lib.h>
#include <inttypes.h>
#include <stdio.h>

static void print_kernel_window(struct record_source *src, u64 elapsed)
{
	u64 size = evlist__core(src->evlist)->mmap_len - page_size;
	u64 bytes = src->ops->written(src);

	if (bytes)
		printf("window:          about %.0f s for the busiest CPU, at %.0f KiB/s\n",
		       (double)size / bytes * elapsed / NSEC_PER_SEC,
		       (double)bytes / elapsed * NSEC_PER_SEC / 1024);
}

static void print_window(const struct flight_opts *fo, const struct ring_store_stats *stats,
			 u64 elapsed)
{
	if (stats->bytes)
		printf("window:          about %.0f s, at %.0f KiB/s as in the last second\n",
		       (double)fo->store / stats->used * elapsed / NSEC_PER_SEC,
		       (double)stats->bytes / elapsed * NSEC_PER_SEC / 1024);
	else
		printf("window:          nothing was recorded in the last second\n");
}

/**
 * flight_estimate__print - tell what a recorder with these options would do
 * @fo: the options
 * @src: where its records come from
 * @st: what was recorded
 * @elapsed: in that time, in ns
 *
 * Return: whether it has been told; it is not before FLIGHT_ESTIMATE_TIME.
 */
bool flight_estimate__print(const struct flight_opts *fo, struct record_source *src,
			    struct flight_store *st, u64 elapsed)
{
	const struct ring_store_stats *stats = flight_store__stats(st);
	struct strbuf names = STRBUF_INIT;

	if (elapsed < FLIGHT_ESTIMATE_TIME)
		return false;
	flight_store__flush(st);
	evlist__format_evsels(st->evlist, &names, 2048);
	printf("events:          %s\n", names.buf);
	strbuf_release(&names);
	printf("memory:          %" PRIu64 " KiB for samples and side-band\n", fo->memory >> 10);
	printf("side-band:       %zu KiB of that now\n",
	       sideband_store__stats(st->sideband)->used >> 10);
	if (evlist__core(st->evlist)->nr_mmaps)
		printf("kernel's buffers: %d of %zu KiB\n", evlist__core(st->evlist)->nr_mmaps,
		       evlist__core(st->evlist)->mmap_len >> 10);
	printf("dumps:           %s.sample.TIME\n", fo->out);
	if (src->ops->written)
		print_kernel_window(src, elapsed);
	else
		print_window(fo, stats, elapsed);
	if (stats->bytes && fo->comp_level)
		printf("-z:              makes that %.1f times as long\n",
		       (double)stats->bytes / stats->used);
	return true;
}
