/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_CTL_REMOTE_H
#define __PERF_CTL_REMOTE_H

#include <stdbool.h>

struct json_writer;

/* What perf ctl asks of a flight recorder. */
enum ctl_verb {
	CTL_STATUS,
	CTL_DUMP,
	CTL_STOP,
	CTL_COMBINE,
	CTL_ARM,
	CTL_DISARM,
	CTL_NR_VERBS,
};

/**
 * struct ctl_request - a request to flight recorders
 * @verb: the request
 * @id: of the deadline (--arm, --disarm)
 * @in: when it passes (--in)
 * @reason: why, or NULL (--reason)
 * @timeout: how long to wait for a dump, or NULL (--timeout)
 * @json: print JSON (--json)
 * @may_miss: say nothing if there is no such recorder
 */
struct ctl_request {
	enum ctl_verb	verb;
	const char	*id;
	const char	*in;
	const char	*reason;
	const char	*timeout;
	bool		json;
	bool		may_miss;
};

/*
 * Weak ones, for a perf without the flight recorder, find none: flight_recorders__request()
 * then returns -ESRCH.
 */
int flight_recorders__list(struct json_writer *w, bool behind_sessions);
int flight_recorders__request(const struct ctl_request *request, const char *target);
bool flight_recorders__has(const char *target);

#endif /* __PERF_CTL_REMOTE_H */
