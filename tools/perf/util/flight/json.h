/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_JSON_H
#define __PERF_FLIGHT_JSON_H

#include <stdio.h>

int json__put_utf8(FILE *f, const char *str);
void json__put_string(FILE *f, const char *str);

#endif /* __PERF_FLIGHT_JSON_H */
