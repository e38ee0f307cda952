// SPDX-License-Identifier: GPL-2.0
/*
 * Round merge: sort events by time
 *
 * Input
 * -----
 * perf record reads one buffer after another. This is a pass, and a
 * PERF_RECORD_FINISHED_ROUND closes it. The records that one buffer returns in
 * one pass are already sorted: ascending for a forward buffer, descending for a
 * backward one. There are small exceptions: an event gets its time before its
 * space is reserved, so an interrupt in between swaps neighbours.
 *
 *	pass 1: cpu 0 | 1 4 7     cpu 1 | 2 3 9     cpu 2 | 5 8 6
 *	pass 2: cpu 0 | 10 12     cpu 1 | 11        cpu 2 | 13 14
 *
 * The input is thus a small number of long runs, regardless of the number of
 * CPUs. Sorting means merging them, which takes O(log runs) per event. Searching
 * a list for the position of each event would take O(CPUs).
 *
 * Output
 * ------
 * The caller (ordered-events.c) decides which events are delivered. The rule of
 * rounds is: when pass n+1 is closed, deliver all events that are not newer than
 * the newest event of pass n. A buffer read in pass n+1 was read after the
 * newest event of pass n was written, so all of its events up to that time have
 * been seen. Here this rule means "take entries up to a limit", with
 * round_merge__peek() and round_merge__pop().
 *
 * Runs
 * ----
 * A run is an array of entries in a chunk, in ascending or descending order. The
 * newest run is open. An entry that continues the open run is appended. An entry
 * that is out of place by less than WINDOW entries is moved to its place. Any
 * other entry closes the run and opens a new one. A run of fewer than WINDOW
 * entries accepts every entry, so even random input results in runs of WINDOW
 * entries rather than two. A descending run is stored as it arrives, and read
 * from its end. A run that outgrows its space continues in another place. It is
 * then a chain of segments, but still one run with one leaf.
 *
 *	open ----------------.
 *	                     v
 *	 chunk [ 1 4 7 | 2 3 9 | 5 6 8 . . . ]      "6" was moved to its place
 *	         ^       ^       ^
 *	 next: 1       2       5
 *
 * Equal times
 * -----------
 * Entries with equal times are taken in the order in which they were added:
 * - An ascending run has them in this order. An entry is moved only before newer
 *   entries.
 * - A descending run is read backward, so an entry is put before equal ones.
 * - Runs are numbered, and entries are only added to the newest run. Of two runs,
 *   the one with the lower number goes first.
 * A caller that adds entries in another order than the one it needs for equal
 * times assigns a rank to the runs. The rank is compared before the number.
 *
 * Merging
 * -------
 * A tournament tree has one leaf per run, with the time of its next entry. Each
 * node has the winner of its two children, so the root is the first entry of
 * all. Runs get a leaf when the first entry is requested. Such a run may still be
 * open, but from then on no entry is put before its next one, so the leaf stays
 * valid. After an entry has been taken, its leaf is set to the next entry, and
 * the path to the root is replayed: one comparison per level, without a branch
 * that depends on the result. The time of an idle leaf loses against all others.
 *
 *	              1
 *	        1            5		root: "1" of run 0 is next
 *	     1     2      5     -
 *	   run 0 run 1  run 2  idle
 *
 * Costs
 * -----
 * Time: O(1) to add an entry, with at most WINDOW moves; O(log runs) to take one.
 * Memory: 24 bytes per entry. Fragmentation increases this to at most 36, because
 * sparse chunks are compacted before new ones are allocated. A run with its leaf
 * takes about 150 bytes. As a run starts with at least WINDOW entries, these are
 * less than 9 bytes per entry, and more only if nearly all of a run was taken and
 * the rest stays for a long time. rm->bytes counts all of this. If it would reach
 * max_bytes, round_merge__add() changes nothing and returns -ENOMEM. The caller
 * then takes some entries and retries.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include "round-merge.h"

/* A late entry is moved over at most this many entries; else a new run is opened. */
#define WINDOW		16
#define CHUNK_BYTES	(32 * 1024)
#define RUNS_PER_SLAB	63
#define MIN_LEAVES	2
/* Two nodes and an entry in the list of idle leaves. */
#define LEAF_BYTES	(2 * sizeof(struct round_merge_node) + sizeof(u32))

struct round_merge_chunk {
	struct list_head		list;
	struct list_head		runs;
	struct round_merge_entry	entries[];
};

#define CHUNK_ENTRIES	((CHUNK_BYTES - sizeof(struct round_merge_chunk)) / \
			 sizeof(struct round_merge_entry))

/*
 * Compacting does not split segments, so the longest segment limits the unused space
 * at the end of each chunk.
 */
#define RUN_ENTRIES	(CHUNK_ENTRIES / 8)

struct round_merge_slab {
	struct round_merge_slab	*next;
	struct round_merge_run	runs[RUNS_PER_SLAB];
};

static void *round_merge__alloc(struct round_merge *rm, size_t size)
{
	void *p;

	if (rm->bytes + size >= rm->max_bytes)
		return NULL;

	p = malloc(size);
	if (p)
		rm->bytes += size;
	return p;
}

static inline const struct round_merge_entry *run__first(const struct round_merge_run *run)
{
	return run->descending ? run->end - 1 : run->head;
}

/* The tree. Node 1 is the root, nodes 2n and 2n + 1 are below n. */

static bool run__before(const struct round_merge_run *a, const struct round_merge_run *b)
{
	if (!a || !b)
		return a;
	return a->rank != b->rank ? a->rank < b->rank : a->seq < b->seq;
}

static inline bool node__before(const struct round_merge_node *a,
				const struct round_merge_node *b)
{
	if (unlikely(a->time == b->time))
		return run__before(a->run, b->run);

	return a->time < b->time;
}

/*
 * Most of the time is spent here, and the winner cannot be predicted. The barrier
 * prevents the compiler from generating a branch.
 */
static __always_inline void round_merge__play(struct round_merge *rm, u32 leaf, u64 time,
					      struct round_merge_run *run)
{
	char *nodes = (char *)rm->nodes;
	size_t at = (rm->nr_leaves + leaf) * sizeof(struct round_merge_node);
	struct round_merge_node *node = (void *)(nodes + at);

	node->time = time;
	node->run = run;
	while (at > sizeof(*node)) {
		struct round_merge_node *other = (void *)(nodes + (at ^ sizeof(*node)));
		u64 other_time = other->time;
		u64 lost = -(u64)(other_time < time);

		if (unlikely(other_time == time))
			lost = run__before(other->run, run) ? ~0ULL : 0;
		OPTIMIZER_HIDE_VAR(lost);
		time ^= (time ^ other_time) & lost;
		run = (void *)((uintptr_t)run ^ (((uintptr_t)run ^ (uintptr_t)other->run) & lost));
		at = at / 2 & -sizeof(*node);
		node = (void *)(nodes + at);
		node->time = time;
		node->run = run;
	}
	rm->first = run ? run__first(run) : NULL;
}

static void round_merge__set_leaf(struct round_merge *rm, struct round_merge_run *run)
{
	round_merge__play(rm, run->leaf, run__first(run)->time, run);
}

static void round_merge__rebuild(struct round_merge *rm, struct round_merge_node *nodes,
				 u32 *idle_leaves, u32 nr_leaves)
{
	u32 i;

	for (i = 0; i < nr_leaves; i++) {
		if (i < rm->nr_leaves)
			nodes[nr_leaves + i] = rm->nodes[rm->nr_leaves + i];
		else
			nodes[nr_leaves + i] = (struct round_merge_node) { .time = ULLONG_MAX };
	}
	for (i = nr_leaves; --i; ) {
		struct round_merge_node *below = &nodes[2 * i];

		nodes[i] = node__before(&below[1], &below[0]) ? below[1] : below[0];
	}

	for (i = 0; i < rm->nr_idle_leaves; i++)
		idle_leaves[i] = rm->idle_leaves[i];
	for (i = nr_leaves; i-- > rm->nr_leaves; )
		idle_leaves[rm->nr_idle_leaves++] = i;
}

/* round_merge__peek() must not fail, so the leaf of a run is reserved with the run. */
static int round_merge__reserve_leaf(struct round_merge *rm)
{
	u32 nr_leaves = rm->nr_leaves ? rm->nr_leaves * 2 : MIN_LEAVES;
	struct round_merge_node *nodes;
	u32 *idle_leaves;

	if (rm->nr_chains < rm->nr_leaves)
		return 0;

	nodes = round_merge__alloc(rm, nr_leaves * LEAF_BYTES);
	if (!nodes)
		return -ENOMEM;

	idle_leaves = (u32 *)(nodes + 2 * nr_leaves);
	round_merge__rebuild(rm, nodes, idle_leaves, nr_leaves);
	free(rm->nodes);
	rm->bytes -= rm->nr_leaves * LEAF_BYTES;
	rm->nodes = nodes;
	rm->idle_leaves = idle_leaves;
	rm->nr_leaves = nr_leaves;
	return 0;
}

/* Runs and chunks. */

static void round_merge__close(struct round_merge *rm)
{
	rm->open = NULL;
	rm->room = NULL;
}

static size_t chunk__used(const struct round_merge_chunk *chunk)
{
	if (list_empty(&chunk->runs))
		return 0;

	return list_last_entry(&chunk->runs, struct round_merge_run, list)->end - chunk->entries;
}

static void round_merge__spare_chunk(struct round_merge *rm, struct round_merge_chunk *chunk)
{
	list_move(&chunk->list, &rm->spare);
	rm->nr_chunks--;
}

/*
 * Compact the remaining entries of the chunks, oldest first, and free chunks that
 * become empty. A run is never moved to a later position, so this needs no
 * memory. The leaves of the tree point to runs, not to entries, and stay valid.
 */
static void round_merge__compact(struct round_merge *rm)
{
	struct round_merge_chunk *chunk, *next_chunk, *to = NULL;

	round_merge__close(rm);

	list_for_each_entry(chunk, &rm->chunks, list) {
		struct round_merge_run *run, *next;
		LIST_HEAD(runs);

		list_splice_init(&chunk->runs, &runs);
		if (!to)
			to = chunk;

		list_for_each_entry_safe(run, next, &runs, list) {
			size_t nr = run->end - run->head;
			struct round_merge_entry *place;

			if (chunk__used(to) + nr > CHUNK_ENTRIES)
				to = list_next_entry(to, list);

			place = to->entries + chunk__used(to);
			memmove(place, run->head, nr * sizeof(*place));
			run->head = place;
			run->end = place + nr;
			run->chunk = to;
			list_move_tail(&run->list, &to->runs);
		}
	}

	list_for_each_entry_safe(chunk, next_chunk, &rm->chunks, list) {
		if (list_empty(&chunk->runs))
			round_merge__spare_chunk(rm, chunk);
	}
	if (rm->first)
		rm->first = run__first(rm->nodes[1].run);
}

/* Number of unused entries in the chunks. */
static u64 round_merge__gaps(const struct round_merge *rm)
{
	return rm->nr_chunks * CHUNK_ENTRIES - rm->nr;
}

/* A chunk with space for a run. Compacting may have made space in the current one. */
static struct round_merge_chunk *round_merge__new_chunk(struct round_merge *rm)
{
	u64 capacity = rm->nr_chunks * CHUNK_ENTRIES;
	struct round_merge_chunk *chunk;

	if (list_empty(&rm->spare) && round_merge__gaps(rm) > capacity / 3 + 2 * CHUNK_ENTRIES)
		round_merge__compact(rm);

	if (list_empty(&rm->spare)) {
		chunk = round_merge__alloc(rm, CHUNK_BYTES);
		if (chunk) {
			INIT_LIST_HEAD(&chunk->runs);
			list_add(&chunk->list, &rm->spare);
		} else if (round_merge__gaps(rm) > capacity / 4 + 2 * RUN_ENTRIES) {
			round_merge__compact(rm);
		} else {
			return NULL;
		}
	}

	if (list_empty(&rm->spare)) {
		chunk = list_last_entry(&rm->chunks, struct round_merge_chunk, list);
		return chunk__used(chunk) + RUN_ENTRIES <= CHUNK_ENTRIES ? chunk : NULL;
	}

	chunk = list_first_entry(&rm->spare, struct round_merge_chunk, list);
	list_move_tail(&chunk->list, &rm->chunks);
	rm->nr_chunks++;
	return chunk;
}

/* An idle run, the first one of @rm->idle_runs. */
static struct round_merge_run *round_merge__new_run(struct round_merge *rm)
{
	struct round_merge_slab *slab;
	unsigned int i;

	if (list_empty(&rm->idle_runs)) {
		slab = round_merge__alloc(rm, sizeof(*slab));
		if (!slab)
			return NULL;

		slab->next = rm->slabs;
		rm->slabs = slab;
		for (i = 0; i < RUNS_PER_SLAB; i++)
			list_add_tail(&slab->runs[i].list, &rm->idle_runs);
	}

	return list_first_entry(&rm->idle_runs, struct round_merge_run, list);
}

/*
 * Check whether an entry continues the open run, which is full. A descending run
 * has no leaf yet, and being the newest run, it is the first fresh one. The new
 * segment replaces it there.
 */
static void round_merge__chain(struct round_merge *rm, struct round_merge_run *full,
			       struct round_merge_run *run, u64 time)
{
	u64 bound = full->end[-1].time;

	bool below = time < bound;

	if (full->source != run->source || full->descending != below)
		return;

	run->continues = true;
	run->bound = bound;
	run->descending = full->descending;
	if (full->descending) {
		run->then = full;
		rm->fresh = full->next_fresh;
	} else {
		full->then = run;
	}
}

static int round_merge__open(struct round_merge *rm, u64 time, const char *source)
{
	struct round_merge_run *run, *full = rm->open;
	struct round_merge_chunk *chunk = NULL;

	if (full && full->end != full->room)
		full = NULL;
	round_merge__close(rm);

	if (round_merge__reserve_leaf(rm))
		return -ENOMEM;

	/* A full run is longer than WINDOW, so its direction is known. */
	if (!list_empty(&rm->chunks))
		chunk = list_last_entry(&rm->chunks, struct round_merge_chunk, list);
	if (!chunk || chunk__used(chunk) > CHUNK_ENTRIES - WINDOW) {
		chunk = round_merge__new_chunk(rm);
		if (!chunk)
			return -ENOMEM;
	}

	run = round_merge__new_run(rm);
	if (!run)
		return -ENOMEM;

	run->head = chunk->entries + chunk__used(chunk);
	run->end = run->head;
	run->room = min(run->head + RUN_ENTRIES, chunk->entries + CHUNK_ENTRIES);
	run->rank = rm->rank;
	run->seq = rm->next_seq++;
	run->source = source;
	run->then = NULL;
	run->continues = false;
	run->descending = false;
	run->admitted = false;
	if (full)
		round_merge__chain(rm, full, run, time);
	if (!run->continues || run->descending) {
		run->next_fresh = rm->fresh;
		rm->fresh = run;
	}
	run->chunk = chunk;
	list_move_tail(&run->list, &chunk->runs);
	rm->nr_runs++;
	rm->nr_chains += !run->continues;

	rm->open = run;
	rm->source = source;
	return 0;
}

/* Return whether a new entry belongs before @p; see "Equal times". */
static inline bool run__goes_before(const struct round_merge_run *run, u64 time,
				    const struct round_merge_entry *p)
{
	return run->descending ? p->time <= time : p->time > time;
}

/* The position of an entry in the open run. The end: append. NULL: does not fit. */
static struct round_merge_entry *run__find_place(struct round_merge_run *run, u64 time)
{
	struct round_merge_entry *first = run->head + run->admitted;
	struct round_merge_entry *p = run->end;
	bool below = time < run->bound;

	if (run->continues && run->descending != below)
		return NULL;

	/* A descending run of two entries can be reversed to an ascending one. */
	if (run->continues) {
		/* A segment has the direction of the run that it continues. */
	} else if (run->descending && p - run->head == 2 && run->head->time <= time) {
		struct round_merge_entry newer = run->head[0];

		run->head[0] = run->head[1];
		run->head[1] = newer;
		run->descending = false;
	} else if (!run->descending && p - run->head == 1 && !run->admitted &&
		   run->head->time > time) {
		run->descending = true;
	}

	if (p - first > WINDOW)
		first = p - WINDOW;

	/* The position is too far away, or before the next entry to be taken. */
	if (first != run->head && run__goes_before(run, time, first - 1))
		return NULL;

	while (p > first && run__goes_before(run, time, p - 1))
		p--;
	return p;
}

static struct round_merge_entry *round_merge__place(struct round_merge *rm, u64 time,
						    const char *source)
{
	struct round_merge_run *run = rm->open;
	struct round_merge_entry *p;
	size_t moved;

	if (!run || run->end == run->room || run->source != source)
		return NULL;

	p = run__find_place(run, time);
	if (!p)
		return NULL;

	moved = run->end - p;
	memmove(p + 1, p, moved * sizeof(*p));
	return p;
}

/* The slow path of round_merge__add(), if the entry cannot simply be appended. */
int __round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
		       const char *source)
{
	struct round_merge_entry *p = round_merge__place(rm, time, source);
	struct round_merge_run *run;

	if (!p) {
		if (round_merge__open(rm, time, source))
			return -ENOMEM;
		p = rm->open->end;
	}

	run = rm->open;
	*p = (struct round_merge_entry) { .time = time, .item = item, .cookie = cookie };
	run->end++;
	rm->room = run->descending ? NULL : run->room;
	rm->last = run->end[-1].time;
	rm->nr++;
	return 0;
}

/**
 * round_merge__set_rank() - set the rank of entries added from now on
 * @rm:   the merge
 * @rank: among equal times, entries with a lower rank go first; entries with
 *        the same rank stay in the order in which they were added
 */
void round_merge__set_rank(struct round_merge *rm, u64 rank)
{
	if (rm->rank != rank) {
		round_merge__close(rm);
		rm->rank = rank;
	}
}

/* Add leaves for the runs that have none. */
void __round_merge__admit(struct round_merge *rm)
{
	struct round_merge_run *run;

	while ((run = rm->fresh)) {
		/* An entry added to a descending run would become its next entry. */
		if (run == rm->open && run->descending)
			round_merge__close(rm);

		rm->fresh = run->next_fresh;
		run->admitted = true;
		run->leaf = rm->idle_leaves[--rm->nr_idle_leaves];
		round_merge__set_leaf(rm, run);
	}
}

static noinline void round_merge__retire(struct round_merge *rm, struct round_merge_run *run)
{
	struct round_merge_chunk *chunk = run->chunk;

	if (run == rm->open)
		round_merge__close(rm);

	rm->nr_runs--;
	if (run->then) {
		run->then->admitted = true;
		run->then->leaf = run->leaf;
		round_merge__set_leaf(rm, run->then);
	} else {
		rm->nr_chains--;
		rm->idle_leaves[rm->nr_idle_leaves++] = run->leaf;
		round_merge__play(rm, run->leaf, ULLONG_MAX, NULL);
	}

	list_move(&run->list, &rm->idle_runs);
	if (list_empty(&chunk->runs))
		round_merge__spare_chunk(rm, chunk);
}

/**
 * round_merge__pop() - remove the entry that the last round_merge__peek() returned
 * @rm: the merge; entries may have been added in between
 */
void round_merge__pop(struct round_merge *rm)
{
	struct round_merge_run *run = rm->nodes[1].run;

	if (run->descending)
		run->end--;
	else
		run->head++;
	rm->nr--;

	if (run->head == run->end) {
		round_merge__retire(rm, run);
	} else {
		const struct round_merge_entry *first = run__first(run);

		/*
		 * The next entry is taken after those of other runs. The data it refers
		 * to often exceeds one cache line.
		 */
		__builtin_prefetch(first->item);
		__builtin_prefetch((void *)((uintptr_t)first->item + 64));
		__builtin_prefetch(run->descending ? first - 4 : first + 4);
		round_merge__play(rm, run->leaf, first->time, run);
	}
}

/**
 * round_merge__init() - initialize an empty merge without a limit
 * @rm: the merge
 */
void round_merge__init(struct round_merge *rm)
{
	memset(rm, 0, sizeof(*rm));
	rm->max_bytes = ULLONG_MAX;
	INIT_LIST_HEAD(&rm->chunks);
	INIT_LIST_HEAD(&rm->spare);
	INIT_LIST_HEAD(&rm->idle_runs);
}

/**
 * round_merge__exit() - free all memory
 * @rm: the merge; it is empty afterwards and can be used again
 */
void round_merge__exit(struct round_merge *rm)
{
	struct round_merge_chunk *chunk, *next_chunk;
	struct round_merge_slab *slab, *next_slab;
	u64 max_bytes = rm->max_bytes;

	list_splice_init(&rm->spare, &rm->chunks);
	list_for_each_entry_safe(chunk, next_chunk, &rm->chunks, list)
		free(chunk);
	for (slab = rm->slabs; slab; slab = next_slab) {
		next_slab = slab->next;
		free(slab);
	}
	free(rm->nodes);

	round_merge__init(rm);
	rm->max_bytes = max_bytes;
}
