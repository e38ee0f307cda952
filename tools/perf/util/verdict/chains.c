// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of a recording, and its call chains.
 *
 * A function is a name in a file; a sample without a symbol counts for the file. The names are
 * copies: symbols of a BPF program are freed when the records tell that it was unloaded.
 *
 * Call chains are a tree, from the outermost caller to the function that was sampled. A chain
 * is the index of its last node, which takes four bytes of a sample. A parent is made before
 * its children: a pass from the last node to the first adds them up.
 *
 * Addresses are resolved as perf report does it: the address of a caller is the one behind the
 * call. Addresses of the kernel are looked up once.
 */
#include "chains.h"
#include "history.h"
#include "stack.h"

#include "addr_location.h"
#include "dso.h"
#include "event.h"
#include "hashmap.h"
#include "machine.h"
#include "map.h"
#include "sample.h"
#include "symbol.h"
#include "thread.h"

#include <errno.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FRAMES	256

static size_t hash_long(long key, void *ctx __maybe_unused)
{
	return key * 11400714819323198485llu;
}

static bool equal_long(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

int verdict_chains__init(struct verdict_chains *c, bool whole)
{
	memset(c, 0, sizeof(*c));
	c->whole = whole;
	c->by_address = hashmap__new(hash_long, equal_long, NULL);
	return IS_ERR(c->by_address) ? -ENOMEM : 0;
}

void verdict_chains__exit(struct verdict_chains *c)
{
	free(c->functions);
	free(c->nodes);
	interner__exit(&c->by_name);
	interner__exit(&c->by_caller);
	hashmap__free(c->by_address);
}

static u32 find_function(struct verdict_chains *c, const struct symbol *sym, struct map *map)
{
	const char *dso = map ? dso__short_name(map__dso(map)) : "[unknown]";
	/* Equal names are the same object. */
	struct verdict_function key = {
		.name	= sym ? verdict_stack__name(sym->name) : NULL,
		.dso	= verdict_stack__name(dso),
	};
	u32 nr;

	if ((sym && !key.name) || !key.dso ||
	    verdict_array__grow((void **)&c->functions, c->by_name.nr, &c->max_functions,
				sizeof(key)))
		return VERDICT_NONE;
	nr = interner__add(&c->by_name, &key, sizeof(key), NULL);
	if (nr == INTERNER_FAILED)
		return VERDICT_NONE;
	c->functions[nr] = key;
	return nr;
}

/**
 * verdict_chains__function - the function that was sampled
 * @c: functions
 * @al: where
 *
 * Return: its index, or VERDICT_NONE without memory.
 */
u32 verdict_chains__function(struct verdict_chains *c, const struct addr_location *al)
{
	return find_function(c, al->sym, al->map);
}

/**
 * verdict_chains__node - a function that is called by a chain of others
 * @c: chains
 * @parent: its caller, or VERDICT_NONE
 * @function: index of it
 *
 * Return: index of the node, or VERDICT_NONE without memory.
 */
u32 verdict_chains__node(struct verdict_chains *c, u32 parent, u32 function)
{
	u64 key = (u64)parent << 32 | function;
	u32 caller, nr;
	bool fresh;

	if (verdict_array__grow((void **)&c->nodes, c->by_caller.nr, &c->max_nodes,
				sizeof(*c->nodes)))
		return VERDICT_NONE;
	nr = interner__add(&c->by_caller, &key, sizeof(key), &fresh);
	if (nr == INTERNER_FAILED)
		return VERDICT_NONE;
	if (!fresh)
		return nr;
	for (caller = parent; caller != VERDICT_NONE; caller = c->nodes[caller].parent) {
		if (c->nodes[caller].function == function)
			break;
	}
	c->nodes[nr].parent = parent;
	c->nodes[nr].function = function;
	c->nodes[nr].outermost = caller == VERDICT_NONE;
	return nr;
}

static u32 find_kernel(struct verdict_chains *c, struct machine *machine, u64 ip)
{
	struct map *map = NULL;
	struct symbol *sym;
	long index;

	if (hashmap__find(c->by_address, ip, &index))
		return index;
	sym = machine__find_kernel_symbol(machine, ip, &map);
	index = find_function(c, sym, map);
	map__put(map);
	if (index != VERDICT_NONE && hashmap__add(c->by_address, ip, index))
		return VERDICT_NONE;
	return index;
}

static u32 find_user(struct verdict_chains *c, struct thread *thread, u64 ip)
{
	struct addr_location al;
	u32 index;

	addr_location__init(&al);
	thread__find_symbol(thread, PERF_RECORD_MISC_USER, ip, &al);
	index = find_function(c, al.sym, al.map);
	addr_location__exit(&al);
	return index;
}

/* The functions of a call chain, the one that was sampled first; -1: no memory */
static int read_functions(struct verdict_chains *c, const struct perf_sample *sample,
			  struct machine *machine, u32 *functions)
{
	const struct ip_callchain *chain = sample->callchain;
	u64 context = PERF_CONTEXT_MAX, i;
	struct thread *thread = NULL;
	int nr = 0;

	for (i = 0; i < chain->nr && nr >= 0 && nr < MOST_FRAMES; i++) {
		u64 ip = chain->ips[i];
		u32 function;

		if (ip >= PERF_CONTEXT_MAX) {
			context = ip;
			continue;
		}
		if (context == PERF_CONTEXT_KERNEL) {
			function = find_kernel(c, machine, ip);
		} else if (context == PERF_CONTEXT_USER) {
			if (!thread)
				thread = machine__findnew_thread(machine, sample->pid,
								 sample->tid);
			if (!thread)
				break;
			function = find_user(c, thread, ip);
		} else {
			continue;
		}
		if (function == VERDICT_NONE)
			nr = -1;
		else
			functions[nr++] = function;
	}
	thread__put(thread);
	return nr;
}

/**
 * verdict_chains__read - the call chain of a sample
 * @c: chains
 * @sample: the sample
 * @machine: where it was taken
 * @leaf: index of the function that was sampled
 *
 * Return: index of the last node, or VERDICT_NONE without memory.
 */
u32 verdict_chains__read(struct verdict_chains *c, const struct perf_sample *sample,
			 struct machine *machine, u32 leaf)
{
	u32 functions[MOST_FRAMES], node = VERDICT_NONE;
	int nr = 0;

	if (sample->callchain) {
		nr = read_functions(c, sample, machine, functions);
		if (nr < 0)
			return VERDICT_NONE;
	}
	if (!nr)
		functions[nr++] = leaf;
	while (nr--) {
		node = verdict_chains__node(c, node, functions[nr]);
		if (node == VERDICT_NONE)
			break;
	}
	return node;
}
