/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_INTERNER_H
#define __PERF_INTERNER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct interner_block;

/**
 * struct interner_key - a key, as it was added
 * @data: aligned to 8 bytes, valid until interner__exit()
 * @len: bytes of it
 * @hash: of them
 */
struct interner_key {
	const void	*data;
	u32		len;
	u32		hash;
};

/**
 * struct interner - gives equal keys the same number, from 0 on
 * @keys: by number
 * @nr: of @keys
 * @nr_alloc: room in @keys
 * @slots: hash table of numbers + 1
 * @nr_slots: a power of two
 * @block: memory for the next key; it links to the earlier blocks
 */
struct interner {
	struct interner_key	*keys;
	u32			nr;
	u32			nr_alloc;
	u32			*slots;
	u32			nr_slots;
	struct interner_block	*block;
};

/* returned if there is no memory */
#define INTERNER_FAILED		(~0U)

u32 interner__add(struct interner *in, const void *key, size_t len, bool *fresh);
void interner__exit(struct interner *in);

static inline const void *interner__key(const struct interner *in, u32 nr)
{
	return in->keys[nr].data;
}

static inline size_t interner__key_len(const struct interner *in, u32 nr)
{
	return in->keys[nr].len;
}

#endif /* __PERF_INTERNER_H */
