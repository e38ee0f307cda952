/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_REGISTRY_H
#define __PERF_FLIGHT_REGISTRY_H

#include <stdbool.h>
#include <sys/types.h>

/* A search for recorders takes at most that long, and says in so many bytes what is missing. */
#define FLIGHT_FIND_S	5
#define FLIGHT_MISSING	128

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
 * @data: what the caller of the search has given
 * @fd: a connection to it, non-blocking, for the callee to close
 * @pid: the listener, or 0 if it is not in the caller's PID namespace
 * @foreign: it is in another mount namespace, where its user may be another one's
 *
 * Return: 0 to go on, or a negative errno.
 */
typedef int (*flight_registry_found_t)(void *data, int fd, pid_t pid, bool foreign);

int flight_registry__enter(struct flight_entry *entry, const char *out, const char *socket_path);
void flight_registry__leave(struct flight_entry *entry);
int flight_registry__connect(int dir, const char *name, uid_t uid);
int flight_registry__look(flight_registry_found_t found, void *data, char *missing);
int flight_registry__find(flight_registry_found_t found, void *data);

#endif /* __PERF_FLIGHT_REGISTRY_H */
