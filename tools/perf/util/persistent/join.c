// SPDX-License-Identifier: GPL-2.0
/*
 * perf ctl --join-cpu: let sessions record on a CPU that was not online when they were made
 *
 * A session has events on the CPUs that were online when it was made. They return with
 * their CPU. A CPU that comes online for the first time has none: this opens them there.
 * What records on all other CPUs of the session is to record on this one as well.
 *
 * The CPUs of a session are those that have a side-band event: perf makes these on all
 * CPUs that are online, even if only some of them are sampled. So an event of -C 0 is
 * told from one of -a. Sessions of the kernel's command line (perf_persistent=) have none,
 * and are on all CPUs: their CPUs are those that have any event. So are those of a session
 * that neither perf nor the command line has made; it is left alone unless it was named.
 *
 * The events are made from the perf_event_attr of those on another CPU, and share their
 * buffers in the same way. The attr does not have everything: an event with a filter or an
 * eBPF program cannot be made again, so such a session does not get the CPU, and perf
 * says so.
 *
 * Without a name, only sessions of the user are joined. An event that root opened for the
 * session of another user would be charged to root, and asks more of its readers.
 *
 * The CPU is joined completely or not at all. The side-band event comes last: until then,
 * another perf that joins another CPU does not take this one for a CPU of the session.
 */
#include "persistent.h"
#include "../cloexec.h"
#include "../debug.h"
#include "../evsel.h"
#include "../perf-sys.h"
#include "../rlimit.h"
#include "../util.h"

#include <api/fs/fs.h>
#include <internal/lib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Another perf may change the session meanwhile: try again. */
#define JOIN_RETRIES	10

/**
 * struct joiner - a CPU that joins a session
 * @session: the session, opened for reading
 * @online: the CPUs that are online
 * @region: label of the region that the session lies in, or NULL
 * @cpu: the CPU
 * @model: a CPU of the session that is online
 * @has_sideband: there are side-band events of CPUs
 * @fds: of the new event for each event of the session, or -1
 * @joined: indices of @fds, in the order of joining
 * @nr_joined: number of them
 * @memory: bytes of their buffers
 */
struct joiner {
	struct persistent_session	*session;
	struct perf_cpu_map		*online;
	char				*region;
	int				cpu;
	int				model;
	bool				has_sideband;
	int				*fds;
	int				*joined;
	int				nr_joined;
	size_t				memory;
};

/* Events that follow tasks follow them to any CPU. */
static bool event__is_of_cpu(const struct persistent_event *event)
{
	return event->cpu >= 0 && !(event->flags & PERF_PERSISTENT_INFO_TASK) &&
	       !event->attr.inherit;
}

static bool joiner__has_cpu(const struct joiner *j, int cpu)
{
	for (int i = 0; i < j->session->nr_events; i++) {
		const struct persistent_event *event = &j->session->events[i];

		if (event->cpu == cpu && event__is_of_cpu(event) &&
		    (!j->has_sideband || persistent_event__is_sideband(event)))
			return true;
	}
	return false;
}

static bool joiner__has_event(const struct joiner *j, int cpu, const struct perf_event_attr *attr)
{
	for (int i = 0; i < j->session->nr_events; i++) {
		const struct persistent_event *event = &j->session->events[i];

		if (event->cpu == cpu && event__is_of_cpu(event) &&
		    !memcmp(&event->attr, attr, sizeof(*attr)))
			return true;
	}
	return false;
}

/* Is it on each CPU of the session that is online? */
static bool joiner__wants(const struct joiner *j, const struct persistent_event *event)
{
	struct perf_cpu cpu;
	int idx;

	if (event->cpu != j->model || !event__is_of_cpu(event))
		return false;

	perf_cpu_map__for_each_cpu(cpu, idx, j->online) {
		if (joiner__has_cpu(j, cpu.cpu) && !joiner__has_event(j, cpu.cpu, &event->attr))
			return false;
	}
	return true;
}

/* Does the kernel's command line have perf_persistent=NAME:... ? */
static bool is_of_boot(const char *name)
{
	char *line, *word, *pos, want[PERF_PERSISTENT_NAME_LEN + 32];
	bool found = false;
	size_t size;

	scnprintf(want, sizeof(want), "perf_persistent=%s:", name);
	if (procfs__read_str("cmdline", &line, &size))
		return false;

	for (pos = line; !found && (word = strsep(&pos, " \n")) != NULL;)
		found = strstarts(word, want);
	free(line);
	return found;
}

static void joiner__look(struct joiner *j)
{
	struct perf_cpu cpu;
	int idx;

	j->has_sideband = false;
	for (int i = 0; i < j->session->nr_events; i++)
		j->has_sideband |= event__is_of_cpu(&j->session->events[i]) &&
				   persistent_event__is_sideband(&j->session->events[i]);

	j->model = -1;
	perf_cpu_map__for_each_cpu(cpu, idx, j->online) {
		if (j->model < 0 && cpu.cpu != j->cpu && joiner__has_cpu(j, cpu.cpu))
			j->model = cpu.cpu;
	}
}

static struct persistent_event *joiner__owner(const struct joiner *j,
					      const struct persistent_event *event)
{
	for (int i = 0; i < j->session->nr_events; i++) {
		struct persistent_event *owner = &j->session->events[i];

		if (owner->cpu == event->cpu && owner->index == event->buffer_index)
			return owner;
	}
	return NULL;
}

/* A buffer as large as that of the model, or the one that its owner got. */
static int joiner__give_buffer(struct joiner *j, const struct persistent_event *event, int fd)
{
	const struct persistent_event *owner = joiner__owner(j, event);
	int owner_fd = owner ? j->fds[owner - j->session->events] : -1;

	/* A region gives each event a buffer of its own when it joins. */
	if (!j->region && owner != event && owner_fd >= 0)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner_fd) ? -errno : 0;

	j->memory += event->data_size + page_size;
	/* It stays mapped until this process ends: the session takes it over. */
	if (!j->region && mmap(NULL, event->data_size + page_size, PROT_READ, MAP_SHARED, fd, 0) ==
	    MAP_FAILED)
		return -errno;
	return 0;
}

static int joiner__open(struct joiner *j, const struct persistent_event *event)
{
	enum rlimit_action set_rlimit = NO_CHANGE;
	struct perf_event_attr attr = event->attr;
	int fd, err, at = event - j->session->events;

	attr.disabled = 1;
	do {
		fd = sys_perf_event_open(&attr, -1, j->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	} while (fd < 0 && errno == EMFILE && rlimit__increase_nofile(&set_rlimit));
	if (fd < 0)
		return -errno;

	j->fds[at] = fd;
	err = joiner__give_buffer(j, event, fd);
	if (err)
		return err;

	j->joined[j->nr_joined++] = at;
	return 0;
}

static int joiner__open_all(struct joiner *j)
{
	struct persistent_session *session = j->session;
	int err;

	/* Side-band last, see above. */
	for (int sideband = 0; sideband < 2; sideband++) {
		for (int i = 0; i < session->nr_events; i++) {
			const struct persistent_event *event = &session->events[i];

			if (persistent_event__is_sideband(event) != sideband ||
			    !joiner__wants(j, event))
				continue;

			err = joiner__open(j, event);
			if (err)
				return err;
		}
	}
	return 0;
}

static int joiner__unclaim(struct joiner *j, int at)
{
	const struct persistent_event *event = &j->session->events[at];
	struct perf_persistent_arg arg = {
		.size	   = sizeof(arg),
		.id	   = j->session->id,
		.data_size = j->region ? event->data_size : 0,
	};

	if (j->region)
		scnprintf(arg.label, sizeof(arg.label), "%s", j->region);
	if (ioctl(j->fds[at], PERF_EVENT_IOC_UNCLAIM, &arg))
		return -errno;
	return 0;
}

/* Disabled by its owner on the other CPUs, it is so here. */
static int joiner__enable(struct joiner *j, int at)
{
	if (j->session->events[at].state & PERF_PERSISTENT_STATE_DISABLED)
		return 0;
	return ioctl(j->fds[at], PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int joiner__hand_over(struct joiner *j)
{
	sigset_t all, old;
	int n, err = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	for (n = 0; !err && n < j->nr_joined; n++)
		err = joiner__unclaim(j, j->joined[n]);
	if (err)
		n--;
	for (int i = 0; !err && i < j->nr_joined; i++)
		err = joiner__enable(j, j->joined[i]);
	while (err && n-- > 0)
		ioctl(j->fds[j->joined[n]], PERF_EVENT_IOC_CLAIM);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int joiner__refuse_filters(const struct joiner *j)
{
	for (int i = 0; i < j->session->nr_events; i++) {
		const struct persistent_event *event = &j->session->events[i];
		bool bpf = event->flags & PERF_PERSISTENT_INFO_BPF;

		if (!joiner__wants(j, event) ||
		    !(event->flags & (PERF_PERSISTENT_INFO_FILTER | PERF_PERSISTENT_INFO_BPF)))
			continue;

		pr_err("The session '%s' does not get CPU %d: perf cannot see the %s of its event %u on CPU %d. Add the events with: perf record -P %s --add -C %d -e ...%s\n",
		       j->session->name, j->cpu, bpf ? "eBPF program" : "filter", event->index,
		       event->cpu, j->session->name, j->cpu, bpf ? "" : " --filter ...");
		return -EINVAL;
	}
	return 0;
}

static void joiner__error(const struct joiner *j, int err)
{
	const char *name = j->session->name;
	char msg[STRERR_BUFSIZE];

	switch (err) {
	case -EBUSY:
		pr_err("The session '%s' is frozen, and does not get CPU %d. Let it go on, and try again: perf ctl --thaw %s\n",
		       name, j->cpu, name);
		break;
	case -ENODEV:
		pr_err("The session '%s' does not get CPU %d: an event is not available there, or it has gone offline.\n",
		       name, j->cpu);
		break;
	case -ENOMEM:
	case -ENOSPC:
		pr_err("The session '%s' does not get CPU %d: there is no room for %zu KiB of buffers%s%s.\n",
		       name, j->cpu, j->memory / 1024, j->region ? " in the region " : "",
		       j->region ?: "");
		break;
	case -EPERM:
	case -EACCES:
		pr_err("No permission to let the session '%s' record on CPU %d: this requires its owner or CAP_PERFMON, and CAP_IPC_LOCK for the buffers.\n",
		       name, j->cpu);
		break;
	default:
		pr_err("The session '%s' does not get CPU %d: %s\n", name, j->cpu,
		       str_error_r(-err, msg, sizeof(msg)));
		break;
	}
}

static void joiner__print(const struct joiner *j)
{
	if (!quiet)
		printf("session '%s' records on CPU %d: %d events, %zu KiB of memory\n",
		       j->session->name, j->cpu, j->nr_joined, j->memory / 1024);
}

/* Why it does not get the CPU, if somebody has asked for it */
static int joiner__decline(const struct joiner *j, bool named, const char *why)
{
	if (named)
		pr_err("The session '%s' does not get CPU %d: %s.\n", j->session->name, j->cpu,
		       why);
	return named ? -EINVAL : 0;
}

static int joiner__join(struct joiner *j, bool named)
{
	int err;

	joiner__look(j);
	if (!j->has_sideband && !named && !is_of_boot(j->session->name))
		return 0;
	if (joiner__has_cpu(j, j->cpu)) {
		if (named && !quiet)
			printf("session '%s' records on CPU %d already\n", j->session->name,
			       j->cpu);
		return 0;
	}
	if (j->model < 0)
		return joiner__decline(j, named, "none of its events records on all of a CPU");

	err = joiner__refuse_filters(j);
	if (err)
		return err;

	err = joiner__open_all(j);
	if (!err && !j->nr_joined)
		return joiner__decline(j, named, "none of its events is on all its CPUs");
	if (!err)
		err = joiner__hand_over(j);
	if (err)
		joiner__error(j, err);
	else
		joiner__print(j);
	return err;
}

static int session__join_cpu(struct persistent_session *session, struct perf_cpu_map *online,
			     int cpu, bool named)
{
	struct joiner j = {
		.session = session,
		.online	 = online,
		.region	 = persistent__region(session->name),
		.cpu	 = cpu,
		.fds	 = calloc(session->nr_events, sizeof(*j.fds)),
		.joined	 = calloc(session->nr_events, sizeof(*j.joined)),
	};
	int err = -ENOMEM;

	for (int i = 0; j.fds && i < session->nr_events; i++)
		j.fds[i] = -1;
	if (j.fds && j.joined)
		err = joiner__join(&j, named);
	for (int i = 0; j.fds && i < session->nr_events; i++) {
		if (j.fds[i] >= 0)
			close(j.fds[i]);
	}
	free(j.fds);
	free(j.joined);
	free(j.region);
	return err;
}

/* It may change while it is opened. */
static struct persistent_session *open_one_of_all(u64 id)
{
	struct persistent_session *session = ERR_PTR(-EBUSY);

	for (int i = 0; i < JOIN_RETRIES && IS_ERR(session) && PTR_ERR(session) == -EBUSY; i++) {
		if (i)
			usleep(50000);
		session = persistent_session__open_id(id);
	}
	return session;
}

static int join_all_sessions(struct perf_cpu_map *online, int cpu)
{
	struct persistent_entry *entries;
	int nr, err = persistent__list(&entries, &nr), ret;

	if (err)
		return err;

	for (int i = 0; i < nr; i++) {
		struct persistent_session *session;

		if (!entries[i].owner || strtoul(entries[i].owner, NULL, 10) != geteuid())
			continue;

		session = open_one_of_all(entries[i].id);
		if (IS_ERR(session)) {
			ret = PTR_ERR(session);
			if (ret == -ENOENT)
				continue;
			persistent__print_open_error(entries[i].name, ret);
		} else {
			ret = session__join_cpu(session, online, cpu, /*named=*/false);
			persistent_session__close(session);
		}
		err = err ?: ret;
	}
	persistent__free_list(entries, nr);
	return err;
}

/**
 * persistent__join_cpus - let sessions record on CPUs that they have no events on
 * @cpus: a list of CPUs, as -C has it
 * @names: names of the sessions
 * @nr: number of them; 0: all sessions of this user that perf made
 *
 * Prints what has joined, and a message for each failure.
 *
 * Return: 0, or the first error, a negative errno.
 */
int persistent__join_cpus(const char *cpus, const char **names, int nr)
{
	struct perf_cpu_map *list = perf_cpu_map__new(cpus), *online;
	struct perf_cpu cpu;
	int idx, err = 0;

	online = perf_cpu_map__new_online_cpus();
	if (!list || perf_cpu_map__has_any_cpu(list) || !online) {
		pr_err("'%s' is not a list of CPUs, such as 3 or 2,4-7.\n", cpus);
		err = -EINVAL;
		goto out;
	}

	perf_cpu_map__for_each_cpu(cpu, idx, list) {
		if (!perf_cpu_map__has(online, cpu)) {
			pr_err("CPU %d is not online.\n", cpu.cpu);
			err = err ?: -ENODEV;
			continue;
		}
		if (!nr)
			err = join_all_sessions(online, cpu.cpu) ?: err;
		for (int i = 0; i < nr; i++) {
			struct persistent_session *session = persistent_session__open(names[i]);
			int ret = IS_ERR(session) ? PTR_ERR(session) :
				  session__join_cpu(session, online, cpu.cpu, /*named=*/true);

			if (!IS_ERR(session))
				persistent_session__close(session);
			err = err ?: ret;
		}
	}
out:
	perf_cpu_map__put(list);
	perf_cpu_map__put(online);
	return err;
}
