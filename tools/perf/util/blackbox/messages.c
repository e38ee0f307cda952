// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel has printed before it died
 *
 * A dump of its memory has its log. After a reset, pstore may have the end of the log: the
 * kernel stored it when it panicked, in memory that survives a reset or in firmware. systemd
 * moves these files away at boot. A file belongs to a death if it was written at that time.
 */
#include "messages.h"
#include "image.h"
#include "../debug.h"
#include "../json-writer.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A slow console makes the time between the end of recording and the end of the log. */
#define BEFORE		((u64)(10 * NSEC_PER_SEC))
#define AFTER		((u64)(120 * NSEC_PER_SEC))

/* Of one file: pstore has at most some hundred KiB. */
#define MAX_PART	(1 << 20)
#define MAX_PARTS	256

static const char *const pstore_dirs[] = { "/sys/fs/pstore", "/var/lib/systemd/pstore" };

/**
 * struct part - a file of pstore
 * @report: number of the oops or panic of its boot
 * @part: 1 is the end of the log
 * @text: without the first line
 * @bytes: the file, NUL-terminated
 */
struct part {
	unsigned int	report;
	unsigned int	part;
	const char	*text;
	char		*bytes;
};

static char *read_file(int fd, off_t size)
{
	char *bytes;
	ssize_t len;

	if (size < 0 || size > MAX_PART)
		return NULL;
	bytes = malloc(size + 1);
	if (!bytes)
		return NULL;
	len = read(fd, bytes, size);
	bytes[max(len, (ssize_t)0)] = '\0';
	return bytes;
}

/* The first line is such as "Panic#2 Part1". */
static bool parse_part(struct part *part)
{
	if (sscanf(part->bytes, "%*15[^#]#%u Part%u", &part->report, &part->part) != 2)
		return false;
	part->text = strchr(part->bytes, '\n');
	return part->text++ != NULL;
}

static bool was_written_at(const struct stat *st, u64 died)
{
	u64 written = st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;

	return S_ISREG(st->st_mode) && written + BEFORE >= died && written <= died + AFTER;
}

static bool read_part(struct part *part, int dir, const char *name, u64 died)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	*part = (struct part) {};
	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && was_written_at(&st, died))
		part->bytes = read_file(fd, st.st_size);
	close(fd);
	if (part->bytes && parse_part(part))
		return true;
	free(part->bytes);
	return false;
}

/* The last report first; of its parts, the one that is the start of the log */
static int compare(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->report != y->report)
		return x->report > y->report ? -1 : 1;
	return x->part > y->part ? -1 : x->part < y->part;
}

/* Without the levels, as dmesg prints lines: "<6>[    1.000000] text" */
static void put_text(const char *text, FILE *f)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		unsigned int level;
		int skip = 0;

		if (sscanf(text, "<%3u>%n", &level, &skip) != 1)
			skip = 0;
		fprintf(f, "%.*s\n", (int)len - skip, text + skip);
		text += len + (text[len] == '\n');
	}
}

static int put_parts(struct blackbox_messages *m, struct part *parts, size_t nr)
{
	size_t size;
	FILE *f;

	qsort(parts, nr, sizeof(*parts), compare);
	f = open_memstream(&m->text, &size);
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < nr && parts[i].report == parts[0].report; i++)
		put_text(parts[i].text, f);
	return fclose(f) ? -ENOMEM : 0;
}

/**
 * blackbox_pstore__read - read the end of a log that pstore has kept
 * @m: returns it
 * @dir: where the files are
 * @died: when the kernel died, by the wall clock, in ns
 *
 * Return: 0 or a negative errno; -ENOENT: there is none of that time.
 */
int blackbox_pstore__read(struct blackbox_messages *m, const char *dir, u64 died)
{
	struct part parts[MAX_PARTS];
	DIR *d = opendir(dir);
	struct dirent *entry;
	size_t nr = 0;
	int err;

	if (!d)
		return -errno;
	while (nr < MAX_PARTS && (entry = readdir(d)) != NULL) {
		if (strstarts(entry->d_name, "dmesg-"))
			nr += read_part(&parts[nr], dirfd(d), entry->d_name, died);
	}
	closedir(d);
	err = nr ? put_parts(m, parts, nr) : -ENOENT;
	for (size_t i = 0; i < nr; i++)
		free(parts[i].bytes);
	if (!err)
		m->from = "pstore";
	return err;
}

static void forget(struct blackbox_messages *m)
{
	zfree(&m->text);
	m->from = NULL;
}

/* Of two images in a dump, one may be of the boot before. */
static bool is_of(const struct blackbox_messages *m, const struct blackbox_image *image)
{
	if (blackbox_image__is_scattered(image))
		return true;
	return image->has_death && m->newest + BEFORE >= image->death.clock.perf &&
	       m->newest <= image->death.clock.perf + AFTER;
}

/**
 * blackbox_messages__find - find what a kernel has printed
 * @m: returns the lines; they may lack. To be freed in any case
 * @image: what it has left
 * @fd: the dump of its memory, or -1: it is what the last boot left on this machine
 */
void blackbox_messages__find(struct blackbox_messages *m, const struct blackbox_image *image,
			     int fd)
{
	*m = (struct blackbox_messages) {};
	if (fd >= 0) {
		if (blackbox_dmesg__read(m, fd) || !is_of(m, image))
			forget(m);
		return;
	}
	for (size_t i = 0; image->has_death && i < ARRAY_SIZE(pstore_dirs); i++) {
		if (!blackbox_pstore__read(m, pstore_dirs[i], image->death.clock.real))
			return;
		forget(m);
	}
}

void blackbox_messages__exit(struct blackbox_messages *m)
{
	forget(m);
}

/* Where the last of the lines begin that are shown */
static const char *last_lines(const char *text)
{
	const char *pos = text + strlen(text);

	for (int nr = 0; pos > text; pos--) {
		if (pos[-1] == '\n' && nr++ == BLACKBOX_MAX_MESSAGES)
			break;
	}
	return pos;
}

/**
 * blackbox_messages__write - write the last lines as an array
 * @m: the lines
 * @w: where to
 */
void blackbox_messages__write(const struct blackbox_messages *m, struct json_writer *w)
{
	char *copy, *pos, *line;

	json_writer__string(w, "messages_from", m->from);
	json_writer__begin_array(w, "messages", JSON_STYLE__LINES);
	copy = m->from ? strdup(last_lines(m->text)) : NULL;
	for (pos = copy; pos && (line = strsep(&pos, "\n")) != NULL; ) {
		if (*line)
			json_writer__string(w, NULL, line);
	}
	free(copy);
	json_writer__end(w);
}
