/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DAEMON_H
#define __PERF_FLIGHT_DAEMON_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

pid_t flight_daemon__pid(const char *out);
int flight_daemon__begin(const char *out);
void flight_daemon__ready(const char *out);
int flight_daemon__watch(bool daemon);
int flight_daemon__run(const char *out, u64 now, u64 *due);
void flight_daemon__stop(void);
void flight_daemon__wait(u64 now, u64 time);
void flight_daemon__end(const char *out);

#endif /* __PERF_FLIGHT_DAEMON_H */
