/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_ORIGIN_H
#define __PERF_EXPORT_ORIGIN_H

struct perf_env;

/**
 * struct export_origin - where a recording is from
 * @host: name of the machine, or NULL
 * @trigger: what triggered the dump of a flight recorder, or NULL
 * @reason: what the trigger gave as a reason, or NULL
 * @manifest: text of the manifest, which has the names of containers, or NULL
 */
struct export_origin {
	char	*host;
	char	*trigger;
	char	*reason;
	char	*manifest;
};

int export_origin__read(struct export_origin *origin, const char *recording,
			const struct perf_env *env);
void export_origin__redact(struct export_origin *origin, unsigned int flags);
void export_origin__exit(struct export_origin *origin);

#endif /* __PERF_EXPORT_ORIGIN_H */
