/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FLIGHT_TRIGGERS_H
#define __PERF_FLIGHT_TRIGGERS_H

#include "cause.h"
#include "../dump/manifest.h"
#include "../../trigger.h"
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

struct dump_result;
struct evlist;
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
 * @clockid: the clock of the records
 * @triggers: all triggers
 * @status: writes the members of a JSON object with the status
 * @say: prints a message, without waiting for what it is printed to
 * @data: argument of @status and @say
 */
struct flight_host {
	const char	*out;
	clockid_t	clockid;
	struct flight_trigger *triggers;
	void		(*status)(void *data, struct json_writer *w);
	void		(*say)(void *data, const char *text);
	void		*data;
};

/**
 * struct flight_trigger_ops - one kind of trigger
 * @name: its name in a SPEC
 * @by_itself: dumps are not requested, so there may be any number of hits
 * @asked: a client waits for the dump, and is told if it fails
 * @slashes: commas between slashes are part of the argument
 * @form: how a SPEC of this kind looks, for messages, if it has @parse_terms
 * @parse: parses the text after "NAME:"; NULL if there is no argument
 * @parse_terms: parses the text of "NAME/TEXT/", NULL for a NAME alone; instead of @parse
 * @prepare: starts threads, and sets @tid, before the events are opened
 * @start: starts to watch; sets @fd if there is a file descriptor to poll
 * @hits: returns the number of hits since the last call, and sets @reason, and @hit_at if
 *	it knows
 * @begun: its dump begins; further hits belong to the next dump
 * @done: the dump is complete or has failed
 * @evlist: returns events that it has opened on all CPUs
 * @stop: stops to watch
 * @free: frees the result of @parse
 */
struct flight_trigger_ops {
	const char	*name;
	bool		by_itself;
	bool		asked;
	bool		slashes;
	const char	*form;
	int		(*parse)(struct flight_trigger *t, const char *arg);
	int		(*parse_terms)(struct flight_trigger *t, char *terms);
	int		(*prepare)(struct flight_trigger *t);
	int		(*start)(struct flight_trigger *t);
	unsigned int	(*hits)(struct flight_trigger *t);
	void		(*begun)(struct flight_trigger *t);
	void		(*done)(struct flight_trigger *t, const struct dump_result *result);
	struct evlist	*(*evlist)(struct flight_trigger *t);
	void		(*stop)(struct flight_trigger *t);
	void		(*free)(struct flight_trigger *t);
};

/**
 * struct flight_trigger - a trigger given with --trigger
 * @next: the next trigger
 * @ops: its kind
 * @host: the recorder, valid after @start
 * @state: OFF, ON when parsed, READY when watched, HIT until its dump begins
 * @implied: the user gave only others
 * @action: action after each dump
 * @wanted: additional action after the next dump
 * @delay: ns from the hit to the dump
 * @has_cooldown: the user has set @cooldown
 * @cooldown: ns after a dump in which hits are swallowed
 * @freeze: stop sampling from the hit until the dump has its data
 * @fd: file descriptor to poll, or -1
 * @tid: a thread of its own, or 0
 * @hit_at: when the hit was that @reason tells of, on the clock of the records
 * @tries: how often its dump was tried again
 * @due: when the dump begins, CLOCK_MONOTONIC
 * @looked_at: CLOCK_MONOTONIC of the look that asks for @hits
 * @more: set by @hits: it has read as much as a look may, and there may be more
 * @quiet_until: end of the cooldown
 * @merged: further hits merged into the pending dump
 * @swallowed: hits during the cooldown after the last dump
 * @last: the manifest of its last dump, which is to tell of them
 * @reason: reason of the last hit that was not swallowed
 * @cause: the same in numbers
 * @priv: private data of the kind
 */
struct flight_trigger {
	struct flight_trigger			*next;
	const struct flight_trigger_ops		*ops;
	const struct flight_host		*host;
	struct trigger				state;
	bool					implied;
	enum flight_action			action;
	enum flight_action			wanted;
	u64					delay;
	bool					has_cooldown;
	u64					cooldown;
	bool					freeze;
	int					fd;
	pid_t					tid;
	u64					hit_at;
	unsigned int				tries;
	u64					due;
	u64					looked_at;
	bool					more;
	u64					quiet_until;
	u64					merged;
	u64					swallowed;
	struct last_manifest			last;
	char					reason[128];
	struct flight_cause			cause;
	void					*priv;
};

extern const struct flight_trigger_ops flight_trigger_signal;
extern const struct flight_trigger_ops flight_trigger_socket;
extern const struct flight_trigger_ops flight_trigger_deadline;
extern const struct flight_trigger_ops flight_trigger_event;
extern const struct flight_trigger_ops flight_trigger_bpf;
extern const struct flight_trigger_ops flight_trigger_psi;
extern const struct flight_trigger_ops flight_trigger_kmsg;
extern const struct flight_trigger_ops flight_trigger_oom;
extern const struct flight_trigger_ops flight_trigger_hung;
extern const struct flight_trigger_ops flight_trigger_lockup;
extern const struct flight_trigger_ops flight_trigger_rcu_stall;
extern const struct flight_trigger_ops flight_trigger_cpu;
extern const struct flight_trigger_ops flight_trigger_exit;
extern const struct flight_trigger_ops flight_trigger_latency;
extern const struct flight_trigger_ops flight_trigger_syscall;

int flight_triggers__add(struct flight_trigger **triggers, const char *spec);
int flight_triggers__add_signal(struct flight_trigger **triggers);
int flight_triggers__add_deadline(struct flight_trigger **triggers);
struct flight_trigger *flight_triggers__find(struct flight_trigger *triggers,
					     const struct flight_trigger_ops *ops);
bool flight_triggers__has(const struct flight_trigger *triggers,
			  const struct flight_trigger_ops *ops);
bool flight_triggers__fire_by_themselves(const struct flight_trigger *triggers);
void flight_triggers__free(struct flight_trigger **triggers);
int flight_triggers__prepare(struct flight_trigger *triggers, pid_t **tids);
int flight_triggers__start(struct flight_trigger *triggers, const struct flight_host *host);
void flight_trigger__end(struct flight_trigger *t, enum flight_action action);
void flight_trigger__set_reason(struct flight_trigger *t, const char *reason);
void flight_triggers__stop(struct flight_trigger *triggers);
bool flight_trigger__may_try_again(const struct flight_trigger *t);
bool flight_trigger__try_again(struct flight_trigger *t, u64 now);
unsigned int flight_trigger__look(struct flight_trigger *t, u64 now);
struct flight_trigger *flight_triggers__due(struct flight_trigger *triggers, u64 now);
u64 flight_triggers__next(struct flight_trigger *triggers, u64 now, bool busy);
const char *flight_action__name(enum flight_action action);
int flight__parse_time(const char *str, u64 *ns);

#endif /* __PERF_FLIGHT_TRIGGERS_H */
