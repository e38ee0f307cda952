/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_REGISTRY_H
#define __PERF_FLIGHT_REGISTRY_H

#include <fcntl.h>
#include <sys/types.h>

/* To open a directory that somebody else may have made. */
#define FLIGHT_OPEN_DIR	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/**
 * struct flight_entry - the entry of a running recorder
 * @dir: the directory that it is in
 * @fd: a listening, non-blocking socket, or -1 if there is no entry
 * @name: of the socket, in @dir
 */
struct flight_entry {
	int	dir;
	int	fd;
	char	name[80];
};

/**
 * flight_registry_found_t - a recorder was found
 * @data: what flight_registry__look() was given
 * @fd: a connection to it, non-blocking, for the callee to close
 * @pid: the listener, or 0 if it is not in the caller's PID namespace
 *
 * Return: 0 to go on, or a negative errno.
 */
typedef int (*flight_registry_found_t)(void *data, int fd, pid_t pid);

int flight_registry__enter(struct flight_entry *entry, const char *out, const char *socket_path);
void flight_registry__leave(struct flight_entry *entry);
int flight_registry__connect(int dir, const char *name, uid_t uid);
int flight_registry__look(flight_registry_found_t found, void *data);

#endif /* __PERF_FLIGHT_REGISTRY_H */
