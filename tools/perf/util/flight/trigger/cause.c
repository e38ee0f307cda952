// SPDX-License-Identifier: GPL-2.0
/*
 * The cgroup that a hit is about
 */
#include "cause.h"
#include "../../cgroup.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The handle of a file of kernfs, which is its id. FILEID_KERNFS of the kernel */
#define KERNFS_HANDLE		0xfe

/**
 * flight_cause__cgroup_root - where cgroups are mounted
 * @path: space for the path
 * @size: of @path
 *
 * Return: the path, which can be a constant.
 */
const char *flight_cause__cgroup_root(char *path, size_t size)
{
	return cgroupfs_find_mountpoint(path, size, "perf_event") ? "/sys/fs/cgroup" : path;
}

#ifdef HAVE_FILE_HANDLE
/*
 * The kernel opens a cgroup by its id.
 * Return: 0, or -errno if it does not: CONFIG_FHANDLE, or CAP_DAC_READ_SEARCH, is missing.
 */
static int set_cgroup_of_id(struct flight_cause *cause, u64 id)
{
	struct {
		struct file_handle	handle;
		u64			id;
	} cgroup = {
		.handle = { .handle_bytes = sizeof(u64), .handle_type = KERNFS_HANDLE },
	};
	char root[PATH_MAX], link[32], path[PATH_MAX];
	const char *mount = flight_cause__cgroup_root(root, sizeof(root));
	int fd, mount_fd = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t len = strlen(mount);
	ssize_t n;

	if (mount_fd < 0)
		return -errno;
	memcpy(cgroup.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mount_fd, &cgroup.handle, O_RDONLY | O_CLOEXEC);
	close(mount_fd);
	if (fd < 0)
		return -errno;
	scnprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	close(fd);
	path[max_t(ssize_t, n, 0)] = '\0';
	if (!strncmp(path, mount, len))
		scnprintf(cause->cgroup, sizeof(cause->cgroup), "%s", path[len] ? path + len : "/");
	return 0;
}
#else
static int set_cgroup_of_id(struct flight_cause *cause __maybe_unused, u64 id __maybe_unused)
{
	return -EOPNOTSUPP;
}
#endif

/* What /proc says of the task, if it still is there */
static void set_cgroup_of_task(struct flight_cause *cause)
{
	char path[32], *text = NULL, *line;
	size_t len;

	scnprintf(path, sizeof(path), "%d/cgroup", cause->pid);
	if (procfs__read_str(path, &text, &len))
		return;
	line = strstr(text, "0::/");
	if (line) {
		line += strlen("0::");
		scnprintf(cause->cgroup, sizeof(cause->cgroup), "%.*s", (int)strcspn(line, "\n"),
			  line);
	}
	free(text);
}

/**
 * flight_cause__set_cgroup - set the cgroup of a cause
 * @cause: its task is set, if one is known
 * @id: id of the cgroup, of version 2; 0: not known
 *
 * The id is that of the moment of the hit. Without it, the cgroup is the one in which /proc
 * shows the task now. If neither can be read, no cgroup is set.
 *
 * Context: may sleep.
 */
void flight_cause__set_cgroup(struct flight_cause *cause, u64 id)
{
	if ((!id || set_cgroup_of_id(cause, id)) && cause->pid > 0)
		set_cgroup_of_task(cause);
}
