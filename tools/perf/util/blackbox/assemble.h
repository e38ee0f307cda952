/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_BLACKBOX_ASSEMBLE_H
#define __PERF_BLACKBOX_ASSEMBLE_H

#include "image.h"

struct blackbox_memory;

int blackbox_assemble(struct blackbox_image *image, struct blackbox_memory *mem, u64 limit);

#endif /* __PERF_BLACKBOX_ASSEMBLE_H */
