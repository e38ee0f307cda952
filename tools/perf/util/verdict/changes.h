/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_VERDICT_CHANGES_H
#define __PERF_VERDICT_CHANGES_H

#include "compare.h"

struct json_writer;

void verdict_changes__print(const struct verdict_comparison *cmp,
			    const struct verdict_history *h, const struct verdict_chains *c);
void verdict_changes__write(struct json_writer *w, const struct verdict_comparison *cmp,
			    const struct verdict_history *h, const struct verdict_chains *c);

#endif /* __PERF_VERDICT_CHANGES_H */
