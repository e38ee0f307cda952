/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_OPTS_H
#define __PERF_FLIGHT_OPTS_H

#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct flight_trigger;
struct option;
struct perf_data;
struct record_opts;

/**
 * struct flight_opts - options of the flight recorder
 * @memory: bytes for samples and side-band (-M); 0: no flight recorder
 * @max_age: maximum age of a round in ns (--max-age); 0: no limit
 * @store: bytes of that for what perf keeps itself; of --overwrite the side-band alone
 * @overwrite: the ring buffers keep the samples (--overwrite)
 * @comp_level: zstd level for records in memory (-z); 0: no compression
 * @persistent: the events are those of a persistent session (-e persistent/NAME/)
 * @fair: divide the memory among cgroups (--fair cgroup)
 * @record_self: record what the recorder itself does, too (--record-self)
 * @record: the other options of perf record, which last as long
 * @user: whose tasks alone are recorded (-u), or NULL
 * @dry_run: measure for one second and print an estimate (--dry-run)
 * @max_files: maximum number of dumps (--max-files); 0: no limit
 * @max_disk: maximum size of all dumps (--max-disk); 0: no limit
 * @max_disk_given: the user has set @max_disk
 * @max_overhead: part of the CPU time that recording may take (--max-overhead); 0: no limit
 * @max_overhead_given: the user has set @max_overhead
 * @max_dump_age: maximum age of a dump in ns (--max-dump-age); 0: no limit
 * @dump_timeout: ns after which a child that writes a file is killed (--dump-timeout)
 * @combine: combine existing dumps and exit (--combine)
 * @keep: keep the combined dumps (--keep)
 * @daemon: run without a terminal (--daemon)
 * @archive: write an archive for each dump (--archive)
 * @on_dump: command to run for each dump (--on-dump), or NULL
 * @triggers: the triggers (--trigger)
 * @out: prefix of the names of the dumps (-o)
 * @flight: all defaults (--flight)
 * @config: defaults of the configuration: @size for -M auto or 0, @out or NULL, the set of
 *	    events of --flight or NULL, and @max_overhead or 0
 */
struct flight_opts {
	u64			memory;
	u64			max_age;
	u64			store;
	bool			overwrite;
	unsigned int		comp_level;
	bool			persistent;
	bool			fair;
	bool			record_self;
	struct record_opts	*record;
	const char		*user;
	bool			dry_run;
	unsigned int		max_files;
	u64			max_disk;
	bool			max_disk_given;
	double			max_overhead;
	bool			max_overhead_given;
	u64			max_dump_age;
	u64			dump_timeout;
	bool			combine;
	bool			keep;
	bool			daemon;
	bool			archive;
	const char		*on_dump;
	struct flight_trigger	*triggers;
	const char		*out;
	bool			flight;
	struct {
		u64		size;
		char		*out;
		char		*event_set;
		double		max_overhead;
	}			config;
};

int flight_opts__config(struct flight_opts *fo, const char *var, const char *value);
int flight_opts__set_defaults(struct flight_opts *fo, struct evlist *evlist);
int flight_opts__parse_flight(const struct option *opt, const char *str, int unset);

int flight_opts__parse_memory(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_age(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_disk(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_overhead(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_dump_age(const struct option *opt, const char *str, int unset);
int flight_opts__parse_fair(const struct option *opt, const char *str, int unset);
int flight_opts__parse_dump_timeout(const struct option *opt, const char *str, int unset);
int flight_opts__parse_trigger(const struct option *opt, const char *str, int unset);

int flight_opts__check(struct flight_opts *fo, struct evlist *evlist, struct record_opts *opts,
		       int argc);
int flight_opts__refuse(const struct flight_opts *fo, bool given, const char *option);
int flight_opts__apply(struct flight_opts *fo, struct record_opts *opts, struct perf_data *data);
int flight_opts__combine(struct flight_opts *fo, struct evlist *evlist, struct perf_data *data,
			 int argc);
int flight_opts__archive(const struct flight_opts *fo, struct evlist *evlist,
			 struct perf_data *data, int argc);
void flight_opts__exit(struct flight_opts *fo);

#endif /* __PERF_FLIGHT_OPTS_H */
