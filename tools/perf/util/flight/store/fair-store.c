// SPDX-License-Identifier: GPL-2.0
/*
 * The records that a flight recorder retains, divided fairly among cgroups
 *
 * The ring store evicts the oldest records. A cgroup that makes 100 times the records of
 * another one thus decides how far back both are known. This store has a queue for each
 * cgroup. If there is no memory left, the queue that is the largest loses its oldest
 * chunk. This is max-min fairness: each cgroup has what it needs up to an equal share, and
 * what small cgroups do not use is divided among the large ones.
 *
 *	cgroup A	[    ][    ]
 *	cgroup B	[    ][    ][    ][    ][    ][    ]	loses the next chunk
 *	common		[    ][    ]				side-band, LOST, ...
 *			 chunks, oldest first
 *
 * A queue is a sequence of bytes in chunks (fair-memory.c). A record may cross chunks. The
 * offset of the first record that begins in a chunk is kept with it, so a queue that has
 * lost its oldest chunks can be read from its first one that is left.
 *
 * Records are divided when they arrive. A sample goes to the queue of its cgroup. Context
 * switches have no cgroup: they go to the queue in which a sample of their process was last
 * seen. All other records go to the common queue, which is one of the queues when memory is
 * short. If there are more cgroups than queues, one that has a single chunk and has not had
 * a record for the longest time is given up. If there is none, the new cgroup shares
 * FAIR_QUEUE__OTHERS with the others of this kind.
 *
 * Order. The passes between two marks that round_group__ends() permits are a group. A queue
 * has a mark, a record of a private type, where a group begins. A reader takes from all
 * queues what they have of the oldest group, then the next one. After each group a dump
 * may have PERF_RECORD_FINISHED_ROUND: what was evicted does not change the order of the
 * rest.
 *
 * Side-band is folded when it is evicted, as by the ring store. It is evicted when all
 * samples are younger (fair_store__fold_old()), or earlier, if the common queue is the
 * largest. Then a task may have its later name in the older samples, and
 * fair_store__names_since() says before which time. A task that has exited is kept in the
 * side-band store until no sample can be of it.
 *
 * Memory: see fair-memory.c. Besides, there is a piece of the size of a record for what
 * crosses two pieces or two chunks, and for each queue what describes it: less than 1/250.
 *
 * One thread uses the store. A forked child can walk it as it was at the time of the fork.
 */
#include "fair-store.h"
#include "fair-cgroups.h"
#include "fair-memory.h"
#include "../../base-api.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../evsel.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Each cgroup takes at least one chunk, so this is what such chunks may waste. */
#define QUEUES_SHARE	16
#define MIN_QUEUES	8
#define MAX_QUEUES	1024

/* Processes whose cgroup is known. */
#define NR_TASKS	1024

/* The pass of a chunk is that before its records, which takes at most that long. */
#define PASS_SLACK	NSEC_PER_SEC

/* Records of a group may be folded one group later, and are read within the next one. */
#define GROUPS_BEHIND	3

#define MAX_RECORD	((size_t)PERF_SAMPLE_MAX_SIZE)

/* A record crosses at most this many chunks, as these are at least 4 KiB large. */
#define MAX_CROSSED	18

/* A group begins in a queue. The kernel has no such type. */
#define RECORD_MARK	0xfa12U

struct mark {
	struct perf_event_header	header;
	u64				group;
};

struct task {
	u32				pid;
	u32				queue;
};

/* Where a walk is in a queue. */
struct cursor {
	u32				slot;
	u32				off;
	u32				group;
};

struct fair_store {
	struct fair_memory		*memory;
	struct fair_cgroups		cgroups;
	struct evlist			*evlist;
	struct fair_layout		layout;
	bool				has_layout;
	bool				same_layout;
	u64				last_id;	/* cgroup of the last sample */
	u32				last_queue;
	u32				group;		/* the one that arrives */
	struct round_group		round_group;
	u64				last_pass;
	struct task			*tasks;
	ring_store_record_t		evict;
	fair_store_group_t		gone;
	void				*data;
	u32				evicting;	/* group of the common queue */
	u64				forgotten;	/* newest record of a queue given up */
	struct cursor			*cursors;
	u32				walking;
	bool				is_copy;
	bool				is_last_walk;
	unsigned char			*carry;		/* a record that crosses two pieces */
	size_t				carried;
	unsigned char			*bounce;
	struct ring_store_stats		stats;
};

static size_t chunk_size(const struct fair_store *fs)
{
	return fair_memory__chunk_size(fs->memory);
}

static struct fair_queue *queue_at(const struct fair_store *fs, u32 queue)
{
	return &fs->cgroups.queues[queue];
}

/* Layouts */

static void init_layouts(struct fair_store *fs)
{
	bool first = true;
	struct evsel *evsel;

	fs->has_layout = true;
	fs->same_layout = true;
	evlist__for_each_entry(fs->evlist, evsel) {
		struct fair_layout layout;

		/* It makes no samples. */
		if (evsel__is_dummy_event(evsel))
			continue;
		fair_layout__init(&layout, evsel);
		if (first)
			fs->layout = layout;
		else
			fs->same_layout &= fair_layout__is_same(&layout, &fs->layout);
		first = false;
	}
}

static const struct fair_layout *layout_of(struct fair_store *fs, union perf_event *event,
					   struct fair_layout *room)
{
	struct evsel *evsel;

	if (fs->same_layout)
		return &fs->layout;
	evsel = evlist__event2evsel(fs->evlist, event);
	if (!evsel)
		return &fs->layout;
	fair_layout__init(room, evsel);
	return room;
}

/**
 * fair_store__check - check whether the samples of all events tell of their cgroup
 * @evlist: the events
 *
 * Return: NULL if they do, or what to do.
 */
const char *fair_store__check(struct evlist *evlist)
{
	const struct evsel *evsel;
	const char *hint;

	evlist__for_each_entry(evlist, evsel) {
		hint = fair_layout__check(evsel);
		if (hint)
			return hint;
	}
	return NULL;
}

/* Reading */

static u32 end_of(struct fair_store *fs, const struct fair_queue *q, u32 slot)
{
	return slot == q->last ? chunk_size(fs) - q->room : chunk_size(fs);
}

static void set_cursor(struct fair_store *fs, struct cursor *c, u32 slot)
{
	c->slot = slot;
	if (slot == FAIR_NONE)
		return;
	c->off = fair_memory__chunk(fs->memory, slot)->first;
	c->group = fair_memory__chunk(fs->memory, slot)->group;
}

static u32 leave_chunk(struct fair_store *fs, u32 slot)
{
	if (fs->is_last_walk)
		fair_memory__passed(fs->memory, slot);
	return fair_memory__chunk(fs->memory, slot)->next;
}

/* The rest of a chunk is of no use: the recorder has taken it, or it is broken. */
static void skip_chunk(struct fair_store *fs, const struct fair_queue *q, struct cursor *c,
		       u64 *counter)
{
	u32 end;

	do {
		end = end_of(fs, q, c->slot);
		*counter += end > c->off ? end - c->off : 0;
		set_cursor(fs, c, leave_chunk(fs, c->slot));
		/* The rest of a record that began before. */
		*counter += c->slot != FAIR_NONE ? c->off : 0;
	} while (c->slot != FAIR_NONE && c->off >= end_of(fs, q, c->slot));
}

/* Copy from a cursor on. Return: false if it is not there, or not intact. */
static bool copy_out(struct fair_store *fs, const struct fair_queue *q, u32 slot, u32 off,
		     unsigned char *to, size_t len)
{
	while (len) {
		size_t n;

		if (slot == FAIR_NONE)
			return false;
		n = min_t(size_t, len, end_of(fs, q, slot) - off);
		memcpy(to, fair_memory__at(fs->memory, slot) + off, n);
		if (fs->is_copy && fair_memory__is_taken(fs->memory, slot))
			return false;
		to += n;
		len -= n;
		off = 0;
		slot = fair_memory__chunk(fs->memory, slot)->next;
	}
	return true;
}

/* Behind a record: the cursor may be in a later chunk. */
static void move_on(struct fair_store *fs, const struct fair_queue *q, struct cursor *c,
		    size_t size)
{
	while (size) {
		size_t left = end_of(fs, q, c->slot) - c->off;

		if (size <= left) {
			c->off += size;
			return;
		}
		size -= left;
		c->slot = leave_chunk(fs, c->slot);
		c->off = 0;
	}
}

static bool is_record(const struct perf_event_header *header)
{
	return header->size >= sizeof(*header) && !(header->size % sizeof(u64));
}

/*
 * The record at a cursor, in one piece. Return: NULL if there is none, and the cursor is at
 * the next chunk.
 */
static union perf_event *take_record(struct fair_store *fs, const struct fair_queue *q,
				     struct cursor *c)
{
	struct perf_event_header *header = fair_memory__at(fs->memory, c->slot) + c->off;
	struct perf_event_header copy = *header;
	union perf_event *event = (union perf_event *)header;

	if (fs->is_copy && fair_memory__is_taken(fs->memory, c->slot)) {
		skip_chunk(fs, q, c, &fs->stats.stolen_bytes);
		return NULL;
	}
	if (!is_record(&copy)) {
		skip_chunk(fs, q, c, &fs->stats.broken_bytes);
		return NULL;
	}
	if (fs->is_copy || copy.size > end_of(fs, q, c->slot) - c->off) {
		event = (union perf_event *)fs->bounce;
		if (!copy_out(fs, q, c->slot, c->off, fs->bounce, copy.size)) {
			skip_chunk(fs, q, c, fs->is_copy ? &fs->stats.stolen_bytes :
							   &fs->stats.broken_bytes);
			return NULL;
		}
	}
	move_on(fs, q, c, copy.size);
	return event;
}

/* All records of a queue that are of a group. */
static int walk_group(struct fair_store *fs, const struct fair_queue *q, struct cursor *c,
		      u32 group, ring_store_record_t fn, void *data)
{
	while (c->slot != FAIR_NONE) {
		union perf_event *event;
		int err;

		if (c->off >= end_of(fs, q, c->slot)) {
			set_cursor(fs, c, leave_chunk(fs, c->slot));
			continue;
		}
		if (c->group > group)
			break;
		event = take_record(fs, q, c);
		if (!event)
			continue;
		if (event->header.type == RECORD_MARK) {
			c->group = ((struct mark *)event)->group;
			continue;
		}
		err = fn(event, data);
		if (err)
			return err;
	}
	return 0;
}

static bool next_group(const struct fair_store *fs, u32 *group)
{
	bool found = false;

	for (u32 i = 0; i < fs->cgroups.nr; i++) {
		const struct cursor *c = &fs->cursors[i];

		if (c->slot == FAIR_NONE || (found && c->group >= *group))
			continue;
		found = true;
		*group = c->group;
	}
	return found;
}

/**
 * fair_store__walk - call a function for each record, group by group
 * @fs: the store
 * @fn: called for each record; fair_store__walking() tells its queue
 * @end: called after each group; may be NULL
 * @data: passed to both
 *
 * Return: 0 or the error of @fn or @end.
 */
int fair_store__walk(struct fair_store *fs, ring_store_record_t fn, fair_store_group_t end,
		     void *data)
{
	u32 group;
	int err = 0;

	for (u32 i = 0; i < fs->cgroups.nr; i++)
		set_cursor(fs, &fs->cursors[i], queue_at(fs, i)->first);
	while (!err && next_group(fs, &group)) {
		for (u32 i = 0; i < fs->cgroups.nr && !err; i++) {
			fs->walking = i;
			err = walk_group(fs, queue_at(fs, i), &fs->cursors[i], group, fn, data);
		}
		if (!err && end)
			err = end(group, data);
	}
	return err;
}

/* fair_store__walking - during a walk: number of the queue that the record is in */
u32 fair_store__walking(const struct fair_store *fs)
{
	return fs->walking;
}

/* Eviction */

static int show_evicted(struct fair_store *fs, struct fair_queue *q)
{
	u32 slot = q->first;
	struct cursor c;

	set_cursor(fs, &c, slot);
	while (c.slot == slot && c.off < end_of(fs, q, slot)) {
		union perf_event *event = take_record(fs, q, &c);

		if (!event)
			break;
		if (event->header.type == RECORD_MARK) {
			fs->gone(fs->evicting, fs->data);
			fs->evicting = ((struct mark *)event)->group;
		} else {
			fs->evict(event, fs->data);
		}
	}
	return 0;
}

static void evict_chunk(struct fair_store *fs, u32 queue)
{
	struct fair_queue *q = queue_at(fs, queue);
	struct fair_chunk *chunk = fair_memory__chunk(fs->memory, q->first);
	u32 slot = q->first;

	if (queue == FAIR_QUEUE__COMMON && fs->evict)
		show_evicted(fs, q);
	q->cut = slot == q->last ? q->newest : chunk->newest;
	fs->stats.evicted_bytes += end_of(fs, q, slot);
	q->first = chunk->next;
	if (q->first == FAIR_NONE) {
		q->last = FAIR_NONE;
		q->room = 0;
	}
	fs->cgroups.held[queue]--;
	fair_memory__put(fs->memory, slot);
}

/* The largest queue. @self is about to be written, and keeps the chunks of a record. */
static u32 find_victim(const struct fair_store *fs, u32 self)
{
	const u32 *held = fs->cgroups.held;
	u32 victim = FAIR_NONE, most = 1;

	for (u32 i = 0; i < fs->cgroups.nr; i++) {
		if (held[i] > most && (i != self || held[i] > MAX_CROSSED)) {
			most = held[i];
			victim = i;
		}
	}
	return victim;
}

static u32 get_chunk(struct fair_store *fs, u32 self)
{
	u32 slot = fair_memory__get(fs->memory), victim;

	while (slot == FAIR_NONE) {
		victim = find_victim(fs, self);
		if (victim == FAIR_NONE)
			return FAIR_NONE;
		evict_chunk(fs, victim);
		slot = fair_memory__get(fs->memory);
	}
	return slot;
}

static void forget_queue(struct fair_store *fs, u32 queue)
{
	struct fair_queue *q = queue_at(fs, queue);

	while (q->first != FAIR_NONE)
		evict_chunk(fs, queue);
	fs->forgotten = max(fs->forgotten, q->cut);
	if (fs->last_queue == queue)
		fs->last_queue = 0;
	for (u32 i = 0; i < NR_TASKS; i++) {
		if (fs->tasks[i].queue == queue)
			fs->tasks[i] = (struct task) {};
	}
	fair_cgroups__remove(&fs->cgroups, queue);
}

/* Arrival */

/* The end of a queue is full: it goes on in @slot. @off: where the next record begins. */
static void push_chunk(struct fair_store *fs, u32 queue, u32 slot, u32 off)
{
	struct fair_chunk *chunk = fair_memory__chunk(fs->memory, slot);
	struct fair_queue *q = queue_at(fs, queue);

	if (q->first == FAIR_NONE) {
		q->first = slot;
	} else {
		struct fair_chunk *last = fair_memory__chunk(fs->memory, q->last);

		last->next = slot;
		last->newest = q->newest;
		last->pass = fs->last_pass;
	}
	chunk->next = FAIR_NONE;
	chunk->first = off;
	chunk->group = q->group;
	chunk->pass = fs->last_pass;
	q->last = slot;
	q->to = fair_memory__at(fs->memory, slot);
	q->room = chunk_size(fs);
	fs->cgroups.held[queue]++;
}

static void copy_in(struct fair_queue *q, const void **from, size_t *len)
{
	size_t n = min_t(size_t, *len, q->room);

	memcpy(q->to, *from, n);
	q->to += n;
	q->room -= n;
	*from += n;
	*len -= n;
}

static void note_time(struct fair_queue *q, u64 time)
{
	if (time > q->newest)
		q->newest = time;
}

/* A record that does not fit into the last chunk. All memory is there before it is begun. */
static bool store_crossing(struct fair_store *fs, u32 queue, const void *record, size_t len,
			   u64 time)
{
	struct fair_queue *q = queue_at(fs, queue);
	u32 slots[MAX_CROSSED], nr = 0, wanted;
	bool begins_here = !q->room;

	wanted = DIV_ROUND_UP(len - q->room, chunk_size(fs));
	while (nr < wanted) {
		u32 slot = get_chunk(fs, queue);

		if (slot == FAIR_NONE) {
			while (nr)
				fair_memory__put(fs->memory, slots[--nr]);
			return false;
		}
		slots[nr++] = slot;
	}
	/* A chunk has the time of the newest record that begins in it. */
	if (!begins_here) {
		note_time(q, time);
		copy_in(q, &record, &len);
	}
	for (u32 i = 0; i < nr; i++) {
		push_chunk(fs, queue, slots[i],
			   i || !begins_here ? min(len, chunk_size(fs)) : 0);
		note_time(q, time);
		copy_in(q, &record, &len);
	}
	return true;
}

static inline bool store_bytes(struct fair_store *fs, u32 queue, const void *record, size_t len,
			       u64 time)
{
	struct fair_queue *q = queue_at(fs, queue);

	if (q->room < len)
		return store_crossing(fs, queue, record, len, time);
	note_time(q, time);
	memcpy(q->to, record, len);
	q->to += len;
	q->room -= len;
	return true;
}

/* A group begins. In an empty queue, the chunk tells so. */
static bool begin_group(struct fair_store *fs, u32 queue)
{
	struct fair_queue *q = queue_at(fs, queue);
	struct mark mark = {
		.header.type	= RECORD_MARK,
		.header.size	= sizeof(mark),
		.group		= fs->group,
	};

	if (q->first != FAIR_NONE && !store_bytes(fs, queue, &mark, sizeof(mark), 0))
		return false;
	q->group = fs->group;
	if (q->first != FAIR_NONE) {
		struct fair_chunk *last = fair_memory__chunk(fs->memory, q->last);

		last->pass = fs->last_pass;
		/* The mark filled the chunk before, or begins this one. */
		if (q->to == fair_memory__at(fs->memory, q->last) + last->first)
			last->group = q->group;
	} else if (queue == FAIR_QUEUE__COMMON) {
		fs->evicting = fs->group;
	}
	return true;
}

static void store_record(struct fair_store *fs, u32 queue, const union perf_event *event,
			 u64 time)
{
	struct fair_queue *q = queue_at(fs, queue);

	if ((q->group != fs->group || q->first == FAIR_NONE) && !begin_group(fs, queue))
		fs->stats.refused_bytes += event->header.size;
	else if (!store_bytes(fs, queue, event, event->header.size, time))
		fs->stats.refused_bytes += event->header.size;
}

/* Give up a cgroup that has a chunk only, for the longest time without a record. */
static bool give_up_smallest(struct fair_store *fs)
{
	u32 found = 0;

	for (u32 i = FAIR_QUEUE__FIRST; i < fs->cgroups.nr; i++) {
		const struct fair_queue *q = queue_at(fs, i);

		if (fs->cgroups.held[i] == 1 && q->group < fs->group &&
		    (!found || q->group < queue_at(fs, found)->group))
			found = i;
	}
	if (found)
		forget_queue(fs, found);
	return found;
}

static u32 find_queue(struct fair_store *fs, u64 id)
{
	u32 queue = fair_cgroups__find(&fs->cgroups, id);

	if (!queue) {
		queue = fair_cgroups__add(&fs->cgroups, id);
		if (!queue && give_up_smallest(fs))
			queue = fair_cgroups__add(&fs->cgroups, id);
		if (!queue)
			return FAIR_QUEUE__OTHERS;
		/* It may have had records before. */
		queue_at(fs, queue)->cut = fs->forgotten;
	}
	fs->last_id = id;
	fs->last_queue = queue;
	return queue;
}

static struct task *task_of(const struct fair_store *fs, u32 pid)
{
	return &fs->tasks[pid % NR_TASKS];
}

static u32 queue_of_sample(struct fair_store *fs, const struct fair_layout *layout,
			   const union perf_event *event)
{
	u32 queue, pid;
	u64 id;

	if (event->header.size < sizeof(event->header) + layout->cgroup)
		return FAIR_QUEUE__COMMON;
	memcpy(&id, (const void *)event + event->header.size - layout->cgroup, sizeof(id));
	queue = id == fs->last_id && fs->last_queue ? fs->last_queue : find_queue(fs, id);
	if (sample_layout__pid(&layout->words, event, &pid))
		*task_of(fs, pid) = (struct task) { .pid = pid, .queue = queue };
	return queue;
}

static u32 queue_of_other(struct fair_store *fs, const struct fair_layout *layout,
			  const union perf_event *event)
{
	const struct task *task;
	u32 pid;

	if ((event->header.type != PERF_RECORD_SWITCH &&
	     event->header.type != PERF_RECORD_SWITCH_CPU_WIDE &&
	     event->header.type != PERF_RECORD_CALLCHAIN_DEFERRED) ||
	    !sample_layout__pid(&layout->words, event, &pid))
		return FAIR_QUEUE__COMMON;
	task = task_of(fs, pid);
	return task->pid == pid ? task->queue : FAIR_QUEUE__COMMON;
}

static void divide(struct fair_store *fs, union perf_event *event)
{
	struct fair_layout room;
	const struct fair_layout *layout = layout_of(fs, event, &room);
	u32 queue;
	u64 time = 0;

	sample_layout__time(&layout->words, event, &time);
	queue = event->header.type == PERF_RECORD_SAMPLE ? queue_of_sample(fs, layout, event) :
							    queue_of_other(fs, layout, event);
	store_record(fs, queue, event, time);
}

/* Complete the record that the piece before has begun. Return: bytes of this one. */
static size_t complete(struct fair_store *fs, const void *piece, size_t len)
{
	const struct perf_event_header *header = (void *)fs->carry;
	size_t n = min(len, header->size - fs->carried);

	memcpy(fs->carry + fs->carried, piece, n);
	fs->carried += n;
	if (fs->carried == header->size) {
		fs->carried = 0;
		divide(fs, (union perf_event *)fs->carry);
	}
	return n;
}

/* The record that a piece begins with. Return: its size, or 0: the piece is used up. */
static size_t take(struct fair_store *fs, const void *piece, size_t len)
{
	const struct perf_event_header *header = piece;

	if (!is_record(header)) {
		fs->stats.broken_bytes += len;
		return 0;
	}
	if (header->size > len) {
		memcpy(fs->carry, piece, len);
		fs->carried = len;
		return 0;
	}
	divide(fs, (union perf_event *)header);
	return header->size;
}

/**
 * fair_store__append - store a piece of a ring buffer
 * @fs: the store
 * @piece: bytes that follow the previous piece
 * @len: number of them, a multiple of 8
 *
 * A record may continue in the next piece of the round.
 */
void fair_store__append(struct fair_store *fs, const void *piece, size_t len)
{
	if (!fs->has_layout)
		init_layouts(fs);
	while (len) {
		size_t n = fs->carried ? complete(fs, piece, len) : take(fs, piece, len);

		if (!n)
			return;
		piece += n;
		len -= n;
	}
}

/**
 * fair_store__close_round - a pass over the buffers is complete
 * @fs: the store
 * @time: CLOCK_MONOTONIC, in ns
 */
void fair_store__close_round(struct fair_store *fs, u64 time)
{
	fs->stats.broken_bytes += fs->carried;
	fs->carried = 0;
	fs->last_pass = time;
	if (round_group__ends(&fs->round_group, time))
		fs->group++;
}

/**
 * fair_store__set_budget - change the budget
 * @fs: the store
 * @budget: bytes, at most the size given to fair_store__new()
 */
void fair_store__set_budget(struct fair_store *fs, size_t budget)
{
	u32 held = 0, victim = 0;

	fair_memory__set_budget(fs->memory, budget);
	for (u32 i = 0; i < fs->cgroups.nr; i++)
		held += fs->cgroups.held[i];
	for (; held > fair_memory__limit(fs->memory); held--) {
		victim = find_victim(fs, FAIR_NONE);
		if (victim == FAIR_NONE)
			break;
		evict_chunk(fs, victim);
	}
}

/**
 * fair_store__evict_before - evict the chunks whose records were read before a time
 * @fs: the store
 * @time: CLOCK_MONOTONIC, in ns
 *
 * A chunk may stay for a second longer.
 */
void fair_store__evict_before(struct fair_store *fs, u64 time)
{
	for (u32 i = 0; i < fs->cgroups.nr; i++) {
		const struct fair_queue *q = queue_at(fs, i);
		bool any = false;

		while (q->first != FAIR_NONE &&
		       fair_memory__chunk(fs->memory, q->first)->pass + PASS_SLACK < time) {
			evict_chunk(fs, i);
			any = true;
		}
		if (any && q->first == FAIR_NONE && i >= FAIR_QUEUE__FIRST)
			forget_queue(fs, i);
	}
}

static u32 oldest_from(const struct fair_store *fs, u32 queue)
{
	u32 oldest = fs->group;

	for (; queue < fs->cgroups.nr; queue++) {
		u32 first = queue_at(fs, queue)->first;

		if (first != FAIR_NONE)
			oldest = min(oldest, fair_memory__chunk(fs->memory, first)->group);
	}
	return oldest;
}

/**
 * fair_store__fold_old - evict side-band that is older than all samples
 * @fs: the store
 */
void fair_store__fold_old(struct fair_store *fs)
{
	const struct fair_queue *q = queue_at(fs, FAIR_QUEUE__COMMON);
	u32 oldest = oldest_from(fs, FAIR_QUEUE__OTHERS);

	while (q->first != q->last) {
		u32 next = fair_memory__chunk(fs->memory, q->first)->next;

		if (fair_memory__chunk(fs->memory, next)->group >= oldest)
			break;
		evict_chunk(fs, FAIR_QUEUE__COMMON);
	}
}

/* fair_store__group - number of the group that arrives */
u32 fair_store__group(const struct fair_store *fs)
{
	return fs->group;
}

/* fair_store__oldest_group - number of the last group all of whose side-band is folded */
u32 fair_store__oldest_group(const struct fair_store *fs)
{
	u32 oldest = oldest_from(fs, FAIR_QUEUE__COMMON);

	return oldest > GROUPS_BEHIND ? oldest - GROUPS_BEHIND : 0;
}

/**
 * fair_store__window - how far back all cgroups are complete
 * @fs: the store
 * @now: CLOCK_MONOTONIC, in ns
 *
 * Return: the time in ns.
 */
u64 fair_store__window(const struct fair_store *fs, u64 now)
{
	u64 oldest = 0, cut = 0;

	for (u32 i = FAIR_QUEUE__OTHERS; i < fs->cgroups.nr; i++) {
		const struct fair_queue *q = queue_at(fs, i);
		u64 pass;

		if (q->first == FAIR_NONE)
			continue;
		pass = fair_memory__chunk(fs->memory, q->first)->pass;
		if (q->cut > fs->forgotten)
			cut = max(cut, pass);
		oldest = oldest ? min(oldest, pass) : pass;
	}
	oldest = cut ?: oldest;
	return oldest ? now - oldest : 0;
}

/* Shares */

u32 fair_store__nr_shares(const struct fair_store *fs)
{
	return fs->cgroups.nr;
}

/**
 * fair_store__share - what is there of a cgroup
 * @fs: the store
 * @queue: number of its queue, less than fair_store__nr_shares()
 * @share: returns it
 *
 * Return: false if the queue is not of a cgroup, or is empty.
 */
bool fair_store__share(struct fair_store *fs, u32 queue, struct fair_share *share)
{
	const struct fair_queue *q = queue_at(fs, queue);

	if (queue < FAIR_QUEUE__OTHERS || q->first == FAIR_NONE)
		return false;
	*share = (struct fair_share) {
		.id		= q->id,
		.complete_since	= q->cut,
		.bytes		= fs->cgroups.held[queue] * chunk_size(fs) - q->room,
	};
	return true;
}

/* The time from which on the records of all cgroups are there; 0: from the start. */
u64 fair_store__complete_since(const struct fair_store *fs)
{
	u64 since = fs->forgotten;

	for (u32 i = FAIR_QUEUE__OTHERS; i < fs->cgroups.nr; i++)
		since = max(since, queue_at(fs, i)->cut);
	return since;
}

/* The time up to which side-band was folded; older samples may have later names. */
u64 fair_store__names_since(const struct fair_store *fs)
{
	return queue_at(fs, FAIR_QUEUE__COMMON)->cut;
}

/* A child */

/* fair_store__fence - a child is about to be forked that walks the store */
void fair_store__fence(struct fair_store *fs)
{
	fair_memory__fence(fs->memory);
}

/* fair_store__unfence - there is no child any more */
void fair_store__unfence(struct fair_store *fs)
{
	fair_memory__unfence(fs->memory);
}

/* fair_store__forked - in the child: the memory is shared from now on */
void fair_store__forked(struct fair_store *fs)
{
	fs->is_copy = true;
}

/* fair_store__walk_again - in the child: all that is left is needed */
void fair_store__walk_again(struct fair_store *fs)
{
	fs->is_last_walk = false;
	if (fs->is_copy)
		fair_memory__walk_again(fs->memory);
}

/* fair_store__walk_last - in the child: what is walked from now on is not walked again */
void fair_store__walk_last(struct fair_store *fs)
{
	fs->stats.stolen_bytes = 0;
	fs->is_last_walk = fs->is_copy;
}

/* fair_store__stolen - in the child, after the last walk: bytes that could not be read */
u64 fair_store__stolen(const struct fair_store *fs)
{
	return fs->is_copy ? fs->stats.stolen_bytes : 0;
}

/* fair_store__memory - bytes of memory that the chunks take */
u64 fair_store__memory(const struct fair_store *fs)
{
	return fair_memory__used(fs->memory);
}

const struct ring_store_stats *fair_store__stats(struct fair_store *fs)
{
	u64 chunks = 0, room = 0;

	for (u32 i = 0; i < fs->cgroups.nr; i++) {
		chunks += fs->cgroups.held[i];
		room += queue_at(fs, i)->room;
	}
	fs->stats.used = chunks * chunk_size(fs);
	fs->stats.bytes = fs->stats.used - room;
	return &fs->stats;
}

/**
 * fair_store__new - create a store
 * @size: capacity in bytes
 * @evlist: the events; their attributes are read with the first record
 * @evict: called for each record of the common queue that is evicted; may be NULL
 * @gone: called when a group of these is complete, in the order of groups
 * @data: passed to both
 *
 * Return: the store, or NULL if there is no memory.
 */
struct fair_store *fair_store__new(size_t size, struct evlist *evlist,
				   ring_store_record_t evict, fair_store_group_t gone,
				   void *data)
{
	struct fair_store *fs = zalloc(sizeof(*fs));
	u32 nr;

	if (!fs)
		return NULL;
	fs->memory = fair_memory__new(size);
	if (!fs->memory)
		goto out_delete;
	nr = clamp(fair_memory__nr(fs->memory) / QUEUES_SHARE, (u32)MIN_QUEUES,
		   (u32)MAX_QUEUES);
	fs->carry = malloc(MAX_RECORD);
	fs->bounce = malloc(MAX_RECORD);
	fs->tasks = calloc(NR_TASKS, sizeof(*fs->tasks));
	fs->cursors = calloc(nr + FAIR_QUEUE__FIRST, sizeof(*fs->cursors));
	if (fair_cgroups__init(&fs->cgroups, nr) || !fs->carry || !fs->bounce || !fs->tasks ||
	    !fs->cursors)
		goto out_delete;
	fs->evlist = evlist;
	fs->evict = evict;
	fs->gone = gone;
	fs->data = data;
	fs->group = 1;
	return fs;

out_delete:
	fair_store__delete(fs);
	return NULL;
}

void fair_store__delete(struct fair_store *fs)
{
	if (!fs)
		return;
	fair_cgroups__exit(&fs->cgroups);
	fair_memory__delete(fs->memory);
	free(fs->carry);
	free(fs->bounce);
	free(fs->tasks);
	free(fs->cursors);
	free(fs);
}
