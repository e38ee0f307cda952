// SPDX-License-Identifier: GPL-2.0
/*
 * A session in a black box, while the kernel lives: its notes, its memory, and who may do
 * what. The kernel was started with
 *
 *	reserve_mem=SIZE:ALIGN:LABEL perf_persistent=box:EVENTS@LABEL
 *
 * The notes that the last test leaves are looked for after a reset by
 * tools/testing/vm/test-blackbox.sh.
 */
#define _GNU_SOURCE

#include <linux/perf_blackbox.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"

#define SESSION		"box"

/* More buffers than a region of this test has room for */
#define MANY		64

static int write_notes(int fd, unsigned int flags, const void *data, size_t size,
		       struct perf_persistent_notes *notes)
{
	struct perf_persistent_notes own;

	notes = notes ?: &own;
	*notes = (struct perf_persistent_notes) {
		.size		= sizeof(*notes),
		.flags		= flags,
		.data		= (uintptr_t)data,
		.data_size	= size,
	};
	return ioctl(fd, PERF_EVENT_IOC_SESSION_NOTES, notes);
}

FIXTURE(box)
{
	int64_t	id;
	int	fd;
};

FIXTURE_SETUP(box)
{
	if (geteuid())
		SKIP(return, "must be root");
	self->id = listed_id(SESSION);
	if (self->id < 0)
		SKIP(return, "no session " SESSION " in a black box");

	pin_to_cpu(0);
	self->fd = open_session(self->id);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(box)
{
	close(self->fd);
}

/* There is nothing to add to at first. */
TEST_F(box, addition_needs_base)
{
	struct perf_persistent_notes notes;

	EXPECT_EQ(-1, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, "x", 1, NULL));
	EXPECT_EQ(ENODATA, errno);
	ASSERT_EQ(0, write_notes(self->fd, 0, "", 0, &notes));
	EXPECT_LT(0, notes.slot_size);
	EXPECT_LT(0, notes.room);
	EXPECT_GT(notes.slot_size, notes.room);
}

static int notes_refused(int64_t id, int fd)
{
	return refused(EPERM, write_notes(fd, 0, "x", 1, NULL));
}

/* The file alone permits nothing. */
TEST_F(box, owner_alone)
{
	EXPECT_EQ(0, as_nobody(notes_refused, self->id, self->fd));
}

TEST_F(box, arguments)
{
	struct perf_persistent_notes notes;

	EXPECT_EQ(-1, write_notes(self->fd, 2, "x", 1, NULL));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write_notes(self->fd, 0, NULL, 1, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_SESSION_NOTES, NULL));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, ioctl(self->fd, _IO('$', 63)));
	EXPECT_EQ(ENOTTY, errno);

	notes = (struct perf_persistent_notes) { .size = sizeof(notes) - 1 };
	EXPECT_EQ(-1, ioctl(self->fd, PERF_EVENT_IOC_SESSION_NOTES, &notes));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write_notes(self->fd, 0, "x", UINT64_MAX, &notes));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_LT(0, notes.slot_size);
}

/* What the ioctl says of the room is so to the byte. */
TEST_F(box, notes_fill_a_slot)
{
	struct perf_persistent_notes notes;
	char *data;

	ASSERT_EQ(0, write_notes(self->fd, 0, "", 0, &notes));
	data = calloc(1, notes.slot_size + 1);
	ASSERT_NE(NULL, data);

	EXPECT_EQ(-1, write_notes(self->fd, 0, data, notes.slot_size + 1, NULL));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, write_notes(self->fd, 0, data, notes.slot_size, &notes));
	EXPECT_EQ(0, notes.room);
	EXPECT_EQ(-1, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, "", 0, NULL));
	EXPECT_EQ(ENOSPC, errno);

	EXPECT_EQ(0, write_notes(self->fd, 0, data, 1, &notes));
	EXPECT_EQ(-1, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, data, notes.room + 1,
				  NULL));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, data, notes.room, &notes));
	EXPECT_EQ(0, notes.room);
	free(data);
}

/* A session in ordinary memory has no notes. */
TEST_F(box, ordinary_session)
{
	int fd = open_comm(0), session;
	int64_t id;

	id = unclaim(fd, 0, 0, "ordinary");
	ASSERT_LT(0, id);
	session = open_session(id);
	ASSERT_LE(0, session);
	EXPECT_EQ(-1, write_notes(session, 0, "x", 1, NULL));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(0, session_end(session));
	close(session);
	close(fd);
}

/* Joins the session with events that get a buffer of the region, until there is none. */
static int join_many(int64_t id, int *fds)
{
	int nr;

	for (nr = 0; nr < MANY; nr++) {
		fds[nr] = open_comm(0);
		if (fds[nr] < 0)
			return -1;
		if (unclaim(fds[nr], 0, id, "") < 0) {
			close(fds[nr]);
			return errno == ENOSPC ? nr : -1;
		}
	}
	return -1;
}

static void claim_many(int *fds, int nr)
{
	while (nr--) {
		claim(fds[nr]);
		close(fds[nr]);
	}
}

/* The memory of buffers is used again, even after they were mapped; a region has an end. */
TEST_F(box, memory_returns)
{
	char *base, name[16];
	int fds[MANY], first, nr, i, tries;

	first = join_many(self->id, fds);
	ASSERT_LT(0, first);
	for (i = 0; i < first; i++) {
		base = map(fds[i], DEFAULT_SIZE, PROT_READ);
		ASSERT_NE(MAP_FAILED, base);
		snprintf(name, sizeof(name), "box%d", i);
		leave_record(name);
		EXPECT_TRUE(recorded(base, name));
		/* In memory that was used before, the buffer starts empty. */
		EXPECT_FALSE(recorded(base, "box-before"));
		munmap(base, DEFAULT_SIZE + PAGE);
	}
	leave_record("box-before");
	claim_many(fds, first);

	/* Buffers are freed a grace period later. */
	for (tries = 0; tries < 1000; tries++) {
		nr = join_many(self->id, fds);
		ASSERT_LE(0, nr);
		if (nr == first) {
			base = map(fds[0], DEFAULT_SIZE, PROT_READ);
			ASSERT_NE(MAP_FAILED, base);
			EXPECT_FALSE(recorded(base, "box-before"));
			munmap(base, DEFAULT_SIZE + PAGE);
		}
		claim_many(fds, nr);
		if (nr == first)
			break;
		usleep(10000);
	}
	EXPECT_EQ(first, nr);
}

/* For after the reset: this is the base, with two additions, and none of the one before. */
TEST_F(box, notes_to_find)
{
	EXPECT_EQ(0, write_notes(self->fd, 0, "older base", 10, NULL));
	EXPECT_EQ(0, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, "older one", 9, NULL));
	EXPECT_EQ(0, write_notes(self->fd, 0, "newer base", 10, NULL));
	EXPECT_EQ(0, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, "newer one", 9, NULL));
	EXPECT_EQ(0, write_notes(self->fd, PERF_PERSISTENT_NOTES_ADD, "newer two", 9, NULL));
}

TEST_HARNESS_MAIN
