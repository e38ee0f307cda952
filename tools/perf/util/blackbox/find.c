// SPDX-License-Identifier: GPL-2.0
/*
 * Look for black box images in a file
 *
 * Each page may be the start of an image. Copies of images, or of files with images, lie about
 * in memory, in the page cache for one. An image knows its own physical address, so only the
 * one at that address is taken:
 *
 *   core file	(ELF, of kdump or of a hypervisor) The program headers tell the addresses.
 *   memory	The file is a raw dump of physical memory: an image lies at the offset that is
 *		its own address.
 *   region	The file has the bytes of a region, or of one image. If it begins with an
 *		image, its address is that of this image. Otherwise it is what the image says
 *		of its region. An image lies at its own address less that of the file.
 *
 * The first kind that fits is taken. A file that begins with an image is a region: the first
 * page of memory belongs to no program.
 *
 * Any program can write superblocks to its memory. They must not hide an image: no number of
 * them at other addresses, nor one at its own, whose page the program has guessed, and
 * whatever size that claims. So all images at their own address are taken. Those that overlap
 * are marked.
 */
#include "find.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP		4096
#define PROGRESS	(64ULL << 20)

/* Of those at other addresses; they are needed for nothing but their number. */
#define MAX_COPIES	4096

/* A part of the file whose physical address is known */
struct segment {
	u64	offset;
	u64	size;
	u64	phys;
};

static int add_image(struct blackbox_find *find, const struct blackbox_image *image)
{
	struct blackbox_image *images = reallocarray(find->images, find->nr + 1, sizeof(*images));

	if (!images)
		return -ENOMEM;
	find->images = images;
	images[find->nr++] = *image;
	return 0;
}

/* May the image lie at its own address, if the file begins at @phys? */
static bool may_be_own(const struct blackbox_image *image, u64 phys)
{
	const struct perf_blackbox_super *super = &image->super;

	return !image->offset || super->phys == phys + image->offset ||
	       super->phys - super->region_phys == image->offset;
}

/* @phys: address of the first byte; 0: not known, or 0 */
static int search(struct blackbox_find *find, const void *bytes, u64 size, u64 phys,
		  blackbox_progress_t progress)
{
	size_t copies = 0;
	int err = 0;

	for (u64 pos = 0; pos < size && !err; pos += STEP) {
		struct blackbox_image image;

		if (progress && !(pos % PROGRESS))
			progress(pos, size);
		switch (blackbox_image__find(bytes, size, pos, &image)) {
		case BLACKBOX_FOUND_IMAGE:
			if (!pos && !phys)
				phys = image.super.phys;
			if (may_be_own(&image, phys) || copies++ < MAX_COPIES)
				err = add_image(find, &image);
			else
				find->copies++;
			break;
		case BLACKBOX_FOUND_FOREIGN:
			find->foreign++;
			break;
		case BLACKBOX_FOUND_VERSION:
			find->version++;
			break;
		case BLACKBOX_FOUND_DAMAGED:
			find->damaged++;
			break;
		case BLACKBOX_FOUND_NOTHING:
		default:
			break;
		}
	}
	if (progress)
		progress(size, size);
	return err;
}

/* The segments of a core file. Return: how many, 0 if it is none, or -ENOMEM. */
static int read_segments(const void *bytes, u64 size, struct segment **segments)
{
	Elf64_Ehdr ehdr;
	int nr = 0;

	*segments = NULL;
	if (size < sizeof(ehdr))
		return 0;
	memcpy(&ehdr, bytes, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_type != ET_CORE || ehdr.e_phentsize != sizeof(Elf64_Phdr) ||
	    ehdr.e_phoff > size || (size - ehdr.e_phoff) / sizeof(Elf64_Phdr) < ehdr.e_phnum)
		return 0;
	*segments = calloc(ehdr.e_phnum + 1, sizeof(**segments));
	if (!*segments)
		return -ENOMEM;
	for (int i = 0; i < ehdr.e_phnum; i++) {
		Elf64_Phdr phdr;

		memcpy(&phdr, bytes + ehdr.e_phoff + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type != PT_LOAD || phdr.p_offset > size)
			continue;
		(*segments)[nr++] = (struct segment) {
			.offset	= phdr.p_offset,
			.size	= min((u64)phdr.p_filesz, size - phdr.p_offset),
			.phys	= phdr.p_paddr,
		};
	}
	return nr;
}

/* Segments need not begin at a multiple of a page of the file. */
static int search_segments(struct blackbox_find *find, const void *bytes,
			   const struct segment *segments, int nr, blackbox_progress_t progress)
{
	int err = 0;

	for (int i = 0; i < nr && !err; i++) {
		size_t first = find->nr;

		err = search(find, bytes + segments[i].offset, segments[i].size,
			     segments[i].phys, progress);
		for (size_t j = first; j < find->nr; j++) {
			struct blackbox_image *image = &find->images[j];

			/* From here on its physical address, as in a raw dump */
			image->offset += segments[i].phys;
		}
	}
	return err;
}

/* The physical address of the first byte of the file; the images are sorted */
static u64 find_address(const struct blackbox_find *find)
{
	if (find->nr && !find->images[0].offset)
		return find->images[0].super.phys;
	for (size_t i = 0; i < find->nr; i++) {
		if (find->images[i].offset == find->images[i].super.phys)
			return 0;
	}
	for (size_t i = 0; i < find->nr; i++) {
		const struct perf_blackbox_super *super = &find->images[i].super;

		if (super->phys - super->region_phys == find->images[i].offset)
			return super->region_phys;
	}
	return 0;
}

static int cmp_images(const void *va, const void *vb)
{
	const struct blackbox_image *a = va, *b = vb;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Keep the images at their own addresses. */
static void drop_copies(struct blackbox_find *find)
{
	struct blackbox_image *longest = NULL;
	size_t nr = 0;
	u64 address;

	/* Segments may be in any order, and may overlap. */
	if (find->nr)
		qsort(find->images, find->nr, sizeof(*find->images), cmp_images);
	address = find_address(find);
	for (size_t i = 0; i < find->nr; i++) {
		struct blackbox_image *image = &find->images[i];

		if (image->super.phys - address != image->offset ||
		    (nr && image->offset == find->images[nr - 1].offset)) {
			find->copies++;
			continue;
		}
		find->images[nr] = *image;
		image = &find->images[nr++];
		if (longest && image->offset < longest->offset + longest->size) {
			longest->overlaps = true;
			image->overlaps = true;
		}
		if (!longest || image->offset + image->size > longest->offset + longest->size)
			longest = image;
	}
	find->nr = nr;
}

/**
 * blackbox_find__init - look for images
 * @find: returns the images, which have been read; must be freed in any case
 * @bytes: the file, which must stay
 * @size: bytes of it
 * @progress: told how far the search is, or NULL
 *
 * Return: 0 or -ENOMEM.
 */
int blackbox_find__init(struct blackbox_find *find, const void *bytes, u64 size,
			blackbox_progress_t progress)
{
	struct segment *segments;
	int nr, err;

	*find = (struct blackbox_find) {};
	nr = read_segments(bytes, size, &segments);
	if (nr < 0)
		return nr;
	if (nr)
		err = search_segments(find, bytes, segments, nr, progress);
	else
		err = search(find, bytes, size, /*phys=*/0, progress);
	free(segments);
	drop_copies(find);
	for (size_t i = 0; i < find->nr && !err; i++)
		err = blackbox_image__read(&find->images[i]);
	return err;
}

void blackbox_find__exit(struct blackbox_find *find)
{
	for (size_t i = 0; i < find->nr; i++)
		blackbox_image__exit(&find->images[i]);
	zfree(&find->images);
	find->nr = 0;
}
