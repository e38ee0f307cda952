// SPDX-License-Identifier: GPL-2.0
/*
 * A session in a black box, while the kernel lives: its notes, its memory, and who may do
 * what. The kernel was started with
 *
 *	reserve_mem=SIZE:ALIGN:box perf_persistent=box:EVENTS@box
 *	reserve_mem=SIZE:ALIGN:spare perf_persistent=@spare
 *	reserve_mem=SIZE:ALIGN:hidden
 *
 * The notes that the last test leaves are looked for after a reset by
 * tools/testing/vm/test-blackbox.sh.
 */
#define _GNU_SOURCE

#include <linux/perf_blackbox.h>

#include "../kselftest_harness.h"
#include "persistent_session.h"
#include "persistent_spaces.h"

#define SESSION		"box"
#define REGION		"box"
#define SPARE		"spare"
#define HIDDEN		"hidden"

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

/* The notes of a session in the kernel's memory have the size that they need, up to a limit. */
TEST_F(box, ordinary_session)
{
	int fd = open_comm(0), session;
	struct perf_persistent_notes notes;
	size_t first;
	int64_t id;
	char *data;

	id = unclaim(fd, 0, 0, "ordinary");
	ASSERT_LT(0, id);
	session = open_session(id);
	ASSERT_LE(0, session);
	EXPECT_EQ(-1, write_notes(session, PERF_PERSISTENT_NOTES_ADD, "x", 1, NULL));
	EXPECT_EQ(ENODATA, errno);
	ASSERT_EQ(0, write_notes(session, 0, "x", 1, &notes));
	first = notes.room;
	EXPECT_LT(0, first);
	EXPECT_GT(notes.slot_size, first);
	data = calloc(1, notes.slot_size + 1);
	ASSERT_NE(NULL, data);

	EXPECT_EQ(-1, write_notes(session, PERF_PERSISTENT_NOTES_ADD, data, first + 1, NULL));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, write_notes(session, PERF_PERSISTENT_NOTES_ADD, data, first, &notes));
	EXPECT_EQ(0, notes.room);
	EXPECT_EQ(-1, write_notes(session, 0, data, notes.slot_size + 1, NULL));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(0, write_notes(session, 0, data, notes.slot_size, &notes));
	EXPECT_EQ(0, notes.room);
	/* Both slots were large, and become small again. */
	EXPECT_EQ(0, write_notes(session, 0, data, notes.slot_size, &notes));
	EXPECT_EQ(0, write_notes(session, 0, "x", 1, &notes));
	EXPECT_EQ(first, notes.room);

	EXPECT_EQ(0, session_end(session));
	EXPECT_EQ(-1, write_notes(session, 0, "x", 1, NULL));
	EXPECT_EQ(ENOENT, errno);
	free(data);
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

static int64_t place(int fd, uint64_t id, const char *name, const char *label, uint64_t size)
{
	struct perf_persistent_arg arg = {
		.size		= sizeof(arg),
		.id		= id,
		.data_size	= size,
	};

	snprintf(arg.name, sizeof(arg.name), "%s", name);
	/* May be too long */
	memcpy(arg.label, label, strnlen(label, sizeof(arg.label)));
	return ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg) ? -1 : (int64_t)arg.id;
}

/* A session of a user program: of the size it asks for, in the region, with notes. */
TEST_F(box, placed_by_unclaim)
{
	int fd = open_comm(0), other = open_comm(0), session;
	struct perf_persistent_info inf;
	int64_t id;
	char *base;

	id = place(fd, 0, "placed", SPARE, 3 * PAGE);
	ASSERT_LT(0, id) TH_LOG("%s", strerror(errno));
	EXPECT_STREQ(SPARE, sysfs("sessions/%s/region", "placed"));
	EXPECT_STREQ(REGION, sysfs("sessions/%s/region", SESSION));

	ASSERT_EQ(0, info(fd, &inf));
	EXPECT_EQ(4 * PAGE, inf.data_size);
	base = map(fd, inf.data_size, PROT_READ);
	ASSERT_NE(MAP_FAILED, base);
	leave_record("placed");
	EXPECT_TRUE(recorded(base, "placed"));

	session = open_session(id);
	ASSERT_LE(0, session);
	EXPECT_EQ(0, write_notes(session, 0, "x", 1, NULL));

	/* Those that join name the region or none. */
	EXPECT_EQ(-1, place(other, id, "", REGION, PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(id, place(other, id, "", SPARE, PAGE));
	ASSERT_EQ(0, info(other, &inf));
	EXPECT_EQ(PAGE, inf.data_size);

	EXPECT_EQ(0, session_end(session));
	munmap(base, 5 * PAGE);
	close(session);
	close(other);
	close(fd);
}

/* Nothing is left of what fails: the name is free afterwards, and the region has room. */
TEST_F(box, refused_place)
{
	struct {
		const char	*label;
		uint64_t	size;
		int		error;
	} bad[] = {
		{ "no_such_label",	PAGE,		ENODEV	},
		/* Reserved, but for something else */
		{ HIDDEN,		PAGE,		ENODEV	},
		{ "sixteen_letters_",	PAGE,		EINVAL	},
		{ SPARE,		(1ULL << 30) + 1, EINVAL },
		{ SPARE,		1ULL << 30,	ENOSPC	},
		{ SPARE,		1ULL << 20,	ENOSPC	},
	};
	int fd = open_comm(0), ordinary = open_comm(0), mapped = open_comm(0);
	int64_t id;

	for (size_t i = 0; i < 20 * ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-1, place(fd, 0, "bad", bad[i % ARRAY_SIZE(bad)].label,
				    bad[i % ARRAY_SIZE(bad)].size));
		EXPECT_EQ(bad[i % ARRAY_SIZE(bad)].error, errno);
	}

	id = place(ordinary, 0, "bad", "", PAGE);
	ASSERT_LT(0, id);
	EXPECT_STREQ("", sysfs("sessions/%s/region", "bad"));
	EXPECT_EQ(-1, place(fd, id, "", SPARE, PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(id, claim(ordinary));
	close(ordinary);

	/* A buffer elsewhere would be lost without a word. */
	ASSERT_NE(MAP_FAILED, map(mapped, PAGE, PROT_READ));
	EXPECT_EQ(-1, place(mapped, 0, "bad", SPARE, 0));
	EXPECT_EQ(EINVAL, errno);
	close(mapped);

	id = place(fd, 0, "bad", SPARE, PAGE);
	ASSERT_LT(0, id);
	EXPECT_EQ(id, claim(fd));
	close(fd);
}

/* What has just ended makes room at once: half of the region and more, again and again. */
TEST_F(box, place_again)
{
	int64_t id;
	int i, fd;

	for (i = 0; i < 20; i++) {
		fd = open_comm(0);
		id = place(fd, 0, "again", SPARE, 256 << 10);
		ASSERT_LT(0, id) TH_LOG("%d: %s", i, strerror(errno));
		EXPECT_EQ(id, claim(fd));
		close(fd);
	}
}

static int place_refused(int64_t id, int fd)
{
	return drop_capabilities() ? 99 : refused(EPERM, place(fd, id, "", SPARE, PAGE));
}

static int place_new_refused(int64_t id, int fd)
{
	return refused(EPERM, place(fd, 0, "theirs", SPARE, PAGE));
}

/* A region is not for users without CAP_PERFMON, not even as owners of a session there. */
TEST_F(box, place_takes_perfmon)
{
	int fd = open_comm(0), joining = open_comm(0);
	long paranoid = read_long(PARANOID);
	int64_t id;

	/* Anybody may have such an event; a place in the region is another matter. */
	ASSERT_EQ(0, write_long(PARANOID, -1));
	EXPECT_EQ(0, as_nobody(place_new_refused, 0, fd));
	id = place(fd, 0, "placed", SPARE, PAGE);
	ASSERT_LT(0, id);
	EXPECT_EQ(0, as_user(0, place_refused, id, joining));
	write_long(PARANOID, paranoid);
	EXPECT_EQ(id, claim(fd));
	close(joining);
	close(fd);
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
