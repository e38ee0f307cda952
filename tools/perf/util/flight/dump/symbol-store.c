// SPDX-License-Identifier: GPL-2.0
/*
 * perf-symbols: the files that the dumps of a directory have samples of, each once
 *
 * The store is a build-id cache of perf (perf --buildid-dir DIR/perf-symbols) in the
 * directory of the dumps. Copies of maps of JIT compilers are below jit/, in a directory
 * whose name tells the versions of a map apart. All dumps of the directory share the store,
 * including those of other recorders.
 *
 * Beside each dump is its list, DUMP.symbols: a line for each file, with the name of the
 * link .build-id/xx/yy..., or jit/VERSION/perf-PID.map. What is in no list of a dump that
 * exists is not needed, and is removed, as is what a killed writer has left. So no count of
 * users can be wrong.
 *
 * Locking: a process locks the directory of the store before it adds or removes files. A
 * writer keeps the lock until it has added the files and named the list, so that nobody
 * removes the files of an unfinished list. At the end it cleans the store. A process that
 * only wants to clean the store does nothing if another one has the lock.
 *
 * The store has files that only root may read, and its files may be links to programs of
 * the system. It is for its owner alone (0700), and one of another user is refused.
 */
#include "symbol-store.h"
#include "files.h"
#include "../../debug.h"
#include "../../strlist.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS	".build-id/"
#define MAPS	"jit/"

/* nftw() has no argument for its callback. */
static struct strlist *needed;
static size_t store_len;

/* "DIR/" of DIR/DUMP, or "./" */
static int dir_of(const char *path, char *dir, size_t size)
{
	const char *slash = strrchr(path, '/');
	int len = slash ? slash + 1 - path : 2;

	return snprintf(dir, size, "%.*s", len, slash ? path : "./") >= (int)size ?
	       -ENAMETOOLONG : 0;
}

static int store_of(const char *path, char *store, size_t size)
{
	char dir[PATH_MAX];
	int err = dir_of(path, dir, sizeof(dir));

	if (!err && snprintf(store, size, "%sperf-symbols", dir) >= (int)size)
		err = -ENAMETOOLONG;
	return err;
}

/* Return the directory, which must be one that only this user can change. */
static int open_store(const char *store)
{
	int fd = open(store, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022))
		return fd;
	close(fd);
	return -EPERM;
}

/**
 * symbol_store__open - open the store of a dump, and lock it
 * @path: the dump
 * @store: returns the directory of the store, which is created if it does not exist
 * @size: size of @store
 *
 * Waits for others that write to the store.
 *
 * Return: the descriptor for symbol_store__close(), or a negative errno. -EPERM: it is no
 * directory of this user alone.
 */
int symbol_store__open(const char *path, char *store, size_t size)
{
	int fd, err = store_of(path, store, size);

	if (err)
		return err;
	if (mkdir(store, 0700) && errno != EEXIST)
		return -errno;
	fd = open_store(store);
	if (fd == -ELOOP || fd == -ENOTDIR)
		return -EPERM;
	while (fd >= 0 && flock(fd, LOCK_EX)) {
		if (errno == EINTR)
			continue;
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Add the lines of a list to @lines. */
static int load(const char *list, struct strlist *lines)
{
	FILE *f = fopen(list, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int err = 0;

	if (!f)
		return -errno;
	while (!err && (len = getline(&line, &size, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		err = strlist__add(lines, line);
		if (err == -EEXIST)
			err = 0;
	}
	if (ferror(f))
		err = -EIO;
	free(line);
	fclose(f);
	return err;
}

static int write_lines(const char *list, struct strlist *lines)
{
	struct str_node *line;
	int fd, err = 0;
	char *tmp;
	FILE *f;

	fd = dump__create_temporary(list, &tmp);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		err = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		goto out;
	}
	strlist__for_each_entry(line, lines)
		fprintf(f, "%s\n", line->s);
	if (fflush(f) || ferror(f) || fsync(fd) || rename(tmp, list))
		err = -errno ?: -EIO;
	fclose(f);
out:
	if (err && fd >= 0)
		unlink(tmp);
	free(tmp);
	return err;
}

/**
 * symbol_store__join - let a combined file need what a dump needs
 * @path: the combined file
 * @from: the dump, which need not have a list
 *
 * Return: 0 or a negative errno.
 */
int symbol_store__join(const char *path, const char *from)
{
	struct strlist *lines = strlist__new(NULL, NULL);
	char list[PATH_MAX], other[PATH_MAX];
	int err = -ENOMEM;

	if (!lines)
		return err;
	if (snprintf(list, sizeof(list), "%s" SYMBOL_LIST, path) >= (int)sizeof(list) ||
	    snprintf(other, sizeof(other), "%s" SYMBOL_LIST, from) >= (int)sizeof(other))
		err = -ENAMETOOLONG;
	else
		err = load(other, lines);
	if (!err && !access(list, F_OK))
		err = load(list, lines);
	if (!err)
		err = write_lines(list, lines);
	strlist__delete(lines);
	return err == -ENOENT ? 0 : err;
}

/* Add the list @name, if there is a dump of that name. */
static int load_of_dump(const char *dir, const char *name, struct strlist *lines)
{
	size_t len = strlen(name), suffix = strlen(SYMBOL_LIST);
	char path[PATH_MAX];

	if (len <= suffix || strcmp(name + len - suffix, SYMBOL_LIST) || *name == '.')
		return 0;
	if (snprintf(path, sizeof(path), "%s%.*s", dir, (int)(len - suffix), name) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	if (access(path, F_OK))
		return errno == ENOENT ? 0 : -errno;
	if (snprintf(path, sizeof(path), "%s%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return load(path, lines);
}

/* The lines of all lists. On any error nothing is known to be unneeded. */
static int load_all(const char *dir, struct strlist *lines)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int err = 0;

	if (!d)
		return -errno;
	for (errno = 0; !err && (entry = readdir(d)) != NULL; errno = 0)
		err = load_of_dump(dir, entry->d_name, lines);
	if (!err && errno)
		err = -errno;
	closedir(d);
	return err;
}

/* @file, below the store, is NAME/BUILDID/elf or the like: is it what the link names? */
static bool is_linked_to(const char *file)
{
	char link[PATH_MAX], target[PATH_MAX], *path;
	const char *slash = strrchr(file, '/'), *id = slash;
	bool is_linked = false;
	ssize_t len;

	while (id && id > file && id[-1] != '/')
		id--;
	if (!slash || slash - id < 3)
		return false;
	snprintf(link, sizeof(link), LINKS "%.2s/%.*s", id, (int)(slash - id - 2), id + 2);
	if (!strlist__has_entry(needed, link))
		return false;
	if (asprintf(&path, "%.*s%s", (int)store_len, file - store_len, link) < 0)
		return true;
	len = readlink(path, target, sizeof(target) - 1);
	if (len > 0) {
		target[len] = '\0';
		is_linked = strstarts(target, "../../") &&
			    strlen(target) - 6 == (size_t)(slash - file) &&
			    !strncmp(target + 6, file, slash - file);
	}
	free(path);
	return is_linked;
}

static int remove_unneeded(const char *path, const struct stat *st __maybe_unused, int type,
			   struct FTW *ftw)
{
	const char *file = path + store_len;
	bool is_needed;

	if (!ftw->level)
		return 0;
	/* It stays if there is something in it. */
	if (type == FTW_DP || type == FTW_DNR) {
		if (rmdir(path) && errno != ENOTEMPTY && errno != EEXIST)
			pr_debug("Cannot remove %s: %m\n", path);
		return 0;
	}
	if (strstarts(file, LINKS) || strstarts(file, MAPS))
		is_needed = strlist__has_entry(needed, file);
	else
		is_needed = path[ftw->base] != '.' && is_linked_to(file);
	if (!is_needed && unlink(path))
		pr_debug("Cannot remove %s: %m\n", path);
	return 0;
}

/* The lock is held. */
static void clean(const char *dir, const char *store)
{
	int err = -ENOMEM;

	needed = strlist__new(NULL, NULL);
	store_len = strlen(store) + 1;
	if (needed)
		err = load_all(dir, needed);
	if (err)
		pr_err("%s was not cleaned: the lists of the dumps cannot be read: %s\n", store,
		       strerror(-err));
	else
		nftw(store, remove_unneeded, 16, FTW_DEPTH | FTW_PHYS);
	strlist__delete(needed);
	needed = NULL;
}

/**
 * symbol_store__clean - remove what no dump needs
 * @path: a dump, or how the names of dumps begin; it need not exist
 *
 * If a process writes to the store, it cleans it as well, and this does nothing.
 */
void symbol_store__clean(const char *path)
{
	char dir[PATH_MAX], store[PATH_MAX];
	int fd;

	if (dir_of(path, dir, sizeof(dir)) || store_of(path, store, sizeof(store)))
		return;
	fd = open_store(store);
	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		clean(dir, store);
	close(fd);
}

/**
 * symbol_store__close - remove what no dump needs, and unlock the store
 * @fd: what symbol_store__open() has returned
 * @path: the dump
 * @store: the directory of the store
 */
void symbol_store__close(int fd, const char *path, const char *store)
{
	char dir[PATH_MAX];

	if (!dir_of(path, dir, sizeof(dir)))
		clean(dir, store);
	close(fd);
}

static u64 size_of_dir(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	struct stat st;
	u64 bytes = 0;

	while (d && (entry = readdir(d)) != NULL) {
		if (!fstatat(dirfd(d), entry->d_name, &st, 0) && S_ISREG(st.st_mode))
			bytes += st.st_size;
	}
	if (d)
		closedir(d);
	return bytes;
}

static u64 size_of(const char *store, const char *line)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", store, line) >= (int)sizeof(path))
		return 0;
	if (strstarts(line, LINKS))
		return size_of_dir(path);
	return stat(path, &st) ? 0 : st.st_size;
}

/**
 * symbol_store__bytes - size of the files that dumps need
 * @df: the dumps
 * @first: index of the first of them that counts
 *
 * Return: the size, with a file that several of them need counted once.
 */
u64 symbol_store__bytes(const struct dump_files *df, size_t first)
{
	struct strlist *lines = strlist__new(NULL, NULL);
	char store[PATH_MAX], list[PATH_MAX];
	struct str_node *line;
	u64 bytes = 0;

	if (!lines || first >= df->nr || store_of(df->files[0].path, store, sizeof(store)))
		goto out;
	for (size_t i = first; i < df->nr; i++) {
		if (snprintf(list, sizeof(list), "%s" SYMBOL_LIST, df->files[i].path) <
		    (int)sizeof(list))
			load(list, lines);
	}
	strlist__for_each_entry(line, lines)
		bytes += size_of(store, line->s);
out:
	strlist__delete(lines);
	return bytes;
}
