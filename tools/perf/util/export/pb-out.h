/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_PB_OUT_H
#define __PERF_EXPORT_PB_OUT_H

#include <linux/types.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>

/**
 * struct pb_out - a protobuf message that is written field by field
 * @file: where it goes to
 * @gz: or this, if it is compressed
 * @path: for messages and for removing it; NULL for the standard output
 * @real: the file that is replaced at the end, or NULL
 * @temp: the file that takes its place, or NULL
 * @nameless: descriptor of a new file, which has no name yet, or -1
 * @bytes: written or counted so far, before compression
 * @counting: write nothing, only count
 * @err: 0, or the errno of the first write that failed
 * @buf: for one field
 * @size: of @buf
 */
struct pb_out {
	FILE		*file;
	void		*gz;
	const char	*path;
	char		*real;
	char		*temp;
	int		nameless;
	u64		bytes;
	bool		counting;
	int		err;
	u8		*buf;
	size_t		size;
};

int pb_out__open(struct pb_out *out, const char *path, bool overwrite);
int pb_out__close(struct pb_out *out, int err);
void pb_out__message(struct pb_out *out, u32 field, const ProtobufCMessage *message);
void pb_out__bytes(struct pb_out *out, u32 field, const void *data, size_t len);
void pb_out__header(struct pb_out *out, u32 field, u64 len);
void pb_out__raw(struct pb_out *out, const void *data, size_t len);

/* Set an optional field: the member @field, and has_@field. */
#define pb_set(message, field, value)				\
	do {							\
		typeof(message) __message = (message);		\
								\
		__message->has_##field = true;			\
		__message->field = (value);			\
	} while (0)

#endif /* __PERF_EXPORT_PB_OUT_H */
