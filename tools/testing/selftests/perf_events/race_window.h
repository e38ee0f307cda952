/* SPDX-License-Identifier: GPL-2.0 */
/*
 * test_modules/persistent_window.ko: who comes to a function waits there for
 * another one. Its path is in the environment, PERSISTENT_WINDOW.
 */
#ifndef SELFTESTS_PERF_EVENTS_RACE_WINDOW_H
#define SELFTESTS_PERF_EVENTS_RACE_WINDOW_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#define WINDOW		"persistent_window"
#define WINDOW_PARAM	"/sys/module/" WINDOW "/parameters/"

/* Waiting for up to three seconds: a CPU takes long to come up. */
static inline int load_window(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret = syscall(__NR_finit_module, fd, "wait_us=3000000", 0);

	close(fd);
	return ret;
}

static inline int unload_window(void)
{
	return syscall(__NR_delete_module, WINDOW, O_NONBLOCK);
}

static inline int set_window(const char *param, const char *value)
{
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), WINDOW_PARAM "%s", param);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, value, strlen(value));
	close(fd);
	return ret < 0 ? -1 : 0;
}

#endif /* SELFTESTS_PERF_EVENTS_RACE_WINDOW_H */
