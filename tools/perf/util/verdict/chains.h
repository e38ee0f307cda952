/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_CHAINS_H
#define __PERF_VERDICT_CHAINS_H

#include "interner.h"

#include <linux/types.h>
#include <stdbool.h>

struct addr_location;
struct hashmap;
struct machine;
struct perf_sample;

/**
 * struct verdict_function - what was sampled
 * @name: of the function, or NULL: it is not known
 * @dso: name of the file that it is in
 */
struct verdict_function {
	const char	*name;
	const char	*dso;
};

/**
 * struct verdict_node - a function with those that called it
 * @parent: index of the node of its caller, less than its own; or VERDICT_NONE
 * @function: index of the function
 * @outermost: it is not among its callers
 */
struct verdict_node {
	u32	parent;
	u32	function;
	bool	outermost;
};

/**
 * struct verdict_chains - the functions of a recording, and its call chains as a tree
 * @whole: keep call chains; else only the functions that were sampled
 * @functions: as many as @by_name has keys
 * @nodes: as many as @by_caller has keys
 * @by_name: index of a function by its names
 * @by_caller: index of a node by its parent and its function
 * @by_address: index of a function of the kernel by an address in it
 */
struct verdict_chains {
	bool			whole;
	struct verdict_function	*functions;
	u32			max_functions;
	struct verdict_node	*nodes;
	u32			max_nodes;
	struct interner		by_name;
	struct interner		by_caller;
	struct hashmap		*by_address;
};

int verdict_chains__init(struct verdict_chains *c, bool whole);
void verdict_chains__exit(struct verdict_chains *c);
u32 verdict_chains__function(struct verdict_chains *c, const struct addr_location *al);
u32 verdict_chains__node(struct verdict_chains *c, u32 parent, u32 function);
u32 verdict_chains__read(struct verdict_chains *c, const struct perf_sample *sample,
			 struct machine *machine, u32 leaf);

#endif /* __PERF_VERDICT_CHAINS_H */
