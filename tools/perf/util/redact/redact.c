// SPDX-License-Identifier: GPL-2.0
/*
 * perf data redact: a copy of a recording that others may see
 *
 * The principle: what is not known is not written. There are lists of the types of records,
 * of the sections of the header, of the fields of tracepoints and of the members of
 * manifests, and what is in no list is left out, or becomes zeros. Nothing is copied because
 * it looks harmless. So a newer kernel or perf, a driver, or a probe of the user cannot add
 * to what a copy tells.
 *
 *	words.c		texts become tokens
 *	formats.c	the formats of tracepoints
 *	raw.c		the data of their samples
 *	known.c		the list of their fields
 *	sample.c	samples
 *	code.c		which addresses of their call chains are of code
 *	records.c	all records
 *	events.c	the event that a record is of
 *	features.c	sections of the header
 *	stream.c	the records of a file, one after the other
 *	recording.c	the file
 *	manifest.c	the manifest of a dump
 *	output.c	both files get their names, or none does
 *
 * perf_session is not used: it drops what it does not know without a word, sorts what is in
 * order, and looks up names on the machine it runs on.
 */
#include "redact.h"
#include "manifest.h"
#include "output.h"
#include "recording.h"
#include "words.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What perf record --archive and perf archive leave beside a recording */
static const char *const companions[] = { ".symbols", ".tar.bz2" };

/* No manifest is nearly as large. */
#define MAX_MANIFEST	(64 << 20)

static int open_input(const struct redact_options *opts)
{
	int fd = open(opts->input, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		int err = -errno;

		pr_err("%s cannot be read: %s.\n", opts->input, strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	if (!S_ISREG(st.st_mode)) {
		pr_err("%s is not a regular file: name a recording in one file.\n",
		       opts->input);
		close(fd);
		return -EINVAL;
	}
	if (!opts->force && st.st_uid && st.st_uid != geteuid()) {
		pr_err("%s is not owned by you or root: use --force to read it.\n", opts->input);
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Return: the text of a file up to a NUL; NULL with errno set. */
static char *read_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = EINVAL;
	char *text = NULL;
	struct stat st;
	size_t room = 0;
	FILE *f;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return NULL;
	}
	/* Opening or reading anything else may wait. */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_MANIFEST)
		err = getdelim(&text, &room, '\0', f) < 0 ? EIO : 0;
	fclose(f);
	if (err)
		zfree(&text);
	errno = err;
	return text;
}

/* The text of INPUT.json if it is a manifest, else NULL. */
static char *read_manifest(const char *input)
{
	char *path, *text;

	if (asprintf(&path, "%s.json", input) < 0)
		return NULL;
	text = read_text(path);
	if (text ? !redact_manifest__is_one(text) : errno != ENOENT) {
		pr_warning("%s is not the manifest of a dump, and is left out.\n", path);
		zfree(&text);
	}
	free(path);
	return text;
}

static void warn_of_companions(const char *input)
{
	for (size_t i = 0; i < ARRAY_SIZE(companions); i++) {
		char *path;

		if (asprintf(&path, "%s%s", input, companions[i]) < 0)
			return;
		if (!access(path, F_OK))
			pr_warning("%s names files of this machine, or has copies of them: do not give it to others.\n",
				   path);
		free(path);
	}
}

static void tell_counts(const struct redact_counts *counts, const char *output)
{
	const char *before = "; left out:";

	fprintf(stderr, "[ perf data redact: wrote %" PRIu64 " records, %" PRIu64
		" of them samples, to %s", counts->written, counts->samples, output);
	for (unsigned int i = 1; i < REDACT_TYPES; i++) {
		if (!counts->omitted[i])
			continue;
		fprintf(stderr, "%s %" PRIu64 " %s", before, counts->omitted[i],
			redact_record__name(i));
		before = ",";
	}
	fprintf(stderr, " ]\n");
}

static void tell(const struct redact_recording *r, const struct redact_options *opts)
{
	const struct redact_counts *counts = &r->counts;

	if (!quiet)
		tell_counts(counts, opts->output);
	if (counts->omitted[0])
		pr_warning("%llu records are of types that this perf does not know, and were left out.\n",
			   (unsigned long long)counts->omitted[0]);
	if (counts->damaged)
		pr_warning("%llu records are damaged, and were left out.\n",
			   (unsigned long long)counts->damaged);
	if (counts->homeless)
		pr_warning("%llu records are of no event of the recording, and were left out.\n",
			   (unsigned long long)counts->homeless);
	if (counts->stacks)
		pr_warning("%llu samples have registers, stacks or traces of tasks, which were left out: call chains of user space that perf report makes from them are missing. Record with --call-graph fp to have them.\n",
			   (unsigned long long)counts->stacks);
	warn_of_companions(opts->input);
}

static int write_manifest(const struct redact_output *out, const struct redact_words *w,
			  const char *manifest, const char *output)
{
	const char *slash = strrchr(output, '/');
	int err;

	if (!manifest)
		return 0;
	err = redact_manifest__write(w, manifest, slash ? slash + 1 : output,
				     ftello(out->files[0].f), out->files[1].f);
	if (err)
		pr_err("The manifest cannot be written: %s.\n", strerror(-err));
	return err;
}

static int copy(const struct redact_options *opts, struct redact_words *w, int fd,
		const char *manifest)
{
	struct redact_recording r;
	struct redact_output out = {};
	int err = redact_recording__open(&r, w, fd);

	if (!err)
		err = redact_output__open(&out, opts->output, opts->input, manifest,
					  opts->force);
	if (!err)
		err = redact_recording__write(&r, w, out.files[0].f);
	if (!err && fseeko(out.files[0].f, 0, SEEK_END))
		err = -errno;
	if (!err)
		err = write_manifest(&out, w, manifest, opts->output);
	if (!err)
		err = redact_output__commit(&out);
	redact_output__close(&out);
	if (!err)
		tell(&r, opts);
	redact_recording__close(&r);
	return err;
}

/**
 * redact__run - copy a recording without what is not to leave the machine
 * @opts: what is wanted
 *
 * Return: 0, or a negative errno after a message.
 */
int redact__run(const struct redact_options *opts)
{
	struct redact_words w;
	char *manifest = NULL;
	int err = redact_words__init(&w, opts->keep), fd = -1;

	if (!err) {
		fd = open_input(opts);
		err = min(fd, 0);
	}
	if (!err) {
		manifest = read_manifest(opts->input);
		if (manifest)
			redact_manifest__hide_host(&w, manifest);
		err = copy(opts, &w, fd, manifest);
	}
	/* The key is not kept. */
	explicit_bzero(&w, sizeof(w));
	free(manifest);
	if (fd >= 0)
		close(fd);
	return err;
}
