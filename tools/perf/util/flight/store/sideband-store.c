// SPDX-License-Identifier: GPL-2.0
/*
 * The state of the tasks and of the kernel before the oldest retained round
 *
 * A sample has a thread id and an address. Side-band records (comm, mmap, fork, exit,
 * ...) identify the program, and may be much older than the sample. If a recorder just
 * evicted its oldest records, this information would be lost.
 *
 * This store is the sum of all side-band records that were evicted from the ring store,
 * and of the records that were synthesized from /proc when the recorder started. Both
 * stores together have the complete information:
 *
 *	 synthesized, and all records that were evicted	   retained rounds
 *	|------------ folded into this store -------------|-- as recorded --| now
 *
 * The store is exactly the state of the machine at the oldest retained round, because
 * records are folded in the order of time. fold-order.c ensures this, and delays the
 * records of a round if necessary. The state of a task can be removed when its exit is
 * folded: the task exited before the oldest retained round, so no sample of it is left.
 * A process that started and exited within the window is not removed before its last
 * sample is evicted. The same applies to pids that are reused.
 *
 * Objects:
 *
 *	process -- by pid; owns its threads; removed with the last of them
 *	  thread -- by tid; its name, its namespaces
 *	  maps -- disjoint mappings, sorted by address, each of a PERF_RECORD_MMAP or
 *	      MMAP2, reduced to the part that later mappings do not cover. Processes
 *	      share the names, and after a fork all maps; see map-set.c.
 *	kernel record -- by type and key (address, id): kernel and modules, ksymbol,
 *	      bpf_event, cgroup, text_poke; a later record replaces an earlier one
 *
 * The kernel does not record munmap(). An unmapped mapping stays until another one
 * covers it. The number of maps is thus bounded by the address space in use, not by the
 * number of changes.
 *
 * Bounds: all memory is counted, including an estimate of the overhead of malloc(), and
 * never exceeds the limit. Records that would exceed it are dropped and counted. Memory
 * use follows the number of tasks that exist at the same time. If exits are lost
 * (PERF_RECORD_LOST), processes would stay forever. The owner then asks for a search for
 * processes that no longer exist (sideband_store__doubt_all). They are marked, and removed
 * when everything that the ring held at that time has been folded. The kernel does not
 * record the removal of a cgroup either, and does not reuse its id; cgroups are handled
 * in the same way.
 *
 * The search is a system call for each process, 100,000 of them on a large machine. The
 * thread that reads the buffers cannot wait for this. Each pass looks at a share
 * (sideband_store__doubt), from where the last one ended. What it marks goes to the end
 * of a queue; positions in the ring only grow, so the queue is sorted by the position up
 * to which records may refer to the object. sideband_store__settle() removes a share from
 * its front. A search that is asked for during another one begins after that one.
 * sideband-memory.c gives the memory back.
 *
 * With --fair, records may be folded before all older samples are evicted. Threads that
 * exit are then kept in the same way (sideband_store__keep_ended), for their samples. They
 * may use a share of the memory, so that tasks that live are never dropped for them.
 */
#include "sideband-store.h"
#include "map-set.h"
#include "sideband-memory.h"
#include "../../cgroup.h"
#include "../../event.h"

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/perf_event.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Costs of a look at a cgroup, which opens it, in those of a look at a process. */
#define CGROUP_COST		16

/* Threads that have exited are removed if more than this share of the limit is used. */
#define ENDED_SHARE		2

/**
 * struct doubt - an object that may no longer exist
 * @list: in the queue of the store; empty: it is not in doubt
 * @until: position in the ring up to which records may refer to it
 */
struct doubt {
	struct list_head	list;
	u64			until;
};

struct process {
	struct rb_node		node;
	pid_t			pid;
	pid_t			ppid;
	struct doubt		doubt;
	struct map_set		*maps;
	struct list_head	threads;
};

struct thread_state {
	struct rb_node		node;
	struct list_head	list;
	struct process		*process;
	pid_t			tid;
	struct doubt		ended;
	char			*comm;
	union perf_event	*namespaces;
	u16			namespaces_size;
};

struct kernel_record {
	struct rb_node		node;
	u32			type;
	u64			key;
	struct doubt		doubt;
	u16			size;
	union perf_event	*event;
};

enum search_state {
	SEARCH_NONE,
	SEARCH_CGROUPS,
	SEARCH_PROCESSES,
};

/**
 * struct search - a search for what no longer exists
 * @state: what it looks at
 * @again: another one is wanted after it
 * @cgroup: where it goes on
 * @pid: likewise
 */
struct search {
	enum search_state	state;
	bool			again;
	u64			cgroup;
	s64			pid;
};

struct sideband_store {
	struct sideband_memory	memory;
	size_t			id_hdr_size;
	struct map_table	*maps;
	struct rb_root		processes;
	struct rb_root		threads;
	struct rb_root		kernel;
	struct search		search;
	struct list_head	doubts;			/* processes */
	struct list_head	cgroup_doubts;
	struct list_head	ended;			/* threads */
	u64			keep_until;		/* those that exit; 0: they are removed */
	struct sideband_stats	stats;
};

/* Memory */

static void *ss_alloc(struct sideband_store *ss, size_t size)
{
	return sideband_memory__alloc(&ss->memory, size);
}

static void ss_free(struct sideband_store *ss, void *p, size_t size)
{
	sideband_memory__free(&ss->memory, p, size);
}

static void *ss_dup(struct sideband_store *ss, const void *from, size_t size)
{
	void *p = ss_alloc(ss, size);

	if (p)
		memcpy(p, from, size);
	return p;
}

static void free_string(struct sideband_store *ss, char **s)
{
	if (*s)
		ss_free(ss, *s, strlen(*s) + 1);
	*s = NULL;
}

/* Processes and threads */

static struct process *find_process(const struct sideband_store *ss, pid_t pid)
{
	struct rb_node *node = ss->processes.rb_node;

	while (node) {
		struct process *process = rb_entry(node, struct process, node);

		if (pid == process->pid)
			return process;
		node = pid < process->pid ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static struct thread_state *find_thread(const struct sideband_store *ss, pid_t tid)
{
	struct rb_node *node = ss->threads.rb_node;

	while (node) {
		struct thread_state *thread = rb_entry(node, struct thread_state, node);

		if (tid == thread->tid)
			return thread;
		node = tid < thread->tid ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static void free_thread(struct sideband_store *ss, struct thread_state *thread)
{
	list_del(&thread->list);
	list_del(&thread->ended.list);
	rb_erase(&thread->node, &ss->threads);
	free_string(ss, &thread->comm);
	ss_free(ss, thread->namespaces, thread->namespaces_size);
	ss_free(ss, thread, sizeof(*thread));
	ss->stats.threads--;
}

static void free_process(struct sideband_store *ss, struct process *process)
{
	struct thread_state *thread, *tmp;

	list_for_each_entry_safe(thread, tmp, &process->threads, list)
		free_thread(ss, thread);
	map_set__put(process->maps, ss->maps);
	list_del(&process->doubt.list);
	rb_erase(&process->node, &ss->processes);
	ss_free(ss, process, sizeof(*process));
	ss->stats.processes--;
}

static void end_thread(struct sideband_store *ss, struct thread_state *thread)
{
	struct process *process = thread->process;

	free_thread(ss, thread);
	if (list_empty(&process->threads))
		free_process(ss, process);
}

static struct process *findnew_process(struct sideband_store *ss, pid_t pid)
{
	struct rb_node **p = &ss->processes.rb_node, *parent = NULL;
	struct process *process;

	while (*p) {
		parent = *p;
		process = rb_entry(parent, struct process, node);
		if (pid == process->pid)
			return process;
		p = pid < process->pid ? &parent->rb_left : &parent->rb_right;
	}

	process = ss_alloc(ss, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->ppid = -1;
	INIT_LIST_HEAD(&process->threads);
	INIT_LIST_HEAD(&process->doubt.list);
	rb_link_node(&process->node, parent, p);
	rb_insert_color(&process->node, &ss->processes);
	ss->stats.processes++;
	return process;
}

static struct thread_state *new_thread(struct sideband_store *ss, struct process *process,
				       pid_t tid)
{
	struct rb_node **p = &ss->threads.rb_node, *parent = NULL;
	struct thread_state *thread = ss_alloc(ss, sizeof(*thread));

	if (!thread)
		return NULL;
	while (*p) {
		parent = *p;
		p = tid < rb_entry(parent, struct thread_state, node)->tid ?
		    &parent->rb_left : &parent->rb_right;
	}
	thread->tid = tid;
	thread->process = process;
	INIT_LIST_HEAD(&thread->ended.list);
	list_add_tail(&thread->list, &process->threads);
	rb_link_node(&thread->node, parent, p);
	rb_insert_color(&thread->node, &ss->threads);
	ss->stats.threads++;
	return thread;
}

/* If the tid belongs to a thread of another process, it was reused: a new thread. */
static struct thread_state *findnew_thread(struct sideband_store *ss, pid_t pid, pid_t tid)
{
	struct thread_state *thread = find_thread(ss, tid);
	struct process *process;

	if (thread && thread->process->pid == pid) {
		list_del_init(&thread->ended.list);
		return thread;
	}
	if (thread)
		end_thread(ss, thread);

	process = findnew_process(ss, pid);
	if (!process)
		return NULL;
	thread = new_thread(ss, process, tid);
	if (!thread && list_empty(&process->threads))
		free_process(ss, process);
	return thread;
}

static void set_comm(struct sideband_store *ss, struct thread_state *thread,
		     const char *comm, size_t max)
{
	size_t len = strnlen(comm, max);
	char *copy = ss_alloc(ss, len + 1);

	if (!copy)
		return;
	memcpy(copy, comm, len);
	free_string(ss, &thread->comm);
	thread->comm = copy;
}

/* exec(): the other threads are gone, and the caller is the leader now. */
static void exec_process(struct sideband_store *ss, struct thread_state *survivor)
{
	struct process *process = survivor->process;
	struct thread_state *thread, *tmp;

	list_for_each_entry_safe(thread, tmp, &process->threads, list) {
		if (thread != survivor)
			free_thread(ss, thread);
	}
	map_set__put(process->maps, ss->maps);
	process->maps = NULL;
}

/* Records: @size is without the sample_id that follows. */

static int fold_comm(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	struct thread_state *thread = findnew_thread(ss, event->comm.pid, event->comm.tid);

	if (!thread)
		return -ENOMEM;
	if (event->header.misc & PERF_RECORD_MISC_COMM_EXEC)
		exec_process(ss, thread);
	set_comm(ss, thread, event->comm.comm, size - offsetof(struct perf_record_comm, comm));
	return 0;
}

/* A new process has the maps of its parent, a new thread the name of its creator. */
static int fold_fork(struct sideband_store *ss, const union perf_event *event,
		     size_t size __maybe_unused)
{
	pid_t pid = event->fork.pid, tid = event->fork.tid, ppid = event->fork.ppid;
	bool synthesized = event->header.misc & PERF_RECORD_MISC_FORK_EXEC;
	struct thread_state *parent, *thread = find_thread(ss, tid);
	struct process *from;

	/* The tid or the pid was reused, and the exit was lost. */
	if (thread)
		end_thread(ss, thread);
	if (pid == tid && pid != ppid && find_process(ss, pid))
		free_process(ss, find_process(ss, pid));

	thread = findnew_thread(ss, pid, tid);
	if (!thread)
		return -ENOMEM;

	parent = find_thread(ss, event->fork.ptid);
	if (parent && parent != thread && parent->comm)
		set_comm(ss, thread, parent->comm, strlen(parent->comm));
	if (pid == ppid || pid != tid)
		return 0;

	thread->process->ppid = ppid;
	from = find_process(ss, ppid);
	if (!synthesized && from)
		thread->process->maps = map_set__get(from->maps);
	return 0;
}

static void doubt__add(struct doubt *doubt, struct list_head *queue, u64 until)
{
	if (!list_empty(&doubt->list))
		return;
	doubt->until = until;
	list_add_tail(&doubt->list, queue);
}

static int fold_exit(struct sideband_store *ss, const union perf_event *event,
		     size_t size __maybe_unused)
{
	struct thread_state *thread = find_thread(ss, event->fork.tid);

	if (!thread || thread->process->pid != (pid_t)event->fork.pid)
		return 0;
	if (ss->keep_until)
		doubt__add(&thread->ended, &ss->ended, ss->keep_until);
	else
		end_thread(ss, thread);
	return 0;
}

static int fold_kernel(struct sideband_store *ss, const union perf_event *event,
		       size_t size, u64 key);

static int fold_mmap(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	struct thread_state *thread;

	if (event->mmap.pid == (u32)-1)
		return fold_kernel(ss, event, size, event->mmap.start);
	if (!event->mmap.len || event->mmap.start + event->mmap.len < event->mmap.start)
		return 0;

	thread = findnew_thread(ss, event->mmap.pid, event->mmap.tid);
	if (!thread)
		return -ENOMEM;
	return map_set__add(&thread->process->maps, ss->maps, event, size);
}

static int fold_namespaces(struct sideband_store *ss, const union perf_event *event,
			   size_t size)
{
	struct thread_state *thread = findnew_thread(ss, event->namespaces.pid,
						     event->namespaces.tid);
	union perf_event *copy;

	if (!thread)
		return -ENOMEM;
	copy = ss_dup(ss, event, size);
	if (!copy)
		return -ENOMEM;
	ss_free(ss, thread->namespaces, thread->namespaces_size);
	thread->namespaces = copy;
	thread->namespaces_size = size;
	return 0;
}

/* The kernel */

static int compare_kernel(const struct kernel_record *record, u32 type, u64 key)
{
	if (record->type != type)
		return type < record->type ? -1 : 1;
	if (record->key != key)
		return key < record->key ? -1 : 1;
	return 0;
}

static void free_kernel(struct sideband_store *ss, struct kernel_record *record)
{
	rb_erase(&record->node, &ss->kernel);
	list_del(&record->doubt.list);
	ss_free(ss, record->event, record->size);
	ss_free(ss, record, sizeof(*record));
	ss->stats.kernel--;
}

static struct kernel_record *findnew_kernel(struct sideband_store *ss, u32 type, u64 key,
					    bool create)
{
	struct rb_node **p = &ss->kernel.rb_node, *parent = NULL;
	struct kernel_record *record;

	while (*p) {
		int cmp;

		parent = *p;
		record = rb_entry(parent, struct kernel_record, node);
		cmp = compare_kernel(record, type, key);
		if (!cmp)
			return record;
		p = cmp < 0 ? &parent->rb_left : &parent->rb_right;
	}
	if (!create)
		return NULL;

	record = ss_alloc(ss, sizeof(*record));
	if (!record)
		return NULL;
	record->type = type;
	record->key = key;
	INIT_LIST_HEAD(&record->doubt.list);
	rb_link_node(&record->node, parent, p);
	rb_insert_color(&record->node, &ss->kernel);
	ss->stats.kernel++;
	return record;
}

static int fold_kernel(struct sideband_store *ss, const union perf_event *event,
		       size_t size, u64 key)
{
	struct kernel_record *record = findnew_kernel(ss, event->header.type, key, true);
	union perf_event *copy;

	if (!record)
		return -ENOMEM;
	copy = ss_dup(ss, event, size);
	if (!copy) {
		if (!record->event)
			free_kernel(ss, record);
		return -ENOMEM;
	}
	ss_free(ss, record->event, record->size);
	record->event = copy;
	record->size = size;
	list_del_init(&record->doubt.list);
	return 0;
}

static int remove_kernel(struct sideband_store *ss, u32 type, u64 key)
{
	struct kernel_record *record = findnew_kernel(ss, type, key, false);

	if (record)
		free_kernel(ss, record);
	return 0;
}

static int fold_ksymbol(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	if (event->ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER)
		return remove_kernel(ss, event->header.type, event->ksymbol.addr);
	return fold_kernel(ss, event, size, event->ksymbol.addr);
}

static int fold_bpf(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	if (event->bpf.type == PERF_BPF_EVENT_PROG_UNLOAD)
		return remove_kernel(ss, event->header.type, event->bpf.id);
	return fold_kernel(ss, event, size, event->bpf.id);
}

static int fold_cgroup(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	/* Used as the key of a lookup. */
	if (!memchr(event->cgroup.path, '\0', size - offsetof(struct perf_record_cgroup, path)))
		return -EBADMSG;
	return fold_kernel(ss, event, size, event->cgroup.id);
}

static int fold_text_poke(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	return fold_kernel(ss, event, size, event->text_poke.addr);
}

struct fold {
	int	(*fold)(struct sideband_store *ss, const union perf_event *event, size_t size);
	size_t	min;
};

/* Records shorter than @min are invalid. */
static const struct fold folds[] = {
	[PERF_RECORD_MMAP]	 = { fold_mmap, offsetof(struct perf_record_mmap, filename) },
	[PERF_RECORD_MMAP2]	 = { fold_mmap, offsetof(struct perf_record_mmap2, filename) },
	[PERF_RECORD_COMM]	 = { fold_comm, offsetof(struct perf_record_comm, comm) },
	[PERF_RECORD_FORK]	 = { fold_fork, sizeof(struct perf_record_fork) },
	[PERF_RECORD_EXIT]	 = { fold_exit, sizeof(struct perf_record_fork) },
	[PERF_RECORD_NAMESPACES] = { fold_namespaces, sizeof(struct perf_record_namespaces) },
	[PERF_RECORD_KSYMBOL]	 = { fold_ksymbol, offsetof(struct perf_record_ksymbol, name) },
	[PERF_RECORD_BPF_EVENT]	 = { fold_bpf, sizeof(struct perf_record_bpf_event) },
	[PERF_RECORD_CGROUP]	 = { fold_cgroup, offsetof(struct perf_record_cgroup, path) },
	[PERF_RECORD_TEXT_POKE]	 = { fold_text_poke,
				     offsetof(struct perf_record_text_poke_event, bytes) },
};

/* Return whether sideband_store__fold() uses the record. */
bool sideband_store__is_sideband(const union perf_event *event)
{
	return event->header.type < ARRAY_SIZE(folds) && folds[event->header.type].fold;
}

/**
 * sideband_store__fold - update the state with a record
 * @ss: the store
 * @event: the record, written by the kernel or synthesized
 *
 * Return: 0, -EBADMSG for a record that is too short, or -ENOMEM if the limit is
 * reached or there is no memory.
 */
int sideband_store__fold(struct sideband_store *ss, const union perf_event *event)
{
	const struct fold *fold = &folds[event->header.type];

	if (!sideband_store__is_sideband(event))
		return 0;
	if (event->header.size < fold->min + ss->id_hdr_size)
		return -EBADMSG;
	return fold->fold(ss, event, event->header.size - ss->id_hdr_size);
}

static bool cgroup_is(const char *path, u64 id)
{
	struct cgroup cgroup = { .name = (char *)path };

	return !read_cgroup_id(&cgroup) && cgroup.id == id;
}

/* The cgroup with the lowest id from @id on. */
static struct kernel_record *next_cgroup(const struct sideband_store *ss, u64 id)
{
	struct rb_node *node = ss->kernel.rb_node;
	struct kernel_record *found = NULL;

	while (node) {
		struct kernel_record *record = rb_entry(node, struct kernel_record, node);

		if (compare_kernel(record, PERF_RECORD_CGROUP, id) <= 0) {
			found = record;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found && found->type == PERF_RECORD_CGROUP ? found : NULL;
}

/* The process with the lowest pid from @pid on. */
static struct process *next_process(const struct sideband_store *ss, s64 pid)
{
	struct rb_node *node = ss->processes.rb_node;
	struct process *found = NULL;

	while (node) {
		struct process *process = rb_entry(node, struct process, node);

		if (pid <= process->pid) {
			found = process;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

static void search__begin(struct search *search)
{
	*search = (struct search) { .state = SEARCH_CGROUPS };
}

/* In a container, where the root cgroup is not visible, paths cannot be checked. */
static void search_cgroup(struct sideband_store *ss, u64 until)
{
	struct kernel_record *record = next_cgroup(ss, ss->search.cgroup);

	/* The last id of all would be looked at again and again. */
	if (!record || record->key == -1ULL || (!ss->search.cgroup && !cgroup_is("/", 1))) {
		ss->search.state = SEARCH_PROCESSES;
		ss->search.pid = 1;
		return;
	}
	ss->search.cgroup = record->key + 1;
	if (!cgroup_is(record->event->cgroup.path, record->key))
		doubt__add(&record->doubt, &ss->cgroup_doubts, until);
}

static void search_process(struct sideband_store *ss, u64 until)
{
	struct process *process = next_process(ss, ss->search.pid);

	if (!process) {
		bool again = ss->search.again;

		ss->search.state = SEARCH_NONE;
		if (again)
			search__begin(&ss->search);
		return;
	}
	ss->search.pid = (s64)process->pid + 1;
	if (kill(process->pid, 0) && errno == ESRCH)
		doubt__add(&process->doubt, &ss->doubts, until);
}

/**
 * sideband_store__doubt_all - search for processes and cgroups that no longer exist
 * @ss: the store
 *
 * The search is done by sideband_store__doubt().
 */
void sideband_store__doubt_all(struct sideband_store *ss)
{
	if (ss->search.state == SEARCH_NONE)
		search__begin(&ss->search);
	else
		ss->search.again = true;
}

/**
 * sideband_store__doubt - continue the search for what no longer exists
 * @ss: the store
 * @until: position in the ring store up to which records may refer to it; it never
 *	decreases
 * @share: how much to look at: a process costs 1
 */
void sideband_store__doubt(struct sideband_store *ss, u64 until, unsigned int share)
{
	unsigned int done = 0;

	while (done < share && ss->search.state != SEARCH_NONE) {
		if (ss->search.state == SEARCH_CGROUPS) {
			search_cgroup(ss, until);
			done += CGROUP_COST;
		} else {
			search_process(ss, until);
			done++;
		}
	}
}

/**
 * sideband_store__settle - remove marked objects that no record refers to any more
 * @ss: the store
 * @now: position in the ring store up to which records have been folded
 * @share: how many to remove at most
 */
void sideband_store__settle(struct sideband_store *ss, u64 now, unsigned int share)
{
	struct kernel_record *record, *next_record;
	struct thread_state *thread, *next_thread;
	struct process *process, *next;

	list_for_each_entry_safe(thread, next_thread, &ss->ended, ended.list) {
		if (thread->ended.until > now || !share)
			break;
		end_thread(ss, thread);
		share--;
	}
	list_for_each_entry_safe(record, next_record, &ss->cgroup_doubts, doubt.list) {
		if (record->doubt.until > now || !share)
			break;
		free_kernel(ss, record);
		share--;
	}
	list_for_each_entry_safe(process, next, &ss->doubts, doubt.list) {
		if (process->doubt.until > now || !share)
			break;
		free_process(ss, process);
		share--;
	}
	sideband_memory__give_back(&ss->memory);
}

/**
 * sideband_store__keep_ended - keep threads whose exit is folded from now on
 * @ss: the store
 * @until: position up to which records may be of them, for sideband_store__settle(); it
 *	never decreases
 */
void sideband_store__keep_ended(struct sideband_store *ss, u64 until)
{
	ss->keep_until = until;
}

/**
 * sideband_store__shed_ended - remove threads that have exited if they take too much memory
 * @ss: the store
 */
void sideband_store__shed_ended(struct sideband_store *ss)
{
	while (ss->stats.used > ss->memory.limit / ENDED_SHARE && !list_empty(&ss->ended))
		end_thread(ss, list_first_entry(&ss->ended, struct thread_state, ended.list));
}

/* Return whether the store has the process. */
bool sideband_store__knows(const struct sideband_store *ss, pid_t pid)
{
	return find_process(ss, pid);
}

/* Description */

struct emitter {
	struct sideband_store	*ss;
	sideband_store_emit_t	emit;
	void			*data;
	char			*room;
};

/* Emit @event without its sample_id, for another task if @pid is not 0. */
static int emit_record(struct emitter *e, const union perf_event *event, size_t size, pid_t pid)
{
	union perf_event *copy = (union perf_event *)e->room;

	memcpy(copy, event, size);
	memset(e->room + size, 0, e->ss->id_hdr_size);
	copy->header.size = size + e->ss->id_hdr_size;
	if (pid) {
		copy->mmap.pid = pid;
		copy->mmap.tid = pid;
	}
	return e->emit(copy, e->data);
}

static int emit_fork(struct emitter *e, pid_t pid, pid_t tid, pid_t ppid)
{
	struct perf_record_fork fork = {
		.header.type = PERF_RECORD_FORK,
		/* The maps follow; they replace those of the parent. */
		.header.misc = PERF_RECORD_MISC_FORK_EXEC,
		.pid = pid, .tid = tid, .ppid = ppid, .ptid = ppid,
	};

	return emit_record(e, (union perf_event *)&fork, sizeof(fork), 0);
}

static int emit_comm(struct emitter *e, const struct thread_state *thread)
{
	union {
		struct perf_record_comm	comm;
		char			room[sizeof(struct perf_record_comm) + PATH_MAX];
	} u = {
		.comm.header.type = PERF_RECORD_COMM,
		.comm.pid = thread->process->pid,
		.comm.tid = thread->tid,
	};
	size_t len;

	if (!thread->comm)
		return 0;
	len = strnlen(thread->comm, PATH_MAX - 1);
	memcpy(u.room + offsetof(struct perf_record_comm, comm), thread->comm, len);
	len = offsetof(struct perf_record_comm, comm) + PERF_ALIGN(len + 1, sizeof(u64));
	return emit_record(e, (union perf_event *)&u, len, 0);
}

static int emit_thread(struct emitter *e, const struct thread_state *thread)
{
	pid_t pid = thread->process->pid;
	int err = 0;

	if (thread->tid != pid)
		err = emit_fork(e, pid, thread->tid, pid);
	else if (thread->process->ppid > 0)
		err = emit_fork(e, pid, pid, thread->process->ppid);
	if (!err && thread->namespaces)
		err = emit_record(e, thread->namespaces, thread->namespaces_size, 0);
	return err ?: emit_comm(e, thread);
}

/* The process whose maps are emitted. */
struct map_emitter {
	struct emitter	*e;
	pid_t		pid;
};

static int emit_map(const union perf_event *event, size_t size, void *data)
{
	struct map_emitter *me = data;

	return emit_record(me->e, event, size, me->pid);
}

static int emit_process(struct emitter *e, const struct process *process)
{
	struct map_emitter me = { .e = e, .pid = process->pid };
	struct thread_state *leader = find_thread(e->ss, process->pid), *thread;
	int err = 0;

	if (leader)
		err = emit_thread(e, leader);
	if (!err)
		err = map_set__emit(process->maps, e->ss->maps, emit_map, &me);
	list_for_each_entry(thread, &process->threads, list) {
		if (!err && thread != leader)
			err = emit_thread(e, thread);
	}
	return err;
}

/**
 * sideband_store__emit - describe the state with records
 * @ss: the store
 * @wanted: selects the processes to describe; NULL: all
 * @emit: called for each record
 * @data: passed to both
 *
 * The kernel comes first, then each process. The records have no time, so readers
 * apply them before all others.
 *
 * Return: 0, -ENOMEM, or the error of @emit.
 */
int sideband_store__emit(struct sideband_store *ss, sideband_store_wanted_t wanted,
			 sideband_store_emit_t emit, void *data)
{
	struct emitter e = { .ss = ss, .emit = emit, .data = data };
	struct rb_node *node;
	int err = 0;

	e.room = malloc(PERF_SAMPLE_MAX_SIZE + ss->id_hdr_size);
	if (!e.room)
		return -ENOMEM;

	for (node = rb_first(&ss->kernel); node && !err; node = rb_next(node)) {
		struct kernel_record *record = rb_entry(node, struct kernel_record, node);

		err = emit_record(&e, record->event, record->size, 0);
	}
	for (node = rb_first(&ss->processes); node && !err; node = rb_next(node)) {
		struct process *process = rb_entry(node, struct process, node);

		if (!wanted || wanted(process->pid, data))
			err = emit_process(&e, process);
	}
	free(e.room);
	return err;
}

/**
 * sideband_store__new - create a store
 * @limit: maximum memory in bytes
 * @id_hdr_size: size of the sample_id that follows each record
 */
struct sideband_store *sideband_store__new(size_t limit, size_t id_hdr_size)
{
	struct sideband_store *ss = zalloc(sizeof(*ss));

	if (!ss)
		return NULL;
	sideband_memory__init(&ss->memory, limit, &ss->stats);
	ss->maps = map_table__new(&ss->memory);
	if (!ss->maps) {
		free(ss);
		return NULL;
	}
	ss->id_hdr_size = id_hdr_size;
	INIT_LIST_HEAD(&ss->doubts);
	INIT_LIST_HEAD(&ss->cgroup_doubts);
	INIT_LIST_HEAD(&ss->ended);
	ss->processes = RB_ROOT;
	ss->threads = RB_ROOT;
	ss->kernel = RB_ROOT;
	return ss;
}

void sideband_store__set_id_hdr_size(struct sideband_store *ss, size_t id_hdr_size)
{
	ss->id_hdr_size = id_hdr_size;
}

void sideband_store__delete(struct sideband_store *ss)
{
	struct rb_node *node;

	if (!ss)
		return;
	while ((node = rb_first(&ss->processes)) != NULL)
		free_process(ss, rb_entry(node, struct process, node));
	while ((node = rb_first(&ss->kernel)) != NULL)
		free_kernel(ss, rb_entry(node, struct kernel_record, node));
	map_table__delete(ss->maps);
	sideband_memory__exit(&ss->memory);
	free(ss);
}

const struct sideband_stats *sideband_store__stats(const struct sideband_store *ss)
{
	return &ss->stats;
}
