// SPDX-License-Identifier: GPL-2.0
/*
 * perf top for buffers that the kernel keeps writing to: those of its own events
 * (--overwrite), and those of a persistent session, which replaces its own events
 */
#include "base-api.h"
#include "top-live.h"
#include "env.h"
#include "evlist.h"
#include "mmap.h"
#include "parse-events.h"
#include "top.h"

#include <linux/err.h>
#include <linux/kernel.h>
#include <perf/snapshot.h>
#include <subcmd/parse-options.h>

/**
 * top_live__parse_event - parse -e of perf top: a persistent session, or events
 * @opt: the option; its value is for the event parser, and refers to perf_top::evlist
 * @str: the argument of -e
 * @unset: see parse_events_option()
 *
 * Return: 0, or the error of parse_options().
 */
int top_live__parse_event(const struct option *opt, const char *str, int unset)
{
	struct parse_events_option_args *args = opt->value;
	struct perf_top *top = container_of(args->evlistp, struct perf_top, evlist);
	int taken = str ? persistent_opts__parse_event(&top->persistent, str) : 0;

	return taken ? min(taken, 0) : parse_events_option(opt, str, unset);
}

/**
 * top_live__open_session - follow the session named with -e, if any
 * @top: perf top; its events become those of the session
 *
 * Return: 0, or a negative errno after an error message.
 */
int top_live__open_session(struct perf_top *top)
{
	struct persistent_live *live;
	int err;

	if (!top->persistent.read)
		return 0;

	err = persistent_opts__check_top(&top->persistent, &top->record_opts);
	if (err)
		return err;

	live = persistent_live__new(top->persistent.read);
	if (IS_ERR(live))
		return PTR_ERR(live);

	top->live = live;
	evlist__put(top->evlist);
	top->evlist = persistent_live__evlist(live);
	evlist__set_host_env(top->evlist);
	/* Read at intervals: there are no wakeups. */
	top->record_opts.overwrite = true;
	return 0;
}

/**
 * top_live__read_mmap - process the new records of an overwrite buffer
 * @top: perf top
 * @md: the buffer
 * @timestamp: used for records without a time
 * @process: called for each record, oldest first; a value other than 0 ends the read
 */
void top_live__read_mmap(struct perf_top *top, struct mmap *md, u64 timestamp,
			 persistent_live_event_t process)
{
	union perf_event *event = NULL;

	if (!md->snapshot || perf_snapshot__take(md->snapshot, PERF_SNAPSHOT_INCREMENTAL))
		return;

	while ((event = perf_snapshot__newer(md->snapshot, event)) != NULL) {
		int ret = evlist__parse_sample_timestamp(top->evlist, event, &timestamp);

		if ((ret && ret != -1) || process(event, timestamp, top))
			break;
	}
}
