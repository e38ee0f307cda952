// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: an event, --trigger event:NAME[/filter/]
 *
 * The event can be any event of perf record -e. It is opened on all CPUs, regardless of
 * what the recorder records, because a problem of one task may be visible in another one.
 * It has small buffers of its own, as each of its records wakes the recorder. The content of
 * a tracepoint becomes the reason in the manifest.
 *
 *	event:sched:sched_process_exec/filename ~ "*crash*"/	tracepoint with a filter
 *	event:page-faults/period=100000/			other event with its terms
 *
 * A name with a colon before the first slash is a tracepoint (or a probe), and the text
 * between the first and the last slash is its filter. Everything else is passed to the event
 * parser. Events without a period trigger at each occurrence.
 *
 * If a trigger is hit faster than it can be read, only a limited number of records is read
 * per pass, so that the recorder's own buffers do not have to wait.
 */
#include "triggers.h"
#include "../../base-api.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../mmap.h"
#include "../../parse-events.h"
#include "../../perf_api_probe.h"
#include "../../sample.h"
#include "../../target.h"
#include "../../trace-event.h"

#include <api/fs/fs.h>
#include <perf/mmap.h>
#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BUFFER_PAGES		8
#define RECORDS_PER_PASS	1024

/**
 * struct watched - the event of a trigger
 * @name: as given by the user
 * @filter: filter of a tracepoint, or NULL
 * @evlist: the event
 */
struct watched {
	char		*name;
	char		*filter;
	struct evlist	*evlist;
};

static void event_free(struct flight_trigger *t)
{
	struct watched *w = t->priv;

	if (!w)
		return;
	evlist__put(w->evlist);
	free(w->name);
	free(w->filter);
	free(w);
	t->priv = NULL;
}

/* The filter of a tracepoint is split off its name. */
static int split_filter(struct watched *w)
{
	char *slash = strchr(w->name, '/'), *colon = strchr(w->name, ':'), *last;

	if (!slash || !colon || colon > slash)
		return 0;
	last = strrchr(w->name, '/');
	if (last == slash || last[1] || last == slash + 1) {
		pr_err("--trigger: event:%s: a filter must be between two slashes at the end. Use event:NAME/FILTER/\n",
		       w->name);
		return -EINVAL;
	}
	*slash = *last = '\0';
	w->filter = strdup(slash + 1);
	return w->filter ? 0 : -ENOMEM;
}

static int parse_name(struct watched *w)
{
	struct parse_events_error error;
	int err;

	w->evlist = evlist__new();
	if (!w->evlist)
		return -ENOMEM;
	parse_events_error__init(&error);
	err = parse_events(w->evlist, w->name, &error);
	if (err) {
		parse_events_error__print(&error, w->name);
		pr_err("--trigger: event:%s names no event; see perf list. Use event:NAME[/FILTER/]\n",
		       w->name);
	}
	parse_events_error__exit(&error);
	return err ? -EINVAL : 0;
}

static void set_attributes(struct watched *w)
{
	bool cgroup = perf_can_record_cgroup();
	struct evsel *evsel;

	evlist__for_each_entry(w->evlist, evsel) {
		struct perf_event_attr *attr = &evsel->core.attr;

		if (!attr->sample_period && !attr->sample_freq)
			attr->sample_period = 1;
		attr->watermark = 0;
		attr->wakeup_events = 1;
		attr->disabled = 1;
		attr->inherit = 0;
		evsel__set_sample_bit(evsel, TID);
		evsel__set_sample_bit(evsel, TIME);
		evsel__set_sample_bit(evsel, CPU);
		if (cgroup)
			evsel__set_sample_bit(evsel, CGROUP);
		if (attr->type == PERF_TYPE_TRACEPOINT)
			evsel__set_sample_bit(evsel, RAW);
	}
}

static int event_parse(struct flight_trigger *t, const char *arg)
{
	struct watched *w;
	struct evsel *evsel;
	int err;

	if (!arg || !*arg) {
		pr_err("--trigger: 'event' requires the name of an event after a colon; see perf list. Use event:NAME[/FILTER/]\n");
		return -EINVAL;
	}
	w = zalloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	t->priv = w;
	w->name = strdup(arg);
	err = w->name ? split_filter(w) : -ENOMEM;
	if (!err)
		err = parse_name(w);
	if (err)
		return err;
	evlist__for_each_entry(w->evlist, evsel) {
		/* A program would need the file of the event, which nobody gives it. */
		if (evsel__is_bpf_output(evsel)) {
			pr_err("--trigger: no BPF program can write to event:%s. Let it write to a ring buffer map, and use bpf:PINNED_MAP.\n",
			       w->name);
			return -EINVAL;
		}
	}
	set_attributes(w);
	evlist__for_each_entry(w->evlist, evsel) {
		if (w->filter && evsel__set_filter(evsel, w->filter))
			return -ENOMEM;
	}
	return 0;
}

/* The time of a hit is that of the kernel, on the clock of what is recorded. */
static void set_clock(struct watched *w, clockid_t clockid)
{
	struct evsel *evsel;

	evlist__for_each_entry(w->evlist, evsel) {
		evsel->core.attr.use_clockid = clockid >= 0;
		evsel->core.attr.clockid = max(clockid, 0);
	}
}

static int open_events(struct watched *w)
{
	struct target target = { .system_wide = true };
	struct evsel *evsel;
	int err;

	target__select_all_users(&target);
	err = evlist__create_maps(w->evlist, &target);
	if (err)
		return err;
	if (evlist__nr_entries(w->evlist) > 1) {
		evlist__for_each_entry(w->evlist, evsel)
			evsel__set_sample_id(evsel, true);
		evlist__set_id_pos(w->evlist);
	}
	evlist__for_each_entry(w->evlist, evsel) {
		err = evsel__open(evsel, evsel->core.cpus, evsel->core.threads);
		if (err < 0) {
			char text[BUFSIZ];

			evsel__open_strerror(evsel, &target, -err, text, sizeof(text));
			pr_err("--trigger event:%s: %s\n", w->name, text);
			return err;
		}
	}
	err = evlist__apply_filters(w->evlist, &evsel, &target);
	if (err) {
		pr_err("--trigger event:%s: the kernel rejects the filter '%s'.\n", w->name,
		       w->filter);
		return -EINVAL;
	}
	return evlist__do_mmap(w->evlist, BUFFER_PAGES);
}

static int event_start(struct flight_trigger *t)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct watched *w = t->priv;
	const struct fdarray *fds;
	int err;

	set_clock(w, t->host->clockid);
	err = open_events(w);
	if (err)
		return err;
	t->fd = epoll_create1(EPOLL_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	fds = &evlist__core(w->evlist)->pollfd;
	for (int i = 0; i < fds->nr; i++) {
		if (epoll_ctl(t->fd, EPOLL_CTL_ADD, fds->entries[i].fd, &ev))
			return -errno;
	}
	evlist__enable(w->evlist);
	return 0;
}

/* The content of a tracepoint as one line of text. */
static void put_raw(struct evsel *evsel __maybe_unused,
		    const struct perf_sample *sample __maybe_unused, FILE *f __maybe_unused)
{
#ifdef HAVE_LIBTRACEEVENT
	struct tep_event *tp = evsel__tp_format(evsel);

	if (evsel->core.attr.type == PERF_TYPE_TRACEPOINT && tp) {
		fprintf(f, ": ");
		event_format__fprintf(tp, sample->cpu, sample->raw_data, sample->raw_size, f);
	}
#endif
}

/* Of a signal that is generated: the task that it is sent to, not the sender. */
static bool set_target(struct flight_trigger *t, struct evsel *evsel, struct perf_sample *sample)
{
#ifdef HAVE_LIBTRACEEVENT
	struct tep_event *tp = evsel__tp_format(evsel);

	if (evsel->core.attr.type == PERF_TYPE_TRACEPOINT && tp &&
	    !strcmp(tp->name, "signal_generate") && sample->raw_data) {
		const char *comm = sample__text(sample, evsel, "comm");

		t->cause.pid = sample__number(sample, evsel, "pid");
		if (comm)
			scnprintf(t->cause.comm, sizeof(t->cause.comm), "%.16s", comm);
		return true;
	}
#endif
	return false;
}

/* The task in whose context it happened. A name that cannot be read is not known. */
static void set_cause(struct flight_trigger *t, struct evsel *evsel, struct perf_sample *sample)
{
	char path[32], *comm = NULL;
	size_t len;

	if (set_target(t, evsel, sample)) {
		/* The sample has that of the sender. */
		flight_cause__set_cgroup(&t->cause, 0);
		return;
	}
	if ((s32)sample->pid <= 0)
		return;
	t->cause.pid = sample->pid;
	flight_cause__set_cgroup(&t->cause, sample->cgroup);
	scnprintf(path, sizeof(path), "%d/comm", sample->pid);
	if (procfs__read_str(path, &comm, &len))
		return;
	scnprintf(t->cause.comm, sizeof(t->cause.comm), "%.*s", (int)strcspn(comm, "\n"), comm);
	free(comm);
}

/*
 * The reason is the earliest hit of a look.
 * @told: there is a reason, of a hit at @t->hit_at
 *
 * Return: whether there is one now.
 */
static bool set_reason(struct flight_trigger *t, union perf_event *event, bool told)
{
	struct watched *w = t->priv;
	struct evsel *evsel = evlist__event2evsel(w->evlist, event);
	struct perf_sample sample;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	perf_sample__init(&sample, /*all=*/true);
	if (!evsel || evsel__parse_sample(evsel, event, &sample) ||
	    (told && sample.time >= t->hit_at))
		goto out;
	f = open_memstream(&text, &len);
	if (!f)
		goto out;
	fprintf(f, "%s by pid %d on CPU %u", evsel__name(evsel), sample.pid, sample.cpu);
	if (sample.raw_data && sample.raw_size)
		put_raw(evsel, &sample, f);
	if (!fclose(f)) {
		t->hit_at = sample.time;
		t->cause = (struct flight_cause) {};
		set_cause(t, evsel, &sample);
		flight_trigger__set_reason(t, text);
		told = true;
	}
	free(text);
out:
	perf_sample__exit(&sample);
	return told;
}

/* No record tells of the hits: the buffers had no room for them. */
static void set_lost_reason(struct flight_trigger *t, unsigned int hits)
{
	struct watched *w = t->priv;
	char text[sizeof(t->reason)];

	scnprintf(text, sizeof(text), "%u records of %s were lost", hits,
		  evsel__name(evlist__first(w->evlist)));
	flight_trigger__set_reason(t, text);
}

/* @told: whether the reason is that of a hit of this look */
static unsigned int read_map(struct flight_trigger *t, struct mmap *map, bool *told)
{
	unsigned int hits = 0, samples = 0;
	union perf_event *event;
	int i;

	if (perf_mmap__read_init(&map->core))
		return 0;
	for (i = 0; i < RECORDS_PER_PASS; i++) {
		event = perf_mmap__read_event(&map->core);
		if (!event)
			break;
		/* A lost record is a hit, too. */
		if (event->header.type == PERF_RECORD_LOST)
			hits += event->lost.lost;
		if (event->header.type == PERF_RECORD_SAMPLE) {
			if (!samples++ && trigger_is_ready(&t->state))
				*told = set_reason(t, event, *told);
			hits++;
		}
		perf_mmap__consume(&map->core);
	}
	perf_mmap__read_done(&map->core);
	t->more |= i == RECORDS_PER_PASS;
	return hits;
}

static unsigned int event_hits(struct flight_trigger *t)
{
	struct watched *w = t->priv;
	unsigned int hits = 0;
	bool told = false;

	for (int i = 0; i < evlist__core(w->evlist)->nr_mmaps; i++)
		hits += read_map(t, &evlist__mmap(w->evlist)[i], &told);
	if (hits && !told && trigger_is_ready(&t->state))
		set_lost_reason(t, hits);
	return hits;
}

static struct evlist *event_evlist(struct flight_trigger *t)
{
	struct watched *w = t->priv;

	return w->evlist;
}

static void event_stop(struct flight_trigger *t)
{
	struct watched *w = t->priv;

	evlist__disable(w->evlist);
	close(t->fd);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_event = {
	.name	= "event",
	.by_itself = true,
	.slashes = true,
	.parse	= event_parse,
	.start	= event_start,
	.hits	= event_hits,
	.evlist	= event_evlist,
	.stop	= event_stop,
	.free	= event_free,
};
