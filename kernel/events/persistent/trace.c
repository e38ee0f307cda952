// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: tracepoints
 *
 * UNCLAIM returns EINVAL for many reasons. The tracepoint perf_persistent_refuse gives
 * the reason why a call was refused:
 *
 *	# perf trace -e perf_persistent:perf_persistent_refuse
 *
 * Errors that have one reason for a call are not traced, as EALREADY of THAW, nor is ENOENT
 * for an event or a session that does not exist: a program that enumerates events expects it.
 * perf_event_paranoid and the LSM give no reason here, except for records that an event has
 * left in the buffer of others.
 */
#include "trace.h"

#define CREATE_TRACE_POINTS
#include <trace/events/perf_persistent.h>

/**
 * perf_persistent_refuse - say why a call fails
 * @err: its error
 * @reason: in words
 *
 * Return: @err
 */
int perf_persistent_refuse(int err, const char *reason)
{
	trace_perf_persistent_refuse(err, reason);
	return err;
}
