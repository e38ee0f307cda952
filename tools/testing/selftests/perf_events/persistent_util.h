/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of persistent events share. */
#ifndef _PERSISTENT_UTIL_H
#define _PERSISTENT_UTIL_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <linux/perf_persistent.h>

#include "../kselftest_harness.h"
#include "sys_util.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

#define DEVICE		"/sys/bus/event_source/devices/persistent"
#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define DEFAULT_SIZE	(512UL << 10)
#define NOBODY		65534
#define SOMEBODY	65533

/* What the kernel calls a session that NOBODY has made without CAP_PERFMON. */
#define NOBODYS(name)	"u65534." name

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define MAX_SESSIONS	"/proc/sys/kernel/perf_persistent_max"
#define MLOCK_KB	"/proc/sys/kernel/perf_event_mlock_kb"
#define ONLINE		"/sys/devices/system/cpu/cpu1/online"

static inline int event_open(struct perf_event_attr *attr, int pid, int cpu, int group_fd,
			     unsigned long flags)
{
	attr->size = attr->size ?: sizeof(*attr);
	return syscall(__NR_perf_event_open, attr, pid, cpu, group_fd,
		       flags | PERF_FLAG_FD_CLOEXEC);
}

/* Records each prctl(PR_SET_NAME) on its CPU: data that a test can foresee. */
static inline struct perf_event_attr comm_attr(void)
{
	return (struct perf_event_attr) {
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(struct perf_event_attr),
		.config		= PERF_COUNT_SW_DUMMY,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID,
		.sample_id_all	= 1,
		.exclude_kernel	= 1,
		.write_backward	= 1,
		.comm		= 1,
		.watermark	= 1,
		.wakeup_watermark = 1,
	};
}

static inline int open_comm(int cpu)
{
	struct perf_event_attr attr = comm_attr();

	return event_open(&attr, -1, cpu, -1, 0);
}

/* All that sched_switch says, on CPU 0; -1 without tracefs. */
static inline int open_raw(void)
{
	struct perf_event_attr attr = comm_attr();
	FILE *f = fopen("/sys/kernel/tracing/events/sched/sched_switch/id", "r");
	int id = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%d", &id) != 1)
		id = -1;
	fclose(f);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.comm = 0;
	attr.exclude_kernel = 0;
	attr.sample_period = 1;
	attr.sample_type |= PERF_SAMPLE_RAW;
	return id < 0 ? -1 : event_open(&attr, -1, 0, -1, 0);
}

/* Opens an event of a session. */
static inline int reopen(uint64_t id, int cpu, unsigned int index)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_PERSISTENT,
		.config		= id,
		.config1	= index,
	};

	return event_open(&attr, -1, cpu, -1, 0);
}

/* Returns the session's id, or -1. */
static inline int64_t unclaim(int fd, unsigned int flags, uint64_t id, const char *name)
{
	struct perf_persistent_arg arg = {
		.size	= sizeof(arg),
		.flags	= flags,
		.id	= id,
	};

	snprintf(arg.name, sizeof(arg.name), "%s", name);
	return ioctl(fd, PERF_EVENT_IOC_UNCLAIM, &arg) ? -1 : (int64_t)arg.id;
}

static inline int claim(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_CLAIM);
}

static inline int info(int fd, struct perf_persistent_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return ioctl(fd, PERF_EVENT_IOC_PERSISTENT_INFO, info);
}

static inline void *map(int fd, size_t data_size, int prot)
{
	return mmap(NULL, data_size + PAGE, prot, MAP_SHARED, fd, 0);
}

static inline void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Leaves a record in the buffers of comm events on this CPU. */
static inline void leave_record(const char *name)
{
	prctl(PR_SET_NAME, name);
}

/* The name in the nth newest record of a mapped backward buffer, or NULL. */
static inline const char *nth_record(void *base, unsigned int n)
{
	static __thread char copy[256];
	struct perf_event_mmap_page *page = base;
	uint64_t size = page->data_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t off = 0;
	uint16_t i;

	for (;;) {
		struct perf_event_header hdr;

		for (i = 0; i < sizeof(hdr); i++)
			((char *)&hdr)[i] = ((char *)base)[page->data_offset +
							   ((head + off + i) & (size - 1))];
		if (hdr.size < sizeof(hdr) || hdr.size > sizeof(copy) || off + hdr.size > size)
			return NULL;
		if (hdr.type == PERF_RECORD_COMM && !n--) {
			for (i = 0; i < hdr.size; i++)
				copy[i] = ((char *)base)[page->data_offset +
							 ((head + off + i) & (size - 1))];
			/* After the header, and pid and tid. */
			return copy + sizeof(hdr) + 8;
		}
		off += hdr.size;
	}
}

/*
 * How many times the name is among the newest records. There may be others between: the
 * kernel names threads of its own.
 */
static inline int nr_records(void *base, const char *name)
{
	const char *got;
	unsigned int n;
	int nr = 0;

	for (n = 0; n < 64; n++) {
		got = nth_record(base, n);
		if (!got)
			break;
		nr += !strcmp(got, name);
	}
	return nr;
}

/* The type of the newest record of a mapped backward buffer, or 0. */
static inline uint32_t newest_type(void *base)
{
	struct perf_event_mmap_page *page = base;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header *hdr;

	hdr = base + page->data_offset + (head & (page->data_size - 1));
	return hdr->type;
}

static inline bool recorded(void *base, const char *name)
{
	return nr_records(base, name);
}

/* Is the last record of name newer than that of other? */
static inline bool is_newer(void *base, const char *name, const char *other)
{
	const char *got;
	unsigned int n;

	for (n = 0; (got = nth_record(base, n)); n++) {
		if (!strcmp(got, name))
			return true;
		if (!strcmp(got, other))
			return false;
	}
	return false;
}

/* Becomes an ordinary user, for good. */
static inline int become(uid_t uid)
{
	return setgroups(0, NULL) || setgid(uid) || setuid(uid) ? -1 : 0;
}

/* Runs fn in a child as an ordinary user; returns its exit status. */
static inline int as_user(uid_t uid, int (*fn)(int64_t id, int fd), int64_t id, int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (become(uid))
			_exit(99);
		_exit(fn(id, fd));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static inline int as_nobody(int (*fn)(int64_t id, int fd), int64_t id, int fd)
{
	return as_user(NOBODY, fn, id, fd);
}

/* Exit status of a child: 0 if it was refused with err. */
static inline int refused(int err, int64_t ret)
{
	if (ret != -1)
		return 97;
	return errno == err ? 0 : errno;
}

static inline long read_long(const char *path)
{
	FILE *f = fopen(path, "r");
	long val = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%ld", &val) != 1)
		val = -1;
	fclose(f);
	return val;
}

static inline int write_long(const char *path, long val)
{
	FILE *f = fopen(path, "w");
	int err;

	if (!f)
		return -1;
	fprintf(f, "%ld\n", val);
	err = fclose(f);
	return err;
}

/* First line of DEVICE/path, without the newline; "" if it cannot be read. */
static inline const char *sysfs(const char *fmt, const char *name)
{
	static __thread char line[256];
	char path[PATH_MAX] = DEVICE "/";
	FILE *f;

	snprintf(path + strlen(path), sizeof(path) - strlen(path), fmt, name);
	line[0] = '\0';
	f = fopen(path, "r");
	if (!f)
		return line;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(f);
	return line;
}

/* What a session's name says to perf's parser. */
static inline int64_t listed_id(const char *name)
{
	const char *term = sysfs("events/%s", name);

	return strncmp(term, "id=", 3) ? -1 : strtoll(term + 3, NULL, 16);
}

/* Claims the first events of a session, at most @most of each CPU and of tasks. */
static inline void claim_events(int64_t id, unsigned int most)
{
	struct perf_persistent_info inf;
	unsigned int index;
	bool last;
	int cpu, fd;

	for (cpu = -1; cpu < 2; cpu++) {
		last = false;
		for (index = 0; index < most && !last; index++) {
			fd = reopen(id, cpu, index);
			if (fd < 0)
				continue;
			last = !info(fd, &inf) && index + 1 >= inf.nr_events;
			claim(fd);
			close(fd);
		}
	}
}

/*
 * Sessions that no process has open any more are still listed. Claims the events of all
 * that are wanted; without such a function, of all.
 */
static inline void claim_all(bool (*wanted)(const char *name), unsigned int most)
{
	DIR *dir = opendir(DEVICE "/sessions");
	struct dirent *d;

	if (!dir)
		return;
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.' || (wanted && !wanted(d->d_name)))
			continue;
		claim_events(strtoll(sysfs("sessions/%s/id", d->d_name), NULL, 10), most);
	}
	closedir(dir);
}

static inline int nr_entries(const char *path)
{
	struct dirent *d;
	DIR *dir = opendir(path);
	int nr = 0;

	if (!dir)
		return -1;
	while ((d = readdir(dir)))
		nr += d->d_name[0] != '.';
	closedir(dir);
	return nr;
}

/* Pages of this process that are charged to pinned_vm. */
static inline long vm_pin(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kb = -1;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmPin: %ld", &kb) == 1)
			break;
	}
	fclose(f);
	return kb / (long)(PAGE >> 10);
}

static inline long mlock_limit(void)
{
	return read_long(MLOCK_KB) / (long)(PAGE >> 10) *
	       sysconf(_SC_NPROCESSORS_ONLN);
}

/* A buffer's pages, of which the user's limit does not hold all. */
static inline long pages_beyond_limit(void)
{
	long limit = mlock_limit(), pages = 1;

	while (pages <= limit)
		pages *= 2;
	return pages;
}

/*
 * Pages that are charged to the user's perf_mlock, up to the limit. Nothing says so,
 * but what a mapping larger than the limit leaves to pinned_vm does. The caller may
 * lock memory.
 */
static inline long perf_mlock(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.exclude_kernel	= 1,
	};
	long before = vm_pin(), limit = mlock_limit(), over = -1;
	long pages = pages_beyond_limit();
	void *base;
	int fd;

	fd = event_open(&attr, 0, -1, -1, 0);
	base = map(fd, pages * PAGE, PROT_READ);
	if (base != MAP_FAILED) {
		over = vm_pin() - before;
		munmap(base, (pages + 1) * PAGE);
	}
	close(fd);
	return over < 0 ? -1 : over + limit - (pages + 1);
}

/* What must be the same after a test as before it. */
struct balance {
	int	sessions;
	int	events;
	long	pinned;
	long	mlocked;
};

static inline struct balance take_balance(void)
{
	return (struct balance) {
		.sessions	= nr_entries(DEVICE "/sessions"),
		.events		= nr_entries(DEVICE "/events"),
		.pinned		= vm_pin(),
		.mlocked	= perf_mlock(),
	};
}

/* Whatever a test did: nothing is listed, and all memory is returned to the byte. */
#define EXPECT_BALANCE() do {					\
	struct balance after = take_balance();			\
								\
	EXPECT_EQ(self->before.sessions, after.sessions);		\
	EXPECT_EQ(self->before.events, after.events);		\
	EXPECT_EQ(self->before.pinned, after.pinned);		\
	EXPECT_EQ(self->before.mlocked, after.mlocked);		\
} while (0)

/* The sysctls that a test may change. */
struct limits {
	long	paranoid;
	long	max_sessions;
	long	mlock_kb;
};

static inline struct limits take_limits(void)
{
	return (struct limits) {
		.paranoid	= read_long(PARANOID),
		.max_sessions	= read_long(MAX_SESSIONS),
		.mlock_kb	= read_long(MLOCK_KB),
	};
}

static inline void restore_limits(const struct limits *limits)
{
	write_long(PARANOID, limits->paranoid);
	write_long(MAX_SESSIONS, limits->max_sessions);
	write_long(MLOCK_KB, limits->mlock_kb);
}

static inline uint32_t state_of(int fd)
{
	struct perf_persistent_info inf;

	return info(fd, &inf) ? UINT32_MAX : inf.state;
}

/* Is there such a record in the buffer? Maps and unmaps it. */
static inline bool holds_record(int fd, size_t data_size, const char *name)
{
	void *base = map(fd, data_size, PROT_READ);
	bool holds;

	if (base == MAP_FAILED)
		return false;
	holds = recorded(base, name);
	munmap(base, data_size + PAGE);
	return holds;
}

/* The id of what a child made before a signal killed it. */
static inline int64_t made_by_killed(int64_t (*make)(void *arg), void *arg, int sig)
{
	int64_t id = -1;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return -1;
	}
	if (!pid) {
		id = make(arg);
		if (write(fds[1], &id, sizeof(id)) != sizeof(id))
			_exit(1);
		pause();
		_exit(0);
	}
	/* Or a child that dies early would be waited for. */
	close(fds[1]);
	if (read(fds[0], &id, sizeof(id)) != sizeof(id))
		id = -1;
	kill(pid, sig);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	return id;
}

#define EXPECT_REFUSED(err, expr) do {				\
	errno = 0;						\
	EXPECT_EQ(-1, expr);					\
	EXPECT_EQ(err, errno) TH_LOG("%s", #expr);		\
} while (0)

static inline bool have_persistent(void)
{
	return read_long(DEVICE "/type") == PERF_TYPE_PERSISTENT;
}

/* Why nothing can be tested here, or NULL */
static inline const char *what_is_missing(void)
{
	if (geteuid())
		return "must be root";
	return have_persistent() ? NULL : "no CONFIG_PERF_PERSISTENT";
}

/* How the setup of a fixture begins. */
#define SKIP_WITHOUT_PERSISTENT(statement) do {			\
	const char *missing = what_is_missing();		\
								\
	if (missing)						\
		SKIP(statement, "%s", missing);			\
} while (0)

#define DEFAULT_ROUNDS	500

/* Of a race, each. */
static inline unsigned int rounds(void)
{
	const char *nr = getenv("PERSISTENT_ROUNDS");

	return nr ? atoi(nr) : DEFAULT_ROUNDS;
}

/* What a race of slow rounds may take, with the rounds of make torture. */
#define SLOW_RACE_TIMEOUT	14400

/* Of a race of slow rounds: one of @one_of, but all if more than the default are asked for. */
static inline unsigned int slow_rounds(unsigned int one_of)
{
	return rounds() > DEFAULT_ROUNDS ? rounds() : rounds() / one_of ?: 1;
}

#endif /* _PERSISTENT_UTIL_H */
