/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Faults of this thread, by /proc/thread-self/fail-nth: see
 * Documentation/fault-injection/fault-injection.rst.
 */
#ifndef SELFTESTS_PERF_EVENTS_FAIL_NTH_H
#define SELFTESTS_PERF_EVENTS_FAIL_NTH_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kselftest.h"
#include "sys_util.h"

#define DEBUGFS		"/sys/kernel/debug"
#define FAIL_FUNCTION	DEBUGFS "/fail_function"

/* It charges the memory of persistent sessions to a memory cgroup. */
#define CHARGE		"perf_persistent_charge"

/*
 * Faults of this thread, also of what may sleep. @nth is for arm() and disarm(). Return: NULL, or
 * what is missing.
 */
static inline const char *allow_faults(int *nth, const char *verbose)
{
	static const char *const told[] = {
		DEBUGFS "/failslab/verbose",
		DEBUGFS "/fail_page_alloc/verbose",
		DEBUGFS "/fail_usercopy/verbose",
		FAIL_FUNCTION "/verbose",
	};
	static const char *const settings[][2] = {
		{ DEBUGFS "/failslab/ignore-gfp-wait",		"N" },
		/* For make-it-fail: the task's slab allocations, all of them. */
		{ DEBUGFS "/failslab/task-filter",		"Y" },
		{ DEBUGFS "/failslab/probability",		"100" },
		{ DEBUGFS "/failslab/times",			"-1" },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait",	"N" },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ DEBUGFS "/fail_page_alloc/min-order",		"0" },
	};
	size_t i;

	*nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (*nth < 0)
		return "CONFIG_FAULT_INJECTION";
	for (i = 0; i < ARRAY_SIZE(told); i++)
		write_text(told[i], verbose);
	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (write_text(settings[i][0], settings[i][1]))
			return settings[i][0];
	}
	return NULL;
}

static inline void put_number(int fd, unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	/* Files of debugfs have no position, and do not look at one. */
	if (pwrite(fd, text, len, 0) != len && (errno != ESPIPE || write(fd, text, len) != len)) {
		fprintf(stderr, "# a fault is not armed\n");
		abort();
	}
}

/* The nth from now on fails. */
static inline void arm(int nth, unsigned int n)
{
	put_number(nth, n);
}

/* Did it fail? */
static inline bool disarm(int nth)
{
	char text[16] = "";
	bool failed;

	/* Reading is an access to user memory as well: then it has failed here. */
	failed = pread(nth, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	while (pwrite(nth, "0", 1, 0) != 1)
		;
	return failed;
}

/* For arm_all_after() and disarm_all(). */
struct fail_all {
	int	space;
	int	make_it_fail;
};

static inline struct fail_all open_fail_all(void)
{
	return (struct fail_all) {
		.space		= open(DEBUGFS "/failslab/space", O_RDWR | O_CLOEXEC),
		.make_it_fail	= open("/proc/thread-self/make-it-fail", O_RDWR | O_CLOEXEC),
	};
}

static inline void close_fail_all(const struct fail_all *all)
{
	close(all->space);
	close(all->make_it_fail);
}

/*
 * Of slab objects, all fail after so many bytes. That it is done cannot fail: what writes
 * to these files allocates nothing.
 */
static inline void arm_all_after(const struct fail_all *all, unsigned int bytes)
{
	put_number(all->space, bytes);
	put_number(all->make_it_fail, 1);
}

static inline void disarm_all(const struct fail_all *all)
{
	put_number(all->make_it_fail, 0);
}

/* Charges are among what arm() lets fail. Return: false without CONFIG_FAIL_FUNCTION. */
static inline bool allow_charge_faults(void)
{
	/* It may be there already. The file takes no sign: -ENOMEM. */
	return (!write_text(FAIL_FUNCTION "/inject", CHARGE) || errno == EBUSY) &&
	       !write_text(FAIL_FUNCTION "/" CHARGE "/retval", "0xfffffffffffffff4");
}

static inline void forbid_charge_faults(void)
{
	write_text(FAIL_FUNCTION "/probability", "0");
	write_text(FAIL_FUNCTION "/inject", "!" CHARGE);
}

/* Of this thread, one charge fails after so many, and nothing else does. */
static inline bool arm_charge_after(const struct fail_all *all, unsigned int nr)
{
	char text[16];

	/* The one that finds 1 there fails. */
	snprintf(text, sizeof(text), "%u", nr + 1);
	if (write_text(DEBUGFS "/failslab/probability", "0") ||
	    write_text(FAIL_FUNCTION "/task-filter", "Y") ||
	    write_text(FAIL_FUNCTION "/probability", "100") ||
	    write_text(FAIL_FUNCTION "/times", "1") ||
	    write_text(FAIL_FUNCTION "/space", text))
		return false;
	put_number(all->make_it_fail, 1);
	return true;
}

/* Has it failed? */
static inline bool disarm_charge(const struct fail_all *all)
{
	char text[16] = "";
	int fd;

	disarm_all(all);
	fd = open(FAIL_FUNCTION "/times", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return !strcmp(text, "0\n");
}

#endif /* SELFTESTS_PERF_EVENTS_FAIL_NTH_H */
