/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ON_DUMP_H
#define __PERF_FLIGHT_ON_DUMP_H

#include <linux/compiler.h>
#include <stdbool.h>

int on_dump__init(void);
int on_dump__fd(void);
void on_dump__archive(const char *path);
void __noreturn on_dump__exec(const char *command, const char *path);
int on_dump__run(const char *command, const char *path, bool archive);

#endif /* __PERF_FLIGHT_ON_DUMP_H */
