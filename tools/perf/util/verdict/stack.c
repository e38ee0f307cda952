// SPDX-License-Identifier: GPL-2.0
/*
 * What a call chain tells: in what a task waits, who wakes it, which function it runs.
 *
 * A class is known by a function of the kernel that is called for nothing else. Names of
 * functions change; a function that is unknown here makes a wait of unknown class, and of
 * these nothing is claimed. Functions that the compiler has split (NAME.isra.0) are
 * compared without the suffix.
 *
 * A futex does not tell what it is for. A program that waits in a function of the C library
 * that takes a lock waits for a lock; one that waits for a condition or for work does not
 * call these.
 *
 * Softirqs that a task raises may run at once, in its system call (CLASS_INLINE). What they
 * wake is woken by the task.
 *
 * The class of an address is kept: each address is looked up once. Names are copied: the
 * symbols of a BPF program are freed when the records tell that it was unloaded.
 */
#include "stack.h"

#include "addr_location.h"
#include "callchain.h"
#include "dso.h"
#include "event.h"
#include "hashmap.h"
#include "interner.h"
#include "machine.h"
#include "map.h"
#include "sample.h"
#include "symbol.h"
#include "thread.h"

#include <errno.h>
#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>
#include <stdlib.h>
#include <string.h>

#define MOST_USER_FRAMES	8

/* A name that ends with '*' stands for all that begin so. */
static const struct {
	const char		*name;
	enum verdict_class	class;
} functions[] = {
	{ "__mutex_lock*",			CLASS_KERNEL_LOCK },
	{ "__ww_mutex_lock*",			CLASS_KERNEL_LOCK },
	{ "rwsem_down_*",			CLASS_KERNEL_LOCK },
	{ "percpu_rwsem_wait",			CLASS_KERNEL_LOCK },
	{ "__percpu_down_read",			CLASS_KERNEL_LOCK },
	{ "__down*",				CLASS_KERNEL_LOCK },
	{ "flock_lock_inode_wait",		CLASS_FILE_LOCK },
	{ "posix_lock_inode_wait",		CLASS_FILE_LOCK },
	{ "locks_lock_inode_wait",		CLASS_FILE_LOCK },
	{ "fcntl_setlk",			CLASS_FILE_LOCK },
	{ "futex_wait*",			CLASS_FUTEX },
	{ "__futex_wait*",			CLASS_FUTEX },
	{ "pipe_read",				CLASS_PIPE },
	{ "pipe_write",				CLASS_PIPE },
	{ "anon_pipe_read",			CLASS_PIPE },
	{ "anon_pipe_write",			CLASS_PIPE },
	{ "unix_stream_*",			CLASS_SOCKET },
	{ "unix_dgram_*",			CLASS_SOCKET },
	{ "__skb_wait_for_more_packets",	CLASS_SOCKET },
	{ "sk_wait_data",			CLASS_SOCKET },
	{ "inet_csk_accept",			CLASS_SOCKET },
	{ "sock_alloc_send_pskb",		CLASS_SOCKET },
	{ "__do_semtimedop",			CLASS_SEMAPHORE },
	{ "do_semtimedop",			CLASS_SEMAPHORE },
	{ "mem_cgroup_handle_over_high",	CLASS_OVER_HIGH },
	{ "__mem_cgroup_handle_over_high",	CLASS_OVER_HIGH },
	{ "balance_dirty_pages*",		CLASS_DIRTY },
	{ "io_schedule*",			CLASS_IO },
	{ "wait_for_completion_io*",		CLASS_IO },
	{ "submit_bio_wait",			CLASS_IO },
	{ "do_wait",				CLASS_CHILD },
	{ "kernel_wait4",			CLASS_CHILD },
	{ "do_epoll_wait",			CLASS_POLL },
	{ "ep_poll",				CLASS_POLL },
	{ "do_sys_poll",			CLASS_POLL },
	{ "do_select",				CLASS_POLL },
	{ "io_cqring_wait",			CLASS_POLL },
	{ "hrtimer_nanosleep",			CLASS_SLEEP },
	{ "do_nanosleep",			CLASS_SLEEP },
	{ "msleep*",				CLASS_SLEEP },
	{ "usleep_range_state",			CLASS_SLEEP },
	{ "do_sched_yield",			CLASS_SLEEP },
	{ "__x64_sys_sched_yield",		CLASS_SLEEP },
	{ "do_sigtimedwait",			CLASS_SIGNAL },
	{ "sigsuspend",				CLASS_SIGNAL },
	{ "__do_sys_pause",			CLASS_SIGNAL },
	{ "__x64_sys_pause",			CLASS_SIGNAL },
	{ "worker_thread",			CLASS_WORK },
	{ "smpboot_thread_fn",			CLASS_WORK },
	{ "kthread_worker_fn",			CLASS_WORK },
	{ "rcu_gp_kthread",			CLASS_WORK },
	{ "kswapd",				CLASS_WORK },
	{ "n_tty_read",				CLASS_POLL },
	{ "wait_for_completion*",		CLASS_COMPLETION },
	{ "__wait_for_common",			CLASS_COMPLETION },
	{ "hrtimer_wakeup",			CLASS_TIMER },
	{ "process_timeout",			CLASS_TIMER },
	{ "it_real_fn",				CLASS_TIMER },
	{ "posix_timer_fn",			CLASS_TIMER },
	{ "sched_ttwu_pending",			CLASS_REMOTE },
	{ "signal_wake_up_state",		CLASS_KILL },
	{ "zap_other_threads",			CLASS_KILL },
	{ "complete_signal",			CLASS_KILL },
	{ "zap_process",			CLASS_KILL },
	{ "handle_softirqs",			CLASS_INTERRUPT },
	{ "__do_softirq",			CLASS_INTERRUPT },
	{ "__common_interrupt",			CLASS_INTERRUPT },
	{ "common_interrupt",			CLASS_INTERRUPT },
	{ "handle_irq_event",			CLASS_INTERRUPT },
	{ "sysvec_*",				CLASS_INTERRUPT },
	{ "__sysvec_*",				CLASS_INTERRUPT },
	{ "__irq_exit_rcu",			CLASS_INTERRUPT },
	{ "el1h_64_irq_handler",		CLASS_INTERRUPT },
	{ "el0t_64_irq_handler",		CLASS_INTERRUPT },
	{ "__local_bh_enable_ip",		CLASS_INLINE },
};

/* Functions of the C library in which a task waits for a lock */
static const char *const lock_functions[] = {
	"__lll_lock_wait*", "___pthread_mutex_lock", "__pthread_mutex_lock*",
	"pthread_mutex_lock*", "__pthread_mutex_*lock*", "pthread_mutex_timedlock*",
	"__pthread_rwlock_*", "___pthread_rwlock_*", "pthread_rwlock_*lock*",
	"__GI___lll_lock_wait*", "__GI___pthread_mutex_lock*",
};

/* Address in the kernel -> index of functions + 1, or 0; its name */
struct kernel_function {
	const char	*name;
	int		known;
};

static struct hashmap *addresses;
static struct interner names;

static size_t hash_address(long key, void *ctx __maybe_unused)
{
	return key * 11400714819323198485llu;
}

static bool equal_address(long a, long b, void *ctx __maybe_unused)
{
	return a == b;
}

static bool is_called(const char *name, const char *pattern)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return !strncmp(name, pattern, len - 1);
	return !strncmp(name, pattern, len) && (!name[len] || name[len] == '.');
}

/**
 * verdict_stack__name - a name that stays until verdict_stack__exit()
 * @name: the name
 *
 * Return: the same copy for equal names, or NULL without memory.
 */
const char *verdict_stack__name(const char *name)
{
	u32 nr = interner__add(&names, name, strlen(name) + 1, NULL);

	return nr == INTERNER_FAILED ? NULL : interner__key(&names, nr);
}

static const struct kernel_function *lookup(struct machine *machine, u64 ip)
{
	struct kernel_function *f;
	struct symbol *sym;
	struct map *map = NULL;
	size_t i;

	if (hashmap__find(addresses, ip, &f))
		return f;
	f = zalloc(sizeof(*f));
	if (!f)
		return NULL;
	sym = machine__find_kernel_symbol(machine, ip, &map);
	map__put(map);
	if (sym) {
		f->name = verdict_stack__name(sym->name);
		for (i = 0; i < ARRAY_SIZE(functions) && !f->known; i++) {
			if (is_called(sym->name, functions[i].name))
				f->known = i + 1;
		}
	}
	if (hashmap__add(addresses, ip, f)) {
		free(f);
		return NULL;
	}
	return f;
}

int verdict_stack__init(void)
{
	addresses = hashmap__new(hash_address, equal_address, NULL);
	return IS_ERR(addresses) ? -ENOMEM : 0;
}

void verdict_stack__exit(void)
{
	struct hashmap_entry *entry;
	size_t bucket;

	interner__exit(&names);
	if (IS_ERR_OR_NULL(addresses))
		return;
	hashmap__for_each_entry(addresses, entry, bucket)
		free(entry->pvalue);
	hashmap__free(addresses);
	addresses = NULL;
}

static bool is_library(struct map *map)
{
	const char *name = dso__short_name(map__dso(map));

	return !strncmp(name, "libc", 4) || !strncmp(name, "ld-", 3) ||
	       !strncmp(name, "libpthread", 10) || name[0] == '[';
}

/* True if that was the function of the program that is looked for. */
static bool read_user(struct verdict_stack *stack, struct thread *thread, u64 ip, int nr)
{
	struct addr_location al;
	bool found = false;
	size_t i;

	addr_location__init(&al);
	if (thread__find_symbol(thread, PERF_RECORD_MISC_USER, ip, &al)) {
		for (i = 0; nr < 3 && i < ARRAY_SIZE(lock_functions); i++) {
			if (is_called(al.sym->name, lock_functions[i]))
				stack->place.lock = true;
		}
		if (!is_library(al.map)) {
			stack->place.user = verdict_stack__name(al.sym->name);
			found = true;
		}
	}
	addr_location__exit(&al);
	return found;
}

static void read_kernel(struct verdict_stack *stack, struct machine *machine, u64 ip)
{
	const struct kernel_function *f = lookup(machine, ip);
	enum verdict_class class;

	if (!f || !f->name)
		return;
	if (!strcmp(f->name, "kthread"))
		stack->kthread = true;
	if (!f->known)
		return;
	class = functions[f->known - 1].class;
	stack->seen |= 1U << class;
	if (class < CLASS_TIMER && (!stack->class || class < stack->class)) {
		stack->class = class;
		stack->place.kernel = f->name;
	}
}

/**
 * verdict_stack__read - what the call chain of a sample tells
 * @stack: what it tells
 * @sample: the sample
 * @machine: where it was taken
 * @user: look at the functions of the program, too
 */
int verdict_stack__read(struct verdict_stack *stack, const struct perf_sample *sample,
			struct machine *machine, bool user)
{
	struct ip_callchain *chain = sample->callchain;
	u64 context = PERF_CONTEXT_MAX;
	struct thread *thread = NULL;
	int frames = 0;
	u64 i;

	memset(stack, 0, sizeof(*stack));
	stack->empty = true;
	if (!chain)
		return 0;
	for (i = 0; i < chain->nr; i++) {
		u64 ip = chain->ips[i];

		if (ip >= PERF_CONTEXT_MAX) {
			context = ip;
			continue;
		}
		stack->empty = false;
		if (context == PERF_CONTEXT_KERNEL) {
			/* The kernel's addresses of callers are those after the call. */
			read_kernel(stack, machine, ip - 1);
		} else if (context == PERF_CONTEXT_USER && user) {
			if (!thread)
				thread = machine__findnew_thread(machine, sample->pid,
								 sample->tid);
			if (!thread || frames >= MOST_USER_FRAMES ||
			    read_user(stack, thread, ip - !!frames, frames))
				break;
			frames++;
		}
	}
	thread__put(thread);
	return 0;
}
