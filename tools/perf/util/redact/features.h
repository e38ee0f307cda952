/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_REDACT_FEATURES_H
#define __PERF_REDACT_FEATURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct redact_words;

bool redact_feature__is_known(int feature);
void redact_feature__put(const struct redact_words *w, int feature, const void *data,
			 size_t size, FILE *f);
const char *redact_feature__text(const void *data, size_t size, size_t *len);

#endif /* __PERF_REDACT_FEATURES_H */
