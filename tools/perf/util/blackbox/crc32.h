/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_CRC32_H
#define __PERF_BLACKBOX_CRC32_H

#include <linux/types.h>
#include <stddef.h>

u32 blackbox_crc32(const void *data, size_t size);

#endif /* __PERF_BLACKBOX_CRC32_H */
