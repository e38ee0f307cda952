// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: the owner of a session, its name, and the limit of their number
 *
 * A session belongs to the effective user of its creator, in the user namespace and the
 * pid namespace of its creator. It holds a reference on both.
 *
 * Using a session, that is, to open its events or add others, takes
 *
 *  - CAP_PERFMON in the initial user namespace; or
 *  - the owner, in the session's user namespace, and in the session's pid namespace or one
 *    of its ancestors.
 *
 * A uid alone does not distinguish two containers, or a container and the host: without a
 * user namespace, all of them have the same uid 0. Their pid namespaces differ. The
 * capability applies to the whole machine, as for perf_event_open(). The records of a
 * session may require more permissions: see access.c.
 *
 * Ending or stopping a session takes the owner, as above, or CAP_SYS_ADMIN in the session's
 * user namespace: the permission to read does not include the permission to destroy. Holders
 * of the creator's file need neither to claim its event, just as they can disable it.
 *
 * Looking at a session, that is, to open its file, to list its events and to read what sysfs
 * tells of it, takes one of these three: who may end a session must find it, and needs its
 * file for that. Sysfs checks the uid as well, when one of its files is opened.
 *
 * Names
 * -----
 *
 * A session of a user without CAP_PERFMON is called "u<uid>.<name>", with the uid of the
 * initial user namespace. No other name contains a dot. So such a user can neither take a
 * name that others rely on, nor make a program of root, which opens sessions by their
 * names, read one of the user's sessions.
 *
 * Limit
 * -----
 *
 * Users without CAP_PERFMON may have kernel.perf_persistent_max sessions; by default
 * none. As with ucounts, a session counts for its owner, for the owner of the owner's user
 * namespace in the parent of that namespace, and so on: further ids in a user namespace do
 * not give a user more sessions. Sessions of holders of CAP_PERFMON do not count.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/pid_namespace.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>

#include "internal.h"

/* Memory of a session's entries in sysfs: two directories and seven files */
#define PERF_PERSISTENT_SYSFS_BYTES	PAGE_SIZE

/* Sessions that a user without CAP_PERFMON may have. */
static int sysctl_perf_persistent_max __read_mostly;

/* Use */

/**
 * perf_persistent_sees - does the current task see the tasks of a pid namespace?
 * @ns: the namespace
 *
 * Context: a task; takes no lock.
 * Return: true if it does.
 */
bool perf_persistent_sees(struct pid_namespace *ns)
{
	struct pid_namespace *mine = task_active_pid_ns(current);

	while (ns->level > mine->level)
		ns = ns->parent;
	return ns == mine;
}

static bool perf_persistent_is_owner(struct perf_persistent_session *s)
{
	return uid_eq(s->owner, current_euid()) && s->user_ns == current_user_ns() &&
	       perf_persistent_sees(s->pid_ns);
}

/**
 * perf_persistent_may_use - may the current task open the events of a session, and add some?
 * @s: the session
 *
 * Context: a task.
 * Return: true if it may.
 */
bool perf_persistent_may_use(struct perf_persistent_session *s)
{
	if (perf_persistent_is_owner(s) || perfmon_capable())
		return true;

	perf_persistent_refuse(-EACCES, "using a session takes its owner or CAP_PERFMON");
	return false;
}

/**
 * perf_persistent_may_look - may the current task open the file of a session, and what sysfs
 * tells of it?
 * @s: the session
 *
 * Those who may end a session must find out what they end, and get a file to do it with. So the
 * administrator of a user namespace may look, but not use the events.
 *
 * Context: a task.
 * Return: true if it may.
 */
bool perf_persistent_may_look(struct perf_persistent_session *s)
{
	if (perf_persistent_is_owner(s) || perfmon_capable() ||
	    ns_capable(s->user_ns, CAP_SYS_ADMIN))
		return true;

	perf_persistent_refuse(-EACCES,
			       "a look at a session takes its owner, CAP_PERFMON or CAP_SYS_ADMIN");
	return false;
}

/**
 * perf_persistent_may_end - may the current task end a session?
 * @s: the session
 *
 * Context: a task.
 * Return: true if it may.
 */
bool perf_persistent_may_end(struct perf_persistent_session *s)
{
	if (perf_persistent_is_owner(s) || ns_capable(s->user_ns, CAP_SYS_ADMIN))
		return true;

	perf_persistent_refuse(-EPERM, "control of a session takes its owner or CAP_SYS_ADMIN");
	return false;
}

/* Names */

/* event12: the name that the kernel gives to session 12 if its creator gives none */
static bool perf_persistent_is_default_name(const char *name)
{
	size_t len = str_has_prefix(name, "event");

	if (!len || !name[len])
		return false;

	for (name += len; isdigit(*name); name++)
		;
	return !*name;
}

/**
 * perf_persistent_name_valid - may a user give this name to a session?
 * @name: the name, NUL-terminated
 *
 * A name is a directory and a file in sysfs, and a word of programs that open events by
 * name: a letter or '_', then letters, digits, '_' and '-'. The words that such programs
 * reserve are not known here.
 *
 * Context: any.
 * Return: true if it may.
 */
bool perf_persistent_name_valid(const char *name)
{
	const char *p = name;

	if (!isascii(*p) || !(isalpha(*p) || *p == '_'))
		return false;

	while (isascii(*p) && (isalnum(*p) || *p == '_' || *p == '-'))
		p++;
	return !*p && !perf_persistent_is_default_name(name);
}

/* Give the session the name that its creator asked for, or one of the kernel's. */
static int perf_persistent_set_name(struct perf_persistent_session *s, const char *name)
{
	char prefix[16] = "", number[16];

	if (s->limited)
		snprintf(prefix, sizeof(prefix), "u%u.", from_kuid(&init_user_ns, s->owner));
	if (!*name) {
		snprintf(number, sizeof(number), "event%u", s->id);
		name = number;
	}

	if (snprintf(s->name, sizeof(s->name), "%s%s", prefix, name) >= sizeof(s->name))
		return perf_persistent_refuse(-EINVAL, "the name with u<uid>. is too long");
	return 0;
}

/**
 * perf_persistent_is_called - is this the name of a session?
 * @s: the session
 * @name: its name, with or without the user in front
 *
 * Context: any; the name of a session does not change.
 * Return: true if it is.
 */
bool perf_persistent_is_called(struct perf_persistent_session *s, const char *name)
{
	return !strcmp(s->name, name) ||
	       (s->limited && !strcmp(strchr(s->name, '.') + 1, name));
}

/* Limit */

/* Does the session count for a user of a namespace? */
static bool perf_persistent_counts_for(struct perf_persistent_session *s,
				       struct user_namespace *ns, kuid_t uid)
{
	struct user_namespace *at = s->user_ns;
	kuid_t owner = s->owner;

	if (!s->limited)
		return false;

	while (at->level > ns->level) {
		owner = at->owner;
		at = at->parent;
	}
	return at == ns && uid_eq(owner, uid);
}

static bool perf_persistent_is_full(struct user_namespace *ns, kuid_t uid)
{
	struct perf_persistent_session *s;
	int nr = 0;

	perf_persistent_assert_readable();

	list_for_each_entry(s, &perf_persistent_sessions, entry)
		nr += perf_persistent_counts_for(s, ns, uid);
	return nr >= READ_ONCE(sysctl_perf_persistent_max);
}

static int perf_persistent_check_limit(struct perf_persistent_session *new)
{
	struct user_namespace *ns = new->user_ns;
	kuid_t uid = new->owner;

	if (!new->limited)
		return 0;

	for (; ns; uid = ns->owner, ns = ns->parent) {
		if (!perf_persistent_is_full(ns, uid))
			continue;
		return perf_persistent_refuse(-EDQUOT, ns == new->user_ns ?
					      "too many sessions of the user" :
					      "too many sessions of the namespace's owner");
	}
	return 0;
}

/**
 * perf_persistent_set_owner - make the current user the owner of a new session
 * @s: the session, with an id, not on the list of sessions
 * @name: its name, well-formed; empty for one of the kernel's
 *
 * Return: 0, or an error; perf_persistent_put_owner() in any case
 */
int perf_persistent_set_owner(struct perf_persistent_session *s, const char *name)
{
	int err;

	s->owner = current_euid();
	s->user_ns = get_user_ns(current_user_ns());
	s->pid_ns = get_pid_ns(task_active_pid_ns(current));
	s->limited = !perfmon_capable();

	err = perf_persistent_set_name(s, name);
	if (err)
		return err;

	if (perf_persistent_name_taken(s->name))
		return -EEXIST;

	err = perf_persistent_check_limit(s);
	if (err)
		return err;

	return perf_persistent_charge(&s->memory, PERF_PERSISTENT_SYSFS_BYTES);
}

/**
 * perf_persistent_put_owner - undo perf_persistent_set_owner()
 * @s: the session, which is about to be freed
 */
void perf_persistent_put_owner(struct perf_persistent_session *s)
{
	perf_persistent_uncharge(&s->memory);
	put_pid_ns(s->pid_ns);
	put_user_ns(s->user_ns);
}

static struct ctl_table perf_persistent_sysctls[] = {
	{
		.procname	= "perf_persistent_max",
		.data		= &sysctl_perf_persistent_max,
		.maxlen		= sizeof(sysctl_perf_persistent_max),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= SYSCTL_ZERO,
	},
};

static int __init perf_persistent_sysctl_init(void)
{
	register_sysctl_init("kernel", perf_persistent_sysctls);
	return 0;
}
fs_initcall(perf_persistent_sysctl_init);
