// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers for keys: strings, functions, places, stacks.
 *
 * A key that many samples share is stored once, and has a number. Keys are
 * bytes. The table is open addressing over an array of numbers. The bytes are
 * in blocks that are neither moved nor freed before the end, so that a key may
 * be used while others are added. Memory follows the number of distinct keys.
 */
#include "interner.h"

#include <linux/kernel.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE	(64 * 1024)

struct interner_block {
	struct interner_block	*before;
	size_t			used;
	size_t			size;
	u64			data[];
};

/* Eight bytes at a time: a stack is long. */
static u32 hash_bytes(const void *key, size_t len)
{
	const char *p = key;
	u64 hash = len, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	word = 0;
	memcpy(&word, p, len);
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash >> 32;
}

static void *block_alloc(struct interner *in, size_t len)
{
	struct interner_block *block = in->block;
	size_t size;
	void *p;

	len = roundup(len, sizeof(u64));
	if (!block || block->size - block->used < len) {
		size = max_t(size_t, len, BLOCK_SIZE);
		block = malloc(sizeof(*block) + size);
		if (!block)
			return NULL;
		block->before = in->block;
		block->used = 0;
		block->size = size;
		in->block = block;
	}
	p = (char *)block->data + block->used;
	block->used += len;
	return p;
}

static void put_in_slot(struct interner *in, u32 nr)
{
	u32 mask = in->nr_slots - 1, i = in->keys[nr].hash & mask;

	while (in->slots[i])
		i = (i + 1) & mask;
	in->slots[i] = nr + 1;
}

/* At most half of the slots are used. */
static int grow(struct interner *in)
{
	u32 nr_slots = in->nr_slots ? in->nr_slots * 2 : 256, i;
	struct interner_key *keys;
	u32 *slots;

	if (nr_slots > 1U << 31)
		return -1;
	keys = reallocarray(in->keys, nr_slots / 2, sizeof(*keys));
	if (!keys)
		return -1;
	in->keys = keys;
	in->nr_alloc = nr_slots / 2;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -1;
	free(in->slots);
	in->slots = slots;
	in->nr_slots = nr_slots;
	for (i = 0; i < in->nr; i++)
		put_in_slot(in, i);
	return 0;
}

/**
 * interner__add - the number of a key
 * @in: table, zeroed at first
 * @key: bytes that are compared, padding included
 * @len: number of bytes
 * @fresh: if not NULL, set to whether the key is new
 *
 * Return: its number, or INTERNER_FAILED.
 */
u32 interner__add(struct interner *in, const void *key, size_t len, bool *fresh)
{
	u32 hash = hash_bytes(key, len), mask = in->nr_slots - 1, nr, i;
	struct interner_key *k;
	void *copy;

	if (fresh)
		*fresh = false;
	for (i = hash & mask; in->nr_slots && in->slots[i]; i = (i + 1) & mask) {
		nr = in->slots[i] - 1;
		k = &in->keys[nr];
		if (k->hash == hash && k->len == len && !memcmp(k->data, key, len))
			return nr;
	}
	if (len > INTERNER_FAILED)
		return INTERNER_FAILED;
	if (in->nr * 2 >= in->nr_slots && grow(in))
		return INTERNER_FAILED;
	copy = block_alloc(in, len);
	if (!copy)
		return INTERNER_FAILED;
	memcpy(copy, key, len);
	nr = in->nr++;
	in->keys[nr] = (struct interner_key){ .data = copy, .len = len, .hash = hash };
	put_in_slot(in, nr);
	if (fresh)
		*fresh = true;
	return nr;
}

void interner__exit(struct interner *in)
{
	struct interner_block *block = in->block, *before;

	for (; block; block = before) {
		before = block->before;
		free(block);
	}
	free(in->keys);
	free(in->slots);
	memset(in, 0, sizeof(*in));
}
