// SPDX-License-Identifier: GPL-2.0
/*
 * Compare the records of the fast path with those of the general path
 *
 * fast.c calls perf_fast_compare() for each record that it has written, before the
 * record is committed and with interrupts off. The general path then writes the same
 * record to scratch memory, with the time that the fast path took. All bytes are
 * compared.
 *
 * The comparison has no effect on counts, throttling, wakeups and the buffer: it calls
 * what prepares and writes a record, and none of what is before and after this. There
 * is one scratch for each context level of a CPU. What interrupts a comparison at the
 * same level, such as an NMI in a #DB, is not compared.
 *
 * User space that has mapped a buffer writable and writes to its data pages causes
 * warnings. So this is for kernels that run tests.
 */
#include <linux/perf_event.h>
#include <linux/trace_events.h>

#include "fast.h"
#include "internal.h"

/* Room for the longest record that the fast path writes, in whole pages */
#define CHECK_SIZE	(PERF_MAX_TRACE_SIZE + PAGE_SIZE)
#define CHECK_PAGES	(CHECK_SIZE / PAGE_SIZE)

/* rb.data_pages points to bytes: to the first 8, and then to a page each. */
struct fast_check {
	bool				busy;
	u8				bytes[CHECK_SIZE];
	union {
		struct perf_buffer	rb;
		u8			room[struct_size_t(struct perf_buffer, data_pages,
							   CHECK_PAGES + 1)];
	};
};

static DEFINE_PER_CPU(struct fast_check, fast_checks[PERF_NR_CONTEXTS]);

/* The scratch of this CPU and context level, or NULL if a comparison was interrupted */
static struct fast_check *fast_begin_check(void)
{
	struct fast_check *check = this_cpu_ptr(&fast_checks[interrupt_context_level()]);
	int i;

	if (READ_ONCE(check->busy))
		return NULL;
	WRITE_ONCE(check->busy, true);
	barrier();
	check->rb.nr_pages = roundup_pow_of_two(CHECK_PAGES + 1);
	for (i = 0; i < CHECK_PAGES; i++)
		check->rb.data_pages[i + 1] = check->bytes + sizeof(u64) + i * PAGE_SIZE;
	return check;
}

static void fast_end_check(struct fast_check *check)
{
	barrier();
	WRITE_ONCE(check->busy, false);
}

static u8 fast_byte(struct perf_buffer *rb, unsigned long offset)
{
	unsigned int shift = PAGE_SHIFT + page_order(rb);
	u8 *page = rb->data_pages[(offset >> shift) & (rb->nr_pages - 1)];

	return READ_ONCE(page[offset & ((1UL << shift) - 1)]);
}

/*
 * Let the general path write the record to scratch memory. Its first 8 bytes are the
 * rest of a page, so that the record crosses the end of a page and is written field by
 * field. Return the size of the record.
 */
static unsigned int fast_reference(struct fast_check *check, struct perf_event *event,
				   const struct perf_fast_hit *hit, u64 time)
{
	struct perf_raw_record raw = {
		.frag = {
			.size = hit->size,
			.data = hit->record,
		},
	};
	struct perf_output_handle handle = {
		.event	= event,
		.rb	= &check->rb,
		.addr	= check->bytes,
		.size	= sizeof(u64),
	};
	struct perf_event_header header;
	struct perf_sample_data data;

	perf_sample_data_init(&data, 0, 0);
	perf_sample_save_raw_data(&data, event, &raw);
	data.period = hit->count;
	data.time = time;
	data.sample_flags |= PERF_SAMPLE_TIME;
	perf_prepare_sample(&data, event, hit->regs);
	perf_prepare_header(&header, &data, event, hit->regs);
	if (WARN_ON_ONCE(header.size > CHECK_SIZE - sizeof(u64)))
		return 0;
	perf_output_sample(&handle, &header, &data, event);
	return header.size;
}

/* The time in the record at @offset; 0 if it has none */
static u64 fast_time(struct perf_buffer *rb, unsigned long offset, u64 type)
{
	u64 before = type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID);
	union {
		u8	bytes[sizeof(u64)];
		u64	time;
	} u = { .time = 0 };
	int i;

	offset += sizeof(struct perf_event_header) + sizeof(u64) * hweight64(before);
	for (i = 0; type & PERF_SAMPLE_TIME && i < sizeof(u.bytes); i++)
		u.bytes[i] = fast_byte(rb, offset + i);
	return u.time;
}

/**
 * perf_fast_compare - compare a record with that of the general path
 * @event: the listener
 * @rb: the buffer of the record
 * @offset: offset of the record in @rb, modulo the size of @rb
 * @hit: what the record tells
 * @size: size of the record
 */
void perf_fast_compare(struct perf_event *event, struct perf_buffer *rb,
		       unsigned long offset, const struct perf_fast_hit *hit,
		       unsigned int size)
{
	struct fast_check *check;
	u64 type = event->attr.sample_type;
	unsigned int i, ids, end = size;
	bool released;

	/* A record that is longer than its buffer overwrites itself. */
	if (size > perf_data_size(rb))
		return;
	check = fast_begin_check();
	if (!check)
		return;

	i = fast_reference(check, event, hit, fast_time(rb, offset, type));
	if (WARN_ONCE(i != size, "perf: sample_type %#llx: a record of %u bytes, not %u\n",
		      type, size, i))
		goto out;

	/*
	 * The parent of an exiting task may release it on another CPU between the two
	 * records. From then on its ids are -1.
	 */
	released = !pid_alive(current) && type & PERF_SAMPLE_TID;
	ids = sizeof(struct perf_event_header) +
	      sizeof(u64) * hweight64(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP));

	/* Neither path writes what is behind the payload. */
	if (type & PERF_SAMPLE_RAW)
		end -= perf_fast_raw_size(hit) - sizeof(u32) - hit->size;
	for (i = 0; i < end; i++) {
		if (released && i >= ids && i < ids + sizeof(u64))
			continue;
		if (WARN_ONCE(fast_byte(rb, offset + i) != check->bytes[i],
			      "perf: sample_type %#llx: byte %u of %u is %#x, not %#x\n",
			      type, i, size, fast_byte(rb, offset + i), check->bytes[i]))
			break;
	}
out:
	fast_end_check(check);
}

/**
 * perf_fast_compare_entry - compare a trace entry with that of perf_trace_buf_update()
 * @record: the trace entry, and what follows
 * @type: type of the trace entry
 */
void perf_fast_compare_entry(void *record, u16 type)
{
	const u8 resched = TRACE_FLAG_NEED_RESCHED | TRACE_FLAG_PREEMPT_RESCHED;
	struct trace_entry fast = *(struct trace_entry *)record, general;

	perf_trace_buf_update(record, type);
	general = *(struct trace_entry *)record;

	/* An interrupt may have set these in between. */
	fast.flags &= ~resched;
	general.flags &= ~resched;
	WARN_ONCE(memcmp(&fast, &general, sizeof(fast)),
		  "perf: trace entry %*ph, not %*ph\n",
		  (int)sizeof(fast), &fast, (int)sizeof(general), &general);
}

/**
 * perf_flat_compare - compare a sample with that of perf_output_sample_fields()
 * @handle: the output, which perf_output_sample_flat() has moved behind the sample
 * @header: header of the sample
 * @data: the sample
 * @event: the event
 */
void perf_flat_compare(struct perf_output_handle *handle, struct perf_event_header *header,
		       struct perf_sample_data *data, struct perf_event *event)
{
	void *flat = handle->addr - header->size;
	struct perf_output_handle fields;
	struct fast_check *check;
	unsigned int i;

	/* Padding is what was there before. */
	if (data->type & PERF_SAMPLE_RAW && data->raw->frag.pad)
		return;
	if (header->size > sizeof(check->bytes) - sizeof(u64))
		return;
	check = fast_begin_check();
	if (!check)
		return;

	fields = (struct perf_output_handle) {
		.event	= event,
		.rb	= &check->rb,
		.addr	= check->bytes,
		.size	= sizeof(check->bytes),
	};
	perf_output_sample_fields(&fields, header, data, event);
	for (i = 0; i < header->size; i++) {
		if (WARN_ONCE(((u8 *)flat)[i] != check->bytes[i],
			      "perf: sample_type %#llx: byte %u of %u is %#x, not %#x\n",
			      data->type, i, header->size, ((u8 *)flat)[i], check->bytes[i]))
			break;
	}
	fast_end_check(check);
}
