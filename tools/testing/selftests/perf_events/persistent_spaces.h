/* SPDX-License-Identifier: GPL-2.0 */
/* Users, capabilities and namespaces, for the tests of persistent events. */
#ifndef SELFTESTS_PERF_EVENTS_PERSISTENT_SPACES_H
#define SELFTESTS_PERF_EVENTS_PERSISTENT_SPACES_H

#include <linux/capability.h>

#include "persistent_util.h"

/* An ordinary user with capabilities, as bits, and nothing else. */
static inline int become_with_caps(uint64_t caps)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	for (int i = 0; i < 2; i++) {
		data[i].permitted = caps >> (32 * i);
		data[i].effective = data[i].permitted;
	}
	return prctl(PR_SET_KEEPCAPS, 1) || become(SOMEBODY) ||
	       syscall(__NR_capset, &hdr, data) ? -1 : 0;
}

/* The same with one of them. */
static inline int become_with(int cap)
{
	return become_with_caps(1ULL << cap);
}

static inline int become_monitor(void)
{
	return become_with(CAP_PERFMON);
}

/* Root's uid, and no capability at all: what is left of root in a container. */
static inline int drop_capabilities(void)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	return syscall(__NR_capset, &hdr, data);
}

/*
 * In a chroot there are no user namespaces. Root gets out of it, takes all mounts along,
 * and puts them on top of what was outside, where nobody else sees it.
 */
static inline int leave_chroot(void)
{
	int tree, i;

	if (unshare(CLONE_NEWNS) || mkdir("/tmp/inside", 0700))
		return -1;
	tree = syscall(__NR_open_tree, AT_FDCWD, "/",
		       1 /* OPEN_TREE_CLONE */ | O_CLOEXEC | 0x8000 /* AT_RECURSIVE */);
	if (tree < 0 || chroot("/tmp/inside"))
		return -1;
	for (i = 0; i < 64; i++) {
		if (chdir(".."))
			return -1;
	}
	if (chroot(".") || syscall(__NR_move_mount, tree, "", AT_FDCWD, "/",
				   4 /* MOVE_MOUNT_F_EMPTY_PATH */))
		return -1;
	return fchdir(tree) || chroot(".") ? -1 : 0;
}

/*
 * A process in namespaces of its own, made by root, which is pid 1 there if it is a pid
 * namespace; with the ids of @map as its own in a user namespace.
 */
struct space {
	pid_t	pid;
	int	to;
	int	from;
};

typedef int (*space_fn_t)(int64_t arg);

static inline void serve_space(int in, int out)
{
	struct { space_fn_t fn; int64_t arg; } call;
	int ret;

	while (read(in, &call, sizeof(call)) == sizeof(call) && call.fn) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(call.fn(call.arg));
		waitpid(pid, &status, 0);
		ret = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
		if (write(out, &ret, sizeof(ret)) != sizeof(ret))
			break;
	}
	_exit(0);
}

/* CLONE_NEWPID, CLONE_NEWUSER or none; the user is that of the one that makes it. */
static inline struct space make_space(int flags, uid_t owner)
{
	struct space space = { .pid = -1 };
	int to[2], from[2], ready = 0;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return space;
	space.pid = fork();
	if (!space.pid) {
		close(to[1]);
		close(from[0]);
		if (flags & CLONE_NEWUSER) {
			leave_chroot();
			if (owner && become(owner))
				_exit(99);
			prctl(PR_SET_DUMPABLE, 1);
		}
		if (unshare(flags)) {
			fprintf(stderr, "# no namespace: %s\n", strerror(errno));
			_exit(99);
		}
		if (fork()) {
			close(to[0]);
			close(from[1]);
			wait(NULL);
			_exit(0);
		}
		if (write(from[1], &ready, sizeof(ready)) != sizeof(ready))
			_exit(99);
		serve_space(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	space.to = to[1];
	space.from = from[0];
	if (read(space.from, &ready, sizeof(ready)) != sizeof(ready))
		space.pid = -1;
	return space;
}

/* Runs fn in a child of the space's; returns its exit status. */
static inline int run_in(struct space *space, space_fn_t fn, int64_t arg)
{
	struct { space_fn_t fn; int64_t arg; } call = { fn, arg };
	int ret;

	if (write(space->to, &call, sizeof(call)) != sizeof(call) ||
	    read(space->from, &ret, sizeof(ret)) != sizeof(ret))
		return 97;
	return ret;
}

static inline void end_space(struct space *space)
{
	struct { space_fn_t fn; int64_t arg; } call = { };

	/* Other spaces have copies of these files: closing them would not end it. */
	if (write(space->to, &call, sizeof(call)) != sizeof(call))
		kill(space->pid, SIGKILL);
	close(space->to);
	close(space->from);
	waitpid(space->pid, NULL, 0);
	rmdir("/tmp/inside");
}

#endif /* SELFTESTS_PERF_EVENTS_PERSISTENT_SPACES_H */
