/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_OVERHEAD_H
#define __PERF_FLIGHT_OVERHEAD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct evsel;
struct json_writer;

/**
 * struct overhead_event - an event, and what it costs
 * @evsel: the event
 * @cost: ns of a record
 * @rated: it takes samples at a rate, which can be lowered
 * @count: hits at the last look, on all CPUs
 * @records: records per second since the last look
 * @given_up: it is disabled
 * @counters: of an event that is given up: file descriptors that count its hits, or -1
 * @nr_counters: how many
 */
struct overhead_event {
	struct evsel	*evsel;
	u64		cost;
	bool		rated;
	u64		count;
	double		records;
	bool		given_up;
	int		*counters;
	int		nr_counters;
};

/**
 * struct flight_overhead - what recording costs, and what was given up for the limit
 * @limit: part of the CPU time of all CPUs; 0: no limit
 * @evlist: the events
 * @events: those of @evlist that make records
 * @nr_events: how many
 * @order: those that are given up, as indexes of @events, the last one at the end
 * @nr_given_up: how many
 * @shift: sampling rates are divided by 2 to the power of it
 * @nr_cpus: CPUs that are online
 * @clockid: the clock of the records, or -1
 * @measured: what it was at the last look, as part of the CPU time
 * @own_per_record: CPU time of the recorder for a record, in ns
 * @own: CPU time of the recorder at the last look
 * @last: time of the last look; CLOCK_MONOTONIC in ns, as all times but @acted
 * @due: time of the next look
 * @count_until: the hits of the event that was given up last are counted until then, or 0
 * @over: how often in a row it was above the limit
 * @calm: how often in a row there was room for what was given up last
 * @calm_needed: how often it takes
 * @gave_back: when something was given back last, or 0
 * @acted: when the last step was, on the clock of the records, or 0
 * @told_all: it was told that nothing is left
 * @text: what has happened, for the log
 */
struct flight_overhead {
	double			limit;
	struct evlist		*evlist;
	struct overhead_event	*events;
	int			nr_events;
	int			*order;
	int			nr_given_up;
	unsigned int		shift;
	int			nr_cpus;
	int			clockid;
	double			measured;
	double			own_per_record;
	u64			own;
	u64			last;
	u64			due;
	u64			count_until;
	unsigned int		over;
	unsigned int		calm;
	unsigned int		calm_needed;
	u64			gave_back;
	u64			acted;
	bool			told_all;
	char			text[1024];
};

int flight_overhead__start(struct flight_overhead *o, double limit, struct evlist *evlist,
			   int clockid);
const char *flight_overhead__run(struct flight_overhead *o, u64 now);
u64 flight_overhead__next(const struct flight_overhead *o);
void flight_overhead__apply(struct flight_overhead *o);
void flight_overhead__print(const struct flight_overhead *o, struct json_writer *w);
void flight_overhead__exit(struct flight_overhead *o);
u64 flight_overhead__cpu_time(int who);

#endif /* __PERF_FLIGHT_OVERHEAD_H */
