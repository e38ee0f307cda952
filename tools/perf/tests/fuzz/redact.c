// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target for what perf data redact reads: the input is a recording. The properties:
 * a copy is a whole recording, so that a copy of the copy has the same records, and none of
 * them is damaged, of an unknown type, or of no event.
 *
 * tests/shell/redact_fuzz.sh builds and runs it, in a directory of its own.
 */
#include "../../util/debug.h"
#include "../../util/redact/recording.h"
#include "../../util/redact/words.h"

#include <linux/compiler.h>
#include <linux/kernel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What these want of perf */
int verbose;

int eprintf(int level __maybe_unused, int var __maybe_unused, const char *fmt __maybe_unused, ...)
{
	return 0;
}

static void broken(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

static int make_file(const void *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		broken("there is no memory for a file");
	return fd;
}

/* Return: 0 if the recording is copied. */
static int copy(int fd, struct redact_counts *counts, FILE *to)
{
	struct redact_recording r;
	struct redact_words w;
	int err = redact_words__init(&w, NULL);

	if (err)
		broken("there is no key");
	err = redact_recording__open(&r, &w, fd);
	if (!err)
		err = redact_recording__write(&r, &w, to);
	*counts = r.counts;
	redact_recording__close(&r);
	return err;
}

static void check_copy(int fd, const struct redact_counts *first)
{
	struct redact_counts counts;
	int to = memfd_create("again", MFD_CLOEXEC);
	FILE *f = fdopen(to, "w+");

	if (!f)
		broken("there is no file");
	if (copy(fd, &counts, f))
		broken("a copy cannot be copied");
	if (counts.written != first->written || counts.samples != first->samples)
		broken("a copy of a copy has other records");
	if (counts.damaged || counts.homeless || counts.stacks)
		broken("a copy has damaged records");
	for (int i = 0; i < REDACT_TYPES; i++) {
		if (counts.omitted[i])
			broken("a copy has records that are left out");
	}
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct redact_counts counts;
	int fd = make_file(data, size), to = memfd_create("copy", MFD_CLOEXEC);
	FILE *f = fdopen(to, "w+");

	if (!f)
		broken("there is no file");
	if (!copy(fd, &counts, f))
		check_copy(to, &counts);
	fclose(f);
	close(fd);
	return 0;
}
