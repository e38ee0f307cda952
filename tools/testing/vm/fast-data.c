// SPDX-License-Identifier: GPL-2.0
/*
 * A workload whose system calls are the same each time, with all their arguments, whatever the
 * kernel's speed: for test-fast-data.sh. There is no C library, which would call the kernel
 * with what registers have left, and a program without PIE has the same addresses each time. A
 * parent waits for its child, so that one CPU runs them one after the other.
 *
 * The sleeps let perf read a small buffer before it is full.
 *
 * Built with -static -nostdlib -no-pie -fno-stack-protector.
 */
#include <asm/unistd.h>
#include <linux/time_types.h>

#define ROUNDS	40

static struct __kernel_timespec pause_time = { .tv_nsec = 2000000 };
static const char path[] = "/proc/self/exe";
static const char * const again[] = { path, path, 0 };
static const char * const nothing[] = { 0 };

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile("syscall" : "=a" (ret)
		     : "a" (nr), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

static void calls(long who)
{
	long i;

	for (i = 0; i < ROUNDS; i++) {
		call(__NR_close, -1, i, 2, 3, 4, who);
		call(__NR_read, -1, 0, i, 3, 4, who);
		call(__NR_lseek, -1, i, 0, 3, 4, who);
		call(__NR_ioctl, -1, i, 2, 3, 4, who);
		call(__NR_close, -1, i, 2, 3, 4, who);
		call(__NR_nanosleep, (long)&pause_time, 0, 2, 3, 4, who);
	}
}

/* One that ends, and one that calls exec first. */
void run(long argc);
void run(long argc)
{
	long pid, exec;

	calls(argc);
	for (exec = 0; argc == 1 && exec < 2; exec++) {
		pid = call(__NR_fork, 1, 2, 3, 4, 5, exec);
		if (pid == 0) {
			calls(3);
			if (exec)
				call(__NR_execve, (long)path, (long)again, (long)nothing, 3, 4, 5);
			call(__NR_exit_group, 0, 1, 2, 3, 4, 5);
		}
		call(__NR_wait4, -1, 0, 0, 0, 4, 5);
	}
	call(__NR_exit_group, 0, 1, 2, 3, 4, 5);
}

/* The kernel enters with argc at the top of the stack. */
__attribute__((naked)) void _start(void);
__attribute__((naked)) void _start(void)
{
	asm("mov (%rsp), %rdi\n\t"
	    "call run");
}
