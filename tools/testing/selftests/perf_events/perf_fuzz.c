// SPDX-License-Identifier: GPL-2.0
/*
 * A fuzzer of perf events, persistent ones above all: several processes, of several
 * users, make random calls on few sessions and each other's file descriptors, and are
 * killed at random moments, while CPUs come and go.
 *
 * It runs in epochs. Each has a seed, printed also to the kernel's log, and ends with
 * all processes dead and all sessions claimed: then nothing may be listed, no page
 * charged, and no task have data of a PMU. A fuzzer whose calls all fail tests nothing, so
 * at least a third of those that matter (opening, mapping, UNCLAIM) must have succeeded, and
 * some of each ioctl of a session.
 *
 * usage: perf_fuzz [-s SEED] [-e EPOCHS] [-t SECONDS] [-n CALLS] [-b]
 *
 * -b: beside others, whose sessions are let alone. What is listed is looked at for its own
 * sessions alone then, and what is charged not at all; its events sample less often.
 *
 * With TEST_PMU_MODULE, the path of perf_test_pmu.ko, events of its PMUs are among them, for
 * which tasks have data.
 *
 * An epoch is replayed with its seed and -e 1: each process then makes the same calls;
 * how they interleave is up to the scheduler.
 */
#define _GNU_SOURCE

#include <linux/hw_breakpoint.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "../kselftest.h"
#include "persistent_session.h"
#include "test_modules/test_pmu.h"

#define NR_WORKERS	5
#define NR_FDS		12
#define NR_MAPS		8
#define NR_IDS		8
#define NR_SESSIONS	3

/* When sessions were to be opened so many times, each ioctl must have succeeded. */
#define MANY_SESSIONS	400

/* As in linux/perf_blackbox.h, which comes with black boxes: this test does not need them. */
struct notes {
	uint32_t	size;
	uint32_t	flags;
	uint64_t	data;
	uint64_t	data_size;
	uint64_t	room;
	uint64_t	slot_size;
};

#define NOTES_ADD	0x1
#define IOC_NOTES	_IOWR('$', 41, struct notes)

enum session_call { INFO, LIST, END, FREEZE, THAW, NOTES, NR_SESSION_CALLS };

static const char * const session_calls[] = {
	[INFO]		= "SESSION_INFO",
	[LIST]		= "SESSION_LIST",
	[END]		= "SESSION_END",
	[FREEZE]	= "SESSION_FREEZE",
	[THAW]		= "SESSION_THAW",
	[NOTES]		= "SESSION_NOTES",
};

struct tally {
	unsigned int	tried;
	unsigned int	done;
};

/* What all processes share */
static struct {
	struct tally	open, reopen, map, unclaim, claim, info, session;
	struct tally	session_calls[NR_SESSION_CALLS];
	/* Members that were made lately */
	struct {
		int64_t	id;
		int	cpu;
	} recent[NR_IDS];
	bool		stop;
} *shared;

/* What a process has */
static struct {
	uint64_t	rng;
	int		fds[NR_FDS];
	int		sessions[NR_SESSIONS];
	struct {
		void	*addr;
		size_t	len;
	} maps[NR_MAPS];
	int		depth;		/* of fork() */
} self;

static int mailbox[2];			/* fds travel through it */
static bool beside_others;
static int tracepoints[3];
static int pmus[2];			/* types of those of the module */
static int nr_pmus;
static int pmu_device = -1;
static char *program;
/* A page with none behind it, and the same memory, which cannot be written there. */
static char *last_page, *read_only_page;

static uint64_t mix(uint64_t x)
{
	/* splitmix64 */
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint64_t rnd(void)
{
	self.rng += 0x9e3779b97f4a7c15ULL;
	return mix(self.rng);
}

static unsigned int below(unsigned int n)
{
	return rnd() % n;
}

static bool one_in(unsigned int n)
{
	return !below(n);
}

static bool count(struct tally *tally, bool ok)
{
	__atomic_add_fetch(&tally->tried, 1, __ATOMIC_RELAXED);
	if (ok)
		__atomic_add_fetch(&tally->done, 1, __ATOMIC_RELAXED);
	return ok;
}

static int *any_slot(void)
{
	return &self.fds[below(NR_FDS)];
}

static int any_fd(void)
{
	unsigned int i;
	int fd = -1;

	for (i = 0; i < 4 && fd < 0; i++)
		fd = *any_slot();
	return fd;
}

static void keep_fd(int fd)
{
	int *slot = any_slot();

	if (fd < 0)
		return;
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
}

static int64_t any_id(void)
{
	return __atomic_load_n(&shared->recent[below(NR_IDS)].id, __ATOMIC_RELAXED);
}

/* Others write at the same time: id and cpu then may not belong together. */
static void keep_id(int fd)
{
	unsigned int i = below(NR_IDS);
	struct perf_persistent_info inf;

	if (info(fd, &inf))
		return;
	__atomic_store_n(&shared->recent[i].id, inf.id, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->recent[i].cpu, inf.cpu, __ATOMIC_RELAXED);
}

/* -1, 0 or 1 */
static int any_cpu(void)
{
	return (int)below(3) - 1;
}

/*
 * The calls
 */

static void random_attr(struct perf_event_attr *attr)
{
	static const uint64_t software[] = {
		PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
		PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CGROUP_SWITCHES,
	};

	*attr = comm_attr();
	attr->exclude_kernel = one_in(4);
	attr->comm = one_in(2);
	attr->mmap = one_in(4);
	attr->mmap2 = one_in(4);
	attr->task = one_in(4);
	attr->context_switch = one_in(8);
	attr->write_backward = !one_in(6);
	attr->inherit = one_in(16);
	attr->disabled = one_in(4);
	attr->enable_on_exec = one_in(32);
	attr->use_clockid = one_in(8);
	attr->clockid = CLOCK_MONOTONIC;
	attr->read_format = rnd() & 0x17;
	attr->wakeup_watermark = one_in(2) ? 1 : rnd() & 0xffff;
	if (one_in(2))
		attr->sample_type |= rnd() & (PERF_SAMPLE_MAX - 1) &
			~(uint64_t)(PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_STACK_USER |
				    PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR |
				    PERF_SAMPLE_AUX | PERF_SAMPLE_READ);
	if (nr_pmus && one_in(4)) {
		attr->type = pmus[below(nr_pmus)];
		attr->config = 0;
		attr->sample_period = 1;
		attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER |
					   PERF_SAMPLE_BRANCH_CALL_STACK;
	} else if (one_in(16)) {
		attr->type = PERF_TYPE_BREAKPOINT;
		attr->config = 0;
		attr->bp_type = HW_BREAKPOINT_W;
		attr->bp_addr = (uintptr_t)&self.depth;
		attr->bp_len = HW_BREAKPOINT_LEN_4;
		attr->exclude_kernel = 1;
		attr->sample_period = 1;
	} else if (one_in(3)) {
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = tracepoints[below(ARRAY_SIZE(tracepoints))];
		attr->sample_period = (1 + below(16)) * (beside_others ? 256 : 1);
	} else {
		attr->config = software[below(ARRAY_SIZE(software))];
		/* A clock that is too fast would be all that there is. */
		attr->sample_period = (10 + below(90)) * 1000 * 1000 * (beside_others ? 20 : 1);
	}
	if (one_in(32))
		((uint8_t *)attr)[below(sizeof(*attr))] = rnd();
	if (one_in(64))
		attr->size = below(2 * sizeof(*attr));
}

static void open_event(void)
{
	int group = one_in(16) ? any_fd() : -1, cpu = any_cpu(), fd;
	unsigned long flags = 0;
	struct perf_event_attr attr;

	random_attr(&attr);
	if (group >= 0 && one_in(2))
		flags = one_in(2) ? PERF_FLAG_FD_OUTPUT : PERF_FLAG_FD_NO_GROUP;
	fd = event_open(&attr, cpu < 0 || one_in(8) ? 0 : -1, cpu, group, flags);
	count(&shared->open, fd >= 0);
	keep_fd(fd);
}

static void open_member(void)
{
	unsigned int i = below(NR_IDS);
	int64_t id = __atomic_load_n(&shared->recent[i].id, __ATOMIC_RELAXED);
	int cpu = __atomic_load_n(&shared->recent[i].cpu, __ATOMIC_RELAXED), fd;

	if (one_in(8))
		fd = reopen(id, any_cpu(), below(3));
	else
		fd = reopen(id, cpu, 0);
	count(&shared->reopen, fd >= 0);
	keep_fd(fd);
}

static void map_event(void)
{
	size_t len = (one_in(16) ? rnd() % (64 * PAGE) : ((one_in(4) ? 0 : 1UL << below(5)) + 1) *
		      PAGE);
	int prot = PROT_READ | (one_in(8) ? PROT_WRITE : 0), fd = any_fd();
	unsigned int i = below(NR_MAPS);
	struct perf_persistent_info inf;
	void *addr;

	if (fd < 0)
		return;
	if (!info(fd, &inf))
		len = inf.data_size + PAGE;
	addr = mmap(NULL, len, prot, MAP_SHARED, fd, one_in(16) ? below(4) * PAGE : 0);
	if (!count(&shared->map, addr != MAP_FAILED))
		return;
	if (self.maps[i].addr)
		munmap(self.maps[i].addr, self.maps[i].len);
	self.maps[i].addr = addr;
	self.maps[i].len = len;
}

static void unmap(void)
{
	unsigned int i = below(NR_MAPS);
	size_t off = 0, len = self.maps[i].len;

	if (!self.maps[i].addr)
		return;
	if (one_in(3)) {
		off = below(3) * PAGE;
		len = PAGE;
	}
	munmap(self.maps[i].addr + off, len);
	if (len == self.maps[i].len)
		self.maps[i].addr = NULL;
}

static void change_map(void)
{
	unsigned int i = below(NR_MAPS);
	void *addr = self.maps[i].addr;

	if (!addr)
		return;
	if (one_in(2)) {
		mprotect(addr, PAGE << below(3), rnd() & 7);
	} else {
		addr = mremap(addr, self.maps[i].len, one_in(2) ? PAGE : self.maps[i].len,
			      MREMAP_MAYMOVE);
		if (addr != MAP_FAILED)
			self.maps[i].addr = addr;
	}
}

/* Without dying of what is not mapped any more */
static void touch_map(void)
{
	unsigned int i = below(NR_MAPS);
	char buf[64];
	struct iovec to = { buf, sizeof(buf) }, from = { NULL, sizeof(buf) };

	if (!self.maps[i].addr)
		return;
	from.iov_base = self.maps[i].addr + (rnd() % self.maps[i].len & ~63UL);
	process_vm_readv(getpid(), &to, 1, &from, 1, 0);
}

static void unclaim_event(void)
{
	struct perf_persistent_arg arg = {
		.size	= sizeof(arg),
		.flags	= one_in(4) ? PERF_PERSISTENT_PARTIAL : 0,
		.id	= one_in(3) ? any_id() : 0,
	};
	int fd = any_fd();

	/* Seldom of what can be a member, and is none yet: see make_member() */
	if (fd < 0 || one_in(2))
		return;
	if (!arg.id && one_in(2))
		snprintf(arg.name, sizeof(arg.name), "fuzz%u", below(64));
	if (one_in(32))
		((uint8_t *)&arg)[below(sizeof(arg))] = rnd();
	if (count(&shared->unclaim, !ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg)))
		keep_id(fd);
}

/* One that can become persistent: what random_attr() makes seldom can. */
static void make_member(void)
{
	struct perf_event_attr attr = comm_attr();
	int cpu = any_cpu(), fd;

	attr.sample_type |= PERF_SAMPLE_CPU;
	fd = event_open(&attr, cpu < 0 ? 0 : -1, cpu, -1, 0);
	if (!count(&shared->open, fd >= 0))
		return;
	keep_fd(fd);
	if (one_in(3)) {
		void *addr = map(fd, PAGE << below(4), PROT_READ);

		if (count(&shared->map, addr != MAP_FAILED) && one_in(2))
			munmap(addr, PAGE);
	}
	if (one_in(4))
		return;
	if (count(&shared->unclaim, unclaim(fd, one_in(8), 0, "") > 0))
		keep_id(fd);
}

static void claim_event(void)
{
	int fd = any_fd();

	if (fd >= 0)
		count(&shared->claim, claim(fd) > 0);
}

static void ask_event(void)
{
	char attr[sizeof(struct perf_event_attr)];
	struct perf_persistent_info inf = {
		.size		= sizeof(inf),
		.attr_ptr	= one_in(2) ? (uintptr_t)attr : 0,
		.attr_size	= below(2 * sizeof(attr)),
	};
	struct perf_rb_reserved res = { .head = rnd(), .__reserved = one_in(16) };
	int fd = any_fd();

	if (fd < 0)
		return;
	if (inf.attr_size > sizeof(attr))
		inf.attr_size = sizeof(attr);
	count(&shared->info, !ioctl(fd, PERF_EVENT_IOC_PERSISTENT_INFO, &inf));
	ioctl(fd, PERF_EVENT_IOC_RESERVED_HEAD, &res);
}

/*
 * Where the kernel finds what it is given: mostly at the end of a page that has none behind
 * it, sometimes where it is not aligned, cannot be written, ends too early, or is not at all.
 */
static void *place(const void *what, size_t size)
{
	size_t off;

	if (size > PAGE)
		size = PAGE;
	off = PAGE - size;
	switch (below(20)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)rnd();
	case 2:
		/* Cut */
		off += below(size + 1);
		break;
	case 3:
		memcpy(last_page + off, what, size);
		return read_only_page + off;
	case 4:
		off = below(off + 1);
		break;
	}
	memcpy(last_page + off, what, size < PAGE - off ? size : PAGE - off);
	return last_page + off;
}

/*
 * A struct that begins with its size: mostly as it is here, or as older and newer programs know
 * it, or neither.
 */
static void *place_struct(const void *what, uint32_t known)
{
	static char room[65536];
	uint32_t size = known;

	memset(room, 0, PAGE);
	memcpy(room, what, known);
	switch (below(12)) {
	case 0:
		size += below(64);
		break;
	case 1:
		size = below(PAGE + 64);
		break;
	case 2:
		size = rnd();
		break;
	case 3:
		size += 8;
		room[below(size)] = rnd();
		break;
	}
	memcpy(room, &size, sizeof(size));
	return place(room, size < sizeof(size) ? sizeof(size) : size);
}

/* Also among the other fds, for all other calls. */
static int any_session(void)
{
	int *slot = &self.sessions[below(NR_SESSIONS)];

	if (*slot < 0 || one_in(3)) {
		/* Sessions of others have ids as well. */
		int64_t id = one_in(8) && !beside_others ? below(256) : any_id();

		if (*slot >= 0)
			close(*slot);
		*slot = open_session(id);
		count(&shared->session, *slot >= 0);
		if (one_in(4))
			keep_fd(fcntl(*slot, F_DUPFD_CLOEXEC, 0));
	}
	return one_in(8) ? any_fd() : *slot;
}

/* What is no session, and what it does not know, is not counted. */
static void call_session(int fd, enum session_call call, unsigned long cmd, void *arg)
{
	int ret;

	if (fd < 0)
		return;
	ret = ioctl(fd, cmd, arg);
	if (!ret || errno != ENOTTY)
		count(&shared->session_calls[call], !ret);
}

static void ask_session(void)
{
	struct perf_persistent_session_info inf;

	memset(&inf, one_in(8) ? rnd() : 0, sizeof(inf));
	call_session(any_session(), INFO, PERF_EVENT_IOC_SESSION_INFO,
		     place_struct(&inf, sizeof(inf)));
}

static void list_session(void)
{
	/* The entries are not where the struct is. */
	static char entries[65536];
	struct perf_persistent_list list = {
		.entry_size	= sizeof(struct perf_persistent_entry),
		.nr		= one_in(8) ? rnd() : below(16),
		.__reserved	= one_in(32),
		.entries	= (uintptr_t)entries,
	};

	if (one_in(4))
		list.entry_size = one_in(8) ? rnd() : below(PAGE + 64);
	if (one_in(8))
		list.entries = one_in(2) ? rnd() : (uintptr_t)read_only_page;
	else if (one_in(8))
		list.entries = (uintptr_t)last_page + PAGE - below(512);
	call_session(any_session(), LIST, PERF_EVENT_IOC_SESSION_LIST,
		     place_struct(&list, sizeof(list)));
}

static void note_session(void)
{
	static char bytes[65536];
	struct notes notes = {
		.flags		= one_in(16) ? rnd() : one_in(4) ? NOTES_ADD : 0,
		.data		= one_in(16) ? rnd() : (uintptr_t)bytes,
		.data_size	= one_in(16) ? rnd() : below(one_in(4) ? sizeof(bytes) : 256),
	};

	if (one_in(8))
		notes.data = (uintptr_t)last_page + PAGE - below(512);
	call_session(any_session(), NOTES, IOC_NOTES,
		     place_struct(&notes, sizeof(notes)));
}

static void freeze_session(void)
{
	int fd = any_session();

	call_session(fd, FREEZE, PERF_EVENT_IOC_SESSION_FREEZE, NULL);
	/* One that is frozen is not joined any more. */
	if (!one_in(4))
		call_session(fd, THAW, PERF_EVENT_IOC_SESSION_THAW, NULL);
}

static void thaw_session(void)
{
	call_session(any_session(), THAW, PERF_EVENT_IOC_SESSION_THAW, NULL);
}

/* Seldom, as the others need some. */
static void end_session(void)
{
	if (one_in(2))
		call_session(any_session(), END, PERF_EVENT_IOC_SESSION_END, NULL);
}

static void upstream_ioctl(void)
{
	int fd = any_fd(), other = any_fd();
	struct perf_event_attr attr;
	uint64_t period = 1000 + below(1000 * 1000);
	uint32_t query[4] = { 2 };

	if (fd < 0)
		return;
	switch (below(12)) {
	case 0:
		ioctl(fd, PERF_EVENT_IOC_ENABLE, below(2));
		break;
	case 1:
		ioctl(fd, PERF_EVENT_IOC_DISABLE, below(2));
		break;
	case 2:
		ioctl(fd, PERF_EVENT_IOC_RESET, below(2));
		break;
	case 3:
		ioctl(fd, PERF_EVENT_IOC_REFRESH, below(4));
		break;
	case 4:
		ioctl(fd, PERF_EVENT_IOC_PERIOD, &period);
		break;
	case 5:
		ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, one_in(4) ? -1 : other);
		break;
	case 6:
		ioctl(fd, PERF_EVENT_IOC_SET_FILTER, one_in(2) ? "id == 3" : "prev_pid > 1");
		break;
	case 7:
		ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, below(2));
		break;
	case 8:
		ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, query);
		break;
	case 9:
		ioctl(fd, PERF_EVENT_IOC_SET_BPF, other);
		break;
	case 10:
		random_attr(&attr);
		ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
		break;
	default:
		ioctl(fd, _IOC(rnd() & 3, '$', below(48), rnd() & 0xff), NULL);
	}
}

static void wait_event(void)
{
	struct pollfd p = { .fd = any_fd(), .events = POLLIN };
	char buf[256];

	if (p.fd < 0)
		return;
	poll(&p, 1, below(2));
	/* Of a perf event it never blocks; nothing else is there. */
	if (read(p.fd, buf, rnd() % sizeof(buf)) < 0)
		return;
}

static void dup_event(void)
{
	keep_fd(fcntl(any_fd(), F_DUPFD_CLOEXEC, 0));
}

static void close_event(void)
{
	int *slot = any_slot();

	if (*slot >= 0)
		close(*slot);
	*slot = -1;
}

static void pass_event(void)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fd = any_fd();

	if (one_in(2)) {
		if (fd < 0)
			return;
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
		sendmsg(mailbox[0], &msg, MSG_DONTWAIT);
	} else if (recvmsg(mailbox[1], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1) {
		cmsg = CMSG_FIRSTHDR(&msg);
		if (cmsg && cmsg->cmsg_type == SCM_RIGHTS) {
			memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
			keep_fd(fd);
		}
	}
}

static void list_sessions(void)
{
	static const char * const files[] = {
		"id", "cpus", "nr_events", "memory", "owner", "state",
	};
	char name[64] = DEVICE "/sessions";
	struct dirent *d;
	DIR *dir = opendir(name);
	unsigned int i;

	if (!dir)
		return;
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || one_in(2))
			continue;
		for (i = 0; i < ARRAY_SIZE(files); i++) {
			snprintf(name, sizeof(name), "sessions/%%s/%s", files[i]);
			sysfs(name, d->d_name);
		}
		sysfs("events/%s", d->d_name);
	}
	closedir(dir);
}

static void be_busy(void)
{
	uint64_t words[] = { rnd() >> 1 | 1, rnd() >> 1 | 1, TEST_PMU_SAMPLE | 1, TEST_PMU_POP };
	char name[16];

	/* Of its PMUs alone: nothing else takes it amiss. */
	if (pmu_device >= 0 && write(pmu_device, words, sizeof(words)) < 0)
		ksft_print_msg("the test PMU does not listen\n");
	/* A breakpoint may be there. */
	__atomic_store_n(&self.depth, self.depth, __ATOMIC_RELAXED);

	snprintf(name, sizeof(name), "fuzz-%x", below(256));
	leave_record(name);
	if (one_in(8))
		prctl(one_in(2) ? PR_TASK_PERF_EVENTS_DISABLE : PR_TASK_PERF_EVENTS_ENABLE);
	pin_to_cpu(below(2));
}

static void make_calls(unsigned int nr);

static void make_child(void)
{
	pid_t pid;

	if (self.depth >= 2)
		return;
	pid = fork();
	if (!pid) {
		self.depth++;
		make_calls(below(20));
		if (one_in(2))
			execl(program, program, "-x", NULL);
		_exit(0);
	}
	if (pid < 0)
		return;
	if (one_in(3))
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void make_calls(unsigned int nr)
{
	static void (*const calls[])(void) = {
		open_event, open_event, make_member, make_member, make_member, open_member,
		open_member, map_event, map_event, unmap, change_map, touch_map, unclaim_event,
		claim_event, ask_event, upstream_ioctl, upstream_ioctl, wait_event, dup_event,
		close_event, close_event, pass_event, pass_event, list_sessions, be_busy,
		ask_session, list_session, note_session, freeze_session, thaw_session, end_session,
	};

	while (nr-- && !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		calls[below(ARRAY_SIZE(calls))]();
		if (one_in(64))
			make_child();
	}
}

/*
 * An epoch
 */

/* What place() says, for each worker its own: what they write there must not meet. */
static bool map_pages(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char *addr = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || addr == MAP_FAILED || ftruncate(fd, PAGE))
		return false;
	last_page = mmap(addr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	read_only_page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return last_page == addr && read_only_page != MAP_FAILED;
}

static pid_t start_worker(unsigned int n, uint64_t seed, unsigned int nr_calls)
{
	/* Root twice, and others */
	static const uid_t users[NR_WORKERS] = { 0, 0, 1000, 1001, NOBODY };
	pid_t pid;

	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!map_pages())
		_exit(1);
	if (users[n] && become(users[n]))
		_exit(1);
	self.rng = mix(seed + n);
	memset(self.fds, -1, sizeof(self.fds));
	memset(self.sessions, -1, sizeof(self.sessions));
	make_calls(nr_calls);
	_exit(0);
}

static pid_t start_hotplug(uint64_t seed)
{
	static const char * const path = "/sys/devices/system/cpu/cpu1/online";
	pid_t pid = fork();
	unsigned int i;

	if (pid)
		return pid;
	self.rng = mix(seed + NR_WORKERS);
	for (i = 0; i < 6; i++) {
		usleep(below(50 * 1000));
		write_long(path, i & 1);
	}
	write_long(path, 1);
	_exit(0);
}

/* Its sessions have the names that the kernel gives, or those of unclaim_event(). */
static bool is_mine(const char *name)
{
	return !beside_others || !strncmp(name, "event", 5) || !strncmp(name, "fuzz", 4);
}

static int nr_mine(void)
{
	DIR *dir = opendir(DEVICE "/sessions");
	struct dirent *d;
	int nr = 0;

	if (!dir)
		return 0;
	while ((d = readdir(dir)))
		nr += d->d_name[0] != '.' && is_mine(d->d_name);
	closedir(dir);
	return nr;
}

static long tasks_with_data(void)
{
	return read_long("/sys/kernel/perf_ctx_data/tasks");
}

/* What ends with an RCU grace period or a work item does so soon, not at once. */
static bool is_balanced(const struct balance *before)
{
	struct balance now;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		claim_all(is_mine, 4096);
		if (beside_others && !nr_mine())
			return true;
		now = take_balance();
		if (!memcmp(&now, before, sizeof(now)) && tasks_with_data() <= 0)
			return true;
		usleep(100 * 1000);
	}
	ksft_print_msg("left: %d sessions, %d events, %ld pages pinned, %ld charged, %ld tasks\n",
		       now.sessions - before->sessions, now.events - before->events,
		       now.pinned - before->pinned, now.mlocked - before->mlocked,
		       tasks_with_data());
	return false;
}

static void say_seed(unsigned int epoch, uint64_t seed)
{
	char text[80];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	snprintf(text, sizeof(text), "perf_fuzz: epoch %u, seed %#llx\n", epoch,
		 (unsigned long long)seed);
	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			ksft_print_msg("cannot write to the kernel's log\n");
		close(fd);
	}
}

static bool run_epoch(unsigned int epoch, uint64_t seed, unsigned int nr_calls,
		      const struct balance *before)
{
	pid_t pids[NR_WORKERS + 1];
	unsigned int i;

	say_seed(epoch, seed);
	self.rng = seed;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, mailbox))
		return false;
	shared->stop = false;
	for (i = 0; i < NR_WORKERS; i++)
		pids[i] = start_worker(i, seed, nr_calls);
	pids[NR_WORKERS] = one_in(3) ? start_hotplug(seed) : -1;
	/* Some die in the middle of a call. */
	for (i = 0; i < NR_WORKERS; i++) {
		if (one_in(3)) {
			usleep(below(100 * 1000));
			kill(pids[i], SIGKILL);
		}
	}
	for (i = 0; i <= NR_WORKERS; i++) {
		if (pids[i] > 0)
			waitpid(pids[i], NULL, 0);
	}
	close(mailbox[0]);
	close(mailbox[1]);
	if (is_balanced(before))
		return true;
	ksft_print_msg("replay: %s -s %#llx -e 1 -n %u\n", program, (unsigned long long)seed,
		       nr_calls);
	return false;
}

static int tracepoint_id(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	return read_long(path);
}

static void load_pmus(void)
{
	static const char * const names[] = { "perf_test_big", "perf_test_small" };
	const char *module = getenv("TEST_PMU_MODULE");
	char path[PATH_MAX];
	unsigned int i;

	if (access(module ?: "", R_OK))
		return;
	if (load_module(module, ""))
		ksft_print_msg("the test PMU is not loaded: %s\n", strerror(errno));
	pmu_device = open(TEST_PMU_DEVICE, O_WRONLY | O_CLOEXEC);
	for (i = 0; pmu_device >= 0 && i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", names[i]);
		pmus[nr_pmus++] = read_long(path);
	}
}

static void report(const char *what, const struct tally *tally)
{
	ksft_print_msg("%s: %u of %u\n", what, tally->done, tally->tried);
	ksft_test_result(tally->done * 3 >= tally->tried && tally->done,
			 "a third of the calls succeeded: %s\n", what);
}

static void report_sessions(void)
{
	bool ok = shared->session.done;
	unsigned int i;

	ksft_print_msg("sessions opened: %u of %u\n", shared->session.done,
		       shared->session.tried);
	for (i = 0; i < NR_SESSION_CALLS; i++) {
		const struct tally *tally = &shared->session_calls[i];

		ksft_print_msg("%s: %u of %u\n", session_calls[i], tally->done, tally->tried);
		/* Not all kernels know notes. */
		ok = ok && (tally->done || shared->session.tried < MANY_SESSIONS ||
			    (i == NOTES && !tally->tried));
	}
	ksft_test_result(ok, "some of each ioctl of a session succeeded\n");
}

int main(int argc, char **argv)
{
	unsigned int epochs = 0, nr_calls = 400, epoch;
	const char *env = getenv("PERF_FUZZ_SECS");
	long seconds = env ? atol(env) : 5;
	uint64_t seed = time(NULL);
	struct balance before;
	time_t end;
	int c;

	program = argv[0];
	while ((c = getopt(argc, argv, "s:e:t:n:bx")) != -1) {
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			epochs = atoi(optarg);
			break;
		case 't':
			seconds = atol(optarg);
			break;
		case 'n':
			nr_calls = atoi(optarg);
			break;
		case 'b':
			beside_others = true;
			break;
		case 'x':
			return 0;
		default:
			ksft_exit_fail_msg("see the top of the source\n");
		}
	}
	ksft_print_header();
	if (geteuid())
		ksft_exit_skip("must be root\n");
	if (!have_persistent())
		ksft_exit_skip("no CONFIG_PERF_PERSISTENT\n");
	ksft_set_plan(5);

	tracepoints[0] = tracepoint_id("sched/sched_switch");
	tracepoints[1] = tracepoint_id("raw_syscalls/sys_enter");
	tracepoints[2] = tracepoint_id("sched/sched_process_exit");
	load_pmus();
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("no memory\n");
	/* So that users get somewhere */
	write_long(PARANOID, -1);
	write_long(MAX_SESSIONS, 64);

	before = take_balance();
	ksft_print_msg("seed %#llx\n", (unsigned long long)seed);
	end = time(NULL) + seconds;
	for (epoch = 0; epochs ? epoch < epochs : time(NULL) < end; epoch++) {
		if (!run_epoch(epoch, seed + epoch, nr_calls, &before))
			break;
	}
	ksft_test_result(epochs ? epoch == epochs : epoch && time(NULL) >= end,
			 "nothing is left after each of %u epochs\n", epoch);
	report("opening", &shared->open);
	report("mapping", &shared->map);
	report("UNCLAIM", &shared->unclaim);
	report_sessions();
	ksft_print_msg("opened again: %u of %u, claimed: %u of %u, asked: %u of %u\n",
		       shared->reopen.done, shared->reopen.tried, shared->claim.done,
		       shared->claim.tried, shared->info.done, shared->info.tried);
	ksft_finished();
}
