// SPDX-License-Identifier: GPL-2.0
/*
 * What persistent events cost, in nanoseconds of a guest whose time counts instructions:
 * lines "CASE NUMBER". Run as root.
 *
 *	unclaim open claim	the system calls, on an event with a mapped buffer
 *	user persistent		close(-1), recorded into a backward buffer of one's own, and
 *				into that of a session whose creator has closed its file
 *	reserved		the same, into that of a session in the region "box"
 *	list end		a session of 5,000 events, through its file: for each event
 *	one_by_one		the same: opening, describing and claiming each event
 *	switch			a context switch, without events
 *	of_cgroup gone		the same with a session of a cgroup in which no task is, and
 *				after the cgroup was removed
 *	bytes			memory of a session with one event, without its buffer
 *
 * usage: persistent-cost [memory]	boot with reserve_mem=8M:4096:box perf_persistent=@box
 *	  persistent-cost make NAME NR		make a session of NR events
 *	  persistent-cost time COMMAND...	run it without output; prints the number
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <linux/perf_persistent.h>

#define ROUNDS		200
#define CALLS		20000
#define SESSIONS	1000
#define EVENTS		5000
#define SWITCHES	5000
#define DATA_SIZE	(512 << 10)
#define CGROUPS		"/sys/fs/cgroup/"
#define GROUP		CGROUPS "persistent_cost"

static long page_size;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void *check(void *base, const char *what)
{
	if (base == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return base;
}

static long must(long ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		exit(1);
	}
	return ret;
}

static int event_open(struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	return must(syscall(__NR_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC),
		    "perf_event_open");
}

static int open_dummy(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.write_backward	= 1,
	};

	return event_open(&attr);
}

static int reopen(uint64_t id)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_PERSISTENT, .config = id };

	return event_open(&attr);
}

static void system_calls(void)
{
	uint64_t unclaim = 0, open = 0, claim = 0, t[4];
	int i, fd, id, again;
	void *base;

	for (i = -5; i < ROUNDS; i++) {
		fd = open_dummy();
		base = check(mmap(NULL, 2 * page_size, PROT_READ, MAP_SHARED, fd, 0), "mmap");
		t[0] = now();
		id = ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL);
		t[1] = now();
		again = reopen(must(id, "UNCLAIM"));
		t[2] = now();
		must(ioctl(again, PERF_EVENT_IOC_CLAIM), "CLAIM");
		t[3] = now();
		munmap(base, 2 * page_size);
		close(again);
		close(fd);
		/* The first ones find cold caches. */
		if (i < 0)
			continue;
		unclaim += t[1] - t[0];
		open += t[2] - t[1];
		claim += t[3] - t[2];
	}
	printf("unclaim %.1f\nopen %.1f\nclaim %.1f\n", (double)unclaim / ROUNDS,
	       (double)open / ROUNDS, (double)claim / ROUNDS);
}

static int tracepoint_id(void)
{
	FILE *f = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");
	int id;

	if (!f || fscanf(f, "%d", &id) != 1) {
		fprintf(stderr, "no tracepoint raw_syscalls:sys_enter\n");
		exit(1);
	}
	fclose(f);
	return id;
}

static double cost_of_calls(void)
{
	uint64_t start = now();
	int i;

	for (i = 0; i < CALLS; i++)
		close(-1);
	return (double)(now() - start) / CALLS;
}

/* Of several loops the one with the fewest interrupts in it; the first ones warm up. */
static double cost_of_call(void)
{
	double least = cost_of_calls(), cost;
	int i;

	for (i = 0; i < 10; i++) {
		cost = cost_of_calls();
		if (cost < least)
			least = cost;
	}
	return least;
}

/* close(-1), recorded into the buffer of a session whose creator has closed its file */
static void session_of(struct perf_event_attr *attr, struct perf_persistent_arg *arg,
		       const char *name)
{
	int fd = event_open(attr);

	must(ioctl(fd, PERF_EVENT_IOC_UNCLAIM, arg), "UNCLAIM");
	close(fd);
	printf("%s %.3f\n", name, cost_of_call());
	fd = reopen(arg->id);
	must(ioctl(fd, PERF_EVENT_IOC_CLAIM), "CLAIM");
	close(fd);
}

static void sample(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_TRACEPOINT,
		.config		= tracepoint_id(),
		.sample_period	= 1,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_TID |
				  PERF_SAMPLE_RAW,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};
	struct perf_persistent_arg memory = { .size = sizeof(memory), .data_size = DATA_SIZE };
	struct perf_persistent_arg region = {
		.size		= sizeof(region),
		.data_size	= DATA_SIZE,
		.label		= "box",
	};
	size_t size = DATA_SIZE + page_size;
	int fd = event_open(&attr);
	void *base;

	base = check(mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0), "mmap");
	printf("user %.3f\n", cost_of_call());
	munmap(base, size);
	close(fd);
	session_of(&attr, &memory, "persistent");
	session_of(&attr, &region, "reserved");
}

/* Its events share a buffer. */
static int make_large_session(const char *name, int nr)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_DUMMY,
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME,
		.sample_id_all	= 1,
		.write_backward	= 1,
	};
	struct perf_persistent_arg arg = {
		.size	= sizeof(arg),
		.flags	= PERF_PERSISTENT_PARTIAL,
	};
	struct rlimit limit = { EVENTS + 100, EVENTS + 100 };
	static int fds[EVENTS];
	void *base = NULL;
	int i;

	snprintf(arg.name, sizeof(arg.name), "%s", name);
	must(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	for (i = 0; i < nr; i++) {
		fds[i] = event_open(&attr);
		if (i)
			must(ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0]), "SET_OUTPUT");
		else
			base = check(mmap(NULL, 2 * page_size, PROT_READ, MAP_SHARED, fds[0], 0),
				     "mmap");
	}
	for (i = 0; i < nr; i++)
		must(ioctl(fds[i], PERF_EVENT_IOC_UNCLAIM, &arg), "UNCLAIM");
	arg.flags = 0;
	must(ioctl(fds[0], PERF_EVENT_IOC_UNCLAIM, &arg), "UNCLAIM");
	munmap(base, 2 * page_size);
	for (i = 0; i < nr; i++)
		close(fds[i]);
	return arg.id;
}

static void large_session(void)
{
	static struct perf_persistent_entry entries[EVENTS];
	struct perf_persistent_list list = {
		.size		= sizeof(list),
		.entry_size	= sizeof(*entries),
		.nr		= EVENTS,
		.entries	= (uintptr_t)entries,
	};
	struct perf_event_attr attr = { .type = PERF_TYPE_PERSISTENT };
	struct perf_persistent_info info = { .size = sizeof(info) };
	uint64_t t[3];
	int fd, i;

	attr.config = make_large_session("", EVENTS);
	attr.config1 = PERF_PERSISTENT_SESSION;
	t[0] = now();
	attr.size = sizeof(attr);
	fd = must(syscall(__NR_perf_event_open, &attr, -1, -1, -1, PERF_FLAG_FD_CLOEXEC),
		  "perf_event_open of a session");
	must(ioctl(fd, PERF_EVENT_IOC_SESSION_LIST, &list), "SESSION_LIST");
	t[1] = now();
	must(ioctl(fd, PERF_EVENT_IOC_SESSION_END), "SESSION_END");
	t[2] = now();
	close(fd);
	printf("list %.1f\nend %.1f\n", (double)(t[1] - t[0]) / EVENTS,
	       (double)(t[2] - t[1]) / EVENTS);

	attr.config = make_large_session("", EVENTS);
	t[0] = now();
	for (i = 0; i < EVENTS; i++) {
		attr.config1 = i;
		fd = event_open(&attr);
		must(ioctl(fd, PERF_EVENT_IOC_PERSISTENT_INFO, &info), "INFO");
		must(ioctl(fd, PERF_EVENT_IOC_CLAIM), "CLAIM");
		close(fd);
	}
	printf("one_by_one %.1f\n", (double)(now() - t[0]) / EVENTS);
}

/* Two processes on one CPU send a byte to and fro; each way is a switch. */
static double cost_of_switch(void)
{
	double cost, least = 0;
	int to[2], from[2], i, round;
	uint64_t start;
	char c = 0;
	pid_t pid;

	must(pipe(to), "pipe");
	must(pipe(from), "pipe");
	pid = must(fork(), "fork");
	if (!pid) {
		close(to[1]);
		while (read(to[0], &c, 1) == 1)
			must(write(from[1], &c, 1), "write");
		_exit(0);
	}
	/* The one with the fewest interrupts in it */
	for (round = 0; round < 10; round++) {
		start = now();
		for (i = 0; i < SWITCHES / 2; i++) {
			must(write(to[1], &c, 1), "write");
			must(read(from[0], &c, 1), "read");
		}
		cost = (double)(now() - start) / SWITCHES;
		if (!round || cost < least)
			least = cost;
	}
	close(to[1]);
	waitpid(pid, NULL, 0);
	close(to[0]);
	close(from[0]);
	close(from[1]);
	return least;
}

static void switches(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.size		= sizeof(attr),
		.sample_period	= 1000000,
		.write_backward	= 1,
	};
	int dir, fd, id;

	printf("switch %.3f\n", cost_of_switch());

	/* Until a controller was given to cgroups once, they do not have perf's either. */
	fd = must(open(CGROUPS "cgroup.subtree_control", O_WRONLY), "cgroup.subtree_control");
	must(write(fd, "+memory", 7), "cgroup.subtree_control");
	close(fd);
	must(mkdir(GROUP, 0755), GROUP);
	dir = must(open(GROUP, O_RDONLY | O_CLOEXEC), GROUP);
	fd = must(syscall(__NR_perf_event_open, &attr, dir, 0, -1, PERF_FLAG_PID_CGROUP),
		  "perf_event_open of a cgroup");
	close(dir);
	id = must(ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL), "UNCLAIM");
	close(fd);
	printf("of_cgroup %.3f\n", cost_of_switch());

	must(rmdir(GROUP), GROUP);
	/* perf_sched_work switches the calls of perf off after a second. */
	sleep(3);
	printf("gone %.3f\n", cost_of_switch());

	fd = reopen(id);
	must(ioctl(fd, PERF_EVENT_IOC_CLAIM), "CLAIM");
	close(fd);
}

static long mem_free(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemFree: %ld", &kb) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kb << 10;
}

static void memory(void)
{
	static int ids[SESSIONS];
	long before, after;
	int i, fd;

	before = mem_free();
	for (i = 0; i < SESSIONS; i++) {
		void *base;

		fd = open_dummy();
		base = check(mmap(NULL, 2 * page_size, PROT_READ, MAP_SHARED, fd, 0), "mmap");
		ids[i] = must(ioctl(fd, PERF_EVENT_IOC_UNCLAIM, NULL), "UNCLAIM");
		munmap(base, 2 * page_size);
		close(fd);
	}
	after = mem_free();
	for (i = 0; i < SESSIONS; i++) {
		fd = reopen(ids[i]);
		must(ioctl(fd, PERF_EVENT_IOC_CLAIM), "CLAIM");
		close(fd);
	}
	/* The header page and the one for data are the buffer. */
	printf("%s %ld\n", "bytes", (before - after) / SESSIONS - 2 * page_size);
}

/* The command's own time, to the microsecond: it waits for files of the host. */
static int time_of(char *argv[])
{
	struct rusage usage;
	int status;
	pid_t pid = must(fork(), "fork");

	if (!pid) {
		dup2(must(open("/dev/null", O_WRONLY), "/dev/null"), STDOUT_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	must(wait4(pid, &status, 0, &usage), "wait4");
	printf("%lld\n", 1000000000ll * (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       1000ll * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
	return status ? 1 : 0;
}

int main(int argc, char *argv[])
{
	page_size = sysconf(_SC_PAGESIZE);
	if (argc > 2 && !strcmp(argv[1], "time"))
		return time_of(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "make")) {
		int nr = atoi(argv[3]);

		make_large_session(argv[2], nr > EVENTS ? EVENTS : nr);
		return 0;
	}
	system_calls();
	sample();
	large_session();
	sleep(3);
	switches();
	if (argc > 1 && !strcmp(argv[1], "memory"))
		memory();
	return 0;
}
