/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_SOURCE_H
#define __PERF_BLACKBOX_SOURCE_H

#include "find.h"

/**
 * struct blackbox_source - a file with images
 * @path: its name
 * @name: how it is shown
 * @is_last: the kernel offers it
 * @bytes: its contents
 * @size: bytes of these
 * @is_mapping: @bytes is a mapping
 * @fd: the file, if it is a mapping; or -1
 * @kept: there is something in it that was not recovered
 * @found: the images
 */
struct blackbox_source {
	char			*path;
	const char		*name;
	bool			is_last;
	void			*bytes;
	u64			size;
	bool			is_mapping;
	int			fd;
	bool			kept;
	struct blackbox_find	found;
};

int blackbox_source__open(struct blackbox_source *source, char *path, bool is_last);
void blackbox_source__close(struct blackbox_source *source);

#endif /* __PERF_BLACKBOX_SOURCE_H */
