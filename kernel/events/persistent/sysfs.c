// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: files in sysfs
 *
 *	/sys/bus/event_source/devices/persistent/
 *	  type, format/{id,index}	fields of perf_event_attr that select an event
 *	  events/NAME			the same for a session, for perf's parser
 *	  sessions/NAME/		one value per file, for the session's owner
 *	    id, owner, cpus, nr_events, memory, region, state
 *
 * The files only show state. session.c owns the session and its kobject, and calls this
 * file to list and unlist it.
 *
 * The device belongs to a PMU that never has an event: perf_event_open() handles
 * PERF_TYPE_PERSISTENT before it looks for a PMU.
 *
 * Locking: directories are added and removed under perf_persistent_mutex. A show() may run
 * at any time in between, and removing its file waits for it. Therefore it takes only
 * perf_persistent_lock, which is never held across a removal.
 */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "internal.h"

/* format/ */

PMU_FORMAT_ATTR(id, "config:0-63");
PMU_FORMAT_ATTR(index, "config1:0-63");

static struct attribute *perf_persistent_format_attrs[] = {
	&format_attr_id.attr,
	&format_attr_index.attr,
	NULL,
};

static const struct attribute_group perf_persistent_format_group = {
	.name	= "format",
	.attrs	= perf_persistent_format_attrs,
};

/* events/, filled as sessions come */

static struct attribute *perf_persistent_no_attrs[] = {
	NULL,
};

static const struct attribute_group perf_persistent_events_group = {
	.name	= "events",
	.attrs	= perf_persistent_no_attrs,
};

static const struct attribute_group *perf_persistent_groups[] = {
	&perf_persistent_format_group,
	&perf_persistent_events_group,
	NULL,
};

/*
 * A session is listed before it is complete. If it cannot be completed, its id is used for
 * another session. So the id must not be visible before.
 */
static bool perf_persistent_has_id(struct perf_persistent_session *s)
{
	return READ_ONCE(s->state) != PERF_PERSISTENT_BUILDING;
}

static ssize_t perf_persistent_event_show(struct device *dev, struct device_attribute *attr,
					  char *page)
{
	struct perf_persistent_session *s =
		container_of(attr, struct perf_persistent_session, event_attr);

	return perf_persistent_has_id(s) ? sysfs_emit(page, "id=0x%x\n", s->id) : -ENOENT;
}

/* sessions/NAME/ */

struct perf_persistent_attribute {
	struct attribute	attr;
	ssize_t			(*show)(struct perf_persistent_session *s, char *page);
};

static ssize_t session_id_show(struct perf_persistent_session *s, char *page)
{
	return perf_persistent_has_id(s) ? sysfs_emit(page, "%u\n", s->id) : -ENOENT;
}

static ssize_t session_owner_show(struct perf_persistent_session *s, char *page)
{
	return sysfs_emit(page, "%u\n", from_kuid_munged(current_user_ns(), s->owner));
}

static ssize_t session_cpus_show(struct perf_persistent_session *s, char *page)
{
	struct perf_persistent_event *pe;
	cpumask_var_t cpus;
	unsigned long key;
	ssize_t len;

	if (!zalloc_cpumask_var(&cpus, GFP_KERNEL))
		return -ENOMEM;

	scoped_guard(mutex, &perf_persistent_lock) {
		xa_for_each(&s->events, key, pe) {
			/* An empty list if all of them follow tasks. */
			if (pe->cpu != -1)
				cpumask_set_cpu(pe->cpu, cpus);
			cond_resched();
		}
	}

	len = sysfs_emit(page, "%*pbl\n", cpumask_pr_args(cpus));
	free_cpumask_var(cpus);
	return len;
}

/* The sums over its events */
struct perf_persistent_totals {
	unsigned long	nr_events;
	/* Of all buffers, each once, with its header page */
	u64		bytes;
	/* The PERF_PERSISTENT_STATE_* bits of any of them, 0 if all run */
	u32		state;
};

static struct perf_persistent_totals perf_persistent_add_up(struct perf_persistent_session *s)
{
	struct perf_persistent_totals totals = {};
	struct perf_persistent_event *pe;
	unsigned long key, walk;

	guard(mutex)(&perf_persistent_lock);

	walk = perf_persistent_start_walk();
	xa_for_each(&s->events, key, pe) {
		totals.nr_events++;
		totals.state |= perf_persistent_event_state(pe);
		if (perf_persistent_first_visit(pe->rb, walk))
			totals.bytes += perf_data_size(pe->rb) + PAGE_SIZE;
		cond_resched();
	}
	return totals;
}

static ssize_t session_nr_events_show(struct perf_persistent_session *s, char *page)
{
	return sysfs_emit(page, "%lu\n", perf_persistent_add_up(s).nr_events);
}

static ssize_t session_memory_show(struct perf_persistent_session *s, char *page)
{
	return sysfs_emit(page, "%llu\n", perf_persistent_add_up(s).bytes);
}

/* Empty in ordinary memory */
static ssize_t session_region_show(struct perf_persistent_session *s, char *page)
{
	return sysfs_emit(page, "%s\n", perf_blackbox_label(s) ?: "");
}

static ssize_t session_state_show(struct perf_persistent_session *s, char *page)
{
	return sysfs_emit(page, "%u\n", perf_persistent_add_up(s).state);
}

#define PERF_PERSISTENT_ATTR(_name, _mode)					\
	static struct perf_persistent_attribute session_attr_##_name = {	\
		.attr = { .name = #_name, .mode = (_mode) },			\
		.show = session_##_name##_show,					\
	}

PERF_PERSISTENT_ATTR(id, 0444);
PERF_PERSISTENT_ATTR(owner, 0400);
PERF_PERSISTENT_ATTR(cpus, 0400);
PERF_PERSISTENT_ATTR(nr_events, 0400);
PERF_PERSISTENT_ATTR(memory, 0400);
PERF_PERSISTENT_ATTR(region, 0400);
PERF_PERSISTENT_ATTR(state, 0400);

static struct attribute *perf_persistent_session_attrs[] = {
	&session_attr_id.attr,
	&session_attr_owner.attr,
	&session_attr_cpus.attr,
	&session_attr_nr_events.attr,
	&session_attr_memory.attr,
	&session_attr_region.attr,
	&session_attr_state.attr,
	NULL,
};

static const struct attribute_group perf_persistent_session_group = {
	.attrs	= perf_persistent_session_attrs,
};

const struct attribute_group *perf_persistent_session_groups[] = {
	&perf_persistent_session_group,
	NULL,
};

static ssize_t perf_persistent_attr_show(struct kobject *kobj, struct attribute *attr, char *page)
{
	struct perf_persistent_attribute *pattr =
		container_of(attr, struct perf_persistent_attribute, attr);

	/* The uid of the owner, which opened the file, may be that of another container. */
	if (attr->mode == 0400 && !perf_persistent_may_look(to_session(kobj)))
		return -EACCES;

	return pattr->show(to_session(kobj), page);
}

const struct sysfs_ops perf_persistent_sysfs_ops = {
	.show	= perf_persistent_attr_show,
};

/* The device */

static int perf_persistent_event_init(struct perf_event *event)
{
	return -ENOENT;
}

static struct pmu perf_persistent_pmu = {
	.task_ctx_nr	= perf_invalid_context,
	.attr_groups	= perf_persistent_groups,
	.event_init	= perf_persistent_event_init,
};

static struct kobject *perf_persistent_sessions_dir;

/**
 * perf_persistent_publish - list a session
 * @s: the session
 *
 * Context: perf_persistent_mutex is held; may sleep.
 * Return: 0, or a negative errno, with nothing left in sysfs.
 */
int perf_persistent_publish(struct perf_persistent_session *s)
{
	int err;

	lockdep_assert_held(&perf_persistent_mutex);

	if (!perf_persistent_sessions_dir)
		return -ENODEV;

	err = kobject_add(&s->kobj, perf_persistent_sessions_dir, "%s", s->name);
	if (err)
		return err;

	sysfs_attr_init(&s->event_attr.attr);
	s->event_attr.attr.name = s->name;
	s->event_attr.attr.mode = 0444;
	s->event_attr.show = perf_persistent_event_show;
	err = sysfs_add_file_to_group(&perf_persistent_pmu.dev->kobj, &s->event_attr.attr,
				      perf_persistent_events_group.name);
	if (err)
		kobject_del(&s->kobj);
	return err;
}

/**
 * perf_persistent_unpublish - undo perf_persistent_publish()
 * @s: the session
 *
 * Waits for the readers of its files.
 */
void perf_persistent_unpublish(struct perf_persistent_session *s)
{
	lockdep_assert_held(&perf_persistent_mutex);
	lockdep_assert_not_held(&perf_persistent_lock);

	sysfs_remove_file_from_group(&perf_persistent_pmu.dev->kobj, &s->event_attr.attr,
				     perf_persistent_events_group.name);
	kobject_del(&s->kobj);
}

/**
 * perf_persistent_uevent - tell user space of a step in the life of a session
 * @s: the session
 * @event: the step
 */
void perf_persistent_uevent(struct perf_persistent_session *s, const char *event)
{
	char name[PERF_PERSISTENT_NAME_LEN + 8], id[24], step[32];
	char *envp[4] = { name, id, step };

	snprintf(name, sizeof(name), "SESSION=%s", s->name);
	snprintf(id, sizeof(id), "SESSION_ID=%u", s->id);
	snprintf(step, sizeof(step), "SESSION_EVENT=%s", event);
	/* An error is ignored: there may be no listener. */
	kobject_uevent_env(&perf_persistent_pmu.dev->kobj, KOBJ_CHANGE, envp);
}

/* The event_source bus is there; sessions of the kernel are started after this, see boot.c. */
static int __init perf_persistent_init(void)
{
	int err;

	err = perf_pmu_register(&perf_persistent_pmu, "persistent", PERF_TYPE_PERSISTENT);
	if (err)
		return err;

	perf_persistent_sessions_dir =
		kobject_create_and_add("sessions", &perf_persistent_pmu.dev->kobj);
	if (!perf_persistent_sessions_dir) {
		perf_pmu_unregister(&perf_persistent_pmu);
		return -ENOMEM;
	}
	perf_persistent_dir = &perf_persistent_pmu.dev->kobj;
	return 0;
}
device_initcall_sync(perf_persistent_init);
