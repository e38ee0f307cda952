/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_PERSISTENT_H
#define __PERF_PERSISTENT_H

#include <linux/perf_event.h>
#include <linux/perf_persistent.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct evlist;
struct evsel;
struct perf_cpu_map;
struct perf_data;
struct perf_thread_map;
struct record_opts;
struct record_source;
union perf_event;

/**
 * enum persistent_kind - what the records of an event are
 * @PERSISTENT_SAMPLES: samples
 * @PERSISTENT_HALVES: user halves of call chains, which come after their samples
 * @PERSISTENT_SIDEBAND: what names the samples
 */
enum persistent_kind {
	PERSISTENT_SAMPLES,
	PERSISTENT_HALVES,
	PERSISTENT_SIDEBAND,
};

/**
 * struct persistent_event - one event of a session on one CPU
 * @fd: consumer file descriptor, -1 if it was closed
 * @cpu: its CPU, -1 for an event that follows its task
 * @index: its number on that CPU
 * @buffer_index: number of the event whose buffer it writes to
 * @state: PERF_PERSISTENT_STATE_* bits
 * @flags: PERF_PERSISTENT_INFO_* bits; 0 on an older kernel
 * @id: id in its records
 * @data_size: bytes of its ring buffer
 * @attr: what it was created with
 * @left: it is not of use any more, see persistent_reader__forget()
 */
struct persistent_event {
	int			fd;
	int			cpu;
	u32			index;
	u32			buffer_index;
	u32			state;
	u32			flags;
	u64			id;
	u64			data_size;
	struct perf_event_attr	attr;
	bool			left;
};

/*
 * Does an event record whatever runs on its CPU? Events that follow tasks follow them to any
 * CPU. An older kernel does not tell them, but perf lets those with a CPU inherit.
 */
static inline bool persistent_event__is_of_cpu(const struct persistent_event *event)
{
	return event->cpu >= 0 && !event->attr.inherit &&
	       !(event->flags & PERF_PERSISTENT_INFO_TASK);
}

/**
 * struct persistent_session - a session, opened for reading
 * @name: its name
 * @id: its id
 * @owner: user id of its owner
 * @nr_events: entries of @events, over all CPUs
 * @events: the events, by CPU and index
 */
struct persistent_session {
	char			name[PERF_PERSISTENT_NAME_LEN];
	u64			id;
	u32			owner;
	int			nr_events;
	struct persistent_event	*events;
};

/**
 * struct persistent_entry - a session in the list of all
 * @name: its name
 * @id: its id
 * @cpus: list of CPUs with events; "" if all of them follow a task
 * @nr_events: number of its events
 * @memory: bytes of all its buffers
 * @owner: user id of its owner
 * @region: label of the region that its buffers lie in; "" in ordinary memory
 * @state: in words
 * @window: seconds that it reaches back
 * @oldest: time of the oldest record of the window, in ns
 * @newest: time of its newest record
 *
 * Values that this user may not see, and values that are not known, are NULL.
 */
struct persistent_entry {
	char			*name;
	u64			id;
	char			*cpus;
	char			*nr_events;
	char			*memory;
	char			*owner;
	char			*region;
	char			*state;
	char			*window;
	u64			oldest;
	u64			newest;
};

/**
 * struct persistent_window - what a buffer, or all of a session, reaches back to
 * @oldest: time of the oldest record, in ns
 * @newest: time of the newest record
 * @wrapped: older records were overwritten
 */
struct persistent_window {
	u64			oldest;
	u64			newest;
	bool			wrapped;
};

/* Bytes of data area per CPU, unless the user wants others. */
#define PERSISTENT_SAMPLE_SIZE		(512 * 1024)
#define PERSISTENT_SIDEBAND_SIZE	(128 * 1024)

/* Most that the kernel allocates for a buffer */
#define PERSISTENT_RESERVE_MAX		(1024ULL * 1024 * 1024)

/* Below the mount point of sysfs */
#define PERSISTENT_SYSFS	"bus/event_source/devices/persistent"

bool persistent__is_supported(void);
int persistent__check_support(void);
bool persistent__parse_id(const char *str, size_t len, const char *key, u64 *id);

int persistent__list(struct persistent_entry **entries, int *nr);
void persistent__free_list(struct persistent_entry *entries, int nr);
bool persistent__find_id(const char *name, u64 *id);
bool persistent__id_exists(u64 id);
void persistent__print_open_error(const char *what, int err);
bool persistent__find_own(const char *name, char full[PERF_PERSISTENT_NAME_LEN]);
bool persistent__is_readable(const char *name);
char *persistent__region(const char *name);
bool persistent__has_crash_kernel(void);
const char *persistent__name_error(const char *name);
const char *persistent__new_name_error(const char *name);
const char *persistent__state_name(u32 state, u32 flags);

bool evsel__is_persistent(const struct evsel *evsel);
struct persistent_session *persistent_session__open(const char *what);
struct persistent_session *persistent_session__open_id(u64 id);
struct persistent_session *
persistent_session__open_events(const struct persistent_session *of,
				const struct perf_persistent_entry *entries, int nr, int *err);
int persistent_session__claim(struct persistent_session *session);
int persistent__open_session(u64 id);
int persistent__list_events(u64 id, struct perf_persistent_entry **entries);
bool persistent__may_control(const struct perf_persistent_session_info *info);
const char *persistent__freeze_reason(u32 reason);
int persistent__end(const char *what, struct perf_persistent_session_info *info);
int persistent__freeze(const char *what, struct perf_persistent_session_info *info);
int persistent__thaw(const char *what, struct perf_persistent_session_info *info);
int persistent__join_cpus(const char *cpus, const char **names, int nr);
void persistent_session__close(struct persistent_session *session);
int persistent_event__open(u64 id, int cpu, u32 index, struct persistent_event *event);
enum persistent_kind persistent_event__kind(const struct persistent_event *event);
bool persistent_session__has_kind(const struct persistent_session *session, int cpu,
				  enum persistent_kind kind);
char *persistent_event__cgroup(const struct persistent_event *event);

struct evsel *evlist__find_attr(struct evlist *evlist, const struct perf_event_attr *attr);
int evlist__check_cpus(struct evlist *evlist);
void evlist__set_maps_of_session(struct evlist *evlist, struct perf_cpu_map *cpus,
				 struct perf_thread_map *threads);
struct evlist *persistent_session__new_evlist(struct persistent_session *ps);
struct evlist *persistent_entries__new_evlist(const struct perf_persistent_entry *entries,
					      u32 nr, bool id_all);
bool persistent_record_time(const union perf_event *event, void *data, __u64 *time);
int persistent_event__window(const struct persistent_event *event, struct evlist *evlist,
			     struct persistent_window *window);
int persistent_session__window(struct persistent_session *ps, struct evlist *evlist,
			       struct persistent_window *window);
int persistent__window(u64 id, struct persistent_window *window);
bool persistent_window__find_oldest(const void *bytes, size_t len, bool wrapped,
				    struct evlist *evlist, u64 newest, __u64 *oldest);

struct persistent_live;

/**
 * typedef persistent_live_event_t - take a record
 * @event: the record, valid until it returns
 * @time: its time
 * @data: what was given to persistent_live__read()
 */
typedef int (*persistent_live_event_t)(union perf_event *event, u64 time, void *data);

struct persistent_live *persistent_live__new(const char *what);
struct evlist *persistent_live__evlist(struct persistent_live *live);
int persistent_live__read(struct persistent_live *live, persistent_live_event_t process,
			  void *data);
void persistent_live__delete(struct persistent_live *live);

/**
 * struct persistent_opts - what the options of perf record and perf top ask for
 * @make: name of the session to make (-P)
 * @add: add the events to a session that exists (--add)
 * @replace: end a session of that name first (--replace)
 * @reserve: label of the reserved region for its buffers (--reserve)
 * @user: whose tasks alone are to be recorded (-u), or NULL
 * @read: name of the session to read, or "id=ID" (-e persistent/NAME/)
 * @other_events: -e named other events as well
 * @output: -o named a file
 * @kill: end the session when it has been read (--kill)
 * @no_buildid: write no table of build-ids
 * @recorder: what is read is for a flight recorder (-M), which may compress it
 * @made: out: id of the session that was made
 * @take_notes: out: it can outlive the kernel: in a reserved region, or in a crash dump
 */
struct persistent_opts {
	const char	*make;
	char		*read;
	const char	*reserve;
	const char	*user;
	bool		add;
	bool		replace;
	bool		other_events;
	bool		output;
	bool		kill;
	bool		no_buildid;
	bool		recorder;
	u64		made;
	bool		take_notes;
};

static inline bool persistent_opts__used(const struct persistent_opts *p)
{
	return p->make || p->read || p->add || p->replace || p->reserve || p->kill;
}

int persistent_opts__parse_event(struct persistent_opts *p, const char *str);
int persistent_opts__check(struct persistent_opts *p, struct evlist *evlist,
			   struct record_opts *opts, int argc);
int persistent_opts__check_top(struct persistent_opts *p, struct record_opts *opts);
void persistent_opts__exit(struct persistent_opts *p);

int persistent__make(struct persistent_opts *p, struct evlist *evlist,
		     struct record_opts *opts);
struct record_source *persistent__new_source(const struct persistent_opts *p,
					     struct record_opts *opts, struct perf_data *data);

#endif /* __PERF_PERSISTENT_H */
