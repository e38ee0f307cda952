// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds that a flight recorder retains
 *
 * A round is the result of one pass over the ring buffers of the kernel. It is the unit
 * of the store: it arrives in pieces, is closed, and is evicted as a whole, the oldest
 * round first, regardless of the CPUs of its records. There is thus one budget for all
 * CPUs, and the retained rounds are always an uninterrupted sequence up to now. A dump
 * depends on this: PERF_RECORD_FINISHED_ROUND guarantees something about later records,
 * and that still holds for any sequence of rounds that ends with the newest one.
 * round_group__ends() determines after which rounds a dump has this mark.
 *
 * Rounds are stored in one ring of bytes. A position is the number of bytes ever stored
 * and does not wrap. Its remainder is the offset in memory:
 *
 *	        tail                         open                head
 *	   ......[hdr records][hdr records]...[hdr records ...    |.......
 *	   |<----------------------- size ------------------------------>|
 *
 * Each round starts with a header, which is filled in when the round is closed. The
 * bytes of a round are stored as they arrive. If a ring of the kernel wraps, a piece may
 * start or end in the middle of a record, and the next piece continues it. Records may
 * wrap in this ring, too. They are not parsed on arrival, but when a round is walked. A
 * record that wraps is then copied to a bounce buffer. Records and headers are multiples
 * of 8 bytes long, and so is the ring: the header of a record never wraps.
 *
 * Memory: the ring is reserved when the store is created, and uses only memory that was
 * touched. The budget may be smaller than its size, and may change. The length of the
 * ring follows the budget in steps. It can change when all rounds are between the
 * beginning of the memory and the new end. This is the case once per lap, or after
 * evicting a little more. Until then, memory above the budget is returned to the kernel
 * when its rounds have been evicted. This costs page faults, so it is only temporary.
 * Nothing is allocated while records arrive.
 *
 * The owner sees each record before it is evicted, and adds it to the side-band store.
 * The owner excludes record types that it does not need, which are nearly all records;
 * for these only the header is read.
 *
 * With compression, a round is packed in place when it is closed: chunk by chunk, each
 * behind the one before, and the head moves back. Small rounds do not compress well, so
 * passes are joined to one round until they fill a chunk. This does not change the order:
 * many passes in one round are sorted like one pass. A round whose first chunk does not
 * become smaller stays uncompressed. A later chunk that does not become smaller is stored
 * as it is, in the space that the first one saved.
 *
 *	[hdr [len raw packed...][len raw packed...]...]
 *
 * The store is used by one thread. A forked child may walk its copy.
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

/* Evicted memory is returned to the kernel in steps of this size. */
#define GRANULE		(256UL * 1024)

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
	unsigned char		*base;
	u64			size;		/* of the memory */
	u64			lap;		/* of the ring: how much of that it uses */
	u64			origin;		/* a position at the beginning of the memory */
	u64			budget;
	u64			tail;
	u64			head;
	u64			open;		/* where the open round begins */
	u64			given_back;	/* memory before this was returned */
	u64			last_pass;	/* when it ended */
	bool			is_open;
	bool			refused;	/* no space for the open round */
	ring_store_record_t	evict;
	ring_store_gone_t	gone;
	u32			unseen;		/* record type not shown on eviction */
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
	munmap(rs->base, rs->size);
	free(rs->bounce);
	free(rs);
}

static bool is_record(const struct perf_event_header *header, u64 left)
{
	return left >= sizeof(*header) && header->size >= sizeof(*header) &&
	       !(header->size % sizeof(u64)) && header->size <= left;
}

/* The record at an address, in one piece. */
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

/* Unpack the chunk at @pos to @to. Return: its size, or 0 if it is broken. */
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

static u64 closed_end(const struct ring_store *rs)
{
	return rs->is_open ? rs->open : rs->head;
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
	if (rs->tail == closed_end(rs))
		return false;
	round_at(rs, rs->tail, round);
	return true;
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
	if (round->next == closed_end(rs))
		return false;
	round_at(rs, round->next, round);
	return true;
}

/* Return memory that exceeds the budget to the kernel. */
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

/* Make space for @len bytes; false if they do not even fit into an empty store. */
static bool make_room(struct ring_store *rs, u64 len)
{
	struct ring_store_round round;

	/* A ring that has not grown to a larger budget yet may be too small. */
	while (rs->head + len - rs->tail > min(rs->budget, rs->lap)) {
		if (!ring_store__first(rs, &round))
			return false;
		evict_round(rs, &round);
	}
	give_back(rs);
	return true;
}

/* Adapt the length of the ring to the budget if possible; @len bytes will be stored. */
static void follow_budget(struct ring_store *rs, u64 len)
{
	u64 want = min_t(u64, max_t(u64, PERF_ALIGN(rs->budget, GRANULE), GRANULE), rs->size);
	struct ring_store_round round;
	u64 begin, used;

	if (want == rs->lap || rs->head == rs->origin)
		return;

	/* Bytes used from the beginning of the memory; a full ring has not wrapped yet. */
	used = (rs->head - rs->origin - 1) % rs->lap + 1;
	begin = rs->head - used;
	if (used > want || (rs->is_open && rs->open < begin))
		return;
	/* The last opportunity in this lap. */
	while (used + len > min(want, rs->lap) && rs->tail < begin && ring_store__first(rs, &round))
		evict_round(rs, &round);
	if (rs->tail < begin)
		return;

	if (want < rs->lap)
		madvise(rs->base + want, rs->lap - want, MADV_DONTNEED);
	rs->lap = want;
	rs->origin = begin;
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

	follow_budget(rs, len);
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
	follow_budget(rs, 0);
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
