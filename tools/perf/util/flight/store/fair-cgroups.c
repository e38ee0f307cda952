// SPDX-License-Identifier: GPL-2.0
/*
 * The queues of a fair store, found by the id of a cgroup
 *
 * The number of queues is bounded, as each holds a chunk that may be filled in part. The
 * owner decides what becomes of a cgroup for which there is no queue.
 *
 * A sample has the id of its cgroup behind fields of variable size, such as the stack. It is
 * therefore found from the end: only words of fixed size follow it. (AUX data would as well,
 * but -M does not support these.)
 */
#include "fair-cgroups.h"
#include "fair-memory.h"
#include "../../evsel.h"

#include <linux/bitops.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>

/**
 * fair_cgroups__init - make an empty table
 * @fc: the table
 * @max: number of cgroups that have a queue of their own
 *
 * Return: 0 or -ENOMEM; fair_cgroups__exit() is wanted in both cases.
 */
int fair_cgroups__init(struct fair_cgroups *fc, u32 max)
{
	fc->max = max + FAIR_QUEUE__FIRST;
	fc->nr = FAIR_QUEUE__FIRST;
	fc->mask = roundup_pow_of_two(fc->max) - 1;
	fc->unused = 0;
	fc->queues = calloc(fc->max, sizeof(*fc->queues));
	fc->held = calloc(fc->max, sizeof(*fc->held));
	fc->table = calloc(fc->mask + 1, sizeof(*fc->table));
	if (!fc->queues || !fc->held || !fc->table)
		return -ENOMEM;
	for (u32 i = 0; i < fc->max; i++) {
		fc->queues[i].first = FAIR_NONE;
		fc->queues[i].last = FAIR_NONE;
	}
	return 0;
}

void fair_cgroups__exit(struct fair_cgroups *fc)
{
	zfree(&fc->queues);
	zfree(&fc->held);
	zfree(&fc->table);
}

static u32 *bucket_of(const struct fair_cgroups *fc, u64 id)
{
	return &fc->table[hash_64(id, 32) & fc->mask];
}

/**
 * fair_cgroups__find - find the queue of a cgroup
 * @fc: the table
 * @id: the cgroup
 *
 * Return: its number, or 0.
 */
u32 fair_cgroups__find(const struct fair_cgroups *fc, u64 id)
{
	u32 queue = *bucket_of(fc, id);

	while (queue && fc->queues[queue].id != id)
		queue = fc->queues[queue].hash;
	return queue;
}

/**
 * fair_cgroups__add - give a cgroup a queue of its own
 * @fc: the table
 * @id: the cgroup, which has none
 *
 * Return: the number of the queue, or 0 if all are in use.
 */
u32 fair_cgroups__add(struct fair_cgroups *fc, u64 id)
{
	u32 *bucket = bucket_of(fc, id), queue = fc->unused;

	if (queue)
		fc->unused = fc->queues[queue].hash;
	else if (fc->nr < fc->max)
		queue = fc->nr++;
	else
		return 0;
	fc->queues[queue] = (struct fair_queue) {
		.id	= id,
		.first	= FAIR_NONE,
		.last	= FAIR_NONE,
		.hash	= *bucket,
	};
	*bucket = queue;
	return queue;
}

/**
 * fair_cgroups__remove - a cgroup needs its queue no more
 * @fc: the table
 * @queue: number of the queue, which has no chunks
 */
void fair_cgroups__remove(struct fair_cgroups *fc, u32 queue)
{
	u32 *p = bucket_of(fc, fc->queues[queue].id);

	while (*p != queue)
		p = &fc->queues[*p].hash;
	*p = fc->queues[queue].hash;
	fc->queues[queue] = (struct fair_queue) {
		.first	= FAIR_NONE,
		.last	= FAIR_NONE,
		.hash	= fc->unused,
	};
	fc->unused = queue;
}

#define WITHOUT_CGROUP							\
	"use a kernel of at least 5.7 with CONFIG_CGROUP_PERF, "	\
	"and for a session make it with --all-cgroups"

/**
 * fair_layout__check - check whether the samples of an event tell of their cgroup
 * @evsel: the event
 *
 * Return: NULL if they do, or what to do.
 */
const char *fair_layout__check(const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	if (evsel__is_dummy_event((struct evsel *)evsel))
		return NULL;
	if (!(attr->sample_type & PERF_SAMPLE_CGROUP))
		return WITHOUT_CGROUP;
	if (attr->sample_type & PERF_SAMPLE_AUX)
		return "omit the AUX data";
	return NULL;
}

void fair_layout__init(struct fair_layout *layout, const struct evsel *evsel)
{
	u64 behind = evsel->core.attr.sample_type &
		     (PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE);

	sample_layout__init(&layout->words, &evsel->core.attr, /*swapped=*/false);
	layout->cgroup = sizeof(u64) * hweight64(behind);
}

bool fair_layout__is_same(const struct fair_layout *a, const struct fair_layout *b)
{
	for (int word = 0; word < SAMPLE_WORD__MAX; word++) {
		if (!sample_layout__is_same(&a->words, &b->words, word))
			return false;
	}
	return a->cgroup == b->cgroup;
}
