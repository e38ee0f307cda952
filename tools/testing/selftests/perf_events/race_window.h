/* SPDX-License-Identifier: GPL-2.0 */
/*
 * test_modules/persistent_window.ko: who comes to a function waits there for
 * another one. Its path is in the environment, PERSISTENT_WINDOW.
 */
#ifndef SELFTESTS_PERF_EVENTS_RACE_WINDOW_H
#define SELFTESTS_PERF_EVENTS_RACE_WINDOW_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "sys_util.h"

#define WINDOW		"persistent_window"
#define WINDOW_PARAM	"/sys/module/" WINDOW "/parameters/"

/* Waiting for up to three seconds: a CPU takes long to come up. */
static inline int load_window(const char *path)
{
	return load_module(path, "wait_us=3000000");
}

static inline int unload_window(void)
{
	return unload_module(WINDOW);
}

static inline int set_window(const char *param, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), WINDOW_PARAM "%s", param);
	return write_text(path, value);
}

/* Bits of what "waiting" tells */
#define WINDOW_LEFT	1
#define WINDOW_RIGHT	2

/* Does that side wait for the other just now? */
static inline bool window_holds(int side)
{
	char c = '0';
	int fd = open(WINDOW_PARAM "waiting", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (read(fd, &c, 1) != 1)
		c = '0';
	close(fd);
	return (c - '0') & side;
}

#endif /* SELFTESTS_PERF_EVENTS_RACE_WINDOW_H */
