// SPDX-License-Identifier: GPL-2.0
/*
 * Print the frequency of this machine's time stamp counter in kHz.
 *
 * The emulator passes the counter on. A guest that calibrates it while the host
 * is busy may be wrong by much, and its clocks then run away; so it is told.
 * For x86 hosts.
 */
#include <stdio.h>
#include <time.h>

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int main(void)
{
	const struct timespec wait = { .tv_nsec = 100 * 1000 * 1000 };
	unsigned long long ns, ticks;

	ns = now_ns();
	ticks = __builtin_ia32_rdtsc();
	nanosleep(&wait, NULL);
	ticks = __builtin_ia32_rdtsc() - ticks;
	ns = now_ns() - ns;
	printf("%llu\n", ticks * 1000000 / ns);
	return 0;
}
