// SPDX-License-Identifier: GPL-2.0
/*
 * Fold side-band records into their store in the order of time
 *
 * A round is stored as it was read, one buffer after the other. The side-band store
 * needs the order of time: a process that is forked on one CPU may call exec() on
 * another one, whose buffer was read before. If the exec were folded before the fork,
 * the process would get the name and the maps of its parent again.
 *
 * Evicted records therefore wait here until no older record can follow. The rule of
 * rounds, implemented by ordered_events, tells when: at the end of round n+1, all
 * records that are not newer than the newest record of round n can be folded. The
 * owner joins evicted rounds that were closed shortly after one another; see
 * round_group__ends().
 *
 *	 folded into the store      waiting here       retained rounds
 *	|---------------------|-----------------------|-------------------| now
 *	                      newest of the round
 *	                      before the last evicted
 *
 * Waiting records belong to the last evicted round or to the one before it, and are
 * newer than the state in the store. A dump has them between that state and the rounds.
 *
 * A limit bounds the memory. If it is reached, the older half is folded at once.
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

/* Overhead of an allocation. */
#define MALLOC_OVERHEAD		16

/**
 * struct fold_order - side-band records that wait to be folded
 * @oe: the waiting records
 * @evlist: the events of the records
 * @ss: the store
 * @newest: time of the newest record that was added
 * @before: value of @newest at the end of the last round
 * @taken: output of fold_order__take()
 * @nr_taken: number of records in @taken
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
		/* Do not free the records; the caller owns them now. */
		oe->merge.bytes -= event->event->header.size;
		fo->taken[fo->nr_taken++] = event->event;
	} else {
		/* The store counts records that it has no memory for; continue. */
		sideband_store__fold(fo->ss, event->event);
	}
	return 0;
}

/**
 * fold_order__new - create an empty order
 * @evlist: the events, used to find the time of a record
 * @ss: the store; both must outlive the order
 * @limit: maximum number of bytes that wait
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
 * fold_order__add - add a record that was evicted from the rounds
 * @fo: the order
 * @event: the record, which is copied; records that are not side-band are ignored
 *
 * Records without a time, which perf has synthesized, are folded immediately, and so
 * are records for which there is no memory.
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
 * fold_order__end_round - end a round of added records
 * @fo: the order
 *
 * All earlier rounds are then completely in the store, even if ordered_events has lost
 * the end of the last round because of the limit.
 */
void fold_order__end_round(struct fold_order *fo)
{
	ordered_events__flush_time(&fo->oe, fo->before);
	fo->before = fo->newest;
}

/**
 * fold_order__flush - fold all waiting records
 * @fo: the order
 */
void fold_order__flush(struct fold_order *fo)
{
	ordered_events__flush(&fo->oe, OE_FLUSH__TOP);
}

/**
 * fold_order__used - return the memory used by waiting records, in bytes
 * @fo: the order
 */
size_t fold_order__used(const struct fold_order *fo)
{
	return fo->oe.merge.bytes + fo->oe.nr_events * MALLOC_OVERHEAD;
}

/**
 * fold_order__take - remove all waiting records and return them in the order of time
 * @fo: the order; it is empty afterwards
 * @events: returns an array of the records; the caller frees the array and the records
 *
 * Return: number of records, or -ENOMEM.
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
