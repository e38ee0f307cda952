// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds that a flight recorder retains
 *
 * A round is the result of one pass over the ring buffers of the kernel. It is the unit
 * of the store: it arrives in pieces, is closed, and is evicted as a whole. The oldest
 * round is evicted first, regardless of the CPUs of its records. Thus there is one budget
 * for all CPUs, and the rounds in the store are a sequence without gaps that ends with the
 * newest round. A dump depends on this: PERF_RECORD_FINISHED_ROUND limits how old the
 * records after it can be, and this remains true if the oldest rounds are missing.
 * round_group__ends() determines after which rounds a dump has this mark.
 *
 * Rounds are stored in one ring of bytes. A position is the number of bytes ever stored
 * and does not wrap. The bytes of a position are in a segment of the memory; see
 * ring-memory.c:
 *
 *	        tail                         open                head
 *	   ......[hdr records][hdr records]...[hdr records ...    |.......
 *	   |<-------------------- at most the budget ------------>|
 *
 * Each round starts with a header, which is filled in when the round is closed. The
 * bytes of a round are stored as they arrive. If a ring of the kernel wraps, a piece may
 * start or end in the middle of a record, and the next piece continues it. Records may
 * cross the end of a segment. They are not parsed on arrival, but when a round is walked.
 * A record in two segments is then copied to a bounce buffer. Records and headers are
 * multiples of 8 bytes long, and so are segments: the header of a record is in one piece.
 *
 * Memory: address space is reserved when the store is created; only touched pages use
 * memory. The budget can be smaller than the size, and can change. Memory that exceeds it
 * is returned to the kernel when its rounds have been evicted and no child reads the ring.
 * Appending records allocates no other memory.
 *
 * When a round is evicted, its records are passed to the owner of the store, which adds
 * them to the side-band store. The owner can exclude one record type, PERF_RECORD_SAMPLE,
 * which is that of nearly all records. Of these only the header is read.
 *
 * With compression, a round is packed in place when it is closed. Each packed chunk
 * follows the previous one, and the head moves back. Small rounds do not compress well, so
 * passes are joined to one round until they fill a chunk. This does not change the order:
 * many passes in one round are sorted like one pass. A round stays uncompressed if its
 * first chunk does not shrink by at least 1/16, or if it has more than MAX_CHUNKS chunks. A
 * later chunk that does not shrink by as much is stored as it is, in the space that the
 * first one saved.
 *
 *	[hdr [len raw packed...][len raw packed...]...]
 *
 * One thread uses the store. A forked child can walk the rounds that existed at the time of
 * the fork. It has a copy of the positions, and shares the bytes with the recorder, which
 * may overwrite the oldest ones. Therefore the child copies a round piece by piece. After
 * each copy it checks whether the recorder has overwritten the piece, and only then passes
 * on its records. Bytes that were overwritten are counted in stolen_bytes, and the walk
 * continues with the first round after them.
 */
#include "ring-store.h"
#include "../../event.h"
#include "ring-memory.h"
#include "round-codec.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The size of a chunk before compression; a power of two. */
#define CHUNK		(256UL * 1024)

/* The headers of this many chunks fit into the space that the first one saves, a 16th. */
#define MAX_CHUNKS	1024

/* @len bytes are stored for @raw bytes of records; both are equal if not packed. */
struct round_header {
	u64		len;
	u64		raw;
	u64		time;
};

struct chunk_header {
	u32		len;
	u32		raw;
};

/* Records of a chunk may start in the previous one. */
struct chunk_room {
	unsigned char	raw[PERF_SAMPLE_MAX_SIZE + CHUNK];
	unsigned char	packed[CHUNK];
};

struct ring_store {
	struct ring_memory	*memory;
	u64			size;		/* the largest budget */
	u64			budget;
	u64			tail;
	u64			head;
	u64			open;		/* where the open round begins */
	u64			last_pass;	/* when it ended */
	bool			is_open;
	bool			refused;	/* no space for the open round */
	bool			is_copy;	/* of a child, which shares the memory */
	u64			read_to;	/* in a child: all before was read, or stolen */
	ring_store_record_t	evict;
	ring_store_gone_t	gone;
	u32			unseen;		/* record type not shown on eviction */
	void			*data;
	unsigned char		*bounce;
	unsigned char		*piece;		/* of a child: PERF_SAMPLE_MAX_SIZE + CHUNK */
	struct round_codec	*codec;
	struct chunk_room	*room;
	struct ring_store_stats	stats;
};

static void copy_in(struct ring_store *rs, u64 pos, const void *from, size_t len)
{
	while (len) {
		size_t n;
		void *to = ring_memory__at(rs->memory, pos, &n);

		n = min(n, len);
		memcpy(to, from, n);
		from += n;
		pos += n;
		len -= n;
	}
}

static void copy_out(const struct ring_store *rs, u64 pos, void *to, size_t len)
{
	while (len) {
		size_t n;
		const void *from = ring_memory__at(rs->memory, pos, &n);

		n = min(n, len);
		memcpy(to, from, n);
		to += n;
		pos += n;
		len -= n;
	}
}

/* Is a copy intact that was made from @pos on, before this call? */
static bool is_intact(const struct ring_store *rs, u64 pos)
{
	return !rs->is_copy || ring_memory__taken(rs->memory) <= pos;
}

/**
 * ring_store__new - create a store
 * @size: capacity in bytes, including the headers of rounds
 * @evict: called for each record of an evicted round; may be NULL
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
	rs->memory = ring_memory__new(size);
	rs->bounce = malloc(PERF_SAMPLE_MAX_SIZE);
	rs->piece = malloc(PERF_SAMPLE_MAX_SIZE + CHUNK);
	if (!rs->memory || !rs->bounce || !rs->piece) {
		ring_store__delete(rs);
		return NULL;
	}
	rs->size = size;
	rs->budget = size;
	rs->evict = evict;
	rs->unseen = -1;
	rs->data = data;
	return rs;
}

/**
 * ring_store__on_gone - set a function that is called after a round was evicted
 * @rs: the store
 * @gone: the function
 */
void ring_store__on_gone(struct ring_store *rs, ring_store_gone_t gone)
{
	rs->gone = gone;
}

/**
 * ring_store__evict_unseen - do not show records of a type on eviction
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
	ring_memory__delete(rs->memory);
	free(rs->bounce);
	free(rs->piece);
	free(rs);
}

static bool is_record(const struct perf_event_header *header, u64 left)
{
	return left >= sizeof(*header) && header->size >= sizeof(*header) &&
	       !(header->size % sizeof(u64)) && header->size <= left;
}

/* The record at a position, in one piece. */
static union perf_event *whole_record(struct ring_store *rs, u64 pos, void *where, size_t left,
				      u16 size)
{
	if (size <= left)
		return where;

	copy_out(rs, pos, rs->bounce, size);
	return (union perf_event *)rs->bounce;
}

static inline int walk_plain(struct ring_store *rs, const struct ring_store_round *round,
			     u32 unseen, ring_store_record_t fn, void *data)
{
	u64 pos = round->pos, left = round->len;
	size_t piece = 0;
	void *where = NULL;

	while (left) {
		const struct perf_event_header *header;
		u16 size;

		if (!piece)
			where = ring_memory__at(rs->memory, pos, &piece);
		header = where;
		size = header->size;
		if (!is_record(header, left)) {
			rs->stats.broken_bytes += left;
			return -EBADMSG;
		}
		if (header->type != unseen) {
			int err = fn(whole_record(rs, pos, where, piece, size), data);

			if (err)
				return err;
		}
		left -= size;
		pos += size;
		where += size;
		/* The next record is in another segment. */
		piece = size < piece ? piece - size : 0;
	}
	return 0;
}

/* Return: bytes of whole records that were walked; @err: error of @fn. */
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

/* The recorder has taken what is left of a round. */
static int steal(struct ring_store *rs, u64 left)
{
	rs->stats.stolen_bytes += left;
	return 0;
}

/* Unpack the chunk at @pos to @to. Return: its size, or 0 if it is broken. */
static size_t unpack_chunk(struct ring_store *rs, u64 *pos, void *to)
{
	struct chunk_header chunk;

	copy_out(rs, *pos, &chunk, sizeof(chunk));
	*pos += sizeof(chunk);
	if (chunk.raw > CHUNK || chunk.len > chunk.raw || chunk.len > CHUNK)
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
		u64 from = pos;
		size_t len = unpack_chunk(rs, &pos, raw + begun), walked;
		int err = 0;

		if (!is_intact(rs, from))
			return steal(rs, left);
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

/* In a child: copy a piece, see that it is intact, and walk what is whole in it. */
static int walk_copy(struct ring_store *rs, const struct ring_store_round *round,
		     u32 unseen, ring_store_record_t fn, void *data)
{
	u64 pos = round->pos, left = round->len;

	while (left) {
		size_t len = min_t(u64, left, PERF_SAMPLE_MAX_SIZE + CHUNK), walked;
		int err = 0;

		copy_out(rs, pos, rs->piece, len);
		if (!is_intact(rs, pos))
			return steal(rs, left);
		walked = walk_bytes(rs->piece, len, unseen, fn, data, &err);
		if (err)
			return err;
		if (!walked) {
			rs->stats.broken_bytes += left;
			return -EBADMSG;
		}
		pos += walked;
		left -= walked;
	}
	return 0;
}

static int walk(struct ring_store *rs, const struct ring_store_round *round, u32 unseen,
		ring_store_record_t fn, void *data)
{
	if (round->raw != round->len && !rs->room) {
		rs->stats.broken_bytes += round->len;
		return -EBADMSG;
	}
	if (round->raw != round->len)
		return walk_packed(rs, round, unseen, fn, data);
	if (rs->is_copy)
		return walk_copy(rs, round, unseen, fn, data);
	return walk_plain(rs, round, unseen, fn, data);
}

/**
 * ring_store__walk - call a function for each record of a round, in the order of arrival
 * @rs: the store
 * @round: one of its rounds
 * @fn: called for each record
 * @data: passed to @fn
 *
 * Return: 0, the error of @fn, or -EBADMSG if the data is not a record. The rest of the
 * round is skipped then.
 */
int ring_store__walk(struct ring_store *rs, const struct ring_store_round *round,
		     ring_store_record_t fn, void *data)
{
	return walk(rs, round, -1, fn, data);
}

static void read_round(const struct ring_store *rs, u64 pos, struct ring_store_round *round)
{
	struct round_header header;

	copy_out(rs, pos, &header, sizeof(header));
	round->pos = pos + sizeof(header);
	round->len = header.len;
	round->raw = header.raw;
	round->time = header.time;
	round->next = round->pos + round->len;
}

static u64 closed_end(const struct ring_store *rs)
{
	return rs->is_open ? rs->open : rs->head;
}

/* A child may find that the header was taken, and with it the way to the next round. */
static bool round_at(const struct ring_store *rs, u64 pos, struct ring_store_round *round)
{
	u64 end = closed_end(rs);

	while (pos < end) {
		read_round(rs, pos, round);
		if (is_intact(rs, pos))
			return true;
		pos = ring_memory__round_after(rs->memory, ring_memory__taken(rs->memory), end);
	}
	return false;
}

/**
 * round_group__ends - check whether FINISHED_ROUND may follow a round
 * @group: state of previous calls, initially zero
 * @time: when the round was closed; calls are in this order
 *
 * Mark n+1 guarantees that all records after it are newer than all records before mark
 * n. A CPU takes the time of a record before it publishes the record. If it is delayed
 * in between (an SMI, a guest whose CPU does not run), several short passes may end
 * before the record is visible. Therefore each buffer must be read once more after the
 * last round before mark n has been closed for FLIGHT_ROUND_TIME, and mark n+1 follows
 * only then. All that is known about the time when a round was read is that it is after
 * the previous round was closed. Readers take everything between two marks as one round;
 * many passes in one round are sorted like one pass.
 *
 * Return: true if the group ends with this round.
 */
bool round_group__ends(struct round_group *group, u64 time)
{
	bool ends = !group->end || group->last >= group->end + FLIGHT_ROUND_TIME;

	group->last = time;
	if (ends)
		group->end = time;
	return ends;
}

/**
 * ring_store__first - get the oldest closed round
 * @rs: the store
 * @round: returns the round
 *
 * Return: false if there is none.
 */
bool ring_store__first(const struct ring_store *rs, struct ring_store_round *round)
{
	return round_at(rs, rs->tail, round);
}

/**
 * ring_store__next - get the next closed round
 * @rs: the store
 * @round: a round of the store; replaced by the next one
 *
 * Return: false if there is none.
 */
bool ring_store__next(const struct ring_store *rs, struct ring_store_round *round)
{
	return round_at(rs, round->next, round);
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

/* Make space for @len bytes; false if they do not even fit into an empty store. */
static bool make_room(struct ring_store *rs, u64 len)
{
	struct ring_store_round round;

	while (rs->head + len - rs->tail > rs->budget) {
		if (!ring_store__first(rs, &round))
			return false;
		evict_round(rs, &round);
	}
	ring_memory__release(rs->memory, rs->tail);
	return ring_memory__extend(rs->memory, rs->head + len);
}

/* No space for the open round: drop it completely. */
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
	ring_memory__note_round(rs->memory, rs->open);
	rs->head += sizeof(struct round_header);
	rs->is_open = true;
	rs->refused = false;
	return 0;
}

/**
 * ring_store__append - append a piece to the open round
 * @rs: the store
 * @piece: bytes that follow the previous piece
 * @len: number of them, a multiple of 8
 *
 * Opens a round if none is open. Evicts the oldest rounds to make space. A round
 * that is larger than the budget is dropped completely.
 *
 * Return: 0, or -ENOSPC if the round is dropped.
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

/* Pack chunk by chunk to the start of the round; the head moves to its new end. */
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

/* Drop the round if it is empty. */
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
 * ring_store__close_round - close the open round at the end of a pass
 * @rs: the store
 * @time: CLOCK_MONOTONIC, in ns
 *
 * An empty round is dropped. With compression, the round may stay open for the next
 * pass.
 */
void ring_store__close_round(struct ring_store *rs, u64 time)
{
	rs->last_pass = time;
	if (rs->is_open && (!rs->codec || rs->refused || rs->head - rs->open >= CHUNK))
		end_round(rs);
}

/* ring_store__flush - close the round even if the next pass would continue it */
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
 * ring_store__set_budget - change the budget
 * @rs: the store
 * @budget: bytes, at most the size given to ring_store__new()
 */
void ring_store__set_budget(struct ring_store *rs, size_t budget)
{
	rs->budget = min_t(u64, budget, rs->size);
	make_room(rs, 0);
	ring_memory__set_budget(rs->memory, rs->budget);
}

/**
 * ring_store__evict_before - evict the rounds that were closed before a time
 * @rs: the store
 * @time: CLOCK_MONOTONIC, in ns
 */
void ring_store__evict_before(struct ring_store *rs, u64 time)
{
	struct ring_store_round round;

	while (ring_store__first(rs, &round) && round.time < time)
		evict_round(rs, &round);
	ring_memory__release(rs->memory, rs->tail);
}

/**
 * ring_store__fence - a child is about to be forked that walks the rounds
 * @rs: the store, without an open round
 *
 * From then on rounds may be evicted, but their memory is kept for the child, as long as
 * there is a reserve.
 */
void ring_store__fence(struct ring_store *rs)
{
	ring_memory__fence(rs->memory);
}

/* ring_store__unfence - there is no child any more */
void ring_store__unfence(struct ring_store *rs)
{
	ring_memory__unfence(rs->memory);
}

/* ring_store__forked - in the child: the memory is shared from now on */
void ring_store__forked(struct ring_store *rs)
{
	rs->is_copy = true;
}

/**
 * ring_store__walk_again - in the child: all rounds that are left are needed
 * @rs: the store
 *
 * To be called before the first walk, also when a previous attempt has failed. What that
 * one had passed may have been overwritten since. It counts as stolen then.
 */
void ring_store__walk_again(struct ring_store *rs)
{
	if (rs->is_copy)
		ring_memory__passed(rs->memory, 0);
}

/**
 * ring_store__walk_last - in the child: what is walked from now on is not walked again
 * @rs: the store
 *
 * ring_store__passed() is called for each round.
 */
void ring_store__walk_last(struct ring_store *rs)
{
	rs->stats.stolen_bytes = 0;
	rs->read_to = rs->tail;
}

/**
 * ring_store__passed - in the child: a round is not needed any more, nor those before it
 * @rs: the store
 * @round: the round
 */
void ring_store__passed(struct ring_store *rs, const struct ring_store_round *round)
{
	u64 begin = round->pos - sizeof(struct round_header);

	if (!rs->is_copy)
		return;
	if (begin > rs->read_to)
		rs->stats.stolen_bytes += begin - rs->read_to;
	rs->read_to = round->next;
	ring_memory__passed(rs->memory, round->next);
}

/* ring_store__stolen - in the child, after the last walk: bytes that could not be read */
u64 ring_store__stolen(const struct ring_store *rs)
{
	u64 end = closed_end(rs);

	if (!rs->is_copy)
		return 0;
	return rs->stats.stolen_bytes + (end > rs->read_to ? end - rs->read_to : 0);
}

/* ring_store__memory - bytes of memory that the ring takes */
u64 ring_store__memory(const struct ring_store *rs)
{
	return ring_memory__used(rs->memory);
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
