// SPDX-License-Identifier: GPL-2.0
/*
 * An entry is looked for first where its CPU was last seen: that saves the search,
 * gives the same entries as the search, and forgets entries that are deleted.
 */
#include "util/base-api.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/hist.h"
#include "util/machine.h"
#include "util/parse-events.h"
#include "util/sort.h"
#include "util/symbol.h"
#include "tests/tests.h"
#include "tests/hists_common.h"
#include <linux/kernel.h>

#define NR_SEEN		100
#define PERIOD		100

static int64_t (*real_cmp)(struct perf_hpp_fmt *fmt, struct hist_entry *a, struct hist_entry *b);
static unsigned int nr_cmps;

static int64_t counting_cmp(struct perf_hpp_fmt *fmt, struct hist_entry *a, struct hist_entry *b)
{
	nr_cmps++;
	return real_cmp(fmt, a, b);
}

static void count_cmps(struct hists *hists)
{
	struct perf_hpp_fmt *fmt;

	hists__for_each_sort_list(hists, fmt) {
		if (perf_hpp__is_sort_entry(fmt)) {
			real_cmp = fmt->cmp;
			fmt->cmp = counting_cmp;
		}
	}
}

static int add(struct evsel *evsel, struct machine *machine, u32 cpu, u32 pid, u64 ip)
{
	struct perf_sample sample = {
		.cpumode	= PERF_RECORD_MISC_USER,
		.cpu		= cpu,
		.pid		= pid,
		.tid		= pid,
		.ip		= ip,
		.period		= PERIOD,
	};
	struct hist_entry_iter iter = {
		.sample	= &sample,
		.ops	= &hist_iter_normal,
	};
	struct addr_location al;
	int err;

	perf_sample__set_evsel(&sample, evsel);
	hist_entry_iter__set_evsel(&iter, evsel);
	addr_location__init(&al);
	err = machine__resolve(machine, &al, &sample);
	if (!err)
		err = hist_entry_iter__add(&iter, &al, sysctl_perf_event_max_stack, NULL);
	addr_location__exit(&al);
	perf_sample__exit(&sample);
	return err;
}

static void sort_by(const char *keys, struct machine *machine)
{
	field_order = NULL;
	sort_order = keys;
	sorting__set_up(NULL, machine->env);
}

/* All entries of @hists, and whether each has this period */
static unsigned int nr_entries(struct hists *hists, u64 period)
{
	struct rb_node *node = rb_first_cached(hists->entries_in);
	unsigned int nr = 0;

	for (; node; node = rb_next(node)) {
		struct hist_entry *he = rb_entry(node, struct hist_entry, rb_node_in);

		if (he->stat.period != period)
			return 0;
		nr++;
	}
	return nr;
}

static void delete_all(struct evsel *evsel)
{
	struct hists *hists = evsel__hists(evsel);

	hists__collapse_resort(hists, NULL);
	evsel__output_resort(evsel, NULL);
	hists__delete_entries(hists);
	reset_output_field();
}

/* Once each CPU has been seen, one comparison finds its entry, not a search. */
static int check_search(struct evsel *evsel, struct machine *machine)
{
	struct hists *hists = evsel__hists(evsel);

	sort_by("cpu", machine);
	count_cmps(hists);
	for (u32 cpu = 0; cpu < NR_SEEN; cpu++)
		TEST_ASSERT_EQUAL("add", 0, add(evsel, machine, cpu, FAKE_PID_PERF1,
						FAKE_IP_PERF_MAIN));
	TEST_ASSERT_VAL("the search compares", nr_cmps > NR_SEEN);

	nr_cmps = 0;
	for (u32 cpu = 0; cpu < NR_SEEN; cpu++)
		TEST_ASSERT_EQUAL("add again", 0, add(evsel, machine, cpu, FAKE_PID_PERF1,
						      FAKE_IP_PERF_MAIN));
	TEST_ASSERT_EQUAL("comparisons", NR_SEEN, (int)nr_cmps);
	TEST_ASSERT_EQUAL("entries", NR_SEEN, (int)nr_entries(hists, 2 * PERIOD));

	delete_all(evsel);
	TEST_ASSERT_VAL("deleted entries are forgotten", !hists->recent && !hists->nr_recent);
	return TEST_OK;
}

/* What the CPU did last is not what it does now. */
static int check_alternate(struct evsel *evsel, struct machine *machine)
{
	static const u32 pids[] = { FAKE_PID_PERF1, FAKE_PID_BASH };
	struct hists *hists = evsel__hists(evsel);

	sort_by("pid", machine);
	for (int i = 0; i < 20; i++)
		TEST_ASSERT_EQUAL("add", 0, add(evsel, machine, i / 2 % 2, pids[i % 2],
						FAKE_IP_PERF_MAIN));
	TEST_ASSERT_EQUAL("entries", 2, (int)nr_entries(hists, 10 * PERIOD));
	delete_all(evsel);
	return TEST_OK;
}

/* Symbols of entries are exchanged while they are in the tree. */
static int check_symbols(struct evsel *evsel, struct machine *machine)
{
	struct hists *hists = evsel__hists(evsel);

	sort_by("cpu,sym", machine);
	for (u32 cpu = 0; cpu < 4; cpu++)
		TEST_ASSERT_EQUAL("add", 0, add(evsel, machine, cpu, FAKE_PID_PERF1,
						FAKE_IP_PERF_MAIN));
	TEST_ASSERT_VAL("with symbols, nothing is remembered", !hists->nr_recent);
	TEST_ASSERT_EQUAL("entries", 4, (int)nr_entries(hists, PERIOD));
	delete_all(evsel);
	return TEST_OK;
}

static int test__hists_recent(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct evlist *evlist = evlist__new();
	struct machines machines;
	struct machine *machine;
	int ret = TEST_FAIL;

	TEST_ASSERT_VAL("No memory", evlist);
	machines__init(&machines);

	if (parse_event(evlist, "cpu-clock"))
		goto out;
	machine = setup_fake_machine(&machines);
	if (!machine)
		goto out;

	ret = check_search(evlist__first(evlist), machine);
	if (!ret)
		ret = check_alternate(evlist__first(evlist), machine);
	if (!ret)
		ret = check_symbols(evlist__first(evlist), machine);
out:
	evlist__put(evlist);
	reset_output_field();
	machines__exit(&machines);
	return ret;
}

DEFINE_SUITE("Find hist entries where their CPU was last seen", hists_recent);
