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
struct json_writer;

/* Each action includes the previous ones. */
enum flight_action {
	FLIGHT_ACTION_DUMP,
	FLIGHT_ACTION_STOP,
	FLIGHT_ACTION_COMBINE,
};

/**
 * struct flight_host - interface of the recorder for triggers
 * @out: prefix of the names of its files
 * @status: writes the members of a JSON object with the status
 * @data: argument of @status
 */
struct flight_host {
	const char	*out;
	void		(*status)(void *data, struct json_writer *w);
	void		*data;
};

/**
 * struct flight_trigger_ops - one kind of trigger
 * @name: its name in a SPEC
 * @slashes: commas between slashes are part of the argument
 * @parse: parses the text after "NAME:"; NULL if there is no argument
 * @start: starts to watch; sets @fd if there is a file descriptor to poll
 * @hits: returns the number of hits since the last call, and sets @reason
 * @begun: its dump begins; further hits belong to the next dump
 * @done: the dump is complete or has failed
 * @stop: stops to watch
 * @free: frees the result of @parse
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
 * struct flight_trigger - a trigger given with --trigger
 * @next: the next trigger
 * @ops: its kind
 * @host: the recorder, valid after @start
 * @state: OFF, ON when parsed, READY when watched, HIT until its dump begins
 * @action: action after each dump
 * @wanted: additional action after the next dump
 * @delay: ns from the hit to the dump
 * @cooldown: ns after a dump in which hits are swallowed
 * @freeze: stop sampling from the hit until the dump has its data
 * @fd: file descriptor to poll, or -1
 * @due: when the dump begins, CLOCK_MONOTONIC
 * @quiet_until: end of the cooldown
 * @merged: further hits merged into the pending dump
 * @swallowed: hits during the cooldown after the last dump
 * @reason: reason of the last hit that was not swallowed
 * @priv: private data of the kind
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
unsigned int flight_trigger__look(struct flight_trigger *t, u64 now);
struct flight_trigger *flight_triggers__due(struct flight_trigger *triggers, u64 now);
u64 flight_triggers__next(struct flight_trigger *triggers, u64 now, bool busy);
const char *flight_action__name(enum flight_action action);
int flight__parse_time(const char *str, u64 *ns);

#endif /* __PERF_FLIGHT_TRIGGERS_H */
