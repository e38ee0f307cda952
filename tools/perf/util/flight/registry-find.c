// SPDX-License-Identifier: GPL-2.0
/*
 * Find the running flight recorders, although a file system may hang
 *
 * Theory of operation
 * -------------------
 * registry-look.c walks directories that belong to users. A user can mount a FUSE file system
 * there that root may use (user_allow_other in /etc/fuse.conf), and a container can be on one.
 * A system call on it waits until its server answers, and not even SIGKILL ends that. So a
 * child walks the directories, and perf ctl does not wait for it longer than GIVE_UP_S:
 *
 *	perf ctl				child
 *	-----------------------------------------------------------------------------
 *	socketpair(), fork()
 *	recvmsg(), found()		<---	a struct report for each recorder that
 *						flight_registry__look() finds, with the
 *						connection to it (SCM_RIGHTS)
 *	recvmsg(), the search has ended	<---	the last report: @end is set
 *	SIGKILL
 *
 * A child that hangs has neither standard output nor standard error of perf ctl: a program that
 * reads them sees their end. It dies when its system call returns, and init waits for it.
 */
#include "registry.h"
#include "../debug.h"
#include "../time-utils.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Behind the limit of the search itself, so that this one is for a file system that hangs. */
#define GIVE_UP_S	(FLIGHT_FIND_S + 1)

/**
 * struct report - what the child has found
 * @end: no recorder, but the end of the search
 * @pid: of the recorder
 * @foreign: it is in another mount namespace
 * @err: at the end: 0, or a negative errno
 * @missing: at the end: why some may be missing, or ""
 */
struct report {
	bool	end;
	pid_t	pid;
	bool	foreign;
	int	err;
	char	missing[FLIGHT_MISSING];
};

union control {
	struct cmsghdr	align;
	char		buf[CMSG_SPACE(sizeof(int))];
};

/* In the child */

static int send_report(int sock, struct report *report, int fd)
{
	struct iovec iov = { .iov_base = report, .iov_len = sizeof(*report) };
	union control control = {};
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		control.align = (struct cmsghdr) {
			.cmsg_level	= SOL_SOCKET,
			.cmsg_type	= SCM_RIGHTS,
			.cmsg_len	= CMSG_LEN(sizeof(int)),
		};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int send_found(void *data, int fd, pid_t pid, bool foreign)
{
	struct report report = { .pid = pid, .foreign = foreign };
	int err = send_report(*(int *)data, &report, fd);

	close(fd);
	return err;
}

static void drop_standard_files(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (null < 0)
			close(fd);
		else
			dup2(null, fd);
	}
}

static void run_child(int sock)
{
	struct report last = { .end = true };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sock <= STDERR_FILENO)
		sock = fcntl(sock, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	drop_standard_files();
	last.err = flight_registry__look(send_found, &sock, last.missing);
	send_report(sock, &last, -1);
	_exit(0);
}

/* In perf ctl */

/* Return: 1, 0 if the child has died, or a negative errno. @fd: a connection, or -1 */
static int receive_report(int sock, struct report *report, int *fd)
{
	struct iovec iov = { .iov_base = report, .iov_len = sizeof(*report) };
	union control control = {};
	struct msghdr msg = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= control.buf,
		.msg_controllen	= sizeof(control.buf),
	};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *cmsg = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	*fd = -1;
	if (n < 0)
		return -errno;
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return n == sizeof(*report);
}

static void tell_missing(const char *why)
{
	pr_warning("Some flight recorders may be missing: %s.\n", why);
}

/* Return: 1 if there is a report, or 0 if there is none before @until. */
static int wait_for_report(int sock, u64 until)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	u64 now;

	while ((now = rdclock()) < until) {
		int nr = poll(&pfd, 1, (until - now) / NSEC_PER_MSEC + 1);

		if (nr > 0 || (nr < 0 && errno != EINTR))
			return 1;
	}
	return 0;
}

static int receive_all(int sock, flight_registry_found_t found, void *data)
{
	u64 until = rdclock() + GIVE_UP_S * NSEC_PER_SEC;
	struct report report;
	int err = 0, fd;

	while (!err) {
		if (!wait_for_report(sock, until)) {
			tell_missing("a file system below /run or of a container does not answer");
			return 0;
		}
		err = receive_report(sock, &report, &fd);
		if (err < 0)
			break;
		if (!err) {
			tell_missing("the search was killed");
			break;
		}
		if (report.end) {
			if (!report.err && *report.missing)
				tell_missing(report.missing);
			return report.err;
		}
		/* Without a descriptor: perf ctl has too many of them open. */
		err = fd < 0 ? -EMFILE : found(data, fd, report.pid, report.foreign);
	}
	return err;
}

/**
 * flight_registry__find - find the recorders that the user may ask, in bounded time
 * @found: called for each
 * @data: for @found
 *
 * Like flight_registry__look(), and warns if some may be missing. It takes GIVE_UP_S at most.
 *
 * Return: 0, or a negative errno.
 */
int flight_registry__find(flight_registry_found_t found, void *data)
{
	int fds[2], err;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	child = fork();
	if (!child) {
		close(fds[0]);
		run_child(fds[1]);
	}
	err = child < 0 ? -errno : 0;
	close(fds[1]);
	if (!err)
		err = receive_all(fds[0], found, data);
	close(fds[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG);
	}
	return err;
}
