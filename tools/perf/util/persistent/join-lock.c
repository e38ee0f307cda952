// SPDX-License-Identifier: GPL-2.0
/*
 * Those that join CPUs to a session take turns
 *
 * Theory of operation
 * -------------------
 * The lock of a session is one byte of the file join.lock in the directory of the user, see
 * run-dir.c: the byte whose offset is the id of the session. It is locked with fcntl(), which
 * tells the pid of the holder. The kernel gives it back when the process exits.
 *
 * Nobody but the user can open the file. A file of the session in sysfs would not do: uid 0 of
 * a container without a user namespace can open it, without any capability, and lock it for
 * ever. And each network namespace has a sysfs of its own, whose locks keep nobody else out.
 *
 * A process that is stopped, or hangs, keeps its lock. So a joiner waits for one and the same
 * process LOCK_WAIT_S at most. It waits for longer if the lock passes from one to the next:
 * where many CPUs come online at once, there is one joiner for each of them. A process
 * that joins many CPUs gives the lock back after each.
 *
 * Processes do not wait for each other if they belong to different users, or if they have
 * another /run, as in a container. A user may have no such directory. Then perf says so, and
 * joins without a lock.
 */
#include "join-lock.h"
#include "run-dir.h"
#include "../debug.h"
#include "../time-utils.h"

#include <linux/time64.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOCK_FILE	"join.lock"
#define LOCK_WAIT_S	10
#define LOCK_POLL_US	(10 * USEC_PER_MSEC)

/* In seconds */
static time_t now(void)
{
	return rdclock() / NSEC_PER_SEC;
}

/* Return: a descriptor, or -1 when the user was told. */
static int open_file(void)
{
	static bool told;
	struct run_dir_refusal refusal = {};
	int fd = -1, dir = run_dir__open_user(&refusal);

	if (dir >= 0) {
		refusal.err = 0;
		fd = openat(dir, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		run_dir_refusal__note(&refusal, fd < 0 ? -errno : 0, LOCK_FILE);
		close(dir);
	}
	if (fd < 0 && !told) {
		pr_warning("Let no other perf join CPUs meanwhile: nothing keeps two of them apart (%s: %s).\n",
			   refusal.path, run_dir_refusal__reason(&refusal));
		told = true;
	}
	return fd;
}

/* Wait for the lock @want of @fd. Return: 0, -EBUSY with the holder in @want, or another errno. */
static int wait_for(int fd, struct flock *want)
{
	const struct flock lock = *want;
	time_t since = now();
	pid_t holder = -1;

	while (fcntl(fd, F_SETLK, want)) {
		if (errno != EAGAIN && errno != EACCES)
			return -errno;

		if (fcntl(fd, F_GETLK, want))
			return -errno;
		/* Unlocked meanwhile, or passed on */
		if (want->l_type == F_UNLCK || want->l_pid != holder) {
			holder = want->l_type == F_UNLCK ? -1 : want->l_pid;
			since = now();
		}
		if (now() - since > LOCK_WAIT_S)
			return -EBUSY;
		usleep(LOCK_POLL_US);
		*want = lock;
	}
	return 0;
}

static void print_busy(const char *name, pid_t holder)
{
	char process[64] = "a process of another PID namespace";

	if (holder > 0)
		snprintf(process, sizeof(process), "process %d", holder);
	pr_err("The session '%s' gets no CPU now: %s has been joining one for %d s. If it hangs, end it, and try again: perf ctl --join-cpu=online %s\n",
	       name, process, LOCK_WAIT_S, name);
}

/**
 * join_lock__take - wait until nobody else joins a CPU to a session
 * @lock: filled in, to be given back unless an error is returned
 * @id: id of the session
 * @name: its name
 *
 * Return: 0, also without a lock; -EBUSY when the user was told who holds it.
 */
int join_lock__take(struct join_lock *lock, u64 id, const char *name)
{
	struct flock want = {
		.l_type	  = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start  = id,
		.l_len	  = 1,
	};
	int err;

	lock->fd = open_file();
	if (lock->fd < 0)
		return 0;

	err = wait_for(lock->fd, &want);
	if (!err)
		return 0;

	join_lock__give_back(lock);
	if (err == -EBUSY) {
		print_busy(name, want.l_pid);
		return err;
	}
	pr_warning("%s cannot be locked: %s\n", LOCK_FILE, strerror(-err));
	return 0;
}

/**
 * join_lock__give_back - let the next one join
 * @lock: the lock
 */
void join_lock__give_back(struct join_lock *lock)
{
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = -1;
}
