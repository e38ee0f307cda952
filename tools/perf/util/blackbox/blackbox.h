/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_H
#define __PERF_BLACKBOX_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct flight_recorder;

/**
 * struct blackbox_options - options of perf data recover
 * @image: the file; NULL: what the last boot left
 * @last: of the latter, the region or the image
 * @output: name of the recording
 * @session: only this one
 * @list: show what there is
 * @release: allow the kernel to write over it
 * @all: those of machines that have not died, too
 * @force: overwrite
 */
struct blackbox_options {
	const char	*image;
	const char	*last;
	const char	*output;
	const char	*session;
	bool		list;
	bool		release;
	bool		all;
	bool		force;
};

int cmd_data_recover(int argc, const char **argv);
int cmd_data_note(int argc, const char **argv);
void blackbox__note(u64 id);
void blackbox__keep_notes(struct flight_recorder *fr, const char *what);
int blackbox__recover(const struct blackbox_options *opts);

#endif /* __PERF_BLACKBOX_H */
