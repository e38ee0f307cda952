// SPDX-License-Identifier: GPL-2.0
/*
 * Compress pieces of rounds independently of each other. The streams of util/zstd.c must
 * be read from their beginning, but a recorder evicts the oldest rounds.
 */
#include "round-codec.h"

#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

struct round_codec {
	int		level;
	ZSTD_CCtx	*pack;
	ZSTD_DCtx	*unpack;
};

struct round_codec *round_codec__new(int level)
{
	struct round_codec *rc = zalloc(sizeof(*rc));

	if (!rc)
		return NULL;
	rc->level = level;
	rc->pack = ZSTD_createCCtx();
	rc->unpack = ZSTD_createDCtx();
	if (rc->pack && rc->unpack)
		return rc;

	round_codec__delete(rc);
	errno = ENOMEM;
	return NULL;
}

void round_codec__delete(struct round_codec *rc)
{
	if (!rc)
		return;
	ZSTD_freeCCtx(rc->pack);
	ZSTD_freeDCtx(rc->unpack);
	free(rc);
}

/**
 * round_codec__pack - compress data
 * @rc: the codec
 * @to: the output
 * @room: size of @to
 * @from: the data
 * @len: size of the data
 *
 * Return: size of the compressed data, or 0 if it exceeds @room.
 */
size_t round_codec__pack(struct round_codec *rc, void *to, size_t room, const void *from,
			 size_t len)
{
	size_t packed = ZSTD_compressCCtx(rc->pack, to, room, from, len, rc->level);

	return ZSTD_isError(packed) ? 0 : packed;
}

/**
 * round_codec__unpack - decompress data
 * @rc: the codec
 * @to: the output
 * @len: expected size of the output
 * @from: the compressed data
 * @packed: size of the compressed data
 *
 * Return: 0, or -EBADMSG if the data is invalid.
 */
int round_codec__unpack(struct round_codec *rc, void *to, size_t len, const void *from,
			size_t packed)
{
	return ZSTD_decompressDCtx(rc->unpack, to, len, from, packed) == len ? 0 : -EBADMSG;
}
