/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_OUTPUT_H
#define __PERF_REDACT_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The recording, and its manifest */
#define REDACT_FILES	2

/**
 * struct redact_file - a file that is being written
 * @path: its name
 * @tmp: the name that it has until it is complete
 * @old: the name that what it replaces has meanwhile, or NULL
 * @f: the file; NULL: there is none, and what has the name is removed
 */
struct redact_file {
	char	*path;
	char	*tmp;
	char	*old;
	FILE	*f;
};

/**
 * struct redact_output - a recording and its manifest, both or none of which are written
 * @files: they
 */
struct redact_output {
	struct redact_file	files[REDACT_FILES];
};

int redact_output__open(struct redact_output *out, const char *path, const char *input,
			bool has_manifest, bool force);
int redact_output__commit(struct redact_output *out);
void redact_output__close(struct redact_output *out);

#endif /* __PERF_REDACT_OUTPUT_H */
