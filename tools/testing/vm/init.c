// SPDX-License-Identifier: GPL-2.0
/*
 * init of the test machine: run one command over the host's root, and judge.
 *
 * Theory of operation
 * -------------------
 * The initramfs holds this program and two files: /job (KEY=VALUE lines) and
 * /cmd (the shell script to run), and copies of the host's files in /near. Two
 * virtio ports lead to the host, found by their names: "output" takes what the
 * command prints, "verdict" takes lines
 *
 *	splat TEXT	the kernel log had a warning, a BUG, a report of a checker
 *	exit N		the command ended with status N
 *	done		all is said; the machine is about to stop
 *
 * A verdict without "done" tells the host that the machine died. Nobody greps
 * the console: a command may print "WARNING:" as often as it likes, and only
 * records that the kernel itself wrote (facility 0 of /dev/kmsg) can be splats.
 *
 * The command gets a pipe for stdout and stderr, not the port itself: a port can
 * be opened once, and "> /dev/stderr" opens again. PID 1 copies the pipe, reads
 * /dev/kmsg, and reaps, in one poll loop.
 *
 * For another architecture than the host's there is no root to share. This program is
 * then /bin/bash and /bin/true as well, and /cmd has a program with its arguments in each
 * line.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* -DALONE: there is no root of the host's; the initramfs is all. */
#ifdef ALONE
# define ROOT		"/."
#else
# define ROOT		"/newroot"
#endif
#define P9_OPTIONS	"trans=virtio,version=9p2000.L,msize=524288"
#define MAX_SPLATS	1000
#define SKIPPED		4	/* of a kselftest */

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static int verdict = -1;
static int output = -1;
static int splats;

static void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof(line) - 1)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (verdict < 0 || write(verdict, line, len) != len)
		fprintf(stderr, "init: %.*s", len, line);
}

/* By a restart, at which QEMU ends (-no-reboot): to power off takes ACPI. */
static noreturn void stop_machine(void)
{
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static noreturn void give_up(const char *what)
{
	say("failed %s: %s", what, strerror(errno));
	stop_machine();
}

/* Open the virtio port of that name. */
static int open_port(const char *name)
{
	char path[512], text[64];
	struct dirent *d;
	int fd = -1;
	DIR *dir;

	dir = opendir("/sys/class/virtio-ports");
	if (!dir)
		return -1;
	while (fd < 0 && (d = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", d->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%63s", text) == 1 && !strcmp(text, name)) {
			snprintf(path, sizeof(path), "/dev/%s", d->d_name);
			fd = open(path, O_WRONLY | O_CLOEXEC);
		}
		fclose(f);
	}
	closedir(dir);
	return fd;
}

static const struct {
	const char *source, *target, *type, *options;
	unsigned long flags;
	bool needed;
} mounts[] = {
	{ "proc", ROOT "/proc", "proc", "", 0, true },
	{ "sysfs", ROOT "/sys", "sysfs", "", 0, true },
	{ "devtmpfs", ROOT "/dev", "devtmpfs", "", 0, true },
	{ "devpts", ROOT "/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666", 0, false },
	{ "shm", ROOT "/dev/shm", "tmpfs", "mode=1777", 0, false },
	{ "tmp", ROOT "/tmp", "tmpfs", "mode=1777,size=75%", 0, true },
	{ "run", ROOT "/run", "tmpfs", "mode=755", 0, true },
	{ "root", ROOT "/root", "tmpfs", "mode=700", 0, false },
	{ "tracefs", ROOT "/sys/kernel/tracing", "tracefs", "", 0, false },
	{ "debugfs", ROOT "/sys/kernel/debug", "debugfs", "", 0, false },
	{ "bpffs", ROOT "/sys/fs/bpf", "bpf", "mode=700", 0, false },
	{ "cgroup2", ROOT "/sys/fs/cgroup", "cgroup2", "", 0, false },
};

/*
 * The host's root, read-only. For a file of /near, which vm.sh may add to the initramfs, the
 * host is not asked: to open one by 9p takes several messages, and each symbolic link another
 * one, so that programs with many libraries start in half of the time.
 */
static void mount_root(void)
{
#ifndef ALONE
	const char *target = ROOT;
	bool near = !access("/near", F_OK);

	mkdir(ROOT, 0755);
	if (near) {
		target = "/far";
		mkdir(target, 0755);
	}
	if (mount("host", target, "9p", MS_RDONLY, P9_OPTIONS ",cache=loose"))
		give_up(target);
	if (near && mount("root", ROOT, "overlay", MS_RDONLY, "lowerdir=/near:/far"))
		give_up("the overlay");
#endif
}

static void mount_all(const char *out)
{
	char target[4096];

	mount_root();
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		if (strstr(mounts[i].target, "/dev/"))
			mkdir(mounts[i].target, 0755);
		/* The project may lie under /root: then keep that as it is. */
		if (!strcmp(mounts[i].source, "root") && out && !strncmp(out, "/root/", 6))
			continue;
		if (mount(mounts[i].source, mounts[i].target, mounts[i].type, mounts[i].flags,
			  mounts[i].options) && mounts[i].needed && errno != EBUSY)
			give_up(mounts[i].target);
	}
	/* What udev would make. */
	if (symlink("/proc/self/fd", ROOT "/dev/fd") ||
	    symlink("fd/0", ROOT "/dev/stdin") ||
	    symlink("fd/1", ROOT "/dev/stdout") ||
	    symlink("fd/2", ROOT "/dev/stderr"))
		give_up("/dev");
	if (!out)
		return;
	snprintf(target, sizeof(target), ROOT "%s", out);
	/* A project below /tmp is hidden by the tmpfs: show its output folder. */
	if (access(target, F_OK)) {
		for (char *p = target + 1; (p = strchr(p, '/')); p++) {
			*p = 0;
			mkdir(target, 0755);
			*p = '/';
		}
		mkdir(target, 0755);
	}
	if (mount("out", target, "9p", 0, P9_OPTIONS ",cache=none"))
		give_up(target);
}

/* /empty lists files of the host that are empty here. */
static void hide_files(void)
{
	char line[4096 - sizeof(ROOT)], target[4096];
	FILE *f = fopen("/empty", "r");

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		snprintf(target, sizeof(target), ROOT "%s", line);
		if (mount("/dev/null", target, NULL, MS_BIND, NULL))
			give_up(target);
	}
	if (f)
		fclose(f);
}

static void loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	ioctl(fd, SIOCSIFFLAGS, &ifr);
	close(fd);
}

/* What makes up for QEMU's translation on several threads: there only if it is needed. */
static void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (syscall(SYS_finit_module, fd, "", 0))
		give_up(path);
	close(fd);
}

/* What a kernel says when something is wrong; each at its message's start. */
static const char * const bad_starts[] = {
	"WARNING: ", "BUG: ", "kernel BUG at ", "Oops", "INFO: task ", "INFO: possible ",
	"INFO: trying to register ", "INFO: inconsistent ", "UBSAN: ", "ODEBUG: ",
	"general protection fault", "Internal error", "Kernel panic", "divide error",
	"refcount_t: ", "list_add corruption", "list_del corruption", "unchecked MSR",
	"stack segment", "invalid opcode", "int3: ", "double fault", "traps: PANIC",
	"kmemleak: Cannot allocate a kmemleak_object", "kmemleak: Cannot insert ",
	"kmemleak: Kernel memory leak detector disabled",
	"kernel tried to execute", "Unable to handle kernel", "page_owner", "Bad page",
	"Slab corruption", "Freed by task", "rcu: INFO: ", "watchdog: BUG: ",
	"unregister_netdevice: waiting", "sched: DL replenish", "DEBUG_LOCKS_WARN_ON",
	"leaked percpu", "trying to free", "vmap allocation",
};

static bool is_splat(const char *text)
{
	const char *in;

	/* Data races of the base are not ours to mend: test-kcsan.sh tells whose they are. */
	if (!strncmp(text, "BUG: KCSAN: ", 12))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(bad_starts); i++)
		if (!strncmp(text, bad_starts[i], strlen(bad_starts[i])))
			return true;
	/* kmemleak counts: "kmemleak: 3 new suspected memory leaks" */
	in = strstr(text, "new suspected memory leaks");
	return in && !strncmp(text, "kmemleak: ", 10);
}

/* One record of /dev/kmsg a read: "prefix,seq,time,flags;text\n continuation". */
static void read_kmsg(int fd)
{
	char buf[8192];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf) - 1)) != 0) {
		char *text, *end;
		long prefix;

		if (n < 0) {
			if (errno == EPIPE) {
				say("splat the kernel log overran its reader: records are missing");
				splats++;
				continue;
			}
			return;
		}
		buf[n] = 0;
		prefix = strtol(buf, NULL, 10);
		text = strchr(buf, ';');
		if (!text || prefix >> 3)
			continue;
		end = strchr(++text, '\n');
		if (end)
			*end = 0;
		if (is_splat(text) && splats++ < MAX_SPLATS)
			say("splat %s", text);
	}
}

/* Have the kernel look for leaked memory; what it finds goes to the console. */
static void scan_leaks(void)
{
	static const char path[] = ROOT "/sys/kernel/debug/kmemleak";
	bool found = false;
	char line[512];
	FILE *f;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/*
	 * An object is a leak once it is older than 5 s and has been unreferenced
	 * in two scans: a pointer may have lived in a register at the first.
	 */
	sleep(6);
	for (int i = 0; i < 2; i++)
		if (write(fd, "scan", 4) != 4)
			say("splat kmemleak cannot scan: %s", strerror(errno));
	close(fd);
	f = fopen(path, "r");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (!found) {
			say("splat kmemleak: %.200s", line);
			splats++;
		}
		found = true;
		fprintf(stderr, "kmemleak: %s", line);
	}
	fclose(f);
}

static pid_t start(char **env, int to)
{
	char *const argv[] = { "bash", "/run/vm/cmd", NULL };
	pid_t pid = fork();
	sigset_t none;

	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(to, 1);
	dup2(to, 2);
	if (chroot(ROOT) || chdir("/tmp"))
		_exit(126);
	execve("/bin/bash", argv, env);
	_exit(127);
}

/* Each line of a file is a program; its output is headed by it. 0 if all ended with 0. */
static int run_programs(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];
	int bad = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *args[16], *save = NULL, *word = strtok_r(line, "\n ", &save);
		size_t n = 0;
		int st = 0;
		pid_t pid;

		for (; word && n < ARRAY_SIZE(args) - 1; word = strtok_r(NULL, "\n ", &save))
			args[n++] = word;
		args[n] = NULL;
		if (!n)
			continue;
		printf("# %s\n", args[0]);
		fflush(stdout);
		pid = fork();
		if (!pid) {
			alarm(900);
			execv(args[0], args);
			_exit(127);
		}
		if (waitpid(pid, &st, 0) != pid || (st && st != SKIPPED << 8)) {
			printf("# %s: wait status %#x\n", args[0], st);
			bad = 1;
		}
	}
	return !f || bad;
}

static void copy_output(int from)
{
	char buf[65536];
	ssize_t n, done, w;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (done = 0; done < n; done += w) {
			w = write(output, buf + done, n - done);
			if (w <= 0)
				return;
		}
}

static int copy_file(const char *from, const char *to)
{
	char buf[65536];
	int in, out;
	ssize_t n;

	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (in < 0 || out < 0)
		return -1;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			return -1;
	close(in);
	return close(out);
}

/* Read /job: what the command finds in its environment. */
static char **read_job(const char **out)
{
	static char *env[128];
	size_t n = 0, room = 0;
	char *line = NULL;
	ssize_t len;
	FILE *f;

	f = fopen("/job", "r");
	if (!f)
		give_up("/job");
	while (n < 127 && (len = getline(&line, &room, f)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = 0;
		env[n] = strdup(line);
		if (!strncmp(line, "OUT=", 4))
			*out = env[n] + 4;
		n++;
	}
	free(line);
	fclose(f);
	return env;
}

int main(int argc, char **argv)
{
	int kmsg, sfd, pipes[2], status = 0;
	const char *out = NULL;
	bool running = true;
	sigset_t chld;
	char **env;
	pid_t job;

	if (getpid() != 1)
		return argc == 2 ? run_programs(argv[1]) : 0;
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, "");
	mount("sysfs", "/sys", "sysfs", 0, "");
	mount("devtmpfs", "/dev", "devtmpfs", 0, "");
	/* The initramfs has no /dev/console: until now 0, 1 and 2 were closed. */
	for (int fd = open("/dev/console", O_RDWR); fd >= 0 && fd < 2;)
		fd = dup(fd);
	verdict = open_port("verdict");
	output = open_port("output");
	kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (verdict < 0 || output < 0 || kmsg < 0)
		give_up("the ports or /dev/kmsg");
	env = read_job(&out);
	mount_all(out);
	hide_files();
	loopback_up();
	load_module("/poke_again.ko");
	say("boots");
	mkdir(ROOT "/run/vm", 0755);
	mkdir(ROOT "/run/lock", 0755);
	if (copy_file("/cmd", ROOT "/run/vm/cmd"))
		give_up("/run/vm/cmd");

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sfd = signalfd(-1, &chld, SFD_NONBLOCK | SFD_CLOEXEC);
	if (sfd < 0 || pipe2(pipes, O_CLOEXEC))
		give_up("pipe");
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	job = start(env, pipes[1]);
	if (job < 0)
		give_up("fork");
	close(pipes[1]);

	while (running) {
		struct pollfd fds[] = {
			{ .fd = sfd, .events = POLLIN },
			{ .fd = pipes[0], .events = POLLIN },
			{ .fd = kmsg, .events = POLLIN },
		};
		struct signalfd_siginfo info;
		pid_t pid;
		int st;

		/* The pipe hangs up when the last writer is gone: then it only spins. */
		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			give_up("poll");
		while (read(sfd, &info, sizeof(info)) > 0)
			;
		while ((pid = waitpid(-1, &st, WNOHANG)) > 0) {
			if (pid != job)
				continue;
			status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
			running = false;
		}
		copy_output(pipes[0]);
		if (fds[1].revents & POLLHUP && running)
			usleep(10000);
		read_kmsg(kmsg);
	}
	copy_output(pipes[0]);
	scan_leaks();
	read_kmsg(kmsg);
	say("exit %d", status);
	say("done");
	close(output);
	stop_machine();
}
