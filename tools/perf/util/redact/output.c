// SPDX-License-Identifier: GPL-2.0
/*
 * A recording and its manifest are written both or not at all
 *
 * OUTPUT and OUTPUT.json belong together: a manifest of another recording would tell wrong
 * things of this one. So both names are taken, even if there is no manifest to write.
 *
 * Both files are written under temporary names. At the end, what has the names is put
 * aside, the files get their names, and what was put aside is removed; if a step fails, all
 * of it is taken back. Without --force nothing has the names, and what gets one of them
 * meanwhile is not replaced.
 *
 * A signal that ends perf removes the temporary files. Signals are held back while files
 * get their names. SIGKILL leaves files .OUTPUT.PID.tmp.
 */
#include "output.h"
#include "../debug.h"
#include "../flight/dump/dump.h"
#include "../flight/dump/files.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE	0x100000

static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXFSZ, SIGXCPU };

/* The files that a signal removes. Changed only while signals are held back. */
static char leftovers[REDACT_FILES][PATH_MAX];

static void hold_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

static void release_signals(const sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

static void remove_leftovers(int sig)
{
	for (size_t i = 0; i < REDACT_FILES; i++) {
		if (*leftovers[i])
			unlink(leftovers[i]);
	}
	/* The handler was installed for one signal. */
	raise(sig);
}

/* Signals that are ignored stay ignored. */
static void handle_signals(void)
{
	struct sigaction new = { .sa_handler = remove_leftovers, .sa_flags = SA_RESETHAND };
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &new, NULL);
	}
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int check_name(const char *name, const char *input, bool force)
{
	struct stat st, in;

	if (lstat(name, &st))
		return errno == ENOENT ? 0 : -errno;
	/* A link may lead to the input. */
	if (!stat(input, &in) && (is_same(&st, &in) || (!stat(name, &st) && is_same(&st, &in)))) {
		pr_err("%s and %s are the same file: write to another one.\n", name, input);
		return -EEXIST;
	}
	if (!lstat(name, &st) && !S_ISREG(st.st_mode)) {
		pr_err("%s is not a regular file: write to another one.\n", name);
		return -EEXIST;
	}
	if (!force) {
		pr_err("%s exists: write to another file, or use --force to replace it.\n", name);
		return -EEXIST;
	}
	return 0;
}

static int check_names(const struct redact_output *out, const char *input, bool force)
{
	char *manifest;
	int err = 0;

	if (asprintf(&manifest, "%s.json", input) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < REDACT_FILES && !err; i++) {
		const char *name = out->files[i].path;

		err = check_name(name, input, force) ?: check_name(name, manifest, force);
		if (err && err != -EEXIST)
			pr_err("%s cannot be written: %s.\n", name, strerror(-err));
	}
	free(manifest);
	return err;
}

static int open_file(struct redact_file *file, char *leftover)
{
	sigset_t before;
	int fd;

	hold_signals(&before);
	fd = dump__create_temporary(file->path, &file->tmp);
	if (fd < 0)
		zfree(&file->tmp);
	else
		scnprintf(leftover, PATH_MAX, "%s", file->tmp);
	release_signals(&before);
	if (fd < 0) {
		pr_err("%s cannot be written: %s.\n", file->path, strerror(-fd));
		return fd;
	}
	file->f = fdopen(fd, "w+");
	if (!file->f) {
		close(fd);
		return -ENOMEM;
	}
	setvbuf(file->f, NULL, _IOFBF, BUFFER_SIZE);
	return 0;
}

/**
 * redact_output__open - create the files
 * @out: returns them; must be closed in any case
 * @path: name of the recording
 * @input: name of the recording that is read, which must not be written to
 * @has_manifest: there is a manifest as well
 * @force: replace files that exist
 *
 * Return: 0, or a negative errno after a message.
 */
int redact_output__open(struct redact_output *out, const char *path, const char *input,
			bool has_manifest, bool force)
{
	struct redact_file *files = out->files;
	int err;

	*out = (struct redact_output) {};
	files[0].path = strdup(path);
	if (!files[0].path || asprintf(&files[1].path, "%s.json", path) < 0) {
		files[1].path = NULL;
		return -ENOMEM;
	}
	if (strlen(path) > PATH_MAX - 32) {
		pr_err("The name of the output is too long: use a shorter one.\n");
		return -ENAMETOOLONG;
	}
	err = check_names(out, input, force);
	if (err)
		return err;
	handle_signals();
	err = open_file(&files[0], leftovers[0]);
	if (!err && has_manifest)
		err = open_file(&files[1], leftovers[1]);
	return err;
}

/* All of a file is on the disk before it gets its name. */
static int flush_file(struct redact_file *file)
{
	if (!file->f)
		return 0;
	if (fflush(file->f) || ferror(file->f) || fsync(fileno(file->f)))
		return -errno ?: -EIO;
	return 0;
}

/* @number: tells the names of both apart */
static int put_aside(struct redact_file *file, size_t number)
{
	struct stat st;

	if (lstat(file->path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (asprintf(&file->old, "%s.%zu", leftovers[0], number) < 0) {
		file->old = NULL;
		return -ENOMEM;
	}
	if (rename(file->path, file->old)) {
		int err = -errno;

		zfree(&file->old);
		return err;
	}
	return 0;
}

/* Nothing is replaced: what has the name was put aside. */
static int give_name(struct redact_file *file)
{
	int err;

	if (!file->f)
		return 0;
	if (!renameat2(AT_FDCWD, file->tmp, AT_FDCWD, file->path, RENAME_NOREPLACE))
		return 0;
	err = -errno;
	/* Some file systems do not have it. */
	if (err == -EINVAL && !link(file->tmp, file->path) && !unlink(file->tmp))
		err = 0;
	return err;
}

static void take_back(struct redact_output *out, size_t named)
{
	while (named--) {
		if (out->files[named].f)
			unlink(out->files[named].path);
	}
	for (size_t i = 0; i < REDACT_FILES; i++) {
		struct redact_file *file = &out->files[i];

		if (file->old && rename(file->old, file->path))
			pr_err("%s cannot be put back: rename %s.\n", file->path, file->old);
	}
}

static int give_names(struct redact_output *out)
{
	int err = 0;

	for (size_t i = 0; i < REDACT_FILES && !err; i++)
		err = put_aside(&out->files[i], i);
	if (err) {
		take_back(out, 0);
		return err;
	}
	for (size_t i = 0; i < REDACT_FILES; i++) {
		err = give_name(&out->files[i]);
		if (err) {
			take_back(out, i);
			return err;
		}
	}
	for (size_t i = 0; i < REDACT_FILES; i++) {
		if (out->files[i].old)
			unlink(out->files[i].old);
		*leftovers[i] = '\0';
	}
	return 0;
}

/**
 * redact_output__commit - the files are complete, and get their names
 * @out: the files
 *
 * Return: 0, or a negative errno after a message; then all is as it was before.
 */
int redact_output__commit(struct redact_output *out)
{
	sigset_t before;
	int err = 0;

	for (size_t i = 0; i < REDACT_FILES && !err; i++)
		err = flush_file(&out->files[i]);
	if (!err) {
		hold_signals(&before);
		err = give_names(out);
		release_signals(&before);
	}
	if (err)
		pr_err("%s cannot be written: %s.\n", out->files[0].path, strerror(-err));
	else
		dump__sync_directory(out->files[0].path);
	return err;
}

/**
 * redact_output__close - close the files, and remove what has not got its name
 * @out: the files
 */
void redact_output__close(struct redact_output *out)
{
	sigset_t before;

	hold_signals(&before);
	for (size_t i = 0; i < REDACT_FILES; i++) {
		struct redact_file *file = &out->files[i];

		if (*leftovers[i])
			unlink(leftovers[i]);
		*leftovers[i] = '\0';
		if (file->f)
			fclose(file->f);
		zfree(&file->path);
		zfree(&file->tmp);
		zfree(&file->old);
	}
	release_signals(&before);
}
