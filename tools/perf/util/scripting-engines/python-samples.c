// SPDX-License-Identifier: GPL-2.0
/*
 * Samples for scripts that count them.
 *
 * process_event() gets a dictionary of some thirty items, and two more for each frame of the
 * call chain. To make them takes several times as long as to resolve the call chain. A script
 * that has all of these functions gets numbers instead:
 *
 *	callchain_node(caller, name, dso)
 *		Return the number of a function that is called by the node @caller, 0 if it is
 *		the outermost one. @name is None if there is no symbol, @dso if there is no
 *		map. The call chain of a sample is the number of its last node, also as
 *		'callchain' in the dictionaries of tracepoints.
 *	sample_event(name, attr)
 *		Return the number of an event. It is called once for each.
 *	process_sample(time, cpu, pid, tid, comm, event, callchain, cgroup)
 *		A sample of an event that is no tracepoint, instead of process_event().
 *
 * With two more functions, it gets the samples of tracepoints in the same way:
 *
 *	tracepoint_fields(event)
 *		Return the names of the fields that the script reads. It is called once for each
 *		tracepoint.
 *	process_tracepoint(time, cpu, pid, tid, comm, event, callchain, cgroup, fields)
 *		A sample of a tracepoint, instead of the function with its name or
 *		trace_unhandled(). @fields has a number or a text for each name, or None.
 *
 * Tasks that have exited are kept, as perf report does: the last samples of a task come after the
 * record of its exit, and could not be resolved otherwise.
 *
 * The numbers of nodes are kept in a table in which a node can take the place of another one;
 * then the script is asked again. Symbols can be freed: a node is the same only if its name is.
 */
#include "python-samples.h"

#include "../addr_location.h"
#include "../base-api.h"
#include "../callchain.h"
#include "../cgroup.h"
#include "../dso.h"
#include "../evsel.h"
#include "../map.h"
#include "../sample.h"
#include "../symbol.h"
#include "../thread.h"
#include "../tp-field.h"
#include "../trace-event.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_LIBTRACEEVENT
#include <traceevent/event-parse.h>
#endif

#define NODE_BITS	16
#define MOST_FRAMES	1024
#define MOST_FIELD	256

struct node {
	const struct symbol	*sym;
	const struct dso	*dso;
	char			*name;
	unsigned long		caller;
	unsigned long		number;
	bool			known;
};

/* @fields: those of a tracepoint that the script reads; NULL where it has none of that name */
struct event {
	PyObject			*number;
	const struct tep_format_field	**fields;
	Py_ssize_t			nr_fields;
};

static struct {
	bool		asked;
	PyObject	*node;
	PyObject	*event;
	PyObject	*sample;
	PyObject	*fields;
	PyObject	*tracepoint;
	struct node	*nodes;
	struct event	*events;
	int		nr_events;
} script;

static PyObject *find(PyObject *dict, const char *name)
{
	PyObject *function = PyDict_GetItemString(dict, name);

	return function && PyCallable_Check(function) ? function : NULL;
}

static bool is_wanted(PyObject *dict)
{
	if (!script.asked) {
		script.asked = true;
		script.node = find(dict, "callchain_node");
		script.event = find(dict, "sample_event");
		script.sample = find(dict, "process_sample");
		script.fields = find(dict, "tracepoint_fields");
		script.tracepoint = find(dict, "process_tracepoint");
		if (script.node && script.event && script.sample)
			script.nodes = calloc(1U << NODE_BITS, sizeof(*script.nodes));
		if (script.nodes)
			symbol_conf.keep_exited_threads = true;
	}
	return script.nodes;
}

/* Takes the reference of @args */
static PyObject *call(PyObject *function, PyObject *args)
{
	PyObject *value = args ? PyObject_CallObject(function, args) : NULL;

	if (!value) {
		PyErr_Print();
		Py_FatalError("problem in Python trace event handler");
	}
	Py_DECREF(args);
	return value;
}

static PyObject *text(const char *value)
{
	if (!value)
		Py_RETURN_NONE;
	return PyUnicode_DecodeUTF8(value, strlen(value), "replace");
}

static unsigned long ask_number(unsigned long caller, const char *name, const char *dso)
{
	PyObject *value = call(script.node,
			       Py_BuildValue("(kNN)", caller, text(name), text(dso)));
	unsigned long number = PyLong_AsUnsignedLong(value);

	Py_DECREF(value);
	if (number == (unsigned long)-1)
		Py_FatalError("callchain_node() must return a number");
	return number;
}

static const char *dso_name(const struct map_symbol *ms, bool caller)
{
	const struct dso *dso = ms->map ? map__dso(ms->map) : NULL;

	if (!dso)
		return ms->map ? "[unknown]" : NULL;
	if (caller && symbol_conf.show_kernel_path && dso__long_name(dso))
		return dso__long_name(dso);
	return dso__name(dso);
}

static unsigned long number_of(unsigned long caller, const struct map_symbol *ms, bool whole)
{
	const struct dso *dso = ms->map ? map__dso(ms->map) : NULL;
	const char *name = ms->sym ? ms->sym->name : NULL;
	u64 key = ((u64)(uintptr_t)ms->sym >> 3) * 31 + ((u64)(uintptr_t)dso >> 4) * 17 + caller;
	struct node *n = &script.nodes[key * 11400714819323198485llu >> (64 - NODE_BITS)];

	if (n->known && n->sym == ms->sym && n->dso == dso && n->caller == caller &&
	    (!name || !strcmp(n->name, name)))
		return n->number;
	free(n->name);
	*n = (struct node){
		.sym	= ms->sym,
		.dso	= dso,
		.name	= name ? strdup(name) : NULL,
		.caller	= caller,
		.number	= ask_number(caller, name, dso_name(ms, whole)),
	};
	n->known = n->name || !name;
	return n->number;
}

static unsigned long read_chain(struct perf_sample *sample, struct evsel *evsel,
				struct addr_location *al)
{
	const struct map_symbol *frames[MOST_FRAMES], at = { .map = al->map, .sym = al->sym };
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	struct callchain_cursor_node *node;
	unsigned long number = 0;
	int nr = 0;

	if (symbol_conf.use_callchain && sample->callchain && cursor &&
	    !thread__chain(al->thread, cursor, evsel, sample, scripting_max_stack)) {
		callchain_cursor_commit(cursor);
		while (nr < MOST_FRAMES && (node = callchain_cursor_current(cursor))) {
			frames[nr++] = &node->ms;
			callchain_cursor_advance(cursor);
		}
	}
	if (!nr)
		return number_of(0, &at, false);
	while (nr--)
		number = number_of(number, frames[nr], true);
	return number;
}

/**
 * python_samples__callchain - the number of a call chain
 * @dict: what the script defines
 * @sample: the sample
 * @evsel: of the sample
 * @al: where it was taken
 *
 * Return: a new reference, or NULL if the script does not ask for numbers.
 */
PyObject *python_samples__callchain(PyObject *dict, struct perf_sample *sample,
				    struct evsel *evsel, struct addr_location *al)
{
	return is_wanted(dict) ? PyLong_FromUnsignedLong(read_chain(sample, evsel, al)) : NULL;
}

static struct event *event_of(struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	int idx = evsel->core.idx;

	if (idx >= script.nr_events) {
		struct event *events = reallocarray(script.events, idx + 1, sizeof(*events));

		if (!events)
			Py_FatalError("couldn't keep the numbers of events");
		memset(events + script.nr_events, 0,
		       (idx + 1 - script.nr_events) * sizeof(*events));
		script.events = events;
		script.nr_events = idx + 1;
	}
	if (!script.events[idx].number)
		script.events[idx].number =
			call(script.event,
			     Py_BuildValue("(NN)", text(evsel__name(evsel)),
					   PyBytes_FromStringAndSize((const char *)attr,
								     sizeof(*attr))));
	return &script.events[idx];
}

static const char *cgroup_of(const struct perf_sample *sample, struct evsel *evsel)
{
	struct cgroup *cgroup;

	if (!(evsel->core.attr.sample_type & PERF_SAMPLE_CGROUP))
		return "";
	cgroup = cgroup__find(evsel__env(evsel), sample->cgroup);
	return cgroup ? cgroup->name : "unknown";
}

/* What process_sample() gets, in a tuple of @size */
static PyObject *arguments(struct perf_sample *sample, struct evsel *evsel,
			   struct addr_location *al, const struct event *event, int size)
{
	PyObject *args = PyTuple_New(size);

	if (!args)
		Py_FatalError("couldn't create Python tuple");
	Py_INCREF(event->number);
	PyTuple_SET_ITEM(args, 0, PyLong_FromUnsignedLongLong(sample->time));
	PyTuple_SET_ITEM(args, 1, PyLong_FromLong((s32)sample->cpu));
	PyTuple_SET_ITEM(args, 2, PyLong_FromLong((s32)sample->pid));
	PyTuple_SET_ITEM(args, 3, PyLong_FromLong((s32)sample->tid));
	PyTuple_SET_ITEM(args, 4, text(thread__comm_str(al->thread)));
	PyTuple_SET_ITEM(args, 5, event->number);
	PyTuple_SET_ITEM(args, 6, PyLong_FromUnsignedLong(read_chain(sample, evsel, al)));
	PyTuple_SET_ITEM(args, 7, text(cgroup_of(sample, evsel)));
	return args;
}

/**
 * python_samples__process - give a sample to the script
 * @dict: what the script defines
 * @sample: the sample, of an event that is no tracepoint
 * @evsel: of the sample
 * @al: where it was taken
 *
 * Return: false if the script does not ask for numbers.
 */
bool python_samples__process(PyObject *dict, struct perf_sample *sample, struct evsel *evsel,
			     struct addr_location *al)
{
	if (!is_wanted(dict))
		return false;
	Py_DECREF(call(script.sample, arguments(sample, evsel, al, event_of(evsel), 8)));
	return true;
}

#ifdef HAVE_LIBTRACEEVENT
static void find_fields(struct event *event, struct evsel *evsel)
{
	PyObject *names = call(script.fields, Py_BuildValue("(O)", event->number));
	PyObject *all = PySequence_Tuple(names);
	Py_ssize_t i, nr = all ? PyTuple_GET_SIZE(all) : 0;

	/* One more, so that it is known to have been asked for. */
	event->fields = calloc(nr + 1, sizeof(*event->fields));
	if (!all || !event->fields)
		Py_FatalError("tracepoint_fields() must return names");
	for (i = 0; i < nr; i++) {
		const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(all, i));

		if (!name)
			Py_FatalError("tracepoint_fields() must return names");
		event->fields[i] = tp_field__find(evsel, name);
	}
	event->nr_fields = nr;
	Py_DECREF(all);
	Py_DECREF(names);
}

static PyObject *value_of(const struct evsel *evsel, const struct perf_sample *sample,
			  const struct tep_format_field *field)
{
	char value[MOST_FIELD];
	u64 number;

	if (field && field->flags & TEP_FIELD_IS_ARRAY) {
		if (tp_field__text(evsel, sample, field, value, sizeof(value)))
			return text(value);
	} else if (tp_field__number(evsel, sample, field, &number)) {
		return field->flags & TEP_FIELD_IS_SIGNED ? PyLong_FromLongLong(number) :
							    PyLong_FromUnsignedLongLong(number);
	}
	Py_RETURN_NONE;
}

/**
 * python_samples__tracepoint - give a sample of a tracepoint to the script
 * @dict: what the script defines
 * @sample: the sample
 * @evsel: the tracepoint
 * @al: where it was taken
 *
 * Return: false if the script does not ask for numbers of tracepoints.
 */
bool python_samples__tracepoint(PyObject *dict, struct perf_sample *sample, struct evsel *evsel,
				struct addr_location *al)
{
	PyObject *args, *fields;
	struct event *event;
	Py_ssize_t i;

	if (!is_wanted(dict) || !script.fields || !script.tracepoint)
		return false;
	event = event_of(evsel);
	if (!event->fields)
		find_fields(event, evsel);
	fields = PyTuple_New(event->nr_fields);
	if (!fields)
		Py_FatalError("couldn't create Python tuple");
	for (i = 0; i < event->nr_fields; i++)
		PyTuple_SET_ITEM(fields, i, value_of(evsel, sample, event->fields[i]));
	args = arguments(sample, evsel, al, event, 9);
	PyTuple_SET_ITEM(args, 8, fields);
	Py_DECREF(call(script.tracepoint, args));
	return true;
}
#endif
