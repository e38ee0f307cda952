// SPDX-License-Identifier: GPL-2.0
/*
 * Mark the begin and the end of what 'make profile' counts
 *
 * The mark is the system call sched_rr_get_interval(), which hardly any program calls.
 * The profile begins at the first one and ends at the second. A program that wants a
 * part of itself counted makes the call itself, before and after.
 *
 * usage: profile-mark COMMAND [ARGUMENT...]	exits with the status of COMMAND
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void mark(void)
{
	struct timespec interval;

	sched_rr_get_interval(0, &interval);
}

int main(int argc, char *argv[])
{
	int status;
	pid_t pid;

	if (argc < 2) {
		fprintf(stderr, "usage: profile-mark COMMAND [ARGUMENT...]\n");
		return 2;
	}
	mark();
	pid = fork();
	if (pid < 0) {
		perror("profile-mark: fork");
		return 1;
	}
	if (!pid) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) < 0) {
		perror("profile-mark: waitpid");
		return 1;
	}
	mark();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
