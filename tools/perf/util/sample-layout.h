/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_SAMPLE_LAYOUT_H
#define __PERF_SAMPLE_LAYOUT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct perf_event_attr;
union perf_event;

/**
 * enum sample_word - words that samples and other records have in common
 * @SAMPLE_WORD__TID: pid and tid, 32 bits each
 * @SAMPLE_WORD__TIME: time of the record
 * @SAMPLE_WORD__ID: id of the event; the one of PERF_SAMPLE_IDENTIFIER if there are two
 * @SAMPLE_WORD__CPU: CPU and a reserved field, 32 bits each
 * @SAMPLE_WORD__MAX: number of these
 */
enum sample_word {
	SAMPLE_WORD__TID,
	SAMPLE_WORD__TIME,
	SAMPLE_WORD__ID,
	SAMPLE_WORD__CPU,
	SAMPLE_WORD__MAX,
};

/**
 * struct sample_layout - where the words of an event's records are
 * @sample: place of each word in a sample, in words behind the header; -1: none
 * @id: place of each word in the sample_id of other records; -1: none
 * @id_size: bytes of that sample_id
 * @swapped: see sample_layout__init()
 */
struct sample_layout {
	s8	sample[SAMPLE_WORD__MAX];
	s8	id[SAMPLE_WORD__MAX];
	u8	id_size;
	bool	swapped;
};

void sample_layout__init(struct sample_layout *layout, const struct perf_event_attr *attr,
			 bool swapped);
bool sample_layout__is_same(const struct sample_layout *a, const struct sample_layout *b,
			    enum sample_word word);
bool sample_layout__has_same_id(const struct sample_layout *a, const struct sample_layout *b);
int sample_layout__offset(const struct sample_layout *layout, enum sample_word word,
			  u32 type, size_t size);
int sample_layout__id_offset(const struct sample_layout *layout, u32 type, size_t size);
bool sample_layout__pid(const struct sample_layout *layout, const union perf_event *event,
			u32 *pid);
bool sample_layout__time(const struct sample_layout *layout, const union perf_event *event,
			 u64 *time);
bool sample_layout__cpu(const struct sample_layout *layout, const union perf_event *event,
			u32 *cpu);

#endif /* __PERF_SAMPLE_LAYOUT_H */
