// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: find, open and end sessions
 *
 * A session has a name and an id, and holds events on CPUs. sysfs lists the
 * sessions:
 *
 *	/sys/bus/event_source/devices/persistent/type
 *	/sys/bus/event_source/devices/persistent/sessions/NAME/{id,cpus,...}
 *
 * On kernels without persistent events PERF_TYPE_PERSISTENT may be the type of
 * another PMU, so persistent__check_support() must be called first.
 *
 * Opening an event again by (session, CPU, index on that CPU) returns a consumer
 * file descriptor. The events are enumerated by opening them, because the content
 * of sysfs depends on the user.
 *
 * To end a session, all of its events are claimed, from the last to the first. If
 * this is interrupted, the session can still be found by its first event.
 */
#include "persistent.h"
#include "../base-api.h"
#include "../cpumap.h"
#include "../debug.h"
#include "../rlimit.h"
#include "../cloexec.h"
#include "../perf-sys.h"

#include <api/fs/fs.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/*
 * Size of the attr buffer, with space for the attr of a newer kernel: the kernel
 * refuses to truncate it.
 */
#define PERSISTENT_ATTR_ROOM	4096

/* Changing or ending a session does not take long, so retry. */
#define PERSISTENT_RETRIES	20
#define PERSISTENT_RETRY_USEC	50000

static bool find_type(int *type)
{
	*type = -1;
	return !sysfs__read_int(PERSISTENT_SYSFS "/type", type) && *type == PERF_TYPE_PERSISTENT;
}

bool persistent__is_supported(void)
{
	int type;

	return find_type(&type);
}

int persistent__check_support(void)
{
	int type;

	if (find_type(&type))
		return 0;

	pr_err("This kernel has no persistent events (%s/%s/type is %s): boot a kernel with CONFIG_PERF_PERSISTENT=y.\n",
	       sysfs__mountpoint() ?: "/sys", PERSISTENT_SYSFS,
	       type < 0 ? "missing" : "of something else");
	return -EOPNOTSUPP;
}

static char *session_file(const char *name, const char *file)
{
	char path[PATH_MAX], *str = NULL;
	size_t size;

	scnprintf(path, sizeof(path), PERSISTENT_SYSFS "/sessions/%s/%s", name, file);
	if (sysfs__read_str(path, &str, &size) || !str)
		return NULL;

	str[strcspn(str, "\n")] = '\0';
	return str;
}

/* Parse @str, up to @len, as @key and a number. */
bool persistent__parse_id(const char *str, size_t len, const char *key, u64 *id)
{
	size_t klen = strlen(key);
	char *end;

	if (len <= klen || strncmp(str, key, klen) || !isdigit(str[klen]))
		return false;

	*id = strtoull(str + klen, &end, 0);
	return end == str + len;
}

/* May this user see more of a session than its name? */
bool persistent__is_readable(const char *name)
{
	char *str = session_file(name, "owner");
	bool readable = str;

	free(str);
	return readable;
}

/**
 * persistent__region - in which reserved region does a session lie?
 * @name: its name
 *
 * Return: its label, for free(), or NULL if it lies in ordinary memory or this user may not know
 */
char *persistent__region(const char *name)
{
	char *label = session_file(name, "region");

	if (label && !*label)
		zfree(&label);
	return label;
}

/**
 * persistent__has_crash_kernel - would a crash kernel save the memory of this one?
 *
 * Return: false as well if that is not known.
 */
bool persistent__has_crash_kernel(void)
{
	int loaded;

	return !sysfs__read_int("kernel/kexec_crash_loaded", &loaded) && loaded;
}

/**
 * persistent__find_id - find a session by its name
 * @name: its name; also without the user in front, see name.c
 * @id: set to its id
 */
bool persistent__find_id(const char *name, u64 *id)
{
	char own[PERF_PERSISTENT_NAME_LEN];
	char *str;

	/* A name must be a single component of a path. */
	if (strchr(name, '/') || name[0] == '.')
		return false;

	str = session_file(name, "id");
	if (!str && !strchr(name, '.') && persistent__find_own(name, own))
		str = session_file(own, "id");
	if (!str)
		return false;

	*id = strtoull(str, NULL, 0);
	free(str);
	return *id != 0;
}

/* Is there a session with this id? */
bool persistent__id_exists(u64 id)
{
	struct persistent_entry *entries;
	bool exists = false;
	int nr;

	if (persistent__list(&entries, &nr))
		return false;

	for (int i = 0; i < nr; i++)
		exists |= entries[i].id == id;
	persistent__free_list(entries, nr);
	return exists;
}

/**
 * persistent__state_name - the state of an event or of a session as text
 * @state: PERF_PERSISTENT_STATE_* bits
 * @flags: PERF_PERSISTENT_INFO_* bits of the event; of a session, those of an event that has gone
 */
const char *persistent__state_name(u32 state, u32 flags)
{
	if (state & PERF_PERSISTENT_STATE_FROZEN)
		return "frozen";
	if (state & PERF_PERSISTENT_STATE_GONE)
		return flags & PERF_PERSISTENT_INFO_CGROUP ? "cgroup gone" : "task gone";
	if (state & PERF_PERSISTENT_STATE_OFFLINE)
		return "CPU offline";
	if (state & PERF_PERSISTENT_STATE_DISABLED)
		return "disabled";
	return "runs";
}

/* The flags of the first event that has gone: the state of a session does not have them. */
static bool find_gone_flags(u64 id, u32 *flags)
{
	struct perf_persistent_entry *entries;
	struct persistent_event event;
	int nr = persistent__list_events(id, &entries);
	bool found = false;

	for (int i = 0; i < nr; i++) {
		if (!(entries[i].state & PERF_PERSISTENT_STATE_GONE))
			continue;
		found = !persistent_event__open(id, entries[i].cpu, entries[i].index, &event);
		if (found) {
			*flags = event.flags;
			close(event.fd);
		}
		break;
	}
	free(entries);
	return found;
}

/* The combined state of its events. */
static char *session_state(const char *name, u64 id)
{
	char *str = session_file(name, "state");
	u32 state, flags = 0;

	if (!str)
		return NULL;

	state = strtoul(str, NULL, 0);
	free(str);
	/* Only those who may read the session can see which event has gone. */
	if ((state & PERF_PERSISTENT_STATE_GONE) && !(state & PERF_PERSISTENT_STATE_FROZEN) &&
	    !find_gone_flags(id, &flags))
		return strdup("gone");
	return strdup(persistent__state_name(state, flags));
}

static int entry_cmp(const void *a, const void *b)
{
	const struct persistent_entry *ea = a, *eb = b;

	return ea->id < eb->id ? -1 : ea->id > eb->id;
}

static void entry__exit(struct persistent_entry *entry)
{
	zfree(&entry->name);
	zfree(&entry->cpus);
	zfree(&entry->nr_events);
	zfree(&entry->memory);
	zfree(&entry->region);
	zfree(&entry->owner);
	zfree(&entry->state);
	zfree(&entry->window);
}

void persistent__free_list(struct persistent_entry *entries, int nr)
{
	for (int i = 0; i < nr; i++)
		entry__exit(&entries[i]);
	free(entries);
}

/* The existing sessions, sorted by id. */
int persistent__list(struct persistent_entry **entries, int *nr)
{
	struct persistent_entry *list = NULL, *tmp;
	const char *mnt = sysfs__mountpoint();
	char path[PATH_MAX];
	struct dirent *d;
	int n = 0;
	u64 id;
	DIR *dir;

	*entries = NULL;
	*nr = 0;
	scnprintf(path, sizeof(path), "%s/" PERSISTENT_SYSFS "/sessions", mnt ?: "/sys");
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;

	while ((d = readdir(dir)) != NULL) {
		struct persistent_entry e = { };

		/* The session has ended since the directory was read. */
		if (d->d_name[0] == '.' || !persistent__find_id(d->d_name, &e.id))
			continue;

		tmp = realloc(list, (n + 1) * sizeof(*list));
		if (!tmp)
			goto out_nomem;
		list = tmp;

		e.name	    = strdup(d->d_name);
		e.cpus	    = session_file(d->d_name, "cpus");
		e.nr_events = session_file(d->d_name, "nr_events");
		e.memory    = session_file(d->d_name, "memory");
		e.owner	    = session_file(d->d_name, "owner");
		e.region    = session_file(d->d_name, "region");
		e.state	    = session_state(d->d_name, e.id);
		/* The session has ended in the meantime: drop what was read. */
		if (!persistent__find_id(d->d_name, &id) || id != e.id) {
			entry__exit(&e);
			continue;
		}
		list[n++] = e;
		if (!e.name)
			goto out_nomem;
	}
	closedir(dir);

	if (n)
		qsort(list, n, sizeof(*list), entry_cmp);
	*entries = list;
	*nr = n;
	return 0;

out_nomem:
	closedir(dir);
	persistent__free_list(list, n);
	return -ENOMEM;
}

enum persistent_kind persistent_event__kind(const struct persistent_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (attr->type != PERF_TYPE_SOFTWARE || attr->config != PERF_COUNT_SW_DUMMY)
		return PERSISTENT_SAMPLES;
	if (attr->mmap || attr->mmap2 || attr->comm || attr->task)
		return PERSISTENT_SIDEBAND;
	return attr__outputs_halves(attr) ? PERSISTENT_HALVES : PERSISTENT_SAMPLES;
}

static bool attr__is_sideband(const struct perf_event_attr *attr)
{
	return attr->mmap || attr->mmap_data || attr->mmap2 || attr->comm || attr->comm_exec ||
	       attr->task || attr->ksymbol || attr->context_switch || attr->text_poke ||
	       attr->bpf_event;
}

/**
 * persistent_session__has_kind - are such records of all tasks on a CPU written?
 * @session: the session
 * @cpu: the CPU
 * @kind: what records
 */
bool persistent_session__has_kind(const struct persistent_session *session, int cpu,
				  enum persistent_kind kind)
{
	for (int i = 0; i < session->nr_events; i++) {
		const struct persistent_event *event = &session->events[i];

		if (event->cpu != cpu || !persistent_event__is_of_cpu(event))
			continue;
		/* One of another program may sample as well. Halves go to those with side-band. */
		if (persistent_event__kind(event) == kind ||
		    (kind == PERSISTENT_HALVES && attr__outputs_halves(&event->attr) &&
		     attr__is_sideband(&event->attr)))
			return true;
	}
	return false;
}

static bool is_c1(unsigned char c)
{
	return c >= 0x80 && c < 0xa0;
}

/*
 * Would a terminal take it for a command? C1 characters are two bytes in UTF-8, and one in
 * older encodings.
 */
static bool is_control(const char *text, size_t i)
{
	unsigned char c = text[i], before = i ? text[i - 1] : 0;

	return c < 0x20 || c == 0x7f || (c == 0xc2 && is_c1(text[i + 1])) ||
	       (is_c1(c) && (before < 0x80 || before == 0xc2));
}

/* Control characters as \OOO, as the kernel writes a backslash. */
static char *escape_control(const char *text)
{
	char *escaped = malloc(4 * strlen(text) + 1), *p = escaped;

	for (size_t i = 0; p && text[i]; i++) {
		if (is_control(text, i))
			p += sprintf(p, "\\%03o", (unsigned char)text[i]);
		else
			*p++ = text[i];
	}
	if (p)
		*p = '\0';
	return escaped;
}

/**
 * persistent_event__cgroup - the path of the cgroup that an event follows
 * @event: the event
 *
 * Return: the path, to be freed, or NULL if it follows none. Control characters and the
 * backslash are \OOO in octal. "?" if the path is not in the cgroup namespace of perf.
 */
char *persistent_event__cgroup(const struct persistent_event *event)
{
	const char *key = "cgroup:\t";
	char *line = NULL, *cgroup = NULL;
	char path[64];
	size_t size = 0;
	FILE *file;

	scnprintf(path, sizeof(path), "/proc/self/fdinfo/%d", event->fd);
	file = fopen(path, "re");
	if (!file)
		return NULL;

	while (!cgroup && getline(&line, &size, file) > 0) {
		if (!strstarts(line, key))
			continue;
		/* A name may end with blanks. */
		line[strcspn(line, "\n")] = '\0';
		cgroup = escape_control(line + strlen(key));
	}
	free(line);
	fclose(file);
	return cgroup;
}

static int open_consumer(u64 id, int cpu, u32 index)
{
	struct perf_event_attr attr = {
		.type	 = PERF_TYPE_PERSISTENT,
		.size	 = sizeof(attr),
		.config	 = id,
		.config1 = index,
	};
	enum rlimit_action set_rlimit = NO_CHANGE;
	int fd;

	do {
		fd = sys_perf_event_open(&attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	} while (fd < 0 && errno == EMFILE && rlimit__increase_nofile(&set_rlimit));

	return fd < 0 ? -errno : fd;
}

static int describe_event(int fd, struct perf_persistent_info *info,
			  struct persistent_event *event)
{
	union {
		struct perf_event_attr	attr;
		char			room[PERSISTENT_ATTR_ROOM];
	} u = { };

	*info = (struct perf_persistent_info) {
		.size	   = sizeof(*info),
		.attr_ptr  = (unsigned long)&u,
		.attr_size = sizeof(u),
	};
	if (ioctl(fd, PERF_EVENT_IOC_PERSISTENT_INFO, info))
		return -errno;

	/* An attr that this perf does not know cannot be written to a file. */
	u.attr.size = min_t(u32, u.attr.size, sizeof(u.attr));

	*event = (struct persistent_event) {
		.fd	      = fd,
		.cpu	      = info->cpu,
		.index	      = info->index,
		.buffer_index = info->buffer_index,
		.state	      = info->state,
		.flags	      = info->flags,
		.id	      = info->event_id,
		.data_size    = info->data_size,
		.attr	      = u.attr,
	};
	return 0;
}

/**
 * persistent_event__open - open one event of a session for reading
 * @id: the session's id
 * @cpu: the event's CPU, or -1
 * @index: its index there
 * @event: out: the event; close() its fd
 *
 * Return: 0, or a negative errno; -ENOENT if there is no such event, or none any more
 */
int persistent_event__open(u64 id, int cpu, u32 index, struct persistent_event *event)
{
	struct perf_persistent_info info;
	int fd = open_consumer(id, cpu, index), err;

	if (fd < 0)
		return fd;

	err = describe_event(fd, &info, event);
	if (err)
		close(fd);
	return err;
}

static int session__add(struct persistent_session *session, int fd, u32 *nr_on_cpu)
{
	struct persistent_event *events, event;
	struct perf_persistent_info info;
	int err;

	err = describe_event(fd, &info, &event);
	if (err)
		return err;

	events = realloc(session->events, (session->nr_events + 1) * sizeof(*events));
	if (!events)
		return -ENOMEM;

	session->events = events;
	events[session->nr_events++] = event;

	session->id = info.id;
	session->owner = info.owner_uid;
	scnprintf(session->name, sizeof(session->name), "%s", info.name);
	*nr_on_cpu = max(*nr_on_cpu, info.nr_events);
	return 0;
}

static int session__open_cpu(struct persistent_session *session, u64 id, int cpu, u32 *nr_on_cpu)
{
	int fd, err;

	/*
	 * There is a gap if a single event was claimed. The first event found on any
	 * CPU has the number of events.
	 */
	for (u32 index = 0; index == 0 || index < *nr_on_cpu; index++) {
		fd = open_consumer(id, cpu, index);
		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd;

		err = session__add(session, fd, nr_on_cpu);
		if (err) {
			close(fd);
			/* The event was claimed in the meantime. */
			if (err == -ENOENT)
				continue;
			return err;
		}
	}
	return 0;
}

static void print_names(void)
{
	struct persistent_entry *entries;
	int nr;

	if (persistent__list(&entries, &nr) || !nr) {
		pr_err("There are no sessions; make one with: perf record -P NAME -e EVENTS -a\n");
		return;
	}

	pr_err("There %s", nr > 1 ? "are:" : "is:");
	for (int i = 0; i < nr; i++)
		pr_err(" %s", entries[i].name);
	pr_err("\n");
	persistent__free_list(entries, nr);
}

/**
 * persistent__print_open_error - say why a session cannot be opened
 * @what: the name of the session, or "id=ID"
 * @err: the error
 */
void persistent__print_open_error(const char *what, int err)
{
	char buf[STRERR_BUFSIZE];

	switch (err) {
	case -ENOENT:
		pr_err("No persistent session '%s'. ", what);
		print_names();
		break;
	case -EACCES:
	case -EPERM:
		pr_err("No permission to open the persistent session '%s': this requires its owner, in the user namespace and a pid namespace that it was created in, or CAP_PERFMON, and the permission to open its events (see /proc/sys/kernel/perf_event_paranoid).\n",
		       what);
		break;
	case -ESRCH:
		pr_err("Cannot open the persistent session '%s': it follows tasks that are not in this pid namespace. Run perf where they are visible.\n",
		       what);
		break;
	case -EBUSY:
		pr_err("Another process is changing or ending the persistent session '%s': try again.\n",
		       what);
		break;
	case -EMFILE:
		pr_err("Too many events to open the persistent session '%s': increase the limit of open files (ulimit -n).\n",
		       what);
		break;
	default:
		pr_err("Cannot open the persistent session '%s': %s\n", what,
		       str_error_r(-err, buf, sizeof(buf)));
		break;
	}
}

static bool session__exists(const struct persistent_session *session)
{
	u64 id;

	return persistent__find_id(session->name, &id) && id == session->id;
}

/* The number of events, or -1 without permission. */
static int session__count(const struct persistent_session *session)
{
	char *str = session_file(session->name, "nr_events");
	int nr = str ? atoi(str) : -1;

	free(str);
	return nr;
}

/**
 * persistent__open_session - open a session as a whole
 * @id: its id
 *
 * Return: an fd for PERF_EVENT_IOC_SESSION_*, or a negative errno; -ENOENT also on a
 * kernel that does not know it.
 */
int persistent__open_session(u64 id)
{
	struct perf_event_attr attr = {
		.type	 = PERF_TYPE_PERSISTENT,
		.size	 = sizeof(attr),
		.config	 = id,
		.config1 = PERF_PERSISTENT_SESSION,
	};
	int fd = sys_perf_event_open(&attr, -1, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/**
 * persistent__list_events - list the events of a session
 * @id: its id
 * @entries: out: the events by CPU and index, to be freed
 *
 * Return: their number, or a negative errno; -ENOENT also on a kernel without the call
 */
int persistent__list_events(u64 id, struct perf_persistent_entry **entries)
{
	struct perf_persistent_list list = {
		.size	    = sizeof(list),
		.entry_size = sizeof(**entries),
	};
	int fd = persistent__open_session(id), err = 0;
	void *room;

	*entries = NULL;
	if (fd < 0)
		return fd;

	/* The number is known when there is no room for them. More may join meanwhile. */
	while (!err && ioctl(fd, PERF_EVENT_IOC_SESSION_LIST, &list)) {
		err = errno == E2BIG ? 0 : -errno;
		room = err ? NULL : realloc(*entries, list.nr * sizeof(**entries));
		if (!err && !room)
			err = -ENOMEM;
		if (!err) {
			*entries = room;
			list.entries = (unsigned long)room;
		}
	}
	close(fd);
	if (!err)
		return list.nr;
	zfree(entries);
	return err;
}

/**
 * persistent_session__open_id - open all events of a session without messages
 * @id: its id
 *
 * The number of events is compared at the first event and after the last one, to
 * detect that the session is being ended.
 *
 * Return: the session, or an ERR_PTR(); -EBUSY if the events have changed meanwhile
 */
struct persistent_session *persistent_session__open_id(u64 id)
{
	struct persistent_session *session = zalloc(sizeof(*session));
	int err = 0, cpu, count = -1, max_cpu = cpu__max_cpu().cpu;
	u32 nr_on_cpu = 0;

	if (!session)
		return ERR_PTR(-ENOMEM);

	/* -1: events that follow a task. */
	for (cpu = -1; !err && cpu < max_cpu; cpu++) {
		err = session__open_cpu(session, id, cpu, &nr_on_cpu);
		if (count < 0 && session->nr_events)
			count = session__count(session);
	}

	if (!err && !session->nr_events)
		err = -ENOENT;
	if (!err && !session__exists(session))
		err = -EBUSY;
	if (!err && count >= 0 &&
	    (count != session->nr_events || session__count(session) != count))
		err = -EBUSY;
	if (!err)
		return session;

	persistent_session__close(session);
	return ERR_PTR(err);
}

/**
 * persistent_session__open_events - open some events of a session without messages
 * @of: the session
 * @entries: the events, sorted by CPU and index
 * @nr: number of them
 * @err: out: 0, or why one of them could not be opened, a negative errno
 *
 * An event that was claimed meanwhile is left out, without an error.
 *
 * Return: those that could be opened, which may be none, or NULL if there is no memory.
 */
struct persistent_session *
persistent_session__open_events(const struct persistent_session *of,
				const struct perf_persistent_entry *entries, int nr, int *err)
{
	struct persistent_session *some = zalloc(sizeof(*some));

	*err = 0;
	if (some)
		some->events = calloc(nr + 1, sizeof(*some->events));
	if (!some || !some->events) {
		free(some);
		return NULL;
	}
	scnprintf(some->name, sizeof(some->name), "%s", of->name);
	some->id = of->id;
	some->owner = of->owner;
	for (int i = 0; i < nr; i++) {
		int ret = persistent_event__open(of->id, entries[i].cpu, entries[i].index,
						 &some->events[some->nr_events]);

		if (!ret)
			some->nr_events++;
		else if (ret != -ENOENT)
			*err = ret;
	}
	return some;
}

/**
 * persistent_session__open - open all events of a session for reading
 * @what: the name of the session, or "id=ID"
 *
 * Prints an error message on failure.
 *
 * Return: the session, or an ERR_PTR().
 */
struct persistent_session *persistent_session__open(const char *what)
{
	struct persistent_session *session = ERR_PTR(-ENOENT);
	bool by_id = strstarts(what, "id=");
	u64 id;

	for (int i = 0; i < PERSISTENT_RETRIES; i++) {
		if (by_id ? !persistent__parse_id(what, strlen(what), "id=", &id) :
			    !persistent__find_id(what, &id)) {
			session = ERR_PTR(-ENOENT);
			break;
		}

		session = persistent_session__open_id(id);
		if (!IS_ERR(session) || PTR_ERR(session) != -EBUSY)
			break;
		usleep(PERSISTENT_RETRY_USEC);
	}

	if (IS_ERR(session))
		persistent__print_open_error(what, PTR_ERR(session));
	return session;
}

static int session__claim_events(struct persistent_session *session)
{
	int i, err = 0;

	for (i = session->nr_events - 1; i >= 0; i--) {
		if (ioctl(session->events[i].fd, PERF_EVENT_IOC_CLAIM) < 0 && errno != EBUSY)
			err = -errno;
	}
	return err;
}

/*
 * Claim all events of the session. It ends when the last file descriptor of each
 * event is closed. Events that another process has claimed are ending, too.
 *
 * Events that were added after the session was opened are claimed as well: the
 * kernel reports whether the session still exists.
 */
int persistent_session__claim(struct persistent_session *session)
{
	struct persistent_session *rest;
	int err;

	err = session__claim_events(session);
	for (int i = 0; !err && i < PERSISTENT_RETRIES; i++) {
		if (!session__exists(session))
			return 0;

		rest = persistent_session__open_id(session->id);
		if (!IS_ERR(rest)) {
			err = session__claim_events(rest);
			persistent_session__close(rest);
		}
		if (session__exists(session))
			usleep(PERSISTENT_RETRY_USEC);
	}
	return err ?: session__exists(session) ? -EBUSY : 0;
}

void persistent_session__close(struct persistent_session *session)
{
	if (!session)
		return;

	for (int i = 0; i < session->nr_events; i++) {
		if (session->events[i].fd >= 0)
			close(session->events[i].fd);
	}
	free(session->events);
	free(session);
}
