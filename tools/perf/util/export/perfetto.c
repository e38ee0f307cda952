// SPDX-License-Identifier: GPL-2.0
/*
 * Traces for Perfetto.
 *
 * A trace is a list of packets, and is written while the recording is read. A
 * sample is a PerfSample that refers to its stack by a number. The packets with the
 * stack, its frames, mappings and strings come before the first sample of the event
 * that has them; a bit for each remembers that they were written. Frames are
 * interned by location and line: a function that was inlined is a frame.
 *
 * Tracepoints become ftrace events (perfetto-ftrace.c). They are samples, too, only
 * if they have a call chain.
 *
 * Neither samples nor threads have a cgroup in this format. An instant tells which
 * cgroup and container a process was in when it was seen there first.
 *
 * Times are those of the recording. Perfetto knows no clock of perf, and takes them
 * for the boot clock; where the recording has a reference to the wall clock
 * (perf record -k), a snapshot of both clocks is added.
 */
#include "perfetto.h"

#include "debug.h"
#include "evlist.h"
#include "evsel.h"
#include "header.h"
#include "session.h"
#include "util/sample.h"

#include <errno.h>
#include <linux/bitmap.h>
#include <stdlib.h>
#include <string.h>

enum {
	TRACE_PACKET		= 1,
};

/* Of Perfetto: flags of a packet, clocks, types of track events */
enum {
	FLAG_STATE_CLEARED	= 1,
	FLAG_NEEDS_STATE	= 2,
	CLOCK_ID_REALTIME	= 1,
	CLOCK_ID_BOOTTIME	= 6,
	TYPE_INSTANT		= 3,
};

#define TRACK_RECORDING		1
#define TRACK_CGROUPS		2

/* What is numbered within a sequence */
enum interned {
	FUNCTION_NAME,
	MAPPING_PATH,
	BUILD_ID,
	SOURCE_PATH,
	MAPPING,
	FRAME,
	CALLSTACK,
	NR_INTERNED,
};

/**
 * struct bits - a set of numbers
 * @words: of bits
 * @nr: number of @words
 */
struct bits {
	u64	*words;
	u32	nr;
};

/**
 * struct sequence - packets of an event
 * @begun: whether there is a packet
 * @written: what was written in it
 */
struct sequence {
	bool		begun;
	struct bits	written[NR_INTERNED];
};

/**
 * struct frame_key - key of a frame
 * @location: number of the location
 * @line: index of the line in it
 */
struct frame_key {
	u32	location;
	u32	line;
};

/**
 * struct thread_key - key of the name of a thread
 * @comm: string
 * @pid: process
 * @tid: thread
 */
struct thread_key {
	u32	comm;
	s32	pid;
	s32	tid;
};

/**
 * struct cgroup_key - key of what was told of the cgroup of a process
 * @cgroup: string, its path
 * @pid: process
 */
struct cgroup_key {
	u32	cgroup;
	s32	pid;
};

/**
 * struct perfetto - state of a trace
 * @sequences: by index of the event
 * @nr_sequences: number of @sequences
 * @system_begun: whether the sequence for the system has a packet
 * @has_switches: scheduling comes from tracepoints
 * @looked: whether @has_switches was set
 * @frames: of struct frame_key
 * @threads: of struct thread_key
 * @cgroups: of struct cgroup_key
 * @counts: sums of the periods by event and CPU
 * @ids: of the frames of a stack
 * @nr_ids: room in @ids
 */
struct perfetto {
	struct sequence		*sequences;
	u32			nr_sequences;
	bool			system_begun;
	bool			has_switches;
	bool			looked;
	struct interner		frames;
	struct interner		threads;
	struct interner		cgroups;
	struct export_hits	counts;
	u64			*ids;
	u32			nr_ids;
};

/* Add a number to a set: 1 if it was new, 0 if not, -ENOMEM */
static int bits__add(struct bits *bits, u32 nr)
{
	u32 word = nr / 64, n;
	u64 bit = 1ULL << nr % 64, *p;

	if (word >= bits->nr) {
		n = max(word + 1, bits->nr * 2);
		p = realloc(bits->words, n * sizeof(*p));
		if (!p)
			return -ENOMEM;
		memset(p + bits->nr, 0, (n - bits->nr) * sizeof(*p));
		bits->words = p;
		bits->nr = n;
	}
	if (bits->words[word] & bit)
		return 0;
	bits->words[word] |= bit;
	return 1;
}

/**
 * perfetto__write_packet - write a packet
 * @ex: the conversion
 * @sequence: the sequence that it is part of
 * @packet: the packet; its sequence and flags are set
 */
void perfetto__write_packet(struct export *ex, u32 sequence, Perfetto__TracePacket *packet)
{
	struct perfetto *p = ex->priv;
	bool *begun = &p->system_begun;

	if (sequence >= PERFETTO_SEQUENCE_EVENTS)
		begun = &p->sequences[sequence - PERFETTO_SEQUENCE_EVENTS].begun;
	pb_set(packet, trusted_packet_sequence_id, sequence);
	pb_set(packet, sequence_flags, *begun ? FLAG_NEEDS_STATE : FLAG_STATE_CLEARED);
	*begun = true;
	pb_out__message(&ex->out, TRACE_PACKET, &packet->base);
}

static void write_interned(struct export *ex, u32 sequence, Perfetto__InternedData *data)
{
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	packet.interned_data = data;
	perfetto__write_packet(ex, sequence, &packet);
}

static int is_new(struct export *ex, u32 sequence, enum interned kind, u32 nr)
{
	struct perfetto *p = ex->priv;

	return bits__add(&p->sequences[sequence - PERFETTO_SEQUENCE_EVENTS].written[kind], nr);
}

/* Hex digits become bytes: a build-id is binary. */
static size_t from_hex(const char *hex, u8 *bytes, size_t size)
{
	unsigned int byte;
	size_t n;

	for (n = 0; n < size && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = byte;
	return n;
}

static int write_string(struct export *ex, u32 sequence, enum interned kind, u32 nr)
{
	const char *str = export_tables__str(&ex->tables, nr);
	Perfetto__InternedString string = PERFETTO__INTERNED_STRING__INIT, *list = &string;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	u8 build_id[32];
	int new = is_new(ex, sequence, kind, nr);

	if (new <= 0)
		return new;
	pb_set(&string, iid, nr + 1);
	string.has_str = true;
	string.str.data = (u8 *)str;
	string.str.len = strlen(str);
	if (kind == FUNCTION_NAME) {
		data.n_function_names = 1;
		data.function_names = &list;
	} else if (kind == MAPPING_PATH) {
		data.n_mapping_paths = 1;
		data.mapping_paths = &list;
	} else if (kind == SOURCE_PATH) {
		data.n_source_paths = 1;
		data.source_paths = &list;
	} else {
		string.str.data = build_id;
		string.str.len = from_hex(str, build_id, sizeof(build_id));
		data.n_build_ids = 1;
		data.build_ids = &list;
	}
	write_interned(ex, sequence, &data);
	return 0;
}

/* A frame must have a mapping: number 0 is one without a name. */
static int write_mapping(struct export *ex, u32 sequence, u32 nr)
{
	const struct export_mapping *m = export_tables__mapping(&ex->tables, nr);
	Perfetto__Mapping mapping = PERFETTO__MAPPING__INIT, *list = &mapping;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	int new = is_new(ex, sequence, MAPPING, nr), err;
	u64 path = m->file + 1;

	if (new <= 0)
		return new;
	err = write_string(ex, sequence, MAPPING_PATH, m->file) ?:
	      write_string(ex, sequence, BUILD_ID, m->build_id);
	if (err)
		return err;
	pb_set(&mapping, iid, nr + 1);
	pb_set(&mapping, build_id, m->build_id + 1);
	pb_set(&mapping, exact_offset, m->offset);
	pb_set(&mapping, start_offset, m->offset);
	pb_set(&mapping, start, m->start);
	pb_set(&mapping, end, m->end);
	mapping.n_path_string_ids = 1;
	mapping.path_string_ids = &path;
	data.n_mappings = 1;
	data.mappings = &list;
	write_interned(ex, sequence, &data);
	return 0;
}

static int write_frame(struct export *ex, u32 sequence, u32 nr)
{
	struct perfetto *p = ex->priv;
	const struct frame_key *key = interner__key(&p->frames, nr);
	const struct export_location *l = export_tables__location(&ex->tables, key->location);
	const struct export_function *f = NULL;
	Perfetto__Frame frame = PERFETTO__FRAME__INIT, *list = &frame;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	int new = is_new(ex, sequence, FRAME, nr), err;

	if (new <= 0)
		return new;
	if (l->nr_lines)
		f = export_tables__function(&ex->tables, l->lines[key->line].function);
	err = write_mapping(ex, sequence, l->mapping);
	if (!err && f)
		err = write_string(ex, sequence, FUNCTION_NAME, f->name);
	if (!err && f && f->file)
		err = write_string(ex, sequence, SOURCE_PATH, f->file);
	if (err)
		return err;
	pb_set(&frame, iid, nr + 1);
	pb_set(&frame, mapping_id, l->mapping + 1);
	pb_set(&frame, rel_pc, l->address);
	if (f)
		pb_set(&frame, function_name_id, f->name + 1);
	if (f && f->file)
		pb_set(&frame, source_path_iid, f->file + 1);
	if (f && l->lines[key->line].line)
		pb_set(&frame, line_number, l->lines[key->line].line);
	data.n_frames = 1;
	data.frames = &list;
	write_interned(ex, sequence, &data);
	return 0;
}

static int push_frame(struct export *ex, u32 sequence, u32 *nr_ids, u32 location, u32 line)
{
	struct frame_key key = { .location = location, .line = line };
	struct perfetto *p = ex->priv;
	u32 nr = interner__add(&p->frames, &key, sizeof(key), NULL), n;
	u64 *ids;

	if (nr == INTERNER_FAILED)
		return -ENOMEM;
	if (*nr_ids == p->nr_ids) {
		n = p->nr_ids ? p->nr_ids * 2 : 256;
		ids = reallocarray(p->ids, n, sizeof(*ids));
		if (!ids)
			return -ENOMEM;
		p->ids = ids;
		p->nr_ids = n;
	}
	p->ids[(*nr_ids)++] = nr + 1;
	return write_frame(ex, sequence, nr);
}

/* The oldest call comes first. */
static int write_stack(struct export *ex, u32 sequence, u32 stack)
{
	const u32 *locations = interner__key(&ex->tables.stacks, stack);
	u32 i = interner__key_len(&ex->tables.stacks, stack) / sizeof(*locations), j, nr = 0;
	Perfetto__Callstack callstack = PERFETTO__CALLSTACK__INIT, *list = &callstack;
	Perfetto__InternedData data = PERFETTO__INTERNED_DATA__INIT;
	struct perfetto *p = ex->priv;
	int new = is_new(ex, sequence, CALLSTACK, stack), err = 0;

	if (new <= 0)
		return new;
	while (i-- && !err) {
		j = export_tables__location(&ex->tables, locations[i])->nr_lines ?: 1;
		while (j-- && !err)
			err = push_frame(ex, sequence, &nr, locations[i], j);
	}
	if (err)
		return err;
	pb_set(&callstack, iid, stack + 1);
	callstack.n_frame_ids = nr;
	callstack.frame_ids = p->ids;
	data.n_callstacks = 1;
	data.callstacks = &list;
	write_interned(ex, sequence, &data);
	return 0;
}

static int write_thread(struct export *ex, u32 nr)
{
	const struct export_task *task = export_tables__task_key(&ex->tables, nr);
	u32 comm_nr = export_tables__comm(&ex->tables, nr);
	struct thread_key key = { .comm = comm_nr, .pid = task->pid, .tid = task->tid };
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__ProcessTree tree = PERFETTO__PROCESS_TREE__INIT;
	Perfetto__Process process = PERFETTO__PROCESS__INIT, *processes = &process;
	Perfetto__Thread thread = PERFETTO__THREAD__INIT, *threads = &thread;
	struct perfetto *p = ex->priv;
	char *comm;
	bool fresh;

	if (comm_nr == INTERNER_FAILED ||
	    interner__add(&p->threads, &key, sizeof(key), &fresh) == INTERNER_FAILED)
		return -ENOMEM;
	if (!fresh)
		return 0;
	comm = (char *)export_tables__str(&ex->tables, comm_nr);
	pb_set(&process, pid, task->pid);
	if (task->pid == task->tid) {
		process.n_cmdline = 1;
		process.cmdline = &comm;
	}
	pb_set(&thread, tid, task->tid);
	pb_set(&thread, tgid, task->pid);
	thread.name = comm;
	tree.n_processes = 1;
	tree.processes = &processes;
	tree.n_threads = 1;
	tree.threads = &threads;
	packet.process_tree = &tree;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_SYSTEM, &packet);
	return 0;
}

/* A track without a process or a CPU, which instants are on */
static void write_track(struct export *ex, u64 uuid, const char *name)
{
	Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;

	pb_set(&track, uuid, uuid);
	track.name = (char *)name;
	packet.track_descriptor = &track;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_SYSTEM, &packet);
}

/* An annotation is a name and a text, which is NULL if it is not known. */
#define MAX_NOTES	7

static void write_instant(struct export *ex, u64 uuid, u64 time, const char *name,
			  const char *const (*text)[2], size_t nr)
{
	Perfetto__DebugAnnotation notes[MAX_NOTES], *list[MAX_NOTES];
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__TrackEvent event = PERFETTO__TRACK_EVENT__INIT;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (!text[i][1])
			continue;
		perfetto__debug_annotation__init(&notes[i]);
		notes[i].name = (char *)text[i][0];
		notes[i].string_value = (char *)text[i][1];
		list[event.n_debug_annotations++] = &notes[i];
	}
	event.debug_annotations = list;
	pb_set(&event, type, TYPE_INSTANT);
	pb_set(&event, track_uuid, uuid);
	event.name = (char *)name;
	pb_set(&packet, timestamp, time);
	packet.track_event = &event;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_SYSTEM, &packet);
}

/* NULL: it is not known */
static const char *string_of(const struct export *ex, u32 nr)
{
	return nr ? export_tables__str(&ex->tables, nr) : NULL;
}

static int write_cgroup(struct export *ex, const struct export_task *task, u64 time)
{
	struct cgroup_key key = { .cgroup = task->cgroup, .pid = task->pid };
	const struct export_container *c;
	struct perfetto *p = ex->priv;
	char pid[16];
	bool fresh;

	if (!task->cgroup)
		return 0;
	if (interner__add(&p->cgroups, &key, sizeof(key), &fresh) == INTERNER_FAILED)
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (p->cgroups.nr == 1)
		write_track(ex, TRACK_CGROUPS, "cgroups of processes");
	snprintf(pid, sizeof(pid), "%d", task->pid);
	c = export__container(ex, task->cgroup);
	if (!c)
		return -ENOMEM;
	write_instant(ex, TRACK_CGROUPS, time, c->id ? "container" : "cgroup",
		      (const char *const [][2]) {
			      { "pid", pid },
			      { "cgroup", string_of(ex, task->cgroup) },
			      { "container.id", string_of(ex, c->id) },
			      { "container.name", string_of(ex, c->name) },
			      { "k8s.pod.uid", string_of(ex, c->pod_uid) },
			      { "k8s.pod.name", string_of(ex, c->pod) },
			      { "k8s.namespace.name", string_of(ex, c->pod_namespace) },
		      }, MAX_NOTES);
	return 0;
}

/* A recording that is read from a pipe tells its events one by one. */
static int add_sequence(struct export *ex, struct evsel *evsel)
{
	Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
	Perfetto__PerfSampleDefaults sample = PERFETTO__PERF_SAMPLE_DEFAULTS__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__Timebase timebase = PERFETTO__TIMEBASE__INIT;
	u32 idx = evsel->core.idx, n;
	struct perfetto *p = ex->priv;
	struct sequence *s;
	char *name;

	if (idx >= p->nr_sequences) {
		n = max(idx + 1, p->nr_sequences * 2);
		s = reallocarray(p->sequences, n, sizeof(*s));
		if (!s)
			return -ENOMEM;
		memset(s + p->nr_sequences, 0, (n - p->nr_sequences) * sizeof(*s));
		p->sequences = s;
		p->nr_sequences = n;
	}
	if (p->sequences[idx].begun)
		return 0;
	name = strdup(evsel__name(evsel));
	if (!name)
		return -ENOMEM;
	export_clean_utf8(name);
	timebase.name = name;
	if (evsel->core.attr.freq)
		pb_set(&timebase, frequency, evsel->core.attr.sample_freq);
	else
		pb_set(&timebase, period, evsel->core.attr.sample_period);
	sample.sampling = &timebase;
	defaults.perf_sample_defaults = &sample;
	packet.trace_packet_defaults = &defaults;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_EVENTS + idx, &packet);
	free(name);
	return 0;
}

static int write_sample(struct export *ex, struct evsel *evsel, struct perf_sample *sample,
			u32 stack, const struct export_task *task)
{
	u32 sequence = PERFETTO_SEQUENCE_EVENTS + evsel->core.idx, count;
	struct export_hit key = { .event = evsel->core.idx, .task = sample->cpu };
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__PerfSample s = PERFETTO__PERF_SAMPLE__INIT;
	struct perfetto *p = ex->priv;
	int err;

	err = add_sequence(ex, evsel) ?: write_stack(ex, sequence, stack);
	if (err)
		return err;
	count = export_hits__add(&p->counts, &key, sample->period);
	if (count == INTERNER_FAILED)
		return -ENOMEM;
	if (task->cpu >= 0)
		pb_set(&s, cpu, task->cpu);
	pb_set(&s, pid, task->pid);
	pb_set(&s, tid, task->tid);
	pb_set(&s, callstack_iid, stack + 1);
	/* The modes have the same numbers as those of perf. */
	pb_set(&s, cpu_mode, sample->cpumode);
	pb_set(&s, timebase_count, p->counts.sums[count].period);
	pb_set(&packet, timestamp, sample->time);
	packet.perf_sample = &s;
	perfetto__write_packet(ex, sequence, &packet);
	return 0;
}

static int perfetto__sample(struct export *ex, struct evsel *evsel, struct perf_sample *sample,
			    u32 stack, u32 task)
{
	bool is_tracepoint = evsel->core.attr.type == PERF_TYPE_TRACEPOINT;
	int err;

	if (sample->time == -1ULL) {
		pr_err("Samples of %s have no time, without which there is no trace. Record with perf record -T.\n",
		       evsel__name(evsel));
		return -EINVAL;
	}
	err = write_thread(ex, task) ?:
	      write_cgroup(ex, export_tables__task_key(&ex->tables, task), sample->time);
	if (!err && is_tracepoint)
		err = perfetto__write_tracepoint(ex, evsel, sample);
	if (!err && (!is_tracepoint || sample->callchain))
		err = write_sample(ex, evsel, sample, stack,
				   export_tables__task_key(&ex->tables, task));
	return err;
}

static int perfetto__switch(struct export *ex, const struct export_switch *sw)
{
	struct perfetto *p = ex->priv;

	if (!p->looked) {
		p->has_switches = perfetto__has_sched_switch(ex);
		p->looked = true;
	}
	/* The tracepoint says more of the same switch. */
	return p->has_switches ? 0 : perfetto__write_switch(ex, sw);
}

static void write_clocks(struct export *ex)
{
	struct perf_env *env = &ex->session->header.env;
	Perfetto__Clock boot = PERFETTO__CLOCK__INIT, wall = PERFETTO__CLOCK__INIT;
	Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
	Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
	Perfetto__Clock *list[] = { &boot, &wall };

	if (!env->clock.enabled)
		return;
	pb_set(&boot, clock_id, CLOCK_ID_BOOTTIME);
	pb_set(&boot, timestamp, env->clock.clockid_ns);
	pb_set(&wall, clock_id, CLOCK_ID_REALTIME);
	pb_set(&wall, timestamp, env->clock.tod_ns);
	snapshot.n_clocks = ARRAY_SIZE(list);
	snapshot.clocks = list;
	pb_set(&snapshot, primary_trace_clock, CLOCK_ID_BOOTTIME);
	packet.clock_snapshot = &snapshot;
	perfetto__write_packet(ex, PERFETTO_SEQUENCE_SYSTEM, &packet);
}

/* Machine and trigger, as an instant at the end of the recording */
static void write_origin(struct export *ex)
{
	const struct export_origin *o = &ex->origin;
	const char *const text[][2] = {
		{ "host", o->host },
		{ "trigger", o->trigger },
		{ "reason", o->reason },
	};
	char *const unclean[] = { o->host, o->trigger, o->reason };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unclean); i++) {
		if (unclean[i])
			export_clean_utf8(unclean[i]);
	}
	write_track(ex, TRACK_RECORDING, "perf recording");
	write_instant(ex, TRACK_RECORDING, ex->last, o->trigger ? "dump" : "end", text,
		      ARRAY_SIZE(text));
}

static int perfetto__finish(struct export *ex)
{
	write_clocks(ex);
	write_origin(ex);
	return 0;
}

static int perfetto__begin(struct export *ex)
{
	ex->priv = calloc(1, sizeof(struct perfetto));
	return ex->priv ? 0 : -ENOMEM;
}

static void perfetto__exit(struct export *ex)
{
	struct perfetto *p = ex->priv;
	u32 i;
	int j;

	if (!p)
		return;
	for (i = 0; i < p->nr_sequences; i++) {
		for (j = 0; j < NR_INTERNED; j++)
			free(p->sequences[i].written[j].words);
	}
	free(p->sequences);
	interner__exit(&p->frames);
	interner__exit(&p->threads);
	interner__exit(&p->cgroups);
	export_hits__exit(&p->counts);
	free(p->ids);
	free(p);
}

const struct export_format export_perfetto = {
	.name		= "perfetto",
	.begin		= perfetto__begin,
	.sample		= perfetto__sample,
	.context_switch	= perfetto__switch,
	.finish		= perfetto__finish,
	.exit		= perfetto__exit,
};
