// SPDX-License-Identifier: GPL-2.0
/*
 * The directory in which the perf processes of a user find each other
 *
 *	root:	/run/perf/0, which is made, as is /run/perf if tmpfiles.d has not made it
 *	others:	$XDG_RUNTIME_DIR/perf, which is made; or /run/perf/UID
 *
 * A systemd unit with RuntimeDirectory=perf/UNIT has one of its own, /run/perf/UNIT.
 *
 * It must be a directory, not a symbolic link; it must belong to the effective user, and
 * must not be writable by others. The same holds for the directory in which it is made. So
 * nobody else can put a file there, or open one that has mode 0600.
 */
#include "run-dir.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_PERF	"/run/perf"

/* Return: 0 if it belongs to the effective user alone, or a negative errno. */
static int check_owner(int dir)
{
	struct stat st;

	if (fstat(dir, &st))
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* Takes @dir. Return: a descriptor of a directory that is our own, or a negative errno. */
static int own_dir(int dir)
{
	int err = dir < 0 ? -errno : check_owner(dir);

	if (err && dir >= 0)
		close(dir);
	return err ?: dir;
}

/* Make @name in @parent if it is not there, with @mode, whatever the umask. */
static int make_dir(int parent, const char *name, mode_t mode)
{
	bool made = !mkdirat(parent, name, 0700);
	int dir = own_dir(openat(parent, name, RUN_DIR_OPEN));

	if (dir >= 0 && made && fchmod(dir, mode))
		pr_debug("%s: mode %o: %m\n", name, mode);
	return dir;
}

/* Takes @parent, which must be our own, too. */
static int make_in(int parent, const char *name)
{
	int dir;

	if (parent < 0)
		return parent;
	dir = make_dir(parent, name, 0700);
	close(parent);
	return dir;
}

/**
 * run_dir_refusal__note - a directory cannot be used
 * @refusal: filled in, unless there was another error before
 * @dir: the error; nothing is noted if it is none
 * @path: of the directory
 *
 * Return: @dir
 */
int run_dir_refusal__note(struct run_dir_refusal *refusal, int dir, const char *path)
{
	if (dir < 0 && (!refusal->err || refusal->err == -ENOENT)) {
		refusal->err = dir;
		scnprintf(refusal->path, sizeof(refusal->path), "%s", path);
	}
	return dir;
}

/**
 * run_dir_refusal__reason - what to tell the user
 * @refusal: with an error
 *
 * Return: words, valid until the next call.
 */
const char *run_dir_refusal__reason(const struct run_dir_refusal *refusal)
{
	return refusal->err == -EPERM ? "others may write to it" : strerror(-refusal->err);
}

/**
 * run_dir__open_unit - open the directory of this unit
 * @refusal: why not
 *
 * Return: a descriptor, or a negative errno; -ENOENT if there is none, or this is no unit.
 */
int run_dir__open_unit(struct run_dir_refusal *refusal)
{
	const char *dirs = getenv("RUNTIME_DIRECTORY") ?: "";
	char path[PATH_MAX];
	size_t len;

	/* systemd separates several by colons. */
	for (; *dirs; dirs += len + (dirs[len] == ':')) {
		len = strcspn(dirs, ":");
		scnprintf(path, sizeof(path), "%.*s", (int)len, dirs);
		if (strstarts(path, RUN_PERF "/") && !strchr(path + strlen(RUN_PERF "/"), '/'))
			return run_dir_refusal__note(refusal, own_dir(open(path, RUN_DIR_OPEN)),
						     path);
	}
	return -ENOENT;
}

/**
 * run_dir__open_user - open the directory of the effective user
 * @refusal: why not
 *
 * Return: a descriptor, or a negative errno.
 */
int run_dir__open_user(struct run_dir_refusal *refusal)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char path[64];
	int dir = -ENOENT;

	if (geteuid() && xdg && *xdg == '/')
		dir = run_dir_refusal__note(refusal,
					    make_in(own_dir(open(xdg, RUN_DIR_OPEN)), "perf"), xdg);
	if (dir >= 0)
		return dir;
	scnprintf(path, sizeof(path), RUN_PERF "/%u", geteuid());
	if (geteuid())
		dir = own_dir(open(path, RUN_DIR_OPEN));
	else
		dir = make_in(make_dir(AT_FDCWD, RUN_PERF, 0755), "0");
	return run_dir_refusal__note(refusal, dir, path);
}
