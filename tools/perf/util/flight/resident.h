/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_RESIDENT_H
#define __PERF_FLIGHT_RESIDENT_H

void resident__drop_files(void);
void resident__reset_peak(void);

#endif /* __PERF_FLIGHT_RESIDENT_H */
