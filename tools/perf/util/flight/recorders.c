// SPDX-License-Identifier: GPL-2.0
/*
 * The running flight recorders, as metrics of Prometheus
 *
 * Theory of operation
 * -------------------
 * The registry (registry.c) finds the recorders and connects to them. Each is asked for its
 * 'status', which it answers with a flat JSON object. All are asked at the same time, and
 * all together have ANSWER_S to answer.
 *
 * Any user can run something that looks like a recorder, so no answer is believed. Only the
 * name and what are numbers are taken from it; the pid is the one that the kernel tells. Two
 * recorders with the same labels would make all metrics invalid: the second is left out.
 *
 * A recorder that the user may not ask, or that does not answer, is not counted.
 */
#include "../ctl-metrics.h"
#include "registry.h"
#include "../json-reader.h"
#include "../json-writer.h"
#include "../time-utils.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_S	5
#define MAX_ANSWER	8192
#define MAX_NUMBER	32

/**
 * struct recorder - a socket that is asked
 * @pid: the listener, or 0 if it has none in this PID namespace
 * @fd: the connection, until the answer is there; else -1
 * @len: bytes of @answer
 * @answer: to 'status', without the newline when it is whole
 * @cwd: where it runs
 * @labels: what its metrics are told from others' by; NULL if it has not answered
 */
struct recorder {
	pid_t		pid;
	int		fd;
	size_t		len;
	char		*answer;
	char		*cwd;
	char		*labels;
};

/**
 * struct recorders - all of them
 * @entries: the recorders
 * @nr: how many
 */
struct recorders {
	struct recorder	*entries;
	int		nr;
};

/* What a recorder is measured by; @key: in its answer. */
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
};

/* Questions */

static char *read_cwd(pid_t pid)
{
	char path[32], link[PATH_MAX];
	ssize_t len;

	if (!pid)
		return NULL;
	scnprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return NULL;
	link[len] = '\0';
	return strdup(link);
}

/* The registry's connection is new: a request fits. */
static int ask_status(void *data, int fd, pid_t pid)
{
	static const char request[] = "status\n";
	struct recorders *recorders = data;
	struct recorder *entries;

	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) {
		close(fd);
		return 0;
	}
	entries = reallocarray(recorders->entries, recorders->nr + 1, sizeof(*entries));
	if (!entries) {
		close(fd);
		return -ENOMEM;
	}
	recorders->entries = entries;
	entries += recorders->nr++;
	*entries = (struct recorder) {
		.pid	= pid,
		.fd	= fd,
		.answer	= malloc(MAX_ANSWER),
		.cwd	= read_cwd(pid),
	};
	return entries->answer ? 0 : -ENOMEM;
}

/* Answers */

/* What is there of it; the connection ends with the line. */
static void read_answer(struct recorder *recorder)
{
	char *from = recorder->answer + recorder->len, *end = NULL;
	ssize_t n = recv(recorder->fd, from, MAX_ANSWER - recorder->len, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		recorder->len += n;
		end = memchr(from, '\n', n);
		if (!end && recorder->len < MAX_ANSWER)
			return;
	}
	close(recorder->fd);
	recorder->fd = -1;
	if (end)
		*end = '\0';
	else
		zfree(&recorder->answer);
}

static int wait_for_answers(struct recorders *recorders)
{
	u64 until = rdclock() + ANSWER_S * NSEC_PER_SEC, now;
	struct pollfd *fds = calloc(recorders->nr + 1, sizeof(*fds));
	int err = 0;

	if (!fds)
		return -ENOMEM;
	while (!err && (now = rdclock()) < until) {
		int waiting = 0;

		/* One below 0 is passed over. */
		for (int i = 0; i < recorders->nr; i++) {
			fds[i].fd = recorders->entries[i].fd;
			fds[i].events = POLLIN;
			fds[i].revents = 0;
			waiting += fds[i].fd >= 0;
		}
		if (!waiting)
			break;
		if (poll(fds, recorders->nr, (until - now) / NSEC_PER_MSEC + 1) < 0)
			err = errno == EINTR ? 0 : -errno;
		for (int i = 0; !err && i < recorders->nr; i++) {
			if (fds[i].revents)
				read_answer(&recorders->entries[i]);
		}
	}
	free(fds);
	return err;
}

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

static char *format_labels(const struct recorder *recorder)
{
	char *labels = NULL, *out = NULL;
	struct json_value value;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&labels, &size);
	if (!f)
		return NULL;
	if (json__find(recorder->answer, "out", &value))
		out = json_value__strdup(&value);
	fprintf(f, "{out=\"");
	if (recorder->cwd && (!out || *out != '/')) {
		put_label(f, recorder->cwd);
		fputc('/', f);
	}
	put_label(f, out ?: "");
	free(out);
	fprintf(f, "\",pid=\"%d\"}", recorder->pid);
	if (fclose(f))
		zfree(&labels);
	return labels;
}

static bool has_labels(const struct recorders *recorders, const char *labels, int nr)
{
	for (int i = 0; i < nr; i++) {
		const char *other = recorders->entries[i].labels;

		if (other && !strcmp(other, labels))
			return true;
	}
	return false;
}

/* It looks like one, that is. */
static bool is_status(const char *answer)
{
	struct json_value value;

	return answer && *answer && answer[strlen(answer) - 1] == '}' &&
	       json__find(answer, "ok", &value) && json_value__is(&value, "true") &&
	       json__find(answer, "pid", &value);
}

/* Return: how many recorders there are, or a negative errno. */
static int name_recorders(struct recorders *recorders)
{
	int nr = 0;

	for (int i = 0; i < recorders->nr; i++) {
		struct recorder *recorder = &recorders->entries[i];
		char *labels;

		if (recorder->fd >= 0 || !is_status(recorder->answer))
			continue;
		labels = format_labels(recorder);
		if (!labels)
			return -ENOMEM;
		if (has_labels(recorders, labels, i)) {
			free(labels);
			continue;
		}
		recorder->labels = labels;
		nr++;
	}
	return nr;
}

static void put_value(FILE *f, const struct metric *metric, const struct recorder *recorder)
{
	struct json_value value;

	if (!json__find(recorder->answer, metric->key, &value))
		return;
	if (json_value__is(&value, "true"))
		fprintf(f, "perf_flight_%s%s 1\n", metric->name, recorder->labels);
	else if (json_value__is(&value, "false"))
		fprintf(f, "perf_flight_%s%s 0\n", metric->name, recorder->labels);
	/* A longer one might be more than whoever reads the metrics can hold. */
	else if (json_value__is_number(&value) && value.len <= MAX_NUMBER)
		fprintf(f, "perf_flight_%s%s %.*s\n", metric->name, recorder->labels,
			(int)value.len, value.text);
}

static void put_metric(FILE *f, const struct metric *metric, const struct recorders *recorders)
{
	fprintf(f, "# HELP perf_flight_%s %s\n# TYPE perf_flight_%s %s\n", metric->name,
		metric->help, metric->name, metric->type);
	for (int i = 0; i < recorders->nr; i++) {
		if (recorders->entries[i].labels)
			put_value(f, metric, &recorders->entries[i]);
	}
}

static void free_recorders(struct recorders *recorders)
{
	for (int i = 0; i < recorders->nr; i++) {
		struct recorder *recorder = &recorders->entries[i];

		if (recorder->fd >= 0)
			close(recorder->fd);
		zfree(&recorder->answer);
		zfree(&recorder->cwd);
		zfree(&recorder->labels);
	}
	free(recorders->entries);
}

/**
 * flight_recorders__print_metrics - how all flight recorders fare
 * @f: where to print it
 *
 * In the text format of Prometheus. Those alone that the user may ask. It takes ANSWER_S,
 * after they were found, at most.
 *
 * Return: 0, or a negative errno.
 */
int flight_recorders__print_metrics(FILE *f)
{
	struct recorders recorders = {};
	int nr = flight_registry__look(ask_status, &recorders);

	if (!nr)
		nr = wait_for_answers(&recorders);
	if (!nr)
		nr = name_recorders(&recorders);
	if (nr < 0)
		goto out_free;

	fprintf(f, "# HELP perf_flight_recorders Number of flight recorders that answer.\n"
		   "# TYPE perf_flight_recorders gauge\n"
		   "perf_flight_recorders %d\n", nr);
	for (size_t i = 0; nr && i < ARRAY_SIZE(metrics); i++)
		put_metric(f, &metrics[i], &recorders);
out_free:
	free_recorders(&recorders);
	return min(nr, 0);
}
