// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a system call that takes too long
 *
 *	--trigger syscall/name=fsync,over=1s,comm=NAME,cgroup=PATH/
 *
 * BPF programs of perf do the work, see watch.c and util/bpf_skel/flight_latency.bpf.c.
 */
#include "terms.h"
#include "triggers.h"
#include "watch.h"
#include "../../base-api.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMM	15
#define MIN_OVER	((u64)(NSEC_PER_MSEC / 10))

static const struct flight_term terms[] = {
	{ "name",	TERM_WORD,	offsetof(struct flight_watch, syscall) },
	{ "over",	TERM_TIME,	offsetof(struct flight_watch, over) },
	{ "comm",	TERM_WORD,	offsetof(struct flight_watch, comm) },
	{ "cgroup",	TERM_WORD,	offsetof(struct flight_watch, cgroup) },
	{ NULL }
};

#ifdef HAVE_SYSCALL_NAMES
static int find_nr(struct flight_trigger *t, struct flight_watch *w)
{
	w->nr = syscall__number(w->syscall);
	if (w->nr == -ENOMEM)
		return w->nr;
	if (w->nr < 0)
		return flight_terms__refuse(t, "name=%s is no system call of this machine",
					    w->syscall);
	return 0;
}
#else
static int find_nr(struct flight_trigger *t, struct flight_watch *w)
{
	char *end;

	w->nr = strtol(w->syscall, &end, 10);
	if (*end || w->nr < 0)
		return flight_terms__refuse(t,
					    "name=%s must be a number, as this perf was built without a table of system calls",
					    w->syscall);
	return 0;
}
#endif

static int syscall_parse_terms(struct flight_trigger *t, char *text)
{
	struct flight_watch *w = zalloc(sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	t->priv = w;
	w->kind = WATCH_SYSCALL;
	err = flight_terms__parse(t, terms, text);
	if (err)
		return err;
	if (!w->syscall)
		return flight_terms__refuse(t, "'name' is missing");
	if (w->over < MIN_OVER)
		return flight_terms__refuse(t, "'over' must be a time of at least 0.1ms");
	if (w->comm && strlen(w->comm) > MAX_COMM)
		return flight_terms__refuse(t,
					    "comm=%s is longer than the %d bytes that the kernel keeps",
					    w->comm, MAX_COMM);
	err = find_nr(t, w);
	return err ?: flight_watch__check(t);
}

const struct flight_trigger_ops flight_trigger_syscall = {
	.name	= "syscall",
	.form	= "syscall/name=NAME,over=TIME[,comm=NAME][,cgroup=PATH]/",
	.by_itself = true,
	.parse_terms = syscall_parse_terms,
	.prepare = flight_watch__prepare,
	.start	= flight_watch__start,
	.hits	= flight_watch__hits,
	.stop	= flight_watch__stop,
	.free	= flight_watch__free,
};
