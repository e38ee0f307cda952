// SPDX-License-Identifier: GPL-2.0
/*
 * The running flight recorders, as metrics of Prometheus
 *
 * Theory of operation
 * -------------------
 * ask.c finds the recorders, and asks all of them for their status.
 *
 * Any user can run a process that looks like a recorder, so answers are not trusted. Only the
 * name and numbers are taken from them; the pid comes from the kernel. Two recorders with the
 * same labels would make all metrics invalid: the second is left out.
 *
 * A recorder that the user may not ask, or that does not answer, is not counted.
 */
#include "../ctl-metrics.h"
#include "ask.h"
#include "../json-reader.h"
#include "../json-writer.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER	32

/* The metrics of a recorder; @key: the member of its answer */
static const struct metric {
	const char	*name;
	const char	*key;
	const char	*type;
	const char	*help;
} metrics[] = {
	{ "uptime_seconds", "uptime", "gauge", "For how long it has been recording." },
	{ "window_seconds", "window", "gauge", "How far back a dump would reach." },
	{ "memory_limit_bytes", "memory", "gauge", "Memory that it may use." },
	{ "memory_used_bytes", "used", "gauge", "Memory that samples and side-band take." },
	{ "sideband_bytes", "sideband", "gauge", "Memory that the side-band takes of it." },
	{ "sideband_dropped_total", "sideband_dropped", "counter",
	  "Descriptions of tasks and maps that it had no room for." },
	{ "writing", "writing", "gauge", "1 while a dump is being written." },
	{ "dumps_total", "dumps", "counter", "Dumps that were written." },
	{ "dumps_failed_total", "failed", "counter", "Dumps that were not, for an error." },
	{ "triggers_swallowed_total", "swallowed", "counter",
	  "Triggers that the cooldown swallowed." },
	{ "lost_events_total", "lost", "counter", "Events that the kernel had no room for." },
	{ "given_up_bytes_total", "given_up", "counter",
	  "Bytes that the recorder had no room for." },
	{ "cpu_seconds_total", "cpu_time", "counter", "CPU time of the recorder." },
	{ "dump_cpu_seconds_total", "cpu_time_dumps", "counter",
	  "CPU time of its children that have written dumps." },
	{ "overhead_percent", "overhead", "gauge",
	  "CPU time that recording takes, if it has a limit." },
	{ "overhead_limit_percent", "max_overhead", "gauge", "The limit." },
	{ "rate_divisor", "rate_divisor", "gauge", "What sampling rates are divided by for it." },
	{ "events_given_up", "nr_events_given_up", "gauge",
	  "Events that are not recorded for it." },
};

/* A part of a label's value. */
static void put_label(FILE *f, const char *text)
{
	while (*text) {
		if (*text == '\\' || *text == '"') {
			fprintf(f, "\\%c", *text++);
		} else if (isascii(*text) && iscntrl(*text)) {
			fputc('?', f);
			text++;
		} else {
			text += json_writer__put_utf8(f, text);
		}
	}
}

static char *format_labels(const struct flight_peer *peer)
{
	char *labels = NULL, *out = NULL;
	struct json_value value;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&labels, &size);
	if (!f)
		return NULL;
	if (json__find(peer->answer, "out", &value))
		out = json_value__strdup(&value);
	fprintf(f, "{out=\"");
	if (peer->cwd && (!out || *out != '/')) {
		put_label(f, peer->cwd);
		fputc('/', f);
	}
	put_label(f, out ?: "");
	free(out);
	fprintf(f, "\",pid=\"%d\"}", peer->pid);
	if (fclose(f))
		zfree(&labels);
	return labels;
}

static bool has_labels(const struct flight_peers *peers, const char *labels, int nr)
{
	for (int i = 0; i < nr; i++) {
		const char *other = peers->entries[i].labels;

		if (other && !strcmp(other, labels))
			return true;
	}
	return false;
}

/* Return: how many recorders there are, or a negative errno. */
static int name_recorders(struct flight_peers *peers)
{
	int nr = 0;

	for (int i = 0; i < peers->nr; i++) {
		struct flight_peer *peer = &peers->entries[i];
		char *labels;

		if (!flight_peer__is_recorder(peer))
			continue;
		labels = format_labels(peer);
		if (!labels)
			return -ENOMEM;
		if (has_labels(peers, labels, i)) {
			free(labels);
			continue;
		}
		peer->labels = labels;
		nr++;
	}
	return nr;
}

static void put_value(FILE *f, const struct metric *metric, const struct flight_peer *peer)
{
	struct json_value value;

	if (!json__find(peer->answer, metric->key, &value))
		return;
	if (json_value__is(&value, "true"))
		fprintf(f, "perf_flight_%s%s 1\n", metric->name, peer->labels);
	else if (json_value__is(&value, "false"))
		fprintf(f, "perf_flight_%s%s 0\n", metric->name, peer->labels);
	/* A longer number may be too large for the reader of the metrics. */
	else if (json_value__is_number(&value) && value.len <= MAX_NUMBER)
		fprintf(f, "perf_flight_%s%s %.*s\n", metric->name, peer->labels,
			(int)value.len, value.text);
}

static void put_metric(FILE *f, const struct metric *metric, const struct flight_peers *peers)
{
	fprintf(f, "# HELP perf_flight_%s %s\n# TYPE perf_flight_%s %s\n", metric->name,
		metric->help, metric->name, metric->type);
	for (int i = 0; i < peers->nr; i++) {
		if (peers->entries[i].labels)
			put_value(f, metric, &peers->entries[i]);
	}
}

/**
 * flight_recorders__print_metrics - how all flight recorders fare
 * @f: where to print it
 *
 * In the text format of Prometheus. Those alone that the user may ask. It takes
 * FLIGHT_ANSWER_S, after they were found, at most.
 *
 * Return: 0, or a negative errno.
 */
int flight_recorders__print_metrics(FILE *f)
{
	struct flight_peers peers = {};
	int nr = flight_peers__ask_all(&peers);

	if (!nr)
		nr = name_recorders(&peers);
	if (nr < 0)
		goto out_free;

	fprintf(f, "# HELP perf_flight_recorders Number of flight recorders that answer.\n"
		   "# TYPE perf_flight_recorders gauge\n"
		   "perf_flight_recorders %d\n", nr);
	for (size_t i = 0; nr && i < ARRAY_SIZE(metrics); i++)
		put_metric(f, &metrics[i], &peers);
out_free:
	flight_peers__free(&peers);
	return min(nr, 0);
}
