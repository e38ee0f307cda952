/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RB_COMMON_H
#define RB_COMMON_H

/* What the tests of backward ring buffers share. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <linux/perf_persistent.h>

#include "../kselftest_harness.h"
#include "sys_util.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

static inline int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(__NR_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline uint64_t data_head(void *base)
{
	struct perf_event_mmap_page *pc = base;

	return __atomic_load_n(&pc->data_head, __ATOMIC_ACQUIRE);
}

/* -errno, or 0 with the answer in *reserved */
static inline int reserved_head(int fd, uint64_t head, struct perf_rb_reserved *reserved)
{
	*reserved = (struct perf_rb_reserved){ .head = head };
	return ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, reserved) ? -errno : 0;
}

static inline int pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* The @nr-th CPU that we may run on, or -1 */
static inline int allowed_cpu(int nr)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && !nr--)
			return cpu;
	return -1;
}

/* Returns 0, or -1 where CPUs cannot be switched off and on here. */
static inline int set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return write_text(path, online ? "1" : "0");
}

#endif /* RB_COMMON_H */
