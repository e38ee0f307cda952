/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_FIND_H
#define __PERF_BLACKBOX_FIND_H

#include "image.h"
#include "memory.h"

/**
 * struct blackbox_find - the images in a file
 * @memory: the memory in which they lie
 * @images: the images, by their place in the file
 * @nr: number of these
 * @copies: images that do not lie at their own address
 * @foreign: images of machines of the other byte order
 * @version: images of another version
 * @damaged: images whose superblock is damaged
 */
struct blackbox_find {
	struct blackbox_memory	*memory;
	struct blackbox_image	*images;
	size_t			nr;
	u32			copies;
	u32			foreign;
	u32			version;
	u32			damaged;
};

/* Called now and then with the bytes that have been searched. */
typedef void (*blackbox_progress_t)(u64 done, u64 size);

int blackbox_find__open(struct blackbox_find *find, const void *bytes, u64 size, int fd,
			blackbox_progress_t progress);
int blackbox_find__init(struct blackbox_find *find, const void *bytes, u64 size,
			blackbox_progress_t progress);
void blackbox_find__exit(struct blackbox_find *find);

#endif /* __PERF_BLACKBOX_FIND_H */
