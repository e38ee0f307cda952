/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_FOLD_ORDER_H
#define __PERF_FLIGHT_FOLD_ORDER_H

#include <stddef.h>

struct evlist;
struct fold_order;
struct sideband_store;
union perf_event;

struct fold_order *fold_order__new(struct evlist *evlist, struct sideband_store *ss,
				   size_t limit);
void fold_order__delete(struct fold_order *fo);

int fold_order__add(struct fold_order *fo, union perf_event *event);
void fold_order__end_round(struct fold_order *fo);
void fold_order__flush(struct fold_order *fo);

size_t fold_order__used(const struct fold_order *fo);
int fold_order__take(struct fold_order *fo, union perf_event ***events);

#endif /* __PERF_FLIGHT_FOLD_ORDER_H */
