/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_STACK_H
#define __PERF_VERDICT_STACK_H

#include "history.h"

struct addr_location;
struct evsel;
struct hashmap;
struct machine;
struct perf_sample;
struct thread;

/**
 * struct verdict_stack - what a call chain tells
 * @class: the first class, in their order, that one of its functions has
 * @place: function of the class, function of the program
 * @seen: a bit for each class that a function has
 * @kthread: it is a kernel thread's
 * @empty: there is none
 */
struct verdict_stack {
	enum verdict_class	class;
	struct verdict_place	place;
	u32			seen;
	bool			kthread;
	bool			empty;
};

int verdict_stack__init(void);
void verdict_stack__exit(void);
const char *verdict_stack__name(const char *name);
int verdict_stack__read(struct verdict_stack *stack, const struct perf_sample *sample,
			struct machine *machine, bool user);

#endif /* __PERF_VERDICT_STACK_H */
