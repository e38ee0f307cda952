// SPDX-License-Identifier: GPL-2.0
/*
 * The clock of the kernel's messages, local_clock(), which is that of events without a clockid
 *
 * The first page of such an event tells how to calculate it from the CPU's counter. The numbers
 * change when the machine was suspended, and when the kernel has measured the frequency anew, so
 * they are read each time.
 *
 * Nothing here waits for another CPU, because that one may be stalled, which is what the
 * message is about. So the event is one of the CPU that we run on, and we stay there until it
 * is closed. It is a disabled cpu-clock: other software events take locks at open that a task
 * may hold which waits for the stalled CPU, and an event of a task may wait for a grace period
 * of RCU.
 */
#include "local-clock.h"
#include "../../affinity.h"
#include "../../tsc.h"
#include "../../../perf-sys.h"

#include <internal/lib.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

static bool read_conversion(int cpu, struct perf_tsc_conversion *conversion)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(attr),
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.disabled	= 1,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};
	int fd = sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	void *page;
	int err;

	if (fd < 0)
		return false;
	page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return false;
	err = perf_read_tsc_conversion(page, conversion);
	munmap(page, page_size);
	return !err;
}

/**
 * local_clock__read - read the clock of the kernel's messages
 * @ns: returns it
 *
 * It takes CAP_PERFMON, or at most 0 in kernel.perf_event_paranoid; on x86 a TSC that the
 * kernel takes for its clock, which it does not as a guest with a clock of its hypervisor.
 *
 * Return: whether it can be read here.
 */
bool local_clock__read(u64 *ns)
{
	struct perf_tsc_conversion conversion;
	struct affinity affinity;
	int cpu = sched_getcpu();
	u64 cycles;
	bool done;

	if (cpu < 0 || affinity__setup(&affinity) < 0)
		return false;
	affinity__set(&affinity, cpu);
	done = read_conversion(cpu, &conversion);
	affinity__cleanup(&affinity);
	/* 0: perf cannot read the counter of this architecture. */
	cycles = done ? rdtsc() : 0;
	if (!cycles)
		return false;
	*ns = tsc_to_perf_time(cycles, &conversion);
	return true;
}
