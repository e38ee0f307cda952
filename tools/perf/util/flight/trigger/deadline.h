/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_DEADLINE_H
#define __PERF_FLIGHT_DEADLINE_H

#include <linux/types.h>
#include <stdbool.h>

struct flight_trigger;

/* As many as can be armed at a time, and bytes of a name. */
#define FLIGHT_MAX_DEADLINES	16384
#define FLIGHT_MAX_ID		64

/*
 * @t is the trigger 'deadline', which has started. @owner is the connection that a deadline
 * belongs to; NULL: it is kept, and belongs to all.
 */
int flight_deadline__arm(struct flight_trigger *t, const void *owner, const char *id, u64 in,
			 const char *text);
int flight_deadline__disarm(struct flight_trigger *t, const void *owner, const char *id);
void flight_deadline__forget(struct flight_trigger *t, const void *owner);
bool flight_deadline__has(const struct flight_trigger *t, const void *owner);
void flight_deadline__hold(struct flight_trigger *t);
unsigned int flight_deadline__nr(const struct flight_trigger *t);

#endif /* __PERF_FLIGHT_DEADLINE_H */
