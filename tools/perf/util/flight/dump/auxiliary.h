/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_AUXILIARY_H
#define __PERF_FLIGHT_AUXILIARY_H

#include <stddef.h>

struct evlist;
struct sideband_store;

int auxiliary__fold(const char *out, struct evlist *evlist, struct sideband_store *ss,
		    size_t limit);

#endif /* __PERF_FLIGHT_AUXILIARY_H */
