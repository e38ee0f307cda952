// SPDX-License-Identifier: GPL-2.0
/*
 * The images that the kernel offers of earlier boots: find them, list them
 *
 * Their files are .../persistent/last/LABEL.N; all users see names and sizes. perf ctl -l lists
 * the images. To tell what one is, it takes the first page of it: there are the superblock,
 * the life and the death of the kernel. The page says nothing of sessions and records, which
 * may be damaged all the same. What the user may not read, and what is not in the page, is
 * shown as "-".
 *
 * The life has its place in images of all versions. Hence a death is told from an orderly end
 * even if nothing else can be read.
 */
#include "image.h"
#include "last.h"
#include "../ctl-last.h"
#include "../json-writer.h"
#include "../persistent/persistent.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_DIR	PERSISTENT_SYSFS "/last"
#define FIRST_PAGE	4096

/* Files */

/* LABEL.N belongs to LABEL and to LABEL.N. */
static bool is_wanted(const char *name, const char *last)
{
	const char *dot = strrchr(name, '.');

	if (*name == '.' || !dot || !strcmp(dot, BLACKBOX_RELEASE))
		return false;
	if (!last || !strcmp(name, last))
		return true;
	return strlen(last) == (size_t)(dot - name) && !strncmp(name, last, dot - name);
}

/**
 * blackbox_last__visit - look at the images that the kernel offers
 * @last: those of this region, or the image LABEL.N; NULL: all
 * @fn: called for each, in the order of their names
 * @data: passed to @fn
 *
 * Return: 0, also if there are none, or a negative errno.
 */
int blackbox_last__visit(const char *last, blackbox_last_fn_t fn, void *data)
{
	struct dirent **names;
	int nr, err = 0;
	char *dir, *path;

	if (asprintf(&dir, "%s/" LAST_DIR, sysfs__mountpoint() ?: "/sys") < 0)
		return -ENOMEM;
	nr = scandir(dir, &names, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		const char *name = names[i]->d_name;

		if (!err && is_wanted(name, last)) {
			if (asprintf(&path, "%s/%s", dir, name) < 0) {
				err = -ENOMEM;
			} else {
				err = fn(path, strrchr(path, '/') + 1, data);
				free(path);
			}
		}
		free(names[i]);
	}
	if (nr >= 0)
		free(names);
	free(dir);
	return err;
}

/* What an image is */

/**
 * enum end - how the kernel that wrote an image ended
 * @END_UNKNOWN: not known
 * @END_ORDERLY: it is no death, or one that was released
 * @END_DEATH: a death
 */
enum end {
	END_UNKNOWN,
	END_ORDERLY,
	END_DEATH,
};

/**
 * struct last_image - an image of the last boot, as far as its first page tells
 * @name: LABEL.N
 * @size: bytes of its file
 * @end: how its kernel ended
 * @state: the same in a word, or what is wrong with the image
 * @kernel: release of its kernel
 * @time: of the death, in nanoseconds of CLOCK_REALTIME; 0: not known
 * @reason: of the death
 *
 * Texts that are not known are NULL.
 */
struct last_image {
	char		*name;
	u64		size;
	enum end	end;
	const char	*state;
	char		*kernel;
	u64		time;
	char		*reason;
};

/**
 * struct last_list - the images of the last boot
 * @images: the images
 * @nr: number of these
 */
struct last_list {
	struct last_image	*images;
	int			nr;
};

/* Return: bytes that were read, or a negative errno. */
static ssize_t read_first_page(const char *path, void *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n, len = 0;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, bytes + len, FIRST_PAGE - len);
		if (n > 0)
			len += n;
	} while ((n < 0 && errno == EINTR) || (n > 0 && len < FIRST_PAGE));
	if (n < 0)
		len = -errno;
	close(fd);
	return len;
}

static enum end image_end(u32 state)
{
	return state == PERF_BLACKBOX_CLEAN || state == PERF_BLACKBOX_RELEASED ? END_ORDERLY :
										 END_DEATH;
}

static int describe(struct last_image *last, const struct blackbox_image *image)
{
	const char *reason = NULL;

	last->end = image_end(image->state);
	last->state = blackbox_image__state_name(image);
	if (image->has_death || image->state == PERF_BLACKBOX_LIVE)
		reason = blackbox_image__reason(image);
	else if (image->damaged)
		reason = "damaged";
	if (image->has_death)
		last->time = image->death.clock.real;
	last->kernel = strdup(image->super.release);
	last->reason = reason ? strdup(reason) : NULL;
	return last->kernel && (last->reason || !reason) ? 0 : -ENOMEM;
}

/* Nothing but the place of the life is known. */
static void describe_other_version(struct last_image *last, const void *bytes, size_t len)
{
	struct perf_blackbox_life life;

	last->state = "version";
	if (len < PERF_BLACKBOX_LIFE_OFFSET + sizeof(life))
		return;
	memcpy(&life, bytes + PERF_BLACKBOX_LIFE_OFFSET, sizeof(life));
	last->end = image_end(life.state);
}

static int read_image(struct last_image *last, const char *path)
{
	struct blackbox_image image;
	char bytes[FIRST_PAGE];
	struct stat st;
	ssize_t len;
	int err = 0;

	if (!stat(path, &st))
		last->size = st.st_size;
	len = read_first_page(path, bytes);
	if (len < 0)
		return 0;
	switch (blackbox_image__find(bytes, len, /*offset=*/0, &image)) {
	case BLACKBOX_FOUND_IMAGE:
		err = blackbox_image__read(&image) ?: describe(last, &image);
		blackbox_image__exit(&image);
		break;
	case BLACKBOX_FOUND_VERSION:
		describe_other_version(last, bytes, len);
		break;
	case BLACKBOX_FOUND_FOREIGN:
		last->state = "foreign";
		break;
	case BLACKBOX_FOUND_DAMAGED:
	case BLACKBOX_FOUND_NOTHING:
	default:
		last->state = "damaged";
		break;
	}
	return err;
}

static int add_image(const char *path, const char *name, void *data)
{
	struct last_list *list = data;
	struct last_image *images = reallocarray(list->images, list->nr + 1, sizeof(*images));

	if (!images)
		return -ENOMEM;
	list->images = images;
	images[list->nr] = (struct last_image) { .name = strdup(name) };
	if (!images[list->nr].name)
		return -ENOMEM;
	return read_image(&images[list->nr++], path);
}

/* perf ctl -l */

static void print_json(const struct last_image *last, struct json_writer *w)
{
	static const char *const death[] = {
		[END_UNKNOWN] = NULL, [END_ORDERLY] = "false", [END_DEATH] = "true",
	};
	char time[24];

	snprintf(time, sizeof(time), "%" PRIu64, last->time);
	json_writer__begin_object(w, NULL, JSON_STYLE__INLINE);
	json_writer__string(w, "kind", "image");
	json_writer__string(w, "name", last->name);
	json_writer__number(w, "size", last->size);
	json_writer__string(w, "state", last->state);
	json_writer__literal(w, "death", death[last->end]);
	json_writer__string(w, "kernel", last->kernel);
	json_writer__literal(w, "time", last->time ? time : NULL);
	json_writer__string(w, "reason", last->reason);
	json_writer__end(w);
}

static void print_table(const struct last_list *list)
{
	int name_width = strlen("LAST BOOT"), kernel_width = strlen("KERNEL");

	for (int i = 0; i < list->nr; i++) {
		name_width = max_t(int, name_width, strlen(list->images[i].name));
		kernel_width = max_t(int, kernel_width, strlen(list->images[i].kernel ?: "-"));
	}
	printf("%-*s  %10s  %-5s  %-8s  %-*s  %-20s  %s\n", name_width, "LAST BOOT", "SIZE",
	       "DEATH", "STATE", kernel_width, "KERNEL", "TIME", "REASON");
	for (int i = 0; i < list->nr; i++) {
		static const char *const death[] = {
			[END_UNKNOWN] = "-", [END_ORDERLY] = "no", [END_DEATH] = "yes",
		};
		const struct last_image *last = &list->images[i];
		char time[40];

		printf("%-*s  %10" PRIu64 "  %-5s  %-8s  %-*s  %-20s  %s\n", name_width,
		       last->name, last->size, death[last->end], last->state ?: "-",
		       kernel_width, last->kernel ?: "-",
		       blackbox__wall_clock(last->time, time, sizeof(time)) ?: "-",
		       last->reason ?: "-");
	}
}

/* How to get at what lies there */
static void print_hint(const struct last_list *list)
{
	bool is_unread = false, is_death = false;

	for (int i = 0; i < list->nr; i++) {
		is_unread |= !list->images[i].state;
		is_death |= list->images[i].end != END_ORDERLY;
	}
	printf("Recover what was recorded%s: perf data recover%s -o FILE\n",
	       is_unread ? ", as root" : "", is_death ? "" : " --all");
}

static void free_list(struct last_list *list)
{
	for (int i = 0; i < list->nr; i++) {
		zfree(&list->images[i].name);
		zfree(&list->images[i].kernel);
		zfree(&list->images[i].reason);
	}
	zfree(&list->images);
}

/**
 * blackbox_last__list - list the images of the last boot
 * @w: write them as members of an array; NULL: print a table, if there are any
 * @behind_others: there is another table above it
 *
 * Return: how many there are, or a negative errno.
 */
int blackbox_last__list(struct json_writer *w, bool behind_others)
{
	struct last_list list = {};
	int err = blackbox_last__visit(NULL, add_image, &list), nr = list.nr;

	for (int i = 0; w && i < nr; i++)
		print_json(&list.images[i], w);
	if (!w && nr) {
		if (behind_others)
			printf("\n");
		print_table(&list);
		print_hint(&list);
	}
	free_list(&list);
	return err ?: nr;
}
