// SPDX-License-Identifier: GPL-2.0
/*
 * CRC-32 of IEEE 802.3, as zlib's crc32(), which perf may be built without
 *
 * The table has the remainders of all values of a byte.
 */
#include "crc32.h"

#define POLYNOMIAL	0xedb88320

static u32 table[256];

static void make_table(void)
{
	for (u32 i = 0; i < 256; i++) {
		u32 crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[i] = crc;
	}
}

/**
 * blackbox_crc32 - compute the checksum of some bytes
 * @data: the bytes
 * @size: number of these
 *
 * Return: the checksum.
 */
u32 blackbox_crc32(const void *data, size_t size)
{
	const u8 *p = data;
	u32 crc = ~0U;

	if (!table[1])
		make_table();
	while (size--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}
