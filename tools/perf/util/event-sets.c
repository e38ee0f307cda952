// SPDX-License-Identifier: GPL-2.0
/*
 * Sets of events with a name: perf record --event-set NAME
 *
 * Some sets come with perf. Users add theirs to the configuration, as event-set.NAME; such a
 * set hides the one of perf with the same name.
 *
 * A set of perf has events that not every kernel has. perf names those and leaves them out. A
 * set of the user must be right as a whole, as with -e.
 */
#include "event-sets.h"
#include "debug.h"
#include "evlist.h"
#include "parse-events.h"

#include <api/fs/tracing_path.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <subcmd/parse-options.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTION	"event-set."

/**
 * struct user_set - a set of the configuration
 * @node: in user_sets
 * @name: as the user calls it
 * @events: as behind -e
 */
struct user_set {
	struct list_head	node;
	char			*name;
	char			*events;
};

static LIST_HEAD(user_sets);

/* The man page tells the purpose of each set's events, the guide their cost. */
static const struct {
	const char	*name;
	const char	*events[10];
} sets[] = {
	{ "incident", { "cpu-clock/freq=99,call-graph=fp/", "sched:sched_switch/call-graph=fp/",
			"sched:sched_waking", "sched:sched_wakeup_new", "lock:contention_begin",
			"lock:contention_end", "vmscan:mm_vmscan_direct_reclaim_begin",
			"vmscan:mm_vmscan_direct_reclaim_end",
			"vmscan:mm_vmscan_memcg_reclaim_begin",
			"vmscan:mm_vmscan_memcg_reclaim_end" } },
	{ "sched", { "sched:sched_switch", "sched:sched_waking", "sched:sched_wakeup_new",
		     "sched:sched_migrate_task", "sched:sched_process_fork",
		     "sched:sched_process_exec", "sched:sched_process_exit" } },
	{ "io", { "block:block_rq_insert", "block:block_rq_issue", "block:block_rq_complete",
		  "block:block_rq_requeue" } },
	{ "interrupts", { "irq:irq_handler_entry", "irq:irq_handler_exit", "irq:softirq_entry",
			  "irq:softirq_exit" } },
	{ "syscalls", { "raw_syscalls:sys_enter", "raw_syscalls:sys_exit" } },
};

static struct user_set *find_user_set(const char *name)
{
	struct user_set *set;

	list_for_each_entry(set, &user_sets, node) {
		if (!strcmp(set->name, name))
			return set;
	}
	return NULL;
}

/**
 * event_sets__config - take a set from the configuration
 * @var: name of the variable
 * @value: its value: events, as behind -e
 *
 * A later value replaces an earlier one, as that of a user's file does with that of the
 * system's. A variable of another section is left alone.
 *
 * Return: 0 or a negative errno.
 */
int event_sets__config(const char *var, const char *value)
{
	const char *name = var + strlen(SECTION);
	struct user_set *set;
	char *events;

	if (!strstarts(var, SECTION))
		return 0;
	if (!value || !*value || strchr(name, ',')) {
		pr_err("Configuration: %s must be a list of events, as for perf record -e.\n", var);
		return -EINVAL;
	}
	events = strdup(value);
	if (!events)
		return -ENOMEM;
	set = find_user_set(name);
	if (set) {
		free(set->events);
		set->events = events;
		return 0;
	}
	set = zalloc(sizeof(*set));
	if (set)
		set->name = strdup(name);
	if (!set || !set->name) {
		free(set);
		free(events);
		return -ENOMEM;
	}
	set->events = events;
	list_add_tail(&set->node, &user_sets);
	return 0;
}

static void print_names(void)
{
	struct user_set *set;

	pr_err("Sets of events:");
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		pr_err(" %s", sets[i].name);
	list_for_each_entry(set, &user_sets, node)
		pr_err(" %s", set->name);
	pr_err("\nAdd one: perf config event-set.NAME=EVENTS\n");
}

/* An event of a kernel that may lack it: a tracepoint whose directory is not there */
static bool is_missing(const char *event)
{
	char *name = strdup(event), *file;
	bool missing;

	if (!name)
		return false;
	name[strcspn(name, "/")] = '\0';
	if (!strchr(name, ':')) {
		free(name);
		return false;
	}
	*strchr(name, ':') = '/';
	file = get_events_file(name);
	missing = file && access(file, F_OK) && errno == ENOENT;
	put_events_file(file);
	free(name);
	return missing;
}

static int add_events(struct evlist *evlist, const char *events)
{
	struct parse_events_option_args args = { .evlistp = &evlist };
	struct option opt = { .value = &args };

	return parse_events_option(&opt, events, /*unset=*/0) ? -EINVAL : 0;
}

static int add_set(struct evlist *evlist, const char *name)
{
	struct user_set *set = find_user_set(name);
	int nr = 0, err = 0;
	size_t i, j;

	if (set)
		return add_events(evlist, set->events);

	for (i = 0; i < ARRAY_SIZE(sets) && strcmp(sets[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(sets)) {
		pr_err("No set of events is called '%s'. ", name);
		print_names();
		return -ENOENT;
	}
	for (j = 0; j < ARRAY_SIZE(sets[i].events) && sets[i].events[j] && !err; j++) {
		if (is_missing(sets[i].events[j])) {
			pr_warning("--event-set %s: this kernel has no %.*s, which is left out.\n",
				   name, (int)strcspn(sets[i].events[j], "/"),
				   sets[i].events[j]);
			continue;
		}
		err = add_events(evlist, sets[i].events[j]);
		nr++;
	}
	if (!err && !nr) {
		pr_err("--event-set %s: this kernel has none of its events.\n", name);
		return -ENOENT;
	}
	return err;
}

/**
 * event_sets__add - add the events of sets
 * @evlist: to these
 * @names: of the sets, separated by commas
 *
 * Return: 0, or a negative errno after an error message.
 */
int event_sets__add(struct evlist *evlist, const char *names)
{
	char *copy = strdup(names), *next = copy, *name;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&next, ",")))
		err = add_set(evlist, name);
	free(copy);
	return err;
}

/**
 * event_sets__parse_option - --event-set NAME[,NAME...]
 * @opt: its value is a struct parse_events_option_args
 * @str: the names
 * @unset: --no-event-set, which does nothing
 *
 * Return: 0 or -1, after an error message.
 */
int event_sets__parse_option(const struct option *opt, const char *str, int unset)
{
	struct parse_events_option_args *args = opt->value;

	return unset || !event_sets__add(*args->evlistp, str) ? 0 : -1;
}
