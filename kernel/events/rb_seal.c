// SPDX-License-Identifier: GPL-2.0
/*
 * Sealed ring buffers
 *
 * The readers of a sealed buffer see only the records of its events. While rb->sealed is
 * not zero
 *
 *  - no event is attached to the buffer (ring_buffer_attach()), nor redirected into or
 *    out of it (SET_OUTPUT): EBUSY;
 *  - PAUSE_OUTPUT fails with EBUSY;
 *  - user space cannot make the header page writable: mmap() refuses PROT_WRITE, and a
 *    write through a mapping that was made before faults with SIGBUS. A buffer whose
 *    header page was writable once, rb->user_writable, cannot be sealed.
 *
 * Events that were attached before stay attached, so the caller that seals a buffer checks
 * rb->event_list afterwards.
 *
 * rb->sealed counts the users of the seal. It and rb->user_writable are changed
 * under rb->event_lock, and each of the above checks it under that lock at the step that
 * it forbids. So one of two racing tasks always sees the other: if the seal is set before
 * an event is put on rb->event_list, the event is refused; if it is set after, the sealing
 * task finds the event on the list. The same holds for the pause and the writable page.
 * SET_OUTPUT also checks it earlier without the lock, only to fail early.
 *
 * None of this is in the path of a record.
 */
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/spinlock.h>

#include "internal.h"

/**
 * perf_rb_seal - seal a ring buffer
 * @rb: the buffer
 *
 * A paused buffer stays paused; rb_toggle_paused() resumes it.
 *
 * Return: 0, or -EINVAL if user space may write to the header page
 */
int perf_rb_seal(struct perf_buffer *rb)
{
	unsigned long flags;
	int err = -EINVAL;

	spin_lock_irqsave(&rb->event_lock, flags);
	if (!rb->user_writable) {
		WRITE_ONCE(rb->sealed, rb->sealed + 1);
		err = 0;
	}
	spin_unlock_irqrestore(&rb->event_lock, flags);

	return err;
}

/**
 * perf_rb_unseal - undo perf_rb_seal()
 * @rb: the buffer; it stays sealed while others rely on it
 *
 * Return: is it sealed still?
 */
bool perf_rb_unseal(struct perf_buffer *rb)
{
	unsigned long flags;
	bool sealed;

	spin_lock_irqsave(&rb->event_lock, flags);
	WRITE_ONCE(rb->sealed, rb->sealed - 1);
	sealed = rb->sealed;
	spin_unlock_irqrestore(&rb->event_lock, flags);

	return sealed;
}

/**
 * perf_rb_toggle_paused - rb_toggle_paused(), unless the buffer is sealed
 * @rb: the buffer
 * @pause: whether to pause or to resume
 *
 * Return: 0, or -EBUSY if it is sealed
 */
int perf_rb_toggle_paused(struct perf_buffer *rb, bool pause)
{
	unsigned long flags;
	int err = -EBUSY;

	spin_lock_irqsave(&rb->event_lock, flags);
	if (!perf_rb_sealed(rb)) {
		rb_toggle_paused(rb, pause);
		err = 0;
	}
	spin_unlock_irqrestore(&rb->event_lock, flags);

	return err;
}

/**
 * perf_rb_check_mmap - may the buffer be mapped?
 * @rb: the buffer
 * @vma: the mapping, which mprotect() cannot make writable if the buffer is sealed
 *
 * This tells early what perf_rb_allow_write() makes sure of.
 *
 * Return: 0, or -EACCES if it is sealed, and the mapping writable
 */
int perf_rb_check_mmap(struct perf_buffer *rb, struct vm_area_struct *vma)
{
	if (!perf_rb_sealed(rb))
		return 0;

	if (vma->vm_flags & VM_WRITE)
		return -EACCES;

	vm_flags_clear(vma, VM_MAYWRITE);
	return 0;
}

/**
 * perf_rb_allow_write - make the header page writable for user space
 * @event: the event whose buffer is mapped
 *
 * Return: false if the buffer is sealed
 */
bool perf_rb_allow_write(struct perf_event *event)
{
	struct perf_buffer *rb = ring_buffer_get(event);
	unsigned long flags;
	bool allowed;

	if (!rb)
		return true;

	spin_lock_irqsave(&rb->event_lock, flags);
	allowed = !perf_rb_sealed(rb);
	if (allowed)
		rb->user_writable = true;
	spin_unlock_irqrestore(&rb->event_lock, flags);

	ring_buffer_put(rb);
	return allowed;
}
