/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SOURCE_BACKWARD_H
#define __PERF_FLIGHT_SOURCE_BACKWARD_H

#include "../store/ring-store.h"
#include "../../snapshot-cover.h"
#include <linux/types.h>

struct kernel_store;

void kernel_store__delete(struct kernel_store *ks);

int kernel_store__walk(struct kernel_store *ks, ring_store_record_t fn, void *data);
int kernel_store__nr(const struct kernel_store *ks);
const struct snapshot_cover *kernel_store__cover(const struct kernel_store *ks, int i);

#endif /* __PERF_FLIGHT_SOURCE_BACKWARD_H */
