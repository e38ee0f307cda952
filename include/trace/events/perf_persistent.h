/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM perf_persistent

#if !defined(_TRACE_PERF_PERSISTENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PERF_PERSISTENT_H

#include <linux/tracepoint.h>

/*
 * The life of persistent sessions, see kernel/events/persistent/session.c. Each step is
 * traced by the task that causes it, or by the kworker that completes a freeze, with
 * perf_persistent_mutex held. uid is in the initial user namespace.
 */

DECLARE_EVENT_CLASS(perf_persistent_session,
		    TP_PROTO(u32 id, const char *name, unsigned int uid),

		    TP_ARGS(id, name, uid),

		    TP_STRUCT__entry(__field(u32, id)
				     __field(unsigned int, uid)
				     __string(name, name)),

		    TP_fast_assign(__entry->id = id;
				   __entry->uid = uid;
				   __assign_str(name);),

		    TP_printk("id=%u name=%s uid=%u", __entry->id, __get_str(name),
			      __entry->uid)
);

/* The session is complete and can be opened. */
DEFINE_EVENT(perf_persistent_session, perf_persistent_make,
	     TP_PROTO(u32 id, const char *name, unsigned int uid),
	     TP_ARGS(id, name, uid));

/* Its last event was claimed, or a session that was being built was given up. */
DEFINE_EVENT(perf_persistent_session, perf_persistent_end,
	     TP_PROTO(u32 id, const char *name, unsigned int uid),
	     TP_ARGS(id, name, uid));

/* Its buffers are resumed. */
DEFINE_EVENT(perf_persistent_session, perf_persistent_thaw,
	     TP_PROTO(u32 id, const char *name, unsigned int uid),
	     TP_ARGS(id, name, uid));

/* Its buffers are paused, and no writer is in one of them any more. */
TRACE_EVENT(perf_persistent_freeze,
	    TP_PROTO(u32 id, const char *name, unsigned int reason, u64 begin, u64 time),

	    TP_ARGS(id, name, reason, begin, time),

	    TP_STRUCT__entry(__field(u32, id)
			     __field(unsigned int, reason)
			     __field(u64, begin)
			     __field(u64, time)
			     __string(name, name)),

	    TP_fast_assign(__entry->id = id;
			   __entry->reason = reason;
			   __entry->begin = begin;
			   __entry->time = time;
			   __assign_str(name);),

	    TP_printk("id=%u name=%s reason=%s begin=%llu time=%llu", __entry->id,
		      __get_str(name),
		      __print_symbolic(__entry->reason,
				       { 1, "ioctl" }, { 2, "bpf" }, { 3, "oops" },
				       { 4, "panic" }, { 5, "oom" }, { 6, "hung" },
				       { 7, "rcu-stall" }, { 8, "lockup" }),
		      __entry->begin, __entry->time)
);

DECLARE_EVENT_CLASS(perf_persistent_member,
		    TP_PROTO(u32 id, int cpu, u32 index, u64 event_id),

		    TP_ARGS(id, cpu, index, event_id),

		    TP_STRUCT__entry(__field(u32, id)
				     __field(int, cpu)
				     __field(u32, index)
				     __field(u64, event_id)),

		    TP_fast_assign(__entry->id = id;
				   __entry->cpu = cpu;
				   __entry->index = index;
				   __entry->event_id = event_id;),

		    TP_printk("id=%u cpu=%d index=%u event_id=%llu", __entry->id,
			      __entry->cpu, __entry->index, __entry->event_id)
);

/* An event became a member of the session. */
DEFINE_EVENT(perf_persistent_member, perf_persistent_join,
	     TP_PROTO(u32 id, int cpu, u32 index, u64 event_id),
	     TP_ARGS(id, cpu, index, event_id));

/* It was taken back. */
DEFINE_EVENT(perf_persistent_member, perf_persistent_claim,
	     TP_PROTO(u32 id, int cpu, u32 index, u64 event_id),
	     TP_ARGS(id, cpu, index, event_id));

/* A call fails with @err, for a reason that the number alone does not tell. */
TRACE_EVENT(perf_persistent_refuse,
	    TP_PROTO(int err, const char *reason),

	    TP_ARGS(err, reason),

	    TP_STRUCT__entry(__field(int, err)
			     __string(reason, reason)),

	    TP_fast_assign(__entry->err = err;
			   __assign_str(reason);),

	    TP_printk("err=%d reason=%s", __entry->err, __get_str(reason))
);

#endif /* _TRACE_PERF_PERSISTENT_H */

#include <trace/define_trace.h>
