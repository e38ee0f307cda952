// SPDX-License-Identifier: GPL-2.0
/*
 * The dumps of a recorder on disk: list them, and limit their number, size and age
 *
 * A dump is OUT.sample.TIME or OUT.sample.TIME.N. Its manifest (.json), the list of the files
 * that its symbols are in (.symbols), and what a user may have packed of them (.tar.bz2) are
 * beside it and are removed with it, and then the files that no list names any more. Dumps
 * are ordered by name, and the time in its name is that of the dump, whenever the file was
 * copied. Files whose names are not those of dumps of this OUT are never touched.
 */
#include "files.h"
#include "symbol-store.h"
#include "../../clockid.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/**
 * dump__create_temporary - create a temporary file
 * @path: the final name
 * @tmp: returns the temporary name; to be freed by the caller
 *
 * Return: a file descriptor or a negative errno.
 */
int dump__create_temporary(const char *path, char **tmp)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	int fd;

	if (asprintf(tmp, "%.*s.%s.%d.tmp", (int)(name - path), path, name, getpid()) < 0) {
		*tmp = NULL;
		return -ENOMEM;
	}
	fd = open(*tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* Files beside a dump. They are found by its name, so the dump is removed last. */
static const char *const companions[] = { ".json", SYMBOL_LIST, ".tar.bz2" };

/* The length of "20261121T093650.275Z" or "20261121T093650.275Z.2", or 0. */
static size_t time_len(const char *str)
{
	static const char pattern[] = "ddddddddTdddddd.dddZ";
	size_t i;

	for (i = 0; pattern[i]; i++) {
		if (pattern[i] == 'd' ? str[i] < '0' || str[i] > '9' : str[i] != pattern[i])
			return 0;
	}
	return i;
}

static bool is_dump(const char *file, const char *name)
{
	size_t len = strlen(name), digits;

	if (strncmp(file, name, len) || !strstarts(file + len, ".sample."))
		return false;
	file += len + strlen(".sample.");
	len = time_len(file);
	if (!len || !file[len])
		return len;
	digits = strspn(file + len + 1, "0123456789");
	return file[len] == '.' && digits && !file[len + 1 + digits];
}

/* Sort by time, and by number within the same millisecond. */
static int cmp_files(const void *va, const void *vb)
{
	const struct dump_file *a = va, *b = vb;
	size_t len_a = strlen(a->path), len_b = strlen(b->path);
	const char *z_a = strrchr(a->path, 'Z'), *z_b = strrchr(b->path, 'Z');
	int cmp = z_a - a->path == z_b - b->path ?
		  strncmp(a->path, b->path, z_a - a->path) : strcmp(a->path, b->path);

	if (cmp)
		return cmp;
	return len_a != len_b ? (len_a < len_b ? -1 : 1) : strcmp(a->path, b->path);
}

static u64 bytes_of(const char *path)
{
	u64 bytes = 0;
	struct stat st;
	char *beside;

	if (!stat(path, &st))
		bytes = st.st_size;
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		if (asprintf(&beside, "%s%s", path, companions[i]) < 0)
			continue;
		if (!stat(beside, &st))
			bytes += st.st_size;
		free(beside);
	}
	return bytes;
}

static int add(struct dump_files *df, const char *dir, const char *file)
{
	struct dump_file *files = realloc(df->files, (df->nr + 1) * sizeof(*files));
	struct dump_file *f;

	if (!files)
		return -ENOMEM;
	df->files = files;
	f = &files[df->nr];
	if (asprintf(&f->path, "%s%s", dir, file) < 0)
		return -ENOMEM;
	f->bytes = bytes_of(f->path);
	df->nr++;
	return 0;
}

/**
 * dump_files__list - find the dumps
 * @out: how their names begin
 * @df: returns the list; free it with dump_files__free()
 *
 * Return: 0 or a negative errno.
 */
int dump_files__list(const char *out, struct dump_files *df)
{
	const char *slash = strrchr(out, '/');
	const char *name = slash ? slash + 1 : out;
	char *dir = slash ? strndup(out, slash - out + 1) : strdup("");
	struct dirent *entry;
	int err = 0;
	DIR *d;

	*df = (struct dump_files) {};
	if (!dir)
		return -ENOMEM;
	d = opendir(slash ? dir : ".");
	if (!d) {
		err = -errno;
		goto out_free;
	}
	while (!err && (entry = readdir(d)) != NULL) {
		if (is_dump(entry->d_name, name))
			err = add(df, dir, entry->d_name);
	}
	closedir(d);
	if (err)
		dump_files__free(df);
	else if (df->nr)
		qsort(df->files, df->nr, sizeof(*df->files), cmp_files);
out_free:
	free(dir);
	return err;
}

void dump_files__free(struct dump_files *df)
{
	for (size_t i = 0; i < df->nr; i++)
		free(df->files[i].path);
	zfree(&df->files);
	df->nr = 0;
}

static int remove_companions(const char *path)
{
	char *beside;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		if (asprintf(&beside, "%s%s", path, companions[i]) < 0)
			return -ENOMEM;
		if (unlink(beside) && errno != ENOENT)
			err = -errno;
		free(beside);
	}
	return err;
}

/**
 * dump_files__remove - remove a dump and the files beside it
 * @path: the dump
 *
 * The dump is removed last, so that everything can still be found if this is
 * interrupted. A list of files may get its name in the meantime: the process that renames it
 * then checks that the dump still exists, and removes the list otherwise.
 * symbol_store__clean() removes the files that were in the list, which may be needed until
 * they are in the list of another dump.
 *
 * Return: 0 or a negative errno.
 */
int dump_files__remove(const char *path)
{
	int err = remove_companions(path);

	if (!err && unlink(path) && errno != ENOENT)
		err = -errno;
	return err ?: remove_companions(path);
}

/**
 * dump_files__remove_oldest - make room on a disk that is full
 * @out: how the names of the dumps begin
 *
 * Return: whether a dump was removed.
 */
bool dump_files__remove_oldest(const char *out)
{
	bool removed = false;
	struct dump_files df;

	if (dump_files__list(out, &df))
		return false;
	for (size_t i = 0; i < df.nr && !removed; i++) {
		removed = df.files[i].bytes && !dump_files__remove(df.files[i].path);
		if (removed)
			pr_err("The disk is full: removed the old dump %s to make room for a new one. --max-disk limits what dumps use.\n",
			       df.files[i].path);
	}
	dump_files__free(&df);
	if (removed)
		symbol_store__clean(out);
	return removed;
}

/*
 * When a dump was written, in seconds since the epoch. @path is that of a dump. What is no
 * time, such as the 40th of a month, never comes.
 */
static s64 time_of(const char *path)
{
	const char *str = strrchr(path, 'Z') - strlen("20261121T093650.275");
	struct tm tm = {};

	return strptime(str, "%Y%m%dT%H%M%S", &tm) ? timegm(&tm) : INT64_MAX;
}

/**
 * dump_files__expire - remove dumps that are too old
 * @out: how their names begin
 * @max_age: maximum age in ns, 0: no limit
 *
 * This includes the newest one. The age is that of the time in the name. If the wall clock
 * was set back, dumps from the future are kept until they are old.
 */
void dump_files__expire(const char *out, u64 max_age)
{
	s64 seconds = max_age / NSEC_PER_SEC;
	bool removed = false;
	struct dump_files df;
	u64 now = 0;
	int err;

	if (!max_age)
		return;
	clockid__read(CLOCK_REALTIME, &now);
	err = dump_files__list(out, &df);
	if (err) {
		pr_err("Cannot list the dumps of %s: %s\n", out, strerror(-err));
		return;
	}
	for (size_t i = 0; i < df.nr; i++) {
		s64 age = (s64)(now / NSEC_PER_SEC) - time_of(df.files[i].path);

		if (age <= seconds)
			continue;
		err = dump_files__remove(df.files[i].path);
		removed |= !err;
		if (err)
			pr_err("Cannot remove %s, which is older than --max-dump-age: %s\n",
			       df.files[i].path, strerror(-err));
	}
	dump_files__free(&df);
	if (removed)
		symbol_store__clean(out);
}

/**
 * dump_files__bound - remove dumps that exceed the limits
 * @out: how their names begin
 * @newest: the dump that was just written, which is never removed
 * @max_files: maximum number of dumps, 0: no limit
 * @max_bytes: maximum size of all dumps in bytes, 0: no limit
 *
 * The oldest dumps are removed first. A file of the store of symbols counts once, for as long
 * as one of the dumps needs it. If a dump cannot be removed, a message is printed.
 */
void dump_files__bound(const char *out, const char *newest, u64 max_files, u64 max_bytes)
{
	struct dump_files df;
	u64 bytes = 0, shared = 0, nr;
	bool removed = false;
	int err;

	if (!max_files && !max_bytes)
		return;
	err = dump_files__list(out, &df);
	if (err) {
		pr_err("Cannot list the dumps of %s: %s\n", out, strerror(-err));
		return;
	}

	nr = df.nr;
	for (size_t i = 0; i < df.nr; i++)
		bytes += df.files[i].bytes;
	for (size_t i = 0; i < df.nr; i++) {
		struct dump_file *f = &df.files[i];

		if (max_bytes)
			shared = symbol_store__bytes(&df, i);
		if (!(max_files && nr > max_files) &&
		    !(max_bytes && bytes + shared > max_bytes))
			break;
		if (!strcmp(f->path, newest))
			continue;
		err = dump_files__remove(f->path);
		if (err) {
			pr_err("Cannot remove the old dump %s: %s\n", f->path,
			       strerror(-err));
			continue;
		}
		removed = true;
		nr--;
		bytes -= f->bytes;
	}
	if (max_bytes && bytes + shared > max_bytes)
		pr_err("%s uses %llu KiB, which exceeds --max-disk.\n", newest,
		       (unsigned long long)(bytes + shared) >> 10);
	dump_files__free(&df);
	if (removed)
		symbol_store__clean(out);
}
