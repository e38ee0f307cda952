/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_ROUND_MERGE_H
#define __PERF_ROUND_MERGE_H

#include <stdbool.h>
#include <linux/list.h>
#include <linux/types.h>

struct round_merge_chunk;
struct round_merge_slab;

/**
 * struct round_merge_entry - one thing to be put in order
 * @time:   the key
 * @item:   the caller's, handed back as it came
 * @cookie: the caller's, handed back as it came
 */
struct round_merge_entry {
	u64	time;
	void	*item;
	u64	cookie;
};

/**
 * struct round_merge_run - entries in order: a run, or a segment of one
 * @head:       first entry
 * @end:        after the last one; @head == @end: all were taken
 * @room:       @end gets no further
 * @rank:       goes before @seq where times are equal
 * @seq:        lower for older runs
 * @source:     what the entries came from
 * @chunk:      where they are
 * @list:       of the runs in the same chunk, by place, or of those that are idle
 * @next_fresh: next run that has no leaf yet
 * @then:       segment whose entries are taken after those of this one
 * @bound:      time that no entry may get past if this continues another segment
 * @leaf:       of the tree, once @admitted
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
 * struct round_merge - entries that wait to be taken in the order of their times
 * @nr:        entries that wait
 * @bytes:     memory held, the caller's own additions included
 * @max_bytes: round_merge__add() fails with -ENOMEM rather than reach it
 * @last:      time of the entry at the end of the open run
 * @room:      where the open run has to end; NULL if nothing may just be appended
 * @open:      the run that grows, NULL if none
 * @source:    what the entries of the open run came from
 * @rank:      rank of the runs to come, see round_merge__set_rank()
 * @next_seq:  number of the next run
 * @first:     the entry that is to be taken first, unless one of @fresh is
 * @nodes:     the tournament tree, the root at 1, the leaves at @nr_leaves
 * @nr_leaves: leaves of the tree, never less than @nr_chains
 * @nr_idle_leaves: number of @idle_leaves
 * @idle_leaves: leaves without a run
 * @nr_runs:   runs that hold entries, segments of chains one by one
 * @nr_chains: the same, chains as one
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

/* Add an entry that just continues the open run, in its place. */
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
 * @item:   handed back as it is
 * @cookie: handed back as it is
 * @source: handed back as it is; entries that come one after the other are
 *          expected to have the same one, as a pointer
 *
 * Return: 0, or -ENOMEM if there is no memory or max_bytes would be reached;
 *         nothing was added then.
 */
static inline int round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
				   const char *source)
{
	if (round_merge__append(rm, time, item, cookie, source))
		return 0;

	return __round_merge__add(rm, time, item, cookie, source);
}

/**
 * round_merge__peek() - look at the first entry
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
