/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_CHILD_H
#define __PERF_FLIGHT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

void flight_child__begin(void);
void flight_child__be_killed_first(void);
void flight_child__close_but(int a, int b);
bool flight_child__kill(pid_t pid);

#endif /* __PERF_FLIGHT_CHILD_H */
