// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorders that run now, as metrics of Prometheus
 *
 * Who has --trigger socket answers the request 'status' with a flat JSON object. Which
 * sockets to ask is learned from /proc: of every 'perf record', those of its descriptors
 * that /proc/PID/net/unix knows as listening. Their names are looked up from where that
 * process sees them (/proc/PID/root, /proc/PID/cwd): a service may have mounts of its own.
 *
 * The children that write dumps have the same descriptors: an inode is asked once.
 *
 * Any user can have a process that looks like a recorder, so no answer is believed. All
 * sockets are asked at the same time, and all have ANSWER_S to answer; to look for them
 * takes FIND_S at most. Those of the user's own processes come first, so that others'
 * cannot use up the time, or MAX_SOCKETS. Who listens must be the user whose process it
 * is: a name may lead elsewhere. Of the answer only the name is taken, and what are
 * numbers; the pid is the one that the kernel tells. Two that would have the same labels
 * would make all metrics invalid: the second is left out.
 *
 * Who may not ask, or gets no answer, learns of no recorder there.
 */
#include "recorders.h"
#include "../json-reader.h"
#include "../json-writer.h"
#include "../time-utils.h"

#include <api/fs/fs.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIND_S		5
#define ANSWER_S	5
#define MAX_SOCKETS	512
#define MAX_ANSWER	8192
#define MAX_NUMBER	32

/**
 * struct recorder - a socket that is asked
 * @inode: of the socket
 * @pid: who listens there
 * @fd: the connection, until the answer is there; else -1
 * @len: bytes of @answer
 * @answer: to 'status', without the newline when it is whole
 * @cwd: where it runs
 * @labels: what its metrics are told from others' by; NULL if it has not answered
 */
struct recorder {
	unsigned long	inode;
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
 * @find_until: when to stop looking for more, ns
 */
struct recorders {
	struct recorder	*entries;
	int		nr;
	u64		find_until;
};

/**
 * struct process - one that may be a recorder
 * @name: its directory in /proc
 * @uid: whose it is
 * @inodes: of its sockets
 * @nr: how many
 */
struct process {
	const char	*name;
	uid_t		uid;
	unsigned long	*inodes;
	size_t		nr;
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

/* Not by the owner of /proc/PID: that is root if the process is not dumpable. */
static bool read_uid(const char *pid, uid_t *uid)
{
	char *line = NULL, path[64];
	bool found = false;
	size_t room = 0;
	FILE *file;

	scnprintf(path, sizeof(path), "/proc/%s/status", pid);
	file = fopen(path, "r");
	while (file && !found && getline(&line, &room, file) > 0)
		found = sscanf(line, "Uid: %*u %u", uid) == 1;
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The process that listens there; 0 if it is another user's, -errno if it is not known. */
static pid_t listener(int fd, const struct process *process)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	if (peer.uid != process->uid)
		return 0;
	/* Outside of our PID namespace it has no number there. */
	return peer.pid ?: atoi(process->name);
}

/* Ask the socket that is called @path, without waiting for anything. Return: a descriptor. */
static int ask_status(const char *path, const struct process *process, pid_t *pid)
{
	static const char request[] = "status\n";
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int file, fd;

	/* Its name may be longer than there is room for in an address. */
	file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return -1;
	scnprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", file);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto out_close;
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		*pid = listener(fd, process);
		if (*pid > 0 &&
		    send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request))
			goto out_close;
	}
	close(fd);
	fd = -1;
out_close:
	close(file);
	return fd;
}

static bool is_known(const struct recorders *recorders, unsigned long inode)
{
	for (int i = 0; i < recorders->nr; i++)
		if (recorders->entries[i].inode == inode)
			return true;
	return false;
}

static int add_socket(struct recorders *recorders, const struct process *process,
		      unsigned long inode, const char *name)
{
	struct recorder *entries;
	char path[PATH_MAX];
	pid_t pid;
	int fd;

	scnprintf(path, sizeof(path), "/proc/%s/%s/%s", process->name,
		  *name == '/' ? "root" : "cwd", name);
	fd = ask_status(path, process, &pid);
	if (fd < 0)
		return 0;

	entries = reallocarray(recorders->entries, recorders->nr + 1, sizeof(*entries));
	if (!entries) {
		close(fd);
		return -ENOMEM;
	}
	recorders->entries = entries;
	entries += recorders->nr++;
	*entries = (struct recorder) {
		.inode	= inode,
		.pid	= pid,
		.fd	= fd,
		.answer	= malloc(MAX_ANSWER),
		.cwd	= read_link(process->name, "cwd"),
	};
	return entries->answer ? 0 : -ENOMEM;
}

/* There may be more: neither has the time come, nor is there no room. */
static bool goes_on(const struct recorders *recorders)
{
	return recorders->nr < MAX_SOCKETS && rdclock() < recorders->find_until;
}

static int list_sockets(struct process *process, const struct recorders *recorders)
{
	char path[64], link[64];
	unsigned long *inodes;
	struct dirent *d;
	int err = 0;
	ssize_t len;
	DIR *dir;

	scnprintf(path, sizeof(path), "/proc/%s/fd", process->name);
	dir = opendir(path);
	while (dir && !err && goes_on(recorders) && (d = readdir(dir)) != NULL) {
		len = readlinkat(dirfd(dir), d->d_name, link, sizeof(link) - 1);
		link[max_t(ssize_t, len, 0)] = '\0';
		if (!strstarts(link, "socket:["))
			continue;
		inodes = reallocarray(process->inodes, process->nr + 1, sizeof(*inodes));
		if (inodes) {
			process->inodes = inodes;
			inodes[process->nr++] = strtoul(link + strlen("socket:["), NULL, 10);
		}
		err = inodes ? 0 : -ENOMEM;
	}
	if (dir)
		closedir(dir);
	return err;
}

static bool has_open(const struct process *process, unsigned long inode)
{
	for (size_t i = 0; i < process->nr; i++)
		if (process->inodes[i] == inode)
			return true;
	return false;
}

/* Num: RefCount Protocol Flags Type St Inode Path; it listens: __SO_ACCEPTCON */
static int add_process(struct recorders *recorders, const char *pid, uid_t uid)
{
	struct process process = { .name = pid, .uid = uid };
	int err = list_sockets(&process, recorders), name;
	unsigned long flags, inode;
	char *line = NULL, path[64];
	size_t room = 0;
	FILE *file;

	scnprintf(path, sizeof(path), "/proc/%s/net/unix", pid);
	file = process.nr ? fopen(path, "r") : NULL;
	while (file && !err && goes_on(recorders) && getline(&line, &room, file) > 0) {
		name = 0;
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %lx %*s %*s %lu %n", &flags, &inode, &name) != 2 ||
		    flags != 0x10000 || !name || !line[name] || line[name] == '@' ||
		    is_known(recorders, inode) || !has_open(&process, inode))
			continue;
		err = add_socket(recorders, &process, inode, line + name);
	}
	free(line);
	free(process.inodes);
	if (file)
		fclose(file);
	return err;
}

static bool is_wanted(const char *pid, bool own, uid_t *uid)
{
	bool is_own;

	if (!is_perf_record(pid) || !read_uid(pid, uid))
		return false;
	is_own = *uid == geteuid();
	return is_own == own;
}

static int find_some(struct recorders *recorders, bool own)
{
	char path[NAME_MAX + 8], *comm;
	struct dirent *d;
	size_t size;
	int err = 0;
	uid_t uid;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return -errno;
	while (!err && goes_on(recorders) && (d = readdir(dir)) != NULL) {
		if (!isdigit(d->d_name[0]))
			continue;
		comm = NULL;
		scnprintf(path, sizeof(path), "%s/comm", d->d_name);
		if (!procfs__read_str(path, &comm, &size) && comm && !strcmp(comm, "perf\n") &&
		    is_wanted(d->d_name, own, &uid))
			err = add_process(recorders, d->d_name, uid);
		free(comm);
	}
	closedir(dir);
	return err;
}

static int find_recorders(struct recorders *recorders)
{
	recorders->find_until = rdclock() + FIND_S * NSEC_PER_SEC;
	return find_some(recorders, /*own=*/true) ?: find_some(recorders, /*own=*/false);
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
 * In the text format of Prometheus. Those alone that the user may ask. It takes FIND_S
 * and ANSWER_S at most, whatever the others do.
 *
 * Return: 0, or a negative errno.
 */
int flight_recorders__print_metrics(FILE *f)
{
	struct recorders recorders = {};
	int nr = find_recorders(&recorders);

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
