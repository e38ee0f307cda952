// SPDX-License-Identifier: GPL-2.0
/*
 * Compress pieces of rounds, each by itself: the streams of util/zstd.c are read from
 * their beginning, but the oldest rounds of a recorder go.
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
 * round_codec__pack - compress
 * @rc: the codec
 * @to: where to
 * @room: bytes there
 * @from: what
 * @len: bytes of it
 *
 * Return: bytes that it takes now, or 0 if they are more than @room.
 */
size_t round_codec__pack(struct round_codec *rc, void *to, size_t room, const void *from,
			 size_t len)
{
	size_t packed = ZSTD_compressCCtx(rc->pack, to, room, from, len, rc->level);

	return ZSTD_isError(packed) ? 0 : packed;
}

/**
 * round_codec__unpack - the other way round
 * @rc: the codec
 * @to: where to
 * @len: bytes that it is to have
 * @from: what was packed
 * @packed: bytes of it
 *
 * Return: 0, or -EBADMSG if it is something else.
 */
int round_codec__unpack(struct round_codec *rc, void *to, size_t len, const void *from,
			size_t packed)
{
	return ZSTD_decompressDCtx(rc->unpack, to, len, from, packed) == len ? 0 : -EBADMSG;
}
