// SPDX-License-Identifier: GPL-2.0
/*
 * A ring buffer that is written while it is read, as perf record does it: each record is
 * read once, or counted by the kernel as lost. One thread takes page faults, each of
 * which is a sample; another one reads all the time.
 */
#include <evlist.h>
#include "debug.h"
#include "parse-events.h"
#include "record.h"
#include "tests.h"
#include "util/mmap.h"
#include "util/base-api.h"
#include <internal/lib.h>
#include <errno.h>
#include <linux/compiler.h>
#include <linux/string.h>
#include <perf/mmap.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define NR_PAGES	256
#define NR_ROUNDS	400

/* @skip: bytes of the last record that come with the next piece */
struct reader {
	struct evlist	*evlist;
	bool		stop;
	size_t		skip;
	u64		samples;
	u64		pieces;
	int		err;
};

static int count_samples(struct mmap *map __maybe_unused, void *to, void *buf, size_t size)
{
	struct reader *r = to;
	size_t offset = r->skip;

	r->pieces++;
	while (offset < size) {
		const struct perf_event_header *header = buf + offset;

		if (header->size < sizeof(*header))
			return -1;
		r->samples += header->type == PERF_RECORD_SAMPLE;
		offset += header->size;
	}
	r->skip = offset - size;
	return 0;
}

static void read_all(struct reader *r)
{
	int i;

	for (i = 0; i < evlist__core(r->evlist)->nr_mmaps; i++) {
		if (perf_mmap__push(&evlist__mmap(r->evlist)[i], r, count_samples) < 0)
			r->err = -1;
	}
}

static void *read_on(void *data)
{
	struct reader *r = data;

	while (!READ_ONCE(r->stop) && !r->err)
		read_all(r);
	return NULL;
}

static void touch(char *pages)
{
	int i;

	for (i = 0; i < NR_PAGES; i++)
		WRITE_ONCE(pages[(size_t)i * page_size], 1);
	madvise(pages, NR_PAGES * (size_t)page_size, MADV_DONTNEED);
}

static int check(struct evlist *evlist, char *pages)
{
	struct perf_evsel *evsel = &evlist__first(evlist)->core;
	struct reader r = { .evlist = evlist };
	struct perf_counts_values count;
	pthread_t thread;
	int i;

	if (pthread_create(&thread, NULL, read_on, &r)) {
		pr_debug("cannot create a thread\n");
		return TEST_FAIL;
	}
	evlist__enable(evlist);
	for (i = 0; i < NR_ROUNDS; i++)
		touch(pages);
	WRITE_ONCE(r.stop, true);
	pthread_join(thread, NULL);
	evlist__disable(evlist);
	read_all(&r);
	if (perf_evsel__read(evsel, 0, 0, &count)) {
		pr_debug("cannot read the counter\n");
		return TEST_FAIL;
	}
	pr_debug("%llu page faults, %llu samples in %llu pieces, %llu lost\n",
		 (unsigned long long)count.val, (unsigned long long)r.samples,
		 (unsigned long long)r.pieces, (unsigned long long)count.lost);
	if (r.err || r.skip || count.val < NR_ROUNDS * NR_PAGES ||
	    r.samples + count.lost > count.val)
		return TEST_FAIL;
	/* Kernels before 6.0 do not count what is lost. */
	if (evsel->attr.read_format & PERF_FORMAT_LOST && r.samples + count.lost < count.val)
		return TEST_FAIL;
	return TEST_OK;
}

static int open_event(struct evlist *evlist)
{
	struct parse_events_error parse_error;
	struct record_opts opts = {
		.target = {
			.uses_mmap = true,
		},
		.no_inherit	  = true,
		.freq		  = 0,
		.mmap_pages	  = 256,
		.default_interval = 1,
	};
	char sbuf[STRERR_BUFSIZE], tid[16];
	int err;

	snprintf(tid, sizeof(tid), "%d", getpid());
	target__select_all_users(&opts.target);
	opts.target.tid = tid;
	if (evlist__create_maps(evlist, &opts.target) < 0)
		return TEST_FAIL;

	parse_events_error__init(&parse_error);
	err = parse_events(evlist, "page-faults:u", &parse_error);
	parse_events_error__exit(&parse_error);
	if (err) {
		pr_debug("cannot parse the event\n");
		return TEST_FAIL;
	}
	evlist__config(evlist, &opts, NULL);
	err = evlist__open(evlist);
	if (err < 0) {
		pr_debug("cannot open the event: %s\n", str_error_r(-err, sbuf, sizeof(sbuf)));
		return err == -EACCES || err == -EPERM ? TEST_SKIP : TEST_FAIL;
	}
	if (evlist__do_mmap(evlist, opts.mmap_pages) < 0) {
		pr_debug("cannot map the event: %s\n", str_error_r(errno, sbuf, sizeof(sbuf)));
		return TEST_FAIL;
	}
	return TEST_OK;
}

static int test__mmap_push(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	size_t len = NR_PAGES * (size_t)page_size;
	struct evlist *evlist = evlist__new();
	int ret = TEST_FAIL;
	char *pages;

	if (!evlist)
		return TEST_FAIL;
	pages = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		goto out;
	/* Not one fault for many pages. */
	madvise(pages, len, MADV_NOHUGEPAGE);
	ret = open_event(evlist);
	if (!ret)
		ret = check(evlist, pages);
	munmap(pages, len);
out:
	evlist__put(evlist);
	return ret;
}

DEFINE_SUITE("Read ring buffer while it is written", mmap_push);
