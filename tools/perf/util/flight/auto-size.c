// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -M auto: a size that nobody misses
 *
 * A 128th of the memory that there is, from 16 to 256 MiB. Where there is little memory, as in
 * a small container, it is at most a quarter of it.
 */
#include "auto-size.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHARE		128
#define LEAST_SHARE	4
#define MIB		((u64)1 << 20)
#define LEAST		(16 * MIB)
#define MOST		(256 * MIB)

#define CGROUPS		"/sys/fs/cgroup"

/* The path of the own cgroup of version 2, which is "0::PATH" in /proc/self/cgroup */
static bool read_own_cgroup(char *path, size_t size)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strstarts(line, "0::/"))
			continue;
		found = scnprintf(path, size, CGROUPS "%s", line + 3) < (int)size - 1;
	}
	fclose(f);
	return found;
}

/* A cgroup without a limit has the word "max", which is read as 0. The root has no file. */
static u64 read_limit(const char *cgroup)
{
	unsigned long long limit;
	char file[PATH_MAX];

	if (snprintf(file, sizeof(file), "%s/memory.max", cgroup) >= (int)sizeof(file) ||
	    filename__read_ull(file, &limit) || !limit)
		return ULLONG_MAX;
	return limit;
}

/* What the cgroups from the own one up to the root of the hierarchy allow */
static u64 cgroup_limit(void)
{
	char path[PATH_MAX];
	u64 limit = ULLONG_MAX;

	if (!read_own_cgroup(path, sizeof(path)))
		return limit;
	while (strlen(path) >= strlen(CGROUPS)) {
		limit = min(limit, read_limit(path));
		*strrchr(path, '/') = '\0';
	}
	return limit;
}

/**
 * flight_auto_size - a size for the memory of the flight recorder
 *
 * Return: the size in bytes, a multiple of 1 MiB.
 */
u64 flight_auto_size(void)
{
	u64 memory = (u64)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	u64 size;

	memory = min(memory, cgroup_limit());
	size = clamp(memory / SHARE, LEAST, MOST);
	size = min(size, memory / LEAST_SHARE);
	return max(size / MIB, (u64)1) * MIB;
}
