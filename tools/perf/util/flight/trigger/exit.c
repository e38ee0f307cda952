// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: a process that a signal kills, --trigger exit/comm=NAME,signal=SEGV/
 *
 * This is the trigger 'event' with a tracepoint and a filter, so that nothing but the hit
 * costs anything:
 *
 *	signal:signal_deliver with the default action, where the kernel's time is that of
 *	the death, before the core is dumped. A signal that a process handles is no hit.
 *
 *	signal:signal_generate for SIGKILL. When a process with threads exits, the kernel
 *	delivers that signal to the other threads, which is no death by SIGKILL; but it
 *	generates none.
 *
 * Without 'signal' it is any of those that a program gets for its own errors.
 */
#include "terms.h"
#include "triggers.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COMM	15

/* The first ones of @signals, which are a program's own errors. */
#define NR_ERRORS	7

/**
 * struct death - what is watched
 * @comm: the name of the task, or NULL
 * @signal: the signal, or NULL
 */
struct death {
	char	*comm;
	char	*signal;
};

static const struct flight_term terms[] = {
	{ "comm",	TERM_WORD,	offsetof(struct death, comm) },
	{ "signal",	TERM_WORD,	offsetof(struct death, signal) },
	{ NULL }
};

/* Those whose default is to end the process. */
static const struct {
	const char	*name;
	int		nr;
} signals[] = {
	{ "SEGV", SIGSEGV },
	{ "ABRT", SIGABRT },
	{ "BUS",  SIGBUS },
	{ "FPE",  SIGFPE },
	{ "ILL",  SIGILL },
	{ "SYS",  SIGSYS },
	{ "TRAP", SIGTRAP },
	{ "HUP",  SIGHUP },
	{ "INT",  SIGINT },
	{ "QUIT", SIGQUIT },
	{ "KILL", SIGKILL },
	{ "PIPE", SIGPIPE },
	{ "ALRM", SIGALRM },
	{ "TERM", SIGTERM },
	{ "USR1", SIGUSR1 },
	{ "USR2", SIGUSR2 },
	{ "XCPU", SIGXCPU },
	{ "XFSZ", SIGXFSZ },
};

/* Return: its number, or 0. */
static int find_signal(const char *name)
{
	char *end;
	long nr = strtol(name, &end, 10);

	if (end == name || *end)
		nr = 0;
	if (strstarts(name, "SIG"))
		name += strlen("SIG");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		if (!strcmp(signals[i].name, name) || signals[i].nr == nr)
			return signals[i].nr;
	}
	return 0;
}

static void put_signals(FILE *f, int nr)
{
	const char *separator = "(";

	if (nr) {
		fprintf(f, "sig == %d", nr);
		return;
	}
	for (size_t i = 0; i < NR_ERRORS; i++) {
		fprintf(f, "%ssig == %d", separator, signals[i].nr);
		separator = " || ";
	}
	fprintf(f, ")");
}

/* Return: what the trigger 'event' takes, to be freed, or NULL. */
static char *format_event(const struct death *d, int nr)
{
	bool kill = nr == SIGKILL;
	char *spec = NULL;
	size_t size;
	FILE *f = open_memstream(&spec, &size);

	if (!f)
		return NULL;
	fprintf(f, "signal:signal_%s/", kill ? "generate" : "deliver");
	put_signals(f, nr);
	/* Delivered by its default action; or not ignored, and not yet pending. */
	fprintf(f, " && %s", kill ? "result == 0" : "sa_handler == 0");
	/* The name of the receiver: generate has it, and deliver runs in its context. */
	if (d->comm)
		fprintf(f, " && %s == \"%s\"", kill ? "comm" : "COMM", d->comm);
	fprintf(f, "/");
	if (fclose(f))
		zfree(&spec);
	return spec;
}

static int check_comm(const struct flight_trigger *t, const char *comm)
{
	if (strlen(comm) > MAX_COMM)
		return flight_terms__refuse(t,
					    "comm=%s is longer than the %d bytes that the kernel keeps",
					    comm, MAX_COMM);
	if (strpbrk(comm, "\"\\/"))
		return flight_terms__refuse(t, "comm=%s has a quote, a backslash or a slash", comm);
	return 0;
}

static int parse_death(struct flight_trigger *t, struct death *d, char *text)
{
	char *spec;
	int nr = 0, err;

	t->priv = d;
	err = flight_terms__parse(t, terms, text);
	/* From here on the private data are those of the event. */
	t->priv = NULL;
	if (err)
		return err;
	if (d->signal)
		nr = find_signal(d->signal);
	if (d->signal && !nr)
		return flight_terms__refuse(t,
					    "signal=%s is no signal that ends a process, such as SEGV or KILL",
					    d->signal);
	err = d->comm ? check_comm(t, d->comm) : 0;
	if (err)
		return err;
	spec = format_event(d, nr);
	err = spec ? flight_trigger_event.parse(t, spec) : -ENOMEM;
	free(spec);
	return err;
}

static int exit_parse_terms(struct flight_trigger *t, char *text)
{
	struct death d = {};
	int err = parse_death(t, &d, text);

	free(d.comm);
	free(d.signal);
	return err;
}

static int exit_start(struct flight_trigger *t)
{
	return flight_trigger_event.start(t);
}

static unsigned int exit_hits(struct flight_trigger *t)
{
	return flight_trigger_event.hits(t);
}

static struct evlist *exit_evlist(struct flight_trigger *t)
{
	return flight_trigger_event.evlist(t);
}

static void exit_stop(struct flight_trigger *t)
{
	flight_trigger_event.stop(t);
}

static void exit_free(struct flight_trigger *t)
{
	flight_trigger_event.free(t);
}

const struct flight_trigger_ops flight_trigger_exit = {
	.name	= "exit",
	.form	= "exit/[comm=NAME][,signal=SEGV|ABRT|KILL|...]/",
	.by_itself = true,
	.parse_terms = exit_parse_terms,
	.start	= exit_start,
	.hits	= exit_hits,
	.evlist	= exit_evlist,
	.stop	= exit_stop,
	.free	= exit_free,
};
