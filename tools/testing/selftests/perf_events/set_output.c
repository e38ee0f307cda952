// SPDX-License-Identifier: GPL-2.0
/*
 * A ring buffer has one writing CPU at a time. An event that follows its task
 * (cpu == -1) may therefore write to another event's buffer, but not if
 * children inherit it: they run beside their parent.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "../kselftest_harness.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

static int open_event(int cpu, bool inherit, int group_fd, unsigned long flags)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
		.inherit	= inherit,
	};

	return syscall(__NR_perf_event_open, &attr, 0, cpu, group_fd,
		       flags | PERF_FLAG_FD_CLOEXEC);
}

FIXTURE(set_output)
{
	size_t	len;
	void	*base;
	int	target;
	int	fd;
};

FIXTURE_VARIANT(set_output)
{
	int	cpu;
	bool	target_inherit;
	bool	inherit;
	int	err;
};

/* Two events of one task: it runs on one CPU at a time. */
FIXTURE_VARIANT_ADD(set_output, task)
{
	.cpu = -1,
};

/* Parent and children run at the same time. */
FIXTURE_VARIANT_ADD(set_output, task_inherit)
{
	.cpu = -1, .inherit = true, .err = EINVAL,
};

/* Whatever task it is, it runs on that CPU. */
FIXTURE_VARIANT_ADD(set_output, cpu_inherit)
{
	.cpu = 0, .inherit = true,
};

FIXTURE_VARIANT_ADD(set_output, cpu_both_inherit)
{
	.cpu = 0, .target_inherit = true, .inherit = true,
};

FIXTURE_SETUP(set_output)
{
	self->len = 2 * sysconf(_SC_PAGESIZE);
	self->target = open_event(variant->cpu, variant->target_inherit, -1, 0);
	ASSERT_GE(self->target, 0);
	self->base = mmap(NULL, self->len, PROT_READ | PROT_WRITE, MAP_SHARED,
			  self->target, 0);
	ASSERT_NE(self->base, MAP_FAILED);
	self->fd = open_event(variant->cpu, variant->inherit, -1, 0);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(set_output)
{
	close(self->fd);
	munmap(self->base, self->len);
	close(self->target);
}

static int err_of(int ret)
{
	return ret < 0 ? errno : 0;
}

/* By ioctl; to be redirected nowhere is never refused. */
TEST_F(set_output, ioctl)
{
	EXPECT_EQ(variant->err,
		  err_of(ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, self->target)));
	EXPECT_EQ(0, err_of(ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, -1L)));
}

/* The same rule holds when the event is redirected as it is opened. */
TEST_F(set_output, open)
{
	int fd = open_event(variant->cpu, variant->inherit, self->target,
			    PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP);

	EXPECT_EQ(variant->err, err_of(fd));
	if (fd >= 0)
		close(fd);
}

TEST_HARNESS_MAIN
