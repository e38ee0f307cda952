// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a backward ring buffer while it is being written
 *
 * In a backward buffer that may overwrite itself, positions run downwards. The
 * newest record starts at data_head, and each new record is put below it, over
 * the oldest bytes. A reader takes a snapshot without stopping the writer:
 *
 *   1. h0 = load_acquire(&user_page->data_head)
 *   2. copy the data area
 *   3. behind = PERF_EVENT_IOC_RESERVED_HEAD(h0): how many bytes were reserved
 *      below h0 until now
 *   4. what was written meanwhile lies over the oldest part of the copy: the
 *      bytes of [h0, h0 + data_size - behind) are intact, the rest is dropped
 *
 * data_head itself would not do for step 3. Only the outermost of nested
 * writers publishes it, after the data; by then the writer may have been
 * overwriting old bytes, which are in the copy, for as long as it likes.
 * rb->head is moved before any byte is stored. So it covers all that the copy
 * may have caught, if only it is read late enough. That is the subject of the
 * rest.
 *
 *
 * Writers
 * =======
 *
 * A buffer is written by one CPU at a time: event->cpu, or, for an event that
 * follows its task (event->cpu == -1), the CPU on which the target task runs.
 * That holds for all that write to it: inherited children, which have the CPU of
 * their parent; events redirected by SET_OUTPUT, which have the CPU and the
 * target of the buffer's owner; tracepoints that are delivered to the events of
 * a task that does not run, which are those of the current CPU. It is the rb
 * and its CPU that matter, not the context that an event is in; hence this does
 * not use event_function_call(), which follows the context and does nothing for
 * a dead one. And hence this needs no ctx->mutex, which every perf_event_open()
 * on that CPU shares.
 *
 *
 * Ordering
 * ========
 *
 *   writer (one CPU, preemption off)	reader (any CPU)
 *
 *   rb->head -= size			LOAD  old or new data
 *   barrier()			(A)	smp_mb()		(B)
 *   STORE data				LOAD  rb->head
 *
 * If the reader saw new data then it must see the rb->head that was moved for
 * it. (A) is a compiler barrier: the writer pays for nothing else.
 *
 * Where the architecture keeps the order of stores, and of loads (x86), (A) and
 * (B) are enough. rb->head is moved by a plain store, and a string instruction
 * stores its bytes in any order, but not before an earlier store. A plain load
 * of rb->head does it; nobody is interrupted.
 *
 * Elsewhere the two stores may become visible in any order, and rb->head is
 * read on the writing CPU instead, by an IPI. There it cannot be older than
 * what program order says. Say that the reader saw new data: its STORE came
 * before the IPI in the program order of that CPU, or the reader would have seen
 * a value that was stored in consequence of its own later step (B). rb->head
 * was moved before that STORE. The IPI carries the value back in order.
 *
 * A target task may move from CPU to CPU meanwhile. The reader loads
 * task_cpu() after (B). If it saw data that was stored on CPU x, then it also
 * sees the store to task_cpu() that preceded it when the task came to x: a task
 * is moved under runqueue locks, and begins to run behind a full barrier. It
 * finds x, or a CPU that the task went to later; and a task that goes from x
 * to y has passed a full barrier by the time it runs on y, so that all its
 * reservations on x are seen there.
 *
 * The tests of this run on x86: they prove the arithmetic, not the ordering.
 *
 *
 * CPUs that are offline or want no interrupts
 * ===========================================
 *
 * A CPU that is offline writes nothing, and all that it wrote happened before
 * it was declared dead: rb->head is read directly. cpus_read_lock() keeps the
 * CPU from being in between.
 *
 * Any event's owner can have IPIs sent to the event's CPU, by enabling and
 * disabling it if nothing else. A reader however is expected to do this often,
 * and, when buffers outlive their creators, to buffers of others. A CPU in
 * nohz_full mode is not interrupted for anyone but the holders of CAP_PERFMON
 * (EPERM). Others can still hop onto that CPU, if its owner lets them.
 *
 *
 * Lifetime
 * ========
 *
 * The file descriptor holds the event, and the event holds its target task. The
 * rb can be taken off the event at any moment, by munmap() or SET_OUTPUT: a
 * reference on the rb is held here throughout.
 *
 *
 * Width
 * =====
 *
 * rb->head is an unsigned long, and data_head is that value extended by
 * zeroes: on 32-bit kernels both wrap at 4 GiB. The kernel subtracts in its own
 * width, so that user space need not know. behind says how many bytes were
 * written, if these are less than the width holds; nobody copies that slowly.
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/cpu.h>
#include <linux/perf_event.h>
#include <linux/perf_rb_snapshot.h>
#include <linux/smp.h>
#include <linux/tick.h>
#include <linux/uaccess.h>
#include <uapi/linux/perf_persistent.h>

#include "internal.h"

/* Size of the first version of the struct. */
#define PERF_RB_RESERVED_SIZE_VER0	offsetofend(struct perf_rb_reserved, __reserved)

struct perf_rb_head {
	struct perf_buffer	*rb;
	unsigned long		head;
};

static void perf_rb_load_head(void *info)
{
	struct perf_rb_head *data = info;

	data->head = local_read(&data->rb->head);
}

/*
 * All reservations that the caller may have seen the data of are in
 * data->head; see Ordering.
 */
static int perf_rb_reserved_head(struct perf_event *event, struct perf_rb_head *data)
{
	int cpu;

	/* B, matches A and the barriers of a migrating task. */
	smp_mb();

	if (IS_ENABLED(CONFIG_X86)) {
		perf_rb_load_head(data);
		return 0;
	}

	guard(cpus_read_lock)();

	cpu = READ_ONCE(event->cpu);
	if (cpu == -1)
		cpu = task_cpu(event->hw.target);

	if (!cpu_online(cpu)) {
		perf_rb_load_head(data);
		return 0;
	}

	if (tick_nohz_full_cpu(cpu) && !perfmon_capable())
		return -EPERM;

	return smp_call_function_single(cpu, perf_rb_load_head, data, true);
}

static int perf_rb_reserved(struct perf_event *event, struct perf_rb_reserved *arg)
{
	struct perf_rb_head data;
	int ret = -EINVAL;

	if (arg->__reserved || arg->head != (unsigned long)arg->head)
		return -EINVAL;

	data.rb = ring_buffer_get(event);
	if (!data.rb)
		return -EINVAL;

	if (data.rb->nr_pages && data.rb->overwrite && is_write_backward(event))
		ret = perf_rb_reserved_head(event, &data);
	if (!ret) {
		arg->behind = (unsigned long)arg->head - data.head;
		arg->data_size = perf_data_size(data.rb);
	}

	ring_buffer_put(data.rb);
	return ret;
}

/**
 * perf_rb_reserved_ioctl - %PERF_EVENT_IOC_RESERVED_HEAD
 * @event: event whose output goes to the buffer
 * @cmd: the ioctl; its size says how large the caller's struct is
 * @arg: struct perf_rb_reserved
 *
 * For every kind of file descriptor that leads to an event. The caller holds a
 * reference on @event, and no lock: this may wait for an IPI. The argument has
 * the same layout for 32-bit and 64-bit callers.
 *
 * Return: 0; -ENOIOCTLCMD if @cmd is another ioctl; -EINVAL if there is no
 * buffer, or none that is backward and overwrites itself, or for a bad
 * argument; -E2BIG for a struct with unknown fields that are not 0; -EPERM if
 * the writing CPU may not be interrupted for the caller; -EFAULT.
 */
long perf_rb_reserved_ioctl(struct perf_event *event, unsigned int cmd, void __user *arg)
{
	struct perf_rb_reserved reserved;
	size_t size = _IOC_SIZE(cmd);
	int ret;

	BUILD_BUG_ON(sizeof(struct perf_rb_reserved) != 32);
	BUILD_BUG_ON(offsetof(struct perf_rb_reserved, head) != 0);
	BUILD_BUG_ON(offsetof(struct perf_rb_reserved, behind) != 8);
	BUILD_BUG_ON(offsetof(struct perf_rb_reserved, data_size) != 16);
	BUILD_BUG_ON(offsetof(struct perf_rb_reserved, __reserved) != 24);

	if (_IOC_TYPE(cmd) != _IOC_TYPE(PERF_EVENT_IOC_RESERVED_HEAD) ||
	    _IOC_NR(cmd) != _IOC_NR(PERF_EVENT_IOC_RESERVED_HEAD))
		return -ENOIOCTLCMD;

	if (size < PERF_RB_RESERVED_SIZE_VER0)
		return -EINVAL;

	ret = copy_struct_from_user(&reserved, sizeof(reserved), arg, size);
	if (ret)
		return ret;

	ret = perf_rb_reserved(event, &reserved);
	if (ret)
		return ret;

	if (copy_to_user(arg, &reserved, min(size, sizeof(reserved))))
		return -EFAULT;

	return 0;
}
