/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ON_DUMP_H
#define __PERF_FLIGHT_ON_DUMP_H

int on_dump__run(const char *command, const char *path);

#endif /* __PERF_FLIGHT_ON_DUMP_H */
