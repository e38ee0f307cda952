// SPDX-License-Identifier: GPL-2.0
/*
 * Write a protobuf message without having it in memory.
 *
 * The fields of the outermost message are written one by one: each is a tag, a
 * length, and what libprotobuf-c makes of a small message. A message that
 * contains such fields needs its length first; its fields are counted by a run
 * with 'counting', and written by a second one.
 *
 * The first error is kept, nothing is written after it, and pb_out__close()
 * returns it. A file that is not complete is removed. A file that is overwritten is replaced
 * when the new one is complete, and a new one has no name until then, so that a signal leaves
 * nothing. A profile is as confidential as its recording: only the owner can read a new file.
 */
#include "pb-out.h"
#include "debug.h"

#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef HAVE_ZLIB_SUPPORT
#include <zlib.h>
#endif

#define WIRE_LENGTH_DELIMITED	2

static bool wants_gzip(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && !strcmp(path + len - 3, ".gz");
}

/* A file beside the one that is to be replaced, with the same mode */
static int open_beside(struct pb_out *out, const char *path, mode_t mode)
{
	int fd;

	out->real = realpath(path, NULL);
	if (!out->real)
		return -1;
	if (asprintf(&out->temp, "%s.XXXXXX", out->real) < 0) {
		out->temp = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkstemp(out->temp);
	if (fd < 0)
		zfree(&out->temp);
	else if (fchmod(fd, mode & 0777))
		pr_debug("The mode of %s stays 0600.\n", out->temp);
	return fd;
}

/* Descriptors have their files there. */
#define DESCRIPTORS	"/proc/self/fd"

/* Return: a descriptor; negative: the file system has no such files. */
static int open_nameless(struct pb_out *out, const char *path)
{
	char *copy = strdup(path);
	int fd = -1;

	if (copy && !access(DESCRIPTORS, X_OK))
		fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	free(copy);
	if (fd < 0)
		return fd;
	/* That one is closed before the file gets its name. */
	out->nameless = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (out->nameless < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_new(struct pb_out *out, const char *path, bool overwrite)
{
	struct stat st;
	int fd = -1;

	if (lstat(path, &st) && errno == ENOENT)
		fd = open_nameless(out, path);
	if (fd < 0)
		fd = open(path, O_CREAT | O_WRONLY | (overwrite ? O_TRUNC : O_EXCL), 0600);
	return fd;
}

static int give_name(const struct pb_out *out)
{
	char file[sizeof(DESCRIPTORS) + 16];

	snprintf(file, sizeof(file), DESCRIPTORS "/%d", out->nameless);
	return linkat(AT_FDCWD, file, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW);
}

static void close_nameless(struct pb_out *out)
{
	if (out->nameless >= 0)
		close(out->nameless);
	out->nameless = -1;
}

static int open_file(struct pb_out *out, const char *path, bool overwrite)
{
	struct stat st;
	int err, fd;

	if (overwrite && !stat(path, &st) && S_ISREG(st.st_mode))
		fd = open_beside(out, path, st.st_mode);
	else
		fd = open_new(out, path, overwrite);
	if (fd < 0) {
		err = -errno;
		zfree(&out->real);
		if (err == -EEXIST)
			pr_err("%s exists. Use --force to overwrite it.\n", path);
		else
			pr_err("%s cannot be written: %s.\n", path, strerror(-err));
		return err;
	}
	out->path = path;
#ifdef HAVE_ZLIB_SUPPORT
	if (wants_gzip(path))
		out->gz = gzdopen(fd, "wb6");
	else
#endif
		out->file = fdopen(fd, "w");
	if (!out->gz && !out->file) {
		close(fd);
		if (out->nameless < 0)
			unlink(out->temp ?: path);
		close_nameless(out);
		zfree(&out->temp);
		zfree(&out->real);
		return -ENOMEM;
	}
	return 0;
}

/**
 * pb_out__open - begin a file
 * @out: what to set up
 * @path: its name; compressed if it ends in .gz; "-" is the standard output
 * @overwrite: the file may exist
 *
 * Return: 0, or a negative errno after a message.
 */
int pb_out__open(struct pb_out *out, const char *path, bool overwrite)
{
	memset(out, 0, sizeof(*out));
	out->nameless = -1;
#ifndef HAVE_ZLIB_SUPPORT
	if (wants_gzip(path)) {
		pr_err("%s cannot be compressed: perf was built without zlib (package zlib1g-dev). Choose a name without .gz.\n",
		       path);
		return -ENOTSUP;
	}
#endif
	if (strcmp(path, "-"))
		return open_file(out, path, overwrite);
	out->file = stdout;
	return 0;
}

/* Remove a regular file, but not /dev/null and the like. */
static void remove_file(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

/**
 * pb_out__close - end a file
 * @out: the file
 * @err: if not 0, the conversion failed, and the file is removed, or left as it was
 *
 * Return: @err, or a negative errno after a message.
 */
int pb_out__close(struct pb_out *out, int err)
{
#ifdef HAVE_ZLIB_SUPPORT
	if (out->gz && gzclose(out->gz) != Z_OK && !out->err)
		out->err = errno ?: EIO;
#endif
	if (out->file && (out->path ? fclose(out->file) : fflush(out->file)) && !out->err)
		out->err = errno ?: EIO;
	if (out->temp && !err && !out->err && rename(out->temp, out->real))
		out->err = errno;
	if (out->nameless >= 0 && !err && !out->err && give_name(out))
		out->err = errno;
	if (out->err) {
		pr_err("%s cannot be written: %s.\n", out->path ?: "the standard output",
		       strerror(out->err));
		err = -out->err;
	}
	if (err && out->temp)
		unlink(out->temp);
	else if (err && out->path && out->nameless < 0)
		remove_file(out->path);
	close_nameless(out);
	free(out->temp);
	free(out->real);
	free(out->buf);
	return err;
}

static void put(struct pb_out *out, const void *data, size_t len)
{
	out->bytes += len;
	if (out->counting || out->err || !len)
		return;
	errno = 0;
#ifdef HAVE_ZLIB_SUPPORT
	if (out->gz) {
		if (gzwrite(out->gz, data, len) != (int)len)
			out->err = errno ?: EIO;
		return;
	}
#endif
	if (fwrite(data, 1, len, out->file) != len)
		out->err = errno ?: EIO;
}

static size_t varint(u8 *p, u64 value)
{
	size_t n = 0;

	while (value >= 0x80) {
		p[n++] = value | 0x80;
		value >>= 7;
	}
	p[n++] = value;
	return n;
}

/**
 * pb_out__header - begin a field whose content follows
 * @out: the file
 * @field: its number
 * @len: bytes of its content
 */
void pb_out__header(struct pb_out *out, u32 field, u64 len)
{
	u8 buf[20];
	size_t n = varint(buf, (u64)field << 3 | WIRE_LENGTH_DELIMITED);

	n += varint(buf + n, len);
	put(out, buf, n);
}

void pb_out__bytes(struct pb_out *out, u32 field, const void *data, size_t len)
{
	pb_out__header(out, field, len);
	put(out, data, len);
}

void pb_out__message(struct pb_out *out, u32 field, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	u8 *buf;

	pb_out__header(out, field, len);
	if (out->counting || out->err) {
		out->bytes += len;
		return;
	}
	if (len > out->size) {
		buf = realloc(out->buf, len * 2);
		if (!buf) {
			out->err = ENOMEM;
			return;
		}
		out->buf = buf;
		out->size = len * 2;
	}
	protobuf_c_message_pack(message, out->buf);
	put(out, out->buf, len);
}

/**
 * pb_out__raw - write fields that are in their final form
 * @out: the file
 * @data: the fields
 * @len: bytes of them
 */
void pb_out__raw(struct pb_out *out, const void *data, size_t len)
{
	put(out, data, len);
}
