/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_LOCAL_CLOCK_H
#define __PERF_FLIGHT_LOCAL_CLOCK_H

#include <linux/types.h>
#include <stdbool.h>

bool local_clock__read(u64 *ns);

#endif /* __PERF_FLIGHT_LOCAL_CLOCK_H */
