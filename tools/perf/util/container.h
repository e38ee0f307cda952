/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CONTAINER_H
#define __PERF_CONTAINER_H

#include <stdbool.h>

#define CONTAINER_ID_LEN	64
#define CONTAINER_POD_LEN	36

/**
 * struct container - what the path of a cgroup tells of a container
 * @id: CONTAINER_ID_LEN hexadecimal digits, or "": the cgroup is that of a pod alone
 * @pod: uid of the pod in Kubernetes, or "": it is in none
 */
struct container {
	char	id[CONTAINER_ID_LEN + 1];
	char	pod[CONTAINER_POD_LEN + 1];
};

bool container__of_cgroup(struct container *c, const char *path);

#endif /* __PERF_CONTAINER_H */
