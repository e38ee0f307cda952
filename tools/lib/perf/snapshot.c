// SPDX-License-Identifier: GPL-2.0
/*
 * Read a backward ring buffer while it is being written
 *
 * Positions in a backward buffer run downwards: the newest record starts at
 * data_head, older ones follow above it, and the kernel puts the next record
 * below data_head, over the oldest bytes. One CPU at a time writes to it. A
 * snapshot is taken in three steps:
 *
 *   1. head = load_acquire(data_head): all above it is complete;
 *   2. copy the bytes from head upwards, to a linear buffer;
 *   3. verify: learn how many bytes were reserved below head up to the end of
 *	the copy (behind). The writer put them over the oldest part, so that
 *	[head, head + data_size - behind) is intact. The rest is dropped.
 *
 * Where step 3 disturbs nobody, steps 2 and 3 are made piece by piece, from the
 * oldest bytes to the newest. Count from head upwards: piece i holds the bytes
 * [from_i, to_i) of the copy, and to_i+1 = from_i. The writer comes from the
 * other end. Say that behind_i bytes were reserved when piece i had been copied:
 * then none of its bytes below good_i = data_size - behind_i had been touched
 * when they were copied, whatever is written to the buffer later. So
 *
 *	piece i is intact up to		good_i if good_i < to_i, else wholly
 *	the copy is intact up to	the least good_i that is < to_i,
 *					or, if there is none, its end.
 *
 * For a byte below that bound lies in some piece i. Either good_i >= to_i, and
 * that piece is intact; or good_i < to_i, and the byte lies below good_i. behind
 * never decreases, and no piece is verified before it was copied; nothing else
 * is needed. What is given up is, as a rule, what was written while the first
 * piece was copied. So that one is small, and each of the others as long as all
 * before it together: it takes as long as they took, and the writer, if it is no
 * more than half as fast as the copy, has not come to its place by then.
 *
 * data_head, read by another CPU, is not good enough for step 3: it moves when
 * a record is complete, and an incomplete one has overwritten old bytes as
 * well. There are three ways to do it, tried in this order:
 *
 *   ioctl  PERF_EVENT_IOC_RESERVED_HEAD returns what the kernel reserved. The
 *	    writer is not disturbed. Kernels without it say ENOTTY.
 *
 *   hop    A writer runs with preemption off. A thread that runs in user mode on
 *	    the writing CPU thus knows that no record is incomplete there, and may
 *	    read data_head. So the thread moves to that CPU and copies there; it
 *	    displaces the writer for the time of the copy, so that little is
 *	    written meanwhile. For an event that follows its task, nobody knows
 *	    where the writer is: the thread copies first and then visits every
 *	    CPU; wherever a record was incomplete at the end of the copy, it is
 *	    complete after that visit. A CPU that is offline has no writer.
 *
 *   pause  The buffer takes no more records until the copy is made. Those that
 *	    were begun run under rcu_read_lock(); membarrier() waits for a grace
 *	    period, after which they are complete. Where it is not to be had (on a
 *	    machine with nohz_full CPUs), 10 ms must do. Events are lost, but none
 *	    is torn, and disks are not waited for.
 *
 * If the writer came so far that less than half of what was copied is intact,
 * the copy is made anew: once more as it was, for most often the reader was
 * preempted, and after that half as long. That is the newest half, which takes
 * half the time. The next way is tried when a page is still too much, time and
 * again.
 *
 * Nothing in the shared memory is trusted. The mapping's length decides where
 * the data is; head only selects a place in it; a record must be at least a
 * header long, of a multiple of 8 bytes, and within the intact range. History
 * begins at position 0, where a fresh buffer has zeroes above.
 *
 * data_head of a 32-bit kernel is 32 bits wide. That of a 64-bit kernel has
 * some upper bit set, unless it is 0: it began there and went down. A 32-bit
 * reader may load its halves one from before, one from after a borrow; it is
 * then off by 4 GiB, which looks as if the writer had lapped the reader.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <linux/perf_persistent.h>

#include <perf/snapshot.h>

/* Records start at multiples of this. */
#define RECORD_ALIGN	8

/* Room in a CPU mask; the kernel cannot be built for more CPUs. */
#define MAX_CPUS	8192

/*
 * The first piece of a copy is a 64th of it, but no less than this. Does the
 * kernel interrupt the writing CPU to answer PERF_EVENT_IOC_RESERVED_HEAD? Then
 * it is asked once, of the whole copy.
 */
#define PIECES		64
#define MIN_PIECE	1024
#ifndef ASKING_INTERRUPTS
# if defined(__x86_64__)
#  define ASKING_INTERRUPTS	false
# elif defined(__i386__)
#  define ASKING_INTERRUPTS	false
# else
#  define ASKING_INTERRUPTS	true
# endif
#endif

/*
 * The copy is given memory for what the buffer holds, and for what comes meanwhile, in
 * parts of it.
 */
#define MARGIN		8
#ifndef MADV_POPULATE_WRITE
# define MADV_POPULATE_WRITE	23
#endif

/*
 * Copies that the writer may lap: before half as much is copied, and, of a page,
 * before this way is given up.
 */
#define MAX_TRIES	2
#define MAX_PAGE_TRIES	10

struct cpu_mask {
	cpu_set_t	sets[MAX_CPUS / CPU_SETSIZE];
};

/* The headers under tools/ know few system calls. */
#ifndef __NR_membarrier
# if defined(__x86_64__)
#  define __NR_membarrier	324
# elif defined(__i386__)
#  define __NR_membarrier	375
# elif defined(__aarch64__) || defined(__riscv)
#  define __NR_membarrier	283
# else
#  define __NR_membarrier	-1
# endif
#endif

#define CMD_MEMBARRIER_GLOBAL	1

struct perf_snapshot {
	struct perf_snapshot_buffer	buf;
	struct perf_snapshot_info	info;
	const unsigned char		*data;		/* of the ring buffer */
	size_t				size;		/* of the ring buffer */
	size_t				page_size;
	unsigned int			unknown;	/* ways the kernel lacks */

	/* The copy: byte 0 was at position info.head. */
	unsigned char			*copy;
	size_t				populated;
	size_t				copied;
	size_t				intact;

	/* Offsets in the copy, newest record first, in units of RECORD_ALIGN. */
	uint32_t			*records;
	size_t				room;
	size_t				cursor;

	/* Incremental reading: where the last snapshot began. */
	uint64_t			last_head;
	bool				has_last;
	bool				incremental;
};

/*
 * Positions
 */

/* Shared memory is loaded anew after this. Not all machines have 64-bit atomics. */
static inline void compiler_barrier(void)
{
	__asm__ __volatile__("" : : : "memory");
}

static uint64_t load_head(const struct perf_snapshot *snap)
{
	const struct perf_event_mmap_page *pc = snap->buf.base;
	uint64_t head;

	compiler_barrier();
	head = pc->data_head;
	/* Pairs with the barrier before the kernel's store to data_head. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return head;
}

/* How far @to is above @from, in the width of the kernel that moved them. */
static uint64_t distance(uint64_t from, uint64_t to)
{
	uint64_t d = to - from;

	return ((from | to) >> 32) ? d : (uint32_t)d;
}

/*
 * Bytes that were in the buffer when head was read and that the caller wants. On
 * a 32-bit kernel this is too little after each 4 GiB, for one buffer's length.
 */
static uint64_t wanted(const struct perf_snapshot *snap)
{
	uint64_t len = distance(snap->info.head, 0);

	if (snap->incremental) {
		uint64_t since = distance(snap->info.head, snap->last_head);

		if (since < len)
			len = since;
	}
	return len < snap->size ? len : snap->size;
}

/* The bytes [from, to) of the copy */
static void copy_piece(struct perf_snapshot *snap, size_t from, size_t to)
{
	size_t start = (snap->info.head + from) & (snap->size - 1);
	size_t len = to - from, first = snap->size - start;

	if (first > len)
		first = len;
	memcpy(snap->copy + from, snap->data + start, first);
	memcpy(snap->copy + from + first, snap->data, len - first);

	/* The loads above are done before the loads of the verification. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* @behind bytes were reserved by the time the piece that ends at @to was copied. */
static void verify_piece(struct perf_snapshot *snap, size_t to, uint64_t behind)
{
	uint64_t good = behind < snap->size ? snap->size - behind : 0;

	if (good < to && good < snap->intact)
		snap->intact = good;
	snap->info.behind = behind;
}

/* So little is intact that a shorter copy is made instead. */
static bool is_lapped(const struct perf_snapshot *snap)
{
	return snap->copied > snap->page_size && snap->intact < snap->copied / 2;
}

/*
 * All three steps, for at most @max bytes, the newest ones. @first: size of the
 * first piece. @reserved: how many bytes are reserved below head
 */
static int copy_ring(struct perf_snapshot *snap, size_t max, size_t first,
		     int (*reserved)(struct perf_snapshot *snap, uint64_t *behind))
{
	size_t len, to, done = 0;
	uint64_t behind = 0;
	int err;

	snap->info.head = load_head(snap);
	if (snap->info.head % RECORD_ALIGN)
		return -EBADMSG;

	len = wanted(snap);
	if (len > max)
		len = max;
	snap->copied = len;
	snap->intact = len;

	do {
		to = len - done;
		done = done ? 2 * done : first;
		if (done > len)
			done = len;
		copy_piece(snap, len - done, to);

		err = reserved(snap, &behind);
		if (err)
			return err;
		verify_piece(snap, to, behind);
	} while (done < len && !is_lapped(snap));

	return 0;
}

static size_t first_piece(size_t max)
{
	return max / PIECES > MIN_PIECE ? max / PIECES : MIN_PIECE;
}

/*
 * The ways. Each copies at most max bytes and verifies them.
 * -EOPNOTSUPP: does not work here; another way may.
 */

static int reserved_by_ioctl(struct perf_snapshot *snap, uint64_t *behind)
{
	struct perf_rb_reserved reserved = { .head = snap->info.head };

	if (ioctl(snap->buf.fd, PERF_EVENT_IOC_RESERVED_HEAD, &reserved)) {
		if (errno == ENOTTY)
			snap->unknown |= PERF_SNAPSHOT_NO_IOCTL;
		if (errno == ENOTTY || errno == EPERM)
			return -EOPNOTSUPP;
		return -errno;
	}
	if (reserved.data_size != snap->size)
		return -EBADMSG;

	*behind = reserved.behind;
	return 0;
}

static int take_ioctl(struct perf_snapshot *snap, size_t max)
{
	return copy_ring(snap, max, ASKING_INTERRUPTS ? max : first_piece(max),
			 reserved_by_ioctl);
}

static int set_affinity(struct cpu_mask *mask)
{
	return sched_setaffinity(0, sizeof(*mask), mask->sets);
}

/* Run on @cpu from here on. */
static int move_to(int cpu)
{
	struct cpu_mask mask = {};

	CPU_SET_S(cpu, sizeof(mask), mask.sets);
	return set_affinity(&mask);
}

static bool test_cpu(int cpu, struct cpu_mask *mask)
{
	return CPU_ISSET_S(cpu, sizeof(*mask), mask->sets);
}

/* The online CPUs, in sysfs a list like "0-3,5" */
static int get_online(struct cpu_mask *mask)
{
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	int first, last, err = -ENOENT;
	char sep = ',';

	memset(mask, 0, sizeof(*mask));
	if (!f)
		return err;

	while (sep == ',' && fscanf(f, "%d%c", &first, &sep) == 2) {
		last = first;
		if (sep == '-' && fscanf(f, "%d%c", &last, &sep) != 2)
			break;
		if (first < 0 || last >= MAX_CPUS)
			break;
		for (; first <= last; first++)
			CPU_SET_S(first, sizeof(*mask), mask->sets);
		if (sep == '\n')
			err = 0;
	}
	fclose(f);
	return err;
}

/*
 * After the copy: no record is incomplete that was begun on @cpu before this was
 * called. We are in user mode there, or the CPU is offline.
 */
static bool is_quiet(int cpu)
{
	struct cpu_mask online;

	if (sched_getcpu() == cpu)
		return true;
	return !get_online(&online) && !test_cpu(cpu, &online);
}

static bool visit_all(void)
{
	struct cpu_mask online;
	int cpu;

	if (get_online(&online))
		return false;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		if (!test_cpu(cpu, &online))
			continue;
		move_to(cpu);
		if (!is_quiet(cpu))
			return false;
	}
	return true;
}

/* We are where the writer would be, or nobody is. */
static int reserved_here(struct perf_snapshot *snap, uint64_t *behind)
{
	if (!is_quiet(snap->buf.cpu))
		return -EOPNOTSUPP;
	*behind = distance(load_head(snap), snap->info.head);
	return 0;
}

static int reserved_anywhere(struct perf_snapshot *snap, uint64_t *behind)
{
	if (!visit_all())
		return -EOPNOTSUPP;
	*behind = distance(load_head(snap), snap->info.head);
	return 0;
}

static int take_hop(struct perf_snapshot *snap, size_t max)
{
	struct cpu_mask saved;
	int err;

	if (sched_getaffinity(0, sizeof(saved), saved.sets))
		return -EOPNOTSUPP;

	if (snap->buf.cpu >= 0) {
		move_to(snap->buf.cpu);
		err = copy_ring(snap, max, first_piece(max), reserved_here);
	} else {
		err = copy_ring(snap, max, max, reserved_anywhere);
	}
	set_affinity(&saved);
	return err;
}

static int reserved_in_pause(struct perf_snapshot *snap, uint64_t *behind)
{
	*behind = distance(load_head(snap), snap->info.head);
	return 0;
}

static int take_pause(struct perf_snapshot *snap, size_t max)
{
	const struct timespec ms10 = { .tv_nsec = 10 * 1000 * 1000 };
	int err;

	if (ioctl(snap->buf.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1UL))
		return -EOPNOTSUPP;

	if (syscall(__NR_membarrier, CMD_MEMBARRIER_GLOBAL, 0, 0))
		nanosleep(&ms10, NULL);
	err = copy_ring(snap, max, max, reserved_in_pause);

	if (ioctl(snap->buf.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0UL) && !err)
		err = -errno;
	return err;
}

/* In the order in which they are tried. */
static const struct {
	const char	*name;
	unsigned int	exclude;	/* the flag that rules it out */
	int		(*take)(struct perf_snapshot *snap, size_t max);
} ways[] = {
	[PERF_SNAPSHOT_NONE]  = { "none",  0, NULL },
	[PERF_SNAPSHOT_IOCTL] = { "ioctl", PERF_SNAPSHOT_NO_IOCTL, take_ioctl },
	[PERF_SNAPSHOT_HOP]   = { "hop",   PERF_SNAPSHOT_NO_HOP,   take_hop },
	[PERF_SNAPSHOT_PAUSE] = { "pause", PERF_SNAPSHOT_NO_PAUSE, take_pause },
};

/*
 * Records
 */

static int add_record(struct perf_snapshot *snap, size_t offset)
{
	size_t nr = snap->info.nr_records;

	if (nr == snap->room) {
		size_t room = snap->room ? 2 * snap->room : 1024;
		uint32_t *records = realloc(snap->records, room * sizeof(*records));

		if (!records)
			return -ENOMEM;
		snap->records = records;
		snap->room = room;
	}
	snap->records[nr] = offset / RECORD_ALIGN;
	snap->info.nr_records++;
	return 0;
}

/* Find the whole records in the intact part of the copy. */
static int index_records(struct perf_snapshot *snap)
{
	size_t end = snap->intact, offset = 0;
	struct perf_event_header header;
	int err;

	snap->info.nr_records = 0;
	while (offset + sizeof(header) <= end) {
		memcpy(&header, snap->copy + offset, sizeof(header));
		if (header.size < sizeof(header) || header.size % RECORD_ALIGN ||
		    !header.type)
			return -EBADMSG;
		if (header.size > end - offset)
			break;
		err = add_record(snap, offset);
		if (err)
			return err;
		offset += header.size;
	}
	snap->info.len = offset;
	return 0;
}

/* Fill in what follows from head, behind and the records. */
static int conclude(struct perf_snapshot *snap)
{
	struct perf_snapshot_info *info = &snap->info;
	uint64_t in_buffer = wanted(snap);

	info->wrapped = distance(info->head, 0) > snap->size;
	info->given_up = in_buffer - snap->intact;
	if (snap->incremental)
		info->gap = distance(info->head, snap->last_head) - info->len;

	/* All of history, or all that is new, ends with a whole record. */
	if (snap->intact == in_buffer && in_buffer < snap->size && info->len != in_buffer)
		return -EBADMSG;
	return 0;
}

/* Try again, and halve the length, until what is intact is worth it. */
static int take_one_way(struct perf_snapshot *snap,
			int (*take)(struct perf_snapshot *snap, size_t max))
{
	size_t max = snap->size;
	int err, tries = 0;

	for (;;) {
		err = take(snap, max);
		if (err)
			return err;

		if (!is_lapped(snap)) {
			err = index_records(snap);
			if (err)
				return err;
			if (snap->info.nr_records || !snap->copied)
				return conclude(snap);
		}

		/* A buffer that fills has more to copy each time, and fewer tries. */
		if (++tries >= (snap->copied > snap->page_size ? MAX_TRIES : MAX_PAGE_TRIES)) {
			if (snap->copied <= snap->page_size)
				return -EAGAIN;
			max = snap->copied / 2;
			tries = 0;
		}
		snap->info.retries++;
	}
}

static void forget(struct perf_snapshot *snap)
{
	memset(&snap->info, 0, sizeof(snap->info));
	snap->info.data_size = snap->size;
	snap->copied = 0;
	snap->intact = 0;
	snap->cursor = 0;
}

/*
 * Page faults in the copy would give the writer time to run ahead. A buffer that is not full
 * is not given what it does not need.
 */
static void populate(struct perf_snapshot *snap)
{
	uint64_t len = distance(load_head(snap), 0);
	size_t margin = snap->size / MARGIN;

	len = len < snap->size ? len : snap->size;
	if (snap->populated && len <= snap->populated)
		return;
	len = len + margin < snap->size ? len + margin : snap->size;
	len = (len + snap->page_size - 1) & ~(uint64_t)(snap->page_size - 1);
	/* Kernels before 5.14 do not do it; they lose some of the buffer, no more. */
	madvise(snap->copy + snap->populated, len - snap->populated, MADV_POPULATE_WRITE);
	snap->populated = len;
}

int perf_snapshot__prepare(struct perf_snapshot *snap)
{
	void *copy = snap->copy;

	if (!copy)
		copy = mmap(NULL, snap->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	snap->copy = copy;
	populate(snap);
	return 0;
}

void perf_snapshot__release(struct perf_snapshot *snap)
{
	forget(snap);
	if (snap->copy)
		munmap(snap->copy, snap->size);
	snap->copy = NULL;
	snap->populated = 0;
	free(snap->records);
	snap->records = NULL;
	snap->room = 0;
}

int perf_snapshot__take(struct perf_snapshot *snap, unsigned int flags)
{
	enum perf_snapshot_way way;
	unsigned int retries = 0;
	int err = -EOPNOTSUPP;
	int ret;

	forget(snap);
	ret = perf_snapshot__prepare(snap);
	if (ret)
		return ret;

	snap->incremental = (flags & PERF_SNAPSHOT_INCREMENTAL) && snap->has_last;

	for (way = PERF_SNAPSHOT_IOCTL; way <= PERF_SNAPSHOT_PAUSE; way++) {
		if ((flags | snap->unknown) & ways[way].exclude)
			continue;

		forget(snap);
		snap->info.retries = retries;
		ret = take_one_way(snap, ways[way].take);
		if (!ret) {
			snap->info.way = way;
			snap->last_head = snap->info.head;
			snap->has_last = true;
			return 0;
		}
		retries = snap->info.retries;
		if (ret != -EOPNOTSUPP)
			err = ret;
		if (ret != -EOPNOTSUPP && ret != -EAGAIN)
			break;
	}

	forget(snap);
	snap->info.retries = retries;
	return err;
}

const struct perf_snapshot_info *perf_snapshot__info(const struct perf_snapshot *snap)
{
	return &snap->info;
}

const char *perf_snapshot__way_name(enum perf_snapshot_way way)
{
	return (unsigned int)way <= PERF_SNAPSHOT_PAUSE ? ways[way].name : "?";
}

void *perf_snapshot__data(struct perf_snapshot *snap, size_t *len)
{
	*len = snap->info.len;
	return snap->copy;
}

static union perf_event *record(struct perf_snapshot *snap, size_t i)
{
	if (i >= snap->info.nr_records)
		return NULL;
	snap->cursor = i;
	return (union perf_event *)(snap->copy + (size_t)snap->records[i] * RECORD_ALIGN);
}

/* The place of a record in the index; nearly always the one last returned. */
static size_t find(struct perf_snapshot *snap, const union perf_event *event)
{
	size_t first = 0, end = snap->info.nr_records, middle;
	uint32_t offset = ((const unsigned char *)event - snap->copy) / RECORD_ALIGN;

	if (snap->cursor < end && snap->records[snap->cursor] == offset)
		return snap->cursor;

	while (first < end) {
		middle = first + (end - first) / 2;
		if (snap->records[middle] < offset)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

union perf_event *perf_snapshot__older(struct perf_snapshot *snap,
				       const union perf_event *event)
{
	return record(snap, event ? find(snap, event) + 1 : 0);
}

/* Before the first comes SIZE_MAX, which is no record. */
union perf_event *perf_snapshot__newer(struct perf_snapshot *snap,
				       const union perf_event *event)
{
	return record(snap, (event ? find(snap, event) : snap->info.nr_records) - 1);
}

int perf_snapshot__window(struct perf_snapshot *snap, perf_snapshot_time_t time,
			  void *data, __u64 *oldest, __u64 *newest)
{
	union perf_event *event = NULL;

	do {
		event = perf_snapshot__newer(snap, event);
		if (!event)
			return -ENOENT;
	} while (!time(event, data, oldest));

	event = NULL;
	do {
		event = perf_snapshot__older(snap, event);
	} while (!time(event, data, newest));

	return 0;
}

/*
 * Creation
 */

/* The header page says the same as the mapping, or nothing (old kernels). */
static bool header_page_is_sane(const struct perf_snapshot *snap)
{
	const struct perf_event_mmap_page *pc = snap->buf.base;
	uint64_t offset = pc->data_offset;
	uint64_t size = pc->data_size;

	compiler_barrier();
	return (!offset && !size) || (offset == snap->page_size && size == snap->size);
}

struct perf_snapshot *perf_snapshot__new(const struct perf_snapshot_buffer *buf)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	struct perf_snapshot *snap;
	size_t size;

	errno = EINVAL;
	if (!buf->base || buf->len < 2 * page_size ||
	    buf->cpu < -1 || buf->cpu >= MAX_CPUS)
		return NULL;
	size = buf->len - page_size;
	if ((size & (size - 1)) || size / RECORD_ALIGN > UINT32_MAX)
		return NULL;

	snap = calloc(1, sizeof(*snap));
	if (!snap)
		return NULL;

	snap->buf = *buf;
	snap->data = (const unsigned char *)buf->base + page_size;
	snap->size = size;
	snap->page_size = page_size;
	if (!header_page_is_sane(snap)) {
		free(snap);
		errno = EBADMSG;
		return NULL;
	}
	forget(snap);
	return snap;
}

void perf_snapshot__delete(struct perf_snapshot *snap)
{
	if (!snap)
		return;
	perf_snapshot__release(snap);
	free(snap);
}
