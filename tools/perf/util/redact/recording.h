/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_RECORDING_H
#define __PERF_REDACT_RECORDING_H

#include "code.h"
#include "events.h"
#include "formats.h"
#include "records.h"
#include "../header.h"

#include <linux/types.h>
#include <stdio.h>

struct redact_words;

/**
 * struct redact_recording - a recording that is copied
 * @fd: the file
 * @size: its size
 * @header: its header
 * @sections: of the features that are there, in the order of their numbers
 * @formats: of its tracepoints
 * @tracing: the section HEADER_TRACING_DATA, written anew
 * @tracing_size: its size
 * @events: its events
 * @code: where its programs had code
 * @counts: of what became of its records
 */
struct redact_recording {
	int				fd;
	u64				size;
	struct perf_file_header		header;
	struct perf_file_section	sections[HEADER_FEAT_BITS];
	struct redact_formats		formats;
	char				*tracing;
	size_t				tracing_size;
	struct redact_events		events;
	struct redact_code		code;
	struct redact_counts		counts;
};

int redact_recording__open(struct redact_recording *r, struct redact_words *w, int fd);
int redact_recording__write(struct redact_recording *r, const struct redact_words *w, FILE *f);
void redact_recording__close(struct redact_recording *r);

#endif /* __PERF_REDACT_RECORDING_H */
