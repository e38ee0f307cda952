// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers: messages of the kernel
 *
 *	kmsg/match=REGEX/	any message that matches an extended regular expression
 *	oom			the OOM killer has killed a process
 *	hung			a task did not run for kernel.hung_task_timeout_secs
 *	lockup			a CPU did not schedule, or take interrupts, for long
 *	rcu-stall		an RCU grace period does not end
 *
 * All of them read /dev/kmsg from its end on. The last four are expressions as well. They
 * come from the table below, with the places in which the message names the task, the CPU's
 * time or the cgroup; and only the kernel itself counts, not what root writes to /dev/kmsg.
 * Other messages of the kernel begin with the name of a task ("COMM[PID]: segfault"), which the
 * task chooses. So the beginning of each expression is longer than a name can be.
 * The lines of one report are one hit: it is the first one that matches.
 *
 * The kernel limits such messages itself: kernel.hung_task_warnings of hung tasks, and one
 * line about each process that the OOM killer kills.
 *
 * A message has a time of the kernel's own clock. A busy machine reads the message late. So its
 * age on that clock is subtracted from the time of reading. Where that clock cannot be read,
 * the time of a hit is that of reading. So is that of the first hit after a suspend, because
 * one of the two clocks may have stood still meanwhile.
 */
#include "local-clock.h"
#include "terms.h"
#include "triggers.h"
#include "../../clockid.h"
#include "../../debug.h"

#include <api/fs/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS_PER_PASS	1024
#define MAX_RECORD		8192
#define MAX_GROUPS		6
/* The two clocks are not read at once. */
#define MIN_SUSPEND		(10 * NSEC_PER_MSEC)
#define LOG_FACILITY(prio)	((prio) >> 3)

/**
 * struct report - what the kernel reports
 * @ops: the kind of trigger
 * @regex: how the first line of it looks
 * @context: a line before it that names the cgroup in its group 1, or NULL
 * @pid: the group of @regex with the pid, or 0
 * @comm: that with the name of the task
 * @value: that with a number
 * @unit: of the number
 * @limit: the sysctl with the kernel's limit of it, or NULL
 * @factor: what that is multiplied by
 */
static const struct report {
	const struct flight_trigger_ops	*ops;
	const char			*regex;
	const char			*context;
	int				pid;
	int				comm;
	int				value;
	const char			*unit;
	const char			*limit;
	unsigned int			factor;
} reports[] = {
	{
		.ops	 = &flight_trigger_oom,
		.regex	 =
"^(Out of memory|Memory cgroup out of memory)( \\([a-z_]*\\))?: Killed process ([0-9]+) \\((.*)\\) total-vm:",
		.context = "^oom-kill:.*,task_memcg=([^,]*),",
		.pid	 = 3,
		.comm	 = 4,
	}, {
		.ops	 = &flight_trigger_hung,
		.regex	 = "^INFO: task (.{1,15}):([0-9]+) blocked for more than ([0-9]+) seconds",
		.pid	 = 2,
		.comm	 = 1,
		.value	 = 3,
		.unit	 = "s",
		.limit	 = "kernel/hung_task_timeout_secs",
		.factor	 = 1,
	}, {
		.ops	 = &flight_trigger_lockup,
		.regex	 =
"^(NMI )?watchdog: (BUG: soft lockup - CPU#[0-9]+ stuck for ([0-9]+)s! \\[(.{1,15}):([0-9]+)\\]|(CPU[0-9]+: )?Watchdog detected hard LOCKUP on cpu [0-9]+)",
		.pid	 = 5,
		.comm	 = 4,
		.value	 = 3,
		.unit	 = "s",
		.limit	 = "kernel/watchdog_thresh",
		.factor	 = 2,
	}, {
		.ops	 = &flight_trigger_rcu_stall,
		.regex	 =
"^rcu: INFO: rcu_[a-z]+ (self-detected stall|detected( expedited)? stall)",
	},
};

/**
 * struct messages - what is watched
 * @report: the kind, or NULL: @match
 * @match: the expression that the user gave
 * @regex: compiled
 * @context: compiled, of @report
 * @cgroup: what the last context was
 * @suspended: ns for which the machine was suspended, when that was last looked at
 */
struct messages {
	const struct report	*report;
	char			*match;
	regex_t			regex;
	regex_t			context;
	char			cgroup[PATH_MAX];
	u64			suspended;
};

static const struct flight_term terms[] = {
	{ "match",	TERM_REST,	offsetof(struct messages, match) },
	{ NULL }
};

static void kmsg_free(struct flight_trigger *t)
{
	struct messages *m = t->priv;

	if (!m)
		return;
	regfree(&m->regex);
	regfree(&m->context);
	free(m->match);
	free(m);
	t->priv = NULL;
}

static int compile(struct flight_trigger *t, regex_t *regex, const char *text)
{
	char error[128];
	int err = regcomp(regex, text, REG_EXTENDED);

	if (!err)
		return 0;
	regerror(err, regex, error, sizeof(error));
	/* Nothing to be freed then. */
	memset(regex, 0, sizeof(*regex));
	return flight_terms__refuse(t, "match=%s is no extended regular expression: %s", text,
				    error);
}

static int kmsg_parse_terms(struct flight_trigger *t, char *text)
{
	struct messages *m = zalloc(sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	t->priv = m;
	err = flight_terms__parse(t, terms, text);
	if (err)
		return err;
	if (!m->match)
		return flight_terms__refuse(t, "'match' is missing");
	return compile(t, &m->regex, m->match);
}

static int report_parse_terms(struct flight_trigger *t, char *text)
{
	struct messages *m;

	if (text)
		return flight_terms__refuse(t, "'%s' takes nothing between slashes", t->ops->name);
	m = zalloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	t->priv = m;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		if (reports[i].ops == t->ops)
			m->report = &reports[i];
	}
	return compile(t, &m->regex, m->report->regex) ?:
	       (m->report->context ? compile(t, &m->context, m->report->context) : 0);
}

static int kmsg_start(struct flight_trigger *t)
{
	struct messages *m = t->priv;
	int err;

	m->suspended = clockid__time_suspended();
	t->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (t->fd >= 0 && lseek(t->fd, 0, SEEK_END) >= 0)
		return 0;
	err = -errno;
	pr_err("--trigger %s: cannot read the messages of the kernel (/dev/kmsg): %s%s\n",
	       t->ops->name, strerror(-err), err != -EPERM ? "" :
	       ". This takes CAP_SYSLOG, or 0 in kernel.dmesg_restrict.");
	return err;
}

static void copy_group(char *to, size_t size, const char *line, const regmatch_t *group)
{
	*to = '\0';
	if (group->rm_so >= 0)
		scnprintf(to, size, "%.*s", (int)(group->rm_eo - group->rm_so),
			  line + group->rm_so);
}

static void set_cause(struct flight_trigger *t, const char *line, const regmatch_t *groups)
{
	struct messages *m = t->priv;
	const struct report *r = m->report;
	char number[24];
	int limit;

	flight_trigger__set_reason(t, line);
	if (!r)
		return;
	if (r->pid) {
		copy_group(number, sizeof(number), line, &groups[r->pid]);
		t->cause.pid = atoi(number);
		copy_group(t->cause.comm, sizeof(t->cause.comm), line, &groups[r->comm]);
	}
	if (r->value && groups[r->value].rm_so >= 0) {
		copy_group(number, sizeof(number), line, &groups[r->value]);
		t->cause.value = strtoull(number, NULL, 10);
		t->cause.unit = r->unit;
		/* The kernel tells how long it has lasted, not what the limit is. */
		if (r->limit && !sysctl__read_int(r->limit, &limit) && limit > 0)
			t->cause.threshold = (u64)limit * r->factor;
	}
	memcpy(t->cause.cgroup, m->cgroup, sizeof(t->cause.cgroup));
	/* A task that was killed may have left its own. */
	if (!r->context)
		flight_cause__set_cgroup(&t->cause, 0);
}

static bool was_suspended(struct messages *m)
{
	u64 before = m->suspended;

	m->suspended = clockid__time_suspended();
	return m->suspended > before + MIN_SUSPEND;
}

/* @record: begins with "PRIORITY,SEQUENCE,TIME", in us */
static void set_time(struct flight_trigger *t, const char *record)
{
	unsigned long long us;
	u64 at, now, here;

	if (was_suspended(t->priv) || sscanf(record, "%*u,%*u,%llu", &us) != 1 ||
	    !local_clock__read(&now) || clockid__read(t->host->clockid, &here))
		return;
	at = us * NSEC_PER_USEC;
	if (at <= now && now - at < here)
		t->hit_at = here - (now - at);
}

static bool is_hit(struct flight_trigger *t, const char *line, regmatch_t *groups)
{
	struct messages *m = t->priv;

	if (m->report && m->report->context && !regexec(&m->context, line, 2, groups, 0))
		copy_group(m->cgroup, sizeof(m->cgroup), line, &groups[1]);
	return !regexec(&m->regex, line, MAX_GROUPS, groups, 0);
}

/* "PRIORITY,SEQUENCE,TIME,FLAGS;MESSAGE", and lines with what belongs to it */
static char *split_message(const struct messages *m, char *record, ssize_t len)
{
	char *line;

	record[len] = '\0';
	line = strchr(record, ';');
	if (!line || (m->report && LOG_FACILITY(atoi(record))))
		return NULL;
	line++;
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static unsigned int kmsg_hits(struct flight_trigger *t)
{
	struct messages *m = t->priv;
	regmatch_t groups[MAX_GROUPS];
	char record[MAX_RECORD + 1];
	unsigned int hits = 0;
	int i;

	for (i = 0; i < RECORDS_PER_PASS; i++) {
		ssize_t len = read(t->fd, record, MAX_RECORD);
		char *line;

		/* Some have been overwritten before they were read. */
		if (len < 0 && errno == EPIPE)
			continue;
		if (len <= 0)
			break;
		line = split_message(m, record, len);
		if (!line || !is_hit(t, line, groups))
			continue;
		if (!hits++ && trigger_is_ready(&t->state)) {
			set_cause(t, line, groups);
			/* The cooldown may swallow it. */
			if (t->looked_at >= t->quiet_until)
				set_time(t, record);
		}
		/* The next one may have no such line. */
		*m->cgroup = '\0';
	}
	t->more = i == RECORDS_PER_PASS;
	return hits;
}

static void kmsg_stop(struct flight_trigger *t)
{
	close(t->fd);
	t->fd = -1;
}

#define KMSG_TRIGGER(symbol, text_name, text_form, parse_fn)		\
const struct flight_trigger_ops flight_trigger_##symbol = {		\
	.name	= text_name,						\
	.form	= text_form,						\
	.by_itself = true,						\
	.parse_terms = parse_fn,					\
	.start	= kmsg_start,						\
	.hits	= kmsg_hits,						\
	.stop	= kmsg_stop,						\
	.free	= kmsg_free,						\
}

KMSG_TRIGGER(kmsg, "kmsg", "kmsg/match=REGEX/", kmsg_parse_terms);
KMSG_TRIGGER(oom, "oom", "oom", report_parse_terms);
KMSG_TRIGGER(hung, "hung", "hung", report_parse_terms);
KMSG_TRIGGER(lockup, "lockup", "lockup", report_parse_terms);
KMSG_TRIGGER(rcu_stall, "rcu-stall", "rcu-stall", report_parse_terms);
