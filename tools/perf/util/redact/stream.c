// SPDX-License-Identifier: GPL-2.0
/*
 * The records of a recording, one after the other
 *
 * A window of the file is in memory, and moves over it. It has at least one whole record,
 * whose size the header tells. Two types of records are more than their size tells:
 *
 *	COMPRESSED, COMPRESSED2		parts of a zstd stream, whose content is records
 *					again. One may begin in a part and end in another.
 *	AUXTRACE			is followed by the bytes of a trace, which are skipped
 *
 * The copy is not compressed. A perf without zstd cannot read compressed records, and fails:
 * most of the recording would be missing.
 */
#include "stream.h"
#include "code.h"
#include "records.h"
#include "sample.h"
#include "../base-api.h"
#include "../debug.h"

#include <perf/event.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_ZSTD_SUPPORT
#include <zstd.h>
#endif

#define WINDOW_SIZE		0x100000

/* Room for a record that is written, before its size is checked */
#define OUT_SIZE		(2 * (REDACT_RECORD_MAX + sizeof(u64)))

struct window {
	const struct redact_stream	*s;
	int				fd;
	u64				pos;
	u64				left;
	char				*bytes;
	size_t				begin;
	size_t				end;
	char				*out;
#ifdef HAVE_ZSTD_SUPPORT
	struct ZSTD_DCtx_s		*zstd;
	char				*inner;
	size_t				inner_size;
#endif
};

static int refuse(u64 pos, const char *what)
{
	pr_err("The recording is damaged: %s at byte %llu. Nothing is written.\n", what,
	       (unsigned long long)pos);
	return -EBADMSG;
}

/* Read on until the window has @size bytes. */
static int fill(struct window *win, size_t size)
{
	memmove(win->bytes, win->bytes + win->begin, win->end - win->begin);
	win->end -= win->begin;
	win->begin = 0;
	while (win->end < size && win->left) {
		size_t room = min((u64)WINDOW_SIZE - win->end, win->left);
		ssize_t nr = pread(win->fd, win->bytes + win->end, room, win->pos);

		if (nr < 0 && errno == EINTR)
			continue;
		if (nr < 0) {
			pr_err("The recording cannot be read: %s.\n", strerror(errno));
			return -errno;
		}
		if (!nr)
			break;
		win->end += nr;
		win->pos += nr;
		win->left -= nr;
	}
	return win->end >= size ? 0 : refuse(win->pos, "the last record is cut short");
}

static int put_record(struct window *win, const void *record)
{
	const struct redact_stream *s = win->s;
	size_t size;

	if (!s->f)
		return redact_code__add(s->code, record);
	size = redact_record__put(s->events, s->w, s->code, s->counts, record, win->out);
	return size && fwrite(win->out, size, 1, s->f) != 1 ? -errno ?: -EIO : 0;
}

#ifdef HAVE_ZSTD_SUPPORT
static int put_inner(struct window *win, u64 pos)
{
	struct perf_event_header header;
	size_t done = 0;
	int err = 0;

	while (!err && win->inner_size - done >= sizeof(header)) {
		memcpy(&header, win->inner + done, sizeof(header));
		if (header.size < sizeof(header) || header.type == PERF_RECORD_AUXTRACE ||
		    header.type == PERF_RECORD_HEADER_TRACING_DATA ||
		    header.type == PERF_RECORD_COMPRESSED || header.type == PERF_RECORD_COMPRESSED2)
			return refuse(pos, "there is no record that can be compressed");
		if (header.size > win->inner_size - done)
			break;
		err = put_record(win, win->inner + done);
		done += header.size;
	}
	win->inner_size -= done;
	memmove(win->inner, win->inner + done, win->inner_size);
	return err;
}

static int decompress(struct window *win, const void *data, size_t size, u64 pos)
{
	ZSTD_inBuffer in = { .src = data, .size = size };
	bool is_full = false;

	if (!win->zstd) {
		win->zstd = ZSTD_createDStream();
		win->inner = malloc(WINDOW_SIZE);
		if (!win->zstd || !win->inner || ZSTD_isError(ZSTD_initDStream(win->zstd)))
			return -ENOMEM;
	}
	/* If there was no more room, there may be more to come. */
	while (in.pos < in.size || is_full) {
		ZSTD_outBuffer out = {
			.dst = win->inner, .size = WINDOW_SIZE, .pos = win->inner_size,
		};
		size_t before = in.pos;
		int err;

		if (ZSTD_isError(ZSTD_decompressStream(win->zstd, &out, &in)))
			return refuse(pos, "compressed records cannot be decompressed");
		is_full = out.pos == out.size;
		if (in.pos == before && out.pos == win->inner_size)
			break;
		win->inner_size = out.pos;
		err = put_inner(win, pos);
		if (err)
			return err;
	}
	return in.pos == in.size ? 0 : refuse(pos, "compressed records do not end");
}

static int end_inner(const struct window *win)
{
	return win->inner_size ? refuse(win->pos, "the last record is cut short") : 0;
}

static void close_inner(struct window *win)
{
	ZSTD_freeDStream(win->zstd);
	free(win->inner);
}
#else
static int decompress(struct window *win __maybe_unused, const void *data __maybe_unused,
		      size_t size __maybe_unused, u64 pos __maybe_unused)
{
	pr_err("The records are compressed, and this perf was built without zstd: use one that was built with it.\n");
	return -EPROTONOSUPPORT;
}

static int end_inner(const struct window *win __maybe_unused)
{
	return 0;
}

static void close_inner(struct window *win __maybe_unused)
{
}
#endif

static int put_compressed(struct window *win, const struct perf_event_header *header, u64 pos)
{
	const char *record = win->bytes + win->begin;
	size_t start = sizeof(*header), size = header->size - start;
	u64 used;

	if (header->type == PERF_RECORD_COMPRESSED2) {
		if (size < sizeof(used))
			return refuse(pos, "a compressed record is too short");
		memcpy(&used, record + start, sizeof(used));
		start += sizeof(used);
		size -= sizeof(used);
		if (used > size)
			return refuse(pos, "a compressed record is too short");
		size = used;
	}
	return decompress(win, record + start, size, pos);
}

/* The bytes of a trace follow. */
static int skip_trace(struct window *win, const struct perf_event_header *header, u64 pos)
{
	u64 size, kept = win->end - win->begin;

	if (header->size < sizeof(struct perf_record_auxtrace))
		return refuse(pos, "a trace is too short");
	memcpy(&size, win->bytes + win->begin + sizeof(*header), sizeof(size));
	kept -= header->size;
	if (size > kept + win->left)
		return refuse(pos, "a trace is longer than the recording");
	if (win->s->f)
		win->s->counts->omitted[PERF_RECORD_AUXTRACE]++;
	if (size <= kept) {
		win->begin += header->size + size;
		return 0;
	}
	win->begin = win->end;
	win->pos += size - kept;
	win->left -= size - kept;
	return 0;
}

static int put_next(struct window *win)
{
	u64 pos = win->pos - (win->end - win->begin);
	struct perf_event_header header;
	int err = 0;

	if (win->end - win->begin < sizeof(header))
		err = fill(win, sizeof(header));
	if (err)
		return err;
	memcpy(&header, win->bytes + win->begin, sizeof(header));
	if (header.size < sizeof(header))
		return refuse(pos, "a record is too short");
	if (win->end - win->begin < header.size)
		err = fill(win, header.size);
	if (err)
		return err;
	switch (header.type) {
	case PERF_RECORD_AUXTRACE:
		return skip_trace(win, &header, pos);
	case PERF_RECORD_HEADER_TRACING_DATA:
		return refuse(pos, "a record of streams is in a file,");
	case PERF_RECORD_COMPRESSED:
	case PERF_RECORD_COMPRESSED2:
		err = put_compressed(win, &header, pos);
		break;
	default:
		err = put_record(win, win->bytes + win->begin);
		break;
	}
	win->begin += header.size;
	return err;
}

/**
 * redact_stream__copy - write the records of a recording anew, or learn from them
 * @s: what it takes
 * @fd: the file
 * @offset: of the records in it
 * @size: of the records
 *
 * Return: 0, or a negative errno; -EIO, -ENOSPC and -ENOMEM without a message.
 */
int redact_stream__copy(const struct redact_stream *s, int fd, u64 offset, u64 size)
{
	struct window win = { .s = s, .fd = fd, .pos = offset, .left = size };
	int err = 0;

	win.bytes = malloc(WINDOW_SIZE);
	win.out = malloc(OUT_SIZE);
	if (!win.bytes || !win.out)
		err = -ENOMEM;
	while (!err && (win.left || win.begin < win.end))
		err = put_next(&win);
	if (!err)
		err = end_inner(&win);
	close_inner(&win);
	free(win.bytes);
	free(win.out);
	return err;
}
