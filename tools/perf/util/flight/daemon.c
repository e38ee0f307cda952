// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -M --daemon: run a recorder without a terminal
 *
 * There are two processes until recording has started:
 *
 *	perf record ---- waits for a byte or EOF on a pipe ---> exits with 0, or the
 *	  \						         status of the daemon
 *	   daemon: new session, OUT.pid, events, triggers ---> a byte ---> stderr to OUT.log
 *
 * Errors at startup are thus printed on the terminal and returned as the exit status.
 *
 * OUT.pid is locked while the daemon runs. The lock belongs to the process; children do not
 * inherit it. A second daemon is refused. The file of a daemon that was killed is not locked
 * and is reused.
 *
 * A service manager that sets NOTIFY_SOCKET (systemd with Type=notify) has already detached
 * the process. It gets a datagram READY=1 instead, and STOPPING=1 at the end. The process
 * does not detach, and messages are not redirected.
 */
#include "daemon.h"
#include "../debug.h"

#include <internal/lib.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready_fd = -1;
static int pid_fd = -1;

static char *name_of(const char *out, const char *suffix)
{
	char *path;

	return asprintf(&path, "%s%s", out, suffix) < 0 ? NULL : path;
}

/* Send one datagram. Errors are ignored: recording must not depend on them. */
static void notify(const char *state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (!len || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (*path == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
		   offsetof(struct sockaddr_un, sun_path) + len) < 0)
		pr_debug("NOTIFY_SOCKET %s: %m\n", path);
	close(fd);
}

/* The parent waits until the daemon has started or failed. */
static void wait_for_daemon(pid_t pid, int fd)
{
	char byte;
	int status;

	if (readn(fd, &byte, 1) == 1)
		exit(0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	exit(WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
}

static int detach(void)
{
	int fds[2], fd;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid) {
		close(fds[1]);
		wait_for_daemon(pid, fds[0]);
	}
	close(fds[0]);
	ready_fd = fds[1];
	setsid();
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	return 0;
}

static int lock_pid_file(const char *out)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = name_of(out, ".pid"), text[16];
	int err = 0, len;

	if (!path)
		return -ENOMEM;
	pid_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (pid_fd < 0) {
		err = -errno;
		pr_err("Cannot create %s: %s\n", path, strerror(-err));
		goto out_free;
	}
	if (fcntl(pid_fd, F_SETLK, &lock)) {
		err = -EBUSY;
		pr_err("A recorder for %s is already running (pid %d). Use another -o to start a second one.\n",
		       out, flight_daemon__pid(out));
		goto out_free;
	}
	len = scnprintf(text, sizeof(text), "%d\n", getpid());
	if (ftruncate(pid_fd, 0) || pwrite(pid_fd, text, len, 0) != len) {
		err = -EIO;
		pr_err("Cannot write %s: %m\n", path);
	}
out_free:
	free(path);
	return err;
}

/**
 * flight_daemon__pid - get the pid of the running daemon
 * @out: prefix of the names of its files
 *
 * Return: its pid, or 0 if there is none.
 */
pid_t flight_daemon__pid(const char *out)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char *path = name_of(out, ".pid");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

	free(path);
	if (fd < 0)
		return 0;
	if (fcntl(fd, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		lock.l_pid = 0;
	close(fd);
	return lock.l_pid;
}

/**
 * flight_daemon__begin - become a daemon
 * @out: prefix of the names of its files
 *
 * Call this before any file is opened. It returns only in the daemon.
 *
 * Return: 0, or a negative errno after an error message.
 */
int flight_daemon__begin(const char *out)
{
	int err = getenv("NOTIFY_SOCKET") ? 0 : detach();

	if (err)
		pr_err("Cannot detach from the terminal: %s\n", strerror(-err));
	return err ?: lock_pid_file(out);
}

/**
 * flight_daemon__ready - detach from the terminal after recording has started
 * @out: prefix of the names of its files
 */
void flight_daemon__ready(const char *out)
{
	char *path = name_of(out, ".log");
	int fd;

	notify("READY=1");
	if (ready_fd < 0)
		goto out_free;
	fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	if (fd < 0) {
		pr_err("Cannot open %s: %m. Messages will be lost.\n", path);
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	}
	fflush(NULL);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
	if (writen(ready_fd, (void *)"", 1) != 1)
		pr_debug("nobody waits for us\n");
	close(ready_fd);
	ready_fd = -1;
out_free:
	free(path);
}

/**
 * flight_daemon__end - clean up at the end
 * @out: prefix of the names of its files
 */
void flight_daemon__end(const char *out)
{
	char *path = name_of(out, ".pid");

	notify("STOPPING=1");
	/* Remove the file before the lock is released: then it may belong to another daemon. */
	if (path && pid_fd >= 0)
		unlink(path);
	if (pid_fd >= 0)
		close(pid_fd);
	pid_fd = -1;
	free(path);
}
