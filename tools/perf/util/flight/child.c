// SPDX-License-Identifier: GPL-2.0
/*
 * What every child of a flight recorder does first
 *
 * A child does what may have to wait: for a disk, or for many tasks to be read. It must not take
 * the recorder with it, nor outlive it to the harm of the next one.
 */
#include "child.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* On x86, perf is built with a list of system calls of its own that does not have it. */
#ifndef SYS_close_range
#define SYS_close_range	436
#endif

/* In ms; a child that waits for no disk is gone at once. */
#define TIME_TO_DIE	1000

/**
 * flight_child__be_killed_first - be the one that goes if memory runs out
 *
 * The recorder would be the largest process otherwise.
 */
void flight_child__be_killed_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		pr_debug("/proc/self/oom_score_adj: %m\n");
	if (fd >= 0)
		close(fd);
}

/**
 * flight_child__begin - the first call of a child
 *
 * Signals that tell the recorder something may be sent to all of its processes.
 */
void flight_child__begin(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

static void close_between(unsigned int first, unsigned int last)
{
	unsigned int max = sysconf(_SC_OPEN_MAX);

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	for (unsigned int fd = first; fd <= last && fd < max; fd++)
		close(fd);
}

/**
 * flight_child__close_but - close the files of the recorder
 * @a: one that stays open, beside the standard ones, or -1
 * @b: another one, or -1
 *
 * If the recorder is killed and started again, a child that has not finished holds neither
 * sockets nor events of the old one.
 */
void flight_child__close_but(int a, int b)
{
	int first = max(min(a, b), STDERR_FILENO), second = max(max(a, b), STDERR_FILENO);

	close_between(STDERR_FILENO + 1, first - 1);
	close_between(first + 1, second - 1);
	close_between(second + 1, ~0U);
}

/**
 * flight_child__kill - in the recorder: end a child, and wait for it for a second at most
 * @pid: the child
 *
 * Return: whether it is gone. One that waits for a disk is not.
 */
bool flight_child__kill(pid_t pid)
{
	kill(pid, SIGKILL);
	for (int i = 0; i < TIME_TO_DIE; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return true;
		poll(NULL, 0, 1);
	}
	return false;
}
