// SPDX-License-Identifier: GPL-2.0
/*
 * Round merge: puts events into the order of their times.
 *
 * What comes in
 * -------------
 * perf record reads the buffers one after the other and calls that a pass; it
 * closes each with PERF_RECORD_FINISHED_ROUND. What one buffer gives in one
 * pass is sorted already: ascending if the buffer is read forward, descending
 * if it is a backward one. It is nearly so: an event takes its time before it
 * reserves its space, so that an interrupt in between swaps neighbours.
 *
 *	pass 1: cpu 0 | 1 4 7     cpu 1 | 2 3 9     cpu 2 | 5 8 6
 *	pass 2: cpu 0 | 10 12     cpu 1 | 11        cpu 2 | 13 14
 *
 * So what arrives is a small number of long runs, however many CPUs there
 * are, and putting it in order is merging them: O(log runs) for an event, not
 * O(CPUs) as with a list that is searched for the place of each event.
 *
 * What may go out
 * ---------------
 * That is the caller's business (ordered-events.c), as it was. The rule of
 * rounds is: once pass n+1 is closed, whatever is not newer than the newest
 * event of pass n may go. A buffer that was read in pass n+1 was read later
 * than the newest event of pass n was written, so that everything in it up to
 * that time has been seen. Here the rule appears as "take entries up to a
 * limit", by round_merge__peek() and round_merge__pop().
 *
 * Runs
 * ----
 * A run is an array of entries in a chunk, in ascending or in descending
 * order. The newest run is open: an entry that continues it is appended, one
 * that is out of place by less than WINDOW entries is moved to its place, and
 * any other one closes the run and opens the next. A run of fewer than WINDOW
 * entries takes whatever comes, so that even a random sequence gives runs of
 * WINDOW entries and not runs of two. A descending run is stored as it came
 * and read from its end. A run that outgrows its place goes on in another one:
 * it is then a chain of segments, and still one run for the heap.
 *
 *	open ----------------.
 *	                     v
 *	 chunk [ 1 4 7 | 2 3 9 | 5 6 8 . . . ]      "6" went to its place
 *	         ^       ^       ^
 *	 heap: (1,run 0) (2,run 1) (5,run 2)
 *
 * Equal times
 * -----------
 * Entries with equal times are taken in the order in which they were added:
 * - in an ascending run they are in that order, and an entry is moved before
 *   newer ones only;
 * - a descending run is read backward, so that an entry is put before the
 *   equal ones in it;
 * - runs are numbered, and no entry is added to a run once there is a newer
 *   one: between runs the lower number goes first.
 * A caller that does not add in the order it wants to have ties resolved
 * in gives the runs a rank, which goes before the number.
 *
 * Merging
 * -------
 * A binary heap holds one node for each run, with the time of its next entry.
 * Runs enter it when somebody looks at the first entry; a run in the heap may
 * still be open, but then nothing is put before its next entry, so that the
 * node stays true. After an entry was taken the top is replaced: if the run
 * remains the first one nothing moves (long runs that do not overlap cost two
 * comparisons), else the hole wanders down to the bottom, one comparison for
 * each level and without a branch that depends on it, and the node climbs
 * from there: it seldom gets far, since the next entry of a CPU is typically
 * about as far away as those of all other CPUs.
 *
 * Costs
 * -----
 * Time: adding, O(1), at most WINDOW moves; taking, O(log runs).
 * Memory: 24 bytes for an entry, which cannot grow beyond 36 by fragmentation
 * (chunks that got sparse are compacted before new ones are allocated), and
 * about 130 for a run and its node. A run begins with WINDOW entries at least,
 * so that is less than 9 for an entry; more only where nearly all of a run was
 * taken and the rest is to stay for long. All is counted in rm->bytes; where
 * max_bytes would be reached, round_merge__add() changes nothing and returns
 * -ENOMEM, and the caller takes some entries and tries again.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include "round-merge.h"

/* Entries a late one is moved over, before a new run is opened for it. */
#define WINDOW		16
#define CHUNK_BYTES	(32 * 1024)
#define RUNS_PER_SLAB	63

struct round_merge_chunk {
	struct list_head		list;
	struct list_head		runs;
	struct round_merge_entry	entries[];
};

#define CHUNK_ENTRIES	((CHUNK_BYTES - sizeof(struct round_merge_chunk)) / \
			 sizeof(struct round_merge_entry))

/*
 * Compacting does not split segments, so the longest one limits what it leaves
 * unused at the end of each chunk.
 */
#define RUN_ENTRIES	(CHUNK_ENTRIES / 8)

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
 * @next_fresh: next run that is not in the heap
 * @then:       segment whose entries are taken after those of this one
 * @bound:      time that no entry may get past if this continues another segment
 * @continues:  this continues another segment
 * @descending: read from the end
 * @admitted:   in the heap
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
	bool				continues;
	bool				descending;
	bool				admitted;
};

struct round_merge_node {
	u64			time;
	struct round_merge_run	*run;
};

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

/* The heap. */

static bool run__before(const struct round_merge_run *a, const struct round_merge_run *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->seq < b->seq;
}

static inline bool node__before(const struct round_merge_node *a,
				const struct round_merge_node *b)
{
	if (unlikely(a->time == b->time))
		return run__before(a->run, b->run);

	return a->time < b->time;
}

static void heap__sift_up(struct round_merge_node *heap, u32 hole, struct round_merge_node node)
{
	while (hole) {
		u32 parent = (hole - 1) / 2;

		if (!node__before(&node, &heap[parent]))
			break;
		heap[hole] = heap[parent];
		hole = parent;
	}
	heap[hole] = node;
}

static void heap__replace_top(struct round_merge_node *heap, u32 nr, struct round_merge_node node)
{
	u32 hole = 0, child = 1;

	if ((nr < 2 || node__before(&node, &heap[1])) &&
	    (nr < 3 || node__before(&node, &heap[2]))) {
		heap[0] = node;
		return;
	}

	while (child + 1 < nr) {
		child += node__before(&heap[child + 1], &heap[child]);
		heap[hole] = heap[child];
		hole = child;
		child = 2 * hole + 1;
	}
	if (child < nr) {
		heap[hole] = heap[child];
		hole = child;
	}
	heap__sift_up(heap, hole, node);
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
 * Move what is left in the chunks together, oldest first, and free those that
 * get empty. The place that a run is moved to is never beyond the one that it
 * comes from, so this needs no memory. The nodes of the heap point to runs, not
 * to entries, and stay true.
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
}

/* Entries that the chunks in use would have room for, and do not hold. */
static u64 round_merge__gaps(const struct round_merge *rm)
{
	return rm->nr_chunks * CHUNK_ENTRIES - rm->nr;
}

/* A chunk with room for a run, the one in use if compacting made some there. */
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

/* A run that is idle, the first one of @rm->idle_runs. */
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

/* Taking an entry cannot fail, so the node of a run is reserved with it. */
static int round_merge__reserve_node(struct round_merge *rm)
{
	u32 max = rm->max_heap ? rm->max_heap * 2 : 64;
	size_t more = (max - rm->max_heap) * sizeof(*rm->heap);
	struct round_merge_node *heap;

	if (rm->nr_runs < rm->max_heap)
		return 0;
	if (rm->bytes + more >= rm->max_bytes)
		return -ENOMEM;

	heap = realloc(rm->heap, max * sizeof(*heap));
	if (!heap)
		return -ENOMEM;

	rm->bytes += more;
	rm->heap = heap;
	rm->max_heap = max;
	return 0;
}

/*
 * Does an entry continue the open run, which is full? A descending one is not
 * in the heap, and as the newest it is the first of those that are fresh: the
 * new segment takes its place.
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

	if (round_merge__reserve_node(rm))
		return -ENOMEM;

	/* A run that is full is longer than WINDOW, and has a direction. */
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

	rm->open = run;
	rm->source = source;
	return 0;
}

/* Is the place of a new entry before @p? See "Equal times". */
static inline bool run__goes_before(const struct round_merge_run *run, u64 time,
				    const struct round_merge_entry *p)
{
	return run->descending ? p->time <= time : p->time > time;
}

/* Where does an entry go in the open run? Its end: append. NULL: nowhere. */
static struct round_merge_entry *run__find_place(struct round_merge_run *run, u64 time)
{
	struct round_merge_entry *first = run->head + run->admitted;
	struct round_merge_entry *p = run->end;
	bool below = time < run->bound;

	if (run->continues && run->descending != below)
		return NULL;

	/* A descending run of two is also an ascending one, the other way round. */
	if (run->continues) {
		/* It has the direction of what it continues. */
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

	/* Its place is out of reach, or before the next entry to be taken. */
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

static int round_merge__add_slow(struct round_merge *rm, u64 time, void *item, u64 cookie,
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
int round_merge__add(struct round_merge *rm, u64 time, void *item, u64 cookie,
		     const char *source)
{
	struct round_merge_run *run = rm->open;

	if (run && time >= rm->last && run->end < rm->room && source == rm->source) {
		struct round_merge_entry *p = run->end++;

		p->time = time;
		p->item = item;
		p->cookie = cookie;
		rm->last = time;
		rm->nr++;
		return 0;
	}

	return round_merge__add_slow(rm, time, item, cookie, source);
}

/**
 * round_merge__set_rank() - set the rank of the entries to come
 * @rm:   the merge
 * @rank: where times are equal, entries of a lower rank go first; those of
 *        equal rank go as they came
 */
void round_merge__set_rank(struct round_merge *rm, u64 rank)
{
	if (rm->rank != rank) {
		round_merge__close(rm);
		rm->rank = rank;
	}
}

static void round_merge__admit(struct round_merge *rm)
{
	struct round_merge_run *run;

	while ((run = rm->fresh)) {
		struct round_merge_node node = { .time = run__first(run)->time, .run = run };

		/* What is added to a descending run would become its next entry. */
		if (run == rm->open && run->descending)
			round_merge__close(rm);

		rm->fresh = run->next_fresh;
		run->admitted = true;
		heap__sift_up(rm->heap, rm->nr_heap++, node);
	}
}

/**
 * round_merge__peek() - look at the first entry
 * @rm:     the merge
 * @source: if not NULL, set to the source of the entry
 *
 * Return: the entry, valid until the merge is changed; NULL if there is none.
 */
const struct round_merge_entry *round_merge__peek(struct round_merge *rm, const char **source)
{
	const struct round_merge_run *run;

	if (rm->fresh)
		round_merge__admit(rm);
	if (!rm->nr_heap)
		return NULL;

	run = rm->heap[0].run;
	if (source)
		*source = run->source;
	return run__first(run);
}

static void round_merge__replace_top(struct round_merge *rm, struct round_merge_run *run)
{
	const struct round_merge_entry *first = run__first(run);

	heap__replace_top(rm->heap, rm->nr_heap,
			  (struct round_merge_node) { .time = first->time, .run = run });
	/* Its turn comes when those of other runs have been taken. */
	__builtin_prefetch(first->item);
	__builtin_prefetch(run->descending ? first - 4 : first + 4);
}

static void round_merge__retire(struct round_merge *rm, struct round_merge_run *run)
{
	struct round_merge_chunk *chunk = run->chunk;

	if (run == rm->open)
		round_merge__close(rm);

	rm->nr_runs--;
	if (run->then) {
		run->then->admitted = true;
		round_merge__replace_top(rm, run->then);
	} else if (--rm->nr_heap) {
		heap__replace_top(rm->heap, rm->nr_heap, rm->heap[rm->nr_heap]);
	}

	list_move(&run->list, &rm->idle_runs);
	if (list_empty(&chunk->runs))
		round_merge__spare_chunk(rm, chunk);
}

/**
 * round_merge__pop() - take the entry that the last round_merge__peek() returned
 * @rm: the merge; entries may have been added in between
 */
void round_merge__pop(struct round_merge *rm)
{
	struct round_merge_run *run = rm->heap[0].run;

	if (run->descending)
		run->end--;
	else
		run->head++;
	rm->nr--;

	if (run->head == run->end)
		round_merge__retire(rm, run);
	else
		round_merge__replace_top(rm, run);
}

/**
 * round_merge__init() - make an empty merge, without a limit
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
 * @rm: the merge; it is empty afterwards, and may be used again
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
	free(rm->heap);

	round_merge__init(rm);
	rm->max_bytes = max_bytes;
}
