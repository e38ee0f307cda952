// SPDX-License-Identifier: GPL-2.0
/*
 * perf ctl: the remote control of persistent sessions and flight recorders.
 */
#include "builtin.h"

#include "util/base-api.h"
#include "util/debug.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/ctl-last.h"
#include "util/ctl-metrics.h"
#include "util/ctl-remote.h"
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
	"perf ctl --freeze NAME...",
	"perf ctl --thaw NAME...",
	"perf ctl --join-cpu=LIST [NAME...]",
	"perf ctl --status[=TARGET] [--json]",
	"perf ctl --dump[=TARGET] [--reason=TEXT] [--timeout=TIME] [--json]",
	"perf ctl --stop|--combine[=TARGET] [--timeout=TIME] [--json]",
	"perf ctl --arm=ID --in=TIME [--reason=TEXT] [TARGET...]",
	"perf ctl --disarm=ID [TARGET...]",
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

static int print_list_json(const struct persistent_entry *entries, int nr)
{
	struct json_writer w;
	int err, images;

	json_writer__init(&w, stdout);
	json_writer__begin_array(&w, NULL, JSON_STYLE__LINES);
	for (int n = 0; n < nr; n++) {
		const struct persistent_entry *entry = &entries[n];

		json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
		json_writer__string(&w, "kind", "session");
		json_writer__string(&w, "name", entry->name);
		json_writer__number(&w, "id", entry->id);
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
			const char *value = entry__value(entry, &columns[i]);

			if (columns[i].json_number)
				json_writer__literal(&w, columns[i].key, value);
			else
				json_writer__string(&w, columns[i].key, value);
		}
		if (entry->region && *entry->region)
			json_writer__string(&w, "region", entry->region);
		if (entry->window) {
			json_writer__number(&w, "oldest", entry->oldest);
			json_writer__number(&w, "newest", entry->newest);
		}
		json_writer__end(&w);
	}
	err = flight_recorders__list(&w, false);
	images = blackbox_last__list(&w, /*behind_others=*/false);
	json_writer__end(&w);
	return min(err, 0) ?: min(images, 0);
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
	struct persistent_window window;

	if (persistent__window(entry->id, &window) || !window.newest)
		return;

	entry->oldest = window.oldest;
	entry->newest = window.newest;
	if (asprintf(&entry->window, "%.3f", window__seconds(&window)) < 0)
		entry->window = NULL;
}

/* Weak defaults for perf without the flight recorder, and without black boxes. */
int __weak flight_recorders__print_metrics(FILE *f __maybe_unused)
{
	return 0;
}

int __weak flight_recorders__list(struct json_writer *w __maybe_unused,
				  bool behind_sessions __maybe_unused)
{
	return 0;
}

int __weak blackbox_last__list(struct json_writer *w __maybe_unused,
			       bool behind_others __maybe_unused)
{
	return 0;
}

int __weak flight_recorders__request(const struct ctl_request *request,
				     const char *target __maybe_unused)
{
	if (!request->may_miss)
		pr_err("This perf was built without the flight recorder.\n");
	return -ESRCH;
}

bool __weak flight_recorders__has(const char *target __maybe_unused)
{
	return false;
}

static int ctl__list(bool json, bool prometheus)
{
	struct persistent_entry *entries = NULL;
	char msg[STRERR_BUFSIZE];
	int nr = 0, err = 0, recorders, images;

	/* Flight recorders work on all kernels. */
	if (persistent__is_supported())
		err = persistent__list(&entries, &nr);
	if (err) {
		pr_err("Cannot list the persistent sessions: %s\n",
		       str_error_r(-err, msg, sizeof(msg)));
		return err;
	}

	for (int i = 0; i < nr; i++)
		entry__add_window(&entries[i]);

	if (json) {
		err = print_list_json(entries, nr);
	} else if (prometheus) {
		print_list_prometheus(entries, nr);
	} else {
		if (nr)
			print_list(entries, nr);
		recorders = flight_recorders__list(NULL, nr);
		if (!nr && !recorders && !persistent__check_support())
			puts("No persistent sessions. Make one: perf record -P NAME -e EVENTS -a");
		images = blackbox_last__list(NULL, /*behind_others=*/true);
		err = min(recorders, 0) ?: min(images, 0);
		if (!recorders && !persistent__is_supported())
			err = -EOPNOTSUPP;
	}

	persistent__free_list(entries, nr);
	return err;
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
	evsel__put(evsel);
	return name;
}

/* The window of an event with a buffer of its own; others share it. */
static bool event__window(const struct persistent_event *event, struct evlist *evlist,
			  struct persistent_window *window)
{
	return evlist && event->buffer_index == event->index &&
	       !persistent_event__window(event, evlist, window) && window->newest;
}

static const char * const event_kinds[] = {
	[PERSISTENT_SAMPLES]	= "",
	[PERSISTENT_HALVES]	= " (user halves)",
	[PERSISTENT_SIDEBAND]	= " (side-band)",
};

static void print_info(const struct persistent_session *s, struct evlist *evlist)
{
	printf("session %s, id %llu, owner %u\n", s->name, (unsigned long long)s->id, s->owner);
	printf("%4s  %5s  %6s  %9s  %9s  %-11s  %s\n",
	       "CPU", "INDEX", "BUFFER", "KiB", "WINDOW(s)", "STATE", "EVENT");
	for (int i = 0; i < s->nr_events; i++) {
		struct persistent_event *event = &s->events[i];
		char *name = event_name(&event->attr), cpu[16] = "task", seconds[32] = "-";
		char more[64], *cgroup = persistent_event__cgroup(event);
		struct persistent_window window;

		if (event->cpu >= 0)
			scnprintf(cpu, sizeof(cpu), "%d", event->cpu);
		scnprintf(more, sizeof(more), "%s%s%s%s",
			  event_kinds[persistent_event__kind(event)],
			  event->cpu >= 0 && event->flags & PERF_PERSISTENT_INFO_TASK ?
			  " (of tasks)" : "",
			  event->flags & PERF_PERSISTENT_INFO_FILTER ? " (filter)" : "",
			  event->flags & PERF_PERSISTENT_INFO_BPF ? " (eBPF)" : "");
		if (event__window(event, evlist, &window))
			scnprintf(seconds, sizeof(seconds), "%.3f", window__seconds(&window));
		printf("%4s  %5u  %6u  %9llu  %9s  %-11s  %s%s%s%s\n", cpu, event->index,
		       event->buffer_index, (unsigned long long)event->data_size / 1024, seconds,
		       persistent__state_name(event->state, event->flags), name ?: "?", more,
		       cgroup ? " in cgroup " : "", cgroup ?: "");
		free(cgroup);
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
		char *cgroup = persistent_event__cgroup(event);

		json_writer__begin_object(&w, NULL, JSON_STYLE__INLINE);
		json_writer__signed(&w, "cpu", event->cpu);
		json_writer__number(&w, "index", event->index);
		json_writer__number(&w, "buffer", event->buffer_index);
		json_writer__number(&w, "data_size", event->data_size);
		json_writer__string(&w, "state",
				    persistent__state_name(event->state, event->flags));
		json_writer__bool(&w, "sideband", persistent_event__kind(event) ==
				  PERSISTENT_SIDEBAND);
		json_writer__bool(&w, "halves", persistent_event__kind(event) ==
				  PERSISTENT_HALVES);
		json_writer__bool(&w, "task", event->cpu < 0 ||
				  event->flags & PERF_PERSISTENT_INFO_TASK);
		json_writer__bool(&w, "filter", event->flags & PERF_PERSISTENT_INFO_FILTER);
		json_writer__bool(&w, "bpf", event->flags & PERF_PERSISTENT_INFO_BPF);
		json_writer__string(&w, "event", name ?: "?");
		if (cgroup)
			json_writer__string(&w, "cgroup", cgroup);
		if (event__window(event, evlist, &window)) {
			json_writer__number(&w, "oldest", window.oldest);
			json_writer__number(&w, "newest", window.newest);
			json_writer__bool(&w, "wrapped", window.wrapped);
		}
		json_writer__end(&w);
		free(cgroup);
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
	evlist__put(evlist);
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

/* Any user's: what could control a terminal is left out. */
static void print_comm(const char *comm)
{
	for (; *comm && *comm != '\n'; comm++)
		putchar(isascii(*comm) && isprint(*comm) ? *comm : '?');
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
		printf("%s %s (", sep, d->d_name);
		print_comm(comm ?: "?");
		printf(")");
		sep = ",";
		free(comm);
	}
	printf("\n");
	if (dir)
		closedir(dir);
}

/* On an older kernel, a session is ended by claiming its events. */
static int ctl__claim(const char *name)
{
	struct persistent_session *session = persistent_session__open(name);
	char msg[STRERR_BUFSIZE];
	int err;

	if (IS_ERR(session))
		return PTR_ERR(session);

	err = persistent_session__claim(session);
	if (err == -EPERM)
		pr_err("No permission to end the persistent session '%s': only its owner and CAP_SYS_ADMIN may.\n",
		       name);
	else if (err)
		pr_err("Cannot end the persistent session '%s': %s\n", name,
		       str_error_r(-err, msg, sizeof(msg)));
	else
		print_end(session->name, session->id);
	persistent_session__close(session);
	return err;
}

static int ctl__delete(const char *name)
{
	struct perf_persistent_session_info info;
	int err = persistent__end(name, &info);

	if (err == -EOPNOTSUPP)
		return ctl__claim(name);
	if (!err)
		print_end(info.name, info.id);
	return err;
}

static int ctl__freeze(const char *name)
{
	struct perf_persistent_session_info info;
	int err = persistent__freeze(name, &info);

	if (!err) {
		printf("session '%s' frozen; read it with: perf record -e persistent/%s/, ",
		       info.name, info.name);
		printf("and let it go on with: perf ctl --thaw %s\n", info.name);
	}
	return err;
}

static int ctl__thaw(const char *name)
{
	struct perf_persistent_session_info info;
	int err = persistent__thaw(name, &info);

	if (!err)
		printf("session '%s' goes on\n", info.name);
	return err;
}

/* The name of a recorder where that of a session was wanted. */
static void hint_at_recorder(const char *name)
{
	if (flight_recorders__has(name))
		pr_err("'%s' is a flight recorder, and these are options for sessions: use --status, --dump or --stop.\n",
		       name);
}

static int ctl__request(struct ctl_request *request, const char *target)
{
	u64 id;
	bool is_session = target && persistent__is_supported() &&
			  persistent__find_id(target, &id);
	int err;

	request->may_miss = is_session;
	err = flight_recorders__request(request, target);
	if (err != -ESRCH || !is_session)
		return err;
	if (request->verb == CTL_STATUS)
		return ctl__info(target, request->json);
	pr_err("'%s' is a persistent session, and this is a request to a flight recorder: use -i, --freeze, --thaw or -d, or read it with perf record -e persistent/%s/.\n",
	       target, target);
	return err;
}

/* The targets: the value of the option, and the words behind it; NULL is the only recorder. */
static int ctl__request_all(struct ctl_request *request, const char *target, int argc,
			    const char **argv)
{
	int err = 0;

	if (target && *target)
		err |= ctl__request(request, target);
	else if (!argc)
		err |= ctl__request(request, NULL);
	for (int i = 0; i < argc; i++)
		err |= ctl__request(request, argv[i]);
	return err;
}

static int ctl__sessions(int (*ctl)(const char *name), int argc, const char **argv)
{
	int err = 0;

	for (int i = 0; i < argc; i++) {
		int ret = ctl(argv[i]);

		if (ret)
			hint_at_recorder(argv[i]);
		err |= ret;
	}
	return err;
}

int cmd_ctl(int argc, const char **argv)
{
	bool list = false, delete = false, prometheus = false;
	bool freeze = false, thaw = false;
	const char *info = NULL, *join = NULL, *targets[CTL_NR_VERBS] = {};
	struct ctl_request request = { .verb = CTL_NR_VERBS };
	const struct option options[] = {
		OPT_BOOLEAN('l', "list", &list,
			    "list persistent sessions, recorders, and what the last boot left"),
		OPT_STRING('i', "info", &info, "name", "describe a persistent session"),
		OPT_BOOLEAN('d', "delete", &delete, "end the named persistent sessions"),
		OPT_BOOLEAN(0, "freeze", &freeze, "stop the buffers of the named sessions"),
		OPT_BOOLEAN(0, "thaw", &thaw, "let frozen sessions go on"),
		OPT_STRING(0, "join-cpu", &join, "cpu",
			   "let sessions record on CPUs that were not online when they were made"),
		OPT_STRING_OPTARG(0, "status", &targets[CTL_STATUS], "target",
				  "print how a flight recorder or a session fares", ""),
		OPT_STRING_OPTARG(0, "dump", &targets[CTL_DUMP], "target",
				  "let a flight recorder write a dump, and print its name", ""),
		OPT_STRING_OPTARG(0, "stop", &targets[CTL_STOP], "target",
				  "let a flight recorder write a last dump, and end it", ""),
		OPT_STRING_OPTARG(0, "combine", &targets[CTL_COMBINE], "target",
				  "as --stop, and combine all dumps into one file", ""),
		OPT_STRING(0, "arm", &targets[CTL_ARM], "id",
			   "dump if this deadline is not disarmed in time"),
		OPT_STRING(0, "disarm", &targets[CTL_DISARM], "id", "withdraw a deadline"),
		OPT_STRING(0, "in", &request.in, "time", "the time of --arm, such as 500ms or 10s"),
		OPT_STRING(0, "reason", &request.reason, "text",
			   "why, for the manifest of the dump (--dump, --arm)"),
		OPT_STRING(0, "timeout", &request.timeout, "time",
			   "how long to wait (--dump, --stop, --combine), such as 30s"),
		OPT_BOOLEAN('j', "json", &request.json, "print JSON"),
		OPT_BOOLEAN(0, "prometheus", &prometheus,
			    "print sessions and flight recorders as metrics, for node_exporter"),
		OPT_INCR('v', "verbose", &verbose, "be more verbose"),
		OPT_END()
	};
	bool json, has_id, has_arm;
	int nr = 0, err = 0;

	argc = parse_options(argc, argv, options, ctl_usage, 0);
	json = request.json;
	for (int i = 0; i < CTL_NR_VERBS; i++) {
		if (targets[i])
			request.verb = i;
		nr += !!targets[i];
	}
	has_arm = request.verb == CTL_ARM;
	has_id = has_arm || request.verb == CTL_DISARM;
	if (list + !!info + delete + freeze + thaw + !!join + nr > 1 ||
	    (delete || freeze || thaw ? !argc || json || prometheus : argc && !nr && !join) ||
	    (prometheus && (info || json || nr || join)) || (join && json) ||
	    has_arm != !!request.in ||
	    (request.reason && !has_arm && request.verb != CTL_DUMP) ||
	    (request.timeout && request.verb != CTL_DUMP && request.verb != CTL_STOP &&
	     request.verb != CTL_COMBINE))
		usage_with_options(ctl_usage, options);

	if (nr) {
		const char *target = targets[request.verb];

		if (has_id)
			request.id = target;
		return ctl__request_all(&request, has_id ? NULL : target, argc, argv) ? 1 : 0;
	}

	if ((delete || freeze || thaw || info || join) && persistent__check_support())
		return 1;

	if (delete || freeze || thaw) {
		err = ctl__sessions(delete ? ctl__delete : freeze ? ctl__freeze : ctl__thaw,
				    argc, argv);
	} else if (join) {
		err = persistent__join_cpus(join, argv, argc);
	} else if (info) {
		err = ctl__info(info, json);
		if (err)
			hint_at_recorder(info);
	} else if (!prometheus || persistent__is_supported()) {
		err = ctl__list(json, prometheus);
	}
	if (prometheus)
		err |= flight_recorders__print_metrics(stdout);
	return err ? 1 : 0;
}
