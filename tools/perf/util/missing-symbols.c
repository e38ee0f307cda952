// SPDX-License-Identifier: GPL-2.0
/*
 * Which files are missing, so that samples have no names of functions
 *
 * A recording of another machine, or of one that has died, has samples of files that are not
 * here. The report names these files, their build-ids and their shares of the samples, and
 * how to get them. A file that is here, but does not name a function at the address of a
 * sample, is not missing.
 */
#include "missing-symbols.h"
#include "addr_location.h"
#include "base-api.h"
#include "build-id.h"
#include "debug.h"
#include "dso.h"
#include "map.h"
#include "strbuf.h"
#include "symbol.h"
#include "../ui/util.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/zalloc.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* So many files are named. */
#define MAX_ROWS	10

struct missing {
	struct dso	*dso;
	u64		samples;
};

static struct missing *missing;
static size_t nr_missing, last;
static u64 nr_samples;

/* Memory without a file has no name that begins like a path, or //anon. */
static bool is_file(const struct dso *dso)
{
	const char *name = dso__long_name(dso);

	return dso__has_build_id(dso) || dso__kernel(dso) ||
	       (*name == '/' && !strstarts(name, "//"));
}

static struct missing *find(struct dso *dso)
{
	struct missing *more;

	if (last < nr_missing && missing[last].dso == dso)
		return &missing[last];
	for (last = 0; last < nr_missing; last++) {
		if (missing[last].dso == dso)
			return &missing[last];
	}
	more = realloc(missing, (nr_missing + 1) * sizeof(*missing));
	if (!more)
		return NULL;
	missing = more;
	missing[nr_missing++] = (struct missing) { .dso = dso__get(dso) };
	return &missing[last];
}

/**
 * missing_symbols__count - count a sample
 * @al: its address, with the symbol if there is one
 */
void missing_symbols__count(const struct addr_location *al)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;
	struct missing *m;

	nr_samples++;
	if (al->sym || !dso || dso__has_symbols(dso) || !is_file(dso))
		return;
	m = find(dso);
	if (m)
		m->samples++;
}

static int cmp_missing(const void *va, const void *vb)
{
	const struct missing *a = va, *b = vb;

	return a->samples == b->samples ? 0 : a->samples < b->samples ? 1 : -1;
}

/* How many of them --archive has kept beside the recording */
static unsigned int count_kept(const char *store)
{
	char id[SBUILD_ID_SIZE], link[PATH_MAX];
	unsigned int nr = 0;

	for (size_t i = 0; i < nr_missing; i++) {
		if (!dso__has_build_id(missing[i].dso))
			continue;
		build_id__snprintf(dso__bid(missing[i].dso), id, sizeof(id));
		if (snprintf(link, sizeof(link), "%s/.build-id/%.2s/%s", store, id, id + 2) <
		    (int)sizeof(link) && !access(link, F_OK))
			nr++;
	}
	return nr;
}

static void add_row(struct strbuf *text, const struct missing *m)
{
	char id[SBUILD_ID_SIZE] = "none";

	if (dso__has_build_id(m->dso))
		build_id__snprintf(dso__bid(m->dso), id, sizeof(id));
	strbuf_addf(text, "%6.2f%%  %-40s  %s\n", 100.0 * m->samples / nr_samples, id,
		    dso__long_name(m->dso));
}

static void add_advice(struct strbuf *text, const char *path)
{
	const char *slash = strrchr(path, '/'), *urls = getenv("DEBUGINFOD_URLS");
	char store[PATH_MAX];
	unsigned int nr;

	snprintf(store, sizeof(store), "%.*sperf-symbols",
		 slash ? (int)(slash + 1 - path) : 0, path);
	nr = count_kept(store);
	if (nr) {
		strbuf_addf(text, "%u of them are beside the recording:\n", nr);
		strbuf_addf(text, "  perf --buildid-dir %s report -i %s\n", store, path);
		return;
	}
	if (urls && *urls)
		strbuf_addf(text, "debuginfod (%s) did not have them. ", urls);
	else
		strbuf_addstr(text, "Set DEBUGINFOD_URLS to a server of debuginfod, or ");
	strbuf_addstr(text, "get them from the machine that recorded:\n"
		      "  perf record --archive -o RECORDING    there, which fills perf-symbols\n"
		      "  perf --buildid-dir perf-symbols ...   here, with a copy of it\n"
		      "  perf buildid-cache --add FILE         here, with a copy of one file\n");
}

/**
 * missing_symbols__tell - tell which files are missing, if they have 0.1 % of the samples
 * @path: the recording
 */
void missing_symbols__tell(const char *path)
{
	struct strbuf text = STRBUF_INIT;
	u64 sum = 0;

	for (size_t i = 0; i < nr_missing; i++)
		sum += missing[i].samples;
	if (sum * 1000 >= nr_samples && sum) {
		qsort(missing, nr_missing, sizeof(*missing), cmp_missing);
		strbuf_addf(&text, "%.2f%% of the samples have no names of functions: ",
			    100.0 * sum / nr_samples);
		strbuf_addf(&text, "these files are not here.\n  Share  %-40s  File\n",
			    "Build-id");
		for (size_t i = 0; i < nr_missing && i < MAX_ROWS; i++)
			add_row(&text, &missing[i]);
		if (nr_missing > MAX_ROWS)
			strbuf_addf(&text, "and %zu more\n", nr_missing - MAX_ROWS);
		add_advice(&text, path);
		ui__warning("%s", text.buf);
	}
	strbuf_release(&text);
	for (size_t i = 0; i < nr_missing; i++)
		dso__put(missing[i].dso);
	zfree(&missing);
	nr_missing = 0;
}
