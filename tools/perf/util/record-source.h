/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_RECORD_SOURCE_H
#define __PERF_RECORD_SOURCE_H
/*
 * The source of the records of perf record
 *
 * perf record has one main loop, in __cmd_record(): read a pass, do what the triggers
 * ask for, wait. A source is what that loop reads:
 *
 *	source				reads			writes to
 *	------------------------------------------------------------------------
 *	none				perf's mmaps		a file
 *	persistent/record.c		a session		a file
 *	flight/source/mmap.c		perf's mmaps		a flight recorder
 *	flight/source/backward.c	perf's mmaps; samples	a flight recorder
 *					at a dump, from the
 *					backward buffers
 *	flight/source/session.c		a session		a flight recorder
 *
 * A source with ->read() has events of its own: those of a persistent session. They are
 * open and enabled before perf record begins, and stay so when it ends. perf record does
 * not configure, open, enable, disable or synthesize for them. A source without ->read()
 * leaves all of that to perf record, which reads its mmaps as it does without a source.
 *
 * The calls, in this order:
 *
 *	->open()	before there is a file: open the events, make @evlist
 *	->synthesize()	perf record has opened @session: describe kernel and tasks
 *	->read()	once for each turn of the loop, and once behind the loop
 *	->finish()	the workload has ended: complete what was written
 *	->delete()	@session is still open
 *
 * A source is used by the main thread alone.
 */
#include <linux/compiler.h>
#include <linux/types.h>
#include <stdbool.h>

struct evlist;
struct flight_recorder;
struct kernel_store;
struct perf_data;
struct perf_persistent_session_info;
struct perf_session;
struct record_opts;
struct record_source;

/**
 * struct record_source_ops - one kind of source; all but @delete may be NULL
 * @open: open the events; set @evlist, and @fd to what tells of new records
 * @synthesize: write what the records alone do not tell
 * @read: write what is new, @last when the loop has ended; set @ended when there can be
 *	no more
 * @finish: complete what was written. @status is perf record's exit status or a negative
 *	errno. Return: the same for perf record to exit with
 * @delete: free the source
 * @freeze: for a flight recorder: stop (@on) the samples, not the side-band, or go on
 * @tell: for a flight recorder: what the session that it reads says of itself; zeros if
 *	the kernel does not know
 * @take: for a flight recorder, in the child that writes a dump: copy the samples that
 *	are in the kernel's buffers, but for those after @until; NULL: there is no memory
 * @written: for a flight recorder: bytes that the fullest of those buffers was written
 */
struct record_source_ops {
	int			(*open)(struct record_source *src);
	int			(*synthesize)(struct record_source *src);
	int			(*read)(struct record_source *src, bool last);
	int			(*finish)(struct record_source *src, int status);
	void			(*delete)(struct record_source *src);
	void			(*freeze)(struct record_source *src, bool on);
	void			(*tell)(struct record_source *src,
					struct perf_persistent_session_info *info);
	struct kernel_store	*(*take)(struct record_source *src, u64 until);
	u64			(*written)(struct record_source *src);
};

/**
 * struct record_source - what perf record reads; embedded in what a kind needs
 * @ops: its kind
 * @opts: options of perf record; ->open() sets what follows from the events
 * @data: perf record's file
 * @session: perf's idea of the file, NULL before it is open
 * @evlist: the events; perf record owns what ->open() made
 * @flight: the flight recorder that the records go to, or NULL
 * @fd: to be polled for POLLIN; of a source with ->read()
 * @err: the first error of ->read()
 * @looped: the main loop has begun
 * @ended: there can be no more records
 */
struct record_source {
	const struct record_source_ops	*ops;
	struct record_opts		*opts;
	struct perf_data		*data;
	struct perf_session		*session;
	struct evlist			*evlist;
	struct flight_recorder		*flight;
	int				fd;
	int				err;
	bool				looped;
	bool				ended;
};

/* Are the events there without perf record? Those of plain perf record are not. */
static inline bool record_source__has_events(const struct record_source *src)
{
	return unlikely(src) && src->ops->read;
}

static inline int record_source__open(struct record_source *src)
{
	return src->ops->open(src);
}

static inline void record_source__set_session(struct record_source *src,
					      struct perf_session *session)
{
	if (src)
		src->session = session;
}

static inline int record_source__synthesize(struct record_source *src)
{
	return src->ops->synthesize(src);
}

static inline int record_source__read(struct record_source *src, bool last)
{
	if (!last)
		src->looped = true;
	if (!src->err)
		src->err = src->ops->read(src, last);
	return src->err;
}

/* Had the main loop begun? Before that a workload may not have been started. */
static inline bool record_source__was_read(const struct record_source *src)
{
	return src && src->looped;
}

static inline int record_source__error(const struct record_source *src)
{
	return src ? src->err : 0;
}

static inline bool record_source__has_ended(const struct record_source *src)
{
	return src && src->ended;
}

static inline int record_source__finish(struct record_source *src, int status)
{
	return src && src->ops->finish ? src->ops->finish(src, status) : status;
}

static inline void record_source__delete(struct record_source *src)
{
	if (src)
		src->ops->delete(src);
}

#endif /* __PERF_RECORD_SOURCE_H */
