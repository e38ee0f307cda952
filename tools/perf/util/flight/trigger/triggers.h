/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_TRIGGERS_H
#define __PERF_FLIGHT_TRIGGERS_H

#include "../../trigger.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct dump_result;
struct flight_trigger;

/* The later ones do what the former ones do, and more. */
enum flight_action {
	FLIGHT_ACTION_DUMP,
	FLIGHT_ACTION_STOP,
	FLIGHT_ACTION_COMBINE,
};

/**
 * struct flight_host - what triggers may know of the recorder
 * @out: how the names of its files begin
 * @status: write the members of a JSON object that says how it fares
 * @data: what @status wants
 */
struct flight_host {
	const char	*out;
	void		(*status)(void *data, FILE *f);
	void		*data;
};

/**
 * struct flight_trigger_ops - one kind of trigger
 * @name: how it begins in a SPEC
 * @slashes: commas between slashes belong to what follows the name
 * @parse: take what follows "NAME:"; NULL if there is nothing to take
 * @start: begin to watch; set @fd if there is something to poll for
 * @hits: how often it was hit since the last call; fill in @reason
 * @begun: its dump begins; further hits are for the next one
 * @done: that dump is complete, or failed
 * @stop: watch no more
 * @free: free what @parse has made
 */
struct flight_trigger_ops {
	const char	*name;
	bool		slashes;
	int		(*parse)(struct flight_trigger *t, const char *arg);
	int		(*start)(struct flight_trigger *t);
	unsigned int	(*hits)(struct flight_trigger *t);
	void		(*begun)(struct flight_trigger *t);
	void		(*done)(struct flight_trigger *t, const struct dump_result *result);
	void		(*stop)(struct flight_trigger *t);
	void		(*free)(struct flight_trigger *t);
};

/**
 * struct flight_trigger - a trigger that was asked for
 * @next: the one given behind it
 * @ops: its kind
 * @host: the recorder, from the start on
 * @state: OFF, ON when parsed, READY when watched, HIT until its dump begins
 * @action: what it does
 * @wanted: what the next dump is to do beyond that
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
	const struct flight_host		*host;
	struct trigger				state;
	enum flight_action			action;
	enum flight_action			wanted;
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
extern const struct flight_trigger_ops flight_trigger_socket;
extern const struct flight_trigger_ops flight_trigger_event;
extern const struct flight_trigger_ops flight_trigger_bpf;

int flight_triggers__add(struct flight_trigger **triggers, const char *spec);
bool flight_triggers__has(const struct flight_trigger *triggers,
			  const struct flight_trigger_ops *ops);
void flight_triggers__free(struct flight_trigger **triggers);
int flight_triggers__start(struct flight_trigger *triggers, const struct flight_host *host);
void flight_trigger__end(struct flight_trigger *t, enum flight_action action);
void flight_trigger__set_reason(struct flight_trigger *t, const char *reason);
void flight_triggers__stop(struct flight_trigger *triggers);
const char *flight_action__name(enum flight_action action);
int flight__parse_time(const char *str, u64 *ns);

#endif /* __PERF_FLIGHT_TRIGGERS_H */
