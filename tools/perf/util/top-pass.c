// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which perf top takes records.
 *
 * perf top reads one buffer after another, again and again, and hands what it read to a
 * thread that takes all there is whenever it has nothing to do, amid a pass as well. A new
 * task has its records in two buffers: that of the CPU where its parent forked, and that of
 * its own. Where the second is read first, and the thread takes it before the first is
 * read, the task gets its maps and then, by the fork that came before them, those of its
 * parent: its samples are of unknown code from then on.
 *
 * So what was read is put in order before the thread may have it, and as buffers are not
 * read at the same moment, what is newer than the newest record of the pass before waits:
 * other buffers may have something older, which was written behind their reader's back.
 * Whatever was written before the end of one pass is there at the end of the next. That is
 * what a FINISHED_ROUND stands for in a file.
 */
#include "top-pass.h"
#include "debug.h"
#include "top.h"

/**
 * top_pass__init - begin
 * @top: perf top; its passes belong to the thread that reads
 * @deliver: takes each record in the order of time; ordered_events::data is @top
 */
void top_pass__init(struct perf_top *top, ordered_events__deliver_t deliver)
{
	ordered_events__init(&top->pass, deliver, top);
	/* The buffers are written again. */
	ordered_events__set_copy_on_queue(&top->pass, true);
}

/**
 * top_pass__exit - drop what waits
 * @top: perf top
 */
void top_pass__exit(struct perf_top *top)
{
	ordered_events__free(&top->pass);
}

/**
 * top_pass__add - take a record out of a buffer
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
 * top_pass__end - all buffers were read: hand out what can have nothing before it any more
 * @top: perf top
 */
void top_pass__end(struct perf_top *top)
{
	if (ordered_events__flush(&top->pass, OE_FLUSH__ROUND))
		pr_debug("records wait for the next pass\n");
}
