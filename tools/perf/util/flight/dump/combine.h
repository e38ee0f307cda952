/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_COMBINE_H
#define __PERF_FLIGHT_COMBINE_H

#include <stdbool.h>

int flight_combine(const char *out, bool keep);

#endif /* __PERF_FLIGHT_COMBINE_H */
