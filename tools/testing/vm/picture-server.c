// SPDX-License-Identifier: GPL-2.0
/*
 * The server of the pictures: six threads serve requests out of a cache. Once, another
 * thread compacts the cache, and holds its lock for 2 seconds. All others wait for that
 * lock: a convoy. The first request that took longer than 800 ms is reported to the
 * flight recorder, as the watchdog of a real server would do.
 *
 * usage: shopd SECONDS [SECONDS-UNTIL-COMPACTION [SOCKET-OF-THE-RECORDER]]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WORKERS		6
#define COMPACTION_MS	2000
#define SLOW_MS		800
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

static pthread_mutex_t cache_mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *recorder;
static unsigned long rounds_per_ms;
static atomic_bool reported;
static atomic_bool stop;
static atomic_ulong sink;

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void wait_ms(double ms)
{
	unsigned long long ns = ms * NSEC_PER_MSEC;
	struct timespec ts = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	nanosleep(&ts, NULL);
}

/*
 * Stands for the work of the function that it is inlined into. Taking the address of the
 * frame makes gcc set up a frame pointer, which it leaves out in leaf functions.
 */
static __always_inline void compute(double ms)
{
	unsigned long rounds = ms * rounds_per_ms, x = rounds | 1;

	asm volatile("" : : "r"(__builtin_frame_address(0)));
	while (rounds--)
		x = x * 6364136223846793005UL + 1442695040888963407UL;
	atomic_store_explicit(&sink, x, memory_order_relaxed);
}

/* The best of some tries: the emulator may have had no CPU in the others. */
static void calibrate(void)
{
	unsigned long best = 0;

	for (int i = 0; i < 10; i++) {
		unsigned long long begin = now_ns();

		rounds_per_ms = 1000000;
		compute(1);
		rounds_per_ms = rounds_per_ms * NSEC_PER_MSEC / (now_ns() - begin);
		if (rounds_per_ms > best)
			best = rounds_per_ms;
	}
	rounds_per_ms = best;
}

/* The C library has no frame pointers: the caller of its function is missing in call chains. */
static void cache_lock(void)
{
	pthread_mutex_lock(&cache_mutex);
}

static void cache_unlock(void)
{
	pthread_mutex_unlock(&cache_mutex);
}

static void hash_key(void)
{
	compute(0.15);
}

static void cache_get(void)
{
	hash_key();
	cache_lock();
	compute(0.05);
	cache_unlock();
}

static void cache_put(void)
{
	hash_key();
	cache_lock();
	compute(0.05);
	cache_unlock();
}

static void parse_request(void)
{
	compute(0.4);
}

static void load_session(void)
{
	cache_get();
	compute(0.2);
}

static void price_items(void)
{
	compute(0.8);
	cache_get();
}

static void render_page(void)
{
	compute(1);
}

static void store_cart(void)
{
	compute(0.3);
	cache_put();
}

static void serve_request(void)
{
	parse_request();
	load_session();
	price_items();
	render_page();
	store_cart();
}

/* "dump REASON" on the recorder's socket; the answer is not waited for. */
static void report_slow_request(unsigned long long ms)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char line[128];
	int fd, len;

	if (!recorder || atomic_exchange(&reported, true))
		return;
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", recorder);
	len = snprintf(line, sizeof(line), "dump POST /cart took %llu ms\n", ms);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    write(fd, line, len) != len) {
		perror(recorder);
		exit(1);
	}
}

static void *worker_main(void *arg)
{
	unsigned int seed = (unsigned long)arg;

	prctl(PR_SET_NAME, "http-worker");
	while (!stop) {
		unsigned long long begin = now_ns(), ms;

		serve_request();
		ms = (now_ns() - begin) / NSEC_PER_MSEC;
		if (ms > SLOW_MS)
			report_slow_request(ms);
		wait_ms(0.5 + rand_r(&seed) % 2000 / 1000.);
	}
	return NULL;
}

static void rehash_entries(void)
{
	compute(7);
}

static void move_entries(void)
{
	compute(3);
}

static void cache_compact(void)
{
	unsigned long long end = now_ns() + COMPACTION_MS * NSEC_PER_MSEC;

	cache_lock();
	while (now_ns() < end) {
		rehash_entries();
		move_entries();
	}
	cache_unlock();
}

static void *compactor_main(void *arg)
{
	prctl(PR_SET_NAME, "cache-compactor");
	wait_ms(*(double *)arg * 1000);
	cache_compact();
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 8;
	double until = argc > 2 ? atof(argv[2]) : seconds / 2;
	pthread_t thread;

	recorder = argc > 3 ? argv[3] : NULL;
	calibrate();
	pthread_create(&thread, NULL, compactor_main, &until);
	for (long i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, worker_main, (void *)(i + 1));
	wait_ms(seconds * 1000);
	stop = true;
	wait_ms(100);
	return 0;
}
