// SPDX-License-Identifier: GPL-2.0
/*
 * A session that a module starts ends with the module, whoever reads it meanwhile.
 *
 * The module is test_modules/persistent_module.ko of the running kernel; its path
 * is in PERSISTENT_MODULE.
 */
#define _GNU_SOURCE

#include <poll.h>
#include <pthread.h>

#include "../kselftest_harness.h"
#include "persistent_util.h"

#define MODULE	"persistent_module"
#define SIZE	(64UL << 10)

static int load(const char *args)
{
	return load_module(getenv("PERSISTENT_MODULE"), args);
}

static int unload(void)
{
	return unload_module(MODULE);
}

FIXTURE(module)
{
	struct balance	before;
};

FIXTURE_SETUP(module)
{
	SKIP_WITHOUT_PERSISTENT(return);
	if (access(getenv("PERSISTENT_MODULE") ?: "", R_OK))
		SKIP(return, "PERSISTENT_MODULE is not the path of the module");

	pin_to_cpu(0);
	self->before = take_balance();
}

FIXTURE_TEARDOWN(module)
{
	unload();
	EXPECT_BALANCE();
}

/* A process that has an event open and mapped reads on when the module is gone. */
TEST_F(module, unloaded_with_readers)
{
	struct pollfd p[2] = { { .events = 0 }, { .events = 0 } };
	struct perf_persistent_info inf;
	struct perf_event_mmap_page *page[2];
	uint64_t count;
	int64_t id;
	int i;

	ASSERT_EQ(0, load(""));
	id = listed_id("test_module");
	ASSERT_LT(0, id);
	EXPECT_STREQ("0", sysfs("sessions/%s/state", "test_module"));
	for (i = 0; i < 2; i++) {
		p[i].fd = reopen(id, 0, i);
		ASSERT_LE(0, p[i].fd);
		page[i] = map(p[i].fd, SIZE, PROT_READ);
		ASSERT_NE(MAP_FAILED, (void *)page[i]);
	}
	EXPECT_EQ(0, poll(p, 2, 0));

	EXPECT_EQ(0, unload());
	EXPECT_EQ(-1, listed_id("test_module"));
	EXPECT_REFUSED(ENOENT, reopen(id, 0, 0));
	EXPECT_EQ(2, poll(p, 2, 60000));
	for (i = 0; i < 2; i++) {
		uint64_t head = __atomic_load_n(&page[i]->data_head, __ATOMIC_ACQUIRE);
		int tries;

		EXPECT_EQ(POLLHUP, p[i].revents);
		ASSERT_EQ(0, info(p[i].fd, &inf));
		EXPECT_EQ(id, inf.id);
		EXPECT_EQ(8, read(p[i].fd, &count, 8));
		/* It records on, for who is left. */
		for (tries = 0; tries < 1000; tries++) {
			if (__atomic_load_n(&page[i]->data_head, __ATOMIC_ACQUIRE) != head)
				break;
			usleep(10000);
		}
		EXPECT_GT(1000, tries);
		close(p[i].fd);
		munmap(page[i], SIZE + PAGE);
	}
}

/* That somebody claimed the session before makes no difference to the module. */
TEST_F(module, claimed_before)
{
	int64_t id;
	int i, cpu, fd;

	ASSERT_EQ(0, load(""));
	id = listed_id("test_module");
	for (cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		for (i = 0; i < 2; i++) {
			fd = reopen(id, cpu, i);
			EXPECT_EQ(id, claim(fd));
			close(fd);
		}
	}
	EXPECT_EQ(-1, listed_id("test_module"));
	EXPECT_EQ(0, unload());
}

/* Events that somebody added go with it. */
TEST_F(module, joined)
{
	int fd = open_comm(0);
	int64_t id;

	ASSERT_EQ(0, load(""));
	id = listed_id("test_module");
	EXPECT_EQ(id, unclaim(fd, 0, id, ""));
	EXPECT_EQ(0, unload());
	EXPECT_REFUSED(EBUSY, claim(fd));
	close(fd);
}

/* What cannot be started leaves nothing. */
TEST_F(module, refused)
{
	int fd = open_comm(0);

	EXPECT_REFUSED(EINVAL, load("name=1st"));
	EXPECT_REFUSED(EINVAL, load("name=event1"));
	EXPECT_REFUSED(ENOENT, load("events=no:such"));
	EXPECT_REFUSED(ENOENT, load("events=cpu-clock,nothing"));
	EXPECT_REFUSED(ENOENT, load("events=cpu-clock,"));
	EXPECT_REFUSED(EINVAL, load("size=0x7fffffffffffffff"));
	ASSERT_LT(0, unclaim(fd, 0, 0, "taken"));
	/* Linux 7 has EEXIST say that the module itself is there, and puts EBUSY in its place. */
	EXPECT_EQ(-1, load("name=taken"));
	EXPECT_TRUE(errno == EEXIST || errno == EBUSY);
	EXPECT_LT(0, claim(fd));
	close(fd);
}

static bool stop;

static void *reads(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int fd = reopen(listed_id("test_module"), rand() % 2, rand() % 2);
		struct perf_event_mmap_page *page = map(fd, SIZE, PROT_READ);

		if (page != MAP_FAILED) {
			__atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
			usleep(1000);
			munmap(page, SIZE + PAGE);
		}
		close(fd);
	}
	return NULL;
}

/* Loaded and unloaded while others open, map and close what it has. */
TEST_F_TIMEOUT(module, again_and_again, 300)
{
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, reads, NULL));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, load(""));
		usleep(10000);
		ASSERT_EQ(0, unload());
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

TEST_HARNESS_MAIN
