// SPDX-License-Identifier: GPL-2.0
/*
 * Charge of the memory of a ring buffer
 *
 * Ring buffers and AUX areas are locked memory. A struct perf_rb_charge holds the charge
 * of one of them:
 *
 *  - A user may lock kernel.perf_event_mlock_kb on each online CPU. The pages up to
 *    this limit are counted in user_struct::perf_mlock.
 *  - Pages beyond it are counted in mm_struct::pinned_vm of the process that maps the
 *    buffer, up to its RLIMIT_MEMLOCK. CAP_IPC_LOCK lifts the limit, and so does
 *    kernel.perf_event_paranoid = -1.
 *  - A buffer that must outlive its process is charged to the user alone. Beyond the
 *    limit this takes CAP_IPC_LOCK.
 *
 * perf_rb_charge() charges current's user, and takes the references that
 * perf_rb_uncharge() needs: the charge is returned to the user and mm that were charged,
 * no matter who drops the buffer. mmgrab() keeps the counter of an mm, not its memory.
 *
 * The counters are atomic. A charge is private to its owner: perf_mmap() until it is
 * stored in the buffer; after that rb->charge changes under event->mmap_mutex of an
 * event that is attached to the buffer and has it mapped, and is returned by the task
 * that drops rb->mmap_count to zero. rb->aux_charge follows rb->aux_mmap_count, under
 * rb->aux_mutex.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/perf_event.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "internal.h"

/* Pages that a user may lock; the limit grows with the number of CPUs. */
static unsigned long perf_rb_user_limit(void)
{
	unsigned long limit = sysctl_perf_event_mlock >> (PAGE_SHIFT - 10);

	return limit * num_online_cpus();
}

static int perf_rb_charge_locked(struct perf_rb_charge *charge, struct user_struct *user,
				 unsigned long nr_pages)
{
	if (!nr_pages)
		return 0;

	if (atomic_long_add_return(nr_pages, &user->perf_mlock) > perf_rb_user_limit() &&
	    !capable(CAP_IPC_LOCK)) {
		atomic_long_sub(nr_pages, &user->perf_mlock);
		return -EPERM;
	}
	charge->locked = nr_pages;
	return 0;
}

static int perf_rb_charge_pinned(struct perf_rb_charge *charge, struct user_struct *user,
				 unsigned long nr_pages, struct mm_struct *mm)
{
	unsigned long limit = perf_rb_user_limit(), used, pinned;

	/* kernel.perf_event_mlock_kb may have been lowered since. */
	used = min_t(unsigned long, atomic_long_read(&user->perf_mlock), limit);
	charge->locked = min(nr_pages, limit - used);
	charge->pinned = nr_pages - charge->locked;

	pinned = atomic64_read(&mm->pinned_vm) + charge->pinned;
	if (pinned > rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT && perf_is_paranoid() &&
	    !capable(CAP_IPC_LOCK))
		return -EPERM;

	atomic_long_add(charge->locked, &user->perf_mlock);
	atomic64_add(charge->pinned, &mm->pinned_vm);
	mmgrab(mm);
	charge->mm = mm;
	return 0;
}

/**
 * perf_rb_charge - charge locked pages to the current user
 * @charge: set to what was charged, for perf_rb_uncharge(); empty before
 * @nr_pages: how many
 * @mm: is charged what exceeds the user's limit; NULL charges all to the user
 *
 * Return: 0, or -EPERM if that exceeds the limits; @charge is empty then
 */
int perf_rb_charge(struct perf_rb_charge *charge, unsigned long nr_pages, struct mm_struct *mm)
{
	struct user_struct *user = current_user();
	int err;

	if (mm)
		err = perf_rb_charge_pinned(charge, user, nr_pages, mm);
	else
		err = perf_rb_charge_locked(charge, user, nr_pages);
	if (err) {
		*charge = (struct perf_rb_charge) { };
		return err;
	}

	charge->user = get_uid(user);
	return 0;
}

static void perf_rb_uncharge_mm(struct perf_rb_charge *charge)
{
	if (!charge->mm)
		return;

	atomic64_sub(charge->pinned, &charge->mm->pinned_vm);
	mmdrop(charge->mm);
	charge->pinned = 0;
	charge->mm = NULL;
}

/**
 * perf_rb_charge_user - replace the charge of an mm by one of the user
 * @charge: what a buffer is charged to
 * @by_user: as many pages as @charge has of its mm, charged to the same user; empty
 *	     afterwards
 */
void perf_rb_charge_user(struct perf_rb_charge *charge, struct perf_rb_charge *by_user)
{
	WARN_ON_ONCE(by_user->user != charge->user || by_user->locked != charge->pinned);

	perf_rb_uncharge_mm(charge);
	charge->locked += by_user->locked;
	free_uid(by_user->user);
	*by_user = (struct perf_rb_charge) { };
}

/**
 * perf_rb_uncharge - undo perf_rb_charge()
 * @charge: what was charged; empty afterwards
 */
void perf_rb_uncharge(struct perf_rb_charge *charge)
{
	if (!charge->user)
		return;

	perf_rb_uncharge_mm(charge);
	atomic_long_sub(charge->locked, &charge->user->perf_mlock);
	free_uid(charge->user);
	*charge = (struct perf_rb_charge) { };
}
