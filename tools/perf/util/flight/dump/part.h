/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_PART_H
#define __PERF_FLIGHT_PART_H

#include "../../sample-layout.h"

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * struct part_event - an event of a file
 * @attr: its attributes in the file
 * @ids: its ids
 * @nr_ids: number of ids
 */
struct part_event {
	const void	*attr;
	const void	*ids;
	size_t		nr_ids;
};

/**
 * struct part_record - a record of a file
 * @time: its time; 0: none
 * @seq: its position in the file
 * @data: the record, possibly not aligned
 * @size: its size in bytes
 */
struct part_record {
	u64		time;
	u64		seq;
	const void	*data;
	size_t		size;
};

/**
 * struct part - a file to be combined with others
 * @path: its name
 * @map: all of it
 * @size: bytes of it
 * @truncated: its end is missing
 * @attr_size: bytes of an event's attributes
 * @events: its events
 * @nr_events: how many
 * @layout: where the time is in its records
 * @features: bitmap of features
 * @feature_pos: where their table is; 0: missing
 * @pos: next record to read
 * @end: end of the records
 * @preamble: what is no record of the kernel's, and comes first
 * @nr_preamble: how many
 * @state: side-band without a time: the state before the oldest record
 * @nr_state: how many
 * @oldest: time of the oldest record, 0: there is none
 * @records: read and not taken yet
 * @first: the first of them that was not taken
 * @nr: end of them
 * @room: room for them
 * @complete: records before this time will not come any more
 * @round_newest: newest time up to the round that was read last
 * @late: records that came behind later ones
 */
struct part {
	char			*path;
	const void		*map;
	size_t			size;
	bool			truncated;
	size_t			attr_size;
	struct part_event	*events;
	size_t			nr_events;
	struct sample_layout	layout;
	u64			features[4];
	u64			feature_pos;
	u64			pos;
	u64			end;
	struct part_record	*preamble;
	size_t			nr_preamble;
	struct part_record	*state;
	size_t			nr_state;
	u64			oldest;
	struct part_record	*records;
	size_t			first;
	size_t			nr;
	size_t			room;
	u64			complete;
	u64			round_newest;
	u64			late;
};

int part__open(struct part *p, const char *path);
void part__close(struct part *p);
const struct part_record *part__peek(struct part *p);
bool part__feature(const struct part *p, int feature, const void **data, size_t *size);

static inline void part__take(struct part *p)
{
	p->first++;
}

#endif /* __PERF_FLIGHT_PART_H */
