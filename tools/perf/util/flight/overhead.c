// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -M --max-overhead PCT: what recording costs, and what is given up for a limit
 *
 * Theory of operation
 * -------------------
 * Once per INTERVAL the cost of the time since is put together:
 *
 *	the CPU time of the recorder and its threads, and
 *	for each event: its records, times the cost of a record
 *
 * The first one is what getrusage() says. The number of records is the count of the event, or
 * follows from the rate of a clock. The cost of a record was measured at the start, see
 * event-cost.c. The sum is compared with the CPU time of all online CPUs. Children that write
 * dumps are not counted: the cooldown bounds them, and to record less does not help. Nor are
 * the triggers.
 *
 *			 the cost is above the limit, MIN_OVER times in a row:
 *			 shed() until TARGET of it is expected
 *
 *	all is recorded ---> rates / 2 ---> / 4 ---> / 8 ---> without the most expensive event
 *			<---		<---	<---	<---  ---> without the next one ...
 *
 *			 there was room for what was given up last, calm_needed times:
 *			 give_back() one event, or the rates
 *
 * A step that would save less than WORTH of the limit is left out: if the recorder is busy with
 * something else than records, it does not help to have none.
 *
 * An event that is given up is disabled. How many records it would make is not known then.
 * COUNT_TIME of each COUNT_INTERVAL counters of the same event run, which write no record. Thus
 * an event that is still too expensive stays disabled, and is not tried again and again.
 *
 * There is room if at most ROOM of the limit is expected to be taken. The expectation has the
 * CPU time of the recorder for a record in it. Two bounds prevent oscillation: the distance
 * between ROOM and the limit, and the time. What was given back, and had to be given up again
 * within RELAPSE, waits twice as long the next time.
 *
 * A CPU that comes back has new events: flight_overhead__apply() sets the state again. A freeze of
 * the samples leaves what is given up alone.
 */
#include "overhead.h"
#include "event-cost.h"
#include "../base-api.h"
#include "../cgroup.h"
#include "../clockid.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../json-writer.h"
#include "../time-utils.h"
#include "../../perf-sys.h"

#include <internal/xyarray.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define INTERVAL	((u64)NSEC_PER_SEC)
/* To read a count interrupts a CPU: not more often than that, per count. */
#define COUNT_SPACING	((u64)NSEC_PER_MSEC)

#define COUNT_INTERVAL	((u64)(2 * NSEC_PER_SEC))
#define COUNT_TIME	((u64)(100 * NSEC_PER_MSEC))

#define MAX_SHIFT	3
#define MIN_OVER	2
/* An event that takes a smaller part of the limit is not worth giving up. */
#define WORTH		0.01
#define TARGET		0.9
#define ROOM		0.7
#define MIN_CALM	3
#define MAX_CALM	192
#define RELAPSE		((u64)(60 * NSEC_PER_SEC))

/* With fewer records the CPU time of the recorder does not depend on them. */
#define MANY_RECORDS	1000

static __printf(2, 3) void tell(struct flight_overhead *o, const char *fmt, ...)
{
	size_t len = strlen(o->text);
	va_list ap;

	va_start(ap, fmt);
	vscnprintf(o->text + len, sizeof(o->text) - len, fmt, ap);
	va_end(ap);
}

/* Events */

static bool is_clock(const struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_SOFTWARE &&
	       (evsel->core.attr.config == PERF_COUNT_SW_CPU_CLOCK ||
		evsel->core.attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

static int nr_fds(const struct evsel *evsel)
{
	return evsel->core.fd ? xyarray__max_x(evsel->core.fd) : 0;
}

static int fd_of(const struct evsel *evsel, int x)
{
	return *(int *)xyarray__entry(evsel->core.fd, x, 0);
}

/* On all CPUs, since it was opened */
static u64 read_count(struct evsel *evsel)
{
	struct perf_counts_values count;
	u64 sum = 0;

	for (int x = 0; x < nr_fds(evsel); x++) {
		if (fd_of(evsel, x) >= 0 && !perf_evsel__read(&evsel->core, x, 0, &count))
			sum += count.val;
	}
	return sum;
}

/* Samples per second on all CPUs; of a counter at most */
static double rate(const struct flight_overhead *o, const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	double each = attr->freq ? attr->sample_freq : (double)NSEC_PER_SEC / attr->sample_period;

	return each * min(nr_fds(evsel), o->nr_cpus) / (1 << o->shift);
}

/* Records per second, with the rates as they are, if it was hit @hits times in @ns */
static double to_records(const struct flight_overhead *o, const struct overhead_event *e,
			 u64 hits, u64 ns)
{
	const struct perf_event_attr *attr = &e->evsel->core.attr;
	double most, records;

	if (is_clock(e->evsel))
		return rate(o, e->evsel);
	records = (double)hits * NSEC_PER_SEC / ns;
	if (!attr->freq)
		return records / attr->sample_period / (e->rated ? 1 << o->shift : 1);
	most = rate(o, e->evsel);
	return min(records, most);
}

/* The kernel has made a period of the frequency of a clock. */
static void set_rate(const struct overhead_event *e, unsigned int shift)
{
	const struct perf_event_attr *attr = &e->evsel->core.attr;
	u64 value;

	if (attr->freq && is_clock(e->evsel))
		value = (NSEC_PER_SEC / attr->sample_freq) << shift;
	else if (attr->freq)
		value = max_t(u64, attr->sample_freq >> shift, 1);
	else
		value = attr->sample_period << shift;
	for (int x = 0; x < nr_fds(e->evsel); x++)
		ioctl(fd_of(e->evsel, x), PERF_EVENT_IOC_PERIOD, &value);
}

/* A file for each CPU, which counts the hits of an event that is disabled. */
static int open_counters(struct overhead_event *e)
{
	struct evsel *evsel = e->evsel;
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;
	struct perf_event_attr attr = evsel->core.attr;
	struct perf_cpu cpu;
	int idx, pid = -1;

	if (e->counters)
		return 0;
	e->counters = calloc(perf_cpu_map__nr(evsel->core.cpus), sizeof(int));
	if (!e->counters)
		return -ENOMEM;
	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.freq = 0;
	attr.read_format = 0;
	attr.disabled = 1;
	attr.enable_on_exec = 0;
	attr.write_backward = 0;
	attr.precise_ip = 0;
	if (evsel->cgrp) {
		flags |= PERF_FLAG_PID_CGROUP;
		pid = evsel->cgrp->fd;
	}
	perf_cpu_map__for_each_cpu(cpu, idx, evsel->core.cpus) {
		int fd = sys_perf_event_open(&attr, pid, cpu.cpu, /*group_fd=*/-1, flags);

		if (fd >= 0 && evsel->filter &&
		    ioctl(fd, PERF_EVENT_IOC_SET_FILTER, evsel->filter)) {
			close(fd);
			fd = -1;
		}
		e->counters[e->nr_counters++] = fd;
	}
	return 0;
}

static void close_counters(struct overhead_event *e)
{
	for (int i = 0; i < e->nr_counters; i++) {
		if (e->counters[i] >= 0)
			close(e->counters[i]);
	}
	zfree(&e->counters);
	e->nr_counters = 0;
}

static void switch_counters(struct overhead_event *e, bool on)
{
	for (int i = 0; i < e->nr_counters; i++)
		ioctl(e->counters[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* Return: the hits; or -1 if none of them counts. */
static s64 read_counters(const struct overhead_event *e)
{
	s64 sum = 0;
	int nr = 0;
	u64 count;

	for (int i = 0; i < e->nr_counters; i++) {
		if (read(e->counters[i], &count, sizeof(count)) == sizeof(count)) {
			sum += count;
			nr++;
		}
	}
	return nr ? sum : -1;
}

/* The cost */

/**
 * flight_overhead__cpu_time - the CPU time of the recorder, or of its children
 * @who: as for getrusage()
 *
 * Return: the time in ns, of user space and of the kernel.
 */
u64 flight_overhead__cpu_time(int who)
{
	struct rusage ru;

	if (getrusage(who, &ru))
		return 0;
	return (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * NSEC_PER_USEC;
}

/* Of ns per second, on all CPUs */
static double to_part(const struct flight_overhead *o, double ns)
{
	return ns / NSEC_PER_SEC / o->nr_cpus;
}

/* The part that an event takes, with what the recorder does for its records */
static double part_of(const struct flight_overhead *o, const struct overhead_event *e,
		      double records)
{
	return to_part(o, records * (e->cost + o->own_per_record));
}

/* What lower rates save, or the former rates take */
static double part_of_rates(const struct flight_overhead *o)
{
	double sum = 0;

	for (int i = 0; i < o->nr_events; i++) {
		if (o->events[i].rated && !o->events[i].given_up)
			sum += part_of(o, &o->events[i], o->events[i].records);
	}
	return sum;
}

/* A new time begins; @now: CLOCK_MONOTONIC */
static void begin_interval(struct flight_overhead *o, u64 now)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u64 reads = 0;

	for (int i = 0; i < o->nr_events; i++) {
		struct overhead_event *e = &o->events[i];

		if (is_clock(e->evsel) || e->given_up)
			continue;
		e->count = read_count(e->evsel);
		reads += nr_fds(e->evsel);
	}
	o->nr_cpus = max(nr_cpus, 1L);
	o->own = flight_overhead__cpu_time(RUSAGE_SELF);
	o->last = now;
	o->due = now + max(INTERVAL, reads * COUNT_SPACING);
}

static void measure(struct flight_overhead *o, u64 now)
{
	double records = 0, sum, own = flight_overhead__cpu_time(RUSAGE_SELF) - o->own;
	u64 ns = now - o->last;

	sum = own * NSEC_PER_SEC / ns;
	for (int i = 0; i < o->nr_events; i++) {
		struct overhead_event *e = &o->events[i];
		u64 count;

		if (e->given_up)
			continue;
		count = is_clock(e->evsel) ? 0 : read_count(e->evsel);
		/* The events of a CPU that came back begin at zero. */
		e->records = to_records(o, e, count > e->count ? count - e->count : 0, ns);
		sum += e->records * e->cost;
		records += e->records;
	}
	o->measured = to_part(o, sum);
	if (records > MANY_RECORDS)
		o->own_per_record = own * NSEC_PER_SEC / ns / records;
}

/* Less, and more */

static struct overhead_event *most_expensive(struct flight_overhead *o)
{
	struct overhead_event *most = NULL;

	for (int i = 0; i < o->nr_events; i++) {
		struct overhead_event *e = &o->events[i];

		if (!e->given_up && part_of(o, e, e->records) > o->limit * WORTH &&
		    (!most || e->records * e->cost > most->records * most->cost))
			most = e;
	}
	return most;
}

static void give_up(struct flight_overhead *o, struct overhead_event *e)
{
	evsel__disable(e->evsel);
	e->given_up = true;
	o->order[o->nr_given_up++] = e - o->events;
}

static struct overhead_event *last_given_up(const struct flight_overhead *o)
{
	return &o->events[o->order[o->nr_given_up - 1]];
}

static void stop_counting(struct flight_overhead *o)
{
	if (o->count_until)
		switch_counters(last_given_up(o), false);
	o->count_until = 0;
}

/* From the first step that is left, until the limit is expected to be kept. */
static void shed(struct flight_overhead *o, u64 now)
{
	double expected = o->measured;
	unsigned int shift = o->shift;
	struct overhead_event *e;

	stop_counting(o);
	while (o->shift < MAX_SHIFT && expected > o->limit * TARGET) {
		double saved = part_of_rates(o) / 2;

		if (saved < o->limit * WORTH)
			break;
		for (int i = 0; i < o->nr_events; i++) {
			if (o->events[i].rated)
				o->events[i].records /= 2;
		}
		expected -= saved;
		o->shift++;
	}
	if (o->shift != shift)
		tell(o, "%s sampling rates are divided by %d", *o->text ? ";" : "", 1 << o->shift);
	while (expected > o->limit * TARGET && (e = most_expensive(o)) != NULL) {
		double saved = part_of(o, e, e->records);

		give_up(o, e);
		tell(o, "%s %s (%.2f %%) is given up", *o->text ? ";" : "",
		     evsel__name(e->evsel), saved * 100);
		expected -= saved;
	}
	if (!*o->text && !o->told_all) {
		tell(o, " nothing is left whose loss would help");
		o->told_all = true;
	}
	o->calm = 0;
	o->over = 0;
	if (o->gave_back && now < o->gave_back + RELAPSE)
		o->calm_needed = min(2 * o->calm_needed, MAX_CALM);
	else if (*o->text)
		o->calm_needed = MIN_CALM;
	o->gave_back = 0;
	flight_overhead__apply(o);
}

static bool is_calm(struct flight_overhead *o, double expected)
{
	o->calm = expected <= o->limit * ROOM ? o->calm + 1 : 0;
	return o->calm >= o->calm_needed;
}

static void gave_back(struct flight_overhead *o, u64 now)
{
	o->calm = 0;
	o->told_all = false;
	o->gave_back = now;
	flight_overhead__apply(o);
	begin_interval(o, now);
}

/* To the lowest divisor for which there is room. All events are recorded. */
static void look_at_rates(struct flight_overhead *o, u64 now)
{
	double one = part_of_rates(o), expected = o->measured + one;
	unsigned int shift = o->shift - 1;

	if (!is_calm(o, expected))
		return;
	for (double more = 2 * one; shift; shift--, more *= 2) {
		if (expected + more > o->limit * ROOM)
			break;
		expected += more;
	}
	o->shift = shift;
	if (shift)
		tell(o, " sampling rates are divided by %d", 1 << shift);
	else
		tell(o, " sampling rates are those of the start again");
	gave_back(o, now);
}

static void begin_counting(struct flight_overhead *o, u64 now)
{
	struct overhead_event *e = last_given_up(o);
	s64 before;

	/* Of a clock nothing is to be counted. */
	if (is_clock(e->evsel)) {
		o->count_until = now;
		return;
	}
	if (open_counters(e))
		return;
	before = read_counters(e);
	if (before < 0)
		return;
	e->count = before;
	switch_counters(e, true);
	o->count_until = now + COUNT_TIME;
}

static void end_counting(struct flight_overhead *o, u64 now)
{
	struct overhead_event *e = last_given_up(o);
	u64 began = o->count_until - COUNT_TIME, hits = 0;

	stop_counting(o);
	if (!is_clock(e->evsel))
		hits = max_t(s64, read_counters(e), e->count) - e->count;
	e->records = to_records(o, e, hits, now - began);
	if (!is_calm(o, o->measured + part_of(o, e, e->records)))
		return;
	close_counters(e);
	o->nr_given_up--;
	e->given_up = false;
	evsel__enable(e->evsel);
	tell(o, " %s is recorded again", evsel__name(e->evsel));
	gave_back(o, now);
}

static bool counts_now(const struct flight_overhead *o, u64 now)
{
	return (now / INTERVAL) % (COUNT_INTERVAL / INTERVAL) == 0;
}

static void look(struct flight_overhead *o, u64 now)
{
	measure(o, now);
	o->over = o->measured > o->limit ? o->over + 1 : 0;
	if (o->over >= MIN_OVER)
		shed(o, now);
	else if (o->over)
		o->calm = 0;
	else if (o->nr_given_up && !o->count_until && counts_now(o, now))
		begin_counting(o, now);
	else if (!o->nr_given_up && o->shift)
		look_at_rates(o, now);
	begin_interval(o, now);
}

/* Again, if --control has enabled all events meanwhile. */
static void disable_given_up(const struct flight_overhead *o)
{
	for (int i = 0; i < o->nr_given_up; i++) {
		struct evsel *evsel = o->events[o->order[i]].evsel;

		if (!evsel->disabled)
			evsel__disable(evsel);
	}
}

/**
 * flight_overhead__run - compare the cost with the limit, and act
 * @o: the state
 * @now: CLOCK_MONOTONIC in ns
 *
 * Return: what was done, as a line for the log; or NULL.
 */
const char *flight_overhead__run(struct flight_overhead *o, u64 now)
{
	char what[sizeof(o->text)];

	if (!o->limit)
		return NULL;
	/* All events are disabled, by a freeze or by --control. */
	if (!evlist__enabled(o->evlist)) {
		begin_interval(o, now);
		return NULL;
	}
	disable_given_up(o);
	*o->text = '\0';
	if (o->count_until && now >= o->count_until)
		end_counting(o, now);
	if (now >= o->due)
		look(o, now);
	if (!*o->text)
		return NULL;
	clockid__read(o->clockid, &o->acted);
	memcpy(what, o->text, sizeof(what));
	*o->text = '\0';
	tell(o, "Recording takes %.2f %% of the CPU time (--max-overhead %g):%s.\n",
	     o->measured * 100, o->limit * 100, what);
	return o->text;
}

/* When there is something to do. */
u64 flight_overhead__next(const struct flight_overhead *o)
{
	if (!o->limit)
		return -1ULL;
	return o->count_until ? min(o->count_until, o->due) : o->due;
}

/**
 * flight_overhead__apply - set rates again, and disable what is given up
 * @o: the state
 *
 * After others have opened some of the events again.
 */
void flight_overhead__apply(struct flight_overhead *o)
{
	for (int i = 0; i < o->nr_events; i++) {
		struct overhead_event *e = &o->events[i];

		if (e->rated)
			set_rate(e, o->shift);
		if (e->given_up)
			evsel__disable(e->evsel);
	}
}

static char *names_of_given_up(const struct flight_overhead *o)
{
	char *names = NULL;
	size_t size;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return NULL;
	for (int i = 0; i < o->nr_given_up; i++)
		fprintf(f, "%s%s", i ? "," : "", evsel__name(o->events[o->order[i]].evsel));
	if (fclose(f))
		zfree(&names);
	return names;
}

/**
 * flight_overhead__print - write the members of a JSON object
 * @o: the state; without a limit there are none
 * @w: where
 */
void flight_overhead__print(const struct flight_overhead *o, struct json_writer *w)
{
	char *names;

	if (!o || !o->limit)
		return;
	/* A percentage, with so many digits */
	json_writer__seconds(w, "max_overhead", o->limit * 100 * NSEC_PER_SEC + 0.5, 3);
	json_writer__seconds(w, "overhead", o->measured * 100 * NSEC_PER_SEC, 3);
	json_writer__number(w, "rate_divisor", 1 << o->shift);
	json_writer__number(w, "nr_events_given_up", o->nr_given_up);
	names = names_of_given_up(o);
	if (names && *names)
		json_writer__string(w, "events_given_up", names);
	free(names);
	if (o->acted)
		json_writer__seconds(w, "overhead_acted", o->acted, 9);
}

static bool makes_records(const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	/* Those of a group that its leader samples have no period. */
	return !evsel__is_dummy_event((struct evsel *)evsel) &&
	       (attr->freq ? attr->sample_freq : attr->sample_period);
}

static void add_event(struct flight_overhead *o, struct evsel *evsel, struct evsel **last,
		      struct event_cost *cost)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	struct overhead_event *e = &o->events[o->nr_events++];

	if (!*last || !event_cost__is_like(&(*last)->core.attr, attr))
		event_cost__measure(attr, cost);
	*last = evsel;
	*e = (struct overhead_event) {
		.evsel	= evsel,
		.rated	= attr->freq || attr->sample_period > 1,
	};
	e->cost = e->rated ? cost->sample : cost->record;
	pr_debug("--max-overhead: a record of %s costs %llu ns%s\n", evsel__name(evsel),
		 (unsigned long long)e->cost, cost->measured ? "" : ", not measured");
}

/**
 * flight_overhead__start - measure what records cost, and begin to watch
 * @o: the state, zeros
 * @limit: part of the CPU time; 0: no limit, nothing is done
 * @evlist: the events, which are open
 * @clockid: the clock of the records, or -1
 *
 * Return: 0 or -ENOMEM.
 */
int flight_overhead__start(struct flight_overhead *o, double limit, struct evlist *evlist,
			   int clockid)
{
	struct event_cost cost = {};
	struct evsel *evsel, *last = NULL;

	if (!limit)
		return 0;
	o->events = calloc(evlist__nr_entries(evlist), sizeof(*o->events));
	o->order = calloc(evlist__nr_entries(evlist), sizeof(*o->order));
	if (!o->events || !o->order)
		return -ENOMEM;
	o->limit = limit;
	o->evlist = evlist;
	o->clockid = clockid;
	o->calm_needed = MIN_CALM;
	evlist__for_each_entry(evlist, evsel) {
		if (makes_records(evsel))
			add_event(o, evsel, &last, &cost);
	}
	begin_interval(o, rdclock());
	return 0;
}

void flight_overhead__exit(struct flight_overhead *o)
{
	for (int i = 0; i < o->nr_events; i++)
		close_counters(&o->events[i]);
	zfree(&o->events);
	zfree(&o->order);
	o->nr_events = 0;
}
