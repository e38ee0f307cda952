// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: the list of sessions, its locks and its directory
 *
 * All files of this directory use them. See "Locking" in session.c.
 */
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/string.h>

#include "internal.h"

/* Serialises changes of sessions */
DEFINE_MUTEX(perf_persistent_mutex);

/* Protects the list of sessions, their events and states */
DEFINE_MUTEX(perf_persistent_lock);

LIST_HEAD(perf_persistent_sessions);

/* Of the PMU, in sysfs; NULL unless sysfs.c has registered it */
struct kobject *perf_persistent_dir;

/**
 * perf_persistent_name_taken - has a session that has not ended this name?
 * @name: the name
 *
 * Context: perf_persistent_mutex or perf_persistent_lock is held.
 * Return: true if there is one.
 */
bool perf_persistent_name_taken(const char *name)
{
	struct perf_persistent_session *s;

	perf_persistent_assert_readable();

	list_for_each_entry(s, &perf_persistent_sessions, entry) {
		if (!strcmp(s->name, name))
			return true;
	}
	return false;
}
