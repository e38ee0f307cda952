/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EXPORT_CONTAINERS_H
#define __PERF_EXPORT_CONTAINERS_H

#include "interner.h"

#include <linux/types.h>

struct export_tables;

/**
 * struct export_container - the container of a cgroup; each is a string, or 0 if not known
 * @id: of the container
 * @pod_uid: of the pod in Kubernetes
 * @name: of the container
 * @pod: name of the pod
 * @pod_namespace: its namespace
 */
struct export_container {
	u32	id;
	u32	pod_uid;
	u32	name;
	u32	pod;
	u32	pod_namespace;
};

/**
 * struct export_containers - those of the cgroups seen so far, so that each is looked up once
 * @cgroups: their strings
 * @containers: by number of the cgroup
 * @room: of @containers
 */
struct export_containers {
	struct interner		cgroups;
	struct export_container	*containers;
	u32			room;
};

const struct export_container *export_containers__get(struct export_containers *ec,
						      struct export_tables *tables,
						      const char *manifest, u32 cgroup);
void export_containers__exit(struct export_containers *ec);

#endif /* __PERF_EXPORT_CONTAINERS_H */
