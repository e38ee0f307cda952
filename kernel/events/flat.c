// SPDX-License-Identifier: GPL-2.0
/*
 * Write a sample with plain stores
 *
 * perf_output_sample() copies a sample to the ring buffer field by field, and each copy
 * checks for the end of a page. Most samples end before the page does. For these,
 * perf_output_sample_flat() stores the fields of 8 bytes one after the other, and
 * copies call chain and payload at once.
 *
 * It takes samples that consist of such fields. The order of the fields is that of
 * perf_output_sample_fields(), which writes all others and is the reference.
 *
 * A call chain is in a buffer of the CPU and of the context level. get_perf_callchain() has
 * released that level already. An exception on the same level, such as an NMI in a #DB, may
 * overwrite it after the size of the sample was computed. So the number of entries is read
 * once, and the sample is taken only if its size is still that of the reservation: nothing
 * is written outside of it. The contents may be those of the other chain, as on the general path.
 */
#include <linux/perf_event.h>

#include "internal.h"

#define FLAT_AFTER_RAW \
	(PERF_SAMPLE_WEIGHT_TYPE | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | \
	 PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | \
	 PERF_SAMPLE_CODE_PAGE_SIZE)

#define FLAT_TYPES \
	(PERF_SAMPLE_FIRST_WORDS | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | FLAT_AFTER_RAW)

/* A payload in one piece, which a copy can take */
static bool flat_raw(struct perf_raw_record *raw)
{
	return raw && perf_raw_frag_last(&raw->frag) && !raw->frag.copy;
}

/* The size of a sample with a call chain of @nr entries */
static u64 flat_size(u64 type, u64 nr, struct perf_raw_record *raw)
{
	u64 fields = hweight64(type & (PERF_SAMPLE_FIRST_WORDS | FLAT_AFTER_RAW));
	u64 size = sizeof(struct perf_event_header) + sizeof(u64) * (fields + 1 + nr);

	if (type & PERF_SAMPLE_RAW)
		size += sizeof(u32) + raw->size;
	return size;
}

static __always_inline u64 *flat_callchain(u64 *p, struct perf_callchain_entry *chain, u64 nr)
{
	u64 i;

	*p++ = nr;
	for (i = 0; i < nr; i++)
		*p++ = chain->ip[i];
	return p;
}

static u64 *flat_after_raw(u64 *p, u64 type, struct perf_sample_data *data)
{
	if (type & PERF_SAMPLE_WEIGHT_TYPE)
		*p++ = data->weight.full;
	if (type & PERF_SAMPLE_DATA_SRC)
		*p++ = data->data_src.val;
	if (type & PERF_SAMPLE_TRANSACTION)
		*p++ = data->txn;
	if (type & PERF_SAMPLE_PHYS_ADDR)
		*p++ = data->phys_addr;
	if (type & PERF_SAMPLE_CGROUP)
		*p++ = data->cgroup;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		*p++ = data->data_page_size;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		*p++ = data->code_page_size;
	return p;
}

/**
 * perf_output_sample_flat - write a sample that does not reach the end of a page
 * @handle: the output, from perf_output_begin()
 * @header: header of the sample
 * @data: the sample
 *
 * Return: false if nothing was written: perf_output_sample_fields() is to be called.
 */
bool perf_output_sample_flat(struct perf_output_handle *handle,
			     const struct perf_event_header *header,
			     struct perf_sample_data *data)
{
	struct perf_raw_record *raw = data->raw;
	u64 *p = handle->addr;
	u64 type = data->type, nr = 0;

	if (type & ~FLAT_TYPES || handle->size <= header->size)
		return false;
	if (type & PERF_SAMPLE_RAW && !flat_raw(raw))
		return false;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		nr = READ_ONCE(data->callchain->nr);
		if (flat_size(type, nr, raw) != header->size)
			return false;
	}

	memcpy(p++, header, sizeof(*header));
	if (type & PERF_SAMPLE_IDENTIFIER)
		*p++ = data->id;
	if (type & PERF_SAMPLE_IP)
		*p++ = data->ip;
	if (type & PERF_SAMPLE_TID)
		memcpy(p++, &data->tid_entry, sizeof(data->tid_entry));
	if (type & PERF_SAMPLE_TIME)
		*p++ = data->time;
	if (type & PERF_SAMPLE_ADDR)
		*p++ = data->addr;
	if (type & PERF_SAMPLE_ID)
		*p++ = data->id;
	if (type & PERF_SAMPLE_STREAM_ID)
		*p++ = data->stream_id;
	if (type & PERF_SAMPLE_CPU)
		memcpy(p++, &data->cpu_entry, sizeof(data->cpu_entry));
	if (type & PERF_SAMPLE_PERIOD)
		*p++ = data->period;
	if (type & PERF_SAMPLE_CALLCHAIN)
		p = flat_callchain(p, data->callchain, nr);
	if (type & PERF_SAMPLE_RAW) {
		*(u32 *)p = raw->size;
		memcpy((u32 *)p + 1, raw->frag.data, raw->frag.size);
		p = (void *)p + sizeof(u32) + raw->size;
	}
	if (type & FLAT_AFTER_RAW)
		flat_after_raw(p, type, data);

	handle->addr += header->size;
	handle->size -= header->size;
	return true;
}
