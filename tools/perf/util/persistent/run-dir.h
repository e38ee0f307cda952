/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_RUN_DIR_H
#define __PERF_RUN_DIR_H

#include <fcntl.h>
#include <limits.h>

/* To open a directory that another user may have created. */
#define RUN_DIR_OPEN	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/**
 * struct run_dir_refusal - why a directory was not taken
 * @err: the first error but -ENOENT, or -ENOENT
 * @path: of the directory
 */
struct run_dir_refusal {
	int	err;
	char	path[PATH_MAX];
};

int run_dir__open_unit(struct run_dir_refusal *refusal);
int run_dir__open_user(struct run_dir_refusal *refusal);
int run_dir_refusal__note(struct run_dir_refusal *refusal, int dir, const char *path);
const char *run_dir_refusal__reason(const struct run_dir_refusal *refusal);

#endif /* __PERF_RUN_DIR_H */
