// SPDX-License-Identifier: GPL-2.0
/*
 * The events of a recording, and which of them a record is of
 *
 * A record is parsed with the attributes of its event, so it must be the event that
 * perf_session finds, see event2evsel(): by an id in the record, whose place the first event
 * tells. A record with id 0 is of the first event; perf has made it, not the kernel.
 *
 * Attributes are written anew, from the fields that are known. Addresses in them (of a
 * breakpoint, of the name of a kprobe) are left out, and so are parts of samples that are
 * not written, see sample.c.
 */
#include "events.h"
#include "formats.h"
#include "sample.h"
#include "words.h"
#include "../base-api.h"
#include "../debug.h"

#include <perf/event.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room in the table for each id */
#define TABLE_FACTOR	2

/* What the key makes the factor of */
#define FACTOR		1

struct redact_id {
	u64	id;
	u32	event;
	u32	is_used;
};

/* Bits of read_format and branch_sample_type that this perf can parse */
#define READ_FORMATS	(PERF_FORMAT_MAX - 1)
#define BRANCH_TYPES	(PERF_SAMPLE_BRANCH_MAX - 1)

static int check_attr(const struct perf_event_attr *attr)
{
	if (!(attr->sample_type & ~REDACT_SAMPLE_KNOWN) &&
	    !(attr->read_format & ~(u64)READ_FORMATS) &&
	    !(attr->branch_sample_type & ~(u64)BRANCH_TYPES))
		return 0;
	pr_err("The samples have fields that this perf does not know: use the perf that made the recording, or a newer one.\n");
	return -EPROTONOSUPPORT;
}

/**
 * redact_events__add - add an event
 * @events: the events
 * @attr: its attributes
 * @size: bytes of them; what is more than this perf knows is left out
 * @ids: its ids
 * @nr_ids: number of these
 *
 * Return: 0; -ENOMEM; -EPROTONOSUPPORT after a message.
 */
int redact_events__add(struct redact_events *events, const void *attr, size_t size,
		       const void *ids, size_t nr_ids)
{
	struct redact_event *all = reallocarray(events->events, events->nr + 1, sizeof(*all));
	struct redact_event *event;

	if (!all)
		return -ENOMEM;
	events->events = all;
	event = &all[events->nr++];
	memset(event, 0, sizeof(*event));
	memcpy(&event->attr, attr, min(size, sizeof(event->attr)));
	sample_layout__init(&event->layout, &event->attr, /*swapped=*/false);
	event->ids = calloc(nr_ids + 1, sizeof(*event->ids));
	if (!event->ids)
		return -ENOMEM;
	if (nr_ids)
		memcpy(event->ids, ids, nr_ids * sizeof(*event->ids));
	event->nr_ids = nr_ids;
	return check_attr(&event->attr);
}

/*
 * Ids are numbers in a row, or what a hostile file has: it cannot know which of them are put
 * at the same place.
 */
static size_t place_of(const struct redact_events *events, u64 id)
{
	return id * events->factor >> events->shift;
}

static struct redact_id *find_place(const struct redact_events *events, u64 id)
{
	size_t i = place_of(events, id);

	while (events->table[i].is_used && events->table[i].id != id)
		i = (i + 1) & (events->table_size - 1);
	return &events->table[i];
}

/* Of several events with an id, the last one has it, as in perf. */
static void enter_ids(struct redact_events *events, size_t nr)
{
	const struct redact_event *event = &events->events[nr];

	for (size_t i = 0; i < event->nr_ids; i++) {
		struct redact_id *place = find_place(events, event->ids[i]);

		*place = (struct redact_id) {
			.id = event->ids[i], .event = nr, .is_used = true,
		};
	}
}

/**
 * redact_events__finish - all events have been added
 * @events: the events
 * @formats: of tracepoints, which must stay
 * @w: the words
 *
 * Return: 0 or -ENOMEM.
 */
int redact_events__finish(struct redact_events *events, const struct redact_formats *formats,
			  const struct redact_words *w)
{
	size_t nr = 1;

	for (size_t i = 0; i < events->nr; i++)
		nr += events->events[i].nr_ids;
	for (events->table_size = 2; events->table_size < nr * TABLE_FACTOR;)
		events->table_size *= 2;
	events->table = calloc(events->table_size, sizeof(*events->table));
	if (!events->table)
		return -ENOMEM;
	events->factor = redact_words__address(w, FACTOR) | 1;
	events->shift = 64 - __builtin_ctzll(events->table_size);
	for (size_t i = 0; i < events->nr; i++) {
		struct redact_event *event = &events->events[i];

		enter_ids(events, i);
		if (event->attr.type == PERF_TYPE_TRACEPOINT)
			event->format = redact_formats__find(formats, event->attr.config);
	}
	return 0;
}

void redact_events__exit(struct redact_events *events)
{
	for (size_t i = 0; i < events->nr; i++)
		free(events->events[i].ids);
	zfree(&events->events);
	zfree(&events->table);
	events->nr = 0;
}

static int find_id(const struct redact_event *event, const struct perf_event_header *header)
{
	return sample_layout__id_offset(&event->layout, header->type, header->size);
}

/**
 * redact_events__find - find the event that a record is of
 * @events: the events
 * @header: of the record, which need not be aligned
 * @record: the record
 *
 * Return: the event, or NULL.
 */
const struct redact_event *redact_events__find(const struct redact_events *events,
					       const struct perf_event_header *header,
					       const void *record)
{
	const struct redact_event *first = events->events, *event;
	const struct redact_id *place;
	int offset;
	u64 id;

	if (events->nr == 1)
		return first;
	if (!first->attr.sample_id_all && header->type != PERF_RECORD_SAMPLE)
		return first;
	offset = find_id(first, header);
	if (offset < 0)
		return NULL;
	memcpy(&id, record + offset, sizeof(id));
	if (!id)
		return first;
	place = find_place(events, id);
	event = place->is_used ? &events->events[place->event] : NULL;
	/* perf reads no recording in which events have their ids at different places. */
	return event && find_id(event, header) == offset ? event : NULL;
}

/**
 * redact_event__attr - the attributes that are written
 * @event: the event
 * @attr: returns them
 */
void redact_event__attr(const struct redact_event *event, struct perf_event_attr *attr)
{
	const struct perf_event_attr *old = &event->attr;
	bool is_frequency = old->freq;

	*attr = (struct perf_event_attr) {
		.type			= old->type,
		.size			= sizeof(*attr),
		.sample_period		= old->sample_period,
		.sample_type		= old->sample_type & REDACT_SAMPLE_WRITTEN,
		.read_format		= old->read_format,
		.disabled		= old->disabled,
		.inherit		= old->inherit,
		.pinned			= old->pinned,
		.exclusive		= old->exclusive,
		.exclude_user		= old->exclude_user,
		.exclude_kernel		= old->exclude_kernel,
		.exclude_hv		= old->exclude_hv,
		.exclude_idle		= old->exclude_idle,
		.mmap			= old->mmap,
		.comm			= old->comm,
		.freq			= is_frequency,
		.inherit_stat		= old->inherit_stat,
		.enable_on_exec		= old->enable_on_exec,
		.task			= old->task,
		.watermark		= old->watermark,
		.precise_ip		= old->precise_ip,
		.mmap_data		= old->mmap_data,
		.sample_id_all		= old->sample_id_all,
		.exclude_host		= old->exclude_host,
		.exclude_guest		= old->exclude_guest,
		.exclude_callchain_kernel = old->exclude_callchain_kernel,
		.exclude_callchain_user	= old->exclude_callchain_user,
		.mmap2			= old->mmap2,
		.comm_exec		= old->comm_exec,
		.use_clockid		= old->use_clockid,
		.context_switch		= old->context_switch,
		.write_backward		= old->write_backward,
		.ksymbol		= old->ksymbol,
		.cgroup			= old->cgroup,
		.build_id		= old->build_id,
		.inherit_thread		= old->inherit_thread,
		.wakeup_events		= old->wakeup_events,
		.branch_sample_type	= old->branch_sample_type,
		.clockid		= old->clockid,
		.sample_max_stack	= old->sample_max_stack,
	};
	attr__copy_deferral(attr, old);
	/* The other types have an address, or what their driver makes of it. */
	if (old->type == PERF_TYPE_HARDWARE || old->type == PERF_TYPE_SOFTWARE ||
	    old->type == PERF_TYPE_HW_CACHE || old->type == PERF_TYPE_TRACEPOINT ||
	    old->type == PERF_TYPE_RAW)
		attr->config = old->config;
}
