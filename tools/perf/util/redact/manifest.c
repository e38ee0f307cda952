// SPDX-License-Identifier: GPL-2.0
/*
 * The manifest of a dump is written anew
 *
 * Its members are looked up by their names, in lists that say what they are. A member that
 * is in no list is left out: the id of the boot, what the manifest of a black box tells of
 * its image, and what newer versions of perf add. A number must be one, a word must be one of
 * those that perf writes. The reason is a text that anybody may have written; it is left out.
 */
#include "manifest.h"
#include "words.h"
#include "../json-reader.h"
#include "../json-writer.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the longest word or time has */
#define WORD_MAX	32

enum what {
	NUMBER,
	SIGNED,
	WORD,
	TIME,
	CPUS,
	RELEASE,
	COMM,
	CGROUP,
	HOST,
	OTHER,
};

/* In the order in which perf writes them */
static const struct member {
	const char	*key;
	enum what	what;
} members[] = {
	{ "schema",		NUMBER },
	{ "perf_version",	RELEASE },
	{ "time",		TIME },
	{ "trigger_time",	NUMBER },
	{ "clock_error",	NUMBER },
	{ "host",		HOST },
	{ "kernel",		RELEASE },
	{ "trigger",		WORD },
	{ "value",		NUMBER },
	{ "threshold",		NUMBER },
	{ "unit",		WORD },
	{ "trigger_pid",	SIGNED },
	{ "trigger_cpu",	SIGNED },
	{ "trigger_comm",	COMM },
	{ "trigger_cgroup",	CGROUP },
	{ "action",		WORD },
	{ "swallowed",		NUMBER },
	{ "window_asked",	NUMBER },
	{ "window",		NUMBER },
	{ "oldest",		NUMBER },
	{ "newest",		NUMBER },
	{ "events",		NUMBER },
	{ "lost",		NUMBER },
	{ "throttled",		NUMBER },
	{ "given_up",		NUMBER },
	{ "unresolved",		NUMBER },
	{ "half_chains",	NUMBER },
	{ "sideband_dropped",	NUMBER },
	{ "tasks",		NUMBER },
	{ "self",		WORD },
	{ "self_events",	NUMBER },
	{ "self_dropped",	NUMBER },
	{ "cpus_left_out",	CPUS },
	{ "session",		OTHER },
	{ "frozen",		NUMBER },
	{ "frozen_by",		WORD },
	{ "frozen_lost",	NUMBER },
	{ "max_overhead",	NUMBER },
	{ "overhead",		NUMBER },
	{ "rate_divisor",	NUMBER },
	{ "nr_events_given_up",	NUMBER },
	{ "overhead_acted",	NUMBER },
	{ "max_sample_rate",	NUMBER },
	{ "raw",		NUMBER },
	{ "stored",		NUMBER },
	{ "complete_since",	NUMBER },
	{ "names_since",	NUMBER },
};

static const struct member cpu_members[] = {
	{ "cpu",		NUMBER },
	{ "oldest",		NUMBER },
	{ "newest",		NUMBER },
	{ "events",		NUMBER },
	{ "lost",		NUMBER },
	{ "throttled",		NUMBER },
	{ "given_up",		NUMBER },
	{ "way",		WORD },
};

static const struct member share_members[] = {
	{ "cgroup",		NUMBER },
	{ "path",		CGROUP },
	{ "complete_since",	NUMBER },
	{ "oldest",		NUMBER },
	{ "newest",		NUMBER },
	{ "events",		NUMBER },
	{ "bytes",		NUMBER },
};

/* Triggers, actions, units, and how a CPU or the recorder itself was read */
static const char *const words[] = {
	"signal", "socket", "event", "bpf", "cpu", "deadline", "exit", "latency", "psi",
	"syscall", "kmsg", "oom", "hung", "lockup", "rcu-stall", "death", "end",
	"dump", "stop", "combine", "recover", "us", "ms", "%",
	"filtered", "dropped", "recorded", "outside",
	"ring", "session", "image", "ioctl", "hop", "pause",
	"user", "oops", "panic", "unknown",
};

static bool is_quoted(const struct json_value *value)
{
	return value->len >= 2 && *value->text == '"';
}

static bool is_signed(const struct json_value *value)
{
	struct json_value number = *value;

	if (number.len && *number.text == '-') {
		number.text++;
		number.len--;
	}
	return json_value__is_number(&number);
}

static bool is_word(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(text, words[i]))
			return true;
	}
	return false;
}

/**
 * redact_manifest__is_one - whether a file is the manifest of a dump
 * @text: the file
 *
 * Any file may have the name of a manifest.
 */
bool redact_manifest__is_one(const char *text)
{
	struct json_value value;

	return json__find(text, "schema", &value) && json_value__is_number(&value) &&
	       json__find(text, "file", &value) && is_quoted(&value) &&
	       json__find(text, "trigger", &value) && is_quoted(&value) &&
	       json__find(text, "window", &value) && json_value__is_number(&value) &&
	       json__find(text, "cpus", &value) && *value.text == '[';
}

/**
 * redact_manifest__hide_host - learn the name of the machine
 * @w: the words
 * @text: the manifest
 */
void redact_manifest__hide_host(struct redact_words *w, const char *text)
{
	struct json_value value;
	char *host = json__find(text, "host", &value) ? json_value__strdup(&value) : NULL;

	if (host)
		redact_words__hide_host(w, 1, host, strlen(host));
	free(host);
}

static void put_literal(struct json_writer *to, const char *key, const struct json_value *value)
{
	char *text = strndup(value->text, value->len);

	if (text)
		json_writer__literal(to, key, text);
	free(text);
}

static void put_text(const struct redact_words *w, struct json_writer *to,
		     const struct member *m, const char *text)
{
	char out[REDACT_TEXT_MAX];

	switch (m->what) {
	case WORD:
		if (!is_word(text))
			return;
		scnprintf(out, sizeof(out), "%s", text);
		break;
	case TIME:
		if (strlen(text) >= WORD_MAX || text[strspn(text, "0123456789TZ.:+-")])
			return;
		scnprintf(out, sizeof(out), "%s", text);
		break;
	case CPUS:
		if (strlen(text) >= sizeof(out) || text[strspn(text, "0123456789,-")])
			return;
		scnprintf(out, sizeof(out), "%s", text);
		break;
	case RELEASE:
		redact_words__release(w, text, strlen(text), out);
		break;
	case COMM:
		redact_words__put(w, REDACT_COMM, text, strlen(text), out);
		break;
	case CGROUP:
		redact_words__put(w, REDACT_CGROUP, text, strlen(text), out);
		break;
	case HOST:
		redact_words__put(w, REDACT_HOST, text, strlen(text), out);
		break;
	case OTHER:
		redact_words__put(w, REDACT_OTHER, text, strlen(text), out);
		break;
	case NUMBER:
	case SIGNED:
	default:
		return;
	}
	json_writer__string(to, m->key, out);
}

static void put_member(const struct redact_words *w, struct json_writer *to, const char *from,
		       const struct member *m)
{
	struct json_value value;
	char *text;

	if (!json__find(from, m->key, &value))
		return;
	if (m->what == NUMBER || m->what == SIGNED) {
		if (m->what == SIGNED ? is_signed(&value) : json_value__is_number(&value))
			put_literal(to, m->key, &value);
		return;
	}
	text = json_value__strdup(&value);
	if (text)
		put_text(w, to, m, text);
	free(text);
}

/* The objects in an array */
static void put_objects(const struct redact_words *w, struct json_writer *to, const char *array,
			const struct member *kept, size_t nr_kept)
{
	struct json_value object;
	const char *pos = NULL;

	while (json__next(array, &pos, &object)) {
		if (*object.text != '{')
			continue;
		json_writer__begin_object(to, NULL, JSON_STYLE__PADDED);
		for (size_t i = 0; i < nr_kept; i++)
			put_member(w, to, object.text, &kept[i]);
		json_writer__end(to);
	}
}

/**
 * redact_manifest__write - write a manifest anew
 * @w: the words
 * @text: the manifest
 * @file: name of the new recording
 * @bytes: its size
 * @f: where to write it
 *
 * Return: 0 or a negative errno.
 */
int redact_manifest__write(const struct redact_words *w, const char *text, const char *file,
			   u64 bytes, FILE *f)
{
	struct json_value array;
	struct json_writer to;

	json_writer__init(&to, f);
	json_writer__begin_object(&to, NULL, JSON_STYLE__LINES);
	json_writer__string(&to, "file", file);
	json_writer__bool(&to, "redacted", true);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		put_member(w, &to, text, &members[i]);
	json_writer__number(&to, "bytes", bytes);
	if (json__find(text, "cgroups", &array)) {
		json_writer__begin_array(&to, "cgroups", JSON_STYLE__LINES);
		put_objects(w, &to, array.text, share_members, ARRAY_SIZE(share_members));
		json_writer__end(&to);
	}
	json_writer__begin_array(&to, "cpus", JSON_STYLE__LINES);
	if (json__find(text, "cpus", &array))
		put_objects(w, &to, array.text, cpu_members, ARRAY_SIZE(cpu_members));
	json_writer__end(&to);
	json_writer__end(&to);
	return ferror(f) ? -EIO : 0;
}
