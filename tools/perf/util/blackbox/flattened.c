// SPDX-License-Identifier: GPL-2.0
/*
 * Flattened dumps
 *
 * makedumpfile -F writes a dump to a pipe, which cannot seek. Behind a header of one page, the
 * parts of the dump follow in the order in which they were written: each has its offset and its
 * size, of 64 bits in big endian, and its bytes. Both are -1 at the end.
 *
 * The parts are put in order in a file without a name in TMPDIR, or in /var/tmp. Nothing in the
 * dump is trusted: an offset that would make a file of many times its size is refused.
 */
#include "flattened.h"

#include <linux/kernel.h>
#include <asm/byteorder.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIGNATURE	"makedumpfile"
#define HEADER_SIZE	4096
#define END		(~0ULL)

/* Dumps have no holes to speak of. Each page of one that is forged would have to be searched. */
#define MAX_HOLES	16

struct part_header {
	__be64	offset;
	__be64	size;
};

/**
 * blackbox_flattened__is_one - is it a flattened dump?
 * @bytes: the file
 * @size: bytes of it
 */
bool blackbox_flattened__is_one(const void *bytes, u64 size)
{
	return size >= HEADER_SIZE && !memcmp(bytes, SIGNATURE, sizeof(SIGNATURE));
}

/* @limit: bytes that the dump may have */
static int write_part(int fd, const void *bytes, u64 size, u64 offset, u64 limit)
{
	if (offset > limit || size > limit - offset)
		return -EBADMSG;
	while (size) {
		ssize_t n = pwrite(fd, bytes, size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		bytes += n;
		offset += n;
		size -= n;
	}
	return 0;
}

static int write_parts(int fd, const void *bytes, u64 size)
{
	const u64 limit = min(size, (u64)INT64_MAX / MAX_HOLES) * MAX_HOLES;
	u64 pos = HEADER_SIZE;
	int err = 0;

	while (!err) {
		struct part_header header;
		u64 offset, len;

		if (size - pos < sizeof(header))
			return -EBADMSG;
		memcpy(&header, bytes + pos, sizeof(header));
		pos += sizeof(header);
		offset = be64_to_cpu(header.offset);
		len = be64_to_cpu(header.size);
		if (offset == END && len == END)
			break;
		if (len > size - pos)
			return -EBADMSG;
		err = write_part(fd, bytes + pos, len, offset, limit);
		pos += len;
	}
	return err;
}

/**
 * blackbox_flattened__open - put a flattened dump in order
 * @bytes: the file
 * @size: bytes of it
 *
 * Return: a file with the dump, without a name, or -EBADMSG if the dump is damaged or not
 * complete, or another negative errno.
 */
int blackbox_flattened__open(const void *bytes, u64 size)
{
	int fd, err;

	fd = open(getenv("TMPDIR") ?: "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = write_parts(fd, bytes, size);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}
