/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_BPF_HINT_H
#define __PERF_FLIGHT_BPF_HINT_H

void flight_trigger__hint_at_bpf(const char *event);

#endif /* __PERF_FLIGHT_BPF_HINT_H */
