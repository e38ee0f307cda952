// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: which names a session may have.
 *
 * A name is a directory and a file in sysfs, and the word in
 *
 *	perf record -e persistent/NAME/
 *
 * There perf's event parser reads its own words first: a session of such a name
 * could be listed, but never be opened by it. It also must not look like the
 * name that the kernel makes from an id.
 */
#include <linux/array_size.h>
#include <linux/ctype.h>
#include <linux/string.h>

#include "persistent_types.h"

/* Terms of tools/perf/util/parse-events.l, and those of our own format/. */
static const char * const perf_persistent_words[] = {
	"aux-action", "aux-output", "aux-sample-size", "branch-instructions", "branch-misses",
	"branch_type", "bus-cycles", "cache-misses", "cache-references", "call-graph", "config",
	"config1", "config2", "config3", "cpu-cycles", "cycles", "freq", "id",
	"idle-cycles-backend", "idle-cycles-frontend", "index", "inherit", "instructions",
	"max-stack", "metric-id", "name", "no-inherit", "no-overwrite", "nr", "overwrite",
	"percore", "period", "ref-cycles", "stack-size", "stalled-cycles-backend",
	"stalled-cycles-frontend", "time",
};

/* Caches: CACHE or CACHE-OPERATION is an event of its own. */
static const char * const perf_persistent_caches[] = {
	"Data-TLB", "Instruction-TLB", "L1-data", "L1-dcache", "L1-icache", "L1-instruction",
	"L2", "LLC", "bpc", "bpu", "branch", "branches", "btb", "d-tlb", "dTLB", "i-tlb", "iTLB",
	"l1-d", "l1-i", "l1d", "l1i", "node",
};

/* r1a8: the event's number, in hexadecimal */
static bool is_raw_event(const char *name)
{
	if (*name++ != 'r' || !*name)
		return false;

	while (isxdigit(*name))
		name++;
	return !*name;
}

/* event12: what the kernel calls session 12, should nobody have a better name for it */
static bool is_kernel_name(const char *name)
{
	size_t len = str_has_prefix(name, "event");

	if (!len || !name[len])
		return false;

	name += len;
	while (isdigit(*name))
		name++;
	return !*name;
}

static bool is_cache_event(const char *name)
{
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(perf_persistent_caches); i++) {
		len = str_has_prefix(name, perf_persistent_caches[i]);
		if (len && (!name[len] || name[len] == '-'))
			return true;
	}
	return false;
}

static bool is_plain_word(const char *name)
{
	if (!isascii(*name) || !(isalpha(*name) || *name == '_'))
		return false;

	while (isascii(*name) && (isalnum(*name) || *name == '_' || *name == '-') && *name)
		name++;
	return !*name;
}

/**
 * perf_persistent_name_valid - may a user call a session so?
 * @name: the name, NUL-terminated
 */
bool perf_persistent_name_valid(const char *name)
{
	return is_plain_word(name) && !is_raw_event(name) && !is_kernel_name(name) &&
	       !is_cache_event(name) &&
	       match_string(perf_persistent_words, ARRAY_SIZE(perf_persistent_words), name) < 0;
}
