// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a dead machine, by physical address
 *
 * A file with memory is one of these:
 *
 *	core file	(ELF, of /proc/vmcore, of makedumpfile -E or of a hypervisor) The program
 *			headers tell the addresses. What a segment has in memory and not in the
 *			file was left out, as it is zero: it reads as zeros.
 *	compressed	(kdump, of makedumpfile or of a hypervisor) See kdump.c.
 *	bytes		A raw dump of physical memory, or a part of it such as a region: an
 *			offset is an address, less that of the first byte. The reader of the
 *			memory finds that address and sets it.
 *
 * The file may be larger than the memory of this machine: core files and bytes are mapped,
 * compressed pages are read one at a time. Nothing in it is trusted.
 *
 * makedumpfile -d leaves out pages: those that hold only zeros, and those of caches, of
 * programs, or that are free. The latter are missing. The pages of a region are none of
 * these, and are in each dump.
 */
#include "memory.h"
#include "kdump.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VMCOREINFO	"VMCOREINFO"

/* No memory is there. */
#define NOWHERE		((u64)-1)

/**
 * struct segment - a part of a core file
 * @offset: where it begins in the file
 * @size: bytes of it in the file
 * @phys: its physical address
 * @memory: bytes of it in memory, @size or more
 */
struct segment {
	u64	offset;
	u64	size;
	u64	phys;
	u64	memory;
};

/**
 * struct blackbox_memory - the memory of a dead machine
 * @bytes: the file
 * @size: bytes of it
 * @address: of the first byte; for files of bytes
 * @segments: of a core file, @nr_segments; 0: it is none
 * @nr_segments: number of these
 * @info: VMCOREINFO of a core file, lines KEY=VALUE without a NUL at the end
 * @info_size: bytes of it
 * @kdump: a compressed dump, or NULL
 */
struct blackbox_memory {
	const void		*bytes;
	u64			size;
	u64			address;
	struct segment		*segments;
	int			nr_segments;
	const char		*info;
	u64			info_size;
	struct blackbox_kdump	*kdump;
};

/* Core files */

/* Look for VMCOREINFO among the notes, @size bytes at @pos of the file. */
static void read_notes(struct blackbox_memory *mem, u64 pos, u64 size)
{
	const u64 end = pos + size;
	Elf64_Nhdr note;

	while (end - pos >= sizeof(note)) {
		u64 name, desc;

		memcpy(&note, mem->bytes + pos, sizeof(note));
		name = pos + sizeof(note);
		desc = name + PERF_ALIGN((u64)note.n_namesz, 4);
		if (desc > end || note.n_descsz > end - desc)
			break;
		if (note.n_namesz == sizeof(VMCOREINFO) &&
		    !memcmp(mem->bytes + name, VMCOREINFO, sizeof(VMCOREINFO))) {
			mem->info = mem->bytes + desc;
			mem->info_size = note.n_descsz;
		}
		pos = desc + min(PERF_ALIGN((u64)note.n_descsz, 4), end - desc);
	}
}

static void add_segment(struct blackbox_memory *mem, const Elf64_Phdr *phdr)
{
	u64 size = min((u64)phdr->p_filesz, mem->size - phdr->p_offset);
	u64 memory = size;

	/* Memory beyond p_filesz is zeros, but not if the file is truncated. */
	if (size == phdr->p_filesz)
		memory = max(size, (u64)phdr->p_memsz);
	mem->segments[mem->nr_segments++] = (struct segment) {
		.offset	= phdr->p_offset,
		.size	= size,
		.phys	= phdr->p_paddr,
		.memory	= min(memory, NOWHERE - (u64)phdr->p_paddr),
	};
}

/* Read the headers of a core file, if it is one. */
static int read_headers(struct blackbox_memory *mem)
{
	Elf64_Ehdr ehdr;

	if (mem->size < sizeof(ehdr))
		return 0;
	memcpy(&ehdr, mem->bytes, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_type != ET_CORE || ehdr.e_phentsize != sizeof(Elf64_Phdr) ||
	    ehdr.e_phoff > mem->size ||
	    (mem->size - ehdr.e_phoff) / sizeof(Elf64_Phdr) < ehdr.e_phnum)
		return 0;
	mem->segments = calloc(ehdr.e_phnum + 1, sizeof(*mem->segments));
	if (!mem->segments)
		return -ENOMEM;
	for (int i = 0; i < ehdr.e_phnum; i++) {
		Elf64_Phdr phdr;

		memcpy(&phdr, mem->bytes + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_offset > mem->size)
			continue;
		if (phdr.p_type == PT_LOAD)
			add_segment(mem, &phdr);
		else if (phdr.p_type == PT_NOTE)
			read_notes(mem, phdr.p_offset,
				   min((u64)phdr.p_filesz, mem->size - phdr.p_offset));
	}
	return 0;
}

/**
 * blackbox_memory__open - open a file with the memory of a machine
 * @mem: returns it; to be closed in any case
 * @bytes: the file, which must stay
 * @size: bytes of it
 * @fd: the same file, which must stay open, to read compressed dumps; or -1
 *
 * Return: 0, -ENOMEM, -EOPNOTSUPP if it is compressed and this perf cannot read that, or
 * -EBADMSG if it is compressed and damaged.
 */
int blackbox_memory__open(struct blackbox_memory **mem, const void *bytes, u64 size, int fd)
{
	*mem = zalloc(sizeof(**mem));
	if (!*mem)
		return -ENOMEM;
	(*mem)->bytes = bytes;
	(*mem)->size = size;
	if (blackbox_kdump__is_one(bytes, size))
		return blackbox_kdump__open(&(*mem)->kdump, fd);
	return read_headers(*mem);
}

void blackbox_memory__close(struct blackbox_memory *mem)
{
	if (!mem)
		return;
	blackbox_kdump__close(mem->kdump);
	free(mem->segments);
	free(mem);
}

/**
 * blackbox_memory__set_address - say where a file of bytes begins
 * @mem: the memory
 * @phys: physical address of the first byte; no other kind of file uses it
 */
void blackbox_memory__set_address(struct blackbox_memory *mem, u64 phys)
{
	mem->address = phys;
}

/**
 * blackbox_memory__visit - visit the parts of the memory that are in the file
 * @mem: the memory
 * @fn: is called for each, until it does not return 0
 * @data: for @fn
 *
 * They may be in any order, and in core files they may overlap.
 *
 * Return: what @fn has returned.
 */
int blackbox_memory__visit(struct blackbox_memory *mem, blackbox_range_fn_t fn, void *data)
{
	struct blackbox_range range = {};
	int err = 0;

	if (mem->kdump) {
		for (; !err && blackbox_kdump__next(mem->kdump, &range); range.phys += range.size)
			err = fn(&range, data);
		return err;
	}
	for (int i = 0; i < mem->nr_segments && !err; i++) {
		range = (struct blackbox_range) {
			.phys	= mem->segments[i].phys,
			.size	= mem->segments[i].size,
			.bytes	= mem->bytes + mem->segments[i].offset,
		};
		err = fn(&range, data);
	}
	if (!mem->nr_segments) {
		range.phys = mem->address;
		range.size = mem->size;
		range.bytes = mem->bytes;
		err = fn(&range, data);
	}
	return err;
}

/* The segment that has the address in the file, or else one that has it in memory */
static const struct segment *find_segment(const struct blackbox_memory *mem, u64 phys)
{
	const struct segment *found = NULL;

	for (int i = 0; i < mem->nr_segments; i++) {
		const struct segment *s = &mem->segments[i];

		if (phys < s->phys || phys - s->phys >= s->memory)
			continue;
		if (phys - s->phys < s->size)
			return s;
		found = s;
	}
	return found;
}

/**
 * blackbox_memory__extent - how far does the memory reach?
 * @mem: the memory
 * @phys: a physical address
 *
 * Pages that were left out of the file belong to it.
 *
 * Return: bytes from there on to the first address of which the file does not know.
 */
u64 blackbox_memory__extent(struct blackbox_memory *mem, u64 phys)
{
	const struct segment *s;
	u64 end = phys;

	if (mem->kdump)
		return blackbox_kdump__extent(mem->kdump, phys);
	if (!mem->nr_segments) {
		if (phys < mem->address || phys - mem->address >= mem->size)
			return 0;
		return mem->size - (phys - mem->address);
	}
	while ((s = find_segment(mem, end)) != NULL)
		end = s->phys + s->memory;
	return end - phys;
}

/* Where the next segment begins */
static u64 next_segment(const struct blackbox_memory *mem, u64 phys)
{
	u64 next = NOWHERE;

	for (int i = 0; i < mem->nr_segments; i++) {
		if (mem->segments[i].phys > phys)
			next = min(next, mem->segments[i].phys);
	}
	return next;
}

/* Copy what one segment has at @phys. Return: bytes that this, zeros or a gap took of @size. */
static u64 copy_segment(const struct blackbox_memory *mem, u64 phys, void *buf, u64 size,
			u64 *there)
{
	const struct segment *s = find_segment(mem, phys);
	u64 pos;

	if (!s)
		return min(size, next_segment(mem, phys) - phys);
	pos = phys - s->phys;
	if (pos < s->size) {
		size = min(size, s->size - pos);
		memcpy(buf, mem->bytes + s->offset + pos, size);
	} else {
		size = min(size, s->memory - pos);
		size = min(size, next_segment(mem, phys) - phys);
	}
	*there += size;
	return size;
}

/**
 * blackbox_memory__copy - copy what there is of a part of the memory
 * @mem: the memory
 * @phys: its physical address
 * @buf: for @size bytes, which must be zeros
 * @size: bytes of it
 *
 * Bytes that the file does not have are not changed in @buf.
 *
 * Return: how many bytes are not missing.
 */
u64 blackbox_memory__copy(struct blackbox_memory *mem, u64 phys, void *buf, u64 size)
{
	u64 there = 0;

	size = min(size, NOWHERE - phys);
	if (mem->kdump)
		return blackbox_kdump__copy(mem->kdump, phys, buf, size);
	if (!mem->nr_segments) {
		there = min(size, blackbox_memory__extent(mem, phys));
		if (there)
			memcpy(buf, mem->bytes + (phys - mem->address), there);
		return there;
	}
	for (u64 pos = 0; pos < size;)
		pos += copy_segment(mem, phys + pos, buf + pos, size - pos, &there);
	return there;
}

/**
 * blackbox_memory__read - read a part of the memory
 * @mem: the memory
 * @phys: its physical address
 * @buf: returns its bytes; zeros for those that are missing
 * @size: bytes of it
 *
 * Return: whether all of it is there. Pages that were left out because they hold only zeros
 * are.
 */
bool blackbox_memory__read(struct blackbox_memory *mem, u64 phys, void *buf, u64 size)
{
	memset(buf, 0, size);
	return blackbox_memory__copy(mem, phys, buf, size) == size;
}

/* VMCOREINFO */

/* A hexadecimal number up to the end of the line */
static bool parse_hex(const char *text, u64 size, u64 *value)
{
	char buf[20];
	char *end;

	size = min(size, (u64)sizeof(buf) - 1);
	memcpy(buf, text, size);
	buf[size] = '\0';
	errno = 0;
	*value = strtoull(buf, &end, 16);
	return end != buf && !errno && (!*end || *end == '\n');
}

/**
 * blackbox_memory__vmcoreinfo - what the kernel told those that read its dump
 * @mem: the memory
 * @key: what is wanted
 * @value: returns its value, a hexadecimal number
 *
 * Return: whether there is such a line in VMCOREINFO. The kernel adds lines, so the last one
 * counts. A file of bytes has none.
 */
bool blackbox_memory__vmcoreinfo(struct blackbox_memory *mem, const char *key, u64 *value)
{
	const u64 len = strlen(key);
	const char *line = mem->info, *end;
	bool found = false;
	char *text;

	if (mem->kdump) {
		text = blackbox_kdump__vmcoreinfo(mem->kdump, key);
		found = text && parse_hex(text, strlen(text), value);
		free(text);
		return found;
	}
	if (!line)
		return false;
	end = line + mem->info_size;
	while (line && line < end) {
		const char *next = memchr(line, '\n', end - line);

		if ((u64)(end - line) > len && line[len] == '=' && !memcmp(line, key, len))
			found = parse_hex(line + len + 1, end - line - len - 1, value);
		line = next ? next + 1 : NULL;
	}
	return found;
}
