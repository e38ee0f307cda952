/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_KDUMP_H
#define __PERF_BLACKBOX_KDUMP_H

#include "memory.h"

#include <errno.h>
#include <linux/compiler.h>
#include <string.h>

struct blackbox_kdump;

/* The file of a compressed dump begins with one of these. */
static inline bool blackbox_kdump__is_one(const void *bytes, u64 size)
{
	return size >= 8 && (!memcmp(bytes, "KDUMP   ", 8) || !memcmp(bytes, "DISKDUMP", 8));
}

#ifdef HAVE_LIBKDUMPFILE_SUPPORT
int blackbox_kdump__open(struct blackbox_kdump **kdump, int fd);
void blackbox_kdump__close(struct blackbox_kdump *kdump);
bool blackbox_kdump__next(struct blackbox_kdump *kdump, struct blackbox_range *range);
u64 blackbox_kdump__extent(struct blackbox_kdump *kdump, u64 phys);
u64 blackbox_kdump__copy(struct blackbox_kdump *kdump, u64 phys, void *buf, u64 size);
char *blackbox_kdump__vmcoreinfo(struct blackbox_kdump *kdump, const char *key);
#else
static inline int blackbox_kdump__open(struct blackbox_kdump **kdump __maybe_unused,
				       int fd __maybe_unused)
{
	return -EOPNOTSUPP;
}

static inline void blackbox_kdump__close(struct blackbox_kdump *kdump __maybe_unused)
{
}

static inline bool blackbox_kdump__next(struct blackbox_kdump *kdump __maybe_unused,
					struct blackbox_range *range __maybe_unused)
{
	return false;
}

static inline u64 blackbox_kdump__extent(struct blackbox_kdump *kdump __maybe_unused,
					 u64 phys __maybe_unused)
{
	return 0;
}

static inline u64 blackbox_kdump__copy(struct blackbox_kdump *kdump __maybe_unused,
				       u64 phys __maybe_unused, void *buf __maybe_unused,
				       u64 size __maybe_unused)
{
	return 0;
}

static inline char *blackbox_kdump__vmcoreinfo(struct blackbox_kdump *kdump __maybe_unused,
					       const char *key __maybe_unused)
{
	return NULL;
}
#endif

#endif /* __PERF_BLACKBOX_KDUMP_H */
