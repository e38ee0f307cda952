// SPDX-License-Identifier: GPL-2.0
/*
 * builtin-verdict.c - who held whom up, and what changed
 *
 * perf verdict reads a recording with switches and wakeups, and prints what held tasks up:
 * who waited how long, by which chain, for what; or what changed in a part of it. See
 * util/verdict/.
 */
#include "builtin.h"
#include "perf.h"

#include "util/debug.h"
#include "util/verdict/verdict.h"

#include <subcmd/parse-options.h>
#include <string.h>

static const char *const verdict_usage[] = {
	"perf verdict [-i <file>] [--json [--side-band]] [--compare[=<time>] [--against=<time>...]]",
	"perf verdict [-i <file>] [--json [--side-band]] --run-queues",
	NULL
};

int cmd_verdict(int argc, const char **argv)
{
	struct verdict_options o = { .path = "perf.data" };
	const struct option options[] = {
		OPT_STRING('i', "input", &o.path, "file", "recording to read"),
		OPT_BOOLEAN('f', "force", &o.force, "read files of other users"),
		OPT_BOOLEAN('j', "json", &o.json, "print JSON"),
		OPT_STRING_OPTARG_SET(0, "compare", &o.part, &o.compare, "time",
				      "tell what changed in a part, or before the trigger", NULL),
		OPT_STRING(0, "against", &o.against, "time",
			   "compare with these parts, by default with all others"),
		OPT_BOOLEAN(0, "run-queues", &o.queues,
			    "tell how long tasks waited for CPUs, and for which"),
		OPT_BOOLEAN(0, "side-band", &o.side_band,
			    "with --json, tell where records were lost, and when tasks ended"),
		OPT_INCR('v', "verbose", &verbose, "be more verbose"),
		OPT_END()
	};

	argc = parse_options(argc, argv, options, verdict_usage, 0);
	if (argc)
		usage_with_options(verdict_usage, options);
	if (!strcmp(o.path, "-")) {
		pr_err("perf verdict cannot read from a pipe: the events must be known first. Write the recording to a file.\n");
		return 1;
	}
	if (o.against && !o.part) {
		pr_err("--against needs the part that is compared: --compare=TIME --against=TIME.\n");
		return 1;
	}
	if (o.compare && o.queues) {
		pr_err("--compare and --run-queues exclude each other.\n");
		return 1;
	}
	if (o.side_band && !o.json) {
		pr_err("--side-band is for programs: add --json.\n");
		return 1;
	}
	return verdict__run(&o) ? 1 : 0;
}
