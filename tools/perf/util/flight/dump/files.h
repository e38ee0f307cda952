/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DUMP_FILES_H
#define __PERF_FLIGHT_DUMP_FILES_H

#include <linux/time64.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

/**
 * struct dump_file - a dump on disk
 * @path: its name
 * @bytes: size of the dump and of the files beside it
 */
struct dump_file {
	char	*path;
	u64	bytes;
};

/**
 * struct dump_files - the dumps of an OUT, including those of earlier runs
 * @files: the dumps, oldest first
 * @nr: number of dumps
 */
struct dump_files {
	struct dump_file	*files;
	size_t			nr;
};

/**
 * dump__print_time - a time as names of dumps have it
 * @ns: since the epoch
 * @buf: where to print it: 20261121T093650.275Z
 * @size: of @buf
 *
 * Return: @buf.
 */
static inline const char *dump__print_time(u64 ns, char *buf, size_t size)
{
	time_t seconds = ns / NSEC_PER_SEC;
	struct tm tm = {};
	size_t len;

	gmtime_r(&seconds, &tm);
	len = strftime(buf, size, "%Y%m%dT%H%M%S", &tm);
	snprintf(buf + len, size - len, ".%03uZ",
		 (unsigned int)(ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	return buf;
}

int dump__create_temporary(const char *path, char **tmp);
int dump_files__list(const char *out, struct dump_files *df);
void dump_files__free(struct dump_files *df);
int dump_files__remove(const char *path);
bool dump_files__remove_oldest(const char *out);
void dump_files__expire(const char *out, u64 max_age);
void dump_files__bound(const char *out, const char *newest, u64 max_files, u64 max_bytes);

#endif /* __PERF_FLIGHT_DUMP_FILES_H */
