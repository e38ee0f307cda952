/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Persistent events: what the files of this directory share
 *
 * Each file calls only files below it.
 *
 *	core.c, ring_buffer.c		hooks.h: open, ioctl, release, wakeup
 *	----------------------------------------------------------------------------
 *	reader.c			an event that was opened again
 *	   |     |
 *	   |   session_fd.c		a session as a file
 *	   |     |
 *	ioctl.c  |			the ioctls of a creator's fd
 *	   |     |
 *	   |     |   boot.c		sessions that the kernel starts
 *	   |     |     |
 *	   |     |     |  hotplug.c	CPUs that go offline and return
 *	   |     |     |     |
 *	   +----++-----+-----+
 *	        |
 *	        |   freeze_bpf.c	causes of a freeze: a BPF program,
 *	        |   freeze_on.c		kernel.perf_persistent_freeze
 *	        |         |
 *	    session.c     |		sessions: states, their beginning and end;
 *	        |         |		the theory of operation
 *	        |   +-----+
 *	    freeze.c			stop all buffers of a session, and go on
 *	        |
 *	    notify.c			notifications: poll(), uevents, audit records
 *	        |
 *	    sysfs.c			files in sysfs
 *	        |
 *	    member.c			an event in a session: buffer, charge, state
 *	     |     |
 *	     |   blackbox.h		memory that survives the kernel
 *	     |     |
 *	     |   access.c		permission to open and read, to change a session;
 *	     |     |			structs from user space
 *	     |     |
 *	     |   owner.c		the owner: names, limit, namespaces
 *	     |     |
 *	memory.c   cgroup.c		the charge to a memory cgroup; events of a cgroup
 *	     |          |
 *	 trace.c   registry.c		tracepoints, why a call is refused; the list of
 *					sessions, its locks
 *	----------------------------------------------------------------------------
 *	../internal.h			core.c, ring_buffer.c, rb_charge.c, rb_memory.c,
 *					rb_seal.c, rb_snapshot.c
 */
#ifndef _KERNEL_EVENTS_PERSISTENT_INTERNAL_H
#define _KERNEL_EVENTS_PERSISTENT_INTERNAL_H

#include <linux/build_bug.h>
#include <linux/device.h>
#include <linux/gfp_types.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/stddef.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <uapi/linux/perf_persistent.h>

#include "../internal.h"
#include "hooks.h"
#include "trace.h"

/* A member of a struct of the ABI is where programs expect it. */
#define CHECK_OFFSET(type, field, offset) \
	BUILD_BUG_ON(offsetof(struct type, field) != (offset))

/* Size of the data area of an event that comes without a buffer, in bytes. */
#define PERF_PERSISTENT_DEFAULT_SIZE	(512UL << 10)
#define PERF_PERSISTENT_MAX_SIZE	SZ_1G

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

struct pid_namespace;
struct seq_file;
struct user_namespace;

/**
 * struct perf_persistent_freeze - when and why a session was frozen, see freeze.c
 * @state: enum perf_persistent_freeze_state, and the reason
 * @gp: the RCU grace period after which no writer is in a buffer
 * @begin: local_clock() before the first buffer was paused
 * @time: local_clock() after the last buffer was paused; below, other clocks
 * @mono: CLOCK_MONOTONIC
 * @raw: CLOCK_MONOTONIC_RAW
 * @boot: CLOCK_BOOTTIME
 * @real: CLOCK_REALTIME
 * @tai: CLOCK_TAI
 */
struct perf_persistent_freeze {
	atomic_t			state;
	unsigned long			gp;
	u64				begin;
	u64				time;
	u64				mono;
	u64				raw;
	u64				boot;
	u64				real;
	u64				tai;
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
 * @limited: made without CAP_PERFMON: it counts for kernel.perf_persistent_max
 * @user_ns: user namespace of the creator, with a reference
 * @pid_ns: pid namespace of the creator, with a reference
 * @memory: what its memory cgroup is charged, see memory.c
 * @name: unique among the sessions that have not ended
 * @event_attr: .../persistent/events/NAME
 * @freeze: is it frozen?
 * @waitq: of those that poll the session
 * @changes: counts what they are told
 * @box: the black box in which its buffers lie, or NULL
 * @box_entry: number of its entry there
 * @parts: of the scattered image that describe it, if @box is NULL
 * @rcu: for perf_persistent_freeze_all(), which finds the session without a lock
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
	bool				limited;
	struct user_namespace		*user_ns;
	struct pid_namespace		*pid_ns;
	struct perf_persistent_memory	memory;
	char				name[PERF_PERSISTENT_NAME_LEN];
	struct device_attribute		event_attr;
	struct perf_persistent_freeze	freeze;
	wait_queue_head_t		waitq;
	atomic_t			changes;
#ifdef CONFIG_PERF_PERSISTENT_BLACKBOX
	struct perf_blackbox		*box;
	u32				box_entry;
	struct perf_blackbox_parts	*parts;
#endif
	struct rcu_head			rcu;
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
 * @memory: what its memory cgroup is charged for the event, see memory.c
 * @target_ns: pid namespace of the task that it was opened for, with a reference, or NULL
 * @claimed: taken back; no longer on session->events
 * @claim_entry: private to perf_persistent_take_all()
 * @follower_entry: on perf_persistent_followers, see cgroup.c; else empty
 * @cgroup_ended: its cgroup has gone, and it leaves no record any more
 * @member_entry: on session->members
 * @box_event: its entry in the image that has its session, or NULL
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
	struct perf_persistent_memory	memory;
	struct pid_namespace		*target_ns;
	bool				claimed;
	struct list_head		claim_entry;
#ifdef CONFIG_CGROUP_PERF
	struct list_head		follower_entry;
	bool				cgroup_ended;
#endif
	struct list_head		member_entry;
#ifdef CONFIG_PERF_PERSISTENT_BLACKBOX
	struct perf_blackbox_event	*box_event;
#endif
	struct rcu_head			rcu;
};

/* perf_persistent_freeze::state, see freeze.c */
enum perf_persistent_freeze_state {
	PERF_PERSISTENT_THAWED,
	PERF_PERSISTENT_PAUSING,
	PERF_PERSISTENT_FREEZING,
	PERF_PERSISTENT_FROZEN,
	PERF_PERSISTENT_THAWING,
	PERF_PERSISTENT_REFREEZE,
};

#define PERF_PERSISTENT_REASON_SHIFT	8
#define PERF_PERSISTENT_FREEZE_MASK	((1 << PERF_PERSISTENT_REASON_SHIFT) - 1)

static inline int perf_persistent_freeze_state(struct perf_persistent_session *s)
{
	return atomic_read_acquire(&s->freeze.state) & PERF_PERSISTENT_FREEZE_MASK;
}

/* PERF_PERSISTENT_FREEZE_* of the last freeze, 0 if there was none */
static inline unsigned int perf_persistent_freeze_reason(struct perf_persistent_session *s)
{
	return atomic_read(&s->freeze.state) >> PERF_PERSISTENT_REASON_SHIFT;
}

/* In FREEZING: is no writer in a buffer any more? */
static inline bool perf_persistent_is_settled(struct perf_persistent_session *s)
{
	return poll_state_synchronize_rcu(READ_ONCE(s->freeze.gp));
}

/* PERF_PERSISTENT_STATE_* bits of a freeze; the member may have been claimed since. */
static inline u32 perf_persistent_frozen_bits(struct perf_persistent_event *pe)
{
	if (!READ_ONCE(pe->rb->paused))
		return 0;

	switch (perf_persistent_freeze_state(pe->session)) {
	case PERF_PERSISTENT_FREEZING:
		if (perf_persistent_is_settled(pe->session))
			return PERF_PERSISTENT_STATE_FROZEN;
		fallthrough;
	case PERF_PERSISTENT_PAUSING:
		return PERF_PERSISTENT_STATE_FROZEN | PERF_PERSISTENT_STATE_FREEZING;
	default:
		return PERF_PERSISTENT_STATE_FROZEN;
	}
}

/* An event's place in session->events: those of one CPU follow each other. */
#define PERF_PERSISTENT_INDEX_BITS	16
#define PERF_PERSISTENT_INDEX_MAX	((1U << PERF_PERSISTENT_INDEX_BITS) - 1)

static inline unsigned long perf_persistent_key(int cpu, u32 index)
{
	/* The CPU of an event that follows its task is -1. */
	return ((unsigned long)(cpu + 1) << PERF_PERSISTENT_INDEX_BITS) | index;
}

/* registry.c; what the locks protect: see "Locking" in session.c */
extern struct mutex perf_persistent_mutex;
extern struct mutex perf_persistent_lock;
extern struct list_head perf_persistent_sessions;
extern struct kobject *perf_persistent_dir;

static inline void perf_persistent_assert_readable(void)
{
	lockdep_assert(lockdep_is_held(&perf_persistent_mutex) ||
		       lockdep_is_held(&perf_persistent_lock));
}

bool perf_persistent_name_taken(const char *name);

/* member.c */
u32 perf_persistent_buffer_index(struct perf_persistent_event *pe);
unsigned long perf_persistent_start_walk(void);
bool perf_persistent_first_visit(struct perf_buffer *rb, unsigned long walk);
bool perf_persistent_gone(struct perf_persistent_event *pe);
u32 perf_persistent_event_state(struct perf_persistent_event *pe);
bool perf_persistent_all_members(struct perf_persistent_session *s, struct perf_buffer *rb,
				 struct perf_event *joining);
int perf_persistent_attach(struct perf_persistent_event *pe, unsigned long nr_pages,
			   bool complete);
void perf_persistent_put(struct perf_persistent_event *pe);

/*
 * For what the calls of a user allocate: charged to the memory cgroup of the caller. Where there
 * is no room, the allocation fails, and does not invoke the OOM killer.
 */
#define PERF_PERSISTENT_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL)

/* memory.c */
#ifdef CONFIG_MEMCG
int perf_persistent_charge(struct perf_persistent_memory *memory, size_t bytes);
void perf_persistent_uncharge(struct perf_persistent_memory *memory);
int perf_persistent_put_charge(struct perf_buffer *rb, struct perf_persistent_memory *memory);
void perf_persistent_take_charge(struct perf_buffer *rb, struct perf_persistent_memory *memory);
#else
static inline int perf_persistent_charge(struct perf_persistent_memory *memory, size_t bytes)
{
	return 0;
}

static inline void perf_persistent_uncharge(struct perf_persistent_memory *memory) { }

static inline int perf_persistent_put_charge(struct perf_buffer *rb,
					     struct perf_persistent_memory *memory)
{
	return 0;
}

static inline void perf_persistent_take_charge(struct perf_buffer *rb,
					       struct perf_persistent_memory *memory) { }
#endif

/* cgroup.c */
#ifdef CONFIG_CGROUP_PERF
void perf_persistent_follow_cgroup(struct perf_persistent_event *pe);
void perf_persistent_leave_cgroup(struct perf_persistent_event *pe);
bool perf_persistent_cgroup_gone(struct perf_persistent_event *pe);
void perf_persistent_show_cgroup(struct seq_file *m, struct perf_event *event);
#else
static inline void perf_persistent_follow_cgroup(struct perf_persistent_event *pe) { }
static inline void perf_persistent_leave_cgroup(struct perf_persistent_event *pe) { }

static inline bool perf_persistent_cgroup_gone(struct perf_persistent_event *pe)
{
	return false;
}

static inline void perf_persistent_show_cgroup(struct seq_file *m, struct perf_event *event) { }
#endif

/* owner.c */
bool perf_persistent_sees(struct pid_namespace *ns);
bool perf_persistent_may_use(struct perf_persistent_session *s);
bool perf_persistent_may_look(struct perf_persistent_session *s);
bool perf_persistent_may_end(struct perf_persistent_session *s);
bool perf_persistent_name_valid(const char *name);
bool perf_persistent_is_called(struct perf_persistent_session *s, const char *name);
int perf_persistent_set_owner(struct perf_persistent_session *s, const char *name);
void perf_persistent_put_owner(struct perf_persistent_session *s);

/* access.c */
struct pid_namespace *perf_persistent_get_target_ns(struct perf_event *event);
u32 perf_persistent_asks(struct perf_persistent_event *pe);
int perf_persistent_may_open(struct perf_event *event);
int perf_persistent_may_read(struct perf_persistent_event *pe);
int perf_persistent_ask_lsm(struct perf_persistent_session *s,
			    int (*may)(struct perf_event *event));
int perf_persistent_may_control(struct perf_persistent_session *s);
void perf_persistent_copy_attr(struct perf_event *event, struct perf_event_attr *attr);
int perf_persistent_copy_in(void *dst, size_t ksize, size_t min_size, void __user *uarg,
			    u32 *size);

/* notify.c */
enum perf_persistent_note {
	PERF_PERSISTENT_NOTE_MAKE,
	PERF_PERSISTENT_NOTE_END,
	PERF_PERSISTENT_NOTE_FREEZE,
	PERF_PERSISTENT_NOTE_THAW,
};

bool perf_persistent_woken(atomic_t *told, atomic_t *again, int count, poll_table *wait);
void perf_persistent_tell(struct perf_persistent_event *pe);
void perf_persistent_tell_all(struct perf_persistent_session *s, enum perf_persistent_note note);
void perf_persistent_note(struct perf_persistent_session *s, enum perf_persistent_note note,
			  bool listed);
void perf_persistent_note_join(struct perf_persistent_event *pe);
void perf_persistent_note_claim(struct perf_persistent_event *pe);
void perf_persistent_audit(struct perf_persistent_session *s, const char *op);

/* freeze.c */
int perf_persistent_freeze_now(struct perf_persistent_session *s, unsigned int reason);
void perf_persistent_freeze_all(unsigned int reason);
int perf_persistent_freeze(struct perf_persistent_session *s);
int perf_persistent_thaw(struct perf_persistent_session *s);
bool perf_persistent_is_frozen(struct perf_persistent_session *s);
void perf_persistent_freeze_joined(struct perf_persistent_event *pe);
u64 perf_persistent_freeze_time(struct perf_persistent_event *pe);
void perf_persistent_fill_freeze(struct perf_persistent_session *s,
				 struct perf_persistent_session_info *info);

/* freeze_bpf.c, for BPF programs */
int bpf_perf_persistent_freeze(const char *name__str);

/* blackbox.c: memory that survives a reset */
#ifdef CONFIG_PERF_PERSISTENT_BLACKBOX
int perf_blackbox_look(const char *label);
int perf_blackbox_place(struct perf_persistent_session *s, const char *label);
const char *perf_blackbox_label(struct perf_persistent_session *s);
void perf_blackbox_remove(struct perf_persistent_session *s);
void perf_blackbox_end_notes(struct perf_persistent_session *s);
const struct perf_rb_memory *perf_blackbox_memory(struct perf_persistent_session *s);
void perf_blackbox_join(struct perf_persistent_event *pe);
void perf_blackbox_leave(struct perf_persistent_event *pe);
bool perf_blackbox_has_died(void);
long perf_blackbox_ioctl(struct perf_persistent_session *s, unsigned int cmd, void __user *uarg);
#else
static inline int perf_blackbox_look(const char *label)
{
	return -EOPNOTSUPP;
}

static inline int perf_blackbox_place(struct perf_persistent_session *s, const char *label)
{
	return label ? -EOPNOTSUPP : 0;
}

static inline const char *perf_blackbox_label(struct perf_persistent_session *s)
{
	return NULL;
}

static inline void perf_blackbox_remove(struct perf_persistent_session *s) { }
static inline void perf_blackbox_end_notes(struct perf_persistent_session *s) { }

static inline const struct perf_rb_memory *
perf_blackbox_memory(struct perf_persistent_session *s)
{
	return &perf_rb_kernel_memory;
}

static inline void perf_blackbox_join(struct perf_persistent_event *pe) { }
static inline void perf_blackbox_leave(struct perf_persistent_event *pe) { }

static inline bool perf_blackbox_has_died(void)
{
	return false;
}

static inline long perf_blackbox_ioctl(struct perf_persistent_session *s, unsigned int cmd,
				       void __user *uarg)
{
	return -ENOTTY;
}
#endif

/* sysfs.c */
extern const struct sysfs_ops perf_persistent_sysfs_ops;
extern const struct attribute_group *perf_persistent_session_groups[];
int perf_persistent_publish(struct perf_persistent_session *s);
void perf_persistent_unpublish(struct perf_persistent_session *s);
void perf_persistent_uevent(struct perf_persistent_session *s, const char *event);

/* session.c */
u32 perf_persistent_nr_events(struct perf_persistent_session *s, int cpu);
struct perf_persistent_session *perf_persistent_get(u64 id);
struct perf_persistent_event *perf_persistent_find(u64 id, int cpu, u64 index);
int perf_persistent_unclaim(struct perf_event *event, const struct perf_persistent_arg *arg,
			    u32 *id);
int perf_persistent_claim(struct perf_persistent_event *pe);
struct perf_persistent_session *perf_persistent_make(const char *name, struct perf_event **events,
						     unsigned int nr, unsigned long size,
						     const char *label);
int perf_persistent_end_all(struct perf_persistent_session *s);

/* ioctl.c */
long perf_persistent_info(struct perf_persistent_event *pe, void __user *uarg);

/* session_fd.c */
int perf_persistent_open_session(const struct perf_event_attr *attr, int f_flags);

#endif /* _KERNEL_EVENTS_PERSISTENT_INTERNAL_H */
