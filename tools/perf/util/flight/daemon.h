/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DAEMON_H
#define __PERF_FLIGHT_DAEMON_H

#include <sys/types.h>

pid_t flight_daemon__pid(const char *out);
int flight_daemon__begin(const char *out);
void flight_daemon__ready(const char *out);
void flight_daemon__end(const char *out);

#endif /* __PERF_FLIGHT_DAEMON_H */
