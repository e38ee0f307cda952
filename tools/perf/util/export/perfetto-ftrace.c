// SPDX-License-Identifier: GPL-2.0
/*
 * Tracepoints and context switches as the ftrace events of Perfetto.
 *
 * Perfetto draws the tracks of CPUs and threads from sched_switch, sched_waking and
 * sched_wakeup, which have messages of their own. All other tracepoints are generic
 * events: a name, and fields.
 */
#include "perfetto.h"
#include "redact.h"

#include "evlist.h"
#include "evsel.h"
#include "session.h"
#include "tp-field.h"
#include "util/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_LIBTRACEEVENT
#include <traceevent/event-parse.h>
#endif

#define MAX_TEXT	256
#define MAX_FIELDS	32
#define TASK_INTERRUPTIBLE	1

static void write_event(struct export *ex, u32 cpu, Perfetto__FtraceEvent *event)
{
	Perfetto__FtraceEventBundle bundle = PERFETTO__FTRACE_EVENT_BUNDLE__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	pb_set(&bundle, cpu, cpu);
	bundle.n_event = 1;
	bundle.event = &event;
	packet.ftrace_events = &bundle;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_SYSTEM, &packet);
}

/**
 * perfetto__write_switch - write a record of a context switch
 * @ex: the conversion
 * @sw: the switch
 *
 * The record does not tell what a task waits for: it is shown as sleeping.
 *
 * Return: 0, or -ENOMEM.
 */
int perfetto__write_switch(struct export *ex, const struct export_switch *sw)
{
	Perfetto__FtraceEvent event = PERFETTO__FTRACE_EVENT__INIT;
	Perfetto__SchedSwitch s = PERFETTO__SCHED_SWITCH__INIT;
	u32 prev = export_tables__string(&ex->tables, sw->prev_comm);
	u32 next = export_tables__string(&ex->tables, sw->next_comm);

	if (prev == INTERNER_FAILED || next == INTERNER_FAILED)
		return -ENOMEM;
	s.prev_comm = (char *)export_tables__str(&ex->tables, prev);
	s.next_comm = (char *)export_tables__str(&ex->tables, next);
	pb_set(&s, prev_pid, sw->prev_tid);
	pb_set(&s, prev_state, sw->preempted || !sw->prev_tid ? 0 : TASK_INTERRUPTIBLE);
	pb_set(&s, next_pid, sw->next_tid);
	pb_set(&event, timestamp, sw->time);
	pb_set(&event, pid, sw->prev_tid);
	event.sched_switch = &s;
	write_event(ex, sw->cpu, &event);
	return 0;
}

#ifdef HAVE_LIBTRACEEVENT

static bool is_sched(const struct evsel *evsel, const char *name)
{
	return tp_field__is_of(evsel, "sched", name);
}

static bool field_text(const struct export *ex, struct evsel *evsel,
		       const struct perf_sample *sample, const struct tep_format_field *field,
		       char text[MAX_TEXT])
{
	if (!tp_field__text(evsel, sample, field, text, MAX_TEXT))
		return false;
	export_clean_utf8(text);
	if (ex->redact & EXPORT_REDACT_HOME)
		export_redact__home(text);
	return true;
}

static s64 number_of(struct evsel *evsel, const struct perf_sample *sample, const char *name)
{
	u64 number = 0;

	return tp_field__number(evsel, sample, tp_field__find(evsel, name), &number) ?
		(s64)number : 0;
}

static char *text_of(const struct export *ex, struct evsel *evsel,
		     const struct perf_sample *sample, const char *name, char *text)
{
	if (!field_text(ex, evsel, sample, tp_field__find(evsel, name), text))
		text[0] = '\0';
	return text;
}

static void set_sched_switch(const struct export *ex, struct evsel *evsel,
			     const struct perf_sample *sample, Perfetto__SchedSwitch *s,
			     char text[2][MAX_TEXT])
{
	perfetto__sched_switch__init(s);
	s->prev_comm = text_of(ex, evsel, sample, "prev_comm", text[0]);
	s->next_comm = text_of(ex, evsel, sample, "next_comm", text[1]);
	pb_set(s, prev_pid, number_of(evsel, sample, "prev_pid"));
	pb_set(s, prev_prio, number_of(evsel, sample, "prev_prio"));
	pb_set(s, prev_state, number_of(evsel, sample, "prev_state"));
	pb_set(s, next_pid, number_of(evsel, sample, "next_pid"));
	pb_set(s, next_prio, number_of(evsel, sample, "next_prio"));
}

static void set_wakeup(const struct export *ex, struct evsel *evsel,
		       const struct perf_sample *sample, Perfetto__SchedWakeup *w, char *text)
{
	perfetto__sched_wakeup__init(w);
	w->comm = text_of(ex, evsel, sample, "comm", text);
	pb_set(w, pid, number_of(evsel, sample, "pid"));
	pb_set(w, prio, number_of(evsel, sample, "prio"));
	pb_set(w, target_cpu, number_of(evsel, sample, "target_cpu"));
}

static void write_generic(struct export *ex, struct evsel *evsel, struct perf_sample *sample,
			  Perfetto__FtraceEvent *event)
{
	Perfetto__GenericEvent generic = PERFETTO__GENERIC_EVENT__INIT;
	Perfetto__GenericField fields[MAX_FIELDS], *list[MAX_FIELDS];
	const struct tep_format_field *field = evsel->tp_format->format.fields;
	char texts[MAX_FIELDS][MAX_TEXT];
	u64 number;
	size_t n = 0;

	if (ex->redact & EXPORT_REDACT_ARGS)
		field = NULL;
	for (; field && n < MAX_FIELDS; field = field->next) {
		perfetto__generic_field__init(&fields[n]);
		if (field->flags & TEP_FIELD_IS_STRING) {
			if (!field_text(ex, evsel, sample, field, texts[n]))
				continue;
			fields[n].value_case = PERFETTO__GENERIC_FIELD__VALUE_STR_VALUE;
			fields[n].str_value = texts[n];
		} else if (field->flags & TEP_FIELD_IS_ARRAY ||
			   !tp_field__number(evsel, sample, field, &number)) {
			continue;
		} else if (field->flags & TEP_FIELD_IS_SIGNED) {
			fields[n].value_case = PERFETTO__GENERIC_FIELD__VALUE_INT_VALUE;
			fields[n].int_value = number;
		} else {
			fields[n].value_case = PERFETTO__GENERIC_FIELD__VALUE_UINT_VALUE;
			fields[n].uint_value = number;
		}
		export_clean_utf8(field->name);
		fields[n].name = field->name;
		list[n] = &fields[n];
		n++;
	}
	export_clean_utf8(evsel->tp_format->name);
	generic.event_name = evsel->tp_format->name;
	generic.n_field = n;
	generic.field = list;
	event->generic = &generic;
	write_event(ex, sample->cpu, event);
}

/**
 * perfetto__write_tracepoint - write a sample of a tracepoint
 * @ex: the conversion
 * @evsel: the tracepoint
 * @sample: the sample; without a CPU or data it is left out
 *
 * Return: 0.
 */
int perfetto__write_tracepoint(struct export *ex, struct evsel *evsel,
			       struct perf_sample *sample)
{
	Perfetto__FtraceEvent event = PERFETTO__FTRACE_EVENT__INIT;
	Perfetto__SchedSwitch sched_switch;
	Perfetto__SchedWakeup wakeup;
	char text[2][MAX_TEXT];

	if (!evsel->tp_format || !sample->raw_data || sample->cpu == (u32)-1)
		return 0;
	pb_set(&event, timestamp, sample->time);
	pb_set(&event, pid, sample->tid);
	if (is_sched(evsel, "sched_switch")) {
		set_sched_switch(ex, evsel, sample, &sched_switch, text);
		event.sched_switch = &sched_switch;
	} else if (is_sched(evsel, "sched_waking")) {
		set_wakeup(ex, evsel, sample, &wakeup, text[0]);
		event.sched_waking = &wakeup;
	} else if (is_sched(evsel, "sched_wakeup")) {
		set_wakeup(ex, evsel, sample, &wakeup, text[0]);
		event.sched_wakeup = &wakeup;
	} else {
		write_generic(ex, evsel, sample, &event);
		return 0;
	}
	write_event(ex, sample->cpu, &event);
	return 0;
}

/**
 * perfetto__has_sched_switch - whether the recording has the tracepoint
 * @ex: the conversion
 */
bool perfetto__has_sched_switch(struct export *ex)
{
	struct evsel *evsel;

	evlist__for_each_entry(ex->session->evlist, evsel) {
		if (is_sched(evsel, "sched_switch"))
			return true;
	}
	return false;
}

#else /* HAVE_LIBTRACEEVENT */

int perfetto__write_tracepoint(struct export *ex __maybe_unused,
			       struct evsel *evsel __maybe_unused,
			       struct perf_sample *sample __maybe_unused)
{
	return 0;
}

bool perfetto__has_sched_switch(struct export *ex __maybe_unused)
{
	return false;
}

#endif /* HAVE_LIBTRACEEVENT */
