// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a request on a unix socket, OUT.sock or --trigger socket:PATH
 *
 * A request is one line. An answer is one line with a JSON object, which has the member
 * "ok". Several requests may be sent over one connection:
 *
 *	dump [REASON]	two answers: the first at once, whether the request was accepted,
 *			merged into a pending dump, or swallowed by the cooldown; the
 *			second when the dump is complete, with the name of its file
 *	status		state and counters of the recorder
 *	stop		dump and end; the cooldown does not apply
 *	combine		dump, end, and combine all dumps into one file
 *	arm ID TIME [TEXT]	dump, unless it is disarmed in that time (deadline.c)
 *	disarm ID	withdraw a deadline
 *	keep		what this connection arms from now on stays when it ends
 *	help		the list of requests
 *
 * The recorder never waits for a client. All descriptors are non-blocking. The recorder
 * reads at most READS_PER_PASS pieces in a pass, and closes a connection whose answer does
 * not fit into the socket at once. A line that is too long, or a connection that ends in
 * the middle of a line, is an error, not a request. If there is one connection more than
 * MAX_CONNECTIONS, the connection that has been silent longest is closed, but none that
 * waits for a dump or has armed a deadline. If there is no other, the new one is refused.
 *
 * root and the user of the recorder may send requests. The socket is created with mode
 * 0600. Its owner can give a group access by chgrp and chmod 0660. The recorder checks the
 * credentials of the peer (SO_PEERCRED, SO_PEERGROUPS): the mode of the file alone is not
 * sufficient, because it does not have the same effect on all file systems.
 *
 * The server also listens on a second socket, its entry in the registry (registry.c), by
 * which perf ctl finds it. The same users may send requests there. If it cannot be
 * registered, the server works without the entry.
 *
 * The children that write dumps inherit the descriptors. Therefore a connection is removed
 * from the epoll and shut down before it is closed.
 */
#include "deadline.h"
#include "triggers.h"
#include "../dump/dump.h"
#include "../registry.h"
#include "../../debug.h"
#include "../../json-writer.h"

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_CONNECTIONS		256
#define MAX_REQUEST		512
#define MAX_GROUPS		1024
#define READS_PER_PASS		64

/**
 * struct connection - a client
 * @node: in the server's list, the one that has been silent longest first
 * @fd: its socket
 * @waits: it is to be told when the pending dump is complete
 * @was_begun: that dump is being written
 * @keeps: the deadlines that it arms stay when it ends
 * @len: bytes of @line
 * @line: a request that is not complete
 */
struct connection {
	struct list_head	node;
	int			fd;
	bool			waits;
	bool			was_begun;
	bool			keeps;
	size_t			len;
	char			line[MAX_REQUEST];
};

/**
 * struct server - the socket of a recorder
 * @path: its name; NULL until it starts, if it is OUT.sock
 * @fd: the socket
 * @entry: the socket in the registry
 * @epoll_fd: to wait for it and for the connections; the trigger's
 * @stat: the file that it created, so that it removes no other file
 * @deadlines: the trigger of deadlines
 * @behind: in this pass not all was read that is there
 * @hits: requests for a dump since the last look
 * @nr: number of connections
 * @connections: the connections
 */
struct server {
	char			*path;
	int			fd;
	struct flight_entry	entry;
	int			epoll_fd;
	struct stat		stat;
	struct flight_trigger	*deadlines;
	bool			behind;
	unsigned int		hits;
	unsigned int		nr;
	struct list_head	connections;
};

/* Connections */

static void drop(struct server *s, struct connection *c)
{
	list_del(&c->node);
	s->nr--;
	if (s->deadlines)
		flight_deadline__forget(s->deadlines, c);
	/* A child may have the descriptor as well: close() alone is not sufficient. */
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
	shutdown(c->fd, SHUT_RDWR);
	close(c->fd);
	free(c);
}

static int answer(int fd, const char *text, size_t len)
{
	return send(fd, text, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len ? 0 : -EIO;
}

/* An answer that is being written: one line with a JSON object */
struct reply {
	struct json_writer	w;
	FILE			*f;
	char			*text;
	size_t			len;
};

static int reply__begin(struct reply *r, bool ok)
{
	r->text = NULL;
	r->f = open_memstream(&r->text, &r->len);
	if (!r->f)
		return -ENOMEM;
	json_writer__init(&r->w, r->f);
	json_writer__begin_object(&r->w, NULL, JSON_STYLE__INLINE);
	json_writer__bool(&r->w, "ok", ok);
	return 0;
}

/* Return: 0, when its text is there until reply__exit(), or a negative errno. */
static int reply__end(struct reply *r)
{
	json_writer__end(&r->w);
	return fclose(r->f) ? -ENOMEM : 0;
}

static void reply__exit(struct reply *r)
{
	free(r->text);
}

static int reply__send(struct reply *r, int fd)
{
	int err = reply__end(r) ?: answer(fd, r->text, r->len);

	reply__exit(r);
	return err;
}

/* With one more member, a string. */
static int answer_string(int fd, bool ok, const char *key, const char *value)
{
	struct reply r;
	int err = reply__begin(&r, ok);

	if (err)
		return err;
	json_writer__string(&r.w, key, value);
	return reply__send(&r, fd);
}

static int answer_error(int fd, const char *error)
{
	return answer_string(fd, /*ok=*/false, "error", error);
}

static bool in_group(int fd, gid_t primary, gid_t wanted)
{
	gid_t groups[MAX_GROUPS];
	socklen_t len = sizeof(groups);

	if (primary == wanted)
		return true;
#ifdef SO_PEERGROUPS
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		return false;
	for (size_t i = 0; i < len / sizeof(*groups); i++) {
		if (groups[i] == wanted)
			return true;
	}
#endif
	return false;
}

static bool is_permitted(const struct server *s, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct stat st;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	if (!peer.uid || peer.uid == geteuid())
		return true;
	pr_debug("%s: pid %d of user %u asks\n", s->path, peer.pid, peer.uid);
	return !lstat(s->path, &st) && st.st_ino == s->stat.st_ino &&
	       st.st_mode & 0020 && in_group(fd, peer.gid, st.st_gid);
}

/* The one that has been silent longest of those that nothing depends on, or NULL. */
static struct connection *find_idle(struct server *s)
{
	struct connection *c;

	list_for_each_entry(c, &s->connections, node) {
		if (!c->waits && !c->was_begun &&
		    !(s->deadlines && flight_deadline__has(s->deadlines, c)))
			return c;
	}
	return NULL;
}

static int read_some(struct flight_trigger *t, struct server *s, struct connection *c);

static void welcome(struct flight_trigger *t, struct server *s, int fd)
{
	struct connection *c;
	struct epoll_event ev = { .events = EPOLLIN };

	if (!is_permitted(s, fd)) {
		answer_error(fd, "this recorder is another user's");
		goto out_close;
	}
	if (s->nr == MAX_CONNECTIONS) {
		c = find_idle(s);
		if (!c) {
			answer_error(fd, "too many connections, none of which is idle");
			goto out_close;
		}
		answer_error(c->fd, "too many connections, and this one was silent longest");
		drop(s, c);
	}
	c = zalloc(sizeof(*c));
	if (!c)
		goto out_close;
	c->fd = fd;
	ev.data.ptr = c;
	if (epoll_ctl(t->fd, EPOLL_CTL_ADD, fd, &ev)) {
		free(c);
		goto out_close;
	}
	list_add_tail(&c->node, &s->connections);
	s->nr++;
	/* Read the first request now, not in the next pass. */
	if (read_some(t, s, c))
		drop(s, c);
	return;

out_close:
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

/* If no descriptor is left, accept() fails and the socket stays readable: drop one. */
static void make_room(struct server *s)
{
	struct connection *c = find_idle(s);

	if (!c && s->nr)
		c = list_first_entry(&s->connections, struct connection, node);
	if (c)
		drop(s, c);
}

static void accept_some(struct flight_trigger *t, struct server *s, int listener)
{
	for (int i = 0; i < READS_PER_PASS; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			welcome(t, s, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE)
			make_room(s);
		return;
	}
	/* There may be more. */
	s->behind = true;
}

/* Requests */

static int request_dump(struct flight_trigger *t, struct connection *c, const char *arg)
{
	const char *what = "accepted";

	/* By the clock of the look that counts it, or it is told another thing than is done. */
	if (t->looked_at < t->quiet_until) {
		what = "swallowed";
	} else if (!trigger_is_ready(&t->state) || ((struct server *)t->priv)->hits) {
		what = "merged";
		c->waits = true;
	} else {
		flight_trigger__set_reason(t, *arg ? arg : "asked for on the socket");
		c->waits = true;
	}
	((struct server *)t->priv)->hits++;
	return answer_string(c->fd, /*ok=*/true, "dump", what);
}

/* A dump that ends the recorder: no cooldown swallows it. */
static int request_end(struct flight_trigger *t, struct connection *c, const char *name,
		       enum flight_action action)
{
	struct server *s = t->priv;

	if (!s->hits && trigger_is_ready(&t->state))
		scnprintf(t->reason, sizeof(t->reason), "%s asked for on the socket", name);
	flight_trigger__end(t, action);
	s->hits++;
	c->waits = true;
	return answer_string(c->fd, /*ok=*/true, name, "accepted");
}

static int request_stop(struct flight_trigger *t, struct connection *c,
			const char *arg __maybe_unused)
{
	return request_end(t, c, "stop", FLIGHT_ACTION_STOP);
}

static int request_combine(struct flight_trigger *t, struct connection *c,
			   const char *arg __maybe_unused)
{
	return request_end(t, c, "combine", FLIGHT_ACTION_COMBINE);
}

static int request_status(struct flight_trigger *t, struct connection *c,
			  const char *arg __maybe_unused)
{
	struct reply r;
	int err = reply__begin(&r, /*ok=*/true);

	if (err)
		return err;
	t->host->status(t->host->data, &r.w);
	json_writer__seconds(&r.w, "dump_delay", t->delay, 3);
	if (((struct server *)t->priv)->deadlines)
		json_writer__number(&r.w, "armed",
				    flight_deadline__nr(((struct server *)t->priv)->deadlines));
	return reply__send(&r, c->fd);
}

/* Splits a word off. Return: what follows it, or NULL if it is no word of an ID's length. */
static const char *take_word(const char *arg, char *word, size_t size)
{
	size_t len = strcspn(arg, " \t");

	if (!len || len >= size)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (arg[i] < ' ' || arg[i] > '~')
			return NULL;
	}
	memcpy(word, arg, len);
	word[len] = '\0';
	return skip_spaces(arg + len);
}

static int request_arm(struct flight_trigger *t, struct connection *c, const char *arg)
{
	struct server *s = t->priv;
	char id[FLIGHT_MAX_ID + 1], time[32];
	u64 in;
	int err;

	if (!s->deadlines)
		return answer_error(c->fd, "this recorder takes no deadlines");
	arg = take_word(arg, id, sizeof(id));
	if (!arg)
		return answer_error(c->fd,
				    "arm wants a name of 1 to 64 ASCII characters first: arm ID TIME [TEXT]");
	arg = take_word(arg, time, sizeof(time));
	if (!arg || flight__parse_time(time, &in))
		return answer_error(c->fd,
				    "arm wants a time such as 500ms or 10s behind the name: arm ID TIME [TEXT]");
	err = flight_deadline__arm(s->deadlines, c->keeps ? NULL : c, id, in, arg);
	if (err == -ENOSPC)
		return answer_error(c->fd, "too many deadlines are armed");
	if (err < 0)
		return answer_error(c->fd, "no memory for another deadline");
	return answer_string(c->fd, /*ok=*/true, "arm", err ? "again" : "accepted");
}

static int request_disarm(struct flight_trigger *t, struct connection *c, const char *arg)
{
	struct server *s = t->priv;
	char id[FLIGHT_MAX_ID + 1];

	arg = take_word(arg, id, sizeof(id));
	if (!arg || *arg)
		return answer_error(c->fd,
				    "disarm wants the name of a deadline and nothing else: disarm ID");
	if (s->deadlines && (!flight_deadline__disarm(s->deadlines, c, id) ||
			     !flight_deadline__disarm(s->deadlines, NULL, id)))
		return answer_string(c->fd, /*ok=*/true, "disarm", "accepted");
	return answer_error(c->fd,
				    "no deadline of that name is armed: it has passed, or another connection has armed it");
}

static int request_keep(struct flight_trigger *t __maybe_unused, struct connection *c,
			const char *arg __maybe_unused)
{
	c->keeps = true;
	return answer_string(c->fd, /*ok=*/true, "keep", "accepted");
}

static int request_help(struct flight_trigger *t, struct connection *c, const char *arg);

static const struct {
	const char	*name;
	const char	*help;
	int		(*handle)(struct flight_trigger *t, struct connection *c, const char *arg);
} requests[] = {
	{ "dump",	"dump [REASON]: write a dump",		request_dump },
	{ "status",	"status: how the recorder fares",	request_status },
	{ "stop",	"stop: write a dump, and end",		request_stop },
	{ "combine",	"combine: stop, and make one file of all dumps",	request_combine },
	{ "arm",	"arm ID TIME [TEXT]: write a dump unless it is disarmed in that time",
								request_arm },
	{ "disarm",	"disarm ID: withdraw that deadline",	request_disarm },
	{ "keep",	"keep: what this connection arms stays when it ends",	request_keep },
	{ "help",	"help: this list",			request_help },
};

static int request_help(struct flight_trigger *t __maybe_unused, struct connection *c,
			const char *arg __maybe_unused)
{
	struct reply r;
	int err = reply__begin(&r, /*ok=*/true);

	if (err)
		return err;
	json_writer__begin_array(&r.w, "requests", JSON_STYLE__INLINE);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		json_writer__string(&r.w, NULL, requests[i].help);
	json_writer__end(&r.w);
	return reply__send(&r, c->fd);
}

static int handle(struct flight_trigger *t, struct connection *c, char *line)
{
	size_t len;
	char *arg;

	line = strim(line);
	len = strcspn(line, " \t");
	arg = skip_spaces(line + len);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		if (strlen(requests[i].name) == len && !strncmp(line, requests[i].name, len))
			return requests[i].handle(t, c, arg);
	}
	return answer_error(c->fd,
			    "no such request: dump, status, stop, combine, arm, disarm, keep or help");
}

/* The lines that are complete. What is left moves to the front. */
static int handle_lines(struct flight_trigger *t, struct connection *c)
{
	char *line = c->line, *end = c->line + c->len, *newline;
	int err = 0;

	while (!err && (newline = memchr(line, '\n', end - line)) != NULL) {
		*newline = '\0';
		if (memchr(line, '\0', newline - line))
			err = answer_error(c->fd, "a request is text");
		else
			err = handle(t, c, line);
		line = newline + 1;
	}
	c->len = end - line;
	memmove(c->line, line, c->len);
	if (!err && c->len == sizeof(c->line)) {
		answer_error(c->fd, "the request is too long");
		err = -EMSGSIZE;
	}
	return err;
}

/* One piece. Return: 0, or an error when the connection is to end. */
static int read_some(struct flight_trigger *t, struct server *s, struct connection *c)
{
	size_t room = sizeof(c->line) - c->len;
	ssize_t n = recv(c->fd, c->line + c->len, room, MSG_DONTWAIT);

	s->behind |= n == (ssize_t)room;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0) {
		struct epoll_event ev = { .data.ptr = c };

		if (c->len)
			answer_error(c->fd, "a request ends with a newline");
		/* It may have closed its side only, and wait for the end of a dump. */
		if (c->len || !(c->waits || c->was_begun))
			return -ECONNRESET;
		return epoll_ctl(t->fd, EPOLL_CTL_MOD, c->fd, &ev) ? -errno : 0;
	}
	c->len += n;
	list_move_tail(&c->node, &s->connections);
	return handle_lines(t, c);
}

static unsigned int socket_hits(struct flight_trigger *t)
{
	struct epoll_event events[READS_PER_PASS];
	struct server *s = t->priv;
	int nr = epoll_wait(t->fd, events, ARRAY_SIZE(events), 0);
	bool connects = false;
	unsigned int hits;

	s->behind = false;
	for (int i = 0; i < nr; i++) {
		struct connection *c = events[i].data.ptr;

		if (!c)
			connects = true;
		else if (!(events[i].events & EPOLLIN) || read_some(t, s, c))
			drop(s, c);
	}
	/* Behind the events, as it may drop connections. */
	if (connects) {
		accept_some(t, s, s->fd);
		if (s->entry.fd >= 0)
			accept_some(t, s, s->entry.fd);
	}
	/* Requests to disarm may be among those that were not read yet. */
	if (s->deadlines && (s->behind || nr == READS_PER_PASS))
		flight_deadline__hold(s->deadlines);
	hits = s->hits;
	s->hits = 0;
	return hits;
}

/* Dumps */

/* From here on a request is for the next dump. */
static void socket_begun(struct flight_trigger *t)
{
	struct server *s = t->priv;
	struct connection *c;

	list_for_each_entry(c, &s->connections, node) {
		c->was_begun = c->waits;
		c->waits = false;
	}
}

static void socket_done(struct flight_trigger *t, const struct dump_result *result)
{
	struct server *s = t->priv;
	struct connection *c, *next;
	struct reply r;

	if (reply__begin(&r, !result->err))
		return;
	if (result->err) {
		json_writer__string(&r.w, "error", strerror(-result->err));
	} else {
		json_writer__string(&r.w, "file", result->path);
		json_writer__number(&r.w, "events", result->events);
		json_writer__number(&r.w, "bytes", result->bytes);
	}
	if (reply__end(&r))
		goto out;

	list_for_each_entry_safe(c, next, &s->connections, node) {
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

		if (!c->was_begun)
			continue;
		c->was_begun = false;
		/* An end that was seen while it waited is seen again. */
		if (answer(c->fd, r.text, r.len) || epoll_ctl(t->fd, EPOLL_CTL_MOD, c->fd, &ev))
			drop(s, c);
	}
out:
	reply__exit(&r);
}

/* Begin and end */

static int socket_parse(struct flight_trigger *t, const char *arg)
{
	struct server *s = zalloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	INIT_LIST_HEAD(&s->connections);
	s->fd = -1;
	s->entry.fd = -1;
	t->priv = s;
	if (!arg)
		return 0;
	if (!*arg) {
		pr_err("--trigger: 'socket:' requires the path of a socket after the colon. Use socket[:PATH]\n");
		return -EINVAL;
	}
	s->path = strdup(arg);
	return s->path ? 0 : -ENOMEM;
}

static void socket_free(struct flight_trigger *t)
{
	struct server *s = t->priv;

	if (s)
		free(s->path);
	free(s);
}

/* The socket of a recorder that was killed: connect() is refused. */
static int remove_stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : EADDRINUSE;
	close(fd);
	if (err != ECONNREFUSED || lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	return unlink(addr->sun_path) ? -errno : 0;
}

static int bind_socket(struct server *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mask = umask(0177);
	int err;

	memcpy(addr.sun_path, s->path, strlen(s->path) + 1);
	err = bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (err == -EADDRINUSE) {
		err = remove_stale(&addr);
		if (!err && bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)))
			err = -errno;
	}
	umask(mask);
	return err;
}

static int socket_start(struct flight_trigger *t)
{
	struct server *s = t->priv;
	struct epoll_event ev = { .events = EPOLLIN };
	int err;

	s->deadlines = flight_triggers__find(t->host->triggers, &flight_trigger_deadline);
	if (!s->path && asprintf(&s->path, "%s.sock", t->host->out) < 0) {
		s->path = NULL;
		return -ENOMEM;
	}
	if (strlen(s->path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		pr_err("The path %s is too long for a socket: choose another with --trigger socket:PATH.\n",
		       s->path);
		return -ENAMETOOLONG;
	}

	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	t->fd = s->epoll_fd;
	if (s->fd < 0 || t->fd < 0)
		goto out_errno;
	err = bind_socket(s);
	if (err)
		goto out_close;
	if (lstat(s->path, &s->stat) || listen(s->fd, MAX_CONNECTIONS) ||
	    epoll_ctl(t->fd, EPOLL_CTL_ADD, s->fd, &ev))
		goto out_errno;
	if (!flight_registry__enter(&s->entry, t->host->out, s->path) &&
	    epoll_ctl(t->fd, EPOLL_CTL_ADD, s->entry.fd, &ev))
		flight_registry__leave(&s->entry);
	return 0;

out_errno:
	err = -errno;
out_close:
	pr_err("Cannot create the socket %s: %s%s\n", s->path, strerror(-err),
	       err == -EADDRINUSE ? " by another recorder" : "");
	close(s->fd);
	close(t->fd);
	t->fd = -1;
	return err;
}

static void socket_stop(struct flight_trigger *t)
{
	struct server *s = t->priv;
	struct stat st;

	while (s->nr)
		drop(s, list_first_entry(&s->connections, struct connection, node));
	if (!lstat(s->path, &st) && st.st_dev == s->stat.st_dev && st.st_ino == s->stat.st_ino)
		unlink(s->path);
	flight_registry__leave(&s->entry);
	shutdown(s->fd, SHUT_RDWR);
	close(s->fd);
	close(t->fd);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_socket = {
	.name	= "socket",
	.asked	= true,
	.parse	= socket_parse,
	.start	= socket_start,
	.hits	= socket_hits,
	.begun	= socket_begun,
	.done	= socket_done,
	.stop	= socket_stop,
	.free	= socket_free,
};
