/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ARCHIVE_H
#define __PERF_FLIGHT_ARCHIVE_H

int archive__dump(const char *path);

#endif /* __PERF_FLIGHT_ARCHIVE_H */
