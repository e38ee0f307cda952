// SPDX-License-Identifier: GPL-2.0
/*
 * Find the running flight recorders
 *
 * Theory of operation
 * -------------------
 * registry.c says what an entry is and why it can be trusted. flight_registry__look() finds,
 * in this order,
 *
 *	1. the user's own directories, in /run/perf and /run/user
 *	2. for root: those of other users
 *	3. the same in other mount namespaces, through /proc/PID/root
 *
 * The last step reads one link of each process, /proc/PID/ns/mnt, and looks once into
 * each namespace, as the first of its processes sees it. A directory that several namespaces
 * share is looked at once.
 *
 * Paths are walked one name at a time, and no link is followed: in /proc/PID/root an absolute
 * one would lead out of the container.
 *
 * Any user can create a mount namespace and mount directories of root there, on /run/perf, with
 * the sockets of root's daemons. So a directory in another mount namespace counts only if its
 * owner is mapped into the user namespace that owns the mounts: a user can map no ids but his
 * own. /proc/PID/uid_map tells, of a process in that very user namespace. Other processes are
 * skipped; they may have called chroot() as well.
 *
 * A container without a user namespace of its own has root's ids, and makes its own /run/perf/0.
 * Its recorders are found, but its root is not the machine's: @found is told that they are in
 * another mount namespace, so that their names and paths are not believed.
 *
 * At most MAX_ENTRIES names of another user's directory or of a mount namespace are read, and
 * at most MAX_FOUND recorders are found. The search ends after FLIGHT_FIND_S. Whatever was left
 * out, one sentence says why. The user's own entries come first, then those of this namespace,
 * so that other users cannot use up either limit.
 *
 * A file system that does not answer can block the search: see registry-find.c.
 */
#include "registry.h"
#include "../persistent/run-dir.h"
#include "../time-utils.h"

#include <linux/compiler.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/nsfs.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES	64
#define MAX_FOUND	512

/**
 * struct id - a directory, or a namespace
 * @dev: the device of its inode; 0 for a namespace
 * @ino: its inode
 */
struct id {
	u64	dev;
	u64	ino;
};

/**
 * struct ids - a set of them
 * @ids: the members
 * @nr: how many
 */
struct ids {
	struct id	*ids;
	size_t		nr;
};

/**
 * struct look - a search for recorders
 * @found: called for each of them
 * @data: of @found
 * @until: when to end, ns of CLOCK_MONOTONIC
 * @nr: how many were found
 * @dirs: directories that were looked at
 * @namespaces: mount namespaces that were looked at
 * @process: only directories of owners in its uid_map count; below 0: those of all
 * @foreign: it is the mount namespace of another process that is looked at
 * @missing: of FLIGHT_MISSING bytes: why there may be more; empty if all were found
 */
struct look {
	flight_registry_found_t	found;
	void			*data;
	u64			until;
	unsigned int		nr;
	struct ids		dirs;
	struct ids		namespaces;
	int			process;
	bool			foreign;
	char			*missing;
};

/**
 * enum whose - which directories to look at
 * @WHOSE_OWN: those of the effective user
 * @WHOSE_OTHERS: those of other users
 * @WHOSE_ANY: both
 */
enum whose {
	WHOSE_OWN,
	WHOSE_OTHERS,
	WHOSE_ANY,
};

static bool has_id(const struct ids *set, const struct id *id)
{
	for (size_t i = 0; i < set->nr; i++)
		if (set->ids[i].dev == id->dev && set->ids[i].ino == id->ino)
			return true;
	return false;
}

/* Return: 1 if it was not there, 0 if it was, or -ENOMEM. */
static int add_id(struct ids *set, const struct id *id)
{
	struct id *ids;

	if (has_id(set, id))
		return 0;
	ids = reallocarray(set->ids, set->nr + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	set->ids = ids;
	ids[set->nr++] = *id;
	return 1;
}

static int add_dir(struct look *look, const struct stat *st)
{
	const struct id id = { .dev = st->st_dev, .ino = st->st_ino };

	return add_id(&look->dirs, &id);
}

/* The first reason is the one that is told. */
static __printf(2, 3) void leave_out(struct look *look, const char *fmt, ...)
{
	va_list ap;

	if (*look->missing)
		return;
	va_start(ap, fmt);
	vscnprintf(look->missing, FLIGHT_MISSING, fmt, ap);
	va_end(ap);
}

static bool goes_on(struct look *look)
{
	if (rdclock() >= look->until)
		leave_out(look, "the search ended after %d s", FLIGHT_FIND_S);
	else if (look->nr >= MAX_FOUND)
		leave_out(look, "only %d are asked", MAX_FOUND);
	else
		return true;
	return false;
}

/* It counts only if the owner of the directory listens there. */
static int add_entry(struct look *look, int dir, const char *name, uid_t uid)
{
	int fd = flight_registry__connect(dir, name, uid);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.uid != uid) {
		close(fd);
		return 0;
	}
	look->nr++;
	return look->found(look->data, fd, peer.pid, look->foreign);
}

/* The next name, or NULL at the end. */
static const char *next_name(DIR *stream)
{
	struct dirent *d;

	do {
		d = readdir(stream);
	} while (d && (!strcmp(d->d_name, ".") || !strcmp(d->d_name, "..")));
	return d ? d->d_name : NULL;
}

/* One more of those that may be looked at? */
static bool take_one(int *left)
{
	return *left > 0 && (*left)--;
}

/*
 * look_in - all entries of a directory
 * @look: the search
 * @dir: the directory; is closed
 * @uid: its owner
 * @left: how many names may follow
 */
static int look_in(struct look *look, int dir, uid_t uid, int *left)
{
	DIR *stream = fdopendir(dir);
	const char *name;
	int err = 0;

	if (!stream) {
		close(dir);
		return 0;
	}
	while (!err && goes_on(look) && (name = next_name(stream)) != NULL) {
		if (!take_one(left)) {
			leave_out(look, "user %u has more than %d entries", uid, MAX_ENTRIES);
			break;
		}
		/* Names with a dot in front are no entries. They count against the limit. */
		err = *name == '.' ? 0 : add_entry(look, dir, name, uid);
	}
	closedir(stream);
	return err;
}

static bool is_mapped(int process, uid_t uid)
{
	int fd = openat(process, "uid_map", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int first, count;
	bool found = false;

	while (file && !found && fscanf(file, "%*u %u %u", &first, &count) == 2)
		found = uid >= first && uid - first < count;
	if (file)
		fclose(file);
	else if (fd >= 0)
		close(fd);
	return found;
}

static bool is_wanted(const struct look *look, const struct stat *st, enum whose whose)
{
	bool own = st->st_uid == geteuid();

	if ((!own && geteuid()) || st->st_mode & 022 ||
	    (look->process >= 0 && !is_mapped(look->process, st->st_uid)))
		return false;
	return whose == WHOSE_ANY || own == (whose == WHOSE_OWN);
}

/* @left: for all directories of another namespace together; NULL in our own. */
static int look_at_dir(struct look *look, int parent, const char *name, enum whose whose,
		       int *left)
{
	int dir = openat(parent, name, RUN_DIR_OPEN), added;
	int own_left = whose == WHOSE_OWN ? INT_MAX : MAX_ENTRIES;
	struct stat st;

	if (dir < 0)
		return 0;
	added = fstat(dir, &st) || !is_wanted(look, &st, whose) ? 0 : add_dir(look, &st);
	if (added <= 0) {
		close(dir);
		return added;
	}
	return look_in(look, dir, st.st_uid, left ?: &own_left);
}

/* Namespaces may share it. It is read once for our own entries, and once for the others. */
static DIR *open_parent(struct look *look, int root, const char *name, enum whose whose)
{
	int run = openat(root, "run", RUN_DIR_OPEN), dir;
	DIR *stream = NULL;
	struct stat st;

	if (run < 0)
		return NULL;
	dir = openat(run, name, RUN_DIR_OPEN);
	close(run);
	if (dir >= 0 && !fstat(dir, &st) && (whose == WHOSE_OWN || add_dir(look, &st) > 0))
		stream = fdopendir(dir);
	if (!stream && dir >= 0)
		close(dir);
	return stream;
}

/* All directories in run/@parent, or what is called @below in them. */
static int look_at_dirs(struct look *look, int root, const char *parent, const char *below,
			enum whose whose, int *left)
{
	DIR *stream = open_parent(look, root, parent, whose);
	const char *name;
	int err = 0, dir;

	while (stream && !err && goes_on(look) && (name = next_name(stream)) != NULL) {
		if (left && !take_one(left)) {
			leave_out(look, "a container has more than %d entries", MAX_ENTRIES);
			break;
		}
		dir = openat(dirfd(stream), name, RUN_DIR_OPEN);
		if (dir < 0)
			continue;
		err = look_at_dir(look, dir, below, whose, left);
		close(dir);
	}
	if (stream)
		closedir(stream);
	return err;
}

static int look_below(struct look *look, int root, enum whose whose, int *left)
{
	return look_at_dirs(look, root, "perf", ".", whose, left) ?:
	       look_at_dirs(look, root, "user", "perf", whose, left);
}

/* It need not be in /run/user. After sudo it may be another user's. */
static int look_at_xdg_dir(struct look *look)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	int dir = xdg && *xdg == '/' ? open(xdg, RUN_DIR_OPEN) : -1, err = 0;

	if (dir >= 0) {
		err = look_at_dir(look, dir, "perf", WHOSE_OWN, NULL);
		close(dir);
	}
	return err;
}

/* Return: false if it is not known. */
static bool mount_namespace(int proc, const char *pid, struct id *id)
{
	char path[NAME_MAX + 8], link[64];
	unsigned long long ino;
	ssize_t len;

	scnprintf(path, sizeof(path), "%s/ns/mnt", pid);
	len = readlinkat(proc, path, link, sizeof(link) - 1);
	link[max_t(ssize_t, len, 0)] = '\0';
	if (sscanf(link, "mnt:[%llu]", &ino) != 1)
		return false;
	*id = (struct id) { .ino = ino };
	return true;
}

/* The user namespace that owns its mount namespace: is it the process's? @ours: is it ours? */
static bool owns_mounts(int process, bool *ours)
{
	int mounts, owner = -1;
	struct stat own, its, st;
	bool owns = false;

	/* A kernel without user namespaces. */
	*ours = stat("/proc/self/ns/user", &own) != 0;
	if (*ours)
		return true;
	mounts = openat(process, "ns/mnt", O_RDONLY | O_CLOEXEC);
	if (mounts >= 0)
		owner = ioctl(mounts, NS_GET_USERNS);
	if (owner >= 0 && !fstat(owner, &st) && !fstatat(process, "ns/user", &its, 0)) {
		owns = st.st_ino == its.st_ino;
		*ours = st.st_ino == own.st_ino;
	}
	if (owner >= 0)
		close(owner);
	if (mounts >= 0)
		close(mounts);
	return owns;
}

/* Return: 1 if its namespace was looked at, 0 if not, or a negative errno. */
static int look_as_process(struct look *look, int process)
{
	int left = MAX_ENTRIES, root, err;
	bool ours;

	/* Before the check: a process cannot come back from a user namespace of its own. */
	root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return 0;
	if (!owns_mounts(process, &ours)) {
		close(root);
		return 0;
	}
	look->process = ours ? -1 : process;
	look->foreign = true;
	err = look_below(look, root, WHOSE_ANY, &left);
	look->foreign = false;
	look->process = -1;
	close(root);
	return err ?: 1;
}

static int look_at_process(struct look *look, int proc, const char *pid)
{
	struct id namespace;
	int process, err;

	if (!mount_namespace(proc, pid, &namespace) || has_id(&look->namespaces, &namespace))
		return 0;
	process = openat(proc, pid, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return 0;
	err = look_as_process(look, process);
	close(process);
	if (err > 0)
		err = add_id(&look->namespaces, &namespace);
	return min(err, 0);
}

static int look_into_namespaces(struct look *look)
{
	DIR *stream = opendir("/proc");
	const char *name;
	struct id own;
	int err = 0;

	if (!stream)
		return -errno;
	if (mount_namespace(dirfd(stream), "self", &own))
		err = min(add_id(&look->namespaces, &own), 0);
	while (!err && goes_on(look) && (name = next_name(stream)) != NULL) {
		if (isdigit(*name))
			err = look_at_process(look, dirfd(stream), name);
	}
	closedir(stream);
	return err;
}

/**
 * flight_registry__look - find the recorders that the user may ask
 * @found: called for each
 * @data: for @found
 * @missing: of FLIGHT_MISSING bytes: why some may be missing, or ""
 *
 * Root finds those of all users, others their own. If no file system hangs, it takes
 * FLIGHT_FIND_S at most.
 *
 * Return: 0, or a negative errno.
 */
int flight_registry__look(flight_registry_found_t found, void *data, char *missing)
{
	struct look look = {
		.found	 = found,
		.data	 = data,
		.until	 = rdclock() + FLIGHT_FIND_S * NSEC_PER_SEC,
		.process = -1,
		.missing = missing,
	};
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err;

	*missing = '\0';
	if (root < 0)
		return -errno;
	err = look_at_xdg_dir(&look) ?:
	      look_below(&look, root, WHOSE_OWN, NULL) ?:
	      look_below(&look, root, WHOSE_OTHERS, NULL) ?:
	      look_into_namespaces(&look);
	close(root);
	free(look.dirs.ids);
	free(look.namespaces.ids);
	return err;
}
