// SPDX-License-Identifier: GPL-2.0
/*
 * Writes made-up recordings, for tests and benchmarks of whatever reads them.
 *
 * Time goes on by 100 ns for each event of the machine. Pass n reads the
 * buffers one after the other while the machine runs on, as perf record does:
 * what it finds in the buffer of CPU c goes up to a time of
 *
 *	cut(n, c) = pass length * (n + 1 + c / (2 * CPUs))
 *
 * so that a later buffer holds events that are newer than those missed in the
 * earlier ones, and the events of pass n end at cut(n, CPUs - 1) at the latest,
 * before pass n + 1 reads its first buffer. That is the invariant of rounds;
 * nothing but @late breaks it.
 *
 * Each event carries its number in the file as its period, so that two of them
 * never look the same when they are printed.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <perf/event.h>
#include "../util/data.h"
#include "../util/header.h"
#include "synth-data.h"

#define SYNTH_STEP	100ULL
#define SYNTH_START	1000000000ULL
#define SYNTH_MAGIC	0x32454c4946524550ULL	/* "PERFILE2" */
#define SYNTH_ID	1000ULL

struct synth_attr {
	struct perf_event_attr		attr;
	struct perf_file_section	ids;
};

struct synth_sample {
	struct perf_event_header	header;
	u64				id;
	u64				ip;
	u32				pid, tid;
	u64				time;
	u32				cpu, reserved;
	u64				period;
};

/* The fields of sample_id_all are those of the sample, in their own order. */
struct synth_comm {
	struct perf_event_header	header;
	u32				pid, tid;
	char				comm[16];
	u32				id_pid, id_tid;
	u64				time;
	u32				cpu, reserved;
	u64				id;
};

struct synth_writer {
	const struct synth_data	*sd;
	FILE			*file;
	u64			serial;
	u64			random;
	u64			*times;
};

static u64 synth__random(struct synth_writer *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static bool synth__chance(struct synth_writer *w, unsigned int of_1000)
{
	return of_1000 && synth__random(w) % 1000 < of_1000;
}

static int synth__put(struct synth_writer *w, const void *p, size_t size)
{
	return fwrite(p, size, 1, w->file) == 1 ? 0 : -EIO;
}

static u32 synth__pid(const struct synth_data *sd, unsigned int cpu)
{
	return 100 + cpu % sd->nr_tasks;
}

static int synth__put_comm(struct synth_writer *w, unsigned int cpu, u64 time)
{
	u32 pid = synth__pid(w->sd, cpu);
	struct synth_comm comm = {
		.header	= { .type = PERF_RECORD_COMM, .size = sizeof(comm) },
		.pid	= pid,
		.tid	= pid,
		.id_pid	= pid,
		.id_tid	= pid,
		.time	= time,
		.cpu	= cpu,
		.id	= SYNTH_ID,
	};

	snprintf(comm.comm, sizeof(comm.comm), "task%" PRIu64, w->serial++);
	return synth__put(w, &comm, sizeof(comm));
}

static int synth__put_sample(struct synth_writer *w, unsigned int cpu, u64 time)
{
	u32 pid = synth__pid(w->sd, cpu);
	struct synth_sample sample = {
		.header	= { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER,
			    .size = sizeof(sample) },
		.id	= SYNTH_ID + synth__random(w) % w->sd->nr_evsels,
		.ip	= 0x400000 + synth__random(w) % 0x1000,
		.pid	= pid,
		.tid	= pid,
		.time	= time,
		.cpu	= cpu,
		.period	= ++w->serial,
	};

	return synth__put(w, &sample, sizeof(sample));
}

static int synth__put_round(struct synth_writer *w)
{
	struct perf_event_header header = {
		.type = PERF_RECORD_FINISHED_ROUND,
		.size = sizeof(header),
	};

	return synth__put(w, &header, sizeof(header));
}

static u64 synth__cut(const struct synth_data *sd, u64 round, unsigned int cpu)
{
	u64 pass = SYNTH_STEP * sd->nr_cpus * sd->nr_events;

	return pass * (round + 1) + pass / (2 * sd->nr_cpus) * cpu;
}

/* What one pass finds in the buffer of one CPU. */
static int synth__put_buffer(struct synth_writer *w, unsigned int round, unsigned int cpu)
{
	const struct synth_data *sd = w->sd;
	u64 from = round ? synth__cut(sd, round - 1, cpu) : 0;
	u64 length = synth__cut(sd, round, cpu) - from;
	unsigned int i, nr = sd->nr_events;
	int err = 0;

	for (i = 0; i < nr; i++) {
		u64 time = from + length * i / nr + synth__random(w) % (length / nr);

		w->times[i] = SYNTH_START + time / sd->ties * sd->ties;
	}

	for (i = 1; i < nr; i++) {
		if (synth__chance(w, sd->disorder)) {
			u64 time = w->times[i - 1];

			w->times[i - 1] = w->times[i];
			w->times[i] = time;
		}
	}

	for (i = 0; i < nr && !err; i++) {
		u64 time = w->times[sd->backward ? nr - 1 - i : i];

		if (round >= 3 && synth__chance(w, sd->late))
			time -= 3 * length;
		if (synth__chance(w, sd->side_band))
			err = synth__put_comm(w, cpu, time);
		else
			err = synth__put_sample(w, cpu, time);
	}

	return err;
}

static int synth__put_timeless(struct synth_writer *w)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < w->sd->timeless && !err; i++)
		err = synth__put_comm(w, i % w->sd->nr_cpus, 0);
	return err;
}

static int synth__put_passes(struct synth_writer *w)
{
	unsigned int round, cpu;
	int err = synth__put_timeless(w);

	for (round = 0; round < w->sd->nr_rounds && !err; round++) {
		for (cpu = 0; cpu < w->sd->nr_cpus && !err; cpu++)
			err = synth__put_buffer(w, round, cpu);
		if (!err && !w->sd->no_rounds)
			err = synth__put_round(w);
	}

	return err;
}

static struct perf_event_attr synth__attr(const struct synth_data *sd, unsigned int idx)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= idx % 2 ? PERF_COUNT_SW_TASK_CLOCK : PERF_COUNT_SW_CPU_CLOCK,
		.size		= sizeof(struct perf_event_attr),
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				  PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.sample_id_all	= 1,
		.comm		= 1,
		.write_backward	= sd->backward,
	};
}

/*
 * Header, attributes, their ids, data, and for a directory the section of its
 * format.
 */
static int synth__write_file(struct synth_writer *w)
{
	const struct synth_data *sd = w->sd;
	struct perf_file_section section = { .size = sizeof(u64) };
	u64 ids = sizeof(struct perf_file_header) + sd->nr_evsels * sizeof(struct synth_attr);
	struct perf_file_header header = {
		.magic		= SYNTH_MAGIC,
		.size		= sizeof(header),
		.attr_size	= sizeof(struct synth_attr),
		.attrs		= { .offset = sizeof(header),
				    .size = sd->nr_evsels * sizeof(struct synth_attr) },
		.data		= { .offset = ids + sd->nr_evsels * sizeof(u64) },
	};
	u64 version = PERF_DIR_VERSION;
	unsigned int i;
	int err;

	if (sd->form == SYNTH_FORM__DIR)
		__set_bit(HEADER_DIR_FORMAT, header.adds_features);

	err = synth__put(w, &header, sizeof(header));
	for (i = 0; i < sd->nr_evsels && !err; i++) {
		struct synth_attr attr = {
			.attr	= synth__attr(sd, i),
			.ids	= { .offset = ids + i * sizeof(u64), .size = sizeof(u64) },
		};

		err = synth__put(w, &attr, sizeof(attr));
	}
	for (i = 0; i < sd->nr_evsels && !err; i++) {
		u64 id = SYNTH_ID + i;

		err = synth__put(w, &id, sizeof(id));
	}
	if (!err && sd->form == SYNTH_FORM__DIR) {
		/* Data that is not there is an error, so the file gets at least one event. */
		err = synth__put_timeless(w) ?: synth__put_comm(w, 0, 0);
	} else if (!err) {
		err = synth__put_passes(w);
	}
	if (err)
		return err;

	header.data.size = ftell(w->file) - header.data.offset;
	if (sd->form == SYNTH_FORM__DIR) {
		section.offset = ftell(w->file) + sizeof(section);
		err = synth__put(w, &section, sizeof(section)) ?:
		      synth__put(w, &version, sizeof(version));
	}
	if (!err && fseek(w->file, 0, SEEK_SET))
		err = -errno;

	return err ?: synth__put(w, &header, sizeof(header));
}

static int synth__write_pipe(struct synth_writer *w)
{
	struct perf_pipe_file_header header = {
		.magic	= SYNTH_MAGIC,
		.size	= sizeof(header),
	};
	unsigned int i;
	int err = synth__put(w, &header, sizeof(header));

	for (i = 0; i < w->sd->nr_evsels && !err; i++) {
		struct {
			struct perf_event_header	header;
			struct perf_event_attr		attr;
			u64				id;
		} event = {
			.header	= { .type = PERF_RECORD_HEADER_ATTR, .size = sizeof(event) },
			.attr	= synth__attr(w->sd, i),
			.id	= SYNTH_ID + i,
		};

		err = synth__put(w, &event, sizeof(event));
	}

	return err ?: synth__put_passes(w);
}

static int synth__open(struct synth_writer *w, const char *path)
{
	w->file = strcmp(path, "-") ? fopen(path, "w") : stdout;
	return w->file ? 0 : -errno;
}

static int synth__close(struct synth_writer *w, int err)
{
	int ret = w->file == stdout ? fflush(w->file) : fclose(w->file);

	return err ?: ret ? -EIO : 0;
}

/* PATH/data has no events with a time; PATH/data.N has those of one CPU. */
static int synth__write_dir(struct synth_writer *w, const char *dir)
{
	const struct synth_data *sd = w->sd;
	unsigned int cpu, round;
	char path[PATH_MAX];
	int err;

	if (mkdir(dir, 0700))
		return -errno;

	snprintf(path, sizeof(path), "%s/data", dir);
	err = synth__open(w, path);
	if (err)
		return err;
	err = synth__close(w, synth__write_file(w));

	for (cpu = 0; cpu < sd->nr_cpus && !err; cpu++) {
		snprintf(path, sizeof(path), "%s/data.%u", dir, cpu);
		err = synth__open(w, path);
		if (err)
			break;
		for (round = 0; round < sd->nr_rounds && !err; round++)
			err = synth__put_buffer(w, round, cpu);
		err = synth__close(w, err);
	}

	return err;
}

/**
 * synth_data__write() - write a made-up recording
 * @sd:   what it is like
 * @path: file or directory to make; "-" is the standard output
 *
 * Return: 0, or a negative errno.
 */
int synth_data__write(const struct synth_data *sd, const char *path)
{
	struct synth_writer w = {
		.sd	= sd,
		.random	= 0x9e3779b97f4a7c15ULL ^ sd->seed,
	};
	int err;

	if (!sd->nr_cpus || !sd->nr_events || !sd->nr_evsels || !sd->nr_tasks || !sd->ties)
		return -EINVAL;

	w.times = calloc(sd->nr_events, sizeof(*w.times));
	if (!w.times)
		return -ENOMEM;

	if (sd->form == SYNTH_FORM__DIR) {
		err = synth__write_dir(&w, path);
	} else {
		err = synth__open(&w, path);
		if (!err) {
			err = sd->form == SYNTH_FORM__PIPE ? synth__write_pipe(&w) :
							     synth__write_file(&w);
			err = synth__close(&w, err);
		}
	}

	zfree(&w.times);
	return err;
}
