/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_FORMATS_H
#define __PERF_BLACKBOX_FORMATS_H

#include <linux/types.h>
#include <stddef.h>

struct blackbox_event;
struct blackbox_recording;
struct perf_blackbox_super;

/**
 * typedef blackbox_format_t - get the format of a tracepoint from the running kernel
 * @event: the event
 * @size: returns the number of bytes
 *
 * Return: its text, to be freed, or NULL.
 */
typedef char *(*blackbox_format_t)(const struct blackbox_event *event, size_t *size);

int blackbox_formats__make(struct blackbox_recording *r, blackbox_format_t read);

bool blackbox_kernel__is_same(const struct perf_blackbox_super *super);
char *blackbox_kernel__format(const struct blackbox_event *event, size_t *size);

#endif /* __PERF_BLACKBOX_FORMATS_H */
