// SPDX-License-Identifier: GPL-2.0
/*
 * perf ctl --join-cpu: let sessions record on CPUs that were not online when they were made
 *
 * A session has events on the CPUs that were online when it was made. They return with
 * their CPU. A CPU that comes online for the first time has none: this opens them there.
 * An event that all other CPUs of the session have is opened on this one as well.
 *
 * The CPUs of a session are those that have a side-band event: perf makes these on all
 * CPUs that are online, even if only some of them are sampled. So an event of -C 0 is
 * told from one of -a, unless CPU 0 was the only one. Sessions of the kernel's command line
 * (perf_persistent=) have no side-band, and are on all CPUs: their CPUs are those that have
 * any event. So are those of a session that neither perf nor the command line has made; it is
 * left alone unless it was named.
 *
 * The events are made from the perf_event_attr of those on another CPU, and share their
 * buffers in the same way. The attr does not have everything: an event with a filter, an
 * eBPF program or a cgroup cannot be made again, so such a session does not get the CPU, and
 * perf says so.
 *
 * Without a name, only sessions of the user are joined. An event that root opened for the
 * session of another user would be charged to root, and asks more of its readers.
 *
 * If an event cannot be opened or cannot join, those that have joined are taken back. If perf
 * is killed, they stay, and the next perf opens the rest. Processes of a user that join CPUs
 * to a session take turns, see join-lock.c. The side-band event joins last. Until then, who
 * joins another CPU does not take this one for a CPU of the session.
 */
#include "persistent.h"
#include "join-lock.h"
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

/* What failed */
enum join_stage {
	JOIN_OPEN,
	JOIN_MAP,
	JOIN_UNCLAIM,
};

/**
 * struct joiner - a CPU that joins a session
 * @session: the session, opened for reading
 * @region: label of the region that the session lies in, or NULL
 * @cpu: the CPU
 * @cpus: the other CPUs of the session, online or not
 * @nr_cpus: number of them; the first one is the model
 * @has_sideband: there are side-band events of CPUs
 * @fds: of the new event for each event of the session, or -1
 * @maps: its mapping, or NULL
 * @joined: indices of @fds, in the order of joining
 * @nr_joined: number of them
 * @memory: bytes of their buffers
 * @stage: what is being done
 */
struct joiner {
	struct persistent_session	*session;
	char				*region;
	int				cpu;
	int				*cpus;
	int				nr_cpus;
	bool				has_sideband;
	int				*fds;
	void				**maps;
	int				*joined;
	int				nr_joined;
	size_t				memory;
	enum join_stage			stage;
};

static bool is_sideband(const struct persistent_event *event)
{
	return persistent_event__kind(event) == PERSISTENT_SIDEBAND;
}

/* Does an event tell that its CPU is one of the session? */
static bool joiner__tells_cpu(const struct joiner *j, const struct persistent_event *event)
{
	return persistent_event__is_of_cpu(event) && (!j->has_sideband || is_sideband(event));
}

/* Compare without the fields that depend on how the events were opened */
static bool attr__is_like(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	struct perf_event_attr x = *a, y = *b;

	x.disabled = 0;
	y.disabled = 0;
	/* perf_event_open() fills it in, the kernel's own events leave it out. */
	if (!x.sample_max_stack || !y.sample_max_stack) {
		x.sample_max_stack = 0;
		y.sample_max_stack = 0;
	}
	return !memcmp(&x, &y, sizeof(x));
}

static bool joiner__has_event(const struct joiner *j, int cpu, const struct perf_event_attr *attr)
{
	for (int i = 0; i < j->session->nr_events; i++) {
		const struct persistent_event *event = &j->session->events[i];

		if (event->cpu == cpu && persistent_event__is_of_cpu(event) &&
		    attr__is_like(&event->attr, attr))
			return true;
	}
	return false;
}

/* Is it an event of the model, on all CPUs of the session, which this one does not have? */
static bool joiner__wants(const struct joiner *j, const struct persistent_event *event)
{
	/* Gone is one whose cgroup was removed. */
	if (event->cpu != j->cpus[0] || !persistent_event__is_of_cpu(event) ||
	    event->state & PERF_PERSISTENT_STATE_GONE)
		return false;

	/* The side-band event of another CPU may have been made with another attr. */
	if (persistent_event__kind(event) != PERSISTENT_SAMPLES)
		return !persistent_session__has_kind(j->session, j->cpu,
						     persistent_event__kind(event));

	for (int i = 1; i < j->nr_cpus; i++) {
		if (!joiner__has_event(j, j->cpus[i], &event->attr))
			return false;
	}
	return !joiner__has_event(j, j->cpu, &event->attr);
}

/* Does the kernel's command line have perf_persistent=NAME:... ? */
static bool is_of_boot(const char *name)
{
	char *line, *word, *pos, want[PERF_PERSISTENT_NAME_LEN + 32];
	bool found = false;
	size_t size;

	/* The kernel takes a - for a _ in the name of a parameter. */
	scnprintf(want, sizeof(want), "persistent=%s:", name);
	if (procfs__read_str("cmdline", &line, &size))
		return false;

	for (pos = line; !found && (word = strsep(&pos, " ")) != NULL;)
		found = (strstarts(word, "perf_") || strstarts(word, "perf-")) &&
			strstarts(word + strlen("perf_"), want);
	free(line);
	return found;
}

/* The events are sorted by CPU. */
static void joiner__look(struct joiner *j)
{
	const struct persistent_event *event = j->session->events;
	const struct persistent_event *end = event + j->session->nr_events;

	for (; event < end; event++)
		j->has_sideband |= persistent_event__is_of_cpu(event) && is_sideband(event);

	for (event = j->session->events; event < end; event++) {
		if (joiner__tells_cpu(j, event) && event->cpu != j->cpu &&
		    (!j->nr_cpus || j->cpus[j->nr_cpus - 1] != event->cpu))
			j->cpus[j->nr_cpus++] = event->cpu;
	}
}

/* The fd of an event that is open already, and writes to the same buffer; or -1 */
static int joiner__sharer(const struct joiner *j, const struct persistent_event *event)
{
	for (int n = 0; n < j->nr_joined; n++) {
		if (j->session->events[j->joined[n]].buffer_index == event->buffer_index)
			return j->fds[j->joined[n]];
	}
	return -1;
}

/* Halves that have the samples' buffer on the model have a small one where there are none. */
static size_t size_of_own(const struct persistent_event *event)
{
	if (persistent_event__kind(event) == PERSISTENT_HALVES &&
	    event->buffer_index != event->index)
		return PERSISTENT_SIDEBAND_SIZE;
	return event->data_size;
}

/* The buffer of those that share it on the model, or a new one of the same size */
static int joiner__give_buffer(struct joiner *j, const struct persistent_event *event, int fd)
{
	int at = event - j->session->events, sharer = joiner__sharer(j, event);

	j->stage = JOIN_MAP;
	/* A region gives each event a buffer of its own when it joins. */
	if (!j->region && sharer >= 0)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, sharer) ? -errno : 0;

	j->memory += size_of_own(event) + page_size;
	if (j->region)
		return 0;

	/* It stays mapped until the session has taken it over. */
	j->maps[at] = mmap(NULL, size_of_own(event) + page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (j->maps[at] == MAP_FAILED) {
		j->maps[at] = NULL;
		return -errno;
	}
	return 0;
}

static int joiner__open(struct joiner *j, const struct persistent_event *event)
{
	enum rlimit_action set_rlimit = NO_CHANGE;
	struct perf_event_attr attr = event->attr;
	int fd, err, at = event - j->session->events;

	j->stage = JOIN_OPEN;
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

	/* Side-band last, see above; samples first, as they own the buffer of the halves. */
	for (int kind = PERSISTENT_SAMPLES; kind <= PERSISTENT_SIDEBAND; kind++) {
		for (int i = 0; i < session->nr_events; i++) {
			const struct persistent_event *event = &session->events[i];

			if ((int)persistent_event__kind(event) != kind ||
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

	j->stage = JOIN_UNCLAIM;
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

/* What the attr does not have: see above */
static int joiner__refuse_more(const struct joiner *j)
{
	static const struct {
		u32		flag;
		const char	*what;
		const char	*option;
	} more[] = {
		{ PERF_PERSISTENT_INFO_FILTER,	"has a filter",		" --filter ..." },
		{ PERF_PERSISTENT_INFO_BPF,	"has an eBPF program",	"" },
		{ PERF_PERSISTENT_INFO_CGROUP,	"follows a cgroup",	" -G ..." },
	};

	for (int i = 0; i < j->session->nr_events; i++) {
		const struct persistent_event *event = &j->session->events[i];

		for (size_t n = 0; n < ARRAY_SIZE(more); n++) {
			if (!(event->flags & more[n].flag) || !joiner__wants(j, event))
				continue;

			pr_err("The session '%s' does not get CPU %d: its event %u on CPU %d %s, which perf cannot copy. Add the events with: perf record -P %s --add -C %d -e ...%s\n",
			       j->session->name, j->cpu, event->index, event->cpu, more[n].what,
			       j->session->name, j->cpu, more[n].option);
			return -EINVAL;
		}
	}
	return 0;
}

/* A kernel that does not know the flags does not take any. */
static bool kernel_tells_more(const struct persistent_session *session)
{
	struct perf_persistent_info info = { .size = sizeof(info), .flags = ~0U };

	return !ioctl(session->events[0].fd, PERF_EVENT_IOC_PERSISTENT_INFO, &info) ||
	       errno != E2BIG;
}

static bool session__is_frozen(const struct persistent_session *session)
{
	for (int i = 0; i < session->nr_events; i++) {
		if (session->events[i].state & PERF_PERSISTENT_STATE_FROZEN)
			return true;
	}
	return false;
}

static int joiner__refuse_frozen(const struct joiner *j)
{
	pr_err("The session '%s' is frozen, and does not get CPU %d. Let it go on, and try again: perf ctl --thaw %s\n",
	       j->session->name, j->cpu, j->session->name);
	return -EBUSY;
}

static void joiner__error(const struct joiner *j, int err)
{
	static const char * const doing[] = {
		[JOIN_OPEN]	= "an event cannot be opened there",
		[JOIN_MAP]	= "a buffer cannot be made",
		[JOIN_UNCLAIM]	= "an event cannot join it",
	};
	const char *name = j->session->name;
	char msg[STRERR_BUFSIZE];

	if (j->stage != JOIN_OPEN && (err == -ENOMEM || err == -ENOSPC)) {
		pr_err("The session '%s' does not get CPU %d: there is no room for %zu KiB of buffers%s%s.\n",
		       name, j->cpu, j->memory / 1024, j->region ? " in the region " : "",
		       j->region ?: "");
	} else if (err == -EPERM || err == -EACCES) {
		pr_err("No permission to let the session '%s' record on CPU %d: this requires its owner or CAP_PERFMON, and CAP_IPC_LOCK for the buffers.\n",
		       name, j->cpu);
	} else {
		pr_err("The session '%s' does not get CPU %d: %s: %s\n", name, j->cpu,
		       doing[j->stage], str_error_r(-err, msg, sizeof(msg)));
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
	int err, wanted = 0;

	joiner__look(j);
	if (!j->has_sideband && !named && !is_of_boot(j->session->name))
		return 0;
	if (!j->nr_cpus)
		return joiner__decline(j, named, "none of its events records on all of a CPU");
	if (!kernel_tells_more(j->session))
		return joiner__decline(j, true, "this kernel does not tell of filters");

	for (int i = 0; i < j->session->nr_events; i++)
		wanted += joiner__wants(j, &j->session->events[i]);
	if (!wanted) {
		if (named && !quiet)
			printf("session '%s' records on CPU %d already\n", j->session->name,
			       j->cpu);
		return 0;
	}
	if (session__is_frozen(j->session))
		return joiner__refuse_frozen(j);

	err = joiner__refuse_more(j);
	if (err)
		return err;

	err = joiner__open_all(j) ?: joiner__hand_over(j);
	/* It has ended meanwhile. */
	if (err == -ENOENT && j->stage == JOIN_UNCLAIM && !named)
		return 0;
	if (err)
		joiner__error(j, err);
	else
		joiner__print(j);
	return err;
}

/* @changed: set if the events of the session may be others now */
static int session__join_cpu(struct persistent_session *session, int cpu, bool named,
			     bool *changed)
{
	struct joiner j = {
		.session = session,
		.region	 = persistent__region(session->name),
		.cpu	 = cpu,
		.cpus	 = calloc(session->nr_events, sizeof(*j.cpus)),
		.fds	 = calloc(session->nr_events, sizeof(*j.fds)),
		.maps	 = calloc(session->nr_events, sizeof(*j.maps)),
		.joined	 = calloc(session->nr_events, sizeof(*j.joined)),
	};
	bool ready = j.cpus && j.fds && j.maps && j.joined;
	int err = -ENOMEM;

	for (int i = 0; ready && i < session->nr_events; i++)
		j.fds[i] = -1;
	if (ready)
		err = joiner__join(&j, named);
	*changed = j.nr_joined;
	for (int i = 0; ready && i < session->nr_events; i++) {
		if (j.maps[i])
			munmap(j.maps[i], size_of_own(&session->events[i]) + page_size);
		if (j.fds[i] >= 0)
			close(j.fds[i]);
	}
	free(j.cpus);
	free(j.fds);
	free(j.maps);
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

/* In the list @cpus from *@idx on, to the first one that may have joined. */
static int join_some(u64 id, const char *name, struct perf_cpu_map *cpus, int *idx, bool named)
{
	struct persistent_session *session;
	struct join_lock lock;
	int nr = perf_cpu_map__nr(cpus), err = join_lock__take(&lock, id, name);
	bool changed = false;

	if (err) {
		*idx = nr;
		return err;
	}

	session = open_one_of_all(id);
	if (IS_ERR(session)) {
		err = PTR_ERR(session);
		if (err == -ENOENT && !named)
			err = 0;
		else
			persistent__print_open_error(name, err);
		*idx = nr;
	} else {
		while (*idx < nr && !changed) {
			int cpu = perf_cpu_map__cpu(cpus, (*idx)++).cpu;
			int ret = session__join_cpu(session, cpu, named, &changed);

			err = err ?: ret;
		}
		persistent_session__close(session);
	}
	join_lock__give_back(&lock);
	return err;
}

/* Others get their turn after each CPU. */
static int join_session(u64 id, const char *name, struct perf_cpu_map *cpus, bool named)
{
	int err = 0, idx = 0;

	while (idx < perf_cpu_map__nr(cpus)) {
		int ret = join_some(id, name, cpus, &idx, named);

		err = err ?: ret;
	}
	return err;
}

static int join_all_sessions(struct perf_cpu_map *cpus)
{
	struct persistent_entry *entries;
	int nr, err = persistent__list(&entries, &nr);

	if (err)
		return err;

	for (int i = 0; i < nr; i++) {
		int ret;

		if (!entries[i].owner || strtoul(entries[i].owner, NULL, 10) != geteuid())
			continue;

		ret = join_session(entries[i].id, entries[i].name, cpus, /*named=*/false);
		err = err ?: ret;
	}
	persistent__free_list(entries, nr);
	return err;
}

/* By its name, or "id=ID" */
static int join_named(const char *what, struct perf_cpu_map *cpus)
{
	struct persistent_session *session = persistent_session__open(what);
	char name[PERF_PERSISTENT_NAME_LEN];
	u64 id;

	if (IS_ERR(session))
		return PTR_ERR(session);

	id = session->id;
	scnprintf(name, sizeof(name), "%s", session->name);
	persistent_session__close(session);
	return join_session(id, name, cpus, /*named=*/true);
}

/* Those of the list @cpus that are online. Returns NULL when the user was told why. */
static struct perf_cpu_map *parse_cpus(const char *cpus, int *err)
{
	struct perf_cpu_map *list, *joinable = NULL, *online = perf_cpu_map__new_online_cpus();
	struct perf_cpu cpu;
	int idx;

	if (online && !strcmp(cpus, "online"))
		return online;

	list = perf_cpu_map__new(cpus);
	if (!list || perf_cpu_map__has_any_cpu(list) || !online) {
		pr_err("'%s' is not a list of CPUs, such as 3 or 2,4-7, nor 'online'.\n", cpus);
		*err = -EINVAL;
	} else {
		perf_cpu_map__for_each_cpu(cpu, idx, list) {
			if (perf_cpu_map__has(online, cpu))
				continue;

			pr_err("CPU %d is not online.\n", cpu.cpu);
			*err = -ENODEV;
		}
		joinable = perf_cpu_map__intersect(list, online);
	}
	perf_cpu_map__put(list);
	perf_cpu_map__put(online);
	return joinable;
}

/**
 * persistent__join_cpus - let sessions record on CPUs that they have no events on
 * @cpus: a list of CPUs, as -C has it, or "online"
 * @names: names of the sessions
 * @nr: number of them; 0: all sessions of this user that perf made
 *
 * Prints what has joined, and a message for each failure.
 *
 * Return: 0, or the first error, a negative errno.
 */
int persistent__join_cpus(const char *cpus, const char **names, int nr)
{
	int err = 0;
	struct perf_cpu_map *list = parse_cpus(cpus, &err);

	if (list && !nr) {
		int ret = join_all_sessions(list);

		err = err ?: ret;
	}
	for (int i = 0; list && i < nr; i++) {
		int ret = join_named(names[i], list);

		err = err ?: ret;
	}
	perf_cpu_map__put(list);
	return err;
}
