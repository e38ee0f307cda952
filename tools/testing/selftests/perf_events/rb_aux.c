// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of a ring buffer and its AUX area that are made and unmade at one moment.
 *
 * PERSISTENT_WINDOW is the path of persistent_window.ko, which holds a task in the middle
 * of an operation until another has finished its own. TEST_PMU_MODULE is that of
 * perf_test_pmu.ko: the events of its perf_test_aux have an AUX area.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "../kselftest_harness.h"
#include "race_window.h"

/* A test that hangs is ended; one that a busy machine holds up is not. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	300

/* A user whose locked memory nobody else uses. */
#define OTHER_USER	65529

/* How long a task waits for another, in ms. It may be held for three seconds. */
#define WAIT_MS		20000

#define PMU_MODULE	"perf_test_pmu"
#define PMU_DEVICE	"/dev/perf_test_pmu"
#define PMU_HOLD	"/sys/module/perf_test_pmu/parameters/hold_aux"
#define PMU_TYPE	"/sys/bus/event_source/devices/perf_test_aux/type"

/* Names of the tasks that meet. */
#define CLOSER		"aux-closer"
#define MAPPER		"aux-mapper"

/* Of /proc/sys/kernel/tainted: the kernel has warned. */
#define TAINT_WARN	0x200

/**
 * struct scene - shared by the tasks of a test
 * @mapped: the closer has mapped the buffer
 * @unmap: the closer may unmap it
 * @closed: it has
 * @tried: the mapper has returned from mmap()
 * @touch: the mapper may read what it has mapped, and end
 * @map_err: errno of the mapper's mmap(), or 0
 * @redirected_err: errno of an mmap() of the redirected event afterwards, or 0
 * @other_err: the same of another event
 */
struct scene {
	int	mapped;
	int	unmap;
	int	closed;
	int	tried;
	int	touch;
	int	map_err;
	int	redirected_err;
	int	other_err;
};

static void tell(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
}

static bool told(int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static bool await(int *flag)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (told(flag))
			return true;
		usleep(1000);
	}
	return false;
}

/* Wait until the left side of the window is held, or cannot come any more, as @flag tells. */
static bool await_left(int *flag)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (window_holds(WINDOW_LEFT))
			return true;
		if (told(flag)) {
			/* The right side has nothing to wait for. */
			set_window("right", "\n");
			return true;
		}
		usleep(1000);
	}
	return false;
}

/* The number behind @name in a file with lines "NAME NUMBER", or in one of a number alone. */
static long read_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	char word[64];
	long n = -1;

	if (!f)
		return -1;
	while (fscanf(f, "%63s", word) == 1) {
		if (!name) {
			n = strtol(word, NULL, 10);
			break;
		}
		if (!strcmp(word, name)) {
			if (fscanf(f, "%ld", &n) != 1)
				n = -1;
			break;
		}
	}
	fclose(f);
	return n;
}

static int open_event(unsigned int type)
{
	struct perf_event_attr attr = {
		.type		= type,
		.size		= sizeof(attr),
		.config		= type == PERF_TYPE_SOFTWARE ? PERF_COUNT_SW_DUMMY : 0,
		.disabled	= 1,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};

	return syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
}

static void *map(int fd, size_t size, size_t offset)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
}

/* What the other user gets: 0 or errno. */
static int map_and_unmap(int fd, size_t size)
{
	void *base = map(fd, size, 0);

	if (base == MAP_FAILED)
		return errno;
	munmap(base, size);
	return 0;
}

/* Say that an AUX area of one page follows the buffer. */
static void offer_aux(void *base, size_t size)
{
	struct perf_event_mmap_page *page = base;

	page->aux_offset = size;
	page->aux_size = sysconf(_SC_PAGESIZE);
}

/* Return: 0 or errno. The mapping stays. */
static int map_aux(int fd, size_t size, char **aux)
{
	*aux = map(fd, sysconf(_SC_PAGESIZE), size);
	return *aux == MAP_FAILED ? errno : 0;
}

/* The largest buffer that fits into the limit, with its header page: two do not. */
static size_t largest_size(void)
{
	long page = sysconf(_SC_PAGESIZE), pages = 1, limit;

	limit = read_number("/proc/sys/kernel/perf_event_mlock_kb", NULL);
	limit = limit * 1024 / page * sysconf(_SC_NPROCESSORS_ONLN);
	while (2 * pages + 1 <= limit)
		pages *= 2;
	return (pages + 1) * page;
}

/* Without CAP_IPC_LOCK and RLIMIT_MEMLOCK, pages beyond the limit are refused. */
static int become_other(void)
{
	struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_MEMLOCK, &none) || setgid(OTHER_USER) || setuid(OTHER_USER);
}

/* perf_read() is what the other side of the window waits for. */
static void read_event(const char *name, int fd)
{
	__u64 count;

	prctl(PR_SET_NAME, name);
	if (read(fd, &count, sizeof(count)) != sizeof(count))
		fprintf(stderr, "# %s cannot read the event\n", name);
}

FIXTURE(rb_aux)
{
	struct scene	*scene;
	size_t		page_size;
	bool		window;
	bool		pmu;
	bool		warned;
	int		type;
};

static bool has_warned(void)
{
	return read_number("/proc/sys/kernel/tainted", NULL) & TAINT_WARN;
}

FIXTURE_SETUP(rb_aux)
{
	self->page_size = sysconf(_SC_PAGESIZE);
	self->scene = mmap(NULL, sizeof(*self->scene), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->scene);
	self->warned = has_warned();
}

FIXTURE_TEARDOWN(rb_aux)
{
	/* The refcount_t of later kernels tell of it. */
	EXPECT_EQ(self->warned, has_warned()) {
		TH_LOG("the kernel has warned, see its log");
	}
	if (self->window)
		unload_window();
	if (!self->pmu)
		return;
	/* Events are freed by RCU. */
	for (int ms = 0; unload_module(PMU_MODULE) && errno == EAGAIN && ms < WAIT_MS; ms++)
		usleep(1000);
}

/* Return: what keeps tasks from meeting, or NULL. */
static const char *use_window(struct _test_data_rb_aux *self, const char *left, const char *right)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return "takes two CPUs";
	if (!self->window && load_window(getenv("PERSISTENT_WINDOW")))
		return "takes the module PERSISTENT_WINDOW";
	self->window = true;
	if (set_window("left", left) || set_window("right", right) || set_window("armed", "1"))
		return "kprobes on these functions are refused";
	return NULL;
}

static const char *use_pmu(struct _test_data_rb_aux *self)
{
	if (load_module(getenv("TEST_PMU_MODULE"), ""))
		return "takes the module TEST_PMU_MODULE";
	self->pmu = true;
	self->type = read_number(PMU_TYPE, NULL);
	return NULL;
}

/* Map the buffer of @a with room for an AUX area, and redirect @b to it. */
static void *map_and_redirect(int a, int b, size_t size)
{
	void *base = map(a, size, 0);

	if (base == MAP_FAILED || ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, a))
		return MAP_FAILED;
	offer_aux(base, size);
	return base;
}

/* Only an event with a mapping of its own keeps the buffer alive that it maps an area of. */
TEST_F(rb_aux, redirected)
{
	size_t size = 2 * self->page_size;
	int a, b;
	void *base;
	char *aux;

	a = open_event(PERF_TYPE_SOFTWARE);
	b = open_event(PERF_TYPE_SOFTWARE);
	ASSERT_LE(0, a);
	ASSERT_LE(0, b);
	base = map_and_redirect(a, b, size);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(EOPNOTSUPP, map_aux(a, size, &aux));
	EXPECT_EQ(EBUSY, map_aux(b, size, &aux));
	munmap(base, size);
	close(a);
	close(b);
}

/* The same with a PMU that has AUX areas. Each maps one through the event of its buffer. */
TEST_F(rb_aux, redirected_with_area)
{
	size_t size = 2 * self->page_size;
	const char *missing = use_pmu(self);
	void *base, *own;
	char *aux;
	int a, b;

	if (missing)
		SKIP(return, "%s", missing);
	a = open_event(PERF_TYPE_SOFTWARE);
	b = open_event(self->type);
	ASSERT_LE(0, a);
	ASSERT_LE(0, b);
	base = map_and_redirect(a, b, size);
	ASSERT_NE(MAP_FAILED, base);
	EXPECT_EQ(EBUSY, map_aux(b, size, &aux));
	if (aux != MAP_FAILED)
		munmap(aux, self->page_size);
	EXPECT_EQ(0, read_number(PMU_DEVICE, "aux_areas"));

	ASSERT_EQ(0, ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	own = map(b, size, 0);
	ASSERT_NE(MAP_FAILED, own);
	offer_aux(own, size);
	ASSERT_EQ(0, map_aux(b, size, &aux));
	EXPECT_EQ(1, read_number(PMU_DEVICE, "aux_areas"));
	munmap(own, size);
	EXPECT_EQ(1, read_number(PMU_DEVICE, "aux_areas"));
	munmap(aux, self->page_size);
	EXPECT_EQ(0, read_number(PMU_DEVICE, "aux_areas"));
	munmap(base, size);
	close(a);
	close(b);
}

/* Of a user without privileges: @a's buffer is unmapped while @b fails to map its AUX area. */
static void fail_beside_unmap(struct scene *scene)
{
	size_t size = largest_size();
	int a, b, other;
	char *base, *aux;
	pid_t pid;

	if (become_other())
		_exit(1);
	a = open_event(PERF_TYPE_SOFTWARE);
	b = open_event(PERF_TYPE_SOFTWARE);
	other = open_event(PERF_TYPE_SOFTWARE);
	if (a < 0 || b < 0 || other < 0)
		_exit(errno == EACCES ? KSFT_SKIP : 1);
	base = map_and_redirect(a, b, size);
	if (base == MAP_FAILED)
		_exit(1);

	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, MAPPER);
		scene->map_err = map_aux(b, size, &aux);
		tell(&scene->tried);
		_exit(0);
	}
	if (pid < 0 || !await(&scene->unmap))
		_exit(1);
	munmap(base, size);
	read_event(CLOSER, a);
	if (waitpid(pid, NULL, 0) != pid)
		_exit(1);
	scene->redirected_err = map_and_unmap(b, size);
	scene->other_err = map_and_unmap(other, size);
	_exit(0);
}

TEST_F(rb_aux, fail_beside_unmap)
{
	struct scene *scene = self->scene;
	const char *missing;
	int status;
	pid_t pid;

	missing = use_window(self, MAPPER ":rb_alloc_aux", CLOSER ":perf_read");
	if (missing)
		SKIP(return, "%s", missing);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		fail_beside_unmap(scene);
	EXPECT_TRUE(await_left(&scene->tried));
	tell(&scene->unmap);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "kernel.perf_event_paranoid keeps users from opening events");
	EXPECT_EQ(0, status);
	EXPECT_EQ(EBUSY, scene->map_err);
	EXPECT_EQ(0, scene->redirected_err) {
		TH_LOG("the redirected event has kept the buffer that is unmapped");
	}
	EXPECT_EQ(0, scene->other_err) {
		TH_LOG("the buffer that is unmapped is still charged");
	}
}

/* Map the buffer of @fd, and unmap it when the mapper is in the middle of mmap(). */
static pid_t start_closer(struct scene *scene, int fd, size_t size, bool reads)
{
	pid_t pid = fork();
	void *base;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, CLOSER);
	base = map(fd, size, 0);
	if (base == MAP_FAILED)
		_exit(1);
	tell(&scene->mapped);
	if (!await(&scene->unmap))
		_exit(1);
	munmap(base, size);
	if (reads)
		read_event(CLOSER, fd);
	tell(&scene->closed);
	_exit(0);
}

/* Map what is at @offset of @fd, and keep it until the end. */
static pid_t start_mapper(struct scene *scene, int fd, size_t size, size_t offset, bool reads)
{
	pid_t pid = fork();
	char *base;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, MAPPER);
	base = map(fd, size, offset);
	scene->map_err = base == MAP_FAILED ? errno : 0;
	if (reads)
		read_event(MAPPER, fd);
	tell(&scene->tried);
	if (!await(&scene->touch))
		_exit(1);
	if (base != MAP_FAILED)
		__atomic_load_n((char *)base, __ATOMIC_RELAXED);
	_exit(0);
}

static bool await_setup(void)
{
	for (int ms = 0; ms < WAIT_MS; ms++) {
		if (read_number(PMU_DEVICE, "aux_waiting") == 1)
			return true;
		usleep(1000);
	}
	return false;
}

/*
 * Unmap a buffer while another task sets up its first AUX area: the area is not taken for
 * what is unmapped. @function is where the closer drops a count; it is held there until the
 * area is mapped.
 */
static void close_beside_setup(struct __test_metadata *_metadata, struct _test_data_rb_aux *self,
			       const char *function)
{
	size_t size = 2 * self->page_size;
	struct scene *scene = self->scene;
	pid_t closer, mapper;
	char left[64];
	void *base;
	int status;
	int fd;

	memset(scene, 0, sizeof(*scene));
	fd = open_event(self->type);
	ASSERT_LE(0, fd);
	base = map(fd, size, 0);
	ASSERT_NE(MAP_FAILED, base);
	offer_aux(base, size);

	closer = start_closer(scene, fd, size, false);
	ASSERT_LE(0, closer);
	ASSERT_TRUE(await(&scene->mapped));
	snprintf(left, sizeof(left), CLOSER ":%s", function);
	ASSERT_EQ(NULL, use_window(self, left, MAPPER ":perf_read"));
	ASSERT_EQ(0, write_text(PMU_HOLD, "1"));
	mapper = start_mapper(scene, fd, self->page_size, size, true);
	ASSERT_LE(0, mapper);
	EXPECT_TRUE(await_setup());
	tell(&scene->unmap);
	EXPECT_TRUE(await_left(&scene->closed));
	ASSERT_EQ(0, write_text(PMU_HOLD, "0"));

	EXPECT_TRUE(await(&scene->tried));
	EXPECT_EQ(0, scene->map_err);
	ASSERT_EQ(closer, waitpid(closer, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, read_number(PMU_DEVICE, "aux_areas")) {
		TH_LOG("the AUX area was freed when a mapping of the buffer went");
	}
	tell(&scene->touch);
	ASSERT_EQ(mapper, waitpid(mapper, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, read_number(PMU_DEVICE, "aux_areas"));
	munmap(base, size);
	close(fd);
}

TEST_F(rb_aux, close_beside_setup)
{
	const char *missing = use_pmu(self) ?: use_window(self, "\n", "\n");

	if (missing)
		SKIP(return, "%s", missing);
	/* The counts are atomic_t or refcount_t; nobody is held in the function of the other. */
	close_beside_setup(_metadata, self, "atomic_dec_and_mutex_lock");
	close_beside_setup(_metadata, self, "refcount_dec_and_mutex_lock");
}

/* Where pages are mapped at once, that can fail; the last mapping then goes by its failure. */
TEST_F(rb_aux, fail_to_map_beside_unmap)
{
	size_t size = 2 * self->page_size;
	struct scene *scene = self->scene;
	pid_t closer, mapper;
	const char *missing;
	int a, b, status;

	missing = use_window(self, MAPPER ":remap_pfn_range", CLOSER ":perf_read");
	if (missing)
		SKIP(return, "%s", missing);
	if (set_window("fail", MAPPER ":remap_pfn_range"))
		SKIP(return, "takes CONFIG_KRETPROBES");
	a = open_event(PERF_TYPE_SOFTWARE);
	b = open_event(PERF_TYPE_SOFTWARE);
	ASSERT_LE(0, a);
	ASSERT_LE(0, b);

	closer = start_closer(scene, a, size, true);
	ASSERT_LE(0, closer);
	ASSERT_TRUE(await(&scene->mapped));
	ASSERT_EQ(0, ioctl(b, PERF_EVENT_IOC_SET_OUTPUT, a));
	mapper = start_mapper(scene, a, size, 0, false);
	ASSERT_LE(0, mapper);
	EXPECT_TRUE(await_left(&scene->tried));
	tell(&scene->unmap);
	ASSERT_EQ(closer, waitpid(closer, &status, 0));
	EXPECT_EQ(0, status);
	tell(&scene->touch);
	ASSERT_EQ(mapper, waitpid(mapper, &status, 0));
	EXPECT_EQ(0, status);
	set_window("fail", "\n");
	EXPECT_EQ(0, map_and_unmap(b, size)) {
		TH_LOG("the redirected event has kept the buffer that is unmapped");
	}
	close(a);
	close(b);
}

TEST_HARNESS_MAIN
