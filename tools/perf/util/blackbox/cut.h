/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_CUT_H
#define __PERF_BLACKBOX_CUT_H

#include "record.h"

/**
 * struct blackbox_ring - a ring buffer as its machine left it
 * @data: the data area, in the order of the ring
 * @size: bytes of it; a power of two
 * @data_head: what the header page says
 * @head: rb->head: what was reserved
 * @backward: positions decrease
 * @is_32bit: positions have 32 bits
 */
struct blackbox_ring {
	const void	*data;
	u64		size;
	u64		data_head;
	u64		head;
	bool		backward;
	bool		is_32bit;
};

/**
 * struct blackbox_span - a record that is intact
 * @time: its time, or 0
 * @pos: its first byte in blackbox_cut::bytes
 */
struct blackbox_span {
	u64	time;
	u64	pos;
};

/**
 * struct blackbox_cut - what a ring buffer holds
 * @bytes: intact bytes in one piece, from the lowest position on
 * @len: number of these
 * @spans: the records in @bytes, oldest first
 * @nr: number of these
 * @wrapped: older records were overwritten
 * @bytes_dropped: bytes that are not in @spans, by reason
 * @records_dropped: records that these were, as far as is known
 */
struct blackbox_cut {
	void			*bytes;
	u64			len;
	struct blackbox_span	*spans;
	size_t			nr;
	bool			wrapped;
	u64			bytes_dropped[BLACKBOX_DROP_MAX];
	u64			records_dropped[BLACKBOX_DROP_MAX];
};

int blackbox_cut__init(struct blackbox_cut *cut, const struct blackbox_ring *ring,
		       const struct blackbox_ids *ids);
void blackbox_cut__exit(struct blackbox_cut *cut);

#endif /* __PERF_BLACKBOX_CUT_H */
