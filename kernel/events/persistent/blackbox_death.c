// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: the last act of the kernel, and its orderly end
 *
 * How the kernel ends decides what the next boot finds in perf_blackbox_life::state:
 *
 *	reset, triple fault, power	LIVE	nothing runs, nothing is written
 *	panic()				DEAD	hook before its message is printed
 *	oops that starts the		DEAD	hook beside crash_save_vmcoreinfo(); oops_end()
 *	crash kernel				does so without panic()
 *	restart, halt, power off, kexec	CLEAN	syscore_shutdown(), behind device_shutdown():
 *						a shutdown that hangs before is no orderly end
 *
 * panic() during an orderly shutdown makes it DEAD.
 *
 * The last act
 * ------------
 *
 * It runs once, in any context, NMI included. It takes no lock and allocates nothing, as the
 * CPU may have been stopped while it held any lock. The other CPUs still run, until panic()
 * stops them, and would overwrite the ring buffers: so it comes before panic() prints its
 * message and the stack, which takes seconds on a slow console. A panic notifier would come
 * after that, and after the crash kernel is started.
 *
 * Of several CPUs in panic(), one gets as far as the hook. Newer kernels have panic_force_cpu=:
 * there the hook comes on the CPU on which panic() was called, before it dumps the stack and
 * hands over to the forced CPU. It does not own the panic yet. Another CPU that panics, or has an
 * oops that starts the crash kernel, can own it meanwhile, and would stop the last act half-way.
 * It waits for the end of it, for a second at most. An NMI of the same CPU that panics as well
 * cannot wait.
 *
 * If the last act faults in an interrupt, in the idle task or with panic_on_oops, the panic that
 * follows from that finds perf_blackbox_is_dead set, and goes on without it. Otherwise only the
 * task dies.
 *
 * Until panic() stops the other CPUs, they may thaw or end a session. What the image says at
 * the last act must stay:
 *
 *	last act				THAW
 *
 *	(A) STORE perf_blackbox_is_dead		STORE rb->paused = 0
 *	STORE rb->paused = 1			(B) smp_mb()
 *						LOAD perf_blackbox_is_dead
 *						if it is set, STORE rb->paused = 1
 *
 * A is a full barrier, and pairs with B: either the last act pauses the buffer afterwards, or
 * THAW does, with interrupts disabled in between. A session, event or buffer in a region that
 * ends after A keeps its entry and its memory. If its removal had begun before A, it may still
 * lose its entry, as if it had ended earlier. No session and no buffer is placed after A, and no
 * notes are taken.
 *
 *   1. Pause the ring buffers, so that the records of the way to the end do not overwrite
 *	those of what led to it.
 *   2. Write who died where and why, and make all images DEAD.
 *   3. Write the table of tasks, which names those whose records are in the buffers. The
 *	list of tasks may be damaged, and a fault on the way to the crash kernel would cost
 *	the vmcore: each pointer is read by copy_from_kernel_nofault(), and the number of steps
 *	is bounded.
 *   4. Write back the caches.
 *
 * The sizes of the arrays are taken from struct perf_blackbox: a stray write that led here may
 * have damaged the superblock. The list of images is only added to, and the memory of a buffer
 * is never unmapped, so a pointer that is read from perf_blackbox::buffers can be followed. At
 * worst it points to heap memory that was freed meanwhile, of which one word is then set to 1.
 * The other CPUs can hardly use this memory again within that moment, and not for anything but
 * the image.
 *
 * Caches
 * ------
 *
 * A warm reset need not write back dirty cache lines; on x86 INIT keeps and RESET loses them.
 * arch_wb_cache_pmem() writes back the image where the architecture has it. A reset without
 * a last act may lose the newest lines: CRCs, and the checks of each record, find that.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kdebug.h>
#include <linux/libnvdimm.h>
#include <linux/notifier.h>
#include <linux/nmi.h>
#include <linux/perf_blackbox.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/syscore_ops.h>
#include <linux/uaccess.h>

#include "blackbox.h"

/* Written back at once between two kicks of the watchdog */
#define PERF_BLACKBOX_FLUSH_SIZE	SZ_16M

/* Images of this boot; only added to, under perf_persistent_mutex */
static LIST_HEAD(perf_blackbox_live);

/* The CPU of the last act, plus 1; PERF_BLACKBOX_COMPLETE behind it */
static atomic_t perf_blackbox_is_dead = ATOMIC_INIT(0);
#define PERF_BLACKBOX_COMPLETE		(-1)

/* How long another CPU waits for it, in ms */
#define PERF_BLACKBOX_TIME_TO_DIE	1000

/* An oops is the reason of a death that comes so soon after it. */
#define PERF_BLACKBOX_OOPS_NS		(10 * NSEC_PER_SEC)

/* What the last oops was about, and when; two CPUs at a time may mix their texts */
static char perf_blackbox_oops[64];
static u64 perf_blackbox_oops_time;

static void perf_blackbox_flush(struct perf_blackbox *box)
{
#ifdef CONFIG_ARCH_HAS_PMEM_API
	size_t offset, size;

	for (offset = 0; offset < box->size; offset += size) {
		size = min_t(size_t, box->size - offset, PERF_BLACKBOX_FLUSH_SIZE);
		arch_wb_cache_pmem(perf_blackbox_at(box, offset), size);
		touch_nmi_watchdog();
	}
#endif
}

static void perf_blackbox_fill_death(struct perf_blackbox_death *death, u32 kind,
				     const char *reason)
{
	const char *oops = "";
	int len;

	perf_blackbox_now(&death->clock);
	death->kind = kind;
	death->cpu = raw_smp_processor_id();
	death->pid = task_pid_nr(current);
	death->tgid = task_tgid_nr(current);
	strscpy(death->comm, current->comm, sizeof(death->comm));

	/* The clock of the CPU of the oops may be ahead. */
	if ((s64)(local_clock() - perf_blackbox_oops_time) < PERF_BLACKBOX_OOPS_NS)
		oops = perf_blackbox_oops;
	len = reason ? strlen(reason) : 0;
	/* Some callers of panic() end the message with a newline. */
	if (len && reason[len - 1] == '\n')
		len--;
	if (len && *oops)
		snprintf(death->reason, sizeof(death->reason), "%.*s (%s)", len, reason, oops);
	else if (len)
		snprintf(death->reason, sizeof(death->reason), "%.*s", len, reason);
	else
		strscpy(death->reason, oops, sizeof(death->reason));
}

/* Returns false if there is no room, or the task cannot be read. */
static bool perf_blackbox_add_task(struct perf_blackbox *box, struct task_struct *t, u32 nr)
{
	struct perf_blackbox_task *task = box->tasks + nr;
	char comm[TASK_COMM_LEN];
	unsigned int flags;
	pid_t pid, tgid;

	if (nr == box->max_tasks ||
	    get_kernel_nofault(pid, &t->pid) || get_kernel_nofault(tgid, &t->tgid) ||
	    get_kernel_nofault(flags, &t->flags) ||
	    copy_from_kernel_nofault(comm, t->comm, sizeof(comm)))
		return false;

	task->pid = pid;
	task->tgid = tgid;
	task->flags = flags & PF_KTHREAD ? PERF_BLACKBOX_TASK_KERNEL : 0;
	strscpy(task->comm, comm, sizeof(task->comm));
	return true;
}

/* Returns false as perf_blackbox_add_task() does. */
static bool perf_blackbox_add_threads(struct perf_blackbox *box, struct task_struct *p, u32 *nr)
{
	struct list_head *head, *pos;
	struct signal_struct *signal;

	if (get_kernel_nofault(signal, &p->signal))
		return false;

	head = &signal->thread_head;
	for (pos = head;; ++*nr) {
		if (get_kernel_nofault(pos, &pos->next))
			return false;
		if (pos == head)
			return true;
		if (!perf_blackbox_add_task(box, container_of(pos, struct task_struct,
							      thread_node), *nr))
			return false;
	}
}

/*
 * Returns the number of tasks. Those that come and go meanwhile may be missed. @lost: there is
 * no room for all, or the list is damaged.
 */
static u32 perf_blackbox_list_tasks(struct perf_blackbox *box, bool *lost)
{
	struct list_head *pos = &init_task.tasks;
	u32 i, nr = 0;

	*lost = true;
	rcu_read_lock();
	for (i = 0; i <= box->max_tasks; i++) {
		if (get_kernel_nofault(pos, &pos->next))
			break;
		if (pos == &init_task.tasks) {
			*lost = false;
			break;
		}
		if (!perf_blackbox_add_threads(box, container_of(pos, struct task_struct, tasks),
					       &nr))
			break;
	}
	rcu_read_unlock();
	return nr;
}

/* Without one, nothing is lost with the image: the next boot need not keep it. */
static bool perf_blackbox_has_sessions(struct perf_blackbox *box)
{
	return READ_ONCE(box->nr_sessions);
}

static void perf_blackbox_mark_dead(struct perf_blackbox *box, u32 kind, const char *reason)
{
	struct perf_blackbox_death *death = perf_blackbox_death(box);

	if (!perf_blackbox_has_sessions(box))
		return;

	perf_blackbox_fill_death(death, kind, reason);
	perf_blackbox_publish_entry(death, sizeof(*death));
	WRITE_ONCE(perf_blackbox_life(box->super)->state, PERF_BLACKBOX_DEAD);
}

static void perf_blackbox_name_tasks(struct perf_blackbox *box)
{
	struct perf_blackbox_death *death = perf_blackbox_death(box);
	bool lost;
	u32 nr, crc;

	/* Another CPU may have made its first session meanwhile. */
	if (READ_ONCE(perf_blackbox_life(box->super)->state) != PERF_BLACKBOX_DEAD)
		return;

	nr = perf_blackbox_list_tasks(box, &lost);
	crc = perf_blackbox_crc(box->tasks, nr * sizeof(struct perf_blackbox_task));
	/* Invalid for a moment only: the reason of the death is in it. */
	perf_blackbox_clear_entry(death);
	death->nr_tasks = nr;
	death->tasks_lost = lost;
	death->tasks_crc = crc;
	perf_blackbox_publish_entry(death, sizeof(*death));
}

/* The CPU that performs it must not be stopped before its end. */
static void perf_blackbox_await_last_act(void)
{
	int i;

	for (i = 0; i < PERF_BLACKBOX_TIME_TO_DIE; i++) {
		if (atomic_read_acquire(&perf_blackbox_is_dead) == PERF_BLACKBOX_COMPLETE)
			return;
		touch_nmi_watchdog();
		mdelay(1);
	}
}

static void perf_blackbox_die(u32 kind, const char *reason)
{
	int this_cpu = raw_smp_processor_id() + 1, owner;
	struct perf_blackbox *box;

	/* A, matches B in perf_persistent_resume_buffer() */
	owner = atomic_cmpxchg(&perf_blackbox_is_dead, 0, this_cpu);
	if (owner) {
		if (owner != this_cpu)
			perf_blackbox_await_last_act();
		return;
	}

	list_for_each_entry_rcu(box, &perf_blackbox_live, entry, true)
		box->pause(box);
	list_for_each_entry_rcu(box, &perf_blackbox_live, entry, true)
		perf_blackbox_mark_dead(box, kind, reason);
	list_for_each_entry_rcu(box, &perf_blackbox_live, entry, true)
		perf_blackbox_name_tasks(box);
	list_for_each_entry_rcu(box, &perf_blackbox_live, entry, true)
		perf_blackbox_flush(box);
	atomic_set_release(&perf_blackbox_is_dead, PERF_BLACKBOX_COMPLETE);
}

/**
 * perf_blackbox_has_died - has the last act begun?
 *
 * From then on, the content of the images must not change.
 *
 * Context: any, NMI included.
 * Return: true if it has.
 */
bool perf_blackbox_has_died(void)
{
	return atomic_read(&perf_blackbox_is_dead);
}

/**
 * perf_blackbox_panic - the kernel panics
 * @message: why
 *
 * Context: any, NMI included; called by panic() on the CPU that owns it or hands it over,
 * before its message and its stack are printed, and while the other CPUs run.
 */
void perf_blackbox_panic(const char *message)
{
	perf_blackbox_die(PERF_BLACKBOX_DEATH_PANIC, message);
}

/**
 * perf_blackbox_crash - the crash kernel is about to be started
 *
 * Does nothing if panic() starts it.
 *
 * Context: any, NMI included; called by __crash_kexec().
 */
void perf_blackbox_crash(void)
{
	perf_blackbox_die(PERF_BLACKBOX_DEATH_CRASH, NULL);
}

static int perf_blackbox_on_oops(struct notifier_block *nb, unsigned long code, void *data)
{
	struct die_args *args = data;

	/* Those on the way to the end are its consequences. */
	if (code == DIE_OOPS && args->str && !perf_blackbox_has_died()) {
		strscpy(perf_blackbox_oops, args->str);
		perf_blackbox_oops_time = local_clock();
	}
	return NOTIFY_DONE;
}

static struct notifier_block perf_blackbox_oops_nb = {
	.notifier_call	= perf_blackbox_on_oops,
	.priority	= INT_MAX,
};

static void perf_blackbox_on_shutdown(void *data)
{
	struct perf_blackbox *box;

	/* Unless it is dead. */
	list_for_each_entry_rcu(box, &perf_blackbox_live, entry, true) {
		cmpxchg(&perf_blackbox_life(box->super)->state, PERF_BLACKBOX_LIVE,
			PERF_BLACKBOX_CLEAN);
		perf_blackbox_flush(box);
	}
}

static const struct syscore_ops perf_blackbox_syscore_ops = {
	.shutdown	= perf_blackbox_on_shutdown,
};

static struct syscore perf_blackbox_syscore = {
	.ops		= &perf_blackbox_syscore_ops,
};

/**
 * perf_blackbox_watch - mark an image when the kernel ends
 * @box: the image, of this boot
 *
 * Context: perf_persistent_mutex is held; may sleep.
 */
void perf_blackbox_watch(struct perf_blackbox *box)
{
	lockdep_assert_held(&perf_persistent_mutex);

	if (list_empty(&perf_blackbox_live)) {
		register_die_notifier(&perf_blackbox_oops_nb);
		register_syscore(&perf_blackbox_syscore);
	}
	list_add_tail_rcu(&box->entry, &perf_blackbox_live);
}
