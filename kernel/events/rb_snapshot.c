// SPDX-License-Identifier: GPL-2.0
/*
 * Reading a backward ring buffer while it is being written
 *
 * Positions in a backward buffer that overwrites its oldest records decrease. The
 * newest record starts at data_head, and each new record is placed below it, over
 * the oldest bytes. A reader takes a snapshot without stopping the writer:
 *
 *   1. h0 = load_acquire(&user_page->data_head)
 *   2. Copy the data area.
 *   3. behind = PERF_EVENT_IOC_RESERVED_HEAD(h0): the number of bytes reserved
 *      below h0 so far.
 *   4. These bytes overlap the oldest part of the copy. The bytes in
 *      [h0, h0 + data_size - behind) are intact. Drop the rest.
 *
 * Reading data_head again in step 3 is not sufficient. Only the outermost of
 * nested writers publishes it, after the data. Until then the writer may have
 * overwritten any amount of old bytes that are in the copy. rb->head is moved
 * before any byte is stored, so it covers all bytes that the copy may contain,
 * provided that it is read late enough. The rest of this comment is about that.
 *
 *
 * Writers
 * =======
 *
 * A buffer is written by one CPU at a time: event->cpu, or, for an event that
 * follows its task (event->cpu == -1), the CPU on which the target task runs.
 * This is true for all writers: inherited children have the CPU of their parent;
 * events redirected with SET_OUTPUT have the CPU and the target of the event
 * that owns the buffer; tracepoints delivered to the events of a task that is not
 * running are those of the current CPU. The rb and its CPU matter, not the
 * context of the event. Therefore event_function_call() is not used: it follows
 * the context and does nothing for a dead one. This also avoids ctx->mutex, which
 * every perf_event_open() on that CPU takes.
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
 * If the reader saw new data, it must also see the rb->head that was moved for
 * it. (A) is a compiler barrier; the writer has no other cost.
 *
 * If the architecture keeps the order of stores and the order of loads (x86),
 * (A) and (B) are sufficient. rb->head is moved by a plain store, and a string
 * instruction stores its bytes in any order, but not before an earlier store. A
 * plain load of rb->head is sufficient, and no CPU is interrupted.
 *
 * On other architectures the two stores may become visible in any order.
 * rb->head is therefore read on the writing CPU, with an IPI, where it cannot be
 * older than program order permits. If the reader saw new data, the STORE is
 * before the IPI in the program order of that CPU; otherwise the reader would
 * have seen a value whose store depends on the reader's own later step (B).
 * rb->head was moved before the STORE. The IPI returns the value in order.
 *
 * A target task may migrate meanwhile. The reader loads task_cpu() after (B). If
 * it saw data stored on CPU x, it also sees the preceding store to task_cpu()
 * from when the task was moved to x: tasks are moved under runqueue locks, and
 * start to run after a full barrier. The reader finds x, or a CPU that the task
 * moved to later. When a task that moved from x to y runs on y, it has executed a
 * full barrier, so all its reservations on x are visible there.
 *
 * The tests run on x86. They verify the arithmetic, not the ordering.
 *
 *
 * Offline and nohz_full CPUs
 * ==========================
 *
 * An offline CPU does not write, and all its writes happened before it was
 * declared dead, so rb->head is read directly. cpus_read_lock() prevents the CPU
 * from changing its state meanwhile.
 *
 * The owner of an event can always cause IPIs to the CPU of the event, for
 * example by enabling and disabling it. But readers call this ioctl often, and if
 * buffers outlive their creators, also for buffers of other users. A CPU in
 * nohz_full mode is therefore only interrupted for callers with CAP_PERFMON
 * (EPERM). Other callers can still migrate to that CPU, if its affinity permits.
 *
 *
 * Lifetime
 * ========
 *
 * The file descriptor holds a reference on the event, and the event one on its
 * target task. munmap() or SET_OUTPUT can detach the rb from the event at any
 * time, so a reference on the rb is held here.
 *
 *
 * Width
 * =====
 *
 * rb->head is an unsigned long, and data_head is this value zero-extended. On
 * 32-bit kernels both wrap at 4 GiB. The kernel subtracts in its own width, so
 * user space does not have to know it. behind is correct as long as fewer bytes
 * were written than the width can hold. No copy is that slow.
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
 * data->head includes all reservations whose data the caller may have seen; see
 * Ordering.
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
 * @cmd: the ioctl; its size is that of the caller's struct
 * @arg: struct perf_rb_reserved
 *
 * Works for all kinds of file descriptors of an event. The caller holds a reference
 * on @event and no lock, because this may wait for an IPI. The argument has the same
 * layout for 32-bit and 64-bit callers.
 *
 * Return: 0; -ENOIOCTLCMD if @cmd is another ioctl; -EINVAL if there is no
 * backward overwrite buffer, or for an invalid argument; -E2BIG for a struct with
 * unknown fields that are not 0; -EPERM if the caller may not interrupt the
 * writing CPU; -EFAULT.
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
