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
 * struct flight_opts - what the options of perf record ask of a flight recorder
 * @memory: bytes for samples and side-band (-M); 0: no flight recorder
 * @max_age: ns after which a round goes (--max-age); 0: when its room is needed
 * @store: bytes of that for what perf keeps itself; of --overwrite the side-band alone
 * @overwrite: the kernel's buffers keep the samples (--overwrite)
 * @comp_level: of zstd, for what is in memory (-z); 0: none
 * @persistent: the events are those of a persistent session (-e persistent/NAME/)
 * @dry_run: measure for a second and say what it would do (--dry-run)
 * @max_files: dumps that may stay on disk (--max-files); 0: any number
 * @max_disk: bytes that they may take (--max-disk); 0: any number
 * @combine: make one file of dumps that are there, and do nothing else (--combine)
 * @keep: and let them stay (--keep)
 * @daemon: run without a terminal (--daemon)
 * @archive: pack what the symbols of each dump are in (--archive)
 * @on_dump: what to run with each dump (--on-dump), or NULL
 * @triggers: what makes it write a dump (--trigger)
 * @out: name that the names of the dumps begin with (-o)
 */
struct flight_opts {
	u64			memory;
	u64			max_age;
	u64			store;
	bool			overwrite;
	unsigned int		comp_level;
	bool			persistent;
	bool			dry_run;
	unsigned int		max_files;
	u64			max_disk;
	bool			combine;
	bool			keep;
	bool			daemon;
	bool			archive;
	const char		*on_dump;
	struct flight_trigger	*triggers;
	const char		*out;
};

int flight_opts__parse_memory(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_age(const struct option *opt, const char *str, int unset);
int flight_opts__parse_max_disk(const struct option *opt, const char *str, int unset);
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
