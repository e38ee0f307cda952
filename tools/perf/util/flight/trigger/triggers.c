// SPDX-License-Identifier: GPL-2.0
/*
 * The triggers of a flight recorder, and the option
 *
 *	--trigger KIND[:ARG][,action=dump|stop|combine][,delay=T][,cooldown=T][,freeze]
 *	--trigger KIND/TERM,TERM=VALUE/[,action=...]
 *
 * The terms end at the last slash, so that they may have slashes and commas in them.
 *
 * Each kind of trigger is a struct flight_trigger_ops in a file of its own and a line in
 * the table below. It only reports hits. The recorder decides what to do. This
 * file keeps the times for it: @due is the end of a trigger's delay, @quiet_until that of
 * its cooldown. See recorder.c for the states.
 */
#include "triggers.h"
#include "../../clockid.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct flight_trigger_ops *const kinds[] = {
	&flight_trigger_signal,
	&flight_trigger_socket,
	&flight_trigger_deadline,
	&flight_trigger_event,
	&flight_trigger_bpf,
	&flight_trigger_psi,
	&flight_trigger_kmsg,
	&flight_trigger_oom,
	&flight_trigger_hung,
	&flight_trigger_lockup,
	&flight_trigger_rcu_stall,
	&flight_trigger_cpu,
	&flight_trigger_exit,
	&flight_trigger_latency,
	&flight_trigger_syscall,
};

/* A trigger that fires by itself writes no more than so many dumps, if not told otherwise. */
#define DEFAULT_COOLDOWN	((u64)(10 * NSEC_PER_SEC))

/* A dump that has failed is tried again after 1, 2, 4, 8 and 16 seconds. */
#define MAX_TRIES		5

static const char *const actions[] = {
	[FLIGHT_ACTION_DUMP]	= "dump",
	[FLIGHT_ACTION_STOP]	= "stop",
	[FLIGHT_ACTION_COMBINE]	= "combine",
};

const char *flight_action__name(enum flight_action action)
{
	return actions[action];
}

/**
 * flight__parse_time - parse a duration: a number with ms, s (default), m, h or d
 * @str: the text
 * @ns: returns the duration
 *
 * Return: 0 or -EINVAL.
 */
int flight__parse_time(const char *str, u64 *ns)
{
	static const struct {
		const char	*unit;
		double		ns;
	} units[] = {
		{ "",	NSEC_PER_SEC },
		{ "ms",	NSEC_PER_MSEC },
		{ "s",	NSEC_PER_SEC },
		{ "m",	60.0 * NSEC_PER_SEC },
		{ "h",	3600.0 * NSEC_PER_SEC },
		{ "d",	86400.0 * NSEC_PER_SEC },
	};
	char *end;
	double value = strtod(str, &end);

	if (end == str || !isfinite(value) || value < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(end, units[i].unit) && value * units[i].ns < 1e18) {
			*ns = value * units[i].ns;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_action(struct flight_trigger *t, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		if (!strcmp(value, actions[i])) {
			t->action = i;
			return 0;
		}
	}
	pr_err("--trigger: unknown action '%s': use dump, stop or combine.\n", value);
	return -EINVAL;
}

static int parse_time(const char *key, const char *value, u64 *ns)
{
	if (!flight__parse_time(value, ns))
		return 0;
	pr_err("--trigger: %s=%s is not a time: use a number with ms, s, m, h or d.\n", key, value);
	return -EINVAL;
}

static int parse_option(struct flight_trigger *t, char *option)
{
	char *value = strchr(option, '=');

	if (!strcmp(option, "freeze")) {
		t->freeze = true;
		return 0;
	}
	if (value)
		*value++ = '\0';
	if (value && !strcmp(option, "action"))
		return parse_action(t, value);
	if (value && !strcmp(option, "delay"))
		return parse_time(option, value, &t->delay);
	t->has_cooldown |= value && !strcmp(option, "cooldown");
	if (value && !strcmp(option, "cooldown"))
		return parse_time(option, value, &t->cooldown);

	if (value)
		value[-1] = '=';
	pr_err("--trigger: unknown option '%s': use action=dump|stop|combine, delay=T, cooldown=T or freeze.\n",
	       option);
	return -EINVAL;
}

static void print_kinds(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		pr_err("%s %s", i ? "," : " use", kinds[i]->name);
	pr_err(".\n");
}

static const struct flight_trigger_ops *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(name, kinds[i]->name))
			return kinds[i];
	}

	pr_err("--trigger: unknown trigger '%s':", name);
	print_kinds();
	return NULL;
}

/* The first comma that is not between slashes, or the end. */
static char *end_of_arg(char *arg, bool slashes)
{
	bool between = false;

	for (; *arg && (*arg != ',' || between); arg++)
		between ^= slashes && *arg == '/';
	return arg;
}

/* @terms: what follows the first slash, up to the end of the SPEC; or NULL */
static int parse_terms(struct flight_trigger *t, char *terms, char **spec)
{
	char *end = terms ? strrchr(terms, '/') : NULL;

	if (terms && (!end || (end[1] && end[1] != ','))) {
		pr_err("--trigger: the slash behind the terms of '%s' is missing, or something else than a comma follows it. Use %s\n",
		       t->ops->name, t->ops->form);
		return -EINVAL;
	}
	if (end) {
		*end = '\0';
		*spec = end[1] ? end + 2 : NULL;
	}
	return t->ops->parse_terms(t, terms);
}

/* On return, @spec points to the options. */
static int parse_kind(struct flight_trigger *t, char **spec)
{
	char *kind = *spec, *end = kind + strcspn(kind, ":,/"), *arg = NULL;
	char delimiter = *end;

	if (end == kind) {
		pr_err("--trigger: no trigger is named in '%s':", kind);
		print_kinds();
		return -EINVAL;
	}
	*spec = delimiter == ',' ? end + 1 : NULL;
	*end = '\0';
	t->ops = find_kind(kind);
	if (!t->ops)
		return -EINVAL;
	if (t->ops->parse_terms && delimiter == ':') {
		pr_err("--trigger: '%s' takes no argument behind a colon. Use %s\n", kind,
		       t->ops->form);
		return -EINVAL;
	}
	if (t->ops->parse_terms)
		return parse_terms(t, delimiter == '/' ? end + 1 : NULL, spec);
	if (delimiter == '/') {
		pr_err("--trigger: '%s' has no terms between slashes: use %s%s.\n", kind, kind,
		       t->ops->parse ? ":ARGUMENT" : " alone");
		return -EINVAL;
	}
	if (delimiter == ':') {
		arg = end + 1;
		end = end_of_arg(arg, t->ops->slashes);
		*spec = *end ? end + 1 : NULL;
		*end = '\0';
	}
	if (t->ops->parse)
		return t->ops->parse(t, arg);
	if (arg) {
		pr_err("--trigger: '%s' takes no argument after a colon: use it alone.\n", kind);
		return -EINVAL;
	}
	return 0;
}

static int parse(struct flight_trigger *t, char *spec)
{
	int err = parse_kind(t, &spec);
	char *word;

	while (!err && (word = strsep(&spec, ",")) != NULL)
		err = parse_option(t, word);

	if (t->ops && t->ops->by_itself && !t->has_cooldown)
		t->cooldown = DEFAULT_COOLDOWN;
	if (!err && t->freeze && t->delay) {
		pr_err("--trigger: 'freeze' and 'delay' exclude each other: use one of them.\n");
		err = -EINVAL;
	}
	return err;
}

static void delete(struct flight_trigger *t)
{
	if (t && t->ops && t->ops->free)
		t->ops->free(t);
	if (t)
		free(t->last.path);
	free(t);
}

/**
 * flight_triggers__add - add a trigger
 * @triggers: list of triggers
 * @spec: argument of --trigger
 *
 * Return: 0, -ENOMEM, or -EINVAL after an error message.
 */
int flight_triggers__add(struct flight_trigger **triggers, const char *spec)
{
	struct flight_trigger *t = zalloc(sizeof(*t)), **last;
	char *copy = strdup(spec);
	int err = -ENOMEM;

	if (!t || !copy)
		goto out_free;

	t->fd = -1;
	t->state.state = TRIGGER_OFF;
	err = parse(t, copy);
	if (err)
		goto out_free;
	t->state.name = t->ops->name;
	trigger_on(&t->state);

	if (!t->ops->parse && !t->ops->parse_terms && flight_triggers__has(*triggers, t->ops)) {
		pr_err("--trigger: '%s' can be given only once: use one of them.\n",
		       t->ops->name);
		err = -EINVAL;
		goto out_free;
	}
	/* Deadlines come last: what is said on a socket is heard before. */
	for (last = triggers; *last; last = &(*last)->next) {
		if ((*last)->ops == &flight_trigger_deadline)
			break;
	}
	t->next = *last;
	*last = t;
	free(copy);
	return 0;

out_free:
	free(copy);
	delete(t);
	return err;
}

/* SIGUSR1 writes a dump whatever other triggers there are. Return: 0 or -ENOMEM. */
int flight_triggers__add_signal(struct flight_trigger **triggers)
{
	bool implied = *triggers;
	int err;

	if (flight_triggers__has(*triggers, &flight_trigger_signal))
		return 0;
	err = flight_triggers__add(triggers, flight_trigger_signal.name);
	for (struct flight_trigger *t = *triggers; t && !err; t = t->next)
		t->implied = implied && t->ops == &flight_trigger_signal;
	return err;
}

/* Where there is a socket, deadlines can be armed. Return: 0, -EINVAL or -ENOMEM. */
int flight_triggers__add_deadline(struct flight_trigger **triggers)
{
	bool has_socket = flight_triggers__has(*triggers, &flight_trigger_socket);
	bool given = flight_triggers__has(*triggers, &flight_trigger_deadline);

	if (given && !has_socket) {
		pr_err("--trigger: deadlines are armed on a socket: add --trigger socket.\n");
		return -EINVAL;
	}
	if (given || !has_socket)
		return 0;
	return flight_triggers__add(triggers, flight_trigger_deadline.name);
}

/* The first trigger of that kind, or NULL. */
struct flight_trigger *flight_triggers__find(struct flight_trigger *triggers,
					     const struct flight_trigger_ops *ops)
{
	struct flight_trigger *t = triggers;

	while (t && t->ops != ops)
		t = t->next;
	return t;
}

/* Return whether there is a trigger of that kind. */
bool flight_triggers__has(const struct flight_trigger *triggers,
			  const struct flight_trigger_ops *ops)
{
	return flight_triggers__find((struct flight_trigger *)triggers, ops);
}

/* Return whether there is a trigger that fires by itself. */
bool flight_triggers__fire_by_themselves(const struct flight_trigger *triggers)
{
	for (const struct flight_trigger *t = triggers; t; t = t->next) {
		if (t->ops->by_itself)
			return true;
	}
	return false;
}

void flight_triggers__free(struct flight_trigger **triggers)
{
	while (*triggers) {
		struct flight_trigger *t = *triggers;

		*triggers = t->next;
		delete(t);
	}
}

/**
 * flight_triggers__prepare - what is to be done before the events are opened
 * @triggers: the triggers
 * @tids: returns the threads that they have started, to be freed
 *
 * Return: the number of threads, or a negative errno.
 */
int flight_triggers__prepare(struct flight_trigger *triggers, pid_t **tids)
{
	int nr = 0, err;

	for (struct flight_trigger *t = triggers; t; t = t->next)
		nr += !!t->ops->prepare;
	*tids = calloc(nr + 1, sizeof(**tids));
	if (!*tids)
		return -ENOMEM;
	nr = 0;
	for (struct flight_trigger *t = triggers; t; t = t->next) {
		err = t->ops->prepare ? t->ops->prepare(t) : 0;
		if (err)
			return err;
		if (t->tid)
			(*tids)[nr++] = t->tid;
	}
	return nr;
}

/**
 * flight_triggers__start - start all triggers
 * @triggers: the triggers
 * @host: interface to the recorder; must outlive the triggers
 *
 * Return: 0 or a negative errno.
 */
int flight_triggers__start(struct flight_trigger *triggers, const struct flight_host *host)
{
	for (struct flight_trigger *t = triggers; t; t = t->next) {
		int err;

		t->host = host;
		err = t->ops->start(t);

		if (err)
			return err;
		trigger_ready(&t->state);
	}
	return 0;
}

/**
 * flight_trigger__look - count the hits since the last look: READY may become HIT
 * @t: a trigger that is watched
 * @now: CLOCK_MONOTONIC
 *
 * Return: hits that the cooldown swallowed.
 */
unsigned int flight_trigger__look(struct flight_trigger *t, u64 now)
{
	unsigned int hits;

	t->more = false;
	if (trigger_is_ready(&t->state)) {
		t->hit_at = 0;
		t->cause = (struct flight_cause) {};
	}
	t->looked_at = now;
	hits = t->ops->hits(t);
	if (!hits)
		return 0;
	if (!t->hit_at)
		clockid__read(t->host->clockid, &t->hit_at);
	if (now < t->quiet_until) {
		t->swallowed += hits;
		return hits;
	}
	if (!trigger_is_ready(&t->state)) {
		t->merged += hits;
		return 0;
	}
	t->merged = hits - 1;
	t->tries = 0;
	t->due = now + t->delay;
	trigger_hit(&t->state);
	return 0;
}

/**
 * flight_trigger__may_try_again - will its dump be tried again, should it fail?
 * @t: the trigger
 */
bool flight_trigger__may_try_again(const struct flight_trigger *t)
{
	return !t->ops->asked && t->tries < MAX_TRIES;
}

/**
 * flight_trigger__try_again - its dump has failed: READY becomes HIT again
 * @t: the trigger, with the reason and the number of hits of that dump
 * @now: CLOCK_MONOTONIC
 *
 * There is no cooldown without a dump. The longer it fails the rarer it is tried.
 *
 * Return: whether it is.
 */
bool flight_trigger__try_again(struct flight_trigger *t, u64 now)
{
	t->quiet_until = 0;
	if (!flight_trigger__may_try_again(t))
		return false;
	if (trigger_is_hit(&t->state))
		return true;
	t->due = now + (NSEC_PER_SEC << t->tries++);
	trigger_hit(&t->state);
	return true;
}

/* The first trigger that is HIT and whose delay was over at @now, or NULL. */
struct flight_trigger *flight_triggers__due(struct flight_trigger *triggers, u64 now)
{
	for (struct flight_trigger *t = triggers; t; t = t->next) {
		if (trigger_is_hit(&t->state) && t->due <= now)
			return t;
	}
	return NULL;
}

/**
 * flight_triggers__next - when is there something to do?
 * @triggers: the triggers
 * @now: CLOCK_MONOTONIC
 * @busy: a dump is being written: what is due already waits for its end
 *
 * Return: the end of the first delay, or of the first cooldown that swallowed hits;
 * later than @now; or the largest time there is.
 */
u64 flight_triggers__next(struct flight_trigger *triggers, u64 now, bool busy)
{
	u64 next = -1ULL;

	for (struct flight_trigger *t = triggers; t; t = t->next) {
		if (trigger_is_hit(&t->state) && (t->due > now || !busy))
			next = min(next, max(t->due, now + 1));
		else if (t->quiet_until > now && t->swallowed)
			next = min(next, t->quiet_until);
	}
	return next;
}

void flight_triggers__stop(struct flight_trigger *triggers)
{
	for (struct flight_trigger *t = triggers; t; t = t->next) {
		if (trigger_is_ready(&t->state) || trigger_is_hit(&t->state))
			t->ops->stop(t);
		trigger_off(&t->state);
	}
}
