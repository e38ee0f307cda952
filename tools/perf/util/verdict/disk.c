// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to block devices.
 *
 * A request is in its device from block:block_rq_issue to block:block_rq_complete with the same
 * device and sector. It counts for the task that gave it to the device. Requests that a kernel
 * thread gives to it later, such as those of written pages, count for that thread: of these it
 * is not known who waits for them.
 *
 * A request that is issued again was put back, or the record of its end is missing. What is
 * known is that it is in the device since the last time.
 */
#include "disk.h"
#include "history.h"

#include <errno.h>
#include <linux/kernel.h>
#include <stddef.h>
#include <string.h>

/* At most this many are in devices; the oldest one is dropped. */
#define MOST_PENDING	4096

static u32 find_pending(const struct verdict_disks *d, u32 dev, u64 sector)
{
	u32 i;

	for (i = 0; i < d->nr; i++) {
		if (d->pending[i].dev == dev && d->pending[i].sector == sector)
			break;
	}
	return i;
}

static void remove_pending(struct verdict_disks *d, u32 nr)
{
	d->nr--;
	memmove(&d->pending[nr], &d->pending[nr + 1], (d->nr - nr) * sizeof(*d->pending));
}

/* A device got a request. */
int verdict_disks__issue(struct verdict_disks *d, const struct verdict_request *request)
{
	u32 nr = find_pending(d, request->dev, request->sector);

	if (nr < d->nr)
		remove_pending(d, nr);
	else if (d->nr == MOST_PENDING)
		remove_pending(d, 0);
	if (verdict_array__grow((void **)&d->pending, d->nr, &d->max, sizeof(*d->pending)))
		return -ENOMEM;
	d->pending[d->nr++] = *request;
	return 0;
}

/* A request is done: false if it is not known when it was issued. */
bool verdict_disks__complete(struct verdict_disks *d, u32 dev, u64 sector,
			     struct verdict_request *request)
{
	u32 nr = find_pending(d, dev, sector);

	if (nr == d->nr)
		return false;
	*request = d->pending[nr];
	remove_pending(d, nr);
	return true;
}

int verdict_requests__add(struct verdict_requests *r, const struct verdict_request *request)
{
	if (verdict_array__grow((void **)&r->done, r->nr, &r->max, sizeof(*r->done)))
		return -ENOMEM;
	r->done[r->nr++] = *request;
	return 0;
}

/**
 * verdict_requests__cover - how much of a time requests were in devices
 * @r: the requests
 * @start: from when on
 * @end: until when
 * @latest: when the task was woken: what was done later is not what it waited for
 * @part: called for each part, or NULL
 * @ctx: for @part
 * @err: what @part returned, if that was not 0
 *
 * Requests that were there at the same time count once, for the device of the last to be done.
 *
 * Return: the sum.
 */
u64 verdict_requests__cover(const struct verdict_requests *r, u64 start, u64 end, u64 latest,
			    verdict_disk_t part, void *ctx, int *err)
{
	u64 sum = 0, until = end;
	u32 i = verdict_array__not_later(r->done, r->nr, sizeof(*r->done),
					 offsetof(struct verdict_request, completed), latest);

	/* From the end on: none that is done earlier is there after one that was done. */
	while (i-- && r->done[i].completed > start && until > start) {
		u64 from = max(r->done[i].issued, start);
		u64 to = min(r->done[i].completed, until);

		if (from >= to)
			continue;
		sum += to - from;
		until = from;
		if (part && !*err)
			*err = part(ctx, r->done[i].dev, to - from);
	}
	return sum;
}
