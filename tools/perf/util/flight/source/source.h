/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SOURCE_H
#define __PERF_FLIGHT_SOURCE_H

#include "../options.h"
#include "../../record-source.h"

struct perf_data;
struct persistent_opts;
struct record_opts;

struct record_source *mmap_source__new(struct evlist *evlist);
void mmap_source__freeze(struct record_source *src, bool on);

struct record_source *backward_source__new(struct evlist *evlist);

struct record_source *session_source__new(struct flight_opts *fo, const struct persistent_opts *p,
					  struct record_opts *opts, struct perf_data *data);

/* The source of perf record's own events. */
static inline struct record_source *flight_source__new(const struct flight_opts *fo,
						       struct evlist *evlist)
{
	return fo->overwrite ? backward_source__new(evlist) : mmap_source__new(evlist);
}

#endif /* __PERF_FLIGHT_SOURCE_H */
