// SPDX-License-Identifier: GPL-2.0
/*
 * Machine and trigger of a recording.
 *
 * The trigger is in the manifest that the flight recorder writes next to a dump,
 * FILE.json.
 */
#include "origin.h"

#include "env.h"
#include "json-reader.h"
#include "redact.h"

#include <errno.h>
#include <linux/zalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_string(const char *text, const char *key, char **string)
{
	struct json_value value;

	if (!json__find(text, key, &value) || value.len < 2 || value.text[0] != '"')
		return 0;
	*string = json_value__strdup(&value);
	return *string ? 0 : -ENOMEM;
}

/**
 * export_origin__read - find out where a recording is from
 * @origin: what to set
 * @recording: path of the recording
 * @env: its header
 *
 * Return: 0, or -ENOMEM. What is not known is left NULL.
 */
int export_origin__read(struct export_origin *origin, const char *recording,
			const struct perf_env *env)
{
	char *path;
	int err = 0;

	memset(origin, 0, sizeof(*origin));
	if (asprintf(&path, "%s.json", recording) < 0)
		return -ENOMEM;
	origin->manifest = json__read_file(path);
	free(path);
	if (origin->manifest) {
		const char *text = origin->manifest;

		err = read_string(text, "host", &origin->host) ?:
		      read_string(text, "trigger", &origin->trigger) ?:
		      read_string(text, "reason", &origin->reason);
	}
	if (!err && !origin->host && env->hostname) {
		origin->host = strdup(env->hostname);
		err = origin->host ? 0 : -ENOMEM;
	}
	return err;
}

/**
 * export_origin__redact - forget what is not to be told
 * @origin: what was read
 * @flags: bits of enum export_redact
 */
void export_origin__redact(struct export_origin *origin, unsigned int flags)
{
	if (flags & EXPORT_REDACT_HOST) {
		zfree(&origin->host);
		zfree(&origin->manifest);
	}
	if (flags & EXPORT_REDACT_ARGS)
		zfree(&origin->reason);
	if (flags & EXPORT_REDACT_HOME && origin->reason)
		export_redact__home(origin->reason);
}

void export_origin__exit(struct export_origin *origin)
{
	free(origin->host);
	free(origin->trigger);
	free(origin->reason);
	free(origin->manifest);
}
