// SPDX-License-Identifier: GPL-2.0
/*
 * Profiles for pprof, and for what reads its format, such as Pyroscope and Parca.
 *
 * Each event has two values: EVENT.samples, the number of its samples, and EVENT,
 * the sum of their periods. A sample of the profile has those of its event; the
 * others are 0. The task is in the labels comm, pid, tid, cpu, cgroup, container
 * and pod_uid, the machine in host and trigger. All of them are strings: readers
 * take a number that is 0 for a label without a value.
 */
#include "format.h"
#include "util/export/pprof.pb-c.h"

#include "base-api.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Fields of the profile */
enum {
	SAMPLE_TYPE		= 1,
	SAMPLE			= 2,
	MAPPING			= 3,
	LOCATION		= 4,
	FUNCTION		= 5,
	STRING_TABLE		= 6,
	PERIOD_TYPE		= 11,
};

#define VALUES		2	/* per event */
#define MAX_LABELS	12

/**
 * struct pprof - state while a profile is written
 * @value_of: by index of the event, the first of its values, or -1
 * @nr_values: number of values of a sample
 * @values: of the sample that is written, all 0 between samples
 * @ids: numbers of its locations
 * @nr_ids: room in @ids
 * @labels: of all samples: host and trigger
 * @nr_labels: number of @labels
 * @first: name of the first event
 */
struct pprof {
	int		*value_of;
	int		nr_values;
	int64_t		*values;
	u64		*ids;
	u32		nr_ids;
	Pprof__Label	labels[2];
	int		nr_labels;
	u32		first;
};

static int set_label(struct export *ex, Pprof__Label *label, const char *key, u32 str)
{
	u32 nr = export_tables__string(&ex->tables, key);

	if (nr == INTERNER_FAILED || str == INTERNER_FAILED)
		return -ENOMEM;
	pprof__label__init(label);
	pb_set(label, key, nr);
	pb_set(label, str, str);
	return 0;
}

static int set_number(struct export *ex, Pprof__Label *label, const char *key, int number)
{
	char buf[16];

	snprintf(buf, sizeof(buf), "%d", number);
	return set_label(ex, label, key, export_tables__string(&ex->tables, buf));
}

static int set_container(struct export *ex, Pprof__Label *labels, u32 cgroup, int *nr)
{
	const struct export_container *c = export__container(ex, cgroup);
	int err = 0;

	if (!c)
		return -ENOMEM;
	if (c->id)
		err = set_label(ex, &labels[(*nr)++], "container", c->id);
	if (!err && c->pod_uid)
		err = set_label(ex, &labels[(*nr)++], "pod_uid", c->pod_uid);
	if (!err && c->name)
		err = set_label(ex, &labels[(*nr)++], "container_name", c->name);
	if (!err && c->pod)
		err = set_label(ex, &labels[(*nr)++], "pod", c->pod);
	if (!err && c->pod_namespace)
		err = set_label(ex, &labels[(*nr)++], "pod_namespace", c->pod_namespace);
	return err;
}

/* Returns the number of labels. */
static int set_labels(struct export *ex, u32 nr, Pprof__Label *labels)
{
	struct export_task task = *export_tables__task_key(&ex->tables, nr);
	int n = 0, err;

	err = set_label(ex, &labels[n++], "comm", export_tables__comm(&ex->tables, nr)) ?:
	      set_number(ex, &labels[n++], "pid", task.pid) ?:
	      set_number(ex, &labels[n++], "tid", task.tid);
	if (!err && task.cpu >= 0)
		err = set_number(ex, &labels[n++], "cpu", task.cpu);
	if (!err && task.cgroup)
		err = set_label(ex, &labels[n++], "cgroup", task.cgroup) ?:
		      set_container(ex, labels, task.cgroup, &n);
	return err ?: n;
}

static int write_sample(struct export *ex, struct pprof *p, u32 nr)
{
	const struct export_hit *hit = export_hits__key(&ex->hits, nr);
	const struct export_sum *sum = &ex->hits.sums[nr];
	const u32 *locations = interner__key(&ex->tables.stacks, hit->stack);
	u32 nr_locations = interner__key_len(&ex->tables.stacks, hit->stack) / sizeof(u32), i;
	Pprof__Label labels[MAX_LABELS], *list[MAX_LABELS];
	Pprof__Sample sample = PPROF__SAMPLE__INIT;
	int value = p->value_of[hit->event], nr_labels, j;

	if (nr_locations > p->nr_ids) {
		free(p->ids);
		p->nr_ids = nr_locations * 2;
		p->ids = calloc(p->nr_ids, sizeof(*p->ids));
		if (!p->ids)
			return -ENOMEM;
	}
	for (i = 0; i < nr_locations; i++)
		p->ids[i] = locations[i];
	nr_labels = set_labels(ex, hit->task, labels);
	if (nr_labels < 0)
		return nr_labels;
	for (j = 0; j < nr_labels; j++)
		list[j] = &labels[j];
	for (j = 0; j < p->nr_labels; j++)
		list[nr_labels++] = &p->labels[j];
	sample.n_location_id = nr_locations;
	sample.location_id = p->ids;
	sample.n_value = p->nr_values;
	sample.value = p->values;
	sample.n_labels = nr_labels;
	sample.labels = list;
	p->values[value] = sum->samples;
	p->values[value + 1] = sum->period;
	pb_out__message(&ex->out, SAMPLE, &sample.base);
	p->values[value] = 0;
	p->values[value + 1] = 0;
	return 0;
}

static int write_value_type(struct export *ex, u32 field, const char *type, const char *unit)
{
	u32 type_nr = export_tables__string(&ex->tables, type);
	u32 unit_nr = export_tables__string(&ex->tables, unit);
	Pprof__ValueType value = PPROF__VALUE_TYPE__INIT;

	if (type_nr == INTERNER_FAILED || unit_nr == INTERNER_FAILED)
		return -ENOMEM;
	pb_set(&value, type, type_nr);
	pb_set(&value, unit, unit_nr);
	pb_out__message(&ex->out, field, &value.base);
	return 0;
}

static const char *unit_of(struct evsel *evsel)
{
	return export__counts_time(evsel) ? "nanoseconds" : "count";
}

static int write_value_types(struct export *ex, struct pprof *p)
{
	struct evlist *evlist = ex->session->evlist;
	struct evsel *evsel, *first = NULL;
	char *name;
	u32 i;
	int err;

	p->value_of = calloc(evlist__nr_entries(evlist) + 1, sizeof(*p->value_of));
	if (!p->value_of)
		return -ENOMEM;
	for (i = 0; i < ex->hits.keys.nr; i++)
		p->value_of[export_hits__key(&ex->hits, i)->event] = 1;
	evlist__for_each_entry(evlist, evsel) {
		if (!p->value_of[evsel->core.idx] && (first || evsel__is_dummy_event(evsel) ||
						      ex->hits.keys.nr))
			continue;
		first = first ?: evsel;
		p->value_of[evsel->core.idx] = p->nr_values;
		p->nr_values += VALUES;
		if (asprintf(&name, "%s.samples", evsel__name(evsel)) < 0)
			return -ENOMEM;
		err = write_value_type(ex, SAMPLE_TYPE, name, "count") ?:
		      write_value_type(ex, SAMPLE_TYPE, evsel__name(evsel), unit_of(evsel));
		free(name);
		if (err)
			return err;
	}
	p->values = calloc(p->nr_values + 1, sizeof(*p->values));
	if (!p->values)
		return -ENOMEM;
	p->first = first ? export_tables__string(&ex->tables, evsel__name(first)) : 0;
	return first ? write_value_type(ex, PERIOD_TYPE, evsel__name(first), unit_of(first)) : 0;
}

static void write_mappings(struct export *ex)
{
	const struct export_tables *t = &ex->tables;
	const struct export_mapping *m;
	u32 i;

	for (i = 1; i < t->mappings.nr; i++) {
		Pprof__Mapping mapping = PPROF__MAPPING__INIT;

		m = export_tables__mapping(t, i);
		pb_set(&mapping, id, i);
		pb_set(&mapping, memory_start, m->start);
		pb_set(&mapping, memory_limit, m->end);
		pb_set(&mapping, file_offset, m->offset);
		pb_set(&mapping, filename, m->file);
		pb_set(&mapping, build_id, m->build_id);
		/* Where there are none, the reader may look for them. */
		if (i < t->nr_with_symbols && t->with_symbols[i])
			pb_set(&mapping, has_functions, true);
		pb_out__message(&ex->out, MAPPING, &mapping.base);
	}
}

static int write_locations(struct export *ex)
{
	const struct export_location *l;
	Pprof__Line *lines, **list;
	u32 i, j;

	for (i = 1; i < ex->tables.locations.nr; i++) {
		Pprof__Location location = PPROF__LOCATION__INIT;

		l = export_tables__location(&ex->tables, i);
		lines = calloc(l->nr_lines + 1, sizeof(*lines));
		list = calloc(l->nr_lines + 1, sizeof(*list));
		if (!lines || !list) {
			free(lines);
			free(list);
			return -ENOMEM;
		}
		for (j = 0; j < l->nr_lines; j++) {
			pprof__line__init(&lines[j]);
			pb_set(&lines[j], function_id, l->lines[j].function);
			if (l->lines[j].line)
				pb_set(&lines[j], line, l->lines[j].line);
			list[j] = &lines[j];
		}
		pb_set(&location, id, i);
		if (l->mapping)
			pb_set(&location, mapping_id, l->mapping);
		pb_set(&location, address, l->address);
		location.n_lines = l->nr_lines;
		location.lines = list;
		pb_out__message(&ex->out, LOCATION, &location.base);
		free(lines);
		free(list);
	}
	return 0;
}

static void write_functions(struct export *ex)
{
	const struct export_function *f;
	u32 i;

	for (i = 1; i < ex->tables.functions.nr; i++) {
		Pprof__Function function = PPROF__FUNCTION__INIT;

		f = export_tables__function(&ex->tables, i);
		pb_set(&function, id, i);
		pb_set(&function, name, f->name);
		pb_set(&function, system_name, f->name);
		if (f->file)
			pb_set(&function, filename, f->file);
		pb_out__message(&ex->out, FUNCTION, &function.base);
	}
}

static int set_origin(struct export *ex, struct pprof *p)
{
	const struct export_origin *o = &ex->origin;
	int err = 0;

	if (o->host)
		err = set_label(ex, &p->labels[p->nr_labels++], "host",
				export_tables__string(&ex->tables, o->host));
	if (!err && o->trigger)
		err = set_label(ex, &p->labels[p->nr_labels++], "trigger",
				export_tables__string(&ex->tables, o->trigger));
	return err;
}

/* The times, and a comment for what has no other place. */
static int write_rest(struct export *ex, struct pprof *p)
{
	Pprof__Profile rest = PPROF__PROFILE__INIT;
	size_t len;
	int64_t comment;
	u8 *buf;

	pb_set(&rest, default_sample_type, p->first);
	if (ex->samples) {
		pb_set(&rest, time_nanos, export__wall_clock(ex, ex->first));
		pb_set(&rest, duration_nanos, ex->last - ex->first);
	}
	if (ex->origin.reason) {
		comment = export_tables__string(&ex->tables, ex->origin.reason);
		if (comment == INTERNER_FAILED)
			return -ENOMEM;
		rest.n_comment = 1;
		rest.comment = &comment;
	}
	len = protobuf_c_message_get_packed_size(&rest.base);
	buf = malloc(len + 1);
	if (!buf)
		return -ENOMEM;
	protobuf_c_message_pack(&rest.base, buf);
	pb_out__raw(&ex->out, buf, len);
	free(buf);
	return 0;
}

static void write_strings(struct export *ex)
{
	u32 i;

	for (i = 0; i < ex->tables.strings.nr; i++)
		pb_out__bytes(&ex->out, STRING_TABLE, interner__key(&ex->tables.strings, i),
			      interner__key_len(&ex->tables.strings, i) - 1);
}

static int write_profile(struct export *ex, struct pprof *p)
{
	u32 i;
	int err;

	err = write_value_types(ex, p) ?: set_origin(ex, p);
	for (i = 0; !err && i < ex->hits.keys.nr; i++)
		err = write_sample(ex, p, i);
	if (err)
		return err;
	write_mappings(ex);
	err = write_locations(ex);
	if (err)
		return err;
	write_functions(ex);
	err = write_rest(ex, p);
	if (err)
		return err;
	/* Last, because all of the above add strings. */
	write_strings(ex);
	return 0;
}

static int pprof__finish(struct export *ex)
{
	struct pprof p = {};
	int err = write_profile(ex, &p);

	free(p.value_of);
	free(p.values);
	free(p.ids);
	return err;
}

const struct export_format export_pprof = {
	.name	= "pprof",
	.sample	= export_hits__sample,
	.finish	= pprof__finish,
};
