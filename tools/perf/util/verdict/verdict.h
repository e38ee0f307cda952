/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_H
#define __PERF_VERDICT_H

#include <stdbool.h>

/**
 * struct verdict_options - what is to be told
 * @path: recording
 * @force: read files of others
 * @json: print JSON
 * @compare: tell what changed
 * @queues: tell how long tasks waited for CPUs
 * @side_band: tell where records were lost, and when tasks ended
 * @part: the part that is compared, as a range of time; NULL: it is chosen
 * @against: ranges of time that it is compared with; NULL: the rest
 */
struct verdict_options {
	const char	*path;
	bool		force;
	bool		json;
	bool		compare;
	bool		queues;
	bool		side_band;
	const char	*part;
	const char	*against;
};

#ifdef HAVE_LIBTRACEEVENT

int verdict__run(const struct verdict_options *o);

#else

#include "debug.h"
#include <errno.h>

static inline int verdict__run(const struct verdict_options *o)
{
	(void)o;
	pr_err("perf verdict is not available: perf was built without libtraceevent. Install the package libtraceevent-dev, and build perf again.\n");
	return -ENOTSUP;
}

#endif

#endif /* __PERF_VERDICT_H */
