// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds that a flight recorder retains
 *
 * A round is what one pass over the kernel's ring buffers found. It is the unit
 * of everything here: it arrives piece by piece, is closed, and leaves as a
 * whole, the oldest one first, whichever CPU its records came from. So there is
 * one budget for all CPUs, and what is left is always a run of whole rounds up
 * to now. That is what makes a dump readable: PERF_RECORD_FINISHED_ROUND promises
 * something of the records to come, and a promise about "later" holds for any run
 * of rounds that ends with the newest one. Behind which rounds a dump may have that
 * mark: see round_group__ends().
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
 * than was ever touched of it. The budget may be less than its size, and change.
 * The ring follows it, in steps: it becomes shorter or longer when all rounds lie
 * between its beginning and where it is to end, which is so once in each lap, or is
 * made so by evicting a little more. Until then, what is above the budget is given
 * back to the kernel as soon as the rounds there have been evicted; that costs page
 * faults, so it is not for ever. Nothing is allocated while records come in.
 *
 * What leaves is shown to the owner, record by record, before it is gone: this is
 * where the side-band store learns of it. Records of a type that the owner does not
 * want to see, which are nearly all, cost a look at their header.
 *
 * With compression, a round is packed when it is closed, in place: chunk by chunk,
 * behind what was packed of it before, and the head moves back. Passes are joined to
 * one round until there is a chunk of them, as small ones do not pack well: many
 * passes in one round are in order as one pass is. A round whose first chunk does not
 * become smaller stays as it is; another chunk like that is stored as it is, in the room
 * that the first one made.
 *
 *	[hdr [len raw packed...][len raw packed...]...]
 *
 * One thread. A child that was forked may walk what it inherited.
 */
#include "ring-store.h"
#include "../../event.h"
#include "round-codec.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Evicted memory is given back in steps of this. */
#define GRANULE		(256UL * 1024)

/* What is compressed at a time; a power of two. */
#define CHUNK		(256UL * 1024)

/* The headers of so many fit into what the first one saved at least, a 16th. */
#define MAX_CHUNKS	1024

/* @len bytes are stored, which were @raw ones: more, or as many if it is not packed. */
struct round_header {
	u64		len;
	u64		raw;
	u64		time;
};

struct chunk_header {
	u32		len;
	u32		raw;
};

/* Records of a chunk may have begun in the one before. */
struct chunk_room {
	unsigned char	raw[PERF_SAMPLE_MAX_SIZE + CHUNK];
	unsigned char	packed[CHUNK];
};

struct ring_store {
	unsigned char		*base;
	u64			size;		/* of the memory */
	u64			lap;		/* of the ring: how much of that it uses */
	u64			origin;		/* a position at the beginning of the memory */
	u64			budget;
	u64			tail;
	u64			head;
	u64			open;		/* where the open round begins */
	u64			given_back;	/* memory before this is not ours */
	u64			last_pass;	/* when it ended */
	bool			is_open;
	bool			refused;	/* the open round found no room */
	ring_store_record_t	evict;
	ring_store_gone_t	gone;
	u32			unseen;		/* type of record that goes unseen */
	void			*data;
	unsigned char		*bounce;
	struct round_codec	*codec;
	struct chunk_room	*room;
	struct ring_store_stats	stats;
};

static inline u64 place(const struct ring_store *rs, u64 pos)
{
	return (pos - rs->origin) % rs->lap;
}

static inline void *at(const struct ring_store *rs, u64 pos)
{
	return rs->base + place(rs, pos);
}

static void copy_in(struct ring_store *rs, u64 pos, const void *from, size_t len)
{
	size_t first = min_t(u64, len, rs->lap - place(rs, pos));

	memcpy(at(rs, pos), from, first);
	memcpy(rs->base, from + first, len - first);
}

static void copy_out(const struct ring_store *rs, u64 pos, void *to, size_t len)
{
	size_t first = min_t(u64, len, rs->lap - place(rs, pos));

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
	rs->lap = size;
	rs->budget = size;
	rs->evict = evict;
	rs->unseen = -1;
	rs->data = data;
	return rs;

out_unmap:
	munmap(rs->base, size);
out_free:
	free(rs);
	return NULL;
}

/**
 * ring_store__on_gone - call a function behind the last record of each round that goes
 * @rs: the store
 * @gone: the function
 */
void ring_store__on_gone(struct ring_store *rs, ring_store_gone_t gone)
{
	rs->gone = gone;
}

/**
 * ring_store__evict_unseen - do not show records of a type when they go
 * @rs: the store
 * @type: PERF_RECORD_*
 */
void ring_store__evict_unseen(struct ring_store *rs, u32 type)
{
	rs->unseen = type;
}

/**
 * ring_store__compress - compress rounds from now on
 * @rs: the store
 * @level: of zstd
 *
 * Return: 0, -ENOMEM, or -EOPNOTSUPP if perf was built without zstd.
 */
int ring_store__compress(struct ring_store *rs, int level)
{
	rs->room = malloc(sizeof(*rs->room));
	if (!rs->room)
		return -ENOMEM;
	rs->codec = round_codec__new(level);
	return rs->codec ? 0 : -errno;
}

void ring_store__delete(struct ring_store *rs)
{
	if (!rs)
		return;
	round_codec__delete(rs->codec);
	free(rs->room);
	munmap(rs->base, rs->size);
	free(rs->bounce);
	free(rs);
}

static bool is_record(const struct perf_event_header *header, u64 left)
{
	return left >= sizeof(*header) && header->size >= sizeof(*header) &&
	       !(header->size % sizeof(u64)) && header->size <= left;
}

/* The record at a place in memory, in one piece. */
static union perf_event *whole_record(struct ring_store *rs, u64 where, u16 size)
{
	if (where + size <= rs->lap)
		return (union perf_event *)(rs->base + where);

	copy_out(rs, rs->origin + where, rs->bounce, size);
	return (union perf_event *)rs->bounce;
}

static inline int walk_plain(struct ring_store *rs, const struct ring_store_round *round,
			     u32 unseen, ring_store_record_t fn, void *data)
{
	u64 where = place(rs, round->pos), left = round->len;

	while (left) {
		const struct perf_event_header *header = (void *)(rs->base + where);
		u16 size = header->size;

		if (!is_record(header, left)) {
			rs->stats.broken_bytes += left;
			return -EBADMSG;
		}
		if (header->type != unseen) {
			int err = fn(whole_record(rs, where, size), data);

			if (err)
				return err;
		}
		left -= size;
		where += size;
		if (where >= rs->lap)
			where -= rs->lap;
	}
	return 0;
}

/* Return: bytes of whole records, which were walked; @err: what @fn returned to end it. */
static size_t walk_bytes(unsigned char *bytes, size_t len, u32 unseen, ring_store_record_t fn,
			 void *data, int *err)
{
	size_t pos = 0;

	while (pos < len) {
		union perf_event *event = (union perf_event *)(bytes + pos);
		u16 size = event->header.size;

		if (!is_record(&event->header, len - pos))
			break;
		*err = event->header.type == unseen ? 0 : fn(event, data);
		if (*err)
			break;
		pos += size;
	}
	return pos;
}

/* Bytes of the chunk at @pos, unpacked to @to; 0: it is broken. */
static size_t unpack_chunk(struct ring_store *rs, u64 *pos, void *to)
{
	struct chunk_header chunk;

	copy_out(rs, *pos, &chunk, sizeof(chunk));
	*pos += sizeof(chunk);
	if (chunk.raw > CHUNK || chunk.len > chunk.raw)
		return 0;
	if (chunk.len == chunk.raw) {
		copy_out(rs, *pos, to, chunk.raw);
	} else {
		copy_out(rs, *pos, rs->room->packed, chunk.len);
		if (round_codec__unpack(rs->codec, to, chunk.raw, rs->room->packed, chunk.len))
			return 0;
	}
	*pos += PERF_ALIGN(chunk.len, sizeof(u64));
	return chunk.raw;
}

static int walk_packed(struct ring_store *rs, const struct ring_store_round *round,
		       u32 unseen, ring_store_record_t fn, void *data)
{
	unsigned char *raw = rs->room->raw;
	u64 pos = round->pos, left = round->raw;
	size_t begun = 0;

	while (pos < round->next && begun < PERF_SAMPLE_MAX_SIZE) {
		size_t len = unpack_chunk(rs, &pos, raw + begun), walked;
		int err = 0;

		if (!len)
			break;
		walked = walk_bytes(raw, begun + len, unseen, fn, data, &err);
		if (err)
			return err;
		left -= walked;
		begun += len - walked;
		memmove(raw, raw + walked, begun);
	}
	if (!left)
		return 0;
	rs->stats.broken_bytes += left;
	return -EBADMSG;
}

static int walk(struct ring_store *rs, const struct ring_store_round *round, u32 unseen,
		ring_store_record_t fn, void *data)
{
	if (round->raw != round->len)
		return walk_packed(rs, round, unseen, fn, data);
	return walk_plain(rs, round, unseen, fn, data);
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
	return walk(rs, round, -1, fn, data);
}

static void round_at(const struct ring_store *rs, u64 pos, struct ring_store_round *round)
{
	struct round_header header;

	copy_out(rs, pos, &header, sizeof(header));
	round->pos = pos + sizeof(header);
	round->len = header.len;
	round->raw = header.raw;
	round->time = header.time;
	round->next = round->pos + round->len;
}

/**
 * round_group__ends - may the promise of FINISHED_ROUND be given behind a round?
 * @group: what was asked before, zeroes at first
 * @time: when the round was closed; they come in their order
 *
 * Mark n+1 promises that nothing comes behind it that is not newer than all before
 * mark n. A CPU takes the time of a record before it publishes it. Where it is held up
 * in between (an SMI, a guest whose CPU does not run), passes that follow one another
 * closely may be over before. So each buffer is to be read once more when the last
 * round before mark n has been closed for FLIGHT_ROUND_TIME, and only then comes mark
 * n+1. When a round was read is not known but for this: after the one before it was
 * closed. What is between two marks is one round to its readers; many passes in one
 * are in order as one is.
 *
 * Return: true if the group ends with this round, and the next one begins.
 */
bool round_group__ends(struct round_group *group, u64 time)
{
	bool ends = !group->end || group->last >= group->end + FLIGHT_ROUND_TIME;

	group->last = time;
	if (ends)
		group->end = time;
	return ends;
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

	if (rs->lap < rs->budget + GRANULE)
		return;

	/* Memory below the tail is free, up to a ring's length below the head. */
	from = max(rs->given_back, rs->head > rs->lap ? rs->head - rs->lap : 0);
	from = max(from, rs->origin);
	from = PERF_ALIGN(from, GRANULE);
	to = rs->tail / GRANULE * GRANULE;
	while (from < to) {
		u64 len = min(to - from, rs->lap - place(rs, from));

		madvise(at(rs, from), len / page_size * page_size, MADV_DONTNEED);
		from += len;
		rs->given_back = from;
	}
}

static void evict_round(struct ring_store *rs, const struct ring_store_round *round)
{
	if (rs->evict)
		walk(rs, round, rs->unseen, rs->evict, rs->data);
	if (rs->gone)
		rs->gone(rs->tail, round->time, rs->data);
	rs->stats.evicted_rounds++;
	rs->stats.evicted_bytes += round->raw;
	rs->stats.bytes -= round->raw;
	rs->stats.rounds--;
	rs->tail = round->next;
	rs->stats.used = rs->head - rs->tail;
}

/* Make room for @len more bytes; false if even an empty store has none. */
static bool make_room(struct ring_store *rs, u64 len)
{
	struct ring_store_round round;

	/* A ring that has not yet followed a larger budget has no room for that. */
	while (rs->head + len - rs->tail > min(rs->budget, rs->lap)) {
		if (!ring_store__first(rs, &round))
			return false;
		evict_round(rs, &round);
	}
	give_back(rs);
	return true;
}

/* Have a ring of the budget's length, when that can be; @len bytes are to be stored. */
static void follow_budget(struct ring_store *rs, u64 len)
{
	u64 want = min_t(u64, max_t(u64, PERF_ALIGN(rs->budget, GRANULE), GRANULE), rs->size);
	struct ring_store_round round;
	u64 begin, used;

	if (want == rs->lap || rs->head == rs->origin)
		return;

	/* What the memory holds from its beginning on; a full ring has not begun anew. */
	used = (rs->head - rs->origin - 1) % rs->lap + 1;
	begin = rs->head - used;
	if (used > want || (rs->is_open && rs->open < begin))
		return;
	/* The last chance in this lap. */
	while (used + len > min(want, rs->lap) && rs->tail < begin && ring_store__first(rs, &round))
		evict_round(rs, &round);
	if (rs->tail < begin)
		return;

	if (want < rs->lap)
		madvise(rs->base + want, rs->lap - want, MADV_DONTNEED);
	rs->lap = want;
	rs->origin = begin;
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

	follow_budget(rs, len);
	copy_in(rs, rs->head, piece, len);
	rs->head += len;
	rs->stats.bytes += len;
	rs->stats.used = rs->head - rs->tail;
	return 0;
}

/* Chunk by chunk to where the round begins; the head is behind what is left of it. */
static void pack_round(struct ring_store *rs, u64 raw)
{
	u64 from = rs->head - raw, to = from, end = rs->head;

	if (raw > MAX_CHUNKS * CHUNK)
		return;

	while (from < end) {
		struct chunk_header chunk = { .raw = min_t(u64, CHUNK, end - from) };
		void *bytes = rs->room->packed;
		bool first = to == from;

		copy_out(rs, from, rs->room->raw, chunk.raw);
		chunk.len = round_codec__pack(rs->codec, bytes, chunk.raw - chunk.raw / 16,
					      rs->room->raw, chunk.raw);
		if (first && (!chunk.len ||
			      PERF_ALIGN(chunk.len, sizeof(u64)) + sizeof(chunk) >= chunk.raw))
			return;
		if (!chunk.len) {
			chunk.len = chunk.raw;
			bytes = rs->room->raw;
		}
		copy_in(rs, to, &chunk, sizeof(chunk));
		copy_in(rs, to + sizeof(chunk), bytes, chunk.len);
		to += sizeof(chunk) + PERF_ALIGN(chunk.len, sizeof(u64));
		from += chunk.raw;
	}
	rs->head = to;
}

/* Forget it if it is empty. */
static void end_round(struct ring_store *rs)
{
	struct round_header header = {
		.time	= rs->last_pass,
		.raw	= rs->head - rs->open - sizeof(header),
	};

	rs->is_open = false;
	if (header.raw) {
		if (rs->codec)
			pack_round(rs, header.raw);
		header.len = rs->head - rs->open - sizeof(header);
		copy_in(rs, rs->open, &header, sizeof(header));
		rs->stats.rounds++;
	} else {
		rs->head = rs->open;
	}
	rs->stats.used = rs->head - rs->tail;
}

/**
 * ring_store__close_round - the pass is over
 * @rs: the store
 * @time: CLOCK_MONOTONIC, in ns
 *
 * A round without a record is forgotten. One that is to be compressed may go on with
 * the next pass.
 */
void ring_store__close_round(struct ring_store *rs, u64 time)
{
	rs->last_pass = time;
	if (rs->is_open && (!rs->codec || rs->refused || rs->head - rs->open >= CHUNK))
		end_round(rs);
}

/* ring_store__flush - close the round, also if the next pass would go on with it */
void ring_store__flush(struct ring_store *rs)
{
	if (rs->is_open)
		end_round(rs);
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
	follow_budget(rs, 0);
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
