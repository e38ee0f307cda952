// SPDX-License-Identifier: GPL-2.0
/*
 * What the other CPUs do between the last act of a dying kernel and their stop: thaw a
 * session, and end one. The image must not change by that.
 *
 * usage: blackbox_late LABEL
 *
 * Makes three sessions in the region LABEL, on CPU 1: "frozen", which is frozen, "late" and
 * "witness". It prints "waiting", and waits for the last act, which pauses the buffer of "late".
 * Then it thaws "frozen", leaves 20 records, ends "late", and leaves 20 more: "late" has
 * lost the first ones, and "witness" all. It stores notes twice, which is refused.
 * tools/testing/vm/test-blackbox.sh looks for all that after the reset.
 */
#define _GNU_SOURCE

#include <sched.h>
#include <time.h>

#include "../kselftest.h"
#include <linux/perf_blackbox.h>

#include "persistent_session.h"

#define LATE_CPU	1
#define LATE_SIZE	(16UL << 10)
#define LATE_RECORDS	20

/* Returns the event of a new session in the region. */
static int make(const char *name, const char *label)
{
	struct perf_persistent_arg arg = { .size = sizeof(arg), .data_size = LATE_SIZE };
	struct perf_event_attr attr = comm_attr();
	int fd;

	/* As perf record -P */
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	fd = event_open(&attr, -1, LATE_CPU, -1, 0);
	snprintf(arg.name, sizeof(arg.name), "%s", name);
	snprintf(arg.label, sizeof(arg.label), "%s", label);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg))
		ksft_exit_fail_msg("session %s in %s: %s\n", name, label, strerror(errno));
	return fd;
}

static int open_listed(const char *name)
{
	int fd = open_session(listed_id(name));

	if (fd < 0)
		ksft_exit_fail_msg("session %s: %s\n", name, strerror(errno));
	return fd;
}

static int note(int fd, const char *text)
{
	struct perf_persistent_notes notes = {
		.size		= sizeof(notes),
		.data		= (uintptr_t)text,
		.data_size	= strlen(text),
	};

	return ioctl(fd, PERF_EVENT_IOC_SESSION_NOTES, &notes);
}

static void leave_records(void)
{
	int i;

	for (i = 0; i < LATE_RECORDS; i++)
		leave_record("too-late");
}

static uint64_t head_of(struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 1 };
	struct perf_event_mmap_page *page;
	int event, late, frozen;
	uint64_t head;

	if (argc != 2)
		ksft_exit_fail_msg("usage: blackbox_late LABEL\n");

	pin_to_cpu(LATE_CPU);
	event = make("late", argv[1]);
	make("frozen", argv[1]);
	make("witness", argv[1]);
	late = open_listed("late");
	frozen = open_listed("frozen");
	page = map(event, LATE_SIZE, PROT_READ);
	if (page == MAP_FAILED || session_freeze(frozen) || note(frozen, "before") ||
	    sched_setscheduler(0, SCHED_FIFO, &param))
		ksft_exit_fail_msg("%s\n", strerror(errno));

	printf("waiting\n");
	fflush(stdout);
	do {
		head = head_of(page);
		leave_record("late");
	} while (head_of(page) != head);

	session_thaw(frozen);
	leave_records();
	/* The last users of its event: the session, the file and the mapping. */
	session_end(late);
	munmap(page, LATE_SIZE + PAGE);
	close(event);
	note(frozen, "after");
	note(frozen, "after that");
	leave_records();
	for (;;)
		;
}
