// SPDX-License-Identifier: GPL-2.0
/*
 * Give back the memory that it took to start
 *
 * perf is linked with large libraries that a recorder never calls, but the dynamic
 * linker has touched tens of megabytes of them. Who stays for weeks should not keep
 * these pages. They are in the page cache as well, and come back when they are used.
 *
 * Only private mappings of files that cannot be written to, and that hold no page of
 * their own (relocated, or swapped out), may be dropped: nothing can be lost there.
 */
#include "resident.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct mapping {
	unsigned long	start;
	unsigned long	end;
	bool		droppable;
};

/* "start-end perms offset dev inode   path" */
static bool parse_mapping(const char *line, struct mapping *m)
{
	unsigned long start, end;
	char perms[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &start, &end, perms, &path) != 3 || !path)
		return false;
	m->start = start;
	m->end = end;
	m->droppable = line[path] == '/' && perms[0] == 'r' && perms[1] == '-' && perms[3] == 'p';
	return true;
}

static bool has_own_pages(const char *line)
{
	unsigned long kib;

	return (sscanf(line, "Anonymous: %lu kB", &kib) == 1 ||
		sscanf(line, "Swap: %lu kB", &kib) == 1) && kib;
}

/**
 * resident__reset_peak - the peak of what is resident is to tell of the recorder
 *
 * Not of the dynamic linker, which had its peak before main().
 */
void resident__reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (!f)
		return;
	fputs("5", f);
	if (fclose(f))
		pr_debug("cannot reset the peak of resident memory: %m\n");
}

/* resident__drop_files - make no file's clean pages resident but those in use */
void resident__drop_files(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	struct mapping m = {};
	char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		if (parse_mapping(line, &m))
			continue;
		if (has_own_pages(line))
			m.droppable = false;
		/* The last line of a mapping's description. */
		if (m.droppable && strstarts(line, "VmFlags:") &&
		    madvise((void *)m.start, m.end - m.start, MADV_DONTNEED))
			pr_debug("cannot drop %lx-%lx: %m\n", m.start, m.end);
	}
	if (f)
		fclose(f);
	free(line);
}
