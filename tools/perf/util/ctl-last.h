/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CTL_LAST_H
#define __PERF_CTL_LAST_H

#include <stdbool.h>

struct json_writer;

/* Images of black boxes for perf ctl -l; a weak one finds none. */
int blackbox_last__list(struct json_writer *w, bool behind_others);

#endif /* __PERF_CTL_LAST_H */
