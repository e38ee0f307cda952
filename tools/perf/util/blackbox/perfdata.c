// SPDX-License-Identifier: GPL-2.0
/*
 * Write a recording as perf.data
 *
 *	header | ids | attributes | records | table of features | features
 *
 * perf's own functions are not used. They write what this machine is, not the one that has
 * died. What is not known of it, such as its name, is left out.
 *
 * The records are sorted by time, so rounds may end anywhere. They end often enough for
 * readers to need little memory.
 */
#include "recording.h"
#include "../event.h"
#include "../header.h"

#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC			0x32454c4946524550ULL	/* "PERFILE2" */
#define RECORDS_PER_ROUND	65536
#define MAX_NAME		256

/* What perf pads strings in features to */
#define NAME_ALIGNMENT		64

#define KERNEL_DSO		"[kernel.kallsyms]"

static int put(FILE *f, const void *data, size_t size)
{
	return fwrite(data, 1, size, f) == size ? 0 : -errno ?: -EIO;
}

static int put_u32(FILE *f, u32 value)
{
	return put(f, &value, sizeof(value));
}

static int put_zeros(FILE *f, size_t nr)
{
	static const char zeros[NAME_ALIGNMENT];
	int err = 0;

	while (nr && !err) {
		size_t some = min(nr, sizeof(zeros));

		err = put(f, zeros, some);
		nr -= some;
	}
	return err;
}

static int put_string(FILE *f, const char *str)
{
	u32 len = strlen(str) + 1, padded = PERF_ALIGN(len, NAME_ALIGNMENT);

	return put_u32(f, padded) ?: put(f, str, len) ?: put_zeros(f, padded - len);
}

/* Events */

static int put_ids(const struct blackbox_group *group, FILE *f)
{
	int err = 0;

	for (size_t i = 0; i < group->nr && !err; i++)
		err = put(f, &group->events[i]->id, sizeof(u64));
	return err;
}

static int put_events(const struct blackbox_recording *r, struct perf_file_header *header,
		      FILE *f)
{
	u64 pos = sizeof(*header);
	int err = put(f, header, sizeof(*header));

	for (size_t i = 0; i < r->nr_groups && !err; i++)
		err = put_ids(&r->groups[i], f);
	for (size_t i = 0; i < r->nr_groups && !err; i++) {
		const struct blackbox_group *group = &r->groups[i];
		struct perf_file_section ids = {
			.offset	= pos,
			.size	= group->nr * sizeof(u64),
		};

		err = put(f, &group->events[0]->attr, sizeof(struct perf_event_attr)) ?:
		      put(f, &ids, sizeof(ids));
		pos += ids.size;
	}
	header->attrs.offset = pos;
	header->attrs.size = r->nr_groups * header->attr_size;
	header->data.offset = header->attrs.offset + header->attrs.size;
	return err;
}

/* Records */

static int put_mark(FILE *f, u32 type)
{
	struct perf_event_header header = { .type = type, .size = sizeof(header) };

	return put(f, &header, sizeof(header));
}

static int put_records(const struct blackbox_recording *r, FILE *f)
{
	bool is_state = true;
	size_t in_round = 0;
	int err = 0;

	for (size_t i = 0; i < r->nr_items && !err; i++) {
		struct perf_event_header header;

		if (is_state && r->items[i].time) {
			is_state = false;
			err = put_mark(f, PERF_RECORD_FINISHED_INIT);
		}
		memcpy(&header, r->items[i].data, sizeof(header));
		if (!err)
			err = put(f, r->items[i].data, header.size);
		if (!err && ++in_round == RECORDS_PER_ROUND) {
			err = put_mark(f, PERF_RECORD_FINISHED_ROUND);
			in_round = 0;
		}
	}
	return err ?: put_mark(f, PERF_RECORD_FINISHED_ROUND);
}

/* Features */

static int put_formats(const struct blackbox_recording *r, FILE *f)
{
	return put(f, r->formats, r->formats_size);
}

static int put_kernel_id(const struct blackbox_recording *r, FILE *f)
{
	const struct perf_blackbox_super *super = &r->session->image->super;
	size_t len = PERF_ALIGN(sizeof(KERNEL_DSO), sizeof(u64));
	struct perf_record_header_build_id b = {
		.header.misc	= PERF_RECORD_MISC_KERNEL | PERF_RECORD_MISC_BUILD_ID_SIZE,
		.header.size	= sizeof(b) + len,
		.pid		= -1,
	};

	if (!super->build_id_size)
		return 0;
	b.size = super->build_id_size;
	memcpy(b.data, super->build_id, super->build_id_size);
	return put(f, &b, sizeof(b)) ?: put(f, KERNEL_DSO, sizeof(KERNEL_DSO)) ?:
	       put_zeros(f, len - sizeof(KERNEL_DSO));
}

static int put_build_ids(const struct blackbox_recording *r, FILE *f)
{
	int err = put_kernel_id(r, f);

	for (size_t i = 0; i < r->nr_build_ids && !err; i++) {
		const void *name = r->build_ids[i] + sizeof(struct perf_record_header_build_id);
		struct perf_event_header header;

		if (r->session->image->super.build_id_size && !strcmp(name, KERNEL_DSO))
			continue;
		memcpy(&header, r->build_ids[i], sizeof(header));
		err = put(f, r->build_ids[i], header.size);
	}
	return err;
}

static int put_release(const struct blackbox_recording *r, FILE *f)
{
	return put_string(f, r->session->image->super.release);
}

/* As uname -m */
static const char *machine_name(u32 machine)
{
	switch (machine) {
	case EM_386:		return "i686";
	case EM_X86_64:		return "x86_64";
	case EM_ARM:		return "arm";
	case EM_AARCH64:	return "aarch64";
	case EM_PPC64:		return "ppc64";
	case EM_S390:		return "s390x";
	case EM_RISCV:		return "riscv";
	default:		return NULL;
	}
}

static int put_arch(const struct blackbox_recording *r, FILE *f)
{
	return put_string(f, machine_name(r->session->image->super.machine));
}

static int put_nrcpus(const struct blackbox_recording *r, FILE *f)
{
	u32 nr = r->session->image->super.nr_cpus;

	return put_u32(f, nr) ?: put_u32(f, nr);
}

static const char *event_name(const struct blackbox_event *event, char *buf, size_t size)
{
	static const char *const software[PERF_COUNT_SW_MAX] = {
		[PERF_COUNT_SW_CPU_CLOCK]		= "cpu-clock",
		[PERF_COUNT_SW_TASK_CLOCK]		= "task-clock",
		[PERF_COUNT_SW_PAGE_FAULTS]		= "page-faults",
		[PERF_COUNT_SW_CONTEXT_SWITCHES]	= "context-switches",
		[PERF_COUNT_SW_CPU_MIGRATIONS]		= "cpu-migrations",
		[PERF_COUNT_SW_PAGE_FAULTS_MIN]		= "minor-faults",
		[PERF_COUNT_SW_PAGE_FAULTS_MAJ]		= "major-faults",
		[PERF_COUNT_SW_ALIGNMENT_FAULTS]	= "alignment-faults",
		[PERF_COUNT_SW_EMULATION_FAULTS]	= "emulation-faults",
		[PERF_COUNT_SW_DUMMY]			= "dummy:HG",
		[PERF_COUNT_SW_BPF_OUTPUT]		= "bpf-output",
		[PERF_COUNT_SW_CGROUP_SWITCHES]		= "cgroup-switches",
	};
	static const char *const hardware[PERF_COUNT_HW_MAX] = {
		[PERF_COUNT_HW_CPU_CYCLES]		= "cycles",
		[PERF_COUNT_HW_INSTRUCTIONS]		= "instructions",
		[PERF_COUNT_HW_CACHE_REFERENCES]	= "cache-references",
		[PERF_COUNT_HW_CACHE_MISSES]		= "cache-misses",
		[PERF_COUNT_HW_BRANCH_INSTRUCTIONS]	= "branches",
		[PERF_COUNT_HW_BRANCH_MISSES]		= "branch-misses",
		[PERF_COUNT_HW_BUS_CYCLES]		= "bus-cycles",
		[PERF_COUNT_HW_REF_CPU_CYCLES]		= "ref-cycles",
	};
	const struct perf_event_attr *attr = &event->attr;

	if (*event->name)
		return event->name;
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < PERF_COUNT_SW_MAX &&
	    software[attr->config])
		return software[attr->config];
	if (attr->type == PERF_TYPE_HARDWARE && attr->config < PERF_COUNT_HW_MAX &&
	    hardware[attr->config])
		return hardware[attr->config];
	scnprintf(buf, size, "%s/config=0x%llx/", *event->pmu ? event->pmu : "unknown",
		  (unsigned long long)attr->config);
	return buf;
}

static int put_descriptions(const struct blackbox_recording *r, FILE *f)
{
	int err = put_u32(f, r->nr_groups) ?: put_u32(f, sizeof(struct perf_event_attr));
	char buf[MAX_NAME];

	for (size_t i = 0; i < r->nr_groups && !err; i++) {
		const struct blackbox_group *group = &r->groups[i];
		const struct blackbox_event *event = group->events[0];

		err = put(f, &event->attr, sizeof(event->attr)) ?: put_u32(f, group->nr) ?:
		      put_string(f, event_name(event, buf, sizeof(buf))) ?: put_ids(group, f);
	}
	return err;
}

static int put_times(const struct blackbox_recording *r, FILE *f)
{
	return put(f, &r->oldest, sizeof(r->oldest)) ?: put(f, &r->newest, sizeof(r->newest));
}

static bool has_feature(const struct blackbox_recording *r, int feature)
{
	const struct perf_blackbox_super *super = &r->session->image->super;

	switch (feature) {
	case HEADER_TRACING_DATA:
		return r->formats;
	case HEADER_BUILD_ID:
		return super->build_id_size || r->nr_build_ids;
	case HEADER_ARCH:
		return machine_name(super->machine);
	case HEADER_SAMPLE_TIME:
		return r->newest;
	default:
		return true;
	}
}

/* In the order of their numbers */
static const struct feature {
	int	number;
	int	(*put)(const struct blackbox_recording *r, FILE *f);
} features[] = {
	{ HEADER_TRACING_DATA,	put_formats },
	{ HEADER_BUILD_ID,	put_build_ids },
	{ HEADER_OSRELEASE,	put_release },
	{ HEADER_ARCH,		put_arch },
	{ HEADER_NRCPUS,	put_nrcpus },
	{ HEADER_EVENT_DESC,	put_descriptions },
	{ HEADER_SAMPLE_TIME,	put_times },
};

static int put_features(const struct blackbox_recording *r, struct perf_file_header *header,
			FILE *f)
{
	struct perf_file_section sections[ARRAY_SIZE(features)] = {};
	u64 table = ftello(f);
	size_t nr = 0, i = 0;
	int err = 0;

	for (size_t j = 0; j < ARRAY_SIZE(features); j++)
		nr += has_feature(r, features[j].number);
	if (fseeko(f, table + nr * sizeof(*sections), SEEK_SET))
		return -errno;
	for (size_t j = 0; j < ARRAY_SIZE(features) && !err; j++) {
		int number = features[j].number;

		if (!has_feature(r, number))
			continue;
		header->adds_features[number / BITS_PER_LONG] |= 1UL << number % BITS_PER_LONG;
		sections[i].offset = ftello(f);
		err = features[j].put(r, f);
		sections[i].size = ftello(f) - sections[i].offset;
		i++;
	}
	if (!err && fseeko(f, table, SEEK_SET))
		err = -errno;
	return err ?: put(f, sections, nr * sizeof(*sections));
}

/**
 * blackbox_recording__write - write it as perf.data
 * @r: the recording
 * @f: an empty file
 *
 * Return: 0 or a negative errno.
 */
int blackbox_recording__write(const struct blackbox_recording *r, FILE *f)
{
	struct perf_file_header header = {
		.magic		= MAGIC,
		.size		= sizeof(header),
		.attr_size	= sizeof(struct perf_event_attr) + sizeof(struct perf_file_section),
	};
	int err = put_events(r, &header, f) ?: put_records(r, f);

	if (err)
		return err;
	header.data.size = ftello(f) - header.data.offset;
	err = put_features(r, &header, f);
	if (!err && fseeko(f, 0, SEEK_SET))
		err = -errno;
	if (!err)
		err = put(f, &header, sizeof(header));
	if (!err && fflush(f))
		err = -errno;
	return err;
}
