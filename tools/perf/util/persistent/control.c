// SPDX-License-Identifier: GPL-2.0
/*
 * Persistent events: act on a session as a whole
 *
 * The file of a session (config1 PERF_PERSISTENT_SESSION) ends, freezes and thaws it in one
 * call, whatever the number of its events, and without a permission to read them. On an
 * older kernel, opening it fails with ENOENT: a session is ended there by claiming its
 * events one by one, and cannot be frozen.
 */
#include "persistent.h"
#include "../base-api.h"
#include "../cap.h"
#include "../debug.h"
#include "../evsel.h"

#include <api/fs/fs.h>
#include <linux/err.h>
#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* May this user freeze and end it? */
bool persistent__may_control(const struct perf_persistent_session_info *info)
{
	return info->owner_uid == geteuid() || perf_cap__has(CAP_SYS_ADMIN);
}

/**
 * persistent__freeze_reason - what froze a session, as text
 * @reason: PERF_PERSISTENT_FREEZE_*
 *
 * Return: the cause; those of the kernel as kernel.perf_persistent_freeze has them.
 */
const char *persistent__freeze_reason(u32 reason)
{
	static const char * const names[] = {
		[PERF_PERSISTENT_FREEZE_IOCTL]	= "user",
		[PERF_PERSISTENT_FREEZE_BPF]	= "bpf",
		[PERF_PERSISTENT_FREEZE_OOPS]	= "oops",
		[PERF_PERSISTENT_FREEZE_PANIC]	= "panic",
		[PERF_PERSISTENT_FREEZE_OOM]	= "oom",
		[PERF_PERSISTENT_FREEZE_HUNG]	= "hung",
		[PERF_PERSISTENT_FREEZE_STALL]	= "rcu-stall",
		[PERF_PERSISTENT_FREEZE_LOCKUP]	= "lockup",
	};

	return reason < ARRAY_SIZE(names) && names[reason] ? names[reason] : "unknown";
}

static bool find_session(const char *what, u64 *id)
{
	if (strstarts(what, "id="))
		return persistent__parse_id(what, strlen(what), "id=", id);
	return persistent__find_id(what, id);
}

static void print_error(const char *verb, const char *what, int err)
{
	char buf[STRERR_BUFSIZE];
	int level;

	switch (err) {
	case -EACCES:
	case -EPERM:
		if (!sysctl__read_int("kernel/perf_event_paranoid", &level) && level > 2) {
			pr_err("No permission to %s the persistent session '%s': while /proc/sys/kernel/perf_event_paranoid is %d, this requires CAP_SYS_ADMIN.\n",
			       verb, what, level);
			break;
		}
		pr_err("No permission to %s the persistent session '%s': this requires its owner, in the user namespace and a pid namespace that it was created in, or CAP_SYS_ADMIN.\n",
		       verb, what);
		break;
	case -EALREADY:
		pr_err("The persistent session '%s' is %s already.\n", what,
		       strcmp(verb, "freeze") ? "running" : "frozen");
		break;
	case -ENOENT:
		pr_err("Cannot %s the persistent session '%s': it has ended.\n", verb, what);
		break;
	case -EOPNOTSUPP:
		pr_err("Cannot %s the persistent session '%s': this kernel cannot freeze sessions. Boot a newer one, or read the session now: perf record -e persistent/%s/\n",
		       verb, what, what);
		break;
	default:
		pr_err("Cannot %s the persistent session '%s': %s\n", verb, what,
		       str_error_r(-err, buf, sizeof(buf)));
		break;
	}
}

/* Fill in the name and the id. Prints a message on failure. */
static int open_by_name(const char *what, const char *verb,
			struct perf_persistent_session_info *info)
{
	u64 id;
	int fd, err;

	memset(info, 0, sizeof(*info));
	if (!find_session(what, &id) || !persistent__id_exists(id)) {
		persistent__print_open_error(what, -ENOENT);
		return -ESRCH;
	}

	fd = persistent__open_session(id);
	/* The session has ended since, or the kernel takes it for an event that is not there. */
	if (fd == -ENOENT)
		return find_session(what, &id) && persistent__id_exists(id) ? -EOPNOTSUPP : -ENOENT;
	if (fd < 0) {
		print_error(verb, what, fd);
		return fd;
	}

	info->size = sizeof(*info);
	if (ioctl(fd, PERF_EVENT_IOC_SESSION_INFO, info)) {
		err = -errno;
		print_error(verb, what, err);
		close(fd);
		return err;
	}
	return fd;
}

/**
 * persistent__end - end a session in one call
 * @what: its name, or "id=ID"
 * @info: out: its name and id
 *
 * Return: 0; -EOPNOTSUPP without a message if the kernel ends sessions event by event
 * only; another error with one
 */
int persistent__end(const char *what, struct perf_persistent_session_info *info)
{
	int fd = open_by_name(what, "end", info), err = 0;

	if (fd == -ENOENT)
		print_error("end", what, fd);
	if (fd < 0)
		return fd;

	if (ioctl(fd, PERF_EVENT_IOC_SESSION_END)) {
		err = -errno;
		print_error("end", what, err);
	}
	close(fd);
	return err;
}

static int freeze_or_thaw(const char *what, const char *verb, unsigned long cmd,
			  struct perf_persistent_session_info *info)
{
	int fd = open_by_name(what, verb, info), err = 0;

	if (fd == -ENOENT || fd == -EOPNOTSUPP)
		print_error(verb, what, fd);
	if (fd < 0)
		return fd;

	if (ioctl(fd, cmd) || ioctl(fd, PERF_EVENT_IOC_SESSION_INFO, info)) {
		err = -errno;
		print_error(verb, what, err);
	}
	close(fd);
	return err;
}

/**
 * persistent__freeze - freeze a session
 * @what: its name, or "id=ID"
 * @info: out: what it says of itself afterwards
 *
 * Prints a message on failure.
 */
int persistent__freeze(const char *what, struct perf_persistent_session_info *info)
{
	return freeze_or_thaw(what, "freeze", PERF_EVENT_IOC_SESSION_FREEZE, info);
}

/**
 * persistent__thaw - let a frozen session go on
 * @what: its name, or "id=ID"
 * @info: out: what it says of itself afterwards
 *
 * Prints a message on failure.
 */
int persistent__thaw(const char *what, struct perf_persistent_session_info *info)
{
	return freeze_or_thaw(what, "thaw", PERF_EVENT_IOC_SESSION_THAW, info);
}

/* Is it a session, which was named as an event? */
bool evsel__is_persistent(const struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_PERSISTENT && persistent__is_supported();
}
