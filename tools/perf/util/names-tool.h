/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_NAMES_TOOL_H
#define __PERF_NAMES_TOOL_H

struct perf_tool;

void names_tool__init(struct perf_tool *tool);

#endif /* __PERF_NAMES_TOOL_H */
