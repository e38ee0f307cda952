/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_RECORDING_H
#define __PERF_BLACKBOX_RECORDING_H

#include "image.h"

#include <linux/types.h>
#include <stddef.h>
#include <stdio.h>

/**
 * struct blackbox_item - a record of the recording
 * @time: its time, 0: it describes the state before all others
 * @seq: its number; records that were made precede those of the buffers
 * @data: the record
 */
struct blackbox_item {
	u64		time;
	u64		seq;
	const void	*data;
};

/**
 * struct blackbox_group - the same event on several CPUs
 * @events: the events, by CPU
 * @nr: number of these
 */
struct blackbox_group {
	const struct blackbox_event	**events;
	size_t				nr;
};

/**
 * struct blackbox_task_time - when a buffer describes a task for the first time
 * @id: its thread id, or process id
 * @time: when
 */
struct blackbox_task_time {
	u32	id;
	u64	time;
};

/**
 * struct blackbox_cpu - what there is of a CPU
 * @cpu: which one, or -1
 * @oldest: time of its oldest sample, or 0
 * @newest: time of its newest sample
 * @events: number of samples
 * @lost: events that the kernel has lost
 * @throttled: how often an event was throttled
 * @given_up: bytes that were dropped
 */
struct blackbox_cpu {
	s32	cpu;
	u64	oldest;
	u64	newest;
	u64	events;
	u64	lost;
	u64	throttled;
	u64	given_up;
};

/**
 * struct blackbox_told - a thread that has a name at the start
 * @tid: its number
 * @time: when notes named it, by perf's clock; 0: the table of the death did
 * @comm: the name in the notes; NULL: that of its parent
 */
struct blackbox_told {
	u32		tid;
	u64		time;
	const char	*comm;
};

/* A record that is made here */
struct blackbox_made {
	struct blackbox_made	*next;
	u64			bytes[];
};

struct blackbox_messages;

/**
 * struct blackbox_recording - the records of a session, in the order of time
 * @session: the session
 * @messages: what its kernel has printed, or NULL
 * @notes_formats: formats of tracepoints in the notes, as in perf.data, or NULL
 * @notes_formats_size: bytes of these
 * @formats: those of its tracepoints, see blackbox_formats__make()
 * @formats_size: bytes of these
 * @formats_unknown: tracepoints whose format is made up
 * @items: the records
 * @nr_items: number of these
 * @items_room: allocated size of @items
 * @made: records that are not in the image
 * @sorted: pointers to all events, for @groups
 * @groups: the events of the recording, side-band last
 * @nr_groups: number of these
 * @threads: threads that buffers describe
 * @nr_threads: number of these
 * @processes: processes that buffers describe
 * @nr_processes: number of these
 * @told: threads that notes and table name, sorted by number and time
 * @nr_told: number of these
 * @told_room: allocated size of @told
 * @cpus: by CPU
 * @nr_cpus: number of these
 * @build_ids: records of build-ids in the notes
 * @nr_build_ids: number of these
 * @notes_dropped: records in the notes that are damaged, or of an unknown type
 * @oldest: time of the oldest sample
 * @newest: time of the newest sample
 * @events: number of samples
 * @lost: events that the kernel has lost
 * @throttled: how often an event was throttled
 * @given_up: bytes that were dropped
 * @unresolved: samples of tasks without a description
 * @bytes_dropped: the same by reason
 * @records_dropped: records that these were, as far as is known
 */
struct blackbox_recording {
	const struct blackbox_session	*session;
	const struct blackbox_messages	*messages;
	const void			*notes_formats;
	size_t				notes_formats_size;
	char				*formats;
	size_t				formats_size;
	u32				formats_unknown;
	struct blackbox_item		*items;
	size_t				nr_items;
	size_t				items_room;
	struct blackbox_made		*made;
	const struct blackbox_event	**sorted;
	struct blackbox_group		*groups;
	size_t				nr_groups;
	struct blackbox_task_time	*threads;
	size_t				nr_threads;
	struct blackbox_task_time	*processes;
	size_t				nr_processes;
	struct blackbox_told		*told;
	size_t				nr_told;
	size_t				told_room;
	struct blackbox_cpu		*cpus;
	size_t				nr_cpus;
	const void			**build_ids;
	size_t				nr_build_ids;
	u64				notes_dropped;
	u64				oldest;
	u64				newest;
	u64				events;
	u64				lost;
	u64				throttled;
	u64				given_up;
	u64				unresolved;
	u64				bytes_dropped[BLACKBOX_DROP_MAX];
	u64				records_dropped[BLACKBOX_DROP_MAX];
};

int blackbox_recording__init(struct blackbox_recording *r, const struct blackbox_session *s);
void blackbox_recording__exit(struct blackbox_recording *r);
int blackbox_recording__add(struct blackbox_recording *r, const void *data, u64 time);
void *blackbox_recording__make(struct blackbox_recording *r, u16 type, u16 misc, size_t size,
			       u64 time);
bool blackbox_recording__has_clock(const struct blackbox_recording *r);

int blackbox_names__add(struct blackbox_recording *r);
void blackbox_names__resolve(struct blackbox_recording *r);

int blackbox_recording__write(const struct blackbox_recording *r, FILE *f);
int blackbox_manifest__write(const struct blackbox_recording *r, const char *file, u64 bytes,
			     FILE *f);

#endif /* __PERF_BLACKBOX_RECORDING_H */
