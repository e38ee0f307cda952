/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_TRIGGERS_H
#define __PERF_FLIGHT_TRIGGERS_H

#include "../trigger.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct flight_trigger;

enum flight_action {
	FLIGHT_ACTION_DUMP,
	FLIGHT_ACTION_STOP,
};

/**
 * struct flight_trigger_ops - one kind of trigger
 * @name: how it begins in a SPEC
 * @parse: take what follows "NAME:"; NULL if there is nothing to take
 * @start: begin to watch; set @fd if there is something to poll for
 * @hits: how often it was hit since the last call; fill in @reason
 * @stop: watch no more
 */
struct flight_trigger_ops {
	const char	*name;
	int		(*parse)(struct flight_trigger *t, const char *arg);
	int		(*start)(struct flight_trigger *t);
	unsigned int	(*hits)(struct flight_trigger *t);
	void		(*stop)(struct flight_trigger *t);
};

/**
 * struct flight_trigger - a trigger that was asked for
 * @next: the one given behind it
 * @ops: its kind
 * @state: OFF, ON when parsed, READY when watched, HIT until its dump begins
 * @action: what it does
 * @delay: ns from the hit to the dump
 * @cooldown: ns after a dump in which hits are swallowed
 * @freeze: events stop at the hit, until the dump has its data
 * @fd: to poll for, or -1
 * @due: when the dump is to begin, CLOCK_MONOTONIC
 * @quiet_until: end of the cooldown
 * @merged: further hits that the dump to come stands for
 * @swallowed: hits in the cooldown, which the last dump stands for
 * @reason: what is known about the last hit that counted
 * @priv: the kind's own
 */
struct flight_trigger {
	struct flight_trigger			*next;
	const struct flight_trigger_ops		*ops;
	struct trigger				state;
	enum flight_action			action;
	u64					delay;
	u64					cooldown;
	bool					freeze;
	int					fd;
	u64					due;
	u64					quiet_until;
	u64					merged;
	u64					swallowed;
	char					reason[128];
	void					*priv;
};

extern const struct flight_trigger_ops flight_trigger_signal;

int flight_triggers__add(struct flight_trigger **triggers, const char *spec);
void flight_triggers__free(struct flight_trigger **triggers);
int flight_triggers__start(struct flight_trigger *triggers);
void flight_triggers__stop(struct flight_trigger *triggers);
const char *flight_action__name(enum flight_action action);
int flight__parse_time(const char *str, u64 *ns);

#endif /* __PERF_FLIGHT_TRIGGERS_H */
