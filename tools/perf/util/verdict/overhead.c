// SPDX-License-Identifier: GPL-2.0
/*
 * What was not recorded, or is not kept, as the manifest of a dump says
 *
 * --max-overhead:
 * An event that was given up has no records, and a lower rate makes fewer samples: neither is
 * a finding about the machine. The manifest tells when the recorder took its last step. If
 * that is within the window, it recorded something else before.
 */
#include "words.h"
#include "history.h"
#include "../json-reader.h"
#include "../strbuf.h"
#include "../time-utils.h"

#include <linux/compiler.h>
#include <linux/time64.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Numbers and strings alike; to be freed, or NULL: there is none */
static char *find(const char *text, const char *key)
{
	struct json_value value;
	char *str;

	if (!json__find(text, key, &value))
		return NULL;
	str = json_value__is_number(&value) ? strndup(value.text, value.len) :
					      json_value__strdup(&value);
	for (char *c = str; c && *c; c++) {
		if (!isprint((unsigned char)*c))
			*c = '?';
	}
	return str;
}

static u64 find_number(const char *text, const char *key)
{
	char *str = find(text, key);
	u64 nr = str ? strtoull(str, NULL, 10) : 0;

	free(str);
	return nr;
}

static u64 find_time(const char *text, const char *key)
{
	char *str = find(text, key);
	u64 ns = 0;

	if (!str || parse_nsec_time(str, &ns))
		ns = 0;
	free(str);
	return ns;
}

static void tell_state(struct strbuf *sb, const char *names, u64 divisor)
{
	strbuf_addstr(sb, "Not all was recorded: for --max-overhead,");
	if (names)
		strbuf_addf(sb, " %s %s disabled", names, strchr(names, ',') ? "were" : "was");
	if (divisor > 1)
		strbuf_addf(sb, "%s the sampling rates were divided by %" PRIu64,
			    names ? ", and" : "", divisor);
	strbuf_addstr(sb, " when the dump was written.");
}

/**
 * verdict_words__overhead - what was not recorded, for the limit of the overhead
 * @sb: where to; empty
 * @manifest: the text of the manifest, or NULL
 * @h: history
 *
 * Return: false if everything was recorded all the time, or nothing is known.
 */
bool verdict_words__overhead(struct strbuf *sb, const char *manifest,
			     const struct verdict_history *h)
{
	u64 acted, divisor;
	char *names;

	if (!manifest)
		return false;
	names = find(manifest, "events_given_up");
	divisor = find_number(manifest, "rate_divisor");
	acted = find_time(manifest, "overhead_acted");
	if (acted <= h->oldest)
		acted = 0;
	if (names || divisor > 1) {
		tell_state(sb, names, divisor);
	} else if (acted) {
		strbuf_addstr(sb, "Not all was recorded: for --max-overhead, events were disabled");
		strbuf_addstr(sb, " or rates lowered for a part of the time.");
	}
	if (acted) {
		strbuf_addf(sb, " The last change was at %" PRIu64 ".%06" PRIu64,
			    acted / NSEC_PER_SEC, acted % NSEC_PER_SEC / NSEC_PER_USEC);
		strbuf_addstr(sb, ": what is before and after it cannot be compared.");
	}
	free(names);
	return sb->len;
}

/**
 * verdict_words__shares - since when all cgroups have their records, with --fair
 * @sb: where to; empty
 * @manifest: the text of the manifest, or NULL
 * @h: history
 *
 * Return: false if they have them from the start on, or nothing is known.
 */
bool verdict_words__shares(struct strbuf *sb, const char *manifest,
			   const struct verdict_history *h)
{
	u64 since = manifest ? find_time(manifest, "complete_since") : 0;

	if (since < h->oldest)
		return false;
	strbuf_addf(sb, "Records of some cgroups are missing before %" PRIu64 ".%06" PRIu64,
		    since / NSEC_PER_SEC, since % NSEC_PER_SEC / NSEC_PER_USEC);
	strbuf_addstr(sb, ": with --fair, a cgroup with few records reaches back further.");
	return true;
}
