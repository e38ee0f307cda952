// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds that a flight recorder retains
 *
 * A round is what one pass over the kernel's ring buffers found. It is the unit
 * of everything here: it arrives piece by piece, is closed, and leaves as a
 * whole, the oldest one first, whichever CPU its records came from. So there is
 * one budget for all CPUs, and what is left is always a run of whole rounds up
 * to now. That is what makes a dump readable: PERF_RECORD_FINISHED_ROUND behind
 * a round promises that no record of the rounds to come is older than what the
 * round before held, and a promise about "later" holds for any run of rounds
 * that ends with the newest one.
 *
 * Rounds lie in one ring of bytes. Positions are numbers of bytes ever stored,
 * which do not wrap; their place in memory is their remainder:
 *
 *	        tail                         open                head
 *	   ......[hdr records][hdr records]...[hdr records ...    |.......
 *	   |<----------------------- size ------------------------------>|
 *
 * Each round begins with a header, which is filled in when the round is closed.
 * The bytes of a round are stored as they come: a piece of the kernel's ring may
 * begin or end in the middle of a record, where that ring wraps, and the piece
 * behind it goes on there. Records may wrap here as well. Nobody looks into them
 * when they arrive; they are parsed when a round is walked, and a record that
 * wraps is put together in a bounce buffer then. Records and headers are
 * multiples of 8 bytes long, and so is the ring: a header of a record never wraps.
 *
 * Memory: the ring is reserved when the store is made, and takes no more memory
 * than was ever touched of it. The budget may be less than its size, and change;
 * what it takes away is given back to the kernel as soon as the rounds there have
 * been evicted. Nothing is allocated while records come in.
 *
 * What leaves is shown to the owner, record by record, before it is gone: this is
 * where the side-band store learns of it.
 *
 * One thread. A child that was forked may walk what it inherited.
 */
#include "ring-store.h"
#include "event.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Evicted memory is given back in steps of this. */
#define GRANULE		(256UL * 1024)

struct round_header {
	u64		len;
	u64		time;
};

struct ring_store {
	unsigned char		*base;
	u64			size;
	u64			budget;
	u64			tail;
	u64			head;
	u64			open;		/* where the open round begins */
	u64			given_back;	/* memory before this is not ours */
	bool			is_open;
	bool			refused;	/* the open round found no room */
	ring_store_record_t	evict;
	void			*data;
	unsigned char		*bounce;
	struct ring_store_stats	stats;
};

static inline void *at(const struct ring_store *rs, u64 pos)
{
	return rs->base + pos % rs->size;
}

static void copy_in(struct ring_store *rs, u64 pos, const void *from, size_t len)
{
	size_t first = min_t(u64, len, rs->size - pos % rs->size);

	memcpy(at(rs, pos), from, first);
	memcpy(rs->base, from + first, len - first);
}

static void copy_out(const struct ring_store *rs, u64 pos, void *to, size_t len)
{
	size_t first = min_t(u64, len, rs->size - pos % rs->size);

	memcpy(to, at(rs, pos), first);
	memcpy(to + first, rs->base, len - first);
}

/**
 * ring_store__new - make a store
 * @size: bytes that it may hold, headers of rounds included
 * @evict: sees each record of a round that goes; may be NULL
 * @data: passed to @evict
 *
 * Return: the store, or NULL if there is no memory.
 */
struct ring_store *ring_store__new(size_t size, ring_store_record_t evict, void *data)
{
	struct ring_store *rs = zalloc(sizeof(*rs));

	if (!rs)
		return NULL;

	size = PERF_ALIGN(size, page_size);
	rs->base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (rs->base == MAP_FAILED)
		goto out_free;

	rs->bounce = malloc(PERF_SAMPLE_MAX_SIZE);
	if (!rs->bounce)
		goto out_unmap;

	rs->size = size;
	rs->budget = size;
	rs->evict = evict;
	rs->data = data;
	return rs;

out_unmap:
	munmap(rs->base, size);
out_free:
	free(rs);
	return NULL;
}

void ring_store__delete(struct ring_store *rs)
{
	if (!rs)
		return;
	munmap(rs->base, rs->size);
	free(rs->bounce);
	free(rs);
}

/* The record at a place in memory, in one piece; NULL if there is none in @left bytes. */
static union perf_event *record(struct ring_store *rs, u64 place, u64 left)
{
	struct perf_event_header *header = (struct perf_event_header *)(rs->base + place);

	if (left < sizeof(*header) || header->size < sizeof(*header) ||
	    header->size % sizeof(u64) || header->size > left)
		return NULL;

	if (place + header->size <= rs->size)
		return (union perf_event *)header;

	copy_out(rs, place, rs->bounce, header->size);
	return (union perf_event *)rs->bounce;
}

/**
 * ring_store__walk - visit the records of a round, in the order of their arrival
 * @rs: the store
 * @round: one of its rounds
 * @fn: called for each record
 * @data: passed to @fn
 *
 * Return: 0, what @fn returned to end it, or -EBADMSG where no record could be
 * found; the rest of the round is skipped.
 */
int ring_store__walk(struct ring_store *rs, const struct ring_store_round *round,
		     ring_store_record_t fn, void *data)
{
	u64 place = round->pos % rs->size, left = round->len;

	while (left) {
		union perf_event *event = record(rs, place, left);
		u16 size;
		int err;

		if (!event) {
			rs->stats.broken_bytes += left;
			return -EBADMSG;
		}
		size = event->header.size;
		err = fn(event, data);
		if (err)
			return err;
		left -= size;
		place += size;
		if (place >= rs->size)
			place -= rs->size;
	}
	return 0;
}

static void round_at(const struct ring_store *rs, u64 pos, struct ring_store_round *round)
{
	struct round_header header;

	copy_out(rs, pos, &header, sizeof(header));
	round->pos = pos + sizeof(header);
	round->len = header.len;
	round->time = header.time;
	round->next = round->pos + round->len;
}

static u64 closed_end(const struct ring_store *rs)
{
	return rs->is_open ? rs->open : rs->head;
}

/**
 * ring_store__first - the oldest closed round
 * @rs: the store
 * @round: where to describe it
 *
 * Return: false if there is none.
 */
bool ring_store__first(const struct ring_store *rs, struct ring_store_round *round)
{
	if (rs->tail == closed_end(rs))
		return false;
	round_at(rs, rs->tail, round);
	return true;
}

/**
 * ring_store__next - the closed round that came after another one
 * @rs: the store
 * @round: a round of it; becomes the one behind it
 *
 * Return: false if there is none.
 */
bool ring_store__next(const struct ring_store *rs, struct ring_store_round *round)
{
	if (round->next == closed_end(rs))
		return false;
	round_at(rs, round->next, round);
	return true;
}

/* What the budget does not allow for does not stay in memory. */
static void give_back(struct ring_store *rs)
{
	u64 from, to;

	if (rs->size - rs->budget < GRANULE)
		return;

	/* Memory below the tail is free, up to a ring's length below the head. */
	from = max(rs->given_back, rs->head > rs->size ? rs->head - rs->size : 0);
	from = PERF_ALIGN(from, GRANULE);
	to = rs->tail / GRANULE * GRANULE;
	while (from < to) {
		u64 len = min(to - from, rs->size - from % rs->size);

		madvise(at(rs, from), len / page_size * page_size, MADV_DONTNEED);
		from += len;
		rs->given_back = from;
	}
}

static void evict_round(struct ring_store *rs, const struct ring_store_round *round)
{
	if (rs->evict)
		ring_store__walk(rs, round, rs->evict, rs->data);
	rs->stats.evicted_rounds++;
	rs->stats.evicted_bytes += round->len;
	rs->stats.bytes -= round->len;
	rs->stats.rounds--;
	rs->tail = round->next;
	rs->stats.used = rs->head - rs->tail;
}

/* Make room for @len more bytes; false if even an empty store has none. */
static bool make_room(struct ring_store *rs, u64 len)
{
	struct ring_store_round round;

	while (rs->head + len - rs->tail > rs->budget) {
		if (!ring_store__first(rs, &round))
			return false;
		evict_round(rs, &round);
	}
	give_back(rs);
	return true;
}

/* No room for the open round: it is left out, down to its last byte. */
static int refuse(struct ring_store *rs, size_t len)
{
	u64 gone = rs->refused ? 0 : rs->head - rs->open - sizeof(struct round_header);

	rs->stats.refused_bytes += len + gone;
	rs->stats.bytes -= gone;
	rs->head = rs->open + sizeof(struct round_header);
	rs->stats.used = rs->head - rs->tail;
	rs->refused = true;
	return -ENOSPC;
}

static int open_round(struct ring_store *rs)
{
	if (!make_room(rs, sizeof(struct round_header)))
		return -ENOSPC;
	rs->open = rs->head;
	rs->head += sizeof(struct round_header);
	rs->is_open = true;
	rs->refused = false;
	return 0;
}

/**
 * ring_store__append - store a piece of the round that is coming in
 * @rs: the store
 * @piece: bytes that follow those of the piece before
 * @len: number of them, a multiple of 8
 *
 * Opens a round if none is open. Evicts the oldest rounds to make room. A round
 * that is larger than the budget is left out as a whole.
 *
 * Return: 0, or -ENOSPC if the round is left out.
 */
int ring_store__append(struct ring_store *rs, const void *piece, size_t len)
{
	if (!rs->is_open && open_round(rs)) {
		rs->stats.refused_bytes += len;
		return -ENOSPC;
	}
	if (rs->refused || !make_room(rs, len))
		return refuse(rs, len);

	copy_in(rs, rs->head, piece, len);
	rs->head += len;
	rs->stats.bytes += len;
	rs->stats.used = rs->head - rs->tail;
	return 0;
}

/**
 * ring_store__close_round - the pass is over
 * @rs: the store
 * @time: CLOCK_MONOTONIC, in ns
 *
 * A round without a record is forgotten.
 */
void ring_store__close_round(struct ring_store *rs, u64 time)
{
	struct round_header header = { .time = time };

	if (!rs->is_open)
		return;

	rs->is_open = false;
	header.len = rs->head - rs->open - sizeof(header);
	if (!header.len) {
		rs->head = rs->open;
		rs->stats.used = rs->head - rs->tail;
		return;
	}
	copy_in(rs, rs->open, &header, sizeof(header));
	rs->stats.rounds++;
}

bool ring_store__is_open(const struct ring_store *rs)
{
	return rs->is_open;
}

/**
 * ring_store__set_budget - change how much may be held
 * @rs: the store
 * @budget: bytes, at most the size that the store was made with
 */
void ring_store__set_budget(struct ring_store *rs, size_t budget)
{
	rs->budget = min_t(u64, budget, rs->size);
	make_room(rs, 0);
}

/**
 * ring_store__evict_before - drop the rounds that were closed before a time
 * @rs: the store
 * @time: CLOCK_MONOTONIC, in ns
 */
void ring_store__evict_before(struct ring_store *rs, u64 time)
{
	struct ring_store_round round;

	while (ring_store__first(rs, &round) && round.time < time)
		evict_round(rs, &round);
	give_back(rs);
}

u64 ring_store__tail(const struct ring_store *rs)
{
	return rs->tail;
}

u64 ring_store__head(const struct ring_store *rs)
{
	return rs->head;
}

const struct ring_store_stats *ring_store__stats(const struct ring_store *rs)
{
	return &rs->stats;
}
