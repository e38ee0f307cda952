// SPDX-License-Identifier: GPL-2.0
/*
 * The maps of many processes in little memory
 *
 * A machine of 100,000 processes has some 5,000,000 maps, but of a few thousand files:
 * the same programs and libraries, at other addresses. So a PERF_RECORD_MMAP or MMAP2 is
 * divided:
 *
 *	header | pid, tid | start, len, pgoff | device, inode or build-id, flags, name
 *	       |  process |	  map	      |
 *	------------------------- file ------------------------------------------------
 *
 *	map_table -- all files, by content; each has a number
 *	  file -- what is left of a record without the process and the addresses; counts
 *		the maps that refer to it, and goes with the last one
 *	map_set -- the maps of a process: disjoint, sorted by address, in chunks. After a
 *		fork parent and child share the set until one of them changes.
 *	  chunk -- up to CHUNK_MAX maps; sets share a chunk until it is changed in one
 *	    map -- 28 bytes: addresses, and the number of its file
 *
 * A new map replaces all that it covers, and cuts what it overlaps. This changes one or
 * two chunks; the chunks between them go. Hence the costs do not depend on the number of
 * maps, but for the search, which is binary, and the array of chunks.
 *
 * Files are found by a tree that is sorted by hash: a hash table would have to be
 * rebuilt as a whole when it grows, in the middle of a pass.
 *
 * All memory counts against the limit of the owner. Where it is reached, a record is not
 * added, and the set stays as it was.
 */
#include "map-set.h"
#include "sideband-memory.h"
#include "../../event.h"

#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/rbtree.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Maps of a chunk: memmove() of half of them takes as long as the search for the file. */
#define CHUNK_MAX	64

/* If there is no memory to divide a chunk, it grows up to this. */
#define CHUNK_LIMIT	16384

/* The addresses and the task are between the header and this. */
#define TAIL		offsetof(struct perf_record_mmap, filename)

static_assert(offsetof(struct perf_record_mmap2, pgoff) + sizeof(u64) == TAIL,
	      "MMAP and MMAP2 begin with the same fields");

/**
 * struct map_file - what maps of a file have in common
 * @node: in the table, by @hash, @size and content
 * @hash: of the content
 * @number: in the table
 * @refcnt: number of maps that refer to it
 * @size: bytes of the record, without a sample_id
 * @header: the header of the record
 * @tail: the record from TAIL on
 */
struct map_file {
	struct rb_node			node;
	u32				hash;
	u32				number;
	u32				refcnt;
	u16				size;
	struct perf_event_header	header;
	char				tail[];
};

/**
 * struct map_table - the files
 * @memory: of the owner
 * @root: the files by content
 * @files: the files by number
 * @used: number of files
 * @nr: numbers in use or free
 * @room: entries of @files
 * @free: a number that is free, with the next one in its place; 0: none. Number 0 is
 *	not used.
 * @record: of map_set__emit()
 */
struct map_table {
	struct sideband_memory	*memory;
	struct rb_root		root;
	struct map_file		**files;
	u32			used;
	u32			nr;
	u32			room;
	uintptr_t		free;
	union perf_event	*record;
};

struct map {
	u64			start;
	u64			len;
	u64			pgoff;
	u32			file;
} __packed __aligned(4);

struct map_chunk {
	u32			refcnt;
	u16			nr;
	u16			room;
	struct map		maps[];
};

struct map_set {
	u32			refcnt;
	u32			nr;
	u32			room;
	struct map_chunk	*chunks[];
};

/* Files */

static u32 hash_bytes(u64 hash, const char *bytes, size_t len)
{
	while (len) {
		size_t n = min(len, sizeof(u64));
		u64 word = 0;

		memcpy(&word, bytes, n);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
		bytes += n;
		len -= n;
	}
	return hash ^ hash >> 32;
}

static int file__cmp(const struct map_file *file, const struct perf_event_header *header,
		     const char *tail, u32 hash)
{
	int cmp;

	if (file->hash != hash)
		return hash < file->hash ? -1 : 1;
	cmp = memcmp(header, &file->header, sizeof(*header));
	return cmp ?: memcmp(tail, file->tail, header->size - TAIL);
}

static size_t file__bytes(const struct map_file *file)
{
	return sizeof(*file) + file->size - TAIL;
}

/* A number for a new file; 0 if there is no memory. */
static u32 table__new_number(struct map_table *table)
{
	u32 number = table->free, room = max(2 * table->room, 64U);
	struct map_file **files;

	if (number) {
		table->free = (uintptr_t)table->files[number];
		return number;
	}
	if (table->nr < table->room)
		return table->nr++;

	files = sideband_memory__alloc(table->memory, room * sizeof(*files));
	if (!files)
		return 0;
	if (table->room)
		memcpy(files, table->files, table->room * sizeof(*files));
	sideband_memory__free(table->memory, table->files, table->room * sizeof(*files));
	table->nr = max(table->nr, 1U);
	table->files = files;
	table->room = room;
	return table->nr++;
}

static void table__free_number(struct map_table *table, u32 number)
{
	table->files[number] = (struct map_file *)table->free;
	table->free = number;
	if (table->used)
		return;
	sideband_memory__free(table->memory, table->files, table->room * sizeof(*table->files));
	table->files = NULL;
	table->room = 0;
	table->nr = 0;
	table->free = 0;
}

static struct map_file *table__new_file(struct map_table *table,
					const struct perf_event_header *header, const char *tail,
					u32 hash)
{
	u32 number = table__new_number(table);
	struct map_file *file;

	if (!number)
		return NULL;
	file = sideband_memory__alloc(table->memory, sizeof(*file) + header->size - TAIL);
	if (!file) {
		table__free_number(table, number);
		return NULL;
	}
	file->hash = hash;
	file->number = number;
	file->size = header->size;
	file->header = *header;
	memcpy(file->tail, tail, header->size - TAIL);
	table->files[number] = file;
	table->used++;
	return file;
}

/* The file of a record, with a reference, or NULL if there is no memory. */
static struct map_file *table__find_file(struct map_table *table, const union perf_event *event,
					 size_t size)
{
	struct rb_node **p = &table->root.rb_node, *parent = NULL;
	struct perf_event_header header = event->header;
	const char *tail = (const char *)event + TAIL;
	struct map_file *file;
	u64 start;
	u32 hash;

	header.size = size;
	memcpy(&start, &header, sizeof(start));
	hash = hash_bytes(start, tail, size - TAIL);
	while (*p) {
		int cmp;

		parent = *p;
		file = rb_entry(parent, struct map_file, node);
		cmp = file__cmp(file, &header, tail, hash);
		if (!cmp)
			goto found;
		p = cmp < 0 ? &parent->rb_left : &parent->rb_right;
	}
	file = table__new_file(table, &header, tail, hash);
	if (!file)
		return NULL;
	rb_link_node(&file->node, parent, p);
	rb_insert_color(&file->node, &table->root);
found:
	file->refcnt++;
	return file;
}

static void table__get_file(struct map_table *table, u32 number)
{
	table->files[number]->refcnt++;
}

static void table__put_file(struct map_table *table, u32 number)
{
	struct map_file *file = table->files[number];

	if (--file->refcnt)
		return;
	rb_erase(&file->node, &table->root);
	sideband_memory__free(table->memory, file, file__bytes(file));
	table->used--;
	table__free_number(table, number);
}

/**
 * map_table__new - make a table of files
 * @memory: the memory of the owner, which must last as long
 *
 * Return: the table, or NULL if there is no memory.
 */
struct map_table *map_table__new(struct sideband_memory *memory)
{
	struct map_table *table = zalloc(sizeof(*table));

	if (!table)
		return NULL;
	table->memory = memory;
	table->root = RB_ROOT;
	return table;
}

/* All sets have been put. */
void map_table__delete(struct map_table *table)
{
	if (!table)
		return;
	free(table->record);
	free(table);
}

/* Chunks */

static size_t chunk__bytes(u16 room)
{
	return sizeof(struct map_chunk) + room * sizeof(struct map);
}

static struct map_chunk *chunk__new(struct map_table *table, int room)
{
	struct map_chunk *chunk = sideband_memory__alloc(table->memory, chunk__bytes(room));

	if (!chunk)
		return NULL;
	chunk->refcnt = 1;
	chunk->room = room;
	return chunk;
}

static void chunk__copy(struct map_chunk *chunk, struct map_table *table, const struct map *maps,
			int nr)
{
	for (int i = 0; i < nr; i++) {
		table__get_file(table, maps[i].file);
		chunk->maps[chunk->nr + i] = maps[i];
	}
	chunk->nr += nr;
	table->memory->stats->maps += nr;
}

static void chunk__put(struct map_chunk *chunk, struct map_table *table)
{
	if (--chunk->refcnt)
		return;
	for (int i = 0; i < chunk->nr; i++)
		table__put_file(table, chunk->maps[i].file);
	table->memory->stats->maps -= chunk->nr;
	sideband_memory__free(table->memory, chunk, chunk__bytes(chunk->room));
}

/* Few spare maps: most sets do not grow once their program has started. */
static int room_for(int nr)
{
	return nr + nr / 16 + 2;
}

/*
 * Replace @del maps at @at by @nr others, in a chunk that is shared or too small: in a copy.
 * Return: the copy, or NULL if there is no memory.
 */
static struct map_chunk *chunk__splice_copy(struct map_chunk *old, struct map_table *table,
					    int at, int del, const struct map *maps, int nr)
{
	struct map_chunk *chunk = chunk__new(table, room_for(old->nr - del + nr));

	if (!chunk)
		return NULL;
	chunk__copy(chunk, table, old->maps, at);
	chunk__copy(chunk, table, maps, nr);
	chunk__copy(chunk, table, old->maps + at + del, old->nr - at - del);
	chunk__put(old, table);
	return chunk;
}

static void chunk__splice(struct map_chunk *chunk, struct map_table *table, int at, int del,
			  const struct map *maps, int nr)
{
	/* The same file may be among both. */
	for (int i = 0; i < nr; i++)
		table__get_file(table, maps[i].file);
	for (int i = at; i < at + del; i++)
		table__put_file(table, chunk->maps[i].file);
	memmove(chunk->maps + at + nr, chunk->maps + at + del,
		(chunk->nr - at - del) * sizeof(*maps));
	for (int i = 0; i < nr; i++)
		chunk->maps[at + i] = maps[i];
	chunk->nr += nr - del;
	table->memory->stats->maps += nr - del;
}

/* Sets */

static size_t set__bytes(u32 room)
{
	return sizeof(struct map_set) + room * sizeof(struct map_chunk *);
}

/* A set of our own, with space for another chunk, in place of @old, which may be NULL. */
static struct map_set *set__own(struct map_set *old, struct map_table *table)
{
	u32 nr = old ? old->nr : 0, room = nr + nr / 8 + 1;
	struct map_set *set;

	if (old && old->refcnt == 1 && old->nr < old->room)
		return old;

	set = sideband_memory__alloc(table->memory, set__bytes(room));
	if (!set)
		return NULL;
	set->refcnt = 1;
	set->room = room;
	set->nr = nr;
	for (u32 i = 0; i < nr; i++) {
		set->chunks[i] = old->chunks[i];
		set->chunks[i]->refcnt++;
	}
	map_set__put(old, table);
	return set;
}

static int set__splice(struct map_set *set, struct map_table *table, u32 c, int at, int del,
		       const struct map *maps, int nr)
{
	struct map_chunk *chunk = set->chunks[c];

	if (chunk->refcnt == 1 && chunk->nr - del + nr <= chunk->room) {
		chunk__splice(chunk, table, at, del, maps, nr);
		return 0;
	}
	if (chunk->nr >= CHUNK_LIMIT && nr > del)
		return -ENOMEM;
	chunk = chunk__splice_copy(chunk, table, at, del, maps, nr);
	if (!chunk)
		return -ENOMEM;
	set->chunks[c] = chunk;
	return 0;
}

static void set__remove_chunks(struct map_set *set, struct map_table *table, u32 c, u32 nr)
{
	for (u32 i = c; i < c + nr; i++)
		chunk__put(set->chunks[i], table);
	memmove(set->chunks + c, set->chunks + c + nr,
		(set->nr - c - nr) * sizeof(*set->chunks));
	set->nr -= nr;
}

/* Divide a chunk that has grown, if there is memory; else it grows on. */
static void set__divide(struct map_set *set, struct map_table *table, u32 c)
{
	struct map_chunk *old = set->chunks[c], *left, *right;
	int half = old->nr / 2;

	if (old->nr <= CHUNK_MAX || set->nr == set->room ||
	    !sideband_memory__has(table->memory, 2 * chunk__bytes(room_for(old->nr))))
		return;
	left = chunk__new(table, room_for(half));
	right = left ? chunk__new(table, room_for(old->nr - half)) : NULL;
	if (!right) {
		if (left)
			chunk__put(left, table);
		return;
	}
	chunk__copy(left, table, old->maps, half);
	chunk__copy(right, table, old->maps + half, old->nr - half);
	chunk__put(old, table);
	memmove(set->chunks + c + 2, set->chunks + c + 1,
		(set->nr - c - 1) * sizeof(*set->chunks));
	set->chunks[c] = left;
	set->chunks[c + 1] = right;
	set->nr++;
}

static u64 map__end(const struct map *map)
{
	return map->start + map->len;
}

/* The chunk with the first map that ends above @start, or the last one. */
static u32 set__find_chunk(const struct map_set *set, u64 start)
{
	u32 first = 0, end = set->nr - 1;

	while (first < end) {
		u32 middle = first + (end - first) / 2;
		const struct map_chunk *chunk = set->chunks[middle];

		if (map__end(&chunk->maps[chunk->nr - 1]) <= start)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* The first map of the chunk that ends above @start, or the number of its maps. */
static int chunk__find(const struct map_chunk *chunk, u64 start)
{
	int first = 0, end = chunk->nr;

	while (first < end) {
		int middle = first + (end - first) / 2;

		if (map__end(&chunk->maps[middle]) <= start)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/**
 * struct overlap - the maps that a new one replaces
 * @c: chunk of the first one
 * @i: the first one in it
 * @last_c: chunk of the last one
 * @last_i: the one after the last one
 */
struct overlap {
	u32	c;
	int	i;
	u32	last_c;
	int	last_i;
};

static void set__find_overlap(const struct map_set *set, const struct map *map,
			      struct overlap *o)
{
	u64 end = map__end(map);

	o->c = set__find_chunk(set, map->start);
	o->i = chunk__find(set->chunks[o->c], map->start);
	o->last_c = o->c;
	o->last_i = o->i;
	for (u32 c = o->c; c < set->nr; c++) {
		const struct map_chunk *chunk = set->chunks[c];
		int i = c == o->c ? o->i : 0, before = i;

		while (i < chunk->nr && chunk->maps[i].start < end)
			i++;
		if (i > before) {
			o->last_c = c;
			o->last_i = i;
		}
		if (i < chunk->nr)
			break;
	}
}

/* The map, and the parts that are left of those at its ends. Return: how many. */
static int set__cut(const struct map_set *set, const struct map *map, const struct overlap *o,
		    struct map *out)
{
	const struct map *first = &set->chunks[o->c]->maps[o->i];
	const struct map *last = &set->chunks[o->last_c]->maps[o->last_i - 1];
	bool none = o->c == o->last_c && o->i == o->last_i;
	u64 end = map__end(map);
	int nr = 0;

	if (!none && first->start < map->start) {
		out[nr] = *first;
		out[nr++].len = map->start - first->start;
	}
	out[nr++] = *map;
	if (!none && map__end(last) > end) {
		out[nr] = *last;
		out[nr].pgoff += end - last->start;
		out[nr].len = map__end(last) - end;
		out[nr++].start = end;
	}
	return nr;
}

/* Nothing has changed if this fails. */
static int set__insert(struct map_set *set, struct map_table *table, const struct map *map)
{
	struct overlap o;
	struct map maps[3];
	int nr, err;

	if (!set->nr) {
		set->chunks[0] = chunk__new(table, room_for(1));
		if (!set->chunks[0])
			return -ENOMEM;
		set->nr = 1;
		chunk__copy(set->chunks[0], table, map, 1);
		return 0;
	}

	set__find_overlap(set, map, &o);
	nr = set__cut(set, map, &o, maps);
	if (o.c == o.last_c) {
		err = set__splice(set, table, o.c, o.i, o.last_i - o.i, maps, nr);
		if (!err)
			set__divide(set, table, o.c);
		return err;
	}

	/* The last chunk first: if the second step fails, only a copy was made. */
	err = set__splice(set, table, o.last_c, 0, 0, NULL, 0);
	if (!err)
		err = set__splice(set, table, o.c, o.i, set->chunks[o.c]->nr - o.i, maps, nr);
	if (err)
		return err;
	chunk__splice(set->chunks[o.last_c], table, 0, o.last_i, NULL, 0);
	if (!set->chunks[o.last_c]->nr)
		o.last_c++;
	set__remove_chunks(set, table, o.c + 1, o.last_c - o.c - 1);
	return 0;
}

/**
 * map_set__add - add a map, which replaces what it covers
 * @set: the set, which may be NULL and is replaced
 * @table: the files
 * @event: PERF_RECORD_MMAP or MMAP2, of 1 byte at least, which does not wrap
 * @size: bytes of it, without a sample_id
 *
 * Return: 0, or -ENOMEM; then the maps are as before.
 */
int map_set__add(struct map_set **set, struct map_table *table, const union perf_event *event,
		 size_t size)
{
	struct map map = {
		.start	= event->mmap.start,
		.len	= event->mmap.len,
		.pgoff	= event->mmap.pgoff,
	};
	struct map_set *own = set__own(*set, table);
	struct map_file *file;
	int err;

	if (!own)
		return -ENOMEM;
	*set = own;
	file = table__find_file(table, event, size);
	if (!file)
		return -ENOMEM;
	map.file = file->number;
	err = set__insert(own, table, &map);
	/* The maps have references of their own. */
	table__put_file(table, map.file);
	return err;
}

struct map_set *map_set__get(struct map_set *set)
{
	if (set)
		set->refcnt++;
	return set;
}

void map_set__put(struct map_set *set, struct map_table *table)
{
	if (!set || --set->refcnt)
		return;
	for (u32 i = 0; i < set->nr; i++)
		chunk__put(set->chunks[i], table);
	sideband_memory__free(table->memory, set, set__bytes(set->room));
}

static union perf_event *table__record(struct map_table *table, const struct map *map)
{
	const struct map_file *file = table->files[map->file];
	union perf_event *event = table->record;

	event->header = file->header;
	event->mmap.pid = 0;
	event->mmap.tid = 0;
	event->mmap.start = map->start;
	event->mmap.len = map->len;
	event->mmap.pgoff = map->pgoff;
	memcpy((char *)event + TAIL, file->tail, file->size - TAIL);
	return event;
}

/**
 * map_set__emit - put the records of the maps together again
 * @set: the set, which may be NULL
 * @table: the files
 * @emit: called for each map, by address; the pid is 0
 * @data: passed to @emit
 *
 * Return: 0, -ENOMEM, or what @emit returned to end it.
 */
int map_set__emit(const struct map_set *set, struct map_table *table, map_set_emit_t emit,
		  void *data)
{
	int err = 0;

	if (!table->record)
		table->record = malloc(PERF_SAMPLE_MAX_SIZE);
	if (!table->record)
		return -ENOMEM;

	for (u32 c = 0; set && c < set->nr && !err; c++) {
		const struct map_chunk *chunk = set->chunks[c];

		for (int i = 0; i < chunk->nr && !err; i++) {
			union perf_event *event = table__record(table, &chunk->maps[i]);

			err = emit(event, event->header.size, data);
		}
	}
	return err;
}
