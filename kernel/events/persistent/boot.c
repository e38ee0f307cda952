// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: sessions that the kernel itself starts, from its command line or
 * from a module
 *
 *	perf_persistent=NAME:EVENT[,EVENT..][:SIZE][@LABEL]
 *	perf_persistent=@LABEL
 *
 * An EVENT is a tracepoint, subsys:name, or a software event, by the name that perf uses.
 * Tracepoints and software events are recorded each time, cpu-clock 99 times a second.
 * There is a buffer of SIZE bytes (K, M; rounded up to a power of two; default 512K) for
 * each event on each CPU. The buffers lie in the region LABEL of reserve_mem=, or in ordinary
 * memory. The second form starts no session, but allows user space to place sessions in the
 * region. Without either, nothing writes to a region: reserve_mem= has other users.
 *
 * Such a session belongs to root: it is created with the kernel's credentials, charged to
 * root's user, and listed, opened and claimed as if root had created it with UNCLAIM. Its
 * events never have a creator's file. While the kernel builds the session, it holds the
 * reference of that file itself. The session has events on the CPUs that are online when
 * it is started. root may add others (perf record -P NAME --add).
 *
 * The caller of perf_persistent_start() holds a reference on the session until it calls
 * perf_persistent_stop(). This claims all events, including those that others have added,
 * and frees the name. The session may have ended before. Readers that have an event open
 * can continue to read, as after any CLAIM. They use no code or data of the module that
 * started the session, so the module can be unloaded after perf_persistent_stop().
 *
 * The exception is a tracepoint that the module itself defines. A session that records it
 * keeps the module from being unloaded, like any other user of the tracepoint. So
 * module_exit() cannot stop that session: user space must claim it, or the module must
 * stop it before.
 */
#define pr_fmt(fmt) "perf_persistent: " fmt

#include <linux/cleanup.h>
#include <linux/cpumask.h>
#include <linux/crash_dump.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/perf_persistent.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/string_helpers.h>
#include <linux/trace_events.h>

#include <asm/setup.h>

#include "internal.h"

/* How often cpu-clock is sampled per second. */
#define PERF_PERSISTENT_FREQ	99

static const struct {
	const char	*name;
	u64		config;
} perf_persistent_sw_events[] = {
	{ "cpu-clock",		PERF_COUNT_SW_CPU_CLOCK },
	{ "page-faults",	PERF_COUNT_SW_PAGE_FAULTS },
	{ "minor-faults",	PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults",	PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "context-switches",	PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations",	PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "alignment-faults",	PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ "emulation-faults",	PERF_COUNT_SW_EMULATION_FAULTS },
	{ "cgroup-switches",	PERF_COUNT_SW_CGROUP_SWITCHES },
};

static int perf_persistent_parse_sw(const char *name, struct perf_event_attr *attr)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(perf_persistent_sw_events); i++) {
		if (strcmp(name, perf_persistent_sw_events[i].name))
			continue;

		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = perf_persistent_sw_events[i].config;
		if (attr->config == PERF_COUNT_SW_CPU_CLOCK) {
			attr->freq = 1;
			attr->sample_freq = PERF_PERSISTENT_FREQ;
		}
		return 0;
	}
	return -ENOENT;
}

#ifdef CONFIG_EVENT_TRACING
static int perf_persistent_parse_tracepoint(const char *subsys, const char *name,
					    struct perf_event_attr *attr)
{
	struct trace_event_file *file = trace_get_event_file(NULL, subsys, name);

	if (IS_ERR(file))
		return -ENOENT;

	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = file->event_call->event.type;
	attr->sample_type |= PERF_SAMPLE_RAW;
	trace_put_event_file(file);
	return 0;
}
#else
static int perf_persistent_parse_tracepoint(const char *subsys, const char *name,
					    struct perf_event_attr *attr)
{
	return -ENOENT;
}
#endif

/* Cuts @event in two at its colon. */
static int perf_persistent_parse_event(char *event, struct perf_event_attr *attr)
{
	char *name = strchr(event, ':');

	*attr = (struct perf_event_attr) {
		.size		= sizeof(*attr),
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID |
				  PERF_SAMPLE_CPU | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD,
		.sample_period	= 1,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};

	if (!name)
		return perf_persistent_parse_sw(event, attr);

	*name++ = '\0';
	return perf_persistent_parse_tracepoint(event, name, attr);
}

/**
 * struct perf_persistent_starter - a session while it is made
 * @name: its name
 * @size: of each buffer
 * @label: of the region for the buffers, or NULL
 * @attrs: the events, @nr_attrs of them
 * @nr_attrs: how many
 * @events: @nr_events of them, each for a CPU and an attr
 * @nr_events: how many there are so far
 */
struct perf_persistent_starter {
	const char		*name;
	unsigned long		size;
	const char		*label;
	struct perf_event_attr	*attrs;
	unsigned int		nr_attrs;
	struct perf_event	**events;
	unsigned int		nr_events;
};

static int perf_persistent_parse_events(struct perf_persistent_starter *st, const char *events)
{
	char *list, *rest, *event;
	int err = 0;

	list = kstrdup(events, GFP_KERNEL);
	if (!list)
		return -ENOMEM;

	st->attrs = kcalloc(strlen(list) / 2 + 1, sizeof(*st->attrs), GFP_KERNEL);
	if (!st->attrs)
		err = -ENOMEM;

	for (rest = list; !err && (event = strsep(&rest, ","));) {
		size_t pos = event - list;

		err = perf_persistent_parse_event(event, &st->attrs[st->nr_attrs++]);
		if (err)
			pr_warn("session '%s': there is no event '%.*s'\n", st->name,
				(int)strcspn(events + pos, ","), events + pos);
	}

	kfree(list);
	return err;
}

/* Create ordinary events of the kernel. No lock is held: tracepoints take several. */
static int perf_persistent_create_events(struct perf_persistent_starter *st)
{
	struct perf_event *event;
	unsigned int i, cpu;

	st->events = kcalloc(nr_cpu_ids * st->nr_attrs, sizeof(*st->events), GFP_KERNEL);
	if (!st->events)
		return -ENOMEM;

	for_each_online_cpu(cpu) {
		for (i = 0; i < st->nr_attrs; i++) {
			event = perf_event_create_kernel_counter(&st->attrs[i], cpu, NULL, NULL,
								 NULL);
			/* The CPU has just gone. */
			if (PTR_ERR(event) == -ENODEV)
				continue;
			if (IS_ERR(event))
				return PTR_ERR(event);
			st->events[st->nr_events++] = event;
		}
	}
	return st->nr_events ? 0 : -ENODEV;
}

static struct perf_persistent_session *perf_persistent_do_start(struct perf_persistent_starter *st,
								const char *events)
{
	int err;

	if (st->size > PERF_PERSISTENT_MAX_SIZE)
		return ERR_PTR(-EINVAL);

	if (strlen(st->name) >= PERF_PERSISTENT_NAME_LEN || !perf_persistent_name_valid(st->name))
		return ERR_PTR(-EINVAL);

	err = perf_persistent_parse_events(st, events);
	if (err)
		return ERR_PTR(err);

	err = perf_persistent_create_events(st);
	if (err)
		return ERR_PTR(err);

	return perf_persistent_make(st->name, st->events, st->nr_events, st->size, st->label);
}

/* With the credentials of the kernel */
static struct perf_persistent_session *
perf_persistent_run_starter(struct perf_persistent_starter *st, const char *events)
{
	struct perf_persistent_session *s;
	const struct cred *old;
	struct cred *cred;
	unsigned int i;

	cred = prepare_kernel_cred(&init_task);
	if (!cred)
		return ERR_PTR(-ENOMEM);

	old = override_creds(cred);
	s = perf_persistent_do_start(st, events);
	revert_creds(old);
	put_cred(cred);

	/* Drop the creator's references. Events of no session end, and so does one that failed. */
	for (i = 0; i < st->nr_events; i++) {
		if (!perf_persistent_release(st->events[i]))
			perf_event_release_kernel(st->events[i]);
	}
	kfree(st->events);
	kfree(st->attrs);
	return s;
}

/**
 * perf_persistent_start - start a session of the kernel's own
 * @name: name of the session, as user space might give it
 * @events: tracepoints (subsys:name) and software events, with commas between
 * @size: bytes of ring buffer for each event on each CPU; 0: 512 KiB
 *
 * The events are recorded on all CPUs that are online; root and holders of CAP_PERFMON
 * can read them. New records overwrite the oldest.
 *
 * Context: may sleep, and take cpus_read_lock(), the locks of tracepoints and of sysfs.
 * Not before late_initcall.
 *
 * Return: the session, for perf_persistent_stop(), or an error pointer: -EINVAL for a
 * bad name or size, -EEXIST for a name that is taken, -ENOENT for an event that does not
 * exist, which is also logged, -ENOMEM; -EOPNOTSUPP without CONFIG_PERF_PERSISTENT
 */
struct perf_persistent_session *perf_persistent_start(const char *name, const char *events,
						      unsigned long size)
{
	struct perf_persistent_starter st = { .name = name, .size = size };

	return perf_persistent_run_starter(&st, events);
}
EXPORT_SYMBOL_GPL(perf_persistent_start);

/**
 * perf_persistent_stop - stop a session of the kernel's own
 * @session: what perf_persistent_start() returned; error pointers are ignored
 *
 * The session ends with all its events; those that are open end with the last reader.
 * The caller may be unloaded.
 *
 * Context: may sleep, and take what perf_persistent_start() takes.
 */
void perf_persistent_stop(struct perf_persistent_session *session)
{
	if (IS_ERR_OR_NULL(session))
		return;

	perf_persistent_end_all(session);
	kobject_put(&session->kobj);
}
EXPORT_SYMBOL_GPL(perf_persistent_stop);

/* The command line */

static char perf_persistent_params[COMMAND_LINE_SIZE] __initdata;

static int __init perf_persistent_setup(char *str)
{
	if (!str)
		return -EINVAL;

	/* It can be given several times. None of them contains a blank. */
	if (*perf_persistent_params)
		strlcat(perf_persistent_params, " ", sizeof(perf_persistent_params));
	strlcat(perf_persistent_params, str, sizeof(perf_persistent_params));
	return 0;
}
early_param("perf_persistent", perf_persistent_setup);

/* A SIZE begins with a digit, which the name of an event does not. */
static int __init perf_persistent_cut_size(char *events, unsigned long *size)
{
	char *str = strrchr(events, ':'), *end;

	*size = 0;
	if (!str || !isdigit(str[1]))
		return 0;

	*str++ = '\0';
	*size = memparse(str, &end);
	return *end || !*size ? -EINVAL : 0;
}

static void __init perf_persistent_start_param(char *param)
{
	char *what __free(kfree) = kstrdup(param, GFP_KERNEL);
	struct perf_persistent_starter st = { };
	struct perf_persistent_session *s;
	char *rest = what, *events;
	int err = -EINVAL, look = 0;

	if (!what)
		return;

	events = strsep(&rest, "@");
	st.label = rest;
	/* Even if the session is not started: a death is to be found. */
	if (st.label)
		look = perf_blackbox_look(st.label);
	if (st.label && !*events) {
		if (look)
			pr_warn("cannot use the region of perf_persistent=%s: %pe\n", param,
				ERR_PTR(look));
		return;
	}

	st.name = strsep(&events, ":");
	if (events)
		err = perf_persistent_cut_size(events, &st.size);
	if (!err) {
		s = perf_persistent_run_starter(&st, events);
		err = PTR_ERR_OR_ZERO(s);
	}

	if (err) {
		pr_warn("cannot start perf_persistent=%s: %pe\n", param, ERR_PTR(err));
		return;
	}

	pr_info("session '%s' (id %u) started\n", st.name, s->id);
	/* It is not stopped from here, but claimed from user space. */
	kobject_put(&s->kobj);
}

/*
 * CPUs, tracepoints and, since sysfs.o is linked before, the directory of sessions are
 * there by now. A late_initcall delivers the machine checks that were logged until then.
 */
static int __init perf_persistent_start_params(void)
{
	char *rest = perf_persistent_params, *param;

	/*
	 * A crash kernel inherits the command line. It saves what is there, in little memory,
	 * and must not write to a region.
	 */
	if (is_kdump_kernel())
		return 0;

	while ((param = strsep(&rest, " "))) {
		if (*param)
			perf_persistent_start_param(param);
	}
	return 0;
}
device_initcall_sync(perf_persistent_start_params);
