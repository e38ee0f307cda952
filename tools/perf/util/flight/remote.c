// SPDX-License-Identifier: GPL-2.0
/*
 * The remote control of flight recorders: perf ctl --dump and its like
 *
 * Theory of operation
 * -------------------
 * A request has a target: the name of a recorder, which is the last component of the
 * argument of -o; its pid; the directory of its dumps; that directory with the name; or
 * a socket. Without a target there must be one recorder only. ask.c finds the recorders and asks
 * each for its status, which tells the name. find_target() selects one of them. A target that
 * fits several is an error, which names them.
 *
 * Root finds the recorders of all users, but takes a name or a directory from those of root and
 * of system users only. Otherwise any user could take the name of a recorder that is down, or
 * let root's perf ctl call stat() on a file system that hangs. The recorder of another user is
 * named by its pid, which the kernel tells.
 *
 * The request goes over the connection on which the status came. The recorder answers with
 * one line. The dump of --dump, --stop and --combine has a second answer when it is
 * complete, which can take as long as the disk. The status tells how long the recorder lets
 * it take: so long, and ACCEPT_S, it is waited for, unless --timeout says how long. A
 * recorder that ends closes the connection. --stop and --combine then wait for the end of
 * the process, by its pidfd: this is opened before the request, while the connection proves
 * that the pid is the recorder's. To combine has no bound but --timeout.
 *
 * Answers are untrusted text (ask.c).
 */
#include "../ctl-remote.h"
#include "ask.h"
#include "trigger/triggers.h"
#include "../debug.h"
#include "../json-reader.h"
#include "../json-writer.h"
#include "../time-utils.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On x86, perf is built with a list of system calls of its own that does not have it. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#endif

/* A line of the protocol, with its newline (see trigger/socket.c). */
#define MAX_REQUEST	511
#define MAX_LINE	8192

/* "disarm", with spaces and the newline */
#define MAX_VERB	10

/* Time until a recorder looks at its socket, on a machine that has no CPU for it */
#define ACCEPT_S	60

/* Of a recorder that does not tell how long it lets a dump take, and of any, at the most */
#define DUMP_S		900
#define MAX_DUMP_S	(24 * 60 * 60)

/* Names */

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The same name, or the same directory by another name. */
static bool is_same_path(const char *a, const char *b)
{
	struct stat st_a, st_b;

	if (!strcmp(a, b))
		return true;
	return !stat(a, &st_a) && !stat(b, &st_b) && S_ISDIR(st_a.st_mode) &&
	       st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

/* The directory of @path, or the whole path, is that of @out. */
static bool is_there(const char *path, const char *out)
{
	char *dir = strdup(out), *slash = dir ? strrchr(dir, '/') : NULL;
	bool found = false;

	if (slash) {
		slash[slash == dir] = '\0';
		found = is_same_path(path, dir);
	}
	free(dir);
	return found;
}

/* DIRECTORY/NAME, where the directory may have another name. */
static bool is_out(const char *path, const char *out)
{
	char *dir = strdup(path), *slash = dir ? strrchr(dir, '/') : NULL;
	bool found = false;

	if (slash && !strcmp(slash + 1, last_component(out))) {
		slash[slash == dir] = '\0';
		found = is_there(dir, out);
	}
	free(dir);
	return found;
}

static bool is_number(const char *str)
{
	return *str && strlen(str) == strspn(str, "0123456789");
}

/* Those of services: of login.defs (SYS_UID_MAX), and of systemd's DynamicUser. */
static bool is_system_user(uid_t uid)
{
	return uid <= 999 || (uid >= 61184 && uid <= 65519);
}

/* May its answer say which target it is? */
static bool has_name(const struct flight_peer *peer)
{
	return !peer->foreign && (peer->uid == geteuid() || is_system_user(peer->uid));
}

/* Can it be the target? Its answer is not known yet. */
static bool may_be(const char *target, const struct flight_peer *peer)
{
	return has_name(peer) ||
	       (target && is_number(target) && peer->pid && peer->pid == atoi(target));
}

/**
 * enum fit - how a target fits a recorder
 * @FIT_NONE: it does not
 * @FIT_DIRECTORY: it is the directory of its dumps
 * @FIT_NAME: it is its name, with or without the directory
 * @FIT_PID: it is its pid
 */
enum fit {
	FIT_NONE,
	FIT_DIRECTORY,
	FIT_NAME,
	FIT_PID,
};

static enum fit fits(const struct flight_peer *peer, const char *target)
{
	enum fit fit = FIT_NONE;
	char *out;

	if (is_number(target) && peer->pid && peer->pid == atoi(target))
		return FIT_PID;
	if (!has_name(peer))
		return FIT_NONE;
	out = flight_peer__out(peer);
	if (out && !strcmp(last_component(out), target))
		fit = FIT_NAME;
	else if (out && is_out(target, out))
		fit = FIT_NAME;
	else if (out && is_there(target, out))
		fit = FIT_DIRECTORY;
	free(out);
	return fit;
}

/* Ask everybody, or who listens on the socket @target. */
static int ask(struct flight_peers *peers, const char *target, bool *is_socket)
{
	struct stat st;

	*is_socket = target && !stat(target, &st) && S_ISSOCK(st.st_mode);
	if (!*is_socket) {
		peers->wanted = may_be;
		peers->target = target;
		peers->only = target && is_number(target) ? atoi(target) : 0;
	}
	return *is_socket ? flight_peers__ask_socket(peers, target) : flight_peers__ask_all(peers);
}

static void print_name(const struct flight_peer *peer, const char *separator)
{
	char *out = flight_peer__out(peer);

	fprintf(stderr, "%s%d (", separator, peer->pid);
	flight_peer__put_text(stderr, out ?: "?");
	if (peer->uid == geteuid())
		fprintf(stderr, ")");
	else
		fprintf(stderr, ", user %u)", peer->uid);
	free(out);
}

/* All recorders whose fit is @fit. Return: how many. */
static int print_names(const struct flight_peers *peers, const char *target, enum fit fit)
{
	int nr = 0;

	for (int i = 0; i < peers->nr; i++) {
		const struct flight_peer *peer = &peers->entries[i];

		if (flight_peer__is_recorder(peer) && (!target || fits(peer, target) == fit))
			print_name(peer, nr++ ? ", " : " ");
	}
	if (nr)
		fprintf(stderr, ".\n");
	else
		fprintf(stderr, "%s",
			" none that you may ask; recorders with --trigger socket or --daemon are found.\n");
	return nr;
}

static int tell_missing(const char *target)
{
	struct flight_peers peers = {};

	/* Those of other users, too. */
	flight_peers__ask_all(&peers);
	if (target)
		pr_err("No flight recorder '%s'. There are:", target);
	else
		pr_err("No flight recorder was found. There are:");
	print_names(&peers, NULL, FIT_NONE);
	flight_peers__free(&peers);
	return -ESRCH;
}

/**
 * find_target - the recorder that a target names
 * @peers: those that were asked
 * @target: the target, or NULL for the only one
 * @any: whether the target was a socket: what answers there is meant
 * @found: returns it
 *
 * Return: 0; -ESRCH if there is none; -ENOTUNIQ after an error message.
 */
static int find_target(const struct flight_peers *peers, const char *target, bool any,
		       struct flight_peer **found)
{
	enum fit best = FIT_NONE;
	int nr = 0;

	for (int i = 0; i < peers->nr; i++) {
		struct flight_peer *peer = &peers->entries[i];
		enum fit fit;

		if (!flight_peer__is_recorder(peer))
			continue;
		if (target)
			fit = any ? FIT_PID : fits(peer, target);
		else
			fit = has_name(peer) ? FIT_NAME : FIT_NONE;
		if (fit == FIT_NONE || fit < best)
			continue;
		nr = fit > best ? 1 : nr + 1;
		best = fit;
		*found = peer;
	}
	if (!nr)
		return -ESRCH;
	if (nr == 1)
		return 0;
	if (target)
		pr_err("%d flight recorders fit '%s'. Name one of them by its pid:", nr, target);
	else
		pr_err("There are %d flight recorders. Name one of them, or give its pid:", nr);
	print_names(peers, target, best);
	return -ENOTUNIQ;
}

/* List */

static bool get_value(const struct flight_peer *peer, const char *key, struct json_value *value)
{
	return json__find(peer->answer, key, value) && value->len < 32 &&
	       (json_value__is_number(value) || json_value__is(value, "true") ||
		json_value__is(value, "false"));
}

/* What the list and --status tell of the numbers in an answer. */
static const struct column {
	const char	*title;
	const char	*key;
} columns[] = {
	{ "UPTIME(s)",	"uptime" },
	{ "WINDOW(s)",	"window" },
	{ "MEMORY",	"memory" },
	{ "USED",	"used" },
	{ "DUMPS",	"dumps" },
	{ "FAILED",	"failed" },
};

static void print_columns(const struct flight_peer *peer)
{
	struct json_value value;
	char *out = flight_peer__out(peer);

	flight_peer__put_text(stdout, last_component(out ?: "?"));
	printf("  %d", peer->pid);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (get_value(peer, columns[i].key, &value))
			printf("  %.*s", (int)value.len, value.text);
		else
			printf("  -");
	}
	printf("  ");
	flight_peer__put_text(stdout, out ?: "?");
	printf("\n");
	free(out);
}

static void print_json(const struct flight_peer *peer, struct json_writer *w)
{
	struct json_value value;
	char *out = flight_peer__out(peer), number[32];

	json_writer__begin_object(w, NULL, JSON_STYLE__INLINE);
	json_writer__string(w, "kind", "recorder");
	json_writer__string(w, "name", last_component(out ?: "?"));
	json_writer__number(w, "pid", peer->pid);
	json_writer__string(w, "out", out);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (!get_value(peer, columns[i].key, &value))
			continue;
		scnprintf(number, sizeof(number), "%.*s", (int)value.len, value.text);
		json_writer__literal(w, columns[i].key, number);
	}
	json_writer__end(w);
	free(out);
}

/**
 * flight_recorders__list - list the recorders that the user may ask
 * @w: write them as members of an array; NULL: print a table
 * @behind_sessions: there is another table above it
 *
 * Return: how many there are, or a negative errno.
 */
int flight_recorders__list(struct json_writer *w, bool behind_sessions)
{
	struct flight_peers peers = {};
	int nr = flight_peers__ask_all(&peers);

	for (int i = 0; nr >= 0 && i < peers.nr; i++) {
		if (!flight_peer__is_recorder(&peers.entries[i]))
			continue;
		if (!nr++ && !w) {
			printf("%sRECORDER  PID", behind_sessions ? "\n" : "");
			for (size_t c = 0; c < ARRAY_SIZE(columns); c++)
				printf("  %s", columns[c].title);
			printf("  FILES\n");
		}
		if (w)
			print_json(&peers.entries[i], w);
		else
			print_columns(&peers.entries[i]);
	}
	flight_peers__free(&peers);
	return nr;
}

bool flight_recorders__has(const char *target)
{
	struct flight_peers peers = {};
	bool found = false;

	if (!flight_peers__ask_all(&peers)) {
		for (int i = 0; i < peers.nr; i++)
			found |= flight_peer__is_recorder(&peers.entries[i]) &&
				 fits(&peers.entries[i], target) == FIT_NAME;
	}
	flight_peers__free(&peers);
	return found;
}

/* Conversation */

/**
 * struct talk - a conversation with a recorder
 * @peer: the recorder
 * @request: what the user wants
 * @timeout: how long to wait for a dump in ns, 0: as long as it may take
 * @until: how long to wait for the dump and the end, CLOCK_MONOTONIC; 0: for ever
 * @len: bytes of @text
 * @text: what was read behind the last line
 * @line: the last answer
 */
struct talk {
	struct flight_peer		*peer;
	const struct ctl_request	*request;
	u64				timeout;
	u64				until;
	size_t				len;
	char				text[MAX_LINE];
	char				line[MAX_LINE];
};

static bool take_line(struct talk *talk)
{
	char *end = memchr(talk->text, '\n', talk->len);
	size_t size;

	if (!end)
		return false;
	size = end + 1 - talk->text;
	*end = '\0';
	memcpy(talk->line, talk->text, size);
	talk->len -= size;
	memmove(talk->text, end + 1, talk->len);
	return true;
}

/* Return: 0, or a negative errno; -ECONNRESET at the end of the connection. */
static int read_line(struct talk *talk, int timeout_ms)
{
	u64 until = rdclock() + (u64)timeout_ms * NSEC_PER_MSEC;
	struct pollfd pfd = { .fd = talk->peer->fd, .events = POLLIN };

	while (!take_line(talk)) {
		u64 now = rdclock();
		ssize_t n;

		if (talk->len == sizeof(talk->text))
			return -EMSGSIZE;
		if (timeout_ms >= 0 && now >= until)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, timeout_ms < 0 ? -1 :
			 (int)((until - now) / NSEC_PER_MSEC + 1)) < 0 &&
		    errno != EINTR)
			return -errno;
		n = recv(pfd.fd, talk->text + talk->len, sizeof(talk->text) - talk->len,
			 MSG_DONTWAIT);
		if (!n)
			return -ECONNRESET;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		talk->len += max_t(ssize_t, n, 0);
	}
	return 0;
}

static char *get_string(const struct talk *talk, const char *key)
{
	struct json_value value;

	return json__find(talk->line, key, &value) ? json_value__strdup(&value) : NULL;
}

static bool is_ok(const struct talk *talk)
{
	struct json_value value;

	return json__find(talk->line, "ok", &value) && json_value__is(&value, "true");
}

static void print_answer(const char *answer)
{
	flight_peer__put_text(stdout, answer);
	printf("\n");
}

static int tell_error(const struct talk *talk, int err)
{
	char *error = err ? NULL : get_string(talk, "error");

	if (talk->request->json && !err)
		print_answer(talk->line);
	pr_err("The recorder %d ", talk->peer->pid);
	if (err == -ECONNRESET)
		pr_err("ended before it had answered.\n");
	else if (err == -ETIMEDOUT)
		pr_err("did not answer within %d s.\n", ACCEPT_S);
	else if (err)
		pr_err("cannot be asked: %s\n", strerror(-err));
	if (!err) {
		pr_err("refuses: ");
		flight_peer__put_text(stderr, error ?: talk->line);
		pr_err("\n");
	}
	free(error);
	return err ?: -EPROTO;
}

/* One line, and the answer to it. */
static int say(struct talk *talk, const char *text)
{
	size_t len = strlen(text);
	int err = 0;

	if (send(talk->peer->fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		err = -errno ?: -EIO;
	err = err ?: read_line(talk, ACCEPT_S * MSEC_PER_SEC);
	return err || !is_ok(talk) ? tell_error(talk, err) : 0;
}

static void print_file(const struct talk *talk, char *file)
{
	if (file && *file != '/' && talk->peer->cwd) {
		flight_peer__put_text(stdout, talk->peer->cwd);
		putchar('/');
	}
	flight_peer__put_text(stdout, file ?: "");
	putchar('\n');
	free(file);
}

static double get_seconds(const struct talk *talk, const char *key)
{
	struct json_value value;

	return get_value(talk->peer, key, &value) ? strtod(value.text, NULL) : 0;
}

/* A child may be writing already, and have all of its time. */
static u64 time_for_dump(const struct talk *talk)
{
	double timeout = get_seconds(talk, "dump_timeout");
	double wait = timeout > 0 ? get_seconds(talk, "dump_delay") + 2 * timeout + ACCEPT_S :
				    DUMP_S;

	if (talk->timeout)
		return talk->timeout;
	return (u64)max(1.0, min(wait, (double)MAX_DUMP_S)) * NSEC_PER_SEC;
}

/* In ms, for poll(). */
static int time_left(const struct talk *talk)
{
	u64 now = rdclock();

	if (!talk->until)
		return -1;
	if (now >= talk->until)
		return 0;
	return min_t(u64, (talk->until - now) / NSEC_PER_MSEC + 1, INT_MAX);
}

/* The recorder has accepted a dump, and this waits for it. */
static int await_dump(struct talk *talk)
{
	int err;

	talk->until = rdclock() + time_for_dump(talk);
	err = read_line(talk, time_left(talk));
	if (err == -ETIMEDOUT) {
		pr_err("The recorder %d has accepted the request, but its dump is not complete after %d s.\n",
		       talk->peer->pid, (int)(time_for_dump(talk) / NSEC_PER_SEC));
		return err;
	}
	return err || !is_ok(talk) ? tell_error(talk, err) : 0;
}

static int request_status(struct talk *talk)
{
	struct json_value value;
	char *out;

	if (talk->request->json) {
		print_answer(talk->peer->answer);
		return 0;
	}
	out = flight_peer__out(talk->peer);
	printf("recorder ");
	flight_peer__put_text(stdout, last_component(out ?: "?"));
	printf(", pid %d, files ", talk->peer->pid);
	flight_peer__put_text(stdout, out ?: "?");
	printf(".*\n");
	free(out);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (get_value(talk->peer, columns[i].key, &value))
			printf("  %-18s %.*s\n", columns[i].key, (int)value.len, value.text);
	}
	for (const char *const *key = (const char *const []){ "writing", "swallowed", "armed",
	     "lost", "given_up", "sideband", "sideband_dropped", "cpu_time", "cpu_time_dumps",
	     "overhead", "max_overhead", "rate_divisor", "events_given_up", NULL }; *key; key++) {
		if (get_value(talk->peer, *key, &value))
			printf("  %-18s %.*s\n", *key, (int)value.len, value.text);
	}
	return 0;
}

static int request_dump(struct talk *talk)
{
	const char *reason = talk->request->reason ?: "";
	char text[MAX_REQUEST + 2], *what;
	bool swallowed;
	int err;

	scnprintf(text, sizeof(text), "dump%s%s\n", *reason ? " " : "", reason);
	err = say(talk, text);
	if (err)
		return err;
	what = get_string(talk, "dump");
	swallowed = what && !strcmp(what, "swallowed");
	free(what);
	if (swallowed) {
		if (talk->request->json)
			print_answer(talk->line);
		pr_err("The recorder %d writes no dump: the cooldown after the last one is not over.\n",
		       talk->peer->pid);
		return -EBUSY;
	}
	err = await_dump(talk);
	if (err)
		return err;
	if (talk->request->json)
		print_answer(talk->line);
	else
		print_file(talk, get_string(talk, "file"));
	return 0;
}

/* Wait until the process is gone; without a pid, until it has closed the connection. */
static int await_end(struct talk *talk, int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };
	int err, nr = 1;

	if (talk->request->verb == CTL_COMBINE && !talk->timeout)
		talk->until = 0;
	do {
		err = read_line(talk, time_left(talk));
	} while (!err && time_left(talk));
	while (pidfd >= 0 && err != -ETIMEDOUT && (nr = poll(&pfd, 1, time_left(talk))) < 0 &&
	       errno == EINTR)
		;
	if (err && err != -ETIMEDOUT && nr)
		return 0;
	pr_err("The recorder %d has written its dump, and has not ended in time.\n",
	       talk->peer->pid);
	return -ETIMEDOUT;
}

static int request_end(struct talk *talk)
{
	bool combine = talk->request->verb == CTL_COMBINE;
	int pidfd = -1, err;
	char *file = NULL;

	if (talk->peer->pid)
		pidfd = syscall(SYS_pidfd_open, talk->peer->pid, 0);
	err = say(talk, combine ? "combine\n" : "stop\n") ?: await_dump(talk);
	if (err)
		goto out_close;
	if (talk->request->json)
		print_answer(talk->line);
	else
		file = get_string(talk, "file");
	err = await_end(talk, pidfd);
	if (combine && file && !err) {
		free(file);
		file = flight_peer__out(talk->peer);
	}
	if (!talk->request->json)
		print_file(talk, file);
out_close:
	if (pidfd >= 0)
		close(pidfd);
	return err;
}

static int request_arm(struct talk *talk)
{
	const struct ctl_request *request = talk->request;
	char text[MAX_REQUEST + 2];
	int err;

	/* This connection ends now, and the deadline is to stay. */
	err = say(talk, "keep\n");
	if (err)
		return err;
	scnprintf(text, sizeof(text), "arm %s %s%s%s\n", request->id, request->in,
		  request->reason ? " " : "", request->reason ?: "");
	err = say(talk, text);
	if (!err && request->json)
		print_answer(talk->line);
	return err;
}

static int request_disarm(struct talk *talk)
{
	char text[MAX_REQUEST + 2];
	int err;

	scnprintf(text, sizeof(text), "disarm %s\n", talk->request->id);
	err = say(talk, text);
	if (!err && talk->request->json)
		print_answer(talk->line);
	return err;
}

static int (*const verbs[CTL_NR_VERBS])(struct talk *talk) = {
	[CTL_STATUS]	= request_status,
	[CTL_DUMP]	= request_dump,
	[CTL_STOP]	= request_end,
	[CTL_COMBINE]	= request_end,
	[CTL_ARM]	= request_arm,
	[CTL_DISARM]	= request_disarm,
};

/* A request is one line, of words. */
static int check_request(const struct ctl_request *r)
{
	size_t len = strlen(r->id ?: "") + strlen(r->in ?: "") + strlen(r->reason ?: "");

	if (r->reason && strpbrk(r->reason, "\n\r")) {
		pr_err("--reason: a reason is one line.\n");
		return -EINVAL;
	}
	for (const char *c = r->id; c && *c; c++) {
		if (*c > ' ' && *c <= '~')
			continue;
		pr_err("'%s' is no name of a deadline: use a word of ASCII characters without spaces.\n",
		       r->id);
		return -EINVAL;
	}
	if (r->id && !*r->id) {
		pr_err("A deadline has a name: --arm=ID --in=TIME, --disarm=ID\n");
		return -EINVAL;
	}
	if (r->in && (!*r->in || strpbrk(r->in, " \t\n\r"))) {
		pr_err("--in=%s is not a time: use a number with ms, s, m, h or d, such as --in=500ms.\n",
		       r->in);
		return -EINVAL;
	}
	if (len > MAX_REQUEST - MAX_VERB) {
		pr_err("The request is too long: a recorder takes lines of %d bytes. Use a shorter --reason.\n",
		       MAX_REQUEST);
		return -EINVAL;
	}
	return 0;
}

static int parse_timeout(struct talk *talk)
{
	const char *str = talk->request->timeout;

	if (!str || (!flight__parse_time(str, &talk->timeout) && talk->timeout))
		return 0;
	pr_err("--timeout=%s is not a time: use a number with ms, s, m, h or d, such as --timeout=30s.\n",
	       str);
	return -EINVAL;
}

/**
 * flight_recorders__request - ask something of a recorder, and print the answer
 * @request: what to ask
 * @target: the recorder, or NULL for the only one
 *
 * Return: 0, or a negative errno after an error message; -ESRCH if there is no such
 * recorder, without a message if it may be missing.
 */
int flight_recorders__request(const struct ctl_request *request, const char *target)
{
	struct flight_peers peers = {};
	struct talk *talk = zalloc(sizeof(*talk));
	bool is_socket;
	int err;

	if (!talk)
		return -ENOMEM;
	talk->request = request;
	err = check_request(request) ?: parse_timeout(talk);
	if (err)
		goto out_free;
	err = ask(&peers, target, &is_socket);
	if (err) {
		pr_err("%s cannot be asked: %s\n", is_socket ? target : "The flight recorders",
		       strerror(-err));
		goto out_free;
	}
	err = find_target(&peers, target, is_socket, &talk->peer);
	if (err == -ESRCH && !request->may_miss) {
		/* Close the connections first: a recorder may serve one client at a time. */
		flight_peers__free(&peers);
		tell_missing(target);
	}
	err = err ?: verbs[request->verb](talk);
out_free:
	flight_peers__free(&peers);
	free(talk);
	return err;
}
