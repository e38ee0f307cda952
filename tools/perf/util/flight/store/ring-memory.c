// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of the ring of a flight recorder, which a forked child can read
 *
 * A child writes a dump while the recorder continues. If the ring were private memory,
 * fork() would copy its page tables, 2 MiB for each GiB. Each page that the recorder
 * overwrites while the child writes would be copied as well, up to all of them. Therefore
 * the ring is shared memory: fork() copies nothing of it, and both processes see the same
 * bytes. This file ensures that the recorder does not overwrite bytes that the child has
 * not read yet, as long as there is other memory, and that the child notices otherwise.
 *
 * The ring is divided into segments of equal size. A position is the number of bytes ever
 * stored. Segment n has the positions from n * size on, and lies in any slot of the memory:
 *
 *	positions	   tail			     head
 *	segments	[ 7 ][ 8 ][ 9 ][ 10 ][ 11 ][ 12 ]
 *	slots		  3    0    1    6     2     5		4 and 7 are free
 *
 * While there is a child, the ring is fenced: the segments that existed at the fork are
 * protected. If the recorder evicts one of them, the segment is held: it keeps its slot, and
 * new records go to another slot. States of a slot:
 *
 *	FREE -> LIVE	ring_memory__extend()
 *	LIVE -> FREE	ring_memory__release(): no child, or a segment from after the fork
 *	LIVE -> HELD	ring_memory__release(): a segment from before the fork
 *	HELD -> LIVE	ring_memory__extend(): the recorder takes the slot from the child
 *	HELD -> FREE	ring_memory__unfence(): the child has ended
 *
 * ring_memory__extend() uses, in this order:
 *
 *	1. a FREE slot that has memory
 *	2. the oldest HELD slot, if the child has read it
 *	3. a FREE slot without memory, within the limit below
 *	4. the oldest HELD slot, although the child has not read it
 *
 * The slots that have memory are limited to the budget and, while there is a fence, a
 * reserve of 1/RESERVE_SHARE of the size. Case 4 occurs if the disk of the child is so slow
 * that the reserve is used up. The recorder neither waits for the child nor loses a record.
 * The child loses its oldest records, detects this, and reports it.
 *
 * Ordering. Two segment numbers are shared, each with one writer:
 *
 *	recorder, takes a segment		child, reads a piece
 *	------------------------------------------------------------------------
 *	taken = the next segment		copy the piece
 *	release fence (A)			acquire fence (B)
 *	overwrite the segment			load taken
 *						if the piece begins before taken: drop it
 *
 *	recorder, reuses a segment		child, has copied it
 *	------------------------------------------------------------------------
 *	load passed, acquire (C)		store passed, release (D)
 *	if it is before passed: take it, as above
 *
 * A pairs with B: if the child has seen an overwritten byte, it also sees the new value of
 * taken. C pairs with D: the child has read the bytes that are overwritten. The recorder
 * sets taken in this case as well, because a child whose disk was full reads the ring once
 * more from its start. All other data, such as the array of slots, is private: the child
 * has a copy from the time of fork().
 *
 * In the recorder and in the child only one thread uses the ring. There is one child at a
 * time.
 */
#include "ring-memory.h"
#include "shared-memory.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A ring has at least this many segments, if a segment of that size is at least a page. */
#define NR_SEGMENTS		64
#define MAX_SEGMENT		(256UL * 1024)

/* The reserve for records that arrive while a dump is written: 1/4 of the size. */
#define RESERVE_SHARE		4

/* Segments at the ends of the ring that are partly used. */
#define ENDS			2

/* Shared with the child: numbers of segments, of a type with atomic loads and stores. */
struct ring_fence {
	unsigned long		taken;		/* the recorder has taken those before this */
	unsigned long		passed;		/* the child has read those before this */
};

/**
 * struct ring_memory - the memory of a ring
 * @base: of all slots
 * @fence: shared with the child
 * @shift: size of a segment, as a power of two
 * @nr: number of slots
 * @limit: slots that may have memory, without the reserve
 * @reserve: slots of the reserve
 * @resident: slots that have memory
 * @first: the oldest live segment
 * @end: the segment after the newest one that has a slot
 * @slots: by segment number, modulo @nr
 * @rounds: by segment number, modulo @nr: position of the first round that begins there
 * @warm: free slots that have memory
 * @nr_warm: number of them
 * @cold: free slots without memory
 * @nr_cold: number of them
 * @held: slots of the segments from @first_held on, modulo @nr
 * @first_held: the oldest segment that is held
 * @nr_held: number of them
 * @fenced: there is a child, which knows the segments before @fence_end
 * @fence_end: the segment after the last one that was live at the time of the fork
 */
struct ring_memory {
	unsigned char		*base;
	struct ring_fence	*fence;
	unsigned int		shift;
	u32			nr;
	u32			limit;
	u32			reserve;
	u32			resident;
	u64			first;
	u64			end;
	u32			*slots;
	u64			*rounds;
	u32			*warm;
	u32			nr_warm;
	u32			*cold;
	u32			nr_cold;
	u32			*held;
	u64			first_held;
	u32			nr_held;
	bool			fenced;
	u64			fence_end;
};

#define NO_ROUND	(-1ULL)

static size_t segment_size(const struct ring_memory *rm)
{
	return 1UL << rm->shift;
}

/**
 * ring_memory__new - reserve the memory of a ring
 * @size: bytes that the ring holds at most
 *
 * Only what is touched takes memory.
 *
 * Return: NULL if there is no memory.
 */
struct ring_memory *ring_memory__new(u64 size)
{
	struct ring_memory *rm = zalloc(sizeof(*rm));

	if (!rm)
		return NULL;
	for (rm->shift = 0; segment_size(rm) < (size_t)page_size; rm->shift++)
		;
	while (segment_size(rm) < MAX_SEGMENT && segment_size(rm) * 2 * NR_SEGMENTS <= size)
		rm->shift++;
	ring_memory__set_budget(rm, size);
	rm->reserve = DIV_ROUND_UP(size / RESERVE_SHARE, segment_size(rm));
	rm->nr = rm->limit + rm->reserve;

	rm->base = shared_memory((size_t)rm->nr << rm->shift);
	rm->fence = shared_memory(page_size);
	rm->slots = calloc(rm->nr, sizeof(*rm->slots));
	rm->rounds = calloc(rm->nr, sizeof(*rm->rounds));
	rm->warm = calloc(rm->nr, sizeof(*rm->warm));
	rm->cold = calloc(rm->nr, sizeof(*rm->cold));
	rm->held = calloc(rm->nr, sizeof(*rm->held));
	if (!rm->base || !rm->fence || !rm->slots || !rm->rounds || !rm->warm || !rm->cold ||
	    !rm->held) {
		ring_memory__delete(rm);
		return NULL;
	}
	for (u32 slot = rm->nr; slot-- > 0;)
		rm->cold[rm->nr_cold++] = slot;
	return rm;
}

void ring_memory__delete(struct ring_memory *rm)
{
	if (!rm)
		return;
	if (rm->base)
		munmap(rm->base, (size_t)rm->nr << rm->shift);
	if (rm->fence)
		munmap(rm->fence, page_size);
	free(rm->slots);
	free(rm->rounds);
	free(rm->warm);
	free(rm->cold);
	free(rm->held);
	free(rm);
}

/* Return the memory of free slots that exceeds the budget to the kernel. */
static void trim(struct ring_memory *rm)
{
	while (!rm->fenced && rm->nr_warm && rm->resident > rm->limit) {
		u32 slot = rm->warm[--rm->nr_warm];

		madvise(rm->base + ((size_t)slot << rm->shift), segment_size(rm), MADV_REMOVE);
		rm->cold[rm->nr_cold++] = slot;
		rm->resident--;
	}
}

/**
 * ring_memory__set_budget - change how much memory the ring may take
 * @rm: the memory
 * @budget: bytes, at most the size given to ring_memory__new()
 */
void ring_memory__set_budget(struct ring_memory *rm, u64 budget)
{
	rm->limit = DIV_ROUND_UP(budget, segment_size(rm)) + ENDS;
	trim(rm);
}

static u32 pop_held(struct ring_memory *rm)
{
	u32 slot = rm->held[rm->first_held % rm->nr];

	rm->first_held++;
	rm->nr_held--;
	return slot;
}

/* Return whether the child has read the oldest segment that is held. */
static bool is_passed(const struct ring_memory *rm)
{
	/* C, matches D in ring_memory__passed() */
	return __atomic_load_n(&rm->fence->passed, __ATOMIC_ACQUIRE) > rm->first_held;
}

static u32 take_from_child(struct ring_memory *rm)
{
	__atomic_store_n(&rm->fence->taken, rm->first_held + 1, __ATOMIC_RELAXED);
	/* A, matches B in ring_memory__taken(): before the segment is overwritten */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return pop_held(rm);
}

static bool new_slot(struct ring_memory *rm, u32 *slot)
{
	u32 limit = rm->limit + (rm->fenced ? rm->reserve : 0);

	if (rm->nr_warm) {
		*slot = rm->warm[--rm->nr_warm];
	} else if (rm->nr_held && is_passed(rm)) {
		*slot = take_from_child(rm);
	} else if (rm->nr_cold && rm->resident < limit) {
		*slot = rm->cold[--rm->nr_cold];
		rm->resident++;
	} else if (rm->nr_held) {
		*slot = take_from_child(rm);
	} else {
		return false;
	}
	return true;
}

/**
 * ring_memory__extend - provide memory for positions
 * @rm: the memory
 * @end: the position after the last one
 *
 * Return: false if there is none: the ring is longer than its budget.
 */
bool ring_memory__extend(struct ring_memory *rm, u64 end)
{
	u32 slot;

	while (rm->end << rm->shift < end) {
		if (!new_slot(rm, &slot))
			return false;
		rm->slots[rm->end % rm->nr] = slot;
		rm->rounds[rm->end % rm->nr] = NO_ROUND;
		rm->end++;
	}
	return true;
}

/**
 * ring_memory__release - positions are not in use any more
 * @rm: the memory
 * @pos: the first position that is
 */
void ring_memory__release(struct ring_memory *rm, u64 pos)
{
	for (; rm->first < pos >> rm->shift && rm->first < rm->end; rm->first++) {
		u32 slot = rm->slots[rm->first % rm->nr];

		if (!rm->fenced || rm->first >= rm->fence_end) {
			rm->warm[rm->nr_warm++] = slot;
			continue;
		}
		if (!rm->nr_held)
			rm->first_held = rm->first;
		rm->held[rm->first % rm->nr] = slot;
		rm->nr_held++;
	}
	trim(rm);
}

/**
 * ring_memory__at - find the memory of a position
 * @rm: the memory
 * @pos: the position, for which there is memory
 * @left: returns how many bytes follow in one piece
 */
void *ring_memory__at(const struct ring_memory *rm, u64 pos, size_t *left)
{
	size_t offset = pos & (segment_size(rm) - 1);
	u32 slot = rm->slots[(pos >> rm->shift) % rm->nr];

	*left = segment_size(rm) - offset;
	return rm->base + ((size_t)slot << rm->shift) + offset;
}

/**
 * ring_memory__note_round - a round begins
 * @rm: the memory
 * @pos: where
 *
 * A child that loses a segment loses the headers in it, and has to find the next one.
 */
void ring_memory__note_round(struct ring_memory *rm, u64 pos)
{
	u64 *round = &rm->rounds[(pos >> rm->shift) % rm->nr];

	/* What begins later may have been dropped. */
	*round = min(*round, pos);
}

/**
 * ring_memory__round_after - find the first round that begins at or after a position
 * @rm: the memory
 * @pos: the begin of a segment
 * @end: where to end the search
 *
 * Return: its position, or @end.
 */
u64 ring_memory__round_after(const struct ring_memory *rm, u64 pos, u64 end)
{
	for (u64 n = pos >> rm->shift; n << rm->shift < end; n++) {
		u64 round = rm->rounds[n % rm->nr];

		if (round != NO_ROUND)
			return min(round, end);
	}
	return end;
}

/**
 * ring_memory__fence - a child is about to be forked that reads the ring
 * @rm: the memory
 */
void ring_memory__fence(struct ring_memory *rm)
{
	rm->fence->taken = 0;
	rm->fence->passed = 0;
	rm->fenced = true;
	rm->fence_end = rm->end;
}

/**
 * ring_memory__unfence - there is no child any more
 * @rm: the memory
 */
void ring_memory__unfence(struct ring_memory *rm)
{
	while (rm->nr_held)
		rm->warm[rm->nr_warm++] = pop_held(rm);
	rm->fenced = false;
	trim(rm);
}

/**
 * ring_memory__passed - in the child: no position before this is needed any more
 * @rm: the memory
 * @pos: the position; 0: the child reads once more what was not taken
 */
void ring_memory__passed(struct ring_memory *rm, u64 pos)
{
	/* D, matches C in is_passed() */
	__atomic_store_n(&rm->fence->passed, pos >> rm->shift, __ATOMIC_RELEASE);
}

/**
 * ring_memory__taken - in the child: up to where the recorder may have overwritten the ring
 * @rm: the memory
 *
 * A copy that was made before the call is intact from the returned position on.
 */
u64 ring_memory__taken(const struct ring_memory *rm)
{
	/* B, matches A in take_from_child(): after the copy */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return (u64)__atomic_load_n(&rm->fence->taken, __ATOMIC_RELAXED) << rm->shift;
}

/* Bytes of memory that the ring takes. */
u64 ring_memory__used(const struct ring_memory *rm)
{
	return (u64)rm->resident << rm->shift;
}
