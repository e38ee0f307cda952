/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DUMP_FILES_H
#define __PERF_FLIGHT_DUMP_FILES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

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

int dump__create_temporary(const char *path, char **tmp);
const char *dump__print_time(u64 ns, char *buf, size_t size);
int dump_files__list(const char *out, struct dump_files *df);
void dump_files__free(struct dump_files *df);
int dump_files__remove(const char *path);
bool dump_files__remove_oldest(const char *out);
void dump_files__expire(const char *out, u64 max_age);
void dump_files__bound(const char *out, const char *newest, u64 max_files, u64 max_bytes);

#endif /* __PERF_FLIGHT_DUMP_FILES_H */
