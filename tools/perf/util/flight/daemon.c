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
 * the process. It gets a datagram READY=1 instead, and STOPPING=1 when the recorder begins to
 * end. The process does not detach, and messages are not redirected. If it sets WATCHDOG_USEC
 * as well, it gets WATCHDOG=1 twice in that time, from the loop that reads the buffers. At the
 * end the recorder may have to wait for a slow disk. It says so and asks for more time
 * (EXTEND_TIMEOUT_USEC), and gives up by itself after --dump-timeout.
 *
 * SIGHUP opens OUT.log again, after it was renamed, and nothing else: what is in the memory
 * stays. As the disk may hang, a child opens it:
 *
 *	recorder			child
 *	----------------------------------------------------------------
 *	SIGHUP: socketpair, fork	open OUT.log
 *	reads buffers			send the file, or errno; add to hup_fd
 *	hup_fd wakes it: take it	exit
 *
 * Until then messages go to the old file. There is one such child at a time: a further SIGHUP
 * is dealt with when it has exited. The service manager is told of it as of a reload. Without
 * --daemon, SIGHUP comes from a terminal that is closed, and ends the recorder as SIGTERM does,
 * with a last dump.
 */
#include "daemon.h"
#include "child.h"
#include "../debug.h"
#include "../time-utils.h"

#include <internal/lib.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int ready_fd = -1;
static int pid_fd = -1;
static int hup_fd = -1;
static sig_atomic_t hup_came;
static bool has_log;
static u64 watchdog_interval;
static u64 watchdog_due;
static int log_fd = -1;
static pid_t log_child;
static bool log_again;

/* While it waits for its end, the recorder says so that often, in ns. */
#define WAIT_INTERVAL	((u64)(10 * NSEC_PER_SEC))

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
		close(pid_fd);
		pid_fd = -1;
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

static void print_to(int fd)
{
	fflush(NULL);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* Return: the file, or a negative errno. */
static int open_log(const char *out)
{
	char *path = name_of(out, ".log");
	int fd;

	if (!path)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		fd = -errno;
	free(path);
	return fd;
}

static void open_first_log(const char *out)
{
	int fd = open_log(out);

	has_log = true;
	if (fd < 0) {
		/* It is the terminal that is waiting. */
		pr_err("Cannot open %s.log: %s. Messages will be lost.\n", out, strerror(-fd));
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	}
	if (fd >= 0)
		print_to(fd);
}

/**
 * flight_daemon__ready - detach from the terminal after recording has started
 * @out: prefix of the names of its files
 */
void flight_daemon__ready(const char *out)
{
	notify("READY=1");
	if (ready_fd < 0)
		return;
	open_first_log(out);
	if (writen(ready_fd, (void *)"", 1) != 1)
		pr_debug("the parent has exited\n");
	close(ready_fd);
	ready_fd = -1;
}

static void hup_handler(int signo __maybe_unused)
{
	int saved_errno = errno;
	u64 one = 1;

	WRITE_ONCE(hup_came, 1);
	/* If the counter is full, the file is readable all the same. */
	if (write(hup_fd, &one, sizeof(one)) < 0)
		errno = saved_errno;
	errno = saved_errno;
}

/* WATCHDOG_PID names the process that is watched. */
static void init_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (usec && (!pid || atoi(pid) == getpid()))
		watchdog_interval = strtoull(usec, NULL, 10) * NSEC_PER_USEC / 2;
}

/**
 * flight_daemon__watch - handle SIGHUP, and the watchdog of the service manager
 * @daemon: whether this is a daemon
 *
 * Return: a file descriptor to poll, or -1 if there is none.
 */
int flight_daemon__watch(bool daemon)
{
	struct sigaction act = { .sa_handler = hup_handler, .sa_flags = SA_RESTART }, old;

	init_watchdog();
	if (!daemon) {
		/* Not if nohup has asked to ignore it. */
		if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler == SIG_DFL &&
		    !sigaction(SIGTERM, NULL, &old))
			sigaction(SIGHUP, &old, NULL);
		return -1;
	}
	hup_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	sigemptyset(&act.sa_mask);
	if (hup_fd < 0 || sigaction(SIGHUP, &act, NULL))
		signal(SIGHUP, SIG_IGN);
	return hup_fd;
}

/* The message is a negative errno, or comes with a file. */
union log_control {
	struct cmsghdr	header;
	char		room[CMSG_SPACE(sizeof(int))];
};

static void send_log(int fd, int file)
{
	union log_control control = {};
	struct iovec iov = { .iov_base = &file, .iov_len = sizeof(file) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (file >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr) {
			.cmsg_len	= CMSG_LEN(sizeof(int)),
			.cmsg_level	= SOL_SOCKET,
			.cmsg_type	= SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	}
	sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* Return: 0, -EAGAIN if there is nothing yet, or another negative errno. */
static int take_log(void)
{
	union log_control control = {};
	int file = 0;
	struct iovec iov = { .iov_base = &file, .iov_len = sizeof(file) };
	struct msghdr msg = {
		.msg_iov	= &iov,
		.msg_iovlen	= 1,
		.msg_control	= &control,
		.msg_controllen	= sizeof(control),
	};
	ssize_t len = recvmsg(log_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (len < 0)
		return -errno;
	/* It was killed. */
	if (len != sizeof(file))
		return -ECHILD;
	if (file < 0)
		return file;
	if (!CMSG_FIRSTHDR(&msg))
		return -EMFILE;
	memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(file));
	print_to(file);
	return 0;
}

static void run_log_child(const char *out, int fd)
{
	u64 one = 1;

	flight_child__begin();
	flight_child__close_but(fd, hup_fd);
	send_log(fd, open_log(out));
	/* If the counter is full, the recorder wakes up all the same. */
	_exit(write(hup_fd, &one, sizeof(one)) < 0);
}

static void close_log_socket(void)
{
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
}

/* It has told all. */
static void reap_log_child(void)
{
	if (log_child > 0 && log_fd < 0 && waitpid(log_child, NULL, WNOHANG))
		log_child = 0;
}

/* One that hangs is left to init. */
static void end_log_child(void)
{
	close_log_socket();
	if (log_child > 0)
		flight_child__kill(log_child);
	log_child = 0;
}

static int begin_log_child(const char *out)
{
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	fflush(NULL);
	log_child = fork();
	err = -errno;
	if (!log_child)
		run_log_child(out, fds[1]);
	close(fds[1]);
	if (log_child < 0) {
		close(fds[0]);
		log_child = 0;
		return err;
	}
	log_fd = fds[0];
	return 0;
}

static int reload(const char *out)
{
	char text[64];
	int err = 0;

	scnprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		  (u64)(rdclock() / NSEC_PER_USEC));
	notify(text);
	if (has_log)
		err = begin_log_child(out);
	if (!has_log || err)
		notify("READY=1");
	return err;
}

static int finish_reload(void)
{
	int err = take_log();

	if (err == -EAGAIN)
		return 0;
	close_log_socket();
	notify("READY=1");
	return err;
}

/**
 * flight_daemon__run - do what SIGHUP asks for, and tell the watchdog of this pass
 * @out: prefix of the names of its files
 * @now: CLOCK_MONOTONIC in ns
 * @due: when to call it again at the latest; -1ULL if there is no watchdog
 *
 * Return: 0, or a negative errno if SIGHUP came and the log could not be opened. The caller
 * says so: where messages go to now may be what hangs.
 */
int flight_daemon__run(const char *out, u64 now, u64 *due)
{
	int err = 0;
	u64 count;

	/*
	 * This is read before the flag. The handler sets the flag before it writes, so a signal
	 * in between is seen now, and at most causes one more pass.
	 */
	if (hup_fd >= 0 && read(hup_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		pr_debug("eventfd: %m\n");
	if (READ_ONCE(hup_came)) {
		WRITE_ONCE(hup_came, 0);
		log_again = true;
	}
	if (log_fd >= 0)
		err = finish_reload();
	reap_log_child();
	if (log_again && !log_child) {
		log_again = false;
		err = reload(out) ?: err;
	}
	if (watchdog_interval && now >= watchdog_due) {
		notify("WATCHDOG=1");
		watchdog_due = now + watchdog_interval;
	}
	*due = watchdog_interval ? watchdog_due : -1ULL;
	return err;
}

/**
 * flight_daemon__stop - the recorder begins to end
 *
 * From then on the service manager expects no WATCHDOG=1.
 */
void flight_daemon__stop(void)
{
	notify("STOPPING=1");
	watchdog_due = 0;
	end_log_child();
}

/**
 * flight_daemon__wait - the recorder has not ended, and wants to be waited for
 * @now: CLOCK_MONOTONIC in ns
 * @time: at least that long from now, in ns
 *
 * Call this once a second, or before what takes no longer than @time.
 */
void flight_daemon__wait(u64 now, u64 time)
{
	char text[64];

	if (now < watchdog_due && time < WAIT_INTERVAL)
		return;
	scnprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%" PRIu64 "%s",
		  (u64)((time + 2 * WAIT_INTERVAL) / NSEC_PER_USEC),
		  watchdog_interval ? "\nWATCHDOG=1" : "");
	notify(text);
	watchdog_due = now + (watchdog_interval ? min(watchdog_interval, WAIT_INTERVAL) :
			      WAIT_INTERVAL);
}

/**
 * flight_daemon__end - clean up at the end, or if there was no beginning
 * @out: prefix of the names of its files
 */
void flight_daemon__end(const char *out)
{
	char *path = name_of(out, ".pid");

	/* Remove the file before the lock is released: then it may belong to another daemon. */
	if (path && pid_fd >= 0)
		unlink(path);
	if (pid_fd >= 0)
		close(pid_fd);
	pid_fd = -1;
	free(path);
}
