/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_RECORD_H
#define __PERF_BLACKBOX_RECORD_H

#include "../sample-layout.h"

#include <linux/perf_event.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * enum blackbox_drop - why bytes of a buffer are not in the recording
 * @BLACKBOX_OK: they are
 * @BLACKBOX_DROP_IN_FLIGHT: they were being written when the machine died
 * @BLACKBOX_DROP_OVERWRITTEN: old records that what was being written had overwritten
 * @BLACKBOX_DROP_PARTIAL: the oldest record, whose end newer records had overwritten
 * @BLACKBOX_DROP_SIZE: no record can have this size; nothing behind it can be found
 * @BLACKBOX_DROP_TYPE: the kernel writes no records of this type
 * @BLACKBOX_DROP_ID: the id is that of no event of the buffer
 * @BLACKBOX_DROP_CPU: the record is of another CPU than the buffer
 * @BLACKBOX_DROP_TIME: the time is out of order
 * @BLACKBOX_DROP_BODY: a length or a string in the record exceeds the record
 * @BLACKBOX_DROP_MAX: number of these
 */
enum blackbox_drop {
	BLACKBOX_OK,
	BLACKBOX_DROP_IN_FLIGHT,
	BLACKBOX_DROP_OVERWRITTEN,
	BLACKBOX_DROP_PARTIAL,
	BLACKBOX_DROP_SIZE,
	BLACKBOX_DROP_TYPE,
	BLACKBOX_DROP_ID,
	BLACKBOX_DROP_CPU,
	BLACKBOX_DROP_TIME,
	BLACKBOX_DROP_BODY,
	BLACKBOX_DROP_MAX,
};

/**
 * struct blackbox_event - an event of a session on one CPU
 * @attr: its attributes, as far as this perf knows them
 * @id: its id in records
 * @cpu: its CPU, or -1
 * @index: its number on that CPU
 * @buffer: number of its buffer in the image
 * @name: SUBSYS:EVENT of a tracepoint, or ""
 * @pmu: name of its PMU, or ""
 * @layout: places of id, task, time and CPU in its records
 */
struct blackbox_event {
	struct perf_event_attr	attr;
	u64			id;
	s32			cpu;
	u32			index;
	u32			buffer;
	char			name[184];
	char			pmu[32];
	struct sample_layout	layout;
};

/**
 * struct blackbox_ids - the events whose records may be in a buffer
 * @events: the events, by id
 * @nr: number of these
 * @cpu: CPU of the buffer, or -1
 */
struct blackbox_ids {
	const struct blackbox_event	*events;
	size_t				nr;
	s32				cpu;
};

/**
 * struct blackbox_shape - the fixed fields of a record other than a sample
 * @size: bytes of header and fields, without the string
 * @string: a string follows them
 */
struct blackbox_shape {
	u8	size;
	bool	string;
};

const char *blackbox_drop__name(enum blackbox_drop drop);
bool blackbox_event__has_id(const struct blackbox_event *event, u32 type);
const struct blackbox_event *blackbox_ids__find(const struct blackbox_ids *ids, u64 id);
const struct blackbox_shape *blackbox_record__shape(u32 type);
bool blackbox_record__fits_build_id(const struct perf_event_header *header, const void *record);
const struct blackbox_event *blackbox_record__event(const struct blackbox_ids *ids,
						    const void *record);
enum blackbox_drop blackbox_record__check(const struct blackbox_ids *ids, const void *record,
					  size_t room, u64 *time);

#endif /* __PERF_BLACKBOX_RECORD_H */
