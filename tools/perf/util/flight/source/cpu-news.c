// SPDX-License-Identifier: GPL-2.0
/*
 * News of CPUs, so that a flight recorder need not look for them all the time
 *
 * The kernel sends a uevent when a CPU has come online. A socket filter drops all other
 * uevents, so that the recorder sleeps while disks and network devices come and go. The
 * kernel sends uevents to the network namespaces of the initial user namespace alone.
 *
 * A machine that resumes brings its CPUs back without uevents. A timer of CLOCK_REALTIME
 * that is cancelled when that clock is set tells of it: to the kernel, to resume is to set it.
 */
#include "cpu-news.h"

#include <linux/kernel.h>
#include <linux/netlink.h>
#include <linux/types.h>
#include <uapi/linux/filter.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* The multicast group of the kernel; udev has another one */
#define KERNEL_GROUP	1

/* PROC_USER_INIT_INO of the kernel */
#define INITIAL_USER_NS	0xEFFFFFFDU

/* What a call reads at most: others may send uevents as well. */
#define MAX_MESSAGES	64

/* In s: the latest time that there is */
#define NEVER		((time_t)((1ULL << (8 * sizeof(time_t) - 1)) - 1))

/*
 * Does the kernel send uevents to our network namespace? One that we have made with our user
 * namespace, as rootless containers do, gets none.
 */
static bool is_told(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino == INITIAL_USER_NS;
}

/* Take "online@/devices/system/cpu/cpu1" and the like. */
static int take_online(int fd)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'o' << 24 | 'n' << 16 | 'l' << 8 | 'i', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = ARRAY_SIZE(insns), .filter = insns };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int open_uevents(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	int fd;

	if (!is_told())
		return -1;
	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    NETLINK_KOBJECT_UEVENT);
	if (fd < 0)
		return -1;
	if (take_online(fd) || bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Fails with ECANCELED if it was cancelled before, and is armed again all the same. */
static int arm_clock(int fd)
{
	struct itimerspec never = { .it_value.tv_sec = NEVER };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
}

static int open_clock(void)
{
	int fd;

	/* The latest time would be in 2038. */
	if (sizeof(time_t) < sizeof(s64))
		return -1;
	fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd >= 0 && arm_clock(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/**
 * flight_cpu_news__init - listen for news
 * @news: descriptors to be polled; those that cannot be had are -1
 */
void flight_cpu_news__init(struct flight_cpu_news *news)
{
	news->uevents = open_uevents();
	news->clock = open_clock();
}

void flight_cpu_news__exit(struct flight_cpu_news *news)
{
	if (news->uevents >= 0)
		close(news->uevents);
	if (news->clock >= 0)
		close(news->clock);
	news->uevents = -1;
	news->clock = -1;
}

/**
 * flight_cpu_news__came - are there news since the last call?
 * @news: what was listened for
 *
 * Messages that were dropped for lack of memory count as well.
 */
bool flight_cpu_news__came(struct flight_cpu_news *news)
{
	struct pollfd fds[] = {
		{ .fd = news->uevents,	.events = POLLIN },
		{ .fd = news->clock,	.events = POLLIN },
	};
	int nr = 0;
	char byte;

	if (poll(fds, ARRAY_SIZE(fds), 0) <= 0)
		return false;
	if (fds[0].revents) {
		while (nr++ < MAX_MESSAGES &&
		       (recv(news->uevents, &byte, 1, 0) >= 0 || errno == ENOBUFS))
			;
	}
	if (fds[1].revents)
		arm_clock(news->clock);
	return true;
}
