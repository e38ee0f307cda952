/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_MEMORY_H
#define __PERF_BLACKBOX_MEMORY_H

#include <linux/types.h>
#include <stdbool.h>

struct blackbox_memory;

/**
 * struct blackbox_range - a part of memory that is in the file
 * @phys: its physical address; of a file that does not tell any, the offset in it
 * @size: bytes of it
 * @bytes: these, in the file; NULL: compressed, they are to be read
 */
struct blackbox_range {
	u64		phys;
	u64		size;
	const void	*bytes;
};

typedef int (*blackbox_range_fn_t)(const struct blackbox_range *range, void *data);

int blackbox_memory__open(struct blackbox_memory **mem, const void *bytes, u64 size, int fd);
void blackbox_memory__close(struct blackbox_memory *mem);

int blackbox_memory__visit(struct blackbox_memory *mem, blackbox_range_fn_t fn, void *data);
u64 blackbox_memory__extent(struct blackbox_memory *mem, u64 phys);
u64 blackbox_memory__copy(struct blackbox_memory *mem, u64 phys, void *buf, u64 size);
bool blackbox_memory__read(struct blackbox_memory *mem, u64 phys, void *buf, u64 size);

bool blackbox_memory__vmcoreinfo(struct blackbox_memory *mem, const char *key, u64 *value);
void blackbox_memory__set_address(struct blackbox_memory *mem, u64 phys);

#endif /* __PERF_BLACKBOX_MEMORY_H */
