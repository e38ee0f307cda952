// SPDX-License-Identifier: GPL-2.0
/*
 * The triggers of a flight recorder, and the option
 *
 *	--trigger KIND[:ARG][,action=dump|stop|combine][,delay=T][,cooldown=T][,freeze]
 *
 * Each kind of trigger is a struct flight_trigger_ops in a file of its own and a line in
 * the table below. It only reports hits. The recorder decides what to do. This
 * file keeps the times for it: @due is the end of a trigger's delay, @quiet_until that of
 * its cooldown. See recorder.c for the states.
 */
#include "triggers.h"
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
	&flight_trigger_event,
	&flight_trigger_bpf,
};

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
	if (value && !strcmp(option, "cooldown"))
		return parse_time(option, value, &t->cooldown);

	pr_err("--trigger: unknown option '%s': use action=dump|stop|combine, delay=T, cooldown=T or freeze.\n",
	       option);
	return -EINVAL;
}

static const struct flight_trigger_ops *find_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(name, kinds[i]->name))
			return kinds[i];
	}

	pr_err("--trigger: unknown trigger '%s':", name);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		pr_err("%s %s", i ? "," : " use", kinds[i]->name);
	pr_err(".\n");
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

/* On return, @spec points to the options. */
static int parse_kind(struct flight_trigger *t, char **spec)
{
	char *kind = *spec, *end = kind + strcspn(kind, ":,"), *arg = NULL;
	char delimiter = *end;

	*spec = delimiter == ',' ? end + 1 : NULL;
	*end = '\0';
	t->ops = find_kind(kind);
	if (!t->ops)
		return -EINVAL;
	if (delimiter == ':') {
		arg = end + 1;
		end = end_of_arg(arg, t->ops->slashes);
		*spec = *end ? end + 1 : NULL;
		*end = '\0';
	}
	if (t->ops->parse)
		return t->ops->parse(t, arg);
	if (arg) {
		pr_err("--trigger: '%s' takes no argument after a colon.\n", kind);
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

	if (!err && t->freeze && t->delay) {
		pr_err("--trigger: 'freeze' and 'delay' exclude each other.\n");
		err = -EINVAL;
	}
	return err;
}

static void delete(struct flight_trigger *t)
{
	if (t && t->ops && t->ops->free)
		t->ops->free(t);
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

	for (last = triggers; *last; last = &(*last)->next) {
		if ((*last)->ops == t->ops && !t->ops->parse) {
			pr_err("--trigger: '%s' can be given only once.\n", t->ops->name);
			err = -EINVAL;
			goto out_free;
		}
	}
	*last = t;
	free(copy);
	return 0;

out_free:
	free(copy);
	delete(t);
	return err;
}

/* Return whether there is a trigger of that kind. */
bool flight_triggers__has(const struct flight_trigger *triggers,
			  const struct flight_trigger_ops *ops)
{
	for (const struct flight_trigger *t = triggers; t; t = t->next) {
		if (t->ops == ops)
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
	unsigned int hits = t->ops->hits(t);

	if (!hits)
		return 0;
	if (now < t->quiet_until) {
		t->swallowed += hits;
		return hits;
	}
	if (!trigger_is_ready(&t->state)) {
		t->merged += hits;
		return 0;
	}
	t->merged = hits - 1;
	t->due = now + t->delay;
	trigger_hit(&t->state);
	return 0;
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
