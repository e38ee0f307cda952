/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BENCH_SYNTH_DATA_H
#define __PERF_BENCH_SYNTH_DATA_H

#include <stdbool.h>
#include <linux/types.h>

enum synth_form {
	SYNTH_FORM__FILE,
	SYNTH_FORM__PIPE,
	SYNTH_FORM__DIR,
};

/**
 * struct synth_data - what a made-up recording looks like
 * @nr_cpus:   buffers that are read, one after the other, in each pass
 * @nr_rounds: passes
 * @nr_events: events that each CPU has in each pass
 * @nr_evsels: the samples are of so many events
 * @nr_tasks:  so many tasks run, each on the same CPUs
 * @disorder:  in 1000 neighbours so many are swapped
 * @late:      of 1000 events so many come three passes too late
 * @ties:      times are multiples of so many nanoseconds; the mean distance of
 *             two events is 100
 * @side_band: of 1000 events so many are PERF_RECORD_COMM
 * @timeless:  events without a time, at the head of the data
 * @seed:      the same seed gives the same file
 * @backward:  each pass gives the events of a CPU newest first
 * @no_rounds: do not write PERF_RECORD_FINISHED_ROUND
 * @form:      how it is stored
 */
struct synth_data {
	unsigned int	nr_cpus;
	unsigned int	nr_rounds;
	unsigned int	nr_events;
	unsigned int	nr_evsels;
	unsigned int	nr_tasks;
	unsigned int	disorder;
	unsigned int	late;
	unsigned int	ties;
	unsigned int	side_band;
	unsigned int	timeless;
	unsigned int	seed;
	bool		backward;
	bool		no_rounds;
	enum synth_form	form;
};

int synth_data__write(const struct synth_data *sd, const char *path);

#endif /* __PERF_BENCH_SYNTH_DATA_H */
