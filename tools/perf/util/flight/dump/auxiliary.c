// SPDX-License-Identifier: GPL-2.0
/*
 * Restore the tasks that a killed recorder knew
 *
 * OUT.auxiliary describes tasks that have exited since, whose samples may still be in the
 * buffers of a persistent session. It is used if it belongs to the same session,
 * according to the ids of its events, and to the same boot, according to the time at
 * which it was written: both restart at boot.
 *
 * The file is untrusted input. All data is checked before it is used.
 */
#include "auxiliary.h"
#include "../store/fold-order.h"
#include "../store/sideband-store.h"
#include "../../clockid.h"
#include "../../debug.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../header.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_of_this_boot(const struct stat *st)
{
	u64 now, up;

	if (clockid__read(CLOCK_REALTIME, &now) || clockid__read(CLOCK_BOOTTIME, &up))
		return false;
	return st->st_mtime >= (time_t)((now - up) / NSEC_PER_SEC);
}

static FILE *open_file(const char *out)
{
	char *path = NULL;
	FILE *f = NULL;
	struct stat st;
	int fd;

	if (asprintf(&path, "%s.auxiliary", out) < 0)
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	free(path);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    is_of_this_boot(&st))
		f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

static bool read_at(FILE *f, u64 pos, void *buf, size_t size)
{
	return pos < (u64)LONG_MAX && !fseek(f, pos, SEEK_SET) && fread(buf, size, 1, f) == 1;
}

/* Return whether the events are ours, and their records have the same sample_id. */
static bool has_our_events(FILE *f, const struct perf_file_header *header, struct evlist *evlist)
{
	const struct perf_event_attr *ours = &evlist__first(evlist)->core.attr;
	u64 nr = header->attr_size ? header->attrs.size / header->attr_size : 0;
	bool known = false;

	if (header->attr_size < sizeof(struct perf_file_section) + PERF_ATTR_SIZE_VER0)
		return false;

	for (u64 i = 0; i < nr && i < 1024; i++) {
		u64 pos = header->attrs.offset + i * header->attr_size, id;
		size_t attr_size = header->attr_size - sizeof(struct perf_file_section);
		struct perf_event_attr attr = {};
		struct perf_file_section ids;

		if (!read_at(f, pos, &attr, min(attr_size, sizeof(attr))) ||
		    !read_at(f, pos + attr_size, &ids, sizeof(ids)) ||
		    attr.sample_type != ours->sample_type || !attr.sample_id_all)
			return false;
		known |= ids.size >= sizeof(id) && read_at(f, ids.offset, &id, sizeof(id)) &&
			 evlist__id2sid(evlist, id);
	}
	return known;
}

static int fold_records(FILE *f, const struct perf_file_section *data, struct fold_order *order)
{
	union perf_event *event = malloc(PERF_SAMPLE_MAX_SIZE);
	struct perf_event_header *header = &event->header;
	u64 left = data->size;
	int nr = 0;

	if (!event || data->offset > (u64)LONG_MAX || fseek(f, data->offset, SEEK_SET))
		left = 0;

	while (left >= sizeof(*header) && fread(header, sizeof(*header), 1, f) == 1) {
		size_t rest = header->size - sizeof(*header);

		if (header->size < sizeof(*header) || header->size > left ||
		    (rest && fread(header + 1, rest, 1, f) != 1))
			break;
		left -= header->size;
		nr += fold_order__add(order, event);
		if (header->type == PERF_RECORD_FINISHED_ROUND)
			fold_order__end_round(order);
	}
	fold_order__flush(order);
	free(event);
	return nr;
}

/**
 * auxiliary__fold - add the content of OUT.auxiliary to the side-band
 * @out: prefix of its name
 * @evlist: the events of the session
 * @ss: the side-band store
 * @limit: maximum number of bytes that wait to be sorted
 *
 * Return: number of records added; 0 if there is no such file, or it belongs to another
 * session.
 */
int auxiliary__fold(const char *out, struct evlist *evlist, struct sideband_store *ss,
		    size_t limit)
{
	struct fold_order *order = fold_order__new(evlist, ss, limit);
	struct perf_file_header header;
	FILE *f = order ? open_file(out) : NULL;
	int nr = 0;

	if (!f)
		goto out;
	if (read_at(f, 0, &header, sizeof(header)) && !memcmp(&header.magic, "PERFILE2", 8) &&
	    has_our_events(f, &header, evlist))
		nr = fold_records(f, &header.data, order);
	fclose(f);
	pr_debug("%s.auxiliary: %d records taken up\n", out, nr);
out:
	fold_order__delete(order);
	return nr;
}
