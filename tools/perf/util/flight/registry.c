// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of running flight recorders: /run/perf/
 *
 * Theory of operation
 * -------------------
 * An entry is a socket that the recorder listens on, NAME.PID, in a directory that belongs
 * to the recorder's user:
 *
 *	/run/perf/0/blackbox.811		a recorder of root
 *	/run/perf/perf-flight/blackbox.902	a unit with RuntimeDirectory=perf/perf-flight
 *	/run/user/1000/perf/perf.data.1203	$XDG_RUNTIME_DIR/perf of a user
 *
 * The entry is the socket itself, not a file that names one: it holds nothing that could be
 * wrong or out of date, and no path that another user chose is ever followed.
 *
 * flight_registry__enter() takes the directory of its unit, the one of $RUNTIME_DIRECTORY that
 * is in /run/perf (systemd makes it), or that of its user, see ../persistent/run-dir.c. Both
 * belong to the effective user, and nobody else can write to them. bind() never replaces a
 * file and follows no link.
 *
 * A recorder that is killed leaves its entry behind. connect() then fails with
 * ECONNREFUSED, in whatever mount and PID namespace. A recorder that is between its bind()
 * and its listen() refuses as well, so an entry is stale only if it is older than STALE_S.
 * Stale entries are removed by perf ctl of root or of their owner, and by the owner's next
 * recorder.
 *
 * registry-look.c and registry-find.c find the entries.
 *
 * Trust
 * -----
 * Any user can put anything into a directory of his own, and a container anything into its
 * /run. The kernel tells for each connection who listens (SO_PEERCRED): that must be the
 * owner of the directory, so that users can enter none but themselves. This is checked before
 * anything is sent. Links, FIFOs and regular files are never opened. Nothing blocks: a socket
 * whose backlog is full counts as one that does not answer.
 */
#include "registry.h"
#include "../debug.h"
#include "../persistent/run-dir.h"

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define STALE_S		10
#define MAX_STALE	512
#define MAX_NAME	64
#define MAX_SAME	100
#define BACKLOG		64

/* The address of a file that is open, or that is in an open directory. */
static void set_address(struct sockaddr_un *addr, int fd, const char *name)
{
	*addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
	scnprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d%s%s", fd,
		  name ? "/" : "", name ?: "");
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static bool is_old(const struct stat *st)
{
	return st->st_mtime + STALE_S < time(NULL);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/**
 * flight_registry__connect - connect to a socket, and remove it if it is stale
 * @dir: its directory
 * @name: its name there
 * @uid: the owner of both
 *
 * Return: a descriptor, or a negative errno.
 */
int flight_registry__connect(int dir, const char *name, uid_t uid)
{
	int file = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd = -1, err;
	struct sockaddr_un addr;
	struct stat st, now;

	if (file < 0)
		return -errno;
	err = -EINVAL;
	if (fstat(file, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != uid)
		goto out_close;
	fd = new_socket();
	set_address(&addr, file, NULL);
	err = fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (err == -ECONNREFUSED && is_old(&st) &&
	    !fstatat(dir, name, &now, AT_SYMLINK_NOFOLLOW) && is_same(&st, &now) &&
	    !unlinkat(dir, name, 0))
		pr_debug("removed the stale entry %s\n", name);
out_close:
	close(file);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

/* Enter */

static int open_own_dir(struct run_dir_refusal *refusal)
{
	int dir = run_dir__open_unit(refusal);

	return dir >= 0 ? dir : run_dir__open_user(refusal);
}

/* Entries of killed recorders would pile up where perf ctl is never run. */
static void remove_stale(int dir)
{
	int copy = openat(dir, ".", RUN_DIR_OPEN), left = MAX_STALE;
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!stream && copy >= 0)
		close(copy);
	while (stream && left-- && (d = readdir(stream)) != NULL) {
		int fd = flight_registry__connect(dir, d->d_name, geteuid());

		if (fd >= 0)
			close(fd);
	}
	if (stream)
		closedir(stream);
}

/* The last part of @out, of characters that need no quoting. */
static void set_name(struct flight_entry *entry, const char *out, int number)
{
	const char *base = strrchr(out, '/');
	char name[MAX_NAME], suffix[16] = "";

	scnprintf(name, sizeof(name), "%s", base ? base + 1 : out);
	for (char *c = name; *c; c++) {
		if (!isascii(*c) || !(isalnum(*c) || strchr("._-", *c)) || (*c == '.' && c == name))
			*c = '_';
	}
	if (number)
		scnprintf(suffix, sizeof(suffix), ".%d", number);
	scnprintf(entry->name, sizeof(entry->name), "%s.%d%s", name, getpid(), suffix);
}

/* The name may be taken: PID namespaces can share a directory. */
static int bind_entry(struct flight_entry *entry, const char *out)
{
	mode_t mask = umask(0177);
	struct sockaddr_un addr;
	int err = -EADDRINUSE;

	for (int i = 0; i < MAX_SAME && err == -EADDRINUSE; i++) {
		set_name(entry, out, i);
		set_address(&addr, entry->dir, entry->name);
		err = bind(entry->fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	}
	umask(mask);
	return err;
}

static int listen_there(struct flight_entry *entry, const char *out)
{
	int err;

	entry->fd = new_socket();
	err = entry->fd < 0 ? -errno : bind_entry(entry, out);
	if (!err && listen(entry->fd, BACKLOG)) {
		err = -errno;
		unlinkat(entry->dir, entry->name, 0);
	}
	if (err && entry->fd >= 0)
		close(entry->fd);
	return err;
}

/**
 * flight_registry__enter - let the recorder be found
 * @entry: filled in; @fd is to be accepted from
 * @out: how the names of its files begin
 * @socket_path: where else it listens
 *
 * Return: 0, or a negative errno when the user was told that it will not be found.
 */
int flight_registry__enter(struct flight_entry *entry, const char *out, const char *socket_path)
{
	struct run_dir_refusal refusal = {};
	int err;

	entry->dir = open_own_dir(&refusal);
	if (entry->dir >= 0) {
		refusal.err = 0;
		remove_stale(entry->dir);
		err = listen_there(entry, out);
		if (!err)
			return 0;
		run_dir_refusal__note(&refusal, err, entry->name);
		close(entry->dir);
	}
	entry->fd = -1;
	pr_warning("perf ctl will not find this recorder (%s: %s), whose socket is %s.\n",
		   refusal.path, run_dir_refusal__reason(&refusal), socket_path);
	return refusal.err;
}

/**
 * flight_registry__leave - the recorder ends
 * @entry: its entry
 */
void flight_registry__leave(struct flight_entry *entry)
{
	if (entry->fd < 0)
		return;
	unlinkat(entry->dir, entry->name, 0);
	/* The children that write dumps have it as well. */
	shutdown(entry->fd, SHUT_RDWR);
	close(entry->fd);
	close(entry->dir);
	entry->fd = -1;
}
