// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorders that run now, as metrics of Prometheus
 *
 * Who has --trigger socket answers the request 'status' with a flat JSON object. Which
 * sockets to ask is learned from /proc: of every 'perf record', those of its descriptors
 * that /proc/PID/net/unix knows as listening. Their names are looked up from where that
 * process sees them (/proc/PID/root, /proc/PID/cwd): a service may have mounts of its own.
 *
 * The children that write dumps have the same descriptors: an inode is asked once. Nobody
 * is waited for longer than TIMEOUT_S; who may not ask, or gets no answer, learns of no
 * recorder there.
 */
#include "recorders.h"

#include <api/fs/fs.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define TIMEOUT_S	5
#define MAX_ANSWER	8192

/**
 * struct recorder - a recorder that has answered
 * @inode: of its socket
 * @answer: to 'status', without the newline
 * @cwd: where it runs, if the name of its files is relative; else NULL
 */
struct recorder {
	unsigned long	inode;
	char		*answer;
	char		*cwd;
};

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

static char *read_link(const char *pid, const char *name)
{
	char path[PATH_MAX], link[PATH_MAX];
	ssize_t len;

	scnprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		return NULL;
	link[len] = '\0';
	return strdup(link);
}

/* perf daemon listens, too, and would take offence. */
static bool is_perf_record(const char *pid)
{
	char path[64], line[4096], *arg;
	bool is = false;
	size_t len;
	FILE *file;

	scnprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	len = fread(line, 1, sizeof(line) - 1, file);
	fclose(file);
	line[len] = '\0';
	for (arg = line; !is && arg < line + len; arg += strlen(arg) + 1)
		is = !strcmp(arg, "record") || (arg == line && strstr(arg, "perf-record"));
	return is;
}

/* The answer to 'status' of the socket that is called @path; the caller frees it. */
static char *ask_status(const char *path)
{
	static const char request[] = "status\n";
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval timeout = { .tv_sec = TIMEOUT_S };
	char answer[MAX_ANSWER], *end = NULL, *ret = NULL;
	size_t len = 0;
	ssize_t n;
	int file, fd;

	/* Its name may be longer than there is room for in an address. */
	file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return NULL;
	scnprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		goto out_close_file;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		goto out_close;

	while (!end && len < sizeof(answer) - 1) {
		n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);
		if (n <= 0)
			break;
		len += n;
		answer[len] = '\0';
		end = strchr(answer, '\n');
	}
	if (end) {
		*end = '\0';
		if (strstarts(answer, "{\"ok\": true, \"pid\": "))
			ret = strdup(answer);
	}
out_close:
	close(fd);
out_close_file:
	close(file);
	return ret;
}

static bool is_known(const struct recorders *recorders, unsigned long inode)
{
	for (int i = 0; i < recorders->nr; i++)
		if (recorders->entries[i].inode == inode)
			return true;
	return false;
}

static int add_socket(struct recorders *recorders, const char *pid, unsigned long inode,
		      const char *name)
{
	struct recorder *entries;
	char path[PATH_MAX], *answer;

	scnprintf(path, sizeof(path), "/proc/%s/%s/%s", pid, *name == '/' ? "root" : "cwd", name);
	answer = ask_status(path);
	if (!answer)
		return 0;

	entries = reallocarray(recorders->entries, recorders->nr + 1, sizeof(*entries));
	if (!entries) {
		free(answer);
		return -ENOMEM;
	}
	recorders->entries = entries;
	entries += recorders->nr++;
	entries->inode = inode;
	entries->answer = answer;
	entries->cwd = strstr(answer, "\"out\": \"/") ? NULL : read_link(pid, "cwd");
	return 0;
}

static bool has_open(const char *pid, unsigned long inode)
{
	char path[64], want[32], link[64];
	bool has = false;
	struct dirent *d;
	ssize_t len;
	DIR *dir;

	scnprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	scnprintf(want, sizeof(want), "socket:[%lu]", inode);
	while (!has && (d = readdir(dir)) != NULL) {
		len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		link[max_t(ssize_t, len, 0)] = '\0';
		has = !strcmp(link, want);
	}
	closedir(dir);
	return has;
}

/* Num: RefCount Protocol Flags Type St Inode Path; it listens: __SO_ACCEPTCON */
static int add_process(struct recorders *recorders, const char *pid)
{
	unsigned long flags, inode;
	char *line = NULL, path[64];
	int err = 0, name;
	size_t room = 0;
	FILE *file;

	scnprintf(path, sizeof(path), "/proc/%s/net/unix", pid);
	file = fopen(path, "r");
	while (file && !err && getline(&line, &room, file) > 0) {
		name = 0;
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %lx %*s %*s %lu %n", &flags, &inode, &name) != 2 ||
		    flags != 0x10000 || !name || !line[name] || line[name] == '@' ||
		    is_known(recorders, inode) || !has_open(pid, inode))
			continue;
		err = add_socket(recorders, pid, inode, line + name);
	}
	free(line);
	if (file)
		fclose(file);
	return err;
}

static int find_recorders(struct recorders *recorders)
{
	char path[NAME_MAX + 8], *comm;
	struct dirent *d;
	size_t size;
	int err = 0;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (!err && (d = readdir(dir)) != NULL) {
		if (!isdigit(d->d_name[0]))
			continue;
		comm = NULL;
		scnprintf(path, sizeof(path), "%s/comm", d->d_name);
		if (!procfs__read_str(path, &comm, &size) && comm && !strcmp(comm, "perf\n") &&
		    is_perf_record(d->d_name))
			err = add_process(recorders, d->d_name);
		free(comm);
	}
	closedir(dir);
	return err;
}

/* The value of a key of the object: in its one string, quotes have a backslash. */
static const char *value_of(const struct recorder *recorder, const char *key, int *len)
{
	const char *value;
	char want[64];

	scnprintf(want, sizeof(want), ", \"%s\": ", key);
	value = strstr(recorder->answer, want);
	if (!value)
		return NULL;
	value += strlen(want);
	*len = strcspn(value, ",}");
	return value;
}

/* JSON has other escapes than Prometheus has. */
static void put_label(FILE *f, const char *text, bool is_json)
{
	for (; *text && (!is_json || *text != '"'); text++) {
		if (*text == '\\' && is_json && text[1] == 'u' && strlen(text) >= 6) {
			fputc('?', f);
			text += 5;
		} else if (*text == '\\' && is_json && text[1]) {
			fputc('\\', f);
			fputc(*++text, f);
		} else if (*text == '\\' || *text == '"') {
			fprintf(f, "\\%c", *text);
		} else {
			fputc(iscntrl(*text) ? '?' : *text, f);
		}
	}
}

static void put_labels(FILE *f, const struct recorder *recorder)
{
	const char *out;
	int len = 0;

	out = value_of(recorder, "out", &len);
	fprintf(f, "{out=\"");
	if (recorder->cwd) {
		put_label(f, recorder->cwd, false);
		fputc('/', f);
	}
	put_label(f, out ? out + 1 : "", true);
	fprintf(f, "\",pid=\"%d\"}", atoi(recorder->answer + strlen("{\"ok\": true, \"pid\": ")));
}

static void put_metric(FILE *f, const struct metric *metric, const struct recorders *recorders)
{
	fprintf(f, "# HELP perf_flight_%s %s\n# TYPE perf_flight_%s %s\n", metric->name,
		metric->help, metric->name, metric->type);
	for (int i = 0; i < recorders->nr; i++) {
		const struct recorder *recorder = &recorders->entries[i];
		const char *value;
		int len;

		value = value_of(recorder, metric->key, &len);
		if (!value)
			continue;
		fprintf(f, "perf_flight_%s", metric->name);
		put_labels(f, recorder);
		if (strstarts(value, "true"))
			fprintf(f, " 1\n");
		else if (strstarts(value, "false"))
			fprintf(f, " 0\n");
		else
			fprintf(f, " %.*s\n", len, value);
	}
}

/**
 * flight_recorders__print_metrics - how all flight recorders fare
 * @f: where to print it
 *
 * In the text format of Prometheus. Those alone that the user may ask.
 *
 * Return: 0, or a negative errno.
 */
int flight_recorders__print_metrics(FILE *f)
{
	struct recorders recorders = {};
	int err = find_recorders(&recorders);

	if (err)
		goto out_free;

	fprintf(f, "# HELP perf_flight_recorders Number of flight recorders that answer.\n"
		   "# TYPE perf_flight_recorders gauge\n"
		   "perf_flight_recorders %d\n", recorders.nr);
	for (size_t i = 0; recorders.nr && i < ARRAY_SIZE(metrics); i++)
		put_metric(f, &metrics[i], &recorders);
out_free:
	for (int i = 0; i < recorders.nr; i++) {
		zfree(&recorders.entries[i].answer);
		zfree(&recorders.entries[i].cwd);
	}
	free(recorders.entries);
	return err;
}
