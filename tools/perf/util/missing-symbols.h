/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_MISSING_SYMBOLS_H
#define __PERF_MISSING_SYMBOLS_H

struct addr_location;

void missing_symbols__count(const struct addr_location *al);
void missing_symbols__tell(const char *path);

#endif /* __PERF_MISSING_SYMBOLS_H */
