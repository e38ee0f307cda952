// SPDX-License-Identifier: GPL-2.0
/*
 * Sort the records of perf top by time
 *
 * perf top reads one buffer after another in a loop, and passes the records to a
 * thread that processes all available records whenever it is idle, including in
 * the middle of a pass. A new task has records in two buffers: that of the CPU
 * where its parent forked, and that of its own CPU. If the second buffer is read
 * first, and the thread processes it before the other one has been read, the task
 * gets its own maps first and then, from the earlier fork, those of its parent. All
 * further samples of the task are then unresolved.
 *
 * Records are therefore sorted before the thread gets them. Buffers are not all read
 * at the same time, so records that are newer than the newest record of the previous
 * pass are held back: another buffer may have an older record that was written after
 * it was read. All records written before the end of one pass have been read by the
 * end of the next one. FINISHED_ROUND has the same meaning in a file.
 */
#include "top-pass.h"
#include "debug.h"
#include "top.h"

/**
 * top_pass__init - initialize
 * @top: perf top; the reading thread owns its passes
 * @deliver: called for each record in the order of time; ordered_events::data is @top
 */
void top_pass__init(struct perf_top *top, ordered_events__deliver_t deliver)
{
	ordered_events__init(&top->pass, deliver, top);
	/* The buffers are overwritten, so copy the records. */
	ordered_events__set_copy_on_queue(&top->pass, true);
}

/**
 * top_pass__exit - drop the pending records
 * @top: perf top
 */
void top_pass__exit(struct perf_top *top)
{
	ordered_events__free(&top->pass);
}

/**
 * top_pass__add - add a record of a buffer
 * @event: the record, which is copied
 * @timestamp: its time
 * @data: perf top
 *
 * Return: 0, or a negative errno: -ETIME without a time, -ENOMEM.
 */
int top_pass__add(union perf_event *event, u64 timestamp, void *data)
{
	struct perf_top *top = data;

	return ordered_events__queue(&top->pass, event, timestamp, 0, NULL);
}

/**
 * top_pass__end - end a pass and deliver the records that no older one can precede
 * @top: perf top
 */
void top_pass__end(struct perf_top *top)
{
	if (ordered_events__flush(&top->pass, OE_FLUSH__ROUND))
		pr_debug("records wait for the next pass\n");
}
