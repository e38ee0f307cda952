/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SYMBOL_STORE_H
#define __PERF_FLIGHT_SYMBOL_STORE_H

#include <linux/types.h>
#include <stddef.h>

struct dump_files;

#define SYMBOL_LIST	".symbols"

int symbol_store__open(const char *path, char *store, size_t size);
void symbol_store__close(int fd, const char *path, const char *store);
int symbol_store__join(const char *path, const char *from);
void symbol_store__clean(const char *path);
u64 symbol_store__bytes(const struct dump_files *df, size_t first);

#endif /* __PERF_FLIGHT_SYMBOL_STORE_H */
