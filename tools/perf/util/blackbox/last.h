/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_LAST_H
#define __PERF_BLACKBOX_LAST_H

/* The file that releases an image has the name of the image, and this. */
#define BLACKBOX_RELEASE	".release"

/**
 * typedef blackbox_last_fn_t - take an image of the last boot
 * @path: its file, valid until it returns
 * @name: LABEL.N, part of @path
 * @data: what was given to blackbox_last__visit()
 *
 * Return: 0 or a negative errno, which ends the visit.
 */
typedef int (*blackbox_last_fn_t)(const char *path, const char *name, void *data);

int blackbox_last__visit(const char *last, blackbox_last_fn_t fn, void *data);

#endif /* __PERF_BLACKBOX_LAST_H */
