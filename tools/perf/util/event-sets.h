/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_EVENT_SETS_H
#define __PERF_EVENT_SETS_H

struct evlist;
struct option;

int event_sets__config(const char *var, const char *value);
int event_sets__add(struct evlist *evlist, const char *names);
int event_sets__parse_option(const struct option *opt, const char *str, int unset);

#endif /* __PERF_EVENT_SETS_H */
