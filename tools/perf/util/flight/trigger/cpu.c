// SPDX-License-Identifier: GPL-2.0
/*
 * Trigger: busy CPUs, --trigger cpu/busy,over=95%,for=5s/
 *
 * /proc/stat has the time that all CPUs together were busy and idle. It is read NR_STEPS
 * times in @period. If they were busier than @over since the oldest reading, which is @period
 * ago, it is a hit. The next hit is possible when that was not so once: a machine that is
 * busy for hours is one hit.
 */
#include "terms.h"
#include "triggers.h"
#include "../../debug.h"

#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NR_STEPS	5
#define MIN_PERIOD	((u64)(500 * NSEC_PER_MSEC))
#define DEFAULT_PERIOD	((u64)(5 * NSEC_PER_SEC))

/**
 * struct reading - of /proc/stat, in ticks
 * @busy: time not idle
 * @all: all time
 */
struct reading {
	u64	busy;
	u64	all;
};

/**
 * struct load - what is watched
 * @busy: that the CPUs are busy
 * @over: to more than this, in percent
 * @period: for so long, in ns
 * @stat_fd: /proc/stat
 * @above: it has been so at the last reading
 * @readings: the last ones
 * @nr: how many there were
 */
struct load {
	bool		busy;
	u64		over;
	u64		period;
	int		stat_fd;
	bool		above;
	struct reading	readings[NR_STEPS];
	u64		nr;
};

static const struct flight_term terms[] = {
	{ "busy",	TERM_FLAG,	offsetof(struct load, busy) },
	{ "over",	TERM_PERCENT,	offsetof(struct load, over) },
	{ "for",	TERM_TIME,	offsetof(struct load, period) },
	{ NULL }
};

static int cpu_parse_terms(struct flight_trigger *t, char *text)
{
	struct load *l = zalloc(sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	t->priv = l;
	l->over = ~0ULL;
	l->period = DEFAULT_PERIOD;
	err = flight_terms__parse(t, terms, text);
	if (err)
		return err;
	if (!l->busy)
		return flight_terms__refuse(t, "'busy' is missing");
	if (l->over >= 100)
		return flight_terms__refuse(t, "'over' must be a percentage below 100%%");
	if (l->period < MIN_PERIOD)
		return flight_terms__refuse(t, "'for' must be at least 500ms");
	return 0;
}

static void cpu_free(struct flight_trigger *t)
{
	zfree(&t->priv);
}

/* user nice system idle iowait irq softirq steal; guest time is in the first two. */
static int read_stat(const struct load *l, struct reading *r)
{
	unsigned long long times[8] = {};
	char text[512];
	ssize_t len = pread(l->stat_fd, text, sizeof(text) - 1, 0);

	text[max_t(ssize_t, len, 0)] = '\0';
	if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &times[0], &times[1],
		   &times[2], &times[3], &times[4], &times[5], &times[6], &times[7]) < 4)
		return -EIO;
	*r = (struct reading) {};
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		r->all += times[i];
	r->busy = r->all - times[3] - times[4];
	return 0;
}

static int cpu_start(struct flight_trigger *t)
{
	struct load *l = t->priv;
	u64 ns = l->period / NR_STEPS;
	struct itimerspec its = {
		.it_value.tv_sec     = ns / NSEC_PER_SEC,
		.it_value.tv_nsec    = ns % NSEC_PER_SEC,
		.it_interval.tv_sec  = ns / NSEC_PER_SEC,
		.it_interval.tv_nsec = ns % NSEC_PER_SEC,
	};
	struct reading now;

	l->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	if (l->stat_fd < 0 || read_stat(l, &now)) {
		pr_err("--trigger cpu: cannot read /proc/stat: %m\n");
		return -EIO;
	}
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return t->fd < 0 || timerfd_settime(t->fd, 0, &its, NULL) ? -errno : 0;
}

static void set_reason(struct flight_trigger *t, u64 percent)
{
	const struct load *l = t->priv;

	t->cause.unit = "%";
	t->cause.value = percent;
	t->cause.threshold = l->over;
	scnprintf(t->reason, sizeof(t->reason),
		  "the CPUs were %" PRIu64 "%% busy for %" PRIu64 " ms, over %" PRIu64 "%%",
		  percent, l->period / NSEC_PER_MSEC, l->over);
}

static unsigned int cpu_hits(struct flight_trigger *t)
{
	struct load *l = t->priv;
	struct reading now, *oldest = &l->readings[l->nr % NR_STEPS];
	u64 expirations, busy, all;
	bool was_above = l->above;

	if (read(t->fd, &expirations, sizeof(expirations)) < 0 || read_stat(l, &now))
		return 0;
	busy = now.busy - oldest->busy;
	all = now.all - oldest->all;
	if (l->nr >= NR_STEPS && all)
		l->above = busy * 100 > l->over * all;
	*oldest = now;
	l->nr++;
	if (!l->above || was_above)
		return 0;
	if (trigger_is_ready(&t->state))
		set_reason(t, busy * 100 / all);
	return 1;
}

static void cpu_stop(struct flight_trigger *t)
{
	struct load *l = t->priv;

	close(l->stat_fd);
	close(t->fd);
	t->fd = -1;
}

const struct flight_trigger_ops flight_trigger_cpu = {
	.name	= "cpu",
	.form	= "cpu/busy,over=PERCENT%[,for=TIME]/",
	.by_itself = true,
	.parse_terms = cpu_parse_terms,
	.start	= cpu_start,
	.hits	= cpu_hits,
	.stop	= cpu_stop,
	.free	= cpu_free,
};
