// SPDX-License-Identifier: GPL-2.0
/*
 * --archive, --on-dump CMD: actions after each dump
 *
 * The child that wrote the dump forks a process for them, in a new session, and exits, so
 * the process is not a child of the recorder. The recorder does not wait for it, does not
 * take its exit for that of the workload, and is not blocked if it hangs. The process must
 * not stay a copy of the recorder, because the memory would exist twice meanwhile. It
 * executes a shell that runs CMD and, with --archive, a new perf before that.
 *
 * There is no time-out, because only the user knows how long a command may take. Instead,
 * at most MAX_RUNNING of these processes exist. If the limit is reached, no further one is
 * started, and a message is printed. Each process holds a lock on one byte of an unnamed
 * file. Such a lock belongs to the process: exec() keeps it, fork() does not pass it on, and
 * it is released in any case when the process ends. No counter is needed.
 */
#include "on-dump.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_RUNNING	8

/* CMD with the name of the file as last argument. CMD may contain "exit". */
static const char wrapper[] =
	"(eval \"$1 \\\"\\$2\\\"\"); s=$?; "
	"[ $s = 0 ] || echo \"[ perf record: --on-dump failed with status $s: $1 $2 ]\" >&2";

static int running_fd = -1;

/**
 * on_dump__init - initialize, before the first dump
 *
 * Return: 0 or a negative errno.
 */
int on_dump__init(void)
{
	if (running_fd < 0)
		running_fd = memfd_create("perf-on-dump", MFD_CLOEXEC);
	return running_fd < 0 ? -errno : 0;
}

/* Return the file that on_dump__run() needs, or -1. */
int on_dump__fd(void)
{
	return running_fd;
}

/* Close inherited files: the recorder's events would exist as long as the command. */
static void close_others(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *entry;

	while (d && (entry = readdir(d)) != NULL) {
		int fd = atoi(entry->d_name);

		if (fd > STDERR_FILENO && fd != dirfd(d) && fd != running_fd)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* The lock is held until this process ends, including after exec(). */
static bool is_one_of_few(void)
{
	for (int i = 0; i < MAX_RUNNING; i++) {
		struct flock lock = {
			.l_type		= F_WRLCK,
			.l_whence	= SEEK_SET,
			.l_start	= i,
			.l_len		= 1,
		};

		if (!fcntl(running_fd, F_SETLK, &lock))
			return !fcntl(running_fd, F_SETFD, 0);
	}
	return false;
}

/**
 * on_dump__exec - execute the command of the user
 * @command: the command
 * @path: the dump
 *
 * Does not return.
 */
void on_dump__exec(const char *command, const char *path)
{
	fflush(NULL);
	execl("/bin/sh", "sh", "-c", wrapper, "sh", command, path, NULL);
	fprintf(stderr, "--on-dump: cannot run /bin/sh: %m\n");
	_exit(127);
}

/* Use this perf, even if another one has been installed meanwhile. */
static void exec_archive(const char *command, const char *path)
{
	const char *cache = getenv("PERF_BUILDID_DIR");

	execl("/proc/self/exe", "perf", "--buildid-dir", cache ?: "", "record", "--archive",
	      "-o", path, command ? "--on-dump" : NULL, command, NULL);
	fprintf(stderr, "--archive: cannot run perf: %m\n");
	_exit(127);
}

/* The child that writes dumps is to be killed first. This process is not. */
static void restore_oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "0", 1) != 1)
		pr_debug("/proc/self/oom_score_adj: %m\n");
	if (fd >= 0)
		close(fd);
}

static void start(const char *command, const char *path, bool archive)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE
	};
	sigset_t none;
	int fd;

	close_others();
	if (!is_one_of_few()) {
		fprintf(stderr,
			"[ perf record: %d --on-dump commands are still running: not starting one for %s ]\n",
			MAX_RUNNING, path);
		fflush(NULL);
		_exit(1);
	}
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		dup2(fd, STDIN_FILENO);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	restore_oom_score();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (archive)
		exec_archive(command, path);
	on_dump__exec(command, path);
}

/**
 * on_dump__run - start the actions after a dump, and do not wait for them
 * @command: the user's command, or NULL
 * @path: the dump
 * @archive: write the archive first
 *
 * Call this in the child that wrote the dump.
 *
 * Return: 0 or a negative errno.
 */
int on_dump__run(const char *command, const char *path, bool archive)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		start(command, path, archive);
	return pid < 0 ? -errno : 0;
}

/**
 * on_dump__archive - write the archive of a combined file
 * @path: the file
 *
 * The recorder is ending, so this waits for the archive. Errors have been printed.
 */
void on_dump__archive(const char *path)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		exec_archive(NULL, path);
	if (pid < 0)
		pr_err("Cannot start --archive: %m\n");
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
