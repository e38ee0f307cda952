/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_TP_FIELD_H
#define __PERF_TP_FIELD_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct evsel;
struct perf_sample;
struct tep_format_field;

bool tp_field__is_of(const struct evsel *evsel, const char *system, const char *name);
const struct tep_format_field *tp_field__find(const struct evsel *evsel, const char *name);
bool tp_field__number(const struct evsel *evsel, const struct perf_sample *sample,
		      const struct tep_format_field *field, u64 *number);
bool tp_field__text(const struct evsel *evsel, const struct perf_sample *sample,
		    const struct tep_format_field *field, char *text, size_t size);

#endif /* __PERF_TP_FIELD_H */
