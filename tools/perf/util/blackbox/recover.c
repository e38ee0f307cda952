// SPDX-License-Identifier: GPL-2.0
/*
 * perf data recover: make a recording of what a dead machine has left
 *
 * Sources are the files of the kernel in .../persistent/last/, one for each image, or a file:
 * the bytes of a region or an image, a raw dump of physical memory, a core file, or what
 * makedumpfile makes of one. Each session becomes a recording. If there are several, their
 * names are those of OUT, the region, the generation and the session.
 *
 * An image of a kernel that was shut down in order is no death, and one that was released was
 * recovered before. Both are left out without --all.
 *
 * A recording is written with a hidden name and renamed when it is on disk. An image is
 * released after that, and only if all of it was recovered: what this perf cannot read may be
 * all that is left of a death, and a later perf, or a look at the bytes, may tell more.
 */
#include "blackbox.h"
#include "formats.h"
#include "last.h"
#include "messages.h"
#include "recording.h"
#include "source.h"
#include "../debug.h"
#include "../flight/dump/dump.h"
#include "../flight/dump/files.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/**
 * struct recover - one call of the command
 * @opts: its options
 * @sources: the files
 * @nr_sources: number of these
 * @nr_images: images to be recovered
 * @nr_sessions: sessions to be recovered
 * @nr_written: recordings that were written
 * @is_incomplete: not all sessions were tried, because of an error
 * @printed_by: the image whose messages are in @messages, or NULL
 * @messages: what its kernel has printed
 */
struct recover {
	const struct blackbox_options	*opts;
	struct blackbox_source			*sources;
	size_t				nr_sources;
	u32				nr_images;
	u32				nr_sessions;
	u32				nr_written;
	bool				is_incomplete;
	const struct blackbox_image	*printed_by;
	struct blackbox_messages	messages;
};

/* Sources */

/* Takes @path. */
static int add_source(struct recover *rec, char *path, bool is_last)
{
	struct blackbox_source *sources = reallocarray(rec->sources, rec->nr_sources + 1,
						       sizeof(*sources));

	if (!sources || !path) {
		free(path);
		return -ENOMEM;
	}
	rec->sources = sources;
	return blackbox_source__open(&sources[rec->nr_sources++], path, is_last);
}

static int add_last(const char *path, const char *name __maybe_unused, void *rec)
{
	return add_source(rec, strdup(path), /*is_last=*/true);
}

/* What the sessions of a source are */

static bool is_selected(const struct recover *rec, const struct blackbox_image *image)
{
	return rec->opts->all || (image->state != PERF_BLACKBOX_CLEAN &&
				  image->state != PERF_BLACKBOX_RELEASED);
}

static bool get_session(const struct recover *rec, const struct blackbox_image *image, u32 i,
			struct perf_blackbox_session *entry)
{
	return blackbox_image__has_session(image, i, entry) &&
	       (!rec->opts->session || !strcmp(rec->opts->session, entry->name));
}

static u32 max_sessions(const struct blackbox_image *image)
{
	return min(image->super.max_sessions, 256U);
}

typedef int (*session_fn_t)(struct recover *rec, struct blackbox_source *source,
			    const struct blackbox_image *image, u32 i);

/* Call @fn for each session that is to be recovered. */
static int visit_sessions(struct recover *rec, session_fn_t fn)
{
	struct perf_blackbox_session entry;
	int err = 0;

	for (size_t i = 0; i < rec->nr_sources; i++) {
		struct blackbox_source *source = &rec->sources[i];

		for (size_t j = 0; j < source->found.nr; j++) {
			const struct blackbox_image *image = &source->found.images[j];

			if (!is_selected(rec, image))
				continue;
			for (u32 k = 0; k < max_sessions(image) && !err; k++) {
				if (get_session(rec, image, k, &entry))
					err = fn(rec, source, image, k);
			}
		}
	}
	return err;
}

static const char *where(const struct recover *rec)
{
	return rec->opts->image ?: rec->opts->last ?: "the last boot";
}

/* No image to recover: say why. Return: -errno if something is there that cannot be read. */
static int explain_images(const struct recover *rec)
{
	struct blackbox_find sum = {};
	bool unread = false;

	for (size_t i = 0; i < rec->nr_sources; i++) {
		unread |= rec->sources[i].is_last && !rec->sources[i].found.nr;
		sum.nr += rec->sources[i].found.nr;
		sum.copies += rec->sources[i].found.copies;
		sum.foreign += rec->sources[i].found.foreign;
		sum.version += rec->sources[i].found.version;
		sum.damaged += rec->sources[i].found.damaged;
	}
	if (sum.nr && !unread) {
		pr_warning("No machine died: %s has images that were released, or whose kernel was shut down in order. Use --all to recover them.\n",
			   where(rec));
		return 0;
	}
	if (sum.version) {
		pr_err("%s has an image of another version: use the perf of the kernel that wrote it.\n",
		       where(rec));
		return -EPROTONOSUPPORT;
	}
	if (sum.foreign) {
		pr_err("%s has an image of a machine of the other byte order: use perf on such a machine.\n",
		       where(rec));
		return -EPROTONOSUPPORT;
	}
	if (sum.copies) {
		pr_err("%s has images, but none at its own address: cut the file so that it begins with the region or the image.\n",
		       where(rec));
		return -EADDRNOTAVAIL;
	}
	if (sum.damaged) {
		pr_err("%s has an image whose superblock is damaged: if the memory was saved in another way as well, try that.\n",
		       where(rec));
		return -EBADMSG;
	}
	pr_warning("There is no black box image in %s.\n", where(rec));
	return 0;
}

/* No session to recover: say why. Return: as explain_images(). */
static int explain(const struct recover *rec)
{
	if (!rec->nr_images)
		return explain_images(rec);
	if (rec->opts->session) {
		pr_err("There is no session %s in %s: use --list to see which there are.\n",
		       rec->opts->session, where(rec));
		return -ENOENT;
	}
	pr_err("%s has the image of a kernel that died, but no session in it can be read: if the memory was saved in another way as well, try that.\n",
	       where(rec));
	return -EBADMSG;
}

/* --list */

static void list_session(const struct blackbox_session *s)
{
	u64 bytes = 0, notes = 0;

	for (size_t i = 0; i < s->nr_buffers; i++)
		bytes += s->buffers[i].ring.size;
	for (size_t i = 0; i < s->nr_notes; i++)
		notes += s->notes[i].size;
	printf("  session %s: %zu events, %zu buffers of %" PRIu64 " KiB, %" PRIu64
	       " KiB of notes", s->entry.name, s->nr_events, s->nr_buffers, bytes >> 10,
	       (notes + 1023) >> 10);
	if (s->events_bad || s->buffers_bad || s->notes_bad)
		printf("; damaged: %u events, %u buffers, %u notes", s->events_bad,
		       s->buffers_bad, s->notes_bad);
	printf("\n");
}

static int list_one(const struct blackbox_image *image, u32 i)
{
	struct blackbox_session s;
	int err = blackbox_session__init(&s, image, i);

	if (!err)
		list_session(&s);
	blackbox_session__exit(&s);
	return err;
}

static void list_image(const struct blackbox_source *source, const struct blackbox_image *image)
{
	char buf[40];

	printf("%s", source->name);
	if (!source->is_last)
		printf(" at 0x%" PRIx64, image->offset);
	printf(": %s, ", blackbox_image__state_name(image));
	if (blackbox_image__is_scattered(image))
		printf("memory of the kernel");
	else
		printf("region %s, generation %" PRIu64,
		       *image->super.label ? image->super.label : "-",
		       (u64)image->super.generation);
	printf(", kernel %s", image->super.release);
	if (image->has_death)
		printf(", %s, CPU %d, %s[%d]: %s",
		       blackbox__wall_clock(image->death.clock.real, buf, sizeof(buf)) ?:
		       "at an unknown time",
		       image->death.cpu, image->death.comm, image->death.pid,
		       blackbox_image__reason(image));
	if (image->size < image->super.image_size)
		printf(", cut off after %" PRIu64 " KiB", image->size >> 10);
	if (image->left_out)
		printf(", %" PRIu64 " KiB are not in the dump", image->left_out >> 10);
	if (image->damaged)
		printf(", %u damaged entries", image->damaged);
	if (image->overlaps)
		printf(", overlaps another one");
	printf("\n");
}

static int list(struct recover *rec)
{
	size_t nr = 0;
	int err = 0;

	for (size_t i = 0; i < rec->nr_sources && !err; i++) {
		struct blackbox_source *source = &rec->sources[i];

		nr += source->found.nr;
		for (size_t j = 0; j < source->found.nr && !err; j++) {
			const struct blackbox_image *image = &source->found.images[j];
			struct perf_blackbox_session entry;

			list_image(source, image);
			for (u32 k = 0; k < max_sessions(image) && !err; k++) {
				if (get_session(rec, image, k, &entry))
					err = list_one(image, k);
			}
		}
	}
	return nr ? err : explain_images(rec);
}

/* Recordings */

/* Another image with the same name: one of them is forged, or was left behind */
static bool is_ambiguous(const struct recover *rec, const struct blackbox_image *image)
{
	for (size_t i = 0; i < rec->nr_sources; i++) {
		for (size_t j = 0; j < rec->sources[i].found.nr; j++) {
			const struct blackbox_image *other = &rec->sources[i].found.images[j];

			if (other != image && is_selected(rec, other) &&
			    other->super.generation == image->super.generation &&
			    !strcmp(other->super.label, image->super.label))
				return true;
		}
	}
	return false;
}

static const char *place_of(const struct blackbox_image *image)
{
	if (blackbox_image__is_scattered(image))
		return "memory";
	return *image->super.label ? image->super.label : "region";
}

static char *make_name(const struct recover *rec, const struct blackbox_image *image,
		       const char *session)
{
	char *name;
	int len;

	if (rec->nr_sessions == 1)
		len = asprintf(&name, "%s", rec->opts->output);
	else if (rec->nr_images == 1)
		len = asprintf(&name, "%s.%s", rec->opts->output, session);
	else if (is_ambiguous(rec, image))
		len = asprintf(&name, "%s.%s.%" PRIu64 ".0x%" PRIx64 ".%s", rec->opts->output,
			       place_of(image), (u64)image->super.generation,
			       (u64)image->super.phys, session);
	else
		len = asprintf(&name, "%s.%s.%" PRIu64 ".%s", rec->opts->output,
			       place_of(image), (u64)image->super.generation, session);
	return len < 0 ? NULL : name;
}

static int count_session(struct recover *rec, struct blackbox_source *source __maybe_unused,
			 const struct blackbox_image *image __maybe_unused,
			 u32 i __maybe_unused)
{
	rec->nr_sessions++;
	return 0;
}

/* Damaged entries are left out of the recording. Their source is not released. */
static void count_source(struct recover *rec, struct blackbox_source *source)
{
	/* Among the pages of a dump, anything may look like an image. */
	if (source->is_last && !source->found.nr) {
		pr_warning("%s is left out: this perf cannot read it.\n", source->name);
		source->kept = true;
	}
	for (size_t i = 0; i < source->found.nr; i++) {
		const struct blackbox_image *image = &source->found.images[i];

		if (!is_selected(rec, image))
			continue;
		rec->nr_images++;
		if (image->left_out)
			pr_warning("%s: %llu KiB of the image are not in the dump, and what was recorded there is lost.\n",
				   source->name,
				   (unsigned long long)image->left_out >> 10);
		if (!image->damaged && image->size == image->super.image_size)
			continue;
		source->kept = true;
		if (image->sessions_broken)
			pr_warning("%s: the list of sessions is broken: one or more are missing.\n",
				   source->name);
		if (image->damaged > image->sessions_broken)
			pr_warning("%s: %u damaged entries of sessions, or of the death, are left out.\n",
				   source->name, image->damaged - image->sessions_broken);
	}
}

static void count(struct recover *rec)
{
	visit_sessions(rec, count_session);
	for (size_t i = 0; i < rec->nr_sources; i++)
		count_source(rec, &rec->sources[i]);
}

/* Nothing is written if one of the files exists. */
static int check_output(struct recover *rec, struct blackbox_source *source __maybe_unused,
			const struct blackbox_image *image, u32 i)
{
	struct perf_blackbox_session entry;
	char *name = NULL;
	int err = 0;

	if (rec->opts->force || !blackbox_image__has_session(image, i, &entry))
		return 0;
	name = make_name(rec, image, entry.name);
	if (!name)
		return -ENOMEM;
	if (!access(name, F_OK)) {
		pr_err("%s exists: choose another name with -o, or use -f to overwrite it.\n",
		       name);
		err = -EEXIST;
	}
	free(name);
	return err;
}

/* Write a file with a hidden name, and rename it. */
static int write_file(const char *path, int (*put)(FILE *f, const void *arg), const void *arg,
		      u64 *bytes)
{
	char *tmp = NULL;
	int fd = dump__create_temporary(path, &tmp), err;
	FILE *f;

	if (fd < 0) {
		free(tmp);
		return fd;
	}
	f = fdopen(fd, "w");
	if (!f) {
		close(fd);
		err = -ENOMEM;
		goto out_unlink;
	}
	err = put(f, arg);
	if (!err && (fflush(f) || fsync(fd)))
		err = -errno;
	if (!err && !fseeko(f, 0, SEEK_END))
		*bytes = ftello(f);
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(tmp, path))
		err = -errno;
	if (!err)
		dump__sync_directory(path);
out_unlink:
	if (err)
		unlink(tmp);
	free(tmp);
	return err;
}

static int put_recording(FILE *f, const void *arg)
{
	return blackbox_recording__write(arg, f);
}

struct manifest_of {
	const struct blackbox_recording	*r;
	const char			*file;
	u64				bytes;
};

static int put_manifest(FILE *f, const void *arg)
{
	const struct manifest_of *of = arg;

	return blackbox_manifest__write(of->r, of->file, of->bytes, f);
}

static void tell(const struct blackbox_recording *r, const char *name)
{
	const struct blackbox_session *s = r->session;
	double seconds = (double)(r->newest - r->oldest) / NSEC_PER_SEC;
	u32 damaged = s->events_bad + s->buffers_bad + s->notes_bad;

	if (!quiet)
		fprintf(stderr, "[ perf data recover: wrote %" PRIu64 " samples of session %s ",
			r->events, s->entry.name);
	if (!quiet)
		fprintf(stderr, "to %s: %.3f s, death: %s ]\n", name, seconds,
			blackbox_image__reason(s->image));
	if (r->given_up || r->notes_dropped || damaged)
		pr_warning("%llu bytes of the buffers, %llu records of the notes and %u damaged entries were dropped: %s.json says what and why.\n",
			   (unsigned long long)r->given_up, (unsigned long long)r->notes_dropped,
			   damaged, name);
}

static int write_recording(struct blackbox_recording *r, const char *name)
{
	struct manifest_of of = { .r = r, .file = name };
	bool is_same = blackbox_kernel__is_same(&r->session->image->super);
	char *manifest;
	u64 bytes;
	int err;

	err = blackbox_formats__make(r, is_same ? blackbox_kernel__format : NULL);
	if (err)
		return err;
	if (r->formats_unknown)
		pr_warning("The data of %u tracepoints cannot be shown: the notes do not have their formats, and %s.\n",
			   r->formats_unknown,
			   is_same ? "neither does this kernel" :
				     "this is not the kernel that died");
	if (asprintf(&manifest, "%s.json", name) < 0)
		return -ENOMEM;
	err = write_file(name, put_recording, r, &of.bytes) ?:
	      write_file(manifest, put_manifest, &of, &bytes);
	if (err)
		pr_err("%s cannot be written: %s.\n", name, strerror(-err));
	else
		tell(r, name);
	free(manifest);
	return err;
}

/* The sessions of an image have the same ones. */
static const struct blackbox_messages *get_messages(struct recover *rec,
						    const struct blackbox_source *source,
						    const struct blackbox_image *image)
{
	if (rec->printed_by != image) {
		blackbox_messages__exit(&rec->messages);
		blackbox_messages__find(&rec->messages, source, image);
		rec->printed_by = image;
	}
	return &rec->messages;
}

/* However whole the rest looks, something is missing. */
static void tell_broken(const struct blackbox_session *s)
{
	const struct blackbox_broken *broken = s->broken;

	if (!broken)
		return;
	if (broken->events)
		pr_warning("Session %s: the list of its events is broken: some are missing, with their records.\n",
			   s->entry.name);
	if (broken->notes[0] || broken->notes[1])
		pr_warning("Session %s: some of its notes are missing, and with them names of tasks, mappings or tracepoints.\n",
			   s->entry.name);
}

static int recover_session(struct recover *rec, struct blackbox_source *source,
			   const struct blackbox_image *image, u32 i)
{
	struct blackbox_recording r = {};
	struct blackbox_session s;
	char *name = NULL;
	int err;

	err = blackbox_session__init(&s, image, i) ?: blackbox_session__cut(&s);
	if (!err) {
		tell_broken(&s);
		err = blackbox_recording__init(&r, &s);
	}
	if (err == -ENODATA) {
		pr_warning("Session %s was left out: its events are damaged, or it has none.\n",
			   s.entry.name);
		source->kept = true;
		err = 0;
	} else if (!err) {
		r.messages = get_messages(rec, source, image);
		name = make_name(rec, image, s.entry.name);
		err = name ? write_recording(&r, name) : -ENOMEM;
		source->kept |= s.events_bad || s.buffers_bad;
		rec->nr_written += !err;
	}
	free(name);
	blackbox_recording__exit(&r);
	blackbox_session__exit(&s);
	return err;
}

static int release_source(const struct blackbox_source *source)
{
	char *path;
	int fd, err = 0;

	if (asprintf(&path, "%s" BLACKBOX_RELEASE, source->path) < 0)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1", 1) != 1) {
		err = -errno;
		pr_err("%s cannot be released: %s.\n", source->name, strerror(-err));
	} else if (!quiet) {
		fprintf(stderr, "[ perf data recover: released %s ]\n", source->name);
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return err;
}

static bool has_selected(const struct recover *rec, const struct blackbox_source *source)
{
	for (size_t i = 0; i < source->found.nr; i++) {
		if (is_selected(rec, &source->found.images[i]))
			return true;
	}
	return false;
}

/* Only what was recovered before is released. */
static int release(struct recover *rec)
{
	int err = 0;

	for (size_t i = 0; i < rec->nr_sources && !err; i++) {
		const struct blackbox_source *source = &rec->sources[i];

		if (source->kept)
			pr_warning("%s is not released, as not all of it was recovered: copy %s to a disk, then write 1 to %s%s.\n",
				   source->name, source->path, source->path,
				   BLACKBOX_RELEASE);
		else if (has_selected(rec, source))
			err = release_source(source);
	}
	return err;
}

static int recover_all(struct recover *rec)
{
	int err = visit_sessions(rec, check_output) ?: visit_sessions(rec, recover_session);

	rec->is_incomplete = err != 0;
	if (!err && !rec->nr_written) {
		pr_err("Nothing was recovered: all that %s has is damaged.\n", where(rec));
		err = -EBADMSG;
	}
	return err;
}

static int recover(struct recover *rec)
{
	int err;

	count(rec);
	err = rec->nr_sessions ? recover_all(rec) : explain(rec);
	/* Also if nothing was recovered: it says why an image is kept. */
	if (rec->opts->release && !rec->is_incomplete &&
	    (!err || err == -EBADMSG || err == -EPROTONOSUPPORT))
		err = release(rec) ?: err;
	return err;
}

static int check_options(const struct blackbox_options *opts)
{
	if (opts->image && opts->last) {
		pr_err("Use either --last or the name of a file.\n");
		return -EINVAL;
	}
	if (opts->image && opts->release) {
		pr_err("--release is for what the last boot left, not for a file: leave it out.\n");
		return -EINVAL;
	}
	if (opts->list && opts->release) {
		pr_err("Use --list and --release one after the other.\n");
		return -EINVAL;
	}
	if (opts->session && opts->release) {
		pr_err("--release applies to all sessions of an image: leave out --session.\n");
		return -EINVAL;
	}
	return 0;
}

/**
 * blackbox__recover - make recordings of what a dead machine has left
 * @opts: what is wanted
 *
 * Return: 0, also if there is nothing, or a negative errno after a message.
 */
int blackbox__recover(const struct blackbox_options *opts)
{
	struct recover rec = { .opts = opts };
	int err = check_options(opts);

	if (err)
		return err;
	err = opts->image ? add_source(&rec, strdup(opts->image), /*is_last=*/false) :
			    blackbox_last__visit(opts->last, add_last, &rec);
	if (!err)
		err = opts->list ? list(&rec) : recover(&rec);
	if (err == -ENOMEM)
		pr_err("There is not enough memory: a recovery takes about twice the size of the buffers.\n");
	blackbox_messages__exit(&rec.messages);
	for (size_t i = 0; i < rec.nr_sources; i++)
		blackbox_source__close(&rec.sources[i]);
	free(rec.sources);
	return err;
}
