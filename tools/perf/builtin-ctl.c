// SPDX-License-Identifier: GPL-2.0
/*
 * perf ctl: list, describe and end persistent sessions.
 */
#include "builtin.h"

#include "util/debug.h"
#include "util/evsel.h"
#include "util/persistent.h"
#include "util/trace-event.h"
#include "util/util.h"

#include <subcmd/parse-options.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char * const ctl_usage[] = {
	"perf ctl [-l] [--json]",
	"perf ctl -i NAME [--json]",
	"perf ctl -d NAME...",
	NULL
};

/* Columns of the list; @json_number: its value needs no quotes there. */
static const struct column {
	const char	*title;
	const char	*key;
	size_t		offset;
	bool		json_number;
} columns[] = {
	{ "CPUS",   "cpus",	 offsetof(struct persistent_entry, cpus),      false },
	{ "EVENTS", "nr_events", offsetof(struct persistent_entry, nr_events), true  },
	{ "MEMORY", "memory",	 offsetof(struct persistent_entry, memory),    true  },
	{ "OWNER",  "owner",	 offsetof(struct persistent_entry, owner),     true  },
	{ "STATE",  "state",	 offsetof(struct persistent_entry, state),     false },
};

static const char *entry__value(const struct persistent_entry *entry, const struct column *column)
{
	return *(char * const *)((const char *)entry + column->offset);
}

static void print_list(const struct persistent_entry *entries, int nr)
{
	size_t i, width[ARRAY_SIZE(columns)], name_width = strlen("NAME");
	const char *value;
	int n;

	for (i = 0; i < ARRAY_SIZE(columns); i++)
		width[i] = strlen(columns[i].title);
	for (n = 0; n < nr; n++) {
		name_width = max(name_width, strlen(entries[n].name));
		for (i = 0; i < ARRAY_SIZE(columns); i++) {
			value = entry__value(&entries[n], &columns[i]);
			width[i] = max(width[i], value ? strlen(value) : 1);
		}
	}

	printf("%-*s  %4s", (int)name_width, "NAME", "ID");
	for (i = 0; i < ARRAY_SIZE(columns); i++)
		printf("  %*s", (int)width[i], columns[i].title);
	printf("\n");
	for (n = 0; n < nr; n++) {
		printf("%-*s  %4llu", (int)name_width, entries[n].name,
		       (unsigned long long)entries[n].id);
		for (i = 0; i < ARRAY_SIZE(columns); i++)
			printf("  %*s", (int)width[i],
			       entry__value(&entries[n], &columns[i]) ?: "-");
		printf("\n");
	}
}

static void print_list_json(const struct persistent_entry *entries, int nr)
{
	const char *value, *quote;

	printf("[");
	for (int n = 0; n < nr; n++) {
		printf("%s\n  {\"name\": \"%s\", \"id\": %llu", n ? "," : "",
		       entries[n].name, (unsigned long long)entries[n].id);
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
			value = entry__value(&entries[n], &columns[i]);
			quote = columns[i].json_number || !value ? "" : "\"";
			printf(", \"%s\": %s%s%s", columns[i].key, quote, value ?: "null", quote);
		}
		printf("}");
	}
	printf("%s]\n", nr ? "\n" : "");
}

static int ctl__list(bool json)
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

	if (json)
		print_list_json(entries, nr);
	else if (nr)
		print_list(entries, nr);
	else
		printf("No persistent sessions; make one with: perf record -P NAME -e EVENTS -a\n");

	persistent__free_list(entries, nr);
	return 0;
}

/* The caller frees it. */
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

static void print_info(const struct persistent_session *s)
{
	printf("session %s, id %llu, owner %u\n", s->name, (unsigned long long)s->id, s->owner);
	printf("%4s  %5s  %6s  %9s  %-11s  %s\n",
	       "CPU", "INDEX", "BUFFER", "KiB", "STATE", "EVENT");
	for (int i = 0; i < s->nr_events; i++) {
		struct persistent_event *event = &s->events[i];
		char *name = event_name(&event->attr);

		printf("%4d  %5u  %6u  %9llu  %-11s  %s%s\n", event->cpu, event->index,
		       event->buffer_index, (unsigned long long)event->data_size / 1024,
		       persistent__state_name(event->state), name ?: "?",
		       persistent_event__is_sideband(event) ? " (side-band)" : "");
		free(name);
	}
}

static void print_info_json(const struct persistent_session *s)
{
	printf("{\"name\": \"%s\", \"id\": %llu, \"owner\": %u, \"events\": [", s->name,
	       (unsigned long long)s->id, s->owner);
	for (int i = 0; i < s->nr_events; i++) {
		struct persistent_event *event = &s->events[i];
		char *name = event_name(&event->attr);

		printf("%s\n  {\"cpu\": %d, \"index\": %u, \"buffer\": %u, \"data_size\": %llu",
		       i ? "," : "", event->cpu, event->index, event->buffer_index,
		       (unsigned long long)event->data_size);
		printf(", \"state\": \"%s\", \"sideband\": %s, \"event\": \"%s\"}",
		       persistent__state_name(event->state),
		       persistent_event__is_sideband(event) ? "true" : "false", name ?: "?");
		free(name);
	}
	printf("\n]}\n");
}

static int ctl__info(const char *name, bool json)
{
	struct persistent_session *session = persistent_session__open(name);

	if (IS_ERR(session))
		return PTR_ERR(session);

	if (json)
		print_info_json(session);
	else
		print_info(session);
	persistent_session__close(session);
	return 0;
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
	persistent_session__close(session);
	return err;
}

int cmd_ctl(int argc, const char **argv)
{
	bool list = false, delete = false, json = false;
	const char *info = NULL;
	const struct option options[] = {
		OPT_BOOLEAN('l', "list", &list, "list the persistent sessions"),
		OPT_STRING('i', "info", &info, "name", "describe a persistent session"),
		OPT_BOOLEAN('d', "delete", &delete, "end the persistent sessions that are named"),
		OPT_BOOLEAN('j', "json", &json, "print JSON"),
		OPT_INCR('v', "verbose", &verbose, "be more verbose"),
		OPT_END()
	};
	int err = 0;

	argc = parse_options(argc, argv, options, ctl_usage, 0);
	if (list + !!info + delete > 1 || (delete ? !argc || json : argc))
		usage_with_options(ctl_usage, options);

	if (persistent__check_support())
		return 1;

	if (delete) {
		for (int i = 0; i < argc; i++)
			err |= ctl__delete(argv[i]);
	} else if (info) {
		err = ctl__info(info, json);
	} else {
		err = ctl__list(json);
	}
	return err ? 1 : 0;
}
