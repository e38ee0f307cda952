/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_FLATTENED_H
#define __PERF_BLACKBOX_FLATTENED_H

#include <linux/types.h>
#include <stdbool.h>

bool blackbox_flattened__is_one(const void *bytes, u64 size);
int blackbox_flattened__open(const void *bytes, u64 size);

#endif /* __PERF_BLACKBOX_FLATTENED_H */
