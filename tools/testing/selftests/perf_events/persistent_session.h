/* SPDX-License-Identifier: GPL-2.0 */
/* What tests of the file of a session share. */
#ifndef SELFTESTS_PERF_EVENTS_PERSISTENT_SESSION_H
#define SELFTESTS_PERF_EVENTS_PERSISTENT_SESSION_H

#include <poll.h>

#include "persistent_util.h"

static inline int open_session(uint64_t id)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_PERSISTENT,
		.config		= id,
		.config1	= PERF_PERSISTENT_SESSION,
	};

	return event_open(&attr, -1, -1, -1, 0);
}

static inline int session_info(int fd, struct perf_persistent_session_info *inf)
{
	memset(inf, 0, sizeof(*inf));
	inf->size = sizeof(*inf);
	return ioctl(fd, PERF_EVENT_IOC_SESSION_INFO, inf);
}

/* Returns the number of events, or -1. */
static inline int session_list(int fd, struct perf_persistent_entry *entries, uint32_t room)
{
	struct perf_persistent_list list = {
		.size		= sizeof(list),
		.entry_size	= sizeof(*entries),
		.nr		= room,
		.entries	= (uintptr_t)entries,
	};

	return ioctl(fd, PERF_EVENT_IOC_SESSION_LIST, &list) ? -1 : (int)list.nr;
}

static inline int session_end(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SESSION_END);
}

static inline int session_freeze(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SESSION_FREEZE);
}

static inline int session_thaw(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SESSION_THAW);
}

static inline uint32_t session_state(int fd)
{
	struct perf_persistent_session_info inf;

	return session_info(fd, &inf) ? UINT32_MAX : inf.state;
}

/* What poll() says at once. */
static inline int polled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -1 : p.revents;
}

/* Opens the session for a moment. */
static inline int with_session(uint64_t id, int (*verb)(int fd))
{
	int fd = open_session(id), ret, err;

	if (fd < 0)
		return -1;
	ret = verb(fd);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

#endif /* SELFTESTS_PERF_EVENTS_PERSISTENT_SESSION_H */
