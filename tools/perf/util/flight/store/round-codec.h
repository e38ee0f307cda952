/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_ROUND_CODEC_H
#define __PERF_FLIGHT_ROUND_CODEC_H

#include <linux/compiler.h>
#include <errno.h>
#include <stddef.h>

struct round_codec;

#ifdef HAVE_ZSTD_SUPPORT
struct round_codec *round_codec__new(int level);
void round_codec__delete(struct round_codec *rc);
size_t round_codec__pack(struct round_codec *rc, void *to, size_t room, const void *from,
			 size_t len);
int round_codec__unpack(struct round_codec *rc, void *to, size_t len, const void *from,
			size_t packed);
#else
static inline struct round_codec *round_codec__new(int level __maybe_unused)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static inline void round_codec__delete(struct round_codec *rc __maybe_unused)
{
}

static inline size_t round_codec__pack(struct round_codec *rc __maybe_unused,
				       void *to __maybe_unused, size_t room __maybe_unused,
				       const void *from __maybe_unused,
				       size_t len __maybe_unused)
{
	return 0;
}

static inline int round_codec__unpack(struct round_codec *rc __maybe_unused,
				      void *to __maybe_unused, size_t len __maybe_unused,
				      const void *from __maybe_unused,
				      size_t packed __maybe_unused)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* __PERF_FLIGHT_ROUND_CODEC_H */
