// SPDX-License-Identifier: GPL-2.0
/*
 * What a machine may be doing in a black box when it dies: sessions are made and claimed,
 * frozen and thawed, notes are stored, and images of earlier boots are read, each by a process
 * of its own, as fast as it can.
 *
 * usage: blackbox_churn LABEL SESSION
 *
 * Notes go to SESSION. It prints "churning" and goes on until it is killed.
 * tools/testing/vm/torture-deaths.sh kills the machine meanwhile.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <sched.h>

#include "../kselftest.h"
#include <linux/perf_blackbox.h>

#include "persistent_session.h"

#define CHURN_SIZE	(16UL << 10)
#define LAST		DEVICE "/last"

static const char *label, *noted;

static int64_t make(int fd, const char *name)
{
	struct perf_persistent_arg arg = { .size = sizeof(arg), .data_size = CHURN_SIZE };

	snprintf(arg.name, sizeof(arg.name), "%s", name);
	snprintf(arg.label, sizeof(arg.label), "%s", label);
	return ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg) ? -1 : (int64_t)arg.id;
}

/* Buffers are freed a grace period after CLAIM, so there may be no room for a while. */
static void make_and_claim(void)
{
	int fd = open_comm(0);

	if (make(fd, "churn") >= 0)
		claim(fd);
	else if (errno != ENOSPC)
		ksft_exit_fail_msg("churn: %s\n", strerror(errno));
	close(fd);
}

static void freeze_and_thaw(void)
{
	static int session = -1;

	if (session < 0) {
		session = open_session(make(open_comm(0), "cold"));
		if (session < 0)
			ksft_exit_fail_msg("cold: %s\n", strerror(errno));
	}
	session_freeze(session);
	session_thaw(session);
}

/* Most of them are additions. When there is no room for one, the next is a base. */
static void store_notes(void)
{
	static unsigned int flags;
	static int session = -1;
	static char data[4096];
	struct perf_persistent_notes notes = {
		.size		= sizeof(notes),
		.flags		= flags,
		.data		= (uintptr_t)data,
		.data_size	= rand() % sizeof(data),
	};

	if (session < 0)
		session = open_session(listed_id(noted));
	memset(data, 'a' + rand() % 26, sizeof(data));
	if (!ioctl(session, PERF_EVENT_IOC_SESSION_NOTES, &notes))
		flags = PERF_PERSISTENT_NOTES_ADD;
	else if (errno == ENOSPC && flags)
		flags = 0;
	else
		ksft_exit_fail_msg("notes of %s: %s\n", noted, strerror(errno));
}

static void read_last(void)
{
	static char bytes[65536];
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir = opendir(LAST);
	int fd;

	if (!dir) {
		/* There is none at the first boot. */
		sleep(1);
		return;
	}
	while ((d = readdir(dir))) {
		snprintf(path, sizeof(path), LAST "/%s", d->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		while (read(fd, bytes, sizeof(bytes)) > 0)
			;
		close(fd);
	}
	closedir(dir);
}

static void start(void (*churn)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		ksft_exit_fail_msg("fork: %s\n", strerror(errno));
	while (!pid)
		churn();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		ksft_exit_fail_msg("usage: blackbox_churn LABEL SESSION\n");

	label = argv[1];
	noted = argv[2];
	start(make_and_claim);
	start(freeze_and_thaw);
	start(store_notes);
	start(read_last);
	printf("churning\n");
	fflush(stdout);

	/* None of them ends, unless something is wrong. */
	wait(NULL);
	ksft_exit_fail_msg("one of them has ended\n");
}
