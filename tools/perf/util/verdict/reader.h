/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_READER_H
#define __PERF_VERDICT_READER_H

#include "chains.h"
#include "history.h"

#include "data.h"

struct perf_session;

/* The session refers to the data. */
struct verdict_recording {
	struct perf_data	data;
	struct perf_session	*session;
};

int verdict_history__read(struct verdict_history *h, struct verdict_chains *chains,
			  const char *path, bool force, struct verdict_recording *rec);

#endif /* __PERF_VERDICT_READER_H */
