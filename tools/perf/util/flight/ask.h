/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ASK_H
#define __PERF_FLIGHT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* All recorders together have so long to answer 'status'. */
#define FLIGHT_ANSWER_S	5

/**
 * struct flight_peer - a socket that was asked for the status of a recorder
 * @pid: the listener, or 0 if it has none in this PID namespace
 * @uid: the user of the listener
 * @foreign: it was found in another mount namespace, where root need not be the machine's
 * @fd: the connection, or -1 if it has ended
 * @answered: @answer is whole
 * @len: bytes of @answer
 * @answer: to 'status', without the newline when it is whole; untrusted
 * @cwd: where it runs, or NULL
 * @labels: what its metrics are told from others' by, or NULL
 */
struct flight_peer {
	pid_t		pid;
	uid_t		uid;
	bool		foreign;
	int		fd;
	bool		answered;
	size_t		len;
	char		*answer;
	char		*cwd;
	char		*labels;
};

/**
 * struct flight_peers - all of them
 * @entries: the peers
 * @nr: how many
 * @wanted: whether to ask a listener, of which pid, uid and foreign are known; NULL: all
 * @target: argument of @wanted
 * @only: when this process has answered, the others are not waited for; 0: wait for all
 */
struct flight_peers {
	struct flight_peer	*entries;
	int			nr;
	bool			(*wanted)(const char *target, const struct flight_peer *peer);
	const char		*target;
	pid_t			only;
};

int flight_peers__ask_all(struct flight_peers *peers);
int flight_peers__ask_socket(struct flight_peers *peers, const char *path);
void flight_peers__free(struct flight_peers *peers);
bool flight_peer__is_recorder(const struct flight_peer *peer);
char *flight_peer__out(const struct flight_peer *peer);
void flight_peer__put_text(FILE *f, const char *text);

#endif /* __PERF_FLIGHT_ASK_H */
