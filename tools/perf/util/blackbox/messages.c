// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel has printed before it died
 *
 * A dump of its memory has its log. After a reset, pstore may have the end of the log: the
 * kernel stored it when it panicked, in memory that survives a reset or in firmware. systemd
 * moves these files away at boot. A file belongs to a death if it was written at that time.
 */
#include "messages.h"
#include "source.h"
#include "../json-writer.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An oops comes before the death, a panic behind it: its console may be slow. In ns */
#define BEFORE		((u64)10 * NSEC_PER_SEC)
#define AFTER		((u64)30 * NSEC_PER_SEC)
/* Parts of one report are written one after the other. */
#define TOGETHER	((u64)5 * NSEC_PER_SEC)

/* Limits far above the size of any report */
#define MAX_BYTES	(1024 * 1024)
#define MAX_PARTS	256

/* Directories of systemd: one by the time of the crash, and one for each of its reports */
#define MAX_DEPTH	2
#define MAX_DIRS	256

static const char *const pstore_dirs[] = { "/sys/fs/pstore", "/var/lib/systemd/pstore" };

/**
 * struct part - a file of pstore
 * @written: when, by the wall clock, in ns
 * @report: number of the oops or panic of its boot
 * @part: 1 is the end of the log
 * @text: without the first line
 * @bytes: the file, NUL-terminated
 */
struct part {
	u64		written;
	unsigned int	report;
	unsigned int	part;
	const char	*text;
	char		*bytes;
};

/**
 * struct pstore - what pstore has of the time of a death
 * @died: when that was, by the wall clock, in ns
 * @parts: the files
 * @nr: number of these
 * @bytes: their size
 * @dirs: how many directories were searched
 */
struct pstore {
	u64		died;
	struct part	parts[MAX_PARTS];
	size_t		nr;
	size_t		bytes;
	unsigned int	dirs;
};

static char *read_file(int fd, size_t size)
{
	char *bytes = malloc(size + 1);
	size_t done = 0;
	ssize_t len;

	while (bytes && done < size) {
		len = read(fd, bytes + done, size - done);
		if (len < 0)
			zfree(&bytes);
		if (len <= 0)
			break;
		done += len;
	}
	if (bytes)
		bytes[done] = '\0';
	return bytes;
}

/* The first line is such as "Panic#2 Part1". */
static bool parse_part(struct part *part)
{
	char *end = strchr(part->bytes, '\n');

	if (!end)
		return false;
	*end = '\0';
	part->text = end + 1;
	return sscanf(part->bytes, "%*15[^#]#%u Part%u", &part->report, &part->part) == 2;
}

static u64 mtime(const struct stat *st)
{
	return (u64)st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
}

/* A directory that is older than the death has nothing of it. */
static bool is_searched(const struct pstore *p, const struct stat *st, int depth)
{
	return S_ISDIR(st->st_mode) && depth < MAX_DEPTH && p->dirs < MAX_DIRS &&
	       mtime(st) + BEFORE >= p->died;
}

static void add_file(struct pstore *p, int fd, const struct stat *st)
{
	struct part *part = &p->parts[p->nr];

	if (p->nr == MAX_PARTS || st->st_size < 0 || st->st_size > MAX_BYTES - (off_t)p->bytes ||
	    mtime(st) + BEFORE < p->died || mtime(st) > p->died + AFTER)
		return;
	*part = (struct part) { .written = mtime(st), .bytes = read_file(fd, st->st_size) };
	if (part->bytes && parse_part(part)) {
		p->bytes += st->st_size;
		p->nr++;
	} else {
		free(part->bytes);
	}
}

/* Takes @fd. */
static void add_dir(struct pstore *p, int fd, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!d) {
		close(fd);
		return;
	}
	while ((entry = readdir(d)) != NULL) {
		if (*entry->d_name == '.')
			continue;
		fd = openat(dirfd(d), entry->d_name,
			    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (fstat(fd, &st)) {
			close(fd);
		} else if (is_searched(p, &st, depth)) {
			p->dirs++;
			add_dir(p, fd, depth + 1);
		} else {
			if (S_ISREG(st.st_mode) && strstarts(entry->d_name, "dmesg-"))
				add_file(p, fd, &st);
			close(fd);
		}
	}
	closedir(d);
}

/* The report of a panic is the first one after the death, or else the last one before it. */
static bool is_nearer(const struct pstore *p, const struct part *a, const struct part *b)
{
	bool a_behind = a->written >= p->died, b_behind = b->written >= p->died;

	if (a_behind != b_behind)
		return a_behind;
	return a_behind ? a->written < b->written : a->written > b->written;
}

/*
 * Another boot may have died within seconds, with reports of the same numbers. Keep the parts
 * of one report.
 */
static void keep_report(struct pstore *p)
{
	struct part nearest = p->parts[0];
	size_t nr = 0;

	for (size_t i = 1; i < p->nr; i++) {
		if (is_nearer(p, &p->parts[i], &nearest))
			nearest = p->parts[i];
	}
	for (size_t i = 0; i < p->nr; i++) {
		struct part *part = &p->parts[i];

		if (part->report == nearest.report &&
		    part->written <= nearest.written + TOGETHER &&
		    nearest.written <= part->written + TOGETHER)
			p->parts[nr++] = *part;
		else
			free(part->bytes);
	}
	p->nr = nr;
}

/* The part that is the start of the log first */
static int compare(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->part != y->part)
		return x->part > y->part ? -1 : 1;
	return x->written < y->written ? -1 : x->written > y->written;
}

/* Length of the level of a line, such as "<6>" */
static size_t level_len(const char *line, size_t len)
{
	size_t pos = 1;

	if (!len || *line != '<')
		return 0;
	while (pos < len && pos < 4 && isdigit(line[pos]))
		pos++;
	return pos > 1 && pos < len && line[pos] == '>' ? pos + 1 : 0;
}

/* As dmesg prints lines, and without what ramoops says of its checksums */
static void put_text(const char *text, FILE *f)
{
	while (*text) {
		size_t len = strcspn(text, "\n"), skip = level_len(text, len);

		if (!strstarts(text, "ECC: "))
			fprintf(f, "%.*s\n", (int)(len - skip), text + skip);
		text += len + (text[len] == '\n');
	}
}

static int put_parts(struct blackbox_messages *m, struct pstore *p)
{
	size_t size;
	FILE *f;

	qsort(p->parts, p->nr, sizeof(*p->parts), compare);
	f = open_memstream(&m->text, &size);
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr; i++) {
		/* The same part again is of another boot. */
		if (!i || p->parts[i].part != p->parts[i - 1].part)
			put_text(p->parts[i].text, f);
	}
	return fclose(f) ? -ENOMEM : 0;
}

/**
 * blackbox_pstore__read - read the end of a log that pstore has kept
 * @m: returns it
 * @dirs: where the files are, and in directories there
 * @nr_dirs: number of these
 * @died: when the kernel died, by the wall clock, in ns
 *
 * Return: 0; -ENOENT: there is none of that time; -ENOMEM.
 */
int blackbox_pstore__read(struct blackbox_messages *m, const char *const *dirs, size_t nr_dirs,
			  u64 died)
{
	struct pstore *p = zalloc(sizeof(*p));
	int err = -ENOENT;

	if (!p)
		return -ENOMEM;
	p->died = died;
	for (size_t i = 0; i < nr_dirs; i++) {
		int fd = open(dirs[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			add_dir(p, fd, 0);
	}
	if (p->nr) {
		keep_report(p);
		err = put_parts(m, p);
	}
	for (size_t i = 0; i < p->nr; i++)
		free(p->parts[i].bytes);
	free(p);
	if (!err)
		m->from = "pstore";
	return err;
}

static void forget(struct blackbox_messages *m)
{
	zfree(&m->text);
	m->from = NULL;
}

/* The kernel that was dumped has an image of its sessions that lie in no region. */
static bool is_of_same_boot(const struct blackbox_find *found, const struct blackbox_image *image)
{
	for (size_t i = 0; i < found->nr; i++) {
		const struct blackbox_image *other = &found->images[i];

		if (blackbox_image__is_scattered(other) &&
		    !memcmp(other->super.boot_uuid, image->super.boot_uuid,
			    sizeof(image->super.boot_uuid)))
			return true;
	}
	return false;
}

/* The image of an earlier boot may lie in the same region. */
static bool is_newest(const struct blackbox_find *found, const struct blackbox_image *image)
{
	for (size_t i = 0; i < found->nr; i++) {
		const struct blackbox_image *other = &found->images[i];

		if (other->super.generation > image->super.generation &&
		    !strcmp(other->super.label, image->super.label))
			return false;
	}
	return true;
}

/* Has the kernel of an image printed what a dump has? */
static bool is_of(const struct blackbox_messages *m, const struct blackbox_find *found,
		  const struct blackbox_image *image)
{
	if (is_of_same_boot(found, image))
		return true;
	return image->has_death && is_newest(found, image) &&
	       m->newest + BEFORE >= image->death.clock.perf &&
	       m->newest <= image->death.clock.perf + AFTER;
}

/**
 * blackbox_messages__find - find what a kernel has printed
 * @m: returns the lines; there may be none. To be freed in any case
 * @source: where the image was found
 * @image: what the kernel has left
 */
void blackbox_messages__find(struct blackbox_messages *m, const struct blackbox_source *source,
			     const struct blackbox_image *image)
{
	const struct blackbox_find *found = &source->found;
	u64 ring;
	int err = -ENOENT;

	*m = (struct blackbox_messages) {};
	if (source->is_last && image->has_death)
		err = blackbox_pstore__read(m, pstore_dirs, ARRAY_SIZE(pstore_dirs),
					    image->death.clock.real);
	else if (source->fd >= 0 &&
		 blackbox_memory__vmcoreinfo(found->memory, "SYMBOL(prb)", &ring))
		err = blackbox_dmesg__read(m, source->fd) ?:
		      (is_of(m, found, image) ? 0 : -ESTALE);
	if (err)
		forget(m);
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
	/* Without memory there are none. */
	copy = m->from ? strdup(last_lines(m->text)) : NULL;
	for (pos = copy; pos && (line = strsep(&pos, "\n")) != NULL; ) {
		if (*line)
			json_writer__string(w, NULL, line);
	}
	free(copy);
	json_writer__end(w);
}
