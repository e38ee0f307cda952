// SPDX-License-Identifier: GPL-2.0
/*
 * Profiles for OpenTelemetry.
 *
 * The protocol for profiles is v1development: its makers call it alpha, and change
 * it. What is written is ProfilesData as of release 1.9. ExportProfilesServiceRequest,
 * which collectors take, has the same fields.
 *
 * For each event there are two profiles: EVENT.samples counts its samples, and EVENT
 * sums up their periods. The task is in attributes of the samples, the machine and
 * the trigger in those of the resource. Entry 0 of each table of the dictionary is
 * empty, as the protocol wants it; the tables of tables.c have such an entry, too.
 */
#include "format.h"
#include "util/export/otlp.pb-c.h"

#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Fields of ProfilesData, ResourceProfiles, ScopeProfiles, Profile, ProfilesDictionary */
enum {
	DATA_RESOURCE_PROFILES	= 1,
	DATA_DICTIONARY		= 2,
	RESOURCE_RESOURCE	= 1,
	RESOURCE_SCOPE_PROFILES	= 2,
	SCOPE_SCOPE		= 1,
	SCOPE_PROFILES		= 2,
	PROFILE_SAMPLES		= 2,
	DICT_MAPPING_TABLE	= 1,
	DICT_LOCATION_TABLE	= 2,
	DICT_FUNCTION_TABLE	= 3,
	DICT_LINK_TABLE		= 4,
	DICT_STRING_TABLE	= 5,
	DICT_ATTRIBUTE_TABLE	= 6,
	DICT_STACK_TABLE	= 7,
};

#define MAX_ATTRIBUTES	10

/**
 * struct otlp_attribute - key of an attribute
 * @key: string
 * @is_text: whether @value is a string
 * @value: number or string
 */
struct otlp_attribute {
	u32	key;
	u32	is_text;
	s64	value;
};

/**
 * struct otlp_task - attributes of a task
 * @attributes: numbers
 * @nr: of @attributes
 */
struct otlp_task {
	int32_t	attributes[MAX_ATTRIBUTES];
	int	nr;
};

/**
 * struct otlp - state while profiles are written
 * @ex: the conversion
 * @attributes: of struct otlp_attribute
 * @tasks: by number
 * @build_ids: by mapping, number of the attribute, or 0
 * @kernel: number of the attribute of frames of the kernel
 * @native: number of the attribute of other frames
 * @indices: numbers of locations of a stack
 * @nr_indices: room in @indices
 * @evsel: event of the profile that is written
 * @periods: its values are periods
 * @err: first error
 */
struct otlp {
	struct export		*ex;
	struct interner		attributes;
	struct otlp_task	*tasks;
	int32_t			*build_ids;
	int32_t			kernel;
	int32_t			native;
	int32_t			*indices;
	u32			nr_indices;
	struct evsel		*evsel;
	bool			periods;
	int			err;
};

/* Numbers of the tables fit into int32 as long as the memory of a machine is finite. */
static int32_t add_string(struct otlp *o, const char *s)
{
	u32 nr = export_tables__string(&o->ex->tables, s);

	if (nr != INTERNER_FAILED)
		return nr;
	o->err = -ENOMEM;
	return 0;
}

static int32_t add_attribute(struct otlp *o, const char *key, bool is_text, s64 value)
{
	struct otlp_attribute attribute = {
		.key		= add_string(o, key),
		.is_text	= is_text,
		.value		= value,
	};
	u32 nr = interner__add(&o->attributes, &attribute, sizeof(attribute), NULL);

	if (nr != INTERNER_FAILED)
		return nr;
	o->err = -ENOMEM;
	return 0;
}

static void set_text(struct otlp *o, struct otlp_task *t, const char *key, u32 text)
{
	if (text)
		t->attributes[t->nr++] = add_attribute(o, key, true, text);
}

static void set_container(struct otlp *o, struct otlp_task *t, u32 cgroup)
{
	const struct export_container *c = export__container(o->ex, cgroup);

	if (!c) {
		o->err = -ENOMEM;
		return;
	}
	set_text(o, t, "container.id", c->id);
	set_text(o, t, "container.name", c->name);
	set_text(o, t, "k8s.pod.uid", c->pod_uid);
	set_text(o, t, "k8s.pod.name", c->pod);
	set_text(o, t, "k8s.namespace.name", c->pod_namespace);
}

static void set_task(struct otlp *o, u32 nr)
{
	const struct export_task *task = export_tables__task_key(&o->ex->tables, nr);
	u32 comm = export_tables__comm(&o->ex->tables, nr);
	struct otlp_task *t = &o->tasks[nr];

	if (comm == INTERNER_FAILED) {
		o->err = -ENOMEM;
		return;
	}
	t->attributes[t->nr++] = add_attribute(o, "thread.name", true, comm);
	t->attributes[t->nr++] = add_attribute(o, "process.pid", false, task->pid);
	t->attributes[t->nr++] = add_attribute(o, "thread.id", false, task->tid);
	if (task->cpu >= 0)
		t->attributes[t->nr++] = add_attribute(o, "cpu.logical_number", false, task->cpu);
	set_text(o, t, "linux.cgroup", task->cgroup);
	if (task->cgroup)
		set_container(o, t, task->cgroup);
}

/* Everything that has a number gets it before the first byte is written. */
static void number_all(struct otlp *o)
{
	struct export_tables *t = &o->ex->tables;
	struct otlp_attribute none = {};
	u32 i, build_id;

	o->tasks = calloc(t->tasks.nr + 1, sizeof(*o->tasks));
	o->build_ids = calloc(t->mappings.nr, sizeof(*o->build_ids));
	if (!o->tasks || !o->build_ids ||
	    interner__add(&o->attributes, &none, sizeof(none), NULL) == INTERNER_FAILED) {
		o->err = -ENOMEM;
		return;
	}
	o->kernel = add_attribute(o, "profile.frame.type", true, add_string(o, "kernel"));
	o->native = add_attribute(o, "profile.frame.type", true, add_string(o, "native"));
	for (i = 0; i < t->tasks.nr && !o->err; i++)
		set_task(o, i);
	for (i = 1; i < t->mappings.nr && !o->err; i++) {
		build_id = export_tables__mapping(t, i)->build_id;
		if (build_id)
			o->build_ids[i] = add_attribute(o, "process.executable.build_id.gnu",
							true, build_id);
	}
}

/* A field that contains what fn writes: count, then write. */
static void nest(struct otlp *o, u32 field, void (*fn)(struct otlp *o))
{
	struct pb_out *out = &o->ex->out;
	bool counting = out->counting;
	u64 before = out->bytes, len;

	out->counting = true;
	fn(o);
	len = out->bytes - before;
	out->bytes = before;
	out->counting = counting;
	pb_out__header(out, field, len);
	if (counting)
		out->bytes += len;
	else
		fn(o);
}

static void set_value(struct otlp *o, Otlp__AnyValue *value, bool is_text, s64 number)
{
	otlp__any_value__init(value);
	if (is_text) {
		value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		value->string_value = (char *)export_tables__str(&o->ex->tables, number);
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = number;
	}
}

static void write_sample(struct otlp *o, u32 nr)
{
	const struct export_hit *hit = export_hits__key(&o->ex->hits, nr);
	const struct export_sum *sum = &o->ex->hits.sums[nr];
	struct otlp_task *task = &o->tasks[hit->task];
	int64_t value = o->periods ? sum->period : sum->samples;
	Otlp__Sample sample = OTLP__SAMPLE__INIT;

	pb_set(&sample, stack_index, hit->stack);
	sample.n_attribute_indices = task->nr;
	sample.attribute_indices = task->attributes;
	sample.n_values = 1;
	sample.values = &value;
	pb_out__message(&o->ex->out, PROFILE_SAMPLES, &sample.base);
}

static void write_profile(struct otlp *o)
{
	bool time = o->periods && export__counts_time(o->evsel);
	Otlp__ValueType type = OTLP__VALUE_TYPE__INIT;
	Otlp__Profile rest = OTLP__PROFILE__INIT;
	struct export *ex = o->ex;
	char *name;
	size_t len;
	u8 *buf;
	u32 i;

	for (i = 0; i < ex->hits.keys.nr; i++) {
		if (export_hits__key(&ex->hits, i)->event == (u32)o->evsel->core.idx)
			write_sample(o, i);
	}
	if (asprintf(&name, "%s%s", evsel__name(o->evsel), o->periods ? "" : ".samples") < 0) {
		o->err = -ENOMEM;
		return;
	}
	pb_set(&type, type_strindex, add_string(o, name));
	pb_set(&type, unit_strindex, add_string(o, time ? "nanoseconds" : "count"));
	free(name);
	rest.sample_type = &type;
	pb_set(&rest, time_unix_nano, export__wall_clock(ex, ex->first));
	pb_set(&rest, duration_nano, ex->last - ex->first);
	len = protobuf_c_message_get_packed_size(&rest.base);
	buf = malloc(len);
	if (!buf) {
		o->err = -ENOMEM;
		return;
	}
	protobuf_c_message_pack(&rest.base, buf);
	pb_out__raw(&ex->out, buf, len);
	free(buf);
}

static bool has_hits(struct otlp *o, struct evsel *evsel)
{
	u32 i;

	for (i = 0; i < o->ex->hits.keys.nr; i++) {
		if (export_hits__key(&o->ex->hits, i)->event == (u32)evsel->core.idx)
			return true;
	}
	return false;
}

static void write_scope(struct otlp *o)
{
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	struct evsel *evsel;

	scope.name = (char *)"perf";
	scope.version = o->ex->session->header.env.version;
	if (scope.version)
		export_clean_utf8(scope.version);
	pb_out__message(&o->ex->out, SCOPE_SCOPE, &scope.base);
	evlist__for_each_entry(o->ex->session->evlist, evsel) {
		if (!has_hits(o, evsel))
			continue;
		o->evsel = evsel;
		o->periods = true;
		nest(o, SCOPE_PROFILES, write_profile);
		o->periods = false;
		nest(o, SCOPE_PROFILES, write_profile);
	}
}

static void write_resource(struct otlp *o)
{
	const struct export_origin *origin = &o->ex->origin;
	const char *const text[][2] = {
		{ "host.name", origin->host },
		{ "perf.trigger", origin->trigger },
		{ "perf.trigger.reason", origin->reason },
	};
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__KeyValue pairs[ARRAY_SIZE(text)], *list[ARRAY_SIZE(text)];
	Otlp__AnyValue values[ARRAY_SIZE(text)];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(text); i++) {
		if (!text[i][1])
			continue;
		set_value(o, &values[n], true, add_string(o, text[i][1]));
		otlp__key_value__init(&pairs[n]);
		pairs[n].key = (char *)text[i][0];
		pairs[n].value = &values[n];
		list[n] = &pairs[n];
		n++;
	}
	resource.n_attributes = n;
	resource.attributes = list;
	pb_out__message(&o->ex->out, RESOURCE_RESOURCE, &resource.base);
	nest(o, RESOURCE_SCOPE_PROFILES, write_scope);
}

static void write_mappings(struct otlp *o)
{
	struct export_tables *t = &o->ex->tables;
	const struct export_mapping *m;
	u32 i;

	for (i = 0; i < t->mappings.nr; i++) {
		Otlp__Mapping mapping = OTLP__MAPPING__INIT;

		m = export_tables__mapping(t, i);
		if (i) {
			pb_set(&mapping, memory_start, m->start);
			pb_set(&mapping, memory_limit, m->end);
			pb_set(&mapping, file_offset, m->offset);
			pb_set(&mapping, filename_strindex, m->file);
		}
		if (o->build_ids[i]) {
			mapping.n_attribute_indices = 1;
			mapping.attribute_indices = &o->build_ids[i];
		}
		pb_out__message(&o->ex->out, DICT_MAPPING_TABLE, &mapping.base);
	}
}

static void write_location(struct otlp *o, const struct export_location *l)
{
	const struct export_mapping *m = export_tables__mapping(&o->ex->tables, l->mapping);
	Otlp__Location location = OTLP__LOCATION__INIT;
	Otlp__Line *lines = calloc(l->nr_lines + 1, sizeof(*lines));
	Otlp__Line **list = calloc(l->nr_lines + 1, sizeof(*list));
	u32 i;

	if (!lines || !list) {
		o->err = -ENOMEM;
		goto out;
	}
	for (i = 0; i < l->nr_lines; i++) {
		otlp__line__init(&lines[i]);
		pb_set(&lines[i], function_index, l->lines[i].function);
		if (l->lines[i].line)
			pb_set(&lines[i], line, l->lines[i].line);
		list[i] = &lines[i];
	}
	if (l->mapping)
		pb_set(&location, mapping_index, l->mapping);
	pb_set(&location, address, l->address);
	location.n_lines = l->nr_lines;
	location.lines = list;
	location.n_attribute_indices = 1;
	location.attribute_indices = m->kernel ? &o->kernel : &o->native;
	pb_out__message(&o->ex->out, DICT_LOCATION_TABLE, &location.base);
out:
	free(lines);
	free(list);
}

static void write_locations(struct otlp *o)
{
	u32 i;

	pb_out__bytes(&o->ex->out, DICT_LOCATION_TABLE, "", 0);
	for (i = 1; i < o->ex->tables.locations.nr; i++)
		write_location(o, export_tables__location(&o->ex->tables, i));
}

static void write_functions(struct otlp *o)
{
	const struct export_function *f;
	u32 i;

	pb_out__bytes(&o->ex->out, DICT_FUNCTION_TABLE, "", 0);
	for (i = 1; i < o->ex->tables.functions.nr; i++) {
		Otlp__Function function = OTLP__FUNCTION__INIT;

		f = export_tables__function(&o->ex->tables, i);
		pb_set(&function, name_strindex, f->name);
		pb_set(&function, system_name_strindex, f->name);
		if (f->file)
			pb_set(&function, filename_strindex, f->file);
		pb_out__message(&o->ex->out, DICT_FUNCTION_TABLE, &function.base);
	}
}

static void write_attributes(struct otlp *o)
{
	const struct otlp_attribute *a;
	u32 i;

	pb_out__bytes(&o->ex->out, DICT_ATTRIBUTE_TABLE, "", 0);
	for (i = 1; i < o->attributes.nr; i++) {
		Otlp__KeyValueAndUnit attribute = OTLP__KEY_VALUE_AND_UNIT__INIT;
		Otlp__AnyValue value;

		a = interner__key(&o->attributes, i);
		set_value(o, &value, a->is_text, a->value);
		pb_set(&attribute, key_strindex, a->key);
		attribute.value = &value;
		pb_out__message(&o->ex->out, DICT_ATTRIBUTE_TABLE, &attribute.base);
	}
}

static void write_stacks(struct otlp *o)
{
	struct interner *stacks = &o->ex->tables.stacks;
	const u32 *locations;
	u32 i, j, nr;

	for (i = 0; i < stacks->nr; i++) {
		Otlp__Stack stack = OTLP__STACK__INIT;

		locations = interner__key(stacks, i);
		nr = interner__key_len(stacks, i) / sizeof(*locations);
		if (nr > o->nr_indices) {
			free(o->indices);
			o->nr_indices = nr * 2;
			o->indices = calloc(o->nr_indices, sizeof(*o->indices));
			if (!o->indices) {
				o->nr_indices = 0;
				o->err = -ENOMEM;
				return;
			}
		}
		for (j = 0; j < nr; j++)
			o->indices[j] = locations[j];
		stack.n_location_indices = nr;
		stack.location_indices = o->indices;
		pb_out__message(&o->ex->out, DICT_STACK_TABLE, &stack.base);
	}
}

static void write_strings(struct otlp *o)
{
	struct interner *strings = &o->ex->tables.strings;
	u32 i;

	for (i = 0; i < strings->nr; i++)
		pb_out__bytes(&o->ex->out, DICT_STRING_TABLE, interner__key(strings, i),
			      interner__key_len(strings, i) - 1);
}

static void write_dictionary(struct otlp *o)
{
	write_mappings(o);
	write_locations(o);
	write_functions(o);
	pb_out__bytes(&o->ex->out, DICT_LINK_TABLE, "", 0);
	write_strings(o);
	write_attributes(o);
	write_stacks(o);
}

static int otlp__finish(struct export *ex)
{
	struct otlp o = { .ex = ex };

	number_all(&o);
	if (!o.err)
		nest(&o, DATA_RESOURCE_PROFILES, write_resource);
	if (!o.err)
		nest(&o, DATA_DICTIONARY, write_dictionary);
	interner__exit(&o.attributes);
	free(o.tasks);
	free(o.build_ids);
	free(o.indices);
	return o.err;
}

const struct export_format export_otlp = {
	.name	= "otlp",
	.sample	= export_hits__sample,
	.finish	= otlp__finish,
};
