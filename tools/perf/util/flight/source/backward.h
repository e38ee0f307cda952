/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_KERNEL_STORE_H
#define __PERF_FLIGHT_KERNEL_STORE_H

#include "../store/ring-store.h"
#include "../../snapshot-cover.h"
#include <linux/types.h>

struct evlist;
struct kernel_store;

struct kernel_store *kernel_store__take(struct evlist *evlist, u64 until);
void kernel_store__delete(struct kernel_store *ks);

int kernel_store__walk(struct kernel_store *ks, ring_store_record_t fn, void *data);
int kernel_store__nr(const struct kernel_store *ks);
const struct snapshot_cover *kernel_store__cover(const struct kernel_store *ks, int i);

u64 kernel_store__written(struct evlist *evlist);

#endif /* __PERF_FLIGHT_KERNEL_STORE_H */
