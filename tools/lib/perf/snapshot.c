// SPDX-License-Identifier: GPL-2.0
/*
 * Read a backward ring buffer while it is being written
 *
 * Positions in a backward buffer decrease: the newest record starts at
 * data_head, older records follow above it, and the kernel writes the next
 * record below data_head, over the oldest bytes. Only one CPU writes to the
 * buffer at a time. A snapshot takes three steps:
 *
 *   1. head = load_acquire(data_head). All records above it are complete.
 *   2. Copy the bytes from head upwards to a linear buffer.
 *   3. Verify: get the number of bytes that were reserved below head until
 *	the copy was complete (behind). They overwrote the oldest part, so
 *	[head, head + data_size - behind) is intact. Drop the rest.
 *
 * If step 3 does not disturb the writer, steps 2 and 3 are done piece by piece,
 * from the oldest bytes to the newest. Offsets count from head upwards. Piece i
 * is the range [from_i, to_i) of the copy, with to_i+1 = from_i. The writer
 * comes from the other end. Let behind_i be the bytes reserved when piece i had
 * been copied. Bytes of the piece below good_i = data_size - behind_i were
 * intact when they were copied, and later writes do not matter. Hence
 *
 *	piece i is intact up to		good_i if good_i < to_i, else completely
 *	the copy is intact up to	the smallest good_i that is < to_i,
 *					or, if there is none, its end.
 *
 * Proof: a byte below this bound is in some piece i. Either good_i >= to_i, and
 * the piece is intact, or good_i < to_i, and the byte is below good_i. This
 * requires only that behind never decreases, and that a piece is verified after
 * it was copied. Usually only as much is lost as was written while the first
 * piece was copied. The first piece is therefore small, and each further piece
 * is as long as all pieces before it together. Copying it takes as long as they
 * took, so a writer that is at most half as fast as the copy has not reached it
 * by then.
 *
 * It is not sufficient to read data_head again from another CPU in step 3:
 * data_head moves when a record is complete, but an incomplete record has
 * overwritten old bytes, too. There are three methods, tried in this order:
 *
 *   ioctl  PERF_EVENT_IOC_RESERVED_HEAD returns what the kernel has reserved.
 *	    Kernels without it return ENOTTY. On x86 the writer is not disturbed.
 *	    On other machines the kernel may have to interrupt the writing CPU.
 *	    It returns EPERM for a nohz_full CPU if CAP_PERFMON is missing.
 *
 *   hop    Writers run with preemption disabled. If a thread runs in user mode
 *	    on the writing CPU, no record is incomplete there, and it may use
 *	    data_head. So the thread moves to that CPU and copies there. It
 *	    displaces the writer during the copy, so little is written meanwhile.
 *	    The CPU of an event that follows its task is not known. In that case
 *	    the thread copies first and then visits every CPU. A record that was
 *	    incomplete at the end of the copy is complete after the visit. An
 *	    offline CPU has no writer.
 *
 *   pause  The buffer is paused during the copy. Writers that have started run
 *	    under rcu_read_lock(), and membarrier() waits for a grace period, so
 *	    they are complete afterwards. If membarrier() is not available (on a
 *	    machine with nohz_full CPUs), wait for 10 ms instead. Events are lost,
 *	    but no record is torn, and the pause does not include disk I/O.
 *
 * If less than half of the copy is intact, it is repeated: once with the same
 * length, because most often the reader was preempted, and then with half the
 * length. This copies the newest half and takes half the time. If a copy of one
 * page or less fails MAX_PAGE_TRIES times, the next method is tried.
 *
 * The cost of an incremental snapshot depends on the new records only. If data_head
 * has not moved, the snapshot copies and allocates nothing and makes no system
 * call. The memory of the copy can be kept for the next snapshot.
 * perf_snapshot__trim() reduces it to what recent snapshots needed. A copy that is
 * made for an incremental snapshot uses no huge pages, which would be mostly unused.
 *
 * Parts: the newest bytes, or the oldest ones, can be copied alone. Steps 1 to 3
 * apply to them unchanged, because a bound of the whole copy is a bound of each
 * part of it. Records of a backward buffer can only be walked towards older ones,
 * so the oldest bytes may begin in the middle of a record. The caller has to find
 * the first record.
 *
 * No data in shared memory is trusted. The length of the mapping determines the
 * position of the data. head only selects an offset in it. A record must have at
 * least the size of a header, be a multiple of 8 bytes long, and be within the
 * intact range. History starts at position 0; a new buffer has zeroes above.
 *
 * data_head is 32 bits wide on a 32-bit kernel. On a 64-bit kernel one of its
 * upper bits is set unless it is 0, because it starts at 0 and decreases. A
 * 32-bit reader may load one half from before a borrow and the other one from
 * after it. The value is then off by 4 GiB, as if the writer had lapped the
 * reader.
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

/* Alignment of records. */
#define RECORD_ALIGN	8

/* Size of a CPU mask; kernels do not support more CPUs. */
#define MAX_CPUS	8192

/*
 * The first piece of a copy is a 64th of it, but not smaller than this. If the
 * kernel must interrupt the writing CPU for PERF_EVENT_IOC_RESERVED_HEAD, the
 * ioctl is called only once, for the whole copy.
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
 * The memory of the copy is populated for the content of the buffer and, in addition,
 * for a fraction (1/MARGIN) of its size, for records that arrive meanwhile: at most for
 * as much as it holds, and MIN_MARGIN.
 */
#define MARGIN		8
#define MIN_MARGIN	65536

/* perf_snapshot__trim() forgets what was needed after about so many snapshots. */
#define KEEP_PASSES	8

#ifndef MADV_POPULATE_WRITE
# define MADV_POPULATE_WRITE	23
#endif

/*
 * How often the writer may lap a copy before the length is halved, and how often it
 * may lap a copy of one page before the next method is tried.
 */
#define MAX_TRIES	2
#define MAX_PAGE_TRIES	10

struct cpu_mask {
	cpu_set_t	sets[MAX_CPUS / CPU_SETSIZE];
};

/* The headers below tools/ do not define all system calls. */
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
	bool				is_mapping;	/* buf.base is ours to unmap */
	struct perf_snapshot_info	info;
	const unsigned char		*data;		/* of the ring buffer */
	size_t				size;		/* of the ring buffer */
	size_t				page_size;
	unsigned int			unknown;	/* unsupported methods */

	/* The copy. Byte 0 is at position info.head. */
	unsigned char			*copy;
	size_t				populated;
	size_t				copied;
	size_t				intact;
	bool				small_pages;	/* no huge pages */

	/* The part to copy: the newest @max bytes without the newest @from. */
	size_t				max;
	size_t				from;
	size_t				oldest;		/* bytes; 0: all */

	/* Bytes that recent snapshots needed; decays. */
	size_t				keep;

	/* Offsets in the copy, newest record first, in units of RECORD_ALIGN. */
	uint32_t			*records;
	size_t				room;
	size_t				cursor;

	/* Incremental reading: where the last snapshot began. */
	uint64_t			last_head;
	enum perf_snapshot_way		last_way;
	bool				has_last;
	bool				incremental;
};

/*
 * Positions
 */

/* A compiler barrier for shared memory: not all machines have 64-bit atomics. */
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

/* The distance from @from up to @to, in the width of the kernel's counter. */
static uint64_t distance(uint64_t from, uint64_t to)
{
	uint64_t d = to - from;

	return ((from | to) >> 32) ? d : (uint32_t)d;
}

/*
 * Number of bytes in the buffer at @head that the caller needs. On a 32-bit kernel it
 * is too small after each 4 GiB, for the length of one buffer.
 */
static uint64_t wanted(const struct perf_snapshot *snap, uint64_t head)
{
	uint64_t len = distance(head, 0);

	if (snap->incremental) {
		uint64_t since = distance(head, snap->last_head);

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

	/* Order the loads above before the loads of the verification. */
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

/* Too little is intact: make a shorter copy instead. */
static bool is_lapped(const struct perf_snapshot *snap)
{
	size_t middle = snap->from + (snap->copied - snap->from) / 2;

	return snap->copied > snap->page_size && snap->intact < middle;
}

/*
 * All three steps, for the newest @max bytes at most. @first: size of the first
 * piece. @reserved: returns the number of bytes reserved below head
 */
static int copy_ring(struct perf_snapshot *snap, size_t max, size_t first,
		     int (*reserved)(struct perf_snapshot *snap, uint64_t *behind))
{
	size_t len, all, to, done = 0;
	uint64_t behind = 0;
	int err;

	snap->info.head = load_head(snap);
	if (snap->info.head % RECORD_ALIGN)
		return -EBADMSG;

	len = wanted(snap, snap->info.head);
	if (len > max)
		len = max;
	snap->copied = len;
	snap->intact = len;
	snap->from = snap->oldest && snap->oldest < len ? len - snap->oldest : 0;
	all = len - snap->from;
	/* A part is as small as a piece. */
	if (snap->max < snap->size)
		first = all;

	do {
		to = len - done;
		done = done ? 2 * done : first;
		if (done > all)
			done = all;
		copy_piece(snap, len - done, to);

		err = reserved(snap, &behind);
		if (err)
			return err;
		verify_piece(snap, to, behind);
	} while (done < all && !is_lapped(snap));

	return 0;
}

static size_t first_piece(size_t max)
{
	return max / PIECES > MIN_PIECE ? max / PIECES : MIN_PIECE;
}

/*
 * The methods. Each copies at most max bytes and verifies them.
 * -EOPNOTSUPP: not supported here, try the next method.
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
 * After the copy: all records that were started on @cpu before the call are now
 * complete, because this thread runs there in user mode, or the CPU is offline.
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

/* This thread runs on the writing CPU, or the CPU is offline. */
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

/* In the order of preference. */
static const struct {
	const char	*name;
	unsigned int	exclude;	/* the flag that disables it */
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
	uint64_t in_buffer = wanted(snap, snap->info.head);

	info->wrapped = distance(info->head, 0) > snap->size;
	info->given_up = in_buffer - snap->intact;
	if (snap->incremental)
		info->gap = distance(info->head, snap->last_head) - info->len;

	/* A complete history, or a complete increment, ends with a whole record. */
	if (snap->intact == in_buffer && in_buffer < snap->size && info->len != in_buffer)
		return -EBADMSG;
	return 0;
}

/* Repeat, and halve the length, until enough of the copy is intact. */
static int take_one_way(struct perf_snapshot *snap,
			int (*take)(struct perf_snapshot *snap, size_t max))
{
	size_t max = snap->max;
	int err, tries = 0;

	for (;;) {
		err = take(snap, max);
		if (err)
			return err;

		/* Where a record begins is not known. */
		if (snap->oldest && !is_lapped(snap) &&
		    (snap->intact > snap->from || !snap->copied))
			return 0;
		if (!snap->oldest && !is_lapped(snap)) {
			err = index_records(snap);
			if (err)
				return err;
			if (snap->info.nr_records || !snap->copied)
				return conclude(snap);
		}

		/* A buffer that is filling up has more to copy each time. */
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
 * Populate the memory of the copy: page faults during the copy would let the writer run
 * ahead. A buffer that is not full, or has little new, gets only what it needs.
 */
static void populate(struct perf_snapshot *snap, uint64_t len)
{
	size_t margin = (snap->incremental ? len : snap->size) / MARGIN;

	/* A buffer that is nearly empty does not fill up meanwhile. */
	if (margin > len + MIN_MARGIN)
		margin = len + MIN_MARGIN;
	if (len > snap->max)
		len = snap->max;
	if (snap->populated && len <= snap->populated)
		return;
	len = len + margin < snap->max ? len + margin : snap->max;
	len = (len + snap->page_size - 1) & ~(uint64_t)(snap->page_size - 1);
	/* Kernels before 5.14 do not support this; the snapshot is then shorter. */
	madvise(snap->copy + snap->populated, len - snap->populated, MADV_POPULATE_WRITE);
	snap->populated = len;
}

/* A few bytes of a large buffer are to take a few pages. */
static int allocate(struct perf_snapshot *snap, bool small_pages)
{
	void *copy;

	if (snap->copy)
		return 0;
	copy = mmap(NULL, snap->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	if (small_pages)
		madvise(copy, snap->size, MADV_NOHUGEPAGE);
	snap->copy = copy;
	snap->small_pages = small_pages;
	return 0;
}

int perf_snapshot__prepare(struct perf_snapshot *snap, unsigned int flags)
{
	uint64_t len;
	int err;

	snap->incremental = (flags & PERF_SNAPSHOT_INCREMENTAL) && snap->has_last;
	snap->max = snap->size;
	snap->oldest = 0;

	len = wanted(snap, load_head(snap));
	if (snap->incremental && !len)
		return 0;
	err = allocate(snap, snap->incremental);
	if (!err)
		populate(snap, len);
	return err;
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

void perf_snapshot__trim(struct perf_snapshot *snap)
{
	size_t len = (snap->info.len + snap->page_size - 1) & ~(snap->page_size - 1);
	bool is_part = snap->oldest || snap->max < snap->size;

	snap->keep -= snap->keep / KEEP_PASSES;
	/* A full copy, as the first one is, says nothing about the next ones. */
	if (snap->incremental && len > snap->keep)
		snap->keep = len;
	if (is_part || !snap->small_pages) {
		snap->keep = 0;
		perf_snapshot__release(snap);
		return;
	}
	forget(snap);
	if (snap->populated <= 2 * snap->keep)
		return;
	len = (snap->keep + snap->page_size - 1) & ~(snap->page_size - 1);
	madvise(snap->copy + len, snap->populated - len, MADV_DONTNEED);
	snap->populated = len;
	free(snap->records);
	snap->records = NULL;
	snap->room = 0;
}

/* Try the ways. */
static int take_any_way(struct perf_snapshot *snap, unsigned int flags)
{
	enum perf_snapshot_way way;
	unsigned int retries = 0;
	int err = -EOPNOTSUPP;
	int ret;

	for (way = PERF_SNAPSHOT_IOCTL; way <= PERF_SNAPSHOT_PAUSE; way++) {
		if ((flags | snap->unknown) & ways[way].exclude)
			continue;

		forget(snap);
		snap->info.retries = retries;
		ret = take_one_way(snap, ways[way].take);
		if (!ret) {
			snap->info.way = way;
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

/* Since the last snapshot no record was completed. */
static bool is_unchanged(struct perf_snapshot *snap)
{
	uint64_t head = load_head(snap);

	if (!snap->incremental || head != snap->last_head)
		return false;
	snap->info.head = head;
	snap->info.way = snap->last_way;
	snap->info.wrapped = distance(head, 0) > snap->size;
	return true;
}

int perf_snapshot__take(struct perf_snapshot *snap, unsigned int flags)
{
	int err;

	forget(snap);
	err = perf_snapshot__prepare(snap, flags);
	if (!err && is_unchanged(snap))
		return 0;
	/* It has changed since it was prepared. */
	if (!err)
		err = allocate(snap, snap->incremental);
	if (!err)
		err = take_any_way(snap, flags);
	if (!err) {
		snap->last_head = snap->info.head;
		snap->last_way = snap->info.way;
		snap->has_last = true;
	}
	snap->info.err = err;
	return err;
}

/* The position of incremental reads does not change. */
static int take_part(struct perf_snapshot *snap, unsigned int flags, size_t max, size_t oldest)
{
	int err;

	forget(snap);
	snap->incremental = false;
	snap->max = max;
	snap->oldest = oldest;
	err = allocate(snap, true);
	if (!err && !oldest)
		populate(snap, max);
	if (!err)
		err = take_any_way(snap, flags);
	snap->info.err = err;
	return err;
}

int perf_snapshot__take_newest(struct perf_snapshot *snap, size_t max, unsigned int flags)
{
	if (!max || max > snap->size)
		max = snap->size;
	return take_part(snap, flags, max, 0);
}

const void *perf_snapshot__take_oldest(struct perf_snapshot *snap, size_t max,
				       unsigned int flags, size_t *len)
{
	if (!max || max > snap->size)
		max = snap->size;
	*len = 0;
	if (take_part(snap, flags, snap->size, max / RECORD_ALIGN * RECORD_ALIGN))
		return NULL;
	snap->info.wrapped = distance(snap->info.head, 0) > snap->size;
	*len = snap->intact - snap->from;
	return snap->copy + snap->from;
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

/* The index of a record, nearly always the one that was returned last. */
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

/* SIZE_MAX is before the first record. */
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

/* The header page must agree with the mapping, or be empty (old kernels). */
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

struct perf_snapshot *perf_snapshot__new_fd(int fd, int cpu, size_t data_size)
{
	struct perf_snapshot_buffer buf = {
		.fd	= fd,
		.cpu	= cpu,
		.len	= data_size + sysconf(_SC_PAGESIZE),
	};
	struct perf_snapshot *snap;
	int err;

	buf.base = mmap(NULL, buf.len, PROT_READ, MAP_SHARED, fd, 0);
	if (buf.base == MAP_FAILED)
		return NULL;

	snap = perf_snapshot__new(&buf);
	if (!snap) {
		err = errno;
		munmap(buf.base, buf.len);
		errno = err;
		return NULL;
	}
	snap->is_mapping = true;
	return snap;
}

const struct perf_event_mmap_page *
perf_snapshot__header_page(const struct perf_snapshot *snap)
{
	return snap->buf.base;
}

void perf_snapshot__delete(struct perf_snapshot *snap)
{
	if (!snap)
		return;
	perf_snapshot__release(snap);
	if (snap->is_mapping)
		munmap(snap->buf.base, snap->buf.len);
	free(snap);
}
