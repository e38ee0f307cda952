/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_STREAM_H
#define __PERF_REDACT_STREAM_H

#include <linux/types.h>
#include <stdio.h>

struct redact_code;
struct redact_counts;
struct redact_events;
struct redact_words;

/**
 * struct redact_stream - what it takes to read the records of a recording
 * @events: of the recording
 * @w: the words
 * @code: where programs had code; without @f, it is learnt from the records
 * @counts: of what became of the records
 * @f: where the records go, or NULL
 */
struct redact_stream {
	const struct redact_events	*events;
	const struct redact_words	*w;
	struct redact_code		*code;
	struct redact_counts		*counts;
	FILE				*f;
};

int redact_stream__copy(const struct redact_stream *s, int fd, u64 offset, u64 size);

#endif /* __PERF_REDACT_STREAM_H */
