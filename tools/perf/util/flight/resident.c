// SPDX-License-Identifier: GPL-2.0
/*
 * Release memory that is only needed to start
 *
 * perf is linked with large libraries that a recorder never calls, but the dynamic linker
 * has touched tens of megabytes of them. A recorder runs for weeks and should not keep these
 * pages resident. They are also in the page cache, and are mapped again if they are used.
 *
 * Only private mappings of files that are not writable, and that have no private pages
 * (relocated or swapped out), are dropped, so no data can be lost.
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
 * resident__reset_peak - reset the peak of the resident memory
 *
 * The peak should describe the recorder, not the dynamic linker before main().
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

/* resident__drop_files - drop clean pages of files; pages in use are mapped again */
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
		/* The last line of the description of a mapping. */
		if (m.droppable && strstarts(line, "VmFlags:") &&
		    madvise((void *)m.start, m.end - m.start, MADV_DONTNEED))
			pr_debug("cannot drop %lx-%lx: %m\n", m.start, m.end);
	}
	if (f)
		fclose(f);
	free(line);
}
