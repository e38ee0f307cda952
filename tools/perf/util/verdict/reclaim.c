// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks that reclaim memory before they get some.
 *
 * A task reclaims memory of the machine from vmscan:mm_vmscan_direct_reclaim_begin to the end of
 * the same name, and that of a cgroup with a limit from vmscan:mm_vmscan_memcg_reclaim_begin on.
 * It is in one of them at a time, on whichever CPUs. A begin or an end alone shows that a record
 * is missing, and claims nothing.
 */
#include "reclaim.h"
#include "history.h"

#include <errno.h>

/* The index of a pool, or VERDICT_NONE without memory. Equal names are the same object. */
static u32 find_pool(struct verdict_pools *p, const struct verdict_pool *pool)
{
	u32 i;

	for (i = 0; i < p->nr; i++) {
		if (p->pools[i].limited == pool->limited && p->pools[i].cgroup == pool->cgroup)
			return i;
	}
	if (verdict_array__grow((void **)&p->pools, p->nr, &p->max, sizeof(*p->pools)))
		return VERDICT_NONE;
	p->pools[p->nr] = *pool;
	return p->nr++;
}

/* A task begins to reclaim memory. */
void verdict_reclaim__begin(struct verdict_history *h, u32 task, bool limited, u64 time)
{
	h->tasks[task].reclaiming.since = time;
	h->tasks[task].reclaiming.limited = limited;
}

/**
 * verdict_reclaim__end - a task has reclaimed memory
 * @h: the history
 * @task: which task
 * @pool: of what
 * @time: when
 *
 * Return: 0 or -ENOMEM.
 */
int verdict_reclaim__end(struct verdict_history *h, u32 task, const struct verdict_pool *pool,
			 u64 time)
{
	struct verdict_reclaiming *r = &h->tasks[task].reclaiming;
	struct verdict_span span = { .start = r->since, .end = time };

	r->since = 0;
	if (!span.start || r->limited != pool->limited || time <= span.start)
		return 0;
	span.ns = time - span.start;
	span.source = find_pool(&h->pools, pool);
	if (span.source == VERDICT_NONE)
		return -ENOMEM;
	return verdict_spans__add(&h->tasks[task].reclaims, &span);
}
