/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_TABLES_H
#define __PERF_EXPORT_TABLES_H

#include "interner.h"

#include <stdbool.h>

struct addr_location;
struct comm;
struct evsel;
struct perf_sample;
struct thread;

/*
 * Tables that the formats share. The numbers are those of the interners. They begin
 * with 0, which is the empty string, no function and no mapping.
 */

/**
 * struct export_function - key of a function
 * @name: string, as perf report shows it
 * @file: string, of its source, or 0
 */
struct export_function {
	u32	name;
	u32	file;
};

/**
 * struct export_mapping - key of a part of a file in memory
 * @file: string, of its name
 * @build_id: string, in hex digits, or 0
 * @kernel: whether it is code of the kernel
 * @pad: 0
 * @start: first address, as in struct export_location
 * @end: address behind it
 * @offset: of @start in the file
 */
struct export_mapping {
	u32	file;
	u32	build_id;
	u32	kernel;
	u32	pad;
	u64	start;
	u64	end;
	u64	offset;
};

/**
 * struct export_line - a function that an instruction belongs to
 * @function: number of the function
 * @line: in its file, or 0
 */
struct export_line {
	u32	function;
	u32	line;
};

/**
 * struct export_location - key of an instruction
 * @mapping: number of the mapping, or 0
 * @nr_lines: 0 without a symbol
 * @address: as the symbols of its file have it: the same for all processes
 * @lines: functions, an inlined one before the one that it is part of
 */
struct export_location {
	u32			mapping;
	u32			nr_lines;
	u64			address;
	struct export_line	lines[];
};

/**
 * struct export_task - key of where a sample was taken, other than the stack
 * @comm: name of the thread, which perf may learn only after the sample
 * @pid: process
 * @tid: thread
 * @cpu: CPU, or -1
 * @cgroup: string, its path, or 0
 */
struct export_task {
	struct comm	*comm;
	s32		pid;
	s32		tid;
	s32		cpu;
	u32		cgroup;
};

struct frame_cache;

/**
 * struct export_tables - each of these once
 * @redact_home: leave out the directories below home directories
 * @redact_args: leave out addresses that are in no mapping
 * @strings: valid UTF-8
 * @functions: of struct export_function
 * @mappings: of struct export_mapping
 * @locations: of struct export_location
 * @stacks: numbers of locations (u32), the newest call first
 * @tasks: of struct export_task
 * @threads: by number of the task, what its comm belongs to
 * @nr_threads: room in @threads
 * @with_symbols: by mapping, whether a location in it has a function
 * @nr_with_symbols: room in @with_symbols
 * @cache: locations that were used last
 * @stack: the stack that is being made
 * @stack_alloc: room in @stack
 */
struct export_tables {
	bool			redact_home;
	bool			redact_args;
	struct interner		strings;
	struct interner		functions;
	struct interner		mappings;
	struct interner		locations;
	struct interner		stacks;
	struct interner		tasks;
	struct thread		**threads;
	u32			nr_threads;
	u8			*with_symbols;
	u32			nr_with_symbols;
	struct frame_cache	*cache;
	u32			*stack;
	u32			stack_alloc;
};

int export_tables__init(struct export_tables *t);
void export_tables__exit(struct export_tables *t);
void export_clean_utf8(char *s);
u32 export_tables__string(struct export_tables *t, const char *s);
u32 export_tables__stack(struct export_tables *t, struct evsel *evsel,
			 struct perf_sample *sample, struct addr_location *al);
u32 export_tables__task(struct export_tables *t, struct evsel *evsel,
			struct perf_sample *sample, struct addr_location *al);
u32 export_tables__comm(struct export_tables *t, u32 task);

static inline const struct export_task *
export_tables__task_key(const struct export_tables *t, u32 nr)
{
	return interner__key(&t->tasks, nr);
}

static inline const char *export_tables__str(const struct export_tables *t, u32 nr)
{
	return interner__key(&t->strings, nr);
}

static inline const struct export_function *
export_tables__function(const struct export_tables *t, u32 nr)
{
	return interner__key(&t->functions, nr);
}

static inline const struct export_mapping *
export_tables__mapping(const struct export_tables *t, u32 nr)
{
	return interner__key(&t->mappings, nr);
}

static inline const struct export_location *
export_tables__location(const struct export_tables *t, u32 nr)
{
	return interner__key(&t->locations, nr);
}

#endif /* __PERF_EXPORT_TABLES_H */
