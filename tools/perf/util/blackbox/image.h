/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_IMAGE_H
#define __PERF_BLACKBOX_IMAGE_H

#include "cut.h"
#include "record.h"

#include <linux/perf_blackbox.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * struct blackbox_broken - links of a session of a scattered image that lead nowhere
 * @events: some of its events are missing
 * @notes: of each slot for notes, it or its end is missing
 */
struct blackbox_broken {
	bool	events;
	bool	notes[2];
};

/**
 * struct blackbox_image - an image that was found
 * @base: its first byte
 * @size: bytes of it that there are; fewer than its size if the file ends before
 * @offset: where it begins in the file
 * @left_out: bytes of it that the file does not have; they are zeros
 * @is_copy: @base is memory of its own, of @size bytes
 * @super: its superblock; that of a scattered image has the places in what was assembled
 * @state: PERF_BLACKBOX_LIVE, ...; 0 if it is none of these
 * @has_death: @death is valid
 * @death: how the kernel died
 * @tasks: tasks that were alive then, @nr_tasks entries
 * @nr_tasks: number of these; 0 if the table is damaged
 * @tasks_bad: the table of tasks is damaged
 * @sessions_broken: the list of sessions of a scattered image ends with a broken link: one or
 *	more are missing
 * @broken: links of each session of a scattered image, or NULL
 * @damaged: sessions that are damaged, and one each for the death if that is, and for
 *	@sessions_broken
 * @overlaps: there is another image at its own address in the same memory: one is forged, or
 *	was left behind by an earlier kernel
 */
struct blackbox_image {
	const void			*base;
	u64				size;
	u64				offset;
	u64				left_out;
	bool				is_copy;
	struct perf_blackbox_super	super;
	u32				state;
	bool				has_death;
	struct perf_blackbox_death	death;
	struct perf_blackbox_task	*tasks;
	size_t				nr_tasks;
	bool				tasks_bad;
	bool				sessions_broken;
	struct blackbox_broken		*broken;
	u32				damaged;
	bool				overlaps;
};

static inline bool blackbox_image__is_scattered(const struct blackbox_image *image)
{
	return image->super.flags & PERF_BLACKBOX_SUPER_SCATTERED;
}

/**
 * struct blackbox_buffer - a ring buffer of a session
 * @index: its number in the image
 * @cpu: its CPU, or -1
 * @ring: its data and positions
 * @nest: writers that had not finished
 * @lost: records lost that no record tells of
 * @ids: the events that write to it
 * @cut: what it holds
 */
struct blackbox_buffer {
	u32			index;
	s32			cpu;
	struct blackbox_ring	ring;
	u32			nest;
	u64			lost;
	struct blackbox_ids	ids;
	struct blackbox_cut	cut;
};

/**
 * struct blackbox_note - records that user space has stored with a session
 * @data: the records
 * @size: bytes of these
 * @time: when they were stored, on perf's clock
 * @real: the same by the wall clock
 */
struct blackbox_note {
	const void		*data;
	u64			size;
	u64			time;
	u64			real;
};

/**
 * struct blackbox_session - a session of an image
 * @image: the image
 * @entry: what the image says of it
 * @broken: its links, or NULL if it has none
 * @events: its events, by buffer and id
 * @nr_events: number of these
 * @events_bad: events that are left out, because they are damaged, or cannot be told from
 *	others; and one for those behind a broken link
 * @buffers: its buffers
 * @nr_buffers: number of these
 * @buffers_bad: buffers that are damaged, or not in the file
 * @notes: base and additions, @nr_notes
 * @nr_notes: number of these
 * @notes_bad: slots and additions that are damaged, or behind a broken link
 */
struct blackbox_session {
	const struct blackbox_image	*image;
	struct perf_blackbox_session	entry;
	const struct blackbox_broken	*broken;
	struct blackbox_event		*events;
	size_t				nr_events;
	u32				events_bad;
	struct blackbox_buffer		*buffers;
	size_t				nr_buffers;
	u32				buffers_bad;
	struct blackbox_note		*notes;
	size_t				nr_notes;
	u32				notes_bad;
};

/**
 * enum blackbox_found - what a place in a file is
 * @BLACKBOX_FOUND_NOTHING: no image
 * @BLACKBOX_FOUND_IMAGE: an image
 * @BLACKBOX_FOUND_FOREIGN: an image of a machine of the other byte order
 * @BLACKBOX_FOUND_VERSION: an image of another version
 * @BLACKBOX_FOUND_DAMAGED: an image whose superblock is damaged
 */
enum blackbox_found {
	BLACKBOX_FOUND_NOTHING,
	BLACKBOX_FOUND_IMAGE,
	BLACKBOX_FOUND_FOREIGN,
	BLACKBOX_FOUND_VERSION,
	BLACKBOX_FOUND_DAMAGED,
};

enum blackbox_found blackbox_image__find(const void *bytes, u64 size, u64 offset,
					 struct blackbox_image *image);
int blackbox_image__read(struct blackbox_image *image);
void blackbox_image__exit(struct blackbox_image *image);
bool blackbox_image__has_session(const struct blackbox_image *image, u32 i,
				 struct perf_blackbox_session *entry);

const char *blackbox_image__state_name(const struct blackbox_image *image);
const char *blackbox_image__reason(const struct blackbox_image *image);
u64 blackbox_session__death_time(const struct blackbox_session *s, u64 newest, u64 *perf);
const char *blackbox__wall_clock(u64 ns, char *buf, size_t size);

int blackbox_session__init(struct blackbox_session *s, const struct blackbox_image *image,
			   u32 i);
int blackbox_session__cut(struct blackbox_session *s);
void blackbox_session__exit(struct blackbox_session *s);

#endif /* __PERF_BLACKBOX_IMAGE_H */
