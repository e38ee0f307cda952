/* SPDX-License-Identifier: GPL-2.0 */
/* What tests ask of the kernel beside perf_event_open(): settings, and modules. */
#ifndef SELFTESTS_PERF_EVENTS_SYS_UTIL_H
#define SELFTESTS_PERF_EVENTS_SYS_UTIL_H

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* To a file of sysfs, procfs, or the like; returns 0, or -1 with errno. */
static inline int write_text(const char *path, const char *text)
{
	ssize_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, len) == len ? 0 : -1;
	close(fd);
	return ret;
}

/* @path may be NULL, as getenv() returns it: then it fails. */
static inline int load_module(const char *path, const char *args)
{
	int fd = open(path ?: "", O_RDONLY | O_CLOEXEC), ret;

	ret = syscall(__NR_finit_module, fd, args, 0);
	close(fd);
	return ret;
}

/* Does not wait: a module that is in use is not unloaded. */
static inline int unload_module(const char *name)
{
	return syscall(__NR_delete_module, name, O_NONBLOCK);
}

#endif /* SELFTESTS_PERF_EVENTS_SYS_UTIL_H */
