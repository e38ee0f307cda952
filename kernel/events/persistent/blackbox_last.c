// SPDX-License-Identifier: GPL-2.0
/*
 * Black box: regions, and what earlier boots left there
 *
 * A region is memory of reserve_mem=SIZE:ALIGN:LABEL. It has room for two images, its
 * halves: the image of this boot, and one that an earlier boot left behind when it died.
 *
 * Search
 * ------
 *
 * The kernel learns of a region when the command line names it in perf_persistent=. It then
 * searches the region for images: at each page, for a superblock with magic, matching CRC,
 * its own physical address, and a size that fits. The search continues behind an image, so
 * that bytes within an image are not taken for another one. It finds images of a region that
 * had another size as well, as long as the memory is part of the region. One word per page
 * is read, and nothing is copied.
 *
 * Which half is used
 * ------------------
 *
 * An image whose kernel died (not clean, and not released) is kept: this boot does not write
 * over it. Of the halves without such an image, the one with the older image is taken, for the
 * first session of this boot. If there is none, the placement fails (EBUSY): the two oldest
 * deaths are kept until one of them is released.
 *
 * Access
 * ------
 *
 *	/sys/bus/event_source/devices/persistent/last/
 *	  LABEL.N		bytes of the image number N, in the order of their addresses
 *	  LABEL.N.release	"1": the image may be written over
 *
 * The files exist for all images that this boot has not written over. Records hold data of
 * all users and of the kernel. Hence the opener of a file needs CAP_PERFMON and
 * CAP_SYS_ADMIN, and lockdown and the LSM are asked as for perf_event_open().
 *
 * The kernel does not look at the bytes beyond the superblock and the life of the image.
 *
 * Locking: regions are found, and halves taken, under perf_persistent_mutex. Reads and
 * releases take no lock: the memory is never freed, and an image is not written over after
 * its files were removed.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/io.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "blackbox.h"

/* Of a file name: a label, a number and ".release" */
#define PERF_BLACKBOX_FILE_LEN	(PERF_BLACKBOX_LABEL_LEN + 16)

/**
 * struct perf_blackbox_last - an image of an earlier boot
 * @super: its start
 * @phys: its physical address
 * @size: its size
 * @generation: see struct perf_blackbox_super
 * @shown: it has files
 * @image: LABEL.N
 * @release: LABEL.N.release
 * @image_name: name of @image
 * @release_name: name of @release
 */
struct perf_blackbox_last {
	struct perf_blackbox_super	*super;
	phys_addr_t			phys;
	size_t				size;
	u64				generation;
	bool				shown;
	struct bin_attribute		image;
	struct kobj_attribute		release;
	char				image_name[PERF_BLACKBOX_FILE_LEN];
	char				release_name[PERF_BLACKBOX_FILE_LEN];
};

static LIST_HEAD(perf_blackbox_regions);
static struct kobject *perf_blackbox_last_dir;

/* Files */

/* May the opener of the file read what all users have recorded? */
static int perf_blackbox_may_read(struct file *file)
{
	int err;

	if (!file_ns_capable(file, &init_user_ns, CAP_PERFMON) ||
	    !file_ns_capable(file, &init_user_ns, CAP_SYS_ADMIN))
		return -EPERM;

	err = security_locked_down(LOCKDOWN_PERF);
	if (err)
		return err;

	return security_perf_event_open(PERF_SECURITY_KERNEL);
}

static ssize_t perf_blackbox_read_last(struct file *file, struct kobject *kobj,
				       struct bin_attribute *attr, char *buf, loff_t offset,
				       size_t count)
{
	struct perf_blackbox_last *last = attr->private;
	int err;

	err = perf_blackbox_may_read(file);
	if (err)
		return err;

	return memory_read_from_buffer(buf, count, &offset, last->super, last->size);
}

static ssize_t perf_blackbox_release_last(struct kobject *kobj, struct kobj_attribute *attr,
					  const char *buf, size_t count)
{
	struct perf_blackbox_last *last = container_of(attr, struct perf_blackbox_last, release);
	bool release;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;

	err = kstrtobool(buf, &release);
	if (err)
		return err;
	if (!release)
		return -EINVAL;

	WRITE_ONCE(perf_blackbox_life(last->super)->state, PERF_BLACKBOX_RELEASED);
	return count;
}

static int perf_blackbox_show(struct perf_blackbox_last *last)
{
	int err;

	if (!perf_blackbox_last_dir && perf_persistent_dir)
		perf_blackbox_last_dir = kobject_create_and_add("last", perf_persistent_dir);
	if (!perf_blackbox_last_dir)
		return -ENOMEM;

	sysfs_bin_attr_init(&last->image);
	last->image.attr.name = last->image_name;
	last->image.attr.mode = 0400;
	last->image.size = last->size;
	last->image.private = last;
	last->image.read = perf_blackbox_read_last;
	err = sysfs_create_bin_file(perf_blackbox_last_dir, &last->image);
	if (err)
		return err;

	sysfs_attr_init(&last->release.attr);
	last->release.attr.name = last->release_name;
	last->release.attr.mode = 0200;
	last->release.store = perf_blackbox_release_last;
	err = sysfs_create_file(perf_blackbox_last_dir, &last->release.attr);
	if (err) {
		sysfs_remove_bin_file(perf_blackbox_last_dir, &last->image);
		return err;
	}

	last->shown = true;
	return 0;
}

/* Waits for readers. */
static void perf_blackbox_hide(struct perf_blackbox_last *last)
{
	if (!last->shown)
		return;

	sysfs_remove_file(perf_blackbox_last_dir, &last->release.attr);
	sysfs_remove_bin_file(perf_blackbox_last_dir, &last->image);
	last->shown = false;
}

/* Search */

static bool perf_blackbox_is_kept(struct perf_blackbox_last *last)
{
	switch (READ_ONCE(perf_blackbox_life(last->super)->state)) {
	case PERF_BLACKBOX_CLEAN:
	case PERF_BLACKBOX_RELEASED:
		return false;
	default:
		return true;
	}
}

static int perf_blackbox_add_last(struct perf_blackbox_region *region,
				  struct perf_blackbox_super *super, phys_addr_t phys)
{
	struct perf_blackbox_last *last;
	int err;

	last = kzalloc(sizeof(*last), GFP_KERNEL);
	if (!last)
		return -ENOMEM;

	last->super = super;
	last->phys = phys;
	last->size = super->image_size;
	last->generation = super->generation;
	snprintf(last->image_name, sizeof(last->image_name), "%s.%u", region->label,
		 region->nr_last);
	snprintf(last->release_name, sizeof(last->release_name), "%s.%u.release", region->label,
		 region->nr_last);

	region->last[region->nr_last++] = last;
	region->generation = max(region->generation, last->generation);
	if (perf_blackbox_is_kept(last))
		pr_info("region '%s' holds what a kernel left at its death: last/%s\n",
			region->label, last->image_name);

	/* It is not written over, even if it cannot be shown. */
	err = perf_blackbox_show(last);
	if (err)
		pr_warn("last/%s cannot be shown: %pe\n", last->image_name, ERR_PTR(err));
	return 0;
}

static int perf_blackbox_search(struct perf_blackbox_region *region)
{
	struct perf_blackbox_super *super;
	size_t offset = 0;
	int err;

	while (offset < region->size && region->nr_last < PERF_BLACKBOX_MAX_LAST) {
		super = phys_to_virt(region->phys) + offset;
		if (!perf_blackbox_valid(super, region->phys + offset, region->size - offset)) {
			offset += PAGE_SIZE;
			cond_resched();
			continue;
		}

		err = perf_blackbox_add_last(region, super, region->phys + offset);
		if (err)
			return err;
		offset += super->image_size;
	}
	return 0;
}

static void perf_blackbox_free_region(struct perf_blackbox_region *region)
{
	while (region->nr_last--) {
		perf_blackbox_hide(region->last[region->nr_last]);
		kfree(region->last[region->nr_last]);
	}
	kfree(region);
}

/**
 * perf_blackbox_find_region - find a region that perf_persistent= has named
 * @label: its label
 *
 * Context: perf_persistent_mutex is held.
 * Return: the region, or NULL
 */
struct perf_blackbox_region *perf_blackbox_find_region(const char *label)
{
	struct perf_blackbox_region *region;

	lockdep_assert_held(&perf_persistent_mutex);

	list_for_each_entry(region, &perf_blackbox_regions, entry) {
		if (!strcmp(region->label, label))
			return region;
	}
	return NULL;
}

/**
 * perf_blackbox_add_region - search a region for what earlier boots left there
 * @label: its label; nothing is done if it was added before
 *
 * Context: perf_persistent_mutex is held; may sleep.
 * Return: 0, or -ENODEV if there is none of this name, or -ENOMEM
 */
int perf_blackbox_add_region(const char *label)
{
	struct perf_blackbox_region *region;
	phys_addr_t start, size;
	int err;

	if (perf_blackbox_find_region(label))
		return 0;

	if (strlen(label) >= PERF_BLACKBOX_LABEL_LEN ||
	    !reserve_mem_find_by_name(label, &start, &size))
		return -ENODEV;

	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return -ENOMEM;

	strscpy(region->label, label);
	region->phys = PAGE_ALIGN(start);
	if (PAGE_ALIGN_DOWN(start + size) > region->phys)
		region->size = PAGE_ALIGN_DOWN(start + size) - region->phys;

	err = perf_blackbox_search(region);
	if (err) {
		perf_blackbox_free_region(region);
		return err;
	}

	list_add_tail(&region->entry, &perf_blackbox_regions);
	return 0;
}

/* Take over a half: images that overlap it are not offered any more. */
static void perf_blackbox_take_over(struct perf_blackbox_region *region, phys_addr_t phys,
				    size_t size)
{
	struct perf_blackbox_last *last;
	unsigned int i;

	for (i = 0; i < region->nr_last; i++) {
		last = region->last[i];
		if (last->phys < phys + size && phys < last->phys + last->size)
			perf_blackbox_hide(last);
	}
}

/* Can the half be used? If so, @age is set to the newest generation in it. */
static bool perf_blackbox_is_free(struct perf_blackbox_region *region, phys_addr_t phys,
				  size_t size, u64 *age)
{
	struct perf_blackbox_last *last;
	unsigned int i;

	*age = 0;
	for (i = 0; i < region->nr_last; i++) {
		last = region->last[i];
		if (last->phys >= phys + size || phys >= last->phys + last->size)
			continue;
		if (perf_blackbox_is_kept(last))
			return false;
		*age = max(*age, last->generation);
	}
	return true;
}

/**
 * perf_blackbox_choose_half - choose a half of a region for the image of this boot
 * @region: the region
 * @phys: set to its physical address
 * @size: set to its size
 *
 * Files of an image that was there are removed: the caller writes over it.
 *
 * Context: perf_persistent_mutex is held; may sleep.
 * Return: 0, or -EBUSY if both halves hold what a kernel left at its death
 */
int perf_blackbox_choose_half(struct perf_blackbox_region *region, phys_addr_t *phys,
			      size_t *size)
{
	u64 age, oldest = U64_MAX;
	phys_addr_t half;
	unsigned int i;

	lockdep_assert_held(&perf_persistent_mutex);

	*size = PAGE_ALIGN_DOWN(region->size / PERF_BLACKBOX_HALVES);
	if (region->taken) {
		*phys = region->taken;
		return 0;
	}

	for (i = 0; i < PERF_BLACKBOX_HALVES; i++) {
		half = region->phys + i * *size;
		if (perf_blackbox_is_free(region, half, *size, &age) && age < oldest) {
			oldest = age;
			*phys = half;
		}
	}

	if (oldest == U64_MAX) {
		pr_warn_ratelimited("region '%s' is full of what kernels left at their deaths: save last/%s.*, then write 1 to last/%s.*.release\n",
				    region->label, region->label, region->label);
		return -EBUSY;
	}

	perf_blackbox_take_over(region, *phys, *size);
	region->taken = *phys;
	return 0;
}
