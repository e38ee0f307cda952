/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_ROUND_MERGE_H
#define __PERF_ROUND_MERGE_H

#include <stdbool.h>
#include <linux/list.h>
#include <linux/types.h>

struct round_merge_chunk;
struct round_merge_slab;

/**
 * struct round_merge_entry - an entry to be sorted
 * @time:   the key
 * @item:   opaque value of the caller
 * @cookie: opaque value of the caller
 */
struct round_merge_entry {
	u64	time;
	void	*item;
	u64	cookie;
};

/**
 * struct round_merge_run - a run of sorted entries, or a segment of a run
 * @head:       first entry
 * @end:        end of the entries; @head == @end: all were taken
 * @room:       limit of @end
 * @rank:       compared before @seq if times are equal
 * @seq:        lower for older runs
 * @source:     where the entries come from
 * @chunk:      the chunk that holds them
 * @list:       runs in the same chunk, by position, or idle runs
 * @next_fresh: next run that has no leaf yet
 * @then:       the next segment of this run
 * @bound:      limit of the times of entries if this continues another segment
 * @leaf:       index in the tree, valid if @admitted
 * @continues:  this continues another segment
 * @descending: read from the end
 * @admitted:   has a leaf
 */
struct round_merge_run {
	struct round_merge_entry	*head;
	struct round_merge_entry	*end;
	struct round_merge_entry	*room;
	u64				rank;
	u64				seq;
	const char			*source;
	struct round_merge_chunk	*chunk;
	struct list_head		list;
	struct round_merge_run		*next_fresh;
	struct round_merge_run		*then;
	u64				bound;
	u32				leaf;
	bool				continues;
	bool				descending;
	bool				admitted;
};

struct round_merge_node {
	u64			time;
	struct round_merge_run	*run;
};

/**
 * struct round_merge - entries to be taken in the order of time
 * @nr:        number of entries
 * @bytes:     memory used, including what the caller adds
 * @max_bytes: round_merge__add() fails with -ENOMEM rather than reach it
 * @last:      time of the entry at the end of the open run
 * @room:      limit of the open run; NULL if no entry can simply be appended
 * @open:      the open run or NULL
 * @source:    where the entries of the open run come from
 * @rank:      rank of new runs, see round_merge__set_rank()
 * @next_seq:  number of the next run
 * @first:     the first entry to take, unless it is in one of @fresh
 * @nodes:     the tournament tree, with the root at 1 and the leaves at @nr_leaves
 * @nr_leaves: number of leaves, at least @nr_chains
 * @nr_idle_leaves: number of @idle_leaves
 * @idle_leaves: leaves without a run
 * @nr_runs:   number of runs with entries, counting each segment
 * @nr_chains: number of runs with entries, counting each chain as one
 * @fresh:     runs that have no leaf yet
 * @chunks:    chunks in use, oldest first
 * @spare:     chunks that are not in use
 * @nr_chunks: number of @chunks
 * @idle_runs: runs that are not in use
 * @slabs:     memory of all runs
 */
struct round_merge {
	u64				nr;
	u64				bytes;
	u64				max_bytes;
	u64				last;
	struct round_merge_entry	*room;
	struct round_merge_run		*open;
	const char			*source;
	u64				rank;
	u64				next_seq;
	const struct round_merge_entry	*first;
	struct round_merge_node		*nodes;
	u32				nr_leaves;
	u32				nr_idle_leaves;
	u32				*idle_leaves;
	u32				nr_runs;
	u32				nr_chains;
	struct round_merge_run		*fresh;
	struct list_head		chunks;
	struct list_head		spare;
	u64				nr_chunks;
	struct list_head		idle_runs;
	struct round_merge_slab		*slabs;
};

void round_merge__init(struct round_merge *rm);
void round_merge__exit(struct round_merge *rm);
int __round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
		       const char *source);
void __round_merge__admit(struct round_merge *rm);
void round_merge__pop(struct round_merge *rm);
void round_merge__set_rank(struct round_merge *rm, u64 rank);

/* Append an entry to the open run if it continues it. */
static inline bool round_merge__append(struct round_merge *rm, u64 time, void *item, u64 cookie,
				       const char *source)
{
	struct round_merge_run *run = rm->open;
	struct round_merge_entry *p;

	if (!run || time < rm->last || run->end >= rm->room || source != rm->source)
		return false;

	p = run->end++;
	p->time = time;
	p->item = item;
	p->cookie = cookie;
	rm->last = time;
	rm->nr++;
	return true;
}

/**
 * round_merge__add() - add an entry
 * @rm:     the merge
 * @time:   its key
 * @item:   opaque value of the caller
 * @cookie: opaque value of the caller
 * @source: opaque pointer of the caller; consecutive entries are expected to
 *          have the same one
 *
 * Return: 0, or -ENOMEM if there is no memory or max_bytes would be reached.
 *         In case of an error nothing was added.
 */
static inline int round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
				   const char *source)
{
	if (round_merge__append(rm, time, item, cookie, source))
		return 0;

	return __round_merge__add(rm, time, item, cookie, source);
}

/**
 * round_merge__peek() - return the first entry
 * @rm: the merge
 *
 * Return: the entry, valid until the merge is changed; NULL if there is none.
 */
static inline const struct round_merge_entry *round_merge__peek(struct round_merge *rm)
{
	if (rm->fresh)
		__round_merge__admit(rm);
	return rm->first;
}

/**
 * round_merge__source() - source of the entry that round_merge__peek() returned
 * @rm: the merge
 *
 * Return: what was passed to round_merge__add().
 */
static inline const char *round_merge__source(const struct round_merge *rm)
{
	return rm->nodes[1].run->source;
}

#endif /* __PERF_ROUND_MERGE_H */
