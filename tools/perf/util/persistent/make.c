// SPDX-License-Identifier: GPL-2.0
/*
 * perf record -P NAME: create a persistent session
 *
 * Each CPU gets two ring buffers:
 *
 *	side-band	comm, mmap2, task, ksymbol and bpf_event records of a
 *			dummy event. They name the samples. There are few of
 *			them, so a small separate buffer reaches back further
 *			than the samples, however many these are.
 *	samples		of all events of the CPU. The first event maps the
 *			buffer, the others are redirected into it
 *			(PERF_EVENT_IOC_SET_OUTPUT).
 *
 * With --call-graph fp,defer, the user halves of call chains are records of their own, up
 * to one for each entry into the kernel. In the side-band's buffer they would evict what
 * names the samples, and themselves. A second dummy event writes them to the buffer of the
 * samples, so both reach back to the same time. A task may return to user space on
 * another CPU: where nothing is sampled, the halves have a small buffer. The kernel
 * writes each half to all events that output halves, so a CPU has one of them, even if
 * events with deferred call chains are added.
 *
 * All events of a CPU share one sample buffer, so the window from the oldest to
 * the newest record is the same for all of them, and the memory does not depend on
 * their number. To give an event a window that others cannot shorten, create
 * another session, or add the event with --add: added events have buffers of their
 * own.
 *
 * The side-band and the halves are recorded on all CPUs, even if only some CPUs are
 * sampled, because tasks migrate.
 *
 * With --reserve, the kernel allocates the buffers in a reserved region, when an event joins
 * the session. They cannot be mapped before, and events cannot be redirected into them, so
 * each event has a buffer of its own.
 *
 * With -p or -t, the events of all threads share the two buffers of a CPU. The
 * kernel passes the events on to the threads and children that these threads start
 * (attr.inherit), theirs included. A thread that starts between the scan of /proc and
 * perf_event_open() of the thread that starts it is missed, as by perf record without -P.
 *
 * With --per-thread (or --no-inherit) as well, each existing thread has two buffers of its
 * own, on whatever CPU it runs, and what it starts is not followed: a buffer has one
 * writer at a time, so such an event cannot be inherited.
 *
 * The session is created completely or not at all. Everything that can fail
 * because of a PMU, permissions or memory is done first (open, filter, map,
 * redirect). Then a partial session is created, which is not visible and ends with
 * any of its file descriptors. It is completed when all its events have joined and
 * are running. If this process is killed before that, the session ends. Before
 * --replace ends the old session, a child creates the new one in the same way under
 * another name and exits, to find out whether the kernel would refuse it. Events
 * that are added to an existing session are visible at once. If adding fails, they
 * are removed one by one (PERF_EVENT_IOC_CLAIM); signals are blocked meanwhile.
 */
#include "persistent.h"
#include "../base-api.h"
#include "../cpumap.h"
#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../perf_api_probe.h"
#include "../record.h"
#include "../callchain.h"
#include "../target.h"
#include "../util.h"

#include <api/fs/fs.h>
#include <internal/lib.h>
#include <internal/xyarray.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>
#include <perf/cpumap.h>
#include <perf/threadmap.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FD(e, x, y) (*(int *)xyarray__entry((e)->core.fd, x, y))

/**
 * struct maker - a session being created
 * @opts: options of perf record
 * @evlist: its events; the side-band event is the tracking event
 * @sideband: the side-band event
 * @halves: the event that outputs the user halves of call chains, or NULL
 * @name: name of the session
 * @full_name: its name as the kernel has it, see name.c
 * @existing: the existing session of that name, or NULL
 * @add: add to @existing
 * @replace: end @existing
 * @id: id of the session after it was created
 * @tasks: the events follow tasks (-p, -t)
 * @reserve: label of the region for the buffers, or NULL
 * @region: label of the region of @existing, or NULL
 * @per_thread: each task has buffers of its own, which no other task inherits
 * @sample_size: bytes of a sample buffer
 * @memory: bytes of all buffers created
 * @nr_buffers: number of buffers
 * @nr_sideband: number of buffers for side-band
 * @nr_events: file descriptors given to the session
 * @fds: these file descriptors
 * @sizes: bytes of the buffer that the kernel allocates for each of them, or 0
 */
struct maker {
	struct record_opts		*opts;
	struct evlist			*evlist;
	struct evsel			*sideband;
	struct evsel			*halves;
	const char			*name;
	char				full_name[PERF_PERSISTENT_NAME_LEN];
	struct persistent_session	*existing;
	bool				add;
	bool				replace;
	bool				tasks;
	const char			*reserve;
	char				*region;
	bool				per_thread;
	u64				id;
	size_t				sample_size;
	size_t				memory;
	int				nr_buffers;
	int				nr_sideband;
	bool				has_lone_halves;
	int				nr_events;
	int				*fds;
	u64				*sizes;
};

static int maker__find_existing(struct maker *m)
{
	bool own = persistent__find_own(m->name, m->full_name);
	u64 id;

	if (!own)
		scnprintf(m->full_name, sizeof(m->full_name), "%s", m->name);

	/* A session of another user: only the kernel knows whether the names collide. */
	if (!own && !m->add && !m->replace && !persistent__is_readable(m->name))
		return 0;

	if (!persistent__find_id(m->full_name, &id)) {
		if (!m->add)
			return 0;
		pr_err("Cannot add events to the persistent session '%s': it does not exist. Create it without --add.\n",
		       m->name);
		return -ENOENT;
	}

	if (!m->add && !m->replace) {
		pr_err("The persistent session '%s' already exists. Use --add to add events to it, or --replace to replace it.\n",
		       m->name);
		return -EEXIST;
	}

	m->existing = persistent_session__open(m->full_name);
	if (IS_ERR(m->existing)) {
		int err = PTR_ERR(m->existing);

		m->existing = NULL;
		return err;
	}
	if (m->add)
		m->id = id;

	m->region = persistent__region(m->full_name);
	if (m->region && m->add && !m->reserve)
		m->reserve = m->region;
	if (m->region && m->replace && !m->reserve)
		pr_warning("The persistent session '%s' lies in the region '%s', the new one will not: use --reserve %s.\n",
			   m->name, m->region, m->region);
	return 0;
}

/* Use one clock for the whole session, so that its records can be sorted. */
static int maker__choose_clock(struct maker *m)
{
	const struct perf_event_attr *attr;
	struct record_opts *opts = m->opts;

	if (m->add) {
		attr = &m->existing->events[0].attr;
		if (opts->use_clockid &&
		    (!attr->use_clockid || attr->clockid != opts->clockid)) {
			pr_err("-k differs from the clock of the persistent session '%s'. Do not use -k with --add.\n",
			       m->name);
			return -EINVAL;
		}
		opts->use_clockid = attr->use_clockid;
		opts->clockid = attr->clockid;
	} else if (!opts->use_clockid) {
		/* Use a clock that user space can read, to convert to wall-clock time. */
		opts->use_clockid = true;
		opts->clockid = CLOCK_MONOTONIC;
	}
	return 0;
}

/* An event that is added to a session records the same data as the others. */
static void maker__choose_cgroup(struct maker *m)
{
	if (!m->add) {
		record_opts__default_cgroup(m->opts);
		return;
	}
	if (m->opts->record_cgroup_set)
		return;
	for (int i = 0; i < m->existing->nr_events; i++) {
		if (m->existing->events[i].attr.sample_type & PERF_SAMPLE_CGROUP)
			m->opts->record_cgroup = true;
	}
}

static bool maker__has_sideband(struct maker *m, int cpu)
{
	/* The kernel tells that an event follows a task, but not which. */
	return m->add && !m->tasks &&
	       persistent_session__has_kind(m->existing, cpu, PERSISTENT_SIDEBAND);
}

static void maker__config_attr(struct maker *m, struct evsel *evsel)
{
	struct perf_event_attr *attr = &evsel->core.attr;
	bool sideband = evsel == m->sideband;

	attr->inherit	     = m->tasks && !m->per_thread;
	attr->inherit_stat   = 0;
	attr->enable_on_exec = 0;
	attr->disabled	     = 1;
	attr->write_backward = 1;
	attr->sample_id_all  = 1;
	attr->sample_type   |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
	attr->sample_type   &= ~PERF_SAMPLE_ID;
	attr->read_format    = PERF_FORMAT_ID | PERF_FORMAT_LOST;

	/* Halves go to events with side-band. comm_exec is one; without comm it writes nothing. */
	attr__set_halves(attr, evsel == m->halves);
	if (evsel == m->halves)
		attr->comm_exec = 1;

	if (!sideband)
		return;

	attr->mmap	= 1;
	attr->mmap2	= 1;
	attr->comm	= 1;
	attr->comm_exec	= 1;
	attr->task	= 1;
	attr->ksymbol	= 1;
	attr->bpf_event	= !m->opts->no_bpf_event;
	attr->build_id	= perf_can_record_build_id();
}

/* After the other events are configured */
static int maker__add_halves(struct maker *m)
{
	bool defers = false;
	struct evsel *evsel;

	evlist__for_each_entry(m->evlist, evsel)
		defers |= evsel__defers_callchain(evsel);
	if (!defers)
		return 0;

	m->halves = evlist__add_aux_dummy(m->evlist, /*system_wide=*/!m->tasks);
	if (!m->halves)
		return -ENOMEM;
	evsel__config(m->halves, m->opts, &callchain_param);
	return 0;
}

static int maker__config(struct maker *m)
{
	struct evlist *evlist = m->evlist;
	struct record_opts *opts = m->opts;
	struct evsel *evsel;
	int err;

	/* Reset uid: otherwise the maps would contain the threads of a user. */
	target__select_all_users(&opts->target);
	if (m->tasks) {
		/* One event that follows the task, or one per CPU. */
		opts->target.per_thread = m->per_thread;
		opts->ignore_missing_thread = false;
		opts->sample_cpu = true;
	}
	if (evlist__create_maps(evlist, &opts->target) < 0) {
		if (m->tasks)
			pr_err("No such process or thread: %s\n",
			       opts->target.pid ?: opts->target.tid);
		else
			pr_err("No such CPUs: %s\n", opts->target.cpu_list);
		return -EINVAL;
	}
	err = opts->target.cpu_list ? evlist__check_cpus(evlist) : 0;
	if (err)
		return err;

	m->sideband = evlist__findnew_tracking_event(evlist, /*system_wide=*/!m->tasks);
	if (!m->sideband)
		return -ENOMEM;

	if (maker__choose_clock(m))
		return -EINVAL;
	maker__choose_cgroup(m);
	opts->no_inherit = true;
	opts->overwrite = true;
	opts->sample_identifier = true;

	if (record_opts__config(opts))
		return -EINVAL;

	evlist__config(evlist, opts, &callchain_param);
	err = maker__add_halves(m);
	if (err)
		return err;
	evlist__for_each_entry(evlist, evsel)
		maker__config_attr(m, evsel);
	return 0;
}

static int maker__open(struct maker *m)
{
	struct target *target = &m->opts->target;
	struct evsel *evsel;
	char msg[BUFSIZ];
	int err;

	evlist__for_each_entry(m->evlist, evsel) {
try_again:
		if (!evsel__open(evsel, evsel->core.cpus, evsel->core.threads))
			continue;

		err = -errno;
		if (evsel__fallback(evsel, target, -err, msg, sizeof(msg))) {
			if (verbose > 0)
				pr_warning("%s\n", msg);
			goto try_again;
		}
		evsel__open_strerror(evsel, target, -err, msg, sizeof(msg));
		pr_err("%s\n", msg);
		return err;
	}

	if (evlist__apply_filters(m->evlist, &evsel, target)) {
		err = -errno;
		pr_err("Cannot set the filter \"%s\" on %s: %s\n", evsel->filter ?: "BPF",
		       evsel__name(evsel), str_error_r(-err, msg, sizeof(msg)));
		return err ?: -EINVAL;
	}
	return 0;
}

static int maker__map(struct maker *m, int fd, size_t size)
{
	char msg[STRERR_BUFSIZE];
	int err;

	if (m->reserve) {
		m->sizes[m->nr_events] = size;
		m->memory += size + page_size;
		m->nr_buffers++;
		return 0;
	}

	/*
	 * The buffer stays mapped until this process exits: the session takes over
	 * the buffer of its creator.
	 */
	if (mmap(NULL, size + page_size, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED) {
		m->memory += size + page_size;
		m->nr_buffers++;
		return 0;
	}

	err = -errno;
	if (err == -EPERM)
		pr_err("No permission for %zu KiB of locked memory per %s: use a smaller -m, increase /proc/sys/kernel/perf_event_mlock_kb, or run with CAP_IPC_LOCK.\n",
		       size / 1024, m->per_thread ? "thread" : "CPU");
	else
		pr_err("Cannot map a ring buffer of %zu KiB: %s\n", size / 1024,
		       str_error_r(-err, msg, sizeof(msg)));
	return err;
}

static int maker__redirect(struct evsel *evsel, int fd, int output_fd)
{
	char msg[STRERR_BUFSIZE];
	int err;

	if (!ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, output_fd))
		return 0;

	err = -errno;
	pr_err("Cannot let %s share the sample buffer: %s\n", evsel__name(evsel),
	       str_error_r(-err, msg, sizeof(msg)));
	return err;
}

static void maker__take(struct maker *m, int fd)
{
	m->fds[m->nr_events++] = fd;
}

/* The first event maps the buffer, the others are redirected into it, unless they are placed. */
static int maker__place(struct maker *m, struct evsel *evsel, int fd, int *output_fd, size_t size)
{
	int err;

	if (*output_fd < 0 || m->reserve) {
		err = maker__map(m, fd, size);
		*output_fd = fd;
	} else {
		err = maker__redirect(evsel, fd, *output_fd);
	}
	if (!err)
		maker__take(m, fd);
	return err;
}

/* @sample_fd: the event whose buffer the samples have, or -1 if nothing is sampled there */
static int maker__place_halves(struct maker *m, struct perf_cpu cpu, int first, int nr_threads,
			       int sample_fd)
{
	size_t size = sample_fd < 0 ? PERSISTENT_SIDEBAND_SIZE : m->sample_size;
	int idx, err = 0;

	/* perf has found out that the kernel does not defer them, when it opened the events. */
	if (!m->halves || !attr__outputs_halves(&m->halves->core.attr) ||
	    (m->add && persistent_session__has_kind(m->existing, cpu.cpu, PERSISTENT_HALVES)))
		return 0;

	idx = perf_cpu_map__idx(m->halves->core.cpus, cpu);
	m->has_lone_halves |= sample_fd < 0 && idx >= 0 && nr_threads;
	for (int thread = first; !err && idx >= 0 && thread < first + nr_threads; thread++)
		err = maker__place(m, m->halves, FD(m->halves, idx, thread), &sample_fd, size);
	return err;
}

/*
 * Buffers of one CPU, or of one thread on any CPU. They join the session in the order in
 * which they are created.
 */
static int maker__prepare_one(struct maker *m, struct perf_cpu cpu, int first, int nr_threads)
{
	int sideband_fd = -1, sample_fd = -1, end = first + nr_threads;
	bool wanted = !maker__has_sideband(m, cpu.cpu);
	struct evsel *evsel;
	int idx, err;

	idx = perf_cpu_map__idx(m->sideband->core.cpus, cpu);
	for (int thread = first; wanted && idx >= 0 && thread < end; thread++) {
		err = maker__place(m, m->sideband, FD(m->sideband, idx, thread), &sideband_fd,
				   PERSISTENT_SIDEBAND_SIZE);
		if (err)
			return err;
	}
	m->nr_sideband += sideband_fd >= 0;

	evlist__for_each_entry(m->evlist, evsel) {
		if (evsel == m->sideband || evsel == m->halves)
			continue;

		idx = perf_cpu_map__idx(evsel->core.cpus, cpu);
		for (int thread = first; idx >= 0 && thread < end; thread++) {
			err = maker__place(m, evsel, FD(evsel, idx, thread), &sample_fd,
					   m->sample_size);
			if (err)
				return err;
		}
	}
	return maker__place_halves(m, cpu, first, nr_threads, sample_fd);
}

static int maker__prepare(struct maker *m)
{
	int idx, err, nr_threads = perf_thread_map__nr(evlist__core(m->evlist)->threads);
	struct perf_cpu_map *cpus = evlist__core(m->evlist)->all_cpus;
	struct perf_cpu cpu;
	size_t nr;

	nr = (size_t)perf_cpu_map__nr(cpus) * nr_threads * evlist__nr_entries(m->evlist);
	m->fds = calloc(nr, sizeof(*m->fds));
	m->sizes = calloc(nr, sizeof(*m->sizes));
	if (!m->fds || !m->sizes)
		return -ENOMEM;

	perf_cpu_map__for_each_cpu(cpu, idx, cpus) {
		if (!m->per_thread) {
			err = maker__prepare_one(m, cpu, 0, nr_threads);
			if (err)
				return err;
		}
		for (int thread = 0; m->per_thread && thread < nr_threads; thread++) {
			err = maker__prepare_one(m, cpu, thread, 1);
			if (err)
				return err;
		}
	}
	return 0;
}

static int maker__unclaim(struct maker *m, int i, u32 flags)
{
	struct perf_persistent_arg arg = {
		.size	   = sizeof(arg),
		.flags	   = flags,
		.id	   = m->id,
		.data_size = m->sizes[i],
	};

	scnprintf(arg.name, sizeof(arg.name), "%s", m->name);
	if (m->reserve)
		scnprintf(arg.label, sizeof(arg.label), "%s", m->reserve);
	if (ioctl(m->fds[i], PERF_EVENT_IOC_UNCLAIM, &arg))
		return -errno;

	m->id = arg.id;
	return 0;
}

/* Return: was it an error of the region? */
static bool maker__region_error(struct maker *m, int err)
{
	switch (err) {
	case -ENODEV:
		/* Also if the CPU of an event has gone offline, see @m->id */
		if (m->id)
			return false;
		pr_err("There is no region '%s' for persistent sessions: boot with reserve_mem=SIZE:4096:%s perf_persistent=@%s, and see dmesg.\n",
		       m->reserve, m->reserve, m->reserve);
		return true;
	case -ENOSPC:
		pr_err("The region '%s' has no room for %zu KiB in %d buffers and for notes: use a smaller -m or fewer events, end another session there (perf ctl -l), or boot with a larger reserve_mem=.\n",
		       m->reserve, m->memory / 1024, m->nr_buffers);
		return true;
	case -EBUSY:
		if (m->id)
			return false;
		pr_err("The region '%s' is full of what kernels left at their deaths: save and release it with perf data recover --release.\n",
		       m->reserve);
		return true;
	case -EPERM:
		pr_err("No permission to record to the region '%s': run with CAP_PERFMON.\n",
		       m->reserve);
		return true;
	case -EINVAL:
		if (!m->add)
			return false;
		pr_err("The persistent session '%s' does not lie in the region '%s', or one of the events cannot be persistent: see perf ctl -l.\n",
		       m->name, m->reserve);
		return true;
	case -EOPNOTSUPP:
	case -E2BIG:
		if (m->id && err == -EOPNOTSUPP)
			return false;
		pr_err("This kernel cannot place a session in a region: boot one with CONFIG_PERF_PERSISTENT_BLACKBOX.\n");
		return true;
	default:
		return false;
	}
}

static void maker__unclaim_error(struct maker *m, int err)
{
	char msg[STRERR_BUFSIZE];
	int max;

	if (m->reserve && maker__region_error(m, err))
		return;

	switch (err) {
	case -EEXIST:
		pr_err("A persistent session '%s' exists already. Use another name, --add or --replace.\n",
		       m->name);
		break;
	case -EDQUOT:
		if (!sysctl__read_int("kernel/perf_persistent_max", &max) && !max) {
			pr_err("Users without CAP_PERFMON may not create persistent sessions: run with CAP_PERFMON, or let the administrator increase /proc/sys/kernel/perf_persistent_max, which is 0.\n");
			break;
		}
		pr_err("The limit of persistent sessions (/proc/sys/kernel/perf_persistent_max) is reached: end a session (perf ctl -l, perf ctl -d NAME).\n");
		break;
	case -ENOMEM:
		pr_err("No memory for %zu KiB of buffers: use a smaller -m, increase the limit of the memory cgroup (memory.max), or run in another one.\n",
		       m->memory / 1024);
		break;
	case -EPERM:
		pr_err("No permission to leave %zu KiB of buffers locked: use a smaller -m, increase /proc/sys/kernel/perf_event_mlock_kb, or run with CAP_IPC_LOCK.\n",
		       m->memory / 1024);
		break;
	case -EACCES:
		pr_err("No permission to add events to the persistent session '%s': only its owner and CAP_PERFMON may.\n",
		       m->name);
		break;
	case -EBUSY:
		pr_err("Cannot add events to the persistent session '%s' while it is frozen. Let it go on, and try again: perf ctl --thaw %s\n",
		       m->name, m->name);
		break;
	case -EINVAL:
		pr_err("The kernel refuses '%s' as a persistent session: one of its events cannot be persistent (AUX area, groups), or the name is too long with the user in front. The tracepoint perf_persistent:perf_persistent_refuse gives the reason.\n",
		       m->name);
		break;
	case -EOPNOTSUPP:
		pr_err("This kernel does not support persistent events of %s.\n",
		       m->tasks ? "tasks" : "this kind");
		break;
	default:
		pr_err("Cannot create the persistent session '%s': %s\n", m->name,
		       str_error_r(-err, msg, sizeof(msg)));
		break;
	}
}

static int maker__hand_over(struct maker *m)
{
	u32 flags = m->add ? 0 : PERF_PERSISTENT_PARTIAL;
	int i, err = 0;

	for (i = 0; i < m->nr_events; i++) {
		err = maker__unclaim(m, i, flags);
		if (err)
			goto out_undo;
	}

	for (int n = 0; n < m->nr_events; n++) {
		if (ioctl(m->fds[n], PERF_EVENT_IOC_ENABLE, 0)) {
			err = -errno;
			goto out_undo;
		}
	}

	/* Complete the session. */
	if (!m->add)
		err = maker__unclaim(m, 0, 0);
	if (!err)
		return 0;

out_undo:
	/* A partial session ends with the file descriptors of this process. */
	while (m->add && i-- > 0)
		ioctl(m->fds[i], PERF_EVENT_IOC_CLAIM);
	maker__unclaim_error(m, err);
	return err;
}

/* Do everything except for the last step. The result ends with this process. */
static int maker__rehearse(struct maker *m)
{
	char name[PERF_PERSISTENT_NAME_LEN];
	const char *real_name = m->name;
	int err;

	err = maker__config(m);
	if (!err)
		err = maker__open(m);
	if (!err)
		err = maker__prepare(m);
	if (err)
		return err;

	scnprintf(name, sizeof(name), "_replace-%d", getpid());
	m->name = name;
	for (int i = 0; !err && i < m->nr_events; i++)
		err = maker__unclaim(m, i, PERF_PERSISTENT_PARTIAL);
	m->name = real_name;

	/* Ending the old session allows one more. */
	if (err == -EDQUOT && !m->id)
		return 0;
	if (err)
		maker__unclaim_error(m, err);
	return err;
}

static int maker__try_replace(struct maker *m)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(maker__rehearse(m) ? 1 : 0);

	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;

	pr_err("The persistent session '%s' was not replaced. (--replace needs memory for both sessions. To avoid this, end the old one first: perf ctl -d %s.)\n",
	       m->name, m->name);
	return -EINVAL;
}

static int maker__commit(struct maker *m)
{
	sigset_t all, old;
	int err = 0;

	if (!m->nr_events) {
		pr_err("None of the events is available on any of the CPUs.\n");
		return -ENODEV;
	}

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	if (m->replace && m->existing) {
		err = persistent_session__claim(m->existing);
		persistent_session__close(m->existing);
		m->existing = NULL;
		if (err)
			pr_err("Cannot end the persistent session '%s' to replace it%s.\n",
			       m->name, err == -EPERM ?
			       ": only its owner and CAP_SYS_ADMIN may" : "");
	}
	if (!err)
		err = maker__hand_over(m);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

/* Ask the kernel what it called the session. */
static void maker__learn_name(struct maker *m)
{
	struct perf_persistent_info info = { .size = sizeof(info) };

	if (!ioctl(m->fds[0], PERF_EVENT_IOC_PERSISTENT_INFO, &info))
		scnprintf(m->full_name, sizeof(m->full_name), "%s", info.name);
}

/* udev saw no session yet, when a CPU came online meanwhile. */
static void maker__join_new_cpus(struct maker *m)
{
	struct perf_cpu_map *online;
	struct perf_cpu cpu;
	int idx;

	if (m->tasks || m->opts->target.cpu_list)
		return;

	online = perf_cpu_map__new_online_cpus();
	perf_cpu_map__for_each_cpu(cpu, idx, online) {
		const char *name = m->full_name;
		char list[16];

		if (perf_cpu_map__has(m->sideband->core.cpus, cpu))
			continue;
		scnprintf(list, sizeof(list), "%d", cpu.cpu);
		persistent__join_cpus(list, &name, 1);
	}
	perf_cpu_map__put(online);
}

static void maker__print(struct maker *m)
{
	struct evsel *evsel;
	bool first = true;

	fprintf(stderr, "[ perf record: persistent session '%s' (id %llu): %s ", m->full_name,
		(unsigned long long)m->id, m->add ? "added" : "recording");
	evlist__for_each_entry(m->evlist, evsel) {
		if (evsel == m->sideband || evsel == m->halves)
			continue;
		fprintf(stderr, "%s%s", first ? "" : ", ", evsel__name(evsel));
		first = false;
	}
	fprintf(stderr, " ]\n");
	fprintf(stderr, "[ perf record: %d events in %d ring buffers, %zu KiB of memory ",
		m->nr_events, m->nr_buffers, m->memory / 1024);
	fprintf(stderr, "(per %s %zu KiB for samples", m->per_thread ? "thread" : "CPU",
		m->sample_size / 1024);
	if (m->reserve)
		fprintf(stderr, " of each event");
	if (m->nr_sideband)
		fprintf(stderr, ", %d KiB for side-band", PERSISTENT_SIDEBAND_SIZE / 1024);
	if (m->has_lone_halves)
		fprintf(stderr, ", %d KiB for user halves where nothing is sampled",
			PERSISTENT_SIDEBAND_SIZE / 1024);
	fprintf(stderr, ")%s%s ]\n", m->reserve ? " in region " : "", m->reserve ?: "");
	fprintf(stderr, "[ perf record: read it: perf record -e persistent/%s/", m->full_name);
	fprintf(stderr, "   list: perf ctl -l   end it: perf ctl -d %s ]\n", m->full_name);
}

/**
 * persistent__make - create a persistent session, or add events to one
 * @p: the options of persistent events
 * @evlist: the events of -e
 * @opts: the other options of perf record
 *
 * Prints what was created, or an error message.
 *
 * Return: 0, or a negative errno.
 */
int persistent__make(struct persistent_opts *p, struct evlist *evlist, struct record_opts *opts)
{
	struct maker m = {
		.opts	 = opts,
		.evlist	 = evlist,
		.name	 = p->make,
		.add	 = p->add,
		.replace = p->replace,
		.reserve = p->reserve,
		.tasks	 = opts->target.pid || opts->target.tid,
		.per_thread = (opts->target.pid || opts->target.tid) &&
			      (opts->target.per_thread || opts->no_inherit),
		.sample_size = opts->mmap_pages == UINT_MAX ? PERSISTENT_SAMPLE_SIZE :
			       (size_t)opts->mmap_pages * page_size,
	};
	int err;

	err = persistent__check_support();
	if (!err)
		err = maker__find_existing(&m);
	if (!err && m.replace && m.existing)
		err = maker__try_replace(&m);
	if (!err)
		err = maker__config(&m);
	if (!err)
		err = maker__open(&m);
	if (!err)
		err = maker__prepare(&m);
	if (!err)
		err = maker__commit(&m);
	p->made = m.id;
	p->take_notes = m.reserve || persistent__has_crash_kernel();
	if (!err) {
		maker__learn_name(&m);
		if (!quiet)
			maker__print(&m);
		maker__join_new_cpus(&m);
	}

	free(m.fds);
	free(m.sizes);
	free(m.region);
	persistent_session__close(m.existing);
	/* Do not unmap the buffers: the session must take them over. */
	evlist__close(evlist);
	return err;
}
