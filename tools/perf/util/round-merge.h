/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_ROUND_MERGE_H
#define __PERF_ROUND_MERGE_H

#include <stdbool.h>
#include <linux/list.h>
#include <linux/types.h>

struct round_merge_chunk;
struct round_merge_node;
struct round_merge_run;
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
 * @heap:      runs that are being merged, the one with the first entry on top
 * @nr_heap:   runs in @heap
 * @max_heap:  room in @heap, never less than the number of runs
 * @nr_runs:   runs that hold entries
 * @fresh:     runs that are not in @heap yet
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
	struct round_merge_node		*heap;
	u32				nr_heap;
	u32				max_heap;
	u32				nr_runs;
	struct round_merge_run		*fresh;
	struct list_head		chunks;
	struct list_head		spare;
	u64				nr_chunks;
	struct list_head		idle_runs;
	struct round_merge_slab		*slabs;
};

void round_merge__init(struct round_merge *rm);
void round_merge__exit(struct round_merge *rm);
int round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
		     const char *source);
const struct round_merge_entry *round_merge__peek(struct round_merge *rm, const char **source);
void round_merge__pop(struct round_merge *rm);
void round_merge__set_rank(struct round_merge *rm, u64 rank);

#endif /* __PERF_ROUND_MERGE_H */
