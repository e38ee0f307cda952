// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a fair store: chunks of equal size, which a forked child can read
 *
 * A queue of a fair store loses its oldest chunk when another queue needs one. Chunks thus
 * become free in any order, not in the order of their age as the segments of ring-memory.c.
 * The memory is shared for the same reason as there: a child writes a dump while the
 * recorder continues, and fork() must neither copy page tables nor pages. The recorder
 * does not overwrite a chunk that the child has not read yet, as long as there is other
 * memory, and the child notices otherwise. States of a slot:
 *
 *	FREE -> LIVE	fair_memory__get()
 *	LIVE -> FREE	fair_memory__put(): no child, or a chunk from after the fork
 *	LIVE -> HELD	fair_memory__put(): a chunk from before the fork
 *	HELD -> LIVE	fair_memory__get(): the recorder takes the slot from the child
 *	HELD -> FREE	fair_memory__unfence(): the child has ended
 *
 * fair_memory__get() uses, in this order:
 *
 *	1. a FREE slot that has memory
 *	2. the slot that is HELD for the longest time, if the child has read it
 *	3. a FREE slot without memory, within the limit and a reserve of 1/RESERVE_SHARE
 *	4. the slot that is HELD for the longest time, although the child has not read it
 *
 * Ordering. Each slot has two flags that are shared, each with one writer:
 *
 *	recorder, takes a slot			child, reads a piece of it
 *	------------------------------------------------------------------------
 *	taken = 1				copy the piece
 *	release fence (A)			acquire fence (B)
 *	overwrite the slot			load taken
 *						if it is set: drop the piece
 *
 *	recorder, reuses a slot			child, has copied it
 *	------------------------------------------------------------------------
 *	load passed, acquire (C)		store passed, release (D)
 *	if it is set: take it, as above
 *
 * A pairs with B, C pairs with D. What was appended to a live chunk after the fork lies
 * behind the end that the child knows. All other data is private: the child has a copy
 * from the time of fork().
 *
 * The budget covers the chunks and what describes them. There is one child at a time.
 */
#include "fair-memory.h"
#include "shared-memory.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <sys/mman.h>

/* There are at most this many chunks, unless they would be smaller than a page. */
#define MAX_CHUNKS		16384

/* The reserve for records that arrive while a dump is written: 1/4 of the size. */
#define RESERVE_SHARE		4

/* What a chunk takes in the arrays below. */
#define CHUNK_OVERHEAD		(sizeof(struct fair_chunk) + 3 * sizeof(u32) + 2)

/**
 * struct fair_memory - the memory of a fair store
 * @base: of all slots
 * @passed: by slot, shared: the child has read it
 * @taken: by slot, shared: the recorder has taken it from the child
 * @chunks: by slot
 * @shift: size of a chunk, as a power of two
 * @nr: number of slots
 * @limit: chunks within the budget
 * @reserve: slots of the reserve
 * @live: slots in use
 * @resident: slots that have memory
 * @warm: free slots that have memory
 * @nr_warm: number of them
 * @cold: free slots without memory
 * @nr_cold: number of them
 * @held: a queue of slots that are held, in the order in which they were put
 * @first_held: position of its first one, modulo @nr
 * @nr_held: number of them
 * @epoch: number of the last fence
 * @fenced: there is a child
 */
struct fair_memory {
	unsigned char		*base;
	unsigned char		*passed;
	unsigned char		*taken;
	struct fair_chunk	*chunks;
	unsigned int		shift;
	u32			nr;
	u32			limit;
	u32			reserve;
	u32			live;
	u32			resident;
	u32			*warm;
	u32			nr_warm;
	u32			*cold;
	u32			nr_cold;
	u32			*held;
	u32			first_held;
	u32			nr_held;
	u32			epoch;
	bool			fenced;
};

size_t fair_memory__chunk_size(const struct fair_memory *fm)
{
	return 1UL << fm->shift;
}

/* The number of chunks that the size given to fair_memory__new() has room for. */
u32 fair_memory__nr(const struct fair_memory *fm)
{
	return fm->nr - fm->reserve;
}

/* The number of chunks within the budget. */
u32 fair_memory__limit(const struct fair_memory *fm)
{
	return fm->limit;
}

static u32 chunks_of(const struct fair_memory *fm, u64 bytes)
{
	return bytes / (fair_memory__chunk_size(fm) + CHUNK_OVERHEAD);
}

/**
 * fair_memory__new - reserve memory
 * @size: bytes that the store takes at most
 *
 * Only what is touched takes memory.
 *
 * Return: NULL if there is no memory.
 */
struct fair_memory *fair_memory__new(u64 size)
{
	struct fair_memory *fm = zalloc(sizeof(*fm));

	if (!fm)
		return NULL;
	while (fair_memory__chunk_size(fm) < (size_t)page_size)
		fm->shift++;
	while (chunks_of(fm, size) > MAX_CHUNKS)
		fm->shift++;
	fm->limit = chunks_of(fm, size);
	fm->reserve = fm->limit / RESERVE_SHARE;
	fm->nr = fm->limit + fm->reserve;

	fm->base = shared_memory((size_t)fm->nr << fm->shift);
	fm->passed = shared_memory(2 * (size_t)fm->nr);
	fm->chunks = calloc(fm->nr, sizeof(*fm->chunks));
	fm->warm = calloc(fm->nr, sizeof(*fm->warm));
	fm->cold = calloc(fm->nr, sizeof(*fm->cold));
	fm->held = calloc(fm->nr, sizeof(*fm->held));
	if (!fm->base || !fm->passed || !fm->chunks || !fm->warm || !fm->cold || !fm->held) {
		fair_memory__delete(fm);
		return NULL;
	}
	fm->taken = fm->passed + fm->nr;
	for (u32 slot = fm->nr; slot-- > 0;)
		fm->cold[fm->nr_cold++] = slot;
	return fm;
}

void fair_memory__delete(struct fair_memory *fm)
{
	if (!fm)
		return;
	if (fm->base)
		munmap(fm->base, (size_t)fm->nr << fm->shift);
	if (fm->passed)
		munmap(fm->passed, 2 * (size_t)fm->nr);
	free(fm->chunks);
	free(fm->warm);
	free(fm->cold);
	free(fm->held);
	free(fm);
}

/* Return the memory of free slots that exceeds the budget to the kernel. */
static void trim(struct fair_memory *fm)
{
	while (!fm->fenced && fm->nr_warm && fm->resident > fm->limit) {
		u32 slot = fm->warm[--fm->nr_warm];

		madvise(fair_memory__at(fm, slot), fair_memory__chunk_size(fm), MADV_REMOVE);
		fm->cold[fm->nr_cold++] = slot;
		fm->resident--;
	}
}

/**
 * fair_memory__set_budget - change how much memory may be taken
 * @fm: the memory
 * @budget: bytes, at most the size given to fair_memory__new()
 *
 * Chunks in use that exceed it stay until the owner puts them.
 */
void fair_memory__set_budget(struct fair_memory *fm, u64 budget)
{
	fm->limit = min(chunks_of(fm, budget), fair_memory__nr(fm));
	trim(fm);
}

static u32 pop_held(struct fair_memory *fm)
{
	u32 slot = fm->held[fm->first_held];

	fm->first_held = (fm->first_held + 1) % fm->nr;
	fm->nr_held--;
	return slot;
}

/* Return whether the child has read the chunk that is held for the longest time. */
static bool is_passed(const struct fair_memory *fm)
{
	/* C, matches D in fair_memory__passed() */
	return __atomic_load_n(&fm->passed[fm->held[fm->first_held]], __ATOMIC_ACQUIRE);
}

static u32 take_from_child(struct fair_memory *fm)
{
	u32 slot = pop_held(fm);

	__atomic_store_n(&fm->taken[slot], 1, __ATOMIC_RELAXED);
	/* A, matches B in fair_memory__is_taken(): before the chunk is overwritten */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return slot;
}

/**
 * fair_memory__get - get a chunk
 * @fm: the memory
 *
 * Return: its slot, or FAIR_NONE if the budget is used up.
 */
u32 fair_memory__get(struct fair_memory *fm)
{
	u32 limit = fm->limit + (fm->fenced ? fm->reserve : 0), slot;

	if (fm->live >= fm->limit)
		return FAIR_NONE;
	if (fm->nr_warm) {
		slot = fm->warm[--fm->nr_warm];
	} else if (fm->nr_held && is_passed(fm)) {
		slot = take_from_child(fm);
	} else if (fm->nr_cold && fm->resident < limit) {
		slot = fm->cold[--fm->nr_cold];
		fm->resident++;
	} else if (fm->nr_held) {
		slot = take_from_child(fm);
	} else {
		return FAIR_NONE;
	}
	fm->live++;
	fm->chunks[slot].epoch = fm->epoch;
	return slot;
}

/**
 * fair_memory__put - a chunk is not in use any more
 * @fm: the memory
 * @slot: its slot
 */
void fair_memory__put(struct fair_memory *fm, u32 slot)
{
	fm->live--;
	if (fm->fenced && fm->chunks[slot].epoch != fm->epoch) {
		fm->held[(fm->first_held + fm->nr_held) % fm->nr] = slot;
		fm->nr_held++;
		return;
	}
	fm->warm[fm->nr_warm++] = slot;
	trim(fm);
}

struct fair_chunk *fair_memory__chunk(struct fair_memory *fm, u32 slot)
{
	return &fm->chunks[slot];
}

/* The memory of a chunk. */
void *fair_memory__at(const struct fair_memory *fm, u32 slot)
{
	return fm->base + ((size_t)slot << fm->shift);
}

/**
 * fair_memory__fence - a child is about to be forked that reads the chunks
 * @fm: the memory
 */
void fair_memory__fence(struct fair_memory *fm)
{
	for (u32 slot = 0; slot < fm->nr; slot++) {
		fm->passed[slot] = 0;
		fm->taken[slot] = 0;
	}
	fm->fenced = true;
	fm->epoch++;
}

/**
 * fair_memory__unfence - there is no child any more
 * @fm: the memory
 */
void fair_memory__unfence(struct fair_memory *fm)
{
	while (fm->nr_held)
		fm->warm[fm->nr_warm++] = pop_held(fm);
	fm->fenced = false;
	trim(fm);
}

/**
 * fair_memory__walk_again - in the child: all chunks that were not taken are needed
 * @fm: the memory
 */
void fair_memory__walk_again(struct fair_memory *fm)
{
	for (u32 slot = 0; slot < fm->nr; slot++)
		__atomic_store_n(&fm->passed[slot], 0, __ATOMIC_RELAXED);
}

/**
 * fair_memory__passed - in the child: a chunk is not needed any more
 * @fm: the memory
 * @slot: its slot
 */
void fair_memory__passed(struct fair_memory *fm, u32 slot)
{
	/* D, matches C in is_passed() */
	__atomic_store_n(&fm->passed[slot], 1, __ATOMIC_RELEASE);
}

/**
 * fair_memory__is_taken - in the child: check whether the recorder has taken a chunk
 * @fm: the memory
 * @slot: its slot
 *
 * If this returns false, a copy that was made before the call is intact.
 */
bool fair_memory__is_taken(const struct fair_memory *fm, u32 slot)
{
	/* B, matches A in take_from_child(): after the copy */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&fm->taken[slot], __ATOMIC_RELAXED);
}

/* Bytes of memory that the chunks take. */
u64 fair_memory__used(const struct fair_memory *fm)
{
	return (u64)fm->resident << fm->shift;
}
