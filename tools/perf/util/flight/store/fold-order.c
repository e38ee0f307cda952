// SPDX-License-Identifier: GPL-2.0
/*
 * Fold side-band records into their store in the order of their times
 *
 * A round is stored as it was read, one buffer behind the other. The side-band store
 * wants the order in which things happened: a process that is forked on one CPU may
 * call exec() on another one, whose buffer was read before, and whoever takes the exec
 * for older than the fork gives the process its parent's name and maps again.
 *
 * So what is evicted waits here until nothing older can come. When that is, the rule
 * of rounds says, and ordered_events has it: behind round n+1, all that is not newer
 * than the newest record of round n may go. The owner joins evicted rounds that were
 * closed soon after one another, see round_group__ends().
 *
 *	 folded into the store      waits here         retained rounds
 *	|---------------------|-----------------------|-------------------| now
 *	                      newest of the round
 *	                      before the last evicted
 *
 * What waits is of the last evicted round, or of the one before, and newer than the
 * state in the store. A dump tells it between that and the rounds.
 *
 * Memory is bounded by a limit; what does not fit makes the older half go at once.
 */
#include "fold-order.h"
#include "sideband-store.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../ordered-events.h"

#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>

/* What an allocation takes on top. */
#define MALLOC_OVERHEAD		16

/**
 * struct fold_order - side-band on its way into a store
 * @oe: what waits
 * @evlist: the events that the records are of
 * @ss: the store
 * @newest: time of the newest record that was added
 * @before: that, at the end of the last round
 * @taken: where fold_order__take() puts it
 * @nr_taken: how much it has put there
 */
struct fold_order {
	struct ordered_events	oe;
	struct evlist		*evlist;
	struct sideband_store	*ss;
	u64			newest;
	u64			before;
	union perf_event	**taken;
	unsigned int		nr_taken;
};

static int deliver(struct ordered_events *oe, struct ordered_event *event)
{
	struct fold_order *fo = container_of(oe, struct fold_order, oe);

	if (fo->taken) {
		/* Not to be freed, but no longer ours. */
		oe->merge.bytes -= event->event->header.size;
		fo->taken[fo->nr_taken++] = event->event;
	} else {
		/* What has no room is counted there, and is no reason to stop. */
		sideband_store__fold(fo->ss, event->event);
	}
	return 0;
}

/**
 * fold_order__new - nothing waits
 * @evlist: the events, which tell where a record has its time
 * @ss: the store; both must last as long
 * @limit: bytes that may wait
 *
 * Return: NULL if there is no memory.
 */
struct fold_order *fold_order__new(struct evlist *evlist, struct sideband_store *ss,
				   size_t limit)
{
	struct fold_order *fo = zalloc(sizeof(*fo));

	if (!fo)
		return NULL;
	fo->evlist = evlist;
	fo->ss = ss;
	ordered_events__init(&fo->oe, deliver, NULL);
	ordered_events__set_copy_on_queue(&fo->oe, true);
	ordered_events__set_alloc_size(&fo->oe, limit);
	return fo;
}

void fold_order__delete(struct fold_order *fo)
{
	if (fo)
		ordered_events__free(&fo->oe);
	free(fo);
}

static bool time_of(struct fold_order *fo, union perf_event *event, u64 *time)
{
	size_t size = sizeof(event->header) + evlist__id_hdr_size(fo->evlist);

	return event->header.size >= size &&
	       !evlist__parse_sample_timestamp(fo->evlist, event, time);
}

/**
 * fold_order__add - a record has left the rounds
 * @fo: the order
 * @event: the record, which is copied; it need not be side-band
 *
 * One without a time, which perf has synthesized, is folded at once, and so is one for
 * which there is no memory.
 *
 * Return: 1 if the record is side-band.
 */
int fold_order__add(struct fold_order *fo, union perf_event *event)
{
	u64 time = 0;

	if (!sideband_store__is_sideband(event))
		return 0;
	if (!time_of(fo, event, &time) ||
	    ordered_events__queue(&fo->oe, event, time, 0, NULL))
		sideband_store__fold(fo->ss, event);
	fo->newest = max(fo->newest, time);
	return 1;
}

/**
 * fold_order__end_round - all of a round has been added
 * @fo: the order
 *
 * All rounds before it are in the store then, down to their last record: also if the
 * limit has made ordered_events forget where the last round ended.
 */
void fold_order__end_round(struct fold_order *fo)
{
	ordered_events__flush_time(&fo->oe, fo->before);
	fo->before = fo->newest;
}

/**
 * fold_order__flush - nothing comes any more
 * @fo: the order
 */
void fold_order__flush(struct fold_order *fo)
{
	ordered_events__flush(&fo->oe, OE_FLUSH__TOP);
}

/**
 * fold_order__used - bytes of memory that what waits takes
 * @fo: the order
 */
size_t fold_order__used(const struct fold_order *fo)
{
	return fo->oe.merge.bytes + fo->oe.nr_events * MALLOC_OVERHEAD;
}

/**
 * fold_order__take - have what waits, in the order of the times
 * @fo: the order; nothing waits then
 * @events: an array of the records; both are the caller's, to be freed
 *
 * Return: how many there are, or -ENOMEM.
 */
int fold_order__take(struct fold_order *fo, union perf_event ***events)
{
	fo->taken = calloc(fo->oe.nr_events + 1, sizeof(*fo->taken));
	if (!fo->taken)
		return -ENOMEM;
	fo->nr_taken = 0;
	fo->oe.copy_on_queue = false;
	fold_order__flush(fo);
	fo->oe.copy_on_queue = true;
	*events = fo->taken;
	fo->taken = NULL;
	return fo->nr_taken;
}
