// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the fast path of tracepoints
 *
 * A hit is delivered to two events with the same attr, id and clock, and a buffer each.
 * One takes the fast path. The other has no template, so the general path writes its
 * record. Afterwards the buffers, and what is counted, must be equal in each byte.
 */
#include <kunit/test.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/trace_events.h>

#include "../fast.h"
#include "../internal.h"

#define PAGES		2
#define ID		0x1122334455667788ULL
#define TYPE		77
#define TIME		0x0102030405060708ULL
#define RECORD_MAX	128

/* What perf record asks for */
#define PERF_SAMPLE_PLAIN	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
				 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

static const u64 fields[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
	PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
	PERF_SAMPLE_PERIOD, PERF_SAMPLE_RAW,
#ifdef CONFIG_CGROUP_PERF
	PERF_SAMPLE_CGROUP,
#endif
};

/* One event: with its buffer, and what happened to it */
struct side {
	struct perf_event		event;
	struct perf_buffer		*rb;
	unsigned int			general;	/* records by the general path */
	atomic_t			wakeups;
};

struct pair {
	struct side			fast;
	struct side			general;
	struct hlist_head		head;
	struct pt_regs			regs;
	u64				record[RECORD_MAX / sizeof(u64)];
	u64				nested_record[RECORD_MAX / sizeof(u64)];
	unsigned int			size;
	u64				count;
};

static u64 fixed_clock(void)
{
	return TIME;
}

static void count_wakeup(struct irq_work *work)
{
	atomic_inc(&container_of(work, struct side, event.pending_irq)->wakeups);
}

/* What perf_event_output() is called by when the fast path did not take a hit */
static void count_general(struct perf_event *event, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	container_of(event, struct side, event)->general++;
	perf_event_output(event, data, regs);
}

static void make_buffer(struct kunit *test, struct side *side, int pages, bool writable)
{
	side->rb = rb_alloc(&perf_rb_kernel_memory, pages, 0, -1,
			    writable ? RING_BUFFER_WRITABLE : 0);
	KUNIT_ASSERT_NOT_NULL(test, side->rb);
	WRITE_ONCE(side->event.rb, side->rb);
}

static void make_event(struct side *side, const struct perf_event_attr *attr)
{
	struct perf_event *event = &side->event;
	u64 type = attr->sample_type;

	event->attr = *attr;
	event->hw.sample_period = attr->sample_period;
	event->hw.last_period = attr->sample_period;
	event->state = PERF_EVENT_STATE_ACTIVE;
	event->id = ID;
	event->ns = &init_pid_ns;
	event->clock = fixed_clock;
	event->header_size = sizeof(u64) *
		hweight64(type & (PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD |
				  PERF_SAMPLE_CGROUP));
	event->id_header_size = sizeof(u64) *
		hweight64(type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER |
				  PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU));
	event->overflow_handler = is_write_backward(event) ? perf_event_output_backward :
							     perf_event_output_forward;
	init_irq_work(&event->pending_irq, count_wakeup);
	perf_fast_init(event);
	event->overflow_handler = count_general;
}

/* Give both events the attr, and empty buffers whose next record is at @head. */
static void set_up(struct kunit *test, const struct perf_event_attr *attr, unsigned long head)
{
	struct pair *pair = test->priv;
	struct side *sides[] = { &pair->fast, &pair->general };
	int i, page;

	for (i = 0; i < ARRAY_SIZE(sides); i++) {
		struct perf_buffer *rb = sides[i]->rb;

		irq_work_sync(&sides[i]->event.pending_irq);
		memset(&sides[i]->event, 0, sizeof(sides[i]->event));
		make_event(sides[i], attr);
		WRITE_ONCE(sides[i]->event.rb, rb);
		sides[i]->general = 0;

		local_set(&rb->head, head);
		local_set(&rb->lost, 0);
		local_set(&rb->events, 0);
		local_set(&rb->wakeup, is_write_backward(&sides[i]->event) ? -head : head);
		rb->user_page->data_head = head;
		rb->user_page->data_tail = head;
		for (page = 0; page < rb->nr_pages; page++)
			memset(rb->data_pages[page], 0xaa, PAGE_SIZE << page_order(rb));
	}
	pair->general.event.fast = 0;
	pair->count = 1;
	pair->size = 68;
}

/* Deliver a hit to all on the list, in a context of level @rctx. */
static void deliver(struct pair *pair, void *record, struct hlist_head *head, int rctx)
{
	current->perf_recursion[rctx]++;
	barrier();
	perf_tp_event(TYPE, pair->count, record, pair->size, &pair->regs, head, rctx, NULL);
}

/* Without ticks, so that both listeners see it in the same one */
static void hit(struct pair *pair)
{
	unsigned long flags;

	local_irq_save(flags);
	INIT_HLIST_HEAD(&pair->head);
	hlist_add_head(&pair->fast.event.hlist_entry, &pair->head);
	hlist_add_head(&pair->general.event.hlist_entry, &pair->head);
	deliver(pair, pair->record, &pair->head, 0);
	local_irq_restore(flags);
}

static void expect_equal(struct kunit *test, const char *what)
{
	struct pair *pair = test->priv;
	struct perf_event *f = &pair->fast.event, *g = &pair->general.event;
	struct perf_buffer *a = pair->fast.rb, *b = pair->general.rb;
	u64 type = f->attr.sample_type;
	int page;

	irq_work_sync(&f->pending_irq);
	irq_work_sync(&g->pending_irq);

	for (page = 0; page < a->nr_pages; page++)
		KUNIT_ASSERT_MEMEQ_MSG(test, a->data_pages[page], b->data_pages[page],
				       PAGE_SIZE << page_order(a), "%s, type %#llx, head %#lx",
				       what, type, local_read(&b->head));
	KUNIT_ASSERT_EQ_MSG(test, local_read(&a->head), local_read(&b->head), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, local_read(&a->lost), local_read(&b->lost), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, local_read(&a->wakeup), local_read(&b->wakeup), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, local_read(&a->events), local_read(&b->events), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, a->user_page->data_head, b->user_page->data_head, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, a->nest, 0, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, atomic_read(&a->poll), atomic_read(&b->poll), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, local64_read(&f->count), local64_read(&g->count), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, atomic64_read(&f->lost_samples),
			    atomic64_read(&g->lost_samples), "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, f->hw.interrupts, g->hw.interrupts, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, f->hw.interrupts_seq, g->hw.interrupts_seq, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, f->pending_kill, g->pending_kill, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, f->pending_wakeup, g->pending_wakeup, "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, atomic_read(&f->event_limit), atomic_read(&g->event_limit),
			    "%s", what);
	KUNIT_ASSERT_EQ_MSG(test, atomic_read(&pair->fast.wakeups),
			    atomic_read(&pair->general.wakeups), "%s", what);
}

static u64 type_of(unsigned int subset)
{
	u64 type = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (subset & BIT(i))
			type |= fields[i];
	return type;
}

/* Every subset of the sample types, at each distance to the end of a page */
static void try_types(struct kunit *test, bool backward)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_period	= 1,
		.write_backward	= backward,
		.watermark	= 1,
	};
	unsigned long page = PAGE_SIZE << page_order(pair->fast.rb);
	unsigned int subset, back;

	for (subset = 0; subset < BIT(ARRAY_SIZE(fields)); subset++) {
		attr.sample_type = type_of(subset);
		for (back = 0; back <= 176; back += sizeof(u64)) {
			set_up(test, &attr, backward ? page + back : page - back);
			hit(pair);
			expect_equal(test, "one record");
			KUNIT_ASSERT_EQ(test, pair->fast.general, 0);
			KUNIT_ASSERT_EQ(test, pair->general.general, 1);
			KUNIT_ASSERT_NE(test, local_read(&pair->fast.rb->head),
					backward ? page + back : page - back);
		}
		cond_resched();
	}
}

static void types_forward(struct kunit *test)
{
	try_types(test, false);
}

static void types_backward(struct kunit *test)
{
	try_types(test, true);
}

/* Payloads of all sizes; those without padding by the general path; in one buffer */
static void payloads(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
	};
	int backward;

	for (backward = 0; backward <= 1; backward++) {
		attr.write_backward = backward;
		set_up(test, &attr, 0);
		for (pair->size = 8; pair->size <= RECORD_MAX; pair->size++) {
			pair->count = pair->size;
			pair->fast.general = 0;
			hit(pair);
			expect_equal(test, "payload");
			KUNIT_EXPECT_EQ(test, pair->fast.general, pair->size % 8 != 4);
		}
	}
}

/* A child writes to its parent's buffer, with the parent's id. */
static void inherited(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
	};
	struct side *parent;
	int i;

	parent = kunit_kcalloc(test, 2, sizeof(*parent), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, parent);

	set_up(test, &attr, 0);
	for (i = 0; i < 2; i++) {
		struct side *side = i ? &pair->general : &pair->fast;

		make_event(&parent[i], &attr);
		WRITE_ONCE(parent[i].event.rb, side->rb);
		parent[i].event.id = ID + 1;
		WRITE_ONCE(side->event.rb, NULL);
		side->event.ns = NULL;
		side->event.parent = &parent[i].event;
	}
	hit(pair);
	expect_equal(test, "child");
	KUNIT_EXPECT_EQ(test, pair->fast.general, 0);
	KUNIT_EXPECT_GT(test, local_read(&pair->fast.rb->head), 0);
	for (i = 0; i < 2; i++) {
		struct side *side = i ? &pair->general : &pair->fast;

		KUNIT_EXPECT_EQ(test, local64_read(&parent[i].event.count), 0);
		side->event.parent = NULL;
	}
}

/* A full buffer: what is lost is counted, and told when there is room again. */
static void lost_records(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
		.watermark	= 1,
	};
	int id_all, i;

	for (id_all = 0; id_all <= 1; id_all++) {
		unsigned int lost;

		attr.sample_id_all = id_all;
		pair->fast.rb->overwrite = 0;
		pair->general.rb->overwrite = 0;
		set_up(test, &attr, 0);

		while (!local_read(&pair->general.rb->lost)) {
			hit(pair);
			expect_equal(test, "filling");
		}
		KUNIT_EXPECT_EQ_MSG(test, pair->fast.general, 0, "the hit that was lost first");
		for (i = 0; i < 5; i++) {
			hit(pair);
			expect_equal(test, "full");
		}
		lost = local_read(&pair->general.rb->lost);
		KUNIT_EXPECT_EQ(test, lost, 6);

		pair->fast.rb->user_page->data_tail = 4096;
		pair->general.rb->user_page->data_tail = 4096;
		i = pair->fast.general;
		hit(pair);
		expect_equal(test, "room again");
		KUNIT_EXPECT_EQ(test, local_read(&pair->fast.rb->lost), 0);
		hit(pair);
		expect_equal(test, "after the lost record");
		KUNIT_EXPECT_EQ(test, pair->fast.general, i + 1);
	}
	pair->fast.rb->overwrite = 1;
	pair->general.rb->overwrite = 1;
}

/* Wakeups by watermark, and by number of records */
static void wakeups(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
	};
	int backward, nr, i;

	for (backward = 0; backward <= 1; backward++) {
		for (nr = 0; nr <= 3; nr++) {
			attr.write_backward = backward;
			attr.watermark = !nr;
			attr.wakeup_events = nr;
			set_up(test, &attr, 0);
			for (i = 0; i < 100; i++) {
				hit(pair);
				expect_equal(test, nr ? "wakeup_events" : "watermark");
			}
			KUNIT_EXPECT_EQ(test, pair->fast.general, 0);
			KUNIT_EXPECT_GT(test, atomic_read(&pair->fast.wakeups), 0);
			atomic_set(&pair->fast.wakeups, 0);
			atomic_set(&pair->general.wakeups, 0);
		}
	}
}

struct condition {
	const char	*name;
	void		(*set)(struct side *side);
	bool		general;	/* the general path writes a record */
};

static void set_paused(struct side *side)
{
	side->rb->paused = 1;
}

static void set_no_buffer(struct side *side)
{
	WRITE_ONCE(side->event.rb, NULL);
}

static void set_limit(struct side *side)
{
	atomic_set(&side->event.event_limit, 2);
}

static void set_fasync(struct side *side)
{
	side->event.fasync = (struct fasync_struct *)1UL;
}

static void set_inactive(struct side *side)
{
	side->event.state = PERF_EVENT_STATE_INACTIVE;
}

static void set_stopped(struct side *side)
{
	side->event.hw.state = PERF_HES_STOPPED;
}

static void set_throttled(struct side *side)
{
	side->event.hw.interrupts = MAX_INTERRUPTS;
}

static void set_lost(struct side *side)
{
	local_set(&side->rb->lost, 3);
}

static void set_period(struct side *side)
{
	side->event.attr.sample_type &= ~PERF_SAMPLE_PERIOD;
	side->event.header_size -= sizeof(u64);
	side->event.hw.sample_period = 2;
	side->event.hw.last_period = 2;
	local64_set(&side->event.hw.period_left, -1);
	side->event.overflow_handler = perf_event_output_forward;
	perf_fast_init(&side->event);
	side->event.overflow_handler = count_general;
}

/* What changes while an event lives: the general path has the last word. */
static void conditions(struct kunit *test)
{
	static const struct condition table[] = {
		{ "paused",	set_paused,	true },
		{ "no buffer",	set_no_buffer,	true },
		{ "refresh",	set_limit,	true },
		{ "fasync",	set_fasync,	true },
		{ "lost",	set_lost,	true },
		{ "period 2",	set_period,	true },
		{ "inactive",	set_inactive,	false },
		{ "stopped",	set_stopped,	false },
		{ "throttled",	set_throttled,	false },
	};
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
		.watermark	= 1,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		set_up(test, &attr, 0);
		hit(pair);
		table[i].set(&pair->fast);
		table[i].set(&pair->general);
		pair->general.event.fast = 0;
		KUNIT_EXPECT_NE(test, pair->fast.event.fast, 0);
		hit(pair);
		expect_equal(test, table[i].name);
		KUNIT_EXPECT_EQ_MSG(test, pair->fast.general, table[i].general, "%s",
				    table[i].name);
		pair->fast.rb->paused = 0;
		pair->general.rb->paused = 0;
	}
}

/* Which attr have a template */
static void templates(struct kunit *test)
{
	static const struct {
		const char		*name;
		struct perf_event_attr	attr;
		bool			fast;
	} table[] = {
		{ "sampling", { .sample_period = 1 }, true },
		{ "counting", { .sample_period = 0 }, false },
		{ "frequency", { .sample_freq = 99, .freq = 1 }, false },
		{ "sigtrap", { .sample_period = 1, .sigtrap = 1 }, false },
		{ "aux_pause", { .sample_period = 1, .aux_pause = 1 }, false },
		{ "aux_resume", { .sample_period = 1, .aux_resume = 1 }, false },
		{ "exclude_kernel", { .sample_period = 1, .exclude_kernel = 1 }, false },
		{ "callchain", { .sample_period = 1, .sample_type = PERF_SAMPLE_CALLCHAIN },
		  false },
		{ "branch stack", { .sample_period = 1, .sample_type = PERF_SAMPLE_BRANCH_STACK },
		  false },
		{ "read", { .sample_period = 1, .sample_type = PERF_SAMPLE_READ }, false },
		{ "cgroup", { .sample_period = 1, .sample_type = PERF_SAMPLE_CGROUP }, true },
		{ "weight", { .sample_period = 1, .sample_type = PERF_SAMPLE_WEIGHT }, false },
		{ "user stack", { .sample_period = 1, .sample_type = PERF_SAMPLE_STACK_USER },
		  false },
	};
	struct pair *pair = test->priv;
	struct perf_event *event = &pair->fast.event;
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		set_up(test, &table[i].attr, 0);
		KUNIT_EXPECT_EQ_MSG(test, !!event->fast, table[i].fast, "%s", table[i].name);
	}
	/* count_general() is no handler of perf's own. */
	set_up(test, &table[0].attr, 0);
	perf_fast_init(event);
	KUNIT_EXPECT_EQ(test, event->fast, 0);
}

/*
 * A clock that pauses the buffer: the record is dropped. What freezes a session relies on
 * writers that take the time first and look at rb->paused afterwards.
 */
static struct perf_buffer *clock_pauses[2];

static u64 clock_pauses_fast(void)
{
	clock_pauses[0]->paused = 1;
	return TIME;
}

static u64 clock_pauses_general(void)
{
	clock_pauses[1]->paused = 1;
	return TIME;
}

static void paused_meanwhile(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_period	= 1,
		.watermark	= 1,
	};
	int i;

	clock_pauses[0] = pair->fast.rb;
	clock_pauses[1] = pair->general.rb;
	for (i = 0; i < 2; i++) {
		attr.sample_type = i ? type_of(BIT(ARRAY_SIZE(fields)) - 1) : PERF_SAMPLE_PLAIN;
		set_up(test, &attr, 0);
		pair->fast.event.clock = clock_pauses_fast;
		pair->general.event.clock = clock_pauses_general;
		hit(pair);
		expect_equal(test, "paused meanwhile");
		KUNIT_EXPECT_EQ(test, local_read(&pair->fast.rb->head), 0);
		KUNIT_EXPECT_EQ(test, local_read(&pair->fast.rb->lost), 1);
		pair->fast.rb->paused = 0;
		pair->general.rb->paused = 0;
	}
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
static struct pair *nested_pair;
static struct hlist_head nested_list;
static u64 nested_head;

/* What the breakpoint does, once: a hit in a context of level 3 */
static void nest(struct perf_event *bp, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct pair *pair = nested_pair;

	if (!pair)
		return;

	nested_pair = NULL;
	deliver(pair, pair->nested_record, &nested_list, PERF_NR_CONTEXTS - 1);
	nested_head = pair->fast.rb->user_page->data_head;
}

KUNIT_DEFINE_ACTION_WRAPPER(release_bp, perf_event_release_kernel, struct perf_event *);

/* All fields, with a payload of 68 bytes and its size; the cgroup is behind it. */
#define NESTED_RAW	(sizeof(struct perf_event_header) + 9 * sizeof(u64) + sizeof(u32))
#define NESTED_END	(NESTED_RAW + 68)
#define NESTED_LEN	(NESTED_END + (ARRAY_SIZE(fields) - 10) * sizeof(u64))

/*
 * Write a record at @offset, in whose middle the breakpoint is. @path: does the inner record
 * take the fast path?
 */
static void nested_at(struct kunit *test, unsigned long offset, bool backward, bool path)
{
	struct pair *pair = test->priv;
	struct perf_event_attr attr = {
		.sample_type	= type_of(BIT(ARRAY_SIZE(fields)) - 1),
		.sample_period	= 1,
		.watermark	= 1,
		.write_backward	= backward,
	};
	struct perf_event *outer = &pair->fast.event, *inner = &pair->general.event;
	unsigned long start = offset + (backward ? NESTED_LEN : 0);
	unsigned long next = start + (backward ? -2UL : 2UL) * NESTED_LEN;
	struct perf_buffer *rb = pair->fast.rb;
	unsigned long page = PAGE_SIZE << page_order(rb);
	u8 bytes[2][NESTED_LEN];
	unsigned int i;

	set_up(test, &attr, start);
	WRITE_ONCE(inner->rb, rb);
	inner->fast = path ? outer->fast : 0;

	preempt_disable();
	INIT_HLIST_HEAD(&nested_list);
	INIT_HLIST_HEAD(&pair->head);
	hlist_add_head(&inner->hlist_entry, &nested_list);
	hlist_add_head(&outer->hlist_entry, &pair->head);
	nested_pair = pair;
	deliver(pair, pair->record, &pair->head, 0);
	preempt_enable();

	WRITE_ONCE(inner->rb, pair->general.rb);
	KUNIT_ASSERT_NULL_MSG(test, nested_pair, "the breakpoint was not hit");
	KUNIT_ASSERT_EQ(test, pair->fast.general, 0);
	KUNIT_ASSERT_EQ(test, pair->general.general, !path);
	KUNIT_ASSERT_EQ(test, nested_head, start);
	KUNIT_ASSERT_EQ(test, rb->nest, 0);
	KUNIT_ASSERT_EQ(test, local_read(&rb->head), next);
	KUNIT_ASSERT_EQ(test, rb->user_page->data_head, (u64)next);

	/* Both are the same record, with payloads of their own. */
	start = min(start, next);
	for (i = 0; i < 2 * NESTED_LEN; i++) {
		unsigned long at = (start + i) & (PAGES * PAGE_SIZE - 1);
		u8 *p = rb->data_pages[at / page];

		bytes[i / NESTED_LEN][i % NESTED_LEN] = p[at % page];
	}
	KUNIT_ASSERT_EQ(test, *(u16 *)(bytes[0] + 6), NESTED_LEN);
	KUNIT_ASSERT_MEMEQ(test, bytes[backward], bytes[!backward], NESTED_RAW);
	KUNIT_ASSERT_MEMEQ(test, bytes[backward] + NESTED_RAW, (u8 *)pair->record, 68);
	KUNIT_ASSERT_MEMEQ(test, bytes[!backward] + NESTED_RAW, (u8 *)pair->nested_record, 68);
	KUNIT_ASSERT_MEMEQ(test, bytes[backward] + NESTED_END, bytes[!backward] + NESTED_END,
			   NESTED_LEN - NESTED_END);
}

/*
 * A breakpoint on the buffer writes a record in the middle of another, as an NMI may do.
 * Both are whole, and nothing is published until the outer one is. This is tried at each
 * word of the outer record, which crosses the end of a page in half of the cases.
 */
static void nested(struct kunit *test)
{
	struct pair *pair = test->priv;
	struct perf_buffer *rb = pair->fast.rb;
	unsigned long page = PAGE_SIZE << page_order(rb);
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_BREAKPOINT,
		.size		= sizeof(attr),
		.bp_type	= HW_BREAKPOINT_W,
		.bp_len		= HW_BREAKPOINT_LEN_8,
		.sample_period	= 1,
		.pinned		= 1,
	};
	int where, backward, path, back;
	struct perf_event *bp;

	if (data_page_nr(rb) != rb->nr_pages)
		kunit_skip(test, "the pages of the buffer are one area");

	for (where = 0; where < 2; where++) {
		unsigned int shift = where ? NESTED_LEN : 0;

		attr.bp_addr = (unsigned long)rb->data_pages[1] + shift;
		bp = perf_event_create_kernel_counter(&attr, -1, current, nest, NULL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, bp);
		KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, release_bp, bp), 0);
		for (back = 0; back < NESTED_LEN; back += sizeof(u64))
			for (backward = 0; backward <= 1; backward++)
				for (path = 0; path <= 1; path++)
					nested_at(test, page + shift - back, backward, path);
		kunit_release_action(test, release_bp, bp);
	}
}
#else
static void nested(struct kunit *test)
{
	kunit_skip(test, "there are no breakpoints");
}
#endif

static int fast_test_init(struct kunit *test)
{
	struct pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	test->priv = pair;
	make_buffer(test, &pair->fast, PAGES, false);
	make_buffer(test, &pair->general, PAGES, false);
	perf_fetch_caller_regs(&pair->regs);
	for (i = 0; i < ARRAY_SIZE(pair->record); i++)
		pair->record[i] = 0x8000000000000001ULL + i * 0x0102030405060708ULL;
	for (i = 0; i < ARRAY_SIZE(pair->record); i++)
		pair->nested_record[i] = ~pair->record[i];
	return 0;
}

/* The buffer of the call chain was used by another sample since the size was computed. */
static void chain_grows(struct kunit *test)
{
	enum { FEW = 5, MANY = 80, WORDS = 128 };
	struct perf_callchain_entry *chain;
	struct perf_event_header header = {
		.type	= PERF_RECORD_SAMPLE,
		.size	= sizeof(header) + sizeof(u64) * (1 + 1 + FEW),
	};
	struct perf_sample_data data = {
		.type	= PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.ip	= TIME,
	};
	u64 *words = kunit_kcalloc(test, WORDS, sizeof(u64), GFP_KERNEL);
	struct perf_output_handle handle = { .addr = words, .size = WORDS * sizeof(u64) };
	int i;

	chain = kunit_kzalloc(test, struct_size(chain, ip, MANY), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, words);
	KUNIT_ASSERT_NOT_NULL(test, chain);
	data.callchain = chain;

	for (chain->nr = 0; chain->nr <= MANY; chain->nr++) {
		if (chain->nr == FEW)
			continue;
		KUNIT_EXPECT_FALSE(test, perf_output_sample_flat(&handle, &header, &data));
	}
	for (i = 0; i < WORDS; i++)
		KUNIT_EXPECT_EQ(test, words[i], 0);

	chain->nr = FEW;
	KUNIT_EXPECT_TRUE(test, perf_output_sample_flat(&handle, &header, &data));
	KUNIT_EXPECT_EQ(test, words[1], TIME);
	KUNIT_EXPECT_EQ(test, words[2], FEW);
	KUNIT_EXPECT_PTR_EQ(test, handle.addr, (void *)words + header.size);
}

static void fast_test_exit(struct kunit *test)
{
	struct pair *pair = test->priv;

	if (!pair)
		return;
	irq_work_sync(&pair->fast.event.pending_irq);
	irq_work_sync(&pair->general.event.pending_irq);
	if (pair->fast.rb)
		ring_buffer_put(pair->fast.rb);
	if (pair->general.rb)
		ring_buffer_put(pair->general.rb);
}

static struct kunit_case fast_test_cases[] = {
	KUNIT_CASE(templates),
	KUNIT_CASE(types_forward),
	KUNIT_CASE(types_backward),
	KUNIT_CASE(payloads),
	KUNIT_CASE(inherited),
	KUNIT_CASE(lost_records),
	KUNIT_CASE(wakeups),
	KUNIT_CASE(conditions),
	KUNIT_CASE(paused_meanwhile),
	KUNIT_CASE(nested),
	KUNIT_CASE(chain_grows),
	{},
};

static struct kunit_suite fast_test_suite = {
	.name = "perf_fast",
	.init = fast_test_init,
	.exit = fast_test_exit,
	.test_cases = fast_test_cases,
};

kunit_test_suites(&fast_test_suite);

MODULE_DESCRIPTION("KUnit tests of the fast path of perf's tracepoints");
MODULE_LICENSE("GPL");
