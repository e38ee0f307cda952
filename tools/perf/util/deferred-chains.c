// SPDX-License-Identifier: GPL-2.0
/*
 * Call chains whose user half is in a record of its own, for readers that need samples in the
 * order of time
 *
 * With perf_event_attr::defer_callchain the kernel unwinds the stack of user space when the task
 * returns there. A sample has the kernel's half and a cookie. PERF_RECORD_CALLCHAIN_DEFERRED has
 * the cookie and the user's half, and comes later: after seconds if the task sleeps meanwhile.
 *
 * perf_session can merge both. It keeps the sample until that record comes, so the handler gets
 * samples late, and with times that go back. A reader that follows tasks over switches cannot
 * work so. Here the recording is read twice: at first the user halves alone, and then
 * everything, where each sample finds its half.
 *
 * A chain with both halves looks like one that was not deferred: PERF_CONTEXT_USER is between
 * them. If there is no such record, the cookie is removed.
 */
#include "deferred-chains.h"

#include "base-api.h"
#include "data.h"
#include "evlist.h"
#include "evsel.h"
#include "sample.h"
#include "session.h"
#include "tool.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for halves, at first */
#define FIRST_HALVES	256

struct reader {
	struct perf_tool	tool;
	struct deferred_chains	*dc;
	int			err;
};

/* The user half of a call chain, and what leads to it */
struct deferred_half {
	u64			cookie;
	struct ip_callchain	*chain;
};

static int compare_halves(const void *a, const void *b)
{
	const struct deferred_half *x = a, *y = b;

	return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
}

/**
 * deferred_chain__cookie - does the user half of a call chain come later?
 * @chain: the call chain of a sample, or NULL
 * @cookie: returns what that record has as well
 */
bool deferred_chain__cookie(const struct ip_callchain *chain, u64 *cookie)
{
	if (!chain || chain->nr < 2 || chain->ips[chain->nr - 2] != PERF_CONTEXT_USER_DEFERRED)
		return false;
	*cookie = chain->ips[chain->nr - 1];
	return true;
}

static int reserve(struct deferred_chains *dc)
{
	size_t room = dc->nr_halves ? 2 * dc->nr_halves : FIRST_HALVES;
	struct deferred_half *halves;

	if (dc->nr_halves < dc->halves_room)
		return 0;
	halves = realloc(dc->halves, room * sizeof(*halves));
	if (!halves)
		return -ENOMEM;
	dc->halves = halves;
	dc->halves_room = room;
	return 0;
}

static int process_deferred(const struct perf_tool *tool, union perf_event *event,
			    struct perf_sample *sample __maybe_unused,
			    struct evsel *evsel __maybe_unused,
			    struct machine *machine __maybe_unused)
{
	const struct perf_record_callchain_deferred *record = (void *)event;
	struct reader *r = container_of(tool, struct reader, tool);
	struct ip_callchain *chain;
	size_t size;

	if (r->err || event->header.size < sizeof(*record) ||
	    record->nr > (event->header.size - sizeof(*record)) / sizeof(u64))
		return r->err;
	size = sizeof(*chain) + record->nr * sizeof(u64);
	chain = malloc(size);
	if (!chain || reserve(r->dc)) {
		free(chain);
		r->err = -ENOMEM;
		return r->err;
	}
	memcpy(chain, &record->nr, size);
	r->dc->halves[r->dc->nr_halves++] = (struct deferred_half) { record->cookie, chain };
	return 0;
}

DEFINE_TOOL_SAMPLE(process_deferred)

static int read_halves(struct deferred_chains *dc, const char *path, bool force)
{
	struct perf_data data = {
		.mode	= PERF_DATA_MODE_READ,
		.path	= path,
		.force	= force,
	};
	struct reader r = { .dc = dc };
	struct perf_session *session;
	int err;

	perf_tool__init(&r.tool, /*ordered_events=*/false);
	/* The caller reads the same again. */
	r.tool.no_warn = true;
	perf_tool__set_deferred(&r.tool, process_deferred__of_tool);
	session = perf_session__new(&data, &r.tool);
	if (IS_ERR(session))
		return PTR_ERR(session);
	err = perf_session__process_events(session);
	perf_session__delete(session);
	if (dc->nr_halves)
		qsort(dc->halves, dc->nr_halves, sizeof(*dc->halves), compare_halves);
	return r.err ?: err;
}

/**
 * deferred_chains__read - read the user halves of a recording
 * @dc: zeros; deferred_chains__exit() is called in any case
 * @evlist: events of the recording
 * @path: of the recording, which is a file
 * @force: read files of others
 *
 * The tool that reads the samples then is to have perf_tool__set_deferred().
 *
 * Return: 0, or a negative errno.
 */
int deferred_chains__read(struct deferred_chains *dc, struct evlist *evlist, const char *path,
			  bool force)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel)
		dc->defers |= evsel__defers_callchain(evsel);
	return dc->defers ? read_halves(dc, path, force) : 0;
}

static int make_room(struct deferred_chains *dc, u64 nr)
{
	size_t size = sizeof(*dc->whole) + nr * sizeof(u64);
	struct ip_callchain *whole;

	if (size <= dc->room)
		return 0;
	whole = realloc(dc->whole, size);
	if (!whole)
		return -ENOMEM;
	dc->whole = whole;
	dc->room = size;
	return 0;
}

/* Several events can have had the same half written: any of them will do. */
static const struct ip_callchain *find_half(const struct deferred_chains *dc, u64 cookie)
{
	const struct deferred_half key = { .cookie = cookie }, *half = NULL;

	if (dc->nr_halves)
		half = bsearch(&key, dc->halves, dc->nr_halves, sizeof(key), compare_halves);
	return half ? half->chain : NULL;
}

/**
 * deferred_chains__merge - give a sample its whole call chain
 * @dc: what deferred_chains__read() has read
 * @sample: the sample; its call chain is valid until the next call
 *
 * Return: 0 or -ENOMEM.
 */
int deferred_chains__merge(struct deferred_chains *dc, struct perf_sample *sample)
{
	const struct ip_callchain *half;
	u64 cookie, nr;

	if (!dc->defers || !deferred_chain__cookie(sample->callchain, &cookie))
		return 0;
	nr = sample->callchain->nr - 2;
	half = find_half(dc, cookie);
	if (!half)
		dc->missing++;
	if (make_room(dc, nr + 1 + (half ? half->nr : 0)))
		return -ENOMEM;
	memcpy(dc->whole->ips, sample->callchain->ips, nr * sizeof(u64));
	if (half) {
		dc->whole->ips[nr++] = PERF_CONTEXT_USER;
		memcpy(&dc->whole->ips[nr], half->ips, half->nr * sizeof(u64));
		nr += half->nr;
	}
	dc->whole->nr = nr;
	sample->callchain = dc->whole;
	return 0;
}

void deferred_chains__exit(struct deferred_chains *dc)
{
	for (size_t i = 0; i < dc->nr_halves; i++)
		free(dc->halves[i].chain);
	free(dc->halves);
	free(dc->whole);
	*dc = (struct deferred_chains) {};
}
