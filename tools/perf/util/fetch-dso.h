/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FETCH_DSO_H
#define __PERF_FETCH_DSO_H

#include <stdbool.h>

struct dso;
struct nscookie;

bool dso__fetch(struct dso *dso, struct nscookie *nsc);

#endif /* __PERF_FETCH_DSO_H */
