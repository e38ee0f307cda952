/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __LIBPERF_SNAPSHOT_H
#define __LIBPERF_SNAPSHOT_H

/*
 * Read a backward ring buffer (perf_event_attr::write_backward, mapped
 * read-only) while it is being written, without losing an event.
 *
 *	struct perf_snapshot_buffer buf = {
 *		.fd = fd, .base = base, .len = len, .cpu = cpu,
 *	};
 *	struct perf_snapshot *snap = perf_snapshot__new(&buf);
 *
 *	union perf_event *event = NULL;
 *
 *	if (!perf_snapshot__take(snap, 0)) {
 *		while ((event = perf_snapshot__newer(snap, event)))
 *			process(event);
 *	}
 *	perf_snapshot__delete(snap);
 *
 * Several buffers are read together as a set, see perf_snapshot_set__take().
 *
 * snapshot.c describes how this works and why no record can be torn. It depends
 * only on the C library and the uapi headers, so programs can also compile it
 * in.
 */

#include <perf/core.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

union perf_event;
struct perf_event_mmap_page;
struct perf_mmap;
struct perf_snapshot;
struct perf_snapshot_set;

/**
 * struct perf_snapshot_buffer - the mapping to read
 * @fd: file descriptor of an event that writes to the buffer, or of a consumer
 *      of it
 * @base: where the buffer is mapped; its header page comes first
 * @len: length of the mapping in bytes, the header page included
 * @cpu: CPU that writes the buffer, or -1 for an event that follows its task
 */
struct perf_snapshot_buffer {
	int		fd;
	int		cpu;
	void		*base;
	size_t		len;
};

/**
 * enum perf_snapshot_way - method used to verify a snapshot
 * @PERF_SNAPSHOT_NONE: no snapshot was taken
 * @PERF_SNAPSHOT_IOCTL: PERF_EVENT_IOC_RESERVED_HEAD; the writer was not disturbed
 * @PERF_SNAPSHOT_HOP: data_head was read in user mode on the writing CPU
 * @PERF_SNAPSHOT_PAUSE: the buffer was paused during the copy; events in this
 *	time are lost, and the kernel counts them
 */
enum perf_snapshot_way {
	PERF_SNAPSHOT_NONE,
	PERF_SNAPSHOT_IOCTL,
	PERF_SNAPSHOT_HOP,
	PERF_SNAPSHOT_PAUSE,
};

/* Flags of perf_snapshot__take() */
enum {
	/* Take only records since the last snapshot of this buffer. */
	PERF_SNAPSHOT_INCREMENTAL	= 1U << 0,
	/* Methods to skip. */
	PERF_SNAPSHOT_NO_IOCTL		= 1U << 1,
	PERF_SNAPSHOT_NO_HOP		= 1U << 2,
	PERF_SNAPSHOT_NO_PAUSE		= 1U << 3,
};

/**
 * struct perf_snapshot_info - what the last snapshot covers
 * @head: position of its newest record, which is data_head as read
 * @data_size: size of the buffer in bytes, without its header page
 * @len: bytes of whole, intact records in the snapshot
 * @nr_records: number of these records
 * @behind: bytes that the kernel reserved between the read of @head and the
 *	end of the copy; most of them do no harm, since the oldest bytes are
 *	copied first
 * @given_up: bytes of older records that were in the buffer when @head was
 *	read, but were overwritten before it was known that their copy was
 *	intact
 * @gap: with %PERF_SNAPSHOT_INCREMENTAL: bytes written since the snapshot
 *	before that this one does not hold; 0: it follows without a gap
 * @retries: how many copies were thrown away, because the writer had lapped
 *	the reader
 * @way: how the copy was verified
 * @err: what perf_snapshot__take() returned
 * @wrapped: the buffer holds the newest @data_size bytes of a longer history;
 *	false: it holds everything that was ever written to it
 */
struct perf_snapshot_info {
	__u64			head;
	__u64			data_size;
	__u64			len;
	__u64			nr_records;
	__u64			behind;
	__u64			given_up;
	__u64			gap;
	unsigned int		retries;
	enum perf_snapshot_way	way;
	int			err;
	bool			wrapped;
};

/**
 * perf_snapshot__new - prepare for snapshots of one buffer
 * @buf: the mapping; it must stay mapped, and @buf->fd open, as long as
 *	snapshots are taken
 *
 * Return: the object, or NULL with errno set: EINVAL for a mapping that cannot
 * be a ring buffer, EBADMSG where the header page contradicts the mapping,
 * ENOMEM.
 */
LIBPERF_API struct perf_snapshot *
perf_snapshot__new(const struct perf_snapshot_buffer *buf);

/**
 * perf_snapshot__new_mmap - perf_snapshot__new() for a map of libperf
 * @map: a map of perf_evlist__for_each_mmap(evlist, map, true)
 */
LIBPERF_API struct perf_snapshot *perf_snapshot__new_mmap(struct perf_mmap *map);

/**
 * perf_snapshot__new_fd - the same for a buffer that is not mapped yet
 * @fd: file descriptor of an event of the buffer; it must stay open
 * @cpu: CPU that writes the buffer, or -1
 * @data_size: size of the buffer in bytes, without its header page
 *
 * The buffer is mapped until perf_snapshot__delete().
 *
 * Return: the object, or NULL with errno set as by perf_snapshot__new() or mmap().
 */
LIBPERF_API struct perf_snapshot *perf_snapshot__new_fd(int fd, int cpu, size_t data_size);

LIBPERF_API void perf_snapshot__delete(struct perf_snapshot *snap);

/* The first page of the mapping, which the kernel may write to at any time */
LIBPERF_API const struct perf_event_mmap_page *
perf_snapshot__header_page(const struct perf_snapshot *snap);

/**
 * perf_snapshot__prepare - allocate the memory for the copy
 * @snap: the buffer
 * @flags: those of the perf_snapshot__take() to come
 *
 * The address space has the size of the buffer. The part that will be copied is
 * faulted in. perf_snapshot__take() does this if it was not called before.
 *
 * Return: 0 or -ENOMEM.
 */
LIBPERF_API int perf_snapshot__prepare(struct perf_snapshot *snap, unsigned int flags);

/**
 * perf_snapshot__release - free that memory until the next snapshot
 * @snap: the buffer; its snapshot becomes an empty one
 *
 * The next incremental snapshot still continues where the last one ended.
 */
LIBPERF_API void perf_snapshot__release(struct perf_snapshot *snap);

/**
 * perf_snapshot__trim - keep memory for the next incremental snapshot
 * @snap: the buffer; its snapshot becomes an empty one
 *
 * Frees what exceeds the needs of recent snapshots. If called after each snapshot, the
 * memory follows the rate of writing, and a snapshot touches no other memory than that
 * of the bytes copied. A buffer to which nothing is written gets no memory.
 */
LIBPERF_API void perf_snapshot__trim(struct perf_snapshot *snap);

/**
 * perf_snapshot__take - take a snapshot and replace the previous one
 * @snap: the buffer
 * @flags: PERF_SNAPSHOT_INCREMENTAL, PERF_SNAPSHOT_NO_* or 0
 *
 * The methods are tried in the order of enum perf_snapshot_way. A method that the
 * kernel does not support or does not allow is not tried again. The hop method
 * moves the calling thread to another CPU during the copy. The cost is that of
 * the bytes copied: with %PERF_SNAPSHOT_INCREMENTAL the new ones, otherwise all
 * that the buffer holds.
 *
 * Return: 0, also for an empty buffer, or
 * -EBADMSG: the header page or a record is invalid,
 * -EINVAL: the kernel reports that the buffer is not backward, or not an overwrite
 *	buffer,
 * -EAGAIN: with all permitted methods, the writer lapped the reader even for the
 *	shortest copy,
 * -EOPNOTSUPP: none of the permitted methods works here,
 * -ENOMEM.
 */
LIBPERF_API int perf_snapshot__take(struct perf_snapshot *snap, unsigned int flags);

/**
 * perf_snapshot__take_newest - take a snapshot of the newest records only
 * @snap: the buffer
 * @max: size of the copy in bytes; 0: all
 * @flags: PERF_SNAPSHOT_NO_* or 0
 *
 * An incremental snapshot does not start from here, but from where the last
 * perf_snapshot__take() ended.
 *
 * Return: as perf_snapshot__take().
 */
LIBPERF_API int perf_snapshot__take_newest(struct perf_snapshot *snap, size_t max,
					   unsigned int flags);

/**
 * perf_snapshot__take_oldest - copy the oldest bytes of a buffer
 * @snap: the buffer
 * @max: size of the copy in bytes; 0: all
 * @flags: PERF_SNAPSHOT_NO_* or 0
 * @len: returns how many of these bytes are intact
 *
 * The bytes are in the order of the buffer: newer records first. They may begin in the
 * middle of a record, and, if perf_snapshot_info::wrapped is set, end in the middle of
 * one. The snapshot has no records. The bytes belong to @snap and are valid until it is
 * used again. Incremental snapshots are not affected.
 *
 * Return: the bytes, or NULL; perf_snapshot_info::err has the reason.
 */
LIBPERF_API const void *perf_snapshot__take_oldest(struct perf_snapshot *snap, size_t max,
						   unsigned int flags, size_t *len);

/* What the last snapshot covers. Never NULL. */
LIBPERF_API const struct perf_snapshot_info *
perf_snapshot__info(const struct perf_snapshot *snap);

/* "ioctl", "hop", "pause" or "none" */
LIBPERF_API const char *perf_snapshot__way_name(enum perf_snapshot_way way);

/**
 * perf_snapshot__data - get all records in one memory area, newest first
 * @snap: the snapshot
 * @len: returns its length
 *
 * No record wraps or is truncated. The area belongs to @snap and is valid until the
 * next perf_snapshot__take().
 */
LIBPERF_API void *perf_snapshot__data(struct perf_snapshot *snap, size_t *len);

/**
 * perf_snapshot__older - step towards older records
 * @snap: the snapshot
 * @event: a record of the snapshot, or NULL to start with the newest one
 *
 * Return: the record that was written before @event, or NULL.
 */
LIBPERF_API union perf_event *
perf_snapshot__older(struct perf_snapshot *snap, const union perf_event *event);

/**
 * perf_snapshot__newer - step towards newer records
 * @snap: the snapshot
 * @event: a record of the snapshot, or NULL to start with the oldest one
 *
 * Return: the record that was written after @event, or NULL.
 */
LIBPERF_API union perf_event *
perf_snapshot__newer(struct perf_snapshot *snap, const union perf_event *event);

/**
 * typedef perf_snapshot_time_t - find the time of a record
 * @event: the record
 * @data: the argument of perf_snapshot__window()
 * @time: returns the time
 *
 * Return: false if the record has no time.
 */
typedef bool (*perf_snapshot_time_t)(const union perf_event *event, void *data,
				     __u64 *time);

/**
 * perf_snapshot__window - get the times of the oldest and the newest record
 * @snap: the snapshot
 * @time: returns the time of a record
 * @data: passed to @time
 * @oldest: returns the time of the oldest record
 * @newest: returns the time of the newest record
 *
 * Records are stored in the order of their reservation. An interrupt can occur
 * after a record has got its time and before it is reserved, so neighbours may be
 * swapped. The window uses the first record from either end that has a time.
 *
 * Return: 0, or -ENOENT if no record has a time.
 */
LIBPERF_API int perf_snapshot__window(struct perf_snapshot *snap,
				      perf_snapshot_time_t time, void *data,
				      __u64 *oldest, __u64 *newest);

/*
 * Sets: several buffers, read so that their snapshots cover the same time
 *
 *	struct perf_snapshot_set *set = perf_snapshot_set__new();
 *
 *	perf_evlist__for_each_mmap(evlist, map, true)
 *		perf_snapshot_set__add(set, perf_snapshot__new_mmap(map));
 *
 *	perf_snapshot_set__take(set, PERF_SNAPSHOT_INCREMENTAL);
 *	for (i = 0; (snap = perf_snapshot_set__get(set, i)); i++) {
 *		if (!perf_snapshot__info(snap)->err)
 *			process(snap);
 *	}
 */

/**
 * perf_snapshot_set__new - an empty set
 *
 * Return: the set, or NULL without memory.
 */
LIBPERF_API struct perf_snapshot_set *perf_snapshot_set__new(void);

/**
 * perf_snapshot_set__delete - delete a set
 * @set: the set, or NULL
 *
 * Its snapshots stay: they are the caller's.
 */
LIBPERF_API void perf_snapshot_set__delete(struct perf_snapshot_set *set);

/**
 * perf_snapshot_set__add - add a buffer
 * @set: the set
 * @snap: the buffer; it is to outlive the set, and may be in several
 *
 * Buffers are read in the order in which they were added: one that is to name what
 * others hold comes after them.
 *
 * Return: 0, -ENOMEM, or -EINVAL if @snap is NULL.
 */
LIBPERF_API int perf_snapshot_set__add(struct perf_snapshot_set *set,
				       struct perf_snapshot *snap);

/* Number of buffers */
LIBPERF_API size_t perf_snapshot_set__nr(const struct perf_snapshot_set *set);

/* The buffer that was added as number @i, from 0 on; NULL if there are not as many */
LIBPERF_API struct perf_snapshot *
perf_snapshot_set__get(const struct perf_snapshot_set *set, size_t i);

/**
 * perf_snapshot_set__prepare - allocate the memory for all copies
 * @set: the set
 * @flags: those of the perf_snapshot_set__take() to come
 *
 * perf_snapshot_set__take() does this where it was not done.
 *
 * Return: 0, or -ENOMEM if that failed for one of them at least.
 */
LIBPERF_API int perf_snapshot_set__prepare(struct perf_snapshot_set *set, unsigned int flags);

/**
 * perf_snapshot_set__release - free that memory until the next snapshots
 * @set: the set
 */
LIBPERF_API void perf_snapshot_set__release(struct perf_snapshot_set *set);

/**
 * perf_snapshot_set__trim - keep memory for the next incremental snapshots
 * @set: the set
 */
LIBPERF_API void perf_snapshot_set__trim(struct perf_snapshot_set *set);

/**
 * perf_snapshot_set__take - take a snapshot of each buffer
 * @set: the set
 * @flags: of perf_snapshot__take()
 *
 * All memory is allocated and faulted in before the first buffer is read. Then the
 * buffers are copied back to back, without anything between two copies. A buffer that
 * cannot be read does not keep the others from it; perf_snapshot_info::err says so.
 *
 * Return: 0, or what the last failed perf_snapshot__take() returned if all have failed.
 */
LIBPERF_API int perf_snapshot_set__take(struct perf_snapshot_set *set, unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif /* __LIBPERF_SNAPSHOT_H */
