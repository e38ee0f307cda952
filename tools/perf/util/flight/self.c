// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder does not record itself
 *
 * Recording with -a includes the recorder. On an idle machine most records would be of its
 * own system calls. Two measures avoid this:
 *
 *	The recorder waits until a buffer is half full, however much its last pass has
 *	found. Otherwise the records of each pass would cause the next one.
 *
 *	A filter of the event omits tracepoints that a thread of the recorder hits. In a
 *	persistent session, which has other readers, these records are dropped when they
 *	are read.
 *
 * A tracepoint in an interrupt of the recorder is kept: it is not caused by the recorder.
 * The scheduler's tracepoints are kept, because they describe other tasks as well: without
 * the switch from the recorder to a task, that task would seem to wait. Samples of clocks and
 * counters are kept. Their number is proportional to the CPU time of the recorder.
 *
 * Tracepoints have the pid of the initial pid namespace. A recorder in another one does not
 * know this pid of its own, and records itself. The samples of a session have the pid of the
 * namespace of its creator. The recorder assumes that this is the initial one.
 *
 * The manifest states the method, and the number of samples of the recorder in a dump.
 */
#include "self.h"
#include "child.h"
#include "options.h"
#include "../base-api.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../sample.h"
#include "../record.h"
#include "../target.h"

#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* PROC_PID_INIT_INO of the kernel. */
#define INITIAL_PID_NAMESPACE	0xeffffffcU

/* Of common_flags: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ and TRACE_FLAG_NMI. */
#define INTERRUPT_FLAGS		0x58

/**
 * flight_self__knows_pids - are the pids of this process those of the kernel?
 */
bool flight_self__knows_pids(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == INITIAL_PID_NAMESPACE;
}

/* The filter of an event of ftrace: names functions, and has no other fields. */
static bool is_own_doing(struct evsel *evsel)
{
	const char *name = evsel__name(evsel);

	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT && !strstarts(name, "sched:") &&
	       !strstarts(name, "ftrace:");
}

/* The pid of a tracepoint is that of a thread. Return: the filter, to be freed, or NULL. */
static char *format_filter(pid_t pid, const pid_t *tids, int nr)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "(common_pid != %d", pid);
	for (int i = 0; i < nr; i++)
		fprintf(f, " && common_pid != %d", tids[i]);
	fprintf(f, ") || common_flags & %d", INTERRUPT_FLAGS);
	if (fclose(f))
		zfree(&text);
	return text;
}

static int filter(struct evlist *evlist, pid_t pid, const pid_t *tids, int nr)
{
	char *text = format_filter(pid, tids, nr);
	struct evsel *evsel;
	int err = text ? 0 : -ENOMEM;

	evlist__for_each_entry(evlist, evsel) {
		if (is_own_doing(evsel))
			err = err ?: evsel__append_tp_filter(evsel, text);
	}
	free(text);
	return err ? -ENOMEM : 0;
}

/**
 * flight_self__init - leave the recorder out of what is recorded
 * @self: returns what is done
 * @fo: the options of the flight recorder
 * @evlist: the events, before they are opened unless they are those of a session
 * @tids: further threads of the recorder
 * @nr: how many
 *
 * Return: 0 or a negative errno.
 */
int flight_self__init(struct flight_self *self, const struct flight_opts *fo,
		      struct evlist *evlist, const pid_t *tids, int nr)
{
	struct target *target = &fo->record->target;

	*self = (struct flight_self) { .pid = getpid() };
	if (fo->record_self)
		self->way = "recorded";
	else if (fo->persistent)
		self->way = flight_self__knows_pids() ? "dropped" : "recorded";
	else if (!target__has_cpu(target) && (!fo->user || target->tid))
		self->way = "outside";
	else
		self->way = flight_self__knows_pids() ? "filtered" : "recorded";
	return strcmp(self->way, "filtered") ? 0 : filter(evlist, self->pid, tids, nr);
}

/**
 * flight_self__end - end what the recorder has started for itself
 * @self: the recorder
 *
 * perf record waits for its workload next, by wait().
 */
void flight_self__end(struct flight_self *self)
{
	if (self->keeper)
		flight_child__kill(self->keeper);
	self->keeper = 0;
}

static bool is_in_interrupt(const struct perf_sample *sample)
{
	/* struct trace_entry: type, flags, preempt_count, pid */
	const u8 *entry = sample->raw_data;

	return entry && sample->raw_size > 2 && entry[2] & INTERRUPT_FLAGS;
}

static bool is_own(struct flight_self *self, struct evlist *evlist, union perf_event *event)
{
	struct evsel *evsel = evlist__event2evsel(evlist, event);
	struct perf_sample sample;
	bool own;
	u32 pid;

	if (evsel && evsel != self->last) {
		self->last = evsel;
		sample_layout__init(&self->layout, &evsel->core.attr, /*swapped=*/false);
	}
	if (!evsel || !sample_layout__pid(&self->layout, event, &pid) || !pid ||
	    ((pid_t)pid != self->pid && (pid_t)pid != self->keeper))
		return false;
	perf_sample__init(&sample, /*all=*/true);
	own = is_own_doing(evsel) && !evsel__parse_sample(evsel, event, &sample) &&
	      !is_in_interrupt(&sample);
	perf_sample__exit(&sample);
	return own;
}

/**
 * flight_self__drop - drop what the recorder itself has caused in a session
 * @self: what is done
 * @evlist: the events of the session
 * @buf: whole records
 * @size: bytes of them
 *
 * Return: how many bytes are left. They are moved to the beginning of @buf.
 */
size_t flight_self__drop(struct flight_self *self, struct evlist *evlist, void *buf, size_t size)
{
	size_t from = 0, to = 0, len;

	if (strcmp(self->way, "dropped"))
		return size;
	for (; from < size; from += len) {
		union perf_event *event = buf + from;

		len = event->header.size;
		if (event->header.type == PERF_RECORD_SAMPLE && is_own(self, evlist, event)) {
			self->dropped++;
			continue;
		}
		if (to != from)
			memmove(buf + to, event, len);
		to += len;
	}
	return to;
}
