/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RECORDERS_H
#define __PERF_FLIGHT_RECORDERS_H

#include <stdio.h>

int flight_recorders__print_metrics(FILE *f);

#endif /* __PERF_FLIGHT_RECORDERS_H */
