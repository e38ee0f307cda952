// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: the memory cgroup that a session is charged to
 *
 * The memory of a session belongs to no process. UNCLAIM charges it to the memory cgroup of
 * its caller as kernel memory, which is "kernel" in memory.stat.
 *
 *	struct perf_persistent_memory	charged for			returned
 *
 *	rb->memory_cg			header page, data pages,	with the buffer's last
 *					struct perf_buffer		member
 *	perf_persistent_event::memory	struct perf_event		with the member
 *	perf_persistent_session::memory	the session's files in sysfs	with the session
 *
 * The session's own structures are allocated with PERF_PERSISTENT_GFP. Events are charged to
 * the cgroup of the task that calls UNCLAIM for them, which can differ within a session.
 *
 * The pages of the buffer do not belong to a cgroup. They are charged by size, to an
 * obj_cgroup that is kept with the buffer, for three reasons. First, pages that are already
 * mapped cannot be given to a cgroup: unmapping them would subtract them from its
 * file_mapped, where they were never added. Second, vfree() subtracts pages of a cgroup from
 * its count of vmalloc() pages, to which only an allocation adds them. Third, ordinary
 * buffers, which may become those of a session at any time, are charged as before.
 *
 * The charge fails as a whole (-ENOMEM) if it exceeds the limit of the cgroup or of an
 * ancestor. It reclaims memory of the cgroup, and does not invoke the OOM killer; nor do the
 * allocations of the structures. When the cgroup is removed while a session exists, the
 * obj_cgroup, and with it the charge, moves to the parent.
 *
 * rb->memory_cg is protected by rb->event_lock. Members of different sessions are added and
 * removed without a common lock: an event that has just mapped a buffer may become a member
 * before the last member of the buffer's former session has returned the charge. It then
 * tries again.
 *
 * Without a memory cgroup, in the root cgroup, or with cgroup.memory=nokmem, there is
 * nothing to charge.
 */
#include <linux/cleanup.h>
#include <linux/error-injection.h>
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>

#include "internal.h"

/* One charge counts its bytes in 32 bits. */
#define PERF_PERSISTENT_CHARGE_MAX	((size_t)SZ_1G)

/**
 * perf_persistent_charge - charge memory to the current task's memory cgroup
 * @memory: set to what was charged; empty before
 * @bytes: how much
 *
 * Return: 0, or -ENOMEM; @memory is empty then
 */
int perf_persistent_charge(struct perf_persistent_memory *memory, size_t bytes)
{
	struct obj_cgroup *objcg = get_obj_cgroup_from_current();

	if (!objcg)
		return 0;

	memory->objcg = objcg;
	while (memory->bytes < bytes) {
		size_t part = min(bytes - memory->bytes, PERF_PERSISTENT_CHARGE_MAX);

		if (obj_cgroup_charge(objcg, GFP_KERNEL | __GFP_NORETRY, part)) {
			perf_persistent_uncharge(memory);
			return perf_persistent_refuse(-ENOMEM, "the memory cgroup has no room");
		}
		memory->bytes += part;
	}
	return 0;
}

/* Tests have each caller undo what it did before. */
ALLOW_ERROR_INJECTION(perf_persistent_charge, ERRNO);

/**
 * perf_persistent_uncharge - undo perf_persistent_charge()
 * @memory: what was charged; empty afterwards
 */
void perf_persistent_uncharge(struct perf_persistent_memory *memory)
{
	if (!memory->objcg)
		return;

	while (memory->bytes) {
		size_t part = min(memory->bytes, PERF_PERSISTENT_CHARGE_MAX);

		obj_cgroup_uncharge(memory->objcg, part);
		memory->bytes -= part;
	}
	obj_cgroup_put(memory->objcg);
	memory->objcg = NULL;
}

/**
 * perf_persistent_put_charge - store the charge of a buffer with it
 * @rb: the buffer
 * @memory: the charge; empty afterwards
 *
 * Return: 0, or -EAGAIN if that of its last session is still there
 */
int perf_persistent_put_charge(struct perf_buffer *rb, struct perf_persistent_memory *memory)
{
	unsigned long flags;
	int err = -EAGAIN;

	spin_lock_irqsave(&rb->event_lock, flags);
	if (!rb->memory_cg.objcg) {
		swap(rb->memory_cg, *memory);
		err = 0;
	}
	spin_unlock_irqrestore(&rb->event_lock, flags);
	return err;
}

/**
 * perf_persistent_take_charge - undo perf_persistent_put_charge()
 * @rb: the buffer
 * @memory: set to the charge; empty before
 */
void perf_persistent_take_charge(struct perf_buffer *rb, struct perf_persistent_memory *memory)
{
	unsigned long flags;

	spin_lock_irqsave(&rb->event_lock, flags);
	swap(rb->memory_cg, *memory);
	spin_unlock_irqrestore(&rb->event_lock, flags);
}
