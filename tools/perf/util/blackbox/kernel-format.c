// SPDX-License-Identifier: GPL-2.0
/*
 * Formats of tracepoints, from the running kernel
 *
 * If it is the same build as the one that died, a tracepoint of the kernel proper has the same
 * number as before. One of a module may have another number, so a format counts only if its
 * number is that of the event.
 */
#include "formats.h"
#include "recording.h"
#include "../build-id.h"
#include "../symbol.h"

#include <api/fs/tracing_path.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger than any format */
#define MAX_FORMAT	(64 * 1024)

/**
 * blackbox_kernel__is_same - whether the running kernel is the one that died
 * @super: the superblock of the latter
 *
 * Return: true if both are the same build.
 */
bool blackbox_kernel__is_same(const struct perf_blackbox_super *super)
{
	struct build_id bid = {};

	return super->build_id_size && !sysfs__read_build_id("/sys/kernel/notes", &bid) &&
	       bid.size == super->build_id_size &&
	       !memcmp(bid.data, super->build_id, super->build_id_size);
}

/**
 * blackbox_kernel__format - get the format of a tracepoint
 * @event: the event; its name has the characters of C names and a colon
 * @size: returns the number of bytes
 *
 * Return: its text, to be freed, or NULL. Whether it is the same tracepoint is not checked.
 */
char *blackbox_kernel__format(const struct blackbox_event *event, size_t *size)
{
	char name[sizeof(event->name) + 16], *path, *text = NULL;
	FILE *f;

	scnprintf(name, sizeof(name), "%s/format", event->name);
	*strchr(name, ':') = '/';
	path = get_events_file(name);
	f = path ? fopen(path, "r") : NULL;
	if (f)
		text = malloc(MAX_FORMAT);
	if (text) {
		*size = fread(text, 1, MAX_FORMAT - 1, f);
		text[*size] = '\0';
	}
	if (f)
		fclose(f);
	put_events_file(path);
	return text;
}
