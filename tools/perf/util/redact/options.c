// SPDX-License-Identifier: GPL-2.0
/* The options of perf data redact */
#include "redact.h"
#include "../../builtin.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <string.h>
#include <subcmd/parse-options.h>

static struct redact_options opts = {
	.input	= "perf.data",
};

static const char *const redact_usage[] = {
	"perf data redact [<options>] -o <file>",
	NULL
};

static const struct option redact_options[] = {
	OPT_STRING('i', "input", &opts.input, "file", "Recording to copy (perf.data)"),
	OPT_STRING('o', "output", &opts.output, "file", "Write the copy to this file"),
	OPT_STRING(0, "keep", &opts.keep, "comm,files,build-ids,cgroups,host,kernel",
		   "Leave these as they are"),
	OPT_BOOLEAN('f', "force", &opts.force,
		    "Replace the output, and read a recording of another user"),
	OPT_BOOLEAN('q', "quiet", &quiet, "Print warnings and errors only"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_END()
};

/**
 * cmd_data_redact - perf data redact
 * @argc: number of arguments
 * @argv: "redact" and its options
 *
 * Return: 0 or a negative errno after a message.
 */
int cmd_data_redact(int argc, const char **argv)
{
	argc = parse_options(argc, argv, redact_options, redact_usage, 0);
	if (argc) {
		pr_err("perf data redact takes no arguments: name the recording with -i.\n");
		return -1;
	}
	if (!opts.output || !*opts.output || !strcmp(opts.output, "-")) {
		pr_err("Name the file that the copy goes to: perf data redact -i %s -o FILE\n",
		       opts.input);
		return -1;
	}
	return redact__run(&opts);
}
