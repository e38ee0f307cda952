// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints whose fields are known
 *
 * These are what perf sched, perf lock, perf verdict, perf trace and the incident page read.
 * A field that is not in the list is left out, as its value may be an argument of a program, a
 * part of a file, or a key that was pressed. So it is with all fields of a tracepoint that is
 * not in the list, and with those that users define (kprobes, uprobes, eprobes).
 *
 * A field is known by its name, and by what it must be:
 *
 *	n	a number of 1, 2, 4 or 8 bytes, which stays
 *	s	the same, whose bits have letters: the state of a task
 *	a	the address of a lock, or a place on a disk: equal ones stay equal
 *	c	char[16], the name of a task; or __data_loc char[], as newer kernels have it
 *	l	letters that the kernel puts together, such as RWS
 *	f	__data_loc char[], the name of a file
 *	d	__data_loc char[], the name that a driver has given
 *	z	what perf does not do without, such as the arguments of system calls for perf
 *		trace; it becomes zeros
 */
#include "formats.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <string.h>

#define WAKEUP		"c:comm n:pid n:prio n:success n:target_cpu"
#define TASK		"c:comm n:pid n:prio n:group_dead"
#define DELAY		"c:comm n:pid n:delay"
#define REQUEST		"n:dev a:sector n:nr_sector n:bytes n:error n:ioprio l:rwbs c:comm"
#define RECLAIM		"n:order n:gfp_flags n:may_writepage n:nr_reclaimed"

/* The fields that all tracepoints have */
#define COMMON		"n:common_type n:common_flags n:common_preempt_count n:common_pid"

static const struct {
	const char	*system;
	const char	*name;
	const char	*fields;
} known[] = {
	{ "block",	"block_rq_complete",		REQUEST },
	{ "block",	"block_rq_insert",		REQUEST },
	{ "block",	"block_rq_issue",		REQUEST },
	{ "exceptions",	"page_fault_kernel",		"" },
	{ "exceptions",	"page_fault_user",		"" },
	{ "irq",	"irq_handler_entry",		"n:irq d:name" },
	{ "irq",	"irq_handler_exit",		"n:irq n:ret" },
	{ "irq",	"softirq_entry",		"n:vec" },
	{ "irq",	"softirq_exit",			"n:vec" },
	{ "irq",	"softirq_raise",		"n:vec" },
	{ "lock",	"contention_begin",		"a:lock_addr n:flags" },
	{ "lock",	"contention_end",		"a:lock_addr n:ret" },
	{ "power",	"cpu_frequency",		"n:state n:cpu_id" },
	{ "power",	"cpu_idle",			"n:state n:cpu_id" },
	{ "raw_syscalls", "sys_enter",			"n:id z:args" },
	{ "raw_syscalls", "sys_exit",			"n:id z:ret" },
	{ "sched",	"sched_migrate_task",
	  "c:comm n:pid n:prio n:orig_cpu n:dest_cpu" },
	{ "sched",	"sched_pi_setprio",		"c:comm n:pid n:oldprio n:newprio" },
	{ "sched",	"sched_process_exec",		"f:filename n:pid n:old_pid" },
	{ "sched",	"sched_process_exit",		TASK },
	{ "sched",	"sched_process_fork",
	  "c:parent_comm n:parent_pid c:child_comm n:child_pid" },
	{ "sched",	"sched_process_free",		TASK },
	{ "sched",	"sched_process_hang",		"c:comm n:pid" },
	{ "sched",	"sched_process_wait",		TASK },
	{ "sched",	"sched_stat_blocked",		DELAY },
	{ "sched",	"sched_stat_iowait",		DELAY },
	{ "sched",	"sched_stat_runtime",		"c:comm n:pid n:runtime n:vruntime" },
	{ "sched",	"sched_stat_sleep",		DELAY },
	{ "sched",	"sched_stat_wait",		DELAY },
	{ "sched",	"sched_switch",
	  "c:prev_comm n:prev_pid n:prev_prio s:prev_state c:next_comm n:next_pid n:next_prio" },
	{ "sched",	"sched_wakeup",			WAKEUP },
	{ "sched",	"sched_wakeup_new",		WAKEUP },
	{ "sched",	"sched_waking",			WAKEUP },
	{ "signal",	"signal_deliver",		"n:sig" },
	{ "signal",	"signal_generate",		"n:sig c:comm n:pid n:group n:result" },
	{ "task",	"task_newtask",			"n:pid c:comm" },
	{ "task",	"task_rename",			"n:pid c:oldcomm c:newcomm" },
	{ "vmscan",	"mm_vmscan_direct_reclaim_begin", RECLAIM },
	{ "vmscan",	"mm_vmscan_direct_reclaim_end",	RECLAIM },
	{ "vmscan",	"mm_vmscan_memcg_reclaim_begin", RECLAIM },
	{ "vmscan",	"mm_vmscan_memcg_reclaim_end",	RECLAIM },
};

/**
 * redact_known__fields - the fields of a tracepoint that are known
 * @system: its system
 * @name: its name
 *
 * Return: a list for redact_known__how(); NULL if the tracepoint is not known.
 */
const char *redact_known__fields(const char *system, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(known[i].system, system) && !strcmp(known[i].name, name))
			return known[i].fields;
	}
	return NULL;
}

/**
 * redact_known__system - whether a tracepoint of a system is known
 * @system: its name
 */
bool redact_known__system(const char *system)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(known[i].system, system))
			return true;
	}
	return false;
}

static enum redact_how how_of(char letter)
{
	switch (letter) {
	case 'n':
		return REDACT_HOW_NUMBER;
	case 's':
		return REDACT_HOW_STATE;
	case 'a':
		return REDACT_HOW_ADDRESS;
	case 'c':
		return REDACT_HOW_COMM;
	case 'l':
		return REDACT_HOW_LETTERS;
	case 'f':
		return REDACT_HOW_FILE;
	case 'd':
		return REDACT_HOW_DEVICE;
	case 'z':
		return REDACT_HOW_ZERO;
	default:
		return REDACT_HOW_UNKNOWN;
	}
}

static enum redact_how find_in(const char *fields, const char *name)
{
	size_t len = strlen(name);

	while (*fields) {
		size_t word = strcspn(fields, " ");

		if (word == len + 2 && !memcmp(fields + 2, name, len))
			return how_of(*fields);
		fields += word + strspn(fields + word, " ");
	}
	return REDACT_HOW_UNKNOWN;
}

/**
 * redact_known__how - what becomes of a field
 * @fields: of redact_known__fields(); NULL: only the common ones are known
 * @name: of the field
 */
enum redact_how redact_known__how(const char *fields, const char *name)
{
	enum redact_how how = find_in(COMMON, name);

	return how == REDACT_HOW_UNKNOWN && fields ? find_in(fields, name) : how;
}
