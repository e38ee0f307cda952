// SPDX-License-Identifier: GPL-2.0
/*
 * Compressed dumps of kdump, read by libkdumpfile
 *
 * makedumpfile writes /proc/vmcore in a format of its own, page by page, compressed by zlib,
 * lzo, snappy or zstd. Two bitmaps tell which pages the machine had, and which of them are in
 * the file. A page of zeros is in the file, too: all of them are one.
 */
#include "kdump.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <libkdumpfile/kdumpfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No memory is there. */
#define NOWHERE		((u64)-1)

/**
 * struct blackbox_kdump - a compressed dump
 * @ctx: that of libkdumpfile
 * @is_open: the library could open it
 * @page_size: bytes of a page
 * @in_file: bitmap of the pages that are in the file
 * @in_memory: bitmap of those that the machine had
 */
struct blackbox_kdump {
	kdump_ctx_t	*ctx;
	bool		is_open;
	u64		page_size;
	kdump_bmp_t	*in_file;
	kdump_bmp_t	*in_memory;
};

static kdump_status get_bitmap(kdump_ctx_t *ctx, const char *key, kdump_bmp_t **bitmap)
{
	kdump_attr_t attr = { .type = KDUMP_BITMAP };
	kdump_status status = kdump_get_typed_attr(ctx, key, &attr);

	if (status == KDUMP_OK) {
		*bitmap = attr.val.bitmap;
		kdump_bmp_incref(*bitmap);
	}
	return status;
}

static kdump_status open_fd(struct blackbox_kdump *kdump, int fd)
{
	kdump_status status = kdump_open_fd(kdump->ctx, fd);
	kdump_num_t page_size = 0;

	kdump->is_open = status == KDUMP_OK;
	if (status == KDUMP_OK)
		status = kdump_get_number_attr(kdump->ctx, KDUMP_ATTR_PAGE_SIZE, &page_size);
	if (status == KDUMP_OK)
		status = get_bitmap(kdump->ctx, KDUMP_ATTR_FILE_PAGEMAP, &kdump->in_file);
	if (status == KDUMP_OK)
		status = get_bitmap(kdump->ctx, KDUMP_ATTR_MEMORY_PAGEMAP, &kdump->in_memory);
	if (status == KDUMP_OK && !page_size)
		status = KDUMP_ERR_CORRUPT;
	kdump->page_size = page_size;
	return status;
}

/**
 * blackbox_kdump__open - open a compressed dump
 * @kdump: returns it; to be closed in any case
 * @fd: the file, which must stay open
 *
 * Return: 0, -ENOMEM, or -EBADMSG after a message.
 */
int blackbox_kdump__open(struct blackbox_kdump **kdump, int fd)
{
	kdump_status status;

	*kdump = zalloc(sizeof(**kdump));
	if (!*kdump)
		return -ENOMEM;
	(*kdump)->ctx = kdump_new();
	if (!(*kdump)->ctx)
		return -ENOMEM;
	status = open_fd(*kdump, fd);
	if (status == KDUMP_OK)
		return 0;
	pr_err("The compressed dump cannot be read: %s. If the memory was saved in another way as well, try that.\n",
	       kdump_get_err((*kdump)->ctx) ?: kdump_strerror(status));
	return -EBADMSG;
}

void blackbox_kdump__close(struct blackbox_kdump *kdump)
{
	if (!kdump)
		return;
	if (kdump->in_file)
		kdump_bmp_decref(kdump->in_file);
	if (kdump->in_memory)
		kdump_bmp_decref(kdump->in_memory);
	/* kdump_free() of 0.5.1 crashes after the header of a dump was refused. */
	if (kdump->is_open)
		kdump_free(kdump->ctx);
	free(kdump);
}

/* The first page of a bitmap whose bit is not set, or 0 */
static u64 find_end(kdump_bmp_t *bitmap, u64 page)
{
	kdump_addr_t end = page;

	return kdump_bmp_find_clear(bitmap, &end) == KDUMP_OK ? end : 0;
}

/**
 * blackbox_kdump__next - find pages that are in the file
 * @kdump: the dump
 * @range: the first one at or behind its address; returns these
 *
 * Return: whether there are any.
 */
bool blackbox_kdump__next(struct blackbox_kdump *kdump, struct blackbox_range *range)
{
	kdump_addr_t first = DIV_ROUND_UP(range->phys, kdump->page_size);
	u64 end;

	if (kdump_bmp_find_set(kdump->in_file, &first) != KDUMP_OK)
		return false;
	end = find_end(kdump->in_file, first);
	if (end <= first || end > NOWHERE / kdump->page_size)
		return false;
	*range = (struct blackbox_range) {
		.phys	= first * kdump->page_size,
		.size	= (end - first) * kdump->page_size,
	};
	return true;
}

/* See blackbox_memory__extent(). */
u64 blackbox_kdump__extent(struct blackbox_kdump *kdump, u64 phys)
{
	u64 end = find_end(kdump->in_memory, phys / kdump->page_size);

	if (end > NOWHERE / kdump->page_size || end * kdump->page_size <= phys)
		return 0;
	return end * kdump->page_size - phys;
}

/* The next page behind @pos that is in the file; ~0: there is none */
static u64 skip_hole(struct blackbox_kdump *kdump, u64 pos)
{
	kdump_addr_t page = pos / kdump->page_size + 1;

	if (kdump_bmp_find_set(kdump->in_file, &page) != KDUMP_OK ||
	    page > NOWHERE / kdump->page_size)
		return NOWHERE;
	return page * kdump->page_size;
}

/* See blackbox_memory__copy(). */
u64 blackbox_kdump__copy(struct blackbox_kdump *kdump, u64 phys, void *buf, u64 size)
{
	u64 there = 0, pos = 0;

	while (pos < size) {
		const size_t room = min(size - pos,
					kdump->page_size - (phys + pos) % kdump->page_size);
		size_t len = room;
		kdump_status status = kdump_read(kdump->ctx, KDUMP_MACHPHYSADDR, phys + pos,
						 buf + pos, &len);

		if (status == KDUMP_OK)
			there += room;
		else	/* The library may have stored what it then found to be damaged. */
			memset(buf + pos, 0, room);
		if (status == KDUMP_ERR_NODATA)
			pos = skip_hole(kdump, phys + pos) - phys;
		else
			pos += room;
	}
	return there;
}

/* The value of a line of VMCOREINFO, to be freed; or NULL */
char *blackbox_kdump__vmcoreinfo(struct blackbox_kdump *kdump, const char *key)
{
	const char *value;
	char *name, *copy = NULL;

	if (asprintf(&name, "linux.vmcoreinfo.lines.%s", key) < 0)
		return NULL;
	if (kdump_get_string_attr(kdump->ctx, name, &value) == KDUMP_OK)
		copy = strdup(value);
	free(name);
	return copy;
}
