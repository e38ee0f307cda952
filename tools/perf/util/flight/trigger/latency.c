// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a task that waits for too long, or interrupts that are off for too long
 *
 *	--trigger latency/runq,over=20ms,comm=NAME,cgroup=PATH/
 *	--trigger latency/offcpu,over=200ms,comm=NAME,cgroup=PATH/
 *	--trigger latency/irqoff,over=1ms/
 *
 * BPF programs of perf do the work, see watch.c and util/bpf_skel/flight_latency.bpf.c.
 */
#include "terms.h"
#include "triggers.h"
#include "watch.h"

#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMM	15
#define MIN_OVER	((u64)(NSEC_PER_MSEC / 10))
#define MIN_OFFCPU	((u64)NSEC_PER_MSEC)

/**
 * struct latency - the terms
 * @watch: what is watched; must be first, since it is what @priv is for watch.c
 * @runq: waits for a CPU
 * @offcpu: waits of any kind
 * @irqoff: interrupts are off
 */
struct latency {
	struct flight_watch	watch;
	bool			runq;
	bool			offcpu;
	bool			irqoff;
};

static const struct flight_term terms[] = {
	{ "runq",	TERM_FLAG,	offsetof(struct latency, runq) },
	{ "offcpu",	TERM_FLAG,	offsetof(struct latency, offcpu) },
	{ "irqoff",	TERM_FLAG,	offsetof(struct latency, irqoff) },
	{ "over",	TERM_TIME,	offsetof(struct latency, watch.over) },
	{ "comm",	TERM_WORD,	offsetof(struct latency, watch.comm) },
	{ "cgroup",	TERM_WORD,	offsetof(struct latency, watch.cgroup) },
	{ NULL }
};

static int check_terms(struct flight_trigger *t, const struct latency *l)
{
	const struct flight_watch *w = &l->watch;

	if (l->runq + l->offcpu + l->irqoff != 1)
		return flight_terms__refuse(t, "one of 'runq', 'offcpu' and 'irqoff' is needed");
	if (l->irqoff && (w->comm || w->cgroup))
		return flight_terms__refuse(t,
					    "'%s' is not for 'irqoff', which is a state of a CPU",
					    w->comm ? "comm" : "cgroup");
	if (w->over < (l->offcpu ? MIN_OFFCPU : MIN_OVER))
		return flight_terms__refuse(t, "'over' of '%s' must be a time of at least %s",
					    l->runq ? "runq" : l->offcpu ? "offcpu" : "irqoff",
					    l->offcpu ? "1ms" : "0.1ms");
	if (w->comm && strlen(w->comm) > MAX_COMM)
		return flight_terms__refuse(t,
					    "comm=%s is longer than the %d bytes that the kernel keeps",
					    w->comm, MAX_COMM);
	return 0;
}

static int latency_parse_terms(struct flight_trigger *t, char *text)
{
	struct latency *l = zalloc(sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	t->priv = l;
	err = flight_terms__parse(t, terms, text);
	if (!err)
		err = check_terms(t, l);
	if (err)
		return err;
	l->watch.kind = l->runq ? WATCH_RUNQ : l->offcpu ? WATCH_OFFCPU : WATCH_IRQOFF;
	return flight_watch__check(t);
}

const struct flight_trigger_ops flight_trigger_latency = {
	.name	= "latency",
	.form	= "latency/runq|offcpu|irqoff,over=TIME[,comm=NAME][,cgroup=PATH]/",
	.by_itself = true,
	.parse_terms = latency_parse_terms,
	.prepare = flight_watch__prepare,
	.start	= flight_watch__start,
	.hits	= flight_watch__hits,
	.stop	= flight_watch__stop,
	.free	= flight_watch__free,
};
