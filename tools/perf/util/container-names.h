/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CONTAINER_NAMES_H
#define __PERF_CONTAINER_NAMES_H

#include <stdbool.h>

struct container;

/**
 * struct container_names - what people call a container
 * @name: its name, in Kubernetes that within the pod; NULL: not known
 * @pod: name of the pod, or NULL
 * @pod_namespace: namespace of the pod, or NULL
 */
struct container_names {
	char	*name;
	char	*pod;
	char	*pod_namespace;
};

bool container_names__read(struct container_names *names, const char *root, const char *id);
bool container_names__of_manifest(struct container_names *names, const char *manifest,
				  const struct container *c);
void container_names__exit(struct container_names *names);

#endif /* __PERF_CONTAINER_NAMES_H */
