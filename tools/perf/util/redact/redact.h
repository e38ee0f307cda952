/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_H
#define __PERF_REDACT_H

#include <stdbool.h>

/**
 * struct redact_options - what perf data redact is to do
 * @input: the recording
 * @output: where the copy goes
 * @keep: what stays as it is, see redact_words__parse(), or NULL
 * @force: replace the output; read a recording of another user
 */
struct redact_options {
	const char	*input;
	const char	*output;
	const char	*keep;
	bool		force;
};

int redact__run(const struct redact_options *opts);
int cmd_data_redact(int argc, const char **argv);

#endif /* __PERF_REDACT_H */
