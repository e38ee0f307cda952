// SPDX-License-Identifier: GPL-2.0
/*
 * Files with black box images
 *
 * A source is a file of the kernel in .../persistent/last/, or a file that was named: the bytes
 * of a region or an image, a raw dump of physical memory, a core file, or what makedumpfile makes
 * of one. It is mapped, as it may be larger than the memory. Files of sysfs cannot be mapped, and
 * are read. A flattened dump is replaced by what is in it.
 */
#include "source.h"
#include "flattened.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void show_progress(u64 done, u64 size)
{
	static time_t began, shown;
	time_t now = time(NULL);

	if (!began) {
		began = now;
		shown = now;
	}
	if (!isatty(STDERR_FILENO) || now - began < 1 || (now == shown && done < size))
		return;
	shown = now;
	fprintf(stderr, "\r[ perf data recover: searched %" PRIu64 " of %" PRIu64 " MiB ]%s",
		done >> 20, size >> 20, done == size ? "\n" : "");
}

/* Files of sysfs cannot be mapped. */
static int read_bytes(struct blackbox_source *source, int fd)
{
	u64 room = source->size;

	source->size = 0;
	source->bytes = malloc(room ?: 1);
	if (!source->bytes)
		return -ENOMEM;
	while (source->size < room) {
		ssize_t n = read(fd, source->bytes + source->size, room - source->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		source->size += n;
	}
	return 0;
}

static int map_bytes(struct blackbox_source *source, int fd)
{
	source->bytes = mmap(NULL, source->size ?: 1, PROT_READ, MAP_PRIVATE, fd, 0);
	source->is_mapping = source->bytes != MAP_FAILED;
	if (!source->is_mapping) {
		source->bytes = NULL;
		return -errno;
	}
	source->fd = fd;
	return 0;
}

static void put_bytes(struct blackbox_source *source)
{
	if (source->is_mapping)
		munmap(source->bytes, source->size ?: 1);
	else
		free(source->bytes);
	if (source->fd >= 0)
		close(source->fd);
	source->bytes = NULL;
	source->is_mapping = false;
	source->fd = -1;
}

/* A flattened dump is replaced by what is in it. */
static int rearrange(struct blackbox_source *source)
{
	int fd = blackbox_flattened__open(source->bytes, source->size);
	struct stat st;
	int err;

	if (fd < 0)
		return fd;
	put_bytes(source);
	err = fstat(fd, &st) ? -errno : 0;
	if (!err) {
		source->size = st.st_size;
		err = map_bytes(source, fd);
	}
	if (err)
		close(fd);
	return err;
}

static int get_bytes(struct blackbox_source *source)
{
	int fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	int err;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) ? -EINVAL : 0;
	if (!err) {
		source->size = st.st_size;
		if (!map_bytes(source, fd))
			return 0;
		err = read_bytes(source, fd);
	}
	close(fd);
	return err;
}

static void print_read_error(const struct blackbox_source *source, int err)
{
	switch (err) {
	case -ENOENT:
		pr_err("There is no %s: name a file with an image, or use --list to see what the last boot left.\n",
		       source->path);
		break;
	case -EPERM:
	case -EACCES:
		pr_err("%s cannot be read: it needs CAP_PERFMON and CAP_SYS_ADMIN, so run perf as root.\n",
		       source->path);
		break;
	case -EINVAL:
		pr_err("%s is no file: copy what it holds to a file first.\n", source->path);
		break;
	default:
		pr_err("%s cannot be read: %s.\n", source->path, strerror(-err));
		break;
	}
}

static void print_flattened_error(const struct blackbox_source *source, int err)
{
	if (err == -EBADMSG)
		pr_err("%s is a flattened dump that is damaged, or ends too early: if the memory was saved in another way as well, try that.\n",
		       source->path);
	else
		pr_err("%s is a flattened dump, and cannot be put in order in TMPDIR: %s. Use 'makedumpfile -R' where there is room.\n",
		       source->path, strerror(-err));
}

/**
 * blackbox_source__open - look for the images in a file
 * @source: returns them; to be closed in any case
 * @path: name of the file; taken
 * @is_last: the kernel offers it
 *
 * Return: 0, or a negative errno after a message.
 */
int blackbox_source__open(struct blackbox_source *source, char *path, bool is_last)
{
	int err;

	*source = (struct blackbox_source) {
		.path = path, .name = path, .is_last = is_last, .fd = -1,
	};
	if (is_last)
		source->name = strrchr(path, '/') + 1;
	err = get_bytes(source);
	if (err) {
		print_read_error(source, err);
		return err;
	}
	if (blackbox_flattened__is_one(source->bytes, source->size))
		err = rearrange(source);
	if (err) {
		print_flattened_error(source, err);
		return err;
	}
	err = blackbox_find__open(&source->found, source->bytes, source->size, source->fd,
				  show_progress);
	if (err == -EOPNOTSUPP)
		pr_err("%s is a compressed dump, which this perf was built not to read: build it with libkdumpfile-dev installed, or save the memory with 'makedumpfile -E'.\n",
		       source->path);
	return err;
}

void blackbox_source__close(struct blackbox_source *source)
{
	blackbox_find__exit(&source->found);
	put_bytes(source);
	free(source->path);
}
