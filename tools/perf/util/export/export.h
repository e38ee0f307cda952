/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_H
#define __PERF_EXPORT_H

#include "debug.h"

#include <errno.h>
#include <stdbool.h>

/**
 * struct export_options - what to convert to what
 * @format: "pprof", "otlp" or "perfetto"
 * @input: recording
 * @output: file to write, "-" for the standard output
 * @redact: what is left out, or NULL
 * @force: overwrite, and read files of others
 */
struct export_options {
	const char	*format;
	const char	*input;
	const char	*output;
	const char	*redact;
	bool		force;
};

#ifdef HAVE_PROTOBUF_C_SUPPORT

int export__run(const struct export_options *opts);

#else

static inline int export__run(const struct export_options *opts)
{
	pr_err("--to-%s is not available: perf was built without protobuf-c. Install the packages libprotobuf-c-dev and protobuf-c-compiler, and build perf again.\n",
	       opts->format);
	return -ENOTSUP;
}

#endif /* HAVE_PROTOBUF_C_SUPPORT */

#endif /* __PERF_EXPORT_H */
