/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_DISK_H
#define __PERF_VERDICT_DISK_H

#include <linux/types.h>
#include <stdbool.h>

/**
 * struct verdict_request - a request that was in a block device
 * @issued: when the device got it
 * @completed: when it was done
 * @sector: where it began
 * @dev: number of the device, as the kernel encodes it
 * @task: index of the task that gave it to the device
 */
struct verdict_request {
	u64	issued;
	u64	completed;
	u64	sector;
	u32	dev;
	u32	task;
};

/* Requests of a task that are done, by the time at which they were */
struct verdict_requests {
	struct verdict_request	*done;
	u32			nr;
	u32			max;
};

/* Requests that are in a device */
struct verdict_disks {
	struct verdict_request	*pending;
	u32			nr;
	u32			max;
};

/* A part of a time in which a request was in a device */
typedef int (*verdict_disk_t)(void *ctx, u32 dev, u64 ns);

int verdict_disks__issue(struct verdict_disks *d, const struct verdict_request *request);
bool verdict_disks__complete(struct verdict_disks *d, u32 dev, u64 sector,
			     struct verdict_request *request);
int verdict_requests__add(struct verdict_requests *r, const struct verdict_request *request);
u64 verdict_requests__cover(const struct verdict_requests *r, u64 start, u64 end, u64 latest,
			    verdict_disk_t part, void *ctx, int *err);

static inline u32 verdict_disk__major(u32 dev)
{
	return dev >> 20;
}

static inline u32 verdict_disk__minor(u32 dev)
{
	return dev & ((1U << 20) - 1);
}

#endif /* __PERF_VERDICT_DISK_H */
