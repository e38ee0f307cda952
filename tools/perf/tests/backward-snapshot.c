// SPDX-License-Identifier: GPL-2.0
/*
 * Overwrite buffers read while they are written, by the reader of perf record: each
 * dump holds what came since the dump before, once, without a pause; when the
 * buffer is too small for it, the newest part, and its cover says that there is a
 * gap. What the cover counts is what the records are.
 */
#include <evlist.h>
#include <sys/prctl.h>
#include "debug.h"
#include "parse-events.h"
#include "record.h"
#include "tests.h"
#include "util/mmap.h"
#include "util/snapshot-cover.h"
#include "util/base-api.h"
#include <errno.h>
#include <linux/string.h>
#include <perf/mmap.h>

#define NR_ITERS	111
#define NR_DUMPS	5

static void testcase(void)
{
	int i;

	for (i = 0; i < NR_ITERS; i++) {
		char proc_name[15];

		snprintf(proc_name, sizeof(proc_name), "p:%d\n", i);
		prctl(PR_SET_NAME, proc_name);
	}
}

/* What was pushed of one buffer */
struct pushed {
	u64	samples;
	u64	comms;
	u64	len;
	bool	bad;
};

static int push(struct mmap *map __maybe_unused, void *to, void *buf, size_t size)
{
	struct pushed *pushed = to;
	size_t offset = 0;

	while (offset + sizeof(struct perf_event_header) <= size) {
		union perf_event *event = buf + offset;

		if (event->header.size < sizeof(event->header))
			break;
		pushed->samples += event->header.type == PERF_RECORD_SAMPLE;
		pushed->comms += event->header.type == PERF_RECORD_COMM;
		offset += event->header.size;
	}
	pushed->bad |= offset != size;
	pushed->len += size;
	return 0;
}

/* All buffers; the sum of what is new in them */
static int dump(struct evlist *evlist, struct snapshot_cover *sum, struct pushed *pushed)
{
	int i, nr = evlist__core(evlist)->nr_mmaps;
	struct mmap *maps[nr];

	memset(sum, 0, sizeof(*sum));
	memset(pushed, 0, sizeof(*pushed));
	for (i = 0; i < nr; i++)
		maps[i] = &evlist__overwrite_mmap(evlist)[i];

	if (evlist__snapshot_bkw_mmap(evlist, maps, nr)) {
		pr_debug("no buffer could be read\n");
		return TEST_FAIL;
	}
	for (i = 0; i < nr; i++) {
		snapshot_cover__add(sum, &maps[i]->cover);
		if (perf_mmap__push(maps[i], pushed, push) < 0)
			return TEST_FAIL;
	}

	if (sum->err || pushed->bad || sum->nr_samples != pushed->samples ||
	    sum->len != pushed->len || sum->lost || sum->throttled) {
		pr_debug("the cover does not say what the records are\n");
		return TEST_FAIL;
	}
	return TEST_OK;
}

static int check_dumps(struct evlist *evlist, bool fits)
{
	struct snapshot_cover sum;
	struct pushed pushed;
	u64 newest = 0;
	int i;

	for (i = 0; i < NR_DUMPS; i++) {
		testcase();
		if (dump(evlist, &sum, &pushed))
			return TEST_FAIL;

		pr_debug("dump %d: %llu samples, %llu comms, gap of %llu bytes\n", i,
			 (unsigned long long)pushed.samples, (unsigned long long)pushed.comms,
			 (unsigned long long)sum.gap);
		if (fits && (pushed.samples != NR_ITERS || pushed.comms != NR_ITERS || sum.gap))
			return TEST_FAIL;
		if (!fits && (!pushed.samples || pushed.samples >= NR_ITERS || (i && !sum.gap)))
			return TEST_FAIL;
		if (sum.oldest <= newest || sum.newest < sum.oldest)
			return TEST_FAIL;
		newest = sum.newest;
	}

	/* Nothing has come since. */
	if (dump(evlist, &sum, &pushed) || pushed.len || sum.gap)
		return TEST_FAIL;
	return TEST_OK;
}

static int check_size(struct evlist *evlist, int pages, bool fits)
{
	char sbuf[STRERR_BUFSIZE];
	int err;

	if (evlist__open(evlist) < 0 || evlist__do_mmap(evlist, pages) < 0) {
		pr_debug("cannot open or map the event: %s\n",
			 str_error_r(errno, sbuf, sizeof(sbuf)));
		return TEST_FAIL;
	}
	evlist__enable(evlist);
	err = check_dumps(evlist, fits);
	evlist__disable(evlist);
	evlist__do_munmap(evlist);
	evlist__close(evlist);
	return err;
}

static int test__backward_snapshot(struct test_suite *test __maybe_unused,
				   int subtest __maybe_unused)
{
	struct parse_events_error parse_error;
	struct record_opts opts = {
		.target = {
			.uses_mmap = true,
		},
		.freq	      = 0,
		.mmap_pages   = 256,
		.default_interval = 1,
		.sample_time  = true,
		.sample_time_set = true,
	};
	struct evlist *evlist = evlist__new();
	int ret = TEST_FAIL, err;
	char pid[16];

	if (!evlist)
		return TEST_FAIL;

	snprintf(pid, sizeof(pid), "%d", getpid());
	target__select_all_users(&opts.target);
	opts.target.pid = pid;
	opts.target.tid = pid;
	if (evlist__create_maps(evlist, &opts.target) < 0)
		goto out;

	parse_events_error__init(&parse_error);
	err = parse_events(evlist, "syscalls:sys_enter_prctl/overwrite/", &parse_error);
	parse_events_error__exit(&parse_error);
	if (err) {
		pr_debug("Failed to parse tracepoint event, try use root\n");
		ret = TEST_SKIP;
		goto out;
	}
	evlist__config(evlist, &opts, NULL);

	ret = check_size(evlist, opts.mmap_pages, true);
	if (!ret)
		ret = check_size(evlist, 1, false);
out:
	evlist__put(evlist);
	return ret;
}

DEFINE_SUITE("Read backward ring buffer while it is written", backward_snapshot);
