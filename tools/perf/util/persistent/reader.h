/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_PERSISTENT_READER_H
#define __PERF_PERSISTENT_READER_H

#include "persistent.h"
#include "../snapshot-cover.h"
#include "../tool.h"

#include <linux/types.h>
#include <perf/snapshot.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct evlist;
struct perf_cpu_map;
struct perf_data;
struct perf_session;
struct record_opts;

/**
 * struct persistent_buffer - a ring buffer of the session
 * @event: the event that owns it
 * @len: its size, with its header page
 * @snap: copies of it
 * @kind: what it holds; samples may share it with their halves
 * @nr_records: number of its records that were passed to put()
 * @err: result of the last copy
 * @cover: times and losses of the copies of all passes
 */
struct persistent_buffer {
	const struct persistent_event	*event;
	size_t				len;
	struct perf_snapshot		*snap;
	enum persistent_kind		kind;
	u64				nr_records;
	int				err;
	struct snapshot_cover		cover;
};

/**
 * struct persistent_reader - a persistent session that is being read
 * @tool: passes synthesized records to @put
 * @put: gets each record or several of them, in order
 * @say: prints a message without waiting for its reader; NULL: pr_err() does
 * @closing: the file of an event is about to be closed; may be NULL
 * @knows: is a process known from elsewhere, from before the records? NULL: none is
 * @opts: options of perf record
 * @ps: the persistent session, with the events that it had when it was opened
 * @more: events that it got later, see persistent_reader__add()
 * @nr_more: entries of @more
 * @data: the file
 * @session: perf's session of the file, for persistent_reader__synthesize()
 * @evlist: the session's events, which become perf record's
 * @cpus: the CPUs whose samples are wanted
 * @set: the snapshots of all buffers
 * @buffers: the buffers to read, samples, halves, side-band
 * @nr_buffers: number of them
 * @chunk: records on their way to @put
 * @samples: number of samples that were passed to @put
 * @lost: events that the kernel could not store, ever
 * @unknown: records of events that are not in @evlist
 * @incomplete: some of what describes the records could not be written
 * @complete_since: from then on, no side-band is missing
 */
struct persistent_reader {
	struct perf_tool		tool;
	int				(*put)(struct persistent_reader *r, void *buf, size_t size);
	void				(*say)(struct persistent_reader *r, const char *text);
	void				(*closing)(struct persistent_reader *r, int fd);
	bool				(*knows)(struct persistent_reader *r, pid_t pid);
	struct record_opts		*opts;
	struct persistent_session	*ps;
	struct persistent_session	**more;
	int				nr_more;
	struct perf_data		*data;
	struct perf_session		*session;
	struct evlist			*evlist;
	struct perf_cpu_map		*cpus;
	struct perf_snapshot_set	*set;
	struct persistent_buffer	*buffers;
	int				nr_buffers;
	char				*chunk;
	u64				samples;
	u64				lost;
	u64				unknown;
	bool				incomplete;
	u64				complete_since;
};

/* Is the event of the buffer one of these? */
static inline bool persistent_buffer__is_of(const struct persistent_buffer *buf,
					    const struct persistent_session *ps)
{
	return buf->event >= ps->events && buf->event < ps->events + ps->nr_events;
}

int persistent_reader__open(struct persistent_reader *r, const char *what);
int persistent_reader__map(struct persistent_reader *r);
int persistent_reader__add(struct persistent_reader *r, struct persistent_session *ps);
void persistent_reader__forget(struct persistent_reader *r);
void persistent_reader__forget_session(struct persistent_reader *r);
int persistent_reader__take(struct persistent_reader *r, unsigned int flags);
void persistent_reader__set_options(struct persistent_reader *r);
int persistent_reader__describe(struct persistent_reader *r);
int persistent_reader__synthesize(struct persistent_reader *r);
int persistent_reader__put_pass(struct persistent_reader *r);
bool persistent_reader__wants(struct persistent_reader *r, const struct persistent_event *event);
void persistent_reader__exit(struct persistent_reader *r);

#endif /* __PERF_PERSISTENT_READER_H */
