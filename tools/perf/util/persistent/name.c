// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: the names of sessions
 *
 * The kernel checks the character set of a name, and keeps event<N> for itself. On top
 * of that, a session that perf makes must not have the name of a word that the event
 * parser reads as its own, in -e persistent/NAME/: a program that hands its events to
 * the parser could list such a session, but not open it.
 *
 * The kernel calls a session of a user without CAP_PERFMON u<uid>.<name>, with the uid
 * that the machine has for the user, which is not known in a user namespace. The user may
 * leave it out: the session with such a name whose owner the user is, is meant.
 */
#include "persistent.h"

#include <api/fs/fs.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Terms of util/parse-events.l, and those of the PMU's own format/ */
static const char * const words[] = {
	"aux-action", "aux-output", "aux-sample-size", "branch-instructions", "branch-misses",
	"branch_type", "bus-cycles", "cache-misses", "cache-references", "call-graph", "config",
	"config1", "config2", "config3", "cpu-cycles", "cycles", "freq", "id",
	"idle-cycles-backend", "idle-cycles-frontend", "index", "inherit", "instructions",
	"max-stack", "metric-id", "name", "no-inherit", "no-overwrite", "nr", "overwrite",
	"percore", "period", "ref-cycles", "stack-size", "stalled-cycles-backend",
	"stalled-cycles-frontend", "time",
};

/* CACHE or CACHE-OPERATION is an event of its own. */
static const char * const caches[] = {
	"Data-TLB", "Instruction-TLB", "L1-data", "L1-dcache", "L1-icache", "L1-instruction",
	"L2", "LLC", "bpc", "bpu", "branch", "branches", "btb", "d-tlb", "dTLB", "i-tlb", "iTLB",
	"l1-d", "l1-i", "l1d", "l1i", "node",
};

static bool is_word(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(name, words[i]))
			return true;
	}
	return false;
}

static bool is_cache_event(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		size_t len = strlen(caches[i]);

		if (!strncmp(name, caches[i], len) && (!name[len] || name[len] == '-'))
			return true;
	}
	return false;
}

/* r1a8: the event's number, in hexadecimal */
static bool is_raw_event(const char *name)
{
	if (*name++ != 'r' || !*name)
		return false;

	while (isxdigit(*name))
		name++;
	return !*name;
}

/* Is this u<uid>.@name? */
static bool is_users(const char *entry, const char *name)
{
	const char *dot = strchr(entry, '.');

	return entry[0] == 'u' && dot && dot > entry + 1 &&
	       strspn(entry + 1, "0123456789") == (size_t)(dot - entry - 1) &&
	       !strcmp(dot + 1, name);
}

/* Only the owner and root can read this. */
static bool is_mine(const char *entry)
{
	char path[PATH_MAX];
	int owner;

	scnprintf(path, sizeof(path), PERSISTENT_SYSFS "/sessions/%s/owner", entry);
	return !sysfs__read_int(path, &owner) && (uid_t)owner == geteuid();
}

/**
 * persistent__find_own - find a session that this user made without CAP_PERFMON
 * @name: its name, without the user in front
 * @full: set to its name, with the user in front
 */
bool persistent__find_own(const char *name, char full[PERF_PERSISTENT_NAME_LEN])
{
	const char *mnt = sysfs__mountpoint();
	char path[PATH_MAX];
	bool found = false;
	struct dirent *d;
	DIR *dir;

	scnprintf(path, sizeof(path), "%s/" PERSISTENT_SYSFS "/sessions", mnt ?: "/sys");
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		found = is_users(d->d_name, name) && is_mine(d->d_name);
		if (found)
			scnprintf(full, PERF_PERSISTENT_NAME_LEN, "%s", d->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Why the kernel refuses a session of this name, or NULL */
const char *persistent__name_error(const char *name)
{
	size_t len = strlen(name);

	if (!len)
		return "it is empty";
	if (len >= PERF_PERSISTENT_NAME_LEN)
		return "it is longer than 63 characters";
	if (!isalpha(name[0]) && name[0] != '_')
		return "it must begin with a letter or '_'";
	for (size_t i = 1; i < len; i++) {
		if (!isalnum(name[i]) && name[i] != '_' && name[i] != '-')
			return "only letters, digits, '_' and '-' may be in it";
	}
	if (strstarts(name, "event") && len > 5 && strspn(name + 5, "0123456789") == len - 5)
		return "names of the form event<N> are given by the kernel";
	return NULL;
}

/* Why no session of this name should be made, or NULL */
const char *persistent__new_name_error(const char *name)
{
	const char *error = persistent__name_error(name);

	if (!error && (is_word(name) || is_cache_event(name) || is_raw_event(name)))
		return "the event parser of perf reads it as a word of its own";
	return error;
}
