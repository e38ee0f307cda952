// SPDX-License-Identifier: GPL-2.0
/*
 * perf ctl: list, describe and end persistent sessions.
 */
#include "builtin.h"

#include "util/debug.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/ctl-metrics.h"
#include "util/json-writer.h"
#include "util/persistent/persistent.h"
#include "util/trace-event.h"
#include "util/util.h"

#include <subcmd/parse-options.h>
#include <api/fs/fs.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char * const ctl_usage[] = {
	"perf ctl [-l] [--json|--prometheus]",
	"perf ctl -i NAME [--json]",
	"perf ctl -d NAME...",
	NULL
};

/* Columns of the list; @json_number: the value is not quoted in JSON. */
static const struct column {
	const char	*title;
	const char	*key;
	size_t		offset;
	bool		json_number;
} columns[] = {
	{ "OWNER",   "owner",	  offsetof(struct persistent_entry, owner),     true  },
	{ "CPUS",    "cpus",	  offsetof(struct persistent_entry, cpus),      false },
	{ "EVENTS",  "nr_events", offsetof(struct persistent_entry, nr_events), true  },
	{ "MEMORY",  "memory",	  offsetof(struct persistent_entry, memory),    true  },
	{ "WINDOW(s)", "window",	  offsetof(struct persistent_entry, window),    true  },
	{ "STATE",   "state",	  offsetof(struct persistent_entry, state),     false },
};

/* The newest sample of an idle CPU may be older than the oldest of another CPU. */
static double window__seconds(const struct persistent_window *window)
{
	if (window->newest <= window->oldest)
		return 0;
	return (double)(window->newest - window->oldest) / NSEC_PER_SEC;
}

static const char *entry__value(const struct persistent_entry *entry, const struct column *column)
{
	return *(char * const *)((const char *)entry + column->offset);
}

static const char *entry__text(const struct persistent_entry *entry, const struct column *column)
{
	const char *value = entry__value(entry, column);

	/* No CPUs: events of tasks. */
	if (value && !*value)
		return "task";
	return value ?: "-";
}

static void print_list(const struct persistent_entry *entries, int nr)
{
	size_t i, width[ARRAY_SIZE(columns)], name_width = strlen("NAME");
	int n;

	for (i = 0; i < ARRAY_SIZE(columns); i++)
		width[i] = strlen(columns[i].title);
	for (n = 0; n < nr; n++) {
		name_width = max(name_width, strlen(entries[n].name));
		for (i = 0; i < ARRAY_SIZE(columns); i++)
			width[i] = max(width[i], strlen(entry__text(&entries[n], &columns[i])));
	}

	printf("%-*s  %4s", (int)name_width, "NAME", "ID");
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		printf("  %*s", (int)width[i], columns[i].title);
	printf("\n");
	for (n = 0; n < nr; n++) {
		printf("%-*s  %4llu", (int)name_width, entries[n].name,
		       (unsigned long long)entries[n].id);
		for (i = 0; i < ARRAY_SIZE(columns); i++)
			printf("  %*s", (int)width[i], entry__text(&entries[n], &columns[i]));
		printf("\n");
	}
}

static void print_list_json(const struct persistent_entry *entries, int nr)
{
	struct json_writer w;

	json_writer__init(&w, stdout);
	json_writer__begin_array(&w, NULL, JSON_STYLE__LINES);
	for (int n = 0; n < nr; n++) {
		const struct persistent_entry *entry = &entries[n];

		json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
		json_writer__string(&w, "name", entry->name);
		json_writer__number(&w, "id", entry->id);
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
			const char *value = entry__value(entry, &columns[i]);

			if (columns[i].json_number)
				json_writer__literal(&w, columns[i].key, value);
			else
				json_writer__string(&w, columns[i].key, value);
		}
		if (entry->window) {
			json_writer__number(&w, "oldest", entry->oldest);
			json_writer__number(&w, "newest", entry->newest);
		}
		json_writer__end(&w);
	}
	json_writer__end(&w);
}

/* The metrics of a session; @offset: of the value in struct persistent_entry. */
static const struct metric {
	const char	*name;
	const char	*help;
	size_t		offset;
} metrics[] = {
	{ "events", "Number of events.", offsetof(struct persistent_entry, nr_events) },
	{ "memory_bytes", "Memory of all buffers.",
	  offsetof(struct persistent_entry, memory) },
	{ "window_seconds", "Time with samples of all CPUs.",
	  offsetof(struct persistent_entry, window) },
};

static void print_metric_head(const char *name, const char *help)
{
	printf("# HELP perf_persistent_%s %s\n# TYPE perf_persistent_%s gauge\n", name, help, name);
}

/* The text format of Prometheus. Names need no quoting: see persistent__name_error(). */
static void print_list_prometheus(const struct persistent_entry *entries, int nr)
{
	char name[64];

	print_metric_head("sessions", "Number of persistent sessions.");
	printf("perf_persistent_sessions %d\n", nr);
	if (!nr)
		return;

	for (size_t i = 0; i < ARRAY_SIZE(metrics); i++) {
		snprintf(name, sizeof(name), "session_%s", metrics[i].name);
		print_metric_head(name, metrics[i].help);
		for (int n = 0; n < nr; n++) {
			const char *value = *(char * const *)((const char *)&entries[n] +
							      metrics[i].offset);

			/* Unknown values are omitted; they are not 0. */
			if (value)
				printf("perf_persistent_%s{session=\"%s\"} %s\n", name,
				       entries[n].name, value);
		}
	}

	print_metric_head("session_running", "1 if all events are running.");
	for (int n = 0; n < nr; n++)
		if (entries[n].state)
			printf("perf_persistent_session_running{session=\"%s\"} %d\n",
			       entries[n].name, !strcmp(entries[n].state, "runs"));
}

/* The window of the session, if this user may read it. */
static void entry__add_window(struct persistent_entry *entry)
{
	struct persistent_session *session = persistent_session__open_id(entry->id);
	struct persistent_window window;

	if (IS_ERR(session))
		return;

	if (!persistent_session__window(session, &window) && window.newest) {
		entry->oldest = window.oldest;
		entry->newest = window.newest;
		if (asprintf(&entry->window, "%.3f", window__seconds(&window)) < 0)
			entry->window = NULL;
	}
	persistent_session__close(session);
}

/* Weak default for perf without the flight recorder. */
int __weak flight_recorders__print_metrics(FILE *f __maybe_unused)
{
	return 0;
}

static int ctl__list(bool json, bool prometheus)
{
	struct persistent_entry *entries;
	char msg[STRERR_BUFSIZE];
	int nr, err;

	err = persistent__list(&entries, &nr);
	if (err) {
		pr_err("Cannot list the persistent sessions: %s\n",
		       str_error_r(-err, msg, sizeof(msg)));
		return err;
	}

	for (int i = 0; i < nr; i++)
		entry__add_window(&entries[i]);

	if (json)
		print_list_json(entries, nr);
	else if (prometheus)
		print_list_prometheus(entries, nr);
	else if (nr)
		print_list(entries, nr);
	else
		printf("No persistent sessions; make one with: perf record -P NAME -e EVENTS -a\n");

	persistent__free_list(entries, nr);
	return 0;
}

/* To be freed by the caller. */
static char *event_name(struct perf_event_attr *attr)
{
	struct evsel *evsel;
	char *name = NULL;

#ifdef HAVE_LIBTRACEEVENT
	if (attr->type == PERF_TYPE_TRACEPOINT)
		name = tracepoint_id_to_name(attr->config);
#endif
	if (name)
		return name;

	evsel = evsel__new(attr);
	if (!evsel)
		return NULL;
	name = strdup(evsel__name(evsel));
	evsel__delete(evsel);
	return name;
}

/* The window of an event with a buffer of its own; others share it. */
static bool event__window(const struct persistent_event *event, struct evlist *evlist,
			  struct persistent_window *window)
{
	return evlist && event->buffer_index == event->index &&
	       !persistent_event__window(event, evlist, window) && window->newest;
}

static void print_info(const struct persistent_session *s, struct evlist *evlist)
{
	printf("session %s, id %llu, owner %u\n", s->name, (unsigned long long)s->id, s->owner);
	printf("%4s  %5s  %6s  %9s  %9s  %-11s  %s\n",
	       "CPU", "INDEX", "BUFFER", "KiB", "WINDOW(s)", "STATE", "EVENT");
	for (int i = 0; i < s->nr_events; i++) {
		struct persistent_event *event = &s->events[i];
		char *name = event_name(&event->attr), cpu[16] = "task", seconds[32] = "-";
		struct persistent_window window;

		if (event->cpu >= 0)
			scnprintf(cpu, sizeof(cpu), "%d", event->cpu);
		if (event__window(event, evlist, &window))
			scnprintf(seconds, sizeof(seconds), "%.3f", window__seconds(&window));
		printf("%4s  %5u  %6u  %9llu  %9s  %-11s  %s%s\n", cpu, event->index,
		       event->buffer_index, (unsigned long long)event->data_size / 1024, seconds,
		       persistent__state_name(event->state), name ?: "?",
		       persistent_event__is_sideband(event) ? " (side-band)" : "");
		free(name);
	}
}

static void print_info_json(const struct persistent_session *s, struct evlist *evlist)
{
	struct persistent_window window;
	struct json_writer w;

	json_writer__init(&w, stdout);
	json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
	json_writer__string(&w, "name", s->name);
	json_writer__number(&w, "id", s->id);
	json_writer__number(&w, "owner", s->owner);
	json_writer__begin_array(&w, "events", JSON_STYLE__LINES);
	for (int i = 0; i < s->nr_events; i++) {
		struct persistent_event *event = &s->events[i];
		char *name = event_name(&event->attr);

		json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
		json_writer__signed(&w, "cpu", event->cpu);
		json_writer__number(&w, "index", event->index);
		json_writer__number(&w, "buffer", event->buffer_index);
		json_writer__number(&w, "data_size", event->data_size);
		json_writer__string(&w, "state", persistent__state_name(event->state));
		json_writer__bool(&w, "sideband", persistent_event__is_sideband(event));
		json_writer__string(&w, "event", name ?: "?");
		if (event__window(event, evlist, &window)) {
			json_writer__number(&w, "oldest", window.oldest);
			json_writer__number(&w, "newest", window.newest);
			json_writer__bool(&w, "wrapped", window.wrapped);
		}
		json_writer__end(&w);
		free(name);
	}
	json_writer__end(&w);
	json_writer__end(&w);
}

static int ctl__info(const char *name, bool json)
{
	struct persistent_session *session = persistent_session__open(name);
	struct evlist *evlist;

	if (IS_ERR(session))
		return PTR_ERR(session);

	/* Without an evlist only the times of the records are unknown. */
	evlist = persistent_session__new_evlist(session);
	if (json)
		print_info_json(session, evlist);
	else
		print_info(session, evlist);
	evlist__delete(evlist);
	persistent_session__close(session);
	return 0;
}

/* Return whether the process has an event of session @id open, if this is visible. */
static bool process__reads(const char *pid, u64 id)
{
	char path[PATH_MAX], link[64];
	unsigned long long fd_id;
	struct dirent *d;
	bool reads = false;
	ssize_t len;
	FILE *file;
	DIR *dir;

	scnprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;

	while (!reads && (d = readdir(dir)) != NULL) {
		len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		link[max_t(ssize_t, len, 0)] = '\0';
		if (strcmp(link, "anon_inode:[perf_persistent]"))
			continue;

		scnprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", pid, d->d_name);
		file = fopen(path, "r");
		while (file && !reads && fgets(path, sizeof(path), file))
			reads = sscanf(path, "perf_persistent_id: %llu", &fd_id) == 1 &&
				fd_id == id;
		if (file)
			fclose(file);
	}
	closedir(dir);
	return reads;
}

/* Print the processes that still have the session open, because they hold its memory. */
static void print_end(const char *name, u64 id)
{
	const char *sep = "; its memory is freed when these processes have closed it:";
	char *comm, path[64];
	struct dirent *d;
	size_t size;
	DIR *dir;

	printf("session '%s' ended", name);
	dir = opendir("/proc");
	while (dir && (d = readdir(dir)) != NULL) {
		if (!isdigit(d->d_name[0]) || atoi(d->d_name) == getpid() ||
		    !process__reads(d->d_name, id))
			continue;

		scnprintf(path, sizeof(path), "%s/comm", d->d_name);
		comm = NULL;
		procfs__read_str(path, &comm, &size);
		printf("%s %s (%.*s)", sep, d->d_name, comm ? (int)strcspn(comm, "\n") : 1,
		       comm ?: "?");
		sep = ",";
		free(comm);
	}
	printf("\n");
	if (dir)
		closedir(dir);
}

static int ctl__delete(const char *name)
{
	struct persistent_session *session = persistent_session__open(name);
	char msg[STRERR_BUFSIZE];
	int err;

	if (IS_ERR(session))
		return PTR_ERR(session);

	err = persistent_session__claim(session);
	if (err)
		pr_err("Cannot end the persistent session '%s': %s\n", name,
		       str_error_r(-err, msg, sizeof(msg)));
	else
		print_end(session->name, session->id);
	persistent_session__close(session);
	return err;
}

int cmd_ctl(int argc, const char **argv)
{
	bool list = false, delete = false, json = false, prometheus = false;
	const char *info = NULL;
	const struct option options[] = {
		OPT_BOOLEAN('l', "list", &list, "list the persistent sessions"),
		OPT_STRING('i', "info", &info, "name", "describe a persistent session"),
		OPT_BOOLEAN('d', "delete", &delete, "end the named persistent sessions"),
		OPT_BOOLEAN('j', "json", &json, "print JSON"),
		OPT_BOOLEAN(0, "prometheus", &prometheus,
			    "print sessions and flight recorders as metrics, for node_exporter"),
		OPT_INCR('v', "verbose", &verbose, "be more verbose"),
		OPT_END()
	};
	int err = 0;

	argc = parse_options(argc, argv, options, ctl_usage, 0);
	if (list + !!info + delete > 1 || (delete ? !argc || json : argc) ||
	    (prometheus && (delete || info || json)))
		usage_with_options(ctl_usage, options);

	/* Flight recorders work on all kernels. */
	if (!prometheus && persistent__check_support())
		return 1;

	if (delete) {
		for (int i = 0; i < argc; i++)
			err |= ctl__delete(argv[i]);
	} else if (info) {
		err = ctl__info(info, json);
	} else if (!prometheus || persistent__is_supported()) {
		err = ctl__list(json, prometheus);
	}
	if (prometheus)
		err |= flight_recorders__print_metrics(stdout);
	return err ? 1 : 0;
}
