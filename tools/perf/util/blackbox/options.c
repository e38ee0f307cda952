// SPDX-License-Identifier: GPL-2.0
/* The options of perf data recover */
#include "blackbox.h"
#include "../../builtin.h"
#include "../debug.h"

#include <linux/kernel.h>
#include <subcmd/parse-options.h>

static struct blackbox_options opts = {
	.output	= "perf.data.recovered",
};

static const char *const recover_usage[] = {
	"perf data recover [<options>] [<image>]",
	NULL
};

static const struct option recover_options[] = {
	OPT_STRING('o', "output", &opts.output, "file",
		   "Write the recording to this file (perf.data.recovered)"),
	OPT_BOOLEAN(0, "list", &opts.list, "Show the images and their sessions, recover nothing"),
	OPT_STRING(0, "session", &opts.session, "name", "Recover only this session"),
	OPT_STRING(0, "last", &opts.last, "label",
		   "Region, or image LABEL.N, of the last boot (all of them)"),
	OPT_BOOLEAN(0, "release", &opts.release,
		    "Afterwards, allow the kernel to write over the images of the last boot"),
	OPT_BOOLEAN(0, "all", &opts.all,
		    "Also images that were released, or whose kernel was shut down in order"),
	OPT_BOOLEAN('f', "force", &opts.force, "Overwrite existing recordings"),
	OPT_BOOLEAN('q', "quiet", &quiet, "Print warnings and errors only"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_END()
};

/**
 * cmd_data_recover - perf data recover
 * @argc: number of arguments
 * @argv: "recover", its options, and the name of a file or nothing
 *
 * Return: 0 or a negative errno after a message.
 */
int cmd_data_recover(int argc, const char **argv)
{
	argc = parse_options(argc, argv, recover_options, recover_usage, 0);
	if (argc > 1) {
		pr_err("perf data recover takes one file at a time.\n");
		return -1;
	}
	opts.image = argc ? argv[0] : NULL;
	return blackbox__recover(&opts);
}
