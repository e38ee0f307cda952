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
 *	compressed	(of makedumpfile) As a core file.
 *
 * The first kind that fits is taken. A file that begins with an image is a region: the first
 * page of memory belongs to no program.
 *
 * Any program can write superblocks to its memory. They must not hide an image: no number of
 * them at other addresses, nor one at its own, whose page the program has guessed, and
 * whatever size that claims. So all images at their own address are taken. Those that overlap
 * are marked.
 *
 * The parts of a scattered image are all over the memory, see assemble.c.
 *
 * An image in a compressed dump, or of which a core file has only parts, is copied to memory.
 * makedumpfile leaves out pages of zeros, and a page that the file does not have takes no
 * memory here. The size in a forged superblock must not cost more than there is: an image ends
 * where the memory of the machine does, and all images together take half of the memory of
 * this one at most. The smallest are copied first. One that does not fit is cut off.
 */
#include "find.h"
#include "assemble.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP		4096
#define PROGRESS	(64ULL << 20)

/* Of those at other addresses; they are needed for nothing but their number. */
#define MAX_COPIES	4096

/* More than a superblock has */
#define MAX_SUPER	65536

/**
 * struct search - a search for images
 * @find: those that were found
 * @progress: told how far the search is, or NULL
 * @shown: physical address in a compressed dump that was told last
 * @end: of the memory in a compressed dump
 * @super: room for a superblock
 */
struct search {
	struct blackbox_find	*find;
	blackbox_progress_t	progress;
	u64			shown;
	u64			end;
	u8			super[MAX_SUPER];
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

/* Not an image, but it may be the reason why there is none */
static void count_other(struct blackbox_find *find, enum blackbox_found found)
{
	switch (found) {
	case BLACKBOX_FOUND_FOREIGN:
		find->foreign++;
		break;
	case BLACKBOX_FOUND_VERSION:
		find->version++;
		break;
	case BLACKBOX_FOUND_DAMAGED:
		find->damaged++;
		break;
	case BLACKBOX_FOUND_IMAGE:
	case BLACKBOX_FOUND_NOTHING:
	default:
		break;
	}
}

/* @phys: address of the first byte; 0: not known, or 0 */
static int search_bytes(struct blackbox_find *find, const void *bytes, u64 size, u64 phys,
			blackbox_progress_t progress)
{
	int err = 0;

	for (u64 pos = 0; pos < size && !err; pos += STEP) {
		struct blackbox_image image;
		enum blackbox_found found;

		if (progress && !(pos % PROGRESS))
			progress(pos, size);
		found = blackbox_image__find(bytes, size, pos, &image);
		if (found != BLACKBOX_FOUND_IMAGE) {
			count_other(find, found);
			continue;
		}
		if (!pos && !phys)
			phys = image.super.phys;
		if (may_be_own(&image, phys) || find->nr < MAX_COPIES)
			err = add_image(find, &image);
		else
			find->copies++;
	}
	if (progress)
		progress(size, size);
	return err;
}

/* What is at an address of a compressed dump; its page is decompressed for a word of it. */
static int search_page(struct search *search, u64 phys)
{
	struct blackbox_find *find = search->find;
	struct blackbox_image image;
	enum blackbox_found found;
	u64 magic;

	if (!blackbox_memory__read(find->memory, phys, &magic, sizeof(magic)) || !magic)
		return 0;
	if (blackbox_image__find(&magic, sizeof(magic), 0, &image) == BLACKBOX_FOUND_NOTHING)
		return 0;
	blackbox_memory__read(find->memory, phys, search->super, sizeof(search->super));
	found = blackbox_image__find(search->super, sizeof(search->super), 0, &image);
	if (found != BLACKBOX_FOUND_IMAGE) {
		count_other(find, found);
		return 0;
	}
	if (image.super.phys != phys) {
		find->copies++;
		return 0;
	}
	image.base = NULL;
	image.offset = phys;
	image.size = min_t(u64, image.super.image_size,
			   blackbox_memory__extent(find->memory, phys));
	return add_image(find, &image);
}

static int search_pages(struct search *search, const struct blackbox_range *range)
{
	int err = 0;

	for (u64 pos = 0; pos < range->size && !err; pos += STEP) {
		u64 phys = range->phys + pos;

		if (search->progress && phys - search->shown >= PROGRESS) {
			search->progress(phys, search->end);
			search->shown = phys;
		}
		err = search_page(search, phys);
	}
	return err;
}

/* Segments need not begin at a multiple of a page of the file. */
static int search_range(const struct blackbox_range *range, void *data)
{
	struct search *search = data;
	struct blackbox_find *find = search->find;
	size_t first = find->nr;
	int err;

	if (!range->bytes)
		return search_pages(search, range);
	err = search_bytes(find, range->bytes, range->size, range->phys, search->progress);
	for (; first < find->nr; first++) {
		/* From here on its physical address, if that is known, as in a raw dump */
		find->images[first].offset += range->phys;
	}
	return err;
}

static int find_end(const struct blackbox_range *range, void *data)
{
	u64 *end = data;

	if (!range->bytes)
		*end = range->phys + range->size;
	return 0;
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

/* Keep the images at their own addresses. Return: that of the first byte of the file */
static u64 drop_copies(struct blackbox_find *find)
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
	return address;
}

/* Copies */

static int cmp_sizes(const void *va, const void *vb)
{
	const struct blackbox_image *const *a = va, *const *b = vb;

	return (*a)->size < (*b)->size ? -1 : (*a)->size > (*b)->size;
}

/*
 * Two kernels may have left a root each. If the dump tells where that of the last one is, the
 * other one is a copy.
 */
static void drop_older_roots(struct blackbox_find *find)
{
	size_t nr = 0;
	u64 root;

	if (!blackbox_memory__vmcoreinfo(find->memory, "PERF_BLACKBOX", &root))
		return;
	for (size_t i = 0; i < find->nr; i++) {
		const struct blackbox_image *image = &find->images[i];

		if (blackbox_image__is_scattered(image) && image->super.phys != root)
			find->copies++;
		else
			find->images[nr++] = *image;
	}
	find->nr = nr;
}

/* Not if all of it is in the file in one piece, or if nothing follows what is */
static bool wants_copy(struct blackbox_find *find, const struct blackbox_image *image, u64 address)
{
	u64 phys = address + image->offset;

	return blackbox_image__is_scattered(image) || !image->base ||
	       (image->size < image->super.image_size &&
		blackbox_memory__extent(find->memory, phys) > image->size);
}

static int copy_image(struct blackbox_find *find, struct blackbox_image *image, u64 phys,
		      u64 *room)
{
	u64 size = min_t(u64, image->super.image_size,
			 blackbox_memory__extent(find->memory, phys));
	void *bytes;
	int err;

	if (blackbox_image__is_scattered(image)) {
		/* The copy is in memory twice for a moment. */
		err = blackbox_assemble(image, find->memory, *room / 2);
		if (err == -EPROTONOSUPPORT) {
			image->base = NULL;
			image->size = 0;
			find->version++;
			err = 0;
		}
		*room -= min(*room, image->size);
		return err;
	}
	size = min(size, *room);
	if (size < sizeof(image->super))
		size = sizeof(image->super);
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	image->base = bytes;
	image->size = size;
	image->is_copy = true;
	image->left_out = size - blackbox_memory__copy(find->memory, phys, bytes, size);
	*room -= min(*room, size);
	return 0;
}

/* A root whose entries are not known here: it was counted. */
static void drop_unknown(struct blackbox_find *find)
{
	size_t nr = 0;

	for (size_t i = 0; i < find->nr; i++) {
		if (find->images[i].base)
			find->images[nr++] = find->images[i];
	}
	find->nr = nr;
}

static int copy_images(struct blackbox_find *find, u64 address)
{
	struct blackbox_image **images = calloc(find->nr + 1, sizeof(*images));
	u64 room = (u64)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
	size_t nr = 0;
	int err = 0;

	if (!images)
		return -ENOMEM;
	for (size_t i = 0; i < find->nr; i++) {
		if (wants_copy(find, &find->images[i], address))
			images[nr++] = &find->images[i];
	}
	if (nr)
		qsort(images, nr, sizeof(*images), cmp_sizes);
	for (size_t i = 0; i < nr && !err; i++)
		err = copy_image(find, images[i], address + images[i]->offset, &room);
	free(images);
	drop_unknown(find);
	return err;
}

static int search_all(struct blackbox_find *find, blackbox_progress_t progress)
{
	struct search *search = calloc(1, sizeof(*search));
	int err;

	if (!search)
		return -ENOMEM;
	search->find = find;
	search->progress = progress;
	blackbox_memory__visit(find->memory, find_end, &search->end);
	err = blackbox_memory__visit(find->memory, search_range, search);
	if (progress && search->end)
		progress(search->end, search->end);
	free(search);
	return err;
}

/**
 * blackbox_find__open - look for images
 * @find: returns the images, which have been read; must be freed in any case
 * @bytes: the file, which must stay
 * @size: bytes of it
 * @fd: the same file, which must stay open; or -1: compressed dumps cannot be read
 * @progress: told how far the search is, or NULL
 *
 * Return: 0, or an error of blackbox_memory__open().
 */
int blackbox_find__open(struct blackbox_find *find, const void *bytes, u64 size, int fd,
			blackbox_progress_t progress)
{
	u64 address;
	int err;

	*find = (struct blackbox_find) {};
	err = blackbox_memory__open(&find->memory, bytes, size, fd);
	if (err)
		return err;
	err = search_all(find, progress);
	address = drop_copies(find);
	drop_older_roots(find);
	blackbox_memory__set_address(find->memory, address);
	err = err ?: copy_images(find, address);
	for (size_t i = 0; i < find->nr && !err; i++)
		err = blackbox_image__read(&find->images[i]);
	return err;
}

/**
 * blackbox_find__init - look for images in a file that is not compressed
 * @find: as that of blackbox_find__open()
 * @bytes: the file, which must stay
 * @size: bytes of it
 * @progress: told how far the search is, or NULL
 *
 * Return: as blackbox_find__open().
 */
int blackbox_find__init(struct blackbox_find *find, const void *bytes, u64 size,
			blackbox_progress_t progress)
{
	return blackbox_find__open(find, bytes, size, /*fd=*/-1, progress);
}

void blackbox_find__exit(struct blackbox_find *find)
{
	for (size_t i = 0; i < find->nr; i++) {
		blackbox_image__exit(&find->images[i]);
		if (find->images[i].is_copy)
			munmap((void *)find->images[i].base, find->images[i].size);
	}
	zfree(&find->images);
	find->nr = 0;
	blackbox_memory__close(find->memory);
	find->memory = NULL;
}
