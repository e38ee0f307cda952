/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_MESSAGES_H
#define __PERF_BLACKBOX_MESSAGES_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <errno.h>
#include <stddef.h>

struct blackbox_image;
struct blackbox_source;
struct json_writer;

/* The last ones, which tell of the end */
#define BLACKBOX_MAX_MESSAGES	100

/**
 * struct blackbox_messages - what a kernel has printed before it died
 * @from: where they come from: "pstore" or "dump"; NULL: there are none
 * @text: lines, as dmesg prints them
 * @newest: of a dump, time of the last one by the clock of the kernel's log, in ns
 */
struct blackbox_messages {
	const char	*from;
	char		*text;
	u64		newest;
};

void blackbox_messages__find(struct blackbox_messages *m, const struct blackbox_source *source,
			     const struct blackbox_image *image);
void blackbox_messages__exit(struct blackbox_messages *m);
void blackbox_messages__write(const struct blackbox_messages *m, struct json_writer *w);

int blackbox_pstore__read(struct blackbox_messages *m, const char *const *dirs, size_t nr_dirs,
			  u64 died);

#ifdef HAVE_LIBKDUMPFILE_SUPPORT
int blackbox_dmesg__read(struct blackbox_messages *m, int fd);
#else
static inline int blackbox_dmesg__read(struct blackbox_messages *m __maybe_unused,
				       int fd __maybe_unused)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* __PERF_BLACKBOX_MESSAGES_H */
