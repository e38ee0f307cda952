/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client of the deadlines of perf record -M, in one header
 *
 *	int fd = flight_deadline_connect("/var/lib/perf-flight/blackbox.sock");
 *
 *	flight_deadline_arm(fd, "checkout-17", 500, "cart of 3 items");
 *	... what must not take longer than 500 ms ...
 *	flight_deadline_disarm(fd, "checkout-17");
 *
 * If the deadline is not disarmed in time, the recorder writes a dump, whose reason is the name
 * and the text. A deadline goes with the connection: when the process ends, or closes it,
 * all that it has armed is disarmed. flight_deadline_keep() changes that.
 *
 * No function waits for the recorder, or fails because there is none: a program is not to
 * suffer from what watches it. They return 0 or a negative errno, which may be ignored. A fd
 * of -1 is allowed. A connection must not be used by two threads at a time.
 */
#ifndef PERF_FLIGHT_DEADLINE_CLIENT_H
#define PERF_FLIGHT_DEADLINE_CLIENT_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* What the recorder takes as one line. */
#define FLIGHT_DEADLINE_LINE	511

/* Return: a descriptor to be closed, or a negative errno. */
static inline int flight_deadline_connect(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* One line. The answers to those before are thrown away, so that they do not pile up. */
static inline int flight_deadline_send(int fd, const char *line, int len)
{
	char answers[4096];
	ssize_t sent;

	if (len <= 0 || len > FLIGHT_DEADLINE_LINE)
		return -EMSGSIZE;
	/* What follows would be a request. */
	if (memchr(line, '\n', len - 1))
		return -EINVAL;
	while (recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
		;
	sent = send(fd, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent == len)
		return 0;
	if (sent < 0)
		return -errno;
	/* What follows would be the rest of this line. */
	shutdown(fd, SHUT_RDWR);
	return -EIO;
}

/* @id: a word of 1 to 64 ASCII characters; @text: one line, or "" */
static inline int flight_deadline_arm(int fd, const char *id, unsigned int ms, const char *text)
{
	char line[FLIGHT_DEADLINE_LINE + 1];

	return flight_deadline_send(fd, line, snprintf(line, sizeof(line), "arm %s %ums %s\n", id,
						       ms, text));
}

static inline int flight_deadline_disarm(int fd, const char *id)
{
	char line[FLIGHT_DEADLINE_LINE + 1];

	return flight_deadline_send(fd, line, snprintf(line, sizeof(line), "disarm %s\n", id));
}

/* What is armed from now on stays when the connection ends. */
static inline int flight_deadline_keep(int fd)
{
	return flight_deadline_send(fd, "keep\n", 5);
}

#endif /* PERF_FLIGHT_DEADLINE_CLIENT_H */
