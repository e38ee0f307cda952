/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_AUTO_SIZE_H
#define __PERF_FLIGHT_AUTO_SIZE_H

#include <linux/types.h>

u64 flight_auto_size(void);

#endif /* __PERF_FLIGHT_AUTO_SIZE_H */
