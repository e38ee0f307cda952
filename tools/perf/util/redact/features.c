// SPDX-License-Identifier: GPL-2.0
/*
 * What the header of a recording tells of the machine
 *
 * These sections are written: build-ids of kernels (with --keep build-ids, all), a token of
 * the name of the machine, versions of the kernel and of perf as numbers, the architecture,
 * the number of CPUs, times and clocks. That there is a branch stack is told as well. Formats
 * of tracepoints: see formats.c.
 *
 * All others are left out: the command line, the model and the identity of the processor,
 * memory, topology, the names of events and of PMUs, BPF programs and their types, and what
 * newer versions of perf add. perf derives the names of events from their attributes.
 */
#include "features.h"
#include "records.h"
#include "sample.h"
#include "words.h"
#include "../header.h"

#include <perf/event.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <string.h>

/* What perf pads strings to */
#define STRING_ALIGNMENT	64

/**
 * redact_feature__text - the text of a section
 * @data: the section
 * @size: its size
 * @len: returns how many bytes it has at most
 *
 * Return: the text, or NULL if the section is damaged.
 */
const char *redact_feature__text(const void *data, size_t size, size_t *len)
{
	u32 padded;

	if (size < sizeof(padded))
		return NULL;
	memcpy(&padded, data, sizeof(padded));
	if (padded > size - sizeof(padded))
		return NULL;
	*len = padded;
	return data + sizeof(padded);
}

static void put_string(FILE *f, const char *text)
{
	static const char zeros[STRING_ALIGNMENT];
	u32 len = strlen(text) + 1, padded = PERF_ALIGN(len, STRING_ALIGNMENT);

	fwrite(&padded, sizeof(padded), 1, f);
	fwrite(text, len, 1, f);
	fwrite(zeros, 1, padded - len, f);
}

static void put_host(const struct redact_words *w, const void *data, size_t size, FILE *f)
{
	char out[REDACT_TEXT_MAX];
	size_t len;
	const char *text = redact_feature__text(data, size, &len);

	if (!text)
		return;
	redact_words__put(w, REDACT_HOST, text, len, out);
	put_string(f, out);
}

static void put_release(const struct redact_words *w, const void *data, size_t size, FILE *f)
{
	char out[REDACT_TEXT_MAX];
	size_t len;
	const char *text = redact_feature__text(data, size, &len);

	if (!text)
		return;
	redact_words__release(w, text, len, out);
	put_string(f, out);
}

static void put_arch(const struct redact_words *w __maybe_unused, const void *data, size_t size,
		     FILE *f)
{
	static const char *const names[] = {
		"x86_64", "i386", "i486", "i586", "i686", "aarch64", "armv7l", "armv8l",
		"ppc64", "ppc64le", "s390x", "riscv64", "riscv32", "loongarch64", "mips",
		"mips64", "sparc64", "parisc", "alpha", "arc", "csky", "xtensa",
	};
	size_t len;
	const char *text = redact_feature__text(data, size, &len);

	for (size_t i = 0; text && i < ARRAY_SIZE(names); i++) {
		if (strlen(names[i]) < len && !strncmp(text, names[i], len)) {
			put_string(f, names[i]);
			return;
		}
	}
}

/* Each entry is a record of its own. */
static void put_build_ids(const struct redact_words *w, const void *data, size_t size, FILE *f)
{
	char out[REDACT_TEXT_MAX + sizeof(struct perf_record_header_build_id) + sizeof(u64)];
	struct perf_event_header header;

	while (size >= sizeof(header)) {
		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			return;
		fwrite(out, redact_build_id__put(w, data, header.size, out), 1, f);
		data += header.size;
		size -= header.size;
	}
}

static void put_numbers(const void *data, size_t size, size_t wanted, FILE *f)
{
	if (size >= wanted)
		fwrite(data, wanted, 1, f);
}

static const struct feature {
	void	(*put)(const struct redact_words *w, const void *data, size_t size, FILE *f);
	size_t	numbers;
	bool	is_known;
} features[HEADER_LAST_FEATURE] = {
	[HEADER_BUILD_ID]	= { .put = put_build_ids, .is_known = true },
	[HEADER_HOSTNAME]	= { .put = put_host, .is_known = true },
	[HEADER_OSRELEASE]	= { .put = put_release, .is_known = true },
	[HEADER_VERSION]	= { .put = put_release, .is_known = true },
	[HEADER_ARCH]		= { .put = put_arch, .is_known = true },
	[HEADER_NRCPUS]		= { .numbers = 2 * sizeof(u32), .is_known = true },
	[HEADER_BRANCH_STACK]	= { .is_known = true },
	[HEADER_SAMPLE_TIME]	= { .numbers = 2 * sizeof(u64), .is_known = true },
	[HEADER_CLOCKID]	= { .numbers = sizeof(u64), .is_known = true },
	/* Version, clock, and two times */
	[HEADER_CLOCK_DATA]	= { .numbers = 2 * sizeof(u32) + 2 * sizeof(u64),
				    .is_known = true },
};

/**
 * redact_feature__is_known - whether a section of the header is written
 * @feature: its number
 */
bool redact_feature__is_known(int feature)
{
	return feature < HEADER_LAST_FEATURE && features[feature].is_known;
}

/**
 * redact_feature__put - write a section of the header anew
 * @w: the words
 * @feature: its number, of one that is known
 * @data: the section
 * @size: its size
 * @f: where to write it; nothing is written if it is damaged
 */
void redact_feature__put(const struct redact_words *w, int feature, const void *data,
			 size_t size, FILE *f)
{
	if (features[feature].put)
		features[feature].put(w, data, size, f);
	else
		put_numbers(data, size, features[feature].numbers, f);
}
