// SPDX-License-Identifier: GPL-2.0
/*
 * Deliver tracepoint hits to perf events, with as few instructions as possible
 *
 * Theory of operation
 * ===================
 *
 * A hit of a tracepoint, kprobe or uprobe is delivered to all its listeners: the
 * events on the list of this CPU, and for some tracepoints those of a target task.
 * The general path collects what a record consists of in a perf_sample_data, and
 * writes it to the ring buffer field by field. Each field has a test, a call and a
 * check for the end of a page. For an event that is recorded by "perf record -e
 * TRACEPOINT" this takes 1,400 instructions.
 *
 * The fast path writes the same record with one reservation, plain stores and one
 * copy of the payload. The general path remains the reference for what a record
 * contains: CONFIG_PERF_FAST_CHECK compares each record with what the general path
 * would have written.
 *
 * Which events
 * ------------
 * perf_fast_init() decides when an event is opened or inherited, from what cannot
 * change later: attr and the overflow handler. The result is perf_event::fast, the
 * template of the event's records; 0 means that the general path is taken always:
 *
 *  - sample types with data of variable size beyond the payload, or of another
 *    context (call chains, registers, stacks, reads, branches). Of the fields behind
 *    the payload, only the cgroup is written
 *  - sampling by frequency, sigtrap, AUX pause and resume, exclude_kernel
 *  - an overflow handler that is not perf's own: events of the kernel, BPF
 *
 * What can change while the event lives is checked at each hit, before anything is
 * written. In these cases the general path is taken for this hit:
 *
 *  - the event is not active, or throttled
 *  - there is no ring buffer, it is paused, or it has a lost record to report
 *  - IOC_REFRESH limits the number of samples
 *  - somebody waits for a signal (O_ASYNC)
 *  - the period is not 1, of an event without PERF_SAMPLE_PERIOD
 *  - the payload is not padded, see fast_size()
 *
 * Who changes what, and what a hit sees of it
 * -------------------------------------------
 * A hit runs with preemption disabled and has the recursion context, as in the general
 * path. From the check of event->state to the end of the record interrupts are off.
 *
 *  template		perf_event_alloc() writes it once, before the event is on any list.
 *			There is no ioctl that changes what it depends on:
 *			MODIFY_ATTRIBUTES is for breakpoints only, IOC_PERIOD keeps
 *			sampling by period and is seen in hw.sample_period.
 *  event		The list of listeners is an RCU list. The event is freed a grace
 *			period after it has left the list, so a hit may still see it. Then
 *			its state is no longer ACTIVE: disable, removal, exit and the
 *			CPU's hotplug change the state with interrupts off on the CPU of
 *			the hit (event_function_call()), so before or after a record.
 *  parent		A child holds a reference on its parent for as long as it is on a
 *			list. The parent is freed a grace period after the last reference is
 *			dropped. The buffer, the filter, fasync and the ids are the parent's.
 *  buffer		SET_OUTPUT, mmap() and the last munmap() change event->rb. The one
 *			that a hit has loaded is freed after a grace period. Writers of a
 *			buffer run on one CPU; see perf_mmap().
 *  pause		PAUSE_OUTPUT and a session's freeze store rb->paused. A hit that has
 *			not seen this has completed its record a grace period later; a
 *			freeze waits for that. A hit takes the time of its record first and
 *			looks at rb->paused afterwards, as persistent/freeze.c asks for: no
 *			record in a frozen buffer is later than the freeze. A sealed buffer
 *			takes no new events; a hit has nothing to check for that.
 *  filter		SET_FILTER sets it once, under event_mutex. It is read as in the
 *			general path.
 *  BPF programs	They are attached to the tracepoint, kprobe or uprobe of the event,
 *			and run before the delivery in perf_tp_event()'s callers. They are
 *			no overflow handlers. So SET_BPF changes nothing here.
 *  module unload	A module's tracepoints have no listeners when it goes: each event
 *			has a reference on the module.
 *
 * Writers of one buffer
 * ---------------------
 * NMIs come in between anywhere. They write to the same buffer as the general path
 * provides for (see perf_output_get_handle() and perf_output_put_handle()): a writer
 * counts itself in rb->nest, moves rb->head with cmpxchg, and only the outermost
 * publishes data_head. fast_reserve() and fast_commit() follow these functions step by
 * step. Change them together.
 *
 * An inherited event writes to the buffer of its parent, with the parent's id and PID
 * namespace. So @event is the listener and @out the event that has the buffer.
 */
#include <linux/cgroup.h>
#include <linux/circ_buf.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/sched/clock.h>
#include <linux/trace_events.h>

#include "fast.h"
#include "internal.h"

/* What perf record asks for: one event, several events of one, of different types */
#define FAST_TYPE_PLAIN		(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
				 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)
#define FAST_TYPE_ID		(FAST_TYPE_PLAIN | PERF_SAMPLE_ID)
#define FAST_TYPE_IDENTIFIER	(FAST_TYPE_PLAIN | PERF_SAMPLE_IDENTIFIER)

/* The field behind the payload. Without CONFIG_CGROUP_PERF no event can have it. */
#define FAST_LAST_WORD		PERF_SAMPLE_CGROUP

/* perf_event::fast: the size of header and fields, and */
#define FAST_SIZE		0x00f8
#define FAST_PLAIN		0x0001	/* exactly FAST_TYPE_PLAIN, but for the cgroup */
#define FAST_ID			0x0002	/* exactly FAST_TYPE_ID, but for the cgroup */
#define FAST_IDENTIFIER		0x0004	/* exactly FAST_TYPE_IDENTIFIER, but for the cgroup */
#define FAST_ANY		0x0100	/* another type, or wakeup_events */
#define FAST_BACKWARD		0x0200	/* attr.write_backward */
#define FAST_CGROUP		0x0400	/* with the cgroup */

#define FAST_COMMON		(FAST_PLAIN | FAST_ID | FAST_IDENTIFIER)

/* Header and fields, and the size of the payload, in 8 bytes each */
#define FAST_FIXED_MAX		11

/**
 * perf_fast_init - choose the template of an event's records
 * @event: the event, being opened; attr and overflow handler are set
 *
 * It is chosen for all events. Only tracing events use it.
 */
void perf_fast_init(struct perf_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	u64 type = attr->sample_type;
	unsigned int fast;

	event->fast = 0;

	if (type & ~(PERF_SAMPLE_FIRST_WORDS | PERF_SAMPLE_RAW | FAST_LAST_WORD))
		return;
	if (!is_sampling_event(event) || attr->freq || attr->sigtrap ||
	    attr->aux_pause || attr->aux_resume || attr->exclude_kernel)
		return;
	if (!is_default_overflow_handler(event))
		return;

	fast = sizeof(struct perf_event_header);
	fast += sizeof(u64) * hweight64(type & (PERF_SAMPLE_FIRST_WORDS | FAST_LAST_WORD));
	BUILD_BUG_ON(sizeof(struct perf_event_header) + sizeof(u64) * (9 + 1) > FAST_SIZE);

	if (type & FAST_LAST_WORD)
		fast |= FAST_CGROUP;
	type &= ~FAST_LAST_WORD;
	if (!attr->watermark && attr->wakeup_events)
		fast |= FAST_ANY;
	else if (type == FAST_TYPE_PLAIN)
		fast |= FAST_PLAIN;
	else if (type == FAST_TYPE_ID)
		fast |= FAST_ID;
	else if (type == FAST_TYPE_IDENTIFIER)
		fast |= FAST_IDENTIFIER;
	else
		fast |= FAST_ANY;
	if (is_write_backward(event))
		fast |= FAST_BACKWARD;

	event->fast = fast;
}

/*
 * The functions of the fast path are inlined and take the hit by value, so that it stays
 * in registers. Those for what is rare take a pointer to a copy.
 */

/* Is this hit in the kernel of the host, and has it no other flags? */
static __always_inline bool fast_kernel_ip(struct perf_fast_hit hit)
{
#ifdef CONFIG_X86_64
	if (perf_guest_state())
		return false;
	return hit.caller || !(user_mode(hit.regs) || hit.regs->flags & PERF_EFLAGS_EXACT);
#else
	return false;
#endif
}

/*
 * Tracepoints, kprobes and uprobes pad their payloads, so that the record ends at a
 * multiple of 8 bytes: the size of the payload is before it, in 4 bytes.
 */
static __always_inline bool fast_size(struct perf_fast_hit hit)
{
	return hit.size % sizeof(u64) == sizeof(u32);
}

/* perf_event::rb is an RCU pointer, but is not declared as one. */
static __always_inline struct perf_buffer *fast_buffer(struct perf_event *out)
{
	return rcu_dereference_sched(*(__force struct perf_buffer __rcu **)&out->rb);
}

static __always_inline u64 fast_clock(struct perf_event *event)
{
	/* A direct call, without the preempt_disable() of local_clock() */
	if (likely(event->clock == &local_clock))
		return local_clock_noinstr();
	return event->clock();
}

/*
 * The cgroup of the task, as in perf_prepare_sample(). It is protected by RCU. It is the last
 * word of a record: payloads are padded, see fast_size().
 */
static __always_inline u64 fast_cgroup(void)
{
#ifdef CONFIG_CGROUP_PERF
	return cgroup_id(task_css_check(current, perf_event_cgrp_id, 1)->cgroup);
#else
	return 0;
#endif
}

/*
 * Write header and fields of a record of @size bytes, in the order of
 * perf_output_sample(). @type is a constant, except in fast_fill_any().
 */
static __always_inline u64 *
fast_fill(u64 *p, u64 type, struct perf_event *event, struct perf_event *out,
	  struct perf_fast_hit hit, u64 time, unsigned int size)
{
	struct perf_event_header *header = (void *)p++;
	u64 id = out->id, ip;

	header->type = PERF_RECORD_SAMPLE;
	header->size = size;
	if (likely(fast_kernel_ip(hit))) {
		header->misc = PERF_RECORD_MISC_KERNEL;
		ip = hit.regs->ip;
	} else {
		header->misc = perf_event_misc(event, hit.regs);
		ip = perf_event_ip(event, hit.regs);
	}

	if (type & PERF_SAMPLE_IDENTIFIER)
		*p++ = id;
	if (type & PERF_SAMPLE_IP)
		*p++ = ip;
	if (type & PERF_SAMPLE_TID) {
		u32 *q = (u32 *)p++;

		if (likely(out->ns == &init_pid_ns && pid_alive(current))) {
			q[0] = task_tgid_nr(current);
			q[1] = task_pid_nr(current);
		} else {
			q[0] = perf_event_pid(out, current);
			q[1] = perf_event_tid(out, current);
		}
	}
	if (type & PERF_SAMPLE_TIME)
		*p++ = time;
	if (type & PERF_SAMPLE_ADDR)
		*p++ = 0;
	if (type & PERF_SAMPLE_ID)
		*p++ = id;
	if (type & PERF_SAMPLE_STREAM_ID)
		*p++ = event->id;
	if (type & PERF_SAMPLE_CPU) {
		u32 *q = (u32 *)p++;

		q[0] = raw_smp_processor_id();
		q[1] = 0;
	}
	if (type & PERF_SAMPLE_PERIOD)
		*p++ = hit.count;
	return p;
}

static noinline u64 *
fast_fill_any(u64 *p, struct perf_event *event, struct perf_event *out,
	      const struct perf_fast_hit *hit, u64 time, unsigned int size)
{
	return fast_fill(p, event->attr.sample_type, event, out, *hit, time, size);
}

/*
 * Copy a payload behind its size, see fast_size(). Payloads are short: a call of memcpy()
 * would take longer than the copy.
 */
static __always_inline void fast_copy(void *to, const void *from, unsigned int size)
{
	const u64 *f = from;
	u64 *t = to;

	if (!IS_ENABLED(CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS) || !IS_ENABLED(CONFIG_64BIT)) {
		memcpy(to, from, size);
		return;
	}

	/* Keep the compiler from computing the number of rounds beforehand. */
	OPTIMIZER_HIDE_VAR(size);
	while (size >= 8 * sizeof(u64)) {
		t[0] = f[0];
		t[1] = f[1];
		t[2] = f[2];
		t[3] = f[3];
		t[4] = f[4];
		t[5] = f[5];
		t[6] = f[6];
		t[7] = f[7];
		f += 8;
		t += 8;
		size -= 8 * sizeof(u64);
		OPTIMIZER_HIDE_VAR(size);
	}
	if (size & 4 * sizeof(u64)) {
		t[0] = f[0];
		t[1] = f[1];
		t[2] = f[2];
		t[3] = f[3];
		f += 4;
		t += 4;
	}
	if (size & 2 * sizeof(u64)) {
		t[0] = f[0];
		t[1] = f[1];
		f += 2;
		t += 2;
	}
	if (size & sizeof(u64))
		*t++ = *f++;
	*(u32 *)t = *(const u32 *)f;
}

/* A record that crosses the end of a page: compose the fixed part on the stack. */
static noinline void
fast_straddle(struct perf_event *event, struct perf_event *out, struct perf_buffer *rb,
	      unsigned long offset, const struct perf_fast_hit *hit, u64 time,
	      unsigned int size)
{
	unsigned long chunk = PAGE_SIZE << page_order(rb);
	u64 fixed[FAST_FIXED_MAX] __uninitialized, *p, cgroup;
	struct perf_output_handle handle __uninitialized;
	unsigned int len;

	handle.rb = rb;
	handle.page = (offset >> (PAGE_SHIFT + page_order(rb))) & (rb->nr_pages - 1);
	handle.addr = rb->data_pages[handle.page] + (offset & (chunk - 1));
	handle.size = chunk - (offset & (chunk - 1));

	p = fast_fill_any(fixed, event, out, hit, time, size);
	len = (void *)p - (void *)fixed;
	if (event->attr.sample_type & PERF_SAMPLE_RAW) {
		*(u32 *)p = hit->size;
		perf_output_copy(&handle, fixed, len + sizeof(u32));
		perf_output_copy(&handle, hit->record, hit->size);
	} else {
		perf_output_copy(&handle, fixed, len);
	}
	if (event->attr.sample_type & FAST_LAST_WORD) {
		cgroup = fast_cgroup();
		perf_output_copy(&handle, &cgroup, sizeof(cgroup));
	}
}

static noinline void fast_wakeup(struct perf_event *out, struct perf_buffer *rb)
{
	struct perf_output_handle handle = { .rb = rb, .event = out };

	perf_output_wakeup(&handle);
}

/* See the end of perf_output_sample(). */
static void fast_count_wakeup_events(struct perf_event *event, struct perf_buffer *rb)
{
	int wakeup_events = event->attr.wakeup_events;

	if (event->attr.watermark || !wakeup_events)
		return;

	if (local_inc_return(&rb->events) >= wakeup_events) {
		local_sub(wakeup_events, &rb->events);
		local_inc(&rb->wakeup);
	}
}

/*
 * Reserve @size bytes, as __perf_output_begin() does for a buffer without lost
 * records. Return false if there is no room.
 */
static __always_inline bool
fast_reserve(struct perf_buffer *rb, unsigned int size, bool backward, unsigned long *offsetp)
{
	unsigned long tail, offset, head;

	offset = local_read(&rb->head);
	do {
		head = offset;
		if (unlikely(!rb->overwrite)) {
			unsigned long space;

			/* A, matches D in perf_output_put_handle() */
			tail = READ_ONCE(rb->user_page->data_tail);
			space = backward ? CIRC_SPACE(tail, head, perf_data_size(rb)) :
					   CIRC_SPACE(head, tail, perf_data_size(rb));
			if (unlikely(space < size))
				return false;
		}
		head += backward ? -(unsigned long)size : size;
	} while (!local_try_cmpxchg(&rb->head, &offset, head));

	if (backward) {
		offset = head;
		head = -head;
	}
	*offsetp = offset;

	if (unlikely(head - local_read(&rb->wakeup) > rb->watermark))
		local_add(rb->watermark, &rb->wakeup);
	return true;
}

/*
 * The end of a record: what perf_output_put_handle() does. Its comments tell why the
 * steps have this order. Return true if this was the outermost writer.
 */
static __always_inline bool fast_commit(struct perf_buffer *rb)
{
	unsigned int nest = READ_ONCE(rb->nest);
	unsigned long head;

	if (unlikely(nest > 1)) {
		WRITE_ONCE(rb->nest, nest - 1);
		return false;
	}
again:
	barrier();
	head = local_read(&rb->head);

	smp_wmb(); /* B, matches C in perf_output_put_handle() */
	WRITE_ONCE(rb->user_page->data_head, head);

	barrier();
	WRITE_ONCE(rb->nest, 0);

	barrier();
	if (unlikely(head != local_read(&rb->head))) {
		WRITE_ONCE(rb->nest, 1);
		goto again;
	}
	return true;
}

/* As __perf_event_account_interrupt(), without throttling: a hit is one sample. */
static __always_inline void fast_account(struct hw_perf_event *hwc)
{
	u64 seq = __this_cpu_read(perf_throttled_seq);

	if (unlikely(seq != hwc->interrupts_seq)) {
		hwc->interrupts_seq = seq;
		hwc->interrupts = 0;
	}
	hwc->interrupts++;
}

/*
 * One record, to where it goes. Return false if nothing was done: the general path is
 * to be taken. @any is a constant: without it, the record has one of the common types.
 */
static __always_inline bool
fast_store(struct perf_event *event, struct perf_event *out, unsigned int fast,
	   struct perf_fast_hit hit, bool any)
{
	struct hw_perf_event *hwc = &event->hw;
	unsigned long offset, room, wakeup, flags;
	unsigned int size, raw, shift;
	struct perf_buffer *rb;
	u64 *p, time = 0;

	/* See perf_swevent_event(). */
	local_irq_save(flags);
	if (unlikely(event->state != PERF_EVENT_STATE_ACTIVE ||
		     hwc->interrupts == MAX_INTERRUPTS))
		goto general;
	if (unlikely((unsigned long)out->fasync | atomic_read(&event->event_limit)))
		goto general;
	if (any && !(event->attr.sample_type & PERF_SAMPLE_PERIOD) &&
	    (hit.count != 1 || hwc->sample_period != 1))
		goto general;

	/* The time comes before rb->paused, see persistent/freeze.c. */
	if (!any || event->attr.sample_type & PERF_SAMPLE_TIME)
		time = fast_clock(event);
	rb = fast_buffer(out);
	if (unlikely(!rb || READ_ONCE(rb->paused) | local_read(&rb->lost)))
		goto general;

	local64_add(hit.count, &event->count);
	fast_account(hwc);
	event->pending_kill = POLL_IN;

	raw = !any || event->attr.sample_type & PERF_SAMPLE_RAW ? hit.size + sizeof(u32) : 0;
	size = (fast & FAST_SIZE) + raw;

	/* See perf_output_get_handle(). */
	WRITE_ONCE(rb->nest, READ_ONCE(rb->nest) + 1);
	wakeup = local_read(&rb->wakeup);

	if (unlikely(!(fast & FAST_BACKWARD ? fast_reserve(rb, size, true, &offset) :
					      fast_reserve(rb, size, false, &offset)))) {
		local_inc(&rb->lost);
		atomic64_inc(&out->lost_samples);
		goto commit;
	}

	shift = PAGE_SHIFT + page_order(rb);
	room = (1UL << shift) - (offset & ((1UL << shift) - 1));
	if (unlikely(room < size)) {
		const struct perf_fast_hit copy = hit;

		fast_straddle(event, out, rb, offset, &copy, time, size);
	} else {
		p = rb->data_pages[(offset >> shift) & (rb->nr_pages - 1)] +
		    (offset & ((1UL << shift) - 1));
		/* First: behind the payload, where it ends would have to be kept. */
		if (fast & FAST_CGROUP)
			*(u64 *)((void *)p + size - sizeof(u64)) = fast_cgroup();
		if (any)
			p = fast_fill(p, event->attr.sample_type, event, out, hit, time, size);
		else if (fast & FAST_PLAIN)
			p = fast_fill(p, FAST_TYPE_PLAIN, event, out, hit, time, size);
		else if (fast & FAST_ID)
			p = fast_fill(p, FAST_TYPE_ID, event, out, hit, time, size);
		else
			p = fast_fill(p, FAST_TYPE_IDENTIFIER, event, out, hit, time, size);
		if (!any || raw) {
			*(u32 *)p = hit.size;
			fast_copy((u32 *)p + 1, hit.record, hit.size);
		}
	}
	if (IS_ENABLED(CONFIG_PERF_FAST_CHECK)) {
		const struct perf_fast_hit copy = hit;

		perf_fast_compare(event, rb, offset, &copy, size);
	}
	if (any)
		fast_count_wakeup_events(event, rb);
commit:
	if (likely(fast_commit(rb)) && unlikely(wakeup != local_read(&rb->wakeup)))
		fast_wakeup(out, rb);
	local_irq_restore(flags);
	return true;

general:
	local_irq_restore(flags);
	return false;
}

static noinline bool
fast_store_any(struct perf_event *event, struct perf_event *out, unsigned int fast,
	       const struct perf_fast_hit *hit)
{
	return fast_store(event, out, fast, *hit, true);
}

/* Set what all trace entries begin with, as perf_trace_buf_update(). */
static __always_inline void fast_entry_update(struct trace_entry *entry, u16 type)
{
	unsigned int pc = preempt_count(), rare = pc & ~0xf;
	struct task_struct *curr = current;

	/* Or the compiler reads "current" again for each use. */
	OPTIMIZER_HIDE_VAR(curr);
#ifdef CONFIG_SMP
	rare |= curr->migration_disabled;
#endif
#ifdef CONFIG_PREEMPT_RT
	rare |= softirq_count();
#endif
	if (unlikely(rare || perf_need_resched(curr) || test_preempt_need_resched()) ||
	    !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_SUPPORT)) {
		perf_trace_buf_update(entry, type);
		return;
	}

	entry->type = type;
	entry->preempt_count = pc;
	entry->pid = curr->pid;
	if (likely(!irqs_disabled()))
		entry->flags = 0;
	else
		entry->flags = TRACE_FLAG_IRQS_OFF;
	perf_fast_compare_entry(entry, type);
}

static __always_inline void
fast_deliver(u16 type, struct perf_fast_hit hit, struct hlist_head *head, int rctx,
	     struct task_struct *task)
{
	struct hlist_node *node;

	/*
	 * Per being a tracepoint, this runs with preemption disabled.
	 */
	lockdep_assert_preemption_disabled();

	fast_entry_update(hit.record, type);

	/* Without the tests for NULL that hlist_for_each_entry_rcu() makes of each entry */
	for (node = rcu_dereference_sched(hlist_first_rcu(head)); node;
	     node = rcu_dereference_sched(hlist_next_rcu(node))) {
		struct perf_event *event = hlist_entry(node, struct perf_event, hlist_entry);
		struct perf_event *out = event->parent ?: event;
		struct event_filter *filter;
		unsigned int fast;
		bool done;

		/* only top level events have filters set */
		filter = READ_ONCE(out->filter);
		if (unlikely(filter) && !filter_match_preds(filter, hit.record))
			continue;
		/* Many hits do not get past the filter: the checks below come after it. */
		if (unlikely(event->hw.state & PERF_HES_STOPPED))
			continue;
		fast = event->fast;
		if (unlikely(!fast)) {
			/* As perf_tp_event_match(). Templates do not exclude the kernel. */
			if (event->attr.exclude_kernel && !user_mode(hit.regs))
				continue;
			goto general;
		}
		if (unlikely(!fast_size(hit)))
			goto general;
		if (likely(fast & FAST_COMMON)) {
			done = fast_store(event, out, fast, hit, false);
		} else {
			const struct perf_fast_hit copy = hit;

			done = fast_store_any(event, out, fast, &copy);
		}
		if (likely(done))
			continue;
general:
		perf_tp_event_general(event, hit.count, hit.record, hit.size, hit.regs);
	}

	/*
	 * If we got specified a target task, also iterate its context and
	 * deliver this event there too.
	 */
	if (unlikely(task && task != current))
		perf_tp_event_task(hit.count, hit.record, hit.size, hit.regs, task);

	/* put_recursion_context(), without the conversion of its argument */
	barrier();
	current->perf_recursion[(unsigned int)rctx]--;
}

void perf_tp_event(u16 event_type, u64 count, void *record, int entry_size,
		   struct pt_regs *regs, struct hlist_head *head, int rctx,
		   struct task_struct *task)
{
	const struct perf_fast_hit hit = {
		.count	= count,
		.record	= record,
		.size	= entry_size,
		.regs	= regs,
	};

	fast_deliver(event_type, hit, head, rctx, task);
}
EXPORT_SYMBOL_GPL(perf_tp_event);

void perf_trace_run_bpf_submit(void *raw_data, int size, int rctx,
			       struct trace_event_call *call, u64 count,
			       struct pt_regs *regs, struct hlist_head *head,
			       struct task_struct *task)
{
	if (bpf_prog_array_valid(call)) {
		*(struct pt_regs **)raw_data = regs;
		if (!trace_call_bpf(call, raw_data) || hlist_empty(head)) {
			perf_swevent_put_recursion_context(rctx);
			return;
		}
	}
	perf_tp_event(call->event.type, count, raw_data, size, regs, head,
		      rctx, task);
}
EXPORT_SYMBOL_GPL(perf_trace_run_bpf_submit);

/**
 * perf_trace_submit - deliver a hit of weight 1 to the listeners of this CPU
 * @raw_data: the payload, from perf_trace_buf_alloc()
 * @size: its size
 * @rctx: the recursion context, also from there
 * @call: the tracepoint
 * @regs: registers of perf_fetch_caller_regs()
 * @head: the listeners
 *
 * Like perf_trace_run_bpf_submit() for a tracepoint without __perf_count() and
 * __perf_task(). All its arguments are in registers.
 */
void perf_trace_submit(void *raw_data, int size, int rctx, struct trace_event_call *call,
		       struct pt_regs *regs, struct hlist_head *head)
{
	const struct perf_fast_hit hit = {
		.count	= 1,
		.record	= raw_data,
		.size	= size,
		.regs	= regs,
		.caller	= true,
	};

	if (unlikely(bpf_prog_array_valid(call))) {
		perf_trace_run_bpf_submit(raw_data, size, rctx, call, 1, regs, head, NULL);
		return;
	}
	fast_deliver(call->event.type, hit, head, rctx, NULL);
}
EXPORT_SYMBOL_GPL(perf_trace_submit);
