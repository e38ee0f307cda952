/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_EVENTS_H
#define __PERF_REDACT_EVENTS_H

#include "../sample-layout.h"

#include <linux/perf_event.h>
#include <linux/types.h>
#include <stddef.h>

struct perf_event_header;
struct redact_format;
struct redact_formats;
struct redact_words;

/**
 * struct redact_event - an event of a recording
 * @attr: its attributes, as they are in the recording
 * @layout: places of the words of its records
 * @ids: its ids
 * @nr_ids: number of these
 * @format: of its tracepoint, or NULL
 */
struct redact_event {
	struct perf_event_attr		attr;
	struct sample_layout		layout;
	u64				*ids;
	size_t				nr_ids;
	const struct redact_format	*format;
};

/**
 * struct redact_events - the events of a recording
 * @events: they
 * @nr: number of these
 * @table: finds an event by an id
 * @table_size: places in @table, a power of two
 * @factor: spreads the ids over them; drawn for each copy
 * @shift: leaves as many bits as there are places
 */
struct redact_events {
	struct redact_event	*events;
	size_t			nr;
	struct redact_id	*table;
	size_t			table_size;
	u64			factor;
	int			shift;
};

int redact_events__add(struct redact_events *events, const void *attr, size_t size,
		       const void *ids, size_t nr_ids);
int redact_events__finish(struct redact_events *events, const struct redact_formats *formats,
			  const struct redact_words *w);
void redact_events__exit(struct redact_events *events);
const struct redact_event *redact_events__find(const struct redact_events *events,
					       const struct perf_event_header *header,
					       const void *record);
void redact_event__attr(const struct redact_event *event, struct perf_event_attr *attr);

#endif /* __PERF_REDACT_EVENTS_H */
