/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_SHARED_MEMORY_H
#define __PERF_FLIGHT_SHARED_MEMORY_H

#include <stddef.h>
#include <sys/mman.h>

/**
 * shared_memory - map memory that is shared with children
 * @size: bytes of it
 *
 * Only what is touched takes memory. munmap() returns it.
 *
 * Return: the memory, or NULL if there is none.
 */
static inline void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#endif /* __PERF_FLIGHT_SHARED_MEMORY_H */
