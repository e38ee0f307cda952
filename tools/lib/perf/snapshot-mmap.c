// SPDX-License-Identifier: GPL-2.0
/*
 * Snapshots of libperf's own maps. They are separate from snapshot.c, which
 * programs may use without the rest of the library.
 */
#include <internal/mmap.h>
#include <perf/snapshot.h>

struct perf_snapshot *perf_snapshot__new_mmap(struct perf_mmap *map)
{
	struct perf_snapshot_buffer buf = {
		.fd	= map->fd,
		.cpu	= map->cpu.cpu,
		.base	= map->base,
		.len	= perf_mmap__mmap_len(map),
	};

	return perf_snapshot__new(&buf);
}
