// SPDX-License-Identifier: GPL-2.0
/*
 * --on-dump CMD: what the user wants to be done with each dump
 *
 * CMD is run by a shell, in a session of its own, by a process that is nobody's child:
 * the child that wrote the dump starts it and ends. So the recorder neither waits for
 * it, nor mistakes its end for that of its workload, nor is held up if it hangs. The
 * shell itself tells when CMD fails, as no one else will know.
 */
#include "on-dump.h"

#include <linux/kernel.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* CMD, with the file's name behind its own arguments; it may say "exit". */
static const char wrapper[] =
	"(eval \"$1 \\\"\\$2\\\"\"); s=$?; "
	"[ $s = 0 ] || echo \"[ perf record: --on-dump failed with status $s: $1 $2 ]\" >&2";

static void exec_shell(const char *command, const char *path)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE
	};
	int fd = open("/dev/null", O_RDONLY);
	sigset_t none;

	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	execl("/bin/sh", "sh", "-c", wrapper, "sh", command, path, NULL);
	fprintf(stderr, "--on-dump: /bin/sh could not be run: %m\n");
	_exit(127);
}

/**
 * on_dump__run - start the user's command, and do not wait for it
 * @command: what to run
 * @path: the dump
 *
 * To be called in the child that wrote the dump.
 *
 * Return: 0 or a negative errno.
 */
int on_dump__run(const char *command, const char *path)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		exec_shell(command, path);
	return pid < 0 ? -errno : 0;
}
