// SPDX-License-Identifier: GPL-2.0
/*
 * The log of the kernel in a dump of its memory
 *
 * VMCOREINFO tells where the ring of messages lies, and how its structs are laid out, see
 * kernel/printk/printk_ringbuffer.h. libkdumpfile translates the addresses.
 *
 * The content of a dump may be damaged. VMCOREINFO has the layout of structs; where it does
 * not, the layout is assumed to be that of Linux 5.10 and later.
 */
#include "messages.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <libkdumpfile/kdumpfile.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel has LOG_LINE_MAX, which is less, and LOG_BUF_LEN_MAX. */
#define MAX_TEXT	4096
#define MAX_SIZE_BITS	31

/* Committed or finalized, see enum desc_state */
#define STATE_COMMITTED	1
#define STATE_FINALIZED	2

/* Positions with this bit have no text, which was lost, unless they have both. */
#define NO_TEXT		1
#define EMPTY_TEXT	3

/**
 * struct dmesg - the ring of messages
 * @ctx: the dump
 * @word: bytes of a long
 * @is_bad: VMCOREINFO lacks a line, or memory is missing
 * @count_bits: there are 2^@count_bits descriptors
 * @size_bits: there are 2^@size_bits bytes of texts
 * @descs: address of the descriptors
 * @infos: address of the same number of what is told about a message
 * @texts: address of the texts
 * @desc_size: bytes of a descriptor
 * @info_size: bytes of what is told
 * @state: offset in a descriptor
 * @begin: the same: where the text begins
 * @next: the same: where it ends
 * @time: offset in what is told
 * @text_len: the same
 */
struct dmesg {
	kdump_ctx_t	*ctx;
	u32		word;
	bool		is_bad;
	u32		count_bits;
	u32		size_bits;
	u64		descs;
	u64		infos;
	u64		texts;
	u64		desc_size;
	u64		info_size;
	u64		state;
	u64		begin;
	u64		next;
	u64		time;
	u64		text_len;
};

static u64 get_number(struct dmesg *d, const char *key)
{
	char *value, *end;
	u64 number = 0;

	if (kdump_vmcoreinfo_line(d->ctx, key, &value) != KDUMP_OK) {
		d->is_bad = true;
		return 0;
	}
	number = strtoull(value, &end, 10);
	/* No struct of these is larger. */
	if (end == value || *end || number > MAX_TEXT)
		d->is_bad = true;
	free(value);
	return number;
}

static void read_bytes(struct dmesg *d, u64 address, void *buf, size_t size)
{
	size_t len = size;

	memset(buf, 0, size);
	if (kdump_read(d->ctx, KDUMP_KVADDR, address, buf, &len) != KDUMP_OK || len != size)
		d->is_bad = true;
}

static u64 read_number(struct dmesg *d, u64 address, size_t size)
{
	union {
		u16	v16;
		u32	v32;
		u64	v64;
	} v = {};

	read_bytes(d, address, &v, size);
	return size == sizeof(v.v16) ? v.v16 : size == sizeof(v.v32) ? v.v32 : v.v64;
}

static u64 read_word(struct dmesg *d, u64 address)
{
	return read_number(d, address, d->word);
}

static int open_ring(struct dmesg *d, u64 *head, u64 *tail)
{
	kdump_addr_t symbol;
	u64 ring, descs, texts;

	if (kdump_vmcoreinfo_symbol(d->ctx, "prb", &symbol) != KDUMP_OK)
		return -ENOENT;
	d->word = get_number(d, "SIZE(atomic_long_t)");
	if (d->word != sizeof(u32) && d->word != sizeof(u64))
		return -EBADMSG;
	ring = read_word(d, symbol);
	descs = ring + get_number(d, "OFFSET(printk_ringbuffer.desc_ring)");
	texts = ring + get_number(d, "OFFSET(printk_ringbuffer.text_data_ring)");

	d->count_bits = read_number(d, descs + get_number(d, "OFFSET(prb_desc_ring.count_bits)"),
				    sizeof(u32));
	d->descs = read_word(d, descs + get_number(d, "OFFSET(prb_desc_ring.descs)"));
	d->infos = read_word(d, descs + get_number(d, "OFFSET(prb_desc_ring.infos)"));
	*head = read_word(d, descs + get_number(d, "OFFSET(prb_desc_ring.head_id)"));
	*tail = read_word(d, descs + get_number(d, "OFFSET(prb_desc_ring.tail_id)"));

	d->size_bits = read_number(d, texts + get_number(d, "OFFSET(prb_data_ring.size_bits)"),
				   sizeof(u32));
	d->texts = read_word(d, texts + get_number(d, "OFFSET(prb_data_ring.data)"));

	d->desc_size = get_number(d, "SIZE(prb_desc)");
	d->info_size = get_number(d, "SIZE(printk_info)");
	d->state = get_number(d, "OFFSET(prb_desc.state_var)");
	d->begin = get_number(d, "OFFSET(prb_desc.text_blk_lpos)");
	d->next = d->begin + get_number(d, "OFFSET(prb_data_blk_lpos.next)");
	d->begin += get_number(d, "OFFSET(prb_data_blk_lpos.begin)");
	d->time = get_number(d, "OFFSET(printk_info.ts_nsec)");
	d->text_len = get_number(d, "OFFSET(printk_info.text_len)");
	return d->is_bad || d->count_bits > MAX_SIZE_BITS || d->size_bits > MAX_SIZE_BITS ?
	       -EBADMSG : 0;
}

/* The text of a message, without a newline at its end */
static void read_text(struct dmesg *d, u64 desc, u64 id, char *text, u64 len)
{
	u64 begin = read_word(d, desc + d->begin), next = read_word(d, desc + d->next);
	u64 block = d->texts + (begin & ((1ULL << d->size_bits) - 1));

	*text = '\0';
	if (begin & next & NO_TEXT) {
		d->is_bad |= begin != EMPTY_TEXT;
		return;
	}
	/* Its id precedes it. A text that does not fit behind the others is at the start. */
	if (read_word(d, block) != id)
		block = d->texts;
	if (read_word(d, block) != id)
		d->is_bad = true;
	read_bytes(d, block + d->word, text, len);
	text[len] = '\0';
}

static void print_lines(FILE *f, u64 time, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")) != NULL)
		fprintf(f, "[%5" PRIu64 ".%06" PRIu64 "] %s\n", (u64)(time / NSEC_PER_SEC),
			(u64)(time % NSEC_PER_SEC / NSEC_PER_USEC), line);
}

static void put_message(struct dmesg *d, u64 id, struct blackbox_messages *m, FILE *f)
{
	u64 mask = (1ULL << d->count_bits) - 1;
	u64 desc = d->descs + (id & mask) * d->desc_size;
	u64 info = d->infos + (id & mask) * d->info_size;
	u32 shift = 8 * d->word - 2;
	char text[MAX_TEXT + 1];
	u64 state, time, len;

	d->is_bad = false;
	state = read_word(d, desc + d->state);
	if ((state & ((1ULL << shift) - 1)) != id ||
	    (state >> shift != STATE_COMMITTED && state >> shift != STATE_FINALIZED))
		return;
	time = read_number(d, info + d->time, sizeof(u64));
	len = read_number(d, info + d->text_len, sizeof(u16));
	if (len > MAX_TEXT)
		return;
	read_text(d, desc, id, text, len);
	if (d->is_bad)
		return;
	m->newest = time;
	print_lines(f, time, text);
}

static int read_log(struct dmesg *d, struct blackbox_messages *m)
{
	u64 head, tail, mask;
	size_t size;
	int err = open_ring(d, &head, &tail);
	FILE *f;

	if (err)
		return err;
	f = open_memstream(&m->text, &size);
	if (!f)
		return -ENOMEM;
	mask = (1ULL << (8 * d->word - 2)) - 1;
	if (((head - tail) & mask) >= BLACKBOX_MAX_MESSAGES)
		tail = head - BLACKBOX_MAX_MESSAGES + 1;
	for (u64 i = 0, nr = (head - tail) & mask; i <= nr; i++)
		put_message(d, (tail + i) & mask, m, f);
	if (fclose(f))
		return -ENOMEM;
	return size ? 0 : -ENODATA;
}

/**
 * blackbox_dmesg__read - read the log of the kernel
 * @m: returns the newest messages
 * @fd: the dump, a file of any format that libkdumpfile knows
 *
 * Return: 0 or a negative errno.
 */
int blackbox_dmesg__read(struct blackbox_messages *m, int fd)
{
	struct dmesg d = { .ctx = kdump_new() };
	int err = -EBADMSG;

	if (!d.ctx)
		return -ENOMEM;
	if (kdump_open_fd(d.ctx, fd) == KDUMP_OK &&
	    kdump_set_string_attr(d.ctx, KDUMP_ATTR_OSTYPE, "linux") == KDUMP_OK)
		err = read_log(&d, m);
	kdump_free(d.ctx);
	if (!err)
		m->from = "dump";
	return err;
}
