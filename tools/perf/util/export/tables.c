// SPDX-License-Identifier: GPL-2.0
/*
 * The strings, functions, mappings, locations, stacks and tasks of a profile.
 *
 * A stack is resolved by the functions that perf report uses, with inlined
 * functions where it has them, so that both have the same names. The function
 * that perf report shows for a sample is that of the sample's address. It
 * becomes the newest call of the stack also where the call chain does not begin
 * with it: where the chain lacks the kernel, or was cut short.
 *
 * Addresses are those that the symbols of a file have: the same function is the
 * same location in all processes, wherever its file is mapped.
 *
 * Most frames of a sample were in the samples before. A small cache maps the
 * map, symbol and address of a frame to the number of its location. It refers to
 * the maps, so that the address of a map is not used again while it is in it.
 *
 * perf may learn the name of a thread after its first samples, and shows it for these,
 * too. So the key of a task has the object that holds the name, and the name is looked up
 * when it is written.
 */
#include "redact.h"
#include "tables.h"

#include "base-api.h"
#include "build-id.h"
#include "callchain.h"
#include "cgroup.h"
#include "comm.h"
#include "dso.h"
#include "event.h"
#include "evsel.h"
#include "map.h"
#include "map_symbol.h"
#include "symbol.h"
#include "symbol_conf.h"
#include "thread.h"
#include "vdso.h"

#include <errno.h>
#include <internal/rc_check.h>
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_SIZE	4096
#define MAX_LINES	64

struct cached_frame {
	struct map	*map;
	struct symbol	*sym;
	u64		ip;
	u32		location;
};

struct frame_cache {
	struct cached_frame	frames[CACHE_SIZE];
};

/* Length of the valid UTF-8 character at s, or 0 */
static int utf8_len(const u8 *s)
{
	u32 c;
	int n, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] < 0xe0)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] < 0xf0)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] < 0xf5)
		n = 4;
	else
		return 0;
	c = s[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c < 0xe000))
		return 0;
	return n;
}

static const char *find_invalid(const char *s)
{
	int n;

	for (; *s; s += n) {
		n = utf8_len((const u8 *)s);
		if (!n)
			return s;
	}
	return NULL;
}

/**
 * export_clean_utf8 - make text of bytes
 * @s: readers refuse text that is not UTF-8, so what is not becomes '?'
 */
void export_clean_utf8(char *s)
{
	for (; (s = (char *)find_invalid(s)); s++)
		*s = '?';
}

/**
 * export_tables__string - the number of a string
 * @t: tables
 * @s: the string
 *
 * Return: its number, or INTERNER_FAILED.
 */
u32 export_tables__string(struct export_tables *t, const char *s)
{
	char *copy = NULL;
	u32 nr;

	if (find_invalid(s) || (t->redact_home && export_redact__has_home(s))) {
		copy = strdup(s);
		if (!copy)
			return INTERNER_FAILED;
		export_clean_utf8(copy);
		if (t->redact_home)
			export_redact__home(copy);
		s = copy;
	}
	nr = interner__add(&t->strings, s, strlen(s) + 1, NULL);
	free(copy);
	return nr;
}

/*
 * Number 0 is an entry of zeros. The length of its key is that of no other, so that a
 * real one, such as an instruction at address 0 that is in no file, gets another
 * number.
 */
static bool reserve_zero(struct interner *in, size_t size)
{
	u8 zeros[128] = {};

	return interner__add(in, zeros, size + 1, NULL) == 0;
}

int export_tables__init(struct export_tables *t)
{
	memset(t, 0, sizeof(*t));
	t->cache = calloc(1, sizeof(*t->cache));
	if (!t->cache || export_tables__string(t, "") == INTERNER_FAILED ||
	    !reserve_zero(&t->functions, sizeof(struct export_function)) ||
	    !reserve_zero(&t->mappings, sizeof(struct export_mapping)) ||
	    !reserve_zero(&t->locations, sizeof(struct export_location)) ||
	    interner__add(&t->stacks, "", 0, NULL) == INTERNER_FAILED)
		return -ENOMEM;
	return 0;
}

void export_tables__exit(struct export_tables *t)
{
	u32 nr;
	int i;

	for (i = 0; t->cache && i < CACHE_SIZE; i++)
		map__put(t->cache->frames[i].map);
	free(t->cache);
	interner__exit(&t->strings);
	interner__exit(&t->functions);
	interner__exit(&t->mappings);
	interner__exit(&t->locations);
	interner__exit(&t->stacks);
	interner__exit(&t->tasks);
	for (nr = 0; nr < t->nr_threads; nr++)
		thread__put(t->threads[nr]);
	free(t->threads);
	free(t->with_symbols);
	free(t->stack);
}

static u32 add_mapping(struct export_tables *t, struct map *map)
{
	struct export_mapping key = {};
	char build_id[SBUILD_ID_SIZE] = "";
	struct dso *dso;

	if (!map)
		return 0;
	dso = map__dso(map);
	if (dso__has_build_id(dso))
		build_id__snprintf(dso__bid(dso), build_id, sizeof(build_id));
	/* The file of a vdso is a copy that this perf has made. */
	key.file = export_tables__string(t, dso__is_vdso(dso) ? dso__short_name(dso) :
								dso__long_name(dso));
	key.build_id = export_tables__string(t, build_id);
	if (key.file == INTERNER_FAILED || key.build_id == INTERNER_FAILED)
		return INTERNER_FAILED;
	key.kernel = dso__kernel(dso) == DSO_SPACE__KERNEL;
	key.start = map__map_ip(map, map__start(map));
	key.end = key.start + map__size(map);
	key.offset = map__pgoff(map);
	return interner__add(&t->mappings, &key, sizeof(key), NULL);
}

static int mark_with_symbols(struct export_tables *t, u32 mapping)
{
	u32 n = t->nr_with_symbols;
	u8 *p;

	if (mapping >= n) {
		n = max(mapping + 1, n * 2);
		p = realloc(t->with_symbols, n);
		if (!p)
			return -ENOMEM;
		memset(p + t->nr_with_symbols, 0, n - t->nr_with_symbols);
		t->with_symbols = p;
		t->nr_with_symbols = n;
	}
	t->with_symbols[mapping] = 1;
	return 0;
}

/* srcline: "file:line", or NULL */
static int set_line(struct export_tables *t, struct export_line *line, struct symbol *sym,
		    const char *srcline)
{
	struct export_function key = {};
	const char *colon = srcline ? strrchr(srcline, ':') : NULL;
	char *file;

	line->line = 0;
	if (colon && strncmp(srcline, "??", 2)) {
		file = strndup(srcline, colon - srcline);
		if (!file)
			return -ENOMEM;
		key.file = export_tables__string(t, file);
		free(file);
		line->line = strtoul(colon + 1, NULL, 10);
	}
	key.name = export_tables__string(t, sym->name);
	if (key.name == INTERNER_FAILED || key.file == INTERNER_FAILED)
		return -ENOMEM;
	line->function = interner__add(&t->functions, &key, sizeof(key), NULL);
	return line->function == INTERNER_FAILED ? -ENOMEM : 0;
}

/* A location whose lines are known */
static u32 add_location(struct export_tables *t, struct map *map, u64 ip,
			const struct export_line *lines, u32 nr_lines)
{
	struct {
		struct export_location	location;
		struct export_line	lines[MAX_LINES];
	} key;

	key.location.mapping = add_mapping(t, map);
	if (key.location.mapping == INTERNER_FAILED)
		return INTERNER_FAILED;
	if (nr_lines && mark_with_symbols(t, key.location.mapping))
		return INTERNER_FAILED;
	key.location.nr_lines = nr_lines;
	key.location.address = map ? map__map_ip(map, ip) : ip;
	memcpy(key.location.lines, lines, nr_lines * sizeof(*lines));
	return interner__add(&t->locations, &key,
			     sizeof(key.location) + nr_lines * sizeof(*lines), NULL);
}

/*
 * A frame that nothing was inlined into. In a program without frame pointers, the kernel takes
 * words of its memory for return addresses. These are in no mapping.
 */
static u32 find_location(struct export_tables *t, struct map *map, struct symbol *sym, u64 addr)
{
	unsigned long object = map ? (unsigned long)RC_CHK_ACCESS(map) : 0;
	u64 ip = map || !t->redact_args ? addr : 0;
	u64 hash = (ip ^ object >> 4) * 0x9e3779b97f4a7c15ULL;
	struct cached_frame *c = &t->cache->frames[hash >> 52];
	struct export_line line;
	u32 location;

	BUILD_BUG_ON(CACHE_SIZE != 1 << 12);
	if (c->location && c->ip == ip && RC_CHK_EQUAL(c->map, map) && c->sym == sym)
		return c->location;
	if (sym && set_line(t, &line, sym, NULL))
		return INTERNER_FAILED;
	location = add_location(t, map, ip, &line, sym ? 1 : 0);
	if (location == INTERNER_FAILED)
		return location;
	map__put(c->map);
	*c = (struct cached_frame){
		.map = map__get(map),
		.sym = sym,
		.ip = ip,
		.location = location,
	};
	return location;
}

static int push(struct export_tables *t, u32 *nr, u32 location)
{
	u32 alloc, *p;

	if (location == INTERNER_FAILED)
		return -ENOMEM;
	if (*nr == t->stack_alloc) {
		alloc = t->stack_alloc ? t->stack_alloc * 2 : 256;
		p = reallocarray(t->stack, alloc, sizeof(*p));
		if (!p)
			return -ENOMEM;
		t->stack = p;
		t->stack_alloc = alloc;
	}
	t->stack[(*nr)++] = location;
	return 0;
}

/*
 * One location of one or more nodes of the cursor: inlined functions, and what
 * they are inlined into, have the same address.
 */
static int push_node(struct export_tables *t, struct callchain_cursor *cursor, u32 *nr)
{
	struct callchain_cursor_node *node = callchain_cursor_current(cursor), *next;
	struct export_line lines[MAX_LINES];
	struct map *map = node->ms.map;
	struct symbol *sym = node->ms.sym;
	u64 ip = node->ip;
	u32 nr_lines = 0;

	if (!sym || !symbol__inlined(sym)) {
		callchain_cursor_advance(cursor);
		return push(t, nr, find_location(t, map, sym, ip));
	}
	for (;;) {
		if (nr_lines < MAX_LINES &&
		    set_line(t, &lines[nr_lines++], node->ms.sym, node->srcline))
			return -ENOMEM;
		sym = node->ms.sym;
		callchain_cursor_advance(cursor);
		next = callchain_cursor_current(cursor);
		if (!symbol__inlined(sym) || !next || next->ip != ip || !next->ms.sym ||
		    !RC_CHK_EQUAL(next->ms.map, map))
			break;
		node = next;
	}
	return push(t, nr, add_location(t, map, ip, lines, nr_lines));
}

/* Does the chain begin with the function that perf report shows for the sample? */
static bool begins_with(struct callchain_cursor *cursor, struct perf_sample *sample,
			struct addr_location *al)
{
	struct callchain_cursor_node *node = callchain_cursor_current(cursor);

	return node && (node->ip == sample->ip || (al->sym && node->ms.sym == al->sym));
}

/**
 * export_tables__stack - the number of the stack of a sample
 * @t: tables
 * @evsel: its event
 * @sample: the sample
 * @al: what machine__resolve() said of it
 *
 * Return: number of the stack, or INTERNER_FAILED.
 */
u32 export_tables__stack(struct export_tables *t, struct evsel *evsel,
			 struct perf_sample *sample, struct addr_location *al)
{
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	u32 nr = 0;

	if (!cursor)
		return INTERNER_FAILED;
	callchain_cursor_reset(cursor);
	/* As in perf report, a chain that cannot be resolved is left out. */
	if (sample->callchain &&
	    sample__chain(sample, cursor, evsel, al, PERF_MAX_STACK_DEPTH))
		callchain_cursor_reset(cursor);
	callchain_cursor_commit(cursor);

	if (!begins_with(cursor, sample, al) &&
	    push(t, &nr, find_location(t, al->map, al->sym, sample->ip)))
		return INTERNER_FAILED;
	while (callchain_cursor_current(cursor)) {
		if (push_node(t, cursor, &nr))
			return INTERNER_FAILED;
	}
	return interner__add(&t->stacks, t->stack, nr * sizeof(*t->stack), NULL);
}

/* The comm of a task belongs to its thread, which may exit. */
static int hold_thread(struct export_tables *t, u32 task, struct thread *thread)
{
	struct thread **threads;
	u32 n;

	if (task >= t->nr_threads) {
		n = t->nr_threads ? t->nr_threads * 2 : 64;
		threads = reallocarray(t->threads, n, sizeof(*threads));
		if (!threads)
			return -ENOMEM;
		memset(threads + t->nr_threads, 0, (n - t->nr_threads) * sizeof(*threads));
		t->threads = threads;
		t->nr_threads = n;
	}
	t->threads[task] = thread__get(thread);
	return 0;
}

/**
 * export_tables__task - the number of the task of a sample
 * @t: tables
 * @evsel: its event
 * @sample: the sample
 * @al: what machine__resolve() said of it
 *
 * Return: number of the task, or INTERNER_FAILED.
 */
u32 export_tables__task(struct export_tables *t, struct evsel *evsel,
			struct perf_sample *sample, struct addr_location *al)
{
	u64 sample_type = evsel->core.attr.sample_type;
	struct export_task key = {
		.comm	= thread__comm(al->thread),
		.pid	= thread__pid(al->thread),
		.tid	= thread__tid(al->thread),
		.cpu	= sample_type & PERF_SAMPLE_CPU ? (s32)sample->cpu : -1,
	};
	struct cgroup *cgroup = NULL;
	bool fresh;
	u32 task;

	if (sample_type & PERF_SAMPLE_CGROUP)
		cgroup = cgroup__find(evsel__env(evsel), sample->cgroup);
	if (cgroup)
		key.cgroup = export_tables__string(t, cgroup->name);
	if (key.cgroup == INTERNER_FAILED)
		return INTERNER_FAILED;
	task = interner__add(&t->tasks, &key, sizeof(key), &fresh);
	if (fresh && hold_thread(t, task, al->thread))
		return INTERNER_FAILED;
	return task;
}

/**
 * export_tables__comm - the name of a task, as far as it is known by now
 * @t: tables
 * @task: number of the task
 *
 * Return: number of the string, or INTERNER_FAILED.
 */
u32 export_tables__comm(struct export_tables *t, u32 task)
{
	struct comm *comm = export_tables__task_key(t, task)->comm;

	return export_tables__string(t, comm ? comm__str(comm) : "");
}
