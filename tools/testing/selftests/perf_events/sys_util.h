/* SPDX-License-Identifier: GPL-2.0 */
/* What tests ask of the kernel beside perf_event_open(): settings, and modules. */
#ifndef SELFTESTS_PERF_EVENTS_SYS_UTIL_H
#define SELFTESTS_PERF_EVENTS_SYS_UTIL_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/netlink.h>

/* To a file of sysfs, procfs, or the like; returns 0, or -1 with errno. */
static inline int write_text(const char *path, const char *text)
{
	ssize_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, len) == len ? 0 : -1;
	close(fd);
	return ret;
}

/* @path may be NULL, as getenv() returns it: then it fails. */
static inline int load_module(const char *path, const char *args)
{
	int fd = open(path ?: "", O_RDONLY | O_CLOEXEC), ret;

	ret = syscall(__NR_finit_module, fd, args, 0);
	close(fd);
	return ret;
}

/* Does not wait: a module that is in use is not unloaded. */
static inline int unload_module(const char *name)
{
	return syscall(__NR_delete_module, name, O_NONBLOCK);
}

/* Without a daemon, the records are in the kernel's log. Fails without CONFIG_AUDIT. */
static inline int set_audit(bool on)
{
	struct {
		struct nlmsghdr	hdr;
		/* struct audit_status: mask, enabled */
		uint32_t	status[12];
	} msg = {
		.hdr = {
			.nlmsg_len	= sizeof(msg),
			.nlmsg_type	= 1001,	/* AUDIT_SET */
			.nlmsg_flags	= NLM_F_REQUEST,
		},
		.status = { 1, on },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT), ret;

	if (fd < 0)
		return -1;
	ret = send(fd, &msg, sizeof(msg), 0) == sizeof(msg) ? 0 : -1;
	close(fd);
	return ret;
}

#endif /* SELFTESTS_PERF_EVENTS_SYS_UTIL_H */
