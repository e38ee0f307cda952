/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: what the files of this directory share
 *
 * Each file calls only files below it:
 *
 *	core.c, ring_buffer.c		hooks.h: open, ioctl, release, wakeup
 *	----------------------------------------------------------------------------
 *	reader.c			an event that was opened again
 *	   |
 *	ioctl.c   boot.c   hotplug.c	structs of the ABI; sessions that the kernel
 *	   |         |         |	starts; CPUs that go offline and return
 *	   +----+----+----+----+
 *	        |
 *	    session.c			sessions: names, quota, states, their end;
 *	     |     |			the theory of operation
 *	 sysfs.c  access.c		what is listed; who may open and read
 *	     |     |
 *	    member.c			an event in a session: buffer, charge, state
 *	----------------------------------------------------------------------------
 *	../internal.h			core.c, ring_buffer.c, rb_charge.c, rb_memory.c,
 *					rb_seal.c, rb_snapshot.c
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_INTERNAL_H
#define _KERNEL_EVENTS_PERSISTENT_INTERNAL_H

#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/refcount.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>
#include <uapi/linux/perf_persistent.h>

#include "../internal.h"
#include "hooks.h"

/* Size of the data area of an event that comes without a buffer, in bytes. */
#define PERF_PERSISTENT_DEFAULT_SIZE	(512UL << 10)

/**
 * enum perf_persistent_state - where a session is in its life, see session.c
 * @PERF_PERSISTENT_BUILDING: not listed, cannot be opened; ends with the first fd closed
 * @PERF_PERSISTENT_RUNNING: listed in sysfs, can be opened
 * @PERF_PERSISTENT_ENDED: its last event was claimed
 */
enum perf_persistent_state {
	PERF_PERSISTENT_BUILDING,
	PERF_PERSISTENT_RUNNING,
	PERF_PERSISTENT_ENDED,
};

/**
 * struct perf_persistent_session - a named set of events that the kernel owns
 * @kobj: .../persistent/sessions/NAME; holds the reference count
 * @entry: on the list of sessions
 * @events: unclaimed events, by perf_persistent_key()
 * @members: all events, until they are freed
 * @next_index: by CPU + 1: number of the next event there; never used again
 * @state: see enum perf_persistent_state
 * @id: never used again
 * @owner: effective uid of the creator
 * @name: unique among the sessions that have not ended
 * @event_attr: .../persistent/events/NAME
 */
struct perf_persistent_session {
	struct kobject			kobj;
	struct list_head		entry;
	struct xarray			events;
	struct list_head		members;
	struct xarray			next_index;
	enum perf_persistent_state	state;
	u32				id;
	kuid_t				owner;
	char				name[PERF_PERSISTENT_NAME_LEN];
	struct device_attribute		event_attr;
};

static inline struct perf_persistent_session *to_session(const struct kobject *kobj)
{
	return container_of(kobj, struct perf_persistent_session, kobj);
}

/**
 * struct perf_persistent_event - an event as a member of its session
 * @users: creator's fd, consumers' files, and the session until the event is claimed
 * @session: the session, with a reference
 * @event: the event; its first reference is dropped by the last user
 * @rb: the event's buffer, with a reference; never changes
 * @cpu: event->cpu at UNCLAIM, -1 if it follows a task; a PMU may move the event later
 * @index: number of the event on its CPU
 * @charge: one page, for a member that shares the buffer of another; else empty
 * @claimed: taken back; no longer on session->events
 * @claim_entry: private to perf_persistent_take_all()
 * @member_entry: on session->members
 * @rcu: for perf_persistent_all_members(), which finds the member by its buffer
 */
struct perf_persistent_event {
	refcount_t			users;
	struct perf_persistent_session	*session;
	struct perf_event		*event;
	struct perf_buffer		*rb;
	int				cpu;
	u32				index;
	struct perf_rb_charge		charge;
	bool				claimed;
	struct list_head		claim_entry;
	struct list_head		member_entry;
	struct rcu_head			rcu;
};

/* An event's place in session->events: those of one CPU follow each other. */
#define PERF_PERSISTENT_INDEX_BITS	16
#define PERF_PERSISTENT_INDEX_MAX	((1U << PERF_PERSISTENT_INDEX_BITS) - 1)

static inline unsigned long perf_persistent_key(int cpu, u32 index)
{
	/* The CPU of an event that follows its task is -1. */
	return ((unsigned long)(cpu + 1) << PERF_PERSISTENT_INDEX_BITS) | index;
}

/* member.c; what the locks protect: see "Locking" in session.c */
extern struct mutex perf_persistent_mutex;
extern struct mutex perf_persistent_lock;

static inline void perf_persistent_assert_readable(void)
{
	lockdep_assert(lockdep_is_held(&perf_persistent_mutex) ||
		       lockdep_is_held(&perf_persistent_lock));
}

u32 perf_persistent_buffer_index(struct perf_persistent_event *pe);
bool perf_persistent_gone(struct perf_persistent_event *pe);
u32 perf_persistent_event_state(struct perf_persistent_event *pe);
bool perf_persistent_all_members(struct perf_persistent_session *s, struct perf_buffer *rb,
				 struct perf_event *joining);
int perf_persistent_attach(struct perf_persistent_event *pe, unsigned long nr_pages,
			   bool complete);
void perf_persistent_put(struct perf_persistent_event *pe);

/* access.c */
int perf_persistent_may_open(struct perf_event *event);
int perf_persistent_may_read(struct perf_persistent_event *pe);

/* sysfs.c */
extern const struct sysfs_ops perf_persistent_sysfs_ops;
extern const struct attribute_group *perf_persistent_session_groups[];
int perf_persistent_publish(struct perf_persistent_session *s);
void perf_persistent_unpublish(struct perf_persistent_session *s);

/* session.c */
extern struct list_head perf_persistent_sessions;

bool perf_persistent_name_valid(const char *name);
u32 perf_persistent_nr_events(struct perf_persistent_session *s, int cpu);
struct perf_persistent_event *perf_persistent_find(u64 id, int cpu, u64 index);
int perf_persistent_unclaim(struct perf_event *event, const struct perf_persistent_arg *arg,
			    u32 *id);
int perf_persistent_claim(struct perf_persistent_event *pe);
struct perf_persistent_session *perf_persistent_make(const char *name, struct perf_event **events,
						     unsigned int nr, unsigned long size);
void perf_persistent_end_all(struct perf_persistent_session *s);

/* ioctl.c */
long perf_persistent_info(struct perf_persistent_event *pe, void __user *uarg);

#endif /* _KERNEL_EVENTS_PERSISTENT_INTERNAL_H */
