// SPDX-License-Identifier: GPL-2.0
/*
 * Cause an incident, for those who look for its cause in a recording.
 *
 * usage: incident NAME SECONDS [TRUTH]
 *
 * NAME is one of those at the end of this file, or 'calm'. Names of threads and CPUs are
 * drawn anew in each run, and threads that harm nobody run beside. TRUTH is written before
 * the incident begins; it has these lines, as far as they apply:
 *
 *	kind KIND		as perf verdict calls it
 *	culprit COMM		who is to blame
 *	victim COMM		who suffers; may be there more than once
 *	chain COMM COMM COMM	from the victim to the culprit
 *	device MAJOR:MINOR	the block device that is slow
 *	limit NAME		what it is a limit of that held the victim back
 *	cpu NR			which CPU interrupts had
 *	source NAME		what interrupted it
 *	memory NAME		whose memory was too little, cgroup or machine
 *
 * A time in which a thread works is CPU time, so that it does not depend on how busy the
 * machine is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_MSEC	1000000L
#define WORKERS		4
#define LARGE_WRITE	(64L << 20)
#define ANY_CPU		(-1)
#define CGROUPS		"/sys/fs/cgroup"
#define CONFIGFS	"/sys/kernel/config"
#define BLOCK		4096
#define READ_AHEAD	(128L << 10)
#define DISK_SIZE	(64L << 20)

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE	6
#endif

static FILE *truth;
static atomic_bool ended;
static int nr_cpus;
static long late_us;

/* ---- what the threads do */

static long cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void work_us(long us)
{
	long end = cpu_time() + us * 1000;
	int i;

	/* Most of it in this function: what it runs is told by its samples. */
	do {
		for (i = 0; i < 2000; i++)
			asm volatile("");
	} while (cpu_time() < end);
}

static void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static const char *const words[] = {
	"api", "batch", "cache", "cart", "feed", "index", "ledger", "mail", "order", "proxy",
	"queue", "render", "search", "store", "sync", "vault",
};

/* A name that no other thread of this run has; it is not freed. */
static const char *draw_name(void)
{
	static unsigned int used;
	unsigned int n;
	char *name;

	do {
		n = random() % (sizeof(words) / sizeof(*words));
	} while (used & 1U << n);
	used |= 1U << n;
	if (asprintf(&name, "%s%c%c", words[n], 'a' + (int)(random() % 26),
		     'a' + (int)(random() % 26)) < 0)
		die("asprintf");
	return name;
}

/* What a thread does, as whom, and where */
struct actor {
	const char	*name;
	void		(*run)(const struct actor *a);
	int		fifo;		/* priority, 0: none */
	int		nice;
	void		(*work)(void);	/* by a pointer, for a function of its own */
	int		cpu;		/* set by start_on() */
};

static void *begin(void *arg)
{
	const struct actor *a = arg;
	struct sched_param param = { .sched_priority = a->fifo };
	cpu_set_t set;

	prctl(PR_SET_NAME, a->name);
	if (a->cpu != ANY_CPU) {
		CPU_ZERO(&set);
		CPU_SET(a->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			die("sched_setaffinity");
	}
	if (a->fifo && sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
	if (a->nice && setpriority(PRIO_PROCESS, 0, a->nice))
		die("setpriority");
	a->run(a);
	return NULL;
}

/* Starts @nr threads that do the same, on one CPU. */
static void start_on(int cpu, int nr, struct actor actor)
{
	struct actor *a = malloc(sizeof(*a));
	pthread_t thread;

	if (!a)
		die("malloc");
	*a = actor;
	a->cpu = cpu;
	while (nr--) {
		errno = pthread_create(&thread, NULL, begin, a);
		if (errno)
			die("pthread_create");
		pthread_detach(thread);
	}
}

static void start(int nr, const char *name, void (*run)(const struct actor *a))
{
	start_on(ANY_CPU, nr, (struct actor){ name, run });
}

/* The first lines of the truth, where there is a culprit and a victim */
static void tell(const char *kind, const char *culprit, const char *victim)
{
	fprintf(truth, "kind %s\nculprit %s\nvictim %s\n", kind, culprit, victim);
}

static void tell_chain(const char *first, const char *second, const char *third)
{
	fprintf(truth, "chain %s %s %s\n", first, second, third);
}

/* ---- those who harm nobody */

static pthread_mutex_t harmless = PTHREAD_MUTEX_INITIALIZER;
static int harmless_pipe[2][2];
static const char *innocents;

static void run_innocent(const struct actor *a)
{
	while (!ended) {
		pthread_mutex_lock(&harmless);
		work_us(100);
		pthread_mutex_unlock(&harmless);
		work_us(500 + random() % 2000);
		sleep_us(3000 + random() % 9000);
	}
}

static void run_asker(const struct actor *a)
{
	char c = 0;

	while (!ended) {
		if (write(harmless_pipe[0][1], &c, 1) != 1 || read(harmless_pipe[1][0], &c, 1) != 1)
			die("pipe");
		sleep_us(5000 + random() % 5000);
	}
}

static void run_answerer(const struct actor *a)
{
	char c;

	while (read(harmless_pipe[0][0], &c, 1) == 1) {
		work_us(300);
		if (write(harmless_pipe[1][1], &c, 1) != 1)
			die("pipe");
	}
}

static void be_busy(void)
{
	if (pipe(harmless_pipe[0]) || pipe(harmless_pipe[1]))
		die("pipe");
	innocents = draw_name();
	start(3, innocents, run_innocent);
	start(1, draw_name(), run_asker);
	start(1, draw_name(), run_answerer);
}

/* ---- the incidents */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock2 = PTHREAD_MUTEX_INITIALIZER;
static int request[2], reply[2];
static char path[32] = "/tmp/incident-XXXXXX";
static pthread_barrier_t barrier;

static void run_worker(const struct actor *a)
{
	while (!ended) {
		pthread_mutex_lock(&lock);
		work_us(200);
		pthread_mutex_unlock(&lock);
		work_us(500);
		sleep_us(2000 + random() % 3000);
	}
}

static void run_holder(const struct actor *a)
{
	while (!ended) {
		pthread_mutex_lock(&lock);
		work_us(120000);
		pthread_mutex_unlock(&lock);
		sleep_us(30000);
	}
}

static void let_wait(void (*waits)(const struct actor *a), void (*holds)(const struct actor *a))
{
	const char *culprit = draw_name(), *victim = draw_name();

	tell("wait", culprit, victim);
	start(WORKERS, victim, waits);
	start(1, culprit, holds);
}

/* Threads wait for the lock of one that works while it has it. */
static void convoy(void)
{
	let_wait(run_worker, run_holder);
}

static void run_middle(const struct actor *a)
{
	char c = 0;

	while (!ended) {
		pthread_mutex_lock(&lock);
		if (write(request[1], &c, 1) != 1 || read(reply[0], &c, 1) != 1)
			die("pipe");
		pthread_mutex_unlock(&lock);
		sleep_us(20000);
	}
}

static void run_last(const struct actor *a)
{
	char c;

	while (read(request[0], &c, 1) == 1) {
		work_us(150000);
		if (write(reply[1], &c, 1) != 1)
			die("pipe");
	}
}

/* A waits for a lock that B has, which waits for an answer of C, which works. */
static void chain(void)
{
	const char *a = draw_name(), *b = draw_name(), *c = draw_name();

	if (pipe(request) || pipe(reply))
		die("pipe");
	tell("wait", c, a);
	tell_chain(a, b, c);
	start(1, c, run_last);
	start(1, b, run_middle);
	start(1, a, run_worker);
}

static void run_low(const struct actor *a)
{
	while (!ended) {
		pthread_mutex_lock(&lock);
		work_us(4000);
		pthread_mutex_unlock(&lock);
		sleep_us(1000);
	}
}

static void run_runaway(const struct actor *a)
{
	while (!ended) {
		work_us(150000);
		sleep_us(60000);
	}
}

/* It needs its CPU for little: nobody else waits for it. */
static void run_high(const struct actor *a)
{
	while (!ended) {
		pthread_mutex_lock(&lock);
		work_us(100);
		pthread_mutex_unlock(&lock);
		sleep_us(2000 + random() % 3000);
	}
}

/*
 * A thread of high priority waits for the lock of one of low priority, which one between
 * them keeps from the CPU.
 */
static void inversion(void)
{
	const char *low = draw_name(), *middle = draw_name(), *high = draw_name();
	int cpu = random() % nr_cpus;

	tell("cpu", middle, high);
	tell_chain(high, low, middle);
	start_on(cpu, 1, (struct actor){ low, run_low });
	start_on((cpu + 1) % nr_cpus, 1, (struct actor){ high, run_high, .fifo = 20 });
	start_on(cpu, 1, (struct actor){ middle, run_runaway, .fifo = 10 });
}

static void run_pinned(const struct actor *a)
{
	while (!ended) {
		work_us(1000);
		sleep_us(4000);
	}
}

/* A thread of high priority takes a CPU that others need. */
static void runaway(void)
{
	const char *culprit = draw_name(), *victim = draw_name();
	int cpu = random() % nr_cpus;

	tell("cpu", culprit, victim);
	start_on(cpu, 3, (struct actor){ victim, run_pinned });
	start_on(cpu, 1, (struct actor){ culprit, run_runaway, .fifo = 5 });
}

/* What the device of the module perf_stall of these tests is told, see there */
static const char *stall;

static void run_interrupted(const struct actor *a)
{
	int fd = open("/dev/perf_stall", O_WRONLY);

	while (!ended) {
		if (fd < 0 || write(fd, stall, strlen(stall)) < 0)
			die("/dev/perf_stall");
		sleep_us(30000);
	}
}

static void interrupt(const char *victim, int cpu, const char *what)
{
	stall = what;
	start_on(cpu, 3, (struct actor){ victim, run_pinned });
	start_on(cpu, 1, (struct actor){ draw_name(), run_interrupted });
}

static void be_interrupted(const char *what, const char *source)
{
	const char *victim = draw_name();
	int cpu = random() % nr_cpus;

	fprintf(truth, "kind interrupt\nvictim %s\ncpu %d\nsource %s\n", victim, cpu, source);
	interrupt(victim, cpu, what);
}

/* A CPU that threads need runs a softirq for long, again and again. */
static void long_softirq(void)
{
	be_interrupted("softirq 30", "TIMER");
}

/* The same for the handler of an interrupt */
static void long_handler(void)
{
	be_interrupted("handler 30", "perf_stall");
}

/* Softirqs, each of them short, have most of a CPU. */
static void softirq_storm(void)
{
	be_interrupted("storm 200", "HRTIMER");
}

static void run_hog(const struct actor *a)
{
	while (!ended)
		work_us(100000);
}

/* Threads of another service have a large share of the CPU of this one. */
static void neighbour(void)
{
	const char *culprit = draw_name(), *victim = draw_name();
	int cpu = random() % nr_cpus;

	tell("cpu", culprit, victim);
	start_on(cpu, 2, (struct actor){ victim, run_hog });
	start_on(cpu, 3, (struct actor){ culprit, run_hog, .nice = -18 });
}

/* struct sched_attr: a new libc has it, and the kernel's header does not go with an old one. */
struct deadline_attr {
	uint32_t	size;
	uint32_t	policy;
	uint64_t	flags;
	int32_t		nice;
	uint32_t	priority;
	uint64_t	runtime;
	uint64_t	deadline;
	uint64_t	period;
};

static void get_deadline(void)
{
	struct deadline_attr attr = {
		.size		= sizeof(attr),
		.policy		= SCHED_DEADLINE,
		.runtime	= 100 * NSEC_PER_MSEC,
		.deadline	= 1000 * NSEC_PER_MSEC,
		.period		= 1000 * NSEC_PER_MSEC,
	};

	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		die("sched_setattr");
}

static void run_deadline(const struct actor *a)
{
	get_deadline();
	run_hog(a);
}

/* It ends its turn in time. */
static void run_yielder(const struct actor *a)
{
	get_deadline();
	while (!ended) {
		work_us(5000);
		sched_yield();
	}
}

/* A thread uses up the CPU time that its policy gives to it. */
static void quota(void)
{
	const char *name = draw_name();

	tell("quota", name, name);
	fprintf(truth, "limit runtime\n");
	start(1, name, run_deadline);
}

/* A limit of a cgroup: its controller, its file, and what tells how often it was reached */
struct limit {
	const char	*controller;
	const char	*file;
	const char	*stat;
	const char	*format;
};

static const struct limit cpu_limit = { "+cpu", "cpu.max", "cpu.stat", "nr_throttled %ld" };
static const struct limit memory_limit = { "+memory", "memory.max", "memory.events", "max %ld" };
static const struct limit high_limit = { "+memory", "memory.high", "memory.events", "high %ld" };

/* A cgroup with a limit, its only process, and whether the limit is to hold that back */
static char cgroup[64];
static const struct limit *limit;
static pid_t member;
static bool reaches_limit;

static void write_file(const char *dir, const char *name, const char *text)
{
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	fd = open(file, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

static void start_in_cgroup(const struct limit *of, const char *value, struct actor actor)
{
	char pid[16];

	limit = of;
	write_file(CGROUPS, "cgroup.subtree_control", limit->controller);
	snprintf(cgroup, sizeof(cgroup), CGROUPS "/incident-%d", getpid());
	if (mkdir(cgroup, 0755))
		die(cgroup);
	write_file(cgroup, limit->file, value);
	member = fork();
	if (member < 0)
		die("fork");
	if (!member) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		actor.cpu = ANY_CPU;
		begin(&actor);
		_exit(0);
	}
	snprintf(pid, sizeof(pid), "%d", member);
	write_file(cgroup, "cgroup.procs", pid);
}

/* How often the limit held the cgroup back, as it tells */
static long times_held(void)
{
	char file[128], line[128];
	long nr = -1;
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s", cgroup, limit->stat);
	f = fopen(file, "r");
	if (!f)
		die(file);
	while (nr < 0 && fgets(line, sizeof(line), f))
		sscanf(line, limit->format, &nr);
	fclose(f);
	return nr;
}

/* The cgroup is gone afterwards. Returns whether it was what it is to be. */
static bool end_cgroup(void)
{
	bool held;
	long nr;

	if (!member)
		return true;
	nr = times_held();
	held = nr > 0;
	kill(member, SIGKILL);
	waitpid(member, NULL, 0);
	if (rmdir(cgroup))
		perror(cgroup);
	if (nr >= 0 && reaches_limit == held)
		return true;
	fprintf(stderr, "%s: %s was reached %ld times\n", cgroup, limit->file, nr);
	return false;
}

/* A task uses up the CPU time that its cgroup may have. */
static void cpu_max(void)
{
	const char *name = draw_name();

	tell("quota", name, name);
	fprintf(truth, "limit cpu.max\n");
	reaches_limit = true;
	start_in_cgroup(&cpu_limit, "30000 100000", (struct actor){ name, run_hog });
}

/* It cannot reach a limit of two CPUs, and leaves its CPU idle at times. */
static void run_below_limit(const struct actor *a)
{
	while (!ended) {
		work_us(20000);
		sleep_us(5000);
	}
}

static int open_file(void)
{
	int fd = open(path, O_RDWR);

	if (fd < 0)
		die(path);
	return fd;
}

static void run_file_worker(const struct actor *a)
{
	int fd = open_file();

	while (!ended) {
		flock(fd, LOCK_EX);
		work_us(200);
		flock(fd, LOCK_UN);
		sleep_us(3000);
	}
}

static void run_file_holder(const struct actor *a)
{
	int fd = open_file();

	while (!ended) {
		flock(fd, LOCK_EX);
		sleep_us(150000);
		flock(fd, LOCK_UN);
		sleep_us(30000);
	}
}

static void make_file(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		die(path);
	close(fd);
}

/* Threads wait for the lock of a file, whose owner sleeps. */
static void file_lock(void)
{
	make_file();
	let_wait(run_file_worker, run_file_holder);
}

static void run_small_writer(const struct actor *a)
{
	int fd = open_file();

	while (!ended) {
		if (pwrite(fd, "", 1, 0) != 1)
			die(path);
		sleep_us(3000);
	}
}

static void run_large_writer(const struct actor *a)
{
	int fd = open_file();
	char *data = calloc(1, LARGE_WRITE);

	if (!data)
		die("calloc");
	while (!ended) {
		long end = cpu_time() + 100 * NSEC_PER_MSEC;

		while (cpu_time() < end) {
			if (pwrite(fd, data, LARGE_WRITE, 0) != LARGE_WRITE)
				die(path);
		}
		sleep_us(30000);
	}
}

/* Threads wait for the kernel's lock of a file that is written to. */
static void file_write(void)
{
	make_file();
	let_wait(run_small_writer, run_large_writer);
}

/* A block device whose requests take as long as is told: null_blk */
static char disk[64], disk_config[64];

static void run_reader(const struct actor *a)
{
	int fd = open(disk, O_RDONLY | O_DIRECT);
	void *data = aligned_alloc(BLOCK, BLOCK);

	if (fd < 0 || !data)
		die(disk);
	while (!ended) {
		if (pread(fd, data, BLOCK, random() % 4096 * BLOCK) != BLOCK)
			die(disk);
		work_us(500);
		sleep_us(2000 + random() % 3000);
	}
}

/*
 * @completion_nsec: how long each request takes, or NULL: no time
 * @depth: how many of them at a time, or NULL: as many as it likes
 */
static void make_disk(const char *completion_nsec, const char *depth)
{
	const char *name = draw_name();

	if (access(CONFIGFS "/nullb", F_OK) && mount("none", CONFIGFS, "configfs", 0, ""))
		die(CONFIGFS);
	snprintf(disk_config, sizeof(disk_config), CONFIGFS "/nullb/%s", name);
	snprintf(disk, sizeof(disk), "/dev/%s", name);
	if (mkdir(disk_config, 0755))
		die(disk_config);
	write_file(disk_config, "size", "64");
	write_file(disk_config, "irqmode", completion_nsec ? "2" : "0");
	if (completion_nsec)
		write_file(disk_config, "completion_nsec", completion_nsec);
	if (depth)
		write_file(disk_config, "hw_queue_depth", depth);
	write_file(disk_config, "power", "1");
}

static void end_disk(void)
{
	if (!disk_config[0])
		return;
	write_file(disk_config, "power", "0");
	if (rmdir(disk_config))
		perror(disk_config);
}

/* Threads read from a disk that takes long for each request. */
static void slow_disk(void)
{
	const char *victim = draw_name();
	struct stat st;

	make_disk("60000000", NULL);
	if (stat(disk, &st))
		die(disk);
	fprintf(truth, "kind disk\nvictim %s\ndevice %u:%u\n", victim, major(st.st_rdev),
		minor(st.st_rdev));
	start(3, victim, run_reader);
}

/* It lets the page cache have all of the disk, again and again, and reads a part of each piece. */
static void run_cached_reader(const struct actor *a)
{
	int fd = open(disk, O_RDONLY);
	char data[BLOCK];
	off_t at;

	while (!ended) {
		for (at = 0; at < DISK_SIZE; at += READ_AHEAD) {
			if (fd < 0 || posix_fadvise(fd, at, READ_AHEAD, POSIX_FADV_WILLNEED) ||
			    pread(fd, data, BLOCK, at) != BLOCK)
				die(disk);
		}
		sleep_us(1000);
	}
}

static void read_in_cgroup(const char *name, const char *memory_max)
{
	make_disk(NULL, NULL);
	start_in_cgroup(&memory_limit, memory_max, (struct actor){ name, run_cached_reader });
}

/* A task caches more of a disk than the memory that its cgroup may have. */
static void reclaim_in_cgroup(void)
{
	const char *name = draw_name();

	fprintf(truth, "kind reclaim\nvictim %s\nmemory cgroup\n", name);
	reaches_limit = true;
	read_in_cgroup(name, "8M");
}

static void run_grower(const struct actor *a)
{
	while (!ended) {
		char *data = malloc(READ_AHEAD);

		if (!data)
			die("malloc");
		memset(data, 1, READ_AHEAD);
		sleep_us(1000);
	}
}

/* A task has more memory than the limit above which the kernel lets it wait. */
static void memory_high(void)
{
	const char *name = draw_name();

	fprintf(truth, "kind throttled\nvictim %s\nlimit memory.high\n", name);
	reaches_limit = true;
	start_in_cgroup(&high_limit, "8M", (struct actor){ name, run_grower });
}

static void run_disk_writer(const struct actor *a)
{
	int fd = open(disk, O_WRONLY);
	char *data = calloc(1, READ_AHEAD);
	off_t at;

	while (!ended) {
		for (at = 0; at < DISK_SIZE && !ended; at += READ_AHEAD) {
			if (fd < 0 || !data || pwrite(fd, data, READ_AHEAD, at) != READ_AHEAD)
				die(disk);
		}
	}
}

/* Threads write to a disk that is slower, and may have few pages that are not written yet. */
static void dirty_pages(void)
{
	const char *name = draw_name();
	char bdi[sizeof(disk) + 32];

	make_disk("60000000", "1");
	snprintf(bdi, sizeof(bdi), "/sys/block/%s/bdi", strrchr(disk, '/') + 1);
	write_file(bdi, "strict_limit", "1");
	write_file(bdi, "max_ratio", "1");
	fprintf(truth, "kind throttled\nvictim %s\nlimit dirty\n", name);
	start(2, name, run_disk_writer);
}

static void run_first(const struct actor *a)
{
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&lock2);
}

static void run_second(const struct actor *a)
{
	pthread_mutex_lock(&lock2);
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&lock);
}

/* Two threads have one lock each, and want that of the other one. */
static void deadlock(void)
{
	const char *a = draw_name(), *b = draw_name();

	pthread_barrier_init(&barrier, NULL, 2);
	fprintf(truth, "kind stuck\nvictim %s\nvictim %s\n", a, b);
	start(1, a, run_first);
	start(1, b, run_second);
}

static void run_parent(const struct actor *a)
{
	int nr = 0;

	while (!ended) {
		pid_t pid = fork();

		if (!pid) {
			work_us(1500);
			_exit(0);
		}
		if (pid > 0 && ++nr < 2 * nr_cpus)
			continue;
		while (nr && waitpid(-1, NULL, nr < 2 * nr_cpus ? WNOHANG : 0) > 0)
			nr--;
	}
}

/* A task makes others all the time. */
static void make_tasks(void)
{
	const char *culprit = draw_name();

	fprintf(truth, "kind forks\nculprit %s\n", culprit);
	start(1, culprit, run_parent);
}

static void burn(void)
{
	int i;

	for (i = 0; i < 100000; i++)
		__asm__ volatile("" : "+r" (i));
}

static void run_late(const struct actor *a)
{
	sleep_us(late_us);
	while (!ended)
		a->work();
}

/*
 * After three fourths of the time, threads begin to run on a CPU that others use. Those who are
 * harmless wait for it, too; the time that tasks of one CPU wait for each other may differ more
 * when nothing happens.
 */
static void change(void)
{
	const char *culprit = draw_name(), *victim = draw_name();
	int cpu = random() % nr_cpus;

	fprintf(truth, "kind changed\nculprit %s\nvictim %s %s\n", culprit, victim, innocents);
	start_on(cpu, 3, (struct actor){ victim, run_pinned });
	start_on(cpu, 2, (struct actor){ culprit, run_late, .work = burn });
}

static void calm(void)
{
	start(WORKERS, draw_name(), run_worker);
}

static void calm_yield(void)
{
	calm();
	start(1, draw_name(), run_yielder);
}

/* They wait for the disk a large part of the time, but never long. */
static void calm_disk(void)
{
	calm();
	make_disk("3000000", NULL);
	start(3, draw_name(), run_reader);
}

/* Each softirq, and each handler, is short. */
static void calm_irqs(void)
{
	calm();
	interrupt(draw_name(), random() % nr_cpus, random() % 2 ? "softirq 1" : "handler 1");
}

/* All of the disk fits. */
static void calm_memory(void)
{
	calm();
	read_in_cgroup(draw_name(), "256M");
}

static void calm_cpu_max(void)
{
	calm();
	start_in_cgroup(&cpu_limit, "200000 100000",
			(struct actor){ draw_name(), run_below_limit });
}

static const struct {
	const char	*name;
	void		(*make)(void);
} incidents[] = {
	{ "convoy",	convoy },
	{ "chain",	chain },
	{ "inversion",	inversion },
	{ "runaway",	runaway },
	{ "neighbour",	neighbour },
	{ "quota",	quota },
	{ "cpu_max",	cpu_max },
	{ "slow_disk",	slow_disk },
	{ "reclaim",	reclaim_in_cgroup },
	{ "memory_high", memory_high },
	{ "dirty_pages", dirty_pages },
	{ "softirq",	long_softirq },
	{ "handler",	long_handler },
	{ "storm",	softirq_storm },
	{ "file_lock",	file_lock },
	{ "file_write",	file_write },
	{ "deadlock",	deadlock },
	{ "forks",	make_tasks },
	{ "change",	change },
	{ "calm",	calm },
	{ "calm_yield", calm_yield },
	{ "calm_cpu_max", calm_cpu_max },
	{ "calm_disk",	calm_disk },
	{ "calm_irqs",	calm_irqs },
	{ "calm_memory",	calm_memory },
};

int main(int argc, char **argv)
{
	unsigned int i, nr = sizeof(incidents) / sizeof(*incidents);
	struct timespec now;
	bool ok;

	for (i = 0; argc >= 3 && i < nr && strcmp(argv[1], incidents[i].name); i++)
		;
	if (argc < 3 || argc > 4 || i == nr || atof(argv[2]) <= 0) {
		fprintf(stderr, "usage: incident NAME SECONDS [TRUTH]\n\tNAME:");
		for (i = 0; i < nr; i++)
			fprintf(stderr, " %s", incidents[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	srandom(now.tv_nsec ^ now.tv_sec ^ getpid());
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	truth = fopen(argc > 3 ? argv[3] : "/dev/null", "w");
	if (!truth)
		die(argv[3]);
	late_us = atof(argv[2]) * 1e6 * 3 / 4;
	be_busy();
	incidents[i].make();
	fclose(truth);
	sleep_us(atof(argv[2]) * 1e6);
	ended = true;
	unlink(path);
	ok = end_cgroup();
	end_disk();
	/* Threads that wait for each other do not end. */
	_exit(!ok);
}
