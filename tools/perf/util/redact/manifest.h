/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_MANIFEST_H
#define __PERF_REDACT_MANIFEST_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct redact_words;

bool redact_manifest__is_one(const char *text);
void redact_manifest__hide_host(struct redact_words *w, const char *text);
int redact_manifest__write(const struct redact_words *w, const char *text, const char *file,
			   u64 bytes, FILE *f);

#endif /* __PERF_REDACT_MANIFEST_H */
