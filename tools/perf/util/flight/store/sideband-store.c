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
 *	  maps -- disjoint mappings, sorted by address; after a fork parent and child
 *	      share them until one of them changes
 *	    map -- one PERF_RECORD_MMAP or MMAP2, reduced to the part that later
 *	      mappings do not cover
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
 * (PERF_RECORD_LOST), processes would stay forever. The owner then marks processes that
 * no longer exist (sideband_store__doubt). They are removed when everything that the
 * ring held at that time has been folded (sideband_store__settle). The kernel does not
 * record the removal of a cgroup either, and does not reuse its id; cgroups are handled
 * in the same way.
 */
#include "sideband-store.h"
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

/* Overhead of an allocation. */
#define MALLOC_OVERHEAD		16

/**
 * struct map_record - one mapping
 * @refcnt: number of sets of maps that contain it
 * @size: bytes of @event, without a sample_id
 * @event: the record
 */
struct map_record {
	int			refcnt;
	u16			size;
	union perf_event	*event;
};

struct map_set {
	int			refcnt;
	int			nr;
	int			room;
	struct map_record	**maps;
};

struct process {
	struct rb_node		node;
	pid_t			pid;
	pid_t			ppid;
	u64			doubt;		/* remove at this position; 0: keep */
	struct map_set		*maps;
	struct list_head	threads;
};

struct thread_state {
	struct rb_node		node;
	struct list_head	list;
	struct process		*process;
	pid_t			tid;
	char			*comm;
	union perf_event	*namespaces;
	u16			namespaces_size;
};

struct kernel_record {
	struct rb_node		node;
	u32			type;
	u64			key;
	u64			doubt;		/* as of a process */
	u16			size;
	union perf_event	*event;
};

struct sideband_store {
	size_t			limit;
	size_t			id_hdr_size;
	struct rb_root		processes;
	struct rb_root		threads;
	struct rb_root		kernel;
	bool			doubts;
	struct sideband_stats	stats;
};

/* Memory */

static void *ss_alloc(struct sideband_store *ss, size_t size)
{
	void *p = NULL;

	if (ss->stats.used + size + MALLOC_OVERHEAD <= ss->limit)
		p = zalloc(size);
	if (p)
		ss->stats.used += size + MALLOC_OVERHEAD;
	else
		ss->stats.dropped++;
	return p;
}

static void ss_free(struct sideband_store *ss, void *p, size_t size)
{
	if (!p)
		return;
	ss->stats.used -= size + MALLOC_OVERHEAD;
	free(p);
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

/* Maps */

static void map__put(struct sideband_store *ss, struct map_record *map)
{
	if (--map->refcnt)
		return;
	ss_free(ss, map->event, map->size);
	ss_free(ss, map, sizeof(*map));
	ss->stats.maps--;
}

static struct map_record *map__new(struct sideband_store *ss, const union perf_event *event,
				   size_t size)
{
	struct map_record *map = ss_alloc(ss, sizeof(*map));

	if (!map)
		return NULL;
	map->event = ss_dup(ss, event, size);
	if (!map->event) {
		ss_free(ss, map, sizeof(*map));
		return NULL;
	}
	map->refcnt = 1;
	map->size = size;
	ss->stats.maps++;
	return map;
}

/* MMAP and MMAP2 start with the same fields. */
static u64 map__start(const struct map_record *map)
{
	return map->event->mmap.start;
}

static u64 map__end(const struct map_record *map)
{
	return map->event->mmap.start + map->event->mmap.len;
}

static void map_set__put(struct sideband_store *ss, struct map_set *set)
{
	if (!set || --set->refcnt)
		return;
	for (int i = 0; i < set->nr; i++)
		map__put(ss, set->maps[i]);
	ss_free(ss, set->maps, set->room * sizeof(*set->maps));
	ss_free(ss, set, sizeof(*set));
}

static struct map_set *map_set__new(struct sideband_store *ss, int room)
{
	struct map_set *set = ss_alloc(ss, sizeof(*set));

	if (!set)
		return NULL;
	set->maps = ss_alloc(ss, room * sizeof(*set->maps));
	if (!set->maps) {
		ss_free(ss, set, sizeof(*set));
		return NULL;
	}
	set->refcnt = 1;
	set->room = room;
	return set;
}

/* Unshare the maps, with space for @more; NULL if there is no memory. */
static struct map_set *process__own_maps(struct sideband_store *ss, struct process *process,
					 int more)
{
	struct map_set *old = process->maps, *set;
	int nr = old ? old->nr : 0;

	if (old && old->refcnt == 1 && old->nr + more <= old->room)
		return old;

	set = map_set__new(ss, max(8, nr + nr / 2 + more));
	if (!set)
		return NULL;
	for (int i = 0; i < nr; i++) {
		set->maps[i] = old->maps[i];
		set->maps[i]->refcnt++;
	}
	set->nr = nr;
	map_set__put(ss, old);
	process->maps = set;
	return set;
}

/* The first map that ends above @start. */
static int map_set__find(const struct map_set *set, u64 start)
{
	int first = 0, end = set->nr;

	while (first < end) {
		int middle = first + (end - first) / 2;

		if (map__end(set->maps[middle]) <= start)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* A copy of the part of a map between two addresses; the map itself may be shared. */
static struct map_record *map__cut(struct sideband_store *ss, const struct map_record *map,
				   u64 start, u64 end)
{
	struct map_record *part = map__new(ss, map->event, map->size);

	if (!part)
		return NULL;
	part->event->mmap.pgoff += start - part->event->mmap.start;
	part->event->mmap.start = start;
	part->event->mmap.len = end - start;
	return part;
}

/* Insert @map, replacing everything that it covers. */
static int map_set__insert(struct sideband_store *ss, struct map_set *set,
			   struct map_record *map)
{
	u64 start = map__start(map), end = map__end(map);
	int first = map_set__find(set, start), last = first;
	struct map_record *left = NULL, *right = NULL;
	int nr = 0;

	while (last < set->nr && map__start(set->maps[last]) < end)
		last++;

	if (first < last && map__start(set->maps[first]) < start) {
		left = map__cut(ss, set->maps[first], map__start(set->maps[first]), start);
		if (!left)
			return -ENOMEM;
	}
	if (first < last && map__end(set->maps[last - 1]) > end) {
		right = map__cut(ss, set->maps[last - 1], end, map__end(set->maps[last - 1]));
		if (!right) {
			if (left)
				map__put(ss, left);
			return -ENOMEM;
		}
	}

	for (int i = first; i < last; i++)
		map__put(ss, set->maps[i]);
	nr = 1 + !!left + !!right;
	memmove(set->maps + first + nr, set->maps + last,
		(set->nr - last) * sizeof(*set->maps));
	set->nr += nr - (last - first);
	if (left)
		set->maps[first++] = left;
	set->maps[first++] = map;
	if (right)
		set->maps[first] = right;
	return 0;
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
	map_set__put(ss, process->maps);
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

	if (thread && thread->process->pid == pid)
		return thread;
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
	map_set__put(ss, process->maps);
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
	if (!synthesized && from && from->maps) {
		thread->process->maps = from->maps;
		from->maps->refcnt++;
	}
	return 0;
}

static int fold_exit(struct sideband_store *ss, const union perf_event *event,
		     size_t size __maybe_unused)
{
	struct thread_state *thread = find_thread(ss, event->fork.tid);

	if (thread && thread->process->pid == (pid_t)event->fork.pid)
		end_thread(ss, thread);
	return 0;
}

static int fold_kernel(struct sideband_store *ss, const union perf_event *event,
		       size_t size, u64 key);

static int fold_mmap(struct sideband_store *ss, const union perf_event *event, size_t size)
{
	struct thread_state *thread;
	struct map_record *map;
	struct map_set *set;

	if (event->mmap.pid == (u32)-1)
		return fold_kernel(ss, event, size, event->mmap.start);
	if (!event->mmap.len || event->mmap.start + event->mmap.len < event->mmap.start)
		return 0;

	thread = findnew_thread(ss, event->mmap.pid, event->mmap.tid);
	if (!thread)
		return -ENOMEM;
	set = process__own_maps(ss, thread->process, 2);
	if (!set)
		return -ENOMEM;
	map = map__new(ss, event, size);
	if (!map)
		return -ENOMEM;
	if (map_set__insert(ss, set, map)) {
		map__put(ss, map);
		return -ENOMEM;
	}
	return 0;
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
	record->doubt = 0;
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

/* In a container, where the root cgroup is not visible, paths cannot be checked. */
static void doubt_cgroups(struct sideband_store *ss, u64 until)
{
	bool sees_all = cgroup_is("/", 1);
	struct rb_node *node;

	for (node = rb_first(&ss->kernel); node && sees_all; node = rb_next(node)) {
		struct kernel_record *record = rb_entry(node, struct kernel_record, node);

		if (record->type == PERF_RECORD_CGROUP && !record->doubt &&
		    !cgroup_is(record->event->cgroup.path, record->key)) {
			record->doubt = until;
			ss->doubts = true;
		}
	}
}

/**
 * sideband_store__doubt - mark processes and cgroups that no longer exist
 * @ss: the store
 * @until: position in the ring store up to which records may refer to them
 */
void sideband_store__doubt(struct sideband_store *ss, u64 until)
{
	struct rb_node *node;

	doubt_cgroups(ss, until);
	for (node = rb_first(&ss->processes); node; node = rb_next(node)) {
		struct process *process = rb_entry(node, struct process, node);

		if (!process->doubt && process->pid > 0 &&
		    kill(process->pid, 0) && errno == ESRCH) {
			process->doubt = until;
			ss->doubts = true;
		}
	}
}

static void settle_cgroups(struct sideband_store *ss, u64 now)
{
	struct rb_node *node, *next;

	for (node = rb_first(&ss->kernel); node; node = next) {
		struct kernel_record *record = rb_entry(node, struct kernel_record, node);

		next = rb_next(node);
		if (!record->doubt)
			continue;
		if (record->doubt <= now)
			free_kernel(ss, record);
		else
			ss->doubts = true;
	}
}

/**
 * sideband_store__settle - remove marked objects that no record refers to any more
 * @ss: the store
 * @now: position in the ring store up to which records have been folded
 */
void sideband_store__settle(struct sideband_store *ss, u64 now)
{
	struct rb_node *node, *next;

	if (!ss->doubts)
		return;

	ss->doubts = false;
	settle_cgroups(ss, now);
	for (node = rb_first(&ss->processes); node; node = next) {
		struct process *process = rb_entry(node, struct process, node);

		next = rb_next(node);
		if (!process->doubt)
			continue;
		if (process->doubt <= now)
			free_process(ss, process);
		else
			ss->doubts = true;
	}
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

static int emit_process(struct emitter *e, const struct process *process)
{
	struct thread_state *leader = find_thread(e->ss, process->pid), *thread;
	int err = 0;

	if (leader)
		err = emit_thread(e, leader);
	for (int i = 0; !err && process->maps && i < process->maps->nr; i++) {
		const struct map_record *map = process->maps->maps[i];

		err = emit_record(e, map->event, map->size, process->pid);
	}
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
	ss->limit = limit;
	ss->id_hdr_size = id_hdr_size;
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
	free(ss);
}

const struct sideband_stats *sideband_store__stats(const struct sideband_store *ss)
{
	return &ss->stats;
}
