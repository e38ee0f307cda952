// SPDX-License-Identifier: GPL-2.0
/*
 * Ask the running flight recorders for their status
 *
 * Theory of operation
 * -------------------
 * The registry (registry.c) finds the recorders and connects to them. Each is asked for its
 * 'status', which it answers with a flat JSON object. All are asked at the same time, and
 * all together have FLIGHT_ANSWER_S to answer. The connection stays open for further
 * requests until flight_peers__free(). A recorder that does not answer delays the result. So
 * if one recorder is looked for, those that it cannot be are not asked.
 *
 * Any user can run something that looks like a recorder, so no answer is believed: the pid
 * is the one that the kernel tells, and flight_peer__put_text() prints what is left so
 * that it cannot control a terminal.
 */
#include "ask.h"
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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ANSWER	8192

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

/* The connection is new: a request fits. */
static int ask_status(void *data, int fd, pid_t pid, bool foreign)
{
	static const char request[] = "status\n";
	struct flight_peers *peers = data;
	struct flight_peer *entries, peer = {
		.pid	= pid,
		.foreign = foreign,
		.fd	= fd,
	};
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		close(fd);
		return 0;
	}
	peer.uid = cred.uid;
	if ((peers->wanted && !peers->wanted(peers->target, &peer)) ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) {
		close(fd);
		return 0;
	}
	entries = reallocarray(peers->entries, peers->nr + 1, sizeof(*entries));
	if (!entries) {
		close(fd);
		return -ENOMEM;
	}
	peers->entries = entries;
	entries += peers->nr++;
	*entries = peer;
	entries->answer = malloc(MAX_ANSWER);
	entries->cwd = read_cwd(pid);
	return entries->answer ? 0 : -ENOMEM;
}

/* Answers */

/* Read the bytes that have come. A connection that ends, or sends too much, has no answer. */
static void read_answer(struct flight_peer *peer)
{
	char *from = peer->answer + peer->len, *end = NULL;
	ssize_t n = recv(peer->fd, from, MAX_ANSWER - peer->len, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		peer->len += n;
		end = memchr(from, '\n', n);
		if (!end && peer->len < MAX_ANSWER)
			return;
	}
	if (end) {
		*end = '\0';
		peer->answered = true;
		return;
	}
	close(peer->fd);
	peer->fd = -1;
	zfree(&peer->answer);
}

static bool is_enough(const struct flight_peers *peers)
{
	for (int i = 0; peers->only && i < peers->nr; i++) {
		if (peers->entries[i].pid == peers->only && peers->entries[i].answered)
			return true;
	}
	return false;
}

static int wait_for_answers(struct flight_peers *peers)
{
	u64 until = rdclock() + FLIGHT_ANSWER_S * NSEC_PER_SEC, now;
	struct pollfd *fds = calloc(peers->nr + 1, sizeof(*fds));
	int err = 0;

	if (!fds)
		return -ENOMEM;
	while (!err && (now = rdclock()) < until) {
		int waiting = 0;

		/* One below 0 is passed over. */
		for (int i = 0; i < peers->nr; i++) {
			fds[i].fd = peers->entries[i].answered ? -1 : peers->entries[i].fd;
			fds[i].events = POLLIN;
			fds[i].revents = 0;
			waiting += fds[i].fd >= 0;
		}
		if (!waiting || is_enough(peers))
			break;
		if (poll(fds, peers->nr, (until - now) / NSEC_PER_MSEC + 1) < 0)
			err = errno == EINTR ? 0 : -errno;
		for (int i = 0; !err && i < peers->nr; i++) {
			if (fds[i].revents)
				read_answer(&peers->entries[i]);
		}
	}
	free(fds);
	return err;
}

/**
 * flight_peers__ask_all - ask all recorders that the user may ask
 * @peers: all zeros, but for those to ask; to be freed in any case
 *
 * Return: 0, or a negative errno.
 */
int flight_peers__ask_all(struct flight_peers *peers)
{
	return flight_registry__find(ask_status, peers) ?: wait_for_answers(peers);
}

/**
 * flight_peers__ask_socket - ask the recorder that listens on a socket
 * @peers: all zeros; to be freed in any case
 * @path: the socket
 *
 * Return: 0, or a negative errno.
 */
int flight_peers__ask_socket(struct flight_peers *peers, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		err = -errno;
		close(fd);
		return err;
	}
	return ask_status(peers, fd, cred.pid, false) ?: wait_for_answers(peers);
}

void flight_peers__free(struct flight_peers *peers)
{
	for (int i = 0; i < peers->nr; i++) {
		struct flight_peer *peer = &peers->entries[i];

		if (peer->fd >= 0)
			close(peer->fd);
		zfree(&peer->answer);
		zfree(&peer->cwd);
		zfree(&peer->labels);
	}
	zfree(&peers->entries);
	peers->nr = 0;
}

/* It looks like one, that is. */
bool flight_peer__is_recorder(const struct flight_peer *peer)
{
	const char *answer = peer->answered ? peer->answer : NULL;
	struct json_value value;

	return answer && *answer && answer[strlen(answer) - 1] == '}' &&
	       json__find(answer, "ok", &value) && json_value__is(&value, "true") &&
	       json__find(answer, "pid", &value);
}

/**
 * flight_peer__out - how the names of its files begin
 * @peer: a recorder
 *
 * Return: an absolute name if its working directory is known, to be freed; or NULL.
 */
char *flight_peer__out(const struct flight_peer *peer)
{
	struct json_value value;
	char *out = NULL, *path;

	if (json__find(peer->answer, "out", &value))
		out = json_value__strdup(&value);
	if (!out || *out == '/' || !peer->cwd)
		return out;
	if (asprintf(&path, "%s/%s", peer->cwd, out) < 0)
		path = NULL;
	free(out);
	return path;
}

/* Without what could control a terminal, and as UTF-8. */
void flight_peer__put_text(FILE *f, const char *text)
{
	while (*text) {
		if (isascii(*text) && iscntrl(*text)) {
			fputc('?', f);
			text++;
		} else if ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0 &&
			   text[1]) {
			/* C1, which some terminals take for escapes. */
			fputc('?', f);
			text += 2;
		} else {
			text += json_writer__put_utf8(f, text);
		}
	}
}
