/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CTL_METRICS_H
#define __PERF_CTL_METRICS_H

#include <stdio.h>

/* Metrics of perf ctl --prometheus beside those of sessions; a weak one prints nothing. */
int flight_recorders__print_metrics(FILE *f);

#endif /* __PERF_CTL_METRICS_H */
